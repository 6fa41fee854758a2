/* SPDX-License-Identifier: BSD-3-Clause */
/* oracle.c - reference results by plain triple loops. */
#include "tests/support/oracle.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "philox.h"

static double entry(const sps_csr *A, int64_t p)
{
    return A->dtype == SPS_F64 ? ((const double *)A->val)[p]
                               : (double)((const float *)A->val)[p];
}

void oracle_spmm(const sps_csr *A, double alpha, const double *X, int64_t ldx,
                 double beta, double *Y, int64_t ldy, int k, double *bound)
{
    for (int64_t i = 0; i < A->nrow; i++)
        for (int j = 0; j < k; j++) {
            double *y = &Y[i * ldy + j];
            long double sum = 0, size = 0, old = 0;

            if (alpha != 0)
                for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
                    long double t = (long double)entry(A, p) *
                                    X[(int64_t)A->col[p] * ldx + j];

                    sum += t;
                    size += fabsl(t);
                }
            if (beta != 0) old = (long double)beta * *y;
            *y = (double)((alpha != 0 ? alpha * sum : 0) + old);
            if (bound)
                bound[i * k + j] = (double)(fabsl(alpha * size) + fabsl(old));
        }
}

void oracle_sddmm(const sps_csr *A, double alpha, const double *U, int64_t ldu,
                  const double *V, int64_t ldv, int k, bool multiply,
                  double beta, double *val, double *bound)
{
    for (int64_t i = 0; i < A->nrow; i++)
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
            long double sum = 0, size = 0, old = 0;

            for (int j = 0; j < k && alpha != 0; j++) {
                long double t = (long double)U[i * ldu + j] *
                                V[(int64_t)A->col[p] * ldv + j];

                sum += t;
                size += fabsl(t);
            }
            if (multiply && alpha != 0) {
                sum *= entry(A, p);
                size *= fabsl((long double)entry(A, p));
            }
            if (beta != 0) old = (long double)beta * val[p];
            val[p] = (double)(alpha * sum + old);
            if (bound) bound[p] = (double)(fabsl(alpha * size) + fabsl(old));
        }
}

void oracle_gram(int64_t n, const double *X, int64_t ldx, int kx,
                 const double *Y, int64_t ldy, int ky, double *C, int ldc,
                 double *bound)
{
    for (int b = 0; b < ky; b++)
        for (int a = 0; a < kx; a++) {
            long double sum = 0, size = 0;

            for (int64_t i = 0; i < n; i++) {
                long double t = (long double)X[i * ldx + a] * Y[i * ldy + b];

                sum += t;
                size += fabsl(t);
            }
            C[(int64_t)b * ldc + a] = (double)sum;
            if (bound) bound[(int64_t)b * ldc + a] = (double)size;
        }
}

void oracle_mul_small(int64_t n, double a, const double *X, int64_t ldx,
                      int kx, const double *C, int ldc, int ky, double b,
                      double *Y, int64_t ldy, double *bound)
{
    long double *row = malloc((size_t)(ky + 1) * sizeof *row);

    if (!row) abort();
    for (int64_t i = 0; i < n; i++) {
        for (int j = 0; j < ky; j++) {
            long double sum = 0, size = 0, old = 0;

            for (int l = 0; l < kx; l++) {
                long double t = (long double)X[i * ldx + l] *
                                C[(int64_t)j * ldc + l];

                sum += t;
                size += fabsl(t);
            }
            if (b != 0) old = (long double)b * Y[i * ldy + j];
            row[j] = a * sum + old;
            if (bound)
                bound[i * ky + j] = (double)(fabsl(a * size) + fabsl(old));
        }
        for (int j = 0; j < ky; j++) Y[i * ldy + j] = (double)row[j];
    }
    free(row);
}

int64_t oracle_longest(const sps_csr *A)
{
    int64_t longest = 0;

    for (int64_t i = 0; i < A->nrow; i++) {
        int64_t length = A->rowptr[i + 1] - A->rowptr[i];

        if (length > longest) longest = length;
    }
    return longest;
}

int64_t oracle_differs(int64_t n, int k, const double *x, int64_t ldx,
                       const double *y, int64_t ldy)
{
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < k; j++) {
            double a = x[i * ldx + j], b = y[i * ldy + j];

            if (a != b && !(isnan(a) && isnan(b))) return i * k + j;
        }
    return -1;
}

static double ratio(double error, double allowed)
{
    if (error == 0) return 0;
    if (isnan(error) || allowed == 0) return INFINITY;
    return error / allowed;
}

double oracle_ratio(int64_t n, int k, const double *x, int64_t ldx,
                    const double *y, int64_t ldy, const double *bound,
                    int64_t length)
{
    const double u = DBL_EPSILON / 2;
    double worst = 0;

    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < k; j++) {
            double a = x[i * ldx + j], b = y[i * ldy + j], r;

            if (isnan(a) && isnan(b)) continue;
            if (isinf(a) && a == b) continue;
            r = ratio(fabs(a - b),
                      4 * (double)(length + 4) * u * bound[i * k + j]);
            if (r > worst) worst = r;
        }
    return worst;
}

double oracle_checksum(const sps_csr *A, const double *X, int64_t ldx,
                       const double *Y, int64_t ldy, int k, uint64_t seed)
{
    const double u = DBL_EPSILON / 2;
    size_t ncol = (size_t)A->ncol;
    long double *xt = calloc(ncol + 1, sizeof *xt);
    long double *size = calloc(ncol + 1, sizeof *size);
    double worst = 0;

    if (!xt || !size) abort();
    for (int64_t i = 0; i < A->ncol; i++)
        for (int j = 0; j < k; j++) {
            long double t = spsi_philox_at(seed, j, 0) * (long double)1;

            xt[i] += t * X[i * ldx + j];
            size[i] += fabsl(t * X[i * ldx + j]);
        }
    for (int64_t i = 0; i < A->nrow; i++) {
        long double left = 0, right = 0, bound = 0;
        int64_t length = A->rowptr[i + 1] - A->rowptr[i];
        double r;

        for (int j = 0; j < k; j++)
            left += (long double)spsi_philox_at(seed, j, 0) * Y[i * ldy + j];
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
            right += entry(A, p) * xt[A->col[p]];
            bound += fabsl((long double)entry(A, p)) * size[A->col[p]];
        }
        r = ratio((double)fabsl(left - right),
                  4 * (double)(length + k + 4) * u * (double)bound);
        if (r > worst) worst = r;
    }
    free(xt);
    free(size);
    return worst;
}
