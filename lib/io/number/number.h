/* SPDX-License-Identifier: BSD-3-Clause */
/* number.h - decimal text to binary numbers and back, correctly rounded,
 * independent of the locale.  It needs only libc: the programs of tools/
 * compile it as well.
 *
 * Every reading function reads bytes until one that cannot belong to the
 * number, so the text must end in such a byte (a newline, a blank, a NUL), and
 * 8 more bytes after it must be readable: 8 digits are read at a time. */
#ifndef SPS_NUMBER_H
#define SPS_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* What a text turned out to be. */
typedef enum spsi_number {
    SPSI_NUMBER_FINE,     /* zero or a normal number */
    SPSI_NUMBER_TINY,     /* not zero, but rounded below the normal range */
    SPSI_NUMBER_HUGE,     /* rounded to infinity */
    SPSI_NUMBER_NOT_FINITE, /* written as nan, inf or infinity */
    SPSI_NUMBER_NONE      /* no number here */
} spsi_number;

/* Longest text of spsi_number_print, without a NUL: -2.2250738585072014e-308 */
#define SPSI_NUMBER_WIDTH 24

/* Reads [+-] digits [. digits] [eEdD [+-] digits], rounded to nearest, ties to
 * even: the bits that strtod gives in the C locale and the default rounding
 * mode.  Returns the first byte after the number, or p itself for NONE. */
const char *spsi_number_double(const char *p, double *x, spsi_number *kind);

/* Reads an integer of digits only (no sign) and returns the first byte after
 * it; p if there is no digit, NULL if the number exceeds 63 bits. */
const char *spsi_number_integer(const char *p, int64_t *value);

/* Prints the shortest decimal that reads back as x, the nearest to x among
 * those; returns its length, without a NUL at the end.  NaN is "nan",
 * infinities are "inf" and "-inf", zero keeps its sign. */
int spsi_number_print(double x, char *text);
/* Prints value >= 0 in decimal; returns its length, at most 19. */
int spsi_number_print_integer(int64_t value, char *text);

/* floor(10^q 2^(127 - floor(log2 10^q))), high and low word, from q =
 * SPSI_POWER_MIN to SPSI_POWER_MAX; exact for 0 <= q <= 55.  The build makes
 * them with build-aux/powers_of_ten.sh.  Lower powers are not needed: 10^-343
 * times the largest 64-bit number is below half of the smallest double.
 * Printing needs up to 10^324. */
#define SPSI_POWER_MIN (-342)
#define SPSI_POWER_MAX 324
extern const uint64_t
    spsi_number_power[SPSI_POWER_MAX - SPSI_POWER_MIN + 1][2];

/* Returns floor(log2 10^q) in the range of the table. */
static inline int spsi_number_log2(int q)
{
    return (int)(((int64_t)q * 217706) >> 16);
}

#pragma GCC visibility pop
#endif
