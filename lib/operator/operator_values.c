/* SPDX-License-Identifier: BSD-3-Clause */
/* operator_values.c - new values on the same pattern.
 *
 *   from the host     copied to op->A, then uploaded to local
 *   from the GPU      copied to local, or nothing if they are there already;
 *                     op->A is stale until its values are needed
 *                     (spsi_operator_fetch)
 *
 * Of a csr on a GPU op->A has no arrays at all until they are needed: the same
 * function fetches them all, 12 bytes an entry and 8 a row.
 *
 * Then each plan converts the values of local to its layout.  In two cases
 * values on the GPU are still transferred through the host: if rows were sorted
 * into a copy, and if there is a reordered operator.
 *
 * The caller's arrays are never overwritten: values from elsewhere are stored
 * in memory of the library. */
#include <string.h>

#include "operator/operator_ranks.h"
#include "operator/reorder.h"

/* Provides memory of the library for the values of op->A: that of own_A, unless
 * own_A borrows its arrays; then own_val, which is allocated once. */
static sps_status own_values(const sps_operator *op)
{
    sps_csr *A = op->own_A;
    void **own_val = &op->cache->own_val;
    sps_status st = SPS_OK;

    if (A && A->own != SPS_BORROW) return SPS_OK;
    if (!*own_val)
        SPS_TRY(spsi_new(op->ctx, spsi_csr_value_bytes(op->A), own_val));
    if (A && A->nnz > 0) A->val = *own_val;
fail:
    return st;
}

/* Makes op->A point to own_A; if there is none yet, it is created with the
 * caller's pattern and the values own_val, or, if that is NULL, the
 * caller's. */
static sps_status own_csr(sps_operator *op)
{
    const sps_csr *A = op->A;
    void *val = op->cache->own_val ? op->cache->own_val : A->val;
    sps_status st = SPS_OK;

    if (op->own_A) return SPS_OK;
    SPS_TRY(sps_csr_wrap(op->ctx, A->nrow, A->ncol, A->nnz, A->rowptr, A->col,
                         A->nnz > 0 ? val : NULL, A->dtype, SPS_HOST,
                         SPS_BORROW, &op->own_A));
    op->own_A->props = A->props;
    op->A = op->own_A;
fail:
    return st;
}

/* Adds the caller's entries to the sorted copy, in the caller's order. */
static void scatter(sps_operator *op, const void *val)
{
    sps_csr *A = op->own_A;

    memset(A->val, 0, spsi_csr_value_bytes(A));
    if (A->dtype == SPS_F64)
        for (int64_t p = 0; p < op->caller.nnz; p++)
            ((double *)A->val)[op->caller.order[p]] += ((const double *)val)[p];
    else
        for (int64_t p = 0; p < op->caller.nnz; p++)
            ((float *)A->val)[op->caller.order[p]] += ((const float *)val)[p];
}

/* op->A->val = val, from host memory in the caller's order. */
static sps_status set_host(sps_operator *op, const void *val)
{
    sps_status st = SPS_OK;

    if (val == op->A->val) return SPS_OK;    /* modified in place */
    SPS_TRY(own_values(op));
    SPS_TRY(own_csr(op));
    if (op->caller.order)
        scatter(op, val);
    else if (op->A->nnz > 0)
        memcpy(op->A->val, val, spsi_csr_value_bytes(op->A));
fail:
    return st;
}

/* Returns whether op->A has only its shape. */
static bool absent(const sps_operator *op)
{
    return op->A && !op->A->rowptr;
}

/* Fills in the arrays of op->A, which becomes own_A, from those of local. */
static sps_status fetch_all(const sps_operator *op)
{
    sps_csr *A = op->own_A;
    sps_csr B = *A;
    sps_status st;

    B.rowptr = NULL;
    B.col = NULL;
    B.val = NULL;
    SPS_TRY(SPS_NEW(op->ctx, A->nrow + 1, &B.rowptr));
    SPS_TRY(SPS_NEW(op->ctx, A->nnz, &B.col));
    SPS_TRY(spsi_new(op->ctx, spsi_csr_value_bytes(A), &B.val));
    SPS_TRY(spsi_operator_read(op, B.rowptr, op->local.rowptr,
                        (size_t)(A->nrow + 1) * sizeof *B.rowptr));
    SPS_TRY(spsi_operator_read(op, B.col, op->local.col,
                        (size_t)A->nnz * sizeof *B.col));
    SPS_TRY(spsi_operator_read(op, B.val, op->local.val,
                        spsi_csr_value_bytes(A)));
    B.own = SPS_COPY;
    *A = B;
    op->cache->stale = false;
    return SPS_OK;

fail:
    spsi_free(op->ctx, B.rowptr);
    spsi_free(op->ctx, B.col);
    spsi_free(op->ctx, B.val);
    return st;
}

