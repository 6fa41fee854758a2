/* SPDX-License-Identifier: BSD-3-Clause */
/* window_build.cu - condenses the columns of row windows on the device: 8 lanes
 * merge the 8 sorted rows of a window, each lane at the head of its row.  One
 * pass counts words, prefix sums place them, a second pass writes.  Reads the
 * columns twice (out of L1 all but once each) and writes the words once; some
 * 20 instructions for each distinct column of 4 windows. */
#include "scan.h"
#include "sparse.cuh"
#include "window_plan.h"

namespace {

constexpr int threads = 256;

template <class I> struct pattern {
    int64_t nrow;
    int32_t lead, windows;
    const I *__restrict__ rowptr;
    const int32_t *__restrict__ col;
};

/* Over the 8 lanes of a team. */
__device__ __forceinline__ bool team_all(bool v)
{
    return (__ballot_sync(all_lanes, v) >> (threadIdx.x & 24) & 255) == 255;
}
__device__ __forceinline__ int32_t team_min(int32_t v)
{
#pragma unroll
    for (int d = 4; d > 0; d /= 2)
        v = min(v, __shfl_xor_sync(all_lanes, v, d));
    return v;
}
__device__ __forceinline__ int32_t team_sum(int32_t v)
{
#pragma unroll
    for (int d = 4; d > 0; d /= 2) v += __shfl_xor_sync(all_lanes, v, d);
    return v;
}

constexpr int32_t none = INT32_MAX; /* no column: there are fewer */

/* A lane's row. */
template <class I> struct row_head {
    const int32_t *__restrict__ next; /* behind head */
    int32_t left, head;               /* entries from head on */

    /* Row number `at % 8` of window at / 8. */
    __device__ __forceinline__ row_head(const pattern<I> &A, int64_t at)
        : next(A.col), left(0), head(none)
    {
        if (at / 8 >= A.windows) return;
        int64_t i = spsi_window_row(A.nrow, A.lead, (int32_t)(at / 8),
                                    (int)at % 8);

        if (i >= A.nrow) return;
        I p = A.rowptr[i], n = A.rowptr[i + 1] - p;

        left = n < none ? (int32_t)n : none;
        next += p;
        if (left > 0) head = *next++;
    }
    __device__ __forceinline__ void step()
    {
        head = --left > 0 ? *next++ : none;
    }
};

/* count[w]: words of the window, 0 where it is to be summed by rows. */
template <class I>
__global__ void __launch_bounds__(threads)
count_kernel(pattern<I> A, sps_window_rule rule, int32_t *__restrict__ count)
{
    int64_t i = (int64_t)blockIdx.x * threads + threadIdx.x;
    row_head<I> row(A, i);
    bool fit = team_all(row.left <= rule.longest);
    int32_t entries = team_sum(fit ? row.left : 0), distinct = 0;

    if (!fit) row.head = none;
    for (;;) {
        int32_t least = team_min(row.head);

        if (__all_sync(all_lanes, least == none)) break;
        distinct += least != none;
        if (row.head == least && least != none) row.step();
    }
    if (threadIdx.x % 8 == 0 && i / 8 < A.windows)
        count[i / 8] = fit && spsi_window_pays(distinct, entries, rule)
                           ? spsi_window_words(distinct) : 0;
}

template <class I>
__global__ void __launch_bounds__(threads)
write_kernel(pattern<I> A, sps_row_windows w)
{
    int64_t i = (int64_t)blockIdx.x * threads + threadIdx.x;
    int64_t at = 0, end = 0;
    int r = (int)threadIdx.x % 8;
    row_head<I> row(A, i);
    int32_t last = 0;

    if (i / 8 < w.count) {
        at = w.first[i / 8];
        end = w.first[i / 8 + 1];
    }
    /* All teams of a warp go on until the last is done. */
    for (; __any_sync(all_lanes, at < end); at += SPSI_WINDOW_WORDS) {
        uint32_t mask = 0;

        for (int s = 0; s < SPSI_WINDOW_GROUP; s++) {
            int32_t least = team_min(row.head);
            bool mine = row.head == least && least != none;

            if (least != none) last = least;
            mask |= (uint32_t)mine << s;
            if (s % 8 == r && at + SPSI_WINDOW_ROWS + s < end)
                w.word[at + SPSI_WINDOW_ROWS + s] = last;
            if (mine) row.step();
        }
        if (at < end) w.word[at + r] = (int32_t)mask;
    }
}

template <class I>
sps_status build(sps_context *ctx, const pattern<I> &A, sps_window_rule rule,
                 int32_t *count, sps_row_windows *w)
{
    cudaStream_t stream = spsi_cuda_state(ctx)->stream;
    unsigned grid = (unsigned)ceil_div((int64_t)A.windows * 8, threads);

    count_kernel<<<grid, threads, 0, stream>>>(A, rule, count);
    SPS_LAUNCHED(ctx);
    SPS_TRY_RETURN(spsi_cuda_scan(ctx, count, A.windows, w->first));
    SPS_TRY_RETURN(ctx->backend->download(ctx, &w->words, w->first + A.windows,
                                          sizeof w->words));
    if (w->words == 0) return SPS_OK;
    SPS_TRY_RETURN(spsi_cuda_alloc(ctx, spsi_window_word_bytes(w),
                                   (void **)&w->word));
    write_kernel<<<grid, threads, 0, stream>>>(A, *w);
    SPS_LAUNCHED(ctx);
    return spsi_cuda_wait(ctx);
}

} // namespace

sps_status spsi_cuda_windows_build(sps_context *ctx, const sps_csr_local *A,
                                   sps_window_rule rule, sps_row_windows *w)
{
    const int64_t windows = spsi_windows_of(A->nrow, rule.lead);
    const size_t bytes = (size_t)windows * sizeof(int32_t);
    void *count = NULL;
    sps_status st;

    *w = sps_row_windows();
    if (windows == 0) return SPS_OK;
    w->count = windows;
    SPS_TRY_RETURN(spsi_cuda_alloc(ctx, bytes, &count));
    st = spsi_cuda_alloc(ctx, spsi_window_first_bytes(w), (void **)&w->first);
    if (st == SPS_OK)
        st = A->rowptr32
            ? build(ctx, pattern<int32_t>{A->nrow, rule.lead,
                                          (int32_t)windows, A->rowptr32,
                                          A->col}, rule, (int32_t *)count, w)
            : build(ctx, pattern<int64_t>{A->nrow, rule.lead,
                                          (int32_t)windows, A->rowptr,
                                          A->col}, rule, (int32_t *)count, w);
    spsi_cuda_release(ctx, count, bytes);
    if (st != SPS_OK) spsi_cuda_windows_clear(ctx, w);
    return st;
}

void spsi_cuda_windows_clear(sps_context *ctx, sps_row_windows *w)
{
    if (w->first)
        spsi_cuda_release(ctx, w->first, spsi_window_first_bytes(w));
    if (w->word) spsi_cuda_release(ctx, w->word, spsi_window_word_bytes(w));
    *w = sps_row_windows();
}
