/* SPDX-License-Identifier: BSD-3-Clause */
/* small.c - k x k matrices.  LAPACKE is called only here, in small_first.c,
 * small_factors.c, upper.c and inverse.c.
 *
 * Products do not use BLAS: their bits must not depend on its threads, and even
 * at k = 1024 their 2 k^3 operations are negligible beside the block's 2 n k^2.
 * Values that are not finite are never passed to LAPACK (some versions do not
 * terminate on infinities): the results are NaN instead, which callers detect.
 *
 * The max_rows x max_cols elements of a matrix are followed by 2 max_rows more,
 * scratch memory for scalings and eigenvalues, so that no allocation is needed
 * later. */
#include "block/small.h"
#include "core/backend.h"
#include "core/blas.h"
#include "core/comm.h"

#include <assert.h>
#include <lapacke.h>
#include <math.h>
#include <string.h>

/* Returns the number of doubles to allocate: the elements, and the scratch
 * memory after them. */
static int64_t room(const sps_small *C)
{
    return (int64_t)C->max_rows * (C->max_cols + 2);
}

static sps_status create(sps_context *ctx, sps_place place, int max_rows,
                         int max_cols, sps_small **C_p)
{
    sps_status st;
    sps_small *C = NULL;

    SPS_TRY(SPS_NEW(ctx, 1, &C));
    C->ctx = ctx;
    C->place = place;
    C->max_rows = max_rows > 0 ? max_rows : 1;
    C->max_cols = max_cols > 0 ? max_cols : 1;
    C->rows = max_rows;
    C->cols = max_cols;
    if (spsi_small_on_host(C)) {
        SPS_TRY(SPS_NEW(ctx, room(C), &C->v));
    } else {
        void *p = NULL;

        SPS_TRY(ctx->backend->alloc(ctx, (size_t)room(C) * sizeof *C->v, &p));
        C->v = p;
    }
    *C_p = C;
    return SPS_OK;

fail:
    spsi_small_destroy(&C);
    return st;
}

sps_status spsi_small_create(sps_context *ctx, int max_rows, int max_cols,
                             sps_small **C_p)
{
    return create(ctx, SPS_HOST, max_rows, max_cols, C_p);
}

sps_status spsi_small_create_device(sps_context *ctx, int max_rows,
                                    int max_cols, sps_small **C_p)
{
    return create(ctx, spsi_comm_many(ctx) ? SPS_HOST : ctx->backend->place,
                  max_rows, max_cols, C_p);
}

void spsi_small_destroy(sps_small **C_p)
{
    sps_small *C = *C_p;

    *C_p = NULL;
    if (!C) return;
    if (spsi_small_on_host(C))
        spsi_free(C->ctx, C->v);
    else if (C->v)
        C->ctx->backend->release(C->ctx, C->v, (size_t)room(C) * sizeof *C->v);
    spsi_free(C->ctx, C);
}

sps_status spsi_small_enlarge(sps_small **C_p, int max_rows, int max_cols)
{
    sps_small *larger = NULL;
    sps_status st;

    SPS_TRY(spsi_small_create((*C_p)->ctx, max_rows, max_cols, &larger));
    SPS_TRY(spsi_small_copy(*C_p, larger));
    spsi_small_destroy(C_p);
    *C_p = larger;
    return SPS_OK;
fail:
    spsi_small_destroy(&larger);
    return st;
}

void spsi_small_shape(sps_small *C, int rows, int cols)
{
    assert(0 <= rows && rows <= C->max_rows);
    assert(0 <= cols && cols <= C->max_cols);
    C->rows = rows;
    C->cols = cols;
}

void spsi_small_clear(sps_small *C)
{
    size_t count = (size_t)C->rows * (size_t)C->cols;

    if (count) memset(C->v, 0, count * sizeof *C->v);
}

bool spsi_small_finite(const sps_small *C)
{
    assert(spsi_small_on_host(C));
    for (int t = 0; t < C->rows * C->cols; t++)
        if (!isfinite(C->v[t])) return false;
    return true;
}

sps_status spsi_small_copy(const sps_small *A, sps_small *B)
{
    const sps_backend *f = A->ctx->backend;
    size_t bytes = (size_t)A->rows * (size_t)A->cols * sizeof *A->v;

    spsi_small_shape(B, A->rows, A->cols);
    if (bytes == 0) return SPS_OK;
    if (!spsi_small_on_host(A) && !spsi_small_on_host(B)) return f->copy(A->ctx, B->v, A->v, bytes);
    if (!spsi_small_on_host(A)) return f->download(A->ctx, B->v, A->v, bytes);
    if (!spsi_small_on_host(B)) return f->upload(A->ctx, B->v, A->v, bytes);
    memcpy(B->v, A->v, bytes);
    return SPS_OK;
}

void spsi_small_symmetrise(sps_small *A)
{
    assert(A->rows == A->cols && spsi_small_on_host(A));
    for (int j = 0; j < A->cols; j++)
        for (int i = 0; i < j; i++) {
            double *upper = spsi_small_at(A, i, j);
            double *lower = spsi_small_at(A, j, i);

            *upper = *lower = 0.5 * *upper + 0.5 * *lower;
        }
}

