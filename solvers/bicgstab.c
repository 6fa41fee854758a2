/* SPDX-License-Identifier: BSD-3-Clause */
/* bicgstab.c - BiCGStab(l) (Sleijpen and Fokkema, ETNA 1, 1993) for many
 * right-hand sides side by side: shared products, own scalars for each column.
 * Right preconditioning, K = A M and X = X_0 + M Y; Y is kept and X follows
 * when somebody looks (flush).
 *
 * A step is one sweep.  BiCG, j = 0 .. l-1:
 *
 *     rho_1 = r_j't;  beta = alpha rho_1 / rho_0;  rho_0 = rho_1;
 *     u_i = r_i - beta u_i, i <= j;   u_(j+1) = K u_j;
 *     alpha = rho_0 / u_(j+1)'t;      Y += alpha u_0;
 *     r_i -= alpha u_(i+1), i <= j;   r_(j+1) = K r_j;
 *
 * then r_0 -= sum_j g_j r_j with g near the smallest residual, but of at least
 * 0.7 of its own weight at the end, which keeps rho_0 = -g_l rho_0 away from
 * zero (Sleijpen and van der Vorst, Numer. Algorithms 10, 1995; Fokkema's form
 * with the Gram matrix of the r_j).
 *
 * A column whose rho or u't is rounding stands still until the next start, and
 * that takes a random t.  Block reads and writes of a sweep, l = 2: 4 SpMM (8
 * and 4 A), 4 M (8), dots 14, updates 36. */
#include <float.h>
#include <math.h>

#include "rearrange.h"
#include "timer.h"

#define L_MAX 8

struct bicgstab {
    sps_basis *R, *U;       /* l + 1 blocks each */
    sps_small *H, *C;       /* (l + 1) x k */
    double *rho, *alpha, *gamma, *length, *shadow;   /* k each */
    double *one, *times;    /* k each */
    double *Z;              /* k Gram matrices (l + 1) x (l + 1) */
    bool *broken;           /* k */
    int l, breakdowns;
    bool pending;
};

/* Work blocks: 0 room for M, 1 the driver's, 2 the shadow t, 3 Y. */
enum { ROOM, DRIVER, SHADOW, Y };

static sps_status setup(sps_solver *s, void *method)
{
    struct bicgstab *m = method;
    sps_status st = SPS_OK;
    int k = s->columns, l = s->opt.bicgstab_l;
    double **all[] = { &m->rho, &m->alpha, &m->gamma, &m->length, &m->shadow,
                       &m->one, &m->times };

    m->l = l;
    SPS_TRY(spsi_basis_create(s->ctx, s->n, k, l + 1, SPS_F64, &m->R));
    SPS_TRY(spsi_basis_create(s->ctx, s->n, k, l + 1, SPS_F64, &m->U));
    SPS_TRY(spsi_small_create(s->ctx, l + 1, k, &m->H));
    SPS_TRY(spsi_small_create(s->ctx, l + 1, k, &m->C));
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        SPS_TRY(SPS_NEW(s->ctx, k, all[i]));
    SPS_TRY(SPS_NEW(s->ctx, (int64_t)k * (l + 1) * (l + 1), &m->Z));
    SPS_TRY(SPS_NEW(s->ctx, k, &m->broken));
    for (int c = 0; c < k; c++) m->one[c] = 1;
fail:
    return st;
}

/* The shadow is R; after a breakdown it is random. */
static sps_status choose_shadow(sps_solver *s, struct bicgstab *m)
{
    sps_status st = SPS_OK;

    if (s->iteration == 0) m->breakdowns = 0;
    if (m->breakdowns == 0)
        SPS_TRY(spsi_copy(&s->R, s->work[SHADOW]));
    else
        SPS_TRY(sps_block_random(s->work[SHADOW], (uint64_t)m->breakdowns));
    SPS_TRY(spsi_norms(s->work[SHADOW], m->shadow));
fail:
    return st;
}

static void narrow(sps_solver *s, struct bicgstab *m)
{
    for (int i = 0; i < 4; i++) spsi_block_narrow(s->work[i], s->k);
    spsi_basis_narrow(m->R, s->k);
    spsi_basis_narrow(m->U, s->k);
}

