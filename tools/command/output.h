/* SPDX-License-Identifier: BSD-3-Clause */
/* output.h - streams for the files that a run writes. */
#ifndef OUTPUT_H
#define OUTPUT_H

#include "io/stream/replace.h"

#include <stdio.h>

/* A stream to a file that appears under its name only when it is complete;
 * devices and pipes are written directly, "-" is standard output. */
typedef struct output {
    FILE *f;
    const char *path;            /* name of the file in error texts */
    spsi_replace file;
    int failed;                  /* errno of a failed write, set by the caller
                                    that detected it; 0 if none */
} output;

bool output_open(output *out, const char *path, char *error, size_t size);
/* Opens a table that is read while it grows: the file has its name from the
 * beginning. */
bool output_open_growing(output *out, const char *path, char *error,
                         size_t size);
/* Closes the stream; returns false, with a text in error, if anything could not
 * be written. */
bool output_close(output *out, char *error, size_t size);
/* Returns whether path can be written at all; called before the work begins. */
bool output_possible(const char *path, char *error, size_t size);

#endif
