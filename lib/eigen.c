/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen.c - making an eigensolver: names, needs, memory.  Everything that a
 * solve uses is taken here. */
#include "eigen.h"

#include <math.h>
#include <string.h>

#include "options.h"
#include "precond.h"
#include "registry.h"
#include "timer.h"

/* Columns that Rayleigh-Ritz of three blocks still does in passing; more
 * pairs than that are found one block after another. */
#define WIDEST 40

static const sps_eigen_type *find(const char *name)
{
    for (int i = 0; spsi_eigensolvers[i]; i++)
        if (!strcmp(spsi_eigensolvers[i]->name, name))
            return spsi_eigensolvers[i];
    return NULL;
}

/* Whether products alone are to find pairs inside the spectrum of A: factors
 * of A - sigma would be large, or slow on a GPU, and the rows are of one scale,
 * for a polynomial of a stiff A sees little of its low end. */
static bool folds(const sps_eigen *e)
{
    bool host = e->ctx->backend->place == SPS_HOST;

    if (!e->nearest || e->M || !e->A->A) return false;
    return e->n > (host ? SPS_EIGEN_FACTORS : SPS_EIGEN_DENSE) &&
           spsi_eigen_uniform(e->A->A);
}

/* Whether a polynomial is to take the place that no preconditioner has. */
static bool filters(const sps_eigen *e)
{
    bool none = !e->nearest && !strcmp(e->opt.precond, "none");

    return !e->M && !e->T && (!e->A->A || none);
}

static sps_status choose(sps_eigen *e)
{
    sps_status st = SPS_OK;
    const char *name = e->opt.solver;
    bool products = filters(e), folding = folds(e);

    if (!strcmp(name, "auto")) {
        e->type = spsi_eigen_dense_type(e);
        name = products || folding ? "chebyshev_filter" : "lobpcg";
        if (products && !e->type)
            spsi_note(e->ctx, "solver auto: chebyshev_filter, since %sthere "
                      "is no preconditioner", e->A->A ? "" : "A is a callback "
                      "and ");
        else if (folding && !e->type)
            spsi_note(e->ctx, "solver auto: chebyshev_filter, since factors of "
                      "A - sigma would be large");
    }
    if (!e->type) e->type = find(name);
    SPS_REQUIRE(e->ctx, e->type, SPS_EINVAL,
                "'%s' is no method for eigenvalues; "
                "sps_list(\"eigensolver\") names them", name);
fail:
    return st;
}

/* A and M both must equal their transposes; M's diagonal must be positive. */
static sps_status check_symmetric(const sps_operator *A, const char *name)
{
    sps_status st = SPS_OK;
    bool symmetric = (A->props & (SPS_SYMMETRIC | SPS_SPD)) != 0;
    double difference = 0;

    SPS_REQUIRE(A->ctx, A->n == A->ncol, SPS_EUNFIT,
                "%s is %lld x %lld; eigenvalues need a square one", name,
                (long long)A->n, (long long)A->ncol);
    SPS_REQUIRE(A->ctx, symmetric || A->A, SPS_EUNFIT,
                "%s must be symmetric; say SPS_SYMMETRIC when yours is", name);
    if (!symmetric)
        SPS_TRY(sps_csr_symmetric(A->ctx, A->A, 1e-10, &symmetric,
                                  &difference));
    SPS_REQUIRE(A->ctx, symmetric, SPS_EUNFIT,
                "%s is not symmetric: it differs from its transpose by up to "
                "%.3g; eigenvalues of nonsymmetric matrices are not offered",
                name, difference);
fail:
    return st;
}

static sps_status check_mass(const sps_operator *M)
{
    sps_status st = SPS_OK;
    double *d = NULL;

    SPS_TRY(check_symmetric(M, "M"));
    if (!M->A) return SPS_OK;
    SPS_TRY(SPS_NEW(M->ctx, M->n, &d));
    SPS_TRY(spsi_matrix_diagonal(M, d));
    for (int64_t i = 0; i < M->n; i++)
        SPS_REQUIRE(M->ctx, d[i] > 0, SPS_EUNFIT,
                    "M is not positive definite: its diagonal holds %.3g in "
                    "row %lld; %s", d[i], (long long)i + 1,
                    d[i] == 0  ? "eliminate massless unknowns first"
                    : d[i] < 0 ? SPS_EIGEN_SWAP
                               : "that is no number");
fail:
    spsi_free(M->ctx, d);
    return st;
}

