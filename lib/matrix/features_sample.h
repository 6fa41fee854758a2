/* SPDX-License-Identifier: BSD-3-Clause */
/* features_sample.h - the samples of windows of a host csr. */
#ifndef SPS_FEATURES_SAMPLE_H
#define SPS_FEATURES_SAMPLE_H

#include "matrix/windows.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fills in the elements of raw->sample below SPS_SAMPLE_WIDEST. */
sps_status spsi_features_sample(sps_context *ctx, const sps_csr *A,
                                sps_raw_features *raw);
/* Fills in what only kernels of GPUs need: the elements of raw->sample from
 * SPS_SAMPLE_WIDEST on, near, and inexact; raw->longest must be known. */
sps_status spsi_features_sample_gpu(sps_context *ctx, const sps_csr *A,
                                    sps_raw_features *raw);

#ifdef __cplusplus
}
#endif
#endif
