/* SPDX-License-Identifier: BSD-3-Clause */
/* steps.cuh - what the passes of a step (lib/steps.h) share: the join of
 * partial sums, after which the last block to arrive does the dense work. */
#ifndef SPS_CUDA_STEPS_CUH
#define SPS_CUDA_STEPS_CUH

#include "device.cuh"
#include "steps.h"

/* steps_cols.cu: the passes with own scalars. */
sps_status spsi_cuda_cols_lengths(const sps_steps *w, const sps_block *P,
                                  const sps_block *Q);
sps_status spsi_cuda_cols_residual(const sps_steps *w, const sps_block *Q,
                                   sps_block *R);
sps_status spsi_cuda_cols_directions(const sps_steps *w, sps_block *P,
                                     sps_block *X, const sps_block *R);

/* steps_single.cu: large blocks of 16 columns of floats. */
bool spsi_cuda_single_serves(const sps_steps *w, const sps_block *X,
                             const sps_block *Y);
sps_status spsi_cuda_single_residual(const sps_steps *w, const sps_block *Q,
                                     sps_block *R);
sps_status spsi_cuda_single_directions(const sps_steps *w, sps_block *P,
                                       sps_block *X, const sps_block *R);

namespace {

/* lib/steps.h's arrays, by value. */
struct step_arrays {
    int r, k, most, parts, few;
    double condition;
    sps_steps_state *state;
    double *norms, *last, *limit, *G, *F, *a, *b, *W, *S, *C;
};

inline step_arrays arrays_of(const sps_steps *w, int parts = 1)
{
    return { w->r, w->k, w->most, parts, w->few, w->condition, w->state,
             w->norms, w->last, w->limit, w->G, w->F, w->a, w->b, w->W, w->S,
             w->C };
}

/* Nothing more is done once there is a reason to stop. */
__device__ __forceinline__ bool stopped(const step_arrays &w)
{
    return *(volatile int *)&w.state->stop != 0;
}

/* The state at the begin of a pass: one load. */
__device__ __forceinline__ sps_steps_state state_of(const step_arrays &w)
{
    const int4 *at = reinterpret_cast<const int4 *>(w.state);
    const int4 a = __ldcg(at), b = __ldcg(at + 1);

    return { a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w };
}

/* True in the last of so many blocks to get here; what the others wrote before
 * is visible to it. */
__device__ __forceinline__ bool last_to_arrive(sps_steps_state *state,
                                               int blocks)
{
    __shared__ int last;

    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicAdd(&state->arrived, 1) == blocks - 1;
        if (last) state->arrived = 0;
    }
    __syncthreads();
    __threadfence();
    return last;
}

/* out[e] = sum over p of part[p * count + e] as in join_parts, in the same
 * order; then DENSE, by the last block: a launch less for each pass. */
template <class DENSE>
__global__ void __launch_bounds__(256)
join_and(const double *__restrict__ part, int parts, int count, double *out,
         step_arrays w, DENSE dense)
{
    __shared__ double shared[256];
    int t = (int)threadIdx.x, e = (int)blockIdx.x * 8 + t % 8;
    double sum = 0;

    if (stopped(w)) return;
    if (e < count) {
#pragma unroll 8
        for (int p = t / 8; p < parts; p += 32)
            sum += part[(int64_t)p * count + e];
    }
    shared[t] = sum;
    for (int half = 128; half >= 8; half /= 2) {
        __syncthreads();
        if (t < half) shared[t] += shared[t + half];
    }
    if (t < 8 && e < count) out[e] = shared[t];
    if (last_to_arrive(w.state, (int)gridDim.x)) dense(w);
}

template <class DENSE>
sps_status launch_join_and(sps_context *ctx, const double *part, int parts,
                           int count, double *out, const step_arrays &w,
                           DENSE dense)
{
    join_and<<<(unsigned)ceil_div(count, 8), 256, 0,
               spsi_cuda_state(ctx)->stream>>>(part, parts, count, out, w,
                                               dense);
    SPS_LAUNCHED(ctx);
    return SPS_OK;
}

/* How many columns are still above their limits; -1 when a norm is not
 * finite.  Norms go to the row of this step.  All threads of a block; squares
 * were written by it or before the kernel. */
__device__ __forceinline__ int count_open(const step_arrays &w,
                                          const double *squares)
{
    __shared__ int open, broken;
    double *row = w.norms + w.state->taken % SPS_STEPS_AHEAD * w.most;

    if (threadIdx.x == 0) open = broken = 0;
    __syncthreads();
    for (int j = (int)threadIdx.x; j < w.k; j += (int)blockDim.x) {
        double norm = sqrt(((volatile const double *)squares)[j]);

        row[j] = w.last[j] = norm;
        if (!(norm <= 1.7976931348623157e308)) atomicAdd(&broken, 1);
        else if (!(norm <= w.limit[j])) atomicAdd(&open, 1);
    }
    __syncthreads();
    return broken ? -1 : open;
}

/* Whether the driver has something to decide: as solve.c and columns.c do. */
__device__ __forceinline__ int look(int open, int k, int few)
{
    return open <= 0 || (open < k && open <= few) ? SPS_STEPS_LOOK : 0;
}

/* The step is complete; thread 0 of the last block. */
__device__ __forceinline__ void complete(sps_steps_state *state, int reasons)
{
    state->taken = (state->taken + 1) & 0x3fffffff;
    state->stop = reasons;
}

} // namespace

#endif
