/* SPDX-License-Identifier: BSD-3-Clause */
/* tca_low.cuh - direct TCA-SpMM with 16-bit operands, and the conversion of X
 * to a low precision.
 *
 * X is converted once per product, into memory of the plan, with its rows
 * padded with zeros to whole vectors.  The gather, which reads a row of X for
 * each entry, then moves half or a quarter of the bytes. */
#ifndef SPS_CUDA_TCA_LOW_CUH
#define SPS_CUDA_TCA_LOW_CUH

#include "cuda/papers/tca_direct.cuh"

namespace {

/* Returns the leading dimension of the converted X, in elements of 16 bits: k
 * rounded up to 16 bytes. */
__host__ __device__ inline int64_t low_ld(int k) { return (k + 7) / 8 * 8; }

/* Converts n rows of X to y, in the type E::element.  E has the types element
 * and vector (of 4 elements) and the functions round(double) and
 * pack(element[4]).  `lanes` threads convert a row of `units` vectors;
 * exponent: scaling exponents of the columns, or NULL. */
template <class E, class T>
__global__ void __launch_bounds__(256)
convert_kernel(const T *__restrict__ x, int64_t ldx, int64_t n, int k,
               const int *__restrict__ exponent, int lanes,
               typename E::element *__restrict__ y)
{
    int units = (int)(low_ld(k) / 4), rows = 256 / lanes;
    int64_t i = (int64_t)blockIdx.x * rows + (int)threadIdx.x / lanes;

    if (i >= n) return;
    for (int u = (int)threadIdx.x % lanes; u < units; u += lanes) {
        typename E::element v[4];

#pragma unroll
        for (int l = 0; l < 4; l++) {
            int j = 4 * u + l;
            double a = j < k ? (double)__ldg(x + i * ldx + j) : 0.0;

            v[l] = E::round(exponent && j < k ? scalbn(a, -exponent[j]) : a);
        }
        ((typename E::vector *)y)[i * units + u] = E::pack(v);
    }
}

template <class E, class T>
sps_status convert_x(const sps_tca_plan *plan, const blocks<T> &b,
                     const int *exponent, source<typename E::element> *x)
{
    sps_context *ctx = plan->super.ctx;
    int lanes = power_above((int)(low_ld(b.k) / 4));
    typename E::element *y = (typename E::element *)plan->x;
    int64_t n = plan->super.A->ncol;

    if (lanes > 256) lanes = 256;
    SPS_TRY_RETURN(run_kernel(ctx, (unsigned)ceil_div(n, 256 / lanes), 256,
                              convert_kernel<E, T>, b.x, b.ldx, n, b.k,
                              exponent, lanes, y));
    *x = source<typename E::element>{y, low_ld(b.k), exponent};
    return SPS_OK;
}

/* Variant for operands of 16 bits, by mma.m16n8k8 with fp32 sums.  Entries are
 * in pairs: lane 4 gid + t has entries 2t and 2t + 1 of a chunk, and of the row
 * of X of each 2 * parts consecutive columns, by one load of 4, 8 or 16 bytes.
 * E also has multiply(o, d0, d1, s). */
template <class E, int PARTS> struct direct16 {
    typedef float sum;
    typedef uint16_t element;
    typedef uint32_t number, values;
    static constexpr int parts = PARTS, tile = 16 * parts, at_once = 4;
    static constexpr int threads = 512, rows_held = parts == 4 ? 1 : 2;
    static constexpr int pieces_held = rows_held;
    struct rows {
        uint32_t v[2][PARTS];
    };
    static __device__ __forceinline__ int column(int f, int gid)
    {
        return 2 * (parts * gid + f);
    }
    /* Returns, in even lanes, their own value and that of the next lane. */
    static __device__ __forceinline__ uint32_t round(double v, int exponent)
    {
        uint32_t mine = E::round(exponent ? scalbn(v, -exponent) : v);

        return mine | __shfl_down_sync(all_lanes, mine, 1) << 16;
    }
    template <bool ALIGNED>
    static __device__ __forceinline__ void
    load(const uint16_t *x, int64_t ld, int32_t col, int c, int left, int gid,
         int t, rows *r)
    {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int32_t entry = __shfl_sync(all_lanes, col, 8 * c + 2 * t + h);
            int j = column(0, gid);

            load_words(row_of(x, entry, ld) + j, entry >= 0 && j < left,
                       r->v[h]);
        }
    }
    static __device__ __forceinline__ uint32_t spread(uint32_t v, int c, int t)
    {
        return __shfl_sync(all_lanes, v, 8 * c + 2 * t);
    }
    static __device__ __forceinline__ void multiply(float (*o)[4],
                                                    const rows &r, uint32_t s)
    {
#pragma unroll
        for (int f = 0; f < parts; f++)
            E::multiply(o[f], __byte_perm(r.v[0][f], r.v[1][f], 0x5410),
                        __byte_perm(r.v[0][f], r.v[1][f], 0x7632), s);
    }
};

/* The types of elements of 16 bits, of which four make a vector. */
struct bits16 {
    typedef uint16_t element;
    typedef uint2 vector;
    static __device__ __forceinline__ uint2 pack(const uint16_t *v)
    {
        return make_uint2(v[0] | (uint32_t)v[1] << 16,
                          v[2] | (uint32_t)v[3] << 16);
    }
};

template <class E, class T>
sps_status launch_low(const sps_tca_plan *plan, const blocks<T> &b,
                      const source<uint16_t> &x)
{
    return b.k <= 16 ? launch_direct<direct16<E, 1>, T, true>(plan, b, x)
         : b.k <= 32 ? launch_direct<direct16<E, 2>, T, true>(plan, b, x)
                     : launch_direct<direct16<E, 4>, T, true>(plan, b, x);
}

/* The function spmm of a variant of low precision: P::product for the type of
 * the blocks. */
template <class P>
sps_status low_spmm(const sps_plan *super, const sps_spmm_args *args)
{
    const sps_tca_plan *plan = (const sps_tca_plan *)super;

    return args->Y->dtype == SPS_F64
               ? P::product(plan, blocks_of<double>(args))
               : P::product(plan, blocks_of<float>(args));
}

/* Builds the plan, with `bytes` bytes of memory at plan->x for the converted X
 * and its scaling exponents. */
inline sps_status low_plan(sps_plan *super, const sps_problem *p, size_t bytes)
{
    sps_tca_plan *plan = (sps_tca_plan *)super;

    SPS_TRY_RETURN(spsi_cuda_tca_plan(super, p, sizeof(float)));
    return spsi_plan_take(super, bytes, &plan->x);
}

inline size_t low_bytes(const sps_problem *p, size_t element)
{
    return (size_t)p->local->ncol * (size_t)low_ld(p->k) * element;
}

} // namespace

#endif
