/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_preconds.c - every listed preconditioner is a linear map of blocks,
 * the same for one column as for many, symmetric positive definite where it
 * declares so, and can be updated with new values of the matrix. */
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/absent.h"
#include "tests/support/callback.h"
#include "tests/support/fixture.h"
#include "driver/precond.h"
#include "tests/support/runner.h"
#include "tests/problems/zoo.h"

#define N 400
#define K 6

static sps_context *ctx;
static sps_csr *A;
static sps_operator *op;
static sps_block *R, *Z;
static sps_options opt;
static double r[N * K], z[N * K], y[N * K];

static void set_up(void)
{
    ctx = runner_context();
    sps_options_default(&opt);
    A = zoo_matrix(zoo_find("grid5"), N, 3, ZOO_SPD, SPS_F64);
    ck_assert_int_eq(A->nrow, N);
    ck_assert_int_eq(sps_operator_csr(ctx, A, K, NULL, &op), SPS_OK);
    ck_assert_int_eq(sps_block_create(ctx, N, K, &R), SPS_OK);
    ck_assert_int_eq(sps_block_create(ctx, N, K, &Z), SPS_OK);
}

static void tear_down(void)
{
    sps_context_info info = { .struct_size = sizeof info };

    sps_block_destroy(&R);
    sps_block_destroy(&Z);
    sps_operator_destroy(&op);
    ck_assert_int_eq(sps_context_information(ctx, &info), SPS_OK);
    ck_assert_int_eq(info.live_objects, 0);
    sps_context_destroy(&ctx);
    zoo_free(&A);
}

static sps_precond *make(const char *name)
{
    sps_precond *M = NULL;
    sps_status st;

    opt.precond = name;
    st = sps_precond_create(op, K, &opt, &M);
    ck_assert_msg(st == SPS_OK, "%s: %s", name, sps_context_error(ctx));
    ck_assert_str_eq(sps_precond_name(M), name);
    return M;
}

/* out = M in, for k columns of host arrays with ld k. */
static void apply(sps_precond *M, int k, const double *in, double *out)
{
    spsi_block_narrow(R, k);
    spsi_block_narrow(Z, k);
    ck_assert_int_eq(sps_block_set(R, 0, k, in, k, SPS_ROW_MAJOR, SPS_HOST),
                     SPS_OK);
    ck_assert_int_eq(sps_precond_apply(M, R, Z), SPS_OK);
    ck_assert_int_eq(sps_block_get(Z, 0, k, out, k, SPS_ROW_MAJOR, SPS_HOST),
                     SPS_OK);
}

static void randomise(double *v, uint64_t seed)
{
    double *b = zoo_block(N, K, K, seed, ZOO_RANDOM);

    memcpy(v, b, sizeof r);
    free(b);
}

static double dot(const double *a, int i, const double *b, int j)
{
    double sum = 0;

    for (int q = 0; q < N; q++) sum += a[q * K + i] * b[q * K + j];
    return sum;
}

/* The error of one application, in units of its result, at most. */
static double error_of(const sps_precond *M)
{
    return 1e-13 + 200 * M->roundoff;
}

/* Stored in double precision and, where supported, in single precision. */
static const char *const precision[] = { "double", "single_precond",
                                         "double" };

#define FOR_PRECONDS(name)                                                     \
    for (int p_ = 0; opt.precision = precision[p_], p_ < 2; p_++)      \
    for (int i_ = 0; (name = sps_list(ctx, "precond", i_)); i_++)      \
    if (!absent(name))

START_TEST(is_linear)
{
    const char *name;

    FOR_PRECONDS(name) {
        sps_precond *M = make(name);
        double c[N * K];
        randomise(r, 1);
        apply(M, K, r, z);
        for (int i = 0; i < N * K; i++) c[i] = -3 * r[i];
        apply(M, K, c, y);
        for (int i = 0; i < N * K; i++)
            ck_assert_msg(fabs(y[i] + 3 * z[i]) <=
                              error_of(M) * (1 + fabs(y[i])),
                          "%s: entry %d", name, i);
        sps_precond_destroy(&M);
    }
}
END_TEST

START_TEST(treats_columns_apart)
{
    const char *name;

    FOR_PRECONDS(name) {
        sps_precond *M = make(name);
        double one[N], out[N];
        randomise(r, 2);
        apply(M, K, r, z);
        for (int j = 0; j < K; j++) {
            for (int i = 0; i < N; i++) one[i] = r[i * K + j];
            apply(M, 1, one, out);
            for (int i = 0; i < N; i++)
                ck_assert_msg(fabs(out[i] - z[i * K + j]) <=
                                  error_of(M) * (1 + fabs(out[i])),
                              "%s: column %d, row %d", name, j, i);
        }
        sps_precond_destroy(&M);
    }
}
END_TEST

