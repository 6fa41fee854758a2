/* SPDX-License-Identifier: BSD-3-Clause */
/* stages.c - performs the stages of a level on the place where its matrix is
 * stored: by the backend (matrix/coarsening.h) for a level that has a part
 * there, otherwise by the functions of this folder on host arrays. */
#include "solvers/amg/amg.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "core/team.h"

/* ------------------------------------------------------------------ scaling */

static double diagonal_of(const sps_csr *A, int64_t i, bool *empty)
{
    const double *val = A->val;
    double d = 0;

    *empty = true;
    for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
        if (val[p] != 0) *empty = false;
        if (A->col[p] == i) d = val[p];
    }
    return d;
}

/* Sets l->scale.  *bad = the first row that cannot be scaled to unit diagonal,
 * or -1; *value = the diagonal entry of that row. */
static sps_status scale_host(sps_context *ctx, amg_level *l, bool finest,
                             int64_t *bad, double *value)
{
    sps_status st = SPS_OK;

    *bad = -1;
    if (!l->scale) SPS_TRY(SPS_NEW(ctx, l->n + 1, &l->scale));
    for (int64_t i = 0; i < l->n && *bad < 0; i++) {
        bool empty;
        const double d = diagonal_of(l->A, i, &empty);
        const bool none = finest ? empty : d <= SPS_COARSE_NOTHING;

        l->scale[i] = none ? 0 : 1 / sqrt(d);
        if (none || (d >= DBL_MIN && d <= DBL_MAX)) continue;
        *bad = i;
        *value = d;
    }
fail:
    return st;
}

sps_status spsi_amg_scale(amg *m, amg_level *l, bool finest)
{
    sps_context *ctx = m->super.ctx;
    double value = 0;
    int64_t bad;
    sps_status st;

    SPS_TRY(l->part ? m->device->scale(l->part, finest, &bad, &value)
                    : scale_host(ctx, l, finest, &bad, &value));
    SPS_REQUIRE(ctx, bad < 0, SPS_EUNFIT, "amg needs a matrix with a positive "
                "diagonal; entry (%lld, %lld) is %g: use another "
                "preconditioner, for an indefinite matrix ilut",
                (long long)bad + 1, (long long)bad + 1, value);
fail:
    return st;
}

sps_status spsi_amg_inverse(const amg *m, const amg_level *l, sps_block *X)
{
    double *d = NULL;
    sps_status st;

    if (l->part) return m->device->inverse(l->part, X);
    SPS_TRY(SPS_NEW(m->super.ctx, l->n + 1, &d));
    for (int64_t i = 0; i < l->n; i++)
        d[i] = l->scale[i] > 0 ? l->scale[i] * l->scale[i] : 1;
    SPS_TRY(sps_block_set(X, 0, 1, d, l->n > 0 ? l->n : 1, SPS_COL_MAJOR,
                          SPS_HOST));
fail:
    spsi_free(m->super.ctx, d);
    return st;
}

sps_status spsi_amg_spread(const amg *m, const amg_level *l, double most[2])
{
    if (l->part) return m->device->spread(l->part, most);
    most[0] = most[1] = 0;
    for (int64_t i = 0; i < l->n; i++) {
        if (!(l->scale[i] > 0)) continue;
        most[0] = fmax(most[0], l->scale[i]);
        most[1] = fmax(most[1], 1 / l->scale[i]);
    }
    return SPS_OK;
}

/* ----------------------------------------------------------------- spectrum */

/* Computes, in the place where the matrix is stored, what spsi_amg_spectrum
 * computes on the host; for A_F if `filtered`, else for A. */
static sps_status spectrum_there(const amg *m, const amg_level *l,
                                 bool filtered, double *rho, double *bound)
{
    double diagonal[SPS_COARSE_STEPS], off[SPS_COARSE_STEPS - 1];
    sps_status st;

    SPS_TRY(m->device->lanczos(l->part, filtered, diagonal, off, bound));
    SPS_TRY(spsi_amg_ritz(m->super.ctx, diagonal, off, rho));
    SPS_TRY(spsi_check_deadline(m->super.ctx, "amg"));
fail:
    return st;
}

