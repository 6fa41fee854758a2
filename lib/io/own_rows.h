/* SPDX-License-Identifier: BSD-3-Clause */
/* own_rows.h - which rows of a matrix in a file each of several processes owns,
 * and the csr of them.
 *
 * Rows are consecutive, in shares of about equal entries + rows, or of equal
 * rows: entries then count as 0.  Entries are counted in buckets of rows: of
 * one row each, or, where there are many rows, of 3 * 2^s.  Shares begin at
 * buckets, and, where there are enough rows, at multiples of 6, so that nodes
 * of 2, 3 and 6 unknowns are not divided. */
#ifndef SPS_OWN_ROWS_H
#define SPS_OWN_ROWS_H

#include "core/context.h"

typedef struct spsi_own {
    int64_t n;               /* rows of the file */
    int size;                /* processes */
    int shift;               /* row i is in bucket (i >> shift) * factor >> 33,
                                which is i, or (i >> shift) / 3 */
    uint64_t factor;
    int64_t buckets;
    bool ordered;            /* shares begin at chunks (spsi_comm_chunk) */
} spsi_own;

/* Rows first .. first+rows-1 of a file that must have `whole`, which the caller
 * wants for this process; whole is 0 if the library chooses them: of about
 * equal rows + entries, or `even`, of about equal rows. */
typedef struct spsi_share {
    int64_t first, rows, whole;
    bool even;
} spsi_share;

spsi_own spsi_own_of(int64_t n, int size);
static inline int64_t spsi_own_bucket(const spsi_own *o, int64_t row)
{
    return (int64_t)(((uint64_t)row >> o->shift) * o->factor >> 33);
}
/* Returns the first row of a bucket. */
int64_t spsi_own_row(const spsi_own *o, int64_t bucket);
/* first[r] = the first row of process r, first[size] = n, as the processes want
 * them; collective.  EINVAL, on all, if their rows do not follow each other. */
sps_status spsi_own_given(sps_context *ctx, const spsi_share *wanted,
                          int64_t *first);
/* first[r] = the first row of process r, first[size] = n; entries[b] is the
 * number of entries of bucket b.  Each process has a row at least, if there are
 * enough. */
void spsi_own_cut(const spsi_own *o, const double *entries, int64_t *first);
/* Converts a csr that has the rows from `first` on, with all columns, of a
 * matrix of `whole` rows to a distributed one (global columns).  ENOMEM. */
sps_status spsi_own_spread(sps_context *ctx, sps_csr *A, int64_t first,
                           int64_t whole);
/* Sorts the rows of a csr with global columns, below 2^31, and sums duplicates;
 * *sorted: nothing was to be done.  ENOMEM. */
sps_status spsi_own_order(sps_context *ctx, sps_csr *A, bool *sorted);
/* Returns ESHAPE unless A has the shape of `wanted`. */
sps_status spsi_own_shape(sps_context *ctx, const char *name, const sps_csr *A,
                          const spsi_share *wanted);
/* Creates the distributed csr of the own rows of a matrix that every process
 * has read as a whole; collective.  EPARSE if the processes have read different
 * files, EUNFIT for a rectangular matrix, EMATRIX for an empty one, ESHAPE as
 * above. */
sps_status spsi_own_rows(sps_context *ctx, const char *name, const sps_csr *A,
                         const spsi_share *wanted, sps_csr **own_p);

#endif
