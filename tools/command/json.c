/* SPDX-License-Identifier: BSD-3-Clause */
/* json.c - writes the report as JSON (RFC 8259), schema version 2.  All members
 * are always present; a value that does not exist is null, and null_reasons has
 * a member of the same name with the reason. */
#include "io/number/number.h"
#include "tools/command/job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { REASONS = 64, DEPTH = 8 };

typedef struct writer {
    FILE *f;
    int depth;
    bool some[DEPTH];            /* for each depth: a member has been written,
                                    so that a comma must precede the next */
    char reason[REASONS][2][64]; /* name of a member, and why it is null */
    int reasons;
} writer;

/* Returns the number of bytes after the first one of the UTF-8 character at s,
 * or -1 if s is no such character: its byte is then written as U+FFFD, since
 * file names may contain any bytes. */
static int utf8(const unsigned char *s)
{
    int more = s[0] < 0x80 ? 0 : s[0] >= 0xc2 && s[0] < 0xe0 ? 1
             : s[0] >= 0xe0 && s[0] < 0xf0 ? 2
             : s[0] >= 0xf0 && s[0] < 0xf5 ? 3 : -1;

    for (int i = 1; i <= more; i++)
        if ((s[i] & 0xc0) != 0x80) return -1;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return -1;
    return more;
}

static void quote(FILE *f, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;

    fputc('"', f);
    while (*s) {
        int more = utf8(s);
        if (more < 0) fputs("\\ufffd", f), s++;
        else if (*s == '"' || *s == '\\') fprintf(f, "\\%c", *s++);
        else if (*s < 0x20 || *s == 0x7f) fprintf(f, "\\u%04x", *s++);
        else s += fwrite(s, 1, (size_t)more + 1, f);
    }
    fputc('"', f);
}

/* Writes what precedes a member or, if name is NULL, an array element. */
static void begin(writer *w, const char *name)
{
    if (w->some[w->depth]) fputc(',', w->f);
    w->some[w->depth] = true;
    if (!name) return;
    fprintf(w->f, "\n%*s", 2 * (w->depth + 1), "");
    quote(w->f, name);
    fputs(": ", w->f);
}

static void enter(writer *w, const char *name, char bracket)
{
    if (name) begin(w, name);
    fputc(bracket, w->f);
    w->some[++w->depth] = false;
}

static void leave(writer *w, char bracket)
{
    bool some = w->some[w->depth--];

    if (some && bracket == '}') fprintf(w->f, "\n%*s", 2 * (w->depth + 1), "");
    fputc(bracket, w->f);
}

static void null(writer *w, const char *name, const char *why)
{
    begin(w, name);
    fputs("null", w->f);
    for (int i = 0; i < w->reasons; i++)
        if (strcmp(w->reason[i][0], name) == 0) return;
    if (w->reasons == REASONS) return;
    snprintf(w->reason[w->reasons][0], 64, "%s", name);
    snprintf(w->reason[w->reasons++][1], 64, "%s", why);
}

static void text(writer *w, const char *name, const char *value,
                 const char *why)
{
    if (!value) {
        null(w, name, why);
        return;
    }
    begin(w, name);
    quote(w->f, value);
}

static void whole(writer *w, const char *name, int64_t value)
{
    begin(w, name);
    fprintf(w->f, "%lld", (long long)value);
}

static void digits(FILE *f, double x)
{
    char text[SPSI_NUMBER_WIDTH];
    const int length = spsi_number_print(x, text);

    fprintf(f, "%.*s", length, text);
}

static const char *odd(double x)
{
    return isnan(x) ? "not a number" : "infinite";
}

static void real(writer *w, const char *name, double x)
{
    if (!isfinite(x)) {
        null(w, name, odd(x));
        return;
    }
    begin(w, name);
    digits(w->f, x);
}

/* Writes the member `name`: x if it is known, otherwise null, with the reason
 * `why` in null_reasons. */
static void maybe(writer *w, const char *name, bool known, double x,
                  const char *why)
{
    if (known) real(w, name, x);
    else null(w, name, why);
}

