/* SPDX-License-Identifier: BSD-3-Clause */
/* check_small.c - small matrices: products compared with plain loops, solves
 * and eigenvalues by their residuals, and the rank determined by the
 * orthonormalisation. */
#include <float.h>
#include <math.h>

#include "philox.h"
#include "block/small.h"
#include "tests/support/oracle.h"
#include "tests/support/runner.h"
#include "tests/problems/zoo.h"

#define OK(ctx, call)                                                          \
    ck_assert_msg((call) == SPS_OK, "%s: %s", #call, sps_context_error(ctx))

static sps_context *ctx;

static double draw(int i, int j) { return spsi_philox_at(11, i, j); }

static void open_context(void)
{
    sps_context_options o;

    sps_context_options_default(&o);
    o.place = SPS_HOST;
    o.threads = 1;
    ck_assert_int_eq(sps_context_create(&o, &ctx, NULL), SPS_OK);
}

static void close_context(void)
{
    sps_context_destroy(&ctx);
}

static sps_small *make(int rows, int cols, uint64_t seed, zoo_values values)
{
    sps_small *C = NULL;
    double *x = zoo_block(cols, rows, rows, seed, values);

    OK(ctx, spsi_small_create(ctx, rows + 3, cols + 1, &C));
    spsi_small_shape(C, rows, cols);
    for (int j = 0; j < cols; j++)
        for (int i = 0; i < rows; i++)
            *spsi_small_at(C, i, j) = x[j * rows + i];
    free(x);
    return C;
}

static sps_small *like(const sps_small *A)
{
    sps_small *B = NULL;

    OK(ctx, spsi_small_create(ctx, A->max_rows, A->max_cols, &B));
    OK(ctx, spsi_small_copy(A, B));
    return B;
}

static double at(const sps_small *A, bool trans, int i, int j)
{
    return trans ? *spsi_small_at(A, j, i) : *spsi_small_at(A, i, j);
}

/* P'P of an m x k block P with entries f(i, j). */
static sps_small *gram_of(int m, int k, double (*f)(int i, int j))
{
    sps_small *G = NULL;

    OK(ctx, spsi_small_create(ctx, k, k, &G));
    for (int b = 0; b < k; b++)
        for (int a = 0; a < k; a++) {
            long double sum = 0;

            for (int i = 0; i < m; i++) sum += (long double)f(i, a) * f(i, b);
            *spsi_small_at(G, a, b) = (double)sum;
        }
    return G;
}

/* --- products */

static void try_mul(int m, int l, int n, int trans, double a, double b)
{
    bool ta = trans & 1, tb = trans & 2;
    sps_small *A = make(ta ? l : m, ta ? m : l, 1, ZOO_INTEGER);
    sps_small *B = make(tb ? n : l, tb ? l : n, 2, ZOO_INTEGER);
    sps_small *C = make(m, n, 3, ZOO_INTEGER), *D = like(C);

    if (b == 0) *spsi_small_at(C, 0, 0) = NAN;
    OK(ctx, spsi_small_mul(a, A, ta, B, tb, b, C));
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) {
            double sum = 0;

            for (int t = 0; t < l; t++)
                sum += at(A, ta, i, t) * at(B, tb, t, j);
            sum = a * sum + (b == 0 ? 0 : b * *spsi_small_at(D, i, j));
            ck_assert_msg(*spsi_small_at(C, i, j) == sum,
                          "%d x %d x %d, trans %d: (%d, %d)", m, l, n, trans,
                          i, j);
        }
    spsi_small_destroy(&A);
    spsi_small_destroy(&B);
    spsi_small_destroy(&C);
    spsi_small_destroy(&D);
}

START_TEST(product_is_exact_on_integers)
{
    static const int size[] = {1, 2, 5, 16, 33, 100};

    for (int s = 0; s < 6; s++)
        for (int trans = 0; trans < 4; trans++) {
            try_mul(size[s], size[s], size[s], trans, 1, 0);
            try_mul(size[s], size[(s + 1) % 6], size[(s + 2) % 6], trans, -2,
                    3);
        }
    try_mul(3, 600, 4, 0, 1, 1);   /* longer than one piece of the inner
                                      dimension */
    try_mul(3, 600, 4, 3, 1, 1);
}
END_TEST

