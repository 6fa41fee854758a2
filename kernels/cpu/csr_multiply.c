/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_multiply.c - C = A B for sparse matrices on the host, row by row
 * (Gustavson, ACM TOMS 4, 1978), in one pass without a symbolic one.
 *
 * The number of products of a row is an upper bound of its length.  Rows are
 * processed in batches whose bounds fit a buffer about as large as the caches.
 * The threads make the rows in this buffer, each at the offset given by the
 * bounds, and then move them to C, which grows by an estimate from the rows
 * made so far. csr_multiply_pattern.h chooses how a row is accumulated,
 * csr_multiply_values.h describes the order of sums.
 *
 * Bytes: A and C once, B again whenever the caches have evicted it, the entries
 * of C twice more for the buffer.  The work arrays of a thread are as long as
 * the largest row of each kind. */
#include "core/deadline.h"
#include "core/owner.h"
#include "cpu/csr_multiply_pattern.h"
#include "cpu/known_rows.h"

#include <math.h>

/* -------------------------------------------------------------------- sort */

enum { FEW = 32, DIGITS = 4 };

static void insert_keys(uint64_t *key, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        const uint64_t moved = key[i];
        int64_t at = i;

        for (; at > 0 && key[at - 1] > moved; at--) key[at] = key[at - 1];
        key[at] = moved;
    }
}

static inline int digit_of(uint64_t key, int d)
{
    return (int)(key >> (32 + 8 * d) & 255);
}

static void count_digits(const uint64_t *key, int64_t n,
                         int64_t count[DIGITS][256])
{
    memset(count, 0, DIGITS * sizeof *count);
    for (int64_t i = 0; i < n; i++)
        for (int d = 0; d < DIGITS; d++) count[d][digit_of(key[i], d)]++;
}

/* Sorts the keys of a row of a product: by insertion where they are few, else
 * by a radix sort, least significant byte first, over those bytes of the upper
 * half that are not the same in all keys. */
void spsi_cpu_sort_keys(uint64_t *key, uint64_t *spare, int64_t n)
{
    int64_t count[DIGITS][256];
    uint64_t *from = key, *to = spare;

    if (n <= FEW) {
        insert_keys(key, n);
        return;
    }
    count_digits(key, n, count);
    for (int d = 0; d < DIGITS; d++) {
        int64_t at = 0;

        if (count[d][digit_of(key[0], d)] == n) continue;
        for (int b = 0; b < 256; b++) {
            const int64_t next = at + count[d][b];

            count[d][b] = at;
            at = next;
        }
        for (int64_t i = 0; i < n; i++)
            to[count[d][digit_of(from[i], d)]++] = from[i];
        uint64_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != key) memcpy(key, from, (size_t)n * sizeof *key);
}

/* ----------------------------------------------------------------- batches */

/* Number of products in a batch for each thread. */
#define BATCH ((int64_t)1 << 19)

typedef struct multiply_job {
    sps_owner own;           /* of the arrays that follow */
    const sps_csr *A, *B;
    sps_csr *C;
    int64_t room;            /* allocated length of C's arrays, in entries */
    int64_t *start;          /* nrow + 1 elements: sums of the bounds of the
                                rows before */
    int64_t most_hash, most_window;  /* largest bound of a row of kind hash,
                                        largest span of a row of kind window
                                        (csr_multiply_pattern.h); stored with
                                        negative sign, since spsi_team_least
                                        computes minima */
    int64_t row;             /* first row of the batch */
    int64_t bad;             /* first row whose columns are not those given in
                                C */
    int64_t *count;          /* number of entries of each row of the batch; NULL
                                if they are known */
    int32_t *col;            /* columns of the batch */
    void *val;               /* values of the batch */
    product_entry *table;    /* work arrays of product_room, those of all
                                threads one after the other */
    int32_t *slot, *rank;
    uint64_t *key, *spare;
    unsigned char *mark;
    char *sum;
} multiply_job;

static size_t value_size(const sps_csr *A)
{
    return A->dtype == SPS_F64 ? sizeof(double) : sizeof(float);
}

