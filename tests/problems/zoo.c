/* SPDX-License-Identifier: BSD-3-Clause */
/* zoo.c - matrices and blocks from the families (zoo_families.c): sorts rows,
 * removes duplicates, and sets the values independently of the pattern. */
#include "tests/problems/zoo.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "philox.h"
#include "tests/problems/zoo_row.h"

int zoo_count(void) { return zoo_families; }

const char *zoo_name(int f) { return zoo_family[f].name; }

bool zoo_symmetric(int f) { return zoo_family[f].symmetric; }

int zoo_find(const char *name)
{
    for (int f = 0; f < zoo_count(); f++)
        if (!strcmp(zoo_family[f].name, name)) return f;
    return -1;
}

static int ascending(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

    return (x > y) - (x < y);
}

static void sort_unique(row *r)
{
    int64_t kept = 0;

    if (r->count > 1)
        qsort(r->col, (size_t)r->count, sizeof *r->col, ascending);
    for (int64_t t = 0; t < r->count; t++)
        if (!kept || r->col[t] != r->col[kept - 1]) r->col[kept++] = r->col[t];
    r->count = kept;
}

/* [-1/2, 1/2) -> nonzero integer, |v| <= most. */
static double whole(double u, int most)
{
    double v = floor(u * 2 * most);   /* -most .. most - 1 */

    return v >= 0 ? v + 1 : v;
}

/* The value at (i, j); the diagonal of SPD and LAPLACIAN is set afterwards. */
static double value(zoo_values kind, uint64_t seed, int64_t i, int64_t j)
{
    int64_t low = i < j ? i : j, high = i < j ? j : i;
    int r, c;

    switch (kind) {
    case ZOO_INTEGER:
        return whole(spsi_philox_at(seed, i, (int)j), 1024);
    case ZOO_SMALL:
        return whole(spsi_philox_at(seed, i, (int)j), 8);
    case ZOO_RANDOM:
        return spsi_philox_at(seed, i, (int)j);
    case ZOO_SCALES:
        r = (int)(81 * (spsi_philox_at(seed + 1, i, 0) + 0.5)) - 40;
        c = (int)(81 * (spsi_philox_at(seed + 2, j, 0) + 0.5)) - 40;
        return ldexp(spsi_philox_at(seed, i, (int)j), r + c);
    case ZOO_SPD:
        return i == j ? 0 : spsi_philox_at(seed, low, (int)high);
    case ZOO_LAPLACIAN:
        return i == j ? 0 : -1;
    }
    return 0;
}

static void fill_diagonal(sps_csr *A, double *v, zoo_values kind)
{
    for (int64_t i = 0; i < A->nrow; i++) {
        double sum = kind == ZOO_SPD ? 0.25 : 0;

        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            sum += fabs(v[p]);
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            if (A->col[p] == i) v[p] = sum;
    }
}

static void fill_values(sps_csr *A, uint64_t seed, zoo_values kind)
{
    double *v = zoo_must(malloc((size_t)(A->nnz + 1) * sizeof *v));

    for (int64_t i = 0; i < A->nrow; i++)
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            v[p] = value(kind, seed, i, A->col[p]);
    if (kind == ZOO_SPD || kind == ZOO_LAPLACIAN) fill_diagonal(A, v, kind);
    A->val = v;
    if (A->dtype == SPS_F32) {
        float *w = zoo_must(malloc((size_t)(A->nnz + 1) * sizeof *w));

        for (int64_t p = 0; p < A->nnz; p++) w[p] = (float)v[p];
        A->val = w;
        free(v);
    }
}

