/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_breakdown.c - the same methods where Krylov methods are known to
 * break down: dependent right-hand sides, invariant subspaces, zero curvature
 * p'A p, skew-symmetric, nilpotent and singular matrices. */
#include "tests/support/callback.h"
#include "tests/support/methods.h"

static double swapped(int64_t i, int64_t j)
{
    return i / 2 == j / 2 && i != j;
}

/* Pairs [0 1; 1 0]: zero curvature in every coordinate direction, and
 * eigenvalues 1 and -1. */
START_TEST(matrices_without_curvature_are_solved)
{
    const char *name;

    FOR_INDEFINITE(name) {
        problem p;

        problem_open(&p, ctx, filled("tridiagonal", 64, swapped), 3);
        for (int i = 1; i < 64; i += 2)
            for (int j = 0; j < 3; j++) p.b[3 * i + j] = 0;
        p.opt.solver = name;
        p.opt.precond = "none";
        p.opt.max_iterations = 500;
        must_be_honest(&p, "swapped pairs");
        if (has_full_memory(name) || !strcmp(name, "minres")) {
            ck_assert_int_eq(p.result.stop, SPS_STOP_CONVERGED);
            ck_assert_int_le(p.result.iterations, 3);
        }
        problem_close(&p);
    }
}
END_TEST

/* Columns: 0..3 equal, 4 = sum of 5 and 6, 7 = 0, 8 = A times column 5. */
START_TEST(dependent_and_zero_right_hand_sides_are_solved_too)
{
    const char *name;

    FOR_GENERAL(name) {
        problem p;

        problem_open(&p, ctx, filled("grid5", 900, convection), 12);
        make_dependent(&p);
        p.opt.solver = name;
        must_converge(&p, "dependent columns");
        for (int64_t i = 0; i < 900; i++) ck_assert(p.x[12 * i + 7] == 0);
        must_converge(&p, "exact guess");
        ck_assert_int_eq(p.result.iterations, 0);
        problem_close(&p);
    }
}
END_TEST

static double identity(int64_t i, int64_t j)
{
    return i == j;
}

static double three_values(int64_t i, int64_t j)
{
    return i == j ? (double)(i % 3) - 3.5 : 0;
}

/* The Krylov space is invariant after as many steps as A has distinct
 * eigenvalues. */
START_TEST(a_happy_breakdown_is_a_solution)
{
    const char *name;

    FOR_GENERAL(name)
    for (int k = 1; k < 8; k += 3) {
        problem p;

        problem_open(&p, ctx, filled("diagonal", 300, identity), k);
        p.opt.solver = name;
        p.opt.precond = "none";
        must_converge(&p, "A = I");
        ck_assert_int_le(p.result.iterations, 2);
        problem_close(&p);
        problem_open(&p, ctx, filled("diagonal", 300, three_values), k);
        p.opt.solver = name;
        p.opt.precond = "none";
        must_converge(&p, "three eigenvalues");
        ck_assert_int_le(p.result.iterations, 8);
        problem_close(&p);
    }
}
END_TEST

/* Columns 0 and 1 are eigenvectors, column 2 is not. */
START_TEST(eigenvectors_leave_and_the_others_go_on)
{
    const char *name;

    FOR_GENERAL(name) {
        problem p;

        problem_open(&p, ctx, filled("grid5", 400, convection), 3);
        for (int i = 0; i < 400; i++)   /* diagonal rows 0 and 399 */
            for (int64_t q = p.A->rowptr[i]; q < p.A->rowptr[i + 1]; q++)
                if ((i == 0 || i == 399 || p.A->col[q] == 0 ||
                     p.A->col[q] == 399) && p.A->col[q] != i)
                    ((double *)p.A->val)[q] = 0;
        for (int i = 0; i < 400; i++) {
            p.b[3 * i] = i == 0;
            p.b[3 * i + 1] = i == 399;
        }
        p.opt.solver = name;
        p.opt.precond = "none";
        must_converge(&p, "eigenvectors");
        problem_close(&p);
    }
}
END_TEST

/* Row i has a one in column i + 1, cyclically: the residual of GMRES stagnates
 * for n - 1 steps and vanishes at the n-th. */
static sps_csr *shift(int64_t n, bool cyclic)
{
    sps_csr *A = zoo("diagonal", n, ZOO_SPD);

    for (int64_t i = 0; i < n; i++) {
        A->col[i] = (int32_t)((i + 1) % n);
        ((double *)A->val)[i] = i + 1 < n || cyclic;
    }
    A->props = SPS_SORTED;
    return A;
}

