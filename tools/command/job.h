/* SPDX-License-Identifier: BSD-3-Clause */
/* job.h - one run of the command: its options, objects and results.  main.c and
 * job*.c fill the struct; report.c, json.c and plot.c only read it. */
#ifndef JOB_H
#define JOB_H

#include "tools/command/cli.h"
#include "tools/command/progress.h"

typedef struct job {
    cli_values opt;
    struct {
        double start;            /* job_now() at the start of the program */
        double read, setup, total;
    } seconds;

    sps_context *ctx;
    struct {
        bool on;                 /* rows are divided: several processes, or
                                    -across-ranks */
        sps_comm *comm;
        int rank, size;
        sps_context *reader;     /* context of one process, in which X is
                                    gathered */
        sps_place place;         /* place of the solve; files are read on the
                                    host */
        int64_t first, own;      /* first own row of A, and number of own
                                    rows */
        bool peer;               /* the failure is that of another process, not
                                    of this one */
        bool told;               /* processes_ready has told of a failure */
        char status[32];         /* status word of that failure */
    } many;                      /* false, NULL and 0 if rows are not
                                    divided */
    sps_csr *A, *M;
    sps_block *B, *X, *basis, *near_null, *Y, *coords;
    sps_operator *op, *mass_op;
    sps_solver *solver;
    sps_result result;           /* its arrays belong to solver */
    sps_eigen_result eigen;      /* result of -eigs; its arrays belong to
                                    solver */
    struct {
        bool attempted;          /* X contains the best iterate, whether it
                                    converged or not */
        bool solved;             /* the solve has ended, so that `result` is
                                    valid */
        bool wrote;              /* X has been written */
    } done;

    struct {
        sps_read_info read;
        sps_laplacian_info graph;  /* properties of the graph of -laplacian */
        bool complex, rectangular;
        int64_t mass;            /* entries of M */
        int64_t n, nnz;          /* for complex systems, of the complex system;
                                    0 if not known yet */
    } system;
    int k;
    sps_context_info info;
    char place_note[200];        /* the reason why -device auto chose the host,
                                    or "" */
    struct {
        size_t base;             /* resident bytes without those that the
                                    library allocated */
        size_t host;             /* peak bytes, measured or (dry run)
                                    predicted */
    } bytes;

    progress progress;

    struct {
        int exit_code;
        const char *status;      /* "converged", "bad_input", ... */
        char message[1200];      /* one sentence about the failure, or "" */
        char advice[400];        /* what to try next, or "" */
    } end;
} job;

/* Returns the time of a monotonic clock in seconds. */
double job_now(void);

/* job.c: the steps of a run.  Each returns 0 or the exit code, which is also in
 * j->end.exit_code. */
int job_context(job *j);
/* Applies -max-bytes to the context j->ctx. */
void job_limit(job *j);
int job_read(job *j);          /* job_read.c */
int job_set_up(job *j);
/* For a dry run on a GPU: runs one iteration and discards its result, since the
 * driver loads a kernel at its first use, and the memory for that would not be
 * counted otherwise. */
void job_warm_up(job *j);
int job_solve(job *j);
/* Returns the text of the stop reason.  With -damp a residual remains of any
 * right-hand side, so that it says nothing of the range of A. */
const char *job_stop_string(const job *j);
int job_fail(job *j, int code, const char *status, const char *format, ...)
    CLI_PRINTF(4, 5);
/* Records a failure of the library with its text, and returns our exit code;
 * reading: it occurred while a file was read. */
int job_failed(job *j, sps_status st, bool reading);
/* Records a failure of the library, as job_failed does, for a call that was
 * made in ctx and not in j->ctx. */
int job_failed_in(job *j, const sps_context *ctx, sps_status st, bool reading);
/* place.c: returns the place for the context; with -device auto it is predicted
 * from the sizes of the files. */
