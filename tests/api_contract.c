/* SPDX-License-Identifier: BSD-3-Clause */
/* api_contract.c - every public function with every bad argument: the code,
 * a text of its own, outputs untouched, nothing leaked, and the handles as
 * good as before. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runner.h"
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

static int copy(double alpha, const double *x, int64_t ldx, double beta,
                double *y, int64_t ldy, int64_t n, int k, void *stream,
                void *data)
{
    (void)stream, (void)data;
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < k; j++) {
            double old = beta == 0 ? 0 : beta * y[i * ldy + j];

            y[i * ldy + j] = alpha * x[i * ldx + j] + old;
        }
    return 0;
}

static sps_csr *tridiagonal(int64_t nrow, int64_t ncol)
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

static int64_t live(void)
{
    sps_context_info info = {.struct_size = sizeof info};

    ck_assert_int_eq(sps_context_information(ctx, &info), SPS_OK);
    return info.live_objects;
}

#define GOOD(call) ck_assert_int_eq((call), SPS_OK)

static void setup(void)
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

/* Whatever was refused, what is there must still work and all must go. */
static void teardown(void)
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

static void make_stale(void)
{
    sps_options o = opt;

    ck_assert_int_eq(sps_options_parse(ctx, &o, STALE "=1"), SPS_EINVAL);
}

/* The call fails with code, writes a text, and makes nothing. */
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

/* Without a context there is nowhere to write a text. */
#define NOWHERE(call) ck_assert_int_eq((call), SPS_EINVAL)

