/* SPDX-License-Identifier: BSD-3-Clause */
/* over_ranks_p.c - P and A_c of a matrix over several processes.
 *
 * Aggregates consist of own rows: the diagonal block decides about them.  P is
 * smoothed by own rows with all their couplings, and so has columns of other
 * processes: for these aggregates it is the P of the whole matrix.  (If P ended
 * where processes do, it would jump there from one row to the next: each level
 * spread beyond the second took half as many iterations again.)  A matrix small
 * enough to be a coarsest level is its own A_c, with P = I. */
#include "solvers/amg/over_ranks.h"

#include <math.h>

#include "core/team.h"
#include "matrix/order.h"

/* Largest number of rows of an A_c that each process stores as a whole: with
 * few rows, computing all of them takes less time than exchanging messages.
 * (On an H200 a product of 27 000 rows of 100 entries with 16 columns takes 48
 * us, and an exchange of 3.3 MB 25 us.) */
enum { GATHERED = 2000, GATHERED_CUDA = 100000 };
#define AP_LIMIT 30           /* largest number of products per entry for a
                                 smoothed P */

/* ------------------------------------------------------- the diagonal block */

static bool is_own(const sps_halo *h, int64_t col)
{
    return col >= h->low && col < h->low + h->n;
}

/* Writes own columns of rows first .. last - 1 of span.rows to l->own. */
static void take_columns(void *data, int64_t first, int64_t last)
{
    const over_ranks *w = data;
    const sps_halo *h = w->fine.super.A->ranks->halo;
    const sps_csr *rows = w->span.rows;
    const double *val = rows->val;
    sps_csr *own = w->fine.level[0].own;

    for (int64_t i = first; i < last; i++) {
        int64_t q = own->rowptr[i];

        for (int64_t p = rows->rowptr[i]; p < rows->rowptr[i + 1]; p++) {
            if (!is_own(h, rows->col[p])) continue;
            own->col[q] = (int32_t)(rows->col[p] - h->low);
            ((double *)own->val)[q++] = val[p];
        }
    }
}

/* Makes l->own, the diagonal block. */
static sps_status take_own(over_ranks *w)
{
    const sps_operator *A = w->fine.super.A;
    const sps_ranks *r = A->ranks;
    const sps_csr *rows = w->span.rows;
    amg_level *l = w->fine.level;
    int64_t ghosts = 0, b = 0;
    sps_status st;

    for (int64_t p = 0; p < r->edge->nnz; p++)
        ghosts += r->edge->col[p] < r->halo->low ||
                  r->edge->col[p] >= r->halo->low + r->touched;
    sps_csr_destroy(A->ctx, &l->own);    /* of an update that has failed */
    SPS_TRY(sps_csr_create(A->ctx, A->n, A->n, rows->nnz - ghosts, SPS_F64,
                           &l->own));
    for (int64_t i = 0; i < A->n; i++) {
        int64_t count = rows->rowptr[i + 1] - rows->rowptr[i];

        if (b < r->rows && r->row[b] == i) {
            b++;
            count = 0;
            for (int64_t p = rows->rowptr[i]; p < rows->rowptr[i + 1]; p++)
                count += is_own(r->halo, rows->col[p]);
        }
        l->own->rowptr[i + 1] = l->own->rowptr[i] + count;
    }
    spsi_team_run(A->ctx, A->n, 2 * rows->nnz, take_columns, w);
    l->A = l->own;
    l->n = A->n;
fail:
    return st;
}

/* -------------------------------------------------------- the filtered rows */

/* What the filter compares, for own rows and for ghosts. */
typedef struct traits {
    double scale, near, most; /* near: the first near-null vector; most: the
                                 largest coupling */
} traits;

typedef struct extension {
    const sps_halo *h;
    const sps_csr *rows, *F;  /* own rows of A; A_F of the diagonal block */
    traits *own, *ghost;
    unsigned char *strong;    /* of each coupling to a ghost, in the order of
                                 the rows */
    sps_csr *E;               /* A_F of own rows, with the columns of `rows` */
    int64_t at, count;        /* couplings to ghosts so far; entries of E */
} extension;

