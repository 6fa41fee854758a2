/* SPDX-License-Identifier: BSD-3-Clause */
/* device.cuh - launches of kernels, and helpers of device code: loads of pairs,
 * warps, fp64 tensor cores, and the second phase of reductions. */
#ifndef SPS_CUDA_DEVICE_CUH
#define SPS_CUDA_DEVICE_CUH

#include "cuda/base/state.h"

/* Second phase of a reduction (join.cu): out[e] becomes the sum over p < parts
 * of part[p * count + e], or the largest magnitude; results from number `first`
 * on are written to `rest`. */
sps_status spsi_cuda_join(sps_context *ctx, bool magnitudes, const double *part,
                          int parts, int64_t count, double *out, int64_t first,
                          double *rest);

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

/* --------------------------------------------------------------- launches */

/* A context, and the line that passes it. */
struct launch_site {
    sps_context *ctx;
    const char *file;
    int line;

    launch_site(sps_context *c, const char *f = __builtin_FILE(),
                int l = __builtin_LINE()) : ctx(c), file(f), line(l) {}
};

/* Launches `grid` blocks of `block` threads.  With SPS_CUDA_DEBUG it also
 * synchronises, so that a fault is reported at the launch that caused it.  A
 * kernel that is a template is passed with all its arguments. */
template <class... P, class... A>
sps_status run_kernel(const launch_site &at, dim3 grid, dim3 block,
                      void (*kernel)(P...), const A &...arguments)
{
    const cudaStream_t stream = spsi_cuda_state(at.ctx)->stream;
    cudaError_t error;

    kernel<<<grid, block, 0, stream>>>(arguments...);
    error = cudaPeekAtLastError();
#ifdef SPS_CUDA_DEBUG
    if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
#endif
    if (error == cudaSuccess) return SPS_OK;
    return spsi_cuda_failed(at.ctx, error, "cudaPeekAtLastError()", at.file,
                            at.line);
}

/* Launches blocks of 256 threads, one thread for each of n items; none if there
 * are no items. */
template <class... P, class... A>
sps_status run_items(const launch_site &at, int64_t n, void (*kernel)(P...),
                     const A &...arguments)
{
    if (n <= 0) return SPS_OK;
    return run_kernel(at, (unsigned)ceil_div(n, 256), 256, kernel,
                      arguments...);
}

/* ----------------------------------------------------------------- memory */

/* *to becomes `count` elements of the scratch memory, which the next user of
 * the stream overwrites. */
template <class T>
sps_status take_scratch(sps_context *ctx, int64_t count, T **to)
{
    SPS_TRY_RETURN(spsi_cuda_need_scratch(ctx, (size_t)count * sizeof(T)));
    *to = (T *)spsi_cuda_state(ctx)->d_scratch;
    return SPS_OK;
}

template <class X>
sps_status clear(sps_context *ctx, int64_t n, X *x, int byte = 0)
{
    if (n > 0)
        SPS_CUDA(ctx, cudaMemsetAsync(x, byte, (size_t)n * sizeof *x,
                                      spsi_cuda_state(ctx)->stream));
    return SPS_OK;
}

/* Copies to host memory; complete on return. */
template <class X>
sps_status download(sps_context *ctx, int64_t n, const X *from, X *to)
{
    return ctx->backend->download(ctx, to, from, (size_t)n * sizeof *to);
}

/* ------------------------------------------------------------- device code */

inline double *numbers(const sps_block *X) { return (double *)X->data; }

/* Returns whether pairs of columns can be loaded and stored as 16-byte
 * vectors. */
inline bool paired(const sps_block *X)
{
    return X->ld % 2 == 0 && (uintptr_t)X->data % 16 == 0;
}

/* A pair of neighbouring columns; pairs of floats are converted to double when
 * they are loaded, and rounded when they are stored. */
template <class V> struct pair_type;
template <> struct pair_type<double> { using type = double2; };
template <> struct pair_type<float> { using type = float2; };
template <class V> using pair_of = typename pair_type<V>::type;

/* Loads two neighbouring elements of a row, of which `left` (<= 0, 1, >= 2) are
 * columns of the block; the others are zero and not read.  PAIRED: p is aligned
 * to the pair. */