/* As REFUSED; the handle that was to be made stays as it was. */
#define NOT_MADE(type, code, call)                                             \
    do {                                                                       \
        type *made = (type *)&numbers, *was = made;                            \
        REFUSED(code, call);                                                   \
        ck_assert_msg(made == was, "%s set its output", #call);                \
    } while (0)

START_TEST(context)
{
    sps_context_info info = {.struct_size = 3};

    REFUSED(SPS_EINVAL, sps_context_information(ctx, NULL));
    REFUSED(SPS_EINVAL, sps_context_information(ctx, &info));
    NOWHERE(sps_context_information(NULL, &info));
    NOWHERE(sps_context_sync(NULL));
    ck_assert_str_ne(sps_context_error(NULL), "");
    ck_assert_ptr_null(sps_context_note(NULL, 0));
}
END_TEST

START_TEST(csr_create_and_wrap)
{
    int64_t ptr[2] = {0, 1};
    int32_t col[1] = {0};
    double val[1] = {1};
    sps_csr *made = NULL;

    NOT_MADE(sps_csr, SPS_EINVAL,
             sps_csr_create(ctx, -1, 1, 1, SPS_F64, &made));
    NOT_MADE(sps_csr, SPS_EINVAL,
             sps_csr_create(ctx, 1, -1, 1, SPS_F64, &made));
    NOT_MADE(sps_csr, SPS_EINVAL,
             sps_csr_create(ctx, 1, 1, -1, SPS_F64, &made));
    NOT_MADE(sps_csr, SPS_EINVAL,
             sps_csr_create(ctx, 1, 1, 1, (sps_dtype)9, &made));
    NOT_MADE(sps_csr, SPS_EMATRIX,
             sps_csr_create(ctx, 1, (int64_t)1 << 31, 1, SPS_F64, &made));
    NOT_MADE(sps_csr, SPS_ENOMEM,
             sps_csr_create(ctx, INT64_MAX, 1, 1, SPS_F64, &made));
    NOT_MADE(sps_csr, SPS_ENOMEM,
             sps_csr_create(ctx, 1, 1, INT64_MAX, SPS_F64, &made));
    REFUSED(SPS_EINVAL, sps_csr_create(ctx, 1, 1, 1, SPS_F64, NULL));
    NOWHERE(sps_csr_create(NULL, 1, 1, 1, SPS_F64, &made));

    NOT_MADE(sps_csr, SPS_EINVAL,
             sps_csr_wrap(ctx, 1, 1, 1, NULL, col, val, SPS_F64, SPS_HOST,
                          SPS_BORROW, &made));
    NOT_MADE(sps_csr, SPS_EINVAL,
             sps_csr_wrap(ctx, 1, 1, 1, ptr, NULL, val, SPS_F64, SPS_HOST,
                          SPS_BORROW, &made));
    NOT_MADE(sps_csr, SPS_EINVAL,
             sps_csr_wrap(ctx, 1, 1, 1, ptr, col, NULL, SPS_F64, SPS_HOST,
                          SPS_BORROW, &made));
    NOT_MADE(sps_csr, SPS_EINVAL,
             sps_csr_wrap(ctx, -1, 1, 1, ptr, col, val, SPS_F64, SPS_HOST,
                          SPS_BORROW, &made));
    NOT_MADE(sps_csr, SPS_EINVAL,
             sps_csr_wrap(ctx, 1, 1, 1, ptr, col, val, (sps_dtype)7, SPS_HOST,
                          SPS_BORROW, &made));
    NOT_MADE(sps_csr, SPS_EINVAL,
             sps_csr_wrap(ctx, 1, 1, 1, ptr, col, val, SPS_F64, SPS_AUTO,
                          SPS_BORROW, &made));
    NOT_MADE(sps_csr, SPS_EINVAL,
             sps_csr_wrap(ctx, 1, 1, 1, ptr, col, val, SPS_F64, SPS_HOST,
                          (sps_own)9, &made));
    if (runner_place() == SPS_HOST)
        NOT_MADE(sps_csr, SPS_EINVAL,
                 sps_csr_wrap(ctx, 1, 1, 1, ptr, col, val, SPS_F64, SPS_CUDA,
                              SPS_BORROW, &made));
    REFUSED(SPS_EINVAL, sps_csr_wrap(ctx, 1, 1, 1, ptr, col, val, SPS_F64,
                                     SPS_HOST, SPS_BORROW, NULL));
    NOWHERE(sps_csr_wrap(NULL, 1, 1, 1, ptr, col, val, SPS_F64, SPS_HOST,
                         SPS_BORROW, &made));
    sps_csr_destroy(ctx, NULL);
    sps_csr_destroy(NULL, NULL);
}
END_TEST

/* A 2 x 2 matrix of the given arrays goes through check and operator. */
static void broken(const int64_t *ptr, const int32_t *col, const char *says)
{
    int64_t p[3];
    int32_t c[3];
    double v[3] = {1, 1, 1};
    sps_csr *bad = NULL;

    memcpy(p, ptr, sizeof p);
    memcpy(c, col, sizeof c);
    GOOD(sps_csr_wrap(ctx, 2, 2, 3, p, c, v, SPS_F64, SPS_HOST, SPS_BORROW,
                      &bad));
    REFUSED(SPS_EMATRIX, sps_csr_check(ctx, bad));
    ck_assert_msg(strstr(sps_context_error(ctx), says), "\"%s\" names no %s",
                  sps_context_error(ctx), says);
    NOT_MADE(sps_operator, SPS_EMATRIX,
             sps_operator_csr(ctx, bad, 1, NULL, &made));
    sps_csr_destroy(ctx, &bad);
}

START_TEST(csr_check_and_symmetric)
{
    bool symmetric;

    broken((int64_t[]){0, 2, 1}, (int32_t[]){0, 1, 1}, "row 1");
    broken((int64_t[]){1, 2, 3}, (int32_t[]){0, 1, 1}, "rowptr");
    broken((int64_t[]){0, 2, 9}, (int32_t[]){0, 1, 1}, "9");
    broken((int64_t[]){0, -5, 3}, (int32_t[]){0, 1, 1}, "row 0");
    broken((int64_t[]){0, 2, 3}, (int32_t[]){0, 1, 2}, "row 1");
    broken((int64_t[]){0, 2, 3}, (int32_t[]){0, -1, 1}, "row 0");
    REFUSED(SPS_EINVAL, sps_csr_check(ctx, NULL));
    REFUSED(SPS_EINVAL, sps_csr_symmetric(ctx, NULL, 0, &symmetric, NULL));
    REFUSED(SPS_EINVAL, sps_csr_symmetric(ctx, A, 0, NULL, NULL));
    NOWHERE(sps_csr_check(NULL, A));
    NOWHERE(sps_csr_symmetric(NULL, A, 0, &symmetric, NULL));
}
END_TEST

START_TEST(block_create_and_wrap)
{
    sps_block *made = NULL;

    NOT_MADE(sps_block, SPS_ESHAPE, sps_block_create(ctx, -1, 1, &made));
    NOT_MADE(sps_block, SPS_ESHAPE, sps_block_create(ctx, 1, 0, &made));
    NOT_MADE(sps_block, SPS_ESHAPE, sps_block_create(ctx, 1, -1, &made));
    NOT_MADE(sps_block, SPS_ESHAPE, sps_block_create(ctx, 1, 1025, &made));
    NOT_MADE(sps_block,
             runner_place() == SPS_HOST ? SPS_ENOMEM : SPS_EDEVMEM,
             sps_block_create(ctx, INT64_MAX / 8, 16, &made));
    REFUSED(SPS_EINVAL, sps_block_create(ctx, 1, 1, NULL));
    NOWHERE(sps_block_create(NULL, 1, 1, &made));

    NOT_MADE(sps_block, SPS_ESHAPE,
             sps_block_wrap(ctx, -1, 1, numbers, 1, &made));
    NOT_MADE(sps_block, SPS_ESHAPE,
             sps_block_wrap(ctx, 1, 0, numbers, 1, &made));
    NOT_MADE(sps_block, SPS_ESHAPE,
             sps_block_wrap(ctx, 1, 4, numbers, 3, &made));
    NOT_MADE(sps_block, SPS_EINVAL,
             sps_block_wrap(ctx, 1, 1, NULL, 1, &made));
    NOT_MADE(sps_block, SPS_EINVAL,
             sps_block_wrap(ctx, 1, 1, (double *)((char *)numbers + 1), 1,
                            &made));
    REFUSED(SPS_EINVAL, sps_block_wrap(ctx, 1, 1, numbers, 1, NULL));
    NOWHERE(sps_block_wrap(NULL, 1, 1, numbers, 1, &made));
    sps_block_destroy(NULL);
}
END_TEST

START_TEST(block_set_get_and_random)
{
    static const struct {
        sps_status code;
        int first, k;
        bool data;
        int64_t ld;
        sps_order order;
        sps_place place;
    } bad[] = {
        {SPS_ESHAPE, -1, 1, true, N, SPS_ROW_MAJOR, SPS_HOST},
        {SPS_ESHAPE, 0, 0, true, N, SPS_ROW_MAJOR, SPS_HOST},
        {SPS_ESHAPE, 0, K + 1, true, N, SPS_ROW_MAJOR, SPS_HOST},
        {SPS_ESHAPE, K, 1, true, N, SPS_ROW_MAJOR, SPS_HOST},
        {SPS_ESHAPE, 2147483647, 1, true, N, SPS_ROW_MAJOR, SPS_HOST},
        {SPS_ESHAPE, 1, 2147483647, true, N, SPS_ROW_MAJOR, SPS_HOST},
        {SPS_ESHAPE, 0, K, true, K - 1, SPS_ROW_MAJOR, SPS_HOST},
        {SPS_ESHAPE, 0, K, true, N - 1, SPS_COL_MAJOR, SPS_HOST},
        {SPS_ESHAPE, 0, K, true, -N, SPS_COL_MAJOR, SPS_HOST},
        {SPS_EINVAL, 0, K, false, N, SPS_ROW_MAJOR, SPS_HOST},
        {SPS_EINVAL, 0, K, true, N, (sps_order)2, SPS_HOST},
        {SPS_EINVAL, 0, K, true, N, SPS_ROW_MAJOR, SPS_AUTO},
        {SPS_EINVAL, 0, K, true, N, SPS_ROW_MAJOR, (sps_place)7},
        {SPS_EINVAL, 0, K, true, N, SPS_ROW_MAJOR, SPS_CUDA},
    };
    size_t count = sizeof bad / sizeof *bad;

    if (runner_place() == SPS_CUDA) count--; /* there the last one is right */
    for (size_t i = 0; i < count; i++) {
        double *data = bad[i].data ? numbers : NULL;

        REFUSED(bad[i].code,
                sps_block_set(X, bad[i].first, bad[i].k, data, bad[i].ld,
                              bad[i].order, bad[i].place));
        REFUSED(bad[i].code,
                sps_block_get(X, bad[i].first, bad[i].k, data, bad[i].ld,
                              bad[i].order, bad[i].place));
    }
    NOWHERE(sps_block_set(NULL, 0, 1, numbers, N, SPS_ROW_MAJOR, SPS_HOST));
    NOWHERE(sps_block_get(NULL, 0, 1, numbers, N, SPS_ROW_MAJOR, SPS_HOST));
    NOWHERE(sps_block_random(NULL, 1));
    sps_block_shape(NULL, NULL, NULL);
    sps_block_shape(X, NULL, NULL);
    ck_assert_ptr_null(sps_block_data(NULL, NULL));
}
END_TEST

START_TEST(options)
{
    REFUSED(SPS_EINVAL, sps_options_parse(ctx, NULL, "rtol=1"));
    REFUSED(SPS_EINVAL, sps_options_parse(ctx, &opt, NULL));
    REFUSED(SPS_EINVAL, sps_options_parse(ctx, &opt, "rtol=x"));
    NOWHERE(sps_options_parse(NULL, &opt, "rtol=1"));
    opt.struct_size = 0;
    NOT_MADE(sps_operator, SPS_EINVAL,
             sps_operator_csr(ctx, A, K, &opt, &made));
    NOT_MADE(sps_precond, SPS_EINVAL,
             sps_precond_create(op, K, &opt, &made));
    NOT_MADE(sps_solver, SPS_EINVAL,
             sps_solver_create(op, NULL, K, &opt, &made));
    sps_options_default(&opt);
}
END_TEST

START_TEST(operators)
{
    sps_operator *made = NULL;

    NOT_MADE(sps_operator, SPS_EINVAL,
             sps_operator_csr(ctx, NULL, K, NULL, &made));
    NOT_MADE(sps_operator, SPS_EINVAL,
             sps_operator_csr(ctx, A, 0, NULL, &made));
    NOT_MADE(sps_operator, SPS_EINVAL,
             sps_operator_csr(ctx, A, -3, NULL, &made));
    REFUSED(SPS_EINVAL, sps_operator_csr(ctx, A, K, NULL, NULL));
    NOWHERE(sps_operator_csr(NULL, A, K, NULL, &made));
    opt.kernel = "spmm.nonsense";
    NOT_MADE(sps_operator, SPS_EINVAL,
             sps_operator_csr(ctx, A, K, &opt, &made));
    opt.kernel = "auto";

    NOT_MADE(sps_operator, SPS_EINVAL,
             sps_operator_user(ctx, N, NULL, NULL, 0, &made));
    NOT_MADE(sps_operator, SPS_EINVAL,
             sps_operator_user(ctx, -1, copy, NULL, 0, &made));
    NOT_MADE(sps_operator, SPS_EINVAL,
             sps_operator_user(ctx, N, copy, NULL, 0x1000, &made));
    REFUSED(SPS_EINVAL, sps_operator_user(ctx, N, copy, NULL, 0, NULL));
    NOWHERE(sps_operator_user(NULL, N, copy, NULL, 0, &made));
    sps_operator_destroy(NULL);
    ck_assert_ptr_nonnull(sps_operator_kernel(NULL));
    ck_assert_uint_eq(sps_operator_describe(NULL, NULL, 0), 0);
    ck_assert_uint_gt(sps_operator_describe(op, NULL, 0), 0);
}
END_TEST

START_TEST(operator_apply_sample_and_values)
{
    double *val = NULL;
    sps_block *samples = NULL;

    REFUSED(SPS_ESHAPE, sps_operator_apply(op, 1, tall, 0, Y));
    REFUSED(SPS_ESHAPE, sps_operator_apply(op, 1, X, 0, tall));
    REFUSED(SPS_ESHAPE, sps_operator_apply(op, 1, X, 0, thin));
    REFUSED(SPS_ESHAPE, sps_operator_apply(op_wide, 1, X, 0, Y));
    REFUSED(SPS_EINVAL, sps_operator_apply(op, 1, X, 0, X));
    REFUSED(SPS_EINVAL, sps_operator_apply(op, 1, NULL, 0, Y));
    REFUSED(SPS_EINVAL, sps_operator_apply(op, 1, X, 0, NULL));
    REFUSED(SPS_EINVAL, sps_operator_apply(op, 1, foreign, 0, Y));
    NOWHERE(sps_operator_apply(NULL, 1, X, 0, Y));

    GOOD(sps_block_create(ctx, 3 * N, 1, &samples));
    val = sps_block_data(samples, NULL);
    REFUSED(SPS_ESHAPE, sps_operator_sample(op, 1, tall, Y, false, 0, val));
    REFUSED(SPS_ESHAPE, sps_operator_sample(op, 1, X, tall, false, 0, val));
    REFUSED(SPS_ESHAPE, sps_operator_sample(op, 1, X, thin, false, 0, val));
    REFUSED(SPS_EINVAL, sps_operator_sample(op, 1, NULL, Y, false, 0, val));
    REFUSED(SPS_EINVAL, sps_operator_sample(op, 1, X, NULL, false, 0, val));
    REFUSED(SPS_EINVAL, sps_operator_sample(op, 1, X, Y, false, 0, NULL));
    REFUSED(SPS_EUNFIT, sps_operator_sample(op_user, 1, X, Y, false, 0, val));
    NOWHERE(sps_operator_sample(NULL, 1, X, Y, false, 0, val));
    sps_block_destroy(&samples);

    REFUSED(SPS_EINVAL, sps_operator_set_values(op, NULL, SPS_HOST));
    REFUSED(SPS_EINVAL, sps_operator_set_values(op, A->val, SPS_AUTO));
    REFUSED(SPS_EUNFIT, sps_operator_set_values(op_user, numbers, SPS_HOST));
    NOWHERE(sps_operator_set_values(NULL, numbers, SPS_HOST));
}
END_TEST

START_TEST(preconds)
{
    sps_precond *made = NULL;

    NOT_MADE(sps_precond, SPS_EUNFIT,
             sps_precond_create(op_wide, K, NULL, &made));
    NOT_MADE(sps_precond, SPS_EINVAL, sps_precond_create(op, 0, NULL, &made));
    REFUSED(SPS_EINVAL, sps_precond_create(op, K, NULL, NULL));
    NOWHERE(sps_precond_create(NULL, K, NULL, &made));
    opt.precond = "magic";
    NOT_MADE(sps_precond, SPS_EINVAL, sps_precond_create(op, K, &opt, &made));
    opt.precond = "jacobi";
    NOT_MADE(sps_precond, SPS_EUNFIT,
             sps_precond_create(op_user, K, &opt, &made));

    NOT_MADE(sps_precond, SPS_EINVAL,
             sps_precond_user(ctx, N, NULL, NULL, &made));
    NOT_MADE(sps_precond, SPS_EINVAL,
             sps_precond_user(ctx, -1, copy, NULL, &made));
    REFUSED(SPS_EINVAL, sps_precond_user(ctx, N, copy, NULL, NULL));
    NOWHERE(sps_precond_user(NULL, N, copy, NULL, &made));

    REFUSED(SPS_EINVAL, sps_precond_apply(M, NULL, Y));
    REFUSED(SPS_EINVAL, sps_precond_apply(M, X, NULL));
    REFUSED(SPS_EINVAL, sps_precond_apply(M, X, X));
    REFUSED(SPS_ESHAPE, sps_precond_apply(M, tall, Y));
    REFUSED(SPS_ESHAPE, sps_precond_apply(M, X, tall));
    REFUSED(SPS_ESHAPE, sps_precond_apply(M, X, thin));
    NOWHERE(sps_precond_apply(NULL, X, Y));
    NOWHERE(sps_precond_update(NULL));
    ck_assert_ptr_nonnull(sps_precond_name(NULL));
    sps_precond_destroy(NULL);
}
END_TEST

START_TEST(solver_create)
{
    static const struct {
        sps_status code;
        const char *text;
    } bad[] = {
        {SPS_EINVAL, "rtol=0 atol=0"},
        {SPS_EINVAL, "norm=absolute"},
    };
    sps_solver *made = NULL;

    NOT_MADE(sps_solver, SPS_EUNFIT,
             sps_solver_create(op_wide, NULL, K, NULL, &made));
    NOT_MADE(sps_solver, SPS_EINVAL,
             sps_solver_create(op, NULL, 0, NULL, &made));
    NOT_MADE(sps_solver, SPS_EINVAL,
             sps_solver_create(op, NULL, -1, NULL, &made));
    NOT_MADE(sps_solver, SPS_EINVAL,
             sps_solver_create(op, NULL, 1025, NULL, &made));
    REFUSED(SPS_EINVAL, sps_solver_create(op, NULL, K, NULL, NULL));
    NOWHERE(sps_solver_create(NULL, NULL, K, NULL, &made));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sps_options_default(&opt);
        GOOD(sps_options_parse(ctx, &opt, bad[i].text));
        NOT_MADE(sps_solver, bad[i].code,
                 sps_solver_create(op, NULL, K, &opt, &made));
    }
    for (int i = 0; i < 6; i++) {
        sps_options_default(&opt);
        switch (i) {
        case 0: opt.solver = "magic"; break;
        case 1: opt.precond = "magic"; break;
        case 2: opt.nullspace = "magic"; break;
        case 3: opt.rtol = -1; break;
        case 4: opt.rtol = NAN; break;
        case 5: opt.max_iterations = -1; break;
        }
        NOT_MADE(sps_solver, SPS_EINVAL,
                 sps_solver_create(op, NULL, K, &opt, &made));
    }
    sps_options_default(&opt);
    sps_solver_destroy(NULL);
}
END_TEST

