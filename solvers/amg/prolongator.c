/* SPDX-License-Identifier: BSD-3-Clause */
/* prolongator.c - computes P = (I - w D_F^-1 A_F) T from the tentative
 * prolongator T of a level, w = (4/3) / rho(D_F^-1 A_F).
 *
 * The number of products of A_F T is that of the entries of A_F times the
 * vectors of an aggregate. */
#include "solvers/amg/amg.h"

#include <math.h>

#define OMEGA (4.0 / 3)

void spsi_amg_scaling(const amg_level *l, const sps_csr *F, int64_t low,
                      double *factor)
{
    const double *val = F->val;

    for (int64_t i = 0; i < l->n; i++) {
        double d = 0;

        for (int64_t p = F->rowptr[i]; p < F->rowptr[i + 1]; p++)
            if (F->col[p] == low + i) d = val[p];
        factor[i] = l->scale[i] > 0 && d > 0 ? 1 / sqrt(d) : 0;
    }
}

double spsi_amg_omega(double rho)
{
    return rho > 0 ? OMEGA / rho : 0;
}

typedef struct job {
    double omega;
    const double *factor;
    const sps_csr *T;
    int64_t low;              /* first row of T that belongs to P */
    sps_csr *P;               /* A_F T on entry */
} job;

/* Computes rows of P = T - w D_F^-1 (A_F T); the pattern of T is contained in
 * that of A_F T, and both ascend. */
static void combine(void *data, int64_t first, int64_t last)
{
    const job *j = data;
    const double *t = j->T->val;
    double *val = j->P->val;

    for (int64_t i = first; i < last; i++) {
        const double f = -j->omega * j->factor[i] * j->factor[i];
        const int64_t end = j->T->rowptr[j->low + i + 1];
        int64_t at = j->T->rowptr[j->low + i];

        for (int64_t p = j->P->rowptr[i]; p < j->P->rowptr[i + 1]; p++) {
            val[p] *= f;
            if (at < end && j->T->col[at] == j->P->col[p])
                val[p] += t[at++];
        }
    }
}

sps_status spsi_amg_smooth_by(sps_context *ctx, const sps_csr *F,
                              const double *factor, double rho,
                              const sps_csr *T, int64_t low, sps_csr **P_p)
{
    job j = { .omega = spsi_amg_omega(rho), .factor = factor, .T = T,
              .low = low };
    sps_status st;

    SPS_TRY(spsi_matrix_multiply(ctx, F, T, &j.P));
    spsi_team_run(ctx, F->nrow, j.P->nnz, combine, &j);
    *P_p = j.P;
fail:
    return st;
}

static sps_status smoothed(sps_context *ctx, const amg_level *l,
                           const sps_csr *T, sps_csr **P_p)
{
    sps_csr *filtered = NULL;
    const sps_csr *F;
    double *factor = NULL, rho = l->rho, bound;
    sps_status st;

    SPS_TRY(spsi_amg_filter(ctx, l, &filtered));
    F = filtered ? filtered : l->A;
    SPS_TRY(SPS_NEW(ctx, l->n + 1, &factor));
    spsi_amg_scaling(l, F, 0, factor);
    if (filtered) SPS_TRY(spsi_amg_spectrum(ctx, F, factor, &rho, &bound));
    SPS_TRY(spsi_amg_smooth_by(ctx, F, factor, rho, T, 0, P_p));
fail:
    sps_csr_destroy(ctx, &filtered);
    spsi_free(ctx, factor);
    return st;
}

static sps_status copy(sps_context *ctx, const sps_csr *T, sps_csr **P_p)
{
    return sps_csr_wrap(ctx, T->nrow, T->ncol, T->nnz, T->rowptr, T->col,
                        T->val, SPS_F64, SPS_HOST, SPS_COPY, P_p);
}

sps_status spsi_amg_prolongator(sps_context *ctx, const amg_level *l,
                                const sps_csr *T, bool smooth, sps_csr **P_p)
{
    return smooth ? smoothed(ctx, l, T, P_p) : copy(ctx, T, P_p);
}
