/* SPDX-License-Identifier: BSD-3-Clause */
/* crew.h - processes that solve together, as threads of one process: the calls
 * of sps_comm_user for any number of them, each with a context of its own, in
 * the place under test.  Sums meet at a barrier and add in order of rank;
 * messages are copied into a queue for each pair of ranks, and checked for their
 * size when they are received.  Who waits for CREW_PATIENCE seconds has met a
 * deadlock: all calls fail from then on. */
#ifndef SPS_TEST_CREW_H
#define SPS_TEST_CREW_H

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/support/runner.h"

#ifndef CREW_MOST
#define CREW_MOST 16
#endif
enum { CREW = CREW_MOST, CREW_LONGEST = 4096, CREW_PATIENCE = 30 };

typedef struct crew_letter {
    struct crew_letter *next;
    size_t bytes;
    char data[];
} crew_letter;

typedef struct crew {
    int size;
    pthread_mutex_t lock;
    pthread_cond_t met, mail[CREW];    /* all are here; letters for a rank */
    int here, turn;
    bool broken;
    int count[2][CREW];                /* of a sum, and of the one after it: */
    crew_letter *box[CREW][CREW];      /* [from][to], the first sent first */
    long sums, exchanges;              /* of rank 0 */
} crew;

/* What they sum.  Who is at the next sum writes the other half, and nobody is at
 * the one after that before all have read this. */
static double crew_values[2][CREW][CREW_LONGEST];

typedef struct crew_member {
    crew *all;
    int rank;
    sps_comm *comm;
    sps_context *ctx;
    const sps_allocator *host;         /* of the context, or NULL */
    bool across;                       /* its across_ranks */
    const sps_message *expected;       /* by the open exchange */
    int letters, sums;
    void (*task)(struct crew_member *m);
    void *data;
    sps_status st;                     /* for the task */
    char error[512];
} crew_member;

/* Called by each rank before it sums, sends or receives, or NULL: delays it. */
static void (*crew_pace)(crew_member *m);

/* With the lock held; false: too late. */
static bool crew_wait(crew *c, pthread_cond_t *news, struct timespec until)
{
    if (pthread_cond_timedwait(news, &c->lock, &until)) {
        c->broken = true;
        pthread_cond_broadcast(&c->met);
        for (int r = 0; r < c->size; r++) pthread_cond_signal(&c->mail[r]);
    }
    return !c->broken;
}

static struct timespec crew_patience(void)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += CREW_PATIENCE;
    return until;
}

static int crew_meet(crew *c)
{
    const struct timespec until = crew_patience();
    int turn, code;

    pthread_mutex_lock(&c->lock);
    turn = c->turn;
    if (++c->here == c->size) {
        c->here = 0;
        c->turn++;
        pthread_cond_broadcast(&c->met);
    }
    while (c->turn == turn && !c->broken && crew_wait(c, &c->met, until))
        continue;
    code = c->broken ? 99 : 0;
    pthread_mutex_unlock(&c->lock);
    return code;
}

static int crew_sum(double *values, int count, void *data)
{
    crew_member *m = data;
    crew *c = m->all;
    const int half = m->sums++ % 2;

    if (crew_pace) crew_pace(m);
    if (count > CREW_LONGEST) return 98;
    c->count[half][m->rank] = count;
    memcpy(crew_values[half][m->rank], values, (size_t)count * sizeof *values);
    if (crew_meet(c)) return 99;
    for (int r = 0; r < c->size; r++)
        if (c->count[half][r] != count) return 98;
    for (int i = 0; i < count; i++) {
        values[i] = 0;
        for (int r = 0; r < c->size; r++) values[i] += crew_values[half][r][i];
    }
    if (m->rank == 0) c->sums++;
    return 0;
}

static int crew_post(crew *c, int from, const sps_message *s)
{
    crew_letter **end = &c->box[from][s->peer];
    crew_letter *l = calloc(1, sizeof *l + s->bytes);

    if (!l || s->peer < 0 || s->peer >= c->size || s->peer == from) return 97;
    l->bytes = s->bytes;
    if (s->bytes > 0) memcpy(l->data, s->p, s->bytes);
    while (*end) end = &(*end)->next;
    *end = l;
    pthread_cond_signal(&c->mail[s->peer]);
    return 0;
}

static int crew_start(const sps_message *send, int sends,
                      const sps_message *receive, int receives, void *data)
{
    crew_member *m = data;
    int code = 0;

    if (crew_pace) crew_pace(m);
    pthread_mutex_lock(&m->all->lock);
    for (int i = 0; i < sends && !code; i++)
        code = crew_post(m->all, m->rank, &send[i]);
    m->all->exchanges += m->rank == 0;
    pthread_mutex_unlock(&m->all->lock);
    m->expected = receive;
    m->letters = receives;
    return code;
}

/* With the lock held. */
static int crew_receive(crew *c, int to, const sps_message *r)
{
    const struct timespec until = crew_patience();
    crew_letter **first = &c->box[r->peer][to], *l;
    int code;

    while (!*first && !c->broken && crew_wait(c, &c->mail[to], until)) continue;
    if (!*first) return 99;
    l = *first;
    *first = l->next;
    code = l->bytes == r->bytes ? 0 : 96;
    if (!code && l->bytes > 0) memcpy(r->p, l->data, l->bytes);
    free(l);
    return code;
}

