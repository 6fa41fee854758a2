/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_tca_fp16.cu - TCA-SpMM in half: values and X rounded to 11 bits, sums in
 * float.  Half reaches from 2^-24 to 65504 only, so each row of A and each
 * column of X is multiplied by the power of two that brings its largest finite
 * number to 2^14 .. 2^15, and the sum is multiplied back, both exactly; numbers
 * 2^38 times smaller than the largest are lost.  Rows are measured when the
 * values come, columns at each product: one more pass over X. */
#include "tca_low.cuh"

#include <cuda_fp16.h>

extern "C" const sps_kernel spsi_kernel_spmm_tca_fp16;

namespace {

constexpr int max_parts = 512;

struct half_float : bits16 {
    static __device__ __forceinline__ uint16_t round(double v)
    {
        return __half_as_ushort(__float2half_rn((float)v));
    }
    static __device__ __forceinline__ void
    multiply(float *o, uint32_t d0, uint32_t d1, uint32_t s)
    {
        asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
            "{%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
            : "+f"(o[0]), "+f"(o[1]), "+f"(o[2]), "+f"(o[3])
            : "r"(d0), "r"(d1), "r"(s));
    }
};

__device__ __forceinline__ double finite_size(double v)
{
    double a = fabs(v);

    return a < HUGE_VAL ? a : 0.0; /* NaN: 0 */
}

/* The power that brings max to 2^14 .. 2^15; kept where doubles can follow. */
__device__ __forceinline__ int exponent_of(double max)
{
    int e = max > 0 ? ilogb(max) - 14 : 0;

    return e < -1000 ? -1000 : e;
}

/* 8 lanes measure a row. */
__global__ void __launch_bounds__(256)
rows_exponents(tca_work w, int64_t nrow, int16_t *__restrict__ exponent)
{
    int64_t i = (int64_t)blockIdx.x * 32 + (int)threadIdx.x / 8;
    int64_t p = 0, last = 0;
    double max = 0;

    if (i < nrow) {
        p = w.begin(i) + (int)threadIdx.x % 8;
        last = w.begin(i + 1);
    }
    for (; p < last; p += 8) max = fmax(max, finite_size(w.value(p)));
#pragma unroll
    for (int d = 1; d < 8; d *= 2)
        max = fmax(max, __shfl_xor_sync(all_lanes, max, d));
    if (i < nrow && threadIdx.x % 8 == 0)
        exponent[i] = (int16_t)exponent_of(max);
}

/* part[block * k + j]: largest of column j in the block's rows, which are
 * every gridDim-th group of 256 / lanes. */
template <class T>
__global__ void __launch_bounds__(256)
columns_kernel(const T *__restrict__ x, int64_t ldx, int64_t n, int k,
               int lanes, double *__restrict__ part)
{
    __shared__ double shared[256];
    int t = (int)threadIdx.x, rows = 256 / lanes;

    for (int c = 0; c < k; c += lanes) {
        int j = c + t % lanes;
        double max = 0;

        if (j < k)
            for (int64_t i = (int64_t)blockIdx.x * rows + t / lanes; i < n;
                 i += (int64_t)gridDim.x * rows)
                max = fmax(max, finite_size((double)__ldg(x + i * ldx + j)));
        __syncthreads();
        shared[t] = max;
        for (int half = 128; half >= lanes; half /= 2) {
            __syncthreads();
            if (t < half) shared[t] = fmax(shared[t], shared[t + half]);
        }
        if (t < lanes && j < k)
            part[(int64_t)blockIdx.x * k + j] = shared[t];
    }
}

__global__ void __launch_bounds__(256)
columns_exponents(const double *__restrict__ max, int k,
                  int *__restrict__ exponent)
{
    for (int j = (int)threadIdx.x; j < k; j += 256)
        exponent[j] = exponent_of(max[j]);
}

/* Behind X in the plan's memory: partial maxima, maxima, exponents. */
double *parts_of(const sps_tca_plan *plan)
{
    size_t x = (size_t)plan->super.A->ncol * (size_t)low_ld(plan->super.k) *
               sizeof(uint16_t);

    return (double *)((char *)plan->x + (x + 15) / 16 * 16);
}

