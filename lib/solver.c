/* SPDX-License-Identifier: BSD-3-Clause */
/* solver.c - making a solver: names, needs, memory.  Everything that a solve
 * uses is taken here. */
#include "ladder.h"

#include <string.h>

#include "eigen.h"
#include "options.h"
#include "registry.h"
#include "reorder.h"
#include "single.h"
#include "timer.h"

static const sps_solver_type *find(const char *name)
{
    for (int i = 0; spsi_solvers[i]; i++)
        if (!strcmp(spsi_solvers[i]->name, name)) return spsi_solvers[i];
    return NULL;
}

/* Whether the method's form in mixed precision is wanted. */
static bool mixed(const sps_solver *s)
{
    return s->type->mixed && !strcmp(s->opt.precision, "mixed");
}

/* auto: block CG for several right-hand sides with CG behind it. */
static sps_status choose(sps_solver *s)
{
    sps_status st = SPS_OK;
    const char *name = s->opt.solver ? s->opt.solver : "auto";

    s->automatic = !strcmp(name, "auto");
    if (s->automatic) name = s->columns > 1 ? "block_cg" : "cg";
    s->type = find(name);
    SPS_REQUIRE(s->ctx, s->type, SPS_EINVAL,
                "unknown solver '%s'; sps_list(\"solver\") names them", name);
    if (mixed(s) && !s->automatic) s->type = find(s->type->mixed);
    if (s->automatic && s->columns > 1 && !s->type->fallback)
        s->fallback = find("cg");
    else if (s->type->fallback) s->fallback = find(s->type->fallback);
    s->chosen = s->type;
    if (s->automatic)
        spsi_note(s->ctx, s->columns > 1
                  ? "solver auto: block_cg, since %d right-hand sides can "
                    "share their search directions; cg stands by"
                  : "solver auto: cg, since there is %d right-hand side",
                  s->columns);
fail:
    return st;
}

/* CG needs a symmetric matrix: claimed, or compared with its transpose.  The
 * real form of a complex matrix is symmetric when that one is Hermitian. */
static sps_status check_symmetry(sps_solver *s)
{
    sps_status st = SPS_OK;
    const sps_operator *A = s->A;
    bool symmetric = (A->props & (SPS_SYMMETRIC | SPS_SPD)) != 0;
    bool complex = A->A && (A->A->props & SPS_INTERLEAVED);
    double difference = 0;

    if (!symmetric && A->A) {
        SPS_TRY(spsi_operator_fetch(A));
        SPS_TRY(sps_csr_symmetric(s->ctx, A->A, 1e-10, &symmetric,
                                  &difference));
    }
    SPS_REQUIRE(s->ctx, symmetric || A->A, SPS_EUNFIT,
                "%s needs a symmetric operator; say SPS_SYMMETRIC when yours "
                "is", s->type->name);
    SPS_REQUIRE(s->ctx, symmetric, SPS_EUNFIT,
                "the matrix is not %s: it differs from its %stranspose by up "
                "to %.3g; %s needs that, gmres does not",
                complex ? "Hermitian" : "symmetric",
                complex ? "conjugate " : "", difference, s->type->name);
fail:
    return st;
}

static sps_status check_needs(sps_solver *s)
{
    sps_status st = SPS_OK;

    SPS_REQUIRE(s->ctx, s->A->n == s->A->ncol, SPS_EUNFIT,
                "the matrix is %lld x %lld; %s needs a square one",
                (long long)s->A->n, (long long)s->A->ncol, s->type->name);
    if (s->type->needs & (SPS_NEEDS_SYMMETRIC | SPS_NEEDS_SPD))
        SPS_TRY(check_symmetry(s));
fail:
    return st;
}

static sps_status take_precond(sps_solver *s, sps_precond *M)
{
    sps_status st = SPS_OK;
    const char *name = s->opt.precond ? s->opt.precond : "auto";
    const bool conjugate = s->type->needs & SPS_NEEDS_SPD &&
                           !(s->type->needs & SPS_WANTS_DIAGONAL);

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
    if (!strcmp(name, "none") || (!strcmp(name, "auto") && !s->A->A))
        return st;
    SPS_TRY(spsi_precond_create(s->A, s->columns, &s->opt, conjugate, &s->M));
    s->own_M = true;
fail:
    return st;
}