/* A matrix whose rows the function fill generates; arrays grow as needed. */
static sps_csr *assemble(row *r, void (*fill)(row *r), zoo_values values,
                         sps_dtype dtype)
{
    sps_csr *A = zoo_must(calloc(1, sizeof *A));
    int64_t room = 16;

    *A = (sps_csr){.nrow = r->nrow, .ncol = r->ncol, .dtype = dtype,
                   .place = SPS_HOST, .own = SPS_BORROW, .props = SPS_SORTED,
                   .struct_size = sizeof *A};
    if (values == ZOO_SPD) A->props |= SPS_SYMMETRIC | SPS_SPD;
    if (values == ZOO_LAPLACIAN) A->props |= SPS_SYMMETRIC;
    A->rowptr = zoo_must(calloc((size_t)r->nrow + 1, sizeof *A->rowptr));
    A->col = zoo_must(malloc((size_t)room * sizeof *A->col));
    for (r->i = 0; r->i < r->nrow; r->i++) {
        r->count = 0;
        if (r->ncol > 0) fill(r);
        sort_unique(r);
        if (A->nnz + r->count > room) {
            room = 2 * room + r->count;
            A->col = zoo_must(realloc(A->col, (size_t)room * sizeof *A->col));
        }
        if (r->count)
            memcpy(A->col + A->nnz, r->col, (size_t)r->count * sizeof *r->col);
        A->nnz += r->count;
        A->rowptr[r->i + 1] = A->nnz;
    }
    free(r->col);
    fill_values(A, r->seed, values);
    return A;
}

sps_csr *zoo_shape(int f, int64_t nrow, int64_t ncol, uint64_t seed,
                   zoo_values values, sps_dtype dtype)
{
    row r = {.nrow = nrow, .ncol = ncol, .seed = seed};

    return assemble(&r, zoo_family[f].fill, values, dtype);
}

sps_csr *zoo_matrix(int f, int64_t n, uint64_t seed, zoo_values values,
                    sps_dtype dtype)
{
    const family *of = &zoo_family[f];

    return zoo_shape(f, n, n * of->up / of->down, seed, values, dtype);
}

sps_csr *zoo_rows(int64_t nrow, int64_t ncol, const int32_t *length,
                  int64_t kinds, int64_t first, uint64_t seed,
                  zoo_values values, sps_dtype dtype)
{
    row r = {.nrow = nrow, .ncol = ncol, .seed = seed, .length = length,
             .kinds = kinds, .first = first};

    return assemble(&r, zoo_given, values, dtype);
}

sps_csr *zoo_full(int64_t n, zoo_values values, sps_dtype dtype)
{
    const int32_t all = (int32_t)n;

    return zoo_rows(n, n, &all, 1, 0, 7, values, dtype);
}

static void *copy(const void *from, size_t bytes)
{
    return memcpy(zoo_must(malloc(bytes + 1)), from, bytes);
}

sps_csr *zoo_copy(const sps_csr *A)
{
    const size_t number = A->dtype == SPS_F64 ? sizeof(double) : sizeof(float);
    sps_csr *B = copy(A, sizeof *A);

    B->own = SPS_BORROW;
    B->rowptr = copy(A->rowptr, (size_t)(A->nrow + 1) * sizeof *A->rowptr);
    B->col = copy(A->col, (size_t)A->nnz * sizeof *A->col);
    B->val = copy(A->val, (size_t)A->nnz * number);
    return B;
}

void zoo_free(sps_csr **A_p)
{
    sps_csr *A = *A_p;

    *A_p = NULL;
    if (!A) return;
    free(A->rowptr);
    free(A->col);
    free(A->val);
    free(A);
}

double *zoo_block(int64_t n, int k, int64_t ld, uint64_t seed,
                  zoo_values values)
{
    double *x = zoo_must(malloc((size_t)(n * ld + 1) * sizeof *x));

    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < ld; j++) {
            double u = spsi_philox_at(seed ^ 0x5eed, i, (int)j);

            if (values == ZOO_INTEGER) u = whole(u, 1024);
            if (values == ZOO_SMALL) u = whole(u, 8);
            x[i * ld + j] = j < k ? u : NAN;
        }
    return x;
}
