#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Installs into an empty DESTDIR, then builds and runs small clients there, in
# C, C++ and Fortran, with the flags of pkg-config and by CMake, also after the
# installation has been moved.
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
completions=share/bash-completion/completions
for file in bin/spsolve bin/mtxgen include/spsolve.h include/spsolve.hpp \
    share/libspsolve/fortran/spsolve.f90 share/man/man1/spsolve.1 \
    share/man/man3/spsolve.3 $completions/spsolve.bash \
    share/libspsolve/data/README.md share/libspsolve/data/network.mtx \
    share/doc/libspsolve/examples/matrix_free.c; do
    [ -f "$tmp$prefix/$file" ] || fail "$file was not installed"
done
# `solve` links to each of the command's files, by relative names.
for pair in bin/solve:spsolve share/man/man1/solve.1:spsolve.1 \
    $completions/solve.bash:spsolve.bash; do
    link=${pair%:*}
    [ "$(readlink "$tmp$prefix/$link")" = "${pair#*:}" ] ||
        fail "$link is no link to ${pair#*:}"
    [ -s "$tmp$prefix/$link" ] || fail "$link leads nowhere"
done
headers=$(find "$tmp$prefix/include" -name '*.h' | wc -l)
[ "$headers" -eq 1 ] || fail "$headers headers for C were installed, not one"
if [ -n "$SPS_TEST_MODULE" ]; then
    [ -f "$lib/spsolve/spsolve_cuda.so" ] || fail "no CUDA module installed"
    readelf -d "$lib/spsolve/spsolve_cuda.so" | grep -E 'R(UN)?PATH' |
        grep -F "$(pwd)" && fail "the module looks into the build folder"
fi
LD_LIBRARY_PATH=$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH

for name in spsolve solve; do
    "$tmp$prefix/bin/$name" -nrhs 2 -device cpu \
        -A "$tmp$prefix/share/libspsolve/data/poisson2d.mtx" \
        -quiet </dev/null || fail "the installed $name: exit $?"
done

# What the recipe for conda tests in its environment, where libraries are in lib.
sed -n '/^  commands:/,/^$/s/^    - //p' "$src/packaging/conda/meta.yaml" \
    >"$tmp/commands"
[ -s "$tmp/commands" ] || fail "no commands in conda/meta.yaml"
if [ "$lib" = "$tmp$prefix/lib" ]; then
    PREFIX=$tmp$prefix PATH=$tmp$prefix/bin:$PATH sh -ex "$tmp/commands" \
        >"$tmp/log" 2>&1 ||
        { cat "$tmp/log"; fail "commands of conda/meta.yaml"; }
fi

ask() { PKG_CONFIG_PATH=$lib/pkgconfig pkg-config "$@" libspsolve; }
if command -v pkg-config >/dev/null; then
    [ "$(ask --modversion)" = "$(value VERSION)" ] || fail "wrong version"
    static=
    [ -f "$lib/libspsolve.so" ] || static=--static
    examples=$tmp$prefix/share/doc/libspsolve/examples
    ls "$examples" | grep '\.c$' | grep -v slepc >"$tmp/examples"
    while read -r name; do
        ${CC:-cc} -std=c11 -D_GNU_SOURCE $SANITIZE_FLAGS $(ask --cflags) \
            "$examples/$name" -o "$tmp/example" $(ask --libs $static) -lm ||
            fail "the installed example $name does not build"
    done <"$tmp/examples"
    [ "$(wc -l <"$tmp/examples")" -gt 5 ] || fail "too few examples installed"
    for language in "${CC:-cc} -std=c11" "${CXX:-c++} -x c++"; do
        if $language $SANITIZE_FLAGS $(ask --cflags) "$src/tests/api/client.c" \
            -o "$tmp/client" -x none $(ask --libs $static); then
            "$tmp/client" || fail "client made by $language: exit $?"
        else
            fail "client does not build by: $language"
        fi
    done
    ${CXX:-c++} -std=c++11 $SANITIZE_FLAGS $(ask --cflags) \
        "$src/tests/api/client.cpp" -o "$tmp/client" $(ask --libs $static) &&
        "$tmp/client" || fail "the client in C++"
else
    echo "skip clients: no pkg-config"
fi

# by_cmake PREFIX: clients by find_package in an installation there
by_cmake() {
    rm -rf "$tmp/cmake" && mkdir -p "$tmp/cmake"
    cp "$src/tests/api/client_cmake.txt" "$tmp/cmake/CMakeLists.txt"
    libs=$1/${lib#"$tmp$prefix/"}
    cmake -S "$tmp/cmake" -B "$tmp/cmake/build" -DCLIENTS="$src/tests/api" \
        -DWITH_FORTRAN="$fortran" -DCMAKE_PREFIX_PATH="$1" \
        -DCMAKE_C_FLAGS="$SANITIZE_FLAGS" -DCMAKE_CXX_FLAGS="$SANITIZE_FLAGS" \
        -DCMAKE_Fortran_FLAGS="$SANITIZE_FLAGS" >"$tmp/log" 2>&1 &&
        cmake --build "$tmp/cmake/build" >>"$tmp/log" 2>&1 ||
        { cat "$tmp/log"; fail "clients by CMake in $1"; return; }
    for client in "$tmp"/cmake/build/run_*; do
        LD_LIBRARY_PATH=$libs "$client" || fail "$client: exit $?"
    done
}
if command -v cmake >/dev/null; then
    fortran=OFF
    command -v gfortran >/dev/null && fortran=ON
    # CMake wants a compiler alone, or its launcher.
    CC=${CC##* } CXX=${CXX##* } by_cmake "$tmp$prefix"
    mv "$tmp$prefix" "$tmp/moved" && CC=${CC##* } CXX=${CXX##* } \
        by_cmake "$tmp/moved"
    mv "$tmp/moved" "$tmp$prefix"
else
    echo "skip clients by CMake: no cmake"
fi

# Another prefix at installation: nothing may name that of configure.
make install prefix="$tmp/other" >"$tmp/log" 2>&1 ||
    { cat "$tmp/log"; fail "make install prefix="; }
grep -n "$prefix/" $(find "$tmp/other" -name '*.pc' -o -name '*.cmake') &&
    fail "the prefix of configure is named in another one"
if command -v pkg-config >/dev/null; then
    there=$(PKG_CONFIG_PATH=$(dirname "$(find "$tmp/other" -name '*.pc')") \
        pkg-config --variable=includedir libspsolve)
    [ "$(realpath -m "$there")" = "$(realpath -m "$tmp/other/include")" ] ||
        fail "headers are looked for in $there"
fi

make uninstall DESTDIR="$tmp" >"$tmp/log" 2>&1 || fail "make uninstall"
left=$(find "$tmp$prefix" ! -type d)
[ -z "$left" ] || fail "left by make uninstall: $left"
make install-exec install-data SOLVE_LINK= DESTDIR="$tmp" >"$tmp/log" 2>&1 ||
    fail "make install SOLVE_LINK="
left=$(find "$tmp$prefix" -name 'solve*')
[ -z "$left" ] || fail "SOLVE_LINK= installs: $left"
exit $((failures > 0))
