/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_view.cuh - the CSR matrix as kernels see it, and the selection of its
 * types at the launch. */
#ifndef SPS_CUDA_CSR_VIEW_CUH
#define SPS_CUDA_CSR_VIEW_CUH

#include "cuda/base/device.cuh"
#include "matrix/csr.h"

namespace {

/* A CSR matrix as passed to kernels.  I is int32_t if the offsets fit,
 * otherwise int64_t; V is double or float. */
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

/* Calls call(rowptr) with the row offsets of A in their type, 32 or 64 bits. */
template <class F>
sps_status with_offsets(const sps_csr_local *A, const F &call)
{
    return A->rowptr32 ? call(A->rowptr32) : call(A->rowptr);
}

/* Calls call(M), where M is A as a matrix<I, V>: I is the type of its offsets,
 * V that of its values. */
template <class F> sps_status with_types(const sps_csr_local *A, const F &call)
{
    if (A->dtype == SPS_F64)
        return A->rowptr32 ? call(matrix_of<int32_t, double>(A))
                           : call(matrix_of<int64_t, double>(A));
    return A->rowptr32 ? call(matrix_of<int32_t, float>(A))
                       : call(matrix_of<int64_t, float>(A));
}

} // namespace

#endif
