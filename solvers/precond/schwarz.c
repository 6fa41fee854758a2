/* SPDX-License-Identifier: BSD-3-Clause */
/* schwarz.c - factors of the diagonal block of each process and a coarse space:
 * additive Schwarz in two levels.
 *
 * The columns of V are near-null vectors, cut where processes end: q on each.
 * With W = A V, the coarse matrix is V'W, of q P rows; its inverse is stored on
 * each process, and Q = V (V'W)^-1 V'.  With N, the factors of the diagonal
 * blocks, and a symmetric A (Mandel, Comm. Numer. Meth. Engrg. 9, 1993)
 *
 *   M = Q + (I - Q A) N (I - A Q),
 *
 * and otherwise Q + N (I - A Q).  A Q R and Q A Z need W and W' only, whose
 * rows have entries for this process and its neighbours: two sums of q P k
 * numbers, or one, and no product with A.  For a symmetric A the errors that
 * are left are A-orthogonal to V in exact arithmetic, so that iterations are
 * bounded for shares of equal size (check_schwarz); for other A they may
 * grow.
 *
 * On the host, for an A that is not symmetric, N has the factors of the rows of
 * each process and of their neighbours in the graph (near_rows.h), and keeps
 * the own rows of what they give: restricted additive Schwarz (Cai and Sarkis,
 * SIAM J. Sci. Comput. 21, 1999), for one exchange more. */
#include "solvers/precond/near_rows.h"
#include "solvers/precond/schwarz.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/comm.h"
#include "core/options.h"
#include "matrix/coarsening.h"
#include "operator/operator_ranks.h"

enum { LARGEST = 1000,        /* rows of the coarse matrix, on each process */
       MOST = 6 };            /* vectors of a process */
#define SMALL 1e-10           /* a pivot that is omitted, as a fraction of the
                                 largest */

typedef struct schwarz {
    sps_precond super;
    sps_precond *inner;       /* N */
    bool symmetric;
    bool overlaps;            /* inner is made from the near rows: */
    struct near_rows near;
    sps_operator *wide;
    sps_block *packed;        /* rows that others need, x width */
    sps_block *r, *z;         /* near rows x width */
    int q;                    /* vectors of each process, 0: no coarse space */
    int64_t rows;             /* q P */
    double *v;                /* n x q, row-major: own rows of V */
    sps_csr *V, *VT, *W, *WT;
    sps_operator *of_V, *of_VT, *of_W, *of_WT;
    double *inverse;          /* rows x rows */
    double *h, *y;            /* rows x width */
    sps_block *own;           /* q x width */
    sps_block *all;           /* rows x width */
    sps_block *rest;          /* n x width */
} schwarz;

/* ----------------------------------------------------------------- vectors */

/* Sets *unknowns to the rows of a node, on all processes: those of the diagonal
 * block, or of the coordinates, or 1. */
static sps_status rows_of_node(const schwarz *w, const sps_options *opt,
                               int *unknowns)
{
    const sps_operator *A = w->super.A, *own;
    const sps_block *c = opt->coords;
    int u = opt->block_size;
    bool same;
    sps_status st;

    SPS_TRY(spsi_ranks_own(A, &own));
    if (u == 0) u = own->f.block;
    if (c && c->n > 0 && A->n % c->n == 0) u = (int)(A->n / c->n);
    if (u > MOST / 2 || A->n % u || A->ranks->halo->first % u) u = 1;
    SPS_TRY(spsi_comm_same(A->ctx, u, &same));
    *unknowns = same ? u : 1;
fail:
    return st;
}

/* Adds the rotations to the translations in v, for d unknowns of each node at
 * the points x, n / d x d; about the middle of the own nodes. */
static void add_rotations(double *v, int64_t n, int q, const double *x, int d)
{
    double middle[3] = { 0 };

    for (int64_t i = 0; i < n; i++) middle[i % d] += x[i] * d / (double)n;
    for (int64_t i = 0; i < n; i++) {
        double own[3];

        for (int a = 0; a < d; a++) own[a] = x[i / d * d + a] - middle[a];
        for (int r = d; r < q; r++)
            v[i * q + r] = spsi_coarse_motion(own, d, r, (int)(i % d));
    }
}

