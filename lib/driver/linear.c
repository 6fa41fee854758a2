/* SPDX-License-Identifier: BSD-3-Clause */
/* linear.c - creation of a linear solver: method names, requirements on the
 * matrix, memory.  All memory that a solve uses is allocated here, apart from
 * that of the fallback of solver auto. */
#include "core/comm.h"
#include "driver/linear.h"
#include "operator/operator_ranks.h"

#include <string.h>

#include "core/options.h"
#include "block/single.h"
#include "core/timer.h"

const sps_linear_type *spsi_linear_type(const char *name)
{
    for (int i = 0; spsi_solvers[i]; i++)
        if (!strcmp(spsi_solvers[i]->name, name)) return spsi_solvers[i];
    return NULL;
}

/* Returns whether the mixed-precision variant of the method is selected. */
static bool mixed(const sps_linear_type *type, const sps_options *opt)
{
    return type->mixed && !strcmp(opt->precision, "mixed");
}

/* Checks that A is symmetric, for methods that need it: by the caller's
 * declaration, or by comparison with its transpose.  The real form of a complex
 * matrix is symmetric if the complex one is Hermitian. */
static sps_status check_symmetry(sps_linear *s)
{
    sps_status st = SPS_OK;
    const sps_operator *A = s->A;
    bool symmetric = (A->props & (SPS_SYMMETRIC | SPS_SPD)) != 0;
    bool complex = A->A && (A->A->props & SPS_INTERLEAVED);
    double difference = 0;

    if (!symmetric && A->ranks)
        SPS_TRY(spsi_ranks_symmetric(A, 1e-10, &symmetric, &difference));
    else if (!symmetric && A->A)
        SPS_TRY(spsi_operator_symmetric(A, &symmetric, NULL));
    if (!symmetric && A->A)
        SPS_TRY(spsi_operator_symmetric(A, &symmetric, &difference));
    SPS_REQUIRE(s->ctx, symmetric || A->A || A->ranks, SPS_EUNFIT,
                "%s needs a symmetric operator; if it is symmetric, declare "
                "it SPS_SYMMETRIC", s->method.type->name);
    SPS_REQUIRE(s->ctx, symmetric, SPS_EUNFIT,
                "the matrix is not %s: it differs from its %stranspose by up "
                "to %.3g; %s needs that; the default solver chooses a method "
                "that does not",
                complex ? "Hermitian" : "symmetric",
                complex ? "conjugate " : "", difference, s->method.type->name);
fail:
    return st;
}

static sps_status check_needs(sps_linear *s)
{
    const int64_t scale = s->A->props & SPS_INTERLEAVED ? 2 : 1;
    sps_status st = SPS_OK;

    SPS_REQUIRE(s->ctx, !s->A->ranks ||
                !(s->method.type->needs & SPS_LEAST_SQUARES), SPS_EUNFIT,
                "%s needs products with the transpose, which a matrix over "
                "several processes does not have", s->method.type->name);
    if (s->method.type->needs & SPS_LEAST_SQUARES) return SPS_OK;
    SPS_REQUIRE(s->ctx, s->A->n == s->A->ncol, SPS_EUNFIT,
                "the matrix is %lld x %lld; %s needs a square one: use a "
                "method of least squares, or the default solver, which "
                "chooses one",
                (long long)(s->A->n / scale), (long long)(s->A->ncol / scale),
                s->method.type->name);
    SPS_REQUIRE(s->ctx, s->opt.damp == 0, SPS_EUNFIT, "damp = %g is for "
                "methods of least squares, and %s is not one: use "
                "one of these, or the default solver",
                s->opt.damp, s->method.type->name);
    if (s->method.type->needs & (SPS_NEEDS_SYMMETRIC | SPS_NEEDS_SPD))
        SPS_TRY(check_symmetry(s));
fail:
    return st;
}

/* Called if the time limit expired before the requested preconditioner was
 * built: a cheap one replaces it, so that one iteration can be made. */
static sps_status substitute(sps_linear *s)
{
    const char *name = spsi_precond_always()->name;

    spsi_note(s->ctx, "%s; %s is used instead", sps_context_error(s->ctx),
              name);
    return spsi_precond_named(s->A, s->columns, name, &s->opt,
                              SPS_PASSES_LINEAR, &s->M);
}

