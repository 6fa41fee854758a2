/* SPDX-License-Identifier: BSD-3-Clause */
/* minres.c - MINRES (Paige and Saunders, SINUM 12, 1975) for symmetric A,
 * definite or not, and many right-hand sides side by side: shared products,
 * own scalars for each column.  M is symmetric positive definite (the form of
 * Elman, Silvester and Wathen, Finite Elements and Fast Iterative Solvers,
 * 2nd edition, algorithm 4.1).
 *
 *     d = z'A z;  v_next = A z - (d / g) v - (g / g_old) v_old;
 *     z_next = M v_next;  g_next = sqrt(v_next'z_next);
 *     rotation (c, s) of the last rows of the tridiagonal matrix;
 *     w_next = (z - a_3 w_old - a_2 w) / a_1;  X += c eta w_next;
 *     eta = -s eta;  R = s^2 R + (c eta / g_next) v_next.
 *
 * The last line carries the residual itself, so that columns are judged by its
 * 2-norm, whatever M.  What is minimised is its norm in M.
 *
 * A step in n x k block reads and writes: SpMM 2, M 2, dots 6, v 6, z 2, w 6,
 * X 3, R 3. */
#include "rearrange.h"

#include <float.h>
#include <math.h>

#include "timer.h"

struct minres {
    sps_basis *S;        /* blocks: v_old, v, w_old, w; the olds are taken over
                            by the news, `turn` says which is which */
    double *gamma, *gamma_old, *eta;          /* k each, and so all */
    double *c, *c_old, *s, *s_old;
    double *size;        /* of the tridiagonal matrix so far */
    double *a, *b, *e, *one, *dot, *next;
    bool *still;         /* the space is invariant: nothing more can come */
    int turn;
};

/* Work blocks: 0 z, 1 the driver's and A z, 2 room for M v. */
enum { Z, AZ, ROOM };

#define ARRAYS(m)                                                              \
    { &(m)->gamma, &(m)->gamma_old, &(m)->eta, &(m)->c, &(m)->c_old, &(m)->s,  \
      &(m)->s_old, &(m)->size, &(m)->a, &(m)->b, &(m)->e, &(m)->one,           \
      &(m)->dot, &(m)->next }

static sps_status setup(sps_solver *s, void *method)
{
    struct minres *m = method;
    sps_status st = SPS_OK;
    double **all[] = ARRAYS(m);

    SPS_TRY(spsi_basis_create(s->ctx, s->n, s->columns, 4, SPS_F64, &m->S));
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        SPS_TRY(SPS_NEW(s->ctx, s->columns, all[i]));
    SPS_TRY(SPS_NEW(s->ctx, s->columns, &m->still));
    for (int c = 0; c < s->columns; c++) m->one[c] = 1;
fail:
    return st;
}

static void narrow(sps_solver *s, struct minres *m)
{
    for (int i = 0; i < 3; i++) spsi_block_narrow(s->work[i], s->k);
    spsi_basis_narrow(m->S, s->k);
}

/* next = sqrt(v'M v), z = M v / next; columns that end stand still from now
 * on, with next = 0 and z = 0. */
static sps_status normalise(sps_solver *s, struct minres *m, const sps_block *v)
{
    const sps_block *z;
    sps_status st = SPS_OK;

    SPS_TRY(spsi_solver_direction(s, v, s->work[ROOM], &z));
    SPS_TRY(spsi_dots(v, z, m->dot));
    for (int p = 0; p < s->k; p++) {
        double length = sqrt(fabs(m->dot[p]));

        if (!isfinite(length) && !s->done[p]) s->stop = SPS_STOP_NOT_FINITE;
        if (!(length > 16 * DBL_EPSILON * m->size[p])) m->still[p] = true;
        else if (m->dot[p] < 0 && !s->done[p])
            s->stop = SPS_STOP_PRECOND_INDEFINITE;
        m->next[p] = m->still[p] ? 0 : length;
        m->a[p] = m->still[p] ? 0 : 1 / length;
    }
    if (!s->stop) SPS_TRY(spsi_axpby_cols(m->a, z, NULL, s->work[Z]));
fail:
    return st;
}

static sps_status start(sps_solver *s, void *method)
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
        m->still[p] = false;
        m->gamma_old[p] = m->c[p] = m->c_old[p] = 1;
        m->s[p] = m->s_old[p] = 0;
    }
    SPS_TRY(normalise(s, m, &v));
    for (int p = 0; p < s->k; p++) m->gamma[p] = m->eta[p] = m->next[p];
    s->width = s->k;
fail:
    return st;
}