/* Lengths for one thread: of the hash table, and of the window, which is
 * rounded up to words of 8 columns. */
static int64_t table_length(const multiply_job *j)
{
    return j->most_hash ? (int64_t)1 << table_bits(-j->most_hash) : 0;
}

static int64_t window_length(const multiply_job *j)
{
    return (-j->most_window + 7) / 8 * 8;
}

static product_room room_of(const multiply_job *j)
{
    const int64_t self = spsi_team_self(), hash = -j->most_hash;
    const int64_t window = window_length(j);

    return (product_room){
        .table = j->table + self * table_length(j),
        .slot = j->slot + self * hash,
        .rank = j->rank + self * hash,
        .key = j->key + self * hash,
        .spare = j->spare + self * hash,
        .mark = j->mark + self * window,
        .sum = j->sum + (size_t)(self * window) * value_size(j->A),
        .row = -2,
    };
}

#define REAL double
#define FMA fma
#define NAME(verb) spsi_cpu_multiply_##verb##_f64
#define BODY(verb) spsi_cpu_multiply_##verb##_f64_of
#include "cpu/csr_multiply_values.h"
#define REAL float
#define FMA fmaf
#define NAME(verb) spsi_cpu_multiply_##verb##_f32
#define BODY(verb) spsi_cpu_multiply_##verb##_f32_of
#include "cpu/csr_multiply_values.h"

/* --- bounds */

static void measure_rows(void *data, int64_t first, int64_t last)
{
    multiply_job *j = data;
    int64_t hash = 0, window = 0;

    for (int64_t i = first; i < last; i++) {
        const product_span s = span_of(j->A, j->B, i);
        const int64_t width = s.products ? (int64_t)s.last - s.first + 1 : 0;

        if (j->start) j->start[i + 1] = s.products < width ? s.products : width;
        if (is_window(s) && width > window) window = width;
        if (!is_window(s) && s.products > hash) hash = s.products;
    }
    spsi_team_least(&j->most_hash, -hash);
    spsi_team_least(&j->most_window, -window);
}

static sps_status open_work(sps_context *ctx, multiply_job *j)
{
    const int64_t threads = ctx->threads, size = (int64_t)value_size(j->A);
    sps_status st;

    spsi_team_run(ctx, j->A->nrow, 3 * j->A->nnz + j->A->nrow, measure_rows, j);
    SPS_TRY(SPS_OWN(&j->own, threads * table_length(j), &j->table));
    SPS_TRY(SPS_OWN(&j->own, threads * -j->most_hash, &j->slot));
    SPS_TRY(SPS_OWN(&j->own, threads * -j->most_hash, &j->rank));
    SPS_TRY(SPS_OWN(&j->own, threads * -j->most_hash, &j->key));
    SPS_TRY(SPS_OWN(&j->own, threads * -j->most_hash, &j->spare));
    SPS_TRY(SPS_OWN(&j->own, threads * window_length(j), &j->mark));
    SPS_TRY(SPS_OWN(&j->own, threads * window_length(j) * size, &j->sum));
    for (int64_t s = 0; s < threads * window_length(j); s++)
        if (size == sizeof(double))
            ((double *)(void *)j->sum)[s] = -0.0;
        else
            ((float *)(void *)j->sum)[s] = -0.0f;
fail:
    return st;
}

/* --- batches */

/* Returns the row after the last one of the batch that begins with j->row. */
static int64_t batch_end(const multiply_job *j, int64_t limit)
{
    const int64_t n = j->A->nrow;
    int64_t end = j->row + 1;

    while (end < n && j->start[end + 1] - j->start[j->row] <= limit) end++;
    return end;
}

static sps_status open_batch(multiply_job *j, int64_t limit)
{
    int64_t longest = 0;
    sps_status st;

    for (j->row = 0; j->row < j->A->nrow; j->row = batch_end(j, limit)) {
        const int64_t end = batch_end(j, limit);
        const int64_t bound = j->start[end] - j->start[j->row];

        if (bound > longest) longest = bound;
    }
    SPS_TRY(SPS_OWN(&j->own, longest, &j->col));
    SPS_TRY(spsi_own_array(&j->own, longest, value_size(j->A), &j->val));
    spsi_huge_pages(j->col, (size_t)longest * sizeof *j->col);
    spsi_huge_pages(j->val, (size_t)longest * value_size(j->A));
fail:
    return st;
}