static int crew_finish(void *data)
{
    crew_member *m = data;
    int code = 0;

    if (crew_pace) crew_pace(m);
    pthread_mutex_lock(&m->all->lock);
    for (int i = 0; i < m->letters && !code; i++)
        code = crew_receive(m->all, m->rank, &m->expected[i]);
    pthread_mutex_unlock(&m->all->lock);
    return code;
}

static int crew_exchange(const sps_message *send, int sends,
                         const sps_message *receive, int receives, void *data)
{
    const int code = crew_start(send, sends, receive, receives, data);

    return code ? code : crew_finish(data);
}

/* Lets threads that wait for a GPU yield: they spin otherwise, and the thread
 * that the others wait for would not run where all cores are in use.  Before the
 * first context of the process. */
static void crew_yield_on_gpus(void)
{
    enum { YIELD = 2 };       /* CU_CTX_SCHED_YIELD */
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    int (*start)(unsigned) = NULL, (*count)(int *) = NULL;
    int (*set)(int device, unsigned flags) = NULL, devices = 0;

    if (driver) {
        *(void **)&start = dlsym(driver, "cuInit");
        *(void **)&count = dlsym(driver, "cuDeviceGetCount");
        *(void **)&set = dlsym(driver, "cuDevicePrimaryCtxSetFlags_v2");
    }
    if (!start || !count || !set || start(0) || count(&devices)) return;
    for (int d = 0; d < devices; d++) set(d, YIELD);
}

static void *crew_main(void *data)
{
    crew_member *m = data;
    sps_comm_calls calls = { .struct_size = sizeof calls, .sum = crew_sum };
    sps_context_options o;

    /* Odd ranks exchange in one call, even ones in two. */
    calls.exchange = crew_exchange;
    if (m->rank % 2 == 0) {
        calls.start = crew_start;
        calls.finish = crew_finish;
    }
    sps_context_options_default(&o);
    o.place = runner_place();
    o.threads = 1;
    o.host = m->host;
    o.across_ranks = m->across;
    m->st = sps_comm_user(m->rank, m->all->size, &calls, m, &m->comm);
    o.comm = m->comm;
    if (!m->st) m->st = sps_context_create(&o, &m->ctx, NULL);
    if (!m->st) m->task(m);
    if (m->st && m->ctx)
        strncpy(m->error, sps_context_error(m->ctx), sizeof m->error - 1);
    sps_context_destroy(&m->ctx);
    sps_comm_destroy(&m->comm);
    return NULL;
}

/* Runs task on `size` ranks; member[r].st and .error have how each ended.
 * False: a deadlock, or a message that nobody received. */
static bool crew_run(crew_member *member, int size,
                     void (*task)(crew_member *m), void *data)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static crew c;
    pthread_t thread[CREW];
    bool good;

    if (runner_place() == SPS_CUDA) pthread_once(&once, crew_yield_on_gpus);
    memset(&c, 0, sizeof c);
    c.size = size;
    pthread_mutex_init(&c.lock, NULL);
    pthread_cond_init(&c.met, NULL);
    for (int r = 0; r < size; r++) pthread_cond_init(&c.mail[r], NULL);
    for (int r = 0; r < size; r++) {
        const sps_allocator *host = member[r].host;
        const bool across = member[r].across;

        member[r] = (crew_member){ .all = &c, .rank = r, .task = task,
                                   .data = data, .host = host,
                                   .across = across };
        if (pthread_create(&thread[r], NULL, crew_main, &member[r])) abort();
    }
    for (int r = 0; r < size; r++) pthread_join(thread[r], NULL);
    good = !c.broken;
    for (int i = 0; i < size * size; i++)
        for (crew_letter *l; (l = c.box[i / size][i % size]); free(l)) {
            c.box[i / size][i % size] = l->next;
            good = false;
        }
    return good;
}

/* The first rows of ranks are multiples of it. */
static int64_t crew_unit = 1;

/* The first row of rank r when n rows are shared by `size`, unequally: each
 * has one at least. */
static inline int64_t crew_first(int64_t n, int size, int r)
{
    const int64_t spare = n / crew_unit - size;

    return r == size ? n : crew_unit * (r + spare * (int64_t)(r * r) /
                                            (size * size));
}

/* Own rows of a whole host csr, with global columns. */
static inline sps_status crew_rows(const crew_member *m, const sps_csr *A,
                                   sps_csr **own_p)
{
    const int64_t first = crew_first(A->nrow, m->all->size, m->rank);
    const int64_t n = crew_first(A->nrow, m->all->size, m->rank + 1) - first;
    const int64_t begin = A->rowptr[first];
    const int64_t nnz = A->rowptr[first + n] - begin;
    const size_t each = A->dtype == SPS_F64 ? sizeof(double) : sizeof(float);
    int64_t *rowptr = malloc((size_t)(n + 1) * sizeof *rowptr);
    int64_t *global = malloc((size_t)(nnz + 1) * sizeof *global);
    sps_status st;

    for (int64_t i = 0; i <= n; i++) rowptr[i] = A->rowptr[first + i] - begin;
    for (int64_t p = 0; p < nnz; p++) global[p] = A->col[begin + p];
    st = sps_csr_wrap_rows(m->ctx, first, n, A->nrow, nnz, rowptr, global,
                           (char *)A->val + (size_t)begin * each, A->dtype,
                           SPS_COPY, own_p);
    if (!st) (*own_p)->props = A->props & (SPS_SYMMETRIC | SPS_SPD);
    free(rowptr);
    free(global);
    return st;
}

#endif
