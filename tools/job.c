/* SPDX-License-Identifier: BSD-3-Clause */
/* job.c - the steps of a run: context, reading, set-up, solve.  Each returns
 * an exit code; the first that is not 0 ends the run.  This file alone turns
 * codes of the library into exit codes. */
#include "job.h"

#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>


int job_fail(job *j, int code, const char *status, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    vsnprintf(j->message, sizeof j->message, format, list);
    va_end(list);
    j->status = status;
    j->exit_code = code;
    return code;
}

/* The exit code of a failure of the library; reading: while the named file
 * was read. */
static int exit_of_status(sps_status st, bool reading)
{
    switch (st) {
    case SPS_OK: return EXIT_CONVERGED;
    case SPS_EINVAL:
    case SPS_EUNFIT: return EXIT_USAGE;
    case SPS_EABSENT: return reading ? EXIT_INPUT : EXIT_USAGE;
    case SPS_ESHAPE:
    case SPS_EMATRIX:
    case SPS_EPARSE: return EXIT_INPUT;
    case SPS_EIO: return reading ? EXIT_INPUT : EXIT_OUTPUT;
    case SPS_ENOMEM:
    case SPS_EDEVMEM: return EXIT_MEMORY;
    case SPS_EDEVICE: return EXIT_GPU;
    case SPS_EUSER:
    case SPS_EBUG: break;
    }
    return EXIT_BUG;
}

/* The exit code of a solve that ran. */
static int exit_of_stop(sps_stop stop)
{
    switch (stop) {
    case SPS_STOP_CONVERGED: return EXIT_CONVERGED;
    case SPS_STOP_MAX_ITERATIONS:
    case SPS_STOP_MAX_TIME:
    case SPS_STOP_MISSED:
    case SPS_STOP_ROUNDING:
    case SPS_STOP_STAGNATED: return EXIT_NOT_CONVERGED;
    case SPS_STOP_BREAKDOWN:
    case SPS_STOP_INDEFINITE:
    case SPS_STOP_NOT_FINITE:
    case SPS_STOP_SINGULAR:
    case SPS_STOP_MASS_INDEFINITE:
    case SPS_STOP_PRECOND_INDEFINITE: return EXIT_BREAKDOWN;
    case SPS_STOP_INTERRUPTED:
        return 128 + (signals_caught() ? signals_caught() : SIGINT);
    case SPS_STOP_RUNNING: break;
    }
    return EXIT_BUG;
}

static const char *name_of_exit(int code)
{
    switch (code) {
    case EXIT_USAGE: return "usage";
    case EXIT_INPUT: return "bad_input";
    case EXIT_MEMORY: return "out_of_memory";
    case EXIT_GPU: return "gpu_failure";
    case EXIT_OUTPUT: return "output_failed";
    }
    return "internal_error";
}

/* The library failed: its text, our code. */
static int failed(job *j, sps_status st, bool reading)
{
    int code = exit_of_status(st, reading);
    const char *text = sps_context_error(j->ctx);

    if (signals_caught() && reading)
        return job_fail(j, 128 + signals_caught(), "interrupted",
                    "interrupted while reading: there is no iterate yet");
    return job_fail(j, code,
                    st == SPS_EUNFIT ? "unfit" : name_of_exit(code), "%s",
                    *text ? text : sps_status_string(st));
}

size_t job_resident(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    char text[128] = "", *second = NULL;

    if (!f) return 0;
    if (fgets(text, sizeof text, f)) second = strchr(text, ' ');
    fclose(f);
    return second ? (size_t)strtoull(second, NULL, 10) *
                        (size_t)sysconf(_SC_PAGESIZE)
                  : 0;
}

