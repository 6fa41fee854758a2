/* SPDX-License-Identifier: BSD-3-Clause */
/* options_table.c - one row for each option of a solver, and for each of a
 * context that is a number or a word: the only place that knows its name, type,
 * range, default, unit and help.  Parsing, ranges and defaults of the library,
 * and help, manual page, completion, reports and configuration files of the
 * command are generated from the rows. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "core/abi.h"
#include "core/options_table.h"
#include "core/options.h"
#include "core/team.h"
#include "io/number/nearest.h"

#define PROBLEM "Problem"
#define METHOD "Method"
#define PRECOND "Preconditioner"
#define PRECISION "Precision"
#define STOPPING "Stopping"
#define EIGEN "Eigenvalues"
#define MACHINE "Machine"

#define ROW_IN(of, member, as_number, kind, ...)                               \
    {.numbered = as_number,                                                    \
     .info = {.name = #member, .type = SPS_OPTION_##kind,                      \
              .offset = offsetof(of, member), __VA_ARGS__}}
#define ROW_OF(member, ...) ROW_IN(sps_options, member, __VA_ARGS__)
#define ROW(member, ...) ROW_OF(member, false, __VA_ARGS__)
#define CONTEXT(member, ...)                                                   \
    ROW_IN(sps_context_options, member, false, __VA_ARGS__)

static const spsi_option rows[] = {
    ROW(nullspace, WORD, .default_value = "auto", .group = PROBLEM,
        .words = "auto none constant components", .argument = "WHICH",
        .help = "null space of a singular A, projected out of B and X: auto "
                "(found by zero row and column sums), none, constant, or "
                "components (one constant for each connected component)"),

    ROW(solver, WORD, .default_value = "auto", .group = METHOD,
        .words = "auto @solver @eigensolver", .argument = "NAME",
        .help = "iterative method; auto chooses one by what is measured of the "
                "matrix, and a note says why"),
    ROW(restart, INTEGER, .default_value = "50", .low = 1, .high = 1000,
        .group = METHOD, .argument = "M", .unit = "steps",
        .readers = "gmres block_gmres block_gcrodr",
        .help = "length of a cycle, after which the method restarts; it takes "
                "memory for as many blocks of right-hand sides"),
    ROW(flexible, BOOLEAN, .default_value = "false", .group = METHOD,
        .readers = "gmres block_gmres",
        .help = "the preconditioner may change from step to step, for twice "
                "the memory"),
    ROW(recycle, INTEGER, .default_value = "0", .high = 256, .group = METHOD,
        .argument = "R", .unit = "vectors", .readers = "block_gcrodr",
        .help = "vectors kept from cycle to cycle and from solve to solve; 0 "
                "means two for each right-hand side, but at least 10 and at "
                "most 256"),
    ROW(bicgstab_l, INTEGER, .default_value = "2", .low = 1, .high = 8,
        .group = METHOD, .argument = "L", .readers = "bicgstab",
        .help = "degree of the stabilising polynomial; an iteration is 2 L "
                "products"),
    ROW(idr_s, INTEGER, .default_value = "4", .low = 1, .high = 16,
        .group = METHOD, .argument = "S", .readers = "idr",
        .help = "dimension of the shadow space"),
    ROW(rank_tolerance, REAL, .default_value = "1e-10", .high = 1,
        .aliases = "rank_tol", .group = METHOD, .argument = "X",
        .readers = "block_cg block_gmres block_gcrodr refinement",
        .help = "block methods drop a search direction below this relative "
                "singular value"),
    ROW(damp, REAL, .default_value = "0", .high = HUGE_VAL, .group = METHOD,
        .argument = "X", .readers = "lsqr lsmr",
        .help = "least squares minimise ||b - A x||^2 + X^2 ||x||^2"),
    ROW(dense, WORD, .default_value = "auto", .words = "auto never",
        .group = METHOD, .argument = "WHETHER",
        .help = "auto: solver auto may end with dense factors where n is at "
                "most 2000, and least squares of small matrices with dense "
                "QR factors; never: it may not"),
    ROW(factors, WORD, .default_value = "auto", .words = "auto never predict",
        .group = METHOD, .argument = "WHETHER",
        .help = "auto: solver auto may use sparse direct factors, first where "
                "they are predicted to be faster, and at the end; never: it "
                "may not; predict: it may, but preconditioner factor is only "
                "analysed, counts the memory and notes the work of its "
                "factors, and is applied as the identity"),
    ROW(reorder, WORD, .default_value = "none",
        .words = "none rcm morton metis auto", .group = METHOD,
        .argument = "WHICH",
        .help = "permutation of the unknowns of A X = B: rcm (reverse "
                "Cuthill-McKee), morton (along a space-filling curve through "
                "the nodes' coordinates), or auto: rcm where faster products "
                "are predicted; with several processes morton and metis (parts "
                "of the graph) divide the rows among them; X, B and "
                "eigenproblems keep the caller's order"),

    ROW(precond, WORD, .default_value = "auto", .group = PRECOND,
        .words = "auto @precond", .argument = "NAME",
        .help = "preconditioner; auto chooses one for the method"),
    ROW(block_size, INTEGER, .default_value = "0", .high = 64,
        .aliases = "precond_block", .group = PRECOND, .argument = "N",
        .unit = "rows", .readers = "block_jacobi amg",
        .help = "rows of a diagonal block, or of a node; 0 finds it in the "
                "pattern"),
    ROW(degree, INTEGER, .default_value = "0", .high = 100,
        .aliases = "precond_degree", .group = PRECOND, .argument = "N",
        .readers = "chebyshev chebyshev_filter amg",
        .help = "degree of the Chebyshev polynomial (1 to 4 for the smoother "
                "of amg); 0 chooses it"),
    ROW(near_null, WORD, .default_value = "auto", .words = "auto filtered none",
        .group = PRECOND, .argument = "WHICH",
        .readers = "amg ic0 ilu0 ilut factor",
        .help = "what coarse spaces hold for nodes of several rows: rigid body "
                "modes with coordinates, else constants (auto), or vectors "
                "found in the matrix, for a set-up of amg that is used often "
                "(filtered), or given (option near_null_basis); none: factors "
                "of several processes have no coarse space"),
    ROW(power, INTEGER, .default_value = "1", .low = 1, .high = 8,
        .aliases = "fsai_power", .group = PRECOND, .argument = "N",
        .readers = "fsai",
        .help = "the factor takes the pattern of this power of A"),
    ROW(droptol, REAL, .default_value = "1e-3", .high = 1, .group = PRECOND,
        .argument = "X", .readers = "ilut",
        .help = "entries below this fraction of the largest magnitude of "
                "their row are dropped"),
    ROW(fill, REAL, .default_value = "10", .high = 1e6, .group = PRECOND,
        .argument = "X", .readers = "ilut",
        .help = "a row of L, and one of U, keeps at most this many times the "
                "mean number of entries in a row of A"),
    ROW(scale, WORD, .default_value = "auto",
        .words = "auto none equilibrate match", .group = PRECOND,
        .argument = "WHICH", .readers = "ilut",
        .help = "before the factorisation: equilibrate rows and columns, or "
                "match, which permutes large entries to the diagonal as well; "
                "the system solved stays the same"),
    ROW(order, WORD, .default_value = "auto", .words = "auto none rcm degree",
        .group = PRECOND, .argument = "WHICH", .readers = "ilut",
        .help = "order of elimination: rcm for small bandwidth, degree for "
                "little fill"),

    ROW(precision, WORD, .default_value = "auto",
        .words = "auto double mixed single_basis single_precond",
        .group = PRECISION, .argument = "WHICH",
        .help = "single_basis: gmres and block_gmres store their basis in "
                "single precision; single_precond: fsai, isai, block_jacobi, "
                "ilu0 and ic0 store their values in it; mixed: both, and "
                "block_cg and cg compute corrections in single precision and "
                "refine; X, residuals and tolerances are double always; auto "
                "is double, but amg runs in single precision unless this is "
                "double"),

    ROW(rtol, REAL, .default_value = "1e-8", .high = 1, .group = STOPPING,
        .argument = "X", .help = "relative tolerance of every column"),
    ROW(atol, REAL, .default_value = "0", .high = HUGE_VAL, .group = STOPPING,
        .argument = "X",
        .help = "absolute tolerance; a column has converged when its residual "
                "is within this or the relative tolerance"),
    ROW_OF(norm, true, WORD, .default_value = "rhs",
        .words = "rhs backward start absolute", .group = STOPPING,
        .argument = "WHICH",
        .help = "what a residual is compared with: rhs, rtol ||b||; backward, "
                "rtol (||A|| ||x|| + ||b||); start, rtol times the first "
                "residual; absolute, atol alone"),
    ROW(max_iterations, INTEGER, .default_value = "10000", .high = INT_MAX,
        .aliases = "maxit maxiter", .group = STOPPING, .argument = "N",
        .help = "largest number of iterations"),
    ROW(max_seconds, REAL, .default_value = "0", .high = HUGE_VAL,
        .aliases = "maxtime", .group = STOPPING, .argument = "S",
        .unit = "seconds",
        .help = "limit of the time: of one solve and the set-up before it; of "
                "the command, from its start, reading too.  The best iterate "
                "is kept (one iteration is made always), then verified and "
                "written; 0 means no limit"),
    ROW(true_residual_every, INTEGER, .default_value = "50", .low = 1,
        .high = INT_MAX, .group = STOPPING, .argument = "N",
        .unit = "iterations",
        .help = "the true residual b - A x is computed once in this many"),

    ROW(which, WORD, .default_value = "smallest",
        .words = "smallest largest nearest", .group = EIGEN,
        .argument = "WHICH",
        .help = "which end of the spectrum, or the eigenvalues nearest to "
                "sigma"),
    ROW(sigma, REAL, .default_value = "0", .low = -HUGE_VAL, .high = HUGE_VAL,
        .group = EIGEN, .argument = "X",
        .help = "the shift, where which is nearest"),
    ROW(block, INTEGER, .default_value = "0", .high = 256, .group = EIGEN,
        .argument = "M", .unit = "columns",
        .help = "number of columns of the iteration; 0 takes one for each "
                "wanted pair and some guard columns, at most 40 in all"),
    ROW(verify_count, BOOLEAN, .default_value = "false", .group = EIGEN,
        .help = "look for missed eigenvalues after the pairs are found"),

    ROW(kernel, NAME, .default_value = "auto",
        .words = "auto measure @kernel.cpu", .group = MACHINE,
        .argument = "NAME",
        .help = "sparse product: auto (best predicted), measure (best timed), "
                "or the name of a kernel"),
    ROW(wisdom, FILE, .default_value = "", .group = MACHINE,
        .argument = "FILE",
        .help = "remember the measured choices of kernel measure in this "
                "file"),
    ROW(full_precision, BOOLEAN, .default_value = "true", .group = MACHINE,
        .help = "choose no kernel that rounds A or X to fewer bits"),
    ROW(strict_nonfinite, BOOLEAN, .default_value = "false", .group = MACHINE,
        .help = "choose no kernel by which a NaN or infinity of X reaches rows "
                "of A X that do not store its column"),
    ROW(check_every, INTEGER, .default_value = "10", .low = 1, .high = 16,
        .group = MACHINE, .argument = "N", .unit = "iterations",
        .help = "iterations queued on a GPU before the host looks at them; "
                "changes no result"),
    ROW(replay, BOOLEAN, .default_value = "true", .group = MACHINE,
        .help = "iterations of small systems are recorded once as a CUDA graph "
                "and replayed; changes no result"),
};
enum { ROWS = sizeof rows / sizeof *rows };

/* Without a group: the command has -device and its processes for these. */
static const spsi_option context_rows[] = {
    ROW_IN(sps_context_options, place, true, WORD, .default_value = "auto",
           .words = "auto host cuda", .argument = "WHERE",
           .help = "a GPU if there is one, else the host, or one of them"),
    CONTEXT(device, INTEGER, .default_value = "-1", .low = -1, .high = INT_MAX,
        .argument = "N",
        .help = "ordinal of the GPU; -1 leaves the choice to the library"),
    CONTEXT(reproducible, BOOLEAN, .default_value = "true",
        .help = "the same bits on the same machine"),
    CONTEXT(comm_seconds, REAL, .default_value = "0", .high = HUGE_VAL,
        .argument = "S", .unit = "seconds",
        .help = "longest wait for another process; 0 means no limit"),

    CONTEXT(max_device_bytes, SIZE, .default_value = "0", .high = HUGE_VAL,
        .aliases = "maxdevmem", .group = MACHINE, .argument = "BYTES",
        .help = "use at most this much GPU memory (K, M, G or T may follow the "
                "number); the part of the matrix that does not fit stays in "
                "host memory and is copied to the GPU during each product; 0 "
                "uses all free memory"),
    CONTEXT(threads, INTEGER, .default_value = "0", .high = SPS_TEAM_MOST,
        .group = MACHINE, .argument = "N",
        .help = "host threads; 0 means all cores that this process may use"),
    CONTEXT(across_ranks, BOOLEAN, .default_value = "false", .group = MACHINE,
        .help = "on the host: the same iterations and bits of X for any number "
                "of processes, one included, with preconditioner none, jacobi "
                "or chebyshev; each iteration takes longer"),
    CONTEXT(seed, NATURAL, .default_value = "1", .high = HUGE_VAL,
        .group = MACHINE, .argument = "N",
        .help = "seed of all random numbers; the same seed gives the same "
                "numbers on every machine"),
};
enum { CONTEXT_ROWS = sizeof context_rows / sizeof *context_rows };

