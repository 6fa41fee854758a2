/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks_apply.c - products of operators whose rows are distributed over
 * processes (operator_ranks.h): the exchange is started, the interior rows are
 * computed, the exchange is completed, and the products of the boundary rows
 * are added to what the interior product has left in their place, or computed
 * into a separate block and copied over it. */
#include "operator/operator_ranks.h"

/* ----------------------------------------------------------------- products */

/* Returns a block of k columns in the memory of `whole`, of its type or of a
 * smaller one, with the ld that the library would choose for k, so that
 * messages are no longer than necessary. */
static sps_block fit_as(const sps_block *whole, int k, sps_dtype dtype)
{
    sps_block X = *whole;

    X.k = X.width = k;
    X.ld = spsi_block_ld(k);
    X.dtype = dtype;
    X.bytes = 0;
    return X;
}

static sps_block fit(const sps_ranks *r, int which, int k)
{
    return fit_as(r->result[which], k, r->blocks);
}

/* Returns the rows of the operand that hold own rows. */
static sps_block own_part(const sps_ranks *r, const sps_block *operand)
{
    sps_block X = *operand;

    X.n = r->touched;
    X.data = (char *)X.data + (size_t)(r->halo->low * X.ld) *
                              spsi_dtype_size(X.dtype);
    return X;
}

/* Returns whether the rows to be sent can be read in X.  The last of them ends
 * with the memory of X only if that is no view with other columns. */
static bool sends_runs(const sps_ranks *r, const sps_block *X)
{
    return r->halo->runs && X->ld == spsi_block_ld(X->k) &&
           (X->ld == X->k || X->bytes > 0);
}

/* Packs the rows if necessary, and starts the exchange. */
static sps_status exchange(const sps_ranks *r, const sps_block *X,
                           sps_block *operand)
{
    sps_block packed = fit_as(r->packed, X->k, X->dtype);
    const bool runs = sends_runs(r, X);
    sps_status st = SPS_OK;

    *operand = fit_as(r->operand, X->k, X->dtype);
    if (!runs) SPS_TRY(spsi_take_rows(X, r->at.send, &packed));
    SPS_TRY(spsi_halo_start(r->halo, runs ? X : &packed, runs, operand));
fail:
    return st;
}

/* Starts the exchange, and copies the own rows to *operand. */
static sps_status begin(const sps_ranks *r, const sps_block *X,
                        sps_block *operand)
{
    sps_block own, to = fit_as(r->operand, X->k, X->dtype);
    sps_status st;

    own = own_part(r, &to);
    SPS_TRY(spsi_take_rows(X, r->at.touch, &own));
    SPS_TRY(exchange(r, X, operand));
fail:
    return st;
}

/* --------------------------------------------- boundary rows in their place */

static bool adds(const sps_ranks *r)
{
    return r->adds && !spsi_comm_ordered(r->halo->ctx);
}

sps_edge spsi_ranks_edge(const sps_ranks *r)
{
    const sps_csr_local *B = &r->boundary->local;

    return (sps_edge){ .rows = r->rows, .row = r->at.row, .rowptr = B->rowptr,
                       .rowptr32 = B->rowptr32, .col = B->col, .val = B->val,
                       .dtype = B->dtype, .low = r->halo->low,
                       .touched = r->touched, .touch = r->at.touch };
}

/* Returns whether the kernels of the boundary operator, with copies of its
 * operand and of its result, take less time than add_edge, whose time grows
 * with the entries of a row.  On an H200 12288 rows of 79 entries took 32 us by
 * add_edge and 18 us by the kernels, 25600 rows of 6 entries 11 and 16 us. */
static bool long_rows(const sps_ranks *r, const sps_block *X,
                      const sps_block *Y)
{
    return X->dtype == Y->dtype && r->edge->nnz > 40 * r->rows;
}

/* Copies the own rows to the operand, which long rows need, while the messages
 * pass. */
static sps_status take_touched(const sps_ranks *r, const sps_block *X,
                               const sps_block *operand)
{
    sps_block own = own_part(r, operand);

    return spsi_wire(X->ctx)->take_rows(X, r->at.touch, &own);
}

