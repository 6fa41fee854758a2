/* SPDX-License-Identifier: BSD-3-Clause */
/* factor.c - Z = A^-1 R by sparse direct factors of a library
 * (operator/direct.h): L D L' if A is symmetric, else L U.  Z has the rounding
 * errors of the factors, which the method corrects.
 *
 * An application makes one pass over the factors for all columns.  On a GPU the
 * factors stay on the host, and blocks are copied to the host and back. */
#include "driver/precond.h"

#include <stdio.h>
#include <string.h>

#include "operator/direct.h"
#include "solvers/precond/schwarz.h"

struct factor {
    sps_precond super;
    sps_direct *d;
    double *columns;          /* n x width, column-major */
    bool predicted;           /* option factors = predict: M is the identity */
};

static sps_status predict(struct factor *m)
{
    const sps_direct *d = m->d;

    spsi_note(m->super.ctx, "factor: predicted, not computed: %lld entries in "
              "the factors, %.3g operations, %.3g bytes, %.2g s",
              (long long)d->facts.entries, d->facts.flops,
              (double)d->facts.bytes, spsi_direct_factor_seconds(d));
    return spsi_direct_predict(m->d);
}

static sps_status compute(struct factor *m)
{
    sps_precond *M = &m->super;
    sps_status st;

    if (m->predicted) return predict(m);
    SPS_TRY(spsi_direct_factor(m->d, M->width));
    M->zero_pivots = M->of_block ? 0 : m->d->found.zero;
    M->zero_rows = spsi_direct_zero_rows(m->d);
    if (m->d->found.zero)
        spsi_note(M->ctx, "factor: %lld of %lld pivots are zero up to "
                  "rounding: the matrix%s is singular",
                  (long long)m->d->found.zero, (long long)M->n,
                  M->of_block ? "'s diagonal block of this process" : "");
    if (M->A->props & SPS_SPD && m->d->found.negative)
        spsi_note(M->ctx, "factor: %lld pivots are negative: the matrix is not "
                  "positive definite", (long long)m->d->found.negative);
fail:
    return st;
}

static sps_status build(sps_precond *M, const sps_options *opt)
{
    struct factor *m = (struct factor *)M;
    sps_status st;

    m->predicted = !strcmp(opt->factors, "predict");
    SPS_TRY(spsi_direct_analyse(M->A, 0, &m->d));
    SPS_TRY(compute(m));
    SPS_TRY(SPS_NEW(M->ctx, M->n * M->width, &m->columns));
fail:
    return st;
}

/* The symbolic analysis is kept, unless the new values are less symmetric. */
static sps_status update(sps_precond *M)
{
    struct factor *m = (struct factor *)M;
    sps_direct *d = NULL;
    bool symmetric = true;
    sps_status st = SPS_OK;

    if (m->d->kind != SPS_FACTOR_GENERAL)
        SPS_TRY(spsi_operator_symmetric(M->A, &symmetric, NULL));
    if (!symmetric) {
        SPS_TRY(spsi_direct_analyse(M->A, 0, &d));
        spsi_direct_destroy(&m->d);
        m->d = d;
    }
    SPS_TRY(compute(m));
fail:
    return st;
}

static sps_status apply(const sps_precond *M, const sps_block *R, sps_block *Z)
{
    const struct factor *m = (const struct factor *)M;
    const int64_t ld = M->n > 0 ? M->n : 1;
    sps_status st, solved;

    if (m->predicted) return spsi_copy(R, Z);
    SPS_TRY(sps_block_get(R, 0, R->k, m->columns, ld, SPS_COL_MAJOR, SPS_HOST));
    solved = spsi_direct_solve(m->d, m->columns, R->k);
    SPS_TRY(sps_block_set(Z, 0, Z->k, m->columns, ld, SPS_COL_MAJOR, SPS_HOST));
    st = solved;
fail:
    return st;
}

static void destroy(sps_precond *M)
{
    struct factor *m = (struct factor *)M;

    spsi_direct_destroy(&m->d);
    spsi_free(M->ctx, m->columns);
}

static size_t describe(const sps_precond *M, char *text, size_t size)
{
    static const char *const kinds[] = { "L U", "L D L'",
                                         "L D L' without pivoting" };
    const struct factor *m = (const struct factor *)M;
    const sps_direct *d = m->d;
    const sps_factor_facts *f = m->predicted ? &d->facts : &d->found;

    return (size_t)snprintf(text, size, "factor: %s by %s, %lld entries in the "
                            "factors, %.3g operations\n", kinds[d->kind],
                            d->library->name, (long long)f->entries, f->flops);
}

SPS_DEFINE(sps_precond_type, spsi_precond_factor) = {
    .name = "factor", .needs = SPS_NEEDS_CSR, .symmetric = true,
    .ranks = SPS_RANKS_OWN, .over = spsi_schwarz_over,
    .size = sizeof(struct factor), .build = build, .update = update,
    .apply = apply, .destroy = destroy, .describe = describe,
};
