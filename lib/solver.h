/* SPDX-License-Identifier: BSD-3-Clause */
/* solver.h - the contract of a method, and what the one driver shares with
 * it.
 *
 * The driver (solve.c) owns the loop: it scales and projects the right-hand
 * sides, computes the true residual, calls start, then test / monitor / step
 * until every column is below its threshold or a reason stops it; it verifies
 * with recomputed residuals, replaces the residual when the recurrence lied,
 * lets converged columns leave, and keeps the best iterate.  A method owns
 * the mathematics of one step and sees only the columns still at work.
 *
 *   setup   once: small matrices and arrays; n x k blocks are s->work.
 *   start   from s->R, the true residual of s->X: forget all directions.
 *   step    one iteration: X, R (recurrence) and s->resnorm, the norms of
 *           R's columns; s->width, the number of search directions.  May set
 *           s->stop to a negative reason; then X must still be usable.
 *   ahead   up to *count iterations as step makes them, without waiting between
 *           them; *count becomes how many were tried, *taken (may be 0) were,
 *           norms[i * s->k + j] is ||r_j|| after the one numbered i.  It must
 *           end behind any after which the driver has something to decide:
 *           nothing above s->limit, few columns (columns.h) unless the others
 *           stay, a norm not finite.  Iterations that are out of the ordinary
 *           are left to step.  NULL: none.
 *   permute the columns of X and R were re-ordered: new position p holds what
 *           was at from[p]; count of them stay at work (s->k is count then).
 *           NULL for methods whose directions are not tied to columns.
 *   flush   methods that leave X behind for a while, as GMRES does: make X
 *           what resnorm speaks of; nothing when it is.  The driver asks
 *           before it looks at X.  With permute the method goes on afterwards;
 *           without it start follows, and columns leave at such times only.
 *           step asks for both by s->renew, and so may ahead, for behind its
 *           last one.  NULL: X and R are true after each step.
 *   widen   a basis that is stored in floats while s->floats gets the room of
 *           doubles, the one memory that a solve takes; start follows.  ENOMEM,
 *           EDEVMEM: all is as it was.  NULL: there is no such basis.
 */
#ifndef SPS_SOLVER_H
#define SPS_SOLVER_H

#include "precond.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SPS_SOLVER_BLOCKS 4
#define SPS_SOLVER_GUESS 2
#define SPS_SOLVER_AHEAD 16 /* iterations without a look, at most */
/* The recurrence aims a little lower than the threshold, so that rounding
 * between it and the true residual does not cost a replacement. */
#define SPS_SOLVER_AIM 0.98

typedef struct sps_solver_type {
    const char *name;
    const char *fallback;     /* the method that goes on where this one breaks
                                 down or stagnates, from its best X; or NULL */
    bool afresh;              /* it begins from the guess, which waits in
                                 work[SPS_SOLVER_GUESS], rather than there */
    const char *mixed;        /* the method that does the same in mixed
                                 precision; or NULL */
    unsigned needs;           /* SPS_NEEDS_... of the operator */
    size_t size;              /* of its struct, a struct of its own */
    int blocks;               /* work blocks wanted, <= SPS_SOLVER_BLOCKS */
    sps_status (*setup)(sps_solver *s, void *method);
    sps_status (*start)(sps_solver *s, void *method);
    sps_status (*step)(sps_solver *s, void *method);
    /* Optional. */
    sps_status (*ahead)(sps_solver *s, void *method, int *count, int *taken,
                        double *norms);
    sps_status (*permute)(sps_solver *s, void *method, const int *from,
                          int count);
    sps_status (*flush)(sps_solver *s, void *method);
    sps_status (*widen)(sps_solver *s, void *method);
    void (*destroy)(sps_solver *s, void *method);
} sps_solver_type;

struct sps_nullspace;
struct sps_ladder;
struct sps_eigen;
struct sps_reordering;

struct sps_solver {
    sps_context *ctx;
    const sps_operator *A;
    sps_precond *M;           /* NULL: none */
    bool own_M;
    sps_options opt;
    int64_t n;
    const struct sps_reordering *reordering;   /* A is its inner, or NULL */
    sps_block *ordered_B, *ordered_X;
    const sps_block *basis;      /* of the null space, the caller's or NULL; */
    sps_block *ordered_basis;    /* opt has this one */
    int64_t basis_version;       /* of A's values when it was put in order */
    struct sps_eigen *eigen;     /* of sps_solver_create_eigen: nothing else
                                    is in use */
    struct sps_ladder *ladder;   /* of solver auto: it has solvers of its own,
                                    and only what stands above is in use */

    /* The method at work, the one that it falls back to (or NULL), and the
     * one that a solve begins with. */
    const sps_solver_type *type, *fallback, *chosen;
    void *method, *fallback_method;
    bool automatic;

