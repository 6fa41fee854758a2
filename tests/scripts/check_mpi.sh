#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Preconditioner factor in programs that have an MPI of their own: one linked
# with it, alone and as two processes, and Python with mpi4py and with petsc4py,
# whose PETSc has loaded the MUMPS of several processes.
src=${srcdir:-.}
module=./.libs/spsolve_factor.so
[ -f $module ] || { echo "skipped: built without the factor module"; exit 77; }
command -v mpicc >/dev/null || { echo "skipped: no mpicc"; exit 77; }
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
failures=0
fail() { echo "FAIL: $*"; failures=$((failures + 1)); }
# Open MPI refuses root, and more processes than cores, unless told.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_base_warn_component_unused=0

# With the Fortran functions of Open MPI, whose names MUMPS calls.
build() {
    mpicc -std=c11 -I"$src/lib" "$src/tests/scripts/beside_mpi.c" -L./.libs \
        -lspsolve -Wl,-rpath,"$(pwd)/.libs" "$@" -o "$tmp/beside"
}
build -Wl,--no-as-needed -lmpi_mpifh 2>/dev/null || build ||
    { echo "skipped: mpicc makes no program"; exit 77; }
readelf -d "$tmp/beside" | grep -q 'NEEDED.*libmpi' ||
    fail "the program is not linked with MPI"
for words in "" before; do
    said=$("$tmp/beside" $words 2>&1)
    [ "$said" = "1 of 1 processes: good" ] || fail "alone: $said"
done
if command -v mpirun >/dev/null && mpirun -np 2 true 2>/dev/null; then
    said=$(mpirun -np 2 "$tmp/beside" 2>&1)
    [ "$(echo "$said" | grep -c '^2 of 2 processes: good$')" = 2 ] ||
        fail "two: $said"
else
    echo "skip two: mpirun starts no processes here"
fi

# Prints the Python that has the modules, the one of the build or Debian's,
# whose PETSc may be in a folder of its own.
petsc=$(ls -d /usr/lib/petscdir/*/*-real/lib/python3/dist-packages 2>/dev/null |
    head -n 1)
python_with() {
    for p in ${PYTHON:-python3} /usr/bin/python3; do
        PYTHONPATH=$petsc $p -c "import $1, scipy, numpy" 2>/dev/null && { echo $p; return; }
    done
    echo "skip $1: no Python has it, SciPy and NumPy" >&2
    return 1
}
# Runs a program on standard input, after which `good` must be all it says.
python_says() {
    said=$(SPSOLVE_LIBRARY=$(pwd)/.libs/libspsolve.so \
        PYTHONPATH="$src/bindings/python:$petsc" "$2" - 2>&1)
    [ "$said" = good ] || fail "$1: $said"
}

p=$(python_with mpi4py) && python_says mpi4py "$p" <<'PYTHON'
from mpi4py import MPI
import numpy, scipy.sparse as sparse, libspsolve
A = sparse.diags([-1.0, 2.5, -1.0], [-1, 0, 1], shape=(300, 300), format="csr")
r = libspsolve.solve(A, A @ numpy.ones(300), solver="gmres", precond="factor")
assert abs(r.X.ravel() - 1).max() < 1e-10
assert MPI.COMM_WORLD.allreduce(3) == 3 * MPI.COMM_WORLD.size
print("good")
PYTHON

# Both MUMPS factor in turn; the larger matrix makes PETSc's do so last.
p=$(python_with petsc4py.PETSc) && python_says petsc4py "$p" <<'PYTHON'
from petsc4py import PETSc
import numpy, scipy.sparse as sparse, libspsolve

def by_petsc(A, b):
    M = PETSc.Mat().createAIJ(A.shape, csr=(A.indptr, A.indices, A.data))
    ksp = PETSc.KSP().create()
    ksp.setOperators(M)
    ksp.setType("preonly")
    ksp.getPC().setType("lu")
    ksp.getPC().setFactorSolverType("mumps")
    x = M.createVecRight()
    ksp.solve(PETSc.Vec().createWithArray(b), x)
    return x.getArray()

for n in 300, 1000, 5000:
    A = sparse.diags([-1.0, 2.5, -1.0, .1], [-1, 0, 1, 40], shape=(n, n),
                     format="csr")
    b = A @ numpy.arange(1.0, n + 1)
    r = libspsolve.solve(A, b, solver="gmres", precond="factor")
    assert "factor" == r.precond and r.converged.all()
    assert abs(r.X.ravel() / numpy.arange(1.0, n + 1) - 1).max() < 1e-8
    assert abs(by_petsc(A, b) / r.X.ravel() - 1).max() < 1e-8
print("good")
PYTHON
[ $failures -eq 0 ] && echo "an MPI beside the factor module: good"
exit $((failures > 0))
