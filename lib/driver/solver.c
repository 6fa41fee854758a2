/* SPDX-License-Identifier: BSD-3-Clause */
/* solver.c - see solver.h: the public functions of solvers. */
#include "core/abi.h"
#include "core/comm.h"
#include "core/deadline.h"
#include "core/options.h"
#include "core/timer.h"
#include "driver/linear.h"
#include "driver/solver.h"
#include "operator/reorder.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

/* -------------------------------------------------------- order of unknowns */

/* Computes o->basis = P times the caller's basis of the null space, and again
 * after the values of A have changed. */
static sps_status order_basis(sps_solver_order *o)
{
    if (!o->basis || o->version == o->A->version) return SPS_OK;
    o->version = o->A->version;
    return sps_operator_apply(o->by->forth, 1.0, o->given, 0.0, o->basis);
}

/* Replaces a basis of the null space in opt by one in the new order. */
static sps_status take_basis(sps_solver *s, sps_options *opt)
{
    sps_solver_order *o = &s->order;
    sps_status st = SPS_OK;

    o->given = opt->nullspace_basis;
    if (!o->given) return SPS_OK;
    SPS_TRY(sps_block_create(s->ctx, o->given->n, o->given->k, &o->basis));
    o->version = -1;
    SPS_TRY(order_basis(o));
    opt->nullspace_basis = o->basis;
fail:
    return st;
}

/* Replaces the near-null vectors in opt by those in the new order.  Of another
 * shape than the matrix they are left for the preconditioner to refuse. */
static sps_status take_near_null(sps_solver *s, sps_options *opt)
{
    const sps_block *given = opt->near_null_basis;
    sps_status st = SPS_OK;

    if (!given || given->n != s->n) return SPS_OK;
    SPS_TRY(sps_block_create(s->ctx, s->n, given->k, &s->order.near_null));
    SPS_TRY(sps_operator_apply(s->order.by->forth, 1.0, given, 0.0,
                               s->order.near_null));
    opt->near_null_basis = s->order.near_null;
fail:
    return st;
}

/* Computes the coordinates of the nodes in the new order, for preconditioners:
 * the product of P with a row of coordinates for each unknown, of which one row
 * is kept for each node. */
static sps_status take_coords(sps_solver *s, sps_options *opt)
{
    const sps_reordering *r = s->order.by;
    const sps_block *c = opt->coords;
    sps_block *X = NULL, *Y = NULL;
    double *x = NULL;
    sps_status st = SPS_OK;

    opt->coords = NULL;
    if (!c || r->unknowns == 0 || c->n * r->unknowns != s->n) return st;
    SPS_TRY(SPS_NEW(s->ctx, s->n * c->k, &x));
    SPS_TRY(sps_block_get(c, 0, c->k, x, c->k, SPS_ROW_MAJOR, SPS_HOST));
    for (int64_t i = s->n - 1; i >= 0; i--)
        for (int a = 0; a < c->k; a++)
            x[i * c->k + a] = x[i / r->unknowns * c->k + a];
    SPS_TRY(sps_block_create(s->ctx, s->n, c->k, &X));
    SPS_TRY(sps_block_create(s->ctx, s->n, c->k, &Y));
    SPS_TRY(sps_block_set(X, 0, c->k, x, c->k, SPS_ROW_MAJOR, SPS_HOST));
    SPS_TRY(sps_operator_apply(r->forth, 1.0, X, 0.0, Y));
    SPS_TRY(sps_block_get(Y, 0, c->k, x, c->k, SPS_ROW_MAJOR, SPS_HOST));
    for (int64_t i = 0; i < c->n; i++)
        for (int a = 0; a < c->k; a++)
            x[i * c->k + a] = x[i * r->unknowns * c->k + a];
    SPS_TRY(sps_block_create(s->ctx, c->n, c->k, &s->order.coords));
    SPS_TRY(sps_block_set(s->order.coords, 0, c->k, x, c->k, SPS_ROW_MAJOR,
                          SPS_HOST));
    opt->coords = s->order.coords;
fail:
    sps_block_destroy(&X);
    sps_block_destroy(&Y);
    spsi_free(s->ctx, x);
    return st;
}

/* Sets a->A to the reordered operator, if there is one; a preconditioner that
 * the caller made for the original operator keeps the original order. */
static sps_status take_order(sps_solver *s, sps_linear_args *a,
                             sps_options *opt)
{
    sps_status st = SPS_OK;

    if (!a->A->reordered) return SPS_OK;
    if (a->M) {
        spsi_note(s->ctx, "reorder: this solver uses the original order of the "
                  "unknowns, since its preconditioner was made for the matrix "
                  "in that order");
        return SPS_OK;
    }
    s->order.by = a->A->reordered;
    s->order.A = a->A = a->A->reordered->inner;
    SPS_TRY(take_basis(s, opt));
    SPS_TRY(take_coords(s, opt));
    SPS_TRY(take_near_null(s, opt));
    SPS_TRY(sps_block_create(s->ctx, s->n, s->columns, &s->order.B));
    SPS_TRY(sps_block_create(s->ctx, s->n, s->columns, &s->order.X));
fail:
    return st;
}

