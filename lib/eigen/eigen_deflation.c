/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_deflation.c - the vectors to which eigenvectors are kept orthogonal:
 * null vectors of A, whose zero eigenvalues are known, and constraints of the
 * caller.
 *
 * Each is a column v of `fixed` with a column u of `dual`, W -= v (u'W): u = M
 * v for vectors orthonormal in the inner product of M, and u = v for null
 * vectors of both A and M, for which v'M v = 0 (free structures with massless
 * unknowns; the pencil is definite on their complement).
 *
 * Shared null vectors N make A - sigma M singular for every sigma.  Let g be
 * as many rows as there are null vectors, N(g,:) regular (in a structure: a
 * statically determinate set of supports), here called the fixing rows (Farhat
 * and Geradin, Int. J. Numer. Meth. Engng. 41, 1998).  Then every x is N c
 * + y with y(g) = 0, and rows and columns g taken out of A and M leave the
 * pencil of the complement: the same eigenvalues and inertia, a regular A -
 * sigma M, and the solutions of (A - sigma M) x = b, b orthogonal to N, up to
 * a part along N. */
#include "eigen/eigen_deflation.h"

#include <math.h>
#include <string.h>

#include "core/backend.h"
#include "eigen/eigen_subspace.h"

#define MOST_COMPONENTS 256

/* Sets the columns of V to the indicators of components, so that M can be
 * applied to them. */
static sps_status indicators(sps_deflation *d, sps_block *V)
{
    const sps_pencil *p = d->pencil;
    const sps_components *c = d->null->components;
    sps_status st = SPS_OK;
    double *row = NULL;
    sps_block *part = NULL;
    sps_block column;

    SPS_TRY(sps_block_create(p->ctx, p->n, 1, &part));
    SPS_TRY(SPS_NEW(p->ctx, p->n, &row));
    for (int64_t t = 0; t < c->count; t++) {
        int32_t *rows = NULL;
        int64_t size = c->host_start[t + 1] - c->host_start[t];

        SPS_TRY(SPS_NEW(p->ctx, size, &rows));
        st = p->ctx->backend->download(p->ctx, rows,
                                       c->row + c->host_start[t],
                                       (size_t)size * sizeof *rows);
        memset(row, 0, (size_t)p->n * sizeof *row);
        for (int64_t i = 0; st == SPS_OK && i < size; i++) row[rows[i]] = 1;
        spsi_free(p->ctx, rows);
        SPS_TRY(st);
        SPS_TRY(sps_block_set(part, 0, 1, row, 1, SPS_ROW_MAJOR, SPS_HOST));
        spsi_block_view(V, (int)t, 1, &column);
        SPS_TRY(spsi_copy(part, &column));
    }
fail:
    spsi_free(p->ctx, row);
    sps_block_destroy(&part);
    return st;
}

/* Returns an upper limit of the columns of `fixed` for null vectors and
 * constraints. */
static sps_status count_given(sps_deflation *d)
{
    sps_status st = SPS_OK;
    const sps_pencil *p = d->pencil;
    const sps_block *Y = d->constraints;

    d->nulls = d->null ? (int)d->null->dimension : 0;
    d->means = d->null && d->null->components && !p->M;
    SPS_REQUIRE(p->ctx, d->means || d->nulls <= MOST_COMPONENTS, SPS_EUNFIT,
                "the null space has %d vectors; with a mass matrix at most %d "
                "are possible", d->nulls, MOST_COMPONENTS);
    d->columns = d->means ? 0 : d->nulls;
    if (Y)
        SPS_REQUIRE(p->ctx, Y->ctx == p->ctx && Y->n == p->n, SPS_ESHAPE,
                    "the constraints have %lld rows, the matrix %lld",
                    (long long)Y->n, (long long)p->n);
    d->given = d->columns + (Y ? Y->k : 0);
fail:
    return st;
}

sps_status spsi_deflation_gather(sps_deflation *d, const sps_options *opt)
{
    sps_status st = SPS_OK;
    const sps_pencil *p = d->pencil;
    bool named = strcmp(opt->nullspace, "none") &&
                 strcmp(opt->nullspace, "auto");
    int width;

    if (named || opt->nullspace_basis)
        SPS_TRY(spsi_nullspace_create(p->A, 1, opt, &d->null));
    SPS_TRY(count_given(d));
    width = d->given + d->pairs;
    SPS_REQUIRE(p->ctx, width <= SPS_BLOCK_MAX, SPS_EINVAL,
                "%d pairs, null vectors and constraints together; at most %d "
                "are possible", width, SPS_BLOCK_MAX);
    SPS_TRY(spsi_own_block(p->own, p->n, width, &d->fixed));
    if (p->M) SPS_TRY(spsi_own_block(p->own, p->n, width, &d->dual));
    else d->dual = d->fixed;
fail:
    return st;
}

