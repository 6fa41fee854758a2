/* SPDX-License-Identifier: BSD-3-Clause */
/* check_refinement.c - what floats do inside of methods: refinement reaches what
 * doubles reach, and hands over where floats do not serve; bases and
 * preconditioners in floats. */
#include <math.h>
#include <string.h>

#include "fail_alloc.h"
#include "fixture.h"
#include "problem.h"
#include "runner.h"
#include "zoo.h"

static void open_grid(problem *p, sps_context *ctx, int64_t n, double shift,
                      int k)
{
    sps_csr *A = zoo_matrix(zoo_find("grid5"), n, 5, ZOO_LAPLACIAN, SPS_F64);
    double *val = A->val;

    for (int64_t i = 0; i < A->nrow; i++)
        for (int64_t q = A->rowptr[i]; q < A->rowptr[i + 1]; q++)
            if (A->col[q] == i) val[q] += shift * (double)(1 + i % 7);
    problem_open(p, ctx, A, k);
    p->opt.solver = "refinement";
    p->opt.precond = "jacobi";
}

static void solve(problem *p, sps_stop stop, const char *solver)
{
    ck_assert_msg(problem_solve(p) == SPS_OK, "%s",
                  sps_context_error(p->ctx));
    ck_assert_msg(p->result.stop == stop, "%s after %d iterations, worst %g",
                  sps_stop_string(p->result.stop), p->result.iterations,
                  problem_worst(p));
    ck_assert_str_eq(p->result.solver, solver);
    ck_assert(problem_honest(p));
}

START_TEST(refinement_reaches_the_accuracy_of_doubles)
{
    static const int width[] = { 1, 2, 7, 16, 32 };
    sps_context *ctx = runner_context();
    problem p;

    for (int t = 0; t < 5; t++) {
        open_grid(&p, ctx, 2500, 0.01, width[t]);
        p.opt.rtol = 1e-13;
        solve(&p, SPS_STOP_CONVERGED, "refinement");
        problem_close(&p);
    }
    fixture_close(&ctx);
}
END_TEST

START_TEST(refinement_takes_few_iterations_more_than_doubles)
{
    sps_context *ctx = runner_context();
    problem p, q;

    open_grid(&p, ctx, 10000, 1e-3, 8);
    open_grid(&q, ctx, 10000, 1e-3, 8);
    q.opt.solver = "block_cg";
    solve(&p, SPS_STOP_CONVERGED, "refinement");
    solve(&q, SPS_STOP_CONVERGED, "block_cg");
    ck_assert_msg(2 * p.result.iterations <= 3 * q.result.iterations,
                  "%d, doubles %d", p.result.iterations, q.result.iterations);
    problem_close(&p);
    problem_close(&q);
    fixture_close(&ctx);
}
END_TEST

/* Blocks [1 c; c 1] whose c = 1 - 1e-8 is 1 in floats, so that their matrix is
 * singular there: a condition of 2e8, but only two eigenvalues. */
static sps_csr *pairs(sps_context *ctx, int64_t n)
{
    sps_csr *A = NULL;

    OK(ctx, sps_csr_create(ctx, n, n, 2 * n, SPS_F64, &A));
    for (int64_t i = 0; i < n; i++) {
        A->rowptr[i + 1] = 2 * (i + 1);
        for (int j = 0; j < 2; j++) {
            A->col[2 * i + j] = (int32_t)(i / 2 * 2 + j);
            ((double *)A->val)[2 * i + j] = i % 2 == j ? 1 : 1 - 1e-8;
        }
    }
    return A;
}

START_TEST(where_floats_gain_nothing_doubles_go_on)
{
    sps_context *ctx = runner_context();
    sps_csr *A = pairs(ctx, 1000), *B = zoo_copy(A);
    problem p;

    sps_csr_destroy(ctx, &A);
    problem_open(&p, ctx, B, 4);
    p.opt.solver = "refinement";
    p.opt.precond = "jacobi";
    p.opt.rtol = 1e-6;
    solve(&p, SPS_STOP_CONVERGED, "block_cg");
    ck_assert(fixture_noted(ctx, "refinement ended"));
    problem_close(&p);
    fixture_close(&ctx);
}
END_TEST

