/* SPDX-License-Identifier: BSD-3-Clause */
/* linear.h - the engine of linear systems: the contract of a method, and the
 * state that the driver shares with it.
 *
 * The driver (solve.c) owns the loop: it scales and projects the right-hand
 * sides, computes the true residual, calls start, then test / monitor / step
 * until every column is below its threshold or a stop reason is met.  It
 * verifies with recomputed residuals, replaces the residual where the
 * recurrence deviates from it, deflates converged columns and stores the best
 * iterate.  A method implements one step, and sees the active columns only.
 *
 *   setup   once: small matrices and arrays, all of s->made.own; n x k work
 *           blocks are s->work.
 *   start   from s->R, the true residual of s->X: discard all directions.
 *   step    one iteration: update R by the recurrence, call spsi_best_update
 *           with the norms of its columns, then update X; s->width is the
 *           number of search directions.  May set s->stop to a negative reason;
 *           X must be usable then, too.  Methods that update X later (flush)
 *           and whose residuals may rise set s->resnorm themselves, and call
 *           spsi_best_due before they do.
 *   queue   up to *count iterations, the same as by step, queued without host
 *           synchronisation between them.  On return *count is the number
 *           tried, *taken (may be 0) the number completed, and
 *           norms[i * s->k + j] is ||r_j|| after iteration i.  It must end
 *           after any iteration that requires a decision of the driver: no
 *           norm above s->queue.limit, few columns open (columns.h) unless
 *           their deflation is delayed, a norm that is not finite.  Exceptional
 *           iterations are left to step.  NULL: not supported.
 *   permute the columns of X and R were reordered: new position p holds what
 *           was at from[p]; count columns stay active (s->k is count then).
 *           NULL for methods whose directions do not belong to columns.
 *   flush   for methods that update X only at the end of a cycle: brings X up
 *           to date with resnorm.  The driver calls it before it reads X.
 *           A method with permute continues afterwards; for one without it
 *           start follows, and columns are deflated at these points only.
 *           step, and queue for the time after its last iteration, request
 *           flush and start by s->renew.  NULL: X and R are up to date after
 *           each step.
 *   settle  for methods that keep updates of X for some steps, and need no
 *           start afterwards: adds them to X.  The driver calls it, with
 *           spsi_linear_flush, before it reads X or moves its columns.  NULL:
 *           there are none.
 *   widen   a basis stored in single precision (s->method.floats) is
 *           reallocated in double precision: the one allocation within a solve.
 *           start follows.  ENOMEM, EDEVMEM: nothing has changed.  NULL: the
 *           method has no such basis.
 */
#ifndef SPS_LINEAR_H
#define SPS_LINEAR_H

#include "block/owned.h"
#include "driver/precond.h"
#include "driver/solver.h"
#include "matrix/two_way.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SPS_LINEAR_BLOCKS 4
#define SPS_LINEAR_GUESS 2
#define SPS_LINEAR_QUEUE 16 /* largest number of queued iterations without a
                               host synchronisation */
/* The recurrence is tested against a slightly lower threshold, so that rounding
 * errors between it and the true residual do not cause a residual
 * replacement. */
#define SPS_LINEAR_AIM 0.98

typedef struct sps_linear sps_linear;
struct sps_linear_args;

typedef struct sps_linear_type {
    const char *name;
    /* For names that are not methods but solvers of their own, such as auto:
     * creates one, and the members below are unused.  NULL for a method. */
    sps_status (*create)(const struct sps_linear_args *a,
                         const sps_solver_ops **ops, void **of);
    const char *fallback;     /* the method that continues after a breakdown
                                 or stagnation of this one, from its best X,
                                 or NULL */
    bool from_guess;          /* the fallback starts from the initial guess
                                 instead, stored in work[SPS_LINEAR_GUESS] */
    const char *mixed;        /* name of its mixed-precision variant, or NULL */
    unsigned needs;           /* SPS_NEEDS_... : requirements on the operator */
    size_t size;              /* bytes of the method's own struct */
    int blocks;               /* work blocks needed, <= SPS_LINEAR_BLOCKS */
    sps_status (*setup)(sps_linear *s, void *method);
    sps_status (*start)(sps_linear *s, void *method);
    sps_status (*step)(sps_linear *s, void *method);
    /* These may be NULL. */
    sps_status (*queue)(sps_linear *s, void *method, int *count, int *taken,
                        double *norms);
    sps_status (*permute)(sps_linear *s, void *method, const int *from,
                          int count);
    sps_status (*flush)(sps_linear *s, void *method);
    sps_status (*settle)(sps_linear *s, void *method);
    sps_status (*widen)(sps_linear *s, void *method);
} sps_linear_type;

