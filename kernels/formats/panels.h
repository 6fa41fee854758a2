/* SPDX-License-Identifier: BSD-3-Clause */
/* panels.h - a matrix cut into panels of rows.  A panel is one packed piece of
 * memory, which is copied as a whole and decoded by the product
 * (kernels/cuda/stream/).
 *
 * A panel consists of windows, a window of strips.  A strip is a row, or a
 * segment of 1024 entries of a row that is longer than that.  The strips of a
 * window are consecutive and either all rows or all segments, at most 256 with
 * 3072 entries in all.  The columns of a window are stored as in packed.h: up
 * to 8 segments of 8192 columns, with 16 bits for an entry,
 *
 *     column = base[delta >> 13] + (delta & 8191),
 *
 * or 32 bits in a window that needs more segments (`whole`).  A strip with the
 * columns of the one before it stores none: the three rows of a node of an
 * elastic body have one list.  Values of a panel are doubles, floats if all of
 * them are exact (bit for bit), or bytes, which are indices of a table of at
 * most 256 values.
 *
 * The image of a panel has these sections in this order, each at a multiple of
 * 16 bytes:
 *
 *     sps_panel_window windows[];
 *     sps_strip strips[];   of each window, and one that ends its last
 *     uint16_t deltas[];    those of a `whole` window begin at an even index
 *     double table[256];    with SPS_PANEL_TABLE only
 *     values[];
 *
 * Bytes: 64 for a window, 4 for a strip, 2 for each entry of a strip that
 * stores its own columns, and 8, 4 or 1 for each value.  Panels are cut as if
 * each entry took 12 bytes, so that any of them fits the given size, and the
 * cuts depend on the lengths of rows only.
 *
 * Long rows: segment s of long row l is part part[l] + s of the matrix; its sum
 * is stored until those of all segments are known, and then added in order.  So
 * no sum depends on where a panel ends or on the order of panels. */
#ifndef SPS_PANELS_H
#define SPS_PANELS_H

#include "formats/packed.h"
#include "plan/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    SPS_PANEL_STRIPS = 256,      /* largest number of strips of a window */
    SPS_PANEL_ENTRIES = 3072,
    SPS_PANEL_SEGMENT = 1024,    /* entries of a segment of a long row */
    SPS_PANEL_VALUES = 256,      /* largest number of values in a table */
    SPS_PANEL_LEAST = 65536      /* smallest size of a panel, bytes */
};

typedef enum sps_panel_kind {
    SPS_PANEL_DOUBLE, SPS_PANEL_FLOAT, SPS_PANEL_TABLE
} sps_panel_kind;

typedef struct sps_panel_window {
    int64_t row;                 /* first row, or first part if the strips are
                                    segments */
    uint32_t strip, delta, value;/* indices of the first strip, delta and value
                                    in the panel */
    uint16_t strips;
    uint8_t parts, whole;        /* whether strips are segments; whether columns
                                    have 32 bits */
    int32_t base[SPS_PACKED_SEGMENTS];
    uint32_t entries, lists;     /* number of entries; number of entries that
                                    have deltas */
} sps_panel_window;

/* First value and first delta of a strip, counted from the beginning of the
 * window. */
typedef struct sps_strip {
    uint16_t value, delta;
} sps_strip;

typedef struct sps_panel {
    int64_t row;                 /* first row */
    int64_t rows;                /* number of rows that end in the panel; 0 for
                                    an inner part of one row */
    int64_t entries;
    int32_t first_column, last_column; /* range of columns that occur; 0 and -1
                                          if there are none */
    int32_t windows;
    sps_panel_kind kind;
    size_t strips, deltas, table, values; /* offsets of the sections, bytes */
    size_t bytes;                /* size, a multiple of 16 */
} sps_panel;

/* Rows first .. first + count - 1 of a matrix, given by `rowptr`, whose offsets
 * are indices of col and val. */
typedef struct sps_panel_rows {
    int64_t first, count;
    const int64_t *rowptr;       /* count + 1 elements */
    const int32_t *col;
    const void *val;
    sps_dtype dtype;
} sps_panel_rows;

/* State of packing the rows of a matrix, in order, into panels.  It is zeroed
 * before the first use. */
typedef struct sps_packer {
    size_t room;                 /* largest size of a panel, bytes */
    int64_t row, segment;        /* where the next panel begins */
    int64_t parts;               /* number of segments so far */
    int64_t longs, longs_room;   /* rows of several segments: their number, */
    int64_t *long_row, *long_part; /* their row numbers, and first parts */
    sps_panel_window *window;    /* windows of the current panel */
    sps_strip *strip;
    int64_t windows_room, strips_room;
} sps_packer;

/* room: size of a panel in bytes, at least SPS_PANEL_LEAST. */
void spsi_packer_open(sps_packer *k, size_t room);
/* Packs the next panel into `image`, k->room bytes aligned to 16.  `rows` must
 * contain row k->row; k->row becomes the first row that is not complete yet.
 * Returns SPS_ENOMEM if memory for the windows cannot be allocated. */
sps_status spsi_packer_next(sps_context *ctx, sps_packer *k,
                            const sps_panel_rows *rows, void *image,
                            sps_panel *panel);
void spsi_packer_close(sps_context *ctx, sps_packer *k);

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