static void column_numbers(writer *w, const char *name, const double *x, int k)
{
    int bad = -1;

    enter(w, name, '[');
    for (int j = 0; j < k; j++) {
        begin(w, NULL);
        if (isfinite(x[j])) digits(w->f, x[j]);
        else fputs("null", w->f), bad = j;
    }
    leave(w, ']');
    if (bad >= 0 && w->reasons < REASONS) {
        snprintf(w->reason[w->reasons][0], 64, "%s", name);
        snprintf(w->reason[w->reasons++][1], 64, "column %d is %s", bad + 1,
                 odd(x[bad]));
    }
}

static void columns(writer *w, const job *j)
{
    const sps_result *r = &j->result;

    column_numbers(w, "residuals", r->residual, j->done.solved ? r->k : 0);
    column_numbers(w, "backward_errors", r->backward,
                   j->done.solved ? r->k : 0);
    column_numbers(w, "normal_residuals", r->normal,
                   j->done.solved && r->normal ? r->k : 0);
    enter(w, "column_status", '[');
    for (int i = 0; j->done.solved && i < r->k; i++) {
        begin(w, NULL);
        quote(w->f, sps_stop_name(r->column[i]));
    }
    leave(w, ']');
}

/* Writes the JSON members of the eigenpairs, except the residuals. */
static void pairs(writer *w, const job *j)
{
    const sps_eigen_result *e = &j->eigen;
    const char *why = !j->opt.eigs ? "a linear system"
                    : j->opt.dry_run ? "dry run" : "nothing was solved";
    bool ok = j->opt.eigs && j->done.solved;

    column_numbers(w, "eigenvalues", e->lambda, ok ? e->count : 0);
    column_numbers(w, "eigenvalue_bounds", e->bound, ok ? e->count : 0);
    maybe(w, "pairs_converged", ok, e->converged, why);
    maybe(w, "orthogonality", ok, e->orthogonality, why);
    maybe(w, "norm_M_estimate", ok, e->norm_M, why);
    maybe(w, "applies_mass", ok, (double)e->applies_M, why);
    maybe(w, "block", ok, e->block, why);
    maybe(w, "missed_eigenvalues", ok && e->missed >= 0, e->missed,
          ok ? "not searched for" : why);
}

static void problem(writer *w, const job *j)
{
    static const char why[] = "the matrix was not read";

    text(w, "matrix", j->opt.file.A, "no such file was given");
    maybe(w, "n", j->A != NULL, (double)j->system.n, why);
    maybe(w, "columns", j->A != NULL,
          j->A ? (double)(j->system.complex ? j->A->ncol / 2 : j->A->ncol) : 0,
          why);
    maybe(w, "nnz", j->A != NULL, (double)j->system.nnz, why);
    maybe(w, "nrhs", j->k > 0 && !j->opt.eigs, j->k, j->opt.eigs
          ? "eigenvalues" : "the right-hand sides were not read");
    begin(w, "complex");
    fputs(j->system.complex ? "true" : "false", w->f);
}

static void halo(writer *w, const job *j)
{
    int64_t rows, most;

    sps_operator_halo(j->op, &rows, &most, NULL);
    maybe(w, "halo_rows", j->op != NULL, (double)rows, "no kernel was chosen");
    maybe(w, "halo_most", j->op != NULL, (double)most, "no kernel was chosen");
}

static void machine(writer *w, const job *j)
{
    text(w, "device", j->ctx ? j->info.device : NULL, "no context was made");
    text(w, "cuda_module", j->ctx ? j->info.module_state : NULL,
         "no context was made");
    text(w, "kernel", j->op ? sps_operator_kernel(j->op) : NULL,
         "no kernel was chosen");
    maybe(w, "threads", j->ctx != NULL, j->info.threads,
          "no context was made");
    whole(w, "processes", j->many.size > 1 ? j->many.size : 1);
    halo(w, j);
}

