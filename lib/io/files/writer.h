/* SPDX-License-Identifier: BSD-3-Clause */
/* writer.h - kinds of files that can be written.  A kind is a table spsi_writer
 * and its line in lib/io/write.c.  It is chosen by the end of the file's name,
 * before a ".gz"; all other names are written as Matrix Market files. */
#ifndef SPS_WRITER_H
#define SPS_WRITER_H

#include "block/block.h"
#include "io/stream/shared.h"
#include "io/stream/sink.h"

typedef struct spsi_writer {
    const char *suffix;
    /* Writes a checked csr in host memory; `symmetric` means that one triangle
     * may be sufficient.  NULL if the kind has no matrices. */
    sps_status (*csr)(sps_context *ctx, spsi_sink *s, const sps_csr *A,
                      bool symmetric);
    /* interleaved: rows 2 i and 2 i + 1 are the real and imaginary parts of row
     * i. */
    sps_status (*block)(spsi_sink *s, const sps_block *X, bool interleaved);
    /* Writes the own rows, from `first` on, of a block of `whole` rows that is
     * distributed over processes; collective.  NULL if the kind cannot. */
    sps_status (*rows)(spsi_shared *s, const sps_block *X, int64_t first,
                       int64_t whole);
} spsi_writer;

extern const spsi_writer spsi_writer_mtx, spsi_writer_npy, spsi_writer_npz,
    spsi_writer_petsc;

#endif
