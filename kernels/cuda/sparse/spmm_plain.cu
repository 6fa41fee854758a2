/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_plain.cu - Y = alpha A X + beta Y by rows (plain_rows.cuh); fits any
 * matrix and serves to verify the other kernels.  Also what these leave to this
 * file (sparse.cuh): Y = beta Y, and rows of X that are 4 GB or more apart.
 *
 * Bytes: A once per slice of 32 columns, Y once, rows of X again whenever L1
 * and L2 have evicted them. */
#include "cuda/sparse/plain_rows.cuh"

namespace {

/* The accumulator of plain_rows.cuh, in double precision.  The number of
 * threads was measured: doc/log/spmm-rode.md. */
struct sum_of_doubles {
    static constexpr int threads = 768;
    double s = 0;

    __device__ __forceinline__ void add(double a, double x)
    {
        s = fma(a, x, s);
    }
};

struct to_block {
    blocks<double> b;

    __device__ __forceinline__ void begin() { b.resolve(); }
    template <bool PAIRED>
    __device__ __forceinline__ void pair(int64_t i, int c, int left,
                                         const sum_of_doubles *sum) const
    {
        double *to = b.y + i * b.ldy + c;
        double2 old = make_double2(0.0, 0.0);

        if (b.fused) {
            to[0] = b.join(sum[0].s, to, i);
            if (left > 1) to[1] = b.join(sum[1].s, to + 1, i);
            return;
        }
        if (b.beta != 0) old = load_pair<PAIRED>(to, left);
        store_pair<PAIRED>(to, left, make_double2(b.join(sum[0].s, &old.x),
                                                  b.join(sum[1].s, &old.y)));
    }
};

sps_status spmm(const sps_plan *plan, const sps_spmm_args *args)
{
    return walk_plain<sum_of_doubles>(plan->ctx, plan->A, args->X,
                                      paired(args->X) && paired(args->Y),
                                      to_block{blocks_of(args)});
}

bool fits(const sps_problem *p, const char **why_not)
{
    *why_not = "the matrix comes from a source, and no memory holds all of it";
    return !p->source;
}

/* Predicts the seconds for reading a matrix in host memory, once for each slice
 * of 32 columns: kernels reach 93 % of the rate of copies (51 of 55 GB/s,
 * measured). */
double over_link(const sps_problem *p)
{
    const double value = (double)spsi_dtype_size(p->A->dtype);
    const double bytes = (double)p->f->nnz * (value + 4) +
                         4 * (double)p->f->nrow;

    if (!p->local->far) return 0;
    return bytes * (double)ceil_div(p->k, 32) / (0.93 * p->machine->link);
}

/* Predicted seconds, with a time per entry of the longest row (`serial`), since
 * one group of lanes processes a row, however long it is. */
double cost(const sps_problem *p)
{
    return predicted(p, {1.32, 0.62, 1.1e-12, 0.1, 1, 1.74e-7, 0}) +
           (p->k == 1 ? 6e-6 : 0) + over_link(p);
}

/* ----------------------------------------------------- for other kernels */

template <class T>
__global__ void __launch_bounds__(256) scale_kernel(blocks<T> b, int64_t n)
{
    int64_t e = (int64_t)blockIdx.x * 256 + threadIdx.x, i = e / b.k;
    T *y = b.y + i * b.ldy + e % b.k;

    b.resolve();
    b.alpha = 0;
    if (i < n) *y = b.join(T(0), y);
}

/* The kernel for a row stride of X of 4 GB or more: one thread per row. */
template <class I, class V, class N>
__global__ void __launch_bounds__(256)
far_kernel(matrix<I, V> A, blocks<N> b)
{
    int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;

    b.resolve();
    if (i >= A.nrow) return;
    for (int j = 0; j < b.k; j++) {
        N *y = b.y + i * b.ldy + j;
        N sum = 0;

        for (I p = A.rowptr[i]; p < A.rowptr[i + 1]; p++)
            sum = fma((N)A.val[p], b.x[A.col[p] * b.ldx + j], sum);
        *y = b.join(sum, y, i);
    }
}

} // namespace

sps_status spsi_cuda_scale(const sps_spmm_args *args)
{
    const sps_block *Y = args->Y;
    sps_context *ctx = Y->ctx;
    unsigned grid = (unsigned)ceil_div(Y->n * Y->k, 256);
    cudaStream_t stream = spsi_cuda_state(ctx)->stream;

    if (!args->scalars && args->beta == 1) return SPS_OK;
    if (Y->dtype == SPS_F64)
        scale_kernel<<<grid, 256, 0, stream>>>(blocks_of<double>(args), Y->n);
    else
        scale_kernel<<<grid, 256, 0, stream>>>(blocks_of<float>(args), Y->n);
    SPS_LAUNCHED(ctx);
    return SPS_OK;
}

sps_status spsi_cuda_far_product(const sps_plan *plan,
                                 const sps_spmm_args *args)
{
    return with_all_types(plan->A, args, [&](auto A, auto b) -> sps_status {
        far_kernel<<<(unsigned)ceil_div(A.nrow, 256), 256, 0,
                     spsi_cuda_state(plan->ctx)->stream>>>(A, b);
        SPS_LAUNCHED(plan->ctx);
        return SPS_OK;
    });
}

SPS_DEFINE(sps_kernel, spsi_kernel_spmm_plain) = {
    .name = "spmm.plain",
    .op = SPS_OP_SPMM,
    .gives = SPS_REPRODUCIBLE | SPS_FULL_PRECISION | SPS_NAN_STAYS_IN_ROW |
             SPS_STREAMS | SPS_FOR_CHECKS,
    .fuses = true,
    .fits = fits,
    .cost = cost,
    .spmm = guarded<spmm>,
};
