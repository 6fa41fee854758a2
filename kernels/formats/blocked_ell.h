/* SPDX-License-Identifier: BSD-3-Clause */
/* blocked_ell.h - Blocked-ELL: dense b x b blocks, as many in every block row.
 *
 * Block row I holds rows b I .. b I + b - 1.  Its blocks are those that hold a
 * stored entry, ascending; the block row with the most of them sets w, and the
 * others repeat their last block column with values of zero.  A repeated column
 * reads rows of X that the block row reads anyway, so that padding brings no
 * foreign NaN into it.  A block row without blocks has none to repeat and holds
 * the one on its diagonal: its products are to be dropped.
 *
 *   column[I * w + s]                      block column of slot s
 *   val[i * w * b + s * b + c]             row i, column b column[..] + c
 *
 * Rows and columns are padded with zeros to whole blocks.  Sizes are 64-bit:
 * mb b w b passes 2^31 early.
 *
 * The arrays lie on the host here; the same struct with arrays in the place is
 * what a GPU kernel builds, entry for entry. */
#ifndef SPS_FORMAT_BLOCKED_ELL_H
#define SPS_FORMAT_BLOCKED_ELL_H

#include "lib/csr.h"
#include "lib/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SPS_BELL_MAX = 32 };    /* the largest b */

typedef struct sps_blocked_ell {
    int b;
    int64_t nrow, ncol;        /* of the matrix */
    int64_t mb, nb;            /* block rows and block columns */
    int64_t w;                 /* blocks in every block row */
    int32_t *column;           /* mb x w */
    void *val;                 /* (mb b) x (w b), row-major */
    sps_dtype dtype;
} sps_blocked_ell;

/* Numbers in val, and what share of them is stored in the matrix. */
static inline int64_t spsi_blocked_ell_slots(const sps_blocked_ell *e)
{
    return e->mb * e->w * e->b * e->b;
}
static inline double spsi_blocked_ell_fill(const sps_blocked_ell *e,
                                           int64_t nnz)
{
    const double slots = (double)e->mb * (double)e->w * e->b * e->b;

    return slots > 0.0 ? (double)nnz / slots : 1.0;
}

/* The sizes alone: w = 0, no arrays. */
void spsi_blocked_ell_shape(int64_t nrow, int64_t ncol, sps_dtype dtype, int b,
                            sps_blocked_ell *e);
/* Blocks of the fullest among every step-th block row of a sorted host csr;
 * gives up beyond `most`, then it is more than that. */
int64_t spsi_blocked_ell_width(const sps_csr *A, int b, int64_t step,
                               int64_t most);
/* All of it, from a sorted host csr.  Clear also after failure. */
sps_status spsi_blocked_ell_from_csr(sps_context *ctx, const sps_csr *A, int b,
                                     sps_blocked_ell *e);
/* The values again, from a csr of the same pattern: one pass. */
void spsi_blocked_ell_refresh(const sps_csr *A, sps_blocked_ell *e);
/* The entries that are not zero, as an own host csr. */
sps_status spsi_blocked_ell_to_csr(sps_context *ctx, const sps_blocked_ell *e,
                                   sps_csr **A_p);
void spsi_blocked_ell_clear(sps_context *ctx, sps_blocked_ell *e);

/* What the plan of spmm.blocked_ell begins with; arrays in the place. */
typedef struct sps_blocked_ell_plan {
    sps_plan super;
    sps_blocked_ell ell;
} sps_blocked_ell_plan;

#ifdef __cplusplus
}
#endif
#endif
