/* SPDX-License-Identifier: BSD-3-Clause */
/* check_amg_auto.c - auto and multigrid: where it is taken and where not, that
 * one which fails gives way to what else there is, and limits.  On a GPU
 * most of these systems are too small for multigrid, and only the answers are
 * asked for. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "driver/hardness.h"
#include "driver/solver.h"
#include "solvers/auto/chain.h"
#include "tests/check/amg/amg_fixture.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/runner.h"

static bool on_host(void) { return fixture_place() == SPS_HOST; }

/* On any boundary, whatever the values. */
START_TEST(rows_of_grids_know_the_constants)
{
    static const struct { const char *line; double least; } system[] = {
        { "poisson7 12 -perturb 1", 1 },
        { "laplace27 12 -perturb 1", 1 },
        { "laplace27 16 -jump -perturb 1", 1 },
        { "laplace27 16 -aniso 0.5 -perturb 1", 0.9 },
        { "laplace27 12 -perturb 1 -neumann", 1 },
    };

    for (size_t t = 0; t < sizeof system / sizeof *system; t++) {
        amg_case c;
        double known;

        amg_open_in(&c, SPS_HOST, system[t].line, 2, 1);
        OK(c.ctx, spsi_hardness_known(c.op, 1, &known));
        ck_assert_msg(known >= system[t].least, "%s: %g", system[t].line,
                      known);
        amg_close(&c);
    }
}
END_TEST

static void open_auto(amg_case *c, const char *line, int k)
{
    amg_open(c, line, 2, k);
    c->opt.precond = c->opt.solver = "auto";
}

static sps_result must_solve(amg_case *c, const char *what)
{
    const sps_result r = amg_solve(c);

    ck_assert_msg(r.stop > 0, "%s: %s", what, sps_stop_string(r.stop));
    return r;
}

/* ------------------------------------------------------------------- chosen */

static void must_take(const char *line, int iterations)
{
    amg_case c;
    sps_result r;

    open_auto(&c, line, 16);
    r = must_solve(&c, line);
    ck_assert_msg(!strcmp(r.precond, "amg"), "%s: %s", line, r.precond);
    ck_assert_str_eq(r.solver, "block_cg");
    ck_assert_int_le(r.iterations, iterations);
    ck_assert(fixture_noted(c.ctx, "of the rows nearly annihilate "));
    ck_assert(fixture_noted(c.ctx, "kept, since a cycle leaves 0."));
    amg_close(&c);
}

START_TEST(large_grids_and_bodies_get_multigrid)
{
    static const struct { const char *line; int iterations; } system[] = {
        { "poisson7 40", 9 }, { "poisson7 48 -neumann", 9 },
        { "laplace27 32 -aniso 0.1", 13 }, { "laplace27 40 -perturb 1", 8 },
        { "elasticity 16", 12 },
    };
    const int count = !on_host() ? 0 : runner_quick() ? 1 : 5;

    if (!on_host()) must_take("poisson7 100", 9);
    for (int t = 0; t < count; t++)
        must_take(system[t].line, system[t].iterations);
}
END_TEST

/* Small ones, one column on a small grid, a well-conditioned matrix, one whose
 * rows do not nearly annihilate constant vectors, and where the caller has
 * chosen otherwise. */
START_TEST(others_do_not)
{
    static const struct { const char *line, *precond; int k, degree; }
    system[] = {
        { "poisson7 10", "auto", 16, 0 },
        { "poisson7 20", "auto", 1, 0 },
        { "rmat 13 8 -laplacian -shift 50", "auto", 16, 0 },
        { "elasticity 12", "jacobi", 16, 0 },
        { "poisson7 40", "auto", 4, 7 },
    };

    for (size_t t = 0; t < sizeof system / sizeof *system; t++) {
        amg_case c;
        sps_result r;

        open_auto(&c, system[t].line, system[t].k);
        c.opt.precond = system[t].precond;
        c.opt.degree = system[t].degree;
        r = must_solve(&c, system[t].line);
        ck_assert_msg(strcmp(r.precond, "amg"), "%s", system[t].line);
        amg_close(&c);
    }
}
END_TEST

/* All entries of a mass matrix are positive; with a negative couplings' sum
 * that is not zero, shells are alike. */
START_TEST(masses_do_not)
{
    char error[160] = "";
    amg_case c;
    double known;
    whole mass;
    sps_result r;

    open_auto(&c, "laplace27 28 -perturb 1", 16);
    mass = c.w;
    mass.g.spec.mass = GEN_CONSISTENT;
    ck_assert(gen_open(&mass.g.spec, &c.w.g, error));
    gen_fill(&c.w.g, c.w.rowptr, c.w.col, c.w.val);
    sps_operator_destroy(&c.op);
    OK(c.ctx, sps_operator_csr(c.ctx, c.A, c.k, NULL, &c.op));
    OK(c.ctx, spsi_hardness_known(c.op, 1, &known));
    ck_assert_double_eq(known, 0);
    r = must_solve(&c, "a mass");
    ck_assert_str_ne(r.precond, "amg");
    amg_close(&c);
}
END_TEST

