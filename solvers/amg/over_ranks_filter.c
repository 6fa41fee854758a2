/* SPDX-License-Identifier: BSD-3-Clause */
/* over_ranks_filter.c - A_F, the filtered matrix, of own rows of a matrix over
 * several processes.
 *
 * The filter of the diagonal block decides about its couplings; those to ghosts
 * are compared here, with what the processes that own the ghosts know of them.
 * Boundary rows are worked on in host memory. */
#include "solvers/amg/over_ranks.h"

#include <math.h>

#include "core/team.h"
#include "matrix/some_rows.h"

/* What the filter compares. */
typedef struct traits {
    double scale, near, most; /* near: the first near-null vector; most: the
                                 largest coupling */
} traits;

/* Only boundary rows have couplings to ghosts. */
typedef struct extension {
    const sps_ranks *r;
    traits *row, *column;     /* of boundary rows, and of the columns of
                                 r->edge */
    unsigned char *strong;    /* of each coupling to a ghost, in the order of
                                 the rows */
    sps_csr *few;             /* boundary rows of A_F, with the columns of
                                 span.rows */
    double *factor;           /* their d^(-1/2), see coarsening.h, `smooth` */
    const sps_csr *F;         /* boundary rows of A_F of the diagonal block */
    int64_t *at;              /* rows + 1: couplings to ghosts in the rows before
                                 each */
} extension;

static bool is_ghost(const sps_ranks *r, int64_t col)
{
    return col < r->halo->low || col >= r->halo->low + r->touched;
}

/* Sets scale and near of rows row[0], row[1], ... */
static sps_status traits_of(const over_ranks *w, const int32_t *row,
                            int64_t rows, traits *t)
{
    const amg_level *l = w->fine.level;
    double *two = NULL;
    sps_status st = SPS_OK;

    if (!l->part) {
        for (int64_t i = 0; i < rows; i++)
            t[i] = (traits){ l->scale[row[i]], l->near[row[i] * l->vectors],
                             0 };
        return SPS_OK;
    }
    SPS_TRY(SPS_NEW(w->fine.super.ctx, 2 * rows + 1, &two));
    SPS_TRY(w->fine.device->traits(l->part, row, rows, two));
    for (int64_t i = 0; i < rows; i++)
        t[i] = (traits){ two[2 * i], two[2 * i + 1], 0 };
fail:
    spsi_free(w->fine.super.ctx, two);
    return st;
}

static double coupling(const extension *e, int64_t b, int64_t p)
{
    return -spsi_csr_value(e->r->edge, p) * e->row[b].scale *
           e->column[e->r->edge->col[p]].scale;
}

static void find_most(void *data, int64_t first, int64_t last)
{
    const extension *e = data;
    const sps_csr *B = e->r->edge;

    for (int64_t b = first; b < last; b++)
        for (int64_t p = B->rowptr[b]; p < B->rowptr[b + 1]; p++) {
            const int64_t at = B->col[p] - e->r->halo->low;

            if (is_ghost(e->r, B->col[p]) || e->r->touch[at] != e->r->row[b])
                e->row[b].most = fmax(e->row[b].most, coupling(e, b, p));
        }
}

typedef struct most_list {
    const extension *e;
    traits *to;               /* of the rows that are sent */
} most_list;

static void list_most(void *data, int64_t first, int64_t last)
{
    const most_list *m = data;
    const sps_ranks *r = m->e->r;

    for (int64_t i = first; i < last; i++) {
        const int64_t b = spsi_ranks_edge_of(r, r->halo->send[i]);

        if (b >= 0) m->to[i].most = m->e->row[b].most;
    }
}

/* Runs part on the boundary rows of e. */
static void each_row(const extension *e, spsi_team_fn *part)
{
    spsi_team_run(e->r->halo->ctx, e->r->rows, 8 * e->r->edge->nnz, part,
                  (void *)e);
}

