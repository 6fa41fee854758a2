/* SPDX-License-Identifier: BSD-3-Clause */
/* spmv_packed.cu - y = alpha A x + beta y with fewer bytes: columns in 16 bits,
 * values in 32 bits if that is exact (kernels/formats/packed.h).
 *
 * A thread block processes a window of whole rows: bulk asynchronous copies
 * bring its entries to shared memory without using registers; then T lanes
 * process a row, so that neighbouring rows of a stencil access neighbouring
 * entries of x, a few cache lines at a time.  (The scheme of spmv.adaptive,
 * where lanes load consecutive entries and write products to shared memory,
 * requests three times as many lines: 0.21 ms instead of 0.16 on 27-point
 * 128^3.)  In a window with a row too long for T lanes a whole warp processes
 * each row.  Sums are in the type of the blocks, in an order fixed by the plan.
 *
 * Bytes: 10 per entry (6 if the values are exact in single precision;
 * single-precision values of the matrix are used as they are), 48 per window, 4
 * per row, x and y.  If a refresh brings values that are not exact in single
 * precision, the plan uses the values of the matrix again; while they are
 * exact, new values cost one pass. */
#include "cuda/base/bulk.cuh"
#include "cuda/sparse/ordered.cuh"
#include "cuda/plan/packed_plan.h"
#include "matrix/windows.h"

#include <stdio.h>
#include <type_traits>

