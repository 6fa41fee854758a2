/* SPDX-License-Identifier: BSD-3-Clause */
/* output.c - files that are complete or not there (job.h). */
#include "job.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool fail(const char *path, int number, char *error, size_t size)
{
    snprintf(error, size, "%s: %s", path, strerror(number));
    return false;
}

static bool special(const char *path)
{
    struct stat s;

    return stat(path, &s) == 0 && !S_ISREG(s.st_mode);
}

bool output_open(output *out, const char *path, char *error, size_t size)
{
    int fd;

    memset(out, 0, sizeof *out);
    out->path = path;
    if (strcmp(path, "-") == 0) {
        out->f = stdout;
        return true;
    }
    if (special(path)) {
        out->f = fopen(path, "w");
        return out->f ? true : fail(path, errno, error, size);
    }
    int length = snprintf(out->temporary, sizeof out->temporary,
                          "%s.tmp%ld", path, (long)getpid());
    if (length < 0 || (size_t)length >= sizeof out->temporary)
        return fail(path, ENAMETOOLONG, error, size);
    fd = open(out->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    out->f = fd < 0 ? NULL : fdopen(fd, "w");
    if (out->f) return true;
    if (fd >= 0) close(fd);
    return fail(out->temporary, errno, error, size);
}

bool output_close(output *out, char *error, size_t size)
{
    bool good = fflush(out->f) == 0 && !ferror(out->f);
    int number = errno;

    if (out->f == stdout) return good ? good : fail("standard output", number,
                                                    error, size);
    if (good && out->temporary[0] && fsync(fileno(out->f)) != 0)
        good = false, number = errno;
    if (fclose(out->f) != 0 && good) good = false, number = errno;
    if (out->temporary[0] && good && rename(out->temporary, out->path) != 0)
        good = false, number = errno;
    if (out->temporary[0] && !good) unlink(out->temporary);
    return good ? good : fail(out->path, number, error, size);
}

bool output_possible(const char *path, char *error, size_t size)
{
    char folder[4096];
    const char *slash = strrchr(path, '/');
    struct stat s;

    if (strcmp(path, "-") == 0) return true;
    if (stat(path, &s) == 0) {
        if (S_ISDIR(s.st_mode)) return fail(path, EISDIR, error, size);
        if (access(path, W_OK) != 0) return fail(path, errno, error, size);
        if (!S_ISREG(s.st_mode)) return true;
    }
    if (!slash) snprintf(folder, sizeof folder, ".");
    else snprintf(folder, sizeof folder, "%.*s",
                  slash == path ? 1 : (int)(slash - path), path);
    if (access(folder, W_OK | X_OK) != 0)
        return fail(path, errno, error, size);
    return true;
}
