/* SPDX-License-Identifier: BSD-3-Clause */
/* minres.c - MINRES (Paige and Saunders, SINUM 12, 1975) for symmetric A,
 * definite or not, and many right-hand sides at once: products are shared,
 * scalars belong to columns.  M is symmetric positive definite (the form of
 * Elman, Silvester and Wathen, Finite Elements and Fast Iterative Solvers, 2nd
 * edition, algorithm 4.1).
 *
 *     d = z'A z;  v_next = A z - (d / g) v - (g / g_old) v_old;
 *     g_next = sqrt(v_next'M v_next);  z_next = M v_next / g_next;
 *     rotation (c, s) of the last rows of the tridiagonal matrix;
 *     w_next = (z - a_3 w_old - a_2 w) / a_1;  X += c eta w_next;
 *     eta = -s eta;  R = s^2 R + (c eta / g_next) v_next.
 *
 * The last line updates the residual itself, so that convergence is tested in
 * the 2-norm, whatever M.  The method minimises the norm of the residual in the
 * inner product of M.
 *
 * Reads and writes of n x k blocks in a step: SpMM 2, M 2, dots 6, v 6, z 2, w
 * 6, X 3, R 3. */
#include "solvers/rearrange.h"

#include <float.h>
#include <math.h>

#include "core/timer.h"

struct minres {
    sps_basis *S;        /* blocks v_old, v, w_old, w; new vectors overwrite the
                            old ones, and `turn` tells which block is which */
    double *gamma, *gamma_old, *eta;          /* k elements each, as the arrays
                                                 below */
    double *c, *c_old, *s, *s_old;
    double *size;        /* norm of the tridiagonal matrix so far */
    double *a, *b, *e, *one, *dot, *next;
    bool *frozen;        /* the Krylov space of the column is invariant, and the
                            column is not changed any more */
    int turn;
};

/* Work blocks: 0 is z, 1 belongs to the driver and is A z, 2 is scratch for M
 * v. */
enum { Z, AZ, ROOM };

static sps_status setup(sps_linear *s, void *method)
{
    struct minres *m = method;
    sps_owner *own = &s->made.own;
    sps_status st = SPS_OK;
    double **const all[] = {
        &m->gamma, &m->gamma_old, &m->eta, &m->c, &m->c_old, &m->s, &m->s_old,
        &m->size, &m->a, &m->b, &m->e, &m->one, &m->dot, &m->next, NULL };

    SPS_TRY(spsi_own_basis(own, s->n, s->columns, 4, SPS_F64, &m->S));
    SPS_TRY(spsi_own_numbers(own, s->columns, all));
    SPS_TRY(SPS_OWN(own, s->columns, &m->frozen));
    for (int c = 0; c < s->columns; c++) m->one[c] = 1;
fail:
    return st;
}

static void narrow(sps_linear *s, struct minres *m)
{
    for (int i = 0; i < 3; i++) spsi_block_narrow(s->work[i], s->k);
    spsi_basis_narrow(m->S, s->k);
}

/* next = sqrt(v'M v), z = M v / next.  A column whose space is invariant
 * becomes frozen, with next = 0 and z = 0.  first: v is the residual and not
 * zero, so that v'M v = 0 means that M is not definite. */
static sps_status normalise(sps_linear *s, struct minres *m, const sps_block *v,
                            bool first)
{
    const sps_block *z;
    sps_status st = SPS_OK;

    SPS_TRY(spsi_linear_direction(s, v, s->work[ROOM], &z));
    SPS_TRY(spsi_dots(v, z, m->dot));
    for (int p = 0; p < s->k; p++) {
        double length = sqrt(fabs(m->dot[p]));

        if (!isfinite(length) && !s->at.done[p]) s->stop = SPS_STOP_NOT_FINITE;
        if (first ? m->dot[p] <= 0 && !s->at.done[p] && s->resnorm[p] > 0
                  : m->dot[p] < 0 && !s->at.done[p] &&
                    length > 16 * DBL_EPSILON * m->size[p])
            s->stop = SPS_STOP_PRECOND_INDEFINITE;
        if (!(length > 16 * DBL_EPSILON * m->size[p])) m->frozen[p] = true;
        m->next[p] = m->frozen[p] ? 0 : length;
        m->a[p] = m->frozen[p] ? 0 : 1 / length;
    }
    if (!s->stop) SPS_TRY(spsi_axpby_cols(m->a, z, NULL, s->work[Z]));
fail:
    return st;
}

