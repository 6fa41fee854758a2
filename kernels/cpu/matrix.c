/* SPDX-License-Identifier: BSD-3-Clause */
/* matrix.c - operations on the matrix and on components of its pattern:
 * diagonal, inverses of diagonal blocks, means removed.
 *
 * The csr_* bodies work on host arrays alone and serve every place. */
#include "rows.h"

#include <float.h>
#include <math.h>

/* --- X minus the mean over each component */

/* Longer components are summed in chunks of this many rows, by all threads;
 * shorter ones whole, each by one thread. */
#define LONG 4096

static void add_rows(const sps_block *X, const int32_t *row, int64_t rows,
                     double *sum)
{
    memset(sum, 0, (size_t)X->k * sizeof *sum);
    for (int64_t t = 0; t < rows; t++) {
        const double *x = row_of(X, row[t]);

        for (int j = 0; j < X->k; j++) sum[j] += x[j];
    }
}

static void subtract(const sps_block *X, const int32_t *row, int64_t rows,
                     const double *mean)
{
    for (int64_t t = 0; t < rows; t++) {
        double *x = row_of(X, row[t]);

        for (int j = 0; j < X->k; j++) x[j] -= mean[j];
    }
}

static void remove_short(const sps_block *X, const int32_t *row, int64_t rows)
{
    double mean[SPS_BLOCK_MAX];

    add_rows(X, row, rows, mean);
    for (int j = 0; j < X->k; j++) mean[j] /= (double)rows;
    subtract(X, row, rows, mean);
}

static sps_status remove_long(const sps_block *X, const int32_t *row,
                              int64_t rows)
{
    sps_status st;
    chunks c = chunks_of(rows, X->k);
    int threads = X->ctx->threads;
    double *partial;

    SPS_TRY(spsi_cpu_scratch(X->ctx, c.count * X->k, &partial));
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t t = 0; t < c.count; t++)
        add_rows(X, row + t * c.rows, chunk_end(c, t) - t * c.rows,
                 partial + t * X->k);
    spsi_cpu_sum_chunks(threads, c.count, X->k, partial);
    for (int j = 0; j < X->k; j++) partial[j] /= (double)rows;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t t = 0; t < c.count; t++)
        subtract(X, row + t * c.rows, chunk_end(c, t) - t * c.rows, partial);
    return SPS_OK;

fail:
    return st;
}

sps_status spsi_cpu_remove_means(const sps_components *c, sps_block *X)
{
    sps_status st = SPS_OK;

#pragma omp parallel for num_threads(X->ctx->threads) schedule(dynamic, 64)    \
    if (c->rows > LONG)
    for (int64_t t = 0; t < c->count; t++) {
        int64_t rows = c->start[t + 1] - c->start[t];

        if (rows > 0 && rows <= LONG)
            remove_short(X, c->row + c->start[t], rows);
    }
    for (int64_t t = 0; t < c->count; t++) {
        int64_t rows = c->start[t + 1] - c->start[t];

        if (rows > LONG) SPS_TRY(remove_long(X, c->row + c->start[t], rows));
    }
fail:
    return st;
}

/* --- diagonal */

sps_status spsi_cpu_csr_diagonal(sps_context *ctx, const sps_csr *A,
                                 double *diagonal)
{
#pragma omp parallel for num_threads(ctx->threads) schedule(static)            \
    if (A->nnz > 100000)
    for (int64_t i = 0; i < A->nrow; i++) {
        double sum = 0;

        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            if (A->col[p] == i) sum += spsi_csr_value(A, p);
        diagonal[i] = sum;
    }
    return SPS_OK;
}

/* --- inverses of diagonal blocks */

/* The block of rows first .. first+m-1 of A, column-major, into D; scale[r]:
 * largest |entry| of row r. */
static void extract(const sps_csr *A, int64_t first, int64_t m, double *D,
                    double *scale)
{
    memset(D, 0, (size_t)(m * m) * sizeof *D);
    for (int64_t r = 0; r < m; r++) {
        int64_t i = first + r;

        scale[r] = 0;
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
            int64_t c = A->col[p] - first;
            double v = spsi_csr_value(A, p);

            if (c < 0 || c >= m) continue;
            D[c * m + r] += v;
            scale[r] = fmax(scale[r], fabs(v));
        }
    }
}

