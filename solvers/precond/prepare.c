/* SPDX-License-Identifier: BSD-3-Clause */
/* prepare.c - scalings and permutations before a factorisation, by the options
 * scale and order.
 *
 *   scale     equilibrate: largest entries of rows and columns near 1;
 *             match: in addition, rows are permuted so that the product of the
 *             diagonal is maximal, which also removes zeros from it; auto:
 *             match if a diagonal entry is zero or small relative to its row,
 *             otherwise equilibrate.
 *   order     rcm: small bandwidth; degree: little fill; auto: by the fill
 *             that is allowed.
 *
 * To callers the factors are those of A: scalings and permutations are included
 * in the values and the index lists of the triangles,
 *   w_i = (r_from(i) - sum (l_ij / d_i) w_j) d_i,             d = D_r, and
 *   z_to(i) = (w_i - sum (u_ij / e_j) z_to(j)) e_i / u_ii,    e = D_c,
 * exactly, since the scalings are powers of two.  Here D_r and D_c scale the
 * rows and columns of A, and from, to are the permutations of prepare.h. */
#include "solvers/precond/prepare.h"

#include <math.h>
#include <string.h>

#include "matrix/order.h"

/* auto chooses match if a diagonal entry is below this fraction of its row. */
#define SMALL 1e-3
static bool is(const char *option, const char *word)
{
    return !strcmp(option, word);
}

/* Returns the number of rows whose diagonal entry is small relative to the
 * row. */
static int64_t weak_rows(const sps_csr *A)
{
    int64_t weak = 0;

    for (int64_t i = 0; i < A->nrow; i++) {
        double d = 0, largest = 0;

        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
            const double a = fabs(spsi_csr_value(A, p));

            if (A->col[p] == i) d = a;
            largest = fmax(largest, a);
        }
        weak += d < SMALL * largest || d == 0;
    }
    return weak;
}

/* ------------------------------------------------------------------ scale */

static sps_status match(sps_precond *M, struct prepared *m)
{
    const sps_csr *A = M->A->A;
    sps_status st;
    int64_t rank;
    int32_t *column = NULL;

    SPS_TRY(SPS_NEW(M->ctx, A->nrow, &column));
    SPS_TRY(spsi_match(M->ctx, A, column, m->row, m->col, &rank));
    SPS_REQUIRE(M->ctx, rank == A->nrow, SPS_EUNFIT,
                "%s: the matrix is structurally singular: its structural rank "
                "is %lld of %lld", M->type->name, (long long)rank,
                (long long)A->nrow);
    for (int64_t i = 0; i < A->nrow; i++) m->from[column[i]] = (int32_t)i;
    m->scaled = m->matched = true;
fail:
    spsi_free(M->ctx, column);
    return st;
}

static sps_status scale(sps_precond *M, const sps_options *opt,
                        struct prepared *m)
{
    const sps_csr *A = M->A->A;
    const bool automatic = is(opt->scale, "auto");
    sps_status st = SPS_OK;
    int64_t weak = automatic ? weak_rows(A) : 0;

    if (is(opt->scale, "match") || weak) {
        SPS_TRY(match(M, m));
        if (weak)
            spsi_note(M->ctx, "%s: %lld diagonal %s zero or small; rows were "
                      "moved and scaled by a maximum product matching",
                      M->type->name, (long long)weak,
                      weak == 1 ? "entry is" : "entries are");
    } else if (is(opt->scale, "equilibrate") || automatic) {
        SPS_TRY(spsi_equilibrate(M->ctx, A, m->row, m->col));
        m->scaled = true;
    }
fail:
    return st;
}

/* ---------------------------------------------------------------- permute */

/* Makes B from A, using from, to, row and col. */
static sps_status permute(sps_precond *M, struct prepared *m)
{
    const sps_csr *A = M->A->A;
    const int64_t n = A->nrow;
    sps_status st;
    int32_t *place = NULL;        /* for each column of A, the column of B */
    double *w = NULL;             /* a row of B, by columns */
    int64_t q = 0;

    sps_csr_destroy(M->ctx, &m->B);
    SPS_TRY(sps_csr_create(M->ctx, n, n, A->nnz, SPS_F64, &m->B));
    SPS_TRY(SPS_NEW(M->ctx, n, &place));
    SPS_TRY(SPS_NEW(M->ctx, n, &w));
    for (int64_t i = 0; i < n; i++) place[m->to[i]] = (int32_t)i;
    for (int64_t i = 0; i < n; i++) {
        const int32_t r = m->from[i];

        for (int64_t p = A->rowptr[r]; p < A->rowptr[r + 1]; p++) {
            const int32_t c = A->col[p];

            m->B->col[q++] = place[c];
            w[place[c]] = m->row[r] * spsi_csr_value(A, p) * m->col[c];
        }
        m->B->rowptr[i + 1] = q;
        spsi_sort_columns(m->B->col + m->B->rowptr[i], q - m->B->rowptr[i]);
        for (int64_t p = m->B->rowptr[i]; p < q; p++)
            ((double *)m->B->val)[p] = w[m->B->col[p]];
    }
    m->B->props = SPS_SORTED;
fail:
    spsi_free(M->ctx, place);
    spsi_free(M->ctx, w);
    return st;
}

