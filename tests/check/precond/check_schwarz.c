/* SPDX-License-Identifier: BSD-3-Clause */
/* check_schwarz.c - factors of the diagonal blocks of processes with a coarse
 * space: iterations stay bounded when there are more processes, where without
 * it they grow; the map is symmetric where it must be, and follows new
 * values. */
#define CREW_MOST 64
#include <math.h>

#include "block/block.h"
#include "tests/processes/crew_system.h"
#include "tests/support/fixture.h"
#include "tests/support/runner.h"

enum { K = 2 };

typedef struct work {
    const sps_csr *A;
    const char *solver, *precond, *near_null;
    double factor;            /* of new values, or 0 */
    int allowed;              /* allocations of rank 1 that succeed */
    int iterations;
    double forth, back;       /* x'M y and y'M x */
} work;

static crew_member member[CREW];

static void solve(crew_member *m)
{
    work *w = m->data;
    crew_system c = { .A = w->A, .k = K, .allowed = w->allowed };

    sps_options_default(&c.opt);
    c.opt.solver = w->solver;
    c.opt.precond = w->precond;
    c.opt.near_null = w->near_null;
    crew_solve(m, &c);
    if (!m->st && c.result.stop != SPS_STOP_CONVERGED) m->st = SPS_EBUG;
    if (m->rank == 0) w->iterations = c.result.iterations;
}

static bool run(work *w, int size, void (*task)(crew_member *m))
{
    const bool good = crew_run(member, size, task, w);

    ck_assert_msg(good, "%s, %d ranks: a deadlock", w->precond, size);
    if (member[0].st == SPS_EABSENT || member[size - 1].st == SPS_EABSENT)
        return false;
    for (int r = 0; r < size; r++)
        ck_assert_msg(!member[r].st, "%s, rank %d of %d: %s", w->precond, r,
                      size, member[r].error);
    return true;
}

/* ----------------------------------------------------------------- the bar */

enum { LAYERS = 6, SIDE = 3, PLANE = SIDE * SIDE,
       LONGEST = 64 * LAYERS * PLANE };

static int64_t starts[LONGEST + 1];
static int32_t columns[7 * LONGEST];
static double values[7 * LONGEST];

/* Appends the coupling of point i to its neighbour, in a grid of SIDE x SIDE x
 * length; x, y, z: the neighbour's place. */
static int64_t couple(int64_t q, int length, int x, int y, int z, double a)
{
    if (x < 0 || x >= SIDE || y < 0 || y >= SIDE || z < 0 || z >= length)
        return q;
    columns[q] = x + SIDE * (y + SIDE * z);
    values[q] = a;
    return q + 1;
}

/* The 7-point grid of a bar that is held at one end only, LAYERS of planes for
 * each rank: the longer the bar, the smaller the lowest eigenvalue.  wind: of
 * upwind differences along the bar. */
static sps_csr bar(int size, double wind)
{
    const int length = LAYERS * size;
    int64_t q = 0;

    for (int z = 0; z < length; z++)
        for (int i = 0; i < PLANE; i++) {
            const int x = i % SIDE, y = i / SIDE;
            const int64_t begin = q;
            int64_t middle;
            double sum = z == 0 ? 1 + wind : 0;

            q = couple(q, length, x, y, z - 1, -1 - wind);
            q = couple(q, length, x, y - 1, z, -1);
            q = couple(q, length, x - 1, y, z, -1);
            middle = q++;
            q = couple(q, length, x + 1, y, z, -1);
            q = couple(q, length, x, y + 1, z, -1);
            q = couple(q, length, x, y, z + 1, -1);
            columns[middle] = i + PLANE * z;
            values[middle] = 0;
            for (int64_t p = begin; p < q; p++) sum -= values[p];
            values[middle] = sum;
            starts[i + PLANE * z + 1] = q;
        }
    crew_unit = LAYERS * PLANE;
    return (sps_csr){ .struct_size = sizeof(sps_csr), .nrow = PLANE * length,
                      .ncol = PLANE * length, .nnz = q, .rowptr = starts,
                      .col = columns, .val = values, .dtype = SPS_F64,
                      .place = SPS_HOST,
                      .props = wind > 0 ? 0 : SPS_SYMMETRIC | SPS_SPD };
}

/* -------------------------------------------------------------- iterations */

enum { SIZES = 4 };
static const int sizes[SIZES] = { 2, 8, 16, 64 };

