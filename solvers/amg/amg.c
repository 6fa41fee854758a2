/* SPDX-License-Identifier: BSD-3-Clause */
/* amg.c - Z = M R, where M is one V-cycle of multigrid by smoothed aggregation
 * (amg.h lists the stages).  It is for symmetric positive semidefinite matrices
 * and, with GMRES, for others with a positive diagonal (nonsymmetric.c).
 *
 * After set-up, and after new values, the cycle is tested as an iteration on A
 * x = 0: from random x, x <- x - M A x must reduce x'A x, or x'x if A is far
 * from symmetric.  A cycle that does not reduce it is rejected; one that
 * reduces it slowly is used, with a note.
 *
 * In the norm of a symmetric A the rates of successive cycles do not decrease:
 * each takes away most of what it reduces best, and the share of what it
 * reduces badly grows.  Where the rate is small and has nearly stopped growing,
 * or is still small in the third cycle, the remaining cycles of the test are
 * left out. */
#include "solvers/amg/amg.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TESTS = 4, TEST_COLUMNS = 2 };
#define SLOW 0.7
#define FAST 0.4             /* the test of the cycle may end early if the rate
                                is below this number */
#define STEADY 1.35          /* and below this number times the rate of the
                                cycle before, */
#define GOOD 0.24            /* or if the rate of the third cycle is below this
                                number: of the cycles of doc/data/amg_auto.tsv
                                that are not steady, those whose rates go on to
                                0.5 have more there */

/* ----------------------------------------------------------------- the test */

/* Y = A X; *size = the largest sqrt(x'A x) of all columns x of X, or the
 * largest sqrt(x'x) if A is far from symmetric. */
static sps_status energy(const amg *m, const sps_block *X, sps_block *Y,
                         double *size)
{
    double dot[TEST_COLUMNS];
    sps_status st;

    SPS_TRY(sps_operator_apply(m->super.A, 1.0, X, 0.0, Y));
    SPS_TRY(spsi_dots(X, m->level[0].nonsymmetric ? X : Y, dot));
    *size = 0;
    for (int j = 0; j < X->k; j++)
        if (!(sqrt(fmax(dot[j], 0)) <= *size))
            *size = isnan(dot[j]) ? NAN : sqrt(fmax(dot[j], 0));
fail:
    return st;
}

/* Returns whether more cycles would change the measured rate little; last: rate
 * of the cycle before.  Without symmetry rates need not ascend, and the answer
 * is no. */
static bool is_settled(const amg *m, double last)
{
    const double rate = m->super.rate;

    return m->tests >= 2 && !m->level[0].nonsymmetric &&
           ((rate < FAST && rate < STEADY * last) ||
            (m->tests >= 3 && rate < GOOD));
}

static sps_status measure_rate(amg *m, sps_block *X, sps_block *Y,
                               sps_block *Z)
{
    double first, before, now, last = 0;
    sps_status st;

    SPS_TRY(sps_block_random(X, 11));
    SPS_TRY(energy(m, X, Y, &first));
    now = first;
    m->super.rate = 0;
    m->tests = 0;
    while (m->tests < TESTS && !(now <= 1e-10 * first) &&
           !is_settled(m, last)) {
        before = now;
        last = m->super.rate;
        SPS_TRY(sps_precond_apply(&m->super, Y, Z));
        SPS_TRY(spsi_axpby(-1.0, Z, 1.0, X));
        SPS_TRY(energy(m, X, Y, &now));
        m->super.rate = now / before;
        m->tests++;
    }
fail:
    return st;
}

sps_status spsi_amg_test(amg *m)
{
    sps_context *ctx = m->super.ctx;
    const int k = m->super.width < TEST_COLUMNS ? m->super.width : TEST_COLUMNS;
    sps_block *X = NULL, *Y = NULL, *Z = NULL;
    sps_status st;

    if (m->inherited) return SPS_OK;   /* the levels below others */
    SPS_TRY(sps_block_create(ctx, m->super.n, k, &X));
    SPS_TRY(sps_block_create(ctx, m->super.n, k, &Y));
    SPS_TRY(sps_block_create(ctx, m->super.n, k, &Z));
    SPS_TRY(measure_rate(m, X, Y, Z));
    SPS_REQUIRE(ctx, m->super.rate < 1, SPS_EUNFIT, "amg: a cycle changes the "
                "error by a factor of %.3g, which does not converge: the "
                "matrix is not positive definite, or its near-null vectors are "
                "not those that were given; use auto", m->super.rate);
    if (m->super.rate > SLOW)
        spsi_note(ctx, "amg: a cycle leaves %.2f of the error; for elasticity "
                  "give the coordinates of the nodes, and compare the time "
                  "with preconditioner auto",
                  m->super.rate);
fail:
    sps_block_destroy(&X);
    sps_block_destroy(&Y);
    sps_block_destroy(&Z);
    return st;
}

/* ---------------------------------------------------------------- the table */

