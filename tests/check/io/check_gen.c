/* SPDX-License-Identifier: BSD-3-Clause */
/* check_gen.c - generated matrices have the properties that their names
 * promise: symmetric bit for bit, positive definite, with the row sums, null
 * vectors and eigenvalues known from theory; and mtxgen writes exactly these
 * values. */
#include <check.h>
#include <lapacke.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/fixture.h"
#include "tests/support/runner.h"
#include "tests/problems/whole.h"

static const char *const symmetric[] = {
    "poisson7 7 5 6", "poisson7 1", "poisson7 6 -perturb 1",
    "poisson7 9 4 10 -jump -aniso 0.1 -perturb 2",
    "laplace27 5 6 4", "laplace27 2 1 1", "laplace27 6 -perturb 1",
    "laplace27 10 4 9 -jump -aniso 5 -perturb 9",
    "elasticity 4 5 3", "elasticity 1 2 2", "elasticity 4 -perturb 1",
    "elasticity 9 3 3 -jump -aniso 0.2 -perturb 2",
    "poisson7 5 4 3 -neumann -shift 0.01", "laplace27 4 -neumann -shift 2",
    "elasticity 3 2 4 -free -shift 0.5",
    "rmat 8 6 -laplacian -shift 0.25",
    "rmat 8 6 -laplacian -shift 1 -perturb 3",
};
enum { SYMMETRIC = (int)(sizeof symmetric / sizeof *symmetric) };

static void check_rows(const whole *w, const char *line)
{
    int64_t diagonal = 0, widest = 0;

    ck_assert_msg(w->rowptr[w->g.rows] == w->g.nnz, "%s", line);
    for (int64_t i = 0; i < w->g.rows; i++) {
        int64_t length = w->rowptr[i + 1] - w->rowptr[i];

        widest = length > widest ? length : widest;
        diagonal += find(w, i, i) != NULL;
        for (int64_t p = w->rowptr[i]; p < w->rowptr[i + 1]; p++) {
            ck_assert_int_ge(w->col[p], 0);
            ck_assert_int_lt(w->col[p], w->g.columns);
            ck_assert(isfinite(w->val[p]));
            if (p > w->rowptr[i])
                ck_assert_int_lt(w->col[p - 1], w->col[p]);
        }
    }
    ck_assert_msg(diagonal == w->g.diagonal, "%s", line);
    ck_assert_msg(widest <= w->g.widest, "%s", line);
}

START_TEST(rows_are_ascending_and_counted)
{
    for (int i = 0; i < SYMMETRIC; i++) {
        whole w = make(symmetric[i]);

        check_rows(&w, symmetric[i]);
        drop(&w);
    }
    whole w = make("rmat 9 5"), c = make("convection 5 4 3");
    whole b = make("blocks 96 6 5 0.4 -perturb 2");
    check_rows(&w, "rmat");
    check_rows(&c, "convection");
    check_rows(&b, "blocks");
    drop(&w);
    drop(&c);
    drop(&b);
}
END_TEST

/* Every entry is in one of the blocks, and there are as many as stated. */
START_TEST(blocks_have_their_fill)
{
    static const double fill[] = {0, 0.25, 0.75, 1};
    const int64_t n = 512, size = 8, count = 4;

    for (int q = 0; q < 4; q++) {
        char line[80];

        snprintf(line, sizeof line, "blocks 512 8 4 %g", fill[q]);
        whole w = make(line);
        for (int64_t i = 0; i < n; i += size) {
            bool seen[64] = {false};
            int64_t blocks = 0;

            for (int64_t p = w.rowptr[i]; p < w.rowptr[i + size]; p++)
                seen[w.col[p] / size] = true;
            for (int64_t c = 0; c < n / size; c++)
                blocks += seen[c];
            ck_assert_int_eq(blocks, fill[q] > 0 ? count : 0);
        }
        ck_assert_double_eq_tol((double)w.g.nnz / (double)(n * size * count),
                                fill[q], 0.03);
        drop(&w);
    }
}
END_TEST

