/* SPDX-License-Identifier: BSD-3-Clause */
/* report.c - prints the report as text: what was read, what was chosen and why,
 * the results, their cost, and what to try next.  Every residual printed here
 * was recomputed from A, X and B after the iteration. */
#include "tools/command/job.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { INDENT = 14 };

/* Writes a number of bytes as "12.3 MB", and returns text. */
static const char *size_of(double bytes, char *text, size_t size)
{
    static const char *const unit[] = {"bytes", "kB", "MB", "GB", "TB"};
    int i = 0;

    while (bytes >= 1000 && i < 4) bytes /= 1000, i++;
    snprintf(text, size, i == 0 || bytes >= 99.95 ? "%.0f %s" : "%.1f %s",
             bytes, unit[i]);
    return text;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Returns the median of k values; NaN counts as infinite, as in the worst
 * residual. */
double report_median(const double *x, int k)
{
    double *y = k > 0 ? malloc((size_t)k * sizeof *y) : NULL, m = NAN;

    if (!y) return m;
    for (int j = 0; j < k; j++) y[j] = isnan(x[j]) ? INFINITY : x[j];
    qsort(y, (size_t)k, sizeof *y, ascending);
    m = k % 2 ? y[k / 2] : 0.5 * (y[k / 2 - 1] + y[k / 2]);
    free(y);
    return m;
}

static void label(FILE *f, const char *name)
{
    fprintf(f, "  %-11s ", name);
}

CLI_PRINTF(3, 4)
static void say(FILE *f, const char *name, const char *format, ...)
{
    va_list list;

    label(f, name);
    va_start(list, format);
    vfprintf(f, format, list);
    va_end(list);
}

static void wrapped(FILE *f, const char *name, const char *text)
{
    label(f, name);
    cli_wrap(f, text, INDENT, INDENT);
}

/* Writes a decimal number in groups of three digits: 4 096 000. */
static const char *grouped(int64_t x, char *text, size_t size)
{
    char plain[32];
    int length = snprintf(plain, sizeof plain, "%lld", (long long)x);
    size_t at = 0;

    for (int i = 0; i < length && at + 2 < size; i++) {
        if (i && (length - i) % 3 == 0) text[at++] = ' ';
        text[at++] = plain[i];
    }
    text[at] = 0;
    return text;
}

static void graph(const job *j, FILE *f)
{
    const sps_laplacian_info *g = &j->system.graph;
    char edges[40];

    say(f, "graph", "its Laplacian: %s edges, %lld connected component%s",
        grouped(g->edges, edges, sizeof edges), (long long)g->components,
        g->components == 1 ? "" : "s");
    if (g->isolated > 0)
        fprintf(f, ", %lld of a single vertex", (long long)g->isolated);
    fputc('\n', f);
}

static void matrix(const job *j, FILE *f)
{
    char n[40], nnz[40];

    if (!j->A) return;
    say(f, "matrix", "%s: %s row%s, ",
        strcmp(j->opt.file.A, "-") ? j->opt.file.A : "standard input",
        grouped(j->system.n, n, sizeof n), j->system.n == 1 ? "" : "s");
    if (j->system.rectangular)
        fprintf(f, "%s columns, ",
                grouped(j->system.complex ? j->A->ncol / 2 : j->A->ncol, n,
                        sizeof n));
    fprintf(f, "%s entr%s, %s %s%s\n",
            grouped(j->system.nnz, nnz, sizeof nnz),
            j->system.nnz == 1 ? "y" : "ies", j->system.read.field,
            j->system.read.symmetry, j->system.read.array ? ", dense" : "");
    if (j->system.complex)
        say(f, "", "solved as the equivalent real system of twice the size\n");
    if (j->opt.laplacian && j->system.graph.vertices > 0) graph(j, f);
    if (j->M)
        say(f, "mass", "%s: %s entries\n", j->opt.file.mass,
            grouped(j->system.mass, nnz, sizeof nnz));
    if (j->k == 0 || j->opt.eigs) return;
    if (j->opt.file.B)
        say(f, "rhs", "%s: %d column%s\n", j->opt.file.B, j->k,
            j->k == 1 ? "" : "s");
    else
        say(f, "rhs", "%d column%s drawn from seed %llu, uniform in [-1/2, "
            "1/2)%s\n", j->k, j->k == 1 ? "" : "s",
            (unsigned long long)j->opt.machine.seed,
            j->done.solved && j->result.nullspace > 0
                ? ", less their part in the null space" : "");
}

static void notes(const job *j, FILE *f)
{
    const char *note;

    if (*j->place_note) wrapped(f, "note", j->place_note);
    for (int i = 0; j->many.reader &&
                    (note = sps_context_note(j->many.reader, i)); i++)
        wrapped(f, "note", note);
    for (int i = 0; j->ctx && (note = sps_context_note(j->ctx, i)); i++)
        wrapped(f, "note", note);
}

static void halo(const job *j, FILE *f)
{
    int64_t rows, most;
    int neighbours;

    sps_operator_halo(j->op, &rows, &most, &neighbours);
    say(f, "halo", "%lld rows, %.3g %% of all, are sent for a product; at most "
        "%lld to one process, by %d others\n", (long long)rows,
        100 * (double)rows / (double)j->system.n, (long long)most,
        neighbours);
}

static void method(const job *j, FILE *f)
{
    if (j->ctx) say(f, "device", "%s\n", j->info.device);
    if (j->many.size > 1) {
        say(f, "processes", "%d, each with rows of its own\n", j->many.size);
        if (j->op) halo(j, f);
    }
    if (j->done.solved)
        say(f, "method", "%s, preconditioner %s, kernel %s\n",
            j->result.solver, j->result.precond, j->result.kernel);
    else if (j->op)
        say(f, "kernel", "%s\n", sps_operator_kernel(j->op));
    notes(j, f);
}

/* Prints how well X meets the normal equations, and of what that is a part: see
 * sps_result.normal. */
static void normal_equations(const job *j, FILE *f)
{
    const sps_result *r = &j->result;
    const double median = report_median(r->normal, r->k);

    say(f, "normal", "worst %.2e, median %.2e: ", r->worst_normal, median);
    if (j->opt.settings.damp > 0) {
        fprintf(f, "||A'r - d^2 x|| of |A| |r|,\n");
        say(f, "", "where d is damp, |A|^2 = ||A||^2 + d^2 and\n");
        say(f, "", "|r|^2 = ||r||^2 + d^2 ||x||^2; it is 0 of a solution\n");
        return;
    }
    fprintf(f, "||A'r|| of ||A|| ||r||, which\n");
    say(f, "", "is 0 of a solution in the sense of least squares\n");
}

static void outcome(const job *j, FILE *f)
{
    const sps_result *r = &j->result;
    char text[256];

    if (!j->done.solved) {
        wrapped(f, "status", *j->end.message ? j->end.message : j->end.status);
        return;
    }
    snprintf(text, sizeof text,
             "%s; %d of %d %s converged in %d iteration%s",
             job_stop_string(j), r->columns_converged, r->k,
             j->opt.eigs ? "pairs" : "columns", r->iterations,
             r->iterations == 1 ? "" : "s");
    wrapped(f, "status", text);
    if (j->opt.eigs) {
        eigen_report(j, f);
        return;
    }
    say(f, "residual", "worst %.2e, median %.2e of ||b||, recomputed from X\n",
        r->worst_residual, report_median(r->residual, r->k));
    say(f, "", "in %s\n", r->in_doubles ? "doubles, by the caller's function"
                                        : "twice the working precision");
    if (r->normal) normal_equations(j, f);
    say(f, "backward", "worst %.2e, median %.2e of ||A|| ||x|| + ||b||,\n",
        r->worst_backward, report_median(r->backward, r->k));
    say(f, "", "with ||A|| at least %.4g (estimate of the 2-norm)\n",
        r->norm_A);
    if (r->nullspace > 0) {
        say(f, "null space", "dimension %d projected out; it contained %.2e of "
            "||B||\n", r->nullspace, r->removed);
        say(f, "", "residual without it: worst %.2e of ||b|| without it\n",
            r->worst_in_range);
    }
    if (r->restarts > 0)
        say(f, "replaced", "the residual %d time%s: it had drifted, or a cycle "
            "gained nothing\n", r->restarts, r->restarts == 1 ? "" : "s");
    if (r->min_width > 0 && r->min_width < r->k)
        say(f, "width", "as few as %d of %d directions: the other columns had "
            "converged or were dependent\n", r->min_width, r->k);
}

static void costs(const job *j, FILE *f)
{
    const sps_seconds *t = &j->result.seconds;
    char host[32], device[32];

    say(f, "seconds", "read %.3f, set-up %.3f", j->seconds.read,
        j->seconds.setup);
    if (!j->done.solved) {
        fputc('\n', f);
    } else {
        fprintf(f, ", solve %.3f, verify %.3f, total %.3f\n", t->solve,
                t->verify, j->seconds.total);
        say(f, "", "in the solve: product %.3f, precond %.3f, Gram %.3f, "
            "small %.3f\n", t->spmm, t->precond, t->gram, t->small);
    }
    say(f, "memory", "host %s at most",
        size_of((double)j->bytes.host, host, sizeof host));
    if (j->info.place == SPS_CUDA)
        fprintf(f, ", GPU %s", size_of((double)j->info.device_peak,
                                       device, sizeof device));
    fputc('\n', f);
}

static void predicted(const job *j, FILE *f)
{
    const bool floats = strcmp(j->opt.settings.precision, "mixed") == 0 ||
                        strcmp(j->opt.settings.precision,
                               "single_basis") == 0;
    const bool least = j->system.rectangular || j->opt.settings.damp > 0;
    const bool first = !j->opt.eigs && !least &&
                       strcmp(j->opt.settings.solver, "auto") == 0;
    char text[32];

    fprintf(f, "  dry run: set up, not solved. A run will need at most%s%s\n",
            first ? ", in the first step of auto" : "",
            floats ? ", except as a note says" : "");
    fprintf(f, "    host memory   %s (%zu bytes)\n",
            size_of((double)j->bytes.host, text, sizeof text),
            j->bytes.host);
    if (j->info.place == SPS_CUDA)
        fprintf(f, "    GPU memory    %s (%zu bytes), %s free before\n",
                size_of((double)j->info.device_peak, text, sizeof text),
                j->info.device_peak,
                size_of((double)(j->info.device_free + j->info.device_bytes),
                        (char[32]){""}, 32));
}

/* Like sps_solver_describe, which prints the preconditioner of a solver. */
static size_t describe_solver(const void *of, char *text, size_t size)
{
    return sps_solver_describe(of, text, size);
}

static size_t describe_operator(const void *of, char *text, size_t size)
{
    return sps_operator_describe(of, text, size);
}

static void description(FILE *f, const char *title, const void *of,
                        size_t (*describe)(const void *, char *, size_t))
{
    const size_t size = describe(of, NULL, 0) + 1;
    char *text = malloc(size);

    if (!text) return;
    describe(of, text, size);
    fprintf(f, "\n%s%s%s", title, text,
            size > 1 && text[size - 2] == '\n' ? "" : "\n");
    free(text);
}

static void explain(const job *j, FILE *f)
{
    if (j->op) description(f, "", j->op, describe_operator);
    if (j->solver)
        description(f, "preconditioner ", j->solver, describe_solver);
}

static const char *problem(const job *j)
{
    if (j->opt.eigs)
        return j->opt.file.mass ? "A x = lambda M x" : "A x = lambda x";
    if (j->opt.settings.damp > 0) return "min ||A X - B||^2 + d^2 ||X||^2";
    return j->system.rectangular ? "min ||A X - B||" : "A X = B";
}

void report_print(const job *j, FILE *f)
{
    fprintf(f, CLI_PROGRAM " %s: %s\n", sps_version(), problem(j));
    matrix(j, f);
    method(j, f);
    if (j->opt.dry_run && j->end.exit_code == 0) {
        predicted(j, f);
    } else {
        outcome(j, f);
        costs(j, f);
    }
    if (j->done.wrote && strcmp(j->opt.file.out, "-") != 0)
        say(f, "written", "%s\n", j->opt.file.out);
    if (*j->end.advice) wrapped(f, "try next", j->end.advice);
    if (j->opt.explain || j->opt.dry_run) explain(j, f);
}
