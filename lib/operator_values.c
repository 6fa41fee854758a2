/* SPDX-License-Identifier: BSD-3-Clause */
/* operator_values.c - new values on the old pattern.
 *
 *   from the host     into op->A, which goes up to local
 *   from the GPU      into local by one copy, or none where they stand there;
 *                     op->A is behind until somebody looks at it
 *                     (spsi_operator_fetch)
 *
 * then each plan takes those of local into its layout.  Two matrices still
 * send what lies on the GPU through the host: one whose rows were sorted into a
 * copy, and one with a reordered twin.
 *
 * The caller's arrays are never overwritten: the first values that come from
 * elsewhere get memory of our own. */
#include <string.h>

#include "reorder.h"

/* Makes op->A a csr whose values are ours to write. */
static sps_status own_values(sps_operator *op)
{
    const sps_csr *A = op->A;
    sps_status st = SPS_OK;

    if (op->own_A) return SPS_OK;
    if (!op->own_val)
        SPS_TRY(spsi_new(op->ctx, spsi_csr_value_bytes(A), &op->own_val));
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

    memset(A->val, 0, spsi_csr_value_bytes(A));
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
        memcpy(op->A->val, val, spsi_csr_value_bytes(op->A));
fail:
    return st;
}

/* op->A takes the values of local, in its order. */
static sps_status fetch(sps_operator *op)
{
    sps_status st;

    SPS_TRY(own_values(op));
    SPS_TRY(op->ctx->backend->download(op->ctx, op->A->val, op->local.val,
                                       spsi_csr_value_bytes(op->A)));
    op->behind = false;
fail:
    return st;
}

/* A cache, so op stays const to those who look. */
sps_status spsi_operator_fetch(const sps_operator *op)
{
    return op->behind ? fetch((sps_operator *)(uintptr_t)op) : SPS_OK;
}

/* Memory of our own for the values in the place: none yet, or the caller's. */
static sps_status own_room(sps_operator *op)
{
    return op->local_bytes[SPS_LOCAL_VAL] > 0 ? SPS_OK
                                              : spsi_operator_room_local(op);
}

/* Values on the host, in the caller's order. */
static sps_status set_from_host(sps_operator *op, const void *val)
{
    sps_status st;

    SPS_TRY(set_host(op, val));
    op->behind = false;
    SPS_TRY(spsi_operator_set_local(op));
fail:
    return st;
}

/* On the device, for rows that were sorted. */
static sps_status set_by_host(sps_operator *op, const void *val)
{
    const size_t bytes = (size_t)op->caller_nnz *
                         spsi_dtype_size(op->A->dtype);
    sps_status st;
    void *host = NULL;

    SPS_TRY(spsi_new_raw(op->ctx, bytes, &host));
    SPS_TRY(op->ctx->backend->download(op->ctx, host, val, bytes));
    SPS_TRY(set_from_host(op, host));
fail:
    spsi_free(op->ctx, host);
    return st;
}

/* On the device, in our order: 2 value bytes an entry, none where they
 * already stand in local. */
static sps_status set_from_device(sps_operator *op, const void *val)
{
    sps_status st = SPS_OK;

    if (op->caller_nnz == 0) return SPS_OK;
    if (op->order) return set_by_host(op, val);
    if (val != op->local.val) {
        SPS_TRY(own_room(op));
        SPS_TRY(op->ctx->backend->copy(op->ctx,
                                       (void *)(uintptr_t)op->local.val, val,
                                       spsi_csr_value_bytes(op->A)));
    }
    op->behind = true;
fail:
    return st;
}

sps_status spsi_operator_set_local(sps_operator *op)
{
    sps_context *ctx = op->ctx;
    sps_status st = SPS_OK;

    if (ctx->backend->place == SPS_HOST) {
        op->local.val = op->A->val;
        return SPS_OK;
    }
    if (op->A->nnz == 0) return SPS_OK;
    SPS_TRY(own_room(op));
    SPS_TRY(ctx->backend->upload(ctx, (void *)(uintptr_t)op->local.val,
                                 op->A->val, spsi_csr_value_bytes(op->A)));
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
    SPS_TRY(place == SPS_HOST ? set_from_host(op, val)
                              : set_from_device(op, val));
    SPS_TRY(spsi_operator_refresh(op));
    SPS_TRY(spsi_operator_reorder_values(op));
fail:
    return st;
}
