/* SPDX-License-Identifier: BSD-3-Clause */
/* pipeline.cuh - a staged pipeline: rows of up to three blocks are copied to
 * shared memory several stages ahead of the arithmetic, in a ring buffer.
 *
 * A row tile consists of ROWS consecutive rows, and a stage holds one row
 * tile.  A slice is a group of WARPS warps; the slices of a thread block
 * process row tiles in turn, each with stages of its own.  There are two
 * barriers per stage: `full` (the copies have arrived) and `empty` (all warps
 * of the slice have read it).  After each row tile one of the warps, in turn,
 * issues the copy of a further row tile into the stage of the row tile before,
 * which the others have usually released by then; so it seldom waits, and no
 * producer warp is needed.  Where there is a copy engine (sm_90), it moves a
 * whole row of a block per instruction; otherwise lanes copy 16 bytes at a time
 * by cp.async.
 *
 * Row tile q of slice s of SL begins at row ((q gridDim + blockIdx) SL + s)
 * ROWS.  In shared memory, rows after the last one of the blocks are zero, and
 * so are the elements to the right of the columns, except the first one after
 * an odd number of columns: it may have any value, for example from the padding
 * of the row. Traffic: each block is read once. */
#ifndef SPS_CUDA_PIPELINE_CUH
#define SPS_CUDA_PIPELINE_CUH

#include "cuda/base/bulk.cuh"
#include "cuda/base/device.cuh"

namespace {

constexpr int most_stages = 16;    /* for all slices of a thread block */
constexpr int most_columns = 128;  /* for each block of vectors */

/* Number of lanes of a warp that arrive at a barrier: one, after __syncwarp,
 * which orders the preceding reads of all lanes.  The tool racecheck
 * (compute-sanitizer) follows the arrivals of each thread separately and
 * reports a race here; in a build for it, with
 * NVCCFLAGS="-O3 -lineinfo -DSPS_RACECHECK", all lanes arrive. */
#ifdef SPS_RACECHECK
constexpr int arriving = 32;
#else
constexpr int arriving = 1;
#endif

struct staged_blocks {
    const double *p[3];      /* first row of each block; rows are 16-byte
                                aligned */
    int64_t ld[3], n;
    int cols[3], at[3];      /* number of columns of each block, and their
                                offset in a row of shared memory */
    int stages;              /* number of stages for each slice */
};

struct ring {
    uint64_t full[most_stages], empty[most_stages];
    uint64_t written[most_stages]; /* barriers for kernels that modify row tiles
                                      in shared memory: all warps have
                                      written */
};

__device__ __forceinline__ void barrier_open(uint64_t *barrier, int count)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;"
                 :: "r"(shared_address(barrier)), "r"(count) : "memory");
}
__device__ __forceinline__ void barrier_arrive(uint64_t *barrier)
{
    asm volatile("{ .reg .b64 state;\n"
                 "mbarrier.arrive.shared.b64 state, [%0]; }"
                 :: "r"(shared_address(barrier)) : "memory");
}
__device__ __forceinline__ bool barrier_passed(uint64_t *barrier,
                                               unsigned phase)
{
    unsigned passed;

    asm volatile("{ .reg .pred p;\n"
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
                 "mbarrier.try_wait.parity.shared.b64 p, [%1], %2;\n"
#else
                 "mbarrier.test_wait.parity.shared.b64 p, [%1], %2;\n"
#endif
                 "selp.u32 %0, 1, 0, p; }"
                 : "=r"(passed)
                 : "r"(shared_address(barrier)), "r"(phase) : "memory");
    return passed != 0;
}
__device__ __forceinline__ void barrier_wait(uint64_t *barrier, unsigned phase)
{
    while (!barrier_passed(barrier, phase)) {}
}

/* Broadcasts the x of lane 0, so that the compiler knows that it is uniform in
 * the warp. */
__device__ __forceinline__ int same_for_warp(int x)
{
    return __shfl_sync(all_lanes, x, 0);
}

/* Returns true in exactly one lane of the warp. */
__device__ __forceinline__ bool one_of_warp()
{
    unsigned one = threadIdx.x % 32 == 0;

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    asm volatile("{ .reg .pred p;\n"
                 "elect.sync _|p, 0xffffffff;\n"
                 "selp.u32 %0, 1, 0, p; }" : "=r"(one));
#endif
    return one != 0;
}

/* Clears the stages, `numbers` doubles in all at `shared`, and initialises the
 * barriers of `stages` stages for `readers` warps; called by all threads. */
