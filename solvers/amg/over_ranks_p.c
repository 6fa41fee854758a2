/* SPDX-License-Identifier: BSD-3-Clause */
/* over_ranks_p.c - P and A_c of a matrix over several processes.
 *
 * Aggregates consist of own rows: the diagonal block decides about them.  P is
 * smoothed by own rows with all their couplings, and so has columns of other
 * processes: for these aggregates it is the P of the whole matrix.  (If P ended
 * where processes do, it would jump there from one row to the next: each level
 * spread beyond the second took half as many iterations again.)  A matrix small
 * enough to be a coarsest level is its own A_c, with P = I.
 *
 * The matrices are in host memory, or on GPUs in theirs; boundary rows are
 * worked on in host memory, where others' rows arrive. */
#include "solvers/amg/over_ranks.h"

#include <string.h>

#include "matrix/order.h"
#include "matrix/some_rows.h"

/* Largest number of rows of an A_c that each process stores as a whole: with
 * few rows, computing all of them takes less time than exchanging messages.
 * (On an H200 a product of 27 000 rows of 100 entries with 16 columns takes 48
 * us, and an exchange of 3.3 MB 25 us.) */
enum { GATHERED = 2000, GATHERED_CUDA = 100000 };
#define AP_LIMIT 30           /* largest number of products per entry for a
                                 smoothed P */

/* ----------------------------------------------------------------- own rows */

/* *inner_p = the interior rows, in doubles, in the memory of the levels; the
 * caller closes *part and destroys *wide. */
static sps_status take_inner(const over_ranks *w, sps_coarse **part,
                             sps_csr **wide, const sps_csr **inner_p)
{
    const sps_ranks *r = w->fine.super.A->ranks;
    const sps_coarsening *device = w->fine.device;
    const sps_csr *A = r->inner;
    sps_status st = SPS_OK;

    *inner_p = A;
    if (A->place != SPS_HOST && r->interior->local.nnz == 0) return SPS_OK;
    if (w->there) {
        SPS_TRY(device->open(w->fine.super.ctx, &r->interior->local, part));
        *inner_p = device->matrix(*part);
    } else if (A->dtype != SPS_F64) {
        SPS_TRY(sps_csr_create(w->fine.super.ctx, A->nrow, A->ncol, A->nnz,
                               SPS_F64, wide));
        memcpy((*wide)->rowptr, A->rowptr,
               (size_t)(A->nrow + 1) * sizeof *A->rowptr);
        for (int64_t p = 0; p < A->nnz; p++) (*wide)->col[p] = A->col[p];
        for (int64_t p = 0; p < A->nnz; p++)
            ((double *)(*wide)->val)[p] = spsi_csr_value(A, p);
        *inner_p = *wide;
    }
fail:
    return st;
}

/* Makes span.rows and l->own, the diagonal block. */
static sps_status take_rows(over_ranks *w)
{
    const sps_operator *A = w->fine.super.A;
    amg_level *l = w->fine.level;
    sps_coarse *part = NULL;
    sps_csr *wide = NULL;
    const sps_csr *inner;
    sps_status st;

    sps_csr_destroy(A->ctx, &w->span.rows);    /* of an update that failed */
    sps_csr_destroy(A->ctx, &l->own);
    SPS_TRY(take_inner(w, &part, &wide, &inner));
    SPS_TRY(spsi_ranks_joined(A, inner, false, &w->span.rows));
    SPS_TRY(spsi_ranks_joined(A, inner, true, &l->own));
fail:
    if (part) w->fine.device->close(&part);
    sps_csr_destroy(A->ctx, &wide);
    return st;
}

/* Opens the level of the diagonal block in device memory. */
static sps_status open_part(over_ranks *w)
{
    const sps_coarsening *device = w->fine.device;
    amg_level *l = w->fine.level;
    const sps_csr *A = l->own;
    const sps_csr_local local = { .nrow = A->nrow, .ncol = A->ncol,
                                  .nnz = A->nnz, .rowptr = A->rowptr,
                                  .col = A->col, .val = A->val,
                                  .dtype = SPS_F64 };
    sps_status st;

    SPS_TRY(l->part ? device->renew(l->part, &local)
                    : device->open(w->fine.super.ctx, &local, &l->part));
    l->A = device->matrix(l->part);
fail:
    return st;
}

/* ------------------------------------------------------------------------ P */

/* *P_p = P from A_F of own rows, or span.rows if E is NULL, and T of all their
 * columns; few: see spsi_amg_filter_across. */