static int known_kernel(job *j)
{
    const bool gpu = j->info.place == SPS_CUDA;
    const char *kind = gpu ? "kernel.cuda" : "kernel.cpu";
    const char *other = gpu ? "kernel.cpu" : "kernel.cuda";
    const char *names[128], *name, *near;
    int n = 0;

    if (strcmp(j->opt.kernel, "auto") == 0) return 0;
    if (strcmp(j->opt.kernel, "measure") == 0) return 0;
    for (int i = 0; n < 128 && (name = sps_list(j->ctx, kind, i)); i++) {
        if (strncmp(name, "sddmm.", 6) == 0) continue;   /* no product A X */
        names[n++] = name;
        if (strcmp(name, j->opt.kernel) == 0) return 0;
    }
    for (int i = 0; (name = sps_list(NULL, other, i)); i++)
        if (strcmp(name, j->opt.kernel) == 0)
            return job_fail(j, EXIT_USAGE, "usage", "-kernel: %s runs on %s, "
                        "and the device is %s", name, gpu ? "the host"
                        : "a GPU", gpu ? "a GPU" : "the host");
    near = cli_nearest(j->opt.kernel, names, n);
    return job_fail(j, EXIT_USAGE, "usage",
                "-kernel: unknown name '%s'%s%s%s; 'solve -list' has all",
                j->opt.kernel, near ? "; did you mean " : "",
                near ? near : "", near ? "?" : "");
}

int job_context(job *j)
{
    sps_context_options co;
    const char *error = NULL;
    sps_status st;

    sps_context_options_default(&co);
    co.place = j->opt.place;
    co.device = j->opt.ordinal;
    co.threads = j->opt.threads;
    co.seed = j->opt.seed;
    st = sps_context_create(&co, &j->ctx, &error);
    if (st != SPS_OK) {
        int code = st == SPS_EABSENT ? EXIT_GPU : exit_of_status(st, false);
        return job_fail(j, code, name_of_exit(code), "%s",
                    error ? error : sps_status_string(st));
    }
    signals_context(j->ctx);
    j->info.struct_size = sizeof j->info;
    st = sps_context_information(j->ctx, &j->info);
    if (st != SPS_OK) return failed(j, st, false);
    size_t now = job_resident();
    j->base_bytes = now > j->info.host_bytes ? now - j->info.host_bytes : 0;
    return known_kernel(j);
}

static void read_options(job *j, sps_read_options *ro)
{
    memset(ro, 0, sizeof *ro);
    ro->struct_size = sizeof *ro;
    ro->lenient = j->opt.lenient;
    ro->strict = j->opt.strict;
    ro->allow_nonfinite = j->opt.allow_nonfinite;
    ro->max_bytes = j->opt.maxmem;
    ro->progress = progress_reading;
    ro->progress_data = &j->progress;
}

static int interrupted_early(job *j)
{
    if (!signals_caught()) return 0;
    return job_fail(j, 128 + signals_caught(), "interrupted",
                "interrupted while reading: there is no iterate yet");
}

int job_read_csr(job *j, const char *path, sps_read_info *info, sps_csr **A_p)
{
    sps_read_options ro;
    sps_status st;

    read_options(j, &ro);
    st = sps_csr_read(j->ctx, path, &ro, info, A_p);
    return st == SPS_OK ? 0 : failed(j, st, true);
}

static int read_matrix(job *j)
{
    int64_t n;
    int code;

    j->read.struct_size = sizeof j->read;
    code = job_read_csr(j, j->opt.A, &j->read, &j->A);
    if (code) return code;
    n = j->A->nrow;
    j->complex_system = (j->A->props & SPS_INTERLEAVED) != 0;
    j->n = j->complex_system ? n / 2 : n;
    j->nnz = j->complex_system ? j->A->nnz / 4 : j->A->nnz;
    if (n != j->A->ncol)
        return job_fail(j, EXIT_INPUT, "bad_input",
                    "%s: the matrix has %lld rows and %lld columns; only "
                    "square systems are solved, least squares (LSQR) is not "
                    "offered", j->opt.A, (long long)j->n,
                    (long long)(j->complex_system ? j->A->ncol / 2
                                                  : j->A->ncol));
    if (n == 0)
        return job_fail(j, EXIT_INPUT, "bad_input", "%s: the matrix is empty",
                    j->opt.A);
    return interrupted_early(j);
}

