/* SPDX-License-Identifier: BSD-3-Clause */
/* check_ranks_solves.c - solvers over processes: what is rejected; a failure of
 * one process, which ends the call on all; and how often an iteration sums and
 * exchanges. */
#include "tests/check/operator/ranks_fixture.h"
#include "tests/support/absent.h"

/* --------------------------------------------------------------- rejections */

static void set_up(crew_member *m)
{
    const work *w = m->data;
    sps_csr *own = NULL;
    sps_operator *op = NULL;
    sps_solver *s = NULL;
    sps_options opt;

    sps_options_default(&opt);
    if (w->solver) opt.solver = w->solver;
    if (w->precond) opt.precond = w->precond;
    if (w->reorder) opt.reorder = w->reorder;
    m->st = crew_rows(m, w->A, &own);
    if (!m->st && w->change && (w->odd < 0 || w->odd == m->rank))
        w->change(own);
    if (!m->st) m->st = sps_operator_csr(m->ctx, own, 2, &opt, &op);
    if (!m->st) m->st = sps_solver_create(op, NULL, 2, &opt, &s);
    if (m->st)
        strncpy(m->error, sps_context_error(m->ctx), sizeof m->error - 1);
    sps_solver_destroy(&s);
    sps_operator_destroy(&op);
    sps_csr_destroy(m->ctx, &own);
}

/* All ranks fail; those that are not odd with EPEER, if there is an odd one. */
static void refused(work w, sps_status st, const char *text)
{
    sps_csr *A = zoo_matrix(zoo_find("grid5"), 49, 1, ZOO_SPD, SPS_F64);

    w.A = A;
    ck_assert_msg(crew_run(member, 3, set_up, &w), "%s: a deadlock", text);
    for (int r = 0; r < 3; r++) {
        const bool told = w.odd >= 0 && r != w.odd && !w.all;

        ck_assert_msg(member[r].st == (told ? SPS_EPEER : st) &&
                      (told || strstr(member[r].error, text)),
                      "%s, rank %d: %d, %s", text, r, (int)member[r].st,
                      member[r].error);
    }
    zoo_free(&A);
}

static void complex_values(sps_csr *A) { A->props |= SPS_INTERLEAVED; }
static void shift_rows(sps_csr *A) { A->first++; }
static void longer(sps_csr *A) { A->whole++; A->ncol++; }
static void unsorted(sps_csr *A) { A->global[1] = A->global[0]; }
static void far_column(sps_csr *A) { A->global[A->nnz - 1] = 1000; }

START_TEST(what_does_not_count_there_is_refused_by_name)
{
    refused((work){ .odd = -1, .precond = "dense" }, SPS_EUNFIT, "dense");
    refused((work){ .odd = -1, .solver = "lsqr" }, SPS_EUNFIT, "lsqr");
    refused((work){ .odd = -1, .reorder = "rcm" }, SPS_EUNFIT, "rcm");
    refused((work){ .odd = -1, .change = complex_values }, SPS_EUNFIT,
            "complex");
}
END_TEST

START_TEST(what_is_wrong_on_one_process_ends_the_call_on_all)
{
    refused((work){ .odd = 1, .change = unsorted }, SPS_EMATRIX,
            "do not ascend");
    refused((work){ .odd = 2, .change = far_column }, SPS_EMATRIX,
            "has column 1000");
}
END_TEST

static void unmark(sps_csr *A) { A->props = 0; }

/* Otherwise some would look for symmetry together, and others not. */
START_TEST(rows_marked_on_some_processes_are_not_marked)
{
    const char *const methods[] = { "auto", "block_cg", "minres" };
    sps_csr *A = zoo_matrix(zoo_find("grid5"), 49, 1, ZOO_SPD, SPS_F64);
    work w = { .A = A, .odd = 1, .change = unmark };

    for (int i = 0; i < 3; i++) {
        w.solver = methods[i];
        w.precond = i ? "amg" : NULL;
        all_went_well(crew_run(member, 3, set_up, &w), methods[i], 3);
    }
    zoo_free(&A);
}
END_TEST

START_TEST(rows_that_do_not_follow_are_refused_on_all)
{
    refused((work){ .odd = 0, .all = true, .change = shift_rows }, SPS_EINVAL,
            "the rows of process 0 begin at 1");
    refused((work){ .odd = -1, .change = longer }, SPS_EINVAL,
            "the processes have 49 rows, the whole matrix 50");
}
END_TEST

