/* SPDX-License-Identifier: BSD-3-Clause */
/* lobpcg_ritz.c - the projected problem of lobpcg, and the new basis by the
 * coefficients of its eigenvectors (lobpcg.c). */
#include "lobpcg.h"

#include <string.h>

#include "core/timer.h"

/* Replaces H = [Q W]'A [Q W] by [Q SZ]'A [Q SZ]; Q may have no columns. */
static sps_status project_joined(lobpcg *l, sps_small *H)
{
    sps_status st = SPS_OK;
    int q = l->Z->rows - l->Z->cols, w = l->Z->cols;

    SPS_TRY(spsi_small_mul(1.0, H, false, l->Z, false, 0.0, l->N));
    SPS_TRY(spsi_small_mul(1.0, l->Z, true, l->N, false, 0.0, l->B));
    for (int j = 0; j < w; j++) {
        for (int i = 0; i < q; i++)
            *spsi_small_at(H, i, q + j) = *spsi_small_at(H, q + j, i) =
                *spsi_small_at(l->N, i, j);
        for (int i = 0; i < w; i++)
            *spsi_small_at(H, q + i, q + j) = *spsi_small_at(l->B, i, j);
    }
fail:
    return st;
}

/* l->G = S'A W for the w columns of W.  With shift and invert A is the inverted
 * operator, and S' is replaced by S'M. */
static sps_status multiply(const sps_eigen *e, lobpcg *l, int w)
{
    const sps_subspace *space = &e->space;
    int q = space->m + l->p;
    sps_block S, AW;
    sps_status st;

    spsi_block_view(e->transform.inverted ? space->MS : space->S, 0, q + w, &S);
    spsi_block_view(space->AS, q, w, &AW);
    spsi_phase_begin(e->ctx, SPS_PHASE_GRAM);
    st = spsi_gram(&S, &AW, l->G);
    spsi_phase_end(e->ctx, SPS_PHASE_GRAM);
    return st;
}

sps_status spsi_lobpcg_assemble(sps_eigen *e, lobpcg *l, int w)
{
    sps_small *H = e->ritz.H;
    sps_status st = SPS_OK;
    int q = e->space.m + l->p, s = q + w;

    if (l->Z->cols == 0) SPS_TRY(multiply(e, l, w));
    spsi_small_shape(H, s, s);
    if (l->Z->cols == s) {
        SPS_TRY(spsi_small_copy(l->G, H));
        spsi_small_symmetrise(H);
        return project_joined(l, H);
    }
    for (int j = 0; j < q; j++)
        memcpy(spsi_small_at(H, 0, j), spsi_small_at(l->F, 0, j),
               (size_t)q * sizeof(double));
    for (int j = 0; j < w; j++)
        for (int i = 0; i < s; i++) {
            double v = *spsi_small_at(l->G, i, j);

            *spsi_small_at(H, i, q + j) = v;
            if (i < q) *spsi_small_at(H, q + j, i) = v;
        }
    if (l->Z->cols > 0) SPS_TRY(project_joined(l, H));
fail:
    return st;
}

/* Computes B, an orthonormal basis of V3'[0; V1] for the active columns, with
 * V3 the columns of V from `from` on; returns its rank in *rank. */
