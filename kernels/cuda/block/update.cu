/* SPDX-License-Identifier: BSD-3-Clause */
/* update.cu - Y = a X C + b Y, and the fused updates R -= Q a, P = Z + P b.
 *
 * Blocks of up to 64 columns are computed by the kernels of product.cuh, up to
 * 128 by product_wide.cu (product.cuh where that is not supported).  Wider ones
 * are computed by cuBLAS if the addend is Y and X is another block, otherwise
 * by a plain kernel that keeps 16 rows in shared memory.  R'R and P'P are fused
 * with the update up to 32 columns, by product_gram.cu up to 64; beyond that
 * they take another pass. */
#include "cuda/base/library_check.h"
#include "cuda/base/shared_limit.cuh"
#include "cuda/block/product_few.cuh"
#include "cuda/block/product_gram.h"
#include "cuda/block/single_device.cuh"
#include "cuda/block/single_stack.h"
#include "cuda/base/row_padding.cuh"

namespace {

constexpr int widest = 128, widest_gram = 32, few = 4, eight = 8;

/* The plain kernel: plain_rows rows of X are in shared memory, and a thread
 * computes one column of Y for all of them at a time. */
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

/* Finds the number of thread blocks if each processes `rows` rows at a time,
 * and reserves scratch memory for their partial sums. */
sps_status spread(sps_context *ctx, operands *o, int rows, int per_sm, sums S,
                  int *blocks)
{
    sps_cuda_state *s = spsi_cuda_state(ctx);
    int64_t want = ceil_div(o->n, rows), most = (int64_t)per_sm * s->sms;
    int64_t items = S == GRAM ? (int64_t)o->k2 * o->k2 : o->k2;

    *blocks = (int)(want < most ? want : most);
    if (S == NO_SUMS) return SPS_OK;
    return take_scratch(ctx, *blocks * items, &o->part);
}

/* Queues wide_kernel for E tiles of 8 columns; *blocks becomes its number of
 * thread blocks. */
template <int E, access HOW, sums S>
sps_status launch_wide(sps_context *ctx, operands *o, int *blocks)
{
    using shape = wide_shape<E, S>;
    auto kernel = wide_kernel<E, HOW, S>;

    if (shape::shared > 48 << 10)
        SPS_TRY_RETURN(allow_shared(ctx, kernel, shape::shared));
    SPS_TRY_RETURN(spread(ctx, o, shape::rows, shape::per_sm, S, blocks));
    kernel<<<(unsigned)*blocks, shape::threads, shape::shared,
             spsi_cuda_state(ctx)->stream>>>(*o);
    SPS_LAUNCHED(ctx);
    return SPS_OK;
}

template <access HOW, sums S>
sps_status launch_widths(sps_context *ctx, operands *o, int *blocks)
{
    int k = o->k1 > o->k2 ? o->k1 : o->k2;

    if (k <= 16) return launch_wide<2, HOW, S>(ctx, o, blocks);
    if (S == GRAM || k <= 32)
        return launch_wide<4, HOW, S>(ctx, o, blocks);
    if constexpr (S != GRAM) { /* for R'R beyond widest_gram columns there are
                                  not enough registers */
        if (k <= 48) return launch_wide<6, HOW, S>(ctx, o, blocks);
        if (k <= 64) return launch_wide<8, HOW, S>(ctx, o, blocks);
        if (k <= 96) return launch_wide<12, HOW, S>(ctx, o, blocks);
        return launch_wide<16, HOW, S>(ctx, o, blocks);
    }
}

template <bool PAIRED, sums S>
sps_status launch_few(sps_context *ctx, operands *o, int *blocks)
{
    bool narrow = o->k1 <= 2 && o->k2 <= 2;

    SPS_TRY_RETURN(spread(ctx, o, few_deep * (narrow ? 256 : 128),
                          few_per_sm(narrow ? 1 : 2, S), S, blocks));
    if (narrow)
        return run_kernel(ctx, (unsigned)*blocks, 256, few_kernel<1, PAIRED, S>,
                          *o);
    return run_kernel(ctx, (unsigned)*blocks, 256, few_kernel<2, PAIRED, S>,
                      *o);
}

template <sums S>
sps_status launch_eight(sps_context *ctx, operands *o, int *blocks)
{
    SPS_TRY_RETURN(spread(ctx, o, 64 * eight_deep, 3, S, blocks));
    return run_kernel(ctx, (unsigned)*blocks, 256, eight_kernel<S>, *o);
}

/* Returns whether to use PADDED kernels: for 17 to 40 columns that can be
 * loaded as pairs without checks; an odd last column of X must be in the last
 * tile of 8 columns, the only one where its padding is set to zero. */
bool for_padded(const operands *o, access how, sums S)
{
    int k = o->k1 > o->k2 ? o->k1 : o->k2;

    return how == PADDED && k > 16 && k <= (S == GRAM ? widest_gram : 40) &&
           (o->k1 % 2 == 0 || ceil_div(o->k1, 8) == ceil_div(k, 8));
}

template <sums S>
sps_status launch_padded(sps_context *ctx, operands *o, int *blocks)
{
    int k = o->k1 > o->k2 ? o->k1 : o->k2;

    if (k <= 24) return launch_wide<3, PADDED, S>(ctx, o, blocks);
    if (S == GRAM || k <= 32)
        return launch_wide<4, PADDED, S>(ctx, o, blocks);
    if constexpr (S != GRAM)
        return launch_wide<5, PADDED, S>(ctx, o, blocks);
}

/* Computes products of up to `widest` columns; *blocks becomes the number of
 * thread blocks, each of which leaves partial sums. */
template <sums S>
sps_status launch(sps_context *ctx, operands *o, access how, int *blocks)
{
    bool pairs = how != SINGLES;

    if (o->k1 <= few && o->k2 <= few)
        return pairs ? launch_few<true, S>(ctx, o, blocks)
                     : launch_few<false, S>(ctx, o, blocks);
    if (o->k1 <= eight && o->k2 <= eight)
        return launch_eight<S>(ctx, o, blocks);
    if (pairs && o->k1 % 16 == 0 && o->k2 % 16 == 0)
        return launch_widths<WHOLE, S>(ctx, o, blocks);
    if (for_padded(o, how, S)) return launch_padded<S>(ctx, o, blocks);
    return pairs ? launch_widths<PAIRS, S>(ctx, o, blocks)
                 : launch_widths<SINGLES, S>(ctx, o, blocks);
}

sps_status launch_plain(sps_context *ctx, const operands *o)
{
    sps_cuda_state *s = spsi_cuda_state(ctx);
    int64_t blocks = ceil_div(o->n, plain_rows), most = 4 * (int64_t)s->sms;
    int shared = plain_rows * o->k1 * (int)sizeof(double);

    if (blocks > most) blocks = most;
    if (shared > 48 << 10)
        SPS_TRY_RETURN(allow_shared(ctx, plain_kernel, shared));
    plain_kernel<<<(unsigned)blocks, 256, (size_t)shared, s->stream>>>(*o);
    SPS_LAUNCHED(ctx);
    return SPS_OK;
}

/* Computes Y = a X C + b Y by cuBLAS, as Y' = a C' X' + b Y', since row-major
 * blocks are transposes of column-major ones. */
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
    p.wide = writable_columns(Y);
    p.a = a;
    p.b = b;
    return p;
}

