/* SPDX-License-Identifier: BSD-3-Clause */
/* output.c - output files, which are either complete or absent (output.h,
 * lib/io/stream/replace.h). */
#include "tools/command/job.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool fail(const char *path, int number, char *error, size_t size)
{
    snprintf(error, size, "%s: %s", path, strerror(number));
    return false;
}

static bool stopped(const void *data)
{
    (void)data;
    return signals_caught() != 0;
}

/* The stream uses a duplicate of the descriptor, so that it can be flushed and
 * closed before the file is renamed. */
bool output_open(output *out, const char *path, char *error, size_t size)
{
    int fd;

    memset(out, 0, sizeof *out);
    out->path = strcmp(path, "-") ? path : "standard output";
    if (!spsi_replace_open(&out->file, path, stopped, NULL))
        return fail(path, errno, error, size);
    if (!out->file.own) return out->f = stdout, true;
    fd = dup(out->file.fd);
    out->f = fd < 0 ? NULL : fdopen(fd, "w");
    if (out->f) return true;
    if (fd >= 0) close(fd);
    fail(path, errno, error, size);
    spsi_replace_abandon(&out->file);
    return false;
}

bool output_open_growing(output *out, const char *path, char *error,
                         size_t size)
{
    struct stat s;

    if (strcmp(path, "-") == 0 || (stat(path, &s) == 0 && !S_ISREG(s.st_mode)))
        return output_open(out, path, error, size);
    memset(out, 0, sizeof *out);
    out->path = path;
    out->f = fopen(path, "w");
    return out->f ? true : fail(path, errno, error, size);
}

bool output_close(output *out, char *error, size_t size)
{
    bool good = fflush(out->f) == 0 && !ferror(out->f);
    int number = out->failed ? out->failed : errno;

    if (out->f != stdout && fclose(out->f) != 0 && good)
        good = false, number = errno;
    if (!good) spsi_replace_abandon(&out->file);
    else if (!spsi_replace_close(&out->file)) good = false, number = errno;
    return good ? good : fail(out->path, number, error, size);
}

bool output_possible(const char *path, char *error, size_t size)
{
    char target[PATH_MAX], *slash;
    struct stat s;

    if (strcmp(path, "-") == 0) return true;
    if (!spsi_replace_target(path, target))
        return fail(path, errno, error, size);
    if (stat(target, &s) == 0) {
        if (S_ISDIR(s.st_mode)) return fail(path, EISDIR, error, size);
        if (access(target, W_OK) != 0) return fail(path, errno, error, size);
        if (!S_ISREG(s.st_mode)) return true;
    }
    slash = strrchr(target, '/');
    if (slash) slash[slash == target] = '\0';
    if (access(slash ? target : ".", W_OK | X_OK) != 0)
        return fail(path, errno, error, size);
    return true;
}
