/* SPDX-License-Identifier: BSD-3-Clause */
/* job.c - the steps of a run: context, set-up, solve (for reading see
 * job_read.c).  Each returns an exit code; the first that is not 0 ends the
 * run.  Only this file converts status codes of the library to exit codes. */
#include "core/options.h"
#include "io/number/nearest.h"
#include "tools/command/job.h"

#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int job_fail(job *j, int code, const char *status, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    vsnprintf(j->end.message, sizeof j->end.message, format, list);
    va_end(list);
    j->end.status = status;
    j->end.exit_code = code;
    return code;
}

/* Returns the exit code for a failure of the library; reading: it occurred
 * while a file named by the user was read. */
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
    case SPS_EPEER:
    case SPS_EBUG: break;
    }
    return EXIT_BUG;
}

/* Returns the exit code for a solve that ran. */
static int exit_of_stop(sps_stop stop)
{
    switch (stop) {
    case SPS_STOP_CONVERGED:
    case SPS_STOP_CONVERGED_LEAST_SQUARES: return EXIT_CONVERGED;
    case SPS_STOP_LEAST_SQUARES:
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

int job_late(job *j)
{
    return job_fail(j, EXIT_NOT_CONVERGED, "max_time", "time limit reached "
                    "while reading: there is no iterate yet");
}

int job_failed(job *j, sps_status st, bool reading)
{
    return job_failed_in(j, j->ctx, st, reading);
}

int job_failed_in(job *j, const sps_context *ctx, sps_status st, bool reading)
{
    int code = exit_of_status(st, reading);
    const char *text = sps_context_error(ctx);

    j->many.peer = st == SPS_EPEER;
    if (signals_late() && reading) return job_late(j);
    if (signals_caught() && reading)
        return job_fail(j, 128 + signals_caught(), "interrupted",
                    "interrupted while reading: there is no iterate yet");
    return job_fail(j, code,
                    st == SPS_EUNFIT ? "unfit" : name_of_exit(code), "%s",
                    *text ? text : sps_status_string(st));
}

size_t job_memory(const char *key)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    size_t bytes = 0;

    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, key, strlen(key)) == 0)
            bytes = (size_t)strtoull(line + strlen(key), NULL, 10) * 1024;
    if (f) fclose(f);
    return bytes;
}

static int known_kernel(job *j)
{
    const bool gpu = j->info.place == SPS_CUDA;
    const char *kind = gpu ? "kernel.cuda" : "kernel.cpu";
    const char *other = gpu ? "kernel.cpu" : "kernel.cuda";
    const char *asked = j->opt.settings.kernel, *name, *near = NULL;
    int limit = INT_MAX;

    if (strcmp(asked, "auto") == 0) return 0;
    if (strcmp(asked, "measure") == 0) return 0;
    for (int i = 0; (name = sps_list(j->ctx, kind, i)); i++) {
        /* Kernels of SDDMM do not compute a product A X, so -kernel cannot
         * choose them. */
        if (strncmp(name, "sddmm.", 6) == 0) continue;
        if (strcmp(name, asked) == 0) return 0;
        if (spsi_nearer(asked, name, &limit)) near = name;
    }
    for (int i = 0; (name = sps_list(NULL, other, i)); i++)
        if (strcmp(name, asked) == 0)
            return job_fail(j, EXIT_USAGE, "usage", "-kernel: %s runs on %s, "
                        "and the device is %s", name, gpu ? "the host"
                        : "a GPU", gpu ? "a GPU" : "the host");
    return job_fail(j, EXIT_USAGE, "usage",
                "-kernel: unknown name '%s'%s%s%s; '" CLI_PROGRAM " -list' "
                "lists all",
                asked, near ? "; did you mean " : "",
                near ? near : "", near ? "?" : "");
}

void job_limit(job *j)
{
    if (j->opt.max_bytes) spsi_limit_host(j->ctx, j->opt.max_bytes);
}

