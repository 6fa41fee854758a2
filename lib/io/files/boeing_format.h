/* SPDX-License-Identifier: BSD-3-Clause */
/* boeing_format.h - fields of fixed width by formats of Fortran: (26I3),
 * (1P,5E16.8), (4D20.13), (10F7.1). */
#ifndef SPS_BOEING_FORMAT_H
#define SPS_BOEING_FORMAT_H

#include "io/stream/lines.h"

typedef struct spsi_fortran {
    char kind;                 /* one of the letters I E D F G */
    int repeat, width;         /* fields in a line, and bytes of each */
    int decimals, scale;       /* d of Fw.d; k of the scale factor kP */
} spsi_fortran;

/* Reads the format in columns from .. to-1 of the line, with one of the letters
 * in `kinds`; EPARSE. */
sps_status spsi_fortran_read(const spsi_lines *l, size_t from, size_t to,
                             const char *kinds, spsi_fortran *format);

/* Reads `left` fields one after the other, continuing in the next line after
 * `repeat` fields.  A line that has as many words as it should have fields is
 * split into words: this gives the same values, and reads files of writers
 * whose fields are narrower than the format says (SciPy's hb_write).  Values
 * without blanks between them are separated by the field width. */
typedef struct spsi_fields {
    spsi_lines *l;
    const spsi_fortran *format;
    int64_t left;              /* fields not read yet */
    const char *what;          /* their contents, for messages */
    int at;                    /* next field of the line; 0 for a new line */
    bool words;                /* this line is split into words, from `next`
                                  on */
    size_t next;
} spsi_fields;

sps_status spsi_fields_whole(spsi_fields *s, int64_t *x);
sps_status spsi_fields_real(spsi_fields *s, double *x);

#endif
