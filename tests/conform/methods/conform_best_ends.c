/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_best_ends.c - the best iterate after other ends than an iteration
 * limit: interrupts, time limits, callbacks that fail, solutions that overflow
 * doubles; and what keeping it costs. */
#include "tests/support/best_systems.h"

#include "core/backend.h"
#include "tests/support/callback.h"

static const test_system systems[] = {
    { "definite", fill_definite, true, "none", 50, SPS_NORM_RHS },
    { "nonnormal", fill_nonnormal, false, "none", 50, SPS_NORM_RHS },
};

enum { LAST = 30 };

/* The best of the first m iterations for each m. */
static int climb_to_last(problem *p, record r[LAST + 1], const char *what)
{
    record_open(&r[0]);
    for (int m = 1; m <= LAST; m++) {
        r[m] = r[m - 1];
        grow_limit(&r[m], p, m, what);
        if (p->result.stop != SPS_STOP_MAX_ITERATIONS) return m - 1;
    }
    return LAST;
}

typedef struct ending {
    int at;          /* iteration; 0: never */
    bool cancel;
} ending;

static bool end_there(const sps_progress *g, void *data)
{
    const ending *e = data;

    if (g->iteration < e->at) return true;
    if (e->cancel) sps_cancel(ctx, true);
    return e->cancel;
}

/* A time limit that expires during set-up leads to another preconditioner, and
 * under any limit of time `auto` chooses its methods by the clock; the record
 * then belongs to other methods, and only the guess bounds the residual. */
static void end_by(problem *p, ending e, double seconds, const record *r,
                   int last, const char *what)
{
    char precond[64];

    snprintf(precond, sizeof precond, "%s", p->result.precond);
    p->opt.monitor = end_there;
    p->opt.monitor_data = &e;
    p->opt.max_seconds = seconds;
    solve_up_to(p, 10000);
    sps_cancel(ctx, false);
    p->opt.monitor = NULL;
    p->opt.max_seconds = 0;
    if (strcmp(precond, p->result.precond)) last = 0;
    if (seconds > 0 && !strcmp(p->opt.solver, "auto")) last = 0;
    must_be_as_good(&r[p->result.iterations < last ? p->result.iterations
                                                   : last],
                    p, p->result.iterations, what);
}

START_TEST(interrupts_and_time_keep_the_best_as_well)
{
    const char *name;

    for (int s = 0; s < 2; s++)
    FOR_FITTING(&systems[s], name) {
        problem p;
        record r[LAST + 1];
        int last;

        open_system(&p, &systems[s], name);
        last = climb_to_last(&p, r, systems[s].name);
        for (int at = 1; at <= last; at += 3)
            for (int cancel = 0; cancel < 2; cancel++)
                end_by(&p, (ending){ at, cancel }, 0, r, last, "interrupt");
        end_by(&p, (ending){ 100000, false }, 1e-9, r, last, "no time");
        end_by(&p, (ending){ 100000, false }, 1e-3, r, last, "a moment");
        problem_close(&p);
    }
}
END_TEST

/* ------------------------------------------------------ functions that fail */

typedef struct trap {
    const sps_csr *A;
    int calls, bad_at;       /* 0: never */
    bool fails;              /* fails; otherwise it returns a NaN */
    int calls_at[LAST + 1];  /* calls made when an iteration had been
                                reported */
} trap;

static int trap_apply(double alpha, const double *X, int64_t ldx, double beta,
                      double *Y, int64_t ldy, int64_t n, int k, void *stream,
                      void *data)
{
    trap *t = data;
    const double *val = t->A->val;
    const bool bad = ++t->calls == t->bad_at;

    (void)stream;
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < k; j++) {
            double sum = 0;

            for (int64_t l = 0; l < n; l++)
                sum += val[i * n + l] * X[l * ldx + j];
            Y[i * ldy + j] = alpha * sum +
                             (beta != 0 ? beta * Y[i * ldy + j] : 0);
            if (bad && i == 7) Y[i * ldy + j] = NAN;
        }
    return bad && t->fails ? 17 : 0;
}

