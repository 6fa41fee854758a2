/* SPDX-License-Identifier: BSD-3-Clause */
/* signals.c - handling of signals.  The first SIGINT, SIGTERM, SIGHUP or
 * SIGXCPU only cancels the solve, so that the best iterate and the reports are
 * written; the second has its default effect.  A SIGHUP that the parent
 * ignores, as nohup does, stays ignored.  SIGUSR1 requests one line of
 * progress.  SIGPIPE and SIGXFSZ are ignored: a closed pipe and a file beyond
 * the size limit then appear as write errors. */
#include "tools/command/job.h"

#include <signal.h>
#include <string.h>
#include <sys/time.h>

/* Variables of the signal handlers. */
static volatile sig_atomic_t caught;
static sps_context *volatile to_cancel;
static progress *volatile to_ask;

static const int endings[] = {SIGINT, SIGTERM, SIGHUP, SIGXCPU};
enum { ENDINGS = sizeof endings / sizeof *endings };

static void on_ending(int number)
{
    caught = number;
    for (int i = 0; i < ENDINGS; i++) signal(endings[i], SIG_DFL);
    if (to_cancel) sps_cancel(to_cancel, true);
}

static volatile sig_atomic_t late;

static void on_alarm(int number)
{
    (void)number;
    late = 1;
    if (to_cancel) sps_cancel(to_cancel, true);
}

void signals_deadline(double seconds)
{
    struct itimerval timer = {{0, 0}, {0, 0}};

    signal(SIGALRM, on_alarm);
    if (seconds > 1e8) seconds = 1e8;
    timer.it_value.tv_sec = (time_t)seconds;
    timer.it_value.tv_usec = (suseconds_t)(1e6 * (seconds - (double)(time_t)
                                                  seconds));
    setitimer(ITIMER_REAL, &timer, NULL);
}

bool signals_late(void)
{
    return late != 0;
}

static void on_question(int number)
{
    (void)number;
    if (to_ask) to_ask->asked = 1;
}

void signals_catch(progress *p)
{
    struct sigaction action;

    to_ask = p;
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    action.sa_handler = on_question;
    sigaction(SIGUSR1, &action, NULL);
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, NULL);
    sigaction(SIGXFSZ, &action, NULL);
    action.sa_handler = on_ending;
    for (int i = 0; i < ENDINGS; i++) {
        struct sigaction old;
        sigaction(endings[i], NULL, &old);
        if (old.sa_handler != SIG_IGN) sigaction(endings[i], &action, NULL);
    }
}

int signals_caught(void)
{
    return caught;
}

void signals_context(sps_context *ctx)
{
    to_cancel = ctx;
    if (ctx && caught) sps_cancel(ctx, true);
}