/* Iterations on 2, 8, 16 and 64 ranks.  False: the module is absent. */
static bool count(work *w, double wind, const char *near_null, int *found)
{
    w->near_null = near_null;
    for (int i = 0; i < SIZES; i++) {
        const sps_csr A = bar(sizes[i], wind);

        w->A = &A;
        if (!run(w, sizes[i], solve)) return false;
        found[i] = w->iterations;
    }
    printf("%s, %s, near_null %s: %d %d %d %d\n", w->solver, w->precond,
           near_null, found[0], found[1], found[2], found[3]);
    return true;
}

/* With the coarse space 64 ranks take at most half as many iterations again as
 * 8 do; without it, five times as many as 2. */
static void is_bounded(const char *solver, const char *precond, double wind)
{
    work w = { .solver = solver, .precond = precond };
    int with[SIZES], without[SIZES];

    if (!count(&w, wind, "none", without)) return;
    ck_assert(count(&w, wind, "auto", with));
    ck_assert_msg(2 * with[3] <= 3 * with[1], "%s: %d iterations on 64 ranks, "
                  "%d on 8", precond, with[3], with[1]);
    ck_assert_msg(without[3] >= 5 * without[0], "%s: only %d iterations on 64 "
                  "ranks without a coarse space", precond, without[3]);
    for (int i = 0; i < SIZES; i++) ck_assert_int_le(with[i], without[i] + 1);
}

START_TEST(iterations_are_bounded)
{
    is_bounded("block_cg", "ic0", 0);
    if (!runner_quick()) is_bounded("block_cg", "factor", 0);
}
END_TEST

/* Q + N (I - A Q), for A that are not symmetric.  Without overlap ilut takes 19
 * iterations. */
START_TEST(other_matrices_take_fewer_iterations)
{
    static const char *const precond[] = { "ilut", "ilu0" };
    const int most[] = { runner_place() == SPS_CUDA ? 20 : 14, 24 };
    const sps_csr A = bar(8, 0.2);

    for (int i = 0; i < 2; i++) {
        work w = { .A = &A, .solver = "gmres", .precond = precond[i] };
        int without;

        w.near_null = "none";
        ck_assert(run(&w, 8, solve));
        without = w.iterations;
        w.near_null = "auto";
        ck_assert(run(&w, 8, solve));
        printf("%s: %d, without %d\n", precond[i], w.iterations, without);
        ck_assert_int_lt(w.iterations, without);
        ck_assert_int_le(w.iterations, most[i]);
    }
}
END_TEST

/* ----------------------------------------------------------------- the map */

static sps_status dots(const sps_block *X, const sps_block *Y, double *sum)
{
    double d[K];
    const sps_status st = spsi_dots(X, Y, d);

    *sum = d[0] + d[1];
    return st;
}

static sps_status follow(sps_operator *op, sps_precond *M, const sps_csr *own,
                         double factor)
{
    double *val = malloc((size_t)(own->nnz + 1) * sizeof *val);
    sps_status st;

    for (int64_t p = 0; p < own->nnz; p++)
        val[p] = factor * ((const double *)own->val)[p];
    st = sps_operator_set_values(op, val, SPS_HOST);
    if (!st) st = sps_precond_update(M);
    free(val);
    return st;
}

static void apply(crew_member *m)
{
    work *w = m->data;
    const int64_t n = crew_first(w->A->nrow, m->all->size, m->rank + 1) -
                      crew_first(w->A->nrow, m->all->size, m->rank);
    sps_block *X = NULL, *Y = NULL, *Z = NULL;
    sps_csr *own = NULL;
    sps_operator *op = NULL;
    sps_precond *M = NULL;
    sps_options opt;
    double forth = 0, back = 0;

    sps_options_default(&opt);
    opt.precond = w->precond;
    opt.precision = "double";
    m->st = crew_rows(m, w->A, &own);
    if (!m->st) m->st = sps_operator_csr(m->ctx, own, K, &opt, &op);
    if (!m->st) m->st = sps_block_create(m->ctx, n, K, &X);
    if (!m->st) m->st = sps_block_create(m->ctx, n, K, &Y);
    if (!m->st) m->st = sps_block_create(m->ctx, n, K, &Z);
    if (!m->st) m->st = sps_block_random(X, 5);
    if (!m->st) m->st = sps_block_random(Y, 6);
    if (!m->st) m->st = sps_precond_create(op, K, &opt, &M);
    if (!m->st && w->factor > 0) m->st = follow(op, M, own, w->factor);
    if (!m->st) m->st = sps_precond_apply(M, Y, Z);
    if (!m->st) m->st = dots(X, Z, &forth);
    if (!m->st) m->st = sps_precond_apply(M, X, Z);
    if (!m->st) m->st = dots(Y, Z, &back);
    if (m->rank == 0) w->forth = forth;
    if (m->rank == 0) w->back = back;
    sps_precond_destroy(&M);
    sps_operator_destroy(&op);
    sps_block_destroy(&X);
    sps_block_destroy(&Y);
    sps_block_destroy(&Z);
    if (m->st)
        strncpy(m->error, sps_context_error(m->ctx), sizeof m->error - 1);
    sps_csr_destroy(m->ctx, &own);
}

