/* SPDX-License-Identifier: BSD-3-Clause */
/* operator.h - the handle over a plan or a callback. */
#ifndef SPS_OPERATOR_H
#define SPS_OPERATOR_H

#include "planner.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Places in local_bytes. */
enum { SPS_LOCAL_ROWPTR, SPS_LOCAL_ROWPTR32, SPS_LOCAL_COL, SPS_LOCAL_VAL };

struct sps_operator {
    sps_context *ctx;
    int64_t n, ncol;          /* rows, columns */
    unsigned props;
    int width;
    sps_dtype dtype;          /* of blocks */
    bool strict;              /* NaN in X stays with the rows that store it */
    /* csr */
    sps_csr *A;               /* host arrays: the caller's, or own_A */
    sps_csr *own_A;           /* sorted copy, or read back from the device, or
                                 the caller's pattern with own_val */
    void *own_val;            /* values given to set_values */
    int64_t *order;           /* entry of own_A that a caller's entry is added
                                 to; NULL: the same order */
    int64_t caller_nnz;       /* length of order, or nnz */
    sps_csr_local local;
    size_t local_bytes[4];    /* of the arrays of local; 0: not ours */
    bool behind;              /* the values of A are older than local's */
    sps_features f;
    sps_plan *block;          /* for blocks of up to width columns */
    sps_plan *vector;         /* for k = 1; may equal block */
    sps_plan *plain;          /* for verification; may equal block */
    sps_plan *sddmm;          /* made at the first sample */
    char *kernel, *wisdom;    /* own copies of the options, for that plan */
    sps_bids bids[3];         /* of block, vector, sddmm; [1] empty when equal
                                 to [0], [2] until the first sample */
    double norm;              /* estimate of ||A||_2, < 0: not yet */
    int64_t version;          /* of the values: counts set_values */
    struct sps_reordering *reordered;   /* for solvers (reorder.h), or NULL */
    /* callback */
    sps_apply_fn apply;
    void *data;
};

/* Y = alpha A X + beta Y by the plain kernel (a callback: a fresh apply). */
sps_status spsi_operator_apply_plain(const sps_operator *op, double alpha,
                                     const sps_block *X, double beta,
                                     sps_block *Y);
/* fused.c: Y = D (alpha A X + gamma W) + beta Y + delta X in one pass where the
 * kernel has it (kernel.h), else in several; plain: by the plain kernel.
 * room: n x k, overwritten when it takes several passes; may be NULL when D is
 * or beta is zero. */
sps_status spsi_operator_apply_fused(const sps_operator *op, bool plain,
                                     double alpha, const sps_block *X,
                                     double beta, sps_block *Y,
                                     const sps_epilogue *e, sps_block *room);
/* Whether that is one pass for blocks of k columns. */
bool spsi_operator_fuses(const sps_operator *op, int k);
/* operator.c: the plans; the shapes and places of Y = A X. */
sps_status spsi_operator_plan(sps_operator *op, const sps_options *opt);
sps_status spsi_operator_check(const sps_operator *op, const sps_block *X,
                               const sps_block *Y);
/* Whether a number of X is one of Y, too; columns side by side in the rows of
 * one block are not. */
bool spsi_blocks_meet(const sps_block *X, const sps_block *Y);
/* As sps_operator_csr, for blocks of dtype; floats want an A of floats. */
sps_status spsi_operator_create(sps_context *ctx, sps_csr *A, int width,
                                sps_dtype dtype, const sps_options *opt,
                                sps_operator **op_p);
/* operator_single.c: an operator of the values of A (host, sorted) in floats,
 * for blocks of either type; it reads the pattern of A, which must outlive it.
 * EUNFIT: a value far outside of what floats hold. */
sps_status spsi_operator_single(sps_context *ctx, const sps_csr *A, int width,
                                sps_dtype blocks, const sps_options *opt,
                                sps_operator **op_p);
/* The same of an operator's matrix, for blocks of floats of its width: what was
 * measured of A serves again, and its copy of the pattern in the place; A must
 * outlive it. */
sps_status spsi_operator_single_of(const sps_operator *A,
                                   const sps_options *opt,
                                   sps_operator **op_p);
/* The values of A again: of a matrix, and of the operator that it is of.
 * SPS_EUNFIT where they leave the range of floats: not to be applied then. */
sps_status spsi_operator_single_follow(const sps_csr *A, sps_operator *single);
sps_status spsi_operator_single_of_follow(const sps_operator *A,
                                          sps_operator *single);
static inline size_t spsi_csr_value_bytes(const sps_csr *A)
{
    return (size_t)A->nnz * spsi_dtype_size(A->dtype);
}
/* operator_csr.c: host arrays in order (op->A) and the copy in the place
 * (op->local), of the caller's A; and their end. */
sps_status spsi_operator_take_csr(sps_operator *op, sps_csr *A);
void spsi_operator_drop_csr(sps_operator *op);
/* operator_values.c: the copy in the place takes the values of op->A; and the
 * other way about where that one is behind, before its values are read. */
sps_status spsi_operator_set_local(sps_operator *op);
/* Memory of the place for them, not written. */
sps_status spsi_operator_room_local(sps_operator *op);
/* The values in the place are others: the plans take them. */
sps_status spsi_operator_refresh(sps_operator *op);
sps_status spsi_operator_fetch(const sps_operator *op);
/* Device bytes held by local copy and plans. */
size_t spsi_operator_bytes(const sps_operator *op);

#ifdef __cplusplus
}
#endif
#endif
