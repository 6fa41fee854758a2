/* SPDX-License-Identifier: BSD-3-Clause */
/* isai.c - Z = M_U M_L R: incomplete sparse approximate inverses of incomplete
 * factors (Anzt, Huckle, Braeckle and Dongarra, Parallel Comput. 71, 2018; the
 * form by rows).  M_L has the pattern of L and is its inverse within that
 * pattern: with J the columns of row i,
 *
 *     m_i L(J, J) = e_i',   so that (M_L L)_ij = delta_ij for j in J,
 *
 * and M_U' is that of U'.  This takes a small dense system for each row, as in
 * fsai, for a triangle instead of A.  For symmetric A with positive diagonal
 * the factors are those of ic0, and M = M_L' D^-1 M_L is symmetric and positive
 * definite; otherwise they are those of ilu0.
 *
 * Of several processes each takes its diagonal block for A.  With across_ranks
 * the factors are those of the whole, which the processes make one after the
 * other, and M_L and M_U as G and V of fsai.
 *
 * M is less effective than substitution with the factors, but takes only two
 * sparse products, without dependences between rows.  An application reads 12
 * bytes for each entry of L and U, and reads or writes four blocks. */
#include "solvers/precond/incomplete.h"
#include "solvers/precond/product_pair.h"

#include <math.h>
#include <string.h>

struct isai {
    struct incomplete factors;
    struct product_pair pair; /* M_L and M_U */
};

/* Copies the own rows of a triangle of F with its diagonal: the lower one with
 * unit diagonal, or the upper one. */
static sps_status triangle(const struct incomplete *m, bool upper,
                           sps_csr **T_p)
{
    const sps_csr *F = m->F;
    const int64_t low = m->near.halo ? m->near.halo->low : 0, n = m->super.n;
    const double *f = F->val;
    sps_csr *T = NULL;
    int64_t q = 0;
    sps_status st;

    for (int64_t i = low; i < low + n; i++)
        q += upper ? F->rowptr[i + 1] - m->diagonal[i]
                   : m->diagonal[i] + 1 - F->rowptr[i];
    SPS_TRY(sps_csr_create(m->super.ctx, n, F->nrow, q, SPS_F64, &T));
    q = 0;
    for (int64_t i = low; i < low + n; i++) {
        const int64_t d = m->diagonal[i];
        const int64_t last = upper ? F->rowptr[i + 1] : d + 1;

        for (int64_t p = upper ? d : F->rowptr[i]; p < last; p++, q++) {
            T->col[q] = F->col[p];
            ((double *)T->val)[q] = p == d && !upper ? 1 : f[p];
        }
        T->rowptr[i - low + 1] = q;
    }
    T->props = SPS_SORTED;
    *T_p = T;
fail:
    return st;
}

/* Replaces the values of G, which has rows of the lower triangle T, by those of
 * its approximate inverse. */
static sps_status invert(sps_precond *M, const sps_csr *T, sps_csr *G)
{
    const size_t bytes = (size_t)G->nnz * sizeof(double);
    sps_csr inverse = *G;
    double *g = NULL, *v = NULL, lost;
    int64_t bad = 0;
    sps_status st;

    SPS_TRY(SPS_NEW(M->ctx, G->nnz, &g));
    SPS_TRY(SPS_NEW(M->ctx, G->nnz, &v));
    inverse.val = g;
    SPS_TRY(spsi_matrix_fsai(M->ctx, T, &inverse, v, false, &bad));
    lost = (double)bad;
    if (M->A->ranks) SPS_TRY(spsi_reduce(M->ctx, &lost, 1));
    if (lost > 0)
        spsi_note(M->ctx, "isai: %.0f of %lld rows are reduced to their "
                  "diagonal: their inverses are out of range", lost,
                  (long long)(M->A->ranks ? M->A->ranks->halo->whole : M->n));
    if (bytes) memcpy(G->val, g, bytes);
fail:
    spsi_free(M->ctx, g);
    spsi_free(M->ctx, v);
    return st;
}