START_TEST(is_symmetric_and_positive_definite)
{
    const char *name;

    FOR_PRECONDS(name) {
        sps_precond *M = make(name);
        if (!M->type->symmetric) {
            sps_precond_destroy(&M);
            continue;
        }
        randomise(r, 3);
        apply(M, K, r, z);
        for (int i = 0; i < K; i++) {
            ck_assert_msg(dot(r, i, z, i) > 0, "%s is not positive", name);
            for (int j = 0; j < i; j++)
                ck_assert_msg(fabs(dot(r, i, z, j) - dot(r, j, z, i)) <=
                                  10 * error_of(M) *
                                      sqrt(dot(r, i, z, i) *
                                           dot(r, j, z, j)),
                              "%s is not symmetric", name);
        }
        sps_precond_destroy(&M);
    }
}
END_TEST

START_TEST(follows_new_values)
{
    const char *name;

    FOR_PRECONDS(name) {
        sps_precond *M = make(name), *fresh;
        double *val = malloc((size_t)A->nnz * sizeof *val), c[N * K];
        const double *old = A->val;
        randomise(r, 4);
        apply(M, K, r, c);
        for (int64_t q = 0; q < A->nnz; q++) val[q] = 4 * old[q];
        ck_assert_int_eq(sps_operator_set_values(op, val, SPS_HOST), SPS_OK);
        ck_assert_int_eq(sps_precond_update(M), SPS_OK);
        fresh = make(name);
        apply(M, K, r, z);
        apply(fresh, K, r, y);
        ck_assert_msg(!memcmp(z, y, sizeof z), "%s: update differs", name);
        if (strcmp(name, "none"))
            for (int i = 0; i < N * K; i++)
                ck_assert_msg(fabs(4 * z[i] - c[i]) <=
                                  10 * error_of(M) * (1 + fabs(c[i])),
                              "%s kept the old values", name);
        for (int64_t q = 0; q < A->nnz; q++) val[q] /= 4;
        ck_assert_int_eq(sps_operator_set_values(op, val, SPS_HOST), SPS_OK);
        sps_precond_destroy(&M);
        sps_precond_destroy(&fresh);
        free(val);
    }
}
END_TEST

START_TEST(block_jacobi_inverts_a_block_diagonal_matrix)
{
    static const int size[] = { 1, 2, 3, 5, 8, 16, 64 };

    for (size_t t = 0; t < sizeof size / sizeof *size; t++) {
        int b = size[t];
        int64_t n = 130, nnz = 0;
        sps_csr *D = NULL;
        sps_operator *dop = NULL;
        sps_precond *M = NULL;
        sps_block *X = NULL, *Y = NULL;
        double *val, *got = malloc(130 * sizeof *got);
        for (int64_t i = 0; i < n; i++)
            nnz += i / b * b + b <= n ? b : n - i / b * b;
        ck_assert_int_eq(sps_csr_create(ctx, n, n, nnz, SPS_F64, &D), SPS_OK);
        val = D->val;
        nnz = 0;
        for (int64_t i = 0; i < n; i++) {
            D->rowptr[i] = nnz;
            for (int64_t j = i / b * b; j < n && j < i / b * b + b; j++) {
                D->col[nnz] = (int32_t)j;
                val[nnz++] = i == j ? b + 1.0 : 1.0 / (1 + (i + j) % 5);
            }
        }
        D->rowptr[n] = nnz;
        ck_assert_int_eq(sps_operator_csr(ctx, D, 2, NULL, &dop), SPS_OK);
        opt.precond = "block_jacobi";
        opt.block_size = b;
        ck_assert_int_eq(sps_precond_create(dop, 2, &opt, &M), SPS_OK);
        ck_assert_int_eq(sps_block_create(ctx, n, 1, &X), SPS_OK);
        ck_assert_int_eq(sps_block_create(ctx, n, 1, &Y), SPS_OK);
        ck_assert_int_eq(sps_block_random(X, 9), SPS_OK);
        ck_assert_int_eq(sps_precond_apply(M, X, Y), SPS_OK);
        ck_assert_int_eq(sps_operator_apply(dop, -1.0, Y, 1.0, X), SPS_OK);
        ck_assert_int_eq(sps_block_get(X, 0, 1, got, 1, SPS_ROW_MAJOR,
                                       SPS_HOST), SPS_OK);
        for (int64_t i = 0; i < n; i++)
            ck_assert_msg(fabs(got[i]) <= 1e-13, "b = %d, row %d: %g", b,
                          (int)i, got[i]);
        sps_block_destroy(&X);
        sps_block_destroy(&Y);
        sps_precond_destroy(&M);
        sps_operator_destroy(&dop);
        sps_csr_destroy(ctx, &D);
        free(got);
    }
}
END_TEST