/* Makes the columns of v orthonormal; those that depend on others become 0. */
static void orthonormalise(double *v, int64_t n, int q)
{
    for (int a = 0; a < q; a++) {
        double before = 0, after = 0;

        for (int64_t i = 0; i < n; i++) before += v[i * q + a] * v[i * q + a];
        for (int b = 0; b < a; b++) {
            double dot = 0;

            for (int64_t i = 0; i < n; i++) dot += v[i * q + a] * v[i * q + b];
            for (int64_t i = 0; i < n; i++) v[i * q + a] -= dot * v[i * q + b];
        }
        for (int64_t i = 0; i < n; i++) after += v[i * q + a] * v[i * q + a];
        for (int64_t i = 0; i < n; i++)
            v[i * q + a] *= after > 1e-20 * before ? 1 / sqrt(after) : 0;
    }
}

/* Makes w->v: a constant for each unknown of a node; with the coordinates of
 * nodes of 2 or 3 unknowns, also their rotations. */
static sps_status make_vectors(schwarz *w, const sps_options *opt)
{
    const sps_block *c = opt->coords;
    const int size = spsi_comm_size(w->super.ctx);
    const int64_t n = w->super.n;
    double *x = NULL, turns, all;
    int u;
    sps_status st;

    SPS_TRY(rows_of_node(w, opt, &u));
    turns = u > 1 && c && c->k == u && c->n * u == n;
    all = turns;
    SPS_TRY(spsi_reduce(w->super.ctx, &all, 1));
    w->q = all == size ? u * (u + 1) / 2 : u;
    if ((int64_t)w->q * size > LARGEST) w->q = size <= LARGEST ? 1 : 0;
    w->rows = (int64_t)w->q * size;
    if (w->q == 0) goto fail;
    SPS_TRY(SPS_OWN(&w->super.own, n * w->q + 1, &w->v));
    for (int64_t i = 0; i < n; i++) w->v[i * w->q + i % u % w->q] = 1;
    if (w->q > u) {
        SPS_TRY(SPS_NEW(w->super.ctx, n, &x));
        SPS_TRY(sps_block_get(c, 0, u, x, u, SPS_ROW_MAJOR, SPS_HOST));
        add_rotations(w->v, n, w->q, x, u);
    }
    orthonormalise(w->v, n, w->q);
fail:
    spsi_free(w->super.ctx, x);
    return st;
}

/* ----------------------------------------------------------------- W = A V */

/* Returns the number of entries of row i of W.  With W, adds up their values
 * from position `at` on; `ghost` has the rows of V of the ghosts. */
static int64_t couple(const schwarz *w, int64_t i, const sps_csr *B,
                      int64_t row, const double *ghost, sps_csr *W, int64_t at)
{
    const sps_ranks *r = w->super.A->ranks;
    const sps_csr *A = r->A;
    const int64_t *global = A->global + A->rowptr[i];
    const int64_t length = A->rowptr[i + 1] - A->rowptr[i];
    int owner = -1;
    int64_t q = 0;

    for (int64_t p = 0; p < length; p++) {
        const int64_t own = global[p] - A->first;
        const bool here = own >= 0 && own < A->nrow;
        const int of = here ? spsi_comm_rank(w->super.ctx)
                            : spsi_halo_owner(r->halo, global[p]);
        const double *v;

        if (of != owner) q += w->q;
        owner = of;
        if (!W) continue;
        v = here ? w->v + own * w->q
                 : ghost + spsi_halo_ghost(r->halo, global[p]) * w->q;
        for (int a = 0; a < w->q; a++) {
            W->col[at + q - w->q + a] = of * w->q + a;
            ((double *)W->val)[at + q - w->q + a] +=
                spsi_csr_value(B, B->rowptr[row] + p) * v[a];
        }
    }
    return q;
}

/* Walks the own rows of A; W may be NULL.  Returns the entries of W. */
static int64_t couple_all(const schwarz *w, const double *ghost, sps_csr *W)
{
    const sps_ranks *r = w->super.A->ranks;
    int64_t b = 0, q = 0;

    for (int64_t i = 0; i < w->super.n; i++) {
        const bool at_edge = b < r->rows && r->row[b] == i;

        q += couple(w, i, at_edge ? r->edge : r->inner, at_edge ? b : i, ghost,
                    W, q);
        if (W) W->rowptr[i + 1] = q;
        b += at_edge;
    }
    return q;
}

