/* SPDX-License-Identifier: BSD-3-Clause */
/* block_gram.c - reductions over rows: C = X'Y, dot products, largest
 * magnitudes.
 *
 * A chunk of rows is summed strip by strip into its own partial result; the
 * partial results are added pairwise in fixed order.  C = X'Y of a strip is
 * computed in 8 x 16 or smaller tiles held in registers: for each row, 8
 * elements of x are multiplied by one or two vectors of y.  Narrow tiles
 * process several rows at once, so that there are always 8 independent sums.
 *
 * For X n x kx and Y n x ky, bytes: X and Y once; n kx ky multiply-adds. */
#include "cpu/rows.h"

#include <math.h>

/* C(a, b) += sum over m rows of x_a y_b, for a < TX and the columns b of one
 * vector of y.  TX divides 8 and is a constant after inlining.  Row i
 * prefetches the address next + i ldn, unless next is NULL. */
#define TILE(name, V)                                                          \
    INLINE void name(const int TX, int64_t m, const double *x, int64_t ldx,    \
                     const double *y, int64_t ldy, double *C, int64_t ldc,     \
                     const double *next, int64_t ldn)                          \
    {                                                                          \
        const int U = 8 / TX;                                                  \
        V acc[8] = {0};                                                        \
        int64_t i = 0;                                                         \
                                                                               \
        for (; i + U <= m; i += U)                                             \
            _Pragma("GCC unroll 8") for (int u = 0; u < U; u++)                \
            {                                                                  \
                V yv = *(const V *)(y + (i + u) * ldy);                        \
                if (next) __builtin_prefetch(next + (i + u) * ldn);            \
                _Pragma("GCC unroll 8") for (int a = 0; a < TX; a++)           \
                    acc[u * TX + a] += x[(i + u) * ldx + a] * yv;              \
            }                                                                  \
        for (; i < m; i++)                                                     \
            _Pragma("GCC unroll 8") for (int a = 0; a < TX; a++)               \
                acc[a] += x[i * ldx + a] * *(const V *)(y + i * ldy);          \
        _Pragma("GCC unroll 8") for (int u = 1; u < U; u++)                    \
            _Pragma("GCC unroll 8") for (int a = 0; a < TX; a++)               \
                acc[a] += acc[u * TX + a];                                     \
        _Pragma("GCC unroll 8") for (int a = 0; a < TX; a++)                   \
            *(V *)(C + a * ldc) += acc[a];                                     \
    }

/* C += X'Y for an 8 x 16 tile, if there are enough registers: each element of x
 * is multiplied by two vectors of y. */
INLINE void tile16(int64_t m, const double *x, int64_t ldx, const double *y,
                   int64_t ldy, double *C, int64_t ldc, const double *first,
                   int64_t ld1, const double *second, int64_t ld2)
{
    v8 a0[8] = {{0}}, a1[8] = {{0}};

    for (int64_t i = 0; i < m; i++) {
        v8 y0 = *(const v8 *)(y + i * ldy), y1 = *(const v8 *)(y + i * ldy + 8);

        __builtin_prefetch(first + i * ld1);
        __builtin_prefetch(second + i * ld2);
#pragma GCC unroll 8
        for (int a = 0; a < 8; a++) {
            a0[a] += x[i * ldx + a] * y0;
            a1[a] += x[i * ldx + a] * y1;
        }
    }
#pragma GCC unroll 8
    for (int a = 0; a < 8; a++) {
        *(v8 *)(C + a * ldc) += a0[a];
        *(v8 *)(C + a * ldc + 8) += a1[a];
    }
}

TILE(tile8, v8)
TILE(tile4, v4)
TILE(tile2, v2)
TILE(tile1, v1)

/* The rows of the next strip that tile number t = 0, 1, .. of this strip
 * prefetches: cache line t of each row of x, then line t - lines_x of each row
 * of y; later tiles prefetch f->x, which is in the cache already. */
typedef struct ahead {
    const double *x, *y;
    int64_t ldx, ldy;
    int lines_x, lines_y, t;
} ahead;

INLINE const double *fetch(ahead *f, int64_t *ld)
{
    int t = f->t++;

    *ld = f->ldx;
    if (t < f->lines_x) return f->x + 8 * t;
    *ld = f->ldy;
    if (t < f->lines_x + f->lines_y) return f->y + 8 * (t - f->lines_x);
    *ld = 0;
    return f->x;
}

