/* SPDX-License-Identifier: BSD-3-Clause */
/* operator_ranks.c - see operator_ranks.h: splits the rows, and makes plans. */
#include "operator/operator_ranks.h"
#include "operator/reorder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/abi.h"
#include "core/options.h"
#include "core/team.h"
#include "matrix/some_rows.h"

#define FEW 4                /* boundary rows are few if they have at most this
                                part of the entries */

/* ------------------------------------------------------------------- ghosts */

static bool foreign(const sps_ranks *r, int64_t column)
{
    return column < r->A->first || column >= r->A->first + r->cols;
}

static bool is_good(const sps_csr *A, int64_t i)
{
    const int64_t first = A->rowptr[i], last = A->rowptr[i + 1];

    if (first < 0 || first > last || last > A->nnz) return false;
    for (int64_t p = first; p < last; p++)
        if (A->global[p] < 0 || A->global[p] >= A->whole ||
            (p > first && A->global[p] <= A->global[p - 1]))
            return false;
    return true;
}

typedef struct checking {
    const sps_csr *A;
    int64_t bad;
} checking;

static void count_bad(void *data, int64_t first, int64_t last)
{
    checking *c = data;
    int64_t bad = 0;

    for (int64_t i = first; i < last; i++) bad += !is_good(c->A, i);
    spsi_team_add(&c->bad, bad);
}

static sps_status check_row(sps_context *ctx, const sps_csr *A, int64_t i)
{
    const long long row = (long long)(A->first + i);
    sps_status st = SPS_OK;

    SPS_REQUIRE(ctx, A->rowptr[i] <= A->rowptr[i + 1] &&
                A->rowptr[i + 1] <= A->nnz, SPS_EMATRIX, "row %lld: its "
                "offsets are %lld and %lld; they must not decrease, and not "
                "exceed the %lld entries", row, (long long)A->rowptr[i],
                (long long)A->rowptr[i + 1], (long long)A->nnz);
    for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
        SPS_REQUIRE(ctx, A->global[p] >= 0 && A->global[p] < A->whole,
                    SPS_EMATRIX, "row %lld has column %lld, the whole matrix "
                    "has columns 0 to %lld", row, (long long)A->global[p],
                    (long long)A->whole - 1);
        SPS_REQUIRE(ctx, p == A->rowptr[i] || A->global[p] > A->global[p - 1],
                    SPS_EMATRIX, "row %lld: columns %lld and %lld do not "
                    "ascend; the rows of a matrix over several processes must "
                    "be sorted, without duplicates", row,
                    (long long)A->global[p - 1],
                    (long long)A->global[p]);
    }
fail:
    return st;
}

static sps_status check_rows(sps_context *ctx, const sps_csr *A)
{
    checking c = { .A = A };
    sps_status st;

    SPS_TRY(spsi_abi_csr_struct(ctx, "sps_operator_csr", A));
    SPS_REQUIRE(ctx, A->place == SPS_HOST, SPS_EUNFIT, "the rows of a matrix "
                "over several processes must be in host memory");
    SPS_REQUIRE(ctx, !(A->props & SPS_INTERLEAVED), SPS_EUNFIT, "a complex "
                "matrix cannot be distributed over processes");
    SPS_REQUIRE(ctx, A->ncol == A->whole, SPS_EUNFIT, "the matrix is %lld x "
                "%lld; over processes it must be square", (long long)A->whole,
                (long long)A->ncol);
    SPS_REQUIRE(ctx, A->nrow >= 0 && A->nnz >= 0 && A->rowptr &&
                A->rowptr[0] == 0 && A->rowptr[A->nrow] == A->nnz &&
                (A->nnz == 0 || (A->global && A->val)), SPS_EINVAL,
                "sps_operator_csr: an array of the rows is NULL, or offsets do "
                "not run from 0 to %lld", (long long)A->nnz);
    SPS_REQUIRE(ctx, A->first >= 0 && A->nrow <= INT32_MAX &&
                A->nrow <= A->whole - A->first, SPS_EINVAL, "rows %lld to "
                "%lld are not rows of a whole of %lld, or more than 2^31",
                (long long)A->first, (long long)(A->first + A->nrow - 1),
                (long long)A->whole);
    spsi_team_run(ctx, A->nrow, A->nnz, count_bad, &c);
    for (int64_t i = 0; i < A->nrow && c.bad > 0; i++)
        SPS_TRY(check_row(ctx, A, i));
fail:
    return st;
}