/* --- product */

/* c += s a for vectors of length m; the next function returns a'b. */
static void add_scaled(int m, double s, const double *restrict a,
                       double *restrict c)
{
#pragma omp simd
    for (int i = 0; i < m; i++) c[i] += s * a[i];
}

static double dot(int m, const double *a, const double *b)
{
    double sum = 0;

#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < m; i++) sum += a[i] * b[i];
    return sum;
}

/* c = b c for m elements; b = 0 clears NaN too. */
static void scale(int m, double b, double *c)
{
    for (int i = 0; i < m; i++) c[i] = b == 0 ? 0 : b * c[i];
}

sps_status spsi_small_mul(double a, const sps_small *A, bool trans_A,
                          const sps_small *B, bool trans_B, double b,
                          sps_small *C)
{
    int rows = trans_A ? A->cols : A->rows;
    int inner = trans_A ? A->rows : A->cols;
    int cols = trans_B ? B->rows : B->cols;
    double gathered[256];

    assert(C != A && C != B && inner == (trans_B ? B->cols : B->rows));
    assert(spsi_small_on_host(A) && spsi_small_on_host(B) && spsi_small_on_host(C));
    if (b == 0) spsi_small_shape(C, rows, cols);
    assert(C->rows == rows && C->cols == cols);
    for (int j = 0; j < cols; j++) {
        double *c = spsi_small_at(C, 0, j);

        scale(rows, b, c);
        for (int from = 0; from < inner; from += 256) {
            int m = inner - from < 256 ? inner - from : 256;
            const double *x = gathered;

            if (!trans_B) x = spsi_small_at(B, from, j);
            else
                for (int l = 0; l < m; l++)
                    gathered[l] = *spsi_small_at(B, j, from + l);
            if (trans_A)
                for (int i = 0; i < rows; i++)
                    c[i] += a * dot(m, spsi_small_at(A, from, i), x);
            else
                for (int l = 0; l < m; l++)
                    add_scaled(rows, a * x[l], spsi_small_at(A, 0, from + l),
                               c);
        }
    }
    return SPS_OK;
}

/* --- LAPACK */

static void fill(int m, double *x, double value)
{
    for (int i = 0; i < m; i++) x[i] = value;
}

sps_status spsi_small_eigen(sps_small *A, double *w)
{
    sps_status st;
    lapack_int info;

    assert(A->rows == A->cols && spsi_small_on_host(A));
    if (A->rows == 0) return SPS_OK;
    info = -1;
    if (spsi_small_finite(A)) {
        SPS_TRY(spsi_blas_begin(A->ctx, 1));
        info = LAPACKE_dsyevd(LAPACK_COL_MAJOR, 'V', 'U', A->rows, A->v,
                              A->rows, w);
        spsi_blas_end(1);
    }
    SPS_REQUIRE(A->ctx, info != LAPACK_WORK_MEMORY_ERROR, SPS_ENOMEM,
                "no memory for the eigenvectors of a %d x %d matrix", A->rows,
                A->rows);
    if (info != 0) {   /* not finite, or no convergence */
        fill(A->rows, w, NAN);
        for (int j = 0; j < A->cols; j++)
            fill(A->rows, spsi_small_at(A, 0, j), NAN);
    }
    return SPS_OK;

fail:
    return st;
}

sps_status spsi_small_reflectors(sps_small *Y, sps_small *T)
{
    sps_status st = SPS_OK;
    int n = Y->rows, k = Y->cols, info;
    double *tau = spsi_small_scratch(Y);

    assert(k <= n);
    spsi_small_shape(T, k, k);
    spsi_small_clear(T);
    SPS_TRY(spsi_blas_begin(Y->ctx, 1));
    info = LAPACKE_dgeqrf(LAPACK_COL_MAJOR, n, k, Y->v, n, tau);
    for (int j = 0; j < k; j++) {
        memset(spsi_small_at(Y, 0, j), 0, (size_t)j * sizeof *tau);
        *spsi_small_at(Y, j, j) = 1;
    }
    if (info == 0)
        info = LAPACKE_dlarft(LAPACK_COL_MAJOR, 'F', 'C', n, k, Y->v, n, tau,
                              T->v, k);
    spsi_blas_end(1);
    SPS_REQUIRE(Y->ctx, info == 0, SPS_ENOMEM,
                "no memory for the reflectors of a %d x %d matrix", n, k);
fail:
    return st;
}

sps_status spsi_small_reflect(const sps_small *U, const sps_small *T,
                              sps_small *A)
{
    sps_status st = SPS_OK;
    int n = A->rows, k = U->cols, info;

    assert(A->cols == n && U->rows == n && T->rows == k && T->cols == k);
    SPS_TRY(spsi_blas_begin(A->ctx, 1));
    info = LAPACKE_dlarfb(LAPACK_COL_MAJOR, 'L', 'T', 'F', 'C', n, n, k, U->v,
                          n, T->v, k, A->v, n);
    if (info == 0)
        info = LAPACKE_dlarfb(LAPACK_COL_MAJOR, 'R', 'N', 'F', 'C', n, n, k,
                              U->v, n, T->v, k, A->v, n);
    spsi_blas_end(1);
    SPS_REQUIRE(A->ctx, info == 0, SPS_ENOMEM,
                "no memory for products with a %d x %d matrix", n, n);
fail:
    return st;
}

