/* SPDX-License-Identifier: BSD-3-Clause */
/* check_isa.c - SPSOLVE_ISA limits the instructions of the host's loops.
 *
 *     -1 + 0 0 + (1 + e)(1 - e),  e = 2^-30,
 *
 * summed in one register is 0 where products are rounded, -e^2 where they are
 * fused.  The choice is made once in a process, so each is a child. */
#include <math.h>

#include "cpu/isa.h"
#include "tests/support/rig.h"
#include "tests/support/runner.h"

enum { ROUNDED, FUSED, OTHER };

/* The sum of row 0 by kernel spmm.omp at width k; the child that asks ends, and
 * nothing is freed. */
static double sum_of_row(sps_context *ctx, int k)
{
    static const double a[] = { -1, 0, 1 + 0x1p-30 };
    const double x[] = { 1, 0, 1, 0, 1 - 0x1p-30 };
    int64_t rowptr[] = { 0, 3 };
    int32_t col[] = { 0, 1, 4 };
    double y[16], X[5 * 16];
    const sps_kernel *kernel;
    sps_csr *A;
    sps_block *B, *Y;
    rig r;

    for (int i = 0; i < 5 * k; i++) X[i] = x[i / k];
    OK(ctx, sps_csr_wrap(ctx, 1, 5, 3, rowptr, col, (double *)a, SPS_F64,
                         SPS_HOST, SPS_BORROW, &A));
    rig_take(&r, ctx, "one row", A);
    for (int i = 0; (kernel = rig_kernel(ctx, SPS_OP_SPMM, i)); i++)
        if (!strcmp(kernel->name, "spmm.omp")) break;
    ck_assert(kernel && rig_plan(&r, kernel, k));
    OK(ctx, sps_block_create(ctx, 5, k, &B));
    OK(ctx, sps_block_create(ctx, 1, k, &Y));
    OK(ctx, sps_block_set(B, 0, k, X, k, SPS_ROW_MAJOR, SPS_HOST));
    OK(ctx, kernel->spmm(r.plan, &(sps_spmm_args){ .alpha = 1, .X = B,
                                                   .Y = Y }));
    OK(ctx, sps_block_get(Y, 0, k, y, k, SPS_ROW_MAJOR, SPS_HOST));
    for (int j = 1; j < k; j++) ck_assert(y[j] == y[0]);
    return y[0];
}

/* How a process with this SPSOLVE_ISA sums. */
static int in_child(const char *isa, int k)
{
    const pid_t child = fork();
    int status;

    if (child == 0) {
        sps_context *ctx;
        double y;

        setenv("SPSOLVE_ISA", isa, 1);
        ctx = fixture_open_with(SPS_HOST, 1, true);
        y = sum_of_row(ctx, k);
        _exit(y == 0 ? ROUNDED : y == -0x1p-60 ? FUSED : OTHER);
    }
    ck_assert(child > 0 && waitpid(child, &status, 0) == child);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Compilers fuse where they optimise, and less so beside sanitizers. */
#if SPS_X86_CLONES && defined __OPTIMIZE__ && !defined __SANITIZE_ADDRESS__ && \
    !defined __SANITIZE_THREAD__
#define FUSES 1
#else
#define FUSES 0
#endif

START_TEST(plain_loops_fuse_nothing_and_later_ones_do)
{
    for (int k = 1; k <= 16; k *= 2) {
#if SPS_X86_CLONES
        ck_assert_int_eq(in_child("plain", k), ROUNDED);
        if (FUSES && __builtin_cpu_supports("x86-64-v3"))
            ck_assert_int_eq(in_child("avx2", k), FUSED);
        if (FUSES && __builtin_cpu_supports("x86-64-v4"))
            ck_assert_int_eq(in_child("avx512", k), FUSED);
#else
        ck_assert_int_eq(in_child("plain", k), in_child("", k));
#endif
    }
}
END_TEST

START_TEST(another_word_is_refused_by_name)
{
    sps_context *ctx = NULL;
    sps_context_options o;
    const char *why = NULL;

    sps_context_options_default(&o);
    o.place = SPS_HOST;
    setenv("SPSOLVE_ISA", "sse9", 1);
    ck_assert_int_eq(sps_context_create(&o, &ctx, &why), SPS_EINVAL);
    ck_assert(why && strstr(why, "SPSOLVE_ISA") && strstr(why, "sse9") &&
              strstr(why, "avx512"));
    unsetenv("SPSOLVE_ISA");
    ck_assert_int_eq(sps_context_create(&o, &ctx, &why), SPS_OK);
    sps_context_destroy(&ctx);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(plain_loops_fuse_nothing_and_later_ones_do),
    RUNNER_TEST(another_word_is_refused_by_name),
};
RUNNER_MAIN("isa", tests)
