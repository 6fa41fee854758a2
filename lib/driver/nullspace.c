/* SPDX-License-Identifier: BSD-3-Clause */
/* nullspace.c - the null space to project out: indicator vectors of connected
 * components (graph Laplacians, pure Neumann problems), or a basis given by the
 * caller.  A given null space is verified: projecting with a wrong one would
 * hide a wrong answer. */
#include "driver/linear.h"

#include <math.h>
#include <string.h>

#include "core/backend.h"
#include "core/comm.h"

/* A row sum up to this fraction of the sum of |a_ij| counts as zero, because
 * the entries of a Laplacian are rounded. */
#define ROW_SUM_TOLERANCE 1e-12

/* Adds a note on rows without a nonzero, which count as components: isolated
 * vertices of a graph, or rows that were forgotten in the assembly. */
static void note_empty_rows(const sps_operator *A, const sps_components *c)
{
    int64_t empty = 0;

    for (int64_t i = 0; i < c->count; i++)
        empty += c->host_start[i + 1] - c->host_start[i] == 1;
    if (empty)
        spsi_note(A->ctx, "%lld row%s of A contain%s only zeros: X is 0 "
                  "there, whatever the right-hand side", (long long)empty,
                  empty == 1 ? "" : "s", empty == 1 ? "s" : "");
}

static sps_status from_components(const sps_operator *A, const char *kind,
                                  sps_nullspace *N)
{
    sps_status st = SPS_OK;
    sps_components *all = NULL;
    int64_t found;
    bool automatic = !strcmp(kind, "auto");

    SPS_REQUIRE(A->ctx, A->A && !spsi_comm_many(A->ctx), SPS_EUNFIT,
                "nullspace %s needs the whole matrix, and %s; give a basis",
                kind, A->A ? "this process has its own rows only"
                           : "this operator is a callback");
    SPS_TRY(spsi_components_find(A->ctx, A->A, ROW_SUM_TOLERANCE, false,
                                 &N->components));
    found = N->components->count;
    if (!automatic) {
        SPS_TRY(spsi_components_find(A->ctx, A->A, 0, true, &all));
        SPS_REQUIRE(A->ctx, found == all->count, SPS_EUNFIT,
                    "nullspace %s: only %lld of %lld connected components have "
                    "zero row and column sums, as this needs", kind,
                    (long long)found, (long long)all->count);
        SPS_REQUIRE(A->ctx, strcmp(kind, "constant") || found <= 1, SPS_EUNFIT,
                    "nullspace constant: the matrix has %lld connected "
                    "components; use nullspace components", (long long)found);
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

/* Makes N an orthonormal basis of the given one, by applying the rank-revealing
 * step twice. */
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

/* Requires |N'A w| <= 1e-8 ||A w||, where AW is A w for random columns w of
 * norm `norm`, and `typical` is ||A w|| / ||w||: N'A = 0 if N is a null space
 * of A' as well, as it is for a symmetric A. */
static sps_status check_transpose(const sps_operator *A, const sps_block *N,
                                  const sps_block *AW, double typical,
                                  double norm)
{
    sps_small *G = NULL;
    double worst = 0;
    sps_status st;

    SPS_TRY(spsi_small_create(A->ctx, N->k, AW->k, &G));
    SPS_TRY(spsi_gram(N, AW, G));
    for (int e = 0; e < N->k * AW->k; e++) worst = fmax(worst, fabs(G->v[e]));
    SPS_REQUIRE(A->ctx, worst <= 1e-8 * typical * norm, SPS_EUNFIT,
                "the given basis is a null space of A, but not of its "
                "transpose, so that projected right-hand sides need not be "
                "consistent: omit it");
fail:
    spsi_small_destroy(&G);
    return st;
}

/* Compares ||A v|| of the basis with ||A w|| / ||w|| of a random vector. */
static sps_status check_null(const sps_operator *A, const sps_block *N,
                             sps_block *W, sps_block *V, double *norm)
{
    sps_status st = SPS_OK;
    double worst = 0, typical, random;

    SPS_TRY(spsi_operator_apply_plain(A, 1.0, N, 0.0, W));
    SPS_TRY(spsi_norms(W, norm));
    for (int j = 0; j < N->k; j++) worst = fmax(worst, norm[j]);
    SPS_TRY(sps_block_random(V, 1));
    SPS_TRY(spsi_norms(V, norm));
    random = norm[0];
    SPS_TRY(spsi_operator_apply_plain(A, 1.0, V, 0.0, W));
    SPS_TRY(spsi_norms(W, norm));
    typical = random > 0 ? norm[0] / random : 0;
    SPS_REQUIRE(A->ctx, worst <= 1e-8 * typical, SPS_EUNFIT,
                "the given basis does not span a null space: ||A v|| = %.3g "
                "for a unit vector of it, %.3g for a random one", worst,
                typical);
    SPS_TRY(check_transpose(A, N, W, typical, random));
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
    bool possible;

    SPS_REQUIRE(A->ctx, !strcmp(kind, "auto") || !strcmp(kind, "none") ||
                !strcmp(kind, "constant") || !strcmp(kind, "components"),
                SPS_EINVAL, "unknown nullspace '%s': none, auto, constant or "
                "components", kind);
    *N_p = NULL;
    if (!opt->nullspace_basis &&
        (!strcmp(kind, "none") ||
         (!strcmp(kind, "auto") && (!A->A || spsi_comm_many(A->ctx)))))
        return SPS_OK;
    if (!opt->nullspace_basis && !strcmp(kind, "auto")) {
        SPS_TRY(spsi_matrix_cancels(A, ROW_SUM_TOLERANCE, &possible));
        if (!possible) return SPS_OK;
    }
    SPS_TRY(spsi_operator_fetch(A));
    SPS_TRY(spsi_new(A->ctx, sizeof *N, (void **)&N));
    N->ctx = A->ctx;
    N->named = opt->nullspace_basis || strcmp(kind, "auto");
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

sps_status spsi_linear_project(sps_linear *s, sps_block *B)
{
    for (int pass = 0; pass < 2; pass++) {
        const sps_status st = spsi_nullspace_project(s->made.null, B);

        if (st != SPS_OK) return st;
    }
    return SPS_OK;
}
