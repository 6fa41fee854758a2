/* SPDX-License-Identifier: BSD-3-Clause */
/* text.h - bytes of a text file in order: plain or gzip (known by its first
 * two bytes, never by the name), a file, a pipe or standard input. */
#ifndef SPS_TEXT_H
#define SPS_TEXT_H

#include "core/context.h"

typedef struct spsi_text spsi_text;

/* Opens path, "-" for standard input.  EIO. */
sps_status spsi_text_open(sps_context *ctx, const char *path,
                          spsi_text **t_p);
/* Fills buffer; *got is below room only at the end of the text.  EIO; EPARSE
 * when compressed data are truncated or invalid, or the text exceeds the limit.
 * Other threads may run meanwhile if they do not use the context. */
sps_status spsi_text_fill(spsi_text *t, char *buffer, size_t room,
                          size_t *got);
void spsi_text_close(spsi_text **t_p);

/* Name of the file for messages. */
const char *spsi_text_name(const spsi_text *t);
/* Bytes read from the file so far, compressed ones if it is gzip; size of the
 * file, 0 if unknown. */
uint64_t spsi_text_done(const spsi_text *t);
uint64_t spsi_text_size(const spsi_text *t);
/* Bytes of text delivered so far, after decompression. */
uint64_t spsi_text_produced(const spsi_text *t);
/* Upper bound of the bytes of text, from the size of the file: times 1032, the
 * largest ratio of deflate, for gzip; UINT64_MAX if the size is unknown. */
uint64_t spsi_text_bound(const spsi_text *t);
/* From now on spsi_text_fill fails if the text exceeds `bytes` bytes, for gzip
 * and files of unknown size only. */
void spsi_text_limit(spsi_text *t, uint64_t bytes);

#endif
