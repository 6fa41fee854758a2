/* SPDX-License-Identifier: BSD-3-Clause */
/* ordered.cuh - loads whose order the compiler does not change.
 *
 * A sparse kernel should first issue all loads of columns and values, then the
 * loads of the entries of x that these columns select.  The compiler does not
 * know that this order matters: to save registers it moves the loads of values
 * after the first use of a column, so that the memory latency is paid twice.
 * Therefore: columns and values by __ldcs, then __syncwarp(), then x by fetch.
 * Ordinary loads are not moved across the barrier; loads by the read-only path
 * (__ldg) would be.  The barrier itself generates no code where the warp is
 * known to be converged. */
#ifndef SPS_CUDA_ORDERED_CUH
#define SPS_CUDA_ORDERED_CUH

#include "cuda/sparse/sparse.cuh"

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
/* Loads *p if `asked`, else returns zero without a load; predicated, without a
 * branch. */
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

/* Returns the address of row j >= 0 of a block whose rows are `stride` bytes
 * apart.  The address needs one instruction; if it needed several, the compiler
 * would form it early and wait for the column before it loads the values. */
template <class N>
__device__ __forceinline__ const N *row_at(const N *x, int32_t j,
                                           uint32_t stride)
{
    return reinterpret_cast<const N *>(reinterpret_cast<const char *>(x) +
                                       (uint64_t)(uint32_t)j * stride);
}

/* Returns whether the row stride of X fits the 32 bits of row_at (less than 4
 * GB). */
inline bool near_rows(const sps_block *X)
{
    return (uint64_t)X->ld * spsi_dtype_size(X->dtype) <= UINT32_MAX;
}
template <class N>
__host__ __device__ __forceinline__ uint32_t stride_of(int64_t ld)
{
    return (uint32_t)(ld * (int64_t)sizeof(N));
}

/* Calls `product` if the row stride of X fits the 32 bits of row_at, else
 * spsi_cuda_far_product. */
template <sps_status (*product)(const sps_plan *, const sps_spmm_args *)>
sps_status near_only(const sps_plan *plan, const sps_spmm_args *args)
{
    return near_rows(args->X) ? product(plan, args)
                              : spsi_cuda_far_product(plan, args);
}

} // namespace

#endif
