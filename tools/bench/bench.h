/* SPDX-License-Identifier: BSD-3-Clause */
/* bench.h - declarations shared by the three kinds of measurement of spbench:
 * kernels, block operations, solves.
 *
 * Times: after three warm-up runs samples are taken; a sample is a batch of
 * runs long enough for the resolution of the clock, with one synchronisation at
 * its end.  The median of the samples and their 10th and 90th percentiles are
 * reported.  Fractions are relative to the copy bandwidth measured in the same
 * process: bytes read plus bytes written, divided by the time of copying 512
 * MB. */
#ifndef BENCH_H
#define BENCH_H

#include "tools/launch/launcher.h"
#include "spsolve.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BENCH_WIDTHS = 32, BENCH_RUNS = 8 };

/* A run that measures the kernels of one operation in one precision over a list
 * of widths. */
typedef struct bench_run {
    bool sddmm, single;
    int k[BENCH_WIDTHS], widths;
} bench_run;

/* A solver and preconditioner that -solve times. */
typedef struct bench_method {
    const char *solver, *precond; /* solver: names separated by commas */
    int degree;                   /* degree of chebyshev; 0: the default */
    double rtol;
    int maxit;
    double maxtime;               /* limit of one solve in seconds, 0: no
                                     limit */
} bench_method;

typedef struct bench {
    sps_context *ctx;
    sps_place place;
    const char *device;           /* name of the device, for headings */
    launch of;                    /* the processes that solve together */
    sps_csr *A;                   /* matrix on the host: own rows */
    sps_csr *single;              /* A with values in single precision, or
                                     NULL */
    float *single_values;
    sps_operator *op[2];          /* operators of A and single, which contain
                                     copies on the device */
    const char *title;            /* description of the system */
    const char *kernel;           /* name of the only kernel to measure, or NULL
                                     for all */
    bench_run run[BENCH_RUNS];    /* the runs that measure kernels */
    int runs;
    bool low;                     /* measure also kernels that round operands */
    bool all;                     /* measure also kernels that expect no gain
                                     for this matrix */
    bool replay;                  /* runs are captured as a CUDA graph and
                                     replayed */
    const char *tsv;              /* file to which rows are appended, or NULL */
    bench_method method;
    int k[BENCH_WIDTHS], widths;
    int64_t n;                    /* number of rows for -blocks, 0: automatic */
    double seconds;               /* seconds of sampling per measurement */
    bool cold;                    /* measure also with the caches flushed */
    bool once;                    /* one run of each, for a profiler */
    double bandwidth;             /* bytes/s of a copy, by all processes */
    sps_block *flush[2];          /* blocks that are copied to flush the
                                     caches */
} bench;

typedef struct bench_times {
    double median, low, high;     /* seconds of one run */
    double cold;                  /* seconds with flushed caches; 0 if not
                                     measured */
} bench_times;

typedef sps_status (*bench_fn)(void *data);

/* Returns the time of a monotonic clock in seconds. */
double bench_now(void);
sps_status bench_time(bench *b, bench_fn run, void *data, bench_times *t);
/* Sets b->bandwidth and, if b->cold, allocates b->flush, which bench_close
 * frees. */
sps_status bench_open(bench *b);
/* Returns st, or EPEER if st is OK and another process has failed. */
sps_status bench_agree(const bench *b, sps_status st);
void bench_close(bench *b);

/* Each of these functions prints its tables and counts in *wrong the results
 * that failed their check. */
sps_status bench_solves(bench *b, int *wrong);
/* The following functions use more than spsolve.h: kernels by name and block
 * operations are not part of the interface, but an iteration consists of
 * them. */
sps_status bench_kernels(bench *b, int *wrong);
sps_status bench_cliffs(bench *b, int *wrong);
sps_status bench_blocks(bench *b, int *wrong);

#endif
