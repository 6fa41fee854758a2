/* SPDX-License-Identifier: BSD-3-Clause */
/* tca_build.cu - builds the work list of TCA-SpMM (formats/tca.h) on the
 * device: one thread block per window of 256 rows counts the window's items,
 * prefix sums over the windows compute their positions, a second pass writes
 * them.  Reads the row offsets twice, writes the list once. */
#include "cuda/base/scan.h"
#include "cuda/sparse/sparse.cuh"
#include "cuda/papers/tca_plan.h"

namespace {

constexpr int threads = SPSI_TCA_WINDOW;

/* Kinds of items of a window, in the order of spsi_tca_sizes. */
enum { TEAMS, PIECES, SPLITS, PARTIALS, EMPTIES, KINDS };

struct offsets {
    int64_t nrow;
    const int64_t *__restrict__ rowptr;
    const int32_t *__restrict__ rowptr32;

    __device__ __forceinline__ int64_t operator()(int64_t i) const
    {
        return rowptr32 ? (int64_t)rowptr32[i] : rowptr[i];
    }
};

/* Returns the exclusive prefix sum of v over the threads of a block; *total
 * becomes the sum of all. */
__device__ uint64_t scan_block(uint64_t v, uint64_t *total)
{
    __shared__ uint64_t of_warp[threads / 32];
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    uint64_t upto = v, below = 0;

#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        uint64_t other = __shfl_up_sync(all_lanes, upto, d);

        if (lane >= d) upto += other;
    }
    __syncthreads(); /* all threads have read the results of the previous
                        call */
    if (lane == 31) of_warp[warp] = upto;
    __syncthreads();
    *total = 0;
    for (int w = 0; w < threads / 32; w++) {
        if (w < warp) below += of_warp[w];
        *total += of_warp[w];
    }
    return below + upto - v;
}

/* The row of a thread, and the positions of its items among those of the
 * window. */
struct window_row {
    int64_t row, begin, length;
    int32_t pieces;          /* number of pieces of a row of more than 64
                                entries, else 0 */
    int warps;               /* number of warps for a row of 1 .. 64 entries,
                                else 0 */
    int64_t slot;            /* position of its first warp in the window's
                                teams */
    int64_t piece, split, partial, empty;
    int64_t total[KINDS], slots;
};

__device__ window_row look(const offsets &A)
{
    window_row r = {};
    int64_t length;
    uint64_t rows, at, total;

    r.row = (int64_t)blockIdx.x * SPSI_TCA_WINDOW + threadIdx.x;
    if (r.row < A.nrow) {
        r.begin = A(r.row);
        r.length = A(r.row + 1) - r.begin;
        r.pieces = spsi_tca_pieces(r.length);
    }
    length = r.length;
    if (length > 0 && r.pieces == 0) r.warps = spsi_tca_chunks(length);

    /* Four counts in one word, 16 bits each: the rows with 8, 4, 2 and 1
     * warps. */
    int shift = r.warps == 8 ? 0 : r.warps == 4 ? 16 : r.warps == 2 ? 32 : 48;
    at = scan_block(r.warps ? (uint64_t)1 << shift : 0, &rows);
    for (int w = 8, s = 0; w > 0; w /= 2, s += 16) {
        int64_t count = (int64_t)(rows >> s & 0xffff);

        if (w == r.warps)
            r.slot = r.slots + (int64_t)(at >> s & 0xffff) * w;
        r.slots += count * w;
    }
    r.total[TEAMS] = (r.slots + SPSI_TCA_TEAM - 1) / SPSI_TCA_TEAM;

    at = scan_block((uint64_t)r.pieces, &total);
    r.piece = (int64_t)at;
    r.total[PIECES] = (int64_t)total;
    at = scan_block(r.pieces > 1 ? (uint64_t)r.pieces : 0, &total);
    r.partial = (int64_t)at;
    r.total[PARTIALS] = (int64_t)total;
    at = scan_block((uint64_t)(r.pieces > 1) |
                        (uint64_t)(r.row < A.nrow && length == 0) << 32,
                    &total);
    r.split = (int64_t)(at & 0xffffffffu);
    r.empty = (int64_t)(at >> 32);
    r.total[SPLITS] = (int64_t)(total & 0xffffffffu);
    r.total[EMPTIES] = (int64_t)(total >> 32);
    return r;
}