static sps_status start(sps_solver *s, void *method)
{
    struct bicgstab *m = method;
    sps_status st = SPS_OK;
    sps_block r, u;

    narrow(s, m);
    SPS_TRY(choose_shadow(s, m));
    spsi_basis_block(m->R, 0, &r);
    spsi_basis_block(m->U, 0, &u);
    SPS_TRY(spsi_copy(&s->R, &r));
    SPS_TRY(spsi_fill(&u, 0.0));
    SPS_TRY(spsi_fill(s->work[Y], 0.0));
    for (int c = 0; c < s->columns; c++) {
        m->rho[c] = 1;
        m->alpha[c] = 0;
        m->broken[c] = false;
    }
    m->pending = false;
    s->width = s->k;
fail:
    return st;
}

/* W = A M V. */
static sps_status multiply(sps_solver *s, const sps_block *V, sps_block *W)
{
    const sps_block *z;
    sps_status st = SPS_OK;

    SPS_TRY(spsi_solver_direction(s, V, s->work[ROOM], &z));
    SPS_TRY(spsi_solver_apply(s, z, W));
fail:
    return st;
}

/* value = x't; whether more than rounding is left of it in each column. */
static sps_status shadow_dots(sps_solver *s, struct bicgstab *m,
                              const sps_block *x, double *value)
{
    sps_status st = SPS_OK;

    SPS_TRY(spsi_dots(x, s->work[SHADOW], value));
    SPS_TRY(spsi_dots(x, x, m->length));
    for (int c = 0; c < s->k; c++) {
        double least = 4 * DBL_EPSILON * sqrt(m->length[c]) * m->shadow[c];

        if (!isfinite(value[c]) && !s->done[c]) s->stop = SPS_STOP_NOT_FINITE;
        if (!(fabs(value[c]) > least)) m->broken[c] = true;
    }
fail:
    return st;
}

/* u_i = r_i - beta u_i. */
static sps_status redirect(sps_solver *s, struct bicgstab *m, int j)
{
    sps_status st = SPS_OK;
    sps_block r, u;

    spsi_basis_block(m->R, j, &r);
    SPS_TRY(shadow_dots(s, m, &r, m->gamma));
    if (s->stop) return st;
    for (int c = 0; c < s->k; c++) {
        double beta = m->alpha[c] * m->gamma[c] / m->rho[c];

        if (!isfinite(beta)) m->broken[c] = true;
        m->times[c] = m->broken[c] ? 0 : -beta;
        m->rho[c] = m->gamma[c];
    }
    for (int i = 0; i <= j; i++) {
        spsi_basis_block(m->R, i, &r);
        spsi_basis_block(m->U, i, &u);
        SPS_TRY(spsi_axpby_cols(m->one, &r, m->times, &u));
    }
fail:
    return st;
}

/* r_i -= alpha u_(i+1), Y += alpha u_0. */
static sps_status advance(sps_solver *s, struct bicgstab *m, int j)
{
    sps_status st = SPS_OK;
    sps_block r, u;

    spsi_basis_block(m->U, j + 1, &u);
    SPS_TRY(shadow_dots(s, m, &u, m->gamma));
    if (s->stop) return st;
    for (int c = 0; c < s->k; c++) {
        m->alpha[c] = m->broken[c] ? 0 : m->rho[c] / m->gamma[c];
        if (!isfinite(m->alpha[c])) m->alpha[c] = 0, m->broken[c] = true;
        m->times[c] = -m->alpha[c];
    }
    for (int i = 0; i <= j; i++) {
        spsi_basis_block(m->R, i, &r);
        spsi_basis_block(m->U, i + 1, &u);
        SPS_TRY(spsi_axpby_cols(m->times, &u, m->one, &r));
    }
    spsi_basis_block(m->U, 0, &u);
    SPS_TRY(spsi_axpby_cols(m->alpha, &u, m->one, s->work[Y]));
    m->pending = true;
fail:
    return st;
}

/* --- the polynomial */

