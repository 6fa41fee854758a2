/* SPDX-License-Identifier: BSD-3-Clause */
/* roots.c - a maximal independent set at distance 2 (MIS-2) of a graph (Kelley
 * and Rajamanickam, arXiv 2204.02934, 2022).
 *
 * T_i is (hash(i, round), i) for an undecided node i, infinity for a member of
 * the set, and 0 for a node that is out.  Let u_i be the maximum of T over i
 * and its neighbours, and w_i that of u.  In each round node i joins the set if
 * w_i = T_i, is out if w_i is infinite, and waits for the next round otherwise;
 * 6 to 10 rounds suffice.  The lists of undecided nodes, and of the nodes near
 * them, shrink.
 *
 * In every step a thread writes only to the node that it processes, integers
 * computed from arrays of the step before, so the set is the same for any
 * number of threads. */
#include "solvers/amg/roots.h"

#define IN AMG_ROOT
#define OUT AMG_NO_ROOT

typedef struct mis {
    const amg_graph *g;
    const int32_t *aggregate; /* nodes with an aggregate are not in the graph */
    uint64_t *t, *u;
    int32_t *open, *near;     /* undecided nodes; nodes whose u may change */
    int64_t opens, nears;
    uint64_t round;
} mis;

static void draw(void *data, int64_t first, int64_t last)
{
    const mis *m = data;

    for (int64_t q = first; q < last; q++)
        m->t[m->open[q]] = spsi_coarse_priority((uint64_t)m->open[q],
                                                m->round);
}

/* Returns the maximum of x over node i and those neighbours that are in the
 * graph. */
static uint64_t most_near(const mis *m, const uint64_t *x, int32_t i)
{
    uint64_t most = x[i];

    for (int64_t p = m->g->rowptr[i]; p < m->g->rowptr[i + 1]; p++) {
        const int32_t k = m->g->col[p];

        if (m->aggregate[k] == AMG_NONE && x[k] > most) most = x[k];
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

/* Removes decided nodes from the lists, and nodes without an undecided node
 * near them. */
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

static void list_nodes(mis *m)
{
    for (int32_t i = 0; i < m->g->n; i++) {
        m->u[i] = OUT;
        if (m->aggregate[i] != AMG_NONE) continue;
        m->near[m->nears++] = i;
        if (m->t[i] != OUT) m->open[m->opens++] = i;
    }
}

sps_status spsi_amg_roots(sps_context *ctx, const amg_graph *g,
                          const int32_t *aggregate, const amg_roots_room *room)
{
    const int64_t mean = g->n ? 1 + g->rowptr[g->n] / g->n : 1;
    mis m = { .g = g, .aggregate = aggregate, .t = room->t, .u = room->u,
              .open = room->open, .near = room->near };
    sps_status st = SPS_OK;

    list_nodes(&m);
    for (; m.opens > 0; m.round++) {
        SPS_TRY(spsi_check_deadline(ctx, "amg"));
        spsi_team_run(ctx, m.opens, 2 * m.opens, draw, &m);
        spsi_team_run(ctx, m.nears, 2 * mean * m.nears, spread, &m);
        spsi_team_run(ctx, m.opens, 2 * mean * m.opens, decide, &m);
        shrink(&m);
    }
fail:
    return st;
}