/* A = Q'AQ, where Q is given by the QR factorisation in D. */
static int turn(sps_small *A, const sps_small *D, const double *tau)
{
    int n = A->rows, q = D->cols, info;

    info = LAPACKE_dormqr(LAPACK_COL_MAJOR, 'L', 'T', n, n, q, D->v, n, tau,
                          A->v, n);
    if (info == 0)
        info = LAPACKE_dormqr(LAPACK_COL_MAJOR, 'R', 'N', n, n, q, D->v, n,
                              tau, A->v, n);
    return info;
}

/* Solves the pencil of the trailing n - q rows and columns of A and M, which
 * are those of the complement of D; its vectors y become x = Q [0; y] in the
 * leading columns of A. */
static int solve_part(sps_small *A, sps_small *M, const sps_small *D,
                      const double *tau, double *w)
{
    int n = A->rows, q = D->cols, left = n - q, info;
    double *a = spsi_small_at(A, q, q);

    info = M ? LAPACKE_dsygvd(LAPACK_COL_MAJOR, 1, 'V', 'U', left, a, n,
                              spsi_small_at(M, q, q), n, w)
             : LAPACKE_dsyevd(LAPACK_COL_MAJOR, 'V', 'U', left, a, n, w);
    if (info != 0) return M && info > left ? info - left : -1;
    if (q == 0) return 0;
    for (int j = 0; j < left; j++) {
        memmove(spsi_small_at(A, q, j), spsi_small_at(A, q, q + j),
                (size_t)left * sizeof *w);
        memset(spsi_small_at(A, 0, j), 0, (size_t)q * sizeof *w);
    }
    return LAPACKE_dormqr(LAPACK_COL_MAJOR, 'L', 'N', n, left, q, D->v, n, tau,
                          A->v, n) ? -1 : 0;
}

sps_status spsi_small_eigen_pencil(sps_small *A, sps_small *M, sps_small *D,
                                   double *w, int *info)
{
    sps_status st = SPS_OK;
    int n = A->rows, q = D->cols;
    double *tau = NULL;
    bool begun = false;

    assert(A->cols == n && D->rows == n && q < n);
    *info = 0;
    SPS_TRY(SPS_NEW(A->ctx, q, &tau));
    SPS_TRY(spsi_blas_begin(A->ctx, 1));
    begun = true;
    if (!spsi_small_finite(A) || (M && !spsi_small_finite(M))) *info = -1;
    if (*info == 0 && q > 0) {
        *info = LAPACKE_dgeqrf(LAPACK_COL_MAJOR, n, q, D->v, n, tau);
        if (*info == 0) *info = turn(A, D, tau);
        if (*info == 0 && M) *info = turn(M, D, tau);
    }
    SPS_REQUIRE(A->ctx, *info != LAPACK_WORK_MEMORY_ERROR, SPS_ENOMEM,
                "no memory for the eigenvectors of a %d x %d matrix", n, n);
    if (*info == 0) *info = solve_part(A, M, D, tau, w);
fail:
    if (begun) spsi_blas_end(1);
    spsi_free(A->ctx, tau);
    return st;
}

/* Diagonal blocks of D of order 2 are marked by equal negative pivots; they
 * have one eigenvalue of each sign (Bunch and Kaufman, Math. Comp. 31,
 * 1977). */
sps_status spsi_small_inertia(sps_small *A, int *negative)
{
    const lapack_int n = A->rows;
    sps_status st = SPS_OK;
    lapack_int *pivot = NULL, info = 0;

    assert(A->cols == n && spsi_small_on_host(A));
    *negative = 0;
    SPS_TRY(SPS_NEW(A->ctx, n, &pivot));
    SPS_REQUIRE(A->ctx, spsi_small_finite(A), SPS_EMATRIX,
                "the small matrix whose negative eigenvalues are counted has a "
                "NaN or infinity");
    SPS_TRY(spsi_blas_begin(A->ctx, 1));
    if (n > 0)
        info = LAPACKE_dsytrf(LAPACK_COL_MAJOR, 'U', n, A->v, n, pivot);
    spsi_blas_end(1);
    SPS_REQUIRE(A->ctx, info != LAPACK_WORK_MEMORY_ERROR, SPS_ENOMEM,
                "no workspace for a %d x %d matrix", (int)n, (int)n);
    for (int i = 0; i < n; i++) {
        if (pivot[i] > 0) {
            *negative += *spsi_small_at(A, i, i) < 0;
        } else {
            ++*negative;
            i++;
        }
    }
fail:
    spsi_free(A->ctx, pivot);
    return st;
}
