/* SPDX-License-Identifier: BSD-3-Clause */
/* mtxgen.c - writes generated matrices as Matrix Market files.
 *
 * In addition to the matrix of a grid, its mass matrix and the coordinates of
 * its nodes can be written, each to a file of its own.
 *
 * Rows are written in pieces of some thousand: threads convert pieces to text
 * (and compress them, each as a gzip member of its own, which the format
 * allows), and the pieces are written in order.  So memory does not grow with
 * the grid.  A file appears under its name only when it is complete
 * (lib/io/stream/replace.h). */
#include "tools/generator/gen.h"
#include "tools/generator/words.h"
#include "io/number/number.h"
#include "io/stream/replace.h"
#include "spsolve.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#ifdef _OPENMP
#include <omp.h>
#endif

enum { USAGE = 2, MEMORY = 5, OUTPUT = 7 };
enum { PIECE = 4096, PER_THREAD = 4 };   /* rows of a piece; pieces that are in
                                            memory for each thread */

typedef struct job {
    gen_spec spec;
    const char *out;             /* NULL: standard output */
    const char *mass, *coords;   /* NULL if not requested */
    bool consistent;             /* whether the mass matrix is the consistent
                                    one */
    bool coordinates;            /* out is for coordinates, not for a matrix */
    const char *command;
    int threads;
    bool quiet;
} job;

typedef struct piece {
    char *text, *packed;
    size_t length, room, packed_length, packed_room;
    bool failed;
} piece;

static bool gzipped(const job *j)
{
    const size_t n = j->out ? strlen(j->out) : 0;

    return n > 3 && !strcmp(j->out + n - 3, ".gz");
}

static int fail(int code, const char *what, const char *detail)
{
    fprintf(stderr, "mtxgen: %s%s\n", what, detail);
    return code;
}

/* ----------------------------------------------------------------- pieces */

static bool reserve(char **p, size_t *room, size_t need)
{
    char *more;

    if (need <= *room)
        return true;
    need += need / 2;
    more = realloc(*p, need);
    if (!more)
        return false;
    *p = more;
    *room = need;
    return true;
}

/* Writes lines "i j v" of rows first .. end-1, the lower triangle if
 * symmetric. */
static bool write_rows(const gen *g, int64_t first, int64_t end, int32_t *col,
                       double *val, piece *to)
{
    const size_t line = 2 * 11 + SPSI_NUMBER_WIDTH + 1;
    char number[SPSI_NUMBER_WIDTH];

    to->length = 0;
    for (int64_t i = first; i < end; i++) {
        const int64_t count = gen_row(g, i, col, val);
        const int width = spsi_number_print_integer(i + 1, number);
        char *p;

        if (!reserve(&to->text, &to->room, to->length + (size_t)count * line))
            return false;
        p = to->text + to->length;
        for (int64_t q = 0; q < count; q++) {
            if (g->symmetric && col[q] > i)
                break;
            memcpy(p, number, (size_t)width);
            p += width;
            *p++ = ' ';
            p += spsi_number_print_integer((int64_t)col[q] + 1, p);
            *p++ = ' ';
            p += spsi_number_print(val[q], p);
            *p++ = '\n';
        }
        to->length = (size_t)(p - to->text);
    }
    return true;
}

/* Writes numbers first .. end-1 of the sequence of all x coordinates, all y and
 * all z: array files are column-major. */
static bool write_coordinates(const gen *g, int64_t first, int64_t end,
                              piece *to)
{
    const int64_t nodes = gen_nodes(g);
    char *p;

    to->length = 0;
    if (!reserve(&to->text, &to->room,
                 (size_t)(end - first) * (SPSI_NUMBER_WIDTH + 1)))
        return false;
    p = to->text;
    for (int64_t i = first; i < end; i++) {
        p += spsi_number_print(gen_coordinate(g, i % nodes, (int)(i / nodes)),
                               p);
        *p++ = '\n';
    }
    to->length = (size_t)(p - to->text);
    return true;
}

/* Compresses the text into `packed`, a complete gzip member. */
static bool pack(piece *to)
{
    z_stream z = {0};
    bool good;

    if (deflateInit2(&z, 3, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY))
        return false;
    good = reserve(&to->packed, &to->packed_room,
                   deflateBound(&z, (uLong)to->length));
    if (good) {
        z.next_in = (Bytef *)to->text;
        z.avail_in = (uInt)to->length;
        z.next_out = (Bytef *)to->packed;
        z.avail_out = (uInt)to->packed_room;
        good = deflate(&z, Z_FINISH) == Z_STREAM_END;
        to->packed_length = z.total_out;
    }
    deflateEnd(&z);
    return good;
}

