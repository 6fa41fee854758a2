/* SPDX-License-Identifier: BSD-3-Clause */
/* operator_csr.c - the arrays behind an operator of a csr.
 *
 *   caller's A      host, sorted     host, unsorted    device
 *   op->A           A                own sorted copy   read back (and sorted)
 *   local, host     points at op->A  points at op->A   -
 *   local, GPU      uploaded         uploaded          A's arrays in place
 *                                                      (uploaded if unsorted)
 *
 * New values never overwrite the caller's arrays: the first that come from
 * elsewhere get memory of their own. */
#include <string.h>

#include "reorder.h"

enum { ROWPTR, ROWPTR32, COL, VAL };

static size_t value_bytes(const sps_csr *A)
{
    return (size_t)A->nnz * (A->dtype == SPS_F64 ? sizeof(double)
                                                 : sizeof(float));
}

static sps_status read_back(sps_context *ctx, const sps_csr *A, sps_csr **B_p)
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

/* op->A: host arrays, rows in order. */
static sps_status take_host(sps_operator *op, sps_csr *A)
{
    sps_context *ctx = op->ctx;
    sps_status st;
    sps_csr *sorted_A = NULL;
    bool sorted;

    if (A->place == SPS_CUDA) SPS_TRY(read_back(ctx, A, &op->own_A));
    op->A = op->own_A ? op->own_A : A;
    op->caller_nnz = A->nnz;
    SPS_TRY(spsi_csr_inspect(ctx, op->A, &sorted));
    if (!sorted) {
        SPS_TRY(spsi_csr_sorted(ctx, op->A, &sorted_A, &op->order));
        sps_csr_destroy(ctx, &op->own_A);
        op->A = op->own_A = sorted_A;
    }
    op->A->props |= SPS_SORTED;
fail:
    return st;
}

/* ------------------------------------------------------------------ local */

/* Memory of the place for an array: never none. */
static sps_status take_room(sps_operator *op, int which, size_t bytes,
                            const void **to)
{
    const size_t room = bytes > 0 ? bytes : 8;
    sps_status st;
    void *p = NULL;

    SPS_TRY(op->ctx->backend->alloc(op->ctx, room, &p));
    *to = p;
    op->local_bytes[which] = room;
fail:
    return st;
}

static sps_status upload(sps_operator *op, int which, size_t bytes,
                         const void *from, const void **to)
{
    sps_status st;

    SPS_TRY(take_room(op, which, bytes, to));
    if (bytes > 0)
        SPS_TRY(op->ctx->backend->upload(op->ctx, (void *)(uintptr_t)*to, from,
                                         bytes));
fail:
    return st;
}

sps_status spsi_operator_room_local(sps_operator *op)
{
    const size_t each = spsi_dtype_size(op->local.dtype);

    return take_room(op, VAL, (size_t)op->local.nnz * each, &op->local.val);
}

static sps_status upload_offsets32(sps_operator *op)
{
    const sps_csr *A = op->A;
    sps_status st;
    int32_t *narrow = NULL;

    SPS_TRY(SPS_NEW(op->ctx, A->nrow + 1, &narrow));
    for (int64_t i = 0; i <= A->nrow; i++) narrow[i] = (int32_t)A->rowptr[i];
    SPS_TRY(upload(op, ROWPTR32, (size_t)(A->nrow + 1) * sizeof *narrow,
                   narrow, (const void **)&op->local.rowptr32));
fail:
    spsi_free(op->ctx, narrow);
    return st;
}

/* Offsets go up in one width, the narrow one when it holds them. */
static sps_status upload_all(sps_operator *op)
{
    const sps_csr *A = op->A;
    sps_status st = SPS_OK;

    if (A->nnz > INT32_MAX)
        SPS_TRY(upload(op, ROWPTR, (size_t)(A->nrow + 1) * sizeof *A->rowptr,
                       A->rowptr, (const void **)&op->local.rowptr));
    SPS_TRY(upload(op, COL, (size_t)A->nnz * sizeof *A->col, A->col,
                   (const void **)&op->local.col));
    SPS_TRY(upload(op, VAL, value_bytes(A), A->val,
                   (const void **)&op->local.val));
fail:
    return st;
}

static void point_at(sps_operator *op, const sps_csr *A)
{
    op->local.rowptr = A->rowptr;
    op->local.col = A->col;
    op->local.val = A->val;
}

sps_status spsi_operator_take_csr(sps_operator *op, sps_csr *A)
{
    const bool host = op->ctx->backend->place == SPS_HOST;
    sps_status st;

    SPS_TRY(take_host(op, A));
    op->local = (sps_csr_local){ .nrow = A->nrow, .ncol = A->ncol,
                                 .nnz = op->A->nnz, .dtype = A->dtype };
    if (host)
        point_at(op, op->A);
    else if (A->place == SPS_CUDA && !op->order)
        point_at(op, A);
    else
        SPS_TRY(upload_all(op));
    if (!host && op->A->nnz <= INT32_MAX) SPS_TRY(upload_offsets32(op));
fail:
    return st;
}

static void release(sps_operator *op, int which, const void *p)
{
    if (op->local_bytes[which] > 0)
        op->ctx->backend->release(op->ctx, (void *)(uintptr_t)p,
                                  op->local_bytes[which]);
    op->local_bytes[which] = 0;
}

