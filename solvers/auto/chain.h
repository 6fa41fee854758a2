/* SPDX-License-Identifier: BSD-3-Clause */
/* chain.h - the fallback chain of solver auto: methods and preconditioners
 * tried one after the other, the cheapest first, each from the best X so
 * far. */
#ifndef SPS_CHAIN_H
#define SPS_CHAIN_H

#include "driver/linear.h"

#define SPS_CHAIN_STEPS 16

typedef struct sps_step {
    const char *solver, *precond;
    double droptol, fill;     /* of ilut */
    int grace, patience;      /* iterations before convergence is judged; limit
                                 of the predicted iterations, 0: none */
    double share;             /* of the remaining time */
    int definite;             /* 1: only while A may be definite, -1: only if
                                 it is not, 0: always */
} sps_step;

/* Properties of A on which the plan depends. */
typedef struct sps_chain_traits {
    bool symmetric;
    int64_t zero, negative;   /* number of such diagonal entries */
    int64_t odd;              /* entries that are not finite */
    int64_t weak;             /* diagonal entries below 1e-3 of the largest in
                                 their row */
    double spread;            /* mean of squared row lengths over the squared
                                 mean */
    double dominated;         /* fraction of rows with |a_ii| >= the sum of the
                                 other magnitudes */
    double near;              /* and with |a_ii| >= 0.8 times that sum */
    double strong;            /* and with |a_ii| >= 1.5 times that sum */
} sps_chain_traits;

typedef struct sps_chain {
    sps_context *ctx;
    const sps_operator *A;
    sps_precond *M;           /* the caller's, or NULL */
    int k;
    sps_options opt;          /* the caller's */
    bool symmetric;           /* symmetric, with a positive diagonal */
    bool indefinite;          /* not `symmetric`, or found to be indefinite */
    bool finite;              /* all entries of A */
    int64_t version;          /* of A's values when it was examined */
    double condition;         /* of D^-1 A, at least, if multigrid is planned;
                                 0: not measured for these values */
    double multigrid;         /* seconds predicted with it, as for that */
    sps_step step[SPS_CHAIN_STEPS];
    int count, at;            /* number of steps; the current one */
    int last_good;            /* with which a solve starts: the step that
                                 succeeded last, or the first one */
    bool failed;              /* the last solve failed: start with last_good */
    sps_linear *now;
    /* State of a solve: */
    double started, setup;    /* time; seconds of set-up, which count for the
                                 first solve */
    double begun, allowed;    /* of this step: time at its start; seconds that
                                 it may take, 0: no limit */
    double first, best;       /* worst residuals of this step */
    int iterations;           /* of the previous steps */
    int tried;                /* steps of this solve so far */
    bool may_abandon;         /* whether this step is abandoned if it is slow */
    /* Of steps with factors that the plan added: */
    int early;                /* number of those at its beginning */
    double worth[2];          /* seconds that factors and two solves may take by
                                 prediction, in these and in later ones */
    double refused;           /* with so many they were refused; 0: never */
    bool rounded, singular;   /* in this solve such a step has stagnated, at the
                                 rounding of X; its factors had zero pivots */
    bool factored, unfit;     /* they were tried with these values: later ones
                                 are no better; A cannot be analysed */
    bool slow, stopped;       /* it was abandoned so; the caller's monitor has
                                 stopped the solve */
} sps_chain;

/* Examines A and creates the solver of the first step. */
sps_status spsi_chain_create(const sps_linear_args *a, sps_chain **l_p);
sps_status spsi_chain_linear(sps_chain *l, const sps_block *B, sps_block *X,
                             sps_result *result);
void spsi_chain_destroy(sps_chain **l_p);

/* auto.c: conjugate gradients, in block form for several right-hand sides; this
 * is all of auto for a callback. */
sps_status spsi_auto_conjugate(const sps_linear_args *a, sps_linear **s_p);

/* The method of step `at`, and its name in notes. */
const char *spsi_chain_method(const sps_chain *l, int at);
const char *spsi_chain_name(const sps_chain *l, int at);

/* chain_plan.c: examines A. */
sps_status spsi_chain_examine(sps_chain *l, sps_chain_traits *o);
/* Replaces precision mixed by double where single precision does not pay. */
void spsi_chain_precision(sps_chain *l, const sps_chain_traits *o);
/* Why single precision does not pay on a GPU for blocks of k columns, or
 * NULL. */
const char *spsi_chain_against_single(const sps_chain_traits *o, bool definite,
                                      const sps_features *f, int k);
/* chain_factors.c: seconds that the first step may spend on factors: those of
 * the iterations that they are expected to replace. */
double spsi_chain_worth(const sps_chain *l, const sps_chain_traits *o);
/* Analyses A and keeps the analysis for preconditioner factor; EUNFIT if factors
 * are predicted to take longer than `worth`. */
sps_status spsi_chain_weigh(sps_chain *l, double worth);
/* chain_direct.c: refinement with a->opt->precond, which is factors; the method
 * `fallback` goes on where that does not converge. */
sps_status spsi_chain_direct(const sps_linear_args *a, const char *fallback,
                             sps_linear **s_p);
/* chain_amg.c: whether multigrid is to be the first step; adds a note then. */
sps_status spsi_chain_multigrid(sps_chain *l, bool *yes);
/* SPS_EUNFIT if M, multigrid that is set up, reduces errors too slowly. */
sps_status spsi_chain_keeps(sps_chain *l, const sps_precond *M);
/* Plans the steps. */
sps_status spsi_chain_plan(sps_chain *l, const sps_chain_traits *o);
/* A note with the first step and the properties of A. */
void spsi_chain_note(const sps_chain *l, const sps_chain_traits *o);

#endif
