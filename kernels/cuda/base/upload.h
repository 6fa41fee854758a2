/* SPDX-License-Identifier: BSD-3-Clause */
/* upload.h - uploads of large host arrays to the device. */
#ifndef SPS_CUDA_UPLOAD_H
#define SPS_CUDA_UPLOAD_H

#include "cuda/base/state.h"

/* Copies `bytes` bytes from host memory to device memory; complete on
 * return. */
sps_status spsi_cuda_upload(sps_context *ctx, void *to, const void *from,
                            size_t bytes);

#endif