void spsi_operator_drop_csr(sps_operator *op)
{
    release(op, ROWPTR, op->local.rowptr);
    release(op, ROWPTR32, op->local.rowptr32);
    release(op, COL, op->local.col);
    release(op, VAL, op->local.val);
    sps_csr_destroy(op->ctx, &op->own_A);
    spsi_free(op->ctx, op->own_val);
    spsi_free(op->ctx, op->order);
    op->own_val = op->order = NULL;
    op->A = NULL;
}

/* ------------------------------------------------------------- new values */

/* Makes op->A a csr whose values are ours to write. */
static sps_status own_values(sps_operator *op)
{
    const sps_csr *A = op->A;
    sps_status st = SPS_OK;

    if (op->own_A) return SPS_OK;
    if (!op->own_val)
        SPS_TRY(spsi_new(op->ctx, value_bytes(A), &op->own_val));
    SPS_TRY(sps_csr_wrap(op->ctx, A->nrow, A->ncol, A->nnz, A->rowptr, A->col,
                         A->nnz > 0 ? op->own_val : NULL, A->dtype, SPS_HOST,
                         SPS_BORROW, &op->own_A));
    op->own_A->props = A->props;
    op->A = op->own_A;
fail:
    return st;
}

/* Sums the caller's entries into the sorted copy, in the caller's order. */
static void scatter(sps_operator *op, const void *val)
{
    sps_csr *A = op->own_A;

    memset(A->val, 0, value_bytes(A));
    if (A->dtype == SPS_F64)
        for (int64_t p = 0; p < op->caller_nnz; p++)
            ((double *)A->val)[op->order[p]] += ((const double *)val)[p];
    else
        for (int64_t p = 0; p < op->caller_nnz; p++)
            ((float *)A->val)[op->order[p]] += ((const float *)val)[p];
}

/* op->A->val = val, which lies on the host in the caller's order. */
static sps_status set_host(sps_operator *op, const void *val)
{
    sps_status st = SPS_OK;

    if (val == op->A->val) return SPS_OK;    /* changed where they are */
    SPS_TRY(own_values(op));
    if (op->order)
        scatter(op, val);
    else if (op->A->nnz > 0)
        memcpy(op->A->val, val, value_bytes(op->A));
fail:
    return st;
}

/* The same for values on the device. */
static sps_status set_device(sps_operator *op, const void *val)
{
    const sps_csr *A = op->A;
    const size_t bytes = (size_t)op->caller_nnz *
                         (A->dtype == SPS_F64 ? sizeof(double)
                                              : sizeof(float));
    sps_status st;
    void *host = NULL;

    if (bytes == 0) return SPS_OK;
    if (!op->order) {
        SPS_TRY(own_values(op));
        return op->ctx->backend->download(op->ctx, op->A->val, val, bytes);
    }
    SPS_TRY(spsi_new(op->ctx, bytes, &host));
    SPS_TRY(op->ctx->backend->download(op->ctx, host, val, bytes));
    scatter(op, host);
fail:
    spsi_free(op->ctx, host);
    return st;
}

/* local.val = op->A->val, unless val already stands in local. */
static sps_status set_local(sps_operator *op, const void *val)
{
    sps_context *ctx = op->ctx;
    sps_status st = SPS_OK;

    if (ctx->backend->place == SPS_HOST) {
        op->local.val = op->A->val;
        return SPS_OK;
    }
    if (op->A->nnz == 0 || val == op->local.val) return SPS_OK;
    if (op->local_bytes[VAL] == 0)           /* the caller's: leave it alone */
        return upload(op, VAL, value_bytes(op->A), op->A->val,
                      &op->local.val);
    SPS_TRY(ctx->backend->upload(ctx, (void *)(uintptr_t)op->local.val,
                                 op->A->val, value_bytes(op->A)));
fail:
    return st;
}

static sps_status refresh(sps_plan *plan)
{
    return plan && plan->kernel->refresh ? plan->kernel->refresh(plan)
                                         : SPS_OK;
}

sps_status spsi_operator_refresh(sps_operator *op)
{
    sps_status st;

    op->norm = -1.0;
    op->version++;
    SPS_TRY(refresh(op->block));
    if (op->vector != op->block) SPS_TRY(refresh(op->vector));
    if (op->plain != op->block) SPS_TRY(refresh(op->plain));
    SPS_TRY(refresh(op->sddmm));
fail:
    return st;
}

sps_status spsi_operator_set_local(sps_operator *op)
{
    return set_local(op, op->A->val);
}

sps_status sps_operator_set_values(sps_operator *op, const void *val,
                                   sps_place place)
{
    sps_context *ctx = op ? op->ctx : NULL;
    sps_status st = SPS_OK;

    SPS_REQUIRE(ctx, op, SPS_EINVAL, "sps_operator_set_values: NULL operator");
    SPS_REQUIRE(ctx, !op->apply, SPS_EUNFIT,
                "an operator that is a callback has no values to set");
    SPS_REQUIRE(ctx, val || op->caller_nnz == 0, SPS_EINVAL,
                "sps_operator_set_values: val is NULL");
    SPS_REQUIRE(ctx, place == SPS_HOST || (place == SPS_CUDA &&
                ctx->backend->place == SPS_CUDA), SPS_EINVAL,
                "sps_operator_set_values: values are on the host or in the "
                "place of the context");
    SPS_TRY(place == SPS_HOST ? set_host(op, val) : set_device(op, val));
    SPS_TRY(set_local(op, val));
    SPS_TRY(spsi_operator_refresh(op));
    SPS_TRY(spsi_operator_reorder_values(op));
fail:
    return st;
}
