/* SPDX-License-Identifier: BSD-3-Clause */
/* over_ranks_p.c - P and A_c of a matrix over several processes.
 *
 * Aggregates consist of own rows.  P is smoothed by the diagonal block, to
 * whose diagonal the couplings to other processes are added, so that P
 * preserves constants.  A matrix small enough to be a coarsest level is its own
 * A_c, with P = I.
 *
 * A large A_c is spread over the processes as A is, if there is one near-null
 * vector.  Columns of P are multiplied by the elements of the near-null vector
 * of A_c, which thereby becomes the constant, so that couplings can be added to
 * the diagonal of A_c in the same way. */
#include "solvers/amg/over_ranks.h"

#include <math.h>

#include "matrix/order.h"

/* Largest number of rows of an A_c that is stored on each process in any case:
 * on a GPU a level of few rows takes less time than its messages would. */
enum { GATHERED = 2000, GATHERED_CUDA = 20000 };
#define GATHERED_PART 0.5     /* and, as a fraction of the rows that a process
                                 has of A, otherwise */
#define LEAST 0.1             /* fraction of a_ii that must remain when
                                 couplings to other processes are added */
#define AP_LIMIT 30           /* largest number of products per entry for a
                                 smoothed P */

/* ------------------------------------------------------- the diagonal block */

/* Returns the global number of column j of span.rows. */
static int64_t number(const sps_halo *h, int64_t j)
{
    if (j < h->low) return h->ghost[j];
    return j < h->low + h->n ? h->first + j - h->low : h->ghost[j - h->n];
}

/* Writes the entries of row i in own columns to N from entry q on; b: number of
 * rows of a node.  Couplings to the same unknown of nodes of other processes
 * are added to the diagonal. */
static int64_t fill_row(const sps_halo *h, const sps_csr *rows, int64_t i,
                        int b, sps_csr *N, int64_t q)
{
    const double *val = rows->val;
    double *own = N->val, moved = 0;
    int64_t middle = -1;

    for (int64_t p = rows->rowptr[i]; p < rows->rowptr[i + 1]; p++) {
        const int64_t j = rows->col[p] - h->low;

        if (j < 0 || j >= h->n) {
            if ((number(h, rows->col[p]) - h->first - i) % b == 0)
                moved += val[p];
            continue;
        }
        if (j == i) middle = q;
        N->col[q] = (int32_t)j;
        own[q++] = val[p];
    }
    if (middle >= 0 && own[middle] + moved >= LEAST * own[middle])
        own[middle] += moved;
    return q;
}

static sps_status take_own(over_ranks *w, int b)
{
    const sps_operator *A = w->fine.super.A;
    const sps_halo *h = A->ranks->halo;
    const sps_csr *rows = w->span.rows;
    amg_level *l = w->fine.level;
    int64_t count = 0;
    sps_status st = SPS_OK;

    for (int64_t p = 0; p < rows->nnz; p++)
        count += rows->col[p] >= h->low && rows->col[p] < h->low + h->n;
    if (!l->own)
        SPS_TRY(sps_csr_create(A->ctx, A->n, A->n, count, SPS_F64, &l->own));
    count = 0;
    for (int64_t i = 0; i < A->n; i++) {
        count = fill_row(h, rows, i, b, l->own, count);
        l->own->rowptr[i + 1] = count;
    }
    l->A = l->own;
    l->n = A->n;
fail:
    return st;
}

/* ------------------------------------------------------------------------ P */

/* *P_p = P, smoothed unless that takes too many products. */
static sps_status smooth(over_ranks *w, const amg_tentative *t, bool again,
                         sps_csr **P_p)
{
    amg *m = &w->fine;
    amg_level *l = m->level;
    double bound;
    sps_status st;

    if (!again) l->smoothed = true;
    SPS_TRY(spsi_amg_bounds(m, l, &bound));
    SPS_TRY(spsi_amg_smooth(m, l, t, l->smoothed, P_p));
    if (again || l->vectors == 0) return st;
    if ((double)spsi_amg_products(l->A, *P_p) <=
        AP_LIMIT * (double)l->vectors * (double)l->A->nnz)
        return st;
    sps_csr_destroy(m->super.ctx, P_p);
    l->smoothed = false;
    SPS_TRY(spsi_amg_smooth(m, l, t, false, P_p));
fail:
    return st;
}

/* Makes P, and the near-null vectors of own aggregates, which the caller
 * frees. */
static sps_status make_own_p(over_ranks *w, bool again, sps_csr **P_p,
                             double **near_p)
{
    amg *m = &w->fine;
    amg_level *l = m->level;
    amg_tentative t = { 0 };
    sps_status st = SPS_OK;

    if (!again) SPS_TRY(spsi_amg_gather(m, l));
    if (l->aggregates == 0)
        return sps_csr_create(m->super.ctx, l->n, 0, 0, SPS_F64, P_p);
    SPS_TRY(spsi_amg_fit(m, l, again, &t));
    SPS_TRY(smooth(w, &t, again, P_p));
    *near_p = t.near;
    t.near = NULL;
fail:
    spsi_amg_drop(m, l, &t);
    return st;
}

