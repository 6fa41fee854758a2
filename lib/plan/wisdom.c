/* SPDX-License-Identifier: BSD-3-Clause */
/* wisdom.c - stores which kernel won a measurement.
 *
 * One line per result has nine words: op k types place device hash version
 * kernel microseconds.  The first seven are the key, where `types` are those of
 * A and of the blocks: a line with another width, device or version never
 * matches.  Results of this run are stored in the context; a file adds those of
 * earlier runs.  A writer replaces the file atomically (replace.h), so that a
 * reader sees either the old or the new text; of two that write at the same
 * moment one result may be lost, and is measured again.  Wisdom affects only
 * the choice of kernels: a file that cannot be read or written causes a
 * note. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plan/measure.h"
#include "io/stream/replace.h"

#define HEADER "# spsolve wisdom 1\n"

enum { LINE = 512, LARGEST = 16 << 20 };

struct sps_wisdom {
    char *text;             /* lines of this context, each terminated */
};

static const char *type_name(sps_dtype type)
{
    return type == SPS_F64 ? "f64" : "f32";
}

static void make_key(sps_context *ctx, const sps_problem *p,
                     char key[LINE])
{
    const uint64_t hash = p->f->hash ? p->f->hash
                                     : spsi_features_hash(ctx, p->A);
    char device[sizeof ctx->device];
    size_t n = strlen(ctx->device);

    memcpy(device, ctx->device, n + 1);
    for (size_t i = 0; i < n; i++)
        if (device[i] <= ' ') device[i] = '_';
    snprintf(key, LINE, "%s %d %s:%s %s %s %016" PRIx64 " %s ",
             p->op == SPS_OP_SPMM ? "spmm" : "sddmm", p->k,
             type_name(p->A->dtype), type_name(p->block), ctx->backend->name,
             n > 0 ? device : "-", hash, sps_version());
}

/* Microseconds with three decimals, parsed as integer nanoseconds, so that the
 * decimal point of the locale does not matter. */
static double parse_seconds(const char *text)
{
    char *end;
    const long long whole = strtoll(text, &end, 10);
    long long part = 0;

    if (*end == '.' && strspn(end + 1, "0123456789") == 3 && !end[4])
        part = strtoll(end + 1, NULL, 10);
    else if (*end)
        return 0.0;
    return whole < 0 || end == text ? 0.0
           : 1e-6 * (double)whole + 1e-9 * (double)part;
}

static bool well_formed(const char *line)
{
    char op[16], types[8], kernel[128], time[32];
    int width = 0, end = 0;
    const int words = sscanf(line, "%15s %d %7s %*s %*s %*16[0-9a-f] %*s "
                             "%127s %31s %n", op, &width, types, kernel,
                             time, &end);

    return words == 5 && width > 0 && parse_seconds(time) > 0.0 &&
           line[end] == '\0';
}

/* Searches the text for key; the last match counts.  *bad: adds the number of
 * malformed lines. */
static const char *search(const sps_context *ctx, const char *text,
                          const char *key, double *seconds, int *bad)
{
    const char *found = NULL;
    const size_t length = strlen(key);
    char line[LINE], name[128], time[32];
    const sps_kernel *kernel;

    for (const char *s = text, *end; *s; s = end) {
        const size_t n = strcspn(s, "\n");

        end = s + n + (s[n] == '\n');
        if (n == 0 || s[0] == '#') continue;
        snprintf(line, sizeof line, "%.*s", (int)(n < LINE ? n : LINE), s);
        if (n >= LINE || !well_formed(line)) {
            ++*bad;
            continue;
        }
        if (strncmp(line, key, length) != 0) continue;
        if (sscanf(line + length, "%127s %31s", name, time) == 2 &&
            (kernel = spsi_kernel_named(ctx, name))) {
            found = kernel->name;
            *seconds = parse_seconds(time);
        }
    }
    return found;
}

/* Reads the whole file; *text_p stays NULL if there is no valid one.  A pipe is
 * opened without waiting for its writer, and rejected. */
