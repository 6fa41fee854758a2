/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_directed.c - singular nonsymmetric matrices: Laplacians of directed
 * graphs.  Rows sum to zero, A 1 = 0, but the range of A is orthogonal to
 * another vector, pi'A = 0.
 *
 * Here a cycle of weights w_i in { 1, 2, 4 }, row i: w_i (x_i - x_i+1), so that
 * pi_i = 4 / w_i.  These integers are exact in doubles, and so are the
 * consequences: A x = b is consistent if and only if pi'b = 0. */
#include "tests/support/fixture.h"
#include "tests/support/methods.h"
#include "tests/support/wide.h"

enum { N = 12, COLUMNS = 3 };

static const int weights[] = { 1, 4, 2, 2, 1, 4, 1, 1, 2, 4, 4, 2 };

/* NULL: unit weights, for which the columns sum to zero, too. */
static sps_csr *cycle(const int *weight)
{
    sps_csr *C = NULL, *A;

    OK(ctx, sps_csr_create(ctx, N, N, 2 * N, SPS_F64, &C));
    for (int i = 0; i < N; i++) {
        const int next = (i + 1) % N, first = next < i ? next : i;
        double *val = (double *)C->val + 2 * i;
        const double w = weight ? weight[i] : 1;

        C->col[2 * i] = first;
        C->col[2 * i + 1] = first == i ? next : i;
        val[0] = first == i ? w : -w;
        val[1] = -val[0];
        C->rowptr[i + 1] = 2 * (i + 1);
    }
    A = zoo_copy(C);
    sps_csr_destroy(ctx, &C);
    return A;
}

static double weight_of(const problem *p, int i)
{
    return p->A->col[2 * i] == i ? ((double *)p->A->val)[2 * i]
                                 : ((double *)p->A->val)[2 * i + 1];
}

/* pi'b, exact where b is. */
static double across(const problem *p, int j)
{
    double sum = 0;

    for (int i = 0; i < N; i++)
        sum += 4 / weight_of(p, i) * p->b[i * COLUMNS + j];
    return sum;
}

static double mean(const problem *p, int j)
{
    double sum = 0;

    for (int i = 0; i < N; i++) sum += p->b[i * COLUMNS + j];
    return sum;
}

/* b = A z + shift with small integers z. */
static void reach(problem *p, double shift)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < COLUMNS; j++) {
            const int z = i * (i + 3 * j + 1) % 7, y = (i + 1) % N;
            const int next = y * (y + 3 * j + 1) % 7;

            p->b[i * COLUMNS + j] = weight_of(p, i) * (z - next) + shift;
        }
}

static void open_cycle(problem *p, const int *weight, const char *solver)
{
    problem_open(p, ctx, cycle(weight), COLUMNS);
    p->opt.solver = solver;
    p->opt.precond = "none";
    p->opt.rtol = 1e-8;
}

/* The ratio ||A'(b - A x)|| / ||b - A x||: 0 for a least squares solution. */
static double slope(const problem *p, int j)
{
    double r[N], g[N] = { 0 }, rr = 0, gg = 0;

    for (int i = 0; i < N; i++) {
        r[i] = p->b[i * COLUMNS + j];
        for (int64_t q = 2 * i; q < 2 * i + 2; q++)
            r[i] -= ((double *)p->A->val)[q] *
                    p->x[p->A->col[q] * COLUMNS + j];
        rr += r[i] * r[i];
        for (int64_t q = 2 * i; q < 2 * i + 2; q++)
            g[p->A->col[q]] += ((double *)p->A->val)[q] * r[i];
    }
    for (int i = 0; i < N; i++) gg += g[i] * g[i];
    return sqrt(gg / rr);
}

static bool is_least_squares(sps_stop stop)
{
    return stop == SPS_STOP_LEAST_SQUARES ||
           stop == SPS_STOP_CONVERGED_LEAST_SQUARES;
}

/* Consistent columns must converge although the mean of b is not zero;
 * inconsistent ones must not be reported as converged, nor as least squares
 * solutions unless they are. */
