/* SPDX-License-Identifier: BSD-3-Clause */
/* steps_single.cu - `residual` and `directions` of a fused iteration
 * (steps_block.cu) for large blocks of 16 columns of floats, read through
 * shared memory by a staged pipeline (sm_90).
 *
 *   pass         bytes of a row, including 8 of the diagonal
 *   residual     200: Q, R, R
 *   directions   328: P, X, R, X, P
 *
 * A row has half the bytes of one of doubles but takes as many instructions, so
 * that direct loads run out of registers before memory bandwidth is saturated:
 * for a 27-point matrix of 128^3 rows on an H200 `directions` takes 0.228 ms by
 * direct loads and 0.190 ms by the pipeline, `residual` 0.142 and 0.112 ms (at
 * 4.2 TB/s the bytes alone take 0.164 and 0.100 ms).  `lengths`, which needs
 * few registers, is no faster by the pipeline.  The first row tiles are in
 * flight while each thread block does the k x k work. */
#include "cuda/base/shared_limit.cuh"
#include "cuda/fused_cg/single_pipeline.cuh"
#include "cuda/fused_cg/steps_join.cuh"

namespace {

constexpr int square_of = 16 * 16;   /* number of entries of a small matrix */

struct single_blocks {
    float *P, *Q, *X, *R;
    const double *D;
    int64_t n;
};

/* Returns the pipeline of row tiles of `blocks`, whose copies start once the
 * preceding pass is complete. */
template <class... BLOCK>
__device__ __forceinline__ auto open_pipeline(float *shared, uint64_t *barriers,
                                            const single_blocks &f,
                                            BLOCK... blocks)
{
    single_pipeline<sizeof...(blocks)> in(shared, barriers, f.D, f.n);
    int b = 0;

    ((in.from[b++] = blocks), ...);
    begin_after();
    in.begin();
    return in;
}

/* Computes a = G^-1 C, R -= Q a, W = Q'Z with Z = D R (Z = R if D is NULL), and
 * the sums of squares of the columns of R. */
__global__ void __launch_bounds__(32 * single_pipeline<2>::warps)
residual_kernel(single_blocks f, double *part, step_arrays w)
{
    using pipeline = single_pipeline<2>;
    constexpr int warps = pipeline::warps;
    extern __shared__ __align__(16) float shared[];
    __shared__ uint64_t barriers[warps * pipeline::stages];
    __shared__ union {
        lengths_room<16> dense;
        double sums[room<1, warps>];
    } u;
    const int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
    double sum[1][2][4] = {}, square[1][2] = {}, factor[8], *a = NULL, *out;
    pipeline in = open_pipeline(shared, barriers, f, f.Q, f.R);
    bool go;

    go = find_lengths<1, 16, 32 * warps>(u.dense, w, &a);
    leave_lengths<16, 32 * warps>(u.dense, w, go, a);
    if (!go) {
        in.give_up();
        return;
    }
    take_factor(factor, a, -1.0, 16, g, t);
    __syncthreads();
    while (in.at < in.count) {
        const int64_t row = in.at * pipeline::rows;
        const float *s = in.current();
        float4 across[2];
        float2 down[2][2], old[2][2];
        double d[2][2] = { { 1, 1 }, { 1, 1 } }, q[2][1][4], r[2][1][4];

#pragma unroll
        for (int h = 0; h < 2; h++) {
            across[h] = read_across(s, h, g, t);
            read_down(down[h], s, h, g, t);
            read_down(old[h], s + pipeline::block, h, g, t);
            if (f.D) read_diagonal(d[h], s + 2 * pipeline::block, h, t);
        }
        in.next();
#pragma unroll
        for (int h = 0; h < 2; h++) {
            widen(r[h], old[h]);
            widen(q[h], down[h]);
            multiply_across(r[h], factor, across[h]);
            put_down(r[h], f.R, row, f.n, h, g, t);
#pragma unroll
            for (int e = 0; e < 4; e++) {
                square[0][e / 2] = fma(r[h][0][e], r[h][0][e],
                                       square[0][e / 2]);
                r[h][0][e] *= d[h][e % 2];
            }
        }
        add_gram<1, 2>(sum, q, r);
    }
    out = part + (int64_t)blockIdx.x * (square_of + 16);
    join_gram<1, warps>(sum, u.sums, out, 16, 16);
    join_squares<1, warps>(square, u.sums, out + square_of, 16);
}

/* Computes b = -G^-1 W, X += P a, P = Z + P b with Z = D R (Z = R if D is
 * NULL), S = P'P and C = P'R. */
__global__ void __launch_bounds__(32 * single_pipeline<3>::warps)
directions_kernel(single_blocks f, double *part, step_arrays w)
{
    using pipeline = single_pipeline<3>;
    constexpr int warps = pipeline::warps;
    extern __shared__ __align__(16) float shared[];
    __shared__ uint64_t barriers[warps * pipeline::stages];
    __shared__ union {
        beta_room<16> dense;
        double sums[room<1, warps>];
    } u;
    const int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
    double s[1][2][4] = {}, c[1][2][4] = {}, first[8], second[8], *out;
    pipeline in = open_pipeline(shared, barriers, f, f.P, f.X, f.R);
    int go;

    go = *(volatile int *)&w.state->go;
    fetch_beta<1, 16, 32 * warps>(u.dense, w);
    if (!go || !find_beta<16, 32 * warps>(u.dense, w, go)) {
        in.give_up();
        return;
    }
    take_factor(first, w.a, 1.0, 16, g, t);
    take_factor(second, u.dense.b, 1.0, 16, g, t);
    __syncthreads();
    while (in.at < in.count) {
        const int64_t row = in.at * pipeline::rows;
        const float *from = in.current();
        float4 across[2];
        float2 old[2][2], rest[2][2];
        double d[2][2] = { { 1, 1 }, { 1, 1 } }, p[2][1][4], r[2][1][4];

#pragma unroll
        for (int h = 0; h < 2; h++) {
            across[h] = read_across(from, h, g, t);
            read_down(old[h], from + pipeline::block, h, g, t);
            read_down(rest[h], from + 2 * pipeline::block, h, g, t);
            if (f.D) read_diagonal(d[h], from + 3 * pipeline::block, h, t);
        }
        in.next();
#pragma unroll
        for (int h = 0; h < 2; h++) {
            double x[1][4];

            widen(x, old[h]);
            widen(r[h], rest[h]);
            multiply_across(x, first, across[h]);
            put_down(x, f.X, row, f.n, h, g, t);
#pragma unroll
            for (int e = 0; e < 4; e++)
                p[h][0][e] = r[h][0][e] * d[h][e % 2];
            multiply_across(p[h], second, across[h]);
            put_down(p[h], f.P, row, f.n, h, g, t);
        }
        add_gram<1, 2>(s, p, p);
        add_gram<1, 2>(c, p, r);
    }
    out = part + (int64_t)blockIdx.x * (2 * square_of);
    join_gram<1, warps>(s, u.sums, out, 16, 16);
    join_gram<1, warps>(c, u.sums, out + square_of, 16, 16);
}

/* Queues a pass whose `count` sums go to `to`. */
template <class PIPELINE, class KERNEL>
sps_status queue(const sps_fused_cg *w, const single_blocks &f, int count,
                 double *to, KERNEL kernel)
{
    sps_context *ctx = w->ctx;
    const int64_t most = spsi_cuda_state(ctx)->sms;
    const int64_t want = ceil_div(f.n, PIPELINE::rows * PIPELINE::warps);
    const int blocks = (int)(want < most ? want : most);
    cudaLaunchAttribute room[2];
    cudaLaunchConfig_t c = launch_after(ctx, blocks, 32 * PIPELINE::warps,
                                        false, room);
    double *part;

    SPS_TRY_RETURN(take_scratch(ctx, (int64_t)blocks * count, &part));
    c.dynamicSmemBytes = PIPELINE::bytes;
    SPS_TRY_RETURN(allow_shared(ctx, kernel, PIPELINE::bytes));
    SPS_CUDA(ctx, cudaLaunchKernelEx(&c, kernel, f, part, arrays_of(w)));
    SPS_LAUNCHED(ctx);
    return join_sums<true>(w, part, blocks, count, to);
}

/* Returns whether X has 16 columns, rows without gaps and 16-byte alignment, as
 * the copy engine requires. */
bool fits(const sps_block *X)
{
    return X->k == 16 && X->ld == 16 && (uintptr_t)X->data % 16 == 0;
}

} // namespace

bool spsi_cuda_single_serves(const sps_fused_cg *w, const sps_block *X,
                             const sps_block *Y)
{
    return X->dtype == SPS_F32 && w->r == 16 && w->k == 16 &&
           X->n > w->cached && fits(X) && fits(Y) && has_clusters(w->ctx);
}

sps_status spsi_cuda_single_residual(const sps_fused_cg *w, const sps_block *Q,
                                     sps_block *R)
{
    const single_blocks f = { NULL, (float *)Q->data, NULL, (float *)R->data,
                              w->D, R->n };

    return queue<single_pipeline<2>>(w, f, square_of + 16, w->own.W,
                                   residual_kernel);
}

sps_status spsi_cuda_single_directions(const sps_fused_cg *w, sps_block *P,
                                       sps_block *X, const sps_block *R)
{
    const single_blocks f = { (float *)P->data, NULL, (float *)X->data,
                              (float *)R->data, w->D, R->n };

    return queue<single_pipeline<3>>(w, f, 2 * square_of, w->own.S,
                                   directions_kernel);
}
