/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks.h - several processes that solve together, simulated by threads of one
 * process: a barrier, a reduction, and the exchange of boundary rows with the
 * neighbours. ranks_run and sum get an array of structs whose first member is
 * the rank, an int. */
#ifndef SPS_TEST_RANKS_H
#define SPS_TEST_RANKS_H

#include <pthread.h>
#include <string.h>
#include <time.h>

enum { RANKS = 3, LONGEST = 4096, WIDEST = 64, PATIENCE = 20 };

static struct shared {
    pthread_mutex_t lock;
    pthread_cond_t all_here;
    int here, turn;
    bool broken;                       /* a barrier timed out: a deadlock */
    int count[RANKS];
    double *values[RANKS];
    double total[LONGEST];
    double low[RANKS][WIDEST], high[RANKS][WIDEST];   /* boundary rows */
} w;

/* Barrier.  After PATIENCE seconds it counts as a deadlock, and all threads are
 * released. */
static int meet(void)
{
    struct timespec until;
    int turn, late = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE;
    pthread_mutex_lock(&w.lock);
    turn = w.turn;
    if (++w.here == RANKS) {
        w.here = 0;
        w.turn++;
        pthread_cond_broadcast(&w.all_here);
    }
    while (w.turn == turn && !w.broken && !late)
        late = pthread_cond_timedwait(&w.all_here, &w.lock, &until);
    if (late) w.broken = true;
    late = w.broken;
    pthread_cond_broadcast(&w.all_here);
    pthread_mutex_unlock(&w.lock);
    return late ? 99 : 0;
}

/* Sums in rank order, so that all ranks get the same bits; like MPI, requires
 * equal counts. */
static int sum(double *values, int count, void *data)
{
    const int rank = *(const int *)data;

    w.values[rank] = values;
    w.count[rank] = count;
    if (meet()) return 99;
    for (int r = 0; r < RANKS; r++)
        if (w.count[r] != count || count > LONGEST) return 98;
    if (rank == 0)
        for (int i = 0; i < count; i++) {
            w.total[i] = 0;
            for (int r = 0; r < RANKS; r++) w.total[i] += w.values[r][i];
        }
    if (meet()) return 99;
    memcpy(values, w.total, (size_t)count * sizeof *values);
    return meet();
}

/* Publishes the first and last rows of the local n x k block for the
 * neighbours, which may read them until the next barrier. */
static int show_ends(int rank, const double *X, int64_t ldx, int64_t n, int k)
{
    memcpy(w.low[rank], X, (size_t)k * sizeof *X);
    memcpy(w.high[rank], X + (n - 1) * ldx, (size_t)k * sizeof *X);
    return meet();
}

/* Runs each process in a thread, with its own struct of the given size. */
static void ranks_run(void *(*process)(void *), void *first, size_t bytes)
{
    pthread_t thread[RANKS];

    memset(&w, 0, sizeof w);
    pthread_mutex_init(&w.lock, NULL);
    pthread_cond_init(&w.all_here, NULL);
    for (int r = 0; r < RANKS; r++)
        ck_assert_int_eq(pthread_create(&thread[r], NULL, process,
                                        (char *)first + (size_t)r * bytes), 0);
    for (int r = 0; r < RANKS; r++) pthread_join(thread[r], NULL);
}

#endif
