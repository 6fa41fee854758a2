/* SPDX-License-Identifier: BSD-3-Clause */
/* reorder_ranks.c - a distributed matrix whose rows move between processes
 * (partition.h): a second operator of P A P', and operators of P and P', which
 * are distributed as A is.  New values take the same way. */
#include <stdlib.h>
#include <string.h>

#include "matrix/order.h"
#include "operator/operator_ranks.h"
#include "operator/partition.h"
#include "operator/reorder.h"
#include "halo/trade.h"

typedef struct sps_moves {
    int64_t rows;             /* own rows, as many as go and as come */
    int64_t *row;             /* own rows, by the process that gets them */
    int64_t *out_at, *in_at;  /* entries sent and received, size + 1 */
    int64_t *out_row, *in_row;/* the same of rows */
    int64_t *to;              /* new own row of each received row */
    void *out, *in;           /* values that are sent and received */
} sps_moves;

/* --------------------------------------------------------- numbers of rows */

/* Makes the lists of rows from those of nodes. */
static sps_status list_rows(const sps_operator *op, const sps_partition *p,
                            sps_moves *m)
{
    const int size = spsi_comm_size(op->ctx), u = p->unknowns;
    sps_status st;

    m->rows = op->n;
    SPS_TRY(SPS_NEW(op->ctx, op->n, &m->row));
    SPS_TRY(SPS_NEW(op->ctx, op->n, &m->to));
    SPS_TRY(SPS_NEW(op->ctx, size + 1, &m->out_row));
    SPS_TRY(SPS_NEW(op->ctx, size + 1, &m->in_row));
    SPS_TRY(SPS_NEW(op->ctx, size + 1, &m->out_at));
    SPS_TRY(SPS_NEW(op->ctx, size + 1, &m->in_at));
    for (int64_t i = 0; i < op->n; i++) {
        m->row[i] = p->given[i / u] * u + i % u;
        m->to[i] = p->to[i / u] * u + i % u;
    }
    for (int r = 0; r <= size; r++) {
        m->out_row[r] = p->given_at[r] * u;
        m->in_row[r] = p->taken_at[r] * u;
    }
fail:
    return st;
}

/* ---------------------------------------------------------------- rows of A */

static int64_t length(const sps_csr *A, int64_t i)
{
    return A->rowptr[i + 1] - A->rowptr[i];
}

/* Counts the entries sent and received, and sets rowptr, n + 1 elements, of the
 * new rows; in_length[i] is the length of received row i. */
static sps_status trade_lengths(const sps_operator *op, sps_moves *m,
                                int64_t *rowptr, int64_t *in_length)
{
    const int size = spsi_comm_size(op->ctx);
    int64_t *out = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(op->ctx, m->rows, &out));
    for (int64_t i = 0; i < m->rows; i++)
        out[i] = length(op->ranks->A, m->row[i]);
    SPS_TRY(spsi_trade(op->ctx, m->out_row, out, m->in_row, in_length,
                       sizeof *out));
    for (int r = 0; r < size; r++) {
        m->out_at[r + 1] = m->out_at[r];
        m->in_at[r + 1] = m->in_at[r];
        for (int64_t i = m->out_row[r]; i < m->out_row[r + 1]; i++)
            m->out_at[r + 1] += out[i];
        for (int64_t i = m->in_row[r]; i < m->in_row[r + 1]; i++)
            m->in_at[r + 1] += in_length[i];
    }
    for (int64_t i = 0; i < m->rows; i++) rowptr[m->to[i] + 1] = in_length[i];
    for (int64_t i = 0; i < m->rows; i++) rowptr[i + 1] += rowptr[i];
fail:
    spsi_free(op->ctx, out);
    return st;
}

/* Sends the new columns of the entries; `in` has room for those received. */
static sps_status trade_columns(const sps_operator *op, const sps_moves *m,
                                const int64_t *own, int64_t *in)
{
    const sps_ranks *r = op->ranks;
    const sps_csr *A = r->A;
    int64_t *ghost = NULL, *out = NULL, q = 0;
    sps_status st;

    SPS_TRY(SPS_NEW(op->ctx, r->halo->ghosts, &ghost));
    SPS_TRY(SPS_NEW(op->ctx, A->nnz, &out));
    SPS_TRY(spsi_halo_trade(r->halo, own, sizeof *own, ghost));
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t p = A->rowptr[m->row[i]]; p < A->rowptr[m->row[i] + 1];
             p++) {
            const int64_t j = A->global[p] - A->first;

            out[q++] = j >= 0 && j < A->nrow ? own[j]
                     : ghost[spsi_halo_ghost(r->halo, A->global[p])];
        }
    SPS_TRY(spsi_trade(op->ctx, m->out_at, out, m->in_at, in, sizeof *in));