/* Blocks of three rows; every `hole`-th lacks two entries (0: none does). */
static sps_csr *three_by_three(int64_t blocks, int64_t hole)
{
    sps_csr *D = NULL;
    int64_t q = 0;

    ck_assert_int_eq(sps_csr_create(ctx, 3 * blocks, 3 * blocks, 9 * blocks,
                                    SPS_F64, &D), SPS_OK);
    for (int64_t i = 0; i < 3 * blocks; i++) {
        for (int64_t j = i / 3 * 3; j < i / 3 * 3 + 3; j++) {
            if (hole && i / 3 % hole == 0 && i % 3 + j % 3 == 2 && i != j)
                continue;
            D->col[q] = (int32_t)j;
            ((double *)D->val)[q++] = i == j ? 4 : 1;
        }
        D->rowptr[i + 1] = q;
    }
    D->nnz = q;
    return D;
}

/* 95 of 100 blocks are full: 855 of 890 entries. */
START_TEST(auto_says_of_blocks_what_there_is)
{
    static const int64_t hole[] = { 0, 20 };
    static const char *const words[] = {
        "auto: block_jacobi, since 100 % of the entries lie in full 3 x 3",
        "auto: jacobi, since only 96.1 % of the entries lie in full 3 x 3",
    };

    for (int t = 0; t < 2; t++) {
        sps_csr *D = three_by_three(100, hole[t]);
        sps_operator *dop = NULL;
        sps_precond *M = NULL;

        opt.precond = "auto";
        ck_assert_int_eq(sps_operator_csr(ctx, D, 2, NULL, &dop), SPS_OK);
        ck_assert_int_eq(sps_precond_create(dop, 2, &opt, &M), SPS_OK);
        ck_assert_msg(fixture_noted(ctx, words[t]), "%s", words[t]);
        ck_assert(!fixture_noted(ctx, "no blocks"));
        sps_precond_destroy(&M);
        sps_operator_destroy(&dop);
        sps_csr_destroy(ctx, &D);
    }
}
END_TEST

START_TEST(chebyshev_bounds_enclose_the_spectrum)
{
    static const int degree[] = { 0, 1, 2, 5, 12 };

    /* M A must be positive definite in the A inner product: x'A M A x > 0 for
     * random, smooth and oscillating x. */
    for (int t = 0; t < 5; t++) {
        sps_precond *M;
        sps_block *X = NULL, *Y = NULL;
        opt.degree = degree[t];
        M = make("chebyshev");
        ck_assert_int_eq(sps_block_create(ctx, N, K, &X), SPS_OK);
        ck_assert_int_eq(sps_block_create(ctx, N, K, &Y), SPS_OK);
        randomise(r, 5);
        for (int i = 0; i < N; i++) {
            r[i * K] = 1;
            r[i * K + 1] = (i + i / 20) % 2 ? 1 : -1;
        }
        ck_assert_int_eq(sps_block_set(X, 0, K, r, K, SPS_ROW_MAJOR, SPS_HOST),
                         SPS_OK);
        ck_assert_int_eq(sps_operator_apply(op, 1.0, X, 0.0, Y), SPS_OK);
        ck_assert_int_eq(sps_block_get(Y, 0, K, y, K, SPS_ROW_MAJOR, SPS_HOST),
                         SPS_OK);
        apply(M, K, y, z);
        for (int j = 0; j < K; j++)
            ck_assert_msg(dot(y, j, z, j) > 0, "degree %d, column %d",
                          degree[t], j);
        sps_block_destroy(&X);
        sps_block_destroy(&Y);
        sps_precond_destroy(&M);
    }
}
END_TEST

/* diag of n / 2 blocks [1 -1; -1 1]. */
static sps_csr *pairs(int64_t n)
{
    sps_csr *L = NULL;
    double *val;

    ck_assert_int_eq(sps_csr_create(ctx, n, n, 2 * n, SPS_F64, &L), SPS_OK);
    val = L->val;
    for (int64_t i = 0; i < n; i++) {
        L->rowptr[i + 1] = 2 * (i + 1);
        for (int64_t q = 0; q < 2; q++) {
            L->col[2 * i + q] = (int32_t)(i / 2 * 2 + q);
            val[2 * i + q] = i % 2 == q ? 1 : -1;
        }
    }
    return L;
}