START_TEST(a_cyclic_shift_stands_still_until_the_end)
{
    const char *name;

    FOR_GENERAL(name) {
        problem p;

        problem_open(&p, ctx, shift(40, true), 1);
        for (int i = 0; i < 40; i++) p.b[i] = i == 0;
        p.opt.solver = name;
        p.opt.precond = "none";
        p.opt.max_iterations = 2000;
        must_be_honest(&p, "cyclic shift");
        if (has_full_memory(name)) {
            ck_assert_int_eq(p.result.stop, SPS_STOP_CONVERGED);
            ck_assert_int_eq(p.result.iterations, 40);
            memset(p.x, 0, 40 * sizeof *p.x);
            p.opt.restart = 10;
            must_be_honest(&p, "cyclic shift, short cycles");
            ck_assert_int_eq(p.result.columns_converged, 0);
            ck_assert_int_eq(p.result.stop, SPS_STOP_STAGNATED);
        }
        problem_close(&p);
    }
}
END_TEST

START_TEST(a_nilpotent_matrix_is_singular_and_said_to_be)
{
    const char *name;

    FOR_GENERAL(name) {
        problem p;

        problem_open(&p, ctx, shift(20, false), 2);
        for (int i = 0; i < 20; i++) {
            p.b[2 * i] = i == 19;
            p.b[2 * i + 1] = i == 3;
        }
        p.opt.solver = name;
        p.opt.precond = "none";
        p.opt.max_iterations = 2000;
        must_be_honest(&p, "nilpotent");
        if (solves_least_squares(name))
            ck_assert_int_eq(p.column[0], SPS_STOP_CONVERGED_LEAST_SQUARES);
        else
            ck_assert_int_lt(p.result.stop, 0);
        problem_close(&p);
    }
}
END_TEST

static double steep(int64_t i, int64_t j)
{
    return i == j ? 1 : j == i + 1 && i % 2 == 0 ? 3e7 : 0;
}

/* Pairs [1 c; 0 1]: both A and its inverse have norm c.  Two steps span the
 * whole space; the triangular factor has pivots c and 1 / c.  Their ratio c^-2
 * is below a worst-case rounding bound, yet the solution, of norm c, is well
 * determined. */
START_TEST(steep_pairs_are_solved_although_their_triangle_looks_singular)
{
    const char *name;

    FOR_GENERAL(name)
    for (int k = 1; k < 34; k += 16) {
        problem p;

        if (!has_full_memory(name)) continue;
        problem_open(&p, ctx, filled("tridiagonal", 200, steep), k);
        p.opt.solver = name;
        p.opt.precond = "none";
        p.opt.rtol = 1e-7;
        must_converge(&p, "steep pairs");
        problem_close(&p);
    }
}
END_TEST

static double skew(int64_t i, int64_t j)
{
    return j == i ? 0 : j == i + 1 ? 1.5 : j == i - 1 ? -1.5 : 0;
}

/* r'A r = 0 for every r: BiCG and related methods divide by zero. */
START_TEST(a_skew_matrix_is_solved_or_admitted)
{
    const char *name;

    FOR_GENERAL(name)
    for (int k = 1; k < 6; k += 4) {
        problem p;

        problem_open(&p, ctx, filled("tridiagonal", 40, skew), k);
        p.opt.solver = name;
        p.opt.precond = "none";
        p.opt.max_iterations = 2000;
        must_be_honest(&p, "skew");
        if (has_full_memory(name))
            ck_assert_msg(p.result.stop == SPS_STOP_CONVERGED, "%s: %s", name,
                          sps_stop_string(p.result.stop));
        problem_close(&p);
    }
}
END_TEST

/* The last row is zero; the right-hand side is zero there, and then not. */
START_TEST(singular_systems_are_solved_where_consistent)
{
    const char *name;

    FOR_GENERAL(name)
    for (int consistent = 0; consistent < 2; consistent++) {
        problem p;

        problem_open(&p, ctx, dominant("tridiagonal", 60, false), 3);
        for (int64_t q = 0; q < p.A->nnz; q++)
            if (p.A->col[q] == 59 || q >= p.A->rowptr[59])
                ((double *)p.A->val)[q] = 0;
        for (int j = 0; j < 3; j++) p.b[3 * 59 + j] = consistent ? 0 : 0.1;
        p.opt.solver = name;
        p.opt.precond = "none";
        p.opt.max_iterations = 2000;
        must_be_honest(&p, "a zero row");
        if (consistent)
            ck_assert_msg(p.result.stop == SPS_STOP_CONVERGED, "%s: %s", name,
                          sps_stop_string(p.result.stop));
        else if (solves_least_squares(name))
            ck_assert_int_eq(p.result.stop, SPS_STOP_CONVERGED_LEAST_SQUARES);
        else
            ck_assert_int_eq(p.result.columns_converged, 0);
        problem_close(&p);
    }
}
END_TEST

