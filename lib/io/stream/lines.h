/* SPDX-License-Identifier: BSD-3-Clause */
/* lines.h - lines of a text file, and the numbers in them, for the readers of
 * small and old formats (Matrix Market has a parallel one, mtx_read.c). */
#ifndef SPS_LINES_H
#define SPS_LINES_H

#include "io/stream/bytes.h"

typedef struct spsi_lines {
    spsi_bytes b;
    int64_t number;            /* number of the line at p, counting from 1 */
    const char *p;             /* the line; its length excludes LF or CR LF */
    size_t length;
    size_t whole;              /* bytes of the line including LF or CR LF */
} spsi_lines;

/* Reads the next line; *more: whether there was one.  EPARSE if it has 32 KiB
 * or more. */
sps_status spsi_lines_next(spsi_lines *l, bool *more);
/* Reads a line that must follow; EPARSE with what it should contain. */
sps_status spsi_lines_need(spsi_lines *l, const char *what);

/* Converts the number p[0 .. length-1], without blanks around it.  decimals:
 * how many of the last digits are decimals if no decimal point is written;
 * scale: a number without exponent is divided by 10^scale (both are 0 except
 * for Fortran formats).  EPARSE, which names the line, if it is not a number,
 * or is not finite and the options do not allow that. */
sps_status spsi_lines_real(const spsi_lines *l, const char *p, size_t length,
                           int decimals, int scale, double *x);
/* As spsi_lines_real, for an integer. */
sps_status spsi_lines_whole(const spsi_lines *l, const char *p, size_t length,
                            int64_t *x);

#endif
