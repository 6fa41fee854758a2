/* SPDX-License-Identifier: BSD-3-Clause */
/* zip.h - the members of a zip archive in the order of the file, stored or
 * deflated, with 64-bit sizes; by their local headers, so that pipes and
 * compressed files serve as well, and nothing is sought. */
#ifndef SPS_ZIP_H
#define SPS_ZIP_H

#include <zlib.h>

#include "io/stream/bytes.h"

typedef struct spsi_zip {
    spsi_bytes file;
    spsi_bytes member;         /* the open one, unpacked */
    char name[64];             /* of the member, cut if it is longer */
    bool deflated;
    bool sized;                /* packed, unpacked and crc are known */
    bool wide;                 /* sizes behind the member have 8 bytes */
    bool done;                 /* all of it has been unpacked */
    uint64_t left;             /* packed bytes that have not been read */
    uint64_t size, produced;   /* unpacked bytes: promised, so far */
    uint32_t promised, crc;
    z_stream z;
    bool inflating;
} spsi_zip;

bool spsi_zip_begins(const char *p, size_t length);
sps_status spsi_zip_open(const spsi_file *f, spsi_zip *z);
/* Opens the next member, z->member; *more: there is one. */
sps_status spsi_zip_next(spsi_zip *z, bool *more);
/* Ends the open member: EPARSE if it has unread bytes, or a wrong checksum. */
sps_status spsi_zip_end(spsi_zip *z);
/* Ends it without looking at its bytes. */
sps_status spsi_zip_pass(spsi_zip *z);
void spsi_zip_close(spsi_zip *z);

/* ---------------------------------------------------------------- writing */

/* Facts of a member that is written, stored. */
typedef struct spsi_zip_entry {
    const char *name;
    uint64_t size, at;         /* bytes; where its local header is */
    uint32_t crc;
} spsi_zip_entry;

/* Prints the local header of a member, of at most SPSI_ZIP_HEADER bytes; the
 * length is 50 + strlen(name). */
#define SPSI_ZIP_HEADER 128
size_t spsi_zip_print_local(char *text, const spsi_zip_entry *e);
/* Prints its record of the directory; and the end of the archive, for `count`
 * members whose records are `size` bytes from byte `at` on. */
size_t spsi_zip_print_record(char *text, const spsi_zip_entry *e);
size_t spsi_zip_print_end(char *text, int count, uint64_t size, uint64_t at);

#endif
