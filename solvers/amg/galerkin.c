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

#include "matrix/some_rows.h"
#include "operator/operator_ranks.h"
#include "halo/trade.h"

/* ----------------------------------------------------------- rows of ghosts */

/* *B_p = the rows of ghosts. */
static sps_status ghost_rows(const sps_halo *h, const spsi_row_list *in,
                             int64_t columns, sps_csr **B_p)
{
    sps_status st;

    SPS_TRY(sps_csr_create(h->ctx, h->ghosts, columns, in->entries, SPS_F64,
                           B_p));
    for (int64_t g = 0; g < h->ghosts; g++)
        (*B_p)->rowptr[g + 1] = (*B_p)->rowptr[g] + in->length[g];
    for (int64_t q = 0; q < in->entries; q++)
        (*B_p)->col[q] = (int32_t)in->col[q];
    if (in->entries > 0)
        memcpy((*B_p)->val, in->val, spsi_csr_value_bytes(*B_p));
fail:
    return st;
}

/* Places the rows B of ghosts around those of T. */
static sps_status join(const sps_halo *h, const sps_csr *T, int64_t first,
                       const sps_csr *B, sps_csr **all_p)
{
    spsi_placing p = { .nrow = T->nrow + h->ghosts, .ncol = B->ncol,
                       .before = h->low, .shift = first };
    int32_t *row = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(h->ctx, h->ghosts + 1, &row));
    for (int64_t g = 0; g < h->ghosts; g++)
        row[g] = (int32_t)(g < h->low ? g : g + h->n);
    p.row = row;
    SPS_TRY(spsi_rows_replace(h->ctx, T, &p, B, all_p));
fail:
    spsi_free(h->ctx, row);
    return st;
}

static sps_status join_here(const sps_halo *h, const sps_csr *T, int64_t first,
                            int64_t columns, sps_csr **all_p)
{
    spsi_row_list in = { 0 };
    sps_csr *sent = NULL, *B = NULL;
    sps_status st;

    SPS_TRY(spsi_rows_pick(h->ctx, T, h->send, h->send_at[h->neighbours],
                           &sent));
    SPS_TRY(spsi_trade_picked(h, sent, first, &in));
    SPS_TRY(ghost_rows(h, &in, columns, &B));
    SPS_TRY(join(h, T, first, B, all_p));
fail:
    spsi_row_list_clear(h->ctx, &in);
    sps_csr_destroy(h->ctx, &sent);
    sps_csr_destroy(h->ctx, &B);
    return st;
}

/* ----------------------------------------- rows of ghosts, in device memory */

/* Creates a matrix there; its arrays are not set. */
static sps_status open_there(sps_context *ctx, int64_t nrow, int64_t ncol,
                             int64_t nnz, sps_csr **A_p)
{
    const size_t bytes[3] = { (size_t)(nrow + 1) * sizeof(int64_t),
                              (size_t)nnz * sizeof(int32_t),
                              (size_t)nnz * sizeof(double) };
    void *p[3] = { NULL };
    sps_status st;

    for (int i = 0; i < 3; i++)
        SPS_TRY(ctx->backend->alloc(ctx, bytes[i], &p[i]));
    SPS_TRY(sps_csr_wrap(ctx, nrow, ncol, nnz, p[0], p[1], p[2], SPS_F64,
                         SPS_CUDA, SPS_BORROW, A_p));
    (*A_p)->own = SPS_COPY;
    return SPS_OK;

fail:
    for (int i = 0; i < 3; i++)
        if (p[i]) ctx->backend->release(ctx, p[i], bytes[i]);
    return st;
}

/* Offsets of the rows that are sent and received; out_at and in_at: offsets of
 * the entries for and from each neighbour. */
typedef struct row_ends {
    int64_t *out, *in, *out_at, *in_at;
} row_ends;

static void free_ends(sps_context *ctx, row_ends *e)
{
    spsi_free(ctx, e->out);
    spsi_free(ctx, e->in);
    spsi_free(ctx, e->out_at);
    spsi_free(ctx, e->in_at);
}

