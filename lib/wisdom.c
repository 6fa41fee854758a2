/* SPDX-License-Identifier: BSD-3-Clause */
/* wisdom.c - remembers which kernel won a measurement.
 *
 * One line a result, nine words:
 *   op k types place device hash version kernel microseconds
 * The first seven are the key, types those of A and of the blocks: a line of
 * another width, device or version never matches.  Lines of this run stand in
 * the context; a file adds those of earlier runs.  The file is rewritten as a
 * whole, under a lock, to a temporary file that is then renamed: readers need no
 * lock and see either the old or the new text.  Wisdom is a help, not a need: a
 * file that cannot be read or written costs a note. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "planner.h"
#include "registry.h"

#define HEADER "# spsolve wisdom 1\n"

enum { LINE = 512, LARGEST = 16 << 20 };

struct sps_wisdom {
    char *text;             /* lines of this context, each ended */
};

static const char *type_name(sps_dtype type)
{
    return type == SPS_F64 ? "f64" : "f32";
}

static void make_key(const sps_context *ctx, const sps_problem *p,
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

/* The kernel that a name in a file stands for; NULL: not built in. */
static const char *known(const sps_context *ctx, const char *name)
{
    const sps_kernel *kernel;

    for (int i = 0; (kernel = spsi_registry_kernel(ctx, i)); i++)
        if (strcmp(kernel->name, name) == 0) return kernel->name;
    return NULL;
}

/* Microseconds with three decimals, read and written as whole nanoseconds:
 * the decimal point of the caller's locale has no say. */
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

/* Looks for key in the text; the last line wins.  Counts the lines that are
 * no wisdom into *bad. */
static const char *search(const sps_context *ctx, const char *text,
                          const char *key, double *seconds, int *bad)
{
    const char *found = NULL;
    const size_t length = strlen(key);
    char line[LINE], name[128], time[32];

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
            known(ctx, name)) {
            found = known(ctx, name);
            *seconds = parse_seconds(time);
        }
    }
    return found;
}

/* The whole file as text; *text_p stays NULL when there is none of use. */
static sps_status read_file(sps_context *ctx, const char *file, char **text_p)
{
    sps_status st = SPS_OK;
    FILE *in = fopen(file, "rb");
    struct stat info;
    char *text = NULL;
    size_t n;

    if (!in) {
        if (errno != ENOENT)
            spsi_note(ctx, "wisdom %s was not read: %s", file,
                      strerror(errno));
        return SPS_OK;
    }
    if (fstat(fileno(in), &info) != 0 || !S_ISREG(info.st_mode) ||
        info.st_size > LARGEST) {
        spsi_note(ctx, "wisdom %s was not read: no file of moderate size",
                  file);
        goto fail;
    }
    SPS_TRY(SPS_NEW(ctx, info.st_size + 1, &text));
    n = fread(text, 1, (size_t)info.st_size, in);
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
    fclose(in);
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
        spsi_note(ctx, "wisdom %s: skipped %d lines that are none", file, bad);
    spsi_free(ctx, text);
    return found;
}

/* ---------------------------------------------------------------- writing */

/* Opens and locks the file that has this name now: another writer may have
 * renamed a new one over the one that we waited for. */
static int open_locked(const char *file)
{
    for (;;) {
        struct stat mine, named;
        const int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0666);

        if (fd < 0) return -1;
        if (flock(fd, LOCK_EX) != 0 || fstat(fd, &mine) != 0) {
            close(fd);
            return -1;
        }
        if (stat(file, &named) == 0 && mine.st_ino == named.st_ino &&
            mine.st_dev == named.st_dev)
            return fd;
        close(fd);
    }
}

/* Writes the old text without lines of this key, then the line. */
static bool write_all(FILE *out, const char *text, const char *key,
                      const char *line)
{
    bool good = true;

    if (!text || !*text) good = fputs(HEADER, out) >= 0;
    for (const char *s = text ? text : ""; *s;) {
        const size_t n = strcspn(s, "\n");

        if (strncmp(s, key, strlen(key)) != 0)
            good = fwrite(s, 1, n, out) == n && fputc('\n', out) >= 0 && good;
        s += n + (s[n] == '\n');
    }
    good = fputs(line, out) >= 0 && good;
    good = fflush(out) == 0 && fsync(fileno(out)) == 0 && good;
    return fclose(out) == 0 && good;
}

static bool replace(const char *file, const char *text, const char *key,
                    const char *line, char *temporary, size_t size)
{
    FILE *out = NULL;
    int fd;

    if ((size_t)snprintf(temporary, size, "%s.XXXXXX", file) >= size)
        return errno = ENAMETOOLONG, false;
    fd = mkstemp(temporary);
    if (fd < 0) return false;
    (void)fchmod(fd, 0644);
    out = fdopen(fd, "wb");
    if (!out) close(fd);
    if (out && write_all(out, text, key, line) &&
        rename(temporary, file) == 0)
        return true;
    unlink(temporary);
    return false;
}

static sps_status save(sps_context *ctx, const char *file, const char *key,
                       const char *line)
{
    sps_status st = SPS_OK;
    char temporary[4096], *text = NULL;
    const int lock = open_locked(file);
    struct stat info;

    if (lock < 0) {
        spsi_note(ctx, "wisdom %s was not written: %s", file, strerror(errno));
        return SPS_OK;
    }
    SPS_TRY(read_file(ctx, file, &text));
    /* An empty file is ours to fill; one that is no wisdom is left alone. */
    if (!text && (fstat(lock, &info) != 0 || info.st_size > 0)) goto fail;
    if (!replace(file, text, key, line, temporary, sizeof temporary))
        spsi_note(ctx, "wisdom %s was not written: %s", file, strerror(errno));
fail:
    close(lock);
    spsi_free(ctx, text);
    return st;
}

static sps_status remember(sps_context *ctx, const char *line)
{
    sps_status st = SPS_OK;
    size_t old, more = strlen(line) + 1;

    if (!ctx->wisdom) SPS_TRY(SPS_NEW(ctx, 1, &ctx->wisdom));
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
