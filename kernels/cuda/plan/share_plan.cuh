/* SPDX-License-Identifier: BSD-3-Clause */
/* share_plan.cuh - divides entries into shares on the device: a sequential
 * recurrence over the rows, made parallel by evaluating it from every possible
 * state at once.
 *
 * What happens to a row depends on the rows before it through two numbers only:
 * (1) the number of entries of the open share, 1 to size <= 32 (shares.h), and
 * (2) the position of the next share in its block of shares, below team <= 128.
 * The second number matters only for a row that is split; after such a row the
 * first number has its initial value.  So two small tables represent a chunk of
 * rows.  One has, for each value of (1) before the chunk, its value after the
 * chunk and the number of shares up to the first split row.  The other has, for
 * each value of (2) at that row, the number of shares from there to the end of
 * the chunk.  There are three kernels: `survey` computes the tables, one warp
 * per chunk; `chain` follows them from chunk to chunk, by one warp, and finds
 * the actual state before each chunk; `deal` processes each chunk again from
 * that state and writes the shares.  All arithmetic is in integers, and the
 * result does not depend on the chunk size; with about sqrt(n) rows per chunk
 * the loops of `survey` and `chain` are equally long.
 *
 * Bytes: the offsets once for each size that is counted and once for writing,
 * 16 per share four times; 656 per chunk. */
#ifndef SPS_CUDA_SHARE_PLAN_CUH
#define SPS_CUDA_SHARE_PLAN_CUH

#include "cuda/base/device.cuh"
#include "cuda/plan/share_plan.h"

namespace {

constexpr int places = SPS_SHARE_TEAM / 32; /* number of positions per lane */

/* The share sizes that are counted at once. */
struct share_rules {
    int32_t size[SPS_SHARE_SIZES], team;
};

/* State before a chunk: entries of the open share, then the numbers of shares,
 * rows with entries, spans and parts so far.  Also accessed as an array of five
 * integers, one per lane. */
struct deal_state {
    int32_t open, count, rows, spans, parts;
};

/* The tables of a chunk. whole[l] is the transition from `open` = l + 1: 64
 * times the number of shares up to the first split row, plus the number of
 * entries open after the chunk. cut[q][l] is the number of shares from that row
 * on if it begins at position l + 32 q. */
struct chunk_table {
    int32_t whole[32], cut[places][32];
    int32_t sum[4];            /* numbers of rows with entries, of spans and of
                                  parts, and 0 */
};

/* The row of a lane; length 0 from row `end` on. */
struct lane_rows {
    int32_t first, length;
    int32_t pieces;            /* number of pieces of a split row, else 0 */
    unsigned cut;              /* mask of the lanes whose rows are split */
};

template <class I>
__device__ __forceinline__ lane_rows look(const I *__restrict__ rowptr,
                                          int64_t i, int64_t end, int32_t size)
{
    lane_rows r = {};

    if (i < end) {
        r.first = (int32_t)rowptr[i];
        r.length = (int32_t)(rowptr[i + 1] - rowptr[i]);
    }
    if (r.length > size) r.pieces = (r.length - 1) / size + 1;
    r.cut = __ballot_sync(all_lanes, r.pieces > 0);
    return r;
}

__device__ __forceinline__ int32_t blocks_of(int32_t pieces, int32_t team)
{
    return (pieces - 1) / team + 1;
}

/* ------------------------------------------------------------------ survey */

/* Evaluates a chunk from each possible number of entries of the open share and
 * from each position, one per lane. */
struct all_ways {
    int32_t open, before, since, at[places];
    bool cut;

