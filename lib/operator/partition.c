/* SPDX-License-Identifier: BSD-3-Clause */
/* partition.c - see partition.h: nodes are sorted over the processes by key and
 * number.  Each process sorts its own; the cuts between processes are found by
 * bisection, at first of the keys, then of the numbers of nodes with the key of
 * the cut, with a sum of the nodes below all cuts in each step (at most 63 + 31
 * sums).  Then each node is sent to its process. */
#include "operator/partition.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/comm.h"
#include "matrix/order.h"
#include "operator/operator_ranks.h"
#include "halo/trade.h"

typedef struct node {
    sps_keyed super;          /* key and global old number */
    int64_t index;            /* its position where it was received */
} node;

/* ---------------------------------------------------------- sizes of nodes */

/* *rows = the rows of a node by the coordinates, by the option, or by the
 * pattern of the diagonal block, which is not kept. */
static sps_status rows_of_node(const sps_operator *op, const sps_options *o,
                               int *rows)
{
    const sps_block *c = o->coords;
    const sps_operator *own;
    sps_status st = SPS_OK;

    *rows = o->block_size;
    if (c) *rows = c->n > 0 && op->n % c->n == 0 ? (int)(op->n / c->n) : 0;
    if (c || o->block_size > 0) return st;
    SPS_TRY(spsi_ranks_own(op, &own));
    *rows = own->f.block;
    sps_operator_destroy(&op->ranks->own);
    sps_csr_destroy(op->ctx, &op->ranks->diagonal);
fail:
    return st;
}

/* Sets p->unknowns; without coordinates it is 1 where a node would be cut. */
static sps_status take_nodes(const sps_operator *op, const sps_options *o,
                             sps_partition *p)
{
    const sps_halo *h = op->ranks->halo;
    bool fits, same;
    int u;
    sps_status st;

    SPS_TRY(rows_of_node(op, o, &u));
    fits = u > 0 && h->first % u == 0 && h->n % u == 0;
    SPS_TRY(spsi_comm_same(op->ctx, fits ? u : -1 - spsi_comm_rank(op->ctx),
                           &same));
    same = same && fits;
    SPS_REQUIRE(op->ctx, same || !o->coords, SPS_ESHAPE, "coords has %lld "
                "nodes for %lld rows from %lld on: each process gives those "
                "of its own nodes, and begins and ends with a node",
                (long long)(o->coords ? o->coords->n : 0), (long long)h->n,
                (long long)h->first);
    p->unknowns = same ? u : 1;
    p->first = h->first / p->unknowns;
    p->nodes = h->n / p->unknowns;
    SPS_TRY(SPS_NEW(op->ctx, spsi_comm_size(op->ctx) + 1, &p->offset));
    for (int r = 0; r <= spsi_comm_size(op->ctx); r++)
        p->offset[r] = h->offset[r] / p->unknowns;
fail:
    return st;
}

/* -------------------------------------------------------------------- keys */

static sps_status morton_keys(const sps_operator *op, const sps_block *coords,
                              const sps_partition *p, uint64_t *key)
{
    sps_context *ctx = op->ctx;
    double *x = NULL;
    sps_box box;
    sps_status st = SPS_OK;
    bool same;
    int d;

    SPS_REQUIRE(ctx, coords && coords->ctx == ctx, SPS_EINVAL, "reorder morton "
                "needs the coordinates of the nodes: set coords, a block of "
                "the same context");
    d = coords->k;
    SPS_TRY(spsi_comm_same(ctx, d, &same));
    SPS_REQUIRE(ctx, d <= 3 && same, SPS_ESHAPE, "coords has %d coordinates "
                "for each node; at most 3 are possible, on all processes as "
                "many", d);
    SPS_TRY(SPS_NEW(ctx, p->nodes * d, &x));
    SPS_TRY(sps_block_get(coords, 0, d, x, d, SPS_ROW_MAJOR, SPS_HOST));
    SPS_TRY(spsi_morton_box(ctx, x, p->nodes, d, &box));
    SPS_TRY(spsi_comm_box(ctx, d, box.low, box.high));
    for (int64_t i = 0; i < p->nodes; i++)
        key[i] = spsi_morton_key(&box, x + i * d, d);
fail:
    spsi_free(ctx, x);
    return st;
}

