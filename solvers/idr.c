/* SPDX-License-Identifier: BSD-3-Clause */
/* idr.c - IDR(s) with bi-orthogonal vectors (van Gijzen and Sonneveld, ACM TOMS
 * 38(1), 2011) for many right-hand sides at once: products are shared, scalars
 * belong to columns.  The preconditioner, K in this file and M in the rest of
 * the library, is applied from the right.
 *
 * The residual is restricted to spaces whose dimension decreases by s in each
 * cycle, with s random shadow vectors P, vectors G = A U and the lower triangle
 * M = P'G.  Step j = 0 .. s-1 of a cycle, f = P'r:
 *
 *     M c = f (from j on);  v = r - sum c_i g_i;
 *     u_j = omega K v + sum c_i u_i;  g_j = A u_j;
 *     g_j is made orthogonal to p_0 .. p_(j-1), and u_j changed alike;
 *     beta = f_j / m_jj;  r -= beta g_j;  x += beta u_j;
 *
 * and step s: v = K r, t = A v, omega = t'r / t't, increased if the cosine of t
 * and r is below KAPPA (Sleijpen and van der Vorst, 1995), r -= omega t, x +=
 * omega v.  X and R are up to date after each step, which makes one product.
 *
 * With s = 4 a cycle reads or writes a block about 120 times: 10 in 5 SpMM
 * (which also read A 5 times), 10 in 5 applications of K, 100 in the rest. */
#include "solvers/rearrange.h"

#include <float.h>
#include <math.h>

#include "core/timer.h"

#define KAPPA 0.7

struct idr {
    sps_basis *P, *G, *U;   /* shadow vectors, G = A U and U; s blocks each */
    sps_small *f, *c;       /* s x k: f = P'r, coefficients c */
    double *M;              /* k lower triangles M = P'G, s x s, row-major */
    double *omega, *a, *b, *norm2, *one;   /* k elements each: omega, three
                                              scratch arrays, ones */
    bool *broken;           /* k elements: column is frozen */
    int s, j, breakdowns;   /* number of shadow vectors; present step; number of
                               starts after a breakdown */
};

/* Work blocks: 0 is v and scratch, 1 belongs to the driver and is t, 2 is
 * scratch for K. */
enum { V, T, ROOM };

static sps_status setup(sps_linear *s, void *method)
{
    struct idr *m = method;
    sps_status st = SPS_OK;
    int k = s->columns;
    double **const all[] = { &m->omega, &m->a, &m->b, &m->norm2, &m->one,
                             NULL };
    sps_owner *own = &s->made.own;
    sps_basis **stacks[] = { &m->P, &m->G, &m->U };

    m->s = s->rows < s->opt.idr_s ? (int)s->rows : s->opt.idr_s;
    if (m->s < 1) m->s = 1;
    for (int i = 0; i < 3; i++)
        SPS_TRY(spsi_own_basis(own, s->n, k, m->s, SPS_F64, stacks[i]));
    SPS_TRY(spsi_own_small(own, m->s, k, &m->f));
    SPS_TRY(spsi_own_small(own, m->s, k, &m->c));
    SPS_TRY(spsi_own_numbers(own, k, all));
    SPS_TRY(SPS_OWN(own, (int64_t)k * m->s * m->s, &m->M));
    SPS_TRY(SPS_OWN(own, k, &m->broken));
    for (int c = 0; c < k; c++) m->one[c] = 1;
fail:
    return st;
}

static double *triangle(const struct idr *m, int c, int i, int j)
{
    return &m->M[(c * m->s + i) * m->s + j];
}

static void narrow(sps_linear *s, struct idr *m)
{
    for (int i = 0; i < 3; i++) spsi_block_narrow(s->work[i], s->k);
    spsi_basis_narrow(m->P, s->k);
    spsi_basis_narrow(m->G, s->k);
    spsi_basis_narrow(m->U, s->k);
}

/* Chooses new shadow vectors at every start, so that a breakdown is not
 * repeated. */