/* count[kind * windows + window]: number of items of the kind in the window. */
__global__ void __launch_bounds__(threads)
count_kernel(offsets A, int64_t windows, int32_t *__restrict__ count)
{
    window_row r = look(A);

    if (threadIdx.x == 0)
        for (int n = 0; n < KINDS; n++)
            count[n * windows + blockIdx.x] = (int32_t)r.total[n];
}

/* Writes the items. offset[kind * (windows + 1) + window]: number of items of
 * this kind in the windows before. */
__global__ void __launch_bounds__(threads)
write_kernel(offsets A, int64_t windows, const int64_t *__restrict__ offset,
             spsi_tca w)
{
    window_row r = look(A);
    auto before = [&](int kind) -> int64_t {
        return offset[kind * (windows + 1) + blockIdx.x];
    };
    int32_t *slot = w.slot + before(TEAMS) * SPSI_TCA_TEAM;
    int64_t share = r.pieces ? spsi_tca_share(r.length, r.pieces) : 0;

    for (int s = 0; s < r.warps; s++) slot[r.slot + s] = (int32_t)r.row;
    for (int64_t s = r.slots + threadIdx.x;
         s < r.total[TEAMS] * SPSI_TCA_TEAM; s += threads)
        slot[s] = -1;
    if (r.row < A.nrow && r.length == 0)
        w.empty[before(EMPTIES) + r.empty] = (int32_t)r.row;
    if (r.pieces > 1)
        w.split[before(SPLITS) + r.split] = spsi_tca_split{
            before(PARTIALS) + r.partial, (int32_t)r.row, r.pieces};
    for (int32_t s = 0; s < r.pieces; s++) {
        int64_t left = r.length - s * share;

        w.piece[before(PIECES) + r.piece + s] = spsi_tca_piece{
            r.begin + s * share, (int32_t)r.row,
            (int32_t)(left < share ? left : share),
            r.pieces > 1 ? before(PARTIALS) + r.partial + s : -1};
    }
}

/* Computes prefix sums of the counts for each kind, downloads the totals and
 * writes the list. */
sps_status place(sps_plan *plan, const offsets &A, int64_t windows,
                 int32_t *count, int64_t *offset, spsi_tca *w)
{
    sps_context *ctx = plan->ctx;
    int64_t total[KINDS];

    SPS_TRY_RETURN(run_kernel(ctx, (unsigned)windows, threads, count_kernel, A,
                              windows, count));
    for (int n = 0; n < KINDS; n++) {
        int64_t *to = offset + n * (windows + 1);

        SPS_TRY_RETURN(spsi_cuda_scan(ctx, count + n * windows, windows, to));
        SPS_TRY_RETURN(download(ctx, 1, to + windows, &total[n]));
    }
    w->n = spsi_tca_sizes{total[TEAMS], total[PIECES], total[SPLITS],
                          total[PARTIALS], total[EMPTIES]};
    SPS_TRY_RETURN(plan_take(plan, w->n.teams * SPSI_TCA_TEAM, &w->slot));
    SPS_TRY_RETURN(plan_take(plan, w->n.pieces, &w->piece));
    SPS_TRY_RETURN(plan_take(plan, w->n.splits, &w->split));
    SPS_TRY_RETURN(plan_take(plan, w->n.empties, &w->empty));
    return run_kernel(ctx, (unsigned)windows, threads, write_kernel, A, windows,
                      offset, *w);
}

} // namespace

sps_status spsi_cuda_tca_build(sps_plan *plan, spsi_tca *w)
{
    const sps_csr_local *A = plan->A;
    const int64_t windows = ceil_div(A->nrow, SPSI_TCA_WINDOW);
    holder work(plan->ctx);
    int32_t *count;
    int64_t *offset;

    if (windows == 0) return SPS_OK;
    SPS_TRY_RETURN(work.take(KINDS * windows, &count));
    SPS_TRY_RETURN(work.take(KINDS * (windows + 1), &offset));
    return place(plan, offsets{A->nrow, A->rowptr, A->rowptr32}, windows,
                 count, offset, w);
}
