/* SPDX-License-Identifier: BSD-3-Clause */
/* job.h - one run of `solve`: what was asked, what exists, what came out.
 * solve.c fills it; report.c, json.c and plot.c only read it. */
#ifndef JOB_H
#define JOB_H

#include "cli.h"
#include "progress.h"

typedef struct job {
    cli_values opt;
    double start;                /* now() when the program began */

    sps_context *ctx;
    sps_csr *A, *M;
    sps_block *B, *X, *basis, *Y, *coords;
    sps_operator *op, *mass_op;
    sps_solver *solver;
    sps_result result;           /* arrays belong to solver */
    sps_eigen_result eigen;      /* of -eigs; the same */
    bool solved;                 /* result is filled */
    bool attempted;              /* X holds the best iterate, solved or not */

    sps_read_info read;
    sps_laplacian_info graph;    /* of -laplacian */
    bool complex_system;
    int64_t n, nnz;              /* as the user counts; 0: not known yet */
    int k;
    sps_context_info info;
    size_t base_bytes;           /* resident before the library took any */
    size_t host_bytes;           /* peak: measured, or predicted (dry run) */

    double sec_read, sec_setup, sec_total;
    progress progress;
    bool wrote;                  /* X lies under its name */

    int exit_code;
    const char *status;          /* "converged", "bad_input", ... */
    char message[1200];          /* one sentence when there is one to say */
    char advice[400];            /* what to try next, or "" */
} job;

/* Monotonic seconds. */
double job_now(void);

/* job.c: the steps.  Each returns 0 or the exit code, kept in j too. */
int job_context(job *j);
int job_read(job *j);          /* job_read.c */
int job_set_up(job *j);
/* Dry run on a GPU: the driver loads a kernel when it is first used, so one
 * iteration is made and forgotten; else the memory it takes is not seen. */
void job_warm_up(job *j);
int job_solve(job *j);
int job_fail(job *j, int code, const char *status, const char *format, ...)
    CLI_PRINTF(4, 5);
/* The library failed: its text, our code; reading: while a file was read. */
int job_failed(job *j, sps_status st, bool reading);
/* job_read.c.  Reading for others: of the matrix's shape; exit codes as above. */
int job_read_csr(job *j, const char *path, sps_read_info *info, sps_csr **A_p);
int job_read_block(job *j, const char *path, sps_block **X_p);
int job_zeros(job *j, sps_block **X_p);
/* eigen.c: the same steps for -eigs. */
int eigen_read(job *j);
sps_status eigen_set_up(job *j, sps_options *o);
sps_status eigen_solve(job *j);
void eigen_report(const job *j, FILE *f);
/* What to try when it stagnated. */
const char *eigen_suggestion(const job *j);
/* What to try when the solve did not get there; "" if nothing. */
const char *job_advice(const job *j);

/* Memory of this process now, without what is only reserved. */
size_t job_resident(void);

/* signals.c */
void signals_catch(progress *p);
/* Number of the signal that asked for the end, 0 if none did. */
int signals_caught(void);
/* The context to cancel, or NULL. */
void signals_context(sps_context *ctx);

/* report.c */
void report_print(const job *j, FILE *f);
void report_explain(const job *j, FILE *f);
double report_median(const double *x, int k);
/* "12.3 MB" */
const char *report_bytes(double bytes, char *text, size_t size);

/* json.c: EXIT_CONVERGED or EXIT_OUTPUT with a text in error. */
int json_write(const job *j, const char *path, char *error, size_t size);

/* plot.c: the same. */
int plot_write(const job *j, const char *path, char *error, size_t size);

/* A file that appears under its name only when it is complete: written beside
 * it, synced, then renamed.  Devices and pipes are written directly, "-" is
 * standard output. */
typedef struct output {
    FILE *f;
    const char *path;
    char temporary[4096];        /* "" when written directly */
} output;

bool output_open(output *out, const char *path, char *error, size_t size);
/* False, with a text, when anything could not be written. */
bool output_close(output *out, char *error, size_t size);
/* Whether path could be written at all, asked before the work begins. */
bool output_possible(const char *path, char *error, size_t size);

#endif
