/* SPDX-License-Identifier: BSD-3-Clause */
/* check_comm_rows.c - processes that solve together and have different parts of
 * the problem: different numbers of rows, or all the same part.  Systems by all
 * methods, eigenpairs, null spaces; and what is rejected, on all of them.
 *
 * A is a ring: d on the diagonal, -1 for both neighbours, where the first and
 * the last row are neighbours, too.  Eigenvalues d - 2 cos(2 pi j / rows). */
#include <math.h>

#include "tests/support/fixture.h"
#include "tests/processes/ranks.h"
#include "tests/support/runner.h"

enum { K = 4, PAIRS = 5, MOST = 600 };

typedef struct process process;
struct process {
    int rank;
    int n;
    bool few;                 /* a small block for the eigensolver */
    double d;
    const char *solver, *which;
    sps_status (*task)(process *p);
    sps_context *ctx;
    sps_operator *op;
    sps_status st;
    sps_stop stop;
    char error[512];
    int iterations;
    double b[MOST * K], x[MOST * K], lambda[PAIRS];
};

static process p[RANKS];

static int apply(double alpha, const double *X, int64_t ldx, double beta,
                 double *Y, int64_t ldy, int64_t n, int k, void *stream,
                 void *data)
{
    const process *own = data;
    const double *before = w.high[(own->rank + RANKS - 1) % RANKS];
    const double *behind = w.low[(own->rank + 1) % RANKS];

    (void)stream;
    if (show_ends(own->rank, X, ldx, n, k)) return 99;
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < k; j++) {
            double a = i > 0 ? X[(i - 1) * ldx + j] : before[j];
            double c = i < n - 1 ? X[(i + 1) * ldx + j] : behind[j];
            double *y = &Y[i * ldy + j], old = beta == 0 ? 0 : beta * *y;

            *y = alpha * (own->d * X[i * ldx + j] - a - c) + old;
        }
    return meet();
}

static void *process_main(void *data)
{
    process *own = data;
    const sps_comm_calls calls = {.struct_size = sizeof calls, .sum = sum};
    sps_context_options o;
    sps_comm *comm = NULL;

    sps_context_options_default(&o);
    o.place = SPS_HOST;
    o.threads = 1;
    own->st = sps_comm_user(own->rank, RANKS, &calls, own, &comm);
    o.comm = comm;
    if (!own->st) own->st = sps_context_create(&o, &own->ctx, NULL);
    if (!own->st)
        own->st = sps_operator_user(own->ctx, own->n, apply, own,
                                    SPS_SYMMETRIC, &own->op);
    if (!own->st) own->st = own->task(own);
    (void)snprintf(own->error, sizeof own->error, "%s",
                   own->st && own->ctx ? sps_context_error(own->ctx) : "");
    sps_operator_destroy(&own->op);
    sps_context_destroy(&own->ctx);
    sps_comm_destroy(&comm);
    return NULL;
}

static void run(sps_status (*task)(process *p), const int rows[RANKS],
                double d, const char *solver, const char *which)
{
    for (int r = 0; r < RANKS; r++) {
        memset(&p[r], 0, sizeof p[r]);
        p[r].rank = r;
        p[r].n = rows[r];
        p[r].few = rows[0] == 4;
        p[r].d = d;
        p[r].solver = solver;
        p[r].which = which;
        p[r].task = task;
    }
    ranks_run(process_main, p, sizeof *p);
    ck_assert_msg(!w.broken, "%s: a process did not come: %s | %s | %s",
                  solver, p[0].error, p[1].error, p[2].error);
}

static void all_went_well(sps_stop stop)
{
    for (int r = 0; r < RANKS; r++) {
        ck_assert_msg(!p[r].st, "%s, process %d: %s", p[r].solver, r,
                      p[r].error);
        ck_assert_msg(p[r].stop == stop, "%s, process %d: %s", p[r].solver, r,
                      sps_stop_string(p[r].stop));
        ck_assert_int_eq(p[r].iterations, p[0].iterations);
    }
}

static void all_are_told(sps_status st, const char *text)
{
    for (int r = 0; r < RANKS; r++)
        ck_assert_msg(p[r].st == st && strstr(p[r].error, text),
                      "%s, process %d: %d, %s", p[r].solver, r, (int)p[r].st,
                      p[r].error);
}

/* Gathers the parts of all processes, b or x, one after another. */
static int gather(double *all, bool of_b)
{
    int rows = 0;

    for (int r = 0; r < RANKS; r++) {
        memcpy(all + rows * K, of_b ? p[r].b : p[r].x,
               (size_t)(p[r].n * K) * sizeof *all);
        rows += p[r].n;
    }
    return rows;
}