static int ascending(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* Sorts x and leaves distinct numbers; returns how many. */
static int64_t sort_distinct(int64_t *x, int64_t count)
{
    int64_t kept = 0;

    if (count > 0) qsort(x, (size_t)count, sizeof *x, ascending);
    for (int64_t i = 0; i < count; i++)
        if (i == 0 || x[i] != x[i - 1]) x[kept++] = x[i];
    return kept;
}

/* The same for *count numbers; those of neighbouring planes of a grid are
 * marked in their range, which takes a fraction of the time of sorting. */
static sps_status leave_distinct(sps_context *ctx, int64_t *x, int64_t *count)
{
    int64_t low = INT64_MAX, high = -1, kept = 0;
    unsigned char *mark = NULL;
    sps_status st = SPS_OK;

    for (int64_t i = 0; i < *count; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    if (high - low >= 8 * *count) {
        *count = sort_distinct(x, *count);
        return SPS_OK;
    }
    SPS_TRY(SPS_NEW(ctx, high - low + 1, &mark));
    for (int64_t i = 0; i < *count; i++) mark[x[i] - low] = 1;
    for (int64_t j = 0; j <= high - low; j++)
        if (mark[j]) x[kept++] = low + j;
    *count = kept;
fail:
    spsi_free(ctx, mark);
    return st;
}

/* Appends to ghost the distinct columns of processes before this one, or of
 * those after it; global: the columns of the boundary rows. */
static sps_status add_ghosts(sps_context *ctx, const sps_ranks *r,
                             const int64_t *global, bool before, int64_t *ghost,
                             int64_t *ghosts)
{
    int64_t count = 0;
    sps_status st = SPS_OK;

    ghost += *ghosts;
    for (int64_t p = 0; p < r->edge->nnz; p++)
        if (foreign(r, global[p]) && (global[p] < r->A->first) == before)
            ghost[count++] = global[p];
    if (count > 0) SPS_TRY(leave_distinct(ctx, ghost, &count));
    *ghosts += count;
fail:
    return st;
}

/* Finds the distinct columns that other processes own, ascending. */
static sps_status find_ghosts(sps_context *ctx, const sps_ranks *r,
                              const int64_t *global, int64_t **ghost_p,
                              int64_t *ghosts)
{
    sps_status st;

    *ghosts = 0;
    SPS_TRY(SPS_NEW(ctx, r->edge->nnz, ghost_p));
    SPS_TRY(add_ghosts(ctx, r, global, true, *ghost_p, ghosts));
    SPS_TRY(add_ghosts(ctx, r, global, false, *ghost_p, ghosts));
fail:
    return st;
}

/* ------------------------------------------------------- interior, boundary */

typedef struct marking {
    const sps_ranks *r;
    unsigned char *mark;      /* whether a row has ghosts */
} marking;

static void mark_rows(void *data, int64_t first, int64_t last)
{
    const marking *m = data;
    const int64_t *rowptr = m->r->A->rowptr;

    for (int64_t i = first; i < last; i++) {
        m->mark[i] = 0;
        for (int64_t p = rowptr[i]; p < rowptr[i + 1] && !m->mark[i]; p++)
            m->mark[i] = foreign(m->r, m->r->A->global[p]);
    }
}

/* Finds the boundary rows. */
static sps_status find_rows(sps_context *ctx, sps_ranks *r)
{
    const sps_csr *A = r->A;
    marking m = { .r = r };
    int64_t count = 0;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, A->nrow + 1, &m.mark));
    spsi_team_run(ctx, A->nrow, A->nnz, mark_rows, &m);
    for (int64_t i = 0; i < A->nrow; i++) count += m.mark[i];
    SPS_TRY(SPS_NEW(ctx, count, &r->row));
    for (int64_t i = 0; i < A->nrow; i++)
        if (m.mark[i]) r->row[r->rows++] = (int32_t)i;
fail:
    spsi_free(ctx, m.mark);
    return st;
}

/* Makes the matrix of the boundary rows, whose columns are *global_p so far. */
static sps_status take_edge(sps_context *ctx, sps_ranks *r, int64_t **global_p)
{
    const sps_csr *A = r->A;
    int64_t nnz = 0;
    sps_status st;

    for (int64_t b = 0; b < r->rows; b++)
        nnz += A->rowptr[r->row[b] + 1] - A->rowptr[r->row[b]];
    SPS_TRY(sps_csr_create(ctx, r->rows, 0, nnz, A->dtype, &r->edge));
    SPS_TRY(SPS_NEW(ctx, nnz, global_p));
    for (int64_t b = 0; b < r->rows; b++) {
        const int64_t from = A->rowptr[r->row[b]], at = r->edge->rowptr[b];
        const int64_t count = A->rowptr[r->row[b] + 1] - from;

        for (int64_t p = 0; p < count; p++)
            (*global_p)[at + p] = A->global[from + p];
        r->edge->rowptr[b + 1] = at + count;
    }
fail:
    return st;
}

