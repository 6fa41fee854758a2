/* SPDX-License-Identifier: BSD-3-Clause */
/* frame.h - blocks inside memory that is watched: rows before and after, and
 * the padding of each row, hold a NaN with a mark of its own, and must hold it
 * still when the block is read back.
 *
 *     offset   n rows, ld apart             guard
 *     [ NaN ][ x00 x01 .. | NaN .. NaN ][ NaN ]
 *
 * Works in the place of the context, through upload and download alone. */
#ifndef SPS_TEST_FRAME_H
#define SPS_TEST_FRAME_H

#include "lib/backend.h"

typedef struct frame {
    sps_context *ctx;
    sps_block *X;        /* wraps the watched memory */
    int64_t n, ld, doubles, offset;
    int k;
    void *memory;
    double *image;       /* of all the memory, on the host */
} frame;

/* x: n x k numbers, element (i, j) at x[i * ldx + j]; NULL: NaN everywhere.
 * offset in doubles: an odd one breaks all alignment but 8. */
frame frame_make(sps_context *ctx, int64_t n, int k, int64_t ld,
                 int64_t offset, const double *x, int64_t ldx);
/* Reads the block into x (n x k, ld k); the test fails when anything around
 * the first k columns has changed.  Columns may have been narrowed. */
void frame_read(frame *f, int k, double *x);
void frame_free(frame *f);

#endif
