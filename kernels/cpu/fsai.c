/* SPDX-License-Identifier: BSD-3-Clause */
/* fsai.c - rows and columns of factored sparse approximate inverses: with S the
 * columns of row i of the lower pattern, i the last of them,
 *
 *   g_i = last row, v_i = last column of A(S, S)^-1,  t_i their common entry;
 *
 * then G A V' is diag(t) as far as the pattern goes (Kolotilina and Yeremin,
 * SIAM J. Matrix Anal. Appl. 14, 1993; the nonsymmetric form there, section 4).
 * Gauss with row pivoting on the dense matrix, 2/3 m^3 operations for a row of
 * m entries; own loops, since calls of LAPACK would cost more than the rows.
 * Rows are independent. */
#include "rows.h"

#include <float.h>
#include <math.h>
#ifdef _OPENMP
#include <omp.h>
#endif

typedef struct room {
    double *d;                /* m x m, by rows */
    int32_t *pivot;           /* m */
} room;

/* D = A(S, S) for the m sorted columns S. */
static void gather(const sps_csr *A, const int32_t *S, int64_t m, double *D)
{
    memset(D, 0, (size_t)(m * m) * sizeof *D);
    for (int64_t r = 0; r < m; r++) {
        int64_t p = A->rowptr[S[r]], c = 0;

        while (p < A->rowptr[S[r] + 1] && c < m) {
            if (A->col[p] == S[c]) D[r * m + c] = spsi_csr_value(A, p);
            if (A->col[p] <= S[c]) p++;
            else c++;
        }
    }
}

/* P D = L U in place; false: singular to working precision. */
static bool factor(double *D, int64_t m, int32_t *pivot)
{
    double largest = 0;

    for (int64_t t = 0; t < m * m; t++) largest = fmax(largest, fabs(D[t]));
    for (int64_t s = 0; s < m; s++) {
        int64_t best = s;

        for (int64_t r = s + 1; r < m; r++)
            if (fabs(D[r * m + s]) > fabs(D[best * m + s])) best = r;
        pivot[s] = (int32_t)best;
        if (!(fabs(D[best * m + s]) > DBL_EPSILON * largest)) return false;
        for (int64_t c = 0; c < m && best != s; c++) {
            const double t = D[s * m + c];

            D[s * m + c] = D[best * m + c];
            D[best * m + c] = t;
        }
        for (int64_t r = s + 1; r < m; r++) {
            const double l = D[r * m + s] /= D[s * m + s];

            for (int64_t c = s + 1; l != 0 && c < m; c++)
                D[r * m + c] -= l * D[s * m + c];
        }
    }
    return true;
}

/* x = last column of D^-1. */
static void last_column(const double *D, const int32_t *pivot, int64_t m,
                        double *x)
{
    memset(x, 0, (size_t)m * sizeof *x);
    x[m - 1] = 1;
    for (int64_t s = 0; s < m; s++) {
        const double t = x[s];

        x[s] = x[pivot[s]];
        x[pivot[s]] = t;
        for (int64_t c = 0; c < s; c++) x[s] -= D[s * m + c] * x[c];
    }
    for (int64_t s = m - 1; s >= 0; s--) {
        for (int64_t c = s + 1; c < m; c++) x[s] -= D[s * m + c] * x[c];
        x[s] /= D[s * m + s];
    }
}

/* x = last row of D^-1: x D = e', so x P' L U = e'. */
static void last_row(const double *D, const int32_t *pivot, int64_t m,
                     double *x)
{
    memset(x, 0, (size_t)m * sizeof *x);
    x[m - 1] = 1 / D[m * m - 1];      /* y U = e' */
    for (int64_t s = m - 2; s >= 0; s--)      /* z L = y, unit */
        for (int64_t r = s + 1; r < m; r++) x[s] -= x[r] * D[r * m + s];
    for (int64_t s = m - 1; s >= 0; s--) {
        const double t = x[s];

        x[s] = x[pivot[s]];
        x[pivot[s]] = t;
    }
}

static bool usable(const double *x, int64_t m, bool positive)
{
    for (int64_t t = 0; t < m; t++)
        if (!isfinite(x[t])) return false;
    return positive ? x[m - 1] > 0 : x[m - 1] != 0;
}

/* The row without the others: 1 / |a_ii|. */
static void alone(int64_t m, double d, double *g)
{
    memset(g, 0, (size_t)m * sizeof *g);
    g[m - 1] = d != 0 && isfinite(1 / d) ? 1 / fabs(d) : 1;
}

static bool make_row(const sps_csr *A, const sps_csr *G, int64_t i,
                     bool symmetric, room w, double *g, double *v)
{
    const int64_t m = G->rowptr[i + 1] - G->rowptr[i];
    double d;
    bool good;

    gather(A, G->col + G->rowptr[i], m, w.d);
    d = w.d[m * m - 1];
    good = factor(w.d, m, w.pivot);
    if (good) last_row(w.d, w.pivot, m, g);
    if (good && symmetric) memcpy(v, g, (size_t)m * sizeof *v);
    if (good && !symmetric) last_column(w.d, w.pivot, m, v);
    good = good && usable(g, m, symmetric) && usable(v, m, symmetric);
    if (!good) {
        alone(m, d, g);
        memcpy(v, g, (size_t)m * sizeof *v);
    }
    return good;
}

static int thread_number(void)
{
#ifdef _OPENMP
    return omp_get_thread_num();
#else
    return 0;
#endif
}

sps_status spsi_cpu_csr_fsai(sps_context *ctx, const sps_csr *A, sps_csr *G,
                             double *v, bool symmetric, int64_t *bad)
{
    const int threads = ctx->threads;
    sps_status st;
    double *numbers = NULL, *g = G->val;
    int32_t *pivots = NULL;
    int64_t longest = 1, lost = 0, each;

    for (int64_t i = 0; i < G->nrow; i++)
        if (G->rowptr[i + 1] - G->rowptr[i] > longest)
            longest = G->rowptr[i + 1] - G->rowptr[i];
    each = longest * longest;
    SPS_TRY(SPS_NEW(ctx, threads * each, &numbers));
    SPS_TRY(SPS_NEW(ctx, threads * longest, &pivots));
#pragma omp parallel for num_threads(threads) schedule(dynamic, 256)           \
    reduction(+ : lost) if (pays(G->nrow, longest * longest))
    for (int64_t i = 0; i < G->nrow; i++) {
        const int t = thread_number();
        const room w = { numbers + t * each, pivots + t * longest };

        lost += !make_row(A, G, i, symmetric, w, g + G->rowptr[i],
                          v + G->rowptr[i]);
    }
    *bad = lost;
fail:
    spsi_free(ctx, numbers);
    spsi_free(ctx, pivots);
    return st;
}