namespace {

/* 128 rows of 27 entries fill a window; the shared memory of a multiprocessor
 * holds six of them, 200 KB of entries in flight, and leaves a part to L1.  A
 * row of more than T `tall` entries is too long for T lanes. */
constexpr int threads = 256, resident = 6;
constexpr int size = 3520, each = 4, tall = 16 * each;
static_assert(size == SPS_NEAR_ENTRIES, "windows of the feature `near`");

/* The windows of the plan (packed.h) in the form passed to the kernel. */
struct windows {
    const sps_row_block *__restrict__ block;
    const int32_t *__restrict__ base;
    const uint16_t *__restrict__ delta;
    int lanes;
};

/* The entries of a window in shared memory; the first is value[value_at] and
 * delta[delta_at]. */
template <class V> struct window_room {
    static constexpr int whole = 16 / (int)sizeof(V);

    alignas(16) V value[size + 2 * whole];
    alignas(16) uint16_t delta[size + 2 * SPS_PACKED_SPARE];
    int32_t base[SPS_PACKED_SEGMENTS];
    uint64_t barrier;

    static __device__ __forceinline__ int value_at(int64_t first)
    {
        return (int)(first % whole);
    }
    static __device__ __forceinline__ int delta_at(int64_t first)
    {
        return (int)(first % SPS_PACKED_SPARE);
    }
};

/* Starts the bulk copies of a window, by one thread: of whole 16-byte units
 * that include the window; a last unit of values that would extend past the end
 * of the array is omitted. */
template <class V>
__device__ __forceinline__ void order(window_room<V> &room, const V *val,
                                      const uint16_t *delta, int64_t first,
                                      int count, int64_t nnz)
{
    constexpr int whole = window_room<V>::whole, spare = SPS_PACKED_SPARE;
    int64_t v = first - room.value_at(first), d = first - room.delta_at(first);
    int values = (int)((first + count - v + whole - 1) / whole);
    int deltas = (int)((first + count - d + spare - 1) / spare);

    if (v + values * whole > nnz) values--;
    bulk_open(&room.barrier, 16u * (uint32_t)(values + deltas));
    if (values > 0)
        bulk_copy(room.value, val + v, 16u * (uint32_t)values, &room.barrier);
    if (deltas > 0)
        bulk_copy(room.delta, delta + d, 16u * (uint32_t)deltas,
                  &room.barrier);
}

/* Copies the values that `order` omits: the last ones of the matrix, less than
 * 16 bytes. */
template <class V>
__device__ __forceinline__ void bring_rest(window_room<V> &room, const V *val,
                                           int64_t first, int count,
                                           int64_t nnz)
{
    constexpr int whole = window_room<V>::whole;
    int64_t e = nnz - nnz % whole + threadIdx.x;

    if (e >= first && e < first + count)
        room.value[e - first + room.value_at(first)] = val[e];
}

/* Copies the entries of the window by all threads, for values of any
 * alignment. */
template <class V>
__device__ __forceinline__ void bring(window_room<V> &room, const V *val,
                                      const uint16_t *delta, int64_t first,
                                      int count)
{
#pragma unroll 2
    for (int e = (int)threadIdx.x; e < count; e += threads) {
        room.value[room.value_at(first) + e] = __ldcs(val + first + e);
        room.delta[room.delta_at(first) + e] = __ldcs(delta + first + e);
    }
}

/* Returns the sum of the products of entries p, p + lanes, ... below q of a
 * window with values `value` and packed columns `delta`; full: the columns of
 * the matrix if those of the window do not fit 16 bits, else NULL. */
template <class V, class T>
__device__ __forceinline__ T part_of_row(const V *value, const uint16_t *delta,
                                         const int32_t *base,
                                         const int32_t *full, const T *x,
                                         uint32_t stride, int p, int q,
                                         int lanes)
{
    T sum = 0;

    for (int e = p; e < q; e += lanes * each) {
        T a[each], b[each];

#pragma unroll
        for (int u = 0; u < each; u++) {
            int f = e + u * lanes;

            a[u] = b[u] = T(0);
            if (f >= q) continue;
            int32_t d = delta[f], c = full
                ? full[f]
                : base[d >> SPS_PACKED_BITS] + (d & (SPS_PACKED_REACH - 1));

            b[u] = fetch(row_at(x, c, stride));
            a[u] = (T)value[f];
        }
#pragma unroll
        for (int u = 0; u < each; u++) sum = fma(a[u], b[u], sum);
    }
    return sum;
}

/* Returns (x, y) such that row r of the window has entries x .. y - 1 of the
 * window; for r past the last row there are none. */
template <class I>
__device__ __forceinline__ int2 row_span(const I *ptr, int64_t first, int r,
                                         int rows)
{
    int2 s = make_int2(0, 0);

    if (r < rows) s = make_int2((int)(ptr[r] - first),
                                (int)(ptr[r + 1] - first));
    return s;
}

template <bool BULK, class I, class V, class T, class E>
__global__ void __launch_bounds__(threads, resident)
packed_kernel(matrix<I, V> A, int64_t nnz, blocks<T> b, windows plan, E finish)
{
    __shared__ window_room<V> room;
    const sps_row_block block = plan.block[blockIdx.x];
    int64_t first = block.first;
    int rows = spsi_row_block_rows(&block), lanes = plan.lanes;
    int count = spsi_row_block_entries(&block);
    const I *ptr = A.rowptr + block.row;
    int2 span;

    if (BULK && has_bulk) {
        if (threadIdx.x == 0)
            order(room, A.val, plan.delta, first, count, nnz);
        bring_rest(room, A.val, first, count, nnz);
    } else {
        bring(room, A.val, plan.delta, first, count);
    }
    if (threadIdx.x < SPS_PACKED_SEGMENTS)
        room.base[threadIdx.x] = plan.base[SPS_PACKED_SEGMENTS *
                                           (int64_t)blockIdx.x + threadIdx.x];
    finish.begin();
    span = row_span(ptr, first, (int)threadIdx.x / lanes, rows);
    if (__syncthreads_or(span.y - span.x > tall * lanes) && lanes < 32) {
        lanes = 32;
        span = row_span(ptr, first, (int)threadIdx.x / lanes, rows);
    }
    if (BULK && has_bulk) bulk_wait(&room.barrier);
    for (int r = (int)threadIdx.x / lanes, lane = (int)threadIdx.x % lanes;;) {
        T sum = part_of_row(room.value + room.value_at(first),
                            room.delta + room.delta_at(first), room.base,
                            room.base[0] < 0 ? A.col + first : NULL, b.x,
                            stride_of<T>(b.ldx), span.x + lane, span.y, lanes);

        for (int far = lanes / 2; far > 0; far /= 2)
            sum += __shfl_xor_sync(all_lanes, sum, far);
        if (r < rows && lane == 0) finish(block.row + r, 0, sum);
        r += threads / lanes;
        /* the same for all threads of the block */
        if (r - (int)threadIdx.x / lanes >= rows) break;
        span = row_span(ptr, first, r, rows);
    }
}

template <class I, class V, class T>
sps_status launch(const sps_packed_plan *plan, const matrix<I, V> &A,
                  const blocks<T> &b)
{
    sps_context *ctx = plan->rows.super.ctx;
    cudaStream_t stream = spsi_cuda_state(ctx)->stream;
    unsigned grid = (unsigned)plan->packed.windows;
    windows w = {plan->rows.blocks.block, plan->packed.base,
                 plan->packed.delta, threads / plan->rows.rule.rows};

    if ((uintptr_t)A.val % 16 == 0)
        packed_kernel<true><<<grid, threads, 0, stream>>>(
            A, plan->packed.nnz, b, w, epilogue_of(b));
    else
        packed_kernel<false><<<grid, threads, 0, stream>>>(
            A, plan->packed.nnz, b, w, epilogue_of(b));
    SPS_LAUNCHED(ctx);
    return SPS_OK;
}

sps_status spmm(const sps_plan *super, const sps_spmm_args *args)
{
    const sps_packed_plan *plan = (const sps_packed_plan *)super;

    return with_all_types(super->A, args, [&](auto A, auto b) -> sps_status {
        if constexpr (sizeof *A.val == sizeof(double)) {
            using offset = std::remove_const_t<
                std::remove_reference_t<decltype(*A.rowptr)>>;
            matrix<offset, float> S = {A.nrow, A.rowptr, A.col, plan->single};

            if (plan->exact) return launch(plan, S, b);
        }
        return launch(plan, A, b);
    });
}

bool fits(const sps_problem *p, const char **why_not)
{
    *why_not = "it multiplies single vectors only";
    if (p->k != 1) return false;
    *why_not = "A has 2^31 rows or more";
    if (p->A->nrow > INT32_MAX) return false;
    *why_not = "A has a row of more than 3520 entries";
    if (p->f->max_length > size) return false;
    *why_not = "neighbouring rows have columns too far apart for 16 bits";
    return p->pinned || p->f->near > 0.9;
}

/* Returns T, the number of lanes per row: the smallest with which a window has
 * rows for all threads, since fewer lanes access fewer cache lines of x. */
int lanes_of(const sps_features *f)
{
    int lanes = 1;

    while (lanes < 32 && f->mean_length * threads > (double)lanes * size)
        lanes *= 2;
    return lanes;
}

/* Returns the number of rows that are too long for their lanes. */
double tall_rows(const sps_features *f, int lanes)
{
    double rows = 0;

    for (int b = 1; b < SPS_LENGTH_BINS; b++)
        if (ldexp(1.0, b - 1) > tall * lanes) rows += (double)f->lengths[b];
    return rows;
}

/* Predicted seconds: the bytes of this format at 90 % of the copy bandwidth
 * (measured on an H200 for rows of 7, 27 and 81 entries; 70 % with
 * single-precision values, where instructions become the limit).  A window with
 * a too long row takes about seven times as long, and a product at least as
 * long as one such window. */
double cost(const sps_problem *p)
{
    const sps_features *f = p->f;
    const bool halves = p->A->dtype == SPS_F64 && p->f->exact;
    const double saved = (double)f->nnz * (halves ? 6.0 : 2.0);
    const double bytes = spsi_spmm_floor(p) - saved;
    const int lanes = lanes_of(f);
    const double hit = fmin(tall_rows(f, lanes) * threads / lanes /
                            fmax((double)f->nrow, 1.0), 1.0);
    const double wait = f->max_length > tall * lanes ? 15e-6 / lanes : 0.0;

    return 4e-6 + wait + scattered(p) +
           (1 + 6 * hit) * bytes / ((halves ? 0.7 : 0.9) * p->machine->copy);
}

sps_status fill(sps_context *ctx, const sps_problem *p, sps_packed_plan *plan)
{
    const sps_packed *c = &plan->packed;

    plan->rows.rule = {size, size, threads / lanes_of(p->f), size};
    if (p->A->nnz == 0) return SPS_OK; /* a matrix without entries needs no
                                          plan, since products do not read it */
    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    SPS_TRY_RETURN(spsi_cuda_packed_columns(plan));
    if (!p->pinned && 4 * c->escaped > c->windows)
        return spsi_fail(ctx, SPS_EUNFIT, "spmv.packed: the columns of %lld of "
                         "%lld windows do not fit into 16 bits, too many for "
                         "this kernel",
                         (long long)c->escaped, (long long)c->windows);
    if (p->A->dtype == SPS_F64 && p->f->exact)
        SPS_TRY_RETURN(spsi_cuda_packed_singles(plan));
    return SPS_OK;
}

/* Sets the text of the plan, which depends on the values. */
void tell(sps_packed_plan *plan)
{
    snprintf(plan->rows.super.detail, sizeof plan->rows.super.detail,
             "%lld of %lld windows whole%s",
             (long long)plan->packed.escaped,
             (long long)plan->packed.windows,
             plan->exact ? ", values in float" : "");
}

sps_status plan(sps_plan *super, const sps_problem *p)
{
    sps_packed_plan *plan = (sps_packed_plan *)super;

    SPS_TRY_RETURN(fill(super->ctx, p, plan));
    tell(plan);
    return SPS_OK;
}

sps_status refresh(sps_plan *super)
{
    sps_packed_plan *plan = (sps_packed_plan *)super;

    SPS_TRY_RETURN(spsi_cuda_enter(super->ctx));
    SPS_TRY_RETURN(spsi_cuda_packed_values(plan));
    tell(plan);
    return SPS_OK;
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_spmv_packed) = {
    .name = "spmv.packed",
    .op = SPS_OP_SPMM,
    .gives = SPS_REPRODUCIBLE | SPS_FULL_PRECISION | SPS_NAN_STAYS_IN_ROW |
             SPS_SINGLE_BLOCKS,
    .size = sizeof(sps_packed_plan),
    .fits = fits,
    .cost = cost,
    .plan = plan,
    .spmm = guarded<near_only<spmm>>,
    .refresh = refresh,
};