static bool count_calls(const sps_progress *g, void *data)
{
    trap *t = data;

    if (g->iteration <= LAST) t->calls_at[g->iteration] = t->calls;
    return true;
}

/* Computes X, whatever status the solve returns. */
static void solve_anyhow(problem *p)
{
    sps_block *B = NULL, *X = NULL;
    sps_solver *s = NULL;

    memset(p->x, 0, N * K * sizeof *p->x);
    ck_assert_int_eq(sps_block_create(ctx, N, K, &B), SPS_OK);
    ck_assert_int_eq(sps_block_create(ctx, N, K, &X), SPS_OK);
    ck_assert_int_eq(sps_block_set(B, 0, K, p->b, K, SPS_ROW_MAJOR, SPS_HOST),
                     SPS_OK);
    ck_assert_int_eq(sps_block_set(X, 0, K, p->x, K, SPS_ROW_MAJOR, SPS_HOST),
                     SPS_OK);
    ck_assert_int_eq(sps_solver_create(p->op, NULL, K, &p->opt, &s), SPS_OK);
    (void)sps_solver_linear(s, B, X, NULL);
    ck_assert_int_eq(sps_block_get(X, 0, K, p->x, K, SPS_ROW_MAJOR, SPS_HOST),
                     SPS_OK);
    problem_judge(p);
    sps_solver_destroy(&s);
    sps_block_destroy(&B);
    sps_block_destroy(&X);
}

/* X must be as good as the best iterate reported before the call that
 * failed. */
static void spring(problem *p, trap *t, const record *r, int last)
{
    for (int bad_at = 4; bad_at <= t->calls_at[last]; bad_at += 5)
        for (int fails = 0; fails < 2; fails++) {
            int seen = 0;

            for (int m = 1; m <= last; m++)
                if (t->calls_at[m] < bad_at) seen = m;
            t->calls = 0;
            t->bad_at = bad_at;
            t->fails = fails;
            solve_anyhow(p);
            must_be_as_good(&r[seen], p, seen,
                            fails ? "a failing function" : "a NaN");
        }
}

START_TEST(functions_that_fail_keep_the_best_as_well)
{
    const char *name;

    for (int s = 0; s < 2; s++)
    FOR_FITTING(&systems[s], name) {
        problem p;
        trap t = { 0 };
        callback anywhere = { ctx, trap_apply, &t };
        record r[LAST + 1];
        int last;

        /* One method needs a matrix, and so does auto, to test its symmetry. */
        if (!strcmp(name, "refinement")) continue;
        if (!strcmp(name, "auto") && !systems[s].symmetric) continue;
        /* And these A' (check_least_ends). */
        if (solves_least_squares(name) && !systems[s].symmetric) continue;
        open_system(&p, &systems[s], name);
        t.A = p.A;
        p.opt.check_every = 1;
        ck_assert_int_eq(sps_operator_user(ctx, N, callback_anywhere, &anywhere,
                                           systems[s].symmetric
                                               ? SPS_SYMMETRIC : 0,
                                           &p.op), SPS_OK);
        last = climb_to_last(&p, r, systems[s].name);
        p.opt.monitor = count_calls;
        p.opt.monitor_data = &t;
        t.calls = 0;
        solve_up_to(&p, last);
        p.opt.monitor = NULL;
        p.opt.max_iterations = 10000;
        spring(&p, &t, r, last);
        problem_close(&p);
    }
}
END_TEST

/* ----------------------------------------------- methods that take over */

/* [1 1; 1 1], which has no inverse: a method that breaks down in the middle of
 * a cycle leaves what it has reached to the method that takes over. */