static traits of_column(const extension *e, int64_t col)
{
    if (is_own(e->h, col)) return e->own[col - e->h->low];
    return e->ghost[col < e->h->low ? col : col - e->h->n];
}

static double coupling(const extension *e, int64_t i, int64_t p)
{
    return -((const double *)e->rows->val)[p] * e->own[i].scale *
           of_column(e, e->rows->col[p]).scale;
}

/* Sets own and ghost; `most` only of boundary rows, the others have no
 * couplings to ghosts. */
static sps_status find_traits(const over_ranks *w, extension *e)
{
    const sps_ranks *r = w->fine.super.A->ranks;
    const amg_level *l = w->fine.level;
    sps_status st;

    for (int64_t i = 0; i < l->n; i++)
        e->own[i] = (traits){ l->scale[i], l->near[i * l->vectors], 0 };
    SPS_TRY(spsi_halo_trade(r->halo, e->own, sizeof *e->own, e->ghost));
    for (int64_t b = 0; b < r->rows; b++) {
        const int64_t i = r->row[b];

        for (int64_t p = e->rows->rowptr[i]; p < e->rows->rowptr[i + 1]; p++)
            if (e->rows->col[p] != e->h->low + i)
                e->own[i].most = fmax(e->own[i].most, coupling(e, i, p));
    }
    SPS_TRY(spsi_halo_trade(r->halo, e->own, sizeof *e->own, e->ghost));
fail:
    return st;
}

/* Decides whether the coupling to a ghost in entry p of row i is strong, as in
 * strength.c. */
static unsigned char is_strong(const extension *e, int64_t i, int64_t p)
{
    const double c = coupling(e, i, p);
    const double other = of_column(e, e->rows->col[p]).most;

    return c > 0 && c >= SPS_COARSE_THETA * fmin(e->own[i].most, other);
}

/* Adds to E row i of F and the strong couplings of that row to ghosts; the weak
 * ones are added to the diagonal as in filter.c. */
static void extend_row(extension *e, int64_t i)
{
    const double *val = e->rows->val, *from = e->F->val;
    double *out = e->E->val, weak = 0, full = 0;
    int64_t f = e->F->rowptr[i], middle = -1;

    for (int64_t p = e->rows->rowptr[i]; p < e->rows->rowptr[i + 1]; p++) {
        const int64_t own = e->rows->col[p] - e->h->low;
        const bool ghost = !is_own(e->h, e->rows->col[p]);
        const double r = of_column(e, e->rows->col[p]).near / e->own[i].near;
        const bool kept = ghost ? e->strong[e->at++]
                        : f < e->F->rowptr[i + 1] && e->F->col[f] == own;

        if (ghost && !kept) weak += val[p] * (isfinite(r) ? r : 1);
        if (!kept) continue;
        if (own == i) middle = e->count;
        if (own == i) full = val[p];
        e->E->col[e->count] = e->rows->col[p];
        out[e->count++] = ghost ? val[p] : from[f++];
    }
    e->E->rowptr[i + 1] = e->count;
    if (middle >= 0)
        out[middle] = fmax(out[middle] + weak, SPS_COARSE_LEAST * full);
}

/* Sets w->strong. */
static sps_status look_for_strong(over_ranks *w, const extension *e)
{
    int64_t count = 0;
    sps_status st;

    for (int64_t p = 0; p < e->rows->nnz; p++)
        count += !is_own(e->h, e->rows->col[p]);
    SPS_TRY(SPS_OWN(&w->fine.super.own, count + 1, &w->strong));
    count = 0;
    for (int64_t i = 0; i < e->rows->nrow; i++)
        for (int64_t p = e->rows->rowptr[i]; p < e->rows->rowptr[i + 1]; p++)
            if (!is_own(e->h, e->rows->col[p]))
                w->strong[count++] = is_strong(e, i, p);
fail:
    return st;
}

