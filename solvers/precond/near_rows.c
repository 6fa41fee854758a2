/* SPDX-License-Identifier: BSD-3-Clause */
/* near_rows.c - see near_rows.h. */
#include "solvers/precond/near_rows.h"

#include <stdlib.h>
#include <string.h>

#include "halo/trade.h"

/* ------------------------------------------------------------------ numbers */

int64_t spsi_near_global(const sps_halo *h, int64_t j)
{
    if (j < h->low) return h->ghost[j];
    return j < h->low + h->n ? h->first + j - h->low : h->ghost[j - h->n];
}

static bool is_own(const sps_halo *h, int64_t row)
{
    return row >= h->first && row < h->first + h->n;
}

int64_t spsi_near_number(const sps_halo *h, int64_t row)
{
    int64_t g;

    if (is_own(h, row)) return h->low + row - h->first;
    g = spsi_halo_ghost(h, row);
    return g < h->low ? g : g + h->n;
}

/* ---------------------------------------------------------------- near rows */

static int ascending(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static int64_t take_foreign(const sps_csr *A, const int64_t *col, int64_t count,
                            int64_t *to)
{
    int64_t kept = 0;

    for (int64_t p = 0; p < count; p++)
        if (col[p] < A->first || col[p] >= A->first + A->nrow)
            to[kept++] = col[p];
    return kept;
}

/* Finds the distinct columns of A and of the rows `in` that other processes
 * own, ascending. */
static sps_status find_ghosts(sps_context *ctx, const sps_csr *A,
                              const spsi_row_list *in, int64_t **ghost_p,
                              int64_t *ghosts)
{
    int64_t *ghost, count, kept = 0;
    sps_status st;

    spsi_free(ctx, *ghost_p);
    *ghost_p = NULL;
    SPS_TRY(SPS_NEW(ctx, A->nnz + in->entries, ghost_p));
    ghost = *ghost_p;
    count = take_foreign(A, A->global, A->nnz, ghost);
    count += take_foreign(A, in->col, in->entries, ghost + count);
    if (count > 0) qsort(ghost, (size_t)count, sizeof *ghost, ascending);
    for (int64_t g = 0; g < count; g++)
        if (g == 0 || ghost[g] != ghost[g - 1]) ghost[kept++] = ghost[g];
    *ghosts = kept;
    SPS_REQUIRE(ctx, kept <= INT32_MAX - A->nrow, SPS_EMATRIX, "%lld rows of "
                "other processes are needed, more than column indices of 32 "
                "bits allow", (long long)kept);
fail:
    return st;
}

/* Appends a row to C at *q, unless C is NULL. */
static void append(const sps_halo *h, const int64_t *col, const double *val,
                   int64_t count, sps_csr *C, int64_t *q)
{
    for (int64_t p = 0; p < count; p++) {
        const int64_t j = spsi_near_number(h, col[p]);

        if (j < 0) continue;
        if (C) C->col[*q] = (int32_t)j;
        if (C) ((double *)C->val)[*q] = val[p];
        ++*q;
    }
}

/* Returns the number of entries of the near rows in their columns; copies them
 * to C unless it is NULL. */
static int64_t join(const sps_halo *h, const sps_csr *A,
                    const spsi_row_list *in, sps_csr *C)
{
    int64_t at = 0, q = 0;

    for (int64_t j = 0; j < h->n + h->ghosts; j++) {
        if (j >= h->low && j < h->low + h->n) {
            const int64_t p = A->rowptr[j - h->low];

            append(h, A->global + p, (const double *)A->val + p,
                   A->rowptr[j - h->low + 1] - p, C, &q);
        } else {
            const int64_t count = in->length[j < h->low ? j : j - h->n];

            append(h, in->col + at, in->val + at, count, C, &q);
            at += count;
        }
        if (C) C->rowptr[j + 1] = q;
    }
    return q;
}

sps_status spsi_near_rows(sps_context *ctx, const sps_csr *A, int distance,
                          struct near_rows *w)
{
    int64_t *ghost = NULL, ghosts, n;
    spsi_row_list in = { 0 };
    sps_status st = SPS_OK;

    for (int step = 0; step < distance; step++) {
        SPS_TRY(find_ghosts(ctx, A, &in, &ghost, &ghosts));
        spsi_row_list_clear(ctx, &in);
        spsi_halo_destroy(&w->halo);
        SPS_TRY(spsi_halo_create(ctx, A->first, A->nrow, A->whole, ghost,
                                 ghosts, &w->halo));
        SPS_TRY(spsi_trade_rows(w->halo, A, 0, &in));
    }
    n = A->nrow + w->halo->ghosts;
    SPS_TRY(sps_csr_create(ctx, n, n, join(w->halo, A, &in, NULL), SPS_F64,
                           &w->A));
    (void)join(w->halo, A, &in, w->A);
    w->A->props = SPS_SORTED;
fail:
    spsi_free(ctx, ghost);
    spsi_row_list_clear(ctx, &in);
    return st;
}

sps_status spsi_near_rows_of(const sps_operator *A, int distance,
                             struct near_rows *w)
{
    sps_csr *rows = NULL, *own = NULL;
    sps_status st;

    SPS_TRY(spsi_ranks_rows(A, &rows));
    SPS_TRY(spsi_near_spread(A->ranks->halo, rows, rows->val, &own));
    SPS_TRY(spsi_near_rows(A->ctx, own, distance, w));
fail:
    sps_csr_destroy(A->ctx, &rows);
    sps_csr_destroy(A->ctx, &own);
    return st;
}

void spsi_near_clear(sps_context *ctx, struct near_rows *w)
{
    spsi_halo_destroy(&w->halo);
    sps_csr_destroy(ctx, &w->A);
}

/* ----------------------------------------------------- distributed matrices */

sps_status spsi_near_spread(const sps_halo *h, const sps_csr *G,
                            const double *val, sps_csr **own_p)
{
    int64_t *global = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(h->ctx, G->nnz + 1, &global));
    for (int64_t p = 0; p < G->nnz; p++)
        global[p] = spsi_near_global(h, G->col[p]);
    SPS_TRY(sps_csr_wrap_rows(h->ctx, h->first, G->nrow, h->whole, G->nnz,
                              G->rowptr, global, (void *)(uintptr_t)val,
                              SPS_F64, SPS_COPY, own_p));
fail:
    spsi_free(h->ctx, global);
    return st;
}

