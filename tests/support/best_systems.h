/* SPDX-License-Identifier: BSD-3-Clause */
/* best_systems.h - systems of 60 rows whose residual norms rise and fall, solved
 * with iteration limits 1, 2, 3, ..., and for each limit the smallest residual
 * seen so far in each column. */
#ifndef SPS_TEST_BEST_SYSTEMS_H
#define SPS_TEST_BEST_SYSTEMS_H

#include "tests/support/methods.h"

#include <float.h>

#define SLACK 1.05

enum { N = 60, K = 4 };

/* ----------------------------------------------------------------- systems */

/* a = H a H with H = I - 2 v v', v a random unit vector. */
static inline void reflect(double a[N][N], int seed)
{
    double *u = zoo_block(N, 1, 1, (uint64_t)seed, ZOO_RANDOM), size = 0;

    for (int i = 0; i < N; i++) size += u[i] * u[i];
    for (int turn = 0; turn < 2; turn++) {
        for (int j = 0; j < N; j++) {
            double dot = 0;

            for (int i = 0; i < N; i++) dot += u[i] * a[i][j];
            for (int i = 0; i < N; i++) a[i][j] -= 2 * dot / size * u[i];
        }
        for (int i = 0; i < N; i++)      /* the transpose */
            for (int j = 0; j < i; j++) {
                double t = a[i][j];

                a[i][j] = a[j][i];
                a[j][i] = t;
            }
    }
    free(u);
}

static inline void spectrum(double a[N][N], double (*eigenvalue)(int i))
{
    for (int i = 0; i < N; i++) a[i][i] = eigenvalue(i);
    reflect(a, 1);
    reflect(a, 2);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < i; j++) a[i][j] = a[j][i];
}

static inline double steep(int i) { return pow(10, -7.0 * i / (N - 1)); }

static inline double both_signs(int i)
{
    return (i % 3 == 1 ? -1 : 1) * pow(10, -4.0 * i / (N - 1));
}

static inline double some_zero(int i) { return i < 6 ? 0 : steep(i); }

static inline double mild(int i) { return pow(10, -2.5 * i / (N - 1)); }

static inline void fill_mild(double a[N][N]) { spectrum(a, mild); }

/* The same, symmetrically scaled by factors from 1 to 1e-3. */
static inline void fill_steep_units(double a[N][N])
{
    spectrum(a, mild);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            a[i][j] *= pow(10, -(i * 7 % N + j * 7 % N) / 20.0);
}

static inline void fill_definite(double a[N][N]) { spectrum(a, steep); }

static inline void fill_indefinite(double a[N][N]) { spectrum(a, both_signs); }

static inline void fill_singular(double a[N][N]) { spectrum(a, some_zero); }

/* Grcar's matrix, whose field of values surrounds the origin. */
static inline void fill_nonnormal(double a[N][N])
{
    for (int i = 0; i < N; i++)
        for (int j = i - 1; j < i + 4 && j < N; j++)
            if (j >= 0) a[i][j] = j < i ? -1 : 1;
}

/* Rows scaled by different factors. */
static inline void fill_steep_rows(double a[N][N])
{
    fill_nonnormal(a);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) a[i][j] *= pow(10, -(i * 7 % N) / 20.0);
}

/* Kahan's matrix: most of the Krylov space that contains the solution is so
 * close to a null space that coefficients of 1e6 and more are dominated by
 * rounding. */
static inline void fill_steep_triangle(double a[N][N])
{
    for (int i = 0; i < N; i++)
        for (int j = i; j < N; j++) a[i][j] = ldexp(j > i ? -0.9 : 1, -i);
}

typedef struct test_system {
    const char *name;
    void (*fill)(double a[N][N]);
    bool symmetric;
    const char *precond;
    int restart;
    sps_norm norm;
} test_system;

static inline sps_csr *matrix_of(const test_system *s)
{
    static double a[N][N];
    static int32_t col[N * N];
    static int64_t rowptr[N + 1];
    sps_csr A = { .struct_size = sizeof A, .nrow = N, .ncol = N,
                  .nnz = N * N, .rowptr = rowptr, .col = col, .val = a,
                  .dtype = SPS_F64,
                  .place = SPS_HOST,
                  .props = s->symmetric ? SPS_SYMMETRIC : 0 };

    memset(a, 0, sizeof a);
    s->fill(a);
    for (int i = 0; i <= N; i++) rowptr[i] = (int64_t)i * N;
    for (int e = 0; e < N * N; e++) col[e] = e % N;
    return zoo_copy(&A);
}

