/* SPDX-License-Identifier: BSD-3-Clause */
/* ladder.h - solver auto: methods and preconditioners tried one after the
 * other, cheap ones first, each from the best X so far. */
#ifndef SPS_LADDER_H
#define SPS_LADDER_H

#include "solver.h"

#define SPS_LADDER_STEPS 10

typedef struct sps_step {
    const char *solver, *precond;
    double droptol, fill;     /* of ilut */
    int look, patience;       /* iterations before progress is judged; given up
                                 when more than patience are predicted; 0:
                                 never */
    double share;             /* of the time that is left */
    int definite;             /* 1: only while A may be definite, -1: only
                                 where it is not, 0: whatever it is */
} sps_step;

/* What is seen of A. */
typedef struct sps_looks {
    bool symmetric;
    int64_t zero, negative;   /* diagonal entries */
    int64_t weak;             /* below 1e-3 of their row */
    double dominated;         /* share of rows |a_ii| >= sum of the others */
    double near;              /* and >= 0.8 times it */
} sps_looks;

typedef struct sps_ladder {
    sps_context *ctx;
    const sps_operator *A;
    sps_precond *M;           /* the caller's, or NULL */
    int k;
    sps_options opt;          /* the caller's */
    bool symmetric;           /* looks positive definite */
    bool indefinite;          /* and was found not to be */
    int64_t version;          /* of A's values that this was seen of */
    sps_step step[SPS_LADDER_STEPS];
    int count, at;            /* steps; the one that now is */
    int home;                 /* where a solve begins: the step that worked
                                 last, the first before any did */
    bool failed;              /* the last solve, so that now goes home */
    sps_solver *now;
    int64_t live;             /* handles that now counts for */
    /* One solve: */
    double started, setup;    /* clock; seconds before the first solve, which
                                 count as its own */
    double begun, allowed;    /* this step: clock, its share (0: no limit) */
    double first, best;       /* worst residuals of this step */
    int iterations;           /* of the steps before */
    bool watched, slow, stopped;   /* given up for slowness; by the caller */
} sps_ladder;

/* Looks at A and makes the first step's solver. */
sps_status spsi_ladder_create(const sps_operator *A, sps_precond *M, int k,
                              const sps_options *opt, sps_ladder **l_p);
sps_status spsi_ladder_linear(sps_ladder *l, const sps_block *B, sps_block *X,
                              sps_result *result);
void spsi_ladder_destroy(sps_ladder **l_p);

/* ladder_plan.c: looks at A, decides whether floats are used where they may be,
 * writes the steps, tells the choice. */
sps_status spsi_ladder_look(sps_ladder *l, sps_looks *o);
void spsi_ladder_weigh(sps_ladder *l, const sps_looks *o);
/* Why floats do not pay on a GPU for blocks of k columns; NULL where they do. */
const char *spsi_ladder_against_floats(const sps_looks *o, bool definite,
                                       const sps_features *f, int k);
void spsi_ladder_plan(sps_ladder *l, const sps_looks *o);
void spsi_ladder_tell(const sps_ladder *l, const sps_looks *o);

#endif
