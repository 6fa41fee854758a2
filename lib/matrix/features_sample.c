/* SPDX-License-Identifier: BSD-3-Clause */
/* features_sample.c - windows of rows of a host csr (windows.h): distinct
 * columns by a hash set, blocks by merging the rows of a window. */
#include "matrix/features_sample.h"

/* A hash set of columns with at least twice as many slots as the entries of a
 * window.  A slot is occupied if its stamp is `now`, so that increasing `now`
 * clears the set. */
typedef struct column_set {
    int32_t *column;
    uint32_t *stamp, now, slots;
    int shift;                /* 32 - log2 of the number of slots */
} column_set;

static sps_status open_set(sps_context *ctx, int64_t nnz, column_set *s)
{
    const int64_t most = nnz < SPS_SAMPLE_ENTRIES ? nnz : SPS_SAMPLE_ENTRIES;
    sps_status st;

    s->slots = 64;
    for (s->shift = 26; s->slots < 2 * most; s->shift--) s->slots *= 2;
    SPS_TRY(SPS_NEW(ctx, s->slots, &s->column));
    SPS_TRY(SPS_NEW(ctx, s->slots, &s->stamp));
fail:
    return st;
}

static void close_set(sps_context *ctx, const column_set *s)
{
    spsi_free(ctx, s->column);
    spsi_free(ctx, s->stamp);
}

static bool set_add(column_set *s, int32_t j)
{
    uint32_t at = (uint32_t)j * UINT32_C(2654435769) >> s->shift;

    while (s->stamp[at] == s->now) {
        if (s->column[at] == j) return false;
        at = (at + 1) & (s->slots - 1);
    }
    s->stamp[at] = s->now;
    s->column[at] = j;
    return true;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Returns whether rows i .. last - 1 store all columns: what a window counts is
 * known then. */
static bool rows_full(const sps_csr *A, int64_t i, int64_t last)
{
    return A->rowptr[last] - A->rowptr[i] == (last - i) * A->ncol;
}

static void sample_columns(const sps_csr *A, int t, column_set *set,
                           sps_sample_sums *sum)
{
    const sps_sample s = spsi_sample_of(A->nrow, A->nnz, t);

    for (int64_t w = 0; w < s.windows; w++) {
        const int64_t i = spsi_sample_row(&s, A->nrow, w);
        int64_t last = A->rowptr[i + s.rows];

        const bool full = rows_full(A, i, i + s.rows);

        if (last - A->rowptr[i] > s.cut) last = A->rowptr[i] + s.cut;
        sum->entries += last - A->rowptr[i];
        if (full) {
            sum->columns += least(last - A->rowptr[i], A->ncol);
            continue;
        }
        set->now++;
        for (int64_t p = A->rowptr[i]; p < last; p++)
            sum->columns += set_add(set, A->col[p]);
    }
}

/* Returns whether row i stores columns j .. j+b-1.  *at is an offset in the row
 * and is advanced to the first column >= j. */
static bool row_has(const sps_csr *A, int64_t i, int64_t *at, int32_t j, int b)
{
    const int64_t last = A->rowptr[i + 1];

    while (*at < last && A->col[*at] < j) (*at)++;
    return *at + b <= last && A->col[*at] == j &&
           A->col[*at + b - 1] == j + b - 1;
}

/* Counts the entries of rows i .. i+b-1 that belong to full b x b blocks, which
 * begin at multiples of b.  Only blocks that begin in the first
 * SPS_SAMPLE_ENTRIES entries of row i are examined. */
static int64_t block_row_full(const sps_csr *A, int64_t i, int b)
{
    int64_t at[8], full = 0, last = A->rowptr[i + 1];

    if (rows_full(A, i, i + b))
        return b * b * least((least(A->ncol, SPS_SAMPLE_ENTRIES) + b - 1) / b,
                             A->ncol / b);
    if (last - A->rowptr[i] > SPS_SAMPLE_ENTRIES)
        last = A->rowptr[i] + SPS_SAMPLE_ENTRIES;
    for (int r = 0; r < b; r++) at[r] = A->rowptr[i + r];
    while (at[0] < last) {
        const int32_t j = A->col[at[0]];
        bool whole = row_has(A, i, &at[0], j, b) && j % b == 0;

        for (int r = 1; whole && r < b; r++)
            whole = row_has(A, i + r, &at[r], j, b);
        full += whole ? b * b : 0;
        at[0] += whole ? b : 1;
    }
    return full;
}

/* The block columns that were met: seen[j] is the number of the window that met
 * block column j last. */
typedef struct block_set {
    uint32_t *seen, now;
} block_set;

/* Counts the aligned blocks of b columns that have entries in rows i .. last -
 * 1. */
static int64_t count_blocks(const sps_csr *A, int64_t i, int64_t last, int b,
                            block_set *s)
{
    int64_t count = 0;

    if (rows_full(A, i, last)) return (A->ncol + b - 1) / b;
    s->now++;
    for (; i < last; i++) {
        int64_t end = 0;      /* first column after the block of the entry
                                 before */

        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
            int32_t block;

            if (A->col[p] < end) continue;
            block = A->col[p] / b;
            end = ((int64_t)block + 1) * b;
            count += s->seen[block] != s->now;
            s->seen[block] = s->now;
        }
    }
    return count;
}

