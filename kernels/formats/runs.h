/* SPDX-License-Identifier: BSD-3-Clause */
/* runs.h - runs along diagonals: slices of 8 rows, whose entries in 8
 * consecutive rows and columns share one index (Agarwal, Gustavson and Zubair,
 * "A high performance algorithm using pre-processing for the sparse
 * matrix-vector multiplication", SC 1992; BCSD of Karakasis, Goumas and Koziris,
 * ICPP 2009).
 *
 * Slice s holds rows 8 s .. 8 s + 7.  A run q of it holds, for r = 0 .. 7,
 *
 *     entry (8 s + r, base[q] + r),    val[8 q + r],
 *
 * an explicit zero where A stores none.  Runs of a slice are in ascending order
 * of base; at least SPS_RUN_LEAST entries of each are stored ones, and all of
 * its columns exist.  Other entries, and all of a last slice of fewer rows, are
 * listed by row: rest_col, rest_row (0 .. 7), rest_val.
 *
 * Bytes: 8.5 for each number in a run, where CSR has 12 for each entry, and 4.5
 * if all values are exact in single precision; 13 for one of the rest; 2 for
 * each row. */
#ifndef SPS_FORMAT_RUNS_H
#define SPS_FORMAT_RUNS_H

#include "plan/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SPS_RUN = 8, SPS_RUN_LEAST = 4 };

typedef struct sps_runs {
    int64_t nrow, ncol, slices;
    int64_t *run, *rest;       /* slices + 1: first run, first of the rest */
    int32_t *base;
    void *val;
    int32_t *rest_col;
    uint8_t *rest_row;
    void *rest_val;
    sps_dtype dtype;           /* of the values */
} sps_runs;

/* Bytes for each entry of A in this format, estimated from some of its
 * slices. */
double spsi_runs_bytes(const sps_csr *A);
/* Builds the runs of a sorted host csr.  Clear also after failure. */
sps_status spsi_runs_from_csr(sps_context *ctx, const sps_csr_local *A,
                              sps_runs *f);
/* New values on the same pattern. */
sps_status spsi_runs_refresh(sps_context *ctx, const sps_csr_local *A,
                             sps_runs *f);
void spsi_runs_clear(sps_context *ctx, sps_runs *f);
size_t spsi_runs_size(const sps_runs *f);

/* Whether all values are exact in single precision. */
bool spsi_values_exact(sps_context *ctx, const sps_csr_local *A);

#ifdef __cplusplus
}
#endif
#endif
