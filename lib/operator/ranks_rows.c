/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks_rows.c - the rows that a process has of a matrix over processes
 * (operator_ranks.h), as a matrix: all columns, or those of the diagonal block;
 * and their new values. */
#include "operator/ranks_parts.h"
#include "operator/reorder.h"

#include "core/team.h"
#include "matrix/some_rows.h"

/* Returns the column (spsi_ranks_rows) of an entry whose column is `col` in the
 * operand of boundary rows (halo.h) if `at_edge`, or otherwise among own
 * rows. */
static int32_t column(const sps_ranks *r, bool at_edge, int32_t col)
{
    const int64_t low = r->halo->low, at = col - low;

    if (!at_edge) return (int32_t)(col + low);
    if (at < 0) return col;
    return (int32_t)(at < r->touched ? low + r->touch[at]
                                     : col - r->touched + r->halo->n);
}

int32_t spsi_ranks_column(const sps_ranks *r, int32_t col)
{
    return column(r, true, col);
}

int64_t spsi_ranks_edge_of(const sps_ranks *r, int64_t row)
{
    const int64_t b = spsi_ranks_edges_before(r, row);

    return b < r->rows && r->row[b] == row ? b : -1;
}

typedef struct joining {
    const sps_ranks *r;
    sps_csr *rows;
} joining;

static void join_rows(void *data, int64_t first, int64_t last)
{
    const joining *j = data;
    const sps_ranks *r = j->r;
    int64_t b = spsi_ranks_edges_before(r, first);
    int64_t q = r->inner->rowptr[first] + r->edge->rowptr[b];

    for (int64_t i = first; i < last; i++) {
        const bool at_edge = b < r->rows && r->row[b] == i;
        const sps_csr *B = at_edge ? r->edge : r->inner;
        const int64_t row = at_edge ? b : i;

        for (int64_t p = B->rowptr[row]; p < B->rowptr[row + 1]; p++, q++) {
            j->rows->col[q] = column(r, at_edge, B->col[p]);
            ((double *)j->rows->val)[q] = spsi_csr_value(B, p);
        }
        j->rows->rowptr[i + 1] = q;
        b += at_edge;
    }
}

sps_status spsi_ranks_rows(const sps_operator *op, sps_csr **rows_p)
{
    const sps_ranks *r = op->ranks;
    sps_status st = SPS_OK;

    if (!*rows_p)
        SPS_TRY(sps_csr_create(op->ctx, op->n, op->n + r->halo->ghosts,
                               r->A->nnz, SPS_F64, rows_p));
    spsi_team_run(op->ctx, op->n, 2 * r->A->nnz, join_rows,
                  &(joining){ r, *rows_p });
fail:
    return st;
}

typedef struct taking {
    const sps_ranks *r;
    bool own;                 /* only own columns, counted from 0 */
    sps_csr *few;
} taking;

static bool takes(const taking *t, int64_t p)
{
    const int64_t at = t->r->edge->col[p] - t->r->halo->low;

    return !t->own || (at >= 0 && at < t->r->touched);
}

static void count_few(void *data, int64_t first, int64_t last)
{
    const taking *t = data;
    const int64_t *rowptr = t->r->edge->rowptr;

    for (int64_t b = first; b < last; b++)
        for (int64_t p = rowptr[b]; p < rowptr[b + 1]; p++)
            t->few->rowptr[b + 1] += takes(t, p);
}

static void fill_few(void *data, int64_t first, int64_t last)
{
    const taking *t = data;
    const sps_csr *B = t->r->edge;
    const int64_t low = t->own ? t->r->halo->low : 0;
    int64_t q = t->few->rowptr[first];

    for (int64_t p = B->rowptr[first]; p < B->rowptr[last]; p++)
        if (takes(t, p)) {
            t->few->col[q] = (int32_t)(column(t->r, true, B->col[p]) - low);
            ((double *)t->few->val)[q++] = spsi_csr_value(B, p);
        }
}

/* *few_p = the boundary rows, with the columns of spsi_ranks_rows, or only
 * their own columns. */
