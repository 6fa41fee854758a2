/* SPDX-License-Identifier: BSD-3-Clause */
/* place.c - chooses the host or the GPU for -device auto.
 *
 * A process that uses a GPU spends GPU_START seconds before the first kernel
 * runs, and a small system is solved on the host before that.  The sizes are
 * read from the headers of the files, without loading the driver of a GPU. The
 * prediction is for ITERATIONS iterations of block CG on the host: each reads A
 * once, 12 bytes an entry, and makes 10 passes over blocks of 8 n k bytes, at
 * HOST_RATE. */
#include "tools/command/job.h"

#include <string.h>
#include <sys/stat.h>

#define ITERATIONS 300
#define HOST_RATE 1e10           /* bytes/s of two cores or more */
#define GPU_START 0.4            /* seconds, for an H200 and the CUDA module */

/* Reads the sizes from a regular file; returns false if they are not known
 * without reading all of it. */
static bool sizes(sps_context *ctx, const char *path, int64_t *rows,
                  int64_t *columns, int64_t *entries)
{
    struct stat s;

    return strcmp(path, "-") != 0 && stat(path, &s) == 0 &&
           S_ISREG(s.st_mode) &&
           sps_file_sizes(ctx, path, rows, columns, entries) == SPS_OK;
}

/* Returns the predicted seconds of a solve on the host, negative if unknown. */
static double predicted(const cli_values *v, sps_context *ctx, int64_t *rows,
                        int64_t *columns)
{
    int64_t entries = 0, other = 0;
    double bytes;

    *columns = v->eigs ? v->eigs + 8 : v->nrhs;
    if (!sizes(ctx, v->file.A, rows, NULL, &entries)) return -1;
    if (v->file.B && !sizes(ctx, v->file.B, NULL, columns, NULL)) return -1;
    if (v->file.mass && !sizes(ctx, v->file.mass, NULL, NULL, &other))
        return -1;
    /* The entries count twice, as if the file were symmetric and stored half of
     * them. */
    bytes = 2 * 12.0 * (double)(entries + other) +
            10 * 8.0 * (double)*rows * (double)*columns;
    return ITERATIONS * bytes / HOST_RATE;
}

sps_place place_choose(job *j)
{
    const cli_values *v = &j->opt;
    sps_context_options co;
    sps_context *ctx = NULL;
    int64_t rows = 0, columns = 0;
    double seconds = -1;

    if (v->on.place != SPS_AUTO || !v->file.A) return v->on.place;
    if (strcmp(v->settings.kernel, "auto") && strcmp(v->settings.kernel, "measure"))
        /* The kernel was named, and its name tells whether it runs on a GPU. */
        return SPS_AUTO;
    sps_context_options_default(&co);
    co.place = SPS_HOST;
    co.threads = 1;
    if (sps_context_create(&co, &ctx, NULL) == SPS_OK)
        seconds = predicted(v, ctx, &rows, &columns);
    sps_context_destroy(&ctx);
    if (seconds < 0 || seconds > GPU_START) return SPS_AUTO;
    snprintf(j->place_note, sizeof j->place_note, "device auto: the host, "
             "since %lld row%s and %lld column%s are predicted to take at most "
             "%.3f s there, and a GPU takes about %.1f s to start",
             (long long)rows, rows == 1 ? "" : "s", (long long)columns,
             columns == 1 ? "" : "s", seconds + 5e-4, GPU_START);
    return SPS_HOST;
}
