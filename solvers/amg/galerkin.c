/* SPDX-License-Identifier: BSD-3-Clause */
/* galerkin.c - the coarse matrix P'A P of a matrix over several processes.
 *
 * P is block diagonal, since aggregates do not cross processes.  A process
 * receives the rows of P that belong to its ghosts in one exchange, forms its
 * own rows of A P, and with its own P' those of P'A P, so no partial sums are
 * exchanged.  These rows are sent to all processes, unless the next level is
 * spread as well. */
#include "solvers/amg/amg.h"

#include <string.h>

#include "operator/operator_ranks.h"

/* ------------------------------------------------------------ own rows of A */

/* Returns the column in span.rows (amg.h) of an entry whose column is `col` in
 * the operand of boundary rows (halo.h) if `at_edge`, or otherwise among own
 * rows. */
static int32_t column(const sps_ranks *r, bool at_edge, int32_t col)
{
    const int64_t low = r->halo->low, at = col - low;

    if (!at_edge) return (int32_t)(col + low);
    if (at < 0) return col;
    return (int32_t)(at < r->touched ? low + r->touch[at]
                                     : col - r->touched + r->halo->n);
}

static void fill_rows(const sps_ranks *r, sps_csr *rows)
{
    int64_t b = 0, q = 0;

    for (int64_t i = 0; i < rows->nrow; i++) {
        const bool at_edge = b < r->rows && r->row[b] == i;
        const sps_csr *B = at_edge ? r->edge : r->inner;
        const int64_t row = at_edge ? b : i;

        for (int64_t p = B->rowptr[row]; p < B->rowptr[row + 1]; p++, q++) {
            rows->col[q] = column(r, at_edge, B->col[p]);
            ((double *)rows->val)[q] = spsi_csr_value(B, p);
        }
        rows->rowptr[i + 1] = q;
        b += at_edge;
    }
}

sps_status spsi_amg_rows(const sps_operator *A, sps_csr **rows_p)
{
    const sps_ranks *r = A->ranks;
    sps_status st = SPS_OK;

    if (!*rows_p)
        SPS_TRY(sps_csr_create(A->ctx, A->n, A->n + r->halo->ghosts,
                               r->inner->nnz + r->edge->nnz, SPS_F64, rows_p));
    fill_rows(r, *rows_p);
fail:
    return st;
}

/* ----------------------------------------------------------- rows of ghosts */

/* A list of rows, one after another: their lengths, columns and values. */
typedef struct row_list {
    int64_t *length, entries;
    int64_t *at;              /* offset of the entries for neighbour i */
    int32_t *col;
    double *val;
} row_list;

static void drop_list(sps_context *ctx, row_list *t)
{
    spsi_free(ctx, t->length);
    spsi_free(ctx, t->at);
    spsi_free(ctx, t->col);
    spsi_free(ctx, t->val);
}

/* Allocates the entries of rows whose lengths are known; row_at[i]: first row
 * that is exchanged with neighbour i. */
static sps_status make_room(const sps_halo *h, const int64_t *row_at,
                            row_list *t)
{
    sps_status st;

    SPS_TRY(SPS_NEW(h->ctx, h->neighbours + 1, &t->at));
    for (int i = 0; i < h->neighbours; i++) {
        t->at[i + 1] = t->at[i];
        for (int64_t g = row_at[i]; g < row_at[i + 1]; g++)
            t->at[i + 1] += t->length[g];
    }
    t->entries = t->at[h->neighbours];
    SPS_TRY(SPS_NEW(h->ctx, t->entries, &t->col));
    SPS_TRY(SPS_NEW(h->ctx, t->entries, &t->val));
fail:
    return st;
}

/* Packs the rows of P that other processes need, with global column numbers. */
static sps_status pack(const sps_halo *h, const sps_csr *P, int64_t first,
                       row_list *t)
{
    const int64_t count = h->send_at[h->neighbours];
    int64_t q = 0;
    sps_status st;

    SPS_TRY(SPS_NEW(h->ctx, count, &t->length));
    for (int64_t g = 0; g < count; g++)
        t->length[g] = P->rowptr[h->send[g] + 1] - P->rowptr[h->send[g]];
    SPS_TRY(make_room(h, h->send_at, t));
    for (int64_t g = 0; g < count; g++)
        for (int64_t p = P->rowptr[h->send[g]]; p < P->rowptr[h->send[g] + 1];
             p++, q++) {
            t->col[q] = (int32_t)(first + P->col[p]);
            t->val[q] = ((const double *)P->val)[p];
        }
fail:
    return st;
}

