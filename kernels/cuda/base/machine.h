/* SPDX-License-Identifier: BSD-3-Clause */
/* machine.h - rates of an H200 for the predictions of kernels; measured once by
 * tools/peers/calibrate.cu (tables in doc/machine.md).  Rates are multiples of
 * the copy bandwidth beta (4.2 TB/s, read plus written), so that a prediction
 * scales with the device that it is made for.
 *
 * Model of a gather: rows of r bytes at random addresses, r a multiple of the
 * 32-byte sector, within a footprint of F bytes.  A fraction h hits in L2 and
 * is served at the L2 rate, the rest at the rate of device memory; both are
 * also limited by a number of requests per second:
 *
 *     1 / rate = h / min(2.17 beta, 160 G/s r) + (1 - h) / min(1.05 beta,
 *                40 G/s r),     h = min(1, C / F),
 *
 * with C = 58 MB, or 39 MB for rows shorter than a cache line of 128 bytes.
 * Within 20 % of the measurements for r = 32 .. 1024, F = 4 .. 1024 MB. */
#ifndef SPS_CUDA_MACHINE_H
#define SPS_CUDA_MACHINE_H

/* The absolute value of beta is SPS_H200_COPY (lib/plan/rates.h). */
#define SPS_H200_L2 2.17           /* in beta: rows from L2 */
#define SPS_H200_SCATTERED 1.05    /* in beta: rows from device memory */
#define SPS_H200_L2_ROW 38e-3      /* beta per byte of a row: 160 G rows/s */
#define SPS_H200_ROW 9.5e-3        /* beta per byte of a row: 40 G rows/s */
#define SPS_H200_L2_BYTES 58e6     /* effective L2 for rows of whole lines */
#define SPS_H200_L2_SHORT 39e6     /* for shorter rows */
#define SPS_H200_LAUNCH 4.5e-6     /* seconds from one kernel to the next */

/* Bytes rounded up to whole sectors. */
static inline double spsi_sectors(double bytes)
{
    return 32.0 * (double)(long long)((bytes + 31.0) / 32.0);
}

/* Bytes/s at which rows of `row` bytes are gathered from random positions in
 * `footprint` bytes, through L2 and bypassing L1. */
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