static sps_status trade_ends(sps_halo *h, const sps_csr *sent, row_ends *e)
{
    const int64_t count = sent->nrow;
    int64_t *length = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(h->ctx, count + 1, &length));
    SPS_TRY(SPS_NEW(h->ctx, count + 1, &e->out));
    SPS_TRY(SPS_NEW(h->ctx, h->ghosts + 1, &e->in));
    SPS_TRY(SPS_NEW(h->ctx, h->neighbours + 1, &e->out_at));
    SPS_TRY(SPS_NEW(h->ctx, h->neighbours + 1, &e->in_at));
    SPS_TRY(h->ctx->backend->download(h->ctx, e->out, sent->rowptr,
                                      (size_t)(count + 1) * sizeof *e->out));
    for (int64_t g = 0; g < count; g++) length[g] = e->out[g + 1] - e->out[g];
    SPS_TRY(spsi_halo_trade_packed(h, length, sizeof *length, e->in + 1));
    for (int64_t g = 0; g < h->ghosts; g++) e->in[g + 1] += e->in[g];
    for (int i = 0; i <= h->neighbours; i++) {
        e->out_at[i] = e->out[h->send_at[i]];
        e->in_at[i] = e->in[h->ghost_at[i]];
    }
fail:
    spsi_free(h->ctx, length);
    return st;
}

/* Sends entries of rows, of `each` bytes, and receives those of ghosts. */
static sps_status pass(const sps_halo *h, const row_ends *e, size_t each,
                       void *from, void *to)
{
    const sps_wire *wire = spsi_wire(h->ctx);
    sps_status st;

    SPS_TRY(wire->start(h->ctx, false, h->out,
                        spsi_halo_messages(h, e->out_at, from, each, h->out),
                        h->in,
                        spsi_halo_messages(h, e->in_at, to, each, h->in)));
    SPS_TRY(wire->finish(h->ctx));
fail:
    return st;
}

/* Receives into B.  A process that has no memory for it has said so at the
 * latest by the sum: who waits for a queued message waits for the GPU. */
static sps_status receive(const sps_halo *h, const row_ends *e,
                          const sps_csr *sent, sps_csr *B)
{
    const size_t each = sizeof(double);
    sps_context *ctx = h->ctx;
    double none = 0;
    sps_status st;

    SPS_TRY(ctx->backend->upload(ctx, B->rowptr, e->in,
                                 (size_t)(h->ghosts + 1) * sizeof *e->in));
    SPS_TRY(spsi_wire(ctx)->reserve(ctx, (size_t)sent->nnz * each,
                                    (size_t)B->nnz * each));
    SPS_TRY(spsi_reduce(ctx, &none, 1));
    SPS_TRY(pass(h, e, sizeof *B->col, sent->col, B->col));
    SPS_TRY(pass(h, e, each, sent->val, B->val));
fail:
    return st;
}

/* *sent_p = the rows of T that others need, with `first` added to columns. */
static sps_status pick_there(const sps_halo *h, const sps_csr *T,
                             int64_t first, sps_csr **sent_p)
{
    const spsi_placing p = { .nrow = h->send_at[h->neighbours],
                             .ncol = T->ncol + first, .shift = first };
    sps_csr *few = NULL;
    sps_status st;

    SPS_TRY(spsi_coarsening(h->ctx)->pick(h->ctx, T, h->send, p.nrow,
                                          first ? &few : sent_p));
    if (first) SPS_TRY(spsi_rows_replace(h->ctx, few, &p, NULL, sent_p));
fail:
    sps_csr_destroy(h->ctx, &few);
    return st;
}

