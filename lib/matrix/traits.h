/* SPDX-License-Identifier: BSD-3-Clause */
/* traits.h - the features of a matrix from which kernels predict their times.
 * They are measured once, in one pass over the rows and on samples of windows
 * of rows: by features.c for a csr in host memory, by the backend's
 * csr_features in the memory of a GPU, with the same results.  (Not named
 * features.h: glibc has <features.h>, and -I lib would find ours first.) */
#ifndef SPS_TRAITS_H
#define SPS_TRAITS_H

#include "matrix/csr.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SPS_LENGTH_BINS 32

typedef struct sps_features {
    int64_t nrow, ncol, nnz;
    int64_t min_length, max_length;     /* entries of a row */
    double mean_length, deviation;      /* mean, standard deviation */
    int64_t empty_rows;
    int64_t lengths[SPS_LENGTH_BINS];   /* rows with 2^(b-1) <= length < 2^b */
    int64_t bandwidth;                  /* max |i - j| */
    /* From up to 1024 windows of rows, spread over the matrix: */
    double distinct8, distinct64;       /* mean of distinct columns /
                                           nonzeros */
    int block;                          /* b in 2..8 with full b x b blocks,
                                           or 1 if there are none */
    double block_fill;                  /* fraction of entries in these */
    double fill[9];                     /* fill[b], b in 2..8: entries over
                                           b^2 times the number of nonempty
                                           aligned b x b blocks */
    uint64_t hash;                      /* of shape, rowptr and columns; 0 if
                                           it was not computed */
    int64_t padded32;                   /* entries if the rows of each slice
                                           of 32 were padded to the longest */
    /* Measured for GPUs only: */
    double near;                        /* fraction of up to 64 windows of up
                                           to 256 rows and 3520 entries whose
                                           columns lie in 8 segments of 8192 */
    bool exact;                         /* whether all values of a sample are
                                           exact in single precision */
    int64_t widest[3];                  /* for b = 8, 16, 32: the largest
                                           number of nonempty aligned b x b
                                           blocks in a block row of a sample;
                                           at least what the longest row
                                           needs */
} sps_features;

/* Measures the features of a csr in host memory. */
sps_status spsi_features_measure(sps_context *ctx, const sps_csr *A,
                                 sps_features *f);
/* Measures the features of a matrix in the memory of a GPU, by csr_features of
 * the backend. */
sps_status spsi_features_there(sps_context *ctx, const sps_csr_local *A,
                               sps_features *f);
/* Returns the hash of shape, offsets and columns, for f->hash. */
uint64_t spsi_features_hash(sps_context *ctx, const sps_csr *A);

#ifdef __cplusplus
}
#endif
#endif