extern const sps_linear_type *const spsi_solvers[]; /* by registry.sh */

struct sps_nullspace;

/* Arguments from which a linear solver is created. */
typedef struct sps_linear_args {
    const sps_operator *A;
    sps_precond *M;           /* of the caller, or NULL to build one by
                                 opt->precond */
    int k;
    const sps_options *opt;   /* complete (options.h); it is copied */
    double began;             /* time at which the set-up began */
    bool owned;               /* belongs to another solver, whose time limit
                                 and monitor are used */
    /* For spsi_linear_create only: */
    const sps_linear_type *type, *fallback;
    bool mixed;               /* use type->mixed with precision mixed if M is
                                 a diagonal */
    int trial;                /* iterations of `type` after which the fallback
                                 is set up and continues; 0: as many as it
                                 takes */
} sps_linear_args;

/* The current method, its fallback (or NULL), and the method with which each
 * solve begins. */
typedef struct sps_linear_method {
    const sps_linear_type *type, *fallback, *chosen;
    void *data, *fallback_data;   /* structs of `type` and of `fallback` */
    bool complete;            /* setup of the fallback has been called */
    int trial;                /* see sps_linear_args */
    bool single;              /* by option precision; cleared by setup if
                                 single precision is not supported */
    bool floats;              /* start stores the basis in single precision;
                                 the driver sets it to `single` for a solve
                                 and clears it when a cycle makes no progress */
} sps_linear_method;

/* Additional members for methods of least squares. */
typedef struct sps_linear_least {
    const sps_operator *T;    /* A', for least squares only, or NULL */
    sps_two_way *both;        /* A and A' in one pass, or NULL (two_way.h) */
    double *normal;           /* ||S'r|| (normal.c), set by start and step */
    int64_t nrow;             /* rows of R on this process; n if A is square */
} sps_linear_least;

/* rhs.c: the right-hand sides.  Arrays are indexed by right-hand side. */
typedef struct sps_linear_rhs {
    const sps_block *own;     /* B of the caller */
    const sps_block *B;       /* B of the solve: `own`, or projected */
    sps_block *projected;     /* B without its component in the null space,
                                 scaled; or NULL */
    double *scale;            /* powers of two: column j of the solve is
                                 scale[j] times that of the caller */
    /* Norms, all scaled: of P b, of b - P b (the component in the null space),
     * and of the caller's b. */
    double *norm, *outside, *norm_own;
    /* Norms of x and of the initial residual; the threshold of the residual;
     * and, for the monitor, the residual divided by the reference of rtol. */
    double *norm_x, *norm_start, *threshold, *relative;
    double removed;           /* ||B - P B|| / ||B|| */
} sps_linear_rhs;

/* columns.c: the active right-hand sides.  Arrays are indexed by position. */
typedef struct sps_linear_columns {
    int *column;              /* number of the right-hand side */
    bool *done;               /* whether the column is below its threshold, or
                                 is not iterated on */
    int *order;               /* 3 k, scratch memory for permutations */
    int few_since;            /* first iteration since which only few columns
                                 have been open (columns.h), or -1 */
} sps_linear_columns;

/* best.c: the best iterate of each right-hand side. */
typedef struct sps_linear_best {
    sps_block *block;         /* the stored iterates, by right-hand side */
    /* Scaled residual norms of each right-hand side.  norm: that of the iterate
     * stored in `block`.  checked: the lowest true norm that check_all has
     * computed.  least: the lowest norm of the iteration so far, with gap
     * added.  gap: the true norm minus that of the recurrence at the last
     * check, >= 0.  peak: the largest norm of the recurrence since that
     * check. */
    double *norm, *checked, *least, *gap, *peak;
    bool *due;                /* by position, set by spsi_best_due: whether X
                                 is better than the stored iterate */
} sps_linear_best;

