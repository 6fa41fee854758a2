/* SPDX-License-Identifier: BSD-3-Clause */
/* fsai.c - Z = V' T^-1 G R, a factored sparse approximate inverse (Kolotilina
 * and Yeremin 1993): two sparse products and a row scaling, without triangular
 * solves.  G and V are lower triangular, in the pattern of A's lower triangle
 * or that of A^power (Chow, Int. J. High Perform. Comput. Appl. 15, 2001); for
 * symmetric A V = G, and M is symmetric positive definite if A is, since each
 * t_i is positive then.
 *
 * A row whose small matrix is singular (for symmetric A: not definite) is
 * reduced to its diagonal; a note gives the number of such rows.
 *
 * Of several processes each makes the own rows of G and V, from its rows of A
 * and those of others within the distance `power` in the graph.  So G and V are
 * those of one process, to the last bit, and an application takes two
 * exchanges. */
#include "solvers/precond/near_rows.h"
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
    int power;
    struct product_pair pair; /* G and V' T^-1, stored as V */
    sps_csr *G;               /* pair.G, or its own rows in columns that are
                                 numbered as the near rows */
    struct near_rows near;    /* of several processes, while G is made */
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

/* Returns the matrix from which G is made, and sets *low to the number that own
 * row 0 has there. */
static const sps_csr *source(const struct fsai *m, int64_t *low)
{
    *low = m->near.A ? m->near.halo->low : 0;
    return m->near.A ? m->near.A : m->super.A->A;
}

static sps_status make_pattern(struct fsai *m)
{
    int64_t low;
    const sps_csr *A = source(m, &low);
    sps_context *ctx = m->super.ctx;
    const int64_t n = m->super.n;
    sps_csr **G_p = m->near.A ? &m->G : &m->pair.G;    /* M releases it */
    sps_status st;
    int64_t *seen = NULL, *start = NULL;
    int32_t *col = NULL;

    SPS_TRY(SPS_NEW(ctx, A->nrow, &seen));
    SPS_TRY(SPS_NEW(ctx, n + 1, &start));
    SPS_TRY(SPS_NEW(ctx, A->nrow, &col));
    for (int64_t i = 0; i < n; i++) {
        if (i % ROWS == 0) SPS_TRY(spsi_check_deadline(ctx, "fsai"));
        start[i + 1] = start[i] + reach(A, low + i, m->power, seen, col);
    }
    SPS_TRY(sps_csr_create(ctx, n, A->nrow, start[n], SPS_F64, G_p));
    m->G = *G_p;
    memcpy(m->G->rowptr, start, (size_t)(n + 1) * sizeof *start);
    for (int64_t i = 0; i < A->nrow; i++) seen[i] = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t count = reach(A, low + i, m->power, seen, col);

        if (i % ROWS == 0) SPS_TRY(spsi_check_deadline(ctx, "fsai"));
        memcpy(m->G->col + start[i], col, (size_t)count * sizeof *col);
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
    double *g = m->G->val;

    for (int64_t i = 0; i < m->G->nrow; i++) {
        const int64_t last = m->G->rowptr[i + 1];
        const double t = m->v[last - 1], half = sqrt(fabs(t));

        for (int64_t p = m->G->rowptr[i]; p < last; p++) {
            m->v[p] /= halves ? copysign(half, t) : t;
            if (halves) g[p] /= half;
        }
    }
}

/* Makes G, unless it has its pattern already, and V; *bad: number of rows that
 * are reduced to their diagonal. */
static sps_status make_rows(struct fsai *m, int64_t *bad)
{
    sps_precond *M = &m->super;
    int64_t low;
    sps_status st;

    if (!m->G) {
        SPS_TRY(make_pattern(m));
        SPS_TRY(SPS_OWN(&M->own, m->G->nnz, &m->v));
    }
    SPS_TRY(spsi_matrix_fsai(M->ctx, source(m, &low), m->G, m->v, m->symmetric,
                             bad));
    scale_rows(m);
fail:
    return st;
}

/* The same by each process, from its near rows; those of other processes that
 * are late or interrupted end it for all. */
static sps_status make_own_rows(struct fsai *m, double *bad)
{
    sps_context *ctx = m->super.ctx;
    const bool many = m->super.A->ranks;
    sps_comm *of = many ? spsi_comm_apart(ctx) : ctx->opt.comm;
    int64_t own = 0;
    sps_status st = make_rows(m, &own);

    SPS_TRY(spsi_rejoin(ctx, of, st));
    *bad = (double)own;
    if (many) SPS_TRY(spsi_reduce(ctx, bad, 1));
fail:
    return st;
}

/* Computes the values of G, and V' T^-1 as a new csr *V_p. */
static sps_status fill(struct fsai *m, sps_csr **V_p)
{
    sps_precond *M = &m->super;
    const sps_operator *A = M->A;
    sps_csr by_rows;
    sps_status st;
    double bad;

    if (A->ranks) SPS_TRY(spsi_near_rows_of(A, m->power, &m->near));
    SPS_TRY(make_own_rows(m, &bad));
    if (bad > 0)
        spsi_note(M->ctx, "fsai: %.0f of %lld rows are reduced to their "
                  "diagonal: their submatrix is %s", bad,
                  (long long)(A->ranks ? A->ranks->halo->whole : M->n),
                  m->symmetric ? "not positive definite" : "singular");
    if (A->ranks)
        return spsi_near_transpose(m->near.halo, m->G, m->v, V_p);
    by_rows = *m->G;
    by_rows.val = m->v;
    SPS_TRY(spsi_csr_transpose(M->ctx, &by_rows, V_p));
fail:
    return st;
}

/* Of several processes, makes pair.G of G, or sets its values. */
static sps_status take_rows(struct fsai *m)
{
    sps_csr *G = m->pair.G;
    const size_t bytes = (size_t)m->G->nnz * sizeof(double);

    if (!m->super.A->ranks) return SPS_OK;
    if (!G)
        return spsi_near_spread(m->near.halo, m->G, m->G->val, &m->pair.G);
    if (bytes > 0) memcpy(G->val, m->G->val, bytes);
    return SPS_OK;
}

static sps_status build(sps_precond *M, const sps_options *opt)
{
    struct fsai *m = (struct fsai *)M;
    sps_status st;

    m->power = opt->power;
    SPS_TRY(spsi_pair_symmetric(M->A, &m->symmetric));
    SPS_TRY(spsi_pair_open(M, &m->pair));
    if (M->A->ranks) SPS_TRY(spsi_own_csr(&M->own, &m->G));
    SPS_TRY(fill(m, &m->pair.V));
    SPS_TRY(take_rows(m));
    spsi_near_clear(M->ctx, &m->near);
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
    SPS_TRY(take_rows(m));
    spsi_near_clear(M->ctx, &m->near);
    SPS_TRY(spsi_pair_values(M, &m->pair, V->val));
fail:
    sps_csr_destroy(M->ctx, &V);
    return st;
}

static sps_status apply(const sps_precond *M, const sps_block *R, sps_block *Z)
{
    return spsi_pair_apply(&((const struct fsai *)M)->pair, R, Z);
}

static void destroy(sps_precond *M)
{
    spsi_near_clear(M->ctx, &((struct fsai *)M)->near);
}

SPS_DEFINE(sps_precond_type, spsi_precond_fsai) = {
    .name = "fsai", .floats = true, .needs = SPS_NEEDS_CSR, .symmetric = true,
    .size = sizeof(struct fsai),
    .ranks = SPS_RANKS_SAME,
    .build = build, .update = update, .apply = apply, .destroy = destroy,
};
