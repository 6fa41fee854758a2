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

/* Copies a triangle of F with its diagonal: the lower one with unit diagonal,
 * or the upper one. */
static sps_status triangle(const struct incomplete *m, bool upper,
                           sps_csr **T_p)
{
    const sps_csr *F = m->F;
    const double *f = F->val;
    sps_csr *T = NULL;
    int64_t q = 0;
    sps_status st;

    for (int64_t i = 0; i < F->nrow; i++)
        q += upper ? F->rowptr[i + 1] - m->diagonal[i]
                   : m->diagonal[i] + 1 - F->rowptr[i];
    SPS_TRY(sps_csr_create(m->super.ctx, F->nrow, F->nrow, q, SPS_F64, &T));
    q = 0;
    for (int64_t i = 0; i < F->nrow; i++) {
        const int64_t d = m->diagonal[i];
        const int64_t last = upper ? F->rowptr[i + 1] : d + 1;

        for (int64_t p = upper ? d : F->rowptr[i]; p < last; p++, q++) {
            T->col[q] = F->col[p];
            ((double *)T->val)[q] = p == d && !upper ? 1 : f[p];
        }
        T->rowptr[i + 1] = q;
    }
    T->props = SPS_SORTED;
    *T_p = T;
fail:
    return st;
}

/* Replaces the lower triangle T by its approximate inverse. */
static sps_status invert(sps_precond *M, sps_csr *T)
{
    const size_t bytes = (size_t)T->nnz * sizeof(double);
    sps_csr G = *T;
    double *g = NULL, *v = NULL;
    int64_t bad = 0;
    sps_status st;

    SPS_TRY(SPS_NEW(M->ctx, T->nnz, &g));
    SPS_TRY(SPS_NEW(M->ctx, T->nnz, &v));
    G.val = g;
    SPS_TRY(spsi_matrix_fsai(M->ctx, T, &G, v, false, &bad));
    if (bad)
        spsi_note(M->ctx, "isai: %lld of %lld rows are reduced to their "
                  "diagonal: their inverses are out of range", (long long)bad,
                  (long long)M->n);
    if (bytes) memcpy(T->val, g, bytes);
fail:
    spsi_free(M->ctx, g);
    spsi_free(M->ctx, v);
    return st;
}

/* V = (D^-1 M_L)', D the pivots.  In single precision V = (D^(-1/2) M_L)' = G',
 * with the same rounded values, so that M is as symmetric as in double
 * precision. */
static sps_status mirror(const struct incomplete *m, sps_csr *G, sps_csr **V_p)
{
    double *g = G->val;
    const double *f = m->F->val;
    sps_csr scaled = *G;
    double *v = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(m->super.ctx, G->nnz, &v));
    for (int64_t i = 0; i < G->nrow; i++)
        for (int64_t p = G->rowptr[i]; p < G->rowptr[i + 1]; p++) {
            const double d = f[m->diagonal[i]];

            if (m->super.single) g[p] /= sqrt(d);
            v[p] = m->super.single ? g[p] : g[p] / d;
        }
    scaled.val = v;
    SPS_TRY(spsi_csr_transpose(m->super.ctx, &scaled, V_p));
fail:
    spsi_free(m->super.ctx, v);
    return st;
}

/* Computes G and V from the factors. */
static sps_status make_inverses(sps_precond *M, sps_csr **G_p, sps_csr **V_p)
{
    const struct incomplete *m = (const struct incomplete *)M;
    sps_csr *U = NULL, *T = NULL;
    sps_status st;

    SPS_TRY(triangle(m, false, G_p));
    SPS_TRY(invert(M, *G_p));
    SPS_TRY(spsi_check_deadline(M->ctx, "isai"));
    if (m->symmetric) return mirror(m, *G_p, V_p);
    SPS_TRY(triangle(m, true, &U));
    SPS_TRY(spsi_csr_transpose(M->ctx, U, &T));
    SPS_TRY(invert(M, T));
    SPS_TRY(spsi_csr_transpose(M->ctx, T, V_p));
fail:
    sps_csr_destroy(M->ctx, &U);
    sps_csr_destroy(M->ctx, &T);
    return st;
}

/* Decides whether ic0 applies: A is symmetric with a positive diagonal. */
static sps_status is_positive(const sps_precond *M, bool *positive)
{
    const sps_csr *A = M->A->A;
    double *diagonal = NULL;
    sps_status st = SPS_OK;

    *positive = M->A->props & (SPS_SYMMETRIC | SPS_SPD);
    if (!*positive)
        SPS_TRY(sps_csr_symmetric(M->ctx, A, 1e-10, positive, NULL));
    if (!*positive) return st;
    SPS_TRY(SPS_NEW(M->ctx, M->n, &diagonal));
    SPS_TRY(spsi_matrix_diagonal(M->A, diagonal));
    for (int64_t i = 0; i < M->n; i++)
        *positive = *positive && diagonal[i] > 0;
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
    SPS_TRY(make_inverses(M, &m->pair.G, &m->pair.V));
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
    SPS_TRY(make_inverses(M, &G, &V));
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
    .ranks = SPS_RANKS_OWN,
    .build = build, .update = update, .apply = apply,
    .destroy = spsi_incomplete_destroy,
};
