/* SPDX-License-Identifier: BSD-3-Clause */
/* contract.h - one handle of each kind, and what a rejected call must satisfy:
 * the status code, an error text, outputs unchanged, no memory leaked.  After
 * each test the handles must still work, and destroying them must free
 * everything. */
#ifndef SPS_TEST_CONTRACT_H
#define SPS_TEST_CONTRACT_H

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/runner.h"
#include "spsolve.h"

enum { N = 12, K = 3 };

static sps_context *ctx, *other;
static sps_csr *A, *wide;
static sps_operator *op, *op_wide, *op_user;
static sps_precond *M;
static sps_solver *s;
static sps_block *B, *X, *Y, *thin, *tall, *foreign;
static sps_options opt;
static double numbers[N * K];

static inline int copy(double alpha, const double *x, int64_t ldx,
                       double beta, double *y, int64_t ldy, int64_t n, int k,
                       void *stream, void *data)
{
    (void)stream, (void)data;
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < k; j++) {
            double old = beta == 0 ? 0 : beta * y[i * ldy + j];

            y[i * ldy + j] = alpha * x[i * ldx + j] + old;
        }
    return 0;
}

static inline sps_csr *tridiagonal(int64_t nrow, int64_t ncol)
{
    sps_csr *T = NULL;
    double *v;
    int64_t p = 0;

    ck_assert_int_eq(sps_csr_create(ctx, nrow, ncol, 3 * nrow, SPS_F64, &T),
                     SPS_OK);
    v = T->val;
    for (int64_t i = 0; i < nrow; i++) {
        for (int64_t j = i - 1; j <= i + 1; j++)
            if (j >= 0 && j < ncol) {
                T->col[p] = (int32_t)j;
                v[p++] = i == j ? 3 : -1;
            }
        T->rowptr[i + 1] = p;
    }
    T->nnz = p;
    ck_assert_int_eq(sps_csr_check(ctx, T), SPS_OK);
    return T;
}

static inline int64_t live(void)
{
    sps_context_info info = {.struct_size = sizeof info};

    ck_assert_int_eq(sps_context_information(ctx, &info), SPS_OK);
    return info.live_objects;
}

#define GOOD(call) ck_assert_int_eq((call), SPS_OK)

static inline void setup(void)
{
    ctx = runner_context();
    other = runner_context();
    A = tridiagonal(N, N);
    wide = tridiagonal(N, N + 2);
    sps_options_default(&opt);
    GOOD(sps_operator_csr(ctx, A, K, NULL, &op));
    GOOD(sps_operator_csr(ctx, wide, K, NULL, &op_wide));
    GOOD(sps_operator_user(ctx, N, copy, NULL, SPS_SPD, &op_user));
    GOOD(sps_precond_create(op, K, NULL, &M));
    GOOD(sps_solver_create(op, M, K, NULL, &s));
    GOOD(sps_block_create(ctx, N, K, &B));
    GOOD(sps_block_create(ctx, N, K, &X));
    GOOD(sps_block_create(ctx, N, K, &Y));
    GOOD(sps_block_create(ctx, N, K - 1, &thin));
    GOOD(sps_block_create(ctx, N + 2, K, &tall));
    GOOD(sps_block_create(other, N, K, &foreign));
}

static inline void teardown(void)
{
    sps_result result = {.struct_size = sizeof result};

    GOOD(sps_block_random(B, 1));
    GOOD(sps_solver_linear(s, B, X, &result));
    ck_assert_int_eq(result.stop, SPS_STOP_CONVERGED);
    sps_solver_destroy(&s);
    sps_precond_destroy(&M);
    sps_operator_destroy(&op);
    sps_operator_destroy(&op_wide);
    sps_operator_destroy(&op_user);
    sps_block_destroy(&B);
    sps_block_destroy(&X);
    sps_block_destroy(&Y);
    sps_block_destroy(&thin);
    sps_block_destroy(&tall);
    sps_block_destroy(&foreign);
    sps_csr_destroy(ctx, &A);
    sps_csr_destroy(ctx, &wide);
    ck_assert_int_eq((int)live(), 0);
    sps_context_destroy(&ctx);
    sps_context_destroy(&other);
}

#define STALE "stale_text"

static inline void make_stale(void)
{
    sps_options o = opt;

    ck_assert_int_eq(sps_options_parse(ctx, &o, STALE "=1"), SPS_EINVAL);
}

/* The call fails with this code, sets an error text and creates nothing. */
#define REFUSED(code, call)                                                    \
    do {                                                                       \
        int64_t live_ = live();                                                \
        sps_status st_;                                                        \
        make_stale();                                                          \
        st_ = (call);                                                          \
        ck_assert_msg(st_ == (code), "%s: \"%s\", expected \"%s\"", #call,     \
                      sps_status_string(st_), sps_status_string(code));        \
        ck_assert_msg(*sps_context_error(ctx) &&                               \
                      !strstr(sps_context_error(ctx), STALE),                  \
                      "%s wrote no text", #call);                              \
        ck_assert_msg(live() == live_, "%s leaked a handle", #call);           \
    } while (0)

/* The handle is NULL: the error text is stored for the thread and returned for
 * any context. */
#define NOWHERE(call) REFUSED(SPS_EINVAL, call)

/* As REFUSED; the variable for the new handle must be unchanged. */
#define NOT_MADE(type, code, call)                                             \
    do {                                                                       \
        type *made = (type *)&numbers, *was = made;                            \
        REFUSED(code, call);                                                   \
        ck_assert_msg(made == was, "%s set its output", #call);                \
    } while (0)

#endif
