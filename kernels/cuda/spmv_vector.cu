/* SPDX-License-Identifier: BSD-3-Clause */
/* spmv_vector.cu - y = alpha A x + beta y for 1 to 4 columns, T threads a row.
 *
 * Bell and Garland's vector kernel (SC 2009) with the number of threads fitted
 * to the rows: T is the power of two nearest to half the mean length.  Entries
 * of a row are read side by side; each lane keeps a sum for every column and
 * the T sums are added by a tree of shuffles, so the order is fixed by T, and T
 * by the matrix.  Every lane of a row takes the same number of steps.  What
 * becomes of the sums is the epilogue's (sparse.cuh).
 *
 * Bytes: A once, y once, x as often as the caches forget it; with 2 to 4
 * columns a row of x is one 16 or 32 byte piece of a single sector. */
#include "sparse.cuh"

#include <stdio.h>

extern "C" const sps_kernel spsi_kernel_spmv_vector;

namespace {

constexpr int threads = 256, widest = 4;

struct vector_plan {
    sps_plan super;
    int per_row;
};

/* K columns, of which b.k count. */
template <int K, bool PAIRED>
__device__ __forceinline__ void load_row(double *v, const double *x, int k)
{
#pragma unroll
    for (int j = 0; j < K; j += 2) {
        double2 w = fetch_pair<PAIRED>(x + j, k - j);

        v[j] = w.x;
        if (j + 1 < K) v[j + 1] = w.y;
    }
}

template <int T, int K, bool PAIRED, class I, class V, class E>
__global__ void __launch_bounds__(threads)
vector_kernel(matrix<I, V> A, blocks<double> b, E finish)
{
    constexpr int unroll = 2;
    int64_t i = ((int64_t)blockIdx.x * threads + threadIdx.x) / T;
    int lane = (int)threadIdx.x % T;
    I p = 0, q = 0;
    double sum[unroll][K] = {};

    finish.begin();
    if (i < A.nrow) {
        p = A.rowptr[i];
        q = A.rowptr[i + 1];
    }
    for (int64_t e = (int64_t)p + lane; e < q; e += unroll * T) {
        int32_t col[unroll];
        double val[unroll], x[unroll][K];

#pragma unroll
        for (int u = 0; u < unroll; u++) {
            bool ok = e + u * T < q;

            col[u] = ok ? __ldcs(A.col + e + u * T) : -1;
            val[u] = ok ? (double)__ldcs(A.val + e + u * T) : 0.0;
        }
#pragma unroll
        for (int u = 0; u < unroll; u++)
            load_row<K, PAIRED>(x[u], b.x + col[u] * b.ldx,
                                col[u] >= 0 ? b.k : 0);
#pragma unroll
        for (int u = 0; u < unroll; u++)
#pragma unroll
            for (int j = 0; j < K; j++)
                sum[u][j] = fma(val[u], x[u][j], sum[u][j]);
    }
#pragma unroll
    for (int j = 0; j < K; j++) {
        double s = sum[0][j] + sum[1][j];

#pragma unroll
        for (int far = T / 2; far > 0; far /= 2)
            s += __shfl_xor_sync(all_lanes, s, far);
        if (lane == 0 && i < A.nrow && j < b.k) finish(i, j, s);
    }
}

template <int T, int K, bool PAIRED>
sps_status launch(const sps_plan *plan, const sps_spmm_args *args)
{
    sps_context *ctx = plan->ctx;
    blocks<double> b = blocks_of(args);

    return with_types(plan->A, [&](auto A) -> sps_status {
        vector_kernel<T, K, PAIRED>
            <<<(unsigned)ceil_div(A.nrow * T, threads), threads, 0,
               spsi_cuda_state(ctx)->stream>>>(A, b, epilogue_of(b));
        SPS_LAUNCHED(ctx);
        return SPS_OK;
    });
}

template <int T>
sps_status choose(const sps_plan *plan, const sps_spmm_args *args)
{
    bool pairs = paired(args->X);

    if (args->X->k == 1) return launch<T, 1, false>(plan, args);
    if (args->X->k == 2 && pairs) return launch<T, 2, true>(plan, args);
    if (pairs) return launch<T, 4, true>(plan, args);
    return launch<T, 4, false>(plan, args);
}

sps_status spmm(const sps_plan *plan, const sps_spmm_args *args)
{
    SPS_TRY_RETURN(spsi_cuda_enter(plan->ctx));
    if (args->Y->k == 0 || args->Y->n == 0) return SPS_OK;
    if (trivial(plan, args)) return scale_only(args);
    switch (((const vector_plan *)plan)->per_row) {
    case 1: return choose<1>(plan, args);
    case 2: return choose<2>(plan, args);
    case 4: return choose<4>(plan, args);
    case 8: return choose<8>(plan, args);
    case 16: return choose<16>(plan, args);
    default: return choose<32>(plan, args);
    }
}

int threads_for(const sps_features *f)
{
    int t = 1;

    /* The power of two nearest to half the mean length. */
    while (t < 32 && 1.4142 * t < f->mean_length / 2) t *= 2;
    return t;
}

bool fits(const sps_problem *p, const char **why_not)
{
    *why_not = "serves up to 4 columns";
    return p->k <= widest;
}

double cost(const sps_problem *p)
{
    return seconds(p, p->k == 1 ? 0.7 : 0.55) +
           1e-9 * (double)p->f->max_length;
}

sps_status plan(sps_context *ctx, const sps_problem *p, sps_plan **plan_p)
{
    vector_plan *v;

    SPS_TRY_RETURN(spsi_plan_new(ctx, &spsi_kernel_spmv_vector, p,
                                 sizeof(vector_plan), plan_p));
    v = (vector_plan *)*plan_p;
    v->per_row = threads_for(p->f);
    snprintf(v->super.detail, sizeof v->super.detail, "%d threads a row",
             v->per_row);
    return SPS_OK;
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_spmv_vector) = {
    .name = "spmv.vector",
    .op = SPS_OP_SPMM,
    .where = SPS_CUDA,
    .gives = SPS_REPRODUCIBLE | SPS_FULL_PRECISION | SPS_NAN_STAYS_IN_ROW,
    .fits = fits,
    .cost = cost,
    .plan = plan,
    .spmm = spmm,
    .sddmm = NULL,
    .refresh = NULL,
    .destroy = NULL,
};
