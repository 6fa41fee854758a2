/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_ilu0.c - incomplete LU in the pattern of the matrix (Meijerink and van
 * der Vorst, Math. Comp. 31, 1977; the row form is Saad, Iterative Methods for
 * Sparse Linear Systems, 2003, algorithm 10.4):
 *
 *   for k < i in row i:  l_ik = f_ik / u_kk;  f_ij -= l_ik u_kj,  j > k,
 *
 * only for stored entries (i, j).  Rows of one level of the lower triangle are
 * independent; each entry is summed in the order of k. */
#include "matrix/triangle.h"
#include "core/deadline.h"
#include "cpu/rows.h"

#include <math.h>

/* A pivot below this fraction of the largest entry of its row counts as
 * zero. */
#define TINY 1e-14

/* Subtracts l times row k of U from row i, to the right of column k; both rows
 * are sorted.  p: first entry of row i after column k. */
static void subtract_row(const sps_csr *F, double *f, int64_t p, int64_t last,
                         int64_t q, int64_t end, double l)
{
    while (p < last && q < end) {
        const int32_t a = F->col[p], b = F->col[q];

        if (a == b) f[p] -= l * f[q];
        p += a <= b;
        q += b <= a;
    }
}

/* Returns false if the pivot is not finite, too small, or negative although it
 * must be positive. */
static bool eliminate_row(sps_csr *F, const int64_t *diagonal, int64_t i,
                          bool positive)
{
    double *f = F->val, largest = 0, pivot;
    const int64_t last = F->rowptr[i + 1];

    for (int64_t p = F->rowptr[i]; p < last; p++)
        largest = fmax(largest, fabs(f[p]));
    for (int64_t p = F->rowptr[i]; F->col[p] < i; p++) {
        const int32_t k = F->col[p];

        f[p] /= f[diagonal[k]];
        subtract_row(F, f, p + 1, last, diagonal[k] + 1, F->rowptr[k + 1],
                     f[p]);
    }
    pivot = positive ? f[diagonal[i]] : fabs(f[diagonal[i]]);
    return isfinite(pivot) && pivot > TINY * largest;
}

typedef struct job {
    sps_csr *F;
    const int64_t *diagonal;
    const int32_t *row;
    bool positive;
    int64_t first_bad;
} job;

static void eliminate_rows(void *data, int64_t first, int64_t last)
{
    job *j = data;

    for (int64_t q = first; q < last; q++)
        if (!eliminate_row(j->F, j->diagonal, j->row[q], j->positive))
            spsi_team_least(&j->first_bad, j->row[q]);
}

sps_status spsi_cpu_csr_ilu0(sps_context *ctx, sps_csr *F,
                             const int64_t *diagonal, const sps_levels *levels,
                             bool positive, int64_t *bad)
{
    const int64_t length = F->nrow ? F->nnz / F->nrow + 1 : 1;
    job j = { F, diagonal, NULL, positive, F->nrow };
    int64_t since = 0;            /* products since the last check of the time
                                     limit */
    sps_status st = SPS_OK;

    for (int64_t v = 0; v < levels->count; v++) {
        const int64_t rows = levels->start[v + 1] - levels->start[v];
        const int64_t ns = rows * length * length;

        j.row = levels->row + levels->start[v];
        if (ns > SPS_DEADLINE_PIECE)
            SPS_TRY(spsi_team_run_in_time(ctx, rows, ns, eliminate_rows, &j,
                                          "the factor"));
        else
            spsi_team_run(ctx, rows, ns, eliminate_rows, &j);
        since += ns;
        if (since < SPS_DEADLINE_PIECE / 10) continue;
        SPS_TRY(spsi_check_deadline(ctx, "the factor"));
        since = 0;
    }
    *bad = j.first_bad < F->nrow ? j.first_bad : -1;
fail:
    return st;
}
