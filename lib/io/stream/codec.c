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
