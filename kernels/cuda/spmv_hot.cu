/* SPDX-License-Identifier: BSD-3-Clause */
/* spmv_hot.cu - y = alpha A x + beta y where few columns have most entries.
 *
 * In graphs with a power law no neighbourhood is small enough for L1: almost
 * every entry asks L2 for a sector of x, and that is what limits the product.
 * But the same few thousand numbers are asked for again and again.  So the
 * plan sorts the columns by use (kernels/formats/column_order.h) and keeps the
 * columns of A renumbered; a product first copies x into that order, then each
 * multiprocessor takes the first numbers, those of the most used columns, into
 * its shared memory for good, and the rest, packed by use, has what is left
 * of L1.  Rows are CSR-Adaptive's (adaptive.cuh); warps take blocks by a
 * counter, since one block of threads lives on each multiprocessor to the
 * end.  The order of the sums is the plan's, whoever makes them.
 *
 * Bytes: A once, y once, x twice more, the near numbers once for each
 * multiprocessor.  The plan holds 4 bytes an entry and 12 a column; values
 * stay where they are, so that new ones cost nothing. */
#include "adaptive.cuh"
#include "column_plan.h"

#include <stdio.h>
#include <type_traits>

extern "C" const sps_kernel spsi_kernel_spmv_hot;