static void is_followed(work *w)
{
    double before;

    w->factor = 0;
    ck_assert(run(w, 5, apply));
    before = w->forth;
    w->factor = 4;
    ck_assert(run(w, 5, apply));
    ck_assert_msg(fabs(before - 4 * w->forth) <= 1e-11 * fabs(before),
                  "%s: %.17g, with 4 A %.17g", w->precond, before, w->forth);
}

START_TEST(the_map_is_symmetric_and_follows_new_values)
{
    const sps_csr A = bar(5, 0);
    work w = { .A = &A, .precond = "ic0" };
    fail_alloc f = { .allowed = -1 };

    member[1].host = fail_alloc_host(&f);    /* fills what it frees */
    ck_assert(run(&w, 5, apply));
    ck_assert_msg(fabs(w.forth - w.back) <= 1e-11 * fabs(w.forth),
                  "%.17g %.17g", w.forth, w.back);
    is_followed(&w);
    ck_assert_int_eq(f.live, 0);
    member[1].host = NULL;
}
END_TEST

START_TEST(overlapping_factors_follow_new_values)
{
    const sps_csr A = bar(5, 0.2);
    work w = { .A = &A, .precond = "ilut" };
    fail_alloc f = { .allowed = -1 };

    member[1].host = fail_alloc_host(&f);    /* fills what it frees */
    is_followed(&w);
    w.precond = "ilu0";
    is_followed(&w);
    ck_assert_int_eq(f.live, 0);
    member[1].host = NULL;
}
END_TEST

/* Rank 1 of three runs out of memory at its allocations in turn. */
static void runs_out_of_memory(work *w)
{
    const int step = fixture_env("SPS_TEST_LONG") ? 1 : 7;
    fail_alloc f;

    w->near_null = "auto";
    do {
        memset(&f, 0, sizeof f);
        f.allowed = -1;
        member[1].host = fail_alloc_host(&f);
        ck_assert_msg(crew_run(member, 3, solve, w), "allocation %d: a "
                      "deadlock", w->allowed);
        for (int r = 0; r < 3; r++)
            ck_assert_msg(member[r].st == (!f.fired ? SPS_OK : r == 1
                          ? SPS_ENOMEM : SPS_EPEER), "allocation %d, rank %d: "
                          "%d, %s", w->allowed, r, (int)member[r].st,
                          member[r].error);
        ck_assert_int_eq(f.live, 0);
        w->allowed += step;
    } while (f.fired);
    ck_assert_int_gt(w->allowed, 100);
    member[1].host = NULL;
}

START_TEST(a_process_out_of_memory_ends_the_call_on_all)
{
    const double wind[] = { 0, 0.2 };
    static const char *const how[][2] = { { "block_cg", "ic0" },
                                          { "gmres", "ilut" } };

    if (runner_place() == SPS_CUDA)
        runner_leave_out("contexts on a GPU take too long");
    for (int i = 0; i < 2; i++) {
        const sps_csr A = bar(3, wind[i]);
        work w = { .A = &A, .solver = how[i][0], .precond = how[i][1] };

        runs_out_of_memory(&w);
    }
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(a_process_out_of_memory_ends_the_call_on_all),
    RUNNER_TEST(iterations_are_bounded),
    RUNNER_TEST(other_matrices_take_fewer_iterations),
    RUNNER_TEST(the_map_is_symmetric_and_follows_new_values),
    RUNNER_TEST(overlapping_factors_follow_new_values),
};

RUNNER_MAIN("schwarz", tests)