/* -------------------------------------------------------------------- cuts */

/* Returns how many of the sorted own nodes are below (key, at). */
static int64_t below(const node *nodes, int64_t count, int64_t key, int64_t at)
{
    const sps_keyed wanted = { key, at };
    int64_t low = 0, high = count;

    while (low < high) {
        const int64_t middle = low + (high - low) / 2;

        if (spsi_by_key(&nodes[middle], &wanted) < 0) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* A cut between two processes: the nodes below (key, at) belong before it.  Of
 * the part that is bisected, low is not above the cut, and high is. */
typedef struct cut {
    int64_t key, low, high;
} cut;

/* Makes one step of the bisection of all cuts, of keys or, with `numbers`, of
 * the numbers of nodes. */
static sps_status bisect(const sps_partition *p, const node *nodes,
                         bool numbers, cut *c, double *sum)
{
    const int cuts = spsi_comm_size(p->ctx) - 1;
    sps_status st;

    for (int i = 0; i < cuts; i++) {
        const int64_t middle = c[i].low + (c[i].high - c[i].low) / 2;

        sum[i] = (double)below(nodes, p->nodes,
                               numbers ? c[i].key : middle,
                               numbers ? middle : 0);
    }
    SPS_TRY(spsi_reduce(p->ctx, sum, cuts));
    for (int i = 0; i < cuts; i++) {
        const int64_t middle = c[i].low + (c[i].high - c[i].low) / 2;

        if (sum[i] <= (double)p->offset[i + 1]) c[i].low = middle;
        else c[i].high = middle;
    }
fail:
    return st;
}

static sps_status bisect_all(const sps_partition *p, const node *nodes,
                             bool numbers, int64_t high, cut *c, double *sum)
{
    const int cuts = spsi_comm_size(p->ctx) - 1;
    sps_status st = SPS_OK;

    for (int i = 0; i < cuts; i++) {
        if (numbers) c[i].key = c[i].low;
        c[i].low = 0;
        c[i].high = high;
    }
    for (int64_t width = high; width > 1; width -= width / 2)
        SPS_TRY(bisect(p, nodes, numbers, c, sum));
fail:
    return st;
}

/* *high = a number above all keys. */
static sps_status highest_key(const sps_partition *p, const node *nodes,
                              int64_t *high)
{
    double most;
    int bits = 0;
    sps_status st;

    while (p->nodes > 0 && bits < 62 &&
           nodes[p->nodes - 1].super.key >> bits)
        bits++;
    most = bits;
    SPS_TRY(spsi_comm_largest(p->ctx, &most));
    *high = most < 62 ? INT64_C(1) << (int)most : INT64_MAX;
fail:
    return st;
}

/* Sets p->given_at: the own nodes, sorted, go to the processes in turn. */
static sps_status find_cuts(sps_partition *p, const node *nodes)
{
    const int size = spsi_comm_size(p->ctx);
    double *sum = NULL;
    cut *c = NULL;
    int64_t high;
    sps_status st;

    SPS_TRY(SPS_NEW(p->ctx, size, &sum));
    SPS_TRY(SPS_NEW(p->ctx, size, &c));
    SPS_TRY(SPS_NEW(p->ctx, size + 1, &p->given_at));
    SPS_TRY(highest_key(p, nodes, &high));
    SPS_TRY(bisect_all(p, nodes, false, high, c, sum));
    SPS_TRY(bisect_all(p, nodes, true, p->offset[size], c, sum));
    for (int r = 1; r < size; r++)
        p->given_at[r] = below(nodes, p->nodes, c[r - 1].key, c[r - 1].low);
    p->given_at[size] = p->nodes;
fail:
    spsi_free(p->ctx, sum);
    spsi_free(p->ctx, c);
    return st;
}

/* --------------------------------------------------------------- new order */

/* Receives the nodes of this process and sorts them. */
static sps_status take(sps_partition *p, const node *nodes)
{
    const int size = spsi_comm_size(p->ctx), rank = spsi_comm_rank(p->ctx);
    const int64_t count = p->offset[rank + 1] - p->offset[rank];
    node *got = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(p->ctx, size + 1, &p->taken_at));
    SPS_TRY(spsi_trade_counts(p->ctx, p->given_at, p->taken_at));
    SPS_REQUIRE(p->ctx, p->taken_at[size] == count, SPS_EBUG, "partition: "
                "%lld nodes for a process of %lld; please report it",
                (long long)p->taken_at[size], (long long)count);
    SPS_TRY(SPS_NEW(p->ctx, count, &got));
    SPS_TRY(SPS_NEW(p->ctx, count, &p->taken));
    SPS_TRY(SPS_NEW(p->ctx, count, &p->to));
    SPS_TRY(spsi_trade(p->ctx, p->given_at, nodes, p->taken_at, got,
                       sizeof *got));
    for (int64_t i = 0; i < count; i++) {
        got[i].index = i;
        p->taken[i] = got[i].super.at;
    }
    if (count > 0) qsort(got, (size_t)count, sizeof *got, spsi_by_key);
    for (int64_t j = 0; j < count; j++) p->to[got[j].index] = j;
fail:
    spsi_free(p->ctx, got);
    return st;
}

/* Tells the old processes the new numbers. */
static sps_status give_places(sps_partition *p)
{
    const int rank = spsi_comm_rank(p->ctx);
    int64_t *number = NULL, *back = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(p->ctx, p->nodes, &number));
    SPS_TRY(SPS_NEW(p->ctx, p->nodes, &back));
    SPS_TRY(SPS_NEW(p->ctx, p->nodes, &p->place));
    for (int64_t i = 0; i < p->nodes; i++)
        number[i] = p->offset[rank] + p->to[i];
    SPS_TRY(spsi_trade(p->ctx, p->taken_at, number, p->given_at, back,
                       sizeof *back));
    for (int64_t i = 0; i < p->nodes; i++) p->place[p->given[i]] = back[i];
fail:
    spsi_free(p->ctx, number);
    spsi_free(p->ctx, back);
    return st;
}