/* C += X'Y for 8 columns of y, in vectors as wide as registers. */
INLINE void tile_of_8(const sps_isa isa, const int TX, int64_t m,
                      const double *x, int64_t ldx, const double *y,
                      int64_t ldy, double *C, int64_t ldc, const double *next,
                      int64_t ld)
{
    if (isa == SPS_ISA_AVX512)
        tile8(TX, m, x, ldx, y, ldy, C, ldc, next, ld);
    else if (isa == SPS_ISA_AVX2)
        for (int b = 0; b < 8; b += 4)
            tile4(TX, m, x, ldx, y + b, ldy, C + b, ldc, b ? NULL : next, ld);
    else
        for (int b = 0; b < 8; b += 2)
            tile2(TX, m, x, ldx, y + b, ldy, C + b, ldc, b ? NULL : next, ld);
}

/* C += X'Y for TX columns of x and all columns of y. */
INLINE void tiles(const sps_isa isa, const int TX, int64_t m, const double *x,
                  int64_t ldx, const double *y, int64_t ldy, int ky, double *C,
                  int64_t ldc, ahead *f)
{
    int64_t ld = 0, ld2 = 0;
    int b = 0;

    if (TX == 8 && isa == SPS_ISA_AVX512)
        for (; b + 16 <= ky; b += 16) {
            const double *first = fetch(f, &ld), *second = fetch(f, &ld2);

            tile16(m, x, ldx, y + b, ldy, C + b, ldc, first, ld, second, ld2);
        }
    for (; b + 8 <= ky; b += 8) {
        const double *next = TX == 8 ? fetch(f, &ld) : NULL;

        tile_of_8(isa, TX, m, x, ldx, y + b, ldy, C + b, ldc, next, ld);
    }
    if (isa != SPS_ISA_PLAIN && ky & 4) {
        tile4(TX, m, x, ldx, y + b, ldy, C + b, ldc, NULL, 0);
        b += 4;
    }
    for (; b + 2 <= ky; b += 2)
        tile2(TX, m, x, ldx, y + b, ldy, C + b, ldc, NULL, 0);
    if (ky & 1) tile1(TX, m, x, ldx, y + b, ldy, C + b, ldc, NULL, 0);
}

INLINE void spsi_cpu_strip_gram_of(const sps_isa isa, int64_t m,
                                   const double *x, int64_t ldx, int kx,
                                   const double *y, int64_t ldy, int ky,
                                   double *C, int64_t ldc)
{
    ahead f = {x + m * ldx, y + m * ldy, ldx, ldy, kx / 8, ky / 8, 0};
    int a = 0;

    for (; a + 8 <= kx; a += 8)
        tiles(isa, 8, m, x + a, ldx, y, ldy, ky, C + a * ldc, ldc, &f);
    if (kx & 4) {
        tiles(isa, 4, m, x + a, ldx, y, ldy, ky, C + a * ldc, ldc, &f);
        a += 4;
    }
    if (kx & 2) {
        tiles(isa, 2, m, x + a, ldx, y, ldy, ky, C + a * ldc, ldc, &f);
        a += 2;
    }
    if (kx & 1) tiles(isa, 1, m, x + a, ldx, y, ldy, ky, C + a * ldc, ldc, &f);
}
CLONED_BY_ISA(, spsi_cpu_strip_gram,
       (int64_t m, const double *x, int64_t ldx, int kx, const double *y,
        int64_t ldy, int ky, double *C, int64_t ldc),
       (m, x, ldx, kx, y, ldy, ky, C, ldc))

/* out[j] += sum of x_j y_j for one vector of columns, four rows at once. */
#define DOT(name, V)                                                           \
    INLINE void name(int64_t m, const double *x, int64_t ldx, const double *y, \
                     int64_t ldy, double *out)                                 \
    {                                                                          \
        V acc[4] = {0};                                                        \
        int64_t i = 0;                                                         \
                                                                               \
        for (; i + 4 <= m; i += 4)                                             \
            _Pragma("GCC unroll 4") for (int u = 0; u < 4; u++)                \
                acc[u] += *(const V *)(x + (i + u) * ldx) *                    \
                          *(const V *)(y + (i + u) * ldy);                     \
        for (; i < m; i++)                                                     \
            acc[0] += *(const V *)(x + i * ldx) * *(const V *)(y + i * ldy);   \
        *(V *)out += (acc[0] + acc[1]) + (acc[2] + acc[3]);                    \
    }

DOT(dot8, v8)
DOT(dot4, v4)
DOT(dot2, v2)
DOT(dot1, v1)