static sps_status read_file(sps_context *ctx, const char *file, char **text_p)
{
    sps_status st = SPS_OK;
    const int fd = open(file, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat info;
    char *text = NULL;
    ssize_t n = 0;

    if (fd < 0) {
        if (errno != ENOENT)
            spsi_note(ctx, "wisdom %s was not read: %s", file,
                      strerror(errno));
        return SPS_OK;
    }
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) ||
        info.st_size > LARGEST) {
        spsi_note(ctx, "wisdom %s was not read: not a regular file, or too "
                  "large",
                  file);
        goto fail;
    }
    SPS_TRY(SPS_NEW(ctx, info.st_size + 1, &text));
    for (ssize_t got = 1; got > 0 && n < info.st_size; n += got > 0 ? got : 0)
        got = read(fd, text + n, (size_t)(info.st_size - n));
    text[n] = '\0';
    if (n > 0 && strncmp(text, HEADER, strlen(HEADER)) != 0)
        spsi_note(ctx, "wisdom %s was not read: its first line is not \"%.*s\"",
                  file, (int)strlen(HEADER) - 1, HEADER);
    else {
        *text_p = text;
        text = NULL;
    }
fail:
    spsi_free(ctx, text);
    close(fd);
    return st;
}

const char *spsi_wisdom_find(sps_context *ctx, const char *file,
                             const sps_problem *p, double *seconds)
{
    const char *found = NULL;
    char key[LINE], *text = NULL;
    int bad = 0;

    make_key(ctx, p, key);
    if (ctx->wisdom && ctx->wisdom->text)
        found = search(ctx, ctx->wisdom->text, key, seconds, &bad);
    if (found || !file) return found;
    if (read_file(ctx, file, &text) == SPS_OK && text)
        found = search(ctx, text, key, seconds, &bad);
    if (bad > 0)
        spsi_note(ctx, "wisdom %s: skipped %d malformed lines", file, bad);
    spsi_free(ctx, text);
    return found;
}

/* ---------------------------------------------------------------- writing */

/* Writes the old text without lines of this key, then the new line. */
static bool write_all(const spsi_replace *r, const char *text,
                      const char *key, const char *line)
{
    bool good = true;

    if (!text || !*text) good = spsi_replace_write(r, HEADER, strlen(HEADER));
    for (const char *s = text ? text : ""; *s && good;) {
        const size_t n = strcspn(s, "\n");

        if (strncmp(s, key, strlen(key)) != 0)
            good = spsi_replace_write(r, s, n) &&
                   spsi_replace_write(r, "\n", 1);
        s += n + (s[n] == '\n');
    }
    return good && spsi_replace_write(r, line, strlen(line));
}

static bool replace(const char *file, const char *text, const char *key,
                    const char *line)
{
    spsi_replace r;

    if (!spsi_replace_open(&r, file, NULL, NULL)) return false;
    if (write_all(&r, text, key, line)) return spsi_replace_close(&r);
    spsi_replace_abandon(&r);
    return false;
}

static sps_status save(sps_context *ctx, const char *file, const char *key,
                       const char *line)
{
    sps_status st = SPS_OK;
    char *text = NULL;
    struct stat info;

    SPS_TRY(read_file(ctx, file, &text));
    /* An empty file may be filled; one with other contents is not touched. */
    if (!text && stat(file, &info) == 0 &&
        (info.st_size > 0 || !S_ISREG(info.st_mode)))
        goto fail;
    if ((access(file, W_OK) != 0 && errno != ENOENT) ||
        !replace(file, text, key, line))
        spsi_note(ctx, "wisdom %s was not written: %s", file, strerror(errno));
fail:
    spsi_free(ctx, text);
    return st;
}

static sps_status remember(sps_context *ctx, const char *line)
{
    sps_status st = SPS_OK;
    size_t old, more = strlen(line) + 1;

    if (!ctx->wisdom) SPS_TRY(SPS_NEW(ctx, 1, &ctx->wisdom));
    ctx->wisdom_clear = spsi_wisdom_clear;
    old = ctx->wisdom->text ? strlen(ctx->wisdom->text) : 0;
    SPS_TRY(spsi_resize(ctx, old + more, (void **)&ctx->wisdom->text));
    memcpy(ctx->wisdom->text + old, line, more);
fail:
    return st;
}

sps_status spsi_wisdom_add(sps_context *ctx, const char *file,
                           const sps_problem *p, const char *kernel,
                           double seconds)
{
    sps_status st;
    const long long ns = seconds > 1e-9 ? (long long)(seconds * 1e9) : 1;
    char key[LINE], line[2 * LINE];

    make_key(ctx, p, key);
    snprintf(line, sizeof line, "%s%s %lld.%03lld\n", key, kernel, ns / 1000,
             ns % 1000);
    SPS_TRY(remember(ctx, line));
    if (file) SPS_TRY(save(ctx, file, key, line));
fail:
    return st;
}

void spsi_wisdom_clear(sps_context *ctx)
{
    if (!ctx->wisdom) return;
    spsi_free(ctx, ctx->wisdom->text);
    spsi_free(ctx, ctx->wisdom);
    ctx->wisdom = NULL;
}
