/* SPDX-License-Identifier: BSD-3-Clause */
/* row_portion.h - rows that are computed when they are needed, a portion at a
 * time, so that the matrix never exists as a whole. */
#ifndef SPS_ROW_PORTION_H
#define SPS_ROW_PORTION_H

#include "core/context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Computes rows first .. first + count - 1 of a matrix: count + 1 offsets that
 * begin with 0, sorted columns, and values of the dtype of the matrix, at most
 * `longest` entries in a row.  Several threads call it at the same time for
 * different rows. */
typedef struct sps_row_source {
    void (*make)(void *data, int64_t first, int64_t count, int64_t *rowptr,
                 int32_t *col, void *val);
    void *data;
    int64_t longest;
} sps_row_source;

/* Consecutive rows, computed by all threads in parts of `part` rows.  Each part
 * has space for its longest rows, so that there are gaps between the entries of
 * different parts. */
typedef struct sps_row_portion {
    const sps_row_source *source;
    int64_t most, part, longest; /* largest number of rows; rows of a part;
                                    largest number of entries of a row, at
                                    least 1 */
    size_t value;                /* bytes of a value */
    int64_t first, count, entries; /* number of present rows, of entries */
    int64_t *rowptr, *begin;     /* of each part: part + 1 offsets; the number
                                    of entries before it */
    int32_t *col;
    char *val;
} sps_row_portion;

/* Allocates memory for at most `most` rows; ENOMEM. */
sps_status spsi_row_portion_open(sps_context *ctx, sps_row_portion *q,
                                 const sps_row_source *source, int64_t most,
                                 size_t value_bytes);
/* Computes rows first .. first + count - 1. */
void spsi_row_portion_make(sps_context *ctx, sps_row_portion *q, int64_t first,
                           int64_t count);
/* Copies the rows without gaps to the arrays of a csr: count + 1 offsets that
 * begin with `base`, and q->entries columns and values. */
void spsi_row_portion_put(sps_context *ctx, const sps_row_portion *q,
                          int64_t base, int64_t *rowptr, int32_t *col,
                          void *val);
void spsi_row_portion_close(sps_context *ctx, sps_row_portion *q);

#ifdef __cplusplus
}
#endif
#endif
