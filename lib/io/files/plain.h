/* SPDX-License-Identifier: BSD-3-Clause */
/* plain.h - analyses lines of plain numbers. */
#ifndef SPS_PLAIN_H
#define SPS_PLAIN_H

#include <stdbool.h>

typedef struct spsi_plain {
    int count;               /* how many numbers the line has; 0 if it is empty
                                or has other contents */
    bool whole;              /* the first two numbers are integers */
    char separator;          /* ',' ';' or ' ' */
} spsi_plain;

/* Analyses the line at p, of a text that ends at `end`. */
spsi_plain spsi_plain_look(const char *p, const char *end);
/* Returns the first line that is neither blank nor a comment (#). */
const char *spsi_plain_first(const char *p, const char *end);
/* Returns the line after the one at p. */
const char *spsi_plain_next(const char *p, const char *end);

#endif
