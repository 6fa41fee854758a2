/* SPDX-License-Identifier: BSD-3-Clause */
/* codec.h - the compressions that text.c unpacks, each a file and a line of the
 * table in codec.c.  A compressed file consists of one or several streams
 * (members of gzip, frames of zstd). */
#ifndef SPS_CODEC_H
#define SPS_CODEC_H

#include "core/context.h"

/* The input and output of a step, which advances both pointers. */
typedef struct spsi_span {
    const unsigned char *in;
    unsigned char *out;
    size_t in_left, out_left;
} spsi_span;

typedef struct spsi_codec {
    const char *name;
    uint64_t ratio;          /* largest number of bytes of text for a byte of
                                the file, to check sizes */
    /* Returns whether a stream begins with these bytes; length may be short. */
    bool (*begins)(const unsigned char *bytes, size_t length);
    /* Creates *state_p for streams of the file `name`.  EABSENT if a library is
     * missing; ENOMEM. */
    sps_status (*open)(sps_context *ctx, const char *name, void **state_p);
    /* Prepares for the first stream, and for the next one.  ENOMEM. */
    sps_status (*start)(void *state);
    /* Unpacks until `in` is used up or `out` is full; *ended: the stream is
     * complete.  EPARSE, where *why says what is wrong; ENOMEM.  The caller,
     * which knows the position, sets the text of a failure. */
    sps_status (*step)(void *state, spsi_span *s, bool *ended,
                       const char **why);
    void (*close)(sps_context *ctx, void *state);
} spsi_codec;

enum { SPSI_CODEC_MAGIC = 6 };   /* bytes that `begins` may need */

/* codec.c: returns the codec of a file with these first bytes, or NULL if it is
 * not compressed. */
const spsi_codec *spsi_codec_of(const unsigned char *bytes, size_t length);

/* codec.c: zalloc and zfree by the context's allocator; opaque is the
 * context. */
void *spsi_zlib_new(void *ctx, unsigned items, unsigned size);
void spsi_zlib_free(void *ctx, void *p);

extern const spsi_codec spsi_codec_gzip, spsi_codec_xz, spsi_codec_zstd;

#endif
