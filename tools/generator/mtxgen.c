/* SPDX-License-Identifier: BSD-3-Clause */
/* mtxgen.c - the command mtxgen: writes generated matrices as Matrix Market
 * files.
 *
 * In addition to the matrix of a grid, its mass matrix and the coordinates of
 * its nodes can be written, each to a file of its own.  Started by mpirun,
 * processes write each file together. */
#include "tools/generator/mtxgen.h"
#include "tools/generator/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

/* ----------------------------------------------------------- command line */

static void help(void)
{
    printf("usage: mtxgen KIND SIZE [options] [-o FILE]\n"
           "Writes a generated matrix as a Matrix Market file.\n\n%s\n"
           "  -o FILE         output file, which appears when it is complete; .gz\n"
           "                  compresses it; without -o or with - standard\n"
           "                  output is used\n"
           "  -mass FILE      write the lumped mass matrix of a grid to FILE\n"
           "  -consistent     write the consistent mass matrix instead\n"
           "  -coords FILE    write the coordinates of the nodes to FILE, an\n"
           "                  array of three columns\n"
           "  -threads N      number of threads (all cores)\n"
           "  -mpi none       processes started by mpirun are separate runs\n"
           "  -quiet          print no line about what was written\n"
           "  -version -help\n\n"
           "Exit codes: 0 written, 2 wrong usage, 5 out of memory, 7 the\n"
           "output could not be written.\n\n"
           "  mtxgen poisson7 100 -perturb 1 -o p100.mtx\n"
           "  mtxgen elasticity 40 -o beam.mtx.gz -mass mass.mtx.gz\n"
           "  mtxgen leastsquares 100000 2000 -cond 1e4 -o tall.mtx\n"
           "  mpirun -n 8 mtxgen poisson7 500 -o p500.mtx\n"
           "  mtxgen rmat 16 8 -laplacian | spsolve -A - -nrhs 4\n",
           gen_help());
}

/* Reads an option of mtxgen itself, at argv[0].  Returns the number of words
 * read, 0 if it is unknown, -1 if it is invalid. */
static int own_option(mtxgen_job *j, int argc, char **argv, char error[160])
{
    const char **to;

    if (!strcmp(argv[0], "-quiet"))
        return j->quiet = true, 1;
    if (!strcmp(argv[0], "-consistent"))
        return j->consistent = true, 1;
    to = !strcmp(argv[0], "-o")        ? &j->out
         : !strcmp(argv[0], "-mass")   ? &j->mass
         : !strcmp(argv[0], "-coords") ? &j->coords : NULL;
    if (!to && strcmp(argv[0], "-threads") && strcmp(argv[0], "-mpi"))
        return 0;
    if (argc < 2) {
        snprintf(error, 160, "%s needs a value", argv[0]);
        return -1;
    }
    if (!strcmp(argv[0], "-mpi")) {
        j->apart = !strcmp(argv[1], "none");
        if (j->apart) return 2;
        snprintf(error, 160, "-mpi must be none, not %.60s", argv[1]);
        return -1;
    }
    if (to)
        return *to = argv[1], 2;
    j->threads = atoi(argv[1]);
    if (j->threads < 1 || j->threads > 1024) {
        snprintf(error, 160, "-threads must be 1 to 1024, not %.60s", argv[1]);
        return -1;
    }
    return 2;
}

static bool same(const char *a, const char *b)
{
    return a && b && !strcmp(a, b);
}

/* Checks combinations of arguments. */
static int check_words(const mtxgen_job *j, char error[160])
{
    const bool grid = gen_is_grid(&j->spec);

    if (same(j->mass, "-") || same(j->coords, "-"))
        snprintf(error, 160, "-mass and -coords need the name of a file");
    else if (same(j->out, j->mass) || same(j->out, j->coords) ||
             same(j->mass, j->coords))
        snprintf(error, 160, "-o, -mass and -coords name the same file");
    else if (!grid && (j->mass || j->coords))
        snprintf(error, 160, "-mass and -coords are for grids");
    else if (j->consistent && !j->mass)
        snprintf(error, 160, "-consistent needs -mass FILE");
    else
        return 0;
    return -1;
}

/* Reads the command line into the job; returns 0, or -1 with a text in
 * error. */
