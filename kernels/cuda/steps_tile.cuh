/* SPDX-License-Identifier: BSD-3-Clause */
/* steps_tile.cuh - tiles of 8 rows in the registers of a warp, for the passes
 * of a step with small matrices, on the fp64 tensor cores.
 *
 * Lane 4g + t.  "Down": rows 2t, 2t + 1 and columns 2g, 2g + 1 of every 16;
 * that is how a transposed product R' = R' - a'Q' (columns of the result are
 * the 16 rows of the instruction, rows of the block its 8 columns) leaves its
 * result, and at once how a Gram product wants both of its factors, since the
 * order of its long dimension is free.  So nothing is shuffled.  "Across": row
 * g, columns 2t, 2t + 1 of every 8; how blocks enter a product. */
#ifndef SPS_CUDA_STEPS_TILE_CUH
#define SPS_CUDA_STEPS_TILE_CUH

#include "single.cuh"
#include "steps_small.cuh"

namespace {

/* V: double, or float, which is widened when it is loaded. */
template <class V> struct view {
    V *p;
    int64_t ld;
    int k;
};

template <class V> view<V> view_of(const sps_block *X)
{
    return { (V *)X->data, X->ld, X->k };
}

/* Rows row + 2t, + 2t + 1; columns 16 u + 2g and the next.  v[u][2 e + i] is
 * column 2g + e, row 2t + i.  WHOLE, here and below: all 8 rows and 16 T
 * columns are there, and no load asks. */
template <int T, bool WHOLE = false, class V>
__device__ __forceinline__ void load_down(double (*v)[4], const view<V> &x,
                                          int64_t row, int64_t n, int g, int t)
{
    const V *p = x.p + (row + 2 * t) * x.ld + 2 * g;

#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int u = 0; u < T; u++) {
            int left = x.k - 16 * u - 2 * g;
            double2 w = load_pair<true>(p + i * x.ld + 16 * u,
                                        WHOLE ? 2
                                        : row + 2 * t + i < n ? left : 0);

            v[u][i] = w.x;
            v[u][2 + i] = w.y;
        }
}

template <int T, bool WHOLE = false, class V>
__device__ __forceinline__ void store_down(const double (*v)[4],
                                           const view<V> &x, int64_t row,
                                           int64_t n, int g, int t)
{
    V *p = x.p + (row + 2 * t) * x.ld + 2 * g;

#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int u = 0; u < T; u++) {
            int left = x.k - 16 * u - 2 * g;

            store_pair<true>(p + i * x.ld + 16 * u,
                             WHOLE ? 2 : row + 2 * t + i < n ? left : 0,
                             make_double2(v[u][i], v[u][2 + i]));
        }
}

/* Row row + g; columns 16 s + 2t, + 2t + 1, + 8 + 2t, + 9 + 2t. */
template <int T, bool WHOLE = false, class V>
__device__ __forceinline__ void load_across(double (*v)[4], const view<V> &x,
                                            int64_t row, int64_t n, int g,
                                            int t)
{
    const V *p = x.p + (row + g) * x.ld + 2 * t;

#pragma unroll
    for (int s = 0; s < T; s++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int left = x.k - 16 * s - 8 * h - 2 * t;
            double2 w = load_pair<true>(p + 16 * s + 8 * h,
                                        WHOLE ? 2 : row + g < n ? left : 0);

            v[s][2 * h] = w.x;
            v[s][2 * h + 1] = w.y;
        }
}

/* Of the diagonal: rows 2t and 2t + 1; ones without it. */
template <bool WHOLE = false>
__device__ __forceinline__ void load_diagonal(double *v, const double *d,
                                              int64_t row, int64_t n, int t)
{
#pragma unroll
    for (int i = 0; i < 2; i++) {
        int64_t at = row + 2 * t + i;

        v[i] = d && (WHOLE || at < n) ? d[at] : 1.0;
    }
}

/* sign times c (rows x cols, columns ld apart) as the first factor of
 * transposed products: pair ((s * T + u) * 4 + i) * 32 + lane holds c(in, out)
 * with in as load_across counts and out = 16 u + 2g, and the next.  first: of
 * the threads, t in the role of t = 0. */
