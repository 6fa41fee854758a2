/* SPDX-License-Identifier: BSD-3-Clause */
/* number.c - decimal text to double, rounded correctly.
 *
 * The digits make an integer w of at most 64 bits (19 digits, the rest
 * remembered as "truncated") and a power of ten q.  With F the 128 leading
 * bits of 10^q, cut off, the value lies in
 *
 *     [ w F, (w + t) (F + 1) ) 2^e,      t = 1 if truncated, else 0.
 *
 * Of the 192-bit product the upper 128 bits H are kept.  When both ends of
 * the interval round to the same double, that is the answer; 74 bits or more
 * are rounded away, so a 17-digit number is undecided once in 2^72 cases, and
 * a truncated one once in some 2^5.  Then the halfway point between the two
 * candidates is compared with all digits in long integers.  The idea of a
 * 128-bit product is Eisel's and Lemire's (D. Lemire, Number parsing at a
 * gigabyte per second, 2021); keeping the interval makes the proof short.
 *
 * Integer arithmetic only: the result is independent of the rounding mode. */
#include "io/number/number.h"

#include <stddef.h>
#include <string.h>

__extension__ typedef unsigned __int128 u128;

#define EXACT_DIGITS 19       /* that always fit 64 bits */
#define INFINITE UINT64_C(0x7ff0000000000000)
#define HIDDEN (UINT64_C(1) << 52)

/* ------------------------------------------------------ long integers */

/* A halfway point has at most 767 significant digits, so of longer texts 800
 * are kept, and a 1 for the rest.  801 digits are 2661 bits; 5^1125, needed
 * to compare them with the smallest numbers, times 54 bits, is 2667. */
#define LIMBS 48
#define KEPT 800

typedef struct big {
    int n;
    uint64_t limb[LIMBS];   /* least significant first, limb[n-1] != 0 */
} big;

static void big_muladd(big *a, uint64_t factor, uint64_t add)
{
    u128 carry = add;

    for (int i = 0; i < a->n; i++) {
        carry += (u128)a->limb[i] * factor;
        a->limb[i] = (uint64_t)carry;
        carry >>= 64;
    }
    if (carry != 0 && a->n < LIMBS)
        a->limb[a->n++] = (uint64_t)carry;
}

static void big_mul_power5(big *a, int64_t exponent)
{
    static const uint64_t five27 = UINT64_C(7450580596923828125);

    for (; exponent >= 27; exponent -= 27)
        big_muladd(a, five27, 0);
    for (; exponent > 0; exponent--)
        big_muladd(a, 5, 0);
}

static void big_shift(big *a, int64_t bits)
{
    int words = (int)(bits / 64);

    big_muladd(a, UINT64_C(1) << (bits % 64), 0);
    if (a->n == 0 || a->n + words > LIMBS)
        return;
    memmove(a->limb + words, a->limb, (size_t)a->n * sizeof *a->limb);
    memset(a->limb, 0, (size_t)words * sizeof *a->limb);
    a->n += words;
}

static int big_compare(const big *a, const big *b)
{
    if (a->n != b->n)
        return a->n < b->n ? -1 : 1;
    for (int i = a->n - 1; i >= 0; i--)
        if (a->limb[i] != b->limb[i])
            return a->limb[i] < b->limb[i] ? -1 : 1;
    return 0;
}

/* *a 10^*dropped = the digits from p to end (a point among them is skipped), if
 * at most KEPT are significant.  Of more digits the rest is replaced by one
 * digit 1 if it is not zero. */
static void big_digits(const char *p, const char *end, big *a,
                       int64_t *dropped)
{
    int kept = 0;
    bool rest = false;

    a->n = 0;
    *dropped = 0;
    for (; p < end; p++) {
        if (*p == '.')
            continue;
        if (kept == 0 && *p == '0')
            continue;
        if (kept < KEPT) {
            big_muladd(a, 10, (uint64_t)(*p - '0'));
            kept++;
        } else {
            rest = rest || *p != '0';
            ++*dropped;
        }
    }
    if (rest) {
        big_muladd(a, 10, 1);
        --*dropped;
    }
}

