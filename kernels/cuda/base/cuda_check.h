/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_check.h - turns failures of CUDA into statuses.
 *
 * All macros return from the calling function.  Out of memory is SPS_EDEVMEM
 * with the bytes requested and free; everything else is SPS_EDEVICE with the
 * driver's message.  After a sticky error (a fault inside a kernel, a lost
 * device) no call of this process can succeed on that device, so the context is
 * marked dead and later calls return at once. */
#ifndef SPS_CUDA_CHECK_H
#define SPS_CUDA_CHECK_H

#include <cuda_runtime_api.h>

#include "core/context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Functions of the macros below, defined in state.c: set the status and the
 * message for a failed call `what` in line `line` of `file`. */
sps_status spsi_cuda_failed(sps_context *ctx, cudaError_t error,
                            const char *what, const char *file, int line);
/* Reports that device memory is exhausted: bytes requested, and the bytes free
 * if the driver reports them. */
sps_status spsi_cuda_no_memory(sps_context *ctx, size_t bytes);

#ifdef __cplusplus
}
#endif

#define SPS_CUDA(ctx, call)                                                    \
    do {                                                                       \
        cudaError_t error_ = (call);                                           \
        if (error_ != cudaSuccess)                                             \
            return spsi_cuda_failed((ctx), error_, #call, __FILE__, __LINE__); \
    } while (0)
/* To be used after every kernel launch.  With SPS_CUDA_DEBUG it also
 * synchronises, so that a fault is reported at the launch that caused it. */
#ifdef SPS_CUDA_DEBUG
#define SPS_LAUNCHED(ctx)                                                      \
    do {                                                                       \
        SPS_CUDA((ctx), cudaPeekAtLastError());                                \
        SPS_CUDA((ctx), cudaStreamSynchronize((cudaStream_t)(ctx)->stream));   \
    } while (0)
#else
#define SPS_LAUNCHED(ctx) SPS_CUDA((ctx), cudaPeekAtLastError())
#endif

#endif
