/* SPDX-License-Identifier: BSD-3-Clause */
/* aggregate.c - aggregates of strongly coupled nodes, from maximal independent
 * sets at distance 2: Kelley and Rajamanickam, arXiv 2204.02934 (2022).
 *
 * MIS-2: an undecided node i holds T_i = (hash(i, round), i), a member of the
 * set infinity, a node that is out 0.  With u_i the maximum of T over i and its
 * neighbours, w_i that of u: i is in if w_i = T_i, out if w_i is infinite, and
 * waits for the next round otherwise; 6 to 10 rounds.
 *
 *  1. The roots of a MIS-2 of all nodes, each with its neighbours.
 *  2. The same among the nodes that are left, with those as candidates that
 *     have q such neighbours at least.
 *  3. What is left joins, from the aggregates of phase 2, the one with the
 *     largest sum of couplings; ties: fewer nodes, then the lower number.
 *     After phase 1 every node is within distance 2 of a root, so that it has a
 *     neighbour in an aggregate: one round suffices.
 *
 * Roots are 3 edges apart, so that a node has one root as a neighbour.  Every
 * step writes to the node at hand alone, from arrays of the step before:
 * integers and sums in the order of the rows, the same for any number of
 * threads. */
#include "solvers/amg/amg.h"

#include <string.h>

enum { NONE = -1, ALONE = -2 };
/* Mean number of strong neighbours from which phase 2 wants MANY of them. */
enum { DENSE_GRAPH = 5, MANY = 4, FEW = 2 };
#define IN UINT64_MAX
#define OUT 0

typedef struct mis {
    const amg_graph *g;
    const int32_t *aggregate; /* nodes with one are not in the graph */
    uint64_t *t, *u;
    int32_t *open, *near;     /* undecided nodes; nodes whose u may change */
    int64_t opens, nears;
    uint64_t round;
} mis;

typedef struct job {
    const amg_graph *g;
    const uint64_t *t;        /* IN: a root */
    int32_t *aggregate;
    const int32_t *before;    /* the same before the step */
    const int32_t *number;    /* of the aggregate of a root */
    const int32_t *size;      /* of the aggregates */
    int64_t aggregates;
    double *sum;              /* aggregates numbers for each thread */
    int least;                /* neighbours of a candidate */
    uint64_t *candidate;
} job;

