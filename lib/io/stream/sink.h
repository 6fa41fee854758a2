/* SPDX-License-Identifier: BSD-3-Clause */
/* sink.h - output of text: to a file that gets its name when it is complete
 * (replace.h), or to standard output; compressed by gzip if the name ends in
 * .gz.
 *
 * Pieces of a fixed number of items are printed in parallel and written in
 * order, so that the bytes do not depend on the number of threads.  Each
 * compressed piece is a gzip member. */
#ifndef SPS_SINK_H
#define SPS_SINK_H

#include "core/context.h"

typedef struct spsi_sink spsi_sink;

/* Prints items first .. last-1 as text and returns its length. */
typedef size_t (*spsi_sink_fn)(const void *data, int64_t first, int64_t last,
                               char *text);

/* Opens the output: `path` is a file, or "-" for standard output.  EIO. */
sps_status spsi_sink_open(sps_context *ctx, const char *path,
                          spsi_sink **s_p);
/* Writes the text of `count` items of at most `width` bytes each. */
sps_status spsi_sink_write(spsi_sink *s, spsi_sink_fn write, const void *data,
                           int64_t count, size_t width);
/* Completes the file (spsi_replace_close); frees the sink, also on failure. */
sps_status spsi_sink_close(spsi_sink **s_p);
/* Discards what was written and frees the sink. */
void spsi_sink_abandon(spsi_sink **s_p);

#endif