const spsi_option *spsi_option_row(int i)
{
    return i >= 0 && i < ROWS ? &rows[i] : NULL;
}

const spsi_option *spsi_context_option_row(int i)
{
    return i >= 0 && i < CONTEXT_ROWS ? &context_rows[i] : NULL;
}

void *spsi_option_member(const spsi_option *row, const void *opt)
{
    return (char *)opt + row->info.offset;
}

bool spsi_option_is_text(const spsi_option *row)
{
    const sps_option_type type = row->info.type;

    return !row->numbered && (type == SPS_OPTION_WORD ||
           type == SPS_OPTION_NAME || type == SPS_OPTION_FILE);
}

bool spsi_option_word(const char *words, int i, char *word, size_t size)
{
    size_t length;

    for (; words && *words; words += length + (words[length] == ' ')) {
        length = strcspn(words, " ");
        if (i-- > 0) continue;
        if (length >= size) length = size - 1;
        memcpy(word, words, length);
        word[length] = '\0';
        return true;
    }
    return false;
}

/* Returns whether names are equal, where '-' counts as '_'. */
static bool same(const char *a, const char *b)
{
    for (; *a || *b; a++, b++)
        if ((*a == '-' ? '_' : *a) != (*b == '-' ? '_' : *b)) return false;
    return true;
}

