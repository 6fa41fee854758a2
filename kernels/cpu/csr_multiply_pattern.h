/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_multiply_pattern.h - finds the columns of a row of C = A B, and where in
 * the row each of its products is added.
 *
 * The products of row i have a fixed order: entries k of row i of A ascending,
 * and for each of them the entries of row k of B.  A row is of one of two
 * kinds:
 *
 *   window  sums are in an array over the span of the row, first to last
 *           column: used where the span is short relative to the number of
 *           products, so that the array stays in cache and scanning it costs
 *           less than sorting;
 *   hash    all other rows: a hash table maps columns to slots; the list of
 *           columns is sorted; slot[t] is the place in the row of product t.
 *
 * A row often has the pattern of the row before it, with all columns shifted by
 * a constant: the rows of a node, and the points along a line of a grid.  Then
 * columns and slots are those of that row plus the constant, and neither table
 * nor sorting is needed.  This is recognised by comparing the patterns of A and
 * B, a linear pass. */
#ifndef SPS_CPU_CSR_MULTIPLY_PATTERN_H
#define SPS_CPU_CSR_MULTIPLY_PATTERN_H

#include "cpu/rows.h"
#include "matrix/csr.h"

/* Number of products of a row, and the columns between which they lie. */
typedef struct product_span {
    int64_t products;
    int32_t first, last;      /* first and last column; first > last if there is
                                 no product */
} product_span;

static inline product_span span_of(const sps_csr *A, const sps_csr *B,
                                   int64_t i)
{
    product_span s = { 0, INT32_MAX, -1 };

    for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
        const int64_t q = B->rowptr[A->col[p]], end = B->rowptr[A->col[p] + 1];

        if (q == end) continue;
        s.products += end - q;
        if (B->col[q] < s.first) s.first = B->col[q];
        if (B->col[end - 1] > s.last) s.last = B->col[end - 1];
    }
    return s;
}

/* Returns whether a row is of kind window.  A window is scanned in words of 8
 * columns, half a nanosecond each; with more than 2^22 columns it does not fit
 * the caches, and is used for dense rows only. */
static inline bool is_window(product_span s)
{
    const int64_t width = (int64_t)s.last - s.first + 1;

    return width <= 4 * s.products ||
           (width <= 16 * s.products && width <= (int64_t)1 << 22);
}

typedef struct product_entry {
    int32_t col, slot;        /* col is -1 if the entry is free */
} product_entry;

/* Work arrays of one thread, and the row that they describe. */
typedef struct product_room {
    product_entry *table;     /* hash table; length a power of two, at least
                                 twice the number of products */
    int32_t *slot, *rank;
    uint64_t *key, *spare;    /* keys for sorting the columns of a row: (column
                                 - first) << 32 | the column's number in the
                                 table; spare: scratch */
    unsigned char *mark;      /* window: 1 where the row has an entry */
    void *sum;                /* window: sums, -0 between rows */
    int64_t row, count;       /* row: the row described here, -2 before the
                                 first one; count: its number of entries */
    product_span span;
    bool window;
    const int32_t *col;       /* the columns of row `row` */
} product_room;

void spsi_cpu_sort_keys(uint64_t *key, uint64_t *spare, int64_t n);

/* --- the pattern of the row before, shifted */

/* Returns whether the columns of rows k of B, for all k in row i of A, are
 * those of row i - 1 shifted by one constant, *move. */
INLINE bool moved_rows(const sps_csr *A, const sps_csr *B, int64_t i,
                              int32_t *move)
{
    const int64_t length = A->rowptr[i + 1] - A->rowptr[i];
    const int32_t *k = A->col + A->rowptr[i], *h = k - length;
    bool known = false;

    for (int64_t p = 0; p < length; p++) {
        const int32_t *b = B->col + B->rowptr[k[p]];
        const int32_t *c = B->col + B->rowptr[h[p]];
        const int64_t n = B->rowptr[k[p] + 1] - B->rowptr[k[p]];
        int32_t differ = 0;

        if (B->rowptr[h[p] + 1] - B->rowptr[h[p]] != n) return false;
        if (n > 0 && !known) *move = b[0] - c[0];
        known = known || n > 0;
        for (int64_t q = 0; q < n; q++) differ |= (b[q] - c[q]) ^ *move;
        if (differ) return false;
    }
    return true;
}

/* Returns whether row i has the pattern of row i - 1, which w describes,
 * shifted by *move. */
INLINE bool repeats(const sps_csr *A, const sps_csr *B, int64_t i,
                           const product_room *w, int32_t *move)
{
    const int64_t length = A->rowptr[i + 1] - A->rowptr[i];
    const int32_t *k = A->col + A->rowptr[i], *h = k - length;

    *move = 0;
    if (w->row != i - 1 || A->rowptr[i] - A->rowptr[i - 1] != length ||
        length == 0)
        return false;
    for (int64_t p = 1; p < length; p++)
        if (k[p] - h[p] != k[0] - h[0]) return false;
    return k[0] == h[0] || moved_rows(A, B, i, move);
}

