/* SPDX-License-Identifier: BSD-3-Clause */
/* text.c - the byte source of the readers.
 *
 *   file -> read(2) -> buffer of the caller                (plain)
 *   file -> read(2) -> input -> codec.h -> same buffer     (compressed)
 *
 * read(2) and not mmap: a file that is truncated while it is read ends early
 * instead of killing the process (SIGBUS), and pipes need no code of their
 * own. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/stream/codec.h"
#include "io/stream/text.h"

enum { INPUT = 1 << 18,      /* bytes of the file held */
       LONGEST = 1 << 24 };  /* bytes in which the end of a line is sought */

struct spsi_text {
    sps_context *ctx;
    const char *name;
    int fd;
    bool ended;              /* read(2) returned 0 */
    bool own;                /* fd was opened here */
    bool waits;              /* not a regular file, so read(2) may block */
    /* Bytes of the file (0 if unknown), read so far; of text, delivered so far
     * and at most. */
    uint64_t size, done, produced, limit;
    uint64_t left;           /* bytes until the end of the part that is read */
    const spsi_codec *codec; /* NULL: plain */
    void *state;             /* state of the decoder */
    bool member;             /* inside a compressed stream */
    unsigned char *input;    /* buffer for compressed bytes; of a plain file,
                                for its first bytes only */
    const unsigned char *in; /* unread bytes of input */
    size_t in_left;
    /* head: bytes that were examined before the caller asked for them;
     * head_at of its head_length bytes have been delivered. */
    char *head;
    size_t head_at, head_length;
};

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

    if (room > t->left) room = (size_t)t->left;
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
    t->left -= (uint64_t)n;
    *got = (size_t)n;
    return SPS_OK;
}

/* Moves the unread bytes of the input buffer to its front and reads until it
 * has at least `want` bytes or the file ends. */
static sps_status refill(spsi_text *t, size_t want)
{
    sps_status st = SPS_OK;
    size_t got = 0;

    if (t->in_left >= want || t->ended) return SPS_OK;
    if (t->in_left > 0) memmove(t->input, t->in, t->in_left);
    t->in = t->input;
    while (t->in_left < want && !t->ended) {
        SPS_TRY(take(t, t->input + t->in_left, INPUT - t->in_left, &got));
        t->in_left += got;
    }
fail:
    return st;
}

static sps_status start(spsi_text *t)
{
    sps_status st = t->codec->start(t->state);

    SPS_REQUIRE(t->ctx, st == SPS_OK, st, "%s: no host memory to unpack %s",
                t->name, t->codec->name);
    t->member = true;
fail:
    return st;
}

/* Reads the first bytes; if they are the magic number of a compression format,
 * starts its decoder. */
