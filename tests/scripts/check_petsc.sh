#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# KSP and PC "spsolve" with the PETSc that is installed (3.18 or later, real,
# with its private headers), on one process and two; SLEPc's shift-and-invert.
# Skipped without PETSc and mpicc.
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
unset MAKEFLAGS MFLAGS MAKELEVEL
src=$(cd "${srcdir:-.}" && pwd)
failures=0
fail() { echo "FAIL: $*"; failures=$((failures + 1)); }
skip() { echo "skip petsc: $*"; exit 77; }

[ -z "$SANITIZE_FLAGS" ] || skip "PETSc is not built with sanitizers"
[ -f .libs/libspsolve.so ] || skip "no shared library"
command -v mpicc >/dev/null || skip "no mpicc"
pkg-config --atleast-version=3.18 PETSc 2>/dev/null || skip "no PETSc 3.18"
private=
for folder in $(pkg-config --cflags-only-I PETSc | sed 's/-I//g') \
    /usr/share/petsc/*/include; do
    [ -f "$folder/petsc/private/kspimpl.h" ] && private="-I$folder"
done
[ -n "$private" ] || skip "no private headers"

# PETSc of complex or single precision, or of another MPI than mpicc's.
cat >"$tmp/plain.c" <<'END'
#include <petscsys.h>
#if defined(PETSC_USE_COMPLEX) || !defined(PETSC_USE_REAL_DOUBLE)
#error
#endif
int main(int n, char **words) { return PetscInitialize(&n, &words, NULL, NULL); }
END
mpicc $(pkg-config --cflags PETSc) "$tmp/plain.c" -o "$tmp/plain" \
    $(pkg-config --libs PETSc) >"$tmp/log" 2>&1 ||
    skip "mpicc makes no program with a PETSc of real doubles"

# built NAME SOURCE PACKAGE...
built() {
    name=$1 source=$2; shift 2
    mpicc -std=gnu11 -Wall -Wextra -Werror -I"$src/lib" \
        $(pkg-config --cflags "$@") $private \
        "$src/bindings/petsc/petsc_spsolve.c" "$source" -o "$tmp/$name" \
        $(pkg-config --libs "$@") -L.libs -lspsolve -lm \
        -Wl,-rpath,"$(pwd)/.libs" || fail "$name does not build"
}

OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_base_warn_component_unused=0
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM \
    OMPI_MCA_rmaps_base_oversubscribe OMPI_MCA_btl_base_warn_component_unused

# run COMMAND...: its exit status, with a limit of time
run() { timeout 120 "$@" >"$tmp/log" 2>&1 || { cat "$tmp/log"; fail "$*"; }; }

built client "$src/tests/api/client_petsc.c" PETSc
spsolve="$tmp/client -ksp_type spsolve"
run $spsolve -shell
run $spsolve -ksp_spsolve_solver cg -ksp_spsolve_precond amg -ksp_monitor
grep -q "KSP Residual norm" "$tmp/log" || fail "no monitor"
run $spsolve -shell -ksp_spsolve_solver cg -ksp_spsolve_use_pc -pc_type jacobi
run "$tmp/client" -ksp_type cg -ksp_norm_type unpreconditioned \
    -pc_type spsolve -pc_spsolve_precond ic0
if command -v mpirun >/dev/null; then
    run mpirun -n 2 $spsolve -shell -ksp_spsolve_solver cg -pc_type jacobi
    run mpirun -n 2 "$tmp/client" -ksp_type cg -pc_type bjacobi \
        -ksp_norm_type unpreconditioned -sub_pc_type spsolve \
        -sub_pc_spsolve_precond ic0
fi
"$tmp/client" -ksp_type spsolve -ksp_spsolve_solver cgs >"$tmp/log" 2>&1
grep -q "did you mean cg" "$tmp/log" || fail "a wrong name is not told"

if pkg-config --exists SLEPc; then
    built modes "$src/bindings/petsc/slepc_modes.c" SLEPc PETSc
    run "$tmp/modes" -st_type sinvert -eps_target 0 -st_ksp_type spsolve
    cat "$tmp/log"
else
    echo "skip slepc: no SLEPc"
fi

# The types in petsc4py, by a library of the same file.
python=$(command -v /usr/bin/python3 || command -v python3)
if "$python" -c 'from petsc4py import PETSc; import numpy' 2>/dev/null; then
    mpicc -shared -fPIC -std=gnu11 -I"$src/lib" \
        $(pkg-config --cflags PETSc) $private \
        "$src/bindings/petsc/petsc_spsolve.c" -o "$tmp/petsc_spsolve.so" \
        $(pkg-config --libs PETSc) -L.libs -lspsolve \
        -Wl,-rpath,"$(pwd)/.libs" || fail "no library for petsc4py"
    cat >"$tmp/client.py" <<'END'
import ctypes
import sys

import petsc4py
petsc4py.init(sys.argv)
import numpy as np
from petsc4py import PETSc

assert ctypes.CDLL(sys.argv[1]).PetscSpsolveRegister() == 0
n = 2000
A = PETSc.Mat().createAIJ([n, n], nnz=3)
for i in range(n):
    for j in range(max(i - 1, 0), min(i + 2, n)):
        A[i, j] = 2.1 if i == j else -1.0
A.assemble()
x, b = A.createVecs()
b.setArray(np.cos(np.arange(n)))
for ksp_type, pc_type in (("spsolve", "none"), ("cg", "spsolve")):
    ksp = PETSc.KSP().create()
    ksp.setOperators(A)
    ksp.setType(ksp_type)
    ksp.getPC().setType(pc_type)
    ksp.setTolerances(rtol=1e-10)
    ksp.solve(b, x)
    assert ksp.getConvergedReason() > 0
    assert (b - A * x).norm() < 1e-8 * b.norm(), (ksp_type, pc_type)
END
    run "$python" "$tmp/client.py" "$tmp/petsc_spsolve.so"
else
    echo "skip petsc4py: no petsc4py"
fi
exit $((failures > 0))
