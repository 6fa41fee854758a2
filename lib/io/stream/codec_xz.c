/* SPDX-License-Identifier: BSD-3-Clause */
/* codec_xz.c - xz (LZMA2) by liblzma, which is loaded when the first such file
 * is opened.  The part of its interface that is used, stable since 5.0, is
 * declared here, so that no header is needed. */
#include <string.h>

#include "core/module.h"
#include "io/stream/codec.h"

enum { LZMA_OK = 0, LZMA_STREAM_END = 1, LZMA_MEM_ERROR = 5,
       LZMA_MEMLIMIT_ERROR = 6, LZMA_FORMAT_ERROR = 7, LZMA_OPTIONS_ERROR = 8,
       LZMA_DATA_ERROR = 9, LZMA_BUF_ERROR = 10 };
enum { LZMA_RUN = 0 };

#define LIMIT (UINT64_C(1) << 30)    /* bytes of memory of the decoder */

typedef struct lzma_stream {
    const uint8_t *next_in;
    size_t avail_in;
    uint64_t total_in;
    uint8_t *next_out;
    size_t avail_out;
    uint64_t total_out;
    const void *allocator;
    void *internal;
    void *reserved_pointers[4];
    uint64_t reserved_integers[2];
    size_t reserved_sizes[2];
    int reserved_enums[2];
} lzma_stream;

typedef struct xz {
    lzma_stream s;
    int (*decoder)(lzma_stream *s, uint64_t limit, uint32_t flags);
    int (*code)(lzma_stream *s, int action);
    void (*end)(lzma_stream *s);
} xz;

static bool begins(const unsigned char *p, size_t length)
{
    return length >= 6 && memcmp(p, "\xfd" "7zXZ\0", 6) == 0;
}

static sps_status open_xz(sps_context *ctx, const char *name, void **state_p)
{
    char why[256];
    sps_status st;
    xz *x = NULL;

    SPS_TRY(SPS_NEW(ctx, 1, &x));
    const spsi_symbol wanted[] = {
        {"lzma_stream_decoder", (void **)&x->decoder},
        {"lzma_code", (void **)&x->code},
        {"lzma_end", (void **)&x->end},
        {NULL, NULL}};
    SPS_REQUIRE(ctx, spsi_module_symbols("liblzma.so.5", wanted, why,
                                         sizeof why), SPS_EABSENT,
                "%s: compressed by xz, and liblzma.so.5 cannot be loaded "
                "(%s): install it (liblzma5, xz-libs), or unpack the file by "
                "xz -d", name, why);
    *state_p = x;
    return SPS_OK;

fail:
    spsi_free(ctx, x);
    return st;
}

static sps_status start(void *state)
{
    xz *x = state;

    return x->decoder(&x->s, LIMIT, 0) == LZMA_OK ? SPS_OK : SPS_ENOMEM;
}

static const char *describe(int code)
{
    switch (code) {
    case LZMA_MEMLIMIT_ERROR: return "the decoder would need more than 1 GiB";
    case LZMA_FORMAT_ERROR: return "no xz format";
    case LZMA_OPTIONS_ERROR: return "an unknown filter or option of xz";
    case LZMA_DATA_ERROR: return "a checksum or code is wrong";
    default: return "unknown reason";
    }
}

static sps_status step(void *state, spsi_span *s, bool *ended, const char **why)
{
    lzma_stream *l = &((xz *)state)->s;
    int code;

    l->next_in = s->in;
    l->avail_in = s->in_left;
    l->next_out = s->out;
    l->avail_out = s->out_left;
    code = ((xz *)state)->code(l, LZMA_RUN);
    s->in = l->next_in;
    s->in_left = l->avail_in;
    s->out = l->next_out;
    s->out_left = l->avail_out;
    *ended = code == LZMA_STREAM_END;
    *why = describe(code);
    if (code == LZMA_MEM_ERROR) return SPS_ENOMEM;
    return code == LZMA_OK || code == LZMA_STREAM_END ||
           code == LZMA_BUF_ERROR ? SPS_OK : SPS_EPARSE;
}

static void close_xz(sps_context *ctx, void *state)
{
    xz *x = state;

    if (x) x->end(&x->s);
    spsi_free(ctx, x);
}

/* Largest ratio: a match of 273 bytes takes at least a few tenths of a bit, so
 * one byte gives some 7000 bytes at most; rounded up. */
SPS_DEFINE(spsi_codec, spsi_codec_xz) = {
    .name = "xz", .ratio = 1 << 13, .begins = begins, .open = open_xz,
    .start = start, .step = step, .close = close_xz,
};
