/* SPDX-License-Identifier: BSD-3-Clause */
/* blocked_ell.h - Blocked-ELL: dense b x b blocks, the same number in every
 * block row.
 *
 * Block row I consists of rows b I .. b I + b - 1.  Its blocks are those that
 * contain a stored entry, in ascending order.  w is the largest number of
 * blocks in a block row; block rows with fewer repeat their last block column
 * with zero values.  A repeated column uses rows of X that the block row uses
 * anyway, so that padding does not introduce a NaN from other rows.  A block
 * row without blocks has none to repeat and stores its diagonal block instead:
 * its product must be discarded.
 *
 *   column[I * w + s]                      block column of slot s
 *   val[i * w * b + s * b + c]             row i, column b column[..] + c
 *
 * Rows and columns are padded with zeros to whole blocks.  Sizes are 64-bit: mb
 * b w b, the number of stored values, exceeds 2^31 even for moderate matrices.
 *
 * The arrays are in host memory here; GPU kernels use the same structure with
 * arrays in device memory and the same contents. */
#ifndef SPS_FORMAT_BLOCKED_ELL_H
#define SPS_FORMAT_BLOCKED_ELL_H

#include "matrix/csr.h"
#include "plan/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SPS_BELL_MAX = 32 };    /* the largest b */

typedef struct sps_blocked_ell {
    int b;
    int64_t nrow, ncol;        /* dimensions of the matrix */
    int64_t mb, nb;            /* number of block rows and of block columns */
    int64_t w;                 /* number of blocks in every block row */
    int32_t *column;           /* mb x w */
    void *val;                 /* (mb b) x (w b) values, row-major */
    sps_dtype dtype;
} sps_blocked_ell;

/* Returns the number of values stored in val. */
static inline int64_t spsi_blocked_ell_slots(const sps_blocked_ell *e)
{
    return e->mb * e->w * e->b * e->b;
}
/* Returns the fraction of the stored values that are one of the nnz entries. */
static inline double spsi_blocked_ell_fill(const sps_blocked_ell *e,
                                           int64_t nnz)
{
    const double slots = (double)e->mb * (double)e->w * e->b * e->b;

    return slots > 0.0 ? (double)nnz / slots : 1.0;
}

/* Sets the dimensions only: w = 0, no arrays. */
void spsi_blocked_ell_shape(int64_t nrow, int64_t ncol, sps_dtype dtype, int b,
                            sps_blocked_ell *e);
/* First members of the plan of spmm.blocked_ell; its arrays are in device
 * memory. */
typedef struct sps_blocked_ell_plan {
    sps_plan super;
    sps_blocked_ell ell;
} sps_blocked_ell_plan;

#ifdef __cplusplus
}
#endif
#endif
