/* SPDX-License-Identifier: BSD-3-Clause */
/* fsai.c - Z = V' T^-1 G R, a factored sparse approximate inverse (Kolotilina
 * and Yeremin 1993): two sparse products and a row scaling, without triangular
 * solves.  G and V are lower triangular, in the pattern of A's lower triangle
 * or that of A^power (Chow, Int. J. High Perform. Comput. Appl. 15, 2001); for
 * symmetric A V = G, and M is symmetric positive definite if A is, since each
 * t_i is positive then.
 *
 * A row whose small matrix is singular (for symmetric A: not definite) is
 * reduced to its diagonal; a note gives the number of such rows. */
#include "solvers/precond/product_pair.h"

#include <math.h>
#include <string.h>

#include "matrix/order.h"

/* Largest number of entries of a row; those nearest to the diagonal are
 * kept. */
enum { LONGEST = 96 };
/* Rows of the pattern made between two checks of the time limit. */
enum { ROWS = 4096 };

struct fsai {
    sps_precond super;
    bool symmetric;
    struct product_pair pair; /* G and V' T^-1, stored as V */
    double *v;                /* values of V before it is transposed, by rows of
                                 G */
};

/* ---------------------------------------------------------------- pattern */

/* Finds the columns <= i within graph distance `power` of row i and stores them
 * sorted in col (up to n elements).  Returns their number.  seen[j] = i + 1
 * marks the vertices reached. */
static int64_t reach(const sps_csr *A, int64_t i, int power, int64_t *seen,
                     int32_t *col)
{
    int64_t count = 1, at = 0, end = 1, kept = 0;

    col[0] = (int32_t)i;
    seen[i] = i + 1;
    for (int step = 0; step < power; step++, end = count)
        for (; at < end; at++)
            for (int64_t p = A->rowptr[col[at]]; p < A->rowptr[col[at] + 1];
                 p++)
                if (seen[A->col[p]] != i + 1) {
                    seen[A->col[p]] = i + 1;
                    col[count++] = A->col[p];
                }
    for (int64_t t = 0; t < count; t++)
        if (col[t] <= i) col[kept++] = col[t];
    spsi_sort_columns(col, kept);
    if (kept > LONGEST) {
        memmove(col, col + kept - LONGEST, LONGEST * sizeof *col);
        kept = LONGEST;
    }
    return kept;
}

static sps_status make_pattern(struct fsai *m, int power)
{
    const sps_csr *A = m->super.A->A;
    sps_context *ctx = m->super.ctx;
    sps_status st;
    int64_t *seen = NULL, *start = NULL;
    int32_t *col = NULL;

    SPS_TRY(SPS_NEW(ctx, A->nrow, &seen));
    SPS_TRY(SPS_NEW(ctx, A->nrow + 1, &start));
    SPS_TRY(SPS_NEW(ctx, A->nrow, &col));
    for (int64_t i = 0; i < A->nrow; i++) {
        if (i % ROWS == 0) SPS_TRY(spsi_check_deadline(ctx, "fsai"));
        start[i + 1] = start[i] + reach(A, i, power, seen, col);
    }
    SPS_TRY(sps_csr_create(ctx, A->nrow, A->nrow, start[A->nrow], SPS_F64,
                           &m->pair.G));
    memcpy(m->pair.G->rowptr, start, (size_t)(A->nrow + 1) * sizeof *start);
    for (int64_t i = 0; i < A->nrow; i++) seen[i] = 0;
    for (int64_t i = 0; i < A->nrow; i++) {
        const int64_t count = reach(A, i, power, seen, col);

        if (i % ROWS == 0) SPS_TRY(spsi_check_deadline(ctx, "fsai"));
        memcpy(m->pair.G->col + start[i], col, (size_t)count * sizeof *col);
    }
fail:
    spsi_free(ctx, seen);
    spsi_free(ctx, start);
    spsi_free(ctx, col);
    return st;
}

/* ----------------------------------------------------------------- values */

/* V = T^-1 V.  In single precision with symmetric A, G and V are both
 * multiplied by T^(-1/2) instead: both then round the same values, and M is as
 * symmetric as in double precision. */
static void scale_rows(struct fsai *m)
{
    const bool halves = m->symmetric && m->super.single;
    double *g = m->pair.G->val;

    for (int64_t i = 0; i < m->pair.G->nrow; i++) {
        const int64_t last = m->pair.G->rowptr[i + 1];
        const double t = m->v[last - 1], half = sqrt(fabs(t));

        for (int64_t p = m->pair.G->rowptr[i]; p < last; p++) {
            m->v[p] /= halves ? copysign(half, t) : t;
            if (halves) g[p] /= half;
        }
    }
}

/* Computes the values of G, and V' T^-1 as a new csr *V_p. */
static sps_status fill(struct fsai *m, sps_csr **V_p)
{
    sps_precond *M = &m->super;
    sps_csr by_rows = *m->pair.G;
    sps_status st;
    int64_t bad;

    SPS_TRY(spsi_matrix_fsai(M->ctx, M->A->A, m->pair.G, m->v, m->symmetric,
                             &bad));
    if (bad)
        spsi_note(M->ctx, "fsai: %lld of %lld rows are reduced to their "
                  "diagonal: their submatrix is %s", (long long)bad,
                  (long long)M->n, m->symmetric ? "not positive definite"
                                                : "singular");
    scale_rows(m);
    by_rows.val = m->v;
    SPS_TRY(spsi_csr_transpose(M->ctx, &by_rows, V_p));
fail:
    return st;
}

static sps_status build(sps_precond *M, const sps_options *opt)
{
    struct fsai *m = (struct fsai *)M;
    const sps_operator *A = M->A;
    sps_status st;

    m->symmetric = A->props & (SPS_SYMMETRIC | SPS_SPD);
    if (!m->symmetric)
        SPS_TRY(sps_csr_symmetric(M->ctx, A->A, 1e-10, &m->symmetric, NULL));
    SPS_TRY(spsi_pair_open(M, &m->pair));
    SPS_TRY(make_pattern(m, opt->power));
    SPS_TRY(SPS_OWN(&M->own, m->pair.G->nnz, &m->v));
    SPS_TRY(fill(m, &m->pair.V));
    SPS_TRY(spsi_pair_build(M, &m->pair));
fail:
    return st;
}

static sps_status update(sps_precond *M)
{
    struct fsai *m = (struct fsai *)M;
    sps_csr *V = NULL;
    sps_status st;

    SPS_TRY(fill(m, &V));
    SPS_TRY(spsi_pair_values(M, &m->pair, V->val));
fail:
    sps_csr_destroy(M->ctx, &V);
    return st;
}

static sps_status apply(const sps_precond *M, const sps_block *R, sps_block *Z)
{
    return spsi_pair_apply(&((const struct fsai *)M)->pair, R, Z);
}

SPS_DEFINE(sps_precond_type, spsi_precond_fsai) = {
    .name = "fsai", .floats = true, .needs = SPS_NEEDS_CSR, .symmetric = true,
    .size = sizeof(struct fsai),
    .ranks = SPS_RANKS_OWN,
    .build = build, .update = update, .apply = apply,
};
