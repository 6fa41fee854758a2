/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_ref.c - Y = alpha A X + beta Y as one simple loop nest: the reference
 * with which the other kernels are compared.  It fits every matrix; its
 * predicted time is higher than that of every other kernel, so that it is
 * chosen only by name. */
#include "plan/kernel.h"

static double cost(const sps_problem *p)
{
    return 50 * spsi_spmm_floor(p) / p->machine->copy;
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

/* Returns d_i (product + gamma w_ij) + old + delta x_ij, for element (i, j). */
static double finish(const sps_spmm_args *args, int64_t i, int j,
                     double product, double old)
{
    const sps_epilogue *e = args->epilogue;
    const sps_block *X = args->X;

    if (e && e->W) product += e->gamma * number(X->dtype, e->W->data,
                                                i * e->W->ld + j);
    if (e && e->D) product *= ((const double *)e->D->data)[i * e->D->ld];
    product += old;
    if (e && e->delta != 0)
        product += e->delta * number(X->dtype, X->data, i * X->ld + j);
    return product;
}

static sps_status spmm(const sps_plan *plan, const sps_spmm_args *args)
{
    const sps_csr_local *A = plan->A;
    const sps_block *X = args->X, *Y = args->Y;
    double alpha = spsi_alpha(args), beta = spsi_beta(args);

    for (int64_t i = 0; i < A->nrow; i++)
        for (int j = 0; j < args->Y->k; j++) {
            double sum = 0, old = 0;

            if (alpha != 0)
                for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
                    sum += number(A->dtype, A->val, p) *
                           number(X->dtype, X->data, A->col[p] * X->ld + j);
            if (beta != 0)
                old = beta * number(Y->dtype, Y->data, i * Y->ld + j);
            put(Y->dtype, Y->data, i * Y->ld + j,
                finish(args, i, j, alpha != 0 ? alpha * sum : 0, old));
        }
    return SPS_OK;
}

SPS_DEFINE(sps_kernel, spsi_kernel_spmm_ref) = {
    .name = "spmm.ref",
    .op = SPS_OP_SPMM,
    .gives = SPS_REPRODUCIBLE | SPS_FULL_PRECISION | SPS_NAN_STAYS_IN_ROW |
             SPS_SINGLE_BLOCKS | SPS_FOR_CHECKS,
    .fuses = true,
    .cost = cost,
    .spmm = spmm,
};
