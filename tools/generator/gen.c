/* SPDX-License-Identifier: BSD-3-Clause */
/* gen.c - names and options of the generators, and the assembly of rows into
 * arrays. */
#include "tools/generator/gen.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct { const char *name; gen_kind kind; } kinds[] = {
    {"poisson7", GEN_POISSON7},     {"laplace27", GEN_LAPLACE27},
    {"elasticity", GEN_ELASTICITY}, {"convection", GEN_CONVECTION},
    {"rmat", GEN_RMAT},             {"blocks", GEN_BLOCKS},
    {"leastsquares", GEN_LEAST},
};

enum { KINDS = (int)(sizeof kinds / sizeof kinds[0]) };

void gen_default(gen_spec *spec)
{
    memset(spec, 0, sizeof *spec);
    spec->aniso = 1;
    spec->velocity = 1;
    spec->cond = 100;
    spec->seed = 1;
}

const char *gen_help(void)
{
    return
    "  poisson7 NX [NY NZ]    7-point Laplacian, Dirichlet\n"
    "  laplace27 NX [NY NZ]   Laplacian on Q1 hexahedra, 27 points, Dirichlet\n"
    "  elasticity NX [NY NZ]  Q1 hexahedra, 3 unknowns per node, nu 0.3, one "
    "face clamped\n"
    "  convection NX [NY NZ]  upwind convection-diffusion, nonsymmetric\n"
    "  rmat SCALE EDGES       R-MAT graph: 2^SCALE vertices, EDGES drawn for "
    "each\n"
    "  blocks N B COUNT FILL  N rows, COUNT blocks of B x B in each row of "
    "blocks,\n"
    "                         each entry stored with probability FILL\n"
    "  leastsquares M N       M x N, at most 16 entries in a row; singular "
    "values\n"
    "                         decrease geometrically from 1 to 1 / cond\n"
    "\n"
    "  -jump           coefficients jump by 1e4 between boxes of 8^3 elements\n"
    "  -aniso X        elements are bricks of 1 x 1 x X\n"
    "  -perturb SEED   change every value at random; symmetric matrices remain\n"
    "                  symmetric, positive definite ones positive definite\n"
    "  -free           elasticity: no face is clamped\n"
    "  -neumann        poisson7, laplace27: no boundary values, zero row "
    "sums\n"
    "  -velocity V     convection: cell Peclet number (1)\n"
    "  -laplacian      rmat: the graph Laplacian instead of the adjacency\n"
    "  -shift S        grids: add S times the lumped mass matrix; rmat: add S\n"
    "                  to the diagonal of the Laplacian (0)\n"
    "  -cond X         leastsquares: the condition number (100)\n"
    "  -deficient R    leastsquares: R of the singular values are 0 (0)\n"
    "  -seed N         rmat, blocks, leastsquares: seed of the pattern (1)\n";
}

/* ---------------------------------------------------------------- parsing */

static bool number(const char *word, double low, double high, double *value)
{
    char *end;

    errno = 0;
    *value = strtod(word, &end);
    return end != word && !*end && !errno && isfinite(*value) &&
           *value >= low && *value <= high;
}

static bool whole(const char *word, int64_t low, int64_t high, int64_t *value)
{
    char *end;

    errno = 0;
    *value = strtoll(word, &end, 10);
    return end != word && !*end && !errno && *value >= low && *value <= high;
}

static int fail(char error[160], const char *what, const char *word)
{
    snprintf(error, 160, "%.100s%.50s", what, word);
    return -1;
}

/* Returns whether the word could be a size: it is neither an option nor a
 * name. */
static bool digit(int argc, char **argv, int i)
{
    return i < argc && argv[i][0] >= '0' && argv[i][0] <= '9';
}