static sps_status trade(const sps_halo *h, const int64_t *out_at, void *out,
                        const int64_t *in_at, void *in, size_t each)
{
    return spsi_comm_exchange(
        h->ctx, h->out, spsi_halo_messages(h, out_at, out, each, h->out),
        h->in, spsi_halo_messages(h, in_at, in, each, h->in));
}

static sps_status trade_rows(const sps_halo *h, row_list *out, row_list *in)
{
    sps_status st;

    SPS_TRY(SPS_NEW(h->ctx, h->ghosts, &in->length));
    SPS_TRY(trade(h, h->send_at, out->length, h->ghost_at, in->length,
                  sizeof *in->length));
    SPS_TRY(make_room(h, h->ghost_at, in));
    SPS_TRY(trade(h, out->at, out->col, in->at, in->col, sizeof *in->col));
    SPS_TRY(trade(h, out->at, out->val, in->at, in->val, sizeof *in->val));
fail:
    return st;
}

static void append(sps_csr *all, int64_t *row, const int32_t *col,
                   const double *val, int64_t count, int64_t shift)
{
    const int64_t at = all->rowptr[*row];

    for (int64_t p = 0; p < count; p++) {
        all->col[at + p] = (int32_t)(col[p] + shift);
        ((double *)all->val)[at + p] = val[p];
    }
    all->rowptr[++*row] = at + count;
}

/* *all_p = the rows of P that belong to ghosts of lower processes, to own rows,
 * and to ghosts of higher processes, in this order. */
static sps_status join(const sps_halo *h, const sps_csr *P, const amg_span *s,
                       const row_list *in, sps_csr **all_p)
{
    const double *val = P->val;
    int64_t row = 0, q = 0;
    sps_status st;

    SPS_TRY(sps_csr_create(h->ctx, P->nrow + h->ghosts, s->columns,
                           P->nnz + in->entries, SPS_F64, all_p));
    for (int64_t g = 0; g <= h->ghosts; g++) {
        for (int64_t i = 0; g == h->low && i < P->nrow; i++)
            append(*all_p, &row, P->col + P->rowptr[i], val + P->rowptr[i],
                   P->rowptr[i + 1] - P->rowptr[i], s->first);
        if (g == h->ghosts) break;
        append(*all_p, &row, in->col + q, in->val + q, in->length[g], 0);
        q += in->length[g];
    }
fail:
    return st;
}

static sps_status rows_of_ghosts(const sps_halo *h, const sps_csr *P,
                                 const amg_span *s, sps_csr **all_p)
{
    row_list out = { 0 }, in = { 0 };
    sps_status st;

    SPS_TRY(pack(h, P, s->first, &out));
    SPS_TRY(trade_rows(h, &out, &in));
    SPS_TRY(join(h, P, s, &in, all_p));
fail:
    drop_list(h->ctx, &out);
    drop_list(h->ctx, &in);
    return st;
}

/* ------------------------------------------------------------------- to all */

/* Sends the items of this process to all others.  at[r] .. at[r + 1] - 1 are
 * the items of process r in `all`, of `each` bytes. */
static sps_status spread(sps_context *ctx, const double *at, size_t each,
                         const void *own, void *all)
{
    const int size = spsi_comm_size(ctx), rank = spsi_comm_rank(ctx);
    sps_message *m = NULL;
    int others = 0;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, 2 * (int64_t)size, &m));
    for (int r = 0; r < size; r++) {
        char *to = (char *)all + (size_t)at[r] * each;
        const size_t bytes = (size_t)(at[r + 1] - at[r]) * each;

        if (r == rank && bytes > 0) memcpy(to, own, bytes);
        if (r == rank) continue;
        m[others] = (sps_message){ r, (void *)own, (size_t)(at[rank + 1] -
                                   at[rank]) * each };
        m[size + others++] = (sps_message){ r, to, bytes };
    }
    SPS_TRY(spsi_comm_exchange(ctx, m, others, m + size, others));
fail:
    spsi_free(ctx, m);
    return st;
}

/* Sets *at_p to size + 1 values: the index of the first item of each process if
 * the items of all are stored one after another. own: number of items of this
 * process. */
static sps_status offsets(sps_context *ctx, int64_t own, double **at_p)
{
    const int size = spsi_comm_size(ctx);
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, size + 1, at_p));
    SPS_TRY(spsi_comm_gather(ctx, (double)own, *at_p + 1));
    for (int r = 0; r < size; r++) (*at_p)[r + 1] += (*at_p)[r];