/* Enlarges C for `need` entries when the rows before `end` are done.  If the
 * bounds of these rows sum to at least a sixteenth of those of all rows, C gets
 * the number of entries that all rows are expected to have; before that, half
 * as many again as needed. */
static sps_status make_room(sps_context *ctx, multiply_job *j, int64_t end,
                            int64_t need)
{
    const int64_t done = j->start[end], total = j->start[j->A->nrow];
    const int64_t most = total - done + need;
    double more = 1.5 * (double)need;
    sps_csr *C = j->C;
    sps_status st;

    if (need <= j->room) return SPS_OK;
    if (done >= total / 16)
        more = 1.02 * (double)need * ((double)total / (double)done) + 1e4;
    j->room = more < (double)most ? (int64_t)more : most;
    st = spsi_resize(ctx, (size_t)j->room * sizeof *C->col, (void **)&C->col);
    if (st == SPS_OK)
        st = spsi_resize(ctx, (size_t)j->room * value_size(C), &C->val);
    if (st == SPS_ENOMEM)
        return spsi_fail(ctx, st, "the product of a %lld x %lld matrix by a "
                         "%lld x %lld matrix: there is no memory for about "
                         "%lld entries, %.3g GB", (long long)j->A->nrow,
                         (long long)j->A->ncol, (long long)j->B->nrow,
                         (long long)j->B->ncol, (long long)j->room,
                         1e-9 * (double)j->room *
                             (double)(sizeof *C->col + value_size(C)));
    if (st != SPS_OK) return st;
    spsi_huge_pages(C->col, (size_t)j->room * sizeof *C->col);
    spsi_huge_pages(C->val, (size_t)j->room * value_size(C));
    return SPS_OK;
}

static void store_rows(void *data, int64_t first, int64_t last)
{
    const multiply_job *j = data;
    const size_t size = value_size(j->C);

    for (int64_t r = first; r < last; r++) {
        const int64_t i = j->row + r, to = j->C->rowptr[i];
        const int64_t from = j->start[i] - j->start[j->row];
        const size_t n = (size_t)j->count[i];

        if (n == 0) continue;
        memcpy(j->C->col + to, j->col + from, n * sizeof *j->col);
        memcpy((char *)j->C->val + (size_t)to * size,
               (char *)j->val + (size_t)from * size, n * size);
    }
}

static sps_status run_batch(sps_context *ctx, multiply_job *j, int64_t end)
{
    int64_t *rowptr = j->C->rowptr;
    const int64_t bound = j->start[end] - j->start[j->row];
    sps_status st;

    spsi_team_run(ctx, end - j->row, 4 * bound + end - j->row,
                  j->A->dtype == SPS_F64 ? spsi_cpu_multiply_make_rows_f64
                                         : spsi_cpu_multiply_make_rows_f32, j);
    for (int64_t i = j->row; i < end; i++)
        rowptr[i + 1] = rowptr[i] + j->count[i];
    SPS_TRY(make_room(ctx, j, end, rowptr[end]));
    spsi_team_run(ctx, end - j->row, rowptr[end] - rowptr[j->row], store_rows,
                  j);
    SPS_TRY(spsi_check_deadline(ctx, "the product of two matrices"));
fail:
    return st;
}

/* Releases the unused part of C's arrays. */
static sps_status finish(sps_context *ctx, multiply_job *j)
{
    sps_csr *C = j->C;
    sps_status st;

    C->nnz = C->rowptr[C->nrow];
    C->props = SPS_SORTED;
    SPS_TRY(spsi_resize(ctx, (size_t)C->nnz * sizeof *C->col,
                        (void **)&C->col));
    SPS_TRY(spsi_resize(ctx, (size_t)C->nnz * value_size(C), &C->val));
fail:
    return st;
}

