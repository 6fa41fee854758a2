/* SPDX-License-Identifier: BSD-3-Clause */
/* ordered.cuh - loads that stay where they are written.
 *
 * A sparse kernel wants its columns and values in flight together, then the
 * numbers of x that the columns name.  The compiler sees no reason for that
 * order: to save registers it loads values behind the first use of a column,
 * and memory is waited for twice.  So: columns and values by __ldcs, then
 * __syncwarp(), then x by fetch.  Loads of ordinary memory do not cross the
 * barrier, those of the read-only path (__ldg) would; the barrier itself
 * vanishes where the warp is whole anyway. */
#ifndef SPS_CUDA_ORDERED_CUH
#define SPS_CUDA_ORDERED_CUH

#include "sparse.cuh"

namespace {

__device__ __forceinline__ double fetch(const double *p)
{
    double v;

    asm volatile("ld.global.f64 %0, [%1];" : "=d"(v) : "l"(p) : "memory");
    return v;
}
__device__ __forceinline__ float fetch(const float *p)
{
    float v;

    asm volatile("ld.global.f32 %0, [%1];" : "=f"(v) : "l"(p) : "memory");
    return v;
}
/* Zero, and nothing is read, unless asked for: a predicate, no branch. */
__device__ __forceinline__ double fetch_if(bool asked, const double *p)
{
    double v;

    asm volatile("{ .reg .pred q; setp.ne.s32 q, %2, 0; "
                 "mov.f64 %0, 0d0000000000000000; @q ld.global.f64 %0, [%1]; }"
                 : "=d"(v) : "l"(p), "r"((int)asked) : "memory");
    return v;
}
__device__ __forceinline__ float fetch_if(bool asked, const float *p)
{
    float v;

    asm volatile("{ .reg .pred q; setp.ne.s32 q, %2, 0; "
                 "mov.f32 %0, 0f00000000; @q ld.global.f32 %0, [%1]; }"
                 : "=f"(v) : "l"(p), "r"((int)asked) : "memory");
    return v;
}
__device__ __forceinline__ double2 fetch(const double2 *p)
{
    double2 v;

    asm volatile("ld.global.v2.f64 {%0, %1}, [%2];"
                 : "=d"(v.x), "=d"(v.y) : "l"(p) : "memory");
    return v;
}

/* Row j >= 0 of a block whose rows are `stride` bytes apart.  One instruction:
 * an address that takes more of them is formed too early, with a wait for the
 * column in front of the values. */
template <class N>
__device__ __forceinline__ const N *row_at(const N *x, int32_t j,
                                           uint32_t stride)
{
    return reinterpret_cast<const N *>(reinterpret_cast<const char *>(x) +
                                       (uint64_t)(uint32_t)j * stride);
}

/* Whether row_at can serve X; else there are rows 4 GB apart. */
inline bool near_rows(const sps_block *X)
{
    return (uint64_t)X->ld * spsi_dtype_size(X->dtype) <= UINT32_MAX;
}
template <class N>
__host__ __device__ __forceinline__ uint32_t stride_of(int64_t ld)
{
    return (uint32_t)(ld * (int64_t)sizeof(N));
}

/* A thread a row and no haste, for rows that are too far apart. */
template <class I, class V, class N>
__global__ void __launch_bounds__(256)
far_kernel(matrix<I, V> A, blocks<N> b)
{
    int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;

    b.resolve();
    if (i >= A.nrow) return;
    for (int j = 0; j < b.k; j++) {
        N *y = b.y + i * b.ldy + j;
        N sum = 0;

        for (I p = A.rowptr[i]; p < A.rowptr[i + 1]; p++)
            sum = fma((N)A.val[p], b.x[A.col[p] * b.ldx + j], sum);
        *y = b.join(sum, y, i);
    }
}

inline sps_status far_product(const sps_plan *plan, const sps_spmm_args *args)
{
    return with_all_types(plan->A, args, [&](auto A, auto b) -> sps_status {
        far_kernel<<<(unsigned)ceil_div(A.nrow, 256), 256, 0,
                     spsi_cuda_state(plan->ctx)->stream>>>(A, b);
        SPS_LAUNCHED(plan->ctx);
        return SPS_OK;
    });
}

} // namespace

#endif
