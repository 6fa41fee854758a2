#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The factor module with a library in place of MUMPS that prints and tries to
# end the process, in all ways that MUMPS, METIS and Fortran have: nothing is
# printed, the process lives, and auto goes on without factors.  What the library
# prints for others, in another thread or later, is printed.
src=${srcdir:-.}
module=./.libs/spsolve_factor.so
[ -f $module ] || { echo "skipped: built without the factor module"; exit 77; }
name=$(readelf -d $module | sed -n 's/.*NEEDED.*\[\(libdmumps.*\)\]$/\1/p')
[ -n "$name" ] || { echo "skipped: MUMPS is no shared library"; exit 77; }
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
failures=0
fail() { echo "FAIL: $*"; failures=$((failures + 1)); }

${CC:-cc} -shared -fPIC -O1 -w -pthread -Wl,-soname,"$name" -o "$tmp/$name" \
    "$src/tests/scripts/ending_mumps.c" -l:libgfortran.so.5 ||
    { echo "skipped: no library can be made"; exit 77; }
# Returns whether WHAT 1 to WHAT 7 and an error were printed.
printed() {
    for i in 1 2 3 4 5 6 7; do
        echo "$2" | grep -q "^ *$1 $i *\$" || return 1
    done
    echo "$2" | grep -q "^$1: "
}
for way in exit raise mpi stop runtime memory; do
    said=$(WAY=$way LD_LIBRARY_PATH=$tmp:$LD_LIBRARY_PATH \
        ./tools/spsolve -A "$src/data/poisson3d.mtx" -precond factor 2>&1)
    status=$?
    [ $status -eq 0 ] || fail "$way: exit status $status: $said"
    echo "$said" | tr -s ' \n' ' ' | grep -q 'tried to end the process' ||
        fail "$way: not told: $said"
    echo "$said" | grep 'NOISE' && fail "$way: printed"
    printed LATE "$said" || fail "$way: silent when used later: $said"
    echo "$said" | grep -q '^internal: within' ||
        fail "$way: a WRITE to a variable did nothing"
done
# What another thread prints and its exit are its own business.
said=$(WAY=elsewhere LD_LIBRARY_PATH=$tmp:$LD_LIBRARY_PATH \
    ./tools/spsolve -A "$src/data/poisson3d.mtx" -precond factor 2>&1)
status=$?
[ $status -eq 7 ] || fail "exit of another thread: exit status $status"
printed ELSEWHERE "$said" || fail "another thread is silent: $said"
echo "$said" | grep 'NOISE' && fail "elsewhere: printed"
[ $failures -eq 0 ] && echo "what ends or prints under the factor module: good"
exit $((failures > 0))
