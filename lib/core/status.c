/* SPDX-License-Identifier: BSD-3-Clause */
/* status.c - texts of status codes and stop reasons, and the record of the last
 * failure.  The texts come from the X-macros of spsolve.h, so that every code
 * has one. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/context.h"

#define STRING(x) #x
#define VERSION(a, b, c) STRING(a) "." STRING(b) "." STRING(c)

const char *sps_version(void)
{
    return VERSION(SPS_VERSION_MAJOR, SPS_VERSION_MINOR, SPS_VERSION_PATCH);
}

const char *sps_status_string(sps_status status)
{
    switch ((int)status) {
#define SPS_X(name, number, text) case number: return text;
        SPS_STATUS_LIST(SPS_X)
#undef SPS_X
    }
    return "unknown status";
}

const char *sps_stop_string(sps_stop stop)
{
    switch ((int)stop) {
#define SPS_X(name, number, text) case number: return text;
        SPS_STOP_LIST(SPS_X)
#undef SPS_X
    }
    return "unknown reason";
}

/* Returns the name of the enumerator in lower case.  The preprocessor cannot
 * convert it, so the names are repeated here; a test compares them with the
 * list. */
const char *sps_stop_name(sps_stop stop)
{
    switch (stop) {
    case SPS_STOP_RUNNING: return "running";
    case SPS_STOP_CONVERGED: return "converged";
    case SPS_STOP_MAX_ITERATIONS: return "max_iterations";
    case SPS_STOP_MAX_TIME: return "max_time";
    case SPS_STOP_STAGNATED: return "stagnated";
    case SPS_STOP_BREAKDOWN: return "breakdown";
    case SPS_STOP_INDEFINITE: return "indefinite";
    case SPS_STOP_NOT_FINITE: return "not_finite";
    case SPS_STOP_SINGULAR: return "singular";
    case SPS_STOP_INTERRUPTED: return "interrupted";
    case SPS_STOP_PRECOND_INDEFINITE: return "precond_indefinite";
    case SPS_STOP_ROUNDING: return "rounding";
    case SPS_STOP_MISSED: return "missed";
    case SPS_STOP_MASS_INDEFINITE: return "mass_indefinite";
    case SPS_STOP_LEAST_SQUARES: return "least_squares";
    case SPS_STOP_CONVERGED_LEAST_SQUARES: return "converged_least_squares";
    }
    return "unknown";
}

/* The last failure of this thread in a call that had no context. */
static _Thread_local char orphan[SPS_ERROR_SIZE];

sps_status spsi_fail(sps_context *ctx, sps_status code, const char *format,
                     ...)
{
    char text[SPS_ERROR_SIZE]; /* the arguments may point into ctx->error */
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    memcpy(ctx ? ctx->error : orphan, text, sizeof text);
    if (ctx) orphan[0] = '\0';
    return code;
}

const char *sps_context_error(const sps_context *ctx)
{
    return orphan[0] || !ctx ? orphan : ctx->error;
}

static bool known(const sps_context *ctx, const char *text)
{
    for (int i = 0; i < ctx->notes.count; i++)
        if (strcmp(ctx->notes.text[i], text) == 0) return true;
    return false;
}

/* The number of notes is limited, because those of many solves may differ in a
 * single number. */
enum { MAX_NOTES = 256 };

/* A note is dropped if there is no memory for it, and never changes the text of
 * the last failure.  Equal notes are stored once, so that many solves do not
 * accumulate them. */
void spsi_note(sps_context *ctx, const char *format, ...)
{
    char text[SPS_ERROR_SIZE], error[SPS_ERROR_SIZE];
    char *copy;
    va_list args;

    if (!ctx) return;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (ctx->notes.count > MAX_NOTES || known(ctx, text)) return;
    if (ctx->notes.count == MAX_NOTES)
        (void)snprintf(text, sizeof text, "further notes are not kept");

    memcpy(error, ctx->error, sizeof error);
    copy = spsi_strdup(ctx, text);
    if (copy && spsi_resize(ctx, ((size_t)ctx->notes.count + 1) * sizeof copy,
                            (void **)&ctx->notes.text) == SPS_OK)
        ctx->notes.text[ctx->notes.count++] = copy;
    else
        spsi_free(ctx, copy);
    memcpy(ctx->error, error, sizeof error);
}