/* -------------------------------------------------------------- gives way */

/* Some couplings along x become -2.6 times what they were, beyond the 2 by
 * which the rest of a grid couples their ends, and the diagonal follows: zero
 * row sums, a positive diagonal, and about 20 negative eigenvalues. */
static void make_signed(whole *w)
{
    for (int64_t i = 0; i < w->g.rows; i++) {
        double sum = 0, *diagonal = NULL;

        for (int64_t p = w->rowptr[i]; p < w->rowptr[i + 1]; p++) {
            const int64_t j = w->col[p];

            if (j == i) diagonal = &w->val[p];
            else if ((i + j) % 4000 == 41) w->val[p] *= -2.6;
            if (j != i) sum += w->val[p];
        }
        *diagonal = -sum;
        ck_assert_double_gt(-sum, 0);
    }
}

/* A solver made for one set of values meets others, which are indefinite, and
 * the first ones again. */
START_TEST(new_values_may_need_something_else)
{
    amg_case c;
    whole other = make("poisson7 48 40 20 -neumann");
    sps_result r = { .struct_size = sizeof r };
    sps_block *B = NULL, *X = NULL;
    sps_solver *s = NULL;

    open_auto(&c, "poisson7 48 40 20 -neumann", 16);
    make_signed(&other);
    OK(c.ctx, sps_block_create(c.ctx, c.A->nrow, c.k, &B));
    OK(c.ctx, sps_block_create(c.ctx, c.A->nrow, c.k, &X));
    OK(c.ctx, sps_block_random(B, 3));
    OK(c.ctx, sps_solver_create(c.op, NULL, c.k, &c.opt, &s));
    OK(c.ctx, sps_solver_project(s, B));
    for (int t = 0; t < 3; t++) {
        if (t > 0)
            OK(c.ctx, sps_operator_set_values(
                   c.op, t == 1 ? other.val : c.w.val, SPS_HOST));
        OK(c.ctx, sps_solver_linear(s, B, X, &r));
        ck_assert_msg(r.stop > 0, "values %d: %s", t, sps_stop_string(r.stop));
        ck_assert_msg(!on_host() || !strcmp(r.precond, "amg") == (t == 0),
                      "values %d: %s", t, r.precond);
    }
    ck_assert(!on_host() ||
              fixture_noted(c.ctx, "block_cg with amg is skipped: amg") ||
              fixture_noted(c.ctx, "auto: step 1, block_cg with amg"));
    sps_solver_destroy(&s);
    sps_block_destroy(&B);
    sps_block_destroy(&X);
    drop(&other);
    amg_close(&c);
}
END_TEST

/* With twice the diagonal the condition is near 3: what was measured of the
 * values before says nothing any more. */
START_TEST(the_condition_is_that_of_the_present_values)
{
    amg_case c;
    whole other = make("poisson7 40");
    sps_solver *s = NULL;
    sps_block *B = NULL, *X = NULL;
    sps_result r = { .struct_size = sizeof r };
    double before;

    if (!on_host()) runner_leave_out("multigrid by the times of a host");
    open_auto(&c, "poisson7 40", 16);
    for (int64_t i = 0; i < other.g.rows; i++)
        for (int64_t p = other.rowptr[i]; p < other.rowptr[i + 1]; p++)
            if (other.col[p] == i) other.val[p] *= 2;
    OK(c.ctx, sps_block_create(c.ctx, c.A->nrow, c.k, &B));
    OK(c.ctx, sps_block_create(c.ctx, c.A->nrow, c.k, &X));
    OK(c.ctx, sps_block_random(B, 3));
    OK(c.ctx, sps_solver_create(c.op, NULL, c.k, &c.opt, &s));
    before = ((const sps_chain *)s->of)->condition;
    ck_assert_double_gt(before, 100);
    OK(c.ctx, sps_operator_set_values(c.op, other.val, SPS_HOST));
    OK(c.ctx, sps_solver_linear(s, B, X, &r));
    ck_assert_int_eq(r.stop, SPS_STOP_CONVERGED);
    ck_assert_double_gt(((const sps_chain *)s->of)->condition, 1);
    ck_assert_double_lt(((const sps_chain *)s->of)->condition, 10);
    sps_solver_destroy(&s);
    sps_block_destroy(&B);
    sps_block_destroy(&X);
    drop(&other);
    amg_close(&c);
}
END_TEST

/* ------------------------------------------------------------------- limits */

/* A set-up that would take much of the time is not begun; whatever the limit,
 * the best iterate comes with a reason. */
