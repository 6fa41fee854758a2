/* SPDX-License-Identifier: BSD-3-Clause */
/* over_ranks.c - amg of a symmetric matrix over several processes: Z = M R,
 * where M is one V-cycle for the whole matrix.
 *
 * The finest level is spread over the processes: it has the cycle of cycle.c,
 * with operators over processes (over_ranks_parts.c).  Each process makes
 * aggregates of its own rows (over_ranks_p.c).  A large A_c = P'A P
 * (galerkin.c) is spread again and has a preconditioner of this type.  A small
 * A_c is stored completely on each process with the whole hierarchy below it,
 * and all processes compute the same there.  A cycle exchanges 2 d halos on
 * each level that is spread, up to two for P and P', and once the restricted
 * residuals, with one message to each process. */
#include "solvers/amg/over_ranks.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/deadline.h"
#include "core/options.h"

#define MARGIN 1.1            /* factor on the estimate of the largest
                                 eigenvalue of D^-1 A */
#define WIDE_SPECTRUM 3.5     /* bound of the spectrum above which the smoother
                                 has degree 3 */

/* ------------------------------------------------ selection of this type */

sps_status spsi_amg_whole(const sps_operator *A, const sps_options *opt,
                          const sps_precond_type **type_p)
{
    bool symmetric = A->props & (SPS_SYMMETRIC | SPS_SPD);
    double difference;
    sps_status st = SPS_OK;

    if (!symmetric)
        SPS_TRY(spsi_ranks_symmetric(A, 1e-10, &symmetric, &difference));
    if (symmetric && strcmp(opt->near_null, "filtered") != 0)
        *type_p = &spsi_amg_over_processes;
fail:
    return st;
}

/* *same is set if `mine` has the same value on all processes. */
static sps_status agree(sps_context *ctx, double mine, bool *same)
{
    double *all = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, spsi_comm_size(ctx), &all));
    SPS_TRY(spsi_comm_gather(ctx, mine, all));
    *same = true;
    for (int r = 0; r < spsi_comm_size(ctx); r++) *same &= all[r] == all[0];
fail:
    spsi_free(ctx, all);
    return st;
}

/* ----------------------------------------------------- the levels below */

/* Makes the preconditioner of A_c, of the given type.  A: A_c, or own rows of
 * it on the host, or NULL if these are in device memory. */
static sps_status build_below(over_ranks *w, sps_csr *A,
                              const sps_precond_type *type)
{
    sps_precond *M = &w->fine.super;
    sps_options o;
    amg *b;
    sps_status st;

    SPS_TRY(spsi_options_take(M->ctx, NULL, &o));
    o.degree = w->fine.wanted_degree;
    o.precision = w->fine.floats ? "auto" : "double";
    if (!w->coarse && w->spread && w->there)
        SPS_TRY(spsi_amg_coarse_there(w));
    if (!w->coarse && w->spread)
        SPS_TRY(spsi_ranks_create(M->ctx, A, M->width, SPS_F64, NULL, true,
                                  &w->coarse));
    if (!w->coarse)
        SPS_TRY(sps_operator_csr(M->ctx, A, M->width, NULL, &w->coarse));
    if (w->spread) w->coarse->ranks->gathered = M->A->ranks->gathered;
    SPS_TRY(spsi_precond_new(M->ctx, type, w->coarse->n, &w->below));
    b = (amg *)w->below;
    b->super.A = w->coarse;
    b->super.width = M->width;
    b->super.passes = M->passes;
    b->super.seconds = M->seconds;
    b->inherited = w->near;
    b->inherited_rows = w->node;
    SPS_TRY(type->build(w->below, &o));
fail:
    return st;
}

/* Makes w->rows. */
static sps_status wrap_rows(over_ranks *w)
{
    const sps_precond *M = &w->fine.super;
    const sps_csr *C = w->span.own;
    sps_status st;

    SPS_TRY(SPS_NEW(M->ctx, C->nnz + 1, &w->global));
    spsi_halo_rows(M->ctx, NULL, C->col, C->nnz, w->global);
    SPS_TRY(sps_csr_wrap_rows(M->ctx, w->span.first, C->nrow, w->span.columns,
                              C->nnz, C->rowptr, w->global, C->val, SPS_F64,
                              SPS_BORROW, &w->rows));
    w->rows->props |= SPS_SYMMETRIC | (M->A->props & SPS_SPD);
fail:
    return st;
}

