/* SPDX-License-Identifier: BSD-3-Clause */
/* spectrum.c - the upper end of the spectrum of H = S A S, S = diag(s), which
 * is also that of S^2 A.
 *
 * A few Lanczos steps start from a vector of hashed values; the largest
 * eigenvalue of their tridiagonal matrix is a lower bound of that of H, within
 * a few per cent of it.  The maximum of the row sums of |H| and of |S^2 A| is
 * an upper bound.  A smoother made for too small a bound diverges, so the
 * smaller one of 1.1 times the lower bound and of the upper bound is used
 * (levels.c).
 *
 * coarsening.h defines the order of sums.  Bytes: one read of A for each
 * step. */
#include "solvers/amg/amg.h"

#include <math.h>
#include <string.h>

enum { STEPS = SPS_COARSE_STEPS, CHUNK = SPS_COARSE_CHUNK,
       LANES = SPS_COARSE_LANES };

typedef struct job {
    const sps_csr *A;
    const double *s;
    const double *column;     /* s, or with x that of all columns */
    double *v, *before, *w;   /* n elements each */
    double *y;                /* S v before v is scaled by `factor`; with x it
                                 has an element for each column */
    const spsi_coarse_across *x;    /* NULL for a matrix of one process */
    double beta, alpha, factor;
    bool drawn;               /* v is no longer the first vector */
    double *part;             /* partial result of each chunk */
} job;

static int64_t last_row(const job *j, int64_t chunk)
{
    const int64_t end = (chunk + 1) * CHUNK;

    return end < j->A->nrow ? end : j->A->nrow;
}

/* Returns the sum of the lanes, which are overwritten. */
static double join_lanes(double *lane)
{
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int t = 0; t < half; t++) lane[t] += lane[t + half];
    return lane[0];
}

/* Returns where the elements of own rows begin in a vector of all columns. */
static double *own_part(const job *j, double *y)
{
    return y + (j->x ? j->x->low : 0);
}

static sps_status fill(const job *j, double *y)
{
    return j->x ? j->x->fill(j->x->data, y) : SPS_OK;
}

/* *sum = the sum of the parts, which are overwritten. */
static sps_status sum_parts(const job *j, double *sum)
{
    int64_t count = (j->A->nrow + CHUNK - 1) / CHUNK;

    do {
        int64_t to = 0;

        for (int64_t c = 0; c < count; c += CHUNK) {
            double lane[LANES] = { 0 };

            for (int64_t p = c; p < count && p < c + CHUNK; p++)
                lane[p % LANES] += j->part[p];
            j->part[to++] = join_lanes(lane);
        }
        count = to;
    } while (count > 1);
    *sum = count ? j->part[0] : 0;
    return j->x ? j->x->sum(j->x->data, sum) : SPS_OK;
}

/* w = H v - beta v_before; part = w'v of each chunk. */
static void multiply(void *data, int64_t first, int64_t last)
{
    const job *j = data;
    const double *val = j->A->val;

    for (int64_t c = first; c < last; c++) {
        double lane[LANES] = { 0 };

        for (int64_t i = c * CHUNK; i < last_row(j, c); i++) {
            double h = 0;

            for (int64_t p = j->A->rowptr[i]; p < j->A->rowptr[i + 1]; p++)
                h += val[p] * j->y[j->A->col[p]];
            j->w[i] = h * j->factor * j->s[i] - j->beta * j->before[i];
            lane[i % LANES] += j->w[i] * j->v[i];
        }
        j->part[c] = join_lanes(lane);
    }
}

/* w -= alpha v, or at first w = hashed values, zero where s is; y = S w; part =
 * w'w of each chunk. */
