/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_trial.h - one operation at one width and precision, and the results of
 * each kernel for it.
 *
 *     spmm   out = A in          in: ncol x k, out: nrow x k
 *     sddmm  out_p = in_i . other_j   in: nrow x k, other: ncol x k, out: nnz
 *
 * in and other are uniform in [-1/2, 1/2), Philox streams of seeds 1 and 2,
 * rounded to the precision. */
#ifndef BENCH_TRIAL_H
#define BENCH_TRIAL_H

#include "tools/bench/bench.h"

#include "block/block.h"
#include "operator/operator.h"
#include "plan/planner.h"

typedef struct bench_trial {
    bench *b;
    sps_context *ctx;
    sps_problem p;                /* the product for which kernels are planned,
                                     described as an operator does it */
    bool sddmm;
    sps_plan *plan;               /* plan of the current kernel */
    void *values;                 /* a copy of A's values on the device */
    void *recording;              /* captured CUDA graph, or NULL if runs are
                                     launched directly */
    sps_block *in, *other, *out;
    /* checks (bench_check.c) */
    sps_block *right;             /* result of the reference kernel */
    sps_block *weight;            /* spmm of doubles: 1 / the error bound of
                                     each row */
    float *host[2];               /* single precision: the results of the
                                     reference and of the kernel, on the host */
    double *sum;                  /* sum |a| / 2 of each row */
    double roundoff;              /* roundoff for which weight was computed,
                                     negative if none */
} bench_trial;

/* Times and check of one kernel. */
typedef struct bench_row {
    const sps_kernel *kernel;
    char detail[48];
    bench_times t;
    double plan;                  /* seconds to create the plan */
    double refresh;               /* seconds to update the plan with new values
                                     on the device */
    double megabytes;             /* memory of the plan */
    double aside;                 /* seconds of the vendor's kernel with
                                     column-major blocks */
    double predicted;             /* predicted seconds */
    bool bids;                    /* auto may choose the kernel: it is
                                     reproducible and in full precision */
    bool pinned;                  /* the kernel is not meant for this matrix and
                                     runs only because it was selected by
                                     name */
    bool chosen;                  /* the lowest predicted time among kernels
                                     that auto may choose */
    bool wrong;
    bool plain;                   /* runs could not be captured as a CUDA
                                     graph */
} bench_row;

enum { BENCH_ROWS = 64, BENCH_REPEATS = 20 };

sps_status bench_trial_open(bench *b, const bench_run *what, int k,
                            bench_trial *t);
void bench_trial_close(bench_trial *t);
/* Returns the next kernel of this operation that was requested, from number *i
 * on, or NULL if there is none. */
const sps_kernel *bench_next_kernel(const bench_trial *t, int *i);
/* bench_mkl.c: returns MKL's product on the host, or NULL where MKL cannot be
 * loaded. */
const sps_kernel *bench_mkl(void);
/* Plans, checks and times row->kernel; *done is false if it does not fit. */
sps_status bench_measure(bench_trial *t, bench_row *row, bool *done);

/* bench_check.c: runs t->plan once, or replays the captured runs once. */
sps_status bench_trial_run(void *trial);
/* Computes the reference and checks it on the host. */
sps_status bench_reference(bench_trial *t);
/* Compares the result of t->plan with the reference; roundoff: unit roundoff of
 * the operands that the kernel declares. */
sps_status bench_check(bench_trial *t, double roundoff, bool *wrong);
void bench_check_close(bench_trial *t);

/* bench_table.c */
typedef struct bench_table bench_table;

bench_table *bench_table_open(bench *b, const bench_run *what);
void bench_table_rows(bench_table *table, const bench_trial *t,
                      bench_row *rows, int count, int *wrong);
/* Prints the means over the widths and the time lost by the choices of auto;
 * frees the table. */
void bench_table_close(bench_table *table);

#endif
