/* SPDX-License-Identifier: BSD-3-Clause */
/* progress.c - the line of progress on the terminal, at most ten times a second
 * and never in a pipe; the -monitor table; the history. */
#include "tools/command/job.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

double job_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void progress_init(progress *p, bool quiet)
{
    const char *term = getenv("TERM");
    bool plain = !term || strcmp(term, "dumb") == 0;

    p->terminal = !quiet && !plain && isatty(STDERR_FILENO) ? stderr : NULL;
}

void progress_say(progress *p, bool now, const char *format, ...)
{
    char text[160];
    double time;
    va_list list;

    if (!p->terminal) return;
    time = job_now();
    if (!now && time - p->last < 0.1) return;
    p->last = time;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    fprintf(p->terminal, "\r\033[K%.78s", text);
    fflush(p->terminal);
    p->drawn = true;
}

void progress_clear(progress *p)
{
    if (!p->drawn) return;
    fprintf(p->terminal, "\r\033[K");
    fflush(p->terminal);
    p->drawn = false;
}

void progress_reading(uint64_t done, uint64_t total, void *data)
{
    progress *p = data;

    if (total)
        progress_say(p, false, "reading: %.0f of %.0f MB (%.0f %%)",
                     1e-6 * (double)done, 1e-6 * (double)total,
                     100.0 * (double)done / (double)total);
    else
        progress_say(p, false, "reading: %.0f MB", 1e-6 * (double)done);
}

/* Returns the predicted seconds left, if log(worst residual) falls at its mean
 * rate so far; negative if unknown. */
static double left(const progress *p, const sps_progress *s)
{
    double fallen = log(p->first_worst / s->worst);
    double ahead = log(s->worst / p->target), time = -1;
    int done = s->iteration - p->first_iteration;

    if (done > 0 && s->seconds > 0 && p->target > 0 && isfinite(ahead)) {
        double each = s->seconds / s->iteration;
        if (fallen > 0.1 && ahead > 0) time = each * done * ahead / fallen;
        double most = each * (p->limit - s->iteration);
        if (time > most) time = most;
    }
    if (p->seconds_limit > 0 && time > p->seconds_limit - s->seconds)
        time = p->seconds_limit - s->seconds;
    return time;
}

static void line(const progress *p, const sps_progress *s, char *text,
                 size_t size)
{
    double time = left(p, s);
    char rest[32] = "";

    if (time >= 3600) snprintf(rest, sizeof rest, ", %.1f h left", time / 3600);
    else if (time >= 90) snprintf(rest, sizeof rest, ", %.0f min left",
                                  time / 60);
    else if (time >= 0) snprintf(rest, sizeof rest, ", %.0f s left", time);
    snprintf(text, size,
             "iteration %d: worst %.1e, median %.1e, %d of %d done%s",
             s->iteration, s->worst, s->median, s->converged, s->k, rest);
}

static double least(const sps_progress *s)
{
    double best = INFINITY;

    for (int j = 0; j < s->k; j++)
        if (s->residual[j] < best) best = s->residual[j];
    return best;
}

/* Enlarges the history.  Returns false if there is no memory, which only ends
 * the history. */
static bool grow(progress *p, int columns)
{
    int room = p->room ? 2 * p->room : 1024;
    progress_point *point = realloc(p->point, (size_t)room * sizeof *point);
    float *column = NULL;

    if (point) p->point = point;
    if (p->each)
        column = realloc(p->column, (size_t)room * (size_t)columns *
                                        sizeof *column);
    if (column) p->column = column;
    if (!point || (p->each && !column)) return false;
    p->room = room;
    p->columns = columns;
    return true;
}

static void remember(progress *p, const sps_progress *s)
{
    float *column;

    if (p->count == p->room && !grow(p, s->k)) {
        p->keep = false;
        return;
    }
    column = p->column ? p->column + (size_t)p->count * (size_t)s->k : NULL;
    for (int j = 0; column && j < s->k; j++) column[j] = (float)s->residual[j];
    p->point[p->count++] = (progress_point){s->iteration, s->converged,
                                            s->worst, s->median, least(s)};
}

/* Appends one row to the -monitor table and flushes it, so that it can be
 * watched.  After a write error nothing more is written. */
static void table(progress *p, const sps_progress *s)
{
    FILE *f = p->table.f;

    if (p->table.failed) return;
    if (!p->table_begun)
        fprintf(f, "# iteration seconds worst median converged width "
                   "residual_of_each_column\n");
    p->table_begun = true;
    if (s->event) fprintf(f, "# %s\n", s->event);
    fprintf(f, "%d\t%.6f\t%.6e\t%.6e\t%d\t%d", s->iteration, s->seconds,
            s->worst, s->median, s->converged, s->width);
    for (int j = 0; j < s->k; j++) fprintf(f, "\t%.6e", s->residual[j]);
    fputc('\n', f);
    errno = 0;
    if (fflush(f) != 0 || ferror(f)) p->table.failed = errno ? errno : EIO;
}

bool progress_iteration(const sps_progress *s, void *data)
{
    progress *p = data;
    char text[160];

    if (p->first_worst == 0 && s->worst > 0) {
        p->first_worst = s->worst;
        p->first_iteration = s->iteration;
    }
    if (p->keep) remember(p, s);
    if (p->table.f) table(p, s);
    if (p->asked) {
        p->asked = 0;
        line(p, s, text, sizeof text);
        progress_clear(p);
        fprintf(stderr, CLI_PROGRAM ": %s\n", text);
    }
    if (p->terminal && job_now() - p->last >= 0.1) {
        line(p, s, text, sizeof text);
        progress_say(p, true, "%s", text);
    }
    return true;
}

void progress_free(progress *p)
{
    free(p->point);
    free(p->column);
    p->point = NULL;
    p->column = NULL;
    p->count = p->room = 0;
}
