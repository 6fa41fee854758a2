/* SPDX-License-Identifier: BSD-3-Clause */
/* features.c - measures what kernels may know of a matrix before they bid.
 *
 * Lengths from the offsets and bandwidth from the ends of the sorted rows (one
 * read of the offsets and a line of the columns of each row); reuse of columns
 * and full blocks on a sample of windows spread over the rows.  A hash over
 * offsets and columns (one read of the pattern) where somebody asks for it.
 * Every number is the same for any count of threads: sums of fixed chunks in
 * order, and a sum of chunk hashes that commutes. */
#include <math.h>
#include <string.h>

#include "planner.h"
#include "traits.h"

enum {
    WINDOWS = 1024,          /* of the sample */
    ENTRIES = 1 << 15,       /* looked at in one window, at most */
    SLOTS = 1 << 16,         /* of the set of columns, a power of two */
    CHUNK = 1 << 14          /* rows, or words of the hash, of one chunk */
};

/* What a chunk of rows adds. */
typedef struct row_sums {
    int64_t shortest, longest, widest, lengths[SPS_LENGTH_BINS];
    double squares;          /* of the distances from the mean length */
} row_sums;

static void measure_chunk(const sps_csr *A, double mean, int64_t first,
                          int64_t last, row_sums *sum)
{
    *sum = (row_sums){ .shortest = INT64_MAX };
    for (int64_t i = first; i < last; i++) {
        const int64_t p = A->rowptr[i], q = A->rowptr[i + 1], length = q - p;
        const double off = (double)length - mean;
        int bin = 0;

        while (bin < SPS_LENGTH_BINS - 1 && length >> bin) bin++;
        sum->lengths[bin]++;
        if (length < sum->shortest) sum->shortest = length;
        if (length > sum->longest) sum->longest = length;
        sum->squares += off * off;
        if (length == 0) continue;
        if (i - A->col[p] > sum->widest) sum->widest = i - A->col[p];
        if (A->col[q - 1] - i > sum->widest) sum->widest = A->col[q - 1] - i;
    }
}

static void add_chunk(const row_sums *sum, sps_features *f, double *squares)
{
    if (sum->shortest < f->min_length) f->min_length = sum->shortest;
    if (sum->longest > f->max_length) f->max_length = sum->longest;
    if (sum->widest > f->bandwidth) f->bandwidth = sum->widest;
    for (int b = 0; b < SPS_LENGTH_BINS; b++) f->lengths[b] += sum->lengths[b];
    *squares += sum->squares;
}

/* Lengths and bandwidth, chunks of rows side by side and then in order. */
static sps_status measure_rows(sps_context *ctx, const sps_csr *A,
                               sps_features *f)
{
    const int64_t chunks = (A->nrow + CHUNK - 1) / CHUNK;
    const double mean = A->nrow > 0 ? (double)A->nnz / (double)A->nrow : 0.0;
    double squares = 0.0;
    row_sums *sum = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, chunks, &sum));
#pragma omp parallel for schedule(static) num_threads(ctx->threads)           \
    if (chunks > 1)
    for (int64_t c = 0; c < chunks; c++)
        measure_chunk(A, mean, c * CHUNK, c + 1 < chunks ? (c + 1) * CHUNK
                                                         : A->nrow, &sum[c]);
    f->min_length = A->nrow > 0 ? INT64_MAX : 0;
    for (int64_t c = 0; c < chunks; c++) add_chunk(&sum[c], f, &squares);
    f->mean_length = mean;
    f->empty_rows = f->lengths[0];
    f->deviation = A->nrow > 0 ? sqrt(squares / (double)A->nrow) : 0.0;
fail:
    spsi_free(ctx, sum);
    return st;
}

/* ------------------------------------------------------------------- hash */

/* Finaliser of splitmix64 (Steele, Lea, Flood 2014): every bit of the result
 * depends on every bit of x. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Hash of count words of 4 or 8 bytes; chunks are hashed apart and summed
 * with their place mixed in. */
static uint64_t hash_array(const sps_context *ctx, const int64_t *wide,
                           const int32_t *narrow, int64_t count)
{
    const int64_t chunks = (count + CHUNK - 1) / CHUNK;
    uint64_t sum = mix((uint64_t)count);

#pragma omp parallel for schedule(static) num_threads(ctx->threads)           \
    reduction(+ : sum)
    for (int64_t c = 0; c < chunks; c++) {
        const int64_t last = (c + 1) * CHUNK < count ? (c + 1) * CHUNK : count;
        uint64_t h = mix((uint64_t)c + 1);

        for (int64_t p = c * CHUNK; p < last; p++) {
            const uint64_t w = wide ? (uint64_t)wide[p] : (uint32_t)narrow[p];

            h = (h ^ w) * UINT64_C(0x9e3779b97f4a7c15);
            h ^= h >> 29;
        }
        sum += mix(h);
    }
    return sum;
}

uint64_t spsi_features_hash(const sps_context *ctx, const sps_csr *A)
{
    uint64_t h = mix((uint64_t)A->nrow * 3 + mix((uint64_t)A->ncol));

    h = mix(h ^ hash_array(ctx, A->rowptr, NULL, A->nrow + 1));
    return mix(h + hash_array(ctx, NULL, A->col, A->nnz));
}

/* ---------------------------------------------------------------- windows */

/* A set of columns emptied by raising the stamp. */
typedef struct column_set {
    int32_t column[SLOTS];
    uint32_t stamp[SLOTS], now;
} column_set;

static bool set_add(column_set *s, int32_t j)
{
    uint32_t at = (uint32_t)j * UINT32_C(2654435769) >> 16;

    while (s->stamp[at] == s->now) {
        if (s->column[at] == j) return false;
        at = (at + 1) % SLOTS;
    }
    s->stamp[at] = s->now;
    s->column[at] = j;
    return true;
}

