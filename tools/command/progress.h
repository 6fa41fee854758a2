/* SPDX-License-Identifier: BSD-3-Clause */
/* progress.h - what a user sees while a solve runs: one line on a terminal, the
 * table of -monitor, and the history that -plot draws. */
#ifndef PROGRESS_H
#define PROGRESS_H

#include "tools/command/output.h"
#include "spsolve.h"

#include <signal.h>
#include <stdio.h>

/* One iteration in the history. */
typedef struct progress_point {
    int iteration, converged;
    double worst, median, best;
} progress_point;

typedef struct progress {
    FILE *terminal;              /* stderr if it is a terminal and may be
                                    used */
    output table;                /* table of -monitor; table.f may be NULL */
    bool table_begun;
    double last;                 /* time at which the line was drawn */
    double target;               /* tolerance of the residuals, or 0 */
    int limit;                   /* -max-iterations */
    double seconds_limit;        /* seconds left of -max-seconds */
    bool drawn;                  /* the terminal shows a line of progress */
    bool keep;                   /* whether the history is kept, for -plot */
    bool each;                   /* the history also has a value for each
                                    column */
    progress_point *point;
    float *column;               /* room x columns values, or NULL unless
                                    `each` */
    int columns;
    int count, room;
    double first_worst;          /* first worst residual, for predicting the
                                    time left */
    int first_iteration;
    volatile sig_atomic_t asked; /* SIGUSR1 was received: print one line */
} progress;

/* Chooses the terminal: stderr, unless quiet is set or stderr is no
 * terminal. */
void progress_init(progress *p, bool quiet);
/* Shows one line of text; at most ten a second are shown unless `now`. */
void progress_say(progress *p, bool now, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Removes the line before other text is printed. */
void progress_clear(progress *p);
/* Shows the progress of reading: sps_read_options.progress. */
void progress_reading(uint64_t done, uint64_t total, void *data);
/* The monitor of the solver: sps_monitor_fn. */
bool progress_iteration(const sps_progress *s, void *data);
void progress_free(progress *p);

#endif
