/* SPDX-License-Identifier: BSD-3-Clause */
/* sparse.cuh - what the SpMM and SDDMM kernels share: the matrix as kernels
 * see it, and the choice of types at the launch. */
#ifndef SPS_CUDA_SPARSE_CUH
#define SPS_CUDA_SPARSE_CUH

#include "device.cuh"
#include "kernel.h"

namespace {

/* I: int32_t where the offsets allow, else int64_t; V: double or float. */
template <class I, class V> struct matrix {
    int64_t nrow;
    const I *__restrict__ rowptr;
    const int32_t *__restrict__ col;
    const V *__restrict__ val;
};

template <class I, class V> matrix<I, V> matrix_of(const sps_csr_local *A)
{
    matrix<I, V> m;

    m.nrow = A->nrow;
    m.rowptr = sizeof(I) == 4 ? (const I *)A->rowptr32 : (const I *)A->rowptr;
    m.col = A->col;
    m.val = (const V *)A->val;
    return m;
}

/* Y = alpha A X + beta Y as kernels see it. */
struct blocks {
    double alpha, beta;
    const double *__restrict__ x;
    int64_t ldx;
    double *__restrict__ y;
    int64_t ldy;
    int k;
};

inline blocks blocks_of(const sps_spmm_args *args)
{
    blocks b;

    b.alpha = args->alpha;
    b.beta = args->beta;
    b.x = numbers(args->X);
    b.ldx = args->X->ld;
    b.y = numbers(args->Y);
    b.ldy = args->Y->ld;
    b.k = args->Y->k;
    return b;
}

/* The epilogue hook: a row-parallel kernel calls finish(i, j, sum) once for
 * each element, from the lane that owns it, with the sum over the row.  This
 * one is Y = alpha A X + beta Y; a fused form (a residual F - A X, a three-term
 * recurrence, a scaling by rows) is another struct with the same call. */
struct axpby_epilogue {
    double alpha, beta;
    double *__restrict__ y;
    int64_t ldy;

    __device__ __forceinline__ void operator()(int64_t i, int j,
                                               double sum) const
    {
        double *p = y + i * ldy + j;

        *p = beta != 0 ? fma(beta, *p, alpha * sum) : alpha * sum;
    }
};

inline axpby_epilogue epilogue_of(const blocks &b)
{
    return axpby_epilogue{b.alpha, b.beta, b.y, b.ldy};
}

/* call(matrix) with the types of A. */
template <class F> sps_status with_types(const sps_csr_local *A, const F &call)
{
    if (A->dtype == SPS_F64)
        return A->rowptr32 ? call(matrix_of<int32_t, double>(A))
                           : call(matrix_of<int64_t, double>(A));
    return A->rowptr32 ? call(matrix_of<int32_t, float>(A))
                       : call(matrix_of<int64_t, float>(A));
}

/* Nothing to multiply: Y = beta Y, reading neither A nor X. */
inline bool trivial(const sps_plan *plan, const sps_spmm_args *args)
{
    return args->alpha == 0 || plan->A->nnz == 0;
}

inline sps_status scale_only(const sps_spmm_args *args)
{
    if (args->beta == 1) return SPS_OK;
    if (args->beta == 0) return spsi_cuda_fill(args->Y, 0.0);
    return spsi_cuda_axpby(0.0, args->Y, args->beta, args->Y);
}

/* Seconds: the bytes that must move, at a share of the copy bandwidth. */
inline double seconds(const sps_problem *p, double share)
{
    return spsi_spmm_floor(p->f, p->A->dtype, p->k) / (share * p->bandwidth) +
           3e-6;
}

} // namespace

#endif
