/* SPDX-License-Identifier: BSD-3-Clause */
/* laplacian.c - the Laplacian of a graph, L = D - W.
 *
 * w_ij = max(a_ij, a_ji): an edge stored in one direction counts like one
 * stored in both, and a symmetric A is unchanged, where a_ij + a_ji would
 * double it. d_i = sum_j w_ij, added by ascending column.  L is bitwise
 * symmetric, positive semidefinite, and zero on the indicator of each connected
 * component; a vertex without edges has a diagonal entry 0.
 *
 * Two merges of the rows of A and A' (count, fill), serial: each reads 24 bytes
 * per entry, 12 are written. */
#include <math.h>

#include "core/abi.h"
#include "core/backend.h"
#include "matrix/csr.h"

typedef struct tally {
    int64_t edges, loops, one_way, isolated;
} tally;

/* Checks that weights are finite and nonnegative. */
static sps_status check_weights(sps_context *ctx, const sps_csr *A)
{
    sps_status st = SPS_OK;

    for (int64_t i = 0; i < A->nrow; i++)
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
            const double w = spsi_csr_value(A, p);

            SPS_REQUIRE(ctx, isfinite(w), SPS_EMATRIX,
                        "Laplacian: the weight in row %lld, column %d is not "
                        "finite", (long long)i + 1, A->col[p] + 1);
            SPS_REQUIRE(ctx, w >= 0 || A->col[p] == i, SPS_EMATRIX,
                        "Laplacian: the weight in row %lld, column %d is %g, "
                        "and weights must not be negative (is the matrix a "
                        "Laplacian already?)", (long long)i + 1,
                        A->col[p] + 1, w);
        }
fail:
    return st;
}

/* Forms row i of L from the rows of A and T = A'.  Its entries are written from
 * offset q on, or, if L is NULL, only counted.  Returns their number. */
static int64_t merge_row(const sps_csr *A, const sps_csr *T, int64_t i,
                         sps_csr *L, int64_t q, tally *t)
{
    int64_t p = A->rowptr[i], r = T->rowptr[i], middle = -1, count = 0;
    double degree = 0;

    while (p < A->rowptr[i + 1] || r < T->rowptr[i + 1]) {
        const int32_t a = p < A->rowptr[i + 1] ? A->col[p] : INT32_MAX;
        const int32_t b = r < T->rowptr[i + 1] ? T->col[r] : INT32_MAX;
        const int32_t j = a < b ? a : b;
        const double there = a == j ? spsi_csr_value(A, p++) : 0;
        const double back = b == j ? spsi_csr_value(T, r++) : 0;
        const double w = fmax(there, back);

        t->loops += j == i && there != 0;
        if (j == i || w == 0) continue;
        if (j > i && middle < 0) middle = count++;
        if (j > i) t->edges++, t->one_way += there != back;
        if (L) {
            L->col[q + count] = j;
            ((double *)L->val)[q + count] = -w;
        }
        degree += w;
        count++;
    }
    t->isolated += degree == 0;
    if (middle < 0) middle = count++;
    if (L) {
        L->col[q + middle] = (int32_t)i;
        ((double *)L->val)[q + middle] = degree;
    }
    return count;
}

static sps_status build(sps_context *ctx, const sps_csr *A, tally *t,
                        sps_csr **L_p)
{
    sps_status st;
    sps_csr *T = NULL, *L = NULL;
    int64_t nnz = 0, q = 0;

    SPS_TRY(spsi_csr_transpose(ctx, A, &T));
    for (int64_t i = 0; i < A->nrow; i++)
        nnz += merge_row(A, T, i, NULL, 0, &(tally){ 0 });
    SPS_TRY(sps_csr_create(ctx, A->nrow, A->nrow, nnz, SPS_F64, &L));
    for (int64_t i = 0; i < A->nrow; i++)
        L->rowptr[i + 1] = q += merge_row(A, T, i, L, q, t);
    for (int64_t i = 0; i < A->nrow; i++)
        for (int64_t p = L->rowptr[i]; p < L->rowptr[i + 1]; p++)
            SPS_REQUIRE(ctx, isfinite(((double *)L->val)[p]), SPS_EMATRIX,
                        "Laplacian: the weights of the edges of vertex %lld "
                        "add up to more than the largest double; scale the "
                        "weights down", (long long)i + 1);
    L->props = SPS_SYMMETRIC | SPS_SORTED;
    *L_p = L;
    L = NULL;
fail:
    sps_csr_destroy(ctx, &L);
    sps_csr_destroy(ctx, &T);
    return st;
}

static void note_ignored(sps_context *ctx, const tally *t)
{
    if (t->one_way)
        spsi_note(ctx, "Laplacian: %lld of %lld edges are directed, or "
                  "their weights differ by direction; the direction is "
                  "ignored and the larger weight used", (long long)t->one_way,
                  (long long)t->edges);
    if (t->loops)
        spsi_note(ctx, "Laplacian: %lld self-loop%s left out",
                  (long long)t->loops, t->loops == 1 ? " is" : "s are");
}

static sps_status fill_info(sps_context *ctx, const sps_csr *L,
                            const tally *t, sps_laplacian_info *info)
{
    sps_status st;
    sps_laplacian_info found = {
        .struct_size = sizeof found, .vertices = L->nrow, .edges = t->edges,
        .isolated = t->isolated, .loops = t->loops, .one_way = t->one_way,
    };
    sps_components *all = NULL;

    SPS_TRY(spsi_components_find(ctx, L, 0, true, &all));
    found.components = all->count;
    spsi_abi_copy(&found, info);
fail:
    spsi_components_destroy(&all);
    return st;
}

sps_status sps_csr_laplacian(sps_context *ctx, const sps_csr *A,
                             sps_laplacian_info *info, sps_csr **L_p)
{
    sps_status st;
    sps_csr *sorted = NULL, *L = NULL;
    tally t = { 0 };
    bool in_order;

    SPS_REQUIRE(ctx, ctx && A && L_p, SPS_EINVAL,
                "sps_csr_laplacian: NULL argument");
    SPS_TRY(spsi_abi_csr(ctx, "sps_csr_laplacian", A));
    SPS_TRY(SPS_ABI_CHECK(ctx, sps_laplacian_info, info));
    SPS_REQUIRE(ctx, A->place == SPS_HOST, SPS_EINVAL,
                "sps_csr_laplacian: the matrix must be in host memory");
    SPS_TRY(spsi_csr_complete(ctx, "sps_csr_laplacian", A));
    SPS_REQUIRE(ctx, A->nrow == A->ncol, SPS_ESHAPE, "Laplacian: an adjacency "
                "matrix is square, and this one has %lld rows and %lld "
                "columns", (long long)A->nrow, (long long)A->ncol);
    SPS_REQUIRE(ctx, !(A->props & SPS_INTERLEAVED), SPS_EMATRIX,
                "Laplacian: weights must be real, and these are complex");
    SPS_TRY(spsi_csr_inspect(ctx, A, &in_order));
    if (!in_order) SPS_TRY(spsi_csr_sorted(ctx, A, &sorted, NULL));
    if (sorted) A = sorted;
    SPS_TRY(check_weights(ctx, A));
    SPS_TRY(build(ctx, A, &t, &L));
    if (info) SPS_TRY(fill_info(ctx, L, &t, info));
    note_ignored(ctx, &t);
    *L_p = L;
    L = NULL;
fail:
    sps_csr_destroy(ctx, &L);
    sps_csr_destroy(ctx, &sorted);
    return st;
}
