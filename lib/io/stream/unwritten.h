/* SPDX-License-Identifier: BSD-3-Clause */
/* unwritten.h - names of files that can be read but not written; for the
 * library and the command, which rejects them before the work. */
#ifndef SPS_UNWRITTEN_H
#define SPS_UNWRITTEN_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { SPSI_WHY_UNWRITTEN = 160 };

/* Returns whether the first `length` letters of a name end with the suffix and
 * are more than that. */
static inline bool spsi_name_ends(const char *name, size_t length,
                                  const char *suffix)
{
    const size_t n = strlen(suffix);

    return length > n && memcmp(name + length - n, suffix, n) == 0;
}

/* Returns whether no file is written under this name because of its suffix, and
 * writes the reason to `why`. */
static inline bool spsi_unwritten(const char *name,
                                  char why[SPSI_WHY_UNWRITTEN])
{
    static const char *const kind[] = {
        ".mat", ".hb", ".rb", ".rsa", ".rua", ".csv", ".h5", ".hdf5", ".pkl",
        ".parquet", ".xlsx", ".json", NULL
    };
    static const char *const packed[] = { ".xz", ".zst", ".bz2", NULL };
    const size_t length = strlen(name);

    for (int i = 0; kind[i]; i++)
        if (spsi_name_ends(name, length, kind[i]))
            return snprintf(why, SPSI_WHY_UNWRITTEN, "files are not written as "
                            "%s, but as .mtx, .npy, .npz or .petsc",
                            kind[i]) > 0;
    for (int i = 0; packed[i]; i++)
        if (spsi_name_ends(name, length, packed[i]))
            return snprintf(why, SPSI_WHY_UNWRITTEN, "files are written plain "
                            "or, with .gz at the end of the name, compressed "
                            "by gzip, not as %s", packed[i]) > 0;
    return false;
}

#endif
