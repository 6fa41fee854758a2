/* SPDX-License-Identifier: BSD-3-Clause */
/* adaptive.cuh - device code of CSR-Adaptive: one warp processes one block of
 * rows, whose kind (stream, vector, long) is explained in spmv_adaptive.cu.
 * The caller provides access to x as a functor `numbers`: numbers(j) is x[j],
 * and numbers(-1) is zero. */
#ifndef SPS_CUDA_ADAPTIVE_CUH
#define SPS_CUDA_ADAPTIVE_CUH

#include "cuda/sparse/ordered.cuh"
#include "cuda/plan/row_plan.h"

namespace {

/* The plan (block descriptors, counters and partial sums of long rows) in the
 * form passed to the kernel. */
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

/* Shared memory of one warp, for blocks of 32 EACH entries and ROWS rows. */
template <class T, int EACH, int ROWS> struct warp_room {
    static constexpr int each = EACH, size = 32 * EACH;
    T product[size];
    uint16_t offset[ROWS + 2];
};

/* The functor `numbers` that loads entries of x from device memory. */
template <class T> struct far_numbers {
    const T *x;
    uint32_t stride;

    explicit __device__ __forceinline__ far_numbers(const blocks<T> &b)
        : x(b.x), stride(stride_of<T>(b.ldx)) {}
    __device__ __forceinline__ T operator()(int32_t j) const
    {
        return j >= 0 ? fetch(row_at(x, j, stride)) : T(0);
    }
};

/* Loads the descriptor of a block of rows with one 16-byte load. */
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

/* Computes the products a x of this lane's entries e = lane + 32 u of the
 * `count` entries (WHOLE: count = 32 `each`) that begin at entry first.
 * Entries past the end are not read; their products are zero. */
template <bool WHOLE, int each, class I, class V, class T, class X>
__device__ __forceinline__ void products(const matrix<I, V> &A,
                                         const X &numbers, int64_t first,
                                         int count, T (&product)[each])
{
    int lane = (int)threadIdx.x % 32, left = count - lane;
    const int32_t *cols = A.col + first + lane;
    const V *vals = A.val + first + lane;
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
        product[u] = numbers(col[u]);
#pragma unroll
    for (int u = 0; u < each; u++) product[u] *= (T)val[u];
}

/* Returns, in every lane, the sum of the products of `count` entries from entry
 * first on. */
template <class T, int each, class I, class V, class X>
__device__ __forceinline__ T row_sum(const matrix<I, V> &A, const X &numbers,
                                     int64_t first, int count)
{
    constexpr int size = 32 * each;
    T sum = 0, product[each];

    for (; count >= size; count -= size, first += size) {
        products<true>(A, numbers, first, size, product);
#pragma unroll
        for (int u = 0; u < each; u++) sum += product[u];
    }
    if (count > 0) {
        products<false>(A, numbers, first, count, product);
#pragma unroll
        for (int u = 0; u < each; u++) sum += product[u];
    }
    return warp_sum(sum);
}

/* Returns the sum of product[p], product[p + step], ... below index q. */
template <class T>
__device__ __forceinline__ T strided_sum(const T *product, int p, int q,
                                         int step)
{
    T s = 0;

#pragma unroll 4
    for (int e = p; e < q; e += step) s += product[e];
    return s;
}

/* Sums the rows of a block of kind stream, R lanes each, from the products in
 * shared memory.  Rows of more than 32 R entries are postponed and then summed
 * by the whole warp, one after the other. */
template <class T, class Room, class E>
__device__ __forceinline__ void sum_rows(const Room &room, int64_t row,
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

/* Processes a block of kind stream: rows row .. row + rows - 1, whose `count`
 * entries begin at first.  The row offsets of most blocks (up to 63 rows) are
 * loaded at the same time as the entries. */
template <class T, class I, class V, class X, class Room, class E>
__device__ __forceinline__ void stream(const matrix<I, V> &A, const X &numbers,
                                       int64_t first, int64_t row, int rows,
                                       int count, Room &room, E &finish)
{
    int lane = (int)threadIdx.x % 32, r = lane;
    const I *ptr = A.rowptr + row;
    I near = 0, far = 0;
    T product[Room::each];

    if (r <= rows) near = __ldcs(ptr + r);
    if (r + 32 <= rows) far = __ldcs(ptr + r + 32);
    products<false>(A, numbers, first, count, product);
#pragma unroll
    for (int u = 0; u < Room::each; u++)
        room.product[lane + 32 * u] = product[u];
    if (r <= rows) room.offset[r] = (uint16_t)(near - first);
    if (r + 32 <= rows) room.offset[r + 32] = (uint16_t)(far - first);
    for (r += 64; r <= rows; r += 32)
        room.offset[r] = (uint16_t)(ptr[r] - first);
    __syncwarp();
    finish.begin();
    sum_rows<T>(room, row, rows, finish);
}

/* Adds the partial sums of a long row that several warps share.  `sum` is the
 * partial sum of this warp, `begin` the first entry of the row.  The warp that
 * arrives last adds all partial sums in order. */
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

/* Processes a block of rows of any kind, by one warp. */
template <class T, class I, class V, class X, class Room, class E>
__device__ __forceinline__ void do_block(const matrix<I, V> &A,
                                         const X &numbers,
                                         const schedule<T> &plan,
                                         const sps_row_block &block,
                                         Room &room, E &finish)
{
    int count = spsi_row_block_entries(&block);
    bool is_long = spsi_row_block_kind(&block) == SPS_ROWS_LONG;
    T sum;

    if (spsi_row_block_kind(&block) == SPS_ROWS_STREAM) {
        stream<T>(A, numbers, block.first, block.row,
                  spsi_row_block_rows(&block), count, room, finish);
        return;
    }
    if (is_long) {
        I left = (I)(A.rowptr[block.row + 1] - block.first);

        count = left < plan.reach ? (int)left : plan.reach;
    }
    sum = row_sum<T, Room::each>(A, numbers, block.first, count);
    finish.begin();
    if (is_long)
        join_workers(plan, sum, A.rowptr[block.row], block, finish);
    else if (threadIdx.x % 32 == 0)
        finish(block.row, 0, sum);
}

} // namespace

#endif
