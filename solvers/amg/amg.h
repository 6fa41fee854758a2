/* SPDX-License-Identifier: BSD-3-Clause */
/* amg.h - multigrid by smoothed aggregation (Vanek, Mandel and Brezina,
 * Computing 56, 1996) on blocks: the hierarchy, and the stages that make it.
 *
 * Every stage of the set-up is a function of one level.  It works on host
 * arrays or, if the backend supports that, where the matrix is stored
 * (stages.c), with the same bits.  The cycle consists of operators and block
 * operations only.  The files:
 *
 *   eliminate.c    exact elimination of nodes with one or two neighbours
 *   strength.c     strong couplings between the nodes of a level
 *   roots.c        independent nodes, MIS-2
 *   aggregate.c    aggregates of nodes around these
 *   near_null.c    vectors that the coarse spaces must contain
 *   low_pass.c     such vectors found by a polynomial
 *   filter.c       A_F, which is A without weak couplings
 *   tentative.c    T, the near-null vectors restricted to the aggregates
 *   prolongator.c  P = (I - w D_F^-1 A_F) T
 *   levels.c       A_c = P'A P, level after level
 *   stages.c       the stages above, on the place of a level
 *   spectrum.c     bounds of the spectrum of D^-1 A
 *   coarsest.c     the dense inverse of the coarsest matrix
 *   rounding.c     whether a cycle may run in single precision
 *   cycle.c        the V-cycle on blocks
 *   cycle_parts.c  its operators, blocks and smoothers
 *   ahead.c        prolongation together with a smoothing step
 *   nonsymmetric.c what differs where A is far from symmetric
 *   over_ranks.c   levels that are spread over several processes,
 *   over_ranks_spectrum.c  bounds of their spectrum,
 *   over_ranks_p.c their P,
 *   over_ranks_parts.c   their operators and blocks,
 *   over_ranks_device.c  these in device memory,
 *   galerkin.c     and their coarse matrices
 *
 * All stages act as if A were scaled to S A S with unit diagonal, s_i =
 * a_ii^(-1/2); the matrices themselves are not scaled.  The results of every
 * stage have the same bits for any number of threads. */
#ifndef SPS_AMG_H
#define SPS_AMG_H

#include "driver/precond.h"
#include "matrix/coarsening.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    AMG_LEVELS = 15,          /* largest number of levels */
    AMG_DENSE = 600,          /* largest number of rows of a coarsest level with
                                 a dense inverse */
    AMG_VECTORS = 12,         /* largest number of near-null vectors */
    AMG_DEGREE = 4,           /* largest degree of the smoother */
    AMG_LAST_DEGREE = 11      /* degree on a coarsest level too large for a
                                 dense inverse; odd, so that the polynomial is
                                 positive whatever the spectrum */
};

/* Couplings between nodes.  The columns of a row ascend, and no node is coupled
 * to itself. */
typedef struct amg_graph {
    int64_t n;
    int64_t *rowptr;
    int32_t *col;
    double *weight;           /* c_ij > 0, relative to unit diagonals
                                 (strength.c) */
} amg_graph;

/* The polynomial of the smoother (cycle.c). */
typedef struct amg_smoother {
    double upper;             /* upper bound of the largest eigenvalue of
                                 D^-1 A */
    int degree;
    double root[AMG_LAST_DEGREE];
} amg_smoother;

/* Operators and blocks of the cycle on a level (cycle_parts.c). */
typedef struct amg_parts {
    sps_operator *own_op;     /* D^-1 A */
    sps_operator *prolong;    /* P, or NULL if there is `ahead` */
    sps_operator *ahead;      /* P - D^-1 A P / root[0]: prolongation together
                                 with the first step behind it */
    sps_operator *restrict_op;   /* D_c^-1 P'D with the D_c of the next level,
                                    or P'D if the next level has a dense
                                    inverse */
    sps_block *inverse;       /* n x 1: D^-1, or NULL with a dense inverse */
    sps_block *mask;          /* n x 1, on a level that eliminates nodes: 1 for
                                 these, 0 for others */
    sps_block *r, *x, *t;     /* n x width; r is D^-1 times the residual.  In
                                 double precision the finest level has no x */
} amg_parts;

