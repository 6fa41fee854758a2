/* SPDX-License-Identifier: BSD-3-Clause */
/* spmv_adaptive.cu - y = alpha A x + beta y by blocks of rows of about equal
 * work, whatever the lengths of the rows.
 *
 * Greathouse and Daga, Efficient sparse matrix-vector multiplication on GPUs
 * using the CSR storage format (SC 2014), with warps for their workgroups: the
 * plan groups consecutive rows (kernels/formats/row_blocks.h), a warp takes a
 * block of them, and no warp waits for another.
 *   stream  the entries are read side by side, whatever row they are in, and
 *           their products put into shared memory; then R lanes add up a
 *           row, or the whole warp a row that would keep the R lanes long;
 *   vector  one row: each lane keeps a sum, a tree adds them;
 *   long    a piece of a row; the warp that arrives last adds the sums of all
 *           in a fixed order and resets the counter.
 *
 * Bytes: A once, y once, 16 for every 256 entries of the schedule, x as often
 * as the caches forget it.  A lane has 8 entries in flight, then their 8
 * numbers of x.  No float atomics: every sum has an order that the plan
 * fixes. */
#include "ordered.cuh"
#include "row_plan.h"

#include <stdio.h>
#include <type_traits>

extern "C" const sps_kernel spsi_kernel_spmv_adaptive;

