/* SPDX-License-Identifier: BSD-3-Clause */
/* check_callback.c - operators that are callbacks of the user: their arguments,
 * how their return code ends a call, what such an operator rejects. */
#include <check.h>
#include <math.h>
#include <stdio.h>

#include "tests/support/apply.h"
#include "block/block.h"
#include "tests/support/callback.h"
#include "operator/operator.h"
#include "tests/support/runner.h"
#include "tests/problems/zoo.h"

static sps_context *ctx;

static void open_context(void) { ctx = runner_context(); }
static void close_context(void) { fixture_close(&ctx); }

typedef struct call { int count, code; int64_t n; int k; } call;

static int note_call(double alpha, const double *X, int64_t ldx, double beta,
                     double *Y, int64_t ldy, int64_t n, int k, void *stream,
                     void *data)
{
    call *c = data;

    (void)alpha, (void)X, (void)ldx, (void)beta, (void)Y, (void)ldy;
    (void)stream;
    c->count++;
    c->n = n;
    c->k = k;
    return c->code;
}

/* Y = alpha 3 X + beta Y on the host. */
static int triple(double alpha, const double *X, int64_t ldx, double beta,
                  double *Y, int64_t ldy, int64_t n, int k, void *stream,
                  void *data)
{
    (void)stream, (void)data;
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < k; j++) {
            double *y = &Y[i * ldy + j];

            *y = 3.0 * alpha * X[i * ldx + j] + (beta == 0.0 ? 0.0
                                                             : beta * *y);
        }
    return 0;
}

START_TEST(callbacks_see_the_block_and_end_with_their_code)
{
    call c = { 0 };
    char text[64];
    sps_operator *op = NULL;
    sps_block *X = fixture_block(ctx, 40, 7, NULL, 7);
    sps_block *Y = fixture_block(ctx, 40, 7, NULL, 7);

    OK(ctx, sps_operator_user(ctx, 40, note_call, &c, SPS_SYMMETRIC, &op));
    OK(ctx, sps_operator_apply(op, 1.0, X, 0.0, Y));
    ck_assert(c.count == 1 && c.n == 40 && c.k == 7);
    c.code = 42;
    ck_assert_int_eq(sps_operator_apply(op, 1.0, X, 0.0, Y), SPS_EUSER);
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "42"));
    ck_assert_int_eq(sps_operator_set_values(op, &c, SPS_HOST), SPS_EUNFIT);
    ck_assert_int_eq(sps_operator_sample(op, 1, X, Y, false, 0, NULL),
                     SPS_EUNFIT);
    ck_assert_str_eq(sps_operator_kernel(op), "callback");
    ck_assert_uint_eq(sps_operator_describe(op, text, sizeof text),
                      strlen(text));
    sps_operator_destroy(&op);
    ck_assert_int_eq(sps_operator_user(ctx, 4, NULL, NULL, 0, &op),
                     SPS_EINVAL);
    ck_assert_int_eq(sps_operator_user(ctx, -4, triple, NULL, 0, &op),
                     SPS_EINVAL);
    ck_assert_int_eq(sps_operator_user(ctx, 4, triple, NULL, 64, &op),
                     SPS_EINVAL);
    sps_block_destroy(&X);
    sps_block_destroy(&Y);
}
END_TEST

START_TEST(a_callback_is_an_operator)
{
    double *x, y[30];
    sps_operator *op = NULL;
    callback c = { ctx, triple, NULL };

    x = zoo_block(10, 3, 3, 3, ZOO_INTEGER);
    OK(ctx, sps_operator_user(ctx, 10, callback_anywhere, &c, SPS_SPD, &op));
    for (int i = 0; i < 30; i++) y[i] = NAN;
    apply(op, 2.0, x, 0.0, y, 3);
    for (int i = 0; i < 30; i++) ck_assert_double_eq(y[i], 6.0 * x[i]);
    sps_operator_destroy(&op);
    free(x);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(callbacks_see_the_block_and_end_with_their_code),
    RUNNER_TEST(a_callback_is_an_operator),
};
RUNNER_MAIN_WITHIN("callback", tests, open_context, close_context)
