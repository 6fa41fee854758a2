/* SPDX-License-Identifier: BSD-3-Clause */
/* mtxgen_write.c - writes generated rows as a Matrix Market file.
 *
 * Rows are written in pieces of some thousand: threads convert pieces to text
 * (and compress them, each as a gzip member of its own, which the format
 * allows), and the pieces are written in order.  So memory does not grow with
 * the grid.  A file appears under its name only when it is complete
 * (lib/io/stream/replace.h).
 *
 * Several processes write one file in rounds: each converts consecutive pieces,
 * all tell each other how long theirs are, and each writes its own where they
 * belong.  The file is that of one process. */
#include "tools/generator/mtxgen.h"
#include "tools/generator/words.h"
#include "io/number/number.h"
#include "io/stream/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { PIECE = 4096, PER_THREAD = 4 };   /* rows of a piece; pieces that are in
                                            memory for each thread */

typedef struct piece {
    char *text, *packed;
    size_t length, room, packed_length, packed_room;
    bool failed;
} piece;

/* Where pieces are written. */
typedef struct sink {
    FILE *f;                     /* of a single process */
    int fd;                      /* of several */
    off_t at;                    /* the end of what has been written by all */
} sink;

static bool gzipped(const mtxgen_job *j)
{
    const size_t n = j->out ? strlen(j->out) : 0;

    return n > 3 && !strcmp(j->out + n - 3, ".gz");
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

static size_t length_of(const piece *p, bool gzip)
{
    return gzip ? p->packed_length : p->length;
}

/* Writes a piece at `at` if the file is that of several processes. */
static bool put(const sink *s, const piece *p, bool gzip, off_t at)
{
    const char *text = gzip ? p->packed : p->text;
    size_t left = length_of(p, gzip);

    if (s->f) return fwrite(text, 1, left, s->f) == left;
    while (left > 0) {
        const ssize_t n = pwrite(s->fd, text, left, at);

        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return false;
        text += n;
        left -= (size_t)n;
        at += n;
    }
    return true;
}

static bool make_head(const gen *g, const mtxgen_job *j, piece *p)
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
    return !gzipped(j) || pack(p);
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
static int64_t length(const gen *g, const mtxgen_job *j)
{
    return j->coordinates ? 3 * gen_nodes(g) : g->rows;
}

/* Fills up to `count` pieces from row `first` on, in parallel. */
static void fill_round(const gen *g, const mtxgen_job *j, int64_t first,
                       int count, piece *pieces)
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

static int cannot_write(const char *name)
{
    char why[300];

    snprintf(why, sizeof why, " cannot be written: %s", strerror(errno));
    return words_fail(OUTPUT, name, why);
}

/* Writes the pieces of a round in the order of the processes.  code: that of
 * this process so far.  Returns the new one; *stop: some process has failed. */
static int write_round(const mtxgen_job *j, sink *s, const piece *pieces,
                       int count, int code, double *bytes, bool *stop)
{
    const int size = j->of.size;
    const bool gzip = gzipped(j);
    off_t at = s->at;

    memset(bytes, 0, ((size_t)size + 1) * sizeof *bytes);
    for (int i = 0; i < count && !code; i++)
        if (pieces[i].failed) code = words_fail(MEMORY, "out of memory", "");
        else bytes[j->of.rank] += (double)length_of(&pieces[i], gzip);
    bytes[size] = code != 0;
    launch_sum(&j->of, bytes, size + 1, OUTPUT);
    *stop = bytes[size] > 0;
    for (int r = 0; r < size; r++) {
        s->at += (off_t)bytes[r];
        if (r < j->of.rank) at += (off_t)bytes[r];
    }
    for (int i = 0; i < count && !*stop && !code; i++) {
        if (!put(s, &pieces[i], gzip, at))
            code = cannot_write(j->out ? j->out : "standard output");
        at += (off_t)length_of(&pieces[i], gzip);
    }
    return code;
}

/* Writes the header and all lines, with `count` pieces of each process in a
 * round; returns 0 or an exit code. */
static int write_rounds(const gen *g, const mtxgen_job *j, sink *s,
                        piece *pieces, int count, double *bytes)
{
    const int64_t all = (int64_t)count * j->of.size;
    const bool first = j->of.rank == 0;
    bool stop;
    int code = 0;

    pieces->failed = first && !make_head(g, j, pieces);
    code = write_round(j, s, pieces, first, 0, bytes, &stop);
    for (int64_t from = 0; from < length(g, j) && !stop; from += all * PIECE) {
        const int64_t mine = from + (int64_t)j->of.rank * count * PIECE;
        const int64_t left = (length(g, j) - mine + PIECE - 1) / PIECE;
        const int now = left < 0 ? 0 : left < count ? (int)left : count;

        if (!code) fill_round(g, j, mine, now, pieces);
        code = write_round(j, s, pieces, now, code, bytes, &stop);
    }
    return code;
}

static int write_lines(const gen *g, const mtxgen_job *j, sink *s)
{
    const int count = PER_THREAD * j->threads;
    piece *pieces = calloc((size_t)count, sizeof *pieces);
    double *bytes = calloc((size_t)j->of.size + 1, sizeof *bytes);
    int code = pieces && bytes ? 0 : words_fail(MEMORY, "out of memory", "");
    double failed = code;

    launch_sum(&j->of, &failed, 1, MEMORY);
    if (failed == 0) code = write_rounds(g, j, s, pieces, count, bytes);
    if (!code && s->f && fflush(s->f))
        code = cannot_write(j->out ? j->out : "standard output");
    drop(pieces, count);
    free(bytes);
    return code;
}

/* --------------------------------------------------------------- the file */

/* Writes to the opened file and gives it its final name. */
static int write_replacing(const gen *g, const mtxgen_job *j, spsi_replace *r)
{
    int fd = dup(r->fd), code;
    sink s = { .f = fd < 0 ? NULL : fdopen(fd, "wb") };

    if (s.f) {
        code = write_lines(g, j, &s);
        if (fclose(s.f) && !code) code = cannot_write(j->out);
    } else {
        code = cannot_write(j->out);
        if (fd >= 0) close(fd);
    }
    if (code) spsi_replace_abandon(r);
    else if (!spsi_replace_close(r)) code = cannot_write(j->out);
    return code;
}

static int write_alone(const gen *g, const mtxgen_job *j)
{
    sink s = { .f = stdout };
    spsi_replace r;

    if (!j->out) return write_lines(g, j, &s);
    if (!spsi_replace_open(&r, j->out, NULL, NULL))
        return cannot_write(j->out);
    return write_replacing(g, j, &r);
}

/* ------------------------------------------------------- several processes */

/* Opens the file that all processes write: process 0 creates it, and tells the
 * others its name. */
static int open_together(const mtxgen_job *j, spsi_replace *r, bool *plain)
{
    char name[PATH_MAX] = "";
    sps_message m = { 0, name, sizeof name };
    sps_status st = SPS_OK;
    double special = 0;
    int code = 0;

    if (j->of.rank == 0) {
        if (!spsi_replace_open_named(r, j->out, plain) && *plain)
            code = cannot_write(j->out);
        snprintf(name, sizeof name, "%s", code ? "" : r->temporary);
        special = !*plain;
    }
    launch_sum(&j->of, &special, 1, OUTPUT);
    *plain = special == 0;
    for (int to = 1; to < j->of.size && st == SPS_OK; to++) {
        m.peer = j->of.rank == 0 ? to : 0;
        st = sps_comm_exchange(j->of.comm, &m, j->of.rank == 0, &m,
                               j->of.rank == to);
    }
    if (st != SPS_OK) return words_fail(OUTPUT, sps_context_error(NULL), "");
    if (!*plain || j->of.rank == 0 || !*name) return code;
    r->fd = open(name, O_WRONLY | O_CLOEXEC);
    return r->fd >= 0 ? 0 : cannot_write(j->out);
}

/* Each process flushes its part before process 0 gives the file its name. */
static int close_together(const mtxgen_job *j, spsi_replace *r, int code)
{
    double failed;

    if (j->of.rank > 0 && r->fd >= 0) {
        if (fsync(r->fd) != 0 && !code) code = cannot_write(j->out);
        if (close(r->fd) != 0 && !code) code = cannot_write(j->out);
    }
    failed = code != 0;
    launch_sum(&j->of, &failed, 1, OUTPUT);
    if (j->of.rank > 0 || r->fd < 0) return code;
    if (failed > 0) spsi_replace_abandon(r);
    else if (!spsi_replace_close(r)) code = cannot_write(j->out);
    return code;
}

/* Devices, pipes and standard output are written by process 0 alone. */
static int write_first(const gen *g, const mtxgen_job *j)
{
    mtxgen_job alone = *j;

    alone.of = (launch){ .size = 1 };
    return j->of.rank == 0 ? write_alone(g, &alone) : 0;
}

int mtxgen_write(const gen *g, const mtxgen_job *j)
{
    spsi_replace r = { .fd = -1 };
    bool plain = j->out;
    double failed;
    sink s = { 0 };
    int code;

    if (j->of.size < 2) return write_alone(g, j);
    if (!plain) return write_first(g, j);
    code = open_together(j, &r, &plain);
    if (!plain) return write_first(g, j);
    failed = code != 0;
    launch_sum(&j->of, &failed, 1, OUTPUT);
    s.fd = r.fd;
    if (failed == 0) code = write_lines(g, j, &s);
    return close_together(j, &r, code);
}
