/* SPDX-License-Identifier: BSD-3-Clause */
/* frame.h - blocks inside guarded memory: rows before and after, and the
 * padding of each row, hold NaN with distinct payloads, which must be unchanged
 * when the block is read back.
 *
 *     offset   n rows, ld apart             guard
 *     [ NaN ][ x00 x01 .. | NaN .. NaN ][ NaN ]
 *
 * Works on the context's device, using upload and download only. */
#ifndef SPS_TEST_FRAME_H
#define SPS_TEST_FRAME_H

#include "block/block.h"
#include "block/small.h"
#include "core/backend.h"
#include "matrix/csr.h"

typedef struct frame {
    sps_context *ctx;
    sps_block *X;        /* wraps the guarded memory */
    int64_t n, ld, doubles, offset;
    int k;
    void *memory;
    double *image;       /* host copy of all the memory */
} frame;

/* x: n x k numbers, element (i, j) at x[i * ldx + j]; NULL: NaN everywhere.
 * offset in doubles: an odd one leaves an alignment of 8 bytes only. */
frame frame_make(sps_context *ctx, int64_t n, int k, int64_t ld,
                 int64_t offset, const double *x, int64_t ldx);
/* Reads the block into x (n x k, ld k); the test fails when anything outside of
 * the first k columns has changed.  The block may have been narrowed. */
void frame_read(frame *f, int k, double *x);
void frame_free(frame *f);

#endif