static sps_status sniff(spsi_text *t)
{
    sps_status st;

    SPS_TRY(spsi_new_raw(t->ctx, INPUT, (void **)&t->input));
    SPS_TRY(refill(t, SPSI_CODEC_MAGIC));
    t->codec = spsi_codec_of(t->in, t->in_left);
    if (t->codec) {
        SPS_TRY(t->codec->open(t->ctx, t->name, &t->state));
        SPS_TRY(start(t));
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
    t->limit = t->left = UINT64_MAX;
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

/* At the end of a compressed stream: begins the next one, or checks that only
 * zeros follow. */
static sps_status next_member(spsi_text *t)
{
    sps_status st;

    SPS_TRY(refill(t, SPSI_CODEC_MAGIC));
    t->member = t->codec->begins(t->in, t->in_left);
    if (t->member) return start(t);
    while (t->in_left > 0) {
        for (; t->in_left > 0; t->in_left--, t->in++)
            SPS_REQUIRE(t->ctx, *t->in == 0, SPS_EPARSE,
                        "%s: bytes that are not %s follow the compressed "
                        "data (compressed twice, or two files joined?)",
                        t->name, t->codec->name);
        SPS_TRY(refill(t, 1));
    }
fail:
    return st;
}

/* One step of the codec; *length: bytes written to out.  A codec may still
 * have text when the file has ended. */
static sps_status unpack(spsi_text *t, char *out, size_t room, size_t *length)
{
    spsi_span s = {.out = (unsigned char *)out, .out_left = room};
    const char *why = NULL;
    bool ended = false;
    sps_status st;

    SPS_TRY(refill(t, 1));
    s.in = t->in;
    s.in_left = t->in_left;
    st = t->codec->step(t->state, &s, &ended, &why);
    t->in = s.in;
    t->in_left = s.in_left;
    *length = room - s.out_left;
    SPS_REQUIRE(t->ctx, st != SPS_ENOMEM, SPS_ENOMEM,
                "%s: no host memory to unpack %s", t->name, t->codec->name);
    SPS_REQUIRE(t->ctx, st == SPS_OK, SPS_EPARSE,
                "%s: the compressed data are broken near byte %llu: %s "
                "(fetch the file again)", t->name,
                (unsigned long long)(t->done - t->in_left),
                why ? why : "unknown reason");
    SPS_REQUIRE(t->ctx, ended || *length > 0 || t->in_left > 0 || !t->ended,
                SPS_EPARSE, "%s: the compressed data are cut off after %llu "
                "bytes (fetch the file again)", t->name,
                (unsigned long long)t->done);
    if (ended) SPS_TRY(next_member(t));
fail:
    return st;
}

static sps_status fill_packed(spsi_text *t, char *buffer, size_t room,
                              size_t *got)
{
    sps_status st = SPS_OK;
    size_t at = 0, more = 0;

    while (at < room && t->member) {
        SPS_TRY(unpack(t, buffer + at, room - at, &more));
        at += more;
    }
    *got = at;
fail:
    return st;
}

static sps_status fill_plain(spsi_text *t, char *buffer, size_t room,
                             size_t *got)
{
    sps_status st = SPS_OK;
    size_t at = t->in_left < room ? t->in_left : room, more = 0;

    if (at > 0) memcpy(buffer, t->in, at);   /* bytes that sniff has read */
    t->in += at;
    t->in_left -= at;
    while (at < room && !t->ended) {
        SPS_TRY(take(t, buffer + at, room - at, &more));
        at += more;
    }
    *got = at;
fail:
    return st;
}

static sps_status fill(spsi_text *t, char *buffer, size_t room, size_t *got)
{
    return (t->codec ? fill_packed : fill_plain)(t, buffer, room, got);
}

sps_status spsi_text_peek(spsi_text *t, const char **head, size_t *length)
{
    sps_status st = SPS_OK;

    if (!t->head) {
        SPS_TRY(SPS_NEW(t->ctx, SPSI_TEXT_HEAD, &t->head));
        SPS_TRY(fill(t, t->head, SPSI_TEXT_HEAD, &t->head_length));
    }
    *head = t->head;
    *length = t->head_length;
fail:
    return st;
}

sps_status spsi_text_fill(spsi_text *t, char *buffer, size_t room, size_t *got)
{
    size_t first = t->head_length - t->head_at, more = 0;
    sps_status st;

    if (first > room) first = room;
    if (first > 0) memcpy(buffer, t->head + t->head_at, first);
    t->head_at += first;
    SPS_TRY(fill(t, buffer + first, room - first, &more));
    *got = first + more;
    t->produced += *got;
    SPS_REQUIRE(t->ctx, t->produced <= t->limit || (t->size && !t->codec),
                SPS_EPARSE, "%s: the text is longer than %llu bytes, more "
                "than its header can need", t->name,
                (unsigned long long)t->limit);
fail:
    return st;
}

bool spsi_text_seekable(const spsi_text *t)
{
    return t->own && !t->waits && !t->codec && t->size > 0;
}

static sps_status unreadable(const spsi_text *t, uint64_t at)
{
    char text[128];

    return spsi_fail(t->ctx, SPS_EIO, "%s: %s at byte %llu", t->name,
                     strerror_r(errno, text, sizeof text),
                     (unsigned long long)at);
}

sps_status spsi_text_line(spsi_text *t, uint64_t at, uint64_t *start)
{
    const uint64_t stop = at + LONGEST;
    char piece[4096];
    sps_status st = SPS_OK;

    *start = at < t->size ? at : t->size;
    if (at == 0 || at >= t->size) return SPS_OK;
    for (at--; at < stop;) {               /* this byte may be a newline */
        const ssize_t n = pread(t->fd, piece, sizeof piece, (off_t)at);
        const char *newline = n > 0 ? memchr(piece, '\n', (size_t)n) : NULL;

        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return unreadable(t, at);
        *start = newline ? at + (uint64_t)(newline - piece) + 1 : t->size;
        if (*start > t->size) *start = t->size;     /* the file has grown */
        if (newline || n == 0) return SPS_OK;
        at += (uint64_t)n;
    }
    SPS_REQUIRE(t->ctx, false, SPS_EPARSE, "%s: a line of more than %d bytes",
                t->name, LONGEST);
fail:
    return st;
}

sps_status spsi_text_part(spsi_text *t, uint64_t begin, uint64_t end)
{
    if (lseek(t->fd, (off_t)begin, SEEK_SET) < 0) return unreadable(t, begin);
    t->in_left = t->head_at = t->head_length = 0;
    t->left = t->size = end - begin;
    t->done = t->produced = 0;
    t->ended = false;
    return SPS_OK;
}

void spsi_text_close(spsi_text **t_p)
{
    spsi_text *t = *t_p;

    if (!t) return;
    if (t->codec) t->codec->close(t->ctx, t->state);
    if (t->own) (void)close(t->fd);
    spsi_free(t->ctx, t->head);
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
    if (!t->codec) return t->size;
    return t->size < UINT64_MAX / t->codec->ratio ? t->size * t->codec->ratio
                                                  : UINT64_MAX;
}

void spsi_text_limit(spsi_text *t, uint64_t bytes)
{
    t->limit = bytes;
}
