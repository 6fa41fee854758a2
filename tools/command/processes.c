/* SPDX-License-Identifier: BSD-3-Clause */
/* processes.c - a run by several processes, as mpirun starts them.
 *
 * The library divides the rows of A when it reads them, and reads those rows of
 * M and of blocks.  All processes perform the same steps and agree after each
 * whether one has failed.  Each writes its part of X; only process 0 writes all
 * else: the reports, and the errors of all processes. */
#include "tools/command/job.h"
#include "tools/launch/launcher.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

bool processes_many(const cli_values *v)
{
    return launch_size() > 1 && !(v->mpi && strcmp(v->mpi, "none") == 0);
}

bool processes_divided(const cli_values *v)
{
    return processes_many(v) || v->machine.across_ranks;
}

bool processes_first(const cli_values *v)
{
    return !processes_many(v) || launch_rank() == 0;
}

/* -------------------------------------------------------------- agreement */

/* A failure of this process, in the form in which it is sent to process 0. */
typedef struct failure {
    int code;
    char status[32], message[1200];
} failure;

static void lost(job *j, const char *what)
{
    job_fail(j, EXIT_BUG, "internal_error", "%s", what);
    fprintf(stderr, CLI_PROGRAM ": %s\n", j->end.message);
    sps_comm_abort(j->many.comm, EXIT_BUG);
}

/* Returns the lowest process with a failure of its own, or -1.  A failure that
 * another process has caused counts only if there is no other. */
static int who_failed(job *j, const double *codes)
{
    int peer = -1;

    for (int r = j->many.size - 1; r >= 0; r--)
        if (codes[2 * r] != 0) peer = r;
    for (int r = 0; r < j->many.size; r++)
        if (codes[2 * r] != 0 && codes[2 * r + 1] == 0) return r;
    return peer;
}

/* Process 0 receives the failure of process r; all processes return its
 * code. */
static int take_failure(job *j, int r, int code)
{
    failure f = { .code = j->end.exit_code };
    const sps_message out = { 0, &f, sizeof f }, in = { r, &f, sizeof f };
    sps_status st = SPS_OK;

    snprintf(f.status, sizeof f.status, "%s", j->end.status);
    snprintf(f.message, sizeof f.message, "%s", j->end.message);
    if (r > 0 && j->many.rank == r)
        st = sps_comm_exchange(j->many.comm, &out, 1, NULL, 0);
    else if (r > 0 && j->many.rank == 0)
        st = sps_comm_exchange(j->many.comm, NULL, 0, &in, 1);
    else if (r > 0) st = sps_comm_exchange(j->many.comm, NULL, 0, NULL, 0);
    if (st != SPS_OK) lost(j, sps_context_error(NULL));
    if (j->many.rank == 0 && r > 0) {
        snprintf(j->many.status, sizeof j->many.status, "%s", f.status);
        snprintf(j->end.message, sizeof j->end.message,
                 "process %d of %d: %.1100s", r, j->many.size, f.message);
        j->end.status = j->many.status;
    }
    return j->end.exit_code = code;
}

int processes_agree(job *j, int code)
{
    double *codes;
    sps_status st;
    int r;

    if (j->many.size < 2) return code;
    codes = calloc(2 * (size_t)j->many.size, sizeof *codes);
    if (!codes) {
        lost(j, "no memory for exchanging the state of the processes");
        return j->end.exit_code;
    }
    codes[2 * j->many.rank] = code;
    codes[2 * j->many.rank + 1] = j->many.peer;
    st = sps_comm_sum(j->many.comm, codes, 2 * j->many.size);
    if (st != SPS_OK) lost(j, sps_context_error(NULL));
    r = who_failed(j, codes);
    if (r >= 0) code = take_failure(j, r, (int)codes[2 * r]);
    free(codes);
    return code;
}

int processes_ready(job *j)
{
    const int code = processes_agree(j, 0);

    j->many.told = code != 0;
    return code;
}

/* ---------------------------------------------------------------- beginning */

/* Returns an option whose file is standard input, which only one process could
 * read, or NULL. */
