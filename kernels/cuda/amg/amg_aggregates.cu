/* SPDX-License-Identifier: BSD-3-Clause */
/* amg_aggregates.cu - forms the aggregates of a level on the device, in three
 * phases: a root and its neighbours form an aggregate; remaining nodes with
 * enough free neighbours become roots as well; single nodes join an adjacent
 * aggregate (solvers/amg/aggregate.c has the details). */
#include "cuda/amg/coarse.cuh"

namespace {

constexpr uint64_t root = UINT64_MAX, no_root = 0;
constexpr int32_t none = -1, alone = -2;
constexpr int long_row = 64;

struct graph {
    const int64_t *__restrict__ rowptr;
    const int32_t *__restrict__ col;
    const double *__restrict__ weight;
};

struct begin {
    graph g;
    int32_t *aggregate;
    uint64_t *t;

    __device__ void operator()(int64_t i) const
    {
        const bool by_itself = g.rowptr[i] == g.rowptr[i + 1];

        aggregate[i] = by_itself ? alone : none;
        t[i] = by_itself ? no_root : 1;
    }
};

/* A node that is in no aggregate joins that of an adjacent root, if there is
 * one. */
struct take_root {
    graph g;
    const uint64_t *t;
    int32_t *aggregate;

    __device__ void operator()(int64_t i) const
    {
        if (aggregate[i] != none) return;
        if (t[i] == root) {
            aggregate[i] = (int32_t)i;
            return;
        }
        for (int64_t p = g.rowptr[i]; p < g.rowptr[i + 1]; p++)
            if (t[g.col[p]] == root) {
                aggregate[i] = g.col[p];
                return;
            }
    }
};

/* Finds the candidates of phase 2: nodes with enough free neighbours. */
struct count_free {
    graph g;
    const int32_t *aggregate;
    int least;
    uint64_t *candidate;

    __device__ void operator()(int64_t i) const
    {
        int64_t count = 0;

        candidate[i] = no_root;
        if (aggregate[i] != none) return;
        for (int64_t p = g.rowptr[i]; p < g.rowptr[i + 1]; p++)
            count += aggregate[g.col[p]] == none;
        if (count >= least) candidate[i] = 1;
    }
};

/* --------------------------------------------------------------- phase 3 */

struct count_members {
    const int32_t *aggregate;
    int *size;

    __device__ void operator()(int64_t i) const
    {
        if (aggregate[i] >= 0) atomicAdd(size + aggregate[i], 1);
    }
};

/* A candidate for a node to join: an aggregate `a`, and the sum of the
 * couplings of the node to its members. */
struct candidate {
    int32_t a;
    double sum;
};

struct join_view {
    graph g;
    const int32_t *before;
    const int *size;
    int32_t *aggregate;

    __device__ bool wins(candidate x, candidate best) const
    {
        if (best.a == none || x.sum != best.sum)
            return best.a == none || x.sum > best.sum;
        return size[x.a] != size[best.a] ? size[x.a] < size[best.a]
                                         : x.a < best.a;
    }
    __device__ double pull(int64_t i, int32_t a) const
    {
        double sum = 0;

        for (int64_t p = g.rowptr[i]; p < g.rowptr[i + 1]; p++)
            if (before[g.col[p]] == a) sum += g.weight[p];
        return sum;
    }
    /* Returns, of the aggregates of the neighbours number first, first + step,
     * ... of node i, the one with the largest sum of couplings to i. */
    __device__ candidate strongest(int64_t i, int first, int step) const
    {
        candidate best = {none, 0};

        for (int64_t p = g.rowptr[i] + first; p < g.rowptr[i + 1]; p += step) {
            const int32_t a = before[g.col[p]];

            if (a < 0 || a == best.a) continue;
            const candidate now = {a, pull(i, a)};

            if (wins(now, best)) best = now;
        }
        return best;
    }
    __device__ bool is_long(int64_t i) const
    {
        return g.rowptr[i + 1] - g.rowptr[i] > long_row;
    }
};

/* Lets nodes with few neighbours join, one thread for each, and lists the nodes
 * with many. */
struct join : join_view {
    int32_t *listed;
    int *count;

    __device__ void operator()(int64_t i) const
    {
        if (before[i] != none) return;
        if (is_long(i)) listed[atomicAdd(count, 1)] = (int32_t)i;
        else aggregate[i] = strongest(i, 0, 1).a;
    }
};

/* Lets the listed nodes, which have many neighbours, join: one thread block for
 * each of them. */
__global__ void __launch_bounds__(256)
join_long(const join_view j, const int32_t *__restrict__ listed,
          const int *__restrict__ count)
{
    __shared__ candidate best[256];
    const int t = (int)threadIdx.x;

    for (int q = (int)blockIdx.x; q < *count; q += (int)gridDim.x) {
        const int64_t i = listed[q];

        best[t] = j.strongest(i, t, 256);
        for (int half = 128; half > 0; half /= 2) {
            __syncthreads();
            if (t < half && best[t + half].a != none &&
                best[t + half].a != best[t].a &&
                j.wins(best[t + half], best[t]))
                best[t] = best[t + half];
        }
        if (t == 0) j.aggregate[i] = best[0].a;
    }
}

/* -------------------------------------------------------------- numbers */

/* *grid = the grid of the nodes of b rows (coarsening.h), or 0. */
__global__ void __launch_bounds__(SPS_COARSE_SAMPLES)
find_grid(const entries A, int64_t nodes, int b, uint64_t *grid)
{
    __shared__ uint64_t sample[SPS_COARSE_SAMPLES];
    const int64_t i = spsi_coarse_sample(nodes, (int)threadIdx.x);
    const int64_t p = A.rowptr[i * b];

    sample[threadIdx.x] =
        spsi_coarse_grid(A.col + p, A.rowptr[i * b + 1] - p, b, i);
    __syncthreads();
    if (threadIdx.x == 0) *grid = spsi_coarse_majority(sample);
}

struct mark_roots {
    const uint64_t *grid;
    int64_t n;
    const int32_t *aggregate;
    int32_t *is_root;         /* at the place of each node */