static sps_status open_below(over_ranks *w)
{
    sps_context *ctx = w->fine.super.ctx;
    sps_comm *of;
    sps_status st;

    if (w->spread) {
        if (!w->rows && !w->there) SPS_TRY(wrap_rows(w));
        return build_below(w, w->rows, &spsi_amg_over_processes);
    }
    of = spsi_comm_apart(ctx);
    st = build_below(w, w->span.coarse, &spsi_precond_amg);
    st = spsi_rejoin(ctx, of, st);
fail:
    return st;
}

static sps_status refresh_below(over_ranks *w)
{
    sps_context *ctx = w->fine.super.ctx;
    const sps_csr *C = w->spread ? w->span.own : w->span.coarse;
    sps_comm *of = w->spread ? ctx->opt.comm : spsi_comm_apart(ctx);
    sps_status st = w->spread && w->there
                        ? spsi_ranks_set_there(w->coarse, C, NULL)
                        : sps_operator_set_values(w->coarse, C->val, C->place);

    if (st == SPS_OK) st = w->below->type->update(w->below);
    return spsi_rejoin(ctx, of, st);
}

/* ------------------------------------------------------------- the smoother */

static sps_status set_smoother(over_ranks *w)
{
    amg *m = &w->fine;
    amg_level *l = m->level;
    double bound;
    sps_status st;

    SPS_TRY(sps_block_create(m->super.ctx, l->n, 1, &l->parts.inverse));
    SPS_TRY(spsi_amg_inverse(m, l, l->parts.inverse));
    SPS_TRY(spsi_amg_bounds_across(w, &bound));
    l->smoother.upper = fmin(MARGIN * l->rho, bound);
    if (!(l->smoother.upper > 0)) l->smoother.upper = l->rho = 1;
    l->smoother.degree = m->wanted_degree ? m->wanted_degree
              : l->smoother.upper > WIDE_SPECTRUM ? 3 : 2;
    spsi_amg_set_roots(l);
    m->super.products = 2 * l->smoother.degree;
fail:
    return st;
}

/* ------------------------------------------------------------------- set-up */

/* Makes nodes and near-null vectors of own rows.  If the rows of some process
 * do not begin and end with a node, each row is a node. */
static sps_status take_nodes(over_ranks *w, const sps_options *opt)
{
    const sps_precond *M = &w->fine.super;
    const sps_ranks *r = M->A->ranks;
    const sps_halo *h = r->halo;
    const sps_operator *own = r->interior;
    const sps_block *given = opt->near_null_basis;
    sps_options o = *opt;
    bool same;
    sps_status st = SPS_OK;

    /* Their norms are sums over processes. */
    SPS_TRY(agree(M->ctx, given ? given->k : 0, &same));
    SPS_REQUIRE(M->ctx, same, SPS_EUNFIT, "amg: near_null_basis does not have "
                "as many vectors on all processes");
    /* Most rows show the blocks as well as all. */
    if (!w->fine.inherited && r->inner->nnz < r->edge->nnz)
        SPS_TRY(spsi_ranks_own(M->A, &own));
    o.block_size = opt->block_size ? opt->block_size : own->f.block;
    if (opt->coords) o.block_size = opt->block_size;
    if (o.block_size > 0 && (h->first % o.block_size || h->n % o.block_size))
        o.block_size = 1;
    SPS_TRY(agree(M->ctx, o.block_size, &same));
    if (!same || (!opt->coords && !opt->block_size && o.block_size != 2 &&
                  o.block_size != 3 && o.block_size != 6))
        o.block_size = 1;
    SPS_TRY(spsi_amg_near_null(&w->fine, &o, w->fine.level));
    SPS_TRY(agree(M->ctx, w->fine.level[0].vectors, &same));
    SPS_REQUIRE(M->ctx, same, SPS_EUNFIT, "amg: the coordinates or the basis "
                "of null vectors fit the rows of some processes, but not of "
                "all: give them for the rows of each process");
fail:
    return st;
}