static sps_status start(sps_linear *s, void *method)
{
    struct idr *m = method;
    sps_status st = SPS_OK;
    sps_block p;

    narrow(s, m);
    if (s->course.iteration == 0) m->breakdowns = 0;
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

/* W = K X, copied to W where K is the identity, since W is modified
 * afterwards. */
static sps_status precondition(sps_linear *s, const sps_block *X, sps_block *W)
{
    const sps_block *z;
    sps_status st = SPS_OK;

    SPS_TRY(spsi_linear_direction(s, X, W, &z));
    if (z != W) SPS_TRY(spsi_copy(z, W));
fail:
    return st;
}

/* --- steps 0 .. s-1 */

/* Solves M c = f for rows and columns j and beyond; c_i = 0 for i < j. */
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

/* u_j = omega K (r - G c) + U c. */
static sps_status direct(sps_linear *s, struct idr *m, sps_block *u)
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

/* On entry c = P'g_j.  On return c_i, i < j, are the multiples of g_i to be
 * subtracted, so that g_j is orthogonal to p_0 .. p_(j-1), and c_i = 0 for i >=
 * j; column j of M is set. */
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

/* beta = f_j / m_jj;  f_i -= beta m_ij for i > j.  A column whose beta is not
 * finite becomes frozen. */
static void lengths(sps_linear *s, struct idr *m)
{
    for (int c = 0; c < s->k; c++) {
        double *f = spsi_small_at(m->f, 0, c);
        double pivot = *triangle(m, c, m->j, m->j), beta = f[m->j] / pivot;

        if (!isfinite(pivot) && !s->at.done[c]) s->stop = SPS_STOP_NOT_FINITE;
        if (!isfinite(beta)) m->broken[c] = true;
        if (m->broken[c]) beta = 0;
        m->a[c] = beta;
        for (int l = m->j + 1; l < m->s; l++)
            f[l] -= beta * *triangle(m, c, l, m->j);
    }
}

/* r -= a g, x += a u. */
static sps_status advance(sps_linear *s, struct idr *m, const sps_block *u,
                          const sps_block *g)
{
    sps_status st = SPS_OK;

    SPS_TRY(spsi_subtract_cols(g, m->a, &s->R, m->norm2));
    for (int c = 0; c < s->k; c++) m->norm2[c] = sqrt(m->norm2[c]);
    SPS_TRY(spsi_best_update(s, m->norm2));
    if (!s->stop) SPS_TRY(spsi_axpby_cols(m->a, u, m->one, &s->X));
fail:
    return st;
}

static sps_status inner(sps_linear *s, struct idr *m)
{
    sps_block g, u;
    sps_status st = SPS_OK;

    spsi_basis_block(m->G, m->j, &g);
    spsi_basis_block(m->U, m->j, &u);
    if (m->j == 0) SPS_TRY(spsi_basis_dots(m->P, m->s, &s->R, m->f));
    SPS_TRY(direct(s, m, &u));
    SPS_TRY(spsi_linear_apply(s, &u, &g));
    SPS_TRY(spsi_basis_dots(m->P, m->s, &g, m->c));
    biorthogonalise(m, s->k);
    lengths(s, m);
    if (s->stop) return st;
    if (m->j) {
        SPS_TRY(spsi_basis_update(-1.0, m->G, m->j, m->c, true, &g, NULL));
        SPS_TRY(spsi_basis_update(-1.0, m->U, m->j, m->c, true, &u, NULL));
    }
    SPS_TRY(advance(s, m, &u, &g));
fail:
    return st;
}

/* --- step s */

static sps_status outer(sps_linear *s, struct idr *m)
{
    sps_block *v = s->work[ROOM], *t = s->work[T];
    sps_status st = SPS_OK;

    spsi_block_narrow(t, s->k);
    SPS_TRY(precondition(s, &s->R, v));
    SPS_TRY(spsi_linear_apply(s, v, t));
    SPS_TRY(spsi_dots(t, &s->R, m->a));
    SPS_TRY(spsi_dots(t, t, m->b));
    for (int c = 0; c < s->k; c++) {
        double size = sqrt(m->b[c]) * s->resnorm[c], rho = fabs(m->a[c]) / size;
        double omega = m->a[c] / m->b[c];

        if (!isfinite(m->a[c]) && !s->at.done[c]) s->stop = SPS_STOP_NOT_FINITE;
        if (rho < KAPPA) omega *= KAPPA / rho;
        if (!isfinite(omega) || omega == 0) m->broken[c] = true;
        m->omega[c] = m->a[c] = m->broken[c] ? 0 : omega;
    }
    if (s->stop) return st;
    SPS_TRY(advance(s, m, v, t));
fail:
    return st;
}

/* If all open columns are frozen, the method starts again with other shadow
 * vectors; the fourth time it stops with SPS_STOP_BREAKDOWN. */
static void finish_step(sps_linear *s, struct idr *m)
{
    s->width = 0;
    for (int c = 0; c < s->k; c++) s->width += !s->at.done[c] && !m->broken[c];
    if (s->width) return;
    s->renew = true;
    if (++m->breakdowns > 3) s->stop = SPS_STOP_BREAKDOWN;
}

static sps_status step(sps_linear *s, void *method)
{
    struct idr *m = method;
    sps_status st;

    SPS_TRY(m->j < m->s ? inner(s, m) : outer(s, m));
    if (s->stop) return st;
    m->j = m->j < m->s ? m->j + 1 : 0;
    finish_step(s, m);
fail:
    return st;
}

static sps_status permute(sps_linear *s, void *method, const int *from,
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
    /* Deflation preserves the order of columns: from[p] >= p. */
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

SPS_DEFINE(sps_linear_type, spsi_solver_idr) = {
    .name = "idr",
    .size = sizeof(struct idr),
    .blocks = 3,
    .setup = setup,
    .start = start,
    .step = step,
    .permute = permute,
};
