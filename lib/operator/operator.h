/* SPDX-License-Identifier: BSD-3-Clause */
/* operator.h - the handle of a matrix with its plans, or of a callback. */
#ifndef SPS_OPERATOR_H
#define SPS_OPERATOR_H

#include "plan/planner.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Indices of local_bytes. */
enum { SPS_LOCAL_ROWPTR, SPS_LOCAL_ROWPTR32, SPS_LOCAL_COL, SPS_LOCAL_VAL };

typedef struct sps_ranks sps_ranks;          /* operator_ranks.h */

/* Results computed at first use and cached; modified through a const
 * operator, too. */
typedef struct sps_operator_cache {
    double norm;              /* estimate of ||A||_2, < 0: not computed */
    sps_plan *sddmm;          /* made at the first call of sample */
    sps_bids sddmm_bids;      /* empty until then */
    void *own_val;            /* values of own_A, where only these are the
                                 library's; or NULL */
    bool stale;               /* the values of A are older than local's */
    struct {
        bool known, symmetric;
        double difference;
        int64_t version;      /* of the values that were compared */
    } transpose;              /* spsi_operator_symmetric */
    struct sps_direct *direct;/* an analysis that spsi_direct_keep has left, or
                                 NULL */
} sps_operator_cache;

struct sps_operator {
    sps_context *ctx;
    sps_operator_cache *cache;
    int64_t n, ncol;          /* rows, columns */
    unsigned props;
    int width;
    sps_dtype dtype;          /* of blocks */
    bool strict;              /* option strict_nonfinite */
    bool inner;               /* of the library's own making, for products with
                                 blocks alone: rows are known to be sorted, and
                                 the plan of blocks is that of vectors and
                                 checks */
    /* csr */
    sps_csr *A;               /* host arrays: the caller's, or own_A.  Its shape
                                 and props may always be read, its arrays after
                                 spsi_operator_fetch.  NULL: a callback */
    sps_csr *own_A;           /* a sorted copy; or a host copy of a device csr,
                                 whose arrays are NULL until they are fetched;
                                 or the caller's pattern with the values
                                 own_val (without own_val: the caller's) */
    int64_t *order;           /* order[p]: the entry of own_A to which entry p
                                 of the caller's csr is added; NULL: both have
                                 the same entries */
    int64_t caller_nnz;       /* entries of the caller's csr */
    sps_csr_local local;
    size_t local_bytes[4];    /* of the arrays of local; 0: not owned */
    sps_features f;
    sps_plan *block;          /* for blocks of up to width columns */
    sps_plan *vector;         /* for k = 1; may equal block */
    sps_plan *plain;          /* for checks (operator.c); may equal block */
    char *kernel, *wisdom;    /* copies of the options, for the plan that
                                 sps_operator_sample makes */
    sps_bids bids[2];         /* of block, vector; [1] empty where vector is
                                 block */
    int64_t version;          /* of the values: number of set_values calls */
    struct sps_reordering *reordered;   /* for solvers (reorder.h), or NULL */
    sps_ranks *ranks;         /* own rows of a whole over several processes;
                                 A and apply are NULL then.  Or NULL */
    /* callback; the second: products with A', or NULL */
    sps_apply_fn apply, apply_transposed;
    void *data;
};

/* Y = alpha A X + beta Y by the plain kernel (a callback: by calling it). */
sps_status spsi_operator_apply_plain(const sps_operator *op, double alpha,
                                     const sps_block *X, double beta,
                                     sps_block *Y);
/* fused.c: Y = D (alpha A X + gamma W) + beta Y + delta X in one pass if the
 * kernel supports it (kernel.h), otherwise in several; plain: by the plain
 * kernel.  room: n x k, overwritten if several passes are made; may be NULL if
 * D is NULL or beta is 0. */
sps_status spsi_operator_apply_fused(const sps_operator *op, bool plain,
                                     double alpha, const sps_block *X,
                                     double beta, sps_block *Y,
                                     const sps_epilogue *e, sps_block *room);
/* Whether the kernel for blocks of k columns can fuse an epilogue.  A product
 * with one is still made in several passes if the layouts of its blocks differ
 * or X has more columns than the plan. */
bool spsi_operator_fuses(const sps_operator *op, int k);
/* twofold.c: H + L = W + V + A X diag(c) in twice the working precision, the
 * slot twofold of backend.h.  A callback is applied in doubles; it needs room,
 * n x k, where W is given (else NULL is allowed), and overwrites it. */
sps_status spsi_operator_twofold(const sps_operator *op,
                                 const sps_twofold_args *args,
                                 sps_block *room);
/* operator.c: makes the plans block, vector and plain. */
sps_status spsi_operator_plan(sps_operator *op, const sps_options *opt);
/* Fails unless Y = A X is possible: context, shapes, types, no overlap. */
sps_status spsi_operator_check(const sps_operator *op, const sps_block *X,
                               const sps_block *Y);