static sps_status check_needs(sps_eigen *e)
{
    sps_status st = SPS_OK;
    const sps_operator *A = e->A, *M = e->M;

    SPS_TRY(check_symmetric(A, "A"));
    SPS_REQUIRE(e->ctx, e->opt.norm != SPS_NORM_START, SPS_EINVAL,
                "norm start has no meaning for eigenvalues");
    SPS_REQUIRE(e->ctx, e->opt.rtol > 0 || e->opt.atol > 0, SPS_EINVAL,
                "rtol and atol are both zero; one must be positive");
    if (!M) return SPS_OK;
    SPS_REQUIRE(e->ctx, M->ctx == e->ctx, SPS_EINVAL,
                "A and M belong to different contexts");
    SPS_REQUIRE(e->ctx, M->n == A->n, SPS_ESHAPE,
                "A has %lld rows, M has %lld", (long long)A->n,
                (long long)M->n);
    SPS_TRY(check_mass(M));
fail:
    return st;
}

/* Dimensions that are left to the pairs. */
static int64_t room_of(const sps_eigen *e)
{
    return e->n - e->given - (e->means ? e->nulls : 0);
}

/* The block: pairs asked and guards, to a multiple of 4 so that rows of the
 * stack stay aligned; no more than there are unknowns.  Inside the spectrum a
 * filter is the faster the farther its block reaches. */
static sps_status choose_width(sps_eigen *e)
{
    sps_status st = SPS_OK;
    int guard = e->count / 10 > 2 ? e->count / 10 : 2, m = e->opt.block;

    if (e->nearest && e->type->folds) guard = e->count + 8;
    SPS_REQUIRE(e->ctx, e->count <= e->n, SPS_EINVAL,
                "%d eigenpairs are more than there are, as many as unknowns: "
                "%lld", e->count, (long long)e->n);
    if (m == 0) m = e->count + guard < WIDEST ? (e->count + guard + 3) / 4 * 4
                                              : WIDEST;
    if (e->type->step && e->nearest && m == 1 && e->count > 1)
        spsi_note(e->ctx, "a block of one column has no room for a guard and "
                  "may pass over a pair near sigma: verify_count looks for "
                  "those");
    e->width = m < e->n ? m : (int)e->n;
    e->guard = m < e->count + guard ? e->width / 10 + 1 : guard;
fail:
    return st;
}

/* Now that it is known how many null vectors and constraints are independent. */
static sps_status fit_width(sps_eigen *e)
{
    sps_status st = SPS_OK;
    int64_t room = room_of(e);

    SPS_REQUIRE(e->ctx, e->count <= room, SPS_EINVAL,
                "%d eigenpairs are more than there are, %lld: as many as "
                "unknowns (%lld), less null vectors (%d) and constraints (%d)",
                e->count, (long long)room, (long long)e->n, e->nulls,
                e->given - e->null_columns);
    if (e->width > room) e->width = (int)room;
fail:
    return st;
}

static sps_status take_arrays(sps_eigen *e)
{
    sps_status st = SPS_OK;
    int k = e->given + (e->count > e->width ? e->count : e->width);
    double **real[] = { &e->theta, &e->ritz, &e->resnorm, &e->xnorm, &e->mnorm,
                        &e->lambda, &e->residual, &e->backward, &e->bound,
                        &e->relative, &e->unseen, &e->spread, &e->xmx };

    for (size_t i = 0; i < sizeof real / sizeof *real; i++)
        SPS_TRY(SPS_NEW(e->ctx, k, real[i]));
    SPS_TRY(SPS_NEW(e->ctx, 3 * (int64_t)k, &e->scratch));
    SPS_TRY(SPS_NEW(e->ctx, k, &e->done));
    SPS_TRY(SPS_NEW(e->ctx, k, &e->pair));
    SPS_TRY(SPS_NEW(e->ctx, k, &e->order));
fail:
    return st;
}

