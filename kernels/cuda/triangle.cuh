/* SPDX-License-Identifier: BSD-3-Clause */
/* triangle.cuh - T X = B by substitution without barriers: every row waits
 * for the rows it needs and no others (after Liu, Li, Hogg, Duff, Vinter,
 * Euro-Par 2016; theirs keeps flags, here the value is its own flag).
 *
 * X is filled with a mark first, a NaN that no arithmetic makes.  A warp owns
 * a row: COLUMNS lanes side by side take its columns, 32 / COLUMNS groups of
 * them its entries in turn; a lane reads x_j until it is not the mark.  Sums
 * join by shuffles in a fixed order, so bits repeat.  8-byte accesses are
 * atomic, relaxed and past L1; no fence is needed, since the value is all
 * that is said.
 *
 * Rows come in level order and blocks draw tickets: what a block waits for was
 * drawn before, by a block that runs or ran.  So the wait ends.
 *
 * Values of floats (VALUE) are widened as they are read; sums are doubles.
 *
 * Bytes: 12 an entry (floats: 8), 24 a row, and n k doubles four times (mark,
 * b, x, and x again through L2). */
#ifndef SPS_CUDA_TRIANGLE_CUH
#define SPS_CUDA_TRIANGLE_CUH

#include <cuda_runtime.h>
#include <stdint.h>

namespace {

struct triangle_view {
    int64_t n;
    const int64_t *ptr;          /* n + 1, by place in level order */
    const int32_t *from, *to;    /* rows of B and X, by place */
    const int32_t *col;          /* rows of X */
    const void *val;             /* floats if single, else doubles */
    bool single;
    const double *inverse;       /* by place; NULL: ones */
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

    if (bits == triangle_mark) bits++;   /* another NaN */
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;"
                 :: "l"(p), "l"(bits) : "memory");
}

__device__ __forceinline__ double triangle_wait(const double *p,
                                                unsigned long long bits)
{
    while (bits == triangle_mark) bits = triangle_read(p);
    return __longlong_as_double((long long)bits);
}

/* Marks n rows of k columns; takes the tickets back. */
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

/* Sum over the entries of one row, this lane's share, four in flight. */
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
