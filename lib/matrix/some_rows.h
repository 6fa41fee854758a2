/* SPDX-License-Identifier: BSD-3-Clause */
/* some_rows.h - a matrix and few rows of it, such as those at the borders of
 * processes: these are worked on in host memory, wherever the matrix lies.
 *
 * A and C are in host memory, or both in the memory of a backend that sets up
 * multigrid (coarsening.h); their rows ascend.  B has few rows, in host memory
 * or where A is, with values of the type of A. */
#ifndef SPS_SOME_ROWS_H
#define SPS_SOME_ROWS_H

#include "matrix/csr.h"

#ifdef __cplusplus
extern "C" {
#endif

/* *row_p = the rows, ascending, that have columns below `first` or from `last`
 * on; the caller frees it. */
sps_status spsi_rows_outside(sps_context *ctx, const sps_csr *A, int64_t first,
                             int64_t last, int32_t **row_p, int64_t *rows);
/* Creates B of the rows row[0], row[1], ... of A, in any order. */
sps_status spsi_rows_pick(sps_context *ctx, const sps_csr *A,
                          const int32_t *row, int64_t rows, sps_csr **B_p);
/* Where rows of C are. */
typedef struct spsi_placing {
    int64_t nrow, ncol;       /* of C */
    int64_t before;           /* row i of A becomes row before + i of C */
    int64_t shift;            /* what is added to its columns */
    const int32_t *row;       /* except that row t of B becomes row[t],
                                 ascending */
} spsi_placing;
/* Creates C; its other rows are empty.  B may be NULL. */
sps_status spsi_rows_replace(sps_context *ctx, const sps_csr *A,
                             const spsi_placing *p, const sps_csr *B,
                             sps_csr **C_p);

#ifdef __cplusplus
}
#endif
#endif
