/* SPDX-License-Identifier: BSD-3-Clause */
/* block_update.c - blocks times small matrices: Y = a X C + b Y, and the fused
 * updates of block methods that use such products.
 *
 * Eight or four rows of X at a time, as registers allow, are multiplied by the
 * packed C (row-major, padded to a multiple of 8 columns, scaled by a); their
 * products are kept in a small buffer until all columns are done, so that Y may
 * be X.  With 2 or 4 columns without padding, eight consecutive elements are
 * several rows and form one vector, if a register has eight doubles.
 *
 * Bytes: mul_small X, Y (and Y again if b != 0); subtract and combine 2 reads
 * and 1 write. */
#include "cpu/rows.h"

#define ROWS 8

void spsi_cpu_pack(double a, const sps_small *C, double *packed)
{
    int64_t ld = packed_cols(C->cols);

    for (int l = 0; l < C->rows; l++)
        for (int64_t j = 0; j < ld; j++)
            packed[l * ld + j] =
                j < C->cols ? a * *spsi_small_at(C, l, (int)j) : 0;
}

/* t = x c for R rows and N vectors of columns of vector type V; R and N are
 * constants after inlining. */
#define PRODUCT(name, V)                                                       \
    INLINE void name(const int R, const int N, const double *x, int64_t ldx,   \
                     int kx, const double *c, int64_t ldc, double *t)          \
    {                                                                          \
        enum { W = sizeof(V) / sizeof(double) };                               \
        V acc[ROWS][2] = {{{0}}};                                              \
                                                                               \
        for (int l = 0; l < kx; l++) {                                         \
            const double *cl = c + l * ldc;                                    \
                                                                               \
            _Pragma("GCC unroll 8") for (int r = 0; r < R; r++)                \
                _Pragma("GCC unroll 2") for (int v = 0; v < N; v++)            \
                    acc[r][v] += x[r * ldx + l] * *(const V *)(cl + v * W);    \
        }                                                                      \
        _Pragma("GCC unroll 8") for (int r = 0; r < R; r++)                    \
            _Pragma("GCC unroll 2") for (int v = 0; v < N; v++)                \
                *(V *)(t + r * ldc + v * W) = acc[r][v];                       \
    }

PRODUCT(product8, v8)
PRODUCT(product4, v4)
PRODUCT(product2, v2)

/* t = x c for all columns, a multiple of 8, in vectors as wide as registers. */
INLINE void product(const sps_isa isa, const int R, const double *x,
                    int64_t ldx, int kx, const double *c, int64_t ldc,
                    double *t)
{
    int64_t j = 0;

    if (isa == SPS_ISA_AVX512) {
        for (; j + 16 <= ldc; j += 16)
            product8(R, 2, x, ldx, kx, c + j, ldc, t + j);
        for (; j < ldc; j += 8)
            product8(R, 1, x, ldx, kx, c + j, ldc, t + j);
    } else if (isa == SPS_ISA_AVX2) {
        for (; j < ldc; j += 8)
            product4(R, 2, x, ldx, kx, c + j, ldc, t + j);
    } else {
        for (; j < ldc; j += 4)
            product2(R, 2, x, ldx, kx, c + j, ldc, t + j);
    }
}

/* t = x c for up to ROWS rows. */
INLINE void products(const sps_isa isa, int64_t rows, const double *x,
                     int64_t ldx, int kx, const double *c, int64_t ldc,
                     double *t)
{
    int64_t r = 0;

    if (isa == SPS_ISA_AVX512)
        for (; r + 8 <= rows; r += 8)
            product(isa, 8, x + r * ldx, ldx, kx, c, ldc, t + r * ldc);
    for (; r + 4 <= rows; r += 4)
        product(isa, 4, x + r * ldx, ldx, kx, c, ldc, t + r * ldc);
    for (; r < rows; r++)
        product(isa, 1, x + r * ldx, ldx, kx, c, ldc, t + r * ldc);
}

/* Prefetches the rows that are used AHEAD rows later. */
#define AHEAD 16

INLINE void fetch(int64_t rows, const double *x, int64_t ldx, int k)
{
    for (int64_t r = AHEAD; r < AHEAD + rows; r++)
        for (int j = 0; j < k; j += 8) __builtin_prefetch(x + r * ldx + j);
}