/* Sign of digits 10^q - (the middle of the double `bits` and the next). */
static int compare_halfway(const char *digits, const char *end, int64_t q,
                           uint64_t bits)
{
    uint64_t m = bits & (HIDDEN - 1);
    int64_t unit = -1074, dropped, shift;
    big a, b = {0};

    if (bits >= HIDDEN) {
        m |= HIDDEN;
        unit = (int64_t)(bits >> 52) - 1075;
    }
    big_digits(digits, end, &a, &dropped);
    q += dropped;
    b.n = 1;
    b.limb[0] = 2 * m + 1;
    big_mul_power5(q >= 0 ? &a : &b, q >= 0 ? q : -q);
    shift = unit - 1 - q;
    big_shift(shift >= 0 ? &b : &a, shift >= 0 ? shift : -shift);
    return big_compare(&a, &b);
}

/* ------------------------------------------------------------ rounding */

/* *bits = the double nearest to w 10^q, w != 0, or if truncated to a number in
 * [w, w + 1) 10^q.  False: it is either *bits or the next larger double, and
 * this interval does not decide which. */
static bool round_product(uint64_t w, int q, bool truncated, uint64_t *bits)
{
    const uint64_t *power = spsi_number_power[q - SPSI_POWER_MIN];
    int zeros = __builtin_clzll(w);
    u128 low, high, rest, half, width;
    uint64_t m = 0;
    bool up, decided = true;

    w <<= zeros;
    low = (u128)w * power[1];
    high = (u128)w * power[0] + (uint64_t)(low >> 64);
    int top = high >> 127 ? 127 : 126;
    int exponent = top + spsi_number_log2(q) - 63 - zeros;
    int shift = top - 52;
    if (exponent < -1022) {             /* subnormal: fewer bits are kept */
        shift += -1022 - exponent;
        exponent = -1023;
    }
    *bits = exponent > 1023 ? INFINITE : 0;
    if (exponent > 1023 || shift > 129)
        return true;

    width = truncated ? ((u128)1 << (64 + zeros)) + 4 : 2;
    if (shift == 129)                   /* H < half of the smallest double */
        return (u128)0 - high >= width;
    if (shift < 128)
        m = (uint64_t)(high >> shift);
    half = (u128)1 << (shift - 1);
    rest = high & (half + (half - 1));
    if (!truncated && q >= 0 && q <= 55) {
        bool sticky = (uint64_t)low != 0;
        up = rest > half || (rest == half && (sticky || (m & 1)));
    } else {
        up = rest > half;
        decided = up || half - rest >= width;
    }
    /* The hidden bit of m adds 1 to the exponent, and so does a carry of m +
     * up. */
    *bits = m + up;
    if (exponent >= -1022)
        *bits += (uint64_t)(exponent + 1022) << 52;
    return decided;
}

/* --------------------------------------------------------------- digits */

static inline bool is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

static const char *take_digits(const char *p, uint64_t *w)
{
    uint64_t sum = *w;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    for (;;) {
        uint64_t v;
        memcpy(&v, p, 8);
        if ((v & (v + UINT64_C(0x0606060606060606)) &
             UINT64_C(0xf0f0f0f0f0f0f0f0)) != UINT64_C(0x3030303030303030))
            break;
        /* 4 numbers of 2 digits, 2 of 4 digits, 1 of 8 digits, in one word */
        v = (v & UINT64_C(0x0f0f0f0f0f0f0f0f)) * 2561 >> 8;
        v = (v & UINT64_C(0x00ff00ff00ff00ff)) * 6553601 >> 16;
        v = (v & UINT64_C(0x0000ffff0000ffff)) * UINT64_C(42949672960001) >> 32;
        sum = sum * 100000000 + v;
        p += 8;
    }
#endif
    for (; is_digit(*p); p++)
        sum = sum * 10 + (uint64_t)(*p - '0');
    *w = sum;
    return p;
}