/* Opens the finest level where the operator's matrix is stored. */
static sps_status take_part(amg *m)
{
    const sps_csr_local *A = &m->super.A->local;
    amg_level *l = &m->level[0];
    sps_status st;

    SPS_TRY(l->part ? m->device->renew(l->part, A)
                    : m->device->open(m->super.ctx, A, &l->part));
    l->A = m->device->matrix(l->part);
    l->n = A->nrow;
fail:
    return st;
}

/* Sets the matrix of the finest level: on the host the caller's, or a copy in
 * double precision if that is in single precision; otherwise the matrix in the
 * place where it is stored. */
static sps_status take_matrix(amg *m)
{
    const sps_csr *A = m->super.A->A;
    sps_status st = SPS_OK;

    if (m->device) return take_part(m);
    SPS_TRY(spsi_operator_fetch(m->super.A));
    m->level[0].A = A;
    m->level[0].n = A->nrow;
    if (A->dtype == SPS_F64) return SPS_OK;
    if (!m->copy)
        SPS_TRY(sps_csr_create(m->super.ctx, A->nrow, A->ncol, A->nnz, SPS_F64,
                               &m->copy));
    for (int64_t i = 0; i <= A->nrow; i++) m->copy->rowptr[i] = A->rowptr[i];
    for (int64_t p = 0; p < A->nnz; p++) {
        m->copy->col[p] = A->col[p];
        ((double *)m->copy->val)[p] = spsi_csr_value(A, p);
    }
    m->level[0].A = m->copy;
fail:
    return st;
}

/* Returns the number of entries of all levels divided by that of A. */
static double complexity(const amg *m)
{
    double entries = 0;

    for (int i = 0; i < m->levels; i++) entries += (double)m->level[i].A->nnz;
    return entries / fmax(1, (double)m->level[0].A->nnz);
}

static const char *smoother(const amg *m)
{
    return m->level[0].nonsymmetric ? "damped Jacobi" : "smoother";
}

/* Returns the finest level with a smoother. */
static const amg_level *finest_smoothed(const amg *m)
{
    const amg_level *l = m->level;

    while (l->eliminates) l++;
    return l;
}

static void note(const amg *m)
{
    char rows[12 * AMG_LEVELS] = "";
    int length = 0;
    const bool stalls = m->level[m->levels - 1].n > AMG_DENSE;
    bool rough = false, removes = false;

    for (int i = 0; i < m->levels; i++) {
        const amg_level *l = &m->level[i];

        length += snprintf(rows + length, sizeof rows - (size_t)length,
                           "%s%lld", i ? ", " : "", (long long)l->n);
        rough = rough || (i + 1 < m->levels && !l->smoothed && !l->eliminates);
        removes = removes || l->eliminates;
    }
    spsi_note(m->super.ctx, "amg: %d level%s of %s rows, %.2f times the "
              "entries of the matrix, %s of degree %d%s%s; a cycle leaves %.2f "
              "of the error%s", m->levels,
              m->levels == 1 ? "" : "s", rows, complexity(m), smoother(m),
              finest_smoothed(m)->smoother.degree, removes ? ", nodes of one "
              "or two neighbours eliminated" : "",
              rough ? ", prolongators not smoothed" : "", m->super.rate,
              stalls ? "; the last one has too few strong couplings for "
                       "another" : "");
}

void spsi_amg_say_rate(const amg *m, char *text, size_t size)
{
    const char *floats = m->floats ? "single" : "double";

    if (m->inherited)
        (void)snprintf(text, size, "cycles in %s precision", floats);
    else
        (void)snprintf(text, size, "a cycle, in %s precision, leaves %.2f of "
                       "the error", floats, m->super.rate);
}

static size_t describe(const sps_precond *M, char *text, size_t size)
{
    const amg *m = (const amg *)M;
    char rate[80];
    size_t length;

    spsi_amg_say_rate(m, rate, sizeof rate);
    length = (size_t)snprintf(
        text, size, "amg: %.2f times the entries of the matrix; %s\n"
        "level      rows     entries  a row  %s\n", complexity(m), rate,
        smoother(m));

    for (int i = 0; i < m->levels; i++) {
        const amg_level *l = &m->level[i];
        const bool dense = i + 1 == m->levels && m->inverse;
        char how[80] = "dense inverse";

        if (l->eliminates)
            snprintf(how, sizeof how, "nodes eliminated");
        else if (!dense)
            snprintf(how, sizeof how, "degree %d to %.3f%s", l->smoother.degree,
                     l->smoother.upper, i + 1 < m->levels && !l->smoothed
                                   ? ", prolongator not smoothed" : "");
        length += (size_t)snprintf(
            length < size ? text + length : NULL,
            length < size ? size - length : 0, "%5d %9lld %11lld %6.1f  %s\n",
            i, (long long)l->n, (long long)l->A->nnz,
            (double)l->A->nnz / fmax(1, (double)l->n), how);
    }
    return length;
}

/* Moves the finest level from the place of the matrix to the host. */
static sps_status leave_part(amg *m)
{
    m->device->close(&m->level[0].part);
    m->device = NULL;
    return take_matrix(m);
}

/* Decides whether A is symmetric; a matrix that is not is set up on the
 * host. */