    /* What a method sees. */
    int k;                    /* columns at work */
    sps_block X, R;           /* n x k views: iterate and residual */
    sps_block *work[SPS_SOLVER_BLOCKS];   /* n x width */
    double *resnorm;          /* norms of R's columns, written by step */
    double *limit;            /* norms at which columns at work are done */
    double norm_A;            /* estimate of ||A||_2 from below */
    bool single;              /* option basis; setup takes it back where
                                 floats do not serve */
    bool floats;              /* start takes the basis in floats: single, until
                                 a cycle brings nothing (set by the driver) */
    int width;                /* search directions of the last step */
    sps_stop stop;
    bool renew;               /* set by step or ahead: flush and start */
    const char *event;        /* for the monitor; static text */

    /* The driver's (solve.c, verify.c). */
    int columns;              /* right-hand sides in all */
    sps_block *residual;      /* behind R */
    sps_block *best;          /* snapshot of the best columns */
    sps_block *projected;     /* B without its null-space part, or NULL */
    struct sps_nullspace *null;
    int64_t version;          /* of A's values that M and null were made of */
    const sps_block *rhs;     /* B, or projected */
    int *column;              /* position -> right-hand side */
    int *order;               /* scratch for permutations */
    bool *done;               /* by position */
    bool gained;              /* the last look at the truth was better by 1 % */
    double *scale;            /* by right-hand side: powers of two */
    /* By right-hand side, norms in the caller's units, the other scaled: */
    double *norm_b, *norm_x, *norm_start, *threshold, *best_norm, *relative;
    double *scratch;          /* 2 k */
    double *result_residual, *result_backward;
    sps_stop *result_column;
    int64_t applies_A, applies_M;
    int iteration, begun, replacements, min_width;   /* begun: last restart */
    /* Iterations that `ahead` took, their norms, how many the loop has seen;
     * how many may be asked for at once. */
    double *ahead_norms;
    int ahead, ahead_seen, stride;
    int few_since;            /* first iteration after which few columns were
                                 open (columns.h) and are still, or -1 */
    double started, removed;
};

/* As sps_solver_create, but auto is one method, with one to fall back to. */
sps_status spsi_solver_create_step(const sps_operator *A, sps_precond *M,
                                   int k, const sps_options *opt,
                                   sps_solver **s_p);
/* Values of A that changed since the last solve: the solver's own
 * preconditioner follows, null space and symmetry are looked at again. */
sps_status spsi_solver_follow(sps_solver *s);
/* solve.c: the caller's basis of the null space in the order of a reordered A,
 * again after new values. */
sps_status spsi_solver_order_basis(sps_solver *s);
/* What V, a basis, takes where it is in floats. */
void spsi_solver_tell_floats(const sps_solver *s, const sps_block *V);
/* Y = A X, counted and timed. */
sps_status spsi_solver_apply(sps_solver *s, const sps_block *X, sps_block *Y);
/* Z = M R, projected against the null space, counted and timed.  With no
 * preconditioner Z is a copy of R. */
sps_status spsi_solver_precondition(sps_solver *s, const sps_block *R,
                                    sps_block *Z);

/* The same, but *Z_p may become R itself where M is a multiple of the identity
 * and nothing is projected: two block passes less.  For methods whose iterates
 * do not change with a factor on M. */
sps_status spsi_solver_direction(sps_solver *s, const sps_block *R,
                                 sps_block *Z, const sps_block **Z_p);

/* ahead.c: one iteration, of those taken ahead or a step. */
sps_status spsi_solver_advance(sps_solver *s);
/* The loop ended while it was behind the iterations taken: they count. */
void spsi_solver_catch_up(sps_solver *s);

/* nullspace.c: what is projected away, NULL when there is nothing. */
typedef struct sps_nullspace {
    sps_context *ctx;
    int64_t dimension;
    sps_components *components;   /* either these */
    sps_block *basis;             /* or an orthonormal n x q block */
    sps_small *coefficients;      /* q x k scratch */
} sps_nullspace;
sps_status spsi_nullspace_create(const sps_operator *A, int k,
                                 const sps_options *opt, sps_nullspace **N_p);
/* X -= N N'X; N may be NULL. */
sps_status spsi_nullspace_project(const sps_nullspace *N, sps_block *X);
void spsi_nullspace_destroy(sps_nullspace **N_p);

/* verify.c: R = B - A X by the plain kernel, norms of R and X by column (host
 * arrays). */
sps_status spsi_verify(const sps_operator *A, const sps_block *B,
                       const sps_block *X, sps_block *R, double *norm_r,
                       double *norm_x);
/* Estimate of ||A||_2 from below: power steps on the block V (overwritten, as
 * is W; both n x k), fixed seed.  Kept in the operator until its values
 * change. */
sps_status spsi_norm_estimate(const sps_operator *A, sps_block *V,
                              sps_block *W, double *scratch, double *norm);

#ifdef __cplusplus
}
#endif
#endif
