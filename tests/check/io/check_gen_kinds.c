/* SPDX-License-Identifier: BSD-3-Clause */
/* check_gen_kinds.c - generated matrices, kind by kind: eigenvalues, singular
 * values, null vectors, mass and symmetry are those of the problem. */
#include <check.h>
#include <lapacke.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/fixture.h"
#include "tests/support/runner.h"
#include "tests/problems/whole.h"

START_TEST(poisson_has_the_known_eigenvalues)
{
    whole w = make("poisson7 7 5 6");
    double *e = eigenvalues(&w), low = 0;

    for (int axis = 0; axis < 3; axis++)
        low += 4 * pow(sin(acos(-1) / (2.0 * (double)w.g.spec.n[axis] + 2)),
                       2);
    ck_assert_double_eq_tol(e[0], low, 1e-13);
    ck_assert_double_eq_tol(e[w.g.rows - 1], 12 - low, 1e-12);
    free(e);
    drop(&w);
}
END_TEST

/* Rows with all their neighbours are not at the boundary: constant vectors give
 * zero. */
START_TEST(constants_vanish_inside)
{
    static const char *const line[] = {
        "poisson7 11 5 6 -jump -aniso 0.3 -perturb 4",
        "laplace27 11 5 6 -jump -aniso 0.3 -perturb 4", "convection 6 5 4",
    };

    for (int q = 0; q < 3; q++) {
        whole w = make(line[q]);
        int64_t inside = 0;

        for (int64_t i = 0; i < w.g.rows; i++) {
            double sum = row_times(&w, i, NULL);

            if (gen_count(&w.g, i) == w.g.widest) {
                inside++;
                ck_assert_double_le(fabs(sum), 1e-9);
            } else if (q != 1) {    /* boundary conditions change the sum */
                ck_assert_double_gt(sum, -1e-9);
            }
        }
        ck_assert_int_eq(inside, (w.g.spec.n[0] - 2) * (w.g.spec.n[1] - 2) *
                                 (w.g.spec.n[2] - 2));
        drop(&w);
    }
}
END_TEST

/* Translations and rotations have zero energy, except at the clamped face. */
START_TEST(elasticity_knows_rigid_motions)
{
    static const double nx = 5, ny = 4, h = 0.5;
    whole w = make("elasticity 5 4 3 -jump -aniso 0.5 -perturb 2");
    double *x = malloc((size_t)w.g.rows * sizeof *x);

    for (int motion = 0; motion < 6; motion++) {
        double clamped = 0;

        for (int64_t i = 0; i < w.g.rows; i++) {
            double at[3] = {fmod((double)(i / 3), nx),
                            fmod(floor((double)(i / 3) / nx), ny),
                            floor((double)(i / 3) / (nx * ny)) * h};
            int axis = (int)(i % 3), a = motion % 3, b = (motion + 1) % 3;

            x[i] = motion < 3 ? axis == motion
                   : axis == a ? -at[b] : axis == b ? at[a] : 0;
        }
        for (int64_t i = 0; i < w.g.rows; i++) {
            double force = fabs(row_times(&w, i, x));

            if (i / 3 % 5 > 0)
                ck_assert_double_le(force, 1e-10);
            else
                clamped = fmax(clamped, force);
        }
        ck_assert_double_gt(clamped, 1e-3);
    }
    free(x);
    drop(&w);
}
END_TEST

/* Without a clamped face their energy is zero everywhere. */
START_TEST(free_elasticity_has_six_zero_eigenvalues)
{
    whole w = make("elasticity 3 4 2 -free -aniso 0.5 -perturb 2");
    double *e = eigenvalues(&w);

    ck_assert_double_le(fabs(e[5]), 1e-13);
    ck_assert_double_ge(fabs(e[0]), -1e-13);
    ck_assert_double_ge(e[6], 1e-3);
    free(e);
    drop(&w);
}
END_TEST

/* Row sums are zero up to rounding, and only the constant has no energy. */
START_TEST(neumann_leaves_the_constant)
{
    static const char *const line[] = {
        "poisson7 3 4 5 -neumann -perturb 3 -aniso 0.5",
        "poisson7 1 4 2 -neumann -jump",
        "laplace27 3 4 2 -neumann -perturb 3 -aniso 0.5",
    };

    for (int q = 0; q < 3; q++) {
        whole w = make(line[q]);
        double *e = eigenvalues(&w);

        check_rows(&w, line[q]);
        for (int64_t i = 0; i < w.g.rows; i++) {
            double sum = 0;

            for (int64_t p = w.rowptr[i]; p < w.rowptr[i + 1]; p++)
                sum += w.val[p];
            ck_assert_msg(fabs(sum) <= 1e-15 * *find(&w, i, i) * 8,
                          "%s, row %d: %g", line[q], (int)i, sum);
        }
        ck_assert_msg(fabs(e[0]) <= 1e-12 * e[w.g.rows - 1], "%s: %g",
                      line[q], e[0]);
        ck_assert_msg(e[1] > 1e-6 * e[w.g.rows - 1], "%s: %g", line[q], e[1]);
        free(e);
        drop(&w);
    }
}
END_TEST