/* --- hash */

static inline uint32_t place_of(int32_t col, int bits)
{
    return (uint32_t)col * 2654435769u >> (32 - bits);
}

/* Returns the b for which a table of 2^b entries is at most half full with n
 * entries. */
static inline int table_bits(int64_t n)
{
    int bits = 3;

    while ((int64_t)1 << bits < 2 * n) bits++;
    return bits;
}

/* Returns the entry of col in the table, or the free entry where it belongs. */
INLINE product_entry *look_up(product_entry *table, int bits,
                                     int32_t col)
{
    const uint32_t mask = (1u << bits) - 1;
    uint32_t h = place_of(col, bits);

    while (table[h].col != col && table[h].col >= 0) h = (h + 1) & mask;
    return table + h;
}

/* Numbers the columns of row i by first appearance: slot[t] = number of the
 * column of product t; key contains the columns with these numbers.  Returns
 * how many columns there are. */
INLINE int64_t number_columns(const sps_csr *A, const sps_csr *B,
                                     int64_t i, product_room *w)
{
    const int bits = table_bits(w->span.products);
    int32_t count = 0;
    int64_t t = 0;

    memset(w->table, 0xff, sizeof *w->table << bits);
    for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
        const int64_t end = B->rowptr[A->col[p] + 1];

        for (int64_t q = B->rowptr[A->col[p]]; q < end; q++) {
            product_entry *e = look_up(w->table, bits, B->col[q]);

            if (e->col < 0) {
                *e = (product_entry){ B->col[q], count };
                w->key[count] = (uint64_t)(uint32_t)(B->col[q] - w->span.first)
                                << 32 | (uint32_t)count;
                count++;
            }
            w->slot[t++] = e->slot;
        }
    }
    return count;
}

INLINE void hash_pattern(const sps_csr *A, const sps_csr *B, int64_t i,
                                product_room *w, int32_t *col)
{
    w->count = number_columns(A, B, i, w);
    spsi_cpu_sort_keys(w->key, w->spare, w->count);
    for (int64_t s = 0; s < w->count; s++) {
        col[s] = w->span.first + (int32_t)(w->key[s] >> 32);
        w->rank[(uint32_t)w->key[s]] = (int32_t)s;
    }
    for (int64_t t = 0; t < w->span.products; t++)
        w->slot[t] = w->rank[w->slot[t]];
}

/* Sets slot for a row whose columns are known.  Returns false if a product has
 * another column. */
INLINE bool hash_known(const sps_csr *A, const sps_csr *B, int64_t i,
                              product_room *w)
{
    const int bits = table_bits(w->span.products);
    int64_t t = 0;

    if (w->count > w->span.products) return false;
    memset(w->table, 0xff, sizeof *w->table << bits);
    for (int64_t s = 0; s < w->count; s++)
        *look_up(w->table, bits, w->col[s]) =
            (product_entry){ w->col[s], (int32_t)s };
    for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
        const int64_t end = B->rowptr[A->col[p] + 1];

        for (int64_t q = B->rowptr[A->col[p]]; q < end; q++) {
            const product_entry *e = look_up(w->table, bits, B->col[q]);

            if (e->col < 0) return false;
            w->slot[t++] = e->slot;
        }
    }
    return true;
}

/* --- window */

INLINE void mark_products(const sps_csr *A, const sps_csr *B, int64_t i,
                                 const product_room *w)
{
    for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
        const int64_t end = B->rowptr[A->col[p] + 1];

        for (int64_t q = B->rowptr[A->col[p]]; q < end; q++)
            w->mark[B->col[q] - w->span.first] = 1;
    }
}

INLINE void window_pattern(const sps_csr *A, const sps_csr *B,
                                  int64_t i, product_room *w, int32_t *col)
{
    const int64_t width = (int64_t)w->span.last - w->span.first + 1;

    mark_products(A, B, i, w);
    w->count = 0;
    for (int64_t c = 0; c < width; c += 8) {
        uint64_t eight;

        memcpy(&eight, w->mark + c, sizeof eight);
        if (eight == 0) continue;
        memset(w->mark + c, 0, sizeof eight);
        for (int b = 0; b < 8; b++, eight >>= 8)
            if (eight & 1) col[w->count++] = w->span.first + (int32_t)(c + b);
    }
}

/* Returns whether the known columns of the row include those of all
 * products. */
INLINE bool window_known(const sps_csr *A, const sps_csr *B, int64_t i,
                                const product_room *w)
{
    const int64_t width = (int64_t)w->span.last - w->span.first + 1;
    int64_t marked = 0, known = 0;

    mark_products(A, B, i, w);
    for (int64_t s = 0; s < w->count; s++)
        known += w->col[s] >= w->span.first && w->col[s] <= w->span.last &&
                 w->mark[w->col[s] - w->span.first];
    for (int64_t c = 0; c < width; c++) marked += w->mark[c];
    memset(w->mark, 0, (size_t)width);
    return known == w->count && marked == known;
}

#endif
