/* SPDX-License-Identifier: BSD-3-Clause */
/* diagonals.h - storage by diagonals, for matrices all of whose entries are on
 * a few diagonals, such as the stencils of grids (Saad, Iterative Methods for
 * Sparse Linear Systems, 2nd ed., 3.4).
 *
 * Diagonal d has the entries (i, i + distance[d]); its value in row i is
 *
 *     val[at[d] + i],
 *
 * zero where A stores no entry.  Distances ascend.  If A is symmetric, a
 * diagonal below the main one has no values of its own: at[d] refers to those
 * of the one above it, which the caches still have.
 *
 * Bytes: 8 for each row and diagonal that has values of its own, 4 if all
 * values are exact in single precision; no columns. */
#ifndef SPS_FORMAT_DIAGONALS_H
#define SPS_FORMAT_DIAGONALS_H

#include "plan/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SPS_DIAGONALS = 32 };   /* at most */

typedef struct sps_diagonals {
    int64_t nrow, ncol;
    int count, stored;         /* diagonals; those with values of their own */
    int64_t distance[SPS_DIAGONALS], at[SPS_DIAGONALS];
    void *val;
    sps_dtype dtype;           /* type of the values */
    bool half;                 /* diagonals below the main one share values */
} sps_diagonals;

/* Sets the diagonals and `half`, without values, to what samples of the rows of
 * A show; returns false if there are too many diagonals. */
bool spsi_diagonals_survey(const sps_csr_local *A, sps_diagonals *f);
/* Returns whether all entries of A are on the diagonals of f. */
bool spsi_diagonals_hold(const sps_diagonals *f, const sps_csr_local *A);
/* Builds the diagonals from a sorted csr on the host, which they hold.
 * spsi_diagonals_clear must be called also after a failure. */
sps_status spsi_diagonals_from_csr(sps_context *ctx, const sps_csr_local *A,
                                   sps_diagonals *f);
/* Updates the values from a csr with the same pattern. */
sps_status spsi_diagonals_refresh(sps_context *ctx, const sps_csr_local *A,
                                  sps_diagonals *f);
void spsi_diagonals_clear(sps_context *ctx, sps_diagonals *f);
size_t spsi_diagonals_size(const sps_diagonals *f);

#ifdef __cplusplus
}
#endif
#endif