typedef struct amg_level {
    sps_coarse *part;         /* the level where its matrix is stored, or NULL
                                 if that is the host.  If not NULL, the arrays
                                 of nodes are there, and those below are NULL */
    const sps_csr *A;         /* double precision, rows ascending */
    sps_csr *own;             /* A if the level owns it, NULL if it is the
                                 caller's */
    int64_t n, nodes;
    int64_t *start;           /* nodes + 1 elements: the rows of node v are
                                 start[v] .. start[v+1] - 1; some nodes have no
                                 rows */
    bool single_rows;         /* every node has one row */
    bool nonsymmetric;        /* A is far from symmetric (nonsymmetric.c) */
    double *scale;            /* n elements: a_ii^(-1/2), or 0 if the row is
                                 zero up to rounding and has no part in coarser
                                 levels */
    int vectors;              /* number q of near-null vectors */
    double *near;             /* n x q, row-major: near-null vectors, which A
                                 maps to small ones */
    double rho;               /* estimate of the largest eigenvalue of D^-1 A */
    amg_smoother smoother;
    /* On the coarsest level the following are not used. */
    amg_graph strong;
    int32_t *aggregate;       /* aggregate of each node, or -1 */
    int64_t aggregates;
    uint64_t *kept;           /* for each aggregate, bit j tells that near-null
                                 vector j is linearly independent of those
                                 before it */
    int64_t *place;           /* aggregates + 1 elements: first column of each
                                 aggregate */
    bool smoothed;
    bool eliminates;          /* rows without an aggregate are eliminated
                                 exactly, without a smoother; each other row is
                                 an aggregate */
    sps_csr *P, *R;           /* P and P' */
    sps_csr *AP;              /* A P, or NULL if the cycle does not use it */
    amg_parts parts;          /* operators and blocks of the cycle */
} amg_level;

/* The results of `tentative` for a level, on the host unless the level has a
 * part. */
typedef struct amg_tentative {
    sps_csr *T;
    double *near;             /* near-null vectors of the next level */
    int64_t columns;          /* number of columns of T */
    bool single;              /* each aggregate has one column */
} amg_tentative;

typedef struct amg {
    sps_precond super;
    const sps_coarsening *device;   /* the backend's functions for levels whose
                                       part is not NULL; NULL if all levels are
                                       on the host */
    amg_level level[AMG_LEVELS];
    int levels;
    int wanted_degree;        /* option degree; 0: chosen automatically */
    const sps_block *inherited;     /* near-null vectors of the finest level, if
                                       they were given, else NULL */
    int inherited_rows;       /* number of rows of a node, for `inherited` */
    sps_csr *copy;            /* A in double precision, if the caller's is in
                                 single */
    sps_csr *inverse;         /* dense inverse of the coarsest matrix, or
                                 NULL */
    sps_operator *inverse_op;
    sps_block *largest;       /* the largest value of each matrix of the cycle
                                 that was rounded to floats in device memory */
    int measured;             /* number of these */
    bool floats;              /* operators and blocks of the cycle are in single
                                 precision */
    int unit;                 /* if so, the exponent to which cycles scale
                                 values */
    int tests;                /* number of cycles in the last test of the
                                 cycle */
    /* X += P M_c P'R for U = D^-1 R, and with parts.ahead also the first step
     * behind that, where the levels below the only one are another
     * preconditioner (over_ranks.c); else NULL. */
    sps_status (*across)(const struct amg *m, const sps_block *U, sps_block *X);
} amg;

/* eliminate.c.  The first function sets l->eliminates if elimination is
 * worthwhile, and then makes an aggregate of each node that remains.  The
 * second makes P (*P_p) and the near-null vectors of the next level, the third
 * sets X to the mask (l->mask). */
