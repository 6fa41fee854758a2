/* SPDX-License-Identifier: BSD-3-Clause */
/* operator_ranks.c - see operator_ranks.h: checks the rows, and makes plans and
 * blocks for the parts into which they are divided (ranks_divide.c). */
#include "operator/ranks_parts.h"
#include "operator/reorder.h"

#include <math.h>
#include <string.h>

#include "core/abi.h"
#include "core/options.h"
#include "core/team.h"

#define FEW 4                /* boundary rows are few if they have at most this
                                part of the entries */

/* ------------------------------------------------------------------- checks */

static bool is_good(const sps_csr *A, int64_t i)
{
    const int64_t first = A->rowptr[i], last = A->rowptr[i + 1];

    if (first < 0 || first > last || last > A->nnz) return false;
    for (int64_t p = first; p < last; p++)
        if (A->global[p] < 0 || A->global[p] >= A->whole ||
            (p > first && A->global[p] <= A->global[p - 1]))
            return false;
    return true;
}

typedef struct checking {
    const sps_csr *A;
    int64_t bad;
} checking;

static void count_bad(void *data, int64_t first, int64_t last)
{
    checking *c = data;
    int64_t bad = 0;

    for (int64_t i = first; i < last; i++) bad += !is_good(c->A, i);
    spsi_team_add(&c->bad, bad);
}

static sps_status check_row(sps_context *ctx, const sps_csr *A, int64_t i)
{
    const long long row = (long long)(A->first + i);
    sps_status st = SPS_OK;

    SPS_REQUIRE(ctx, A->rowptr[i] <= A->rowptr[i + 1] &&
                A->rowptr[i + 1] <= A->nnz, SPS_EMATRIX, "row %lld: its "
                "offsets are %lld and %lld; they must not decrease, and not "
                "exceed the %lld entries", row, (long long)A->rowptr[i],
                (long long)A->rowptr[i + 1], (long long)A->nnz);
    for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
        SPS_REQUIRE(ctx, A->global[p] >= 0 && A->global[p] < A->whole,
                    SPS_EMATRIX, "row %lld has column %lld, the whole matrix "
                    "has columns 0 to %lld", row, (long long)A->global[p],
                    (long long)A->whole - 1);
        SPS_REQUIRE(ctx, p == A->rowptr[i] || A->global[p] > A->global[p - 1],
                    SPS_EMATRIX, "row %lld: columns %lld and %lld do not "
                    "ascend; the rows of a matrix over several processes must "
                    "be sorted, without duplicates", row,
                    (long long)A->global[p - 1],
                    (long long)A->global[p]);
    }
fail:
    return st;
}

static sps_status check_rows(sps_context *ctx, const sps_csr *A)
{
    checking c = { .A = A };
    sps_status st;

    SPS_TRY(spsi_abi_csr_struct(ctx, "sps_operator_csr", A));
    SPS_REQUIRE(ctx, A->place == SPS_HOST, SPS_EUNFIT, "the rows of a matrix "
                "over several processes must be in host memory");
    SPS_REQUIRE(ctx, !(A->props & SPS_INTERLEAVED), SPS_EUNFIT, "a complex "
                "matrix cannot be distributed over processes");
    SPS_REQUIRE(ctx, A->ncol == A->whole, SPS_EUNFIT, "the matrix is %lld x "
                "%lld; over processes it must be square", (long long)A->whole,
                (long long)A->ncol);
    SPS_REQUIRE(ctx, A->nrow >= 0 && A->nnz >= 0 && A->rowptr &&
                A->rowptr[0] == 0 && A->rowptr[A->nrow] == A->nnz &&
                (A->nnz == 0 || (A->global && A->val)), SPS_EINVAL,
                "sps_operator_csr: an array of the rows is NULL, or offsets do "
                "not run from 0 to %lld", (long long)A->nnz);
    SPS_REQUIRE(ctx, A->first >= 0 && A->nrow <= INT32_MAX &&
                A->nrow <= A->whole - A->first, SPS_EINVAL, "rows %lld to "
                "%lld are not rows of a whole of %lld, or more than 2^31",
                (long long)A->first, (long long)(A->first + A->nrow - 1),
                (long long)A->whole);
    spsi_team_run(ctx, A->nrow, A->nnz, count_bad, &c);
    for (int64_t i = 0; i < A->nrow && c.bad > 0; i++)
        SPS_TRY(check_row(ctx, A, i));
fail:
    return st;
}

