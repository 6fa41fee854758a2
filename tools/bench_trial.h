/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_trial.h - one operation at one width and precision, and what becomes
 * of each kernel in it.
 *
 *     spmm   out = A in          in: ncol x k, out: nrow x k
 *     sddmm  out_p = in_i . other_j   in: nrow x k, other: ncol x k, out: nnz
 *
 * in and other are uniform in [-1/2, 1/2), Philox streams of seeds 1 and 2,
 * rounded to the precision. */
#ifndef BENCH_TRIAL_H
#define BENCH_TRIAL_H

#include "bench.h"

#include "block.h"
#include "operator.h"
#include "registry.h"

typedef struct bench_trial {
    bench *b;
    sps_context *ctx;
    sps_problem p;                /* as an operator would ask */
    bool sddmm;
    sps_plan *plan;               /* of the kernel in hand */
    void *values;                 /* A's once more, in the place */
    void *recording;              /* NULL: plain runs */
    sps_block *in, *other, *out;
    /* checks (bench_check.c) */
    sps_block *right;             /* the reference's result */
    sps_block *weight;            /* spmm of doubles: 1 / bound of each row */
    float *host[2];               /* floats: right, and the one to judge */
    double *sum;                  /* of each row: sum |a| / 2 */
    double roundoff;              /* that weight was made for, < 0: none */
} bench_trial;

/* Times and judgement of one kernel. */
typedef struct bench_row {
    const sps_kernel *kernel;
    char detail[48];
    bench_times t;
    double plan;                  /* seconds to make it */
    double refresh;               /* to take new values that lie in the place */
    double megabytes;             /* that the plan holds */
    double aside;                 /* seconds of the vendor's other layout */
    double predicted;             /* seconds */
    bool bids;                    /* reproducible and in full precision */
    bool pinned;                  /* refuses, unless asked for by name */
    bool chosen;                  /* the cheapest prediction of those */
    bool wrong;
    bool plain;                   /* could not be recorded */
} bench_row;

enum { BENCH_ROWS = 64, BENCH_REPEATS = 20 };

/* The operator that lends the matrix in this precision; made once. */
sps_status bench_operator(bench *b, bool single, sps_operator **op_p);

sps_status bench_trial_open(bench *b, const bench_run *what, int k,
                            bench_trial *t);
void bench_trial_close(bench_trial *t);
/* One run of t->plan, or one replay. */
sps_status bench_trial_run(void *trial);
/* Kernel number *i and further of this operation that is asked for, or NULL. */
const sps_kernel *bench_next_kernel(const bench_trial *t, int *i);
/* Plans, checks and times row->kernel; *done false if it does not fit. */
sps_status bench_measure(bench_trial *t, bench_row *row, bool *done);
/* Marks what "auto" would take: the cheapest bid that can be planned. */
void bench_mark_auto(bench_row *rows, int count);
/* Bytes that must move: A as stored, blocks once each. */
double bench_floor(const bench_trial *t);

/* bench_check.c: the reference's result, itself checked on the host; then
 * whether the result of t->plan is right.  roundoff: of the kernel's table. */
sps_status bench_reference(bench_trial *t);
sps_status bench_check(bench_trial *t, double roundoff, bool *wrong);
void bench_check_close(bench_trial *t);

/* bench_table.c */
typedef struct bench_table bench_table;

bench_table *bench_table_open(bench *b, const bench_run *what);
void bench_table_rows(bench_table *table, const bench_trial *t,
                      bench_row *rows, int count, int *wrong);
/* Means over the widths and what auto missed; frees the table. */
void bench_table_close(bench_table *table);

#endif
