/* SPDX-License-Identifier: BSD-3-Clause */
/* check_steps.c - iterations of small systems, which a GPU executes without
 * host synchronisation in each (lib/driver/fused_cg.c): they are captured as
 * CUDA graphs and replayed; where capture fails they continue without, with the
 * same bits, and issue a note; converged columns are removed with a delay.
 *
 * The backend of the context is a copy of the real one with counters in the
 * functions for recording. */
#include <math.h>

#include "core/backend.h"
#include "tests/support/fixture.h"
#include "tests/problems/problem.h"
#include "tests/support/runner.h"

enum { SIDE = 50, ROWS = SIDE * SIDE };   /* of a grid */

#define SPARE ((size_t)64 << 20)

static sps_context *ctx;

static struct tally {
    const sps_backend *real;
    sps_backend counting;
    int made, failed, replayed;
    bool spoil;              /* makes each capture fail */
    bool take, move;         /* allocate memory, or move the scratch, after the
                                third replay */
    void *spare;             /* a device allocation and its size */
    size_t spare_bytes;
    int iteration, few, moved;   /* as last seen by the monitor: the iteration,
                                    the first one with few unconverged columns,
                                    the one after which columns were moved; or
                                    0 */
} tally;

/* Synchronising the stream is not allowed during capture: CUDA invalidates the
 * capture, and all later launches into it fail. */
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

static void take_spare(size_t bytes)
{
    OK(ctx, tally.real->alloc(ctx, bytes, &tally.spare));
    tally.spare_bytes = bytes;
}

static void give_spare(void)
{
    tally.real->release(ctx, tally.spare, tally.spare_bytes);
    tally.spare = NULL;
}

/* Simulates another solver of the context that needs more scratch, while as
 * many bytes are freed elsewhere. */
static void move_scratch(void)
{
    const size_t before = ctx->memory.device;

    OK(ctx, tally.real->reserve(ctx, ROWS, 64));
    const size_t more = ctx->memory.device - before;

    ck_assert_uint_gt(more, 0);
    ck_assert_uint_lt(more, SPARE);
    give_spare();
    take_spare(SPARE - more);
    ck_assert_uint_eq(ctx->memory.device, before);
}

static bool change(const sps_progress *g, void *data)
{
    (void)g;
    (void)data;
    if (tally.replayed < 3) return true;
    if (tally.take) take_spare(SPARE);
    if (tally.move) move_scratch();
    tally.take = tally.move = false;
    return true;
}

static sps_status replay(sps_context *c, void *recording)
{
    tally.replayed++;
    return tally.real->replay(c, recording);
}

/* Columns are copied to another block when converged ones are removed. */
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

/* A system that takes dozens of iterations; resets all counters. */
static void open_system(problem *p, const char *solver, int k)
{
    problem_open_grid(p, ctx, ROWS, k, 0.01);
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

/* All except the first few of a kind, and those that need a host
 * synchronisation. */
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
    ck_assert_int_ge(tally.failed, 1);
    ck_assert(fixture_noted(ctx, "not recorded"));
    ck_assert_int_eq(bad.result.iterations, good.result.iterations);
    ck_assert(!memcmp(bad.x, good.x, sizeof(double) * ROWS * (size_t)k));
    problem_close(&good);
    problem_close(&bad);
}
END_TEST

static bool free_some(const sps_progress *g, void *data)
{
    (void)g;
    (void)data;
    if (tally.failed && tally.spare) give_spare();
    tally.spoil = tally.spare;
    return true;
}

START_TEST(a_recording_that_failed_is_tried_again_when_memory_was_freed)
{
    problem p;

    take_spare(SPARE);
    open_system(&p, all[_i].solver, all[_i].k);
    p.opt.monitor = free_some;
    finish(&p);
    ck_assert_int_eq(tally.failed, 1);
    ck_assert_int_ge(tally.made, 1);
    ck_assert_int_gt(tally.replayed, 0);
    problem_close(&p);
}
END_TEST

/* Solves the same system twice, the second time with a change between two
 * replays. */
static void change_between(int k, const char *solver, bool move, int more)
{
    problem good, other;

    solve(&good, solver, k, true);
    const int made = tally.made;

    tally.take = !move;
    tally.move = move;
    if (move) take_spare(SPARE);
    open_system(&other, solver, k);
    other.opt.monitor = change;
    finish(&other);
    ck_assert(!tally.take && !tally.move);
    give_spare();
    ck_assert_int_eq(tally.made, made + more);
    ck_assert_int_eq(other.result.iterations, good.result.iterations);
    ck_assert(!memcmp(other.x, good.x, sizeof(double) * ROWS * (size_t)k));
    problem_close(&good);
    problem_close(&other);
}

START_TEST(a_recording_whose_scratch_may_have_moved_is_made_again)
{
    change_between(all[_i].k, all[_i].solver, true, 1);
}
END_TEST

START_TEST(memory_that_is_taken_leaves_a_recording_as_it_is)
{
    change_between(all[_i].k, all[_i].solver, false, 0);
}
END_TEST

static bool look(const sps_progress *g, void *data)
{
    (void)data;
    tally.iteration = g->iteration;
    if (!tally.few && g->converged >= 6) tally.few = g->iteration;
    return true;
}

/* Six columns that are eigenvectors converge early, but are removed only after
 * 16 further iterations, since removing them costs as much as several
 * iterations. */
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
    tcase_add_loop_test(t, memory_that_is_taken_leaves_a_recording_as_it_is, 0,
                        count);
    tcase_add_loop_test(
        t, a_recording_that_failed_is_tried_again_when_memory_was_freed, 0,
        count);
    tcase_add_loop_test(t, a_recording_whose_scratch_may_have_moved_is_made_again,
                        0, count);
    tcase_add_test(t, columns_that_are_done_stay_for_a_while);
    return runner_run(s);
}
