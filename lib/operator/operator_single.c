/* SPDX-License-Identifier: BSD-3-Clause */
/* operator_single.c - a matrix with its values rounded to single precision and
 * the pattern of the original; for blocks of floats or of doubles.  A symmetric
 * matrix stays symmetric.
 *
 * spsi_operator_single rounds where A lies: on the host 4 bytes an entry there
 * and a copy on the device.  In device memory, where spsi_operator_single_of
 * rounds on a GPU, it takes 20 bytes of traffic an entry, no host memory, no
 * transfer. */
#include "operator/operator_ranks.h"

#include <math.h>
#include <string.h>

#include "core/abi.h"
#include "core/backend.h"
#include "block/single.h"
#include "core/team.h"

/* Well inside the range of floats, so that products with vectors of moderate
 * size are inside as well. */
#define LARGEST 1e30
#define SMALLEST 1e-30

typedef struct job {
    const sps_csr *A;
    float *val;
    int64_t bad;
} job;

static void narrow_values(void *data, int64_t first, int64_t last)
{
    job *j = data;
    int64_t bad = 0;

    for (int64_t p = first; p < last; p++) {
        const double a = spsi_csr_value(j->A, p), size = fabs(a);

        bad += !(a == 0 || (size >= SMALLEST && size <= LARGEST));
        j->val[p] = (float)a;
    }
    spsi_team_add(&j->bad, bad);
}

/* Rounds the values of A to val; returns false if the magnitude of one is
 * neither 0 nor within SMALLEST .. LARGEST. */
static bool narrow(sps_context *ctx, const sps_csr *A, float *val)
{
    job j = { A, val, 0 };

    spsi_team_run(ctx, A->nnz, A->nnz, narrow_values, &j);
    return j.bad == 0;
}

sps_status spsi_operator_fits_single(sps_context *ctx, double largest)
{
    if (largest == 0 || (largest >= SMALLEST && largest <= LARGEST))
        return SPS_OK;
    return spsi_fail(ctx, SPS_EUNFIT, "values outside of 1e-30 to 1e30 are "
                     "not suitable for single precision");
}

/* Rounds the values of A to val; EUNFIT, of a matrix over several processes on
 * all, if they are not suitable for single precision. */
static sps_status round_here(sps_context *ctx, const sps_csr *A, float *val)
{
    bool bad = !narrow(ctx, A, val);
    sps_status st = SPS_OK;

    if (spsi_abi_csr_rows(A)) SPS_TRY(spsi_comm_any(ctx, bad, &bad));
    if (bad) SPS_TRY(spsi_operator_fits_single(ctx, NAN));
fail:
    return st;
}

/* Wraps the pattern of A with other values. */
static sps_status wrap(sps_context *ctx, const sps_csr *A, void *val,
                       sps_dtype dtype, sps_csr **S_p)
{
    sps_status st;

    if (!spsi_abi_csr_rows(A))
        return sps_csr_wrap(ctx, A->nrow, A->ncol, A->nnz, A->rowptr, A->col,
                            val, dtype, SPS_HOST, SPS_BORROW, S_p);
    SPS_TRY(SPS_NEW(ctx, 1, S_p));
    ctx->live++;
    **S_p = (sps_csr){ .nrow = A->nrow, .ncol = A->ncol, .nnz = A->nnz,
                       .rowptr = A->rowptr, .val = val, .dtype = dtype,
                       .place = SPS_HOST, .own = SPS_BORROW,
                       .struct_size = sizeof **S_p, .first = A->first,
                       .whole = A->whole, .global = A->global };
fail:
    return st;
}

/* Creates a csr in host memory with the pattern of A and a copy of its values,
 * *val_p, rounded if dtype is single precision. */
static sps_status copy_csr(sps_context *ctx, const sps_csr *A, sps_dtype dtype,
                           sps_csr **S_p, void **val_p)
{
    void *val = NULL;
    sps_status st;

    SPS_TRY(spsi_new_array(ctx, A->nnz + 1, spsi_dtype_size(dtype), &val));
    if (dtype == SPS_F64) memcpy(val, A->val, spsi_csr_value_bytes(A));
    else SPS_TRY(round_here(ctx, A, val));
    SPS_TRY(wrap(ctx, A, val, dtype, S_p));
    (*S_p)->props = A->props;
    *val_p = val;
    return SPS_OK;

fail:
    spsi_free(ctx, val);
    return st;
}

