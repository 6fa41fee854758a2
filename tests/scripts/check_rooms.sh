#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Calls between rooms, from the object files (check_rooms.py); skipped without
# python3.
python3 -c 'import subprocess' 2>/dev/null && command -v nm >/dev/null ||
    { echo "skipped: no python3 or no nm"; exit 77; }
exec python3 "${srcdir:-.}/tests/scripts/check_rooms.py"
