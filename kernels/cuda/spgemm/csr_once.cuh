/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_once.cuh - C = A B in one pass where most rows of C have about the same
 * number of entries: no pass counts the entries of C first (after ApSpGEMM, ACM
 * TACO 2024).
 *
 * The entries of a sample of rows are counted, which tells a table that nearly
 * all rows fit.  Columns and values are computed with this table and stored
 * with room for a full table in each row; then the rows are moved together.
 * Rows that do not fit are counted and computed by the other passes.
 *
 * A group of threads loads the entries of four rows of B before it adds them,
 * in ascending order as everywhere (csr_product.cuh).
 *
 * Bytes: A once, B as often as the caches have evicted it, C twice, and once
 * more read. */
#ifndef SPS_CUDA_CSR_ONCE_CUH
#define SPS_CUDA_CSR_ONCE_CUH

#include "core/backend.h"
#include "cuda/spgemm/csr_fill.cuh"

namespace {

constexpr int once_most = 9;         /* largest table, 2^9 columns */
constexpr int64_t once_bytes = (int64_t)1 << 30;   /* largest memory for rows */
constexpr int64_t once_small = (int64_t)64 << 20;  /* memory taken unasked */
constexpr int once_ahead = 4;        /* rows of B that are loaded together */
constexpr int64_t once_few = 1 << 16;   /* rows, see once_bits */

/* As walk_row, with loads of several rows of B in progress.  It ends early when
 * each group of the warp has come to its end or has a thread that found the
 * table `full`. */
template <int G, class V, class F>
__device__ __forceinline__ void
walk_ahead(const group<G> &g, const csr_factor<V> &A, const csr_factor<V> &B,
           row_part row, const bool &full, const F &add)
{
    const int longest = g.most(row.length);

    for (int base = 0; base < longest; base += G) {
        const factor_entry<V> mine = load_entry(
            A, B, row.begin + base + g.lane, row.begin + row.length);
        const int entries = min(longest - base, G);

#pragma unroll 1
        for (int e = 0; e < entries; e += once_ahead) {
            const bool over = g.ballot(full) != 0;
            int32_t c[once_ahead];
            V b[once_ahead];

            if (!__any_sync(all_lanes, !over && base + e < row.length)) return;
#pragma unroll
            for (int u = 0; u < once_ahead; u++) {
                const int64_t from = g.get(mine.start, e + u) + g.lane;
                const bool some = g.lane < g.get(mine.length, e + u);

                c[u] = some ? B.col[from] : -1;
                b[u] = some ? B.val[from] : (V)0;
            }
#pragma unroll
            for (int u = 0; u < once_ahead; u++) {
                const V a = g.get(mine.a, e + u);
                const int64_t start = g.get(mine.start, e + u);
                const int length = g.get(mine.length, e + u);

                if (c[u] >= 0) add(a, b[u], c[u]);
#pragma unroll 1
                for (int q = G + g.lane;
                     __any_sync(all_lanes, q < length && !full); q += G)
                    if (q < length) add(a, B.val[start + q], B.col[start + q]);
                g.sync();
            }
        }
    }
}

/* The task of a launch: all n rows of C, with room for `room` entries each;
 * count[i] becomes the entries of row i, or 0 for a row that does not fit:
 * these, *left of them, are put into `rest`, in any order. */
struct once_task {
    int64_t n;
    int bits, room;
    int32_t *count, *rest;
    int *left;
};

template <int G, class V>
__global__ void __launch_bounds__(256)
fill_once(csr_factor<V> A, csr_factor<V> B, once_task w, int32_t *col, V *val)
{
    const group<G> g;
    const int64_t number = group_number<G>();
    const int groups = (int)blockDim.x / G, mine = (int)threadIdx.x / G;
    const int64_t row = number < w.n ? number : -1;
    const int64_t at = row >= 0 ? row * w.room : 0;
    V *sum = (V *)product_shared + (mine << w.bits);
    int32_t *key = (int32_t *)((V *)product_shared + (groups << w.bits)) +
                   (mine << w.bits);
    bool full = false;

    for (int t = g.lane; t < 1 << w.bits; t += G) {
        key[t] = -1;
        sum[t] = (V)-0.0;
    }
    g.sync();
    walk_ahead(g, A, B, part_of(A, row), full, [&](V a, V b, int32_t c) {
        bool fresh;
        const int to = full ? -1
                     : table_insert(key, w.bits, c, 1 << w.bits, &fresh);

        full = to < 0;
        if (to >= 0) sum[to] = fma(a, b, sum[to]);
    });
    int n = pack_table(g, key, sum, w.bits);
    const bool fits = g.ballot(full) == 0 && n <= w.room;

    if (row >= 0 && g.lane == 0) {
        w.count[row] = fits ? n : 0;
        if (!fits) w.rest[atomicAdd(w.left, 1)] = (int32_t)row;
    }
    n = fits ? n : 0;
    if (g.most(n) <= rank_limit)
        write_by_rank(g, key, sum, n, col + at, val + at);
    else
        write_by_sort(g, key, sum, n, col + at, val + at);
}

/* Moves rows to their places in C.  Rows of more than `room` entries are those
 * that did not fit. */
template <int G, class V>
__global__ void __launch_bounds__(256)
move_rows(int64_t n, int room, const int64_t *__restrict__ rowptr,
          const int32_t *__restrict__ from_col, const V *__restrict__ from_val,
          int32_t *col, V *val)
{
    const int64_t i = group_number<G>();

    if (i >= n) return;
    const int64_t first = rowptr[i], from = i * room;
    const int length = (int)(rowptr[i + 1] - first);

    if (length > room) return;
    for (int t = (int)threadIdx.x % G; t < length; t += G) {
        col[first + t] = from_col[from + t];
        val[first + t] = from_val[from + t];
    }
}

/* size[i] = count[i] for the rows of a list. */
__global__ void __launch_bounds__(256)
take_counts(const int32_t *__restrict__ row, int64_t rows,
            const int32_t *__restrict__ count, int32_t *size)
{
    const int64_t t = (int64_t)blockIdx.x * 256 + threadIdx.x;

    if (t < rows) size[row[t]] = count[row[t]];
}

/* Memory of a product in one pass. */
struct once_room {
    int32_t *col, *rest;
    void *val;
    int *left;
};

/* Returns the number of threads for a row: at least the mean length of the rows
 * of B, so that most of them take one load, but not more than its table has
 * places (pack_table). */
int once_group(const product &p, int bits)
{
    const int64_t mean = ceil_div(p.B->nnz, p.B->nrow);
    const int least = bits <= 8 ? 4 : 1 << (bits - 6);
    const int group = mean <= 3 ? 4 : mean <= 7 ? 8 : mean <= 15 ? 16 : 32;
    const int wide = group > least ? group : least;

    return wide < 1 << bits ? wide : 1 << bits;
}

/* Returns the size of a table, in bits, that all rows of the sample fit, or
 * most of them unless `all`; 0 if rows differ too much. */
int table_for(const product &p, bool all, size_t entry)
{
    int64_t rows = 0, room = 0, left;
    int t = 0;

    for (int s = 0; s < tiers; s++) rows += p.sample[s];
    for (left = rows; left > (all ? 0 : rows / 64) && t < tiers; t++) {
        left -= p.sample[t];
        room += (int64_t)p.sample[t] * table_limit(least_bits + t);
    }
    const int bits = least_bits + t - 1, limit = table_limit(bits);

    return t > 0 && bits <= once_most && rows * limit <= 3 * room &&
           p.A->nrow * limit * (int64_t)entry <= once_bytes ? bits : 0;
}

/* Returns the size of a table that all but a few rows fit, or all of them if
 * there are not many: the passes over rows that do not fit take longer than
 * larger tables do. */
int once_bits(const product &p, size_t entry)
{
    const int all = p.A->nrow <= once_few ? table_for(p, true, entry) : 0;

    return all > 0 ? all : table_for(p, false, entry);
}

template <class V>
sps_status fill_rows_once(const product &p, const once_task &w,
                          const once_room &r)
{
    return with_group(once_group(p, w.bits), [&](auto constant) -> sps_status {
        constexpr int G = constant.value;
        unsigned blocks, threads;
        size_t shared;

        SPS_TRY_RETURN(launch_tier(p, fill_once<G, V>, G, w.bits,
                                   sizeof(V) + sizeof(int32_t), w.n, &blocks,
                                   &threads, &shared));
        fill_once<G, V><<<blocks, threads, shared, p.stream()>>>(
            factor_of<V>(p.A), factor_of<V>(p.B), w, r.col, (V *)r.val);
        SPS_LAUNCHED(p.ctx);
        return SPS_OK;
    });
}

template <class V>
sps_status move_all(const product &p, const once_task &w, const once_room &r,
                    const sps_csr *C)
{
    const int64_t mean = C->nnz / (w.n + 1);

    return with_group(mean <= 11 ? 8 : 16, [&](auto constant) -> sps_status {
        constexpr int G = constant.value;

        return run_kernel(p.ctx, (unsigned)ceil_div(w.n, 256 / G), 256,
                          move_rows<G, V>, w.n, w.room, C->rowptr, r.col,
                          (const V *)r.val, C->col, (V *)C->val);
    });
}

/* Counts the rows that did not fit, and lists them by tiers; C gets its offsets
 * and memory for entries. */
sps_status count_rest(product *p, holder *h, const once_room &r, int left,
                      sps_csr *C, row_list *tier)
{
    int32_t *size;
    int longest;

    SPS_TRY_RETURN(h->take(2 * p->A->nrow, &p->rest));
    SPS_TRY_RETURN(count_many(p, h, {r.rest, left}, {NULL, 0}));
    SPS_TRY_RETURN(h->take(p->A->nrow, &size));
    SPS_TRY_RETURN(clear(p->ctx, p->A->nrow, size));
    SPS_TRY_RETURN(run_items(p->ctx, left, take_counts, r.rest, left, p->count,
                             size));
    return open_result(*p, C, size, tier, &longest);
}

/* Computes the offsets of C for the case that all rows have fitted, the rows of
 * each tier in p->number and p->sample, and the number of rows that have
 * not. */
sps_status close_once(product *p, const once_room &r, sps_csr *C, int *left)
{
    SPS_TRY_RETURN(take_offsets(*p, C));
    SPS_TRY_RETURN(spsi_cuda_scan(p->ctx, p->count, C->nrow, C->rowptr));
    SPS_TRY_RETURN(count_rows_of_tiers(*p, p->count, 1));
    const sps_cuda_piece found[] = {
        {C->rowptr + C->nrow, &C->nnz, sizeof C->nnz},
        {r.left, left, sizeof *left},
        {p->number, p->sample, sizeof p->sample}};

    return spsi_cuda_read(p->ctx, found, 3);
}

template <class V>
sps_status make_once(product *p, holder *h, const once_task &w,
                     const once_room &r, sps_csr *C)
{
    row_list tier[tiers];
    int left;

    SPS_TRY_RETURN(fill_rows_once<V>(*p, w, r));
    SPS_TRY_RETURN(close_once(p, r, C, &left));
    p->all_once = left == 0;
    if (p->all_once) SPS_TRY_RETURN(take_entries(*p, C));
    else SPS_TRY_RETURN(count_rest(p, h, r, left, C, tier));
    if (C->nnz == 0) return SPS_OK;
    SPS_TRY_RETURN(move_all<V>(*p, w, r, C));
    return p->all_once ? SPS_OK
                       : fill_all<V>(*p, tier, false, 0, C, NULL);
}

/* Returns the bytes of the pool that are not in use. */
uint64_t idle_of_pool(sps_context *ctx)
{
    const cudaMemPool_t pool = spsi_cuda_state(ctx)->pool.of;
    uint64_t held = 0, used = 0;

    if (pool &&
        cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent,
                                &held) == cudaSuccess &&
        cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used) ==
            cudaSuccess)
        return held - used;
    cudaGetLastError();
    return 0;
}

