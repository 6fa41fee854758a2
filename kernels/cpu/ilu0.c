/* SPDX-License-Identifier: BSD-3-Clause */
/* ilu0.c - incomplete LU in the pattern of the matrix (Meijerink and van der
 * Vorst, Math. Comp. 31, 1977; the row form is Saad, Iterative Methods for
 * Sparse Linear Systems, 2003, algorithm 10.4):
 *
 *   for k < i in row i:  l_ik = f_ik / u_kk;  f_ij -= l_ik u_kj,  j > k,
 *
 * for those (i, j) alone that are stored.  Rows of one level of the lower
 * triangle are independent; each entry is one sum in the order of k. */
#include "lib/triangle.h"
#include "rows.h"

#include <math.h>

/* A pivot below this part of its row counts as zero. */
#define TINY 1e-14

/* f_i. -= l u_k. right of column k, both rows sorted; p: first entry of row i
 * behind column k. */
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

/* False: the pivot is no number, too small, or negative where that is no
 * good. */
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

sps_status spsi_cpu_csr_ilu0(sps_context *ctx, sps_csr *F,
                             const int64_t *diagonal, const sps_levels *levels,
                             bool positive, int64_t *bad)
{
    const int64_t length = F->nrow ? F->nnz / F->nrow + 1 : 1;
    int64_t first_bad = F->nrow;

    for (int64_t v = 0; v < levels->count; v++) {
        const int64_t a = levels->start[v], b = levels->start[v + 1];

#pragma omp parallel for num_threads(ctx->threads) schedule(static)            \
    reduction(min : first_bad) if (pays(b - a, length * length))
        for (int64_t q = a; q < b; q++) {
            const int64_t i = levels->row[q];

            if (!eliminate_row(F, diagonal, i, positive) && i < first_bad)
                first_bad = i;
        }
    }
    *bad = first_bad < F->nrow ? first_bad : -1;
    return SPS_OK;
}
