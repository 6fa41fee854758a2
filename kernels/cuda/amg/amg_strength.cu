/* SPDX-License-Identifier: BSD-3-Clause */
/* amg_strength.cu - finds the strong couplings between the nodes of a level;
 * solvers/amg/strength.c has the rule and the order of sums.
 *
 * For nodes of one row there are two passes over the matrix (the number of
 * strong couplings, their columns) beside the one that bounds its spectrum and
 * also finds the largest coupling of each row (amg_spectrum.cu).  For nodes of
 * several rows, the couplings of a node are merged once into memory for one
 * coupling per run of entries; usually its rows have the same columns, and each
 * run is processed by one lane. */
#include "cuda/amg/coarse.cuh"

namespace {

struct graph_view {
    const int64_t *rowptr;
    int32_t *col;
    double *weight;
};

__device__ __forceinline__ bool is_strong(double c, double theta, double a,
                                          double b)
{
    return c > 0 && c >= theta * fmin(a, b);
}

/* ------------------------------------------------------- nodes of one row */

/* Finds the strong couplings of a row by a group of lanes, for nodes of one
 * row. */
struct single_rows {
    entries A;
    const double *__restrict__ s, *__restrict__ most;

    /* Loads U entries of row i from p on, each G behind the one before: their
     * columns, or -1 from `end` on, and the strengths of their couplings, which
     * are 0 on the diagonal. */
    template <int G, int U>
    __device__ void load(int64_t p, int64_t end, int64_t i, int32_t *k,
                         double *c) const
    {
#pragma unroll
        for (int u = 0; u < U; u++) {
            k[u] = p + u * G < end ? A.col[p + u * G] : -1;
            c[u] = p + u * G < end ? A.val[p + u * G] : 0;
        }
#pragma unroll
        for (int u = 0; u < U; u++)
            c[u] = k[u] < 0 || k[u] == i ? 0 : -(c[u] * s[i] * s[k[u]]);
    }
    __device__ bool strong(double c, int64_t i, int32_t k) const
    {
        return k >= 0 && is_strong(c, SPS_COARSE_THETA, most[i], most[k]);
    }
    __device__ int64_t begin(int64_t i) const { return i < 0 ? 0 : A.rowptr[i]; }
    __device__ int64_t end(int64_t i) const
    {
        return i < 0 ? 0 : A.rowptr[i + 1];
    }
};

/* Numbers of entries that a lane loads together. */
constexpr int count_together = 8, list_together = 2;

struct count_strong : single_rows {
    int32_t *count;

    template <int G> __device__ void run(int64_t i, int lane) const
    {
        constexpr int U = count_together;
        int32_t k[U];
        double c[U];
        int found = 0;

        for (int64_t p = begin(i) + lane; p < end(i); p += U * G) {
            load<G, U>(p, end(i), i, k, c);
#pragma unroll
            for (int u = 0; u < U; u++) found += strong(c[u], i, k[u]);
        }
        __syncwarp();
        found = group_sum<G>(found);
        if (i >= 0 && lane == 0) count[i] = found;
    }
};

struct list_strong : single_rows {
    graph_view g;

    template <int G> __device__ void run(int64_t i, int lane) const
    {
        constexpr int U = list_together;
        const int64_t first = begin(i), last = end(i);
        const int64_t longest = group_most<32>(last - first);
        int64_t to = i < 0 ? 0 : g.rowptr[i];
        int32_t k[U];
        double c[U];

        for (int64_t t = 0; t < longest; t += U * G) {
            load<G, U>(first + t + lane, last, i, k, c);
#pragma unroll
            for (int u = 0; u < U; u++) {
                const bool mine = strong(c[u], i, k[u]);
                const unsigned all = group_ballot<G>(mine);
                const int64_t at = to + __popc(all & ((1u << lane) - 1));

                if (mine) {
                    g.col[at] = k[u];
                    g.weight[at] = c[u];
                }
                to += __popc(all);
            }
        }
    }
};

/* Counts the strong couplings of n rows of `mean` entries. */
sps_status count_all(sps_context *ctx, int64_t n, int64_t mean,
                     const count_strong &f)
{
    constexpr int U = count_together;

    return mean < U     ? launch_groups<1>(ctx, n, NULL, f)
         : mean < 2 * U ? launch_groups<2>(ctx, n, NULL, f)
         : mean < 4 * U ? launch_groups<4>(ctx, n, NULL, f)
                        : launch_groups<16>(ctx, n, NULL, f);
}

/* --------------------------------------------------- nodes of several rows */

/* Finds the couplings of a node by a warp, for nodes of several rows. */
struct several_rows {
    entries A;
    node_rows rows;
    const int32_t *__restrict__ node;
    const double *__restrict__ s;

