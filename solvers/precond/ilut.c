/* SPDX-License-Identifier: BSD-3-Clause */
/* ilut.c - Z = U^-1 L^-1 R, where L and U are incomplete factors with a drop
 * tolerance and column pivoting (Saad, Numer. Linear Algebra Appl. 1, 1994) of
 * the matrix scaled and ordered by prepare.c.  Options:
 *
 *   droptol   entries below this fraction of their row's norm are dropped
 *   fill      a row of L, and a row of U, has at most this many times the mean
 *             number of entries of a row of A
 *
 * With a small droptol and a large fill this is a sparse direct factorisation,
 * accurate to the last digits except for pivots that vanished, which a note
 * reports.  The time limit of the options applies to the whole build. */
#include "solvers/precond/incomplete.h"
#include "solvers/precond/prepare.h"
#include "operator/direct.h"
#include "solvers/precond/schwarz.h"

#include <math.h>

#define PIVOT 0.1

struct ilut {
    sps_precond super;
    struct factors f;
    sps_options opt;          /* options of the build, for later updates */
    double worth;             /* at the build: largest predicted seconds of
                                 factors, 0 if there is no limit
                                 (sps_operator_cache.worth) */
};

static bool complete(const struct ilut *m) { return m->opt.droptol == 0; }

/* Returns the largest number of entries in a row of L, and of U. */
static double longest_row(const sps_precond *M, const sps_options *opt,
                          const struct prepared *p)
{
    const double mean = M->n ? (double)p->B->nnz / (double)M->n : 1;

    return fmin(ceil(opt->fill * mean), (double)M->n + 1);
}

/* Refuses factors that are not worth their time.  Its prediction is that of
 * complete ones, within the limit of fill. */
static sps_status weigh(const struct ilut *m, const struct prepared *p)
{
    const sps_csr *A = m->super.A->A;
    const double n = (double)A->nrow, most = longest_row(&m->super, &m->opt, p);
    const double entries = fmin(p->fill.entries, n * most);
    const double operations = fmin(p->fill.operations, n * most * most);
    const sps_core *c = &m->super.ctx->machine.core;
    const double seconds = c->rows.row * n + c->rows.entry * (double)A->nnz +
                           c->rows.fill * entries + c->rows.flop * operations;
    const double other = spsi_direct_seconds(m->super.A, p->fill.entries,
                                             p->fill.operations);
    const double worth = complete(m) ? fmin(m->worth, other) : m->worth;
    sps_status st = SPS_OK;

    SPS_REQUIRE(m->super.ctx, m->worth <= 0 || seconds <= worth, SPS_EUNFIT,
                "ilut: %.2g entries and %.2g operations would take longer than "
                "other methods are expected to take", 2 * entries, operations);
fail:
    return st;
}

static sps_status factor(struct ilut *m, const struct prepared *p,
                         sps_ilut_result *r)
{
    sps_precond *M = &m->super;
    const sps_options *opt = &m->opt;
    const sps_ilut_options o = {
        .drop = opt->droptol, .pivot = PIVOT,
        .most = (int64_t)longest_row(M, opt, p),
    };
    sps_status st;

    SPS_TRY(spsi_matrix_ilut(M->ctx, p->B, &o, r));
    SPS_REQUIRE(M->ctx, r->L, SPS_EUNFIT, "ilut: only %lld of %lld rows "
                "were factored within the time limit; a larger droptol or a "
                "smaller fill takes less time", (long long)r->rows,
                (long long)M->n);
    SPS_REQUIRE(M->ctx, m->worth <= 0 || !complete(m) || !r->replaced,
                SPS_EUNFIT, "ilut: %lld pivot%s of complete factors %s zero "
                "up to rounding", (long long)r->replaced,
                r->replaced == 1 ? "" : "s", r->replaced == 1 ? "is" : "are");
    if (r->replaced)
        spsi_note(M->ctx, "ilut: %lld pivot%s replaced by small values",
                  (long long)r->replaced,
                  r->replaced == 1 ? " vanished and was"
                                   : "s vanished and were");
fail:
    return st;
}

static sps_status make(struct ilut *m)
{
    sps_precond *M = &m->super;
    struct prepared p = { 0 };
    sps_ilut_result r = { 0 };
    sps_csr *L, *U;
    double *inverse;
    sps_status st;

    SPS_TRY(spsi_prepare(M, &m->opt, m->opt.fill < 3, &p));
    SPS_TRY(weigh(m, &p));
    SPS_TRY(SPS_NEW(M->ctx, M->n, &r.inverse));
    SPS_TRY(SPS_NEW(M->ctx, M->n, &r.column));
    SPS_TRY(factor(m, &p, &r));
    SPS_TRY(spsi_check_deadline(M->ctx, "ilut"));
    L = r.L;
    U = r.U;
    inverse = r.inverse;
    r.L = NULL;
    SPS_TRY(spsi_prepared_lower(M->ctx, &p, L, &m->f.L));
    r.U = NULL;
    r.inverse = NULL;
    SPS_TRY(spsi_prepared_upper(M->ctx, &p, U, inverse, r.column, &m->f.U));
fail:
    spsi_prepared_clear(M->ctx, &p);
    sps_csr_destroy(M->ctx, &r.L);
    sps_csr_destroy(M->ctx, &r.U);
    spsi_free(M->ctx, r.inverse);
    spsi_free(M->ctx, r.column);
    return st;
}

static sps_status build(sps_precond *M, const sps_options *opt)
{
    struct ilut *m = (struct ilut *)M;
    sps_status st;

    m->opt = *opt;
    m->worth = M->A->cache->worth;
    SPS_TRY(make(m));
    SPS_TRY(sps_block_create(M->ctx, M->n, M->width, &m->f.W));
fail:
    return st;
}

/* The pattern of the factors depends on the values, so everything is computed
 * again. */
static sps_status update(sps_precond *M)
{
    struct ilut *m = (struct ilut *)M;
    struct factors old = { m->f.L, m->f.U, NULL };
    sps_status st;

    m->f.L = m->f.U = NULL;
    SPS_TRY(make(m));
    spsi_factors_clear(&old);
    return SPS_OK;

fail:
    spsi_triangle_destroy(&m->f.L);
    spsi_triangle_destroy(&m->f.U);
    m->f.L = old.L;
    m->f.U = old.U;
    return st;
}

static sps_status apply(const sps_precond *M, const sps_block *R, sps_block *Z)
{
    return spsi_factors_apply(&((const struct ilut *)M)->f, R, Z);
}

static void destroy(sps_precond *M)
{
    spsi_factors_clear(&((struct ilut *)M)->f);
}

SPS_DEFINE(sps_precond_type, spsi_precond_ilut) = {
    .name = "ilut", .needs = SPS_NEEDS_CSR, .size = sizeof(struct ilut),
    .ranks = SPS_RANKS_OWN, .over = spsi_schwarz_over,
    .build = build, .update = update, .apply = apply, .destroy = destroy,
};
