/* SPDX-License-Identifier: BSD-3-Clause */
/* basis_device.cu - products with a stack of blocks (lib/block/basis.h): H(l,
 * c) = V_l(:, c)' W(:, c), and W = a sum_l V_l diag(H(l, :)) [+ W].
 *
 * Both products do two floating-point operations per element read and are
 * memory-bound, so enough 16-byte loads must be in flight.  A thread owns a
 * pair of columns and strides over rows.
 *
 * dots: a thread block processes up to 8 of the stacked blocks, whose sums stay
 * in registers, and every parts-th set of rows.  Thread blocks with the same
 * rows have consecutive numbers, so W is read from device memory about once.
 * Sums are formed in the order rows of a thread, threads of a thread block by a
 * tree, thread blocks, which is fixed by shape and device.
 *
 * update: a thread sums over all `count` blocks for the rows that it has
 * loaded.
 *
 * A stack of floats moves half of the bytes; sums are formed in doubles.
 *
 * Traffic: the `count` blocks once; W once, for update with ADD read and
 * written.  Measured on an H200 for a million rows of 16 columns: 4.2 to 4.4
 * TB/s with 4 blocks or more. */
#include "cuda/base/cover.cuh"
#include "cuda/block/single_device.cuh"

#include "cuda/block/single_stack.h"

#include <string.h>

