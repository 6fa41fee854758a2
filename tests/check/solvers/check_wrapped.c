/* SPDX-License-Identifier: BSD-3-Clause */
/* check_wrapped.c - blocks in the caller's memory: X is bitwise the same for
 * every address and leading dimension of B and X, and the numbers between the
 * rows are unchanged. */
#include <stdlib.h>
#include <string.h>

#include "tests/problems/problem.h"
#include "tests/support/runner.h"

#define OK(ctx, call)                                                          \
    ck_assert_msg((call) == SPS_OK, "%s: %s", #call, sps_context_error(ctx))

enum { N = 400, EXTRA = 3, WIDEST = 33 };

static const char *const methods[] = { "auto", "block_cg", "cg", "refinement",
                                       "gmres", "block_gmres", "block_gcrodr",
                                       "bicgstab", "idr", "minres" };
static const int widths[] = { 1, 2, 3, 5, 16, WIDEST };

/* Device memory in which an array begins at byte `offset`. */
typedef struct array {
    sps_block *all, *wrapped;
    int64_t ld;
} array;

static void open_array(sps_context *ctx, array *a, int k, int offset)
{
    const int64_t need = (k + EXTRA) * (int64_t)N + 8;
    double *data;
    int64_t ld;

    a->ld = k + offset / 8 % (EXTRA + 1);
    OK(ctx, sps_block_create(ctx, need, 1, &a->all));
    data = sps_block_data(a->all, &ld);
    ck_assert_int_eq(ld, 1);
    OK(ctx, sps_block_wrap(ctx, N, k, data + offset / 8, a->ld, &a->wrapped));
}

static void close_array(array *a)
{
    sps_block_destroy(&a->wrapped);
    sps_block_destroy(&a->all);
}

/* Only the n x k numbers of X may have been written. */
static void nothing_else_changed(sps_context *ctx, const array *a, int k,
                                 int offset)
{
    const int64_t count = (k + EXTRA) * (int64_t)N + 8;
    double *v = malloc((size_t)count * sizeof *v);

    OK(ctx, sps_block_get(a->all, 0, 1, v, 1, SPS_ROW_MAJOR, SPS_HOST));
    for (int64_t i = 0; i < count; i++) {
        const int64_t p = i - offset / 8;

        if (p < 0 || p >= N * a->ld || p % a->ld >= k)
            ck_assert(v[i] == 0);
    }
    free(v);
}

static void solve(sps_context *ctx, const problem *p, sps_operator *op, int k,
                  int offset, double *x)
{
    sps_result r = { .struct_size = sizeof r };
    sps_solver *s = NULL;
    array B, X;

    open_array(ctx, &B, k, offset);
    open_array(ctx, &X, k, (3 * offset + 8 * (offset > 0)) % 64);
    OK(ctx, sps_block_set(B.wrapped, 0, k, p->b, k, SPS_ROW_MAJOR, SPS_HOST));
    OK(ctx, sps_solver_create(op, NULL, k, &p->opt, &s));
    OK(ctx, sps_solver_linear(s, B.wrapped, X.wrapped, &r));
    ck_assert_int_eq(r.stop, SPS_STOP_CONVERGED);
    OK(ctx, sps_block_get(X.wrapped, 0, k, x, k, SPS_ROW_MAJOR, SPS_HOST));
    nothing_else_changed(ctx, &X, k, (3 * offset + 8 * (offset > 0)) % 64);
    sps_solver_destroy(&s);
    close_array(&B);
    close_array(&X);
}

static void check_width(sps_context *ctx, const char *method, int k)
{
    static double first[N * WIDEST], x[N * WIDEST];
    const size_t bytes = (size_t)(N * k) * sizeof *x;
    sps_operator *op = NULL;
    problem p;

    problem_open_grid(&p, ctx, N, k, 0.1);
    p.opt.solver = method;
    OK(ctx, sps_operator_csr(ctx, p.A, k, NULL, &op));
    for (int offset = 0; offset < 64; offset += 8) {
        solve(ctx, &p, op, k, offset, offset ? x : first);
        ck_assert_msg(!offset || !memcmp(x, first, bytes),
                      "%s, %d columns: other bits %d bytes further on", method,
                      k, offset);
    }
    sps_operator_destroy(&op);
    problem_close(&p);
}

START_TEST(bits_do_not_depend_on_where_arrays_lie)
{
    sps_context *ctx = runner_context();

    for (size_t m = 0; m < sizeof methods / sizeof *methods; m++)
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
            check_width(ctx, methods[m], widths[w]);
    sps_context_destroy(&ctx);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(bits_do_not_depend_on_where_arrays_lie),
};
RUNNER_MAIN("wrapped", tests)
