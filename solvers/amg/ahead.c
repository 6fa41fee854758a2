/* SPDX-License-Identifier: BSD-3-Clause */
/* ahead.c - the matrix P - f D^-1 A P, f = 1 / root[0], by which a cycle makes
 * prolongation and the first smoothing step behind it in one product (cycle.c).
 *
 * Its pattern is that of A P, which the set-up has formed.  With q, p and a
 * entries in A P, P and A, in single precision on n x k blocks, the one product
 * moves 8 q + 12 n k bytes, and those that it replaces 8 (p + a) + 20 n k.  The
 * 7-point grid of 64^3 has q = 8.9 n, p = 3.6 n, a = 7 n; its next level 20 n,
 * 5.2 n and 33 n. */
#include "solvers/amg/amg.h"

/* What a product gathers decides: on an H200 the one product takes 0.71 of the
 * time of the two on the finest level of the 7-point grid, where q = 0.85 (p +
 * a), and less on others (q = 0.4 to 0.55 (p + a)). */
bool spsi_amg_ahead_pays(const amg_level *l, const sps_csr *P,
                         const sps_csr *AP)
{
    return l->smoothed &&
           (double)AP->nnz < 0.9 * (double)(P->nnz + l->A->nnz);
}

/* Returns row i of the matrix in val, with f times D^-1 as `by`; returns false
 * if P has an entry that AP does not have. */
static bool ahead_row(const sps_csr *P, const sps_csr *AP, int64_t i, double by,
                      double *val)
{
    const double *from = AP->val, *own = P->val;
    int64_t q = P->rowptr[i];

    for (int64_t p = AP->rowptr[i]; p < AP->rowptr[i + 1]; p++) {
        const double v = by * from[p];
        const bool both = q < P->rowptr[i + 1] && P->col[q] == AP->col[p];

        val[p] = both ? own[q] - v : -v;
        q += both;
    }
    return q == P->rowptr[i + 1];
}

sps_status spsi_amg_ahead(amg *m, const amg_level *l, sps_csr *S, bool *within)
{
    const double f = 1 / l->smoother.root[0];

    *within = true;
    if (S->place != SPS_HOST)
        return m->device->cycle.ahead(m->super.ctx, l->P, l->AP, f,
                                      l->parts.inverse, S->dtype, S->val,
                                      m->largest, m->measured++, within);
    for (int64_t i = 0; i < l->n; i++) {
        const double s = l->scale[i], by = f * (s > 0 ? s * s : 1);

        *within &= ahead_row(l->P, l->AP, i, by, S->val);
    }
    return SPS_OK;
}