static sps_status join_there(sps_halo *h, const sps_csr *T, int64_t first,
                             int64_t columns, sps_csr **all_p)
{
    row_ends e = { NULL };
    sps_csr *sent = NULL, *B = NULL;
    sps_status st;

    SPS_TRY(pick_there(h, T, first, &sent));
    SPS_TRY(trade_ends(h, sent, &e));
    SPS_TRY(open_there(h->ctx, h->ghosts, columns, e.in[h->ghosts], &B));
    SPS_TRY(receive(h, &e, sent, B));
    SPS_TRY(join(h, T, first, B, all_p));
fail:
    free_ends(h->ctx, &e);
    sps_csr_destroy(h->ctx, &sent);
    sps_csr_destroy(h->ctx, &B);
    return st;
}

sps_status spsi_amg_join(const sps_operator *A, const sps_csr *T, int64_t first,
                         int64_t columns, sps_csr **all_p)
{
    sps_halo *h = A->ranks->halo;

    return T->place == SPS_HOST ? join_here(h, T, first, columns, all_p)
                                : join_there(h, T, first, columns, all_p);
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
    if (s->own && s->own->place != SPS_HOST)
        return spsi_csr_copy_values(ctx, *C_p, s->own);
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

/* Leaves only the own columns of few rows of P, and counts them from 0. */
static void leave_columns(const amg_span *s, sps_csr *few)
{
    double *val = few->val;
    int64_t at = 0, p = 0;

    for (int64_t i = 0; i < few->nrow; i++) {
        for (; p < few->rowptr[i + 1]; p++) {
            const int64_t j = few->col[p] - s->first;

            if (j < 0 || j >= s->own_columns) continue;
            few->col[at] = (int32_t)j;
            val[at++] = val[p];
        }
        few->rowptr[i + 1] = at;
    }
    few->nnz = at;
}

/* *R_p = the own columns of P, as rows. */
static sps_status own_transpose(sps_context *ctx, const sps_csr *P,
                                const amg_span *s, sps_csr **R_p)
{
    spsi_placing p = { .nrow = P->nrow, .ncol = s->own_columns,
                       .shift = -s->first };
    int32_t *row = NULL;
    sps_csr *few = NULL, *S = NULL;
    int64_t rows;
    sps_status st;

    SPS_TRY(spsi_rows_outside(ctx, P, s->first, s->first + s->own_columns,
                              &row, &rows));
    SPS_TRY(spsi_rows_pick(ctx, P, row, rows, &few));
    leave_columns(s, few);
    p.row = row;
    SPS_TRY(spsi_rows_replace(ctx, P, &p, few, &S));
    SPS_TRY(spsi_csr_transpose(ctx, S, R_p));
fail:
    spsi_free(ctx, row);
    sps_csr_destroy(ctx, &few);
    sps_csr_destroy(ctx, &S);
    return st;
}

/* ------------------------------------------------- to all, in device memory */

/* As `spread`, between arrays in device memory. */
static sps_status spread_there(sps_context *ctx, const double *at, size_t each,
                               const void *own, void *all)
{
    const sps_wire *wire = spsi_wire(ctx);
    const int size = spsi_comm_size(ctx), rank = spsi_comm_rank(ctx);
    const size_t bytes = (size_t)(at[rank + 1] - at[rank]) * each;
    sps_message *m = NULL;
    int sends = 0, receives = 0;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, 2 * (int64_t)size, &m));
    for (int r = 0; r < size; r++) {
        char *to = (char *)all + (size_t)at[r] * each;
        const size_t theirs = (size_t)(at[r + 1] - at[r]) * each;

        if (r == rank && bytes > 0)
            SPS_TRY(ctx->backend->copy(ctx, to, own, bytes));
        if (r != rank && bytes > 0)
            m[sends++] = (sps_message){ r, (void *)(uintptr_t)own, bytes };
        if (r != rank && theirs > 0)
            m[size + receives++] = (sps_message){ r, to, theirs };
    }
    SPS_TRY(wire->reserve(ctx, (size_t)(size - 1) * bytes,
                          (size_t)at[size] * each - bytes));
    SPS_TRY(wire->start(ctx, false, m, sends, m + size, receives));
    SPS_TRY(wire->finish(ctx));
fail:
    spsi_free(ctx, m);
    return st;
}