/* v = D^-1 M_L, D the pivots.  In single precision G = v = D^(-1/2) M_L, with
 * the same rounded values, so that M is as symmetric as in double precision. */
static void scale_rows(const struct incomplete *m, sps_csr *G, double *v)
{
    const int64_t low = m->near.halo ? m->near.halo->low : 0;
    const double *f = m->F->val;
    double *g = G->val;

    for (int64_t i = 0; i < G->nrow; i++)
        for (int64_t p = G->rowptr[i]; p < G->rowptr[i + 1]; p++) {
            const double d = f[m->diagonal[low + i]];

            if (m->super.single) g[p] /= sqrt(d);
            v[p] = m->super.single ? g[p] : g[p] / d;
        }
}

/* V = (D^-1 M_L)'; w: the near rows of M_L if it is distributed. */
static sps_status mirror(const struct incomplete *m, const struct near_rows *w,
                         sps_csr *G, sps_csr **V_p)
{
    sps_csr scaled = *G;
    double *v = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(m->super.ctx, G->nnz, &v));
    scale_rows(m, G, v);
    scaled.val = v;
    SPS_TRY(w->halo ? spsi_near_transpose(w->halo, G, v, V_p)
                    : spsi_csr_transpose(m->super.ctx, &scaled, V_p));
fail:
    spsi_free(m->super.ctx, v);
    return st;
}

/* Computes G and V from the factors. */
static sps_status make_inverses(sps_precond *M, sps_csr **G_p, sps_csr **V_p)
{
    const struct incomplete *m = (const struct incomplete *)M;
    const struct near_rows none = { 0 };
    sps_csr *U = NULL, *T = NULL;
    sps_status st;

    SPS_TRY(triangle(m, false, G_p));
    SPS_TRY(invert(M, *G_p, *G_p));
    SPS_TRY(spsi_check_deadline(M->ctx, "isai"));
    if (m->symmetric) return mirror(m, &none, *G_p, V_p);
    SPS_TRY(triangle(m, true, &U));
    SPS_TRY(spsi_csr_transpose(M->ctx, U, &T));
    SPS_TRY(invert(M, T, T));
    SPS_TRY(spsi_csr_transpose(M->ctx, T, V_p));
fail:
    sps_csr_destroy(M->ctx, &U);
    sps_csr_destroy(M->ctx, &T);
    return st;
}

/* -------------------------------------------------- the same over processes */

/* Makes the own rows *G_p of the approximate inverse of T, a distributed lower
 * triangle, in columns that are numbered as its near rows *w. */
static sps_status invert_over(sps_precond *M, const sps_csr *T,
                              struct near_rows *w, sps_csr **G_p)
{
    int64_t low, at, nnz;
    sps_status st;

    SPS_TRY(spsi_near_rows(M->ctx, T, 1, w));
    low = w->halo->low;
    at = w->A->rowptr[low];
    nnz = w->A->rowptr[low + M->n] - at;
    SPS_TRY(sps_csr_create(M->ctx, M->n, w->A->ncol, nnz, SPS_F64, G_p));
    for (int64_t i = 0; i < M->n; i++)
        (*G_p)->rowptr[i + 1] = w->A->rowptr[low + i + 1] - at;
    if (nnz > 0)
        memcpy((*G_p)->col, w->A->col + at, (size_t)nnz * sizeof *w->A->col);
    SPS_TRY(invert(M, w->A, *G_p));
    SPS_TRY(spsi_check_deadline(M->ctx, "isai"));
fail:
    return st;
}

/* V = M_U, from that of U'. */
static sps_status make_upper_over(sps_precond *M, sps_csr **V_p)
{
    const struct incomplete *m = (const struct incomplete *)M;
    struct near_rows w = { 0 };
    sps_csr *U = NULL, *T = NULL, *G = NULL;
    sps_status st;

    SPS_TRY(triangle(m, true, &U));
    SPS_TRY(spsi_near_transpose(m->near.halo, U, U->val, &T));
    SPS_TRY(invert_over(M, T, &w, &G));
    SPS_TRY(spsi_near_transpose(w.halo, G, G->val, V_p));
fail:
    spsi_near_clear(M->ctx, &w);
    sps_csr_destroy(M->ctx, &U);
    sps_csr_destroy(M->ctx, &T);
    sps_csr_destroy(M->ctx, &G);
    return st;
}

