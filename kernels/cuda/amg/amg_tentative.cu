/* SPDX-License-Identifier: BSD-3-Clause */
/* amg_tentative.cu - computes the tentative prolongator T on the device: in
 * each aggregate the near-null vectors are orthonormalised, B = Q R, and T = S
 * Q, where S is the scaling.  solvers/amg/tentative.c defines T and the order
 * of its sums.
 *
 * Nodes are sorted by aggregate with a stable radix sort.  With one near-null
 * vector, each aggregate is processed by one thread; with several, by one warp:
 * its lanes compute products of 32 rows at a time, and all of them add these up
 * in the order of the rows, as the host does. */
#include "cuda/amg/coarse.cuh"
#include "cuda/base/watch.h"

#include <cub/device/device_radix_sort.cuh>

namespace {

/* The nodes sorted by aggregate: in `node`, those of aggregate a begin at
 * first[a], in ascending order. */
struct members {
    const int64_t *__restrict__ first;
    const int32_t *__restrict__ node;
};

struct set_keys {
    const int32_t *aggregate;
    uint32_t aggregates;
    uint32_t *key;
    int32_t *node;

    __device__ void operator()(int64_t v) const
    {
        key[v] = aggregate[v] < 0 ? aggregates : (uint32_t)aggregate[v];
        node[v] = (int32_t)v;
    }
};

/* Finds first[]: thread t sets the offsets of the aggregates that begin between
 * nodes t - 1 and t of the sorted list. */
struct find_first {
    const uint32_t *key;
    int64_t nodes, aggregates;
    int64_t *first;

    __device__ void operator()(int64_t t) const
    {
        const int64_t from = t > 0 ? (int64_t)key[t - 1] + 1 : 0;
        const int64_t to = t < nodes ? (int64_t)key[t] : aggregates;

        for (int64_t a = from; a <= to && a <= aggregates; a++) first[a] = t;
    }
};

int bits_of(int64_t n)
{
    int bits = 1;

    while (bits < 31 && (int64_t)1 << bits < n) bits++;
    return bits;
}

/* Lists the nodes of each aggregate, in memory of h. */
sps_status list_members(const sps_coarse *l, holder *h, members *m)
{
    sps_context *ctx = l->ctx;
    const int64_t n = l->nodes;
    const int bits = bits_of(l->aggregates + 1);
    size_t bytes = 0;
    uint32_t *key, *sorted;
    int32_t *node, *member;
    int64_t *first;
    char *room;

    SPS_TRY_RETURN(h->take(2 * n, &key));
    SPS_TRY_RETURN(h->take(2 * n, &node));
    SPS_TRY_RETURN(h->take(l->aggregates + 1, &first));
    sorted = key + n;
    member = node + n;
    SPS_TRY_RETURN(each(ctx, n, set_keys{l->aggregate,
                                         (uint32_t)l->aggregates, key, node}));
    SPS_CUDA(ctx, cub::DeviceRadixSort::SortPairs(nullptr, bytes, key, sorted,
                                                  node, member, n, 0, bits,
                                                  stream_of(ctx)));
    SPS_TRY_RETURN(h->take((int64_t)bytes, &room));
    SPS_CUDA(ctx, cub::DeviceRadixSort::SortPairs(room, bytes, key, sorted,
                                                  node, member, n, 0, bits,
                                                  stream_of(ctx)));
    SPS_TRY_RETURN(each(ctx, n + 1, find_first{sorted, n, l->aggregates,
                                               first}));
    *m = {first, member};
    return SPS_OK;
}

/* -------------------------------------------------------------- Q and R */

struct scale_near {
    const double *scale, *near;
    int q;
    double *Q;

    __device__ void operator()(int64_t e) const
    {
        const int64_t i = e / q;

        Q[e] = scale[i] > 0 ? near[e] / scale[i] : 0;
    }
};

/* For one near-null vector: its norm over the rows of an aggregate is R, and Q
 * is the vector divided by it. */
struct one_vector {
    members m;
    node_rows rows;
    double *Q, *R;
    uint64_t *kept;
    bool again;

