/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_orth.c - bases that are orthonormal in the inner product of M.
 *
 * Block Gram-Schmidt against what is there already, then W R^-1 with the
 * Cholesky factor R of the Gram matrix W'MW (CholQR), the whole twice.  After
 * the first round W is well conditioned, so the second leaves errors of eps
 * alone (CholQR2: Yamamoto, Nakatsukasa, Yanagisawa and Fukaya, ETNA 44, 2015);
 * a third is made where the second found it was not so.
 *
 * What W has along Q and its own Gram matrix come from one product [Q W]'M W,
 * and both are taken off by one more, W = [Q W] [-C T; T] (BCGS-PIP: Carson,
 * Lund, Rozloznik and Thomas, Linear Algebra Appl. 638, 2022): half the passes.
 * W'M W - C'C is good as long as W is not all but within Q; there, and where Q
 * and W are too wide for a product in place, Q is taken off before.
 *
 * Where a pivot says that columns are nearly dependent the round is one of
 * SVQB (Stathopoulos and Wu, SISC 23(6), 2002): the factor comes from the
 * eigenvalues of the Gram matrix, and directions that depend on others up to
 * rounding are dropped, never divided by.  A shifted Cholesky factor (Fukaya et
 * al., SISC 42(1), 2020) would not fail there either, but it tells no rank and
 * takes a round more, of n-long passes; an eigenproblem of w rows is nothing
 * beside those.
 *
 * A round of w columns beside q reads q + 2 w and q + w columns of n and writes
 * w. */
#include "eigen.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "timer.h"

#define PIVOT 1e-6   /* squared distance from the columns before, of unit ones */
#define ALONG 1e-8   /* the same from Q: W'M W - C'C has half its digits */
#define JOINED 128   /* columns of Q and W that a product in place takes */

sps_status spsi_eigen_project(sps_eigen *e, sps_block *W)
{
    sps_status st = SPS_OK;

    SPS_TRY(spsi_nullspace_project(e->null, W));
    if (!e->fixed || e->fixed->k == 0 || W->k == 0) return SPS_OK;
    SPS_TRY(spsi_gram(e->dual, W, e->F));
    SPS_TRY(spsi_mul_small(-1.0, e->fixed, e->F, 1.0, W));
fail:
    return st;
}

/* Unit columns where a square could leave the range of doubles, or where M's
 * sign is judged by them; a zero column stays. */
static sps_status normalise(sps_eigen *e, sps_block *W)
{
    sps_status st = SPS_OK;
    double *norm = e->scratch;
    bool far = e->M != NULL;

    SPS_TRY(spsi_norms(W, norm));
    for (int j = 0; j < W->k; j++) {
        if (!isfinite(norm[j])) e->stop = SPS_STOP_NOT_FINITE;
        if (norm[j] != 0 && !(norm[j] > 1e-60 && norm[j] < 1e60)) far = true;
        norm[j] = norm[j] > DBL_MIN ? 1 / norm[j] : 0;
    }
    if (far && !e->stop) SPS_TRY(spsi_axpby_cols(norm, W, NULL, W));
fail:
    return st;
}

/* From G = W'MW.  A negative diagonal, of columns no longer than one, says
 * that M is not positive definite.  A column that was of unit length in the
 * norm of M before it was projected, and is nothing now, depends on Q: what is
 * left of it is rounding, and clearing its row and column drops it. */
static void look_at(sps_eigen *e, sps_small *G, bool unit)
{
    for (int j = 0; j < G->cols; j++) {
        double g = *spsi_small_at(G, j, j);

        if (e->M && g < -1e-14 * e->norm_M) e->stop = SPS_STOP_MASS_INDEFINITE;
        if (!unit || g > 1e-3) continue;
        for (int i = 0; i < G->rows; i++)
            *spsi_small_at(G, i, j) = *spsi_small_at(G, j, i) = 0;
    }
}

/* R with D G D = R'R, D = diag(g)^(-1/2), by columns; false where a pivot is
 * below PIVOT: a column lies so near to the others. */
