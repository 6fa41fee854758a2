/* SPDX-License-Identifier: BSD-3-Clause */
/* levels.c - builds the hierarchy: level after level aggregates, prolongator
 * and A_c = P'A P with the unfiltered A, until a matrix is small or does not
 * shrink.
 *
 * Where smoothing would fill the coarse matrices, as for power-law graphs, a
 * level is not smoothed: P = T.  This is so if A P takes more than AP_LIMIT
 * products for each entry of A, or P'(A P) more than PAP_LIMIT, counted in node
 * blocks.  Grids and meshes need far fewer products than these limits, such
 * graphs far more.
 *
 * If many nodes have one or two neighbours, these are eliminated first
 * (eliminate.c); that level is not smoothed either.
 *
 * For new values aggregates and patterns are kept, and all values are computed
 * again into the same arrays. */
#include "solvers/amg/amg.h"

#include <math.h>
#include <string.h>

#define AP_LIMIT 30
#define PAP_LIMIT 15
#define SHRINKS 0.8          /* largest ratio of the rows of the next level to
                                those of this one */
#define MARGIN 1.1           /* factor on the estimate of the spectrum */
#define WIDE_SPECTRUM 3.5    /* bound of the spectrum of the finest level above
                                which the degree is 3 */

/* Measures the spectrum of D^-1 A, and sets the degree of the smoother. */
static sps_status measure(amg *m, amg_level *l)
{
    amg_smoother *s = &l->smoother;
    double bound;
    sps_status st;

    SPS_TRY(spsi_amg_bounds(m, l, &bound));
    if (l->nonsymmetric) l->rho = bound;
    s->upper = fmin(MARGIN * l->rho, bound);
    if (!(s->upper > 0)) s->upper = l->rho = 1;
    s->degree = m->wanted_degree ? m->wanted_degree
              : l == m->level && s->upper > WIDE_SPECTRUM && !l->nonsymmetric
                  ? 3 : 2;
fail:
    return st;
}

/* ------------------------------------------------------ from level to level */

/* Copies the values of a csr to another one with the same pattern, in the same
 * place. */
static sps_status take_values(sps_context *ctx, const sps_csr *from,
                              sps_csr *to)
{
    sps_status st = SPS_OK;

    SPS_REQUIRE(ctx, to->nnz == from->nnz, SPS_EBUG,
                "amg: new values of A changed the pattern of a coarser level, "
                "which must not happen; please report it");
    if (to->place != SPS_HOST) return spsi_csr_copy_values(ctx, from, to);
    if (to->nnz > 0)
        memcpy(to->val, from->val, (size_t)to->nnz * sizeof(double));
fail:
    return st;
}

/* Moves *made_p to *held_p; if *held_p exists already, copies only the values
 * to it. */
static sps_status keep(sps_context *ctx, sps_csr **held_p, sps_csr **made_p)
{
    if (*held_p) return take_values(ctx, *made_p, *held_p);
    *held_p = *made_p;
    *made_p = NULL;
    return SPS_OK;
}

/* Creates A B, unless this takes more than `limit` products for each entry of
 * the level's matrix: then *explodes is set, and *C_p stays NULL. */
static sps_status multiply(const amg *m, const amg_level *l, const sps_csr *A,
                           const sps_csr *B, double limit, sps_csr **C_p,
                           bool *explodes)
{
    const double most = limit * (double)l->A->nnz;
    sps_status st;

    SPS_TRY(spsi_amg_multiply(m, A, B,
                              most < 0x1p62 ? (int64_t)most : INT64_MAX, C_p));
    *explodes = *C_p == NULL;
fail:
    return st;
}

/* The matrices by which a level is projected. */
typedef struct projection {
    sps_csr *P, *R, *AP, *coarse;
} projection;

/* Makes P, P', A P and P'A P with or without smoothing; *explodes is set if
 * this takes too many products.  The limits count products of node blocks, b x
 * b in A and b x q in P and A P.  For new values nothing is limited, and P'A P
 * is not made. */