    __device__ double length(int64_t a) const
    {
        double sum = 0;

        for (int64_t p = m.first[a]; p < m.first[a + 1]; p++) {
            const int32_t v = m.node[p];

            for (int64_t i = rows.begin(v); i < rows.begin(v + 1); i++)
                sum += Q[i] * Q[i];
        }
        return sqrt(sum);
    }
    __device__ void operator()(int64_t a) const
    {
        const double size = length(a), f = size > 0 ? 1 / size : 0;

        if (!again) kept[a] = size > SPS_COARSE_RANK * fmax(0.0, size);
        R[a] = kept[a] ? size : 0;
        if (!kept[a]) return;
        for (int64_t p = m.first[a]; p < m.first[a + 1]; p++) {
            const int32_t v = m.node[p];

            for (int64_t i = rows.begin(v); i < rows.begin(v + 1); i++)
                Q[i] = f * (Q[i] - 0 * Q[i]);
        }
    }
};

/* For several near-null vectors: the rows of each aggregate, in the order of
 * its nodes. */
struct several_vectors {
    const int64_t *__restrict__ first;   /* position in `row` of the first row
                                            of each aggregate */
    const int32_t *__restrict__ row;
    int q;
    double *Q, *R;
    uint64_t *kept;
    bool again;
};

/* Returns the product of columns x and y over the rows of aggregate a, in every
 * lane. */
__device__ inline double dot(const several_vectors &s, int64_t a, int x, int y)
{
    const int64_t end = s.first[a + 1];
    double sum = 0;

    for (int64_t p = s.first[a]; p < end; p += 32) {
        const int64_t mine = p + threadIdx.x % 32;
        double product = 0;

        if (mine < end) {
            const double *Q = s.Q + (int64_t)s.row[mine] * s.q;

            product = Q[x] * Q[y];
        }
        /* Lanes without a row add 0, which changes no sum. */
#pragma unroll
        for (int t = 0; t < 32; t++)
            sum += __shfl_sync(all_lanes, product, t);
    }
    return sum;
}

/* Replaces column y by f (y - h x) over the rows of aggregate a. */
__device__ inline void change(const several_vectors &s, int64_t a, int x,
                              double h, int y, double f)
{
    for (int64_t p = s.first[a] + threadIdx.x % 32; p < s.first[a + 1];
         p += 32) {
        double *Q = s.Q + (int64_t)s.row[p] * s.q;

        Q[y] = f * (Q[y] - h * Q[x]);
    }
    __syncwarp();
}

/* Computes column y of Q and of R; `kept` has a bit for each vector that has
 * been kept so far. */
__device__ inline uint64_t orthonormalise(const several_vectors &s, int64_t a,
                                          int y, double most, uint64_t kept)
{
    double *R = s.R + a * s.q * s.q, length;

    for (int pass = 0; pass < 2; pass++)
        for (int x = 0; x < y; x++) {
            if (!(kept >> x & 1)) continue;
            const double h = dot(s, a, x, y);

            if (threadIdx.x % 32 == 0) R[x * s.q + y] += h;
            change(s, a, x, h, y, 1);
        }
    length = sqrt(dot(s, a, y, y));
    if (!s.again && length > SPS_COARSE_RANK * most) kept |= 1ull << y;
    if (!(kept >> y & 1)) return kept;
    if (threadIdx.x % 32 == 0) R[y * s.q + y] = length;
    change(s, a, y, 0, y, length > 0 ? 1 / length : 0);
    return kept;
}

__global__ void __launch_bounds__(256)
orthonormalise_all(const several_vectors s, int64_t aggregates)
{
    const int64_t a = ((int64_t)blockIdx.x * 256 + threadIdx.x) / 32;
    double most = 0;

    if (a >= aggregates) return;
    uint64_t kept = s.again ? s.kept[a] : 0;

    for (int y = 0; y < s.q; y++) most = fmax(most, sqrt(dot(s, a, y, y)));
    for (int y = 0; y < s.q; y++) kept = orthonormalise(s, a, y, most, kept);
    if (threadIdx.x % 32 == 0) s.kept[a] = kept;
}

/* Computes first[a] and row from the nodes of each aggregate. */
struct count_rows {
    members m;
    node_rows rows;
    int32_t *count;           /* number of rows of the nodes of each
                                 aggregate */

