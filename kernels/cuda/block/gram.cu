/* SPDX-License-Identifier: BSD-3-Clause */
/* gram.cu - C = X'Y and the pair G = P'Q, C = P'R, on the fp64 tensor cores.
 *
 * The reduction runs over the rows of the blocks.  Of every 4 rows, lane 4g + t
 * of a warp loads row t, column g of each 8 columns.  This is the operand
 * layout (fragment) of X' (8 x 4) as well as that of Y (4 x 8), so no shuffles
 * are needed.  Pairs of columns are loaded as 16-byte vectors; the even columns
 * form one fragment, the odd ones the next, and the permutation is undone when
 * results are written.
 *
 * A warp owns a tile of up to 32 x 32 results (24 x 24 for 17 to 24 columns,
 * which leaves registers for twice the rows in flight) and a slice of the rows.
 * The 8 warps of a thread block have up to 8 tiles (whose common rows then hit
 * in L1) and divide its rows into 8 / tiles slices.  Order of summation: rows
 * of a slice, slices of a thread block, thread blocks; all fixed by shape and
 * device. Up to 64 columns blocks are read once (a pair: P, Q, R once), wider
 * ones once per 64 columns of the other factor.
 *
 * If both factors have more than 32 columns (X'X: 24), the kernels of
 * gram_wide.cuh are used up to 128, for a pair up to 96, and cuBLAS beyond: its
 * results are bitwise reproducible with one stream, a workspace of our own and
 * no atomics.  One and two columns: gram_few.cuh. */
#include "cuda/base/library_check.h"
#include "cuda/block/gram_few.cuh"
#include "cuda/block/gram_wide.cuh"
#include "cuda/block/single_stack.h"
#include "cuda/block/single_device.cuh"
#include "cuda/base/row_padding.cuh"

