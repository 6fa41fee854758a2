/* SPDX-License-Identifier: BSD-3-Clause */
/* update.cu - Y = a X C + b Y, and with it X += P a, R -= Q a, P = Z + P b.
 *
 * On the fp64 tensor cores up to 64 columns: a warp takes 16 rows, its lane
 * 4g + t holds of rows g and g + 8 the column pairs 2t, 2t + 1 of every 8.
 * The even columns of 8 form one step of the product, the odd ones the next;
 * C lies in shared memory in the order in which lanes want it.  All of a row
 * is read before any of it is written, so Y may be X.
 *
 * Up to 4 columns a thread takes a row.  Beyond 16 columns, and for odd ld or
 * alignment, cuBLAS serves when nothing is in place; a plain kernel that keeps
 * 16 rows in shared memory does the rest.
 *
 * Bytes: each block once; C stays on the chip. */
#include "device.cuh"

namespace {

/* y = a x C + b w, rows of ld...; w is Y itself or the addend of combine. */
struct product {
    const double *x, *c, *w;
    int64_t ldx, ldw;
    double *y;
    int64_t ldy;
    double a, b;
};

struct operands {
    product first, second; /* the second only in the pair form */
    int64_t n;
    int k1, k2;
    double *part;          /* squares of the second's result, by block */
};

/* Tiles of 16 rows that a warp has in flight. */
template <int S, int NT> struct policy {
    static constexpr int widest = S > NT ? S : NT;
    static constexpr int tiles = widest >= 2 ? 1 : 2;
    static constexpr int per_sm = widest == 4 ? 4 : 1;
};

/* C (k1 x k2, column-major) times a, as fragments: number
 * ((step * 2 + parity) * NT + j) * 32 + lane is a C(8 step + 2t + parity,
 * 8 j + g). */
template <int S, int NT>
__device__ void arrange(double *fragment, const product &p, int k1, int k2)
{
    for (int e = (int)threadIdx.x; e < S * 2 * NT * 32; e += (int)blockDim.x) {
        int lane = e % 32, j = e / 32 % NT, step = e / 32 / NT;
        int row = 8 * (step / 2) + 2 * (lane % 4) + step % 2;
        int col = 8 * j + lane / 4;

        fragment[e] = row < k1 && col < k2
                          ? p.a * p.c[(int64_t)col * k1 + row] : 0.0;
    }
}

/* One product for RT tiles of 16 rows from row on.  FULL: all rows exist.
 * minus: the sign of the result is turned (R - Q a = -(Q a - R), exactly) and
 * its squares are added to norm (columns 8 j + 2t, 8 j + 2t + 1). */
template <int S, int NT, int RT, bool PAIR, bool FULL>
__device__ __forceinline__ void
multiply(const product &p, const double *fragment, int64_t row, int64_t n,
         int k1, int k2, bool minus, double *norm)
{
    int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
    int64_t first = row + g;
    const double *px = p.x + first * p.ldx + 2 * t;
    const double *pw = p.w + first * p.ldw + 2 * t;
    double *py = p.y + first * p.ldy + 2 * t;
    double x[RT][S][4], acc[RT][NT][4];

    k1 -= 2 * t;
    k2 -= 2 * t;
#pragma unroll
    for (int r = 0; r < 2 * RT; r++) {
        bool ok = FULL || first + 8 * r < n;

#pragma unroll
        for (int s = 0; s < S; s++) {
            double2 v = load_pair<true>(px + 8 * r * p.ldx + 8 * s,
                                        ok ? k1 - 8 * s : 0);

            x[r / 2][s][r % 2] = v.x;
            x[r / 2][s][2 + r % 2] = v.y;
        }
    }
#pragma unroll
    for (int r = 0; r < 2 * RT; r++) {
        bool ok = (FULL || first + 8 * r < n) && p.b != 0;

#pragma unroll
        for (int j = 0; j < NT; j++) {
            double2 v = load_pair<true>(pw + 8 * r * p.ldw + 8 * j,
                                        ok ? k2 - 8 * j : 0);

            acc[r / 2][j][2 * (r % 2)] = p.b * v.x;
            acc[r / 2][j][2 * (r % 2) + 1] = p.b * v.y;
        }
    }
#pragma unroll
    for (int s = 0; s < S; s += 2)
#pragma unroll
        for (int j = 0; j < NT; j++) {
            double b[4];

#pragma unroll
            for (int e = 0; e < (S == 1 ? 2 : 4); e++)
                b[e] = fragment[((2 * s + e) * NT + j) * 32 + lane];
#pragma unroll
            for (int r = 0; r < RT; r++) {
                if constexpr (S == 1) dmma16x8(acc[r][j], x[r][s], b);
                else dmma16x16(acc[r][j], x[r][s], b);
            }
        }
#pragma unroll
    for (int r = 0; r < 2 * RT; r++) {
        if (!FULL && first + 8 * r >= n) continue;
#pragma unroll
        for (int j = 0; j < NT; j++) {
            double2 v = make_double2(acc[r / 2][j][2 * (r % 2)],
                                     acc[r / 2][j][2 * (r % 2) + 1]);

            if (PAIR && minus) v = make_double2(-v.x, -v.y);
            store_pair<true>(py + 8 * r * p.ldy + 8 * j, k2 - 8 * j, v);
            if (PAIR && minus) {
                norm[2 * j] = fma(v.x, v.x, norm[2 * j]);
                norm[2 * j + 1] = fma(v.y, v.y, norm[2 * j + 1]);
            }
        }
    }
}

/* Adds norm over the g of a warp and the warps of a block, in order. */
template <int NT>
__device__ void add_norms(double *norm, double *shared, double *part, int k2)
{
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;

#pragma unroll
    for (int e = 0; e < 2 * NT; e++)
#pragma unroll
        for (int far = 4; far < 32; far *= 2)
            norm[e] += __shfl_xor_sync(all_lanes, norm[e], far);
    __syncthreads(); /* the fragments are no longer needed */
    if (lane < 4)
#pragma unroll
        for (int e = 0; e < 2 * NT; e++)
            shared[warp * 8 * NT + 8 * (e / 2) + 2 * lane + e % 2] = norm[e];
    __syncthreads();
    for (int c = (int)threadIdx.x; c < k2; c += (int)blockDim.x) {
        double sum = 0;

        for (int w = 0; w < (int)blockDim.x / 32; w++)
            sum += shared[w * 8 * NT + c];
        part[(int64_t)blockIdx.x * k2 + c] = sum;
    }
}

constexpr int threads = 128;

template <int S, int NT, bool PAIR>
__global__ void __launch_bounds__(threads, (policy<S, NT>::per_sm))
update_kernel(operands o)
{
    constexpr int RT = policy<S, NT>::tiles, size = S * 2 * NT * 32;
    __shared__ double fragment[size < 4 * 8 * NT ? 4 * 8 * NT : size];
    int64_t step = (int64_t)gridDim.x * (threads / 32) * (16 * RT);
    int64_t row = ((int64_t)blockIdx.x * (threads / 32) + threadIdx.x / 32) *
                  (16 * RT);
    double norm[2 * NT];

    arrange<S, NT>(fragment, o.first, o.k1, o.k2);
    __syncthreads();
#pragma unroll
    for (int e = 0; e < 2 * NT; e++) norm[e] = 0;
    for (; row < o.n; row += step) {
        bool full = row + 16 * RT <= o.n;

        /* A loop, lest the registers of both halves live at once. */
#pragma unroll 1
        for (int half = 0; half < (PAIR ? 2 : 1); half++) {
            const product &p = half ? o.second : o.first;

            if constexpr (policy<S, NT>::widest < 4)
                if (full) {
                    multiply<S, NT, RT, PAIR, true>(p, fragment, row, o.n,
                                                    o.k1, o.k2, half, norm);
                    continue;
                }
            multiply<S, NT, RT, PAIR, false>(p, fragment, row, o.n, o.k1, o.k2,
                                             half, norm);
        }
    }
    if (PAIR) add_norms<NT>(norm, fragment, o.part, o.k2);
}

/* Up to 4 columns: a thread per row, C in registers. */
template <bool PAIRED>
__device__ __forceinline__ void
multiply_row(const product &p, const double (*c)[4], int64_t i, int k1, int k2,
             double sign, double *v)
{
    double x[4], w[4] = {};

#pragma unroll
    for (int l = 0; l < 4; l += 2) {
        double2 a = load_pair<PAIRED>(p.x + i * p.ldx + l, k1 - l);
        double2 b = load_pair<PAIRED>(p.w + i * p.ldw + l,
                                      p.b != 0 ? k2 - l : 0);

        x[l] = a.x;
        x[l + 1] = a.y;
        w[l] = p.b * b.x;
        w[l + 1] = p.b * b.y;
    }
#pragma unroll
    for (int j = 0; j < 4; j++) {
        v[j] = w[j];
#pragma unroll
        for (int l = 0; l < 4; l++) v[j] = fma(sign * x[l], c[l][j], v[j]);
    }
#pragma unroll
    for (int j = 0; j < 4; j += 2)
        store_pair<PAIRED>(p.y + i * p.ldy + j, k2 - j,
                           make_double2(v[j], v[j + 1]));
}

template <bool PAIRED, bool PAIR>
__global__ void __launch_bounds__(256) row_kernel(operands o)
{
    __shared__ double shared[8][4];
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    double c[4][4], norm[4] = {};

#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
        for (int l = 0; l < 4; l++)
            c[l][j] = l < o.k1 && j < o.k2 ? o.first.a * o.first.c[j * o.k1 + l]
                                           : 0.0;
    for (int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x; i < o.n;
         i += (int64_t)gridDim.x * 256) {
        double v[4];

        multiply_row<PAIRED>(o.first, c, i, o.k1, o.k2, 1.0, v);
        if (PAIR) {
            multiply_row<PAIRED>(o.second, c, i, o.k1, o.k2, -1.0, v);
#pragma unroll
            for (int j = 0; j < 4; j++) norm[j] = fma(v[j], v[j], norm[j]);
        }
    }
    if constexpr (PAIR) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
#pragma unroll
            for (int far = 1; far < 32; far *= 2)
                norm[j] += __shfl_xor_sync(all_lanes, norm[j], far);
            if (lane == 0) shared[warp][j] = norm[j];
        }
        __syncthreads();
        if ((int)threadIdx.x < o.k2) {
            double sum = 0;

            for (int w = 0; w < 8; w++) sum += shared[w][threadIdx.x];
            o.part[(int64_t)blockIdx.x * o.k2 + threadIdx.x] = sum;
        }
    }
}