START_TEST(half_an_exchange_is_refused)
{
    sps_comm_calls calls = { .struct_size = sizeof calls, .sum = crew_sum };
    sps_comm *comm = NULL;

    calls.start = crew_start;
    ck_assert_int_eq(sps_comm_user(0, 2, &calls, NULL, &comm), SPS_EINVAL);
    ck_assert(!comm && strstr(sps_context_error(NULL), "start and finish"));
    calls.finish = crew_finish;
    ck_assert_int_eq(sps_comm_user(0, 2, &calls, NULL, &comm), SPS_OK);
    sps_comm_destroy(&comm);
}
END_TEST

/* --------------------------------------------------------------- failures */

/* Once the blocks are made, w->odd allocations of rank 1 succeed; then every
 * one fails. */
static void solve(crew_member *m)
{
    const work *w = m->data;
    crew_system c = { .A = w->A, .b = w->x, .k = w->k, .allowed = w->odd };

    sps_options_default(&c.opt);
    c.opt.solver = w->solver;
    c.opt.precond = w->precond;
    if (w->iterations) c.opt.max_iterations = w->iterations;
    crew_solve(m, &c);
}

static void find_pairs(crew_member *m)
{
    const work *w = m->data;
    const int64_t first = crew_first(w->A->nrow, m->all->size, m->rank);
    const int64_t n = crew_first(w->A->nrow, m->all->size, m->rank + 1) - first;
    double lambda[MOST];
    sps_csr *own = NULL;
    sps_operator *op = NULL;
    sps_solver *s = NULL;
    sps_block *X = NULL;
    sps_eigen_result r = { .struct_size = sizeof r };
    sps_options opt;

    sps_options_default(&opt);
    opt.solver = "lobpcg";
    opt.precond = w->precond;
    if (w->iterations) opt.max_iterations = w->iterations;
    m->st = crew_rows(m, w->A, &own);
    if (!m->st) m->st = sps_operator_csr(m->ctx, own, 8, &opt, &op);
    if (!m->st) m->st = sps_block_create(m->ctx, n, w->k, &X);
    if (m->host) fail_alloc_allow(m->host->data, w->odd);
    if (!m->st)
        m->st = sps_solver_create_eigen(op, NULL, NULL, w->k, &opt, &s);
    if (!m->st) m->st = sps_solver_eigen(s, X, lambda, &r);
    if (m->st)
        strncpy(m->error, sps_context_error(m->ctx), sizeof m->error - 1);
    sps_solver_destroy(&s);
    sps_operator_destroy(&op);
    sps_block_destroy(&X);
    sps_csr_destroy(m->ctx, &own);
}

/* Solves while on rank 1 the first `allowed` allocations of host memory succeed
 * and all later ones fail (-1: none fails); *failed: whether one failed.
 * Returns the number of allocations of rank 1. */
static long fail_at(work *w, long allowed, bool *failed)
{
    void (*task)(crew_member *) = strcmp(w->solver, "lobpcg") ? solve
                                                             : find_pairs;
    fail_alloc f = { .allowed = -1 };

    w->odd = (int)allowed;
    member[1].host = fail_alloc_host(&f);
    ck_assert_msg(crew_run(member, 3, task, w), "%s, %s: a deadlock when "
                  "allocation %ld fails", w->solver, w->precond, allowed);
    member[1].host = NULL;
    for (int r = 0; r < 3; r++)
        ck_assert_msg(member[r].st == (!f.fired ? SPS_OK : r == 1 ? SPS_ENOMEM
                      : SPS_EPEER), "%s, %s, allocation %ld, rank %d: %d, %s",
                      w->solver, w->precond, allowed, r, (int)member[r].st,
                      member[r].error);
    ck_assert_int_eq(f.live, 0);
    *failed = f.fired;
    return f.calls;
}

/* Rank 1 of three runs out of memory at every allocation whose number is a
 * multiple of `step`.  The brief form takes a few of them, since on a GPU each
 * takes three contexts. */