static void next_vector(void *data, int64_t first, int64_t last)
{
    const job *j = data;
    const int64_t begin = j->x ? j->x->first : 0;
    double *y = own_part(j, j->y);

    for (int64_t c = first; c < last; c++) {
        double lane[LANES] = { 0 };

        for (int64_t i = c * CHUNK; i < last_row(j, c); i++) {
            if (j->drawn) j->w[i] -= j->alpha * j->v[i];
            else j->w[i] = j->s[i] == 0 ? 0 : spsi_coarse_start(begin + i);
            y[i] = j->s[i] * j->w[i];
            lane[i % LANES] += j->w[i] * j->w[i];
        }
        j->part[c] = join_lanes(lane);
    }
}

static void scale(void *data, int64_t first, int64_t last)
{
    const job *j = data;

    for (int64_t i = first; i < last; i++) j->w[i] *= j->factor;
}

/* part = the largest row sum of |H| of each chunk, followed by those of |S^2
 * A|. */
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

                h += a * j->column[j->A->col[p]];
                d += a * j->s[i];
            }
            most = fmax(most, h);
            other = fmax(other, d);
        }
        j->part[c] = most;
        j->part[chunks + c] = other;
    }
}

/* Moves on by one Lanczos step: w becomes v, and v becomes the vector before
 * it. */
static void advance(job *j)
{
    double *spare = j->before;

    j->before = j->v;
    j->v = j->w;
    j->w = spare;
}

/* v = a random vector of norm 1; before = 0. */
static sps_status start(sps_context *ctx, job *j)
{
    const int64_t n = j->A->nrow, chunks = (n + CHUNK - 1) / CHUNK;
    double sum;
    sps_status st;

    spsi_team_run(ctx, chunks, 3 * n, next_vector, j);
    SPS_TRY(sum_parts(j, &sum));
    SPS_TRY(fill(j, j->y));
    j->factor = sum > 0 ? 1 / sqrt(sum) : 0;
    spsi_team_run(ctx, n, n, scale, j);
    advance(j);
    j->drawn = true;
fail:
    return st;
}

/* Runs the Lanczos process; computes the diagonal of its tridiagonal matrix, and
 * the STEPS - 1 elements beside it. */
static sps_status run(sps_context *ctx, job *j, double *diagonal, double *off)
{
    const int64_t n = j->A->nrow, chunks = (n + CHUNK - 1) / CHUNK;
    double sum;
    sps_status st;

    SPS_TRY(start(ctx, j));
    for (int t = 0; t < STEPS; t++) {
        spsi_team_run(ctx, chunks, 2 * j->A->nnz, multiply, j);
        SPS_TRY(sum_parts(j, &j->alpha));
        diagonal[t] = j->alpha;
        if (t + 1 == STEPS) break;
        spsi_team_run(ctx, chunks, n, next_vector, j);
        SPS_TRY(sum_parts(j, &sum));
        SPS_TRY(fill(j, j->y));
        off[t] = j->beta = sqrt(sum);
        j->factor = 1 / j->beta;
        spsi_team_run(ctx, n, n, scale, j);
        advance(j);
    }
fail:
    return st;
}

/* Returns the number of steps before a breakdown; coefficients after it are
 * meaningless. */
static int steps_of(const double *diagonal, const double *off)
{
    int t = 1;

    while (t < STEPS && off[t - 1] > 1e-10 * fabs(diagonal[0])) t++;
    return t;
}

/* Returns whether all eigenvalues of the tridiagonal matrix T of order m are
 * below x: then the pivots of x I - T are positive. */
static bool all_below(int m, const double *diagonal, const double *off,
                      double x)
{
    double pivot = x - diagonal[0];

    for (int i = 1; pivot > 0 && i < m; i++)
        pivot = x - diagonal[i] - off[i - 1] * off[i - 1] / pivot;
    return pivot > 0;
}

/* *rho = the largest eigenvalue of the tridiagonal matrix of order m, found by
 * bisection between its largest diagonal element and Gershgorin's bound. */