/* Returns how rows are accessed, for k1 columns of X and k2 of W and Y. */
access access_of(const sps_block *X, const sps_block *W, const sps_block *Y,
                 int k1, int k2)
{
    if (!paired(X) || !paired(W) || !paired(Y)) return SINGLES;
    return pairs_throughout(X, k1) && pairs_throughout(W, k2) ? PADDED : PAIRS;
}

/* Computes Y = a X C + b W for k1 columns of X and k2 of W and Y, and G = Y'Y
 * unless G is NULL; Y may be X or W. */
sps_status multiply_any(double a, const sps_block *X, const sps_small *C,
                        double b, const sps_block *W, sps_block *Y, int k1,
                        int k2, sps_small *G)
{
    sps_context *ctx = X->ctx;
    access how = access_of(X, W, Y, k1, k2);
    bool apart = W->data == Y->data && X->data != Y->data;
    operands o = {};
    const double *c;
    int blocks;

    SPS_TRY_RETURN(spsi_cuda_small(C, &c));
    o.first = product_of(a, X, c, b, W, Y);
    o.n = X->n;
    o.k1 = k1;
    o.k2 = k2;
    if (G && k1 <= widest_gram && k2 <= widest_gram) {
        size_t count = (size_t)k2 * (size_t)k2;

        SPS_TRY_RETURN(spsi_cuda_need_down(ctx, count * 8));
        SPS_TRY_RETURN((launch<GRAM>(ctx, &o, how, &blocks)));
        SPS_TRY_RETURN(launch_join<plus>(ctx, o.part, blocks, (int64_t)count,
                                         spsi_cuda_result(G, 0)));
        return spsi_cuda_deliver(G, 0);
    }
    sps_cuda_product once = {a, b, X, W, c, Y, k1, k2};

    if (G && spsi_cuda_product_gram_for(&once))
        return spsi_cuda_product_gram(&once, G);
    if (spsi_cuda_wide_product_for(&once))
        SPS_TRY_RETURN(spsi_cuda_wide_product(&once, NULL));
    else if (k1 <= widest && k2 <= widest)
        SPS_TRY_RETURN((launch<NO_SUMS>(ctx, &o, how, &blocks)));
    else if (apart)
        SPS_TRY_RETURN(launch_blas(ctx, &o));
    else
        SPS_TRY_RETURN(launch_plain(ctx, &o));
    return G ? spsi_cuda_gram(Y, Y, G) : SPS_OK;
}

} // namespace

