/* SPDX-License-Identifier: BSD-3-Clause */
/* steps_block.cu - the passes of a fused iteration with small matrices
 * (lib/driver/fused_cg.h), up to 32 columns, on the fp64 tensor cores.
 *
 *   pass         reads and writes of an n x k block
 *   lengths      2: P, Q
 *   residual     3: Q, R, R
 *   directions   5: P, X, R, X, P
 *
 * A warp takes 8 or 16 rows at a time, in tiles of 8.  Products are formed
 * transposed, R' = R' - a'Q': the columns of the result are the 16 rows of the
 * instruction, the rows of the block its 8 columns.  Then of the result lane 4g
 * + t holds rows 2t, 2t + 1 and of every 16 columns the columns 2g, 2g + 1.
 * This is the layout of both factors of a Gram product (the order of the
 * dimension summed over is arbitrary), so no shuffles are needed.  Blocks that
 * enter a product are loaded "across" (row g, columns 2t.. of every 8), all
 * others "down" (tile.cuh).  In `residual` Q is needed in both layouts and is
 * loaded twice, the second time from L1.
 *
 * Tiles with all 8 rows are loaded without branches if columns can be loaded as
 * pairs throughout, as in blocks that own their memory.  17 to 24 columns are a
 * tile of 16 and one of 8: 18 numbers per lane for a Gram product instead of
 * 32, which leaves registers for two tiles.
 *
 * Blocks of floats (all blocks of a step) are converted to double in registers:
 * half the bytes, the same sums.
 *
 * If all thread blocks are resident at once and each has little work (template
 * argument CLUSTERED, up to 16 columns), clusters of 8 thread blocks add up
 * their sums through distributed shared memory, and at most 16 partial sums are
 * left to the next pass.  This replaces a kernel that adds up hundreds of them
 * and has to wait for its launch, its loads and its last thread block.
 * Otherwise such a kernel is used and leaves one partial sum.
 *
 * Order of summation: rows of a warp, warps of a thread block by a tree, thread
 * blocks (of a cluster, then clusters); all fixed by shape and device. */
#include "cuda/fused_cg/steps_join.cuh"
#include "cuda/block/tile.cuh"
#include "cuda/fused_cg/steps_small.cuh"

