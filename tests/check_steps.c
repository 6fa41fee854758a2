/* SPDX-License-Identifier: BSD-3-Clause */
/* check_steps.c - iterations of small systems, which a GPU takes without the
 * host's eye on each (lib/steps.c): they are recorded and replayed, and where a
 * recording cannot be made they go on without, with the same bits, and say so;
 * columns that are done stay for a while.
 *
 * The backend of the context is a copy of the real one, whose doors to
 * recordings count. */
#include <math.h>

#include "backend.h"
#include "fixture.h"
#include "problem.h"
#include "runner.h"
#include "zoo.h"

enum { SIDE = 50, ROWS = SIDE * SIDE };   /* of a grid */

static sps_context *ctx;

static struct tally {
    const sps_backend *real;
    sps_backend counting;
    int made, failed, replayed;
    bool spoil;              /* whatever is being recorded */
    bool grows;              /* scratch, after the third replay */
    int iteration, few, moved;   /* that the monitor saw last; the first ones
                                    with few open columns, and behind which
                                    columns were moved; or 0 */
} tally;

/* Waiting for the stream is what a recording forbids: CUDA ends it, and all
 * that is queued into it fails until its end. */
static sps_status begin(sps_context *c)
{
    sps_status st = tally.real->record_begin(c);

    if (tally.spoil) ck_assert_int_ne(tally.real->sync(c), SPS_OK);
    return st;
}

static sps_status end(sps_context *c, void **recording_p)
{
    sps_status st = tally.real->record_end(c, recording_p);

    tally.made += st == SPS_OK;
    tally.failed += st != SPS_OK;
    return st;
}

static sps_status replay(sps_context *c, void *recording)
{
    if (++tally.replayed == 3 && tally.grows) c->device_bytes += 1 << 20;
    return tally.real->replay(c, recording);
}

/* Columns are moved from block to block when some leave. */
static sps_status gather(const sps_block *X, const int *index, sps_block *Y)
{
    if (!tally.moved) tally.moved = tally.iteration;
    return tally.real->gather(X, index, Y);
}

static void open_counting(void)
{
    ctx = runner_context();
    tally = (struct tally){ .real = ctx->backend, .counting = *ctx->backend };
    tally.counting.record_begin = begin;
    tally.counting.record_end = end;
    tally.counting.replay = replay;
    tally.counting.gather = gather;
    ctx->backend = &tally.counting;
}

static void close_counting(void)
{
    ctx->backend = tally.real;
    fixture_close(&ctx);
}

/* A system that takes dozens of iterations; all counts anew. */
static void open_system(problem *p, const char *solver, int k)
{
    const int64_t n = ROWS;
    sps_csr *A = zoo_matrix(zoo_find("grid5"), n, 5, ZOO_LAPLACIAN, SPS_F64);
    double *val = A->val;

    for (int64_t i = 0; i < n; i++)
        for (int64_t q = A->rowptr[i]; q < A->rowptr[i + 1]; q++)
            if (A->col[q] == i) val[q] += 0.01;
    problem_open(p, ctx, A, k);
    p->opt.solver = solver;
    p->opt.precond = "jacobi";
    tally.made = tally.failed = tally.replayed = 0;
}

static void finish(problem *p)
{
    OK(ctx, problem_solve(p));
    ck_assert_int_eq(p->result.stop, SPS_STOP_CONVERGED);
    ck_assert(problem_honest(p));
    ck_assert_int_ge(p->result.iterations, 30);
}

static void solve(problem *p, const char *solver, int k, bool may)
{
    open_system(p, solver, k);
    p->opt.replay = may;
    finish(p);
}

static const struct {
    const char *solver;
    int k;
} all[] = { { "block_cg", 2 }, { "block_cg", 8 }, { "block_cg", 16 },
            { "block_cg", 21 }, { "cg", 1 }, { "cg", 16 }, { "cg", 40 } };

