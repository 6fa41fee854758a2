/* SPDX-License-Identifier: BSD-3-Clause */
/* draw.h - random numbers and small random matrices from a seed, for
 * differential tests.  Kinds of patterns that kernels treat differently: tiny,
 * short rows, a few popular lengths, long rows, bands, dense blocks, nearly
 * empty; shapes are rectangular both ways. */
#ifndef SPS_TEST_DRAW_H
#define SPS_TEST_DRAW_H

#include <stdlib.h>

#include "spsolve.h"

typedef struct draw {
    uint64_t state;
} draw;

/* splitmix64 (Steele, Lea, Flood 2014). */
static inline uint64_t draw_bits(draw *d)
{
    uint64_t z = d->state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Uniform in low .. high, both included. */
static inline int draw_int(draw *d, int low, int high)
{
    return low + (int)(draw_bits(d) % (uint64_t)(high - low + 1));
}

/* [0, 1). */
static inline double draw_unit(draw *d)
{
    return (double)(draw_bits(d) >> 11) * 0x1p-53;
}

/* Nonzero integers, |v| <= 8; or numbers in [-1/2, 1/2), exactly representable
 * in float or not. */
typedef enum draw_data {
    DRAW_INTEGERS, DRAW_FLOATS, DRAW_DOUBLES
} draw_data;

static inline double draw_value(draw *d, draw_data data)
{
    int v;

    if (data == DRAW_DOUBLES) return draw_unit(d) - 0.5;
    if (data == DRAW_FLOATS) return (double)(float)(draw_unit(d) - 0.5);
    v = draw_int(d, 1, 8);
    return draw_bits(d) % 2 ? v : -v;
}

static inline double *draw_values(draw *d, int64_t n, draw_data data)
{
    double *x = malloc((size_t)(n + 1) * sizeof *x);

    for (int64_t i = 0; i < n; i++) x[i] = draw_value(d, data);
    return x;
}

enum { DRAW_TINY, DRAW_SHORT, DRAW_POWER, DRAW_LONG, DRAW_BAND, DRAW_BLOCKS,
       DRAW_HOLLOW, DRAW_KINDS };

typedef struct draw_pattern {
    int kind, nrow, ncol;
    int width;               /* block size, bandwidth, or longest short row */
    double share;            /* fraction of the entries that are stored */
} draw_pattern;

static inline draw_pattern draw_shape(draw *d)
{
    const int kind = draw_int(d, 0, DRAW_KINDS - 1);
    const int top = kind == DRAW_TINY ? 12 : 320;
    draw_pattern p = { .kind = kind, .nrow = draw_int(d, 0, top),
                       .ncol = draw_int(d, 0, top),
                       .width = draw_int(d, 1, 16),
                       .share = draw_unit(d) };

    if (kind == DRAW_LONG) {
        p.nrow = draw_int(d, 1, 9);
        p.ncol = draw_int(d, 300, 3000);
    }
    if (kind == DRAW_BLOCKS) {
        p.width = 1 << draw_int(d, 1, 5);
        p.nrow = p.width * draw_int(d, 1, 320 / p.width);
        p.ncol = p.width * draw_int(d, 1, 320 / p.width);
    }
    return p;
}

/* Probability that column j of row i is stored; row: a number drawn once for
 * each row. */
static inline double draw_chance(const draw_pattern *p, int i, int j,
                                 double row)
{
    const double wide = p->ncol > 0 ? p->ncol : 1;
    uint64_t z;

    switch (p->kind) {
    case DRAW_SHORT:
        return row * p->width / wide;
    case DRAW_POWER:
        return 1.0 / (1.0 + wide * row);
    case DRAW_LONG:
        return row;
    case DRAW_BAND:
        return abs(i - j) <= p->width ? 0.5 + p->share / 2 : 0.0;
    case DRAW_BLOCKS: /* whole blocks, about a quarter of them stored */
        z = (uint64_t)(i / p->width * 1000003 + j / p->width * 7919 + p->ncol);
        return z * UINT64_C(0x9e3779b97f4a7c15) >> 62 ? 0.0
                                                      : 0.7 + 0.4 * p->share;
    case DRAW_HOLLOW:
        return row < 0.1 ? p->share : 0.0;
    default:
        return p->share;
    }
}

/* Sorted, unique columns; host arrays from malloc, freed by zoo_free. */
static inline sps_csr *draw_matrix(draw *d, draw_data data, sps_dtype dtype)
{
    const draw_pattern p = draw_shape(d);
    const size_t most = (size_t)p.nrow * (size_t)p.ncol + 1;
    sps_csr *A = calloc(1, sizeof *A);
    int64_t at = 0;

    A->nrow = p.nrow;
    A->ncol = p.ncol;
    A->dtype = dtype;
    A->place = SPS_HOST;
    A->struct_size = sizeof *A;
    A->rowptr = malloc((size_t)(p.nrow + 1) * sizeof *A->rowptr);
    A->col = malloc(most * sizeof *A->col);
    A->val = malloc(most * sizeof(double));
    A->rowptr[0] = 0;
    for (int i = 0; i < p.nrow; i++) {
        const double row = draw_unit(d);

        for (int j = 0; j < p.ncol; j++) {
            if (draw_unit(d) >= draw_chance(&p, i, j, row)) continue;
            if (dtype == SPS_F64)
                ((double *)A->val)[at] = draw_value(d, data);
            else
                ((float *)A->val)[at] = (float)draw_value(d, data);
            A->col[at++] = j;
        }
        A->rowptr[i + 1] = at;
    }
    A->nnz = at;
    return A;
}

#endif