START_TEST(solver_linear)
{
    sps_result result = {.struct_size = 1};

    REFUSED(SPS_EINVAL, sps_solver_linear(s, NULL, X, NULL));
    REFUSED(SPS_EINVAL, sps_solver_linear(s, B, NULL, NULL));
    REFUSED(SPS_EINVAL, sps_solver_linear(s, B, B, NULL));
    REFUSED(SPS_EINVAL, sps_solver_linear(s, B, X, &result));
    REFUSED(SPS_ESHAPE, sps_solver_linear(s, tall, X, NULL));
    REFUSED(SPS_ESHAPE, sps_solver_linear(s, B, tall, NULL));
    REFUSED(SPS_ESHAPE, sps_solver_linear(s, thin, X, NULL));
    REFUSED(SPS_ESHAPE, sps_solver_linear(s, B, thin, NULL));
    REFUSED(SPS_EINVAL, sps_solver_linear(s, foreign, X, NULL));
    NOWHERE(sps_solver_linear(NULL, B, X, NULL));
}
END_TEST

static int fail_with_42(double alpha, const double *x, int64_t ldx,
                        double beta, double *y, int64_t ldy, int64_t n, int k,
                        void *stream, void *data)
{
    (void)alpha, (void)x, (void)ldx, (void)beta, (void)y, (void)ldy;
    (void)n, (void)k, (void)stream, (void)data;
    return 42;
}