START_TEST(symmetric_bit_for_bit)
{
    for (int q = 0; q < SYMMETRIC; q++) {
        whole w = make(symmetric[q]);

        ck_assert(w.g.symmetric);
        for (int64_t i = 0; i < w.g.rows; i++)
            for (int64_t p = w.rowptr[i]; p < w.rowptr[i + 1]; p++) {
                const double *other = find(&w, w.col[p], i);

                ck_assert_msg(other && !memcmp(other, &w.val[p], 8),
                              "%s: row %d, column %d", symmetric[q], (int)i,
                              (int)w.col[p]);
            }
        drop(&w);
    }
}
END_TEST

START_TEST(positive_definite)
{
    for (int q = 0; q < SYMMETRIC; q++) {
        whole w = make(symmetric[q]);
        double *e = eigenvalues(&w);

        ck_assert_msg(e[0] > 1e-12 * e[w.g.rows - 1], "%s: %g to %g",
                      symmetric[q], e[0], e[w.g.rows - 1]);
        free(e);
        drop(&w);
    }
}
END_TEST

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

START_TEST(perturb_changes_every_value)
{
    static const char *const line[][3] = {
        {"poisson7 6", "poisson7 6 -perturb 1", "poisson7 6 -perturb 2"},
        {"laplace27 5", "laplace27 5 -perturb 1", "laplace27 5 -perturb 2"},
        {"elasticity 4", "elasticity 4 -perturb 1",
         "elasticity 4 -perturb 2"},
        {"convection 5", "convection 5 -perturb 1",
         "convection 5 -perturb 2"},
        {"rmat 8 4", "rmat 8 4 -perturb 1", "rmat 8 4 -perturb 2"},
    };

    for (int q = 0; q < 5; q++) {
        whole a = make(line[q][0]), b = make(line[q][1]), c = make(line[q][2]);
        int64_t single = 0;

        ck_assert_int_eq(a.g.nnz, b.g.nnz);
        for (int64_t p = 0; p < a.g.nnz; p++) {
            ck_assert_int_eq(a.col[p], b.col[p]);
            ck_assert(b.val[p] != 0);
            ck_assert(b.val[p] != a.val[p] && b.val[p] != c.val[p]);
            single += b.val[p] == (double)(float)b.val[p];
        }
        ck_assert_int_lt(single, 3);        /* full precision */
        drop(&a);
        drop(&b);
        drop(&c);
    }
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

/* The published test vectors of Random123 for Philox4x32-10. */
START_TEST(philox_gives_the_known_answers)
{
    uint32_t w[4];

    gen_philox(0, 0, 0, w);
    ck_assert_uint_eq(w[0], 0x6627e8d5);
    ck_assert_uint_eq(w[1], 0xe169c58d);
    ck_assert_uint_eq(w[2], 0xbc57ac4c);
    ck_assert_uint_eq(w[3], 0x9b00dbd8);
}
END_TEST

/* The shares of several processes are the rows, in order. */
static void divide(const char *line, int size, int64_t most)
{
    whole w = make(line);
    int64_t at = 0, heaviest = 0;

    for (int r = 0; r < size; r++) {
        const int64_t first = gen_share(&w.g, r, size);
        const int64_t count = gen_share(&w.g, r + 1, size) - first;
        int64_t *rowptr = malloc((size_t)(count + 1) * sizeof *rowptr), nnz;
        int64_t *col = malloc((size_t)(w.g.nnz + 1) * sizeof *col);
        double *val = malloc((size_t)(w.g.nnz + 1) * sizeof *val);

        ck_assert(rowptr && col && val);
        ck_assert_int_eq(first, at);
        ck_assert_int_ge(count, 0);
        nnz = gen_count_rows(&w.g, first, count, rowptr);
        ck_assert(gen_fill_rows(&w.g, first, count, rowptr, col, val));
        ck_assert_int_eq(nnz, w.rowptr[first + count] - w.rowptr[first]);
        for (int64_t p = 0; p < nnz; p++) {
            ck_assert_int_eq(col[p], w.col[w.rowptr[first] + p]);
            ck_assert(val[p] == w.val[w.rowptr[first] + p]);
        }
        heaviest = nnz > heaviest ? nnz : heaviest;
        at += count;
        free(rowptr);
        free(col);
        free(val);
    }
    ck_assert_int_eq(at, w.g.rows);
    ck_assert_int_le(heaviest, most);
    drop(&w);
}

START_TEST(shares_are_the_rows)
{
    divide("poisson7 9 -perturb 1", 1, 5000);
    divide("poisson7 9 -perturb 1", 7, 800);
    divide("elasticity 5 4 3 -perturb 1", 64, 400);
    divide("convection 2", 8, 4);
    /* The first rows of rmat have most of the entries. */
    divide("rmat 10 8 -perturb 1", 3, 5000);
}
END_TEST

/* The file that mtxgen writes holds exactly the values of gen_fill. */
static void written_and_read(const char *line, const char *suffix)
{
    const char *mtxgen = getenv("MTXGEN");
    char path[64], command[400];
    sps_context *ctx = fixture_open_with(SPS_HOST, 2, true);
    whole w = make(line);
    sps_csr *A = NULL;

    snprintf(path, sizeof path, "check_gen-%ld.mtx%s", (long)getpid(),
             suffix);
    snprintf(command, sizeof command, "'%s' %s -quiet -o %s", mtxgen, line,
             path);
    ck_assert_int_eq(system(command), 0);
    OK(ctx, sps_csr_read(ctx, path, NULL, NULL, &A));
    ck_assert_int_eq(remove(path), 0);
    ck_assert_int_eq(A->nrow, w.g.rows);
    ck_assert_int_eq(A->ncol, w.g.columns);
    ck_assert_int_eq(A->nnz, w.g.nnz);
    ck_assert(!memcmp(A->rowptr, w.rowptr,
                      ((size_t)w.g.rows + 1) * sizeof *w.rowptr));
    ck_assert(!memcmp(A->col, w.col, (size_t)w.g.nnz * sizeof *w.col));
    ck_assert(!memcmp(A->val, w.val, (size_t)w.g.nnz * sizeof *w.val));
    sps_csr_destroy(ctx, &A);
    drop(&w);
    fixture_close(&ctx);
}

START_TEST(files_hold_the_same_bits)
{
    if (!getenv("MTXGEN")) runner_skip("MTXGEN names no program");
    written_and_read("poisson7 31 7 9 -perturb 1", "");
    written_and_read("laplace27 9 -jump -aniso 0.1 -perturb 2", ".gz");
    written_and_read("elasticity 7 -perturb 3", ".gz");
    written_and_read("convection 9 -perturb 4", "");
    written_and_read("rmat 10 8 -laplacian -perturb 5", "");
    written_and_read("rmat 10 8", ".gz");
    written_and_read("leastsquares 5000 300 -cond 1e5 -deficient 9", "");
    written_and_read("leastsquares 30 4097 -seed 5", ".gz");
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(rows_are_ascending_and_counted),
    RUNNER_TEST(blocks_have_their_fill),
    RUNNER_TEST(symmetric_bit_for_bit),
    RUNNER_TEST(positive_definite),
    RUNNER_TEST(poisson_has_the_known_eigenvalues),
    RUNNER_TEST(constants_vanish_inside),
    RUNNER_TEST(elasticity_knows_rigid_motions),
    RUNNER_TEST(free_elasticity_has_six_zero_eigenvalues),
    RUNNER_TEST(neumann_leaves_the_constant),
    RUNNER_TEST(mass_matrices_agree),
    RUNNER_TEST(consistent_mass_integrates_products),
    RUNNER_TEST(perturb_changes_every_value),
    RUNNER_TEST(convection_is_a_nonsymmetric_m_matrix),
    RUNNER_TEST(rmat_is_a_skewed_simple_graph),
    RUNNER_TEST(laplacian_rows_sum_to_the_shift),
    RUNNER_TEST(a_grid_is_shifted_by_its_mass),
    RUNNER_TEST(philox_gives_the_known_answers),
    RUNNER_TEST(least_squares_have_the_singular_values_named),
    RUNNER_TEST(shares_are_the_rows),
    RUNNER_TEST(files_hold_the_same_bits),
};
RUNNER_MAIN("generators", tests)