INLINE void spsi_cpu_strip_dots_of(const sps_isa isa, int64_t m,
                                   const double *x, int64_t ldx,
                                   const double *y, int64_t ldy, int k,
                                   double *out)
{
    int j = 0;

    if (isa == SPS_ISA_AVX512)
        for (; j + 8 <= k; j += 8) dot8(m, x + j, ldx, y + j, ldy, out + j);
    if (isa != SPS_ISA_PLAIN)
        for (; j + 4 <= k; j += 4) dot4(m, x + j, ldx, y + j, ldy, out + j);
    for (; j + 2 <= k; j += 2) dot2(m, x + j, ldx, y + j, ldy, out + j);
    if (k & 1) dot1(m, x + j, ldx, y + j, ldy, out + j);
}
CLONED_BY_ISA(, spsi_cpu_strip_dots,
       (int64_t m, const double *x, int64_t ldx, const double *y, int64_t ldy,
        int k, double *out),
       (m, x, ldx, y, ldy, k, out))

/* Operands of a reduction over two blocks, or three (gram_pair), and the
 * partial results of each chunk. */
typedef struct gram_job {
    chunks c;
    const sps_block *X, *Y, *R;
    int64_t items;
    double *partial;
} gram_job;

static double *partial_of(const gram_job *j, int64_t row)
{
    return j->partial + row / j->c.rows * j->items;
}

static void chunk_dots(void *data, int64_t first, int64_t last)
{
    const gram_job *j = data;
    double *sum = partial_of(j, first);

    memset(sum, 0, (size_t)j->items * sizeof *sum);
    spsi_cpu_strip_dots(last - first, row_of(j->X, first), j->X->ld,
                        row_of(j->Y, first), j->Y->ld, j->X->k, sum);
}

sps_status spsi_cpu_dots(const sps_block *X, const sps_block *Y, double *out)
{
    sps_status st;
    chunks c = chunks_of(X->n, X->k);
    double *partial;

    SPS_TRY(spsi_cpu_scratch(X->ctx, c.count * X->k, &partial));
    spsi_cpu_over_chunks(X->ctx, c, work_ns(c.n, 2 * X->k, 0), chunk_dots,
                         &(gram_job){ c, X, Y, NULL, X->k, partial });
    spsi_cpu_sum_chunks(X->ctx, c.count, X->k, partial);
    memcpy(out, partial, (size_t)X->k * sizeof *out);
    return SPS_OK;

fail:
    return st;
}

/* Returns the larger of two numbers, or NaN if one of them is NaN. */
static inline double larger(double m, double a)
{
    return a > m || a != a ? a : m;
}

INLINE void strip_maxabs_of(int64_t m, const double *x, int64_t ldx, int k,
                            double *out)
{
    for (int64_t i = 0; i < m; i++)
#pragma omp simd
        for (int j = 0; j < k; j++)
            out[j] = larger(out[j], fabs(x[i * ldx + j]));
}
CLONED(static, strip_maxabs,
       (int64_t m, const double *x, int64_t ldx, int k, double *out),
       (m, x, ldx, k, out))

static void chunk_maxabs(void *data, int64_t first, int64_t last)
{
    const gram_job *j = data;
    double *top = partial_of(j, first);

    memset(top, 0, (size_t)j->items * sizeof *top);
    strip_maxabs(last - first, row_of(j->X, first), j->X->ld,
                          j->X->k, top);
}

sps_status spsi_cpu_maxabs(const sps_block *X, double *out)
{
    sps_status st;
    chunks c = chunks_of(X->n, X->k);
    double *partial;

    SPS_TRY(spsi_cpu_scratch(X->ctx, c.count * X->k, &partial));
    spsi_cpu_over_chunks(X->ctx, c, work_ns(c.n, X->k, 0), chunk_maxabs,
                         &(gram_job){ c, X, NULL, NULL, X->k, partial });
    memset(out, 0, (size_t)X->k * sizeof *out);
    for (int64_t i = 0; i < c.count; i++)
        for (int j = 0; j < X->k; j++)
            out[j] = larger(out[j], partial[i * X->k + j]);
    return SPS_OK;

fail:
    return st;
}

/* --- Gram matrices */

/* A wide X is also divided into panels of columns, which provides parallel work
 * if there are few chunks; in single precision, as many columns as the buffer
 * of a strip can hold. */
#define PANEL 64

static int panel_width(const sps_block *X)
{
    return X->dtype == SPS_F32 ? SPS_SINGLE_WIDEST : PANEL;
}

/* Adds X'Y over rows first .. last-1, for a panel of columns of X that begins
 * with column a0. */
