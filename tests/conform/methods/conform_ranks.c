/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_ranks.c - each method with each preconditioner that counts over
 * processes, on the patterns of the zoo: 2, 3, 5 and 8 processes come to the
 * verdict of one, and the residual of their X, formed here, agrees with it; the
 * same of eigenpairs.  With across_ranks, iterations and all bits of X are those
 * of one process as well, on up to 16.
 * One such case of three is taken, others on the next pattern, with one of the
 * numbers of processes in turn; SPS_TEST_LONG=1 takes all.  Under sanitizers, and
 * on a GPU, whose contexts take long, one case of 13. */
#include <math.h>

#include "tests/problems/zoo.h"
#include "tests/support/absent.h"
#include "tests/processes/crew_system.h"
#include "tests/support/fixture.h"
#include "tests/support/least.h"
#include "tests/support/runner.h"

enum { K = 3, N = 70 };

static const int sizes[] = { 2, 3, 5, 8 };

typedef struct work {
    const sps_csr *A;
    const double *b;
    double *x;                /* n x K */
    const char *family, *solver, *precond;
} work;

/* What a rank is told at the end. */
typedef struct verdict {
    sps_status st;
    sps_stop stop, column[K];
    int iterations;
    bool in_doubles;
} verdict;

static crew_member member[CREW];
static verdict told[CREW];

static void solve(crew_member *m)
{
    const work *w = m->data;
    crew_system c = { .A = w->A, .b = w->b, .x = w->x, .k = K };

    sps_options_default(&c.opt);
    c.opt.solver = w->solver;
    c.opt.precond = w->precond;
    c.opt.nullspace = "none";
    c.opt.max_iterations = 1000;
    crew_solve(m, &c);
    told[m->rank] = (verdict){ .st = m->st, .stop = c.result.stop,
                               .iterations = c.result.iterations,
                               .in_doubles = c.result.in_doubles };
    memcpy(told[m->rank].column, c.column, sizeof told[0].column);
}

/* max over columns of ||b - A x|| / ||b||. */
static double residual(const work *w)
{
    const double *val = w->A->val;
    double worst = 0;

    for (int j = 0; j < K; j++) {
        long double rr = 0, bb = 0;

        for (int64_t i = 0; i < w->A->nrow; i++) {
            long double r = w->b[i * K + j];

            bb += r * r;
            for (int64_t p = w->A->rowptr[i]; p < w->A->rowptr[i + 1]; p++)
                r -= (long double)val[p] *
                     w->x[(int64_t)w->A->col[p] * K + j];
            rr += r * r;
        }
        worst = fmax(worst, sqrt((double)(rr / bb)));
    }
    return worst;
}

/* All ranks are told the same. */
static verdict run(work *w, int size)
{
    memset(told, 0, sizeof told);
    ck_assert_msg(crew_run(member, size, solve, w), "%s, %s, %s, %d ranks: a "
                  "deadlock", w->family, w->solver, w->precond, size);
    for (int r = 1; r < size; r++)
        ck_assert_msg(!memcmp(&told[r], &told[0], sizeof told[0]), "%s, %s, "
                      "%s, rank %d of %d: %d %d after %d, but rank 0: %d %d "
                      "after %d; %s | %s", w->family, w->solver, w->precond, r,
                      size, (int)told[r].st, (int)told[r].stop,
                      told[r].iterations, (int)told[0].st, (int)told[0].stop,
                      told[0].iterations, member[r].error, member[0].error);
    return told[0];
}

static void same_as_one(work *w)
{
    static int turn;
    const verdict one = run(w, 1);
    const int count = sizeof sizes / sizeof *sizes, taken = turn++ % count;

    for (int i = 0; i < count; i++) {
        verdict many;

        if (i != taken && !fixture_env("SPS_TEST_LONG")) continue;
        many = run(w, sizes[i]);
        ck_assert_msg(many.st == one.st && many.stop == one.stop &&
                      !memcmp(many.column, one.column, sizeof one.column),
                      "%s, %s, %s, %d ranks: %s, %s after %d, alone %s, %s "
                      "after %d; %s", w->family, w->solver, w->precond,
                      sizes[i], sps_status_string(many.st),
                      sps_stop_string(many.stop), many.iterations,
                      sps_status_string(one.st), sps_stop_string(one.stop),
                      one.iterations, member[0].error);
        ck_assert(!many.in_doubles);
        if (many.stop == SPS_STOP_CONVERGED)
            ck_assert_msg(residual(w) <= 1.0001e-8, "%s, %s, %s, %d ranks: "
                          "%g", w->family, w->solver, w->precond, sizes[i],
                          residual(w));
    }
}

