/* SPDX-License-Identifier: BSD-3-Clause */
/* replace.c - a file that gets its name when it is complete (replace.h). */
#include "io/stream/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { NAMES = 100, LINKS = 40 };

static bool failed(spsi_replace *r, const char *doing)
{
    r->doing = doing;
    return false;
}

static bool too_long(void)
{
    errno = ENAMETOOLONG;
    return false;
}

/* Returns the length of the folder in path, with its slash, or 0 if there is
 * none. */
static int folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? (int)(slash - path) + 1 : 0;
}

bool spsi_replace_target(const char *path, char target[PATH_MAX])
{
    char link[PATH_MAX], next[PATH_MAX];

    if (snprintf(target, PATH_MAX, "%s", path) >= PATH_MAX) return too_long();
    for (int i = 0; i < LINKS; i++) {
        ssize_t n = readlink(target, link, sizeof link - 1);
        if (n < 0) return true;          /* no link, or nothing there */
        link[n] = '\0';
        n = snprintf(next, sizeof next, "%.*s%s",
                     *link == '/' ? 0 : folder_length(target), target, link);
        if (n >= (ssize_t)sizeof next) return too_long();
        memcpy(target, next, (size_t)n + 1);
    }
    errno = ELOOP;
    return false;
}

/* ---------------------------------------------------------------- the name */

/* Removes the temporary file of this name if no process holds a lock on it, and
 * returns whether it did.  errno stays EEXIST. */
