/* SPDX-License-Identifier: BSD-3-Clause */
/* spmv_cusparse_sell.cu - the SpMV of cuSPARSE on sliced ELL, so that
 * comparisons with the best kernel of cuSPARSE include this format.
 *
 * A slice has 32 rows; entry j of its row r is at start + 32 j + r.  Rows
 * shorter than the longest of their slice, also those past the last row, are
 * padded with column -1.  That SELL_ALG1 is reproducible was observed (12.6.3
 * on an H200), and tests/conform/kernels/conform_kernels_bits.c tests it.
 *
 * Bytes: for each slice 32 times its longest row, 12 bytes each in double
 * precision. */
#include "cuda/vendor/cusparse_spmv.cuh"
#include "cuda/base/scan.h"

#include <stdio.h>

namespace {

constexpr int height = 32;
/* Largest number of stored slots per entry at which the kernel is a candidate,
 * and at which it can be requested by name. */
constexpr double slots_to_bid = 1.6, slots_by_name = 5.0;

struct sell_plan {
    vector_plan vendor;
    int64_t slices, slots;
    int32_t *start;          /* offset of the first slot of each slice, slices +
                                1 numbers */
    int32_t *column;         /* column of each slot, -1 for padding */
    void *val;
};

bool fits(const sps_problem *p, const char **why_not)
{
    const double most = p->pinned ? slots_by_name : slots_to_bid;
    double slots;

    if (!single_fits(p, why_not)) return false;
    slots = (double)p->f->padded32;
    *why_not = "slices of 32 rows would hold too much padding";
    return p->f->nnz > 0 && slots <= most * (double)p->f->nnz &&
           slots <= (double)INT32_MAX;
}

/* ------------------------------------------------------------- the arrays */

/* count[s]: number of slots of slice s; one warp per slice. */
__global__ void __launch_bounds__(256)
count_slots(const int32_t *__restrict__ rowptr, int64_t nrow, int64_t slices,
            int32_t *count)
{
    int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;
    int length = i < nrow ? rowptr[i + 1] - rowptr[i] : 0;
    int most = __reduce_max_sync(~0u, length);

    if (i % height == 0 && i / height < slices)
        count[i / height] = most * height;
}

/* Writes columns and values of the slices, or only values if `column` is NULL;
 * one thread per row. */
template <class T>
__global__ void __launch_bounds__(256)
fill_slices(const int32_t *__restrict__ rowptr, const int32_t *__restrict__ col,
            const T *__restrict__ from, int64_t nrow, int64_t slices,
            const int32_t *__restrict__ start, int32_t *column, T *val)
{
    int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x, s = i / height;

    if (s >= slices) return;
    int64_t at = start[s] + i % height;
    int p = i < nrow ? rowptr[i] : 0, end = i < nrow ? rowptr[i + 1] : 0;

    for (; at < start[s + 1]; at += height, p++) {
        if (column) column[at] = p < end ? col[p] : -1;
        val[at] = p < end ? from[p] : T(0);
    }
}

sps_status fill(const sell_plan *s, int32_t *column)
{
    sps_context *ctx = s->vendor.super.ctx;
    const sps_csr_local *A = s->vendor.super.A;
    unsigned grid = (unsigned)ceil_div(s->slices * height, 256);

    if (A->dtype == SPS_F64)
        return run_kernel(ctx, grid, 256, fill_slices<double>, A->rowptr32,
                          A->col, (const double *)A->val, A->nrow, s->slices,
                          s->start, column, (double *)s->val);
    return run_kernel(ctx, grid, 256, fill_slices<float>, A->rowptr32, A->col,
                      (const float *)A->val, A->nrow, s->slices, s->start,
                      column, (float *)s->val);
}

/* Computes s->start and s->slots by counting and prefix sums. */
sps_status count(sell_plan *s, int32_t *counts, int64_t *sums)
{
    sps_context *ctx = s->vendor.super.ctx;
    const sps_csr_local *A = s->vendor.super.A;

    SPS_TRY_RETURN(run_items(ctx, s->slices * height, count_slots, A->rowptr32,
                             A->nrow, s->slices, counts));
    SPS_TRY_RETURN(spsi_cuda_scan(ctx, counts, s->slices, sums));
    SPS_TRY_RETURN(download(ctx, 1, sums + s->slices, &s->slots));
    return narrow_offsets(&s->vendor.super, sums, s->slices + 1, &s->start);
}

sps_status make_slices(sell_plan *s)
{
    sps_plan *super = &s->vendor.super;
    holder work(super->ctx);
    int32_t *counts;
    int64_t *sums;

    s->slices = ceil_div(super->A->nrow, height);
    SPS_TRY_RETURN(work.take(s->slices, &counts));
    SPS_TRY_RETURN(work.take(s->slices + 1, &sums));
    SPS_TRY_RETURN(count(s, counts, sums));
    SPS_TRY_RETURN(plan_take(super, s->slots, &s->column));
    SPS_TRY_RETURN(spsi_plan_take(
        super, (size_t)s->slots * spsi_dtype_size(super->A->dtype), &s->val));
    return fill(s, s->column);
}

/* --------------------------------------------------------------------- plan */

sps_status plan(sps_plan *super, const sps_problem *p)
{
    const sps_csr_local *A = p->local;
    sell_plan *s = (sell_plan *)super;
    vectors d;

    SPS_TRY_RETURN(vector_room(&s->vendor, &d));
    SPS_TRY_RETURN(make_slices(s));
    SPS_CUSPARSE(super->ctx, cusparseCreateSlicedEll(
                          &s->vendor.A, A->nrow, A->ncol, A->nnz, s->slots,
                          height, s->start, s->column, s->val,
                          CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                          CUSPARSE_INDEX_BASE_ZERO, number_type(A->dtype)));
    SPS_TRY_RETURN(vector_buffer(&s->vendor, CUSPARSE_SPMV_SELL_ALG1, &d));
    snprintf(super->detail, sizeof super->detail,
             "%.2f slots an entry", (double)s->slots / (double)A->nnz);
    return SPS_OK;
}

sps_status refresh(sps_plan *plan)
{
    SPS_TRY_RETURN(spsi_cuda_enter(plan->ctx));
    return fill((const sell_plan *)plan, NULL);
}

double cost(const sps_problem *p)
{
    const double slots = (double)p->f->padded32 / (double)p->f->nnz;

    return 4e-6 + stream_seconds(p, 0.75) * slots + scattered(p);
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_spmv_cusparse_sell) = {
    .name = "spmv.cusparse_sell",
    .op = SPS_OP_SPMM,
    .gives = SPS_REPRODUCIBLE | SPS_FULL_PRECISION | SPS_VENDOR |
             SPS_SINGLE_BLOCKS,
    .size = sizeof(sell_plan),
    .fits = fits,
    .cost = cost,
    .plan = plan,
    .spmm = guarded<vector_spmm>,
    .refresh = refresh,
    .destroy = vector_destroy,
};