static sps_status few_rows(sps_context *ctx, const sps_ranks *r, bool own,
                           sps_csr **few_p)
{
    const sps_csr *B = r->edge;
    const int64_t n = r->halo->n + (own ? 0 : r->halo->ghosts);
    taking t = { .r = r, .own = own };
    sps_status st;

    SPS_TRY(sps_csr_create(ctx, B->nrow, n, B->nnz, SPS_F64, few_p));
    t.few = *few_p;
    spsi_team_run(ctx, B->nrow, B->nnz, count_few, &t);
    for (int64_t b = 0; b < B->nrow; b++)
        t.few->rowptr[b + 1] += t.few->rowptr[b];
    t.few->nnz = t.few->rowptr[B->nrow];
    spsi_team_run(ctx, B->nrow, 4 * B->nnz, fill_few, &t);
fail:
    return st;
}

sps_status spsi_ranks_joined(const sps_operator *op, const sps_csr *inner,
                             bool own, sps_csr **rows_p)
{
    const sps_ranks *r = op->ranks;
    const sps_halo *h = r->halo;
    const spsi_placing p = { .nrow = op->n, .shift = own ? 0 : h->low,
                             .ncol = h->n + (own ? 0 : h->ghosts),
                             .row = r->row };
    sps_csr *few = NULL;
    sps_status st;

    SPS_TRY(few_rows(op->ctx, r, own, &few));
    SPS_TRY(spsi_rows_replace(op->ctx, inner, &p, few, rows_p));
fail:
    sps_csr_destroy(op->ctx, &few);
    return st;
}

/* ------------------------------------------------------- the diagonal block */

sps_status spsi_ranks_not_shared(const sps_operator *op)
{
    return op->ranks->shared
        ? spsi_fail(op->ctx, SPS_EBUG, "the rows of this operator are those of "
                    "another, and cannot be changed or taken from it: please "
                    "report it") : SPS_OK;
}

static void copy_value(const sps_csr *from, int64_t p, sps_csr *to, int64_t q)
{
    if (to->dtype == SPS_F64)
        ((double *)to->val)[q] = ((const double *)from->val)[p];
    else
        ((float *)to->val)[q] = ((const float *)from->val)[p];
}

/* Returns the number of entries in columns that belong to this process; if C is
 * given, also copies the columns and values of these entries to C. */
static int64_t own_entries(const sps_ranks *r, sps_csr *C)
{
    const int64_t low = r->halo->low, n = r->A->nrow;
    int64_t b = 0, q = 0;

    for (int64_t i = 0; i < n; i++) {
        const bool at_edge = b < r->rows && r->row[b] == i;
        const sps_csr *B = at_edge ? r->edge : r->inner;
        const int64_t row = at_edge ? b : i;

        for (int64_t p = B->rowptr[row]; p < B->rowptr[row + 1]; p++) {
            const int64_t at = at_edge ? B->col[p] - low : B->col[p];

            if (at_edge && (at < 0 || at >= r->touched)) continue;
            if (C) C->col[q] = at_edge ? r->touch[at] : (int32_t)at;
            if (C) copy_value(B, p, C, q);
            q++;
        }
        if (C) C->rowptr[i + 1] = q;
        b += at_edge;
    }
    return q;
}

sps_status spsi_ranks_own(const sps_operator *op, const sps_operator **own_p)
{
    sps_ranks *r = op->ranks;
    const int64_t n = op->n;
    sps_status st;

    SPS_TRY(spsi_ranks_not_shared(op));
    if (!r->diagonal) {
        SPS_TRY(sps_csr_create(op->ctx, n, n, own_entries(r, NULL),
                               r->A->dtype, &r->diagonal));
        r->diagonal->props = op->props;
        (void)own_entries(r, r->diagonal);
    }
    if (!r->own)
        SPS_TRY(spsi_operator_csr(op->ctx, r->diagonal, op->width, NULL, 0,
                                  &r->own));
    *own_p = r->own;
fail:
    return st;
}

sps_status spsi_ranks_set_values(sps_operator *op, const void *val)
{
    sps_ranks *r = op->ranks;
    sps_status st;

    SPS_TRY(spsi_ranks_not_shared(op));
    spsi_ranks_split_values(r, val);
    SPS_TRY(sps_operator_set_values(r->interior, r->inner->val, SPS_HOST));
    SPS_TRY(sps_operator_set_values(r->boundary, r->edge->val, SPS_HOST));
    if (r->diagonal) (void)own_entries(r, r->diagonal);
    if (r->own)
        SPS_TRY(sps_operator_set_values(r->own, r->diagonal->val, SPS_HOST));
    op->cache->norm = -1.0;
    op->version++;
    SPS_TRY(spsi_ranks_reorder_values(op, val));
fail:
    return st;
}