/* Makes the messages for the restricted residuals. */
static sps_status open_exchange(over_ranks *w)
{
    sps_precond *M = &w->fine.super;
    const sps_wire *wire = spsi_wire(M->ctx);
    const int size = spsi_comm_size(M->ctx);
    const int64_t own = w->span.own_columns;
    const size_t row = (size_t)spsi_block_ld(M->width) * sizeof(double);
    double *at = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(M->ctx, size, &at));
    SPS_TRY(SPS_OWN(&M->own, size + 1, &w->at));
    SPS_TRY(SPS_OWN(&M->own, size, &w->out));
    SPS_TRY(SPS_OWN(&M->own, size, &w->in));
    SPS_TRY(spsi_comm_gather(M->ctx, (double)w->span.first, at));
    for (int r = 0; r < size; r++) w->at[r] = (int64_t)at[r];
    w->at[size] = w->span.columns;
    if (wire && !w->spread)
        SPS_TRY(wire->reserve(M->ctx, (size_t)(size - 1) * (size_t)own * row,
                              (size_t)(w->span.columns - own) * row));
fail:
    spsi_free(M->ctx, at);
    return st;
}

/* The levels that each process has whole are set up by each alone, whose
 * rounding depends on its machine: all take doubles if one does. */
static sps_status agree_on_floats(over_ranks *w)
{
    const bool single = ((const amg *)w->below)->floats;
    sps_context *ctx = w->fine.super.ctx;
    bool floats, doubles;
    sps_status st;

    SPS_TRY(spsi_comm_any(ctx, single, &floats));
    SPS_TRY(spsi_comm_any(ctx, !single, &doubles));
    w->fine.floats = !doubles;
    if (!floats || !doubles) return SPS_OK;
    sps_precond_destroy(&w->below);
    SPS_TRY(open_below(w));
fail:
    return st;
}

/* Makes the operators and blocks of the cycle, in the precision of the levels
 * below, and in double precision where single does not fit, all levels. */
static sps_status open_cycle(over_ranks *w)
{
    amg *m = &w->fine;
    sps_status st;

    if (w->below) SPS_TRY(agree_on_floats(w));
    st = spsi_amg_open_across(w);
    if (st == SPS_EUNFIT && m->floats) {
        spsi_precond_note_double(&m->super);
        m->floats = false;
        sps_precond_destroy(&w->below);
        if (w->span.columns > 0) SPS_TRY(open_below(w));
        st = spsi_amg_open_across(w);
    }
    sps_csr_destroy(m->super.ctx, &w->span.rows);
    m->super.roundoff = m->floats ? 0.5 * FLT_EPSILON : 0;
    m->super.gives_floats = m->floats;
fail:
    return st;
}

static sps_status across(const amg *m, const sps_block *U, sps_block *X);

/* Decides whether the level is set up in device memory: always if its interior
 * rows are there; else all processes must have interior rows with entries, and
 * the matrix must not be its own A_c. */
static sps_status choose_place(over_ranks *w)
{
    const sps_precond *M = &w->fine.super;
    const sps_ranks *r = M->A->ranks;
    bool never = !w->fine.device || r->halo->whole <= AMG_DENSE ||
                 r->interior->local.nnz == 0;
    sps_status st;

    if (r->inner->place != SPS_HOST) never = !w->fine.device;
    SPS_TRY(spsi_comm_any(M->ctx, never, &never));
    w->there = !never;
fail:
    return st;
}

/* Makes everything but the levels below and the parts of the cycle; opt is NULL
 * for new values. */
static sps_status make_level(over_ranks *w, const sps_options *opt)
{
    amg *m = &w->fine;
    sps_status st;

    SPS_TRY(spsi_amg_take_rows(w));
    if (opt) SPS_TRY(take_nodes(w, opt));
    else if (m->inherited) SPS_TRY(spsi_amg_inherit(m, m->level));
    SPS_TRY(set_smoother(w));
    SPS_TRY(spsi_amg_project(w, !opt));
fail:
    return st;
}