static sps_status gram(sps_solver *s, struct bicgstab *m)
{
    int size = m->l + 1;
    sps_status st = SPS_OK;
    sps_block r;

    for (int j = 0; j < size; j++) {
        spsi_basis_block(m->R, j, &r);
        SPS_TRY(spsi_basis_dots(m->R, j + 1, &r, m->H));
        for (int c = 0; c < s->k; c++)
            for (int i = 0; i <= j; i++) {
                double *Z = m->Z + c * size * size;

                Z[i * size + j] = Z[j * size + i] = *spsi_small_at(m->H, i, c);
            }
    }
fail:
    return st;
}

/* a'Z b over numbers 0 .. l. */
static double form(int l, const double *Z, const double *a, const double *b)
{
    double sum = 0;

    for (int i = 0; i <= l; i++)
        for (int j = 0; j <= l; j++) sum += a[i] * Z[i * (l + 1) + j] * b[j];
    return sum;
}

/* y_i, 0 < i < l, with Z y orthogonal to these numbers of Z e_right: by
 * Cholesky; what depends on the others gets 0. */
static void project(int l, const double *Z, int right, double *y)
{
    double F[L_MAX][L_MAX] = {{0}};

    for (int i = 1; i < l; i++) {
        for (int j = 1; j <= i; j++) {
            double sum = Z[i * (l + 1) + j];

            for (int p = 1; p < j; p++) sum -= F[i][p] * F[j][p];
            if (j < i)
                F[i][j] = F[j][j] > 0 ? sum / F[j][j] : 0;
            else
                F[i][i] = sum > 1e-15 * Z[i * (l + 1) + i] ? sqrt(sum) : 0;
        }
        y[i] = Z[i * (l + 1) + right];
        for (int p = 1; p < i; p++) y[i] -= F[i][p] * y[p];
        y[i] = F[i][i] > 0 ? y[i] / F[i][i] : 0;
    }
    for (int i = l - 1; i > 0; i--) {
        for (int p = i + 1; p < l; p++) y[i] -= F[p][i] * y[p];
        y[i] = F[i][i] > 0 ? y[i] / F[i][i] : 0;
    }
}

/* y = g_0 .. g_l of one column, g_0 = -1: r_0 becomes -sum_j y_j r_j. */
static void coefficients(int l, const double *Z, double *y)
{
    double low[L_MAX + 1], k0, kl, rho = 0;

    y[0] = -1;
    y[l] = 0;
    low[0] = 0;
    low[l] = -1;
    project(l, Z, 0, y);
    project(l, Z, l, low);
    k0 = sqrt(fmax(0, form(l, Z, y, y)));
    kl = sqrt(fmax(0, form(l, Z, low, low)));
    if (!(k0 > 0) || !(kl > 0)) return;
    rho = form(l, Z, low, y) / k0 / kl;
    rho = rho < 0 ? -fmax(-rho, 0.7) : fmax(rho, 0.7);
    for (int i = 1; i <= l; i++) y[i] -= rho * k0 / kl * low[i];
}

/* C(j, c) gets g_(j+1) of column c; Y += sum g_(j+1) r_j, u_0 and r_0 lose
 * sum g_j u_j and sum g_j r_j. */
static sps_status stabilise(sps_solver *s, struct bicgstab *m)
{
    int l = m->l, size = (l + 1) * (l + 1);
    sps_basis rest;
    sps_block all, first;
    sps_status st = SPS_OK;

    SPS_TRY(gram(s, m));
    spsi_small_shape(m->C, l, s->k);
    for (int c = 0; c < s->k; c++) {
        double y[L_MAX + 1] = {0};

        if (!isfinite(m->Z[c * size + size - 1]) && !s->done[c])
            s->stop = SPS_STOP_NOT_FINITE;
        if (!m->broken[c] && !s->stop) coefficients(l, m->Z + c * size, y);
        for (int j = 0; j < l; j++) *spsi_small_at(m->C, j, c) = y[j + 1];
        m->rho[c] *= -y[l];
        m->broken[c] = m->broken[c] || m->rho[c] == 0;
    }
    if (s->stop) return st;
    SPS_TRY(spsi_basis_update(1.0, m->R, l, m->C, true, s->work[Y], NULL));
    spsi_basis_block(m->U, 0, &first);
    spsi_basis_view(m->U, 1, &all, &rest);
    SPS_TRY(spsi_basis_update(-1.0, &rest, l, m->C, true, &first, NULL));
    spsi_basis_block(m->R, 0, &first);
    spsi_basis_view(m->R, 1, &all, &rest);
    SPS_TRY(spsi_basis_update(-1.0, &rest, l, m->C, true, &first, m->length));
    for (int c = 0; c < s->k; c++) s->resnorm[c] = sqrt(m->length[c]);
fail:
    return st;
}

