/* SPDX-License-Identifier: BSD-3-Clause */
/* edge.cu - boundary rows of an operator distributed over processes (sps_wire,
 * core/comm.h): their products with own rows of X and with ghosts are added to
 * what the product of the interior rows has left, so that neither rows of X, Y
 * and the operands of an epilogue are gathered, nor results copied back.
 *
 * A thread computes one column of a row; neighbouring threads have neighbouring
 * columns.  Boundary rows are few, and the time is that of dependent loads: of
 * the column, the row of X, and its element.  So these of AT_ONCE entries are in
 * flight together. */
#include "cuda/base/device.cuh"
#include "cuda/base/wire_device.h"

namespace {

constexpr int AT_ONCE = 8;

template <class T> struct edge_args {
    sps_edge e;
    double alpha;
    const double *d;
    const T *x, *ghosts;
    int64_t ldx, ldg;
};

/* Returns the number of the first entry of row i. */
__device__ __forceinline__ int64_t entry(const sps_edge &e, int64_t i)
{
    if (!e.val) return 0;
    return e.rowptr32 ? e.rowptr32[i] : e.rowptr[i];
}

/* Returns where row col of the operand is. */
template <class T>
__device__ __forceinline__ const T *operand_row(const edge_args<T> &g,
                                                int64_t col)
{
    const int64_t own = col - g.e.low;
    const bool mine = own >= 0 && own < g.e.touched;

    return mine ? g.x + g.e.touch[own] * g.ldx : g.ghosts + col * g.ldg;
}

/* Returns sum + the products of entries first .. last - 1 with column c, added
 * one after another. */
template <class V, class T>
__device__ __forceinline__ double add_entries(const edge_args<T> &g,
                                              int64_t first, int64_t last,
                                              int c, double sum)
{
    const V *val = (const V *)g.e.val;

    for (int64_t p = first; p < last; p += AT_ONCE) {
        const T *from[AT_ONCE];
        double a[AT_ONCE], x[AT_ONCE];

#pragma unroll
        for (int q = 0; q < AT_ONCE; q++) {
            const int64_t at = p + q < last ? p + q : p;

            from[q] = operand_row(g, g.e.col[at]);
            a[q] = (double)val[at];
        }
#pragma unroll
        for (int q = 0; q < AT_ONCE; q++) x[q] = (double)from[q][c];
#pragma unroll
        for (int q = 0; q < AT_ONCE; q++)
            if (p + q < last) sum += a[q] * x[q];
    }
    return sum;
}

template <class V, class T, class S>
__global__ void __launch_bounds__(256)
add_edge(const edge_args<T> g, S *y, int64_t ldy, int k, int lanes)
{
    const sps_edge &e = g.e;
    const int64_t t = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    const int64_t i = t / lanes;

    if (i >= e.rows) return;
    const int64_t row = e.row[i];
    const int64_t first = entry(e, i), last = entry(e, i + 1);
    const double by = g.d ? g.alpha * g.d[row] : g.alpha;

    for (int c = (int)(t % lanes); c < k; c += lanes) {
        double sum = e.val ? 0 : (double)g.x[i * g.ldx + c];

        sum = add_entries<V>(g, first, last, c, sum);
        y[row * ldy + c] = (S)((double)y[row * ldy + c] + by * sum);
    }
}

template <class V, class T, class S>
sps_status launch(const edge_args<T> &g, const sps_block *X, sps_block *Y)
{
    const int lanes = min(power_above(X->k), 32);

    return run_kernel(X->ctx, (unsigned)ceil_div(g.e.rows * lanes, 256), 256,
                      add_edge<V, T, S>, g, (S *)Y->data, Y->ld, X->k, lanes);
}

template <class T, class S>
sps_status choose(const sps_edge *e, double alpha, const sps_block *D,
                  const sps_block *X, const sps_block *operand, sps_block *Y)
{
    const edge_args<T> g = { *e, alpha, D ? (const double *)D->data : NULL,
                             (const T *)X->data, (const T *)operand->data,
                             X->ld, operand->ld };

    return e->dtype == SPS_F64 ? launch<double, T, S>(g, X, Y)
                               : launch<float, T, S>(g, X, Y);
}

} // namespace

sps_status spsi_cuda_add_edge(const sps_edge *e, double alpha,
                              const sps_block *D, const sps_block *X,
                              const sps_block *operand, sps_block *Y)
{
    if (e->rows == 0 || X->k == 0) return SPS_OK;
    SPS_TRY_RETURN(spsi_cuda_enter(Y->ctx));
    if (X->dtype == SPS_F64)
        return choose<double, double>(e, alpha, D, X, operand, Y);
    return Y->dtype == SPS_F64
               ? choose<float, double>(e, alpha, D, X, operand, Y)
               : choose<float, float>(e, alpha, D, X, operand, Y);
}
