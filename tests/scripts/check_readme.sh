#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Runs the commands of README.md (indented lines that begin with one of this
# package's programs), in their order, in a new folder with data/ and the
# reader's A.mtx and B.mtx.  Structures are smaller: 6 elements per side
# instead of 40.  Of commands in the text of this and the other pages the names
# of options are checked.
src=$(cd "${srcdir:-.}" && pwd)
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
failures=0 ran=0
PATH=$(cd "$(dirname "${SOLVE:-./tools/solve}")" && pwd):$PATH
export PATH
cd "$tmp" || exit 99
ln -s "$src/data" data
cp data/poisson2d.mtx A.mtx
spsolve -A A.mtx -nrhs 2 -device cpu -quiet -o B.mtx || exit 99

sed -n 's/^    \(\(spsolve\|mtxgen\) .*\)$/\1/p' "$src/README.md" |
    sed 's/ *#.*//; s/elasticity 40/elasticity 6/' >commands
while read -r command; do
    sh -c "$command" >out 2>&1 </dev/null
    code=$?
    [ $code -eq 0 ] || { echo "FAIL: $command: exit $code"; cat out
                         failures=$((failures + 1)); }
    ran=$((ran + 1))
done <commands
[ $ran -ge 8 ] || { echo "FAIL: only $ran commands found"; failures=1; }

cat "$src/README.md" "$src"/doc/*.md "$src"/doc/site/*.md | tr '\n' ' ' |
    grep -oE '`(spsolve|mtxgen) [^`]*`' | tr -d '`[]' >inline
while read -r program words; do
    for word in $words; do
        case $word in
            -[A-Za-z]*) "$program" "$word" </dev/null 2>&1 |
                grep "unknown option" && {
                echo "FAIL: in a page: $program $words"
                failures=$((failures + 1)); } ;;
        esac
    done
done <inline
[ "$(wc -l <inline)" -ge 12 ] ||
    { echo "FAIL: few commands in the pages"; failures=1; }
[ $failures -eq 0 ] && echo "$ran commands: good"
exit $((failures > 0))