/* Four right-hand sides: random; in the range of A, scaled by 1e-120; smooth;
 * a single nonzero entry, scaled by 1e90. consistent: all are in the range of
 * A. */
static inline void fill_sides(problem *p, bool consistent)
{
    const double *val = p->A->val;
    double y[N][K], unit[K] = { 1, 1e-120, 1, 1e90 };

    for (int i = 0; i < N; i++) {
        y[i][0] = p->b[i * K];
        y[i][1] = p->b[i * K + 1];
        y[i][2] = cos(0.1 * i);
        y[i][3] = i == 17;
    }
    for (int i = 0; i < N; i++)
        for (int j = 0; j < K; j++) {
            double sum = 0;

            for (int l = 0; l < N; l++) sum += val[i * N + l] * y[l][j];
            p->b[i * K + j] = unit[j] * (consistent || j == 1 ? sum : y[i][j]);
        }
}

static inline void open_system(problem *p, const test_system *s, const char *name)
{
    problem_open(p, ctx, matrix_of(s), K);
    fill_sides(p, s->fill == fill_singular);
    p->opt.solver = name;
    p->opt.precond = s->precond;
    p->opt.nullspace = "none";
    p->opt.restart = s->restart;
    p->opt.norm = s->norm;
    p->opt.rtol = s->norm == SPS_NORM_BACKWARD ? 1e-13 : 1e-9;
}

static inline bool fits(const test_system *s, const char *name)
{
    return s->symmetric || !wants_symmetry(name);
}

/* Loops over all methods that apply to the system, and `auto`. */
#define FOR_FITTING(s, name)                                                   \
    for (int i_ = -1; (name = i_ < 0 ? "auto" : sps_list(ctx, "solver", i_));  \
         i_++)                                                                 \
        if (fits(s, name))

/* ---------------------------------------------------------- growing limits */

/* The smallest residual of each column so far, and how far rounding may change
 * the residual of such an iterate: eps ||A|| ||x||, with the eps of floats
 * where corrections are computed in single precision. */
typedef struct record {
    double best[K], noise[K];
    int where[K];
} record;

static inline double noise(const problem *p, int j)
{
    const bool floats = !strcmp(p->opt.solver, "refinement");
    const double *val = p->A->val;
    double a = 0, x = 0, b = 0;

    for (int64_t q = 0; q < p->A->nnz; q++) a += val[q] * val[q];
    for (int64_t i = 0; i < p->A->nrow; i++) {
        x = hypot(x, p->x[i * p->k + j]);
        b = hypot(b, p->b[i * p->k + j]);
    }
    return 16 * (floats ? FLT_EPSILON : DBL_EPSILON) * sqrt(a) * (x / b);
}

static inline void record_open(record *r)
{
    *r = (record){ .best = { 1, 1, 1, 1 } };
}

static inline void must_be_as_good(const record *r, const problem *p, int m,
                            const char *what)
{
    for (int j = 0; j < K; j++)
        ck_assert_msg(p->residual[j] <= SLACK * r->best[j] + r->noise[j],
                      "%s, %s, column %d: %g after %d iterations, %g with a "
                      "limit of %d", p->opt.solver, what, j, r->best[j],
                      r->where[j], p->residual[j], m);
    for (int64_t i = 0; i < N * K; i++) ck_assert(isfinite(p->x[i]));
}

static inline void solve_up_to(problem *p, int m)
{
    memset(p->x, 0, N * K * sizeof *p->x);
    p->opt.max_iterations = m;
    solve_ok(p);
}

static inline void grow_limit(record *r, problem *p, int m, const char *what)
{
    solve_up_to(p, m);
    must_be_as_good(r, p, m, what);
    for (int j = 0; j < K; j++) {
        if (p->residual[j] >= r->best[j]) continue;
        r->best[j] = p->residual[j];
        r->noise[j] = noise(p, j);
        r->where[j] = m;
    }
}

#endif