/* y = t + b z for one row of k columns; z is not read if b = 0. */
INLINE void row_out(int k, const double *t, double b, const double *z,
                    double *y)
{
    if (b == 0) {
#pragma omp simd
        for (int j = 0; j < k; j++) y[j] = t[j];
    } else {
#pragma omp simd
        for (int j = 0; j < k; j++) y[j] = t[j] + b * z[j];
    }
}

/* Eight consecutive elements are 8 / K rows of K columns without padding: y = x
 * c + b z for as many of m rows as make whole vectors of eight.  Returns the
 * number of these rows.  K is a constant after inlining. */
INLINE int64_t strip_folded(const int K, int64_t m, const double *x,
                            const double *c, int64_t ldc, double b,
                            const double *z, double *y)
{
    int64_t rows = m / (8 / K) * (8 / K);
    v8 row[4];

    for (int l = 0; l < K; l++)
        for (int e = 0; e < 8; e++) row[l][e] = c[l * ldc + e % K];
    for (int64_t i = 0; i < rows * K; i += 8) {
        v8 t = *(const v8 *)(x + i), acc = {0};

#pragma GCC unroll 4
        for (int l = 0; l < K; l++) {
            const v8 column = {t[l], t[1 / K * K + l], t[2 / K * K + l],
                               t[3 / K * K + l], t[4 / K * K + l],
                               t[5 / K * K + l], t[6 / K * K + l],
                               t[7 / K * K + l]}; /* compiles to one shuffle */

            acc += column * row[l];
        }
        if (b != 0) acc += b * *(const v8 *)(z + i);
        *(v8 *)(y + i) = acc;
    }
    return rows;
}

INLINE void spsi_cpu_strip_mul_of(const sps_isa isa, int64_t m,
                                  const double *x, int64_t ldx, int kx,
                                  const double *c, int ky, double b,
                                  const double *z, int64_t ldz, double *y,
                                  int64_t ldy)
{
    double t[ROWS * SPS_BLOCK_MAX] __attribute__((aligned(64)));
    int64_t ldc = packed_cols(ky), i = 0;
    const bool tight = isa == SPS_ISA_AVX512 && kx == ky && ldx == kx &&
                       ldy == kx && ldz == kx;

    if (tight && kx == 2) i = strip_folded(2, m, x, c, ldc, b, z, y);
    if (tight && kx == 4) i = strip_folded(4, m, x, c, ldc, b, z, y);
    for (; i < m; i += ROWS) {
        int64_t rows = m - i < ROWS ? m - i : ROWS;

        fetch(rows, x + i * ldx, ldx, kx);
        fetch(rows, z + i * ldz, ldz, ky);
        products(isa, rows, x + i * ldx, ldx, kx, c, ldc, t);
        for (int64_t r = 0; r < rows; r++)
            row_out(ky, t + r * ldc, b, z + (i + r) * ldz, y + (i + r) * ldy);
    }
}
CLONED_BY_ISA(, spsi_cpu_strip_mul,
       (int64_t m, const double *x, int64_t ldx, int kx, const double *c,
        int ky, double b, const double *z, int64_t ldz, double *y, int64_t ldy),
       (m, x, ldx, kx, c, ky, b, z, ldz, y, ldy))

/* --- operations */

/* Operands of Y = X c + b Y; c is packed (spsi_cpu_pack). */
typedef struct mul_job {
    const sps_block *X;
    const double *packed;
    double b;
    sps_block *Y;
} mul_job;

/* Y = X c + b Y for X or a panel of it; c is packed. */
static void mul_rows(const sps_block *X, const double *c, double b,
                     sps_block *Y, int64_t first, int64_t last)
{
    double xs[SINGLE_ROOM], ys[SINGLE_ROOM];
    int64_t step = strip_rows(X->k > Y->k ? X->k : Y->k), ldx, ldy;

    for (int64_t i = first; i < last; i += step) {
        int64_t m = last - i < step ? last - i : step;
        const double *x = spsi_cpu_strip_in(X, i, m, xs, &ldx);
        double *y = spsi_cpu_strip_in(Y, i, m, ys, &ldy);

        spsi_cpu_strip_mul(m, x, ldx, X->k, c, Y->k, b, y, ldy, y, ldy);
        spsi_cpu_strip_out(Y, i, m, y, ldy);
    }
}

