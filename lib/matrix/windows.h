/* SPDX-License-Identifier: BSD-3-Clause */
/* windows.h - the integers from which features are computed.  They are sums or
 * maxima over rows and over sampled windows of rows, so that their order is
 * irrelevant and host and GPU get the same; the samples are defined here for
 * both.
 *
 * A window consists of consecutive rows and of the block columns of their
 * entries, b columns wide and aligned.  The host merges the rows; a GPU looks
 * at each entry by itself: it is the first of its block column if its left
 * neighbour is in another block column and no earlier row of the window has
 * this one. */
#ifndef SPS_WINDOWS_H
#define SPS_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

#include "matrix/traits.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __CUDACC__
#define SPS_BOTH static __host__ __device__ inline
#else
#define SPS_BOTH static inline
#endif

enum {
    SPS_SAMPLE_WINDOWS = 1024,     /* windows of a sample */
    SPS_SAMPLE_ENTRIES = 1 << 15,  /* largest number of entries examined in a
                                      window */
    SPS_SAMPLE_VALUES = 4096,      /* values of the sample for `exact` */
    SPS_NEAR_WINDOWS = 64,         /* windows of the sample for `near` */
    SPS_NEAR_ROWS = 256,           /* largest number of rows of such a window */
    SPS_NEAR_ENTRIES = 3520,       /* largest number of its entries */
    SPS_NEAR_SEGMENTS = 8,         /* a window is near if this number of
                                      segments covers its columns */
    SPS_NEAR_REACH = 8192,         /* number of columns of a segment */
    SPS_WIDEST_ENTRIES = 1 << 14   /* entries examined for each of `widest` */
};

/* Samples: 8 and 64 rows; blocks of b = 2 .. 8 at BLOCKS + b; blocks of 8, 16
 * and 32 at WIDEST .. WIDEST + 2. */
enum {
    SPS_SAMPLE_8, SPS_SAMPLE_64, SPS_SAMPLE_BLOCKS = 0, SPS_SAMPLE_WIDEST = 9,
    SPS_SAMPLES = 12
};

typedef struct sps_sample {
    int32_t rows, b;          /* rows of a window; width of a block column */
    int64_t windows, step;    /* if step > 0, window w begins at row w step;
                                 otherwise windows are spread evenly over the
                                 rows */
    int64_t cut;              /* largest number of entries examined in a
                                 window */
    int64_t skip;             /* windows of more entries are left out */
    bool full;                /* full blocks are counted as well */
} sps_sample;

/* Sums over the windows of a sample. */
typedef struct sps_sample_sums {
    int64_t entries;
    int64_t columns;          /* number of distinct block columns */
    int64_t full;             /* entries in full blocks of rows x b */
    int64_t most;             /* largest number of block columns of a window */
} sps_sample_sums;

typedef struct sps_raw_features {
    int64_t slack;            /* INT64_MAX - length of the shortest row */
    int64_t longest, bandwidth;
    int64_t lengths[SPS_LENGTH_BINS];
    uint64_t squares[2];      /* of the distances from the integer part of
                                 the mean length: their lower 32 bits are
                                 summed in [0], the others in [1] */
    int64_t padded32;
    sps_sample_sums sample[SPS_SAMPLES];
    int64_t near;             /* windows of the sample that are near */
    int64_t inexact;          /* values of the sample that are not exact in
                                 single precision */
} sps_raw_features;

/* Computes the features, except the hash, of a matrix of this size from these
 * integers. */
void spsi_features_finish(const sps_raw_features *raw, int64_t nrow,
                          int64_t ncol, int64_t nnz, sps_features *f);

SPS_BOTH int64_t spsi_sample_windows(int64_t nrow, int64_t rows)
{
    return nrow / rows < SPS_SAMPLE_WINDOWS ? nrow / rows : SPS_SAMPLE_WINDOWS;
}

SPS_BOTH sps_sample spsi_sample_of(int64_t nrow, int64_t nnz, int t)
{
    const int wide = t - SPS_SAMPLE_WIDEST;
    const int b = wide >= 0 ? 8 << wide : t < 2 ? 1 : t;
    const int64_t step = (nnz + SPS_WIDEST_ENTRIES - 1) / SPS_WIDEST_ENTRIES;
    const int64_t short_of = t == SPS_SAMPLE_8 ? 8 : 64;
    const int64_t rows = t >= 2 ? b : nrow < short_of ? nrow : short_of;
    sps_sample s;

    s.rows = (int32_t)rows;
    s.b = b;
    s.step = wide < 0 ? 0 : step * b;
    if (wide < 0) s.windows = rows > 0 ? spsi_sample_windows(nrow, rows) : 0;
    else s.windows = step > 0 ? ((nrow + b - 1) / b + step - 1) / step : 0;
    s.cut = t < 2 ? SPS_SAMPLE_ENTRIES : INT64_MAX;
    s.full = t >= 2 && wide < 0;
    s.skip = s.full ? (int64_t)SPS_SAMPLE_ENTRIES * b : INT64_MAX;
    return s;
}

