#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Prints lib/io/number/powers_of_ten.c: for each q from FIRST to LAST the 128
# leading bits of 10^q, cut off,
#
#     floor(10^q 2^(127 - floor(log2 10^q))).
#
# Long integers of 24 bits a limb, which doubles multiply and divide by ten
# exactly.  Negative powers are floor(2^BITS / 10^-q), divided by ten again and
# again: floor(floor(a / b) / c) = floor(a / (b c)).  With -q up to 345 more than
# 128 of 1296 bits are left.
#   usage: powers_of_ten.sh FIRST LAST
exec ${AWK-awk} -v first="$1" -v last="$2" '
# text[q] = the 128 leading bits of limb[n-1] .. limb[0]
function keep(q, n,    i, bit, k, word, digits) {
    while (limb[n - 1] == 0) n--
    for (bit = 8388608; limb[n - 1] < bit; bit /= 2) ;
    i = n - 1
    for (k = 1; k <= 128; k++) {
        word = 2 * word
        if (i >= 0 && int(limb[i] / bit) % 2) word++
        bit /= 2
        if (bit < 1) { bit = 8388608; i-- }
        if (k % 16 == 0) { digits = digits sprintf("%04x", word); word = 0 }
    }
    text[q] = sprintf("    {UINT64_C(0x%s), UINT64_C(0x%s)},",
                      substr(digits, 1, 16), substr(digits, 17))
}
BEGIN {
    n = 55
    for (i = 0; i < n - 1; i++) limb[i] = 0
    limb[n - 1] = 1
    for (q = -1; q >= first; q--) {
        rest = 0
        for (i = n - 1; i >= 0; i--) {
            rest = 16777216 * rest + limb[i]
            limb[i] = int(rest / 10)
            rest -= 10 * limb[i]
        }
        keep(q, n)
    }
    for (i = 0; i < n; i++) limb[i] = 0
    limb[0] = 1
    for (q = 0; q <= last; q++) {
        if (q >= first) keep(q, n)
        carry = 0
        for (i = 0; i < n; i++) {
            carry += 10 * limb[i]
            limb[i] = carry % 16777216
            carry = int(carry / 16777216)
        }
    }
    print "/* Made by build-aux/powers_of_ten.sh: powers of ten, see number.h. */"
    print "#include \"io/number/number.h\"\n"
    print "const uint64_t"
    print "spsi_number_power[SPSI_POWER_MAX - SPSI_POWER_MIN + 1][2] = {"
    for (q = first; q <= last; q++) print text[q]
    print "};"
}'