/* A set of own rows. */
typedef struct row_set {
    uint64_t *word;           /* a bit for each row */
    int64_t *before;          /* rows of the set in the words before each */
    int64_t words;
} row_set;

/* Returns the number of rows of the set that are below row j. */
static int64_t below(const row_set *s, int64_t j)
{
    const uint64_t bits = s->word[j / 64] & ((UINT64_C(1) << j % 64) - 1);

    return s->before[j / 64] + __builtin_popcountll(bits);
}

/* Makes the set of own rows that boundary rows use. */
static sps_status find_used(sps_context *ctx, const sps_ranks *r,
                            const int64_t *global, row_set *s)
{
    sps_status st;

    s->words = r->cols / 64 + 1;
    SPS_TRY(SPS_NEW(ctx, s->words, &s->word));
    SPS_TRY(SPS_NEW(ctx, s->words + 1, &s->before));
    for (int64_t p = 0; p < r->edge->nnz; p++) {
        const int64_t j = global[p] - r->A->first;

        if (!foreign(r, global[p])) s->word[j / 64] |= UINT64_C(1) << j % 64;
    }
    for (int64_t w = 0; w < s->words; w++)
        s->before[w + 1] = s->before[w] + __builtin_popcountll(s->word[w]);
fail:
    return st;
}

static sps_status find_touched(sps_context *ctx, sps_ranks *r, const row_set *s)
{
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, s->before[s->words], &r->touch));
    for (int64_t w = 0; w < s->words; w++)
        for (uint64_t left = s->word[w]; left; left &= left - 1)
            r->touch[r->touched++] =
                (int32_t)(64 * w + __builtin_ctzll(left));
    SPS_REQUIRE(ctx, r->halo->ghosts <= INT32_MAX - r->touched, SPS_EMATRIX,
                "%lld rows of other processes are needed, more than column "
                "indices of 32 bits allow", (long long)r->halo->ghosts);
fail:
    return st;
}

typedef struct numbering {
    const sps_ranks *r;
    const int64_t *global;
    const row_set *used;
} numbering;

/* Ghosts are looked for from the one before on: the columns of a row ascend,
 * and those of its neighbours are often the next ones. */
static void number_entries(void *data, int64_t first, int64_t last)
{
    const numbering *j = data;
    const sps_ranks *r = j->r;
    const sps_halo *h = r->halo;
    int64_t near = 0;

    for (int64_t p = first; p < last; p++) {
        const int64_t g = j->global[p], own = g - r->A->first;

        if (!foreign(r, g)) {
            r->edge->col[p] = (int32_t)(h->low + below(j->used, own));
            continue;
        }
        if (h->ghost[near] != g && near + 1 < h->ghosts) near++;
        if (h->ghost[near] != g) near = spsi_halo_ghost(h, g);
        r->edge->col[p] = (int32_t)(near + (own < 0 ? 0 : r->touched));
    }
}

/* Makes the columns of the boundary rows those of the operand. */
static sps_status number_edge(sps_context *ctx, sps_ranks *r,
                              const int64_t *global)
{
    row_set s = { NULL };
    sps_status st;

    SPS_TRY(find_used(ctx, r, global, &s));
    SPS_TRY(find_touched(ctx, r, &s));
    r->edge->ncol = r->touched + r->halo->ghosts;
    spsi_team_run(ctx, r->edge->nnz, 8 * r->edge->nnz, number_entries,
                  &(numbering){ r, global, &s });
fail:
    spsi_free(ctx, s.word);
    spsi_free(ctx, s.before);
    return st;
}

/* Returns the number of boundary rows before row i. */
static int64_t edges_before(const sps_ranks *r, int64_t i)
{
    int64_t low = 0, high = r->rows;

    while (low < high) {
        const int64_t middle = low + (high - low) / 2;

        if (r->row[middle] < i) low = middle + 1;
        else high = middle;
    }
    return low;
}

typedef struct splitting {
    sps_ranks *r;
    const void *val;
} splitting;

