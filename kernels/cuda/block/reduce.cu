/* SPDX-License-Identifier: BSD-3-Clause */
/* reduce.cu - sums over rows, column by column: dot products, largest
 * magnitudes, means of components, and the residual update of pseudo-block CG
 * with its norms.
 *
 * Two phases in a fixed order: a thread adds up the rows of its pair of
 * columns, a thread block adds up its threads by a tree and writes one row of
 * partial sums, and a second kernel adds these rows in a fixed order.  The grid
 * depends only on shape and device, so results are bitwise reproducible. */
#include "cuda/base/cover.cuh"

#include <string.h>

namespace {

constexpr int deep = 4; /* rows that a thread loads at once */

/* part[block][column] is the reduction by J of op over the rows of the thread
 * block. */
template <class OP, class J>
__global__ void __launch_bounds__(256) over_rows(OP op, int64_t n, int k,
                                                 int lanes, double *part)
{
    __shared__ double2 shared[256];
    int rows = (int)blockDim.x / lanes, lane = (int)threadIdx.x % lanes;
    int64_t step = (int64_t)gridDim.x * rows;
    int64_t first = (int64_t)blockIdx.x * rows + threadIdx.x / lanes;

    for (int base = 0; base < k; base += 2 * lanes) {
        int c = base + 2 * lane, left = k - c;
        double2 acc = make_double2(0.0, 0.0);
        int64_t i = first;

        op.column(c, left);
        for (; left > 0 && i + (deep - 1) * step < n; i += deep * step) {
            typename OP::operand v[deep];
#pragma unroll
            for (int u = 0; u < deep; u++)
                v[u] = op.load(i + u * step, c, left);
#pragma unroll
            for (int u = 0; u < deep; u++)
                op.take(i + u * step, c, left, v[u], acc);
        }
        for (; left > 0 && i < n; i += step)
            op.take(i, c, left, op.load(i, c, left), acc);
        acc = join_rows<J>(acc, shared, lanes);
        if ((int)threadIdx.x < lanes)
            store_pair<false>(part + (int64_t)blockIdx.x * k + c, left, acc);
    }
}

/* Queues both phases of a reduction by J.  The k results are written to `to`,
 * or, if that is NULL, to the buffer `down` of the state, and then the stream
 * is synchronised. */
template <class J, class OP>
sps_status run(sps_context *ctx, int64_t n, int k, const OP &op,
               double *to = NULL)
{
    sps_cuda_state *s = spsi_cuda_state(ctx);
    cover c = cover_lines(ctx, n, k, 2 * deep);
    double *part;

    SPS_TRY_RETURN(spsi_cuda_need_down(ctx, (size_t)k * 8));
    SPS_TRY_RETURN(take_scratch(ctx, (int64_t)c.blocks * k, &part));
    SPS_TRY_RETURN(run_kernel(ctx, c.blocks, threads_of(c), over_rows<OP, J>,
                              op, n, k, c.lanes, part));
    SPS_TRY_RETURN(launch_join<J>(ctx, part, (int)c.blocks, k,
                                  to ? to : s->down));
    return to ? SPS_OK : spsi_cuda_wait(ctx);
}

struct two {
    double2 x, y;
};

template <bool PAIRED> struct dot_op {
    using operand = two;
    const double *x;
    int64_t ldx;
    const double *y;
    int64_t ldy;

    __device__ void column(int, int) {}
    __device__ two load(int64_t i, int c, int left) const
    {
        two v;

        v.x = fetch_pair<PAIRED>(x + i * ldx + c, left);
        v.y = fetch_pair<PAIRED>(y + i * ldy + c, left);
        return v;
    }
    __device__ void take(int64_t, int, int, two v, double2 &acc) const
    {
        acc.x = fma(v.x.x, v.y.x, acc.x);
        acc.y = fma(v.x.y, v.y.y, acc.y);
    }
};

template <bool PAIRED> struct maxabs_op {
    using operand = double2;
    const double *x;
    int64_t ldx;

    __device__ void column(int, int) {}
    __device__ double2 load(int64_t i, int c, int left) const
    {
        return fetch_pair<PAIRED>(x + i * ldx + c, left);
    }
    __device__ void take(int64_t, int, int, double2 v, double2 &acc) const
    {
        acc.x = larger::one(acc.x, fabs(v.x));
        acc.y = larger::one(acc.y, fabs(v.y));
    }
};

/* Computes R_j -= a_j Q_j for each column j, and the sums of squares of the new
 * R: reads two blocks, writes one. */
template <bool PAIRED> struct subtract_op {
    struct operand {
        double2 q, r;
    };
    const double *a;
    const double *q;
    int64_t ldq;
    double *r;
    int64_t ldr;
    double2 aj;

    __device__ void column(int c, int left)
    {
        aj = load_pair<false>(a + c, left);
    }
    __device__ operand load(int64_t i, int c, int left) const
    {
        operand v;

        v.q = load_pair<PAIRED>(q + i * ldq + c, left);
        v.r = load_pair<PAIRED>(r + i * ldr + c, left);
        return v;
    }
    __device__ void take(int64_t i, int c, int left, operand v,
                         double2 &acc) const
    {
        v.r.x = fma(-v.q.x, aj.x, v.r.x);
        v.r.y = fma(-v.q.y, aj.y, v.r.y);
        store_pair<PAIRED>(r + i * ldr + c, left, v.r);
        acc.x = fma(v.r.x, v.r.x, acc.x);
        acc.y = fma(v.r.y, v.r.y, acc.y);
    }
};

/* Subtraction of the means of components (spsi_cuda_remove_means).  A component
 * of more than `large` rows is summed by many thread blocks, and a second
 * kernel subtracts its mean; a smaller one is processed by a single thread
 * block. */
constexpr int64_t large = 1 << 15;

struct member_op {
    using operand = double2;
    const double *x;
    int64_t ldx;
    const int32_t *row;