__device__ __forceinline__ void open_ring(ring *r, double *shared, int numbers,
                                          int stages, int readers)
{
    for (int e = (int)threadIdx.x; e < numbers; e += (int)blockDim.x)
        shared[e] = 0;
    if ((int)threadIdx.x < stages) {
        barrier_open(&r->full[threadIdx.x], has_bulk ? 2 : 32);
        barrier_open(&r->empty[threadIdx.x], readers * arriving);
        barrier_open(&r->written[threadIdx.x], readers * arriving);
    }
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    /* Makes these writes visible to the copy engine. */
    asm volatile("fence.mbarrier_init.release.cluster;\n\t"
                 "fence.proxy.async.shared::cta;" ::: "memory");
#endif
    __syncthreads();
}

/* Source of the zeros for rows after the last one: the copy engine writes them
 * like all other rows, so that waiting for `full` includes them. */
__device__ __align__(16) double no_row[most_columns];

/* Makes the lane arrive at the barrier when all its cp.async copies are
 * complete. */
__device__ __forceinline__ void arrive_behind_copies(uint64_t *barrier)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];"
                 :: "r"(shared_address(barrier)) : "memory");
#endif
}

/* Copies one row tile with the copy engine.  One lane issues the copies; a
 * second lane stores what the engine cannot copy, since it moves at least 16
 * bytes, and is the second arrival at `full`.  All operands are uniform in the
 * warp, and the compiler can see that: otherwise it would serialise over the
 * lanes.  With an odd number of columns the next element, which is in the
 * padding of the row, is copied as well, except in the last row, whose last
 * column may end the allocation. */
template <int BLOCKS, int ROWS, int LD>
__device__ __forceinline__ void order_rows(const staged_blocks &f, int64_t row,
                                           double *to, uint64_t *full)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    int rows = f.n - row < ROWS ? (int)(f.n - row) : ROWS;
    bool last = row + rows == f.n;
    bool second = (int)threadIdx.x % 32 == 1;
    uint32_t bytes = 0;

#pragma unroll
    for (int b = 0; b < BLOCKS; b++) {
        int k = f.cols[b], r = rows - 1;
        bool odd = last && k % 2;

        bytes += 8 * (uint32_t)((k + k % 2) * ROWS - (odd ? 2 : 0));
        if (odd && second)
            to[r * LD + f.at[b] + k - 1] = f.p[b][(row + r) * f.ld[b] + k - 1];
    }
    if (second) barrier_arrive(full);
    __syncwarp();
    if (!one_of_warp()) return;
    asm volatile("{ .reg .b64 state;\n"
                 "mbarrier.arrive.expect_tx.shared.b64 state, [%0], %1; }"
                 :: "r"(shared_address(full)), "r"(bytes) : "memory");
#pragma unroll
    for (int b = 0; b < BLOCKS; b++) {
        const double *from = f.p[b] + row * f.ld[b];
        double *at = to + f.at[b];
        int k = f.cols[b], whole = rows - (last && k % 2 ? 1 : 0);

#pragma unroll 4
        for (int r = 0; r < whole; r++, from += f.ld[b])
            bulk_copy(at + r * LD, from, 8 * (uint32_t)(k + k % 2), full);
        if (whole < rows && k > 1)
            bulk_copy(at + whole * LD, from, 8 * (uint32_t)(k - 1), full);
        for (int r = rows; r < ROWS; r++)
            bulk_copy(at + r * LD, no_row, 8 * (uint32_t)(k + k % 2), full);
    }
#endif
}

/* Copies one row tile by cp.async, 16 bytes per lane and instruction; called by
 * all lanes. */
template <int BLOCKS, int ROWS, int LD>
__device__ __forceinline__ void order_pieces(const staged_blocks &f,
                                             int64_t row, double *to,
                                             uint64_t *full)
{
#pragma unroll
    for (int b = 0; b < BLOCKS; b++)
        for (int c = 2 * ((int)threadIdx.x % 32); c < f.cols[b]; c += 64)
#pragma unroll 8
            for (int r = 0; r < ROWS; r++) {
                int bytes = row + r >= f.n ? 0 : f.cols[b] - c > 1 ? 16 : 8;
                const double *from = f.p[b];

                if (bytes > 0) from += (row + r) * f.ld[b] + c;
                asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                             :: "r"(shared_address(to + r * LD + f.at[b] + c)),
                                "l"(from), "r"(bytes) : "memory");
            }
    arrive_behind_copies(full);
}

/* Iteration of one slice over its row tiles.  At the end of row tile q, next()
 * releases row tile q - LAG; then one warp waits until all warps have released
 * row tile q - LAG - 1, and issues the next copy into its stage. */
