/* SPDX-License-Identifier: BSD-3-Clause */
/* text.c - the byte source of the readers.
 *
 *   file -> read(2) -> buffer of the caller               (plain)
 *   file -> read(2) -> input -> inflate -> same buffer    (gzip)
 *
 * read(2) and not mmap: a file that is truncated while it is read ends early
 * instead of killing the process (SIGBUS), and pipes need no code of their
 * own. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "io/text.h"

enum { INPUT = 1 << 18 };    /* bytes of compressed data held */

#define LARGEST_RATIO 1032   /* of deflate: zlib's technical notes */

struct spsi_text {
    sps_context *ctx;
    const char *name;
    int fd;
    bool gzip, ended;        /* ended: read(2) returned 0 */
    bool member;             /* inside a gzip member */
    bool inflating;          /* z is initialised */
    bool own;                /* fd was opened here */
    bool waits;              /* no regular file: read(2) may block */
    uint64_t size, done, produced, limit;
    z_stream z;
    unsigned char *input;    /* holds the first bytes of plain files too */
};

static void *zlib_new(void *ctx, unsigned items, unsigned size)
{
    void *p = NULL;

    /* No overflow: size_t has 64 bits, each factor 32. */
    if (spsi_new_raw(ctx, (size_t)items * size, &p) != SPS_OK) return NULL;
    return p;
}

static void zlib_free(void *ctx, void *p)
{
    spsi_free(ctx, p);
}

/* Waits until read(2) does not block; false: sps_cancel was called.  The wait
 * is a poll of 0.1 s at a time, because a blocking read(2) does not return when
 * another thread calls sps_cancel, nor at signals with SA_RESTART. */
static bool ready(const spsi_text *t)
{
    struct pollfd p = {.fd = t->fd, .events = POLLIN};

    for (;;) {
        if (spsi_cancelled(t->ctx)) return false;
        if (!t->waits || poll(&p, 1, 100) > 0) return true;
    }
}

/* read(2), repeated when a signal interrupts it. */
static sps_status take(spsi_text *t, void *buffer, size_t room, size_t *got)
{
    ssize_t n;

    do {
        if (!ready(t))
            return spsi_fail(t->ctx, SPS_EIO, "%s: interrupted after %llu "
                             "bytes", t->name, (unsigned long long)t->done);
        n = read(t->fd, buffer, room < SSIZE_MAX ? room : SSIZE_MAX);
    } while (n < 0 && (errno == EINTR || errno == EAGAIN));
    if (n < 0) {
        char text[128];
        return spsi_fail(t->ctx, SPS_EIO, "%s: %s after %llu bytes", t->name,
                         strerror_r(errno, text, sizeof text),
                         (unsigned long long)t->done);
    }
    t->ended = n == 0;
    t->done += (uint64_t)n;
    *got = (size_t)n;
    return SPS_OK;
}

/* Moves the unread bytes of the input buffer to its front and reads until it
 * has at least `want` bytes or the file ends. */
static sps_status refill(spsi_text *t, unsigned want)
{
    sps_status st = SPS_OK;
    size_t got = 0;

    if (t->z.avail_in >= want || t->ended) return SPS_OK;
    if (t->z.avail_in > 0)
        memmove(t->input, t->z.next_in, t->z.avail_in);
    t->z.next_in = t->input;
    while (t->z.avail_in < want && !t->ended) {
        SPS_TRY(take(t, t->input + t->z.avail_in, INPUT - t->z.avail_in, &got));
        t->z.avail_in += (unsigned)got;
    }
fail:
    return st;
}

static bool magic(const spsi_text *t)
{
    return t->z.avail_in >= 2 && t->z.next_in[0] == 0x1f &&
           t->z.next_in[1] == 0x8b;
}

/* Reads the first bytes; if they are those of gzip, initialises zlib. */
static sps_status sniff(spsi_text *t)
{
    sps_status st;

    SPS_TRY(spsi_new_raw(t->ctx, INPUT, (void **)&t->input));
    SPS_TRY(refill(t, 2));
    t->gzip = magic(t);
    if (t->gzip) {
        t->z.zalloc = zlib_new;
        t->z.zfree = zlib_free;
        t->z.opaque = t->ctx;
        SPS_REQUIRE(t->ctx, inflateInit2(&t->z, 15 + 16) == Z_OK, SPS_ENOMEM,
                    "%s: no host memory to unpack gzip", t->name);
        t->inflating = t->member = true;
    }
fail:
    return st;
}

