/* SPDX-License-Identifier: BSD-3-Clause */
/* spmv_adaptive.cu - y = alpha A x + beta y by blocks of rows of about equal
 * work, whatever the lengths of the rows.
 *
 * Greathouse and Daga, Efficient sparse matrix-vector multiplication on GPUs
 * using the CSR storage format (SC 2014).  The plan groups consecutive rows
 * (kernels/formats/row_blocks.h) and a block of threads takes a block of rows:
 *   stream  the entries are read side by side, whatever row they are in, and
 *           their products put into shared memory; then R lanes add up a
 *           row, or a whole warp a row that would keep the R lanes long;
 *   vector  one row: each thread keeps a sum, a tree adds them;
 *   long    a piece of a row; the worker that arrives last adds the sums of
 *           all in a fixed order and resets the counter.  Nobody waits.
 *
 * Bytes: A once, y once, 16 for every 2048 entries of the schedule, x as often
 * as the caches forget it.  A thread has 8 entries in flight, then their 8
 * numbers of x.  No float atomics: every sum has an order that the plan
 * fixes. */
#include "ordered.cuh"
#include "row_plan.h"

#include <stdio.h>
#include <type_traits>

extern "C" const sps_kernel spsi_kernel_spmv_adaptive;

namespace {

constexpr int threads = 256, each = 8, size = threads * each;
constexpr int most_rows = 2048;
constexpr sps_row_rule rule = {size, 3 * size, most_rows, size};

template <class T> __device__ __forceinline__ T warp_sum(T s, int lanes = 32)
{
    for (int far = lanes / 2; far > 0; far /= 2)
        s += __shfl_xor_sync(all_lanes, s, far);
    return s;
}

/* The plan as the kernel sees it. */
template <class T> struct schedule {
    const sps_row_block *__restrict__ block;
    const int64_t *__restrict__ part;
    T *partial;
    unsigned *arrived;
    int reach;
};

template <class T> schedule<T> schedule_of(const sps_row_plan *plan)
{
    schedule<T> s;

    s.block = plan->blocks.block;
    s.part = plan->blocks.part;
    s.partial = (T *)plan->partial;
    s.arrived = plan->arrived;
    s.reach = plan->rule.reach;
    return s;
}

template <class T> struct shared_room {
    T product[size];
    T warp[threads / 32];
    uint16_t offset[most_rows + 1];
    bool last;
};

/* Sum over the threads; valid in thread 0. */
template <class T>
__device__ __forceinline__ T block_sum(T s, shared_room<T> &room)
{
    int lane = (int)threadIdx.x % 32;

    s = warp_sum(s);
    if (lane == 0) room.warp[threadIdx.x / 32] = s;
    __syncthreads();
    return warp_sum(lane < threads / 32 ? room.warp[lane] : T(0));
}

/* Products of this thread's entries e = thread + u * threads of `count` that
 * begin at entry first; zero past the end, where nothing is read. */
template <class I, class V, class T>
__device__ __forceinline__ void products(const matrix<I, V> &A,
                                         const blocks<T> &b, int64_t first,
                                         int count, T (&product)[each])
{
    const int32_t *cols = A.col + first + threadIdx.x;
    const V *vals = A.val + first + threadIdx.x;
    uint32_t stride = stride_of<T>(b.ldx);
    int left = count - (int)threadIdx.x;
    int32_t col[each];
    V val[each];

#pragma unroll
    for (int u = 0; u < each; u++)
        col[u] = u * threads < left ? __ldcs(cols + u * threads) : -1;
#pragma unroll
    for (int u = 0; u < each; u++)
        val[u] = u * threads < left ? __ldcs(vals + u * threads) : V(0);
    __syncwarp();
#pragma unroll
    for (int u = 0; u < each; u++)
        product[u] = col[u] >= 0 ? fetch(row_at(b.x, col[u], stride)) : T(0);
#pragma unroll
    for (int u = 0; u < each; u++) product[u] *= (T)val[u];
}

template <class T>
__device__ __forceinline__ T sum_of(const T (&product)[each])
{
    T s = product[0];

#pragma unroll
    for (int u = 1; u < each; u++) s += product[u];
    return s;
}

/* Adds product[p + l], [p + l + step], ... below q. */
template <class T>
__device__ __forceinline__ T strided_sum(const T *product, int p, int q,
                                         int step)
{
    T s = 0;

#pragma unroll 4
    for (int e = p; e < q; e += step) s += product[e];
    return s;
}

/* Rows of a stream block, R lanes each; rows of more than 32 R entries wait
 * until the whole warp takes them, one after the other. */
template <class T, class E>
__device__ __forceinline__ void sum_rows(const shared_room<T> &room,
                                         int64_t row, int rows, E &finish)
{
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, R = 1;

    while (R < 32 && 2 * R * rows <= threads) R *= 2;
    for (int base = warp * (32 / R); base < rows; base += threads / R) {
        int r = base + lane / R, p = 0, q = 0;
        bool tall;
        unsigned waiting;
        T sum;

        if (r < rows) {
            p = room.offset[r];
            q = room.offset[r + 1];
        }
        tall = q - p > 32 * R;
        sum = warp_sum(strided_sum(room.product, p + lane % R, tall ? p : q,
                                   R), R);
        waiting = __ballot_sync(all_lanes, tall && lane % R == 0);
        while (waiting) {
            int of = __ffs((int)waiting) - 1;
            int from = __shfl_sync(all_lanes, p, of);
            int to = __shfl_sync(all_lanes, q, of);
            T whole = warp_sum(strided_sum(room.product, from + lane, to, 32));

            if (lane == of) sum = whole;
            waiting &= waiting - 1;
        }
        if (r < rows && lane % R == 0) finish(row + r, 0, sum);
    }
}

/* The piece of a row that begins at entry first; `number` among long rows. */
template <class I, class V, class T, class E>
__device__ __forceinline__ void long_row(const matrix<I, V> &A,
                                         const blocks<T> &b, int64_t first,
                                         int64_t row, int64_t number,
                                         const schedule<T> &plan,
                                         shared_room<T> &room, E &finish)
{
    int64_t begin = A.rowptr[row], end = A.rowptr[row + 1];
    int64_t part = plan.part[number];
    int parts = (int)(plan.part[number + 1] - part);
    T *partial = plan.partial + part, sum = 0;
    T product[each];

    if (end > first + plan.reach) end = first + plan.reach;
    for (int64_t e = first; e < end; e += size) {
        products(A, b, e, end - e < size ? (int)(end - e) : size, product);
        sum += sum_of(product);
    }
    sum = block_sum(sum, room);
    if (threadIdx.x == 0) {
        partial[(first - begin) / plan.reach] = sum;
        __threadfence();
        room.last = atomicAdd(plan.arrived + number, 1u) ==
                    (unsigned)parts - 1;
    }
    __syncthreads();
    if (!room.last || threadIdx.x >= 32) return;
    __threadfence();
    sum = 0;
    for (int w = (int)threadIdx.x; w < parts; w += 32)
        sum += __ldcg(partial + w);
    sum = warp_sum(sum);
    if (threadIdx.x == 0) {
        finish(row, 0, sum);
        plan.arrived[number] = 0;
    }
}

template <class I, class V, class T, class E>
__global__ void __launch_bounds__(threads, 4)
adaptive_kernel(matrix<I, V> A, blocks<T> b, schedule<T> plan, E finish)
{
    __shared__ shared_room<T> room;
    int4 raw = __ldg((const int4 *)plan.block + blockIdx.x);
    int64_t first = (int64_t)((uint64_t)(uint32_t)raw.y << 32 |
                              (uint32_t)raw.x);
    int64_t row = raw.z;
    sps_row_block block = {first, raw.z, (uint32_t)raw.w};
    int kind = (int)(block.what >> 30), rows = spsi_row_block_rows(&block);
    int count = spsi_row_block_entries(&block);
    T product[each];

    finish.begin();
    if (kind == SPS_ROWS_LONG) {
        long_row(A, b, first, row, spsi_row_block_long(&block), plan, room,
                 finish);
        return;
    }
    /* Offsets of most rows travel with the entries. */
    I ahead = 0;
    int r = (int)threadIdx.x;

    if (r <= rows) ahead = __ldcg(A.rowptr + row + r);
    products(A, b, first, count, product);
    if (kind == SPS_ROWS_VECTOR) {
        T sum = block_sum(sum_of(product), room);

        if (threadIdx.x == 0) finish(row, 0, sum);
        return;
    }
    for (; r <= rows; r += threads) {
        room.offset[r] = (uint16_t)(ahead - first);
        if (r + threads <= rows) ahead = A.rowptr[row + r + threads];
    }
#pragma unroll
    for (int u = 0; u < each; u++)
        room.product[threadIdx.x + u * threads] = product[u];
    __syncthreads();
    sum_rows(room, row, rows, finish);
}

sps_status spmm(const sps_plan *plan, const sps_spmm_args *args)
{
    const sps_row_plan *rows = (const sps_row_plan *)plan;
    sps_context *ctx = plan->ctx;

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    if (args->Y->k == 0 || args->Y->n == 0) return SPS_OK;
    if (trivial(plan, args)) return scale_only(args);
    if (!near_rows(args->X)) return far_product(plan, args);
    return with_all_types(plan->A, args, [&](auto A, auto b) -> sps_status {
        using number = std::remove_const_t<
            std::remove_reference_t<decltype(*b.y)>>;

        adaptive_kernel<<<(unsigned)rows->blocks.count, threads, 0,
                          spsi_cuda_state(ctx)->stream>>>(
            A, b, schedule_of<number>(rows), epilogue_of(b));
        SPS_LAUNCHED(ctx);
        return SPS_OK;
    });
}

bool fits(const sps_problem *p, const char **why_not)
{
    *why_not = "serves single vectors only";
    if (p->k != 1) return false;
    *why_not = "2^31 rows or more";
    return p->A->nrow <= INT32_MAX;
}

double cost(const sps_problem *p)
{
    return seconds(p, 0.69);
}

sps_status plan(sps_context *ctx, const sps_problem *p, sps_plan **plan_p)
{
    sps_row_plan *rows;

    SPS_TRY_RETURN(spsi_plan_new(ctx, &spsi_kernel_spmv_adaptive, p,
                                 sizeof(sps_row_plan), plan_p));
    rows = (sps_row_plan *)*plan_p;
    rows->rule = rule;
    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    SPS_TRY_RETURN(spsi_cuda_row_plan_fill(rows));
    snprintf(rows->super.detail, sizeof rows->super.detail,
             "%lld blocks, %lld long rows", (long long)rows->blocks.count,
             (long long)rows->blocks.longs);
    return SPS_OK;
}

void destroy(sps_plan *plan)
{
    spsi_cuda_row_plan_clear((sps_row_plan *)plan);
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_spmv_adaptive) = {
    .name = "spmv.adaptive",
    .op = SPS_OP_SPMM,
    .where = SPS_CUDA,
    .gives = SPS_REPRODUCIBLE | SPS_FULL_PRECISION | SPS_NAN_STAYS_IN_ROW |
             SPS_SINGLE_BLOCKS,
    .fits = fits,
    .cost = cost,
    .plan = plan,
    .spmm = spmm,
    .sddmm = NULL,
    .refresh = NULL,
    .destroy = destroy,
};
