/* SPDX-License-Identifier: BSD-3-Clause */
/* backend.h - what a place can do: memory, block operations, operations on
 * the matrix.  Arguments are checked by the callers (lib/); bodies trust them.
 *
 * Rules: work is queued on ctx->stream and may be asynchronous unless a
 * result goes to host memory (then it is complete on return).  Nothing
 * allocates after reserve(): scratch is taken there.  Sums have a fixed order
 * that depends on shapes and the device alone (no float atomics, no
 * dependence on the thread count).  Read the contract of each operation in
 * block.h; shapes k up to 1024, ld any, data 8-byte aligned at least. */
#ifndef SPS_BACKEND_H
#define SPS_BACKEND_H

#include "block.h"
#include "csr.h"
#include "ilut.h"
#include "triangle.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sps_basis sps_basis;
struct sps_steps;

typedef struct sps_backend {
    const char *name;                 /* "cpu", "cuda" */
    sps_place place;
    /* --- life.  open fills ctx->device, ctx->backend_data, ctx->stream. */
    sps_status (*open)(sps_context *ctx);
    void (*close)(sps_context *ctx);
    sps_status (*sync)(sps_context *ctx);
    /* Scratch for blocks up to n x k, so that no later call allocates. */
    sps_status (*reserve)(sps_context *ctx, int64_t n, int k);
    sps_status (*memory)(sps_context *ctx, size_t *free_p, size_t *total_p);
    void (*phase_begin)(sps_context *ctx, sps_phase phase);
    void (*phase_end)(sps_context *ctx, sps_phase phase);
    /* --- memory of the place; alloc does not clear; 256-byte aligned. */
    sps_status (*alloc)(sps_context *ctx, size_t bytes, void **p_p);
    void (*release)(sps_context *ctx, void *p, size_t bytes);
    sps_status (*upload)(sps_context *ctx, void *to, const void *from_host,
                         size_t bytes);          /* from_host is free then */
    sps_status (*download)(sps_context *ctx, void *to_host, const void *from,
                           size_t bytes);        /* place -> host, complete */
    sps_status (*copy)(sps_context *ctx, void *to, const void *from,
                       size_t bytes);            /* inside the place */
    /* offset[i] = count[0] + .. + count[i-1], i = 0 .. n, arrays in the place;
     * complete on return.  Builders of plans live on it; NULL on the host. */
    sps_status (*scan)(sps_context *ctx, const int32_t *count, int64_t n,
                       int64_t *offset);
    /* --- recording: what is queued between begin and end is not run but
     * kept, and run by each replay (CUDA graphs).  Nothing in between may
     * allocate or wait for the place.  NULL on the host. */
    sps_status (*record_begin)(sps_context *ctx);
    sps_status (*record_end)(sps_context *ctx, void **recording_p);
    sps_status (*replay)(sps_context *ctx, void *recording);
    void (*record_drop)(sps_context *ctx, void *recording);
    /* --- blocks; see block.h for each.  A small matrix may be on the host or
     * near: results that go near are queued, those that go to the host are
     * complete on return. */
    sps_status (*fill)(sps_block *X, double value);
    sps_status (*random)(sps_block *X, uint64_t seed);
    sps_status (*set)(sps_block *X, const double *data, int64_t ld,
                      sps_order order, sps_place place);
    sps_status (*get)(const sps_block *X, double *data, int64_t ld,
                      sps_order order, sps_place place);
    sps_status (*gather)(const sps_block *X, const int *index, sps_block *Y);
    sps_status (*scatter)(const sps_block *X, const int *index, sps_block *Y);
    sps_status (*axpby)(double a, const sps_block *X, double b, sps_block *Y);
    sps_status (*axpby_cols)(const double *a, const sps_block *X,
                             const double *b, sps_block *Y);
    sps_status (*scale_rows)(const sps_block *d, const sps_block *X,
                             sps_block *Y);
    sps_status (*dots)(const sps_block *X, const sps_block *Y, double *out);
    /* out[j] = max_i |x_ij|, NaN when one is met: for scaled norms. */
    sps_status (*maxabs)(const sps_block *X, double *out);
    sps_status (*gram)(const sps_block *X, const sps_block *Y, sps_small *C);
    sps_status (*mul_small)(double a, const sps_block *X, const sps_small *C,
                            double b, sps_block *Y);
    sps_status (*solve_small)(const sps_small *C, sps_block *X);
    /* For each component c: X -= mean of X over the rows of c, column by
     * column; rows in no component stay. */
    sps_status (*remove_means)(const sps_components *c, sps_block *X);
    /* --- fused blocks; NULL: lib/block_ops.c composes them. */
    sps_status (*gram_pair)(const sps_block *P, const sps_block *Q,
                            const sps_block *R, sps_small *G, sps_small *C);
    sps_status (*update_pair)(const sps_block *P, const sps_block *Q,
                              const sps_small *a, sps_block *X, sps_block *R,
                              sps_small *S);
    sps_status (*update_pair_cols)(const sps_block *P, const sps_block *Q,
                                   const double *a, sps_block *X, sps_block *R,
                                   double *norm2);
    sps_status (*combine)(const sps_block *Z, const sps_small *b, sps_block *P,
                          sps_small *G);
    /* --- steps of conjugate directions without waiting, three passes in this
     * order (steps.h says what each makes); NULL: none.  Own scalars for each
     * column are asked for where steps_columns says so. */
    bool steps_columns;
    sps_status (*steps_lengths)(const struct sps_steps *w, const sps_block *P,
                                const sps_block *Q);
    sps_status (*steps_residual)(const struct sps_steps *w,
                                 const sps_block *Q, sps_block *R);
    sps_status (*steps_directions)(const struct sps_steps *w, sps_block *P,
                                   sps_block *X, const sps_block *R);
    /* --- the matrix; A host csr, results host arrays; NULL on a GPU means
     *     the CPU body serves (set-up on the device can come without touching
     *     any preconditioner). */
    sps_status (*csr_diagonal)(sps_context *ctx, const sps_csr *A,
                               double *diagonal);
    /* Inverses of the diagonal blocks rows start[b] .. start[b+1]-1, each
     * column-major, one after another in inverse; *bad: first block that is
     * singular or -1. */
    sps_status (*csr_block_inverse)(sps_context *ctx, const sps_csr *A,
                                    const int64_t *start, int64_t blocks,
                                    double *inverse, int64_t *bad);
    /* F = L + U - I in place, L U the incomplete factors in F's own pattern;
     * diagonal[i]: offset of entry (i, i).  *bad: first row whose pivot is no
     * number, zero beside its row, or (positive) not positive; -1: none.  The
     * factors are usable only then. */
    sps_status (*csr_ilu0)(sps_context *ctx, sps_csr *F,
                           const int64_t *diagonal, const sps_levels *levels,
                           bool positive, int64_t *bad);
    /* Incomplete factors by threshold (ilut.h). */
    sps_status (*csr_ilut)(sps_context *ctx, const sps_csr *B,
                           const sps_ilut_options *o, sps_ilut_result *r);
    /* Rows g_i into G->val and columns v_i into v, both in the pattern of G
     * (lower, sorted, whole diagonal): last row and column of A(S, S)^-1, S the
     * columns of row i.  *bad: rows that keep their diagonal alone. */
    sps_status (*csr_fsai)(sps_context *ctx, const sps_csr *A, sps_csr *G,
                           double *v, bool symmetric, int64_t *bad);
    /* --- triangles (triangle.h).  open may keep a copy in t->local; refresh
     *     takes new values; close is safe after an open that failed. */
    sps_status (*triangle_open)(sps_triangle *t);
    sps_status (*triangle_refresh)(sps_triangle *t);
    sps_status (*triangle_solve)(const sps_triangle *t, const sps_block *B,
                                 sps_block *X);
    void (*triangle_close)(sps_triangle *t);
    /* --- stacks of blocks, basis.h; NULL: lib/basis.c composes them. */
    sps_status (*basis_dots)(const sps_basis *V, int count, const sps_block *W,
                             sps_small *H);
    sps_status (*basis_update)(double a, const sps_basis *V, int count,
                               const sps_small *H, bool add, sps_block *W,
                               double *norm2);
} sps_backend;

extern const sps_backend spsi_backend_cpu;

#ifdef __cplusplus
}
#endif
#endif