static void judge(problem *p, const char *what)
{
    solve_ok(p);
    for (int j = 0; j < COLUMNS; j++) {
        const double r = wide_residual(p->A, p->b, p->x, COLUMNS, j);
        const bool met = across(p, j) == 0;

        ck_assert_msg(fabs(p->residual[j] - r) <= 1e-9 * r + 1e-15, "%s, %s: "
                      "residual %g, in truth %g", p->opt.solver, what,
                      p->residual[j], r);
        ck_assert_msg((r <= p->opt.rtol) == met, "%s, %s: %s at %g",
                      p->opt.solver, what, sps_stop_string(p->result.stop), r);
        if (is_least_squares(p->result.stop))
            ck_assert_msg(slope(p, j) <= 1e-6, "%s, %s: least squares, but "
                          "||A'r|| is %g ||r||", p->opt.solver, what,
                          slope(p, j));
        if (!met) ck_assert_int_ne(p->result.stop, SPS_STOP_CONVERGED);
    }
}

START_TEST(what_a_directed_graph_can_meet_is_met)
{
    const char *name;

    FOR_GENERAL(name) {
        problem p;

        open_cycle(&p, weights, name);
        reach(&p, 0);
        for (int j = 0; j < COLUMNS; j++) {
            ck_assert(across(&p, j) == 0);
            ck_assert(mean(&p, j) != 0);
        }
        judge(&p, "met by an x");
        ck_assert_int_eq(p.result.nullspace, 0);
        ck_assert_int_eq(p.result.stop, SPS_STOP_CONVERGED);
        problem_close(&p);
    }
}
END_TEST

/* After projecting out the mean, A x = b - mean has solutions in the second
 * case; they are not least squares solutions of A x = b. */
START_TEST(what_it_cannot_meet_is_not_called_least_squares)
{
    const char *name;

    FOR_GENERAL(name) {
        problem p;

        open_cycle(&p, weights, name);
        p.opt.max_iterations = 300;
        judge(&p, "drawn");
        reach(&p, 1);
        memset(p.x, 0, N * COLUMNS * sizeof *p.x);
        for (int j = 0; j < COLUMNS; j++) {
            const double shift = 1 - mean(&p, j) / N;

            for (int i = 0; i < N; i++) p.b[i * COLUMNS + j] += shift;
        }
        judge(&p, "beside what can be met");
        problem_close(&p);
    }
}
END_TEST

START_TEST(where_columns_sum_to_zero_as_well_the_mean_is_what_is_left)
{
    const char *name;

    FOR_GENERAL(name) {
        problem p;

        open_cycle(&p, NULL, name);
        reach(&p, 0);
        judge(&p, "met by an x");
        ck_assert_int_eq(p.result.nullspace, !solves_least_squares(name));
        ck_assert_int_eq(p.result.stop, SPS_STOP_CONVERGED);
        reach(&p, 1);
        memset(p.x, 0, N * COLUMNS * sizeof *p.x);
        judge(&p, "and a mean");
        ck_assert_int_eq(p.result.stop, solves_least_squares(name)
                                            ? SPS_STOP_CONVERGED_LEAST_SQUARES
                                            : SPS_STOP_LEAST_SQUARES);
        problem_close(&p);
    }
}
END_TEST

static void refused(problem *p, const char *text)
{
    sps_solver *s = NULL;

    ck_assert_int_eq(sps_solver_create(p->op, NULL, COLUMNS, &p->opt, &s),
                     SPS_EUNFIT);
    ck_assert_msg(strstr(sps_context_error(ctx), text), "%s",
                  sps_context_error(ctx));
}

START_TEST(a_null_space_of_one_side_is_refused)
{
    double one[N];
    sps_block *V = NULL;
    problem p;

    for (int i = 0; i < N; i++) one[i] = 1;
    open_cycle(&p, weights, "gmres");
    OK(ctx, sps_operator_csr(ctx, p.A, COLUMNS, NULL, &p.op));
    p.opt.nullspace = "constant";
    refused(&p, "row and column sums");
    p.opt.nullspace = "components";
    refused(&p, "row and column sums");
    p.opt.nullspace = "auto";
    V = fixture_block(ctx, N, 1, one, 1);
    p.opt.nullspace_basis = V;
    refused(&p, "transpose");
    sps_block_destroy(&V);
    problem_close(&p);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(what_a_directed_graph_can_meet_is_met),
    RUNNER_TEST(what_it_cannot_meet_is_not_called_least_squares),
    RUNNER_TEST(where_columns_sum_to_zero_as_well_the_mean_is_what_is_left),
    RUNNER_TEST(a_null_space_of_one_side_is_refused),
};
METHODS_MAIN("conform_directed", tests)