static sps_status take_blocks(sps_eigen *e)
{
    sps_status st = SPS_OK;
    int w = e->width, stack = e->type->stack * w;
    int most = stack > e->given ? stack : e->given;

    SPS_TRY(sps_block_create(e->ctx, e->n, stack, &e->S));
    SPS_TRY(sps_block_create(e->ctx, e->n, stack, &e->AS));
    e->MS = e->S;
    if (e->M) SPS_TRY(sps_block_create(e->ctx, e->n, stack, &e->MS));
    SPS_TRY(sps_block_create(e->ctx, e->n, w, &e->R));
    SPS_TRY(sps_block_create(e->ctx, e->n, w, &e->room));
    SPS_TRY(spsi_small_create(e->ctx, most, most, &e->G));
    SPS_TRY(spsi_small_create(e->ctx, most, most, &e->U));
    SPS_TRY(spsi_small_create(e->ctx, most, most, &e->C));
    SPS_TRY(spsi_small_create(e->ctx, stack, w, &e->J));
    SPS_TRY(spsi_small_create(e->ctx, e->fixed->width, most, &e->F));
    SPS_TRY(spsi_reserve(e->ctx, e->n, e->fixed->width > stack
                                           ? e->fixed->width : stack));
fail:
    return st;
}

static sps_status take_root_mass(sps_eigen *e)
{
    sps_status st = SPS_OK;
    double *d = NULL;

    if (!e->M || !e->M->A) return SPS_OK;
    SPS_TRY(SPS_NEW(e->ctx, e->n, &d));
    SPS_TRY(spsi_matrix_diagonal(e->M, d));
    for (int64_t i = 0; i < e->n; i++) d[i] = sqrt(d[i]);
    SPS_TRY(sps_block_create(e->ctx, e->n, 1, &e->root_mass));
    SPS_TRY(sps_block_set(e->root_mass, 0, 1, d, 1, SPS_ROW_MAJOR, SPS_HOST));
fail:
    spsi_free(e->ctx, d);
    return st;
}

static sps_status take_norms(sps_eigen *e)
{
    sps_status st = SPS_OK;

    spsi_block_narrow(e->R, e->width < 4 ? e->width : 4);
    spsi_block_narrow(e->room, e->R->k);
    SPS_TRY(spsi_norm_estimate(e->A, e->R, e->room, e->scratch, &e->norm_A));
    e->norm_M = 1;
    if (e->M)
        SPS_TRY(spsi_norm_estimate(e->M, e->R, e->room, e->scratch,
                                   &e->norm_M));
fail:
    return st;
}

static sps_status take_all(sps_eigen *e, sps_precond *T)
{
    sps_status st = SPS_OK;

    e->T = T;
    e->sign = strcmp(e->opt.which, "largest") ? 1 : -1;
    e->nearest = !strcmp(e->opt.which, "nearest");
    SPS_TRY(spsi_operator_fetch(e->A));
    if (e->M) SPS_TRY(spsi_operator_fetch(e->M));
    if (e->nearest) spsi_eigen_outside(e);
    SPS_TRY(choose(e));
    e->inverted = e->nearest && e->type->step && !e->type->folds;
    SPS_TRY(check_needs(e));
    SPS_TRY(spsi_eigen_gather_fixed(e));
    SPS_TRY(choose_width(e));
    SPS_TRY(take_arrays(e));
    SPS_TRY(take_blocks(e));
    SPS_TRY(take_norms(e));
    SPS_TRY(take_root_mass(e));
    SPS_TRY(spsi_eigen_settle_fixed(e));
    SPS_TRY(fit_width(e));
    SPS_TRY(spsi_eigen_take_precond(e, T));
    SPS_TRY(spsi_eigen_prepare_proof(e));
    SPS_TRY(spsi_eigen_count_reserve(e));
    if (!e->type->step) return spsi_eigen_dense_reserve(e);
    e->pole = e->opt.sigma;
    if (e->inverted) SPS_TRY(spsi_eigen_shift(e));
    SPS_TRY(spsi_new(e->ctx, e->type->size, &e->method));
    SPS_TRY(e->type->setup(e, e->method));
fail:
    return st;
}

