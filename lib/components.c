/* SPDX-License-Identifier: BSD-3-Clause */
/* components.c - connected components of the pattern of A + A'.
 *
 * A component whose rows all sum to zero carries a null vector of a symmetric
 * A: its indicator.  Union-find with the smaller row as root and path halving
 * (Tarjan and van Leeuwen 1984), serial: one pass over the pattern.  Most
 * matrices have no such component, so a few cheap parallel sweeps first try
 * to show that: a row linked to a row with a sum is out itself. */
#include <math.h>

#include "backend.h"

enum { SWEEPS = 4 };

/* Whether the values of row i cancel: |sum| <= tol sum |a_ij|. */
static bool cancels(const sps_csr *A, int64_t i, double tol)
{
    double sum = 0.0, size = 0.0;

    for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
        const double a = spsi_csr_value(A, p);

        sum += a;
        size += fabs(a);
    }
    return fabs(sum) <= tol * size;
}

bool spsi_components_possible(const sps_context *ctx, const sps_csr *A,
                              double tol)
{
    bool any = false;

#pragma omp parallel for schedule(static) num_threads(ctx->threads)           \
    reduction(|| : any) if (A->nnz > 100000)
    for (int64_t i = 0; i < A->nrow; i++) any = any || cancels(A, i, tol);
    return any;
}

static void test_sums(sps_context *ctx, const sps_csr *A, double tol,
                      char *good)
{
#pragma omp parallel for schedule(static) num_threads(ctx->threads)           \
    if (A->nnz > 100000)
    for (int64_t i = 0; i < A->nrow; i++) good[i] = cancels(A, i, tol);
}

static bool linked_to_bad(const sps_csr *A, int64_t i, const char *good)
{
    for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
        char g;

#pragma omp atomic read
        g = good[A->col[p]];
        if (!g) return true;
    }
    return false;
}

/* One sweep: good rows linked to bad ones turn bad; returns how many stay.
 * Rows see each other's news in any order; only "none stays" is used, which
 * is true in whatever order it was found. */
static int64_t sweep(sps_context *ctx, const sps_csr *A, char *good)
{
    int64_t left = 0;

#pragma omp parallel for schedule(static) num_threads(ctx->threads)           \
    reduction(+ : left) if (A->nnz > 100000)
    for (int64_t i = 0; i < A->nrow; i++) {
        char g;

#pragma omp atomic read
        g = good[i];
        if (!g) continue;
        if (linked_to_bad(A, i, good)) {
#pragma omp atomic write
            good[i] = 0;
        } else {
            left++;
        }
    }
    return left;
}

static bool none_left(sps_context *ctx, const sps_csr *A, char *good)
{
    for (int s = 0; s < SWEEPS; s++)
        if (sweep(ctx, A, good) == 0) return true;
    return false;
}

static int32_t root(int32_t *parent, int32_t i)
{
    while (parent[i] != i) {
        parent[i] = parent[parent[i]];
        i = parent[i];
    }
    return i;
}

/* parent[i] = smallest row of i's component; good[that] = 0 when any row of
 * the component is bad. */
static void unite(const sps_csr *A, int32_t *parent, char *good)
{
    const int32_t n = (int32_t)A->nrow;

    for (int32_t i = 0; i < n; i++) parent[i] = i;
    for (int32_t i = 0; i < n; i++) {
        int32_t a = root(parent, i);

        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
            const int32_t b = root(parent, A->col[p]);

            if (a == b) continue;
            parent[a > b ? a : b] = a > b ? b : a;
            a = a > b ? b : a;
        }
    }
    for (int32_t i = 0; i < n; i++) parent[i] = root(parent, i);
    for (int32_t i = 0; i < n; i++)
        if (!good[i]) good[parent[i]] = 0;
}

/* Counting sort of the rows by component, components by their first row.
 * number[root] is the component's number. */