START_TEST(failures_of_callbacks_are_euser_and_name_the_number)
{
    sps_operator *bad = NULL;
    sps_precond *worse = NULL;

    GOOD(sps_operator_user(ctx, N, fail_with_42, NULL, SPS_SPD, &bad));
    GOOD(sps_precond_user(ctx, N, fail_with_42, NULL, &worse));
    REFUSED(SPS_EUSER, sps_operator_apply(bad, 1, X, 0, Y));
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "42"));
    REFUSED(SPS_EUSER, sps_precond_apply(worse, X, Y));
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "42"));
    sps_precond_destroy(&worse);
    sps_operator_destroy(&bad);
}
END_TEST

START_TEST(destroying_twice_is_harmless)
{
    sps_block *block = NULL;
    sps_csr *csr = NULL;

    GOOD(sps_block_create(ctx, 1, 1, &block));
    sps_block_destroy(&block);
    ck_assert_ptr_null(block);
    sps_block_destroy(&block);
    GOOD(sps_csr_create(ctx, 1, 1, 1, SPS_F64, &csr));
    sps_csr_destroy(ctx, &csr);
    ck_assert_ptr_null(csr);
    sps_csr_destroy(ctx, &csr);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("api_contract");
    TCase *tc = tcase_create("all");

    tcase_set_timeout(tc, 120);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, context);
    tcase_add_test(tc, csr_create_and_wrap);
    tcase_add_test(tc, csr_check_and_symmetric);
    tcase_add_test(tc, block_create_and_wrap);
    tcase_add_test(tc, block_set_get_and_random);
    tcase_add_test(tc, options);
    tcase_add_test(tc, operators);
    tcase_add_test(tc, operator_apply_sample_and_values);
    tcase_add_test(tc, preconds);
    tcase_add_test(tc, solver_create);
    tcase_add_test(tc, solver_linear);
    tcase_add_test(tc, failures_of_callbacks_are_euser_and_name_the_number);
    tcase_add_test(tc, destroying_twice_is_harmless);
    suite_add_tcase(suite, tc);
    return runner_run(suite);
}