static sps_csr *singular_pair(void)
{
    static int64_t rowptr[] = { 0, 2, 4 };
    static int32_t col[] = { 0, 1, 0, 1 };
    static double val[] = { 1, 1, 1, 1 };
    const sps_csr A = { .struct_size = sizeof A, .nrow = 2, .ncol = 2,
                        .nnz = 4, .rowptr = rowptr, .col = col, .val = val,
                        .dtype = SPS_F64, .place = SPS_HOST,
                        .props = SPS_SYMMETRIC };

    return zoo_copy(&A);
}

/* Only those that do: others go on along the null vector until the rounding of
 * A x decides. */
START_TEST(a_method_that_gives_way_leaves_its_best)
{
    static const char *const names[] = { "block_cg", "refinement" };

    for (int i = 0; i < 2; i++) {
        const char *name = names[i];
        problem p;
        double best = 1;

        problem_open(&p, ctx, singular_pair(), 1);
        p.b[0] = 1, p.b[1] = 2;
        p.opt.solver = name;
        p.opt.precond = "none";
        for (int m = 1; m <= 20; m++) {
            p.x[0] = p.x[1] = 0;
            p.opt.max_iterations = m;
            solve_ok(&p);
            ck_assert_msg(p.residual[0] <= SLACK * best + 1e-7, "%s: %g, and "
                          "%g with a limit of %d", name, best, p.residual[0],
                          m);
            best = fmin(best, p.residual[0]);
        }
        problem_close(&p);
    }
}
END_TEST

/* ---------------------------------------------------------- beyond doubles */

static void open_diagonal(problem *p, const char *name, int n, double first)
{
    double *val;

    problem_open(p, ctx, zoo("diagonal", n, ZOO_SPD), 2);
    val = p->A->val;
    for (int i = 0; i < n; i++) val[i] = (i + 1) * first;
    p->opt.solver = name;
    p->opt.precond = "none";
}

static bool all_finite(const problem *p)
{
    for (int64_t i = 0; i < p->A->nrow * p->k; i++)
        if (!isfinite(p->x[i])) return false;
    return true;
}

/* 1e200 divided by 1e-200 overflows doubles. */
START_TEST(a_guess_without_a_place_in_units_of_b_gives_way_to_zero)
{
    const char *name;

    FOR_SOLVERS(name) {
        problem p;

        open_diagonal(&p, name, 2, 1);
        for (int i = 0; i < 4; i++) p.b[i] = i % 2 ? 1 : 1e-200;
        for (int i = 0; i < 4; i++) p.x[i] = i % 2 ? 1e10 : 1e200;
        must_converge(&p, "a guess of 1e200 for b of 1e-200");
        ck_assert(all_finite(&p));
        problem_close(&p);
    }
}
END_TEST

/* x = 1e311; a guess of 1.7e308 is the best representable iterate. */
START_TEST(a_solution_beyond_doubles_leaves_the_best_within)
{
    const char *name;

    FOR_SOLVERS(name)
    for (int guessed = 0; guessed < 2; guessed++) {
        problem p;

        open_diagonal(&p, name, 1, guessed ? 0.05 : 1e-4);
        p.b[0] = 1e307;
        p.b[1] = 1;
        p.x[0] = guessed ? 1.7e308 : 0;
        solve_ok(&p);
        ck_assert_msg(all_finite(&p), "%s: %g", name, p.x[0]);
        ck_assert_int_eq(p.result.columns_converged, 1);
        ck_assert_int_lt(p.result.stop, 0);
        ck_assert(p.residual[0] <= (guessed ? 0.16 : 1));
        ck_assert(p.residual[1] <= 1e-10);
        problem_close(&p);
    }
}
END_TEST