/* Whether X and Y overlap in memory; disjoint columns of one block do not. */
bool spsi_blocks_overlap(const sps_block *X, const sps_block *Y);
/* An operator without a matrix; sps_operator_destroy frees it. */
sps_status spsi_operator_new(sps_context *ctx, sps_operator **op_p);
/* As sps_operator_csr, for blocks of dtype; floats require an A of floats. */
sps_status spsi_operator_create(sps_context *ctx, sps_csr *A, int width,
                                sps_dtype dtype, const sps_options *opt,
                                bool inner, sps_operator **op_p);
/* operator_single.c: SPS_EUNFIT unless the largest magnitude of some values is
 * suitable for single precision. */
sps_status spsi_operator_fits_single(sps_context *ctx, double largest);
/* An operator with the values of A (sorted, on the host or in device memory,
 * doubles or floats) in single precision, for blocks of either type; it uses
 * the pattern of A, which must outlive it.  EUNFIT: a value far outside the
 * range of floats. */
sps_status spsi_operator_single(sps_context *ctx, const sps_csr *A, int width,
                                sps_dtype blocks, const sps_options *opt,
                                sps_operator **op_p);
/* The same for the matrix of an operator, for blocks of floats of its width; it
 * shares the measured features of A and its copy of the pattern in the
 * backend's memory; A must outlive it. */
sps_status spsi_operator_single_of(const sps_operator *A,
                                   const sps_options *opt,
                                   sps_operator **op_p);
/* `single`, made from A by spsi_operator_single, takes the present values of A;
 * the second function is for one made by spsi_operator_single_of.  SPS_EUNFIT
 * if they leave the range of floats: `single` must not be applied then. */
sps_status spsi_operator_single_follow(const sps_csr *A, sps_operator *single);
sps_status spsi_operator_single_of_follow(const sps_operator *A,
                                          sps_operator *single);
/* An inner operator for values of another matrix S on the pattern of A's: in
 * backend memory where those of A lie there, doubles or floats, else doubles on
 * the host; *op_p may exist. */
sps_status spsi_operator_single_like(const sps_operator *A, const sps_csr *S,
                                     const sps_options *opt,
                                     sps_operator **op_p);
/* An inner operator with the pattern of A, which must outlive it, and a copy of its
 * values as dtype, for blocks of dtype. */
sps_status spsi_operator_valued(sps_context *ctx, const sps_csr *A, int width,
                                sps_dtype dtype, sps_operator **op_p);
static inline size_t spsi_csr_value_bytes(const sps_csr *A)
{
    return (size_t)A->nnz * spsi_dtype_size(A->dtype);
}
/* transpose.c: *T_p = A', an operator with plans of its own for blocks of up to
 * `width` columns.  EUNFIT: A is a callback without products with A'. */
sps_status spsi_operator_transposed(const sps_operator *A,
                                    const sps_options *opt, int width,
                                    sps_operator **T_p);
/* T, made from A by that function, takes the present values of A. */
sps_status spsi_operator_transposed_follow(const sps_operator *A,
                                           sps_operator *T);
/* operator_csr.c: makes op->A (host arrays, sorted rows; of a csr on a GPU its
 * shape alone) and op->local (arrays in the backend's memory) from the caller's
 * A. */
sps_status spsi_operator_take_csr(sps_operator *op, sps_csr *A);
/* Frees those of these arrays that the library owns. */
void spsi_operator_drop_csr(sps_operator *op);
/* operator_values.c: copies the values of op->A to op->local. */
sps_status spsi_operator_set_local(sps_operator *op);
/* Device memory that its matrix leaves to blocks of k columns. */
static inline size_t spsi_operator_blocks_room(const sps_operator *op, int k)
{
    return spsi_blocks_room(op->n > op->ncol ? op->n : op->ncol, k);
}
/* Copy between host memory and an array of op->local, which may itself be far;
 * complete on return if it is, else as upload and download. */
sps_status spsi_operator_write(const sps_operator *op, const void *to,
                               const void *from, size_t bytes);
sps_status spsi_operator_read(const sps_operator *op, void *to,
                              const void *from, size_t bytes);
/* Allocates memory for the values of op->local, not written. */
sps_status spsi_operator_alloc_values(sps_operator *op);
/* The values of op->local have changed: updates the plans. */
sps_status spsi_operator_refresh(sps_operator *op);
/* Makes the arrays of op->A present, and its values those of op->local: to be
 * called before any of them is read.  A csr on a GPU is read back at the first
 * call, its values again after each sps_operator_set_values from there. */
sps_status spsi_operator_fetch(const sps_operator *op);
/* sps_csr_symmetric of the present values with the tolerance 1e-10, compared
 * once for all who ask; difference may be NULL. */
sps_status spsi_operator_symmetric(const sps_operator *op, bool *symmetric,
                                   double *difference);

#ifdef __cplusplus
}
#endif
#endif
