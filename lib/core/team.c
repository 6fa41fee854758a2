/* SPDX-License-Identifier: BSD-3-Clause */
/* team.c - a parallel region: the caller assigns a range of items to each
 * thread, opens the gate, takes part in the work until no item is left, closes
 * the gate and waits until all workers have left.
 *
 * A thread claims items from its own range first and then from those of others,
 * so that the caller never waits for a worker that has not arrived: on a busy
 * machine it does all the work itself.  A late worker finds the gate closed.
 *
 * Idle workers poll `epoch` for SPS_TEAM_WATCH, yielding the core to others;
 * then they sleep, each on its own futex, and are woken as a binary tree.
 * After a fork the child has no workers; it starts its own. */
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/team.h"
#include "core/timer.h"

enum {
    CLOSED = 1 << 30,        /* gate: no worker may enter */
    CALLER_WAITS = 1 << 29,  /* gate: the caller sleeps until it is empty */
    CLAIMS = 8               /* claims of a range: balances load against
                                overhead */
};

/* State of one thread; seat 0 is that of the caller. */
typedef struct seat {
    int64_t next, end;       /* its range: items not yet claimed */
    uint32_t asleep;         /* 1: sleeps on this futex */
    uint32_t seen;           /* the last epoch it has responded to */
    int number;
    struct sps_team *team;
    pthread_t thread;
} __attribute__((aligned(64))) seat;

struct sps_team {
    spsi_team_fn *fn;        /* The region; written while the gate is closed
                                and no worker is inside. */
    void *data;
    int64_t grain;           /* items in a claim */
    int active;              /* number of threads that take part */
    bool busy;
    bool quit;
    int threads, workers;    /* largest number of threads, with the caller;
                                number of workers started */
    pid_t process;           /* the process that started the workers */
    uint32_t epoch __attribute__((aligned(64)));   /* number of regions begun */
    uint32_t gate __attribute__((aligned(64)));    /* number of workers inside,
                                                      plus the flags above */
    seat seat[];
};

static _Thread_local int self;

int spsi_team_self(void)
{
    return self;
}

/* --------------------------------------------------------------- waiting */

