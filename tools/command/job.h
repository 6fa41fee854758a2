/* SPDX-License-Identifier: BSD-3-Clause */
/* job.h - one run of the command: options, objects, results.  main.c and
 * job*.c fill it; report.c, json.c and plot.c only read it. */
#ifndef JOB_H
#define JOB_H

#include "tools/command/cli.h"
#include "tools/command/progress.h"

typedef struct job {
    cli_values opt;
    struct {
        double start;            /* job_now() when the program began */
        double read, setup, total;
    } seconds;

    sps_context *ctx;
    struct {
        sps_comm *comm;
        int rank, size;
        sps_context *reader;     /* in which files were read, alone */
        sps_place place;         /* of the solve; files are read on the host */
        int64_t first, own;      /* own rows of A */
        bool peer;               /* only another process has failed */
        char status[32];         /* of a failure there */
    } many;                      /* several processes; else NULL and 0 */
    sps_csr *A, *M;
    sps_block *B, *X, *basis, *Y, *coords;
    sps_operator *op, *mass_op;
    sps_solver *solver;
    sps_result result;           /* arrays belong to solver */
    sps_eigen_result eigen;      /* of -eigs; the same */
    bool solved;                 /* result is filled */
    bool attempted;              /* X holds the best iterate, solved or not */

    struct {
        sps_read_info read;
        sps_laplacian_info graph;  /* of -laplacian */
        bool complex, rectangular;
        int64_t n, nnz;          /* complex systems: of the complex one; 0: not
                                    known yet */
    } system;
    int k;
    sps_context_info info;
    char place_note[200];        /* why -device auto chose the host, or "" */
    struct {
        size_t base;             /* resident, without what the library
                                    allocated */
        size_t host;             /* peak: measured, or predicted (dry run) */
    } bytes;

    progress progress;
    bool wrote;                  /* X has been written */

    struct {
        int exit_code;
        const char *status;      /* "converged", "bad_input", ... */
        char message[1200];      /* one sentence, or "" */
        char advice[400];        /* what to try next, or "" */
    } end;
} job;

/* Monotonic seconds. */
double job_now(void);

/* job.c: the steps.  Each returns 0 or the exit code, which is also in
 * j->end.exit_code. */
int job_context(job *j);
int job_read(job *j);          /* job_read.c */
int job_set_up(job *j);
/* Dry run on a GPU: runs one iteration and discards it, since the driver loads
 * a kernel at its first use, and the memory of that would not be counted. */
void job_warm_up(job *j);
int job_solve(job *j);
int job_fail(job *j, int code, const char *status, const char *format, ...)
    CLI_PRINTF(4, 5);
/* Records a failure of the library: its text and our exit code; reading: it
 * occurred while a file was read. */
int job_failed(job *j, sps_status st, bool reading);
/* place.c: the place for the context; with -device auto it is predicted from
 * the sizes of the files. */
sps_place place_choose(job *j);
/* Seconds left of -max-seconds; 0: no limit. */
double job_seconds_left(const job *j);
/* Records that the time limit was reached while files were read. */
int job_late(job *j);
/* convert.c: the whole of a run with -convert; prints what was done. */
void convert_run(job *j);
/* job_read.c, also for convert.c and job_eigen.c.  Blocks have the rows of A;
 * exit codes as above. */
void job_read_options(job *j, sps_read_options *ro);
/* -laplacian: replaces the adjacency matrix W by A = D - W. */
int job_laplacian(job *j);
int job_read_csr(job *j, const char *path, sps_read_info *info, sps_csr **A_p);
int job_read_block(job *j, const char *path, sps_block **X_p);
int job_zeros(job *j, sps_block **X_p);
/* job_eigen.c: the same steps for -eigs. */
int eigen_read(job *j);
sps_status eigen_set_up(job *j, sps_options *o);
sps_status eigen_solve(job *j);
void eigen_report(const job *j, FILE *f);
/* What to try if the eigensolver stagnated. */
const char *eigen_suggestion(const job *j);
/* What to try if the solve did not converge; "" if nothing. */
const char *job_advice(const job *j);

/* processes.c: a run by several processes that mpirun has started, unless -mpi
 * none.  Until processes_open the environment says which process this is. */
bool processes_many(const cli_values *v);
bool processes_first(const cli_values *v);
int processes_open(job *j);
/* What has failed on one process has failed on all: returns the exit code of
 * the lowest that failed, whose message process 0 has then.  Alone: code. */
int processes_agree(job *j, int code);
/* After job_read: each keeps its rows, in a context of all. */
int processes_spread(job *j);
/* If X is to be written process 0 gets all rows of it. */
int processes_gather(job *j);
/* All end with the exit code of process 0. */
void processes_end(job *j);
void processes_close(job *j);

/* Resident memory of this process. */
size_t job_resident(void);

/* signals.c */
void signals_catch(progress *p);
/* Number of the signal that requested the end, 0 if none did. */
int signals_caught(void);
/* After `seconds` (0: never) cancels the running call; signals_late is true
 * from then on. */
void signals_deadline(double seconds);
bool signals_late(void);
/* The context to cancel, or NULL. */
void signals_context(sps_context *ctx);

/* report.c */
void report_print(const job *j, FILE *f);
void report_explain(const job *j, FILE *f);
double report_median(const double *x, int k);
/* "12.3 MB" */
const char *report_bytes(double bytes, char *text, size_t size);

/* json.c.  Returns EXIT_CONVERGED, or EXIT_OUTPUT with a text in error. */
int json_write(const job *j, const char *path, char *error, size_t size);

/* plot.c.  Returns the same. */
int plot_write(const job *j, const char *path, char *error, size_t size);

#endif
