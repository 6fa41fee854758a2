/* SPDX-License-Identifier: BSD-3-Clause */
/* host_packed.c - 16-bit columns; see formats/packed.h. */
#include "core/team.h"
#include "matrix/windows.h"
#include "tests/formats/host_formats.h"

_Static_assert((int)SPS_PACKED_SEGMENTS == (int)SPS_NEAR_SEGMENTS &&
               (int)SPS_PACKED_REACH == (int)SPS_NEAR_REACH,
               "what the feature `near` foretells");

/* Computes segments that cover these columns and writes them to base; returns
 * their number, 0 if 8 do not suffice. */
static int cover(const int32_t *col, int64_t count, int32_t *base)
{
    const int used = spsi_columns_cover(col, count, SPS_PACKED_REACH,
                                        SPS_PACKED_SEGMENTS, base);

    if (used > SPS_PACKED_SEGMENTS) return 0;
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

typedef struct job {
    const sps_csr *A;
    const sps_row_blocks *b;
    sps_packed *p;
} job;

static void pack_windows(void *data, int64_t from, int64_t to)
{
    const job *j = data;
    sps_packed *p = j->p;
    int64_t escaped = 0;

    for (int64_t w = from; w < to; w++) {
        const int64_t first = j->b->block[w].first;
        const int64_t end = window_end(p, j->b, w);
        int32_t *base = p->base + SPS_PACKED_SEGMENTS * w;
        const int used = cover(j->A->col + first, end - first, base);

        for (int s = 0; used == 0 && s < SPS_PACKED_SEGMENTS; s++)
            base[s] = -1;
        for (int64_t e = first; used > 0 && e < end; e++)
            p->delta[e] = delta_of(j->A->col[e], base, used);
        escaped += used == 0;
    }
    spsi_team_add(&p->escaped, escaped);
}

sps_status spsi_packed_make(sps_context *ctx, const sps_csr *A,
                            const sps_row_blocks *b, sps_packed *p)
{
    const size_t bases = SPS_PACKED_SEGMENTS * (size_t)b->count;
    sps_status st;

    *p = (sps_packed){ .nnz = A->nnz, .windows = b->count };
    SPS_TRY(SPS_NEW(ctx, spsi_packed_room(A->nnz), &p->delta));
    SPS_TRY(SPS_NEW(ctx, (int64_t)bases, &p->base));
    spsi_team_run(ctx, p->windows, 4 * A->nnz, pack_windows,
                  &(job){ A, b, p });
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