static int parse_rmat(gen_spec *spec, int argc, char **argv, char error[160])
{
    int64_t scale;

    if (!digit(argc, argv, 1) || !digit(argc, argv, 2))
        return fail(error, "rmat needs SCALE EDGES", "");
    if (!whole(argv[1], 1, 30, &scale))
        return fail(error, "rmat: SCALE must be 1 to 30, not ", argv[1]);
    if (!whole(argv[2], 1, 1000000, &spec->edges))
        return fail(error, "rmat: EDGES must be 1 to 1000000, not ", argv[2]);
    spec->scale = (int)scale;
    return 3;
}

static int parse_blocks(gen_spec *spec, int argc, char **argv,
                        char error[160])
{
    for (int i = 1; i < 5; i++)
        if (!digit(argc, argv, i))
            return fail(error, "blocks needs N B COUNT FILL", "");
    if (!whole(argv[1], 1, INT32_MAX, &spec->n[0]))
        return fail(error, "blocks: N must be 1 to 2147483647, not ", argv[1]);
    if (!whole(argv[2], 1, 4096, &spec->block) || spec->n[0] % spec->block)
        return fail(error, "blocks: B must be 1 to 4096 and divide N, not ",
                    argv[2]);
    if (!whole(argv[3], 1, spec->n[0] / spec->block, &spec->per_row))
        return fail(error, "blocks: COUNT must be 1 to N / B, not ", argv[3]);
    if (!number(argv[4], 0, 1, &spec->fill))
        return fail(error, "blocks: FILL must be 0 to 1, not ", argv[4]);
    return 5;
}

static int parse_least(gen_spec *spec, int argc, char **argv, char error[160])
{
    for (int i = 1; i < 3; i++) {
        if (!digit(argc, argv, i))
            return fail(error, "leastsquares needs M N", "");
        if (!whole(argv[i], 1, INT32_MAX, &spec->n[i - 1]))
            return fail(error, "leastsquares: M and N must be 1 to "
                        "2147483647, not ",
                        argv[i]);
    }
    return 3;
}

void gen_unknown(const char *word, char error[160])
{
    int n = snprintf(error, 160, "unknown word %.60s%s", word,
                     *word == '-' ? "" : "; matrices are");

    for (int i = 0; *word != '-' && i < KINDS && n < 160; i++)
        n += snprintf(error + n, (size_t)(160 - n), "%s %s", i ? "," : "",
                      kinds[i].name);
}

int gen_parse(gen_spec *spec, int argc, char **argv, char error[160])
{
    int words, which;

    for (which = 0; which < KINDS; which++)
        if (argc > 0 && !strcmp(argv[0], kinds[which].name))
            break;
    if (which == KINDS)
        return 0;
    spec->kind = kinds[which].kind;
    if (spec->kind == GEN_RMAT)
        return parse_rmat(spec, argc, argv, error);
    if (spec->kind == GEN_BLOCKS)
        return parse_blocks(spec, argc, argv, error);
    if (spec->kind == GEN_LEAST)
        return parse_least(spec, argc, argv, error);
    for (words = 1; words < 4 && digit(argc, argv, words); words++)
        if (!whole(argv[words], 1, 100000, &spec->n[words - 1]))
            return fail(error, "a size must be 1 to 100000, not ", argv[words]);
    if (words == 2)
        spec->n[1] = spec->n[2] = spec->n[0];
    if (words == 2 || words == 4)
        return words;
    return fail(error, argv[0], " needs NX or NX NY NZ");
}

/* Sets *p from the word after argv[0]. */
static int real_option(int argc, char **argv, double low, double high,
                       double *p, char error[160])
{
    if (argc < 2)
        return fail(error, argv[0], " needs a number");
    if (!number(argv[1], low, high, p)) {
        snprintf(error, 160, "%.40s: %.60s is not a number from %g to %g",
                 argv[0], argv[1], low, high);
        return -1;
    }
    return 2;
}

