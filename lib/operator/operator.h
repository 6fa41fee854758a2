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

/* Results that are computed at first use and cached; modified through a const
 * operator, too. */
typedef struct sps_operator_cache {
    double norm;              /* estimate of ||A||_2, or < 0 if not computed */
    sps_plan *sddmm;          /* made at the first call of sample */
    sps_bids sddmm_bids;      /* empty until then */
    void *own_val;            /* values of own_A if only they, and not its
                                 pattern, belong to the library; else NULL */
    bool stale;               /* the values of A are older than those of
                                 local */
    struct {
        bool known, symmetric;
        double difference;
        int64_t version;      /* of the values that were compared */
    } transpose;              /* spsi_operator_symmetric */
    struct sps_direct *direct;/* analysis stored by spsi_direct_keep, or NULL */
    double worth;             /* largest predicted seconds of factors computed
                                 row by row, set by who chooses among methods
                                 while they are made; if positive, complete
                                 factors with a zero pivot are refused; 0: no
                                 limit */
} sps_operator_cache;

/* How the plans were chosen. */
typedef struct sps_operator_choice {
    char *kernel, *wisdom;    /* copies of the options, for the plan that
                                 sps_operator_sample makes */
    sps_bids bids[2];         /* of block and vector; bids[1] is empty if
                                 vector is block */
} sps_operator_choice;

/* Entries of the caller's csr. */
typedef struct sps_operator_caller {
    int64_t nnz;
    int64_t *order;           /* order[p] is the entry of own_A to which entry
                                 p of the caller's csr is added; NULL if both
                                 have the same entries */
} sps_operator_caller;

/* Callbacks for products with A and, or NULL, with A'; `apply` is NULL for a
 * csr in memory. */
typedef struct sps_operator_callback {
    sps_apply_fn apply, transposed;
    void *data;
} sps_operator_callback;

struct sps_operator {
    sps_context *ctx;
    sps_operator_cache *cache;
    int64_t n, ncol;          /* rows, columns */
    unsigned props;
    int width;
    sps_dtype dtype;          /* type of the blocks X and Y */
    bool strict;              /* option strict_nonfinite */
    bool inner;               /* made by the library, for products with
                                 blocks only: the rows are known to be
                                 sorted, and `block` serves as vector and
                                 plain */
    /* csr */
    sps_csr *A;               /* in host memory: the caller's, or own_A.
                                 Shape and props may always be read, the
                                 arrays after spsi_operator_fetch.  NULL for
                                 a callback */
    sps_csr *own_A;           /* a sorted copy; or a host copy of a device
                                 csr, with arrays that are NULL until they
                                 are fetched; or the caller's pattern with
                                 own_val, or, if that is NULL, the caller's
                                 values */
    sps_csr *computed;        /* the csr of sps_operator_rows, freed with the
                                 operator, or NULL */
    double *diagonal;         /* of computed rows that are streamed, in host
                                 memory; otherwise NULL */
    sps_operator_caller caller;
    sps_csr_local local;
    size_t local_bytes[4];    /* of the arrays of local; 0 if not owned */
    sps_features f;
    sps_plan *block;          /* for blocks of up to width columns */
    sps_plan *vector;         /* for k = 1; may equal block */
    sps_plan *plain;          /* to verify (operator.c); may equal block */
    sps_operator_choice choice;
    int64_t version;          /* number of calls that have set new values */
    bool incomplete;          /* the last of them failed, so that a plan may have
                                 lost its values: products are refused */
    struct sps_reordering *reordered;   /* for solvers (reorder.h), or NULL */
    sps_ranks *ranks;         /* own rows of a matrix distributed over
                                 several processes, or NULL; with it A and
                                 callback.apply are NULL */
    sps_operator_callback callback;
    int64_t kept;             /* columns of the blocks of the solver for which
                                 it is made, which have room on the GPU beside
                                 the matrix; 0 if they are not known */
};

/* Returns whether products call a function of the caller. */
static inline bool spsi_operator_calls(const sps_operator *op)
{
    return op->callback.apply && !op->block;
}

/* Y = A X for an X of floats and a Y of doubles, if the operator's kernel can
 * do that (*served); otherwise Y is not changed. */
sps_status spsi_operator_apply_single(const sps_operator *op,
                                      const sps_block *X, sps_block *Y,
                                      bool *served);
/* Y = alpha A X + beta Y by the plain kernel, or by the callback. */
sps_status spsi_operator_apply_plain(const sps_operator *op, double alpha,
                                     const sps_block *X, double beta,
                                     sps_block *Y);