/* [4 0 0; 0 K B; 0 B' 0] with two rows and one column in B: rank 4 of 5.
 * Column 0 is consistent, column 1 is not.  A common Krylov space must not
 * prevent the first from converging, and no method may return a large multiple
 * (1e30) of the null vector, whose residual cannot be computed in doubles. */
/* A saddle point matrix of rank 4; column 1 of b is outside of its range. */
static const double inconsistent_b[5][2] = { { 20, 0 }, { -12, 0 }, { 31, 0 },
                                             { 0, -7 }, { 0, -3 } };

static void open_saddle(problem *p, const char *method)
{
    static const double a[5][5] = { { 4, 0, 0, 0, 0 }, { 0, 4, 0, 0, 0 },
                                    { 0, 0, 6, -2, -5 }, { 0, 0, -2, 0, 0 },
                                    { 0, 0, -5, 0, 0 } };
    sps_csr *A = zoo("band", 5, ZOO_RANDOM);

    ck_assert_int_eq(A->nnz, 25);
    for (int q = 0; q < 25; q++) ((double *)A->val)[q] = a[q / 5][q % 5];
    problem_open(p, ctx, A, 2);
    memcpy(p->b, inconsistent_b, sizeof inconsistent_b);
    p->opt.solver = method;
    p->opt.precond = "none";
    p->opt.max_iterations = 500;
}

START_TEST(an_inconsistent_column_does_not_spoil_its_neighbour)
{
    const char *name;

    FOR_INDEFINITE(name) {
        problem p;
        double error = 0;

        open_saddle(&p, name);
        must_be_honest(&p, "a saddle point of rank 4");
        for (int j = 0; j < 2; j++) error = fmax(error, p.residual[j]);
        ck_assert(error > 0.1);               /* column 1 has no solution */
        ck_assert_int_le(p.result.columns_converged,
                         solves_least_squares(name) ? 2 : 1);
        ck_assert_msg(p.residual[0] <= p.opt.rtol, "%s: %g, %s", name,
                      p.residual[0], sps_stop_string(p.result.stop));
        problem_close(&p);
    }
}
END_TEST

/* Iterates grow until eps ||A|| ||x|| is as large as ||b||: a residual computed
 * in doubles may then look better than that of X = 0 although it is larger. */
START_TEST(a_residual_that_is_rounding_replaces_no_iterate)
{
    const int step = runner_quick() || runner_place() == SPS_CUDA ? 300 : 50;
    const char *name;

    FOR_INDEFINITE(name) {
        for (int t = 0; t < 4000; t += step) {
            problem p;

            open_saddle(&p, name);
            for (int q = 0; q < 10; q++)
                p.b[q] *= 1 + 0.37e-6 * t * (q + 1) + 1e-4 * t;
            must_be_honest(&p, "a saddle point, b scaled");
            problem_close(&p);
        }
    }
}
END_TEST

/* A product by the library inside a callback, with a NaN in row 7 of the result
 * of one call. */
struct trap {
    sps_context *ctx;
    const sps_operator *op, *back;
    int calls, bad_at;
};

static sps_status spoil_row_7(const struct trap *t, double *Y, int64_t ldy,
                              int k)
{
    sps_block *row = NULL;
    double *nan = malloc((size_t)k * sizeof *nan);
    sps_status st = sps_block_wrap(t->ctx, 1, k, Y + 7 * ldy, ldy, &row);

    for (int j = 0; j < k; j++) nan[j] = NAN;
    if (st == SPS_OK)
        st = sps_block_set(row, 0, k, nan, k, SPS_ROW_MAJOR, SPS_HOST);
    sps_block_destroy(&row);
    free(nan);
    return st;
}

static int trapped(struct trap *t, const sps_operator *op, double alpha,
                   const double *X, int64_t ldx, double beta, double *Y,
                   int64_t ldy, int64_t n, int k)
{
    sps_block *from = NULL, *to = NULL;
    sps_status st;

    st = sps_block_wrap(t->ctx, n, k, (double *)(uintptr_t)X, ldx, &from);
    if (st == SPS_OK) st = sps_block_wrap(t->ctx, n, k, Y, ldy, &to);
    if (st == SPS_OK) st = sps_operator_apply(op, alpha, from, beta, to);
    if (st == SPS_OK && ++t->calls == t->bad_at)
        st = spoil_row_7(t, Y, ldy, k);
    sps_block_destroy(&from);
    sps_block_destroy(&to);
    return (int)st;
}

static int trap_apply(double alpha, const double *X, int64_t ldx, double beta,
                      double *Y, int64_t ldy, int64_t n, int k, void *stream,
                      void *data)
{
    struct trap *t = data;

    (void)stream;
    return trapped(t, t->op, alpha, X, ldx, beta, Y, ldy, n, k);
}