/* Makes W and W'; once they exist, their operators use them, and only values
 * change. */
static sps_status make_w(schwarz *w)
{
    sps_context *ctx = w->super.ctx;
    sps_halo *h = w->super.A->ranks->halo;
    sps_csr *T = NULL;
    double *ghost = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, h->ghosts * w->q, &ghost));
    SPS_TRY(spsi_halo_trade(h, w->v, (size_t)w->q * sizeof *w->v, ghost));
    if (!w->W)
        SPS_TRY(sps_csr_create(ctx, w->super.n, w->rows,
                               couple_all(w, NULL, NULL), SPS_F64, &w->W));
    if (w->W->nnz > 0)
        memset(w->W->val, 0, (size_t)w->W->nnz * sizeof(double));
    (void)couple_all(w, ghost, w->W);
    SPS_TRY(spsi_csr_transpose(ctx, w->W, w->WT ? &T : &w->WT));
    if (T && T->nnz > 0)
        memcpy(w->WT->val, T->val, (size_t)T->nnz * sizeof(double));
fail:
    sps_csr_destroy(ctx, &T);
    spsi_free(ctx, ghost);
    return st;
}

/* ------------------------------------------------------- the coarse matrix */

/* Eliminates row and column k of the m x m matrix E by Gauss and Jordan, in
 * place. */
static void eliminate(double *E, int64_t m, int64_t k)
{
    const double d = 1 / E[k * m + k];

    E[k * m + k] = 1;
    for (int64_t j = 0; j < m; j++) E[k * m + j] *= d;
    for (int64_t i = 0; i < m; i++) {
        const double f = E[i * m + k];

        if (i == k || f == 0) continue;
        E[i * m + k] = 0;
        for (int64_t j = 0; j < m; j++) E[i * m + j] -= f * E[k * m + j];
    }
}

/* Replaces E by its inverse, with pivots from the diagonal, the largest first.
 * Where they become small, as for a singular A, the vectors of the other rows
 * are omitted: rows and columns become 0. */
static void invert(double *E, int64_t m, bool *done)
{
    double largest = 0;

    for (int64_t step = 0; step < m; step++) {
        int64_t k = -1;

        for (int64_t i = 0; i < m; i++)
            if (!done[i] && (k < 0 || fabs(E[i * m + i]) > fabs(E[k * m + k])))
                k = i;
        if (step == 0) largest = fabs(E[k * m + k]);
        if (!(fabs(E[k * m + k]) > SMALL * largest)) break;
        eliminate(E, m, k);
        done[k] = true;
    }
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < m; j++)
            if (!done[i] || !done[j]) E[i * m + j] = 0;
}

/* Makes the inverse of V'W. */
static sps_status make_inverse(schwarz *w)
{
    sps_context *ctx = w->super.ctx;
    const int64_t m = w->rows, first = (int64_t)spsi_comm_rank(ctx) * w->q;
    const double *val = w->W->val;
    double *E = w->inverse;
    bool *done = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, m, &done));
    memset(E, 0, (size_t)(m * m) * sizeof *E);
    for (int64_t i = 0; i < w->super.n; i++)
        for (int64_t p = w->W->rowptr[i]; p < w->W->rowptr[i + 1]; p++)
            for (int a = 0; a < w->q; a++)
                E[(first + a) * m + w->W->col[p]] +=
                    w->v[i * w->q + a] * val[p];
    SPS_TRY(spsi_reduce_long(ctx, E, m * m));
    for (int64_t i = 0; w->symmetric && i < m; i++)
        for (int64_t j = 0; j < i; j++)
            E[i * m + j] = E[j * m + i] = (E[i * m + j] + E[j * m + i]) / 2;
    invert(E, m, done);
fail:
    spsi_free(ctx, done);
    return st;
}

/* ------------------------------------------------------------------ set-up */