/* *w = the first 19 significant digits from p to end; *q += number of the
 * digits after them.  Returns whether one of those is not 0. */
static bool take_leading(const char *p, const char *end, uint64_t *w,
                         int64_t *q)
{
    int taken = 0;
    uint64_t sum = 0;
    bool truncated = false;

    for (; p < end; p++) {
        if (*p == '.')
            continue;
        if (taken < EXACT_DIGITS) {
            sum = sum * 10 + (uint64_t)(*p - '0');
            taken += sum != 0;
        } else {
            truncated = truncated || *p != '0';
            ++*q;
        }
    }
    *w = sum;
    return truncated;
}

static const char *take_exponent(const char *p, int64_t *q)
{
    const char *e = p + 1;
    int64_t value = 0;
    bool minus;

    if ((*p | 0x20) != 'e' && (*p | 0x20) != 'd')
        return p;
    minus = *e == '-';
    e += *e == '-' || *e == '+';
    if (!is_digit(*e))
        return p;
    for (; is_digit(*e); e++)
        if (value < INT64_C(1) << 50)     /* beyond any text's length */
            value = value * 10 + (*e - '0');
    *q += minus ? -value : value;
    return e;
}

static bool same_word(const char *p, const char *word)
{
    for (; *word != '\0'; p++, word++)
        if ((*p | 0x20) != *word)
            return false;
    return true;
}

static const char *take_name(const char *p, uint64_t *bits)
{
    if (same_word(p, "nan")) {
        *bits = INFINITE | HIDDEN >> 1;
        return p + 3;
    }
    *bits = INFINITE;
    if (same_word(p, "infinity"))
        return p + 8;
    return same_word(p, "inf") ? p + 3 : p;
}

/* ------------------------------------------------------------- interface */

const char *spsi_number_double(const char *p, double *x, spsi_number *kind)
{
    const char *begin = p, *digits, *end;
    bool minus = *p == '-', truncated = false;
    uint64_t w = 0, bits = 0;
    int64_t q = 0, count;

    p += *p == '-' || *p == '+';
    digits = p;
    p = take_digits(p, &w);
    count = p - digits;
    if (*p == '.') {
        const char *point = p;
        p = take_digits(p + 1, &w);
        q = -(p - point - 1);
        count -= q;
    }
    end = p;
    *kind = SPSI_NUMBER_FINE;
    if (count == 0) {
        p = take_name(digits, &bits);
        *kind = p == digits ? SPSI_NUMBER_NONE : SPSI_NUMBER_NOT_FINITE;
        if (p == digits)
            return begin;
    } else {
        int64_t all;                   /* exponent of the whole digit string */
        p = take_exponent(p, &q);
        all = q;
        if (count > EXACT_DIGITS)
            truncated = take_leading(digits, end, &w, &q);
        if (w != 0 && q > 308)
            bits = INFINITE;
        else if (w != 0 && q >= SPSI_POWER_MIN &&
                 !round_product(w, (int)q, truncated, &bits)) {
            int sign = compare_halfway(digits, end, all, bits);
            bits += sign > 0 || (sign == 0 && (bits & 1));
        }
        if (bits >= INFINITE)
            *kind = SPSI_NUMBER_HUGE;
        else if (bits < HIDDEN && w != 0)
            *kind = SPSI_NUMBER_TINY;
    }
    bits |= (uint64_t)minus << 63;
    memcpy(x, &bits, sizeof *x);
    return p;
}

const char *spsi_number_integer(const char *p, int64_t *value)
{
    const char *begin = p;
    uint64_t sum = 0;

    for (; is_digit(*p); p++)
        sum = sum * 10 + (uint64_t)(*p - '0');
    if (p - begin > 18) {              /* may have wrapped: with checks */
        sum = 0;
        for (const char *c = begin; c < p; c++) {
            uint64_t digit = (uint64_t)(*c - '0');
            if (sum > (INT64_MAX - digit) / 10)
                return NULL;
            sum = sum * 10 + digit;
        }
    }
    *value = (int64_t)sum;
    return p;
}