fail:
    return st;
}

sps_status spsi_amg_number(const sps_operator *A, int64_t own, amg_span *s)
{
    double *at = NULL;
    sps_status st;

    SPS_TRY(offsets(A->ctx, own, &at));
    s->first = (int64_t)at[spsi_comm_rank(A->ctx)];
    s->columns = (int64_t)at[spsi_comm_size(A->ctx)];
    SPS_REQUIRE(A->ctx, s->columns <= INT32_MAX, SPS_EUNFIT, "amg: the coarse "
                "level has %lld rows on all processes together; at most "
                "2^31 - 1 are possible",
                (long long)s->columns);
fail:
    spsi_free(A->ctx, at);
    return st;
}

sps_status spsi_amg_collect(const sps_operator *A, const amg_span *s,
                            const double *own, int count, double *all)
{
    double *at = NULL;
    const int size = spsi_comm_size(A->ctx);
    sps_status st;

    SPS_TRY(SPS_NEW(A->ctx, size + 1, &at));
    SPS_TRY(spsi_comm_gather(A->ctx, (double)s->first, at));
    at[size] = (double)s->columns;
    SPS_TRY(spread(A->ctx, at, (size_t)count * sizeof *own, own, all));
fail:
    spsi_free(A->ctx, at);
    return st;
}

/* Makes s->coarse from the own rows C of all processes. */
static sps_status complete(const sps_operator *A, const sps_csr *C, amg_span *s)
{
    sps_context *ctx = A->ctx;
    double *row_at = NULL, *at = NULL;
    int64_t entries;
    sps_status st;

    SPS_TRY(offsets(ctx, C->nrow, &row_at));
    SPS_TRY(offsets(ctx, C->nnz, &at));
    entries = (int64_t)at[spsi_comm_size(ctx)];
    SPS_REQUIRE(ctx, !s->coarse || s->coarse->nnz == entries, SPS_EBUG,
                "amg: new values of A changed the pattern of P'A P, which must "
                "not happen; please report it");
    if (!s->coarse)
        SPS_TRY(sps_csr_create(ctx, s->columns, s->columns, entries, SPS_F64,
                               &s->coarse));
    SPS_TRY(spread(ctx, row_at, sizeof *C->rowptr, C->rowptr + 1,
                   s->coarse->rowptr + 1));
    for (int r = 0; r < spsi_comm_size(ctx); r++)
        for (int64_t i = (int64_t)row_at[r]; i < (int64_t)row_at[r + 1]; i++)
            s->coarse->rowptr[i + 1] += (int64_t)at[r];
    SPS_TRY(spread(ctx, at, sizeof *C->col, C->col, s->coarse->col));
    SPS_TRY(spread(ctx, at, sizeof(double), C->val, s->coarse->val));
    s->coarse->props |= SPS_SYMMETRIC | (A->props & SPS_SPD);
fail:
    spsi_free(ctx, row_at);
    spsi_free(ctx, at);
    return st;
}

static sps_status keep(sps_context *ctx, sps_csr **C_p, amg_span *s)
{
    sps_status st = SPS_OK;

    SPS_REQUIRE(ctx, !s->own || s->own->nnz == (*C_p)->nnz, SPS_EBUG, "amg: "
                "new values of A changed the pattern of P'A P, which must not "
                "happen; please report it");
    sps_csr_destroy(ctx, &s->own);
    s->own = *C_p;
    *C_p = NULL;
fail:
    return st;
}

sps_status spsi_amg_galerkin(const sps_operator *A, const sps_csr *P,
                             const sps_csr *R, bool gather, amg_span *s)
{
    sps_context *ctx = A->ctx;
    sps_csr *all = NULL, *AP = NULL, *C = NULL;
    sps_status st;

    SPS_TRY(rows_of_ghosts(A->ranks->halo, P, s, &all));
    SPS_TRY(spsi_matrix_multiply(ctx, s->rows, all, &AP));
    sps_csr_destroy(ctx, &all);
    SPS_TRY(spsi_matrix_multiply(ctx, R, AP, &C));
    st = gather ? complete(A, C, s) : keep(ctx, &C, s);
fail:
    sps_csr_destroy(ctx, &all);
    sps_csr_destroy(ctx, &AP);
    sps_csr_destroy(ctx, &C);
    return st;
}
