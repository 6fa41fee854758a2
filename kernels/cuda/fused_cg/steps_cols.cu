/* SPDX-License-Identifier: BSD-3-Clause */
/* steps_cols.cu - the passes of a fused iteration with scalars by column
 * (lib/driver/fused_cg.h), any number of columns.
 *
 *   pass         reads and writes of an n x k block
 *   lengths      2: P, Q
 *   residual     3: Q, R, R
 *   directions   5: P, X, R, X, P
 *
 * `lanes` neighbouring threads process a row, each a pair of columns; the other
 * threads of a thread block process further rows.  Order of summation: rows of
 * a thread, threads of a thread block by a tree, thread blocks; all fixed by
 * shape and device. */
#include "cuda/base/cover.cuh"
#include "cuda/fused_cg/steps_device.cuh"

namespace {

constexpr int deep = 4; /* rows that a thread loads at once */

struct view {
    double *p;
    int64_t ld;
};

inline view view_of(const sps_block *X) { return { numbers(X), X->ld }; }

template <bool PAIRED>
__device__ __forceinline__ double2 load(const view &x, int64_t i, int c,
                                        int left)
{
    return load_pair<PAIRED>(x.p + i * x.ld + c, left);
}

__device__ __forceinline__ double2 mul_add(double2 a, double2 b, double2 c)
{
    return make_double2(fma(a.x, b.x, c.x), fma(a.y, b.y, c.y));
}

template <bool PAIRED>
__global__ void __launch_bounds__(256)
lengths_kernel(view P, view Q, int64_t n, int lanes, double *part,
               step_arrays w)
{
    __shared__ double2 shared[256];
    int rows = (int)blockDim.x / lanes;
    int64_t step = (int64_t)gridDim.x * rows;
    int64_t first = (int64_t)blockIdx.x * rows + threadIdx.x / lanes;

    if (stopped(w)) return;
    for (int base = 0; base < w.k; base += 2 * lanes) {
        int c = base + 2 * ((int)threadIdx.x % lanes), left = w.k - c;
        double2 sum = make_double2(0, 0);

#pragma unroll deep
        for (int64_t i = first; left > 0 && i < n; i += step)
            sum = mul_add(load<PAIRED>(P, i, c, left),
                          load<PAIRED>(Q, i, c, left), sum);
        sum = join_rows<plus>(sum, shared, lanes);
        if ((int)threadIdx.x < lanes)
            store_pair<false>(part + (int64_t)blockIdx.x * w.k + c, left, sum);
    }
}

/* Computes R -= Q diag(a), and r'z and r'r of each column, with Z = D R (Z = R
 * if D is NULL). */
template <bool PAIRED>
__global__ void __launch_bounds__(256)
residual_kernel(view Q, view R, const double *D, int64_t n, int lanes,
                double *part, step_arrays w)
{
    __shared__ double2 shared[256];
    int rows = (int)blockDim.x / lanes;
    int64_t step = (int64_t)gridDim.x * rows;
    int64_t first = (int64_t)blockIdx.x * rows + threadIdx.x / lanes;

    if (stopped(w)) return;
    part += (int64_t)blockIdx.x * 2 * w.k;
    for (int base = 0; base < w.k; base += 2 * lanes) {
        int c = base + 2 * ((int)threadIdx.x % lanes), left = w.k - c;
        double2 a = load_pair<false>(w.a + c, left);
        double2 product = make_double2(0, 0), square = product;

        a = make_double2(-a.x, -a.y);
#pragma unroll deep
        for (int64_t i = first; left > 0 && i < n; i += step) {
            double2 r = mul_add(load<PAIRED>(Q, i, c, left), a,
                                load<PAIRED>(R, i, c, left));
            double d = D ? D[i] : 1.0;

            store_pair<PAIRED>(R.p + i * R.ld + c, left, r);
            square = mul_add(r, r, square);
            product = mul_add(r, make_double2(d * r.x, d * r.y), product);
        }
        product = join_rows<plus>(product, shared, lanes);
        square = join_rows<plus>(square, shared, lanes);
        if ((int)threadIdx.x >= lanes) continue;
        store_pair<false>(part + c, left, product);
        store_pair<false>(part + w.k + c, left, square);
    }
}

/* Computes X += P diag(a) and P = Z + P diag(b), with Z = D R (Z = R if D is
 * NULL). */
template <bool PAIRED>
__global__ void __launch_bounds__(256)
directions_kernel(view P, view X, view R, const double *D, int64_t n,
                  int lanes, step_arrays w)
{
    int rows = (int)blockDim.x / lanes;
    int64_t step = (int64_t)gridDim.x * rows;
    int64_t first = (int64_t)blockIdx.x * rows + threadIdx.x / lanes;

    if (stopped(w)) return;
    for (int base = 0; base < w.k; base += 2 * lanes) {
        int c = base + 2 * ((int)threadIdx.x % lanes), left = w.k - c;
        double2 a = load_pair<false>(w.a + c, left);
        double2 b = load_pair<false>(w.b + c, left);

#pragma unroll deep
        for (int64_t i = first; left > 0 && i < n; i += step) {
            double2 p = load<PAIRED>(P, i, c, left);
            double2 r = load<PAIRED>(R, i, c, left);
            double2 x = mul_add(p, a, load<PAIRED>(X, i, c, left));
            double d = D ? D[i] : 1.0;

            p = mul_add(p, b, make_double2(d * r.x, d * r.y));
            store_pair<PAIRED>(X.p + i * X.ld + c, left, x);
            store_pair<PAIRED>(P.p + i * P.ld + c, left, p);
        }
    }
    if (last_to_arrive(w.state, (int)gridDim.x) && threadIdx.x == 0)
        complete(w.state, w.state->pending);
}

/* Computes a_j = c_j / p_j'q_j for each column j, or 0 if the column has
 * converged. */
struct dense_lengths {
    __device__ void operator()(const step_arrays &w) const
    {
        for (int j = (int)threadIdx.x; j < w.k; j += 256) {
            double pq = __ldcg(w.G + j), c = __ldcg(w.C + j);
            bool done = w.last[j] <= w.limit[j];

            w.a[j] = done ? 0 : c / pq;
            if (done) continue;
            if (!isfinite(pq) || !isfinite(c))
                atomicOr(&w.state->stop, SPS_FUSED_BROKEN);
            else if (!(pq > 0 && c >= 0))
                atomicOr(&w.state->stop, SPS_FUSED_LENGTHS);
        }
    }
};

/* Computes b_j = c_j (new) / c_j (old) for each column j, stores the norms, and
 * sets the reasons to stop: after this step if columns have converged; before X
 * changes if a norm is not finite or best iterates must be stored first. */
struct dense_residual {
    __device__ void operator()(const step_arrays &w) const
    {
        int open = count_open(w, w.W + w.k);
        bool broken = false, left = false;

        for (int j = (int)threadIdx.x; j < w.k; j += 256) {
            broken = broken || !finite(w.last[j]);
            left = left || leaves(w, j, w.last[j]);
        }
        broken = __syncthreads_or(broken);
        left = __syncthreads_or(left);
        if (threadIdx.x == 0) {
            w.state->pending = look(open, w.k, w.few);
            if (broken || left)
                w.state->stop = broken ? SPS_FUSED_BROKEN : SPS_FUSED_STORE;
        }
        for (int j = (int)threadIdx.x; j < w.k; j += 256) {
            double c = __ldcg(w.W + j);

            w.b[j] = w.C[j] > 0 ? c / w.C[j] : 0;
            w.C[j] = c;
        }
    }
};

} // namespace

