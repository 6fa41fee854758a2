/* SPDX-License-Identifier: BSD-3-Clause */
/* machine.h - the rates of a GPU from which run times are predicted
 * (core/rates.h), and the rate of gathers.
 *
 * One GPU was measured by tools/peers/calibrate.cu (tables in doc/machine.md);
 * the constants of kernels were fitted on it, and its figures stand in
 * spsi_machine_fitted.  For others they are scaled by what the driver reports:
 * memory by its peak rate, L2 by its size, L2 rates by the clock and the number
 * of multiprocessors.  Times of instructions were fitted to whole products and
 * contain waits for memory: they are scaled by the slower of the two, so that a
 * GPU with the same multiprocessors and slower memory prefers the same kernels
 * (on an H100 spmm.blocks to spmm.tiles for elasticity, as it should).
 * Latencies of launches and of device memory are those of the measured GPU.
 *
 * Model of a gather: rows of r bytes at random addresses, r a multiple of the
 * 32-byte sector, within a footprint of F bytes.  A fraction h hits in L2 and
 * is served at the L2 rate, the rest at the rate of device memory; both are
 * also limited by a number of requests per second:
 *
 *     1 / rate = h / min(l2, l2_row r) + (1 - h) / min(memory, memory_row r),
 *     h = min(1, C / F),
 *
 * in multiples of copy, with C = l2_lines, or l2_short for rows shorter than a
 * cache line of 128 bytes.  Within 20 % of the measurements for r = 32 .. 1024,
 * F = 4 .. 1024 MB. */
#ifndef SPS_CUDA_MACHINE_H
#define SPS_CUDA_MACHINE_H

#include <stdbool.h>
#include <string.h>

#include "core/rates.h"

/* What the driver reports about a GPU; 0 for what it does not report. */
typedef struct sps_gpu {
    const char *name;
    int major, minor;          /* compute capability */
    int sms;
    double clock;              /* clock rate of the multiprocessors, Hz */
    double memory;             /* peak rate of device memory, bytes/s */
    double l2;                 /* size of L2, bytes */
} sps_gpu;

/* Returns the record of the GPU on which the constants were fitted.  Measured
 * there: a copy runs at 4.22 TB/s; 1.6e11 rows/s are gathered from L2, and 4e10
 * rows/s from memory; blocks of 16 MB of page-locked memory are copied at 55
 * GB/s.  A hierarchy of multigrid took 30 ms for 4.1 million rows of 7 points,
 * 11 ms for 1.0 million of them, 20 ms for 1.0 million rows of 27 points, and
 * 38 and 16 ms for 61.7 and 11.5 million entries in node blocks with rigid body
 * modes; within 8 % of these, but the last one (12 ms). */
static inline sps_machine spsi_machine_fitted(void)
{
    const sps_machine m = {
        .copy = 4.2e12, .sync = 2.5e-4, .launch = 4.5e-6, .sms = 132,
        .work = 1, .slow_fma = 0, .l2_step = 0.36e-6, .memory_step = 0.7e-6,
        .kept = 30e6, .l2_lines = 58e6, .l2_short = 39e6, .l2 = 2.17,
        .memory = 1.05, .l2_row = 38e-3, .memory_row = 9.5e-3,
        .link = 55e9, .level = 1.5e-6,
        .hierarchy = { .fixed = 6e6, .row = 2.8, .entry = 0.46 },
    };

    return m;
}

/* Returns what the driver reports about the GPU on which the constants were
 * fitted, as a whole: a partition of it (MIG) has the same name, but fewer
 * multiprocessors and other rates. */
static inline sps_gpu spsi_gpu_fitted(void)
{
    const sps_gpu g = { "NVIDIA H200", 9, 0, 132, 1.98e9, 4.917e12, 62914560 };

    return g;
}

static inline bool spsi_gpu_is_fitted(const sps_gpu *g)
{
    const sps_gpu known = spsi_gpu_fitted();

    return strncmp(g->name, known.name, strlen(known.name)) == 0 &&
           g->sms == known.sms;
}

/* Returns the multiply-adds in double precision per clock and multiprocessor
 * (CUDA programming guide); 2 for capabilities that are not listed. */
static inline int spsi_gpu_fma(int major, int minor)
{
    static const struct { int major, minor, fma; } known[] = {
        { 6, 0, 32 }, { 7, 0, 32 }, { 7, 2, 32 }, { 8, 0, 32 }, { 9, 0, 64 },
        { 10, 0, 64 },
    };

    for (unsigned i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].major == major && known[i].minor == minor)
            return known[i].fma;
    return 2;
}

/* Returns the rate in bytes/s of copies from page-locked host memory over 16
 * lanes of PCIe.  Compute capability 9 and higher has generation 5, capability
 * 8 generation 4, others 3. */
static inline double spsi_gpu_link(int major)
{
    return major >= 9 ? 55e9 : major >= 8 ? 25e9 : 12e9;
}

static inline sps_machine spsi_machine_of(const sps_gpu *g)
{
    const sps_gpu known = spsi_gpu_fitted();
    const double clock = g->clock > 0 ? g->clock : known.clock;
    const double cache = (g->l2 > 0 ? g->l2 : known.l2) / known.l2;
    const double speed = g->sms * clock / (known.sms * known.clock);
    const int fma = spsi_gpu_fma(g->major, g->minor);
    sps_machine m = spsi_machine_fitted();
    const double memory = g->memory > 0 ? g->memory / known.memory : speed;
    const double faster = speed / memory;    /* L2 relative to device memory */

    if (spsi_gpu_is_fitted(g)) return m;
    m.copy *= memory;
    m.sms = g->sms;
    m.work = 1 / (memory < speed ? memory : speed);
    m.slow_fma = fma < 32 ? 1 / (fma * g->sms * clock) : 0;
    m.l2_step *= known.clock / clock;
    m.kept *= cache;
    m.l2_lines *= cache;
    m.l2_short *= cache;
    m.l2 *= faster;
    m.l2_row *= faster;
    m.link = spsi_gpu_link(g->major);
    return m;
}

/* Rounds bytes up to whole sectors. */
static inline double spsi_sectors(double bytes)
{
    return 32.0 * (double)(long long)((bytes + 31.0) / 32.0);
}

/* Returns the bytes/s at which rows of `row` bytes are gathered from random
 * positions in `footprint` bytes, through L2 and bypassing L1. */
static inline double spsi_gather_rate(const sps_machine *m, double footprint,
                                      double row)
{
    const double lines = row < 128.0 ? m->l2_short : m->l2_lines;
    const double hit = footprint > lines ? lines / footprint : 1.0;
    double l2 = m->l2_row * row, memory = m->memory_row * row;

    if (l2 > m->l2) l2 = m->l2;
    if (memory > m->memory) memory = m->memory;
    return m->copy / (hit / l2 + (1.0 - hit) / memory);
}

#endif
