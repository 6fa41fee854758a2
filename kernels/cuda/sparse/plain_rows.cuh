/* SPDX-License-Identifier: BSD-3-Clause */
/* plain_rows.cuh - A X by rows without a plan: the row loop that spmm_plain.cu
 * and twofold_device.cu share; the type of the accumulator is a parameter.
 *
 * 2, 4 or 8 lanes process one row, each with one or two pairs of columns;
 * blocks wider than 32 columns are processed in slices of 32.  The lanes load
 * entries of their row together, 8 or more at a time and one batch ahead
 * (prefetch), and exchange them by shuffles; thus the loads of the rows of X of
 * a whole batch are in flight at the same time.  A thread block processes
 * consecutive rows (a `run`), so that neighbouring rows find each other's rows
 * of X in L1, the traffic of which limits a sparse product.
 *
 * Bytes: A once per slice; rows of X again whenever L1 and L2 have evicted
 * them.  Sums are in the order of the row; no atomics; slots past the end of a
 * row read nothing and add 0 * 0. */
#ifndef SPS_CUDA_PLAIN_ROWS_CUH
#define SPS_CUDA_PLAIN_ROWS_CUH

#include "cuda/sparse/sparse.cuh"

namespace {

constexpr int longest_run = 1536;   /* largest number of rows of a run */

/* Loads *p without allocating in L1: A is read only once and must not evict
 * rows of X. */
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

/* A batch of entries of one row, distributed over its L lanes: lane l holds the
 * entries l + e L. */
template <int L, class V> struct batch {
    static constexpr int size = L > 8 ? L : 8, own = size / L;
    int32_t col[own];
    V val[own];

    /* Loads the entries done, done + 1, ... of the row that begins at `from`; a
     * pointer is formed only inside the row, where it cannot overflow. */
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

/* The sums, in a lane, of C pairs of columns of a row of Y, which are 2 L
 * columns apart; `left` columns exist from this lane's first on.  SUM: type of
 * the accumulator, whose add(a, x) adds a x; SUM::threads: size of a thread
 * block, such that one block fills a multiprocessor and all its rows share the
 * L1 cache. */
template <int L, int C, bool PAIRED, class SUM> struct pairs {
    SUM sum[C][2] = {};

    /* Adds the first `some` entries of the batch; the loads of 8 / C rows of X
     * are in flight together. */
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
                    sum[w][0].add(a[u], v[u][w].x);
                    sum[w][1].add(a[u], v[u][w].y);
                }
        }
    }
};

/* Computes the sums of a run of rows and passes them to `out`: out.begin() is
 * called first; then out.pair<PAIRED>(i, column, left, sums of two columns)
 * once for each pair of columns of which at least one exists, by the lane that
 * owns it. */
template <int L, int C, bool PAIRED, class SUM, class OUT, class I, class V>
__global__ void __launch_bounds__(SUM::threads)
plain_kernel(matrix<I, V> A, const double *__restrict__ x, int64_t ldx, int k,
             OUT out, int run)
{
    constexpr int rows = SUM::threads / L;
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

    out.begin();
    bounds(first + (int)threadIdx.x / L);
    next.load(A, l, p, (int)(q - p), 0);
    for (int64_t base = first; base < last; base += rows) {
        int64_t i = base + (int)threadIdx.x / L;
        pairs<L, C, PAIRED, SUM> row;
        I here = p;
        int length = (int)(q - p);
        /* All rows of a warp take as many batches as its longest row. */
        int most = __reduce_max_sync(all_lanes, length);

        bounds(i + rows);
        for (int done = 0, more = 1; more; done += next.size) {
            const batch<L, V> now = next;

            more = done + next.size < most;
            if (more) next.load(A, l, here, length, done + next.size);
            else next.load(A, l, p, (int)(q - p), 0);
            row.add(now, most - done, x + c, ldx, k - c);
        }
        if (i >= last) continue;
#pragma unroll
        for (int w = 0; w < C; w++)
            if (k - c - 2 * L * w > 0)
                out.template pair<PAIRED>(i, c + 2 * L * w, k - c - 2 * L * w,
                                          row.sum[w]);
    }
}

/* Returns the number of rows of a run, at least the `step` rows that a thread
 * block processes at a time: so many that neighbouring rows share X in L1, and
 * so few that every multiprocessor gets several runs. */
inline int run_of(const sps_context *ctx, int64_t nrow, int step)
{
    int run = longest_run;

    while (run > step && ceil_div(nrow, run) < 4 * spsi_cuda_state(ctx)->sms)
        run /= 2;
    return run < step ? step : run;
}

/* Launches the kernel with output object `out`; pairs: all blocks are aligned
 * for 16-byte accesses of pairs. */
template <int L, int C, class SUM, class OUT>
sps_status launch_plain(sps_context *ctx, const sps_csr_local *local,
                        const sps_block *X, bool pairs, const OUT &out)
{
    const int threads = SUM::threads, k = X->k;
    const int run = run_of(ctx, local->nrow, threads / L);
    const int64_t count = ceil_div(local->nrow, run);
    const dim3 grid((unsigned)count, (unsigned)ceil_div(k, 2 * L * C));
    const double *x = (const double *)X->data;

    return with_types(local, [&](auto A) -> sps_status {
        cudaStream_t stream = spsi_cuda_state(ctx)->stream;

        if (pairs)
            plain_kernel<L, C, true, SUM><<<grid, threads, 0, stream>>>(
                A, x, X->ld, k, out, run);
        else
            plain_kernel<L, C, false, SUM><<<grid, threads, 0, stream>>>(
                A, x, X->ld, k, out, run);
        SPS_LAUNCHED(ctx);
        return SPS_OK;
    });
}

/* Chooses the number of lanes per row by the number of columns, and launches
 * the kernel. */
template <class SUM, class OUT>
sps_status walk_plain(sps_context *ctx, const sps_csr_local *A,
                      const sps_block *X, bool pairs, const OUT &out)
{
    if (X->k <= 4) return launch_plain<2, 2, SUM>(ctx, A, X, pairs, out);
    if (X->k <= 8) return launch_plain<4, 1, SUM>(ctx, A, X, pairs, out);
    if (X->k <= 16) return launch_plain<4, 2, SUM>(ctx, A, X, pairs, out);
    return launch_plain<8, 2, SUM>(ctx, A, X, pairs, out);
}

} // namespace

#endif