/* Method t, in the order of their list with auto at the end, of those that
 * solve SPD or all regular systems; NULL past the last. */
static const char *method(int t, bool spd)
{
    const char *name;

    for (int i = 0; (name = sps_list(NULL, "solver", i)); i++)
        if (!solves_least_squares(name) && (spd || !wants_symmetry(name)))
            if (t-- == 0) return name;
    return t == 0 ? "auto" : NULL;
}

static const char *const preconds[] = {
    "none", "jacobi", "block_jacobi", "chebyshev", "ic0", "ilu0", "ilut",
    "fsai", "isai", "amg", "factor", "auto", NULL };

/* ilu0 of a symmetric matrix is a symmetric preconditioner, but not declared
 * to be one; ilut is none; ic0 and chebyshev are for symmetric matrices. */
static void cross(const sps_csr *A, const char *family, bool spd)
{
    double *b = zoo_block(A->nrow, K, K, 2, ZOO_RANDOM);
    double *x = calloc((size_t)(A->nrow * K), sizeof *x);
    const bool brief = runner_quick() || runner_place() == SPS_CUDA;
    const int every = fixture_env("SPS_TEST_LONG") ? 1 : brief ? 13 : 3;
    const bool without = absent("factor");
    static int number;
    work w = { .A = A, .b = b, .x = x, .family = family };

    for (int t = 0; (w.solver = method(t, spd)); t++)
        for (int c = 0; preconds[c]; c++) {
            w.precond = preconds[c];
            if (wants_symmetry(w.solver) && !strncmp(w.precond, "ilu", 3))
                continue;
            if (!spd && (!strcmp(w.precond, "ic0") ||
                         !strcmp(w.precond, "chebyshev"))) continue;
            if (without && !strcmp(w.precond, "factor")) continue;
            if (number++ % every == 0) same_as_one(&w);
        }
    /* The cases of a pattern may be a multiple of `every`. */
    number++;
    free(b);
    free(x);
}

START_TEST(positive_definite_systems_end_as_on_one_process)
{
    for (int f = 0; f < zoo_count(); f++) {
        sps_csr *A;

        if (!zoo_symmetric(f)) continue;
        A = zoo_matrix(f, N, 5, ZOO_SPD, SPS_F64);
        if (A->nrow >= 8) cross(A, zoo_name(f), true);
        zoo_free(&A);
    }
}
END_TEST

/* Diagonally dominant rows of every pattern. */
static void dominate(sps_csr *A)
{
    double *val = A->val;

    for (int64_t i = 0; i < A->nrow; i++) {
        double sum = 0.1;

        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            sum += A->col[p] == i ? 0 : fabs(val[p]);
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            if (A->col[p] == i) val[p] = sum;
    }
}

static bool full_diagonal(const sps_csr *A)
{
    int64_t found = 0;

    for (int64_t i = 0; i < A->nrow; i++)
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            found += A->col[p] == i;
    return found == A->nrow;
}

START_TEST(nonsymmetric_systems_end_as_on_one_process)
{
    for (int f = 0; f < zoo_count(); f++) {
        sps_csr *A = zoo_matrix(f, N, 5, ZOO_RANDOM, SPS_F64);

        if (A->nrow == A->ncol && A->nrow >= 8 && full_diagonal(A)) {
            dominate(A);
            cross(A, zoo_name(f), false);
        }
        zoo_free(&A);
    }
}
END_TEST

/* A matrix that is not symmetric, one that is indefinite, one with a NaN. */
START_TEST(unfit_systems_are_told_as_on_one_process)
{
    sps_csr *A = zoo_matrix(zoo_find("grid5"), 64, 5, ZOO_SPD, SPS_F64);
    double *val = A->val, *b = zoo_block(64, K, K, 2, ZOO_RANDOM);
    double *x = calloc(64 * K, sizeof *x);
    work w = { .A = A, .b = b, .x = x, .family = "grid5", .precond = "none" };

    for (int t = 0; (w.solver = method(t, true)); t++) {
        const double first = val[0], second = val[1];

        if (!wants_symmetry(w.solver)) continue;
        val[1] += 1;
        same_as_one(&w);
        val[1] = second;
        val[0] = -50;
        same_as_one(&w);
        val[0] = NAN;
        same_as_one(&w);
        val[0] = first;
    }
    free(b);
    free(x);
    zoo_free(&A);
}
END_TEST

