/* SPDX-License-Identifier: BSD-3-Clause */
/* aggregate.c - aggregates of strongly coupled nodes (Kelley and Rajamanickam,
 * arXiv 2204.02934, 2022; phase 2 has another threshold):
 *
 *   1. The roots of a MIS-2 of all nodes (roots.h), each with its neighbours,
 *      are aggregates.
 *   2. The same is done for the nodes that remain.  Candidates for roots are
 *      those with at least a few remaining neighbours.
 *   3. Each node that still remains joins one of the aggregates of phases 1
 *      and 2: the one with the largest sum of couplings to it; if sums are
 *      equal, the one with fewer nodes, then the one whose root comes first.
 *      After phase 1 every node is within distance 2 of a root, so it has a
 *      neighbour in an aggregate: one round suffices.
 *
 * Until then an aggregate is known by its root.  Aggregates of both phases are
 * numbered together, in the order of their roots, on a grid by pencils
 * (coarsening.h): so neighbouring rows of P' and of the coarse matrix have
 * entries in common or neighbouring columns, and products read less.
 *
 * Roots are 3 edges apart, so a node has at most one root as a neighbour.  In
 * every step a thread writes only to the node that it processes, from arrays of
 * the step before, and sums run in the order of the rows, so the result is the
 * same for any number of threads. */
#include "solvers/amg/roots.h"

#include <string.h>

/* Number of neighbours above which sums for each aggregate are stored in an
 * array. */
enum { LONG = 64 };
/* Value in place of an aggregate's number: the node has no neighbours, and so
 * will never have an aggregate. */
enum { ALONE = -2 };

typedef struct job {
    const amg_graph *g;
    const uint64_t *t;        /* AMG_ROOT for roots */
    int32_t *aggregate;
    const int32_t *before;    /* aggregates before this step */
    const int32_t *size;      /* number of nodes of each root's aggregate */
    int least;                /* smallest number of neighbours of a candidate */
    uint64_t *candidate;
} job;

/* A node without an aggregate joins that of a neighbouring root, if there is
 * one. */
static void take_root(void *data, int64_t first, int64_t last)
{
    const job *j = data;

    for (int64_t i = first; i < last; i++) {
        if (j->aggregate[i] != AMG_NONE) continue;
        if (j->t[i] == AMG_ROOT) j->aggregate[i] = (int32_t)i;
        for (int64_t p = j->g->rowptr[i];
             p < j->g->rowptr[i + 1] && j->aggregate[i] == AMG_NONE; p++)
            if (j->t[j->g->col[p]] == AMG_ROOT)
                j->aggregate[i] = j->g->col[p];
    }
}

/* Marks the candidates for roots in phase 2: the nodes without an aggregate
 * that have at least j->least neighbours without one. */
static void count_free(void *data, int64_t first, int64_t last)
{
    const job *j = data;

    for (int64_t i = first; i < last; i++) {
        int64_t count = 0;

        j->candidate[i] = AMG_NO_ROOT;
        if (j->aggregate[i] != AMG_NONE) continue;
        for (int64_t p = j->g->rowptr[i]; p < j->g->rowptr[i + 1]; p++)
            count += j->aggregate[j->g->col[p]] == AMG_NONE;
        if (count >= j->least) j->candidate[i] = 1;
    }
}

static bool wins(const job *j, int32_t a, double sum, int32_t b, double best)
{
    if (b == AMG_NONE || sum != best) return b == AMG_NONE || sum > best;
    return j->size[a] != j->size[b] ? j->size[a] < j->size[b] : a < b;
}

/* Returns the sum of the couplings of node i to aggregate a. */
static double pull(const job *j, int64_t i, int32_t a)
{
    double sum = 0;

    for (int64_t p = j->g->rowptr[i]; p < j->g->rowptr[i + 1]; p++)
        if (j->before[j->g->col[p]] == a) sum += j->g->weight[p];
    return sum;
}

/* Adds to sum the couplings of node i to each aggregate; if `clear`, sets these
 * sums to zero instead. */
static void pull_all(const job *j, int64_t i, bool clear, double *sum)
{
    for (int64_t p = j->g->rowptr[i]; p < j->g->rowptr[i + 1]; p++) {
        const int32_t a = j->before[j->g->col[p]];

        if (a >= 0) sum[a] = clear ? 0 : sum[a] + j->g->weight[p];
    }
}

/* Returns the aggregate with the largest sum of couplings to node i. sum: these
 * sums for all aggregates, or NULL to compute them here. */
static int32_t strongest(const job *j, int64_t i, const double *sum)
{
    int32_t best = AMG_NONE;
    double most = 0;

    for (int64_t p = j->g->rowptr[i]; p < j->g->rowptr[i + 1]; p++) {
        const int32_t a = j->before[j->g->col[p]];
        double now;

        if (a < 0 || a == best) continue;
        now = sum ? sum[a] : pull(j, i, a);
        if (!wins(j, a, now, best, most)) continue;
        best = a;
        most = now;
    }
    return best;
}

static bool is_long(const amg_graph *g, int64_t i)
{
    return g->rowptr[i + 1] - g->rowptr[i] > LONG;
}

/* Phase 3, in which the nodes that remain join an aggregate, for nodes with few
 * neighbours. */
static void join(void *data, int64_t first, int64_t last)
{
    const job *j = data;

    for (int64_t i = first; i < last; i++)
        if (j->before[i] == AMG_NONE && !is_long(j->g, i))
            j->aggregate[i] = strongest(j, i, NULL);
}

