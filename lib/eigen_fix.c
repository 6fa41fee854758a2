/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_fix.c - what eigenvectors are kept apart from: null vectors of A,
 * whose zero eigenvalues are known, and constraints of the caller.
 *
 * Each is a column v of `fixed` with its dual v', W -= v (v' W): M v for
 * vectors orthonormal in the inner product of M, and v itself for null vectors
 * of both A and M, which that product does not see (free structures with
 * massless unknowns; the pencil is definite on their complement).
 *
 * Shared null vectors N make A - sigma M singular for every sigma.  Let g be
 * as many rows as there are null vectors, N(g,:) regular ("ground", supports of
 * a structure that hold it and no more; Farhat and Geradin, Int. J. Numer. Meth.
 * Engng. 41, 1998).  Then every x is N c + y with y(g) = 0, and rows and columns
 * g taken out of A and M leave the pencil of the complement: the same
 * eigenvalues and inertia, a regular A - sigma M, and the solutions of
 * (A - sigma M) x = b, b orthogonal to N, up to a part along N. */
#include "eigen.h"

#include <math.h>
#include <string.h>

#define MOST_COMPONENTS 256

/* Indicators of components as columns of V: only then can M be applied. */
static sps_status indicators(sps_eigen *e, sps_block *V)
{
    const sps_components *c = e->null->components;
    sps_status st = SPS_OK;
    double *row = NULL;
    sps_block *part = NULL;
    sps_block column;

    SPS_TRY(sps_block_create(e->ctx, e->n, 1, &part));
    SPS_TRY(SPS_NEW(e->ctx, e->n, &row));
    for (int64_t t = 0; t < c->count; t++) {
        int32_t *rows = NULL;
        int64_t size = c->host_start[t + 1] - c->host_start[t];

        SPS_TRY(SPS_NEW(e->ctx, size, &rows));
        st = e->ctx->backend->download(e->ctx, rows,
                                       c->row + c->host_start[t],
                                       (size_t)size * sizeof *rows);
        memset(row, 0, (size_t)e->n * sizeof *row);
        for (int64_t i = 0; st == SPS_OK && i < size; i++) row[rows[i]] = 1;
        spsi_free(e->ctx, rows);
        SPS_TRY(st);
        SPS_TRY(sps_block_set(part, 0, 1, row, 1, SPS_ROW_MAJOR, SPS_HOST));
        spsi_block_view(V, (int)t, 1, &column);
        SPS_TRY(spsi_copy(part, &column));
    }
fail:
    spsi_free(e->ctx, row);
    sps_block_destroy(&part);
    return st;
}

sps_status spsi_eigen_gather_fixed(sps_eigen *e)
{
    sps_status st = SPS_OK;
    const sps_block *Y = e->opt.constraints;
    bool named = strcmp(e->opt.nullspace, "none") &&
                 strcmp(e->opt.nullspace, "auto");
    int width;

    if (named || e->opt.nullspace_basis)
        SPS_TRY(spsi_nullspace_create(e->A, 1, &e->opt, &e->null));
    e->nulls = e->null ? (int)e->null->dimension : 0;
    e->means = e->null && e->null->components && !e->M;
    SPS_REQUIRE(e->ctx, e->means || e->nulls <= MOST_COMPONENTS, SPS_EUNFIT,
                "a null space of %d vectors beside a mass matrix; %d are "
                "possible", e->nulls, MOST_COMPONENTS);
    e->null_columns = e->means ? 0 : e->nulls;
    if (Y) SPS_REQUIRE(e->ctx, Y->ctx == e->ctx && Y->n == e->n, SPS_ESHAPE,
                       "the constraints have %lld rows, the matrix %lld",
                       (long long)Y->n, (long long)e->n);
    e->given = e->null_columns + (Y ? Y->k : 0);
    width = e->given + e->count;
    SPS_REQUIRE(e->ctx, width <= SPS_BLOCK_MAX, SPS_EINVAL,
                "%d pairs, null vectors and constraints; %d are possible",
                width, SPS_BLOCK_MAX);
    SPS_TRY(sps_block_create(e->ctx, e->n, width, &e->fixed));
    e->dual = e->fixed;
    if (e->M) SPS_TRY(sps_block_create(e->ctx, e->n, width, &e->dual));
fail:
    return st;
}

/* Columns first .. first + k - 1 of fixed, orthonormal to those before, with
 * their duals; *k becomes their rank. */