template <int T>
__device__ void arrange(double2 *fragment, const double *c, double sign,
                        int rows, int cols, int ld, int first = 0)
{
    const int size = (int)blockDim.x, t = (int)threadIdx.x;

    for (int e = t < first ? t - first + size : t - first; e < T * T * 4 * 32;
         e += size) {
        int lane = e % 32, i = e / 32 % 4, u = e / 128 % T, s = e / 128 / T;
        int in = 16 * s + 8 * (i / 2) + 2 * (lane % 4) + i % 2;
        int out = 16 * u + 2 * (lane / 4);
        double2 v = make_double2(0.0, 0.0);

        if (in < rows && out < cols) v.x = sign * c[out * ld + in];
        if (in < rows && out + 1 < cols)
            v.y = sign * c[(out + 1) * ld + in];
        fragment[e] = v;
    }
}

/* acc += c' x' for one tile. */
template <int T>
__device__ __forceinline__ void multiply(double (*acc)[4],
                                         const double2 *fragment,
                                         const double (*x)[4], int lane)
{
#pragma unroll
    for (int s = 0; s < T; s++)
#pragma unroll
        for (int u = 0; u < T; u++) {
            double a[8];

#pragma unroll
            for (int i = 0; i < 4; i++) {
                double2 w = fragment[((s * T + u) * 4 + i) * 32 + lane];

                a[2 * i] = w.x;
                a[2 * i + 1] = w.y;
            }
            dmma16x16(acc[u], a, x[s]);
        }
}

/* sum += x' y over the 8 H rows of H tiles, H 1 or 2: sum[u][2 v + e] belongs
 * to columns 16 u + .. of x, U sixteens, and 16 v + .. + e of y. */
template <int T, int H, int U = T>
__device__ __forceinline__ void add_gram(double (*sum)[2 * T][4],
                                         const double (*x)[U][4],
                                         const double (*y)[T][4])
{
#pragma unroll
    for (int u = 0; u < U; u++)
#pragma unroll
        for (int v = 0; v < T; v++)
#pragma unroll
            for (int e = 0; e < 2; e++) {
                double a[4 * H], b[2 * H];

#pragma unroll
                for (int i = 0; i < 2 * H; i++) {
                    a[2 * i] = x[i / 2][u][i % 2];
                    a[2 * i + 1] = x[i / 2][u][2 + i % 2];
                    b[i] = y[i / 2][v][2 * e + i % 2];
                }
                if constexpr (H == 1) dmma16x8(sum[u][2 * v + e], a, b);
                else dmma16x16(sum[u][2 * v + e], a, b);
            }
}

/* Adds the warps of a block by a tree and writes rows first .. of a k1 x k2
 * result to out, after a barrier. */
template <int T, int WARPS, int U = T>
__device__ void join_gram(double (*sum)[2 * T][4], double *shared, double *out,
                          int k1, int k2, int first = 0)
{
    constexpr int count = U * 2 * T * 4;
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    int g = lane / 4, t = lane % 4;
    double *v = &sum[0][0][0];

    for (int left = WARPS, half; left > 1; left = half) {
        half = (left + 1) / 2;
        double *p = shared + warp % half * count * 32 + lane;

        __syncthreads();
        if (warp >= half && warp < left)
#pragma unroll
            for (int e = 0; e < count; e++) p[32 * e] = v[e];
        __syncthreads();
        if (warp < left - half)
#pragma unroll
            for (int e = 0; e < count; e++) v[e] += p[32 * e];
    }
    if (warp > 0) return;
#pragma unroll
    for (int u = 0; u < U; u++)
#pragma unroll
        for (int w = 0; w < 2 * T; w++)
#pragma unroll
            for (int q = 0; q < 4; q++) {
                int i = first + 16 * u + 2 * g + q / 2;
                int j = 16 * (w / 2) + 2 * (2 * t + q % 2) + w % 2;

                if (i < k1 && j < k2) out[j * k1 + i] = sum[u][w][q];
            }
}

/* Adds the squares over the t of a warp and the warps of a block. */
template <int T, int WARPS>
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
            for (int e = 0; e < 2; e++)
                shared[warp * 16 * T + 16 * u + 2 * (lane / 4) + e] =
                    square[u][e];
    __syncthreads();
    for (int c = (int)threadIdx.x; c < k; c += (int)blockDim.x) {
        double sum = 0;

        for (int v = 0; v < WARPS; v++) sum += shared[v * 16 * T + c];
        out[c] = sum;
    }
}

/* Room for join_gram. */
template <int T, int WARPS, int U = T>
constexpr int room = (WARPS + 1) / 2 * U * 2 * T * 4 * 32;

} // namespace

#endif
