/* SPDX-License-Identifier: BSD-3-Clause */
/* clihelp.c - prints the texts made from the option table: -help, the manual
 * page spsolve(1) and the completion for bash. */
#include "tools/command/cli.h"

#include <limits.h>
#include <stdarg.h>
#include <string.h>

enum { LEFT = 23, WIDTH = 79 };

static const struct {
    const char *code, *text;
} codes[] = {
    {"0", "every column converged, judged by residuals recomputed in twice the "
          "precision: b - A x; with lsqr and lsmr that, or A'(b - A x); if a "
          "null space was given, b - A x without its part in it"},
    {"1", "some columns did not converge (limits, stagnation, rounding, an "
          "inconsistent system); the best iterate is written"},
    {"2", "wrong usage, or a method that does not fit the problem"},
    {"3", "an input file is missing or invalid, or does not match the others"},
    {"4", "numerical breakdown: indefinite, singular, NaN or infinity"},
    {"5", "out of memory, of the host or of the GPU"},
    {"6", "the GPU failed, or there is no GPU"},
    {"7", "output could not be written"},
    {"70", "internal error"},
    {"129, 130, 143", "interrupted (128 + signal); the best iterate is written"},
};
enum { CODES = sizeof codes / sizeof *codes };

static const struct {
    const char *command, *text;
} examples[] = {
    {"spsolve -A A.mtx -B B.mtx -o X.mtx", "solve for every column of B"},
    {"spsolve -A A.mtx -nrhs 16", "try a matrix on 16 random columns"},
    {"spsolve -A A.mtx -nrhs 16 -plot r.svg -json r.json",
     "keep the history and the report"},
    {"spsolve -A laplacian.mtx -nullspace auto",
     "a graph Laplacian: its null space is projected out"},
    {"spsolve -A rect.mtx -B B.mtx -o X.mtx",
     "least squares, since A is rectangular: the X of least norm"},
    {"spsolve -A A.mtx -B B.mtx -solver lsmr -precond jacobi",
     "least squares of any A, with its columns scaled to norm 1"},
    {"spsolve -A K.mtx -M M.mtx -eigs 16 -o modes.mtx",
     "the 16 lowest modes of a structure, with their vectors"},
    {"spsolve -A K.mtx -eigs 8 -rigid-body xyz.mtx",
     "the lowest modes of a structure without supports"},
    {"spsolve -A graph.mtx -laplacian -eigs 8",
     "the smallest non-zero eigenvalues of a graph"},
    {"zcat A.mtx.gz | spsolve -A - -o - -quiet | gzip > X.mtx.gz",
     "in a pipe"},
    {"spsolve -A A.mtx -nrhs 64 -dry-run", "how much memory will it take?"},
};
enum { EXAMPLES = sizeof examples / sizeof *examples };

static const struct {
    const char *names, *text;
} kernels[] = {
    {"spmv.packed, spmv.adaptive, spmv.hot, spmv.vector, spmv.scalar",
     "single vectors on a GPU: columns in 16 bits, CSR-Adaptive, the most used "
     "x in shared memory, several lanes per row, one thread per row"},
    {"spmm.rode, spmm.tiles, spmm.blocks, spmm.share, spmm.plain, "
     "spmm.tiles_single",
     "blocks: RoDe, windows of 8 rows on tensor cores, node blocks, equal "
     "shares for small matrices, several lanes per row"},
    {"spmm.stream", "a matrix larger than the GPU's memory: panels of rows, "
     "copied from host memory while others are multiplied"},
    {"spmm.tca, spmm.tca_tf32, spmm.tca_bf16, spmm.tca_fp16",
     "TCA-SpMM on tensor cores, by precision"},
    {"spmm.blocked_ell, spmm.blocked_ell_tf32",
     "dense square blocks, through cuSPARSE"},
    {"spmv.cusparse, spmm.cusparse", "the vendor's best algorithm on CSR"},
    {"spmv.cusparse_sell, spmv.cusparse_bsr",
     "the vendor's other formats: sliced ELL and node blocks"},
    {"spmm.rode_paper, spmm.tca_paper",
     "the algorithms as published, for comparison"},
    {"spmv.diagonals, spmm.runs, spmv.slices, spmm.omp, spmm.blocks_omp, "
     "spmm.ref",
     "the host: few diagonals, runs along them, sorted rows 8 at a time, CSR "
     "with vectors and threads, node blocks, the plain loops"},
};
enum { KERNELS = sizeof kernels / sizeof *kernels };