sps_status spsi_cpu_csr_multiply(sps_context *ctx, const sps_csr *A,
                                 const sps_csr *B, sps_csr **C_p)
{
    const int64_t limit = BATCH * ctx->threads;
    multiply_job j = { .own = { .ctx = ctx }, .A = A, .B = B };
    sps_status st;

    SPS_TRY(SPS_OWN(&j.own, A->nrow + 1, &j.start));
    SPS_TRY(SPS_OWN(&j.own, A->nrow, &j.count));
    SPS_TRY(sps_csr_create(ctx, A->nrow, B->ncol, 0, A->dtype, &j.C));
    SPS_TRY(open_work(ctx, &j));
    for (int64_t i = 0; i < A->nrow; i++) j.start[i + 1] += j.start[i];
    SPS_TRY(open_batch(&j, limit));
    for (j.row = 0; j.row < A->nrow;) {
        const int64_t end = batch_end(&j, limit);

        SPS_TRY(run_batch(ctx, &j, end));
        j.row = end;
    }
    SPS_TRY(finish(ctx, &j));
    *C_p = j.C;
    j.C = NULL;
fail:
    spsi_owner_release(&j.own);
    sps_csr_destroy(ctx, &j.C);
    return st;
}

sps_status spsi_cpu_csr_multiply_values(sps_context *ctx, const sps_csr *A,
                                        const sps_csr *B, sps_csr *C)
{
    multiply_job j = { .own = { .ctx = ctx }, .A = A, .B = B, .C = C,
                       .bad = A->nrow };
    sps_status st;

    SPS_TRY(open_work(ctx, &j));
    SPS_TRY(spsi_team_run_in_time(
        ctx, A->nrow, 4 * C->nnz + A->nnz,
        A->dtype == SPS_F64 ? spsi_cpu_multiply_renew_rows_f64
                            : spsi_cpu_multiply_renew_rows_f32,
        &j, "the product of two matrices"));
    SPS_REQUIRE(ctx, j.bad == A->nrow, SPS_EMATRIX,
                "row %lld (counted from 0) of the product has other columns "
                "than before: compute the product again, with a new pattern",
                (long long)j.bad);
fail:
    spsi_owner_release(&j.own);
    return st;
}

/* ------------------------------------------- rows whose lengths are known */

sps_status spsi_cpu_known_rows_room(sps_context *ctx, sps_csr *C)
{
    sps_status st;

    spsi_free(ctx, C->col);
    spsi_free(ctx, C->val);
    C->col = NULL;
    C->val = NULL;
    SPS_TRY(spsi_new_raw(ctx, (size_t)C->nnz * sizeof *C->col,
                         (void **)&C->col));
    SPS_TRY(spsi_new_raw(ctx, (size_t)C->nnz * value_size(C), &C->val));
    spsi_huge_pages(C->col, (size_t)C->nnz * sizeof *C->col);
    spsi_huge_pages(C->val, (size_t)C->nnz * value_size(C));
fail:
    return st;
}

sps_status spsi_cpu_known_rows_open(sps_context *ctx, const sps_csr *A,
                                    const sps_csr *B, const sps_csr *C,
                                    sps_known_rows **rows_p)
{
    multiply_job *j;
    sps_status st;

    SPS_TRY_RETURN(SPS_NEW(ctx, 1, &j));
    *j = (multiply_job){ .own = { .ctx = ctx }, .A = A, .B = B };
    st = open_work(ctx, j);
    j->start = C->rowptr;
    j->col = C->col;
    j->val = C->val;
    *rows_p = j;
    if (st != SPS_OK) spsi_cpu_known_rows_close(rows_p);
    return st;
}

void spsi_cpu_known_rows_make(sps_known_rows *rows, int64_t first, int64_t last)
{
    if (rows->A->dtype == SPS_F64)
        spsi_cpu_multiply_make_rows_f64(rows, first, last);
    else
        spsi_cpu_multiply_make_rows_f32(rows, first, last);
}

void spsi_cpu_known_rows_close(sps_known_rows **rows_p)
{
    sps_known_rows *rows = *rows_p;

    if (!rows) return;
    spsi_owner_release(&rows->own);
    spsi_free(rows->own.ctx, rows);
    *rows_p = NULL;
}