/* ---------------------------------------------------- creation, destruction */

sps_status spsi_solver_new(sps_context *ctx, const sps_operator *A, int columns,
                           sps_solver **s_p)
{
    const sps_status st = SPS_NEW(ctx, 1, s_p);

    if (st != SPS_OK) return st;
    ctx->live++;
    (*s_p)->ctx = ctx;
    (*s_p)->n = A->n;
    (*s_p)->ncol = A->ncol;
    (*s_p)->columns = columns;
    return SPS_OK;
}

/* Checks conditions that involve more than one option. */
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

static sps_status create(sps_linear_args a, sps_solver **s_p)
{
    sps_context *ctx = a.A->ctx;
    const double before = ctx->deadline;
    sps_status st = SPS_OK;
    sps_solver *s = NULL;
    sps_options opt;
    int64_t rows;

    a.began = spsi_agreed_now(ctx);
    SPS_REQUIRE(ctx, a.k >= 1 && a.k <= 1024, SPS_EINVAL,
                "%d right-hand sides; 1 to 1024 are possible", a.k);
    SPS_TRY(spsi_solver_new(ctx, a.A, a.k, &s));
    SPS_TRY(spsi_options_take(ctx, a.opt, &opt));
    SPS_TRY(check_options(ctx, &opt));
    SPS_TRY(spsi_coords_check(a.A, &opt));
    SPS_TRY(spsi_comm_rows(ctx, a.A->n, a.A->A != NULL, &rows));
    SPS_TRY(spsi_comm_first(ctx, &opt.max_seconds));
    (void)spsi_deadline_begin(ctx, opt.max_seconds);
    SPS_TRY(take_order(s, &a, &opt));
    a.opt = &opt;
    SPS_TRY(spsi_linear_make(&a, &s->ops, &s->of));
    *s_p = s;
    spsi_deadline_end(ctx, before);
    return SPS_OK;

fail:
    spsi_deadline_end(ctx, before);
    sps_solver_destroy(&s);
    return st;
}

sps_status sps_solver_create(const sps_operator *A, sps_precond *M, int k,
                             const sps_options *opt, sps_solver **s_p)
{
    const sps_linear_args a = { .A = A, .M = M, .k = k, .opt = opt };
    const double began = spsi_now();
    sps_solver *s = NULL;
    sps_status st;

    if (!A || !s_p)
        return spsi_fail(A ? A->ctx : NULL, SPS_EINVAL, "A or s_p is NULL");
    SPS_TRY(spsi_comm_begin(A->ctx));
    SPS_TRY(spsi_comm_end(A->ctx, create(a, &s)));
    s->setup = spsi_now() - began;
    *s_p = s;
    return SPS_OK;
fail:
    sps_solver_destroy(&s);
    return st;
}

void sps_solver_destroy(sps_solver **s_p)
{
    sps_solver *s = s_p ? *s_p : NULL;

    if (!s) return;
    if (s->of) s->ops->destroy(s->of);
    sps_block_destroy(&s->order.B);
    sps_block_destroy(&s->order.X);
    sps_block_destroy(&s->order.basis);
    sps_block_destroy(&s->order.coords);
    sps_block_destroy(&s->order.near_null);
    sps_block_destroy(&s->own_B);
    sps_block_destroy(&s->own_X);
    s->ctx->live--;
    spsi_free(s->ctx, s);
    *s_p = NULL;
}

/* Completes the seconds of a solve that began at time `began`: what was neither
 * iteration nor verification, for instance a preconditioner for new values, and
 * of the first solve the creation of the solver, is set-up.  For results whose
 * struct, as the caller was compiled, contains all of its seconds. */
static void set_up_seconds(sps_solver *s, double began, sps_seconds *seconds)
{
    seconds->setup = s->setup + fmax(0, spsi_now() - began - seconds->solve -
                                            seconds->verify);
    s->setup = 0;
}

/* ---------------------------------------------------------- linear systems */

static sps_status check_blocks(sps_solver *s, const sps_block *B,
                               const sps_block *X, const sps_result *r)
{
    sps_status st = SPS_OK;

    SPS_REQUIRE(s->ctx, s->ops->linear, SPS_EINVAL, "this solver was made for "
                "eigenvalues; use sps_solver_eigen");
    SPS_REQUIRE(s->ctx, B && X, SPS_EINVAL, "B or X is NULL");
    SPS_REQUIRE(s->ctx, B->ctx == s->ctx && X->ctx == s->ctx, SPS_EINVAL,
                "B, X and the solver belong to different contexts");
    SPS_REQUIRE(s->ctx, B->n == s->n && X->n == s->ncol &&
                B->k == s->columns && X->k == s->columns, SPS_ESHAPE,
                "B is %lld x %d, X is %lld x %d; the solver was made for "
                "%lld x %d and %lld x %d", (long long)B->n, B->k,
                (long long)X->n, X->k, (long long)s->n, s->columns,
                (long long)s->ncol, s->columns);
    SPS_REQUIRE(s->ctx, !spsi_blocks_overlap(B, X), SPS_EINVAL,
                "B and X share memory");
    SPS_TRY(SPS_ABI_CHECK(s->ctx, sps_result, r));
fail:
    return st;
}