sps_status sps_solver_create_eigen(const sps_operator *A,
                                   const sps_operator *M, sps_precond *T,
                                   int count, const sps_options *opt,
                                   sps_solver **s_p)
{
    sps_status st = SPS_OK;
    sps_solver *s = NULL;
    sps_eigen *e = NULL;
    sps_context *ctx = A ? A->ctx : NULL;

    if (!A || !s_p) return spsi_fail(ctx, SPS_EINVAL, "A or s_p is NULL");
    SPS_REQUIRE(ctx, count >= 1 && count <= 1024, SPS_EINVAL,
                "%d eigenpairs; 1 to 1024 are possible", count);
    SPS_TRY(spsi_new(ctx, sizeof *s, (void **)&s));
    ctx->live++;
    s->ctx = ctx;
    SPS_TRY(spsi_new(ctx, sizeof *e, (void **)&e));
    s->eigen = e;
    e->ctx = ctx;
    e->A = A;
    e->M = M;
    e->n = A->n;
    e->count = count;
    SPS_TRY(spsi_options_take(ctx, opt, &e->opt));
    if (A->reordered || (M && M->reordered))
        spsi_note(ctx, "reorder: the order stays for eigenvalues");
    SPS_TRY(take_all(e, T));
    *s_p = s;
    return SPS_OK;

fail:
    sps_solver_destroy(&s);
    return st;
}

static void release_arrays(sps_eigen *e)
{
    void *arrays[] = { e->theta, e->ritz, e->resnorm, e->xnorm, e->mnorm,
                       e->lambda, e->residual, e->backward, e->bound,
                       e->relative, e->unseen, e->spread, e->xmx, e->scratch,
                       e->done, e->pair, e->order, e->dense_w, e->host_x,
                       e->host_g, e->ground };

    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        spsi_free(e->ctx, arrays[i]);
}

static void release_matrices(sps_eigen *e)
{
    sps_block **blocks[] = { &e->AS, &e->R, &e->room, &e->Z, &e->root_mass };
    sps_small **smalls[] = { &e->E, &e->F, &e->G, &e->U, &e->C, &e->J,
                             &e->dense_A, &e->dense_M, &e->dense_D,
                             &e->dense_R, &e->dense_C };

    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        sps_block_destroy(blocks[i]);
    for (size_t i = 0; i < sizeof smalls / sizeof *smalls; i++)
        spsi_small_destroy(smalls[i]);
}

void spsi_eigen_destroy(sps_eigen **e_p)
{
    sps_eigen *e = e_p ? *e_p : NULL;

    if (!e) return;
    if (e->method && e->type->destroy) e->type->destroy(e, e->method);
    spsi_free(e->ctx, e->method);
    if (e->own_T) sps_precond_destroy(&e->T);
    spsi_eigen_unshift(e);
    if (e->MS != e->S) sps_block_destroy(&e->MS);
    sps_block_destroy(&e->S);
    if (e->dual != e->fixed) sps_block_destroy(&e->dual);
    sps_block_destroy(&e->fixed);
    release_matrices(e);
    spsi_nullspace_destroy(&e->null);
    sps_solver_destroy(&e->mass_solver);
    sps_operator_destroy(&e->mass_op);
    sps_csr_destroy(e->ctx, &e->mass);
    release_arrays(e);
    spsi_free(e->ctx, e);
    *e_p = NULL;
}

sps_status spsi_eigen_apply(sps_eigen *e, const sps_block *X, sps_block *Y)
{
    sps_status st;

    if (e->inverted) return spsi_eigen_invert(e, X, Y);
    spsi_phase_begin(e->ctx, SPS_PHASE_SPMM);
    st = sps_operator_apply(e->A, 1.0, X, 0.0, Y);
    spsi_phase_end(e->ctx, SPS_PHASE_SPMM);
    e->applies_A++;
    return st;
}

sps_status spsi_eigen_mass(sps_eigen *e, const sps_block *X, sps_block *Y)
{
    sps_status st;

    if (!e->M) return X->data == Y->data ? SPS_OK : spsi_copy(X, Y);
    spsi_phase_begin(e->ctx, SPS_PHASE_SPMM);
    st = sps_operator_apply(e->M, 1.0, X, 0.0, Y);
    spsi_phase_end(e->ctx, SPS_PHASE_SPMM);
    e->applies_M++;
    return st;
}

/* Into a block with R's distance of rows, then to W: preconditioners made of
 * products with something added do that in one pass only where all their
 * blocks are alike, and W may be columns of a stack. */
