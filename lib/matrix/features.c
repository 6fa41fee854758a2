/* SPDX-License-Identifier: BSD-3-Clause */
/* features.c - measures the features of a matrix for the cost models of
 * kernels.
 *
 * Row lengths from the offsets and bandwidth from the ends of the sorted rows
 * (one read of the offsets and one cache line of the columns of each row);
 * reuse of columns and full blocks on a sample of windows spread over the rows.
 * A hash of offsets and columns (one read of the pattern) on request.  Every
 * number is independent of the number of threads: sums of fixed chunks in
 * order, and a commutative sum of chunk hashes. */
#include <math.h>
#include <string.h>

#include "core/team.h"
#include "matrix/traits.h"

enum {
    WINDOWS = 1024,          /* of the sample */
    ENTRIES = 1 << 15,       /* examined in one window, at most */
    SLOTS = 1 << 16,         /* of the hash set of columns, a power of two */
    CHUNK = 1 << 14          /* rows, or words of the hash, of one chunk */
};

/* Partial results of a chunk of rows. */
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

typedef struct measure_job {
    const sps_csr *A;
    double mean;
    row_sums *sum;           /* of each chunk */
} measure_job;

static void measure_chunks(void *data, int64_t first, int64_t last)
{
    const measure_job *j = data;
    const int64_t nrow = j->A->nrow;

    for (int64_t c = first; c < last; c++)
        measure_chunk(j->A, j->mean, c * CHUNK,
                      (c + 1) * CHUNK < nrow ? (c + 1) * CHUNK : nrow,
                      &j->sum[c]);
}

/* Lengths and bandwidth, by chunks of rows in parallel, then combined in
 * order. */
static sps_status measure_rows(sps_context *ctx, const sps_csr *A,
                               sps_features *f)
{
    const int64_t chunks = (A->nrow + CHUNK - 1) / CHUNK;
    const double mean = A->nrow > 0 ? (double)A->nnz / (double)A->nrow : 0.0;
    double squares = 0.0;
    row_sums *sum = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, chunks, &sum));
    spsi_team_run(ctx, chunks, 8 * A->nrow, measure_chunks,
                  &(measure_job){ A, mean, sum });
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

typedef struct hash_job {
    const int64_t *wide;
    const int32_t *narrow;
    int64_t count;
    uint64_t sum;
} hash_job;

static void hash_chunks(void *data, int64_t first, int64_t last)
{
    hash_job *j = data;

    for (int64_t c = first; c < last; c++) {
        const int64_t next = (c + 1) * CHUNK;
        const int64_t end = next < j->count ? next : j->count;
        uint64_t h = mix((uint64_t)c + 1);

        for (int64_t p = c * CHUNK; p < end; p++) {
            const uint64_t w = j->wide ? (uint64_t)j->wide[p]
                                       : (uint32_t)j->narrow[p];

            h = (h ^ w) * UINT64_C(0x9e3779b97f4a7c15);
            h ^= h >> 29;
        }
        __atomic_fetch_add(&j->sum, mix(h), __ATOMIC_RELAXED);
    }
}

/* Hash of count words of 4 or 8 bytes; chunks are hashed separately, with their
 * number mixed in, and summed. */
static uint64_t hash_array(sps_context *ctx, const int64_t *wide,
                           const int32_t *narrow, int64_t count)
{
    hash_job j = { wide, narrow, count, mix((uint64_t)count) };

    spsi_team_run(ctx, (count + CHUNK - 1) / CHUNK, 2 * count, hash_chunks,
                  &j);
    return j.sum;
}

uint64_t spsi_features_hash(sps_context *ctx, const sps_csr *A)
{
    uint64_t h = mix((uint64_t)A->nrow * 3 + mix((uint64_t)A->ncol));

    h = mix(h ^ hash_array(ctx, A->rowptr, NULL, A->nrow + 1));
    return mix(h + hash_array(ctx, NULL, A->col, A->nnz));
}

/* ---------------------------------------------------------------- windows */

/* A hash set of columns, cleared by increasing the stamp. */
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

/* First row of window w of `windows`, each of `rows` rows, which are spread
 * evenly over the matrix. */
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

/* (distinct columns) / (entries), summed over windows of `rows` rows; a matrix
 * with fewer rows is one window. */
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

/* Whether row i stores columns j .. j+b-1.  *at: offset in the row, which is
 * advanced to the first column >= j. */
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

/* The largest block size for which at least 90 % of the entries are in full
 * blocks. */
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

/* Number of aligned blocks of b columns with entries in the rows i .. i + b -
 * 1: a merge of the rows, block by block. */
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