    /* Returns whether the rows of node v have the same columns, as they usually
     * do: then the first row shows where the couplings are. */
    __device__ bool alike(int64_t v, int lane) const
    {
        const int64_t first = rows.begin(v), p = A.rowptr[first];
        const int64_t length = A.rowptr[first + 1] - p;
        bool same = true;

        for (int64_t i = first + 1; i < rows.begin(v + 1); i++) {
            const int64_t q = A.rowptr[i];
            const bool equal = A.rowptr[i + 1] - q == length;

            same = same && equal;
#pragma unroll 4
            for (int64_t t = lane; t < (equal ? length : 0); t += 32)
                same = same & (A.col[p + t] == A.col[q + t]);
        }
        return __all_sync(all_lanes, same);
    }
    /* If a run of entries of row i that belong to a node other than v begins at
     * entry p, returns that node, else -1. */
    __device__ int32_t begins(int64_t p, int64_t i, int64_t v) const
    {
        const int32_t u = node[A.col[p]];

        return u == v || (p > A.rowptr[i] && node[A.col[p - 1]] == u) ? -1 : u;
    }
};

/* Counts the runs of node v, each of which needs memory for one coupling. */
struct count_runs : several_rows {
    int32_t *count;

    template <int G> __device__ void run(int64_t v, int lane) const
    {
        int runs = 0;

        if (v < 0 || rows.begin(v) == rows.begin(v + 1)) {
            if (v >= 0 && lane == 0) count[v] = 0;
            return;
        }
        const int64_t first = rows.begin(v);
        const int64_t end = alike(v, lane) ? first + 1 : rows.begin(v + 1);

        for (int64_t i = first; i < end; i++)
            for (int64_t p = A.rowptr[i] + lane; p < A.rowptr[i + 1]; p += 32)
                runs += begins(p, i, v) >= 0;
        runs = group_sum<32>(runs);
        if (lane == 0) count[v] = runs;
    }
};

/* Adds c to the coupling with node u, which is at *at or after it, in `count`
 * couplings in ascending order; returns their new number. */
__device__ inline int add(int32_t *col, double *weight, int count, int *at,
                          int32_t u, double c)
{
    while (*at < count && col[*at] < u) ++*at;
    if (*at < count && col[*at] == u) {
        weight[*at] += c;
        return count;
    }
    for (int q = count; q > *at; q--) {
        col[q] = col[q - 1];
        weight[q] = weight[q - 1];
    }
    col[*at] = u;
    weight[*at] = c;
    return count + 1;
}

struct merge_couplings : several_rows {
    static constexpr int short_run = 6;
    graph_view g;
    double *most;
    int32_t *length;