static int seed_option(int argc, char **argv, uint64_t *p, char error[160])
{
    int64_t value;

    if (argc < 2 || !whole(argv[1], 0, INT64_MAX, &value))
        return fail(error, argv[0], " needs a whole number, 0 or more");
    *p = (uint64_t)value;
    return 2;
}

int gen_option(gen_spec *spec, int argc, char **argv, char error[160])
{
    const char *word = argc > 0 ? argv[0] : "";
    const struct { const char *name; bool *set; } flags[] = {
        {"-jump", &spec->jump}, {"-free", &spec->free},
        {"-neumann", &spec->neumann}, {"-laplacian", &spec->laplacian},
    };
    const struct { const char *name; double low, high, *set; } reals[] = {
        {"-aniso", 1e-6, 1e6, &spec->aniso},
        {"-velocity", 0, 1e6, &spec->velocity},
        {"-shift", 0, 1e300, &spec->shift}, {"-cond", 1, 1e300, &spec->cond},
    };

    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (!strcmp(word, flags[i].name)) return *flags[i].set = true, 1;
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
        if (!strcmp(word, reals[i].name))
            return real_option(argc, argv, reals[i].low, reals[i].high,
                               reals[i].set, error);
    if (!strcmp(word, "-deficient")) {
        if (argc < 2 || !whole(argv[1], 0, INT32_MAX, &spec->deficient))
            return fail(error, "-deficient needs a whole number, 0 or more",
                        "");
        return 2;
    }
    if (!strcmp(word, "-seed"))
        return seed_option(argc, argv, &spec->seed, error);
    if (!strcmp(word, "-perturb")) {
        spec->perturb = true;
        return seed_option(argc, argv, &spec->perturb_seed, error);
    }
    return 0;
}

/* ------------------------------------------------------------------- rows */

bool gen_is_grid(const gen_spec *spec)
{
    return spec->kind != GEN_RMAT && spec->kind != GEN_BLOCKS &&
           spec->kind != GEN_LEAST;
}

static bool open_kind(gen *g, char error[160])
{
    switch (g->spec.kind) {
    case GEN_RMAT: return gen_rmat_open(g, error);
    case GEN_BLOCKS: return gen_blocks_open(g, error);
    case GEN_LEAST: return gen_least_open(g, error);
    default: return gen_grid_open(g, error) &&
                    (!g->spec.mass || gen_mass_open(g));
    }
}

/* Returns why options do not fit the kind, or NULL. */
static const char *refused(const gen_spec *s)
{
    const gen_kind kind = s->kind;
    const bool grid = gen_is_grid(s), least = kind == GEN_LEAST;
    const struct { bool wrong; const char *why; } rules[] = {
        {!grid && (s->jump || s->aniso != 1), "-jump and -aniso are for grids"},
        {kind != GEN_RMAT && s->laplacian, "-laplacian is for rmat"},
        {s->shift != 0 && !grid && !s->laplacian,
         "-shift is for grids and for rmat with -laplacian"},
        {s->free && kind != GEN_ELASTICITY, "-free is for elasticity"},
        {s->neumann && kind != GEN_POISSON7 && kind != GEN_LAPLACE27,
         "-neumann is for poisson7 and laplace27"},
        {s->mass && !grid, "only grids have a mass matrix"},
        {!least && (s->cond != 100 || s->deficient),
         "-cond and -deficient are for leastsquares"},
        {least && s->perturb,
         "-perturb is not for leastsquares: use another -seed"},
    };

    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].wrong) return rules[i].why;
    return NULL;
}

bool gen_open(const gen_spec *spec, gen *g, char error[160])
{
    memset(g, 0, sizeof *g);
    g->spec = *spec;
    if (refused(spec)) {
        fail(error, refused(spec), "");
        return false;
    }
    if (!open_kind(g, error)) {
        gen_close(g);
        return false;
    }
    if (spec->kind != GEN_LEAST) g->columns = g->rows;
    return true;
}