sps_status spsi_cuda_cols_lengths(const sps_fused_cg *w, const sps_block *P,
                                  const sps_block *Q)
{
    sps_context *ctx = w->ctx;
    cover c = cover_lines(ctx, P->n, w->k, 2 * deep);
    bool pairs = paired(P) && paired(Q);
    auto kernel = pairs ? lengths_kernel<true> : lengths_kernel<false>;
    double *part;

    SPS_TRY_RETURN(take_scratch(ctx, (int64_t)c.blocks * w->k, &part));
    SPS_TRY_RETURN(run_kernel(ctx, c.blocks, threads_of(c), kernel, view_of(P),
                              view_of(Q), P->n, c.lanes, part,
                              arrays_of(w)));
    return launch_join_and(ctx, part, (int)c.blocks, w->k, w->G,
                           arrays_of(w), dense_lengths{});
}

sps_status spsi_cuda_cols_residual(const sps_fused_cg *w, const sps_block *Q,
                                   sps_block *R)
{
    sps_context *ctx = w->ctx;
    cover c = cover_lines(ctx, R->n, w->k, 2 * deep);
    bool pairs = paired(Q) && paired(R);
    auto kernel = pairs ? residual_kernel<true> : residual_kernel<false>;
    double *part;

    SPS_TRY_RETURN(take_scratch(ctx, (int64_t)c.blocks * 2 * w->k, &part));
    SPS_TRY_RETURN(run_kernel(ctx, c.blocks, threads_of(c), kernel, view_of(Q),
                              view_of(R), w->D, R->n, c.lanes, part,
                              arrays_of(w)));
    return launch_join_and(ctx, part, (int)c.blocks, 2 * w->k, w->W,
                           arrays_of(w), dense_residual{});
}

sps_status spsi_cuda_cols_directions(const sps_fused_cg *w, sps_block *P,
                                     sps_block *X, const sps_block *R)
{
    sps_context *ctx = w->ctx;
    cover c = cover_lines(ctx, R->n, w->k, 2 * deep);
    bool pairs = paired(P) && paired(X) && paired(R);
    auto kernel = pairs ? directions_kernel<true> : directions_kernel<false>;

    return run_kernel(ctx, c.blocks, threads_of(c), kernel, view_of(P),
                      view_of(X), view_of(R), w->D, R->n, c.lanes,
                      arrays_of(w));
}
