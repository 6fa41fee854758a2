/* SPDX-License-Identifier: BSD-3-Clause */
/* upper.c - triangular systems of least-squares problems, which may be singular
 * or nearly so.  A diagonal computed without pivoting does not reveal the rank,
 * and two pivots of 1e-15 make an x of 1e30; so the length of x decides whether
 * it is meaningful.  Only if it may not be, a rank-revealing factorisation of
 * O(n^3) is computed.
 *
 * Of the two solutions the one with the smaller residual is returned: the rank
 * is truncated at n eps ||R||, but rounding errors are seldom that large, and a
 * triangle whose columns have lengths of 1e7 to 1 (from a preconditioner that
 * fails in some directions) needs an x of that length.
 *
 * If R was built step by step, as a Krylov space grows, the last steps may make
 * x so long that its rounding error exceeds their reduction of the residual;
 * then the x of fewer steps is better. */
#include "block/upper.h"
#include "core/blas.h"

#include <float.h>
#include <lapacke.h>
#include <math.h>
#include <string.h>

/* R has n columns with leading dimension ld; `largest` is its largest |pivot|,
 * and `tolerance` is max(16, n) eps. */
struct upper {
    const double *R;
    int n, ld;
    double largest, tolerance;
};

static double pivot(const struct upper *u, int j)
{
    return fabs(u->R[(int64_t)j * u->ld + j]);
}

/* y -= R x. */
static void take_off(const struct upper *u, const double *x, double *y)
{
    for (int j = 0; j < u->n; j++) {
        const double *column = u->R + (int64_t)j * u->ld;

        for (int i = 0; i <= j; i++) y[i] -= x[j] * column[i];
    }
}

static double longest(int n, const double *x)
{
    double most = 0;

    for (int j = 0; j < n; j++) {
        if (!isfinite(x[j])) return INFINITY;
        most = fmax(most, fabs(x[j]));
    }
    return most;
}

/* x = R^-1 b; returns false if x may be dominated by rounding, by the criterion
 * of upper.h. */
static bool solve_regular(const struct upper *u, const double *b, double *x)
{
    bool safe = true;

    memcpy(x, b, (size_t)u->n * sizeof *x);
    for (int j = u->n - 1; j >= 0; j--) {
        const double *column = u->R + (int64_t)j * u->ld;

        safe = safe && pivot(u, j) > u->tolerance * u->largest;
        x[j] /= column[j];
        for (int i = 0; i < j; i++) x[i] -= x[j] * column[i];
    }
    return safe && u->tolerance * u->largest * longest(u->n, x) <=
                   longest(u->n, b);
}

/* Computes the shortest least-squares solution for each column of B (n x k,
 * overwritten by x), with R replaced by its leading part of condition below 1 /
 * u->tolerance (LAPACKE_dgelsy).  `room` is scratch memory of n^2 doubles. */
static sps_status solve_cut(sps_context *ctx, const struct upper *u, int k,
                            double *B, double *room)
{
    const int n = u->n;
    sps_status st = SPS_OK;
    lapack_int *order = NULL, rank, info;

    SPS_TRY(SPS_NEW(ctx, n, &order));
    memset(room, 0, (size_t)n * (size_t)n * sizeof *room);
    for (int j = 0; j < n; j++)
        memcpy(room + (int64_t)j * n, u->R + (int64_t)j * u->ld,
               (size_t)(j + 1) * sizeof *room);
    SPS_TRY(spsi_blas_begin(ctx, 1));
    info = LAPACKE_dgelsy(LAPACK_COL_MAJOR, n, n, k, room, n, B, n, order,
                          u->tolerance, &rank);
    spsi_blas_end(1);
    SPS_REQUIRE(ctx, info != LAPACK_WORK_MEMORY_ERROR, SPS_ENOMEM,
                "no memory for least squares of order %d", n);
fail:
    spsi_free(ctx, order);
    return st;
}

/* Returns max |b - R x|, plus the rounding error of R and of R x. */
static double expected(const struct upper *u, const double *b, const double *x,
                       double *room)
{
    memcpy(room, b, (size_t)u->n * sizeof *room);
    take_off(u, x, room);
    return longest(u->n, room) +
           DBL_EPSILON * u->largest * longest(u->n, x);
}

static bool all_finite(const struct upper *u)
{
    for (int j = 0; j < u->n; j++)
        if (!isfinite(longest(j + 1, u->R + (int64_t)j * u->ld))) return false;
    return true;
}

