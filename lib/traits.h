/* SPDX-License-Identifier: BSD-3-Clause */
/* traits.h - what planning may know of a matrix; measured once, in one pass
 * over the pattern plus a sample of windows (features.c).  Not called
 * features.h: glibc has <features.h>, and -I lib would put ours before it. */
#ifndef SPS_TRAITS_H
#define SPS_TRAITS_H

#include "csr.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SPS_LENGTH_BINS 32

typedef struct sps_features {
    int64_t nrow, ncol, nnz;
    int64_t min_length, max_length;     /* of rows */
    double mean_length, deviation;      /* standard deviation */
    int64_t empty_rows;
    int64_t lengths[SPS_LENGTH_BINS];   /* rows with 2^(b-1) <= length < 2^b */
    int64_t bandwidth;                  /* max |i - j| */
    /* On up to 1024 windows spread over the rows: */
    double distinct8, distinct64;       /* distinct columns / nonzeros, mean */
    int block;                          /* b in 2..8 with full b x b blocks, or 1 */
    double block_fill;                  /* share of stored entries in those */
    double fill[9];                     /* [b], b in 2..8: entries / numbers of
                                           the aligned b x b blocks that have
                                           some */
    uint64_t hash;                      /* of shape, rowptr and columns */
} sps_features;

sps_status spsi_features_measure(sps_context *ctx, const sps_csr *A,
                                 sps_features *f);

#ifdef __cplusplus
}
#endif
#endif
