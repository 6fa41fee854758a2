/* SPDX-License-Identifier: BSD-3-Clause */
/* small_least_squares.c - least squares with a growing small matrix, by
 * Householder reflections. */
#include "solvers/small_least_squares.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "block/upper.h"

enum { LANES = 8 };       /* number of columns to which reflections are applied
                             at once */

sps_status spsi_least_squares_open(sps_owner *o, int max_rows, int max_columns,
                                   int k, sps_least_squares *q)
{
    sps_status st;

    q->max_rows = max_rows;
    q->max_columns = max_columns;
    q->k = k;
    SPS_TRY(SPS_OWN(o, (int64_t)max_rows * max_columns, &q->r));
    SPS_TRY(SPS_OWN(o, max_columns, &q->scale));
    SPS_TRY(SPS_OWN(o, max_columns, &q->end));
    SPS_TRY(SPS_OWN(o, (int64_t)max_rows * k, &q->g));
    SPS_TRY(SPS_OWN(o, (int64_t)max_rows * LANES, &q->lanes));
fail:
    return st;
}

static double *column_of(const sps_least_squares *q, int t)
{
    return q->r + (int64_t)t * q->max_rows;
}

static double *right_of(const sps_least_squares *q, int c)
{
    return q->g + (int64_t)c * q->max_rows;
}

void spsi_least_squares_start(sps_least_squares *q, const sps_small *G)
{
    assert(G->rows <= q->max_rows && G->cols <= q->k);
    q->rows = G->rows;
    q->columns = 0;
    for (int c = 0; c < G->cols; c++)
        if (G->rows)
            memcpy(right_of(q, c), spsi_small_at(G, 0, c),
                   (size_t)G->rows * sizeof *q->g);
    for (int c = G->cols; c < q->k; c++)
        memset(right_of(q, c), 0, (size_t)q->rows * sizeof *q->g);
}

/* x -= s v (v'x), rows t and beyond, with v = (1, column t below its
 * diagonal). */
static void reflect(const sps_least_squares *q, int t, double *x)
{
    const double *v = column_of(q, t);
    double sum = x[t];

    if (q->scale[t] == 0) return;
    for (int i = t + 1; i < q->end[t]; i++) sum += v[i] * x[i];
    sum *= q->scale[t];
    x[t] -= sum;
    for (int i = t + 1; i < q->end[t]; i++) x[i] -= sum * v[i];
}

/* Applies reflections 0 .. count-1 to LANES columns, with element (i, c) at Y[i
 * * LANES + c].  The sums of the columns are formed simultaneously, each in the
 * order of reflect(). */
static void reflect_lanes(const sps_least_squares *q, int count, double *Y)
{
    for (int t = 0; t < count; t++) {
        const double *v = column_of(q, t);
        double sum[LANES];

        if (q->scale[t] == 0) continue;
        memcpy(sum, Y + t * LANES, sizeof sum);
        for (int i = t + 1; i < q->end[t]; i++)
#pragma omp simd
            for (int c = 0; c < LANES; c++) sum[c] += v[i] * Y[i * LANES + c];
#pragma omp simd
        for (int c = 0; c < LANES; c++) {
            sum[c] *= q->scale[t];
            Y[t * LANES + c] -= sum[c];
        }
        for (int i = t + 1; i < q->end[t]; i++)
#pragma omp simd
            for (int c = 0; c < LANES; c++) Y[i * LANES + c] -= sum[c] * v[i];
    }
}

/* Applies all previous reflections to `columns` columns, from column `first`
 * on. */
static void catch_up(sps_least_squares *q, int first, int columns)
{
    for (int c0 = first; c0 < first + columns; c0 += LANES) {
        const int lanes = first + columns - c0 < LANES ? first + columns - c0
                                                       : LANES;

        for (int c = 0; c < LANES; c++)
            for (int i = 0; i < q->rows; i++)
                q->lanes[i * LANES + c] = c < lanes ? column_of(q, c0 + c)[i]
                                                    : 0;
        reflect_lanes(q, first, q->lanes);
        for (int c = 0; c < lanes; c++)
            for (int i = 0; i < q->rows; i++)
                column_of(q, c0 + c)[i] = q->lanes[i * LANES + c];
    }
}

