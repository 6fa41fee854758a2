/* SPDX-License-Identifier: BSD-3-Clause */
/* bench.h - what the three kinds of measurement of spbench share.
 *
 * Times: three runs to warm up, then samples; a sample is a batch of runs
 * long enough for the clock, with one wait for the device at its end.
 * Reported are the median of the samples and their 10th and 90th
 * percentiles.  Fractions refer to the copy bandwidth of the same process:
 * bytes read plus bytes written, over the time of copying 512 MB. */
#ifndef BENCH_H
#define BENCH_H

#include "spsolve.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BENCH_WIDTHS = 32 };

typedef struct bench {
    sps_context *ctx;
    sps_place place;
    const char *device;           /* its name, for headings */
    sps_csr *A;                   /* host */
    const char *title;            /* of the system */
    const char *kernel, *op;      /* NULL: all; "spmm" or "sddmm" */
    const char *solver, *precond; /* solver NULL: block_cg and cg */
    int k[BENCH_WIDTHS], widths;
    int64_t n;                    /* rows of -blocks, 0: chosen */
    double seconds;               /* of sampling, each measurement */
    double rtol;
    int maxit;
    bool cold;                    /* also with the caches flushed */
    double bandwidth;             /* bytes/s of a copy */
    sps_block *flush[2];          /* what is copied to flush them */
} bench;

typedef struct bench_times {
    double median, low, high;     /* seconds of one run */
    double cold;                  /* 0: not measured */
} bench_times;

typedef sps_status (*bench_fn)(void *data);

/* Monotonic seconds. */
double bench_now(void);
sps_status bench_time(bench *b, bench_fn run, void *data, bench_times *t);
/* Sets b->bandwidth and, for cold, b->flush; bench_close frees them. */
sps_status bench_open(bench *b);
void bench_close(bench *b);

/* Each prints its tables.  *wrong counts results that failed their check. */
sps_status bench_kernels(bench *b, int *wrong);
sps_status bench_solves(bench *b, int *wrong);
/* In bench_blocks.c, which alone looks behind spsolve.h: block operations are
 * no part of the interface, yet they are most of an iteration. */
sps_status bench_blocks(bench *b, int *wrong);
sps_status bench_copy(bench *b, size_t bytes, double *bandwidth);

#endif