START_TEST(copy_symmetrise_and_finite_do_what_they_say)
{
    sps_small *A = make(7, 7, 4, ZOO_RANDOM), *B = like(A);

    spsi_small_symmetrise(B);
    for (int j = 0; j < 7; j++)
        for (int i = 0; i < 7; i++) {
            double mean = 0.5 * *spsi_small_at(A, i, j) +
                          0.5 * *spsi_small_at(A, j, i);

            ck_assert(*spsi_small_at(B, i, j) == mean);
        }
    ck_assert(spsi_small_finite(B));
    *spsi_small_at(B, 6, 5) = INFINITY;
    ck_assert(!spsi_small_finite(B));
    spsi_small_shape(B, 5, 7);   /* the NaN is outside of the shape */
    ck_assert(spsi_small_finite(B));
    spsi_small_destroy(&A);
    spsi_small_destroy(&B);
}
END_TEST

/* --- eigenvalues */

/* The second difference matrix: 2 - 2 cos(pi j / (k + 1)). */
START_TEST(eigenvalues_of_the_second_difference_are_known)
{
    for (int k = 1; k < 40; k++) {
        sps_small *A = NULL, *B;
        double w[40];

        OK(ctx, spsi_small_create(ctx, k, k, &A));
        for (int i = 0; i < k; i++) {
            *spsi_small_at(A, i, i) = 2;
            if (i) *spsi_small_at(A, i, i - 1) = *spsi_small_at(A, i - 1, i)
                = -1;
        }
        B = like(A);
        OK(ctx, spsi_small_eigen(A, w));
        for (int j = 0; j < k; j++) {
            double want = 2 - 2 * cos(acos(-1) * (j + 1) / (k + 1));

            ck_assert_msg(fabs(w[j] - want) < 1e-13, "k %d, %d", k, j);
            for (int i = 0; i < k; i++) {   /* B v = w v */
                double sum = 0;

                for (int l = 0; l < k; l++)
                    sum += *spsi_small_at(B, i, l) * *spsi_small_at(A, l, j);
                ck_assert(fabs(sum - w[j] * *spsi_small_at(A, i, j)) < 1e-13);
            }
        }
        spsi_small_destroy(&A);
        spsi_small_destroy(&B);
    }
}
END_TEST

/* Reflectors whose leading columns are eigenvectors of A split off their
 * eigenvalues. */
START_TEST(reflectors_turn_eigenvectors_to_the_front)
{
    enum { N = 9, K = 3 };
    sps_small *A = make(N, N, 3, ZOO_RANDOM), *V, *T = NULL;
    double w[N], rest = 0, trace = 0;

    OK(ctx, spsi_small_create(ctx, K, K, &T));
    spsi_small_symmetrise(A);
    V = like(A);
    OK(ctx, spsi_small_eigen(V, w));
    V->cols = K;
    OK(ctx, spsi_small_reflectors(V, T));
    OK(ctx, spsi_small_reflect(V, T, A));
    for (int j = 0; j < K; j++)
        for (int i = 0; i < N; i++)
            ck_assert(fabs(*spsi_small_at(A, i, j) - (i == j) * w[j]) < 1e-13 &&
                      fabs(*spsi_small_at(A, j, i) - (i == j) * w[j]) < 1e-13);
    for (int j = K; j < N; j++) {
        trace += *spsi_small_at(A, j, j);
        rest += w[j];
    }
    ck_assert(fabs(trace - rest) < 1e-13);
    spsi_small_destroy(&A);
    spsi_small_destroy(&V);
    spsi_small_destroy(&T);
}
END_TEST

START_TEST(eigenvalues_of_what_is_not_finite_are_nan)
{
    double w[4], bad[] = {NAN, INFINITY};

    for (int t = 0; t < 2; t++) {
        sps_small *A = make(4, 4, 5, ZOO_RANDOM);

        *spsi_small_at(A, 1, 2) = bad[t];
        OK(ctx, spsi_small_eigen(A, w));
        ck_assert(isnan(w[0]) && isnan(w[3]) && !spsi_small_finite(A));
        spsi_small_destroy(&A);
    }
}
END_TEST

/* --- solves */

static double scaled_entry(int i, int j)
{
    double base = draw(i, j);

    return ldexp(base, 40 * (j % 3 - 1));
}