static sps_status group(sps_context *ctx, int32_t n, const int32_t *parent,
                        const char *good, sps_components *c, int32_t **row_p)
{
    sps_status st;
    int32_t *number = NULL;
    int64_t *next = NULL;

    for (int32_t i = 0; i < n; i++) {
        c->count += parent[i] == i && good[i];
        c->rows += good[parent[i]] != 0;
    }
    SPS_TRY(SPS_NEW(ctx, n, &number));
    SPS_TRY(SPS_NEW(ctx, c->count + 1, &c->host_start));
    SPS_TRY(SPS_NEW(ctx, c->count + 1, &next));
    SPS_TRY(SPS_NEW(ctx, c->rows, row_p));
    for (int32_t i = 0, m = 0; i < n; i++)
        if (parent[i] == i && good[i]) number[i] = m++;
    for (int32_t i = 0; i < n; i++)
        if (good[parent[i]]) c->host_start[number[parent[i]] + 1]++;
    for (int64_t m = 0; m < c->count; m++) {
        c->host_start[m + 1] += c->host_start[m];
        next[m] = c->host_start[m];
    }
    for (int32_t i = 0; i < n; i++)
        if (good[parent[i]]) (*row_p)[next[number[parent[i]]]++] = i;
fail:
    spsi_free(ctx, number);
    spsi_free(ctx, next);
    return st;
}

static sps_status upload(sps_context *ctx, size_t bytes, const void *from,
                         void **to_p, size_t *bytes_p)
{
    sps_status st = SPS_OK;

    if (bytes == 0) return SPS_OK;
    SPS_TRY(ctx->backend->alloc(ctx, bytes, to_p));
    *bytes_p = bytes;
    SPS_TRY(ctx->backend->upload(ctx, *to_p, from, bytes));
fail:
    return st;
}

/* Finds and groups; *row_p gets the rows on the host. */
static sps_status find(sps_context *ctx, const sps_csr *A, double tol,
                       bool all, sps_components *c, int32_t **row_p)
{
    const int32_t n = (int32_t)A->nrow;
    sps_status st;
    char *good = NULL;
    int32_t *parent = NULL;

    SPS_TRY(SPS_NEW(ctx, n, &good));
    if (all)
        for (int32_t i = 0; i < n; i++) good[i] = 1;
    else
        test_sums(ctx, A, tol, good);
    if (!all && none_left(ctx, A, good)) {
        SPS_TRY(SPS_NEW(ctx, 1, &c->host_start));
    } else {
        SPS_TRY(SPS_NEW(ctx, n, &parent));
        unite(A, parent, good);
        SPS_TRY(group(ctx, n, parent, good, c, row_p));
    }
fail:
    spsi_free(ctx, good);
    spsi_free(ctx, parent);
    return st;
}

sps_status spsi_components_find(sps_context *ctx, const sps_csr *A, double tol,
                                bool all, sps_components **c_p)
{
    sps_status st;
    sps_components *c = NULL;
    int32_t *row = NULL;

    SPS_REQUIRE(ctx, A->nrow == A->ncol, SPS_ESHAPE,
                "components need a square matrix, not %lld x %lld",
                (long long)A->nrow, (long long)A->ncol);
    SPS_TRY(SPS_NEW(ctx, 1, &c));
    c->ctx = ctx;
    SPS_TRY(find(ctx, A, tol, all, c, &row));
    SPS_TRY(upload(ctx, (size_t)(c->count + 1) * sizeof *c->start,
                   c->host_start, (void **)&c->start, &c->bytes_start));
    SPS_TRY(upload(ctx, (size_t)c->rows * sizeof *row, row,
                   (void **)&c->row, &c->bytes_row));
    spsi_free(ctx, row);
    *c_p = c;
    return SPS_OK;

fail:
    spsi_free(ctx, row);
    spsi_components_destroy(&c);
    return st;
}

void spsi_components_destroy(sps_components **c_p)
{
    sps_components *c = *c_p;

    if (!c) return;
    if (c->start) c->ctx->backend->release(c->ctx, c->start, c->bytes_start);
    if (c->row) c->ctx->backend->release(c->ctx, c->row, c->bytes_row);
    spsi_free(c->ctx, c->host_start);
    spsi_free(c->ctx, c);
    *c_p = NULL;
}
