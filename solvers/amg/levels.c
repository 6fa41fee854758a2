/* SPDX-License-Identifier: BSD-3-Clause */
/* levels.c - the hierarchy: level after level aggregates, prolongator and
 * A_c = P'A P, with the whole A, until a matrix is small or does not shrink.
 *
 * Where smoothing would fill the coarse matrices, as for graphs of power laws,
 * a level is not smoothed, P = T: if A P takes more than AP_LIMIT products for
 * an entry of A, or P'(A P) more than PAP_LIMIT, counted in node blocks.  What
 * grids and meshes need is far below, what such graphs need far above.
 *
 * With new values aggregates and patterns are kept, and all values are computed
 * again into the same arrays. */
#include "solvers/amg/amg.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define AP_LIMIT 30
#define PAP_LIMIT 15
#define SHRINKS 0.8          /* rows of the next level, at most */
#define MARGIN 1.1           /* on the estimate of the spectrum */
#define WIDE_SPECTRUM 3.5    /* of the finest level: degree 3 */
/* A diagonal entry of a coarse matrix, relative to the unit diagonals that it
 * comes from, that is rounding only. */
#define NOTHING 1e-14

/* ------------------------------------------------------------ one level's A */

static double diagonal_of(const sps_csr *A, int64_t i, bool *empty)
{
    const double *val = A->val;
    double d = 0;

    *empty = true;
    for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
        if (val[p] != 0) *empty = false;
        if (A->col[p] == i) d = val[p];
    }
    return d;
}

static sps_status set_scale(sps_context *ctx, amg_level *l, bool finest)
{
    sps_status st = SPS_OK;

    if (!l->scale) SPS_TRY(SPS_NEW(ctx, l->n + 1, &l->scale));
    for (int64_t i = 0; i < l->n; i++) {
        bool empty;
        const double d = diagonal_of(l->A, i, &empty);
        const bool none = finest ? empty : d <= NOTHING;

        SPS_REQUIRE(ctx, none || (d >= DBL_MIN && d <= DBL_MAX), SPS_EUNFIT,
                    "amg needs a matrix with a positive diagonal; entry (%lld, "
                    "%lld) is %g: use another preconditioner, for an "
                    "indefinite matrix ilut", (long long)i + 1,
                    (long long)i + 1, d);
        l->scale[i] = none ? 0 : 1 / sqrt(d);
    }
fail:
    return st;
}

/* The spectrum of D^-1 A, and with it the degree of the smoother. */
static sps_status measure(amg *m, amg_level *l)
{
    double bound;
    sps_status st;

    SPS_TRY(spsi_amg_spectrum(m->super.ctx, l->A, l->scale, &l->rho, &bound));
    if (l->nonsymmetric) l->rho = bound;
    l->upper = fmin(MARGIN * l->rho, bound);
    if (!(l->upper > 0)) l->upper = l->rho = 1;
    l->degree = m->wanted_degree ? m->wanted_degree
              : l == m->level && l->upper > WIDE_SPECTRUM && !l->nonsymmetric
                  ? 3 : 2;
fail:
    return st;
}

/* ------------------------------------------------------ from level to level */

/* *held_p = *made_p, or, if it exists already, only the values. */
static sps_status keep(sps_context *ctx, sps_csr **held_p, sps_csr **made_p)
{
    sps_csr *held = *held_p, *made = *made_p;
    sps_status st = SPS_OK;

    if (!held) {
        *held_p = made;
        *made_p = NULL;
        return SPS_OK;
    }
    SPS_REQUIRE(ctx, held->nnz == made->nnz, SPS_EBUG,
                "amg: new values changed a pattern");
    memcpy(held->val, made->val, (size_t)made->nnz * sizeof(double));
fail:
    return st;
}

/* Whether A B takes more than `limit` products for an entry of the level's
 * matrix; scale: from multiplications to products of node blocks, b x b in A,
 * b x q in P and A P. */
static bool too_many(const amg_level *l, const sps_csr *A, const sps_csr *B,
                     double limit, double scale)
{
    int64_t count = 0;

    for (int64_t p = 0; p < A->nnz; p++)
        count += B->rowptr[A->col[p] + 1] - B->rowptr[A->col[p]];
    return (double)count * scale > limit * (double)l->A->nnz;
}

/* P, P', A P for a level with or without smoothing; *explodes: too many
 * products. */