static bool cholesky(const sps_small *G, sps_small *R)
{
    int m = G->rows;

    spsi_small_shape(R, m, m);
    for (int j = 0; j < m; j++) {
        const double g = *spsi_small_at(G, j, j);
        double *r = spsi_small_at(R, 0, j), pivot = 1;

        if (!(g > 0)) return false;
        for (int i = 0; i < j; i++) {
            const double *ri = spsi_small_at(R, 0, i);
            double sum = *spsi_small_at(G, i, j) /
                         sqrt(g * *spsi_small_at(G, i, i));

            for (int l = 0; l < i; l++) sum -= ri[l] * r[l];
            r[i] = sum / ri[i];
            pivot -= r[i] * r[i];
        }
        if (!(pivot > PIVOT)) return false;
        r[j] = sqrt(pivot);
    }
    return true;
}

/* T = D R^-1, upper triangular. */
static void invert(const sps_small *G, const sps_small *R, sps_small *T)
{
    int m = R->rows;

    spsi_small_shape(T, m, m);
    spsi_small_clear(T);
    for (int j = 0; j < m; j++) {
        double *t = spsi_small_at(T, 0, j);

        t[j] = 1 / *spsi_small_at(R, j, j);
        for (int i = j - 1; i >= 0; i--) {
            for (int l = i + 1; l <= j; l++)
                t[i] -= *spsi_small_at(R, i, l) * t[l];
            t[i] /= *spsi_small_at(R, i, i);
        }
        for (int i = 0; i <= j; i++) t[i] /= sqrt(*spsi_small_at(G, i, i));
    }
}

/* No less than the condition of columns whose Gram matrix, scaled to a unit
 * diagonal, is I up to f in the norm of Frobenius. */
static double condition_of(const sps_small *G)
{
    double f = 0;

    for (int j = 0; j < G->cols; j++)
        for (int i = 0; i < j; i++) {
            double g = *spsi_small_at(G, i, j);

            f += 2 * g * g / (*spsi_small_at(G, i, i) *
                              *spsi_small_at(G, j, j));
        }
    f = sqrt(f);
    return f < 1 ? sqrt((1 + f) / (1 - f)) : HUGE_VAL;
}

/* T in e->U from G = W'MW, which goes; *condition of W, from above. */
static sps_status factor(sps_eigen *e, int *rank, double *condition)
{
    sps_status st = SPS_OK;

    spsi_small_symmetrise(e->G);
    if (cholesky(e->G, e->C)) {
        *rank = e->G->rows;
        *condition = condition_of(e->G);
        invert(e->G, e->C, e->U);
    } else {
        st = spsi_small_orthonormaliser(e->G, 1e-12, e->U, rank, condition);
    }
    return st;
}

/* J holds C = Q'M W in its first q rows and W'M W below.  G = W'M W - C'C, the
 * Gram matrix of W without its part along Q (Pythagoras); false where a column
 * lies so far within Q that the difference is rounding. */
static bool subtract(const sps_small *J, int q, sps_small *G)
{
    int w = J->cols;
    bool safe = true;

    spsi_small_shape(G, w, w);
    for (int j = 0; j < w; j++)
        for (int i = 0; i < w; i++) {
            const double *ci = spsi_small_at(J, 0, i);
            const double *cj = spsi_small_at(J, 0, j);
            double sum = cj[q + i];

            for (int l = 0; l < q; l++) sum -= ci[l] * cj[l];
            *spsi_small_at(G, i, j) = sum;
            if (i == j && !(sum > ALONG * cj[q + i])) safe = false;
        }
    return safe;
}

static double largest(const sps_small *C, int rows)
{
    double most = 0;

    for (int j = 0; j < C->cols; j++)
        for (int i = 0; i < rows; i++)
            most = fmax(most, fabs(*spsi_small_at(C, i, j)));
    return most;
}

/* e->G = W'M W of W without its part along Q: that part is taken off first, or
 * if *joined left to the factor.  *loss: the largest cosine between columns of
 * Q and W, if those of W are of unit length. */
