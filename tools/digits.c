/* SPDX-License-Identifier: BSD-3-Clause */
/* digits.c - shortest digits by 128-bit arithmetic.
 *
 * v = m 2^e is scaled by a power of ten to D in [10^17, 10^18), kept with 64
 * fraction bits; h is half the distance to the next double on that scale.
 * Any decimal strictly within h of D reads back as v, so the answer is the
 * multiple of the largest 10^p that lies there.  Powers of ten carry 128
 * bits, relative error below 2^-115: h is taken a little smaller than it is,
 * so an error can cost a digit, never a bit. */
#include "digits.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

__extension__ typedef unsigned __int128 wide;

enum { POWER_LOW = -300, POWER_HIGH = 330 };

static struct power { wide m; int e; } power[POWER_HIGH - POWER_LOW + 1];
static char pair[200];               /* "00" "01" ... "99" */

static void normalise(struct power *p)
{
    while (!(p->m >> 127)) {
        p->m <<= 1;
        p->e--;
    }
}

/* Each step times 10 or over 10 truncates by less than 2^-124: 330 of them
 * by less than 2^-115. */
void digits_init(void)
{
    struct power *zero = power - POWER_LOW;

    zero->m = 1;
    zero->e = 0;
    normalise(zero);
    for (int i = 0; i < POWER_HIGH; i++) {
        zero[i + 1].m = (zero[i].m >> 3) * 5;
        zero[i + 1].e = zero[i].e + 4;
        normalise(&zero[i + 1]);
    }
    for (int i = 0; i > POWER_LOW; i--) {
        zero[i - 1].m = zero[i].m / 5;
        zero[i - 1].e = zero[i].e - 1;
        normalise(&zero[i - 1]);
    }
    for (int i = 0; i < 100; i++) {
        pair[2 * i] = (char)('0' + i / 10);
        pair[2 * i + 1] = (char)('0' + i % 10);
    }
}

/* Writes value so that it ends at end; returns where it begins. */
static char *backwards(char *end, uint64_t value)
{
    for (; value >= 100; value /= 100)
        memcpy(end -= 2, pair + 2 * (value % 100), 2);
    if (value >= 10)
        memcpy(end -= 2, pair + 2 * value, 2);
    else
        *--end = (char)('0' + value);
    return end;
}

char *digits_int(char *p, int64_t value)
{
    char text[20], *end = text + sizeof text, *begin;

    if (value < 0)
        *p++ = '-';
    begin = backwards(end, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
    memcpy(p, begin, (size_t)(end - begin));
    return p + (end - begin);
}

/* D = m 2^e 10^k and h, both with 64 fraction bits. */
static void scale(uint64_t m, int e, int k, wide *D, wide *h)
{
    const struct power *P = &power[k - POWER_LOW];
    uint64_t M = m << 11, high = (uint64_t)(P->m >> 64);
    wide T = (wide)M * high + ((wide)M * (uint64_t)P->m >> 64);
    int shift = -(64 + P->e + e - 11 + 64);

    *D = T >> shift;
    *h = (P->m >> 54) >> shift;      /* m's half unit is 2^10 of M's */
    if (m == (uint64_t)1 << 52)
        *h /= 2;                     /* the next double below is nearer */
    *h -= 1 << 12;                   /* the error of P, generously */
}

/* The multiple of the largest 10^p within h of D, over 10^p. */
static uint64_t shortest(wide D, wide h, int *p)
{
    uint64_t whole = (uint64_t)(D >> 64), fraction = (uint64_t)D;
    uint64_t best = whole, unit = 10;

    *p = 0;
    for (int i = 1; i <= 17; i++, unit *= 10) {
        uint64_t q = whole / unit, rest = whole - q * unit;
        wide below = (wide)rest << 64 | fraction;
        wide above = ((wide)unit << 64) - below;

        if (below < above ? below >= h : above >= h)
            break;
        best = below < above ? q : q + 1;
        *p = i;
    }
    if (best == 10) {                /* 9.99... went up to 10 */
        best = 1;
        ++*p;
    }
    return best;
}

/* The count digits at d, the point after the first pos of them. */
static char *arrange(char *p, const char *d, int count, int pos)
{
    if (pos > 17 || pos < -4) {
        *p++ = *d;
        if (count > 1) {
            *p++ = '.';
            memcpy(p, d + 1, (size_t)count - 1);
            p += count - 1;
        }
        *p++ = 'e';
        return digits_int(p, pos - 1);
    }
    if (pos <= 0) {
        memcpy(p, "0.0000", 6);
        p += 2 - pos;
    }
    for (int i = 0; i < count; i++) {
        if (i == pos && i > 0)
            *p++ = '.';
        *p++ = d[i];
    }
    for (int i = count; i < pos; i++)
        *p++ = '0';
    return p;
}

char *digits_double(char *p, double value)
{
    char text[20], *end = text + sizeof text, *begin;
    uint64_t bits, m;
    int e, k, cut;
    wide D, h;

    if (fabs(value) < 1e15 && value == (double)(int64_t)value &&
        (value != 0 || !signbit(value)))
        return digits_int(p, (int64_t)value);
    if (value == 0 || !isnormal(value))
        return p + snprintf(p, DIGITS_MOST, "%.17g", value);
    if (value < 0)
        *p++ = '-';
    memcpy(&bits, &value, sizeof bits);
    m = (bits & UINT64_C(0xfffffffffffff)) | (uint64_t)1 << 52;
    e = (int)(bits >> 52 & 2047) - 1075;
    /* floor(log10 v) or one less: then D would have one digit too many */
    k = 17 - (int)floor((e + 52) * 0.30102999566398120);
    scale(m, e, k, &D, &h);
    if (D >> 64 >= 1000000000000000000u)
        scale(m, e, --k, &D, &h);
    begin = backwards(end, shortest(D, h, &cut));
    return arrange(p, begin, (int)(end - begin),
                   (int)(end - begin) + cut - k);
}
