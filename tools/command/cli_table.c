/* SPDX-License-Identifier: BSD-3-Clause */
/* cli_table.c - the table of options of the command: the library's options, of
 * solvers and of contexts, which sps_option_information describes, and those
 * that only a command has, such as files and output.  A new option of the
 * command is a row here and a member of cli_values; a new option of the library
 * needs nothing here. */
#include "tools/command/cli.h"

#include <string.h>

#define PROBLEM "Problem"
#define EIGEN "Eigenvalues"
#define MACHINE "Machine"
#define OUTPUT "Output"
#define OTHER "Other"

#define ROW(name_, member, kind_, ...)                                         \
    {.name = name_, .offset = offsetof(cli_values, member),                    \
     .kind = CLI_##kind_, __VA_ARGS__}

static const cli_option own[] = {
    ROW("A", file.A, FILE, .arg = "FILE", .section = PROBLEM,
        .stream = CLI_INPUT,
        .help = "the matrix: a file of Matrix Market, of scipy.sparse.save_npz "
                "(.npz), a dense .npy of NumPy, binary of PETSc, MATLAB "
                "(.mat up to -v7), Harwell-Boeing or Rutherford-Boeing, plain "
                "or compressed by "
                "gzip, xz or zstd; the kind is found by content; - is "
                "standard input"),
    ROW("B", file.B, FILE, .arg = "FILE", .section = PROBLEM,
        .stream = CLI_INPUT,
        .help = "right-hand sides, one per column: a file of any kind that -A "
                "reads, the vectors of a PETSc file, the right-hand sides of a "
                "Harwell-Boeing file, or plain text with one row per line and "
                "numbers separated by blanks or commas; without -B they are "
                "drawn from the seed, uniform in [-1/2, 1/2)"),
    ROW("nrhs", nrhs, INT, .arg = "K", .standard = "1", .min = 1, .max = 1024,
        .section = PROBLEM,
        .help = "number of right-hand sides to draw when there is no -B"),
    ROW("x0", file.x0, FILE, .arg = "FILE", .section = PROBLEM,
        .stream = CLI_INPUT,
        .help = "initial guess, of the same shape as X; without it zero"),
    ROW("nullspace_basis", file.nullspace_basis, FILE, .arg = "FILE",
        .section = PROBLEM, .stream = CLI_INPUT,
        .help = "the null space is spanned by the columns of this array file; "
                "the same as -nullspace FILE"),
    ROW("coords", file.coords, FILE, .arg = "FILE", .section = PROBLEM,
        .stream = CLI_INPUT,
        .help = "coordinates of the nodes, for -reorder morton and -precond "
                "amg: an array file with a row of 1 to 3 coordinates for each "
                "node, whose unknowns are adjacent rows of A"),
    ROW("near_null_basis", file.near_null_basis, FILE, .arg = "FILE",
        .section = PROBLEM, .stream = CLI_INPUT,
        .help = "vectors that A maps to small ones, the columns of this array "
                "file, for the coarse spaces of -precond amg; the same as "
                "-near-null FILE"),
    ROW("laplacian", laplacian, FLAG, .section = PROBLEM,
        .help = "A is the adjacency matrix W of a graph with nonnegative "
                "weights: use its Laplacian D - W instead, without edge "
                "directions and self-loops"),
    ROW("rigid_body", file.rigid_body, FILE, .arg = "COORDS",
        .section = PROBLEM, .stream = CLI_INPUT,
        .help = "the null space is that of a structure without supports, its "
                "rigid body motions: an array file with a row of 2 or 3 "
                "coordinates for each node, whose unknowns are adjacent rows "
                "of A"),
    ROW("lenient", read.lenient, FLAG, .section = PROBLEM,
        .help = "accept a symmetric file with entries in both triangles "
                "when they agree"),
    ROW("strict", read.strict, FLAG, .section = PROBLEM,
        .help = "reject duplicate entries, which are summed otherwise"),
    ROW("allow_nonfinite", read.allow_nonfinite, FLAG, .section = PROBLEM,
        .help = "accept NaN and infinity in input files"),
    ROW("max_bytes", max_bytes, SIZE, .arg = "BYTES", .standard = "0",
        .aliases = "maxmem", .section = PROBLEM,
        .help = "limit of the host memory (K, M, G or T may follow the "
                "number): an input that needs more is rejected, and a solve "
                "in which blocks, operators, preconditioners and the "
                "predicted memory of sparse factors need more ends (solver "
                "auto tries methods that need less); not counted are code, "
                "libraries, and what the analysis of sparse factors needs; 0 "
                "rejects an input that needs more memory than the machine "
                "has, or more than 1 GB and more than a thousand times the "
                "size of its text"),
    ROW("eigs", eigs, INT, .arg = "K", .min = 1, .max = 1024, .section = EIGEN,
        .help = "find K eigenpairs of A x = lambda M x instead of solving A X "
                "= B; the report gives for each the error bound (+-), the "
                "residual ||A x - lambda M x|| in units of |lambda| ||M x||, "
                "and the backward error in units of (||A|| + |lambda| ||M||) "
                "||x||; -o writes the eigenvectors, -x0 may contain guesses of "
                "them"),
    ROW("M", file.mass, FILE, .arg = "FILE", .aliases = "mass",
        .section = EIGEN, .stream = CLI_INPUT,
        .help = "the mass matrix, symmetric positive definite; without it the "
                "identity"),
    ROW("Y", file.constraints, FILE, .arg = "FILE", .aliases = "constraints",
        .section = EIGEN, .stream = CLI_INPUT,
        .help = "vectors to which the eigenvectors must be M-orthogonal"),
    ROW("device", device, TEXT, .arg = "WHERE", .standard = "auto",
        .choices = "auto cpu cuda", .section = MACHINE,
        .help = "auto (a GPU if there is one, but the host for systems that "
                "are predicted to be solved there before a GPU has started), "
                "cpu, cuda, or cuda:N for GPU number N"),
    ROW("mpi", mpi, CHOICE, .arg = "HOW", .standard = "auto",
        .choices = "auto none", .section = MACHINE,
        .help = "auto (the processes that mpirun has started solve together, "
                "on the host or with -device cuda on the GPUs: each has a part "
                "of the rows, process 0 reports and writes), or none: each "
                "process is a separate run"),
    ROW("partition", partition, CHOICE, .arg = "HOW", .standard = "nnz",
        .choices = "nnz rows morton metis", .section = MACHINE,
        .help = "how several processes divide the rows: nnz (about equal "
                "numbers of rows and entries together), rows (of rows), morton "
                "(along a space-filling curve through the coordinates of the "
                "nodes, -coords), or metis (parts of the graph); the latter "
                "two renumber the rows while A X = B is solved; the report "
                "tells what a product then exchanges"),
    ROW("o", file.out, FILE, .arg = "FILE", .section = OUTPUT,
        .stream = CLI_OUTPUT,
        .help = "write X: a name that ends in .npy, .npz or .petsc chooses "
                "that format, any other name a Matrix Market array file; a "
                "further .gz compresses it; - is standard output"),
    ROW("convert", file.convert, FILE, .arg = "FILE", .section = OUTPUT,
        .stream = CLI_OUTPUT,
        .help = "solve nothing: write the matrix of -A, or without -A the "
                "block of -B, to this file, whose name chooses the format: "
                ".npz (as scipy.sparse.save_npz), .npy (blocks only), .petsc, "
                "any other name Matrix Market; a further .gz compresses it"),
    ROW("json", json, FILE, .arg = "FILE", .section = OUTPUT,
        .stream = CLI_OUTPUT,
        .help = "write the report as JSON; - is standard output, and the text "
                "report then goes to standard error"),
    ROW("monitor", monitor, OPTIONAL, .arg = "=FILE", .section = OUTPUT,
        .stream = CLI_OUTPUT,
        .help = "write the residuals of every iteration as a table to the "
                "file, or to standard error"),
    ROW("plot", plot, FILE, .arg = "FILE.svg", .section = OUTPUT,
        .stream = CLI_OUTPUT,
        .help = "draw the history of the residuals: worst, median and best "
                "column, or with -eigs each pair"),
    ROW("explain", explain, FLAG, .section = OUTPUT,
        .help = "print the predicted times of the kernels for the matrix, the "
                "reason for the choice, and the preconditioner that was used: "
                "of amg its levels"),
    ROW("dry_run", dry_run, FLAG, .section = OUTPUT,
        .help = "read and set up but do not solve; print the memory that a run "
                "will need, and what -explain prints; of sparse factors "
                "(-factors auto, without -eigs) only the analysis is "
                "made, and a note tells what they would take"),
    ROW("quiet", quiet, FLAG, .section = OUTPUT,
        .help = "no report and no progress line; errors are still printed"),
    ROW("config", config, FILE, .arg = "FILE", .section = OTHER,
        .help = "read options from lines of the form name = value; the command "
                "line has precedence; of an option given twice the last value "
                "counts"),
    ROW("list", list, FLAG, .section = OTHER,
        .help = "list solvers, preconditioners and kernels of this machine, and "
                "the library of sparse factors"),
    ROW("version", version, FLAG, .aliases = "V", .section = OTHER,
        .help = "print version, device and state of the CUDA module and of the "
                "module of sparse factors"),
    ROW("help", help, OPTIONAL, .arg = "=WHAT", .choices = "man completion",
        .aliases = "h", .section = OTHER,
        .help = "print this text; -help=man prints the manual page, "
                "-help=completion the completion for bash"),
};
enum { OWN = sizeof own / sizeof *own };

static cli_option table[CLI_MOST];
static int count;

static void add(cli_option o)
{
    if (count == CLI_MOST) return;
    o.number = count;
    table[count++] = o;
}

/* An option of a context is a member of cli_values. */
static cli_option of_library(const sps_option_info *info, bool of_context)
{
    static const cli_kind kinds[] = {CLI_CHOICE, CLI_TEXT, CLI_FILE, CLI_REAL,
                                     CLI_INT, CLI_FLAG, CLI_NATURAL, CLI_SIZE};

    return (cli_option){
        .name = info->name, .aliases = info->aliases, .library = !of_context,
        .offset = offsetof(cli_values, machine) + info->offset,
        .arg = *info->argument ? info->argument : NULL,
        .standard = *info->default_value ? info->default_value : NULL,
        .kind = kinds[info->type], .min = info->low, .max = info->high,
        .choices = *info->words ? info->words : NULL, .unit = info->unit,
        .section = info->group, .readers = info->readers, .help = info->help,
    };
}

/* Adds all options with this heading, the command's own first, unless they have
 * been added already. */
static void add_section(const char *section)
{
    static const char *const kinds[] = {"context_option", "option"};
    sps_option_info info = {.struct_size = sizeof info};
    const char *name;

    for (int i = 0; i < count; i++)
        if (strcmp(table[i].section, section) == 0) return;
    for (int i = 0; i < OWN; i++)
        if (strcmp(own[i].section, section) == 0) add(own[i]);
    for (int k = 0; k < 2; k++)
        for (int i = 0; (name = sps_list(NULL, kinds[k], i)); i++)
            if (sps_option_information(NULL, name, &info) == SPS_OK &&
                strcmp(info.group, section) == 0)
                add(of_library(&info, k == 0));
}

static void build(void)
{
    sps_option_info info = {.struct_size = sizeof info};
    const char *name;

    for (int i = 0; (name = sps_list(NULL, "option", i)); i++)
        if (sps_option_information(NULL, name, &info) == SPS_OK)
            add_section(info.group);
    for (int i = 0; i < OWN; i++) add_section(own[i].section);
}

const cli_option *cli_row(int i)
{
    if (count == 0) build();
    return i >= 0 && i < count ? &table[i] : NULL;
}

/* Returns whether `name`, of `length` letters, equals the word; '-' and '_' are
 * equal. */
static bool same(const char *word, size_t word_length, const char *name,
                 size_t length)
{
    if (word_length != length) return false;
    for (size_t i = 0; i < length; i++)
        if (word[i] != name[i] && !(strchr("-_", word[i]) &&
                                    strchr("-_", name[i])))
            return false;
    return true;
}

const cli_option *cli_find(const char *name, size_t length)
{
    sps_option_info info = {.struct_size = sizeof info};
    const cli_option *o;
    char word[64];

    for (int i = 0; (o = cli_row(i)); i++) {
        const char *alias = o->aliases ? o->aliases : "";

        if (same(o->name, strlen(o->name), name, length)) return o;
        for (size_t used; *alias; alias += used + (alias[used] == ' ')) {
            used = strcspn(alias, " ");
            if (same(alias, used, name, length)) return o;
        }
    }
    /* The library accepts old names that it does not list. */
    snprintf(word, sizeof word, "%.*s", (int)length, name);
    if (length >= sizeof word || sps_option_information(NULL, word, &info) ||
        same(info.name, strlen(info.name), name, length))
        return NULL;
    return cli_find(info.name, strlen(info.name));
}

const char *cli_dashed(const char *name, char *text, size_t size)
{
    snprintf(text, size, "-%s", name);
    for (char *p = text; *p; p++)
        if (*p == '_') *p = '-';
    return text;
}