/* In single precision a panel of X has as many columns as the buffer of a strip
 * can hold. */
static void chunk_mul(void *data, int64_t first, int64_t last)
{
    const mul_job *j = data;
    const int k = j->X->k;
    const int width = j->X->dtype == SPS_F32 ? SPS_SINGLE_WIDEST : k;
    sps_block panel;

    for (int a0 = 0; a0 < k; a0 += width) {
        spsi_block_view(j->X, a0, k - a0 < width ? k - a0 : width, &panel);
        mul_rows(&panel, j->packed + a0 * packed_cols(j->Y->k),
                 a0 ? 1.0 : j->b, j->Y, first, last);
    }
}

sps_status spsi_cpu_mul_small(double a, const sps_block *X, const sps_small *C,
                              double b, sps_block *Y)
{
    sps_status st;
    double *packed;

    if (X->k == 1 && Y->k == 1 && X->dtype == SPS_F64)
        return spsi_cpu_axpby(a * *spsi_small_at(C, 0, 0), X, b, Y);
    SPS_TRY(spsi_cpu_scratch(X->ctx, X->k * packed_cols(Y->k), &packed));
    spsi_cpu_pack(a, C, packed);
    spsi_cpu_over_chunks(X->ctx, chunks_of(X->n, 1),
                         work_ns(X->n, X->k + Y->k, (int64_t)X->k * Y->k),
                         chunk_mul, &(mul_job){ X, packed, b, Y });
    return SPS_OK;

fail:
    return st;
}

/* Operands of the updates that also compute sums, of `items` doubles per
 * chunk. */
typedef struct update_job {
    chunks c;
    const sps_block *P, *Q;
    const double *plus, *minus;
    sps_block *X, *R;
    double *partial;         /* sums of each chunk, or NULL if not wanted */
    int64_t items;
} update_job;

static double *zero_sum(const update_job *j, int64_t row)
{
    double *sum = j->partial ? j->partial + row / j->c.rows * j->items : NULL;

    return sum ? memset(sum, 0, (size_t)j->items * sizeof *sum) : NULL;
}

/* R -= Q a for one chunk; the sum is increased by the squares of the new R
 * (items = k) or by R'R (items = k k). */
static void chunk_subtract(void *data, int64_t first, int64_t last)
{
    const update_job *j = data;
    const sps_block *Q = j->Q, *R = j->R;
    int64_t step = strip_rows(R->k);
    int k = R->k;
    double *sum = zero_sum(j, first);

    for (int64_t i = first; i < last; i += step) {
        int64_t m = last - i < step ? last - i : step;
        double *x = row_of(R, i);

        spsi_cpu_strip_mul(m, row_of(Q, i), Q->ld, Q->k, j->minus, k, 1.0, x,
                           R->ld, x, R->ld);
        if (sum && j->items > k)
            spsi_cpu_strip_gram(m, x, R->ld, k, x, R->ld, k, sum, k);
        else if (sum)
            spsi_cpu_strip_dots(m, x, R->ld, x, R->ld, k, sum);
    }
}

sps_status spsi_cpu_subtract(const sps_block *Q, const sps_small *a,
                             sps_block *R, sps_small *S)
{
    sps_status st;
    int64_t size = Q->k * packed_cols(R->k), items = (int64_t)S->rows * R->k;
    bool fuse = S->rows == 1 || R->k <= 64;
    chunks c = chunks_of(R->n, fuse ? items : 1);
    double *minus, *partial;

    if (Q->k == 1 && R->k == 1)
        return spsi_cpu_subtract_cols(Q, spsi_small_at(a, 0, 0), R, S->v);
    SPS_TRY(spsi_cpu_scratch(R->ctx, size + (fuse ? c.count * items : 0),
                             &minus));
    partial = minus + size;
    spsi_cpu_pack(-1.0, a, minus);
    spsi_cpu_over_chunks(R->ctx, c,
                         work_ns(c.n, Q->k + 2 * R->k,
                                 (int64_t)Q->k * R->k + items), chunk_subtract,
                         &(update_job){ .c = c, .Q = Q, .minus = minus, .R = R,
                                        .partial = fuse ? partial : NULL,
                                        .items = items });
    if (!fuse) return spsi_cpu_gram(R, R, S);
    spsi_cpu_sum_chunks(R->ctx, c.count, items, partial);
    spsi_cpu_unpack(partial, S);
    return SPS_OK;

fail:
    return st;
}

