/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_two_way.c - U = A X diag(c) - U with S = A'U, and Z = S' diag(a) + Z
 * diag(b), on the host (matrix/two_way.h).
 *
 * Two rows of a group are computed at once, as many columns as have their sums
 * in registers: each row of X, and of S, is loaded once for both.  The sums of
 * a column are formed in the order of the rows and entries, whatever the other
 * columns are. */
#include "cpu/rows.h"
#include "matrix/two_way.h"

#define UNROLL _Pragma("GCC unroll 8")

typedef struct pass {
    const sps_two_way *w;
    const double *c;
    const sps_block *X, *U;
    double *squares;          /* k for each piece */
} pass;

/* Computes R rows of U from row i on, with values a of `count` entries each,
 * and adds them to the slots, in N vectors V of columns from j on.  R and N are
 * constants after inlining. */
#define ROWS(name, V)                                                          \
    INLINE void name(const pass *t, int64_t i, const double *a,                \
                     const int32_t *slot, int64_t count, const int R,          \
                     const int N, int j, double *square)                       \
    {                                                                          \
        enum { W = sizeof(V) / sizeof(double) };                               \
        const int32_t *column = t->w->column;                                  \
        const int64_t ldx = t->X->ld, lds = t->w->S->ld, ldu = t->U->ld;       \
        const double *x = (const double *)t->X->data + j;                      \
        double *s = (double *)t->w->S->data + j, *u = row_of(t->U, i) + j;     \
        V sum[2][4];                                                           \
                                                                               \
        UNROLL for (int r = 0; r < R; r++)                                     \
            UNROLL for (int v = 0; v < N; v++) sum[r][v] = (V){0};             \
        for (int64_t e = 0; e < count; e++) {                                  \
            const double *from = x + column[slot[e]] * ldx;                    \
                                                                               \
            UNROLL for (int v = 0; v < N; v++) {                               \
                const V one = *(const V *)(from + v * W);                      \
                                                                               \
                UNROLL for (int r = 0; r < R; r++)                             \
                    sum[r][v] += a[r * count + e] * one;                       \
            }                                                                  \
        }                                                                      \
        UNROLL for (int v = 0; v < N; v++) {                                   \
            const V c = *(const V *)(t->c + j + v * W);                        \
            V *q = (V *)(square + j + v * W);                                  \
                                                                               \
            UNROLL for (int r = 0; r < R; r++) {                               \
                V *to = (V *)(u + r * ldu + v * W);                            \
                                                                               \
                *to = sum[r][v] = c * sum[r][v] - *to;                         \
                *q += sum[r][v] * sum[r][v];                                   \
            }                                                                  \
        }                                                                      \
        for (int64_t e = 0; e < count; e++) {                                  \
            double *to = s + slot[e] * lds;                                    \
                                                                               \
            UNROLL for (int v = 0; v < N; v++) {                               \
                V one = *(const V *)(to + v * W);                              \
                                                                               \
                UNROLL for (int r = 0; r < R; r++)                             \
                    one += a[r * count + e] * sum[r][v];                       \
                *(V *)(to + v * W) = one;                                      \
            }                                                                  \
        }                                                                      \
    }

ROWS(rows8, v8)
ROWS(rows4, v4)
ROWS(rows2, v2)
ROWS(rows1, v1)

#define COLUMNS(name, N, W)                                                    \
    for (; j + N * W <= t->U->k; j += N * W)                                   \
        name(t, i, a, slot, count, R, N, j, square)

INLINE void some_rows(const sps_isa isa, const pass *t, int64_t i,
                      const double *a, const int32_t *slot, int64_t count,
                      const int R, double *square)
{
    int j = 0;

    if (isa == SPS_ISA_AVX512) {
        COLUMNS(rows8, 4, 8);
        COLUMNS(rows8, 2, 8);
        COLUMNS(rows8, 1, 8);
    } else if (isa == SPS_ISA_AVX2) {
        COLUMNS(rows4, 4, 4);
        COLUMNS(rows4, 2, 4);
    } else {
        COLUMNS(rows2, 4, 2);
    }
    if (isa != SPS_ISA_PLAIN) COLUMNS(rows4, 1, 4);
    COLUMNS(rows2, 1, 2);
    COLUMNS(rows1, 1, 1);
}