    __device__ __forceinline__ void begin(int lane, int32_t size)
    {
        open = lane % size + 1;
        before = since = 0;
        cut = false;
#pragma unroll
        for (int q = 0; q < places; q++) at[q] = lane + 32 * q;
    }
    __device__ __forceinline__ void settle()
    {
        if (!cut) before = since;
#pragma unroll
        for (int q = 0; q < places; q++) at[q] += cut ? since : 0;
        since = 0;
    }
    __device__ __forceinline__ void cut_row(int32_t pieces, int32_t size,
                                            int32_t team)
    {
        settle();
#pragma unroll
        for (int q = 0; q < places; q++)
            at[q] += spsi_share_gap(at[q] & (team - 1), pieces, team) + pieces;
        cut = true;
        open = size;
    }
};

/* Sums over the rows of the chunk; each lane adds the rows that it has
 * loaded. */
struct row_sums {
    int32_t rows, spans, parts;

    __device__ __forceinline__ void add(const lane_rows &r, int32_t team)
    {
        rows += r.length > 0;
        spans += r.pieces > team;
        parts += r.pieces > team ? blocks_of(r.pieces, team) : 0;
    }
    __device__ __forceinline__ void store(int32_t *to, int lane) const
    {
        const int32_t all[] = { __reduce_add_sync(all_lanes, rows),
                                __reduce_add_sync(all_lanes, spans),
                                __reduce_add_sync(all_lanes, parts) };

        if (lane < 4)
            to[lane] = lane == 0   ? all[0]
                       : lane == 1 ? all[1] : lane == 2 ? all[2] : 0;
    }
};

/* Computes the tables of a chunk of `reach` rows for one of the sizes, by one
 * warp. */
template <class I>
__global__ void __launch_bounds__(32)
survey_kernel(const I *__restrict__ rowptr, int64_t nrow, int64_t reach,
              share_rules rule, chunk_table *table)
{
    const int32_t size = rule.size[blockIdx.y], team = rule.team;
    const int64_t first = blockIdx.x * reach;
    const int64_t end = first + reach < nrow ? first + reach : nrow;
    const int lane = (int)threadIdx.x;
    row_sums sum = {};
    all_ways way;

    table += (int64_t)blockIdx.y * gridDim.x + blockIdx.x;
    way.begin(lane, size);
    lane_rows next = look(rowptr, first + lane, end, size);

    for (int64_t base = first; base < end; base += 32) {
        const lane_rows r = next;

        next = look(rowptr, base + 32 + lane, end, size);
        sum.add(r, team);
#pragma unroll 8
        for (int j = 0; j < 32; j++) {
            const int32_t length = __shfl_sync(all_lanes, r.length, j);

            if (r.cut >> j & 1)
                way.cut_row(__shfl_sync(all_lanes, r.pieces, j), size, team);
            else
                way.since += spsi_share_opens(&way.open, length, size);
        }
    }
    way.settle();
    table->whole[lane] = way.before << 6 | way.open;
#pragma unroll
    for (int q = 0; q < places; q++)
        table->cut[q][lane] = way.at[q] - (lane + 32 * q);
    sum.store(table->sum, lane);
}

/* ------------------------------------------------------------------- chain */

constexpr int ahead = 8; /* number of tables that are loaded ahead */

/* Stores a state: lane q < 5 stores its member q. */
__device__ __forceinline__ void put_state(deal_state *to, int lane,
                                          int32_t open, int32_t count,
                                          int32_t sum)
{
    if (lane < 5)
        reinterpret_cast<int32_t *>(to)[lane] = lane == 0   ? open
                                                : lane == 1 ? count : sum;
}

/* Computes the state before each chunk, and the final one in total[]; a block
 * of one warp for each size.  Lanes 2 to 4 add rows, spans and parts. */
__global__ void __launch_bounds__(32)
chain_kernel(const chunk_table *__restrict__ table, int64_t chunks,
             share_rules rule, deal_state *from, deal_state *total)
{
    const int32_t team = rule.team;
    const int lane = (int)threadIdx.x;
    int32_t open = rule.size[blockIdx.x], count = 0, sum = 0;

    table += blockIdx.x * chunks;
    from += blockIdx.x * chunks;
    for (int64_t base = 0; base < chunks; base += ahead) {
        int32_t whole[ahead], cut[ahead][places], more[ahead];

        /* c is clamped instead of a branch, which would wait for earlier
         * loads. */
#pragma unroll
        for (int u = 0; u < ahead; u++) {
            const int64_t c = base + u < chunks ? base + u : chunks - 1;

            whole[u] = table[c].whole[lane];
#pragma unroll
            for (int q = 0; q < places; q++) cut[u][q] = table[c].cut[q][lane];
            more[u] = table[c].sum[(lane + 2) % 4];
        }
#pragma unroll
        for (int u = 0; u < ahead; u++) {
            int32_t step = __shfl_sync(all_lanes, whole[u], open - 1), place;

            if (base + u >= chunks) continue; /* the same for the whole warp */
            put_state(from + base + u, lane, open, count, sum);
            open = step & 63;
            count += step >> 6;
            place = count & (team - 1);
#pragma unroll
            for (int q = 0; q < places; q++) {
                const int32_t rest =
                    __shfl_sync(all_lanes, cut[u][q], place % 32);

                if (place / 32 == q) step = rest;
            }
            count += step;
            sum += more[u];
        }
    }
    put_state(total + blockIdx.x, lane, open, count, sum);
}

/* -------------------------------------------------------------------- deal */

/* Where a lane's row goes: its share (if the row is split, the first of its
 * shares), and the number of entries of that share including the row. */
struct lane_place {
    int32_t number, share, open;
    uint32_t span;             /* index of the span plus 1 */
    bool opens;
};

__device__ __forceinline__ unsigned lanes_below(int lane)
{
    return (1u << lane) - 1;
}

/* Processes 32 rows.  *now is the state before them, and becomes that after
 * them. */
__device__ __forceinline__ lane_place walk(const lane_rows &r, int lane,
                                           const sps_shares &s,
                                           deal_state *now)
{
    const unsigned filled = __ballot_sync(all_lanes, r.length > 0);
    lane_place at = {};

    at.number = now->rows + __popc(filled & lanes_below(lane));
    now->rows += __popc(filled);
#pragma unroll 8
    for (int j = 0; j < 32; j++) {
        const int32_t length = __shfl_sync(all_lanes, r.length, j);
        int32_t pieces = 0;
        bool opens = false;

        if (r.cut >> j & 1) {
            pieces = __shfl_sync(all_lanes, r.pieces, j);
            now->open = s.size;
            now->count += spsi_share_gap(now->count & (s.team - 1), pieces,
                                         s.team);
        } else {
            opens = spsi_share_opens(&now->open, length, s.size);
            now->count += opens;
        }
        if (lane == j) {
            at.share = now->count - (pieces == 0);
            at.open = now->open;
            at.opens = opens;
        }
        now->count += pieces;
    }
    return at;
}

/* Writes the spans, which are the rows with more pieces than a block has
 * shares, in order. */
__device__ __forceinline__ void put_spans(const lane_rows &r, int lane,
                                          const sps_shares &s, lane_place *at,
                                          deal_state *now)
{
    unsigned left = __ballot_sync(all_lanes, r.pieces > s.team);

    for (; left; left &= left - 1) {
        const int j = __ffs((int)left) - 1;
        const int32_t blocks =
            blocks_of(__shfl_sync(all_lanes, r.pieces, j), s.team);

        if (lane == j) {
            s.span[now->spans] = { now->parts, blocks, at->share / s.team };
            at->span = (uint32_t)now->spans + 1;
        }
        now->spans++;
        now->parts += blocks;
    }
}

__device__ __forceinline__ void put_share(sps_share *to, const sps_share &v)
{
    *reinterpret_cast<int4 *>(to) =
        make_int4(v.first, v.row, (int)v.ends, (int)v.what);
}

/* Writes the pieces of 32 rows, distributed over the lanes; a lane finds the
 * row of its piece by bisection in the prefix sums. */
__device__ __forceinline__ void put_pieces(const lane_rows &r, int lane,
                                           const sps_shares &s,
                                           const lane_place &at)
{
    int32_t upto = r.pieces, all;

    if (!r.cut) return;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        const int32_t below = __shfl_up_sync(all_lanes, upto, d);

        if (lane >= d) upto += below;
    }
    all = __shfl_sync(all_lanes, upto, 31);
    for (int32_t base = 0; base < all; base += 32) {
        const int32_t t = base + lane;
        int j = 0;

#pragma unroll
        for (int d = 16; d > 0; d /= 2)
            if (__shfl_sync(all_lanes, upto, j + d - 1) <= t) j += d;

        const int32_t pieces = __shfl_sync(all_lanes, r.pieces, j);
        const int32_t n = t - __shfl_sync(all_lanes, upto, j) + pieces;
        const int32_t first = __shfl_sync(all_lanes, r.first, j);
        const int32_t length = __shfl_sync(all_lanes, r.length, j);
        const int32_t share = __shfl_sync(all_lanes, at.share, j);
        const int32_t number = __shfl_sync(all_lanes, at.number, j);
        const uint32_t span = __shfl_sync(all_lanes, at.span, j);

        if (t < all)
            put_share(s.share + share + n,
                      spsi_share_piece(n, pieces, first, length, number,
                                       s.team, span));
    }
}

