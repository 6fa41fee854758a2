/* SPDX-License-Identifier: BSD-3-Clause */
/* kernel_product.h - one product with integer data by a rig's plan, compared
 * with the oracle; for Check tests of formats. */
#ifndef SPS_TEST_PRODUCT_H
#define SPS_TEST_PRODUCT_H

#include "tests/support/image.h"
#include "tests/support/oracle.h"
#include "tests/support/rig.h"

/* Y = -2 A X + beta Y by the rig's plan must equal the oracle bit for bit.  Row
 * 0 of X, which no row of the matrix may reference, is NaN. */
static inline void try_product(const rig *r, int k, int layout, double beta)
{
    sps_context *ctx = r->ctx;
    const sps_csr *A = r->A;
    double *right = calloc((size_t)(A->nrow * k), sizeof *right);
    sps_spmm_args args = { .alpha = -2.0, .beta = beta };
    image X, Y;
    int64_t at;

    image_open(&X, ctx, A->ncol, k, layout, 3, ZOO_INTEGER);
    image_open(&Y, ctx, A->nrow, k, layout, beta == 0.0 ? 0 : 5, ZOO_INTEGER);
    for (int j = 0; j < k; j++) X.data[j] = NAN;
    image_upload(&X);
    for (int64_t i = 0; i < A->nrow; i++)
        memcpy(right + i * k, Y.data + i * Y.ld, (size_t)k * sizeof *right);
    oracle_spmm(A, args.alpha, X.data, X.ld, beta, right, k, k, NULL);
    args.X = X.B;
    args.Y = Y.B;
    OK(ctx, r->plan->kernel->spmm(r->plan, &args));
    OK(ctx, ctx->backend->sync(ctx));
    image_read(&Y, r->what);
    at = oracle_differs(A->nrow, k, Y.out, Y.ld, right, k);
    ck_assert_msg(at < 0, "k %d layout %d beta %g: row %lld column %lld is "
                  "%.17g, not %.17g", k, layout, beta, (long long)(at / k),
                  (long long)(at % k), Y.out[at / k * Y.ld + at % k],
                  right[at]);
    image_close(&X);
    image_close(&Y);
    free(right);
}

#endif