/* Adds the products of boundary rows to Y; they are empty in what the interior
 * has left there.  The operand has own rows if the rows are long. */
static sps_status add_rows(const sps_ranks *r, double alpha,
                           const sps_block *D, const sps_block *X,
                           const sps_block *operand, sps_block *Y)
{
    const sps_wire *wire = spsi_wire(X->ctx);
    sps_edge edge = spsi_ranks_edge(r);
    sps_block product = fit(r, 0, X->k);
    sps_status st;

    if (!long_rows(r, X, Y))
        return wire->add_edge(&edge, alpha, D, X, operand, Y);
    SPS_TRY(sps_operator_apply(r->boundary, 1, operand, 0, &product));
    edge = (sps_edge){ .rows = r->rows, .row = r->at.row, .dtype = SPS_F64 };
    SPS_TRY(wire->add_edge(&edge, alpha, D, &product, &product, Y));
fail:
    return st;
}

/* Multiplies the interior rows: Y = A X for an X of floats, or the product with
 * the epilogue e, or without. */
static sps_status interior(const sps_ranks *r, double alpha, const sps_block *X,
                           double beta, sps_block *Y, const sps_epilogue *e,
                           sps_block *room)
{
    bool served = true;
    sps_status st;

    if (X->dtype != Y->dtype)
        st = spsi_operator_apply_single(r->interior, X, Y, &served);
    else
        st = e ? spsi_operator_apply_fused(r->interior, false, alpha, X, beta,
                                           Y, e, room)
               : sps_operator_apply(r->interior, alpha, X, beta, Y);
    return st == SPS_OK && !served
               ? spsi_fail(X->ctx, SPS_EBUG, "a product of floats was not "
                           "served: please report it") : st;
}

/* Y = D (alpha A X + gamma W) + beta Y + delta X: boundary rows are empty in
 * the interior, whose product makes all terms but that of A, which is added. */
static sps_status add_slice(const sps_ranks *r, double alpha,
                            const sps_block *X, double beta, sps_block *Y,
                            const sps_epilogue *e, sps_block *room)
{
    sps_block operand;
    sps_status st, finished;

    SPS_TRY(exchange(r, X, &operand));
    st = interior(r, alpha, X, beta, Y, e, room);
    if (st == SPS_OK && long_rows(r, X, Y))
        st = take_touched(r, X, &operand);
    finished = spsi_halo_finish(r->halo);
    if (st == SPS_OK) st = finished;
    if (st == SPS_OK && alpha != 0)
        st = add_rows(r, alpha, e ? e->D : NULL, X, &operand, Y);
fail:
    return st;
}

/* Y = alpha A X + beta Y.  With across_ranks it is computed by plain kernels,
 * which sum a row in the same order whatever rows are beside it. */
static sps_status times(const sps_operator *A, bool plain, double alpha,
                        const sps_block *X, double beta, sps_block *Y)
{
    return plain || spsi_comm_ordered(A->ctx)
        ? spsi_operator_apply_plain(A, alpha, X, beta, Y)
        : sps_operator_apply(A, alpha, X, beta, Y);
}

/* Multiplies at most as many columns as the width of the operator.  beta Y of
 * boundary rows is saved before the interior rows are computed, which overwrite
 * them. */
static sps_status apply_slice(const sps_ranks *r, bool plain, double alpha,
                              const sps_block *X, double beta, sps_block *Y)
{
    sps_block operand, edge = fit(r, 0, X->k);
    sps_status st, finished;

    if (!plain && adds(r)) return add_slice(r, alpha, X, beta, Y, NULL, NULL);
    SPS_TRY(begin(r, X, &operand));
    st = beta == 0 ? SPS_OK : spsi_take_rows(Y, r->at.row, &edge);
    if (st == SPS_OK) st = times(r->interior, plain, alpha, X, beta, Y);
    finished = spsi_halo_finish(r->halo);
    if (st == SPS_OK) st = finished;
    if (st == SPS_OK) st = times(r->boundary, plain, alpha, &operand, beta,
                                 &edge);
    if (st == SPS_OK) st = spsi_put_rows(&edge, r->at.row, Y);
fail:
    return st;
}