static sps_status try_products(amg *m, amg_level *l, const amg_tentative *t,
                               bool smooth, bool again, projection *made,
                               bool *explodes)
{
    const double q = l->vectors;
    const double b = (double)l->n / (double)(l->nodes + !l->nodes);
    const double most = smooth && !again ? 1 : INFINITY;
    sps_status st;

    SPS_TRY(spsi_amg_smooth(m, l, t, smooth, &made->P));
    SPS_TRY(multiply(m, l, l->A, made->P, most * AP_LIMIT * q, &made->AP,
                     explodes));
    if (*explodes) return SPS_OK;
    SPS_TRY(spsi_csr_transpose(m->super.ctx, made->P, &made->R));
    if (!again)
        SPS_TRY(multiply(m, l, made->R, made->AP, most * PAP_LIMIT * q * q / b,
                         &made->coarse, explodes));
fail:
    return st;
}

static void drop(sps_context *ctx, projection *made)
{
    sps_csr_destroy(ctx, &made->P);
    sps_csr_destroy(ctx, &made->R);
    sps_csr_destroy(ctx, &made->AP);
    sps_csr_destroy(ctx, &made->coarse);
}

/* Makes the matrices of a projection, with smoothing if l->smoothed; unless
 * `again`, also decides whether the level is smoothed. */
static sps_status make_products(amg *m, amg_level *l, const amg_tentative *t,
                                bool again, projection *made)
{
    bool explodes;
    sps_status st;

    if (!again) l->smoothed = !l->eliminates;
    SPS_TRY(try_products(m, l, t, l->smoothed, again, made, &explodes));
    if (!explodes) return SPS_OK;
    drop(m->super.ctx, made);
    l->smoothed = false;
    SPS_TRY(try_products(m, l, t, false, again, made, &explodes));
fail:
    return st;
}

/* Makes P, P' and the matrix of the next level. */
static sps_status project(amg *m, amg_level *l, amg_level *next,
                          const amg_tentative *t, bool again)
{
    sps_context *ctx = m->super.ctx;
    projection made = { .P = NULL };
    sps_status st;

    SPS_TRY(make_products(m, l, t, again, &made));
    if (again)
        SPS_TRY(spsi_matrix_multiply_values(ctx, made.R, made.AP, next->own));
    else
        SPS_TRY(keep(ctx, &next->own, &made.coarse));
    SPS_TRY(keep(ctx, &l->P, &made.P));
    SPS_TRY(keep(ctx, &l->R, &made.R));
    if (again ? l->AP != NULL : spsi_amg_ahead_pays(l, l->P, made.AP))
        SPS_TRY(keep(ctx, &l->AP, &made.AP));
fail:
    drop(ctx, &made);
    return st;
}

/* Makes the level below l; *made is false if there is none.  The spectrum is
 * measured only before it is needed, which leaves its kernels the time to run
 * beside those of the stages before. */
static sps_status descend(amg *m, amg_level *l, bool again, bool *made)
{
    amg_tentative t = { 0 };
    sps_status st = SPS_OK;

    *made = false;
    if (!again && !l->eliminates) SPS_TRY(spsi_amg_gather(m, l));
    if (l->aggregates > 0) SPS_TRY(spsi_amg_fit(m, l, again, &t));
    if (!l->eliminates) SPS_TRY(measure(m, l));
    if (l->aggregates == 0 ||
        (!again && (t.columns == 0 ||
                    (double)t.columns > SHRINKS * (double)l->n)))
        goto fail;
    SPS_TRY(project(m, l, l + 1, &t, again));
    SPS_TRY(spsi_amg_enter(m, l, l + 1, &t));
    *made = true;
fail:
    spsi_amg_drop(m, l, &t);
    return st;
}

sps_status spsi_amg_levels(amg *m, bool again)
{
    const int most = again ? m->levels : AMG_LEVELS;
    bool made = true;
    sps_status st = SPS_OK;

    for (int i = 0; made; i++) {
        amg_level *l = &m->level[i];

        if (!again) m->levels = i + 1;
        SPS_TRY(spsi_check_deadline(m->super.ctx, "amg"));
        SPS_TRY(spsi_amg_scale(m, l, i == 0));
        if (!again) SPS_TRY(spsi_amg_eliminate(m, l));
        if (i > 0 && l->n <= AMG_DENSE) break;   /* without a smoother */
        if (!l->eliminates) SPS_TRY(spsi_amg_bounds_ahead(m, l));
        if (i + 1 == most || l->n <= AMG_DENSE) {
            if (!l->eliminates) SPS_TRY(measure(m, l));
            break;
        }
        SPS_TRY(descend(m, l, again, &made));
    }
fail:
    return st;
}