/* -laplacian: A becomes D - W. */
static int make_laplacian(job *j)
{
    sps_csr *L = NULL;
    sps_status st;

    j->graph.struct_size = sizeof j->graph;
    st = sps_csr_laplacian(j->ctx, j->A, &j->graph, &L);
    if (st != SPS_OK) return failed(j, st, true);
    sps_csr_destroy(j->ctx, &j->A);
    j->A = L;
    j->nnz = L->nnz;
    return interrupted_early(j);
}

/* A block from a file, of the rows that A has. */
int job_read_block(job *j, const char *path, sps_block **X_p)
{
    sps_read_options ro;
    sps_status st;
    int64_t rows;

    read_options(j, &ro);
    st = sps_block_read(j->ctx, path, &ro, j->complex_system, X_p);
    if (st != SPS_OK) return failed(j, st, true);
    sps_block_shape(*X_p, &rows, NULL);
    if (rows != j->A->nrow)
        return job_fail(j, EXIT_INPUT, "bad_input",
                    "%s: %lld rows, but the matrix has %lld", path,
                    (long long)(j->complex_system ? rows / 2 : rows),
                    (long long)j->n);
    return interrupted_early(j);
}

static int right_hand_sides(job *j)
{
    sps_status st;
    int code;

    if (j->opt.B) {
        code = job_read_block(j, j->opt.B, &j->B);
        if (code) return code;
        sps_block_shape(j->B, NULL, &j->k);
        if (j->opt.given_nrhs && j->opt.nrhs != j->k)
            return job_fail(j, EXIT_USAGE, "usage",
                        "-nrhs says %d, but %s has %d columns", j->opt.nrhs,
                        j->opt.B, j->k);
        return 0;
    }
    j->k = j->opt.nrhs;
    st = sps_block_create(j->ctx, j->A->nrow, j->k, &j->B);
    if (st == SPS_OK) st = sps_block_random(j->B, j->opt.seed);
    return st == SPS_OK ? 0 : failed(j, st, false);
}

int job_zeros(job *j, sps_block **X_p)
{
    sps_status st = sps_block_create(j->ctx, j->A->nrow, j->k, X_p);

    return st == SPS_OK ? 0 : failed(j, st, false);
}

static int guess(job *j)
{
    int code, k;

    if (!j->opt.x0) return job_zeros(j, &j->X);
    code = job_read_block(j, j->opt.x0, &j->X);
    if (code) return code;
    sps_block_shape(j->X, NULL, &k);
    if (k != j->k)
        return job_fail(j, EXIT_INPUT, "bad_input",
                    "%s: %d columns, but there are %d right-hand sides",
                    j->opt.x0, k, j->k);
    return 0;
}

