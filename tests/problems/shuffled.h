/* SPDX-License-Identifier: BSD-3-Clause */
/* shuffled.h - a symmetrically permuted matrix, for tests of orderings. */
#ifndef SPS_TEST_SHUFFLED_H
#define SPS_TEST_SHUFFLED_H

#include "matrix/csr.h"
#include "tests/support/fixture.h"

/* A with rows and columns permuted alike. */
static inline sps_csr *shuffled(sps_context *ctx, const sps_csr *A, int64_t step)
{
    const int64_t n = A->nrow;
    sps_csr *S = NULL;
    bool sorted;

    OK(ctx, sps_csr_create(ctx, n, n, A->nnz, SPS_F64, &S));
    for (int64_t i = 0; i < n; i++) {
        const int64_t r = i * step % n;

        S->rowptr[i + 1] = S->rowptr[i];
        for (int64_t p = A->rowptr[r]; p < A->rowptr[r + 1]; p++)
            for (int64_t c = 0; c < n; c++)
                if (c * step % n == A->col[p]) {
                    S->col[S->rowptr[i + 1]] = (int32_t)c;
                    ((double *)S->val)[S->rowptr[i + 1]++] = 1;
                }
    }
    OK(ctx, sps_csr_check(ctx, S));
    OK(ctx, spsi_csr_inspect(ctx, S, &sorted));
    return S;
}

#endif
