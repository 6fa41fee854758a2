/* SPDX-License-Identifier: BSD-3-Clause */
/* check_mpi_engine.c - engines/mpi.c over a double of MPI that counts messages:
 * all are posted or none, none stays open, and what is too long for an int goes
 * in pieces; and waits yield where processes share cores. */
#include <check.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>

static int allowed;           /* reallocations that succeed */
static int yields;

static int counted_yield(void)
{
    yields++;
    return 0;
}

static void *limited_realloc(void *p, size_t bytes)
{
    return allowed-- > 0 ? realloc(p, bytes) : NULL;
}

#define realloc limited_realloc
#define sched_yield counted_yield
#define SPS_ENGINE_NAME "a double"
#include "engines/mpi.c"
#undef realloc
#undef sched_yield
#include "tests/support/runner.h"

static void *opened(void)
{
    int rank = -1, size = 0;
    void *of = NULL;

    memset(&posted, 0, sizeof posted);
    allowed = 1000;
    ck_assert(!open_channel(2, &rank, &size, &of));
    ck_assert_int_eq(rank, 1);
    ck_assert_int_eq(size, 3);
    return of;
}

static void counts(int receives, int sends, int open)
{
    ck_assert_int_eq(posted.receives, receives);
    ck_assert_int_eq(posted.sends, sends);
    ck_assert_int_eq(posted.open, open);
}

START_TEST(without_memory_nothing_is_posted)
{
    const sps_message m[] = { { 0, &allowed, 8 }, { 2, &allowed, 0 } };
    void *of = opened();

    for (int count = 0; count < 3; count++) {
        memset(&posted, 0, sizeof posted);
        allowed = count;
        if (start(m, 2, m, count, of) == MPI_SUCCESS) break;
        counts(0, 0, 0);
        ck_assert_int_eq(finish(of), MPI_SUCCESS);
    }
    ck_assert_int_gt(posted.sends, 0);
    counts(posted.receives, 2, posted.receives + 2);
    ck_assert_int_eq(finish(of), MPI_SUCCESS);
    counts(posted.receives, 2, 0);
    close_channel(of);
}
END_TEST

/* No byte of them is read. */
START_TEST(long_messages_go_in_pieces)
{
    const size_t g = (size_t)1 << 30, bytes[] = { 0, 1, g, g + 1, 3 * g };
    void *of = opened();

    for (int i = 0; i < 5; i++) {
        const sps_message m = { 0, &allowed, bytes[i] };
        const int expected = (const int[]){ 1, 1, 1, 2, 3 }[i];

        memset(&posted, 0, sizeof posted);
        ck_assert_int_eq(start(&m, 1, &m, 1, of), MPI_SUCCESS);
        counts(expected, expected, 2 * expected);
        ck_assert(posted.sent == bytes[i] && posted.received == bytes[i]);
        ck_assert_int_eq(finish(of), MPI_SUCCESS);
        ck_assert_int_eq(posted.open, 0);
    }
    close_channel(of);
}
END_TEST

/* More processes than any mask has cores, or one. */
START_TEST(waits_yield_where_processes_share_cores)
{
    for (int many = 0; many < 2; many++) {
        const sps_message m = { 0, &allowed, 8 };
        double x = 1;
        void *of;

        machine.processes = many ? 1 << 20 : 1;
        of = opened();
        machine.waits = yields = 0;
        machine.late = 3;
        ck_assert_int_eq(sum(&x, 1, of), MPI_SUCCESS);
        ck_assert_int_eq(yields, many ? 3 : 0);
        machine.late = 2;
        ck_assert_int_eq(start(&m, 1, &m, 1, of), MPI_SUCCESS);
        ck_assert_int_eq(finish(of), MPI_SUCCESS);
        ck_assert_int_eq(yields, many ? 5 : 0);
        ck_assert_int_eq(machine.waits, many ? 0 : 2);
        ck_assert_int_eq(posted.open, 0);
        close_channel(of);
    }
    machine.processes = 1;
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(waits_yield_where_processes_share_cores),
    RUNNER_TEST(without_memory_nothing_is_posted),
    RUNNER_TEST(long_messages_go_in_pieces),
};

RUNNER_MAIN("mpi_engine", tests)
