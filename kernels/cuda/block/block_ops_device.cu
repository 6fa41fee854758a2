/* SPDX-License-Identifier: BSD-3-Clause */
/* block_ops_device.cu - element-wise operations on blocks: fill, random,
 * gather, scatter, axpby, scaling of rows and columns.  Scaling of columns
 * accepts blocks of doubles and of floats.
 *
 * All use one kernel template: a thread owns a pair of columns and strides over
 * rows, four rows at a time so that enough loads are in flight.  Traffic: each
 * operand is read or written once. */
#include "cuda/base/cover.cuh"
#include "cuda/block/single_device.cuh"

#include "philox.h"

#include <string.h>
#include <type_traits>

namespace {

constexpr int deep = 4; /* rows that a thread loads at once */

/* Applies the operation `op`.  A thread calls op.column(c, left) once for
 * columns c and c + 1, of which `left` (1 or more) exist; then for each of its
 * rows i op.load(i, c, left), which returns the operands, and op.store, which
 * computes and writes. */
template <class OP>
__global__ void __launch_bounds__(256) each_pair(OP op, int64_t n, int k,
                                                 int lanes)
{
    int rows = (int)blockDim.x / lanes;
    int64_t step = (int64_t)gridDim.x * rows;
    int64_t first = (int64_t)blockIdx.x * rows + threadIdx.x / lanes;

    for (int c = 2 * ((int)threadIdx.x % lanes); c < k; c += 2 * lanes) {
        int left = k - c;
        int64_t i = first;

        op.column(c, left);
        for (; i + (deep - 1) * step < n; i += deep * step) {
            typename OP::operand v[deep];
#pragma unroll
            for (int u = 0; u < deep; u++)
                v[u] = op.load(i + u * step, c, left);
#pragma unroll
            for (int u = 0; u < deep; u++)
                op.store(i + u * step, c, left, v[u]);
        }
        for (; i < n; i += step) op.store(i, c, left, op.load(i, c, left));
    }
}

template <class OP> sps_status run(sps_block *Y, int k, const OP &op)
{
    cover c = cover_lines(Y->ctx, Y->n, k, deep);

    if (Y->n == 0 || k == 0) return SPS_OK;
    return run_kernel(Y->ctx, c.blocks, threads_of(c), each_pair<OP>, op, Y->n,
                      k, c.lanes);
}

struct nothing {};

template <bool PAIRED> struct fill_op {
    using operand = nothing;
    double *y;
    int64_t ld;
    double value;

    __device__ void column(int, int) {}
    __device__ nothing load(int64_t, int, int) const { return nothing(); }
    __device__ void store(int64_t i, int c, int left, nothing) const
    {
        store_pair<PAIRED>(y + i * ld + c, left, make_double2(value, value));
    }
};

struct random_op {
    using operand = nothing;
    double *y;
    int64_t ld;
    uint64_t seed;
    int64_t first;

