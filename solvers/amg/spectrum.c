/* SPDX-License-Identifier: BSD-3-Clause */
/* spectrum.c - the upper end of the spectrum of H = S A S, S = diag(s), which
 * is that of S^2 A.
 *
 * STEPS steps of Lanczos from a vector of hashed numbers; the largest
 * eigenvalue of their tridiagonal matrix is a lower bound of that of H, within
 * a few per cent of it.  The maximum of the row sums of |H| and of |S^2 A| is
 * an upper bound.  A smoother made for too small a bound diverges; so the
 * smaller of 1.1 times the former and the latter is used (levels.c).
 *
 * Sums run over fixed chunks of rows.  Bytes: STEPS reads of A. */
#include "solvers/amg/amg.h"

#include <math.h>

enum { STEPS = 8, CHUNK = 2048 };

typedef struct job {
    const sps_csr *A;
    const double *s;
    double *v, *before, *w;   /* n each */
    double beta, alpha, factor;
    double *part;             /* of each chunk */
} job;

static int64_t last_row(const job *j, int64_t chunk)
{
    const int64_t end = (chunk + 1) * CHUNK;

    return end < j->A->nrow ? end : j->A->nrow;
}

static double sum_parts(const job *j)
{
    double sum = 0;

    for (int64_t c = 0; c * CHUNK < j->A->nrow; c++) sum += j->part[c];
    return sum;
}

/* w = H v - beta v_before; part: w'v. */
static void multiply(void *data, int64_t first, int64_t last)
{
    const job *j = data;
    const double *val = j->A->val;

    for (int64_t c = first; c < last; c++) {
        double sum = 0;

        for (int64_t i = c * CHUNK; i < last_row(j, c); i++) {
            double h = 0;

            for (int64_t p = j->A->rowptr[i]; p < j->A->rowptr[i + 1]; p++)
                h += val[p] * (j->s[j->A->col[p]] * j->v[j->A->col[p]]);
            j->w[i] = h * j->s[i] - j->beta * j->before[i];
            sum += j->w[i] * j->v[i];
        }
        j->part[c] = sum;
    }
}

/* w -= alpha v; part: w'w. */
static void subtract(void *data, int64_t first, int64_t last)
{
    const job *j = data;

    for (int64_t c = first; c < last; c++) {
        double sum = 0;

        for (int64_t i = c * CHUNK; i < last_row(j, c); i++) {
            j->w[i] -= j->alpha * j->v[i];
            sum += j->w[i] * j->w[i];
        }
        j->part[c] = sum;
    }
}

static void scale(void *data, int64_t first, int64_t last)
{
    const job *j = data;

    for (int64_t i = first; i < last; i++) j->w[i] *= j->factor;
}

/* part: the largest row sum of |H|, and behind all of these of |S^2 A|. */
static void row_sums(void *data, int64_t first, int64_t last)
{
    const job *j = data;
    const double *val = j->A->val;
    const int64_t chunks = (j->A->nrow + CHUNK - 1) / CHUNK;

    for (int64_t c = first; c < last; c++) {
        double most = 0, other = 0;

        for (int64_t i = c * CHUNK; i < last_row(j, c); i++) {
            double h = 0, d = 0;

            for (int64_t p = j->A->rowptr[i]; p < j->A->rowptr[i + 1]; p++) {
                const double a = fabs(val[p]) * j->s[i];

                h += a * j->s[j->A->col[p]];
                d += a * j->s[i];
            }
            most = fmax(most, h);
            other = fmax(other, d);
        }
        j->part[c] = most;
        j->part[chunks + c] = other;
    }
}

/* v = hashed numbers, zero where s is, of norm 1. */
static void start(job *j)
{
    double sum = 0;

    for (int64_t i = 0; i < j->A->nrow; i++) {
        const uint64_t h = ((uint64_t)i + 1) * 0x9e3779b97f4a7c15u;
        const uint64_t x = (h ^ h >> 31) * 0xbf58476d1ce4e5b9u;

        j->v[i] = j->s[i] == 0 ? 0 : (double)(x >> 11) * 0x1p-53 - 0.5;
        sum += j->v[i] * j->v[i];
    }
    for (int64_t i = 0; i < j->A->nrow; i++)
        j->v[i] *= sum > 0 ? 1 / sqrt(sum) : 0;
}

/* Lanczos: the diagonal and the off-diagonal of T; returns its order. */
static int run(sps_context *ctx, job *j, double *diagonal, double *off)
{
    const int64_t n = j->A->nrow, chunks = (n + CHUNK - 1) / CHUNK;
    double *spare;

    start(j);
    for (int t = 0; t < STEPS; t++) {
        spsi_team_run(ctx, chunks, 2 * j->A->nnz, multiply, j);
        diagonal[t] = j->alpha = sum_parts(j);
        spsi_team_run(ctx, chunks, n, subtract, j);
        off[t] = j->beta = sqrt(sum_parts(j));
        if (!(j->beta > 1e-10 * fabs(diagonal[0]))) return t + 1;
        j->factor = 1 / j->beta;
        spsi_team_run(ctx, n, n, scale, j);
        spare = j->before;
        j->before = j->v;
        j->v = j->w;
        j->w = spare;
    }
    return STEPS;
}

/* The largest eigenvalue of the tridiagonal matrix of order m. */
static sps_status largest(sps_context *ctx, int m, const double *diagonal,
                          const double *off, double *rho)
{
    sps_small *T = NULL;
    double w[STEPS];
    sps_status st;

    SPS_TRY(spsi_small_create(ctx, m, m, &T));
    spsi_small_shape(T, m, m);
    spsi_small_clear(T);
    for (int i = 0; i < m; i++) {
        *spsi_small_at(T, i, i) = diagonal[i];
        if (i + 1 == m) break;
        *spsi_small_at(T, i, i + 1) = *spsi_small_at(T, i + 1, i) = off[i];
    }
    SPS_REQUIRE(ctx, spsi_small_finite(T), SPS_EUNFIT, "amg: the matrix has "
                "entries that are not finite or too large");
    SPS_TRY(spsi_small_eigen(T, w));
    *rho = w[m - 1];
fail:
    spsi_small_destroy(&T);
    return st;
}

static double row_bound(sps_context *ctx, job *j)
{
    const int64_t chunks = (j->A->nrow + CHUNK - 1) / CHUNK;
    double most = 0, other = 0;

    spsi_team_run(ctx, chunks, 2 * j->A->nnz, row_sums, j);
    for (int64_t c = 0; c < chunks; c++) {
        most = fmax(most, j->part[c]);
        other = fmax(other, j->part[chunks + c]);
    }
    return fmin(most, other);
}

sps_status spsi_amg_spectrum(sps_context *ctx, const sps_csr *A,
                             const double *scale, double *rho, double *bound)
{
    job j = { .A = A, .s = scale };
    double diagonal[STEPS], off[STEPS], *room = NULL;
    const int64_t n = A->nrow;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, 3 * n + 1, &room));
    SPS_TRY(SPS_NEW(ctx, 2 * (n / CHUNK + 1), &j.part));
    j.v = room;
    j.before = room + n;
    j.w = room + 2 * n;
    *bound = row_bound(ctx, &j);
    SPS_TRY(largest(ctx, run(ctx, &j, diagonal, off), diagonal, off, rho));
    SPS_TRY(spsi_check_deadline(ctx, "amg"));
fail:
    spsi_free(ctx, room);
    spsi_free(ctx, j.part);
    return st;
}