static sps_status directions_of(lobpcg *l, int m, int from,
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
static void coefficients(lobpcg *l, int from, const sps_small *V)
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

/* Turns coefficients of [Q SZ] into those of S. */
static void unjoin(const sps_small *Z, sps_small *K, double *c)
{
    int w = Z->cols, q = Z->rows - w;

    for (int j = 0; j < K->cols; j++) {
        double *k = spsi_small_at(K, 0, j);

        memcpy(c, k + q, (size_t)w * sizeof *c);
        memset(k + q, 0, (size_t)w * sizeof *c);
        for (int l = 0; l < w; l++) {
            const double *z = spsi_small_at(Z, 0, l);

            for (int i = 0; i < q + w; i++) k[i] += z[i] * c[l];
        }
    }
}

/* Sets F = [X P]'A [X P], which is block diagonal: X and the leading `kept`
 * columns of P are Ritz vectors, with block diag(theta), and the others are
 * combinations of further Ritz vectors by B, with block B'diag(theta)B. */
static sps_status project(lobpcg *l, int m, int kept, double sign)
{
    sps_status st = SPS_OK;
    int rank = l->B->cols, ritz = m + kept;
    const double *w = l->w + ritz;

    SPS_TRY(spsi_small_copy(l->B, l->N));
    for (int c = 0; c < rank; c++)
        for (int t = 0; t < l->N->rows; t++)
            *spsi_small_at(l->N, t, c) *= sign * w[t];
    SPS_TRY(spsi_small_mul(1.0, l->B, true, l->N, false, 0.0, l->G));
    spsi_small_symmetrise(l->G);
    l->p = kept + rank;
    spsi_small_shape(l->F, m + l->p, m + l->p);
    spsi_small_clear(l->F);
    for (int j = 0; j < ritz; j++) *spsi_small_at(l->F, j, j) = sign * l->w[j];
    for (int j = 0; j < rank; j++)
        memcpy(spsi_small_at(l->F, ritz, ritz + j),
               spsi_small_at(l->G, 0, j), (size_t)rank * sizeof *w);
fail:
    return st;
}

/* S becomes [X P], where P begins with the `kept` Ritz vectors after X. */
static sps_status contract(sps_eigen *e, lobpcg *l, int kept, int a)
{
    sps_status st = SPS_OK;
    int m = e->space.m, rank;

    SPS_TRY(directions_of(l, m, m + kept, e->ritz.H, a, &rank));
    coefficients(l, m + kept, e->ritz.H);
    SPS_TRY(project(l, m, kept, e->wanted.sign));
    if (l->Z->cols > 0) unjoin(l->Z, l->K, spsi_small_scratch(l->K));
    SPS_TRY(spsi_subspace_rotate(&e->space, l->K));
fail:
    return st;
}

/* S keeps all its directions: it becomes S Q, the leading columns of which are
 * X = S V1, and F becomes Q'F Q. */
static sps_status keep_all(sps_eigen *e, lobpcg *l)
{
    sps_small *U = e->ritz.H;
    sps_status st = SPS_OK;
    int m = e->space.m, s = U->rows;

    U->cols = m;
    SPS_TRY(spsi_small_reflectors(U, l->T));
    SPS_TRY(spsi_subspace_reflect(&e->space, U, l->T));
    SPS_TRY(spsi_small_reflect(U, l->T, l->F));
    spsi_small_symmetrise(l->F);
    for (int j = 0; j < m; j++) {
        for (int i = 0; i < s; i++)
            *spsi_small_at(l->F, i, j) = *spsi_small_at(l->F, j, i) = 0;
        *spsi_small_at(l->F, j, j) = e->wanted.sign * l->w[j];
    }
    l->p = s - m;
fail:
    return st;
}

/* Returns the number of Ritz vectors to keep behind X where S of `columns`
 * columns is full: half of S is free afterwards. */
static int kept(const sps_subspace *s, int columns)
{
    int most = columns / 2 - 2 * s->m;

    return spsi_lobpcg_extended(s) && most > 0 ? most / 4 * 4 : 0;
}

sps_status spsi_lobpcg_ritz(sps_eigen *e, lobpcg *l, int a)
{
    sps_status st = SPS_OK;
    int columns = e->ritz.H->rows;
    bool all = columns + e->space.m <= e->space.AS->width &&
               spsi_lobpcg_extended(&e->space);

    if (all) SPS_TRY(spsi_small_copy(e->ritz.H, l->F));
    SPS_TRY(spsi_ritz_solve(&e->ritz, &e->transform, e->ritz.H,
                            all ? e->space.m : columns, l->w,
                            &e->search.stop));
    if (e->search.stop) return st;
    if (all) SPS_TRY(keep_all(e, l));
    else SPS_TRY(contract(e, l, kept(&e->space, columns), a));
    for (int j = 0; j < e->space.m; j++)
        e->ritz.value[j] = e->wanted.sign * l->w[j];
    SPS_TRY(spsi_eigen_residuals(e));
fail:
    return st;
}