static sps_status settle(sps_eigen *e, int first, int *k)
{
    sps_status st = SPS_OK;
    sps_block none, W, MW;

    spsi_block_narrow(e->fixed, first + *k);
    spsi_block_narrow(e->dual, first + *k);
    spsi_block_view(e->fixed, first, *k, &W);
    spsi_block_view(e->dual, first, *k, &MW);
    spsi_block_view(e->fixed, 0, 0, &none);
    spsi_block_narrow(e->fixed, first);
    spsi_block_narrow(e->dual, first);
    /* Without M the image is W itself, whatever stands in dual. */
    SPS_TRY(spsi_eigen_orth(e, &none, &none, &W, e->M ? &MW : &W));
    SPS_REQUIRE(e->ctx, !e->stop, SPS_EINVAL,
                "null vectors or constraints are not finite, or M is not "
                "positive definite on them");
    *k = W.k;
    spsi_block_narrow(e->fixed, first + *k);
    spsi_block_narrow(e->dual, first + *k);
fail:
    return st;
}

/* Whether M v is rounding for every null vector. */
static sps_status massless(sps_eigen *e, bool *yes)
{
    sps_status st = SPS_OK;
    double *norm = e->scratch, *image = e->scratch + e->null_columns;

    *yes = true;
    SPS_TRY(spsi_norms(e->fixed, norm));
    SPS_TRY(spsi_eigen_mass(e, e->fixed, e->dual));
    SPS_TRY(spsi_norms(e->dual, image));
    for (int j = 0; j < e->null_columns; j++)
        if (image[j] > 1e-12 * e->norm_M * norm[j]) *yes = false;
fail:
    return st;
}

/* The row of v, q numbers each, that is longest. */
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

/* Rows of N' without their part along row `at`, which becomes zero. */
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

/* e->ground: rows g with N(g,:) far from singular, by Gram-Schmidt with
 * pivots: 4 n q^2 operations on the host. */
static sps_status choose_ground(sps_eigen *e)
{
    sps_status st = SPS_OK;
    int q = e->null_columns;
    double *v = NULL, *u = NULL;
    sps_block N;

    SPS_TRY(SPS_NEW(e->ctx, q, &e->ground));
    SPS_TRY(SPS_NEW(e->ctx, e->n * q, &v));
    SPS_TRY(SPS_NEW(e->ctx, q, &u));
    spsi_block_view(e->fixed, 0, q, &N);
    SPS_TRY(sps_block_get(&N, 0, q, v, q, SPS_ROW_MAJOR, SPS_HOST));
    for (int t = 0; t < q; t++) {
        e->ground[t] = longest(v, e->n, q);
        without_row(v, e->n, q, e->ground[t], u);
    }
fail:
    spsi_free(e->ctx, v);
    spsi_free(e->ctx, u);
    return st;
}

sps_status spsi_eigen_leave_nulls(sps_eigen *e, sps_block *R)
{
    sps_status st = SPS_OK;
    sps_block N;

    if (!e->blind || R->k == 0) return SPS_OK;
    spsi_block_view(e->fixed, 0, e->null_columns, &N);
    SPS_TRY(spsi_gram(&N, R, e->F));
    SPS_TRY(spsi_mul_small(-1.0, &N, e->F, 1.0, R));
fail:
    return st;
}

/* The null vectors, in the columns of fixed. */
static sps_status settle_nulls(sps_eigen *e)
{
    const sps_operator *M = e->M;
    sps_block V;
    bool both = false;
    sps_status st = SPS_OK;

    spsi_block_narrow(e->fixed, e->null_columns);
    spsi_block_narrow(e->dual, e->null_columns);
    spsi_block_view(e->fixed, 0, e->null_columns, &V);
    if (e->null->components) SPS_TRY(indicators(e, &V));
    else SPS_TRY(spsi_copy(e->null->basis, &V));
    spsi_nullspace_destroy(&e->null);    /* from here on fixed does its work */
    if (M) SPS_TRY(massless(e, &both));
    if (both) e->M = NULL;    /* for these the plain inner product */
    st = settle(e, 0, &e->null_columns);
    e->M = M;
    SPS_TRY(st);
    e->blind = both;
    if (both) {
        SPS_TRY(spsi_copy(e->fixed, e->dual));
        SPS_TRY(choose_ground(e));
        spsi_note(e->ctx, "A and M share a null space of dimension %d: pairs "
                  "are those of its complement", e->null_columns);
    }
fail:
    return st;
}

sps_status spsi_eigen_settle_fixed(sps_eigen *e)
{
    sps_status st = SPS_OK;
    const sps_block *Y = e->opt.constraints;
    sps_block V;
    int rest = 0;

    if (e->null_columns) SPS_TRY(settle_nulls(e));
    if (Y) {
        rest = Y->k;
        spsi_block_narrow(e->fixed, e->null_columns + rest);
        spsi_block_view(e->fixed, e->null_columns, rest, &V);
        SPS_TRY(spsi_copy(Y, &V));
        SPS_TRY(settle(e, e->null_columns, &rest));
        if (rest < Y->k)
            spsi_note(e->ctx, "of %d constraints %d are independent", Y->k,
                      rest);
    }
    e->given = e->null_columns + rest;
    spsi_block_narrow(e->fixed, e->given);
    spsi_block_narrow(e->dual, e->given);
fail:
    return st;
}
