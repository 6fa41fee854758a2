/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks_there.c - operators over processes whose rows are in device memory:
 * boundary rows are worked on in host memory, interior rows stay there. */
#include "operator/ranks_parts.h"

#include <string.h>

#include "core/options.h"
#include "matrix/some_rows.h"

/* Creates the interior rows from those of X; r->row and r->edge are known. */
static sps_status inner_there(sps_context *ctx, const sps_ranks *r,
                              const spsi_rows_there *t, sps_csr **inner_p)
{
    const spsi_placing p = {
        .nrow = t->X->nrow, .ncol = r->cols, .row = r->row,
        .shift = -(t->h ? t->h->low : r->A->first) };
    sps_csr *none = NULL;
    sps_status st;

    SPS_TRY(sps_csr_create(ctx, r->rows, r->cols, 0, t->X->dtype, &none));
    SPS_TRY(spsi_rows_replace(ctx, t->X, &p, none, inner_p));
fail:
    sps_csr_destroy(ctx, &none);
    return st;
}

sps_status spsi_ranks_take_there(sps_context *ctx, sps_ranks *r,
                                 const spsi_rows_there *t, int64_t **global_p)
{
    const int64_t low = t->h ? t->h->low : r->A->first;
    sps_status st;

    SPS_TRY(spsi_rows_outside(ctx, t->X, low, low + r->cols, &r->row,
                              &r->rows));
    SPS_TRY(spsi_rows_pick(ctx, t->X, r->row, r->rows, &r->edge));
    SPS_TRY(SPS_NEW(ctx, r->edge->nnz, global_p));
    spsi_halo_rows(ctx, t->h, r->edge->col, r->edge->nnz, *global_p);
    SPS_TRY(inner_there(ctx, r, t, &r->inner));
fail:
    return st;
}

sps_status spsi_ranks_set_there(sps_operator *op, const sps_csr *X,
                                const sps_halo *h)
{
    const spsi_rows_there t = { X, h };
    sps_context *ctx = op->ctx;
    sps_ranks *r = op->ranks;
    sps_csr *edge = NULL, *inner = NULL;
    sps_status st;

    SPS_TRY(spsi_ranks_not_shared(op));
    SPS_TRY(spsi_rows_pick(ctx, X, r->row, r->rows, &edge));
    SPS_TRY(inner_there(ctx, r, &t, &inner));
    SPS_REQUIRE(ctx, edge->nnz == r->edge->nnz && inner->nnz == r->inner->nnz,
                SPS_EBUG, "new values changed the pattern of an operator, "
                "which must not happen; please report it");
    if (edge->nnz > 0)
        memcpy(r->edge->val, edge->val, spsi_csr_value_bytes(edge));
    if (inner->nnz > 0) SPS_TRY(spsi_csr_copy_values(ctx, inner, r->inner));
    SPS_TRY(sps_operator_set_values(r->interior, r->inner->val,
                                    r->inner->place));
    SPS_TRY(sps_operator_set_values(r->boundary, r->edge->val, SPS_HOST));
    op->cache->norm = -1.0;
    op->version++;
fail:
    sps_csr_destroy(ctx, &edge);
    sps_csr_destroy(ctx, &inner);
    return st;
}

sps_status spsi_ranks_there(sps_context *ctx, const sps_csr *X,
                            const sps_halo *h, const sps_csr *shape,
                            int64_t cols, int width, sps_dtype blocks,
                            sps_operator **op_p)
{
    const spsi_rows_there t = { X, h };
    const spsi_uses u = { cols, width, blocks, true, &t };
    sps_csr *S = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, 1, &S));
    ctx->live++;
    *S = *shape;
    SPS_TRY(spsi_ranks_make(ctx, S, &u, op_p));
    (*op_p)->own_A = S;
    return SPS_OK;

fail:
    sps_csr_destroy(ctx, &S);
    return st;
}

/* Creates the operators of the rows: `inner`, in device memory, must outlive
 * its own; the other one keeps *edge_p, unless it has a copy. */
static sps_status make_both(const sps_operator *of, sps_csr *inner,
                            sps_csr **edge_p, sps_dtype blocks, sps_ranks *r)
{
    sps_context *ctx = of->ctx;
    sps_options o;
    sps_status st;

    SPS_TRY(spsi_options_take(ctx, NULL, &o));
    SPS_TRY(spsi_operator_create(ctx, inner, of->width, blocks, &o, true,
                                 &r->interior));
    SPS_TRY(spsi_operator_create(ctx, *edge_p, of->width, blocks, &o, true,
                                 &r->boundary));
    if (r->boundary->own_A) return st;
    r->boundary->own_A = *edge_p;
    *edge_p = NULL;
fail:
    return st;
}

/* *edge_p = the boundary rows of X, with the columns of r->edge, whose pattern
 * they have. */
static sps_status edge_there(sps_context *ctx, const sps_ranks *r,
                             const sps_csr *X, sps_csr **edge_p)
{
    sps_status st;

    SPS_TRY(spsi_rows_pick(ctx, X, r->row, r->rows, edge_p));
    SPS_REQUIRE(ctx, (*edge_p)->nnz == r->edge->nnz, SPS_EBUG, "rows at the "
                "borders of processes have another pattern than those of their "
                "operator, which must not happen; please report it");
    (*edge_p)->ncol = r->edge->ncol;
    if (r->edge->nnz > 0)
        memcpy((*edge_p)->col, r->edge->col,
               (size_t)r->edge->nnz * sizeof *r->edge->col);
fail:
    return st;
}

sps_status spsi_ranks_alike(const sps_operator *of, const sps_csr *X,
                            sps_dtype blocks, sps_operator **op_p)
{
    const spsi_rows_there t = { X, of->ranks->halo };
    sps_csr *edge = NULL;
    sps_operator *op = NULL;
    sps_ranks *r;
    sps_status st;

    SPS_TRY(spsi_ranks_share(of, blocks, &op));
    r = op->ranks;
    SPS_TRY(inner_there(of->ctx, r, &t, &r->alone));
    SPS_TRY(edge_there(of->ctx, r, X, &edge));
    SPS_TRY(make_both(of, r->alone, &edge, blocks, r));
    spsi_ranks_choose_adds(r);
    *op_p = op;
    op = NULL;
fail:
    sps_csr_destroy(of->ctx, &edge);
    sps_operator_destroy(&op);
    return st;
}