    /* Computes the couplings of node v if its rows have different columns, in
     * one lane; returns their number. */
    __device__ int merge(int64_t v, int32_t *col, double *weight) const
    {
        int count = 0;

        for (int64_t i = rows.begin(v); i < rows.begin(v + 1); i++) {
            int at = 0;

            for (int64_t p = A.rowptr[i]; p < A.rowptr[i + 1]; p++) {
                const int32_t u = node[A.col[p]];
                const double c = A.val[p] * s[i] * s[A.col[p]];

                if (u != v) count = add(col, weight, count, &at, u, c * c);
            }
        }
        return count;
    }
    /* Returns the sum of squares of the run at position t of the rows of v, in
     * the order of the rows.  The rows have the same columns; those of a run
     * that is not longer than `short_run` are read once, all together. */
    __device__ double sum_run(int64_t v, int64_t t, int32_t u) const
    {
        const int64_t first = rows.begin(v), p = A.rowptr[first] + t;
        const int64_t left = A.rowptr[first + 1] - p;
        double other[short_run], sum = 0;
        int length = 0;
        bool on = true;

#pragma unroll
        for (int j = 0; j <= short_run; j++) {
            const int32_t k = j < left ? A.col[p + j] : -1;

            on = on && k >= 0 && node[k] == u;
            length += on;
            if (j < short_run) other[j] = k >= 0 ? s[k] : 0;
        }
        if (length > short_run) return sum_long_run(v, t, u);
        for (int64_t i = first; i < rows.begin(v + 1); i++) {
            const double *val = A.val + A.rowptr[i] + t, own = s[i];

#pragma unroll
            for (int j = 0; j < short_run; j++) {
                const double c = j < length ? val[j] * own * other[j] : 0;

                sum += c * c;
            }
        }
        return sum;
    }
    __device__ double sum_long_run(int64_t v, int64_t t, int32_t u) const
    {
        double sum = 0;

        for (int64_t i = rows.begin(v); i < rows.begin(v + 1); i++)
            for (int64_t p = A.rowptr[i] + t;
                 p < A.rowptr[i + 1] && node[A.col[p]] == u; p++) {
                const double c = A.val[p] * s[i] * s[A.col[p]];

                sum += c * c;
            }
        return sum;
    }
    /* Computes `runs` couplings of node v, one in each lane: `listed` has the
     * positions of their runs in a row. */
    __device__ void sum_runs(int64_t v, int lane, const int32_t *listed,
                             int runs, int32_t *col, double *weight) const
    {
        if (lane < runs) {
            const int32_t t = listed[lane];
            const int32_t u = node[A.col[A.rowptr[rows.begin(v)] + t]];

            col[lane] = u;
            weight[lane] = sum_run(v, t, u);
        }
    }
    /* Computes the couplings of node v if its rows have the same columns, one
     * run of entries in each lane; returns their number.  The positions of runs
     * are listed first, so that most lanes have one. */
    __device__ int merge_alike(int64_t v, int lane, int32_t *col,
                               double *weight) const
    {
        __shared__ int32_t list[256 / 32][64];
        int32_t *own = list[threadIdx.x / 32];
        const int64_t i = rows.begin(v), first = A.rowptr[i];
        const int64_t end = A.rowptr[i + 1];
        int count = 0, listed = 0;

        for (int64_t base = first; base < end; base += 32) {
            const int64_t p = base + lane;
            const bool some = p < end && begins(p, i, v) >= 0;
            const unsigned all = group_ballot<32>(some);

            if (some)
                own[listed + __popc(all & ((1u << lane) - 1))] =
                    (int32_t)(p - first);
            listed += __popc(all);
            __syncwarp();
            if (listed < 32) continue;
            sum_runs(v, lane, own, 32, col + count, weight + count);
            listed -= 32;
            count += 32;
            __syncwarp();
            if (lane < listed) own[lane] = own[lane + 32];
            __syncwarp();
        }
        sum_runs(v, lane, own, listed, col + count, weight + count);
        return count + listed;
    }
    template <int G> __device__ void run(int64_t v, int lane) const
    {
        int count = 0;

        if (v < 0) return;
        double *weight = g.weight + g.rowptr[v], largest = 0;
        int32_t *col = g.col + g.rowptr[v];

        if (rows.begin(v) < rows.begin(v + 1)) {
            if (alike(v, lane)) count = merge_alike(v, lane, col, weight);
            else if (lane == 0) count = merge(v, col, weight);
            count = __shfl_sync(all_lanes, count, 0);
            __syncwarp();
        }
        for (int q = lane; q < count; q += 32) {
            weight[q] = sqrt(weight[q]);
            if (weight[q] > largest) largest = weight[q];
        }
        largest = group_most<32>(largest);
        if (lane > 0) return;
        most[v] = largest;
        length[v] = count;
    }
};

/* Moves the strong couplings of node v to the front of its memory, and counts
 * them.  A group of lanes loads G couplings before it stores those of them that
 * are strong, at or before the places that it has loaded. */
struct select_strong {
    graph_view g;
    const double *most;
    const int32_t *length;
    int32_t *count;