int job_context(job *j)
{
    sps_context_options co = j->opt.machine;
    const char *error = NULL;
    sps_status st;

    co.place = place_choose(j);
    co.device = j->opt.on.ordinal;
    co.across_ranks = false;     /* processes_context opens that context */
    st = sps_context_create(&co, &j->ctx, &error);
    if (st != SPS_OK) {
        int code = st == SPS_EABSENT ? EXIT_GPU : exit_of_status(st, false);
        return job_fail(j, code, name_of_exit(code), "%s",
                    error ? error : sps_status_string(st));
    }
    job_limit(j);
    signals_context(j->ctx);
    j->info.struct_size = sizeof j->info;
    st = sps_context_information(j->ctx, &j->info);
    if (st != SPS_OK) return job_failed(j, st, false);
    size_t now = job_memory("VmRSS:");
    j->bytes.base = now > j->info.host_bytes ? now - j->info.host_bytes : 0;
    return known_kernel(j);
}

double job_seconds_left(const job *j)
{
    const double limit = j->opt.settings.max_seconds;

    return limit > 0 ? fmax(1e-3, limit - (job_now() - j->seconds.start)) : 0;
}

/* Sets the library's options from those of the user and the blocks read for
 * them. */
static void solver_options(job *j, sps_options *o)
{
    const cli_values *v = &j->opt;

    *o = v->settings;
    if (j->basis) o->nullspace = "none";
    if (v->laplacian && !strcmp(o->nullspace, "auto"))
        o->nullspace = "components";     /* the option asked for this
                                            explicitly */
    o->max_seconds = job_seconds_left(j);
    o->nullspace_basis = j->basis;
    o->near_null_basis = j->near_null;
    o->coords = j->coords;
    o->monitor = progress_iteration;   /* also prints the line of progress for
                                          SIGUSR1 */
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
        if (!j->opt.eigs && !strcmp(o.factors, "auto")) o.factors = "predict";
    }
    if (j->opt.eigs) {
        st = eigen_set_up(j, &o);
        j->seconds.setup = job_now() - began;
        return st == SPS_OK ? 0 : job_failed(j, st, false);
    }
    st = sps_operator_csr(j->ctx, j->A, j->k, &o, &j->op);
    o.max_seconds = job_seconds_left(j);
    if (st == SPS_OK)
        st = sps_solver_create(j->op, NULL, j->k, &o, &j->solver);
    /* A random B is projected onto the range of A, so that A X = B has a
     * solution. */
    if (st == SPS_OK && !j->opt.file.B)
        st = sps_solver_project(j->solver, j->B);
    j->seconds.setup = job_now() - began;
    return st == SPS_OK ? 0 : job_failed(j, st, false);
}

void job_warm_up(job *j)
{
    if (!j->solver || !j->X || j->info.place != SPS_CUDA) return;
    if (j->opt.eigs)
        (void)sps_solver_eigen(j->solver, j->X, NULL, NULL);
    else
        (void)sps_solver_linear(j->solver, j->B, j->X, NULL);
}

const char *job_stop_string(const job *j)
{
    const sps_stop stop = j->result.stop;

    if (stop == SPS_STOP_CONVERGED_LEAST_SQUARES && j->opt.settings.damp > 0)
        return "converged in the sense of damped least squares";
    return sps_stop_string(stop);
}

int job_solve(job *j)
{
    const sps_options *o = &j->opt.settings;
    sps_status st;

    j->progress.target = o->norm == SPS_NORM_ABSOLUTE ? o->atol : o->rtol;
    j->progress.limit = o->max_iterations;
    j->progress.seconds_limit = job_seconds_left(j);
    j->result.struct_size = sizeof j->result;
    j->done.attempted = true;
    st = j->opt.eigs ? eigen_solve(j)
                     : sps_solver_linear(j->solver, j->B, j->X, &j->result);
    if (st != SPS_OK) return job_failed(j, st, false);
    j->done.solved = true;
    j->end.exit_code = exit_of_stop(j->result.stop);
    j->end.status = sps_stop_name(j->result.stop);
    snprintf(j->end.message, sizeof j->end.message, "%s",
             job_stop_string(j));
    return 0;
}

/* Returns whether a restarted method (GMRES, GCRO-DR) reached the end of a
 * cycle. */
static bool has_cycles(const job *j)
{
    return (strstr(j->result.solver, "gmres") ||
            strstr(j->result.solver, "gcrodr")) &&
           j->result.iterations > j->opt.settings.restart;
}