/* *E_p = A_F of own rows with the columns of span.rows; F: that of the diagonal
 * block. */
static sps_status extend(over_ranks *w, const sps_csr *F, sps_csr **E_p)
{
    sps_context *ctx = w->fine.super.ctx;
    extension e = { .h = w->fine.super.A->ranks->halo, .rows = w->span.rows,
                    .F = F };
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, e.h->n + 1, &e.own));
    SPS_TRY(SPS_NEW(ctx, e.h->ghosts + 1, &e.ghost));
    SPS_TRY(find_traits(w, &e));
    if (!w->strong) SPS_TRY(look_for_strong(w, &e));
    e.strong = w->strong;
    SPS_TRY(sps_csr_create(ctx, e.rows->nrow, e.rows->ncol, e.rows->nnz,
                           SPS_F64, &e.E));
    for (int64_t i = 0; i < e.rows->nrow; i++) extend_row(&e, i);
    e.E->nnz = e.count;
    *E_p = e.E;
fail:
    spsi_free(ctx, e.own);
    spsi_free(ctx, e.ghost);
    return st;
}

/* ------------------------------------------------------------------------ P */

/* Sets *E_p to A_F of own rows if some process drops couplings, and *rho to the
 * largest eigenvalue of D_F^-1 A_F: the largest of those of diagonal blocks. */
static sps_status filter(over_ranks *w, double *rho, sps_csr **E_p)
{
    sps_context *ctx = w->fine.super.ctx;
    const amg_level *l = w->fine.level;
    sps_csr *F = NULL;
    double *factor = NULL, bound;
    bool any;
    sps_status st;

    SPS_TRY(spsi_amg_filter(ctx, l, &F));
    SPS_TRY(spsi_comm_any(ctx, F != NULL, &any));
    *rho = l->rho;
    if (!any) goto fail;
    SPS_TRY(SPS_NEW(ctx, l->n + 1, &factor));
    spsi_amg_scaling(l, F ? F : l->A, 0, factor);
    SPS_TRY(spsi_amg_spectrum(ctx, F ? F : l->A, factor, rho, &bound));
    SPS_TRY(spsi_comm_largest(ctx, rho));
    SPS_TRY(extend(w, F ? F : l->A, E_p));
fail:
    sps_csr_destroy(ctx, &F);
    spsi_free(ctx, factor);
    return st;
}

/* *P_p = P, smoothed. */
static sps_status smooth(over_ranks *w, const sps_csr *T, sps_csr **P_p)
{
    const sps_precond *M = &w->fine.super;
    const amg_level *l = w->fine.level;
    const int64_t low = M->A->ranks->halo->low;
    sps_csr *E = NULL, *all = NULL;
    double *factor = NULL, rho;
    sps_status st;

    SPS_TRY(filter(w, &rho, &E));
    SPS_TRY(spsi_amg_join(M->A, T, w->span.first, w->span.columns, &all));
    SPS_TRY(SPS_NEW(M->ctx, l->n + 1, &factor));
    spsi_amg_scaling(l, E ? E : w->span.rows, low, factor);
    SPS_TRY(spsi_amg_smooth_by(M->ctx, E ? E : w->span.rows, factor, rho, all,
                               low, P_p));
fail:
    sps_csr_destroy(M->ctx, &E);
    sps_csr_destroy(M->ctx, &all);
    spsi_free(M->ctx, factor);
    return st;
}

/* *P_p = T, of whose columns this process has those from `first` on. */
static sps_status renumber(const over_ranks *w, const sps_csr *T, sps_csr **P_p)
{
    sps_status st;

    SPS_TRY(sps_csr_wrap(w->fine.super.ctx, T->nrow, w->span.columns, T->nnz,
                         T->rowptr, T->col, T->val, SPS_F64, SPS_HOST,
                         SPS_COPY, P_p));
    for (int64_t p = 0; p < T->nnz; p++)
        (*P_p)->col[p] += (int32_t)w->span.first;
fail:
    return st;
}