static sps_status make_inverses_over(sps_precond *M, sps_csr **G_p,
                                     sps_csr **V_p)
{
    const struct incomplete *m = (const struct incomplete *)M;
    struct near_rows w = { 0 };
    sps_csr *L = NULL, *T = NULL, *G = NULL;
    sps_status st;

    SPS_TRY(triangle(m, false, &L));
    SPS_TRY(spsi_near_spread(m->near.halo, L, L->val, &T));
    SPS_TRY(invert_over(M, T, &w, &G));
    SPS_TRY(m->symmetric ? mirror(m, &w, G, V_p) : make_upper_over(M, V_p));
    SPS_TRY(spsi_near_spread(w.halo, G, G->val, G_p));
fail:
    spsi_near_clear(M->ctx, &w);
    sps_csr_destroy(M->ctx, &L);
    sps_csr_destroy(M->ctx, &T);
    sps_csr_destroy(M->ctx, &G);
    return st;
}

static sps_status make(sps_precond *M, sps_csr **G_p, sps_csr **V_p)
{
    return M->A->ranks ? make_inverses_over(M, G_p, V_p)
                       : make_inverses(M, G_p, V_p);
}

/* Decides whether ic0 applies: A is symmetric with a positive diagonal. */
static sps_status is_positive(const sps_precond *M, bool *positive)
{
    double *diagonal = NULL;
    bool wrong;
    sps_status st = SPS_OK;

    SPS_TRY(spsi_pair_symmetric(M->A, positive));
    if (!*positive) return st;
    SPS_TRY(SPS_NEW(M->ctx, M->n, &diagonal));
    SPS_TRY(spsi_matrix_diagonal(M->A, diagonal));
    for (int64_t i = 0; i < M->n; i++)
        *positive = *positive && diagonal[i] > 0;
    wrong = !*positive;
    if (M->A->ranks) SPS_TRY(spsi_comm_any(M->ctx, wrong, &wrong));
    *positive = !wrong;
fail:
    spsi_free(M->ctx, diagonal);
    return st;
}

static sps_status build(sps_precond *M, const sps_options *opt)
{
    struct isai *m = (struct isai *)M;
    bool positive;
    sps_status st;

    (void)opt;
    SPS_TRY(is_positive(M, &positive));
    SPS_TRY(spsi_incomplete_open(M, positive));
    SPS_TRY(spsi_pair_open(M, &m->pair));
    SPS_TRY(make(M, &m->pair.G, &m->pair.V));
    SPS_TRY(spsi_pair_build(M, &m->pair));
fail:
    return st;
}

static sps_status update(sps_precond *M)
{
    struct isai *m = (struct isai *)M;
    sps_csr *G = NULL, *V = NULL;
    sps_status st;

    SPS_TRY(spsi_incomplete_factor(M));
    SPS_TRY(make(M, &G, &V));
    if (G->nnz)
        memcpy(m->pair.G->val, G->val, (size_t)G->nnz * sizeof(double));
    SPS_TRY(spsi_pair_values(M, &m->pair, V->val));
fail:
    sps_csr_destroy(M->ctx, &G);
    sps_csr_destroy(M->ctx, &V);
    return st;
}

static sps_status apply(const sps_precond *M, const sps_block *R, sps_block *Z)
{
    return spsi_pair_apply(&((const struct isai *)M)->pair, R, Z);
}

SPS_DEFINE(sps_precond_type, spsi_precond_isai) = {
    .name = "isai", .floats = true, .needs = SPS_NEEDS_CSR, .symmetric = true,
    .size = sizeof(struct isai),
    .ranks = SPS_RANKS_OWN_OR_SAME,
    .build = build, .update = update, .apply = apply,
    .destroy = spsi_incomplete_destroy,
};
