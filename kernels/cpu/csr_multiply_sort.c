/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_multiply_sort.c - sorts the keys of a row of a product: by insertion
 * where they are few, else by a radix sort, least significant byte first, over
 * those bytes of the upper half that are not the same in all keys. */
#include "cpu/csr_multiply_pattern.h"

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