static bool put(FILE *f, const piece *p, bool gzip)
{
    size_t length = gzip ? p->packed_length : p->length;

    return fwrite(gzip ? p->packed : p->text, 1, length, f) == length;
}

static bool put_head(const gen *g, const job *j, FILE *f, piece *p)
{
    int64_t stored = g->symmetric ? (g->nnz + g->diagonal) / 2 : g->nnz;
    size_t need = strlen(j->command) + 256;

    if (!reserve(&p->text, &p->room, need))
        return false;
    if (j->coordinates)
        p->length = (size_t)snprintf(
            p->text, need,
            "%%%%MatrixMarket matrix array real general\n%% %s\n%lld 3\n",
            j->command, (long long)gen_nodes(g));
    else
        p->length = (size_t)snprintf(
            p->text, need, "%%%%MatrixMarket matrix coordinate real %s\n"
            "%% %s\n%lld %lld %lld\n", g->symmetric ? "symmetric" : "general",
            j->command, (long long)g->rows, (long long)g->columns,
            (long long)stored);
    return (!gzipped(j) || pack(p)) && put(f, p, gzipped(j));
}

static void drop(piece *pieces, int count)
{
    for (int i = 0; pieces && i < count; i++) {
        free(pieces[i].text);
        free(pieces[i].packed);
    }
    free(pieces);
}

/* Returns the number of rows, or of coordinates, from which the lines of the
 * body are made. */
static int64_t length(const gen *g, const job *j)
{
    return j->coordinates ? 3 * gen_nodes(g) : g->rows;
}

/* Fills up to `count` pieces from row `first` on, in parallel. */
static void fill_round(const gen *g, const job *j, int64_t first, int count,
                       piece *pieces)
{
#pragma omp parallel num_threads(j->threads)
    {
        size_t widest = (size_t)g->widest + 1;
        int32_t *col = malloc(widest * sizeof *col);
        double *val = malloc(widest * sizeof *val);

#pragma omp for schedule(dynamic, 1)
        for (int i = 0; i < count; i++) {
            int64_t from = first + (int64_t)i * PIECE, to = from + PIECE;

            to = to < length(g, j) ? to : length(g, j);
            pieces[i].failed = !col || !val ||
                !(j->coordinates
                      ? write_coordinates(g, from, to, &pieces[i])
                      : write_rows(g, from, to, col, val, &pieces[i])) ||
                (gzipped(j) && !pack(&pieces[i]));
        }
        free(col);
        free(val);
    }
}

/* Writes the header and all lines; returns 0 or an exit code. */
static int write_lines(const gen *g, const job *j, FILE *f)
{
    int count = PER_THREAD * j->threads, code = 0;
    piece *pieces = calloc((size_t)count, sizeof *pieces);

    if (!pieces)
        return fail(MEMORY, "out of memory", "");
    if (!put_head(g, j, f, pieces))
        code = OUTPUT;
    for (int64_t first = 0; first < length(g, j) && !code;
         first += (int64_t)count * PIECE) {
        int64_t left = (length(g, j) - first + PIECE - 1) / PIECE;
        int now = left < count ? (int)left : count;

        fill_round(g, j, first, now, pieces);
        for (int i = 0; i < now && !code; i++)
            if (pieces[i].failed)
                code = fail(MEMORY, "out of memory", "");
            else if (!put(f, &pieces[i], gzipped(j)))
                code = OUTPUT;
    }
    if (!code && fflush(f))
        code = OUTPUT;
    drop(pieces, count);
    return code;
}

/* --------------------------------------------------------------- the file */

static int cannot_write(const char *name)
{
    fprintf(stderr, "mtxgen: %s cannot be written: %s\n", name,
            strerror(errno));
    return OUTPUT;
}

/* Writes to the opened file and gives it its final name. */
static int write_replacing(const gen *g, const job *j, spsi_replace *r)
{
    int fd = dup(r->fd), code = OUTPUT;
    FILE *f = fd < 0 ? NULL : fdopen(fd, "wb");

    if (f) {
        code = write_lines(g, j, f);
        if (code == OUTPUT) cannot_write(j->out);
        if (fclose(f) && !code) code = cannot_write(j->out);
    } else {
        cannot_write(j->out);
        if (fd >= 0) close(fd);
    }
    if (code) spsi_replace_abandon(r);
    else if (!spsi_replace_close(r)) code = cannot_write(j->out);
    return code;
}