static const char *reads_stdin(const cli_values *v)
{
    static char name[64];
    const cli_option *o;
    char value[PATH_MAX], dashed[32];

    for (int i = 0; (o = cli_row(i)); i++) {
        const char *path = o->stream != CLI_INPUT ? NULL
                         : cli_text(o, v, value, sizeof value);

        if (!path || strcmp(path, "-")) continue;
        snprintf(name, sizeof name, "%s -",
                 cli_dashed(o->name, dashed, sizeof dashed));
        return name;
    }
    return NULL;
}

/* Rejects options that are not supported with several processes. */
static int refuse(job *j)
{
    const cli_values *v = &j->opt;
    const char *what = cli_given(v, "sigma") ? "-sigma"
                     : v->file.convert ? "-convert"
                     : v->laplacian ? "-laplacian"
                     : v->file.rigid_body ? "-rigid-body" : reads_stdin(v);

    if (!what) return 0;
    if (j->many.size < 2)
        return job_fail(j, EXIT_USAGE, "usage", "%s is not supported with "
                        "-across-ranks", what);
    return job_fail(j, EXIT_USAGE, "usage", "%s is not supported with several "
                    "processes; -mpi none makes each process a separate run",
                    what);
}

int processes_open(job *j)
{
    const bool many = processes_many(&j->opt);
    const sps_status st = many ? sps_comm_mpi(SPS_MPI_WORLD, &j->many.comm)
                               : SPS_OK;

    j->many.on = true;
    j->many.size = 1;
    j->many.rank = many ? launch_rank() : 0;
    if (st != SPS_OK)
        return job_fail(j, EXIT_USAGE, "usage", "started as one of %d "
                        "processes: %s; -mpi none makes each process a "
                        "separate run", launch_size(),
                        sps_context_error(NULL));
    if (many) sps_comm_shape(j->many.comm, &j->many.rank, &j->many.size);
    if (j->many.rank > 0)
        j->opt.json = j->opt.plot = j->opt.monitor = NULL;
    if (refuse(j)) return j->end.exit_code;
    if (!strcmp(j->opt.partition, "morton")) j->opt.settings.reorder = "morton";
    if (!strcmp(j->opt.partition, "metis")) j->opt.settings.reorder = "metis";
    j->many.place = j->opt.on.place == SPS_CUDA ? SPS_CUDA : SPS_HOST;
    /* Files are read by a context on the host. */
    j->opt.on.place = SPS_HOST;
    return 0;
}

int processes_context(job *j)
{
    sps_context_options co = j->opt.machine;
    sps_context *ctx = NULL;
    const char *error = NULL;
    sps_status st;

    co.place = j->many.place;
    co.device = j->opt.on.ordinal;
    if (co.threads == 0) co.threads = launch_threads(j->info.threads);
    co.comm = j->many.comm;
    st = sps_context_create(&co, &ctx, &error);
    if (st != SPS_OK) return job_failed_in(j, NULL, st, false);
    j->many.reader = j->ctx;
    j->ctx = ctx;
    job_limit(j);
    signals_context(ctx);
    st = sps_context_information(ctx, &j->info);
    return st == SPS_OK ? 0 : job_failed(j, st, false);
}

/* --------------------------------------------------------------------- rows */

int64_t processes_entries(job *j, const sps_csr *A)
{
    double nnz = (double)A->nnz;

    if (j->many.size > 1 && sps_comm_sum(j->many.comm, &nnz, 1) != SPS_OK)
        lost(j, sps_context_error(NULL));
    return (int64_t)nnz;
}

int processes_divide(job *j)
{
    if (!j->many.on) return 0;
    if (j->system.complex)
        return job_fail(j, EXIT_USAGE, "unfit", "%s: a complex matrix is not "
                        "supported with %s", j->opt.file.A, j->many.size > 1 ?
                        "several processes" : "-across-ranks");
    if (j->system.n < j->many.size)
        return job_fail(j, EXIT_USAGE, "unfit", "%s: %lld rows for %d "
                        "processes; each needs at least one", j->opt.file.A,
                        (long long)j->system.n, j->many.size);
    j->system.nnz = processes_entries(j, j->A);
    j->many.first = j->A->first;
    j->many.own = j->A->nrow;
    return 0;
}