/* The same for nodes with many neighbours, one after another. */
static void join_long(const job *j, double *sum)
{
    for (int64_t i = 0; i < j->g->n; i++) {
        if (j->before[i] != AMG_NONE || !is_long(j->g, i)) continue;
        pull_all(j, i, false, sum);
        j->aggregate[i] = strongest(j, i, sum);
        pull_all(j, i, true, sum);
    }
}

/* Phase 3 for all remaining nodes.  size and before are scratch of n
 * elements. */
static sps_status join_all(sps_context *ctx, const amg_graph *g,
                           int32_t *aggregate, int32_t *size, int32_t *before)
{
    job j = { .g = g, .aggregate = aggregate, .before = before, .size = size };
    double *sum = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, g->n + 1, &sum));
    memcpy(before, aggregate, (size_t)g->n * sizeof *before);
    memset(size, 0, (size_t)g->n * sizeof *size);
    for (int64_t i = 0; i < g->n; i++)
        if (before[i] >= 0) size[before[i]]++;
    spsi_team_run(ctx, g->n, 4 * g->n, join, &j);
    join_long(&j, sum);
fail:
    spsi_free(ctx, sum);
    return st;
}

/* Makes an aggregate of each root that room->t marks, and its neighbours. */
static void found(sps_context *ctx, const amg_graph *g,
                  const amg_roots_room *room, int32_t *aggregate)
{
    job j = { .g = g, .t = room->t, .aggregate = aggregate };

    spsi_team_run(ctx, g->n, 2 * g->rowptr[g->n], take_root, &j);
}

/* Performs phases 1 and 2.  While they run, aggregate[v] of a node v without
 * neighbours is ALONE, so that v is not taken for a root. */
static sps_status gather(sps_context *ctx, const amg_graph *g,
                         const amg_roots_room *room, int32_t *aggregate)
{
    job j = { .g = g, .aggregate = aggregate, .candidate = room->t };
    sps_status st;

    for (int64_t i = 0; i < g->n; i++) {
        const bool alone = g->rowptr[i] == g->rowptr[i + 1];

        aggregate[i] = alone ? ALONE : AMG_NONE;
        room->t[i] = alone ? AMG_NO_ROOT : 1;
    }
    SPS_TRY(spsi_amg_roots(ctx, g, aggregate, room));
    found(ctx, g, room, aggregate);
    j.least = g->rowptr[g->n] >= SPS_COARSE_DENSE_GRAPH * g->n
                  ? SPS_COARSE_MANY : SPS_COARSE_FEW;
    spsi_team_run(ctx, g->n, g->rowptr[g->n], count_free, &j);
    SPS_TRY(spsi_amg_roots(ctx, g, aggregate, room));
    found(ctx, g, room, aggregate);
fail:
    return st;
}

/* Returns the grid of the nodes (coarsening.h), or 0. */
static uint64_t grid_of(const amg_level *l)
{
    const int b = l->nodes > 0 ? (int)(l->n / l->nodes) : 0;
    uint64_t grid[SPS_COARSE_SAMPLES];

    if (b == 0 || l->n % l->nodes) return 0;
    for (int s = 0; s < SPS_COARSE_SAMPLES; s++) {
        const int64_t i = spsi_coarse_sample(l->nodes, s);
        const int64_t p = l->A->rowptr[i * b];

        grid[s] = spsi_coarse_grid(l->A->col + p, l->A->rowptr[i * b + 1] - p,
                                   b, i);
    }
    return spsi_coarse_majority(grid);
}

/* Replaces the root of each node's aggregate by the aggregate's number.  Returns
 * the number of aggregates.  number: scratch of n elements, at the places of the
 * roots. */
static int64_t number_all(uint64_t grid, int64_t n, int32_t *aggregate,
                          int32_t *number)
{
    int64_t count = 0;

    for (int64_t i = 0; i < n; i++)
        number[spsi_coarse_place(grid, n, i)] = aggregate[i] == i;
    for (int64_t i = 0; i < n; i++)
        if (number[i]) number[i] = (int32_t)count++;
    for (int64_t i = 0; i < n; i++)
        aggregate[i] = aggregate[i] >= 0
                           ? number[spsi_coarse_place(grid, n, aggregate[i])]
                           : AMG_NONE;
    return count;
}

sps_status spsi_amg_aggregate(sps_context *ctx, const amg_level *l,
                              int32_t *aggregate, int64_t *count)
{
    const amg_graph *g = &l->strong;
    amg_roots_room room = { 0 };
    sps_status st;

    *count = 0;
    SPS_TRY(SPS_NEW(ctx, g->n + 1, &room.t));
    SPS_TRY(SPS_NEW(ctx, g->n + 1, &room.u));
    SPS_TRY(SPS_NEW(ctx, g->n + 1, &room.open));
    SPS_TRY(SPS_NEW(ctx, g->n + 1, &room.near));
    SPS_TRY(gather(ctx, g, &room, aggregate));
    SPS_TRY(join_all(ctx, g, aggregate, room.open, room.near));
    *count = number_all(grid_of(l), g->n, aggregate, room.open);
fail:
    spsi_free(ctx, room.t);
    spsi_free(ctx, room.u);
    spsi_free(ctx, room.open);
    spsi_free(ctx, room.near);
    return st;
}