typedef struct entry {
    int64_t row, col;
    double value;
} entry;

static int owner(const sps_halo *h, int64_t row)
{
    return is_own(h, row) ? spsi_comm_rank(h->ctx) : spsi_halo_owner(h, row);
}

/* Sorts the entries of G, as those of its transpose, by the owners of their
 * rows; at[r]: number of the first entry for process r. */
static sps_status pack(const sps_halo *h, const sps_csr *G, const double *val,
                       int64_t *at, entry *out)
{
    const int size = spsi_comm_size(h->ctx);
    int64_t *next = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(h->ctx, size, &next));
    for (int64_t p = 0; p < G->nnz; p++)
        at[owner(h, spsi_near_global(h, G->col[p])) + 1]++;
    for (int r = 0; r < size; r++) at[r + 1] += at[r];
    memcpy(next, at, (size_t)size * sizeof *next);
    for (int64_t i = 0; i < G->nrow; i++)
        for (int64_t p = G->rowptr[i]; p < G->rowptr[i + 1]; p++) {
            const int64_t row = spsi_near_global(h, G->col[p]);

            out[next[owner(h, row)]++] = (entry){ row, h->first + i, val[p] };
        }
fail:
    spsi_free(h->ctx, next);
    return st;
}

/* Makes the csr of entries in own rows, which ascend by columns. */
static sps_status sort_rows(const sps_halo *h, const entry *in, int64_t count,
                            sps_csr **own_p)
{
    int64_t *rowptr = NULL, *global = NULL;
    double *val = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(h->ctx, h->n + 2, &rowptr));
    SPS_TRY(SPS_NEW(h->ctx, count + 1, &global));
    SPS_TRY(SPS_NEW(h->ctx, count + 1, &val));
    for (int64_t e = 0; e < count; e++) rowptr[in[e].row - h->first + 2]++;
    for (int64_t i = 0; i < h->n; i++) rowptr[i + 2] += rowptr[i + 1];
    for (int64_t e = 0; e < count; e++) {
        const int64_t q = rowptr[in[e].row - h->first + 1]++;

        global[q] = in[e].col;
        val[q] = in[e].value;
    }
    SPS_TRY(sps_csr_wrap_rows(h->ctx, h->first, h->n, h->whole, count, rowptr,
                              global, val, SPS_F64, SPS_COPY, own_p));
fail:
    spsi_free(h->ctx, rowptr);
    spsi_free(h->ctx, global);
    spsi_free(h->ctx, val);
    return st;
}

sps_status spsi_near_transpose(const sps_halo *h, const sps_csr *G,
                               const double *val, sps_csr **own_p)
{
    sps_context *ctx = h->ctx;
    const int size = spsi_comm_size(ctx);
    int64_t *out_at = NULL, *in_at = NULL;
    entry *out = NULL, *in = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, size + 1, &out_at));
    SPS_TRY(SPS_NEW(ctx, size + 1, &in_at));
    SPS_TRY(SPS_NEW(ctx, G->nnz, &out));
    SPS_TRY(pack(h, G, val, out_at, out));
    SPS_TRY(spsi_trade_counts(ctx, out_at, in_at));
    SPS_TRY(SPS_NEW(ctx, in_at[size], &in));
    SPS_TRY(spsi_trade(ctx, out_at, out, in_at, in, sizeof *in));
    SPS_TRY(sort_rows(h, in, in_at[size], own_p));
fail:
    spsi_free(ctx, out_at);
    spsi_free(ctx, in_at);
    spsi_free(ctx, out);
    spsi_free(ctx, in);
    return st;
}
