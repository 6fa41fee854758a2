/* SPDX-License-Identifier: BSD-3-Clause */
/* replace.h - a file that appears under its name only when it is complete, and
 * then replaces an older file of this name.  It needs libc alone: the library
 * and the programs of tools/ each compile replace.c for themselves.
 *
 * Symbolic links are followed: the file that they lead to is replaced.  A
 * device or a pipe is opened and written directly, "-" is standard output.
 *
 * The text is written to a file without a name (O_TMPFILE), which is linked at
 * the end, so that a run that is killed leaves nothing.  Where the file system
 * does not support such files, and between link and rename, the file has the
 * name TARGET.N.tmp, N = 0, 1, ..., and its writer holds a lock (flock) on it.
 * Such files without a lock are left from killed runs; the next run that writes
 * TARGET removes them. */
#ifndef SPS_REPLACE_H
#define SPS_REPLACE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#pragma GCC visibility push(hidden)

typedef struct spsi_replace {
    int fd;                      /* file descriptor to write to */
    bool own;                    /* fd was opened here */
    char target[PATH_MAX];       /* links followed; "" if no file is replaced */
    char temporary[PATH_MAX];    /* name of the unfinished file, or "" */
    const char *doing;           /* after a failure: what failed, for errno */
} spsi_replace;

/* Opens r->fd for the file `path`.  stopped (or NULL) is called while a pipe
 * has no reader; the wait ends with EINTR when its result becomes true.  False:
 * errno and r->doing say why, and spsi_replace_abandon need not be called. */
bool spsi_replace_open(spsi_replace *r, const char *path,
                       bool (*stopped)(const void *data), const void *data);
/* As spsi_replace_open, for a file that other processes open, too: it has its
 * temporary name r->temporary from the beginning.  *plain becomes false for
 * standard output, devices and pipes, which are not opened. */
bool spsi_replace_open_named(spsi_replace *r, const char *path, bool *plain);
/* Writes all of text, also if signals interrupt write(2).  False: errno. */
bool spsi_replace_write(const spsi_replace *r, const char *text, size_t length);
/* Flushes the file to the disk, gives it its name and closes it.  False: errno
 * and r->doing say why. */
bool spsi_replace_close(spsi_replace *r);
/* Closes and removes the unfinished file; the target is unchanged. */
void spsi_replace_abandon(spsi_replace *r);
/* target = path with its symbolic links followed, whether or not that file
 * exists.  False: errno. */
bool spsi_replace_target(const char *path, char target[PATH_MAX]);

#pragma GCC visibility pop
#endif
