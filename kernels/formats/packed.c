/* SPDX-License-Identifier: BSD-3-Clause */
/* packed.c - covers the columns of windows by segments; see packed.h. */
#include "kernels/formats/packed.h"

/* Segments over these columns, written to base; 0: they do not suffice. */
static int cover(const int32_t *col, int64_t count, int32_t *base)
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

static uint16_t delta_of(int32_t col, const int32_t *base, int used)
{
    int s = used - 1;

    while (base[s] > col) s--;
    return (uint16_t)(s << SPS_PACKED_BITS | (col - base[s]));
}

static int64_t window_end(const sps_packed *p, const sps_row_blocks *b,
                          int64_t w)
{
    return w + 1 < p->windows ? b->block[w + 1].first : p->nnz;
}

sps_status spsi_packed_make(sps_context *ctx, const sps_csr *A,
                            const sps_row_blocks *b, sps_packed *p)
{
    const size_t bases = SPS_PACKED_SEGMENTS * (size_t)b->count;
    int64_t escaped = 0;
    sps_status st;

    *p = (sps_packed){ .nnz = A->nnz, .windows = b->count };
    SPS_TRY(SPS_NEW(ctx, spsi_packed_room(A->nnz), &p->delta));
    SPS_TRY(SPS_NEW(ctx, (int64_t)bases, &p->base));
#pragma omp parallel for schedule(static) num_threads(ctx->threads) \
    reduction(+ : escaped)
    for (int64_t w = 0; w < p->windows; w++) {
        const int64_t first = b->block[w].first, end = window_end(p, b, w);
        int32_t *base = p->base + SPS_PACKED_SEGMENTS * w;
        const int used = cover(A->col + first, end - first, base);

        for (int s = 0; used == 0 && s < SPS_PACKED_SEGMENTS; s++)
            base[s] = -1;
        for (int64_t e = first; used > 0 && e < end; e++)
            p->delta[e] = delta_of(A->col[e], base, used);
        escaped += used == 0;
    }
    p->escaped = escaped;
    return SPS_OK;

fail:
    spsi_packed_free(ctx, p);
    return st;
}

void spsi_packed_expand(const sps_packed *p, const sps_row_blocks *b,
                        const int32_t *full, int32_t *col)
{
    for (int64_t w = 0; w < p->windows; w++) {
        const int32_t *base = p->base + SPS_PACKED_SEGMENTS * w;

        for (int64_t e = b->block[w].first; e < window_end(p, b, w); e++)
            col[e] = base[0] < 0 ? full[e]
                                 : base[p->delta[e] >> SPS_PACKED_BITS] +
                                   p->delta[e] % SPS_PACKED_REACH;
    }
}

void spsi_packed_free(sps_context *ctx, sps_packed *p)
{
    spsi_free(ctx, p->delta);
    spsi_free(ctx, p->base);
    *p = (sps_packed){ 0 };
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
        held += cover(A->col + first, A->rowptr[end] - first, base) > 0;
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
