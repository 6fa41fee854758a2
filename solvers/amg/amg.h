/* SPDX-License-Identifier: BSD-3-Clause */
/* amg.h - multigrid by smoothed aggregation (Vanek, Mandel and Brezina,
 * Computing 56, 1996) on blocks: the hierarchy, and the stages that make it.
 *
 * Every stage of the set-up is a function of a level, one at a time, on host
 * arrays or, if the backend has it, where the matrix lies (stages.c), with the
 * same bits; the cycle is made of operators and block operations only:
 *
 *   eliminate.c    exact elimination of nodes with one or two neighbours
 *   strength.c     strong couplings between the nodes of a level
 *   roots.c        independent nodes, MIS-2
 *   aggregate.c    aggregates of nodes around them
 *   near_null.c    vectors that the coarse spaces must contain
 *   low_pass.c     the same, found by a polynomial
 *   filter.c       A_F, without weak couplings
 *   tentative.c    T, these vectors on the aggregates
 *   prolongator.c  P = (I - w D_F^-1 A_F) T
 *   levels.c       A_c = P'A P, level after level
 *   stages.c       the stages above where a level lies
 *   spectrum.c     bounds of the spectrum of D^-1 A
 *   coarsest.c     the dense inverse of the coarsest matrix
 *   rounding.c     whether a cycle may run in single precision
 *   cycle.c        the V-cycle on blocks
 *   nonsymmetric.c what differs where A is far from symmetric
 *   over_ranks.c   the finest level over several processes, and
 *   over_ranks_p.c its P
 *   galerkin.c     its coarse matrix
 *
 * All is done as if A were scaled to S A S with unit diagonal, s_i =
 * a_ii^(-1/2); the matrices themselves are not scaled.  The results of every
 * stage are the same bits for any number of threads. */
#ifndef SPS_AMG_H
#define SPS_AMG_H

#include "driver/precond.h"
#include "matrix/coarsening.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    AMG_LEVELS = 15,          /* at most */
    AMG_DENSE = 600,          /* rows of a coarsest level with a dense inverse,
                                 at most */
    AMG_VECTORS = 12,         /* near-null vectors, at most */
    AMG_DEGREE = 4,           /* of the smoother, at most */
    AMG_LAST_DEGREE = 11      /* of a coarsest level too large for a dense
                                 inverse: odd, and so positive whatever the
                                 spectrum */
};

/* Couplings between nodes; columns of a row ascend, no node is coupled to
 * itself. */
typedef struct amg_graph {
    int64_t n;
    int64_t *rowptr;
    int32_t *col;
    double *weight;           /* c_ij > 0, relative to unit diagonals */
} amg_graph;

typedef struct amg_level {
    sps_coarse *part;         /* the level where its matrix lies; NULL: on the
                                 host.  With it the arrays of nodes are there,
                                 and those below NULL */
    const sps_csr *A;         /* doubles, rows ascending */
    sps_csr *own;             /* A, unless it is the caller's */
    int64_t n, nodes;
    int64_t *start;           /* nodes + 1: rows of node v are start[v] ..
                                 start[v+1] - 1; some have none */
    bool single_rows;         /* every node is one row */
    bool nonsymmetric;        /* far from symmetric (nonsymmetric.c) */
    double *scale;            /* n: a_ii^(-1/2); 0: the row is empty up to
                                 rounding, and has no part in coarser levels */
    int vectors;              /* q */
    double *near;             /* n x q, row-major: vectors that A maps to small
                                 ones */
    double rho;               /* estimate of the largest eigenvalue of D^-1 A */
    double upper;             /* bound of it, for the smoother */
    int degree;               /* of the smoother */
    double root[AMG_LAST_DEGREE];
    /* The coarsest level has none of the following. */
    amg_graph strong;
    int32_t *aggregate;       /* of each node, or -1 */
    int64_t aggregates;
    uint64_t *kept;           /* of each aggregate: bit j: its near-null vector
                                 j is independent of those before */
    int64_t *place;           /* aggregates + 1: columns of aggregate a */
    bool smoothed;
    bool eliminates;          /* exactly, without a smoother: rows without an
                                 aggregate; the others are one each */
    sps_csr *P, *R;           /* P and P' */
    /* Of the cycle. */
    sps_operator *own_op;     /* D^-1 A */
    sps_operator *prolong;    /* P */
    sps_operator *restrict_op;   /* D_c^-1 P'D, P'D where the next level has a
                                 dense inverse */
    sps_block *inverse;       /* n x 1: D^-1; NULL with a dense inverse */
    sps_block *mask;          /* n x 1, of a level that eliminates nodes: 1 for
                                 these, 0 for others */
    sps_block *r, *x, *t;     /* n x width; r: D^-1 times the residual; in
                                 doubles the finest level has no x */
} amg_level;