START_TEST(spd_systems_of_any_scale_are_solved)
{
    for (int k = 1; k < 40; k += 3) {
        sps_small *A = gram_of(3 * k, k, scaled_entry), *B = like(A);
        sps_small *C = make(k, 3, 6, ZOO_RANDOM), *D = like(C);
        int info = 7;

        OK(ctx, spsi_small_solve_spd(A, C, &info));
        ck_assert_int_eq(info, 0);
        for (int j = 0; j < 3; j++)
            for (int i = 0; i < k; i++) {
                double sum = -*spsi_small_at(D, i, j), size = -sum;

                size = fabs(size);
                for (int l = 0; l < k; l++) {
                    double t = at(B, false, i, l) * at(C, false, l, j);

                    sum += t;
                    size += fabs(t);
                }
                ck_assert_msg(fabs(sum) < 1e-11 * size, "k %d (%d, %d)", k, i,
                              j);
            }
        spsi_small_destroy(&A);
        spsi_small_destroy(&B);
        spsi_small_destroy(&C);
        spsi_small_destroy(&D);
    }
}
END_TEST

/* Solves A x = (1, ..., 1)' by LU and by Cholesky factors. */
START_TEST(both_kinds_of_factors_solve_a_definite_system)
{
    sps_small *A = gram_of(60, 30, draw), *B = like(A);
    int32_t pivot[30];
    double x[60];
    int info;

    for (int i = 0; i < 60; i++) x[i] = 1;
    OK(ctx, spsi_small_factor(A, pivot, &info));
    ck_assert_int_eq(info, 0);
    OK(ctx, spsi_small_solve(A, pivot, x, 1));
    OK(ctx, spsi_small_cholesky(B, &info));
    ck_assert_int_eq(info, 0);
    OK(ctx, spsi_small_solve(B, NULL, x + 30, 1));
    for (int i = 0; i < 30; i++)
        ck_assert(fabs(x[i] - x[30 + i]) <= 1e-9 * fabs(x[i]));
    spsi_small_destroy(&A);
    spsi_small_destroy(&B);
}
END_TEST

/* [a b; b c] */
static sps_small *two_by_two(double a, double b, double c)
{
    sps_small *A = NULL;

    OK(ctx, spsi_small_create(ctx, 2, 2, &A));
    spsi_small_shape(A, 2, 2);
    *spsi_small_at(A, 0, 0) = a;
    *spsi_small_at(A, 0, 1) = *spsi_small_at(A, 1, 0) = b;
    *spsi_small_at(A, 1, 1) = c;
    return A;
}

static int cholesky_of(double a, double b, double c)
{
    sps_small *A = two_by_two(a, b, c);
    int info = 7;

    OK(ctx, spsi_small_cholesky(A, &info));
    spsi_small_destroy(&A);
    return info;
}

static int factor_of(double a, double b, double c)
{
    sps_small *A = two_by_two(a, b, c);
    int32_t pivot[2];
    int info = 7;

    OK(ctx, spsi_small_factor(A, pivot, &info));
    spsi_small_destroy(&A);
    return info;
}

START_TEST(what_has_no_factors_is_named)
{
    ck_assert_int_eq(cholesky_of(1, 0.5, 1), 0);
    ck_assert_int_eq(cholesky_of(1, 2, 1), 2);
    ck_assert_int_eq(cholesky_of(0, 0, 1), 1);
    ck_assert_int_eq(factor_of(1, 2, 1), 0);
    ck_assert_int_eq(factor_of(1, 1, 1), 2);
    for (int t = 0; t < 2; t++) {
        const double bad = t ? INFINITY : NAN;

        ck_assert_int_ne(cholesky_of(bad, 0, 1), 0);
        ck_assert_int_ne(cholesky_of(1, bad, 1), 0);
        ck_assert_int_ne(cholesky_of(1, 0, bad), 0);
        ck_assert_int_ne(factor_of(bad, 0, 1), 0);
        ck_assert_int_ne(factor_of(1, bad, 1), 0);
        ck_assert_int_ne(factor_of(1, 0, bad), 0);
    }
}
END_TEST