static void run_out_of_memory(const char *solver, const char *precond, int step)
{
    enum { FEW = 5 };
    sps_csr *A = zoo_matrix(zoo_find("grid5"), 49, 1, ZOO_SPD, SPS_F64);
    double *b = zoo_block(A->nrow, 2, 2, 1, ZOO_RANDOM);
    work w = { .A = A, .k = 2, .x = b, .solver = solver, .precond = precond };
    bool failed;
    const long all = fail_at(&w, -1, &failed);
    const long by = brief() ? all / FEW : step;

    ck_assert(!failed && all > 30);
    for (long allowed = 0; allowed < all; allowed += by) {
        fail_at(&w, allowed, &failed);
        ck_assert_msg(failed, "%s, %s: allocation %ld of %ld did not fail",
                      solver, precond, allowed, all);
    }
    free(b);
    zoo_free(&A);
}

START_TEST(a_process_out_of_memory_ends_the_call_on_all)
{
    run_out_of_memory("block_cg", "chebyshev", 1);
    run_out_of_memory("gmres", "ilu0", 3);
    run_out_of_memory("idr", "block_jacobi", 3);
    run_out_of_memory("block_cg", "amg", 5);
    run_out_of_memory("lobpcg", "amg", 3);
    run_out_of_memory("gmres", "ilut", 3);
    run_out_of_memory("gmres", "isai", 3);
    run_out_of_memory("gmres", "fsai", 3);
    if (!absent("factor")) run_out_of_memory("gmres", "factor", 3);
}
END_TEST

/* Makes an operator until memory suffices, with one allocation more each time,
 * and multiplies. */
static void try_again(crew_member *m)
{
    work *w = m->data;
    sps_csr *own = NULL;
    sps_operator *op = NULL;
    sps_block *X = NULL, *Y = NULL;

    m->st = crew_rows(m, w->A, &own);
    for (int allowed = 0; !m->st; allowed++) {
        if (m->host) fail_alloc_allow(m->host->data, allowed);
        m->st = sps_operator_csr(m->ctx, own, w->k, NULL, &op);
        if (m->host) fail_alloc_allow(m->host->data, -1);
        if (m->host) w->odd = allowed;
        if (m->st != (m->rank == 1 ? SPS_ENOMEM : SPS_EPEER)) break;
        m->st = SPS_OK;
    }
    if (!m->st) m->st = part(m, w, w->x, &X);
    if (!m->st) m->st = part(m, w, NULL, &Y);
    if (!m->st) m->st = sps_operator_apply(op, 1, X, 0, Y);
    if (!m->st) m->st = keep(m, w, Y, w->result);
    sps_block_destroy(&X);
    sps_block_destroy(&Y);
    sps_operator_destroy(&op);
    sps_csr_destroy(m->ctx, &own);
}

/* On a GPU the first attempts also fail while the messages of device memory
 * (wire.c) are set up. */
START_TEST(a_call_without_memory_can_be_repeated)
{
    sps_csr *A = zoo_matrix(zoo_find("grid5"), 49, 1, ZOO_INTEGER, SPS_F64);
    double *x = zoo_block(A->nrow, 2, 2, 1, ZOO_INTEGER), result[2 * 49];
    work w = { .A = A, .k = 2, .x = x, .alpha = 1, .result = result };
    fail_alloc f = { .allowed = -1 };

    member[1].host = fail_alloc_host(&f);
    all_went_well(crew_run(member, 3, try_again, &w), "again", 3);
    member[1].host = NULL;
    ck_assert_int_eq(f.live, 0);
    ck_assert_int_gt(w.odd, 10);
    expect(&w, A->val);
    free(x);
    zoo_free(&A);
}
END_TEST

/* From so many sums, sendings and receipts of rank 1 on all of them fail, as
 * where a connection is lost or a test waits too long. */
static int calls_left;

static void lose(crew_member *m)
{
    if (m->rank != 1 || calls_left-- > 0) return;
    pthread_mutex_lock(&m->all->lock);
    m->all->broken = true;
    pthread_cond_broadcast(&m->all->met);
    for (int r = 0; r < m->all->size; r++)
        pthread_cond_signal(&m->all->mail[r]);
    pthread_mutex_unlock(&m->all->lock);
}

