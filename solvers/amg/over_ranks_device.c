/* SPDX-License-Identifier: BSD-3-Clause */
/* over_ranks_device.c - operators of a level that is spread over processes,
 * with matrices and values in device memory: those of over_ranks_parts.c, and
 * that of A_c. */
#include "solvers/amg/over_ranks.h"

static sps_dtype type_of(const over_ranks *w)
{
    return w->fine.floats ? SPS_F32 : SPS_F64;
}

static size_t bytes_of(const sps_csr *S)
{
    return spsi_dtype_size(S->dtype) * (size_t)(S->nnz + 1);
}

/* Own columns of a matrix over processes: `cols` from `first` on, of `whole`;
 * if h is not NULL, all are numbered as in span.rows (spsi_ranks_there), and
 * with `of` the pattern is that of this operator (spsi_ranks_alike). */
typedef struct columns {
    const sps_halo *h;
    int64_t first, cols, whole;
    const sps_operator *of;
} columns;

/* Makes *op_p, the operator of T with values of the type `as`. */
static sps_status make_across(const over_ranks *w, const sps_csr *T,
                              const columns *c, sps_dtype as, unsigned props,
                              sps_operator **op_p)
{
    const sps_csr shape = { .nrow = T->nrow, .ncol = c->whole, .nnz = T->nnz,
                            .dtype = as, .props = props, .own = SPS_BORROW,
                            .struct_size = sizeof shape, .first = c->first,
                            .whole = c->whole };

    return spsi_ranks_there(w->fine.super.ctx, T, c->h, &shape, c->cols,
                            w->fine.super.width, as, op_p);
}

static columns of_fine(const over_ranks *w)
{
    const sps_halo *h = w->fine.super.A->ranks->halo;

    return (columns){ h, h->first, h->n, h->whole, NULL };
}

static columns of_coarse(const over_ranks *w)
{
    const amg_span *s = &w->span;

    return (columns){ NULL, s->first, s->own_columns, s->columns, NULL };
}

sps_status spsi_amg_coarse_there(over_ranks *w)
{
    const columns c = of_coarse(w);

    return make_across(w, w->span.own, &c, SPS_F64, SPS_SYMMETRIC |
                       (w->fine.super.A->props & SPS_SPD), &w->coarse);
}

/* Makes *S a matrix with the pattern of T and memory of its own for values of
 * the type of the cycle. */
static sps_status open_scaled(const over_ranks *w, const sps_csr *T, sps_csr *S)
{
    *S = *T;
    S->val = NULL;
    S->dtype = type_of(w);
    S->props &= ~(unsigned)(SPS_SYMMETRIC | SPS_SPD);
    return w->fine.super.ctx->backend->alloc(w->fine.super.ctx, bytes_of(S),
                                             &S->val);
}

static void drop_scaled(const over_ranks *w, sps_csr *S)
{
    sps_context *ctx = w->fine.super.ctx;

    if (S->val) ctx->backend->release(ctx, S->val, bytes_of(S));
    S->val = NULL;
}

/* Makes *op_p, the operator of S over processes, or, with c NULL, of this
 * process. */
static sps_status make(const over_ranks *w, sps_csr *S, const columns *c,
                       sps_operator **op_p)
{
    if (c && c->of) return spsi_ranks_alike(c->of, S, type_of(w), op_p);
    return c ? make_across(w, S, c, type_of(w), 0, op_p)
             : spsi_operator_valued(w->fine.super.ctx, S, w->fine.super.width,
                                    type_of(w), op_p);
}

/* Makes *op_p, the operator of T with row i multiplied by row[i] and column j
 * divided by col[j]; NULL stands for ones. */
static sps_status make_scaled(over_ranks *w, const sps_csr *T,
                              const sps_block *row, const sps_block *col,
                              const columns *c, sps_operator **op_p)
{
    amg *m = &w->fine;
    sps_csr S;
    sps_status st;

    SPS_TRY(open_scaled(w, T, &S));
    SPS_TRY(m->device->cycle.weigh(m->super.ctx, T, row, col, S.dtype, S.val,
                                   m->largest, m->measured++));
    SPS_TRY(make(w, &S, c, op_p));
fail:
    drop_scaled(w, &S);
    return st;
}

/* ------------------------------------------------------------------ D^-1 */

/* Returns rows first .. first + n - 1 of X. */
static sps_block rows_of(const sps_block *X, int64_t first, int64_t n)
{
    sps_block part = *X;

    part.n = n;
    part.data = (char *)X->data + (size_t)(first * X->ld) *
                                  spsi_dtype_size(X->dtype);
    part.bytes = 0;
    return part;
}

