/* SPDX-License-Identifier: BSD-3-Clause */
/* lobpcg.c - locally optimal block preconditioned conjugate gradients for A x =
 * lambda M x (Knyazev, SIAM J. Sci. Comput. 23(2), 2001), in the basis of
 * Hetmaniuk and Lehoucq (J. Comput. Phys. 218, 2006) and Duersch, Shao, Yang
 * and Gu (SIAM J. Sci. Comput. 40(5), 2018).
 *
 * S = [X P W] is kept M-orthonormal, where W = orth(T R) for the columns that
 * have not converged, so that Rayleigh-Ritz is one symmetric eigenproblem of H
 * = S'AS:
 *
 *     H V = V diag(theta);  X = S V1;  P = S V2 B,
 *
 * with V1 the wanted eigenvectors, V2 the others, and B an orthonormal basis of
 * V2'[0; V1 without the rows of X]: the new directions P are orthogonal to the
 * new X by their coefficients only, without an inner product of blocks.  Then
 * X'AX = diag(theta1), X'AP = 0 and P'AP = B'diag(theta2)B, so only the columns
 * of W are multiplied by A; A S and M S are updated with the same coefficients
 * as X and P, and compared with new products from time to time.
 *
 * Cost of an iteration in passes over n x m blocks, with w = m columns of W and
 * M the identity: residual 6, orthogonalisation of W 20, S'AW 4, update of S
 * and AS 10, in addition to W = T R and A W.
 *
 * Where more eigenvalues than the block has columns lie close together, it has
 * to resolve their eigenvectors by iterations.  If that is slow, S is extended
 * and keeps all directions: P = S V2 times an orthonormal matrix, so that S Q
 * with Householder reflectors Q is the new [X P].  When S is full, it becomes
 * X, the next Ritz vectors and P as above (the restart GD+k of Stathopoulos,
 * SIAM J. Sci. Comput. 29(2), 2007).  With q columns in S an iteration passes
 * over some 10 q / m blocks instead of 40. */
#include "eigen/eigen.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "core/timer.h"

#define STACK 3       /* blocks in S: X, P and W */
#define BASIS 480     /* columns of the extended S */
#define EXTENSION 2   /* least factor by which S must become longer */
#define CHECK 5       /* steps between two predictions */
#define SLOW 20       /* predicted steps to the tolerance that call for it */
#define CLUSTER 0.05  /* largest relative distance of the last Ritz value of X
                         from the last wanted one */

struct lobpcg {
    int p;                /* columns of P */
    int steps;            /* steps since the start */
    double badness;       /* spsi_ritz_badness at the last prediction */
    int *active;          /* columns of X that produce directions */
    double *w;            /* 3 m eigenvalues */
    sps_small *PAP;       /* p x p */
    sps_small *K;         /* s x (m + p): V1 and V2 B; or a copy of H */
    sps_small *B, *N;     /* (s - m - kept) x p: the basis B, and scratch of the
                             same shape */
    sps_small *G, *T;     /* Gram matrices, and the factor of one */
};

static sps_status setup(sps_eigen *e, void *method)
{
    struct lobpcg *l = method;
    sps_status st = SPS_OK;
    int m = e->space.width;

    SPS_TRY(SPS_OWN(&e->own, m, &l->active));
    SPS_TRY(SPS_OWN(&e->own, e->space.longest, &l->w));
    SPS_TRY(spsi_own_small(&e->own, m, m, &l->PAP));
    SPS_TRY(spsi_own_small(&e->own, STACK * m, 2 * m, &l->K));
    SPS_TRY(spsi_own_small(&e->own, STACK * m, m, &l->B));
    SPS_TRY(spsi_own_small(&e->own, STACK * m, m, &l->N));
    SPS_TRY(spsi_own_small(&e->own, STACK * m, m, &l->G));
    SPS_TRY(spsi_own_small(&e->own, m, m, &l->T));
fail:
    return st;
}

static sps_status start(sps_eigen *e, void *method)
{
    struct lobpcg *l = method;

    l->p = l->steps = 0;
    l->badness = HUGE_VAL;
    return spsi_eigen_begin(e, l->w);
}

/* Chooses the columns that have not converged.  Converged ones, whose
 * directions do no harm, are added to make a multiple of 4, so that rows within
 * S stay aligned. */
static int choose_active(const sps_ritz *r, int *active)
{
    int count = 0, all;

    for (int j = 0; j < r->space->m; j++) count += !r->done[j];
    all = (count + 3) / 4 * 4 - count;
    count = 0;
    for (int j = 0; j < r->space->m; j++) {
        if (r->done[j] && --all < 0) continue;
        active[count++] = j;
    }
    return count;
}

/* W = orth(T R), stored after X and P, with A W and M W; W->k may become
 * smaller. */
