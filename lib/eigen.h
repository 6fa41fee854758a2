/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen.h - eigenpairs of A x = lambda M x: the contract of a method, and what
 * the one driver shares with it.
 *
 * The driver (eigen_solve.c) owns the loop: guess, test, monitor, locking, and
 * the proof of what is handed back.  A method improves the block X, whose m
 * columns are M-orthonormal Ritz vectors in the order wanted, theta_j first.
 *
 *   setup  once: small matrices; n x m blocks are the columns of S, AS, MS.
 *   start  from any X: orthonormal against what is fixed, A X and M X by fresh
 *          products, Ritz pairs; all directions are forgotten.
 *   step   one iteration.  Both leave R = A X - M X diag(theta) and call
 *          spsi_eigen_residuals.  May set e->stop to a negative reason.
 *
 * S, AS, MS: stacks of `stack` m columns, of which X, A X, M X are the first
 * m; MS is S itself where M is the identity. */
#ifndef SPS_EIGEN_H
#define SPS_EIGEN_H

#include "solver.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sps_eigen sps_eigen;

typedef struct sps_eigen_type {
    const char *name;
    size_t size;              /* of its struct, a struct of its own */
    int stack;                /* columns of S in m */
    bool preconditioned;      /* T is of use to it */
    bool folds;               /* finds the nearest by products with A */
    sps_status (*setup)(sps_eigen *e, void *method);
    sps_status (*start)(sps_eigen *e, void *method);
    sps_status (*step)(sps_eigen *e, void *method);
    void (*destroy)(sps_eigen *e, void *method);
} sps_eigen_type;

struct sps_eigen {
    sps_context *ctx;
    const sps_operator *A, *M;   /* M NULL: the identity */
    sps_precond *T;              /* about (sign A)^-1; NULL: none */
    bool own_T, T_left;          /* made here; not in use */
    double T_sigma;              /* then it is about
                                    (sign A - T_sigma M)^-1 */
    int T_moves;
    sps_options opt;
    int64_t n;
    int count;                   /* pairs asked */
    sps_csr *shift;              /* A - sigma M of a search nearest to sigma,
                                    or what T is made of; else NULL */
    sps_operator *shifted;
    sps_solver *shift_solver;
    sps_block *shift_B, *shift_X;
    sps_block *shift_D;          /* shift is D (A - sigma M) D of a search
                                    nearest to sigma */
    int shift_failures;          /* inner solves in a row */
    double pole;                 /* the sigma that was taken */
    double shift_unit;           /* lambda = pole + shift_unit / nu */
    int pole_moves;
    double most;                 /* |nu| seen from this pole */
    int held;                    /* iterations with all wanted converged */
    double *spread;              /* m: squares of residuals of nu, in the norm
                                    of M */
    sps_block *border;           /* (A - sigma M)^-1 M Y of constraints Y */
    sps_small *border_inverse;   /* (Y'M border)^-1 */
    sps_small *dense_A, *dense_M, *dense_D;   /* eigen_dense.c, else NULL */
    sps_small *dense_R, *dense_C;
    double *dense_w;
    double sign;                 /* -1: largest first */
    bool nearest;                /* pairs nearest to sigma are wanted */
    bool inverted;               /* A is then (A - sigma M)^-1 M for the
                                    method, its Ritz values nu */
    double norm_A, norm_M;       /* estimates from below */
    sps_block *root_mass;        /* n x 1: diag(M)^(1/2); NULL: M a callback */

    const sps_eigen_type *type;
    void *method;

    /* What a method sees. */
    int width, m;                /* columns of X taken, in use */
    sps_block *S, *AS, *MS;      /* MS == S without M */
    sps_block X, AX, MX;         /* views */
    sps_block *R;                /* n x m, residuals */
    sps_block *room;             /* n x m scratch */
    double *ritz;                /* m: Ritz values of the method's operator */
    double *theta, *resnorm;     /* m: of the pencil, and ||r_j|| */
    double *xnorm, *mnorm;       /* m: ||x_j||, ||M x_j|| */
    double *xmx;                 /* m: x_j'M x_j, in the proof */
    double *unseen;              /* m: what rounding may hide of ||r_j|| */
    bool *done;                  /* m: at work no more (soft locking) */
    int directions;              /* new search directions of the last step */
    sps_stop stop;
    const char *event;

    /* What is left out: constraints, null space, then the pairs locked.  From
     * V it is taken by V -= fixed (dual'V): dual = M fixed, and fixed itself
     * for null vectors of A and M both. */
    sps_block *fixed, *dual;     /* dual == fixed without M */
    int given, locked;           /* columns of fixed in use: given + locked */
    struct sps_nullspace *null;  /* means over components, without M */
    int nulls, null_columns;     /* its dimension; columns of fixed for it */
    bool means;
    bool blind;                  /* M maps the null vectors of A to zero */
    int64_t *ground;             /* blind: null_columns rows, see eigen_fix.c */
    sps_small *F;                /* fixed columns x m */
    sps_small *G, *U, *C;        /* up to 3 m square: Gram, scratch, Q'W */
    sps_small *J;                /* up to 3 m x m: [Q W]'M W */