/* What `tentative` makes of a level, on the host unless it has a part. */
typedef struct amg_tentative {
    sps_csr *T;
    double *near;             /* near-null vectors of the next level */
    int64_t columns;          /* of T */
    bool single;              /* one for each aggregate */
} amg_tentative;

typedef struct amg {
    sps_precond super;
    const sps_coarsening *device;   /* stages of levels with a part, or NULL */
    amg_level level[AMG_LEVELS];
    int levels;
    int wanted_degree;        /* option degree; 0: chosen */
    const sps_block *inherited;     /* near-null vectors of the finest level, */
    int inherited_rows;       /* whose nodes have so many rows; or NULL */
    sps_csr *copy;            /* A in doubles, where the caller's has floats */
    sps_csr *inverse;         /* dense, of the coarsest matrix, or NULL */
    sps_operator *inverse_op;
    bool floats;              /* operators and blocks of the cycle are in single
                                 precision */
    int unit;                 /* then: exponent of the numbers in a cycle */
} amg;

/* eliminate.c: l->eliminates, where it is worth while, and then the nodes that
 * stay as aggregates; P (`*P_p`) and the near-null vectors of the next level. */
sps_status spsi_amg_eliminate(amg *m, amg_level *l);
sps_status spsi_amg_reduce(sps_context *ctx, const amg_level *l,
                           sps_csr **P_p, double **near_p);
sps_status spsi_amg_mask(sps_context *ctx, const amg_level *l, sps_block *X);

/* strength.c: the strong couplings of level l. */
sps_status spsi_amg_strength(sps_context *ctx, const amg_level *l,
                             amg_graph *g);
void spsi_amg_graph_free(sps_context *ctx, amg_graph *g);

/* nonsymmetric.c: whether A is far from symmetric; the strong couplings of a
 * level that is, by the stronger of both directions. */
sps_status spsi_amg_far_from_symmetric(sps_context *ctx, const sps_csr *A,
                                       bool *far);
sps_status spsi_amg_strength_both(sps_context *ctx, const amg_level *l,
                                  amg_graph *g);

/* aggregate.c: aggregate[v] = the number of node v's aggregate, -1 for a node
 * without neighbours; *count: aggregates. */
sps_status spsi_amg_aggregate(sps_context *ctx, const amg_graph *g,
                              int32_t *aggregate, int64_t *count);

/* spectrum.c: *rho: the largest Ritz value of S A S, S = diag(scale), after a
 * few Lanczos steps; *bound: a bound of its spectrum from row sums. */
sps_status spsi_amg_spectrum(sps_context *ctx, const sps_csr *A,
                             const double *scale, double *rho, double *bound);
/* *rho from the coefficients of Lanczos. */
sps_status spsi_amg_ritz(sps_context *ctx, const double *diagonal,
                         const double *off, double *rho);

/* tentative.c: the tentative prolongator T of level l, columns orthonormal
 * in the norm of D on each aggregate, and the near-null vectors of the next
 * level, *near_p (columns of T x q).  Fills l->place and, unless `again`,
 * l->kept. */
sps_status spsi_amg_tentative(sps_context *ctx, amg_level *l, bool again,
                              sps_csr **T_p, double **near_p);
/* prolongator.c: *P_p = (I - w D_F^-1 A_F) T, or T unless `smooth`. */
sps_status spsi_amg_prolongator(sps_context *ctx, const amg_level *l,
                                const sps_csr *T, bool smooth, sps_csr **P_p);
double spsi_amg_omega(double rho);      /* w */

/* filter.c: *F_p = A_F, A with the couplings that are not strong added to the
 * diagonal; NULL: there are none, or nodes have several rows. */
sps_status spsi_amg_filter(sps_context *ctx, const amg_level *l,
                           sps_csr **F_p);

/* near_null.c: the near-null vectors of the finest level. */
sps_status spsi_amg_near_null(const amg *m, const sps_options *opt,
                              amg_level *l);

