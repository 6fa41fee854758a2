/* SPDX-License-Identifier: BSD-3-Clause */
/* device.cuh - helpers of device code: loads of pairs, warps, fp64 tensor
 * cores, and the shape of launches over the elements of a block. */
#ifndef SPS_CUDA_DEVICE_CUH
#define SPS_CUDA_DEVICE_CUH

#include "state.h"

namespace {

constexpr unsigned all_lanes = 0xffffffffu;

__host__ __device__ inline int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

inline int power_above(int x)
{
    int p = 1;

    while (p < x) p *= 2;
    return p;
}

inline double *numbers(const sps_block *X) { return (double *)X->data; }

/* Whether pairs of columns can be moved 16 bytes at a time. */
inline bool paired(const sps_block *X)
{
    return X->ld % 2 == 0 && (uintptr_t)X->data % 16 == 0;
}

/* Two neighbours of a row, of which `left` (<= 0, 1, >= 2) are columns of the
 * block; the rest is zero and not read.  PAIRED: p is 16-byte aligned. */
template <bool PAIRED>
__device__ __forceinline__ double2 load_pair(const double *p, int left)
{
    double2 v = make_double2(0.0, 0.0);

    if (PAIRED && left >= 2) {
        v = *reinterpret_cast<const double2 *>(p);
    } else {
        if (left >= 1) v.x = p[0];
        if (left >= 2) v.y = p[1];
    }
    return v;
}

/* The same through the read-only path. */
template <bool PAIRED>
__device__ __forceinline__ double2 fetch_pair(const double *p, int left)
{
    double2 v = make_double2(0.0, 0.0);

    if (PAIRED && left >= 2) {
        v = __ldg(reinterpret_cast<const double2 *>(p));
    } else {
        if (left >= 1) v.x = __ldg(p);
        if (left >= 2) v.y = __ldg(p + 1);
    }
    return v;
}

template <bool PAIRED>
__device__ __forceinline__ void store_pair(double *p, int left, double2 v)
{
    if (PAIRED && left >= 2) {
        *reinterpret_cast<double2 *>(p) = v;
    } else {
        if (left >= 1) p[0] = v.x;
        if (left >= 2) p[1] = v.y;
    }
}

/* D += A B on the fp64 tensor cores.  Lane = 4 g + t holds of A (8 x 4) the
 * element (g, t), of B (4 x 8) the element (t, g), of D (8 x 8) the elements
 * (g, 2t) and (g, 2t + 1). */
__device__ __forceinline__ void dmma8(double &d0, double &d1, double a,
                                      double b)
{
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 "
        "{%0,%1}, {%2}, {%3}, {%0,%1};"
        : "+d"(d0), "+d"(d1) : "d"(a), "d"(b));
}

/* The 16 x 4 form: a0 is row g, a1 row g + 8; d0 d1 belong to row g, d2 d3 to
 * row g + 8. */
__device__ __forceinline__ void dmma16(double *d, double a0, double a1,
                                       double b)
{
    asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 "
        "{%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
        : "d"(a0), "d"(a1), "d"(b));
}

/* Four of those at once: a[2 i], a[2 i + 1] and b[i] of step i. */
__device__ __forceinline__ void dmma16x16(double *d, const double *a,
                                          const double *b)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7,%8,%9,%10,%11}, {%12,%13,%14,%15}, "
        "{%0,%1,%2,%3};"
        : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]),
          "d"(a[6]), "d"(a[7]), "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]));
}

/* out[e] = sum over p of part[p * count + e], in the order of p cut into 8
 * fixed shares: a block serves 32 results with 8 warps. */
__global__ void add_parts(const double *__restrict__ part, int parts,
                          int64_t count, double *out)
{
    __shared__ double share[8][32];
    int64_t e = (int64_t)blockIdx.x * 32 + threadIdx.x;
    int each = (parts + 7) / 8, first = (int)threadIdx.y * each;
    int last = first + each < parts ? first + each : parts;
    double sum = 0;

    if (e < count) {
#pragma unroll 8
        for (int p = first; p < last; p++) sum += part[p * count + e];
    }
    share[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && e < count) {
        for (int w = 1; w < 8; w++) sum += share[w][threadIdx.x];
        out[e] = sum;
    }
}

inline sps_status launch_add_parts(sps_context *ctx, const double *part,
                                   int parts, int64_t count, double *out)
{
    add_parts<<<(unsigned)ceil_div(count, 32), dim3(32, 8), 0,
                spsi_cuda_state(ctx)->stream>>>(part, parts, count, out);
    SPS_LAUNCHED(ctx);
    return SPS_OK;
}

/* How 256 threads cover a block: `lanes` neighbours take the pairs of a row,
 * the others further rows; wide blocks take several passes over columns. */
struct cover {
    int lanes, rows; /* lanes * rows = 256 */
    unsigned blocks;
};

inline cover cover_of(const sps_context *ctx, int64_t n, int k, int each)
{
    cover c;
    int64_t want;

    c.lanes = power_above((k + 1) / 2);
    if (c.lanes > 256) c.lanes = 256;
    c.rows = 256 / c.lanes;
    want = ceil_div(n, (int64_t)c.rows * each);
    if (want > 8 * spsi_cuda_state(ctx)->sms)
        want = 8 * spsi_cuda_state(ctx)->sms;
    c.blocks = want > 0 ? (unsigned)want : 1;
    return c;
}

} // namespace

#endif
