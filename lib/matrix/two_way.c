/* SPDX-License-Identifier: BSD-3-Clause */
/* two_way.c - the order, groups and pieces of two_way.h. */
#include "matrix/two_way.h"

#include <math.h>
#include <string.h>

#include "core/backend.h"

enum { HASHES = 4096, GROUP_ROWS = 64, MOST_PIECES = 64, LEAST_PIECES = 4 };

static int64_t length(const sps_csr *A, int64_t i)
{
    return A->rowptr[i + 1] - A->rowptr[i];
}

static bool same_columns(const sps_csr *A, int64_t i, int64_t j)
{
    const int64_t count = length(A, i);

    return count == length(A, j) &&
           !memcmp(A->col + A->rowptr[i], A->col + A->rowptr[j],
                   (size_t)count * sizeof *A->col);
}

/* ------------------------------------------------------- order of the rows */

static int32_t hash(const sps_csr *A, int64_t i)
{
    uint32_t h = 2166136261u;

    for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
        h = (h ^ (uint32_t)A->col[p]) * 16777619u;
    return (int32_t)((h ^ h >> 12) % HASHES);
}

static int32_t last_column(const sps_csr *A, int64_t i)
{
    return length(A, i) ? A->col[A->rowptr[i + 1] - 1] : 0;
}

static int32_t first_column(const sps_csr *A, int64_t i)
{
    return length(A, i) ? A->col[A->rowptr[i]] : 0;
}

typedef int32_t key_fn(const sps_csr *A, int64_t i);

/* Sorts `from` to `to` by a key below `keys`; rows with equal keys keep their
 * order.  of: nrow numbers; begin: keys + 1. */
static void sort_by(const sps_csr *A, key_fn *key, int64_t keys, int32_t *of,
                    int64_t *begin, const int32_t *from, int32_t *to)
{
    memset(begin, 0, (size_t)(keys + 1) * sizeof *begin);
    for (int64_t i = 0; i < A->nrow; i++) begin[(of[i] = key(A, i)) + 1]++;
    for (int64_t j = 0; j < keys; j++) begin[j + 1] += begin[j];
    for (int64_t i = 0; i < A->nrow; i++) to[begin[of[from[i]]]++] = from[i];
}

static sps_status sort_rows(sps_two_way *w, const sps_csr *A)
{
    const int64_t keys = A->ncol > HASHES ? A->ncol : HASHES;
    int32_t *of = NULL, *other = NULL;
    int64_t *begin = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(w->ctx, A->nrow, &w->order));
    SPS_TRY(SPS_NEW(w->ctx, A->nrow, &of));
    SPS_TRY(SPS_NEW(w->ctx, A->nrow, &other));
    SPS_TRY(SPS_NEW(w->ctx, keys + 1, &begin));
    for (int64_t i = 0; i < A->nrow; i++) other[i] = (int32_t)i;
    sort_by(A, hash, HASHES, of, begin, other, w->order);
    sort_by(A, last_column, A->ncol, of, begin, w->order, other);
    sort_by(A, first_column, A->ncol, of, begin, other, w->order);
fail:
    spsi_free(w->ctx, of);
    spsi_free(w->ctx, other);
    spsi_free(w->ctx, begin);
    return st;
}

/* -------------------------------------------------------- groups and pieces */

/* Returns the number of groups, and stores where they begin if w->row is
 * there. */
static int64_t divide(sps_two_way *w, const sps_csr *A)
{
    int64_t g = 0, begin = 0, entry = 0, value = 0;

    for (int64_t i = 1; i <= w->nrow; i++) {
        const int64_t columns = length(A, w->order[begin]);

        if (i < w->nrow && i - begin < GROUP_ROWS &&
            same_columns(A, w->order[i], w->order[begin]))
            continue;
        value += (i - begin) * columns;
        entry += columns;
        g++;
        begin = i;
        if (!w->row) continue;
        w->row[g] = i;
        w->entry[g] = entry;
        w->value[g] = value;
    }
    return g;
}

static sps_status take_groups(sps_two_way *w, const sps_csr *A)
{
    const int64_t count = w->groups = divide(w, A);
    sps_status st;

    SPS_TRY(SPS_NEW(w->ctx, count + 1, &w->entry));
    SPS_TRY(SPS_NEW(w->ctx, count + 1, &w->value));
    SPS_TRY(SPS_NEW(w->ctx, count + 1, &w->row));
    divide(w, A);
fail:
    return st;
}

/* Divides the groups into `pieces` with about the same number of entries. */
static void cut(sps_two_way *w, int64_t pieces)
{
    const int64_t nnz = w->value[w->groups];
    int64_t g = 0;

    w->pieces = pieces;
    for (int64_t p = 0; p < pieces; p++) {
        while (g < w->groups && w->value[g] < nnz / pieces * p) g++;
        w->piece[p] = g;
    }
    w->piece[pieces] = w->groups;
}

/* Numbers the slots and returns how many there are; stores them if w->slot is
 * there.  mark: ncol numbers. */
static int64_t number_slots(sps_two_way *w, const sps_csr *A, int32_t *mark)
{
    int32_t slots = 0;

    memset(mark, -1, (size_t)w->ncol * sizeof *mark);
    for (int64_t p = 0; p < w->pieces; p++) {
        const int64_t first = w->first[p] = slots;

        for (int64_t g = w->piece[p]; g < w->piece[p + 1]; g++) {
            const int32_t *col = A->col + A->rowptr[w->order[w->row[g]]];

            for (int64_t e = w->entry[g]; e < w->entry[g + 1]; e++, col++) {
                if (mark[*col] < first) mark[*col] = slots++;
                if (!w->slot) continue;
                w->slot[e] = mark[*col];
                w->column[mark[*col]] = *col;
            }
        }
    }
    w->first[w->pieces] = slots;
    return slots;
}