/* low_pass.c: *V_p: near-null vectors of nodes of b > 1 rows, at most 6, from
 * the matrix alone. */
sps_status spsi_amg_low_pass(const sps_operator *A, int b, sps_block **V_p);

/* Those of m->inherited again, whose values have changed. */
sps_status spsi_amg_inherit(const amg *m, amg_level *l);

/* stages.c: the stages above where the matrix of l lies. */
sps_status spsi_amg_scale(amg *m, amg_level *l, bool finest);
/* X: the diagonal of D^-1, 1 where the scale is 0. */
sps_status spsi_amg_inverse(const amg *m, const amg_level *l, sps_block *X);
/* The largest scale, and the largest inverse of one that is not 0. */
sps_status spsi_amg_spread(const amg *m, const amg_level *l, double most[2]);
sps_status spsi_amg_bounds(amg *m, amg_level *l, double *bound);
sps_status spsi_amg_gather(amg *m, amg_level *l);
sps_status spsi_amg_fit(amg *m, amg_level *l, bool again, amg_tentative *t);
sps_status spsi_amg_smooth(amg *m, amg_level *l, const amg_tentative *t,
                           bool smooth, sps_csr **P_p);
void spsi_amg_drop(amg *m, amg_level *l, amg_tentative *t);
/* Multiplications of A B. */
sps_status spsi_amg_products(const amg *m, const sps_csr *A, const sps_csr *B,
                             int64_t *count);
/* The nodes of the next level are the aggregates of l. */
sps_status spsi_amg_enter(amg *m, const amg_level *l, amg_level *next,
                          amg_tentative *t);
/* *host: matrix, scale and near-null vectors of a level with a part. */
sps_status spsi_amg_bring(const amg *m, const amg_level *l, amg_level *host);

/* levels.c: builds all levels below the finest, level[0]; or, with again, their
 * values on the aggregates and patterns that exist. */
sps_status spsi_amg_levels(amg *m, bool again);

/* coarsest.c: m->inverse from the matrix of the last level. */
sps_status spsi_amg_coarsest(amg *m);

/* rounding.c: of a hierarchy in floats, whether they suffice; else a note. */
sps_status spsi_amg_fits_floats(const amg *m, bool *fits);

/* amg.c: EUNFIT where a cycle does not converge; sets the rate. */
sps_status spsi_amg_test(amg *m);
void spsi_amg_destroy(sps_precond *M);
extern const sps_precond_type spsi_precond_amg, spsi_amg_over_processes;
/* over_ranks.c: amg over several processes.  *type_p changes if A is symmetric
 * and its near-null vectors are constants, motions or given. */
sps_status spsi_amg_whole(const sps_operator *A, const sps_options *opt,
                          const sps_precond_type **type_p);
/* galerkin.c: the finest level of such a hierarchy. */
typedef struct amg_span {
    sps_csr *rows;            /* own rows of A; columns: ghosts below, own
                                 rows, ghosts above */
    int64_t first, columns;   /* of own P among those of all processes */
    sps_csr *own;             /* own rows of P'A P, or NULL, and then */
    sps_csr *coarse;          /* P'A P, complete on each process */
} amg_span;
/* rows, with the values that A has now; anew or into what is there. */
sps_status spsi_amg_rows(const sps_operator *A, sps_csr **rows_p);
/* first and columns, of `own` columns of P. */
sps_status spsi_amg_number(const sps_operator *A, int64_t own, amg_span *s);
/* own, or with `gather` coarse, from P and P' of own rows; its values if it is
 * there. */
sps_status spsi_amg_galerkin(const sps_operator *A, const sps_csr *P,
                             const sps_csr *R, bool gather, amg_span *s);
/* all: `count` numbers of this process for each of its own columns of P, behind
 * those of the processes before it. */
sps_status spsi_amg_collect(const sps_operator *A, const amg_span *s,
                            const double *own, int count, double *all);

/* cycle.c */
void spsi_amg_set_roots(amg_level *l);  /* of a level that is not the last */
sps_status spsi_amg_open(amg *m);       /* operators and blocks */
sps_status spsi_amg_refresh(amg *m);    /* new values in the operators */
sps_status spsi_amg_apply(const amg *m, const sps_block *R, sps_block *Z);
void spsi_amg_close(amg *m);

#ifdef __cplusplus
}
#endif
#endif