/* auto: floats refine with a diagonal only, and where a stronger M was chosen
 * that one in doubles is faster. */
static void consider_mixed(sps_solver *s)
{
    if (!s->automatic || !mixed(s) ||
        (s->M && !s->M->identity && !s->M->diagonal))
        return;
    s->type = find(s->type->mixed);
    s->fallback = find(s->type->fallback);
    s->chosen = s->type;
}

static sps_status take_arrays(sps_solver *s)
{
    sps_status st = SPS_OK;
    int k = s->columns;

    SPS_TRY(SPS_NEW(s->ctx, k, &s->resnorm));
    SPS_TRY(SPS_NEW(s->ctx, k, &s->limit));
    SPS_TRY(SPS_NEW(s->ctx, SPS_SOLVER_AHEAD * (int64_t)k, &s->ahead_norms));
    SPS_TRY(SPS_NEW(s->ctx, k, &s->column));
    SPS_TRY(SPS_NEW(s->ctx, 3 * (int64_t)k, &s->order));
    SPS_TRY(SPS_NEW(s->ctx, k, &s->done));
    SPS_TRY(SPS_NEW(s->ctx, k, &s->scale));
    SPS_TRY(SPS_NEW(s->ctx, k, &s->norm_b));
    SPS_TRY(SPS_NEW(s->ctx, k, &s->norm_x));
    SPS_TRY(SPS_NEW(s->ctx, k, &s->norm_start));
    SPS_TRY(SPS_NEW(s->ctx, k, &s->threshold));
    SPS_TRY(SPS_NEW(s->ctx, k, &s->best_norm));
    SPS_TRY(SPS_NEW(s->ctx, k, &s->relative));
    SPS_TRY(SPS_NEW(s->ctx, 2 * (int64_t)k, &s->scratch));
    SPS_TRY(SPS_NEW(s->ctx, k, &s->result_residual));
    SPS_TRY(SPS_NEW(s->ctx, k, &s->result_backward));
    SPS_TRY(SPS_NEW(s->ctx, k, &s->result_column));
fail:
    return st;
}

static sps_status take_blocks(sps_solver *s)
{
    sps_status st = SPS_OK;
    int blocks = s->type->blocks;

    if (s->fallback && s->fallback->blocks > blocks)
        blocks = s->fallback->blocks;
    SPS_TRY(spsi_reserve(s->ctx, s->n, s->columns));
    SPS_TRY(sps_block_create(s->ctx, s->n, s->columns, &s->residual));
    SPS_TRY(sps_block_create(s->ctx, s->n, s->columns, &s->best));
    if (s->null)
        SPS_TRY(sps_block_create(s->ctx, s->n, s->columns, &s->projected));
    for (int i = 0; i < blocks; i++)
        SPS_TRY(sps_block_create(s->ctx, s->n, s->columns, &s->work[i]));
fail:
    return st;
}

static sps_status take_methods(sps_solver *s)
{
    sps_status st = SPS_OK;

    s->k = s->columns;
    SPS_TRY(spsi_new(s->ctx, s->type->size, &s->method));
    SPS_TRY(s->type->setup(s, s->method));
    if (s->fallback) {
        SPS_TRY(spsi_new(s->ctx, s->fallback->size, &s->fallback_method));
        SPS_TRY(s->fallback->setup(s, s->fallback_method));
    }
fail:
    return st;
}

/* What ranges alone do not say. */
static sps_status check_options(sps_context *ctx, const sps_options *o)
{
    sps_status st = SPS_OK;

    SPS_REQUIRE(ctx, o->rtol > 0 || o->atol > 0, SPS_EINVAL,
                "rtol and atol are both zero; one must be positive");
    SPS_REQUIRE(ctx, o->norm != SPS_NORM_ABSOLUTE || o->atol > 0, SPS_EINVAL,
                "norm absolute needs atol > 0");
fail:
    return st;
}

