/* SPDX-License-Identifier: BSD-3-Clause */
/* archive.h - files of NumPy made byte by byte for tests: arrays (.npy) and zip
 * archives of them (.npz), independent of what the library writes. */
#ifndef SPS_TEST_ARCHIVE_H
#define SPS_TEST_ARCHIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/support/files.h"

typedef struct archive {
    unsigned char *bytes;
    size_t size, room;
    int members;
    unsigned char record[4096];      /* the directory */
    size_t record_size;
} archive;

static inline void archive_add(archive *a, const void *bytes, size_t size)
{
    if (a->size + size > a->room) {
        a->room = 2 * (a->size + size);
        a->bytes = realloc(a->bytes, a->room);
        ck_assert_ptr_nonnull(a->bytes);
    }
    if (size > 0) memcpy(a->bytes + a->size, bytes, size);
    a->size += size;
}

static inline void archive_free(archive *a)
{
    free(a->bytes);
    memset(a, 0, sizeof *a);
}

static inline size_t archive_number(unsigned char *p, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++) p[i] = (unsigned char)(v >> 8 * i);
    return (size_t)bytes;
}

/* Appends an array; shape as in Python, "(3, 4)"; version 1 or 2. */
static inline void archive_npy(archive *a, int version, const char *descr,
                               bool fortran, const char *shape,
                               const void *data, size_t size)
{
    unsigned char head[12] = "\x93NUMPY";
    char text[256];
    int n = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': %s, "
                     "'shape': %s, }\n", descr, fortran ? "True" : "False",
                     shape);

    head[6] = (unsigned char)version;
    archive_number(head + 8, (uint64_t)n, version == 1 ? 2 : 4);
    archive_add(a, head, version == 1 ? 10 : 12);
    archive_add(a, text, (size_t)n);
    archive_add(a, data, size);
}

/* How a member is packed. */
enum { ARCHIVE_STORED = 0, ARCHIVE_DEFLATED = 1, ARCHIVE_BEHIND = 2,
       ARCHIVE_WIDE = 4 };           /* BEHIND: sizes follow the data */

/* data by raw deflate; free with free(). */
static inline unsigned char *archive_deflate(const void *data, size_t *size)
{
    size_t room = *size + 1024;
    unsigned char *packed = malloc(room);
    z_stream z = {.next_in = (unsigned char *)(size_t)data,
                  .avail_in = (unsigned)*size, .next_out = packed,
                  .avail_out = (unsigned)room};

    ck_assert_int_eq(deflateInit2(&z, 6, Z_DEFLATED, -15, 8, 0), Z_OK);
    ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    *size = room - z.avail_out;
    deflateEnd(&z);
    return packed;
}

/* Appends a member of the archive. */
static inline void archive_member(archive *a, const char *name, int how,
                                  const archive *content)
{
    const uint32_t crc = (uint32_t)crc32(0, content->bytes,
                                         (unsigned)content->size);
    size_t size = content->size, length = strlen(name), at = a->size;
    unsigned char *packed = how & ARCHIVE_DEFLATED
        ? archive_deflate(content->bytes, &size) : content->bytes;
    const bool behind = how & ARCHIVE_BEHIND, wide = how & ARCHIVE_WIDE;
    unsigned char h[64] = "PK\3\4\x2d", *r = a->record + a->record_size;

    archive_number(h + 6, behind ? 8 : 0, 2);
    archive_number(h + 8, how & ARCHIVE_DEFLATED ? 8 : 0, 2);
    archive_number(h + 14, behind ? 0 : crc, 4);
    archive_number(h + 18, wide ? 0xffffffff : behind ? 0 : size, 4);
    archive_number(h + 22, wide ? 0xffffffff : behind ? 0 : content->size, 4);
    archive_number(h + 26, length, 2);
    archive_number(h + 28, wide ? 20 : 0, 2);
    archive_add(a, h, 30);
    archive_add(a, name, length);
    if (wide) {
        archive_number(h, 1, 2);
        archive_number(h + 2, 16, 2);
        archive_number(h + 4, behind ? 0 : content->size, 8);
        archive_number(h + 12, behind ? 0 : size, 8);
        archive_add(a, h, 20);
    }
    archive_add(a, packed, size);
    if (behind) {
        memcpy(h, "PK\7\x8", 4);
        archive_number(h + 4, crc, 4);
        archive_number(h + 8, size, wide ? 8 : 4);
        archive_number(h + (wide ? 16 : 12), content->size, wide ? 8 : 4);
        archive_add(a, h, wide ? 24 : 16);
    }
    memset(r, 0, 46);
    memcpy(r, "PK\1\2\x2d\0\x2d", 7);
    archive_number(r + 8, behind ? 8 : 0, 2);
    archive_number(r + 10, how & ARCHIVE_DEFLATED ? 8 : 0, 2);
    archive_number(r + 16, crc, 4);
    archive_number(r + 20, size, 4);
    archive_number(r + 24, content->size, 4);
    archive_number(r + 28, length, 2);
    archive_number(r + 42, at, 4);
    memcpy(r + 46, name, length);
    a->record_size += 46 + length;
    a->members++;
    if (how & ARCHIVE_DEFLATED) free(packed);
}

/* A member that is an array. */
static inline void archive_array(archive *a, const char *name, int how,
                                 const char *descr, bool fortran,
                                 const char *shape, const void *data,
                                 size_t size)
{
    archive content = {0};

    archive_npy(&content, 1, descr, fortran, shape, data, size);
    archive_member(a, name, how, &content);
    archive_free(&content);
}

/* The directory, and the end. */
static inline void archive_end(archive *a)
{
    const size_t at = a->size;
    unsigned char h[22] = "PK\5\6";

    archive_add(a, a->record, a->record_size);
    archive_number(h + 8, (uint64_t)a->members, 2);
    archive_number(h + 10, (uint64_t)a->members, 2);
    archive_number(h + 12, a->record_size, 4);
    archive_number(h + 16, at, 4);
    archive_add(a, h, 22);
}

#endif
