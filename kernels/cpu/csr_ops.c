/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_ops.c - operations on the matrix and on the connected components of its
 * pattern: diagonal, inverses of diagonal blocks, subtraction of means.
 *
 * The csr_* functions use host arrays only and are used by all backends. */
#include "core/deadline.h"
#include "cpu/rows.h"
#include "matrix/csr.h"

#include <float.h>
#include <math.h>

/* --- X minus the mean over each component */

/* Components longer than this are summed by all threads, in chunks of this many
 * rows; shorter ones by one thread each. */
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

typedef struct means_job {
    chunks c;
    const sps_block *X;
    const int32_t *row;
    double *partial;         /* sums of each chunk; later the means, at its
                                beginning */
} means_job;

static void chunk_sum(void *data, int64_t first, int64_t last)
{
    const means_job *j = data;

    add_rows(j->X, j->row + first, last - first,
             j->partial + first / j->c.rows * j->X->k);
}

static void chunk_subtract(void *data, int64_t first, int64_t last)
{
    const means_job *j = data;

    subtract(j->X, j->row + first, last - first, j->partial);
}

static sps_status remove_long(const sps_block *X, const int32_t *row,
                              int64_t rows)
{
    sps_status st;
    const int64_t ns = work_ns(rows, 2 * X->k, 0);
    means_job j = { .c = chunks_of(rows, X->k), .X = X, .row = row };

    SPS_TRY(spsi_cpu_scratch(X->ctx, j.c.count * X->k, &j.partial));
    spsi_cpu_over_chunks(X->ctx, j.c, ns, chunk_sum, &j);
    spsi_cpu_sum_chunks(X->ctx, j.c.count, X->k, j.partial);
    for (int l = 0; l < X->k; l++) j.partial[l] /= (double)rows;
    spsi_cpu_over_chunks(X->ctx, j.c, ns, chunk_subtract, &j);
    return SPS_OK;

fail:
    return st;
}

typedef struct short_job {
    const sps_components *c;
    const sps_block *X;
} short_job;

static void run_short(void *data, int64_t first, int64_t last)
{
    const short_job *j = data;

    for (int64_t t = first; t < last; t++) {
        int64_t rows = j->c->start[t + 1] - j->c->start[t];

        if (rows > 0 && rows <= LONG)
            remove_short(j->X, j->c->row + j->c->start[t], rows);
    }
}

sps_status spsi_cpu_remove_means(const sps_components *c, sps_block *X)
{
    sps_status st = SPS_OK;

    spsi_team_run(X->ctx, c->count, work_ns(c->rows, 4 * X->k, 0), run_short,
                  &(short_job){ c, X });
    for (int64_t t = 0; t < c->count; t++) {
        int64_t rows = c->start[t + 1] - c->start[t];

        if (rows > LONG) SPS_TRY(remove_long(X, c->row + c->start[t], rows));
    }
fail:
    return st;
}

/* --- diagonal */

typedef struct diagonal_job {
    const sps_csr *A;
    double *diagonal;
} diagonal_job;

static void run_diagonal(void *data, int64_t first, int64_t last)
{
    const diagonal_job *j = data;
    const sps_csr *A = j->A;

    for (int64_t i = first; i < last; i++) {
        double sum = 0;

        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            if (A->col[p] == i) sum += spsi_csr_value(A, p);
        j->diagonal[i] = sum;
    }
}

sps_status spsi_cpu_csr_diagonal(sps_context *ctx, const sps_csr *A,
                                 double *diagonal)
{
    spsi_team_run(ctx, A->nrow, A->nnz, run_diagonal,
                  &(diagonal_job){ A, diagonal });
    return SPS_OK;
}

/* --- inverses of diagonal blocks */

/* Copies the diagonal block of rows first .. first+m-1 of A to D, column-major;
 * scale[r] becomes the largest magnitude in row r of the block. */
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

/* Returns the row r >= s with the largest ratio of its entry in column s to its
 * scale; *size is that ratio. */
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

/* One step of Gauss-Jordan elimination in place: column s becomes a column of
 * the inverse. */
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

/* D = D^-1 by Gauss-Jordan elimination with scaled partial pivoting.  Returns
 * false if D is singular to working precision or not finite. */
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
    /* Row exchanges of D are column exchanges of D^-1. */
    for (int64_t s = m - 1; s >= 0; s--)
        if (pivot[s] != s)
            for (int64_t r = 0; r < m; r++)
                swap(&D[s * m + r], &D[pivot[s] * m + r]);
    for (int64_t t = 0; t < m * m; t++)
        if (!isfinite(D[t])) return false;
    return true;
}

typedef struct inverse_job {
    const sps_csr *A;
    const int64_t *start, *offset;
    double *inverse, *scale;
    int64_t *pivot, first_bad;
} inverse_job;

static void run_inverse(void *data, int64_t first_block, int64_t last_block)
{
    inverse_job *j = data;

    for (int64_t b = first_block; b < last_block; b++) {
        int64_t first = j->start[b], m = j->start[b + 1] - first;
        int64_t at = first - j->start[0];
        double *D = j->inverse + j->offset[b];

        extract(j->A, first, m, D, j->scale + at);
        if (!invert(D, m, j->scale + at, j->pivot + at))
            spsi_team_least(&j->first_bad, b);
    }
}

sps_status spsi_cpu_csr_block_inverse(sps_context *ctx, const sps_csr *A,
                                      const int64_t *start, int64_t blocks,
                                      double *inverse, int64_t *bad)
{
    sps_status st;
    int64_t rows = blocks ? start[blocks] - start[0] : 0, work = 0;
    double *scale = NULL;
    int64_t *pivot = NULL, *offset = NULL;
    inverse_job j;

    SPS_TRY(SPS_NEW(ctx, rows, &scale));
    SPS_TRY(SPS_NEW(ctx, rows, &pivot));
    SPS_TRY(SPS_NEW(ctx, blocks + 1, &offset));
    for (int64_t b = 0; b < blocks; b++) {
        int64_t m = start[b + 1] - start[b];

        offset[b + 1] = offset[b] + m * m;
        work += m * m * m;
    }
    j = (inverse_job){ A, start, offset, inverse, scale, pivot, blocks };
    SPS_TRY(spsi_team_run_in_time(ctx, blocks, work + A->nnz, run_inverse, &j,
                                  "the inverse"));
    *bad = j.first_bad < blocks ? j.first_bad : -1;
fail:
    spsi_free(ctx, scale);
    spsi_free(ctx, pivot);
    spsi_free(ctx, offset);
    return st;
}