/* ----------------------------------------------------------------- creation */

static int64_t sent(const sps_ranks *r)
{
    return r->halo->send_at[r->halo->neighbours];
}

/* Copies `count` row numbers to the memory of the blocks, or uses them in place
 * if that is host memory. */
static sps_status place(sps_context *ctx, int32_t *from, int64_t count,
                        int32_t **to)
{
    const size_t bytes = (size_t)count * sizeof *from;
    void *room = from;
    sps_status st = SPS_OK;

    if (ctx->backend->place != SPS_HOST && count > 0) {
        SPS_TRY(ctx->backend->alloc(ctx, bytes, &room));
        *to = room;
        SPS_TRY(ctx->backend->upload(ctx, room, from, bytes));
    }
    *to = room;
fail:
    return st;
}

static void displace(sps_context *ctx, const int32_t *from, int64_t count,
                     int32_t *at)
{
    if (at && at != from)
        ctx->backend->release(ctx, at, (size_t)count * sizeof *at);
}

/* Returns the predicted seconds of a product of own rows, from the memory
 * traffic of two blocks, and of an index and a value for each entry. */
static double product_seconds(const sps_ranks *r, const spsi_uses *u)
{
    const double each = (double)spsi_dtype_size(u->blocks);
    const double bytes = each * (double)(r->A->nrow + r->cols) * u->width +
                         (4.0 + (double)spsi_dtype_size(r->A->dtype)) *
                         (double)r->A->nnz;
    const double rate = r->halo->ctx->machine.copy;

    return rate > 0 ? bytes / rate : 0;
}

/* Products of boundary rows are added in place where these are few, which takes
 * less than gathering their operands. */
void spsi_ranks_choose_adds(sps_ranks *r)
{
    r->adds = spsi_wire(r->halo->ctx) && !r->boundary->local.far &&
              r->edge->nnz <= r->A->nnz / FEW;
}

/* Decides whether products of boundary rows are added in place; and whether
 * products of an X of floats are possible, on all processes. */
static sps_status choose_ways(sps_context *ctx, sps_ranks *r, int width)
{
    const sps_plan *plan = r->interior->block;
    const int64_t ld = spsi_block_ld(width);
    const sps_block X = { .k = width, .ld = ld, .dtype = SPS_F32 };
    sps_block Y = { .k = width, .ld = ld, .dtype = SPS_F64 };
    const sps_spmm_args args = { .alpha = 1, .X = &X, .Y = &Y };
    bool never;
    sps_status st;

    spsi_ranks_choose_adds(r);
    never = !r->adds || r->interior->dtype != SPS_F64 || !plan ||
            !plan->kernel->mixes || !plan->kernel->mixes(plan, &args);
    SPS_TRY(spsi_comm_any(ctx, never, &never));
    r->mixes = !never;
fail:
    return st;
}

static sps_status make_blocks(sps_context *ctx, sps_ranks *r,
                              const spsi_uses *u)
{
    sps_status st;

    SPS_TRY(spsi_block_create(ctx, sent(r), u->width, u->blocks, &r->packed));
    SPS_TRY(spsi_block_create(ctx, r->edge->ncol, u->width, u->blocks,
                              &r->operand));
    for (int i = 0; i < 4; i++)     /* [2] may hold a diagonal of doubles */
        SPS_TRY(spsi_block_create(ctx, r->rows, u->width,
                                  i == 2 ? SPS_F64 : u->blocks,
                                  &r->result[i]));
fail:
    return st;
}

static sps_status make_plans(sps_context *ctx, sps_ranks *r, const spsi_uses *u,
                             const sps_options *o)
{
    sps_status st;

    SPS_TRY(spsi_operator_create(ctx, r->inner, u->width, u->blocks, o,
                                 u->inner, &r->interior));
    SPS_TRY(spsi_operator_create(ctx, r->edge, u->width, u->blocks, o,
                                 u->inner, &r->boundary));
    SPS_TRY(make_blocks(ctx, r, u));
    SPS_TRY(spsi_halo_reserve(r->halo, u->width));
    SPS_TRY(spsi_halo_choose(r->halo, product_seconds(r, u), r->packed,
                             r->operand));
    SPS_TRY(place(ctx, r->row, r->rows, &r->at.row));
    SPS_TRY(place(ctx, r->touch, r->touched, &r->at.touch));
    SPS_TRY(place(ctx, r->halo->send, sent(r), &r->at.send));
    SPS_TRY(choose_ways(ctx, r, u->width));
fail:
    return st;
}