static sps_status smooth_by(const over_ranks *w, const sps_csr *E,
                            const double *few, double rho, const sps_csr *all,
                            sps_csr **P_p)
{
    const amg_level *l = w->fine.level;
    const sps_ranks *r = w->fine.super.A->ranks;
    const sps_csr *F = E ? E : w->span.rows;
    sps_context *ctx = w->fine.super.ctx;
    double *factor = NULL;
    sps_status st;

    if (l->part)
        return w->fine.device->smooth(l->part, F, all, r->halo->low,
                                      spsi_amg_omega(rho), r->row, few,
                                      E ? r->rows : 0, P_p);
    SPS_TRY(SPS_NEW(ctx, l->n + 1, &factor));
    spsi_amg_scaling(l, F, r->halo->low, factor);
    SPS_TRY(spsi_amg_smooth_by(ctx, F, factor, rho, all, r->halo->low, P_p));
fail:
    spsi_free(ctx, factor);
    return st;
}

/* *P_p = P, smoothed. */
static sps_status smooth(over_ranks *w, const sps_csr *T, sps_csr **P_p)
{
    const sps_precond *M = &w->fine.super;
    sps_csr *E = NULL, *all = NULL;
    double *few = NULL, rho;
    sps_status st;

    SPS_TRY(spsi_amg_filter_across(w, &rho, &E, &few));
    SPS_TRY(spsi_amg_join(M->A, T, w->span.first, w->span.columns, &all));
    SPS_TRY(smooth_by(w, E, few, rho, all, P_p));
fail:
    sps_csr_destroy(M->ctx, &E);
    sps_csr_destroy(M->ctx, &all);
    spsi_free(M->ctx, few);
    return st;
}

/* *P_p = P, or T, of whose columns this process has those from `first` on. */
static sps_status prolong(over_ranks *w, const sps_csr *T, sps_csr **P_p)
{
    const spsi_placing p = { .nrow = T->nrow, .ncol = w->span.columns,
                             .shift = w->span.first };

    return w->fine.level[0].smoothed
               ? smooth(w, T, P_p)
               : spsi_rows_replace(w->fine.super.ctx, T, &p, NULL, P_p);
}

/* *T_p = the tentative prolongator of a matrix that is its own A_c. */
static sps_status identity(const over_ranks *w, sps_csr **T_p, double **near_p)
{
    const amg_level *l = w->fine.level;
    sps_context *ctx = w->fine.super.ctx;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, l->n * l->vectors + 1, near_p));
    for (int64_t e = 0; e < l->n * l->vectors; e++) (*near_p)[e] = l->near[e];
    SPS_TRY(spsi_permutation(ctx, l->n, NULL, T_p));
fail:
    return st;
}

/* Takes the results of the part of the level. */
static sps_status tentative_there(const over_ranks *w, int64_t columns,
                                  sps_csr **T_p, double **near_p)
{
    const amg_level *l = w->fine.level;
    sps_status st;

    SPS_TRY(SPS_NEW(w->fine.super.ctx, columns * l->vectors + 1, near_p));
    SPS_TRY(w->fine.device->prolong(l->part, false, 0, T_p));
    SPS_TRY(w->fine.device->fetch(l->part, SPS_COARSE_BELOW, *near_p));
fail:
    return st;
}

/* *T_p = n rows without columns. */
static sps_status without_columns(const over_ranks *w, sps_csr **T_p)
{
    sps_context *ctx = w->fine.super.ctx;
    sps_csr *T = NULL;
    sps_status st;

    SPS_TRY(sps_csr_create(ctx, w->fine.level[0].n, 0, 0, SPS_F64, &T));
    if (w->there) SPS_TRY(spsi_csr_upload(ctx, T, T_p));
    else *T_p = T;
fail:
    if (w->there || st != SPS_OK) sps_csr_destroy(ctx, &T);
    return st;
}

/* *T_p = the tentative prolongator of own rows, and *near_p the near-null
 * vectors of its columns, which the caller frees. */
static sps_status tentative(over_ranks *w, bool again, sps_csr **T_p,
                            double **near_p)
{
    amg *m = &w->fine;
    amg_level *l = m->level;
    amg_tentative t = { 0 };
    sps_status st = SPS_OK;

    if (m->super.A->ranks->halo->whole <= AMG_DENSE)
        return identity(w, T_p, near_p);
    if (!again) SPS_TRY(spsi_amg_gather(m, l));
    if (l->aggregates == 0) return without_columns(w, T_p);
    SPS_TRY(spsi_amg_fit(m, l, again, &t));
    if (l->part) return tentative_there(w, t.columns, T_p, near_p);
    *T_p = t.T;
    *near_p = t.near;
    t.T = NULL;
    t.near = NULL;
fail:
    if (!l->part) spsi_amg_drop(m, l, &t);
    return st;
}

/* ---------------------------------------------------------- the next level */

/* *rows = number of rows of a node of A_c, or 1 if aggregates differ. */
static sps_status rows_of_node(const over_ranks *w, int *rows)
{
    const amg_level *l = w->fine.level;
    double uneven = w->span.own_columns != l->aggregates * l->vectors;
    sps_status st;

    if (w->fine.super.A->ranks->halo->whole <= AMG_DENSE) uneven = 1;
    SPS_TRY(spsi_reduce(w->fine.super.ctx, &uneven, 1));
    *rows = uneven > 0 ? 1 : l->vectors;
fail:
    return st;
}