static void lose_others(const char *solver, const char *precond, int step)
{
    sps_csr *A = zoo_matrix(zoo_find("grid5"), 49, 1, ZOO_SPD, SPS_F64);
    double *b = zoo_block(A->nrow, 2, 2, 1, ZOO_RANDOM);
    work w = { .A = A, .k = 2, .x = b, .solver = solver, .precond = precond,
               .odd = -1 };
    fail_alloc f = { .allowed = -1 };
    int failures = -1;
    bool ended = false;

    if (brief()) step *= 25;
    crew_pace = lose;
    for (int calls = 0; !ended; calls += step, failures++) {
        calls_left = calls;
        member[1].host = fail_alloc_host(&f);
        ended = crew_run(member, 3, solve, &w);
        for (int r = 0; r < 3; r++)
            ck_assert_msg(!member[r].st == ended, "%s, %s, call %d, rank %d: "
                          "%d, %s", solver, precond, calls, r,
                          (int)member[r].st, member[r].error);
        ck_assert_int_eq(f.live, 0);
    }
    crew_pace = NULL;
    member[1].host = NULL;
    ck_assert_int_gt(failures, brief() ? 1 : 10);
    free(b);
    zoo_free(&A);
}

START_TEST(a_lost_connection_ends_the_call_on_all)
{
    lose_others("block_cg", "chebyshev", 1);
    lose_others("block_cg", "amg", 2);
    lose_others("gmres", "ilu0", 2);
    lose_others("idr", "fsai", 2);
}
END_TEST

/* ---------------------------------------------------------------- traffic */

/* Sums and exchanges of a solve of so many iterations. */
static void count_traffic(work *w, int iterations, long *sums, long *exchanges)
{
    w->iterations = iterations;
    all_went_well(crew_run(member, 3, solve, w), "traffic", 3);
    *sums = member[0].all->sums;
    *exchanges = member[0].all->exchanges;
}

/* Two sums and an exchange, and of several that are queued at once one more
 * sum at most. */
START_TEST(an_iteration_of_block_cg_sends_little)
{
    sps_csr *A = zoo_matrix(zoo_find("grid5"), 400, 1, ZOO_SPD, SPS_F64);
    double *b = zoo_block(A->nrow, 3, 3, 1, ZOO_RANDOM);
    work w = { .A = A, .k = 3, .x = b, .solver = "block_cg" };
    long sums[2], exchanges[2];

    if (runner_place() == SPS_CUDA)
        runner_leave_out("staged messages have sums of their own");
    for (int jacobi = 0; jacobi < 2; jacobi++) {
        w.precond = jacobi ? "jacobi" : "none";
        count_traffic(&w, 5, &sums[0], &exchanges[0]);
        count_traffic(&w, 8, &sums[1], &exchanges[1]);
        ck_assert_int_eq(exchanges[1] - exchanges[0], 3);
        ck_assert_msg(sums[1] - sums[0] <= 6, "%s: %ld sums in 3 iterations",
                      w.precond, sums[1] - sums[0]);
    }
    free(b);
    zoo_free(&A);
}
END_TEST

/* Steps with a preconditioner that is not a diagonal, which the host decides
 * upon: two sums as well, while convergence is far. */
START_TEST(a_preconditioned_iteration_sums_twice)
{
    static const char *const precond[] = { "chebyshev", "amg", "fsai" };
    sps_csr *A = zoo_matrix(zoo_find("grid5"), 2500, 1, ZOO_SPD, SPS_F64);
    double *b = zoo_block(A->nrow, 3, 3, 1, ZOO_RANDOM);
    work w = { .A = A, .k = 3, .x = b, .solver = "block_cg" };
    long sums[2], exchanges[2];

    if (runner_place() == SPS_CUDA)
        runner_leave_out("staged messages have sums of their own");
    for (int i = 0; i < 3; i++) {
        w.precond = precond[i];
        count_traffic(&w, 2, &sums[0], &exchanges[0]);
        count_traffic(&w, 5, &sums[1], &exchanges[1]);
        ck_assert_msg(sums[1] - sums[0] == 6, "%s: %ld sums in 3 iterations",
                      precond[i], sums[1] - sums[0]);
    }
    free(b);
    zoo_free(&A);
}
END_TEST

/* ------------------------------------------------------- columns that leave */

enum { ROWS = 240, ALL = 4 };

typedef struct leaving {
    const sps_csr *A;
    const double *b;          /* ROWS x ALL */
    double x[ROWS * ALL];
    int iterations;
} leaving;

static void solve_all(crew_member *m)
{
    leaving *l = m->data;
    crew_system c = { .A = l->A, .b = l->b, .x = l->x, .k = ALL };

    sps_options_default(&c.opt);
    c.opt.solver = "block_cg";
    c.opt.precond = "chebyshev";
    c.opt.degree = 2;
    crew_solve(m, &c);
    if (!m->st && c.result.stop != SPS_STOP_CONVERGED) m->st = SPS_EBUG;
    if (m->rank == 0) l->iterations = c.result.iterations;
}