int64_t gen_nodes(const gen *g)
{
    if (!gen_is_grid(&g->spec))
        return 0;
    return g->spec.n[0] * g->spec.n[1] * g->spec.n[2];
}

double gen_coordinate(const gen *g, int64_t node, int axis)
{
    int64_t c[3];

    gen_grid_place(g, node, c);
    return (double)c[axis] * (axis == 2 ? g->spec.aniso : 1);
}

/* K + S M: adds S m_i to the diagonal of row i of a grid. */
static int64_t add_shift(const gen *g, int64_t i, int64_t count,
                         const int32_t *col, double *val)
{
    for (int64_t p = 0; p < count; p++)
        if (col[p] == i) val[p] += g->spec.shift * gen_mass_lumped(g, i);
    return count;
}

void gen_close(gen *g)
{
    free(g->rowptr);
    free(g->col);
    memset(g, 0, sizeof *g);
}

int64_t gen_row(const gen *g, int64_t i, int32_t *col, double *val)
{
    if (g->spec.mass)
        return gen_mass_row(g, i, col, val);
    switch (g->spec.kind) {
    case GEN_RMAT: return gen_rmat_row(g, i, col, val);
    case GEN_BLOCKS: return gen_blocks_row(g, i, col, val);
    case GEN_LEAST: return gen_least_row(g, i, col, val);
    default:
        return add_shift(g, i, gen_grid_row(g, i, col, val), col, val);
    }
}

int64_t gen_count(const gen *g, int64_t i)
{
    if (g->spec.mass)
        return gen_mass_count(g, i);
    switch (g->spec.kind) {
    case GEN_RMAT: return gen_rmat_count(g, i);
    case GEN_BLOCKS: return gen_blocks_count(g, i);
    case GEN_LEAST: return gen_least_count(g, i);
    default: return gen_grid_count(g, i);
    }
}

int64_t gen_count_rows(const gen *g, int64_t first, int64_t count,
                       int64_t *rowptr)
{
    rowptr[0] = 0;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < count; i++)
        rowptr[i + 1] = gen_count(g, first + i);
    for (int64_t i = 0; i < count; i++)
        rowptr[i + 1] += rowptr[i];
    return rowptr[count];
}

void gen_fill(const gen *g, int64_t *rowptr, int32_t *col, double *val)
{
    gen_count_rows(g, 0, g->rows, rowptr);
#pragma omp parallel for schedule(dynamic, 1024)
    for (int64_t i = 0; i < g->rows; i++)
        gen_row(g, i, col + rowptr[i], val + rowptr[i]);
}

/* -------------------------------------------------- several processes */

int64_t gen_share(const gen *g, int rank, int size)
{
    const int64_t unit = g->rows >= (int64_t)100 * size ? 6 : 1;
    const double part = (double)rank / size;
    int64_t low = 0, high = g->rows;

    if (rank >= size) return g->rows;
    if (!g->rowptr) return (int64_t)(part * (double)g->rows) / unit * unit;
    while (low < high) {
        const int64_t i = low + (high - low) / 2;

        if ((double)(g->rowptr[i] + i) <
            part * (double)(g->rowptr[g->rows] + g->rows))
            low = i + 1;
        else
            high = i;
    }
    return low / unit * unit;
}

bool gen_fill_rows(const gen *g, int64_t first, int64_t count,
                   const int64_t *rowptr, int64_t *col, double *val)
{
    bool failed = false;

#pragma omp parallel reduction(||:failed)
    {
        int32_t *own = malloc(((size_t)g->widest + 1) * sizeof *own);

        failed = !own;
#pragma omp for schedule(dynamic, 1024)
        for (int64_t i = 0; i < count; i++) {
            if (!own) continue;
            gen_row(g, first + i, own, val + rowptr[i]);
            for (int64_t p = rowptr[i]; p < rowptr[i + 1]; p++)
                col[p] = own[p - rowptr[i]];
        }
        free(own);
    }
    return !failed;
}
