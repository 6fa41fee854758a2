/* SPDX-License-Identifier: BSD-3-Clause */
/* strips.cuh - rows of up to three blocks on their way to shared memory, a ring
 * of strips ahead of the arithmetic.
 *
 * Groups of warps (slices) read strips in turn, each from stages of its own.
 * Two barriers a stage: `full` (who ordered, and the bytes), `empty` (each warp
 * of the group).  Behind each strip one warp of the group, each in
 * its turn, orders the next one into the stage before, which the others have
 * left by then; so nobody waits for nothing and no registers go to a warp that
 * only copies.  The copy engine moves a row of a block at once where there is
 * one (sm_90); else lanes copy 16 bytes at a time, asynchronously.
 *
 * Strip q of slice s of SL is rows ((q gridDim + blockIdx) SL + s) ROWS onward.
 * Behind the last row of the blocks there are zeros; right of an even number of
 * columns, too, of an odd one one number of the row's padding.  Bytes: each
 * block once. */
#ifndef SPS_CUDA_STRIPS_CUH
#define SPS_CUDA_STRIPS_CUH

#include "bulk.cuh"
#include "device.cuh"

namespace {

constexpr int most_stages = 16, most_columns = 128; /* of a block */

/* Lanes of a warp that arrive: one, behind __syncwarp, which orders what all of
 * them have read before it.  Racecheck follows each thread's own arrivals alone
 * and takes that for a race (of plain stores, too); a build for it, with
 * NVCCFLAGS="-O3 -lineinfo -DSPS_RACECHECK", has all of them arrive. */
#ifdef SPS_RACECHECK
constexpr int arriving = 32;
#else
constexpr int arriving = 1;
#endif

struct strips {
    const double *p[3];      /* rows 16-byte aligned */
    int64_t ld[3], n;
    int cols[3], at[3];      /* columns; where they begin in a row of a strip */
    int stages;              /* of a slice */
};

struct ring {
    uint64_t full[most_stages], empty[most_stages];
    uint64_t written[most_stages]; /* for those who change strips */
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

/* Lets the compiler see that a number is the same for all lanes. */
__device__ __forceinline__ int same_for_warp(int x)
{
    return __shfl_sync(all_lanes, x, 0);
}

/* True for one lane. */
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

/* By all threads: zeros everywhere, barriers for `readers` warps. */
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
    /* What was written here is seen by the copy engine, too. */
    asm volatile("fence.mbarrier_init.release.cluster;\n\t"
                 "fence.proxy.async.shared::cta;" ::: "memory");
#endif
    __syncthreads();
}

/* What the copy engine brings for rows behind the last: it alone writes into
 * strips, so that `full` is all there is to wait for. */
__device__ __align__(16) double no_row[most_columns];

/* All that the lane asked for by cp.async arrives before the lane does. */
__device__ __forceinline__ void arrive_behind_copies(uint64_t *barrier)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];"
                 :: "r"(shared_address(barrier)) : "memory");
#endif
}

/* One strip by the copy engine, which one lane orders; another, the second to
 * arrive at `full`, brings what the engine, which takes 16 bytes at least,
 * cannot.  What it is told is the same for all lanes, and the compiler can see
 * that: else it would go through the lanes one by one.  Of an odd number of
 * columns the one behind comes along, which is in the row's padding; but not
 * behind the last row, whose last number has nothing behind it. */
template <int BLOCKS, int ROWS, int LD>
__device__ __forceinline__ void order_rows(const strips &f, int64_t row,
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

/* The same, 16 bytes a lane at a time. */
template <int BLOCKS, int ROWS, int LD>
__device__ __forceinline__ void order_pieces(const strips &f, int64_t row,
                                             double *to, uint64_t *full)
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

/* A slice's way along its strips.  A strip is left LAG strips behind the one
 * that is there now, and the warp that orders waits for the one before it. */
template <int BLOCKS, int ROWS, int LD, int WARPS, int SLICES, int LAG>
struct walk {
    const strips &f;
    double *to;                  /* the slice's stages */
    uint64_t *full, *empty, *written;
    int64_t row, step;
    int warp, stage = 0, turn = 0;
    unsigned phase = 0;          /* turns with every round of the stages */

    /* The first stages are ordered by the first warp. */
    __device__ __forceinline__ walk(const strips &f, double *shared, ring *r)
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

    /* The stage of the strip so many before, and its phase. */
    __device__ __forceinline__ int back(int count, unsigned *its) const
    {
        bool round = stage < count;

        *its = round ? phase ^ 1 : phase;
        return round ? stage - count + f.stages : stage - count;
    }

    /* The strip that is there now, NULL behind the last. */
    __device__ __forceinline__ double *strip()
    {
        if (row >= f.n) return NULL;
        barrier_wait(full + stage, phase);
        return to + stage * (ROWS * LD);
    }

    /* The warp has changed its part of it, and the copy engine may go over what
     * it wrote. */
    __device__ __forceinline__ void wrote()
    {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
        __syncwarp();
        if ((int)threadIdx.x % 32 < arriving) barrier_arrive(written + stage);
    }

    /* The strip before that, when all have changed it; NULL before the first. */
    __device__ __forceinline__ double *before()
    {
        unsigned its;
        int s = back(1, &its);

        if (row < step) return NULL;
        barrier_wait(written + s, its);
        return to + s * (ROWS * LD);
    }

    /* The warp has read the strip LAG before. */
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

/* Stages of so many bytes that each slice can have; they want
 * LAG + 2. */
inline int stages_of(const sps_context *ctx, int bytes, int slices)
{
    int stages = (spsi_cuda_state(ctx)->shared_limit - 1024) / bytes;

    return (stages < most_stages ? stages : most_stages) / slices;
}

/* Whether they have room for two of the largest on this GPU (sm_80, sm_90). */
inline bool has_strips(const sps_context *ctx)
{
    return spsi_cuda_state(ctx)->shared_limit >= 160 << 10;
}

/* Block number i of the strips, its first k columns; all of them paired. */
inline void add_block(strips *f, int i, const sps_block *X, int k)
{
    f->p[i] = numbers(X);
    f->ld[i] = X->ld;
    f->cols[i] = k;
    f->n = X->n;
}

} // namespace

#endif
