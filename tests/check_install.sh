#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Installs into an empty DESTDIR, then builds and runs a small client there
# with what pkg-config says, as C and as C++.
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
unset MAKEFLAGS MFLAGS MAKELEVEL
failures=0
fail() { echo "FAIL: $*"; failures=$((failures + 1)); }
src=$(cd "${srcdir:-.}" && pwd)

make install DESTDIR="$tmp" >"$tmp/log" 2>&1 || { cat "$tmp/log"; exit 1; }
value() { sed -n "s/^$1 = //p" Makefile | head -n 1; }
prefix=$(value prefix)
pc=$(find "$tmp" -name libspsolve.pc)
lib=${pc%/pkgconfig/libspsolve.pc}
for file in bin/solve bin/mtxgen include/spsolve.h share/man/man1/solve.1; do
    [ -f "$tmp$prefix/$file" ] || fail "$file was not installed"
done
headers=$(find "$tmp" -name '*.h' | wc -l)
[ "$headers" -eq 1 ] || fail "$headers headers were installed, not one"
if [ -n "$SPS_TEST_MODULE" ]; then
    [ -f "$lib/spsolve/spsolve_cuda.so" ] || fail "no CUDA module installed"
    readelf -d "$lib/spsolve/spsolve_cuda.so" | grep -E 'R(UN)?PATH' |
        grep -F "$(pwd)" && fail "the module looks into the build folder"
fi
LD_LIBRARY_PATH=$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH

"$tmp$prefix/bin/solve" -A "$src/data/poisson2d.mtx" -nrhs 2 -device cpu \
    -quiet </dev/null || fail "the installed solve: exit $?"

ask() {
    PKG_CONFIG_PATH=$lib/pkgconfig pkg-config \
        --define-variable=prefix="$tmp$prefix" "$@" libspsolve
}
if command -v pkg-config >/dev/null; then
    [ "$(ask --modversion)" = "$(value VERSION)" ] || fail "wrong version"
    static=
    [ -f "$lib/libspsolve.so" ] || static=--static
    for language in "${CC:-cc} -std=c11" "${CXX:-c++} -x c++"; do
        if $language $SANITIZE_FLAGS $(ask --cflags) "$src/tests/client.c" \
            -o "$tmp/client" -x none $(ask --libs $static); then
            "$tmp/client" || fail "client made by $language: exit $?"
        else
            fail "client does not build by: $language"
        fi
    done
fi

make uninstall DESTDIR="$tmp" >"$tmp/log" 2>&1 || fail "make uninstall"
left=$(find "$tmp$prefix" ! -type d)
[ -z "$left" ] || fail "left by make uninstall: $left"
exit $((failures > 0))
