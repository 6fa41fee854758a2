/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_ref.c - Y = alpha A X + beta Y as one loop nest, obviously right: the
 * oracle that the other kernels are compared with.  It bids, because it always
 * fits, at a price that anything else beats. */
#include "lib/kernel.h"

static bool fits(const sps_problem *p, const char **why_not)
{
    (void)p, (void)why_not;
    return true;
}

static double cost(const sps_problem *p)
{
    return 50 * spsi_spmm_floor(p->f, p->A->dtype, p->k) / p->bandwidth;
}

static sps_status plan(sps_context *ctx, const sps_problem *p,
                       sps_plan **plan_p);

static double value(const sps_csr_local *A, int64_t p)
{
    return A->dtype == SPS_F64 ? ((const double *)A->val)[p]
                               : (double)((const float *)A->val)[p];
}

static sps_status spmm(const sps_plan *plan, const sps_spmm_args *args)
{
    const sps_csr_local *A = plan->A;
    const double *x = args->X->data;
    double *y = args->Y->data;
    int64_t ldx = args->X->ld, ldy = args->Y->ld;

    for (int64_t i = 0; i < A->nrow; i++)
        for (int j = 0; j < args->Y->k; j++) {
            double sum = 0, old = 0;

            if (args->alpha != 0)
                for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
                    sum += value(A, p) * x[A->col[p] * ldx + j];
            if (args->beta != 0) old = args->beta * y[i * ldy + j];
            y[i * ldy + j] = (args->alpha != 0 ? args->alpha * sum : 0) + old;
        }
    return SPS_OK;
}

SPS_DEFINE(sps_kernel, spsi_kernel_spmm_ref) = {
    .name = "spmm.ref",
    .op = SPS_OP_SPMM,
    .where = SPS_HOST,
    .gives = SPS_REPRODUCIBLE | SPS_FULL_PRECISION | SPS_NAN_STAYS_IN_ROW,
    .fits = fits,
    .cost = cost,
    .plan = plan,
    .spmm = spmm,
};

static sps_status plan(sps_context *ctx, const sps_problem *p,
                       sps_plan **plan_p)
{
    return spsi_plan_new(ctx, &spsi_kernel_spmm_ref, p, sizeof(sps_plan),
                         plan_p);
}
