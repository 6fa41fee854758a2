/* SPDX-License-Identifier: BSD-3-Clause */
/* spmv_adaptive.cu - y = alpha A x + beta y by blocks of rows of about equal
 * work, for rows of any length.
 *
 * Greathouse and Daga, Efficient sparse matrix-vector multiplication on GPUs
 * using the CSR storage format (SC 2014), with warps instead of their
 * workgroups: the plan groups consecutive rows (kernels/formats/row_blocks.h),
 * a warp processes one block of them, and there is no synchronisation between
 * warps.
 *   stream  consecutive lanes load consecutive entries, whichever rows they
 *           belong to, and write their products to shared memory; then R
 *           lanes add a row, or the whole warp a row too long for R lanes;
 *   vector  one row: each lane has a partial sum, a tree adds them;
 *   long    a part of a row; the warp that arrives last adds the partial sums
 *           of all in a fixed order and resets the counter.
 *
 * Bytes: A once, y once, 16 for every 256 entries of the schedule, entries of x
 * again whenever the caches have evicted them.  A lane has the loads of 8
 * entries in flight, then those of their 8 entries of x.  No floating-point
 * atomics: the order of every sum is fixed by the plan. */
#include "cuda/sparse/adaptive.cuh"

#include <stdio.h>
#include <type_traits>

namespace {

/* 256 entries fill the 8 loads of each lane of a warp; a block of 128 threads
 * finishes early and makes room for the next.  Ten of them are 1280 threads
 * with 48 registers and leave half of the on-chip memory of a multiprocessor to
 * L1, which x needs. */
constexpr int threads = 128, warps = threads / 32, resident = 10;
constexpr int each = 8, size = 32 * each, most_rows = 64;

template <class I, class V, class T, class E>
__global__ void __launch_bounds__(threads, resident)
adaptive_kernel(matrix<I, V> A, blocks<T> b, schedule<T> plan, E finish)
{
    __shared__ warp_room<T, each, most_rows> room[warps];
    int64_t at = (int64_t)blockIdx.x * warps + threadIdx.x / 32;
    sps_row_block block;

    if (at >= plan.count) return; /* the whole warp returns */
    load_block(plan.block + at, &block);
    do_block(A, far_numbers<T>(b), plan, block, room[threadIdx.x / 32],
             finish);
}

sps_status spmm(const sps_plan *plan, const sps_spmm_args *args)
{
    const sps_row_plan *rows = (const sps_row_plan *)plan;
    sps_context *ctx = plan->ctx;

    return with_all_types(plan->A, args, [&](auto A, auto b) -> sps_status {
        using number = std::remove_const_t<
            std::remove_reference_t<decltype(*b.y)>>;

        adaptive_kernel<<<(unsigned)ceil_div(rows->blocks.count, warps),
                          threads, 0, spsi_cuda_state(ctx)->stream>>>(
            A, b, schedule_of<number>(rows), epilogue_of(b));
        SPS_LAUNCHED(ctx);
        return SPS_OK;
    });
}

bool fits(const sps_problem *p, const char **why_not)
{
    *why_not = "it multiplies single vectors only";
    if (p->k != 1) return false;
    *why_not = "A has 2^31 rows or more";
    return p->A->nrow <= INT32_MAX;
}

/* Returns the largest number of entries that one warp processes (`reach`).  If
 * the whole product is short, a row must not take a single warp too long; but
 * dividing a row among warps costs 1 us, so this is done only if a row is too
 * long anyway, and then with a small reach. */
int reach_of(const sps_features *f)
{
    if (f->nnz < 4000000) return f->max_length <= 1024 ? 1024 : 512;
    return f->nnz < 16000000 ? 2048 : 4096;
}

/* Predicted seconds.  Measured on an H200: 83 to 95 % of the copy bandwidth for
 * rows of 7, 27 and 81 entries.  Matrices that stay in L2 are latency-bound:
 * launch, joining the partial sums of long rows and, where x is scattered, the
 * steps along a row (fitted to 60 matrices, 7 % error). */
double cost(const sps_problem *p)
{
    const double reach = reach_of(p->f);
    const double longest = (double)p->f->max_length;
    const double chain = fmin(longest, reach) / size * step_seconds(p);
    const double joined = longest > reach ? 1.0 : 0.0;
    const double x = scattered(p), all = stream_seconds(p, 0.88) + x;

    if (stays_in_l2(p))
        return 2.6e-6 + 0.58 * all + 2.3 * chain * x / all + 0.5e-6 * joined;
    return 2.4e-6 + fmax(all, 1.25 * chain + 2e-6 * joined);
}

sps_status plan(sps_plan *super, const sps_problem *p)
{
    sps_row_plan *rows = (sps_row_plan *)super;

    rows->rule = {size, reach_of(p->f), most_rows, size};
    SPS_TRY_RETURN(spsi_cuda_enter(super->ctx));
    SPS_TRY_RETURN(spsi_cuda_row_plan_fill(rows));
    snprintf(rows->super.detail, sizeof rows->super.detail,
             "%lld blocks, %lld long rows", (long long)rows->blocks.count,
             (long long)rows->blocks.longs);
    return SPS_OK;
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_spmv_adaptive) = {
    .name = "spmv.adaptive",
    .op = SPS_OP_SPMM,
    .gives = SPS_REPRODUCIBLE | SPS_FULL_PRECISION | SPS_NAN_STAYS_IN_ROW |
             SPS_SINGLE_BLOCKS,
    .size = sizeof(sps_row_plan),
    .fits = fits,
    .cost = cost,
    .plan = plan,
    .spmm = guarded<near_only<spmm>>,
};
