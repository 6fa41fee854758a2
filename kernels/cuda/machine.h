/* SPDX-License-Identifier: BSD-3-Clause */
/* machine.h - what an H200 does, for predictions; measured once by
 * tools/peers/calibrate.cu (tables in doc/machine.md).  Rates are multiples
 * of the copy bandwidth beta (4.2 TB/s, read plus written), so that a
 * prediction scales with the device that it is made for.
 *
 * Rows of r bytes at random places, r a multiple of the sector of 32 bytes,
 * out of a footprint of F bytes: what the L2 holds comes at its rate, the rest
 * at that of memory, and both answer only so many requests,
 *
 *     1 / rate = h / min(2.17 beta, 160 G/s r) + (1 - h) / min(1.05 beta,
 *                40 G/s r),     h = min(1, C / F),
 *
 * with C = 58 MB, or 39 MB when rows are shorter than a line of 128 bytes.
 * Within 20 % of what was measured for r = 32 .. 1024, F = 4 .. 1024 MB. */
#ifndef SPS_CUDA_MACHINE_H
#define SPS_CUDA_MACHINE_H

/* beta, where it is needed by itself, is SPS_H200_COPY (lib/rates.h). */
#define SPS_H200_L2 2.17           /* beta: rows out of L2 */
#define SPS_H200_SCATTERED 1.05    /* beta: rows out of memory */
#define SPS_H200_L2_ROW 38e-3      /* beta a byte: 160 G rows/s */
#define SPS_H200_ROW 9.5e-3        /* beta a byte: 40 G rows/s */
#define SPS_H200_L2_BYTES 58e6     /* that serve rows of whole lines */
#define SPS_H200_L2_SHORT 39e6     /* shorter ones */
#define SPS_H200_LAUNCH 4.5e-6     /* seconds: a kernel after a kernel */

/* Bytes of whole sectors. */
static inline double spsi_sectors(double bytes)
{
    return 32.0 * (double)(long long)((bytes + 31.0) / 32.0);
}

/* Bytes/s at which rows of `row` bytes come from random places of `footprint`
 * bytes, through L2 and past L1. */
static inline double spsi_gather_rate(double beta, double footprint,
                                      double row)
{
    const double lines = row < 128.0 ? SPS_H200_L2_SHORT : SPS_H200_L2_BYTES;
    const double hit = footprint > lines ? lines / footprint : 1.0;
    double l2 = SPS_H200_L2_ROW * row, memory = SPS_H200_ROW * row;

    if (l2 > SPS_H200_L2) l2 = SPS_H200_L2;
    if (memory > SPS_H200_SCATTERED) memory = SPS_H200_SCATTERED;
    return beta / (hit / l2 + (1.0 - hit) / memory);
}

#endif