/* Copies the values of boundary rows to `edge` and those of other rows to
 * `inner`. */
static void split_values(void *data, int64_t first, int64_t last)
{
    const splitting *s = data;
    const sps_ranks *r = s->r;
    const int64_t *at = r->A->rowptr, *edge = r->edge->rowptr;
    const size_t each = spsi_dtype_size(r->A->dtype);
    int64_t b = edges_before(r, first);

    for (int64_t i = first; i < last; i++) {
        const bool at_edge = b < r->rows && r->row[b] == i;
        char *to = at_edge ? r->edge->val : r->inner->val;
        const int64_t q = at_edge ? edge[b] : at[i] - edge[b];

        if (at[i + 1] > at[i])
            memcpy(to + (size_t)q * each,
                   (const char *)s->val + (size_t)at[i] * each,
                   (size_t)(at[i + 1] - at[i]) * each);
        b += at_edge;
    }
}

static void split_pattern(void *data, int64_t first, int64_t last)
{
    const splitting *s = data;
    const sps_ranks *r = s->r;
    const int64_t *at = r->A->rowptr, *edge = r->edge->rowptr;
    int64_t b = edges_before(r, first);

    for (int64_t i = first; i < last; i++) {
        const bool at_edge = b < r->rows && r->row[b] == i;
        int32_t *to = r->inner->col + at[i] - edge[b];

        for (int64_t p = at[i]; p < at[i + 1] && !at_edge; p++)
            *to++ = (int32_t)(r->A->global[p] - r->A->first);
        b += at_edge;
        r->inner->rowptr[i + 1] = at[i + 1] - edge[b];
    }
}

static void split_all(sps_ranks *r, spsi_team_fn *part, const void *val)
{
    splitting s = { r, val };

    spsi_team_run(r->halo->ctx, r->A->nrow, r->A->nnz, part, &s);
}

/* Makes the matrix of the interior rows, and the values of both. */
static sps_status split(sps_context *ctx, sps_ranks *r)
{
    const sps_csr *A = r->A;
    sps_status st;

    SPS_TRY(sps_csr_create(ctx, A->nrow, r->cols, A->nnz - r->edge->nnz,
                           A->dtype, &r->inner));
    split_all(r, split_pattern, NULL);
    split_all(r, split_values, A->val);
fail:
    return st;
}

/* ---------------------------------------------------- rows in device memory */

/* Rows whose columns are those of the whole, or, with h, those of
 * spsi_ranks_rows. */
typedef struct rows_there {
    const sps_csr *X;
    const sps_halo *h;
} rows_there;

/* Creates the interior rows from those of X; r->row and r->edge are known. */
static sps_status inner_there(sps_context *ctx, const sps_ranks *r,
                              const rows_there *t, sps_csr **inner_p)
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

typedef struct naming {
    const sps_halo *h;
    const int32_t *col;
    int64_t *global;
} naming;

static void name_entries(void *data, int64_t first, int64_t last)
{
    const naming *j = data;

    for (int64_t p = first; p < last; p++)
        j->global[p] = j->h ? spsi_halo_row(j->h, j->col[p]) : j->col[p];
}

/* Makes r->row, r->edge and r->inner; *global_p: the columns of r->edge. */
static sps_status take_there(sps_context *ctx, sps_ranks *r,
                             const rows_there *t, int64_t **global_p)
{
    const int64_t low = t->h ? t->h->low : r->A->first;
    sps_status st;

    SPS_TRY(spsi_rows_outside(ctx, t->X, low, low + r->cols, &r->row,
                              &r->rows));
    SPS_TRY(spsi_rows_pick(ctx, t->X, r->row, r->rows, &r->edge));
    SPS_TRY(SPS_NEW(ctx, r->edge->nnz, global_p));
    spsi_team_run(ctx, r->edge->nnz, r->edge->nnz, name_entries,
                  &(naming){ t->h, r->edge->col, *global_p });
    SPS_TRY(inner_there(ctx, r, t, &r->inner));
fail:
    return st;
}

