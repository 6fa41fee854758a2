#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The snippets of doc/languages.md: those of C++ and Fortran are completed to
# programs, which are compiled, linked with the library of this build and run;
# the lines of CMake and the options of PETSc are those that other tests use.
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
unset MAKEFLAGS MFLAGS MAKELEVEL
failures=0
fail() { echo "FAIL: $*"; failures=$((failures + 1)); }
src=$(cd "${srcdir:-.}" && pwd)
page=$src/doc/languages.md
flags="$SANITIZE_FLAGS -I$src/lib -I$src/bindings/cxx"

# block TITLE: the indented lines of the section, without the indentation
block() {
    awk -v title="## $1" '/^## / { on = $0 == title }
        on && /^    / { print substr($0, 5) }' "$page" >"$tmp/block"
    [ -s "$tmp/block" ] || fail "$page: no lines under $1"
}

# run NAME COMPILER OBJECT...: linked, and run where A.mtx is
run() {
    name=$1; shift
    if ./libtool --silent --tag=CC --mode=link "$@" $SANITIZE_FLAGS \
        -o "$tmp/$name" libspsolve.la -no-install; then
        (cd "$tmp" && "./$name") || fail "$name of $page: exit $?"
    else
        fail "$name of $page does not link"
    fi
}

"${MTXGEN:-tools/mtxgen}" poisson7 5 -o "$tmp/A.mtx" 2>/dev/null ||
    fail "no matrix"

plain=${CXX:-c++}
plain=${plain##* }              # without ccache, which libtool does not know
block C++
{
    echo '#include <vector>'
    echo '#include <spsolve.hpp>'
    echo 'int main() {'
    echo '    const int n = 125, k = 3;'
    echo '    const std::vector<double> numbers(n * k, 1.0);'
    cat "$tmp/block"
    echo '    return r.converged() ? 0 : 1;'
    echo '}'
} >"$tmp/snippet.cpp"
if "$plain" -std=c++11 -Wall -Wextra -Werror $flags -c "$tmp/snippet.cpp" \
    -o "$tmp/snippet.o"; then
    run cxx "$plain" "$tmp/snippet.o"
else
    fail "C++ of $page does not compile"
fi

# A tridiagonal matrix of 4 rows, given by 1-based arrays.
if command -v gfortran >/dev/null; then
    block Fortran
    {
        echo 'program snippet'
        sed -n '/^call/q; p' "$tmp/block"
        echo 'integer, parameter :: k = 2'
        echo 'integer :: rowptr(5) = [1, 3, 6, 9, 11]'
        echo 'integer :: col(10) = [1, 2, 1, 2, 3, 2, 3, 4, 3, 4]'
        echo 'double precision :: val(10) = [4, -1, -1, 4, -1, -1, 4, -1, -1, 4]'
        echo 'double precision :: b(4, k) = 1, x(4, k) = 0'
        sed -n '/^call/,$p' "$tmp/block"
        echo 'if (r%stop <= 0) error stop 1'
        echo 'end program'
    } >"$tmp/snippet.f90"
    if gfortran -J"$tmp" -c "$src/bindings/fortran/spsolve.f90" \
        -o "$tmp/module.o" && gfortran -Wall -Werror -J"$tmp" -I"$tmp" \
        -c "$tmp/snippet.f90" -o "$tmp/fortran.o"; then
        run fortran gfortran "$tmp/module.o" "$tmp/fortran.o"
    else
        fail "Fortran of $page does not compile"
    fi
else
    echo "skip fortran: no gfortran"
fi

block "CMake and pkg-config"
found=$(sed -n 's/^find_package(\(.*\))/\1/p' "$tmp/block")
grep -q "^find_package($found)" "$src/tests/api/client_cmake.txt" ||
    fail "check_install does not use find_package($found)"
for target in $(grep -o 'spsolve::[a-z]*' "$tmp/block"); do
    grep -q " $target)" "$src/tests/api/client_cmake.txt" ||
        fail "check_install does not link $target"
done
block "PETSc and SLEPc"
for option in $(grep -o -- '-[a-z]*_spsolve_[a-z]*' "$tmp/block"); do
    name=${option##*_spsolve_}
    "${SOLVE:-tools/spsolve}" -help | grep -q "^  -$name " ||
        fail "$page: $option, and there is no option -$name"
done
exit $((failures > 0))