/* The plain form for everything else: `rows` rows of X in shared memory, a
 * thread makes one column of all of them at a time. */
constexpr int plain_rows = 16;

__global__ void __launch_bounds__(256) plain_kernel(operands o)
{
    extern __shared__ double shared[];
    const product &p = o.first;

    for (int64_t row = (int64_t)blockIdx.x * plain_rows; row < o.n;
         row += (int64_t)gridDim.x * plain_rows) {
        int rows = o.n - row < plain_rows ? (int)(o.n - row) : plain_rows;

        __syncthreads();
        for (int e = (int)threadIdx.x; e < plain_rows * o.k1; e += 256) {
            int r = e / o.k1, c = e % o.k1;

            shared[e] = r < rows ? p.x[(row + r) * p.ldx + c] : 0.0;
        }
        __syncthreads();
        for (int j = (int)threadIdx.x; j < o.k2; j += 256) {
            double acc[plain_rows] = {};

            for (int l = 0; l < o.k1; l++) {
                double c = p.c[(int64_t)j * o.k1 + l];

#pragma unroll
                for (int r = 0; r < plain_rows; r++)
                    acc[r] = fma(shared[r * o.k1 + l], c, acc[r]);
            }
#pragma unroll
            for (int r = 0; r < plain_rows; r++) {
                double v = p.a * acc[r];

                if (r >= rows) continue;
                if (p.b != 0) v = fma(p.b, p.w[(row + r) * p.ldw + j], v);
                p.y[(row + r) * p.ldy + j] = v;
            }
        }
    }
}

