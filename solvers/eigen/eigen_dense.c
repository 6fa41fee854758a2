/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_dense.c - eigenproblems that are small, or of which a large part of all
 * pairs is wanted: LAPACK computes every pair of the dense pencil, with 2 n^2
 * doubles of memory and some 10 n^3 operations.  The pairs are verified like
 * those of iterative methods. */
#include "eigen_policy.h"

#include <math.h>
#include <string.h>

#include "core/backend.h"
#include "core/comm.h"

#define ROWS 512       /* largest number of rows for which auto always uses
                          LAPACK */
#define MOST 8000      /* largest number of rows for which auto uses LAPACK if
                          more than n / SHARE pairs are wanted */
#define SHARE 5

struct dense {
    sps_small *A, *M;     /* the pencil; A is overwritten by its eigenvectors */
    sps_small *D;         /* dual vectors of null vectors and constraints
                             (eigen_deflation.h) */
    sps_small *R, *C;     /* n x width: residuals, corrections */
    double *w;            /* all n eigenvalues, ascending */
};

static sps_status setup(sps_eigen *e, void *method)
{
    struct dense *d = method;
    sps_status st = SPS_OK;
    int n = (int)e->pencil.n,
        q = n - (int)spsi_deflation_complement(&e->deflation);
    double *work = NULL;

    SPS_TRY(spsi_own_small(&e->own, n, n, &d->A));
    if (e->pencil.M) SPS_TRY(spsi_own_small(&e->own, n, n, &d->M));
    SPS_TRY(spsi_own_small(&e->own, n, q, &d->D));
    SPS_TRY(spsi_own_small(&e->own, n, e->space.width, &d->R));
    SPS_TRY(spsi_own_small(&e->own, n, e->space.width, &d->C));
    SPS_TRY(SPS_OWN(&e->own, n, &d->w));
    /* LAPACK allocates 2 n^2 doubles.  They are allocated here once, so that
     * the peak of memory that is stated before a run includes them. */
    SPS_TRY(SPS_NEW(e->ctx, 2 * (int64_t)n * n, &work));
fail:
    spsi_free(e->ctx, work);
    return st;
}

/* D = A I, `width` columns at a time, then symmetrised. */
sps_status spsi_eigen_densify(sps_subspace *s, const sps_operator *A,
                              sps_small *D)
{
    sps_status st = SPS_OK;
    double *unit = NULL;
    sps_context *ctx = s->pencil->ctx;
    int n = (int)s->pencil->n, w = s->width;

    SPS_TRY(SPS_NEW(ctx, (int64_t)n * w, &unit));
    spsi_small_shape(D, n, n);
    for (int first = 0; first < n; first += w) {
        int k = n - first < w ? n - first : w;
        sps_block X, Y;

        spsi_block_view(s->S, 0, k, &X);
        spsi_block_view(s->AS, 0, k, &Y);
        for (int j = 0; j < k; j++) unit[(int64_t)j * n + first + j] = 1;
        SPS_TRY(sps_block_set(&X, 0, k, unit, n, SPS_COL_MAJOR, SPS_HOST));
        SPS_TRY(spsi_operator_apply_plain(A, 1.0, &X, 0.0, &Y));
        SPS_TRY(sps_block_get(&Y, 0, k, spsi_small_at(D, 0, first), n,
                              SPS_COL_MAJOR, SPS_HOST));
        for (int j = 0; j < k; j++) unit[(int64_t)j * n + first + j] = 0;
    }
    spsi_small_symmetrise(D);
fail:
    spsi_free(ctx, unit);
    return st;
}

/* Writes the indicator vectors of the connected components to columns of D from
 * column `at` on. */
static sps_status indicators(const sps_deflation *d, sps_small *D, int at)
{
    const sps_components *c = d->null->components;
    sps_context *ctx = d->pencil->ctx;
    sps_status st = SPS_OK;
    int32_t *row = NULL;

    SPS_TRY(SPS_NEW(ctx, c->rows, &row));
    SPS_TRY(ctx->backend->download(ctx, row, c->row,
                                      (size_t)c->rows * sizeof *row));
    for (int64_t t = 0; t < c->count; t++)
        for (int64_t i = c->host_start[t]; i < c->host_start[t + 1]; i++)
            *spsi_small_at(D, row[i], at + (int)t) = 1;
fail:
    spsi_free(ctx, row);
    return st;
}

