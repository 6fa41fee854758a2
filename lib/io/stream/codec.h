/* SPDX-License-Identifier: BSD-3-Clause */
/* codec.h - the compressions that text.c unpacks, each a file and a line of the
 * table in codec.c.  A compressed file consists of one or several streams
 * (members of gzip, frames of zstd). */
#ifndef SPS_CODEC_H
#define SPS_CODEC_H

#include "core/context.h"

/* What a step consumes and produces; both ends move. */
typedef struct spsi_span {
    const unsigned char *in;
    unsigned char *out;
    size_t in_left, out_left;
} spsi_span;

typedef struct spsi_codec {
    const char *name;
    uint64_t ratio;          /* bytes of text from a byte of the file, at most
                                (an upper bound for checks of sizes) */
    /* Whether a stream begins with these bytes; length may be short. */
    bool (*begins)(const unsigned char *bytes, size_t length);
    /* *state_p for streams of the file `name`.  EABSENT: a library is missing;
     * ENOMEM. */
    sps_status (*open)(sps_context *ctx, const char *name, void **state_p);
    /* Prepares for the first stream, and for the next one.  ENOMEM. */
    sps_status (*start)(void *state);
    /* Unpacks until `in` is used up or `out` is full; *ended: the stream is
     * complete.  EPARSE, *why says what is wrong; ENOMEM.  No text of a failure
     * is set: the caller knows the place. */
    sps_status (*step)(void *state, spsi_span *s, bool *ended,
                       const char **why);
    void (*close)(sps_context *ctx, void *state);
} spsi_codec;

enum { SPSI_CODEC_MAGIC = 6 };   /* bytes that `begins` may want */

/* codec.c: the codec of a file with these first bytes, NULL if plain. */
const spsi_codec *spsi_codec_of(const unsigned char *bytes, size_t length);

/* codec.c: zalloc and zfree by the context's allocator; opaque is the
 * context. */
void *spsi_zlib_new(void *ctx, unsigned items, unsigned size);
void spsi_zlib_free(void *ctx, void *p);

extern const spsi_codec spsi_codec_gzip, spsi_codec_xz, spsi_codec_zstd;

#endif