/* --------------------------------------------------------------- systems */

/* b is random; its component in the null space is removed where there is
 * one. */
static sps_status solve(process *own)
{
    sps_solver *s = NULL;
    sps_block *B = NULL, *X = NULL, *N = NULL;
    sps_result r = {.struct_size = sizeof r};
    sps_options opt;
    double one[MOST];
    sps_status st;

    for (int i = 0; i < MOST; i++) one[i] = 1;
    sps_options_default(&opt);
    opt.solver = own->solver;
    opt.precond = "none";
    st = sps_block_create(own->ctx, own->n, K, &B);
    if (!st) st = sps_block_create(own->ctx, own->n, K, &X);
    if (!st) st = sps_block_random(B, 1);
    if (!st && own->d == 2) {
        st = sps_block_create(own->ctx, own->n, 1, &N);
        if (!st)
            st = sps_block_set(N, 0, 1, one, 1, SPS_ROW_MAJOR, SPS_HOST);
        opt.nullspace_basis = N;
    }
    if (!st) st = sps_solver_create(own->op, NULL, K, &opt, &s);
    if (!st) st = sps_solver_project(s, B);
    if (!st) st = sps_block_get(B, 0, K, own->b, K, SPS_ROW_MAJOR, SPS_HOST);
    if (!st) st = sps_solver_linear(s, B, X, &r);
    if (!st) st = sps_block_get(X, 0, K, own->x, K, SPS_ROW_MAJOR, SPS_HOST);
    own->stop = r.stop;
    own->iterations = r.iterations;
    sps_solver_destroy(&s);
    sps_block_destroy(&B);
    sps_block_destroy(&X);
    sps_block_destroy(&N);
    return st;
}

static void residuals_are_small(void)
{
    static double x[RANKS * MOST * K], b[RANKS * MOST * K];
    const int n = gather(x, false);

    (void)gather(b, true);
    for (int j = 0; j < K; j++) {
        double rr = 0, bb = 0;

        for (int i = 0; i < n; i++) {
            const double ax = p[0].d * x[i * K + j] -
                              x[(i + 1) % n * K + j] -
                              x[(i + n - 1) % n * K + j];

            rr += pow(b[i * K + j] - ax, 2);
            bb += pow(b[i * K + j], 2);
        }
        ck_assert_msg(sqrt(rr / bb) <= 1.001e-8, "%s, column %d: %g",
                      p[0].solver, j, sqrt(rr / bb));
    }
}

static const char *const methods[] = {
    "cg", "block_cg", "gmres", "block_gmres", "block_gcrodr", "bicgstab",
    "idr", "minres", "refinement", "auto" };
enum { METHODS = sizeof methods / sizeof *methods };

START_TEST(rows_in_other_numbers_are_solved_together)
{
    static const int rows[][RANKS] = { { 1, 12, 55 }, { 2, 390, 23 } };

    for (int t = 0; t < METHODS; t++)
        for (int i = 0; i < 2; i++) {
            run(solve, rows[i], 2.5, methods[t], "");
            all_went_well(SPS_STOP_CONVERGED);
            residuals_are_small();
        }
}
END_TEST

START_TEST(a_null_space_over_processes_is_a_basis)
{
    static const int rows[RANKS] = { 9, 31, 2 };

    for (int t = 0; t < METHODS; t++) {
        run(solve, rows, 2, methods[t], "");
        all_went_well(SPS_STOP_CONVERGED);
        residuals_are_small();
    }
}
END_TEST

/* ------------------------------------------------------------- eigenpairs */

static sps_status find_pairs(process *own)
{
    sps_solver *s = NULL;
    sps_block *X = NULL;
    sps_eigen_result r = {.struct_size = sizeof r};
    sps_options opt;
    sps_status st;

    sps_options_default(&opt);
    opt.solver = own->solver;
    opt.which = own->which;
    opt.precond = "none";
    opt.rtol = 1e-7;
    opt.verify_count = true;
    if (own->few) opt.block = 4;
    st = sps_solver_create_eigen(own->op, NULL, NULL, PAIRS, &opt, &s);
    if (!st) st = sps_block_create(own->ctx, own->n, PAIRS, &X);
    if (!st) st = sps_solver_eigen(s, X, own->lambda, &r);
    own->stop = r.stop;
    own->iterations = r.iterations;
    sps_solver_destroy(&s);
    sps_block_destroy(&X);
    return st;
}

