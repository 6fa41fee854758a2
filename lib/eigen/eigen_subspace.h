/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_subspace.h - the basis of the search: stacks of columns and their
 * orthogonalisation (eigen_subspace.c), and the roles of the columns of X as
 * wanted pairs, guard columns and locked pairs (eigen_locking.c). */
#ifndef SPS_EIGEN_SUBSPACE_H
#define SPS_EIGEN_SUBSPACE_H

#include "eigen/eigen_deflation.h"

#ifdef __cplusplus
extern "C" {
#endif

/* S, AS and MS are stacks of columns; X, A X and M X are their first m
 * columns. */
struct sps_subspace {
    sps_pencil *pencil;
    sps_deflation *deflation;
    int width, m;                /* columns of X: allocated, in use */
    int guard;                   /* number of these that need not converge */
    int longest;                 /* most columns that S may have */
    int directions;              /* number of new search directions of the
                                    last step */
    sps_block *S, *AS, *MS;      /* MS == S if there is no M */
    sps_block X, AX, MX;         /* views of the first m columns of S, AS, MS */
    sps_block *R;                /* n x m, residuals */
    sps_block *work;             /* n x m, scratch memory */
    double *scratch;             /* two doubles for each column */
    /* For orthogonalisation: Gram matrix, factor, Q'M W, and [Q W]'M W. */
    sps_small *G, *T, *C, *J;
};

/* Allocates S, AS and MS with `stack` times the width as columns; they may be
 * given up to `longest`. */
sps_status spsi_subspace_allocate(sps_subspace *s, int stack, int longest);
/* Gives S, AS and MS memory for s->longest columns and keeps the first `kept`.
 * On SPS_ENOMEM or SPS_EDEVMEM AS, and perhaps others, stay as they are. */
sps_status spsi_subspace_extend(sps_subspace *s, int kept);
/* Sets the number of columns of X to m. */
void spsi_subspace_set_columns(sps_subspace *s, int m);

/* Makes W orthonormal in the inner product of M (x'y if M is NULL, and then MW
 * is W), also to what is deflated and to Q, where MQ = M Q.  Q consists of all
 * columns of S before W; or it has no columns, and W is any block.  Dependent
 * directions are dropped: W is narrowed to its rank.  On return MW = M W.  If M
 * proves indefinite or a value is not finite, *stop becomes that reason; if
 * *stop is set before the call, W is not changed. */
sps_status spsi_subspace_orth(sps_subspace *s, const sps_operator *M,
                              const sps_block *Q, const sps_block *MQ,
                              sps_block *W, sps_block *MW, sps_stop *stop);
/* The same without a pass over W, and nothing may be deflated.  S has q columns
 * Q and w columns W, of which M W and A W are given.  Computes Z such that [Q
 * SZ] is M-orthonormal, and G = S'A W; if `whole`, SZ is, with as many columns
 * as S, and G = S'A S.  Without `whole` Q is assumed to be orthonormal: an
 * error of that, and of what is known of Q'A Q, grows by about *amplified, the
 * largest length of a column of Z; those of the Gram matrices by its square.
 * Z has no columns on return if those of S depend on each other. */
sps_status spsi_subspace_join(sps_subspace *s, int q, int w, bool whole,
                              sps_small *G, sps_small *Z, double *amplified);
/* S(:, 0 .. c - 1) = S(:, 0 .. r - 1) K for K of r x c, and the same for A S
 * and M S. */
sps_status spsi_subspace_rotate(sps_subspace *s, const sps_small *K);
/* S = S Q for the first U->rows columns and Q = I - U T U'
 * (spsi_small_reflectors), and the same for A S and M S: each is read twice and
 * written once. */
sps_status spsi_subspace_reflect(sps_subspace *s, const sps_small *U,
                                 const sps_small *T);
/* Computes the extreme Ritz values, low and high, of some Lanczos steps with
 * sign A from a random vector (T: scratch matrix with as many rows as steps),
 * and the norm of the last residual: low - residual and high + residual lie
 * outside the spectrum, unless the start is orthogonal to the extreme
 * eigenvectors (Zhou and Li, Linear Algebra Appl. 435, 2011). */
#define SPS_EIGEN_LANCZOS 12
sps_status spsi_subspace_bounds(sps_subspace *s, double sign, sps_small *T,
                                double *low, double *high, double *residual);

/* Returns the number of leading columns of X that are wanted pairs: those not
 * locked yet, at most m. */
int spsi_subspace_wanted(const sps_subspace *s);
/* Returns the number of columns of X before the guard columns. */
int spsi_subspace_unguarded(const sps_subspace *s);
/* Returns the number of leading columns of X that must converge before they are
 * locked: the smaller of those two. */
int spsi_subspace_target(const sps_subspace *s);
/* Locks the leading columns of X, `leading` of them but at most the target; the
 * others move to the front.  X becomes as wide as the complement allows; *fresh
 * is a view of its last columns, which have no content yet. */
sps_status spsi_subspace_lock(sps_subspace *s, int leading, sps_block *fresh);
/* Copies the wanted columns of X, which need not be s->X, to the columns of
 * `fixed` after the locked pairs. */
sps_status spsi_subspace_keep(sps_subspace *s, const sps_block *X);
/* Copies the columns that spsi_subspace_keep has stored to s->X. */
sps_status spsi_subspace_restore(sps_subspace *s);
/* After the search: makes the stored columns pairs, and adds random ones up to
 * the requested number. */
sps_status spsi_subspace_complete(sps_subspace *s);

#ifdef __cplusplus
}
#endif
#endif