/* Copies column c of b (leading dimension ldb) to column c of B (n x k) if it
 * is finite, and clears that column otherwise. */
static void take_finite(int n, int k, const double *b, int ldb, double *B)
{
    for (int c = 0; c < k; c++, b += ldb, B += n)
        if (isfinite(longest(n, b))) memcpy(B, b, (size_t)n * sizeof *B);
        else memset(B, 0, (size_t)n * sizeof *B);
}

/* Solves for k columns of which some may be dominated by rounding: one
 * factorisation for all of them. */
static sps_status solve_doubtful(sps_context *ctx, const struct upper *u,
                                 int k, const double *b, int ldb, double *x,
                                 int ldx)
{
    const int n = u->n;
    sps_status st = SPS_OK;
    const bool finite_R = all_finite(u);
    double *room = NULL, *cut;

    SPS_TRY(SPS_NEW(ctx, (int64_t)n * (n + k), &room));
    cut = room + (int64_t)n * n;
    take_finite(n, k, b, ldb, cut);
    if (finite_R) SPS_TRY(solve_cut(ctx, u, k, cut, room));
    for (int c = 0; c < k; c++, b += ldb, x += ldx, cut += n) {
        if (solve_regular(u, b, x)) continue;
        if (!finite_R || !isfinite(longest(n, b)))
            for (int j = 0; j < n; j++) x[j] = NAN;
        else if (!(2 * expected(u, b, x, room) < expected(u, b, cut, room)))
            memcpy(x, cut, (size_t)n * sizeof *x);
    }
fail:
    spsi_free(ctx, room);
    return st;
}

sps_status spsi_small_solve_upper(sps_context *ctx, const double *R, int n,
                                  int ld, int k, const double *b, int ldb,
                                  double *x, int ldx)
{
    struct upper u = { R, n, ld, 0, (n > 16 ? n : 16) * DBL_EPSILON };

    if (n == 0) return SPS_OK;
    for (int j = 0; j < n; j++) u.largest = fmax(u.largest, pivot(&u, j));
    for (; k > 0; k--, b += ldb, x += ldx)
        if (!solve_regular(&u, b, x))
            return solve_doubtful(ctx, &u, k, b, ldb, x, ldx);
    return SPS_OK;
}

static double length(int n, const double *x)
{
    double sum = 0;

    for (int j = 0; j < n; j++) sum = hypot(sum, x[j]);
    return sum;
}

/* Returns ||b - R x||, plus the rounding error of R x.  `room` has n
 * doubles. */
static double total(const struct upper *u, const double *b, const double *x,
                    double *room)
{
    memcpy(room, b, (size_t)u->n * sizeof *room);
    take_off(u, x, room);
    return length(u->n, room) + DBL_EPSILON * u->largest * length(u->n, x);
}

/* Replaces x by the solution of fewer steps if its total() is lower.  `left`,
 * the norm of b in the omitted steps, only grows, so the search ends when it
 * reaches the best total.  `room` has 2 n doubles. */
static void shorten(const struct upper *u, const int *step, const double *b,
                    double *x, double *room)
{
    double *y = room + u->n, best = total(u, b, x, room), left = 0, now;

    for (int j = u->n - 1; j > 0; j--) {
        struct upper fewer = { u->R, j, u->ld, 0, 0 };

        left = hypot(left, b[j]);
        if (!(left < best)) break;
        if (step && step[j] == step[j - 1]) continue;
        memset(y, 0, (size_t)u->n * sizeof *y);
        (void)solve_regular(&fewer, b, y);
        now = total(u, b, y, room);
        if (!(now < best)) continue;
        best = now;
        memcpy(x, y, (size_t)u->n * sizeof *x);
    }
}

sps_status spsi_small_solve_steps(sps_context *ctx, const double *R, int n,
                                  int ld, const int *step, const double *rest,
                                  int k, const double *b, int ldb, double *x,
                                  int ldx, double *room)
{
    const double visible = 0.03;   /* rounding below this fraction of rest is
                                      negligible */
    struct upper u = { R, n, ld, 0, 0 };
    sps_status st;

    SPS_TRY(spsi_small_solve_upper(ctx, R, n, ld, k, b, ldb, x, ldx));
    for (int j = 0; j < n; j++) u.largest = fmax(u.largest, pivot(&u, j));
    for (int c = 0; c < k; c++, b += ldb, x += ldx)
        if (DBL_EPSILON * u.largest * length(n, x) > visible * rest[c])
            shorten(&u, step, b, x, room);
fail:
    return st;
}