namespace {

constexpr int threads = 256, widest_pair = 96;

/* groups: number of groups of 4 rows in flight; per_sm: thread blocks per
 * multiprocessor.  Measured in doc/log/block-operations.md. */
template <int TM, int TN, bool SELF> struct policy {
    static constexpr int area = TM * TN;
    static constexpr int groups = SELF || TM == 24 || area <= 64 ? 8 : 4;
    static constexpr int per_sm =
        area <= 64 ? 3 + SELF : area < (SELF ? 1024 : 576) ? 2 : 1;
};

/* Returns the column of element g of fragment i in a tile of T columns: each 16
 * columns form two fragments, of the even columns and of the odd ones; the
 * remaining 8 form one fragment, in order. */
template <int T> __device__ __forceinline__ int at(int i, int g)
{
    return 16 * (i / 2) + (i < T / 16 * 2 ? 2 * g + i % 2 : g);
}

/* Loads the fragments of one row; p points to the first column of the tile, and
 * `left` columns of the block follow from there.  PAIRS: pairs are loaded
 * without checking for an odd last column; the padding after it only enters
 * results that are not written. */
template <int T, bool PAIRS>
__device__ __forceinline__ void load_piece(double *v, const double *p, int left,
                                           int g)
{
#pragma unroll
    for (int q = 0; q < T / 16; q++) {
        int c = at<T>(2 * q, g);
        double2 w = PAIRS ? whole_pair(p + c, left > c)
                          : fetch_pair<false>(p + c, left - c);

        v[2 * q] = w.x;
        v[2 * q + 1] = w.y;
    }
    if constexpr (T % 16 == 8) {
        int c = at<T>(T / 8 - 1, g);

        v[T / 8 - 1] = left > c ? __ldg(p + c) : 0.0;
    }
}

struct operands {
    const double *x, *y[2]; /* first factor; second factor, and y[1] that of the
                               second product of a pair (else NULL) */
    int64_t ldx, ldy[2], n;
    int k1, k2;
    bool self;              /* the product is X'X of at most 32 columns */
    int wm, wn;             /* tiles of a thread block along X, and along Y
                               (or Q and R) */
    int across;             /* number of panels of 64 columns of Y:
                               blockIdx.y is the panel of X times `across`
                               plus the panel of Y */
    double *part, *to[2];   /* part: partial results of the thread blocks; to:
                               results, column-major without gaps */
};

/* acc += X' Y over the G groups of 4 rows whose fragments are in a (of X) and b
 * (of Y): first the last 8 columns of X if TM is not a multiple of 16, then its
 * groups of 16 columns.  SELF: the last 8 columns are multiplied only by
 * themselves, since their other products are transposes of other results. */
template <int TM, int TN, int G, bool SELF>
__device__ __forceinline__ void multiply(double *acc, const double (*a)[TM / 8],
                                         const double (*b)[TN / 8])
{
    constexpr int sixteens = TM / 16;

    if constexpr (TM % 16 == 8)
#pragma unroll
        for (int s = 0; s < G; s++)
#pragma unroll
            for (int j = SELF ? TN / 8 - 1 : 0; j < TN / 8; j++) {
                double *d = acc + 4 * sixteens * (TN / 8) + 2 * j;

                dmma8(d[0], d[1], a[s][TM / 8 - 1], b[s][j]);
            }
    if constexpr (sixteens > 0) {
#pragma unroll
        for (int s = 0; s < G; s += 4)
#pragma unroll
            for (int i = 0; i < sixteens; i++)
#pragma unroll
                for (int j = 0; j < TN / 8; j++) {
                    double fa[8], fb[4];

#pragma unroll
                    for (int u = 0; u < 4; u++) {
                        fa[2 * u] = a[s + u][2 * i];
                        fa[2 * u + 1] = a[s + u][2 * i + 1];
                        fb[u] = b[s + u][j];
                    }
                    dmma16x16(acc + 4 * (i * (TN / 8) + j), fa, fb);
                }
    }
}

/* Finds row and column, within the tile, of accumulator e. */
template <int TM, int TN>
__device__ __forceinline__ void place(int e, int g, int t, int *row, int *col)
{
    constexpr int first = TM / 16 * 4 * (TN / 8); /* index of the first
                                                     accumulator of the last 8
                                                     columns */
    int j = e < first ? e / 4 % (TN / 8) : (e - first) / 2;
    int i = e < first ? 2 * (e / (4 * (TN / 8))) + e % 4 / 2 : TM / 8 - 1;

    *row = at<TM>(i, g);
    *col = at<TN>(j, 2 * t + e % 2);
}

/* Adds up the results that the warps of a tile have computed for their slices
 * of rows, in order; slice 0 receives the sums. */
template <int TM, int TN>
__device__ __forceinline__ void join_slices(double (&acc)[TM * TN / 32],
                                            double *shared, int tile, int lane,
                                            const int &slice, int slices)
{
    for (int w = 1; w < slices; w++) {
        double *p = shared + (size_t)tile * (TM * TN) + lane;

        __syncthreads();
        if (slice == w)
#pragma unroll
            for (int e = 0; e < TM * TN / 32; e++) p[32 * e] = acc[e];
        __syncthreads();
        if (slice == 0)
#pragma unroll
            for (int e = 0; e < TM * TN / 32; e++) acc[e] += p[32 * e];
    }
}

/* Writes the part of the tile at row m0 and column n0 that lies within the k1 x
 * k2 results.  SELF: the products of the last 8 columns with the groups of 16
 * are written as transposes. */
template <int TM, int TN, bool SELF>
__device__ __forceinline__ void write_tile(double *out, const double *acc,
                                           int m0, int n0, int g, int t,
                                           int k1, int k2)
{
    constexpr int edge = TM / 16 * 16;
    constexpr bool mirrors = SELF && edge > 0 && edge < TM;

#pragma unroll
    for (int e = 0; e < TM * TN / 32; e++) {
        int i, j;

        place<TM, TN>(e, g, t, &i, &j);
        if (m0 + i >= k1 || n0 + j >= k2 || (mirrors && i >= edge && j < edge))
            continue;
        out[(int64_t)(n0 + j) * k1 + m0 + i] = acc[e];
        if (mirrors && i < edge && j >= edge)
            out[(int64_t)i * k1 + j] = acc[e];
    }
}

/* Computes the partial results of a thread block.  SELF: X'X, whose two factors
 * are the same fragments. */
template <int TM, int TN, bool PAIRS, bool SELF>
__global__ void __launch_bounds__(threads, (policy<TM, TN, SELF>::per_sm))
gram_kernel(operands o)
{
    constexpr int G = policy<TM, TN, SELF>::groups, count = TM * TN / 32;
    extern __shared__ double shared[];
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    int g = lane / 4, t = lane % 4;
    int tiles = o.wm * o.wn, tile = warp % tiles, slice = warp / tiles;
    int slices = threads / 32 / tiles;
    int im = tile % o.wm, in = tile / o.wm;
    /* In the product of a pair the second half of the tiles belongs to the
     * second factor. */
    int half = o.y[1] ? o.wn / 2 : o.wn, second = in >= half;
    int part_m = (int)blockIdx.y / o.across;
    int part_n = (int)blockIdx.y % o.across;
    int m0 = 64 * part_m + im * TM, n0 = 64 * part_n + (in % half) * TN;
    int left_x = o.k1 - m0, left_y = o.k2 - n0;
    int64_t ldx = o.ldx, ldy = second ? o.ldy[1] : o.ldy[0];
    int64_t row = ((int64_t)blockIdx.x * slices + slice) * (4 * G);
    int64_t step = (int64_t)gridDim.x * slices * (4 * G);
    const double *x = o.x + (row + t) * ldx + m0;
    const double *y = (second ? o.y[1] : o.y[0]) + (row + t) * ldy + n0;
    double acc[count], a[G][TM / 8], own[SELF ? 1 : G][TN / 8];
    double (*b)[TN / 8] = own;

    if constexpr (SELF) b = a;

#pragma unroll
    for (int e = 0; e < count; e++) acc[e] = 0;
    for (; row + 4 * G <= o.n; row += step, x += step * ldx, y += step * ldy) {
#pragma unroll
        for (int s = 0; s < G; s++) {
            load_piece<TM, PAIRS>(a[s], x + 4 * s * ldx, left_x, g);
            if (!SELF) load_piece<TN, PAIRS>(b[s], y + 4 * s * ldy, left_y, g);
        }
        multiply<TM, TN, G, SELF>(acc, a, b);
    }
    if (row < o.n) {
#pragma unroll
        for (int s = 0; s < G; s++) {
            bool in_range = row + 4 * s + t < o.n;

            load_piece<TM, PAIRS>(a[s], x + 4 * s * ldx,
                                   in_range ? left_x : 0, g);
            if (!SELF)
                load_piece<TN, PAIRS>(b[s], y + 4 * s * ldy,
                                       in_range ? left_y : 0, g);
        }
        multiply<TM, TN, G, SELF>(acc, a, b);
    }
    join_slices<TM, TN>(acc, shared, tile, lane, slice, slices);
    if (slice > 0) return;
    double *out = o.part + ((int64_t)blockIdx.x * (o.y[1] ? 2 : 1) + second) *
                               o.k1 * o.k2;
    write_tile<TM, TN, SELF>(out, acc, m0, n0, g, t, o.k1, o.k2);
}

int tile_of(int k) { return k <= 8 ? 8 : k <= 16 ? 16 : k <= 24 ? 24 : 32; }

/* Returns the number of thread blocks along the rows. */
template <int TM, int TN, bool SELF>
int blocks_of(const sps_context *ctx, const operands *o, int parts)
{
    using form = policy<TM, TN, SELF>;
    int sms = spsi_cuda_state(ctx)->sms, tiles = o->wm * o->wn;
    int64_t want = ceil_div((int64_t)form::per_sm * sms, parts);
    int64_t most = ceil_div(o->n, 4 * form::groups * (threads / 32 / tiles));

    if (want > most) want = most;
    return want > 0 ? (int)want : 1;
}

/* Queues the product and the sum of its partial results, which goes to
 * o->to. */
template <int TM, int TN, bool SELF>
sps_status launch(sps_context *ctx, operands *o, bool pairs)
{
    sps_cuda_state *s = spsi_cuda_state(ctx);
    int tiles = o->wm * o->wn;
    int parts = o->across * (int)ceil_div(o->k1, 64);
    int blocks = blocks_of<TM, TN, SELF>(ctx, o, parts);
    int64_t count = (int64_t)o->k1 * o->k2 * (o->y[1] ? 2 : 1);
    size_t shared = tiles < threads / 32 ? (size_t)tiles * TM * TN * 8 : 0;
    dim3 grid((unsigned)blocks, (unsigned)parts);

    SPS_TRY_RETURN(take_scratch(ctx, count * blocks, &o->part));
    auto kernel = pairs ? gram_kernel<TM, TN, true, SELF>
                        : gram_kernel<TM, TN, false, SELF>;

    kernel<<<grid, threads, shared, s->stream>>>(*o);
    SPS_LAUNCHED(ctx);
    return launch_join<plus>(ctx, o->part, blocks, count, o->to[0],
                             (int64_t)o->k1 * o->k2, o->to[1]);
}

template <int TM>
sps_status launch_n(sps_context *ctx, operands *o, bool pairs)
{
    if (o->self) return launch<TM, TM, true>(ctx, o, pairs);
    switch (tile_of(o->k2)) {
    case 8: return launch<TM, 8, false>(ctx, o, pairs);
    case 16: return launch<TM, 16, false>(ctx, o, pairs);
    default: return launch<TM, 32, false>(ctx, o, pairs);
    }
}

bool same(const sps_block *X, const sps_block *Y)
{
    return X->data == Y->data && X->k == Y->k && X->ld == Y->ld;
}

/* Computes products of one or two columns. */
sps_status run_few(const sps_block *X, const sps_block *Y, double *to,
                   const sps_block *R, double *to_R)
{
    bool pairs = paired(X) && paired(Y) && (R == NULL || paired(R));
    bool one = !R && same(X, Y);
    const sps_block *all[3] = {X, Y, R};
    few_factors f = {};

    for (int i = 0; i < 3 && all[i]; i++) {
        f.p[i] = numbers(all[i]);
        f.ld[i] = all[i]->ld;
    }
    f.to[0] = to;
    f.to[1] = to_R;
    f.n = X->n;
    f.k1 = X->k;
    f.k2 = Y->k;
    return (f.k1 == 1 && f.k2 == 1 ? launch_few_factors<1>
                                   : launch_few_factors<2>)(
        X->ctx, &f, R ? 3 : one ? 1 : 2, pairs);
}

sps_status run(const sps_block *X, const sps_block *Y, double *to,
               const sps_block *R, double *to_R)
{
    sps_context *ctx = X->ctx;
    bool pairs = pairs_throughout(X, X->k) && pairs_throughout(Y, Y->k) &&
                 (R == NULL || pairs_throughout(R, R->k));
    operands o = {};

    o.x = numbers(X);
    o.ldx = X->ld;
    o.y[0] = numbers(Y);
    o.ldy[0] = Y->ld;
    o.y[1] = R ? numbers(R) : NULL;
    o.ldy[1] = R ? R->ld : 0;
    o.to[0] = to;
    o.to[1] = to_R;
    o.n = X->n;
    o.k1 = X->k;
    o.k2 = Y->k;
    o.self = !R && same(X, Y) && X->k <= 32;
    o.wm = X->k > 32 ? 2 : 1;
    o.wn = (Y->k > 32 ? 2 : 1) * (R ? 2 : 1);
    o.across = (int)ceil_div(Y->k, 64);
    if (o.k1 <= 2 && o.k2 <= 2) return run_few(X, Y, to, R, to_R);
    if (tile_of(o.k1) == 24 && tile_of(o.k2) == 24)
        return o.self ? launch<24, 24, true>(ctx, &o, pairs)
                      : launch<24, 24, false>(ctx, &o, pairs);
    switch (tile_of(o.k1)) {
    case 8: return launch_n<8>(ctx, &o, pairs);
    case 16: return launch_n<16>(ctx, &o, pairs);
    default: return launch_n<32>(ctx, &o, pairs);
    }
}

/* Returns whether gram_wide.cuh is used: both factors have 33 to 128 columns,
 * or, for X'X, 25 to 128. */
bool for_wide(const sps_block *X, const sps_block *Y)
{
    int least = same(X, Y) ? 24 : 32, most = 128;

    return X->k > least && Y->k > least && X->k <= most && Y->k <= most &&
           paired(X) && paired(Y) && has_pipeline(X->ctx);
}

sps_status launch_self(sps_context *ctx, factors *f, int *parts)
{
    if (f->k1 <= 32) return launch_wide_gram<alone<2, 4>>(ctx, f, parts);
    if (f->k1 <= 40) return launch_wide_gram<alone<3, 4>>(ctx, f, parts);
    if (f->k1 <= 48) return launch_wide_gram<alone<3, 3>>(ctx, f, parts);
    if (f->k1 <= 56) return launch_wide_gram<alone<4, 4>>(ctx, f, parts);
    if (f->k1 <= 64) return launch_wide_gram<alone<4, 2>>(ctx, f, parts);
    if (f->k1 <= 80) return launch_wide_gram<once<5>>(ctx, f, parts);
    if (f->k1 <= 96) return launch_wide_gram<once<6>>(ctx, f, parts);
    if (f->k1 <= 112) return launch_wide_gram<once<7>>(ctx, f, parts);
    return launch_wide_gram<once<8>>(ctx, f, parts);
}

sps_status launch_two(sps_context *ctx, factors *f, int *parts)
{
    int k = f->k1 > f->k2 ? f->k1 : f->k2;

    if (k <= 48)
        return launch_wide_gram<oblong<1, 2, 3, 3, 4, 2>>(ctx, f, parts);
    if (k <= 64)
        return launch_wide_gram<oblong<2, 2, 2, 4, 2, 2>>(ctx, f, parts);
    if (k <= 96)
        return launch_wide_gram<oblong<3, 2, 2, 6, 2, 2>>(ctx, f, parts);
    return launch_wide_gram<oblong<4, 4, 2, 4, 1, 2>>(ctx, f, parts);
}

sps_status launch_pair(sps_context *ctx, factors *f, int *parts)
{
    int k = f->k1 > f->k2 ? f->k1 : f->k2;

    if (k <= 40)
        return launch_wide_gram<oblong<3, 2, 1, 5, 2, 3>>(ctx, f, parts);
    if (k <= 48)
        return launch_wide_gram<oblong<1, 4, 3, 3, 2, 3>>(ctx, f, parts);
    if (k <= 56)
        return launch_wide_gram<oblong<4, 2, 1, 7, 2, 3>>(ctx, f, parts);
    if (k <= 64)
        return launch_wide_gram<oblong<2, 2, 2, 8, 2, 3>>(ctx, f, parts);
    if (k <= 80)
        return launch_wide_gram<oblong<5, 4, 1, 5, 1, 3>>(ctx, f, parts);
    return launch_wide_gram<oblong<3, 4, 2, 6, 1, 3>>(ctx, f, parts);
}

sps_status run_wide(const sps_block *X, const sps_block *Y, double *to,
                    const sps_block *R, double *to_R)
{
    sps_context *ctx = X->ctx;
    int64_t half = (int64_t)X->k * Y->k;
    bool one = !R && same(X, Y);
    factors f = {};
    int parts;

    f.k1 = X->k;
    f.k2 = Y->k;
    add_block(&f.in, 0, X, X->k);
    if (!one) add_block(&f.in, 1, Y, Y->k);
    if (R) add_block(&f.in, 2, R, R->k);
    SPS_TRY_RETURN((one ? launch_self : R ? launch_pair : launch_two)(ctx, &f,
                                                                     &parts));
    return launch_join<plus>(ctx, f.part, parts, half * (R ? 2 : 1), to, half,
                             to_R);
}

/* Computes X'Y by cuBLAS: a row-major block is the transpose of a column-major
 * one. */
sps_status run_blas(const sps_block *X, const sps_block *Y, double *to)
{
    double one = 1, zero = 0;

    SPS_CUBLAS(X->ctx,
               cublasDgemm_64(spsi_cuda_state(X->ctx)->blas, CUBLAS_OP_N,
                              CUBLAS_OP_T, X->k, Y->k, X->n, &one, numbers(X),
                              X->ld, numbers(Y), Y->ld, &zero, to, X->k));
    return SPS_OK;
}

} // namespace

