/* SPDX-License-Identifier: BSD-3-Clause */
/* bench.h - shared by the three kinds of measurement of spbench.
 *
 * Times: three warm-up runs, then samples; a sample is a batch of runs long
 * enough for the resolution of the clock, with one synchronisation at its end.
 * Reported are the median of the samples and their 10th and 90th percentiles.
 * Fractions refer to the copy bandwidth measured in the same process: bytes
 * read plus bytes written, divided by the time of copying 512 MB. */
#ifndef BENCH_H
#define BENCH_H

#include "spsolve.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BENCH_WIDTHS = 32, BENCH_RUNS = 8 };

/* Kernels of one operation in one precision, over a list of widths. */
typedef struct bench_run {
    bool sddmm, single;
    int k[BENCH_WIDTHS], widths;
} bench_run;

/* What -solve times. */
typedef struct bench_method {
    const char *solver, *precond; /* solver: names separated by commas */
    int degree;                   /* of chebyshev; 0: the default */
    double rtol;
    int maxit;
    double maxtime;               /* of one solve, 0: no limit */
} bench_method;

typedef struct bench {
    sps_context *ctx;
    sps_place place;
    const char *device;           /* its name, for headings */
    sps_csr *A;                   /* host */
    sps_csr *single;              /* A in floats, or NULL */
    float *single_values;
    sps_operator *op[2];          /* for A and single: copies on the device */
    const char *title;            /* description of the system */
    const char *kernel;           /* NULL: all */
    bench_run run[BENCH_RUNS];    /* of kernels */
    int runs;
    bool low;                     /* also kernels that round operands */
    bool all;                     /* also kernels that expect no gain for this
                                     matrix */
    bool replay;                  /* runs are captured as a CUDA graph and
                                     replayed */
    const char *tsv;              /* file to append rows to, or NULL */
    bench_method method;
    int k[BENCH_WIDTHS], widths;
    int64_t n;                    /* rows of -blocks, 0: automatic */
    double seconds;               /* of sampling, per measurement */
    bool cold;                    /* also with the caches flushed */
    bool once;                    /* one run each, for a profiler */
    double bandwidth;             /* bytes/s of a copy */
    sps_block *flush[2];          /* copied to flush the caches */
} bench;

typedef struct bench_times {
    double median, low, high;     /* seconds of one run */
    double cold;                  /* 0: not measured */
} bench_times;

typedef sps_status (*bench_fn)(void *data);

/* Monotonic seconds. */
double bench_now(void);
sps_status bench_time(bench *b, bench_fn run, void *data, bench_times *t);
/* Sets b->bandwidth and, if b->cold, allocates b->flush; bench_close frees
 * it. */
sps_status bench_open(bench *b);
void bench_close(bench *b);

/* Each prints its tables.  *wrong counts results that failed their check. */
sps_status bench_solves(bench *b, int *wrong);
/* These use more than spsolve.h: kernels by name and block operations are not
 * part of the interface, but are what an iteration consists of. */
sps_status bench_kernels(bench *b, int *wrong);
sps_status bench_cliffs(bench *b, int *wrong);
sps_status bench_blocks(bench *b, int *wrong);
sps_status bench_copy(bench *b, size_t bytes, double *bandwidth);

#endif