    /* The driver's. */
    int guard;                   /* columns of X that need not converge */
    double *lambda, *residual, *backward, *bound, *scratch, *relative;
    sps_stop *pair;
    sps_solver *mass_solver;     /* of M, for bounds; with its solutions */
    sps_csr *mass;               /* M / mass_scale where M is far from 1 */
    sps_operator *mass_op;
    double mass_scale;
    sps_block *Z;
    sps_small *E;                /* count x width */
    int *order;
    int iteration, restarts, missed;
    int64_t applies_A, applies_M, applies_T;
    double orthogonality, started;
    double *host_x, *host_g;     /* n each: a column, and bounds for it */
};

/* Y = A X and M X (a copy without M), counted and timed. */
sps_status spsi_eigen_apply(sps_eigen *e, const sps_block *X, sps_block *Y);
sps_status spsi_eigen_mass(sps_eigen *e, const sps_block *X, sps_block *Y);
/* W = T R, R in e->R or e->room, whose other goes; counted and timed; a copy
 * without T. */
sps_status spsi_eigen_precondition(sps_eigen *e, const sps_block *R,
                                   sps_block *W);
/* X = T times random columns; the numbers of R go. */
sps_status spsi_eigen_draw(sps_eigen *e, sps_block *X, uint64_t seed);
/* From X, AX, MX, ritz: R, theta, resnorm, xnorm, mnorm. */
sps_status spsi_eigen_residuals(sps_eigen *e);

/* eigen_orth.c: W M-orthonormal, also to what is fixed and to Q, the columns of
 * S before it (MQ = M Q; may have none: then W is any block).  Dependent
 * directions are dropped: W is narrowed to its rank.  MW = M W on return (W itself without M).  May set e->stop. */
sps_status spsi_eigen_orth(sps_eigen *e, const sps_block *Q,
                           const sps_block *MQ, sps_block *W, sps_block *MW);
/* W -= fixed (dual'W), and the means of components. */
sps_status spsi_eigen_project(sps_eigen *e, sps_block *W);

/* eigen_ritz.c: H = V diag(w), V in place of H, w in the order wanted, times
 * sign; S(:, 0 .. cols of K - 1) = S K, for A S and M S too; and what start
 * does: X orthonormal and of full rank, products, Ritz pairs, residuals. */
sps_status spsi_eigen_ritz(sps_eigen *e, sps_small *H, double *w);
sps_status spsi_eigen_rotate(sps_eigen *e, const sps_small *K);
sps_status spsi_eigen_begin(sps_eigen *e, double *w);
/* The outer Ritz values of some Lanczos steps with sign A from a random vector
 * (T: scratch of so many rows), and the norm of the last residual: low - past,
 * high + past lie outside the spectrum, unless the start has nothing of the
 * outer vectors (Zhou and Li, Linear Algebra Appl. 435, 2011). */
#define SPS_EIGEN_LANCZOS 12
sps_status spsi_eigen_ends(sps_eigen *e, sps_small *T, double *low,
                           double *high, double *past);

/* eigen_fix.c: null space and constraints: counted and given room, then made
 * orthonormal. */
sps_status spsi_eigen_gather_fixed(sps_eigen *e);
sps_status spsi_eigen_settle_fixed(sps_eigen *e);
/* R -= N N'R where A and M share the null vectors N: right-hand sides in the
 * range of A - sigma M and of M, and of their solutions the one without N. */
sps_status spsi_eigen_leave_nulls(sps_eigen *e, sps_block *R);

/* eigen_proof.c: of the first e->count columns of fixed behind `given`:
 * Rayleigh quotients, residuals, bounds, orthogonality, and the verdict. */
sps_status spsi_eigen_prepare_proof(sps_eigen *e);
sps_status spsi_eigen_prove(sps_eigen *e, sps_block *X);
/* R -= M Y Y'R: residuals as constraints Y leave them. */
sps_status spsi_eigen_constrain(sps_eigen *e, sps_block *R);
/* The largest ||A x - theta M x|| at which a pair has converged, and one that
 * rounding may leave by norms alone, ||A|| ||x||: no verdict; and what forming
 * the residual may leave out of it, by norms too. */
double spsi_eigen_limit(const sps_eigen *e, double theta, double xnorm,
                        double mnorm);
double spsi_eigen_floor(const sps_eigen *e, double theta, double xnorm);
double spsi_eigen_unseen(const sps_eigen *e, double theta, double xnorm);

/* eigen_rounding.c: what rounding leaves of ||A x - lambda M x||, x column j
 * of X, whatever is done, and the most that it explains.  From the entries of A
 * and M, if both are there. */