/* Receives the traits of ghosts from those that have them. */
static sps_status trade_traits(const over_ranks *w, const extension *e,
                               bool most)
{
    sps_halo *h = e->r->halo;
    const int64_t sent = h->send_at[h->neighbours];
    traits *out = NULL, *ghost = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(h->ctx, sent + 1, &out));
    SPS_TRY(SPS_NEW(h->ctx, h->ghosts + 1, &ghost));
    SPS_TRY(traits_of(w, h->send, sent, out));
    if (most)
        spsi_team_run(h->ctx, sent, 50 * sent, list_most,
                      &(most_list){ e, out });
    SPS_TRY(spsi_halo_trade_packed(h, out, sizeof *out, ghost));
    for (int64_t g = 0; g < h->ghosts; g++)
        e->column[g < h->low ? g : g + e->r->touched] = ghost[g];
fail:
    spsi_free(h->ctx, out);
    spsi_free(h->ctx, ghost);
    return st;
}

static sps_status find_traits(const over_ranks *w, extension *e)
{
    const sps_ranks *r = e->r;
    sps_status st;

    SPS_TRY(SPS_NEW(r->halo->ctx, r->rows + 1, &e->row));
    SPS_TRY(SPS_NEW(r->halo->ctx, r->edge->ncol + 1, &e->column));
    SPS_TRY(traits_of(w, r->row, r->rows, e->row));
    SPS_TRY(traits_of(w, r->touch, r->touched, e->column + r->halo->low));
    SPS_TRY(trade_traits(w, e, false));
    each_row(e, find_most);
    SPS_TRY(trade_traits(w, e, true));
fail:
    return st;
}

/* Decides whether the coupling to a ghost in entry p of boundary row b is
 * strong, as in strength.c. */
static unsigned char is_strong(const extension *e, int64_t b, int64_t p)
{
    const double c = coupling(e, b, p);
    const double other = e->column[e->r->edge->col[p]].most;

    return c > 0 && c >= SPS_COARSE_THETA * fmin(e->row[b].most, other);
}

/* Row b of e->few becomes that of e->F and the strong couplings of that row to
 * ghosts; the weak ones are added to the diagonal as in filter.c. */
static void extend_row(const extension *e, int64_t b)
{
    const sps_ranks *r = e->r;
    const sps_csr *B = r->edge, *F = e->F;
    const double *from = F->val;
    double *out = e->few->val, weak = 0, full = 0;
    int64_t f = F->rowptr[b], at = e->at[b], q = e->few->rowptr[b];
    int64_t middle = -1;

    for (int64_t p = B->rowptr[b]; p < B->rowptr[b + 1]; p++) {
        const bool ghost = is_ghost(r, B->col[p]);
        const int64_t own = ghost ? -1 : r->touch[B->col[p] - r->halo->low];
        const double near = e->column[B->col[p]].near / e->row[b].near;
        const double v = spsi_csr_value(B, p);
        const bool kept = ghost ? e->strong[at++]
                        : f < F->rowptr[b + 1] && F->col[f] == own;

        if (ghost && !kept) weak += v * (isfinite(near) ? near : 1);
        if (!kept) continue;
        if (own == r->row[b]) middle = q;
        if (own == r->row[b]) full = v;
        e->few->col[q] = spsi_ranks_column(r, B->col[p]);
        out[q++] = ghost ? v : from[f++];
    }
    if (middle >= 0)
        out[middle] = fmax(out[middle] + weak, SPS_COARSE_LEAST * full);
    e->factor[b] = middle >= 0 && e->row[b].scale > 0 && out[middle] > 0
                       ? 1 / sqrt(out[middle]) : 0;
}

static void extend_rows(void *data, int64_t first, int64_t last)
{
    for (int64_t b = first; b < last; b++) extend_row(data, b);
}

static void count_ghosts(void *data, int64_t first, int64_t last)
{
    const extension *e = data;
    const sps_csr *B = e->r->edge;

    for (int64_t b = first; b < last; b++) {
        e->at[b + 1] = 0;
        for (int64_t p = B->rowptr[b]; p < B->rowptr[b + 1]; p++)
            e->at[b + 1] += is_ghost(e->r, B->col[p]);
    }
}