sps_status spsi_amg_eliminate(amg *m, amg_level *l);
sps_status spsi_amg_reduce(sps_context *ctx, const amg_level *l,
                           sps_csr **P_p, double **near_p);
sps_status spsi_amg_mask(sps_context *ctx, const amg_level *l, sps_block *X);

/* strength.c: computes the strong couplings of the nodes of level l, as a
 * graph. */
sps_status spsi_amg_strength(sps_context *ctx, const amg_level *l,
                             amg_graph *g);
void spsi_amg_graph_free(sps_context *ctx, amg_graph *g);

/* nonsymmetric.c: sets *far if A is far from symmetric.  The second function
 * computes the strong couplings of such a level: the coupling of two nodes is
 * the stronger one of its two directions. */
sps_status spsi_amg_far_from_symmetric(sps_context *ctx, const sps_csr *A,
                                       bool *far);
sps_status spsi_amg_strength_both(sps_context *ctx, const amg_level *l,
                                  amg_graph *g);

/* aggregate.c: aggregate[v] becomes the number of node v's aggregate, or -1 for
 * a node without strong couplings (l->strong); *count becomes the number of
 * aggregates. */
sps_status spsi_amg_aggregate(sps_context *ctx, const amg_level *l,
                              int32_t *aggregate, int64_t *count);

/* spectrum.c: *rho becomes the largest Ritz value of S A S, S = diag(scale),
 * after a few Lanczos steps; *bound becomes a bound of its spectrum from row
 * sums. */
sps_status spsi_amg_spectrum(sps_context *ctx, const sps_csr *A,
                             const double *scale, double *rho, double *bound);
/* The same on the host as lanczos_across of coarsening.h. */
sps_status spsi_amg_lanczos_across(sps_context *ctx, const sps_csr *A,
                                   const double *scale,
                                   const spsi_coarse_across *x,
                                   double *diagonal, double *off,
                                   double bound[2]);
/* Computes *rho from the coefficients of a Lanczos process. */
sps_status spsi_amg_ritz(sps_context *ctx, const double *diagonal,
                         const double *off, double *rho);

/* tentative.c: makes the tentative prolongator T of level l, with columns
 * orthonormal in the norm of D on each aggregate, and the near-null vectors of
 * the next level, *near_p (columns of T x q).  Fills l->place and, unless
 * `again` (new values for existing aggregates), l->kept. */
sps_status spsi_amg_tentative(sps_context *ctx, amg_level *l, bool again,
                              sps_csr **T_p, double **near_p);
/* prolongator.c: *P_p = (I - w D_F^-1 A_F) T, or T unless `smooth`. */
sps_status spsi_amg_prolongator(sps_context *ctx, const amg_level *l,
                                const sps_csr *T, bool smooth, sps_csr **P_p);
/* The two parts of it for a matrix over several processes, whose F and T have
 * also columns and rows of others: those of this process are from `low` on.
 * The first sets factor[i] to d_i^(-1/2) of F, or 0 where the level's scale is
 * 0. */
void spsi_amg_scaling(const amg_level *l, const sps_csr *F, int64_t low,
                      double *factor);
sps_status spsi_amg_smooth_by(sps_context *ctx, const sps_csr *F,
                              const double *factor, double rho,
                              const sps_csr *T, int64_t low, sps_csr **P_p);
double spsi_amg_omega(double rho);      /* Returns w, given an estimate of the
                                           largest eigenvalue of D^-1 A. */

/* filter.c: *F_p becomes A_F, which is A with the couplings that are not strong
 * added to the diagonal, or NULL if there are no such couplings or nodes have
 * several rows. */
sps_status spsi_amg_filter(sps_context *ctx, const amg_level *l,
                           sps_csr **F_p);

/* near_null.c: sets the near-null vectors of the finest level. */
sps_status spsi_amg_near_null(const amg *m, const sps_options *opt,
                              amg_level *l);

/* low_pass.c: computes near-null vectors *V_p of nodes of b > 1 rows, at most
 * 6, from the matrix only. */