sps_status spsi_deflation_reserve(sps_deflation *d, int columns)
{
    return spsi_own_small(d->pencil->own, d->fixed->width, columns, &d->F);
}

int64_t spsi_deflation_complement(const sps_deflation *d)
{
    return d->pencil->rows - d->given - (d->means ? d->nulls : 0);
}

/* Sets the number of columns in use of `fixed` and `dual` to k. */
static void use_columns(const sps_deflation *d, int k)
{
    spsi_block_narrow(d->fixed, k);
    spsi_block_narrow(d->dual, k);
}

void spsi_deflation_set_locked(sps_deflation *d, int locked)
{
    d->locked = locked;
    use_columns(d, d->given + locked);
}

void spsi_deflation_pairs(const sps_deflation *d, int first, int k,
                          sps_block *X, sps_block *MX)
{
    spsi_block_view(d->fixed, d->given + first, k, X);
    if (MX) spsi_block_view(d->dual, d->given + first, k, MX);
}

int spsi_deflation_dual(const sps_deflation *d, sps_block *dual)
{
    int first = d->shared ? d->columns : 0;

    spsi_block_view(d->dual, first, d->given - first, dual);
    return d->given - first;
}

sps_status spsi_deflation_project(const sps_deflation *d, sps_block *W)
{
    sps_status st = SPS_OK;

    SPS_TRY(spsi_nullspace_project(d->null, W));
    if (!d->fixed || d->fixed->k == 0 || W->k == 0) return SPS_OK;
    SPS_TRY(spsi_gram(d->dual, W, d->F));
    SPS_TRY(spsi_mul_small(-1.0, d->fixed, d->F, 1.0, W));
fail:
    return st;
}

/* Removes from the residual its component along M Y of the constraints Y: the
 * pencil that is solved is that of their complement. */
sps_status spsi_deflation_constrain(const sps_deflation *d, sps_block *R)
{
    sps_status st = SPS_OK;
    sps_block Y, dual;

    if (!d->constraints || R->k == 0) return SPS_OK;
    spsi_block_view(d->fixed, 0, d->given, &Y);
    spsi_block_view(d->dual, 0, d->given, &dual);
    SPS_TRY(spsi_gram(&Y, R, d->F));
    SPS_TRY(spsi_mul_small(-1.0, &dual, d->F, 1.0, R));
fail:
    return st;
}

/* Makes columns first .. first + k - 1 of `fixed` orthonormal among themselves
 * and to the columns before them, in the inner product x'M y (x'y if M is
 * NULL), and forms their products with M; *k becomes the number of independent
 * columns. */
static sps_status settle(sps_deflation *d, sps_subspace *s,
                         const sps_operator *M, int first, int *k)
{
    sps_stop stop = SPS_STOP_RUNNING;
    sps_status st = SPS_OK;
    sps_block none, W, MW;

    use_columns(d, first + *k);
    spsi_block_view(d->fixed, first, *k, &W);
    spsi_block_view(d->dual, first, *k, &MW);
    spsi_block_view(d->fixed, 0, 0, &none);
    use_columns(d, first);
    /* Without M the product M W is W itself. */
    SPS_TRY(spsi_subspace_orth(s, M, &none, &none, &W, M ? &MW : &W, &stop));
    SPS_REQUIRE(d->pencil->ctx, !stop, SPS_EINVAL,
                "null vectors or constraints are not finite, or M is not "
                "positive definite on them");
    *k = W.k;
    use_columns(d, first + *k);
fail:
    return st;
}

/* Sets *yes to whether M v is zero within rounding for every null vector v. */
static sps_status massless(sps_deflation *d, bool *yes)
{
    sps_status st = SPS_OK;
    double *norm = NULL, *image;

    *yes = true;
    SPS_TRY(SPS_NEW(d->pencil->ctx, 2 * d->columns, &norm));
    image = norm + d->columns;
    SPS_TRY(spsi_norms(d->fixed, norm));
    SPS_TRY(spsi_pencil_mass(d->pencil, d->fixed, d->dual));
    SPS_TRY(spsi_norms(d->dual, image));
    for (int j = 0; j < d->columns; j++)
        if (image[j] > 1e-12 * d->pencil->norm_M * norm[j]) *yes = false;
fail:
    spsi_free(d->pencil->ctx, norm);
    return st;
}

/* Returns the index of the row of v (n x q, row-major) with the largest
 * norm. */