/* Z = R, infinite in the last row. */
static int copy_but_last(double alpha, const double *R, int64_t ldr,
                         double beta, double *Z, int64_t ldz, int64_t n, int k,
                         void *stream, void *data)
{
    (void)stream, (void)data;
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < k; j++) {
            const double z = i == n - 1 ? INFINITY : R[i * ldr + j];

            Z[i * ldz + j] = alpha * z +
                             (beta != 0 ? beta * Z[i * ldz + j] : 0);
        }
    return 0;
}

/* No entry of A multiplies the last unknown, so that residuals do not show
 * what it is. */
START_TEST(an_unknown_that_no_residual_shows_is_finite_as_well)
{
    const char *name;

    FOR_SOLVERS(name) {
        problem p;
        callback copy = { ctx, copy_but_last, NULL };
        double *val;

        problem_open(&p, ctx, zoo("diagonal", 8, ZOO_SPD), 2);
        val = p.A->val;
        for (int i = 0; i < 8; i++) val[i] = i < 7 ? i + 1 : 0;
        p.A->rowptr[8] = p.A->nnz = 7;
        for (int j = 0; j < 2; j++) p.b[14 + j] = 0;
        p.opt.solver = name;
        p.opt.nullspace = "none";
        if (!solves_least_squares(name))    /* which take none */
            ck_assert_int_eq(sps_precond_user(ctx, 8, callback_anywhere, &copy,
                                              &p.M), SPS_OK);
        solve_ok(&p);
        ck_assert_msg(all_finite(&p), "%s: %s", name,
                      sps_stop_name(p.result.stop));
        ck_assert(problem_honest(&p));
        sps_precond_destroy(&p.M);
        problem_close(&p);
    }
}
END_TEST

/* -------------------------------------------------------------------- cost */

static struct tally {
    const sps_backend *real;
    sps_backend counting;
    int copies;
} tally;

static sps_status scatter(const sps_block *X, const int *index, sps_block *Y)
{
    tally.copies++;
    return tally.real->scatter(X, index, Y);
}

static int copies_of(problem *p, int m)
{
    tally = (struct tally){ .real = ctx->backend, .counting = *ctx->backend };
    tally.counting.scatter = scatter;
    ctx->backend = &tally.counting;
    solve_up_to(p, m);
    ctx->backend = tally.real;
    return tally.copies;
}

/* Each computation of the true residual keeps its iterate, two more copies
 * where the final one is undone; here the first and each tenth iteration. */
START_TEST(falling_residuals_cost_no_copy_and_others_few)
{
    const char *all[] = { "cg", "block_cg", "minres", "idr", "bicgstab" };

    for (int i = 0; i < 5; i++)
    for (int mild = 0; mild < 2; mild++) {
        const test_system s = { "cost", mild ? fill_mild : fill_definite, true,
                                "none", 50, SPS_NORM_RHS };
        problem p;
        int copies, looks;
        double gained = 0;

        open_system(&p, &s, all[i]);
        p.opt.true_residual_every = 10;
        copies = copies_of(&p, 60);
        looks = 2 + 4 * p.result.restarts + p.result.iterations / 10 + 8;
        for (int j = 0; j < K; j++)
            gained += log(1 / p.residual[j]) / log1p(1.0 / 24);
        ck_assert_msg(copies <= looks + (i == 2 ? 0 : gained),
                      "%s: %d copies in %d iterations", all[i], copies,
                      p.result.iterations);
        problem_close(&p);
    }
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(interrupts_and_time_keep_the_best_as_well),
    RUNNER_TEST(functions_that_fail_keep_the_best_as_well),
    RUNNER_TEST(a_method_that_gives_way_leaves_its_best),
    RUNNER_TEST(a_guess_without_a_place_in_units_of_b_gives_way_to_zero),
    RUNNER_TEST(a_solution_beyond_doubles_leaves_the_best_within),
    RUNNER_TEST(an_unknown_that_no_residual_shows_is_finite_as_well),
    RUNNER_TEST(falling_residuals_cost_no_copy_and_others_few),
};
METHODS_MAIN("conform_best_ends", tests)