sps_status spsi_amg_low_pass(const sps_operator *A, int b, sps_block **V_p);

/* Copies the near-null vectors m->inherited to level l again, after their
 * values have changed. */
sps_status spsi_amg_inherit(const amg *m, amg_level *l);

/* stages.c: run the stages above in the place where the matrix of l is
 * stored. */
sps_status spsi_amg_scale(amg *m, amg_level *l, bool finest);
/* X = the diagonal of D^-1, with 1 in rows whose scale (l->scale) is 0. */
sps_status spsi_amg_inverse(const amg *m, const amg_level *l, sps_block *X);
/* most[0] = the largest element of l->scale, most[1] = the largest 1/s of its
 * elements s that are not 0. */
sps_status spsi_amg_spread(const amg *m, const amg_level *l, double most[2]);
/* Begins the computation of spsi_amg_bounds where it can run beside the next
 * stages. */
sps_status spsi_amg_bounds_ahead(amg *m, amg_level *l);
sps_status spsi_amg_bounds(amg *m, amg_level *l, double *bound);
sps_status spsi_amg_gather(amg *m, amg_level *l);
sps_status spsi_amg_fit(amg *m, amg_level *l, bool again, amg_tentative *t);
sps_status spsi_amg_smooth(amg *m, amg_level *l, const amg_tentative *t,
                           bool smooth, sps_csr **P_p);
void spsi_amg_drop(amg *m, amg_level *l, amg_tentative *t);
/* *F_p = A_F of the level, or NULL as *F_p of spsi_amg_filter; on the host it
 * is *made_p, too, which the caller destroys.  The other function computes the
 * rho of F, or of the level's matrix if F is NULL. */
sps_status spsi_amg_filter_block(amg *m, amg_level *l, sps_csr **made_p,
                                 const sps_csr **F_p);
sps_status spsi_amg_filtered_bounds(const amg *m, const amg_level *l,
                                    const sps_csr *F, double *rho);
/* Creates A B, unless this takes more than `most` multiplications: then *C_p
 * stays NULL. */
sps_status spsi_amg_multiply(const amg *m, const sps_csr *A, const sps_csr *B,
                             int64_t most, sps_csr **C_p);
/* Makes the nodes of the next level, which are the aggregates of l. */
sps_status spsi_amg_enter(amg *m, const amg_level *l, amg_level *next,
                          amg_tentative *t);
/* Copies matrix, scale and near-null vectors of a level l that is not stored on
 * the host (l->part) to *host. */
sps_status spsi_amg_bring(const amg *m, const amg_level *l, amg_level *host);

/* levels.c: builds all levels below the finest, level[0]; if `again`, only
 * computes their values for the existing aggregates and patterns. */
sps_status spsi_amg_levels(amg *m, bool again);

/* ahead.c: whether a product with the pattern of AP, the level's matrix times
 * P, takes less than one with P and a smoothing step. */
bool spsi_amg_ahead_pays(const amg_level *l, const sps_csr *P,
                         const sps_csr *AP);
/* Sets the values of S, on the pattern of l->AP, to P - D^-1 A P / root[0],
 * where l->AP has all entries of P (*within). */
sps_status spsi_amg_ahead(amg *m, const amg_level *l, sps_csr *S, bool *within);

/* coarsest.c: computes m->inverse from the matrix of the last level. */
sps_status spsi_amg_coarsest(amg *m);

/* rounding.c: decides whether a hierarchy in single precision is accurate
 * enough; adds a note if not. */
sps_status spsi_amg_fits_floats(const amg *m, bool *fits);

/* amg.c: sets the rate of convergence, and returns SPS_EUNFIT if a cycle does
 * not converge. */
sps_status spsi_amg_test(amg *m);
/* Writes what the test has found; levels below others (m->inherited) are not
 * tested. */
