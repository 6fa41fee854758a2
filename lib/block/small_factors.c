/* SPDX-License-Identifier: BSD-3-Clause */
/* small_factors.c - factors of k x k matrices: solves with SPD matrices, rank-
 * revealing orthonormalisation, and LU and Cholesky factors by LAPACK. */
#include "block/small.h"
#include "block/cholesky.h"
#include "core/blas.h"

#include <assert.h>
#include <float.h>
#include <lapacke.h>
#include <math.h>
#include <string.h>

/* d_j = a_jj^-1/2, or 0 where a_jj is not positive and finite; returns the
 * number of zeros. */
static int diagonal_scaling(const sps_small *A, double *d)
{
    int bad = 0;

    for (int j = 0; j < A->cols; j++) {
        double a = *spsi_small_at(A, j, j);
        bool good = a > 0 && a <= DBL_MAX;

        d[j] = good ? 1 / sqrt(a) : 0;
        bad += !good;
    }
    return bad;
}

/* A = diag(d) A diag(d); a zero in d clears its row and column, including
 * NaN. */
static void scale_both(sps_small *A, const double *d)
{
    for (int j = 0; j < A->cols; j++)
        for (int i = 0; i < A->rows; i++) {
            double *a = spsi_small_at(A, i, j);

            *a = d[i] == 0 || d[j] == 0 ? 0 : *a * d[i] * d[j];
        }
}

static void scale_rows(sps_small *C, const double *d)
{
    for (int j = 0; j < C->cols; j++)
        for (int i = 0; i < C->rows; i++) *spsi_small_at(C, i, j) *= d[i];
}

/* Returns the order of the first leading minor whose last row or column is
 * invalid. */
static int first_bad(const sps_small *A, const double *d)
{
    for (int j = 0; j < A->cols; j++) {
        if (d[j] == 0) return j + 1;
        for (int i = 0; i <= j; i++)
            if (!isfinite(*spsi_small_at(A, i, j))) return j + 1;
    }
    return 0;
}

/* Solves A X = C for an A of unit diagonal. */
static sps_status solve_many(sps_small *A, sps_small *C, int *info)
{
    lapack_int failed;
    sps_status st;

    SPS_TRY(spsi_blas_begin(A->ctx, 1));
    failed = LAPACKE_dposv_work(LAPACK_COL_MAJOR, 'U', A->rows, C->cols, A->v,
                                A->rows, C->v, C->rows);
    spsi_blas_end(1);
    SPS_REQUIRE(A->ctx, failed >= 0, SPS_EBUG,
                "dposv rejected its argument %d", (int)-failed);
    *info = (int)failed;
fail:
    return st;
}

sps_status spsi_small_solve_spd(sps_small *A, sps_small *C, int *info)
{
    sps_status st;
    double *d = spsi_small_scratch(A);

    assert(A->rows == A->cols && C->rows == A->rows);
    assert(spsi_small_on_host(A) && spsi_small_on_host(C));
    *info = 0;
    if (A->rows == 0 || C->cols == 0) return SPS_OK;
    diagonal_scaling(A, d);
    *info = first_bad(A, d);
    if (*info) return SPS_OK;
    scale_both(A, d);
    scale_rows(C, d);
    st = SPS_OK;
    if (A->rows <= SPS_CHOLESKY_MOST && C->cols <= SPS_CHOLESKY_MOST)
        *info = spsi_cholesky_solve(A, C);
    else
        st = solve_many(A, C, info);
    scale_rows(C, d);
    return st;
}

/* --- rank-revealing orthonormalisation (SVQB: Stathopoulos and Wu, A block
 *     orthogonalization procedure with constant synchronization requirements,
 *     SISC 23(6), 2002)
 *
 *     S = D^-1/2 G D^-1/2 = V W V',  T = D^-1/2 V W^-1/2
 *
 * Eigenvalues below m eps wmax are rounding errors of S itself.  They never
 * count as directions, however small the tolerance; or (uncover) they are
 * replaced by m eps wmax, and a second pass determines them. */

double spsi_small_visible(int m)
{
    return sqrt(m * DBL_EPSILON);
}

static int kept(int m, const double *w, double tolerance)
{
    double least = fmax(tolerance * tolerance, m * DBL_EPSILON) * w[m - 1];
    int rank = 0;

    if (!(w[m - 1] > 0)) return 0;   /* NaN too */
    while (rank < m && w[m - 1 - rank] > least) rank++;
    return rank;
}

/* Raises eigenvalues below m eps wmax to that value, unless the tolerance drops
 * them; returns the number of directions that remain. */
static int raised(int m, double *w, double tolerance, int rank)
{
    const double least = spsi_small_visible(m);

    if (rank == 0 || tolerance >= least) return rank;
    for (int t = 0; t < m - rank; t++) w[t] = least * least * w[m - 1];
    return m;
}

sps_status spsi_small_orthonormaliser(sps_small *G, double tolerance,
                                      sps_small *T, int *rank,
                                      double *condition)
{
    return spsi_small_uncover(G, tolerance, T, rank, NULL, condition);
}