static bool names(const sps_option_info *info, const char *name)
{
    char alias[64];

    if (same(info->name, name)) return true;
    for (int i = 0; spsi_option_word(info->aliases, i, alias, sizeof alias);
         i++)
        if (same(alias, name)) return true;
    return false;
}

/* Returns the option whose name or alias is most similar to `name`, or NULL. */
static const char *nearest(const char *name)
{
    const char *near = NULL;
    char word[64] = "", alias[64];
    int limit = INT_MAX;

    for (size_t i = 0; name[i] && i + 1 < sizeof word; i++)
        word[i] = name[i] == '-' ? '_' : name[i];
    for (int i = 0; i < ROWS; i++) {
        const sps_option_info *info = &rows[i].info;

        if (spsi_nearer(word, info->name, &limit)) near = info->name;
        for (int a = 0; spsi_option_word(info->aliases, a, alias, sizeof alias);
             a++)
            if (spsi_nearer(word, alias, &limit)) near = info->name;
    }
    return near;
}

int spsi_option_before_0_2(const char *name)
{
    return same(name, "basis") ? 1 : same(name, "precond_precision") ? 2 : 0;
}

const spsi_option *spsi_option_find(sps_context *ctx, const char *name)
{
    const char *near, *now = spsi_option_before_0_2(name) ? "precision" : name;

    for (int i = 0; i < ROWS; i++)
        if (names(&rows[i].info, now)) return &rows[i];
    near = nearest(name);
    if (near)
        (void)spsi_fail(ctx, SPS_EINVAL, "no option \"%.60s\"; did you mean "
                        "%s?", name, near);
    else
        (void)spsi_fail(ctx, SPS_EINVAL, "no option \"%.60s\"; sps_list(ctx, "
                        "\"option\", i) names them", name);
    return NULL;
}

/* The row of that name, of a context or a solver. */
static const spsi_option *find_any(sps_context *ctx, const char *name)
{
    for (int i = 0; i < CONTEXT_ROWS; i++)
        if (names(&context_rows[i].info, name)) return &context_rows[i];
    return spsi_option_find(ctx, name);
}

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

sps_status sps_option_information(sps_context *ctx, const char *name,
                                  sps_option_info *info)
{
    const spsi_option *row;
    sps_option_info all;
    sps_status st = SPS_OK;

    SPS_REQUIRE(ctx, name && info, SPS_EINVAL,
                "sps_option_information: NULL argument");
    SPS_TRY(SPS_ABI_CHECK(ctx, sps_option_info, info));
    row = find_any(ctx, name);
    if (!row) return SPS_EINVAL;
    all = row->info;
    all.struct_size = sizeof all;
    all.aliases = or_empty(all.aliases);
    all.words = or_empty(all.words);
    all.argument = or_empty(all.argument);
    all.group = or_empty(all.group);
    all.unit = or_empty(all.unit);
    all.readers = or_empty(all.readers);
    spsi_abi_copy(&all, info);
fail:
    return st;
}