/* queued.c: iterations completed by `queue`. */
typedef struct sps_linear_queue {
    double *norms;            /* residual norms after each of them */
    int taken, seen, stride;  /* number completed; of these, processed by the
                                 loop; how many may be queued at once */
    double *limit;            /* by position: norms at which columns converge */
} sps_linear_queue;

/* solve.c: progress of a solve. */
typedef struct sps_linear_course {
    /* begun: iteration at which this method last started, or -1 */
    int iteration, begun, min_width;
    int replacements, replaced;   /* residual replacements: number of
                                     consecutive ones without progress, and
                                     of all */
    bool gained, halved;      /* whether the last check lowered the lowest
                                 true residual of some column by 1 %, and
                                 whether it halved that of one still above
                                 its threshold */
    bool zero;                /* X = 0, so that the residual is B: until the
                                 first start, for a csr whose ||A|| was
                                 estimated and is therefore finite */
    bool from_zero;           /* X was such when the method was last started */
    const char *event;        /* for the monitor; static text */
    double started;           /* time at which the solve began */
    int64_t applies_A, applies_M;   /* number of products so far */
    bool afresh;              /* set by auto before a solve: open columns are
                                 iterated from zero, and X is the best
                                 iterate so far */
} sps_linear_course;

/* verdict.c: arrays of the result, indexed by right-hand side. */
typedef struct sps_linear_result {
    double *residual, *backward, *range, *normal;
    sps_stop *column;
} sps_linear_result;

/* How the solver was created, and what was created from the values of A. */
typedef struct sps_linear_made {
    sps_owner own;            /* releases what driver and methods created */
    bool own_M;
    struct sps_nullspace *null;   /* null space to project out, or NULL */
    struct sps_precond_symmetry *symmetry;   /* precond_symmetry.c, or NULL */
    sps_operator *own_T;      /* T, unless that is A itself */
    bool owned;               /* owned by another solver, whose monitor is
                                 called; its answer is already the same on
                                 all processes */
    int64_t version;          /* of the values of A from which M and null
                                 were made */
    double norm_A;            /* lower estimate of ||A||_2 */
    double setup;             /* seconds of set-up, included in the time
                                 limit of the first solve */
} sps_linear_made;

typedef struct sps_linear_scratch {
    sps_block *residual;      /* the memory of R: `own`, or `lent` */
    sps_block *own;
    sps_block *parked, lent;  /* parked.c: B during a solve, in host memory, or
                                 NULL; its own memory, which R has then */
    double *numbers;          /* 2 k doubles, scratch memory */
} sps_linear_scratch;

struct sps_linear {
    sps_context *ctx;
    const sps_operator *A;
    sps_precond *M;           /* preconditioner or NULL */
    sps_options opt;
    int64_t n, rows;          /* rows of X on this process, and on all */
    int columns;              /* number of all right-hand sides */

    /* What follows is for methods. */
    int k;                    /* number of active columns */
    sps_block X, R;           /* views, n x k and least.nrow x k: iterate and
                                 residual */
    sps_block *work[SPS_LINEAR_BLOCKS];   /* max(n, least.nrow) x columns; the
                                             driver uses work[1] between
                                             steps and in spsi_best_update */
    double *resnorm;          /* norms of the columns of R, set by step */
    int width;                /* number of search directions of the last step */
    sps_stop stop;
    bool renew;               /* set by step or queue to request flush and
                                 start */

    sps_linear_method method;
    sps_linear_least least;
    sps_linear_rhs rhs;
    sps_linear_columns at;
    sps_linear_best best;
    sps_linear_queue queue;
    sps_linear_course course;
    sps_linear_result result;
    sps_linear_made made;
    sps_linear_scratch scratch;
};

extern const sps_solver_ops spsi_linear_ops;   /* operations of an sps_linear */
/* Returns the registered method of that name, or NULL. */
const sps_linear_type *spsi_linear_type(const char *name);
/* Creates the solver named by opt->solver: one method, or a solver of its own
 * such as auto. */
sps_status spsi_linear_make(const sps_linear_args *a,
                            const sps_solver_ops **ops, void **of);
/* Creates the method of that name, or its mixed-precision variant. */
sps_status spsi_linear_named(const sps_linear_args *a, const char *name,
                             sps_linear **s_p);