namespace {

constexpr int threads = 1024, warps = threads / 32;
constexpr int each = 4, size = 32 * each, most_rows = 64;
constexpr sps_row_rule rule = {size, 4096, most_rows, size};

template <class T> using hot_room = warp_room<T, each, most_rows>;

/* Numbers of the packed x, the first of them in shared memory. */
template <class T> struct near_numbers {
    const T *near;
    int count;
    const T *packed;

    __device__ __forceinline__ T operator()(int32_t j) const
    {
        int i = min(max(j, 0), count - 1);
        T here = near[i], there = fetch_if(j >= count, packed + j);

        return j < 0 ? T(0) : j < count ? here : there;
    }
};

template <class T>
__global__ void __launch_bounds__(256)
pack_kernel(const T *__restrict__ x, int64_t ldx,
            const int32_t *__restrict__ column, int64_t n, T *packed)
{
    int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;

    if (i < n) packed[i] = __ldg(x + column[i] * ldx);
}

/* The next block for this warp, known to its lane 0. */
__device__ __forceinline__ unsigned take_turn(unsigned *turn)
{
    return threadIdx.x % 32 == 0 ? atomicAdd(turn, 1u) : 0;
}

template <class I, class V, class T, class E>
__global__ void __launch_bounds__(threads, 1)
hot_kernel(matrix<I, V> A, const T *packed, int near, schedule<T> plan,
           unsigned *turn, E finish)
{
    extern __shared__ double2 memory[];
    hot_room<T> *room = reinterpret_cast<hot_room<T> *>(memory);
    T *here = reinterpret_cast<T *>(room + warps);
    near_numbers<T> numbers = {here, near, packed};
    unsigned at = take_turn(turn), next;
    sps_row_block block;

    for (int i = (int)threadIdx.x; i < near; i += threads)
        here[i] = __ldg(packed + i);
    __syncthreads();
    room += threadIdx.x / 32;
    at = __shfl_sync(all_lanes, at, 0);
    while (at < plan.count) {
        load_block(plan.block + at, &block);
        next = take_turn(turn);
        do_block(A, numbers, plan, block, *room, finish);
        __syncwarp();
        at = __shfl_sync(all_lanes, next, 0);
    }
    if (threadIdx.x % 32) return;
    if (atomicAdd(turn + 1, 1u) == gridDim.x * warps - 1)
        turn[0] = turn[1] = 0;
}

template <class I, class V, class T>
sps_status launch(const sps_hot_plan *h, matrix<I, V> A, const blocks<T> &b)
{
    sps_context *ctx = h->rows.super.ctx;
    const sps_cuda_state *s = spsi_cuda_state(ctx);
    const sps_row_plan *rows = &h->rows;
    int64_t most = ceil_div(rows->blocks.count, warps), n = h->columns.ncol;
    unsigned grid = (unsigned)(most < s->sms ? most : s->sms);
    size_t shared = warps * sizeof(hot_room<T>) + (size_t)h->near * sizeof(T);
    auto kernel = hot_kernel<I, V, T, axpby_epilogue<T>>;
    T *packed = (T *)h->packed;

    A.col = h->columns.col;
    pack_kernel<<<(unsigned)ceil_div(n, 256), 256, 0, s->stream>>>(
        b.x, b.ldx, h->columns.column, n, packed);
    SPS_LAUNCHED(ctx);
    SPS_CUDA(ctx, cudaFuncSetAttribute(
                      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                      (int)shared));
    kernel<<<grid, threads, shared, s->stream>>>(
        A, packed, h->near, schedule_of<T>(rows), h->turn, epilogue_of(b));
    SPS_LAUNCHED(ctx);
    return SPS_OK;
}

sps_status spmm(const sps_plan *plan, const sps_spmm_args *args)
{
    SPS_TRY_RETURN(spsi_cuda_enter(plan->ctx));
    if (args->Y->k == 0 || args->Y->n == 0) return SPS_OK;
    if (trivial(plan, args)) return scale_only(args);
    return with_all_types(plan->A, args, [&](auto A, auto b) -> sps_status {
        return launch((const sps_hot_plan *)plan, A, b);
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
    return seconds(p, 0.4);
}

/* How many numbers go into shared memory beside the warps' rooms. */
int near_count(const sps_context *ctx, const sps_problem *p)
{
    bool wide = p->block == SPS_F64;
    int64_t rooms = warps * (wide ? sizeof(hot_room<double>)
                                  : sizeof(hot_room<float>));
    int64_t count = (spsi_cuda_state(ctx)->shared_limit - rooms) /
                    (int64_t)spsi_dtype_size(p->block);

    if (count < 0) count = 0;
    return (int)(count < p->A->ncol ? count : p->A->ncol);
}

sps_status fill_columns(sps_hot_plan *h, const sps_problem *p)
{
    sps_plan *super = &h->rows.super;
    sps_context *ctx = super->ctx;
    void *memory = NULL;

    SPS_TRY_RETURN(spsi_cuda_column_plan_make(ctx, super->A, h->near,
                                              &h->columns));
    h->packed_bytes = (size_t)p->A->ncol * spsi_dtype_size(p->block);
    SPS_TRY_RETURN(spsi_cuda_alloc(ctx, h->packed_bytes, &h->packed));
    SPS_TRY_RETURN(spsi_cuda_alloc(ctx, 2 * sizeof *h->turn, &memory));
    h->turn = (unsigned *)memory;
    SPS_CUDA(ctx, cudaMemsetAsync(memory, 0, 2 * sizeof *h->turn,
                                  spsi_cuda_state(ctx)->stream));
    super->bytes += h->columns.bytes + h->packed_bytes + 2 * sizeof *h->turn;
    snprintf(super->detail, sizeof super->detail,
             "%d columns with %.0f %% of the entries", h->near,
             100.0 * (double)h->columns.held / (double)p->A->nnz);
    return SPS_OK;
}

sps_status plan(sps_context *ctx, const sps_problem *p, sps_plan **plan_p)
{
    sps_hot_plan *h;

    SPS_TRY_RETURN(spsi_plan_new(ctx, &spsi_kernel_spmv_hot, p,
                                 sizeof(sps_hot_plan), plan_p));
    h = (sps_hot_plan *)*plan_p;
    h->rows.rule = rule;
    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    SPS_TRY_RETURN(spsi_cuda_row_plan_fill(&h->rows));
    if (p->A->nnz == 0) return SPS_OK; /* never looks at a column */
    h->near = near_count(ctx, p);
    return fill_columns(h, p);
}

void destroy(sps_plan *plan)
{
    sps_hot_plan *h = (sps_hot_plan *)plan;
    sps_context *ctx = plan->ctx;

    spsi_cuda_row_plan_clear(&h->rows);
    spsi_cuda_column_plan_clear(ctx, &h->columns);
    if (h->packed) spsi_cuda_release(ctx, h->packed, h->packed_bytes);
    if (h->turn) spsi_cuda_release(ctx, h->turn, 2 * sizeof *h->turn);
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_spmv_hot) = {
    .name = "spmv.hot",
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
