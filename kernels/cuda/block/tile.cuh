/* SPDX-License-Identifier: BSD-3-Clause */
/* tile.cuh - tiles of 8 rows in the registers of a warp, for the passes of
 * fused iterations with small matrices, on the fp64 tensor cores.
 *
 * There are two layouts. "Down": lane 4g + t has rows 2t, 2t + 1 and columns
 * 2g, 2g + 1 of every 16.  A transposed product R' -= a'Q', whose 16 rows in
 * the instruction are columns of R and whose 8 columns are rows of R, leaves
 * its result in this layout.  A Gram product takes both factors in it, since
 * the order of the dimension summed over is arbitrary; so no shuffles are
 * needed.  "Across": lane 4g + t has row g and columns 2t, 2t + 1 of every 8;
 * it is the layout of blocks that enter a product.
 *
 * HALF: the last tile of 16 columns has only 8 columns, so that 17 to 24
 * columns take 18 numbers per lane for a Gram product instead of 32.  Of this
 * tile a lane has column g in "down" layout, as m8n8k4 leaves its result. */
#ifndef SPS_CUDA_STEPS_TILE_CUH
#define SPS_CUDA_STEPS_TILE_CUH

#include "cuda/block/single_device.cuh"
#include "cuda/base/row_padding.cuh"

namespace {

/* A block as passed to kernels; V is double, or float, which is converted to
 * double when loaded. */
template <class V> struct view {
    V *p;
    int64_t ld;
    int k;
    int wide = 0;          /* number of columns that may be written, including
                              padding (row_padding.cuh) */
    bool pairs = false;    /* the first k columns may be loaded as pairs
                              without checks */
};

template <class V> view<V> view_of(const sps_block *X)
{
    return { (V *)X->data, X->ld, X->k, writable_columns(X),
             pairs_throughout(X, X->k) };
}

/* How a tile is loaded.  WHOLE: all 8 rows and all columns exist, no checks.
 * PADDED: all rows exist and columns can be loaded as pairs, so a lane loads a
 * pair or nothing, and the loads of a tile are issued without a branch between
 * them.  TESTED: each element is checked. */
enum access { WHOLE, PADDED, TESTED };

template <class DO>
__device__ __forceinline__ void by_access(access how, DO act)
{
    if (how == WHOLE) act.template operator()<WHOLE>();
    else if (how == PADDED) act.template operator()<PADDED>();
    else act.template operator()<TESTED>();
}

template <int T, bool HALF> __device__ constexpr bool is_half(int u)
{
    return HALF && u == T - 1;
}

/* Loads a pair of neighbouring elements, of which `left` are columns of the
 * block, or zeros if the row does not exist (`row` false). */
template <access HOW, class V>
__device__ __forceinline__ double2 take_pair(const V *p, bool row, int left)
{
    if constexpr (HOW == TESTED) return load_pair<true>(p, row ? left : 0);
    else return whole_pair(p, HOW == WHOLE || left > 0);
}

template <access HOW, class V>
__device__ __forceinline__ double take_one(const V *p, bool row, int left)
{
    const bool some = HOW == WHOLE || (left > 0 && (HOW == PADDED || row));

    return some ? (double)*p : 0.0;
}

/* Loads a tile in "down" layout: rows row + 2t, row + 2t + 1 and columns 16 u +
 * 2g and the next. v[u][2 e + i] is column 2g + e, row 2t + i; in a half tile
 * v[u][i] is column g. */
template <int T, access HOW = TESTED, bool HALF = false, class V>
__device__ __forceinline__ void load_down(double (*v)[4], const view<V> &x,
                                          int64_t row, int64_t n, int g, int t)
{
    const V *p = x.p + (row + 2 * t) * x.ld;

#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int u = 0; u < T; u++) {
            const bool half = is_half<T, HALF>(u), there = row + 2 * t + i < n;
            const int at = 16 * u + (half ? g : 2 * g);

            if (half) {
                v[u][i] = take_one<HOW>(p + i * x.ld + at, there, x.k - at);
                continue;
            }
            double2 w = take_pair<HOW>(p + i * x.ld + at, there, x.k - at);

            v[u][i] = w.x;
            v[u][2 + i] = w.y;
        }
}

