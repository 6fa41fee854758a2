/* SPDX-License-Identifier: BSD-3-Clause */
/* bulk.cuh - bulk copies from device memory to shared memory: by the copy
 * engine of a multiprocessor (TMA, from sm_90 on), which needs no registers and
 * few instructions; where there is none, threads copy instead.
 *
 * Use: one thread calls bulk_open, __syncthreads(), one thread issues the
 * copies (16-byte aligned, multiples of 16 bytes), all threads call bulk_wait.
 * PTX ISA, "cp.async.bulk" and "mbarrier". */
#ifndef SPS_CUDA_BULK_CUH
#define SPS_CUDA_BULK_CUH

#include <stdint.h>

namespace {

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
constexpr bool has_bulk = true;
#else
constexpr bool has_bulk = false;
#endif

__device__ __forceinline__ uint32_t shared_address(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

/* Initialises the barrier, which opens when copies of `bytes` bytes in total
 * have arrived; called by the thread that issues the copies. */
__device__ __forceinline__ void bulk_open(uint64_t *barrier, uint32_t bytes)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.init.shared.b64 [%0], 1;\n\t"
                 "fence.mbarrier_init.release.cluster;\n\t"
                 "mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;"
                 :: "r"(shared_address(barrier)), "r"(bytes) : "memory");
#endif
}
__device__ __forceinline__ void bulk_copy(void *to, const void *from,
                                          uint32_t bytes, uint64_t *barrier)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier"
                 "::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(shared_address(to)), "l"(from), "r"(bytes),
                    "r"(shared_address(barrier)) : "memory");
#endif
}
/* Waits until all copies have arrived.  Called by all threads, after the
 * __syncthreads() that follows bulk_open. */
__device__ __forceinline__ void bulk_wait(uint64_t *barrier)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
    asm volatile("{ .reg .pred done;\n"
                 "again: mbarrier.try_wait.parity.shared.b64 done, [%0], 0;\n"
                 "@!done bra again; }"
                 :: "r"(shared_address(barrier)) : "memory");
#endif
}

} // namespace

#endif
