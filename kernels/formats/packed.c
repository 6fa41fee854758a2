/* SPDX-License-Identifier: BSD-3-Clause */
/* packed.c - covers the columns of windows by segments of columns; see
 * packed.h. */
#include "formats/packed.h"

int spsi_packed_cover(const int32_t *col, int64_t count, int32_t *base)
{
    int64_t from = 0, next;
    int used = 0;

    for (;; used++) {
        next = INT64_MAX;
        for (int64_t e = 0; e < count; e++)
            if (col[e] >= from && col[e] < next) next = col[e];
        if (next == INT64_MAX || used == SPS_PACKED_SEGMENTS) break;
        base[used] = (int32_t)next;
        from = next + SPS_PACKED_REACH;
    }
    if (next < INT64_MAX) return 0;
    for (int s = used; s < SPS_PACKED_SEGMENTS; s++)
        base[s] = used > 0 ? base[used - 1] : 0;
    return used > 0 ? used : 1; /* a window of empty rows */
}

double spsi_packed_share(const sps_csr *A, int64_t size)
{
    const int64_t tried = A->nrow < 64 ? A->nrow : 64;
    int64_t held = 0;

    for (int64_t w = 0; w < tried; w++) {
        const int64_t row = w * (A->nrow / tried), first = A->rowptr[row];
        int32_t base[SPS_PACKED_SEGMENTS];
        int64_t end = row;

        while (end < A->nrow && end - row < 256 &&
               A->rowptr[end + 1] - first <= size)
            end++;
        held += spsi_packed_cover(A->col + first, A->rowptr[end] - first,
                                  base) > 0;
    }
    return tried > 0 ? (double)held / (double)tried : 1.0;
}

bool spsi_packed_exact(const sps_csr *A)
{
    const double *value = A->val;
    const int64_t step = A->nnz / 4096 + 1;

    if (A->dtype != SPS_F64) return true;
    for (int64_t e = 0; e < A->nnz; e += step)
        if ((double)(float)value[e] != value[e]) return false;
    return true;
}