/* Makes V and V'. */
static sps_status make_v(schwarz *w)
{
    const int64_t n = w->super.n;
    sps_status st;

    SPS_TRY(sps_csr_create(w->super.ctx, n, w->q, n * w->q, SPS_F64, &w->V));
    for (int64_t i = 0; i < n; i++) {
        w->V->rowptr[i + 1] = (i + 1) * w->q;
        for (int a = 0; a < w->q; a++) {
            w->V->col[i * w->q + a] = a;
            ((double *)w->V->val)[i * w->q + a] = w->v[i * w->q + a];
        }
    }
    SPS_TRY(spsi_csr_transpose(w->super.ctx, w->V, &w->VT));
fail:
    return st;
}

static sps_status open_coarse(schwarz *w)
{
    sps_precond *M = &w->super;
    const int k = M->width;
    sps_status st;

    SPS_TRY(make_v(w));
    SPS_TRY(SPS_OWN(&M->own, w->rows * w->rows, &w->inverse));
    SPS_TRY(SPS_OWN(&M->own, w->rows * k, &w->h));
    SPS_TRY(SPS_OWN(&M->own, w->rows * k, &w->y));
    SPS_TRY(spsi_own_block(&M->own, w->q, k, &w->own));
    SPS_TRY(spsi_own_block(&M->own, w->rows, k, &w->all));
    SPS_TRY(spsi_own_block(&M->own, M->n, k, &w->rest));
    SPS_TRY(sps_operator_csr(M->ctx, w->V, k, NULL, &w->of_V));
    SPS_TRY(sps_operator_csr(M->ctx, w->VT, k, NULL, &w->of_VT));
    SPS_TRY(make_w(w));
    SPS_TRY(make_inverse(w));
    SPS_TRY(sps_operator_csr(M->ctx, w->W, k, NULL, &w->of_W));
    SPS_TRY(sps_operator_csr(M->ctx, w->WT, k, NULL, &w->of_WT));
fail:
    return st;
}

/* Sets *of to the operator whose factors inner has. */
static sps_status take_rows(schwarz *w, const sps_operator **of)
{
    sps_precond *M = &w->super;
    const sps_halo *h;
    sps_status st;

    if (!w->overlaps) return spsi_ranks_own(M->A, of);
    SPS_TRY(spsi_near_rows_of(M->A, 1, &w->near));
    h = w->near.halo;
    SPS_TRY(spsi_own_block(&M->own, h->send_at[h->neighbours], M->width,
                           &w->packed));
    SPS_TRY(spsi_own_block(&M->own, w->near.A->nrow, M->width, &w->r));
    SPS_TRY(spsi_own_block(&M->own, w->near.A->nrow, M->width, &w->z));
    SPS_TRY(sps_operator_csr(M->ctx, w->near.A, M->width, NULL, &w->wide));
    *of = w->wide;
fail:
    return st;
}

static sps_status build(sps_precond *M, const sps_options *opt)
{
    schwarz *w = (schwarz *)M;
    const sps_operator *rows;
    sps_options o = *opt;
    double difference;
    sps_comm *of;
    sps_status st;

    w->symmetric = M->A->props & (SPS_SYMMETRIC | SPS_SPD);
    if (!w->symmetric)
        SPS_TRY(spsi_ranks_symmetric(M->A, 1e-10, &w->symmetric, &difference));
    w->overlaps = !w->symmetric && M->ctx->opt.place == SPS_HOST;
    SPS_TRY(take_rows(w, &rows));
    of = spsi_comm_apart(M->ctx);
    st = spsi_precond_named(rows, M->width, M->type->name, &o, M->passes,
                            &w->inner);
    SPS_TRY(spsi_rejoin(M->ctx, of, st));
    M->roundoff = w->inner->roundoff;
    SPS_TRY(make_vectors(w, opt));
    if (w->q > 0) SPS_TRY(open_coarse(w));
fail:
    return st;
}

/* Sets the present values of the near rows. */
static sps_status follow(schwarz *w)
{
    struct near_rows now = { 0 };
    sps_status st;

    SPS_TRY(spsi_near_rows_of(w->super.A, 1, &now));
    SPS_TRY(sps_operator_set_values(w->wide, now.A->val, SPS_HOST));
fail:
    spsi_near_clear(w->super.ctx, &now);
    return st;
}