static whole make_mass(const char *line, gen_mass mass)
{
    whole w = make(line);
    char error[160] = "";
    gen_spec spec = w.g.spec;

    spec.mass = mass;
    drop(&w);
    ck_assert(gen_open(&spec, &w.g, error));
    w.rowptr = malloc(((size_t)w.g.rows + 1) * sizeof *w.rowptr);
    w.col = malloc(((size_t)w.g.nnz + 1) * sizeof *w.col);
    w.val = malloc(((size_t)w.g.nnz + 1) * sizeof *w.val);
    gen_fill(&w.g, w.rowptr, w.col, w.val);
    return w;
}

/* The consistent mass matrix: positive definite, symmetric bit for bit; its row
 * sums equal the lumped one where no node of the element was eliminated. */
START_TEST(mass_matrices_agree)
{
    static const char *const line[] = {
        "poisson7 4 3 5 -aniso 0.5", "laplace27 4 3 5 -aniso 0.5",
        "elasticity 3 2 4 -aniso 0.5", "elasticity 3 2 4 -aniso 0.5 -free",
    };

    for (int q = 0; q < 4; q++) {
        whole full = make_mass(line[q], GEN_CONSISTENT);
        whole lumped = make_mass(line[q], GEN_LUMPED);
        double *e = eigenvalues(&full), sum = 0;

        check_rows(&full, line[q]);
        check_rows(&lumped, line[q]);
        ck_assert_msg(e[0] > 0, "%s: %g", line[q], e[0]);
        for (int64_t i = 0; i < full.g.rows; i++) {
            const bool clamped = i / 3 % 3 == 0;

            sum += lumped.val[i];
            for (int64_t p = full.rowptr[i]; p < full.rowptr[i + 1]; p++)
                ck_assert(*find(&full, full.col[p], i) == full.val[p]);
            if (q == 0 || q == 3 || (q == 2 && !clamped))
                ck_assert_double_eq_tol(row_times(&full, i, NULL),
                                        lumped.val[i], 1e-15);
            else
                ck_assert_double_le(row_times(&full, i, NULL),
                                    lumped.val[i] + 1e-15);
        }
        if (q == 3)          /* 3 times the volume of the body */
            ck_assert_double_eq_tol(sum, 3 * (2 * 1 * 3 * 0.5), 1e-14);
        free(e);
        drop(&full);
        drop(&lumped);
    }
}
END_TEST

/* x'M x of a linear field is the integral of its square, exactly. */
START_TEST(consistent_mass_integrates_products)
{
    whole w = make_mass("elasticity 4 3 3 -free", GEN_CONSISTENT);
    double sum = 0;

    for (int64_t i = 0; i < w.g.rows; i++)
        for (int64_t p = w.rowptr[i]; p < w.rowptr[i + 1]; p++)
            sum += gen_coordinate(&w.g, i / 3, 0) * w.val[p] *
                   gen_coordinate(&w.g, w.col[p] / 3, 0);
    /* 3 unknowns per node times the integral of x^2 over [0, 3] x [0, 2] x [0,
     * 2]. */
    ck_assert_double_eq_tol(sum, 3 * 9.0 * 4, 1e-12);
    drop(&w);
}
END_TEST

START_TEST(convection_is_a_nonsymmetric_m_matrix)
{
    whole w = make("convection 6 5 4 -velocity 3");
    int64_t different = 0;

    ck_assert(!w.g.symmetric);
    for (int64_t i = 0; i < w.g.rows; i++) {
        for (int64_t p = w.rowptr[i]; p < w.rowptr[i + 1]; p++) {
            const double *other = find(&w, w.col[p], i);

            ck_assert(w.col[p] == i ? w.val[p] > 0 : w.val[p] < 0);
            ck_assert_ptr_nonnull(other);
            different += *other != w.val[p];
        }
        ck_assert_double_ge(row_times(&w, i, NULL), -1e-12);
    }
    ck_assert_int_eq(different, w.g.nnz - w.g.rows);
    drop(&w);
}
END_TEST

START_TEST(rmat_is_a_skewed_simple_graph)
{
    whole w = make("rmat 12 8"), again = make("rmat 12 8");
    whole other = make("rmat 12 8 -seed 2");
    int64_t empty = 0, most = 0;

    for (int64_t i = 0; i < w.g.rows; i++) {
        int64_t degree = w.rowptr[i + 1] - w.rowptr[i];

        ck_assert_ptr_null(find(&w, i, i));
        empty += degree == 0;
        most = degree > most ? degree : most;
    }
    /* 16 on average; R-MAT graphs have hubs and empty vertices */
    ck_assert_int_gt(w.g.nnz, 12 * w.g.rows);
    ck_assert_int_le(w.g.nnz, 16 * w.g.rows);
    ck_assert_int_gt(most, 30 * 16);
    ck_assert_int_gt(empty, w.g.rows / 20);
    ck_assert(w.g.nnz == again.g.nnz &&
              !memcmp(w.col, again.col, (size_t)w.g.nnz * sizeof *w.col));
    ck_assert(w.g.nnz != other.g.nnz ||
              memcmp(w.col, other.col, (size_t)w.g.nnz * sizeof *w.col));
    drop(&w);
    drop(&again);
    drop(&other);
}
END_TEST

