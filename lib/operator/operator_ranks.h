/* SPDX-License-Identifier: BSD-3-Clause */
/* operator_ranks.h - an operator of a csr whose rows are spread over processes:
 * each has its own rows, with global columns (sps_csr_wrap_rows).
 *
 * A row without ghosts is an interior row, computed while the ghosts are sent;
 * a row with ghosts is a boundary row, computed afterwards as a whole from the
 * operand of halo.h.  No row is divided: its columns keep their ascending
 * global order, and so the order of its sum.
 *
 *   interior   own rows x own columns, boundary rows empty
 *   boundary   only boundary rows; a column for each row of the operand
 *   own        own rows x own columns, without ghosts: the diagonal block, for
 *              preconditioners of this process alone; made when it is wanted
 *
 * To solvers it is a callback: op->A is NULL, since nobody has all rows. */
#ifndef SPS_OPERATOR_RANKS_H
#define SPS_OPERATOR_RANKS_H

#include "halo/halo.h"
#include "operator/operator.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sps_ranks {
    const sps_csr *A;         /* the caller's csr, for its pattern */
    int64_t cols;             /* own columns: A->first .. A->first + cols - 1 */
    sps_dtype blocks;         /* type of X and Y */
    bool shared;              /* all but the operators is another's
                                 (spsi_ranks_scaled) */
    bool adds;                /* products of boundary rows are added in place
                                 (sps_wire) */
    bool mixes;               /* products of an X of floats and a Y of doubles
                                 are possible on all processes */
    sps_halo *halo;           /* rows needed from and by other processes */
    int64_t rows, touched;    /* elements of `row` and of `touch` */
    int32_t *row;             /* boundary rows, ascending */
    int32_t *touch;           /* own rows that boundary rows use, ascending */
    struct sps_ranks_at {     /* copies of row, touch and halo->send in the
                                 blocks' memory */
        int32_t *row, *touch, *send;
    } at;
    sps_csr *inner, *edge, *diagonal;    /* matrices of the operators below;
                                            `inner` is in device memory if the
                                            rows were (spsi_ranks_there) */
    sps_csr *alone;           /* if shared: interior rows of its own, in device
                                 memory (spsi_ranks_alike) */
    sps_operator *interior, *boundary, *own;
    sps_block *packed, *operand;    /* rows to be sent; operand of the boundary
                                       rows (halo.h) */
    sps_block *result[4];     /* products of boundary rows; several for
                                 epilogues and for products in twice the
                                 working precision */
    int64_t gathered;         /* most rows of a coarser matrix that each process
                                 stores whole; 0: as the place requires */
    struct sps_ranks_halo {   /* sps_operator_halo; 0 in operators of levels
                                 and their prolongators */
        int64_t rows, most;
        int neighbours;
    } received;
};

/* sps_operator_csr for the own rows of a distributed matrix; collective.  A
 * single process gets an operator like any other. */
sps_status spsi_ranks_create(sps_context *ctx, const sps_csr *A, int width,
                             sps_dtype blocks, const sps_options *opt,
                             bool inner, sps_operator **op_p);
/* Creates an operator made by the library, of a rectangular matrix: this
 * process has the rows of A, which are sorted, and of X the `cols` rows from
 * A->first on, of A->whole; collective, within another collective call. */
sps_status spsi_ranks_across(sps_context *ctx, const sps_csr *A, int64_t cols,
                             int width, sps_dtype blocks, sps_operator **op_p);
/* The same from the rows X in the memory of the backend; `shape` has the sizes,
 * first, whole and type of A, without arrays.  The columns of X are those of
 * the whole, or, with h, those that spsi_ranks_rows has for an operator with
 * this halo. */
sps_status spsi_ranks_there(sps_context *ctx, const sps_csr *X,
                            const sps_halo *h, const sps_csr *shape,
                            int64_t cols, int width, sps_dtype blocks,
                            sps_operator **op_p);
/* Sets new values of such an operator. */
sps_status spsi_ranks_set_there(sps_operator *op, const sps_csr *X,
                                const sps_halo *h);
/* Creates an operator made by the library for blocks of type `blocks`, with the
 * rows X in the memory of the backend, whose columns and pattern are those of
 * spsi_ranks_rows for `of`.  It shares with `of`, which must outlive it,
 * everything but the operators of the rows. */
sps_status spsi_ranks_alike(const sps_operator *of, const sps_csr *X,
                            sps_dtype blocks, sps_operator **op_p);
/* Creates an operator made by the library, for blocks of floats, whose values
 * are those of A, an operator over processes, with row i multiplied by by[i];
 * those below 1e-30 become zero.  It shares with A everything but the values;
 * A must outlive it.  EUNFIT, on all processes, if values are outside the range
 * of floats.  Collective, within another collective call. */
sps_status spsi_ranks_scaled(const sps_operator *A, const double *by,
                             sps_operator **op_p);
void spsi_ranks_destroy(sps_context *ctx, sps_ranks **ranks_p);
/* Y = alpha A X + beta Y; `plain` selects the kernels that verify.
 * Collective. */
sps_status spsi_ranks_apply(const sps_operator *op, bool plain, double alpha,
                            const sps_block *X, double beta, sps_block *Y);
/* Y = A X for an X of floats and a Y of doubles, if op->ranks->mixes and a
 * kernel can do that (*served), on all processes or on none.  Collective. */
sps_status spsi_ranks_single(const sps_operator *op, const sps_block *X,
                             sps_block *Y, bool *served);
/* Computes Y = D (alpha A X + gamma W) + beta Y + delta X with fast kernels
 * (spsi_operator_apply_fused).  Collective. */
sps_status spsi_ranks_fused(const sps_operator *op, double alpha,
                            const sps_block *X, double beta, sps_block *Y,
                            const sps_epilogue *e, sps_block *room);
/* Computes H + L = W + V + A X diag(c) in twice the working precision
 * (spsi_operator_twofold).  Collective. */
sps_status spsi_ranks_twofold(const sps_operator *op,
                              const sps_twofold_args *args);
/* Returns the boundary rows for sps_wire. */
sps_edge spsi_ranks_edge(const sps_ranks *r);
/* *own_p becomes the diagonal block of this process, own rows and own columns,
 * as an operator that belongs to op. */
sps_status spsi_ranks_own(const sps_operator *op, const sps_operator **own_p);
/* Sets *rows_p to the own rows with the values that A has now, in double
 * precision; creates it if it is NULL.  Its columns are the ghosts of lower
 * processes, the own rows, and the ghosts of higher processes. */
sps_status spsi_ranks_rows(const sps_operator *op, sps_csr **rows_p);
/* Returns the column there of column `col` of r->edge; and the number of own
 * row `row` among the boundary rows, or -1. */
int32_t spsi_ranks_column(const sps_ranks *r, int32_t col);
int64_t spsi_ranks_edge_of(const sps_ranks *r, int64_t row);
/* Creates the same, or, if `own`, the diagonal block, where `inner` is: the
 * matrix of the interior rows, in doubles. */
sps_status spsi_ranks_joined(const sps_operator *op, const sps_csr *inner,
                             bool own, sps_csr **rows_p);
/* Sets new values of the own rows: nnz values in host memory, in the order of
 * the caller's csr. */
sps_status spsi_ranks_set_values(sps_operator *op, const void *val);
/* ranks_symmetric.c: sps_csr_symmetric for the distributed matrix;
 * collective. */
sps_status spsi_ranks_symmetric(const sps_operator *op, double tol,
                                bool *symmetric, double *difference);

#ifdef __cplusplus
}
#endif
#endif
