/* SPDX-License-Identifier: BSD-3-Clause */
/* gen_draw.c - random numbers of the generators. */
#include "tools/generator/gen.h"

/* Philox4x32-10: ten rounds of two products of 32 x 32 bits (Salmon, Moraes,
 * Dror and Shaw, Parallel random numbers: as easy as 1, 2, 3; SC 2011, section
 * 4). */
void gen_philox(uint64_t seed, uint64_t thing, uint32_t what, uint32_t out[4])
{
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    uint32_t x0 = (uint32_t)thing, x1 = (uint32_t)(thing >> 32);
    uint32_t x2 = what, x3 = 0;

    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * x0;
        uint64_t b = (uint64_t)0xCD9E8D57u * x2;

        x0 = (uint32_t)(b >> 32) ^ x1 ^ k0;
        x1 = (uint32_t)b;
        x2 = (uint32_t)(a >> 32) ^ x3 ^ k1;
        x3 = (uint32_t)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = x0;
    out[1] = x1;
    out[2] = x2;
    out[3] = x3;
}

double gen_uniform(uint64_t seed, uint64_t thing, uint32_t what)
{
    uint32_t w[4];

    gen_philox(seed, thing, what, w);
    /* 53 bits: k 2^-52 - 1 with k < 2^53 */
    return (double)(((uint64_t)w[0] << 32 | w[1]) >> 11) * 0x1p-52 - 1;
}
