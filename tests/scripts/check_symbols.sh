#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Exported and required symbols: the library exports every function declared in
# spsolve.h and otherwise only private spsi_ ones; the module exports only its
# catalogue; the core library requires no symbol of CUDA.
command -v nm >/dev/null && command -v readelf >/dev/null ||
    { echo "skipped: no nm or no readelf"; exit 77; }
src=${srcdir:-.}
core=./.libs/libspsolve.so
module=./.libs/spsolve_cuda.so
[ -f $core ] || { echo "skipped: no shared library"; exit 77; }
failures=0
fail() { echo "FAIL: $*"; failures=$((failures + 1)); }
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT

# A declared function: a name followed by "(", outside of macros, comments and
# callback types.
sed 's|/\*.*\*/||; /\/\*/,/\*\//d; /^#/d' "$src/lib/spsolve.h" |
    grep -oE '\bsps_[a-z0-9_]+\(' | tr -d '(' | sort -u >"$tmp/declared"
nm -D --defined-only $core | awk '$2 ~ /^[A-Z]$/ && $2 != "A" { print $3 }' |
    sed 's/@.*//' | sort -u >"$tmp/all"
grep '^sps_' "$tmp/all" >"$tmp/exported"

[ "$(wc -l <"$tmp/declared")" -gt 20 ] || fail "declarations were not found"
only=$(comm -23 "$tmp/declared" "$tmp/exported")
[ -z "$only" ] || fail "declared in spsolve.h, not exported:" $only
only=$(comm -13 "$tmp/declared" "$tmp/exported")
[ -z "$only" ] || fail "exported, not declared in spsolve.h:" $only
only=$(grep -vE '^spsi?_' "$tmp/all")
[ -z "$only" ] || fail "exported without our prefix:" $only

nm -D --defined-only --with-symbol-versions $core >"$tmp/versions"
grep -qE ' sps_version@@SPSOLVE_0$' "$tmp/versions" ||
    fail "sps_version is not in version node SPSOLVE_0"
grep -E ' spsi_' "$tmp/versions" | grep -v '@@SPSOLVE_PRIVATE$' &&
    fail "internal symbols outside the private version node"

readelf -d $core >"$tmp/needed"
grep -iE 'NEEDED.*(cuda|cublas|cusparse|nv|stdc\+\+)' "$tmp/needed" &&
    fail "the core needs CUDA or C++"

if [ -f $module ]; then
    got=$(nm -D --defined-only $module |
        awk '$2 != "A" { print $3 }' | sed 's/@.*//')
    [ "$got" = spsi_cuda_catalogue ] || fail "the module exports:" $got
    readelf -d $module | grep -E 'NEEDED.*lib(cuda|cudart)\.so' &&
        fail "the module needs the driver or a shared cudart"
elif [ -n "$SPS_TEST_MODULE" ]; then
    fail "the module was built, but there is no $module"
else
    echo "skip module: built without CUDA"
fi

# The stand-ins of the factor module have no version: they meet references to
# those of libc (kernels/factor/standins.c).
factor=./.libs/spsolve_factor.so
if [ -f $factor ]; then
    got=$(nm -D --defined-only $factor | awk '{ print $3 }' | sort | tr '\n' ' ')
    want=$(sed -n '/^global:/,/^local:/s/^    \(.*\);$/\1/p' \
        "$src/kernels/factor/spsolve_factor.map" | sort | tr '\n' ' ')
    [ "$got" = "$want" ] || fail "the factor module exports:" $got
    readelf -d $factor | grep -E 'NEEDED.*libspsolve' &&
        fail "the factor module needs the library"
    readelf -d $core | grep -iE 'NEEDED.*(mumps|metis|gfortran)' &&
        fail "the core needs MUMPS"
else
    echo "skip factor module: built without MUMPS"
fi

[ $failures -eq 0 ] && echo "$(wc -l <"$tmp/exported") public functions: good"
exit $((failures > 0))