void cli_wrap(FILE *f, const char *text, int column, int at)
{
    while (*text) {
        int length = (int)strcspn(text, " ");
        if (column < at || column + 1 + length > WIDTH) {
            if (column > at) fprintf(f, "\n"), column = 0;
            fprintf(f, "%*s", at - column, "");
            column = at;
        } else if (column > at) {
            fputc(' ', f);
            column++;
        }
        fprintf(f, "%.*s", length, text);
        column += length;
        text += length;
        text += strspn(text, " ");
    }
    fputc('\n', f);
}

/* A text buffer that is appended to; text beyond its size is discarded. */
typedef struct growing {
    char *text;
    size_t size, used;
} growing;

CLI_PRINTF(2, 3)
static void more(growing *g, const char *format, ...)
{
    va_list list;
    int n;

    va_start(list, format);
    n = vsnprintf(g->text + g->used, g->size - g->used, format, list);
    va_end(list);
    g->used += (size_t)n < g->size - g->used ? (size_t)n
                                             : g->size - g->used - 1;
}

/* Appends the choices, "a, b, c; ", unless the help text contains all of
 * them. */
static void words(const cli_option *o, growing *g)
{
    char word[64];
    bool told = true;

    if (o->kind != CLI_CHOICE) return;
    for (int i = 0; told && cli_choice(o, i, word, sizeof word); i++)
        told = strstr(o->help, word) != NULL;
    for (int i = 0; !told && cli_choice(o, i, word, sizeof word); i++)
        more(g, "%s%s", i ? ", " : "", word);
    if (!told) more(g, "; ");
}

/* Appends the range of a number with its unit: "1 to 1000 steps; ". */
static void range(const cli_option *o, growing *g)
{
    const char *unit = o->unit ? o->unit : "";

    if (o->kind != CLI_INT && o->kind != CLI_REAL) return;
    if (o->max < INT_MAX)
        more(g, "%.10g to %.10g%s%s; ", o->min, o->max, *unit ? " " : "", unit);
    else if (*unit)
        more(g, "%s; ", unit);
}

/* Appends blank-separated names, each preceded by `dash`, separated by
 * commas. */
static void listed(const char *names, const char *dash, growing *g)
{
    char dashed[64];
    size_t length;

    for (; *names; names += length + (names[length] == ' ')) {
        length = strcspn(names, " ");
        snprintf(dashed, sizeof dashed, "%.*s", (int)length, names);
        if (*dash) {
            char plain[64];
            memcpy(plain, dashed, sizeof plain);
            cli_dashed(plain, dashed, sizeof dashed);
        }
        more(g, "%s%s", dashed, names[length] ? ", " : "");
    }
}

/* Writes the help text of o and, in parentheses, the methods and
 * preconditioners that read the option, its choices or range, its default and
 * other names. */
static void describe(const cli_option *o, char *text, size_t size)
{
    growing g = {text, size, 0};
    char inside[512] = "";
    growing in = {inside, sizeof inside, 0};

    more(&g, "%s", o->help);
    if (o->readers && *o->readers) {
        more(&in, "of ");
        listed(o->readers, "", &in);
        more(&in, "; ");
    }
    words(o, &in);
    range(o, &in);
    if (o->standard && (o->kind != CLI_FLAG || !strcmp(o->standard, "true")))
        more(&in, "default %s; ", o->standard);
    if (o->aliases && *o->aliases) {
        more(&in, "also ");
        listed(o->aliases, "-", &in);
        more(&in, "; ");
    }
    if (in.used > 2) more(&g, " (%.*s)", (int)in.used - 2, inside);
}

static const char *separator(const cli_option *o)
{
    return o->arg && o->arg[0] == '=' ? "[" : " ";
}

static const char *closing(const cli_option *o)
{
    return o->arg && o->arg[0] == '=' ? "]" : "";
}

