/* SPDX-License-Identifier: BSD-3-Clause */
/* solver.h - the public handle sps_solver.
 *
 * Linear systems with one method (linear.h), solver auto and eigenproblems are
 * different objects with one handle: each has a table of operations.  The
 * handle does what they share: argument checks, collective calls of several
 * processes, and reordering of the unknowns. */
#ifndef SPS_SOLVER_H
#define SPS_SOLVER_H

#include "operator/operator.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sps_reordering;

/* Arguments have been checked; B and X are in the order of the operator for
 * which the object was made.  NULL for what the object does not support. */
typedef struct sps_solver_ops {
    sps_status (*linear)(void *of, const sps_block *B, sps_block *X,
                         sps_result *result);
    sps_status (*project)(void *of, sps_block *B);
    sps_status (*eigen)(void *of, sps_block *X, double *lambda,
                        sps_eigen_result *result);
    const sps_precond *(*precond)(const void *of);   /* in use; may be NULL */
    void (*destroy)(void *of);         /* also for a partly constructed
                                          object */
} sps_solver_ops;

/* For an operator that was reordered internally. */
typedef struct sps_solver_order {
    const struct sps_reordering *by;   /* NULL if not reordered */
    const sps_operator *A;             /* the reordered operator */
    sps_block *B, *X;
    const sps_block *given;            /* null-space basis of the caller, or
                                          NULL */
    sps_block *basis;                  /* copy of given, reordered */
    sps_block *coords;                 /* of the nodes, reordered, or NULL */
    sps_block *near_null;              /* near-null vectors of the caller,
                                          reordered, or NULL */
    int64_t version;                   /* of A's values when it was reordered */
} sps_solver_order;

struct sps_solver {
    sps_context *ctx;
    const sps_solver_ops *ops;
    void *of;                          /* the object on which ops work */
    int64_t n, ncol;                   /* rows of B, and of X */
    int columns;                       /* columns of B and X, or eigenpairs */
    sps_solver_order order;
    sps_block *own_B, *own_X;          /* wrapped.c */
    double setup;                      /* seconds that its creation took, for
                                          the result of the first solve */
};

/* Creates a handle for A without operations; the caller sets `ops` and `of`. */
sps_status spsi_solver_new(sps_context *ctx, const sps_operator *A, int columns,
                           sps_solver **s_p);

/* wrapped.c: calls s->ops->linear for B and X of any alignment and leading
 * dimension. */
sps_status spsi_solver_wrapped(sps_solver *s, const sps_block *B, sps_block *X,
                               sps_result *result);

#ifdef __cplusplus
}
#endif
#endif