/* Another one looks after the methods of solver auto, where the entries of A
 * can be looked at. */
static bool climbs(const sps_solver *s)
{
    const char *name = s->opt.solver ? s->opt.solver : "auto";

    return !strcmp(name, "auto") && s->A->A && s->A->n == s->A->ncol;
}

/* A basis of the null space goes along with the unknowns. */
static sps_status take_basis(sps_solver *s)
{
    sps_status st = SPS_OK;

    s->basis = s->opt.nullspace_basis;
    if (!s->basis) return SPS_OK;
    SPS_TRY(sps_block_create(s->ctx, s->basis->n, s->basis->k,
                             &s->ordered_basis));
    s->basis_version = -1;
    SPS_TRY(spsi_solver_order_basis(s));
    s->opt.nullspace_basis = s->ordered_basis;
fail:
    return st;
}

/* Works on the reordered operator where there is one; a preconditioner that
 * the caller made for the original keeps that. */
static sps_status take_order(sps_solver *s, const sps_operator *A,
                             const sps_precond *M)
{
    sps_status st = SPS_OK;

    s->A = A;
    if (!A->reordered) return SPS_OK;
    if (M) {
        spsi_note(s->ctx, "reorder: the order stays for this solver, since "
                  "its preconditioner was made for it");
        return SPS_OK;
    }
    s->reordering = A->reordered;
    s->A = A->reordered->inner;
    SPS_TRY(take_basis(s));
    SPS_TRY(sps_block_create(s->ctx, A->n, s->columns, &s->ordered_B));
    SPS_TRY(sps_block_create(s->ctx, A->n, s->columns, &s->ordered_X));
fail:
    return st;
}

static sps_status take_all(sps_solver *s, sps_precond *M)
{
    sps_status st;

    SPS_TRY(choose(s));
    SPS_TRY(check_needs(s));
    SPS_TRY(take_precond(s, M));
    consider_mixed(s);
    SPS_TRY(spsi_nullspace_create(s->A, s->columns, &s->opt, &s->null));
    SPS_TRY(take_arrays(s));
    SPS_TRY(take_blocks(s));
    SPS_TRY(take_methods(s));
fail:
    return st;
}

static sps_status create(const sps_operator *A, sps_precond *M, int k,
                         const sps_options *opt, bool step, sps_solver **s_p)
{
    sps_status st = SPS_OK;
    sps_solver *s = NULL;
    sps_context *ctx = A ? A->ctx : NULL;

    if (!A || !s_p) return spsi_fail(ctx, SPS_EINVAL, "A or s_p is NULL");
    SPS_REQUIRE(ctx, k >= 1 && k <= 1024, SPS_EINVAL,
                "%d right-hand sides; 1 to 1024 are possible", k);
    SPS_TRY(spsi_new(ctx, sizeof *s, (void **)&s));
    ctx->live++;
    s->ctx = ctx;
    s->columns = k;
    SPS_TRY(spsi_options_take(ctx, opt, &s->opt));
    SPS_TRY(check_options(ctx, &s->opt));
    s->single = spsi_options_single(&s->opt, s->opt.basis);
    SPS_TRY(take_order(s, A, M));
    A = s->A;
    s->n = A->n;
    s->version = A->version;
    SPS_TRY(!step && climbs(s)
                ? spsi_ladder_create(A, M, k, &s->opt, &s->ladder)
                : take_all(s, M));
    if (!step && !s->ladder && !s->type->widen &&
        !strcmp(s->opt.basis, "single"))
        spsi_note(ctx, "%s: basis single changes nothing here",
                  s->type->name);
    *s_p = s;
    return SPS_OK;

fail:
    sps_solver_destroy(&s);
    return st;
}

sps_status sps_solver_create(const sps_operator *A, sps_precond *M, int k,
                             const sps_options *opt, sps_solver **s_p)
{
    return create(A, M, k, opt, false, s_p);
}

sps_status spsi_solver_create_step(const sps_operator *A, sps_precond *M,
                                   int k, const sps_options *opt,
                                   sps_solver **s_p)
{
    return create(A, M, k, opt, true, s_p);
}