static sps_status look_at_symmetry(amg *m)
{
    const sps_precond *M = &m->super;
    sps_coarse *part = m->level[0].part;
    bool symmetric = M->A->props & (SPS_SYMMETRIC | SPS_SPD);
    double difference;
    sps_status st = SPS_OK;

    if (!symmetric)
        SPS_TRY(part ? m->device->symmetric(part, 1e-10, &symmetric,
                                            &difference)
                     : sps_csr_symmetric(M->ctx, M->A->A, 1e-10, &symmetric,
                                         NULL));
    if (!symmetric && part) SPS_TRY(leave_part(m));
    if (!symmetric)
        SPS_TRY(spsi_amg_far_from_symmetric(M->ctx, m->level[0].A,
                                            &m->level[0].nonsymmetric));
fail:
    return st;
}

static sps_status set_up(amg *m, const sps_options *opt)
{
    sps_precond *M = &m->super;
    sps_status st;

    SPS_TRY(take_matrix(m));
    SPS_TRY(look_at_symmetry(m));
    SPS_TRY(spsi_amg_near_null(m, opt, &m->level[0]));
    SPS_TRY(spsi_amg_levels(m, false));
    SPS_TRY(spsi_amg_coarsest(m));
    M->products = m->levels == 1          ? 0
                : m->level[0].eliminates ? 1 : 2 * m->level[0].smoother.degree;
    SPS_TRY(spsi_amg_open(m));
    SPS_TRY(spsi_amg_test(m));
    note(m);
fail:
    return st;
}

static sps_status build(sps_precond *M, const sps_options *opt)
{
    amg *m = (amg *)M;
    const sps_coarsening *device;
    sps_status st;

    SPS_REQUIRE(M->ctx, opt->degree <= AMG_DEGREE, SPS_EINVAL, "degree=%d: "
                "the smoother of amg supports 1 to %d, and 0 chooses the "
                "degree", opt->degree,
                AMG_DEGREE);
    SPS_REQUIRE(M->ctx, !M->A->local.far, SPS_EUNFIT, "amg: the matrix is in "
                "host memory because the GPU has no room for it, and so none "
                "for its levels");
    m->wanted_degree = opt->degree;
    m->floats = strcmp(opt->precision, "double") != 0;
    if (!M->single && M->A->A->nnz > 0) m->device = spsi_coarsening(M->ctx);
    device = m->device;
    if (device) device->begin(M->ctx);
    st = set_up(m, opt);
    if (device) device->end(M->ctx);
fail:
    return st;
}

static sps_status set_up_again(amg *m)
{
    sps_status st;

    SPS_TRY(take_matrix(m));
    if (m->inherited) SPS_TRY(spsi_amg_inherit(m, &m->level[0]));
    SPS_TRY(spsi_amg_levels(m, true));
    SPS_TRY(spsi_amg_coarsest(m));
    SPS_TRY(spsi_amg_refresh(m));
    SPS_TRY(spsi_amg_test(m));
fail:
    return st;
}

static sps_status update(sps_precond *M)
{
    amg *m = (amg *)M;
    sps_status st;

    if (m->device) m->device->begin(M->ctx);
    st = set_up_again(m);
    if (m->device) m->device->end(M->ctx);
    return st;
}

static sps_status apply(const sps_precond *M, const sps_block *R, sps_block *Z)
{
    return M->n == 0 ? SPS_OK : spsi_amg_apply((const amg *)M, R, Z);
}

static sps_status subtract(const sps_precond *M, const sps_block *Q,
                           const sps_small *a, sps_block *R, sps_small *norm2,
                           bool *served)
{
    return spsi_amg_subtract((const amg *)M, Q, a, R, norm2, served);
}

void spsi_amg_destroy(sps_precond *M)
{
    amg *m = (amg *)M;

    spsi_amg_close(m);
    for (int i = 0; i < AMG_LEVELS; i++) {
        amg_level *l = &m->level[i];

        if (l->part) m->device->close(&l->part);
        sps_csr_destroy(M->ctx, &l->own);
        sps_csr_destroy(M->ctx, &l->P);
        sps_csr_destroy(M->ctx, &l->R);
        sps_csr_destroy(M->ctx, &l->AP);
        spsi_amg_graph_free(M->ctx, &l->strong);
        spsi_free(M->ctx, l->start);
        spsi_free(M->ctx, l->scale);
        spsi_free(M->ctx, l->near);
        spsi_free(M->ctx, l->aggregate);
        spsi_free(M->ctx, l->kept);
        spsi_free(M->ctx, l->place);
    }
    sps_csr_destroy(M->ctx, &m->inverse);
    sps_csr_destroy(M->ctx, &m->copy);
}

SPS_DEFINE(sps_precond_type, spsi_precond_amg) = {
    .name = "amg", .floats = true, .symmetric = true,
    .needs = SPS_NEEDS_CSR | SPS_READS_THERE, .size = sizeof(amg),
    .ranks = SPS_RANKS_OWN, .over = spsi_amg_whole,
    .build = build, .update = update, .apply = apply,
    .subtract = subtract, .destroy = spsi_amg_destroy,
    .describe = describe,
};