void cli_help(FILE *f, const char *program)
{
    const char *section = "";
    const cli_option *o;
    char text[1024], name[64];

    fprintf(f, "%s: solves A X = B for many right-hand sides at once, A sparse"
               "\n\nusage: %s -A FILE [option ...]\n", program, program);
    for (int i = 0; (o = cli_row(i)); i++) {
        if (strcmp(section, o->section) != 0)
            fprintf(f, "\n%s:\n", section = o->section);
        cli_dashed(o->name, name, sizeof name);
        int column = fprintf(f, "  %s%s%s%s", name, o->arg ? separator(o) : "",
                             o->arg ? o->arg : "", closing(o));
        describe(o, text, sizeof text);
        if (column >= LEFT) fputc('\n', f), column = 0;
        cli_wrap(f, text, column, LEFT);
    }
    fprintf(f, "\nExit status:\n");
    for (int i = 0; i < CODES; i++)
        cli_wrap(f, codes[i].text, fprintf(f, "  %s", codes[i].code), LEFT);
    fprintf(f, "\nExamples:\n");
    for (int i = 0; i < EXAMPLES; i++)
        fprintf(f, "  %s\n      %s\n", examples[i].command, examples[i].text);
}

/* Prints text as roff: '-' becomes a minus sign, and a first character that
 * roff would take for a request is escaped. */
static void roff(FILE *f, const char *text)
{
    if (*text == '.' || *text == '\'') fputs("\\&", f);
    for (; *text; text++) {
        if (*text == '-') fputs("\\-", f);
        else if (*text == '\\') fputs("\\e", f);
        else fputc(*text, f);
    }
}

static void tagged(FILE *f, const char *tag, const char *argument,
                   const char *mark, const char *text)
{
    fprintf(f, ".TP\n.B ");
    roff(f, tag);
    if (argument && *mark == '[') {
        fprintf(f, "\\fR[=\\fI%s\\fR]", argument + 1);
    } else if (argument) {
        fprintf(f, " \\fI%s\\fR", argument);
    }
    fputc('\n', f);
    roff(f, text);
    fputc('\n', f);
}

static const char man_head[] =
    ".SH NAME\n"
    "spsolve, solve \\- sparse systems with many right\\-hand sides, and "
    "eigenvalues\n"
    ".SH SYNOPSIS\n"
    ".B spsolve\n"
    "\\fB\\-A\\fR \\fIFILE\\fR [\\fIoption\\fR ...]\n"
    ".SH DESCRIPTION\n"
    "Solves A X = B for all columns of B at once by preconditioned block\n"
    "methods, on the CPU or on an NVIDIA GPU. One sparse product serves all\n"
    "columns, so many right\\-hand sides cost far less than as many single\n"
    "solves.\n"
    ".PP\n"
    "After the iteration the residual b \\- A x of every column is computed\n"
    "again, in twice the working precision; only that, and in least squares\n"
    "also the residual of the normal equations, decides whether a column has\n"
    "converged, and the exit status reports the result. The best iterate is\n"
    "written however a solve ends: by a limit, a breakdown or Ctrl\\-C.\n"
    ".PP\n"
    "The methods of least squares, lsqr and lsmr, minimise ||b \\- A x|| for "
    "A\n"
    "of any shape and rank; \\-solver auto takes lsmr where A is rectangular\n"
    "or \\-damp is set, and dense QR factors where that takes too many steps\n"
    "and A is small enough. From the initial guess zero, x is the solution of\n"
    "least norm. A column has converged when r = b \\- A x meets the "
    "tolerance\n"
    "of \\-norm, or when ||A'r|| is at most rtol ||A|| ||r||; with \\-damp d, "
    "A\n"
    "is [A; d I] and b is [b; 0] in this. Preconditioners are none and\n"
    "jacobi, which scales the columns of A.\n"
    ".PP\n"
    "With \\fB\\-eigs\\fR the program finds eigenpairs of A x = lambda M x\n"
    "instead, A symmetric and M positive definite, by the same products on\n"
    "blocks. A pair has converged when ||A x \\- lambda M x||, computed\n"
    "again, is at most rtol |lambda| ||M x||; if rounding x to double\n"
    "precision alone exceeds that, the pair is \\(lqlimited by\n"
    "rounding\\(rq; if the method made no more progress, it is\n"
    "\\(lqstagnated\\(rq, and another method may succeed. Each value is\n"
    "printed with a bound of its distance from the nearest exact\n"
    "eigenvalue.\n"
    ".SH OPTIONS\n"
    "A name begins with one dash or two; \\- and _ are equal in it:\n"
    "\\-rtol 1e\\-6, \\-\\-rtol=1e\\-6, \\-rank\\-tolerance, "
    "\\-\\-rank_tolerance.\n"
    "Names are exact; abbreviations and unknown names are errors. A value\n"
    "is the next argument or follows an equals sign; an option without an\n"
    "argument is switched on by its name, and =yes or =no may follow it. If\n"
    "the text of an option names methods or preconditioners, only those\n"
    "read it. The options of the library have the same names in programs,\n"
    "see\n"
    ".BR spsolve (3).\n";