static sps_status apply_all(const sps_operator *op, bool plain, double alpha,
                            const sps_block *X, double beta, sps_block *Y)
{
    sps_status st;

    SPS_TRY(spsi_operator_check(op, X, Y));
    for (int j = 0, k; j < X->k; j += k) {
        sps_block x, y;

        k = X->k - j < op->width ? X->k - j : op->width;
        spsi_block_view(X, j, k, &x);
        spsi_block_view(Y, j, k, &y);
        SPS_TRY(apply_slice(op->ranks, plain, alpha, &x, beta, &y));
    }
fail:
    return st;
}

sps_status spsi_ranks_apply(const sps_operator *op, bool plain, double alpha,
                            const sps_block *X, double beta, sps_block *Y)
{
    sps_status st = spsi_comm_begin(op->ctx);

    if (st != SPS_OK) return st;
    return spsi_comm_end(op->ctx, apply_all(op, plain, alpha, X, beta, Y));
}

static sps_status single(const sps_operator *op, const sps_block *X,
                         sps_block *Y, bool *served)
{
    const sps_plan *plan = op->ranks->interior->block;

    *served = op->ranks->mixes && adds(op->ranks) && X->k > 1 &&
              X->k <= plan->k &&
              plan->kernel->mixes(plan, &(sps_spmm_args){ .alpha = 1, .X = X,
                                                          .Y = Y });
    return *served ? add_slice(op->ranks, 1, X, 0, Y, NULL, NULL) : SPS_OK;
}

sps_status spsi_ranks_single(const sps_operator *op, const sps_block *X,
                             sps_block *Y, bool *served)
{
    sps_status st = spsi_comm_begin(op->ctx);

    *served = false;
    if (st != SPS_OK) return st;
    return spsi_comm_end(op->ctx, single(op, X, Y, served));
}

/* ---------------------------------------------------------------- epilogues */

/* Saves in *edge what beta Y and delta X add to the boundary rows: their rows
 * of Y, still to be multiplied by *beta, which becomes 1 if rows of X are
 * added.  (Boundary rows of X are not in the operand.) */
static sps_status take_addend(const sps_ranks *r, const sps_block *X,
                              const sps_block *Y, double delta, double *beta,
                              sps_block *edge, sps_block *room)
{
    sps_status st = SPS_OK;

    if (*beta != 0) SPS_TRY(spsi_take_rows(Y, r->at.row, edge));
    if (delta == 0) return st;
    SPS_TRY(spsi_take_rows(X, r->at.row, room));
    SPS_TRY(spsi_axpby(delta, room, *beta, edge));
    *beta = 1;
fail:
    return st;
}

static sps_status fused_slice(const sps_ranks *r, double alpha,
                              const sps_block *X, double beta, sps_block *Y,
                              const sps_epilogue *e, sps_block *room)
{
    const int k = X->k;
    sps_block operand, edge = fit(r, 0, k), W = fit(r, 1, k);
    sps_block D = fit_as(r->result[2], 1, SPS_F64);
    sps_block spare = fit(r, 3, k);
    const sps_epilogue part = { .W = e->W && e->gamma != 0 ? &W : NULL,
                                .gamma = e->gamma, .D = e->D ? &D : NULL };
    double more = beta;
    sps_status st, finished;

    if (adds(r)) return add_slice(r, alpha, X, beta, Y, e, room);
    SPS_TRY(begin(r, X, &operand));
    st = take_addend(r, X, Y, e->delta, &more, &edge, &spare);
    if (st == SPS_OK && part.W) st = spsi_take_rows(e->W, r->at.row, &W);
    if (st == SPS_OK && part.D) st = spsi_take_rows(e->D, r->at.row, &D);
    if (st == SPS_OK)
        st = spsi_operator_apply_fused(r->interior, false, alpha, X, beta, Y, e,
                                       room);
    finished = spsi_halo_finish(r->halo);
    if (st == SPS_OK) st = finished;
    if (st == SPS_OK)
        st = spsi_operator_apply_fused(r->boundary, false, alpha, &operand,
                                       more, &edge, &part, &spare);
    if (st == SPS_OK) st = spsi_put_rows(&edge, r->at.row, Y);
fail:
    return st;
}