START_TEST(laplacian_rows_sum_to_the_shift)
{
    whole w = make("rmat 9 6 -laplacian -perturb 1 -shift 0.5");

    for (int64_t i = 0; i < w.g.rows; i++) {
        ck_assert_double_eq_tol(row_times(&w, i, NULL), 0.5, 1e-11);
        ck_assert_ptr_nonnull(find(&w, i, i));
    }
    drop(&w);
}
END_TEST

/* Every entry is that of K, and on the diagonal S m_i more. */
START_TEST(a_grid_is_shifted_by_its_mass)
{
    static const char *const line[][2] = {
        { "poisson7 4 3 5 -aniso 0.5", "poisson7 4 3 5 -aniso 0.5 -shift 3" },
        { "laplace27 4 -neumann -perturb 1",
          "laplace27 4 -neumann -perturb 1 -shift 3" },
        { "elasticity 3 2 4 -free", "elasticity 3 2 4 -free -shift 3" },
        { "convection 4", "convection 4 -shift 3" },
    };

    for (int q = 0; q < 4; q++) {
        whole plain = make(line[q][0]), w = make(line[q][1]);
        whole mass = make_mass(line[q][1], GEN_LUMPED);

        check_rows(&w, line[q][1]);
        ck_assert_int_eq(plain.g.nnz, w.g.nnz);
        for (int64_t i = 0; i < w.g.rows; i++)
            for (int64_t p = w.rowptr[i]; p < w.rowptr[i + 1]; p++) {
                const double add = w.col[p] == i ? 3 * mass.val[i] : 0;

                ck_assert_int_eq(w.col[p], plain.col[p]);
                ck_assert(w.val[p] == plain.val[p] + add);
            }
        drop(&plain);
        drop(&w);
        drop(&mass);
    }
}
END_TEST

/* Singular values, descending; the caller frees them. */
static double *singular_values(const whole *w)
{
    const lapack_int m = (lapack_int)w->g.rows, n = (lapack_int)w->g.columns;
    double *a = calloc((size_t)m * (size_t)n, sizeof *a);
    double *e = malloc((size_t)(m < n ? m : n) * sizeof *e);
    double *room = malloc((size_t)(m < n ? m : n) * sizeof *room);

    for (int64_t i = 0; i < m; i++)
        for (int64_t p = w->rowptr[i]; p < w->rowptr[i + 1]; p++)
            a[i * n + w->col[p]] = w->val[p];
    ck_assert_int_eq(LAPACKE_dgesvd(LAPACK_ROW_MAJOR, 'N', 'N', m, n, a, n, e,
                                    NULL, 1, NULL, 1, room), 0);
    free(a);
    free(room);
    return e;
}

START_TEST(least_squares_have_the_singular_values_named)
{
    static const struct { const char *line; int all, rank; double cond; } c[] = {
        {"leastsquares 60 24 -cond 1e3", 24, 24, 1e3},
        {"leastsquares 24 61 -cond 1e6", 24, 24, 1e6},
        {"leastsquares 33 33 -cond 50 -deficient 5", 33, 28, 50},
        {"leastsquares 101 30 -cond 10 -deficient 29", 30, 1, 1},
        {"leastsquares 1 7", 1, 1, 1},
        {"leastsquares 7 1 -seed 4", 1, 1, 1},
    };

    for (size_t q = 0; q < sizeof c / sizeof *c; q++) {
        whole w = make(c[q].line);
        double *e = singular_values(&w);

        check_rows(&w, c[q].line);
        ck_assert_int_le(w.g.widest, 16);
        for (int t = 0; t < c[q].all; t++) {
            const double want = t >= c[q].rank ? 0
                : pow(c[q].cond, -(double)t / fmax(1, c[q].rank - 1));

            ck_assert_msg(fabs(e[t] - want) <= 1e-14, "%s: %d is %.17g, "
                          "not %.17g", c[q].line, t, e[t], want);
        }
        free(e);
        drop(&w);
    }
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(poisson_has_the_known_eigenvalues),
    RUNNER_TEST(constants_vanish_inside),
    RUNNER_TEST(elasticity_knows_rigid_motions),
    RUNNER_TEST(free_elasticity_has_six_zero_eigenvalues),
    RUNNER_TEST(neumann_leaves_the_constant),
    RUNNER_TEST(mass_matrices_agree),
    RUNNER_TEST(consistent_mass_integrates_products),
    RUNNER_TEST(convection_is_a_nonsymmetric_m_matrix),
    RUNNER_TEST(rmat_is_a_skewed_simple_graph),
    RUNNER_TEST(laplacian_rows_sum_to_the_shift),
    RUNNER_TEST(a_grid_is_shifted_by_its_mass),
    RUNNER_TEST(least_squares_have_the_singular_values_named),
};
RUNNER_MAIN("gen_kinds", tests)
