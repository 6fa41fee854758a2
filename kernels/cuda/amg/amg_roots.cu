/* SPDX-License-Identifier: BSD-3-Clause */
/* amg_roots.cu - chooses the roots of aggregates on the device: a maximal set
 * of nodes of which no two are within distance 2 (MIS-2), by the method of
 * solvers/amg/roots.c.
 *
 * Undecided nodes, and those near them, are lists that shrink.  The order of a
 * list varies from run to run and does not matter, since each node is decided
 * by integers of the step before.  A thread block appends the nodes that it
 * keeps with one atomic addition, because additions to one address are
 * serialised.  The host reads the number of undecided nodes after 8 rounds, which
 * often suffice, and then after every second one.
 *
 * Nodes that are not in the graph have t = u = 0, the smallest value, and need
 * no special treatment. */
#include "cuda/amg/coarse.cuh"

namespace {

constexpr uint64_t in = UINT64_MAX, out = 0;
constexpr int rounds_first = 8, rounds_more = 2;   /* before the host looks */

struct list {
    int32_t *node;            /* the nodes of the list; NULL: all nodes */
    int *count;
};

/* Number of nodes that a group of threads processes at the same time, so that
 * their loads, each of which waits for the one before, wait together. */
constexpr int together = 4;

/* The nodes of a group; -1: none. */
struct few_nodes {
    int32_t i[together];
};

/* Sets the list `next` to those nodes of the list `from` for which f.run<G>(
 * nodes, lane) returns their bit; lane 0 of a group of G threads says so. */
template <int G, class F> __global__ void __launch_bounds__(256)
run_list(int64_t n, const list from, const list next, const F f)
{
    constexpr int groups = 256 / G, warps = 256 / 32;
    __shared__ int kept[warps], base;
    const int lane = (int)threadIdx.x % G, warp = (int)threadIdx.x / 32;
    const int64_t count = from.node ? *from.count : n;

    for (int64_t first = (int64_t)blockIdx.x * groups * together; first < count;
         first += (int64_t)gridDim.x * groups * together) {
        few_nodes v;

#pragma unroll
        for (int u = 0; u < together; u++) {
            const int64_t q = first + u * groups + (int)threadIdx.x / G;

            v.i[u] = q >= count ? -1 : from.node ? from.node[q] : (int32_t)q;
        }
        const unsigned bits = f.template run<G>(v, lane);
        int own = 0, below = 0, sum = 0;

#pragma unroll
        for (int u = 0; u < together; u++) {
            const bool keep = bits >> u & 1 && v.i[u] >= 0 && lane == 0;
            const unsigned all = __ballot_sync(all_lanes, keep);

            below += __popc(all & ((1u << threadIdx.x % 32) - 1));
            sum += __popc(all);
            own += keep;
        }
        if (threadIdx.x % 32 == 0) kept[warp] = sum;
        __syncthreads();
        sum = 0;
        for (int w = 0; w < warps; w++) {
            if (w < warp) below += kept[w];
            sum += kept[w];
        }
        if (threadIdx.x == 0 && sum > 0) base = atomicAdd(next.count, sum);
        __syncthreads();
#pragma unroll
        for (int u = 0; own > 0 && u < together; u++)
            if (bits >> u & 1 && v.i[u] >= 0)
                next.node[base + below++] = v.i[u];
    }
}

template <int G, class F>
sps_status launch_list(sps_context *ctx, int64_t n, const list &from,
                       const list &next, const F &f)
{
    const int64_t blocks = ceil_div(n, 256 / G * together);
    const int64_t most = 8 * (int64_t)spsi_cuda_state(ctx)->sms;

    return run_kernel(ctx, (unsigned)(blocks < most ? blocks : most), 256,
                      run_list<G, F>, n, from, next, f);
}

/* Runs f for a list of at most n nodes with `mean` neighbours on average. */
template <class F>
sps_status each_listed(sps_context *ctx, int64_t n, int64_t mean,
                       const list &from, const list &next, const F &f)
{
    return mean <= 5 ? launch_list<4>(ctx, n, from, next, f)
         : mean <= 11 ? launch_list<8>(ctx, n, from, next, f)
         : mean <= 31 ? launch_list<16>(ctx, n, from, next, f)
                      : launch_list<32>(ctx, n, from, next, f);
}

struct graph {
    const int64_t *__restrict__ rowptr;
    const int32_t *__restrict__ col;
};

/* most[u] becomes the maximum of x over node v.i[u] and its neighbours, in all
 * lanes of the group, or 0 without a node. */
template <int G>
__device__ __forceinline__ void
most_near(const graph &g, const uint64_t *x, const few_nodes &v, int lane,
          unsigned long long (&most)[together])
{
    int64_t p[together], end[together];
    bool more = false;

#pragma unroll
    for (int u = 0; u < together; u++) {
        const int32_t i = v.i[u];

        p[u] = i < 0 ? 0 : g.rowptr[i] + lane;
        end[u] = i < 0 ? 0 : g.rowptr[i + 1];
        most[u] = i < 0 ? 0 : x[i];
        more = more || p[u] < end[u];
    }
    while (more) {
        int32_t k[together];

        more = false;
#pragma unroll
        for (int u = 0; u < together; u++) {
            k[u] = p[u] < end[u] ? g.col[p[u]] : -1;
            p[u] += G;
            more = more || p[u] < end[u];
        }
#pragma unroll
        for (int u = 0; u < together; u++) {
            const unsigned long long other = k[u] < 0 ? 0 : x[k[u]];

            if (other > most[u]) most[u] = other;
        }
    }
    __syncwarp();
#pragma unroll
    for (int u = 0; u < together; u++) most[u] = group_most<G>(most[u]);
}

/* For list functions that look at each node by itself: the bits of the nodes
 * for which keep(i) is true. */
template <class K>
__device__ __forceinline__ unsigned each_node(const few_nodes &v, const K &keep)
{
    unsigned bits = 0;

#pragma unroll
    for (int u = 0; u < together; u++)
        if (v.i[u] >= 0 && keep(u, v.i[u])) bits |= 1u << u;
    return bits;
}

/* Lists the nodes of the graph; u[i] of every other node i becomes `out`. */
struct list_nodes {
    const int32_t *aggregate;
    uint64_t *u;