sps_status spsi_eigen_rounding(sps_eigen *e, const sps_block *X, int j,
                               double lambda, double *least, double *most);
bool spsi_eigen_entries(const sps_eigen *e);
/* Column j of R = A x - lambda M x formed in twice the precision from the
 * entries, *lambda the Rayleigh quotient, near which it was; mass = x'M x. */
sps_status spsi_eigen_twofold(sps_eigen *e, const sps_block *X, int j,
                              double mass, double *lambda, sps_block *R);

/* eigen_precond.c: T, the caller's or one made here; and where Ritz values
 * call for it, about another shift. */
sps_status spsi_eigen_take_precond(sps_eigen *e, sps_precond *T);
sps_status spsi_eigen_move_precond(sps_eigen *e);
bool spsi_eigen_fills_little(const sps_eigen *e);

/* eigen_shift.c: sign A - sigma M as a matrix, and its solver if `inverted`;
 * Y = (A - sigma M)^-1 M X. */
#define SPS_EIGEN_DENSE 2000      /* rows up to which it is inverted */
#define SPS_EIGEN_FACTORS 50000   /* and factored */
/* Where sigma lies outside of Gershgorin's discs (M the identity) the nearest
 * pairs are the smallest or the largest: nearest and sign become those. */
void spsi_eigen_outside(sps_eigen *e);
/* Whether the diagonal of A is of one scale. */
bool spsi_eigen_uniform(const sps_csr *A);
sps_status spsi_eigen_subtract(const sps_eigen *e, double sigma,
                               sps_csr **C_p);
sps_status spsi_eigen_shift(sps_eigen *e);
void spsi_eigen_unshift(sps_eigen *e);
sps_status spsi_eigen_invert(sps_eigen *e, const sps_block *X, sps_block *Y);
sps_status spsi_eigen_shift_residuals(sps_eigen *e);
sps_status spsi_eigen_shift_test(sps_eigen *e);

/* eigen_pole.c: the unit of eigenvalues, ||A|| / ||M||; what steps of the pole
 * are measured in if nothing is known of the pairs; and between two iterations,
 * or when one has failed, away from where it does harm. */
double spsi_eigen_unit(const sps_eigen *e);
double spsi_eigen_pole_scale(const sps_eigen *e);
sps_status spsi_eigen_move_pole(sps_eigen *e, bool *moved);
/* Whether an eigenvalue is, or may well be, nearer to the pole than the last pair
 * wanted of the block, as residuals tell. */
bool spsi_eigen_hides(const sps_eigen *e);

/* eigen_dense.c: the type that says that all is done by LAPACK, NULL where it
 * is not; its memory; every pair, those wanted into fixed. */
const sps_eigen_type *spsi_eigen_dense_type(const sps_eigen *e);
sps_status spsi_eigen_dense_reserve(sps_eigen *e);
sps_status spsi_eigen_dense(sps_eigen *e);

/* One operator as a dense matrix on the host. */
sps_status spsi_eigen_densify(sps_eigen *e, const sps_operator *A,
                              sps_small *D);

/* eigen_count.c: after the proof, e->missed; all pairs stand in fixed. */
sps_status spsi_eigen_count(sps_eigen *e);
/* Asks once for the memory that it will take, so that its lack is found early
 * and the peak stated before a run covers it. */
sps_status spsi_eigen_count_reserve(sps_eigen *e);

/* What helps where M has x'M x < 0. */
#define SPS_EIGEN_SWAP "if A is, change the two: M x = mu A x, mu = 1 / lambda"

/* eigen_result.c */
void spsi_eigen_result(const sps_eigen *e, const sps_seconds *seconds,
                       sps_eigen_result *r);

/* eigen_columns.c: columns of X that are pairs still wanted; how many leading
 * ones are to converge before they are locked; the residual that the loop aims
 * at for column j. */
int spsi_eigen_wanted(const sps_eigen *e);
int spsi_eigen_target(const sps_eigen *e);
double spsi_eigen_aim(const sps_eigen *e, int j);
/* X becomes m columns; `locked` of fixed are pairs. */
void spsi_eigen_take_columns(sps_eigen *e, int m);
void spsi_eigen_set_locked(sps_eigen *e, int locked);
sps_status spsi_eigen_guess(sps_eigen *e, const sps_block *guess);
sps_status spsi_eigen_lock(sps_eigen *e, int leading);
double spsi_eigen_badness(const sps_eigen *e);
sps_status spsi_eigen_snapshot(sps_eigen *e, double *best);
sps_status spsi_eigen_restore(sps_eigen *e);
sps_status spsi_eigen_converged_first(sps_eigen *e);
sps_status spsi_eigen_complete(sps_eigen *e);

/* eigen_solve.c */
sps_status spsi_eigen_solve(sps_eigen *e, sps_block *X, double *lambda,
                            sps_eigen_result *result);
void spsi_eigen_destroy(sps_eigen **e_p);

#ifdef __cplusplus
}
#endif
#endif