/* --------------------------------------------------------------- launches */

template <int S, int NT>
sps_status launch(sps_context *ctx, operands *o, bool pair, int *blocks_p)
{
    sps_cuda_state *s = spsi_cuda_state(ctx);
    int64_t rows = (threads / 32) * 16 * policy<S, NT>::tiles;
    int64_t blocks = ceil_div(o->n, rows), most = 8 * (int64_t)s->sms;

    if (blocks > most) blocks = most;
    if (pair) {
        SPS_TRY_RETURN(spsi_cuda_need_scratch(ctx, (size_t)blocks *
                                                   (size_t)o->k2 * 8));
        o->part = (double *)s->d_scratch;
        update_kernel<S, NT, true><<<(unsigned)blocks, threads, 0,
                                     s->stream>>>(*o);
    } else {
        update_kernel<S, NT, false><<<(unsigned)blocks, threads, 0,
                                      s->stream>>>(*o);
    }
    SPS_LAUNCHED(ctx);
    *blocks_p = (int)blocks;
    return SPS_OK;
}

template <int S>
sps_status launch_n(sps_context *ctx, operands *o, bool pair, int *blocks_p)
{
    if (o->k2 <= 8) return launch<S, 1>(ctx, o, pair, blocks_p);
    if (o->k2 <= 16) return launch<S, 2>(ctx, o, pair, blocks_p);
    if (o->k2 <= 32) return launch<S, 4>(ctx, o, pair, blocks_p);
    return launch<S, 8>(ctx, o, pair, blocks_p);
}