    __device__ void column(int, int) {}
    __device__ double2 load(int64_t i, int c, int left) const
    {
        return load_pair<false>(x + row[i] * ldx + c, left);
    }
    __device__ void take(int64_t, int, int, double2 v, double2 &acc) const
    {
        acc.x += v.x;
        acc.y += v.y;
    }
};

__global__ void __launch_bounds__(256)
subtract(const double *sum, const int32_t *row, int64_t rows, double *x,
         int64_t ldx, int k, int lanes)
{
    int rows_of_block = (int)blockDim.x / lanes;
    int64_t step = (int64_t)gridDim.x * rows_of_block;

    for (int c = (int)threadIdx.x % lanes; c < k; c += lanes) {
        double mean = sum[c] / (double)rows;

        for (int64_t i = (int64_t)blockIdx.x * rows_of_block +
                         threadIdx.x / lanes;
             i < rows; i += step)
            x[row[i] * ldx + c] -= mean;
    }
}

__global__ void __launch_bounds__(256)
small_means(const int64_t *start, const int32_t *row, int64_t count, double *x,
            int64_t ldx, int k, int lanes)
{
    __shared__ double2 shared[256];
    int rows = (int)blockDim.x / lanes, lane = (int)threadIdx.x % lanes;
    int r = (int)threadIdx.x / lanes;

    for (int64_t s = blockIdx.x; s < count; s += gridDim.x) {
        int64_t first = start[s], last = start[s + 1];

        if (last - first > large) continue;
        for (int base = 0; base < k; base += 2 * lanes) {
            int c = base + 2 * lane, left = k - c;
            double2 sum = make_double2(0, 0);

            for (int64_t i = first + r; i < last; i += rows) {
                double2 v = load_pair<false>(x + row[i] * ldx + c, left);

                sum.x += v.x;
                sum.y += v.y;
            }
            join_rows<plus>(sum, shared, lanes);
            __syncthreads();
            sum = shared[lane];
            sum.x /= (double)(last - first);
            sum.y /= (double)(last - first);
            for (int64_t i = first + r; i < last; i += rows) {
                double *p = x + row[i] * ldx + c;
                double2 v = load_pair<false>(p, left);

                store_pair<false>(p, left,
                                  make_double2(v.x - sum.x, v.y - sum.y));
            }
        }
    }
}

sps_status large_mean(const sps_components *c, int64_t first, int64_t rows,
                      sps_block *X)
{
    sps_context *ctx = X->ctx;
    cover v = cover_lines(ctx, rows, X->k, 2 * deep);
    const int32_t *row = c->row + first;
    double *part, *sum;

    SPS_TRY_RETURN(take_scratch(ctx, ((int64_t)v.blocks + 1) * X->k, &part));
    sum = part + (size_t)v.blocks * (size_t)X->k;
    SPS_TRY_RETURN(run_kernel(ctx, v.blocks, threads_of(v),
                              over_rows<member_op, plus>,
                              member_op{numbers(X), X->ld, row}, rows, X->k,
                              v.lanes, part));
    SPS_TRY_RETURN(launch_join<plus>(ctx, part, (int)v.blocks, X->k, sum));
    return run_kernel(ctx, v.blocks, threads_of(v), subtract, sum, row, rows,
                      numbers(X), X->ld, X->k, v.lanes);
}

} // namespace