sps_status spsi_amg_bounds_ahead(amg *m, amg_level *l)
{
    return l->part ? m->device->ahead_lanczos(l->part) : SPS_OK;
}

sps_status spsi_amg_bounds(amg *m, amg_level *l, double *bound)
{
    return l->part ? spectrum_there(m, l, false, &l->rho, bound)
                   : spsi_amg_spectrum(m->super.ctx, l->A, l->scale, &l->rho,
                                       bound);
}

/* ----------------------------------------------------- aggregates, matrices */

sps_status spsi_amg_gather(amg *m, amg_level *l)
{
    sps_context *ctx = m->super.ctx;
    sps_status st;

    if (l->part) return m->device->aggregate(l->part, &l->aggregates);
    SPS_TRY(l->nonsymmetric ? spsi_amg_strength_both(ctx, l, &l->strong)
                            : spsi_amg_strength(ctx, l, &l->strong));
    SPS_TRY(SPS_NEW(ctx, l->nodes + 1, &l->aggregate));
    SPS_TRY(spsi_amg_aggregate(ctx, l, l->aggregate, &l->aggregates));
    SPS_TRY(SPS_NEW(ctx, l->aggregates + 1, &l->kept));
    SPS_TRY(SPS_NEW(ctx, l->aggregates + 1, &l->place));
    spsi_free(ctx, l->strong.weight);
    l->strong.weight = NULL;
fail:
    return st;
}

static sps_status tentative_host(sps_context *ctx, amg_level *l, bool again,
                                 amg_tentative *t)
{
    sps_status st;

    SPS_TRY(l->eliminates
                ? spsi_amg_reduce(ctx, l, &t->T, &t->near)
                : spsi_amg_tentative(ctx, l, again, &t->T, &t->near));
    t->columns = t->T->ncol;
    t->single = true;
    for (int64_t a = 0; a < l->aggregates; a++)
        t->single &= l->place[a + 1] - l->place[a] == 1;
fail:
    return st;
}

sps_status spsi_amg_fit(amg *m, amg_level *l, bool again, amg_tentative *t)
{
    return l->part ? m->device->tentative(l->part, again, &t->columns,
                                          &t->single)
                   : tentative_host(m->super.ctx, l, again, t);
}

void spsi_amg_drop(amg *m, amg_level *l, amg_tentative *t)
{
    if (l->part) m->device->drop(l->part);
    sps_csr_destroy(m->super.ctx, &t->T);
    spsi_free(m->super.ctx, t->near);
}

static sps_status prolong_there(amg *m, amg_level *l, bool smooth,
                                sps_csr **P_p)
{
    double rho = l->rho, bound;
    bool filtered;
    sps_status st = SPS_OK;

    if (!smooth) return m->device->prolong(l->part, false, 0, P_p);
    SPS_TRY(m->device->filter(l->part, &filtered));
    if (filtered) SPS_TRY(spectrum_there(m, l, true, &rho, &bound));
    SPS_TRY(m->device->prolong(l->part, true, spsi_amg_omega(rho), P_p));
fail:
    return st;
}

sps_status spsi_amg_smooth(amg *m, amg_level *l, const amg_tentative *t,
                           bool smooth, sps_csr **P_p)
{
    return l->part ? prolong_there(m, l, smooth, P_p)
                   : spsi_amg_prolongator(m->super.ctx, l, t->T, smooth, P_p);
}

sps_status spsi_amg_filter_block(amg *m, amg_level *l, sps_csr **made_p,
                                 const sps_csr **F_p)
{
    bool filtered;
    sps_status st;

    if (l->part) {
        SPS_TRY(m->device->filter(l->part, &filtered));
        *F_p = m->device->filtered(l->part);
    } else {
        SPS_TRY(spsi_amg_filter(m->super.ctx, l, made_p));
        *F_p = *made_p;
    }
fail:
    return st;
}

