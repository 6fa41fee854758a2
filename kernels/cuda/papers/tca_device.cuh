/* SPDX-License-Identifier: BSD-3-Clause */
/* tca_device.cuh - common device code of the TCA-SpMM kernels: the matrix and
 * its work list (formats/tca.h), loads without branches, and the kernels for
 * split rows and for empty rows. */
#ifndef SPS_CUDA_TCA_CUH
#define SPS_CUDA_TCA_CUH

#include "cuda/sparse/sparse.cuh"
#include "cuda/papers/tca_plan.h"

namespace {

struct tca_work {
    const int64_t *__restrict__ rowptr;
    const int32_t *__restrict__ rowptr32; /* row offsets in 32 bits; NULL:
                                             rowptr is used */
    const int32_t *__restrict__ col;
    const void *__restrict__ val;
    bool wide;                            /* whether val has doubles; else
                                             floats */
    const int16_t *__restrict__ exponent; /* scaling exponents of rows; NULL:
                                             all 0 */
    const int32_t *__restrict__ slot;
    const spsi_tca_piece *__restrict__ piece;
    int64_t count;                        /* number of teams (or pieces) that
                                             the launch processes */

    __device__ __forceinline__ int64_t begin(int64_t i) const
    {
        return rowptr32 ? (int64_t)__ldg(rowptr32 + i) : __ldg(rowptr + i);
    }
    __device__ __forceinline__ double value(int64_t p) const
    {
        return wide ? __ldg((const double *)val + p)
                    : (double)__ldg((const float *)val + p);
    }
    __device__ __forceinline__ int exponent_of(int64_t row) const
    {
        return exponent ? exponent[row] : 0;
    }
};

/* X as the kernels read it, columns 0 to k - 1, in element type X. */
template <class X> struct source {
    const X *__restrict__ x;
    int64_t ld;
    const int *__restrict__ exponent; /* scaling exponents of columns; NULL: all
                                         0 */

    __device__ __forceinline__ int exponent_of(int j) const
    {
        return exponent ? exponent[j] : 0;
    }
};

/* Returns the address of row j >= 0 of X. */
template <class X>
__device__ __forceinline__ const X *row_of(const X *x, int32_t j, int64_t ld)
{
    return x + (uint64_t)(uint32_t)j * (uint64_t)ld;
}

/* Loads consecutive numbers of a row of X, of which the first `left` exist; the
 * others become zero and are not read.  The loads are predicated, without
 * branches: otherwise lanes that read nothing would clear registers which are
 * the destination of pending loads of other lanes, and each load would wait for
 * the one before.  ALIGNED: p is aligned to the whole vector. */
template <bool ALIGNED>
__device__ __forceinline__ double2 load_two(const double *p, int left)
{
    double2 v;

    if (ALIGNED)
        asm("{.reg .pred a, b;\n\t"
            "setp.ge.s32 a, %3, 2;\n\tsetp.eq.s32 b, %3, 1;\n\t"
            "mov.f64 %0, 0d0000000000000000;\n\t"
            "mov.f64 %1, 0d0000000000000000;\n\t"
            "@a ld.global.nc.v2.f64 {%0, %1}, [%2];\n\t"
            "@b ld.global.nc.f64 %0, [%2];}"
            : "=&d"(v.x), "=&d"(v.y) : "l"(p), "r"(left));
    else
        asm("{.reg .pred a, b;\n\t"
            "setp.ge.s32 a, %3, 2;\n\tsetp.ge.s32 b, %3, 1;\n\t"
            "mov.f64 %0, 0d0000000000000000;\n\t"
            "mov.f64 %1, 0d0000000000000000;\n\t"
            "@a ld.global.nc.f64 %1, [%2+8];\n\t"
            "@b ld.global.nc.f64 %0, [%2];}"
            : "=&d"(v.x), "=&d"(v.y) : "l"(p), "r"(left));
    return v;
}

template <bool ALIGNED>
__device__ __forceinline__ float2 load_two(const float *p, int left)
{
    float2 v;

    if (ALIGNED)
        asm("{.reg .pred a, b;\n\t"
            "setp.ge.s32 a, %3, 2;\n\tsetp.eq.s32 b, %3, 1;\n\t"
            "mov.f32 %0, 0f00000000;\n\tmov.f32 %1, 0f00000000;\n\t"
            "@a ld.global.nc.v2.f32 {%0, %1}, [%2];\n\t"
            "@b ld.global.nc.f32 %0, [%2];}"
            : "=&f"(v.x), "=&f"(v.y) : "l"(p), "r"(left));
    else
        asm("{.reg .pred a, b;\n\t"
            "setp.ge.s32 a, %3, 2;\n\tsetp.ge.s32 b, %3, 1;\n\t"
            "mov.f32 %0, 0f00000000;\n\tmov.f32 %1, 0f00000000;\n\t"
            "@a ld.global.nc.f32 %1, [%2+4];\n\t"
            "@b ld.global.nc.f32 %0, [%2];}"
            : "=&f"(v.x), "=&f"(v.y) : "l"(p), "r"(left));
    return v;
}

template <bool ALIGNED>
__device__ __forceinline__ float4 load_four(const float *p, int left)
{
    float4 v;

    if (!ALIGNED) {
        float2 low = load_two<false>(p, left);
        float2 high = load_two<false>(p + 2, left - 2);

        return make_float4(low.x, low.y, high.x, high.y);
    }
    asm("{.reg .pred a, b, c, d, e;\n\t"
        "setp.ge.s32 a, %5, 4;\n\tsetp.lt.s32 e, %5, 4;\n\t"
        "setp.ge.and.s32 b, %5, 1, e;\n\tsetp.ge.and.s32 c, %5, 2, e;\n\t"
        "setp.eq.s32 d, %5, 3;\n\t"
        "mov.f32 %0, 0f00000000;\n\tmov.f32 %1, 0f00000000;\n\t"
        "mov.f32 %2, 0f00000000;\n\tmov.f32 %3, 0f00000000;\n\t"
        "@a ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4];\n\t"
        "@b ld.global.nc.f32 %0, [%4];\n\t"
        "@c ld.global.nc.f32 %1, [%4+4];\n\t"
        "@d ld.global.nc.f32 %2, [%4+8];}"
        : "=&f"(v.x), "=&f"(v.y), "=&f"(v.z), "=&f"(v.w) : "l"(p), "r"(left));
    return v;
}

/* Loads 2, 4 or 8 numbers of 16 bits, or zeros if not `ok`; p is aligned to the
 * whole vector. */
__device__ __forceinline__ void load_words(const void *p, bool ok,
                                           uint32_t (&v)[1])
{
    asm("{.reg .pred a;\n\tsetp.ne.s32 a, %2, 0;\n\tmov.u32 %0, 0;\n\t"
        "@a ld.global.nc.u32 %0, [%1];}"
        : "=&r"(v[0]) : "l"(p), "r"((int)ok));
}
__device__ __forceinline__ void load_words(const void *p, bool ok,
                                           uint32_t (&v)[2])
{
    asm("{.reg .pred a;\n\tsetp.ne.s32 a, %3, 0;\n\t"
        "mov.u32 %0, 0;\n\tmov.u32 %1, 0;\n\t"
        "@a ld.global.nc.v2.u32 {%0, %1}, [%2];}"
        : "=&r"(v[0]), "=&r"(v[1]) : "l"(p), "r"((int)ok));
}
__device__ __forceinline__ void load_words(const void *p, bool ok,
                                           uint32_t (&v)[4])
{
    asm("{.reg .pred a;\n\tsetp.ne.s32 a, %5, 0;\n\t"
        "mov.u32 %0, 0;\n\tmov.u32 %1, 0;\n\t"
        "mov.u32 %2, 0;\n\tmov.u32 %3, 0;\n\t"
        "@a ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];}"
        : "=&r"(v[0]), "=&r"(v[1]), "=&r"(v[2]), "=&r"(v[3])
        : "l"(p), "r"((int)ok));
}

/* Returns the sum times 2^exponent, exact unless the result is out of range. */
template <class S>
__device__ __forceinline__ double scaled(S sum, int exponent)
{
    return exponent ? scalbn((double)sum, exponent) : (double)sum;
}

/* Computes Y in the split rows: adds the partial sums of their pieces in order;
 * one thread per element. */
template <class S, class X, class T>
__global__ void __launch_bounds__(256)
join_kernel(tca_work w, const spsi_tca_split *__restrict__ split,
            int64_t splits, const S *__restrict__ partial, source<X> x,
            blocks<T> b)
{
    int64_t e = (int64_t)blockIdx.x * 256 + threadIdx.x, i = e / b.k;
    int j = (int)(e % b.k);

    b.resolve();
    if (i >= splits) return;
    spsi_tca_split r = split[i];
    T *y = b.y + (int64_t)r.row * b.ldy + j;
    double sum = 0;

    for (int s = 0; s < r.count; s++)
        sum += (double)partial[(r.first + s) * b.k + j];
    *y = b.join(scaled(sum, w.exponent_of(r.row) + x.exponent_of(j)), y);
}

/* Computes Y = beta Y in the rows of A without entries. */
template <class T>
__global__ void __launch_bounds__(256)
empty_kernel(const int32_t *__restrict__ empty, int64_t count, blocks<T> b)
{
    int64_t e = (int64_t)blockIdx.x * 256 + threadIdx.x, i = e / b.k;

    b.resolve();
    if (i >= count) return;
    T *y = b.y + (int64_t)empty[i] * b.ldy + e % b.k;

    *y = b.join(T(0), y);
}

inline tca_work work_of(const sps_tca_plan *plan)
{
    const sps_csr_local *A = plan->super.A;
    tca_work w;

    w.rowptr = A->rowptr;
    w.rowptr32 = A->rowptr32;
    w.col = A->col;
    w.val = A->val;
    w.wide = A->dtype == SPS_F64;
    w.exponent = (const int16_t *)plan->scale;
    w.slot = plan->work.slot;
    w.piece = plan->work.piece;
    w.count = 0;
    return w;
}

/* Returns how many teams or pieces a thread block processes: `most` if there
 * are many, so that neighbouring rows share X in L1, but never so many that
 * multiprocessors are idle. */
inline int run_of(const sps_context *ctx, int64_t count, int least, int most)
{
    int64_t run = count / (4 * (int64_t)spsi_cuda_state(ctx)->sms);

    return run < least ? least : run > most ? most : (int)run;
}

/* Computes the rows of Y that are left after teams and pieces: split rows, from
 * their partial sums, and empty rows. */
template <class S, class X, class T>
sps_status finish_rows(const sps_tca_plan *plan, const blocks<T> &b,
                       const source<X> &x)
{
    sps_context *ctx = plan->super.ctx;
    const spsi_tca *list = &plan->work;

    if (list->n.splits > 0)
        SPS_TRY_RETURN(run_items(ctx, list->n.splits * b.k,
                                 join_kernel<S, X, T>, work_of(plan),
                                 list->split, list->n.splits,
                                 (const S *)plan->partial, x, b));
    if (list->n.empties > 0)
        SPS_TRY_RETURN(run_items(ctx, list->n.empties * b.k, empty_kernel<T>,
                                 list->empty, list->n.empties, b));
    return SPS_OK;
}

} // namespace

#endif