static void chunk_gram(const sps_block *X, const sps_block *Y, int64_t first,
                       int64_t last, int a0, double *sum)
{
    const int left = X->k - a0, width = panel_width(X);
    const int kx = left < width ? left : width;
    const int widest = X->dtype == SPS_F32 ? kx : X->k;
    double xs[SINGLE_ROOM], ys[SINGLE_ROOM];
    int64_t step = strip_rows(widest > Y->k ? widest : Y->k), ldx, ldy;
    sps_block panel;

    spsi_block_view(X, a0, kx, &panel);
    sum += (int64_t)a0 * Y->k;
    memset(sum, 0, (size_t)kx * (size_t)Y->k * sizeof *sum);
    for (int64_t i = first; i < last; i += step) {
        int64_t m = last - i < step ? last - i : step;
        const double *x = spsi_cpu_strip_in(&panel, i, m, xs, &ldx);
        const double *y = spsi_cpu_strip_in(Y, i, m, ys, &ldy);

        spsi_cpu_strip_gram(m, x, ldx, kx, y, ldy, Y->k, sum, Y->k);
    }
}

void spsi_cpu_unpack(const double *rows, sps_small *C)
{
    for (int b = 0; b < C->cols; b++)
        for (int a = 0; a < C->rows; a++)
            *spsi_small_at(C, a, b) = rows[(int64_t)a * C->cols + b];
}

/* A work item is one panel of columns in one chunk of rows. */
static void panel_grams(void *data, int64_t first, int64_t last)
{
    const gram_job *j = data;
    const int width = panel_width(j->X);
    const int64_t panels = (j->X->k + width - 1) / width;

    for (int64_t t = first; t < last; t++) {
        const int64_t i = t / panels;

        chunk_gram(j->X, j->Y, i * j->c.rows, chunk_end(j->c, i),
                   (int)(t % panels) * width, j->partial + i * j->items);
    }
}

sps_status spsi_cpu_gram(const sps_block *X, const sps_block *Y, sps_small *C)
{
    sps_status st;
    int64_t items = (int64_t)X->k * Y->k;
    const int width = panel_width(X);
    int64_t panels = (X->k + width - 1) / width;
    chunks c = chunks_of(X->n, items);
    gram_job j = { c, X, Y, NULL, items, NULL };
    double *partial;

    SPS_TRY(spsi_cpu_scratch(X->ctx, c.count * items, &partial));
    j.partial = partial;
    spsi_team_run(X->ctx, c.count * panels, work_ns(c.n, X->k + Y->k, items),
                  panel_grams, &j);
    spsi_cpu_sum_chunks(X->ctx, c.count, items, partial);
    spsi_cpu_unpack(partial, C);
    return SPS_OK;

fail:
    return st;
}

/* G = P'Q and C = P'R strip by strip, so that P is read from memory once. */
static void chunk_pair(void *data, int64_t first, int64_t last)
{
    const gram_job *j = data;
    const sps_block *P = j->X, *Q = j->Y, *R = j->R;
    int64_t step = strip_rows(P->k > Q->k ? P->k : Q->k);
    double *sum = partial_of(j, first), *other = sum + (int64_t)P->k * Q->k;

    memset(sum, 0, (size_t)j->items * sizeof *sum);
    for (int64_t i = first; i < last; i += step) {
        int64_t m = last - i < step ? last - i : step;

        spsi_cpu_strip_gram(m, row_of(P, i), P->ld, P->k, row_of(Q, i), Q->ld,
                            Q->k, sum, Q->k);
        spsi_cpu_strip_gram(m, row_of(P, i), P->ld, P->k, row_of(R, i), R->ld,
                            R->k, other, R->k);
    }
}

sps_status spsi_cpu_gram_pair(const sps_block *P, const sps_block *Q,
                              const sps_block *R, sps_small *G, sps_small *C)
{
    sps_status st;
    int64_t items = (int64_t)P->k * (Q->k + R->k);
    chunks c = chunks_of(P->n, items);
    double *partial;

    /* Wide blocks are bound by arithmetic, so reading P once gains nothing. */
    if (P->k > PANEL) {
        SPS_TRY(spsi_cpu_gram(P, Q, G));
        return spsi_cpu_gram(P, R, C);
    }
    SPS_TRY(spsi_cpu_scratch(P->ctx, c.count * items, &partial));
    spsi_cpu_over_chunks(P->ctx, c,
                         work_ns(c.n, P->k + Q->k + R->k, items), chunk_pair,
                         &(gram_job){ c, P, Q, R, items, partial });
    spsi_cpu_sum_chunks(P->ctx, c.count, items, partial);
    spsi_cpu_unpack(partial, G);
    spsi_cpu_unpack(partial + (int64_t)P->k * Q->k, C);
    return SPS_OK;

fail:
    return st;
}