/* Finaliser of splitmix64 (Steele, Lea and Flood 2014). */
static uint64_t scramble(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* T of an undecided node: 30 bits of the hash, plus one, then its number. */
static uint64_t priority(uint64_t i, uint64_t round)
{
    const uint64_t h = scramble(i + round * 0x9e3779b97f4a7c15u);

    return ((h >> 34) + 1) << 32 | i;
}

static void draw(void *data, int64_t first, int64_t last)
{
    const mis *m = data;

    for (int64_t q = first; q < last; q++)
        m->t[m->open[q]] = priority((uint64_t)m->open[q], m->round);
}

/* The maximum of x over node i and those neighbours that are in the graph. */
static uint64_t most_near(const mis *m, const uint64_t *x, int32_t i)
{
    uint64_t most = x[i];

    for (int64_t p = m->g->rowptr[i]; p < m->g->rowptr[i + 1]; p++) {
        const int32_t k = m->g->col[p];

        if (m->aggregate[k] == NONE && x[k] > most) most = x[k];
    }
    return most;
}

static void spread(void *data, int64_t first, int64_t last)
{
    const mis *m = data;

    for (int64_t q = first; q < last; q++)
        m->u[m->near[q]] = most_near(m, m->t, m->near[q]);
}

static void decide(void *data, int64_t first, int64_t last)
{
    const mis *m = data;

    for (int64_t q = first; q < last; q++) {
        const int32_t i = m->open[q];
        const uint64_t w = most_near(m, m->u, i);

        if (w == m->t[i]) m->t[i] = IN;
        else if (w == IN) m->t[i] = OUT;
    }
}

/* Keeps the undecided nodes, and those with an undecided node near them. */
static void shrink(mis *m)
{
    int64_t opens = 0, nears = 0;

    for (int64_t q = 0; q < m->opens; q++) {
        const uint64_t t = m->t[m->open[q]];

        if (t != IN && t != OUT) m->open[opens++] = m->open[q];
    }
    for (int64_t q = 0; q < m->nears; q++) {
        const uint64_t u = m->u[m->near[q]];

        if (u != IN && u != OUT) m->near[nears++] = m->near[q];
    }
    m->opens = opens;
    m->nears = nears;
}

/* t of the nodes with t != OUT on entry becomes IN or OUT: a MIS-2 of the graph
 * of the nodes without an aggregate, from these candidates. */
static sps_status find_roots(sps_context *ctx, mis *m)
{
    const int64_t mean = m->g->n ? 1 + m->g->rowptr[m->g->n] / m->g->n : 1;
    sps_status st = SPS_OK;

    m->opens = m->nears = 0;
    for (int32_t i = 0; i < m->g->n; i++) {
        m->u[i] = OUT;
        if (m->aggregate[i] != NONE) continue;
        m->near[m->nears++] = i;
        if (m->t[i] != OUT) m->open[m->opens++] = i;
    }
    for (m->round = 0; m->opens > 0; m->round++) {
        SPS_TRY(spsi_check_deadline(ctx, "amg"));
        spsi_team_run(ctx, m->opens, 2 * m->opens, draw, m);
        spsi_team_run(ctx, m->nears, 2 * mean * m->nears, spread, m);
        spsi_team_run(ctx, m->opens, 2 * mean * m->opens, decide, m);
        shrink(m);
    }
fail:
    return st;
}

/* ----------------------------------------------------------------- phases */

/* A node without an aggregate takes that of its root, if it has one. */
static void take_root(void *data, int64_t first, int64_t last)
{
    const job *j = data;

    for (int64_t i = first; i < last; i++) {
        if (j->aggregate[i] != NONE) continue;
        if (j->t[i] == IN) j->aggregate[i] = j->number[i];
        for (int64_t p = j->g->rowptr[i];
             p < j->g->rowptr[i + 1] && j->aggregate[i] == NONE; p++)
            if (j->t[j->g->col[p]] == IN)
                j->aggregate[i] = j->number[j->g->col[p]];
    }
}

/* Candidates of phase 2. */
static void count_free(void *data, int64_t first, int64_t last)
{
    const job *j = data;

    for (int64_t i = first; i < last; i++) {
        int64_t count = 0;

        j->candidate[i] = OUT;
        if (j->aggregate[i] != NONE) continue;
        for (int64_t p = j->g->rowptr[i]; p < j->g->rowptr[i + 1]; p++)
            count += j->aggregate[j->g->col[p]] == NONE;
        if (count >= j->least) j->candidate[i] = 1;
    }
}

static bool wins(const job *j, int32_t a, double sum, int32_t b, double best)
{
    if (b == NONE || sum != best) return b == NONE || sum > best;
    return j->size[a] != j->size[b] ? j->size[a] < j->size[b] : a < b;
}

/* The aggregate to which the couplings of node i have the largest sum; sum: by
 * aggregate, zero on entry and return. */
static int32_t strongest(const job *j, int64_t i, double *sum)
{
    int32_t best = NONE;
    double most = 0;

    for (int pass = 0; pass < 3; pass++)
        for (int64_t p = j->g->rowptr[i]; p < j->g->rowptr[i + 1]; p++) {
            const int32_t a = j->before[j->g->col[p]];

            if (a < 0) continue;
            if (pass == 0) sum[a] += j->g->weight[p];
            if (pass == 2) sum[a] = 0;
            if (pass != 1 || !wins(j, a, sum[a], best, most)) continue;
            best = a;
            most = sum[a];
        }
    return best;
}

/* Phase 3. */
static void join(void *data, int64_t first, int64_t last)
{
    const job *j = data;
    double *sum = j->sum + (int64_t)spsi_team_self() * j->aggregates;

    for (int64_t i = first; i < last; i++)
        if (j->before[i] == NONE) j->aggregate[i] = strongest(j, i, sum);
}

/* Numbers the roots that t has marked, from *count on, and lets them take
 * their neighbours. */
static void found(sps_context *ctx, const mis *m, int32_t *number,
                  int32_t *aggregate, int64_t *count)
{
    job j = { .g = m->g, .t = m->t, .aggregate = aggregate,
              .number = number };

    for (int64_t i = 0; i < m->g->n; i++)
        if (aggregate[i] == NONE && m->t[i] == IN)
            number[i] = (int32_t)(*count)++;
    spsi_team_run(ctx, m->g->n, 2 * m->g->rowptr[m->g->n], take_root, &j);
}

/* The nodes that are left: size and before are scratch of n numbers. */
static sps_status join_all(sps_context *ctx, const amg_graph *g,
                           int32_t *aggregate, int64_t count, int32_t *size,
                           int32_t *before)
{
    job j = { .g = g, .aggregate = aggregate, .before = before, .size = size,
              .aggregates = count };
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, ctx->threads * count + 1, &j.sum));
    memcpy(before, aggregate, (size_t)g->n * sizeof *before);
    memset(size, 0, (size_t)g->n * sizeof *size);
    for (int64_t i = 0; i < g->n; i++)
        if (before[i] >= 0) size[before[i]]++;
    spsi_team_run(ctx, g->n, 4 * g->n, join, &j);
