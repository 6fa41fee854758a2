/* SPDX-License-Identifier: BSD-3-Clause */
/* coarse.cuh - a level of multigrid in device memory, and the declarations of
 * the functions that compute its stages.
 *
 * The arrays of a level exist until it is closed; the tentative prolongator T
 * and the filtered matrix F exist only until the matrices of the next level
 * have been computed. */
#ifndef SPS_CUDA_COARSE_CUH
#define SPS_CUDA_COARSE_CUH

#include "cuda/amg/launch.cuh"

/* A stream beside that of the context, for the levels of one hierarchy. */
struct coarse_side {
    cudaStream_t stream;
    cudaEvent_t ready, done;  /* its input is ready; its work is done */
    int users;                /* number of levels */
};

struct coarse_spectrum;

struct sps_coarse {
    sps_context *ctx;
    sps_csr A;                /* matrix of the level, in doubles; its arrays
                                 belong to the caller or to `piece` */
    int64_t nodes;
    int block;                /* number of rows of a node of the finest level */
    int64_t *start;           /* nodes + 1: first row of each node; NULL if
                                 each row is a node */
    int32_t *node;            /* node of each row; NULL if each row is a node */
    int vectors;
    double *near;             /* near-null vectors, n x `vectors`, row-major */
    double *scale;            /* n: scaling of A to unit diagonal */
    int64_t diagonals;        /* number of diagonal entries that are stored */
    double *most;             /* largest coupling of each row, by `lanczos`, for
                                 nodes of one row; exists until strong couplings
                                 are found */
    coarse_side *side;        /* NULL until a level needs it */
    coarse_spectrum *ahead;   /* Lanczos coefficients of A that are computed on
                                 the side, or NULL */
    double *ahead_room;       /* the vectors of these steps */
    double *factor;           /* scaling of the filtered matrix F, n numbers */
    /* The strong couplings of the nodes, as rows of a sparse matrix. */
    int64_t *rowptr, edges;
    int32_t *col;
    double *weight;           /* strengths of the couplings; exists until
                                 aggregates are formed */
    int32_t *aggregate;       /* aggregate of each node */
    int64_t aggregates;
    uint64_t *kept;           /* for each aggregate: bit j is set if near-null
                                 vector j is kept */
    int64_t *place;           /* first column of T of each aggregate, aggregates
                                 + 1 numbers */
    double *R;                /* a matrix of `vectors` x `vectors` for each
                                 aggregate: the coefficients of its near-null
                                 vectors */
    sps_csr *T, *F;
    /* Memory that belongs to the level. */
    struct { void *p; size_t bytes; } piece[24];
    int pieces;
};

namespace {

/* Allocates n elements that exist as long as the level; if *p is set already,
 * it is used again. */
template <class X> sps_status keep(sps_coarse *l, int64_t n, X **p)
{
    const size_t bytes = (size_t)n * sizeof(X);
    void *got;

    if (*p) return SPS_OK;
    SPS_TRY_RETURN(spsi_cuda_alloc(l->ctx, bytes, &got));
    l->piece[l->pieces].p = got;
    l->piece[l->pieces++].bytes = bytes;
    *p = (X *)got;
    return SPS_OK;
}

/* Frees an array of the level before the level is closed. */
template <class X> void give_back(sps_coarse *l, X **p)
{
    for (int i = 0; i < l->pieces && *p; i++)
        if (l->piece[i].p == (void *)*p) {
            spsi_cuda_release(l->ctx, *p, l->piece[i].bytes);
            l->piece[i] = l->piece[--l->pieces];
            *p = NULL;
        }
}

/* The part of a matrix that kernels read. */
struct entries {
    const int64_t *__restrict__ rowptr;
    const int32_t *__restrict__ col;
    const double *__restrict__ val;
};

/* Returns the position of the diagonal entry of row i, found by bisection, or
 * -1. */
__device__ inline int64_t diagonal_place(const entries &A, int64_t i)
{
    int64_t low = A.rowptr[i], left = A.rowptr[i + 1] - low - 1;

    if (left < 0) return -1;
    while (left > 0) {
        const int64_t half = (left + 1) / 2;

        if (A.col[low + half] <= i) low += half;
        left -= half;
    }
    return A.col[low] == i ? low : -1;
}

inline entries entries_of(const sps_csr *A)
{
    return {A->rowptr, A->col, (const double *)A->val};
}

/* The rows of node v are begin(v) .. begin(v + 1) - 1. */
struct node_rows {
    const int64_t *__restrict__ start;