/* Stores a tile in "down" layout.  Unless HOW is TESTED, rows are written to
 * the end of their last sector if the padding there may be written (x.wide). */
template <int T, access HOW = TESTED, bool HALF = false, class V>
__device__ __forceinline__ void store_down(const double (*v)[4],
                                           const view<V> &x, int64_t row,
                                           int64_t n, int g, int t)
{
    V *p = x.p + (row + 2 * t) * x.ld;
    const int wide = HOW == TESTED ? x.k : x.wide;

#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int u = 0; u < T; u++) {
            const bool half = is_half<T, HALF>(u);
            const int at = 16 * u + (half ? g : 2 * g);
            const int left = HOW == WHOLE ? 2
                             : HOW == PADDED || row + 2 * t + i < n ? wide - at
                                                                    : 0;

            if (!half)
                store_pair<true>(p + i * x.ld + at, left,
                                 make_double2(v[u][i], v[u][2 + i]));
            else if (left > 0)
                p[i * x.ld + at] = (V)v[u][i];
        }
}

/* Loads a tile in "across" layout: row row + g and columns 16 s + 2t, + 2t + 1,
 * + 8 + 2t, + 9 + 2t.  The padding after an odd last column is set to zero,
 * since it may be NaN. */
template <int T, access HOW = TESTED, bool HALF = false, class V>
__device__ __forceinline__ void load_across(double (*v)[4], const view<V> &x,
                                            int64_t row, int64_t n, int g,
                                            int t)
{
    const V *p = x.p + (row + g) * x.ld + 2 * t;

#pragma unroll
    for (int s = 0; s < T; s++)
#pragma unroll
        for (int h = 0; h < (is_half<T, HALF>(s) ? 1 : 2); h++) {
            int left = x.k - 16 * s - 8 * h - 2 * t;
            double2 w = take_pair<HOW>(p + 16 * s + 8 * h, row + g < n, left);

            v[s][2 * h] = w.x;
            v[s][2 * h + 1] = HOW == PADDED && left == 1 ? 0.0 : w.y;
        }
}

/* Loads elements row + 2t and row + 2t + 1 of the diagonal d, or ones if d is
 * NULL. */
template <access HOW = TESTED>
__device__ __forceinline__ void load_diagonal(double *v, const double *d,
                                              int64_t row, int64_t n, int t)
{
#pragma unroll
    for (int i = 0; i < 2; i++) {
        int64_t at = row + 2 * t + i;

        v[i] = d && (HOW != TESTED || at < n) ? d[at] : 1.0;
    }
}

/* Stores `sign` times c (rows x cols, column-major with leading dimension ld)
 * as the first factor of transposed products: pair ((s * T + u) * 4 + i) * 32 +
 * lane holds c(in, out) and c(in, out + 1), with `in` in the order of
 * load_across and out = 16 u + 2g; in a half tile only c(in, out) with out = 16
 * u + g.  `first` is the thread that writes pair 0; the next pairs follow from
 * there, cyclically. */
template <int T, bool HALF = false>
__device__ void arrange(double2 *fragment, const double *c, double sign,
                        int rows, int cols, int ld, int first = 0)
{
    const int size = (int)blockDim.x, t = (int)threadIdx.x;

    for (int e = t < first ? t - first + size : t - first; e < T * T * 4 * 32;
         e += size) {
        int lane = e % 32, i = e / 32 % 4, u = e / 128 % T, s = e / 128 / T;
        int in = 16 * s + 8 * (i / 2) + 2 * (lane % 4) + i % 2;
        const bool half = is_half<T, HALF>(u);
        int out = 16 * u + (half ? lane / 4 : 2 * (lane / 4));
        double2 v = make_double2(0.0, 0.0);

        if (in < rows && out < cols) v.x = sign * c[out * ld + in];
        if (!half && in < rows && out + 1 < cols)
            v.y = sign * c[(out + 1) * ld + in];
        fragment[e] = v;
    }
}

