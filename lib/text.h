/* SPDX-License-Identifier: BSD-3-Clause */
/* text.h - bytes of a text file in order: plain or gzip (known by its first
 * two bytes, never by the name), a file, a pipe or standard input. */
#ifndef SPS_TEXT_H
#define SPS_TEXT_H

#include "context.h"

typedef struct spsi_text spsi_text;

/* Opens path, "-" for standard input.  EIO. */
sps_status spsi_text_open(sps_context *ctx, const char *path,
                          spsi_text **t_p);
/* Fills buffer; *got is below room only at the end of the text.  EIO; EPARSE
 * when compressed data are cut off, broken, or expand beyond the limit.  May
 * run beside other threads that leave the context alone. */
sps_status spsi_text_fill(spsi_text *t, char *buffer, size_t room,
                          size_t *got);
void spsi_text_close(spsi_text **t_p);

/* What messages call the file. */
const char *spsi_text_name(const spsi_text *t);
/* Bytes taken from the file and its size, 0 when that is unknown. */
uint64_t spsi_text_done(const spsi_text *t);
uint64_t spsi_text_size(const spsi_text *t);
/* At most how many bytes of text the file can hold, as far as its size tells;
 * UINT64_MAX for a pipe.  Deflate expands at most 1032 times. */
uint64_t spsi_text_bound(const spsi_text *t);
/* Fails once more than bytes of text come out of a file whose size does not
 * bound it: gzip and pipes. */
void spsi_text_limit(spsi_text *t, uint64_t bytes);

#endif
