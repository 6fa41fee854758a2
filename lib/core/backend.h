/* SPDX-License-Identifier: BSD-3-Clause */
/* backend.h - the operations of a backend (host or GPU): memory, block
 * operations, matrix operations.  Arguments are checked by the callers (lib/);
 * backends trust them.
 *
 * Rules: work is queued on ctx->stream and may be asynchronous, unless a result
 * goes to host memory (then it is complete on return).  Nothing allocates after
 * reserve(), which allocates scratch memory.  Sums have a fixed order that
 * depends on shapes and the device alone (no floating-point atomics,
 * independent of the number of threads).  block.h has the contract of each
 * operation; k up to 1024, any ld, data aligned to 8 bytes at least. */
#ifndef SPS_BACKEND_H
#define SPS_BACKEND_H

#include "core/context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Types that are defined in folders above this one; only declared here. */
typedef struct sps_basis sps_basis;
typedef struct sps_coarsening sps_coarsening;
typedef struct sps_components sps_components;
typedef struct sps_csr_local sps_csr_local;
typedef struct sps_ilut_options sps_ilut_options;
typedef struct sps_ilut_result sps_ilut_result;
typedef struct sps_levels sps_levels;
typedef struct sps_raw_features sps_raw_features;
typedef struct sps_small sps_small;
typedef struct sps_triangle sps_triangle;
typedef struct sps_two_way sps_two_way;
struct sps_fused_cg;

/* H + L = W + V + A X diag(c) in twice the working precision.  The error of
 * element (i, j) is at most m u^2 times the sum of the magnitudes, m entries in
 * the row, plus u |h| if L is NULL, plus u |v|.  Where an intermediate result
 * overflows, h is the result of plain summation, and l = 0. */
typedef struct sps_twofold_args {
    const double *c;          /* k factors in host memory; NULL stands for -1
                                 each */
    const sps_block *X;
    const sps_block *W, *V;   /* NULL stands for zero; V is the low-order
                                 part of W */
    sps_block *H, *L;         /* |l| <= u |h|; L is NULL if it is not needed.
                                 H may be W and L may be V; X overlaps none
                                 of them */
} sps_twofold_args;