START_TEST(limits_of_time_hold)
{
    static const double seconds[] = { 1e-3, 0.02, 0.2 };

    for (int t = 0; t < 3; t++) {
        amg_case c;
        sps_result r;

        open_auto(&c, "poisson7 40", 16);
        c.opt.max_seconds = seconds[t];
        r = amg_solve(&c);
        ck_assert(r.stop > 0 || r.stop == SPS_STOP_MAX_TIME);
        ck_assert(seconds[t] > 0.1 || strcmp(r.precond, "amg"));
        amg_close(&c);
    }
}
END_TEST

/* Memory that runs out during the set-up: an error, or something that needs
 * less; nothing is left behind. */
START_TEST(memory_may_run_out_anywhere)
{
    int made = 0, refused = 0;
    const int stride = runner_quick() ? 37 : 23;

    for (long allowed = 5; made < 3 && allowed < 3000; allowed += stride) {
        fail_alloc memory = { .allowed = -1 };
        sps_context_options o;
        amg_case c;
        sps_solver *s = NULL;
        sps_status st;

        open_auto(&c, "poisson7 24", 16);
        sps_operator_destroy(&c.op);
        sps_csr_destroy(c.ctx, &c.A);
        fixture_close(&c.ctx);
        sps_context_options_default(&o);
        o.place = fixture_place();
        o.host = fail_alloc_host(&memory);
        ck_assert_int_eq(sps_context_create(&o, &c.ctx, NULL), SPS_OK);
        c.A = amg_wrap(c.ctx, &c.w);
        OK(c.ctx, sps_operator_csr(c.ctx, c.A, c.k, NULL, &c.op));
        fail_alloc_allow(&memory, allowed);
        st = sps_solver_create(c.op, NULL, c.k, &c.opt, &s);
        ck_assert_msg(st == SPS_OK || st == SPS_ENOMEM, "%ld: %s", allowed,
                      sps_context_error(c.ctx));
        made += st == SPS_OK && !memory.fired;
        refused += memory.fired;
        fail_alloc_allow(&memory, -1);
        sps_solver_destroy(&s);
        amg_close(&c);
        ck_assert_int_eq(memory.live, 0);
    }
    ck_assert_int_ge(refused, 3);
    ck_assert_int_gt(made, 0);
}
END_TEST

/* -------------------------------------------------------------- eigenpairs */

static sps_eigen_result pairs_of(const char *line, int pairs,
                                 const char *precond)
{
    sps_eigen_result r = { .struct_size = sizeof r };
    amg_case c;
    sps_solver *s = NULL;
    sps_block *X = NULL;

    open_auto(&c, line, pairs);
    c.opt.precond = precond;
    c.opt.rtol = 1e-6;
    sps_operator_destroy(&c.op);
    OK(c.ctx, sps_operator_csr(c.ctx, c.A, 16, NULL, &c.op));
    OK(c.ctx, sps_block_create(c.ctx, c.A->nrow, pairs, &X));
    OK(c.ctx, sps_solver_create_eigen(c.op, NULL, NULL, pairs, &c.opt, &s));
    OK(c.ctx, sps_solver_eigen(s, X, NULL, &r));
    ck_assert_msg(r.stop == SPS_STOP_CONVERGED, "%s: %s", line,
                  sps_stop_string(r.stop));
    sps_solver_destroy(&s);
    sps_block_destroy(&X);
    amg_close(&c);
    return r;
}

START_TEST(eigenpairs_get_multigrid_unless_factors_are_cheap)
{
    const sps_eigen_result large = pairs_of("poisson7 20", 4, "auto");
    const sps_eigen_result small = pairs_of("poisson7 12", 4, "auto");

    ck_assert_str_eq(large.precond, "amg");
    ck_assert_int_le(large.iterations, 25);
    ck_assert_str_ne(small.precond, "amg");
}
END_TEST

/* 32 soft boxes with lowest eigenvalues that agree to 1e-3, and a block of four
 * columns: the filter finds a basis of all 32, by residuals alone it takes 47
 * iterations. */
START_TEST(a_cluster_wider_than_the_block_is_filtered)
{
    const bool quick = runner_quick();
    const sps_eigen_result r =
        pairs_of(quick ? "laplace27 16 -jump" : "laplace27 32 -jump", 2, "amg");

    ck_assert_int_le(r.iterations, quick ? 40 : 25);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(rows_of_grids_know_the_constants),
    RUNNER_TEST(large_grids_and_bodies_get_multigrid),
    RUNNER_TEST(others_do_not),
    RUNNER_TEST(masses_do_not),
    RUNNER_TEST(new_values_may_need_something_else),
    RUNNER_TEST(the_condition_is_that_of_the_present_values),
    RUNNER_TEST(limits_of_time_hold),
    RUNNER_TEST(memory_may_run_out_anywhere),
    RUNNER_TEST(eigenpairs_get_multigrid_unless_factors_are_cheap),
    RUNNER_TEST(a_cluster_wider_than_the_block_is_filtered),
};
RUNNER_MAIN("amg_auto", tests)