/* Makes the reflection that zeroes column t below its diagonal. */
static void make_reflection(sps_least_squares *q, int t)
{
    double *x = column_of(q, t), below = 0, length, head;

    q->end[t] = q->rows;
    q->scale[t] = 0;
    for (int i = t + 1; i < q->rows; i++) below = hypot(below, x[i]);
    if (below == 0) return;
    length = hypot(x[t], below);
    head = x[t] > 0 ? x[t] + length : x[t] - length;
    q->scale[t] = fabs(head) / length;
    for (int i = t + 1; i < q->rows; i++) x[i] /= head;
    x[t] = x[t] > 0 ? -length : length;
}

void spsi_least_squares_append(sps_least_squares *q, const sps_small *top,
                               int skip, const sps_small *below)
{
    int old = q->rows, more = below->rows, first = q->columns;

    assert(top->rows == skip + old && top->cols == below->cols);
    assert(old + more <= q->max_rows);
    assert(q->columns + top->cols <= q->max_columns);
    q->rows += more;
    for (int c = 0; c < q->k; c++)
        memset(right_of(q, c) + old, 0, (size_t)more * sizeof *q->g);
    for (int j = 0; j < top->cols; j++) {
        double *x = column_of(q, first + j);

        memcpy(x, spsi_small_at(top, skip, j), (size_t)old * sizeof *x);
        if (more)
            memcpy(x + old, spsi_small_at(below, 0, j),
                   (size_t)more * sizeof *x);
    }
    catch_up(q, first, top->cols);
    for (int j = 0; j < top->cols; j++) {
        int t = q->columns++;

        for (int i = first; i < t; i++) reflect(q, i, column_of(q, t));
        make_reflection(q, t);
        for (int c = 0; c < q->k; c++) reflect(q, t, right_of(q, c));
    }
}

double spsi_least_squares_residual(const sps_least_squares *q, int c)
{
    const double *g = right_of(q, c);
    double norm = 0;

    for (int i = q->columns; i < q->rows; i++) norm = hypot(norm, g[i]);
    return norm;
}

/* Returns the magnitude below which diagonal entries of R are zero to working
 * precision. */
static double smallest(const sps_least_squares *q)
{
    double largest = 0;

    for (int t = 0; t < q->columns; t++)
        largest = fmax(largest, fabs(column_of(q, t)[t]));
    return 4 * DBL_EPSILON * largest;
}

void spsi_least_squares_solve_r(const sps_least_squares *q, double *x)
{
    double least = smallest(q);

    for (int t = q->columns - 1; t >= 0; t--) {
        const double *r = column_of(q, t);

        x[t] = fabs(r[t]) > least ? x[t] / r[t] : 0;
        for (int i = 0; i < t; i++) x[i] -= x[t] * r[i];
    }
}

void spsi_least_squares_solve_rt(const sps_least_squares *q, double *x)
{
    double least = smallest(q);

    for (int t = 0; t < q->columns; t++) {
        const double *r = column_of(q, t);

        for (int i = 0; i < t; i++) x[t] -= r[i] * x[i];
        x[t] = fabs(r[t]) > least ? x[t] / r[t] : 0;
    }
}

/* x = R x. */
static void multiply_r(const sps_least_squares *q, double *x)
{
    for (int t = 0; t < q->columns; t++) {
        const double *r = column_of(q, t);

        for (int i = 0; i < t; i++) x[i] += r[i] * x[t];
        x[t] *= r[t];
    }
}

void spsi_least_squares_multiply(const sps_least_squares *q, double *x)
{
    multiply_r(q, x);
    for (int i = q->columns; i < q->rows; i++) x[i] = 0;
    for (int t = q->columns - 1; t >= 0; t--) reflect(q, t, x);
}

sps_status spsi_least_squares_solve(const sps_least_squares *q, sps_small *Y)
{
    double rest[SPS_BLOCK_MAX];

    for (int c = 0; c < Y->cols; c++)
        rest[c] = spsi_least_squares_residual(q, c);
    spsi_small_shape(Y, q->columns, Y->cols);
    return spsi_small_solve_steps(Y->ctx, q->r, q->columns, q->max_rows,
                                  q->end, rest, Y->cols, q->g, q->max_rows,
                                  Y->v, Y->rows, q->lanes);
}