fail:
    spsi_free(op->ctx, ghost);
    spsi_free(op->ctx, out);
    return st;
}

/* Sorts the received entries into the new rows: entry p of these is number
 * entry[p] of what was received. */
static sps_status sort_rows(sps_context *ctx, const sps_moves *m,
                            const int64_t *in_length, const int64_t *in,
                            sps_csr *C, int64_t *entry)
{
    int64_t q = 0, longest = 0;
    sps_keyed *row = NULL;
    sps_status st;

    for (int64_t i = 0; i < m->rows; i++)
        if (longest < in_length[i]) longest = in_length[i];
    SPS_TRY(SPS_NEW(ctx, longest + 1, &row));
    for (int64_t i = 0; i < m->rows; i++) {
        const int64_t at = C->rowptr[m->to[i]], count = in_length[i];

        for (int64_t t = 0; t < count; t++)
            row[t] = (sps_keyed){ in[q + t], q + t };
        if (count > 0) qsort(row, (size_t)count, sizeof *row, spsi_by_key);
        for (int64_t t = 0; t < count; t++) {
            C->global[at + t] = row[t].key;
            entry[at + t] = row[t].at;
        }
        q += count;
    }
fail:
    spsi_free(ctx, row);
    return st;
}

/* Sends the values of A, which are in `val`, and puts those received in
 * `to`. */
static sps_status move_values(const sps_operator *op, const void *val,
                              const sps_reordering *r, void *to)
{
    const sps_csr *A = op->ranks->A;
    const sps_moves *m = r->moves;
    const size_t each = spsi_dtype_size(A->dtype);
    char *out = m->out;
    sps_status st;

    for (int64_t i = 0; i < m->rows; i++) {
        const size_t bytes = (size_t)length(A, m->row[i]) * each;

        if (bytes > 0)
            memcpy(out, (const char *)val +
                   (size_t)A->rowptr[m->row[i]] * each, bytes);
        out += bytes;
    }
    SPS_TRY(spsi_trade(op->ctx, m->out_at, m->out, m->in_at, m->in, each));
    for (int64_t p = 0; p < r->A->nnz; p++)
        memcpy((char *)to + (size_t)p * each,
               (const char *)m->in + (size_t)r->entry[p] * each, each);
fail:
    return st;
}

/* Makes the csr of the new own rows, without its columns and values. */
static sps_status make_rows(const sps_operator *op, int64_t *rowptr,
                            int64_t nnz, sps_csr **A_p)
{
    const sps_csr *A = op->ranks->A;
    void *val = NULL;
    int64_t *global = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(op->ctx, nnz + 1, &global));
    SPS_TRY(spsi_new(op->ctx, (size_t)(nnz + 1) * spsi_dtype_size(A->dtype),
                     &val));
    SPS_TRY(sps_csr_wrap_rows(op->ctx, A->first, A->nrow, A->whole, nnz,
                              rowptr, global, val, A->dtype, SPS_COPY, A_p));
    (*A_p)->props = op->props & (SPS_SYMMETRIC | SPS_SPD);
fail:
    spsi_free(op->ctx, global);
    spsi_free(op->ctx, val);
    return st;
}

static sps_status move_rows(const sps_operator *op, const sps_partition *p,
                            const int64_t *own, sps_reordering *r)
{
    sps_context *ctx = op->ctx;
    const int size = spsi_comm_size(ctx);
    const size_t each = spsi_dtype_size(op->ranks->A->dtype);
    int64_t *rowptr = NULL, *in = NULL, *in_length = NULL, nnz;
    sps_moves *m;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, 1, &r->moves));
    m = r->moves;
    SPS_TRY(list_rows(op, p, m));
    SPS_TRY(SPS_NEW(ctx, op->n + 1, &rowptr));
    SPS_TRY(SPS_NEW(ctx, op->n, &in_length));
    SPS_TRY(trade_lengths(op, m, rowptr, in_length));
    nnz = m->in_at[size];
    SPS_TRY(make_rows(op, rowptr, nnz, &r->A));
    SPS_TRY(SPS_NEW(ctx, nnz, &in));
    SPS_TRY(SPS_NEW(ctx, nnz, &r->entry));
    SPS_TRY(trade_columns(op, m, own, in));
    SPS_TRY(sort_rows(ctx, m, in_length, in, r->A, r->entry));
    SPS_TRY(spsi_new(ctx, (size_t)op->ranks->A->nnz * each, &m->out));
    SPS_TRY(spsi_new(ctx, (size_t)nnz * each, &m->in));
    SPS_TRY(move_values(op, op->ranks->A->val, r, r->A->val));
