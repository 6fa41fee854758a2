/* SPDX-License-Identifier: BSD-3-Clause */
/* text.h - bytes of a file in order, unpacked: plain, or compressed by one of
 * codec.h (known by its first bytes, never by the name); a file, a pipe or
 * standard input. */
#ifndef SPS_TEXT_H
#define SPS_TEXT_H

#include "core/context.h"

typedef struct spsi_text spsi_text;

/* Opens path, "-" for standard input.  EIO; EABSENT: the library of its
 * compression is missing. */
sps_status spsi_text_open(sps_context *ctx, const char *path,
                          spsi_text **t_p);
/* Fills buffer; *got is below room only at the end of the text.  EIO; EPARSE
 * when compressed data are truncated or invalid, or the text exceeds the limit.
 * Other threads may run meanwhile if they do not use the context. */
sps_status spsi_text_fill(spsi_text *t, char *buffer, size_t room,
                          size_t *got);
/* The first bytes of the text, SPSI_TEXT_HEAD at most, which spsi_text_fill
 * delivers all the same; to be called before it.  They stay until the text is
 * closed.  Errors: those of spsi_text_fill. */
enum { SPSI_TEXT_HEAD = 4096 };
sps_status spsi_text_peek(spsi_text *t, const char **head, size_t *length);
void spsi_text_close(spsi_text **t_p);

/* For files that several processes read in parts, each opening it for itself.
 * spsi_text_seekable: whether the text is that of a plain file that was opened
 * by name, so that it can be read from any byte.  spsi_text_line sets *start to
 * the offset of the first line that begins at byte `at` or later, or to that of
 * the end; EPARSE if there is none within 16 MiB.  After spsi_text_part the
 * text consists of bytes begin .. end-1 only, and its size is theirs. */
bool spsi_text_seekable(const spsi_text *t);
sps_status spsi_text_line(spsi_text *t, uint64_t at, uint64_t *start);
sps_status spsi_text_part(spsi_text *t, uint64_t begin, uint64_t end);

/* Name of the file for messages. */
const char *spsi_text_name(const spsi_text *t);
/* Bytes read from the file so far, before unpacking; size of the
 * file, 0 if unknown. */
uint64_t spsi_text_done(const spsi_text *t);
uint64_t spsi_text_size(const spsi_text *t);
/* Bytes of text delivered so far, after decompression. */
uint64_t spsi_text_produced(const spsi_text *t);
/* Upper bound of the bytes of text, from the size of the file, times the
 * largest ratio of its compression (for gzip 1032); UINT64_MAX if the size is
 * unknown. */
uint64_t spsi_text_bound(const spsi_text *t);
/* From now on spsi_text_fill fails if the text exceeds `bytes` bytes, for
 * compressed files and files of unknown size only. */
void spsi_text_limit(spsi_text *t, uint64_t bytes);

#endif