    __device__ void column(int, int) {}
    __device__ nothing load(int64_t, int, int) const { return nothing(); }
    __device__ void store(int64_t i, int c, int left, nothing) const
    {
        double2 v;

        spsi_philox_pair(seed, first + i, c / 2, &v.x, &v.y);
        store_pair<false>(y + i * ld + c, left, v);
    }
};

struct two {
    double2 x, y;
};

/* Operation Y = a X + b Y. */
template <bool PAIRED, bool BETA> struct axpby_op {
    using operand = two;
    double a, b;
    const double *x;
    int64_t ldx;
    double *y;
    int64_t ldy;

    __device__ void column(int, int) {}
    __device__ two load(int64_t i, int c, int left) const
    {
        two v;

        v.x = load_pair<PAIRED>(x + i * ldx + c, left);
        if (BETA) v.y = load_pair<PAIRED>(y + i * ldy + c, left);
        return v;
    }
    __device__ void store(int64_t i, int c, int left, two v) const
    {
        double2 r = make_double2(a * v.x.x, a * v.x.y);

        if (BETA) r = make_double2(fma(b, v.y.x, r.x), fma(b, v.y.y, r.y));
        store_pair<PAIRED>(y + i * ldy + c, left, r);
    }
};

/* Operation Y_j = a[j] X_j + b[j] Y_j.  If b[j] = 0, column j of Y is
 * overwritten, so that NaN in it does not propagate. */
template <class VX, class VY, bool PAIRED, bool BETA> struct axpby_cols_op {
    using operand = two;
    const double *a, *b;
    const VX *x;
    int64_t ldx;
    VY *y;
    int64_t ldy;
    double2 aj, bj;

    __device__ void column(int c, int left)
    {
        aj = load_pair<false>(a + c, left);
        bj = BETA ? load_pair<false>(b + c, left) : make_double2(0, 0);
    }
    __device__ two load(int64_t i, int c, int left) const
    {
        two v;

        v.x = load_pair<PAIRED>(x + i * ldx + c, left);
        if (BETA) v.y = load_pair<PAIRED>(y + i * ldy + c, left);
        return v;
    }
    __device__ void store(int64_t i, int c, int left, two v) const
    {
        double2 r = make_double2(aj.x * v.x.x, aj.y * v.x.y);

        if (BETA) {
            if (bj.x != 0) r.x = fma(bj.x, v.y.x, r.x);
            if (bj.y != 0) r.y = fma(bj.y, v.y.y, r.y);
        }
        store_pair<PAIRED>(y + i * ldy + c, left, r);
    }
};

struct scaled {
    double2 x;
    double d;
};

template <class VX, class VY, bool PAIRED> struct scale_rows_op {
    using operand = scaled;
    const double *d;
    int64_t ldd;
    const VX *x;
    int64_t ldx;
    VY *y;
    int64_t ldy;

    __device__ void column(int, int) {}
    __device__ scaled load(int64_t i, int c, int left) const
    {
        scaled v;

        v.x = load_pair<PAIRED>(x + i * ldx + c, left);
        v.d = d[i * ldd];
        return v;
    }
    __device__ void store(int64_t i, int c, int left, scaled v) const
    {
        store_pair<PAIRED>(y + i * ldy + c, left,
                           make_double2(v.d * v.x.x, v.d * v.x.y));
    }
};

/* Operation Y(:, to[j]) = X(:, from[j]); one of the two index arrays is NULL
 * and stands for the identity. */
struct move_op {
    using operand = double2;
    const int *from, *to;
    const double *x;
    int64_t ldx;
    double *y;
    int64_t ldy;
    int f0, f1, t0, t1;

    __device__ void column(int c, int left)
    {
        f0 = from ? from[c] : c;
        t0 = to ? to[c] : c;
        f1 = left < 2 ? f0 : from ? from[c + 1] : c + 1;
        t1 = left < 2 ? t0 : to ? to[c + 1] : c + 1;
    }
    __device__ double2 load(int64_t i, int, int left) const
    {
        return make_double2(x[i * ldx + f0], left < 2 ? 0.0 : x[i * ldx + f1]);
    }
    __device__ void store(int64_t i, int, int left, double2 v) const
    {
        y[i * ldy + t0] = v.x;
        if (left >= 2) y[i * ldy + t1] = v.y;
    }
};

template <bool PAIRED, bool BETA, class VX, class VY>
axpby_cols_op<VX, VY, PAIRED, BETA>
cols_op(const double *a, const double *b, const VX *x, const sps_block *X,
        VY *y, const sps_block *Y)
{
    return { a, b, x, X->ld, y, Y->ld, {}, {} };
}

template <bool PAIRED, class VX, class VY>
scale_rows_op<VX, VY, PAIRED>
rows_op(const sps_block *d, const VX *x, const sps_block *X, VY *y,
        const sps_block *Y)
{
    return { numbers(d), d->ld, x, X->ld, y, Y->ld };
}

/* Calls call(x, y, pairs) with the data of X and Y in their types; pairs()
 * returns whether both are aligned for accesses by pairs. */
template <class F>
sps_status with_numbers(const sps_block *X, sps_block *Y, const F &call)
{
    const bool pairs = paired(X) && paired(Y);
    auto typed = [&](auto *x, auto *y) -> sps_status {
        return pairs ? call(x, y, std::true_type())
                     : call(x, y, std::false_type());
    };

    if (X->dtype == SPS_F64 && Y->dtype == SPS_F64)
        return typed((const double *)X->data, (double *)Y->data);
    if (X->dtype == SPS_F64)
        return typed((const double *)X->data, (float *)Y->data);
    return Y->dtype == SPS_F64
        ? typed((const float *)X->data, (double *)Y->data)
        : typed((const float *)X->data, (float *)Y->data);
}

sps_status send_ints(sps_context *ctx, const int *index, int k,
                     const int **d_index)
{
    void *host, *device;

    SPS_TRY_RETURN(spsi_cuda_room(ctx, (size_t)k * sizeof(int), &host,
                                  &device));
    memcpy(host, index, (size_t)k * sizeof(int));
    *d_index = (const int *)device;
    return spsi_cuda_send(ctx, host, device, (size_t)k * sizeof(int));
}

} // namespace