static int info_of(double a, double b, double c)
{
    sps_small *A = two_by_two(a, b, c), *C = make(2, 1, 7, ZOO_RANDOM);
    int info = 7;

    OK(ctx, spsi_small_solve_spd(A, C, &info));
    spsi_small_destroy(&A);
    spsi_small_destroy(&C);
    return info;
}

START_TEST(matrices_that_are_not_positive_are_named_by_their_minor)
{
    ck_assert_int_eq(info_of(1, 0.5, 1), 0);
    ck_assert_int_eq(info_of(1, 2, 1), 2);
    ck_assert_int_eq(info_of(-1, 0, 1), 1);
    ck_assert_int_eq(info_of(0, 0, 1), 1);
    ck_assert_int_eq(info_of(1, 0, -1), 2);
    ck_assert_int_eq(info_of(1, NAN, 1), 2);
    ck_assert_int_eq(info_of(NAN, 0, 1), 1);
    ck_assert_int_eq(info_of(1, 0, INFINITY), 2);
    ck_assert_int_eq(info_of(1e-300, 0, 1e300), 0);
}
END_TEST

/* --- rank */

static double plain(int i, int j) { return draw(i, j); }

static double scales(int i, int j)
{
    return ldexp(draw(i, j), 30 * (j % 5) - 60);
}

/* Columns 0 .. 4 are independent, the others their sums; column 7 is zero. */
static double dependent(int i, int j)
{
    if (j == 7) return 0;
    if (j < 5) return draw(i, j);
    return draw(i, j % 5) + 2 * draw(i, (j + 1) % 5);
}

/* Column 1 is column 0 plus a change of 1e-6. */
static double near(int i, int j)
{
    return draw(i, 0) + (j ? 1e-6 * draw(i, 1) : 0);
}

/* Rank found for the m x k block f, after checking that P T is orthonormal
 * within limit. */
static int rank_of(int m, int k, double (*f)(int i, int j), double tolerance,
                   double limit, double *condition)
{
    sps_small *G = gram_of(m, k, f), *T = NULL;
    int rank = -1;

    OK(ctx, spsi_small_create(ctx, k, k, &T));
    OK(ctx, spsi_small_orthonormaliser(G, tolerance, T, &rank, condition));
    ck_assert_int_eq(T->rows, k);
    ck_assert_int_eq(T->cols, rank);
    for (int a = 0; a < rank; a++)
        for (int b = 0; b < rank; b++) {
            long double sum = a == b ? -1 : 0;

            for (int i = 0; i < m; i++) {
                long double pa = 0, pb = 0;

                for (int l = 0; l < k; l++) {
                    pa += (long double)f(i, l) * *spsi_small_at(T, l, a);
                    pb += (long double)f(i, l) * *spsi_small_at(T, l, b);
                }
                sum += pa * pb;
            }
            ck_assert_msg(fabsl(sum) < limit, "(%d, %d) of (PT)'PT: %Lg off", a,
                          b, sum);
        }
    spsi_small_destroy(&G);
    spsi_small_destroy(&T);
    return rank;
}

START_TEST(independent_columns_of_any_scale_have_full_rank)
{
    double condition;

    for (int k = 1; k <= 20; k++) {
        ck_assert_int_eq(rank_of(60, k, plain, 1e-8, 1e-12, &condition), k);
        ck_assert(condition >= 1 && condition < 10);
        ck_assert_int_eq(rank_of(60, k, scales, 1e-8, 1e-12, &condition), k);
        ck_assert(condition >= 1 && condition < 10);
    }
}
END_TEST

START_TEST(dependent_and_zero_columns_are_left_out)
{
    double condition;

    ck_assert_int_eq(rank_of(60, 12, dependent, 1e-6, 1e-11, &condition), 5);
    ck_assert(condition < 100);
    ck_assert_int_eq(rank_of(60, 12, dependent, 0, 1e-11, &condition), 5);
}
END_TEST

START_TEST(tolerance_decides_on_nearly_dependent_columns)
{
    double condition;

    ck_assert_int_eq(rank_of(60, 2, near, 1e-8, 1e-3, &condition), 2);
    ck_assert(condition > 1e5 && condition < 1e7);
    ck_assert_int_eq(rank_of(60, 2, near, 1e-5, 1e-12, &condition), 1);
}
END_TEST

