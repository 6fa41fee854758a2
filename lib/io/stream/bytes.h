/* SPDX-License-Identifier: BSD-3-Clause */
/* bytes.h - a buffered stream of bytes for the readers of binary files: the
 * file itself, or a part of it that is unpacked on the way. */
#ifndef SPS_BYTES_H
#define SPS_BYTES_H

#include "io/stream/format.h"

typedef struct spsi_bytes {
    const spsi_file *f;
    char name[160];            /* for messages: the file, or its member */
    /* Fills `buffer`; *got is below `room` only at the end. */
    sps_status (*fill)(void *source, char *buffer, size_t room, size_t *got);
    void *source;
    uint64_t offset;           /* bytes consumed */
    uint64_t bound;            /* upper limit of the bytes; UINT64_MAX if
                                  unknown */
    size_t at, end;            /* unread bytes: buffer[at] .. buffer[end - 1] */
    bool ended;                /* nothing follows the buffer */
    char *buffer;
} spsi_bytes;

/* Opens the bytes of the file. */
sps_status spsi_bytes_open(const spsi_file *f, spsi_bytes *b);
/* Opens a stream of `fill`, for which f, name, fill, source and bound are
 * set. */
sps_status spsi_bytes_start(spsi_bytes *b);
void spsi_bytes_close(spsi_bytes *b);

/* Sets *p to the next bytes: `want` of them (at most SPSI_BYTES_PEEK), or fewer
 * at the end; *got is their number, which may be larger. */
enum { SPSI_BYTES_PEEK = 1 << 15 };
sps_status spsi_bytes_peek(spsi_bytes *b, size_t want, const char **p,
                           size_t *got);
/* Consumes n bytes that were looked at. */
void spsi_bytes_consume(spsi_bytes *b, size_t n);
/* Copies the next n bytes; EPARSE if there are fewer.  `what` names what they
 * belong to. */
sps_status spsi_bytes_take(spsi_bytes *b, void *to, size_t n,
                           const char *what);
/* Copies at most n bytes; *got is their number. */
sps_status spsi_bytes_some(spsi_bytes *b, void *to, size_t n, size_t *got);
sps_status spsi_bytes_skip(spsi_bytes *b, uint64_t n, const char *what);

/* --------------------------------------------------------------- numbers */

/* A type of binary numbers: 'f', 'i', 'u' or 'b' (bool), and the bytes of
 * each. */
typedef struct spsi_binary {
    char kind;
    int size;
    bool swapped;              /* byte order differs from this machine's */
} spsi_binary;

static inline bool spsi_big_endian(void)
{
    return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
}

/* Reads `count` numbers to doubles; *rounded += integers beyond 2^53 that were
 * rounded.  EPARSE if one is not finite, unless the options allow that. */
sps_status spsi_bytes_reals(spsi_bytes *b, spsi_binary type, int64_t count,
                            double *to, int64_t *rounded);
/* Reads `count` integers.  EPARSE if the type is not integer, or a number is
 * beyond int64_t. */
sps_status spsi_bytes_wholes(spsi_bytes *b, spsi_binary type, int64_t count,
                             int64_t *to);
/* Reads `count` indices and subtracts base.  EPARSE unless all of them are then
 * in 0 .. limit-1; what: "row" or "column". */
sps_status spsi_bytes_indices(spsi_bytes *b, spsi_binary type, int64_t count,
                              int base, int64_t limit, const char *what,
                              int32_t *to);
/* Returns EPARSE if the stream cannot have `count` more numbers of the type;
 * `what` is their name. */
sps_status spsi_bytes_expect(const spsi_bytes *b, spsi_binary type,
                             int64_t count, const char *what);
/* Allocates memory for as many items of `size` bytes, not zeroed.  EPARSE as
 * above; ENOMEM, also by the limit of the options. */
sps_status spsi_bytes_room(const spsi_bytes *b, spsi_binary type,
                           int64_t count, size_t size, const char *what,
                           void **p_p);

#endif