    __device__ void operator()(int64_t a) const
    {
        int64_t sum = 0;

        for (int64_t p = m.first[a]; p < m.first[a + 1]; p++)
            sum += rows.begin(m.node[p] + 1) - rows.begin(m.node[p]);
        count[a] = (int32_t)sum;
    }
};

struct list_rows {
    members m;
    node_rows rows;
    const int64_t *first;
    int32_t *row;

    __device__ void operator()(int64_t a) const
    {
        int64_t to = first[a];

        for (int64_t p = m.first[a]; p < m.first[a + 1]; p++)
            for (int64_t i = rows.begin(m.node[p]);
                 i < rows.begin(m.node[p] + 1); i++)
                row[to++] = (int32_t)i;
    }
};

sps_status factor_several(sps_coarse *l, holder *h, members m, double *Q,
                          bool again)
{
    sps_context *ctx = l->ctx;
    const int64_t aggregates = l->aggregates;
    int32_t *count, *row;
    int64_t *first;

    SPS_TRY_RETURN(h->take(aggregates, &count));
    SPS_TRY_RETURN(h->take(aggregates + 1, &first));
    SPS_TRY_RETURN(h->take(l->A.nrow, &row));
    SPS_TRY_RETURN(each(ctx, aggregates, count_rows{m, {l->start}, count}));
    SPS_TRY_RETURN(spsi_cuda_scan(ctx, count, aggregates, first));
    SPS_TRY_RETURN(each(ctx, aggregates, list_rows{m, {l->start}, first, row}));
    return run_kernel(
        ctx, (unsigned)ceil_div(aggregates, 8), 256, orthonormalise_all,
        several_vectors{first, row, l->vectors, Q, l->R, l->kept, again},
        aggregates);
}

/* ------------------------------------------------------------------ rows */

struct count_kept {
    const uint64_t *kept;
    int32_t *columns;

    __device__ void operator()(int64_t a) const
    {
        columns[a] = __popcll(kept[a]);
    }
};

struct not_one {
    const int32_t *columns;

    __device__ int64_t operator()(int64_t a) const { return columns[a] != 1; }
};

struct rows_view {
    const int32_t *__restrict__ node, *__restrict__ aggregate;
    const int64_t *__restrict__ place;

    /* Returns the aggregate of row i, or -1 if it belongs to none. */
    __device__ int32_t of(int64_t i) const
    {
        return aggregate[node ? node[i] : i];
    }
};

struct row_columns {
    rows_view r;
    int32_t *count;

    __device__ void operator()(int64_t i) const
    {
        const int32_t a = r.of(i);

        count[i] = a < 0 ? 0 : (int32_t)(r.place[a + 1] - r.place[a]);
    }
};

/* Computes the rows of T = S Q, in the columns of the aggregate of their
 * node. */
struct fill_rows {
    rows_view r;
    const uint64_t *kept;
    const double *scale, *Q;
    int q;
    const int64_t *rowptr;
    int32_t *col;
    double *val;

    __device__ void operator()(int64_t i) const
    {
        const int32_t a = r.of(i);
        int64_t to = rowptr[i];

        if (a < 0) return;
        int32_t column = (int32_t)r.place[a];

        for (int y = 0; y < q; y++) {
            if (!(kept[a] >> y & 1)) continue;
            col[to] = column++;
            val[to++] = scale[i] * Q[i * q + y];
        }
    }
};

/* Computes the near-null vectors of the next level: the rows of R that are
 * kept. */
struct fill_near {
    const uint64_t *kept;
    const int64_t *place;
    const double *R;
    int q;
    double *near;