static int read_words(mtxgen_job *j, int argc, char **argv, char error[160])
{
    bool kind = false;

    for (int i = 1, taken; i < argc; i += taken) {
        taken = gen_parse(&j->spec, argc - i, argv + i, error);
        if (taken > 0 && kind) {
            snprintf(error, 160, "%.60s: only one matrix can be written at a "
                     "time", argv[i]);
            return -1;
        }
        kind |= taken > 0;
        if (!taken)
            taken = gen_option(&j->spec, argc - i, argv + i, error);
        if (!taken)
            taken = own_option(j, argc - i, argv + i, error);
        if (!taken)
            gen_unknown(argv[i], error);
        if (taken <= 0)
            return -1;
    }
    if (same(j->out, "-"))
        j->out = NULL;
    if (!kind)
        snprintf(error, 160, "which matrix?");
    return kind ? check_words(j, error) : -1;
}

/* Joins the command line to one string for the file's header comment. */
static char *join(int argc, char **argv)
{
    size_t length = 8;
    char *text;

    for (int i = 1; i < argc; i++)
        length += strlen(argv[i]) + 1;
    text = malloc(length);
    if (!text)
        return NULL;
    strcpy(text, "mtxgen");
    for (int i = 1; i < argc; i++) {
        strcat(text, " ");
        strcat(text, argv[i]);
    }
    for (char *p = text; *p; p++)
        if (*p == '\n' || *p == '\r')
            *p = ' ';
    return text;
}

static void print_sizes(const gen *g, const mtxgen_job *j)
{
    if (j->quiet || j->of.rank > 0) return;
    if (j->coordinates)
        fprintf(stderr, "mtxgen: %s: coordinates of %lld nodes\n", j->out,
                (long long)gen_nodes(g));
    else
        fprintf(stderr, "mtxgen: %s: %lld rows, %lld nonzeros%s\n",
                j->out ? j->out : "standard output", (long long)g->rows,
                (long long)g->nnz, g->symmetric ? ", symmetric" : "");
}

/* Writes one file.  Returns 0, or the exit code, the same on all processes.
 * Sets *tells where this process is the one that prints the error. */
static int run(const mtxgen_job *j, bool *tells)
{
    char error[160] = "";
    gen g;
    int code = 0;

    if (!gen_open(&j->spec, &g, error))
        code = words_fail(strncmp(error, "out of memory", 13) ? USAGE : MEMORY,
                          error, "");
    code = launch_agree(&j->of, code, false, tells);
    if (!code)
        code = launch_agree(&j->of, mtxgen_write(&g, j), false, tells);
    if (!code) print_sizes(&g, j);
    gen_close(&g);
    return code;
}

/* Writes the matrix, the mass matrix and the coordinates, each to its own
 * file. */
static int run_all(const mtxgen_job *j, bool *tells)
{
    mtxgen_job mass = *j, coords = *j;
    int code = run(j, tells);

    mass.out = j->mass;
    mass.spec.mass = j->consistent ? GEN_CONSISTENT : GEN_LUMPED;
    if (!code && j->mass)
        code = run(&mass, tells);
    coords.out = j->coords;
    coords.coordinates = true;
    if (!code && j->coords)
        code = run(&coords, tells);
    return code;
}

/* Joins the processes, and writes the files. */
static int run_together(mtxgen_job *j, bool *tells)
{
    int code;

    if (!launch_open(&j->of, j->apart))
        return words_fail(USAGE, sps_context_error(NULL),
                          "; -mpi none makes each process a separate run");
    *tells = true;
#ifdef _OPENMP
    if (j->threads == 0) j->threads = j->of.size > 1
                                    ? launch_threads(omp_get_max_threads())
                                    : omp_get_max_threads();
#endif
    if (j->threads == 0) j->threads = 1;
    code = run_all(j, tells);
    words_tell("mtxgen", code, tells);      /* mpirun ends the others when one
                                               has ended */
    launch_close(&j->of);
    return code;
}

static int serve(int argc, char **argv, bool *tells)
{
    mtxgen_job j = {.quiet = false};
    char error[160] = "", *command;
    int code;

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "-help"))
            return help(), 0;
        if (!strcmp(argv[i], "-version"))
            return printf("mtxgen %d.%d.%d\n", SPS_VERSION_MAJOR,
                          SPS_VERSION_MINOR, SPS_VERSION_PATCH), 0;
    }
    gen_default(&j.spec);
    if (read_words(&j, argc, argv, error))
        return words_fail(USAGE, error, " (see mtxgen -help)");
    command = join(argc, argv);
    if (!command)
        return words_fail(MEMORY, "out of memory", "");
    j.command = command;
    code = run_together(&j, tells);
    free(command);
    return code;
}

int main(int argc, char **argv)
{
    return words_main("mtxgen", argc, argv, serve);
}
