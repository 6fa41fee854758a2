/* SPDX-License-Identifier: BSD-3-Clause */
/* check_stored_floats.c - what methods store in single precision: Krylov bases,
 * which are replaced by doubles where single precision does not converge, and
 * preconditioners. */
#include <math.h>
#include <stdlib.h>

#include "core/backend.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/floats.h"

/* Convergence with the basis in single and in double precision: single may take
 * up to half as many iterations again. */
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
    p.opt.precision = "single_basis";
    q.opt.precision = "double";
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

/* The condition exceeds the precision of floats: rounding of v_(j+1) is as
 * large as the residual. */
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
    p.opt.precision = "double";
    solve(&p, SPS_STOP_CONVERGED, solver);
    ck_assert(!fixture_noted(ctx, "makes no progress"));
    memset(p.x, 0, 4000 * sizeof *p.x);
    p.opt.precision = "mixed";
    solve(&p, SPS_STOP_CONVERGED, solver);
    ck_assert(fixture_noted(ctx, "the basis in single precision makes no "
                                 "progress; double precision from iteration"));
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

/* Bytes allocated by a solver of 8 columns in the context's memory space. */
static size_t bytes_of_solver(sps_context *ctx, const char *solver,
                              const char *basis)
{
    sps_context_info info[2] = { { .struct_size = sizeof *info },
                                 { .struct_size = sizeof *info } };
    sps_solver *s = NULL;
    problem p;

    open_grid(&p, ctx, 10000, 0.01, 8);
    p.opt.solver = solver;
    p.opt.precision = basis;
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
        narrow = bytes_of_solver(ctx, solver[t], "single_basis");
        wide = bytes_of_solver(ctx, solver[t], "double");
        ck_assert_msg((double)narrow < 0.62 * (double)wide,
                      "%s: %zu bytes, in doubles %zu", solver[t], narrow,
                      wide);
        ck_assert(fixture_noted(ctx, "MB more"));
    }
    fixture_close(&ctx);
}
END_TEST

/* Two solves by one solver; during the first, allocations fail. */
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
    p.opt.precision = "single_basis";
    OK(ctx, sps_operator_csr(ctx, p.A, 4, &p.opt, &p.op));
    OK(ctx, sps_solver_create(p.op, NULL, 4, &p.opt, &s));
    B = fixture_block(ctx, 1000, 4, p.b, 4);
    X = fixture_block(ctx, 1000, 4, NULL, 4);
    fail_alloc_allow(o.place == SPS_CUDA ? &device : &host, 0);
    OK(ctx, sps_solver_linear(s, B, X, &r));
    ck_assert(o.place == SPS_CUDA ? device.fired : host.fired);
    if (o.place == SPS_CUDA)   /* otherwise the note cannot be allocated
                                  either */
        ck_assert(fixture_noted(ctx, "no memory for one in double precision"));
    fail_alloc_allow(&host, -1);
    fail_alloc_allow(&device, -1);
    ck_assert_int_lt(r.stop, 0);
    ck_assert(r.worst_residual <= 1 && r.worst_residual > p.opt.rtol);
    for (int again = 0; again < 2; again++) {
        OK(ctx, sps_solver_linear(s, B, X, &r));
        ck_assert_int_eq(r.stop, SPS_STOP_CONVERGED);
    }
    ck_assert(fixture_noted(ctx, "double precision from iteration"));
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

static sps_status lost(sps_context *ctx, size_t bytes, void **p_p)
{
    (void)bytes;
    (void)p_p;
    return spsi_fail(ctx, SPS_EDEVICE, "the device fell off the bus");
}

/* Only an allocation failure is reported as such: any other error while the
 * basis in doubles is allocated becomes the error of the solve. */