static sps_status set_up(over_ranks *w, const sps_options *opt)
{
    amg *m = &w->fine;
    const sps_precond *M = &m->super;
    sps_status st;

    SPS_TRY(spsi_reserve(M->ctx, M->n, M->width));
    SPS_TRY(choose_place(w));
    SPS_TRY(make_level(w, opt));
    if (w->span.columns > 0) {
        SPS_TRY(open_exchange(w));
        SPS_TRY(open_below(w));
    }
    SPS_TRY(open_cycle(w));
    SPS_TRY(spsi_amg_test(m));
    spsi_note(M->ctx, "amg: %lld rows over %d processes, smoother of degree "
              "%d%s; a cycle leaves %.2f of the error",
              (long long)M->A->ranks->halo->whole, spsi_comm_size(M->ctx),
              m->level[0].smoother.degree,
              w->spread ? "" : ", each process has all levels below",
              M->rate);
fail:
    return st;
}

static sps_status build(sps_precond *M, const sps_options *opt)
{
    over_ranks *w = (over_ranks *)M;
    amg *m = &w->fine;
    bool far;
    sps_status st;

    SPS_REQUIRE(M->ctx, opt->degree <= AMG_DEGREE, SPS_EINVAL, "degree=%d: "
                "the smoother of amg supports 1 to %d, and 0 chooses the "
                "degree", opt->degree,
                AMG_DEGREE);
    SPS_TRY(spsi_comm_any(M->ctx, M->A->ranks->interior->local.far, &far));
    SPS_REQUIRE(M->ctx, !far, SPS_EUNFIT, "amg: the matrix is in host memory "
                "because the GPU of some process has no room for it, and so "
                "none for its levels");
    m->wanted_degree = opt->degree;
    m->floats = strcmp(opt->precision, "double") != 0;
    m->device = spsi_coarsening(M->ctx);
    m->levels = 1;
    m->across = across;
    if (m->device) m->device->begin(M->ctx);
    st = set_up(w, opt);
    if (m->device) m->device->end(M->ctx);
fail:
    return st;
}

static sps_status set_up_again(over_ranks *w)
{
    sps_status st;

    spsi_amg_close(&w->fine);
    SPS_TRY(make_level(w, NULL));
    if (w->span.columns > 0) SPS_TRY(refresh_below(w));
    SPS_TRY(open_cycle(w));
    SPS_TRY(spsi_amg_test(&w->fine));
fail:
    return st;
}

static sps_status update(sps_precond *M)
{
    over_ranks *w = (over_ranks *)M;
    sps_status st;

    if (w->fine.device) w->fine.device->begin(M->ctx);
    st = set_up_again(w);
    if (w->fine.device) w->fine.device->end(M->ctx);
    return st;
}

static void destroy(sps_precond *M)
{
    over_ranks *w = (over_ranks *)M;

    sps_precond_destroy(&w->below);
    sps_operator_destroy(&w->coarse);
    sps_csr_destroy(M->ctx, &w->rows);
    spsi_free(M->ctx, w->global);
    sps_csr_destroy(M->ctx, &w->span.own);
    sps_block_destroy(&w->near);
    sps_block_destroy(&w->x);
    sps_csr_destroy(M->ctx, &w->span.rows);
    sps_csr_destroy(M->ctx, &w->span.coarse);
    spsi_amg_destroy(M);
}

/* ---------------------------------------------------------------- the cycle */

/* Returns the part of X that holds the rows of process r; X has the rows of all
 * processes. */
static sps_block rows_of(const over_ranks *w, const sps_block *X, int r)
{
    sps_block own = *X;

    own.n = w->at[r + 1] - w->at[r];
    own.data = (char *)X->data + (size_t)(w->at[r] * X->ld) *
                                 spsi_dtype_size(X->dtype);
    own.bytes = 0;
    return own;
}