static sps_status keep_p(over_ranks *w, sps_csr **P_p)
{
    sps_context *ctx = w->fine.super.ctx;
    amg_level *l = w->fine.level;
    sps_csr *R = NULL;
    sps_status st;

    SPS_REQUIRE(ctx, !l->P || l->P->nnz == (*P_p)->nnz, SPS_EBUG, "amg: new "
                "values of A changed the pattern of the prolongator, which "
                "must not happen; please report it");
    SPS_TRY(spsi_csr_transpose(ctx, *P_p, &R));
    sps_csr_destroy(ctx, &l->P);
    sps_csr_destroy(ctx, &l->R);
    l->P = *P_p;
    l->R = R;
    *P_p = NULL;
fail:
    return st;
}

/* Decides whether A_c is spread over the processes; own: number of its rows on
 * this process.  P ends where processes do, so that its columns jump there from
 * one row to the next: a smooth error of width H is corrected with H / h times
 * the energy, three times as much on each level, and a third spread level costs
 * half as many iterations again.  A_c is therefore stored on each process as
 * long as its work is less than that of the own rows of A. */
static sps_status decide(over_ranks *w, int64_t own)
{
    sps_context *ctx = w->fine.super.ctx;
    const double fine = (double)w->fine.super.A->ranks->halo->whole;
    const double share = GATHERED_PART * fine / spsi_comm_size(ctx);
    const int least = ctx->opt.place == SPS_CUDA ? GATHERED_CUDA : GATHERED;
    double without = own == 0;
    sps_status st;

    SPS_TRY(spsi_reduce(ctx, &without, 1));
    w->spread = without == 0 && (double)w->span.columns > fmax(least, share) &&
                w->fine.level[0].vectors == 1;
fail:
    return st;
}

/* Multiplies the columns of P by near[], whose elements become 1. */
static void scale_columns(sps_csr *P, double *near)
{
    double *val = P->val;

    for (int64_t p = 0; p < P->nnz; p++) val[p] *= near[P->col[p]];
    for (int64_t j = 0; j < P->ncol; j++) near[j] = 1;
}

/* Sets w->near, the near-null vectors of A_c: those of all processes, or of
 * this one if A_c is spread. */
static sps_status take_near(over_ranks *w, const double *own, bool again)
{
    const sps_precond *M = &w->fine.super;
    const int q = w->fine.level[0].vectors;
    const int64_t n = w->spread ? w->fine.level[0].P->ncol : w->span.columns;
    double *all = NULL;
    sps_status st;

    if (!again) SPS_TRY(sps_block_create(M->ctx, n, q, &w->near));
    if (w->spread)
        return sps_block_set(w->near, 0, q, own, q, SPS_ROW_MAJOR, SPS_HOST);
    SPS_TRY(SPS_NEW(M->ctx, n * q + 1, &all));
    SPS_TRY(spsi_amg_collect(M->A, &w->span, own, q, all));
    SPS_TRY(sps_block_set(w->near, 0, q, all, q, SPS_ROW_MAJOR, SPS_HOST));
fail:
    spsi_free(M->ctx, all);
    return st;
}

static sps_status make_p(over_ranks *w, bool again)
{
    const sps_precond *M = &w->fine.super;
    const bool small = M->A->ranks->halo->whole <= AMG_DENSE;
    sps_csr *P = NULL;
    double *near = NULL;
    sps_status st;

    SPS_TRY(small ? spsi_permutation(w->fine.super.ctx, w->fine.super.n, NULL,
                                     &P)
                  : make_own_p(w, again, &P, &near));
    SPS_TRY(spsi_amg_number(M->A, P->ncol, &w->span));
    if (!again) SPS_TRY(decide(w, P->ncol));
    if (w->spread) scale_columns(P, near);
    SPS_TRY(keep_p(w, &P));
    if (w->span.columns > 0)
        SPS_TRY(take_near(w, small ? w->fine.level[0].near : near, again));
fail:
    sps_csr_destroy(M->ctx, &P);
    spsi_free(M->ctx, near);
    return st;
}

/* ------------------------------------------------------- the whole of P,
 * A_c */

sps_status spsi_amg_project(over_ranks *w, bool again)
{
    amg *m = &w->fine;
    amg_level *l = m->level;
    const int b = l->nodes > 0 ? (int)((l->n + l->nodes - 1) / l->nodes) : 1;
    sps_status st;

    sps_operator_destroy(&w->prolong);
    sps_operator_destroy(&w->restrict_op);
    SPS_TRY(spsi_ranks_rows(m->super.A, &w->span.rows));
    SPS_TRY(take_own(w, b));
    SPS_TRY(spsi_amg_scale(m, l, true));
    SPS_TRY(make_p(w, again));
    if (w->span.columns > 0)
        SPS_TRY(spsi_amg_galerkin(m->super.A, l->P, l->R, !w->spread,
                                  &w->span));
    sps_csr_destroy(m->super.ctx, &w->span.rows);
    sps_csr_destroy(m->super.ctx, &l->own);
fail:
    return st;
}
