/* SPDX-License-Identifier: BSD-3-Clause */
/* order_morton.c - unknowns along Morton's curve (A computer oriented geodetic
 * data base, IBM, 1966): nodes sorted by the interleaved bits of their
 * coordinates, highest first, so that each cell of a recursively halved box is
 * contiguous in memory.  Needs no graph: n log n comparisons of 16 bytes. */
#include <math.h>
#include <stdlib.h>

#include "matrix/order.h"

typedef struct node {
    uint64_t key;
    int64_t at;
} node;

/* Compares nodes by key; nodes with equal keys keep their order. */
static int by_key(const void *a, const void *b)
{
    const node *x = a, *y = b;

    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Finds corner and longest edge of the bounding box of m nodes in d
 * dimensions. */
static sps_status enclose(sps_context *ctx, const double *x, int64_t m, int d,
                          double *corner, double *edge)
{
    sps_status st = SPS_OK;

    *edge = 0;
    for (int a = 0; a < d; a++) {
        double last = x[a];

        corner[a] = x[a];
        for (int64_t i = 0; i < m; i++) {
            SPS_REQUIRE(ctx, fabs(x[i * d + a]) < 1e300, SPS_EINVAL,
                        "coordinate %d of node %lld is not finite, or too "
                        "large", a + 1, (long long)i + 1);
            corner[a] = fmin(corner[a], x[i * d + a]);
            last = fmax(last, x[i * d + a]);
        }
        *edge = fmax(*edge, last - corner[a]);
    }
fail:
    return st;
}

/* Returns the interleaved bits of the node's cell: cells are cubes, 2^21 (d =
 * 3) or 2^31 of them along the longest edge of the box. */
static uint64_t key_of(const double *x, int d, const double *corner,
                       double edge)
{
    const int bits = d == 3 ? 21 : 31;
    const double cells = (double)(1 << (bits - 1)) * 2 - 1;
    uint64_t key = 0, cell[3] = { 0 };

    for (int a = 0; a < d && edge > 0; a++)
        cell[a] = (uint64_t)((x[a] - corner[a]) / edge * cells);
    for (int b = bits - 1; b >= 0; b--)
        for (int a = 0; a < d; a++) key = key << 1 | (cell[a] >> b & 1);
    return key;
}

sps_status spsi_order_morton(sps_context *ctx, const double *x, int64_t m,
                             int d, int unknowns, int32_t *order)
{
    node *nodes = NULL;
    double corner[3], edge;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, m, &nodes));
    SPS_TRY(enclose(ctx, x, m, d, corner, &edge));
    for (int64_t i = 0; i < m; i++)
        nodes[i] = (node){ key_of(x + i * d, d, corner, edge), i };
    qsort(nodes, (size_t)m, sizeof *nodes, by_key);
    for (int64_t i = 0; i < m; i++)
        for (int u = 0; u < unknowns; u++)
            order[i * unknowns + u] = (int32_t)(nodes[i].at * unknowns + u);
fail:
    spsi_free(ctx, nodes);
    return st;
}