START_TEST(a_device_that_fails_is_not_called_lack_of_memory)
{
    static const char *const solver[] = { "gmres", "block_gmres" };

    for (int t = 0; t < 2; t++) {
        sps_context *ctx = runner_context();
        const sps_backend *real = ctx->backend;
        sps_backend failing = *real;
        sps_csr *A = pairs(ctx, 1000);
        sps_solver *s = NULL;
        sps_block *B, *X;
        problem p;

        problem_open(&p, ctx, zoo_copy(A), 4);
        p.opt.solver = solver[t];
        p.opt.precond = "none";
        p.opt.rtol = 1e-6;
        p.opt.precision = "single_basis";
        OK(ctx, sps_operator_csr(ctx, p.A, 4, &p.opt, &p.op));
        OK(ctx, sps_solver_create(p.op, NULL, 4, &p.opt, &s));
        B = fixture_block(ctx, 1000, 4, p.b, 4);
        X = fixture_block(ctx, 1000, 4, NULL, 4);
        failing.alloc = lost;
        ctx->backend = &failing;
        ck_assert_int_eq(sps_solver_linear(s, B, X, NULL), SPS_EDEVICE);
        ctx->backend = real;
        ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "off the bus"));
        ck_assert(!fixture_noted(ctx, "no memory"));
        OK(ctx, sps_solver_linear(s, B, X, NULL));
        sps_solver_destroy(&s);
        sps_block_destroy(&B);
        sps_block_destroy(&X);
        problem_close(&p);
        sps_csr_destroy(ctx, &A);
        fixture_close(&ctx);
    }
}
END_TEST

START_TEST(block_gmres_keeps_doubles_where_floats_do_not_serve)
{
    sps_context *ctx = runner_context();
    problem p;

    open_grid(&p, ctx, 900, 0.01, 33);
    p.opt.solver = "block_gmres";
    p.opt.precision = "single_basis";
    solve(&p, SPS_STOP_CONVERGED, "block_gmres");
    ck_assert(fixture_noted(ctx, "the basis is in double precision"));
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

    p->opt.precision = precision;
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
        precondition(&p, "single_precond", R, b);
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

/* z = M r where M was built from the values of p, then updated with those times
 * scale. */
static void precondition_scaled(problem *p, const char *precision, double scale,
                                sps_block *R, double *z)
{
    double *val = malloc((size_t)p->A->nnz * sizeof *val);
    sps_precond *M = NULL;
    sps_block *Z = fixture_block(p->ctx, p->A->nrow, 3, NULL, 0);

    for (int64_t q = 0; q < p->A->nnz; q++)
        val[q] = scale * ((double *)p->A->val)[q];
    p->opt.precision = precision;
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
        ck_assert(!fixture_noted(ctx, "exceed the range of single precision"));
        precondition_scaled(&p, "single_precond", ldexp(1, -220), R, b);
        ck_assert(fixture_noted(ctx, "exceed the range of single precision"));
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

/* A request that cannot be satisfied is reported in a note. */
START_TEST(floats_that_nothing_stores_are_told)
{
    sps_context *ctx = runner_context();
    problem p;

    open_grid(&p, ctx, 900, 0.1, 3);
    p.opt.solver = "gmres";
    p.opt.precision = "mixed";
    p.opt.precond = "ilut";
    solve(&p, SPS_STOP_CONVERGED, "gmres");
    p.opt.precision = "single_precond";
    p.opt.precond = "ilu0";
    memset(p.x, 0, 2700 * sizeof *p.x);
    solve(&p, SPS_STOP_CONVERGED, "gmres");
    ck_assert(!fixture_noted(ctx, "ilut"));
    ck_assert(!fixture_noted(ctx, "ilu0"));
    ck_assert(!fixture_noted(ctx, "has no effect"));
    p.opt.precond = "ilut";
    p.opt.solver = "bicgstab";
    memset(p.x, 0, 2700 * sizeof *p.x);
    solve(&p, SPS_STOP_CONVERGED, "bicgstab");
    ck_assert(fixture_noted(ctx, "ilut: its values are in double precision"));
    p.opt.precision = "single_basis";
    memset(p.x, 0, 2700 * sizeof *p.x);
    solve(&p, SPS_STOP_CONVERGED, "bicgstab");
    ck_assert(fixture_noted(ctx, "bicgstab: precision single_basis has no "
                                 "effect"));
    problem_close(&p);
    fixture_close(&ctx);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(a_basis_in_floats_reaches_the_accuracy_of_doubles),
    RUNNER_TEST(where_a_basis_in_floats_brings_nothing_doubles_go_on),
    RUNNER_TEST(a_basis_in_floats_takes_half_of_the_memory),
    RUNNER_TEST(without_memory_for_doubles_floats_end_it_honestly),
    RUNNER_TEST(a_device_that_fails_is_not_called_lack_of_memory),
    RUNNER_TEST(block_gmres_keeps_doubles_where_floats_do_not_serve),
    RUNNER_TEST(preconditioners_in_floats_are_those_of_doubles_rounded),
    RUNNER_TEST(new_values_beyond_floats_put_a_preconditioner_in_doubles),
    RUNNER_TEST(floats_that_nothing_stores_are_told),
};

RUNNER_MAIN("check_stored_floats", tests)