sps_status spsi_ranks_set_there(sps_operator *op, const sps_csr *X,
                                const sps_halo *h)
{
    const rows_there t = { X, h };
    sps_context *ctx = op->ctx;
    sps_ranks *r = op->ranks;
    sps_csr *edge = NULL, *inner = NULL;
    sps_status st;

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

/* ----------------------------------------------------------------- creation */

static int64_t sent(const sps_ranks *r)
{
    return r->halo->send_at[r->halo->neighbours];
}

/* Copies `count` row numbers to the memory of the blocks, or uses them in place
 * if that is host memory. */
static sps_status place(sps_context *ctx, int32_t *from, int64_t count,
                        int32_t **to)
{
    const size_t bytes = (size_t)count * sizeof *from;
    void *room = from;
    sps_status st = SPS_OK;

    if (ctx->backend->place != SPS_HOST && count > 0) {
        SPS_TRY(ctx->backend->alloc(ctx, bytes, &room));
        *to = room;
        SPS_TRY(ctx->backend->upload(ctx, room, from, bytes));
    }
    *to = room;
fail:
    return st;
}

static void displace(sps_context *ctx, const int32_t *from, int64_t count,
                     int32_t *at)
{
    if (at && at != from)
        ctx->backend->release(ctx, at, (size_t)count * sizeof *at);
}

/* What an operator is made for. */
typedef struct uses {
    int64_t cols;             /* own columns */
    int width;
    sps_dtype blocks;
    bool inner;               /* see sps_operator */
    const rows_there *there;  /* the rows, if they are in device memory */
} uses;

/* Returns the predicted seconds of a product of own rows, from the memory
 * traffic of two blocks, and of an index and a value for each entry. */
static double product_seconds(const sps_ranks *r, const uses *u)
{
    const double each = (double)spsi_dtype_size(u->blocks);
    const double bytes = each * (double)(r->A->nrow + r->cols) * u->width +
                         (4.0 + (double)spsi_dtype_size(r->A->dtype)) *
                         (double)r->A->nnz;
    const double rate = r->halo->ctx->machine.copy;

    return rate > 0 ? bytes / rate : 0;
}

/* Decides whether products of boundary rows are added in place, which takes
 * less than gathering their operands if they are few; and whether products of
 * an X of floats are possible, on all processes. */
static sps_status choose_ways(sps_context *ctx, sps_ranks *r, int width)
{
    const sps_plan *plan = r->interior->block;
    const int64_t ld = spsi_block_ld(width);
    const sps_block X = { .k = width, .ld = ld, .dtype = SPS_F32 };
    sps_block Y = { .k = width, .ld = ld, .dtype = SPS_F64 };
    const sps_spmm_args args = { .alpha = 1, .X = &X, .Y = &Y };
    bool never;
    sps_status st;

    r->adds = spsi_wire(ctx) && !r->boundary->local.far &&
              r->edge->nnz <= r->A->nnz / FEW;
    never = !r->adds || r->interior->dtype != SPS_F64 || !plan ||
            !plan->kernel->mixes || !plan->kernel->mixes(plan, &args);
    SPS_TRY(spsi_comm_any(ctx, never, &never));
    r->mixes = !never;
fail:
    return st;
}

static sps_status make_blocks(sps_context *ctx, sps_ranks *r, const uses *u)
{
    sps_status st;

    SPS_TRY(spsi_block_create(ctx, sent(r), u->width, u->blocks, &r->packed));
    SPS_TRY(spsi_block_create(ctx, r->edge->ncol, u->width, u->blocks,
                              &r->operand));
    for (int i = 0; i < 4; i++)     /* [2] may hold a diagonal of doubles */
        SPS_TRY(spsi_block_create(ctx, r->rows, u->width,
                                  i == 2 ? SPS_F64 : u->blocks,
                                  &r->result[i]));
fail:
    return st;
}

static sps_status make_plans(sps_context *ctx, sps_ranks *r, const uses *u,
                             const sps_options *o)
{
    sps_status st;

    SPS_TRY(spsi_operator_create(ctx, r->inner, u->width, u->blocks, o,
                                 u->inner, &r->interior));
    SPS_TRY(spsi_operator_create(ctx, r->edge, u->width, u->blocks, o,
                                 u->inner, &r->boundary));
    SPS_TRY(make_blocks(ctx, r, u));
    SPS_TRY(spsi_halo_reserve(r->halo, u->width));
    SPS_TRY(spsi_halo_choose(r->halo, product_seconds(r, u), r->packed,
                             r->operand));
    SPS_TRY(place(ctx, r->row, r->rows, &r->at.row));
    SPS_TRY(place(ctx, r->touch, r->touched, &r->at.touch));
    SPS_TRY(place(ctx, r->halo->send, sent(r), &r->at.send));
    SPS_TRY(choose_ways(ctx, r, u->width));
fail:
    return st;
}

/* Copies the options, checked, to *o.  *how becomes "morton" or "metis" if rows
 * are to move between processes, otherwise NULL.  o->wisdom becomes NULL: it
 * names a file, which several processes would write at once. */
static sps_status take_options(sps_context *ctx, const sps_options *opt,
                               sps_options *o, const char **how)
{
    bool alone;
    sps_status st;

    SPS_TRY(spsi_options_take(ctx, opt, o));
    alone = !strcmp(o->reorder, "none") || !strcmp(o->reorder, "auto");
    SPS_REQUIRE(ctx, strcmp(o->reorder, "rcm") != 0, SPS_EUNFIT, "reorder rcm "
                "is not supported with several processes; morton and metis "
                "are");
    SPS_REQUIRE(ctx, strcmp(o->reorder, "metis") != 0 ||
                !spsi_comm_ordered(ctx), SPS_EUNFIT, "reorder metis: the parts "
                "depend on the number of processes, which across_ranks "
                "excludes");
    *how = alone ? NULL : o->reorder;
    o->reorder = "none";
    o->wisdom = NULL;
fail:
    return st;
}

/* Keeps those properties marked by the caller that the rows of all processes
 * have, so that decisions based on them are the same on all. */
static sps_status agree_on_marks(sps_context *ctx, unsigned props,
                                 unsigned *agreed)
{
    double without[2] = { !(props & SPS_SYMMETRIC), !(props & SPS_SPD) };
    sps_status st;

    SPS_TRY(spsi_reduce(ctx, without, 2));
    *agreed = (without[0] > 0 ? 0 : SPS_SYMMETRIC) |
              (without[1] > 0 ? 0 : SPS_SPD);
fail:
    return st;
}

/* Determines how many rows of X a product receives from other processes: the
 * sum over processes and the largest number; and the largest number of
 * neighbours. */
static sps_status sum_halos(sps_context *ctx, sps_ranks *r)
{
    const int size = spsi_comm_size(ctx);
    double *all = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, 2 * (int64_t)size, &all));
    SPS_TRY(spsi_comm_gather(ctx, (double)r->halo->ghosts, all));
    SPS_TRY(spsi_comm_gather(ctx, r->halo->neighbours, all + size));
    for (int p = 0; p < size; p++) {
        const int64_t rows = (int64_t)all[p];
        const int neighbours = (int)all[size + p];

        r->received.rows += rows;
        if (r->received.most < rows) r->received.most = rows;
        if (r->received.neighbours < neighbours)
            r->received.neighbours = neighbours;
    }