/* Returns the first row of window w. */
SPS_BOTH int64_t spsi_sample_row(const sps_sample *s, int64_t nrow, int64_t w)
{
    const int64_t all = nrow / s->rows;

    if (s->step > 0) return w * s->step;
    return s->windows >= all ? w * s->rows
                             : (int64_t)((double)w * (double)all /
                                         (double)s->windows) * s->rows;
}

/* Returns whether the sample of `widest` is worth examining: beyond a certain
 * length of the longest row, its blocks are less than a tenth full in any
 * case. */
SPS_BOTH bool spsi_sample_even(int64_t nrow, int64_t nnz, int64_t longest,
                               int b)
{
    const int64_t rows = (nrow + b - 1) / b;

    return (double)((longest + b - 1) / b) <=
           10.0 * (double)nnz / ((double)rows * b * b) + 1.0;
}

/* Returns the offset of the first of the sorted columns col[first .. last-1]
 * that is >= j, or `last` if there is none. */
SPS_BOTH int64_t spsi_columns_from(const int32_t *col, int64_t first,
                                   int64_t last, int64_t j)
{
    while (first < last) {
        const int64_t middle = first + (last - first) / 2;

        if (col[middle] < j) first = middle + 1;
        else last = middle;
    }
    return first;
}

/* Returns whether columns j .. j+b-1 are all among the sorted ones; at `guess`,
 * which may be outside of them, j is expected. */
SPS_BOTH bool spsi_columns_have(const int32_t *col, int64_t first,
                                int64_t last, int64_t j, int b, int64_t guess)
{
    const bool there = guess >= first && guess < last && col[guess] == j;
    const int64_t at = there ? guess : spsi_columns_from(col, first, last, j);

    return at + b <= last && col[at] == j && col[at + b - 1] == j + b - 1;
}

/* Returns whether entry p, in row r of a window, is the first of its block
 * column in its row, which begins at begin[r], and in rows 0 .. r-1; row q ends
 * at end[q]. */
SPS_BOTH bool spsi_sample_first(const int32_t *col, const int64_t *begin,
                                const int64_t *end, int r, int64_t p, int b)
{
    const int32_t block = col[p] / b;
    const int64_t j = (int64_t)block * b;

    if (p > begin[r] && col[p - 1] / b == block) return false;
    for (int q = r - 1; q >= 0; q--) {
        int64_t at;

        if (begin[q] == end[q] || col[end[q] - 1] < j) continue;
        at = spsi_columns_from(col, begin[q], end[q], j);
        if (at < end[q] && col[at] < j + b) return false;
    }
    return true;
}

/* Returns whether entry p of the first row of a window of b rows begins a full,
 * aligned b x b block. */
SPS_BOTH bool spsi_sample_full(const int32_t *col, const int64_t *begin,
                               const int64_t *end, int64_t p, int b)
{
    const int32_t j = col[p];

    if (j % b != 0) return false;
    for (int q = 0; q < b; q++)
        if (!spsi_columns_have(col, begin[q], end[q], j, b,
                               begin[q] + p - begin[0]))
            return false;
    return true;
}

/* Finds segments of `reach` columns that cover these columns: the first begins
 * at the smallest column, the next at the smallest that is not covered yet.
 * Their beginnings are written to base.  Returns their number, or most + 1 if
 * `most` segments do not suffice. */
int spsi_columns_cover(const int32_t *col, int64_t count, int64_t reach,
                       int most, int32_t *base);

/* Finds the distinct distances d = block(col[p]) - block of the entries p of a
 * row with nearest <= d <= farthest, the first `most` of them.  Returns their
 * number. */
SPS_BOTH int spsi_row_leads(const int32_t *col, int64_t first, int64_t last,
                            int64_t block, int b, int64_t nearest,
                            int64_t farthest, int most, int64_t *lead)
{
    int64_t p = spsi_columns_from(col, first, last, (block + nearest) * b);
    int count = 0;

    for (; p < last && count < most; p++) {
        const int64_t d = col[p] / b - block;

        if (d > farthest) break;
        if (count == 0 || lead[count - 1] != d) lead[count++] = d;
    }
    return count;
}

#ifdef __cplusplus
}
#endif
#endif
