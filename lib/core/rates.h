/* SPDX-License-Identifier: BSD-3-Clause */
/* rates.h - the rates of a machine from which times are predicted: one record
 * for each context, filled in by the backend when it opens.  What was fitted on
 * one GPU is scaled by `work` if it is a time of instructions.  Factorisations,
 * and set-ups on the host, are predicted in seconds of one CPU core.
 *
 * The record influences choices (kernels, formats of cuSPARSE, degree of the
 * Chebyshev polynomial), never the order of the sums of a kernel. */
#ifndef SPS_RATES_H
#define SPS_RATES_H

typedef struct sps_machine {
    double copy;        /* bytes/s of a large copy, read plus written */
    double sync;        /* seconds that an iteration loses to synchronisation
                           with the host, small matrices there, and the launches
                           that follow */
    /* For GPUs; the host leaves them zero. */
    double launch;      /* seconds from one kernel to the next */
    double sms;         /* multiprocessors */
    double work;        /* time of instructions of the whole GPU, relative to
                           the one on which kernels were fitted */
    double slow_fma;    /* seconds of one multiply-add in double precision; 0
                           if their rate limits no product */
    double l2_step;     /* seconds of two dependent loads, from L2 */
    double memory_step; /* seconds of the same loads from device memory */
    double kept;        /* bytes of the operands of a product that stay in L2
                           until the next one */
    double l2_lines;    /* effective bytes of L2 for rows of whole lines */
    double l2_short;    /* the same for rows shorter than a line */
    /* Gathers of rows, in multiples of copy. */
    double l2;          /* from L2 */
    double memory;      /* from device memory */
    double l2_row;      /* from L2, per byte of a row: a limit of requests */
    double memory_row;  /* from device memory, per byte of a row */
    double link;        /* bytes/s of a copy from page-locked host memory */
} sps_machine;

#endif