/* Row 0 is empty, and b is not zero there: the pivots that are zero are those of
 * the diagonal block of process 0.  A block may be singular where the whole is
 * not, so that over processes they are no reason. */
START_TEST(zero_pivots_of_one_process_are_no_reason_of_its_own)
{
    enum { ROWS = 14 };
    int64_t rowptr[ROWS + 1] = { 0 };
    int32_t col[ROWS];
    double val[ROWS], b[ROWS * K], x[ROWS * K];
    const sps_csr A = { .nrow = ROWS, .ncol = ROWS, .nnz = ROWS - 1,
                        .rowptr = rowptr, .col = col, .val = val,
                        .dtype = SPS_F64 };
    work w = { .A = &A, .b = b, .x = x, .family = "an empty row",
               .solver = "block_gmres", .precond = "factor" };

    if (absent("factor")) runner_skip("no factor module");
    for (int i = 1; i < ROWS; i++) {
        col[i - 1] = i;
        val[i - 1] = i;
        rowptr[i + 1] = i;
    }
    for (int i = 0; i < ROWS * K; i++) b[i] = i % 7 + 1;
    ck_assert_int_eq(run(&w, 1).stop, SPS_STOP_SINGULAR);
    ck_assert_int_eq(run(&w, 2).stop, SPS_STOP_STAGNATED);
}
END_TEST

/* ----------------------------------------------------------- across_ranks */

static void set_across(bool across)
{
    for (int r = 0; r < CREW; r++) member[r].across = across;
}

/* Ranks 1, 2, 3, 5, 8 and 16, or one of them besides 1 in turn. */
static void bits_of_one(work *w)
{
    static const int many[] = { 2, 3, 5, 8, 16 };
    const int count = sizeof many / sizeof *many;
    const size_t bytes = (size_t)(w->A->nrow * K) * sizeof(double);
    static int turn;
    double *x = malloc(bytes);
    const verdict one = run(w, 1);

    memcpy(x, w->x, bytes);
    turn++;
    for (int i = 0; i < count; i++) {
        verdict other;

        if (many[i] > w->A->nrow) continue;
        if (i != turn % count && !fixture_env("SPS_TEST_LONG")) continue;
        memset(w->x, 0, bytes);
        other = run(w, many[i]);
        ck_assert_msg(!memcmp(&one, &other, sizeof one), "%s, %s, %s, %d "
                      "ranks: %s, %s after %d, alone %s, %s after %d; %s",
                      w->family, w->solver, w->precond, many[i],
                      sps_status_string(other.st), sps_stop_string(other.stop),
                      other.iterations, sps_status_string(one.st),
                      sps_stop_string(one.stop), one.iterations,
                      member[0].error);
        ck_assert_msg(!memcmp(x, w->x, bytes), "%s, %s, %s, %d ranks: other "
                      "bits of X", w->family, w->solver, w->precond, many[i]);
    }
    free(x);
}

static const char *const same_preconds[] = { "none", "jacobi", "chebyshev",
                                             "auto", "fsai", "isai", NULL };

static void cross_bits(const sps_csr *A, const char *family, bool spd)
{
    const int every = fixture_env("SPS_TEST_LONG") ? 1 : runner_quick() ? 7 : 2;
    double *b = zoo_block(A->nrow, K, K, 2, ZOO_RANDOM);
    double *x = calloc((size_t)(A->nrow * K), sizeof *x);
    work w = { .A = A, .b = b, .x = x, .family = family };
    static int number;

    for (int t = 0; (w.solver = method(t, spd)); t++)
        for (int c = 0; same_preconds[c]; c++) {
            w.precond = same_preconds[c];
            if (!spd && !strcmp(w.precond, "chebyshev")) continue;
            if (number++ % every == 0) bits_of_one(&w);
        }
    number++;
    free(b);
    free(x);
}