/* ------------------------------------------------------------------ results */

/* Process 0 receives the rows of X from process r. */
static sps_status receive_rows(job *j, const int64_t *first, int r, double *x)
{
    const size_t bytes = (size_t)((first[r + 1] - first[r]) * j->k) * sizeof *x;
    const sps_message m = { r, x + first[r] * j->k, bytes };

    return sps_comm_exchange(j->many.comm, NULL, 0, &m, 1);
}

/* Gathers the rows of X of all processes in one block. */
static sps_status gather(job *j, const double *first_of, double *x,
                         sps_block **whole_p)
{
    int64_t *first = calloc((size_t)j->many.size + 1, sizeof *first);
    sps_status st = first ? SPS_OK : SPS_ENOMEM;

    for (int r = 0; st == SPS_OK && r < j->many.size; r++)
        first[r] = (int64_t)first_of[r];
    if (st == SPS_OK) first[j->many.size] = j->system.n;
    for (int r = 1; st == SPS_OK && r < j->many.size; r++)
        st = receive_rows(j, first, r, x);
    if (st == SPS_OK)
        st = sps_block_create(j->many.reader, j->system.n, j->k, whole_p);
    if (st == SPS_OK)
        st = sps_block_set(*whole_p, 0, j->k, x, j->k, SPS_ROW_MAJOR, SPS_HOST);
    free(first);
    return st;
}

/* Process 0 receives the rows of X from the others, as a block of
 * j->many.reader, which it writes. */
static int gather_and_write(job *j)
{
    const int64_t rows = j->many.rank == 0 ? j->system.n : j->many.own;
    double *x = malloc((size_t)(rows * j->k + 1) * sizeof *x);
    double *first = calloc((size_t)j->many.size, sizeof *first);
    sps_block *whole = NULL;
    sps_status st = SPS_OK;
    int code = 0;

    if (!x || !first)
        code = job_fail(j, EXIT_MEMORY, "out_of_memory", "no memory for the "
                        "%lld rows of X that are gathered", (long long)rows);
    code = processes_agree(j, code);
    if (code == 0) {
        first[j->many.rank] = (double)j->many.first;
        st = sps_block_get(j->X, 0, j->k, x, j->k, SPS_ROW_MAJOR, SPS_HOST);
        if (st == SPS_OK && j->many.size > 1)
            st = sps_comm_sum(j->many.comm, first, j->many.size);
        if (st == SPS_OK && j->many.rank == 0) {
            st = gather(j, first, x, &whole);
        } else if (st == SPS_OK) {
            const sps_message m = { 0, x, (size_t)(rows * j->k) * sizeof *x };

            st = sps_comm_exchange(j->many.comm, &m, 1, NULL, 0);
        }
        if (st != SPS_OK) lost(j, "the rows of X could not be gathered");
    }
    if (whole) st = sps_block_write(whole, j->opt.file.out, false);
    if (whole && st != SPS_OK)
        code = job_failed_in(j, j->many.reader, st, false);
    sps_block_destroy(&whole);
    free(x);
    free(first);
    return processes_agree(j, code);
}

bool processes_write(job *j, char *text, size_t size)
{
    const sps_status st = sps_block_write(j->X, j->opt.file.out, false);
    job before;
    int code;

    memcpy(&before.end, &j->end, sizeof j->end);
    j->many.peer = false;
    if (st == SPS_EUNFIT)           /* on all */
        code = gather_and_write(j);
    else
        code = processes_agree(j, st == SPS_OK ? 0 : job_failed(j, st, false));
    snprintf(text, size, "%s", code ? j->end.message : "");
    memcpy(&j->end, &before.end, sizeof j->end);
    return code == 0;
}

void processes_end(job *j)
{
    double code = j->many.rank == 0 ? j->end.exit_code : 0;

    if (j->many.size < 2) return;
    if (sps_comm_sum(j->many.comm, &code, 1) != SPS_OK)
        lost(j, sps_context_error(NULL));
    else
        j->end.exit_code = (int)code;
}

void processes_close(job *j)
{
    sps_comm_destroy(&j->many.comm);
}
