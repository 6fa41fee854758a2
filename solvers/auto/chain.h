/* SPDX-License-Identifier: BSD-3-Clause */
/* chain.h - the fallback chain of solver auto.  Each of its steps is a method
 * with a preconditioner; they are tried one after the other, the cheapest
 * first, each from the best X so far. */
#ifndef SPS_CHAIN_H
#define SPS_CHAIN_H

#include "core/comm.h"
#include "driver/linear.h"

#define SPS_CHAIN_STEPS 16
/* Largest number of rows with which dense factors are a step. */
#define SPS_CHAIN_DENSE_ROWS 2000
/* A graph has hubs where the mean degree of a neighbour is more than this many
 * times that of a vertex (sps_chain_traits.spread). */
#define SPS_CHAIN_HUBS 1.6

typedef struct sps_step {
    const char *solver, *precond;
    double droptol, fill;     /* drop tolerance and fill limit of ilut; fill 0:
                                 the caller's options are used */
    int grace, patience;      /* grace: iterations before convergence is judged;
                                 patience: largest predicted number of
                                 iterations (0: no limit) */
    double share;             /* fraction of the remaining time that the step
                                 may use */
    int definite;             /* 1: used only while A may be definite, -1: only
                                 if A is not, 0: always */
    bool complete;            /* ilut drops nothing, and its predicted time is
                                 limited (sps_operator_cache.worth) */
} sps_step;

/* Properties of A on which the plan depends. */
typedef struct sps_chain_traits {
    bool symmetric;
    int64_t zero, negative;   /* number of diagonal entries that are zero,
                                 negative */
    int64_t odd;              /* number of entries that are not finite */
    int64_t weak;             /* number of diagonal entries below 1e-3 of the
                                 largest entry in their row */
    double spread;            /* mean of squared row lengths divided by the
                                 squared mean length */
    double dominated;         /* fraction of rows with |a_ii| >= the sum of the
                                 magnitudes of the other entries */
    double near;              /* fraction of rows with |a_ii| >= 0.8 times the
                                 sum of the magnitudes of the other entries */
    double deep;              /* seconds that a GPU takes for QUICK iterations
                                 with ilu0, if factors of ilut may take less; 0
                                 otherwise: see find_depth */
    double strong;            /* fraction of rows with |a_ii| >= 1.5 times that
                                 sum */
} sps_chain_traits;

/* State of a solve. */
typedef struct sps_chain_solve {
    double started, setup;    /* time at which the solve started; seconds of
                                 set-up, which count for the first solve only */
    int iterations;           /* iterations of the previous steps */
    int tried;                /* number of steps so far */
    bool stopped;             /* the caller's monitor has stopped the solve */
    bool rounded;             /* a step with factors has stagnated at the
                                 rounding of X */
    bool limited;             /* so have all columns of the last step that have
                                 not converged, whatever its preconditioner */
    sps_stop ranged[SPS_BLOCK_MAX];   /* why each column stopped in a step with
                                 factors that have zero pivots: SINGULAR if
                                 they found a part of b outside the range of A,
                                 something else if they did not, RUNNING if
                                 there was no such step */
} sps_chain_solve;

/* Progress of the current step. */
typedef struct sps_chain_pace {
    double begun, allowed;    /* time at which the step started; seconds that
                                 it may use (0: no limit) */
    double first, best;       /* its largest relative residual at its start, and
                                 the smallest value that it has reached */
    double now, peak;         /* its present value, and the largest one, of
                                 iteration `since` */
    int since;
    bool may_abandon;         /* whether the step is abandoned if it is slow */
    bool slow;                /* it was abandoned as too slow */
} sps_chain_pace;

/* For steps with factors that the plan added. */
typedef struct sps_chain_factors {
    int early;                /* number of steps at the beginning of the plan
                                 that count as early: their factors must cost
                                 less than iterations */
    double complete;          /* largest predicted seconds of complete factors
                                 by ilut */
    int deep;                 /* index of the step with ilut in place of long
                                 triangular solves on a GPU; -1: none */
    double deep_worth;        /* largest predicted seconds of its factors */
    double worth[2];          /* largest predicted seconds of factors and two
                                 solves, for early steps and for later ones */
    double refused;           /* factors were refused when this many seconds
                                 were allowed; 0 if never */
    bool completed;           /* complete factors by ilut were tried with these
                                 values, so factors of the module are no
                                 better */
    bool factored;            /* factors were tried with these values, so later
                                 steps with factors are no better */
    bool unfit;               /* A cannot be analysed */
} sps_chain_factors;

