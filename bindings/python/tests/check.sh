#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs the tests of the Python package with the library of this build; make
# check-python calls it.  Skipped, with a line that says why, where Python or
# one of its packages is missing.
#   usage: check.sh PYTHON LIBRARY [ARGUMENT OF PYTEST...]
here=$(cd "$(dirname "$0")" && pwd)
python=$1 library=$2
shift 2
skip() { echo "skipped: $*"; exit 0; }

[ -f "$library" ] || skip "no shared library $library"
command -v "$python" >/dev/null || skip "no $python"
why=$("$python" -c 'import sys, numpy, scipy.sparse.linalg, pytest
assert sys.version_info >= (3, 9), "Python before 3.9"' 2>&1) ||
    skip "$python: $(echo "$why" | tail -n 1)"

unset MAKEFLAGS MFLAGS MAKELEVEL
SPSOLVE_LIBRARY=$library
PYTHONPATH=${here%/tests}${PYTHONPATH:+:$PYTHONPATH}
PYTHONDONTWRITEBYTECODE=1
export SPSOLVE_LIBRARY PYTHONPATH PYTHONDONTWRITEBYTECODE
exec "$python" -m pytest -q -p no:cacheprovider "$here" "$@"
