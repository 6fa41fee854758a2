/* SPDX-License-Identifier: BSD-3-Clause */
/* matlab.h - MATLAB files of level 5 made byte by byte for tests ("MAT-File
 * Format", The MathWorks): elements of type, size and data, of either byte
 * order, packed or not. */
#ifndef SPS_TEST_MATLAB_H
#define SPS_TEST_MATLAB_H

#include "tests/problems/archive.h"

enum { MAT5_INT8 = 1, MAT5_UINT8 = 2, MAT5_INT16 = 3, MAT5_INT32 = 5,
       MAT5_UINT32 = 6, MAT5_DOUBLE = 9, MAT5_MATRIX = 14, MAT5_COMPRESSED };
enum { MAT5_STRUCT = 2, MAT5_CHAR = 4, MAT5_SPARSE = 5, MAT5_FULL = 6,
       MAT5_FULL_INT16 = 10, MAT5_IS_COMPLEX = 0x800 };

/* Appends `count` numbers of `bytes` bytes, the last byte first if `big`. */
static inline void mat5_numbers(archive *a, bool big, const void *data,
                                int count, int bytes)
{
    const unsigned char *p = data;

    for (int i = 0; i < count; i++)
        for (int j = 0; j < bytes; j++)
            archive_add(a, p + i * bytes + (big ? bytes - 1 - j : j), 1);
}

static inline void mat5_pad(archive *a, size_t from)
{
    while ((a->size - from) % 8) archive_add(a, "", 1);
}

/* Appends an element; one of at most 4 bytes in the short form. */
static inline void mat5_element(archive *a, bool big, uint32_t type,
                                const void *data, int count, int bytes)
{
    const uint32_t size = (uint32_t)(count * bytes);
    const uint32_t tag[2] = {size && size <= 4 ? size << 16 | type : type,
                             size};
    const size_t from = a->size;

    mat5_numbers(a, big, tag, size && size <= 4 ? 1 : 2, 4);
    mat5_numbers(a, big, data, count, bytes);
    mat5_pad(a, from);
}

/* Appends flags, sizes and name. */
static inline void mat5_head(archive *a, bool big, uint32_t flags, int rows,
                             int columns, const char *name)
{
    const uint32_t f[2] = {flags, 0};
    const int32_t size[2] = {rows, columns};

    mat5_element(a, big, MAT5_UINT32, f, 2, 4);
    mat5_element(a, big, MAT5_INT32, size, 2, 4);
    mat5_element(a, big, MAT5_INT8, name, (int)strlen(name), 1);
}

/* Appends the contents as an element of type matrix, and frees them. */
static inline void mat5_matrix(archive *a, bool big, archive *content)
{
    mat5_element(a, big, MAT5_MATRIX, content->bytes, (int)content->size, 1);
    archive_free(content);
}

/* Replaces what follows the header by a compressed element. */
static inline void mat5_compress(archive *a, bool big)
{
    size_t size = compressBound((uLong)(a->size - 128));
    unsigned char *packed = malloc(size);
    uint32_t tag[2] = {MAT5_COMPRESSED, 0};

    ck_assert_int_eq(compress(packed, &size, a->bytes + 128, a->size - 128),
                     Z_OK);
    tag[1] = (uint32_t)size;
    a->size = 128;
    mat5_numbers(a, big, tag, 2, 4);
    archive_add(a, packed, size);
    free(packed);
}

static inline archive mat5_begin(bool big)
{
    archive a = {0};
    char head[128];

    memset(head, ' ', sizeof head);
    memcpy(head, "MATLAB 5.0 MAT-file", 19);
    memcpy(head + 124, big ? "\1\0MI" : "\0\1IM", 4);
    archive_add(&a, head, sizeof head);
    return a;
}

/* Appends a full matrix of doubles, by columns. */
static inline void mat5_full(archive *a, bool big, const char *name, int rows,
                             int columns, const double *x)
{
    archive m = {0};

    mat5_head(&m, big, MAT5_FULL, rows, columns, name);
    mat5_element(&m, big, MAT5_DOUBLE, x, rows * columns, 8);
    mat5_matrix(a, big, &m);
}

#endif