static sps_status try_products(sps_context *ctx, const amg_level *l,
                               const sps_csr *T, bool smooth, sps_csr *made[3],
                               bool *explodes)
{
    const double q = l->vectors;
    const double b = (double)l->n / (double)(l->nodes + !l->nodes);
    sps_status st;

    SPS_TRY(spsi_amg_prolongator(ctx, l, T, smooth, &made[0]));
    *explodes = smooth && too_many(l, l->A, made[0], AP_LIMIT, 1 / q);
    if (*explodes) return SPS_OK;
    SPS_TRY(spsi_csr_transpose(ctx, made[0], &made[1]));
    SPS_TRY(spsi_matrix_multiply(ctx, l->A, made[0], &made[2]));
    *explodes = smooth && too_many(l, made[1], made[2], PAP_LIMIT,
                                   b / (q * q));
fail:
    return st;
}

static void drop(sps_context *ctx, sps_csr *made[3])
{
    for (int t = 0; t < 3; t++) sps_csr_destroy(ctx, &made[t]);
}

/* P, P' and the matrix of the next level. */
static sps_status project(sps_context *ctx, amg_level *l, amg_level *next,
                          const sps_csr *T, bool again)
{
    sps_csr *made[3] = { NULL }, *coarse = NULL;
    bool explodes;
    sps_status st;

    if (!again) l->smoothed = true;
    SPS_TRY(try_products(ctx, l, T, l->smoothed, made, &explodes));
    if (explodes && !again) {
        drop(ctx, made);
        l->smoothed = false;
        SPS_TRY(try_products(ctx, l, T, false, made, &explodes));
    } else if (explodes) {
        SPS_TRY(spsi_fail(ctx, SPS_EBUG, "amg: new values changed a pattern"));
    }
    SPS_TRY(spsi_matrix_multiply(ctx, made[1], made[2], &coarse));
    SPS_TRY(keep(ctx, &l->P, &made[0]));
    SPS_TRY(keep(ctx, &l->R, &made[1]));
    SPS_TRY(keep(ctx, &next->own, &coarse));
fail:
    drop(ctx, made);
    sps_csr_destroy(ctx, &coarse);
    return st;
}

/* Aggregates of level l; none if they would not reduce it. */
static sps_status aggregate(sps_context *ctx, amg_level *l)
{
    sps_status st;

    SPS_TRY(l->nonsymmetric ? spsi_amg_strength_both(ctx, l, &l->strong)
                            : spsi_amg_strength(ctx, l, &l->strong));
    SPS_TRY(SPS_NEW(ctx, l->nodes + 1, &l->aggregate));
    SPS_TRY(spsi_amg_aggregate(ctx, &l->strong, l->aggregate, &l->aggregates));
    SPS_TRY(SPS_NEW(ctx, l->aggregates + 1, &l->kept));
    SPS_TRY(SPS_NEW(ctx, l->aggregates + 1, &l->place));
    spsi_free(ctx, l->strong.weight);
    l->strong.weight = NULL;
fail:
    return st;
}

/* The nodes of the next level are the aggregates of this one. */
static sps_status enter(sps_context *ctx, const amg_level *l, amg_level *next,
                        double **near_p)
{
    const size_t bytes = (size_t)(l->aggregates + 1) * sizeof *next->start;
    sps_status st = SPS_OK;

    next->A = next->own;
    next->n = next->own->nrow;
    next->vectors = l->vectors;
    next->nonsymmetric = l->nonsymmetric;
    spsi_free(ctx, next->near);
    next->near = *near_p;
    *near_p = NULL;
    if (next->start) return SPS_OK;
    next->nodes = l->aggregates;
    SPS_TRY(SPS_NEW(ctx, l->aggregates + 1, &next->start));
    memcpy(next->start, l->place, bytes);
    next->single_rows = true;
    for (int64_t a = 0; a < l->aggregates; a++)
        next->single_rows &= l->place[a + 1] - l->place[a] == 1;
fail:
    return st;
}

/* Makes the level below l; *made: there is one. */
static sps_status descend(amg *m, amg_level *l, bool again, bool *made)
{
    sps_context *ctx = m->super.ctx;
    double *near = NULL;
    sps_csr *T = NULL;
    sps_status st = SPS_OK;

    *made = false;
    if (!again) SPS_TRY(aggregate(ctx, l));
    if (l->aggregates == 0) return SPS_OK;
    SPS_TRY(spsi_amg_tentative(ctx, l, again, &T, &near));
    if (!again && (T->ncol == 0 || (double)T->ncol > SHRINKS * (double)l->n))
        goto fail;
    SPS_TRY(project(ctx, l, l + 1, T, again));
    SPS_TRY(enter(ctx, l, l + 1, &near));
    *made = true;
fail:
    sps_csr_destroy(ctx, &T);
    spsi_free(ctx, near);
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
        SPS_TRY(set_scale(m->super.ctx, l, i == 0));
        SPS_TRY(measure(m, l));
        if (i + 1 == most || l->n <= AMG_DENSE) break;
        SPS_TRY(descend(m, l, again, &made));
    }
fail:
    return st;
}