sps_status launch_tensor(sps_context *ctx, operands *o, bool pair,
                         int *blocks_p)
{
    if (o->k1 <= 8) return launch_n<1>(ctx, o, pair, blocks_p);
    if (o->k1 <= 16) return launch_n<2>(ctx, o, pair, blocks_p);
    if (o->k1 <= 32) return launch_n<4>(ctx, o, pair, blocks_p);
    return launch_n<8>(ctx, o, pair, blocks_p);
}

sps_status launch_rows(sps_context *ctx, operands *o, bool pairs, bool pair,
                       int *blocks_p)
{
    sps_cuda_state *s = spsi_cuda_state(ctx);
    int64_t blocks = ceil_div(o->n, 256), most = 8 * (int64_t)s->sms;

    if (blocks > most) blocks = most;
    *blocks_p = (int)blocks;
    if (pair) {
        SPS_TRY_RETURN(spsi_cuda_need_scratch(ctx, (size_t)blocks *
                                                   (size_t)o->k2 * 8));
        o->part = (double *)s->d_scratch;
        if (pairs)
            row_kernel<true, true><<<(unsigned)blocks, 256, 0, s->stream>>>(*o);
        else
            row_kernel<false, true><<<(unsigned)blocks, 256, 0,
                                      s->stream>>>(*o);
    } else if (pairs) {
        row_kernel<true, false><<<(unsigned)blocks, 256, 0, s->stream>>>(*o);
    } else {
        row_kernel<false, false><<<(unsigned)blocks, 256, 0, s->stream>>>(*o);
    }
    SPS_LAUNCHED(ctx);
    return SPS_OK;
}