static sps_status directions(sps_eigen *e, struct lobpcg *l, int a,
                             sps_block *W)
{
    sps_status st = SPS_OK;
    int q = e->space.m + l->p;
    sps_block Q, MQ, AW, MW, *R = e->space.R;

    spsi_block_view(e->space.S, q, a, W);
    spsi_block_view(e->space.MS, q, a, &MW);
    spsi_block_view(e->space.S, 0, q, &Q);
    spsi_block_view(e->space.MS, 0, q, &MQ);
    for (int j = 0; j < a; j++) l->w[j] = e->ritz.resnorm[l->active[j]];
    if (a < e->space.m) {
        R = e->space.work;
        spsi_block_narrow(R, a);
        SPS_TRY(spsi_gather(e->space.R, l->active, R));
    }
    SPS_TRY(spsi_eigen_precondition(&e->precond, R, l->w, W));
    SPS_TRY(spsi_subspace_orth(&e->space, e->pencil.M, &Q, &MQ, W, &MW,
                               &e->search.stop));
    if (e->search.stop || W->k == 0) return st;
    spsi_block_view(e->space.AS, q, W->k, &AW);
    SPS_TRY(spsi_transform_apply(&e->transform, W, &AW, &e->search));
fail:
    return st;
}

/* Assembles r->H = S'AS from diag(theta), P'AP and S'AW.  If `inverted`, A is
 * the inverted operator, and S' is replaced by S'M. */
static sps_status assemble(sps_ritz *r, const struct lobpcg *l, int w,
                           bool inverted)
{
    sps_context *ctx = r->space->pencil->ctx;
    sps_status st = SPS_OK;
    int m = r->space->m, q = m + l->p, s = q + w;
    sps_block S, AW;

    spsi_block_view(inverted ? r->space->MS : r->space->S, 0, s, &S);
    spsi_block_view(r->space->AS, q, w, &AW);
    spsi_phase_begin(ctx, SPS_PHASE_GRAM);
    st = spsi_gram(&S, &AW, l->G);
    spsi_phase_end(ctx, SPS_PHASE_GRAM);
    if (st != SPS_OK) return st;
    spsi_small_shape(r->H, s, s);
    spsi_small_clear(r->H);
    for (int j = 0; j < m; j++) *spsi_small_at(r->H, j, j) = r->value[j];
    for (int j = 0; j < l->p; j++)
        for (int i = 0; i < l->p; i++)
            *spsi_small_at(r->H, m + i, m + j) = *spsi_small_at(l->PAP, i, j);
    for (int j = 0; j < w; j++)
        for (int i = 0; i < s; i++) {
            double v = *spsi_small_at(l->G, i, j);

            *spsi_small_at(r->H, i, q + j) = v;
            if (i < q) *spsi_small_at(r->H, q + j, i) = v;
        }
    return SPS_OK;
}

/* Computes B, an orthonormal basis of V3'[0; V1] for the active columns, with V3
 * the columns of V from `from` on; returns its rank in *rank. */
static sps_status directions_of(struct lobpcg *l, int m, int from,
                                const sps_small *V, int a, int *rank)
{
    sps_status st = SPS_OK;
    int s = V->rows;
    double condition;

    spsi_small_shape(l->B, s - from, a);
    for (int c = 0; c < a; c++)
        for (int t = 0; t < s - from; t++) {
            double sum = 0;

            for (int i = m; i < s; i++)
                sum += *spsi_small_at(V, i, from + t) *
                       *spsi_small_at(V, i, l->active[c]);
            *spsi_small_at(l->B, t, c) = sum;
        }
    for (int round = 0; round < 2; round++) {
        SPS_TRY(spsi_small_mul(1.0, l->B, true, l->B, false, 0.0, l->G));
        SPS_TRY(spsi_small_orthonormaliser(l->G, 1e-12, l->T, rank,
                                           &condition));
        SPS_TRY(spsi_small_mul(1.0, l->B, false, l->T, false, 0.0, l->N));
        SPS_TRY(spsi_small_copy(l->N, l->B));
    }
fail:
    return st;
}

/* K = [V(:, 0 .. from - 1), V3 B]. */
static void coefficients(struct lobpcg *l, int from, const sps_small *V)
{
    int s = V->rows, rank = l->B->cols;

    spsi_small_shape(l->K, s, from + rank);
    memcpy(l->K->v, V->v, (size_t)s * (size_t)from * sizeof(double));
    for (int c = 0; c < rank; c++) {
        double *k = spsi_small_at(l->K, 0, from + c);

        memset(k, 0, (size_t)s * sizeof *k);
        for (int t = 0; t < s - from; t++) {
            double b = *spsi_small_at(l->B, t, c);
            const double *v = spsi_small_at(V, 0, from + t);

            for (int i = 0; i < s; i++) k[i] += b * v[i];
        }
    }
}