static sps_status update(sps_precond *M)
{
    schwarz *w = (schwarz *)M;
    sps_comm *of;
    sps_status st = SPS_OK;

    if (w->overlaps) SPS_TRY(follow(w));
    of = spsi_comm_apart(M->ctx);
    if (w->inner->type->update) st = sps_precond_update(w->inner);
    SPS_TRY(spsi_rejoin(M->ctx, of, st));
    if (w->q == 0) goto fail;
    SPS_TRY(make_w(w));
    SPS_TRY(make_inverse(w));
    SPS_TRY(sps_operator_set_values(w->of_W, w->W->val, SPS_HOST));
    SPS_TRY(sps_operator_set_values(w->of_WT, w->WT->val, SPS_HOST));
fail:
    return st;
}

static void destroy(sps_precond *M)
{
    schwarz *w = (schwarz *)M;

    sps_precond_destroy(&w->inner);
    sps_operator_destroy(&w->wide);
    spsi_near_clear(M->ctx, &w->near);
    sps_operator_destroy(&w->of_V);
    sps_operator_destroy(&w->of_VT);
    sps_operator_destroy(&w->of_W);
    sps_operator_destroy(&w->of_WT);
    sps_csr_destroy(M->ctx, &w->V);
    sps_csr_destroy(M->ctx, &w->VT);
    sps_csr_destroy(M->ctx, &w->W);
    sps_csr_destroy(M->ctx, &w->WT);
}

/* ------------------------------------------------------------- application */

static sps_block narrow(const sps_block *X, int k)
{
    sps_block view = *X;

    view.k = k;
    view.ld = spsi_block_ld(k);
    return view;
}

/* w->y = inverse h, where h, rows x k, is summed over the processes. */
static sps_status solve_coarse(const schwarz *w, int k)
{
    const int64_t m = w->rows;
    sps_status st;

    SPS_TRY(spsi_reduce_long(w->super.ctx, w->h, m * k));
    memset(w->y, 0, (size_t)(m * k) * sizeof *w->y);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < m; j++)
            for (int c = 0; c < k; c++)
                w->y[i * k + c] += w->inverse[i * m + j] * w->h[j * k + c];
fail:
    return st;
}

/* Z += factor V y. */
static sps_status add_coarse(const schwarz *w, double factor, sps_block *Z)
{
    const int k = Z->k;
    sps_block own = narrow(w->own, k);
    sps_status st;

    SPS_TRY(sps_block_set(&own, 0, k, w->y +
                          (int64_t)spsi_comm_rank(w->super.ctx) * w->q * k, k,
                          SPS_ROW_MAJOR, SPS_HOST));
    SPS_TRY(sps_operator_apply(w->of_V, factor, &own, 1.0, Z));
fail:
    return st;
}

/* y = inverse V'R. */
static sps_status restrict_to_coarse(const schwarz *w, const sps_block *R)
{
    const int k = R->k;
    sps_block own = narrow(w->own, k);
    sps_status st;

    memset(w->h, 0, (size_t)(w->rows * k) * sizeof *w->h);
    SPS_TRY(sps_operator_apply(w->of_VT, 1.0, R, 0.0, &own));
    SPS_TRY(sps_block_get(&own, 0, k, w->h +
                          (int64_t)spsi_comm_rank(w->super.ctx) * w->q * k, k,
                          SPS_ROW_MAJOR, SPS_HOST));
    SPS_TRY(solve_coarse(w, k));
fail:
    return st;
}

/* Returns the own rows of a block of near rows. */
static sps_block own_rows(const schwarz *w, const sps_block *X)
{
    sps_block own = *X;

    own.n = w->super.n;
    own.data = (double *)X->data + w->near.halo->low * X->ld;
    own.bytes = 0;
    return own;
}

/* *r = the near rows of R. */
static sps_status gather(const schwarz *w, const sps_block *R, sps_block *r)
{
    const sps_halo *h = w->near.halo;
    sps_block packed = narrow(w->packed, R->k), own;
    sps_status st, finished;

    *r = narrow(w->r, R->k);
    own = own_rows(w, r);
    SPS_TRY(spsi_take_rows(R, h->send, &packed));
    SPS_TRY(spsi_halo_start(w->near.halo, &packed, false, r));
    st = spsi_axpby(1.0, R, 0.0, &own);
    finished = spsi_halo_finish(w->near.halo);
    if (st == SPS_OK) st = finished;
fail:
    return st;
}

