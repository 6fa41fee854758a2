/* SPDX-License-Identifier: BSD-3-Clause */
/* components.c - connected components of the pattern of A + A'.
 *
 * The indicator of a component whose row and column sums are all zero is a null
 * vector of A and of A'.  (Row sums alone do not suffice for a nonsymmetric A:
 * its range is orthogonal to another vector, and subtracting the mean could
 * make a consistent right-hand side inconsistent.) Union-find with the smaller
 * row as root and path halving (Tarjan and van Leeuwen 1984), serial: one pass
 * over the pattern.  Most matrices have no such component, so a few cheap
 * parallel sweeps first try to show that: a row linked to a row with a nonzero
 * sum is excluded. */
#include <math.h>

#include "core/backend.h"
#include "matrix/csr.h"
#include "core/team.h"

enum { SWEEPS = 4 };

/* Returns whether the sum is zero, up to tol times the sum `size` of the
 * magnitudes. */
static bool is_zero(double sum, double size, double tol)
{
    return isfinite(size) && fabs(sum) <= tol * size;
}

/* Returns whether the sum of row i is zero by the test of is_zero. */
static bool cancels(const sps_csr *A, int64_t i, double tol)
{
    double sum = 0.0, size = 0.0;

    for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
        const double a = spsi_csr_value(A, p);

        sum += a;
        size += fabs(a);
    }
    return is_zero(sum, size, tol);
}

typedef struct job {
    const sps_csr *A;
    double tol;
    char *good;              /* 0 for rows that are excluded */
    int64_t count;           /* rows whose sum is zero */
} job;

static void count_first(void *data, int64_t first, int64_t last)
{
    job *j = data;

    for (int64_t i = first; i < last; i++) {
        if (!cancels(j->A, i, j->tol)) continue;
        spsi_team_add(&j->count, 1);
        return;
    }
}

bool spsi_components_possible(sps_context *ctx, const sps_csr *A, double tol)
{
    job j = { .A = A, .tol = tol };

    spsi_team_run(ctx, A->nrow, A->nnz + A->nrow, count_first, &j);
    return j.count > 0;
}

static void test_sums(void *data, int64_t first, int64_t last)
{
    const job *j = data;

    for (int64_t i = first; i < last; i++)
        j->good[i] = cancels(j->A, i, j->tol);
}

/* Sets good[j] = 0 where the sum of column j of A is not zero. */
static sps_status test_column_sums(sps_context *ctx, const sps_csr *A,
                                   double tol, char *good)
{
    double *sum = NULL, *size = NULL;
    sps_status st = SPS_OK;

    SPS_TRY(SPS_NEW(ctx, A->ncol, &sum));
    SPS_TRY(SPS_NEW(ctx, A->ncol, &size));
    for (int64_t p = 0; p < A->nnz; p++) {
        const double a = spsi_csr_value(A, p);

        sum[A->col[p]] += a;
        size[A->col[p]] += fabs(a);
    }
    for (int64_t j = 0; j < A->ncol; j++)
        if (!is_zero(sum[j], size[j], tol)) good[j] = 0;
fail:
    spsi_free(ctx, sum);
    spsi_free(ctx, size);
    return st;
}

static bool linked_to_bad(const sps_csr *A, int64_t i, const char *good)
{
    for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
        if (!__atomic_load_n(&good[A->col[p]], __ATOMIC_RELAXED)) return true;
    return false;
}

/* One sweep: excludes rows linked to excluded ones, and counts the rows that
 * remain.  How far the exclusion spreads in a sweep depends on the threads, the
 * components found do not: a sweep excludes only rows that `unite` would
 * exclude as well, and is used only where none remains. */
static void sweep(void *data, int64_t first, int64_t last)
{
    job *j = data;
    int64_t left = 0;

    for (int64_t i = first; i < last; i++) {
        if (!__atomic_load_n(&j->good[i], __ATOMIC_RELAXED)) continue;
        if (linked_to_bad(j->A, i, j->good))
            __atomic_store_n(&j->good[i], 0, __ATOMIC_RELAXED);
        else
            left++;
    }
    spsi_team_add(&j->count, left);
}

static bool none_left(sps_context *ctx, const sps_csr *A, char *good)
{
    job j = { .A = A, .good = good };

    for (int s = 0; s < SWEEPS; s++) {
        j.count = 0;
        spsi_team_run(ctx, A->nrow, A->nnz + A->nrow, sweep, &j);
        if (j.count == 0) return true;
    }
    return false;
}

/* Sets good[i] = 0 for the rows whose row or column sum is not zero (of a
 * symmetric A these are equal).  *none: whether all rows are such. */
static sps_status test_all_sums(sps_context *ctx, const sps_csr *A, double tol,
                                char *good, bool *none)
{
    sps_status st = SPS_OK;

    spsi_team_run(ctx, A->nrow, A->nnz + A->nrow, test_sums,
                  &(job){ .A = A, .tol = tol, .good = good });
    *none = none_left(ctx, A, good);
    if (*none || A->props & (SPS_SYMMETRIC | SPS_SPD)) return SPS_OK;
    SPS_TRY(test_column_sums(ctx, A, tol, good));
    *none = none_left(ctx, A, good);
fail:
    return st;
}

static int32_t root(int32_t *parent, int32_t i)
{
    while (parent[i] != i) {
        parent[i] = parent[parent[i]];
        i = parent[i];
    }
    return i;
}

/* Sets parent[i] to the smallest row r of the component of row i, and good[r] =
 * 0 if any row of the component is excluded. */
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

/* Counts an entry below the diagonal, or one above it that has none in its
 * mirror image. */
static bool is_edge(const sps_csr *A, int32_t i, int32_t j)
{
    return j < i || (j > i && spsi_csr_find(A, j, i) < 0);
}

sps_status spsi_loops_count(sps_context *ctx, const sps_csr *A, int64_t *count)
{
    const int32_t n = (int32_t)A->nrow;
    int32_t *parent = NULL;
    sps_status st;

    *count = 0;
    SPS_TRY(SPS_NEW(ctx, n, &parent));
    for (int32_t i = 0; i < n; i++) parent[i] = i;
    for (int32_t i = 0; i < n; i++)
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
            int32_t a, b;

            if (!is_edge(A, i, A->col[p])) continue;
            a = root(parent, i);
            b = root(parent, A->col[p]);
            *count += a == b;
            parent[a > b ? a : b] = a > b ? b : a;
        }
fail:
    spsi_free(ctx, parent);
    return st;
}

/* Sorts the rows by component (counting sort), in the order of their smallest
 * rows; number[r] is the number of the component whose smallest row is r. */
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

/* Finds and groups the components; *row_p receives their rows in host
 * memory. */
static sps_status find(sps_context *ctx, const sps_csr *A, double tol,
                       bool all, sps_components *c, int32_t **row_p)
{
    const int32_t n = (int32_t)A->nrow;
    sps_status st;
    char *good = NULL;
    int32_t *parent = NULL;
    bool none = false;

    SPS_TRY(SPS_NEW(ctx, n, &good));
    if (all)
        for (int32_t i = 0; i < n; i++) good[i] = 1;
    else
        SPS_TRY(test_all_sums(ctx, A, tol, good, &none));
    if (none) {
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
