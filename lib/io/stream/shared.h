/* SPDX-License-Identifier: BSD-3-Clause */
/* shared.h - one file that several processes write together, each at offsets of
 * its own.
 *
 * Process 0 creates the file under a temporary name (replace.h), which the
 * others open; it gets its name when all have flushed what they wrote.  A
 * process that is killed may leave the temporary file, which the next run that
 * writes this file removes.
 *
 * All functions but spsi_shared_put are collective, and are called within a
 * collective call (core/comm.h), by whose end the others learn of a failure. */
#ifndef SPS_SHARED_H
#define SPS_SHARED_H

#include "core/context.h"
#include "io/stream/replace.h"

typedef struct spsi_shared {
    sps_context *ctx;
    const char *name;          /* for messages */
    spsi_replace file;         /* the file as process 0 writes it */
    int fd;                    /* descriptor in other processes, or -1 */
    bool open;                 /* file or fd is open */
} spsi_shared;

/* EUNFIT if the file is not a regular one, or not all processes see the folder
 * in which it lies; EIO.  After a failure, too, spsi_shared_abandon is to be
 * called. */
sps_status spsi_shared_open(sps_context *ctx, const char *path,
                            spsi_shared *s);
/* Writes at this offset of the file.  EIO. */
sps_status spsi_shared_put(spsi_shared *s, const void *text, size_t length,
                           uint64_t at);
/* For each of `count` sections of the file, of which each process has a piece:
 * lengths[i] is that of the piece of this process, and becomes that of section
 * i; starts[i] = the offset of the piece in the section. */
sps_status spsi_shared_place(spsi_shared *s, int count, double *lengths,
                             double *starts);
sps_status spsi_shared_close(spsi_shared *s);
/* Discards what was written, unless the file is complete; not collective. */
void spsi_shared_abandon(spsi_shared *s);

#endif
