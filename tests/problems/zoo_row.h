/* SPDX-License-Identifier: BSD-3-Clause */
/* zoo_row.h - interface between zoo.c, which assembles matrices, and the
 * families, each of which generates the columns of one row. */
#ifndef SPS_TEST_ZOO_ROW_H
#define SPS_TEST_ZOO_ROW_H

#include <stdint.h>
#include <stdlib.h>
#include <stdbool.h>

typedef struct row {
    int64_t i, nrow, ncol;
    uint64_t seed;
    int64_t count, room;
    int32_t *col;
    const int32_t *length;   /* of zoo_rows */
    int64_t kinds, first;
} row;

static inline void *zoo_must(void *p)
{
    if (!p) abort();   /* out of memory: nothing can be tested */
    return p;
}

typedef struct family {
    const char *name;
    void (*fill)(row *r);
    bool symmetric;
    int up, down;   /* columns = rows * up / down */
} family;

extern const family zoo_family[];
extern const int zoo_families;

/* As many columns as zoo_rows was asked for. */
void zoo_given(row *r);

#endif