/* Copies the options, checked, to *o.  *how becomes "morton" or "metis" if rows
 * are to move between processes, otherwise NULL.  o->wisdom becomes NULL: it
 * names a file, which several processes would write at once. */
static sps_status take_options(sps_context *ctx, const sps_options *opt,
                               sps_options *o, const char **how)
{
    bool alone;
    sps_status st;

    SPS_TRY(spsi_options_take(ctx, opt, o));
    alone = !strcmp(o->reorder, "none") || !strcmp(o->reorder, "auto");
    SPS_REQUIRE(ctx, strcmp(o->reorder, "rcm") != 0, SPS_EUNFIT, "reorder rcm "
                "is not supported with several processes; morton and metis "
                "are");
    SPS_REQUIRE(ctx, strcmp(o->reorder, "metis") != 0 ||
                !spsi_comm_ordered(ctx), SPS_EUNFIT, "reorder metis: the parts "
                "depend on the number of processes, which across_ranks "
                "excludes");
    *how = alone ? NULL : o->reorder;
    o->reorder = "none";
    o->wisdom = NULL;
fail:
    return st;
}

/* Keeps those properties marked by the caller that the rows of all processes
 * have, so that decisions based on them are the same on all. */
static sps_status agree_on_marks(sps_context *ctx, unsigned props,
                                 unsigned *agreed)
{
    double without[2] = { !(props & SPS_SYMMETRIC), !(props & SPS_SPD) };
    sps_status st;

    SPS_TRY(spsi_reduce(ctx, without, 2));
    *agreed = (without[0] > 0 ? 0 : SPS_SYMMETRIC) |
              (without[1] > 0 ? 0 : SPS_SPD);
fail:
    return st;
}

/* Determines how many rows of X a product receives from other processes: the
 * sum over processes and the largest number; and the largest number of
 * neighbours. */
static sps_status sum_halos(sps_context *ctx, sps_ranks *r)
{
    const int size = spsi_comm_size(ctx);
    double *all = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, 2 * (int64_t)size, &all));
    SPS_TRY(spsi_comm_gather(ctx, (double)r->halo->ghosts, all));
    SPS_TRY(spsi_comm_gather(ctx, r->halo->neighbours, all + size));
    for (int p = 0; p < size; p++) {
        const int64_t rows = (int64_t)all[p];
        const int neighbours = (int)all[size + p];

        r->received.rows += rows;
        if (r->received.most < rows) r->received.most = rows;
        if (r->received.neighbours < neighbours)
            r->received.neighbours = neighbours;
    }
fail:
    spsi_free(ctx, all);
    return st;
}

void sps_operator_halo(const sps_operator *op, int64_t *rows, int64_t *most,
                       int *neighbours)
{
    const bool many = op && op->ranks;

    if (rows) *rows = many ? op->ranks->received.rows : 0;
    if (most) *most = many ? op->ranks->received.most : 0;
    if (neighbours) *neighbours = many ? op->ranks->received.neighbours : 0;
}

/* Makes op->ranks from A, whose rows and columns have been checked. */
static sps_status distribute(sps_operator *op, const sps_csr *A,
                             const spsi_uses *u, const sps_options *o)
{
    sps_context *ctx = op->ctx;
    sps_ranks *r = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, 1, &r));
    op->ranks = r;
    r->A = A;
    r->cols = u->cols;
    r->blocks = u->blocks;
    op->n = A->nrow;
    op->ncol = u->cols;
    op->width = u->width;
    op->dtype = u->blocks;
    op->inner = u->inner;
    SPS_TRY(agree_on_marks(ctx, A->props, &op->props));
    op->caller.nnz = A->nnz;
    SPS_TRY(spsi_ranks_divide(ctx, r, u));
    SPS_TRY(make_plans(ctx, r, u, o));
fail:
    return st;
}

