#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# spsolve.hpp by every standard of C++ that the compilers know, the module of
# Fortran, and the example of each, with the library of this build.
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
unset MAKEFLAGS MFLAGS MAKELEVEL
failures=0 made=0
fail() { echo "FAIL: $*"; failures=$((failures + 1)); }
src=$(cd "${srcdir:-.}" && pwd)
flags="$SANITIZE_FLAGS -I$src/lib -I$src/bindings/cxx"

# linked NAME COMPILER OBJECT...: links it with the library and runs it
linked() {
    name=$1; shift
    made=$((made + 1))
    if ./libtool --silent --tag=CC --mode=link "$@" \
        $SANITIZE_FLAGS -o "$tmp/$name" libspsolve.la -no-install; then
        "$tmp/$name" || fail "$name: exit $?"
    else
        fail "$name does not link"
    fi
}

# cxx NAME SOURCE COMPILER FLAG...
cxx() {
    name=$1 source=$2; shift 2
    if "$@" $flags -Wall -Wextra -Wshadow -Werror -c "$source" \
        -o "$tmp/$name.o"; then
        linked "$name" "$1" "$tmp/$name.o"
    else
        fail "$name does not compile"
    fi
}

# known COMPILER FLAG: it compiles a line of C++ by that standard
known() {
    echo 'int main() { return 0; }' >"$tmp/one.cpp"
    "$@" -c "$tmp/one.cpp" -o "$tmp/one.o" >/dev/null 2>&1
}

plain=${CXX:-c++}
plain=${plain##* }              # without ccache, which libtool does not know
for standard in 11 14 17 20; do
    known "$plain" -std=c++$standard || continue
    cxx client_$standard "$src/tests/api/client.cpp" "$plain" \
        -std=c++$standard
done
cxx poisson "$src/bindings/cxx/poisson.cpp" "$plain" -std=c++11
if [ -z "$SANITIZE_FLAGS" ] && known clang++ -std=c++20; then
    cxx client_clang "$src/tests/api/client.cpp" clang++ -std=c++20
fi
[ "$made" -ge 2 ] || fail "no compiler for C++ ($plain)"

if command -v gfortran >/dev/null; then
    fortran="gfortran -std=f2008 -Wall -Wextra -Wno-compare-reals \
        -Wno-unused-dummy-argument -Wno-maybe-uninitialized -Werror -J$tmp"
    object() { $fortran $SANITIZE_FLAGS -fcheck=all -c "$1" -o "$2"; }
    if object "$src/bindings/fortran/spsolve.f90" "$tmp/module.o" &&
        object "$src/tests/api/client.f90" "$tmp/client.o" &&
        object "$src/bindings/fortran/poisson.f90" "$tmp/poisson.o" &&
        ${CC:-cc} $flags -c "$src/tests/api/fortran_layout.c" \
            -o "$tmp/layout.o"; then
        linked client_fortran gfortran "$tmp/module.o" "$tmp/client.o" \
            "$tmp/layout.o"
        linked poisson_fortran gfortran "$tmp/module.o" "$tmp/poisson.o"
    else
        fail "the module of Fortran does not compile"
    fi
else
    echo "skip fortran: no gfortran"
fi
exit $((failures > 0))
