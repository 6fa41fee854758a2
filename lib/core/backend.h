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

/* Types of rooms above, declared only. */
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
struct sps_fused_cg;

/* H + L = W + V + A X diag(c) in twice the working precision.  The error of
 * element (i, j) is at most m u^2 times the sum of the magnitudes, m entries in
 * the row, plus u |h| if L is NULL, plus u |v|.  Where an intermediate result
 * overflows, h is the result of plain summation, and l = 0. */
typedef struct sps_twofold_args {
    const double *c;          /* k numbers, host memory; NULL: -1 each */
    const sps_block *X;
    const sps_block *W, *V;   /* NULL: 0; V is the low-order part of W */
    sps_block *H, *L;         /* |l| <= u |h|; L NULL: not needed.  H may be W
                                 and L may be V; X is separate from all */
} sps_twofold_args;

typedef struct sps_backend {
    const char *name;                 /* "cpu", "cuda" */
    sps_place place;
    /* --- opening.  open sets ctx->device, ctx->machine, ctx->backend_data,
     * ctx->stream. */
    sps_status (*open)(sps_context *ctx);
    void (*close)(sps_context *ctx);
    sps_status (*sync)(sps_context *ctx);
    /* Allocates scratch for blocks up to n x k, so that later calls do not. */
    sps_status (*reserve)(sps_context *ctx, int64_t n, int k);
    sps_status (*memory)(sps_context *ctx, size_t *free_p, size_t *total_p);
    void (*phase_begin)(sps_context *ctx, sps_phase phase);
    void (*phase_end)(sps_context *ctx, sps_phase phase);
    /* --- memory of the backend; alloc does not clear; 256-byte aligned. */
    sps_status (*alloc)(sps_context *ctx, size_t bytes, void **p_p);
    void (*release)(sps_context *ctx, void *p, size_t bytes);
    /* The same, zeroed; NULL: alloc and fill are used. */
    sps_status (*alloc_clear)(sps_context *ctx, size_t bytes, void **p_p);
    sps_status (*upload)(sps_context *ctx, void *to, const void *from_host,
                         size_t bytes);          /* from_host may be reused */
    sps_status (*download)(sps_context *ctx, void *to_host, const void *from,
                           size_t bytes);        /* complete on return */
    sps_status (*copy)(sps_context *ctx, void *to, const void *from,
                       size_t bytes);            /* within its memory */
    /* offset[i] = count[0] + .. + count[i-1], i = 0 .. n, arrays in device
     * memory; complete on return.  For builders of plans; NULL on the host. */
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
    sps_status (*random)(sps_block *X, uint64_t seed);
    sps_status (*set)(sps_block *X, const double *data, int64_t ld,
                      sps_order order, sps_place place);
    sps_status (*get)(const sps_block *X, double *data, int64_t ld,
                      sps_order order, sps_place place);
    sps_status (*gather)(const sps_block *X, const int *index, sps_block *Y);
    sps_status (*scatter)(const sps_block *X, const int *index, sps_block *Y);
    /* Rows instead of columns, index in the memory of the blocks; NULL where
     * operators of ranks are not supported. */
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
    /* --- fused block operations; NULL: composed by lib/block/block_ops.c. */
    sps_status (*gram_pair)(const sps_block *P, const sps_block *Q,
                            const sps_block *R, sps_small *G, sps_small *C);
    sps_status (*subtract)(const sps_block *Q, const sps_small *a,
                           sps_block *R, sps_small *S);
    sps_status (*subtract_cols)(const sps_block *Q, const double *a,
                                sps_block *R, double *norm2);
    sps_status (*combine)(const sps_block *Z, const sps_small *b, sps_block *P,
                          sps_small *G);
    /* --- fused iterations of conjugate gradients, three passes in this order
     * (fused_cg.h defines each); NULL: none.  fused_cg_columns: the form with
     * scalars by column is supported. */
    bool fused_cg_columns;
    sps_status (*fused_cg_lengths)(const struct sps_fused_cg *w,
                                   const sps_block *P, const sps_block *Q);
    sps_status (*fused_cg_residual)(const struct sps_fused_cg *w,
                                    const sps_block *Q, sps_block *R);
    sps_status (*fused_cg_directions)(const struct sps_fused_cg *w,
                                      sps_block *P, sps_block *X,
                                      const sps_block *R);
    /* --- matrix operations; A is a host csr, results are host arrays; NULL on
     * a GPU: the CPU's function is used (so set-up on the device can be added
     * without a change to any preconditioner). */
    sps_status (*csr_diagonal)(sps_context *ctx, const sps_csr *A,
                               double *diagonal);
    /* Inverses of the diagonal blocks rows start[b] .. start[b+1]-1, each
     * column-major, one after another in inverse; *bad: first block that is
     * singular or -1. */
    sps_status (*csr_block_inverse)(sps_context *ctx, const sps_csr *A,
                                    const int64_t *start, int64_t blocks,
                                    double *inverse, int64_t *bad);
    /* F = L + U - I in place, L U the incomplete factors in F's own pattern;
     * diagonal[i]: offset of entry (i, i).  *bad: first row whose pivot is not
     * a number, or negligible relative to its row, or (with positive) not
     * positive; -1: none.  The factors are usable only with -1. */
    sps_status (*csr_ilu0)(sps_context *ctx, sps_csr *F,
                           const int64_t *diagonal, const sps_levels *levels,
                           bool positive, int64_t *bad);
    /* Incomplete factors with a drop tolerance (incomplete_rows.h). */
    sps_status (*csr_ilut)(sps_context *ctx, const sps_csr *B,
                           const sps_ilut_options *o, sps_ilut_result *r);
    /* Rows g_i into G->val and columns v_i into v, both in the pattern of G
     * (lower, sorted, whole diagonal): last row and column of A(S, S)^-1, S the
     * columns of row i.  *bad: number of rows reduced to their diagonal. */
    sps_status (*csr_fsai)(sps_context *ctx, const sps_csr *A, sps_csr *G,
                           double *v, bool symmetric, int64_t *bad);
    /* --- products of sparse matrices.  Here A, B and C are in the memory of
     * the backend (a host csr goes to the CPU; there A and B have one dtype);
     * rows of A and B are sorted without duplicates, and so are those of C,
     * which stores every entry that has a product.  c_ij is the chain of fused
     * multiply-adds over ascending k that starts from -0.  NULL: none. */
    sps_status (*csr_multiply)(sps_context *ctx, const sps_csr *A,
                               const sps_csr *B, sps_csr **C_p);
    /* New values of C, the product of matrices with the patterns of A and B;
     * EMATRIX if it is not. */
    sps_status (*csr_multiply_values)(sps_context *ctx, const sps_csr *A,
                                      const sps_csr *B, sps_csr *C);
    /* *bad: the first row with falling offsets or a column out of range, nrow
     * if the last offset is not nnz, else -1; *sorted: columns ascend strictly.
     * NULL on the host. */
    sps_status (*csr_inspect)(sps_context *ctx, const sps_csr *A, int64_t *bad,
                              bool *sorted);
    /* The transpose as a new csr with sorted rows; rows of A are sorted.  NULL
     * on the host. */
    sps_status (*csr_transpose)(sps_context *ctx, const sps_csr *A,
                                sps_csr **T_p);
    /* --- the set-up of multigrid (coarsening.h); NULL: none. */
    const sps_coarsening *coarsening;
    /* --- triangles (triangle.h).  open may store a copy in t->local; refresh
     *     updates its values; close may be called after an open that failed. */
    sps_status (*triangle_open)(sps_triangle *t);
    sps_status (*triangle_refresh)(sps_triangle *t);
    sps_status (*triangle_solve)(const sps_triangle *t, const sps_block *B,
                                 sps_block *X);
    void (*triangle_close)(sps_triangle *t);
    /* --- the product in twice the working precision, see above; doubles.  A
     * NULL: the identity. */
    sps_status (*twofold)(const sps_csr_local *A,
                          const sps_twofold_args *args);
    /* --- stacks of blocks, basis.h; NULL: composed by lib/block/basis.c. */
    sps_status (*basis_dots)(const sps_basis *V, int count, const sps_block *W,
                             sps_small *H);
    sps_status (*basis_update)(double a, const sps_basis *V, int count,
                               const sps_small *H, bool add, sps_block *W,
                               double *norm2);
    /* --- set-up of an operator whose csr is in the memory of the backend, all
     * NULL on the host.  narrow[i] = wide[i], n offsets below 2^31. */
    sps_status (*csr_narrow)(sps_context *ctx, const int64_t *wide, int64_t n,
                             int32_t *narrow);
    /* The integers from which the features of A are computed (windows.h). */
    sps_status (*csr_features)(sps_context *ctx, const sps_csr_local *A,
                               sps_raw_features *raw);
    /* diagonal[i] = a_ii, 0 where none is stored; n numbers in host memory. */
    sps_status (*local_diagonal)(sps_context *ctx, const sps_csr_local *A,
                                 double *diagonal);
    /* *some: in some component of the pattern of A + A', which is square, the
     * sum of each row is at most tol times that of its |a_ij|. */
    sps_status (*local_cancels)(sps_context *ctx, const sps_csr_local *A,
                                double tol, bool *some);
    /* --- host memory that kernels of a GPU read over the link (page-locked;
     * the same address on both sides), counted as host memory; NULL on the
     * host.  Not cleared; ENOMEM with the bytes. */
    sps_status (*share)(sps_context *ctx, size_t bytes, void **p_p);
    void (*unshare)(sps_context *ctx, void *p, size_t bytes);
} sps_backend;

extern const sps_backend spsi_backend_cpu;
/* The backends built in; the first one is the host's, which has every
 * operation.  Generated from SPS_BACKENDS, NULL-terminated. */
extern const sps_backend *const spsi_backends[];

#ifdef __cplusplus
}
#endif
#endif