START_TEST(across_ranks_bits_are_those_of_one_process)
{
    if (runner_place() == SPS_CUDA) {
        runner_leave_out("across_ranks is for the host");
    }
    set_across(true);
    for (int f = 0; f < zoo_count(); f++) {
        sps_csr *A = zoo_matrix(f, N, 5, ZOO_RANDOM, SPS_F64);
        const bool fits = A->nrow == A->ncol && A->nrow >= 8;

        if (fits && full_diagonal(A)) {
            dominate(A);
            cross_bits(A, zoo_name(f), false);
        }
        zoo_free(&A);
        if (!fits || !zoo_symmetric(f)) continue;
        A = zoo_matrix(f, N, 5, ZOO_SPD, SPS_F64);
        cross_bits(A, zoo_name(f), true);
        zoo_free(&A);
    }
    set_across(false);
}
END_TEST

/* 2500 rows: chunks of 6 rows (chunk_sums.h). */
START_TEST(across_ranks_chunks_of_several_rows)
{
    sps_csr *A = zoo_matrix(zoo_find("grid5"), 2500, 5, ZOO_SPD, SPS_F64);
    double *b = zoo_block(A->nrow, K, K, 2, ZOO_RANDOM);
    double *x = calloc((size_t)(A->nrow * K), sizeof *x);
    work w = { .A = A, .b = b, .x = x, .family = "grid5", .solver = "block_cg",
               .precond = "jacobi" };

    if (runner_place() == SPS_CUDA) {
        runner_leave_out("across_ranks is for the host");
    }
    set_across(true);
    crew_unit = 6;
    bits_of_one(&w);
    w.solver = "gmres";
    bits_of_one(&w);
    crew_unit = 1;
    ck_assert_int_eq(run(&w, 3).st, SPS_EUNFIT);
    ck_assert_ptr_nonnull(strstr(member[2].error, "a multiple of 6"));
    w.precond = "ic0";
    ck_assert_int_eq(run(&w, 2).st, SPS_EUNFIT);
    ck_assert_ptr_nonnull(strstr(member[0].error, "across_ranks"));
    w.precond = "amg";
    ck_assert_int_eq(run(&w, 1).st, SPS_EUNFIT);
    set_across(false);
    free(b);
    free(x);
    zoo_free(&A);
}
END_TEST

/* ------------------------------------------------------------- eigenpairs */

static double lambda[CREW][K];

static void find_pairs(crew_member *m)
{
    const work *w = m->data;
    const int64_t first = crew_first(w->A->nrow, m->all->size, m->rank);
    const int64_t n = crew_first(w->A->nrow, m->all->size, m->rank + 1) - first;
    sps_csr *own = NULL;
    sps_operator *op = NULL;
    sps_solver *s = NULL;
    sps_block *X = NULL;
    sps_eigen_result r = { .struct_size = sizeof r };
    sps_options opt;

    sps_options_default(&opt);
    opt.solver = w->solver;
    opt.precond = w->precond;
    m->st = crew_rows(m, w->A, &own);
    if (!m->st) m->st = sps_operator_csr(m->ctx, own, 8, &opt, &op);
    if (!m->st) m->st = sps_block_create(m->ctx, n, K, &X);
    if (!m->st) m->st = sps_solver_create_eigen(op, NULL, NULL, K, &opt, &s);
    if (!m->st) m->st = sps_solver_eigen(s, X, lambda[m->rank], &r);
    if (!m->st)
        m->st = sps_block_get(X, 0, K, w->x + first * K, K, SPS_ROW_MAJOR,
                              SPS_HOST);
    told[m->rank] = (verdict){ .st = m->st, .stop = r.stop,
                               .iterations = r.iterations };
    if (m->st)
        strncpy(m->error, sps_context_error(m->ctx), sizeof m->error - 1);
    sps_solver_destroy(&s);
    sps_operator_destroy(&op);
    sps_block_destroy(&X);
    sps_csr_destroy(m->ctx, &own);
}

/* ||A x - lambda x|| of pair j, x of unit length. */
static double pair_residual(const work *w, int j)
{
    const double *val = w->A->val;
    double sum = 0;

    for (int64_t i = 0; i < w->A->nrow; i++) {
        double r = -lambda[0][j] * w->x[i * K + j];

        for (int64_t p = w->A->rowptr[i]; p < w->A->rowptr[i + 1]; p++)
            r += val[p] * w->x[(int64_t)w->A->col[p] * K + j];
        sum += r * r;
    }
    return sqrt(sum);
}