/* Second differences along a bar.  All right-hand sides but the last are in the
 * span of (ALL - 1) SOON eigenvectors, so that block CG solves for these
 * columns in about SOON steps, long before the last one. */
enum { SOON = 3 };

static sps_csr *bar(double *b)
{
    static int64_t rowptr[ROWS + 1];
    static int32_t col[3 * ROWS];
    static double val[3 * ROWS];
    static sps_csr A = { .struct_size = sizeof A, .nrow = ROWS, .ncol = ROWS,
                         .rowptr = rowptr, .col = col, .val = val,
                         .dtype = SPS_F64, .place = SPS_HOST,
                         .props = SPS_SYMMETRIC | SPS_SPD };
    int64_t p = 0;

    for (int i = 0; i < ROWS; i++) {
        for (int j = i - 1; j <= i + 1; j++) {
            if (j < 0 || j == ROWS) continue;
            col[p] = j;
            val[p++] = i == j ? 2.5 : -1;
        }
        rowptr[i + 1] = p;
        for (int c = 0; c < ALL; c++) {
            b[i * ALL + c] = c + 1 < ALL ? 0 : cos(i * i);
            for (int e = 0; e < (ALL - 1) * SOON && c + 1 < ALL; e++)
                b[i * ALL + c] += cos(e * c) * sin((20 * e + 9) * (i + 1) *
                                                   acos(-1) / (ROWS + 1));
        }
    }
    A.nnz = p;
    return &A;
}

/* Their columns converge at once, when M R of all has been computed. */
START_TEST(directions_of_columns_that_leave_are_not_used)
{
    static double b[ROWS * ALL];
    leaving l = { .A = bar(b), .b = b };
    int alone;

    all_went_well(crew_run(member, 1, solve_all, &l), "alone", 1);
    alone = l.iterations;
    all_went_well(crew_run(member, 3, solve_all, &l), "three", 3);
    ck_assert_int_gt(alone, 4);
    ck_assert_int_le(abs(l.iterations - alone), 1);
    for (int i = 0; i < ROWS; i++)
        for (int c = 0; c < ALL; c++) {
            double r = b[i * ALL + c];

            for (int64_t p = l.A->rowptr[i]; p < l.A->rowptr[i + 1]; p++)
                r -= ((const double *)l.A->val)[p] *
                     l.x[l.A->col[p] * ALL + c];
            ck_assert_msg(fabs(r) < 1e-6, "row %d, column %d: %g", i, c, r);
        }
}
END_TEST

START_TEST(an_iteration_of_lobpcg_sums_twice)
{
    sps_csr *A = zoo_matrix(zoo_find("grid5"), 2500, 1, ZOO_SPD, SPS_F64);
    work w = { .A = A, .k = 2, .precond = "amg", .odd = -1 };
    long sums[2];

    if (runner_place() == SPS_CUDA)
        runner_leave_out("staged messages have sums of their own");
    for (int i = 0; i < 2; i++) {
        w.iterations = 4 + 3 * i;
        all_went_well(crew_run(member, 3, find_pairs, &w), "lobpcg", 3);
        sums[i] = member[0].all->sums;
    }
    ck_assert_int_eq(sums[1] - sums[0], 6);
    zoo_free(&A);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(an_iteration_of_lobpcg_sums_twice),
    RUNNER_TEST(an_iteration_of_block_cg_sends_little),
    RUNNER_TEST(a_preconditioned_iteration_sums_twice),
    RUNNER_TEST(directions_of_columns_that_leave_are_not_used),
    RUNNER_TEST(what_does_not_count_there_is_refused_by_name),
    RUNNER_TEST(what_is_wrong_on_one_process_ends_the_call_on_all),
    RUNNER_TEST(rows_marked_on_some_processes_are_not_marked),
    RUNNER_TEST(rows_that_do_not_follow_are_refused_on_all),
    RUNNER_TEST(half_an_exchange_is_refused),
    RUNNER_TEST(a_process_out_of_memory_ends_the_call_on_all),
    RUNNER_TEST(a_call_without_memory_can_be_repeated),
    RUNNER_TEST(a_lost_connection_ends_the_call_on_all),
};

RUNNER_MAIN("solvers over ranks", tests)
