/* SPDX-License-Identifier: BSD-3-Clause */
/* panels.h - a matrix cut into panels of rows, each of which is one piece of
 * memory, packed, to be copied as a whole and decoded by the product
 * (kernels/cuda/stream/).
 *
 * A panel holds windows of strips.  A strip is a row, or a segment of 1024
 * entries of a row that is longer than that; strips of a window are
 * consecutive, all of one sort, 256 at most with 3072 entries.  The columns of
 * a window are those of packed.h: up to 8 segments of 8192 columns, an entry
 * has 16 bits,
 *
 *     column = base[delta >> 13] + (delta & 8191),
 *
 * or 32 bits in a window that needs more segments (`whole`).  A strip with the
 * columns of the one before it stores none: the three rows of a node of an
 * elastic body have one list.  Values of a panel are doubles, floats where all
 * of them are exact (bit for bit), or bytes, numbers of a table of at most 256
 * values.
 *
 * The image of a panel, sections in this order, each at a multiple of 16 bytes:
 *
 *     sps_panel_window windows[];
 *     sps_strip strips[];   of each window, and one that ends its last
 *     uint16_t deltas[];    a whole window begins at an even one
 *     double table[256];    with SPS_PANEL_TABLE alone
 *     values[];
 *
 * Bytes: 64 for a window, 4 for a row, 2 for each entry of a row that stores its
 * own columns, and 8, 4 or 1 for each value.  Panels are cut by 12 bytes for
 * an entry, so that any of them fits the room that was given, and the cuts
 * depend on the lengths of rows alone.
 *
 * Long rows: segment s of long row l is part part[l] + s of the matrix; its sum
 * is kept until those of all segments are known, and added in order.  So no sum
 * depends on where a panel ends or on the order of panels. */
#ifndef SPS_PANELS_H
#define SPS_PANELS_H

#include "formats/packed.h"
#include "plan/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    SPS_PANEL_STRIPS = 256,      /* of a window, at most */
    SPS_PANEL_ENTRIES = 3072,
    SPS_PANEL_SEGMENT = 1024,    /* entries of a segment of a long row */
    SPS_PANEL_VALUES = 256,      /* of a table */
    SPS_PANEL_LEAST = 65536      /* room for a panel, bytes, at least */
};

typedef enum sps_panel_kind {
    SPS_PANEL_DOUBLE, SPS_PANEL_FLOAT, SPS_PANEL_TABLE
} sps_panel_kind;

typedef struct sps_panel_window {
    int64_t row;                 /* first row; of segments: the first part */
    uint32_t strip, delta, value;/* the first ones, in the panel */
    uint16_t strips;
    uint8_t parts, whole;        /* strips are segments; 32-bit columns */
    int32_t base[SPS_PACKED_SEGMENTS];
    uint32_t entries, lists;     /* lists: entries that have deltas */
} sps_panel_window;

/* First value and first delta, from the beginning of the window. */
typedef struct sps_strip {
    uint16_t value, delta;
} sps_strip;

typedef struct sps_panel {
    int64_t row;                 /* the first one */
    int64_t rows;                /* rows that it finishes; 0: an inner part of
                                    one row */
    int64_t entries;
    int32_t first_column, last_column; /* that occur; 0 and -1: none */
    int32_t windows;
    sps_panel_kind kind;
    size_t strips, deltas, table, values; /* offsets of the sections */
    size_t bytes;                /* a multiple of 16 */
} sps_panel;

/* Rows first .. first + count - 1 of a matrix: those of `rowptr`, whose offsets
 * index col and val. */
typedef struct sps_panel_rows {
    int64_t first, count;
    const int64_t *rowptr;       /* count + 1 */
    const int32_t *col;
    const void *val;
    sps_dtype dtype;
} sps_panel_rows;

/* Packs the rows of a matrix, in order, into panels.  Zeroed at first. */
typedef struct sps_packer {
    size_t room;                 /* bytes of a panel, at most */
    int64_t row, segment;        /* where the next panel begins */
    int64_t parts;               /* segments so far */
    int64_t longs, longs_room;   /* rows of several segments: */
    int64_t *long_row, *long_part; /* their numbers, and first parts */
    sps_panel_window *window;    /* of the current panel */
    sps_strip *strip;
    int64_t windows_room, strips_room;
} sps_packer;

/* room: SPS_PANEL_LEAST or more. */
void spsi_packer_open(sps_packer *k, size_t room);
/* Packs the next panel of rows of which k->row is one, to `image`, aligned to
 * 16 bytes, of k->room bytes; k->row is the first row that is not complete yet.
 * ENOMEM. */
sps_status spsi_packer_next(sps_context *ctx, sps_packer *k,
                            const sps_panel_rows *rows, void *image,
                            sps_panel *panel);
void spsi_packer_close(sps_context *ctx, sps_packer *k);

/* The column that number `delta` of a window's lists stands for, and value
 * number `value` of a panel, as kernels decode them. */
int32_t spsi_panel_column(const void *image, const sps_panel *p,
                          const sps_panel_window *w, int64_t delta);
double spsi_panel_value(const void *image, const sps_panel *p, int64_t value);

static inline const sps_panel_window *spsi_panel_windows(const void *image)
{
    return (const sps_panel_window *)image;
}
static inline const sps_strip *spsi_panel_strips(const void *image,
                                                 const sps_panel *p)
{
    return (const sps_strip *)((const char *)image + p->strips);
}

#ifdef __cplusplus
}
#endif
#endif