/* Writes the shares; from[c] is the state before chunk c, as computed by
 * `chain`.  Several warps may add rows to the same share; the number of its
 * entries is derived from the row ends afterwards (finish_kernel). */
template <class I>
__global__ void __launch_bounds__(32)
deal_kernel(const I *__restrict__ rowptr, int64_t nrow, int64_t reach,
            const deal_state *__restrict__ from, sps_shares s)
{
    const int64_t first = blockIdx.x * reach;
    const int64_t end = first + reach < nrow ? first + reach : nrow;
    const int lane = (int)threadIdx.x;
    lane_rows next = look(rowptr, first + lane, end, s.size);
    deal_state now = from[blockIdx.x];

    for (int64_t base = first; base < end; base += 32) {
        const int64_t i = base + lane;
        const lane_rows r = next;
        lane_place at = walk(r, lane, s, &now);

        next = look(rowptr, i + 32, end, s.size);
        put_spans(r, lane, s, &at, &now);
        put_pieces(r, lane, s, at);
        if (at.opens) {
            s.share[at.share].first = r.first;
            s.share[at.share].row = at.number;
        }
        if (r.length > 0 && r.pieces == 0)
            atomicOr(&s.share[at.share].ends, 1u << (at.open - 1));
        if (s.empty > 0 && r.length > 0) s.row[at.number] = (int32_t)i;
        if (i < end && r.length == 0)
            s.no_entries[i - at.number] = (int32_t)i;
    }
}

/* Sets the number of entries of shares of whole rows, and marks the blocks that
 * contain pieces of split rows; the team size divides the number of threads. */
__global__ void __launch_bounds__(SPS_SHARE_TEAM)
finish_kernel(sps_shares s)
{
    __shared__ int joins[SPS_SHARE_TEAM];
    const int64_t t = (int64_t)blockIdx.x * SPS_SHARE_TEAM + threadIdx.x;
    const int team = (int)threadIdx.x / s.team;
    const bool some = t < s.count;
    const uint32_t ends = some ? s.share[t].ends : 0;
    uint32_t what = some ? s.share[t].what : 0;

    joins[threadIdx.x] = 0;
    __syncthreads();
    if (what) atomicOr(joins + team, 1); /* up to here only pieces have `what`
                                            set */
    __syncthreads();
    if (ends) what = 32 - __clz((int)ends);
    if (some) s.share[t].what = what | (joins[team] ? SPS_SHARE_JOINS : 0);
}

} // namespace

#endif