static void sample_blocks(const sps_csr *A, int t, block_set *set,
                          sps_sample_sums *sum)
{
    const sps_sample s = spsi_sample_of(A->nrow, A->nnz, t);

    for (int64_t w = 0; w < s.windows; w++) {
        const int64_t i = spsi_sample_row(&s, A->nrow, w);
        const int64_t last = i + s.rows < A->nrow ? i + s.rows : A->nrow;
        const int64_t entries = A->rowptr[last] - A->rowptr[i];
        int64_t count;

        if (entries > s.skip) continue;
        count = count_blocks(A, i, last, s.b, set);
        sum->entries += entries;
        sum->columns += count;
        if (count > sum->most) sum->most = count;
        if (s.full) sum->full += block_row_full(A, i, s.b);
    }
}

static sps_status sample_windows(sps_context *ctx, const sps_csr *A,
                                 sps_raw_features *raw)
{
    column_set set = { 0 };
    sps_status st;

    SPS_TRY(open_set(ctx, A->nnz, &set));
    for (int t = 0; t < 2; t++) sample_columns(A, t, &set, &raw->sample[t]);
fail:
    close_set(ctx, &set);
    return st;
}

/* Samples first .. last - 1, of blocks. */
static sps_status sample_all_blocks(sps_context *ctx, const sps_csr *A,
                                    int first, int last, sps_raw_features *raw)
{
    block_set set = { 0 };
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, A->ncol / 2 + 1, &set.seen));
    for (int t = first; t < last; t++)
        if (t < SPS_SAMPLE_WIDEST ||
            spsi_sample_even(A->nrow, A->nnz, raw->longest,
                             8 << (t - SPS_SAMPLE_WIDEST)))
            sample_blocks(A, t, &set, &raw->sample[t]);
fail:
    spsi_free(ctx, set.seen);
    return st;
}

sps_status spsi_features_sample(sps_context *ctx, const sps_csr *A,
                                sps_raw_features *raw)
{
    sps_status st;

    SPS_TRY(sample_windows(ctx, A, raw));
    SPS_TRY(sample_all_blocks(ctx, A, 2, SPS_SAMPLE_WIDEST, raw));
fail:
    return st;
}

/* ----------------------------------------------------- for kernels of GPUs */

int spsi_columns_cover(const int32_t *col, int64_t count, int64_t reach,
                       int most, int32_t *base)
{
    int64_t from = 0;

    for (int used = 0;; used++) {
        int64_t next = INT64_MAX;

        for (int64_t e = 0; e < count; e++)
            if (col[e] >= from && col[e] < next) next = col[e];
        if (next == INT64_MAX || used == most)
            return next == INT64_MAX ? used : most + 1;
        base[used] = (int32_t)next;
        from = next + reach;
    }
}

static bool window_near(const sps_csr *A, int64_t row)
{
    const int64_t first = A->rowptr[row];
    int32_t base[SPS_NEAR_SEGMENTS];
    int64_t end = row;

    while (end < A->nrow && end - row < SPS_NEAR_ROWS &&
           A->rowptr[end + 1] - first <= SPS_NEAR_ENTRIES)
        end++;
    return spsi_columns_cover(A->col + first, A->rowptr[end] - first,
                              SPS_NEAR_REACH, SPS_NEAR_SEGMENTS, base) <=
           SPS_NEAR_SEGMENTS;
}

static int64_t count_inexact(const sps_csr *A)
{
    const double *value = A->val;
    const int64_t step = A->nnz / SPS_SAMPLE_VALUES + 1;
    int64_t count = 0;

    if (A->dtype != SPS_F64) return 0;
    for (int64_t e = 0; e < A->nnz; e += step)
        count += (double)(float)value[e] != value[e];
    return count;
}

sps_status spsi_features_sample_gpu(sps_context *ctx, const sps_csr *A,
                                    sps_raw_features *raw)
{
    const int64_t tried = A->nrow < SPS_NEAR_WINDOWS ? A->nrow
                                                     : SPS_NEAR_WINDOWS;

    for (int64_t w = 0; w < tried; w++)
        raw->near += window_near(A, w * (A->nrow / tried));
    raw->inexact = count_inexact(A);
    return sample_all_blocks(ctx, A, SPS_SAMPLE_WIDEST, SPS_SAMPLES, raw);
}