static sps_status largest(sps_context *ctx, int m, const double *diagonal,
                          const double *off, double *rho)
{
    double low = diagonal[0], high = -INFINITY, sum = 0;
    sps_status st = SPS_OK;

    for (int i = 0; i < m; i++) {
        const double left = i > 0 ? fabs(off[i - 1]) : 0;
        const double right = i + 1 < m ? fabs(off[i]) : 0;

        low = fmax(low, diagonal[i]);
        high = fmax(high, diagonal[i] + left + right);
        sum += fabs(diagonal[i]) + left;
    }
    SPS_REQUIRE(ctx, isfinite(sum), SPS_EUNFIT, "amg: the matrix has "
                "entries that are not finite or too large");
    for (int t = 0; t < 60 && low < high; t++) {
        const double x = low + 0.5 * (high - low);

        if (all_below(m, diagonal, off, x)) high = x;
        else low = x;
    }
    *rho = high;
fail:
    return st;
}

sps_status spsi_amg_ritz(sps_context *ctx, const double *diagonal,
                         const double *off, double *rho)
{
    return largest(ctx, steps_of(diagonal, off), diagonal, off, rho);
}

/* bound[0] and bound[1] = the largest row sums of |H| and of |S^2 A|. */
static void bound_rows(sps_context *ctx, job *j, double bound[2])
{
    const int64_t chunks = (j->A->nrow + CHUNK - 1) / CHUNK;

    bound[0] = bound[1] = 0;
    spsi_team_run(ctx, chunks, 2 * j->A->nnz, row_sums, j);
    for (int64_t c = 0; c < chunks; c++) {
        bound[0] = fmax(bound[0], j->part[c]);
        bound[1] = fmax(bound[1], j->part[chunks + c]);
    }
}

/* Allocates the vectors of j: *room_p and j->part, which the caller frees. */
static sps_status open_job(sps_context *ctx, job *j, double **room_p)
{
    const int64_t n = j->A->nrow;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, 3 * n + (j->x ? j->A->ncol : n) + 1, room_p));
    SPS_TRY(SPS_NEW(ctx, 2 * (n / CHUNK + 1), &j->part));
    j->v = *room_p;
    j->before = j->v + n;
    j->w = j->v + 2 * n;
    j->y = j->v + 3 * n;
fail:
    return st;
}

sps_status spsi_amg_spectrum(sps_context *ctx, const sps_csr *A,
                             const double *scale, double *rho, double *bound)
{
    job j = { .A = A, .s = scale, .column = scale };
    double diagonal[STEPS], off[STEPS - 1], bounds[2], *room = NULL;
    sps_status st;

    SPS_TRY(open_job(ctx, &j, &room));
    bound_rows(ctx, &j, bounds);
    *bound = fmin(bounds[0], bounds[1]);
    SPS_TRY(run(ctx, &j, diagonal, off));
    SPS_TRY(spsi_amg_ritz(ctx, diagonal, off, rho));
    SPS_TRY(spsi_check_deadline(ctx, "amg"));
fail:
    spsi_free(ctx, room);
    spsi_free(ctx, j.part);
    return st;
}

sps_status spsi_amg_lanczos_across(sps_context *ctx, const sps_csr *A,
                                   const double *scale,
                                   const spsi_coarse_across *x,
                                   double *diagonal, double *off,
                                   double bound[2])
{
    job j = { .A = A, .s = scale, .x = x };
    double *room = NULL, *column = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, A->ncol + 1, &column));
    SPS_TRY(open_job(ctx, &j, &room));
    if (A->nrow > 0)
        memcpy(own_part(&j, column), scale,
               (size_t)A->nrow * sizeof *column);
    SPS_TRY(fill(&j, column));
    j.column = column;
    bound_rows(ctx, &j, bound);
    SPS_TRY(run(ctx, &j, diagonal, off));
fail:
    spsi_free(ctx, room);
    spsi_free(ctx, column);
    spsi_free(ctx, j.part);
    return st;
}
