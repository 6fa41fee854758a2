/* SPDX-License-Identifier: BSD-3-Clause */
/* sddmm_plain.cu - val[p] = alpha (u_i . v_j) [* a_p] + beta val[p] for each
 * stored (i, j), by rows; fits any matrix.
 *
 * 2, 4, 8, 16 or 32 lanes process one row, each with pairs of columns of U and
 * V; up to 64 columns the row of U stays in registers.  The loads of four
 * entries are in flight together; the partial dot products are added over the
 * lanes by a tree of shuffles, so the order is fixed.  Bytes: columns and val
 * once, U once; for each entry a row of V, from memory only if the caches have
 * evicted it. */
#include "cuda/sparse/sparse.cuh"

namespace {

constexpr int threads = 256, deep = 4;

struct sample {
    double alpha, beta;
    const double *__restrict__ u;
    int64_t ldu;
    const double *__restrict__ v;
    int64_t ldv;
    int d;
    bool multiply;
    double *__restrict__ out;
};

template <int L, bool PAIRED, class I, class V>
__global__ void __launch_bounds__(threads)
sddmm_kernel(matrix<I, V> A, sample s)
{
    int64_t i = ((int64_t)blockIdx.x * threads + threadIdx.x) / L;
    int c = 2 * ((int)threadIdx.x % L), left = s.d - c;
    const double *u = s.u + i * s.ldu + c;
    double2 mine = make_double2(0.0, 0.0);
    int64_t p = 0;
    int length = 0;

    if (i < A.nrow) {
        p = A.rowptr[i];
        length = (int)(A.rowptr[i + 1] - p);
        mine = fetch_pair<PAIRED>(u, left);
    }
    for (int e = 0, most = __reduce_max_sync(all_lanes, length); e < most;
         e += deep) {
        int32_t col[deep];
        double dot[deep];

#pragma unroll
        for (int w = 0; w < deep; w++)
            col[w] = e + w < length ? __ldg(A.col + (p + e + w)) : -1;
#pragma unroll
        for (int w = 0; w < deep; w++) {
            double2 v = fetch_pair<PAIRED>(s.v + col[w] * s.ldv + c,
                                           col[w] >= 0 ? left : 0);

            dot[w] = fma(mine.x, v.x, mine.y * v.y);
        }
        /* Adds the columns beyond the first 2 L, if there are any. */
        for (int far = 2 * L; far < s.d; far += 2 * L) {
            double2 more = fetch_pair<PAIRED>(u + far,
                                              i < A.nrow ? left - far : 0);
#pragma unroll
            for (int w = 0; w < deep; w++) {
                double2 v = fetch_pair<PAIRED>(s.v + col[w] * s.ldv + c + far,
                                               col[w] >= 0 ? left - far : 0);

                dot[w] = fma(more.x, v.x, fma(more.y, v.y, dot[w]));
            }
        }
#pragma unroll
        for (int w = 0; w < deep; w++) {
#pragma unroll
            for (int far = L / 2; far > 0; far /= 2)
                dot[w] += __shfl_xor_sync(all_lanes, dot[w], far);
            if (e + w < length && c == 2 * (w % L)) {
                double r = s.alpha * dot[w];
                double *out = s.out + (p + e + w);

                if (s.multiply) r *= (double)A.val[p + e + w];
                *out = s.beta != 0 ? fma(s.beta, *out, r) : r;
            }
        }
    }
}

/* val = beta val, for alpha = 0: U, V and A are not read. */
__global__ void __launch_bounds__(threads)
scale_samples(double beta, double *val, int64_t nnz)
{
    int64_t p = (int64_t)blockIdx.x * threads + threadIdx.x;

    if (p < nnz) val[p] = beta != 0 ? beta * val[p] : 0.0;
}

template <int L>
sps_status launch(const sps_plan *plan, const sample &s, bool pairs)
{
    sps_context *ctx = plan->ctx;

    return with_types(plan->A, [&](auto A) -> sps_status {
        unsigned grid = (unsigned)ceil_div(A.nrow * L, threads);
        cudaStream_t stream = spsi_cuda_state(ctx)->stream;

        if (pairs)
            sddmm_kernel<L, true><<<grid, threads, 0, stream>>>(A, s);
        else
            sddmm_kernel<L, false><<<grid, threads, 0, stream>>>(A, s);
        SPS_LAUNCHED(ctx);
        return SPS_OK;
    });
}

sps_status sddmm(const sps_plan *plan, const sps_sddmm_args *args)
{
    sps_context *ctx = plan->ctx;
    int64_t nnz = plan->A->nnz;
    bool pairs = paired(args->U) && paired(args->V);
    sample s;

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    if (nnz == 0) return SPS_OK;
    if (args->alpha == 0 || args->U->k == 0)
        return run_kernel(ctx, (unsigned)ceil_div(nnz, threads), threads,
                          scale_samples<double>, args->beta,
                          (double *)args->val, nnz);
    s.alpha = args->alpha;
    s.beta = args->beta;
    s.u = numbers(args->U);
    s.ldu = args->U->ld;
    s.v = numbers(args->V);
    s.ldv = args->V->ld;
    s.d = args->U->k;
    s.multiply = args->multiply;
    s.out = (double *)args->val;
    if (s.d <= 4) return launch<2>(plan, s, pairs);
    if (s.d <= 8) return launch<4>(plan, s, pairs);
    if (s.d <= 16) return launch<8>(plan, s, pairs);
    if (s.d <= 32) return launch<16>(plan, s, pairs);
    return launch<32>(plan, s, pairs);
}

double cost(const sps_problem *p)
{
    return (double)p->f->nnz * (8.0 * p->k + 20.0) / p->machine->copy;
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_sddmm_plain) = {
    .name = "sddmm.plain",
    .op = SPS_OP_SDDMM,
    .gives = SPS_REPRODUCIBLE | SPS_FULL_PRECISION | SPS_NAN_STAYS_IN_ROW |
             SPS_STREAMS,
    .cost = cost,
    .sddmm = sddmm,
};