INLINE void piece_of(const sps_isa isa, const pass *t, int64_t p)
{
    const sps_two_way *w = t->w;
    double *square = t->squares + p * t->U->k;

    for (int64_t g = w->piece[p]; g < w->piece[p + 1]; g++) {
        const int64_t count = w->entry[g + 1] - w->entry[g];
        const int32_t *slot = w->slot + w->entry[g];
        const double *a = w->val + w->value[g];
        int64_t i = w->row[g];

        for (; i + 2 <= w->row[g + 1]; i += 2, a += 2 * count)
            some_rows(isa, t, i, a, slot, count, 2, square);
        if (i < w->row[g + 1])
            some_rows(isa, t, i, a, slot, count, 1, square);
    }
}
CLONED_BY_ISA(static, piece, (const pass *t, int64_t p), (t, p))

static void there(void *data, int64_t first, int64_t last)
{
    const pass *t = data;
    const sps_two_way *w = t->w;
    const size_t bytes = (size_t)t->U->k * sizeof(double);

    for (int64_t p = first; p < last; p++) {
        for (int64_t s = w->first[p]; s < w->first[p + 1]; s++)
            memset(row_of(w->S, s), 0, bytes);
        memset(t->squares + p * t->U->k, 0, bytes);
        piece(t, p);
    }
}

sps_status spsi_cpu_two_way_there(const sps_two_way *w, const double *c,
                                  const sps_block *X, sps_block *U,
                                  double *norm2)
{
    const int k = U->k;
    pass t = { w, c, X, U, NULL };
    sps_status st;

    SPS_TRY(spsi_cpu_scratch(w->ctx, w->pieces * k, &t.squares));
    spsi_team_run(w->ctx, w->pieces,
                  work_ns(w->nrow, 2 * k, 0) +
                      work_ns(w->value[w->groups], 1, 2 * k), there, &t);
    spsi_cpu_sum_chunks(w->ctx, w->pieces, k, t.squares);
    memcpy(norm2, t.squares, (size_t)k * sizeof *norm2);
fail:
    return st;
}

typedef struct back_job {
    chunks c;
    const sps_two_way *w;
    const double *a, *b;
    double d;
    const sps_block *V;
    sps_block *Z;
    double *partial;
} back_job;

/* y = the sums of the slots of columns first .. first+m-1. */
INLINE void add_slots_of(const sps_two_way *w, int64_t first, int64_t m, int k,
                         double *y)
{
    for (int64_t j = first; j < first + m; j++, y += k) {
        memset(y, 0, (size_t)k * sizeof *y);
        for (int64_t e = w->start[j]; e < w->start[j + 1]; e++) {
            const double *s = row_of(w->S, w->where[e]);

#pragma omp simd
            for (int q = 0; q < k; q++) y[q] += s[q];
        }
    }
}
CLONED(static, add_slots,
       (const sps_two_way *w, int64_t first, int64_t m, int k, double *y),
       (w, first, m, k, y))

static void back(void *data, int64_t first, int64_t last)
{
    const back_job *t = data;
    sps_block *Z = t->Z;
    const int64_t step = single_rows(Z->k);
    double *sum = t->partial + first / t->c.rows * Z->k, y[SINGLE_ROOM];

    memset(sum, 0, (size_t)Z->k * sizeof *sum);
    for (int64_t i = first; i < last; i += step) {
        const int64_t m = last - i < step ? last - i : step;

        add_slots(t->w, i, m, Z->k, y);
        if (t->V)
            spsi_cpu_strip_axpby(m, Z->k, t->d, row_of(t->V, i), t->V->ld, 1.0,
                                 y, Z->k);
        spsi_cpu_strip_axpby_cols(m, Z->k, t->a, y, Z->k, t->b, row_of(Z, i),
                                  Z->ld);
        spsi_cpu_strip_dots(m, row_of(Z, i), Z->ld, row_of(Z, i), Z->ld, Z->k,
                            sum);
    }
}

sps_status spsi_cpu_two_way_back(const sps_two_way *w, const double *a,
                                 double d, const sps_block *V, const double *b,
                                 sps_block *Z, double *norm2)
{
    const int k = Z->k;
    back_job t = { chunks_of(Z->n, k), w, a, b, d, V, Z, NULL };
    sps_status st;

    SPS_TRY(spsi_cpu_scratch(w->ctx, t.c.count * k, &t.partial));
    spsi_cpu_over_chunks(w->ctx, t.c,
                         work_ns(w->first[w->pieces] + 2 * Z->n, k, 0), back,
                         &t);
    spsi_cpu_sum_chunks(w->ctx, t.c.count, k, t.partial);
    memcpy(norm2, t.partial, (size_t)k * sizeof *norm2);
fail:
    return st;
}