/* v_next, in the place of v_old; the diagonal d stays in dot. */
static sps_status lanczos(sps_solver *s, struct minres *m, const sps_block *v,
                          sps_block *old, double *d)
{
    sps_block *z = s->work[Z], *az = s->work[AZ];
    sps_status st = SPS_OK;

    spsi_block_narrow(az, s->k);
    SPS_TRY(spsi_solver_apply(s, z, az));
    SPS_TRY(spsi_dots(z, az, d));
    for (int p = 0; p < s->k; p++) {
        bool stays = m->still[p];

        if (!isfinite(d[p]) && !s->done[p]) s->stop = SPS_STOP_NOT_FINITE;
        m->e[p] = stays ? 0 : 1;
        m->a[p] = stays ? 0 : -d[p] / m->gamma[p];
        m->b[p] = stays ? 0 : -m->gamma[p] / m->gamma_old[p];
        m->size[p] = fmax(m->size[p], fabs(d[p]));
    }
    if (s->stop) return st;
    SPS_TRY(spsi_axpby_cols(m->e, az, m->b, old));
    SPS_TRY(spsi_axpby_cols(m->a, v, m->one, old));
fail:
    return st;
}

/* The rotation of column p: coefficients of z, w_old and w in a, b, e.  Where
 * the last row vanishes whole, A is singular and nothing is added. */
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

/* X += c eta w, eta = -s eta, R = s^2 R + (c eta / g) v. */
static sps_status advance(sps_solver *s, struct minres *m, const sps_block *w,
                          const sps_block *v, const double *moved)
{
    sps_status st = SPS_OK;

    for (int p = 0; p < s->k; p++) {
        bool stays = moved[p] == 0;

        m->a[p] = stays ? 0 : m->c[p] * m->eta[p];
        if (!stays) m->eta[p] *= -m->s[p];
        m->b[p] = stays ? 1 : m->s[p] * m->s[p];
        m->e[p] = stays || m->next[p] == 0 ? 0
                                           : m->c[p] * m->eta[p] / m->next[p];
    }
    SPS_TRY(spsi_axpby_cols(m->a, w, m->one, &s->X));
    SPS_TRY(spsi_axpby_cols(m->e, v, m->b, &s->R));
    SPS_TRY(spsi_dots(&s->R, &s->R, m->dot));
    for (int p = 0; p < s->k; p++) s->resnorm[p] = sqrt(m->dot[p]);
fail:
    return st;
}

/* A column that stands still above its threshold says that A is singular. */
static void look_round(sps_solver *s, struct minres *m)
{
    bool stuck = false;

    s->width = 0;
    for (int p = 0; p < s->k; p++) {
        if (s->done[p]) continue;
        s->width += !m->still[p];
        if (s->resnorm[p] > s->threshold[s->column[p]]) stuck = true;
    }
    if (s->width) return;
    s->renew = true;
    if (stuck) s->stop = SPS_STOP_SINGULAR;
}

static sps_status step(sps_solver *s, void *method)
{
    struct minres *m = method;
    double d[SPS_BLOCK_MAX], moved[SPS_BLOCK_MAX];
    sps_block v, old, w, w_old;
    sps_status st = SPS_OK;

    spsi_basis_block(m->S, m->turn, &old);
    spsi_basis_block(m->S, 1 - m->turn, &v);
    spsi_basis_block(m->S, 2 + m->turn, &w_old);
    spsi_basis_block(m->S, 3 - m->turn, &w);
    for (int p = 0; p < s->k; p++) moved[p] = !m->still[p];
    SPS_TRY(lanczos(s, m, &v, &old, d));
    if (s->stop) return st;
    /* w_next takes z before it goes on. */
    SPS_TRY(spsi_copy(s->work[Z], s->work[AZ]));
    SPS_TRY(normalise(s, m, &old));
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
    look_round(s, m);
fail:
    return st;
}

static sps_status permute(sps_solver *s, void *method, const int *from,
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
    for (int p = 0; p < count; p++) m->still[p] = m->still[from[p]];
    narrow(s, m);
fail:
    return st;
}

static void destroy(sps_solver *s, void *method)
{
    struct minres *m = method;
    double **all[] = ARRAYS(m);

    spsi_basis_destroy(&m->S);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        spsi_free(s->ctx, *all[i]);
    spsi_free(s->ctx, m->still);
}

SPS_DEFINE(sps_solver_type, spsi_solver_minres) = {
    .name = "minres",
    .needs = SPS_NEEDS_SYMMETRIC,
    .size = sizeof(struct minres),
    .blocks = 3,
    .setup = setup,
    .start = start,
    .step = step,
    .permute = permute,
    .destroy = destroy,
};