static int trap_back(double alpha, const double *X, int64_t ldx, double beta,
                     double *Y, int64_t ldy, int64_t n, int k, void *stream,
                     void *data)
{
    struct trap *t = data;

    (void)stream;
    return trapped(t, t->back, alpha, X, ldx, beta, Y, ldy, n, k);
}

START_TEST(a_nan_from_the_operator_ends_it_with_the_best_iterate)
{
    const char *name;

    FOR_GENERAL(name)
    for (int bad_at = 9; bad_at < 40; bad_at += 10) {
        problem p;
        struct trap trap = { .ctx = ctx, .bad_at = bad_at };
        sps_operator *op = NULL, *back = NULL;
        sps_csr *T = NULL;

        problem_open(&p, ctx, filled("grid5", 900, convection), 3);
        ck_assert_int_eq(sps_operator_csr(ctx, p.A, 3, NULL, &op), SPS_OK);
        ck_assert_int_eq(sps_csr_transpose(ctx, p.A, &T), SPS_OK);
        ck_assert_int_eq(sps_operator_csr(ctx, T, 3, NULL, &back), SPS_OK);
        trap.op = op;
        trap.back = back;
        p.opt.solver = name;
        p.opt.rtol = 1e-13;
        ck_assert_int_eq(solves_least_squares(name)
            ? sps_operator_user_pair(ctx, 900, 900, trap_apply, trap_back,
                                     &trap, &p.op)
            : sps_operator_user(ctx, 900, trap_apply, &trap, 0, &p.op), SPS_OK);
        must_be_honest(&p, "NaN from the operator");
        ck_assert_msg(p.result.stop == SPS_STOP_NOT_FINITE, "%s, call %d: %s",
                      name, bad_at, sps_stop_string(p.result.stop));
        ck_assert_int_le(p.result.iterations, bad_at);
        sps_operator_destroy(&op);
        sps_operator_destroy(&back);
        sps_csr_destroy(ctx, &T);
        problem_close(&p);
    }
}
END_TEST

/* Z = R / 4, with a NaN in row 7 at one call. */
static int trap_quarter(double alpha, const double *R, int64_t ldr, double beta,
                        double *Z, int64_t ldz, int64_t n, int k, void *stream,
                        void *data)
{
    struct trap *t = data;
    const bool bad = ++t->calls == t->bad_at;

    (void)stream;
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < k; j++) {
            const double quarter = bad && i == 7 ? NAN : 0.25 * R[i * ldr + j];

            Z[i * ldz + j] = alpha * quarter +
                             (beta != 0 ? beta * Z[i * ldz + j] : 0);
        }
    return 0;
}

START_TEST(a_nan_from_the_preconditioner_ends_it_with_the_best_iterate)
{
    const char *name;

    FOR_GENERAL(name)
    for (int bad_at = 9; bad_at < 40; bad_at += 10) {
        problem p;
        struct trap trap = { .bad_at = bad_at };
        callback quarter = { ctx, trap_quarter, &trap };

        if (solves_least_squares(name)) continue;   /* they take none */
        problem_open(&p, ctx, filled("grid5", 900, convection), 3);
        p.opt.solver = name;
        p.opt.rtol = 1e-13;
        ck_assert_int_eq(sps_precond_user(ctx, 900, callback_anywhere,
                                          &quarter, &p.M), SPS_OK);
        must_be_honest(&p, "NaN from the preconditioner");
        ck_assert_msg(p.result.stop == SPS_STOP_NOT_FINITE, "%s, call %d of "
                      "%d: %s", name, bad_at, trap.calls,
                      sps_stop_string(p.result.stop));
        sps_precond_destroy(&p.M);
        problem_close(&p);
    }
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(matrices_without_curvature_are_solved),
    RUNNER_TEST(dependent_and_zero_right_hand_sides_are_solved_too),
    RUNNER_TEST(a_happy_breakdown_is_a_solution),
    RUNNER_TEST(eigenvectors_leave_and_the_others_go_on),
    RUNNER_TEST(a_cyclic_shift_stands_still_until_the_end),
    RUNNER_TEST(a_nilpotent_matrix_is_singular_and_said_to_be),
    RUNNER_TEST(steep_pairs_are_solved_although_their_triangle_looks_singular),
    RUNNER_TEST(a_skew_matrix_is_solved_or_admitted),
    RUNNER_TEST(singular_systems_are_solved_where_consistent),
    RUNNER_TEST(an_inconsistent_column_does_not_spoil_its_neighbour),
    RUNNER_TEST(a_residual_that_is_rounding_replaces_no_iterate),
    RUNNER_TEST(a_nan_from_the_operator_ends_it_with_the_best_iterate),
    RUNNER_TEST(a_nan_from_the_preconditioner_ends_it_with_the_best_iterate),
};
METHODS_MAIN("conform_breakdown", tests)
