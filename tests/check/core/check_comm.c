/* SPDX-License-Identifier: BSD-3-Clause */
/* check_comm.c - processes that solve together, here threads of one process:
 * each has a context, its own rows, and an operator that exchanges boundary
 * rows itself.  What happens on one of them only - a time limit, a monitor's
 * answer, sps_cancel, a failure - must end the call on all. */
#include <math.h>

#include "tests/support/fixture.h"
#include "tests/processes/ranks.h"
#include "tests/support/runner.h"

enum { N = 60, K = 3 };

typedef enum way {
    NOTHING, LATE, MONITOR, CANCEL, APPLY, PRECOND, SHAPE, WIDTH
} way;

typedef struct process {
    int rank;
    way way;                  /* what process 1 does */
    const char *solver;
    double rtol;
    sps_context *ctx;
    int applies;
    sps_status st;
    sps_result r;
    char error[512];
    double b[N * K], x[N * K];
} process;

static bool odd_one(const process *p)
{
    return p->rank == 1;
}

/* Rows of tridiag(-1, 2.01, -1) over all processes. */
static int apply(double alpha, const double *X, int64_t ldx, double beta,
                 double *Y, int64_t ldy, int64_t n, int k, void *stream,
                 void *data)
{
    process *p = data;
    int r = p->rank;

    (void)stream;
    if (show_ends(r, X, ldx, n, k)) return 99;
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < k; j++) {
            double before = i > 0 ? X[(i - 1) * ldx + j]
                            : r > 0 ? w.high[r - 1][j] : 0;
            double behind = i < n - 1 ? X[(i + 1) * ldx + j]
                            : r < RANKS - 1 ? w.low[r + 1][j] : 0;
            double *y = &Y[i * ldy + j], old = beta == 0 ? 0 : beta * *y;

            *y = alpha * (2.01 * X[i * ldx + j] - before - behind) + old;
        }
    if (meet()) return 99;
    p->applies++;
    return p->way == APPLY && odd_one(p) && p->applies == 9 ? 7 : 0;
}

/* Three Jacobi iterations: products between two reductions. */
static int smooth(double alpha, const double *R, int64_t ldr, double beta,
                  double *Z, int64_t ldz, int64_t n, int k, void *stream,
                  void *data)
{
    process *p = data;
    double T[N * K];
    int code = 0;

    (void)beta;
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < k; j++) Z[i * ldz + j] = R[i * ldr + j] / 2.01;
    for (int step = 0; step < 2 && !code; step++) {
        code = apply(-1, Z, ldz, 0, T, k, n, k, stream, data);
        for (int64_t i = 0; i < n; i++)
            for (int j = 0; j < k; j++)
                Z[i * ldz + j] += (T[i * k + j] + R[i * ldr + j]) / 2.01;
    }
    (void)alpha;
    return p->way == PRECOND && odd_one(p) && p->applies > 20 ? 8 : code;
}

static bool watch(const sps_progress *g, void *data)
{
    process *p = data;

    if (p->way == LATE && odd_one(p)) /* delays its reading of the clock */
        nanosleep(&(struct timespec){0, 2000000}, NULL);
    if (!odd_one(p) || g->iteration < 6) return true;
    if (p->way == CANCEL) sps_cancel(p->ctx, true);
    return p->way != MONITOR;
}

/* ---------------------------------------------------------------- one solve */

static sps_status solve(process *p, int k)
{
    sps_operator *op = NULL;
    sps_precond *M = NULL;
    sps_solver *s = NULL;
    sps_block *B = NULL, *X = NULL;
    sps_options opt;
    sps_status st;

    sps_options_default(&opt);
    opt.solver = p->solver;
    opt.precond = "none";
    opt.rtol = p->rtol;
    opt.monitor = watch;
    opt.monitor_data = p;
    /* That of process 0 counts. */
    opt.max_seconds = p->way != LATE ? 0 : odd_one(p) ? 10 : 0.05;
    st = sps_operator_user(p->ctx, N, apply, p, SPS_SYMMETRIC | SPS_SPD, &op);
    if (!st && p->way == PRECOND) st = sps_precond_user(p->ctx, N, smooth, p, &M);
    if (!st) st = sps_block_create(p->ctx, N, k, &B);
    if (!st) st = sps_block_create(p->ctx, p->way == SHAPE && odd_one(p) ? 5 : N,
                                   k, &X);
    if (!st) st = sps_block_random(B, 1);
    if (!st) st = sps_block_get(B, 0, k, p->b, K, SPS_ROW_MAJOR, SPS_HOST);
    if (!st) st = sps_solver_create(op, M, k, &opt, &s);
    if (!st) st = sps_solver_linear(s, B, X, &p->r);
    p->st = st;
    (void)snprintf(p->error, sizeof p->error, "%s",
                   st ? sps_context_error(p->ctx) : "");
    if (!st)
        st = sps_block_get(X, 0, k, p->x, K, SPS_ROW_MAJOR, SPS_HOST);
    sps_solver_destroy(&s);
    sps_precond_destroy(&M);
    sps_operator_destroy(&op);
    sps_block_destroy(&B);
    sps_block_destroy(&X);
    return st;
}