START_TEST(what_does_not_serve_in_floats_is_said_and_solved_in_doubles)
{
    sps_context *ctx = runner_context();
    problem p;

    open_grid(&p, ctx, 900, 0.01, 4);
    p.opt.precond = "ic0";
    solve(&p, SPS_STOP_CONVERGED, "block_cg");
    ck_assert(fixture_noted(ctx, "the preconditioner is not a diagonal"));
    problem_close(&p);
    open_grid(&p, ctx, 900, 0, 4);
    for (int64_t q = 0; q < p.A->nnz; q++) ((double *)p.A->val)[q] *= 1e200;
    p.opt.nullspace = "none";
    p.opt.precond = "jacobi";
    ck_assert(problem_solve(&p) == SPS_OK);
    ck_assert_str_eq(p.result.solver, "block_cg");
    ck_assert(fixture_noted(ctx, "outside of 1e-30 to 1e30"));
    problem_close(&p);
    fixture_close(&ctx);
}
END_TEST

/* Second differences squared: a condition of about n^4 / 31, so that floats
 * lose the space in which blocks of doubles end after n / k steps. */
static sps_csr *beam(sps_context *ctx, int64_t n)
{
    static const double a[] = { 1, -4, 6, -4, 1 };
    sps_csr *A = NULL;
    int64_t q = 0;

    OK(ctx, sps_csr_create(ctx, n, n, 5 * n - 6, SPS_F64, &A));
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = i - 2; j <= i + 2; j++) {
            if (j < 0 || j >= n) continue;
            A->col[q] = (int32_t)j;
            ((double *)A->val)[q++] = a[j - i + 2];
        }
        A->rowptr[i + 1] = q;
    }
    return A;
}

static void open_beam(problem *p, sps_context *ctx, int64_t n, int k)
{
    sps_csr *A = beam(ctx, n), *B = zoo_copy(A);

    sps_csr_destroy(ctx, &A);
    problem_open(p, ctx, B, k);
    for (int64_t t = 0; t < n * k; t++) p->x[t] = 1e-3 * (double)(t % 7);
    p->opt.precond = "jacobi";
    p->opt.rtol = 1e-6;
}

/* Long cycles end soon, and what follows is block_cg from the guess, as if
 * floats had not been. */
START_TEST(a_cycle_too_long_leaves_the_guess_to_doubles)
{
    sps_context *ctx = runner_context();
    problem p, q;

    open_beam(&p, ctx, 120, 8);
    open_beam(&q, ctx, 120, 8);
    p.opt.solver = "refinement";
    q.opt.solver = "block_cg";
    solve(&p, SPS_STOP_CONVERGED, "block_cg");
    solve(&q, SPS_STOP_CONVERGED, "block_cg");
    ck_assert(fixture_noted(ctx, "began again with block_cg"));
    ck_assert_msg(p.result.iterations <= q.result.iterations + 200,
                  "%d, doubles %d", p.result.iterations, q.result.iterations);
    ck_assert(memcmp(p.x, q.x, 120 * 8 * sizeof(double)) == 0);
    problem_close(&p);
    problem_close(&q);
    fixture_close(&ctx);
}
END_TEST

/* Floats refine with a diagonal; any other M works in doubles, by each way to
 * ask for mixed precision. */
START_TEST(with_any_other_preconditioner_doubles_work_as_without_floats)
{
    static const char *const precond[] = { "fsai", "block_jacobi", "ic0",
                                           "chebyshev" };
    static const char *const solver[] = { "refinement", "block_cg", "auto" };
    sps_context *ctx = runner_context();

    for (int t = 0; t < 4; t++)
        for (int i = 0; i < 3; i++) {
            problem p, q;

            open_grid(&p, ctx, 2500, 0.01, 4);
            open_grid(&q, ctx, 2500, 0.01, 4);
            p.opt.precond = q.opt.precond = precond[t];
            p.opt.degree = q.opt.degree = 4;     /* of chebyshev */
            p.opt.precond_precision = "double";
            p.opt.solver = solver[i];
            p.opt.precision = "mixed";
            q.opt.solver = "block_cg";
            solve(&p, SPS_STOP_CONVERGED, "block_cg");
            solve(&q, SPS_STOP_CONVERGED, "block_cg");
            ck_assert_str_eq(p.result.precond, precond[t]);
            ck_assert(memcmp(p.x, q.x, 2500 * 4 * sizeof(double)) == 0);
            problem_close(&p);
            problem_close(&q);
        }
    fixture_close(&ctx);
}
END_TEST