static void mark_strong(void *data, int64_t first, int64_t last)
{
    const extension *e = data;
    const sps_csr *B = e->r->edge;
    int64_t at = e->at[first];

    for (int64_t b = first; b < last; b++)
        for (int64_t p = B->rowptr[b]; p < B->rowptr[b + 1]; p++)
            if (is_ghost(e->r, B->col[p])) e->strong[at++] = is_strong(e, b, p);
}

/* Sets e->at and e->strong, which is w->strong and kept for new values. */
static sps_status find_strong(over_ranks *w, extension *e)
{
    const bool again = w->strong != NULL;
    const int64_t rows = e->r->rows;
    sps_status st;

    SPS_TRY(SPS_NEW(w->fine.super.ctx, rows + 1, &e->at));
    each_row(e, count_ghosts);
    for (int64_t b = 0; b < rows; b++) e->at[b + 1] += e->at[b];
    if (!again)
        SPS_TRY(SPS_OWN(&w->fine.super.own, e->at[rows] + 1, &w->strong));
    e->strong = w->strong;
    if (!again) each_row(e, mark_strong);
fail:
    return st;
}

/* Allocates e->few and sets its offsets. */
static sps_status open_few(const over_ranks *w, extension *e)
{
    const sps_csr *F = e->F;
    int64_t nnz = 0;
    sps_status st;

    SPS_TRY(sps_csr_create(w->fine.super.ctx, F->nrow, w->span.rows->ncol,
                           e->r->edge->nnz, SPS_F64, &e->few));
    for (int64_t b = 0; b < F->nrow; b++) {
        nnz += F->rowptr[b + 1] - F->rowptr[b];
        for (int64_t q = e->at[b]; q < e->at[b + 1]; q++) nnz += e->strong[q];
        e->few->rowptr[b + 1] = nnz;
    }
    e->few->nnz = nnz;
fail:
    return st;
}

/* *E_p = A_F of own rows with the columns of span.rows, and *factor_p the
 * factors of boundary rows, which the caller frees; F: A_F of the diagonal
 * block. */
static sps_status extend(over_ranks *w, const sps_csr *F, sps_csr **E_p,
                         double **factor_p)
{
    sps_context *ctx = w->fine.super.ctx;
    extension e = { .r = w->fine.super.A->ranks };
    const sps_ranks *r = e.r;
    const spsi_placing p = { .nrow = F->nrow, .ncol = w->span.rows->ncol,
                             .shift = r->halo->low, .row = r->row };
    sps_csr *edge = NULL;
    sps_status st;

    SPS_TRY(find_traits(w, &e));
    SPS_TRY(find_strong(w, &e));
    SPS_TRY(SPS_NEW(ctx, r->rows + 1, factor_p));
    e.factor = *factor_p;
    SPS_TRY(spsi_rows_pick(ctx, F, r->row, r->rows, &edge));
    e.F = edge;
    SPS_TRY(open_few(w, &e));
    each_row(&e, extend_rows);
    SPS_TRY(spsi_rows_replace(ctx, F, &p, e.few, E_p));
fail:
    spsi_free(ctx, e.at);
    spsi_free(ctx, e.row);
    spsi_free(ctx, e.column);
    sps_csr_destroy(ctx, &e.few);
    sps_csr_destroy(ctx, &edge);
    return st;
}

sps_status spsi_amg_filter_across(over_ranks *w, double *rho, sps_csr **E_p,
                                  double **factor_p)
{
    amg *m = &w->fine;
    sps_csr *made = NULL;
    const sps_csr *F;
    bool any;
    sps_status st;

    *rho = m->level[0].rho;
    SPS_TRY(spsi_amg_filter_block(m, m->level, &made, &F));
    SPS_TRY(spsi_comm_any(m->super.ctx, F != NULL, &any));
    if (!any) goto fail;
    SPS_TRY(spsi_amg_filtered_bounds(m, m->level, F, rho));
    SPS_TRY(spsi_comm_largest(m->super.ctx, rho));
    SPS_TRY(extend(w, F ? F : m->level[0].A, E_p, factor_p));
fail:
    sps_csr_destroy(m->super.ctx, &made);
    return st;
}