/* Returns whether a product of A with T, smoothed, takes too many
 * multiplications. */
static sps_status explodes(const over_ranks *w, const sps_csr *P,
                           bool *too_many)
{
    const amg_level *l = w->fine.level;

    return spsi_comm_any(w->fine.super.ctx,
                         (double)spsi_amg_products(&w->fine, l->A, P) >
                         AP_LIMIT * (double)l->vectors * (double)l->A->nnz,
                         too_many);
}

/* *P_p = P, smoothed unless that takes too many products. */
static sps_status prolong(over_ranks *w, const sps_csr *T, bool again,
                          sps_csr **P_p)
{
    amg_level *l = w->fine.level;
    bool too_many = false;
    sps_status st;

    if (!again)
        l->smoothed = l->vectors > 0 &&
                      w->fine.super.A->ranks->halo->whole > AMG_DENSE;
    if (!l->smoothed) return renumber(w, T, P_p);
    SPS_TRY(smooth(w, T, P_p));
    if (!again) SPS_TRY(explodes(w, *P_p, &too_many));
    if (!too_many) return st;
    sps_csr_destroy(w->fine.super.ctx, P_p);
    l->smoothed = false;
    SPS_TRY(renumber(w, T, P_p));
fail:
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

    if (m->super.A->ranks->halo->whole <= AMG_DENSE) {
        SPS_TRY(SPS_NEW(m->super.ctx, l->n * l->vectors + 1, near_p));
        for (int64_t e = 0; e < l->n * l->vectors; e++)
            (*near_p)[e] = l->near[e];
        return spsi_permutation(m->super.ctx, l->n, NULL, T_p);
    }
    if (!again) SPS_TRY(spsi_amg_gather(m, l));
    if (l->aggregates == 0)
        return sps_csr_create(m->super.ctx, l->n, 0, 0, SPS_F64, T_p);
    SPS_TRY(spsi_amg_fit(m, l, again, &t));
    *T_p = t.T;
    *near_p = t.near;
    t.T = NULL;
    t.near = NULL;
fail:
    spsi_amg_drop(m, l, &t);
    return st;
}

/* ---------------------------------------------------------- the next level */

/* *rows = number of rows of a node of A_c, or 1 if aggregates differ. */
static sps_status rows_of_node(const over_ranks *w, int *rows)
{
    const amg_level *l = w->fine.level;
    double uneven = 0;
    sps_status st;

    for (int64_t a = 0; a < l->aggregates; a++)
        uneven += l->place[a + 1] - l->place[a] != l->vectors;
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
    const int least = ctx->opt.place == SPS_CUDA ? GATHERED_CUDA : GATHERED;
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

/* Makes A_c, P, P' and, if the cycle uses it, A P. */
static sps_status make_products(over_ranks *w, const sps_csr *T, bool again)
{
    sps_context *ctx = w->fine.super.ctx;
    amg_level *l = w->fine.level;
    sps_csr *P = NULL, *R = NULL, *AP = NULL;
    bool longer;
    sps_status st;

    SPS_TRY(prolong(w, T, again, &P));
    SPS_TRY(spsi_amg_galerkin(w->fine.super.A, P, !w->spread, &w->span, &R,
                              &AP));
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
    sps_status st;

    SPS_TRY(spsi_ranks_rows(w->fine.super.A, &w->span.rows));
    SPS_TRY(take_own(w));
    SPS_TRY(spsi_amg_scale(&w->fine, w->fine.level, true));
fail:
    return st;
}

sps_status spsi_amg_project(over_ranks *w, bool again)
{
    const sps_precond *M = &w->fine.super;
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
    sps_csr_destroy(M->ctx, &T);
    spsi_free(M->ctx, near);
    sps_csr_destroy(M->ctx, &w->fine.level[0].own);
    return st;
}