START_TEST(how_far_refinement_runs_ahead_changes_no_bit)
{
    sps_context *ctx = runner_context();
    problem p, q;

    open_grid(&p, ctx, 2500, 0.01, 6);
    open_grid(&q, ctx, 2500, 0.01, 6);
    q.opt.check_every = 1;
    q.opt.replay = false;
    solve(&p, SPS_STOP_CONVERGED, "refinement");
    solve(&q, SPS_STOP_CONVERGED, "refinement");
    ck_assert_int_eq(p.result.iterations, q.result.iterations);
    ck_assert(memcmp(p.x, q.x, 2500 * 6 * sizeof(double)) == 0);
    problem_close(&p);
    problem_close(&q);
    fixture_close(&ctx);
}
END_TEST

/* -------------------------------------------------- what else is in floats */

/* Where the basis is, by iterations: single may take half as many again. */
static void try_basis(sps_context *ctx, const char *solver, int k,
                      bool flexible, int cycle)
{
    problem p, q;

    open_grid(&p, ctx, 2500, 0.01, k);
    open_grid(&q, ctx, 2500, 0.01, k);
    p.opt.solver = q.opt.solver = solver;
    p.opt.precond = q.opt.precond = "ilu0";
    p.opt.rtol = q.opt.rtol = 1e-12;
    p.opt.flexible = q.opt.flexible = flexible;
    p.opt.restart = q.opt.restart = cycle;
    p.opt.basis = "single";
    q.opt.basis = "double";
    solve(&p, SPS_STOP_CONVERGED, solver);
    solve(&q, SPS_STOP_CONVERGED, solver);
    ck_assert_msg(2 * p.result.iterations <= 3 * q.result.iterations,
                  "%s, %d columns: %d, doubles %d", solver, k,
                  p.result.iterations, q.result.iterations);
    ck_assert(memcmp(p.x, q.x, (size_t)(2500 * k) * sizeof *p.x) != 0);
    problem_close(&p);
    problem_close(&q);
}

START_TEST(a_basis_in_floats_reaches_the_accuracy_of_doubles)
{
    sps_context *ctx = runner_context();

    for (int flexible = 0; flexible < 2; flexible++) {
        try_basis(ctx, "gmres", 5, flexible, 50);
        try_basis(ctx, "block_gmres", 2, flexible, 50);
        try_basis(ctx, "block_gmres", 5, flexible, 20);
        try_basis(ctx, "block_gmres", 32, flexible, 30);
    }
    fixture_close(&ctx);
}
END_TEST

/* The condition is beyond floats: what they lose of v_(j+1) is as large as the
 * residual.  */
static void try_beyond_floats(sps_context *ctx, const char *solver,
                              bool flexible)
{
    sps_csr *A = pairs(ctx, 1000), *B = zoo_copy(A);
    problem p;

    sps_csr_destroy(ctx, &A);
    problem_open(&p, ctx, B, 4);
    p.opt.solver = solver;
    p.opt.precond = "none";
    p.opt.rtol = 1e-6;
    p.opt.flexible = flexible;
    p.opt.basis = "double";
    solve(&p, SPS_STOP_CONVERGED, solver);
    ck_assert(!fixture_noted(ctx, "brings no progress"));
    memset(p.x, 0, 4000 * sizeof *p.x);
    p.opt.basis = "auto";
    p.opt.precision = "mixed";
    solve(&p, SPS_STOP_CONVERGED, solver);
    ck_assert(fixture_noted(ctx, "the basis in floats brings no progress; in "
                                 "doubles from iteration"));
    problem_close(&p);
}

START_TEST(where_a_basis_in_floats_brings_nothing_doubles_go_on)
{
    for (int flexible = 0; flexible < 2; flexible++) {
        sps_context *ctx = runner_context();

        try_beyond_floats(ctx, "gmres", flexible);
        fixture_close(&ctx);
        ctx = runner_context();
        try_beyond_floats(ctx, "block_gmres", flexible);
        fixture_close(&ctx);
    }
}
END_TEST