typedef struct sps_chain {
    sps_context *ctx;
    const sps_operator *A;
    sps_precond *M;           /* the caller's preconditioner, or NULL */
    int k;
    sps_options opt;          /* the caller's options */
    bool symmetric;           /* A is symmetric and has a positive diagonal */
    bool indefinite;          /* A is not `symmetric` in this sense, or was
                                 found to be indefinite */
    bool finite;              /* all entries of A are finite */
    int64_t version;          /* version of A's values when it was examined */
    double condition;         /* lower bound of the condition of D^-1 A,
                                 measured if multigrid is planned; 0 if not
                                 measured for these values */
    double multigrid;         /* predicted seconds of a solve with multigrid, if
                                 it is planned */
    sps_step step[SPS_CHAIN_STEPS];
    int count, at;            /* number of steps; index of the current one */
    int last_good;            /* index of the step with which a solve starts:
                                 the one that succeeded last, or the first
                                 one */
    bool failed;              /* the last solve failed: the next one starts with
                                 last_good */
    sps_linear *now;
    sps_chain_solve solve;
    sps_chain_pace pace;
    sps_chain_factors factors;
} sps_chain;

/* Examines A and creates the solver of the first step. */
sps_status spsi_chain_create(const sps_linear_args *a, sps_chain **l_p);
sps_status spsi_chain_linear(sps_chain *l, const sps_block *B, sps_block *X,
                             sps_result *result);
void spsi_chain_destroy(sps_chain **l_p);

/* Returns the seconds since the solve started. */
static inline double spsi_chain_spent(const sps_chain *l)
{
    return spsi_agreed_now(l->ctx) - l->solve.started;
}

/* Creates a solver by conjugate gradients: in block form for several right-hand
 * sides, with the method for separate columns as its fallback.  Solver auto
 * takes no other method where A is a function of the caller. */
sps_status spsi_chain_conjugate(const sps_linear_args *a, sps_linear **s_p);

/* chain_pace.c: records the progress of the current step, and returns whether
 * it is abandoned. */
bool spsi_chain_too_slow(sps_chain *l, const sps_progress *p);

/* chain_report.c: return the method of step `at`, and its name in notes. */
const char *spsi_chain_method(const sps_chain *l, int at);
const char *spsi_chain_name(const sps_chain *l, int at);
bool spsi_chain_has_factors(const sps_chain *l, int at);
/* Adds the result r of a step to the sum of those before. */
void spsi_chain_add_up(sps_result *sum, const sps_result *r);
/* A step that its monitor abandons ends with SPS_STOP_INTERRUPTED: replaces
 * that reason by `stop`. */
void spsi_chain_replace_stop(sps_chain *l, sps_result *r, sps_stop stop);
/* Returns whether no further step can improve a column. */
bool spsi_chain_worked(const sps_chain *l);
/* Returns whether rounding limits each column that has not converged. */
bool spsi_chain_limited(const sps_chain *l);
/* Called when the plan had further steps but a limit of time or iterations was
 * reached: reports that limit as the reason, not the stop of the step that ran
 * last. */
void spsi_chain_report_limit(sps_chain *l, sps_result *r);
/* Records why columns stopped in a step whose factors have zero pivots, and
 * reports the reasons of all steps. */
void spsi_chain_record_range(sps_chain *l);
void spsi_chain_report_range(sps_chain *l, sps_result *r);

/* chain_plan.c: examines A and sets *o. */
sps_status spsi_chain_examine(sps_chain *l, sps_chain_traits *o);
/* Replaces precision mixed by double where single precision is not faster. */
void spsi_chain_precision(sps_chain *l, const sps_chain_traits *o);
/* Returns the reason why single precision is not faster on a GPU for blocks of
 * k columns, or NULL if it is. */
const char *spsi_chain_against_single(const sps_chain_traits *o, bool definite,
                                      const sps_features *f, int k);
/* chain_factors.c: returns the seconds that the first step may spend on
 * factors: those of the iterations that they are expected to replace. */
double spsi_chain_worth(const sps_chain *l, const sps_chain_traits *o);
/* Sets *seconds to those that complete factors by ilut may take; 0: no such
 * step. */
sps_status spsi_chain_complete(const sps_chain *l, const sps_chain_traits *o,
                               double *seconds);
/* Returns the predicted seconds of dense factors; 0 if sparse ones are
 * predicted to be faster. */
double spsi_chain_dense(const sps_chain *l);
/* Analyses A and keeps the analysis for preconditioner factor.  Returns
 * SPS_EUNFIT if factors are predicted to take longer than `worth` seconds. */
sps_status spsi_chain_weigh(sps_chain *l, double worth);
/* chain_direct.c: creates iterative refinement with a->opt->precond, which must
 * be factors.  The method `fallback` continues where refinement does not
 * converge. */
sps_status spsi_chain_direct(const sps_linear_args *a, const char *fallback,
                             sps_linear **s_p);
/* auto_least.c: creates the solver for least squares. */
sps_status spsi_auto_least(const sps_linear_args *a, sps_linear **s_p);
/* chain_amg.c: decides whether multigrid is the first step, and adds a note if
 * it is. */
sps_status spsi_chain_multigrid(sps_chain *l, bool *yes);
/* Returns SPS_EUNFIT if M, multigrid that has been set up, reduces errors too
 * slowly. */
sps_status spsi_chain_keeps(sps_chain *l, const sps_precond *M);
/* Plans the steps of the chain. */
sps_status spsi_chain_plan(sps_chain *l, const sps_chain_traits *o);
/* Adds a note that names the first step and the properties of A. */
void spsi_chain_note(const sps_chain *l, const sps_chain_traits *o);

#endif