fail:
    spsi_free(ctx, j.sum);
    return st;
}

/* Phases 1 and 2.  Nodes without neighbours are ALONE meanwhile, and no part of
 * the graph. */
static sps_status gather(sps_context *ctx, mis *m, int32_t *aggregate,
                         int64_t *count)
{
    const amg_graph *g = m->g;
    job j = { .g = g, .aggregate = aggregate, .candidate = m->t };
    sps_status st;

    for (int64_t i = 0; i < g->n; i++) {
        const bool alone = g->rowptr[i] == g->rowptr[i + 1];

        aggregate[i] = alone ? ALONE : NONE;
        m->t[i] = alone ? OUT : 1;
    }
    SPS_TRY(find_roots(ctx, m));
    found(ctx, m, m->open, aggregate, count);
    j.least = g->rowptr[g->n] >= DENSE_GRAPH * g->n ? MANY : FEW;
    spsi_team_run(ctx, g->n, g->rowptr[g->n], count_free, &j);
    SPS_TRY(find_roots(ctx, m));
    found(ctx, m, m->open, aggregate, count);
fail:
    return st;
}

sps_status spsi_amg_aggregate(sps_context *ctx, const amg_graph *g,
                              int32_t *aggregate, int64_t *count)
{
    mis m = { .g = g, .aggregate = aggregate };
    sps_status st;

    *count = 0;
    SPS_TRY(SPS_NEW(ctx, g->n + 1, &m.t));
    SPS_TRY(SPS_NEW(ctx, g->n + 1, &m.u));
    SPS_TRY(SPS_NEW(ctx, g->n + 1, &m.open));
    SPS_TRY(SPS_NEW(ctx, g->n + 1, &m.near));
    SPS_TRY(gather(ctx, &m, aggregate, count));
    SPS_TRY(join_all(ctx, g, aggregate, *count, m.open, m.near));
    for (int64_t i = 0; i < g->n; i++)
        if (aggregate[i] == ALONE) aggregate[i] = NONE;
fail:
    spsi_free(ctx, m.t);
    spsi_free(ctx, m.u);
    spsi_free(ctx, m.open);
    spsi_free(ctx, m.near);
    return st;
}
