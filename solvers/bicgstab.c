/* SPDX-License-Identifier: BSD-3-Clause */
/* bicgstab.c - BiCGStab(l) (Sleijpen and Fokkema, ETNA 1, 1993) for many
 * right-hand sides at once: shared products, scalars by column.  The
 * preconditioner is applied from the right: K = A M and X = X_0 + M Y.  Y is
 * accumulated and added to X when the driver needs X (flush).  The first update
 * of a sweep writes Y to another block, so that the previous Y is available if
 * the residual has grown.
 *
 * A step is one sweep.  BiCG, j = 0 .. l-1:
 *
 *     rho_1 = r_j't;  beta = alpha rho_1 / rho_0;  rho_0 = rho_1;
 *     u_i = r_i - beta u_i, i <= j;   u_(j+1) = K u_j;
 *     alpha = rho_0 / u_(j+1)'t;      Y += alpha u_0;
 *     r_i -= alpha u_(i+1), i <= j;   r_(j+1) = K r_j;
 *
 * then r_0 -= sum_j g_j r_j and rho_0 = -g_l rho_0.  The g would minimise
 * ||r_0||, but the cosine that is a factor of g_l is raised to 0.7 in magnitude
 * where it is smaller, which keeps rho_0 away from zero (Sleijpen and van der
 * Vorst, Numer. Algorithms 10, 1995; Fokkema's form with the Gram matrix of
 * the r_j).
 *
 * A column whose rho or u't is at rounding level is frozen until the next
 * start, which uses a random shadow vector t.  With l = 2 a sweep reads or
 * writes a block 66 times: 8 in 4 SpMM (which also read A 4 times), 8 in 4
 * applications of M, 14 in dots and 36 in updates. */
#include <float.h>
#include <math.h>

#include "solvers/rearrange.h"
#include "core/timer.h"

#define L_MAX 8

struct bicgstab {
    sps_basis *R;           /* r_0 .. r_l */
    sps_basis *U;           /* l + 3 blocks: blocks 0 and 2 are Y and the
                               previous Y (see `Y`), block 1 is u_0, blocks 3 ..
                               l + 2 are u_1 .. u_l */
    sps_small *H, *C;       /* (l + 1) x k */
    double *rho, *alpha, *gamma, *length, *shadow;   /* k elements each, as the
                                                        arrays below */
    double *one, *times;
    double *Z;              /* Gram matrices of the k columns, (l + 1) x (l + 1)
                               each */
    bool *broken;           /* column is frozen */
    int Y;                  /* index of the current Y: 0 or 2 */
    int l, breakdowns;
    bool pending;
};

/* Work blocks: 0 is scratch for M, 1 belongs to the driver, 2 holds the shadow
 * vectors t. */
enum { ROOM, DRIVER, SHADOW };

static void view_u(const struct bicgstab *m, int j, sps_block *u)
{
    spsi_basis_block(m->U, j ? j + 2 : 1, u);
}

static sps_status setup(sps_linear *s, void *method)
{
    struct bicgstab *m = method;
    sps_status st = SPS_OK;
    int k = s->columns, l = s->opt.bicgstab_l;
    double **const all[] = { &m->rho, &m->alpha, &m->gamma, &m->length,
                             &m->shadow, &m->one, &m->times, NULL };
    sps_owner *own = &s->made.own;

    m->l = l;
    SPS_TRY(spsi_own_basis(own, s->n, k, l + 1, SPS_F64, &m->R));
    SPS_TRY(spsi_own_basis(own, s->n, k, l + 3, SPS_F64, &m->U));
    SPS_TRY(spsi_own_small(own, l + 1, k, &m->H));
    SPS_TRY(spsi_own_small(own, l + 1, k, &m->C));
    SPS_TRY(spsi_own_numbers(own, k, all));
    SPS_TRY(SPS_OWN(own, (int64_t)k * (l + 1) * (l + 1), &m->Z));
    SPS_TRY(SPS_OWN(own, k, &m->broken));
    for (int c = 0; c < k; c++) m->one[c] = 1;
fail:
    return st;
}

/* Chooses the shadow vectors: t = R, or a random t after a breakdown. */
static sps_status choose_shadow(sps_linear *s, struct bicgstab *m)
{
    sps_status st = SPS_OK;

    if (s->course.iteration == 0) m->breakdowns = 0;
    if (m->breakdowns == 0)
        SPS_TRY(spsi_copy(&s->R, s->work[SHADOW]));
    else
        SPS_TRY(sps_block_random(s->work[SHADOW], (uint64_t)m->breakdowns));
    SPS_TRY(spsi_norms(s->work[SHADOW], m->shadow));
fail:
    return st;
}

static void narrow(sps_linear *s, struct bicgstab *m)
{
    for (int i = 0; i < 3; i++) spsi_block_narrow(s->work[i], s->k);
    spsi_basis_narrow(m->R, s->k);
    spsi_basis_narrow(m->U, s->k);
}