fail:
    spsi_free(ctx, rowptr);
    spsi_free(ctx, in_length);
    spsi_free(ctx, in);
    return st;
}

/* --------------------------------------------------------------- P and P' */

/* Makes the own rows of a permutation: row i has a 1 in column[i]. */
static sps_status permutation(const sps_operator *op, int64_t *column,
                              const sps_options *o, sps_csr **P_p,
                              sps_operator **op_p)
{
    const sps_csr *A = op->ranks->A;
    int64_t *rowptr = NULL;
    double *one = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(op->ctx, op->n + 1, &rowptr));
    SPS_TRY(SPS_NEW(op->ctx, op->n, &one));
    for (int64_t i = 0; i < op->n; i++) {
        rowptr[i + 1] = i + 1;
        one[i] = 1;
    }
    SPS_TRY(sps_csr_wrap_rows(op->ctx, A->first, op->n, A->whole, op->n, rowptr,
                              column, one, SPS_F64, SPS_COPY, P_p));
    SPS_TRY(spsi_operator_csr(op->ctx, *P_p, op->width, o, 0, op_p));
fail:
    spsi_free(op->ctx, rowptr);
    spsi_free(op->ctx, one);
    return st;
}

/* old[i] = global old number of new own row i, own[i] = global new number of
 * old own row i. */
static void number_rows(const sps_operator *op, const sps_partition *p,
                        int64_t *old, int64_t *own)
{
    const int u = p->unknowns;

    for (int64_t i = 0; i < op->n; i++) {
        old[p->to[i / u] * u + i % u] = p->taken[i / u] * u + i % u;
        own[i] = p->place[i / u] * u + i % u;
    }
}

static sps_status make_operators(sps_operator *op, const sps_options *o,
                                 const sps_partition *p)
{
    sps_reordering *r = op->reordered;
    sps_options plain = *o, of_order;
    int64_t *old = NULL, *own = NULL;
    sps_status st;

    plain.reorder = "none";
    sps_options_default(&of_order);
    SPS_TRY(SPS_NEW(op->ctx, op->n, &old));
    SPS_TRY(SPS_NEW(op->ctx, op->n, &own));
    number_rows(op, p, old, own);
    SPS_TRY(move_rows(op, p, own, r));
    SPS_TRY(spsi_operator_csr(op->ctx, r->A, op->width, &plain, 0, &r->inner));
    SPS_TRY(permutation(op, old, &of_order, &r->P, &r->forth));
    SPS_TRY(permutation(op, own, &of_order, &r->T, &r->back));
    r->unknowns = p->unknowns;
fail:
    spsi_free(op->ctx, old);
    spsi_free(op->ctx, own);
    return st;
}

sps_status spsi_ranks_reorder(sps_operator *op, const char *how,
                              const sps_options *o)
{
    const int64_t before = op->ranks->received.rows;
    sps_partition p = { .ctx = op->ctx };
    sps_status st;

    SPS_TRY(SPS_NEW(op->ctx, 1, &op->reordered));
    SPS_TRY(spsi_partition_find(op, how, o, &p));
    SPS_TRY(make_operators(op, o, &p));
    op->ranks->received = op->reordered->inner->ranks->received;
    spsi_note(op->ctx, "reorder: %s changes the rows that a product of all "
              "processes receives from %lld to %lld", how, (long long)before,
              (long long)op->ranks->received.rows);
fail:
    spsi_partition_clear(&p);
    return st;
}

sps_status spsi_ranks_reorder_values(sps_operator *op, const void *val)
{
    sps_reordering *r = op->reordered;
    sps_status st;

    if (!r) return SPS_OK;
    SPS_TRY(move_values(op, val, r, r->A->val));
    SPS_TRY(sps_operator_set_values(r->inner, r->A->val, SPS_HOST));
fail:
    return st;
}

void spsi_moves_destroy(sps_context *ctx, sps_moves **moves_p)
{
    sps_moves *m = *moves_p;

    if (!m) return;
    spsi_free(ctx, m->row);
    spsi_free(ctx, m->to);
    spsi_free(ctx, m->out_row);
    spsi_free(ctx, m->in_row);
    spsi_free(ctx, m->out_at);
    spsi_free(ctx, m->in_at);
    spsi_free(ctx, m->out);
    spsi_free(ctx, m->in);
    spsi_free(ctx, m);
    *moves_p = NULL;
}