/* Returns whether so much memory is little, or the pool has four times as much,
 * or it is at most a quarter of what is left, which the driver takes up to 1 ms
 * to tell. */
sps_status has_room(sps_context *ctx, int64_t bytes, bool *room)
{
    size_t unused = 0, total = 0;

    *room = ctx->opt.max_device_bytes == 0 &&
            (bytes <= once_small || (uint64_t)bytes <= idle_of_pool(ctx) / 4);
    if (*room) return SPS_OK;
    SPS_TRY_RETURN(ctx->backend->memory(ctx, &unused, &total));
    *room = (size_t)bytes <= unused / 4;
    return SPS_OK;
}

/* Computes C in one pass, unless its rows differ too much, or the room for them
 * is more than a quarter of the memory that is left, since C needs as much
 * beside it; then *made is false and C is as before. */
sps_status multiply_once(product *p, holder *h, sps_csr *C, bool *made)
{
    const bool wide = C->dtype == SPS_F64;
    const int64_t entry = sizeof(int32_t) + (wide ? sizeof(double)
                                                  : sizeof(float));
    const int64_t n = p->A->nrow;
    const int bits = once_bits(*p, (size_t)entry);
    const int room = bits > 0 ? table_limit(bits) : 0;
    once_room r;
    char *val;

    *made = bits > 0;
    if (*made)
        SPS_TRY_RETURN(has_room(p->ctx, n * room * entry, made));
    if (!*made) return SPS_OK;
    SPS_TRY_RETURN(h->take(n * room, &r.col));
    SPS_TRY_RETURN(h->take(n * room * (entry - (int64_t)sizeof(int32_t)),
                           &val));
    SPS_TRY_RETURN(h->take(n + 1, &r.rest));
    r.val = val;
    r.left = r.rest + n;
    SPS_TRY_RETURN(clear(p->ctx, 1, r.left));
    const once_task w = {n, bits, room, p->count, r.rest, r.left};

    return wide ? make_once<double>(p, h, w, r, C)
                : make_once<float>(p, h, w, r, C);
}

} // namespace

#endif
