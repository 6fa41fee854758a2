/* SPDX-License-Identifier: BSD-3-Clause */
/* idr.c - IDR(s) with bi-orthogonal vectors (van Gijzen and Sonneveld, ACM
 * TOMS 38(1), 2011) for many right-hand sides side by side: shared products,
 * own scalars for each column, right preconditioning.
 *
 * The residual is forced into spaces of shrinking dimension, s at a time, with
 * s random shadow vectors P, vectors G = A U and the lower triangle M = P'G.
 * Step j = 0 .. s-1 of a cycle, f = P'r:
 *
 *     M c = f (from j on);  v = r - sum c_i g_i;
 *     u_j = omega M^-1 v + sum c_i u_i;  g_j = A u_j;
 *     g_j, u_j lose their parts along p_0 .. p_(j-1);
 *     beta = f_j / m_jj;  r -= beta g_j;  x += beta u_j;
 *
 * and step s: v = M^-1 r, t = A v, omega = t'r / t't, enlarged where t and r
 * are far from parallel (Sleijpen and van der Vorst, 1995), r -= omega t,
 * x += omega v.  X and R are true after each step, which is one product.
 *
 * Block reads and writes of a cycle, s = 4: 5 SpMM (10 and 5 A), 5 M (10),
 * the rest about 100. */
#include "rearrange.h"

#include <float.h>
#include <math.h>

#include "timer.h"

#define KAPPA 0.7

struct idr {
    sps_basis *P, *G, *U;   /* s blocks each */
    sps_small *f, *c;       /* s x k */
    double *M;              /* k lower triangles s x s, by rows */
    double *omega, *a, *b, *norm2;   /* k each */
    bool *broken;           /* k */
    int s, j, breakdowns;
};

/* Work blocks: 0 v and room, 1 the driver's and t, 2 room for M^-1. */
enum { V, T, ROOM };

static sps_status setup(sps_solver *s, void *method)
{
    struct idr *m = method;
    sps_status st = SPS_OK;
    int k = s->columns;
    double **all[] = { &m->omega, &m->a, &m->b, &m->norm2 };
    sps_basis **stacks[] = { &m->P, &m->G, &m->U };

    m->s = s->n < s->opt.idr_s ? (int)s->n : s->opt.idr_s;
    if (m->s < 1) m->s = 1;
    for (int i = 0; i < 3; i++)
        SPS_TRY(spsi_basis_create(s->ctx, s->n, k, m->s, SPS_F64,
                                  stacks[i]));
    SPS_TRY(spsi_small_create(s->ctx, m->s, k, &m->f));
    SPS_TRY(spsi_small_create(s->ctx, m->s, k, &m->c));
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        SPS_TRY(SPS_NEW(s->ctx, k, all[i]));
    SPS_TRY(SPS_NEW(s->ctx, (int64_t)k * m->s * m->s, &m->M));
    SPS_TRY(SPS_NEW(s->ctx, k, &m->broken));
fail:
    return st;
}

static double *triangle(const struct idr *m, int c, int i, int j)
{
    return &m->M[(c * m->s + i) * m->s + j];
}

static void narrow(sps_solver *s, struct idr *m)
{
    for (int i = 0; i < 3; i++) spsi_block_narrow(s->work[i], s->k);
    spsi_basis_narrow(m->P, s->k);
    spsi_basis_narrow(m->G, s->k);
    spsi_basis_narrow(m->U, s->k);
}

/* New shadow vectors at every start, so that a breakdown does not repeat. */
static sps_status start(sps_solver *s, void *method)
{
    struct idr *m = method;
    sps_status st = SPS_OK;
    sps_block p;

    narrow(s, m);
    if (s->iteration == 0) m->breakdowns = 0;
    for (int i = 0; i < m->s; i++) {
        spsi_basis_block(m->P, i, &p);
        SPS_TRY(sps_block_random(&p, (uint64_t)(1 + i + m->s *
                                                m->breakdowns)));
    }
    SPS_TRY(spsi_fill(m->G->all, 0.0));
    SPS_TRY(spsi_fill(m->U->all, 0.0));
    for (int c = 0; c < s->k; c++) {
        for (int i = 0; i < m->s; i++)
            for (int j = 0; j < m->s; j++) *triangle(m, c, i, j) = i == j;
        m->omega[c] = 1;
        m->broken[c] = false;
    }
    m->j = 0;
    s->width = s->k;
fail:
    return st;
}

