/* SPDX-License-Identifier: BSD-3-Clause */
/* solve_small.cu - X = X C^-1 with an upper triangular C, on the fp64 tensor
 * cores.
 *
 * A warp takes 16 rows.  Of every 8 columns its lane 4g + t holds the pair 2t,
 * 2t + 1 of rows g and g + 8, which is a factor's place in a product and a
 * result's place as well; so columns are substituted 8 at a time without
 * leaving the registers:
 *
 *     X_j = X_j C_jj^-1;   X_i -= X_j C_ji  for i > j,
 *
 * with the inverses of the 8 x 8 blocks of the diagonal, which every block of
 * threads makes for itself by substitution.  More than 128 columns go in
 * panels, what is left of a panel by cuBLAS.
 *
 * Bytes: X once in, once out; n k^2 flops. */
#include "device.cuh"
#include "spare.cuh"

namespace {

constexpr int threads = 128, panel = 128;

/* Of c (k x k, ld rows apart by column): tile (i, j), i <= j, of S x S tiles is
 * number j (j + 1) / 2 + i of fragment; its number parity * 32 + lane is
 * element (2t + parity, g), turned in sign off the diagonal, inverted on it. */
template <int S>
__device__ void arrange(double *fragment, const double *c, int64_t ld, int k)
{
    auto element = [&](int row, int col) {
        return row < k && col < k ? c[(int64_t)col * ld + row]
                                  : row == col ? 1.0 : 0.0;
    };

    for (int e = (int)threadIdx.x; e < S * S * 64; e += threads) {
        int i = e / 64 % S, j = e / 64 / S, lane = e % 32;
        int row = 8 * i + 2 * (lane % 4) + e % 64 / 32;

        if (i < j)
            fragment[64 * (j * (j + 1) / 2 + i) + e % 64] =
                -element(row, 8 * j + lane / 4);
    }
    for (int col = (int)threadIdx.x; col < 8 * S; col += threads) {
        int j = col / 8;
        double *tile = fragment + 64 * (j * (j + 1) / 2 + j), v[8];

#pragma unroll
        for (int i = 7; i >= 0; i--) {
            double sum = 8 * j + i == col ? 1.0 : 0.0;

#pragma unroll
            for (int l = i + 1; l < 8; l++)
                sum -= element(8 * j + i, 8 * j + l) * v[l];
            v[i] = 8 * j + i > col ? 0.0 : sum / element(8 * j + i, 8 * j + i);
            tile[i % 2 * 32 + 4 * (col % 8) + i / 2] = v[i];
        }
    }
}

/* d (16 x 8) += x (16 x 8) times a tile. */
__device__ __forceinline__ void multiply(double *d, const double *x,
                                         const double *tile, int lane)
{
    const double b[2] = {tile[lane], tile[32 + lane]};

    dmma16x8(d, x, b);
}

/* Blocks an SM: what X takes in registers has room, and all blocks of a launch
 * are at work at once. */
constexpr int solve_per_sm(int S)
{
    return S <= 2 ? 6 : S <= 6 ? 4 : S <= 8 ? 3 : 2;
}

template <int S, bool PAIRS>
__global__ void __launch_bounds__(threads, solve_per_sm(S))
solve_kernel(double *X, int64_t ldx, int64_t n, const double *c, int64_t ldc,
             int k, int wide)
{
    constexpr int RT = S == 1 ? 4 : S == 2 ? 2 : 1; /* tiles in flight */
    extern __shared__ double fragment[];
    int lane = (int)threadIdx.x % 32, t = lane % 4;
    int64_t step = (int64_t)gridDim.x * (threads / 32) * (16 * RT);
    int64_t row = ((int64_t)blockIdx.x * (threads / 32) + threadIdx.x / 32) *
                  (16 * RT) + lane / 4;

    arrange<S>(fragment, c, ldc, k);
    __syncthreads();
    k -= 2 * t;
    wide -= 2 * t;
    for (; row - lane / 4 < n; row += step) {
        double *px = X + row * ldx + 2 * t, x[RT][S][4];

#pragma unroll
        for (int r = 0; r < 2 * RT; r++)
#pragma unroll
            for (int s = 0; s < S; s++) {
                int left = row + 8 * r < n ? k - 8 * s : 0;
                const double *p = px + 8 * r * ldx + 8 * s;
                double2 v = PAIRS ? whole_pair(p, left > 0)
                                  : load_pair<false>(p, left);

                if (PAIRS && left < 2) v.y = 0;

                x[r / 2][s][r % 2] = v.x;
                x[r / 2][s][2 + r % 2] = v.y;
            }
#pragma unroll
        for (int j = 0; j < S; j++)
#pragma unroll
            for (int r = 0; r < RT; r++) {
                double d[4] = {};

                multiply(d, x[r][j], fragment + 64 * (j * (j + 1) / 2 + j),
                         lane);
                x[r][j][0] = d[0], x[r][j][1] = d[2];
                x[r][j][2] = d[1], x[r][j][3] = d[3];
#pragma unroll
                for (int i = j + 1; i < S; i++) {
                    double *y = x[r][i], e[4] = {y[0], y[2], y[1], y[3]};

                    multiply(e, x[r][j], fragment + 64 * (i * (i + 1) / 2 + j),
                             lane);
                    y[0] = e[0], y[1] = e[2], y[2] = e[1], y[3] = e[3];
                }
            }
#pragma unroll
        for (int r = 0; r < 2 * RT; r++)
#pragma unroll
            for (int s = 0; s < S; s++)
                store_pair<PAIRS>(px + 8 * r * ldx + 8 * s,
                                   row + 8 * r < n ? wide - 8 * s : 0,
                                   make_double2(x[r / 2][s][r % 2],
                                                x[r / 2][s][2 + r % 2]));
    }
}

/* Up to four columns, where arithmetic is nothing: L lanes a row, a pair of
 * columns each, `deep` rows in flight.  The second lane takes the first one's
 * pair off its own; the inverses of the diagonal are made once. */
constexpr int deep = 8;

struct corner {
    double first, above, second; /* 2 x 2: inverse, element, inverse */
    double off[4];               /* of the first lane's columns, by rows */
};

__device__ __forceinline__ corner take_corner(const double *c, int64_t ldc,
                                              int k, int own)
{
    auto element = [&](int row, int col) {
        return row < k && col < k ? c[(int64_t)col * ldc + row]
                                  : row == col ? 1.0 : 0.0;
    };
    corner u = {1 / element(own, own), element(own, own + 1),
                1 / element(own + 1, own + 1), {}};

    if (own > 0)
        for (int e = 0; e < 4; e++) u.off[e] = element(e / 2, own + e % 2);
    return u;
}

__device__ __forceinline__ double2 solve_pair(const corner &u, double2 x)
{
    x.x *= u.first;
    x.y = (x.y - x.x * u.above) * u.second;
    return x;
}

template <int L, bool PAIRED>
__global__ void __launch_bounds__(256, 3)
few_kernel(double *X, int64_t ldx, int64_t n, const double *c, int64_t ldc,
           int k, int wide)
{
    constexpr int rows = 256 / L;
    int own = 2 * ((int)threadIdx.x % L);
    corner u = take_corner(c, ldc, k, own);
    int64_t step = (int64_t)gridDim.x * (deep * rows);
    int64_t row = (int64_t)blockIdx.x * (deep * rows) + threadIdx.x / L;
    int64_t ends = ceil_div(n, deep * rows) * (deep * rows);

    for (; row < ends; row += step) {
        double2 x[deep];

#pragma unroll
        for (int d = 0; d < deep; d++)
            x[d] = load_pair<PAIRED>(X + (row + d * rows) * ldx + own,
                                     row + d * rows < n ? k - own : 0);
#pragma unroll
        for (int d = 0; d < deep; d++) {
            double2 y = solve_pair(u, x[d]);

            if (L == 2) {
                int lane = (int)threadIdx.x % 32 & ~1;
                double a = __shfl_sync(all_lanes, y.x, lane);
                double b = __shfl_sync(all_lanes, y.y, lane);

                x[d].x -= a * u.off[0] + b * u.off[2];
                x[d].y -= a * u.off[1] + b * u.off[3];
                if (own > 0) y = solve_pair(u, x[d]);
            }
            store_pair<PAIRED>(X + (row + d * rows) * ldx + own,
                               row + d * rows < n ? wide - own : 0, y);
        }
    }
}

template <int L, bool PAIRED>
sps_status launch_few(const sps_block *X, const double *c, int64_t ldc)
{
    sps_cuda_state *s = spsi_cuda_state(X->ctx);
    int64_t blocks = ceil_div(X->n, 256 / L * deep), most = 3 * s->sms;

    few_kernel<L, PAIRED>
        <<<(unsigned)(blocks < most ? blocks : most), 256, 0, s->stream>>>(
            numbers(X), X->ld, X->n, c, ldc, X->k, writable_columns(X));
    SPS_LAUNCHED(X->ctx);
    return SPS_OK;
}

template <int S, bool PAIRS>
sps_status launch(const sps_block *X, const double *c, int64_t ldc)
{
    sps_cuda_state *s = spsi_cuda_state(X->ctx);
    constexpr int bytes = 64 * (S * (S + 1) / 2) * (int)sizeof(double);
    int64_t blocks = ceil_div(X->n, (threads / 32) * 16);
    int64_t most = solve_per_sm(S) * s->sms;
    auto kernel = solve_kernel<S, PAIRS>;

    if (bytes > 48 << 10)
        SPS_CUDA(X->ctx, cudaFuncSetAttribute(
                             kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             bytes));
    if (blocks > most) blocks = most;
    kernel<<<(unsigned)blocks, threads, bytes, s->stream>>>(
        numbers(X), X->ld, X->n, c, ldc, X->k, writable_columns(X));
    SPS_LAUNCHED(X->ctx);
    return SPS_OK;
}

template <bool PAIRS>
sps_status launch_any(const sps_block *X, const double *c, int64_t ldc)
{
    if (X->k <= 2) return launch_few<1, PAIRS>(X, c, ldc);
    if (X->k <= 4) return launch_few<2, PAIRS>(X, c, ldc);
    if (X->k <= 8) return launch<1, PAIRS>(X, c, ldc);
    if (X->k <= 16) return launch<2, PAIRS>(X, c, ldc);
    if (X->k <= 32) return launch<4, PAIRS>(X, c, ldc);
    if (X->k <= 48) return launch<6, PAIRS>(X, c, ldc);
    if (X->k <= 64) return launch<8, PAIRS>(X, c, ldc);
    if (X->k <= 96) return launch<12, PAIRS>(X, c, ldc);
    return launch<16, PAIRS>(X, c, ldc);
}

/* Columns first .. of P -= the columns before them times C's rows before
 * them; row-major blocks are column-major transposes. */
sps_status subtract(const sps_block *X, const sps_block *P, int first,
                    const double *c, int64_t ldc)
{
    double one = 1, minus = -1;

    SPS_CUBLAS(X->ctx, cublasDgemm_64(spsi_cuda_state(X->ctx)->blas,
                                      CUBLAS_OP_T, CUBLAS_OP_N, P->k, X->n,
                                      first, &minus, c + first * ldc, ldc,
                                      numbers(X), X->ld, &one, numbers(P),
                                      P->ld));
    return SPS_OK;
}

} // namespace

sps_status spsi_cuda_solve_small(const sps_small *C, sps_block *X)
{
    const double *c;

    SPS_TRY_RETURN(spsi_cuda_enter(X->ctx));
    SPS_TRY_RETURN(spsi_cuda_small(C, &c));
    for (int first = 0; first < X->k; first += panel) {
        int k = X->k - first < panel ? X->k - first : panel;
        const double *corner = c + (int64_t)first * X->k + first;
        sps_block P;

        if (k < X->k) spsi_block_view(X, first, k, &P);
        else P = *X;
        if (first > 0) SPS_TRY_RETURN(subtract(X, &P, first, c, X->k));
        if (pairs_throughout(&P, k)) SPS_TRY_RETURN(launch_any<true>(&P, corner, X->k));
        else SPS_TRY_RETURN(launch_any<false>(&P, corner, X->k));
    }
    return SPS_OK;
}