/* Sets the offsets of s->coarse; at: entries of the processes before each. */
static sps_status spread_offsets(sps_context *ctx, const sps_csr *C,
                                 const double *at, const amg_span *s)
{
    int64_t *own = NULL, *all = NULL;
    double *row_at = NULL;
    sps_status st;

    SPS_TRY(offsets(ctx, C->nrow, &row_at));
    SPS_TRY(SPS_NEW(ctx, C->nrow + 1, &own));
    SPS_TRY(SPS_NEW(ctx, s->columns + 1, &all));
    SPS_TRY(ctx->backend->download(ctx, own, C->rowptr,
                                   (size_t)(C->nrow + 1) * sizeof *own));
    SPS_TRY(spread(ctx, row_at, sizeof *own, own + 1, all + 1));
    for (int r = 0; r < spsi_comm_size(ctx); r++)
        for (int64_t i = (int64_t)row_at[r]; i < (int64_t)row_at[r + 1]; i++)
            all[i + 1] += (int64_t)at[r];
    SPS_TRY(ctx->backend->upload(ctx, s->coarse->rowptr, all,
                                 (size_t)(s->columns + 1) * sizeof *all));
fail:
    spsi_free(ctx, row_at);
    spsi_free(ctx, own);
    spsi_free(ctx, all);
    return st;
}

/* As `complete`, for rows C in device memory. */
static sps_status complete_there(const sps_operator *A, const sps_csr *C,
                                 amg_span *s)
{
    sps_context *ctx = A->ctx;
    const bool first = !s->coarse;
    double *at = NULL;
    int64_t entries;
    sps_status st;

    SPS_TRY(offsets(ctx, C->nnz, &at));
    entries = (int64_t)at[spsi_comm_size(ctx)];
    SPS_REQUIRE(ctx, first || s->coarse->nnz == entries, SPS_EBUG,
                "amg: new values of A changed the pattern of P'A P, which must "
                "not happen; please report it");
    if (first) {
        SPS_TRY(open_there(ctx, s->columns, s->columns, entries,
                           &s->coarse));
        s->coarse->props |= SPS_SYMMETRIC | (A->props & SPS_SPD);
        SPS_TRY(spread_offsets(ctx, C, at, s));
        SPS_TRY(spread_there(ctx, at, sizeof *C->col, C->col, s->coarse->col));
    }
    SPS_TRY(spread_there(ctx, at, sizeof(double), C->val, s->coarse->val));
fail:
    if (st != SPS_OK && first) sps_csr_destroy(ctx, &s->coarse);
    spsi_free(ctx, at);
    return st;
}

static sps_status gather_rows(const sps_operator *A, const sps_csr *C,
                              amg_span *s)
{
    return C->place == SPS_HOST ? complete(A, C, s) : complete_there(A, C, s);
}

sps_status spsi_amg_galerkin(const amg *m, const sps_csr *P, int64_t most,
                             bool gather, amg_span *s, sps_csr **R_p,
                             sps_csr **AP_p)
{
    const sps_operator *A = m->super.A;
    sps_context *ctx = A->ctx;
    sps_csr *all = NULL, *C = NULL;
    bool too_many;
    sps_status st;

    SPS_TRY(spsi_amg_join(A, P, 0, s->columns, &all));
    SPS_TRY(spsi_amg_multiply(m, s->rows, all, most, AP_p));
    SPS_TRY(spsi_comm_any(ctx, !*AP_p, &too_many));
    if (too_many) {
        sps_csr_destroy(ctx, AP_p);
        goto fail;
    }
    SPS_TRY(own_transpose(ctx, all, s, R_p));
    sps_csr_destroy(ctx, &all);
    SPS_TRY(spsi_amg_join(A, *AP_p, 0, s->columns, &all));
    SPS_TRY(spsi_amg_multiply(m, *R_p, all, INT64_MAX, &C));
    st = gather ? gather_rows(A, C, s) : keep(ctx, &C, s);
fail:
    sps_csr_destroy(ctx, &all);
    sps_csr_destroy(ctx, &C);
    return st;
}
