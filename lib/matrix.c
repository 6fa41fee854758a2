/* SPDX-License-Identifier: BSD-3-Clause */
/* matrix.c - operations on the matrix that preconditioners are built from:
 * the backend's body where there is one, else the CPU's. */
#include "precond.h"

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

sps_status spsi_reserve(sps_context *ctx, int64_t n, int k)
{
    return ctx->backend->reserve(ctx, n, k);
}
