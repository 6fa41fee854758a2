/* SPDX-License-Identifier: BSD-3-Clause */
/* window_build.cu - builds the tiles of row windows on the device: 8 lanes (a
 * team) merge the 8 sorted rows of a window, each lane at the next entry of its
 * row.  One pass counts tiles, prefix sums compute their positions, a second
 * pass writes.  Reads the columns twice (repeated accesses hit L1) and writes
 * the tile descriptors once; about 20 instructions for each distinct column of
 * 4 windows.  Values are copied into tile order by a separate pass, also for a
 * refresh: they are read and written once. */
#include "cuda/base/scan.h"
#include "cuda/base/csr_view.cuh"
#include "cuda/plan/plan_memory.cuh"
#include "cuda/plan/window_plan.h"

namespace {

constexpr int threads = 256;

template <class I> struct pattern {
    int64_t nrow;
    int32_t lead, windows;
    const I *__restrict__ rowptr;
    const int32_t *__restrict__ col;
};

/* For each window: the number of tiles, the number of entries in them, and 1 if
 * there are any tiles, else 0; and the prefix sums of these over the
 * windows. */
struct tally {
    int32_t *tile, *entry, *some;
    int64_t *tiles, *entries, *place;
};

/* Return, in all 8 lanes of a team, whether v is true in all of them, and the
 * minimum, sum and bitwise or of v over them. */
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

__device__ __forceinline__ uint32_t team_or(uint32_t v)
{
#pragma unroll
    for (int d = 4; d > 0; d /= 2) v |= __shfl_xor_sync(all_lanes, v, d);
    return v;
}

constexpr int32_t none = INT32_MAX; /* larger than any column */

/* The row of one lane during the merge. */
template <class I> struct row_head {
    const int32_t *__restrict__ next; /* the column after head */
    int32_t left;                     /* entries from `head` on */
    int32_t head;                     /* column of the current entry, or
                                         `none` after the last one */

    /* Makes the lane start at the first entry of row at % 8 of window at /
     * 8. */
    __device__ __forceinline__ row_head(const pattern<I> &A, int64_t at)
        : next(A.col), left(0), head(none)
    {
        if (at / 8 >= A.windows) return;
        int64_t i = spsi_window_row(A.nrow, A.lead,
                                    spsi_window_rows(A.lead, at / 8),
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

template <class I>
__global__ void __launch_bounds__(threads)
count_kernel(pattern<I> A, sps_window_rule rule, tally to)
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
    if (threadIdx.x % 8 != 0 || i / 8 >= A.windows) return;
    fit = fit && spsi_window_pays(distinct, entries, rule);
    to.tile[i / 8] = fit ? spsi_window_tiles(distinct) : 0;
    to.entry[i / 8] = fit ? entries : 0;
    to.some[i / 8] = fit;
}

/* Writes window v to w.at if it has tiles, else to w.rest; the thread past the
 * last window writes the end of w.at. */
__global__ void __launch_bounds__(threads)
list_kernel(int32_t lead, int64_t windows, tally of, sps_row_windows w)
{
    int64_t v = (int64_t)blockIdx.x * threads + threadIdx.x, place;

    if (v > windows) return;
    place = of.place[v];
    if (v < windows && !of.some[v])
        w.rest[v - place] = spsi_window_rows(lead, v);
    else
        w.at[place] = { 1 + of.entries[v], (int32_t)of.tiles[v],
                        v < windows ? spsi_window_rows(lead, v) : 0 };
}

/* Writes the columns and masks of a group of c tiles, by a team whose rows are
 * at their next entries; last: the previous column.  If `mine` is false nothing
 * is written. */
template <class I>
__device__ __forceinline__ void write_group(row_head<I> &row, int c, bool mine,
                                            int32_t *word, int32_t &last)
{
    const int r = (int)threadIdx.x % 8;

    for (int h = 0; h < 2 * SPSI_WINDOW_GROUP; h++) {
        uint32_t mask = 0;

        mine = mine && h < 2 * c;
        for (int s = 0; s < 4; s++) {
            int32_t least = team_min(mine ? row.head : none);
            bool some = row.head == least && least != none;

            if (least != none) last = least;
            mask |= (uint32_t)some << (4 * r + s);
            if (mine && (4 * h + s) % 8 == r) word[2 * c + 4 * h + s] = last;
            if (some) row.step();
        }
        mask = team_or(mask);
        if (mine && h % 8 == r) word[h] = (int32_t)mask;
    }
}

template <class I>
__global__ void __launch_bounds__(threads)
write_kernel(pattern<I> A, tally of, int32_t *word)
{
    int64_t i = (int64_t)blockIdx.x * threads + threadIdx.x;
    row_head<I> row(A, i);
    int32_t last = 0, left = 0;

    if (i / 8 < A.windows) {
        left = of.tile[i / 8];
        word += of.tiles[i / 8] * SPSI_WINDOW_WORDS;
    }
    /* All teams of a warp continue until the last one is done. */
    while (__any_sync(all_lanes, left > 0)) {
        const int c = spsi_window_group(left);

        write_group(row, c, left > 0, word, last);
        word += SPSI_WINDOW_WORDS * c;
        left -= c;
    }
}

/* Copies the values of a window to tile order, by one warp.  For each mask lane
 * 4 r + s copies the value for which bit 4 r + s stands: slot s of row r. */
template <class I, class V>
__global__ void __launch_bounds__(threads)
values_kernel(matrix<I, V> A, int32_t lead, sps_row_windows w, V *out)
{
    const int64_t v = ((int64_t)blockIdx.x * threads + threadIdx.x) / 32;
    const int lane = (int)threadIdx.x % 32;

    if (blockIdx.x == 0 && threadIdx.x == 0) out[0] = V(0);
    if (v >= w.count) return;
    const sps_window at = w.at[v];
    const int32_t *word = w.word + (int64_t)at.tile * SPSI_WINDOW_WORDS;
    const V *from = A.val + A.rowptr[spsi_window_row(A.nrow, lead, at.rows,
                                                     lane / 4)];

    out += at.value;
    for (int left = w.at[v + 1].tile - at.tile, c; left > 0; left -= c) {
        c = spsi_window_group(left);
        for (int h = 0; h < 2 * c; h++) {
            const uint32_t mask = (uint32_t)word[h];
            const uint32_t row = mask >> (lane & 28) & 15;

            if (mask >> lane & 1)
                out[__popc(mask & ((1u << lane) - 1))] =
                    from[__popc(row & ((1u << lane % 4) - 1))];
            from += __popc(row);
            out += __popc(mask);
        }
        word += SPSI_WINDOW_WORDS * c;
    }
}

/* Computes the prefix sums of the tally, and the total numbers of tiles,
 * entries and windows with tiles. */
sps_status add_up(sps_context *ctx, int64_t windows, const tally &t,
                  sps_row_windows *w)
{
    const sps_backend *on = ctx->backend;

    SPS_TRY_RETURN(spsi_cuda_scan(ctx, t.tile, windows, t.tiles));
    SPS_TRY_RETURN(spsi_cuda_scan(ctx, t.entry, windows, t.entries));
    SPS_TRY_RETURN(spsi_cuda_scan(ctx, t.some, windows, t.place));
    SPS_TRY_RETURN(on->download(ctx, &w->tiles, t.tiles + windows, 8));
    SPS_TRY_RETURN(on->download(ctx, &w->entries, t.entries + windows, 8));
    SPS_TRY_RETURN(on->download(ctx, &w->count, t.place + windows, 8));
    w->bare = windows - w->count;
    if (w->tiles <= INT32_MAX) return SPS_OK;
    return spsi_fail(ctx, SPS_EUNFIT, "%lld tiles of 8 x 8 are too many: at "
                     "most 2^31 - 1 are possible; take another kernel",
                     (long long)w->tiles);
}

template <class I>
sps_status build(sps_plan *plan, const pattern<I> &A, sps_window_rule rule,
                 const tally &t, sps_row_windows *w)
{
    sps_context *ctx = plan->ctx;
    unsigned grid = (unsigned)ceil_div((int64_t)A.windows * 8, threads);

    SPS_TRY_RETURN(run_kernel(ctx, grid, threads, count_kernel<I>, A, rule, t));
    SPS_TRY_RETURN(add_up(ctx, A.windows, t, w));
    SPS_TRY_RETURN(plan_take(plan, w->count + 1, &w->at));
    SPS_TRY_RETURN(plan_take(plan, w->tiles * SPSI_WINDOW_WORDS, &w->word));
    SPS_TRY_RETURN(plan_take(plan, w->bare, &w->rest));
    SPS_TRY_RETURN(run_kernel(ctx, (unsigned)ceil_div((int64_t)A.windows + 1,
                                                      threads),
                              threads, list_kernel, A.lead, A.windows, t, *w));
    if (w->tiles > 0)
        SPS_TRY_RETURN(run_kernel(ctx, grid, threads, write_kernel<I>, A, t,
                                  w->word));
    return spsi_cuda_wait(ctx);
}

sps_status tally_take(holder *memory, int64_t windows, tally *t)
{
    const int64_t n = windows + 1;

    SPS_TRY_RETURN(memory->take(n, &t->tile));
    SPS_TRY_RETURN(memory->take(n, &t->entry));
    SPS_TRY_RETURN(memory->take(n, &t->some));
    SPS_TRY_RETURN(memory->take(n, &t->tiles));
    SPS_TRY_RETURN(memory->take(n, &t->entries));
    return memory->take(n, &t->place);
}

} // namespace

sps_status spsi_cuda_windows_build(sps_plan *plan, sps_window_rule rule,
                                   sps_row_windows *w)
{
    const sps_csr_local *A = plan->A;
    const int64_t windows = spsi_windows_of(A->nrow, rule.lead);
    holder memory(plan->ctx);
    tally t;

    if (windows == 0) return SPS_OK;
    SPS_TRY_RETURN(tally_take(&memory, windows, &t));
    return A->rowptr32
        ? build(plan, pattern<int32_t>{A->nrow, rule.lead, (int32_t)windows,
                                       A->rowptr32, A->col}, rule, t, w)
        : build(plan, pattern<int64_t>{A->nrow, rule.lead, (int32_t)windows,
                                       A->rowptr, A->col}, rule, t, w);
}

sps_status spsi_cuda_windows_values(sps_context *ctx, const sps_csr_local *A,
                                    int32_t lead, const sps_row_windows *w,
                                    void *val)
{
    const unsigned grid = (unsigned)ceil_div(w->count * 32, threads);

    if (grid == 0) return SPS_OK;
    return with_types(A, [&](auto M) -> sps_status {
        using V = std::remove_const_t<
            std::remove_reference_t<decltype(*M.val)>>;

        values_kernel<<<grid, threads, 0, spsi_cuda_state(ctx)->stream>>>(
            M, lead, *w, (V *)val);
        SPS_LAUNCHED(ctx);
        return SPS_OK;
    });
}