/* Returns what to try if a method of least squares stagnated or reached a
 * limit; -precond jacobi only if it was not used. */
static const char *least_advice(const sps_result *r)
{
    const bool scaled = strcmp(r->precond, "none") != 0;

    if (r->stop == SPS_STOP_STAGNATED)
        return scaled ? "a larger -rtol, or a larger -damp"
                      : "a larger -rtol, -precond jacobi, or a larger -damp";
    return scaled
        ? "a larger limit (-max-iterations, -max-seconds), or a larger -damp"
        : "-precond jacobi, which scales the columns of A, a larger limit "
          "(-max-iterations, -max-seconds), or a larger -damp";
}

/* Returns what to try if the solve did not converge. */
const char *job_advice(const job *j)
{
    const sps_result *r = &j->result;

    if (!j->done.solved) return "";
    switch (r->stop) {
    case SPS_STOP_MAX_ITERATIONS:
    case SPS_STOP_MAX_TIME:
        if (r->normal) return least_advice(r);
        if (strcmp(r->precond, "none") == 0)
            return "-precond jacobi or ilu0, or a larger limit "
                   "(-max-iterations, -max-seconds)";
        return "another -precond (ilu0, ilut, chebyshev), a larger limit "
               "(-max-iterations, -max-seconds), or start from this X with -x0";
    case SPS_STOP_MISSED:
        return "a larger -block, another -seed, or a smaller -rtol";
    case SPS_STOP_ROUNDING:
        if (j->opt.eigs) return eigen_rounding(j);
        if (j->opt.settings.norm == SPS_NORM_BACKWARD)
            return "a larger -rtol: the backward error is at rounding level, "
                   "so there is no better X in double precision";
        return "a larger -rtol, or -atol: rounding of x alone, eps |A||x|, is "
               "above the tolerance; -norm backward if that is enough";
    case SPS_STOP_MASS_INDEFINITE:
        return "a positive definite M: eliminate massless unknowns";
    case SPS_STOP_STAGNATED:
        if (j->opt.eigs) return eigen_suggestion(j);
        if (r->normal) return least_advice(r);
        if (r->worst_backward < 1e-12 &&
            j->opt.settings.norm == SPS_NORM_BACKWARD)
            return "a larger -rtol: the backward error is at rounding level, "
                   "so there is no better X in double precision";
        if (r->worst_backward < 1e-12)
            return "-norm backward: the backward error is at rounding level, "
                   "so there is no better X in double precision";
        if (has_cycles(j))
            return "a longer -restart, another -precond, or -rtol above the "
                   "residual reached; -nullspace auto if the matrix is "
                   "singular";
        return "another -precond, or -rtol above the residual reached; "
               "-nullspace auto if the matrix is singular";
    case SPS_STOP_INDEFINITE:
        return "-solver auto or minres, since the matrix is not positive "
               "definite";
    case SPS_STOP_SINGULAR:
        return "-nullspace auto, or -nullspace FILE with a basis; -solver lsmr "
               "for a solution in the sense of least squares";
    case SPS_STOP_PRECOND_INDEFINITE: return "-precond none";
    case SPS_STOP_BREAKDOWN: return "-solver auto or gmres, or another -precond";
    case SPS_STOP_NOT_FINITE:
        if (strcmp(r->solver, "block_cg") == 0)
            return "-solver cg: products of whole blocks may overflow where "
                   "its norms do not; or look for very large numbers, NaN and "
                   "infinity in A, B and x0";
        if (strcmp(r->precond, "none") != 0)
            return "another -precond, since applying this one may overflow; "
                   "or look for very large numbers, NaN and infinity in A, B "
                   "and x0";
        return "look for huge or undefined numbers in A, B and x0";
    case SPS_STOP_INTERRUPTED:
        return j->opt.file.out ? "continue from the X that was written, by -x0"
                               : "";
    case SPS_STOP_LEAST_SQUARES:
        return "-solver lsmr, or -nullspace constant, components or FILE, if a "
               "solution in the sense of least squares is what is wanted; else "
               "right-hand sides without a part in the null space";
    case SPS_STOP_RUNNING:
    case SPS_STOP_CONVERGED:
    case SPS_STOP_CONVERGED_LEAST_SQUARES: break;
    }
    return "";
}