/* Creates A'.  With both products in one pass it only serves to verify. */
static sps_status take_products(sps_linear *s)
{
    const sps_operator *A = s->A;
    sps_status st = SPS_OK;

    s->least.T = A;
    if (A->props & (SPS_SYMMETRIC | SPS_SPD)) return st;
    if (A->A) {
        SPS_TRY(spsi_operator_fetch(A));
        SPS_TRY(spsi_two_way_create(s->ctx, A->A, s->columns,
                                    &s->least.both));
    }
    SPS_TRY(spsi_operator_transposed(A, &s->opt, s->columns, &s->made.own_T));
    s->least.T = s->made.own_T;
fail:
    return st;
}

/* Creates A' and the column scaling, which a method of least squares has in
 * place of preconditioner and null space.  By default there is no scaling,
 * since it changes which solution has the smallest norm. */
static sps_status take_least_squares(sps_linear *s, const sps_precond *M)
{
    const char *name = s->opt.precond, *null = s->opt.nullspace;
    sps_status st = SPS_OK;

    SPS_REQUIRE(s->ctx, !M, SPS_EUNFIT, "%s does not accept a "
                "preconditioner of the caller; option precond may select a "
                "scaling of the columns",
                s->method.type->name);
    if (s->opt.nullspace_basis || (strcmp(null, "auto") &&
                                   strcmp(null, "none")))
        spsi_note(s->ctx, "%s: option nullspace has no effect, since this "
                  "method finds the solution of least norm",
                  s->method.type->name);
    SPS_TRY(take_products(s));
    if (!strcmp(name, "none") || !strcmp(name, "auto")) return st;
    SPS_TRY(spsi_precond_columns(s->A, s->columns, name, &s->opt, &s->M));
    s->made.own_M = true;
fail:
    return st;
}

static sps_status take_precond(sps_linear *s, sps_precond *M)
{
    sps_status st = SPS_OK;
    const char *name = s->opt.precond;
    const bool conjugate = s->method.type->needs & SPS_NEEDS_SPD &&
                           !(s->method.type->needs & SPS_WANTS_DIAGONAL);

    s->M = M;
    if (M) {
        SPS_REQUIRE(s->ctx, M->ctx == s->ctx, SPS_EINVAL,
                    "matrix and preconditioner belong to different contexts");
        SPS_REQUIRE(s->ctx, !M->A || M->width >= s->columns, SPS_ESHAPE,
                    "the preconditioner was made for blocks of %d columns, "
                    "there are %d right-hand sides", M->width, s->columns);
        SPS_REQUIRE(s->ctx, M->n == s->n, SPS_ESHAPE,
                    "the preconditioner has %lld rows, the matrix %lld",
                    (long long)M->n, (long long)s->n);
        return st;
    }
    if (!strcmp(name, "auto") && !s->A->A && !s->A->ranks && !s->A->diagonal)
        name = "none";
    if (!strcmp(name, "none")) return st;
    s->opt.precond = name;
    st = spsi_precond_create(s->A, s->columns, &s->opt, conjugate,
                             SPS_PASSES_LINEAR, &s->M);
    if (st == SPS_EUNFIT && !s->made.owned && spsi_expired(s->ctx))
        st = substitute(s);
    s->made.own_M = st == SPS_OK;
fail:
    return st;
}

/* Refinement in single precision supports a diagonal M only; with a stronger M
 * the method in double precision is faster. */
static void consider_mixed(sps_linear *s)
{
    if (!mixed(s->method.type, &s->opt) ||
        (s->M && !s->M->identity && !s->M->diagonal))
        return;
    s->method.type = spsi_linear_type(s->method.type->mixed);
    s->method.fallback = spsi_linear_type(s->method.type->fallback);
    s->method.chosen = s->method.type;
}

static sps_status take_arrays(sps_linear *s)
{
    sps_linear_rhs *b = &s->rhs;
    sps_linear_best *best = &s->best;
    sps_linear_result *r = &s->result;
    double **const numbers[] = {
        &s->resnorm, &s->queue.limit, &b->scale, &b->norm, &b->outside,
        &b->norm_own, &b->norm_x, &b->norm_start, &b->threshold, &b->relative,
        &best->norm, &best->checked, &best->least, &best->gap, &best->peak,
        &r->residual, &r->backward, &r->range, &r->normal,
        &s->least.normal, NULL };
    sps_owner *own = &s->made.own;
    sps_status st = SPS_OK;
    int k = s->columns;

    SPS_TRY(spsi_own_numbers(own, k, numbers));
    SPS_TRY(SPS_OWN(own, SPS_LINEAR_QUEUE * (int64_t)k, &s->queue.norms));
    SPS_TRY(SPS_OWN(own, k, &s->at.column));
    SPS_TRY(SPS_OWN(own, 3 * (int64_t)k, &s->at.order));
    SPS_TRY(SPS_OWN(own, k, &s->at.done));
    SPS_TRY(SPS_OWN(own, k, &best->due));
    SPS_TRY(SPS_OWN(own, 2 * (int64_t)k, &s->scratch.numbers));
    SPS_TRY(SPS_OWN(own, k, &r->column));
fail:
    return st;
}