/* Sends own rows of X to all processes and receives theirs. */
static sps_status exchange(const over_ranks *w, const sps_block *X)
{
    sps_context *ctx = w->fine.super.ctx;
    const sps_wire *wire = spsi_wire(ctx);
    const int rank = spsi_comm_rank(ctx);
    const size_t row = (size_t)X->ld * spsi_dtype_size(X->dtype);
    const sps_block own = rows_of(w, X, rank);
    int sends = 0, receives = 0;
    sps_status st;

    for (int r = 0; r < spsi_comm_size(ctx); r++) {
        const sps_block theirs = rows_of(w, X, r);

        if (r != rank && own.n > 0)
            w->out[sends++] = (sps_message){ r, own.data, (size_t)own.n * row };
        if (r != rank && theirs.n > 0)
            w->in[receives++] = (sps_message){ r, theirs.data,
                                               (size_t)theirs.n * row };
    }
    if (!wire) return spsi_comm_exchange(ctx, w->out, sends, w->in, receives);
    SPS_TRY(wire->start(ctx, false, w->out, sends, w->in, receives));
    SPS_TRY(wire->finish(ctx));
fail:
    return st;
}

static sps_status prolong(const amg_level *l, const sps_block *below,
                          const sps_block *U, sps_block *X)
{
    if (!l->parts.ahead)
        return sps_operator_apply(l->parts.prolong, 1.0, below, 1.0, X);
    return spsi_operator_apply_fused(
        l->parts.ahead, false, 1.0, below, 1.0, X,
        &(sps_epilogue){ .W = U, .gamma = 1 / l->smoother.root[0] }, NULL);
}

static sps_status across(const amg *m, const sps_block *U, sps_block *X)
{
    const over_ranks *w = (const over_ranks *)m;
    const amg_level *l = m->level;
    const amg *b = (const amg *)w->below;
    sps_block own, *r, *x;
    sps_status st;

    if (!b) return SPS_OK;
    r = b->level[0].parts.r;
    x = w->x ? w->x : b->level[0].parts.x;
    spsi_amg_shape(b, U->k, l->parts.t->ld);
    if (w->x) spsi_block_narrow(w->x, U->k);
    if (w->x) w->x->ld = r->ld;
    own = w->spread ? *r : rows_of(w, r, spsi_comm_rank(m->super.ctx));
    SPS_TRY(sps_operator_apply(l->parts.restrict_op, 1.0, U, 0.0, &own));
    if (!w->spread) SPS_TRY(exchange(w, r));
    SPS_TRY(spsi_amg_cycle(b, r, x));
    SPS_TRY(prolong(l, x, U, X));
fail:
    return st;
}

static sps_status apply(const sps_precond *M, const sps_block *R, sps_block *Z)
{
    sps_status st = spsi_comm_begin(M->ctx);

    if (st != SPS_OK) return st;
    return spsi_comm_end(M->ctx, spsi_amg_apply((const amg *)M, R, Z));
}

static sps_status subtract(const sps_precond *M, const sps_block *Q,
                           const sps_small *a, sps_block *R, sps_small *norm2,
                           bool *served)
{
    return spsi_amg_subtract((const amg *)M, Q, a, R, norm2, served);
}

static size_t describe(const sps_precond *M, char *text, size_t size)
{
    const over_ranks *w = (const over_ranks *)M;
    char rate[80];
    size_t length;

    spsi_amg_say_rate(&w->fine, rate, sizeof rate);
    length = (size_t)snprintf(
        text, size, "amg over %d processes: %s; smoother of degree %d to %.3f "
        "of %lld rows, and %s\n", spsi_comm_size(M->ctx), rate,
        w->fine.level[0].smoother.degree, w->fine.level[0].smoother.upper,
        (long long)M->A->ranks->halo->whole,
        w->spread ? "below" : "on each process");
    if (!w->below) return length;
    return length + sps_precond_describe(w->below, length < size
                                             ? text + length : NULL,
                                         length < size ? size - length : 0);
}

SPS_DEFINE(sps_precond_type, spsi_amg_over_processes) = {
    .name = "amg", .symmetric = true, .needs = SPS_NEEDS_CSR | SPS_READS_THERE,
    .ranks = SPS_RANKS_WHOLE, .size = sizeof(over_ranks), .build = build,
    .update = update, .apply = apply, .subtract = subtract, .destroy = destroy,
    .describe = describe,
};