sps_status spsi_linear_create(const sps_linear_args *a, sps_linear **s_p);
/* Sets the fallback up, if there is one that has not been set up. */
sps_status spsi_linear_fallback(sps_linear *s);
void spsi_linear_destroy(sps_linear **s_p);
/* solve.c: does the work of sps_solver_linear, for arguments that have been
 * checked. */
sps_status spsi_linear_solve(sps_linear *s, const sps_block *B, sps_block *X,
                             sps_result *result);
/* B -= N N'B, applied twice. */
sps_status spsi_linear_project(sps_linear *s, sps_block *B);

/* If the values of A have changed since the last solve: updates the solver's
 * own preconditioner, and determines null space and symmetry again. */
sps_status spsi_linear_refresh(sps_linear *s);
/* parked.c: allocates the residual, after all other blocks of the device; if
 * there is no room for it, R has the memory of B between _take, which makes *B_p
 * a copy in host memory, and _give. */
sps_status spsi_residual_create(sps_linear *s);
sps_status spsi_residual_take(sps_linear *s, const sps_block **B_p);
sps_status spsi_residual_give(sps_linear *s);
/* precond_symmetry.c: compares R and Z = M R of the first two applications of a
 * preconditioner of the caller, for a method that needs a symmetric one, and
 * adds a note if it is not. */
sps_status spsi_precond_symmetry_create(sps_linear *s);
sps_status spsi_precond_symmetry_check(sps_linear *s, const sps_block *R,
                                       const sps_block *Z);
/* Adds a note on the memory of the basis V, if it is in single precision. */
void spsi_linear_note_single(const sps_linear *s, const sps_block *V);
/* Y = A X; the product is counted and timed. */
sps_status spsi_linear_apply(sps_linear *s, const sps_block *X, sps_block *Y);
/* Y = A X for an X of floats; *served: whether the kernel can do that. */
sps_status spsi_linear_apply_single(sps_linear *s, const sps_block *X,
                                    sps_block *Y, bool *served);
/* Y = A'X; the product is counted and timed. */
sps_status spsi_linear_apply_transposed(sps_linear *s, const sps_block *X,
                                        sps_block *Y);
/* normal.c, where s->least.both is there.  enter: brings R to the order of rows
 * of its passes, with its norms and S = A'R; X becomes zero.  there: R = A X
 * diag(c) - R with its norms, and S = A'R.  back: Z = (S + damp V) diag(a) + Z
 * diag(b) with its norms; V and b may be NULL. */
sps_status spsi_least_enter(sps_linear *s, sps_block *X, double *norm);
sps_status spsi_least_there(sps_linear *s, const double *c, const sps_block *X,
                            double *norm);
sps_status spsi_least_back(sps_linear *s, const double *a, const sps_block *V,
                           const double *b, sps_block *Z, double *norm);
/* Makes *view the first n rows and k columns of work[i]. */
static inline void spsi_linear_room(const sps_linear *s, int i, int64_t n,
                                    int k, sps_block *view)
{
    spsi_block_narrow(s->work[i], s->columns);
    spsi_block_view(s->work[i], 0, k, view);
    view->n = n;
}
/* Z = M R, projected against the null space; counted and timed.  If there is no
 * preconditioner, Z is a copy of R. */
sps_status spsi_linear_precondition(sps_linear *s, const sps_block *R,
                                    sps_block *Z);

/* R -= Q a, and norm2, 1 x k, becomes the squared norms of the columns of R.
 * *met: M has kept what it needs of R, so that the next application of M to R,
 * if it gives floats, may set M->follows. */
sps_status spsi_linear_subtract(sps_linear *s, const sps_block *Q,
                                const sps_small *a, sps_small *norm2,
                                bool *met);
/* As spsi_linear_precondition, but *Z_p may be R itself if M is a multiple of
 * the identity and nothing is projected; this saves two block passes.  For
 * methods whose iterates do not change when M is scaled. */
sps_status spsi_linear_direction(sps_linear *s, const sps_block *R,
                                 sps_block *Z, const sps_block **Z_p);
/* Returns whether this Z would be R itself. */
static inline bool spsi_linear_plain(const sps_linear *s)
{
    return !s->made.null && (!s->M || s->M->identity);
}
/* W = A M V and X += M Y, with the same freedom; `room` is for M V, M Y. */
sps_status spsi_linear_multiply(sps_linear *s, const sps_block *V,
                                sps_block *room, sps_block *W);
