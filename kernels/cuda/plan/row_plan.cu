/* SPDX-License-Identifier: BSD-3-Clause */
/* row_plan.cu - groups rows into blocks on the device, one warp per chunk of
 * rows; the rules are those of formats/row_blocks.h, the result is the same as
 * that of tests/formats/host_row_blocks.c.
 *
 * A warp holds the offsets of 32 rows.  Each lane tests whether its row i still
 * fits the block that began at row r; the first lane for which it does not
 * closes the block.  The same offsets are used for the following blocks.  One
 * pass counts, a thread block computes the prefix sums over the chunks, another
 * pass writes. */
#include "cuda/plan/row_plan.h"
#include "cuda/base/csr_view.cuh"
#include "cuda/plan/plan_memory.cuh"

namespace {

/* The offsets of the rows base .. base + 31 and of their ends, one row per
 * lane. */
template <class I> struct window {
    const I *__restrict__ ptr;
    int64_t nrow, base;
    I begin, end;

    __device__ __forceinline__ void move(int64_t to)
    {
        int64_t i = to + threadIdx.x % 32;

        base = to;
        begin = ptr[i < nrow ? i : nrow];
        end = ptr[i + 1 < nrow ? i + 1 : nrow];
    }
    __device__ __forceinline__ I begin_of(int64_t i) const
    {
        return __shfl_sync(all_lanes, begin, (int)(i - base));
    }
    __device__ __forceinline__ I end_of(int64_t i) const
    {
        return __shfl_sync(all_lanes, end, (int)(i - base));
    }
    /* Returns the row after the last row of the block that begins at row r with
     * entry `first`; the window advances until it contains that row. */
    __device__ __forceinline__ int64_t close(int64_t r, I first, int64_t last,
                                             const sps_row_rule &rule)
    {
        for (;; move(base + 32)) {
            int64_t i = base + threadIdx.x % 32;
            bool goes = i <= r ||
                        (i < last && i - r < rule.rows &&
                         begin - first < rule.size &&
                         end - first <= rule.size && end - begin <= rule.alone);
            unsigned stop = ~__ballot_sync(all_lanes, goes);

            if (stop) return base + __ffs((int)stop) - 1;
        }
    }
};

template <bool WRITE, class I>
__global__ void __launch_bounds__(128)
group(const I *__restrict__ ptr, int64_t nrow, sps_row_rule rule,
      sps_row_tally *tally, sps_row_blocks b)
{
    int64_t chunk = ((int64_t)blockIdx.x * 128 + threadIdx.x) / 32;
    int64_t r = chunk * SPS_ROW_CHUNK, last = r + SPS_ROW_CHUNK, end;
    int lane = (int)threadIdx.x % 32;
    window<I> see = {ptr, nrow, 0, 0, 0};
    sps_row_tally at = {};

    if (r >= nrow) return; /* the whole warp returns */
    if (last > nrow) last = nrow;
    if (WRITE) at = tally[chunk];
    see.move(r);
    for (; r < last; r = end) {
        if (r == see.base + 32) see.move(r);

        I first = see.begin_of(r), length = see.end_of(r) - first;
        I entries = length;
        bool is_long = length > rule.reach;
        int64_t pieces = 1;

        end = r + 1;
        if (is_long) {
            pieces = ceil_div(length, rule.reach);
        } else if (length <= rule.alone) {
            end = see.close(r, first, last, rule);
            entries = see.begin_of(end) - first;
        }
        for (int64_t w = lane; WRITE && w < pieces; w += 32) {
            sps_row_block block = {(int64_t)first + w * rule.reach,
                                   (int32_t)r, 0};

            block.what = is_long
                ? (uint32_t)SPS_ROWS_LONG << 30 | (uint32_t)at.longs
                : spsi_row_block_what(end - r == 1 && length > 0
                                      ? SPS_ROWS_VECTOR : SPS_ROWS_STREAM,
                                      (uint32_t)(end - r), (uint32_t)entries);
            b.block[at.blocks + w] = block;
        }
        at.blocks += pieces;
        if (!is_long) continue;
        if (WRITE && lane == 0) b.part[at.longs] = at.parts;
        at.longs++;
        at.parts += pieces;
    }
    if (!WRITE && lane == 0) tally[chunk] = at;
    if (WRITE && lane == 0 && last == nrow) b.part[at.longs] = at.parts;
}

constexpr int scan_threads = 1024;

__device__ __forceinline__ void add_tally(sps_row_tally *to,
                                          const sps_row_tally &t)
{
    to->blocks += t.blocks;
    to->longs += t.longs;
    to->parts += t.parts;
}

/* Replaces tally[0 .. chunks - 1] by its exclusive prefix sums, and sets
 * tally[chunks] to the sum of all; each thread has `share` neighbours. */
__global__ void __launch_bounds__(scan_threads)
scan_tallies(sps_row_tally *tally, int64_t chunks, int64_t share)
{
    __shared__ sps_row_tally upto[scan_threads];
    const int t = (int)threadIdx.x;
    const int64_t first = min(t * share, chunks);
    const int64_t end = min(first + share, chunks);
    sps_row_tally sum = {};

    for (int64_t c = first; c < end; c++) add_tally(&sum, tally[c]);
    upto[t] = sum;
    for (int d = 1; d < scan_threads; d *= 2) {
        sps_row_tally below = {};

        __syncthreads();
        if (t >= d) below = upto[t - d];
        __syncthreads();
        add_tally(&upto[t], below);
    }
    __syncthreads();
    sum = t > 0 ? upto[t - 1] : sps_row_tally{};
    for (int64_t c = first; c < end; c++) {
        const sps_row_tally own = tally[c];

        tally[c] = sum;
        add_tally(&sum, own);
    }
    if (t == scan_threads - 1) tally[chunks] = upto[t];
}

template <bool WRITE>
sps_status pass(const sps_row_plan *plan, sps_row_tally *tally)
{
    sps_context *ctx = plan->super.ctx;
    int64_t chunks = spsi_row_blocks_chunks(plan->super.A->nrow);

    return with_types(plan->super.A, [&](auto A) -> sps_status {
        group<WRITE><<<(unsigned)ceil_div(chunks, 4), 128, 0,
                       spsi_cuda_state(ctx)->stream>>>(
            A.rowptr, A.nrow, plan->rule, tally, plan->blocks);
        SPS_LAUNCHED(ctx);
        return SPS_OK;
    });
}

/* Counts the blocks of each chunk, computes the prefix sums, allocates the
 * arrays and writes the blocks. */
sps_status fill(sps_row_plan *plan, sps_row_tally *tally, int64_t chunks)
{
    sps_plan *super = &plan->super;
    sps_context *ctx = super->ctx;
    sps_row_blocks *b = &plan->blocks;
    sps_row_tally sum;

    SPS_TRY_RETURN(pass<false>(plan, tally));
    SPS_TRY_RETURN(run_kernel(ctx, 1, scan_threads, scan_tallies, tally, chunks,
                              ceil_div(chunks, scan_threads)));
    SPS_TRY_RETURN(download(ctx, 1, tally + chunks, &sum));
    b->count = sum.blocks;
    b->longs = sum.longs;
    b->parts = sum.parts;
    SPS_TRY_RETURN(plan_take(super, b->count, &b->block));
    SPS_TRY_RETURN(plan_take(super, b->longs + 1, &b->part));
    SPS_TRY_RETURN(plan_take(super, b->parts, (double **)&plan->partial));
    SPS_TRY_RETURN(plan_take_zeros(super, b->longs, &plan->arrived));
    return pass<true>(plan, tally);
}

} // namespace

sps_status spsi_cuda_row_plan_fill(sps_row_plan *plan)
{
    int64_t chunks = spsi_row_blocks_chunks(plan->super.A->nrow);
    holder work(plan->super.ctx);
    sps_row_tally *tally;

    if (chunks == 0) return SPS_OK;
    SPS_TRY_RETURN(work.take(chunks + 1, &tally));
    return fill(plan, tally, chunks);
}