static const char man_tail[] =
    ".SH FILES\n"
    "Input is of the kinds that \\-A and \\-B name, plain or compressed by gzip,\n"
    "xz or zstd, recognised by content. Matrix Market is coordinate or array;\n"
    "real, integer, pattern or complex; general, symmetric, skew\\-symmetric or\n"
    "hermitian. A complex system is solved as the\n"
    "equivalent real one of twice the size; sizes are reported and X is\n"
    "written as complex.\n"
    ".PP\n"
    "An output file appears under its name when it is complete. A symbolic\n"
    "link is kept, and the file that it refers to is replaced. The table of\n"
    "\\-monitor has its name at once and grows row by row. A run that is\n"
    "killed leaves no file if the file system supports unnamed files\n"
    "(O_TMPFILE); otherwise it leaves NAME.0.tmp, which the next run that\n"
    "writes NAME removes.\n"
    ".PP\n"
    "A configuration file contains one option per line:\n"
    ".PP\n"
    ".nf\n"
    "    # for the nightly run\n"
    "    precond = jacobi\n"
    "    rtol = 1e\\-10\n"
    "    explain = yes\n"
    ".fi\n"
    ".SH SEVERAL PROCESSES\n"
    ".nf\n"
    "    mpirun \\-n 4 spsolve \\-A A.mtx \\-nrhs 16 \\-o X.mtx\n"
    ".fi\n"
    ".PP\n"
    "solves with four processes, if the module for that MPI (Open MPI or\n"
    "MPICH) is installed: on the host, or with \\-device cuda with one GPU\n"
    "per process. Each process reads a part of each file and keeps a part of\n"
    "the rows; process 0 prints one report, and X is written as one file. The\n"
    "exit codes are those of one process. An error of any process ends all of\n"
    "them, and is printed once, with the number of the process. A must be\n"
    "square and real, with at least one row per process. The\n"
    "preconditioners are none, jacobi, chebyshev, fsai, amg of a symmetric\n"
    "matrix, and, applied to the diagonal block of each process,\n"
    "block_jacobi, ic0, ilu0, ilut, isai, factor and amg of other\n"
    "matrices. \\-solver auto is block_cg or cg if A is symmetric, else\n"
    "gmres; \\-nullspace auto does not search for a null space, and\n"
    "constant and components are rejected. Not supported are \\-sigma,\n"
    "\\-laplacian, \\-rigid\\-body, \\-convert, lsqr and lsmr, and files\n"
    "from standard input.\n"
    ".SH REPORT\n"
    "The JSON report has at least these members, and schema_version:\n"
    "status, exit_code, message, solver, precond, device, kernel,\n"
    "processes, halo_rows, halo_most, n, nnz, nrhs, iterations,\n"
    "columns_converged,\n"
    "max_relative_residual, max_relative_residual_in_range,\n"
    "residual_precision, eigenvalues, eigenvalue_bounds,\n"
    "max_backward_error, max_normal_residual, residuals, seconds (read,\n"
    "setup, solve, verify, total, and inside solve spmm, precond, gram,\n"
    "small), bytes_device, bytes_host, options, notes. A value that does\n"
    "not exist is null; the member null_reasons gives the reason.\n"
    ".SH SIGNALS\n"
    "The first SIGINT, SIGTERM, SIGHUP or SIGXCPU ends the solve after the\n"
    "current iteration and writes the best iterate and the report; the\n"
    "second ends the program at once. SIGUSR1 prints one line of progress.\n"
    ".PP\n"
    "The library of sparse factors cannot be interrupted: its analysis, a\n"
    "factorisation or a solution that is running ends before the signal has\n"
    "its effect. So none is begun that is predicted to take longer than the\n"
    "time that \\-max\\-seconds leaves.\n";