/* ------------------------------------------------------------ device memory */

enum { ACROSS = 16 };

/* Returns elements first .. first + n k - 1 of an array in device memory as an
 * n x k block. */
static sps_block as_block(sps_context *ctx, const void *numbers,
                          sps_dtype dtype, int64_t first, int64_t n, int k)
{
    const char *data = (const char *)numbers +
                       (size_t)first * spsi_dtype_size(dtype);

    return (sps_block){ .ctx = ctx, .n = n, .k = k, .ld = k, .dtype = dtype,
                        .data = (void *)(uintptr_t)data, .width = k };
}

/* Rounds elements first .. first + n k - 1 of `from` to `to`; *largest becomes
 * the maximum of itself and their largest magnitude. */
static sps_status round_part(sps_context *ctx, const double *from, float *to,
                             int64_t first, int64_t n, int k, double *largest)
{
    const sps_block X = as_block(ctx, from, SPS_F64, first, n, k);
    sps_block Y = as_block(ctx, to, SPS_F32, first, n, k);
    double top[ACROSS];
    sps_status st = SPS_OK;

    if (n == 0 || k == 0) return SPS_OK;
    SPS_TRY(ctx->backend->maxabs(&X, top));
    for (int j = 0; j < k; j++)
        if (!isnan(*largest) && !(top[j] <= *largest)) *largest = top[j];
    SPS_TRY(spsi_copy(&X, &Y));
fail:
    return st;
}

/* Rounds n doubles to floats in device memory.  Only the largest magnitude is
 * checked: it is at least SMALLEST, and values that underflow in floats, below
 * 1e-38, are smaller than its rounding error. */
static sps_status round_there(sps_context *ctx, const double *from, float *to,
                              int64_t n)
{
    const int64_t rows = n / ACROSS;
    double largest = 0;
    sps_status st;

    SPS_TRY(round_part(ctx, from, to, 0, rows, ACROSS, &largest));
    SPS_TRY(round_part(ctx, from, to, rows * ACROSS, 1, (int)(n % ACROSS),
                       &largest));
    SPS_TRY(spsi_operator_fits_single(ctx, largest));
fail:
    return st;
}

/* Copies the values of A, in device memory, to `to`, rounded to floats unless
 * they are floats already. */
static sps_status take_there(const sps_csr *A, sps_context *ctx, void *to)
{
    if (A->dtype == SPS_F64) return round_there(ctx, A->val, to, A->nnz);
    return A->nnz > 0 ? ctx->backend->copy(ctx, to, A->val,
                                           spsi_csr_value_bytes(A))
                      : SPS_OK;
}

static sps_status take_local(sps_operator *op, const sps_csr *A)
{
    return take_there(A, op->ctx, (void *)(uintptr_t)op->local.val);
}

/* Creates an operator on the pattern of S, whose values, in device memory of
 * its own, become those of the operator. */
static sps_status take_over(sps_context *ctx, sps_csr *S, int width,
                            sps_dtype blocks, const sps_options *opt,
                            bool inner, sps_operator **op_p)
{
    const size_t bytes = spsi_dtype_size(S->dtype) * (size_t)(S->nnz + 1);
    sps_status st;

    SPS_TRY(spsi_operator_create(ctx, S, width, blocks, opt, inner, op_p));
    if ((*op_p)->local.val == S->val)
        (*op_p)->local_bytes[SPS_LOCAL_VAL] = bytes;
    else
        ctx->backend->release(ctx, S->val, bytes);
    S->val = NULL;
fail:
    return st;
}

/* Creates an operator with the values of A, which is in device memory, rounded
 * to floats there. */
static sps_status single_there(sps_context *ctx, const sps_csr *A, int width,
                               sps_dtype blocks, const sps_options *opt,
                               sps_operator **op_p)
{
    const size_t bytes = sizeof(float) * (size_t)(A->nnz + 1);
    sps_csr S = *A;
    sps_status st;

    S.val = NULL;
    S.dtype = SPS_F32;
    SPS_TRY(ctx->backend->alloc(ctx, bytes, &S.val));
    SPS_TRY(take_there(A, ctx, S.val));
    SPS_TRY(take_over(ctx, &S, width, blocks, opt, false, op_p));
    return SPS_OK;

fail:
    if (S.val) ctx->backend->release(ctx, S.val, bytes);
    return st;
}

