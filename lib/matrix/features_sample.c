/* SPDX-License-Identifier: BSD-3-Clause */
/* features_sample.c - windows of rows of a host csr (windows.h): distinct
 * columns by a hash set, blocks by merging the rows of a window. */
#include "matrix/features_sample.h"

enum { SLOTS = 1 << 16 };    /* slots of the hash set of columns, a power of
                                two */

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

static void sample_columns(const sps_csr *A, int t, column_set *set,
                           sps_sample_sums *sum)
{
    const sps_sample s = spsi_sample_of(A->nrow, A->nnz, t);

    for (int64_t w = 0; w < s.windows; w++) {
        const int64_t i = spsi_sample_row(&s, A->nrow, w);
        int64_t last = A->rowptr[i + s.rows];

        if (last - A->rowptr[i] > s.cut) last = A->rowptr[i] + s.cut;
        set->now++;
        for (int64_t p = A->rowptr[i]; p < last; p++)
            sum->columns += set_add(set, A->col[p]);
        sum->entries += last - A->rowptr[i];
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

/* Counts the entries of the block row i .. i+b-1 in full, aligned blocks, among
 * the blocks that begin in the first entries of row i. */
static int64_t block_row_full(const sps_csr *A, int64_t i, int b)
{
    int64_t at[8], full = 0, last = A->rowptr[i + 1];

    if (last - A->rowptr[i] > SPS_SAMPLE_ENTRIES)
        last = A->rowptr[i] + SPS_SAMPLE_ENTRIES;
    for (int r = 0; r < b; r++) at[r] = A->rowptr[i + r];
    while (at[0] < last) {
        const int32_t j = A->col[at[0]];
        bool whole = j % b == 0;

        for (int r = 0; whole && r < b; r++)
            whole = row_has(A, i + r, &at[r], j, b);
        full += whole ? b * b : 0;
        at[0] += whole ? b : 1;
    }
    return full;
}

/* Returns the block column of entry `at`, or INT32_MAX at the end of its row. */
static int32_t block_at(const sps_csr *A, int64_t at, int64_t end, int b)
{
    return at < end ? A->col[at] / b : INT32_MAX;
}

/* Counts the aligned blocks of b columns that have entries in rows i .. last -
 * 1, at most 32 of them, by merging the rows block by block. */
static int64_t count_blocks(const sps_csr *A, int64_t i, int64_t last, int b)
{
    const int rows = (int)(last - i);
    const int64_t *end = A->rowptr + i + 1;
    int64_t at[32], count = 0;
    int32_t block[32];

    for (int r = 0; r < rows; r++) {
        at[r] = A->rowptr[i + r];
        block[r] = block_at(A, at[r], end[r], b);
    }
    for (;; count++) {
        int32_t next = INT32_MAX;

        for (int r = 0; r < rows; r++)
            if (block[r] < next) next = block[r];
        if (next == INT32_MAX) return count;
        for (int r = 0; r < rows; r++)
            while (block[r] == next) block[r] = block_at(A, ++at[r], end[r], b);
    }
}

static void sample_blocks(const sps_csr *A, int t, sps_sample_sums *sum)
{
    const sps_sample s = spsi_sample_of(A->nrow, A->nnz, t);

    for (int64_t w = 0; w < s.windows; w++) {
        const int64_t i = spsi_sample_row(&s, A->nrow, w);
        const int64_t last = i + s.rows < A->nrow ? i + s.rows : A->nrow;
        const int64_t entries = A->rowptr[last] - A->rowptr[i];
        int64_t count;

        if (entries > s.skip) continue;
        count = count_blocks(A, i, last, s.b);
        sum->entries += entries;
        sum->columns += count;
        if (count > sum->most) sum->most = count;
        if (s.full) sum->full += block_row_full(A, i, s.b);
    }
}

sps_status spsi_features_sample(sps_context *ctx, const sps_csr *A,
                                sps_raw_features *raw)
{
    sps_status st;
    column_set *set = NULL;

    SPS_TRY(SPS_NEW(ctx, 1, &set));
    for (int t = 0; t < 2; t++) sample_columns(A, t, set, &raw->sample[t]);
    for (int t = 2; t < SPS_SAMPLE_WIDEST; t++)
        sample_blocks(A, t, &raw->sample[t]);
fail:
    spsi_free(ctx, set);
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

void spsi_features_sample_gpu(const sps_csr *A, sps_raw_features *raw)
{
    const int64_t tried = A->nrow < SPS_NEAR_WINDOWS ? A->nrow
                                                     : SPS_NEAR_WINDOWS;

    for (int64_t w = 0; w < tried; w++)
        raw->near += window_near(A, w * (A->nrow / tried));
    raw->inexact = count_inexact(A);
    for (int t = SPS_SAMPLE_WIDEST; t < SPS_SAMPLES; t++)
        if (spsi_sample_even(A->nrow, A->nnz, raw->longest,
                             8 << (t - SPS_SAMPLE_WIDEST)))
            sample_blocks(A, t, &raw->sample[t]);
}