static bool removed_dead(const char *name)
{
    int fd = open(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool dead = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
                unlink(name) == 0;

    if (fd >= 0) close(fd);
    errno = EEXIST;
    return dead;
}

/* Tries the names TARGET.0.tmp, TARGET.1.tmp, ...  An existing file is removed
 * if no process holds its lock; otherwise the next name is tried.  `take`
 * creates the file r->temporary, or sets errno. */
static bool take_name(spsi_replace *r, mode_t mode,
                      bool (*take)(spsi_replace *r, mode_t mode))
{
    errno = EEXIST;
    for (int i = 0; i < NAMES && errno == EEXIST; i++) {
        int n = snprintf(r->temporary, sizeof r->temporary, "%s.%d.tmp",
                         r->target, i);
        if (n >= (int)sizeof r->temporary) {
            errno = ENAMETOOLONG;
            break;
        }
        do
            if (take(r, mode)) return true;
        while (errno == EEXIST && removed_dead(r->temporary));
    }
    r->temporary[0] = '\0';
    return false;
}

/* Creates and locks r->temporary.  Between open and flock another process may
 * have found it without lock and removed it: then st_nlink is 0. */
static bool create_named(spsi_replace *r, mode_t mode)
{
    struct stat s;

    r->fd = open(r->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (r->fd < 0) return false;
    (void)flock(r->fd, LOCK_EX);
    if (fstat(r->fd, &s) == 0 && s.st_nlink > 0) return true;
    close(r->fd);
    r->fd = -1;
    errno = EEXIST;
    return false;
}

static bool link_to(const spsi_replace *r, const char *name)
{
    char self[64];

    snprintf(self, sizeof self, "/proc/self/fd/%d", r->fd);
    return linkat(AT_FDCWD, self, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0;
}

static bool link_named(spsi_replace *r, mode_t mode)
{
    (void)mode;
    return link_to(r, r->temporary);
}

/* ----------------------------------------------------------------- opening */

/* Opens a file without a name in the folder of the target; returns false if the
 * system or file system does not support it. */
static bool open_nameless(spsi_replace *r, mode_t mode)
{
#if defined(O_TMPFILE) && !defined(SPS_REPLACE_NAMED)
    char folder[PATH_MAX];
    int n = folder_length(r->target);

    if (access("/proc/self/fd", X_OK) != 0) return false;
    snprintf(folder, sizeof folder, "%.*s", n ? n : 1, n ? r->target : ".");
    r->fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
    if (r->fd < 0) return false;
    (void)flock(r->fd, LOCK_EX);
    return true;
#else
    (void)r;
    (void)mode;
    return false;
#endif
}

/* Opens a pipe by attempts every 20 ms until it has a reader: a blocking
 * open(2) would not return at a signal whose handler is installed with
 * SA_RESTART. */
static bool open_pipe(spsi_replace *r, const char *path,
                      bool (*stopped)(const void *), const void *data)
{
    const bool before = stopped && stopped(data);
    const struct timespec piece = {0, 20000000};

    for (;;) {
        r->fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
        if (r->fd >= 0) break;
        if (errno != ENXIO) return false;
        if (stopped && !before && stopped(data)) return errno = EINTR, false;
        (void)nanosleep(&piece, NULL);
    }
    return fcntl(r->fd, F_SETFL, 0) == 0;
}

static bool open_special(spsi_replace *r, const char *path, mode_t mode,
                         bool (*stopped)(const void *), const void *data)
{
    r->target[0] = '\0';
    r->own = true;
    if (S_ISFIFO(mode))
        return open_pipe(r, path, stopped, data) || failed(r, "cannot open");
    r->fd = open(path, O_WRONLY | O_CLOEXEC);
    return r->fd >= 0 || failed(r, "cannot open");
}

/* Opens a new file in the folder of the target, with the permissions of the
 * target, `mode`, if that exists (`there`).  named: the file has a temporary
 * name from the beginning, even if the system supports files without one. */
static bool open_regular(spsi_replace *r, bool there, mode_t mode, bool named)
{
    mode = there ? mode & 0777 : 0666;
    r->own = true;
    if ((named || !open_nameless(r, mode)) && !take_name(r, mode, create_named))
        return failed(r, "cannot create a file beside it");
    if (there) (void)fchmod(r->fd, mode);   /* independent of the umask */
    return true;
}

bool spsi_replace_open(spsi_replace *r, const char *path,
                       bool (*stopped)(const void *data), const void *data)
{
    struct stat s = { .st_mode = 0 };
    bool there;

    memset(r, 0, sizeof *r);
    r->fd = -1;
    if (strcmp(path, "-") == 0) return r->fd = STDOUT_FILENO, true;
    if (!*path) return errno = ENOENT, failed(r, "cannot open");
    if (!spsi_replace_target(path, r->target))
        return failed(r, "cannot open");
    there = stat(r->target, &s) == 0;
    if (there && S_ISDIR(s.st_mode))
        return errno = EISDIR, failed(r, "cannot write");
    if (there && !S_ISREG(s.st_mode))
        return open_special(r, path, s.st_mode, stopped, data);
    return open_regular(r, there, s.st_mode, false);
}

bool spsi_replace_open_named(spsi_replace *r, const char *path, bool *plain)
{
    struct stat s = { .st_mode = 0 };
    bool there;

    memset(r, 0, sizeof *r);
    r->fd = -1;
    *plain = strcmp(path, "-") != 0;
    if (!*plain) return false;
    if (!*path) return errno = ENOENT, failed(r, "cannot open");
    if (!spsi_replace_target(path, r->target)) return failed(r, "cannot open");
    there = stat(r->target, &s) == 0;
    *plain = !there || S_ISREG(s.st_mode);
    return *plain && open_regular(r, there, s.st_mode, true);
}

bool spsi_replace_write(const spsi_replace *r, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t n = write(r->fd, text, length);

        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return false;
        text += n;
        length -= (size_t)n;
    }
    return true;
}

/* ----------------------------------------------------------------- closing */

static bool put_in_place(spsi_replace *r)
{
    if (fsync(r->fd) != 0) return failed(r, "cannot flush to the disk");
    if (!r->temporary[0]) {
        if (link_to(r, r->target)) return true;
        if (errno != EEXIST || !take_name(r, 0, link_named))
            return failed(r, "cannot name the finished file");
    }
    if (rename(r->temporary, r->target) != 0)
        return failed(r, "cannot rename the finished file");
    r->temporary[0] = '\0';
    return true;
}

bool spsi_replace_close(spsi_replace *r)
{
    /* The lock is held until the file has its name. */
    if (r->target[0] && !put_in_place(r)) {
        int number = errno;
        spsi_replace_abandon(r);
        return errno = number, false;
    }
    if (!r->own) return true;
    r->own = false;
    return close(r->fd) == 0 || failed(r, "cannot close");
}

void spsi_replace_abandon(spsi_replace *r)
{
    if (r->temporary[0]) (void)unlink(r->temporary);
    r->temporary[0] = '\0';
    if (r->own) (void)close(r->fd);
    r->own = false;
}