sps_status spsi_cuda_fill(sps_block *X, double value)
{
    SPS_TRY_RETURN(spsi_cuda_enter(X->ctx));
    if (paired(X))
        return run(X, X->k, fill_op<true>{numbers(X), X->ld, value});
    return run(X, X->k, fill_op<false>{numbers(X), X->ld, value});
}

sps_status spsi_cuda_random(sps_block *X, uint64_t seed, int64_t first)
{
    SPS_TRY_RETURN(spsi_cuda_enter(X->ctx));
    return run(X, X->k, random_op{numbers(X), X->ld, seed, first});
}

sps_status spsi_cuda_axpby(double a, const sps_block *X, double b,
                           sps_block *Y)
{
    bool pairs = paired(X) && paired(Y);
    const double *x = numbers(X);
    double *y = numbers(Y);

    SPS_TRY_RETURN(spsi_cuda_enter(Y->ctx));
    if (X->dtype == SPS_F32 || Y->dtype == SPS_F32)
        return spsi_cuda_single_axpby(a, X, b, Y);
    if (pairs && b != 0)
        return run(Y, Y->k, axpby_op<true, true>{a, b, x, X->ld, y, Y->ld});
    if (pairs)
        return run(Y, Y->k, axpby_op<true, false>{a, b, x, X->ld, y, Y->ld});
    if (b != 0)
        return run(Y, Y->k, axpby_op<false, true>{a, b, x, X->ld, y, Y->ld});
    return run(Y, Y->k, axpby_op<false, false>{a, b, x, X->ld, y, Y->ld});
}

sps_status spsi_cuda_axpby_cols(const double *a, const sps_block *X,
                                const double *b, sps_block *Y)
{
    sps_context *ctx = Y->ctx;
    const size_t bytes = (size_t)Y->k * sizeof(double);
    void *host, *device;
    const double *da, *db;

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    if (Y->k == 0) return SPS_OK;
    SPS_TRY_RETURN(spsi_cuda_room(ctx, 2 * bytes, &host, &device));
    memcpy(host, a, bytes);
    if (b) memcpy((char *)host + bytes, b, bytes);
    SPS_TRY_RETURN(spsi_cuda_send(ctx, host, device, b ? 2 * bytes : bytes));
    da = (const double *)device;
    db = da + Y->k;
    return with_numbers(X, Y, [&](auto *x, auto *y, auto pairs) {
        return b ? run(Y, Y->k, cols_op<pairs(), true>(da, db, x, X, y, Y))
                 : run(Y, Y->k, cols_op<pairs(), false>(da, db, x, X, y, Y));
    });
}

sps_status spsi_cuda_scale_rows(const sps_block *d, const sps_block *X,
                                sps_block *Y)
{
    SPS_TRY_RETURN(spsi_cuda_enter(Y->ctx));
    return with_numbers(X, Y, [&](auto *x, auto *y, auto pairs) {
        return run(Y, Y->k, rows_op<pairs()>(d, x, X, y, Y));
    });
}

sps_status spsi_cuda_gather(const sps_block *X, const int *index, sps_block *Y)
{
    const int *from;

    SPS_TRY_RETURN(spsi_cuda_enter(Y->ctx));
    if (Y->k == 0) return SPS_OK;
    SPS_TRY_RETURN(send_ints(Y->ctx, index, Y->k, &from));
    return run(Y, Y->k, move_op{from, NULL, numbers(X), X->ld, numbers(Y),
                                Y->ld, 0, 0, 0, 0});
}

sps_status spsi_cuda_scatter(const sps_block *X, const int *index,
                             sps_block *Y)
{
    const int *to;

    SPS_TRY_RETURN(spsi_cuda_enter(Y->ctx));
    if (X->k == 0) return SPS_OK;
    SPS_TRY_RETURN(send_ints(Y->ctx, index, X->k, &to));
    return run(Y, X->k, move_op{NULL, to, numbers(X), X->ld, numbers(Y), Y->ld,
                                0, 0, 0, 0});
}