static sps_status put(sps_block *X, int64_t first, int64_t n,
                      const double *from)
{
    sps_block part = rows_of(X, first, n);

    return n == 0 ? SPS_OK : sps_block_set(&part, 0, 1, from, n, SPS_COL_MAJOR,
                                           SPS_HOST);
}

/* Receives rows of ghosts of D, which has own rows; ghost: in host memory. */
static sps_status trade(const over_ranks *w, const sps_block *D, double *ghost)
{
    const sps_ranks *r = w->fine.super.A->ranks;
    sps_halo *h = r->halo;
    const int64_t sent = h->send_at[h->neighbours];
    sps_block *packed = NULL;
    double *out = NULL;
    sps_status st;

    SPS_TRY(sps_block_create(h->ctx, sent, 1, &packed));
    SPS_TRY(SPS_NEW(h->ctx, sent + 1, &out));
    SPS_TRY(spsi_take_rows(D, r->at.send, packed));
    if (sent > 0)
        SPS_TRY(sps_block_get(packed, 0, 1, out, sent, SPS_COL_MAJOR,
                              SPS_HOST));
    SPS_TRY(spsi_halo_trade_packed(h, out, sizeof *out, ghost));
fail:
    sps_block_destroy(&packed);
    spsi_free(h->ctx, out);
    return st;
}

/* *all_p = D^-1 of the columns of span.rows. */
static sps_status spread_inverse(const over_ranks *w, sps_block **all_p)
{
    const sps_block *D = w->fine.level[0].parts.inverse;
    const sps_halo *h = w->fine.super.A->ranks->halo;
    double *ghost = NULL;
    sps_block own;
    sps_status st;

    SPS_TRY(sps_block_create(h->ctx, h->n + h->ghosts, 1, all_p));
    SPS_TRY(SPS_NEW(h->ctx, h->ghosts + 1, &ghost));
    SPS_TRY(trade(w, D, ghost));
    own = rows_of(*all_p, h->low, h->n);
    SPS_TRY(spsi_copy(D, &own));
    SPS_TRY(put(*all_p, 0, h->low, ghost));
    SPS_TRY(put(*all_p, h->low + h->n, h->ghosts - h->low, ghost + h->low));
fail:
    spsi_free(h->ctx, ghost);
    return st;
}

/* -------------------------------------------------------------- operators */

static sps_status set_restriction(over_ranks *w)
{
    const columns c = of_fine(w);
    const sps_block *D = ((const amg *)w->below)->level[0].parts.inverse;
    amg_level *l = w->fine.level;
    sps_block *all = NULL, below;
    sps_status st;

    if (D) below = rows_of(D, w->spread ? 0 : w->span.first,
                           w->span.own_columns);
    SPS_TRY(spread_inverse(w, &all));
    SPS_TRY(make_scaled(w, l->R, D ? &below : NULL, all, &c,
                        &l->parts.restrict_op));
fail:
    sps_block_destroy(&all);
    return st;
}

/* Makes parts.ahead, if on each process the pattern of A P has all entries of
 * P. */
static sps_status set_ahead(over_ranks *w, const columns *c)
{
    amg_level *l = w->fine.level;
    bool within, never;
    sps_csr S;
    sps_status st;

    SPS_TRY(open_scaled(w, l->AP, &S));
    SPS_TRY(spsi_amg_ahead(&w->fine, l, &S, &within));
    SPS_TRY(spsi_comm_any(w->fine.super.ctx, !within, &never));
    if (!never) SPS_TRY(make(w, &S, c, &l->parts.ahead));
fail:
    drop_scaled(w, &S);
    return st;
}

sps_status spsi_amg_open_there(over_ranks *w)
{
    const columns coarse = of_coarse(w), *up = w->spread ? &coarse : NULL;
    columns fine = of_fine(w);
    amg_level *l = w->fine.level;
    sps_status st;

    fine.of = w->fine.super.A;
    SPS_TRY(spsi_amg_open_largest(&w->fine));
    SPS_TRY(make_scaled(w, w->span.rows, l->parts.inverse, NULL, &fine,
                        &l->parts.own_op));
    if (w->below) {
        SPS_TRY(set_restriction(w));
        if (w->ahead) SPS_TRY(set_ahead(w, up));
        if (!l->parts.ahead)
            SPS_TRY(make_scaled(w, l->P, NULL, NULL, up, &l->parts.prolong));
    }
    SPS_TRY(spsi_amg_check_largest(&w->fine));
fail:
    return st;
}
