/* SPDX-License-Identifier: BSD-3-Clause */
/* check_factor_process.c - preconditioner factor and the process: threads, also
 * those of BLAS, output, random numbers, and no module. */
#include <check.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/context.h"
#include "core/module.h"
#include "tests/check/precond/factor_fixture.h"
#include "tests/support/absent.h"
#include "tests/support/fixture.h"
#include "tests/support/runner.h"

/* Factors and solves, and returns what came out. */
static double *once(kind what, int k)
{
    sps_context *ctx = fixture_open();
    sps_csr *A = grid(ctx, what, 40);
    sps_operator *op = NULL;
    sps_precond *M = NULL;
    double *b = calloc((size_t)(A->nrow * k), sizeof *b), *z;

    multiply(A, k, b);
    OK(ctx, sps_operator_csr(ctx, A, k, NULL, &op));
    OK(ctx, make(op, k, 0, &M));
    z = applied(ctx, M, b, A->nrow, k);
    free(b);
    sps_precond_destroy(&M);
    sps_operator_destroy(&op);
    sps_csr_destroy(ctx, &A);
    fixture_close(&ctx);
    return z;
}

static void *in_thread(void *what)
{
    return once(*(kind *)what, 8);
}

START_TEST(bits_repeat_beside_other_threads_and_whatever_blas_has)
{
    static kind kinds[] = { DEFINITE, INDEFINITE, GENERAL, SADDLE };
    void (*set)(int) = NULL;
    pthread_t thread[4];

    if (absent("factor")) runner_skip("no factor module");
    *(void **)&set = dlsym(RTLD_DEFAULT, "openblas_set_num_threads");
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, in_thread,
                                        &kinds[i]), 0);
    for (int i = 0; i < 4; i++) {
        double *alone;
        void *beside;

        if (set) set(1 + i % 2);
        alone = once(kinds[i], 8);
        ck_assert_int_eq(pthread_join(thread[i], &beside), 0);
        ck_assert_msg(!memcmp(alone, beside, 1600 * 8 * sizeof *alone),
                      "kind %d", kinds[i]);
        free(alone);
        free(beside);
    }
}
END_TEST

/* Neither output nor the process's random numbers are touched. */
START_TEST(nothing_is_printed_and_no_number_drawn)
{
    char path[] = "/tmp/spsolve-output-XXXXXX";
    const int file = mkstemp(path), out = dup(1), err = dup(2);
    int drawn[2];
    double residual;
    off_t length;

    if (absent("factor")) runner_skip("no factor module");
    fflush(NULL);
    dup2(file, 1);
    dup2(file, 2);
    for (int with = 0; with < 2; with++) {
        srand(7);
        (void)rand();
        if (with) {
            sps_context *ctx = fixture_open();
            sps_csr *A = singular(ctx, 0);

            for (int what = DEFINITE; what <= SADDLE; what++)
                free(once((kind)what, 2));
            (void)solved(ctx, A, 1, "gmres", &residual);
            sps_csr_destroy(ctx, &A);
            fixture_close(&ctx);
        }
        drawn[with] = rand();
    }
    fflush(NULL);
    dup2(out, 1);
    dup2(err, 2);
    length = lseek(file, 0, SEEK_END);
    close(file);
    unlink(path);
    ck_assert_int_eq((int)length, 0);
    ck_assert_int_eq(drawn[0], drawn[1]);
}
END_TEST

/* A path that does not exist means a folder, unless it ends in ".so". */
START_TEST(a_path_that_does_not_exist_is_told_in_full)
{
    sps_context *ctx = fixture_open();
    sps_csr *A = grid(ctx, DEFINITE, 3);
    sps_operator *op = NULL;
    sps_precond *M = NULL;

    ck_assert_int_eq(setenv("SPSOLVE_MODULE_PATH", "/nonexistent", 1), 0);
    OK(ctx, sps_operator_csr(ctx, A, 1, NULL, &op));
    ck_assert_int_eq(make(op, 1, 0, &M), SPS_EABSENT);
    ck_assert_msg(strstr(sps_context_error(ctx), " /nonexistent/"
                         "spsolve_factor.so (absent)"), "%s",
                  sps_context_error(ctx));
    sps_operator_destroy(&op);
    sps_csr_destroy(ctx, &A);
    fixture_close(&ctx);
}
END_TEST

START_TEST(without_a_module_the_text_says_what_to_install)
{
    sps_context *ctx = fixture_open();
    sps_csr *A = grid(ctx, DEFINITE, 3);
    sps_operator *op = NULL;
    sps_precond *M = NULL;
    sps_solver *s = NULL;
    sps_options opt;

    sps_options_default(&opt);
    opt.precond = "factor";
    ck_assert_int_eq(setenv("SPSOLVE_MODULE_PATH", "/nonexistent/m.so", 1), 0);
    OK(ctx, sps_operator_csr(ctx, A, 1, NULL, &op));
    ck_assert_int_eq(make(op, 1, 0, &M), SPS_EABSENT);
    ck_assert_msg(strstr(sps_context_error(ctx), "/nonexistent/"
                         "spsolve_factor.so (absent)"), "%s",
                  sps_context_error(ctx));
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "libmumps-seq-dev"));
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "PATH names its"));
    /* auto does not put another one in its place. */
    ck_assert_int_eq(sps_solver_create(op, NULL, 1, &opt, &s), SPS_EABSENT);
    sps_operator_destroy(&op);
    sps_csr_destroy(ctx, &A);
    fixture_close(&ctx);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(bits_repeat_beside_other_threads_and_whatever_blas_has),
    RUNNER_TEST(nothing_is_printed_and_no_number_drawn),
    RUNNER_TEST(a_path_that_does_not_exist_is_told_in_full),
    RUNNER_TEST(without_a_module_the_text_says_what_to_install),
};

RUNNER_MAIN("check_factor_process", tests)
