/* SPDX-License-Identifier: BSD-3-Clause */
/* check_chain_early.c - what solver auto weighs before its first step, and that
 * it spends little on it. */
#include "driver/lanczos.h"
#include "operator/direct.h"
#include "solvers/auto/chain.h"
#include "tests/support/chain_fixture.h"

/* Multiplies the diagonal by `factor`, and all entries by `all`. */
static sps_csr *scaled(sps_csr *A, double factor, double all)
{
    for (int64_t i = 0; i < A->nrow; i++)
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            ((double *)A->val)[p] *= all * (A->col[p] == i ? factor : 1);
    return A;
}

/* ------------------------------------------------- the ends of the spectrum */

typedef struct counted {
    const sps_csr *A;
    int products;
} counted;

static int multiply(double alpha, const double *X, int64_t ldx, double beta,
                    double *Y, int64_t ldy, int64_t n, int k, void *stream,
                    void *data)
{
    counted *c = data;

    (void)stream;
    c->products++;
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < k; j++) {
            double sum = 0;

            for (int64_t p = c->A->rowptr[i]; p < c->A->rowptr[i + 1]; p++)
                sum += ((double *)c->A->val)[p] * X[c->A->col[p] * ldx + j];
            Y[i * ldy + j] = alpha * sum +
                             (beta == 0 ? 0 : beta * Y[i * ldy + j]);
        }
    return 0;
}

/* Returns the products that the Lanczos steps take. */
static int products(sps_csr *A, sps_lanczos *l)
{
    counted c = { .A = A };
    sps_operator *op = NULL;
    sps_block *X[4] = { NULL };

    OK(ctx, sps_operator_user(ctx, A->nrow, multiply, &c, 0, &op));
    for (int i = 0; i < 4; i++)
        OK(ctx, sps_block_create(ctx, A->nrow, i ? 4 : 1, &X[i]));
    for (int64_t i = 0; i < A->nrow; i++)
        ((double *)X[0]->data)[i * X[0]->ld] = 1;
    OK(ctx, sps_block_random(X[1], 7));
    OK(ctx, spsi_lanczos(op, X[0], X[1], X[2], X[3], 0, 1, l));
    for (int i = 0; i < 4; i++) sps_block_destroy(&X[i]);
    sps_operator_destroy(&op);
    zoo_free(&A);
    return c.products;
}

/* With three times the diagonal the spectrum begins with vectors at the
 * corners, at 5.33, and ends near 16. */
START_TEST(the_ends_of_a_short_spectrum_take_few_products)
{
    sps_lanczos l;

    if (runner_place() != SPS_HOST) runner_leave_out("a function on the host");
    ck_assert_int_eq(products(zoo("grid5", 900, ZOO_LAPLACIAN), &l), 28);
    ck_assert_int_le(products(scaled(zoo("grid5", 900, ZOO_LAPLACIAN), 3, 1),
                              &l), 20);
    ck_assert(l.largest > 15.4 && l.largest < 16);
    ck_assert(l.smallest > 5.3 && l.smallest < 5.4);
}
END_TEST

/* A grid of n rows that are strongly dominant but for `weak` of them. */
static sps_csr *strong(int64_t n, int64_t weak)
{
    sps_csr *A = scaled(zoo("grid5", n, ZOO_LAPLACIAN), 3, 1);

    for (int64_t i = 0; i < weak; i++)
        for (int64_t p = A->rowptr[70 * i]; p < A->rowptr[70 * i + 1]; p++)
            if (A->col[p] == 70 * i) ((double *)A->val)[p] *= 0.3;
    return A;
}

/* Returns whether no spectrum is estimated for preconditioner auto. */
static bool easy(int64_t weak)
{
    sps_csr *A = strong(40000, weak);
    sps_operator *op = NULL;
    sps_precond *M = NULL;
    sps_options opt;
    sps_status st;

    sps_options_default(&opt);
    OK(ctx, sps_operator_csr(ctx, A, 16, NULL, &op));
    st = spsi_precond_named(op, 16, "chebyshev", &opt, SPS_PASSES_LINEAR, &M);
    ck_assert_int_eq(st, SPS_EUNFIT);
    sps_operator_destroy(&op);
    zoo_free(&A);
    return strstr(sps_context_error(ctx), "strongly diagonally dominant");
}