/* W = M^-1 V, in its own memory: it is changed afterwards. */
static sps_status precondition(sps_solver *s, const sps_block *X, sps_block *W)
{
    const sps_block *z;
    sps_status st = SPS_OK;

    SPS_TRY(spsi_solver_direction(s, X, W, &z));
    if (z != W) SPS_TRY(spsi_copy(z, W));
fail:
    return st;
}

/* --- steps 0 .. s-1 */

/* c = M^-1 f from row j on, 0 before. */
static void solve_triangle(struct idr *m, int columns)
{
    spsi_small_shape(m->c, m->s, columns);
    spsi_small_clear(m->c);
    for (int c = 0; c < columns; c++) {
        const double *f = spsi_small_at(m->f, 0, c);
        double *x = spsi_small_at(m->c, 0, c);

        for (int i = m->j; i < m->s; i++) {
            x[i] = f[i];
            for (int l = m->j; l < i; l++) x[i] -= *triangle(m, c, i, l) * x[l];
            x[i] /= *triangle(m, c, i, i);
            if (!isfinite(x[i])) m->broken[c] = true;
        }
        for (int i = 0; i < m->s && m->broken[c]; i++) x[i] = 0;
    }
}

/* u_j = omega M^-1 (r - G c) + U c. */
static sps_status direct(sps_solver *s, struct idr *m, sps_block *u)
{
    sps_block *v = s->work[V], *room = s->work[ROOM];
    sps_status st = SPS_OK;

    solve_triangle(m, s->k);
    SPS_TRY(spsi_copy(&s->R, v));
    SPS_TRY(spsi_basis_update(-1.0, m->G, m->s, m->c, true, v, NULL));
    SPS_TRY(precondition(s, v, room));
    SPS_TRY(spsi_axpby_cols(m->omega, room, NULL, room));
    SPS_TRY(spsi_basis_update(1.0, m->U, m->s, m->c, true, room, NULL));
    SPS_TRY(spsi_copy(room, u));
fail:
    return st;
}

/* From P'g, in c: the coefficients along g_0 .. g_(j-1), one after another, and
 * column j of M. */
static void biorthogonalise(struct idr *m, int columns)
{
    for (int c = 0; c < columns; c++) {
        double *d = spsi_small_at(m->c, 0, c);

        for (int i = 0; i < m->j; i++) {
            d[i] /= *triangle(m, c, i, i);
            for (int l = i + 1; l < m->s; l++)
                d[l] -= d[i] * *triangle(m, c, l, i);
        }
        for (int l = m->j; l < m->s; l++) {
            *triangle(m, c, l, m->j) = d[l];
            d[l] = 0;
        }
        for (int i = 0; i < m->j && m->broken[c]; i++) d[i] = 0;
    }
}

/* beta, and what f becomes; a pivot that is rounding ends the column. */
static void lengths(sps_solver *s, struct idr *m)
{
    for (int c = 0; c < s->k; c++) {
        double *f = spsi_small_at(m->f, 0, c);
        double pivot = *triangle(m, c, m->j, m->j), beta = f[m->j] / pivot;

        if (!isfinite(pivot) && !s->done[c]) s->stop = SPS_STOP_NOT_FINITE;
        if (!isfinite(beta)) m->broken[c] = true;
        if (m->broken[c]) beta = 0;
        m->a[c] = beta;
        for (int l = m->j + 1; l < m->s; l++)
            f[l] -= beta * *triangle(m, c, l, m->j);
    }
}

static sps_status inner(sps_solver *s, struct idr *m)
{
    sps_block g, u;
    sps_status st = SPS_OK;

    spsi_basis_block(m->G, m->j, &g);
    spsi_basis_block(m->U, m->j, &u);
    if (m->j == 0) SPS_TRY(spsi_basis_dots(m->P, m->s, &s->R, m->f));
    SPS_TRY(direct(s, m, &u));
    SPS_TRY(spsi_solver_apply(s, &u, &g));
    SPS_TRY(spsi_basis_dots(m->P, m->s, &g, m->c));
    biorthogonalise(m, s->k);
    lengths(s, m);
    if (s->stop) return st;
    if (m->j) {
        SPS_TRY(spsi_basis_update(-1.0, m->G, m->j, m->c, true, &g, NULL));
        SPS_TRY(spsi_basis_update(-1.0, m->U, m->j, m->c, true, &u, NULL));
    }
    SPS_TRY(spsi_update_pair_cols(&u, &g, m->a, &s->X, &s->R, m->norm2));
fail:
    return st;
}

