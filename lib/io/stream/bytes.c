/* SPDX-License-Identifier: BSD-3-Clause */
/* bytes.c - buffered bytes of a file, or of an unpacked part of it.  Arrays
 * bypass the buffer: 8-byte numbers in the byte order of this machine are read
 * directly to their destination. */
#include <stdio.h>
#include <string.h>

#include "io/stream/bytes.h"

enum { BUFFER = 2 * SPSI_BYTES_PEEK };

#define CHUNK ((size_t)1 << 20)  /* bytes between two calls of progress */

static sps_status fill_file(void *source, char *buffer, size_t room,
                            size_t *got)
{
    const spsi_file *f = source;
    sps_status st;

    SPS_TRY(spsi_text_fill(f->text, buffer, room, got));
    if (f->options.progress)
        f->options.progress(spsi_text_done(f->text), spsi_text_size(f->text),
                            f->options.progress_data);
fail:
    return st;
}

sps_status spsi_bytes_start(spsi_bytes *b)
{
    return spsi_new_raw(b->f->ctx, BUFFER, (void **)&b->buffer);
}

sps_status spsi_bytes_open(const spsi_file *f, spsi_bytes *b)
{
    *b = (spsi_bytes){.f = f, .fill = fill_file, .source = (void *)(size_t)f,
                      .bound = spsi_text_bound(f->text)};
    snprintf(b->name, sizeof b->name, "%.150s", f->name);
    return spsi_bytes_start(b);
}

void spsi_bytes_close(spsi_bytes *b)
{
    if (b->f) spsi_free(b->f->ctx, b->buffer);
    b->buffer = NULL;
}

sps_status spsi_bytes_peek(spsi_bytes *b, size_t want, const char **p,
                           size_t *got)
{
    sps_status st = SPS_OK;
    size_t more = 0;

    if (b->end - b->at < want && !b->ended) {
        memmove(b->buffer, b->buffer + b->at, b->end - b->at);
        b->end -= b->at;
        b->at = 0;
        SPS_TRY(b->fill(b->source, b->buffer + b->end, BUFFER - b->end, &more));
        b->ended = more < BUFFER - b->end;
        b->end += more;
    }
    *p = b->buffer + b->at;
    *got = b->end - b->at;
fail:
    return st;
}

void spsi_bytes_consume(spsi_bytes *b, size_t n)
{
    b->at += n;
    b->offset += n;
}

sps_status spsi_bytes_some(spsi_bytes *b, void *to, size_t n, size_t *got)
{
    size_t at = b->end - b->at < n ? b->end - b->at : n, more;
    sps_status st = SPS_OK;

    if (at > 0) memcpy(to, b->buffer + b->at, at);
    spsi_bytes_consume(b, at);
    while (at < n && !b->ended) {
        const size_t step = n - at < CHUNK ? n - at : CHUNK;

        SPS_TRY(b->fill(b->source, (char *)to + at, step, &more));
        b->ended = more < step;
        b->offset += more;
        at += more;
    }
    *got = at;
fail:
    return st;
}

sps_status spsi_bytes_take(spsi_bytes *b, void *to, size_t n, const char *what)
{
    const uint64_t from = b->offset;
    size_t got = 0;
    sps_status st;

    SPS_TRY(spsi_bytes_some(b, to, n, &got));
    SPS_REQUIRE(b->f->ctx, got == n, SPS_EPARSE, "%s: cut off after %llu "
                "bytes: %zu bytes of %s, from byte %llu on, are not all there "
                "(fetch or write the file again)", b->name,
                (unsigned long long)b->offset, n, what,
                (unsigned long long)from);
fail:
    return st;
}

sps_status spsi_bytes_skip(spsi_bytes *b, uint64_t n, const char *what)
{
    sps_status st = SPS_OK;
    const char *p;
    size_t got;

    while (n > 0) {
        SPS_TRY(spsi_bytes_peek(b, 1, &p, &got));
        SPS_REQUIRE(b->f->ctx, got > 0, SPS_EPARSE, "%s: cut off after %llu "
                    "bytes, in %s (fetch or write the file again)", b->name,
                    (unsigned long long)b->offset, what);
        if (got > n) got = (size_t)n;
        spsi_bytes_consume(b, got);
        n -= got;
    }
fail:
    return st;
}
