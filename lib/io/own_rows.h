/* SPDX-License-Identifier: BSD-3-Clause */
/* own_rows.h - which rows of a matrix in a file each of several processes owns,
 * and the csr of them.
 *
 * Rows are consecutive, in shares of about equal entries + rows.  Entries are
 * counted in buckets of rows: of one row each, or, where there are many rows,
 * of 3 * 2^s.  Shares begin at buckets, and, where there are enough rows, at
 * multiples of 6, so that nodes of 2, 3 and 6 unknowns are not divided. */
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

spsi_own spsi_own_of(int64_t n, int size);
static inline int64_t spsi_own_bucket(const spsi_own *o, int64_t row)
{
    return (int64_t)(((uint64_t)row >> o->shift) * o->factor >> 33);
}
/* first[r] = the first row of process r, first[size] = n; entries[b] is the
 * number of entries of bucket b.  Each process has a row at least, if there are
 * enough. */
void spsi_own_cut(const spsi_own *o, const double *entries, int64_t *first);
/* Converts a csr that has the rows from `first` on, with all columns, of a
 * matrix of `whole` rows to a distributed one (global columns).  ENOMEM. */
sps_status spsi_own_spread(sps_context *ctx, sps_csr *A, int64_t first,
                           int64_t whole);
/* Creates the distributed csr of the own rows of a matrix that every process
 * has read as a whole; collective.  EPARSE if the processes have read different
 * files, EUNFIT for a rectangular matrix, EMATRIX for an empty one. */
sps_status spsi_own_rows(sps_context *ctx, const char *name, const sps_csr *A,
                         sps_csr **own_p);

#endif