namespace {

/* Blocks of 256 entries fill a warp's 8 loads; a block of 128 threads leaves
 * its place early; ten of them are 1280 threads of 48 registers and leave
 * half of the memory of a multiprocessor to L1, which x needs. */
constexpr int threads = 128, warps = threads / 32, resident = 10;
constexpr int each = 8, size = 32 * each, most_rows = 256;
constexpr sps_row_rule rule = {size, 4096, most_rows, size};

/* The plan as the kernel sees it. */
template <class T> struct schedule {
    const sps_row_block *__restrict__ block;
    const int64_t *__restrict__ part;
    T *partial;
    unsigned *arrived;
    int64_t count;
    int reach;
};

template <class T> schedule<T> schedule_of(const sps_row_plan *plan)
{
    schedule<T> s;

    s.block = plan->blocks.block;
    s.part = plan->blocks.part;
    s.partial = (T *)plan->partial;
    s.arrived = plan->arrived;
    s.count = plan->blocks.count;
    s.reach = plan->rule.reach;
    return s;
}

/* Of one warp. */
template <class T> struct warp_room {
    T product[size];
    uint16_t offset[most_rows + 2];
};

/* In one load. */
__device__ __forceinline__ void load_block(const sps_row_block *p,
                                           sps_row_block *block)
{
    int4 raw = __ldg(reinterpret_cast<const int4 *>(p));

    block->first = (int64_t)((uint64_t)(uint32_t)raw.y << 32 |
                             (uint32_t)raw.x);
    block->row = raw.z;
    block->what = (uint32_t)raw.w;
}

template <class T> __device__ __forceinline__ T warp_sum(T s, int lanes = 32)
{
    for (int far = lanes / 2; far > 0; far /= 2)
        s += __shfl_xor_sync(all_lanes, s, far);
    return s;
}

/* Products of this lane's entries e = lane + 32 u of the `count` (WHOLE: size)
 * that begin at entry first; zero past the end, where nothing is read. */
template <bool WHOLE, class I, class V, class T>
__device__ __forceinline__ void products(const matrix<I, V> &A,
                                         const blocks<T> &b, int64_t first,
                                         int count, T (&product)[each])
{
    int lane = (int)threadIdx.x % 32, left = count - lane;
    const int32_t *cols = A.col + first + lane;
    const V *vals = A.val + first + lane;
    uint32_t stride = stride_of<T>(b.ldx);
    int32_t col[each];
    V val[each];

#pragma unroll
    for (int u = 0; u < each; u++)
        col[u] = WHOLE || 32 * u < left ? __ldcs(cols + 32 * u) : -1;
#pragma unroll
    for (int u = 0; u < each; u++)
        val[u] = WHOLE || 32 * u < left ? __ldcs(vals + 32 * u) : V(0);
    __syncwarp();
#pragma unroll
    for (int u = 0; u < each; u++)
        product[u] = col[u] >= 0 ? fetch(row_at(b.x, col[u], stride)) : T(0);
#pragma unroll
    for (int u = 0; u < each; u++) product[u] *= (T)val[u];
}

/* Sum of the products of `count` entries from first on, in every lane. */
template <class I, class V, class T>
__device__ __forceinline__ T row_sum(const matrix<I, V> &A,
                                     const blocks<T> &b, int64_t first,
                                     int count)
{
    T sum = 0, product[each];

    for (; count >= size; count -= size, first += size) {
        products<true>(A, b, first, size, product);
#pragma unroll
        for (int u = 0; u < each; u++) sum += product[u];
    }
    if (count > 0) {
        products<false>(A, b, first, count, product);
#pragma unroll
        for (int u = 0; u < each; u++) sum += product[u];
    }
    return warp_sum(sum);
}

/* Adds product[p], [p + step], ... below q. */
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
__device__ __forceinline__ void sum_rows(const warp_room<T> &room, int64_t row,
                                         int rows, E &finish)
{
    int lane = (int)threadIdx.x % 32, R = 1;

    while (R < 32 && 2 * R * rows <= 32) R *= 2;
    for (int base = 0; base < rows; base += 32 / R) {
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

/* Rows row .. row + rows - 1, whose `count` entries begin at first.  The
 * offsets of most blocks travel with the entries. */
template <class I, class V, class T, class E>
__device__ __forceinline__ void stream(const matrix<I, V> &A,
                                       const blocks<T> &b, int64_t first,
                                       int64_t row, int rows, int count,
                                       warp_room<T> &room, E &finish)
{
    int lane = (int)threadIdx.x % 32, r = lane;
    const I *ptr = A.rowptr + row;
    I near = 0, far = 0;
    T product[each];

    if (r <= rows) near = __ldcs(ptr + r);
    if (r + 32 <= rows) far = __ldcs(ptr + r + 32);
    products<false>(A, b, first, count, product);
#pragma unroll
    for (int u = 0; u < each; u++) room.product[lane + 32 * u] = product[u];
    if (r <= rows) room.offset[r] = (uint16_t)(near - first);
    if (r + 32 <= rows) room.offset[r + 32] = (uint16_t)(far - first);
    for (r += 64; r <= rows; r += 32)
        room.offset[r] = (uint16_t)(ptr[r] - first);
    __syncwarp();
    finish.begin();
    sum_rows(room, row, rows, finish);
}

/* `sum` is that of a worker on a long row that begins at entry begin. */
template <class I, class T, class E>
__device__ __forceinline__ void join_workers(const schedule<T> &plan, T sum,
                                             I begin,
                                             const sps_row_block &block,
                                             E &finish)
{
    int lane = (int)threadIdx.x % 32;
    int64_t number = spsi_row_block_long(&block), part = plan.part[number];
    int parts = (int)(plan.part[number + 1] - part), last = 0;
    T *partial = plan.partial + part;

    if (lane == 0) {
        partial[(block.first - begin) / plan.reach] = sum;
        __threadfence();
        last = atomicAdd(plan.arrived + number, 1u) == (unsigned)parts - 1;
    }
    if (!__shfl_sync(all_lanes, last, 0)) return;
    __threadfence();
    sum = 0;
#pragma unroll 4
    for (int w = lane; w < parts; w += 32) sum += __ldcg(partial + w);
    sum = warp_sum(sum);
    if (lane == 0) {
        finish(block.row, 0, sum);
        plan.arrived[number] = 0;
    }
}

template <class I, class V, class T, class E>
__global__ void __launch_bounds__(threads, resident)
adaptive_kernel(matrix<I, V> A, blocks<T> b, schedule<T> plan, E finish)
{
    __shared__ warp_room<T> room[warps];
    int64_t at = (int64_t)blockIdx.x * warps + threadIdx.x / 32;
    int lane = (int)threadIdx.x % 32;
    sps_row_block block;

    if (at >= plan.count) return; /* all lanes */
    load_block(plan.block + at, &block);
    if (spsi_row_block_kind(&block) == SPS_ROWS_STREAM) {
        stream(A, b, block.first, block.row, spsi_row_block_rows(&block),
               spsi_row_block_entries(&block), room[threadIdx.x / 32],
               finish);
        return;
    }
    bool is_long = spsi_row_block_kind(&block) == SPS_ROWS_LONG;
    int count = spsi_row_block_entries(&block);
    T sum;

    if (is_long) {
        I left = (I)(A.rowptr[block.row + 1] - block.first);

        count = left < plan.reach ? (int)left : plan.reach;
    }
    sum = row_sum(A, b, block.first, count);
    finish.begin();
    if (is_long)
        join_workers(plan, sum, A.rowptr[block.row], block, finish);
    else if (lane == 0)
        finish(block.row, 0, sum);
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

        adaptive_kernel<<<(unsigned)ceil_div(rows->blocks.count, warps),
                          threads, 0, spsi_cuda_state(ctx)->stream>>>(
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

/* The stream at 83 % of copying (measured on an H200 for rows of 7, 27 and
 * 81), and one sector of x out of L2 for each entry that finds no neighbour,
 * in matrices whose rows reach over all of x. */
double cost(const sps_problem *p)
{
    const bool scattered = p->f->bandwidth > p->f->ncol / 8;
    const double lost = scattered ? (double)p->f->nnz * p->f->distinct64 : 0;

    return seconds(p, 0.83) + 32.0 * lost / (1.2 * p->bandwidth);
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
