/* SPDX-License-Identifier: BSD-3-Clause */
/* zip.h - the members of a zip archive in the order of the file, stored or
 * deflated, with 64-bit sizes.  They are found by their local headers, without
 * seeking, so that pipes and compressed files can be read as well. */
#ifndef SPS_ZIP_H
#define SPS_ZIP_H

#include <zlib.h>

#include "io/stream/bytes.h"

typedef struct spsi_zip {
    spsi_bytes file;
    spsi_bytes member;         /* unpacked bytes of the open member */
    char name[64];             /* name of the member, cut if it is too long */
    bool deflated;
    bool sized;                /* local header has sizes and checksum */
    bool wide;                 /* sizes after the member have 8 bytes */
    bool done;                 /* the whole member has been unpacked */
    uint64_t left;             /* packed bytes that have not been read */
    uint64_t size;             /* unpacked bytes that the header promises */
    uint64_t produced;         /* bytes unpacked so far */
    uint32_t promised, crc;    /* checksums: by the header; of bytes so far */
    z_stream z;
    bool inflating;            /* z is open */
} spsi_zip;

bool spsi_zip_begins(const char *p, size_t length);
sps_status spsi_zip_open(const spsi_file *f, spsi_zip *z);
/* Opens the next member as z->member; *more: whether there is one. */
sps_status spsi_zip_next(spsi_zip *z, bool *more);
/* Ends the open member: EPARSE if it has unread bytes, or a wrong checksum. */
sps_status spsi_zip_end(spsi_zip *z);
/* Ends the open member without checking its bytes. */
sps_status spsi_zip_pass(spsi_zip *z);
void spsi_zip_close(spsi_zip *z);

/* ---------------------------------------------------------------- writing */

/* What is known of a member that is written, stored. */
typedef struct spsi_zip_entry {
    const char *name;
    uint64_t size, at;         /* bytes; file offset of its local header */
    uint32_t crc;
} spsi_zip_entry;

/* Prints the local header of a member, at most SPSI_ZIP_HEADER bytes; its
 * length is 50 + strlen(name). */
#define SPSI_ZIP_HEADER 128
size_t spsi_zip_print_local(char *text, const spsi_zip_entry *e);
/* Prints its record in the directory; and, the other function, the end of the
 * archive, for `count` members whose records have `size` bytes and begin at
 * byte `at`. */
size_t spsi_zip_print_record(char *text, const spsi_zip_entry *e);
size_t spsi_zip_print_end(char *text, int count, uint64_t size, uint64_t at);

#endif