static bool named_nullspace(const char *name)
{
    static const char *const names[] = {"none", "auto", "constant",
                                        "components"};

    for (int i = 0; i < 4; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

/* What is no name must be a file; it may be a name misspelt. */
static int null_basis(job *j)
{
    const char *path = j->opt.nullspace;

    if (strcmp(path, "-") != 0 && access(path, R_OK) != 0)
        return job_fail(j, EXIT_INPUT, "bad_input",
                        "-nullspace %s: neither none, auto, constant, "
                        "components nor a file that can be read", path);
    return job_read_block(j, path, &j->basis);
}

/* -coords: the places of the nodes. */
static int places(job *j)
{
    const char *path = j->opt.coords;
    sps_read_options ro;
    sps_status st;
    int64_t nodes = 0;
    int d = 0;

    read_options(j, &ro);
    st = sps_block_read(j->ctx, path, &ro, false, &j->coords);
    if (st != SPS_OK) return failed(j, st, true);
    sps_block_shape(j->coords, &nodes, &d);
    if (d > 3 || nodes == 0 || j->A->nrow % nodes != 0)
        return job_fail(j, EXIT_INPUT, "bad_input", "%s: %lld nodes of %d "
                        "coordinates; up to 3 are wanted, and the %lld "
                        "unknowns are not shared out evenly", path,
                        (long long)nodes, d, (long long)j->A->nrow);
    return 0;
}

/* -rigid-body: the basis from the coordinates of the nodes. */
static int rigid_motions(job *j)
{
    const char *path = j->opt.rigid_body;
    sps_block *coords = NULL;
    sps_read_options ro;
    sps_status st;
    int64_t nodes = 0;
    int d = 0;

    read_options(j, &ro);
    st = sps_block_read(j->ctx, path, &ro, false, &coords);
    if (st != SPS_OK) return failed(j, st, true);
    sps_block_shape(coords, &nodes, &d);
    if (nodes * d != j->A->nrow || j->complex_system)
        job_fail(j, EXIT_INPUT, "bad_input", "%s: %lld nodes of %d coordinates "
                 "are %lld unknowns, but the matrix has %lld%s", path,
                 (long long)nodes, d, (long long)(nodes * d),
                 (long long)j->n, j->complex_system ? ", complex" : "");
    else if ((st = sps_block_rigid_body(coords, &j->basis)) != SPS_OK)
        failed(j, st, true);
    sps_block_destroy(&coords);
    return j->exit_code ? j->exit_code : interrupted_early(j);
}

int job_read(job *j)
{
    double began = job_now();
    int code = read_matrix(j);

    if (code == 0 && j->opt.laplacian) code = make_laplacian(j);
    if (code == 0 && j->opt.eigs) {
        code = eigen_read(j);
    } else {
        if (code == 0) code = right_hand_sides(j);
        if (code == 0) code = guess(j);
    }
    if (code == 0 && j->opt.coords) code = places(j);
    if (code == 0 && j->opt.rigid_body) code = rigid_motions(j);
    else if (code == 0 && !named_nullspace(j->opt.nullspace))
        code = null_basis(j);
    j->sec_read = job_now() - began;
    return code;
}

static void solver_options(job *j, sps_options *o)
{
    const cli_values *v = &j->opt;

    sps_options_default(o);
    o->solver = v->solver;
    o->precond = v->precond;
    o->kernel = v->kernel;
    o->nullspace = j->basis ? "none" : v->nullspace;
    if (v->laplacian && v->eigs && !strcmp(o->nullspace, "auto"))
        o->nullspace = "components";     /* eigensolvers find none themselves */
    o->nullspace_basis = j->basis;
    o->wisdom = v->wisdom;
    o->rtol = v->rtol;
    o->atol = v->atol;
    o->norm = v->norm_kind;
    o->max_iterations = v->maxit;
    o->max_seconds = v->maxtime;
    o->block_size = v->precond_block;
    o->degree = v->precond_degree;
    o->scale = v->scale;
    o->reorder = v->reorder;
    o->coords = j->coords;
    o->order = v->order;
    o->dense = v->dense;
    o->precision = v->precision;
    o->basis = v->basis;
    o->precond_precision = v->precond_precision;
    o->power = v->fsai_power;
    o->droptol = v->droptol;
    o->fill = v->fill;
    o->restart = v->restart;
    o->flexible = v->flexible;
    o->strict_nonfinite = v->strict_nonfinite;
    o->recycle = v->recycle;
    o->bicgstab_l = v->bicgstab_l;
    o->idr_s = v->idr_s;
    o->rank_tolerance = v->rank_tol;
    o->monitor = progress_iteration;   /* SIGUSR1 asks it too */
    o->monitor_data = &j->progress;
}

int job_set_up(job *j)
{
    double began = job_now();
    sps_options o;
    sps_status st;

    progress_say(&j->progress, true, "setting up");
    solver_options(j, &o);
    if (j->opt.dry_run) {
        o.max_iterations = 1;
        o.monitor = NULL;
    }
    if (j->opt.eigs) {
        st = eigen_set_up(j, &o);
        j->sec_setup = job_now() - began;
        return st == SPS_OK ? 0 : failed(j, st, false);
    }
    st = sps_operator_csr(j->ctx, j->A, j->k, &o, &j->op);
    if (st == SPS_OK)
        st = sps_solver_create(j->op, NULL, j->k, &o, &j->solver);
    j->sec_setup = job_now() - began;
    return st == SPS_OK ? 0 : failed(j, st, false);
}

void job_warm_up(job *j)
{
    if (!j->solver || !j->X || j->info.place != SPS_CUDA) return;
    if (j->opt.eigs)
        (void)sps_solver_eigen(j->solver, j->X, NULL, NULL);
    else
        (void)sps_solver_linear(j->solver, j->B, j->X, NULL);
}

int job_solve(job *j)
{
    sps_status st;

    j->progress.target = j->opt.norm_kind == SPS_NORM_ABSOLUTE ? j->opt.atol
                                                               : j->opt.rtol;
    j->progress.limit = j->opt.maxit;
    j->progress.seconds_limit = j->opt.maxtime;
    j->result.struct_size = sizeof j->result;
    j->attempted = true;
    st = j->opt.eigs ? eigen_solve(j)
                     : sps_solver_linear(j->solver, j->B, j->X, &j->result);
    if (st != SPS_OK) return failed(j, st, false);
    j->solved = true;
    j->exit_code = exit_of_stop(j->result.stop);
    j->status = sps_stop_name(j->result.stop);
    snprintf(j->message, sizeof j->message, "%s",
             sps_stop_string(j->result.stop));
    return 0;
}

/* What to try when the solve did not get there. */
const char *job_advice(const job *j)
{
    const sps_result *r = &j->result;

    if (!j->solved) return "";
    switch (r->stop) {
    case SPS_STOP_MAX_ITERATIONS:
    case SPS_STOP_MAX_TIME:
        if (strcmp(r->precond, "none") == 0)
            return "-precond jacobi or ilu0, or a larger limit "
                   "(-maxit, -maxtime)";
        return "another -precond (ilu0, ilut, chebyshev), a larger limit "
               "(-maxit, -maxtime), or start from this X with -x0";
    case SPS_STOP_MISSED:
        return "a larger -block, another -seed, or a smaller -rtol";
    case SPS_STOP_ROUNDING:
        return "a larger -rtol, or -atol: rounding, eps ||A||, is above the "
               "tolerance times lambda; -norm backward if that is enough";
    case SPS_STOP_MASS_INDEFINITE:
        return "a positive definite M: eliminate massless unknowns";
    case SPS_STOP_STAGNATED:
        if (j->opt.eigs) return "another -precond, a larger -block or -rtol";
        if (r->worst_backward < 1e-12 && j->opt.norm_kind == SPS_NORM_BACKWARD)
            return "a larger -rtol: the backward error is at rounding level, "
                   "so double precision holds no better X";
        if (r->worst_backward < 1e-12)
            return "-norm backward: the backward error is at rounding level, "
                   "so double precision holds no better X";
        return "another -precond, or -rtol above the residual reached; "
               "-nullspace auto if the matrix is singular";
    case SPS_STOP_INDEFINITE:
        return "-solver auto or minres, since the matrix is not positive "
               "definite";
    case SPS_STOP_SINGULAR:
        return "-nullspace auto, or -nullspace FILE with a basis";
    case SPS_STOP_PRECOND_INDEFINITE: return "-precond none";
    case SPS_STOP_BREAKDOWN: return "-solver auto or gmres, or another -precond";
    case SPS_STOP_NOT_FINITE:
        return "look for huge or undefined numbers in A, B and x0";
    case SPS_STOP_INTERRUPTED:
        return j->opt.out ? "go on from the X written with -x0" : "";
    case SPS_STOP_RUNNING:
    case SPS_STOP_CONVERGED: break;
    }
    return "";
}