fail:
    spsi_free(ctx, all);
    return st;
}

void sps_operator_halo(const sps_operator *op, int64_t *rows, int64_t *most,
                       int *neighbours)
{
    const bool many = op && op->ranks;

    if (rows) *rows = many ? op->ranks->received.rows : 0;
    if (most) *most = many ? op->ranks->received.most : 0;
    if (neighbours) *neighbours = many ? op->ranks->received.neighbours : 0;
}

/* Makes the matrices of interior and boundary rows, and the halo. */
static sps_status divide(sps_context *ctx, sps_ranks *r, const uses *u)
{
    int64_t *ghost = NULL, *global = NULL, ghosts = 0;
    sps_status st = SPS_OK;

    if (u->there) {
        SPS_TRY(take_there(ctx, r, u->there, &global));
    } else {
        SPS_TRY(find_rows(ctx, r));
        SPS_TRY(take_edge(ctx, r, &global));
    }
    SPS_TRY(find_ghosts(ctx, r, global, &ghost, &ghosts));
    SPS_TRY(spsi_halo_create(ctx, r->A->first, u->cols, r->A->whole, ghost,
                             ghosts, &r->halo));
    SPS_TRY(number_edge(ctx, r, global));
    if (!u->there) SPS_TRY(split(ctx, r));
fail:
    spsi_free(ctx, ghost);
    spsi_free(ctx, global);
    return st;
}

/* Makes op->ranks from A, whose rows and columns have been checked. */
static sps_status distribute(sps_operator *op, const sps_csr *A, const uses *u,
                             const sps_options *o)
{
    sps_context *ctx = op->ctx;
    sps_ranks *r = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, 1, &r));
    op->ranks = r;
    r->A = A;
    r->cols = u->cols;
    r->blocks = u->blocks;
    op->n = A->nrow;
    op->ncol = u->cols;
    op->width = u->width;
    op->dtype = u->blocks;
    op->inner = u->inner;
    SPS_TRY(agree_on_marks(ctx, A->props, &op->props));
    op->caller.nnz = A->nnz;
    SPS_TRY(divide(ctx, r, u));
    SPS_TRY(sum_halos(ctx, r));
    SPS_TRY(make_plans(ctx, r, u, o));
