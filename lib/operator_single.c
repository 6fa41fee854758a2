/* SPDX-License-Identifier: BSD-3-Clause */
/* operator_single.c - a matrix again with its values in floats, rounded to
 * nearest, the pattern that of the original; for blocks of floats or of
 * doubles.  A symmetric matrix stays symmetric.  Bytes: 4 an entry on the host,
 * and a copy in the place. */
#include "operator.h"

#include <math.h>

/* Powers of ten well inside of the range of floats, so that products with
 * vectors of moderate size stay inside as well. */
#define LARGEST 1e30
#define SMALLEST 1e-30

/* False where a value is outside of them. */
static bool narrow(const sps_context *ctx, const sps_csr *A, float *val)
{
    const int threads = ctx->threads;
    int64_t bad = 0;

#pragma omp parallel for num_threads(threads) schedule(static)                 \
    reduction(+ : bad) if (A->nnz > 100000)
    for (int64_t p = 0; p < A->nnz; p++) {
        const double a = spsi_csr_value(A, p), size = fabs(a);

        bad += !(a == 0 || (size >= SMALLEST && size <= LARGEST));
        val[p] = (float)a;
    }
    return bad == 0;
}

/* *S_p: the pattern of A with values in floats, *val_p. */
static sps_status round_csr(sps_context *ctx, const sps_csr *A, sps_csr **S_p,
                            float **val_p)
{
    float *val = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, A->nnz + 1, &val));
    SPS_REQUIRE(ctx, narrow(ctx, A, val), SPS_EUNFIT, "there are values "
                "outside of 1e-30 to 1e30, which do not serve in single "
                "precision");
    SPS_TRY(sps_csr_wrap(ctx, A->nrow, A->ncol, A->nnz, A->rowptr, A->col, val,
                         SPS_F32, SPS_HOST, SPS_BORROW, S_p));
    (*S_p)->props = A->props;
    *val_p = val;
    return SPS_OK;

fail:
    spsi_free(ctx, val);
    return st;
}

sps_status spsi_operator_single(sps_context *ctx, const sps_csr *A, int width,
                                sps_dtype blocks, const sps_options *opt,
                                sps_operator **op_p)
{
    sps_csr *S = NULL;
    float *val = NULL;
    sps_status st = SPS_OK;

    SPS_TRY(round_csr(ctx, A, &S, &val));
    SPS_TRY(spsi_operator_create(ctx, S, width, blocks, opt, op_p));
    (*op_p)->own_A = S;
    (*op_p)->own_val = val;
    return SPS_OK;

fail:
    sps_csr_destroy(ctx, &S);
    spsi_free(ctx, val);
    return st;
}

sps_status spsi_operator_single_of(const sps_operator *A,
                                   const sps_options *opt,
                                   sps_operator **op_p)
{
    sps_context *ctx = A->ctx;
    sps_operator *op = NULL;
    float *val = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, 1, &op));
    ctx->live++;
    op->ctx = ctx;
    op->n = A->n;
    op->ncol = A->ncol;
    op->width = A->width;
    op->dtype = SPS_F32;
    op->norm = -1.0;
    op->props = A->props;
    SPS_TRY(round_csr(ctx, A->A, &op->own_A, &val));
    op->own_val = val;
    op->A = op->own_A;
    op->caller_nnz = op->A->nnz;
    op->f = A->f;
    op->local = A->local;
    op->local.dtype = SPS_F32;
    op->local.val = NULL;
    SPS_TRY(spsi_operator_set_local(op));
    SPS_TRY(spsi_operator_plan(op, opt));
    *op_p = op;
    return SPS_OK;

fail:
    sps_operator_destroy(&op);
    return st;
}

sps_status spsi_operator_single_follow(const sps_csr *A, sps_operator *single)
{
    (void)narrow(single->ctx, A, single->own_val);
    return sps_operator_set_values(single, single->own_val, SPS_HOST);
}
