/* SPDX-License-Identifier: BSD-3-Clause */
/* runs.h - runs along diagonals: in slices of 8 rows, entries in 8 consecutive
 * rows and 8 consecutive columns share one column index (Agarwal, Gustavson and
 * Zubair, "A high performance algorithm using pre-processing for the sparse
 * matrix-vector multiplication", SC 1992; BCSD of Karakasis, Goumas and
 * Koziris, ICPP 2009).
 *
 * Slice s consists of rows 8 s .. 8 s + 7.  A run q of it contains, for r = 0
 * .. 7,
 *
 *     entry (8 s + r, base[q] + r),    val[8 q + r],
 *
 * with an explicit zero where A stores no entry.  Runs of a slice are in
 * ascending order of base; at least SPS_RUN_LEAST entries of each are stored in
 * A, and all of its columns exist.  The rest, that is, all other entries, and
 * those of a last slice with fewer rows, are listed by row: rest_col, rest_row
 * (0 .. 7), rest_val.
 *
 * Bytes: 8.5 for each value in a run, where CSR needs 12 for each entry, or 4.5
 * if all values are exact in single precision; 13 for each entry of the rest; 2
 * for each row. */
#ifndef SPS_FORMAT_RUNS_H
#define SPS_FORMAT_RUNS_H

#include "plan/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SPS_RUN = 8, SPS_RUN_LEAST = 4 };

typedef struct sps_runs {
    int64_t nrow, ncol, slices;
    int64_t *run, *rest;       /* slices + 1 elements: first run and first entry
                                  of the rest of each slice */
    int32_t *base;
    void *val;
    int32_t *rest_col;
    uint8_t *rest_row;
    void *rest_val;
    sps_dtype dtype;           /* type of the values */
} sps_runs;

/* Returns the bytes for each entry of A in this format, estimated from some of
 * its slices. */
double spsi_runs_bytes(const sps_csr *A);
/* Builds the runs from a sorted csr on the host.  spsi_runs_clear must be
 * called also after a failure. */
sps_status spsi_runs_from_csr(sps_context *ctx, const sps_csr_local *A,
                              sps_runs *f);
/* Updates the values from a csr with the same pattern. */
sps_status spsi_runs_refresh(sps_context *ctx, const sps_csr_local *A,
                             sps_runs *f);
void spsi_runs_clear(sps_context *ctx, sps_runs *f);
size_t spsi_runs_size(const sps_runs *f);

/* Stores entry p of A at to[i], in the type of the values of a format. */
static inline void spsi_put_value(void *to, sps_dtype type, int64_t i,
                                  const sps_csr_local *A, int64_t p)
{
    const double a = A->dtype == SPS_F64 ? ((const double *)A->val)[p]
                                         : (double)((const float *)A->val)[p];

    if (type == SPS_F64) ((double *)to)[i] = a;
    else ((float *)to)[i] = (float)a;
}

/* Returns whether all values are exact in single precision. */
bool spsi_values_exact(sps_context *ctx, const sps_csr_local *A);

#ifdef __cplusplus
}
#endif
#endif