fail:
    return st;
}

static sps_status create_many(sps_context *ctx, const sps_csr *A, const uses *u,
                              const sps_options *opt, sps_operator **op_p)
{
    sps_operator *op = NULL;
    const char *how = NULL;
    int64_t all;
    sps_options o;
    sps_status st;

    SPS_TRY(check_rows(ctx, A));
    SPS_TRY(spsi_comm_rows(ctx, A->nrow, false, &all));
    SPS_TRY(take_options(ctx, opt, &o, &how));
    SPS_TRY(spsi_operator_new(ctx, &op));
    SPS_TRY(distribute(op, A, u, &o));
    if (how) SPS_TRY(spsi_ranks_reorder(op, how, &o));
    *op_p = op;
    return SPS_OK;

fail:
    sps_operator_destroy(&op);
    return st;
}

/* Creates the operator of a single process: all rows are copied, with 32-bit
 * columns, to a csr that belongs to the operator. */
static sps_status create_alone(sps_context *ctx, const sps_csr *A,
                               const uses *u, const sps_options *opt,
                               sps_operator **op_p)
{
    sps_csr *own = NULL;
    sps_status st;

    SPS_TRY(check_rows(ctx, A));
    SPS_REQUIRE(ctx, A->nrow == A->whole, SPS_EINVAL, "there is only one "
                "process, and it has %lld of %lld rows", (long long)A->nrow,
                (long long)A->whole);
    SPS_TRY(sps_csr_create(ctx, A->nrow, A->nrow, A->nnz, A->dtype, &own));
    own->props = A->props;
    memcpy(own->rowptr, A->rowptr, (size_t)(A->nrow + 1) * sizeof *A->rowptr);
    for (int64_t p = 0; p < A->nnz; p++) own->col[p] = (int32_t)A->global[p];
    if (A->nnz > 0) memcpy(own->val, A->val, spsi_csr_value_bytes(A));
    SPS_TRY(spsi_operator_create(ctx, own, u->width, u->blocks, opt, u->inner,
                                 op_p));
    (*op_p)->own_A = own;
    return SPS_OK;

fail:
    sps_csr_destroy(ctx, &own);
    return st;
}

sps_status spsi_ranks_create(sps_context *ctx, const sps_csr *A, int width,
                             sps_dtype blocks, const sps_options *opt,
                             bool inner, sps_operator **op_p)
{
    const uses u = { A->nrow, width, blocks, inner, NULL };
    sps_operator *op = NULL;
    sps_status st;

    if (!spsi_comm_many(ctx)) return create_alone(ctx, A, &u, opt, op_p);
    SPS_TRY(spsi_comm_begin(ctx));
    SPS_TRY(spsi_comm_end(ctx, create_many(ctx, A, &u, opt, &op)));
    *op_p = op;
    return SPS_OK;

fail:
    sps_operator_destroy(&op);
    return st;
}

static sps_status create_inner(sps_context *ctx, const sps_csr *A,
                               const uses *u, sps_operator **op_p)
{
    sps_operator *op = NULL;
    sps_options o;
    sps_status st;

    SPS_TRY(spsi_options_take(ctx, NULL, &o));
    SPS_TRY(spsi_operator_new(ctx, &op));
    SPS_TRY(distribute(op, A, u, &o));
    *op_p = op;
    return SPS_OK;

fail:
    sps_operator_destroy(&op);
    return st;
}

sps_status spsi_ranks_across(sps_context *ctx, const sps_csr *A, int64_t cols,
                             int width, sps_dtype blocks, sps_operator **op_p)
{
    const uses u = { cols, width, blocks, true, NULL };

    return create_inner(ctx, A, &u, op_p);
}

sps_status spsi_ranks_there(sps_context *ctx, const sps_csr *X,
                            const sps_halo *h, const sps_csr *shape,
                            int64_t cols, int width, sps_dtype blocks,
                            sps_operator **op_p)
{
    const uses u = { cols, width, blocks, true, &(rows_there){ X, h } };
    sps_csr *S = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, 1, &S));
    ctx->live++;
    *S = *shape;
    SPS_TRY(create_inner(ctx, S, &u, op_p));
    (*op_p)->own_A = S;
    return SPS_OK;