    __device__ void operator()(int64_t i) const
    {
        is_root[spsi_coarse_place(*grid, n, i)] = aggregate[i] == i;
    }
};

/* Replaces the root of the aggregate by the aggregate's number. */
struct set_number {
    const uint64_t *grid;
    int64_t n;
    const int64_t *number;    /* at the places of the roots */
    int32_t *aggregate;

    __device__ void operator()(int64_t i) const
    {
        const int32_t a = aggregate[i];

        aggregate[i] =
            a >= 0 ? (int32_t)number[spsi_coarse_place(*grid, n, a)] : none;
    }
};

struct work {
    uint64_t *t, *u;
    int32_t *flag;            /* n flags: 1 for a root, else 0 */
    int64_t *number;          /* prefix sums of `flag`, n + 1 numbers */
};

graph graph_of(const sps_coarse *l) { return {l->rowptr, l->col, l->weight}; }

/* Does phases 1 and 2: aggregates around the roots, then aggregates of
 * remaining nodes. */
sps_status gather(sps_coarse *l, const work &w)
{
    const int64_t n = l->nodes;
    const int least = l->edges >= SPS_COARSE_DENSE_GRAPH * n ? SPS_COARSE_MANY
                                                             : SPS_COARSE_FEW;

    SPS_TRY_RETURN(each(l->ctx, n, begin{graph_of(l), l->aggregate, w.t}));
    SPS_TRY_RETURN(spsi_coarse_roots(l, w.t, w.u));
    SPS_TRY_RETURN(each(l->ctx, n, take_root{graph_of(l), w.t, l->aggregate}));
    SPS_TRY_RETURN(each(l->ctx, n, count_free{graph_of(l), l->aggregate, least,
                                              w.t}));
    SPS_TRY_RETURN(spsi_coarse_roots(l, w.t, w.u));
    return each(l->ctx, n, take_root{graph_of(l), w.t, l->aggregate});
}

/* The size of an aggregate is at its root; behind the sizes is the length of the
 * list of long rows. */
sps_status join_all(sps_coarse *l, holder *h, const work &w)
{
    sps_context *ctx = l->ctx;
    const int64_t n = l->nodes, most = 4 * (int64_t)spsi_cuda_state(ctx)->sms;
    int32_t *before = w.flag, *listed = (int32_t *)w.number;
    int *size, *count;

    if (n == 0) return SPS_OK;
    SPS_TRY_RETURN(h->take(n + 1, &size));
    SPS_TRY_RETURN(clear(ctx, n + 1, size));
    count = size + n;
    SPS_TRY_RETURN(copy(ctx, n, l->aggregate, before));
    SPS_TRY_RETURN(each(ctx, n, count_members{before, size}));
    const join_view j = {graph_of(l), before, size, l->aggregate};

    SPS_TRY_RETURN(each(ctx, n, join{j, listed, count}));
    return run_kernel(ctx, (unsigned)(n < most ? n : most), 256, join_long, j,
                      listed, count);
}

/* Numbers the aggregates in the order of their roots. */
sps_status number_all(sps_coarse *l, holder *h, const work &w)
{
    sps_context *ctx = l->ctx;
    const int64_t n = l->nodes;
    uint64_t *grid;

    SPS_TRY_RETURN(h->take(1, &grid));
    SPS_TRY_RETURN(clear(ctx, 1, grid));
    if (n > 0 && l->A.nrow % n == 0)
        SPS_TRY_RETURN(run_kernel(ctx, 1, SPS_COARSE_SAMPLES, find_grid,
                                  entries_of(&l->A), n, (int)(l->A.nrow / n),
                                  grid));
    SPS_TRY_RETURN(each(ctx, n, mark_roots{grid, n, l->aggregate, w.flag}));
    SPS_TRY_RETURN(spsi_cuda_scan(ctx, w.flag, n, w.number));
    SPS_TRY_RETURN(each(ctx, n, set_number{grid, n, w.number, l->aggregate}));
    return download(ctx, 1, w.number + n, &l->aggregates);
}

} // namespace

sps_status spsi_coarse_aggregate(sps_coarse *l, int64_t *aggregates)
{
    const int64_t n = l->nodes;
    holder h(l->ctx);
    work w;

    SPS_TRY_RETURN(spsi_coarse_strength(l));
    SPS_TRY_RETURN(keep(l, n, &l->aggregate));
    SPS_TRY_RETURN(h.take(n, &w.t));
    SPS_TRY_RETURN(h.take(n, &w.u));
    SPS_TRY_RETURN(h.take(n, &w.flag));
    SPS_TRY_RETURN(h.take(n + 1, &w.number));
    SPS_TRY_RETURN(gather(l, w));
    SPS_TRY_RETURN(join_all(l, &h, w));
    SPS_TRY_RETURN(number_all(l, &h, w));
    give_back(l, &l->weight);
    *aggregates = l->aggregates;
    return SPS_OK;
}