static double nearer(int i, int j)
{
    return draw(i, 0) + (j ? 1e-10 * draw(i, 1) : 0);
}

/* Two unit columns u, v: singular values ||u + v|| / sqrt(2) and ||u - v|| /
 * sqrt(2), of which only the first can be computed from the Gram matrix. */
START_TEST(what_rounding_hides_is_left_for_a_second_pass)
{
    sps_small *G = gram_of(60, 2, nearer), *T = NULL;
    long double norm[2] = { 0, 0 }, apart = 0, length = 0, ratio;
    double condition;
    int rank, sure;

    OK(ctx, spsi_small_create(ctx, 2, 2, &T));
    OK(ctx, spsi_small_uncover(G, 1e-12, T, &rank, &sure, &condition));
    ck_assert_int_eq(rank, 2);
    ck_assert_int_eq(sure, 1);
    for (int i = 0; i < 60; i++)
        for (int j = 0; j < 2; j++)
            norm[j] += (long double)nearer(i, j) * nearer(i, j);
    for (int i = 0; i < 60; i++) {
        const long double p = nearer(i, 0), q = nearer(i, 1);
        const long double c = p * *spsi_small_at(T, 0, 1) +
                              q * *spsi_small_at(T, 1, 1);

        length += c * c;
        apart += powl(p / sqrtl(norm[0]) - q / sqrtl(norm[1]), 2);
    }
    ratio = sqrtl(length) * spsi_small_visible(2) / (sqrtl(apart) / 2);
    ck_assert_msg(fabsl(ratio - 1) < 1e-3, "%Lg", ratio);
    spsi_small_destroy(&G);
    spsi_small_destroy(&T);
}
END_TEST

START_TEST(zero_and_nan_give_rank_zero_or_leave_their_column_out)
{
    sps_small *G = gram_of(20, 4, plain), *T = NULL;
    double condition;
    int rank = 7;

    OK(ctx, spsi_small_create(ctx, 4, 4, &T));
    for (int i = 0; i < 4; i++)   /* column 2 is NaN */
        *spsi_small_at(G, i, 2) = *spsi_small_at(G, 2, i) = NAN;
    OK(ctx, spsi_small_orthonormaliser(G, 1e-8, T, &rank, &condition));
    ck_assert_int_eq(rank, 3);
    ck_assert(spsi_small_finite(T));
    for (int j = 0; j < 3; j++) ck_assert(*spsi_small_at(T, 2, j) == 0);
    spsi_small_shape(G, 4, 4);
    for (int j = 0; j < 4; j++)
        for (int i = 0; i < 4; i++) *spsi_small_at(G, i, j) = 0;
    OK(ctx, spsi_small_orthonormaliser(G, 1e-8, T, &rank, &condition));
    ck_assert_int_eq(rank, 0);
    spsi_small_shape(G, 0, 0);
    OK(ctx, spsi_small_orthonormaliser(G, 1e-8, T, &rank, &condition));
    ck_assert_int_eq(rank, 0);
    spsi_small_destroy(&G);
    spsi_small_destroy(&T);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(product_is_exact_on_integers),
    RUNNER_TEST(copy_symmetrise_and_finite_do_what_they_say),
    RUNNER_TEST(eigenvalues_of_the_second_difference_are_known),
    RUNNER_TEST(reflectors_turn_eigenvectors_to_the_front),
    RUNNER_TEST(eigenvalues_of_what_is_not_finite_are_nan),
    RUNNER_TEST(spd_systems_of_any_scale_are_solved),
    RUNNER_TEST(both_kinds_of_factors_solve_a_definite_system),
    RUNNER_TEST(what_has_no_factors_is_named),
    RUNNER_TEST(matrices_that_are_not_positive_are_named_by_their_minor),
    RUNNER_TEST(independent_columns_of_any_scale_have_full_rank),
    RUNNER_TEST(dependent_and_zero_columns_are_left_out),
    RUNNER_TEST(tolerance_decides_on_nearly_dependent_columns),
    RUNNER_TEST(what_rounding_hides_is_left_for_a_second_pass),
    RUNNER_TEST(zero_and_nan_give_rank_zero_or_leave_their_column_out),
};
RUNNER_MAIN_WITHIN("small", tests, open_context, close_context)
