/* SPDX-License-Identifier: BSD-3-Clause */
/* nullspace.c - what is projected away: indicators of connected components
 * (graph Laplacians, pure Neumann problems) or a basis of the caller's.  A
 * claimed null space is checked: projecting with a false one would hide a
 * wrong answer. */
#include "solver.h"

#include <math.h>
#include <string.h>

#include "backend.h"

/* A row sum of rounding size: entries of a Laplacian are rounded each. */
#define ROW_SUM_TOLERANCE 1e-12

/* Rows of nothing but zeros count as components: isolated vertices of a
 * graph, and the mark of an assembly that forgot a row. */
static void note_empty_rows(const sps_operator *A, const sps_components *c)
{
    int64_t empty = 0;

    for (int64_t i = 0; i < c->count; i++)
        empty += c->host_start[i + 1] - c->host_start[i] == 1;
    if (empty)
        spsi_note(A->ctx, "%lld row%s of A hold%s nothing but zeros: X is 0 "
                  "there, whatever a right-hand side says", (long long)empty,
                  empty == 1 ? "" : "s", empty == 1 ? "s" : "");
}

static sps_status from_components(const sps_operator *A, const char *kind,
                                  sps_nullspace *N)
{
    sps_status st = SPS_OK;
    sps_components *all = NULL;
    int64_t found;
    bool automatic = !strcmp(kind, "auto");

    SPS_REQUIRE(A->ctx, A->A, SPS_EUNFIT,
                "nullspace %s looks at the matrix, and this operator is a "
                "callback; give a basis", kind);
    SPS_TRY(spsi_components_find(A->ctx, A->A, ROW_SUM_TOLERANCE, false,
                                 &N->components));
    found = N->components->count;
    if (!automatic) {
        SPS_TRY(spsi_components_find(A->ctx, A->A, 0, true, &all));
        SPS_REQUIRE(A->ctx, found == all->count, SPS_EUNFIT,
                    "nullspace %s: only %lld of %lld connected components have "
                    "zero row sums", kind, (long long)found,
                    (long long)all->count);
        SPS_REQUIRE(A->ctx, strcmp(kind, "constant") || found <= 1, SPS_EUNFIT,
                    "nullspace constant: the matrix has %lld connected "
                    "components; use components", (long long)found);
    }
    N->dimension = found;
    if (found)
        spsi_note(A->ctx, "null space of dimension %lld (constant on each "
                  "connected component) is projected away", (long long)found);
    note_empty_rows(A, N->components);
fail:
    spsi_components_destroy(&all);
    return st;
}

/* N = given made orthonormal: twice the rank-revealing step. */
static sps_status orthonormalise(sps_context *ctx, sps_block *N, sps_block *W)
{
    sps_status st = SPS_OK;
    int rank = 0;
    double condition;
    sps_small *G = NULL, *T = NULL;

    SPS_TRY(spsi_small_create(ctx, N->k, N->k, &G));
    SPS_TRY(spsi_small_create(ctx, N->k, N->k, &T));
    for (int pass = 0; pass < 2; pass++) {
        SPS_TRY(spsi_gram(N, N, G));
        SPS_REQUIRE(ctx, spsi_small_finite(G), SPS_EINVAL,
                    "the null-space basis has NaN or infinite entries");
        SPS_TRY(spsi_small_orthonormaliser(G, 1e-10, T, &rank, &condition));
        SPS_REQUIRE(ctx, rank > 0, SPS_EINVAL, "the null-space basis is zero");
        spsi_block_narrow(W, rank);
        SPS_TRY(spsi_mul_small(1.0, N, T, 0.0, W));
        spsi_block_narrow(N, rank);
        SPS_TRY(spsi_copy(W, N));
    }
fail:
    spsi_small_destroy(&G);
    spsi_small_destroy(&T);
    return st;
}

/* ||A v|| of the basis against ||A w|| / ||w|| of random vectors. */
static sps_status check_null(const sps_operator *A, const sps_block *N,
                             sps_block *W, sps_block *V, double *norm)
{
    sps_status st = SPS_OK;
    double worst = 0, typical;

    SPS_TRY(spsi_operator_apply_plain(A, 1.0, N, 0.0, W));
    SPS_TRY(spsi_norms(W, norm));
    for (int j = 0; j < N->k; j++) worst = fmax(worst, norm[j]);
    SPS_TRY(sps_block_random(V, 1));
    SPS_TRY(spsi_norms(V, norm));
    typical = norm[0];
    SPS_TRY(spsi_operator_apply_plain(A, 1.0, V, 0.0, W));
    SPS_TRY(spsi_norms(W, norm));
    typical = typical > 0 ? norm[0] / typical : 0;
    SPS_REQUIRE(A->ctx, worst <= 1e-8 * typical, SPS_EUNFIT,
                "the given basis is no null space: ||A v|| = %.3g for a unit "
                "vector of it, %.3g for a random one", worst, typical);
fail:
    return st;
}