sps_status spsi_operator_fetch(const sps_operator *op)
{
    sps_status st = SPS_OK;

    if (absent(op)) return fetch_all(op);
    if (!op->cache->stale) return SPS_OK;
    SPS_TRY(own_values(op));
    SPS_TRY(spsi_operator_read(op, op->A->val, op->local.val,
                               spsi_csr_value_bytes(op->A)));
    op->cache->stale = false;
fail:
    return st;
}

/* Allocates memory for the values of local, unless the library owns it
 * already. */
static sps_status own_memory(sps_operator *op)
{
    return op->local_bytes[SPS_LOCAL_VAL] > 0 ? SPS_OK
                                              : spsi_operator_alloc_values(op);
}

/* Sets values in host memory, in the caller's order. */
static sps_status set_from_host(sps_operator *op, const void *val)
{
    sps_status st;

    if (absent(op)) {
        SPS_TRY(own_memory(op));
        return spsi_operator_write(op, op->local.val, val,
                                   spsi_csr_value_bytes(op->A));
    }
    SPS_TRY(set_host(op, val));
    op->cache->stale = false;
    SPS_TRY(spsi_operator_set_local(op));
fail:
    return st;
}

/* Sets values from device memory if the rows were sorted, by way of the
 * host. */
static sps_status set_by_host(sps_operator *op, const void *val)
{
    const size_t bytes = (size_t)op->caller.nnz *
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

/* Sets values from device memory if the rows were in order: traffic of 2 values
 * an entry, or none if they are in local already. */
static sps_status set_from_device(sps_operator *op, const void *val)
{
    sps_status st = SPS_OK;

    if (op->caller.nnz == 0) return SPS_OK;
    if (op->caller.order) return set_by_host(op, val);
    SPS_TRY(own_csr(op));
    if (val != op->local.val) {
        SPS_TRY(own_memory(op));
        SPS_TRY((op->local.far ? op->ctx->backend->download
                               : op->ctx->backend->copy)(
            op->ctx, (void *)(uintptr_t)op->local.val, val,
            spsi_csr_value_bytes(op->A)));
    }
    op->cache->stale = true;
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
    SPS_TRY(own_memory(op));
    SPS_TRY(spsi_operator_write(op, op->local.val, op->A->val,
                                spsi_csr_value_bytes(op->A)));
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

    op->cache->norm = -1.0;
    op->version++;
    op->incomplete = true;
    SPS_TRY(refresh(op->block));
    if (op->vector != op->block) SPS_TRY(refresh(op->vector));
    if (op->plain != op->block) SPS_TRY(refresh(op->plain));
    SPS_TRY(refresh(op->cache->sddmm));
    op->incomplete = false;
fail:
    return st;
}

sps_status sps_operator_set_values(sps_operator *op, const void *val,
                                   sps_place place)
{
    sps_context *ctx = op ? op->ctx : NULL;
    sps_status st = SPS_OK;

    SPS_REQUIRE(ctx, op, SPS_EINVAL, "sps_operator_set_values: NULL operator");
    SPS_REQUIRE(ctx, !op->callback.apply, SPS_EUNFIT,
                "an operator that is a callback has no values to set");
    SPS_REQUIRE(ctx, val || op->caller.nnz == 0, SPS_EINVAL,
                "sps_operator_set_values: val is NULL");
    SPS_REQUIRE(ctx, place == SPS_HOST || (place == SPS_CUDA &&
                ctx->backend->place == SPS_CUDA), SPS_EINVAL,
                "sps_operator_set_values: values must be in host memory or in "
                "that of the context");
    SPS_REQUIRE(ctx, !op->ranks || place == SPS_HOST, SPS_EUNFIT,
                "values of a matrix over several processes must be in host "
                "memory");
    if (op->ranks) return spsi_ranks_set_values(op, val);
    SPS_TRY(place == SPS_HOST ? set_from_host(op, val)
                              : set_from_device(op, val));
    SPS_TRY(spsi_operator_refresh(op));
    SPS_TRY(spsi_operator_reorder_values(op));
fail:
    return st;
}
