/* SPDX-License-Identifier: BSD-3-Clause */
/* sink.c - text out, whole or not at all.
 *
 * A regular file is written under a temporary name in the same directory,
 * flushed to the disk and renamed, so nobody ever meets half of it under its
 * name.  What is no regular file (a device, a pipe) is written as it stands. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "sink.h"

enum { ITEMS = 8192 };       /* in a piece */

/* Level 6 saves 8 % on entries of 17 digits and takes 5 times as long. */
#define LEVEL 1

struct spsi_sink {
    sps_context *ctx;
    const char *name;        /* for messages */
    char path[PATH_MAX], temporary[PATH_MAX];   /* "": none */
    int fd;
    bool own, gzip;
};

static sps_status fail_errno(spsi_sink *s, const char *doing)
{
    char text[128];
    const char *why = strerror_r(errno, text, sizeof text);

    return spsi_fail(s->ctx, SPS_EIO, "%s: %s: %s", s->name, doing, why);
}

static bool ends_in_gz(const char *path)
{
    size_t n = strlen(path);

    return n > 3 && strcmp(path + n - 3, ".gz") == 0;
}

/* A fresh file beside s->path; names differ by process, time and turn. */
static sps_status open_temporary(spsi_sink *s, mode_t mode)
{
    struct timespec now = {0, 0};

    clock_gettime(CLOCK_REALTIME, &now);
    for (int turn = 0; turn < 100; turn++) {
        int n = snprintf(s->temporary, sizeof s->temporary, "%s.%ld-%lx.tmp",
                         s->path, (long)getpid(), now.tv_nsec + turn);
        errno = ENAMETOOLONG;
        if (n >= (int)sizeof s->temporary) break;
        s->fd = open(s->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                     mode);
        if (s->fd >= 0) {
            s->own = true;
            return SPS_OK;
        }
        if (errno != EEXIST) break;
    }
    s->temporary[0] = '\0';
    return fail_errno(s, "cannot create a file beside it");
}

static sps_status open_file(spsi_sink *s, const char *path)
{
    struct stat info;
    sps_status st = SPS_OK;
    bool there = stat(path, &info) == 0;

    SPS_REQUIRE(s->ctx, *path != '\0' && strlen(path) < sizeof s->path,
                SPS_EIO, "\"%s\" is no name of a file", path);
    SPS_REQUIRE(s->ctx, !there || !S_ISDIR(info.st_mode), SPS_EIO,
                "%s: is a directory, not a file", path);
    if (there && !S_ISREG(info.st_mode)) {
        s->fd = open(path, O_WRONLY | O_CLOEXEC);
        s->own = s->fd >= 0;
        return s->own ? SPS_OK : fail_errno(s, "cannot open");
    }
    if (!there || !realpath(path, s->path))   /* past links, to the file */
        strcpy(s->path, path);
    st = open_temporary(s, there ? info.st_mode & 0777 : 0666);
fail:
    return st;
}

sps_status spsi_sink_open(sps_context *ctx, const char *path, spsi_sink **s_p)
{
    sps_status st;
    spsi_sink *s = NULL;

    SPS_TRY(SPS_NEW(ctx, 1, &s));
    s->ctx = ctx;
    s->fd = -1;
    s->gzip = ends_in_gz(path);
    s->name = path;
    if (strcmp(path, "-") == 0) {
        s->name = "standard output";
        s->fd = STDOUT_FILENO;
    } else {
        SPS_TRY(open_file(s, path));
    }
    *s_p = s;
    return SPS_OK;

fail:
    spsi_sink_abandon(&s);
    return st;
}

static sps_status put(spsi_sink *s, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t n = write(s->fd, text, length);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail_errno(s, "cannot write");
        text += n;
        length -= (size_t)n;
    }
    return SPS_OK;
}