sps_place place_choose(job *j);
/* Returns the seconds left of -max-seconds; 0: no limit. */
double job_seconds_left(const job *j);
/* Records that the time limit was reached while files were read. */
int job_late(job *j);
/* convert.c: performs a run with -convert, and prints what was done. */
void convert_run(job *j);
/* job_read.c, used also by convert.c and job_eigen.c.  Blocks must have as many
 * rows as A; exit codes as above. */
void job_read_options(job *j, sps_read_options *ro);
/* -laplacian: replaces the adjacency matrix W by A = D - W. */
int job_laplacian(job *j);
int job_read_csr(job *j, const char *path, sps_read_info *info, sps_csr **A_p);
/* Reads j->M, a real matrix with the shape of A. */
int job_read_mass(job *j, const char *path, sps_read_info *info);
int job_read_block(job *j, const char *path, sps_block **X_p);
int job_zeros(job *j, sps_block **X_p);
/* job_eigen.c: reading, set-up and solve for -eigs. */
int eigen_read(job *j);
sps_status eigen_set_up(job *j, sps_options *o);
sps_status eigen_solve(job *j);
void eigen_report(const job *j, FILE *f);
/* Returns what to try if the eigensolver stagnated. */
const char *eigen_suggestion(const job *j);
/* Returns what to try if rounding limits some pairs. */
const char *eigen_rounding(const job *j);
/* Returns what to try if the solve did not converge, or "" if there is no
 * advice. */
const char *job_advice(const job *j);

/* processes.c: a run by several processes that mpirun has started, unless -mpi
 * none is given, or by one that computes as several would (-across-ranks).
 * Before processes_open is called, environment variables tell
 * which process this is. */
bool processes_many(const cli_values *v);
bool processes_divided(const cli_values *v);
bool processes_first(const cli_values *v);
int processes_open(job *j);
/* Makes all processes fail if one has failed: returns the exit code of the
 * lowest process that failed, whose message process 0 receives.  With one
 * process it returns code. */
int processes_agree(job *j, int code);
/* Makes j->ctx a context that includes all processes, in which A is read; the
 * one of this process alone becomes j->many.reader. */
int processes_context(job *j);
/* Called when all processes have read A: checks that its rows can be divided
 * among them, and stores which rows this process has in j->many.  With one
 * process it does nothing. */
int processes_divide(job *j);
/* Returns the number of entries of the rows of A of all processes. */
int64_t processes_entries(job *j, const sps_csr *A);
/* Writes X, of which each process has some rows, to one file: each process
 * writes its part, or, where that is not possible, process 0 gathers the rows
 * and writes them.  Returns whether the file is complete; if not, process 0 has
 * the reason in text. */
bool processes_write(job *j, char *text, size_t size);
/* To be called before a call of the library that all processes make, while
 * files are read: returns 0, or the exit code of a process that has failed and
 * is at the agreement after job_read, which is then over for this one, too. */
int processes_ready(job *j);
/* Makes all processes end with the exit code of process 0. */
void processes_end(job *j);
void processes_close(job *j);

/* Returns the memory of this process in bytes by its kind, "VmRSS:" for what is
 * resident, "VmHWM:" for the most so far; 0 if that is not known. */
size_t job_memory(const char *key);

/* signals.c */
void signals_catch(progress *p);
/* Returns the number of the signal that requested the end, or 0. */
int signals_caught(void);
/* After `seconds` (0: never) cancels the running call; signals_late returns
 * true from then on. */
void signals_deadline(double seconds);
bool signals_late(void);
/* Sets the context to be cancelled, or NULL. */
void signals_context(sps_context *ctx);

/* report.c */
void report_print(const job *j, FILE *f);
double report_median(const double *x, int k);

/* json.c: returns EXIT_CONVERGED, or EXIT_OUTPUT with a text in error. */
int json_write(const job *j, const char *path, char *error, size_t size);

/* plot.c: returns EXIT_CONVERGED, or EXIT_OUTPUT with a text in error. */
int plot_write(const job *j, const char *path, char *error, size_t size);

#endif