void spsi_amg_say_rate(const amg *m, char *text, size_t size);
void spsi_amg_destroy(sps_precond *M);
extern const sps_precond_type spsi_precond_amg, spsi_amg_over_processes;
/* over_ranks.c: selects amg of the whole matrix over several processes: *type_p
 * changes if A is symmetric and its near-null vectors are constants, rigid body
 * motions, or given. */
sps_status spsi_amg_whole(const sps_operator *A, const sps_options *opt,
                          const sps_precond_type **type_p);
/* galerkin.c: a level that is spread over processes.  Columns of P and of A P
 * are those of all processes. */
typedef struct amg_span {
    sps_csr *rows;            /* own rows of A (spsi_ranks_rows) */
    int64_t first, columns;   /* the number of the first column that belongs to
                                 this process, and of the columns of all */
    int64_t own_columns;
    sps_csr *own;             /* own rows of P'A P, or NULL if `coarse` is
                                 set */
    sps_csr *coarse;          /* all rows of P'A P, stored on each process, or
                                 NULL */
} amg_span;
/* Sets first, columns and own_columns of s, `own` being the last. */
sps_status spsi_amg_number(const sps_operator *A, int64_t own, amg_span *s);
/* *all_p = the rows of T that belong to ghosts of lower processes, to own rows,
 * and to ghosts of higher processes, in this order; T has the own rows, and its
 * columns count from `first`. */
sps_status spsi_amg_join(const sps_operator *A, const sps_csr *T, int64_t first,
                         int64_t columns, sps_csr **all_p);
/* Computes from P of own rows the own rows of P' (*R_p), of A P (*AP_p), and
 * s->own or, with `gather`, s->coarse; of the latter two only the values if
 * the matrix exists.  If A P takes more than `most` multiplications on some
 * process, nothing is made, on all. */
sps_status spsi_amg_galerkin(const amg *m, const sps_csr *P, int64_t most,
                             bool gather, amg_span *s, sps_csr **R_p,
                             sps_csr **AP_p);
/* Gathers in `all`, on each process, `count` values for each column of P, in
 * the order of processes; `own` contains those of this process. */
sps_status spsi_amg_collect(const sps_operator *A, const amg_span *s,
                            const double *own, int count, double *all);

/* cycle_parts.c */
/* Sets values to zero that are below the range of single precision and far
 * below the largest one: they are rounding errors. */
void spsi_amg_clear_tiny(sps_context *ctx, double *val, int64_t count);
/* Sets the roots of the smoother's polynomial (cycle.c) on a level that is not
 * the last. */
void spsi_amg_set_roots(amg_level *l);
/* Clears m->largest, which gets the largest absolute value of each matrix of
 * the cycle whose values are computed in device memory: on each level A, P, P'
 * and the matrix of `ahead`, and the inverse of the coarsest level.  The other
 * function returns SPS_EUNFIT if such values do not fit single precision; to
 * read them one after the other would be a wait for the device each. */
sps_status spsi_amg_open_largest(amg *m);
sps_status spsi_amg_check_largest(const amg *m);
sps_status spsi_amg_open(amg *m);       /* makes operators and blocks */
sps_status spsi_amg_refresh(amg *m);    /* updates the values of operators */
void spsi_amg_close(amg *m);

/* cycle.c */
/* Gives all blocks of the levels k columns and leading dimension ld, or the
 * largest one that their memory allows. */
void spsi_amg_shape(const amg *m, int k, int64_t ld);
/* Z = M R for U = D^-1 R, or U = R with a dense inverse; blocks have been
 * shaped. */
sps_status spsi_amg_cycle(const amg *m, const sps_block *U, sps_block *Z);
sps_status spsi_amg_apply(const amg *m, const sps_block *R, sps_block *Z);
/* R -= Q a together with the entry of R into the next cycle (driver/precond.h,
 * `subtract`). */
sps_status spsi_amg_subtract(const amg *m, const sps_block *Q,
                             const sps_small *a, sps_block *R,
                             sps_small *norm2, bool *served);

#ifdef __cplusplus
}
#endif
#endif