template <bool PAIRED, class V>
__device__ __forceinline__ double2 load_pair(const V *p, int left)
{
    pair_of<V> v = { 0, 0 };

    if (PAIRED && left >= 2) {
        v = *reinterpret_cast<const pair_of<V> *>(p);
    } else {
        if (left >= 1) v.x = p[0];
        if (left >= 2) v.y = p[1];
    }
    return make_double2(v.x, v.y);
}

/* Does what load_pair does, through the read-only data cache (__ldg). */
template <bool PAIRED, class V>
__device__ __forceinline__ double2 fetch_pair(const V *p, int left)
{
    pair_of<V> v = { 0, 0 };

    if (PAIRED && left >= 2) {
        v = __ldg(reinterpret_cast<const pair_of<V> *>(p));
    } else {
        if (left >= 1) v.x = __ldg(p);
        if (left >= 2) v.y = __ldg(p + 1);
    }
    return make_double2(v.x, v.y);
}

template <bool PAIRED, class V>
__device__ __forceinline__ void store_pair(V *p, int left, double2 v)
{
    if (PAIRED && left >= 2) {
        *reinterpret_cast<pair_of<V> *>(p) = { (V)v.x, (V)v.y };
    } else {
        if (left >= 1) p[0] = (V)v.x;
        if (left >= 2) p[1] = (V)v.y;
    }
}

/* D += A B on the fp64 tensor cores.  Lane 4 g + t holds element (g, t) of A (8
 * x 4), element (t, g) of B (4 x 8), and elements (g, 2t) and (g, 2t + 1) of D
 * (8 x 8). */
__device__ __forceinline__ void dmma8(double &d0, double &d1, double a,
                                      double b)
{
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 "
        "{%0,%1}, {%2}, {%3}, {%0,%1};"
        : "+d"(d0), "+d"(d1) : "d"(a), "d"(b));
}

/* D (16 x 8) += A (16 x 4 steps) B (4 steps x 8) by m8n8k4.  Lane 4 g + t holds
 * a[2 i] and a[2 i + 1], elements (g, 4 i + t) and (g + 8, 4 i + t) of A; b[i],
 * element (4 i + t, g) of B; d[0], d[1] and d[2], d[3], columns 2t and 2t + 1
 * of rows g and g + 8 of D.  GPUs before sm_90 have no instruction for this. */
template <int steps>
__device__ __forceinline__ void dmma_small(double *d, const double *a,
                                           const double *b)
{
#pragma unroll
    for (int i = 0; i < steps; i++) {
        dmma8(d[0], d[1], a[2 * i], b[i]);
        dmma8(d[2], d[3], a[2 * i + 1], b[i]);
    }
}

/* Computes dmma_small<2> in one instruction (from sm_90 on). */
__device__ __forceinline__ void dmma16x8(double *d, const double *a,
                                         const double *b)
{
#if __CUDA_ARCH__ < 900
    dmma_small<2>(d, a, b);
#else
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#endif
}

/* Computes dmma_small<4> in one instruction (from sm_90 on). */
__device__ __forceinline__ void dmma16x16(double *d, const double *a,
                                          const double *b)
{
#if __CUDA_ARCH__ < 900
    dmma_small<4>(d, a, b);
#else
    asm("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7,%8,%9,%10,%11}, {%12,%13,%14,%15}, "
        "{%0,%1,%2,%3};"
        : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]),
          "d"(a[6]), "d"(a[7]), "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]));
#endif
}

struct plus {
    static constexpr bool magnitudes = false;
    static __device__ double one(double a, double b) { return a + b; }
};
/* Reduction to the maximum of magnitudes; propagates NaN. */
struct larger {
    static constexpr bool magnitudes = true;
    static __device__ double one(double a, double b)
    {
        return b > a || b != b ? b : a;
    }
};

/* Launches the second phase of a reduction by J, which joins the partial
 * results of thread blocks (spsi_cuda_join). */
template <class J>
sps_status launch_join(sps_context *ctx, const double *part, int parts,
                       int64_t count, double *out, int64_t first,
                       double *rest)
{
    return spsi_cuda_join(ctx, J::magnitudes, part, parts, count, out, first,
                          rest);
}

template <class J>
sps_status launch_join(sps_context *ctx, const double *part, int parts,
                       int64_t count, double *out)
{
    return launch_join<J>(ctx, part, parts, count, out, count, out);
}

} // namespace

#endif