/* All but the first few of a kind, and those that want a look. */
START_TEST(iterations_of_small_systems_are_replayed)
{
    problem p;

    solve(&p, all[_i].solver, all[_i].k, true);
    ck_assert_int_eq(tally.failed, 0);
    ck_assert_int_ge(tally.made, 1);
    ck_assert_msg(2 * tally.replayed > p.result.iterations,
                  "%d of %d iterations", tally.replayed, p.result.iterations);
    ck_assert(!fixture_noted(ctx, "not recorded"));
    problem_close(&p);
}
END_TEST

START_TEST(nothing_is_recorded_where_that_was_not_wanted)
{
    problem p;

    solve(&p, all[_i].solver, all[_i].k, false);
    ck_assert_int_eq(tally.made + tally.failed + tally.replayed, 0);
    problem_close(&p);
}
END_TEST

START_TEST(a_recording_that_fails_changes_no_bit_and_is_noted)
{
    const int k = all[_i].k;
    problem good, bad;

    solve(&good, all[_i].solver, k, true);
    tally.spoil = true;
    solve(&bad, all[_i].solver, k, true);
    ck_assert_int_eq(tally.made + tally.replayed, 0);
    ck_assert_int_eq(tally.failed, 1);
    ck_assert(fixture_noted(ctx, "not recorded"));
    ck_assert_int_eq(bad.result.iterations, good.result.iterations);
    ck_assert(!memcmp(bad.x, good.x, sizeof(double) * ROWS * (size_t)k));
    problem_close(&good);
    problem_close(&bad);
}
END_TEST

/* As it is where another solver of the context wants more scratch. */
START_TEST(a_recording_whose_scratch_may_have_moved_is_made_again)
{
    const int k = all[_i].k;
    problem good, moved;

    solve(&good, all[_i].solver, k, true);
    const int made = tally.made;
    tally.grows = true;
    solve(&moved, all[_i].solver, k, true);
    ctx->device_bytes -= 1 << 20;
    ck_assert_int_eq(tally.made, made + 1);
    ck_assert_int_eq(moved.result.iterations, good.result.iterations);
    ck_assert(!memcmp(moved.x, good.x, sizeof(double) * ROWS * (size_t)k));
    problem_close(&good);
    problem_close(&moved);
}
END_TEST

static bool look(const sps_progress *g, void *data)
{
    (void)data;
    tally.iteration = g->iteration;
    if (!tally.few && g->converged >= 6) tally.few = g->iteration;
    return true;
}

/* Six eigenvectors are soon done; the two others leave them behind, but only
 * after 16 iterations, for to leave costs as much as some of those. */
START_TEST(columns_that_are_done_stay_for_a_while)
{
    problem p;

    open_system(&p, "cg", 8);
    p.opt.precond = "none";
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < 6; j++)
            p.b[8 * i + j] = cos(M_PI * (j + 1) * (i % SIDE + 0.5) / SIDE);
    p.opt.monitor = look;
    finish(&p);
    ck_assert_int_gt(tally.few, 0);
    ck_assert_msg(tally.moved == tally.few + 16, "few after %d, moved after "
                  "%d iterations", tally.few, tally.moved);
    problem_close(&p);
}
END_TEST

int main(void)
{
    const int count = sizeof all / sizeof *all;
    Suite *s;
    TCase *t;

    if (runner_place() == SPS_HOST && !runner_lists()) {
        fprintf(stderr, "skipped: the host waits for each iteration\n");
        return 77;
    }
    s = suite_create("steps");
    t = runner_case(s, "steps");
    tcase_add_checked_fixture(t, open_counting, close_counting);
    tcase_add_loop_test(t, iterations_of_small_systems_are_replayed, 0, count);
    tcase_add_loop_test(t, nothing_is_recorded_where_that_was_not_wanted, 0,
                        count);
    tcase_add_loop_test(t, a_recording_that_fails_changes_no_bit_and_is_noted,
                        0, count);
    tcase_add_loop_test(t, a_recording_whose_scratch_may_have_moved_is_made_again,
                        0, count);
    tcase_add_test(t, columns_that_are_done_stay_for_a_while);
    return runner_run(s);
}
