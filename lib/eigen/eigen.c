/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen.c - set-up of an eigensolver: chooses the method, the wanted pairs and
 * the width of the block, and allocates all memory that a solve uses. */
#include "core/comm.h"
#include "eigen/eigen.h"

#include <string.h>

#include "core/options.h"
#include "core/timer.h"
#include "operator/reorder.h"

/* The largest width of a block at which Rayleigh-Ritz with three blocks is
 * cheap; more pairs than that are computed one block after another. */
#define WIDEST 40

static const sps_eigen_type *find(const char *name)
{
    for (int i = 0; spsi_eigensolvers[i]; i++)
        if (!strcmp(spsi_eigensolvers[i]->name, name))
            return spsi_eigensolvers[i];
    return NULL;
}

static sps_status choose_method(sps_eigen *e)
{
    sps_status st = SPS_OK;
    const char *name = e->opt.solver;

    e->type = strcmp(name, "auto") ? find(name) : e->policy->choose(e);
    SPS_REQUIRE(e->ctx, e->type, SPS_EINVAL,
                "'%s' is not a method for eigenvalues; sps_list(ctx, "
                "\"eigensolver\", i) lists them", name);
fail:
    return st;
}

static sps_status check_needs(sps_eigen *e)
{
    sps_status st = SPS_OK;

    SPS_TRY(spsi_pencil_check_matrix(&e->pencil));
    SPS_REQUIRE(e->ctx, e->opt.norm != SPS_NORM_START, SPS_EINVAL,
                "norm start has no meaning for eigenvalues");
    SPS_REQUIRE(e->ctx, e->opt.rtol > 0 || e->opt.atol > 0, SPS_EINVAL,
                "rtol and atol are both zero; one must be positive");
    SPS_TRY(spsi_pencil_check_mass(&e->pencil));
fail:
    return st;
}

/* Chooses the width of the block: the requested pairs and guard columns,
 * rounded up to a multiple of 4 so that rows of the stack stay aligned, and at
 * most the number of unknowns.  For pairs inside the spectrum a filter
 * converges faster with a wider block. */
static sps_status choose_width(sps_eigen *e)
{
    sps_status st = SPS_OK;
    int guard = e->count / 10 > 2 ? e->count / 10 : 2, m = e->opt.block;

    if (e->wanted.nearest && e->type->folds) guard = e->count + 8;
    SPS_REQUIRE(e->ctx, e->count <= e->pencil.rows, SPS_EINVAL,
                "%d eigenpairs were requested, but there are only as many as "
                "unknowns, %lld", e->count, (long long)e->pencil.rows);
    if (m == 0) m = e->count + guard < WIDEST ? (e->count + guard + 3) / 4 * 4
                                              : WIDEST;
    if (e->type->step && e->wanted.nearest && m == 1 && e->count > 1)
        spsi_note(e->ctx, "a block of one column has no guard column and may "
                  "pass over a pair near sigma: verify_count looks for those");
    e->space.width = m < e->pencil.rows ? m : (int)e->pencil.rows;
    e->space.guard = m < e->count + guard ? e->space.width / 10 + 1 : guard;
fail:
    return st;
}

/* Limits the width to the dimension of the complement of null vectors and
 * constraints, once it is known how many of these are independent. */
static sps_status fit_width(sps_eigen *e)
{
    sps_status st = SPS_OK;
    int64_t left = spsi_deflation_complement(&e->deflation);

    SPS_REQUIRE(e->ctx, e->count <= left, SPS_EINVAL,
                "%d eigenpairs were requested, but there are only %lld: the "
                "unknowns (%lld) less null vectors (%d) and constraints (%d)",
                e->count, (long long)left, (long long)e->pencil.rows,
                e->deflation.nulls, e->deflation.given - e->deflation.columns);
    if (e->space.width > left) e->space.width = (int)left;
fail:
    return st;
}

/* Allocates all memory except that of the null space and constraints, which are
 * known by now, of the factors of a transformation, and of the method. */
static sps_status allocate(sps_eigen *e)
{
    sps_status st = SPS_OK;

    SPS_TRY(spsi_subspace_allocate(&e->space, e->type->stack,
                                   e->type->longest));
    SPS_TRY(spsi_ritz_allocate(&e->ritz, e->type->stack));
    SPS_TRY(spsi_proof_allocate(&e->proof));
    SPS_TRY(SPS_OWN(&e->own, e->space.width, &e->transform.spread));
    SPS_TRY(SPS_OWN(&e->own, e->count, &e->relative));
    SPS_TRY(SPS_OWN(&e->own, e->count, &e->sorted));
fail:
    return st;
}

/* Sets the pointers of each object to the objects that it uses. */
static void connect(sps_eigen *e)
{
    e->deflation.pencil = &e->pencil;
    e->deflation.pairs = e->count;
    e->space.pencil = &e->pencil;
    e->space.deflation = &e->deflation;
    e->ritz.space = e->transform.space = &e->space;
    e->precond.space = e->proof.space = &e->space;
    e->ritz.wanted = e->transform.wanted = &e->wanted;
    e->precond.wanted = e->proof.wanted = &e->wanted;
    e->ritz.opt = e->precond.opt = e->proof.opt = &e->opt;
    e->proof.count = e->count;
    e->transform.policy = e->policy;
}

/* If no eigenvalue lies on one side of sigma, the nearest pairs are at an end
 * of the spectrum, where they are found without factors. */