sps_status launch_plain(sps_context *ctx, const operands *o)
{
    sps_cuda_state *s = spsi_cuda_state(ctx);
    int64_t blocks = ceil_div(o->n, plain_rows), most = 4 * (int64_t)s->sms;
    int shared = plain_rows * o->k1 * (int)sizeof(double);

    if (blocks > most) blocks = most;
    if (shared > 48 << 10)
        SPS_CUDA(ctx, cudaFuncSetAttribute(
                          plain_kernel,
                          cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
    plain_kernel<<<(unsigned)blocks, 256, (size_t)shared, s->stream>>>(*o);
    SPS_LAUNCHED(ctx);
    return SPS_OK;
}

/* Row-major blocks are column-major transposes: Y' = a C' X' + b Y'. */
sps_status launch_blas(sps_context *ctx, const operands *o)
{
    const product *p = &o->first;

    SPS_CUBLAS(ctx, cublasDgemm_64(spsi_cuda_state(ctx)->blas, CUBLAS_OP_T,
                                   CUBLAS_OP_N, o->k2, o->n, o->k1, &p->a,
                                   p->c, o->k1, p->x, p->ldx, &p->b, p->y,
                                   p->ldy));
    return SPS_OK;
}

product product_of(double a, const sps_block *X, const double *c, double b,
                   const sps_block *W, sps_block *Y)
{
    product p;

    p.x = numbers(X);
    p.ldx = X->ld;
    p.c = c;
    p.w = numbers(W);
    p.ldw = W->ld;
    p.y = numbers(Y);
    p.ldy = Y->ld;
    p.a = a;
    p.b = b;
    return p;
}

/* Y = a X C + b W with k1, k2 columns; Y may share memory with X or W. */
sps_status multiply_any(double a, const sps_block *X, const sps_small *C,
                        double b, const sps_block *W, sps_block *Y, int k1,
                        int k2)
{
    sps_context *ctx = X->ctx;
    bool pairs = paired(X) && paired(W) && paired(Y);
    operands o = {};
    const double *c;
    int blocks;

    SPS_TRY_RETURN(spsi_cuda_small(C, &c));
    o.first = product_of(a, X, c, b, W, Y);
    o.n = X->n;
    o.k1 = k1;
    o.k2 = k2;
    bool apart = W->data == Y->data && X->data != Y->data;
    bool wide = k1 > 16 || k2 > 16;

    if (k1 <= 4 && k2 <= 4) return launch_rows(ctx, &o, pairs, false, &blocks);
    /* From there on cuBLAS wins; it needs X apart from Y. */
    if (apart && (wide || !pairs)) return launch_blas(ctx, &o);
    if (pairs && k1 <= 64 && k2 <= 64)
        return launch_tensor(ctx, &o, false, &blocks);
    return launch_plain(ctx, &o);
}

/* X += P a, R -= Q a in one kernel; blocks: of partial sums of squares. */
sps_status pair_kernel(const sps_block *P, const sps_block *Q,
                              const double *a, sps_block *X, sps_block *R,
                              bool few, operands *o, int *blocks)
{
    bool pairs = paired(P) && paired(Q) && paired(X) && paired(R);

    o->first = product_of(1.0, P, a, 1.0, X, X);
    o->second = product_of(1.0, Q, a, few ? 1.0 : -1.0, R, R);
    o->n = X->n;
    o->k1 = P->k;
    o->k2 = X->k;
    return few ? launch_rows(X->ctx, o, pairs, true, blocks)
               : launch_tensor(X->ctx, o, true, blocks);
}

} // namespace

sps_status spsi_cuda_mul_small(double a, const sps_block *X,
                               const sps_small *C, double b, sps_block *Y)
{
    SPS_TRY_RETURN(spsi_cuda_enter(X->ctx));
    if (Y->k == 0) return SPS_OK;
    if (X->k == 1 && Y->k == 1 && C->place == SPS_HOST)
        return spsi_cuda_axpby(a * *spsi_small_at(C, 0, 0), X, b, Y);
    return multiply_any(a, X, C, b, Y, Y, X->k, Y->k);
}

sps_status spsi_cuda_update_pair(const sps_block *P, const sps_block *Q,
                                 const sps_small *a, sps_block *X,
                                 sps_block *R, sps_small *S)
{
    sps_context *ctx = X->ctx;
    bool pairs = paired(P) && paired(Q) && paired(X) && paired(R);
    bool few = P->k <= 4 && X->k <= 4, norms = S->rows == 1;
    operands o = {};
    const double *c;
    int blocks;

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    if (P->k == 1 && X->k == 1 && a->place == SPS_HOST &&
        S->place == SPS_HOST)
        return spsi_cuda_update_pair_cols(P, Q, a->v, X, R, S->v);
    SPS_TRY_RETURN(spsi_cuda_need_down(ctx, (size_t)X->k * 8));
    if (!few && (!pairs || P->k > 16 || X->k > 16)) {
        SPS_TRY_RETURN(spsi_cuda_mul_small(1.0, P, a, 1.0, X));
        SPS_TRY_RETURN(spsi_cuda_mul_small(-1.0, Q, a, 1.0, R));
        if (norms)
            SPS_TRY_RETURN(spsi_cuda_dots_to(R, R, spsi_cuda_result(S, 0)));
    } else {
        SPS_TRY_RETURN(spsi_cuda_small(a, &c));
        SPS_TRY_RETURN(pair_kernel(P, Q, c, X, R, few, &o, &blocks));
        if (norms)
            SPS_TRY_RETURN(launch_join<plus>(ctx, o.part, blocks, X->k,
                                             spsi_cuda_result(S, 0)));
    }
    return norms ? spsi_cuda_deliver(S, 0) : spsi_cuda_gram(R, R, S);
}

sps_status spsi_cuda_combine(const sps_block *Z, const sps_small *b,
                             sps_block *P, sps_small *G)
{
    int r = P->k;

    SPS_TRY_RETURN(spsi_cuda_enter(P->ctx));
    P->k = Z->k;
    SPS_TRY_RETURN(multiply_any(1.0, P, b, 1.0, Z, P, r, Z->k));
    return G ? spsi_cuda_gram(P, P, G) : SPS_OK;
}