    template <int G> __device__ void run(int64_t v, int lane) const
    {
        const int64_t first = v < 0 ? 0 : g.rowptr[v];
        const int all = v < 0 ? 0 : length[v];
        const double own = v < 0 ? 0 : most[v];
        const int steps = __reduce_max_sync(all_lanes, (all + G - 1) / G);
        int64_t to = first;

        for (int t = 0; t < steps; t++) {
            const int q = t * G + lane;
            const int32_t u = q < all ? g.col[first + q] : 0;
            const double c = q < all ? g.weight[first + q] : 0;
            const bool mine = q < all && is_strong(c, SPS_COARSE_THETA_BLOCKS,
                                                   own, most[u]);
            const unsigned strong = group_ballot<G>(mine);
            const int64_t at = to + __popc(strong & ((1u << lane) - 1));

            if (mine) {
                g.col[at] = u;
                g.weight[at] = c;
            }
            __syncwarp();
            to += __popc(strong);
        }
        if (v >= 0 && lane == 0) count[v] = (int32_t)(to - first);
    }
};

struct close_gaps {
    graph_view from, to;

    template <int G> __device__ void run(int64_t v, int lane) const
    {
        if (v < 0) return;
        const int64_t begin = to.rowptr[v], end = to.rowptr[v + 1];
        const int64_t p = from.rowptr[v] - begin;

        for (int64_t q = begin + lane; q < end; q += G) {
            to.col[q] = from.col[p + q];
            to.weight[q] = from.weight[p + q];
        }
    }
};

/* Computes offsets from the counts, and allocates memory for the strong
 * couplings. */
sps_status open_graph(sps_coarse *l, const int32_t *count)
{
    SPS_TRY_RETURN(keep(l, l->nodes + 1, &l->rowptr));
    SPS_TRY_RETURN(offsets(l->ctx, count, l->nodes, l->rowptr, &l->edges));
    SPS_TRY_RETURN(keep(l, l->edges, &l->col));
    return keep(l, l->edges, &l->weight);
}

sps_status strength_single(sps_coarse *l)
{
    sps_context *ctx = l->ctx;
    const int64_t n = l->nodes;
    const int64_t mean = l->A.nnz / (n + 1);
    double d[SPS_COARSE_STEPS], off[SPS_COARSE_STEPS - 1], bound;
    int32_t *count;
    holder h(ctx);

    if (!l->most)
        SPS_TRY_RETURN(spsi_coarse_lanczos(l, false, d, off, &bound));
    const single_rows s = {entries_of(&l->A), l->scale, l->most};

    SPS_TRY_RETURN(h.take(n, &count));
    if (n > 0) SPS_TRY_RETURN(count_all(ctx, n, mean, {s, count}));
    SPS_TRY_RETURN(open_graph(l, count));
    SPS_TRY_RETURN(each_group(ctx, n, mean / list_together, NULL,
                              list_strong{s, {l->rowptr, l->col, l->weight}}));
    give_back(l, &l->most);
    return SPS_OK;
}

sps_status strength_several(sps_coarse *l)
{
    sps_context *ctx = l->ctx;
    const int64_t n = l->nodes;
    const several_rows s = {entries_of(&l->A), {l->start}, l->node, l->scale};
    graph_view room;
    int64_t runs, *rowptr;
    int32_t *count, *length;
    double *most;
    holder h(ctx);

    SPS_TRY_RETURN(h.take(n, &count));
    SPS_TRY_RETURN(h.take(n, &length));
    SPS_TRY_RETURN(h.take(n, &most));
    SPS_TRY_RETURN(h.take(n + 1, &rowptr));
    if (n == 0) return open_graph(l, count);
    SPS_TRY_RETURN(launch_groups<32>(ctx, n, NULL, count_runs{s, count}));
    SPS_TRY_RETURN(offsets(ctx, count, n, rowptr, &runs));
    SPS_TRY_RETURN(h.take(runs, &room.col));
    SPS_TRY_RETURN(h.take(runs, &room.weight));
    room.rowptr = rowptr;
    SPS_TRY_RETURN(launch_groups<32>(ctx, n, NULL,
                                     merge_couplings{s, room, most, length}));
    SPS_TRY_RETURN(each_group(ctx, n, runs / n, NULL,
                              select_strong{room, most, length, count}));
    SPS_TRY_RETURN(open_graph(l, count));
    return each_group(ctx, n, runs / n, NULL,
                      close_gaps{room, {l->rowptr, l->col, l->weight}});
}

} // namespace

sps_status spsi_coarse_strength(sps_coarse *l)
{
    return l->node ? strength_several(l) : strength_single(l);
}