static sps_status choose_pairs(sps_eigen *e)
{
    sps_selection *w = &e->wanted;
    sps_status st = SPS_OK;

    w->sign = strcmp(e->opt.which, "largest") ? 1 : -1;
    w->nearest = !strcmp(e->opt.which, "nearest");
    w->sigma = e->opt.sigma;
    SPS_TRY(spsi_operator_fetch(e->pencil.A));
    if (e->pencil.M) SPS_TRY(spsi_operator_fetch(e->pencil.M));
    if (!w->nearest || !spsi_pencil_outside(&e->pencil, w->sigma, &w->sign))
        return SPS_OK;
    w->nearest = false;
    spsi_note(e->ctx, "no eigenvalue lies %s sigma: the nearest are the %s",
              w->sign < 0 ? "above" : "below",
              w->sign < 0 ? "largest" : "smallest");
fail:
    return st;
}

static sps_status set_up(sps_eigen *e, sps_precond *T)
{
    sps_status st = SPS_OK;

    e->precond.T = T;
    SPS_TRY(choose_pairs(e));
    SPS_TRY(choose_method(e));
    e->transform.inverted =
        e->wanted.nearest && e->type->step && !e->type->folds;
    e->transform.shift = e->wanted.sigma;
    e->transform.direct = !strcmp(e->opt.factors, "auto");
    SPS_TRY(check_needs(e));
    SPS_TRY(spsi_deflation_gather(&e->deflation, &e->opt));
    SPS_TRY(choose_width(e));
    SPS_TRY(allocate(e));
    SPS_TRY(spsi_pencil_measure(&e->pencil, e->space.R, e->space.work));
    SPS_TRY(spsi_deflation_settle(&e->deflation, &e->space));
    SPS_TRY(fit_width(e));
    SPS_TRY(e->policy->take_precond(&e->precond, T, e->type->preconditioned));
    SPS_TRY(spsi_proof_prepare(&e->proof, e->policy));
    SPS_TRY(e->policy->count_reserve(e));
    if (e->transform.inverted)
        SPS_TRY(spsi_transform_open(&e->transform, &e->search));
    SPS_TRY(spsi_own_array(&e->own, 1, e->type->size, &e->method));
    SPS_TRY(e->type->setup(e, e->method));
fail:
    return st;
}

static sps_status ops_eigen(void *of, sps_block *X, double *lambda,
                            sps_eigen_result *result)
{
    return spsi_eigen_solve(of, X, lambda, result);
}

static const sps_precond *ops_precond(const void *of)
{
    return ((const sps_eigen *)of)->precond.T;
}

static void ops_destroy(void *of)
{
    sps_eigen *e = of;

    if (!e) return;
    spsi_eigen_precond_release(&e->precond);
    spsi_transform_close(&e->transform);
    spsi_proof_release(&e->proof);
    spsi_nullspace_destroy(&e->deflation.null);
    spsi_owner_release(&e->own);
    spsi_free(e->ctx, e);
}

static const sps_solver_ops eigen_ops = {
    .eigen = ops_eigen, .precond = ops_precond, .destroy = ops_destroy,
};

static sps_status create(const sps_operator *A, const sps_operator *M,
                         sps_precond *T, int count, const sps_options *opt,
                         sps_solver **s_p)
{
    sps_status st = SPS_OK;
    sps_solver *s = NULL;
    sps_eigen *e = NULL;
    sps_context *ctx = A->ctx;

    SPS_REQUIRE(ctx, count >= 1 && count <= 1024, SPS_EINVAL,
                "%d eigenpairs; 1 to 1024 are possible", count);
    SPS_TRY(spsi_solver_new(ctx, A, count, &s));
    SPS_TRY(spsi_new(ctx, sizeof *e, (void **)&e));
    s->ops = &eigen_ops;
    s->of = e;
    e->ctx = e->pencil.ctx = e->own.ctx = ctx;
    e->pencil.own = &e->own;
    e->pencil.A = A;
    e->pencil.M = M;
    e->pencil.n = A->n;
    e->count = count;
    e->policy = spsi_eigen_policies[0];
    connect(e);
    SPS_TRY(spsi_comm_rows(ctx, A->n, A->A || (M && M->A), &e->pencil.rows));
    SPS_TRY(spsi_options_take(ctx, opt, &e->opt));
    SPS_TRY(spsi_coords_check(A, &e->opt));
    SPS_TRY(spsi_comm_first(ctx, &e->opt.max_seconds));
    e->deflation.constraints = e->opt.constraints;
    e->transform.max_seconds = e->opt.max_seconds;
    if (A->reordered || (M && M->reordered))
        spsi_note(ctx, "reorder: the original order is kept for eigenvalues");
    SPS_TRY(set_up(e, T));
    *s_p = s;
    return SPS_OK;

fail:
    sps_solver_destroy(&s);
    return st;
}

sps_status sps_solver_create_eigen(const sps_operator *A,
                                   const sps_operator *M, sps_precond *T,
                                   int count, const sps_options *opt,
                                   sps_solver **s_p)
{
    const double began = spsi_now();
    sps_solver *s = NULL;
    sps_status st;

    if (!A || !s_p)
        return spsi_fail(A ? A->ctx : NULL, SPS_EINVAL, "A or s_p is NULL");
    SPS_TRY(spsi_comm_begin(A->ctx));
    SPS_TRY(spsi_comm_end(A->ctx, create(A, M, T, count, opt, &s)));
    s->setup = spsi_now() - began;
    *s_p = s;
    return SPS_OK;
fail:
    sps_solver_destroy(&s);
    return st;
}