static sps_status from_basis(const sps_operator *A, const sps_block *given,
                             sps_nullspace *N)
{
    sps_status st = SPS_OK;
    sps_context *ctx = A->ctx;
    sps_block *W = NULL, *V = NULL;
    double *norm = NULL;

    SPS_REQUIRE(ctx, given->n == A->n, SPS_ESHAPE,
                "the null-space basis has %lld rows, the matrix %lld",
                (long long)given->n, (long long)A->n);
    SPS_TRY(SPS_NEW(ctx, given->k, &norm));
    SPS_TRY(sps_block_create(ctx, A->n, given->k, &N->basis));
    SPS_TRY(sps_block_create(ctx, A->n, given->k, &W));
    SPS_TRY(sps_block_create(ctx, A->n, given->k, &V));
    SPS_TRY(spsi_reserve(ctx, A->n, given->k));
    SPS_TRY(spsi_copy(given, N->basis));
    SPS_TRY(orthonormalise(ctx, N->basis, W));
    spsi_block_narrow(V, N->basis->k);
    SPS_TRY(check_null(A, N->basis, W, V, norm));
    N->dimension = N->basis->k;
    spsi_note(ctx, "the given null space, of dimension %lld, is projected "
              "away", (long long)N->dimension);
fail:
    sps_block_destroy(&W);
    sps_block_destroy(&V);
    spsi_free(ctx, norm);
    return st;
}

sps_status spsi_nullspace_create(const sps_operator *A, int k,
                                 const sps_options *opt, sps_nullspace **N_p)
{
    sps_status st = SPS_OK;
    sps_nullspace *N = NULL;
    const char *kind = opt->nullspace ? opt->nullspace : "auto";

    SPS_REQUIRE(A->ctx, !strcmp(kind, "auto") || !strcmp(kind, "none") ||
                !strcmp(kind, "constant") || !strcmp(kind, "components"),
                SPS_EINVAL, "unknown nullspace '%s': none, auto, constant or "
                "components", kind);
    *N_p = NULL;
    if (!opt->nullspace_basis &&
        (!strcmp(kind, "none") || (!strcmp(kind, "auto") && !A->A)))
        return SPS_OK;
    SPS_TRY(spsi_operator_fetch(A));
    if (!opt->nullspace_basis && !strcmp(kind, "auto") &&
        !spsi_components_possible(A->ctx, A->A, ROW_SUM_TOLERANCE))
        return SPS_OK;
    SPS_TRY(spsi_new(A->ctx, sizeof *N, (void **)&N));
    N->ctx = A->ctx;
    if (opt->nullspace_basis) {
        SPS_TRY(from_basis(A, opt->nullspace_basis, N));
        SPS_TRY(spsi_small_create(A->ctx, N->basis->k, k, &N->coefficients));
    } else {
        SPS_TRY(from_components(A, kind, N));
    }
    if (N->dimension > 0)
        *N_p = N;
    else
        spsi_nullspace_destroy(&N);
    return SPS_OK;

fail:
    spsi_nullspace_destroy(&N);
    return st;
}

sps_status spsi_nullspace_project(const sps_nullspace *N, sps_block *X)
{
    sps_status st = SPS_OK;

    if (!N || X->k == 0) return SPS_OK;
    if (N->components)
        return X->ctx->backend->remove_means(N->components, X);
    spsi_small_shape(N->coefficients, N->basis->k, X->k);
    SPS_TRY(spsi_gram(N->basis, X, N->coefficients));
    SPS_TRY(spsi_mul_small(-1.0, N->basis, N->coefficients, 1.0, X));
fail:
    return st;
}

void spsi_nullspace_destroy(sps_nullspace **N_p)
{
    sps_nullspace *N = N_p ? *N_p : NULL;

    if (!N) return;
    spsi_components_destroy(&N->components);
    sps_block_destroy(&N->basis);
    spsi_small_destroy(&N->coefficients);
    spsi_free(N->ctx, N);
    *N_p = NULL;
}
