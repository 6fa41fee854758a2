/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks_divide.c - rows with columns of other processes are boundary rows, the
 * others interior rows (operator_ranks.h): finds both and the ghosts, and makes
 * their matrices. */
#include "operator/ranks_parts.h"

#include <stdlib.h>
#include <string.h>

#include "core/team.h"

/* ------------------------------------------------------------------- ghosts */

static bool foreign(const sps_ranks *r, int64_t column)
{
    return column < r->A->first || column >= r->A->first + r->cols;
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

/* Columns of other processes on one side: low .. high. */
typedef struct side {
    const sps_ranks *r;
    const int64_t *global;    /* the columns of the boundary rows */
    int64_t low, high;
    unsigned char *mark;      /* which of them there are */
} side;

/* The columns of a row ascend. */
static side side_of(const sps_ranks *r, const int64_t *global, bool before)
{
    const int64_t first = r->A->first, *at = r->edge->rowptr;
    side s = { .r = r, .global = global, .low = first + r->cols };

    if (before) s.low = s.high = first;
    else s.high = s.low - 1;
    for (int64_t b = 0; b < r->rows; b++) {
        if (at[b] == at[b + 1]) continue;
        if (before && global[at[b]] < s.low) s.low = global[at[b]];
        if (!before && global[at[b + 1] - 1] > s.high)
            s.high = global[at[b + 1] - 1];
    }
    if (before) s.high--;
    return s;
}

static void mark_side(void *data, int64_t first, int64_t last)
{
    const side *s = data;

    for (int64_t p = first; p < last; p++)
        if (s->global[p] >= s->low && s->global[p] <= s->high)
            __atomic_store_n(&s->mark[s->global[p] - s->low], 1,
                             __ATOMIC_RELAXED);
}

/* Appends the distinct columns of a side to ghost.  Those of neighbouring planes
 * of a grid are marked in their range, which takes a fraction of the time of
 * sorting. */
static sps_status add_ghosts(sps_context *ctx, side s, int64_t *ghost,
                             int64_t *ghosts)
{
    const int64_t nnz = s.r->edge->nnz;
    int64_t count = 0;
    sps_status st = SPS_OK;

    ghost += *ghosts;
    if (s.high - s.low < 8 * nnz) {
        SPS_TRY(SPS_NEW(ctx, s.high - s.low + 1, &s.mark));
        spsi_team_run(ctx, nnz, 2 * nnz, mark_side, &s);
        for (int64_t j = s.low; j <= s.high; j++)
            if (s.mark[j - s.low]) ghost[count++] = j;
    } else {
        for (int64_t p = 0; p < nnz; p++)
            if (s.global[p] >= s.low && s.global[p] <= s.high)
                ghost[count++] = s.global[p];
        count = sort_distinct(ghost, count);
    }
    *ghosts += count;
fail:
    spsi_free(ctx, s.mark);
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
    SPS_TRY(add_ghosts(ctx, side_of(r, global, true), *ghost_p, ghosts));
    SPS_TRY(add_ghosts(ctx, side_of(r, global, false), *ghost_p, ghosts));
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

typedef struct using {
    const sps_ranks *r;
    const int64_t *global;
    row_set *set;
} using;

static void mark_used(void *data, int64_t first, int64_t last)
{
    const using *u = data;

    for (int64_t p = first; p < last; p++) {
        const int64_t j = u->global[p] - u->r->A->first;
        uint64_t *word, bit;

        if (foreign(u->r, u->global[p])) continue;
        word = &u->set->word[j / 64];
        bit = UINT64_C(1) << j % 64;
        if (!(__atomic_load_n(word, __ATOMIC_RELAXED) & bit))
            __atomic_fetch_or(word, bit, __ATOMIC_RELAXED);
    }
}

/* Makes the set of own rows that boundary rows use. */
static sps_status find_used(sps_context *ctx, const sps_ranks *r,
                            const int64_t *global, row_set *s)
{
    sps_status st;

    s->words = r->cols / 64 + 1;
    SPS_TRY(SPS_NEW(ctx, s->words, &s->word));
    SPS_TRY(SPS_NEW(ctx, s->words + 1, &s->before));
    spsi_team_run(ctx, r->edge->nnz, 2 * r->edge->nnz, mark_used,
                  &(using){ r, global, s });
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
int64_t spsi_ranks_edges_before(const sps_ranks *r, int64_t i)
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
    int64_t b = spsi_ranks_edges_before(r, first);

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
    int64_t b = spsi_ranks_edges_before(r, first);

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

void spsi_ranks_split_values(sps_ranks *r, const void *val)
{
    split_all(r, split_values, val);
}

/* Makes the matrix of the interior rows, and the values of both. */
static sps_status split(sps_context *ctx, sps_ranks *r)
{
    const sps_csr *A = r->A;
    sps_status st;

    SPS_TRY(sps_csr_create(ctx, A->nrow, r->cols, A->nnz - r->edge->nnz,
                           A->dtype, &r->inner));
    split_all(r, split_pattern, NULL);
    spsi_ranks_split_values(r, A->val);
fail:
    return st;
}

sps_status spsi_ranks_divide(sps_context *ctx, sps_ranks *r,
                             const spsi_uses *u)
{
    int64_t *ghost = NULL, *global = NULL, ghosts = 0;
    sps_status st = SPS_OK;

    if (u->there) {
        SPS_TRY(spsi_ranks_take_there(ctx, r, u->there, &global));
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
