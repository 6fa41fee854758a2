/* SPDX-License-Identifier: BSD-3-Clause */
/* spmv_blocks.cu - y = alpha A x + beta y for 1 to 4 columns on node blocks
 * (kernels/formats/node_blocks.h).
 *
 * The numbers of a block row are one array of K x b, the b that meet one number
 * of x side by side.  A warp walks it, a multiple of b of its lanes at work:
 * lane l has the row l mod b and, at each step, the column l / b of the next
 * 32 / b, so what the lanes read is contiguous and each keeps a single sum.  U
 * steps are in flight.  Block columns come 32 at a time, the first of the next
 * block row before this one is summed, and are passed by shuffles.  Sums of the
 * same row are added by a tree, lanes b apart: the order is fixed by b and the
 * matrix.  Blocks of threads walk ranges of block rows: x is short enough for
 * L2 to hold all of it.
 *
 * Bytes: 8 + 4 / b^2 a stored number, y once, x as often as the caches forget
 * it.  A NaN in x meets the zeros of its blocks: it reaches all b rows. */
#include "node_blocks.cuh"

extern "C" const sps_kernel spsi_kernel_spmv_blocks;

namespace {

constexpr int threads = 512, at_once = 2, widest = 4;

/* Zero, and nothing is read, unless asked for: a predicate, no branch.  What is
 * read once need not push x out of L1. */
__device__ __forceinline__ double stream_if(bool asked, const double *p)
{
    double v;

    asm volatile("{ .reg .pred q; setp.ne.s32 q, %2, 0;\n\t"
                 "mov.f64 %0, 0d0000000000000000;\n\t"
                 "@q ld.global.L1::no_allocate.f64 %0, [%1]; }"
                 : "=d"(v) : "l"(p), "r"((int)asked) : "memory");
    return v;
}
__device__ __forceinline__ float stream_if(bool asked, const float *p)
{
    float v;

    asm volatile("{ .reg .pred q; setp.ne.s32 q, %2, 0;\n\t"
                 "mov.f32 %0, 0f00000000;\n\t"
                 "@q ld.global.L1::no_allocate.f32 %0, [%1]; }"
                 : "=f"(v) : "l"(p), "r"((int)asked) : "memory");
    return v;
}

/* Block rows of a warp: this one, and where the next begins. */
template <class V> struct row_walker {
    const node_matrix<V> &A;
    int64_t row, end, first, last, next_first, next_last;

    __device__ __forceinline__ row_walker(const node_matrix<V> &of, int64_t per)
        : A(of)
    {
        row = (int64_t)blockIdx.x * per + (threadIdx.x >> 5);
        end = min((int64_t)(blockIdx.x + 1) * per, A.mb);
        open(row, first, last);
        open(row + threads / 32, next_first, next_last);
    }
    __device__ __forceinline__ void open(int64_t i, int64_t &from, int64_t &to)
    {
        from = to = 0;
        if (i >= end) return;
        from = __ldg(A.start + i);
        to = __ldg(A.start + i + 1);
    }
    __device__ __forceinline__ void advance()
    {
        row += threads / 32;
        first = next_first;
        last = next_last;
        open(row + threads / 32, next_first, next_last);
    }
};

/* Adds the n = K B numbers at val, whose block columns the lanes hold. */
template <int B, int U, int K, class V, class N>
__device__ __forceinline__ void add_numbers(const node_matrix<V> &A,
                                            const blocks<N> &b,
                                            uint32_t stride, const V *val,
                                            int n, int32_t column, N *sum)
{
    constexpr int each = 32 / B;
    const int l = (int)threadIdx.x % 32;

#pragma unroll 1
    for (int k0 = l / B; k0 - l / B < n; k0 += U * each) {
        N a[U], x[U][K];

#pragma unroll
        for (int u = 0; u < U; u++)
            a[u] = (N)stream_if(l < each * B && k0 + u * each < n,
                                val + (k0 + u * each) * B + l % B);
#pragma unroll
        for (int u = 0; u < U; u++) {
            const int at = k0 + u * each, s = at / B;
            const uint32_t j = (uint32_t)(
                __shfl_sync(all_lanes, column, s) * B + at - s * B);
            const bool some = l < each * B && at < n && j < A.ncol;

#pragma unroll
            for (int q = 0; q < K; q++)
                x[u][q] = fetch_if(some && q < b.k,
                                   row_at(b.x, (int32_t)j, stride) + q);
        }
#pragma unroll
        for (int u = 0; u < U; u++)
#pragma unroll
            for (int q = 0; q < K; q++) sum[q] = fma(a[u], x[u][q], sum[q]);
    }
}

/* Stores the sums of a block row, added up over lanes B apart. */
template <int B, int K, class V, class N>
__device__ __forceinline__ void store_sums(const node_matrix<V> &A,
                                           const blocks<N> &b, int64_t row,
                                           N *sum)
{
    constexpr int each = 32 / B;
    const int l = (int)threadIdx.x % 32;

#pragma unroll
    for (int q = 0; q < K; q++) {
#pragma unroll
        for (int far = 8; far > 0; far /= 2) {
            N other = __shfl_down_sync(all_lanes, sum[q], far * B);

            if (l / B < far && l / B + far < each) sum[q] += other;
        }
        if (l < B && row + l < A.nrow && q < b.k) {
            N *y = b.y + (row + l) * b.ldy + q;

            *y = b.join(sum[q], y, row + l);
        }
    }
}

template <int B, int U, int K, class V, class N>
__global__ void __launch_bounds__(threads, at_once)
row_kernel(node_matrix<V> A, blocks<N> b, int64_t per)
{
    const uint32_t stride = stride_of<N>(b.ldx);
    row_walker<V> at(A, per);
    auto columns = [&](int64_t p, int64_t last) {
        p += (int)threadIdx.x % 32;
        return p < last ? __ldcs(A.column + p) : 0;
    };

    b.resolve();
    int32_t ahead = columns(at.first, at.last);
    while (at.row < at.end) {
        const int64_t row = at.row, first = at.first, last = at.last;
        int32_t column = ahead;
        N sum[K] = {};

        at.advance();
        ahead = columns(at.first, at.last);
        __syncwarp();
        for (int64_t p = first; p < last; p += 32) {
            if (p > first) column = columns(p, last);
            add_numbers<B, U, K>(A, b, stride, A.val + p * (B * B),
                                 (int)min(last - p, (int64_t)32) * B, column,
                                 sum);
        }
        store_sums<B, K>(A, b, row * B, sum);
    }
}

template <int B, class V, class N>
sps_status launch(const sps_plan *plan, const node_matrix<V> &A,
                  const blocks<N> &b)
{
    sps_context *ctx = plan->ctx;
    auto kernel = b.k == 1   ? row_kernel<B, 5, 1, V, N>
                  : b.k == 2 ? row_kernel<B, 3, 2, V, N>
                             : row_kernel<B, 2, 4, V, N>;
    int64_t per = ceil_div(A.mb, (int64_t)at_once * spsi_cuda_state(ctx)->sms);

    if (per < threads / 32) per = threads / 32;
    kernel<<<(unsigned)ceil_div(A.mb, per), threads, 0,
             spsi_cuda_state(ctx)->stream>>>(A, b, per);
    SPS_LAUNCHED(ctx);
    return SPS_OK;
}

template <class V, class N>
sps_status by_size(const sps_plan *plan, const node_matrix<V> &A,
                   const blocks<N> &b)
{
    switch (A.b) {
    case 2: return launch<2>(plan, A, b);
    case 3: return launch<3>(plan, A, b);
    case 4: return launch<4>(plan, A, b);
    case 5: return launch<5>(plan, A, b);
    case 6: return launch<6>(plan, A, b);
    case 7: return launch<7>(plan, A, b);
    default: return launch<8>(plan, A, b);
    }
}

sps_status spmm(const sps_plan *plan, const sps_spmm_args *args)
{
    SPS_TRY_RETURN(spsi_cuda_enter(plan->ctx));
    if (args->Y->k == 0 || args->Y->n == 0) return SPS_OK;
    if (trivial(plan, args)) return scale_only(args);
    if (!near_rows(args->X)) return far_product(plan, args);
    return with_node_types(plan, args, [&](auto A, auto b) -> sps_status {
        return by_size(plan, A, b);
    });
}

sps_status plan(sps_context *ctx, const sps_problem *p, sps_plan **plan_p)
{
    return node_plan_new(ctx, &spsi_kernel_spmv_blocks, p,
                         sizeof(sps_node_plan), plan_p);
}

bool fits(const sps_problem *p, const char **why_not)
{
    if (p->k > widest) {
        *why_not = "serves up to 4 columns";
        return false;
    }
    return spsi_node_fits(p, why_not);
}

double cost(const sps_problem *p)
{
    const double share = p->k == 1 ? 0.73 : p->k == 2 ? 0.5 : 0.36;
    int b;

    return node_floor(p, &b) / (share * p->bandwidth) + scattered(p) + 3e-6;
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_spmv_blocks) = {
    .name = "spmv.blocks",
    .op = SPS_OP_SPMM,
    .where = SPS_CUDA,
    .gives = SPS_REPRODUCIBLE | SPS_FULL_PRECISION | SPS_SINGLE_BLOCKS,
    .fuses = true,
    .fits = fits,
    .cost = cost,
    .plan = plan,
    .spmm = spmm,
    .sddmm = NULL,
    .refresh = node_refresh,
    .destroy = node_destroy,
};
