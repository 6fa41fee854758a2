/* SPDX-License-Identifier: BSD-3-Clause */
/* product_few.cuh - Y = a X C + b W, with sums over the result, for up to 8
 * columns: C is in registers instead of shared memory, and many rows are in
 * flight.
 *
 * few_kernel, up to 4 columns: one lane for each pair of columns.
 *
 * eight_kernel, 5 to 8 columns: (Y')(8 x 8) = (C')(8 x 8) (X')(8 x 8) on the
 * fp64 tensor cores.  Lane 4g + t loads columns t and 4 + t of row g of X, and
 * receives column g of rows 2t, 2t + 1 of Y.  An access has 8 bytes, but 4 or 8
 * lanes access whole sectors, for any ld and alignment.  The new rows are
 * operands of R'R as they are.
 *
 * All of a row of X is read before any of Y is written: Y may be X.  Order of
 * summation: rows of a lane, lanes by a tree, warps of a thread block in order,
 * one partial result per thread block.  Traffic: each block once; a row is
 * written to the end of its last sector if the padding there may be written
 * (product.wide). */
#ifndef SPS_CUDA_PRODUCT_FEW_CUH
#define SPS_CUDA_PRODUCT_FEW_CUH

#include "cuda/block/product.cuh"

namespace {

/* --- few_kernel: L lanes per row, a pair of columns each */

constexpr int few_deep = 4; /* rows that a lane loads at once */

/* Returns the v of the neighbouring lane, which has the other two columns of
 * the row, or zero if a row has one lane. */
template <int L> __device__ __forceinline__ double2 beside(double2 v)
{
    if constexpr (L == 1) return make_double2(0.0, 0.0);
    return make_double2(__shfl_xor_sync(all_lanes, v.x, 1),
                        __shfl_xor_sync(all_lanes, v.y, 1));
}

/* v = b w + the product of a row of x with this lane's columns of C, where x
 * are the elements of this lane and z those of the neighbouring lane. */
__device__ __forceinline__ double2 row_product(const double (*c)[2], double2 x,
                                               double2 z, double b, double2 w)
{
    double2 v = make_double2(b * w.x, b * w.y);

    v.x = fma(x.x, c[0][0], v.x);
    v.y = fma(x.x, c[0][1], v.y);
    v.x = fma(x.y, c[1][0], v.x);
    v.y = fma(x.y, c[1][1], v.y);
    v.x = fma(z.x, c[2][0], v.x);
    v.y = fma(z.x, c[2][1], v.y);
    v.x = fma(z.y, c[3][0], v.x);
    v.y = fma(z.y, c[3][1], v.y);
    return v;
}

/* Adds to `sum` the squares of v, or the products of v with itself and with the
 * v of the neighbouring lane: (0, 0), (1, 1), (0, 1); (0, 2), (0, 3), (1, 2),
 * (1, 3). */
template <int L, sums S>
__device__ __forceinline__ void add_row(double *sum, double2 v)
{
    if constexpr (S != NO_SUMS) {
        sum[0] = fma(v.x, v.x, sum[0]);
        sum[1] = fma(v.y, v.y, sum[1]);
    }
    if constexpr (S == GRAM) {
        sum[2] = fma(v.x, v.y, sum[2]);
        if constexpr (L == 2) {
            double2 z = beside<L>(v);

            sum[3] = fma(v.x, z.x, sum[3]);
            sum[4] = fma(v.x, z.y, sum[4]);
            sum[5] = fma(v.y, z.x, sum[5]);
            sum[6] = fma(v.y, z.y, sum[6]);
        }
    }
}

/* Finds the position of sum e of the lane with columns 2 pair, 2 pair + 1: row
 * i, column j of the 4 x 4 matrix R'R.  With SQUARES only i is used: the
 * column. */
template <sums S> __device__ __forceinline__ void place(int e, int pair, int *i,
                                                        int *j)
{
    const int row[7] = {0, 1, 0, 0, 0, 1, 1}, col[7] = {0, 1, 1, 2, 3, 2, 3};

    *i = 2 * pair + row[e];
    *j = S == GRAM ? (2 * pair + col[e]) % 4 : 0;
}

template <int L, sums S>
__device__ void write_few(double *sum, double (*shared)[8][7], double *part,
                          int k2)
{
    constexpr int count = S == SQUARES ? 2 : L == 1 ? 3 : 7;
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    int items = S == GRAM ? k2 * k2 : k2;

#pragma unroll
    for (int e = 0; e < count; e++) {
#pragma unroll
        for (int far = L; far < 32; far *= 2)
            sum[e] += __shfl_xor_sync(all_lanes, sum[e], far);
        if (lane < L) shared[lane][warp][e] = sum[e];
    }
    __syncthreads();
    if ((int)threadIdx.x < L * count) {
        int pair = (int)threadIdx.x / count, e = (int)threadIdx.x % count, i, j;
        double total = 0;

        for (int w = 0; w < 8; w++) total += shared[pair][w][e];
        if (pair > 0 && e > 2) return; /* the first lane computes these sums,
                                          too */
        place<S>(e, pair, &i, &j);
        part += (int64_t)blockIdx.x * items;
        if (i >= k2 || j >= k2) return;
        part[S == GRAM ? j * k2 + i : i] = total;
        if (S == GRAM) part[i * k2 + j] = total;
    }
}

/* Returns the number of thread blocks of few_kernel per multiprocessor. */
constexpr int few_per_sm(int L, sums S) { return S == NO_SUMS || L < 2 ? 4 : 2; }

template <int L, bool PAIRED, sums S>
__global__ void __launch_bounds__(256, few_per_sm(L, S)) few_kernel(operands o)
{
    __shared__ double shared[L][8][7];
    constexpr int rows = 256 / L;
    int own = 2 * ((int)threadIdx.x % L), other = 2 * L - 2 - own;
    int64_t step = (int64_t)gridDim.x * (few_deep * rows);
    double c[4][2], sum[7] = {};

#pragma unroll
    for (int e = 0; e < 8; e++) {
        int i = (e < 4 ? own : other) + e / 2 % 2, j = own + e % 2;

        c[e / 2][e % 2] = i < o.k1 && j < o.k2 && (e < 4 || L == 2)
                              ? o.first.a * o.first.c[j * o.k1 + i] : 0.0;
    }
    for (int64_t base = (int64_t)blockIdx.x * (few_deep * rows); base < o.n;
         base += step) {
        int64_t first = base + threadIdx.x / L;

        const product &p = o.first;
        double2 x[few_deep], w[few_deep];

#pragma unroll
        for (int u = 0; u < few_deep; u++) {
            int64_t i = first + u * rows;
            int left = i < o.n ? o.k2 - own : 0;

            x[u] = load_pair<PAIRED>(p.x + i * p.ldx + own,
                                     i < o.n ? o.k1 - own : 0);
            w[u] = load_pair<PAIRED>(p.w + i * p.ldw + own,
                                     p.b != 0 ? left : 0);
        }
#pragma unroll
        for (int u = 0; u < few_deep; u++) {
            int64_t i = first + u * rows;
            double2 v = row_product(c, x[u], beside<L>(x[u]), p.b, w[u]);

            store_pair<PAIRED>(p.y + i * p.ldy + own,
                               i < o.n ? p.wide - own : 0, v);
            add_row<L, S>(sum, v);
        }
    }
    if constexpr (S != NO_SUMS) write_few<L, S>(sum, shared, o.part, o.k2);
}

/* --- eight_kernel: 8 rows by 8 columns, one fragment of the tensor cores */

constexpr int eight_deep = 4; /* groups of 8 rows that a warp loads at once */

/* Loads x[b] and w[b], this lane's elements of the groups of 8 rows from `row`
 * on. */
__device__ __forceinline__ void take_eights(const product &p, int64_t row,
                                            const operands &o,
                                            double (*x)[2], double (*w)[2])
{
    int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
    const double *px = p.x + (row + g) * p.ldx + t;
    const double *pw = p.w + (row + 2 * t) * p.ldw + g;
    bool old = p.b != 0 && g < o.k2;

#pragma unroll
    for (int b = 0; b < eight_deep; b++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            x[b][h] = row + 8 * b + g < o.n && 4 * h + t < o.k1
                          ? px[8 * b * p.ldx + 4 * h] : 0.0;
            w[b][h] = old && row + 8 * b + 2 * t + h < o.n
                          ? pw[(8 * b + h) * p.ldw] : 0.0;
        }
}

/* Writes the R'R of a thread block: lanes hold (g, 2t) and (g, 2t + 1) of the
 * R'R of their warp, and warps are added in order. */
template <sums S>
__device__ void write_eight(const double *gram, double (*shared)[64],
                            double *part, int k2)
{
    int lane = (int)threadIdx.x % 32, e = (int)threadIdx.x;
    int i = e / 8, j = e % 8;
    double total = 0;

    shared[threadIdx.x / 32][2 * lane] = gram[0];
    shared[threadIdx.x / 32][2 * lane + 1] = gram[1];
    __syncthreads();
    if (e >= 64 || i >= k2 || j >= k2 || (S == SQUARES && i != j)) return;
    for (int w = 0; w < 8; w++) total += shared[w][e];
    if (S == SQUARES) part[(int64_t)blockIdx.x * k2 + i] = total;
    else part[((int64_t)blockIdx.x * k2 + j) * k2 + i] = total;
}

template <sums S>
__global__ void __launch_bounds__(256, 3) eight_kernel(operands o)
{
    constexpr int rows = 8 * eight_deep;
    __shared__ double shared[S == NO_SUMS ? 1 : 8][64];
    int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
    int64_t step = (int64_t)gridDim.x * (8 * rows);
    double c[2], gram[2] = {};

#pragma unroll
    for (int h = 0; h < 2; h++)
        c[h] = 4 * h + t < o.k1 && g < o.k2
                   ? o.first.a * o.first.c[g * o.k1 + 4 * h + t] : 0.0;
    for (int64_t row = ((int64_t)blockIdx.x * 8 + threadIdx.x / 32) * rows;
         row < o.n; row += step) {
        const product &p = o.first;
        double *py = p.y + (row + 2 * t) * p.ldy + g;
        double x[eight_deep][2], w[eight_deep][2];

        take_eights(p, row, o, x, w);
#pragma unroll
        for (int b = 0; b < eight_deep; b++) {
            double d[2] = {p.b * w[b][0], p.b * w[b][1]};

            dmma8(d[0], d[1], c[0], x[b][0]);
            dmma8(d[0], d[1], c[1], x[b][1]);
#pragma unroll
            for (int h = 0; h < 2; h++) {
                if (row + 8 * b + 2 * t + h < o.n && g < p.wide)
                    py[(8 * b + h) * p.ldy] = d[h];
                if (S != NO_SUMS) dmma8(gram[0], gram[1], d[h], d[h]);
            }
        }
    }
    if constexpr (S != NO_SUMS) write_eight<S>(gram, shared, o.part, o.k2);
}

} // namespace

#endif
