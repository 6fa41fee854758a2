/* SPDX-License-Identifier: BSD-3-Clause */
/* fsai.c - rows and columns of factored sparse approximate inverses: with S the
 * columns of row i of the lower pattern, i the last of them,
 *
 *   g_i = last row, v_i = last column of A(S, S)^-1,  t_i their common entry;
 *
 * then G A V' is diag(t) as far as the pattern goes (Kolotilina and Yeremin,
 * SIAM J. Matrix Anal. Appl. 14, 1993; the nonsymmetric form there, section 4).
 * LU with row pivoting of the dense matrix, 2/3 m^3 operations for a row of m
 * entries.  Rows are independent; each thread has a room of its own. */
#include "rows.h"
#include "lib/inverse.h"

#include <math.h>
#ifdef _OPENMP
#include <omp.h>
#endif

typedef struct room {
    double *d;                /* m x m, by rows */
    int *pivot;               /* m */
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
    /* By rows, so the transposed one: rows and columns change places. */
    good = spsi_inverse_end(w.d, (int)m, w.pivot, symmetric ? NULL : v, g);
    if (good && symmetric) memcpy(v, g, (size_t)m * sizeof *v);
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
    int *pivots = NULL;
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
