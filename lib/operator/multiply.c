/* SPDX-License-Identifier: BSD-3-Clause */
/* multiply.c - products and transposes of sparse matrices for the caller.  The
 * matrices are checked, and replaced by sorted copies for the call if their
 * rows are not sorted. */
#include "core/abi.h"
#include "operator/operator_matrix.h"

/* The matrix of an argument as the operations need it. */
typedef struct argument {
    const sps_csr *use;
    sps_csr *own;             /* the sorted copy, or NULL */
} argument;

static sps_status take_host(sps_context *ctx, const sps_csr *A, argument *a)
{
    sps_status st;
    bool sorted;

    SPS_TRY(spsi_csr_inspect(ctx, A, &sorted));
    if (!sorted) SPS_TRY(spsi_csr_sorted(ctx, A, &a->own, NULL));
fail:
    return st;
}

/* Creates a sorted copy on the GPU, by sorting in host memory. */
static sps_status sort_device(sps_context *ctx, const sps_csr *A,
                              sps_csr **B_p)
{
    sps_status st;
    sps_csr *mixed = NULL, *sorted = NULL;

    SPS_TRY(spsi_csr_download(ctx, A, &mixed));
    SPS_TRY(spsi_csr_sorted(ctx, mixed, &sorted, NULL));
    SPS_TRY(spsi_csr_upload(ctx, sorted, B_p));
fail:
    sps_csr_destroy(ctx, &mixed);
    sps_csr_destroy(ctx, &sorted);
    return st;
}

static sps_status take_device(sps_context *ctx, const char *call,
                              const sps_csr *A, argument *a)
{
    const sps_backend *b = ctx->backend;
    sps_status st;
    int64_t bad;
    bool sorted;

    SPS_REQUIRE(ctx, A->place == b->place, SPS_EINVAL,
                "%s: a matrix on the GPU needs a context on the GPU", call);
    SPS_REQUIRE(ctx, b->csr_inspect && b->csr_multiply && b->csr_transpose,
                SPS_EUNFIT, "%s: the matrix is on the GPU: copy it to host "
                "memory", call);
    if (A->props & SPS_SORTED) return SPS_OK;
    SPS_TRY(b->csr_inspect(ctx, A, &bad, &sorted));
    SPS_REQUIRE(ctx, bad < 0, SPS_EMATRIX, "%s: row %lld (counted from 0) of "
                "a matrix on the GPU: its offsets fall or do not end at %lld, "
                "or a column is outside 0 .. %lld", call, (long long)bad,
                (long long)A->nnz, (long long)A->ncol - 1);
    if (!sorted) SPS_TRY(sort_device(ctx, A, &a->own));
fail:
    return st;
}

static sps_status take(sps_context *ctx, const char *call, const sps_csr *A,
                       argument *a)
{
    sps_status st;

    SPS_TRY(spsi_abi_csr(ctx, call, A));
    SPS_TRY(spsi_csr_complete(ctx, call, A));
    SPS_TRY(A->place == SPS_HOST ? take_host(ctx, A, a)
                                 : take_device(ctx, call, A, a));
    a->use = a->own ? a->own : A;
fail:
    return st;
}

sps_status sps_csr_multiply(sps_context *ctx, const sps_csr *A,
                            const sps_csr *B, sps_csr **C_p)
{
    argument a = { 0 }, b = { 0 };
    sps_status st;

    SPS_REQUIRE(ctx, ctx && A && B && C_p, SPS_EINVAL,
                "sps_csr_multiply: NULL argument");
    SPS_TRY(take(ctx, "sps_csr_multiply", A, &a));
    if (B == A)
        b.use = a.use;
    else
        SPS_TRY(take(ctx, "sps_csr_multiply", B, &b));
    SPS_REQUIRE(ctx, A->ncol == B->nrow, SPS_ESHAPE,
                "sps_csr_multiply: the first matrix has %lld columns, the "
                "second one %lld rows: they must be equal",
                (long long)A->ncol, (long long)B->nrow);
    SPS_REQUIRE(ctx, A->place == B->place, SPS_EINVAL, "sps_csr_multiply: one "
                "matrix is on the host, the other one on the GPU");
    SPS_TRY(spsi_matrix_multiply(ctx, a.use, b.use, C_p));
fail:
    sps_csr_destroy(ctx, &a.own);
    sps_csr_destroy(ctx, &b.own);
    return st;
}

sps_status sps_csr_transpose(sps_context *ctx, const sps_csr *A, sps_csr **T_p)
{
    argument a = { 0 };
    sps_status st;

    SPS_REQUIRE(ctx, ctx && A && T_p, SPS_EINVAL,
                "sps_csr_transpose: NULL argument");
    SPS_TRY(take(ctx, "sps_csr_transpose", A, &a));
    SPS_REQUIRE(ctx, A->nrow <= INT32_MAX, SPS_EMATRIX,
                "sps_csr_transpose: %lld rows would become columns, of which "
                "at most %d are possible", (long long)A->nrow, INT32_MAX);
    SPS_TRY(A->place == SPS_HOST
                ? spsi_csr_transpose(ctx, a.use, T_p)
                : ctx->backend->csr_transpose(ctx, a.use, T_p));
    (*T_p)->props |= SPS_SORTED;
fail:
    sps_csr_destroy(ctx, &a.own);
    return st;
}
