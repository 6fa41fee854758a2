/* SPDX-License-Identifier: BSD-3-Clause */
/* codec.c - the table of compressions. */
#include "io/stream/codec.h"

static const spsi_codec *const codecs[] = {
    &spsi_codec_gzip,
    &spsi_codec_xz,
    &spsi_codec_zstd,
};

const spsi_codec *spsi_codec_of(const unsigned char *bytes, size_t length)
{
    for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++)
        if (codecs[i]->begins(bytes, length)) return codecs[i];
    return NULL;
}

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