    template <int G> __device__ unsigned run(const few_nodes &v, int) const
    {
        return each_node(v, [&](int, int32_t i) {
            u[i] = out;
            return aggregate[i] == -1;
        });
    }
};

/* Keeps the undecided nodes of a list and gives them their first priority
 * t[i]. */
struct list_open {
    uint64_t *t;

    template <int G> __device__ unsigned run(const few_nodes &v, int) const
    {
        return each_node(v, [&](int, int32_t i) {
            if (t[i] == out) return false;
            t[i] = spsi_coarse_priority((uint64_t)i, 0);
            return true;
        });
    }
};

/* Computes u[i], the largest t among node i and its neighbours, and keeps the
 * nodes that the next round needs. */
struct spread {
    graph g;
    const uint64_t *t;
    uint64_t *u;

    template <int G> __device__ unsigned run(const few_nodes &v, int lane) const
    {
        unsigned long long most[together];

        most_near<G>(g, t, v, lane, most);
        return each_node(v, [&](int q, int32_t i) {
            if (lane == 0) u[i] = most[q];
            return most[q] != in && most[q] != out;
        });
    }
};

/* Decides which nodes become roots or can no longer become roots; the others
 * draw a new priority. */
struct decide {
    graph g;
    const uint64_t *u;
    uint64_t *t;
    uint64_t round;

    template <int G> __device__ unsigned run(const few_nodes &v, int lane) const
    {
        unsigned long long most[together];

        most_near<G>(g, u, v, lane, most);
        if (lane > 0) return 0;
        return each_node(v, [&](int q, int32_t i) {
            const uint64_t w = most[q];
            const bool goes_in = w == t[i], open = !goes_in && w != in;

            t[i] = goes_in ? in
                 : open ? spsi_coarse_priority((uint64_t)i, round + 1) : out;
            return open;
        });
    }
};

struct rounds {
    sps_context *ctx;
    graph g;
    int64_t mean;             /* mean number of neighbours */
    uint64_t *t, *u;
    int64_t n;
    list open[2], near[2];
    uint64_t round;
};

/* Does a round; the lists that it writes (`next`) are the input of the round
 * after it. */
sps_status do_round(rounds *r)
{
    const int now = (int)(r->round % 2), next = 1 - now;

    SPS_TRY_RETURN(clear(r->ctx, 2, r->open[next].count));
    SPS_TRY_RETURN(each_listed(r->ctx, r->n, r->mean, r->near[now],
                               r->near[next], spread{r->g, r->t, r->u}));
    SPS_TRY_RETURN(each_listed(r->ctx, r->n, r->mean, r->open[now],
                               r->open[next],
                               decide{r->g, r->u, r->t, r->round}));
    r->round++;
    return SPS_OK;
}

/* Lists the undecided nodes, and all nodes of the graph. */
sps_status open_rounds(rounds *r, holder *h, const int32_t *aggregate)
{
    const int64_t n = r->n;
    int32_t *node;
    int *count;

    SPS_TRY_RETURN(h->take(4 * n, &node));
    SPS_TRY_RETURN(h->take(4, &count));
    SPS_TRY_RETURN(clear(r->ctx, 4, count));
    for (int t = 0; t < 2; t++) {
        r->open[t] = {node + t * n, count + 2 * t};
        r->near[t] = {node + (2 + t) * n, count + 2 * t + 1};
    }
    SPS_TRY_RETURN(launch_list<1>(r->ctx, n, list{NULL, NULL}, r->near[0],
                                  list_nodes{aggregate, r->u}));
    return launch_list<1>(r->ctx, n, r->near[0], r->open[0], list_open{r->t});
}

} // namespace

sps_status spsi_coarse_roots(sps_coarse *l, uint64_t *t, uint64_t *u)
{
    rounds r = {l->ctx, {l->rowptr, l->col}, l->edges / (l->nodes + 1), t, u,
                l->nodes};
    int left, count = rounds_first;
    holder h(l->ctx);

    if (l->nodes == 0) return SPS_OK;
    SPS_TRY_RETURN(open_rounds(&r, &h, l->aggregate));
    do {
        for (int q = 0; q < count; q++) SPS_TRY_RETURN(do_round(&r));
        SPS_TRY_RETURN(download(l->ctx, 1, r.open[r.round % 2].count, &left));
        count = rounds_more;
    } while (left > 0);
    return SPS_OK;
}