/* Bytes that a solver of 8 columns holds in the context's place. */
static size_t bytes_of_solver(sps_context *ctx, const char *solver,
                              const char *basis)
{
    sps_context_info info[2] = { { .struct_size = sizeof *info },
                                 { .struct_size = sizeof *info } };
    sps_solver *s = NULL;
    problem p;

    open_grid(&p, ctx, 10000, 0.01, 8);
    p.opt.solver = solver;
    p.opt.basis = basis;
    OK(ctx, sps_operator_csr(ctx, p.A, 8, &p.opt, &p.op));
    OK(ctx, sps_context_information(ctx, &info[0]));
    OK(ctx, sps_solver_create(p.op, NULL, 8, &p.opt, &s));
    OK(ctx, sps_context_information(ctx, &info[1]));
    sps_solver_destroy(&s);
    problem_close(&p);
    return runner_place() == SPS_HOST
               ? info[1].host_bytes - info[0].host_bytes
               : info[1].device_bytes - info[0].device_bytes;
}

START_TEST(a_basis_in_floats_takes_half_of_the_memory)
{
    static const char *const solver[] = { "gmres", "block_gmres" };
    sps_context *ctx = runner_context();

    for (int t = 0; t < 2; t++) {
        size_t wide, narrow;

        (void)bytes_of_solver(ctx, solver[t], "double");   /* scratch stays */
        narrow = bytes_of_solver(ctx, solver[t], "single");
        wide = bytes_of_solver(ctx, solver[t], "double");
        ck_assert_msg((double)narrow < 0.62 * (double)wide,
                      "%s: %zu bytes, in doubles %zu", solver[t], narrow,
                      wide);
        ck_assert(fixture_noted(ctx, "MB more"));
    }
    fixture_close(&ctx);
}
END_TEST

/* Two solves by one solver: no memory is had in the first. */
static void solve_without_memory(const char *solver)
{
    fail_alloc host = { .allowed = -1 }, device = { .allowed = -1 };
    sps_context_options o;
    sps_context *ctx = NULL;
    sps_solver *s = NULL;
    sps_block *B, *X;
    sps_result r = { .struct_size = sizeof r };
    problem p;
    sps_csr *A;

    sps_context_options_default(&o);
    o.place = runner_place();
    o.threads = 2;
    o.host = fail_alloc_host(&host);
    if (o.place == SPS_CUDA) o.gpu = fail_alloc_device(&device);
    OK(NULL, sps_context_create(&o, &ctx, NULL));
    A = pairs(ctx, 1000);
    problem_open(&p, ctx, zoo_copy(A), 4);
    p.opt.solver = solver;
    p.opt.precond = "none";
    p.opt.rtol = 1e-6;
    p.opt.basis = "single";
    OK(ctx, sps_operator_csr(ctx, p.A, 4, &p.opt, &p.op));
    OK(ctx, sps_solver_create(p.op, NULL, 4, &p.opt, &s));
    B = fixture_block(ctx, 1000, 4, p.b, 4);
    X = fixture_block(ctx, 1000, 4, NULL, 4);
    fail_alloc_allow(o.place == SPS_CUDA ? &device : &host, 0);
    OK(ctx, sps_solver_linear(s, B, X, &r));
    ck_assert(o.place == SPS_CUDA ? device.fired : host.fired);
    if (o.place == SPS_CUDA)   /* else the note gets no memory either */
        ck_assert(fixture_noted(ctx, "no memory for one in doubles"));
    fail_alloc_allow(&host, -1);
    fail_alloc_allow(&device, -1);
    ck_assert_int_lt(r.stop, 0);
    ck_assert(r.worst_residual <= 1 && r.worst_residual > p.opt.rtol);
    for (int again = 0; again < 2; again++) {
        OK(ctx, sps_solver_linear(s, B, X, &r));
        ck_assert_int_eq(r.stop, SPS_STOP_CONVERGED);
    }
    ck_assert(fixture_noted(ctx, "doubles from iteration"));
    sps_solver_destroy(&s);
    sps_block_destroy(&B);
    sps_block_destroy(&X);
    problem_close(&p);
    sps_csr_destroy(ctx, &A);
    fixture_close(&ctx);
    ck_assert(host.live == 0 && device.live == 0);
}