    __device__ void operator()(int64_t a) const
    {
        double *to = near + place[a] * q;

        for (int x = 0; x < q; x++) {
            if (!(kept[a] >> x & 1)) continue;
            for (int y = 0; y < q; y++) *to++ = R[(a * q + x) * q + y];
        }
    }
};

/* Numbers the columns of T and computes the offsets of its rows.  `other` is a
 * counter. */
sps_status number_columns(sps_coarse *l, int32_t *width,
                          unsigned long long *other, sps_csr *made)
{
    sps_context *ctx = l->ctx;
    const int64_t n = l->A.nrow;

    SPS_TRY_RETURN(clear(ctx, 1, other));
    SPS_TRY_RETURN(each(ctx, l->aggregates, count_kept{l->kept, width}));
    SPS_TRY_RETURN(count(ctx, l->aggregates, not_one{width}, other));
    SPS_TRY_RETURN(spsi_cuda_scan(ctx, width, l->aggregates, l->place));
    SPS_TRY_RETURN(each(ctx, n, row_columns{{l->node, l->aggregate, l->place},
                                            width}));
    return open_offsets(ctx, width, n, 0, made);
}

/* Reads what the functions above have counted, with one wait. */
sps_status read_counts(const sps_coarse *l, const unsigned long long *other,
                       sps_csr *made, bool *single)
{
    unsigned long long several;
    const sps_cuda_piece found[] = {
        {l->place + l->aggregates, &made->ncol, sizeof made->ncol},
        {made->rowptr + made->nrow, &made->nnz, sizeof made->nnz},
        {other, &several, sizeof several}};

    SPS_TRY_RETURN(spsi_cuda_read(l->ctx, found, 3));
    *single = several == 0;
    return SPS_OK;
}

/* Makes T from Q. */
sps_status make_rows(sps_coarse *l, const double *Q, sps_csr *made,
                     bool *single)
{
    sps_context *ctx = l->ctx;
    const int64_t n = l->A.nrow;
    const rows_view r = {l->node, l->aggregate, l->place};
    unsigned long long *other;
    holder h(ctx);
    int32_t *width;

    SPS_TRY_RETURN(h.take(n > l->aggregates ? n : l->aggregates, &width));
    SPS_TRY_RETURN(h.take(1, &other));
    SPS_TRY_RETURN(number_columns(l, width, other, made));
    SPS_TRY_RETURN(read_counts(l, other, made, single));
    SPS_TRY_RETURN(open_entries(ctx, made->nnz, made));
    return each(ctx, n, fill_rows{r, l->kept, l->scale, Q, l->vectors,
                                  made->rowptr, made->col,
                                  (double *)made->val});
}

} // namespace

sps_status spsi_coarse_tentative(sps_coarse *l, bool again, int64_t *columns,
                                 bool *single)
{
    sps_context *ctx = l->ctx;
    const int64_t q = l->vectors, n = l->A.nrow;
    sps_csr made = {};
    holder h(ctx);
    members m;
    double *Q;

    SPS_TRY_RETURN(keep(l, l->aggregates, &l->kept));
    SPS_TRY_RETURN(keep(l, l->aggregates + 1, &l->place));
    SPS_TRY_RETURN(keep(l, l->aggregates * q * q, &l->R));
    SPS_TRY_RETURN(clear(ctx, l->aggregates * q * q, l->R));
    SPS_TRY_RETURN(h.take(n * q, &Q));
    SPS_TRY_RETURN(list_members(l, &h, &m));
    SPS_TRY_RETURN(each(ctx, n * q, scale_near{l->scale, l->near, (int)q, Q}));
    if (q == 1)
        SPS_TRY_RETURN(each(ctx, l->aggregates,
                            one_vector{m, {l->start}, Q, l->R, l->kept,
                                       again}));
    else
        SPS_TRY_RETURN(factor_several(l, &h, m, Q, again));
    sps_csr_destroy(ctx, &l->T);
    SPS_TRY_RETURN(spsi_cuda_csr_finish(ctx, make_rows(l, Q, &made, single),
                                        &made, &l->T));
    *columns = l->T->ncol;
    return SPS_OK;
}

sps_status spsi_coarse_fill_near(const sps_coarse *l, double *near)
{
    return each(l->ctx, l->aggregates,
                ::fill_near{l->kept, l->place, l->R, l->vectors, near});
}
