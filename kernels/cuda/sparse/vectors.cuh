/* SPDX-License-Identifier: BSD-3-Clause */
/* vectors.cuh - access to rows of X and Y by vectors (`vec`) of W elements,
 * which are 16 bytes and accessed by one vector load or store; W is 1 if X or Y
 * is not aligned. */
#ifndef SPS_CUDA_VECTORS_CUH
#define SPS_CUDA_VECTORS_CUH

#include "cuda/sparse/sparse.cuh"

namespace {

/* The blocks X and Y as passed to kernels, and how far the kernels may use
 * their padding. */
template <class T> struct padded_blocks : blocks<T> {
    int room;    /* columns of Y below this (>= k) may be overwritten with
                    zeros */
    bool padded; /* all rows of X, also the last, have allocated padding */

    /* Returns the columns first .. first + count - 1; the padding is that of
     * the last of them. */
    padded_blocks columns(int first, int count) const
    {
        padded_blocks b = *this;

        b.x += first;
        b.y += first;
        if (b.w) b.w += first;
        b.k = count;
        b.room = first + count < this->k ? count : room - first;
        return b;
    }
};

/* Returns the blocks with the padding that may be used.  The padding of a block
 * that owns its memory and is not narrowed holds no data (block.h): writing it
 * as well makes the stores whole sectors. */
template <class T>
padded_blocks<T> with_padding(const blocks<T> &b, const sps_spmm_args *args)
{
    const sps_block *Y = args->Y;

    return { b, Y->bytes > 0 && Y->k == Y->width ? (int)Y->ld : Y->k,
             args->X->bytes > 0 };
}

template <class T, int W> struct vec {
    T v[W];
};

__device__ __forceinline__ void whole(const double *p, vec<double, 2> &r)
{
    double2 v = __ldg(reinterpret_cast<const double2 *>(p));

    r.v[0] = v.x, r.v[1] = v.y;
}
__device__ __forceinline__ void whole(const float *p, vec<float, 4> &r)
{
    float4 v = __ldg(reinterpret_cast<const float4 *>(p));

    r.v[0] = v.x, r.v[1] = v.y, r.v[2] = v.z, r.v[3] = v.w;
}
template <class T>
__device__ __forceinline__ void whole(const T *p, vec<T, 1> &r)
{
    r.v[0] = __ldg(p);
}
__device__ __forceinline__ void put(double *p, const vec<double, 2> &r)
{
    __stcs(reinterpret_cast<double2 *>(p), make_double2(r.v[0], r.v[1]));
}
__device__ __forceinline__ void put(float *p, const vec<float, 4> &r)
{
    __stcs(reinterpret_cast<float4 *>(p),
           make_float4(r.v[0], r.v[1], r.v[2], r.v[3]));
}
template <class T> __device__ __forceinline__ void put(T *p,
                                                       const vec<T, 1> &r)
{
    __stcs(p, r.v[0]);
}

/* Loads W consecutive elements, of which the first `left` are columns of the
 * block; the others are not read and are zero. */
template <int W, class T>
__device__ __forceinline__ vec<T, W> fetch(const T *p, int left)
{
    vec<T, W> r = {};

    if (left >= W) {
        whole(p, r);
    } else {
#pragma unroll
        for (int w = 0; w < W - 1; w++)
            if (w < left) r.v[w] = __ldg(p + w);
    }
    return r;
}

/* Applies the epilogue to the sums of W consecutive columns of row i and stores
 * them: `left` of them are columns of the block.  The others are set to zero if
 * all W may be written (room >= W), else not written. */
template <int W, class T>
__device__ __forceinline__ void finish(const blocks<T> &b, int64_t i, T *y,
                                       int left, int room,
                                       const vec<T, W> &sum)
{
    vec<T, W> r;

#pragma unroll
    for (int w = 0; w < W; w++)
        r.v[w] = w < left ? b.join(sum.v[w], y + w, i) : T(0);
    if (room >= W) {
        put(y, r);
    } else {
#pragma unroll
        for (int w = 0; w < W - 1; w++)
            if (w < left) y[w] = r.v[w];
    }
}

/* acc[q] += a v[q] for the C vectors q. */
template <int C, int W, class T>
__device__ __forceinline__ void add(T a, const vec<T, W> *v, vec<T, W> *acc)
{
#pragma unroll
    for (int q = 0; q < C; q++)
#pragma unroll
        for (int w = 0; w < W; w++)
            acc[q].v[w] = fma(a, v[q].v[w], acc[q].v[w]);
}

} // namespace

#endif
