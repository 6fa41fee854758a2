/* SPDX-License-Identifier: BSD-3-Clause */
/* sink.h - where written text goes: a temporary file beside the final one,
 * renamed at the end, or standard output; gzip when the name ends in .gz.
 *
 * Text is made in pieces of a fixed number of items, several at once, and
 * leaves in order: the bytes do not depend on the number of threads.  A
 * compressed piece is a gzip member of its own. */
#ifndef SPS_SINK_H
#define SPS_SINK_H

#include "context.h"

typedef struct spsi_sink spsi_sink;

/* Writes items first .. last-1 as text, returns its length. */
typedef size_t (*spsi_sink_fn)(const void *data, int64_t first, int64_t last,
                               char *text);

/* path: a file, "-" for standard output.  EIO. */
sps_status spsi_sink_open(sps_context *ctx, const char *path,
                          spsi_sink **s_p);
/* Text of count items of at most width bytes each. */
sps_status spsi_sink_write(spsi_sink *s, spsi_sink_fn write, const void *data,
                           int64_t count, size_t width);
/* Puts the file in its place; frees the sink whatever happens. */
sps_status spsi_sink_close(spsi_sink **s_p);
/* Throws away what was written. */
void spsi_sink_abandon(spsi_sink **s_p);

#endif