static sps_status precondition_beside(sps_eigen *e, const sps_block *R,
                                      sps_block *W)
{
    sps_block *Z = R == e->R ? e->room : e->R;
    sps_status st = SPS_OK;

    spsi_block_narrow(Z, R->k);
    SPS_TRY(sps_precond_apply(e->T, R, Z));
    SPS_TRY(spsi_copy(Z, W));
fail:
    return st;
}

sps_status spsi_eigen_precondition(sps_eigen *e, const sps_block *R,
                                   sps_block *W)
{
    sps_status st;

    if (!e->T || e->T_left) return spsi_copy(R, W);
    spsi_phase_begin(e->ctx, SPS_PHASE_PRECOND);
    st = R->ld == W->ld || e->T->diagonal ? sps_precond_apply(e->T, R, W)
                                          : precondition_beside(e, R, W);
    spsi_phase_end(e->ctx, SPS_PHASE_PRECOND);
    e->applies_T++;
    return st;
}

static sps_status plain_residuals(sps_eigen *e)
{
    sps_status st = SPS_OK;
    double *minus = e->scratch, *one = e->scratch + e->m;

    for (int j = 0; j < e->m; j++) {
        e->theta[j] = e->ritz[j];
        minus[j] = -e->theta[j];
        one[j] = 1;
    }
    spsi_block_narrow(e->R, e->m);
    SPS_TRY(spsi_copy(&e->AX, e->R));
    SPS_TRY(spsi_axpby_cols(minus, &e->MX, one, e->R));
    SPS_TRY(spsi_eigen_constrain(e, e->R));
    SPS_TRY(spsi_norms(e->R, e->resnorm));
fail:
    return st;
}

/* Where A has rows of 1e20 times the others (penalties), random columns carry
 * parts there of which no combination gets rid below 1e-16, and A makes 1e4 of
 * them.  T leaves those rows as small as they are in eigenvectors; what the
 * columns hold of a null space it would make huge. */
sps_status spsi_eigen_draw(sps_eigen *e, sps_block *X, uint64_t seed)
{
    sps_status st = SPS_OK;

    SPS_TRY(sps_block_random(X, seed));
    if (!e->T || X->k == 0) return SPS_OK;
    spsi_block_narrow(e->R, X->k);
    SPS_TRY(spsi_copy(X, e->R));
    SPS_TRY(spsi_nullspace_project(e->null, e->R));
    SPS_TRY(spsi_eigen_precondition(e, e->R, X));
fail:
    return st;
}

/* x'M x = 1 takes x of 1e7 and more where M is singular, or where unknowns are
 * in units far apart.  x'D x, D = diag(M), tells: units do not change it, and it
 * is that large only where D^-1/2 M D^-1/2 is singular within rounding. */
static sps_status look_at_mass(sps_eigen *e)
{
    sps_status st = SPS_OK;
    double *norm = e->scratch;
    double most = 0;

    for (int j = 0; j < e->m; j++)
        most = fmax(most, e->xnorm[j] * e->xnorm[j] * e->norm_M);
    if (most > 1e14 && e->root_mass) {
        spsi_block_narrow(e->room, e->m);
        SPS_TRY(spsi_scale_rows(e->root_mass, &e->X, e->room));
        SPS_TRY(spsi_norms(e->room, norm));
        most = 0;
        for (int j = 0; j < e->m; j++) most = fmax(most, norm[j] * norm[j]);
    }
    if (most > 1e14) e->stop = SPS_STOP_MASS_INDEFINITE;
fail:
    return st;
}

sps_status spsi_eigen_residuals(sps_eigen *e)
{
    sps_status st = SPS_OK;

    SPS_TRY(e->inverted ? spsi_eigen_shift_residuals(e) : plain_residuals(e));
    if (e->M) {
        SPS_TRY(spsi_norms(&e->X, e->xnorm));
        SPS_TRY(spsi_norms(&e->MX, e->mnorm));
        SPS_TRY(look_at_mass(e));
    }
    for (int j = 0; j < e->m; j++) {
        if (!e->M) e->xnorm[j] = e->mnorm[j] = 1;
        if (!isfinite(e->resnorm[j])) e->stop = SPS_STOP_NOT_FINITE;
    }
fail:
    return st;
}