static void outcome(writer *w, const job *j)
{
    const sps_result *r = &j->result;
    const char *why = j->opt.dry_run ? "dry run" : "nothing was solved";
    bool ok = j->done.solved;

    text(w, "solver", ok ? r->solver : NULL, why);
    text(w, "precond", ok ? r->precond : NULL, why);
    maybe(w, "iterations", ok, r->iterations, why);
    maybe(w, "columns_converged", ok, r->columns_converged, why);
    maybe(w, "max_relative_residual", ok, r->worst_residual, why);
    maybe(w, "median_relative_residual", ok,
          ok ? report_median(r->residual, r->k) : 0, why);
    maybe(w, "max_backward_error", ok, r->worst_backward, why);
    maybe(w, "max_normal_residual", ok && r->normal, r->worst_normal,
          ok ? "not a method of least squares" : why);
    maybe(w, "norm_A_estimate", ok, r->norm_A, why);
    maybe(w, "residual_replacements", ok, r->restarts, why);
    maybe(w, "min_width", ok, r->min_width, why);
    maybe(w, "applies_A", ok, (double)r->applies_A, why);
    maybe(w, "applies_precond", ok, (double)r->applies_M, why);
    maybe(w, "nullspace_dimension", ok, r->nullspace, why);
    maybe(w, "nullspace_part_of_B", ok, r->removed, why);
    maybe(w, "max_relative_residual_in_range", ok && !j->opt.eigs,
          r->worst_in_range, ok ? "eigenvalues" : why);
    text(w, "residual_precision", !ok || j->opt.eigs ? NULL : r->in_doubles
         ? "double" : "twofold", ok ? "eigenvalues" : why);
    columns(w, j);
    pairs(w, j);
}

static void seconds(writer *w, const job *j)
{
    const sps_seconds *t = &j->result.seconds;
    const char *why = j->opt.dry_run ? "dry run" : "nothing was solved";
    bool ok = j->done.solved;

    enter(w, "seconds", '{');
    real(w, "read", j->seconds.read);
    real(w, "setup", j->seconds.setup);
    maybe(w, "solve", ok, t->solve, why);
    maybe(w, "spmm", ok, t->spmm, why);
    maybe(w, "precond", ok, t->precond, why);
    maybe(w, "gram", ok, t->gram, why);
    maybe(w, "small", ok, t->small, why);
    maybe(w, "verify", ok, t->verify, why);
    real(w, "total", j->seconds.total);
    leave(w, '}');
}

static void effective(writer *w, const job *j)
{
    const cli_option *o;
    char buffer[4096];

    enter(w, "options", '{');
    for (int i = 0; (o = cli_row(i)); i++) {
        const char *value = cli_text(o, &j->opt, buffer, sizeof buffer);
        begin(w, o->name);
        if (!value) fputs("null", w->f);
        else if (o->kind == CLI_TEXT || o->kind == CLI_FILE ||
                 o->kind == CLI_CHOICE || o->kind == CLI_OPTIONAL)
            quote(w->f, value);
        else fputs(value, w->f);
    }
    leave(w, '}');
}

static void notes(writer *w, const job *j)
{
    const char *note;

    enter(w, "notes", '[');
    if (*j->place_note) {
        begin(w, NULL);
        quote(w->f, j->place_note);
    }
    for (int i = 0; j->many.reader &&
                    (note = sps_context_note(j->many.reader, i)); i++) {
        begin(w, NULL);
        quote(w->f, note);
    }
    for (int i = 0; j->ctx && (note = sps_context_note(j->ctx, i)); i++) {
        begin(w, NULL);
        quote(w->f, note);
    }
    leave(w, ']');
}

static void reasons(writer *w)
{
    int count = w->reasons;

    enter(w, "null_reasons", '{');
    for (int i = 0; i < count; i++)
        text(w, w->reason[i][0], w->reason[i][1], "");
    leave(w, '}');
}

static void whole_report(writer *w, const job *j)
{
    fputc('{', w->f);
    whole(w, "schema_version", 2);
    text(w, "program", CLI_PROGRAM, "");
    text(w, "version", sps_version(), "");
    text(w, "status", j->end.status, "");
    whole(w, "exit_code", j->end.exit_code);
    text(w, "message", j->end.message, "");
    text(w, "advice", j->end.advice, "");
    problem(w, j);
    machine(w, j);
    outcome(w, j);
    seconds(w, j);
    whole(w, "bytes_host", (int64_t)j->bytes.host);
    whole(w, "bytes_device", (int64_t)j->info.device_peak);
    effective(w, j);
    notes(w, j);
    reasons(w);
    fputs("\n}\n", w->f);
}

int json_write(const job *j, const char *path, char *error, size_t size)
{
    writer w;
    output out;

    if (!output_open(&out, path, error, size)) return EXIT_OUTPUT;
    memset(&w, 0, sizeof w);
    w.f = out.f;
    whole_report(&w, j);
    return output_close(&out, error, size) ? EXIT_CONVERGED : EXIT_OUTPUT;
}