static sps_status measure(sps_eigen *e, const sps_block *Q,
                          const sps_block *MQ, sps_block *W, sps_block *MW,
                          bool *joined, double *loss)
{
    sps_status st = SPS_OK;
    int q = Q->k;
    sps_block MS;

    *loss = 0;
    *joined = q > 0 && q + W->k <= JOINED;
    if (*joined) {
        spsi_block_view(e->MS, 0, q + W->k, &MS);
        SPS_TRY(spsi_gram(&MS, W, e->J));
        *loss = largest(e->J, q);
        *joined = subtract(e->J, q, e->G);
        if (*joined) return SPS_OK;
    }
    if (q > 0) {
        SPS_TRY(spsi_gram(MQ, W, e->C));
        *loss = largest(e->C, q);
        SPS_TRY(spsi_mul_small(-1.0, Q, e->C, 1.0, W));
        if (e->M) SPS_TRY(spsi_eigen_mass(e, W, MW));
    }
    SPS_TRY(spsi_gram(W, MW, e->G));
fail:
    return st;
}

/* e->C = [-C T; T], T in e->U: W of the last round, projected and orthonormal,
 * is [Q W] times it. */
static void join(sps_eigen *e, int q)
{
    const sps_small *J = e->J, *T = e->U;
    int w = T->rows;

    spsi_small_shape(e->C, q + w, T->cols);
    spsi_small_clear(e->C);
    for (int j = 0; j < T->cols; j++) {
        double *c = spsi_small_at(e->C, 0, j);

        for (int l = 0; l < w; l++) {
            double t = *spsi_small_at(T, l, j);
            const double *along = spsi_small_at(J, 0, l);

            for (int i = 0; i < q; i++) c[i] -= along[i] * t;
            c[q + l] = t;
        }
    }
}

/* W = W T, joined: [Q W] [-C T; T], q columns in Q; *condition of what was
 * met. */
static sps_status orthonormalise(sps_eigen *e, int q, bool joined,
                                 sps_block *W, double *condition)
{
    sps_block S = *W, narrow;
    sps_status st;
    int rank = 0;

    spsi_phase_begin(e->ctx, SPS_PHASE_SMALL);
    st = factor(e, &rank, condition);
    if (joined) join(e, q);
    spsi_phase_end(e->ctx, SPS_PHASE_SMALL);
    if (st != SPS_OK) return st;
    if (joined) spsi_block_view(e->S, 0, q + W->k, &S);
    spsi_block_view(W, 0, rank, &narrow);
    spsi_phase_begin(e->ctx, SPS_PHASE_GRAM);
    st = spsi_mul_small(1.0, &S, joined ? e->C : e->U, 0.0, &narrow);
    spsi_phase_end(e->ctx, SPS_PHASE_GRAM);
    spsi_block_narrow(W, rank);
    return st;
}

sps_status spsi_eigen_orth(sps_eigen *e, const sps_block *Q,
                           const sps_block *MQ, sps_block *W, sps_block *MW)
{
    sps_status st = SPS_OK;
    double condition = 1, loss = 0;
    bool joined;

    SPS_TRY(normalise(e, W));
    for (int round = 0; round < 4 && W->k > 0 && !e->stop; round++) {
        SPS_TRY(spsi_eigen_project(e, W));
        spsi_block_narrow(MW, W->k);
        if (e->M) SPS_TRY(spsi_eigen_mass(e, W, MW));
        spsi_phase_begin(e->ctx, SPS_PHASE_GRAM);
        st = measure(e, Q, MQ, W, MW, &joined, &loss);
        spsi_phase_end(e->ctx, SPS_PHASE_GRAM);
        if (st != SPS_OK) return st;
        if (!spsi_small_finite(e->G)) e->stop = SPS_STOP_NOT_FINITE;
        look_at(e, e->G, round > 0);
        if (e->stop) break;
        SPS_TRY(orthonormalise(e, Q->k, joined, W, &condition));
        if (round > 0 && condition < 1.5 && loss < 1e-3) break;
    }
    spsi_block_narrow(MW, W->k);
    if (e->M && !e->stop) SPS_TRY(spsi_eigen_mass(e, W, MW));
fail:
    return st;
}
