/* SPDX-License-Identifier: BSD-3-Clause */
/* spgemm_fixture.h - products of sparse matrices in the place under test, and
 * the same by plain loops, bit by bit. */
#ifndef SPS_TEST_SPGEMM_FIXTURE_H
#define SPS_TEST_SPGEMM_FIXTURE_H

#include <check.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/backend.h"
#include "matrix/csr.h"
#include "operator/operator_matrix.h"
#include "tests/problems/zoo.h"
#include "tests/support/fixture.h"
#include "tests/support/runner.h"

static inline double value(const sps_csr *A, int64_t p)
{
    return spsi_csr_value(A, p);
}

/* ------------------------------------------------------------- plain loops */

static inline int by_column(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

    return (x > y) - (x < y);
}

typedef struct right_row {
    double *sum;             /* for each column of B */
    char *used;
    int32_t *col;
    int64_t count;
} right_row;

static inline right_row right_open(int64_t ncol)
{
    return (right_row){ calloc((size_t)ncol + 1, sizeof(double)),
                        calloc((size_t)ncol + 1, 1),
                        calloc((size_t)ncol + 1, sizeof(int32_t)), 0 };
}

static inline void right_close(right_row *r)
{
    free(r->sum);
    free(r->used);
    free(r->col);
}

static inline void right_make(right_row *r, const sps_csr *A, const sps_csr *B,
                              int64_t i, bool single)
{
    for (int64_t s = 0; s < r->count; s++) r->used[r->col[s]] = 0;
    r->count = 0;
    for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
        for (int64_t q = B->rowptr[A->col[p]]; q < B->rowptr[A->col[p] + 1];
             q++) {
            const int32_t j = B->col[q];

            if (!r->used[j]) {
                r->used[j] = 1;
                r->sum[j] = -0.0;
                r->col[r->count++] = j;
            }
            r->sum[j] = single ? (double)fmaf((float)value(A, p),
                                              (float)value(B, q),
                                              (float)r->sum[j])
                               : fma(value(A, p), value(B, q), r->sum[j]);
        }
    qsort(r->col, (size_t)r->count, sizeof *r->col, by_column);
}