/* D = the dual vectors of null vectors and constraints. */
static sps_status collect_duals(const sps_deflation *d, sps_small *D)
{
    sps_status st = SPS_OK;
    int n = (int)d->pencil->n, q = d->given;

    spsi_small_shape(D, n, q + (d->means ? d->nulls : 0));
    spsi_small_clear(D);
    if (q)
        SPS_TRY(sps_block_get(d->dual, 0, q, D->v, n, SPS_COL_MAJOR,
                              SPS_HOST));
    if (d->means) SPS_TRY(indicators(d, D, q));
fail:
    return st;
}

/* Returns the index in w[0] <= ... <= w[left-1] of the first of the `count`
 * wanted eigenvalues, which are adjacent.  Of two such ranges equally near to
 * sigma the later one is taken. */
static int first_wanted(const sps_selection *wanted, int count,
                        const double *w, int left)
{
    int from = 0;

    if (!wanted->nearest) return wanted->sign > 0 ? 0 : left - count;
    while (from + count < left && fabs(w[from + count] - wanted->sigma) <=
                                      fabs(w[from] - wanted->sigma))
        from++;
    return from;
}

/* R = A X - M X diag(x'A x / x'M x), on the host.  *enough is set if the
 * residuals of all columns are below half the tolerance. */
static sps_status residuals(sps_ritz *r, const sps_block *X, sps_small *R,
                            bool *enough)
{
    sps_status st = SPS_OK;
    sps_subspace *s = r->space;
    sps_pencil *p = s->pencil;
    sps_block MX = *X;

    spsi_block_narrow(s->R, X->k);
    if (p->M) spsi_block_view(s->MS, 0, X->k, &MX);
    SPS_TRY(spsi_true_residuals(s, X, &MX, r->theta, r->scratch, s->R));
    SPS_TRY(spsi_norms(X, r->xnorm));
    SPS_TRY(spsi_norms(&MX, r->mnorm));
    SPS_TRY(spsi_norms(s->R, r->resnorm));
    *enough = true;
    for (int j = 0; j < X->k; j++)
        if (!(r->resnorm[j] <=
              0.5 * spsi_pencil_tolerance(p, r->opt, r->theta[j], r->xnorm[j],
                                          r->mnorm[j])))
            *enough = false;
    spsi_small_shape(R, (int)p->n, X->k);
    SPS_TRY(sps_block_get(s->R, 0, X->k, R->v, (int)p->n, SPS_COL_MAJOR,
                          SPS_HOST));
fail:
    return st;
}

/* X += V C with c_ij = v_i'r_j / (w_j - w_i): the first-order correction of x_j
 * along v_i, except where the eigenvalues are almost equal. */
static sps_status correct(sps_ritz *r, const struct dense *d,
                          const sps_small *V, sps_block *X, bool *enough)
{
    sps_small *R = d->R, *C = d->C;
    const double *w = r->theta;
    sps_status st = SPS_OK;
    sps_block more;

    SPS_TRY(residuals(r, X, R, enough));
    if (*enough) return SPS_OK;
    SPS_TRY(spsi_small_mul(1.0, V, true, R, false, 0.0, C));
    for (int j = 0; j < C->cols; j++)
        for (int i = 0; i < C->rows; i++) {
            double *c = spsi_small_at(C, i, j), gap = w[j] - d->w[i];

            *c = fabs(gap) > 1e-6 * fabs(w[j]) ? *c / gap : 0;
        }
    SPS_TRY(spsi_small_mul(1.0, V, false, C, false, 0.0, R));
    spsi_block_view(r->space->AS, 0, X->k, &more);
    SPS_TRY(sps_block_set(&more, 0, X->k, R->v, R->rows, SPS_COL_MAJOR,
                          SPS_HOST));
    SPS_TRY(spsi_axpby(1.0, &more, 1.0, X));
fail:
    return st;
}

/* Rayleigh-Ritz within X separates eigenvectors of almost equal eigenvalues,
 * which correct() leaves mixed. */
static sps_status rotate(sps_ritz *r, const sps_transform *t, sps_block *X,
                         sps_block *MX, sps_stop *stop)
{
    sps_status st = SPS_OK;
    const sps_pencil *p = r->space->pencil;
    sps_block Y;

    spsi_block_view(r->space->AS, 0, X->k, &Y);
    SPS_TRY(spsi_operator_apply_plain(p->A, 1.0, X, 0.0, &Y));
    SPS_TRY(spsi_gram(X, &Y, r->H));
    SPS_TRY(spsi_ritz_solve(r, t, r->H, r->H->rows, r->value, stop));
    if (*stop) return st;
    SPS_TRY(spsi_mul_small(1.0, X, r->H, 0.0, &Y));
    SPS_TRY(spsi_copy(&Y, X));
    if (!p->M) return st;
    SPS_TRY(spsi_mul_small(1.0, MX, r->H, 0.0, &Y));
    SPS_TRY(spsi_copy(&Y, MX));
fail:
    return st;
}

