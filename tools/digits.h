/* SPDX-License-Identifier: BSD-3-Clause */
/* digits.h - numbers to text, fast. */
#ifndef DIGITS_H
#define DIGITS_H

#include <stdint.h>

enum { DIGITS_MOST = 32 };   /* bytes that one number may take */

/* To be called once, before threads start. */
void digits_init(void);
/* Both write at p, no terminating zero, and return the end.  A double reads
 * back to the same bits; the text is the shortest that does, save for
 * subnormals and for decimals that tie between two doubles. */
char *digits_int(char *p, int64_t value);
char *digits_double(char *p, double value);

#endif