sps_status spsi_partition_find(const sps_operator *op, const char *how,
                               const sps_options *o, sps_partition *p)
{
    uint64_t *key = NULL;
    node *nodes = NULL;
    sps_status st;

    *p = (sps_partition){ .ctx = op->ctx };
    SPS_TRY(take_nodes(op, o, p));
    SPS_TRY(SPS_NEW(op->ctx, p->nodes, &key));
    SPS_TRY(SPS_NEW(op->ctx, p->nodes, &nodes));
    SPS_TRY(SPS_NEW(op->ctx, p->nodes, &p->given));
    SPS_TRY(!strcmp(how, "morton") ? morton_keys(op, o->coords, p, key)
                                   : spsi_partition_metis(op, p, key));
    for (int64_t i = 0; i < p->nodes; i++)
        nodes[i].super = (sps_keyed){ (int64_t)key[i], p->first + i };
    if (p->nodes > 0)
        qsort(nodes, (size_t)p->nodes, sizeof *nodes, spsi_by_key);
    for (int64_t i = 0; i < p->nodes; i++)
        p->given[i] = nodes[i].super.at - p->first;
    SPS_TRY(find_cuts(p, nodes));
    SPS_TRY(take(p, nodes));
    SPS_TRY(give_places(p));
fail:
    spsi_free(op->ctx, key);
    spsi_free(op->ctx, nodes);
    return st;
}

void spsi_partition_clear(sps_partition *p)
{
    spsi_free(p->ctx, p->offset);
    spsi_free(p->ctx, p->given);
    spsi_free(p->ctx, p->given_at);
    spsi_free(p->ctx, p->taken);
    spsi_free(p->ctx, p->taken_at);
    spsi_free(p->ctx, p->to);
    spsi_free(p->ctx, p->place);
}