void cli_man(FILE *f)
{
    const char *section = "";
    const cli_option *o;
    char text[64], help[1024];

    fprintf(f, ".\\\" SPDX-License-Identifier: BSD-3-Clause\n"
               ".\\\" Made by: spsolve -help=man\n"
               ".TH SPSOLVE 1 \"\" \"libspsolve %s\" \"User commands\"\n%s",
            sps_version(), man_head);
    for (int i = 0; (o = cli_row(i)); i++) {
        if (strcmp(section, o->section) != 0)
            fprintf(f, ".SS %s\n", section = o->section);
        describe(o, help, sizeof help);
        tagged(f, cli_dashed(o->name, text, sizeof text), o->arg, separator(o),
               help);
    }
    fprintf(f, ".SH KERNELS\nThe kernel with the lowest predicted time is "
               "chosen for each matrix;\n\\-explain prints the predictions, "
               "\\-list the kernels of this machine.\n");
    for (int i = 0; i < KERNELS; i++)
        tagged(f, kernels[i].names, NULL, "", kernels[i].text);
    fprintf(f, ".SH EXIT STATUS\n");
    for (int i = 0; i < CODES; i++)
        tagged(f, codes[i].code, NULL, "", codes[i].text);
    fputs(man_tail, f);
    fprintf(f, ".SH EXAMPLES\n");
    for (int i = 0; i < EXAMPLES; i++)
        tagged(f, examples[i].command, NULL, "", examples[i].text);
    fprintf(f, ".SH SEE ALSO\n.BR spsolve (3)\n");
}

/* Prints the choices of an option.  The names of kernels depend on the device,
 * so for them the completion calls the program with -list. */
static void complete_choices(FILE *f, const cli_option *o)
{
    const char *asked = strstr(o->choices, "@kernel");
    char word[64];

    fprintf(f, "\n        COMPREPLY=($(compgen -W ");
    if (asked) {
        fprintf(f, "\"%.*s$(\"$1\" -list 2>/dev/null |\n            "
                   "sed -n 's/^kernels ([a-z]*)://p')\"",
                (int)(asked - o->choices), o->choices);
    } else {
        for (int i = 0; cli_choice(o, i, word, sizeof word); i++)
            fprintf(f, "%s%s", i ? " " : "'", word);
        fprintf(f, "'");
    }
    fprintf(f, " -- \"$cur\"))\n        return ;;\n");
}

static const char completion_head[] =
    "# SPDX-License-Identifier: BSD-3-Clause\n"
    "# Completion of spsolve(1) for bash.  Made by: spsolve -help=completion\n"
    "_spsolve()\n{\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]}\n"
    "    local prev=${COMP_WORDS[COMP_CWORD-1]} dash=-\n"
    "    [ \"$prev\" = = ] && prev=${COMP_WORDS[COMP_CWORD-2]}\n"
    "    [ \"$cur\" = = ] && cur=\n"
    "    prev=${prev#-} prev=-${prev#-}\n"
    "    case $prev in\n";

static const char completion_tail[] =
    "' -- \"${cur#\"$dash\"}\"))\n}\n"
    "complete -o filenames -F _spsolve spsolve solve\n";

void cli_completion(FILE *f)
{
    const cli_option *o;
    char name[64];

    fputs(completion_head, f);
    for (int i = 0; (o = cli_row(i)); i++) {
        if (o->kind == CLI_FLAG || o->kind == CLI_OPTIONAL) continue;
        fprintf(f, "    %s)", cli_dashed(o->name, name, sizeof name));
        if (o->choices) {
            complete_choices(f, o);
        } else if (o->kind == CLI_FILE) {
            fprintf(f, " COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n");
        } else {
            fprintf(f, " COMPREPLY=(); return ;;\n");
        }
    }
    fprintf(f, "    esac\n    [[ $cur == --* ]] && dash=--\n"
               "    COMPREPLY=($(compgen -P \"$dash\" -W '");
    for (int i = 0; (o = cli_row(i)); i++)
        fprintf(f, "%s%s", i == 0 ? "" : "\n        ",
                cli_dashed(o->name, name, sizeof name) + 1);
    fputs(completion_tail, f);
}