sps_status spsi_cuda_dots_to(const sps_block *X, const sps_block *Y,
                             double *to)
{
    if (paired(X) && paired(Y))
        return run<plus>(X->ctx, X->n, X->k,
                         dot_op<true>{numbers(X), X->ld, numbers(Y), Y->ld},
                         to);
    return run<plus>(X->ctx, X->n, X->k,
                     dot_op<false>{numbers(X), X->ld, numbers(Y), Y->ld}, to);
}

sps_status spsi_cuda_dots(const sps_block *X, const sps_block *Y, double *out)
{
    SPS_TRY_RETURN(spsi_cuda_enter(X->ctx));
    if (X->k == 0) return SPS_OK;
    SPS_TRY_RETURN(spsi_cuda_dots_to(X, Y, NULL));
    spsi_cuda_take_down(X->ctx, out, 0, (size_t)X->k * sizeof(double));
    return SPS_OK;
}

sps_status spsi_cuda_maxabs(const sps_block *X, double *out)
{
    sps_context *ctx = X->ctx;

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    if (X->k == 0) return SPS_OK;
    if (paired(X))
        SPS_TRY_RETURN(run<larger>(ctx, X->n, X->k,
                                   maxabs_op<true>{numbers(X), X->ld}));
    else
        SPS_TRY_RETURN(run<larger>(ctx, X->n, X->k,
                                   maxabs_op<false>{numbers(X), X->ld}));
    spsi_cuda_take_down(ctx, out, 0, (size_t)X->k * sizeof(double));
    return SPS_OK;
}

sps_status spsi_cuda_subtract_cols(const sps_block *Q, const double *a,
                                   sps_block *R, double *norm2)
{
    sps_context *ctx = R->ctx;
    size_t bytes = (size_t)R->k * sizeof(double);
    void *host, *device;
    const double *da;

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    if (R->k == 0) return SPS_OK;
    SPS_TRY_RETURN(spsi_cuda_room(ctx, bytes, &host, &device));
    memcpy(host, a, bytes);
    SPS_TRY_RETURN(spsi_cuda_send(ctx, host, device, bytes));
    da = (const double *)device;
    if (paired(Q) && paired(R))
        SPS_TRY_RETURN(run<plus>(ctx, R->n, R->k,
                                 subtract_op<true>{da, numbers(Q), Q->ld,
                                                   numbers(R), R->ld, {}}));
    else
        SPS_TRY_RETURN(run<plus>(ctx, R->n, R->k,
                                 subtract_op<false>{da, numbers(Q), Q->ld,
                                                    numbers(R), R->ld, {}}));
    spsi_cuda_take_down(ctx, norm2, 0, bytes);
    return SPS_OK;
}

sps_status spsi_cuda_remove_means(const sps_components *c, sps_block *X)
{
    sps_context *ctx = X->ctx;
    cover v = cover_lines(ctx, large, X->k, 1);
    int64_t blocks = 16 * (int64_t)spsi_cuda_state(ctx)->sms, small = 0;

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    if (c->count == 0 || X->k == 0) return SPS_OK;
    for (int64_t i = 0; i < c->count; i++) {
        int64_t first = c->host_start[i], rows = c->host_start[i + 1] - first;

        if (rows > large) SPS_TRY_RETURN(large_mean(c, first, rows, X));
        else small++;
    }
    if (small == 0) return SPS_OK;
    if (blocks > c->count) blocks = c->count;
    return run_kernel(ctx, (unsigned)blocks, threads_of(v), small_means,
                      c->start, c->row, c->count, numbers(X), X->ld, X->k,
                      v.lanes);
}