/* The ring of n: the lowest eigenvalue once, then pairs of equal ones. */
static void pairs_are_those_of_the_ring(bool largest)
{
    const int n = p[0].n + p[1].n + p[2].n;

    for (int i = 0; i < PAIRS; i++) {
        const int j = (i + 1) / 2;
        const double low = p[0].d - 2 * cos(2 * M_PI * j / n);
        const double right = largest ? 2 * p[0].d - low : low;

        ck_assert_msg(fabs(p[0].lambda[i] - right) <= 1e-6, "%s, %s: "
                      "lambda[%d] is %.9g, not %.9g", p[0].solver, p[0].which,
                      i, p[0].lambda[i], right);
        for (int r = 1; r < RANKS; r++)
            ck_assert(p[r].lambda[i] == p[0].lambda[i]);
    }
}

/* In the second case the parts of all processes are the same: the random
 * vectors must not be, otherwise eigenvectors that differ between processes are
 * never found.  In the third case one process has as many rows as the block has
 * columns, so that its rows alone cannot hold all pairs. */
START_TEST(eigenpairs_of_a_ring_over_processes)
{
    static const char *const solvers[] = { "auto", "lobpcg",
                                           "chebyshev_filter" };
    static const int rows[][RANKS] = { { 2, 38, 20 }, { 20, 20, 20 },
                                       { 4, 34, 22 } };

    for (int t = 0; t < 3; t++)
        for (int i = 0; i < 3; i++)
            for (int largest = 0; largest < 2; largest++) {
                run(find_pairs, rows[i], 2.1, solvers[t],
                    largest ? "largest" : "smallest");
                all_went_well(SPS_STOP_CONVERGED);
                pairs_are_those_of_the_ring(largest);
            }
}
END_TEST

/* --------------------------------------------------------------- rejections */

static const int even[RANKS] = { 10, 10, 10 };

static sps_status with_a_matrix(process *own)
{
    sps_csr *A = NULL;
    sps_operator *op = NULL;
    sps_solver *s = NULL;
    sps_status st;

    st = sps_csr_create(own->ctx, own->n, own->n, own->n, SPS_F64, &A);
    for (int i = 0; !st && i < own->n; i++) {
        A->col[i] = i;
        ((double *)A->val)[i] = 2;
        A->rowptr[i + 1] = i + 1;
    }
    if (!st) st = sps_operator_csr(own->ctx, A, K, NULL, &op);
    if (!st && own->which)
        st = sps_solver_create_eigen(own->op, op, NULL, 2, NULL, &s);
    else if (!st)
        st = sps_solver_create(own->rank == 1 ? op : own->op, NULL, K, NULL,
                               &s);
    sps_solver_destroy(&s);
    sps_operator_destroy(&op);
    sps_csr_destroy(own->ctx, &A);
    return st;
}

START_TEST(a_matrix_of_own_rows_alone_is_refused_on_all)
{
    run(with_a_matrix, even, 2.5, "auto", NULL);
    all_are_told(SPS_EUNFIT, "sps_operator_user");
    run(with_a_matrix, even, 2.5, "auto", "mass");
    all_are_told(SPS_EUNFIT, "sps_operator_user");
}
END_TEST

START_TEST(a_process_without_rows_is_refused_on_all)
{
    static const int rows[RANKS] = { 10, 0, 10 };

    run(solve, rows, 2.5, "cg", "");
    all_are_told(SPS_EUNFIT, "1 of 3 processes have no rows");
    run(find_pairs, rows, 2.5, "lobpcg", "smallest");
    all_are_told(SPS_EUNFIT, "1 of 3 processes have no rows");
}
END_TEST

static sps_status with_a_named_null_space(process *own)
{
    sps_solver *s = NULL;
    sps_options opt;
    sps_status st;

    sps_options_default(&opt);
    opt.nullspace = "constant";
    st = sps_solver_create(own->op, NULL, K, &opt, &s);
    sps_solver_destroy(&s);
    return st;
}

START_TEST(what_wants_entries_is_refused_on_all)
{
    run(with_a_named_null_space, even, 2, "auto", "");
    all_are_told(SPS_EUNFIT, "give a basis");
    run(find_pairs, even, 2.5, "lobpcg", "nearest");
    all_are_told(SPS_EUNFIT, "callback");
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(rows_in_other_numbers_are_solved_together),
    RUNNER_TEST(a_null_space_over_processes_is_a_basis),
    RUNNER_TEST(eigenpairs_of_a_ring_over_processes),
    RUNNER_TEST(a_matrix_of_own_rows_alone_is_refused_on_all),
    RUNNER_TEST(a_process_without_rows_is_refused_on_all),
    RUNNER_TEST(what_wants_entries_is_refused_on_all),
};

RUNNER_MAIN("comm_rows", tests)