sps_status spsi_amg_filtered_bounds(const amg *m, const amg_level *l,
                                    const sps_csr *F, double *rho)
{
    double *factor = NULL, bound;
    sps_status st;

    if (l->part) return spectrum_there(m, l, F != NULL, rho, &bound);
    SPS_TRY(SPS_NEW(m->super.ctx, l->n + 1, &factor));
    spsi_amg_scaling(l, F ? F : l->A, 0, factor);
    SPS_TRY(spsi_amg_spectrum(m->super.ctx, F ? F : l->A, factor, rho,
                              &bound));
fail:
    spsi_free(m->super.ctx, factor);
    return st;
}

typedef struct counting {
    const sps_csr *A, *B;
    int64_t count;
} counting;

static void count_products(void *data, int64_t first, int64_t last)
{
    counting *j = data;
    int64_t count = 0;

    for (int64_t p = first; p < last; p++)
        count += j->B->rowptr[j->A->col[p] + 1] -
                 j->B->rowptr[j->A->col[p]];
    spsi_team_add(&j->count, count);
}

/* Returns the number of multiplications of the product A B. */
static int64_t products(const amg *m, const sps_csr *A, const sps_csr *B)
{
    counting j = { A, B, 0 };

    spsi_team_run(m->super.ctx, A->nnz, A->nnz, count_products, &j);
    return j.count;
}

sps_status spsi_amg_multiply(const amg *m, const sps_csr *A, const sps_csr *B,
                             int64_t most, sps_csr **C_p)
{
    if (A->place != SPS_HOST)
        return m->device->multiply(m->super.ctx, A, B, most, C_p);
    return most < INT64_MAX && products(m, A, B) > most
               ? SPS_OK : spsi_matrix_multiply(m->super.ctx, A, B, C_p);
}

/* ----------------------------------------------------------- the next level */

static sps_status enter_host(sps_context *ctx, const amg_level *l,
                             amg_level *next, amg_tentative *t)
{
    const size_t bytes = (size_t)(l->aggregates + 1) * sizeof *next->start;
    sps_status st = SPS_OK;

    spsi_free(ctx, next->near);
    next->near = t->near;
    t->near = NULL;
    if (next->start) return SPS_OK;
    SPS_TRY(SPS_NEW(ctx, l->aggregates + 1, &next->start));
    memcpy(next->start, l->place, bytes);
fail:
    return st;
}

sps_status spsi_amg_enter(amg *m, const amg_level *l, amg_level *next,
                          amg_tentative *t)
{
    next->A = next->own;
    next->n = next->own->nrow;
    next->vectors = l->vectors;
    next->nodes = l->aggregates;
    next->single_rows = t->single;
    next->nonsymmetric = l->nonsymmetric;
    return l->part ? m->device->next(l->part, next->A, t->single, &next->part)
                   : enter_host(m->super.ctx, l, next, t);
}

/* Copies to the host what the computation of the coarsest inverse needs: the
 * matrix, the scale and the near-null vectors of l. */
sps_status spsi_amg_bring(const amg *m, const amg_level *l, amg_level *host)
{
    sps_context *ctx = m->super.ctx;
    sps_status st;

    *host = (amg_level){ .n = l->n, .vectors = l->vectors };
    SPS_TRY(spsi_csr_download(ctx, l->A, &host->own));
    SPS_TRY(SPS_NEW(ctx, l->n + 1, &host->scale));
    SPS_TRY(SPS_NEW(ctx, l->n * l->vectors + 1, &host->near));
    SPS_TRY(m->device->fetch(l->part, SPS_COARSE_SCALE, host->scale));
    SPS_TRY(m->device->fetch(l->part, SPS_COARSE_NEAR, host->near));
    host->A = host->own;
fail:
    return st;
}
