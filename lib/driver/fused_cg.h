/* SPDX-License-Identifier: BSD-3-Clause */
/* fused_cg.h - iterations of conjugate gradients without host synchronisation,
 * which methods queue in their `queue`.
 *
 * Three passes, whose small results stay in the memory of the blocks:
 *
 *   lengths      G = P'Q
 *   residual     a = G^-1 C, C = P'R;  R -= Q a;  W = Q'Z, Z = D R;  R'R
 *   directions   b = -G^-1 W;  X += P a;  P = Z + P b;
 *                S = P'P, C = P'R of the next step
 *
 * or, with scalars by column, a_j = c_j / p_j'q_j with c_j = r_j'z_j and
 * b_j = c_j (new) / c_j (old), S not needed.
 *
 * A reduction over rows may be left as partial sums; the pass that needs it
 * adds them up in fixed order.  A separate reduction kernel would cost as much
 * as a pass, which takes microseconds.
 *
 * A step is either regular or not taken.  `residual` examines S, G and C, and
 * sets a reason to stop before anything has changed.  `directions` sets one
 * when the step is complete; and before it begins, if X would replace the best
 * iterate of a column (best.c): the host stores that and queues `directions`
 * again.  Once there is a reason, all passes queued behind do nothing.  Hence
 * any number of steps can be queued at once, and their number changes no bit of
 * any result.  Steps that are not regular are left to the method's step, which
 * has LAPACK and decides on the host. */
#ifndef SPS_FUSED_CG_H
#define SPS_FUSED_CG_H

#include "block/fused_step.h"
#include "core/owner.h"

struct sps_linear;

#ifdef __cplusplus
extern "C" {
#endif

/* The operands of the steps. */
typedef struct sps_fused_cg_task {
    const sps_operator *A;
    const sps_block *D;      /* n x 1 for Z = D R; NULL for Z = R */
    sps_block *P, *Q;        /* the search block and its product */
    sps_block *X, *R;
    const double *limit;     /* by position: norms at which columns converge */
    int few;                 /* number of open columns at which the queue
                                stops */
    bool replay;             /* steps may be recorded and replayed */
    struct sps_linear *of;   /* the solver that stores the best iterates */
    bool correction;         /* X is a correction, added by the flush of `of` */
} sps_fused_cg_task;

/* `condition` is the condition of P (with unit columns) above which S must be
 * examined; it is unused with scalars by column.  *w_p stays NULL if the
 * backend has no fused steps, or none of this width. */
sps_status spsi_fused_cg_create(sps_owner *o, int k, bool columns,
                                double condition, sps_fused_cg **w_p);
/* Returns whether w is not NULL and supports the layout of these blocks. */
bool spsi_fused_cg_serve(const sps_fused_cg *w, const sps_fused_cg_task *t);
/* Provides C = P'R (with scalars by column: the k values c) and the norms of R
 * for the next step; each fused step computes them for the one that follows. */
sps_status spsi_fused_cg_begin(sps_fused_cg *w, const sps_fused_cg_task *t,
                               const double *c);
/* As spsi_fused_cg_begin, for a P that has not been examined and has as many
 * columns as R, without scalars by column: computes S = P'P and C, without host
 * synchronisation. */
sps_status spsi_fused_cg_start(sps_fused_cg *w, const sps_fused_cg_task *t);
/* Downloads S, k x k, and adds up its partial sums. */
sps_status spsi_fused_cg_basis(sps_fused_cg *w, sps_small *S);
/* With scalars by column: copies c = C as spsi_fused_cg_take downloaded it
 * last. */
void spsi_fused_cg_scalars(const sps_fused_cg *w, double *c);
/* Queues up to *count <= SPS_FUSED_QUEUE steps, and synchronises once.  On
 * return *count is the number of steps queued, fewer if a stop is expected
 * soon; *taken of them were completed; norms[i * k + j] is ||r_j|| after step
 * i; *why has the reasons to stop. */
sps_status spsi_fused_cg_take(sps_fused_cg *w, const sps_fused_cg_task *t,
                              int *count, int *taken, double *norms, int *why);

#ifdef __cplusplus
}
#endif
#endif