sps_status spsi_cuda_mul_small(double a, const sps_block *X,
                               const sps_small *C, double b, sps_block *Y)
{
    SPS_TRY_RETURN(spsi_cuda_enter(X->ctx));
    if (Y->k == 0) return SPS_OK;
    if (X->dtype == SPS_F32)
        return spsi_cuda_single_mul_small(a, X, C, b, Y);
    return multiply_any(a, X, C, b, Y, Y, X->k, Y->k, NULL);
}

sps_status spsi_cuda_subtract(const sps_block *Q, const sps_small *a,
                              sps_block *R, sps_small *S)
{
    sps_context *ctx = R->ctx;
    const int k1 = Q->k, k2 = R->k;
    operands o = {};
    const double *c;
    int blocks;

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    if (S->rows > 1) return multiply_any(-1.0, Q, a, 1.0, R, R, k1, k2, S);
    SPS_TRY_RETURN(spsi_cuda_need_down(ctx, (size_t)k2 * 8));
    SPS_TRY_RETURN(spsi_cuda_small(a, &c));
    const sps_cuda_product once = {-1.0, 1.0, Q, R, c, R, k1, k2};

    if (spsi_cuda_wide_product_for(&once))
        return spsi_cuda_wide_product(&once, S);
    if (k1 > widest || k2 > widest) {
        SPS_TRY_RETURN(multiply_any(-1.0, Q, a, 1.0, R, R, k1, k2, NULL));
        SPS_TRY_RETURN(spsi_cuda_dots_to(R, R, spsi_cuda_result(S, 0)));
        return spsi_cuda_deliver(S, 0);
    }
    o.first = product_of(-1.0, Q, c, 1.0, R, R);
    o.n = R->n;
    o.k1 = k1;
    o.k2 = k2;
    SPS_TRY_RETURN((launch<SQUARES>(ctx, &o, access_of(Q, R, R, k1, k2),
                                    &blocks)));
    SPS_TRY_RETURN(launch_join<plus>(ctx, o.part, blocks, k2,
                                     spsi_cuda_result(S, 0)));
    return spsi_cuda_deliver(S, 0);
}

sps_status spsi_cuda_combine(const sps_block *Z, const sps_small *b,
                             sps_block *P, sps_small *G)
{
    int r = P->k;

    SPS_TRY_RETURN(spsi_cuda_enter(P->ctx));
    if (Z->dtype == SPS_F32) return spsi_cuda_single_combine(Z, b, P, G);
    P->k = Z->k;
    return multiply_any(1.0, P, b, 1.0, Z, P, r, Z->k, G);
}