    __device__ int64_t begin(int64_t v) const { return start ? start[v] : v; }
};

/* Makes *made a csr of n rows with these counts of entries: allocates its
 * offsets and computes them.  spsi_cuda_csr_finish releases its arrays after a
 * failure. */
sps_status open_offsets(sps_context *ctx, const int32_t *count, int64_t n,
                        int64_t ncol, sps_csr *made)
{
    void *got;

    *made = {};
    made->nrow = n;
    made->ncol = ncol;
    made->dtype = SPS_F64;
    SPS_TRY_RETURN(spsi_cuda_alloc(ctx, (size_t)(n + 1) * sizeof(int64_t),
                                   &got));
    made->rowptr = (int64_t *)got;
    return spsi_cuda_scan(ctx, count, n, made->rowptr);
}

/* Allocates its nnz entries. */
sps_status open_entries(sps_context *ctx, int64_t nnz, sps_csr *made)
{
    void *got;

    made->nnz = nnz;
    if (nnz == 0) return SPS_OK;
    SPS_TRY_RETURN(spsi_cuda_alloc(ctx, (size_t)nnz * sizeof(int32_t), &got));
    made->col = (int32_t *)got;
    SPS_TRY_RETURN(spsi_cuda_alloc(ctx, (size_t)nnz * sizeof(double), &got));
    made->val = got;
    return SPS_OK;
}

} // namespace

/* amg_strength.cu: finds the strong couplings of the level. */
sps_status spsi_coarse_strength(sps_coarse *l);
/* amg_roots.cu: t becomes 2^64 - 1 for roots and 0 for other nodes (roots.h); u
 * is scratch memory of the same length. */
sps_status spsi_coarse_roots(sps_coarse *l, uint64_t *t, uint64_t *u);

/* The functions in the table of stages, in the order of their files. */
sps_status spsi_coarse_symmetric(sps_coarse *l, double tol, bool *symmetric,
                                 double *difference);
sps_status spsi_coarse_kinds(sps_coarse *l, bool projected, sps_row_kinds *k);
sps_status spsi_coarse_known(sps_coarse *l, int b, int64_t *known);
sps_status spsi_coarse_diagonal(sps_coarse *l, sps_block *inverse,
                                sps_diagonal_kinds *k);
sps_status spsi_coarse_scale(sps_coarse *l, bool finest, int64_t *bad,
                             double *value);
sps_status spsi_coarse_inverse(const sps_coarse *l, sps_block *d);
sps_status spsi_coarse_spread(const sps_coarse *l, double most[2]);
sps_status spsi_coarse_weigh(sps_context *ctx, const sps_csr *A,
                             const sps_block *r, const sps_block *c,
                             sps_dtype dtype, void *val, sps_block *largest,
                             int at);
sps_status spsi_coarse_ahead(sps_context *ctx, const sps_csr *P,
                             const sps_csr *AP, double f, const sps_block *d,
                             sps_dtype dtype, void *val, sps_block *largest,
                             int at, bool *within);
sps_status spsi_coarse_enter(const sps_block *d, const double *c,
                             const sps_block *R, sps_block *U);
sps_status spsi_coarse_subtract(const sps_block *Q, const sps_small *a,
                                sps_block *R, sps_small *S, const sps_block *d,
                                const double *c, sps_block *U, bool *served);
sps_status spsi_coarse_multiply(sps_context *ctx, const sps_csr *A,
                                const sps_csr *B, int64_t most, sps_csr **C_p);
sps_status spsi_coarse_invert(sps_coarse *l, sps_csr **Z_p, bool *regular);
sps_status spsi_coarse_lanczos(sps_coarse *l, bool filtered, double *diagonal,
                               double *off, double *bound);
sps_status spsi_coarse_ahead_lanczos(sps_coarse *l);
sps_status spsi_coarse_lanczos_across(sps_coarse *l, const sps_csr *A,
                                      const spsi_coarse_across *x,
                                      double *diagonal, double *off,
                                      double *bound);
sps_status spsi_coarse_aggregate(sps_coarse *l, int64_t *aggregates);
sps_status spsi_coarse_tentative(sps_coarse *l, bool again, int64_t *columns,
                                 bool *single);
sps_status spsi_coarse_filter(sps_coarse *l, bool *filtered);
sps_status spsi_coarse_prolong(sps_coarse *l, bool smooth, double omega,
                               sps_csr **P_p);
sps_status spsi_coarse_smooth(sps_coarse *l, const sps_csr *F,
                              const sps_csr *all, int64_t low, double omega,
                              const int32_t *row, const double *factor,
                              int64_t rows, sps_csr **P_p);
sps_status spsi_coarse_traits(const sps_coarse *l, const int32_t *row,
                              int64_t rows, double *to);
sps_status spsi_coarse_outside(sps_context *ctx, const sps_csr *A,
                               int64_t first, int64_t last, int32_t **row_p,
                               int64_t *rows);
sps_status spsi_coarse_pick(sps_context *ctx, const sps_csr *A,
                            const int32_t *row, int64_t rows, sps_csr **B_p);
sps_status spsi_coarse_replace(sps_context *ctx, const sps_csr *A,
                               const spsi_placing *p, const sps_csr *B,
                               sps_csr **C_p);
/* amg_spectrum.cu: the level no longer uses its second stream. */
void spsi_coarse_leave_side(sps_coarse *l);
/* amg_tentative.cu: computes the near-null vectors of the next level, (columns
 * of T) x vectors. */
sps_status spsi_coarse_fill_near(const sps_coarse *l, double *near);

#endif