/* acc += c' x' for one tile: `fragment` has c as stored by `arrange`, x has x
 * as loaded by load_across. */
template <int T, bool HALF = false>
__device__ __forceinline__ void multiply(double (*acc)[4],
                                         const double2 *fragment,
                                         const double (*x)[4], int lane)
{
#pragma unroll
    for (int s = 0; s < T; s++)
#pragma unroll
        for (int u = 0; u < T; u++) {
            const double2 *c = fragment + (s * T + u) * 128 + lane;
            double a[8];

#pragma unroll
            for (int i = 0; i < (is_half<T, HALF>(s) ? 2 : 4); i++) {
                if (is_half<T, HALF>(u)) {
                    dmma8(acc[u][0], acc[u][1], c[32 * i].x, x[s][i]);
                    continue;
                }
                double2 w = c[32 * i];

                a[2 * i] = w.x;
                a[2 * i + 1] = w.y;
            }
            if (is_half<T, HALF>(u)) continue;
            if (is_half<T, HALF>(s)) dmma16x8(acc[u], a, x[s]);
            else dmma16x16(acc[u], a, x[s]);
        }
}

/* sum += x'y over the 8 H rows of H tiles, H = 1 or 2, with U tiles of 16
 * columns of x and T of y.  In lane 4g + t, sum[u][2 v + e][q] is the product
 * of column 16 u + 2g + q / 2 of x and column 16 v + 2 (2t + q % 2) + e of y;
 * in a half tile of x column 16 u + g, with q < 2, in one of y column 16 v + 2t
 * + q % 2, with e = 0.  HALF: the last tiles of x and of y are half ones.
 * SELF: y is x, and only u <= v is computed. */
template <int T, int H, int U = T, bool HALF = false, bool SELF = false>
__device__ __forceinline__ void add_gram(double (*sum)[2 * T][4],
                                         const double (*x)[U][4],
                                         const double (*y)[T][4])
{
#pragma unroll
    for (int u = 0; u < U; u++)
#pragma unroll
        for (int v = SELF ? u : 0; v < T; v++)
#pragma unroll
            for (int e = 0; e < (is_half<T, HALF>(v) ? 1 : 2); e++) {
                double a[4 * H], b[2 * H], *to = sum[u][2 * v + e];

#pragma unroll
                for (int i = 0; i < 2 * H; i++) {
                    b[i] = y[i / 2][v][2 * e + i % 2];
                    if (is_half<U, HALF>(u)) {
                        dmma8(to[0], to[1], x[i / 2][u][i % 2], b[i]);
                        continue;
                    }
                    a[2 * i] = x[i / 2][u][i % 2];
                    a[2 * i + 1] = x[i / 2][u][2 + i % 2];
                }
                if (is_half<U, HALF>(u)) continue;
                if constexpr (H == 1) dmma16x8(to, a, b);
                else dmma16x16(to, a, b);
            }
}

/* Adds up the warps of a thread block by a tree and writes the rows from
 * `first` on of a k1 x k2 result to out; begins with a barrier. */