static sps_status order_by(sps_precond *M, bool rcm, struct prepared *m)
{
    const int64_t n = M->n;
    sps_status st;
    sps_graph g = { 0 };
    int32_t *order = NULL, *from = NULL;

    SPS_TRY(SPS_NEW(M->ctx, n, &order));
    SPS_TRY(SPS_NEW(M->ctx, n, &from));
    if (m->matched) SPS_TRY(permute(M, m));
    SPS_TRY(spsi_graph_create(M->ctx, m->matched ? m->B : M->A->A, &g));
    SPS_TRY(rcm ? spsi_order_rcm(M->ctx, &g, order)
                : spsi_order_degree(M->ctx, &g, order, &m->fill));
    if (n) memcpy(from, m->from, (size_t)n * sizeof *from);
    for (int64_t i = 0; i < n; i++) {
        m->from[i] = from[order[i]];
        m->to[i] = order[i];
    }
    m->ordered = true;
fail:
    spsi_graph_clear(M->ctx, &g);
    spsi_free(M->ctx, order);
    spsi_free(M->ctx, from);
    return st;
}

sps_status spsi_prepare(sps_precond *M, const sps_options *opt, bool low_fill,
                        struct prepared *m)
{
    const bool automatic = is(opt->order, "auto");
    sps_status st;

    SPS_TRY(SPS_NEW(M->ctx, M->n, &m->from));
    SPS_TRY(SPS_NEW(M->ctx, M->n, &m->to));
    SPS_TRY(SPS_NEW(M->ctx, M->n, &m->row));
    SPS_TRY(SPS_NEW(M->ctx, M->n, &m->col));
    for (int64_t i = 0; i < M->n; i++) {
        m->from[i] = m->to[i] = (int32_t)i;
        m->row[i] = m->col[i] = 1;
    }
    SPS_TRY(scale(M, opt, m));
    SPS_TRY(spsi_check_deadline(M->ctx, "scaling"));
    if (is(opt->order, "rcm")) SPS_TRY(order_by(M, true, m));
    if (is(opt->order, "degree") || (automatic && !low_fill))
        SPS_TRY(order_by(M, false, m));
    SPS_TRY(permute(M, m));
    SPS_TRY(spsi_check_deadline(M->ctx, "ordering"));
fail:
    return st;
}

void spsi_prepared_clear(sps_context *ctx, struct prepared *m)
{
    sps_csr_destroy(ctx, &m->B);
    spsi_free(ctx, m->from);
    spsi_free(ctx, m->to);
    spsi_free(ctx, m->row);
    spsi_free(ctx, m->col);
    *m = (struct prepared){ 0 };
}

/* -------------------------------------------------------------- triangles */

sps_status spsi_prepared_lower(sps_context *ctx, const struct prepared *m,
                               sps_csr *L, sps_triangle **t_p)
{
    const int64_t n = L->nrow;
    sps_triangle_parts t = { .S = L };
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, n, &t.inverse));
    SPS_TRY(SPS_NEW(ctx, n, &t.from));
    for (int64_t i = 0; i < n; i++) {
        t.from[i] = m->from[i];
        t.inverse[i] = m->row[m->from[i]];
        for (int64_t p = L->rowptr[i]; p < L->rowptr[i + 1]; p++)
            ((double *)L->val)[p] /= t.inverse[i];
    }
    return spsi_triangle_create(ctx, &t, t_p);

fail:
    sps_csr_destroy(ctx, &t.S);
    spsi_free(ctx, t.inverse);
    spsi_free(ctx, t.from);
    return st;
}

sps_status spsi_prepared_upper(sps_context *ctx, const struct prepared *m,
                               sps_csr *U, double *inverse,
                               const int32_t *column, sps_triangle **t_p)
{
    const int64_t n = U->nrow;
    sps_triangle_parts t = { .upper = true, .S = U, .inverse = inverse };
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, n, &t.to));
    for (int64_t i = 0; i < n; i++) {
        t.to[i] = m->to[column ? column[i] : i];
        inverse[i] *= m->col[t.to[i]];
    }
    for (int64_t p = 0; p < U->nnz; p++)
        ((double *)U->val)[p] /= m->col[t.to[U->col[p]]];
    return spsi_triangle_create(ctx, &t, t_p);

fail:
    sps_csr_destroy(ctx, &t.S);
    spsi_free(ctx, inverse);
    return st;
}