namespace {

/* A stack of `count` blocks of type V: double, or float, which is converted to
 * double when loaded. */
template <class V> struct stack {
    const V *v;
    int64_t stride, ld;      /* distances between blocks, and between rows of a
                                block, in elements */
    int count;
};

struct target {
    double *w;
    int64_t ld, n;
    int k, lanes;
};

/* Adds the products of len <= L blocks with W for U rows, all loaded before the
 * arithmetic. */
template <int L, int U, bool PAIRED, class V>
__device__ __forceinline__ void add_rows(const V *v, const stack<V> &s,
                                         const target &o, int len, int64_t i,
                                         int64_t step, int c, double2 *acc)
{
    double2 w[U], x[U][L];

#pragma unroll
    for (int u = 0; u < U; u++) {
        int left = i + u * step < o.n ? o.k - c : 0;

        w[u] = fetch_pair<PAIRED>(o.w + (i + u * step) * o.ld + c, left);
#pragma unroll
        for (int l = 0; l < L; l++)
            x[u][l] = fetch_pair<PAIRED>(
                v + l * s.stride + (i + u * step) * s.ld + c,
                l < len ? left : 0);
    }
#pragma unroll
    for (int u = 0; u < U; u++)
#pragma unroll
        for (int l = 0; l < L; l++) {
            acc[l].x = fma(x[u][l].x, w[u].x, acc[l].x);
            acc[l].y = fma(x[u][l].y, w[u].y, acc[l].y);
        }
}

/* Computes part[p][l][column], partial sums of H(l, column): thread block x = p
 * * groups + g processes group g of the stack and every parts-th set of rows,
 * beginning with set p. */
template <int L, bool PAIRED, class V>
__global__ void __launch_bounds__(256, 2)
dots_kernel(stack<V> s, target o, int groups, int parts, double *part)
{
    constexpr int U = 16 / L;
    __shared__ double2 shared[256];
    int g = (int)blockIdx.x % groups, p = (int)blockIdx.x / groups;
    int first = (int)((int64_t)s.count * g / groups);
    int len = (int)((int64_t)s.count * (g + 1) / groups) - first;
    int rows = (int)blockDim.x / o.lanes, lane = (int)threadIdx.x % o.lanes;
    int64_t step = (int64_t)parts * rows;
    int64_t start = (int64_t)p * rows + threadIdx.x / o.lanes;
    const V *v = s.v + first * s.stride;

    for (int base = 0; base < o.k; base += 2 * o.lanes) {
        int c = base + 2 * lane;
        double2 acc[L];

#pragma unroll
        for (int l = 0; l < L; l++) acc[l] = make_double2(0, 0);
        if (c < o.k)
            for (int64_t i = start; i < o.n; i += U * step)
                add_rows<L, U, PAIRED>(v, s, o, len, i, step, c, acc);
#pragma unroll
        for (int l = 0; l < L; l++) {
            double2 sum = join_rows<plus>(acc[l], shared, o.lanes);

            if ((int)threadIdx.x < o.lanes && l < len)
                store_pair<false>(part + ((int64_t)p * s.count + first + l) *
                                             o.k + c, o.k - c, sum);
        }
    }
}

/* W = sum over l of V_l diag(h[l]), plus W if ADD; part[block][column] receives
 * the partial sums of squares of W unless it is NULL. */
template <bool PAIRED, bool ADD, class V>
__global__ void __launch_bounds__(256, 2)
update_kernel(stack<V> s, target o, const double *h, double *part)
{
    constexpr int L = 8, U = 2;
    __shared__ double2 shared[256];
    int rows = (int)blockDim.x / o.lanes, lane = (int)threadIdx.x % o.lanes;
    int64_t step = (int64_t)gridDim.x * rows;
    int64_t start = (int64_t)blockIdx.x * rows + threadIdx.x / o.lanes;

    for (int base = 0; base < o.k; base += 2 * o.lanes) {
        int c = base + 2 * lane;
        double2 norm = make_double2(0, 0);

        for (int64_t i = start; c < o.k && i < o.n; i += U * step) {
            double2 w[U];

#pragma unroll
            for (int u = 0; u < U; u++)
                w[u] = load_pair<PAIRED>(
                    o.w + (i + u * step) * o.ld + c,
                    ADD && i + u * step < o.n ? o.k - c : 0);
            for (int l = 0; l < s.count; l += L) {
                const V *v = s.v + l * s.stride + i * s.ld + c;
                double2 x[U][L];

#pragma unroll
                for (int u = 0; u < U; u++)
#pragma unroll
                    for (int j = 0; j < L; j++)
                        x[u][j] = fetch_pair<PAIRED>(
                            v + j * s.stride + u * step * s.ld,
                            l + j < s.count && i + u * step < o.n ? o.k - c
                                                                  : 0);
#pragma unroll
                for (int j = 0; j < L; j++) {
                    double2 a = fetch_pair<false>(
                        h + (int64_t)(l + j) * o.k + c,
                        l + j < s.count ? o.k - c : 0);

#pragma unroll
                    for (int u = 0; u < U; u++) {
                        w[u].x = fma(x[u][j].x, a.x, w[u].x);
                        w[u].y = fma(x[u][j].y, a.y, w[u].y);
                    }
                }
            }
#pragma unroll
            for (int u = 0; u < U; u++) {
                if (i + u * step >= o.n) continue;
                store_pair<PAIRED>(o.w + (i + u * step) * o.ld + c, o.k - c,
                                   w[u]);
                norm.x = fma(w[u].x, w[u].x, norm.x);
                norm.y = fma(w[u].y, w[u].y, norm.y);
            }
        }
        if (part == NULL) continue;
        norm = join_rows<plus>(norm, shared, o.lanes);
        if ((int)threadIdx.x < o.lanes)
            store_pair<false>(part + (int64_t)blockIdx.x * o.k + c, o.k - c,
                              norm);
    }
}

/* --------------------------------------------------------------- launches */

template <class T> stack<T> stack_of(const sps_basis *V, int count)
{
    return stack<T>{(const T *)V->all->data, V->rows * V->all->ld, V->all->ld,
                    count};
}

target target_of(const sps_block *W, const cover &c)
{
    return target{numbers(W), W->ld, W->n, W->k, c.lanes};
}

/* Returns the number of partial sums along the rows if `shares` thread blocks
 * use the same rows.  There are 4 thread blocks per multiprocessor (8 for more
 * than 4 stacked blocks), but each thread has at least four rows. */
int parts_of(const sps_block *W, const cover &c, int count, int shares)
{
    int64_t most = ceil_div(W->n, 4 * (int64_t)c.rows);
    int64_t want = (count > 4 ? 8 : 4) * (int64_t)spsi_cuda_state(W->ctx)->sms;

    want = ceil_div(want, shares);
    return (int)(want < most ? want : most);
}

template <int L, class V>
sps_status launch_dots(const stack<V> &s, const sps_block *W, bool pairs)
{
    sps_context *ctx = W->ctx;
    sps_cuda_state *state = spsi_cuda_state(ctx);
    cover c = cover_lines(ctx, W->n, W->k, 1);
    int groups = (int)ceil_div(s.count, L);
    int parts = parts_of(W, c, s.count, groups);
    int64_t items = (int64_t)s.count * W->k;
    unsigned blocks = (unsigned)groups * (unsigned)parts;
    auto kernel = pairs ? dots_kernel<L, true, V> : dots_kernel<L, false, V>;
    double *part;

    SPS_TRY_RETURN(spsi_cuda_need_down(ctx, (size_t)items * 8));
    SPS_TRY_RETURN(take_scratch(ctx, parts * items, &part));
    SPS_TRY_RETURN(run_kernel(ctx, blocks, threads_of(c), kernel, s,
                              target_of(W, c), groups, parts, part));
    SPS_TRY_RETURN(launch_join<plus>(ctx, part, parts, items, state->down));
    return spsi_cuda_wait(ctx);
}

/* Uploads the count x k matrix a * H to the device, in row-major order. */
sps_status send_rows(double a, int count, const sps_small *H, int k,
                     const double **d_h)
{
    size_t bytes = (size_t)count * (size_t)k * sizeof(double);
    void *host, *device;

    SPS_TRY_RETURN(spsi_cuda_room(H->ctx, bytes, &host, &device));
    for (int l = 0; l < count; l++)
        for (int c = 0; c < k; c++)
            ((double *)host)[(size_t)l * (size_t)k + (size_t)c] =
                a * *spsi_small_at(H, l, c);
    *d_h = (const double *)device;
    return spsi_cuda_send(H->ctx, host, device, bytes);
}

template <bool ADD, class V>
sps_status launch_update(const stack<V> &s, const double *h, sps_block *W,
                         bool pairs, double *norm2)
{
    sps_context *ctx = W->ctx;
    sps_cuda_state *state = spsi_cuda_state(ctx);
    cover c = cover_lines(ctx, W->n, W->k, 1);
    int blocks = parts_of(W, c, s.count, 1);
    size_t bytes = (size_t)W->k * sizeof(double);
    auto kernel = pairs ? update_kernel<true, ADD, V>
                        : update_kernel<false, ADD, V>;
    double *part = NULL;

    if (norm2) {
        SPS_TRY_RETURN(spsi_cuda_need_down(ctx, bytes));
        SPS_TRY_RETURN(take_scratch(ctx, (int64_t)blocks * W->k, &part));
    }
    SPS_TRY_RETURN(run_kernel(ctx, (unsigned)blocks, threads_of(c), kernel, s,
                              target_of(W, c), h, part));
    if (!norm2) return SPS_OK;
    SPS_TRY_RETURN(launch_join<plus>(ctx, part, blocks, W->k, state->down));
    SPS_TRY_RETURN(spsi_cuda_wait(ctx));
    spsi_cuda_take_down(ctx, norm2, 0, bytes);
    return SPS_OK;
}

template <class V>
sps_status dots(const sps_basis *B, int count, const sps_block *W)
{
    bool pairs = paired(B->all) && paired(W);
    stack<V> s = stack_of<V>(B, count);

    return count <= 4 ? launch_dots<4>(s, W, pairs)
                      : launch_dots<8>(s, W, pairs);
}

template <class V>
sps_status update(const sps_basis *B, int count, const double *h, bool add,
                  sps_block *W, double *norm2)
{
    bool pairs = paired(B->all) && paired(W);
    stack<V> s = stack_of<V>(B, count);

    return add ? launch_update<true>(s, h, W, pairs, norm2)
               : launch_update<false>(s, h, W, pairs, norm2);
}

} // namespace

