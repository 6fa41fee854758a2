/* SPDX-License-Identifier: BSD-3-Clause */
/* order_morton.c - unknowns along Morton's curve (A computer oriented geodetic
 * data base, IBM, 1966): nodes sorted by the interleaved bits of their
 * coordinates, highest first, so that each cell of a recursively halved box is
 * contiguous in memory.  Needs no graph: n log n comparisons of 16 bytes. */
#include <math.h>
#include <stdlib.h>

#include "matrix/order.h"

sps_status spsi_morton_box(sps_context *ctx, const double *x, int64_t m, int d,
                           sps_box *box)
{
    sps_status st = SPS_OK;

    for (int a = 0; a < d; a++) {
        box->low[a] = box->high[a] = m > 0 ? x[a] : 0;
        for (int64_t i = 0; i < m; i++) {
            SPS_REQUIRE(ctx, fabs(x[i * d + a]) < 1e300, SPS_EINVAL,
                        "coordinate %d of node %lld is not finite, or too "
                        "large", a + 1, (long long)i + 1);
            box->low[a] = fmin(box->low[a], x[i * d + a]);
            box->high[a] = fmax(box->high[a], x[i * d + a]);
        }
    }
fail:
    return st;
}

/* Cells are cubes, 2^21 (d = 3) or 2^31 of them along the longest edge of the
 * box. */
uint64_t spsi_morton_key(const sps_box *box, const double *x, int d)
{
    const int bits = d == 3 ? 21 : 31;
    const double cells = (double)(1 << (bits - 1)) * 2 - 1;
    uint64_t key = 0, cell[3] = { 0 };
    double edge = 0;

    for (int a = 0; a < d; a++) edge = fmax(edge, box->high[a] - box->low[a]);
    for (int a = 0; a < d && edge > 0; a++)
        cell[a] = (uint64_t)((x[a] - box->low[a]) / edge * cells);
    for (int b = bits - 1; b >= 0; b--)
        for (int a = 0; a < d; a++) key = key << 1 | (cell[a] >> b & 1);
    return key;
}

sps_status spsi_order_morton(sps_context *ctx, const double *x, int64_t m,
                             int d, int unknowns, int32_t *order)
{
    sps_keyed *nodes = NULL;
    sps_box box;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, m, &nodes));
    SPS_TRY(spsi_morton_box(ctx, x, m, d, &box));
    for (int64_t i = 0; i < m; i++)
        nodes[i] = (sps_keyed){
            (int64_t)spsi_morton_key(&box, x + i * d, d), i };
    qsort(nodes, (size_t)m, sizeof *nodes, spsi_by_key);
    for (int64_t i = 0; i < m; i++)
        for (int u = 0; u < unknowns; u++)
            order[i * unknowns + u] = (int32_t)(nodes[i].at * unknowns + u);
fail:
    spsi_free(ctx, nodes);
    return st;
}