/* The row r >= s whose entry in column s is largest beside its row; *size
 * gets that ratio. */
static int64_t find_pivot(const double *D, int64_t m, int64_t s,
                          const double *scale, double *size)
{
    int64_t best = s;

    *size = 0;
    for (int64_t r = s; r < m; r++) {
        double ratio = scale[r] > 0 ? fabs(D[s * m + r]) / scale[r] : 0;

        if (ratio > *size) {
            *size = ratio;
            best = r;
        }
    }
    return best;
}

static void swap(double *a, double *b)
{
    double t = *a;

    *a = *b;
    *b = t;
}

/* One step of Gauss-Jordan in place: column s becomes a column of the
 * inverse. */
static void eliminate(double *D, int64_t m, int64_t s)
{
    double pivot = 1 / D[s * m + s];

    D[s * m + s] = 1;
    for (int64_t c = 0; c < m; c++) D[c * m + s] *= pivot;
    for (int64_t r = 0; r < m; r++) {
        double f = D[s * m + r];

        if (r == s || f == 0) continue;
        D[s * m + r] = 0;
        for (int64_t c = 0; c < m; c++) D[c * m + r] -= f * D[c * m + s];
    }
}

/* D = D^-1 by Gauss-Jordan with scaled partial pivoting; false: singular to
 * working precision, or not finite. */
static bool invert(double *D, int64_t m, double *scale, int64_t *pivot)
{
    for (int64_t s = 0; s < m; s++) {
        double size;
        int64_t r = find_pivot(D, m, s, scale, &size);

        if (!(size > (double)m * DBL_EPSILON) || !isfinite(D[s * m + r]))
            return false;
        pivot[s] = r;
        if (r != s) {
            for (int64_t c = 0; c < m; c++) swap(&D[c * m + r], &D[c * m + s]);
            swap(&scale[r], &scale[s]);
        }
        eliminate(D, m, s);
    }
    for (int64_t s = m - 1; s >= 0; s--)   /* rows swapped: columns of D^-1 */
        if (pivot[s] != s)
            for (int64_t r = 0; r < m; r++)
                swap(&D[s * m + r], &D[pivot[s] * m + r]);
    for (int64_t t = 0; t < m * m; t++)
        if (!isfinite(D[t])) return false;
    return true;
}

sps_status spsi_cpu_csr_block_inverse(sps_context *ctx, const sps_csr *A,
                                      const int64_t *start, int64_t blocks,
                                      double *inverse, int64_t *bad)
{
    sps_status st;
    int64_t rows = blocks ? start[blocks] - start[0] : 0, first_bad = blocks;
    double *scale = NULL;
    int64_t *pivot = NULL, *offset = NULL;

    SPS_TRY(SPS_NEW(ctx, rows, &scale));
    SPS_TRY(SPS_NEW(ctx, rows, &pivot));
    SPS_TRY(SPS_NEW(ctx, blocks + 1, &offset));
    for (int64_t b = 0; b < blocks; b++) {
        int64_t m = start[b + 1] - start[b];

        offset[b + 1] = offset[b] + m * m;
    }
#pragma omp parallel for num_threads(ctx->threads) schedule(dynamic, 256)      \
    reduction(min : first_bad)
    for (int64_t b = 0; b < blocks; b++) {
        int64_t first = start[b], m = start[b + 1] - first;
        int64_t at = first - start[0];

        extract(A, first, m, inverse + offset[b], scale + at);
        if (!invert(inverse + offset[b], m, scale + at, pivot + at) &&
            b < first_bad)
            first_bad = b;
    }
    *bad = first_bad < blocks ? first_bad : -1;
    st = SPS_OK;

fail:
    spsi_free(ctx, scale);
    spsi_free(ctx, pivot);
    spsi_free(ctx, offset);
    return st;
}
