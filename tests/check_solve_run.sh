#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs of `solve` judged from outside by solve_run.py; skipped without python3.
python3 -c 'import json, subprocess' 2>/dev/null || exit 77
exec python3 "${srcdir:-.}/tests/solve_run.py"