/* Z = N R. */
static sps_status apply_inner(const schwarz *w, const sps_block *R,
                              sps_block *Z)
{
    sps_block r = *R, z = *Z, own;
    sps_comm *of;
    sps_status st;

    if (w->overlaps) SPS_TRY(gather(w, R, &r));
    if (w->overlaps) z = narrow(w->z, R->k);
    of = spsi_comm_apart(w->super.ctx);
    st = sps_precond_apply(w->inner, &r, &z);
    spsi_comm_back(w->super.ctx, of);
    if (st != SPS_OK || !w->overlaps) return st;
    own = own_rows(w, &z);
    SPS_TRY(spsi_axpby(1.0, &own, 0.0, Z));
fail:
    return st;
}

static sps_status two_levels(const schwarz *w, const sps_block *R, sps_block *Z)
{
    const int k = R->k;
    sps_block all = narrow(w->all, k);
    sps_status st;

    spsi_block_narrow(w->rest, k);
    SPS_TRY(restrict_to_coarse(w, R));
    SPS_TRY(sps_block_set(&all, 0, k, w->y, k, SPS_ROW_MAJOR, SPS_HOST));
    SPS_TRY(spsi_axpby(1.0, R, 0.0, w->rest));
    SPS_TRY(sps_operator_apply(w->of_W, -1.0, &all, 1.0, w->rest));
    SPS_TRY(apply_inner(w, w->rest, Z));
    if (!w->symmetric) return add_coarse(w, 1.0, Z);
    SPS_TRY(sps_operator_apply(w->of_WT, 1.0, Z, 0.0, &all));
    SPS_TRY(add_coarse(w, 1.0, Z));
    SPS_TRY(sps_block_get(&all, 0, k, w->h, k, SPS_ROW_MAJOR, SPS_HOST));
    SPS_TRY(solve_coarse(w, k));
    SPS_TRY(add_coarse(w, -1.0, Z));
fail:
    return st;
}

static sps_status apply(const sps_precond *M, const sps_block *R, sps_block *Z)
{
    const schwarz *w = (const schwarz *)M;
    sps_status st = spsi_comm_begin(M->ctx);

    if (st != SPS_OK) return st;
    return spsi_comm_end(M->ctx, w->q > 0 ? two_levels(w, R, Z)
                                          : apply_inner(w, R, Z));
}

static size_t describe(const sps_precond *M, char *text, size_t size)
{
    const schwarz *w = (const schwarz *)M;

    return (size_t)snprintf(text, size, "%s of the rows of each of %d "
                            "processes, and a coarse space of %lld vectors\n",
                            M->type->name, spsi_comm_size(M->ctx),
                            (long long)w->rows);
}

#define SCHWARZ(called, is_symmetric, with, more) {                            \
    .name = called, .symmetric = is_symmetric, .floats = with,                 \
    .needs = SPS_NEEDS_CSR | SPS_READS_THERE | (more),                         \
    .ranks = SPS_RANKS_WHOLE, .size = sizeof(schwarz), .build = build,         \
    .update = update, .apply = apply, .destroy = destroy,                      \
    .describe = describe }

static const sps_precond_type types[] = {
    SCHWARZ("ic0", true, true, SPS_NEEDS_SYMMETRIC),
    SCHWARZ("ilu0", false, true, 0), SCHWARZ("ilut", false, false, 0),
    SCHWARZ("factor", true, false, 0),
};

sps_status spsi_schwarz_over(const sps_operator *A, const sps_options *opt,
                             const sps_precond_type **type_p)
{
    if (spsi_comm_size(A->ctx) < 2 || spsi_comm_ordered(A->ctx) ||
        !strcmp(opt->near_null, "none"))
        return SPS_OK;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i].name, (*type_p)->name)) {
            *type_p = &types[i];
            break;
        }
    return SPS_OK;
}