sps_status spsi_cuda_basis_dots(const sps_basis *V, int count,
                                const sps_block *W, sps_small *H)
{
    const double *h;

    SPS_TRY_RETURN(spsi_cuda_enter(W->ctx));
    SPS_TRY_RETURN(V->all->dtype == SPS_F32 ? dots<float>(V, count, W)
                                            : dots<double>(V, count, W));
    h = spsi_cuda_state(W->ctx)->down;
    W->ctx->memory.to_host += (int64_t)count * W->k * (int64_t)sizeof *h;
    for (int l = 0; l < count; l++)
        for (int c = 0; c < W->k; c++)
            *spsi_small_at(H, l, c) = h[l * W->k + c];
    return SPS_OK;
}

sps_status spsi_cuda_basis_update(double a, const sps_basis *V, int count,
                                  const sps_small *H, bool add, sps_block *W,
                                  double *norm2)
{
    const double *h;

    SPS_TRY_RETURN(spsi_cuda_enter(W->ctx));
    if (V->square) {
        SPS_TRY_RETURN(spsi_cuda_small(H, &h));
        return spsi_cuda_single_mul_stack(a, V, count, h, H->rows, add, W);
    }
    SPS_TRY_RETURN(send_rows(a, count, H, W->k, &h));
    return V->all->dtype == SPS_F32
               ? update<float>(V, count, h, add, W, norm2)
               : update<double>(V, count, h, add, W, norm2);
}