/* Improves the pairs of LAPACK.  Their error is eps times the largest
 * eigenvalue, and their vectors are M-orthonormal to eps times the condition of
 * M.  Where that is too much, one step of perturbation theory makes small
 * eigenvalues accurate (Ogita and Aishima, Japan J. Indust. Appl. Math. 35,
 * 2018), and another orthogonalisation makes the vectors M-orthonormal, with 4
 * n^2 + 2 n k operations for each pair.  (A second step would divide by gaps of
 * LAPACK's eigenvalues, which are not accurate enough.) */
static sps_status improve(sps_eigen *e, const struct dense *d,
                          const sps_small *V)
{
    sps_status st = SPS_OK;
    sps_block none, X, MX;
    bool enough;

    spsi_block_view(e->deflation.fixed, 0, 0, &none);
    for (int at = 0, k; at < e->count; at += k) {
        k = e->count - at < e->space.width ? e->count - at : e->space.width;
        spsi_deflation_set_locked(&e->deflation, at);
        spsi_deflation_pairs(&e->deflation, at, k, &X, &MX);
        SPS_TRY(correct(&e->ritz, d, V, &X, &enough));
        SPS_TRY(spsi_subspace_orth(&e->space, e->pencil.M, &none, &none, &X,
                                   e->pencil.M ? &MX : &X, &e->search.stop));
        if (!enough && !e->search.stop)
            SPS_TRY(rotate(&e->ritz, &e->transform, &X, &MX, &e->search.stop));
    }
fail:
    return st;
}

static sps_status solve(sps_eigen *e, void *method)
{
    struct dense *d = method;
    sps_status st = SPS_OK;
    sps_small *A = d->A, *M = e->pencil.M ? d->M : NULL;
    int n = (int)e->pencil.n, left, from, info = 0;
    sps_block X;

    SPS_TRY(spsi_eigen_densify(&e->space, e->pencil.A, A));
    if (M) SPS_TRY(spsi_eigen_densify(&e->space, e->pencil.M, M));
    SPS_TRY(collect_duals(&e->deflation, d->D));
    left = n - d->D->cols;
    e->pencil.applies_A = (n + e->space.width - 1) / e->space.width;
    SPS_TRY(spsi_small_eigen_pencil(A, M, d->D, d->w, &info));
    if (info > 0) {
        e->search.stop = SPS_STOP_MASS_INDEFINITE;
        return SPS_OK;
    }
    if (info < 0) {
        e->search.stop = SPS_STOP_NOT_FINITE;
        return SPS_OK;
    }
    from = first_wanted(&e->wanted, e->count, d->w, left);
    spsi_deflation_pairs(&e->deflation, 0, e->count, &X, NULL);
    SPS_TRY(sps_block_set(&X, 0, e->count, spsi_small_at(A, 0, from), n,
                          SPS_COL_MAJOR, SPS_HOST));
    spsi_small_shape(A, n, left);
    SPS_TRY(improve(e, d, A));
    if (!e->search.stop) e->search.stop = SPS_STOP_CONVERGED;
    e->deflation.locked = e->count;
fail:
    return st;
}

static const sps_eigen_type lapack = {
    .name = "lapack",
    .size = sizeof(struct dense),
    .stack = 1,
    .setup = setup,
    .solve = solve,
};

const sps_eigen_type *spsi_eigen_dense_type(const sps_pencil *p, int count,
                                            double max_seconds)
{
    bool small = p->n <= ROWS;
    bool many = (int64_t)SHARE * count > p->n && p->n <= MOST;
    double n = (double)p->n;
    double seconds = n * n * n / p->ctx->machine.core.dense_eigen;

    if (spsi_comm_many(p->ctx) || (!small && !many)) return NULL;
    /* LAPACK cannot be interrupted. */
    if (!small && max_seconds > 0 && seconds > max_seconds) return NULL;
    spsi_note(p->ctx, small ? "solver auto: LAPACK, since the matrix has only "
                              "%lld rows"
                            : "solver auto: LAPACK, since a large part of all "
                              "%lld pairs is requested", (long long)p->n);
    return &lapack;
}