template <int T, int WARPS, int U = T, bool HALF = false, bool SELF = false>
__device__ void join_gram(double (*sum)[2 * T][4], double *shared, double *out,
                          int k1, int k2, int first = 0)
{
    constexpr int count = U * 2 * T * 4;
    /* Returns whether sum[u][w][q] is a result: not one beyond a half tile or
     * below the diagonal. */
    auto used = [](int u, int w, int q) {
        return !(is_half<T, HALF>(w / 2) && w % 2 == 1) &&
               !(is_half<U, HALF>(u) && q >= 2) && !(SELF && u > w / 2);
    };
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    int g = lane / 4, t = lane % 4;
    double *v = &sum[0][0][0];

    for (int left = WARPS, half; left > 1; left = half) {
        half = (left + 1) / 2;
        double *p = shared + warp % half * count * 32 + lane;

        __syncthreads();
        if (warp >= half && warp < left)
#pragma unroll
            for (int e = 0; e < count; e++)
                if (used(e / (8 * T), e / 4 % (2 * T), e % 4))
                    p[32 * e] = v[e];
        __syncthreads();
        if (warp < left - half)
#pragma unroll
            for (int e = 0; e < count; e++)
                if (used(e / (8 * T), e / 4 % (2 * T), e % 4))
                    v[e] += p[32 * e];
    }
    if (warp > 0) return;
#pragma unroll
    for (int u = 0; u < U; u++)
#pragma unroll
        for (int w = 0; w < 2 * T; w++)
#pragma unroll
            for (int q = 0; q < 4; q++) {
                int i = first + 16 * u +
                        (is_half<U, HALF>(u) ? g : 2 * g + q / 2);
                int j = 16 * (w / 2) +
                        (is_half<T, HALF>(w / 2) ? 2 * t + q % 2
                                                 : 2 * (2 * t + q % 2) + w % 2);

                if (!used(u, w, q) || i >= k1 || j >= k2) continue;
                out[j * k1 + i] = sum[u][w][q];
                if (SELF && u < w / 2) out[i * k1 + j] = sum[u][w][q];
            }
}

/* to = d v for a tile, where d comes from load_diagonal. */
template <int T, bool HALF = false>
__device__ __forceinline__ void scale(double (*to)[4], const double (*v)[4],
                                      const double *d)
{
#pragma unroll
    for (int u = 0; u < T; u++)
#pragma unroll
        for (int e = 0; e < (is_half<T, HALF>(u) ? 2 : 4); e++)
            to[u][e] = v[u][e] * d[e % 2];
}

/* square[u][e] += squares of column 16 u + 2g + e of v; in a half tile of
 * column 16 u + g, with e = 0. */
template <int T, bool HALF = false>
__device__ __forceinline__ void add_squares(double (*square)[2],
                                            const double (*v)[4])
{
#pragma unroll
    for (int u = 0; u < T; u++)
#pragma unroll
        for (int e = 0; e < (is_half<T, HALF>(u) ? 2 : 4); e++) {
            double *to = &square[u][is_half<T, HALF>(u) ? 0 : e / 2];

            *to = fma(v[u][e], v[u][e], *to);
        }
}

/* Computes out[c], c < k: the squares of column c, summed over the lanes t of
 * each warp and over the warps of the thread block. */
template <int T, int WARPS, bool HALF = false>
__device__ void join_squares(double (*square)[2], double *shared, double *out,
                             int k)
{
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;

#pragma unroll
    for (int u = 0; u < T; u++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            square[u][e] += __shfl_xor_sync(all_lanes, square[u][e], 1);
            square[u][e] += __shfl_xor_sync(all_lanes, square[u][e], 2);
        }
    __syncthreads();
    if (lane % 4 == 0)
#pragma unroll
        for (int u = 0; u < T; u++)
#pragma unroll
            for (int e = 0; e < (is_half<T, HALF>(u) ? 1 : 2); e++)
                shared[warp * 16 * T + 16 * u + e +
                       (is_half<T, HALF>(u) ? 1 : 2) * (lane / 4)] =
                    square[u][e];
    __syncthreads();
    for (int c = (int)threadIdx.x; c < k; c += (int)blockDim.x) {
        double sum = 0;

        for (int v = 0; v < WARPS; v++) sum += shared[v * 16 * T + c];
        out[c] = sum;
    }
}

/* Size of the shared memory for join_gram, in doubles. */
template <int T, int WARPS, int U = T>
constexpr int room = (WARPS + 1) / 2 * U * 2 * T * 4 * 32;

} // namespace

#endif
