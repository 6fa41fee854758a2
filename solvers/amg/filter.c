/* SPDX-License-Identifier: BSD-3-Clause */
/* filter.c - A_F, the matrix that smooths the prolongator of a level.
 *
 * Couplings that are not strong are dropped; that of row i to row j is added to
 * the diagonal, multiplied by b_j / b_i with the first near-null vector b, so
 * that A_F b = A b.  With the dropped couplings columns of P would grow across
 * aggregates that are not coupled, and so would all coarser matrices: in
 * anisotropic problems all levels together would have 6 entries for each entry
 * of A, instead of 1.4.  At least a tenth of a_ii must remain after the
 * addition.
 *
 * Nodes of several rows are not filtered, nor are matrices that are far from
 * symmetric, whose strong couplings need not be entries of A. */
#include "solvers/amg/amg.h"

#include <math.h>

typedef struct job {
    const amg_level *l;
    sps_csr *F;
} job;

static bool has_diagonal(const sps_csr *A, int64_t i)
{
    for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
        if (A->col[p] == i) return true;
    return false;
}

static void count_row(void *data, int64_t first, int64_t last)
{
    const job *j = data;
    const int64_t *strong = j->l->strong.rowptr;

    for (int64_t i = first; i < last; i++)
        j->F->rowptr[i + 1] = strong[i + 1] - strong[i] +
                              has_diagonal(j->l->A, i);
}

/* Returns b_k / b_i, or 1 where that is not possible. */
static double ratio(const amg_level *l, int64_t i, int64_t k)
{
    const double r = l->near[k * l->vectors] / l->near[i * l->vectors];

    return isfinite(r) ? r : 1;
}

static void fill_row(void *data, int64_t first, int64_t last)
{
    const job *j = data;
    const amg_level *l = j->l;
    const sps_csr *A = l->A;
    const double *val = A->val;
    double *out = j->F->val;

    for (int64_t i = first; i < last; i++) {
        int64_t to = j->F->rowptr[i], at = l->strong.rowptr[i], middle = -1;
        double diagonal = 0, own = 0;

        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
            const int32_t k = A->col[p];
            const bool strong = at < l->strong.rowptr[i + 1] &&
                                l->strong.col[at] == k;

            if (k == i) middle = to;
            else if (!strong) diagonal += val[p] * ratio(l, i, k);
            if (k == i) own = val[p];
            if (k != i && !strong) continue;
            at += strong;
            j->F->col[to] = k;
            out[to++] = val[p];
        }
        if (middle >= 0) out[middle] = fmax(own + diagonal,
                                            SPS_COARSE_LEAST * own);
    }
}

sps_status spsi_amg_filter(sps_context *ctx, const amg_level *l,
                           sps_csr **F_p)
{
    job j = { .l = l };
    sps_csr *F = NULL;
    sps_status st = SPS_OK;

    if (!l->single_rows || l->nonsymmetric ||
        l->strong.rowptr[l->n] + l->n == l->A->nnz)
        return SPS_OK;
    SPS_TRY(sps_csr_create(ctx, l->n, l->n, l->strong.rowptr[l->n] + l->n,
                           SPS_F64, &F));
    j.F = F;
    spsi_team_run(ctx, l->n, l->A->nnz, count_row, &j);
    for (int64_t i = 0; i < l->n; i++) F->rowptr[i + 1] += F->rowptr[i];
    F->nnz = F->rowptr[l->n];
    spsi_team_run(ctx, l->n, 2 * l->A->nnz, fill_row, &j);
    *F_p = F;
    F = NULL;
fail:
    sps_csr_destroy(ctx, &F);
    return st;
}