/* fused.c: Y = D (alpha A X + gamma W) + beta Y + delta X, in one pass if the
 * kernel supports it (kernel.h), otherwise in several.  `plain` selects the
 * plain kernel.  `room`, an n x k block, is overwritten if there are several
 * passes; it may be NULL if D is NULL or beta is 0. */
sps_status spsi_operator_apply_fused(const sps_operator *op, bool plain,
                                     double alpha, const sps_block *X,
                                     double beta, sps_block *Y,
                                     const sps_epilogue *e, sps_block *room);
/* Computes `count` products with their epilogues in order, each with the Y of
 * the one before as its X, in two blocks by turns; beta is 0 or D is NULL.
 * Kernels that can, read A less often (plan/sequence.h). */
sps_status spsi_operator_apply_sequence(const sps_operator *op,
                                        const sps_spmm_args *args, int count);
/* Returns the seconds in which a streamed matrix is copied to the GPU for one
 * sequence of `count` products; 0 if the matrix is not streamed. */
double spsi_operator_copy_seconds(const sps_operator *op, int k, int count);
/* Returns whether the kernel for blocks of k columns can fuse an epilogue.  A
 * product with one is still computed in several passes if the layouts of its
 * blocks differ or X has more columns than the plan. */
bool spsi_operator_fuses(const sps_operator *op, int k);
/* twofold.c: H + L = W + V + A X diag(c) in twice the working precision
 * (sps_twofold_args in backend.h).  A callback is applied in doubles; if W is
 * given it needs and overwrites `room`, an n x k block, which may otherwise be
 * NULL. */
sps_status spsi_operator_twofold(const sps_operator *op,
                                 const sps_twofold_args *args,
                                 sps_block *room);
/* operator.c: makes the plans block, vector and plain. */
sps_status spsi_operator_plan(sps_operator *op, const sps_options *opt);
/* Returns the problem of products with blocks of k columns. */
sps_problem spsi_operator_problem(const sps_operator *op, int k);
/* Fails unless Y = A X is possible: contexts, shapes and types agree, and the
 * blocks do not overlap. */
sps_status spsi_operator_check(const sps_operator *op, const sps_block *X,
                               const sps_block *Y);
/* Returns whether X and Y overlap in memory; disjoint columns of one block do
 * not. */
bool spsi_blocks_overlap(const sps_block *X, const sps_block *Y);
/* Creates an operator without a matrix; sps_operator_destroy frees it. */
sps_status spsi_operator_new(sps_context *ctx, sps_operator **op_p);
/* Creates an operator from a csr (sps_operator_csr) for blocks of dtype; blocks
 * of floats require an A of floats. */
sps_status spsi_operator_create(sps_context *ctx, sps_csr *A, int width,
                                sps_dtype dtype, const sps_options *opt,
                                bool inner, sps_operator **op_p);
/* sps_operator_csr and sps_operator_rows, for a solver with blocks of `kept`
 * columns in all; 0 if that is not known. */
sps_status spsi_operator_csr(sps_context *ctx, sps_csr *A, int width,
                             const sps_options *opt, int64_t kept,
                             sps_operator **op_p);
sps_status spsi_operator_rows(sps_context *ctx, const sps_csr *shape,
                              int64_t longest, sps_rows_fn make, void *data,
                              int width, const sps_options *opt, int64_t kept,
                              sps_operator **op_p);
/* operator_single.c: returns SPS_EUNFIT unless values with this largest
 * magnitude are suitable for single precision. */
sps_status spsi_operator_fits_single(sps_context *ctx, double largest);
/* Creates an operator with the values of A (sorted, in host or device memory,
 * doubles or floats) in single precision, for blocks of either type; it uses
 * the pattern of A, which must outlive it.  EUNFIT if a value is far outside
 * the range of floats. */
sps_status spsi_operator_single(sps_context *ctx, const sps_csr *A, int width,
                                sps_dtype blocks, const sps_options *opt,
                                sps_operator **op_p);
/* Creates an operator of the matrix of A in single precision, for blocks of
 * floats of its width.  It shares with A the measured features and the copy of
 * the pattern in the backend's memory; A must outlive it. */
sps_status spsi_operator_single_of(const sps_operator *A,
                                   const sps_options *opt,
                                   sps_operator **op_p);