size_t parts_bytes(int k)
{
    return 16 + (size_t)k * ((max_parts + 1) * sizeof(double) + sizeof(int));
}

template <class T>
sps_status measure_columns(const sps_tca_plan *plan, const blocks<T> &b,
                           const int **exponent_p)
{
    sps_context *ctx = plan->super.ctx;
    cudaStream_t stream = spsi_cuda_state(ctx)->stream;
    int lanes = power_above(b.k) > 256 ? 256 : power_above(b.k);
    int64_t n = plan->super.A->ncol, most = ceil_div(n, 256 / lanes);
    int parts = most < max_parts ? (int)most : max_parts;
    double *part = parts_of(plan);
    double *max = part + (int64_t)max_parts * b.k;
    int *exponent = (int *)(max + b.k);

    columns_kernel<T><<<(unsigned)parts, 256, 0, stream>>>(b.x, b.ldx, n, b.k,
                                                          lanes, part);
    SPS_LAUNCHED(ctx);
    SPS_TRY_RETURN(launch_join<larger>(ctx, part, parts, b.k, max));
    columns_exponents<<<1, 256, 0, stream>>>(max, b.k, exponent);
    SPS_LAUNCHED(ctx);
    *exponent_p = exponent;
    return SPS_OK;
}

template <class T>
sps_status product(const sps_tca_plan *plan, const blocks<T> &b)
{
    source<uint16_t> x;
    const int *exponent;

    SPS_TRY_RETURN(measure_columns(plan, b, &exponent));
    SPS_TRY_RETURN((convert_x<half_float, T>(plan, b, exponent, &x)));
    return b.k <= 32 ? launch_tca<form16<half_float, 32>, T, true>(plan, b, x)
                     : launch_tca<form16<half_float, 64>, T, true>(plan, b, x);
}

sps_status spmm(const sps_plan *super, const sps_spmm_args *args)
{
    const sps_tca_plan *plan = (const sps_tca_plan *)super;

    SPS_TRY_RETURN(spsi_cuda_enter(super->ctx));
    if (args->Y->k == 0 || args->Y->n == 0) return SPS_OK;
    if (trivial(super, args)) return scale_only(args);
    return args->Y->dtype == SPS_F64 ? product(plan, blocks_of<double>(args))
                                     : product(plan, blocks_of<float>(args));
}

sps_status refresh(sps_plan *super)
{
    const sps_tca_plan *plan = (const sps_tca_plan *)super;
    sps_context *ctx = super->ctx;
    int64_t nrow = super->A->nrow;

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    if (nrow == 0) return SPS_OK;
    rows_exponents<<<(unsigned)ceil_div(nrow, 32), 256, 0,
                     spsi_cuda_state(ctx)->stream>>>(
        work_of(plan), nrow, (int16_t *)plan->scale);
    SPS_LAUNCHED(ctx);
    return SPS_OK;
}

double cost(const sps_problem *p)
{
    return seconds(p, p->k < 16 ? 0.12 : 0.25);
}

sps_status plan(sps_context *ctx, const sps_problem *p, sps_plan **plan_p)
{
    sps_tca_plan *plan;

    SPS_TRY_RETURN(low_plan(ctx, &spsi_kernel_spmm_tca_fp16, p,
                            sizeof(uint16_t), parts_bytes(p->k), plan_p));
    plan = (sps_tca_plan *)*plan_p;
    plan->scale_bytes = (size_t)p->local->nrow * sizeof(int16_t);
    if (plan->scale_bytes == 0) return SPS_OK;
    SPS_TRY_RETURN(spsi_cuda_alloc(ctx, plan->scale_bytes, &plan->scale));
    plan->super.bytes += plan->scale_bytes;
    return refresh(*plan_p);
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_spmm_tca_fp16) = {
    .name = "spmm.tca_fp16",
    .op = SPS_OP_SPMM,
    .where = SPS_CUDA,
    .gives = SPS_REPRODUCIBLE | SPS_NAN_STAYS_IN_ROW | SPS_SINGLE_BLOCKS,
    .roundoff = 0x1p-11,
    .fits = spsi_cuda_tca_fits,
    .cost = cost,
    .plan = plan,
    .spmm = spmm,
    .sddmm = NULL,
    .refresh = refresh,
    .destroy = spsi_cuda_tca_destroy,
};
