/* SPDX-License-Identifier: BSD-3-Clause */
/* library_check.h - cuBLAS and cuSPARSE: the handles of a context, and their
 * failures as statuses (cuda_check.h).
 *
 * Included only where they are called: their headers take a second to compile,
 * most of what a short .cu file takes. */
#ifndef SPS_CUDA_LIBRARY_CHECK_H
#define SPS_CUDA_LIBRARY_CHECK_H

#define DISABLE_CUSPARSE_DEPRECATED 1    /* no warnings in its header */
#include <cublas_v2.h>
#include <cusparse.h>

#include "cuda/base/state.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Functions of the macros below, defined in state.c. */
sps_status spsi_cublas_failed(sps_context *ctx, cublasStatus_t error,
                              const char *what, const char *file, int line);
sps_status spsi_cusparse_failed(sps_context *ctx, cusparseStatus_t error,
                                const char *what, const char *file, int line);
/* Returns the handle of cuSPARSE, created at the first call. */
sps_status spsi_cuda_sparse(sps_context *ctx, cusparseHandle_t *handle_p);

#ifdef __cplusplus
}
#endif

#define SPS_CUBLAS(ctx, call)                                                  \
    do {                                                                       \
        cublasStatus_t error_ = (call);                                        \
        if (error_ != CUBLAS_STATUS_SUCCESS)                                   \
            return spsi_cublas_failed((ctx), error_, #call, __FILE__,          \
                                      __LINE__);                               \
    } while (0)
#define SPS_CUSPARSE(ctx, call)                                                \
    do {                                                                       \
        cusparseStatus_t error_ = (call);                                      \
        if (error_ != CUSPARSE_STATUS_SUCCESS)                                 \
            return spsi_cusparse_failed((ctx), error_, #call, __FILE__,        \
                                        __LINE__);                             \
    } while (0)

#endif