START_TEST(eigenpairs_are_those_of_one_process)
{
    static const char *const ways[][2] = {
        { "lobpcg", "none" }, { "lobpcg", "jacobi" }, { "lobpcg", "amg" },
        { "chebyshev_filter", "none" } };
    sps_csr *A = zoo_matrix(zoo_find("grid5"), 196, 5, ZOO_SPD, SPS_F64);
    double *x = calloc((size_t)(A->nrow * K), sizeof *x);
    work w = { .A = A, .x = x, .family = "grid5" };

    for (size_t t = 0; t < sizeof ways / sizeof *ways; t++)
        for (int i = -1; i < 4; i++) {
            const int size = i < 0 ? 1 : sizes[i];
            static double one[K];

            w.solver = ways[t][0];
            w.precond = ways[t][1];
            if (i >= 0 && i != (int)t && !fixture_env("SPS_TEST_LONG"))
                continue;
            ck_assert(crew_run(member, size, find_pairs, &w));
            if (i < 0) memcpy(one, lambda[0], sizeof one);
            for (int r = 0; r < size; r++)
                ck_assert_msg(!told[r].st && told[r].stop ==
                              SPS_STOP_CONVERGED && !memcmp(lambda[r],
                              lambda[0], sizeof one), "%s, %s, rank %d of %d: "
                              "%s, %s", w.solver, w.precond, r, size,
                              sps_stop_string(told[r].stop), member[r].error);
            for (int j = 0; j < K; j++)
                ck_assert_msg(fabs(lambda[0][j] - one[j]) <= 1e-9 * one[j] &&
                              pair_residual(&w, j) <= 1e-6 * one[j],
                              "%s, %s, %d ranks, pair %d: %.15g, not %.15g; "
                              "residual %g", w.solver, w.precond, size, j,
                              lambda[0][j], one[j], pair_residual(&w, j));
        }
    free(x);
    zoo_free(&A);
}
END_TEST

START_TEST(across_ranks_bits_of_eigenpairs)
{
    static const char *const ways[][2] = {
        { "lobpcg", "none" }, { "lobpcg", "jacobi" }, { "lobpcg", "chebyshev" },
        { "chebyshev_filter", "none" } };
    sps_csr *A = zoo_matrix(zoo_find("grid5"), 196, 5, ZOO_SPD, SPS_F64);
    const size_t bytes = (size_t)(A->nrow * K) * sizeof(double);
    double *x = calloc(1, bytes), *one = malloc(bytes);
    work w = { .A = A, .x = x, .family = "grid5" };

    if (runner_place() == SPS_CUDA) {
        runner_leave_out("across_ranks is for the host");
    }
    set_across(true);
    for (size_t t = 0; t < sizeof ways / sizeof *ways; t++) {
        const int size = t % 2 ? 3 : 16;
        verdict alone;

        w.solver = ways[t][0];
        w.precond = ways[t][1];
        ck_assert(crew_run(member, 1, find_pairs, &w));
        alone = told[0];
        memcpy(one, x, bytes);
        ck_assert(crew_run(member, size, find_pairs, &w));
        ck_assert_msg(!memcmp(&alone, &told[size - 1], sizeof alone) &&
                      alone.stop == SPS_STOP_CONVERGED, "%s, %s, %d ranks: %s "
                      "after %d, alone %s after %d; %s", w.solver, w.precond,
                      size, sps_stop_string(told[0].stop), told[0].iterations,
                      sps_stop_string(alone.stop), alone.iterations,
                      member[0].error);
        ck_assert_msg(!memcmp(one, x, bytes), "%s, %s, %d ranks: other bits",
                      w.solver, w.precond, size);
    }
    set_across(false);
    free(x);
    free(one);
    zoo_free(&A);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(across_ranks_bits_of_eigenpairs),
    RUNNER_TEST(eigenpairs_are_those_of_one_process),
    RUNNER_TEST(positive_definite_systems_end_as_on_one_process),
    RUNNER_TEST(nonsymmetric_systems_end_as_on_one_process),
    RUNNER_TEST(across_ranks_bits_are_those_of_one_process),
    RUNNER_TEST(across_ranks_chunks_of_several_rows),
    RUNNER_TEST(unfit_systems_are_told_as_on_one_process),
    RUNNER_TEST(zero_pivots_of_one_process_are_no_reason_of_its_own),
};

RUNNER_MAIN("ranks", tests)
