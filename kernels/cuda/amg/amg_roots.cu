/* SPDX-License-Identifier: BSD-3-Clause */
/* amg_roots.cu - independent nodes at distance 2 on the device;
 * solvers/amg/roots.c has the method.
 *
 * Undecided nodes, and those near them, are lists that shrink; their order is
 * left to chance and does not matter, since each node is decided by integers of
 * the step before.  The host looks at the number of undecided nodes every few
 * rounds. */
#include "cuda/amg/coarse.cuh"

namespace {

constexpr uint64_t in = UINT64_MAX, out = 0;
constexpr int rounds_at_once = 3;

struct list {
    int32_t *node;
    int *count;

    /* The threads of a warp that are here append with one atomic addition. */
    __device__ void append(int32_t i) const
    {
#ifdef __CUDA_ARCH__
        const unsigned here = __activemask();
        const unsigned below = here & ((1u << threadIdx.x % 32) - 1);
        int at = 0;

        if (below == 0) at = atomicAdd(count, __popc(here));
        at = __shfl_sync(here, at, __ffs(here) - 1);
        node[at + __popc(below)] = i;
#else
        node[atomicAdd(count, 1)] = i;
#endif
    }
};

struct graph {
    const int64_t *__restrict__ rowptr;
    const int32_t *__restrict__ col, *__restrict__ aggregate;
};

/* The maximum of x over node i and those neighbours that are in the graph, by a
 * group; i < 0: no node. */
template <int G>
__device__ inline unsigned long long most_near(const graph &g,
                                               const uint64_t *x, int32_t i,
                                               int lane)
{
    unsigned long long most = i < 0 ? 0 : x[i];
    const int64_t end = i < 0 ? 0 : g.rowptr[i + 1];

    for (int64_t p = (i < 0 ? 0 : g.rowptr[i]) + lane; p < end; p += G) {
        const int32_t k = g.col[p];

        if (g.aggregate[k] == -1 && x[k] > most) most = x[k];
    }
    return group_most<G>(most);
}

struct list_nodes {
    graph g;
    uint64_t *t, *u;
    list open, near;

    __device__ void operator()(int64_t i) const
    {
        u[i] = out;
        if (g.aggregate[i] != -1) return;
        near.append((int32_t)i);
        if (t[i] == out) return;
        t[i] = spsi_coarse_priority((uint64_t)i, 0);
        open.append((int32_t)i);
    }
};

/* u, and the nodes that the next round needs. */
struct spread {
    graph g;
    const uint64_t *t;
    uint64_t *u;
    list near, next;

    template <int G> __device__ void run(int64_t q, int lane) const
    {
        const int32_t i = q < 0 ? -1 : near.node[q];
        const uint64_t most = most_near<G>(g, t, i, lane);

        if (i < 0 || lane > 0) return;
        u[i] = most;
        if (most != in && most != out) next.append(i);
    }
};

/* Who is in or out; others draw again. */
struct decide {
    graph g;
    const uint64_t *u;
    uint64_t *t;
    list open, next;
    uint64_t round;

    template <int G> __device__ void run(int64_t q, int lane) const
    {
        const int32_t i = q < 0 ? -1 : open.node[q];
        const uint64_t w = most_near<G>(g, u, i, lane);

        if (i < 0 || lane > 0) return;
        if (w == t[i]) {
            t[i] = in;
        } else if (w == in) {
            t[i] = out;
        } else {
            t[i] = spsi_coarse_priority((uint64_t)i, round + 1);
            next.append(i);
        }
    }
};

struct rounds {
    sps_context *ctx;
    graph g;
    int64_t mean;             /* neighbours */
    uint64_t *t, *u;
    list open[2], near[2];
    int64_t opens, nears;     /* at most */
    uint64_t round;
};

sps_status do_round(rounds *r)
{
    const int now = (int)(r->round % 2), next = 1 - now;

    SPS_TRY_RETURN(clear(r->ctx, 1, r->near[next].count));
    SPS_TRY_RETURN(clear(r->ctx, 1, r->open[next].count));
    SPS_TRY_RETURN(each_group(
        r->ctx, r->nears, r->mean, r->near[now].count,
        spread{r->g, r->t, r->u, r->near[now], r->near[next]}));
    SPS_TRY_RETURN(each_group(
        r->ctx, r->opens, r->mean, r->open[now].count,
        decide{r->g, r->u, r->t, r->open[now], r->open[next], r->round}));
    r->round++;
    return SPS_OK;
}

sps_status open_rounds(rounds *r, holder *h, int64_t n)
{
    int32_t *node;
    int *count;

    SPS_TRY_RETURN(h->take(4 * n, &node));
    SPS_TRY_RETURN(h->take(4, &count));
    SPS_TRY_RETURN(clear(r->ctx, 4, count));
    for (int t = 0; t < 2; t++) {
        r->open[t] = {node + t * n, count + t};
        r->near[t] = {node + (2 + t) * n, count + 2 + t};
    }
    r->opens = r->nears = n;
    return each(r->ctx, n, list_nodes{r->g, r->t, r->u, r->open[0],
                                      r->near[0]});
}

} // namespace

sps_status spsi_coarse_roots(sps_coarse *l, uint64_t *t, uint64_t *u)
{
    rounds r = {l->ctx, {l->rowptr, l->col, l->aggregate},
                l->edges / (l->nodes + 1), t, u};
    int left[4];
    holder h(l->ctx);

    SPS_TRY_RETURN(open_rounds(&r, &h, l->nodes));
    do {
        for (int q = 0; q < rounds_at_once; q++) SPS_TRY_RETURN(do_round(&r));
        SPS_TRY_RETURN(fetch(l->ctx, 4, r.open[0].count, left));
        r.opens = left[r.round % 2];
        r.nears = left[2 + r.round % 2];
    } while (r.opens > 0);
    return SPS_OK;
}
