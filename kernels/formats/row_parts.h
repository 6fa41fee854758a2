/* SPDX-License-Identifier: BSD-3-Clause */
/* row_parts.h - C = A B where there is no room for B: parts of consecutive rows
 * of A, each with the rows of B that its columns name.
 *
 * Each part is a product of its own, a b: a has the rows of A, whose columns
 * are numbered by place among the rows that they name, and b has these rows of
 * B, in order.  A row of C has the same products in the same order as in A B,
 * so its bits are the same.  If A has a band, the rows of B that a part names
 * are consecutive, and all parts together read little more than B. */
#ifndef SPS_ROW_PARTS_H
#define SPS_ROW_PARTS_H

#include "matrix/csr.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sps_row_part {
    int64_t first, rows;       /* of A */
    int64_t low, high;         /* the first and the last row of B that they
                                  name */
    int64_t named, entries;    /* number of the rows of B in b, and of their
                                  entries; named is -1 if those that one row of
                                  A names exceed the room */
    int64_t products;          /* of entries of a and b */
    bool run;                  /* b is rows low .. high of B */
} sps_row_part;

/* Columns and values are those of B itself where b is a run, and the columns
 * those of A itself where they need no other numbers. */
typedef struct sps_row_parts {
    sps_context *ctx;
    const sps_csr *A, *B;      /* in host memory, sorted */
    sps_row_part *part;
    int64_t count, part_room;
    size_t room;               /* largest size of a b */
    int32_t round;
    int32_t *mark, *place;     /* for each row of B: the last round in which it
                                  was named; its number in b */
    int64_t *offset;           /* arrays for a and b, as long as the largest
                                  parts need them */
    int32_t *a_col, *b_col;
    char *b_val;
} sps_row_parts;

/* Returns the bytes of a csr of `rows` rows and `entries` entries. */
size_t spsi_row_parts_bytes(const sps_csr *B, int64_t rows, int64_t entries);

/* Cuts A into parts whose b has at most `room` bytes; one part with all of B
 * needs no work.  Neighbouring rows of A that name too many are parts with
 * named < 0.  There are no parts if, after some of them, they have less than
 * `least` products for each entry of a b that is no run: then rows of B would
 * be copied for nearly each entry of A.  ENOMEM; *p is to be closed in any
 * case. */
sps_status spsi_row_parts_open(sps_context *ctx, const sps_csr *A,
                               const sps_csr *B, size_t room, int least,
                               sps_row_parts *p);
void spsi_row_parts_close(sps_row_parts *p);

/* Makes part i: *a_col becomes the columns of its rows of A, from the first
 * entry on, and *b its rows of B, whose values are those of the part only if
 * `values`.  Both are valid until the next call. */
void spsi_row_parts_make(sps_row_parts *p, int64_t i, bool values,
                         const int32_t **a_col, sps_csr *b);

#ifdef __cplusplus
}
#endif
#endif