static int64_t longest(const double *v, int64_t n, int q)
{
    double most = -1;
    int64_t at = 0;

    for (int64_t i = 0; i < n; i++) {
        double sum = 0;

        for (int j = 0; j < q; j++) sum += v[i * q + j] * v[i * q + j];
        if (sum > most) {
            most = sum;
            at = i;
        }
    }
    return at;
}

/* Projects the rows of v against row `at`, which becomes zero.  u is scratch
 * memory of q doubles. */
static void without_row(double *v, int64_t n, int q, int64_t at, double *u)
{
    double norm = 0;

    memcpy(u, v + at * q, (size_t)q * sizeof *u);
    for (int j = 0; j < q; j++) norm += u[j] * u[j];
    for (int64_t i = 0; i < n; i++) {
        double along = 0;

        for (int j = 0; j < q; j++) along += v[i * q + j] * u[j];
        along /= norm > 0 ? norm : 1;
        for (int j = 0; j < q; j++) v[i * q + j] -= along * u[j];
    }
    memset(v + at * q, 0, (size_t)q * sizeof *v);
}

/* Chooses fixing rows g with N(g,:) far from singular, by Gram-Schmidt with
 * pivoting of rows: 4 n q^2 operations on the host. */
static sps_status choose_fixing_rows(sps_deflation *d)
{
    sps_status st = SPS_OK;
    const sps_pencil *p = d->pencil;
    int q = d->columns;
    double *v = NULL, *u = NULL;
    sps_block N;

    SPS_TRY(SPS_OWN(p->own, q, &d->fixing_rows));
    SPS_TRY(SPS_NEW(p->ctx, p->n * q, &v));
    SPS_TRY(SPS_NEW(p->ctx, q, &u));
    spsi_block_view(d->fixed, 0, q, &N);
    SPS_TRY(sps_block_get(&N, 0, q, v, q, SPS_ROW_MAJOR, SPS_HOST));
    for (int t = 0; t < q; t++) {
        d->fixing_rows[t] = longest(v, p->n, q);
        without_row(v, p->n, q, d->fixing_rows[t], u);
    }
fail:
    spsi_free(p->ctx, v);
    spsi_free(p->ctx, u);
    return st;
}

sps_status spsi_deflation_remove_shared(const sps_deflation *d, sps_block *R)
{
    sps_status st = SPS_OK;
    sps_block N;

    if (!d->shared || R->k == 0) return SPS_OK;
    spsi_block_view(d->fixed, 0, d->columns, &N);
    SPS_TRY(spsi_gram(&N, R, d->F));
    SPS_TRY(spsi_mul_small(-1.0, &N, d->F, 1.0, R));
fail:
    return st;
}

/* Puts the null vectors into the columns of `fixed`. */
static sps_status settle_nulls(sps_deflation *d, sps_subspace *s)
{
    const sps_pencil *p = d->pencil;
    sps_block V;
    bool shared = false;
    sps_status st = SPS_OK;

    use_columns(d, d->columns);
    spsi_block_view(d->fixed, 0, d->columns, &V);
    if (d->null->components) SPS_TRY(indicators(d, &V));
    else SPS_TRY(spsi_copy(d->null->basis, &V));
    spsi_nullspace_destroy(&d->null);   /* its vectors are in `fixed` now */
    if (p->M) SPS_TRY(massless(d, &shared));
    SPS_TRY(settle(d, s, shared ? NULL : p->M, 0, &d->columns));
    d->shared = shared;
    if (shared) {
        SPS_TRY(spsi_copy(d->fixed, d->dual));
        SPS_TRY(choose_fixing_rows(d));
        spsi_note(p->ctx, "A and M share a null space of dimension %d: pairs "
                  "are computed in its complement", d->columns);
    }
fail:
    return st;
}

sps_status spsi_deflation_settle(sps_deflation *d, sps_subspace *s)
{
    sps_status st = SPS_OK;
    const sps_block *Y = d->constraints;
    sps_block V;
    int rest = 0;

    if (d->columns) SPS_TRY(settle_nulls(d, s));
    if (Y) {
        rest = Y->k;
        spsi_block_narrow(d->fixed, d->columns + rest);
        spsi_block_view(d->fixed, d->columns, rest, &V);
        SPS_TRY(spsi_copy(Y, &V));
        SPS_TRY(settle(d, s, d->pencil->M, d->columns, &rest));
        if (rest < Y->k)
            spsi_note(d->pencil->ctx, "of %d constraints %d are independent",
                      Y->k, rest);
    }
    d->given = d->columns + rest;
    use_columns(d, d->given);
fail:
    return st;
}
