/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_plain.cu - Y = alpha A X + beta Y by rows; always fits, and checks
 * everything else.
 *
 * A row belongs to 2, 4 or 8 lanes, each with one or two pairs of columns;
 * blocks wider than 32 columns go in strips of 32.  The lanes fetch entries of
 * their row together, 8 or more at a time and one batch ahead, and pass them
 * around by shuffles; so the rows of X of a whole batch are in flight at once.
 * A block of threads walks a run of consecutive rows, so that neighbours find
 * each other's rows of X in L1, which is what limits a sparse product.
 *
 * Bytes: A once per strip, Y once, X as often as L1 and L2 forget it.  Sums
 * run in the order of the row; no atomics; slots past the end of a row read
 * nothing and add 0 * 0. */
#include "sparse.cuh"

extern "C" const sps_kernel spsi_kernel_spmm_plain;

namespace {

/* One block fills a multiprocessor, so that its rows share one window of L1;
 * measured in doc/benchmarks.md, "H200: block operations". */
constexpr int threads = 768, longest_run = 1536;

/* A is read once: it need not push rows of X out of L1. */
__device__ __forceinline__ int32_t once(const int32_t *p)
{
    int32_t v;

    asm("ld.global.nc.L1::no_allocate.s32 %0, [%1];" : "=r"(v) : "l"(p));
    return v;
}
__device__ __forceinline__ double once(const double *p)
{
    double v;

    asm("ld.global.nc.L1::no_allocate.f64 %0, [%1];" : "=d"(v) : "l"(p));
    return v;
}
__device__ __forceinline__ float once(const float *p)
{
    float v;

    asm("ld.global.nc.L1::no_allocate.f32 %0, [%1];" : "=f"(v) : "l"(p));
    return v;
}

/* A batch of entries of one row, over its L lanes: lane l has number
 * l + e L. */
template <int L, class V> struct batch {
    static constexpr int size = L > 8 ? L : 8, own = size / L;
    int32_t col[own];
    V val[own];

    /* Entries number done .. of the row that begins at from; an offset is
     * formed only inside the row, where it cannot overflow. */
    template <class I>
    __device__ __forceinline__ void load(const matrix<I, V> &A, int l, I from,
                                         int length, int done)
    {
#pragma unroll
        for (int e = 0; e < own; e++) {
            int number = done + l + e * L;
            bool ok = number < length;

            col[e] = ok ? once(A.col + (from + number)) : -1;
            val[e] = ok ? once(A.val + (from + number)) : V(0);
        }
    }
};

/* C pairs of columns of a row of Y, 2 L apart; this lane's `left` are there. */
template <int L, int C, bool PAIRED> struct pairs {
    double2 sum[C] = {};

    /* The first `some` entries of the batch, whose rows of X are in flight
     * together, 8 / C at a time. */
    template <class V>
    __device__ __forceinline__ void add(const batch<L, V> &of, int some,
                                        const double *x, int64_t ldx, int left)
    {
        constexpr int unroll = 8 / C;

#pragma unroll
        for (int e0 = 0; e0 < batch<L, V>::size; e0 += unroll) {
            double2 v[unroll][C];
            double a[unroll];

            if (e0 > 0 && e0 >= some) break;
#pragma unroll
            for (int u = 0; u < unroll; u++) {
                int e = e0 + u;
                int32_t j = __shfl_sync(all_lanes, of.col[e / L], e % L, L);

                a[u] = (double)__shfl_sync(all_lanes, of.val[e / L], e % L, L);
#pragma unroll
                for (int w = 0; w < C; w++)
                    v[u][w] = fetch_pair<PAIRED>(x + (int64_t)j * ldx +
                                                     2 * L * w,
                                                 j >= 0 ? left - 2 * L * w : 0);
            }
#pragma unroll
            for (int u = 0; u < unroll; u++)
#pragma unroll
                for (int w = 0; w < C; w++) {
                    sum[w].x = fma(a[u], v[u][w].x, sum[w].x);
                    sum[w].y = fma(a[u], v[u][w].y, sum[w].y);
                }
        }
    }
    /* y: the lane's first column of row i. */
    __device__ __forceinline__ void finish(const blocks<double> &b, double *y,
                                           int64_t i, int left) const
    {
#pragma unroll
        for (int w = 0; w < C; w++, left -= 2 * L) {
            double *to = y + 2 * L * w;
            double2 old = make_double2(0.0, 0.0);

            if (b.fused) {
                if (left > 0) to[0] = b.join(sum[w].x, to, i);
                if (left > 1) to[1] = b.join(sum[w].y, to + 1, i);
                continue;
            }
            if (b.beta != 0) old = load_pair<PAIRED>(to, left);
            store_pair<PAIRED>(to, left, make_double2(b.join(sum[w].x, &old.x),
                                                      b.join(sum[w].y,
                                                             &old.y)));
        }
    }
};

template <int L, int C, bool PAIRED, class I, class V>
__global__ void __launch_bounds__(threads)
spmm_kernel(matrix<I, V> A, blocks<double> b, int run)
{
    int l = (int)threadIdx.x % L, c = (int)blockIdx.y * 2 * L * C + 2 * l;
    int64_t first = (int64_t)blockIdx.x * run;
    int64_t last = first + run < A.nrow ? first + run : A.nrow;
    I p = 0, q = 0;
    batch<L, V> next;

    auto bounds = [&](int64_t i) {
        p = q = 0;
        if (i < last) {
            p = __ldg(A.rowptr + i);
            q = __ldg(A.rowptr + i + 1);
        }
    };

    b.resolve();
    bounds(first + (int)threadIdx.x / L);
    next.load(A, l, p, (int)(q - p), 0);
    for (int64_t base = first; base < last; base += threads / L) {
        int64_t i = base + (int)threadIdx.x / L;
        pairs<L, C, PAIRED> row;
        I here = p;
        int length = (int)(q - p);
        /* All rows of a warp take as many batches as its longest. */
        int most = __reduce_max_sync(all_lanes, length);

        bounds(i + threads / L);
        for (int done = 0, more = 1; more; done += next.size) {
            const batch<L, V> now = next;

            more = done + next.size < most;
            if (more) next.load(A, l, here, length, done + next.size);
            else next.load(A, l, p, (int)(q - p), 0);
            row.add(now, most - done, b.x + c, b.ldx, b.k - c);
        }
        if (i < last) row.finish(b, b.y + i * b.ldy + c, i, b.k - c);
    }
}

/* Rows of a run: long enough to meet neighbours, short enough that every
 * multiprocessor gets several. */
int run_of(const sps_context *ctx, int64_t nrow, int lanes)
{
    int step = threads / lanes, run = longest_run;

    while (run > step && ceil_div(nrow, run) < 4 * spsi_cuda_state(ctx)->sms)
        run /= 2;
    return run < step ? step : run;
}

template <int L, int C>
sps_status launch(const sps_plan *plan, const sps_spmm_args *args)
{
    sps_context *ctx = plan->ctx;
    blocks<double> b = blocks_of(args);
    bool pairs = paired(args->X) && paired(args->Y);
    int run = run_of(ctx, plan->A->nrow, L);
    int64_t count = ceil_div(plan->A->nrow, run);
    dim3 grid((unsigned)count, (unsigned)ceil_div(b.k, 2 * L * C));

    return with_types(plan->A, [&](auto A) -> sps_status {
        cudaStream_t stream = spsi_cuda_state(ctx)->stream;

        if (pairs)
            spmm_kernel<L, C, true><<<grid, threads, 0, stream>>>(A, b, run);
        else
            spmm_kernel<L, C, false><<<grid, threads, 0, stream>>>(A, b, run);
        SPS_LAUNCHED(ctx);
        return SPS_OK;
    });
}

sps_status spmm(const sps_plan *plan, const sps_spmm_args *args)
{
    SPS_TRY_RETURN(spsi_cuda_enter(plan->ctx));
    if (args->Y->k == 0 || args->Y->n == 0) return SPS_OK;
    if (trivial(plan, args)) return scale_only(args);
    if (args->Y->k <= 4) return launch<2, 2>(plan, args);
    if (args->Y->k <= 8) return launch<4, 1>(plan, args);
    if (args->Y->k <= 16) return launch<4, 2>(plan, args);
    return launch<8, 2>(plan, args);
}

bool fits(const sps_problem *p, const char **why_not)
{
    (void)p;
    (void)why_not;
    return true;
}

/* One owner walks a row, however long. */
double cost(const sps_problem *p)
{
    return predicted(p, {1.32, 0.62, 1.1e-12, 0.1, 1, 1.74e-7, 0}) +
           (p->k == 1 ? 6e-6 : 0);
}

sps_status plan(sps_context *ctx, const sps_problem *p, sps_plan **plan_p)
{
    return spsi_plan_new(ctx, &spsi_kernel_spmm_plain, p, sizeof(sps_plan),
                         plan_p);
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_spmm_plain) = {
    .name = "spmm.plain",
    .op = SPS_OP_SPMM,
    .where = SPS_CUDA,
    .gives = SPS_REPRODUCIBLE | SPS_FULL_PRECISION | SPS_NAN_STAYS_IN_ROW,
    .fuses = true,
    .fits = fits,
    .cost = cost,
    .plan = plan,
    .spmm = spmm,
    .sddmm = NULL,
    .refresh = NULL,
    .destroy = NULL,
};