fail:
    sps_csr_destroy(ctx, &S);
    return st;
}

/* --------------------------------------------------- other values, the same
 * pattern */

typedef struct scaling {
    const sps_csr *A;
    const int32_t *row;       /* rows of A among own rows; NULL: all */
    const double *by;
    double *val;
} scaling;

static void scale_rows(void *data, int64_t first, int64_t last)
{
    const scaling *s = data;

    for (int64_t i = first; i < last; i++) {
        const double by = s->by[s->row ? s->row[i] : i];

        for (int64_t p = s->A->rowptr[i]; p < s->A->rowptr[i + 1]; p++) {
            const double v = by * spsi_csr_value(s->A, p);

            s->val[p] = fabs(v) < 1e-30 ? 0 : v;
        }
    }
}

/* Creates *op_p on the pattern of `of`, whose matrix is A. */
static sps_status scaled_part(const sps_operator *of, const sps_csr *A,
                              const int32_t *row, const double *by,
                              sps_operator **op_p)
{
    scaling s = { .A = A, .row = row, .by = by };
    sps_csr S = *A;
    sps_options o;
    sps_status st;

    SPS_TRY(spsi_options_take(of->ctx, NULL, &o));
    SPS_TRY(SPS_NEW(of->ctx, A->nnz + 1, &s.val));
    spsi_team_run(of->ctx, A->nrow, A->nnz, scale_rows, &s);
    S.val = s.val;
    S.dtype = SPS_F64;
    S.props = 0;
    SPS_TRY(spsi_operator_single_like(of, &S, &o, op_p));
fail:
    spsi_free(of->ctx, s.val);
    return st;
}

sps_status spsi_ranks_scaled(const sps_operator *A, const double *by,
                             sps_operator **op_p)
{
    const sps_ranks *from = A->ranks;
    sps_operator *op = NULL;
    sps_ranks *r;
    bool unfit;
    sps_status st;

    SPS_TRY(spsi_operator_new(A->ctx, &op));
    SPS_TRY(SPS_NEW(A->ctx, 1, &op->ranks));
    r = op->ranks;
    *r = *from;
    r->shared = true;
    r->mixes = false;
    r->blocks = op->dtype = SPS_F32;
    r->interior = r->boundary = r->own = NULL;
    op->n = A->n;
    op->ncol = A->ncol;
    op->width = A->width;
    op->inner = true;
    op->caller.nnz = A->caller.nnz;
    st = scaled_part(from->interior, from->inner, NULL, by, &r->interior);
    if (st == SPS_OK)
        st = scaled_part(from->boundary, from->edge, from->row, by,
                         &r->boundary);
    if (st != SPS_OK && st != SPS_EUNFIT) goto fail;
    unfit = st == SPS_EUNFIT;
    SPS_TRY(spsi_comm_any(A->ctx, unfit, &unfit));
    SPS_REQUIRE(A->ctx, !unfit, SPS_EUNFIT, "values of some process are not "
                "suitable for single precision");
    *op_p = op;
    return SPS_OK;

fail:
    sps_operator_destroy(&op);
    return st;
}

void spsi_ranks_destroy(sps_context *ctx, sps_ranks **ranks_p)
{
    sps_ranks *r = *ranks_p;

    if (!r) return;
    sps_operator_destroy(&r->interior);
    sps_operator_destroy(&r->boundary);
    sps_operator_destroy(&r->own);
    *ranks_p = NULL;
    if (r->shared) {
        spsi_free(ctx, r);
        return;
    }
    sps_csr_destroy(ctx, &r->inner);
    sps_csr_destroy(ctx, &r->edge);
    sps_csr_destroy(ctx, &r->diagonal);
    sps_block_destroy(&r->packed);
    sps_block_destroy(&r->operand);
    for (int i = 0; i < 4; i++) sps_block_destroy(&r->result[i]);
    displace(ctx, r->row, r->rows, r->at.row);
    displace(ctx, r->touch, r->touched, r->at.touch);
    if (r->halo && r->halo->send)
        displace(ctx, r->halo->send, sent(r), r->at.send);
    spsi_free(ctx, r->row);
    spsi_free(ctx, r->touch);
    spsi_halo_destroy(&r->halo);
    spsi_free(ctx, r);
}

/* ----------------------------------------------------------------- own rows */

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
    const int64_t b = edges_before(r, row);

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
    int64_t b = edges_before(r, first);
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
    sps_status st = SPS_OK;

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

    split_all(r, split_values, val);
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
