/* SPDX-License-Identifier: BSD-3-Clause */
/* row_parts.c - cuts a product into parts (row_parts.h).
 *
 * Rows of A are added to a part in steps.  All threads mark the rows of B that
 * a step names, and add up the sizes of those that the part did not have.  A
 * step that exceeds the room is undone; then it is halved, or ends the part.
 * Rounds number the steps: a part has the rows of B that were marked in its own
 * rounds. */
#include <string.h>

#include "core/team.h"
#include "formats/row_parts.h"

enum { STEPS = 64,             /* least number of steps for all rows */
       FEW = 3 };              /* parts after which it is known whether they
                                  pay */

static size_t value_size(const sps_csr *A)
{
    return A->dtype == SPS_F64 ? sizeof(double) : sizeof(float);
}

size_t spsi_row_parts_bytes(const sps_csr *B, int64_t rows, int64_t entries)
{
    return (size_t)(rows + 1) * sizeof(int64_t) +
           (size_t)entries * (sizeof(int32_t) + value_size(B));
}

static int64_t length(const sps_csr *A, int64_t i)
{
    return A->rowptr[i + 1] - A->rowptr[i];
}

/* ------------------------------------------------------------------- steps */

/* A step, and what it adds to a part. */
typedef struct step {
    const sps_row_parts *p;
    int64_t first;             /* row of A */
    int32_t since, round;      /* the first round of the part; this one */
    int64_t named, entries, products;
    int64_t low, above;        /* least column; -1 times the largest one */
} step;

static bool marked(const step *s, int32_t row)
{
    int32_t *mark = &s->p->mark[row];

    return __atomic_load_n(mark, __ATOMIC_RELAXED) >= s->since ||
           __atomic_exchange_n(mark, s->round, __ATOMIC_RELAXED) >= s->since;
}

static void mark_rows(void *data, int64_t first, int64_t last)
{
    step *s = data;
    const sps_csr *A = s->p->A, *B = s->p->B;
    int64_t named = 0, entries = 0, products = 0;

    for (int64_t i = s->first + first; i < s->first + last; i++) {
        if (length(A, i) == 0) continue;
        spsi_team_least(&s->low, A->col[A->rowptr[i]]);
        spsi_team_least(&s->above, -A->col[A->rowptr[i + 1] - 1]);
        for (int64_t q = A->rowptr[i]; q < A->rowptr[i + 1]; q++) {
            const bool first_time = !marked(s, A->col[q]);

            named += first_time;
            entries += first_time ? length(B, A->col[q]) : 0;
            products += length(B, A->col[q]);
        }
    }
    spsi_team_add(&s->named, named);
    spsi_team_add(&s->entries, entries);
    spsi_team_add(&s->products, products);
}

static void unmark_rows(void *data, int64_t first, int64_t last)
{
    const step *s = data;
    const sps_csr *A = s->p->A;

    for (int64_t q = A->rowptr[s->first + first];
         q < A->rowptr[s->first + last]; q++)
        if (__atomic_load_n(&s->p->mark[A->col[q]], __ATOMIC_RELAXED) ==
            s->round)
            __atomic_store_n(&s->p->mark[A->col[q]], 0, __ATOMIC_RELAXED);
}

/* Runs fn for rows of A. */
static void for_rows(sps_context *ctx, step *s, int64_t rows, spsi_team_fn *fn)
{
    const int64_t *ptr = s->p->A->rowptr + s->first;

    spsi_team_run(ctx, rows, rows + 4 * (ptr[rows] - ptr[0]), fn, s);
}

/* ------------------------------------------------------------------- parts */

static sps_status add_part(sps_context *ctx, sps_row_parts *p,
                           const sps_row_part *part)
{
    const int64_t room = 2 * p->part_room + 16;

    if (p->count > 0 && part->named < 0 && p->part[p->count - 1].named < 0) {
        p->part[p->count - 1].rows += part->rows;
        return SPS_OK;
    }
    if (p->count == p->part_room) {
        SPS_TRY_RETURN(spsi_resize(ctx, (size_t)room * sizeof *p->part,
                                   (void **)&p->part));
        p->part_room = room;
    }
    p->part[p->count++] = *part;
    return SPS_OK;
}

/* Takes all rows between the first and the last one, if they are not many more
 * than are named. */
static void fill_gaps(const sps_row_parts *p, sps_row_part *part)
{
    const int64_t *ptr = p->B->rowptr;
    const int64_t rows = part->high - part->low + 1;

    if (part->named <= 0) return;
    const int64_t all = ptr[part->high + 1] - ptr[part->low];
    const size_t bytes = spsi_row_parts_bytes(p->B, rows, all);

    part->run = bytes <= p->room &&
                bytes / 5 * 4 <= spsi_row_parts_bytes(p->B, part->named,
                                                      part->entries);
    if (!part->run) return;
    part->named = rows;
    part->entries = all;
}