static sps_status start(sps_linear *s, void *method)
{
    struct bicgstab *m = method;
    sps_status st = SPS_OK;
    sps_block r, u, y;

    narrow(s, m);
    SPS_TRY(choose_shadow(s, m));
    m->Y = 0;
    spsi_basis_block(m->R, 0, &r);
    spsi_basis_block(m->U, m->Y, &y);
    view_u(m, 0, &u);
    SPS_TRY(spsi_copy(&s->R, &r));
    SPS_TRY(spsi_fill(&u, 0.0));
    SPS_TRY(spsi_fill(&y, 0.0));
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

/* value_c = x_c't_c, with the shadow vector t_c of column c; columns in which
 * this product is at rounding level are marked as broken. */
static sps_status shadow_dots(sps_linear *s, struct bicgstab *m,
                              const sps_block *x, double *value)
{
    sps_status st = SPS_OK;

    SPS_TRY(spsi_dots(x, s->work[SHADOW], value));
    SPS_TRY(spsi_dots(x, x, m->length));
    for (int c = 0; c < s->k; c++) {
        double least = 4 * DBL_EPSILON * sqrt(m->length[c]) * m->shadow[c];

        if (!isfinite(value[c]) && !s->at.done[c])
            s->stop = SPS_STOP_NOT_FINITE;
        if (!(fabs(value[c]) > least)) m->broken[c] = true;
    }
fail:
    return st;
}

/* u_i = r_i - beta u_i. */
static sps_status redirect(sps_linear *s, struct bicgstab *m, int j)
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
        view_u(m, i, &u);
        SPS_TRY(spsi_axpby_cols(m->one, &r, m->times, &u));
    }
fail:
    return st;
}

/* Y += alpha u_0.  The first update of a sweep writes the sum to the other one
 * of blocks 0 and 2 of U, so that the old Y is preserved.  Y and u_0 (block 1)
 * are adjacent and form a basis of two blocks. */
static sps_status add_to_Y(sps_linear *s, struct bicgstab *m, bool first)
{
    const int begin = m->Y ? 1 : 0;
    sps_status st = SPS_OK;
    sps_block all, u, y;
    sps_basis pair;

    if (first) {
        spsi_small_shape(m->H, 2, s->k);
        for (int c = 0; c < s->k; c++) {
            *spsi_small_at(m->H, m->Y ? 1 : 0, c) = 1;
            *spsi_small_at(m->H, m->Y ? 0 : 1, c) = m->alpha[c];
        }
        spsi_basis_view(m->U, begin, &all, &pair);
        m->Y = 2 - m->Y;
        spsi_basis_block(m->U, m->Y, &y);
        return spsi_basis_update(1.0, &pair, 2, m->H, false, &y, NULL);
    }
    spsi_basis_block(m->U, m->Y, &y);
    view_u(m, 0, &u);
    SPS_TRY(spsi_axpby_cols(m->alpha, &u, m->one, &y));
fail:
    return st;
}

/* r_i -= alpha u_(i+1), Y += alpha u_0. */
static sps_status advance(sps_linear *s, struct bicgstab *m, int j)
{
    sps_status st = SPS_OK;
    sps_block r, u;

    view_u(m, j + 1, &u);
    SPS_TRY(shadow_dots(s, m, &u, m->gamma));
    if (s->stop) return st;
    for (int c = 0; c < s->k; c++) {
        m->alpha[c] = m->broken[c] ? 0 : m->rho[c] / m->gamma[c];
        if (!isfinite(m->alpha[c])) m->alpha[c] = 0, m->broken[c] = true;
        m->times[c] = -m->alpha[c];
    }
    for (int i = 0; i <= j; i++) {
        spsi_basis_block(m->R, i, &r);
        view_u(m, i + 1, &u);
        SPS_TRY(spsi_axpby_cols(m->times, &u, m->one, &r));
    }
    SPS_TRY(add_to_Y(s, m, j == 0));
    m->pending = true;
fail:
    return st;
}

/* --- stabilising polynomial */

static sps_status gram(sps_linear *s, struct bicgstab *m)
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

/* Returns a'Z b over indices 0 .. l. */
static double form(int l, const double *Z, const double *a, const double *b)
{
    double sum = 0;

    for (int i = 0; i <= l; i++)
        for (int j = 0; j <= l; j++) sum += a[i] * Z[i * (l + 1) + j] * b[j];
    return sum;
}

/* Solves sum_j Z_ij y_j = Z_(i, right), 0 < i, j < l, by Cholesky; y_i = 0 for
 * a dependent direction. */
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

/* Computes y = (g_0 .. g_l) of one column, with g_0 = -1: r_0 becomes -sum_j
 * y_j r_j. */
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

/* length: the residual norms at the end of the sweep.  If they have grown so
 * much that the driver must store the best iterate, it stores that of the
 * beginning of the sweep, X + M Y with the previous Y. */