/* Copies the present values of A to `single`, which spsi_operator_single made
 * from A; the second function is for one made by spsi_operator_single_of. After
 * SPS_EUNFIT, because a value is outside the range of floats, `single` must not
 * be applied. */
sps_status spsi_operator_single_follow(const sps_csr *A, sps_operator *single);
sps_status spsi_operator_single_of_follow(const sps_operator *A,
                                          sps_operator *single);
/* Creates an inner operator with the values of another matrix S on the pattern
 * of A's matrix: as doubles or floats in backend memory if the values of A are
 * stored there, else as doubles on the host.  If *op_p exists, it gets new
 * values. */
sps_status spsi_operator_single_like(const sps_operator *A, const sps_csr *S,
                                     const sps_options *opt,
                                     sps_operator **op_p);
/* Creates an inner operator with the pattern of A, which must outlive it, and
 * its values as dtype, for blocks of dtype.  In host memory the values are
 * copied.  In device memory, from the backend's alloc with room for nnz + 1,
 * they are of dtype and become the operator's: A->val becomes NULL. */
sps_status spsi_operator_valued(sps_context *ctx, sps_csr *A, int width,
                                sps_dtype dtype, sps_operator **op_p);
/* The same for a rectangular matrix over several processes
 * (spsi_ranks_across), in host memory.  Its pattern need not outlive the
 * operator, whose values cannot be set again. */
sps_status spsi_operator_across(sps_context *ctx, const sps_csr *A,
                                int64_t cols, int width, sps_dtype dtype,
                                sps_operator **op_p);
static inline size_t spsi_csr_value_bytes(const sps_csr *A)
{
    return (size_t)A->nnz * spsi_dtype_size(A->dtype);
}
/* transpose.c: creates A' as an operator with plans of its own, for blocks of
 * up to `width` columns.  EUNFIT if A is a callback without products with
 * A'. */
sps_status spsi_operator_transposed(const sps_operator *A,
                                    const sps_options *opt, int width,
                                    sps_operator **T_p);
/* Copies the present values of A to T, which spsi_operator_transposed made from
 * it. */
sps_status spsi_operator_transposed_follow(const sps_operator *A,
                                           sps_operator *T);
/* operator_csr.c: sets op->A (host arrays with sorted rows; for a csr on a GPU
 * only its shape) and op->local (arrays in the backend's memory) from the
 * caller's A. */
sps_status spsi_operator_take_csr(sps_operator *op, sps_csr *A);
/* Returns whether a matrix with nnz entries may be in host memory: it is not
 * small, or the context's memory is limited. */
bool spsi_operator_may_be_far(const sps_operator *op, int64_t nnz);
/* Returns the device memory that the matrix leaves to blocks of op->width
 * columns: those of op->kept, or eight blocks, twelve if A is streamed
 * (`far`). */
size_t spsi_operator_blocks_room(const sps_operator *op, bool far);
/* Sets op->local.far: whether the arrays of A, once uploaded, would leave too
 * little device memory for the blocks of a solver.  Operators made by the
 * library are on the GPU, or fail.  Only the shape of A is read. */
sps_status spsi_operator_decide_far(sps_operator *op, const sps_csr *A);
/* Frees the arrays among these that the library owns. */
void spsi_operator_drop_csr(sps_operator *op);
/* operator_values.c: copies the values of op->A to op->local. */
sps_status spsi_operator_set_local(sps_operator *op);
/* Copies between host memory and an array of op->local.  If that array is in
 * host memory itself, the copy is complete on return; otherwise as for upload
 * and download. */
sps_status spsi_operator_write(const sps_operator *op, const void *to,
                               const void *from, size_t bytes);
sps_status spsi_operator_read(const sps_operator *op, void *to,
                              const void *from, size_t bytes);
/* Allocates memory for the values of op->local, which are not set. */
sps_status spsi_operator_alloc_values(sps_operator *op);
/* Updates the plans after the values of op->local have changed. */
sps_status spsi_operator_refresh(sps_operator *op);
/* Makes the arrays of op->A available, with the values of op->local: to be
 * called before any of them is read.  A csr on a GPU is copied to host memory
 * at the first call, and its values again after each sps_operator_set_values
 * from there. */
sps_status spsi_operator_fetch(const sps_operator *op);
/* sps_csr_symmetric for the present values with the tolerance 1e-10; the result
 * is cached for further calls.  difference may be NULL. */
sps_status spsi_operator_symmetric(const sps_operator *op, bool *symmetric,
                                   double *difference);

#ifdef __cplusplus
}
#endif
#endif