template <int BLOCKS, int ROWS, int LD, int WARPS, int SLICES, int LAG>
struct pipeline {
    const staged_blocks &f;
    double *to;                  /* the stages of this slice */
    uint64_t *full, *empty, *written;
    int64_t row, step;
    int warp, stage = 0, turn = 0;
    unsigned phase = 0;          /* of the current stage: changes with each
                                    round of the ring */

    /* Opens the loop of this warp's slice; the first warp of the slice fills
     * the stages. */
    __device__ __forceinline__ pipeline(const staged_blocks &f,
                                        double *shared, ring *r)
        : f(f), warp(same_for_warp((int)threadIdx.x / 32 % WARPS))
    {
        int slice = same_for_warp((int)threadIdx.x / (32 * WARPS));

        to = shared + slice * f.stages * (ROWS * LD);
        full = r->full + slice * f.stages;
        empty = r->empty + slice * f.stages;
        written = r->written + slice * f.stages;
        row = ((int64_t)blockIdx.x * SLICES + slice) * ROWS;
        step = (int64_t)gridDim.x * (SLICES * ROWS);
        if (warp == 0)
            for (int s = 0; s < f.stages; s++) order(row + s * step, s);
    }

    __device__ __forceinline__ void order(int64_t from, int s)
    {
        if (from >= f.n) return;
        if (has_bulk)
            order_rows<BLOCKS, ROWS, LD>(f, from, to + s * (ROWS * LD),
                                         full + s);
        else
            order_pieces<BLOCKS, ROWS, LD>(f, from, to + s * (ROWS * LD),
                                           full + s);
    }

    /* Returns the stage of the row tile `count` row tiles ago; *its is the
     * phase of its barriers. */
    __device__ __forceinline__ int back(int count, unsigned *its) const
    {
        bool round = stage < count;

        *its = round ? phase ^ 1 : phase;
        return round ? stage - count + f.stages : stage - count;
    }

    /* Waits for the current row tile; returns NULL after the last one. */
    __device__ __forceinline__ double *current()
    {
        if (row >= f.n) return NULL;
        barrier_wait(full + stage, phase);
        return to + stage * (ROWS * LD);
    }

    /* Called when the warp has modified its part of the current row tile:
     * orders its writes before later copies of the copy engine. */
    __device__ __forceinline__ void wrote()
    {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
        __syncwarp();
        if ((int)threadIdx.x % 32 < arriving) barrier_arrive(written + stage);
    }

    /* Waits until all warps have modified the preceding row tile and returns
     * it, or NULL if the current row tile is the first. */
    __device__ __forceinline__ double *before()
    {
        unsigned its;
        int s = back(1, &its);

        if (row < step) return NULL;
        barrier_wait(written + s, its);
        return to + s * (ROWS * LD);
    }

    /* Advances to the next row tile.  The warp no longer needs the row tile of
     * LAG row tiles ago. */
    __device__ __forceinline__ void next()
    {
        int64_t ahead = row + (f.stages - 1 - LAG) * step;
        unsigned its;
        int left = back(LAG, &its), last = back(LAG + 1, &its);

        __syncwarp();
        if ((int)threadIdx.x % 32 < arriving && row >= LAG * step)
            barrier_arrive(empty + left);
        if (warp == turn && ahead < f.n && row >= (LAG + 1) * step) {
            barrier_wait(empty + last, its);
            order(ahead, last);
        }
        turn = turn + 1 < WARPS ? turn + 1 : 0;
        row += step;
        if (++stage == f.stages) {
            stage = 0;
            phase ^= 1;
        }
    }
};

/* Returns the number of stages of `bytes` bytes for each slice; at least LAG +
 * 2 are needed. */
inline int stages_of(const sps_context *ctx, int bytes, int slices)
{
    int stages = (spsi_cuda_state(ctx)->shared_limit - 1024) / bytes;

    return (stages < most_stages ? stages : most_stages) / slices;
}

/* Returns whether this GPU has shared memory for two stages of the largest size
 * (sm_80 and sm_90 do). */
inline bool has_pipeline(const sps_context *ctx)
{
    return spsi_cuda_state(ctx)->shared_limit >= 160 << 10;
}

/* Makes the first k columns of X block number i of the row tiles.  The rows of
 * X must be aligned to 16 bytes (paired). */
inline void add_block(staged_blocks *f, int i, const sps_block *X, int k)
{
    f->p[i] = numbers(X);
    f->ld[i] = X->ld;
    f->cols[i] = k;
    f->n = X->n;
}

} // namespace

#endif