static inline bool same_number(double a, double b)
{
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

/* C, in host memory, must be A B with all bits. */
static inline void check_product(const sps_csr *A, const sps_csr *B,
                                 const sps_csr *C, const char *what)
{
    const bool single = A->dtype == SPS_F32 && B->dtype == SPS_F32;
    right_row r = right_open(B->ncol);

    ck_assert_int_eq((int)C->dtype, single ? SPS_F32 : SPS_F64);
    ck_assert_msg(C->nrow == A->nrow && C->ncol == B->ncol, "%s: shape", what);
    ck_assert_msg(C->props & SPS_SORTED, "%s: not sorted", what);
    for (int64_t i = 0; i < A->nrow; i++) {
        const int64_t at = C->rowptr[i];

        right_make(&r, A, B, i, single);
        ck_assert_msg(C->rowptr[i + 1] - at == r.count,
                      "%s: row %lld has %lld entries, not %lld", what,
                      (long long)i, (long long)(C->rowptr[i + 1] - at),
                      (long long)r.count);
        for (int64_t s = 0; s < r.count; s++)
            ck_assert_msg(C->col[at + s] == r.col[s] &&
                          same_number(value(C, at + s), r.sum[r.col[s]]),
                          "%s: row %lld entry %lld is %.17g in column %d, not "
                          "%.17g in %d", what, (long long)i, (long long)s,
                          value(C, at + s), C->col[at + s], r.sum[r.col[s]],
                          r.col[s]);
    }
    ck_assert_int_eq(C->nnz, C->rowptr[A->nrow]);
    right_close(&r);
}

/* ----------------------------------------------------- the place under test */

static inline sps_csr *sent(sps_context *ctx, const sps_csr *A)
{
    sps_csr *B = NULL;

    if (ctx->backend->place == SPS_HOST) return (sps_csr *)(uintptr_t)A;
    OK(ctx, spsi_csr_upload(ctx, A, &B));
    return B;
}

static inline void drop(sps_context *ctx, const sps_csr *A, sps_csr *B)
{
    if (A != B) sps_csr_destroy(ctx, &B);
}

/* A copy of C in host memory; C is destroyed. */
static inline sps_csr *fetched(sps_context *ctx, sps_csr *C)
{
    sps_csr *H = NULL;

    ck_assert_int_eq((int)C->place, (int)ctx->backend->place);
    if (C->place == SPS_HOST) return C;
    OK(ctx, spsi_csr_download(ctx, C, &H));
    sps_csr_destroy(ctx, &C);
    return H;
}

static inline sps_csr *multiplied(sps_context *ctx, const sps_csr *A,
                                  const sps_csr *B)
{
    sps_csr *a = sent(ctx, A), *b = A == B ? a : sent(ctx, B), *C = NULL;

    OK(ctx, sps_csr_multiply(ctx, a, b, &C));
    if (a != b) drop(ctx, B, b);
    drop(ctx, A, a);
    return fetched(ctx, C);
}

static inline void try_product(sps_context *ctx, const sps_csr *A,
                               const sps_csr *B, const char *what)
{
    sps_csr *C = multiplied(ctx, A, B);

    check_product(A, B, C, what);
    sps_csr_destroy(ctx, &C);
}

static inline void same_matrix(const sps_csr *C, const sps_csr *D,
                               const char *what)
{
    const size_t size = C->dtype == SPS_F64 ? sizeof(double) : sizeof(float);

    ck_assert_msg(C->nnz == D->nnz &&
                  !memcmp(C->rowptr, D->rowptr,
                          (size_t)(C->nrow + 1) * sizeof *C->rowptr) &&
                  !memcmp(C->col, D->col, (size_t)C->nnz * sizeof *C->col) &&
                  !memcmp(C->val, D->val, (size_t)C->nnz * size),
                  "%s: other bits", what);
}

static inline void try_transpose(sps_context *ctx, const sps_csr *A,
                                 const char *what)
{
    sps_csr *a = sent(ctx, A), *T = NULL, *R = NULL;

    OK(ctx, sps_csr_transpose(ctx, a, &T));
    T = fetched(ctx, T);
    OK(ctx, spsi_csr_transpose(ctx, A, &R));
    ck_assert_msg(T->nrow == A->ncol && T->ncol == A->nrow &&
                  (T->props & SPS_SORTED), "%s", what);
    same_matrix(T, R, what);
    drop(ctx, A, a);
    sps_csr_destroy(ctx, &T);
    sps_csr_destroy(ctx, &R);
}

/* A csr, to be filled in. */
static inline sps_csr *blank(int64_t nrow, int64_t ncol, int64_t nnz)
{
    sps_csr *A = calloc(1, sizeof *A);

    *A = (sps_csr){ .nrow = nrow, .ncol = ncol, .nnz = nnz, .dtype = SPS_F64,
                    .place = SPS_HOST, .own = SPS_BORROW, .props = SPS_SORTED,
                    .struct_size = sizeof *A };
    A->rowptr = calloc((size_t)nrow + 1, sizeof *A->rowptr);
    A->col = calloc((size_t)nnz + 1, sizeof *A->col);
    A->val = calloc((size_t)nnz + 1, sizeof(double));
    return A;
}

static inline void erase(sps_csr **A_p)
{
    free((*A_p)->rowptr);
    free((*A_p)->col);
    free((*A_p)->val);
    free(*A_p);
    *A_p = NULL;
}

static inline void set_value(sps_csr *A, int64_t p, double x)
{
    if (A->dtype == SPS_F64) ((double *)A->val)[p] = x;
    else ((float *)A->val)[p] = (float)x;
}

/* Values 3 x + 1 in place of those of B, on the pattern of C. */
static inline void try_new_values(sps_context *ctx, sps_csr *A, sps_csr *B)
{
    sps_csr *a = sent(ctx, A), *b = sent(ctx, B), *C = NULL, *b2;

    OK(ctx, spsi_matrix_multiply(ctx, a, b, &C));
    drop(ctx, B, b);
    for (int64_t p = 0; p < B->nnz; p++)
        set_value(B, p, 3 * value(B, p) + 1);
    b2 = sent(ctx, B);
    OK(ctx, spsi_matrix_multiply_values(ctx, a, b2, C));
    C = fetched(ctx, C);
    check_product(A, B, C, "new values");
    drop(ctx, A, a);
    drop(ctx, B, b2);
    sps_csr_destroy(ctx, &C);
}

/* Some values of A become NaN, infinite, or zeros of both signs. */
static inline void spoil(sps_csr *A)
{
    static const double odd[] = { NAN, INFINITY, 0.0, -INFINITY, -0.0 };

    for (int64_t p = 3; p < A->nnz; p += 17)
        set_value(A, p, odd[p / 17 % 5]);
}

/* ------------------------------------------------------------------ repeats */

/* A context of its own in the place under test, whose thread computes A A
 * until it is stopped: on a GPU a second stream is busy. */
typedef struct neighbour {
    sps_context *ctx;
    sps_csr *H, *A;           /* on the host, in that place */
    pthread_t thread;
    atomic_bool stop;
    atomic_int products;      /* computed so far; -1 after a failure */
} neighbour;

static inline void *multiply_on(void *data)
{
    neighbour *n = data;

    while (!n->stop && n->products >= 0) {
        sps_csr *C = NULL;

        if (sps_csr_multiply(n->ctx, n->A, n->A, &C) == SPS_OK) n->products++;
        else n->products = -1;
        sps_csr_destroy(n->ctx, &C);
    }
    return NULL;
}

static inline void neighbour_open(neighbour *n)
{
    *n = (neighbour){ .ctx = fixture_open() };
    n->H = zoo_matrix(zoo_find("power_law"), 2000, 9, ZOO_RANDOM, SPS_F64);
    n->A = sent(n->ctx, n->H);
    ck_assert_int_eq(pthread_create(&n->thread, NULL, multiply_on, n), 0);
    while (n->products == 0) sched_yield();
}

static inline void neighbour_close(neighbour *n)
{
    n->stop = true;
    pthread_join(n->thread, NULL);
    ck_assert_msg(n->products > 0, "%s", sps_context_error(n->ctx));
    drop(n->ctx, n->H, n->A);
    zoo_free(&n->H);
    fixture_close(&n->ctx);
}

/* A B fifty times, formed anew and as new values, has the same bits. */
static inline void try_repeats(sps_context *ctx, const sps_csr *A,
                               const sps_csr *B, const char *what)
{
    sps_csr *a = sent(ctx, A), *b = sent(ctx, B), *C = multiplied(ctx, A, B);

    check_product(A, B, C, what);
    for (int t = 0; t < 50; t++) {
        sps_csr *D = NULL;

        OK(ctx, spsi_matrix_multiply(ctx, a, b, &D));
        if (t % 2) OK(ctx, spsi_matrix_multiply_values(ctx, a, b, D));
        D = fetched(ctx, D);
        same_matrix(C, D, what);
        sps_csr_destroy(ctx, &D);
    }
    sps_csr_destroy(ctx, &C);
    drop(ctx, A, a);
    drop(ctx, B, b);
}

#endif
