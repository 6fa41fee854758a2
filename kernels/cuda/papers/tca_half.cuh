/* SPDX-License-Identifier: BSD-3-Clause */
/* tca_half.cuh - TCA-SpMM in fp16: values and X rounded to 11 significant bits,
 * sums in fp32.  The range of fp16 is only 2^-24 to 65504, so each row of A and
 * each column of X is multiplied by the power of two that brings its largest
 * finite magnitude to 2^14 .. 2^15, and the sum is multiplied back, both
 * exactly; numbers that are 2^38 times smaller than the largest of their row or
 * column are lost.  The maxima of rows are computed when the values are set;
 * those of columns at each product, over those rows of X that are used by some
 * entry: one more pass over X. */
#ifndef SPS_CUDA_TCA_HALF_CUH
#define SPS_CUDA_TCA_HALF_CUH

#include "cuda/papers/tca_low.cuh"

#include <cuda_fp16.h>

namespace {

constexpr int max_parts = 1056; /* largest number of partial maxima: eight
                                   thread blocks on each of 132
                                   multiprocessors */

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

    return a < HUGE_VAL ? a : 0.0; /* 0 for infinity and NaN */
}

/* Returns the exponent that brings max to 2^14 .. 2^15, limited so that scaling
 * stays in the range of doubles. */
__device__ __forceinline__ int exponent_of(double max)
{
    int e = max > 0 ? ilogb(max) - 14 : 0;

    return e < -1000 ? -1000 : e;
}

/* Computes the scaling exponents of the rows of A; 8 lanes process a row. */
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

/* Sets used[j] = 1 if some entry of A is in column j; `used` must have been
 * cleared. */
__global__ void __launch_bounds__(256)
used_kernel(const int32_t *__restrict__ col, int64_t nnz,
            uint8_t *__restrict__ used)
{
    int64_t p = (int64_t)blockIdx.x * 256 + threadIdx.x;

    if (p < nnz) used[col[p]] = 1;
}

/* part[block * k + j] becomes the largest finite magnitude of column j of X in
 * the rows of this thread block, which are every gridDim-th group of 256 /
 * lanes rows. */
template <class T>
__global__ void __launch_bounds__(256)
columns_kernel(const T *__restrict__ x, int64_t ldx, int64_t n, int k,
               const uint8_t *__restrict__ used, int lanes,
               double *__restrict__ part)
{
    __shared__ double shared[256];
    int t = (int)threadIdx.x, rows = 256 / lanes;
    int64_t step = (int64_t)gridDim.x * rows;

    for (int c = 0; c < k; c += lanes) {
        int j = c + t % lanes;
        double max = 0;

        /* Each thread loads eight rows at once; rows that no entry uses are
         * read too, but not counted. */
        if (j < k)
            for (int64_t i = (int64_t)blockIdx.x * rows + t / lanes; i < n;
                 i += 8 * step) {
                double v[8];

#pragma unroll
                for (int r = 0; r < 8; r++) {
                    int64_t at = i + r * step;

                    v[r] = 0;
                    if (at < n) {
                        double a = (double)__ldg(x + at * ldx + j);

                        if (used[at]) v[r] = a;
                    }
                }
#pragma unroll
                for (int r = 0; r < 8; r++) max = fmax(max, finite_size(v[r]));
            }
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

/* Offsets in bytes, in plan->x, of the arrays that follow the converted X of k
 * columns, and the total size. */
struct half_room {
    size_t part, max, exponent, used, bytes;
};

half_room half_room_of(int64_t ncol, int k)
{
    half_room r;

    r.part = (size_t)ncol * (size_t)low_ld(k) * sizeof(uint16_t);
    r.max = r.part + (size_t)max_parts * (size_t)k * sizeof(double);
    r.exponent = r.max + (size_t)k * sizeof(double);
    r.used = r.exponent + (size_t)k * sizeof(int);
    r.bytes = r.used + (size_t)ncol;
    return r;
}

template <class T>
sps_status measure_columns(const sps_tca_plan *plan, const blocks<T> &b,
                           const int **exponent_p)
{
    sps_context *ctx = plan->super.ctx;
    int lanes = power_above(b.k) > 256 ? 256 : power_above(b.k);
    int64_t n = plan->super.A->ncol, most = ceil_div(n, 256 / lanes);
    int parts = most < max_parts ? (int)most : max_parts;
    half_room room = half_room_of(n, plan->super.k);
    char *memory = (char *)plan->x;
    double *part = (double *)(memory + room.part);
    double *max = (double *)(memory + room.max);
    int *exponent = (int *)(memory + room.exponent);

    SPS_TRY_RETURN(run_kernel(ctx, (unsigned)parts, 256, columns_kernel<T>, b.x,
                              b.ldx, n, b.k,
                              (const uint8_t *)(memory + room.used), lanes,
                              part));
    SPS_TRY_RETURN(launch_join<larger>(ctx, part, parts, b.k, max));
    SPS_TRY_RETURN(run_kernel(ctx, 1, 256, columns_exponents, max, b.k,
                              exponent));
    *exponent_p = exponent;
    return SPS_OK;
}

/* Converts X to fp16, with scaling; *x includes the exponents. */
template <class T>
sps_status half_x(const sps_tca_plan *plan, const blocks<T> &b,
                  source<uint16_t> *x)
{
    const int *exponent;

    SPS_TRY_RETURN(measure_columns(plan, b, &exponent));
    return convert_x<half_float, T>(plan, b, exponent, x);
}

sps_status half_refresh(sps_plan *super)
{
    const sps_tca_plan *plan = (const sps_tca_plan *)super;
    sps_context *ctx = super->ctx;
    int64_t nrow = super->A->nrow;

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    if (nrow == 0) return SPS_OK;
    return run_kernel(ctx, (unsigned)ceil_div(nrow, 32), 256, rows_exponents,
                      work_of(plan), nrow, (int16_t *)plan->scale);
}

sps_status mark_used(sps_context *ctx, const sps_csr_local *A, uint8_t *used)
{
    SPS_TRY_RETURN(clear(ctx, A->ncol, used));
    return run_items(ctx, A->nnz, used_kernel, A->col, A->nnz, used);
}

sps_status half_plan(sps_plan *super, const sps_problem *p)
{
    sps_context *ctx = super->ctx;
    sps_tca_plan *plan = (sps_tca_plan *)super;
    const half_room room = half_room_of(p->local->ncol, p->k);

    SPS_TRY_RETURN(low_plan(super, p, room.bytes));
    SPS_TRY_RETURN(mark_used(ctx, p->local, (uint8_t *)plan->x + room.used));
    SPS_TRY_RETURN(plan_take(super, p->local->nrow,
                             (int16_t **)&plan->scale));
    return half_refresh(super);
}

} // namespace

#endif
