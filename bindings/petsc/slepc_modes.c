/* SPDX-License-Identifier: BSD-3-Clause */
/* slepc_modes.c - lowest eigenvalues of the 5-point Laplacian of 40 x 40 points
 * by SLEPc, whose shift-and-invert solves with libspsolve:
 *
 *   slepc_modes -st_type sinvert -eps_target 0 -st_ksp_type spsolve
 */
#include <slepceps.h>

PetscErrorCode PetscSpsolveRegister(void);

static PetscErrorCode Laplacian(PetscInt m, Mat *A)
{
    PetscFunctionBegin;
    PetscCall(MatCreateSeqAIJ(PETSC_COMM_SELF, m * m, m * m, 5, NULL, A));
    for (PetscInt row = 0; row < m * m; row++) {
        PetscInt i = row / m, j = row % m;
        PetscCall(MatSetValue(*A, row, row, 4, INSERT_VALUES));
        if (i > 0) PetscCall(MatSetValue(*A, row, row - m, -1, INSERT_VALUES));
        if (j > 0) PetscCall(MatSetValue(*A, row, row - 1, -1, INSERT_VALUES));
        if (j < m - 1)
            PetscCall(MatSetValue(*A, row, row + 1, -1, INSERT_VALUES));
        if (i < m - 1)
            PetscCall(MatSetValue(*A, row, row + m, -1, INSERT_VALUES));
    }
    PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
    PetscFunctionReturn(0);
}

int main(int argc, char **argv)
{
    const PetscInt m = 40;
    Mat A;
    EPS eps;
    PetscInt found;
    PetscReal s = PetscSinReal(PETSC_PI / (2 * m + 2)), exact = 8 * s * s;
    PetscScalar lambda = 0;

    PetscCall(SlepcInitialize(&argc, &argv, NULL, NULL));
    PetscCall(PetscSpsolveRegister());
    PetscCall(Laplacian(m, &A));
    PetscCall(EPSCreate(PETSC_COMM_SELF, &eps));
    PetscCall(EPSSetOperators(eps, A, NULL));
    PetscCall(EPSSetProblemType(eps, EPS_HEP));
    PetscCall(EPSSetDimensions(eps, 4, PETSC_DEFAULT, PETSC_DEFAULT));
    PetscCall(EPSSetFromOptions(eps));
    PetscCall(EPSSolve(eps));
    PetscCall(EPSGetConverged(eps, &found));
    for (PetscInt i = 0; i < PetscMin(found, 4); i++) {
        PetscScalar value;
        PetscCall(EPSGetEigenvalue(eps, i, &value, NULL));
        PetscCall(PetscPrintf(PETSC_COMM_SELF, "%.10f\n", (double)value));
        if (i == 0) lambda = value;
    }
    PetscCheck(found >= 4 && PetscAbsReal(lambda - exact) < 1e-8 * exact,
               PETSC_COMM_SELF, PETSC_ERR_NOT_CONVERGED,
               "the lowest is %.10f", (double)exact);
    PetscCall(EPSDestroy(&eps));
    PetscCall(MatDestroy(&A));
    PetscCall(SlepcFinalize());
    return 0;
}