START_TEST(without_memory_for_doubles_floats_end_it_honestly)
{
    solve_without_memory("gmres");
    solve_without_memory("block_gmres");
}
END_TEST

START_TEST(block_gmres_keeps_doubles_where_floats_do_not_serve)
{
    sps_context *ctx = runner_context();
    problem p;

    open_grid(&p, ctx, 900, 0.01, 33);
    p.opt.solver = "block_gmres";
    p.opt.basis = "single";
    solve(&p, SPS_STOP_CONVERGED, "block_gmres");
    ck_assert(fixture_noted(ctx, "the basis in doubles"));
    problem_close(&p);
    fixture_close(&ctx);
}
END_TEST

/* z = M r for the preconditioner of p->opt, in that precision. */
static void precondition(problem *p, const char *precision, sps_block *R,
                         double *z)
{
    sps_precond *M = NULL;
    sps_block *Z = fixture_block(p->ctx, p->A->nrow, 3, NULL, 0);

    p->opt.precond_precision = precision;
    OK(p->ctx, sps_precond_create(p->op, 3, &p->opt, &M));
    OK(p->ctx, sps_precond_update(M));
    OK(p->ctx, sps_precond_apply(M, R, Z));
    OK(p->ctx, sps_block_get(Z, 0, 3, z, 3, SPS_ROW_MAJOR, SPS_HOST));
    sps_precond_destroy(&M);
    sps_block_destroy(&Z);
}

START_TEST(preconditioners_in_floats_are_those_of_doubles_rounded)
{
    static const char *const name[] = { "fsai", "isai", "block_jacobi", "ilu0",
                                        "ic0" };
    sps_context *ctx = runner_context();
    static double a[900 * 3], b[900 * 3];

    for (int t = 0; t < 5; t++) {
        problem p;
        sps_block *R;
        double worst = 0, largest = 0;

        open_grid(&p, ctx, 900, 0.1, 3);
        p.opt.precond = name[t];
        p.opt.block_size = 4;
        OK(ctx, sps_operator_csr(ctx, p.A, 3, NULL, &p.op));
        R = fixture_block(ctx, 900, 3, p.b, 3);
        precondition(&p, "double", R, a);
        precondition(&p, "single", R, b);
        for (int i = 0; i < 900 * 3; i++) {
            worst = fmax(worst, fabs(a[i] - b[i]));
            largest = fmax(largest, fabs(a[i]));
        }
        ck_assert_msg(worst > 0 && worst < 1e-6 * largest, "%s: %g of %g",
                      name[t], worst, largest);
        sps_block_destroy(&R);
        problem_close(&p);
    }
    fixture_close(&ctx);
}
END_TEST

/* z = M r where M was made of the values of p, then given those times scale. */
static void precondition_scaled(problem *p, const char *precision, double scale,
                                sps_block *R, double *z)
{
    double *val = malloc((size_t)p->A->nnz * sizeof *val);
    sps_precond *M = NULL;
    sps_block *Z = fixture_block(p->ctx, p->A->nrow, 3, NULL, 0);

    for (int64_t q = 0; q < p->A->nnz; q++)
        val[q] = scale * ((double *)p->A->val)[q];
    p->opt.precond_precision = precision;
    OK(p->ctx, sps_operator_set_values(p->op, p->A->val, SPS_HOST));
    OK(p->ctx, sps_precond_create(p->op, 3, &p->opt, &M));
    OK(p->ctx, sps_operator_set_values(p->op, val, SPS_HOST));
    OK(p->ctx, sps_precond_update(M));
    OK(p->ctx, sps_precond_apply(M, R, Z));
    OK(p->ctx, sps_block_get(Z, 0, 3, z, 3, SPS_ROW_MAJOR, SPS_HOST));
    sps_precond_destroy(&M);
    sps_block_destroy(&Z);
    free(val);
}

