/* SPDX-License-Identifier: BSD-3-Clause */
/* codec_zstd.c - Zstandard (RFC 8878) by libzstd, which is loaded when the
 * first such file is opened.  The part of its streaming interface that is used,
 * stable since 1.0, is declared here, so that no header is needed. */
#include <string.h>

#include "core/module.h"
#include "io/stream/codec.h"

typedef struct in_buffer {       /* ZSTD_inBuffer */
    const void *bytes;
    size_t size, at;
} in_buffer;

typedef struct out_buffer {      /* ZSTD_outBuffer */
    void *bytes;
    size_t size, at;
} out_buffer;

typedef struct zstd {
    void *stream;                /* ZSTD_DStream */
    void *(*create)(void);
    size_t (*init)(void *stream);
    size_t (*decompress)(void *stream, out_buffer *out, in_buffer *in);
    unsigned (*is_error)(size_t code);
    const char *(*error_name)(size_t code);
    size_t (*destroy)(void *stream);
} zstd;

/* Returns whether a frame begins here, possibly a skippable one, which has no
 * text. */
static bool begins(const unsigned char *p, size_t length)
{
    if (length < 4) return false;
    return memcmp(p, "\x28\xb5\x2f\xfd", 4) == 0 ||
           ((p[0] & 0xf0) == 0x50 && memcmp(p + 1, "\x2a\x4d\x18", 3) == 0);
}

static sps_status open_zstd(sps_context *ctx, const char *name, void **state_p)
{
    char why[256];
    zstd *z = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, 1, &z));
    const spsi_symbol wanted[] = {
        {"ZSTD_createDStream", (void **)&z->create},
        {"ZSTD_initDStream", (void **)&z->init},
        {"ZSTD_decompressStream", (void **)&z->decompress},
        {"ZSTD_isError", (void **)&z->is_error},
        {"ZSTD_getErrorName", (void **)&z->error_name},
        {"ZSTD_freeDStream", (void **)&z->destroy},
        {NULL, NULL}};
    SPS_REQUIRE(ctx, spsi_module_symbols("libzstd.so.1", wanted, why,
                                         sizeof why), SPS_EABSENT,
                "%s: compressed by zstd, and libzstd.so.1 cannot be loaded "
                "(%s): install it (libzstd1, libzstd), or unpack the file by "
                "zstd -d", name, why);
    *state_p = z;
    return SPS_OK;

fail:
    spsi_free(ctx, z);
    return st;
}

static sps_status start(void *state)
{
    zstd *z = state;

    if (!z->stream) z->stream = z->create();
    if (!z->stream) return SPS_ENOMEM;
    return z->is_error(z->init(z->stream)) ? SPS_ENOMEM : SPS_OK;
}

static sps_status step(void *state, spsi_span *s, bool *ended, const char **why)
{
    zstd *z = state;
    in_buffer in = {s->in, s->in_left, 0};
    out_buffer out = {s->out, s->out_left, 0};
    size_t left = z->decompress(z->stream, &out, &in);

    s->in += in.at;
    s->in_left -= in.at;
    s->out += out.at;
    s->out_left -= out.at;
    if (z->is_error(left)) {
        *why = z->error_name(left);
        return SPS_EPARSE;
    }
    *ended = left == 0;
    return SPS_OK;
}

static void close_zstd(sps_context *ctx, void *state)
{
    zstd *z = state;

    if (z && z->stream) (void)z->destroy(z->stream);
    spsi_free(ctx, z);
}

/* Largest ratio: a block of one repeated byte gives 128 KiB from 4 bytes. */
SPS_DEFINE(spsi_codec, spsi_codec_zstd) = {
    .name = "zstd", .ratio = 1 << 15, .begins = begins, .open = open_zstd,
    .start = start, .step = step, .close = close_zstd,
};
