/* SPDX-License-Identifier: BSD-3-Clause */
/* client_petsc.c - KSP and PC spsolve: a vector, new values, many columns by
 * KSPMatSolve, MatShell, several processes.  check_petsc.sh gives options. */
#include <petscksp.h>

PetscErrorCode PetscSpsolveRegister(void);

static PetscErrorCode Laplacian(PetscInt m, PetscScalar shift, Mat *A)
{
    PetscInt first, last;

    PetscFunctionBegin;
    PetscCall(MatCreateAIJ(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, m * m,
                           m * m, 5, NULL, 5, NULL, A));
    PetscCall(MatGetOwnershipRange(*A, &first, &last));
    for (PetscInt row = first; row < last; row++) {
        PetscInt i = row / m, j = row % m, col[5], c = 0;
        PetscScalar v[5];
        if (i > 0) v[c] = -1, col[c++] = row - m;
        if (j > 0) v[c] = -1, col[c++] = row - 1;
        v[c] = 4 + shift, col[c++] = row;
        if (j < m - 1) v[c] = -1, col[c++] = row + 1;
        if (i < m - 1) v[c] = -1, col[c++] = row + m;
        PetscCall(MatSetValues(*A, 1, &row, c, col, v, INSERT_VALUES));
    }
    PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatSetOption(*A, MAT_SPD, PETSC_TRUE));
    PetscFunctionReturn(0);
}

static PetscErrorCode ShellMult(Mat S, Vec x, Vec y)
{
    Mat A;

    PetscFunctionBegin;
    PetscCall(MatShellGetContext(S, &A));
    PetscCall(MatMult(A, x, y));
    PetscFunctionReturn(0);
}

/* ||b - A x|| / ||b|| by PETSc's own product. */
static PetscErrorCode Judge(KSP ksp, Mat A, Vec b, Vec x, const char *what)
{
    Vec r;
    PetscReal residual, norm;
    KSPConvergedReason reason;
    PetscInt its;

    PetscFunctionBegin;
    PetscCall(VecDuplicate(b, &r));
    PetscCall(MatMult(A, x, r));
    PetscCall(VecAYPX(r, -1, b));
    PetscCall(VecNorm(r, NORM_2, &residual));
    PetscCall(VecNorm(b, NORM_2, &norm));
    PetscCall(VecDestroy(&r));
    PetscCall(KSPGetConvergedReason(ksp, &reason));
    PetscCall(KSPGetIterationNumber(ksp, &its));
    PetscCheck(reason > 0 && residual <= 1.01e-9 * norm, PETSC_COMM_WORLD,
               PETSC_ERR_NOT_CONVERGED, "%s: reason %d, residual %g", what,
               (int)reason, (double)(residual / norm));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s: %d iterations\n", what,
                          (int)its));
    PetscFunctionReturn(0);
}

static PetscErrorCode ManyColumns(KSP ksp, Mat A, PetscInt k)
{
    Mat B, X, R;
    PetscInt n, rows;
    PetscReal residual, norm;
    KSPConvergedReason reason;

    PetscFunctionBegin;
    PetscCall(MatGetSize(A, &n, NULL));
    PetscCall(MatGetLocalSize(A, &rows, NULL));
    PetscCall(MatCreateDense(PETSC_COMM_WORLD, rows, PETSC_DECIDE, n, k, NULL,
                             &B));
    PetscCall(MatSetRandom(B, NULL));
    PetscCall(MatDuplicate(B, MAT_DO_NOT_COPY_VALUES, &X));
    PetscCall(KSPMatSolve(ksp, B, X));
    PetscCall(KSPGetConvergedReason(ksp, &reason));
    PetscCall(MatMatMult(A, X, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &R));
    PetscCall(MatAYPX(R, -1, B, SAME_NONZERO_PATTERN));
    PetscCall(MatNorm(R, NORM_FROBENIUS, &residual));
    PetscCall(MatNorm(B, NORM_FROBENIUS, &norm));
    PetscCheck(reason > 0 && residual <= 1.01e-9 * norm, PETSC_COMM_WORLD,
               PETSC_ERR_NOT_CONVERGED, "KSPMatSolve: reason %d, residual %g",
               (int)reason, (double)(residual / norm));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "KSPMatSolve: good\n"));
    PetscCall(MatDestroy(&B));
    PetscCall(MatDestroy(&X));
    PetscCall(MatDestroy(&R));
    PetscFunctionReturn(0);
}

int main(int argc, char **argv)
{
    Mat A, S;
    Vec b, x;
    KSP ksp;
    PetscInt n, rows;
    PetscBool spsolve, shell;

    PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
    PetscCall(PetscSpsolveRegister());
    PetscCall(Laplacian(30, 0, &A));
    PetscCall(MatCreateVecs(A, &x, &b));
    PetscCall(VecSetRandom(b, NULL));
    PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(KSPSetTolerances(ksp, 1e-9, 1e-50, PETSC_DEFAULT, 1000));
    PetscCall(KSPSetFromOptions(ksp));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(Judge(ksp, A, b, x, "KSPSolve"));
    PetscCall(MatShift(A, 3));      /* new values on the same pattern */
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(Judge(ksp, A, b, x, "new values"));
    PetscCall(PetscObjectTypeCompare((PetscObject)ksp, "spsolve", &spsolve));
    if (spsolve) {
        PetscCall(ManyColumns(ksp, A, 5));
        PetscCall(KSPSolve(ksp, b, x));
        PetscCall(Judge(ksp, A, b, x, "a vector after many columns"));
    }
    PetscCall(PetscOptionsHasName(NULL, NULL, "-shell", &shell));
    if (shell) {
        PetscCall(MatGetSize(A, &n, NULL));
        PetscCall(MatGetLocalSize(A, &rows, NULL));
        PetscCall(MatCreateShell(PETSC_COMM_WORLD, rows, rows, n, n, A, &S));
        PetscCall(MatShellSetOperation(S, MATOP_MULT,
                                       (void (*)(void))ShellMult));
        PetscCall(MatSetOption(S, MAT_SPD, PETSC_TRUE));
        PetscCall(KSPSetOperators(ksp, S, A));
        PetscCall(KSPSolve(ksp, b, x));
        PetscCall(Judge(ksp, A, b, x, "MatShell"));
        PetscCall(MatDestroy(&S));
    }
    PetscCall(KSPDestroy(&ksp));
    PetscCall(MatDestroy(&A));
    PetscCall(VecDestroy(&b));
    PetscCall(VecDestroy(&x));
    PetscCall(PetscFinalize());
    return 0;
}
