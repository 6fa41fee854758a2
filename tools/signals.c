/* SPDX-License-Identifier: BSD-3-Clause */
/* signals.c - the first SIGINT, SIGTERM or SIGXCPU only cancels the solve, so
 * that the best iterate and the reports are written; the second has its
 * default effect.  SIGUSR1 asks for one line of progress.  SIGPIPE
 * and SIGXFSZ are ignored: a reader that went away and a file grown beyond
 * its limit show as write errors. */
#include "job.h"

#include <signal.h>
#include <string.h>

/* What the signal handler may touch. */
static volatile sig_atomic_t caught;
static sps_context *volatile to_cancel;
static progress *volatile to_ask;

static const int endings[] = {SIGINT, SIGTERM, SIGXCPU};
enum { ENDINGS = sizeof endings / sizeof *endings };

static void on_ending(int number)
{
    caught = number;
    for (int i = 0; i < ENDINGS; i++) signal(endings[i], SIG_DFL);
    if (to_cancel) sps_cancel(to_cancel, true);
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
