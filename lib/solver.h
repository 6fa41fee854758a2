/* SPDX-License-Identifier: BSD-3-Clause */
/* solver.h - the contract of a method, and what the one driver shares with
 * it.
 *
 * The driver (solve.c) owns the loop: it projects B, calls start, then test /
 * monitor / step until every column is done or a reason stops it, verifies
 * with recomputed residuals, asks for a replacement when the recurrence lied,
 * and keeps the best iterate.  A method owns the mathematics of one step.
 *
 *   setup   once: every work block, small matrix and array.
 *   start   from s->X (guess) and s->R (true residual, already computed by
 *           the driver): forget directions, fill s->resnorm.  Called again
 *           after a residual replacement.
 *   step    one iteration: updates s->X and s->R (recurrence), s->resnorm
 *           (k norms of R's columns), s->width.  May set s->stop to
 *           BREAKDOWN, INDEFINITE, NOT_FINITE, SINGULAR.  s->done[j], set by
 *           the driver, marks columns below their threshold: they may leave
 *           the work.
 */
#ifndef SPS_SOLVER_H
#define SPS_SOLVER_H

#include "precond.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sps_solver_type {
    const char *name;
    unsigned needs;           /* SPS_NEEDS_... of the operator */
    size_t size;              /* of its struct, whose first member is sps_solver */
    sps_status (*setup)(sps_solver *s);
    sps_status (*start)(sps_solver *s);
    sps_status (*step)(sps_solver *s);
    void (*destroy)(sps_solver *s);
} sps_solver_type;

struct sps_solver {
    const sps_solver_type *type;
    sps_context *ctx;
    const sps_operator *A;
    sps_precond *M;
    bool own_M;
    sps_options opt;
    int64_t n;
    int k;
    const sps_block *rhs;     /* projected right-hand sides */
    sps_block *X, *R;         /* iterate and residual, driver's blocks */
    double *resnorm;          /* k, written by start and step */
    bool *done;               /* k, written by the driver */
    double norm_A;
    int iteration, width;     /* width: search directions of this step */
    int64_t applies_A, applies_M;
    sps_stop stop;
    const char *event;        /* for the monitor; static text */
    struct sps_driver *driver;/* solve.c's own */
};

/* Y = A X, counted and timed. */
sps_status spsi_solver_apply(sps_solver *s, const sps_block *X, sps_block *Y);
/* Z = M R, projected against the null space, counted and timed.  With no
 * preconditioner Z is a copy of R. */
sps_status spsi_solver_precondition(sps_solver *s, const sps_block *R,
                                    sps_block *Z);

#ifdef __cplusplus
}
#endif
#endif