static void release_arrays(sps_solver *s)
{
    void *arrays[] = { s->resnorm, s->limit, s->ahead_norms, s->column,
                       s->order, s->done, s->scale, s->norm_b, s->norm_x,
                       s->norm_start, s->threshold, s->best_norm,
                       s->relative, s->scratch, s->result_residual,
                       s->result_backward,
                       s->result_column };

    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        spsi_free(s->ctx, arrays[i]);
}

void sps_solver_destroy(sps_solver **s_p)
{
    sps_solver *s = s_p ? *s_p : NULL;

    if (!s) return;
    spsi_eigen_destroy(&s->eigen);
    spsi_ladder_destroy(&s->ladder);
    if (s->method && s->type->destroy) s->type->destroy(s, s->method);
    if (s->fallback_method && s->fallback->destroy)
        s->fallback->destroy(s, s->fallback_method);
    spsi_free(s->ctx, s->method);
    spsi_free(s->ctx, s->fallback_method);
    for (int i = 0; i < SPS_SOLVER_BLOCKS; i++)
        sps_block_destroy(&s->work[i]);
    sps_block_destroy(&s->ordered_B);
    sps_block_destroy(&s->ordered_X);
    sps_block_destroy(&s->ordered_basis);
    sps_block_destroy(&s->residual);
    sps_block_destroy(&s->best);
    sps_block_destroy(&s->projected);
    spsi_nullspace_destroy(&s->null);
    if (s->own_M) sps_precond_destroy(&s->M);
    release_arrays(s);
    s->ctx->live--;
    spsi_free(s->ctx, s);
    *s_p = NULL;
}

void spsi_solver_tell_floats(const sps_solver *s, const sps_block *V)
{
    if (V->dtype == SPS_F32)
        spsi_note(s->ctx, "%s: the basis in floats takes %.3g MB; should it "
                  "bring no progress, one in doubles takes %.3g MB more",
                  s->type->name, (double)V->bytes / 1e6,
                  (double)spsi_block_bytes(V) / 1e6);
}

/* A null space of the old values would take away part of an answer that the
 * new ones determine, and nothing later could tell. */
sps_status spsi_solver_follow(sps_solver *s)
{
    sps_status st = SPS_OK;
    sps_nullspace *null = NULL;

    if (s->version == s->A->version) return SPS_OK;
    SPS_TRY(check_needs(s));
    if (s->own_M) SPS_TRY(sps_precond_update(s->M));
    SPS_TRY(spsi_nullspace_create(s->A, s->columns, &s->opt, &null));
    if (null && !s->projected)
        SPS_TRY(sps_block_create(s->ctx, s->n, s->columns, &s->projected));
    spsi_nullspace_destroy(&s->null);
    s->null = null;
    s->version = s->A->version;
    return SPS_OK;

fail:
    spsi_nullspace_destroy(&null);
    return st;
}

sps_status spsi_solver_apply(sps_solver *s, const sps_block *X, sps_block *Y)
{
    sps_status st;

    spsi_phase_begin(s->ctx, SPS_PHASE_SPMM);
    st = sps_operator_apply(s->A, 1.0, X, 0.0, Y);
    spsi_phase_end(s->ctx, SPS_PHASE_SPMM);
    s->applies_A++;
    return st;
}

sps_status spsi_solver_precondition(sps_solver *s, const sps_block *R,
                                    sps_block *Z)
{
    sps_status st;

    spsi_phase_begin(s->ctx, SPS_PHASE_PRECOND);
    if (s->M) {
        st = sps_precond_apply(s->M, R, Z);
        s->applies_M++;
    } else {
        st = spsi_copy(R, Z);
    }
    if (st == SPS_OK) st = spsi_nullspace_project(s->null, Z);
    spsi_phase_end(s->ctx, SPS_PHASE_PRECOND);
    return st;
}

sps_status spsi_solver_direction(sps_solver *s, const sps_block *R,
                                 sps_block *Z, const sps_block **Z_p)
{
    bool same = !s->null && (!s->M || s->M->identity);

    *Z_p = same ? R : Z;
    return same ? SPS_OK : spsi_solver_precondition(s, R, Z);
}