static void *process_main(void *data)
{
    process *p = data;
    const sps_comm_calls calls = {.struct_size = sizeof calls, .sum = sum};
    sps_context_options o;
    sps_comm *comm = NULL;

    sps_context_options_default(&o);
    o.place = SPS_HOST;
    o.threads = 1;
    p->st = sps_comm_user(p->rank, RANKS, &calls, p, &comm);
    o.comm = comm;
    if (!p->st) p->st = sps_context_create(&o, &p->ctx, NULL);
    if (!p->st) {
        p->r.struct_size = sizeof p->r;
        (void)solve(p, p->way == WIDTH && odd_one(p) ? K - 1 : K);
    }
    sps_context_destroy(&p->ctx);
    sps_comm_destroy(&comm);
    return NULL;
}

static void run(process *p, way way, const char *solver, double rtol)
{
    for (int r = 0; r < RANKS; r++)
        p[r] = (process){.rank = r, .way = way, .solver = solver,
                         .rtol = rtol};
    ranks_run(process_main, p, sizeof *p);
    ck_assert_msg(!w.broken, "%s, way %d: a process did not come: %s | %s | %s",
                  solver, (int)way, p[0].error, p[1].error, p[2].error);
}

static const char *const solvers[] = {"cg", "block_cg", "gmres", "block_gmres",
                                      "bicgstab", "idr", "minres"};
enum { SOLVERS = sizeof solvers / sizeof *solvers };

/* ------------------------------------------------------------------- tests */

/* Norm ||b - A x|| of the whole system, from the matrix entries. */
static double residual(const process *p, int j)
{
    double rr = 0, bb = 0;

    for (int i = 0; i < RANKS * N; i++) {
        double x = p[i / N].x[i % N * K + j], ax = 2.01 * x;
        double rhs = p[i / N].b[i % N * K + j];

        if (i > 0) ax -= p[(i - 1) / N].x[(i - 1) % N * K + j];
        if (i < RANKS * N - 1) ax -= p[(i + 1) / N].x[(i + 1) % N * K + j];
        rr += (rhs - ax) * (rhs - ax);
        bb += rhs * rhs;
    }
    return sqrt(rr / bb);
}

START_TEST(a_system_over_processes_is_solved)
{
    process p[RANKS];

    for (int t = 0; t < SOLVERS; t++) {
        run(p, NOTHING, solvers[t], 1e-8);
        for (int r = 0; r < RANKS; r++) {
            ck_assert_msg(!p[r].st, "%s: %s", solvers[t], p[r].error);
            ck_assert_int_eq(p[r].r.stop, SPS_STOP_CONVERGED);
            ck_assert_int_eq(p[r].r.iterations, p[0].r.iterations);
            ck_assert(p[r].r.worst_residual == p[0].r.worst_residual);
        }
        for (int j = 0; j < K; j++)
            ck_assert_msg(residual(p, j) <= 1.001e-8, "%s: %g", solvers[t],
                          residual(p, j));
    }
}
END_TEST

static void all_stop(way way, sps_stop stop)
{
    process p[RANKS];

    for (int t = 0; t < SOLVERS; t++) {
        run(p, way, solvers[t], 1e-13);
        for (int r = 0; r < RANKS; r++) {
            ck_assert_msg(!p[r].st, "%s: %s", solvers[t], p[r].error);
            ck_assert_msg(p[r].r.stop == stop, "%s, process %d: %s", solvers[t],
                          r, sps_stop_string(p[r].r.stop));
            ck_assert_int_eq(p[r].r.iterations, p[0].r.iterations);
        }
    }
}

START_TEST(a_monitor_of_one_process_stops_all)
{
    all_stop(MONITOR, SPS_STOP_INTERRUPTED);
}
END_TEST