START_TEST(dominance_says_that_no_polynomial_pays)
{
    if (runner_place() != SPS_HOST) runner_leave_out("predicted times");
    ck_assert(easy(0));
    ck_assert(easy(8));
    ck_assert(!easy(9));
}
END_TEST

/* ------------------------------------------------------------------ factors */

/* Sets *l and *o to what is known of A before a plan is made; the caller
 * destroys the operator, l->A. */
static sps_operator *examined(sps_csr *A, sps_chain *l, sps_chain_traits *o)
{
    sps_operator *op = NULL;

    *l = (sps_chain){ .ctx = ctx, .k = 4 };
    OK(ctx, sps_operator_csr(ctx, A, 4, NULL, &op));
    sps_options_default(&l->opt);
    l->A = op;
    OK(ctx, spsi_chain_examine(l, o));
    return op;
}

/* Returns what factors may take if `weak` rows are not strongly dominant. */
static double worth(int64_t weak)
{
    sps_csr *A = strong(4900, weak);
    sps_chain l;
    sps_chain_traits o;
    sps_operator *op = examined(A, &l, &o);
    const double seconds = spsi_chain_worth(&l, &o);

    sps_operator_destroy(&op);
    zoo_free(&A);
    return seconds;
}

/* Each of these rows may cost conjugate gradients an iteration. */
START_TEST(few_rows_are_worth_no_factors)
{
    const double none = worth(0);

    ck_assert_double_eq_tol(worth(4) / none, 29.0 / 25, 1e-9);
    ck_assert_double_eq_tol(worth(25) / none, 2, 1e-9);
    ck_assert_double_eq_tol(worth(26) / none, 4, 1e-9);
}
END_TEST

/* Returns whether complete factors by ilut are a step for A, which is freed. */
static bool complete(sps_csr *A)
{
    sps_chain l;
    sps_chain_traits o;
    sps_operator *op = examined(A, &l, &o);
    double seconds;

    OK(ctx, spsi_chain_complete(&l, &o, &seconds));
    sps_operator_destroy(&op);
    zoo_free(&A);
    return seconds > 0;
}

/* A diagonal and `count` rows without zeros. */
static sps_csr *full_rows(int64_t n, int64_t count)
{
    int32_t *length = calloc((size_t)n, sizeof *length);
    sps_csr *A;

    for (int64_t i = 0; i < n; i++) length[i] = i < count ? (int32_t)n : 1;
    A = zoo_rows(n, n, length, n, 0, 1, ZOO_RANDOM, SPS_F64);
    for (int64_t i = 0; i < n; i++)
        for (int32_t t = 0; t < length[i]; t++) {
            A->col[A->rowptr[i] + t] = length[i] > 1 ? t : (int32_t)i;
            ((double *)A->val)[A->rowptr[i] + t] = 1 + (i == t);
        }
    free(length);
    return A;
}

/* Row i is joined to rows i + 1 and i + step, which close loops unless step is
 * 1. */
static sps_csr *ring(int64_t n, int64_t step)
{
    const int32_t length = step > 1 ? 3 : 2;
    sps_csr *A = zoo_rows(n, n, &length, 1, 0, 1, ZOO_RANDOM, SPS_F64);

    for (int64_t i = 0; i < n; i++)
        for (int32_t t = 0; t < length; t++) {
            const int64_t to = i + (t < 2 ? t : step);

            A->col[A->rowptr[i] + t] = (int32_t)(to % n);
            ((double *)A->val)[A->rowptr[i] + t] = t ? -1 : 4;
        }
    return A;
}

/* The mean number of entries of a row does not tell chains: 3 at most in all of
 * these.  A ring has one loop, one full row is a star. */
START_TEST(chains_are_told_by_their_loops)
{
    if (runner_place() != SPS_HOST) runner_leave_out("the steps of a host");
    ck_assert(complete(zoo("tridiagonal", 6000, ZOO_SPD)));
    ck_assert(complete(ring(6000, 1)));
    ck_assert(!complete(ring(6000, 77)));
    ck_assert(complete(full_rows(6000, 1)));
    ck_assert(!complete(full_rows(6000, 2)));
    ck_assert(complete(ring(3000, 77)));
}
END_TEST

