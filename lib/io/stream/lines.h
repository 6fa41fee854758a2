/* SPDX-License-Identifier: BSD-3-Clause */
/* lines.h - lines of a text file, and the numbers in them, for the readers of
 * small and old formats (Matrix Market has a parallel one, mtx_read.c). */
#ifndef SPS_LINES_H
#define SPS_LINES_H

#include "io/stream/bytes.h"

typedef struct spsi_lines {
    spsi_bytes b;
    int64_t number;            /* of the line at p, from 1 */
    const char *p;             /* without its end, newline or CR and newline */
    size_t length;
    size_t whole;              /* with its end, to be consumed */
} spsi_lines;

/* Goes to the next line; *more: there is one.  EPARSE: a line of 32 KiB. */
sps_status spsi_lines_next(spsi_lines *l, bool *more);
/* The same where a line must follow; EPARSE with what it should hold. */
sps_status spsi_lines_need(spsi_lines *l, const char *what);

/* The number that p[0 .. length-1] is, without blanks around it.  decimals: the
 * digits behind a point that is not written; scale: 10^scale divides a number
 * without exponent (both 0 but for Fortran formats).  EPARSE with the line; of
 * a number that is not finite unless the options allow that. */
sps_status spsi_lines_real(const spsi_lines *l, const char *p, size_t length,
                           int decimals, int scale, double *x);
/* The same for an integer. */
sps_status spsi_lines_whole(const spsi_lines *l, const char *p, size_t length,
                            int64_t *x);

#endif