START_TEST(cancelling_one_process_stops_all)
{
    all_stop(CANCEL, SPS_STOP_INTERRUPTED);
}
END_TEST

START_TEST(a_limit_of_time_is_that_of_one_clock)
{
    all_stop(LATE, SPS_STOP_MAX_TIME);
}
END_TEST

static void one_fails(way way, sps_status st, const char *text)
{
    process p[RANKS];

    for (int t = 0; t < SOLVERS; t++) {
        run(p, way, solvers[t], 1e-13);
        ck_assert_msg(p[1].st == st && strstr(p[1].error, text), "%s: %d, %s",
                      solvers[t], (int)p[1].st, p[1].error);
        for (int r = 0; r < RANKS; r += 2) {
            ck_assert_msg(p[r].st == SPS_EPEER, "%s, process %d: %d, %s",
                          solvers[t], r, (int)p[r].st, p[r].error);
            ck_assert_msg(strstr(p[r].error, "process 1 of 3"), "%s",
                          p[r].error);
        }
    }
}

START_TEST(a_failing_operator_of_one_process_ends_the_call_on_all)
{
    one_fails(APPLY, SPS_EUSER, "the operator's callback returned 7");
}
END_TEST

START_TEST(a_failing_preconditioner_of_one_process_ends_the_call_on_all)
{
    one_fails(PRECOND, SPS_EUSER, "the preconditioner callback returned 8");
}
END_TEST

START_TEST(a_refused_argument_of_one_process_ends_the_call_on_all)
{
    one_fails(SHAPE, SPS_ESHAPE, "X is 5 x 3");
}
END_TEST

START_TEST(processes_at_different_sums_are_told_apart)
{
    process p[RANKS];

    run(p, WIDTH, "cg", 1e-8);
    for (int r = 0; r < RANKS; r++) {
        ck_assert_msg(p[r].st == SPS_EBUG, "process %d: %d, %s", r,
                      (int)p[r].st, p[r].error);
        ck_assert_ptr_nonnull(strstr(p[r].error, "disagree at sum"));
    }
}
END_TEST

START_TEST(a_communicator_is_checked)
{
    const sps_comm_calls calls = {.struct_size = sizeof calls, .sum = sum};
    const sps_comm_calls none = {.struct_size = sizeof none};
    sps_comm *c = NULL;
    int rank = -1, size = -1;

    ck_assert_int_eq(sps_comm_user(0, 0, &calls, NULL, &c), SPS_EINVAL);
    ck_assert_int_eq(sps_comm_user(3, 3, &calls, NULL, &c), SPS_EINVAL);
    ck_assert_ptr_nonnull(strstr(sps_context_error(NULL), "process 3 of 3"));
    ck_assert_int_eq(sps_comm_user(-1, 3, &calls, NULL, &c), SPS_EINVAL);
    ck_assert_int_eq(sps_comm_user(0, 3, &none, NULL, &c), SPS_EINVAL);
    ck_assert_int_eq(sps_comm_user(0, 3, NULL, NULL, &c), SPS_EINVAL);
    ck_assert_int_eq(sps_comm_user(0, 3, &calls, NULL, NULL), SPS_EINVAL);
    ck_assert_ptr_null(c);
    ck_assert_int_eq(sps_comm_user(2, 3, &calls, NULL, &c), SPS_OK);
    sps_comm_shape(c, &rank, &size);
    ck_assert(rank == 2 && size == 3);
    sps_comm_shape(c, NULL, NULL);
    sps_comm_destroy(&c);
    ck_assert_ptr_null(c);
    sps_comm_destroy(&c);
    sps_comm_destroy(NULL);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(a_system_over_processes_is_solved),
    RUNNER_TEST(a_monitor_of_one_process_stops_all),
    RUNNER_TEST(cancelling_one_process_stops_all),
    RUNNER_TEST(a_limit_of_time_is_that_of_one_clock),
    RUNNER_TEST(a_failing_operator_of_one_process_ends_the_call_on_all),
    RUNNER_TEST(a_failing_preconditioner_of_one_process_ends_the_call_on_all),
    RUNNER_TEST(a_refused_argument_of_one_process_ends_the_call_on_all),
    RUNNER_TEST(processes_at_different_sums_are_told_apart),
    RUNNER_TEST(a_communicator_is_checked),
};

RUNNER_MAIN("comm", tests)