static sps_status take_blocks(sps_linear *s)
{
    sps_owner *own = &s->made.own;
    sps_status st = SPS_OK;
    const int64_t most = s->n > s->least.nrow ? s->n : s->least.nrow;
    int blocks = s->method.type->blocks;

    if (s->method.fallback && s->method.fallback->blocks > blocks)
        blocks = s->method.fallback->blocks;
    SPS_TRY(spsi_reserve(s->ctx, most, s->columns));
    if (s->made.null)
        SPS_TRY(spsi_own_block(own, s->n, s->columns, &s->rhs.projected));
    for (int i = 0; i < blocks; i++)
        SPS_TRY(spsi_own_block(own, most, s->columns, &s->work[i]));
fail:
    return st;
}

sps_status spsi_linear_fallback(sps_linear *s)
{
    sps_linear_method *m = &s->method;
    sps_status st = SPS_OK;

    if (!m->fallback || m->complete) return SPS_OK;
    SPS_TRY(m->fallback->setup(s, m->fallback_data));
    m->complete = true;
fail:
    return st;
}

/* Creates the structs of the method and of its fallback.  They are exchanged
 * when the fallback takes over.  They are listed with the owner before what
 * they contain, and so released after it.  What the fallback of a step of auto,
 * which belongs to another solver, or of a method on trial contains is made
 * when that takes over. */
static sps_status take_methods(sps_linear *s)
{
    sps_linear_method *m = &s->method;
    sps_status st = SPS_OK;

    s->k = s->columns;
    SPS_TRY(spsi_own_array(&s->made.own, 1, m->type->size, &m->data));
    if (m->fallback)
        SPS_TRY(spsi_own_array(&s->made.own, 1, m->fallback->size,
                               &m->fallback_data));
    SPS_TRY(m->type->setup(s, m->data));
    if (!s->made.owned && !m->trial) SPS_TRY(spsi_linear_fallback(s));
fail:
    return st;
}

static sps_status take_all(sps_linear *s, const sps_linear_args *a)
{
    sps_status st;

    SPS_TRY(check_needs(s));
    if (s->method.type->needs & SPS_LEAST_SQUARES) {
        SPS_TRY(take_least_squares(s, a->M));
    } else {
        SPS_TRY(take_precond(s, a->M));
        if (a->mixed) consider_mixed(s);
        SPS_TRY(spsi_nullspace_create(s->A, s->columns, &s->opt,
                                      &s->made.null));
        SPS_TRY(spsi_precond_symmetry_create(s));
    }
    SPS_TRY(take_arrays(s));
    SPS_TRY(take_blocks(s));
    SPS_TRY(take_methods(s));
    SPS_TRY(spsi_residual_create(s));
    SPS_TRY(spsi_own_block_or_host(&s->made.own, s->n, s->columns,
                                   &s->best.block));
fail:
    return st;
}

sps_status spsi_linear_create(const sps_linear_args *a, sps_linear **s_p)
{
    sps_context *ctx = a->A->ctx;
    const double before = spsi_deadline_begin(ctx, a->opt->max_seconds);
    sps_linear *s = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, 1, &s));
    s->ctx = s->made.own.ctx = ctx;
    s->A = a->A;
    s->n = a->A->ncol;
    s->least.nrow = a->A->n;
    SPS_TRY(spsi_comm_rows(ctx, s->n, a->A->A != NULL, &s->rows));
    s->made.version = a->A->version;
    s->columns = a->k;
    s->made.owned = a->owned;
    s->opt = *a->opt;
    s->method.type = s->method.chosen = a->type;
    s->method.fallback = a->fallback;
    s->method.trial = a->trial;
    s->method.single = spsi_options_single(&s->opt, "single_basis");
    SPS_TRY(take_all(s, a));
    if (!s->made.owned && !s->method.type->widen &&
        !strcmp(s->opt.precision, "single_basis"))
        spsi_note(ctx, "%s: precision single_basis has no effect",
                  s->method.type->name);
    s->made.setup = s->made.owned ? 0 : spsi_agreed_now(ctx) - a->began;
    *s_p = s;
    spsi_deadline_end(ctx, before);
    return SPS_OK;