static void futex_wait(uint32_t *word, uint32_t value)
{
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake(uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static inline void pause_core(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Polls until *word differs from value, for at most SPS_TEAM_WATCH, and shorter
 * if another thread ran on this core meanwhile; returns whether it differs. */
static bool changes(const uint32_t *word, uint32_t value)
{
    const double start = spsi_now();

    for (double last = start, now; ; last = now) {
        for (int i = 0; i < 16; i++) {
            if (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value) return true;
            pause_core();
        }
        sched_yield();
        now = spsi_now();
        if (now - start > SPS_TEAM_WATCH || now - last > SPS_TEAM_WATCH / 2)
            return __atomic_load_n(word, __ATOMIC_ACQUIRE) != value;
    }
}

/* Wakes the threads in seats 2 i + 1 and 2 i + 2, the children of seat i, if
 * they sleep and take part in the region. */
static void wake_below(struct sps_team *t, int i)
{
    for (int c = 2 * i + 1; c <= 2 * i + 2 && c < t->active; c++) {
        uint32_t *asleep = &t->seat[c].asleep;

        if (__atomic_load_n(asleep, __ATOMIC_SEQ_CST) &&
            __atomic_exchange_n(asleep, 0, __ATOMIC_SEQ_CST))
            futex_wake(asleep);
    }
}

/* ------------------------------------------------------------------ work */

/* Does the work of thread `number`: claims items, of its own range and then of
 * those of the others, until none is left. */
static void work(struct sps_team *t, int number)
{
    for (int i = 0; i < t->active; i++) {
        seat *s = &t->seat[(number + i) % t->active];

        while (__atomic_load_n(&s->next, __ATOMIC_RELAXED) < s->end) {
            const int64_t first = __atomic_fetch_add(&s->next, t->grain,
                                                     __ATOMIC_RELAXED);
            const int64_t left = s->end - first;

            if (left <= 0) break;
            t->fn(t->data, first, first + (left < t->grain ? left : t->grain));
        }
    }
}

static bool enter(struct sps_team *t)
{
    uint32_t gate = __atomic_load_n(&t->gate, __ATOMIC_RELAXED);

    while (!(gate & CLOSED))
        if (__atomic_compare_exchange_n(&t->gate, &gate, gate + 1, true,
                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return true;
    return false;
}

static void leave(struct sps_team *t)
{
    if (__atomic_sub_fetch(&t->gate, 1, __ATOMIC_ACQ_REL) ==
        (CLOSED | CALLER_WAITS))
        futex_wake(&t->gate);
}

/* Waits for the next region, until t->epoch differs from own->seen: first
 * polling if `watch`, then asleep. */
static void await_region(struct sps_team *t, seat *own, bool watch)
{
    if (!watch || !changes(&t->epoch, own->seen)) {
        for (;;) {
            __atomic_store_n(&own->asleep, 1, __ATOMIC_SEQ_CST);
            if (__atomic_load_n(&t->epoch, __ATOMIC_SEQ_CST) != own->seen)
                break;
            futex_wait(&own->asleep, 1);
        }
        __atomic_store_n(&own->asleep, 0, __ATOMIC_RELAXED);
    }
    own->seen = __atomic_load_n(&t->epoch, __ATOMIC_ACQUIRE);
}

static void *worker(void *data)
{
    seat *own = data;
    struct sps_team *t = own->team;
    bool took_part = true;

    self = own->number;
    for (;;) {
        await_region(t, own, took_part);
        if (__atomic_load_n(&t->quit, __ATOMIC_ACQUIRE)) return NULL;
        took_part = false;
        if (!enter(t)) continue;
        wake_below(t, own->number);
        took_part = own->number < t->active;
        if (took_part) work(t, own->number);
        leave(t);
    }
}

/* ---------------------------------------------------------------- region */

/* Starts the next worker.  Workers block all signals, so that handlers run in
 * threads of the program. */
static bool start_worker(struct sps_team *t)
{
    seat *s = &t->seat[t->workers + 1];
    sigset_t all, old;
    int failed;

    s->seen = t->epoch;
    s->asleep = 0;
    s->number = t->workers + 1;
    s->team = t;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    failed = pthread_create(&s->thread, NULL, worker, s);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (!failed) t->workers++;
    return !failed;
}

/* Starts the workers that are missing for a region of `wanted` threads.
 * Returns the number of its threads, which is smaller if a worker could not be
 * started. */
static int start_workers(struct sps_team *t, int wanted)
{
    if (t->process != getpid()) {
        t->process = getpid();
        t->workers = 0;
    }
    while (t->workers + 1 < wanted)
        if (!start_worker(t)) t->threads = wanted = t->workers + 1;
    return wanted;
}

static int wanted(const struct sps_team *t, int64_t count, int64_t ns)
{
    int64_t threads = ns / SPS_TEAM_SHARE;

    if (threads > count) threads = count;
    return threads < t->threads ? (int)threads : t->threads;
}

static void lay_out(struct sps_team *t, int64_t count, int threads)
{
    const int64_t range = count / threads, more = count % threads;
    int64_t first = 0;

    t->active = threads;
    t->grain = (range + CLAIMS) / CLAIMS;
    for (int i = 0; i < threads; i++) {
        t->seat[i].next = first;
        first += range + (i < more);
        t->seat[i].end = first;
    }
}

/* Closes the gate and waits until all workers have left: polling first, then
 * asleep. */
static void finish(struct sps_team *t)
{
    uint32_t gate = __atomic_or_fetch(&t->gate, CLOSED, __ATOMIC_ACQ_REL);

    while (gate != CLOSED && changes(&t->gate, gate))
        gate = __atomic_load_n(&t->gate, __ATOMIC_ACQUIRE);
    if (gate == CLOSED) return;
    gate = __atomic_or_fetch(&t->gate, CALLER_WAITS, __ATOMIC_ACQ_REL);
    while (gate != (CLOSED | CALLER_WAITS)) {
        futex_wait(&t->gate, gate);
        gate = __atomic_load_n(&t->gate, __ATOMIC_ACQUIRE);
    }
}

static void run(struct sps_team *t, int64_t count, int64_t ns,
                spsi_team_fn *fn, void *data)
{
    int threads = wanted(t, count, ns);

    if (threads >= 2 && !t->busy) threads = start_workers(t, threads);
    if (threads < 2 || t->busy) {
        if (count > 0) fn(data, 0, count);
        return;
    }
    t->fn = fn;
    t->data = data;
    t->busy = true;
    lay_out(t, count, threads);
    __atomic_store_n(&t->gate, 0, __ATOMIC_RELEASE);
    __atomic_add_fetch(&t->epoch, 1, __ATOMIC_SEQ_CST);
    wake_below(t, 0);
    work(t, 0);
    finish(t);
    t->busy = false;
}

/* The caller may be a worker of another team, or of this one. */
void spsi_team_run(sps_context *ctx, int64_t count, int64_t ns,
                   spsi_team_fn *fn, void *data)
{
    const int number = self;

    self = 0;
    run(ctx->team, count, ns, fn, data);
    self = number;
}

/* --------------------------------------------------------- opening, closing */

sps_status spsi_team_open(sps_context *ctx)
{
    const size_t seats = (size_t)ctx->threads * sizeof(seat);
    sps_status st;

    SPS_TRY(spsi_new(ctx, sizeof(struct sps_team) + seats,
                     (void **)&ctx->team));
    ctx->team->threads = ctx->threads;
    ctx->team->gate = CLOSED;
fail:
    return st;
}

void spsi_team_close(sps_context *ctx)
{
    struct sps_team *t = ctx->team;

    if (!t) return;
    if (t->workers > 0 && t->process == getpid()) {
        __atomic_store_n(&t->quit, true, __ATOMIC_RELEASE);
        __atomic_add_fetch(&t->epoch, 1, __ATOMIC_SEQ_CST);
        for (int i = 1; i <= t->workers; i++) {
            if (__atomic_exchange_n(&t->seat[i].asleep, 0, __ATOMIC_SEQ_CST))
                futex_wake(&t->seat[i].asleep);
        }
        for (int i = 1; i <= t->workers; i++)
            pthread_join(t->seat[i].thread, NULL);
    }
    spsi_free(ctx, t);
    ctx->team = NULL;
}