namespace {

enum { LENGTHS, RESIDUAL, DIRECTIONS };

/* Limits of the number of clusters in a grid.  Each leaves one partial sum of a
 * reduction; if fewer than least_clusters are resident at once, the kernels are
 * not clustered. */
constexpr int least_clusters = 12, most_clusters = SPS_FUSED_PARTS;

/* The shape of the kernel of a pass.  E is the number of columns / 8, rounded
 * up; T is the number of tiles of 16 columns, of which the last may be a half.
 * The members are: warps per thread block, thread blocks per multiprocessor,
 * and tiles that a warp has in flight. */
template <int E, int PASS, bool CLUSTERED> struct policy {
    static constexpr int T = (E + 1) / 2;
    static constexpr bool half = E % 2;
    static constexpr int warps = CLUSTERED ? (PASS == DIRECTIONS ? 12 : 16)
                                 : T == 1 && PASS != DIRECTIONS ? 8 : 4;
    static constexpr int threads = 32 * warps;
    static constexpr int per_sm = CLUSTERED ? 1
                                  : half && PASS == LENGTHS ? 4
                                  : T == 1 && PASS == DIRECTIONS ? 3 : 2;
    static constexpr int tiles = T == 1 || half || PASS == LENGTHS ? 2 : 1;
};

template <bool CLUSTERED>
constexpr int most_parts = CLUSTERED ? most_clusters : 1;

/* Shared memory in which a thread block adds up its sums and, if CLUSTERED,
 * stores the COUNT results until the cluster adds them up. */
template <int T, int WARPS, bool CLUSTERED, int COUNT> struct sums_room {
    double shared[room<T, WARPS>], joined[CLUSTERED ? COUNT : 1];
};

/* Returns where a thread block writes its sums: to the partial sums in device
 * memory, or to `joined`, which the cluster adds up. */
template <bool CLUSTERED>
__device__ __forceinline__ double *sums_of_block(double *part, double *joined,
                                                 int count)
{
    return CLUSTERED ? joined : part + (int64_t)blockIdx.x * count;
}

template <bool CLUSTERED>
__device__ __forceinline__ void join_blocks(const double *joined, double *part,
                                            int count)
{
    if (CLUSTERED)
        join_cluster(joined, count, part + blockIdx.x / cluster_blocks * count);
}

/* Returns the first row of this warp. */
template <class POLICY> __device__ __forceinline__ int64_t first_row()
{
    return ((int64_t)blockIdx.x * POLICY::warps + threadIdx.x / 32) * 8 *
           POLICY::tiles;
}

/* Returns how a warp loads its H tiles from row `row` on; pairs: whether all
 * blocks can be loaded as pairs. */
template <int E, int H>
__device__ __forceinline__ access access_of(const step_arrays &w, bool pairs,
                                            int64_t row, int64_t n)
{
    if (row + 8 * H > n) return TESTED;
    if (w.r == 8 * E && w.k == 8 * E) return WHOLE;
    return pairs ? PADDED : TESTED;
}

template <int E, bool CLUSTERED, class V, int PASS = LENGTHS>
__global__ void __launch_bounds__((policy<E, PASS, CLUSTERED>::threads),
                                  (policy<E, PASS, CLUSTERED>::per_sm))
lengths_kernel(view<V> P, view<V> Q, int64_t n, double *part, step_arrays w)
{
    using policy = policy<E, PASS, CLUSTERED>;
    constexpr int T = policy::T, H = policy::tiles;
    constexpr bool half = policy::half;
    __shared__ sums_room<T, policy::warps, CLUSTERED, T * T * 256> u;
    int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
    int64_t step = (int64_t)gridDim.x * policy::warps * 8 * H;
    double sum[T][2 * T][4] = {};

    begin_after();
    if (stopped(w)) return;
    for (int64_t row = first_row<policy>(); row < n; row += step) {
        double p[H][T][4], q[H][T][4];
        auto load = [&]<access HOW>() {
#pragma unroll
            for (int h = 0; h < H; h++) {
                load_down<T, HOW, half>(p[h], P, row + 8 * h, n, g, t);
                load_down<T, HOW, half>(q[h], Q, row + 8 * h, n, g, t);
            }
        };

        by_access(access_of<E, H>(w, P.pairs && Q.pairs, row, n), load);
        add_gram<T, H, T, half>(sum, p, q);
    }
    join_gram<T, policy::warps, T, half>(
        sum, u.shared, sums_of_block<CLUSTERED>(part, u.joined, w.r * w.r),
        w.r, w.r);
    join_blocks<CLUSTERED>(u.joined, part, w.r * w.r);
}

/* Computes a = G^-1 C, R -= Q a, W = Q'Z with Z = D R (Z = R if D is NULL), and
 * the sums of squares of the columns of R. */
template <int E, bool CLUSTERED, class V, int PASS = RESIDUAL>
__global__ void __launch_bounds__((policy<E, PASS, CLUSTERED>::threads),
                                  (policy<E, PASS, CLUSTERED>::per_sm))
residual_kernel(view<V> Q, view<V> R, const double *D, int64_t n,
                double *part, step_arrays w)
{
    using policy = policy<E, PASS, CLUSTERED>;
    constexpr int T = policy::T, H = policy::tiles;
    constexpr bool half = policy::half;
    __shared__ double2 fragment[T * T * 4 * 32];
    __shared__ union {
        lengths_room<16 * T> dense;
        sums_room<T, policy::warps, CLUSTERED, T * T * 256 + 16 * T> sums;
    } u;
    int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
    int64_t step = (int64_t)gridDim.x * policy::warps * 8 * H;
    double sum[T][2 * T][4] = {}, square[T][2] = {}, *a = NULL, *out;
    const int count = (w.r + 1) * w.k;
    bool go = false;

    begin_after();
    go = find_lengths<most_parts<CLUSTERED>, 16 * T, policy::threads>(u.dense,
                                                                      w, &a);
    leave_lengths<16 * T, policy::threads>(u.dense, w, go, a);
    if (!go) return;
    arrange<T, half>(fragment, a, -1.0, w.r, w.k, 16 * T);
    __syncthreads();
    for (int64_t row = first_row<policy>(); row < n; row += step) {
        const access how = access_of<E, H>(w, Q.pairs && R.pairs, row, n);
        double across[H][T][4], q[H][T][4], r[H][T][4], d[H][2];

        by_access(how, [&]<access HOW>() {
#pragma unroll
            for (int h = 0; h < H; h++) {
                load_across<T, HOW, half>(across[h], Q, row + 8 * h, n, g, t);
                load_down<T, HOW, half>(r[h], R, row + 8 * h, n, g, t);
                load_diagonal<HOW>(d[h], D, row + 8 * h, n, t);
                load_down<T, HOW, half>(q[h], Q, row + 8 * h, n, g, t);
            }
        });
#pragma unroll
        for (int h = 0; h < H; h++) {
            multiply<T, half>(r[h], fragment, across[h], lane);
            by_access(how, [&]<access HOW>() {
                store_down<T, HOW, half>(r[h], R, row + 8 * h, n, g, t);
            });
            add_squares<T, half>(square, r[h]);
            scale<T, half>(r[h], r[h], d[h]);
        }
        add_gram<T, H, T, half>(sum, q, r);
    }
    out = sums_of_block<CLUSTERED>(part, u.sums.joined, count);
    join_gram<T, policy::warps, T, half>(sum, u.sums.shared, out, w.r, w.k);
    join_squares<T, policy::warps, half>(square, u.sums.shared,
                                         out + w.r * w.k, w.k);
    join_blocks<CLUSTERED>(u.sums.joined, part, count);
}

/* Computes b = -G^-1 W, X += P a, P = Z + P b with Z = D R (Z = R if D is
 * NULL), S = P'P and C = P'R. */
template <int E, bool CLUSTERED, class V, int PASS = DIRECTIONS>
__global__ void __launch_bounds__((policy<E, PASS, CLUSTERED>::threads),
                                  (policy<E, PASS, CLUSTERED>::per_sm))
directions_kernel(view<V> P, view<V> X, view<V> R, const double *D,
                  int64_t n, double *part, step_arrays w)
{
    using policy = policy<E, PASS, CLUSTERED>;
    constexpr int T = policy::T, H = policy::tiles;
    constexpr bool half = policy::half;
    __shared__ double2 first[T * T * 4 * 32], second[T * T * 4 * 32];
    __shared__ union {
        beta_room<16 * T> dense;
        sums_room<T, policy::warps, CLUSTERED, 2 * T * T * 256> sums;
    } u;
    int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
    int64_t step = (int64_t)gridDim.x * policy::warps * 8 * H;
    double s[T][2 * T][4] = {}, c[T][2 * T][4] = {}, *out;
    const view<V> wide = { P.p, P.ld, w.k, w.k == P.k ? P.wide : w.k };
    const int square = w.k * w.k;
    int go;

    begin_after();
    go = *(volatile int *)&w.state->go;
    /* The last 128 threads load the first entries: they load the fewest
     * elements in fetch_beta. */
    arrange<T, half>(first, w.a, 1.0, w.r, w.k, w.r, policy::threads - 128);
    fetch_beta<most_parts<CLUSTERED>, 16 * T, policy::threads>(u.dense, w);
    if (!go || !find_beta<16 * T, policy::threads>(u.dense, w, go)) return;
    arrange<T, half>(second, u.dense.b, 1.0, w.r, w.k, 16 * T);
    __syncthreads();
    for (int64_t row = first_row<policy>(); row < n; row += step) {
        const access how =
            access_of<E, H>(w, P.pairs && X.pairs && R.pairs, row, n);
        double across[H][T][4], p[H][T][4], x[H][T][4], r[H][T][4], d[H][2];

        by_access(how, [&]<access HOW>() {
#pragma unroll
            for (int h = 0; h < H; h++) {
                load_across<T, HOW, half>(across[h], P, row + 8 * h, n, g, t);
                load_down<T, HOW, half>(r[h], R, row + 8 * h, n, g, t);
                load_down<T, HOW, half>(x[h], X, row + 8 * h, n, g, t);
                load_diagonal<HOW>(d[h], D, row + 8 * h, n, t);
            }
        });
#pragma unroll
        for (int h = 0; h < H; h++) {
            multiply<T, half>(x[h], first, across[h], lane);
            by_access(how, [&]<access HOW>() {
                store_down<T, HOW, half>(x[h], X, row + 8 * h, n, g, t);
            });
            scale<T, half>(p[h], r[h], d[h]);
            multiply<T, half>(p[h], second, across[h], lane);
            by_access(how, [&]<access HOW>() {
                store_down<T, HOW, half>(p[h], wide, row + 8 * h, n, g, t);
            });
        }
        add_gram<T, H, T, half, true>(s, p, p);
        add_gram<T, H, T, half>(c, p, r);
    }
    out = sums_of_block<CLUSTERED>(part, u.sums.joined, 2 * square);
    join_gram<T, policy::warps, T, half, true>(s, u.sums.shared, out, w.k, w.k);
    join_gram<T, policy::warps, T, half>(c, u.sums.shared, out + square, w.k,
                                         w.k);
    join_blocks<CLUSTERED>(u.sums.joined, part, 2 * square);
}

/* ----------------------------------------------------------------- launches */

template <int E, int PASS> int blocks_of(const sps_context *ctx, int64_t n)
{
    using policy = policy<E, PASS, false>;
    int64_t most = (int64_t)policy::per_sm * spsi_cuda_state(ctx)->sms;
    int64_t want = ceil_div(n, 8 * policy::tiles * policy::warps);

    return (int)(want < most ? want : most);
}

/* Queues a pass whose `count` sums go to `to`.  It calls run(launch
 * configuration, address to which the kernel writes its partial sums, arrays of
 * the step). clusters: the number of clusters of the grid if CLUSTERED, else
 * not used. */
template <int E, int PASS, bool CLUSTERED, class RUN>
sps_status queue(const sps_fused_cg *w, int clusters, int64_t n, int count,
                 double *to, RUN run)
{
    sps_context *ctx = w->ctx;
    const int blocks = CLUSTERED ? clusters * cluster_blocks
                                 : blocks_of<E, PASS>(ctx, n);
    cudaLaunchAttribute room[2];
    const cudaLaunchConfig_t c = launch_after(
        ctx, blocks, policy<E, PASS, CLUSTERED>::threads, CLUSTERED, room);
    double *part = to;

    if (!CLUSTERED)
        SPS_TRY_RETURN(take_scratch(ctx, (int64_t)blocks * count, &part));
    SPS_CUDA(ctx, run(&c, part, arrays_of(w, CLUSTERED ? clusters : 1)));
    SPS_LAUNCHED(ctx);
    return CLUSTERED ? SPS_OK
                     : join_sums<PASS != LENGTHS>(w, part, blocks, count, to);
}

template <int E, bool CLUSTERED, class V>
sps_status lengths(const sps_fused_cg *w, int clusters, const sps_block *P,
                   const sps_block *Q)
{
    return queue<E, LENGTHS, CLUSTERED>(
        w, clusters, P->n, w->r * w->r, w->own.G,
        [&](const cudaLaunchConfig_t *c, double *part, step_arrays arrays) {
            return cudaLaunchKernelEx(c, lengths_kernel<E, CLUSTERED, V>,
                                      view_of<V>(P), view_of<V>(Q), P->n, part,
                                      arrays);
        });
}

template <int E, bool CLUSTERED, class V>
sps_status residual(const sps_fused_cg *w, int clusters, const sps_block *Q,
                    sps_block *R)
{
    return queue<E, RESIDUAL, CLUSTERED>(
        w, clusters, R->n, (w->r + 1) * w->k, w->own.W,
        [&](const cudaLaunchConfig_t *c, double *part, step_arrays arrays) {
            return cudaLaunchKernelEx(c, residual_kernel<E, CLUSTERED, V>,
                                      view_of<V>(Q), view_of<V>(R), w->D, R->n,
                                      part, arrays);
        });
}

template <int E, bool CLUSTERED, class V>
sps_status directions(const sps_fused_cg *w, int clusters, const sps_block *P,
                      sps_block *X, const sps_block *R)
{
    return queue<E, DIRECTIONS, CLUSTERED>(
        w, clusters, R->n, 2 * w->k * w->k, w->own.S,
        [&](const cudaLaunchConfig_t *c, double *part, step_arrays arrays) {
            return cudaLaunchKernelEx(c, directions_kernel<E, CLUSTERED, V>,
                                      view_of<V>(P), view_of<V>(X),
                                      view_of<V>(R), w->D, R->n, part,
                                      arrays);
        });
}

/* Returns the number of clusters that are resident at once, for all three
 * passes. */
template <class V> int clusters_that_fit()
{
    int most = most_clusters;
    auto allow = [&](auto kernel, int threads) {
        const int count = clusters_at_once(kernel, threads);

        if (count < most) most = count;
    };

    allow(lengths_kernel<2, true, V>, policy<2, LENGTHS, true>::threads);
    allow(residual_kernel<2, true, V>, policy<2, RESIDUAL, true>::threads);
    allow(directions_kernel<2, true, V>, policy<2, DIRECTIONS, true>::threads);
    return most < least_clusters ? 0 : most;
}

/* Returns the number of clusters for these steps, or 0 if they are not
 * clustered.  The runtime's answer, which needs as long as a launch, is cached
 * in w->kept. */
template <class V> int clusters_of(const sps_fused_cg *w, int64_t n)
{
    int *kept = w->kept + sizeof(V) / 8;

    if (n > w->cached || w->most > SPS_FUSED_NARROW || !has_clusters(w->ctx))
        return 0;
    if (*kept == 0) *kept = 1 + clusters_that_fit<V>();
    return *kept - 1;
}

/* Calls run.template operator()<E, CLUSTERED, V>(clusters) for the shape of
 * these steps.  P keeps its r columns when columns are deflated, so the width
 * is the larger of r and k. */
template <class V, class RUN>
sps_status with_shape(const sps_fused_cg *w, int64_t n, RUN run)
{
    const int clusters = clusters_of<V>(w, n);

    const int most = w->r > w->k ? w->r : w->k;

    if (clusters > 0) return run.template operator()<2, true, V>(clusters);
    if (most <= 16) return run.template operator()<2, false, V>(0);
    if (most <= 24) return run.template operator()<3, false, V>(0);
    return run.template operator()<4, false, V>(0);
}

template <class RUN>
sps_status with_types(const sps_fused_cg *w, const sps_block *X, RUN run)
{
    return X->dtype == SPS_F32 ? with_shape<float>(w, X->n, run)
                               : with_shape<double>(w, X->n, run);
}

} // namespace