/* D^-1 L has only the eigenvalues 0 and 2: the second direction of CG is a
 * null vector, and the estimate from the first step is half of the largest
 * eigenvalue.  A polynomial of even degree is negative beyond its upper
 * bound. */
START_TEST(chebyshev_bounds_enclose_the_spectrum_of_a_singular_matrix)
{
    opt.precond = "chebyshev";
    opt.degree = 4;
    for (int64_t n = 2; n <= 200; n += 2) {
        sps_csr *L = pairs(n);
        sps_operator *lop = NULL;
        sps_precond *M = NULL;
        sps_block *X = NULL, *Y = NULL;
        double v[200], w[200], sum = 0;

        ck_assert_int_eq(sps_operator_csr(ctx, L, 1, NULL, &lop), SPS_OK);
        ck_assert_int_eq(sps_precond_create(lop, 1, &opt, &M), SPS_OK);
        ck_assert_int_eq(sps_block_create(ctx, n, 1, &X), SPS_OK);
        ck_assert_int_eq(sps_block_create(ctx, n, 1, &Y), SPS_OK);
        ck_assert_int_eq(sps_block_random(Y, 5), SPS_OK);
        ck_assert_int_eq(sps_operator_apply(lop, 1.0, Y, 0.0, X), SPS_OK);
        ck_assert_int_eq(sps_precond_apply(M, X, Y), SPS_OK);
        ck_assert_int_eq(sps_block_get(X, 0, 1, v, 1, SPS_ROW_MAJOR, SPS_HOST),
                         SPS_OK);
        ck_assert_int_eq(sps_block_get(Y, 0, 1, w, 1, SPS_ROW_MAJOR, SPS_HOST),
                         SPS_OK);
        for (int64_t i = 0; i < n; i++) sum += v[i] * w[i];
        ck_assert_msg(sum > 0, "n = %d: %g", (int)n, sum);
        sps_block_destroy(&X);
        sps_block_destroy(&Y);
        sps_precond_destroy(&M);
        sps_operator_destroy(&lop);
        sps_csr_destroy(ctx, &L);
    }
}
END_TEST

static int call_count;

static int times_two(double alpha, const double *X, int64_t ldx, double beta,
                     double *Y, int64_t ldy, int64_t n, int k, void *stream,
                     void *data)
{
    (void)stream;
    call_count++;
    if (data) return 42;
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < k; j++)
            Y[i * ldy + j] = 2 * alpha * X[i * ldx + j] +
                             (beta != 0 ? beta * Y[i * ldy + j] : 0);
    return 0;
}

START_TEST(a_callback_serves_and_its_failure_is_told)
{
    sps_precond *M = NULL, *bad = NULL;
    callback good = { ctx, times_two, NULL }, fails = { ctx, times_two, ctx };

    ck_assert_int_eq(sps_precond_user(ctx, N, callback_anywhere, &good, &M),
                     SPS_OK);
    randomise(r, 6);
    apply(M, K, r, z);
    for (int i = 0; i < N * K; i++) ck_assert(z[i] == 2 * r[i]);
    ck_assert_int_eq(sps_precond_user(ctx, N, callback_anywhere, &fails, &bad),
                     SPS_OK);
    ck_assert_int_eq(sps_precond_apply(bad, R, Z), SPS_EUSER);
    ck_assert(strstr(sps_context_error(ctx), "42"));
    ck_assert_int_eq(call_count, 2);
    sps_precond_destroy(&M);
    sps_precond_destroy(&bad);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(is_linear),
    RUNNER_TEST(treats_columns_apart),
    RUNNER_TEST(is_symmetric_and_positive_definite),
    RUNNER_TEST(follows_new_values),
    RUNNER_TEST(block_jacobi_inverts_a_block_diagonal_matrix),
    RUNNER_TEST(auto_says_of_blocks_what_there_is),
    RUNNER_TEST(chebyshev_bounds_enclose_the_spectrum),
    RUNNER_TEST(chebyshev_bounds_enclose_the_spectrum_of_a_singular_matrix),
    RUNNER_TEST(a_callback_serves_and_its_failure_is_told),
};

RUNNER_MAIN_WITHIN("conform_preconds", tests, set_up, tear_down)