/* Adds `rows` rows of A to a part, if there is room for the rows of B that they
 * name. */
static bool add_rows(sps_context *ctx, sps_row_parts *p, sps_row_part *part,
                     int64_t rows, int32_t since)
{
    step s = { .p = p, .first = part->first + part->rows, .since = since,
               .round = ++p->round, .low = part->low, .above = -part->high };

    for_rows(ctx, &s, rows, mark_rows);
    if (spsi_row_parts_bytes(p->B, part->named + s.named,
                             part->entries + s.entries) > p->room) {
        for_rows(ctx, &s, rows, unmark_rows);
        return false;
    }
    part->rows += rows;
    part->named += s.named;
    part->entries += s.entries;
    part->products += s.products;
    part->low = s.low;
    part->high = -s.above;
    return true;
}

/* Finds the part that begins with row part->first, with a first step of `rows`
 * rows of A.  The part ends where half a step that failed is less than an
 * eighth of it. */
static void find_part(sps_context *ctx, sps_row_parts *p, sps_row_part *part,
                      int64_t rows)
{
    const int64_t most = 1 + p->A->nrow / STEPS;
    const int32_t since = p->round + 1;
    bool failed = false;

    for (int64_t left; (left = p->A->nrow - part->first - part->rows) > 0;) {
        if (rows > left) rows = left;
        if (rows > most) rows = most;
        if (add_rows(ctx, p, part, rows, since)) {
            if (!failed) rows *= 2;
            continue;
        }
        failed = true;
        rows /= 2;
        if (8 * rows <= part->rows) break;
    }
    if (part->rows > 0) return;
    part->rows = 1;
    part->named = -1;
}

/* Finds no parts if they do not pay (`least`). */
static sps_status find_parts(sps_context *ctx, sps_row_parts *p, int least)
{
    int64_t rows = p->A->nrow, cost = 0, products = 0;

    for (int64_t i = 0; i < p->A->nrow;) {
        sps_row_part part = { .first = i, .low = INT32_MAX, .high = 0 };

        find_part(ctx, p, &part, rows);
        fill_gaps(p, &part);
        SPS_TRY_RETURN(add_part(ctx, p, &part));
        rows = 1 + part.rows / 4;
        i += part.rows;
        cost += part.run ? 0 : least * part.entries;
        products += part.products;
        if (products >= cost || p->count < FEW) continue;
        p->count = 0;
        break;
    }
    return SPS_OK;
}

/* ------------------------------------------------------------------ arrays */

/* Returns whether the rows of B have the same numbers in b. */
static bool from_first(const sps_row_part *part)
{
    return part->named <= 0 || (part->run && part->low == 0);
}

static sps_status take(const sps_row_parts *p, size_t bytes, void *p_p)
{
    return spsi_new_raw(p->ctx, bytes, (void **)p_p);
}

static sps_status open_arrays(sps_row_parts *p)
{
    const sps_csr *A = p->A;
    int64_t rows = 0, a = 0, b = 0;
    sps_status st;

    for (int64_t i = 0; i < p->count; i++) {
        const sps_row_part *q = &p->part[i];
        const int64_t n = A->rowptr[q->first + q->rows] - A->rowptr[q->first];

        if (from_first(q)) continue;
        if (q->named > rows) rows = q->named;
        if (n > a) a = n;
        if (!q->run && q->entries > b) b = q->entries;
    }
    SPS_TRY(take(p, (size_t)(rows + 1) * sizeof *p->offset, &p->offset));
    SPS_TRY(take(p, (size_t)a * sizeof *p->a_col, &p->a_col));
    SPS_TRY(take(p, (size_t)b * sizeof *p->b_col, &p->b_col));
    SPS_TRY(take(p, (size_t)b * value_size(p->B), &p->b_val));
    p->offset[0] = 0;
fail:
    return st;
}

sps_status spsi_row_parts_open(sps_context *ctx, const sps_csr *A,
                               const sps_csr *B, size_t room, int least,
                               sps_row_parts *p)
{
    const sps_row_part whole = { .rows = A->nrow, .high = B->nrow - 1,
                                 .named = B->nrow, .entries = B->nnz,
                                 .run = true };
    sps_status st;

    *p = (sps_row_parts){ .ctx = ctx, .A = A, .B = B, .room = room };
    if (spsi_row_parts_bytes(B, B->nrow, B->nnz) <= room) {
        SPS_TRY(add_part(ctx, p, &whole));
    } else {
        SPS_TRY(SPS_NEW(ctx, B->nrow, &p->mark));
        SPS_TRY(SPS_NEW(ctx, B->nrow, &p->place));
        SPS_TRY(find_parts(ctx, p, least));
    }
    SPS_TRY(open_arrays(p));
fail:
    return st;
}