sps_status spsi_cuda_fused_cg_lengths(const sps_fused_cg *w, const sps_block *P,
                                      const sps_block *Q)
{
    SPS_TRY_RETURN(spsi_cuda_enter(w->ctx));
    if (w->columns) return spsi_cuda_cols_lengths(w, P, Q);
    return with_types(w, P, [&]<int E, bool CLUSTERED, class V>(int clusters) {
        return lengths<E, CLUSTERED, V>(w, clusters, P, Q);
    });
}

sps_status spsi_cuda_fused_cg_residual(const sps_fused_cg *w,
                                       const sps_block *Q, sps_block *R)
{
    SPS_TRY_RETURN(spsi_cuda_enter(w->ctx));
    if (w->columns) return spsi_cuda_cols_residual(w, Q, R);
    if (spsi_cuda_single_serves(w, Q, R))
        return spsi_cuda_single_residual(w, Q, R);
    return with_types(w, R, [&]<int E, bool CLUSTERED, class V>(int clusters) {
        return residual<E, CLUSTERED, V>(w, clusters, Q, R);
    });
}

sps_status spsi_cuda_fused_cg_directions(const sps_fused_cg *w, sps_block *P,
                                         sps_block *X, const sps_block *R)
{
    SPS_TRY_RETURN(spsi_cuda_enter(w->ctx));
    if (w->columns) return spsi_cuda_cols_directions(w, P, X, R);
    if (spsi_cuda_single_serves(w, P, X) && spsi_cuda_single_serves(w, P, R))
        return spsi_cuda_single_directions(w, P, X, R);
    return with_types(w, R, [&]<int E, bool CLUSTERED, class V>(int clusters) {
        return directions<E, CLUSTERED, V>(w, clusters, P, X, R);
    });
}
