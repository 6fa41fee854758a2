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
    {"0", "every column converged, by residuals recomputed in twice the "
          "precision; least squares where the null space was named"},
    {"1", "some did not (limits, stagnation, rounding, an inconsistent "
          "system); the best iterate is written"},
    {"2", "wrong usage, or a method that does not fit the problem"},
    {"3", "an input file is missing or broken, or does not fit the others"},
    {"4", "numerical breakdown: indefinite, singular, NaN or infinity"},
    {"5", "out of memory, of the host or of the GPU"},
    {"6", "the GPU failed or there is none"},
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
     "a graph Laplacian: project the null space out"},
    {"spsolve -A K.mtx -M M.mtx -eigs 16 -o modes.mtx",
     "the 16 lowest modes of a structure, with their vectors"},
    {"spsolve -A K.mtx -eigs 8 -rigid-body xyz.mtx",
     "of one that nothing holds"},
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
     "x in shared memory, lanes a row, a thread a row"},
    {"spmm.rode, spmm.tiles, spmm.blocks, spmm.share, spmm.plain",
     "blocks: RoDe, windows of 8 rows on tensor cores, node blocks, equal "
     "shares for small matrices, lanes a row"},
    {"spmm.stream", "a matrix beyond the GPU's memory: panels of rows, copied "
     "from host memory while others are multiplied"},
    {"spmm.tca, spmm.tca_tf32, spmm.tca_bf16, spmm.tca_fp16",
     "TCA-SpMM on tensor cores, by precision"},
    {"spmm.blocked_ell, spmm.blocked_ell_tf32",
     "dense square blocks, through cuSPARSE"},
    {"spmv.cusparse, spmm.cusparse", "the vendor's best algorithm on CSR"},
    {"spmv.cusparse_sell, spmv.cusparse_bsr",
     "and on its other formats, sliced ELL and node blocks"},
    {"spmm.rode_paper, spmm.tca_paper", "as published, for comparison"},
    {"spmm.omp, spmm.blocks_omp, spmm.ref",
     "the host: threads, node blocks, the plain loops"},
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
    "methods, on the CPU or on an NVIDIA GPU.\n"
    "One sparse product serves all columns, so many right\\-hand sides cost\n"
    "far less than as many single solves.\n"
    ".PP\n"
    "After the iteration the residual b \\- A x of every column is computed\n"
    "again in double precision; only that decides whether a column has\n"
    "converged, and the exit status says the truth about it.\n"
    "Whatever ends a solve, a limit, a breakdown or Ctrl\\-C, the best\n"
    "iterate found is written.\n"
    ".PP\n"
    "With \\fB\\-eigs\\fR it finds eigenpairs of A x = lambda M x instead, A\n"
    "symmetric and M positive definite, by the same products on blocks.\n"
    "A pair has converged when ||A x \\- lambda M x||, computed again, is at\n"
    "most rtol |lambda| ||M x||; where the doubles next to x would not meet\n"
    "that either, the pair is \\(lqlimited by rounding\\(rq; where the method got\n"
    "no further, it is \\(lqstagnated\\(rq, and another one may.\n"
    "Beside each value stands how far from it the nearest true one can be at\n"
    "most.\n"
    ".SH OPTIONS\n"
    "One dash or two begin a name, in which \\- and _ are the same letter: \n"
    "\\-rtol 1e\\-6, \\-\\-rtol=1e\\-6, \\-rank\\-tolerance, "
    "\\-\\-rank_tolerance.\n"
    "Names are exact; abbreviations and unknown names are errors.\n"
    "A value follows as the next argument or behind an equals sign; what has\n"
    "no argument here means yes, and takes =yes or =no.\n"
    "Where an option names methods or preconditioners, it is read by those\n"
    "alone. The options of the library have the same names in programs, see\n"
    ".BR spsolve (3).\n";

static const char man_tail[] =
    ".SH FILES\n"
    "Input is Matrix Market: coordinate or array; real, integer, pattern or\n"
    "complex; general, symmetric, skew\\-symmetric or hermitian; plain text\n"
    "or gzip, told apart by content.\n"
    "A complex system is solved as the equivalent real one of twice the size;\n"
    "sizes are reported and X is written as complex.\n"
    ".PP\n"
    "Outputs appear under their names when they are complete; symbolic links\n"
    "stay, and the files that they lead to are replaced. The table of\n"
    "\\-monitor has its name at once and grows row by row. A run that is\n"
    "killed leaves nothing where the file system knows files without a name\n"
    "(O_TMPFILE), else NAME.0.tmp, which the next run that writes NAME\n"
    "removes.\n"
    ".PP\n"
    "A configuration file holds one option a line:\n"
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
    "solves with four processes, where the module of that MPI (Open MPI or\n"
    "MPICH) is installed: on the host, or with \\-device cuda on a GPU each.\n"
    "Each reads the files and keeps rows of its own; process 0 prints one\n"
    "report, and writes X as one file. The exit codes are those of one process.\n"
    "An error of any process ends all of them, and is printed once, with the\n"
    "number of the process. A must be square and real, with a row for each\n"
    "process; the preconditioners are none, jacobi, chebyshev, and of the\n"
    "diagonal block of each process block_jacobi, ic0, ilu0, ilut, fsai, isai,\n"
    "amg and factor. \\-solver auto is block_cg or cg where A is symmetric, else\n"
    "gmres; \\-nullspace auto looks for none, and constant and components are\n"
    "refused. Not there are \\-sigma, \\-coords,\n"
    "\\-laplacian, \\-rigid\\-body, \\-convert, lsqr and lsmr, and files\n"
    "from standard input.\n"
    ".SH REPORT\n"
    "The JSON report has a schema_version and these members at least:\n"
    "status, exit_code, message, solver, precond, device, kernel, processes,\n"
    "n, nnz, nrhs, iterations, columns_converged, max_relative_residual,\n"
    "max_relative_residual_in_range, residual_precision,\n"
    "eigenvalues, eigenvalue_bounds,\n"
    "max_backward_error, max_normal_residual, residuals, seconds (read, setup, solve, verify,\n"
    "total, and inside solve spmm, precond, gram, small), bytes_device,\n"
    "bytes_host, options, notes.\n"
    "Where there is no number there is null, and the member null_reasons\n"
    "says why.\n"
    ".SH SIGNALS\n"
    "The first SIGINT, SIGTERM, SIGHUP or SIGXCPU ends the solve after the\n"
    "current iteration and writes the best iterate and the report; the second\n"
    "ends the program at once. SIGUSR1 prints one line of progress.\n";

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
    fprintf(f, ".SH KERNELS\nThey bid for each matrix; \\-explain shows the "
               "bids, \\-list what this machine has.\n");
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