static sps_status store_best(sps_linear *s, struct bicgstab *m)
{
    sps_block before, *room = s->work[ROOM];
    const sps_block *z;
    sps_status st = SPS_OK;

    for (int c = 0; c < s->k; c++)
        if (!isfinite(m->length[c])) s->stop = SPS_STOP_NOT_FINITE;
    if (s->stop) return st;
    if (spsi_best_due(s, m->length)) {
        spsi_basis_block(m->U, 2 - m->Y, &before);
        SPS_TRY(spsi_linear_direction(s, &before, room, &z));
        if (z != room) SPS_TRY(spsi_copy(z, room));
        SPS_TRY(spsi_axpby(1.0, &s->X, 1.0, room));
        SPS_TRY(spsi_best_store(s, room));
    }
    spsi_best_record(s, m->length);
fail:
    return st;
}

/* C(j, c) = g_(j+1) of column c;
 *     Y += sum_(j < l) g_(j+1) r_j;
 *     u_0 -= sum_(j >= 1) g_j u_j;  r_0 -= sum_(j >= 1) g_j r_j. */
static sps_status stabilise(sps_linear *s, struct bicgstab *m)
{
    int l = m->l, size = (l + 1) * (l + 1);
    sps_basis rest;
    sps_block all, first, y;
    sps_status st = SPS_OK;

    SPS_TRY(gram(s, m));
    spsi_small_shape(m->C, l, s->k);
    for (int c = 0; c < s->k; c++) {
        double y[L_MAX + 1] = {0};

        if (!isfinite(m->Z[c * size + size - 1]) && !s->at.done[c])
            s->stop = SPS_STOP_NOT_FINITE;
        if (!m->broken[c] && !s->stop) coefficients(l, m->Z + c * size, y);
        for (int j = 0; j < l; j++) *spsi_small_at(m->C, j, c) = y[j + 1];
        m->rho[c] *= -y[l];
        m->broken[c] = m->broken[c] || m->rho[c] == 0;
    }
    if (s->stop) return st;
    spsi_basis_block(m->U, m->Y, &y);
    SPS_TRY(spsi_basis_update(1.0, m->R, l, m->C, true, &y, NULL));
    view_u(m, 0, &first);
    spsi_basis_view(m->U, 3, &all, &rest);
    SPS_TRY(spsi_basis_update(-1.0, &rest, l, m->C, true, &first, NULL));
    spsi_basis_block(m->R, 0, &first);
    spsi_basis_view(m->R, 1, &all, &rest);
    SPS_TRY(spsi_basis_update(-1.0, &rest, l, m->C, true, &first, m->length));
    for (int c = 0; c < s->k; c++) m->length[c] = sqrt(m->length[c]);
    SPS_TRY(store_best(s, m));
fail:
    return st;
}

/* If all open columns are frozen, the method starts again with random shadow
 * vectors.  The fourth time that this happens with a column above its
 * threshold, it stops with SPS_STOP_BREAKDOWN. */
static void finish_step(sps_linear *s, struct bicgstab *m)
{
    if (spsi_linear_frozen(s, m->broken) && ++m->breakdowns > 3)
        s->stop = SPS_STOP_BREAKDOWN;
}

static sps_status sweep(sps_linear *s, struct bicgstab *m)
{
    sps_status st = SPS_OK;
    sps_block from, to;

    for (int j = 0; j < m->l && !s->stop; j++) {
        SPS_TRY(redirect(s, m, j));
        if (s->stop) break;
        view_u(m, j, &from);
        view_u(m, j + 1, &to);
        SPS_TRY(spsi_linear_multiply(s, &from, s->work[ROOM], &to));
        SPS_TRY(advance(s, m, j));
        if (s->stop) break;
        spsi_basis_block(m->R, j, &from);
        spsi_basis_block(m->R, j + 1, &to);
        SPS_TRY(spsi_linear_multiply(s, &from, s->work[ROOM], &to));
    }
    if (!s->stop) SPS_TRY(stabilise(s, m));
fail:
    return st;
}

static sps_status step(sps_linear *s, void *method)
{
    struct bicgstab *m = method;
    const int Y = m->Y;
    sps_status st;

    st = sweep(s, m);
    if (st != SPS_OK || s->stop) m->Y = Y;   /* undo the sweep */
    else finish_step(s, m);
    return st;
}

/* X += M Y. */
static sps_status flush(sps_linear *s, void *method)
{
    struct bicgstab *m = method;
    sps_block y;
    sps_status st = SPS_OK;

    if (!m->pending) return SPS_OK;
    m->pending = false;
    spsi_basis_block(m->U, m->Y, &y);
    SPS_TRY(spsi_linear_add(s, &y, s->work[ROOM]));
    SPS_TRY(spsi_fill(&y, 0.0));
fail:
    return st;
}

static sps_status permute(sps_linear *s, void *method, const int *from,
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

SPS_DEFINE(sps_linear_type, spsi_solver_bicgstab) = {
    .name = "bicgstab",
    .size = sizeof(struct bicgstab),
    .blocks = 3,
    .setup = setup,
    .start = start,
    .step = step,
    .permute = permute,
    .flush = flush,
};