static sps_status fused_all(const sps_operator *op, double alpha,
                            const sps_block *X, double beta, sps_block *Y,
                            const sps_epilogue *e, sps_block *room)
{
    sps_status st = SPS_OK;

    for (int j = 0, k; j < X->k; j += k) {
        sps_block x, y, w;
        sps_epilogue part = *e;

        k = X->k - j < op->width ? X->k - j : op->width;
        spsi_block_view(X, j, k, &x);
        spsi_block_view(Y, j, k, &y);
        if (e->W) spsi_block_view(e->W, j, k, &w);
        if (e->W) part.W = &w;
        SPS_TRY(fused_slice(op->ranks, alpha, &x, beta, &y, &part, room));
    }
fail:
    return st;
}

sps_status spsi_ranks_fused(const sps_operator *op, double alpha,
                            const sps_block *X, double beta, sps_block *Y,
                            const sps_epilogue *e, sps_block *room)
{
    sps_status st = spsi_comm_begin(op->ctx);

    if (st != SPS_OK) return st;
    return spsi_comm_end(op->ctx, fused_all(op, alpha, X, beta, Y, e, room));
}

/* --------------------------------------------- twice the working precision */

static sps_status take_part(const sps_ranks *r, const sps_block *X,
                            sps_block *part)
{
    return X ? spsi_take_rows(X, r->at.row, part) : SPS_OK;
}

/* H and L of interior rows are computed by `whole`, those of boundary rows,
 * whose W and V were saved before, by `part`. */
static sps_status twofold_slice(const sps_ranks *r,
                                const sps_twofold_args *whole)
{
    const int k = whole->X->k;
    sps_block operand, W = fit(r, 0, k), V = fit(r, 1, k);
    sps_block H = fit(r, 2, k), L = fit(r, 3, k);
    const sps_twofold_args part = {
        .c = whole->c, .X = &operand, .W = whole->W ? &W : NULL,
        .V = whole->V ? &V : NULL, .H = &H, .L = whole->L ? &L : NULL };
    sps_status st, finished;

    SPS_TRY(begin(r, whole->X, &operand));
    st = take_part(r, whole->W, &W);
    if (st == SPS_OK) st = take_part(r, whole->V, &V);
    if (st == SPS_OK) st = spsi_operator_twofold(r->interior, whole, NULL);
    finished = spsi_halo_finish(r->halo);
    if (st == SPS_OK) st = finished;
    if (st == SPS_OK) st = spsi_operator_twofold(r->boundary, &part, NULL);
    if (st == SPS_OK) st = spsi_put_rows(&H, r->at.row, whole->H);
    if (st == SPS_OK && whole->L)
        st = spsi_put_rows(&L, r->at.row, whole->L);
fail:
    return st;
}

static const sps_block *view(const sps_block *X, int j, int k, sps_block *x)
{
    if (X) spsi_block_view(X, j, k, x);
    return X ? x : NULL;
}

sps_status spsi_ranks_twofold(const sps_operator *op,
                              const sps_twofold_args *g)
{
    sps_status st = SPS_OK;

    for (int j = 0, k; j < g->X->k; j += k) {
        sps_block x, w, v, h, l;

        k = g->X->k - j < op->width ? g->X->k - j : op->width;
        SPS_TRY(twofold_slice(op->ranks, &(sps_twofold_args){
            .c = g->c ? g->c + j : NULL, .X = view(g->X, j, k, &x),
            .W = view(g->W, j, k, &w), .V = view(g->V, j, k, &v),
            .H = view(g->H, j, k, &h) ? &h : NULL,
            .L = view(g->L, j, k, &l) ? &l : NULL }));
    }
fail:
    return st;
}
