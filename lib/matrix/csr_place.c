/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_place.c - copies of a csr from the memory of a GPU to the host's, and
 * back. */
#include "core/backend.h"
#include "matrix/csr.h"

static size_t value_bytes(const sps_csr *A)
{
    return (size_t)A->nnz * (A->dtype == SPS_F64 ? sizeof(double)
                                                 : sizeof(float));
}

sps_status spsi_csr_download(sps_context *ctx, const sps_csr *A, sps_csr **B_p)
{
    const sps_backend *b = ctx->backend;
    sps_status st;
    sps_csr *B = NULL;

    SPS_TRY(sps_csr_create(ctx, A->nrow, A->ncol, A->nnz, A->dtype, &B));
    SPS_TRY(b->download(ctx, B->rowptr, A->rowptr,
                        (size_t)(A->nrow + 1) * sizeof *B->rowptr));
    if (A->nnz > 0) {
        SPS_TRY(b->download(ctx, B->col, A->col,
                            (size_t)A->nnz * sizeof *B->col));
        SPS_TRY(b->download(ctx, B->val, A->val, value_bytes(A)));
    }
    B->props = A->props;
    *B_p = B;
    return SPS_OK;

fail:
    sps_csr_destroy(ctx, &B);
    return st;
}

static sps_status send(sps_context *ctx, size_t bytes, const void *from,
                       void **to_p)
{
    sps_status st;

    SPS_TRY(ctx->backend->alloc(ctx, bytes, to_p));
    SPS_TRY(ctx->backend->upload(ctx, *to_p, from, bytes));
fail:
    return st;
}

sps_status spsi_csr_upload(sps_context *ctx, const sps_csr *A, sps_csr **B_p)
{
    sps_status st;
    sps_csr *B = NULL;

    SPS_TRY(SPS_NEW(ctx, 1, &B));
    ctx->live++;
    *B = (sps_csr){ .nrow = A->nrow, .ncol = A->ncol, .nnz = A->nnz,
                    .dtype = A->dtype, .place = SPS_CUDA, .own = SPS_COPY,
                    .props = A->props, .struct_size = sizeof *B };
    SPS_TRY(send(ctx, (size_t)(A->nrow + 1) * sizeof *A->rowptr, A->rowptr,
                 (void **)&B->rowptr));
    if (A->nnz > 0) {
        SPS_TRY(send(ctx, (size_t)A->nnz * sizeof *A->col, A->col,
                     (void **)&B->col));
        SPS_TRY(send(ctx, value_bytes(A), A->val, &B->val));
    }
    *B_p = B;
    return SPS_OK;

fail:
    sps_csr_destroy(ctx, &B);
    return st;
}

sps_status spsi_csr_copy_values(sps_context *ctx, const sps_csr *from,
                                sps_csr *to)
{
    return ctx->backend->copy(ctx, to->val, from->val, value_bytes(from));
}
