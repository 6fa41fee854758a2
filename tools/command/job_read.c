/* SPDX-License-Identifier: BSD-3-Clause */
/* job_read.c - reads or generates the input of a run before its set-up: the
 * matrix, right-hand sides, a guess, a null space, coordinates of the nodes. */
#include "io/stream/unwritten.h"
#include "tools/command/job.h"

#include <stdlib.h>
#include <string.h>

void job_read_options(job *j, sps_read_options *ro)
{
    memset(ro, 0, sizeof *ro);
    ro->struct_size = sizeof *ro;
    ro->lenient = j->opt.read.lenient;
    ro->strict = j->opt.read.strict;
    ro->allow_nonfinite = j->opt.read.allow_nonfinite;
    ro->partition = strcmp(j->opt.partition, "rows") ? "nnz" : "rows";
    ro->max_bytes = j->opt.max_bytes;
    ro->progress = progress_reading;
    ro->progress_data = &j->progress;
}

static int interrupted_early(job *j)
{
    if (signals_late()) return job_late(j);
    if (!signals_caught()) return 0;
    return job_fail(j, 128 + signals_caught(), "interrupted",
                "interrupted while reading: there is no iterate yet");
}

int job_read_csr(job *j, const char *path, sps_read_info *info, sps_csr **A_p)
{
    sps_read_options ro;
    sps_status st;

    job_read_options(j, &ro);
    st = sps_csr_read(j->ctx, path, &ro, info, A_p);
    return st == SPS_OK ? 0 : job_failed(j, st, true);
}

/* Returns the rows of A, of all processes. */
static int64_t rows(const job *j)
{
    return j->A->whole > 0 ? j->A->whole : j->A->nrow;
}

int job_read_mass(job *j, const char *path, sps_read_info *info)
{
    const int64_t n = rows(j), own = j->many.on ? j->many.own : n;
    sps_read_options ro;
    sps_status st;
    int code = processes_ready(j);

    if (code) return code;
    job_read_options(j, &ro);
    st = sps_csr_read_rows(j->ctx, path, &ro, info, j->many.first, own, n,
                           &j->M);
    if (st != SPS_OK) return job_failed(j, st, true);
    if (!strcmp(info->field, "complex"))
        return job_fail(j, EXIT_USAGE, "unfit", "%s is complex; A x = lambda M "
                        "x is solved for real symmetric matrices", path);
    j->system.mass = processes_entries(j, j->M);
    return 0;
}

/* Rejects, before the work, a file for X that has no complex numbers. */
static int check_out(job *j)
{
    const char *out = j->opt.file.out;
    const size_t length = out ? strlen(out) : 0;

    if (!j->system.complex || !length ||
        (!spsi_name_ends(out, length, ".petsc") &&
         !spsi_name_ends(out, length, ".petsc.gz")))
        return 0;
    return job_fail(j, EXIT_USAGE, "unfit", "-o %s: %s is complex, and a "
                    "complex X cannot be written for PETSc: write .mtx or "
                    ".npy", out, j->opt.file.A);
}

static int read_matrix(job *j)
{
    int64_t n;
    int code;

    j->system.read.struct_size = sizeof j->system.read;
    code = job_read_csr(j, j->opt.file.A, &j->system.read, &j->A);
    if (code) return code;
    n = rows(j);
    j->system.complex = (j->A->props & SPS_INTERLEAVED) != 0;
    j->system.rectangular = n != j->A->ncol;
    j->system.n = j->system.complex ? n / 2 : n;
    j->system.nnz = j->system.complex ? j->A->nnz / 4 : j->A->nnz;
    if ((code = check_out(j))) return code;
    if (n != j->A->ncol && (j->opt.eigs || j->opt.laplacian))
        return job_fail(j, EXIT_INPUT, "bad_input",
                    "%s: the matrix has %lld rows and %lld columns; %s needs a "
                    "square one", j->opt.file.A, (long long)j->system.n,
                    (long long)(j->system.complex ? j->A->ncol / 2
                                                  : j->A->ncol),
                    j->opt.eigs ? "-eigs" : "-laplacian");
    if (n == 0 || j->A->ncol == 0)
        return job_fail(j, EXIT_INPUT, "bad_input", "%s: the matrix is empty",
                    j->opt.file.A);
    code = processes_divide(j);
    return code ? code : interrupted_early(j);
}