/* Decides whether A_c is spread over the processes: if it has many rows, each
 * process has some, and nodes have as many rows as there are near-null
 * vectors. */
static sps_status decide(over_ranks *w)
{
    sps_context *ctx = w->fine.super.ctx;
    const int64_t asked = w->fine.super.A->ranks->gathered;
    const int64_t least = asked > 0 ? asked
              : ctx->opt.place == SPS_CUDA ? GATHERED_CUDA : GATHERED;
    double without = w->span.own_columns == 0;
    sps_status st;

    SPS_TRY(rows_of_node(w, &w->node));
    SPS_TRY(spsi_reduce(ctx, &without, 1));
    w->spread = without == 0 && w->span.columns > least &&
                w->node == w->fine.level[0].vectors;
fail:
    return st;
}

/* Sets w->near, the near-null vectors of A_c: those of all processes, or of
 * this one if A_c is spread. */
static sps_status take_near(over_ranks *w, const double *own, bool again)
{
    const sps_precond *M = &w->fine.super;
    const int q = w->fine.level[0].vectors;
    const int64_t n = w->spread ? w->span.own_columns : w->span.columns;
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

static sps_status keep(over_ranks *w, sps_csr **made_p, sps_csr **held_p)
{
    sps_context *ctx = w->fine.super.ctx;
    sps_status st = SPS_OK;

    SPS_REQUIRE(ctx, !*held_p || (*held_p)->nnz == (*made_p)->nnz, SPS_EBUG,
                "amg: new values of A changed the pattern of the prolongator, "
                "which must not happen; please report it");
    sps_csr_destroy(ctx, held_p);
    *held_p = *made_p;
    *made_p = NULL;
fail:
    return st;
}

/* Returns the largest number of products in A P. */
static int64_t most_products(const over_ranks *w, bool again)
{
    const amg_level *l = w->fine.level;
    const double most = AP_LIMIT * (double)l->vectors *
                        (double)w->span.rows->nnz;

    return again || !l->smoothed || most >= 0x1p62 ? INT64_MAX : (int64_t)most;
}

/* Makes A_c, P, P' and, if the cycle uses it, A P. */
static sps_status make_products(over_ranks *w, const sps_csr *T, bool again)
{
    amg *m = &w->fine;
    sps_context *ctx = m->super.ctx;
    amg_level *l = m->level;
    sps_csr *P = NULL, *R = NULL, *AP = NULL;
    bool longer;
    sps_status st;

    if (!again)
        l->smoothed = l->vectors > 0 &&
                      m->super.A->ranks->halo->whole > AMG_DENSE;
    SPS_TRY(prolong(w, T, &P));
    SPS_TRY(spsi_amg_galerkin(m, P, most_products(w, again), !w->spread,
                              &w->span, &R, &AP));
    if (!AP) {
        l->smoothed = false;
        sps_csr_destroy(ctx, &P);
        SPS_TRY(prolong(w, T, &P));
        SPS_TRY(spsi_amg_galerkin(m, P, INT64_MAX, !w->spread, &w->span, &R,
                                  &AP));
    }
    SPS_TRY(keep(w, &P, &l->P));
    SPS_TRY(keep(w, &R, &l->R));
    if (!again) {
        SPS_TRY(spsi_comm_any(ctx, !spsi_amg_ahead_pays(l, l->P, AP), &longer));
        w->ahead = !longer;
    }
    if (w->ahead) SPS_TRY(keep(w, &AP, &l->AP));
fail:
    sps_csr_destroy(ctx, &P);
    sps_csr_destroy(ctx, &R);
    sps_csr_destroy(ctx, &AP);
    return st;
}

sps_status spsi_amg_take_rows(over_ranks *w)
{
    amg_level *l = w->fine.level;
    sps_status st;

    SPS_TRY(take_rows(w));
    l->A = l->own;
    l->n = l->own->nrow;
    if (w->there) SPS_TRY(open_part(w));
    SPS_TRY(spsi_amg_scale(&w->fine, l, true));
fail:
    return st;
}

sps_status spsi_amg_project(over_ranks *w, bool again)
{
    const sps_precond *M = &w->fine.super;
    amg_level *l = w->fine.level;
    sps_csr *T = NULL;
    double *near = NULL;
    sps_status st;

    SPS_TRY(tentative(w, again, &T, &near));
    SPS_TRY(spsi_amg_number(M->A, T->ncol, &w->span));
    if (!again) SPS_TRY(decide(w));
    if (w->span.columns > 0) {
        SPS_TRY(make_products(w, T, again));
        SPS_TRY(take_near(w, near, again));
    }
fail:
    if (l->part) w->fine.device->drop(l->part);
    sps_csr_destroy(M->ctx, &T);
    spsi_free(M->ctx, near);
    sps_csr_destroy(M->ctx, &l->own);
    return st;
}