/* --- step s */

static sps_status outer(sps_solver *s, struct idr *m)
{
    sps_block *v = s->work[ROOM], *t = s->work[T];
    sps_status st = SPS_OK;

    spsi_block_narrow(t, s->k);
    SPS_TRY(precondition(s, &s->R, v));
    SPS_TRY(spsi_solver_apply(s, v, t));
    SPS_TRY(spsi_dots(t, &s->R, m->a));
    SPS_TRY(spsi_dots(t, t, m->b));
    for (int c = 0; c < s->k; c++) {
        double size = sqrt(m->b[c]) * s->resnorm[c], rho = fabs(m->a[c]) / size;
        double omega = m->a[c] / m->b[c];

        if (!isfinite(m->a[c]) && !s->done[c]) s->stop = SPS_STOP_NOT_FINITE;
        if (rho < KAPPA) omega *= KAPPA / rho;
        if (!isfinite(omega) || omega == 0) m->broken[c] = true;
        m->omega[c] = m->a[c] = m->broken[c] ? 0 : omega;
    }
    if (s->stop) return st;
    SPS_TRY(spsi_update_pair_cols(v, t, m->a, &s->X, &s->R, m->norm2));
fail:
    return st;
}

/* No open column can go on: start again, with other shadows, a few times. */
static void look_round(sps_solver *s, struct idr *m)
{
    s->width = 0;
    for (int c = 0; c < s->k; c++) {
        s->resnorm[c] = sqrt(m->norm2[c]);
        s->width += !s->done[c] && !m->broken[c];
    }
    if (s->width) return;
    s->renew = true;
    if (++m->breakdowns > 3) s->stop = SPS_STOP_BREAKDOWN;
}

static sps_status step(sps_solver *s, void *method)
{
    struct idr *m = method;
    sps_status st;

    SPS_TRY(m->j < m->s ? inner(s, m) : outer(s, m));
    if (s->stop) return st;
    m->j = m->j < m->s ? m->j + 1 : 0;
    look_round(s, m);
fail:
    return st;
}

static sps_status permute(sps_solver *s, void *method, const int *from,
                          int count)
{
    struct idr *m = method;
    sps_block *room = s->work[ROOM];
    sps_status st = SPS_OK;
    int square = m->s * m->s;

    spsi_block_narrow(room, count);
    SPS_TRY(spsi_rearrange_basis(m->P, from, room));
    SPS_TRY(spsi_rearrange_basis(m->G, from, room));
    SPS_TRY(spsi_rearrange_basis(m->U, from, room));
    spsi_rearrange_numbers(m->omega, from, count, m->a);
    /* Columns leave to the back only: from[p] >= p, in order. */
    for (int p = 0; p < count; p++) {
        m->broken[p] = m->broken[from[p]];
        for (int i = 0; i < square; i++)
            m->M[p * square + i] = m->M[from[p] * square + i];
    }
    if (m->j) {
        for (int p = 0; p < count; p++)
            for (int i = 0; i < m->s; i++)
                *spsi_small_at(m->f, i, p) = *spsi_small_at(m->f, i, from[p]);
        m->f->cols = count;
    }
    narrow(s, m);
fail:
    return st;
}

static void destroy(sps_solver *s, void *method)
{
    struct idr *m = method;
    double *all[] = { m->omega, m->a, m->b, m->norm2, m->M };

    spsi_basis_destroy(&m->P);
    spsi_basis_destroy(&m->G);
    spsi_basis_destroy(&m->U);
    spsi_small_destroy(&m->f);
    spsi_small_destroy(&m->c);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        spsi_free(s->ctx, all[i]);
    spsi_free(s->ctx, m->broken);
}

SPS_DEFINE(sps_solver_type, spsi_solver_idr) = {
    .name = "idr",
    .size = sizeof(struct idr),
    .blocks = 3,
    .setup = setup,
    .start = start,
    .step = step,
    .permute = permute,
    .destroy = destroy,
};
