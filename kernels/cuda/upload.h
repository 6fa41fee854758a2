/* SPDX-License-Identifier: BSD-3-Clause */
/* upload.h - large arrays of the host to the device. */
#ifndef SPS_CUDA_UPLOAD_H
#define SPS_CUDA_UPLOAD_H

#include "state.h"

/* Waits for it. */
sps_status spsi_cuda_upload(sps_context *ctx, void *to, const void *from,
                            size_t bytes);

#endif