/* Lists the slots of each column. */
static sps_status list_slots(sps_two_way *w)
{
    const int64_t slots = w->first[w->pieces];
    sps_status st;

    SPS_TRY(SPS_NEW(w->ctx, w->ncol + 2, &w->start));
    SPS_TRY(SPS_NEW(w->ctx, slots, &w->where));
    for (int64_t s = 0; s < slots; s++) w->start[w->column[s] + 2]++;
    for (int64_t j = 2; j <= w->ncol; j++) w->start[j] += w->start[j - 1];
    for (int64_t s = 0; s < slots; s++)
        w->where[w->start[w->column[s] + 1]++] = (int32_t)s;
fail:
    return st;
}

/* Takes the largest number of pieces with at most as many slots as A has rows
 * and columns, for each costs four passes over a row of a block; w->pieces = 0
 * if there is none. */
static sps_status take_pieces(sps_two_way *w, const sps_csr *A)
{
    const int64_t most = w->nrow + w->ncol;
    int64_t slots = most + 1, pieces = MOST_PIECES;
    int32_t *mark = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(w->ctx, w->ncol, &mark));
    SPS_TRY(SPS_NEW(w->ctx, MOST_PIECES + 1, &w->piece));
    SPS_TRY(SPS_NEW(w->ctx, MOST_PIECES + 1, &w->first));
    for (; slots > most && pieces >= LEAST_PIECES; pieces /= 4) {
        cut(w, pieces);
        slots = number_slots(w, A, mark);
    }
    if (slots > most) w->pieces = 0;
    if (slots > most) goto fail;
    SPS_TRY(SPS_NEW(w->ctx, slots, &w->column));
    SPS_TRY(SPS_NEW(w->ctx, w->entry[w->groups], &w->slot));
    number_slots(w, A, mark);
    SPS_TRY(list_slots(w));
fail:
    spsi_free(w->ctx, mark);
    return st;
}

/* ------------------------------------------------------------------- handle */

sps_status spsi_two_way_create(sps_context *ctx, const sps_csr *A, int k,
                               sps_two_way **w_p)
{
    sps_two_way *w = NULL;
    sps_status st = SPS_OK;

    if (!ctx->backend->two_way_there || A->nnz == 0 || A->nrow > INT32_MAX)
        return st;
    SPS_TRY(SPS_NEW(ctx, 1, &w));
    w->ctx = ctx;
    w->nrow = A->nrow;
    w->ncol = A->ncol;
    SPS_TRY(sort_rows(w, A));
    SPS_TRY(take_groups(w, A));
    SPS_TRY(take_pieces(w, A));
    if (w->pieces == 0) goto fail;
    SPS_TRY(sps_block_create(ctx, w->first[w->pieces], k, &w->S));
    SPS_TRY(SPS_NEW(ctx, A->nnz, &w->val));
    spsi_two_way_refresh(w, A);
    *w_p = w;
    return SPS_OK;

fail:
    spsi_two_way_destroy(&w);
    return st;
}

void spsi_two_way_refresh(sps_two_way *w, const sps_csr *A)
{
    double *to = w->val;

    for (int64_t i = 0; i < w->nrow; i++) {
        const int64_t row = w->order[i];

        for (int64_t p = A->rowptr[row]; p < A->rowptr[row + 1]; p++)
            *to++ = spsi_csr_value(A, p);
    }
}

void spsi_two_way_destroy(sps_two_way **w_p)
{
    sps_two_way *w = *w_p;

    if (!w) return;
    sps_block_destroy(&w->S);
    spsi_free(w->ctx, w->order);
    spsi_free(w->ctx, w->row);
    spsi_free(w->ctx, w->entry);
    spsi_free(w->ctx, w->value);
    spsi_free(w->ctx, w->slot);
    spsi_free(w->ctx, w->val);
    spsi_free(w->ctx, w->piece);
    spsi_free(w->ctx, w->first);
    spsi_free(w->ctx, w->column);
    spsi_free(w->ctx, w->start);
    spsi_free(w->ctx, w->where);
    spsi_free(w->ctx, w);
    *w_p = NULL;
}

/* ------------------------------------------------------------------- passes */

/* norm = the norms of the columns of X from their squares, which are computed
 * again if one of them may have left the range of doubles. */
static sps_status roots(const sps_block *X, double *norm)
{
    bool fine = true;

    for (int j = 0; j < X->k; j++)
        fine = fine && norm[j] > 0x1p-900 && norm[j] < 0x1p900;
    if (!fine) return spsi_norms(X, norm);
    for (int j = 0; j < X->k; j++) norm[j] = sqrt(norm[j]);
    return SPS_OK;
}

sps_status spsi_two_way_there(const sps_two_way *w, const double *c,
                              const sps_block *X, sps_block *U, double *norm)
{
    sps_status st;

    spsi_block_narrow(w->S, U->k);
    SPS_TRY(w->ctx->backend->two_way_there(w, c, X, U, norm));
    SPS_TRY(roots(U, norm));
fail:
    return st;
}

sps_status spsi_two_way_back(const sps_two_way *w, const double *a, double d,
                             const sps_block *V, const double *b, sps_block *Z,
                             double *norm)
{
    sps_status st;

    SPS_TRY(w->ctx->backend->two_way_back(w, a, d, V, b, Z, norm));
    SPS_TRY(roots(Z, norm));
fail:
    return st;
}