void spsi_row_parts_close(sps_row_parts *p)
{
    void *const arrays[] = { p->part, p->mark, p->place, p->offset, p->a_col,
                             p->b_col, p->b_val };

    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        if (arrays[i]) spsi_free(p->ctx, arrays[i]);
    *p = (sps_row_parts){ 0 };
}

/* -------------------------------------------------------------------- make */

typedef struct making {
    sps_row_parts *p;
    const sps_row_part *part;
    const sps_csr *b;
    bool values;
    int32_t round;
} making;

/* Numbers the rows of B that were marked, and sets their offsets. */
static void number_rows(making *m)
{
    const sps_row_parts *p = m->p;
    int64_t at = 0;

    for (int64_t r = m->part->low; r <= m->part->high; r++) {
        if (p->mark[r] != m->round) continue;
        p->place[r] = (int32_t)at;
        p->offset[at + 1] = p->offset[at] + length(p->B, r);
        at++;
    }
}

static void copy_rows(void *data, int64_t first, int64_t last)
{
    const making *m = data;
    const sps_row_parts *p = m->p;
    const sps_csr *B = p->B;
    const size_t size = value_size(B);

    for (int64_t r = m->part->low + first; r < m->part->low + last; r++) {
        const size_t n = (size_t)length(B, r);
        int64_t to;

        if (p->mark[r] != m->round || n == 0) continue;
        to = p->offset[p->place[r]];
        memcpy(p->b_col + to, B->col + B->rowptr[r], n * sizeof *B->col);
        if (m->values)
            memcpy(p->b_val + (size_t)to * size,
                   (const char *)B->val + (size_t)B->rowptr[r] * size,
                   n * size);
    }
}

/* Sets columns of a, from those of A. */
static void number_columns(void *data, int64_t first, int64_t last)
{
    const making *m = data;
    const sps_row_parts *p = m->p;
    const int32_t *col = p->A->col + p->A->rowptr[m->part->first];
    const int32_t low = (int32_t)m->part->low;

    for (int64_t q = first; q < last; q++)
        p->a_col[q] = m->part->run ? col[q] - low : p->place[col[q]];
}

static void offsets_of_run(void *data, int64_t first, int64_t last)
{
    const making *m = data;
    const int64_t *ptr = m->p->B->rowptr + m->part->low;

    for (int64_t r = first; r < last; r++) m->p->offset[r] = ptr[r] - ptr[0];
}

static void make_run(sps_context *ctx, making *m, sps_csr *b)
{
    const sps_csr *B = m->p->B;
    const int64_t at = B->rowptr[m->part->low];

    if (from_first(m->part))
        b->rowptr = B->rowptr;
    else
        spsi_team_run(ctx, b->nrow + 1, b->nrow, offsets_of_run, m);
    b->col = B->col + at;
    b->val = (char *)B->val + (size_t)at * value_size(B);
}

static void make_chosen(sps_context *ctx, making *m, sps_csr *b)
{
    step s = { .p = m->p, .first = m->part->first,
               .since = m->p->round + 1, .round = m->p->round + 1 };

    m->round = ++m->p->round;
    for_rows(ctx, &s, m->part->rows, mark_rows);
    number_rows(m);
    spsi_team_run(ctx, m->part->high - m->part->low + 1,
                  m->part->entries + b->nrow, copy_rows, m);
    b->col = m->p->b_col;
    b->val = m->p->b_val;
}

void spsi_row_parts_make(sps_row_parts *p, int64_t i, bool values,
                         const int32_t **a_col, sps_csr *b)
{
    sps_context *ctx = p->ctx;
    const sps_row_part *part = &p->part[i];
    const int64_t *ptr = p->A->rowptr + part->first;
    making m = { .p = p, .part = part, .values = values };

    *b = *p->B;
    b->nrow = part->named;
    b->nnz = part->entries;
    b->rowptr = p->offset;
    if (part->run)
        make_run(ctx, &m, b);
    else if (part->named > 0)
        make_chosen(ctx, &m, b);
    *a_col = p->A->col + ptr[0];
    if (from_first(part)) return;
    *a_col = p->a_col;
    spsi_team_run(ctx, ptr[part->rows] - ptr[0], ptr[part->rows] - ptr[0],
                  number_columns, &m);
}
