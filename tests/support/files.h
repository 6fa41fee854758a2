/* SPDX-License-Identifier: BSD-3-Clause */
/* files.h - small files for tests, in a directory of their own that is removed
 * when the test succeeds. */
#ifndef SPS_TEST_FILES_H
#define SPS_TEST_FILES_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

static char files_directory[64];

/* Path of a file in this test's directory; valid for four further calls. */
static inline const char *files_path(const char *name)
{
    static char path[4][128];
    static int turn;

    if (files_directory[0] == '\0') {
        strcpy(files_directory, "/tmp/sps-test-XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(files_directory));
    }
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", files_directory, name);
    return path[turn];
}

static inline const char *files_bytes(const char *name, const void *bytes,
                                      size_t size)
{
    const char *path = files_path(name);
    FILE *f = fopen(path, "wb");

    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, size, f), size);
    ck_assert_int_eq(fclose(f), 0);
    return path;
}

static inline const char *files_text(const char *name, const char *text)
{
    return files_bytes(name, text, strlen(text));
}

/* The bytes compressed with gzip; *size is input and output.  Free with
 * free(). */
static inline unsigned char *files_pack(const void *bytes, size_t *size)
{
    z_stream z = {0};
    size_t room = *size + *size / 100 + 256;
    unsigned char *packed = malloc(room);

    ck_assert_int_eq(deflateInit2(&z, 6, Z_DEFLATED, 31, 8, 0), Z_OK);
    z.next_in = (unsigned char *)(size_t)bytes;
    z.avail_in = (unsigned)*size;
    z.next_out = packed;
    z.avail_out = (unsigned)room;
    ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    *size = room - z.avail_out;
    deflateEnd(&z);
    return packed;
}

/* Reads a whole file and appends a NUL; free with free(). */
static inline char *files_read(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    char *text = NULL;
    size_t held = 0, got;

    ck_assert_msg(f != NULL, "%s", path);
    do {
        text = realloc(text, held + 65537);
        got = fread(text + held, 1, 65536, f);
        held += got;
    } while (got > 0);
    fclose(f);
    text[held] = '\0';
    if (size) *size = held;
    return text;
}

/* Removes the directory, which must contain only the files named above. */
static inline void files_clean(void)
{
    char command[128];

    if (files_directory[0] == '\0') return;
    snprintf(command, sizeof command, "rm -rf %s", files_directory);
    ck_assert_int_eq(system(command), 0);
    files_directory[0] = '\0';
}

#endif