fail:
    spsi_deadline_end(ctx, before);
    spsi_linear_destroy(&s);
    return st;
}

sps_status spsi_linear_named(const sps_linear_args *a, const char *name,
                             sps_linear **s_p)
{
    sps_linear_args named = *a;

    named.type = spsi_linear_type(name);
    if (mixed(named.type, a->opt))
        named.type = spsi_linear_type(named.type->mixed);
    if (named.type->fallback)
        named.fallback = spsi_linear_type(named.type->fallback);
    return spsi_linear_create(&named, s_p);
}

sps_status spsi_linear_make(const sps_linear_args *a,
                            const sps_solver_ops **ops, void **of)
{
    const sps_linear_type *type = spsi_linear_type(a->opt->solver);
    sps_linear *s = NULL;
    sps_status st = SPS_OK;

    SPS_REQUIRE(a->A->ctx, type, SPS_EINVAL,
                "unknown solver '%s'; sps_list(\"solver\") names them",
                a->opt->solver);
    if (type->create) return type->create(a, ops, of);
    SPS_TRY(spsi_linear_named(a, type->name, &s));
    *ops = &spsi_linear_ops;
    *of = s;
fail:
    return st;
}

void spsi_linear_destroy(sps_linear **s_p)
{
    sps_linear *s = *s_p;

    if (!s) return;
    spsi_owner_release(&s->made.own);
    spsi_nullspace_destroy(&s->made.null);
    if (s->made.own_M) sps_precond_destroy(&s->M);
    spsi_two_way_destroy(&s->least.both);
    sps_operator_destroy(&s->made.own_T);
    spsi_free(s->ctx, s);
    *s_p = NULL;
}

static sps_status ops_linear(void *of, const sps_block *B, sps_block *X,
                             sps_result *result)
{
    return spsi_linear_solve(of, B, X, result);
}

static sps_status ops_project(void *of, sps_block *B)
{
    return spsi_linear_project(of, B);
}

static const sps_precond *ops_precond(const void *of)
{
    return ((const sps_linear *)of)->M;
}

static void ops_destroy(void *of)
{
    sps_linear *s = of;

    spsi_linear_destroy(&s);
}

const sps_solver_ops spsi_linear_ops = {
    .linear = ops_linear, .project = ops_project,
    .precond = ops_precond, .destroy = ops_destroy,
};

void spsi_linear_note_single(const sps_linear *s, const sps_block *V)
{
    if (V->dtype == SPS_F32)
        spsi_note(s->ctx, "%s: the basis in single precision needs %.3g MB; "
                  "if it makes no progress, one in double precision needs "
                  "%.3g MB more",
                  s->method.type->name, (double)V->bytes / 1e6,
                  (double)spsi_block_bytes(V) / 1e6);
}

/* Updates the preconditioner for new values of A.  One whose update did not
 * finish within the time limit is replaced by a cheap one. */
static sps_status update_precond(sps_linear *s)
{
    const double before = spsi_deadline_begin(s->ctx, s->opt.max_seconds);
    sps_status st = sps_precond_update(s->M);

    if (st == SPS_EUNFIT && !s->made.owned && spsi_expired(s->ctx)) {
        sps_precond_destroy(&s->M);
        st = substitute(s);
        s->made.own_M = st == SPS_OK;
    }
    spsi_deadline_end(s->ctx, before);
    return st;
}

/* Finds the null space again for new values: projecting out the old one would
 * remove a component that the new A determines, and the residual would not show
 * it. */
