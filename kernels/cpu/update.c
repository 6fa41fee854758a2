/* SPDX-License-Identifier: BSD-3-Clause */
/* update.c - blocks times small matrices: Y = a X C + b Y, and the fused
 * steps of block methods made of it.
 *
 * Eight or four rows of X at a time meet the packed C (by rows, a multiple of
 * 8 columns, a folded in), as many as there are registers for; their products
 * stand in a small buffer until all columns are done, so that Y may be X.  Of 2
 * or 4 columns without padding eight numbers are several rows and fill a vector
 * as they stand.
 *
 * Bytes: mul_small X, Y (and Y again when b != 0); update_pair 4 reads and
 * 2 writes; combine 2 reads and 1 write. */
#include "rows.h"

#define ROWS 8

void spsi_cpu_pack(double a, const sps_small *C, double *packed)
{
    int64_t ld = packed_cols(C->cols);

    for (int l = 0; l < C->rows; l++)
        for (int64_t j = 0; j < ld; j++)
            packed[l * ld + j] =
                j < C->cols ? a * *spsi_small_at(C, l, (int)j) : 0;
}

/* t = x c for R rows and 8 columns; R is constant where it is inlined. */
INLINE void product_tile(const int R, const double *x, int64_t ldx, int kx,
                         const double *c, int64_t ldc, double *t)
{
    v8 acc[ROWS] = {{0}};

    for (int l = 0; l < kx; l++) {
        v8 cl = *(const v8 *)(c + l * ldc);

#pragma GCC unroll 8
        for (int r = 0; r < R; r++) acc[r] += x[r * ldx + l] * cl;
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) *(v8 *)(t + r * ldc) = acc[r];
}

