#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs of `solve`, checked independently by solve_run.py; skipped without
# python3.
python3 -c 'import json, subprocess' 2>/dev/null ||
    { echo "skipped: no python3"; exit 77; }
exec python3 "${srcdir:-.}/tests/scripts/solve_run.py"