/* text as one gzip member; 0: zlib had no memory. */
static size_t pack(const char *text, size_t length, char *packed, size_t room)
{
    z_stream z = {.next_in = (z_const Bytef *)text,
                  .avail_in = (uInt)length,
                  .next_out = (Bytef *)packed,
                  .avail_out = (uInt)room};

    if (deflateInit2(&z, LEVEL, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) !=
        Z_OK)
        return 0;
    int code = deflate(&z, Z_FINISH);
    (void)deflateEnd(&z);
    return code == Z_STREAM_END ? room - z.avail_out : 0;
}

/* deflate at its worst stores blocks: 5 bytes on each 16 KiB, and a frame. */
static size_t packed_room(size_t length)
{
    return length + length / 1000 + 1024;
}

typedef struct piece {
    char *text, *packed;
    size_t length;           /* of what is to leave */
    bool failed;
} piece;

static void make(const spsi_sink *s, spsi_sink_fn write, const void *data,
                 int64_t first, int64_t last, size_t room, piece *p)
{
    p->length = write(data, first, last, p->text);
    if (!s->gzip || p->length == 0) return;
    p->length = pack(p->text, p->length, p->packed,
                     room);
    p->failed = p->length == 0;
}

sps_status spsi_sink_write(spsi_sink *s, spsi_sink_fn write, const void *data,
                           int64_t count, size_t width)
{
    int64_t pieces = (count + ITEMS - 1) / ITEMS, room = 4 * s->ctx->threads;
    size_t bytes = (size_t)(count < ITEMS ? count : ITEMS) * width;
    piece *p = NULL;
    sps_status st;

    if (room > pieces) room = pieces;
    SPS_TRY(SPS_NEW(s->ctx, room, &p));
    for (int64_t i = 0; i < room; i++) {
        SPS_TRY(spsi_new_raw(s->ctx, bytes, (void **)&p[i].text));
        if (s->gzip)
            SPS_TRY(spsi_new_raw(s->ctx, packed_room(bytes),
                                 (void **)&p[i].packed));
    }
    for (int64_t done = 0; done < pieces; done += room) {
        int64_t n = pieces - done < room ? pieces - done : room;
#pragma omp parallel for schedule(dynamic, 1) num_threads(s->ctx->threads)    \
    if (n > 1)
        for (int64_t i = 0; i < n; i++) {
            int64_t first = (done + i) * ITEMS, last = first + ITEMS;
            make(s, write, data, first, last < count ? last : count,
                 packed_room(bytes), &p[i]);
        }
        for (int64_t i = 0; i < n; i++) {
            SPS_REQUIRE(s->ctx, !p[i].failed, SPS_ENOMEM,
                        "%s: no host memory to compress", s->name);
            SPS_TRY(put(s, s->gzip ? p[i].packed : p[i].text, p[i].length));
        }
    }
fail:
    for (int64_t i = 0; p && i < room; i++) {
        spsi_free(s->ctx, p[i].text);
        spsi_free(s->ctx, p[i].packed);
    }
    spsi_free(s->ctx, p);
    return st;
}

void spsi_sink_abandon(spsi_sink **s_p)
{
    spsi_sink *s = *s_p;

    if (!s) return;
    if (s->own) (void)close(s->fd);
    if (s->temporary[0] != '\0') (void)unlink(s->temporary);
    spsi_free(s->ctx, s);
    *s_p = NULL;
}

sps_status spsi_sink_close(spsi_sink **s_p)
{
    spsi_sink *s = *s_p;
    sps_status st = SPS_OK;

    if (s->temporary[0] != '\0' && fsync(s->fd) != 0) {
        st = fail_errno(s, "cannot flush to the disk");
        goto fail;
    }
    if (s->own) {
        s->own = false;
        if (close(s->fd) != 0) {
            st = fail_errno(s, "cannot close");
            goto fail;
        }
    }
    if (s->temporary[0] != '\0') {
        if (rename(s->temporary, s->path) != 0) {
            st = fail_errno(s, "cannot rename the finished file");
            goto fail;
        }
        s->temporary[0] = '\0';
    }
fail:
    spsi_sink_abandon(s_p);
    return st;
}