sps_status spsi_linear_refresh(sps_linear *s)
{
    sps_status st = SPS_OK;
    sps_nullspace *null = NULL;

    if (s->made.version == s->A->version) return SPS_OK;
    SPS_TRY(check_needs(s));
    if (s->made.own_M) SPS_TRY(update_precond(s));
    if (s->made.own_T)
        SPS_TRY(spsi_operator_transposed_follow(s->A, s->made.own_T));
    if (s->least.both) spsi_two_way_refresh(s->least.both, s->A->A);
    if (s->least.T) {
        s->made.version = s->A->version;
        return SPS_OK;
    }
    SPS_TRY(spsi_nullspace_create(s->A, s->columns, &s->opt, &null));
    if (null && !s->rhs.projected)
        SPS_TRY(spsi_own_block(&s->made.own, s->n, s->columns,
                               &s->rhs.projected));
    spsi_nullspace_destroy(&s->made.null);
    s->made.null = null;
    s->made.version = s->A->version;
    return SPS_OK;

fail:
    spsi_nullspace_destroy(&null);
    return st;
}

static sps_status product(sps_linear *s, const sps_operator *A,
                          const sps_block *X, sps_block *Y)
{
    sps_status st;

    spsi_phase_begin(s->ctx, SPS_PHASE_SPMM);
    st = sps_operator_apply(A, 1.0, X, 0.0, Y);
    spsi_phase_end(s->ctx, SPS_PHASE_SPMM);
    s->course.applies_A++;
    return st;
}

sps_status spsi_linear_apply(sps_linear *s, const sps_block *X, sps_block *Y)
{
    return product(s, s->A, X, Y);
}

sps_status spsi_linear_apply_single(sps_linear *s, const sps_block *X,
                                    sps_block *Y, bool *served)
{
    sps_status st;

    spsi_phase_begin(s->ctx, SPS_PHASE_SPMM);
    st = spsi_operator_apply_single(s->A, X, Y, served);
    spsi_phase_end(s->ctx, SPS_PHASE_SPMM);
    s->course.applies_A += *served;
    return st;
}

sps_status spsi_linear_apply_transposed(sps_linear *s, const sps_block *X,
                                        sps_block *Y)
{
    return product(s, s->least.T, X, Y);
}

sps_status spsi_linear_precondition(sps_linear *s, const sps_block *R,
                                    sps_block *Z)
{
    sps_status st;

    spsi_phase_begin(s->ctx, SPS_PHASE_PRECOND);
    if (s->M) {
        s->M->norms = R->data == s->R.data && R->k == s->k ? s->resnorm : NULL;
        st = sps_precond_apply(s->M, R, Z);
        s->M->norms = NULL;
        s->course.applies_M += !s->M->identity;
        /* A long application was cut short: the loop ends after this step. */
        if (st == SPS_EUNFIT && spsi_agreed_cancel(s->ctx)) st = SPS_OK;
    } else {
        st = spsi_copy(R, Z);
    }
    if (st == SPS_OK) st = spsi_nullspace_project(s->made.null, Z);
    if (st == SPS_OK) st = spsi_precond_symmetry_check(s, R, Z);
    spsi_phase_end(s->ctx, SPS_PHASE_PRECOND);
    return st;
}

sps_status spsi_linear_subtract(sps_linear *s, const sps_block *Q,
                                const sps_small *a, sps_small *norm2,
                                bool *met)
{
    sps_precond *M = s->M;
    sps_status st = SPS_OK;

    *met = false;
    if (M && M->type->subtract && !spsi_comm_ordered(s->ctx)) {
        M->norms = s->resnorm;
        st = M->type->subtract(M, Q, a, &s->R, norm2, met);
        M->norms = NULL;
        if (st == SPS_OK && *met) return spsi_small_reduce(norm2);
    }
    return st != SPS_OK || *met ? st : spsi_subtract(Q, a, &s->R, norm2);
}

sps_status spsi_linear_direction(sps_linear *s, const sps_block *R,
                                 sps_block *Z, const sps_block **Z_p)
{
    const bool same = spsi_linear_plain(s);

    *Z_p = same ? R : Z;
    return same ? SPS_OK : spsi_linear_precondition(s, R, Z);
}

sps_status spsi_linear_multiply(sps_linear *s, const sps_block *V,
                                sps_block *room, sps_block *W)
{
    const sps_block *z;
    sps_status st;

    SPS_TRY(spsi_linear_direction(s, V, room, &z));
    SPS_TRY(spsi_linear_apply(s, z, W));
fail:
    return st;
}

sps_status spsi_linear_add(sps_linear *s, const sps_block *Y, sps_block *room)
{
    const sps_block *z;
    sps_status st;

    SPS_TRY(spsi_linear_direction(s, Y, room, &z));
    SPS_TRY(spsi_axpby(1.0, z, 1.0, &s->X));
fail:
    return st;
}
