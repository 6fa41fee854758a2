/* SPDX-License-Identifier: BSD-3-Clause */
/* sddmm_ref.c - val = alpha (u_i . v_j) [a_ij] + beta val for the stored (i,
 * j), by simple loops.  Rows are divided among the threads; each value is
 * computed by one thread in a fixed order of summation. */
#include "plan/kernel.h"
#include "core/team.h"

/* Each entry reads a row of U and a row of V; the model assumes that they are
 * cached. */
static double cost(const sps_problem *p)
{
    return 16.0 * (double)p->f->nnz * p->k / p->machine->copy;
}

static double number(sps_dtype dtype, const void *data, int64_t p)
{
    return dtype == SPS_F64 ? ((const double *)data)[p]
                            : (double)((const float *)data)[p];
}

static void put(sps_dtype dtype, void *data, int64_t p, double value)
{
    if (dtype == SPS_F64) ((double *)data)[p] = value;
    else ((float *)data)[p] = (float)value;
}

/* Returns the dot product of row i of U and row j of V. */
static double dot(const sps_block *U, int64_t i, const sps_block *V, int64_t j)
{
    double sum = 0;

    for (int l = 0; l < U->k; l++)
        sum += number(U->dtype, U->data, i * U->ld + l) *
               number(V->dtype, V->data, j * V->ld + l);
    return sum;
}

typedef struct job {
    const sps_csr_local *A;
    const sps_sddmm_args *args;
} job;

static void run_rows(void *data, int64_t first, int64_t last)
{
    const sps_sddmm_args *args = ((const job *)data)->args;
    const sps_csr_local *A = ((const job *)data)->A;
    const sps_dtype dtype = args->U->dtype;
    const double alpha = args->alpha, beta = args->beta;

    for (int64_t i = first; i < last; i++)
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
            double s = 0;
            double old = beta != 0 ? beta * number(dtype, args->val, p) : 0;

            if (alpha != 0) {
                s = alpha * dot(args->U, i, args->V, A->col[p]);
                if (args->multiply) s *= number(A->dtype, A->val, p);
            }
            put(dtype, args->val, p, s + old);
        }
}

static sps_status sddmm(const sps_plan *plan, const sps_sddmm_args *args)
{
    const sps_csr_local *A = plan->A;

    spsi_team_run(plan->ctx, A->nrow, A->nnz * (args->U->k + 2), run_rows,
                  &(job){ A, args });
    return SPS_OK;
}

SPS_DEFINE(sps_kernel, spsi_kernel_sddmm_ref) = {
    .name = "sddmm.ref",
    .op = SPS_OP_SDDMM,
    .gives = SPS_REPRODUCIBLE | SPS_FULL_PRECISION | SPS_NAN_STAYS_IN_ROW |
             SPS_SINGLE_BLOCKS,
    .cost = cost,
    .sddmm = sddmm,
};