/* ----------------------------------------------------------------- operators */

/* Leaves A and its values to the operator that was made of them.  One with a
 * copy of its own, of sorted rows or of those of one process alone, has no use
 * for them: they are freed here. */
static void leave(sps_operator *op, sps_csr *A, void *val)
{
    if (op->own_A) {
        sps_csr_destroy(op->ctx, &A);
        spsi_free(op->ctx, val);
        return;
    }
    op->own_A = A;
    op->cache->own_val = val;
}

/* Creates an operator with a copy of the values of A, in host memory, as dtype.
 * If that is SPS_F64, A has doubles itself. */
static sps_status copy_here(sps_context *ctx, const sps_csr *A, sps_dtype dtype,
                            int width, sps_dtype blocks, const sps_options *opt,
                            bool inner, sps_operator **op_p)
{
    sps_csr *S = NULL;
    void *val = NULL;
    sps_status st;

    SPS_TRY(copy_csr(ctx, A, dtype, &S, &val));
    SPS_TRY(spsi_abi_csr_rows(A)
                ? spsi_ranks_create(ctx, S, width, blocks, opt, inner, op_p)
                : spsi_operator_create(ctx, S, width, blocks, opt, inner,
                                       op_p));
    leave(*op_p, S, val);
    return SPS_OK;

fail:
    sps_csr_destroy(ctx, &S);
    spsi_free(ctx, val);
    return st;
}

sps_status spsi_operator_across(sps_context *ctx, const sps_csr *A,
                                int64_t cols, int width, sps_dtype dtype,
                                sps_operator **op_p)
{
    sps_csr *S = NULL;
    void *val = NULL;
    sps_status st;

    SPS_TRY(copy_csr(ctx, A, dtype, &S, &val));
    SPS_TRY(spsi_ranks_across(ctx, S, cols, width, dtype, op_p));
    leave(*op_p, S, val);
    return SPS_OK;

fail:
    sps_csr_destroy(ctx, &S);
    spsi_free(ctx, val);
    return st;
}

sps_status spsi_operator_single(sps_context *ctx, const sps_csr *A, int width,
                                sps_dtype blocks, const sps_options *opt,
                                sps_operator **op_p)
{
    return A->place == SPS_CUDA
               ? single_there(ctx, A, width, blocks, opt, op_p)
               : copy_here(ctx, A, SPS_F32, width, blocks, opt, false, op_p);
}

sps_status spsi_operator_valued(sps_context *ctx, sps_csr *A, int width,
                                sps_dtype dtype, sps_operator **op_p)
{
    return A->place == SPS_CUDA
               ? take_over(ctx, A, width, dtype, NULL, true, op_p)
               : copy_here(ctx, A, dtype, width, dtype, NULL, true, op_p);
}

/* Sets op->local to have the values of `from`, as floats in device memory;
 * op->own_A has the pattern of A on the host, without values. */
static sps_status values_in_place(const sps_operator *A, const sps_csr *from,
                                  sps_operator *op)
{
    sps_csr *S;
    sps_status st;

    SPS_TRY(SPS_NEW(op->ctx, 1, &op->own_A));
    op->ctx->live++;
    S = op->own_A;
    *S = *A->A;
    S->val = NULL;
    S->dtype = SPS_F32;
    S->own = SPS_BORROW;
    SPS_TRY(spsi_operator_alloc_values(op));
    SPS_TRY(take_local(op, from));
    op->cache->stale = true;
fail:
    return st;
}

/* Sets op->A to a copy in host memory of S, which has the pattern of A, with
 * values rounded to floats. */
static sps_status values_on_host(const sps_csr *S, sps_operator *op)
{
    void *val = NULL;
    sps_status st;

    SPS_TRY(copy_csr(op->ctx, S, SPS_F32, &op->own_A, &val));
    op->cache->own_val = val;
    op->A = op->own_A;
    SPS_TRY(spsi_operator_set_local(op));
fail:
    return st;
}

