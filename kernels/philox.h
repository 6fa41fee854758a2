/* SPDX-License-Identifier: BSD-3-Clause */
/* philox.h - random numbers as a pure function of (seed, row, column), the same
 * bits on every place, in any order, with any number of threads.
 *
 * Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy
 * as 1, 2, 3; SC 2011).  key = (seed low, seed high); counter = (row low, row
 * high, column / 2, 0).  Of the four words w, the even column uses w[0], w[1]
 * and the odd one w[2], w[3] as (first, second):
 *
 *     u = (first * 2^32 + second) >> 11            53 bits
 *     x = u * 2^-53 - 1/2                          in [-1/2, 1/2)
 *
 * Both operations are exact, so that contraction into an FMA changes nothing.
 * C and CUDA share this file. */
#ifndef SPS_PHILOX_H
#define SPS_PHILOX_H

#include <stdint.h>

#ifdef __CUDACC__
#define SPS_PHILOX_FN static inline __host__ __device__
#else
#define SPS_PHILOX_FN static inline
#endif

typedef struct spsi_philox {
    uint32_t w[4];
} spsi_philox;

SPS_PHILOX_FN spsi_philox spsi_philox_round(spsi_philox c, uint32_t k0,
                                            uint32_t k1)
{
    uint64_t p0 = (uint64_t)0xD2511F53u * c.w[0];
    uint64_t p1 = (uint64_t)0xCD9E8D57u * c.w[2];
    spsi_philox r;

    r.w[0] = (uint32_t)(p1 >> 32) ^ c.w[1] ^ k0;
    r.w[1] = (uint32_t)p1;
    r.w[2] = (uint32_t)(p0 >> 32) ^ c.w[3] ^ k1;
    r.w[3] = (uint32_t)p0;
    return r;
}

SPS_PHILOX_FN spsi_philox spsi_philox_ten(spsi_philox c, uint32_t k0,
                                          uint32_t k1)
{
    for (int i = 0; i < 10; i++) {
        c = spsi_philox_round(c, k0, k1);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return c;
}

SPS_PHILOX_FN double spsi_philox_double(uint32_t first, uint32_t second)
{
    uint64_t u = (((uint64_t)first << 32) | second) >> 11;

    return (double)u * 0x1p-53 - 0.5;
}

/* Sets the random numbers of columns 2 pair and 2 pair + 1 of a row. */
SPS_PHILOX_FN void spsi_philox_pair(uint64_t seed, int64_t row, int pair,
                                    double *even, double *odd)
{
    spsi_philox c = {{(uint32_t)row, (uint32_t)((uint64_t)row >> 32),
                      (uint32_t)pair, 0}};

    c = spsi_philox_ten(c, (uint32_t)seed, (uint32_t)(seed >> 32));
    *even = spsi_philox_double(c.w[0], c.w[1]);
    *odd = spsi_philox_double(c.w[2], c.w[3]);
}

/* Returns the random number of (row, column). */
SPS_PHILOX_FN double spsi_philox_at(uint64_t seed, int64_t row, int column)
{
    double even, odd;

    spsi_philox_pair(seed, row, column / 2, &even, &odd);
    return column % 2 ? odd : even;
}

#endif