sps_status spsi_cuda_gram(const sps_block *X, const sps_block *Y, sps_small *C)
{
    size_t bytes = (size_t)X->k * (size_t)Y->k * sizeof(double);
    double *to;

    SPS_TRY_RETURN(spsi_cuda_enter(X->ctx));
    spsi_small_shape(C, X->k, Y->k);
    if (bytes == 0) return SPS_OK;
    if (X->dtype == SPS_F32) return spsi_cuda_single_gram(X, Y, C);
    SPS_TRY_RETURN(spsi_cuda_need_down(X->ctx, bytes));
    to = spsi_cuda_result(C, 0);
    if (for_wide(X, Y))
        SPS_TRY_RETURN(run_wide(X, Y, to, NULL, NULL));
    else if (X->k > 32 && Y->k > 32)
        SPS_TRY_RETURN(run_blas(X, Y, to));
    else
        SPS_TRY_RETURN(run(X, Y, to, NULL, NULL));
    return spsi_cuda_deliver(C, 0);
}

sps_status spsi_cuda_gram_pair(const sps_block *P, const sps_block *Q,
                               const sps_block *R, sps_small *G, sps_small *C)
{
    size_t half = (size_t)P->k * (size_t)Q->k;

    SPS_TRY_RETURN(spsi_cuda_enter(P->ctx));
    bool wide = P->k > 32 && P->k <= widest_pair && Q->k <= widest_pair &&
                for_wide(P, Q) && paired(R);

    const bool single = P->dtype == SPS_F32;

    if (P->k == 0 || Q->k != R->k || Q->k == 0 ||
        (P->k > 32 && Q->k > 32 && !wide) ||
        (single && (P->k > 16 || Q->k > 16))) {
        SPS_TRY_RETURN(spsi_cuda_gram(P, Q, G));
        return spsi_cuda_gram(P, R, C);
    }
    spsi_small_shape(G, P->k, Q->k);
    spsi_small_shape(C, P->k, R->k);
    if (single) return spsi_cuda_single_gram_pair(P, Q, R, G, C);
    SPS_TRY_RETURN(spsi_cuda_need_down(P->ctx, 2 * half * sizeof(double)));
    SPS_TRY_RETURN((wide ? run_wide : run)(P, Q, spsi_cuda_result(G, 0), R,
                                           spsi_cuda_result(C, half)));
    SPS_TRY_RETURN(spsi_cuda_deliver(G, 0));
    return spsi_cuda_deliver(C, half);
}