/* First row of window number w of size rows each, spread evenly. */
static int64_t window_row(int64_t nrow, int64_t rows, int64_t w,
                          int64_t windows)
{
    const int64_t all = nrow / rows;

    return windows >= all ? w * rows : (int64_t)((double)w *
           (double)all / (double)windows) * rows;
}

static int64_t window_count(int64_t nrow, int64_t rows)
{
    return nrow / rows < WINDOWS ? nrow / rows : WINDOWS;
}

/* Distinct columns over nonzeros, windows of so many rows; a matrix with
 * fewer rows is one window. */
static double measure_distinct(const sps_csr *A, int64_t rows, column_set *s)
{
    int64_t seen = 0, distinct = 0;
    int64_t windows;

    if (rows > A->nrow) rows = A->nrow;
    if (rows == 0) return 1.0;
    windows = window_count(A->nrow, rows);
    for (int64_t w = 0; w < windows; w++) {
        const int64_t i = window_row(A->nrow, rows, w, windows);
        int64_t last = A->rowptr[i + rows];

        if (last - A->rowptr[i] > ENTRIES) last = A->rowptr[i] + ENTRIES;
        s->now++;
        for (int64_t p = A->rowptr[i]; p < last; p++)
            distinct += set_add(s, A->col[p]);
        seen += last - A->rowptr[i];
    }
    return seen > 0 ? (double)distinct / (double)seen : 1.0;
}

/* Whether row i stores columns j .. j+b-1; *at is its cursor, moved on. */
static bool row_has(const sps_csr *A, int64_t i, int64_t *at, int32_t j, int b)
{
    const int64_t last = A->rowptr[i + 1];

    while (*at < last && A->col[*at] < j) (*at)++;
    return *at + b <= last && A->col[*at] == j &&
           A->col[*at + b - 1] == j + b - 1;
}

/* Entries of the block row i .. i+b-1 that lie in full, aligned blocks. */
static int64_t block_row_full(const sps_csr *A, int64_t i, int b)
{
    int64_t at[8], full = 0, looked = 0;

    for (int r = 0; r < b; r++) at[r] = A->rowptr[i + r];
    for (; at[0] < A->rowptr[i + 1] && looked < ENTRIES; looked++) {
        const int32_t j = A->col[at[0]];
        bool whole = j % b == 0;

        for (int r = 0; whole && r < b; r++)
            whole = row_has(A, i + r, &at[r], j, b);
        full += whole ? b * b : 0;
        at[0] += whole ? b : 1;
    }
    return full;
}

static double block_share(const sps_csr *A, int b)
{
    const int64_t windows = window_count(A->nrow, b);
    int64_t full = 0, seen = 0;

    for (int64_t w = 0; w < windows; w++) {
        const int64_t i = window_row(A->nrow, b, w, windows);

        if (A->rowptr[i + b] - A->rowptr[i] > (int64_t)ENTRIES * b) continue;
        full += block_row_full(A, i, b);
        seen += A->rowptr[i + b] - A->rowptr[i];
    }
    return seen > 0 ? (double)full / (double)seen : 0.0;
}

/* The widest block that nearly all entries fall into. */
static void measure_blocks(const sps_csr *A, sps_features *f)
{
    f->block = 1;
    f->block_fill = 1.0;
    for (int b = 8; b >= 2 && f->block == 1; b--) {
        const double share = block_share(A, b);

        if (share < 0.9) continue;
        f->block = b;
        f->block_fill = share;
    }
}

/* Aligned blocks of b columns in which the rows i .. i + b - 1 have entries: a
 * merge of the rows, block by block. */
static int64_t count_blocks(const sps_csr *A, int64_t i, int b)
{
    int64_t at[8], count = 0;

    for (int r = 0; r < b; r++) at[r] = A->rowptr[i + r];
    for (;; count++) {
        int32_t next = INT32_MAX;

        for (int r = 0; r < b; r++)
            if (at[r] < A->rowptr[i + r + 1] && A->col[at[r]] < next)
                next = A->col[at[r]];
        if (next == INT32_MAX) return count;
        next /= b;
        for (int r = 0; r < b; r++)
            while (at[r] < A->rowptr[i + r + 1] && A->col[at[r]] / b == next)
                at[r]++;
    }
}

static double measure_fill(const sps_csr *A, int b)
{
    const int64_t windows = window_count(A->nrow, b);
    int64_t entries = 0, blocks = 0;

    for (int64_t w = 0; w < windows; w++) {
        const int64_t i = window_row(A->nrow, b, w, windows);
        const int64_t length = A->rowptr[i + b] - A->rowptr[i];

        if (length > (int64_t)ENTRIES * b) continue;
        entries += length;
        blocks += count_blocks(A, i, b);
    }
    return blocks > 0 ? (double)entries / ((double)blocks * b * b) : 0.0;
}

sps_status spsi_features_measure(sps_context *ctx, const sps_csr *A,
                                 sps_features *f)
{
    sps_status st;
    column_set *s = NULL;

    memset(f, 0, sizeof *f);
    f->nrow = A->nrow;
    f->ncol = A->ncol;
    f->nnz = A->nnz;
    SPS_TRY(SPS_NEW(ctx, 1, &s));
    SPS_TRY(measure_rows(ctx, A, f));
    f->distinct8 = measure_distinct(A, 8, s);
    f->distinct64 = measure_distinct(A, 64, s);
    measure_blocks(A, f);
    for (int b = 2; b <= 8; b++) f->fill[b] = measure_fill(A, b);
fail:
    spsi_free(ctx, s);
    return st;
}