START_TEST(new_values_beyond_floats_put_a_preconditioner_in_doubles)
{
    static const char *const name[] = { "fsai", "isai", "block_jacobi", "ilu0",
                                        "ic0" };
    static double a[900 * 3], b[900 * 3];

    for (int t = 0; t < 5; t++) {
        sps_context *ctx = runner_context();
        double largest = 0;
        sps_block *R;
        problem p;

        open_grid(&p, ctx, 900, 0.1, 3);
        p.opt.precond = name[t];
        p.opt.block_size = 4;
        OK(ctx, sps_operator_csr(ctx, p.A, 3, NULL, &p.op));
        R = fixture_block(ctx, 900, 3, p.b, 3);
        precondition_scaled(&p, "double", ldexp(1, -220), R, a);
        ck_assert(!fixture_noted(ctx, "leave the range of floats"));
        precondition_scaled(&p, "single", ldexp(1, -220), R, b);
        ck_assert(fixture_noted(ctx, "leave the range of floats"));
        for (int i = 0; i < 900 * 3; i++) largest = fmax(largest, fabs(a[i]));
        for (int i = 0; i < 900 * 3; i++)
            ck_assert_msg(fabs(a[i] - b[i]) <= 1e-6 * largest,
                          "%s: %g, not %g", name[t], b[i], a[i]);
        sps_block_destroy(&R);
        problem_close(&p);
        fixture_close(&ctx);
    }
}
END_TEST

/* What was asked and cannot be is not swallowed. */
START_TEST(floats_that_nothing_stores_are_told)
{
    sps_context *ctx = runner_context();
    problem p;

    open_grid(&p, ctx, 900, 0.1, 3);
    p.opt.solver = "gmres";
    p.opt.precision = "mixed";
    p.opt.precond = "ilut";
    solve(&p, SPS_STOP_CONVERGED, "gmres");
    p.opt.precond_precision = p.opt.basis = "single";
    p.opt.precond = "ilu0";
    memset(p.x, 0, 2700 * sizeof *p.x);
    solve(&p, SPS_STOP_CONVERGED, "gmres");
    ck_assert(!fixture_noted(ctx, "ilut"));
    ck_assert(!fixture_noted(ctx, "ilu0"));
    ck_assert(!fixture_noted(ctx, "changes nothing"));
    p.opt.precond = "ilut";
    p.opt.solver = "bicgstab";
    memset(p.x, 0, 2700 * sizeof *p.x);
    solve(&p, SPS_STOP_CONVERGED, "bicgstab");
    ck_assert(fixture_noted(ctx, "ilut: values in double precision"));
    ck_assert(fixture_noted(ctx, "bicgstab: basis single changes nothing"));
    problem_close(&p);
    fixture_close(&ctx);
}
END_TEST

START_TEST(precision_mixed_takes_refinement_for_block_cg_and_cg)
{
    sps_context *ctx = runner_context();

    for (int k = 1; k <= 4; k += 3) {
        problem p;

        open_grid(&p, ctx, 2500, 0.01, k);
        p.opt.solver = k == 1 ? "cg" : "block_cg";
        p.opt.precision = "mixed";
        solve(&p, SPS_STOP_CONVERGED, "refinement");
        problem_close(&p);
    }
    fixture_close(&ctx);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(refinement_reaches_the_accuracy_of_doubles),
    RUNNER_TEST(refinement_takes_few_iterations_more_than_doubles),
    RUNNER_TEST(where_floats_gain_nothing_doubles_go_on),
    RUNNER_TEST(what_does_not_serve_in_floats_is_said_and_solved_in_doubles),
    RUNNER_TEST(a_cycle_too_long_leaves_the_guess_to_doubles),
    RUNNER_TEST(with_any_other_preconditioner_doubles_work_as_without_floats),
    RUNNER_TEST(how_far_refinement_runs_ahead_changes_no_bit),
    RUNNER_TEST(a_basis_in_floats_reaches_the_accuracy_of_doubles),
    RUNNER_TEST(where_a_basis_in_floats_brings_nothing_doubles_go_on),
    RUNNER_TEST(a_basis_in_floats_takes_half_of_the_memory),
    RUNNER_TEST(without_memory_for_doubles_floats_end_it_honestly),
    RUNNER_TEST(block_gmres_keeps_doubles_where_floats_do_not_serve),
    RUNNER_TEST(preconditioners_in_floats_are_those_of_doubles_rounded),
    RUNNER_TEST(new_values_beyond_floats_put_a_preconditioner_in_doubles),
    RUNNER_TEST(floats_that_nothing_stores_are_told),
    RUNNER_TEST(precision_mixed_takes_refinement_for_block_cg_and_cg),
};

RUNNER_MAIN("refinement", tests)
