/* SPDX-License-Identifier: BSD-3-Clause */
/* galerkin.c - the coarse matrix P'A P of a matrix over several processes.
 *
 * Own columns of P have entries in own rows and in rows of ghosts: a row of
 * another process that is coupled to an own row is a ghost, since the pattern
 * of A is symmetric.  A process receives the rows of P that belong to its
 * ghosts, forms its own rows of A P, receives those of its ghosts, and forms
 * its own rows of P'(A P), so no partial sums are exchanged.  These rows are
 * sent to all processes, unless the next level is spread as well. */
#include "solvers/amg/amg.h"

#include <string.h>

#include "core/team.h"
#include "operator/operator_ranks.h"
#include "operator/trade.h"

/* ----------------------------------------------------------- rows of ghosts */

static void put(sps_csr *all, int64_t at, int64_t col, double value)
{
    all->col[at] = (int32_t)col;
    ((double *)all->val)[at] = value;
}

typedef struct copying {
    const sps_csr *T;
    int64_t row, at, first;   /* where the rows of T begin in `to`, and their
                                 entries; what is added to columns */
    sps_csr *to;
} copying;

static void copy_rows(void *data, int64_t first, int64_t last)
{
    const copying *c = data;
    const double *val = c->T->val;

    for (int64_t i = first; i < last; i++) {
        for (int64_t p = c->T->rowptr[i]; p < c->T->rowptr[i + 1]; p++)
            put(c->to, c->at + p, c->first + c->T->col[p], val[p]);
        c->to->rowptr[c->row + i + 1] = c->at + c->T->rowptr[i + 1];
    }
}

static sps_status join(const sps_halo *h, const sps_csr *T, int64_t first,
                       int64_t columns, const spsi_row_list *in,
                       sps_csr **all_p)
{
    copying c = { .T = T, .row = h->low, .first = first };
    int64_t row = 0, at = 0, q = 0;
    sps_status st;

    SPS_TRY(sps_csr_create(h->ctx, T->nrow + h->ghosts, columns,
                           T->nnz + in->entries, SPS_F64, all_p));
    c.to = *all_p;
    for (int64_t g = 0; g <= h->ghosts; g++) {
        if (g == h->low) {
            c.at = at;
            at += T->nnz;
            row += T->nrow;
        }
        if (g == h->ghosts) break;
        for (int64_t last = q + in->length[g]; q < last; q++)
            put(*all_p, at++, in->col[q], in->val[q]);
        (*all_p)->rowptr[++row] = at;
    }
    spsi_team_run(h->ctx, T->nrow, 2 * T->nnz, copy_rows, &c);
fail:
    return st;
}

sps_status spsi_amg_join(const sps_operator *A, const sps_csr *T, int64_t first,
                         int64_t columns, sps_csr **all_p)
{
    const sps_halo *h = A->ranks->halo;
    spsi_row_list in = { 0 };
    sps_status st;

    SPS_TRY(spsi_trade_rows(h, T, first, &in));
    SPS_TRY(join(h, T, first, columns, &in, all_p));
fail:
    spsi_row_list_clear(h->ctx, &in);
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
    s->own_columns = own;
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
    if (s->own) {
        if (s->own->nnz > 0)
            memcpy(s->own->val, (*C_p)->val, spsi_csr_value_bytes(s->own));
        return SPS_OK;
    }
    s->own = *C_p;
    *C_p = NULL;
fail:
    return st;
}

/* Writes the own columns of P to S, which has room for them. */
static void take_columns(const sps_csr *P, const amg_span *s, sps_csr *S)
{
    const double *val = P->val;
    int64_t at = 0;

    for (int64_t i = 0; i < P->nrow; i++) {
        for (int64_t p = P->rowptr[i]; p < P->rowptr[i + 1]; p++) {
            const int64_t j = P->col[p] - s->first;

            if (j < 0 || j >= s->own_columns) continue;
            S->col[at] = (int32_t)j;
            ((double *)S->val)[at++] = val[p];
        }
        S->rowptr[i + 1] = at;
    }
    S->nnz = at;
}

/* *R_p = the own columns of P, as rows. */
static sps_status own_transpose(sps_context *ctx, const sps_csr *P,
                                const amg_span *s, sps_csr **R_p)
{
    sps_csr *S = NULL;
    sps_status st;

    SPS_TRY(sps_csr_create(ctx, P->nrow, s->own_columns, P->nnz, SPS_F64, &S));
    take_columns(P, s, S);
    SPS_TRY(spsi_csr_transpose(ctx, S, R_p));
fail:
    sps_csr_destroy(ctx, &S);
    return st;
}

sps_status spsi_amg_galerkin(const sps_operator *A, const sps_csr *P,
                             bool gather, amg_span *s, sps_csr **R_p,
                             sps_csr **AP_p)
{
    sps_context *ctx = A->ctx;
    sps_csr *all = NULL, *C = NULL;
    sps_status st;

    SPS_TRY(spsi_amg_join(A, P, 0, s->columns, &all));
    SPS_TRY(spsi_matrix_multiply(ctx, s->rows, all, AP_p));
    SPS_TRY(own_transpose(ctx, all, s, R_p));
    sps_csr_destroy(ctx, &all);
    SPS_TRY(spsi_amg_join(A, *AP_p, 0, s->columns, &all));
    SPS_TRY(spsi_matrix_multiply(ctx, *R_p, all, &C));
    st = gather ? complete(A, C, s) : keep(ctx, &C, s);
fail:
    sps_csr_destroy(ctx, &all);
    sps_csr_destroy(ctx, &C);
    return st;
}