static int write_file(const gen *g, const job *j)
{
    spsi_replace r;
    int code;

    if (!j->out) {
        code = write_lines(g, j, stdout);
        return code == OUTPUT ? cannot_write("standard output") : code;
    }
    if (!spsi_replace_open(&r, j->out, NULL, NULL))
        return cannot_write(j->out);
    return write_replacing(g, j, &r);
}

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
           "  -quiet          print no line about what was written\n"
           "  -version -help\n\n"
           "Exit codes: 0 written, 2 wrong usage, 5 out of memory, 7 the\n"
           "output could not be written.\n\n"
           "  mtxgen poisson7 100 -perturb 1 -o p100.mtx\n"
           "  mtxgen elasticity 40 -o beam.mtx.gz -mass mass.mtx.gz\n"
           "  mtxgen leastsquares 100000 2000 -cond 1e4 -o tall.mtx\n"
           "  mtxgen rmat 16 8 -laplacian | spsolve -A - -nrhs 4\n",
           gen_help());
}

/* Reads an option of mtxgen itself, at argv[0].  Returns the number of words
 * read, 0 if it is unknown, -1 if it is invalid. */
static int own_option(job *j, int argc, char **argv, char error[160])
{
    const char **to;

    if (!strcmp(argv[0], "-quiet"))
        return j->quiet = true, 1;
    if (!strcmp(argv[0], "-consistent"))
        return j->consistent = true, 1;
    to = !strcmp(argv[0], "-o")        ? &j->out
         : !strcmp(argv[0], "-mass")   ? &j->mass
         : !strcmp(argv[0], "-coords") ? &j->coords : NULL;
    if (!to && strcmp(argv[0], "-threads"))
        return 0;
    if (argc < 2) {
        snprintf(error, 160, "%s needs a value", argv[0]);
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
static int check_words(const job *j, char error[160])
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
static int read_words(job *j, int argc, char **argv, char error[160])
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
            snprintf(error, 160, "unknown word %.100s", argv[i]);
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

/* Writes one file. */
static int run(const job *j)
{
    char error[160] = "";
    gen g;
    int code;

    if (!gen_open(&j->spec, &g, error))
        return fail(strncmp(error, "out of memory", 13) ? USAGE : MEMORY,
                    error, "");
    code = write_file(&g, j);
    if (!code && !j->quiet && j->coordinates)
        fprintf(stderr, "mtxgen: %s: coordinates of %lld nodes\n", j->out,
                (long long)gen_nodes(&g));
    else if (!code && !j->quiet)
        fprintf(stderr, "mtxgen: %s: %lld rows, %lld nonzeros%s\n",
                j->out ? j->out : "standard output", (long long)g.rows,
                (long long)g.nnz, g.symmetric ? ", symmetric" : "");
    gen_close(&g);
    return code;
}

/* Writes the matrix, the mass matrix and the coordinates, each to its own
 * file. */
static int run_all(const job *j)
{
    job mass = *j, coords = *j;
    int code = run(j);

    mass.out = j->mass;
    mass.spec.mass = j->consistent ? GEN_CONSISTENT : GEN_LUMPED;
    if (!code && j->mass)
        code = run(&mass);
    coords.out = j->coords;
    coords.coordinates = true;
    if (!code && j->coords)
        code = run(&coords);
    return code;
}

static int serve(int argc, char **argv)
{
    job j = {.threads = 1};
    char error[160] = "", *command;
    int code;

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "-help"))
            return help(), 0;
        if (!strcmp(argv[i], "-version"))
            return printf("mtxgen %d.%d.%d\n", SPS_VERSION_MAJOR,
                          SPS_VERSION_MINOR, SPS_VERSION_PATCH), 0;
    }
#ifdef _OPENMP
    j.threads = omp_get_max_threads();
#endif
    gen_default(&j.spec);
    if (read_words(&j, argc, argv, error))
        return fail(USAGE, error, " (see mtxgen -help)");
    command = join(argc, argv);
    if (!command)
        return fail(MEMORY, "out of memory", "");
    j.command = command;
    code = run_all(&j);
    free(command);
    return code;
}

int main(int argc, char **argv)
{
    int code;

    argv = words_plain(&argc, argv);
    if (!argv)
        return fail(MEMORY, "out of memory", "");
    code = serve(argc, argv);
    free(argv);
    return code;
}
