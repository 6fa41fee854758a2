/* SPDX-License-Identifier: BSD-3-Clause */
/* amg_roots.cu - chooses the roots of aggregates on the device: a maximal set
 * of nodes of which no two are within distance 2 (MIS-2), by the method of
 * solvers/amg/roots.c.
 *
 * Undecided nodes, and those near them, are lists that shrink.  The order of a
 * list varies from run to run and does not matter, since each node is decided
 * by integers of the step before.  A thread block appends the nodes that it
 * keeps with one atomic addition, because additions to one address are
 * serialised.  All rounds are one cooperative launch, whose thread blocks wait
 * for each other between steps: most rounds are short, and the host need not
 * know how many there are.
 *
 * Nodes that are not in the graph have t = u = 0, the smallest value, and need
 * no special treatment. */
#include "cuda/amg/coarse.cuh"

#include <cooperative_groups.h>

namespace {

constexpr uint64_t in = UINT64_MAX, out = 0;

struct graph {
    const int64_t *__restrict__ rowptr;
    const int32_t *__restrict__ col;
};

/* The lists of undecided nodes, and of nodes near them, before even and before
 * odd rounds. */
struct lists {
    int32_t *open[2], *near[2];
    int *opens, *nears;       /* their lengths, two each, zero at first */
};

struct task {
    graph g;
    const int32_t *aggregate; /* nodes with an aggregate are not in the graph */
    uint64_t *t, *u;
    int64_t n;
    lists l;
};

/* Appends the nodes i of the threads with keep = true to a list, which has
 * *count nodes; called by all threads of a block. */
__device__ __forceinline__ void append(bool keep, int32_t i, int32_t *list,
                                       int *count)
{
    constexpr int warps = 256 / 32;
    __shared__ int kept[warps], base;
    const int warp = (int)threadIdx.x / 32;
    const unsigned all = __ballot_sync(all_lanes, keep);
    int below = __popc(all & ((1u << threadIdx.x % 32) - 1)), sum = 0;

    if (threadIdx.x % 32 == 0) kept[warp] = __popc(all);
    __syncthreads();
    for (int w = 0; w < warps; w++) {
        if (w < warp) below += kept[w];
        sum += kept[w];
    }
    if (threadIdx.x == 0 && sum > 0) base = atomicAdd(count, sum);
    __syncthreads();
    if (keep) list[base + below] = i;
}

/* Number of neighbours that a thread loads together: each load waits for the
 * ones before it, so the more of them wait together, the better. */
constexpr int together = 8;

/* Returns the maximum of x over node i and its neighbours, in all lanes of the
 * group, or 0 if i is -1. */
template <int G>
__device__ __forceinline__ uint64_t most_near(const graph &g, const uint64_t *x,
                                              int32_t i, int lane)
{
    const int64_t end = i < 0 ? 0 : g.rowptr[i + 1];
    unsigned long long most = i < 0 ? 0 : x[i];

    for (int64_t p = i < 0 ? 0 : g.rowptr[i] + lane; p < end;
         p += together * G) {
        int32_t k[together];

#pragma unroll
        for (int u = 0; u < together; u++)
            k[u] = p + u * G < end ? g.col[p + u * G] : -1;
#pragma unroll
        for (int u = 0; u < together; u++) {
            const unsigned long long other = k[u] < 0 ? 0 : x[k[u]];

            if (other > most) most = other;
        }
    }
    __syncwarp();
    return group_most<G>(most);
}

/* Lists the nodes of the graph, and those that are undecided with their first
 * priority t[i]; u[i] becomes `out`. */
__device__ __forceinline__ void open_lists(const task &w)
{
    for (int64_t first = (int64_t)blockIdx.x * 256; first < w.n;
         first += (int64_t)gridDim.x * 256) {
        const int64_t i = first + threadIdx.x;
        const bool near = i < w.n && w.aggregate[i] == -1;
        const bool open = near && w.t[i] != out;

        if (i < w.n) w.u[i] = out;
        if (open) w.t[i] = spsi_coarse_priority((uint64_t)i, 0);
        append(near, (int32_t)i, w.l.near[0], w.l.nears);
        append(open, (int32_t)i, w.l.open[0], w.l.opens);
    }
}

/* Computes u[i], the largest t among node i and its neighbours; returns whether
 * the next round needs node i. */
template <int G>
__device__ __forceinline__ bool spread(const task &w, int32_t i, int lane)
{
    const uint64_t most = most_near<G>(w.g, w.t, i, lane);

    if (i >= 0 && lane == 0) w.u[i] = most;
    return most != in && most != out;
}

/* Decides whether node i becomes a root or can no longer become one; if
 * neither, it draws a new priority, and true is returned in lane 0. */
template <int G>
__device__ __forceinline__ bool decide(const task &w, uint64_t round, int32_t i,
                                       int lane)
{
    const uint64_t own = i < 0 ? out : w.t[i];
    const uint64_t most = most_near<G>(w.g, w.u, i, lane);
    const bool goes_in = most == own, open = !goes_in && most != in;

    if (i < 0 || lane > 0) return false;
    w.t[i] = goes_in ? in
           : open ? spsi_coarse_priority((uint64_t)i, round + 1) : out;
    return open;
}

/* Appends to `next` those of `count` nodes for which f(i, lane) is true in lane
 * 0 of a group of G threads; i is -1 for groups without a node. */
template <int G, class F>
__device__ __forceinline__ void run_list(const int32_t *node, int count,
                                         int32_t *next, int *kept, const F &f)
{
    constexpr int groups = 256 / G;
    const int lane = (int)threadIdx.x % G;

    for (int64_t first = (int64_t)blockIdx.x * groups; first < count;
         first += (int64_t)gridDim.x * groups) {
        const int64_t q = first + (int)threadIdx.x / G;
        const int32_t i = q < count ? node[q] : -1;
        const bool keep = f(i, lane) && i >= 0 && lane == 0;

        append(keep, i, next, kept);
    }
}

template <int G>
__global__ void __launch_bounds__(256, 4) find_roots(const task w)
{
    const cooperative_groups::grid_group grid =
        cooperative_groups::this_grid();
    const lists &l = w.l;

    open_lists(w);
    grid.sync();
    for (uint64_t round = 0;; round++) {
        const int now = (int)(round % 2), next = 1 - now;
        const int opens = *(volatile int *)(l.opens + now);
        const int nears = *(volatile int *)(l.nears + now);

        if (opens == 0) return;
        run_list<G>(l.near[now], nears, l.near[next], l.nears + next,
                    [&](int32_t i, int lane) { return spread<G>(w, i, lane); });
        grid.sync();
        if (blockIdx.x == 0 && threadIdx.x == 0)
            l.opens[now] = l.nears[now] = 0;   /* all have read them */
        run_list<G>(l.open[now], opens, l.open[next], l.opens + next,
                    [&](int32_t i, int lane) {
                        return decide<G>(w, round, i, lane);
                    });
        grid.sync();
    }
}

template <int G> sps_status launch_roots(sps_context *ctx, task w)
{
    const int sms = spsi_cuda_state(ctx)->sms;
    const int64_t blocks = ceil_div(w.n, 256 / G);
    void *arguments[] = {&w};
    int most;

    SPS_CUDA(ctx, cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                      &most, find_roots<G>, 256, 0));
    most *= sms;
    SPS_CUDA(ctx, cudaLaunchCooperativeKernel(
                      (const void *)find_roots<G>,
                      dim3((unsigned)(blocks < most ? blocks : most)),
                      dim3(256), arguments, 0, stream_of(ctx)));
    return SPS_OK;
}

} // namespace

sps_status spsi_coarse_roots(sps_coarse *l, uint64_t *t, uint64_t *u)
{
    const int64_t n = l->nodes, mean = l->edges / (n + 1);
    sps_context *ctx = l->ctx;
    holder h(ctx);
    int32_t *node;
    int *count;

    if (n == 0) return SPS_OK;
    SPS_TRY_RETURN(h.take(4 * n, &node));
    SPS_TRY_RETURN(h.take(4, &count));
    SPS_TRY_RETURN(clear(ctx, 4, count));
    const task w = {{l->rowptr, l->col}, l->aggregate, t, u, n,
                    {{node, node + n}, {node + 2 * n, node + 3 * n}, count,
                     count + 2}};

    return mean < together      ? launch_roots<1>(ctx, w)
         : mean < 2 * together  ? launch_roots<2>(ctx, w)
         : mean < 4 * together  ? launch_roots<4>(ctx, w)
         : mean < 16 * together ? launch_roots<16>(ctx, w)
                                : launch_roots<32>(ctx, w);
}