static bool in_place(const sps_operator *A)
{
    return A->ctx->backend->place == SPS_CUDA && A->local.dtype == SPS_F64;
}

/* Copies the hash of the entries, by which wisdom and measured choices
 * recognise a matrix. */
static sps_status take_hash(sps_operator *op, const sps_operator *A,
                            const sps_options *opt)
{
    sps_status st = SPS_OK;

    if (op->f.hash || (!opt->wisdom && (!opt->kernel ||
                                        strcmp(opt->kernel, "measure"))))
        return SPS_OK;
    SPS_TRY(spsi_operator_fetch(A));
    op->f.hash = spsi_features_hash(op->ctx, A->A);
fail:
    return st;
}

/* Creates an operator with the values of S, in device or host memory, on the
 * pattern of A. */
static sps_status create_like(const sps_operator *A, const sps_csr *S,
                              const sps_options *opt, bool inner,
                              sps_operator **op_p)
{
    sps_context *ctx = A->ctx;
    sps_operator *op = NULL;
    sps_status st;

    SPS_TRY(spsi_operator_new(ctx, &op));
    op->n = A->n;
    op->ncol = A->ncol;
    op->width = A->width;
    op->strict = A->strict;
    op->inner = inner;
    op->dtype = SPS_F32;
    op->props = S->props;
    op->f = A->f;
    op->local = A->local;
    op->local.dtype = SPS_F32;
    op->local.val = NULL;
    SPS_TRY(S->place == SPS_CUDA ? values_in_place(A, S, op)
                                 : values_on_host(S, op));
    op->A = op->own_A;
    op->caller.nnz = op->A->nnz;
    SPS_TRY(take_hash(op, A, opt));
    SPS_TRY(spsi_operator_plan(op, opt));
    *op_p = op;
    return SPS_OK;

fail:
    sps_operator_destroy(&op);
    return st;
}

/* Sets *S to the values of A where they can be rounded: in device memory, or
 * else on the host. */
static sps_status own_values_of(const sps_operator *A, sps_csr *S)
{
    sps_status st = SPS_OK;

    if (!in_place(A)) SPS_TRY(spsi_operator_fetch(A));
    *S = *A->A;
    S->place = in_place(A) ? SPS_CUDA : SPS_HOST;
    if (in_place(A)) S->val = (void *)(uintptr_t)A->local.val;
fail:
    return st;
}

sps_status spsi_operator_single_of(const sps_operator *A,
                                   const sps_options *opt,
                                   sps_operator **op_p)
{
    sps_csr S;
    sps_status st;

    SPS_TRY(own_values_of(A, &S));
    SPS_TRY(create_like(A, &S, opt, false, op_p));
fail:
    return st;
}

/* Sets new values of an operator made by create_like. */
static sps_status follow_like(const sps_csr *S, sps_operator *op)
{
    sps_status st;

    if (S->place != SPS_CUDA) return spsi_operator_single_follow(S, op);
    SPS_TRY(take_local(op, S));
    SPS_TRY(spsi_operator_refresh(op));
fail:
    return st;
}

sps_status spsi_operator_single_like(const sps_operator *A, const sps_csr *S,
                                     const sps_options *opt,
                                     sps_operator **op_p)
{
    return *op_p ? follow_like(S, *op_p) : create_like(A, S, opt, true,
                                                        op_p);
}

sps_status spsi_operator_single_follow(const sps_csr *A, sps_operator *single)
{
    void *val = single->cache->own_val;
    sps_status st;

    if (A->place == SPS_CUDA) {
        SPS_TRY(take_local(single, A));
        SPS_TRY(sps_operator_set_values(single, single->local.val, SPS_CUDA));
        return SPS_OK;
    }
    SPS_TRY(round_here(single->ctx, A, val));
    SPS_TRY(sps_operator_set_values(single, val, SPS_HOST));

fail:
    return st;
}

sps_status spsi_operator_single_of_follow(const sps_operator *A,
                                          sps_operator *single)
{
    sps_csr S;
    sps_status st;

    SPS_TRY(own_values_of(A, &S));
    SPS_TRY(follow_like(&S, single));
fail:
    return st;
}
