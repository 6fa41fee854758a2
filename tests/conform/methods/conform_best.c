/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_best.c - a solve that ends early returns the best iterate it has
 * computed, within 5 %: for each method, on systems whose residual norms rise
 * and fall, with iteration limits 1, 2, 3, ..., each right-hand side by
 * itself. */
#include "tests/support/best_systems.h"

/* Rounding errors that GMRES does not estimate: from a preconditioner as
 * ill-conditioned as A, which auto chooses, and from the coefficients of a
 * block (doc/numerics.md). */
static bool not_foreseen(const char *name)
{
    return !strcmp(name, "auto") || !strcmp(name, "block_gmres") ||
           !strcmp(name, "block_gcrodr");
}

static void try_all_limits(const test_system *s)
{
    const int apart = runner_quick() ? 11 : 3;
    const char *name;

    FOR_FITTING(s, name) {
        problem p;
        record r;
        bool over = false;

        if (s->fill == fill_steep_triangle && not_foreseen(name)) continue;

        open_system(&p, s, name);
        record_open(&r);
        for (int m = 1; m <= 150 && !over; m += m < 40 ? 1 : apart) {
            grow_limit(&r, &p, m, s->name);
            over = p.result.stop == SPS_STOP_CONVERGED;
        }
        problem_close(&p);
    }
}

#define SYSTEM(what, ...)                                                      \
    START_TEST(a_larger_limit_is_never_worse_##what)                           \
    {                                                                          \
        try_all_limits(&(test_system){ #what, __VA_ARGS__ });                  \
    }                                                                          \
    END_TEST

SYSTEM(definite, fill_definite, true, "none", 50, SPS_NORM_RHS)
SYSTEM(mild, fill_mild, true, "none", 50, SPS_NORM_START)
SYSTEM(scaled, fill_steep_units, true, "jacobi", 50, SPS_NORM_BACKWARD)
SYSTEM(indefinite, fill_indefinite, true, "none", 50, SPS_NORM_RHS)
SYSTEM(singular, fill_singular, true, "none", 50, SPS_NORM_RHS)
SYSTEM(nonnormal, fill_nonnormal, false, "none", 50, SPS_NORM_BACKWARD)
SYSTEM(short_cycles, fill_nonnormal, false, "jacobi", 7, SPS_NORM_RHS)
SYSTEM(steep_rows, fill_steep_rows, false, "none", 20, SPS_NORM_RHS)
SYSTEM(steep_triangle, fill_steep_triangle, false, "none", 50, SPS_NORM_RHS)

static const runner_test tests[] = {
    RUNNER_TEST(a_larger_limit_is_never_worse_definite),
    RUNNER_TEST(a_larger_limit_is_never_worse_mild),
    RUNNER_TEST(a_larger_limit_is_never_worse_scaled),
    RUNNER_TEST(a_larger_limit_is_never_worse_indefinite),
    RUNNER_TEST(a_larger_limit_is_never_worse_singular),
    RUNNER_TEST(a_larger_limit_is_never_worse_nonnormal),
    RUNNER_TEST(a_larger_limit_is_never_worse_short_cycles),
    RUNNER_TEST(a_larger_limit_is_never_worse_steep_rows),
    RUNNER_TEST(a_larger_limit_is_never_worse_steep_triangle),
};
METHODS_MAIN("conform_best", tests)