/* Sets PAP = P'AP, which is block diagonal: the leading `kept` columns of P are
 * Ritz vectors, with block diag(theta), and the others are combinations of
 * further Ritz vectors by B, with block B'diag(theta)B. */
static sps_status project(struct lobpcg *l, int m, int kept, double sign)
{
    sps_status st = SPS_OK;
    int rank = l->B->cols;
    const double *w = l->w + m + kept;

    SPS_TRY(spsi_small_copy(l->B, l->N));
    for (int c = 0; c < rank; c++)
        for (int t = 0; t < l->N->rows; t++)
            *spsi_small_at(l->N, t, c) *= sign * w[t];
    SPS_TRY(spsi_small_mul(1.0, l->B, true, l->N, false, 0.0, l->G));
    spsi_small_symmetrise(l->G);
    l->p = kept + rank;
    spsi_small_shape(l->PAP, l->p, l->p);
    spsi_small_clear(l->PAP);
    for (int j = 0; j < kept; j++)
        *spsi_small_at(l->PAP, j, j) = sign * l->w[m + j];
    for (int j = 0; j < rank; j++)
        memcpy(spsi_small_at(l->PAP, kept, kept + j),
               spsi_small_at(l->G, 0, j), (size_t)rank * sizeof *w);
fail:
    return st;
}

/* S becomes [X P], where P begins with the `kept` Ritz vectors after X. */
static sps_status contract(sps_eigen *e, struct lobpcg *l, int kept, int a)
{
    sps_status st = SPS_OK;
    int m = e->space.m, rank;

    SPS_TRY(directions_of(l, m, m + kept, e->ritz.H, a, &rank));
    coefficients(l, m + kept, e->ritz.H);
    SPS_TRY(project(l, m, kept, e->wanted.sign));
    SPS_TRY(spsi_subspace_rotate(&e->space, l->K));
fail:
    return st;
}

/* H = Q'H Q for Q = I - U T U', in l->K, with l->B and l->N as scratch. */
static sps_status reflect(struct lobpcg *l, const sps_small *U)
{
    sps_status st = SPS_OK;

    SPS_TRY(spsi_small_mul(1.0, l->K, false, U, false, 0.0, l->B));
    SPS_TRY(spsi_small_mul(1.0, l->B, false, l->T, false, 0.0, l->N));
    SPS_TRY(spsi_small_mul(-1.0, l->N, false, U, true, 1.0, l->K));
    SPS_TRY(spsi_small_mul(1.0, l->K, true, U, false, 0.0, l->B));
    SPS_TRY(spsi_small_mul(1.0, l->B, false, l->T, false, 0.0, l->N));
    SPS_TRY(spsi_small_mul(-1.0, U, false, l->N, true, 1.0, l->K));
fail:
    return st;
}

/* S keeps all its directions: it becomes S Q, the leading columns of which are
 * X = S V1, and P'AP the trailing part of Q'H Q, with H in l->K. */
static sps_status keep_all(sps_eigen *e, struct lobpcg *l)
{
    sps_small *U = e->ritz.H;
    sps_status st = SPS_OK;
    int m = e->space.m, s = U->rows;

    U->cols = m;
    SPS_TRY(spsi_small_reflectors(U, l->T));
    SPS_TRY(spsi_subspace_reflect(&e->space, U, l->T));
    SPS_TRY(reflect(l, U));
    l->p = s - m;
    spsi_small_shape(l->PAP, l->p, l->p);
    for (int j = 0; j < l->p; j++)
        memcpy(spsi_small_at(l->PAP, 0, j), spsi_small_at(l->K, m, m + j),
               (size_t)l->p * sizeof(double));
    spsi_small_symmetrise(l->PAP);
fail:
    return st;
}

/* Returns whether the last Ritz value of X lies close to the last wanted one,
 * so that the eigenvectors of more values than X has columns mix. */
static bool clustered(const sps_eigen *e)
{
    int m = e->space.m, last = spsi_subspace_target(&e->space) - 1;
    double end = e->ritz.value[m - 1];

    return fabs(end - e->ritz.value[last]) < CLUSTER * fabs(end);
}

static sps_status extend_all(sps_eigen *e, struct lobpcg *l)
{
    int m = e->space.width, most = e->space.longest;
    sps_status st;

    SPS_TRY(spsi_small_enlarge(&l->PAP, most, most));
    SPS_TRY(spsi_small_enlarge(&l->K, most, most));
    SPS_TRY(spsi_small_enlarge(&l->B, most, m));
    SPS_TRY(spsi_small_enlarge(&l->N, most, m));
    SPS_TRY(spsi_small_enlarge(&l->G, most, m));
    SPS_TRY(spsi_ritz_extend(&e->ritz));
    SPS_TRY(spsi_subspace_extend(&e->space, e->space.m + l->p));
fail:
    return st;
}

