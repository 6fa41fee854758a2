/* SPDX-License-Identifier: BSD-3-Clause */
/* slices.h - slices of rows: 8 rows of about equal length are stored side by
 * side, so that one vector instruction processes an entry of each (SELL-C-sigma
 * of Kreutzer, Hager, Wellein, Fehske and Bishop, SIAM J. Sci. Comput. 36,
 * 2014, here without padding).
 *
 * Rows are sorted by descending length within windows of SPS_SLICE_WINDOW rows,
 * so that accesses to X are about as local as in A; row[8 s + r] is row r of
 * slice s.  Its first full[s] entries, as many as the shortest of the 8 rows
 * has, are at
 *
 *     start[s] + 8 e + r,    e = 0 .. full[s] - 1,
 *
 * followed by the further entries of row 0, then of row 1 and so on.  A last
 * slice of fewer rows has full = 0.
 *
 * Bytes: 12 for each entry, as in CSR; 10 if the columns of every slice span at
 * most 65536; 4 less if all values are exact in single precision; and 6 for
 * each row. */
#ifndef SPS_FORMAT_SLICES_H
#define SPS_FORMAT_SLICES_H

#include "plan/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SPS_SLICE = 8, SPS_SLICE_WINDOW = 4096 };

typedef struct sps_slices {
    int64_t nrow, nnz, slices;
    int32_t *row;              /* nrow elements */
    int64_t *start;            /* slices + 1 elements */
    int32_t *full;             /* slices elements */
    int32_t *base;             /* slices elements: smallest column of each */
    int32_t *col;              /* nnz columns; or NULL, and then */
    uint16_t *near;            /* nnz distances from base, else NULL */
    void *val;
    sps_dtype dtype;           /* type of the values */
} sps_slices;

/* Sorts and copies a sorted csr on the host with fewer than 2^31 rows.
 * spsi_slices_clear must be called also after a failure. */
sps_status spsi_slices_from_csr(sps_context *ctx, const sps_csr_local *A,
                                sps_slices *f);
/* Updates the values from a csr with the same pattern. */
sps_status spsi_slices_refresh(sps_context *ctx, const sps_csr_local *A,
                               sps_slices *f);
void spsi_slices_clear(sps_context *ctx, sps_slices *f);
size_t spsi_slices_size(const sps_slices *f);

#ifdef __cplusplus
}
#endif
#endif