int job_laplacian(job *j)
{
    sps_csr *L = NULL;
    sps_status st;

    j->system.graph.struct_size = sizeof j->system.graph;
    st = sps_csr_laplacian(j->ctx, j->A, &j->system.graph, &L);
    if (st != SPS_OK) return job_failed(j, st, true);
    sps_csr_destroy(j->ctx, &j->A);
    j->A = L;
    j->system.nnz = L->nnz;
    return interrupted_early(j);
}

/* Reads a block that must have `wanted` rows; of several processes, each keeps
 * its own. */
static int read_rows(job *j, const char *path, int64_t wanted, const char *what,
                     sps_block **X_p)
{
    sps_read_options ro;
    sps_status st;
    int64_t n;
    int code = processes_ready(j);

    if (code) return code;
    job_read_options(j, &ro);
    st = j->many.on
        ? sps_block_read_rows(j->ctx, path, &ro, j->many.first, j->many.own,
                              wanted, X_p)
        : sps_block_read(j->ctx, path, &ro, j->system.complex, X_p);
    if (st != SPS_OK) return job_failed(j, st, true);
    sps_block_shape(*X_p, &n, NULL);
    if (!j->many.on && n != wanted)
        return job_fail(j, EXIT_INPUT, "bad_input",
                    "%s: %lld rows, but the matrix has %lld%s", path,
                    (long long)(j->system.complex ? n / 2 : n),
                    (long long)(j->system.complex ? wanted / 2 : wanted), what);
    return interrupted_early(j);
}

int job_read_block(job *j, const char *path, sps_block **X_p)
{
    return read_rows(j, path, rows(j), "", X_p);
}

static int right_hand_sides(job *j)
{
    sps_status st;
    int code;

    if (j->opt.file.B) {
        code = job_read_block(j, j->opt.file.B, &j->B);
        if (code) return code;
        sps_block_shape(j->B, NULL, &j->k);
        if (cli_given(&j->opt, "nrhs") && j->opt.nrhs != j->k)
            return job_fail(j, EXIT_USAGE, "usage",
                        "-nrhs is %d, but %s has %d column%s", j->opt.nrhs,
                        j->opt.file.B, j->k, j->k == 1 ? "" : "s");
        return 0;
    }
    j->k = j->opt.nrhs;
    st = sps_block_create(j->ctx, j->A->nrow, j->k, &j->B);
    if (st == SPS_OK)
        st = sps_block_random_rows(j->B, j->opt.machine.seed, j->many.first);
    return st == SPS_OK ? 0 : job_failed(j, st, false);
}

int job_zeros(job *j, sps_block **X_p)
{
    const int64_t n = j->A->whole > 0 ? j->A->nrow : j->A->ncol;
    sps_status st = sps_block_create(j->ctx, n, j->k, X_p);

    return st == SPS_OK ? 0 : job_failed(j, st, false);
}

static int guess(job *j)
{
    int code, k;

    if (!j->opt.file.x0) return job_zeros(j, &j->X);
    code = read_rows(j, j->opt.file.x0, j->A->ncol,
                     j->A->ncol == rows(j) ? "" : " columns", &j->X);
    if (code) return code;
    sps_block_shape(j->X, NULL, &k);
    if (k != j->k)
        return job_fail(j, EXIT_INPUT, "bad_input",
                    "%s: %d columns, but there are %d right-hand sides",
                    j->opt.file.x0, k, j->k);
    return 0;
}

/* Checks the shape of the coordinates. */
static int check_places(job *j, int64_t nodes, int64_t d)
{
    const char *path = j->opt.file.coords;

    if (d > 3)
        return job_fail(j, EXIT_INPUT, "bad_input", "%s: %lld coordinates for "
                        "each node; there must be 1 to 3", path, (long long)d);
    if (nodes == 0 || j->system.n % nodes != 0)
        return job_fail(j, EXIT_INPUT, "bad_input", "%s: %lld nodes; the "
                        "number of unknowns, %lld, is not a multiple of it",
                        path, (long long)nodes, (long long)j->system.n);
    return 0;
}