sps_status spsi_text_open(sps_context *ctx, const char *path, spsi_text **t_p)
{
    sps_status st;
    spsi_text *t = NULL;
    bool standard = strcmp(path, "-") == 0;
    char text[128];
    struct stat info;
    off_t at;

    SPS_TRY(SPS_NEW(ctx, 1, &t));
    t->ctx = ctx;
    t->name = standard ? "standard input" : path;
    t->limit = UINT64_MAX;
    /* O_NONBLOCK: a pipe without a writer is opened without waiting. */
    t->fd = standard ? STDIN_FILENO
                     : open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    SPS_REQUIRE(ctx, t->fd >= 0, SPS_EIO, "%s: %s", path,
                strerror_r(errno, text, sizeof text));
    t->own = !standard;
    SPS_REQUIRE(ctx, fstat(t->fd, &info) == 0, SPS_EIO, "%s: %s", t->name,
                strerror_r(errno, text, sizeof text));
    SPS_REQUIRE(ctx, !S_ISDIR(info.st_mode), SPS_EIO,
                "%s: is a directory, not a file", t->name);
    t->waits = !S_ISREG(info.st_mode);
    if (S_ISREG(info.st_mode)) {       /* standard input: from its offset on */
        at = lseek(t->fd, 0, SEEK_CUR);
        if (at >= 0 && at < info.st_size)
            t->size = (uint64_t)(info.st_size - at);
        (void)posix_fadvise(t->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    }
    SPS_TRY(sniff(t));
    *t_p = t;
    return SPS_OK;

fail:
    spsi_text_close(&t);
    return st;
}

/* At the end of a gzip member: begins the next one, or checks that only zeros
 * follow. */
static sps_status next_member(spsi_text *t)
{
    sps_status st;

    SPS_TRY(refill(t, 2));
    t->member = magic(t);
    if (t->member) {
        (void)inflateReset(&t->z);
        return SPS_OK;
    }
    while (t->z.avail_in > 0) {
        for (; t->z.avail_in > 0; t->z.avail_in--, t->z.next_in++)
            SPS_REQUIRE(t->ctx, *t->z.next_in == 0, SPS_EPARSE,
                        "%s: bytes that are not gzip follow the compressed "
                        "data (compressed twice, or two files joined?)",
                        t->name);
        SPS_TRY(refill(t, 1));
    }
fail:
    return st;
}

static sps_status inflate_some(spsi_text *t)
{
    sps_status st;
    int code;

    SPS_TRY(refill(t, 1));
    SPS_REQUIRE(t->ctx, t->z.avail_in > 0, SPS_EPARSE,
                "%s: the compressed data are cut off after %llu bytes "
                "(fetch the file again)", t->name,
                (unsigned long long)t->done);
    code = inflate(&t->z, Z_NO_FLUSH);
    SPS_REQUIRE(t->ctx, code != Z_MEM_ERROR, SPS_ENOMEM,
                "%s: no host memory to unpack gzip", t->name);
    SPS_REQUIRE(t->ctx, code == Z_OK || code == Z_STREAM_END ||
                code == Z_BUF_ERROR, SPS_EPARSE,
                "%s: the compressed data are broken near byte %llu: %s "
                "(fetch the file again)", t->name,
                (unsigned long long)(t->done - t->z.avail_in),
                t->z.msg ? t->z.msg : "unknown reason");
    if (code == Z_STREAM_END) SPS_TRY(next_member(t));
fail:
    return st;
}

static sps_status fill_gzip(spsi_text *t, char *buffer, size_t room,
                            size_t *got)
{
    sps_status st = SPS_OK;
    size_t at = 0;

    while (at < room && t->member) {
        unsigned step = room - at < INT32_MAX ? (unsigned)(room - at)
                                              : INT32_MAX;
        t->z.next_out = (unsigned char *)buffer + at;
        t->z.avail_out = step;
        SPS_TRY(inflate_some(t));
        at += step - t->z.avail_out;
    }
    *got = at;
fail:
    return st;
}

static sps_status fill_plain(spsi_text *t, char *buffer, size_t room,
                             size_t *got)
{
    sps_status st = SPS_OK;
    size_t at = t->z.avail_in < room ? t->z.avail_in : room, more = 0;

    memcpy(buffer, t->z.next_in, at);   /* bytes that sniff has read */
    t->z.next_in += at;
    t->z.avail_in -= (unsigned)at;
    while (at < room && !t->ended) {
        SPS_TRY(take(t, buffer + at, room - at, &more));
        at += more;
    }
    *got = at;
fail:
    return st;
}

sps_status spsi_text_fill(spsi_text *t, char *buffer, size_t room, size_t *got)
{
    sps_status st;

    SPS_TRY((t->gzip ? fill_gzip : fill_plain)(t, buffer, room, got));
    t->produced += *got;
    SPS_REQUIRE(t->ctx, t->produced <= t->limit || (t->size && !t->gzip),
                SPS_EPARSE, "%s: the text is longer than %llu bytes, more "
                "than its header can need", t->name,
                (unsigned long long)t->limit);
fail:
    return st;
}

void spsi_text_close(spsi_text **t_p)
{
    spsi_text *t = *t_p;

    if (!t) return;
    if (t->inflating) (void)inflateEnd(&t->z);
    if (t->own) (void)close(t->fd);
    spsi_free(t->ctx, t->input);
    spsi_free(t->ctx, t);
    *t_p = NULL;
}

const char *spsi_text_name(const spsi_text *t)
{
    return t->name;
}

uint64_t spsi_text_done(const spsi_text *t)
{
    return t->done;
}

uint64_t spsi_text_size(const spsi_text *t)
{
    return t->size;
}

uint64_t spsi_text_produced(const spsi_text *t)
{
    return t->produced;
}

uint64_t spsi_text_bound(const spsi_text *t)
{
    if (t->size == 0) return UINT64_MAX;
    if (!t->gzip) return t->size;
    return t->size < UINT64_MAX / LARGEST_RATIO ? t->size * LARGEST_RATIO
                                                : UINT64_MAX;
}

void spsi_text_limit(spsi_text *t, uint64_t bytes)
{
    t->limit = bytes;
}
