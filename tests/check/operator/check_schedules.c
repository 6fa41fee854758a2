/* SPDX-License-Identifier: BSD-3-Clause */
/* check_schedules.c - processes that solve together, delayed at random before
 * each sum, sending and receiving, some with a fault: no schedule ends in a
 * deadlock, and all processes end alike.  And 64 processes. */
#define CREW_MOST 64
#include <sched.h>

#include "tests/problems/zoo.h"
#include "tests/processes/crew_system.h"
#include "tests/support/fixture.h"
#include "tests/support/runner.h"

enum { SCHEDULES = 1000, K = 2 };

/* What happens on the process `who` of a schedule. */
enum { NOTHING, SLOW, MEMORY, CANCEL, MONITOR, LIMIT, FAULTS };

typedef struct schedule {
    uint32_t seed;
    int fault, who;
    int when;                 /* at this allocation, message or iteration */
    const sps_csr *A;
    const double *b;
    const char *solver, *precond;
    double rtol;
    bool paced;
} schedule;

static crew_member member[CREW];
static sps_result result[CREW];
static int paces[CREW];       /* sums, sendings and receipts of each so far */
static fail_alloc memory;

static uint32_t mix(uint32_t a, uint32_t b)
{
    a = (a ^ b * 0x9e3779b9u) * 0x85ebca6bu;
    a = (a ^ a >> 13) * 0xc2b2ae35u;
    return a ^ a >> 16;
}

static void pace(crew_member *m)
{
    const schedule *s = m->data;
    const int now = paces[m->rank]++;
    const uint32_t r = mix(mix(s->seed, (uint32_t)m->rank), (uint32_t)now);

    if (s->fault == CANCEL && m->rank == s->who && now == s->when)
        sps_cancel(m->ctx, true);
    if (s->fault == SLOW && m->rank == s->who)
        nanosleep(&(struct timespec){ 0, 100000 }, NULL);
    else if (r % 16 == 0)
        nanosleep(&(struct timespec){ 0, (long)(r >> 8) % 100000 }, NULL);
    else if (r % 4 == 0) sched_yield();
}

static bool go_on(const sps_progress *p, void *data)
{
    const crew_member *m = data;
    const schedule *s = m->data;

    return m->rank != s->who || p->iteration < s->when;
}

static void solve(crew_member *m)
{
    const schedule *s = m->data;
    crew_system c = { .A = s->A, .b = s->b, .k = K, .allowed = s->when };

    sps_options_default(&c.opt);
    c.opt.solver = s->solver;
    c.opt.precond = s->precond;
    c.opt.rtol = s->rtol;
    c.opt.nullspace = "none";
    /* That of process 0 counts. */
    if (s->fault == LIMIT) c.opt.max_seconds = 1e-4 * (s->when + m->rank);
    if (s->fault == MONITOR) c.opt.monitor = go_on;
    c.opt.monitor_data = m;
    crew_solve(m, &c);
    result[m->rank] = c.result;
}

static bool run(schedule *s, int size)
{
    bool good;

    memset(paces, 0, sizeof paces);
    memset(result, 0, sizeof result);
    crew_pace = s->paced ? pace : NULL;
    good = crew_run(member, size, solve, s);
    crew_pace = NULL;
    return good;
}

/* All have failed because of one, or all have ended alike. */
static void ended_alike(const schedule *s, int size)
{
    const bool failed = s->fault == MEMORY && memory.fired;

    for (int r = 0; r < size; r++) {
        const sps_status want = !failed ? SPS_OK : r == s->who ? SPS_ENOMEM
                                                               : SPS_EPEER;

        ck_assert_msg(member[r].st == want, "schedule %u, %s, %s, fault %d of "
                      "%d at %d, process %d of %d: %d, %s", s->seed, s->solver,
                      s->precond, s->fault, s->who, s->when, r, size,
                      (int)member[r].st, member[r].error);
        ck_assert_msg(result[r].stop == result[0].stop &&
                      result[r].iterations == result[0].iterations,
                      "schedule %u, %s, %s, fault %d: process %d of %d ends "
                      "after %d, process 0 after %d", s->seed, s->solver,
                      s->precond, s->fault, r, size, result[r].iterations,
                      result[0].iterations);
    }
    if (!failed && (s->fault == NOTHING || s->fault == SLOW))
        ck_assert_msg(result[0].stop > 0, "schedule %u: %s", s->seed,
                      sps_stop_string(result[0].stop));
}

START_TEST(no_schedule_ends_in_a_deadlock)
{
    static const char *const methods[][2] = {
        { "block_cg", "jacobi" }, { "block_cg", "chebyshev" },
        { "gmres", "ilu0" }, { "cg", "none" }, { "idr", "block_jacobi" },
        { "block_cg", "amg" }, { "bicgstab", "jacobi" }, { "auto", "auto" },
        { "cg", "fsai" },
    };
    sps_csr *A = zoo_matrix(zoo_find("grid5"), 49, 1, ZOO_SPD, SPS_F64);
    double *b = zoo_block(A->nrow, K, K, 1, ZOO_RANDOM);
    const int count = runner_quick() ? SCHEDULES / 20 : SCHEDULES;
    int faults[FAULTS] = { 0 };

    for (int i = 0; i < count; i++) {
        const uint32_t r = mix(1, (uint32_t)i), method = r % 9;
        const int size = 2 + (int)(r >> 4) % 4;
        schedule s = { .seed = (uint32_t)i, .A = A, .b = b, .paced = true,
                       .fault = (int)(r >> 8) % FAULTS,
                       .who = (int)(r >> 12) % size,
                       .solver = methods[method][0],
                       .precond = methods[method][1], .rtol = 1e-8 };

        s.when = (int)(r >> 16) % (s.fault == MONITOR ? 10 : 60);
        memset(&memory, 0, sizeof memory);
        memory.allowed = -1;
        member[s.who].host = s.fault == MEMORY ? fail_alloc_host(&memory)
                                               : NULL;
        ck_assert_msg(run(&s, size), "schedule %u, %s, %s, fault %d of %d at "
                      "%d: a deadlock, or a lost message", s.seed, s.solver,
                      s.precond, s.fault, s.who, s.when);
        member[s.who].host = NULL;
        ended_alike(&s, size);
        ck_assert_int_eq(memory.live, 0);
        faults[s.fault] += s.fault == MEMORY ? memory.fired
                         : s.fault < MEMORY || result[0].stop <= 0;
    }
    for (int f = 0; f < FAULTS; f++)
        ck_assert_msg(faults[f] > 0, "fault %d has never come", f);
    free(b);
    zoo_free(&A);
}
END_TEST

START_TEST(as_many_as_64_processes_need_few_sums)
{
    sps_csr *A = zoo_matrix(zoo_find("grid5"), 144, 1, ZOO_SPD, SPS_F64);
    double *b = zoo_block(A->nrow, K, K, 1, ZOO_RANDOM);
    schedule s = { .A = A, .b = b, .fault = NOTHING, .solver = "block_cg",
                   .precond = "jacobi", .rtol = 1e-4 };

    ck_assert(run(&s, 64));
    ended_alike(&s, 64);
    ck_assert_msg(member[0].all->sums < 100, "%ld sums",
                  member[0].all->sums);
    free(b);
    zoo_free(&A);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(no_schedule_ends_in_a_deadlock),
    RUNNER_TEST(as_many_as_64_processes_need_few_sums),
};

RUNNER_MAIN("schedules", tests)