static sps_status create_many(sps_context *ctx, const sps_csr *A,
                              const spsi_uses *u, const sps_options *opt,
                              sps_operator **op_p)
{
    sps_operator *op = NULL;
    const char *how = NULL;
    int64_t all;
    sps_options o;
    sps_status st;

    SPS_TRY(check_rows(ctx, A));
    SPS_TRY(spsi_comm_rows(ctx, A->nrow, false, &all));
    SPS_TRY(take_options(ctx, opt, &o, &how));
    SPS_TRY(spsi_operator_new(ctx, &op));
    SPS_TRY(distribute(op, A, u, &o));
    SPS_TRY(sum_halos(ctx, op->ranks));
    if (how) SPS_TRY(spsi_ranks_reorder(op, how, &o));
    *op_p = op;
    return SPS_OK;

fail:
    sps_operator_destroy(&op);
    return st;
}

/* Creates the operator of a single process: all rows are copied, with 32-bit
 * columns, to a csr that belongs to the operator. */
static sps_status create_alone(sps_context *ctx, const sps_csr *A,
                               const spsi_uses *u, const sps_options *opt,
                               sps_operator **op_p)
{
    sps_csr *own = NULL;
    sps_status st;

    SPS_TRY(check_rows(ctx, A));
    SPS_REQUIRE(ctx, A->nrow == A->whole, SPS_EINVAL, "there is only one "
                "process, and it has %lld of %lld rows", (long long)A->nrow,
                (long long)A->whole);
    SPS_TRY(sps_csr_create(ctx, A->nrow, A->nrow, A->nnz, A->dtype, &own));
    own->props = A->props;
    memcpy(own->rowptr, A->rowptr, (size_t)(A->nrow + 1) * sizeof *A->rowptr);
    for (int64_t p = 0; p < A->nnz; p++) own->col[p] = (int32_t)A->global[p];
    if (A->nnz > 0) memcpy(own->val, A->val, spsi_csr_value_bytes(A));
    SPS_TRY(spsi_operator_create(ctx, own, u->width, u->blocks, opt, u->inner,
                                 op_p));
    (*op_p)->own_A = own;
    return SPS_OK;

fail:
    sps_csr_destroy(ctx, &own);
    return st;
}

sps_status spsi_ranks_create(sps_context *ctx, const sps_csr *A, int width,
                             sps_dtype blocks, const sps_options *opt,
                             bool inner, sps_operator **op_p)
{
    const spsi_uses u = { A->nrow, width, blocks, inner, NULL };
    sps_operator *op = NULL;
    sps_status st;

    if (!spsi_comm_many(ctx)) return create_alone(ctx, A, &u, opt, op_p);
    SPS_TRY(spsi_comm_begin(ctx));
    SPS_TRY(spsi_comm_end(ctx, create_many(ctx, A, &u, opt, &op)));
    *op_p = op;
    return SPS_OK;

fail:
    sps_operator_destroy(&op);
    return st;
}

sps_status spsi_ranks_make(sps_context *ctx, const sps_csr *A,
                           const spsi_uses *u, sps_operator **op_p)
{
    sps_operator *op = NULL;
    sps_options o;
    sps_status st;

    SPS_TRY(spsi_options_take(ctx, NULL, &o));
    SPS_TRY(spsi_operator_new(ctx, &op));
    SPS_TRY(distribute(op, A, u, &o));
    *op_p = op;
    return SPS_OK;

fail:
    sps_operator_destroy(&op);
    return st;
}

sps_status spsi_ranks_across(sps_context *ctx, const sps_csr *A, int64_t cols,
                             int width, sps_dtype blocks, sps_operator **op_p)
{
    const spsi_uses u = { cols, width, blocks, true, NULL };

    return spsi_ranks_make(ctx, A, &u, op_p);
}

/* --------------------------------------------------- other values, the same
 * pattern */

typedef struct scaling {
    const sps_csr *A;
    const int32_t *row;       /* rows of A among own rows; NULL: all */
    const double *by;
    double *val;
} scaling;

static void scale_rows(void *data, int64_t first, int64_t last)
{
    const scaling *s = data;

    for (int64_t i = first; i < last; i++) {
        const double by = s->by[s->row ? s->row[i] : i];

        for (int64_t p = s->A->rowptr[i]; p < s->A->rowptr[i + 1]; p++) {
            const double v = by * spsi_csr_value(s->A, p);

            s->val[p] = fabs(v) < 1e-30 ? 0 : v;
        }
    }
}

