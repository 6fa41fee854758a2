/* SPDX-License-Identifier: BSD-3-Clause */
/* spmv_scalar.cu - y = alpha A x + beta y, one thread per row.
 *
 * Bell and Garland, Implementing sparse matrix-vector multiplication on
 * throughput-oriented processors, SC 2009: the scalar kernel.  Neighbouring
 * threads read entries that are a row apart, so it suits rows of very few
 * entries; it is the simplest kernel.  Bytes: A once (in sectors, shared
 * through L1), entries of x again whenever the caches have evicted them, y
 * once.  Sums are in the order of the row; no atomics. */
#include "cuda/sparse/sparse.cuh"

namespace {

template <class I, class V, class T, class E>
__global__ void __launch_bounds__(256)
scalar_kernel(matrix<I, V> A, blocks<T> b, E finish)
{
    int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;
    T sum = 0;

    finish.begin();
    if (i >= A.nrow) return;
    for (I p = A.rowptr[i]; p < A.rowptr[i + 1]; p++)
        sum = fma((T)A.val[p], __ldg(b.x + A.col[p] * b.ldx), sum);
    finish(i, 0, sum);
}

sps_status spmm(const sps_plan *plan, const sps_spmm_args *args)
{
    sps_context *ctx = plan->ctx;

    return with_all_types(plan->A, args, [&](auto A, auto b) -> sps_status {
        scalar_kernel<<<(unsigned)ceil_div(A.nrow, 256), 256, 0,
                        spsi_cuda_state(ctx)->stream>>>(A, b, epilogue_of(b));
        SPS_LAUNCHED(ctx);
        return SPS_OK;
    });
}

bool fits(const sps_problem *p, const char **why_not)
{
    *why_not = "it multiplies single vectors only";
    return p->k == 1;
}

/* Predicted seconds.  The longer the rows, the less of each memory sector is
 * used, as threads read entries that are a row apart; a thread processes its
 * entries sequentially. */
double cost(const sps_problem *p)
{
    double length = p->f->mean_length, share = 0.7;

    if (length > 8) share = 5.6 / length;
    return 1.4e-6 + stream_seconds(p, share) + scattered(p) +
           0.8 * step_seconds(p) * (double)p->f->max_length;
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_spmv_scalar) = {
    .name = "spmv.scalar",
    .op = SPS_OP_SPMM,
    .gives = SPS_REPRODUCIBLE | SPS_FULL_PRECISION | SPS_NAN_STAYS_IN_ROW |
             SPS_SINGLE_BLOCKS,
    .fits = fits,
    .cost = cost,
    .spmm = guarded<spmm>,
};
