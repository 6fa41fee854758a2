/* SPDX-License-Identifier: BSD-3-Clause */
/* sink.c - see sink.h.  A regular file is never seen incomplete under its name
 * (replace.h); a device or a pipe is written directly. */
#include <errno.h>
#include <string.h>
#include <zlib.h>

#include "io/stream/replace.h"
#include "io/stream/sink.h"
#include "core/team.h"

enum { ITEMS = 8192 };       /* items printed as one piece */

/* Level 6 saves 8 % on entries of 17 digits and takes 5 times as long. */
#define LEVEL 1

struct spsi_sink {
    sps_context *ctx;
    const char *name;        /* for messages */
    spsi_replace file;
    bool open, gzip;
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

static bool stopped(const void *ctx)
{
    return spsi_cancelled(ctx);
}

sps_status spsi_sink_open(sps_context *ctx, const char *path, spsi_sink **s_p)
{
    sps_status st;
    spsi_sink *s = NULL;

    SPS_TRY(SPS_NEW(ctx, 1, &s));
    s->ctx = ctx;
    s->gzip = ends_in_gz(path);
    s->name = strcmp(path, "-") == 0 ? "standard output" : path;
    s->open = spsi_replace_open(&s->file, path, stopped, ctx);
    if (!s->open) {
        st = fail_errno(s, s->file.doing);
        goto fail;
    }
    *s_p = s;
    return SPS_OK;

fail:
    spsi_sink_abandon(&s);
    return st;
}

static sps_status put(spsi_sink *s, const char *text, size_t length)
{
    return spsi_replace_write(&s->file, text, length)
               ? SPS_OK : fail_errno(s, "cannot write");
}

/* Packs text as one gzip member; returns 0 if zlib had no memory. */
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

/* Upper bound of a gzip member: in the worst case deflate stores the text, with
 * 5 bytes for each block of 16 KiB, and gzip adds a header and a trailer. */
static size_t packed_room(size_t length)
{
    return length + length / 1000 + 1024;
}

typedef struct piece {
    char *text, *packed;
    size_t length;           /* bytes to be written */
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

typedef struct make_job {
    const spsi_sink *s;
    spsi_sink_fn write;
    const void *data;
    int64_t begin, count;    /* first piece of this round; all items */
    size_t room;
    piece *p;
} make_job;

static void make_pieces(void *data, int64_t first, int64_t last)
{
    const make_job *j = data;

    for (int64_t i = first; i < last; i++) {
        const int64_t from = (j->begin + i) * ITEMS, to = from + ITEMS;

        make(j->s, j->write, j->data, from, to < j->count ? to : j->count,
             j->room, &j->p[i]);
    }
}

/* The work of the team is stated in nanoseconds: some 100 to print an item, 400
 * with compression. */
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

        spsi_team_run(s->ctx, n, n * ITEMS * (s->gzip ? 400 : 100),
                      make_pieces, &(make_job){ s, write, data, done, count,
                                                packed_room(bytes), p });
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
    if (s->open) spsi_replace_abandon(&s->file);
    spsi_free(s->ctx, s);
    *s_p = NULL;
}

sps_status spsi_sink_close(spsi_sink **s_p)
{
    spsi_sink *s = *s_p;
    sps_status st = SPS_OK;

    s->open = false;
    if (!spsi_replace_close(&s->file)) st = fail_errno(s, s->file.doing);
    spsi_sink_abandon(s_p);
    return st;
}