/* Creates *op_p on the pattern of `of`, whose matrix is A. */
static sps_status scaled_part(const sps_operator *of, const sps_csr *A,
                              const int32_t *row, const double *by,
                              sps_operator **op_p)
{
    scaling s = { .A = A, .row = row, .by = by };
    sps_csr S = *A;
    sps_options o;
    sps_status st;

    SPS_TRY(spsi_options_take(of->ctx, NULL, &o));
    SPS_TRY(SPS_NEW(of->ctx, A->nnz + 1, &s.val));
    spsi_team_run(of->ctx, A->nrow, A->nnz, scale_rows, &s);
    S.val = s.val;
    S.dtype = SPS_F64;
    S.props = 0;
    SPS_TRY(spsi_operator_single_like(of, &S, &o, op_p));
fail:
    spsi_free(of->ctx, s.val);
    return st;
}

sps_status spsi_ranks_share(const sps_operator *of, sps_dtype blocks,
                            sps_operator **op_p)
{
    sps_operator *op = NULL;
    sps_ranks *r;
    sps_status st;

    SPS_TRY(spsi_operator_new(of->ctx, &op));
    SPS_TRY(SPS_NEW(of->ctx, 1, &op->ranks));
    r = op->ranks;
    *r = *of->ranks;
    r->shared = true;
    r->adds = r->mixes = false;
    r->blocks = op->dtype = blocks;
    r->alone = NULL;
    r->interior = r->boundary = r->own = NULL;
    op->n = of->n;
    op->ncol = of->ncol;
    op->width = of->width;
    op->inner = true;
    op->caller.nnz = of->caller.nnz;
    *op_p = op;
    return SPS_OK;

fail:
    sps_operator_destroy(&op);
    return st;
}

sps_status spsi_ranks_scaled(const sps_operator *A, const double *by,
                             sps_operator **op_p)
{
    const sps_ranks *from = A->ranks;
    sps_operator *op = NULL;
    sps_ranks *r;
    bool unfit;
    sps_status st;

    SPS_TRY(spsi_ranks_share(A, SPS_F32, &op));
    r = op->ranks;
    st = scaled_part(from->interior, from->inner, NULL, by, &r->interior);
    if (st == SPS_OK)
        st = scaled_part(from->boundary, from->edge, from->row, by,
                         &r->boundary);
    if (st != SPS_OK && st != SPS_EUNFIT) goto fail;
    unfit = st == SPS_EUNFIT;
    SPS_TRY(spsi_comm_any(A->ctx, unfit, &unfit));
    SPS_REQUIRE(A->ctx, !unfit, SPS_EUNFIT, "values of some process are not "
                "suitable for single precision");
    spsi_ranks_choose_adds(r);
    *op_p = op;
    return SPS_OK;

fail:
    sps_operator_destroy(&op);
    return st;
}

void spsi_ranks_destroy(sps_context *ctx, sps_ranks **ranks_p)
{
    sps_ranks *r = *ranks_p;

    if (!r) return;
    sps_operator_destroy(&r->interior);
    sps_operator_destroy(&r->boundary);
    sps_operator_destroy(&r->own);
    sps_csr_destroy(ctx, &r->alone);
    *ranks_p = NULL;
    if (r->shared) {
        spsi_free(ctx, r);
        return;
    }
    sps_csr_destroy(ctx, &r->inner);
    sps_csr_destroy(ctx, &r->edge);
    sps_csr_destroy(ctx, &r->diagonal);
    sps_block_destroy(&r->packed);
    sps_block_destroy(&r->operand);
    for (int i = 0; i < 4; i++) sps_block_destroy(&r->result[i]);
    displace(ctx, r->row, r->rows, r->at.row);
    displace(ctx, r->touch, r->touched, r->at.touch);
    if (r->halo && r->halo->send)
        displace(ctx, r->halo->send, sent(r), r->at.send);
    spsi_free(ctx, r->row);
    spsi_free(ctx, r->touch);
    spsi_halo_destroy(&r->halo);
    spsi_free(ctx, r);
}