/* Of several processes, each reads the coordinates of its own nodes. */
static int own_places(job *j)
{
    const char *path = j->opt.file.coords;
    sps_read_options ro;
    sps_status st;
    int64_t nodes, d, unknowns;
    int code;

    st = sps_file_sizes(j->many.reader, path, &nodes, &d, NULL);
    if (st != SPS_OK) return job_failed_in(j, j->many.reader, st, true);
    code = check_places(j, nodes, d);
    if (code) return code;
    unknowns = j->system.n / nodes;
    if (j->many.first % unknowns || j->many.own % unknowns)
        return job_fail(j, EXIT_USAGE, "unfit", "%s: the nodes have %lld "
                        "unknowns, and a process begins within a node", path,
                        (long long)unknowns);
    code = processes_ready(j);
    if (code) return code;
    job_read_options(j, &ro);
    st = sps_block_read_rows(j->ctx, path, &ro, j->many.first / unknowns,
                             j->many.own / unknowns, nodes, &j->coords);
    return st == SPS_OK ? 0 : job_failed(j, st, true);
}

/* -coords: reads the coordinates of the nodes. */
static int places(job *j)
{
    sps_read_options ro;
    sps_status st;
    int64_t nodes;
    int d;

    if (j->many.on) return own_places(j);
    job_read_options(j, &ro);
    st = sps_block_read(j->ctx, j->opt.file.coords, &ro, false, &j->coords);
    if (st != SPS_OK) return job_failed(j, st, true);
    sps_block_shape(j->coords, &nodes, &d);
    return check_places(j, nodes, d);
}

/* -rigid-body: makes the null space basis from the coordinates of the nodes. */
static int rigid_motions(job *j)
{
    const char *path = j->opt.file.rigid_body;
    sps_block *coords = NULL;
    sps_read_options ro;
    sps_status st;
    int64_t nodes = 0;
    int d = 0;

    job_read_options(j, &ro);
    st = sps_block_read(j->ctx, path, &ro, false, &coords);
    if (st != SPS_OK) return job_failed(j, st, true);
    sps_block_shape(coords, &nodes, &d);
    if (nodes * d != j->A->nrow || j->system.complex)
        job_fail(j, EXIT_INPUT, "bad_input", "%s: %lld nodes of %d coordinates "
                 "are %lld unknowns, but the matrix has %lld%s", path,
                 (long long)nodes, d, (long long)(nodes * d),
                 (long long)j->system.n, j->system.complex ? ", complex" : "");
    else if ((st = sps_block_rigid_body(coords, &j->basis)) != SPS_OK)
        job_failed(j, st, true);
    sps_block_destroy(&coords);
    return j->end.exit_code ? j->end.exit_code : interrupted_early(j);
}

int job_read(job *j)
{
    double began = job_now();
    int code;

    signals_deadline(job_seconds_left(j));
    code = read_matrix(j);

    if (code == 0 && j->opt.laplacian) code = job_laplacian(j);
    if (code == 0 && j->opt.eigs) {
        code = eigen_read(j);
    } else {
        if (code == 0) code = right_hand_sides(j);
        if (code == 0) code = guess(j);
    }
    if (code == 0 && j->opt.file.coords) code = places(j);
    if (code == 0 && j->opt.file.rigid_body) code = rigid_motions(j);
    else if (code == 0 && j->opt.file.nullspace_basis)
        code = job_read_block(j, j->opt.file.nullspace_basis, &j->basis);
    if (code == 0 && j->opt.file.near_null_basis)
        code = job_read_block(j, j->opt.file.near_null_basis, &j->near_null);
    signals_deadline(0);
    if (code == 0 && signals_late()) code = job_late(j);
    j->seconds.read = job_now() - began;
    return code;
}
