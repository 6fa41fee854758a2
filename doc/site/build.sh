#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Builds the site; make site and make check-site call it.  Warnings are errors.
# With check, all blocks of Python and of the shell in its pages are run.
#   usage: build.sh PYTHON LIBRARY FOLDER [check]
# Skipped, with a line that says why, where Sphinx, myst-parser, matplotlib or
# SciPy is missing.
here=$(cd "$(dirname "$0")" && pwd)
python=$1 library=$2 to=$3 check=$4
SPSOLVE_SOURCE=${here%/doc/site} SPSOLVE_LIBRARY=$library
PYTHONPATH=$SPSOLVE_SOURCE/bindings/python PYTHONDONTWRITEBYTECODE=1
export SPSOLVE_SOURCE SPSOLVE_LIBRARY PYTHONPATH PYTHONDONTWRITEBYTECODE
skip() { echo "skipped: $*"; exit 0; }

[ -f "$library" ] || skip "no shared library $library"
why=$("$python" -c 'import sphinx, myst_parser, matplotlib, scipy.sparse' 2>&1) ||
    skip "$python: $(echo "$why" | tail -n 1)"

rm -rf "$to" && mkdir -p "$to/doc" "$to/tests/api" "$to/examples" ||
    exit 1
cp -R "$here"/../*.md "$here" "$to/doc/"
cp "$SPSOLVE_SOURCE/tests/api/client.c" "$to/tests/api/"
cp "$SPSOLVE_SOURCE"/examples/*.c "$to/examples/"
chmod -R u+w "$to"
"$python" -m sphinx -q -W --keep-going -b html "$to/doc/site" "$to/html" ||
    exit 1
echo "$to/html/index.html"
[ -n "$check" ] || exit 0

cd "$to" || exit 1
tools=$(dirname "$library")/../tools
beside=$(dirname "$(command -v "$python")")
mkdir -p run && cd run || exit 1
for page in "$to"/doc/site/*.md; do
    "$python" -W error::UserWarning:libspsolve -m doctest \
        -o NORMALIZE_WHITESPACE "$page" || exit 1
    sed -n '/^```sh$/,/^```$/p' "$page" | grep -v '^```' >block.sh
    PATH=$tools:$beside:$PATH sh -e block.sh </dev/null >block.log 2>&1 ||
        { cat block.sh block.log; echo "FAIL: $page"; exit 1; }
done
echo "all blocks ran"
