/* SPDX-License-Identifier: BSD-3-Clause */
/* steps_device.cuh - common code of the passes of a fused iteration
 * (lib/driver/fused_cg.h): the state, the stop tests, and the reduction of
 * partial sums followed by dense work in the last thread block to arrive. */
#ifndef SPS_CUDA_STEPS_CUH
#define SPS_CUDA_STEPS_CUH

#include "cuda/base/device.cuh"
#include "block/fused_step.h"

/* steps_cols.cu: the passes of an iteration whose scalars a and b belong to
 * single columns, as in pseudo-block CG. */
sps_status spsi_cuda_cols_lengths(const sps_fused_cg *w, const sps_block *P,
                                  const sps_block *Q);
sps_status spsi_cuda_cols_residual(const sps_fused_cg *w, const sps_block *Q,
                                   sps_block *R);
sps_status spsi_cuda_cols_directions(const sps_fused_cg *w, sps_block *P,
                                     sps_block *X, const sps_block *R);

/* steps_single.cu: the passes `residual` and `directions` for large blocks of
 * 16 columns of floats; spsi_cuda_single_serves returns whether the blocks X
 * and Y are such blocks. */
bool spsi_cuda_single_serves(const sps_fused_cg *w, const sps_block *X,
                             const sps_block *Y);
sps_status spsi_cuda_single_residual(const sps_fused_cg *w, const sps_block *Q,
                                     sps_block *R);
sps_status spsi_cuda_single_directions(const sps_fused_cg *w, sps_block *P,
                                       sps_block *X, const sps_block *R);

namespace {

/* The arrays of sps_fused_cg, passed by value. */
struct step_arrays {
    int r, k, most, parts, few;
    double condition;
    sps_fused_cg_state *state;
    double *norms, *last, *limit, *least, *kept, *gap;
    double *G, *F, *a, *b, *W, *S, *C;
};

inline step_arrays arrays_of(const sps_fused_cg *w, int parts = 1)
{
    return { w->r, w->k, w->most, parts, w->few, w->condition, w->state,
             w->norms, w->last, w->known.limit, w->known.least,
             w->known.kept_norm, w->known.gap,
             w->G, w->F, w->a, w->b, w->W, w->S, w->C };
}

/* Returns whether there is a reason to stop: then queued passes do nothing. */
__device__ __forceinline__ bool stopped(const step_arrays &w)
{
    return *(volatile int *)&w.state->stop != 0;
}

/* Returns the state at the beginning of a pass, read by two loads of 16
 * bytes. */
__device__ __forceinline__ sps_fused_cg_state state_of(const step_arrays &w)
{
    const int4 *at = reinterpret_cast<const int4 *>(w.state);
    const int4 a = __ldcg(at), b = __ldcg(at + 1);

    return { a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w };
}

/* Returns true in the last of `blocks` thread blocks to call this function;
 * what the others wrote before is visible to it. */
__device__ __forceinline__ bool last_to_arrive(sps_fused_cg_state *state,
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

/* out[e] = sum over p of part[p * count + e], in the order of join_parts
 * (device.cuh); then the last thread block to arrive executes `dense`, the work
 * on small matrices, which saves a launch per pass. */
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
    return run_kernel(ctx, (unsigned)ceil_div(count, 8), 256, join_and<DENSE>,
                      part, parts, count, out, w, dense);
}

/* Returns whether a norm is finite; false for NaN too. */
__device__ __forceinline__ bool finite(double norm)
{
    return norm <= 1.7976931348623157e308;
}

/* Returns whether an iterate of column j has to be stored before X changes
 * (best.c); the answer is the same whether or not `least` already includes the
 * norm. */
__device__ __forceinline__ bool leaves(const step_arrays &w, int j, double norm)
{
    const volatile double *least = w.least;

    return SPS_BEST_LOST(norm + w.gap[j], least[j], w.kept[j]);
}

/* Returns how many columns have a norm above their limit, and stores the norms
 * of this step in its row of w.norms.  Called by all threads of a thread block;
 * the squares were written by this thread block or before the kernel. */
__device__ __forceinline__ int count_open(const step_arrays &w,
                                          const double *squares)
{
    __shared__ int open;
    double *row = w.norms + w.state->taken % SPS_FUSED_QUEUE * w.most;

    if (threadIdx.x == 0) open = 0;
    __syncthreads();
    for (int j = (int)threadIdx.x; j < w.k; j += (int)blockDim.x) {
        double norm = sqrt(((volatile const double *)squares)[j]);

        row[j] = w.last[j] = norm;
        if (norm + w.gap[j] < w.least[j]) w.least[j] = norm + w.gap[j];
        if (!(norm <= w.limit[j])) atomicAdd(&open, 1);
    }
    __syncthreads();
    return open;
}

/* Returns SPS_FUSED_CHECK if the driver must decide on convergence or
 * deflation, else 0: `open` of k columns are not converged, and columns are
 * deflated if at most `few` are left (the conditions of solve.c and
 * columns.c). */
__device__ __forceinline__ int look(int open, int k, int few)
{
    return open == 0 || (open < k && open <= few) ? SPS_FUSED_CHECK : 0;
}

/* Marks the step as complete, with the reasons to stop; called by thread 0 of
 * the last thread block. */
__device__ __forceinline__ void complete(sps_fused_cg_state *state, int reasons)
{
    state->taken = (state->taken + 1) & 0x3fffffff;
    state->stop = reasons;
}

} // namespace

#endif
