/* SPDX-License-Identifier: BSD-3-Clause */
/* codec_gzip.c - gzip (RFC 1952) by zlib. */
#include <zlib.h>

#include "io/stream/codec.h"

#define LARGEST_RATIO 1032   /* of unpacked to packed bytes (zlib) */

typedef struct gzip {
    z_stream z;
    bool open;
} gzip;

void *spsi_zlib_new(void *ctx, unsigned items, unsigned size)
{
    void *p = NULL;

    /* No overflow: size_t has 64 bits, each factor 32. */
    if (spsi_new_raw(ctx, (size_t)items * size, &p) != SPS_OK) return NULL;
    return p;
}

void spsi_zlib_free(void *ctx, void *p)
{
    spsi_free(ctx, p);
}

static bool begins(const unsigned char *p, size_t length)
{
    return length >= 2 && p[0] == 0x1f && p[1] == 0x8b;
}

static sps_status open_gzip(sps_context *ctx, const char *name, void **state_p)
{
    gzip *g = NULL;
    sps_status st;

    (void)name;
    SPS_TRY(SPS_NEW(ctx, 1, &g));
    g->z.zalloc = spsi_zlib_new;
    g->z.zfree = spsi_zlib_free;
    g->z.opaque = ctx;
    *state_p = g;
fail:
    return st;
}

static sps_status start(void *state)
{
    gzip *g = state;

    if (!g->open) {
        if (inflateInit2(&g->z, 15 + 16) != Z_OK) return SPS_ENOMEM;
        g->open = true;
        return SPS_OK;
    }
    (void)inflateReset(&g->z);
    return SPS_OK;
}

static unsigned least(size_t n)
{
    return n < INT32_MAX ? (unsigned)n : INT32_MAX;
}

static sps_status step(void *state, spsi_span *s, bool *ended, const char **why)
{
    z_stream *z = &((gzip *)state)->z;
    const unsigned in = least(s->in_left), out = least(s->out_left);
    int code;

    z->next_in = (z_const Bytef *)s->in;
    z->avail_in = in;
    z->next_out = s->out;
    z->avail_out = out;
    code = inflate(z, Z_NO_FLUSH);
    s->in = z->next_in;
    s->in_left -= in - z->avail_in;
    s->out = z->next_out;
    s->out_left -= out - z->avail_out;
    *ended = code == Z_STREAM_END;
    *why = z->msg;
    if (code == Z_MEM_ERROR) return SPS_ENOMEM;
    return code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR
               ? SPS_OK : SPS_EPARSE;
}

static void close_gzip(sps_context *ctx, void *state)
{
    gzip *g = state;

    if (g && g->open) (void)inflateEnd(&g->z);
    spsi_free(ctx, g);
}

SPS_DEFINE(spsi_codec, spsi_codec_gzip) = {
    .name = "gzip", .ratio = LARGEST_RATIO, .begins = begins,
    .open = open_gzip, .start = start, .step = step, .close = close_gzip,
};
