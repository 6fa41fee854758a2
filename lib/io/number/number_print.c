/* SPDX-License-Identifier: BSD-3-Clause */
/* number_print.c - the shortest decimal that reads back as the same double.
 *
 * R. Giulietti's Schubfach ("The Schubfach way to render doubles", 2020).  A
 * double c 2^q is the nearest one to every number between its two halfway
 * neighbours.  Scaled by the power of ten 10^-k that makes this interval wider
 * than 1 but not wider than 10, it holds at least one integer, and at most one
 * multiple of ten: that one is taken if it is there, else the nearest integer.
 * The scaled ends are needed to one bit beyond the integer plus "is there a
 * rest" (round to odd), which a 64 x 128 bit product gives exactly. */
#include "io/number/number.h"

#include <string.h>

__extension__ typedef unsigned __int128 u128;

typedef struct decimal {
    uint64_t digits;
    int exponent;          /* value: digits 10^exponent */
} decimal;

/* floor(c g / 2^128), with the lowest bit set if the next 64 bits of the
 * quotient are more than 1. */
static uint64_t round_to_odd(const uint64_t g[2], uint64_t c)
{
    u128 low = (u128)g[1] * c;
    u128 high = (u128)g[0] * c + (uint64_t)(low >> 64);

    return (uint64_t)(high >> 64) | ((uint64_t)high > 1);
}

/* g = ceil(10^e 2^(127 - floor(log2 10^e))): Schubfach needs powers rounded up,
 * the table has them rounded down (exact for 0 <= e <= 55). */
static void power_above(int e, uint64_t g[2])
{
    const uint64_t *floor_ = spsi_number_power[e - SPSI_POWER_MIN];

    g[0] = floor_[0];
    g[1] = floor_[1] + (e < 0 || e > 55);
    g[0] += g[1] < floor_[1];
}

/* Returns the shortest decimal for x = c 2^q; narrow: the double below is
 * nearer than the one above. */
static decimal shortest(uint64_t c, int q, bool narrow)
{
    bool odd = c & 1;
    int k = (int)(((int64_t)q * 1262611 - (narrow ? 524031 : 0)) >> 22);
    int h = q + spsi_number_log2(-k) + 1;
    uint64_t g[2];

    power_above(-k, g);
    /* The middle and the ends of the interval of numbers that round to x, four
     * times each in units of 10^k. */
    uint64_t middle = round_to_odd(g, (4 * c) << h);
    uint64_t lower = round_to_odd(g, (4 * c - 2 + narrow) << h) + odd;
    uint64_t upper = round_to_odd(g, (4 * c + 2) << h) - odd;
    uint64_t s = middle / 4;

    if (s >= 10) {
        uint64_t ten = s / 10;
        bool below = lower <= 40 * ten, above = 40 * ten + 40 <= upper;
        if (below != above)
            return (decimal){ten + above, k + 1};
    }
    bool below = lower <= 4 * s, above = 4 * s + 4 <= upper;
    /* If both neighbours are in the interval, or none, the nearer one is taken,
     * or the even one if they are equally near. */
    if (below == above)
        above = middle > 4 * s + 2 || (middle == 4 * s + 2 && (s & 1));
    return (decimal){s + above, k};
}

static decimal to_decimal(uint64_t bits)
{
    uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
    int exponent = (int)(bits >> 52);
    uint64_t c = exponent ? fraction | UINT64_C(1) << 52 : fraction;
    int q = (exponent ? exponent : 1) - 1075;
    decimal d;

    if (q <= 0 && q > -53 && (c & ((UINT64_C(1) << -q) - 1)) == 0)
        d = (decimal){c >> -q, 0};      /* an integer below 2^53 */
    else
        d = shortest(c, q, fraction == 0 && exponent > 1);
    while (d.digits % 10 == 0) {
        d.digits /= 10;
        d.exponent++;
    }
    return d;
}

int spsi_number_print_integer(int64_t value, char *text)
{
    static const char pairs[] =
        "00010203040506070809101112131415161718192021222324252627282930313233"
        "34353637383940414243444546474849505152535455565758596061626364656667"
        "68697071727374757677787980818283848586878889909192939495969798"
        "99";
    char digits[20];
    uint64_t v = (uint64_t)value;
    int at = 20;

    for (; v >= 100; v /= 100)
        memcpy(digits + (at -= 2), pairs + 2 * (v % 100), 2);
    if (v >= 10)
        memcpy(digits + (at -= 2), pairs + 2 * v, 2);
    else
        digits[--at] = (char)('0' + v);
    memcpy(text, digits + at, (size_t)(20 - at));
    return 20 - at;
}

/* d.ddde-xx, or plain where that is not longer than the digits need. */
static int layout(decimal d, char *text)
{
    char digits[20];
    int n = spsi_number_print_integer((int64_t)d.digits, digits);
    int point = n + d.exponent;         /* digits before the point */
    char *t = text;

    if (point > 0 && point <= 17) {
        int whole = point < n ? point : n;
        memcpy(t, digits, (size_t)whole);
        t += whole;
        for (int i = n; i < point; i++)
            *t++ = '0';
        if (point < n) {
            *t++ = '.';
            memcpy(t, digits + point, (size_t)(n - point));
            t += n - point;
        }
    } else if (point <= 0 && point > -4) {
        memcpy(t, "0.000", (size_t)(2 - point));
        t += 2 - point;
        memcpy(t, digits, (size_t)n);
        t += n;
    } else {
        int e = point - 1;
        *t++ = digits[0];
        if (n > 1) {
            *t++ = '.';
            memcpy(t, digits + 1, (size_t)(n - 1));
            t += n - 1;
        }
        *t++ = 'e';
        if (e < 0)
            *t++ = '-';
        t += spsi_number_print_integer(e < 0 ? -e : e, t);
    }
    return (int)(t - text);
}

int spsi_number_print(double x, char *text)
{
    const uint64_t infinite = UINT64_C(0x7ff0000000000000);
    uint64_t bits, size;
    char *t = text;

    memcpy(&bits, &x, sizeof bits);
    size = bits & ~(UINT64_C(1) << 63);
    if (size > infinite) {
        memcpy(t, "nan", 3);
        return 3;
    }
    if (bits != size)
        *t++ = '-';
    if (size == infinite) {
        memcpy(t, "inf", 3);
        t += 3;
    } else if (size == 0) {
        *t++ = '0';
    } else {
        t += layout(to_decimal(size), t);
    }
    return (int)(t - text);
}