sps_status spsi_small_uncover(sps_small *G, double tolerance, sps_small *T,
                              int *rank, int *sure, double *condition)
{
    sps_status st;
    int m = G->rows;
    double *d = spsi_small_scratch(G), *w = d + G->max_rows;

    assert(G->rows == G->cols && G != T && spsi_small_on_host(G) && spsi_small_on_host(T));
    *rank = 0;
    if (sure) *sure = 0;
    *condition = 1;
    if (m == 0) {
        spsi_small_shape(T, 0, 0);
        return SPS_OK;
    }
    diagonal_scaling(G, d);
    scale_both(G, d);
    SPS_TRY(spsi_small_eigen(G, w));
    *rank = kept(m, w, tolerance);
    if (sure) {
        *sure = *rank;
        *rank = raised(m, w, tolerance, *rank);
    }
    spsi_small_shape(T, m, *rank);
    for (int t = 0; t < *rank; t++) {   /* strongest direction first */
        const double *v = spsi_small_at(G, 0, m - 1 - t);
        double s = 1 / sqrt(w[m - 1 - t]);

        for (int i = 0; i < m; i++) *spsi_small_at(T, i, t) = d[i] * v[i] * s;
    }
    if (*rank) *condition = sqrt(w[m - 1] / w[m - *rank]);
    return SPS_OK;

fail:
    return st;
}

/* Without pivots, Cholesky factors of the lower triangle. */
sps_status spsi_small_factor(sps_small *A, int32_t *pivot, int *info)
{
    const lapack_int n = A->rows;
    sps_status st = SPS_OK;

    assert(A->rows == A->cols && spsi_small_on_host(A));
    *info = 0;
    if (n == 0) return SPS_OK;
    SPS_TRY(spsi_blas_begin(A->ctx, 1));
    *info = (int)(pivot ? LAPACKE_dgetrf_work(LAPACK_COL_MAJOR, n, n, A->v,
                                              A->max_rows, pivot)
                        : LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'L', n, A->v,
                                              A->max_rows));
    spsi_blas_end(1);
    /* What is not finite in A is not finite in its factors. */
    if (*info == 0 && !spsi_small_finite(A)) *info = (int)n;
fail:
    return st;
}

sps_status spsi_small_cholesky(sps_small *A, int *info)
{
    return spsi_small_factor(A, NULL, info);
}

sps_status spsi_small_solve(const sps_small *A, const int32_t *pivot,
                            double *X, int k)
{
    const lapack_int n = A->rows;
    sps_status st = SPS_OK;

    if (n == 0 || k == 0) return SPS_OK;
    SPS_TRY(spsi_blas_begin(A->ctx, 1));
    if (pivot)
        LAPACKE_dgetrs_work(LAPACK_COL_MAJOR, 'N', n, k, A->v, A->max_rows,
                            pivot, X, n);
    else
        LAPACKE_dpotrs_work(LAPACK_COL_MAJOR, 'L', n, k, A->v, A->max_rows, X,
                            n);
    spsi_blas_end(1);
fail:
    return st;
}

sps_status spsi_small_least_squares(sps_small *A, double *B, int ld, int k,
                                    double cut, int32_t *order,
                                    int *rank)
{
    const int most = A->rows > A->cols ? A->rows : A->cols;
    lapack_int found = 0, info;
    sps_status st;

    memset(order, 0, (size_t)A->cols * sizeof *order);
    SPS_TRY(spsi_blas_begin(A->ctx, 1));
    info = LAPACKE_dgelsy(LAPACK_COL_MAJOR, A->rows, A->cols, k, A->v, A->rows,
                          B, ld, order, fmax(cut, most * DBL_EPSILON), &found);
    spsi_blas_end(1);
    SPS_REQUIRE(A->ctx, info != LAPACK_WORK_MEMORY_ERROR, SPS_ENOMEM,
                "no memory for least squares of %d x %d", A->rows, A->cols);
    *rank = info == 0 ? (int)found : -1;
fail:
    return st;
}

sps_status spsi_small_invert(sps_small *A, int *info)
{
    const lapack_int n = A->rows, ld = A->max_rows;
    sps_status st = SPS_OK;
    lapack_int *pivot = NULL, failed = 1;

    assert(A->rows == A->cols && spsi_small_on_host(A));
    *info = 0;
    if (n == 0) return SPS_OK;
    SPS_TRY(SPS_NEW(A->ctx, n, &pivot));
    if (spsi_small_finite(A)) {
        SPS_TRY(spsi_blas_begin(A->ctx, 1));
        failed = LAPACKE_dgetrf(LAPACK_COL_MAJOR, n, n, A->v, ld, pivot);
        if (failed == 0)
            failed = LAPACKE_dgetri(LAPACK_COL_MAJOR, n, A->v, ld, pivot);
        spsi_blas_end(1);
        SPS_REQUIRE(A->ctx, failed != LAPACK_WORK_MEMORY_ERROR, SPS_ENOMEM,
                    "no memory for the inverse of a %d x %d matrix", (int)n,
                    (int)n);
    }
    if (failed == 0 && !spsi_small_finite(A)) failed = n;
    *info = (int)failed;
fail:
    spsi_free(A->ctx, pivot);
    return st;
}
