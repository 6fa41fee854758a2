/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_fsai.c - rows and columns of factored sparse approximate inverses.  With
 * S the columns of row i of the lower pattern, of which i is the last,
 *
 *   g_i = last row, v_i = last column of A(S, S)^-1,  t_i their common entry;
 *
 * then G A V' equals diag(t) within the pattern (Kolotilina and Yeremin, SIAM
 * J. Matrix Anal. Appl. 14, 1993; the nonsymmetric form is in section 4).  They
 * are computed by LU with row pivoting of the dense matrix A(S, S), in 2/3 m^3
 * operations for a row of m entries.  Rows are independent; each thread has its
 * own work arrays. */
#include "core/deadline.h"
#include "cpu/rows.h"
#include "core/blas.h"
#include "block/inverse.h"
#include "matrix/csr.h"

#include <math.h>

typedef struct room {
    double *d;                /* m x m elements, row-major */
    int *pivot;               /* m elements */
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

/* Sets the row of a singular matrix: only its diagonal entry, 1 / |a_ii|. */
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
    /* D is row-major and spsi_inverse_end expects column-major: its last row is
     * the last column of A(S, S)^-1 and vice versa. */
    good = spsi_inverse_end(w.d, (int)m, w.pivot, symmetric ? NULL : v, g);
    if (good && symmetric) memcpy(v, g, (size_t)m * sizeof *v);
    good = good && usable(g, m, symmetric) && usable(v, m, symmetric);
    if (!good) {
        alone(m, d, g);
        memcpy(v, g, (size_t)m * sizeof *v);
    }
    return good;
}

typedef struct job {
    const sps_csr *A, *G;
    bool symmetric;
    double *numbers, *v;     /* numbers: longest^2 elements per thread; v: the
                                columns v_i */
    int *pivots;             /* longest elements per thread */
    int64_t longest, lost;
} job;

static void make_rows(void *data, int64_t first, int64_t last)
{
    job *j = data;
    const sps_csr *G = j->G;
    const int64_t thread = spsi_team_self();
    const room w = { j->numbers + thread * j->longest * j->longest,
                     j->pivots + thread * j->longest };
    int64_t lost = 0;

    for (int64_t i = first; i < last; i++)
        lost += !make_row(j->A, G, i, j->symmetric, w,
                          (double *)G->val + G->rowptr[i],
                          j->v + G->rowptr[i]);
    spsi_team_add(&j->lost, lost);
}

sps_status spsi_cpu_csr_fsai(sps_context *ctx, const sps_csr *A, sps_csr *G,
                             double *v, bool symmetric, int64_t *bad)
{
    job j = { .A = A, .G = G, .symmetric = symmetric, .v = v, .longest = 1 };
    int64_t each, work = 0;
    sps_status st;

    for (int64_t i = 0; i < G->nrow; i++) {
        const int64_t length = G->rowptr[i + 1] - G->rowptr[i];

        if (length > j.longest) j.longest = length;
        work += length * length * (length + 10);
    }
    each = j.longest * j.longest;
    SPS_TRY(SPS_NEW(ctx, ctx->threads * each, &j.numbers));
    SPS_TRY(SPS_NEW(ctx, ctx->threads * j.longest, &j.pivots));
    SPS_TRY(spsi_blas_begin(ctx, ctx->threads));
    st = spsi_team_run_in_time(ctx, G->nrow, work, make_rows, &j,
                               "the inverse");
    spsi_blas_end(ctx->threads);
    *bad = j.lost;
fail:
    spsi_free(ctx, j.numbers);
    spsi_free(ctx, j.pivots);
    return st;
}