/* Rows of `length` entries next to the diagonal, which is as large as all
 * others. */
static sps_csr *band(int64_t n, int32_t length)
{
    sps_csr *A = zoo_rows(n, n, &length, 1, 0, 1, ZOO_RANDOM, SPS_F64);

    for (int64_t i = 0; i < n; i++) {
        const int64_t first = i + length <= n ? i : n - length;

        for (int32_t t = 0; t < length; t++) {
            const int64_t p = A->rowptr[i] + t;

            A->col[p] = (int32_t)(first + t);
            ((double *)A->val)[p] = first + t == i ? length : t % 2 ? 0.9 : -1;
        }
    }
    return A;
}

/* Long rows are left to the library, where it is there. */
START_TEST(without_the_module_more_is_factored_by_ilut)
{
    const bool alone = !spsi_direct_possible();

    if (runner_place() != SPS_HOST) runner_leave_out("the steps of a host");
    ck_assert(complete(band(3000, 12)));
    ck_assert_int_eq(complete(band(3000, 40)), alone);
    ck_assert(!complete(band(3000, 80)));
    ck_assert_int_eq(complete(zoo("grid7", 8000, ZOO_SPD)), alone);
}
END_TEST

/* ------------------------------------------------------------------- trials */

START_TEST(negative_definite_systems_may_take_few_iterations)
{
    problem p;

    if (runner_place() != SPS_HOST) runner_leave_out("the steps of a host");
    problem_open(&p, ctx, scaled(zoo("grid7", 1000, ZOO_SPD), 1.2, -1), 4);
    must_solve(&p, "negative");
    ck_assert_str_eq(p.result.solver, "bicgstab");
    ck_assert(!noted("auto: step 2"));
    problem_close(&p);
}
END_TEST

/* Iterations with ilu0 take a third of dense factors of the sparse one, but
 * those of the full one are as dense. */
START_TEST(dense_factors_come_after_cheaper_trials)
{
    static const int32_t length[] = { 20, 300 };

    if (runner_place() != SPS_HOST) runner_leave_out("the steps of a host");
    for (int full = 0; full < 2; full++) {
        problem p;

        problem_open(&p, ctx, band(300, length[full]), 4);
        must_solve(&p, "band");
        ck_assert_str_eq(p.result.precond, full ? "dense" : "ilu0");
        ck_assert(!noted("auto: step 2"));
        problem_close(&p);
    }
}
END_TEST

/* Returns the iterations of the trial with ilu0. */
static int trial(int64_t n)
{
    sps_csr *A = zoo("grid7", n, ZOO_SPD);
    sps_operator *op;
    sps_chain l;
    sps_chain_traits o;
    int iterations = 0;

    for (int64_t i = 0; i < A->nrow; i++)
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            if (A->col[p] > i) ((double *)A->val)[p] *= -1;
    A->props = 0;
    op = examined(A, &l, &o);
    OK(ctx, spsi_chain_plan(&l, &o));
    for (int i = l.count - 1; i >= 0; i--)
        if (!strcmp(l.step[i].precond, "ilu0")) iterations = l.step[i].grace;
    sps_operator_destroy(&op);
    zoo_free(&A);
    return iterations;
}

/* The trial may take as long as the set-up of the next step, which is short for
 * complete factors by ilut. */
START_TEST(a_trial_is_shorter_before_complete_factors_by_ilut)
{
    if (runner_place() != SPS_HOST) runner_leave_out("the steps of a host");
    ck_assert_int_eq(trial(1000), 4);
    ck_assert_int_eq(trial(8000), 6);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(the_ends_of_a_short_spectrum_take_few_products),
    RUNNER_TEST(dominance_says_that_no_polynomial_pays),
    RUNNER_TEST(few_rows_are_worth_no_factors),
    RUNNER_TEST(chains_are_told_by_their_loops),
    RUNNER_TEST(without_the_module_more_is_factored_by_ilut),
    RUNNER_TEST(negative_definite_systems_may_take_few_iterations),
    RUNNER_TEST(a_trial_is_shorter_before_complete_factors_by_ilut),
    RUNNER_TEST(dense_factors_come_after_cheaper_trials),
};
RUNNER_MAIN_WITHIN("check_chain_early", tests, set_up, tear_down)