/* R -= Q diag(a) for one chunk, with minus = -a and plus = k ones; the sum is
 * increased by the squares of the new R. */
static void chunk_subtract_cols(void *data, int64_t first, int64_t last)
{
    const update_job *j = data;
    const sps_block *Q = j->Q, *R = j->R;
    const int k = R->k;
    const int64_t step = strip_rows(k);
    double *sum = zero_sum(j, first);

    for (int64_t i = first; i < last; i += step) {
        int64_t m = last - i < step ? last - i : step;

        spsi_cpu_strip_axpby_cols(m, k, j->minus, row_of(Q, i), Q->ld, j->plus,
                                  row_of(R, i), R->ld);
        spsi_cpu_strip_dots(m, row_of(R, i), R->ld, row_of(R, i), R->ld, k,
                            sum);
    }
}

sps_status spsi_cpu_subtract_cols(const sps_block *Q, const double *a,
                                  sps_block *R, double *norm2)
{
    sps_status st;
    chunks c = chunks_of(R->n, R->k);
    int k = R->k;
    double *partial, minus[SPS_BLOCK_MAX], one[SPS_BLOCK_MAX];

    for (int j = 0; j < k; j++) {
        minus[j] = -a[j];
        one[j] = 1;
    }
    SPS_TRY(spsi_cpu_scratch(R->ctx, c.count * k, &partial));
    spsi_cpu_over_chunks(R->ctx, c, work_ns(c.n, 3 * k, 0),
                         chunk_subtract_cols,
                         &(update_job){ .c = c, .Q = Q, .plus = one,
                                        .minus = minus, .R = R,
                                        .partial = partial, .items = k });
    spsi_cpu_sum_chunks(R->ctx, c.count, k, partial);
    memcpy(norm2, partial, (size_t)k * sizeof *norm2);
    return SPS_OK;

fail:
    return st;
}

/* P = P plus + Q for one chunk of combine; the sum is increased by P'P of the
 * new P. */
static void chunk_combine(void *data, int64_t first, int64_t last)
{
    const update_job *j = data;
    const sps_block *Z = j->Q, *P = j->P;
    int64_t step = strip_rows(Z->k);
    int k = Z->k;
    double *sum = zero_sum(j, first);

    for (int64_t i = first; i < last; i += step) {
        int64_t m = last - i < step ? last - i : step;

        spsi_cpu_strip_mul(m, row_of(P, i), P->ld, P->k, j->plus, k, 1.0,
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
    double *packed, *partial;

    if (P->k == 1 && Z->k == 1) {
        SPS_TRY(spsi_cpu_axpby(1.0, Z, *spsi_small_at(b, 0, 0), P));
        return G ? spsi_cpu_gram(P, P, G) : SPS_OK;
    }
    SPS_TRY(spsi_cpu_scratch(Z->ctx, size + c.count * items, &packed));
    partial = packed + size;
    spsi_cpu_pack(1.0, b, packed);
    spsi_cpu_over_chunks(Z->ctx, c,
                         work_ns(c.n, P->k + 2 * Z->k,
                                 (int64_t)Z->k * P->k + items), chunk_combine,
                         &(update_job){ .c = c, .P = P, .Q = Z, .plus = packed,
                                        .partial = fuse ? partial : NULL,
                                        .items = items });
    spsi_block_narrow(P, Z->k);
    if (G && !fuse) return spsi_cpu_gram(P, P, G);
    if (!G) return SPS_OK;
    spsi_cpu_sum_chunks(Z->ctx, c.count, items, partial);
    spsi_cpu_unpack(partial, G);
    return SPS_OK;

fail:
    return st;
}