/* Solves with the reordered operator: x = P' (P A P')^-1 P b. */
static sps_status linear_reordered(sps_solver *s, const sps_block *B,
                                   sps_block *X, sps_result *result)
{
    sps_solver_order *o = &s->order;
    sps_status st, back;

    SPS_TRY(order_basis(o));
    SPS_TRY(sps_operator_apply(o->by->forth, 1.0, B, 0.0, o->B));
    SPS_TRY(sps_operator_apply(o->by->forth, 1.0, X, 0.0, o->X));
    st = s->ops->linear(s->of, o->B, o->X, result);
    back = sps_operator_apply(o->by->back, 1.0, o->X, 0.0, X);
    if (st == SPS_OK) st = back;
fail:
    return st;
}

sps_status sps_solver_linear(sps_solver *s, const sps_block *B, sps_block *X,
                             sps_result *result)
{
    const double began = spsi_now();
    sps_status st;

    SPS_HANDLE(s);
    st = spsi_comm_begin(s->ctx);
    if (st != SPS_OK) return st;
    st = check_blocks(s, B, X, result);
    if (st == SPS_OK)
        st = s->order.by ? linear_reordered(s, B, X, result)
                         : spsi_solver_wrapped(s, B, X, result);
    if (st == SPS_OK && result &&
        result->struct_size >= offsetof(sps_result, seconds) +
                               sizeof result->seconds)
        set_up_seconds(s, began, &result->seconds);
    return spsi_comm_end(s->ctx, st);
}

static sps_status project(sps_solver *s, sps_block *B)
{
    sps_solver_order *o = &s->order;
    sps_status st = SPS_OK;

    SPS_REQUIRE(s->ctx, B, SPS_EINVAL, "sps_solver_project: NULL argument");
    SPS_REQUIRE(s->ctx, s->ops->project, SPS_EINVAL, "this solver was made for "
                "eigenvalues");
    SPS_REQUIRE(s->ctx, B->ctx == s->ctx && B->n == s->n &&
                B->k == s->columns, SPS_ESHAPE, "B is %lld x %d; the solver "
                "was made for %lld x %d", (long long)B->n, B->k,
                (long long)s->n, s->columns);
    if (!o->by) return s->ops->project(s->of, B);
    SPS_TRY(sps_operator_apply(o->by->forth, 1.0, B, 0.0, o->B));
    SPS_TRY(s->ops->project(s->of, o->B));
    SPS_TRY(sps_operator_apply(o->by->back, 1.0, o->B, 0.0, B));
fail:
    return st;
}

sps_status sps_solver_project(sps_solver *s, sps_block *B)
{
    sps_status st;

    if (!s)
        return spsi_fail(NULL, SPS_EINVAL, "sps_solver_project: NULL argument");
    st = spsi_comm_begin(s->ctx);
    if (st != SPS_OK) return st;
    return spsi_comm_end(s->ctx, project(s, B));
}

size_t sps_solver_describe(const sps_solver *s, char *text, size_t size)
{
    const sps_precond *M = s ? s->ops->precond(s->of) : NULL;

    if (M) return sps_precond_describe(M, text, size);
    if (size > 0) text[0] = '\0';
    return s ? (size_t)snprintf(text, size, "none\n") : 0;
}

/* ------------------------------------------------------------- eigenvalues */

static sps_status check_pairs(sps_solver *s, const sps_block *X,
                              const sps_eigen_result *r)
{
    sps_status st = SPS_OK;

    SPS_REQUIRE(s->ctx, s->ops->eigen, SPS_EINVAL, "this solver was made for "
                "linear systems; use sps_solver_linear");
    SPS_REQUIRE(s->ctx, X, SPS_EINVAL, "X is NULL");
    SPS_REQUIRE(s->ctx, X->ctx == s->ctx, SPS_EINVAL,
                "X and the solver belong to different contexts");
    SPS_REQUIRE(s->ctx, X->n == s->n && X->k == s->columns, SPS_ESHAPE,
                "X is %lld x %d; the solver was made for %lld x %d",
                (long long)X->n, X->k, (long long)s->n, s->columns);
    SPS_TRY(SPS_ABI_CHECK(s->ctx, sps_eigen_result, r));
fail:
    return st;
}

sps_status sps_solver_eigen(sps_solver *s, sps_block *X, double *lambda,
                            sps_eigen_result *result)
{
    const double began = spsi_now();
    sps_status st;

    SPS_HANDLE(s);
    st = spsi_comm_begin(s->ctx);
    if (st != SPS_OK) return st;
    st = check_pairs(s, X, result);
    if (st == SPS_OK) st = s->ops->eigen(s->of, X, lambda, result);
    if (st == SPS_OK && result &&
        result->struct_size >= offsetof(sps_eigen_result, seconds) +
                               sizeof result->seconds)
        set_up_seconds(s, began, &result->seconds);
    return spsi_comm_end(s->ctx, st);
}
