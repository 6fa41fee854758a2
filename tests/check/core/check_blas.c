/* SPDX-License-Identifier: BSD-3-Clause */
/* check_blas.c - the BLAS below LAPACKE: its number of threads does not change
 * a bit of X and is restored; if it cannot allocate memory the call fails with
 * an error text instead of waiting forever. */
#include <check.h>
#include <stdio.h>
#include <sys/resource.h>

#include "core/blas.h"
#include "tests/support/fixture.h"
#include "tests/problems/problem.h"
#include "tests/support/runner.h"

void openblas_set_num_threads(int threads) __attribute__((weak));
int openblas_get_num_threads(void) __attribute__((weak));

/* A macro, since runner_skip ends the function that contains it. */
#define NEED_OPENBLAS()                                                        \
    do {                                                                       \
        if (!openblas_set_num_threads)                                         \
            runner_skip("the BLAS is not OpenBLAS");                           \
    } while (0)

/* An address space limit below what a sanitizer reserves would end the test
 * itself. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define NEED_LIMITS()                                                          \
    runner_skip("sanitizers need the address space themselves")
#else
#define NEED_LIMITS() NEED_OPENBLAS()
#endif

/* X of a solve while the program has set this number of OpenBLAS threads. */
static double *solve(const char *method, int k, int threads)
{
    sps_context *ctx = fixture_open_with(SPS_HOST, 2, true);
    problem p;
    double *x;
    size_t bytes;

    openblas_set_num_threads(threads);
    problem_open_grid(&p, ctx, 400, k, 0.1);
    p.opt.solver = method;
    OK(ctx, problem_solve(&p));
    ck_assert_int_eq(openblas_get_num_threads(), threads);
    bytes = (size_t)(p.A->nrow * k) * sizeof *x;
    x = malloc(bytes);
    memcpy(x, p.x, bytes);
    problem_close(&p);
    fixture_close(&ctx);
    return x;
}

START_TEST(threads_of_the_blas_change_no_bit)
{
    static const char *const methods[] = { "block_cg", "block_gmres",
                                           "block_gcrodr", "idr" };
    static const int widths[] = { 5, 16, 40, 128 };

    NEED_OPENBLAS();
    for (size_t m = 0; m < sizeof methods / sizeof *methods; m++)
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
            const int k = widths[w];
            double *one = solve(methods[m], k, 1);

            for (int threads = 2; threads <= 8; threads *= 4) {
                double *x = solve(methods[m], k, threads);

                ck_assert_msg(!memcmp(one, x, 400 * (size_t)k * sizeof *x),
                              "%s, %d columns: other bits with %d threads",
                              methods[m], k, threads);
                free(x);
            }
            free(one);
        }
}
END_TEST

START_TEST(no_room_for_the_blas_is_an_error)
{
    const struct rlimit tight = { 64 << 20, 64 << 20 };
    sps_context *ctx;
    sps_status st;

    NEED_LIMITS();
    ctx = fixture_open_with(SPS_HOST, 2, true);
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &tight), 0);
    st = spsi_blas_begin(ctx, 1 << 10);
    ck_assert_int_eq(st, SPS_ENOMEM);
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "OpenBLAS"));
}
END_TEST

START_TEST(a_solve_without_that_room_ends)
{
    sps_context *ctx;
    struct rlimit tight;
    long pages = 0;
    FILE *f;
    problem p;

    NEED_LIMITS();
    ctx = fixture_open_with(SPS_HOST, 1, true);
    f = fopen("/proc/self/statm", "r");
    ck_assert(f && fscanf(f, "%ld", &pages) == 1);
    fclose(f);
    problem_open_grid(&p, ctx, 400, 40, 0.1);
    p.opt.solver = "block_cg";
    tight.rlim_cur = (rlim_t)pages * 4096 + (64 << 20);
    tight.rlim_max = tight.rlim_cur;
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &tight), 0);
    ck_assert_int_eq(problem_solve(&p), SPS_ENOMEM);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(threads_of_the_blas_change_no_bit),
    RUNNER_TEST(no_room_for_the_blas_is_an_error),
    RUNNER_TEST(a_solve_without_that_room_ends),
};

RUNNER_MAIN("blas", tests)