static sps_status start(sps_linear *s, void *method)
{
    struct minres *m = method;
    sps_status st = SPS_OK;
    sps_block v;

    narrow(s, m);
    SPS_TRY(spsi_fill(m->S->all, 0.0));
    m->turn = 0;
    spsi_basis_block(m->S, 1, &v);
    SPS_TRY(spsi_copy(&s->R, &v));
    for (int p = 0; p < s->k; p++) {
        m->size[p] = 0;
        m->frozen[p] = false;
        m->gamma_old[p] = m->c[p] = m->c_old[p] = 1;
        m->s[p] = m->s_old[p] = 0;
    }
    SPS_TRY(normalise(s, m, &v, true));
    for (int p = 0; p < s->k; p++) m->gamma[p] = m->eta[p] = m->next[p];
    s->width = s->k;
fail:
    return st;
}

/* d = z'A z;  v_next = A z - (d / g) v - (g / g_old) v_old, in place of
 * v_old. */
static sps_status lanczos(sps_linear *s, struct minres *m, const sps_block *v,
                          sps_block *old, double *d)
{
    sps_block *z = s->work[Z], *az = s->work[AZ];
    sps_status st = SPS_OK;

    spsi_block_narrow(az, s->k);
    SPS_TRY(spsi_linear_apply(s, z, az));
    SPS_TRY(spsi_dots(z, az, d));
    for (int p = 0; p < s->k; p++) {
        bool fixed = m->frozen[p];

        if (!isfinite(d[p]) && !s->at.done[p]) s->stop = SPS_STOP_NOT_FINITE;
        m->e[p] = fixed ? 0 : 1;
        m->a[p] = fixed ? 0 : -d[p] / m->gamma[p];
        m->b[p] = fixed ? 0 : -m->gamma[p] / m->gamma_old[p];
        m->size[p] = fmax(m->size[p], fabs(d[p]));
    }
    if (s->stop) return st;
    SPS_TRY(spsi_axpby_cols(m->e, az, m->b, old));
    SPS_TRY(spsi_axpby_cols(m->a, v, m->one, old));
fail:
    return st;
}

/* The rotation of column p: w_next = a z + b w_old + e w.  If the last row of
 * the tridiagonal matrix is at rounding level, A is singular and nothing is
 * added to X. */
static void rotate(struct minres *m, int p, double d)
{
    double g = m->gamma[p], next = m->next[p];
    double a0 = m->c[p] * d - m->c_old[p] * m->s[p] * g;
    double a1 = hypot(a0, next);
    double a2 = m->s[p] * d + m->c_old[p] * m->c[p] * g;
    double a3 = m->s_old[p] * g;
    bool lost = !(a1 > 16 * DBL_EPSILON * m->size[p]);

    m->c_old[p] = m->c[p];
    m->s_old[p] = m->s[p];
    m->c[p] = lost ? 0 : a0 / a1;
    m->s[p] = lost ? 1 : next / a1;
    m->a[p] = lost ? 0 : 1 / a1;
    m->b[p] = lost ? 0 : -a3 / a1;
    m->e[p] = lost ? 0 : -a2 / a1;
}

