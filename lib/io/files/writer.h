/* SPDX-License-Identifier: BSD-3-Clause */
/* writer.h - kinds of files that are written.  A kind is a table spsi_writer
 * and its line in lib/io/write.c; the name of the file chooses it by its end, before
 * a ".gz", and Matrix Market serves all names that no kind claims. */
#ifndef SPS_WRITER_H
#define SPS_WRITER_H

#include "block/block.h"
#include "io/stream/sink.h"

typedef struct spsi_writer {
    const char *suffix;
    /* Writes a checked host csr; symmetric: it may be told by one triangle.
     * NULL: not of this kind. */
    sps_status (*csr)(sps_context *ctx, spsi_sink *s, const sps_csr *A,
                      bool symmetric);
    /* interleaved: rows 2 i and 2 i + 1 are the parts of a complex row. */
    sps_status (*block)(spsi_sink *s, const sps_block *X, bool interleaved);
} spsi_writer;

extern const spsi_writer spsi_writer_mtx, spsi_writer_npy, spsi_writer_npz,
    spsi_writer_petsc;

#endif