/* No open column can go on: start again, with another shadow, a few times. */
static void look_round(sps_solver *s, struct bicgstab *m)
{
    bool stuck = false;

    s->width = 0;
    for (int c = 0; c < s->k; c++) {
        if (s->done[c]) continue;
        s->width += !m->broken[c];
        if (s->resnorm[c] > s->threshold[s->column[c]]) stuck = true;
    }
    if (s->width) return;
    s->renew = true;
    if (stuck && ++m->breakdowns > 3) s->stop = SPS_STOP_BREAKDOWN;
}

static sps_status sweep(sps_solver *s, struct bicgstab *m)
{
    sps_status st = SPS_OK;
    sps_block from, to;

    for (int j = 0; j < m->l && !s->stop; j++) {
        SPS_TRY(redirect(s, m, j));
        if (s->stop) break;
        spsi_basis_block(m->U, j, &from);
        spsi_basis_block(m->U, j + 1, &to);
        SPS_TRY(multiply(s, &from, &to));
        SPS_TRY(advance(s, m, j));
        if (s->stop) break;
        spsi_basis_block(m->R, j, &from);
        spsi_basis_block(m->R, j + 1, &to);
        SPS_TRY(multiply(s, &from, &to));
    }
    if (!s->stop) SPS_TRY(stabilise(s, m));
fail:
    return st;
}

static sps_status step(sps_solver *s, void *method)
{
    struct bicgstab *m = method;
    sps_status st;

    st = sweep(s, m);
    if (st == SPS_OK && !s->stop) look_round(s, m);
    return st;
}

/* X += M Y. */
static sps_status flush(sps_solver *s, void *method)
{
    struct bicgstab *m = method;
    const sps_block *z;
    sps_status st = SPS_OK;

    if (!m->pending) return SPS_OK;
    m->pending = false;
    SPS_TRY(spsi_solver_direction(s, s->work[Y], s->work[ROOM], &z));
    SPS_TRY(spsi_axpby(1.0, z, 1.0, &s->X));
    SPS_TRY(spsi_fill(s->work[Y], 0.0));
fail:
    return st;
}

static sps_status permute(sps_solver *s, void *method, const int *from,
                          int count)
{
    struct bicgstab *m = method;
    sps_block *room = s->work[ROOM];
    sps_status st = SPS_OK;

    spsi_block_narrow(room, count);
    SPS_TRY(spsi_rearrange_basis(m->R, from, room));
    SPS_TRY(spsi_rearrange_basis(m->U, from, room));
    SPS_TRY(spsi_rearrange_block(s->work[SHADOW], from, room));
    spsi_rearrange_numbers(m->rho, from, count, m->times);
    spsi_rearrange_numbers(m->alpha, from, count, m->times);
    spsi_rearrange_numbers(m->shadow, from, count, m->times);
    for (int p = 0; p < count; p++) m->times[p] = m->broken[from[p]];
    for (int p = 0; p < count; p++) m->broken[p] = m->times[p] != 0;
    narrow(s, m);
fail:
    return st;
}

static void destroy(sps_solver *s, void *method)
{
    struct bicgstab *m = method;
    double *all[] = { m->rho, m->alpha, m->gamma, m->length, m->shadow, m->one,
                      m->times, m->Z };

    spsi_basis_destroy(&m->R);
    spsi_basis_destroy(&m->U);
    spsi_small_destroy(&m->H);
    spsi_small_destroy(&m->C);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        spsi_free(s->ctx, all[i]);
    spsi_free(s->ctx, m->broken);
}

SPS_DEFINE(sps_solver_type, spsi_solver_bicgstab) = {
    .name = "bicgstab",
    .size = sizeof(struct bicgstab),
    .blocks = 4,
    .setup = setup,
    .start = start,
    .step = step,
    .permute = permute,
    .flush = flush,
    .destroy = destroy,
};