/* X += c eta w;  then eta = -s eta;  R = s^2 R + (c eta / g) v. */
static sps_status advance(sps_linear *s, struct minres *m, const sps_block *w,
                          const sps_block *v, const double *moved)
{
    sps_status st = SPS_OK;

    for (int p = 0; p < s->k; p++) {
        bool fixed = moved[p] == 0;

        m->a[p] = fixed ? 0 : m->c[p] * m->eta[p];
        if (!fixed) m->eta[p] *= -m->s[p];
        m->b[p] = fixed ? 1 : m->s[p] * m->s[p];
        m->e[p] = fixed || m->next[p] == 0 ? 0
                                           : m->c[p] * m->eta[p] / m->next[p];
    }
    SPS_TRY(spsi_axpby_cols(m->e, v, m->b, &s->R));
    SPS_TRY(spsi_dots(&s->R, &s->R, m->dot));
    for (int p = 0; p < s->k; p++) m->dot[p] = sqrt(m->dot[p]);
    SPS_TRY(spsi_best_update(s, m->dot));
    if (!s->stop) SPS_TRY(spsi_axpby_cols(m->a, w, m->one, &s->X));
fail:
    return st;
}

static sps_status step(sps_linear *s, void *method)
{
    struct minres *m = method;
    double d[SPS_BLOCK_MAX], moved[SPS_BLOCK_MAX];
    sps_block v, old, w, w_old;
    sps_status st = SPS_OK;

    spsi_basis_block(m->S, m->turn, &old);
    spsi_basis_block(m->S, 1 - m->turn, &v);
    spsi_basis_block(m->S, 2 + m->turn, &w_old);
    spsi_basis_block(m->S, 3 - m->turn, &w);
    for (int p = 0; p < s->k; p++) moved[p] = !m->frozen[p];
    SPS_TRY(lanczos(s, m, &v, &old, d));
    if (s->stop) return st;
    /* w_next needs z before it is overwritten. */
    SPS_TRY(spsi_copy(s->work[Z], s->work[AZ]));
    SPS_TRY(normalise(s, m, &old, false));
    if (s->stop) return st;
    for (int p = 0; p < s->k; p++) {
        m->size[p] = fmax(m->size[p], m->next[p]);
        if (moved[p] != 0) rotate(m, p, d[p]);
        else m->a[p] = m->b[p] = m->e[p] = 0;
        m->gamma_old[p] = m->gamma[p];
        m->gamma[p] = m->next[p];
    }
    SPS_TRY(spsi_axpby_cols(m->a, s->work[AZ], m->b, &w_old));
    SPS_TRY(spsi_axpby_cols(m->e, &w, m->one, &w_old));
    SPS_TRY(advance(s, m, &w_old, &old, moved));
    m->turn = 1 - m->turn;
    /* If a frozen column is above its threshold, A is singular. */
    if (!s->stop && spsi_linear_frozen(s, m->frozen))
        s->stop = SPS_STOP_SINGULAR;
fail:
    return st;
}

static sps_status permute(sps_linear *s, void *method, const int *from,
                          int count)
{
    struct minres *m = method;
    double *all[] = { m->gamma, m->gamma_old, m->eta, m->c, m->c_old, m->s,
                      m->s_old, m->size };
    sps_block *room = s->work[ROOM];
    sps_status st = SPS_OK;

    spsi_block_narrow(room, count);
    SPS_TRY(spsi_rearrange_basis(m->S, from, room));
    SPS_TRY(spsi_rearrange_block(s->work[Z], from, room));
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        spsi_rearrange_numbers(all[i], from, count, m->a);
    for (int p = 0; p < count; p++) m->frozen[p] = m->frozen[from[p]];
    narrow(s, m);
fail:
    return st;
}

SPS_DEFINE(sps_linear_type, spsi_solver_minres) = {
    .name = "minres",
    .needs = SPS_NEEDS_SYMMETRIC,
    .size = sizeof(struct minres),
    .blocks = 3,
    .setup = setup,
    .start = start,
    .step = step,
    .permute = permute,
};
