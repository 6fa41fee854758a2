/* SPDX-License-Identifier: BSD-3-Clause */
/* matrix.c - operations on the matrix that preconditioners are built from:
 * the backend's body where there is one, else the CPU's. */
#include "precond.h"

#include <math.h>

sps_status spsi_matrix_diagonal(const sps_operator *A, double *diagonal)
{
    const sps_backend *b = A->ctx->backend;

    if (!b->csr_diagonal) b = &spsi_backend_cpu;
    return b->csr_diagonal(A->ctx, A->A, diagonal);
}

sps_status spsi_matrix_block_inverse(const sps_operator *A,
                                     const int64_t *start, int64_t blocks,
                                     double *inverse, int64_t *bad)
{
    const sps_backend *b = A->ctx->backend;

    if (!b->csr_block_inverse) b = &spsi_backend_cpu;
    return b->csr_block_inverse(A->ctx, A->A, start, blocks, inverse, bad);
}

sps_status spsi_matrix_ilu0(sps_context *ctx, sps_csr *F,
                            const int64_t *diagonal, const sps_levels *levels,
                            bool positive, int64_t *bad)
{
    const sps_backend *b = ctx->backend;

    if (!b->csr_ilu0) b = &spsi_backend_cpu;
    return b->csr_ilu0(ctx, F, diagonal, levels, positive, bad);
}

sps_status spsi_matrix_fsai(sps_context *ctx, const sps_csr *A, sps_csr *G,
                            double *v, bool symmetric, int64_t *bad)
{
    const sps_backend *b = ctx->backend;

    if (!b->csr_fsai) b = &spsi_backend_cpu;
    return b->csr_fsai(ctx, A, G, v, symmetric, bad);
}

sps_status spsi_matrix_ilut(sps_context *ctx, const sps_csr *B,
                            const sps_ilut_options *o, sps_ilut_result *r)
{
    const sps_backend *b = ctx->backend;

    if (!b->csr_ilut) b = &spsi_backend_cpu;
    return b->csr_ilut(ctx, B, o, r);
}

sps_status spsi_matrix_inverse_diagonal(const sps_operator *A, double *inverse,
                                        int64_t *zero, int64_t *negative)
{
    const int threads = A->ctx->threads;
    int64_t zeros = 0, below = 0;
    sps_status st = SPS_OK;

    SPS_TRY(spsi_matrix_diagonal(A, inverse));
#pragma omp parallel for schedule(static) num_threads(threads)                 \
    reduction(+ : zeros, below) if (A->n > 100000)
    for (int64_t i = 0; i < A->n; i++) {
        double d = inverse[i];

        zeros += d == 0;
        below += d < 0;
        inverse[i] = d == 0 || !isfinite(1 / d) ? 1 : 1 / fabs(d);
    }
    *zero = zeros;
    *negative = below;
fail:
    return st;
}