sps_status spsi_linear_add(sps_linear *s, const sps_block *Y, sps_block *room);

/* best.c: must be called before X changes, with the residual norms that the
 * active columns will have.  If the best iterate of a column would be lost, all
 * columns of X that are better than the stored ones are copied.  Sets resnorm
 * to `norm`.  If a norm is not finite, s->stop is set and X must not be
 * changed. */
sps_status spsi_best_update(sps_linear *s, const double *norm);
/* The functions below do this in parts, for methods whose X is elsewhere. */
/* Returns whether the update to residuals of these norms would lose the best
 * iterate of some column; s->best.due marks all columns of X that are better
 * than the stored ones. */
bool spsi_best_due(sps_linear *s, const double *norm);
/* Stores the marked columns of X, whose residual norms are s->resnorm. */
sps_status spsi_best_store(sps_linear *s, const sps_block *X);
/* If X is a correction: adds it by spsi_linear_flush, computes true residuals,
 * and stores the columns that are better by them. */
sps_status spsi_best_store_flushed(sps_linear *s);
/* Records that X now has residuals of these norms, by the recurrence. */
void spsi_best_record(sps_linear *s, const double *norm);

/* columns.c: brings X up to date with resnorm. */
sps_status spsi_linear_flush(sps_linear *s);
/* queued.c: sets up the fused iterations of s with P and Q; returns false if
 * they cannot be used: a projection is needed, M is not a diagonal, or there
 * are no rows. */
struct sps_fused_cg_task;
bool spsi_linear_fused(sps_linear *s, sps_block *P, sps_block *Q,
                       struct sps_fused_cg_task *t);
/* Counts the products and applications of M of `taken` fused iterations. */
void spsi_linear_count(sps_linear *s, int taken);
/* Makes one iteration: takes the next of the queued ones, or calls step. */
sps_status spsi_linear_advance(sps_linear *s);
/* Counts the queued iterations that the loop has not processed when it ends. */
void spsi_linear_drain(sps_linear *s);
/* columns.c, for methods that freeze columns: sets the width to the number of
 * open columns that are not frozen, and renew if there is none.  Returns whether
 * there is none and one of them is above its threshold. */
bool spsi_linear_frozen(sps_linear *s, const bool *frozen);

/* nullspace.c: the null space to project out, or NULL if there is none. */
typedef struct sps_nullspace {
    sps_context *ctx;
    int64_t dimension;
    bool named;                   /* given by the caller, not found by auto */
    sps_components *components;   /* connected components; or else */
    sps_block *basis;             /* an orthonormal n x q block */
    sps_small *coefficients;      /* q x k, scratch memory */
} sps_nullspace;
sps_status spsi_nullspace_create(const sps_operator *A, int k,
                                 const sps_options *opt, sps_nullspace **N_p);
/* X -= N N'X; does nothing if N is NULL. */
sps_status spsi_nullspace_project(const sps_nullspace *N, sps_block *X);
void spsi_nullspace_destroy(sps_nullspace **N_p);

/* verify.c: computes B - A X for the caller's B and X in twice the working
 * precision and rounds it to R.  Very large or small columns are computed scaled
 * by a power of two, against overflow and underflow: unit[j] (host array) times
 * column j of R is rhs.scale[j] (b_j - A x_j).  The first two work blocks are
 * overwritten. */
sps_status spsi_verify(sps_linear *s, const sps_block *X, sps_block *R,
                       double *unit);
/* Computes a lower estimate of ||A||_2 by power iteration on the block V with a
 * fixed seed; V and W, both n x k, are overwritten.  Cached in the operator
 * until its values change. */
sps_status spsi_norm_estimate(const sps_operator *A, sps_block *V,
                              sps_block *W, double *scratch, double *norm);
/* Does this by power iteration with A'A, where T = A', and `both` has both
 * products or is NULL; V has the rows of X, W those of R. */
sps_status spsi_norm_estimate_pair(const sps_operator *A,
                                   const sps_operator *T, sps_two_way *both,
                                   sps_block *V, sps_block *W, double *scratch,
                                   double *norm);

#ifdef __cplusplus
}
#endif
#endif