typedef struct sps_backend {
    const char *name;                 /* "cpu", "cuda" */
    sps_place place;
    /* --- opening.  open sets ctx->device, ctx->machine, ctx->backend_data,
     * ctx->stream. */
    sps_status (*open)(sps_context *ctx);
    void (*close)(sps_context *ctx);
    sps_status (*sync)(sps_context *ctx);
    /* Allocates scratch memory for blocks of up to n x k, so that later calls
     * need not allocate. */
    sps_status (*reserve)(sps_context *ctx, int64_t n, int k);
    sps_status (*memory)(sps_context *ctx, size_t *free_p, size_t *total_p);
    void (*phase_begin)(sps_context *ctx, sps_phase phase);
    void (*phase_end)(sps_context *ctx, sps_phase phase);
    /* --- memory of the backend, aligned to 256 bytes; alloc does not clear
     * it. */
    sps_status (*alloc)(sps_context *ctx, size_t bytes, void **p_p);
    void (*release)(sps_context *ctx, void *p, size_t bytes);
    /* Allocates zeroed memory.  Where it is NULL, alloc and fill are used. */
    sps_status (*alloc_clear)(sps_context *ctx, size_t bytes, void **p_p);
    sps_status (*upload)(sps_context *ctx, void *to, const void *from_host,
                         size_t bytes);          /* from_host may be reused */
    sps_status (*download)(sps_context *ctx, void *to_host, const void *from,
                           size_t bytes);        /* complete on return */
    sps_status (*copy)(sps_context *ctx, void *to, const void *from,
                       size_t bytes);            /* within its memory */
    /* Computes offset[i] = count[0] + .. + count[i-1] for i = 0 .. n.  Both
     * arrays are in device memory, and the result is complete on return.  Used
     * when plans are built; NULL on the host. */
    sps_status (*scan)(sps_context *ctx, const int32_t *count, int64_t n,
                       int64_t *offset);
    /* --- recording (CUDA graphs): work queued between begin and end is not run
     * but recorded, and run by each replay.  Nothing in between may allocate or
     * synchronise.  NULL on the host. */
    sps_status (*record_begin)(sps_context *ctx);
    sps_status (*record_end)(sps_context *ctx, void **recording_p);
    sps_status (*replay)(sps_context *ctx, void *recording);
    void (*record_drop)(sps_context *ctx, void *recording);
    /* --- blocks; see block.h for each.  A small matrix is in host memory or in
     * the memory of the blocks: results in the latter are queued, results in
     * host memory are complete on return. */
    sps_status (*fill)(sps_block *X, double value);
    /* Row i of X gets the numbers of row first + i. */
    sps_status (*random)(sps_block *X, uint64_t seed, int64_t first);
    sps_status (*set)(sps_block *X, const double *data, int64_t ld,
                      sps_order order, sps_place place);
    sps_status (*get)(const sps_block *X, double *data, int64_t ld,
                      sps_order order, sps_place place);
    sps_status (*gather)(const sps_block *X, const int *index, sps_block *Y);
    sps_status (*scatter)(const sps_block *X, const int *index, sps_block *Y);
    /* take_rows: Y(i, :) = X(index[i], :); put_rows: Y(index[i], :) = X(i, :);
     * index is in the memory of the blocks.  NULL in a backend that does not
     * support operators distributed over processes. */
    sps_status (*take_rows)(const sps_block *X, const int32_t *index,
                            sps_block *Y);
    sps_status (*put_rows)(const sps_block *X, const int32_t *index,
                           sps_block *Y);
    sps_status (*axpby)(double a, const sps_block *X, double b, sps_block *Y);
    sps_status (*axpby_cols)(const double *a, const sps_block *X,
                             const double *b, sps_block *Y);
    sps_status (*scale_rows)(const sps_block *d, const sps_block *X,
                             sps_block *Y);
    sps_status (*dots)(const sps_block *X, const sps_block *Y, double *out);
    /* out[j] = max_i |x_ij|, NaN if there is one: for scaled norms. */
    sps_status (*maxabs)(const sps_block *X, double *out);
    sps_status (*gram)(const sps_block *X, const sps_block *Y, sps_small *C);
    sps_status (*mul_small)(double a, const sps_block *X, const sps_small *C,
                            double b, sps_block *Y);
    /* For each component c: X -= mean of X over the rows of c, by columns; rows
     * in no component are unchanged. */
    sps_status (*remove_means)(const sps_components *c, sps_block *X);
    /* --- fused block operations; where they are NULL, lib/block/block_ops.c
     * composes them of the others. */
    sps_status (*gram_pair)(const sps_block *P, const sps_block *Q,
                            const sps_block *R, sps_small *G, sps_small *C);
    sps_status (*subtract)(const sps_block *Q, const sps_small *a,
                           sps_block *R, sps_small *S);
    sps_status (*subtract_cols)(const sps_block *Q, const double *a,
                                sps_block *R, double *norm2);
    sps_status (*combine)(const sps_block *Z, const sps_small *b, sps_block *P,
                          sps_small *G);
    /* --- fused iterations of conjugate gradients: three passes, in this order
     * (fused_cg.h defines each); NULL where there are none.  fused_cg_columns:
     * whether the form with separate scalars for each column is supported. */
    bool fused_cg_columns;
    sps_status (*fused_cg_lengths)(const struct sps_fused_cg *w,
                                   const sps_block *P, const sps_block *Q);
    sps_status (*fused_cg_residual)(const struct sps_fused_cg *w,
                                    const sps_block *Q, sps_block *R);
    sps_status (*fused_cg_directions)(const struct sps_fused_cg *w,
                                      sps_block *P, sps_block *X,
                                      const sps_block *R);
    /* --- matrix operations: A is a csr in host memory, and results are arrays
     * in host memory.  Where a GPU backend has NULL, the function of the CPU is
     * used, so that set-up on the device can be added without a change to any
     * preconditioner. */
    sps_status (*csr_diagonal)(sps_context *ctx, const sps_csr *A,
                               double *diagonal);
    /* Inverts the diagonal blocks of rows start[b] .. start[b+1]-1.  The
     * inverses are stored column-major, one after another.  *bad is the first
     * block that is singular, or -1 if none is. */
    sps_status (*csr_block_inverse)(sps_context *ctx, const sps_csr *A,
                                    const int64_t *start, int64_t blocks,
                                    double *inverse, int64_t *bad);
    /* F = L + U - I in place, where L U are the incomplete factors in the
     * pattern of F, and diagonal[i] is the offset of entry (i, i).  *bad is the
     * first row whose pivot is not a number, is negligible relative to its row,
     * or (if `positive`) is not positive; it is -1 if there is none, and only
     * then are the factors usable. */
    sps_status (*csr_ilu0)(sps_context *ctx, sps_csr *F,
                           const int64_t *diagonal, const sps_levels *levels,
                           bool positive, int64_t *bad);
    /* Incomplete factors with a drop tolerance (incomplete_rows.h). */
    sps_status (*csr_ilut)(sps_context *ctx, const sps_csr *B,
                           const sps_ilut_options *o, sps_ilut_result *r);
    /* Factorised sparse approximate inverse.  For each row i, with columns S in
     * the pattern of G (lower triangle, sorted, with the whole diagonal), the
     * last row of A(S, S)^-1 is stored in G->val and its last column in v.
     * *bad is the number of rows that were reduced to their diagonal. */
    sps_status (*csr_fsai)(sps_context *ctx, const sps_csr *A, sps_csr *G,
                           double *v, bool symmetric, int64_t *bad);
    /* --- products of sparse matrices, in the memory of the backend; a GPU
     * multiplies also A and B in host memory, to C there, by panels.  In host
     * memory A and B have one dtype.  The rows of A and B are sorted without
     * duplicates, and so are those of C, which stores every entry that has a
     * product.  c_ij is the chain of fused multiply-adds over ascending k that
     * starts from -0.  NULL where there are none. */
    sps_status (*csr_multiply)(sps_context *ctx, const sps_csr *A,
                               const sps_csr *B, sps_csr **C_p);
    /* Computes new values of C, the product of two matrices with the patterns
     * of A and B; EMATRIX if C does not have the pattern of that product. */
    sps_status (*csr_multiply_values)(sps_context *ctx, const sps_csr *A,
                                      const sps_csr *B, sps_csr *C);
    /* *bad is the first row with decreasing offsets or a column out of range,
     * nrow if the last offset is not nnz, or else -1.  *sorted: whether columns
     * increase strictly in every row.  NULL on the host. */
    sps_status (*csr_inspect)(sps_context *ctx, const sps_csr *A, int64_t *bad,
                              bool *sorted);
    /* Creates the transpose as a new csr with sorted rows; the rows of A must
     * be sorted.  NULL on the host. */
    sps_status (*csr_transpose)(sps_context *ctx, const sps_csr *A,
                                sps_csr **T_p);
    /* --- the set-up of multigrid (coarsening.h); NULL where there is none. */
    const sps_coarsening *coarsening;
    /* --- triangles (triangle.h).  open may store a copy in t->local; refresh
     *     updates its values; close may be called after an open that failed. */
    sps_status (*triangle_open)(sps_triangle *t);
    sps_status (*triangle_refresh)(sps_triangle *t);
    sps_status (*triangle_solve)(const sps_triangle *t, const sps_block *B,
                                 sps_block *X);
    void (*triangle_close)(sps_triangle *t);
    /* --- the product in twice the working precision, defined at
     * sps_twofold_args; for doubles only.  A is NULL for the identity. */
    sps_status (*twofold)(const sps_csr_local *A,
                          const sps_twofold_args *args);
    /* --- the passes of two_way.h, with squared norms in host memory; NULL
     * where there are none. */
    sps_status (*two_way_there)(const sps_two_way *w, const double *c,
                                const sps_block *X, sps_block *U,
                                double *norm2);
    sps_status (*two_way_back)(const sps_two_way *w, const double *a, double d,
                               const sps_block *V, const double *b,
                               sps_block *Z, double *norm2);
    /* --- stacks of blocks (basis.h); where they are NULL, lib/block/basis.c
     * composes them. */
    sps_status (*basis_dots)(const sps_basis *V, int count, const sps_block *W,
                             sps_small *H);
    sps_status (*basis_update)(double a, const sps_basis *V, int count,
                               const sps_small *H, bool add, sps_block *W,
                               double *norm2);
    /* --- set-up of an operator whose csr is in the memory of the backend; all
     * are NULL on the host.  narrow[i] = wide[i] for n offsets below 2^31. */
    sps_status (*csr_narrow)(sps_context *ctx, const int64_t *wide, int64_t n,
                             int32_t *narrow);
    /* Computes the integers from which the features of A follow (windows.h). */
    sps_status (*csr_features)(sps_context *ctx, const sps_csr_local *A,
                               sps_raw_features *raw);
    /* diagonal[i] = a_ii, or 0 where none is stored; n values in host
     * memory. */
    sps_status (*local_diagonal)(sps_context *ctx, const sps_csr_local *A,
                                 double *diagonal);
    /* *some: whether the pattern of A + A', A square, has a connected component
     * in which the sum of each row is at most tol times the sum of its
     * |a_ij|. */
    sps_status (*local_cancels)(sps_context *ctx, const sps_csr_local *A,
                                double tol, bool *some);
    /* --- host memory that kernels of a GPU read over the link between host and
     * device: page-locked, not cleared, with the same address on both sides,
     * and counted as host memory.  ENOMEM names the bytes.  NULL on the
     * host. */
    sps_status (*share)(sps_context *ctx, size_t bytes, void **p_p);
    void (*unshare)(sps_context *ctx, void *p, size_t bytes);
} sps_backend;

extern const sps_backend spsi_backend_cpu;
/* The backends of this build, NULL-terminated; the first one is the host's,
 * which has every operation.  Generated from SPS_BACKENDS. */
extern const sps_backend *const spsi_backends[];

#ifdef __cplusplus
}
#endif
#endif
