/* SPDX-License-Identifier: BSD-3-Clause */
/* order_rcm.c - the graph of A + A', and the reverse Cuthill-McKee order
 * (1969): breadth-first search from a peripheral vertex (George and Liu, ACM
 * Trans. Math. Softw. 5, 1979), neighbours by ascending degree. */
#include <stdlib.h>
#include <string.h>

#include "matrix/order.h"

/* ------------------------------------------------------------------ graph */

/* Writes the columns of row i of A and T, without the diagonal and each once,
 * to `out` unless it is NULL; returns their number. */
static int64_t merge_row(const sps_csr *A, const sps_csr *T, int64_t i,
                         int32_t *out)
{
    int64_t p = A->rowptr[i], q = T->rowptr[i], count = 0;
    const int64_t a = A->rowptr[i + 1], t = T->rowptr[i + 1];

    while (p < a || q < t) {
        const int32_t x = p < a ? A->col[p] : INT32_MAX;
        const int32_t y = q < t ? T->col[q] : INT32_MAX;
        const int32_t j = x < y ? x : y;

        p += x == j;
        q += y == j;
        if (j == i) continue;
        if (out) out[count] = j;
        count++;
    }
    return count;
}

sps_status spsi_graph_create(sps_context *ctx, const sps_csr *A, sps_graph *g)
{
    sps_status st;
    sps_csr *T = NULL;

    *g = (sps_graph){ .n = A->nrow };
    SPS_TRY(spsi_csr_transpose(ctx, A, &T));
    SPS_TRY(SPS_NEW(ctx, g->n + 1, &g->start));
    for (int64_t i = 0; i < g->n; i++)
        g->start[i + 1] = g->start[i] + merge_row(A, T, i, NULL);
    SPS_TRY(SPS_NEW(ctx, g->start[g->n], &g->next));
    for (int64_t i = 0; i < g->n; i++)
        merge_row(A, T, i, g->next + g->start[i]);
fail:
    sps_csr_destroy(ctx, &T);
    if (st != SPS_OK) spsi_graph_clear(ctx, g);
    return st;
}

void spsi_graph_clear(sps_context *ctx, sps_graph *g)
{
    spsi_free(ctx, g->start);
    spsi_free(ctx, g->next);
    *g = (sps_graph){ 0 };
}

static int64_t degree(const sps_graph *g, int32_t i)
{
    return g->start[i + 1] - g->start[i];
}

/* ----------------------------------------------------------- breadth first */

typedef struct search {
    const sps_graph *g;
    int32_t *queue;           /* the order found */
    int32_t *seen;            /* stamp of the last search that reached i */
    int32_t *by_degree;       /* scratch: neighbours with their degrees */
    int32_t stamp;
} search;

/* Appends the unseen neighbours of i at queue[count]; returns the new count. */
static int64_t visit(search *s, int32_t i, int64_t count)
{
    const sps_graph *g = s->g;
    int64_t found = 0;

    for (int64_t p = g->start[i]; p < g->start[i + 1]; p++) {
        const int32_t j = g->next[p];

        if (s->seen[j] == s->stamp || s->seen[j] < 0) continue;
        s->seen[j] = s->stamp;
        s->by_degree[2 * found] = (int32_t)degree(g, j);
        s->by_degree[2 * found++ + 1] = j;
    }
    qsort(s->by_degree, (size_t)found, 2 * sizeof(int32_t), spsi_by_pair);
    for (int64_t t = 0; t < found; t++)
        s->queue[count + t] = s->by_degree[2 * t + 1];
    return count + found;
}

/* Stores the component of vertex i in queue[first ..], level by level; returns
 * its end.  *depth is the number of levels - 1, *last the first vertex of the
 * last level. */
static int64_t breadth_first(search *s, int32_t i, int64_t first,
                             int64_t *depth, int32_t *last)
{
    int64_t at = first, count = first + 1, level_end = first + 1;

    s->stamp++;
    s->queue[first] = i;
    s->seen[i] = s->stamp;
    *depth = 0;
    *last = i;
    while (at < count) {
        if (at == level_end) {
            ++*depth;
            *last = s->queue[at];      /* first of its level */
            level_end = count;
        }
        count = visit(s, s->queue[at++], count);
    }
    return count;
}

/* Finds a pseudo-peripheral vertex of the component of i: repeats the search
 * from a vertex of the last level while the number of levels grows, at most 8
 * times. */
static int32_t find_rim(search *s, int32_t i, int64_t first)
{
    int64_t depth, deeper;
    int32_t last, further;

    breadth_first(s, i, first, &depth, &last);
    for (int tries = 0; tries < 8; tries++) {
        breadth_first(s, last, first, &deeper, &further);
        i = last;
        if (deeper <= depth) break;
        depth = deeper;
        last = further;
    }
    return i;
}

sps_status spsi_order_rcm(sps_context *ctx, const sps_graph *g, int32_t *order)
{
    sps_status st;
    search s = { .g = g, .queue = order };
    int64_t first = 0, depth;
    int32_t last;

    SPS_TRY(SPS_NEW(ctx, g->n, &s.seen));
    SPS_TRY(SPS_NEW(ctx, 2 * g->n, &s.by_degree));
    for (int32_t i = 0; i < g->n; i++) {
        const int64_t begin = first;

        if (s.seen[i] < 0) continue;
        first = breadth_first(&s, find_rim(&s, i, first), first, &depth,
                              &last);
        for (int64_t t = begin; t < first; t++) s.seen[order[t]] = -1;
        s.stamp = 0;                   /* seen is 0 for all others */
        for (int64_t t = begin, u = first - 1; t < u; t++, u--) {
            const int32_t swap = order[t];

            order[t] = order[u];
            order[u] = swap;
        }
    }
fail:
    spsi_free(ctx, s.seen);
    spsi_free(ctx, s.by_degree);
    return st;
}