/* Extends S if the tolerance is predicted to be far away.  Without memory for
 * that the search goes on as before; several processes would have to agree on
 * it and are left alone. */
static sps_status extend(sps_eigen *e, struct lobpcg *l)
{
    double before = l->badness, left = spsi_ritz_badness(&e->ritz);
    const sps_subspace *s = &e->space;
    sps_status st;

    l->badness = left;
    if (s->AS->width == s->longest ||
        s->longest < EXTENSION * s->AS->width || e->ctx->opt.comm ||
        !isfinite(before) || !clustered(e) ||
        left * CHECK <= SLOW * fmax(before - left, 0))
        return SPS_OK;
    st = extend_all(e, l);
    if (st == SPS_ENOMEM || st == SPS_EDEVMEM) return SPS_OK;
    e->search.event = "basis extended";
    return st;
}

/* Compares A X as updated with a new product.  Where the difference is visible
 * in a residual, or X is no longer orthonormal, the method starts again from
 * X. */
static sps_status check_drift(sps_eigen *e, struct lobpcg *l)
{
    sps_status st = SPS_OK;
    bool drifted = false;

    spsi_block_narrow(e->space.work, e->space.m);
    SPS_TRY(spsi_transform_apply(&e->transform, &e->space.X, e->space.work,
                                 &e->search));
    SPS_TRY(spsi_axpby(-1.0, &e->space.AX, 1.0, e->space.work));
    SPS_TRY(spsi_norms(e->space.work, l->w));
    SPS_TRY(spsi_gram(&e->space.X, &e->space.MX, l->G));
    for (int j = 0; j < e->space.m; j++) {
        if (l->w[j] > 0.1 * e->ritz.resnorm[j] &&
            l->w[j] > spsi_pencil_attainable(&e->pencil, e->ritz.theta[j],
                                             e->ritz.xnorm[j]))
            drifted = true;
        for (int i = 0; i < e->space.m; i++)
            if (fabs(*spsi_small_at(l->G, i, j) - (i == j)) > 1e-10)
                drifted = true;
    }
    if (!drifted) return SPS_OK;
    e->search.restarts++;
    e->search.event = "products renewed";
    SPS_TRY(start(e, l));
fail:
    return st;
}

static bool extended(const sps_subspace *s)
{
    return s->AS->width > STACK * s->width;
}

/* Returns the number of Ritz vectors to keep behind X where S of `columns`
 * columns is full: half of S is free afterwards. */
static int kept(const sps_subspace *s, int columns)
{
    int most = columns / 2 - 2 * s->m;

    return extended(s) && most > 0 ? most / 4 * 4 : 0;
}

static sps_status step(sps_eigen *e, void *method)
{
    struct lobpcg *l = method;
    sps_status st = SPS_OK;
    int a = choose_active(&e->ritz, l->active), columns;
    sps_block W;
    bool all;

    SPS_TRY(directions(e, l, a, &W));
    e->space.directions = W.k;
    if (W.k == 0 && !e->search.stop) e->search.stop = SPS_STOP_STAGNATED;
    if (e->search.stop) return st;
    SPS_TRY(assemble(&e->ritz, l, W.k, e->transform.inverted));
    columns = e->ritz.H->rows;
    all = columns + e->space.m <= e->space.AS->width && extended(&e->space);
    if (all) SPS_TRY(spsi_small_copy(e->ritz.H, l->K));
    SPS_TRY(spsi_ritz_solve(&e->ritz, &e->transform, e->ritz.H,
                            all ? e->space.m : columns, l->w,
                            &e->search.stop));
    if (e->search.stop) return st;
    if (all) SPS_TRY(keep_all(e, l));
    else SPS_TRY(contract(e, l, kept(&e->space, columns), a));
    for (int j = 0; j < e->space.m; j++)
        e->ritz.value[j] = e->wanted.sign * l->w[j];
    SPS_TRY(spsi_eigen_residuals(e));
    if (e->search.stop) return st;
    if (++l->steps % CHECK == 0) SPS_TRY(extend(e, l));
    if (!e->transform.inverted && l->steps % e->opt.true_residual_every == 0)
        SPS_TRY(check_drift(e, l));
fail:
    return st;
}

SPS_DEFINE(sps_eigen_type, spsi_eigen_lobpcg) = {
    .name = "lobpcg",
    .size = sizeof(struct lobpcg),
    .stack = STACK,
    .longest = BASIS,
    .preconditioned = true,
    .setup = setup,
    .start = start,
    .step = step,
};
