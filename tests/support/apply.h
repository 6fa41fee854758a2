/* SPDX-License-Identifier: BSD-3-Clause */
/* apply.h - operators applied to host arrays, for Check tests: create the
 * operator, apply it, copy the result back. */
#ifndef SPS_TEST_APPLY_H
#define SPS_TEST_APPLY_H

#include "tests/support/fixture.h"
#include "operator/operator.h"

/* alpha A X + beta Y by the operator, X and Y host arrays with ld k. */
static inline void apply(const sps_operator *op, double alpha,
                         const double *x, double beta, double *y, int k)
{
    sps_context *ctx = op->ctx;
    sps_block *X = fixture_block(ctx, op->ncol, k, x, k);
    sps_block *Y = fixture_block(ctx, op->n, k, y, k);

    OK(ctx, sps_operator_apply(op, alpha, X, beta, Y));
    OK(ctx, sps_block_get(Y, 0, k, y, k, SPS_ROW_MAJOR, SPS_HOST));
    sps_block_destroy(&X);
    sps_block_destroy(&Y);
}

static inline double *zeros(int64_t count)
{
    return calloc((size_t)count + 1, sizeof(double));
}

static inline sps_operator *operator_of(sps_context *ctx, sps_csr *A,
                                        int width)
{
    sps_operator *op = NULL;

    OK(ctx, sps_operator_csr(ctx, A, width, NULL, &op));
    return op;
}

#endif
