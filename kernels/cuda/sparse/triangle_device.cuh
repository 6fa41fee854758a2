/* SPDX-License-Identifier: BSD-3-Clause */
/* triangle_device.cuh - T X = B by substitution without barriers: every row
 * waits only for the rows it depends on (after Liu, Li, Hogg, Duff, Vinter,
 * Euro-Par 2016; they use separate flags, here the value itself is the flag).
 *
 * First X is filled with a mark, a NaN that arithmetic does not produce.  A
 * warp processes one row: COLUMNS neighbouring lanes have its columns, and 32 /
 * COLUMNS groups of such lanes take its entries in turn; a lane polls x_j until
 * it is not the mark.  Sums are added by shuffles in a fixed order, so results
 * are reproducible bit for bit.  8-byte accesses are atomic; they are relaxed
 * and bypass L1.  No fence is needed, since no other data depend on the value.
 *
 * Rows are in level order and thread blocks take their rows by an atomic
 * ticket: the rows that a block waits for have smaller tickets, hence belong to
 * blocks that have finished or are resident, so every wait ends.
 *
 * Values in single precision (VALUE) are converted when they are read; sums are
 * in double precision.
 *
 * Bytes: 12 per entry (single precision: 8), 24 per row, and n k doubles four
 * times (mark, b, x, and x again through L2). */
#ifndef SPS_CUDA_TRIANGLE_CUH
#define SPS_CUDA_TRIANGLE_CUH

#include <cuda_runtime.h>
#include <stdint.h>

namespace {

struct triangle_view {
    int64_t n;
    const int64_t *ptr;          /* offsets of the rows, n + 1, by position in
                                    level order */
    const int32_t *from, *to;    /* the row of B and the row of X that belong to
                                    each position */
    const int32_t *col;          /* for each entry: the row of X that it
                                    multiplies */
    const void *val;             /* values: floats if `single`, else doubles */
    bool single;
    const double *inverse;       /* inverse of the diagonal, by position; NULL
                                    stands for ones */
    unsigned *ticket;
};

constexpr unsigned long long triangle_mark = 0xfff7a5a5a5a5a5a5ull;
constexpr int triangle_warps = 4;

__device__ __forceinline__ unsigned long long triangle_read(const double *p)
{
    unsigned long long bits;

    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];"
                 : "=l"(bits) : "l"(p) : "memory");
    return bits;
}

__device__ __forceinline__ void triangle_write(double *p, double value)
{
    unsigned long long bits = (unsigned long long)__double_as_longlong(value);

    if (bits == triangle_mark) bits++;   /* a NaN equal to the mark becomes
                                            another NaN */
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;"
                 :: "l"(p), "l"(bits) : "memory");
}

__device__ __forceinline__ double triangle_wait(const double *p,
                                                unsigned long long bits)
{
    while (bits == triangle_mark) bits = triangle_read(p);
    return __longlong_as_double((long long)bits);
}

/* Writes the mark to n rows of k columns; resets the ticket counter. */
__global__ void __launch_bounds__(256)
triangle_mark_kernel(double *x, int64_t ldx, int64_t n, int k,
                     unsigned *ticket)
{
    if (blockIdx.x == 0 && threadIdx.x == 0) *ticket = 0;
    for (int64_t e = (int64_t)blockIdx.x * 256 + threadIdx.x; e < n * k;
         e += (int64_t)gridDim.x * 256)
        x[e / k * ldx + e % k] =
            __longlong_as_double((long long)triangle_mark);
}

/* Returns this lane's part of the sum over the entries of a row, with four
 * loads in flight. */
template <int GROUPS, class VALUE>
__device__ __forceinline__ double
triangle_sum(const triangle_view &t, int64_t q, int group, bool live,
             const double *x, int64_t ldx)
{
    const VALUE *val = (const VALUE *)t.val;
    const int64_t last = t.ptr[q + 1];
    double sum = 0;

    for (int64_t p = t.ptr[q] + group; p < last; p += 4 * GROUPS) {
        const double *at[4];
        double v[4];
        unsigned long long bits[4];

#pragma unroll
        for (int u = 0; u < 4; u++) {
            const int64_t s = p + u * GROUPS;

            v[u] = s < last ? (double)val[s] : 0;
            at[u] = s < last && live ? x + t.col[s] * ldx : nullptr;
        }
#pragma unroll
        for (int u = 0; u < 4; u++)
            bits[u] = at[u] ? triangle_read(at[u]) : 0;
#pragma unroll
        for (int u = 0; u < 4; u++)
            if (at[u]) sum += v[u] * triangle_wait(at[u], bits[u]);
    }
    return sum;
}

template <int COLUMNS, class VALUE>
__global__ void __launch_bounds__(32 * triangle_warps)
triangle_kernel(triangle_view t, const double *__restrict__ b, int64_t ldb,
                double *x, int64_t ldx, int k, int slices)
{
    constexpr int groups = 32 / COLUMNS;
    const int lane = (int)threadIdx.x % 32, group = lane / COLUMNS;
    __shared__ unsigned drawn;

    if (threadIdx.x == 0) drawn = atomicAdd(t.ticket, 1u);
    __syncthreads();
    const int j = (int)(drawn % slices) * COLUMNS + lane % COLUMNS;
    const int64_t q = (int64_t)(drawn / slices) * triangle_warps +
                      threadIdx.x / 32;
    const bool live = j < k;

    if (q >= t.n) return;
    double own = live && group == 0 ? b[t.from[q] * ldb + j] : 0;
    double sum = triangle_sum<groups, VALUE>(t, q, group, live, x + j, ldx);

#pragma unroll
    for (int d = COLUMNS; d < 32; d *= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, d);
    if (live && group == 0)
        triangle_write(x + t.to[q] * ldx + j,
                       (own - sum) * (t.inverse ? t.inverse[q] : 1.0));
}

template <int COLUMNS>
void triangle_launch(const triangle_view &t, const double *b, int64_t ldb,
                     double *x, int64_t ldx, int k, cudaStream_t stream)
{
    const int slices = (k + COLUMNS - 1) / COLUMNS;
    const int64_t blocks = (t.n + triangle_warps - 1) / triangle_warps;

    const auto kernel = t.single ? triangle_kernel<COLUMNS, float>
                                 : triangle_kernel<COLUMNS, double>;

    kernel<<<(unsigned)(blocks * slices), 32 * triangle_warps, 0, stream>>>(
        t, b, ldb, x, ldx, k, slices);
}

inline void triangle_run(const triangle_view &t, const double *b, int64_t ldb,
                         double *x, int64_t ldx, int k, cudaStream_t stream)
{
    const int64_t want = (t.n * k + 1023) / 1024;

    triangle_mark_kernel<<<(unsigned)(want < 4096 ? want : 4096), 256, 0,
                           stream>>>(x, ldx, t.n, k, t.ticket);
    if (k == 1) triangle_launch<1>(t, b, ldb, x, ldx, k, stream);
    else if (k == 2) triangle_launch<2>(t, b, ldb, x, ldx, k, stream);
    else if (k <= 4) triangle_launch<4>(t, b, ldb, x, ldx, k, stream);
    else if (k <= 8) triangle_launch<8>(t, b, ldb, x, ldx, k, stream);
    else if (k <= 16) triangle_launch<16>(t, b, ldb, x, ldx, k, stream);
    else triangle_launch<32>(t, b, ldb, x, ldx, k, stream);
}

} // namespace

#endif