/* The same for 16 columns: each number of X serves two vectors. */
INLINE void product_wide(const int R, const double *x, int64_t ldx, int kx,
                         const double *c, int64_t ldc, double *t)
{
    v8 a0[ROWS] = {{0}}, a1[ROWS] = {{0}};

    for (int l = 0; l < kx; l++) {
        v8 c0 = *(const v8 *)(c + l * ldc), c1 = *(const v8 *)(c + l * ldc + 8);

#pragma GCC unroll 8
        for (int r = 0; r < R; r++) {
            a0[r] += x[r * ldx + l] * c0;
            a1[r] += x[r * ldx + l] * c1;
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) {
        *(v8 *)(t + r * ldc) = a0[r];
        *(v8 *)(t + r * ldc + 8) = a1[r];
    }
}

INLINE void product(const int R, const double *x, int64_t ldx, int kx,
                    const double *c, int64_t ldc, double *t)
{
    int64_t j = 0;

    if (WIDE_REGISTERS)
        for (; j + 16 <= ldc; j += 16)
            product_wide(R, x, ldx, kx, c + j, ldc, t + j);
    for (; j < ldc; j += 8)
        product_tile(R, x, ldx, kx, c + j, ldc, t + j);
}

/* t = x c for up to ROWS rows. */
INLINE void products(int64_t rows, const double *x, int64_t ldx, int kx,
                     const double *c, int64_t ldc, double *t)
{
    int64_t r = 0;

    if (WIDE_REGISTERS)
        for (; r + 8 <= rows; r += 8)
            product(8, x + r * ldx, ldx, kx, c, ldc, t + r * ldc);
    for (; r + 4 <= rows; r += 4)
        product(4, x + r * ldx, ldx, kx, c, ldc, t + r * ldc);
    for (; r < rows; r++)
        product(1, x + r * ldx, ldx, kx, c, ldc, t + r * ldc);
}

/* Asks for the rows that come up AHEAD rows later. */
#define AHEAD 16

INLINE void fetch(int64_t rows, const double *x, int64_t ldx, int k)
{
    for (int64_t r = AHEAD; r < AHEAD + rows; r++)
        for (int j = 0; j < k; j += 8) __builtin_prefetch(x + r * ldx + j);
}

/* y = t + b z over k columns; b = 0 does not read z. */
INLINE void row_out(int k, const double *t, double b, const double *z,
                    double *y)
{
    int j = 0;

    if (b == 0) {
        for (; j + 8 <= k; j += 8) *(v8 *)(y + j) = *(const v8 *)(t + j);
        for (; j < k; j++) y[j] = t[j];
        return;
    }
    for (; j + 8 <= k; j += 8)
        *(v8 *)(y + j) = *(const v8 *)(t + j) + b * *(const v8 *)(z + j);
    for (; j < k; j++) y[j] = t[j] + b * z[j];
}

/* Eight numbers are 8 / K rows of K columns without padding: y = x c + b z for
 * as many of m rows as make whole eights.  Returns their number.  K is constant
 * where it is inlined. */
INLINE int64_t strip_folded(const int K, int64_t m, const double *x,
                            const double *c, int64_t ldc, double b,
                            const double *z, double *y)
{
    typedef long long m8 __attribute__((vector_size(64)));
    int64_t rows = m / (8 / K) * (8 / K);
    v8 row[4];

    for (int l = 0; l < K; l++)
        for (int e = 0; e < 8; e++) row[l][e] = c[l * ldc + e % K];
    for (int64_t i = 0; i < rows * K; i += 8) {
        v8 t = *(const v8 *)(x + i), acc = {0};

#pragma GCC unroll 4
        for (int l = 0; l < K; l++) {
            const m8 from = {l, 1 / K * K + l, 2 / K * K + l, 3 / K * K + l,
                             4 / K * K + l, 5 / K * K + l, 6 / K * K + l,
                             7 / K * K + l};

            acc += __builtin_shuffle(t, from) * row[l];
        }
        if (b != 0) acc += b * *(const v8 *)(z + i);
        *(v8 *)(y + i) = acc;
    }
    return rows;
}

CLONES void spsi_cpu_strip_mul(int64_t m, const double *x, int64_t ldx, int kx,
                               const double *c, int ky, double b,
                               const double *z, int64_t ldz, double *y,
                               int64_t ldy)
{
    double t[ROWS * SPS_BLOCK_MAX] __attribute__((aligned(64)));
    int64_t ldc = packed_cols(ky), i = 0;
    bool tight = kx == ky && ldx == kx && ldy == kx && ldz == kx;

    if (tight && kx == 2) i = strip_folded(2, m, x, c, ldc, b, z, y);
    if (tight && kx == 4) i = strip_folded(4, m, x, c, ldc, b, z, y);
    for (; i < m; i += ROWS) {
        int64_t rows = m - i < ROWS ? m - i : ROWS;

        fetch(rows, x + i * ldx, ldx, kx);
        fetch(rows, z + i * ldz, ldz, ky);
        products(rows, x + i * ldx, ldx, kx, c, ldc, t);
        for (int64_t r = 0; r < rows; r++)
            row_out(ky, t + r * ldc, b, z + (i + r) * ldz, y + (i + r) * ldy);
    }
}

/* --- slots */

sps_status spsi_cpu_mul_small(double a, const sps_block *X, const sps_small *C,
                              double b, sps_block *Y)
{
    sps_status st;
    chunks c = chunks_of(X->n, 1);
    double *packed;

    if (X->dtype == SPS_F32) return spsi_cpu_single_mul_small(a, X, C, b, Y);
    if (X->k == 1 && Y->k == 1)
        return spsi_cpu_axpby(a * *spsi_small_at(C, 0, 0), X, b, Y);
    SPS_TRY(spsi_cpu_scratch(X->ctx, X->k * packed_cols(Y->k), &packed));
    spsi_cpu_pack(a, C, packed);
#pragma omp parallel for num_threads(X->ctx->threads) schedule(static)         \
    if (c.count > 1 && pays(c.n, (int64_t)X->k * Y->k))
    for (int64_t i = 0; i < c.count; i++)
        spsi_cpu_strip_mul(chunk_end(c, i) - i * c.rows, row_of(X, i * c.rows),
                           X->ld, X->k, packed, Y->k, b,
                           row_of(Y, i * c.rows), Y->ld,
                           row_of(Y, i * c.rows), Y->ld);
    return SPS_OK;

fail:
    return st;
}

/* X += P a, R -= Q a for one chunk; sum gets the squares of the new R (items
 * = k) or R'R (k k), or is NULL. */
static void chunk_pair(const sps_block *P, const sps_block *Q,
                       const double *plus, const double *minus, sps_block *X,
                       sps_block *R, int64_t first, int64_t last, double *sum,
                       int64_t items)
{
    int64_t step = strip_rows(X->k);
    int r = P->k, k = X->k;

    if (sum) memset(sum, 0, (size_t)items * sizeof *sum);
    for (int64_t i = first; i < last; i += step) {
        int64_t m = last - i < step ? last - i : step;
        double *x = row_of(R, i);

        spsi_cpu_strip_mul(m, row_of(P, i), P->ld, r, plus, k, 1.0,
                           row_of(X, i), X->ld, row_of(X, i), X->ld);
        spsi_cpu_strip_mul(m, row_of(Q, i), Q->ld, r, minus, k, 1.0, x, R->ld,
                           x, R->ld);
        if (sum && items > k)
            spsi_cpu_strip_gram(m, x, R->ld, k, x, R->ld, k, sum, k);
        else if (sum)
            spsi_cpu_strip_dots(m, x, R->ld, x, R->ld, k, sum);
    }
}

sps_status spsi_cpu_update_pair(const sps_block *P, const sps_block *Q,
                                const sps_small *a, sps_block *X, sps_block *R,
                                sps_small *S)
{
    sps_status st;
    int64_t size = P->k * packed_cols(X->k), items = (int64_t)S->rows * X->k;
    bool fuse = S->rows == 1 || X->k <= 64;
    chunks c = chunks_of(X->n, fuse ? items : 1);
    int threads = X->ctx->threads;
    double *plus, *minus, *partial;

    if (P->k == 1 && X->k == 1)
        return spsi_cpu_update_pair_cols(P, Q, spsi_small_at(a, 0, 0), X, R,
                                         S->v);
    SPS_TRY(spsi_cpu_scratch(X->ctx, 2 * size + (fuse ? c.count * items : 0),
                             &plus));
    minus = plus + size;
    partial = minus + size;
    spsi_cpu_pack(1.0, a, plus);
    spsi_cpu_pack(-1.0, a, minus);
#pragma omp parallel for num_threads(threads) schedule(static)                 \
    if (c.count > 1 && pays(c.n, (int64_t)P->k * X->k))
    for (int64_t t = 0; t < c.count; t++)
        chunk_pair(P, Q, plus, minus, X, R, t * c.rows, chunk_end(c, t),
                   fuse ? partial + t * items : NULL, items);
    if (!fuse) return spsi_cpu_gram(R, R, S);
    spsi_cpu_sum_chunks(threads, c.count, items, partial);
    spsi_cpu_unpack(partial, S);
    return SPS_OK;

fail:
    return st;
}

/* x += a p, r -= a q, column by column. */
INLINE void row_cols(int k, const double *a, const double *p, const double *q,
                     double *x, double *r)
{
    int j = 0;

    for (; j + 8 <= k; j += 8) {
        v8 aj = *(const v8 *)(a + j);

        *(v8 *)(x + j) += aj * *(const v8 *)(p + j);
        *(v8 *)(r + j) -= aj * *(const v8 *)(q + j);
    }
    for (; j < k; j++) {
        x[j] += a[j] * p[j];
        r[j] -= a[j] * q[j];
    }
}

CLONES void spsi_cpu_strip_cols(int64_t m, int k, const double *a,
                                const double *p, int64_t ldp, const double *q,
                                int64_t ldq, double *x, int64_t ldx, double *r,
                                int64_t ldr);

CLONES void spsi_cpu_strip_cols(int64_t m, int k, const double *a,
                                const double *p, int64_t ldp, const double *q,
                                int64_t ldq, double *x, int64_t ldx, double *r,
                                int64_t ldr)
{
    int fold = ldp == ldx && ldq == ldr ? fold_rows(k, ldp, ldq) : 0;
    int64_t i = 0;

    if (fold) {
        double a8[8];

        fold_scalars(k, a, a8);
        for (; i + fold <= m; i += fold)
            row_cols(8, a8, p + i * k, q + i * k, x + i * k, r + i * k);
    }
    for (; i < m; i++)
        row_cols(k, a, p + i * ldp, q + i * ldq, x + i * ldx, r + i * ldr);
}

sps_status spsi_cpu_update_pair_cols(const sps_block *P, const sps_block *Q,
                                     const double *a, sps_block *X,
                                     sps_block *R, double *norm2)
{
    sps_status st;
    chunks c = chunks_of(X->n, X->k);
    int64_t step = strip_rows(X->k);
    int threads = X->ctx->threads, k = X->k;
    double *partial;

    SPS_TRY(spsi_cpu_scratch(X->ctx, c.count * k, &partial));
#pragma omp parallel for num_threads(threads) schedule(static)                 \
    if (c.count > 1 && pays(c.n, X->k))
    for (int64_t t = 0; t < c.count; t++) {
        double *sum = partial + t * k;

        memset(sum, 0, (size_t)k * sizeof *sum);
        for (int64_t i = t * c.rows; i < chunk_end(c, t); i += step) {
            int64_t left = chunk_end(c, t) - i, m = left < step ? left : step;

            spsi_cpu_strip_cols(m, k, a, row_of(P, i), P->ld, row_of(Q, i),
                                Q->ld, row_of(X, i), X->ld, row_of(R, i),
                                R->ld);
            spsi_cpu_strip_dots(m, row_of(R, i), R->ld, row_of(R, i), R->ld, k,
                                sum);
        }
    }
    spsi_cpu_sum_chunks(threads, c.count, k, partial);
    memcpy(norm2, partial, (size_t)k * sizeof *norm2);
    return SPS_OK;

fail:
    return st;
}

/* One chunk of combine: sum gets P'P of the new P, or is NULL. */
static void chunk_combine(const sps_block *Z, int r, const double *packed,
                          sps_block *P, int64_t first, int64_t last,
                          double *sum)
{
    int64_t step = strip_rows(Z->k);
    int k = Z->k;

    if (sum) memset(sum, 0, (size_t)k * (size_t)k * sizeof *sum);
    for (int64_t i = first; i < last; i += step) {
        int64_t m = last - i < step ? last - i : step;

        spsi_cpu_strip_mul(m, row_of(P, i), P->ld, r, packed, k, 1.0,
                           row_of(Z, i), Z->ld, row_of(P, i), P->ld);
        if (sum)
            spsi_cpu_strip_gram(m, row_of(P, i), P->ld, k, row_of(P, i), P->ld,
                                k, sum, k);
    }
}

sps_status spsi_cpu_combine(const sps_block *Z, const sps_small *b,
                            sps_block *P, sps_small *G)
{
    sps_status st;
    bool fuse = G && Z->k <= 64;
    int64_t items = fuse ? (int64_t)Z->k * Z->k : 1;
    chunks c = chunks_of(Z->n, items);
    int64_t size = P->k * packed_cols(Z->k);
    int threads = Z->ctx->threads;
    double *packed, *partial;

    if (P->k == 1 && Z->k == 1) {
        SPS_TRY(spsi_cpu_axpby(1.0, Z, *spsi_small_at(b, 0, 0), P));
        return G ? spsi_cpu_gram(P, P, G) : SPS_OK;
    }
    SPS_TRY(spsi_cpu_scratch(Z->ctx, size + c.count * items, &packed));
    partial = packed + size;
    spsi_cpu_pack(1.0, b, packed);
#pragma omp parallel for num_threads(threads) schedule(static)                 \
    if (c.count > 1 && pays(c.n, (int64_t)Z->k * P->k))
    for (int64_t t = 0; t < c.count; t++)
        chunk_combine(Z, P->k, packed, P, t * c.rows, chunk_end(c, t),
                      fuse ? partial + t * items : NULL);
    spsi_block_narrow(P, Z->k);
    if (G && !fuse) return spsi_cpu_gram(P, P, G);
    if (!G) return SPS_OK;
    spsi_cpu_sum_chunks(threads, c.count, items, partial);
    spsi_cpu_unpack(partial, G);
    return SPS_OK;

fail:
    return st;
}
