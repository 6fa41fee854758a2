/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_place.c - copies of a csr from the memory of a GPU to the host's, and
 * back. */
#include "core/backend.h"
#include "core/team.h"
#include "matrix/csr.h"

enum { PAGE = 4096, LARGE = 1 << 24 };

static size_t value_bytes(const sps_csr *A)
{
    return (size_t)A->nnz * (A->dtype == SPS_F64 ? sizeof(double)
                                                 : sizeof(float));
}

static void clear_pages(void *data, int64_t first, int64_t last)
{
    volatile char *p = data;

    for (int64_t i = first; i < last; i++) p[i * PAGE] = 0;
}

/* Copies to an array that has been cleared.  The pages of a large one do not
 * exist yet: made by all threads first, they cost less than one by one within
 * the copy of a driver (H200: 10.3 GB took 9.3 s). */
static sps_status receive(sps_context *ctx, void *to, const void *from,
                          size_t bytes)
{
    if (bytes >= LARGE)
        spsi_team_run(ctx, (int64_t)(bytes / PAGE), (int64_t)(bytes / 4),
                      clear_pages, to);
    return ctx->backend->download(ctx, to, from, bytes);
}

sps_status spsi_csr_download(sps_context *ctx, const sps_csr *A, sps_csr **B_p)
{
    sps_status st;
    sps_csr *B = NULL;

    SPS_TRY(sps_csr_create(ctx, A->nrow, A->ncol, A->nnz, A->dtype, &B));
    SPS_TRY(receive(ctx, B->rowptr, A->rowptr,
                    (size_t)(A->nrow + 1) * sizeof *B->rowptr));
    if (A->nnz > 0) {
        SPS_TRY(receive(ctx, B->col, A->col, (size_t)A->nnz * sizeof *B->col));
        SPS_TRY(receive(ctx, B->val, A->val, value_bytes(A)));
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
