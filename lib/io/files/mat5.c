/* SPDX-License-Identifier: BSD-3-Clause */
/* mat5.c - reads MATLAB files of level 5: save -v6 and -v7, scipy.io.savemat
 * ("MAT-File Format", The MathWorks).  128 bytes of text, version and byte
 * order are followed by elements: type, number of bytes, and these, padded to
 * 8.
 *
 *   matrix      flags, sizes and name; then, if it is sparse, rows of entries,
 *               starts of columns, values; if it is full, values by columns;
 *               if it is a struct, names of fields and a matrix for each
 *   compressed  such an element, deflated
 *
 * A csr is read from the first sparse matrix or, without any, from the only
 * full one, where vectors count only if there is nothing else; a block from the
 * only full one or, without any, from the only sparse one.  Single numbers do
 * not count.  A field is named STRUCT.FIELD. */
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "io/stream/bytes.h"
#include "io/stream/codec.h"

enum { MATRIX = 14, COMPRESSED = 15 };            /* types of elements */
enum { STRUCT = 2, SPARSE = 5, DOUBLE, SINGLE, FIRST_INTEGER, LAST = 15 };
enum { HEADER = 128, NAME = 64, FIELDS = 1 << 15, DEPTH = 4, SIZES = 32 };

#define RATIO 1032           /* deflate packs at most by this factor */

/* types[t]: type of the numbers in an element of type t. */
static const spsi_binary types[MATRIX] = {
    [1] = {'i', 1, false}, {'u', 1, false}, {'i', 2, false}, {'u', 2, false},
    {'i', 4, false}, {'u', 4, false}, {'f', 4, false},
    [9] = {'f', 8, false}, [12] = {'i', 8, false}, {'u', 8, false},
};

typedef struct mat5 {
    spsi_bytes file, packed;   /* packed: the contents of one element */
    spsi_bytes *b;             /* &file, or &packed within a compressed one */
    z_stream z;
    bool inflating, unpacked;
    uint64_t left;             /* packed bytes that have not been read */
    bool swapped;              /* byte order differs from this machine's */
    int rank;                  /* of the chosen matrix, see rank_of; 0: none is
                                  chosen */
    bool doubtful;             /* another one has the same rank */
    bool complete;             /* nothing else is wanted of the file */
    char chosen[NAME];         /* name of the matrix in c, or "" */
    char names[256];           /* names of matrices, for messages */
    spsi_content *c;
} mat5;

typedef struct element {
    uint32_t type, size;
    int padding;               /* bytes of padding after the contents */
    spsi_binary number;        /* type of the numbers that it contains */
    int64_t count;             /* how many these are; -1: no numbers */
} element;

typedef struct array {
    int class;                 /* STRUCT, SPARSE, DOUBLE, ...; 1: cells */
    bool complex;
    int dimensions;
    int64_t rows, columns;
    char name[NAME];
} array;

static sps_status malformed(const mat5 *m, const char *name, const char *what)
{
    return spsi_fail(m->file.f->ctx, SPS_EPARSE, "%s: byte %llu: in the matrix "
                     "\"%s\": %s (fetch or write the file again)", m->b->name,
                     (unsigned long long)m->b->offset, name, what);
}

/* --------------------------------------------------------------- unpacking */

/* Makes one step of inflate, from the buffer of the file. */
static sps_status inflate_some(mat5 *m)
{
    const spsi_file *f = m->file.f;
    const char *p;
    size_t got;
    sps_status st;
    int code;

    SPS_TRY(spsi_bytes_peek(&m->file, 1, &p, &got));
    if (got > m->left) got = (size_t)m->left;
    m->z.next_in = (z_const Bytef *)p;
    m->z.avail_in = (unsigned)got;
    code = inflate(&m->z, Z_NO_FLUSH);
    spsi_bytes_consume(&m->file, got - m->z.avail_in);
    m->left -= got - m->z.avail_in;
    SPS_REQUIRE(f->ctx, code != Z_MEM_ERROR, SPS_ENOMEM, "%s: not enough "
                "host memory to unpack the file", f->name);
    SPS_REQUIRE(f->ctx, code == Z_OK || code == Z_STREAM_END, SPS_EPARSE,
                "%s: a compressed variable is broken or cut off near byte "
                "%llu: %s (fetch or write the file again)", f->name,
                (unsigned long long)m->file.offset,
                m->z.msg ? m->z.msg : "it ends too soon");
    m->unpacked = code == Z_STREAM_END;
fail:
    return st;
}

static sps_status fill_unpacked(void *source, char *buffer, size_t room,
                                size_t *got)
{
    mat5 *m = source;
    sps_status st = SPS_OK;

    m->z.next_out = (Bytef *)buffer;
    m->z.avail_out = (unsigned)room;    /* room <= CHUNK of bytes.c */
    while (m->z.avail_out > 0 && !m->unpacked) SPS_TRY(inflate_some(m));
    *got = room - m->z.avail_out;
fail:
    return st;
}

static sps_status start_unpacking(mat5 *m, uint32_t size)
{
    const spsi_file *f = m->file.f;
    const uint64_t most = size < m->file.bound ? size : m->file.bound;
    char *buffer = m->packed.buffer;
    sps_status st = SPS_OK;

    if (m->inflating) (void)inflateEnd(&m->z);
    m->z = (z_stream){.zalloc = spsi_zlib_new, .zfree = spsi_zlib_free,
                      .opaque = f->ctx};
    m->inflating = inflateInit(&m->z) == Z_OK;
    SPS_REQUIRE(f->ctx, m->inflating, SPS_ENOMEM, "%s: not enough host "
                "memory to unpack the file", f->name);
    m->packed = (spsi_bytes){.f = f, .fill = fill_unpacked, .source = m,
                             .bound = most * RATIO, .buffer = buffer};
    snprintf(m->packed.name, sizeof m->packed.name, "%.120s (unpacked)",
             f->name);
    m->left = size;
    m->unpacked = false;
    if (!buffer) SPS_TRY(spsi_bytes_start(&m->packed));
    m->b = &m->packed;
fail:
    return st;
}

/* ---------------------------------------------------------------- elements */

static uint32_t number(const mat5 *m, const unsigned char *p)
{
    uint32_t v = 0;

    for (int i = 0; i < 4; i++)
        v |= (uint32_t)p[m->swapped != spsi_big_endian() ? 3 - i : i] << 8 * i;
    return v;
}

/* Reads type and size of an element, 4 bytes each; or, for an element of at
 * most 4 bytes, both from 4 bytes (the size in the upper half), after which the
 * data follow. */
static sps_status next_element(mat5 *m, element *e)
{
    unsigned char p[4];
    sps_status st;

    *e = (element){.count = -1};
    SPS_TRY(spsi_bytes_take(m->b, p, 4, "an element"));
    e->type = number(m, p);
    e->size = e->type >> 16;
    if (e->size > 4) return malformed(m, "", "an element has no type");
    if (e->size > 0) {
        e->type &= 0xffff;
        e->padding = 4 - (int)e->size;
    } else {
        SPS_TRY(spsi_bytes_take(m->b, p, 4, "an element"));
        e->size = number(m, p);
        e->padding = (int)((8 - e->size % 8) % 8);
    }
    if (e->type >= MATRIX || types[e->type].size == 0) return SPS_OK;
    e->number = types[e->type];
    e->number.swapped = m->swapped;
    e->count = (int64_t)e->size / e->number.size;
fail:
    return st;
}

/* Reads the next element, which must consist of at most `most` integers. */
static sps_status next_wholes(mat5 *m, int64_t most, int64_t *to,
                              int64_t *count, const char *what)
{
    element e;
    sps_status st;

    SPS_TRY(next_element(m, &e));
    if (e.count < 0 || e.count > most) return malformed(m, what, "not a "
                                                        "list of integers");
    SPS_TRY(spsi_bytes_wholes(m->b, e.number, e.count, to));
    SPS_TRY(spsi_bytes_skip(m->b, (uint64_t)e.padding, what));
    *count = e.count;
fail:
    return st;
}

/* Reads text of at most room - 1 bytes; further bytes are skipped. */
static sps_status next_text(mat5 *m, char *to, size_t room, size_t *length)
{
    element e;
    sps_status st;

    SPS_TRY(next_element(m, &e));
    *length = e.size < room ? e.size : room - 1;
    SPS_TRY(spsi_bytes_take(m->b, to, *length, "a name"));
    to[*length] = '\0';
    SPS_TRY(spsi_bytes_skip(m->b, e.size - *length + (uint64_t)e.padding,
                            "a name"));
fail:
    return st;
}

static sps_status next_array(mat5 *m, const char *name, array *a)
{
    int64_t flags[2] = {0}, size[SIZES] = {0}, count, dimensions;
    size_t length;
    sps_status st;

    *a = (array){0};
    SPS_TRY(next_wholes(m, 2, flags, &count, "the flags"));
    SPS_TRY(next_wholes(m, SIZES, size, &dimensions, "the sizes"));
    SPS_TRY(next_text(m, a->name, sizeof a->name, &length));
    if (*name) snprintf(a->name, sizeof a->name, "%s", name);
    a->class = (int)(flags[0] & 0xff);
    a->complex = flags[0] & 0x800;
    a->dimensions = (int)dimensions;
    a->rows = size[0];
    a->columns = size[1];
fail:
    return st;
}

/* ---------------------------------------------------------------- matrices */

/* Reads the starts of columns; *nnz is the last one. */
static sps_status read_starts(mat5 *m, const array *a, int64_t most,
                              int64_t **start_p, int64_t *nnz)
{
    const spsi_file *f = m->file.f;
    element e;
    sps_status st;

    SPS_TRY(next_element(m, &e));
    if (e.count != a->columns + 1) return malformed(m, a->name, "the number "
                         "of starts of columns is not that of columns + 1");
    SPS_TRY(spsi_bytes_room(m->b, e.number, e.count, sizeof **start_p,
                            "starts of columns", (void **)start_p));
    SPS_TRY(spsi_bytes_wholes(m->b, e.number, e.count, *start_p));
    SPS_TRY(spsi_bytes_skip(m->b, (uint64_t)e.padding, "starts of columns"));
    *nnz = (*start_p)[a->columns];
    if (*nnz < 0 || *nnz > most) return malformed(m, a->name, "more entries "
                                                  "than rows of entries");
    SPS_TRY(spsi_entries_check(f, "jc", *start_p, a->columns, *nnz, 0));
fail:
    return st;
}

/* Reads the next element, at least `count` values. */
static sps_status read_values(mat5 *m, const array *a, int64_t count,
                              double **x_p)
{
    element e;
    sps_status st;

    SPS_TRY(next_element(m, &e));
    if (e.count < count) return malformed(m, a->name, "fewer values than "
                                          "entries");
    SPS_TRY(spsi_bytes_room(m->b, e.number, count, sizeof **x_p, "values",
                            (void **)x_p));
    SPS_TRY(spsi_bytes_reals(m->b, e.number, count, *x_p,
                             &m->c->info.rounded));
fail:
    return st;
}

/* Checks the row numbers of the nnz entries and converts them to int32_t.  The
 * file may have more row numbers, which have no meaning. */
static sps_status narrow(const mat5 *m, const array *a, const int64_t *wide,
                         int64_t nnz, int32_t **row_p)
{
    sps_context *ctx = m->file.f->ctx;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, nnz, row_p));
    for (int64_t p = 0; p < nnz; p++) {
        SPS_REQUIRE(ctx, wide[p] >= 0 && wide[p] < a->rows, SPS_EPARSE,
                    "%s: entry %lld of \"%s\", counted from 0, is in row %lld "
                    "of %lld", m->file.name, (long long)p, a->name,
                    (long long)wide[p], (long long)a->rows);
        (*row_p)[p] = (int32_t)wide[p];
    }
fail:
    return st;
}

static sps_status read_sparse(mat5 *m, const array *a)
{
    const spsi_file *f = m->file.f;
    spsi_content *c = m->c;
    int64_t *wide = NULL, *start = NULL, nnz = 0;
    int32_t *row = NULL;
    double *val = NULL;
    element e;
    sps_status st;

    SPS_TRY(next_element(m, &e));
    if (e.count < 0) return malformed(m, a->name, "no rows of entries");
    c->count = e.count;
    SPS_TRY(spsi_format_check(f, c, false, m->b->bound));
    if (f->peek) return SPS_OK;
    SPS_TRY(spsi_bytes_room(m->b, e.number, e.count, sizeof *wide, "rows",
                            (void **)&wide));
    SPS_TRY(spsi_bytes_wholes(m->b, e.number, e.count, wide));
    SPS_TRY(spsi_bytes_skip(m->b, (uint64_t)e.padding, "rows"));
    SPS_TRY(read_starts(m, a, e.count, &start, &nnz));
    SPS_TRY(narrow(m, a, wide, nnz, &row));
    SPS_TRY(read_values(m, a, nnz, &val));
    c->count = nnz;
    SPS_TRY(spsi_entries_csc(f, c, start, row, val, 0, &c->A));
fail:
    spsi_free(f->ctx, wide);
    spsi_free(f->ctx, start);
    spsi_free(f->ctx, row);
    spsi_free(f->ctx, val);
    return st;
}

static sps_status read_full(mat5 *m, const array *a)
{
    const spsi_file *f = m->file.f;
    spsi_content *c = m->c;
    sps_status st;

    c->count = c->nrow * c->ncol;
    c->order = SPS_COL_MAJOR;
    SPS_TRY(spsi_format_check(f, c, false, m->b->bound));
    if (!f->peek) SPS_TRY(read_values(m, a, c->count, &c->x));
fail:
    return st;
}

static sps_status read_matrix(mat5 *m, const array *a)
{
    const spsi_file *f = m->file.f;
    spsi_content *c = m->c;
    sps_status st;

    SPS_REQUIRE(f->ctx, !a->complex, SPS_EPARSE, "%s: \"%s\" is complex; "
                "complex numbers are read from Matrix Market files, as "
                "scipy.io.mmwrite writes them", f->name, a->name);
    sps_csr_destroy(f->ctx, &c->A);
    spsi_free(f->ctx, c->x);
    c->x = NULL;
    c->info.rounded = 0;
    c->nrow = a->rows;
    c->ncol = a->columns;
    snprintf(m->chosen, sizeof m->chosen, "%s", a->name);
    strcpy(c->info.field, a->class < FIRST_INTEGER ? "real" : "integer");
    SPS_TRY(a->class == SPARSE ? read_sparse(m, a) : read_full(m, a));
fail:
    return st;
}

/* ------------------------------------------------------------------ choice */

static void remember(mat5 *m, const array *a)
{
    const size_t at = strlen(m->names);

    snprintf(m->names + at, sizeof m->names - at, "%s%s", at ? ", " : "",
             a->name);
}

static sps_status take_named(mat5 *m, const array *a)
{
    const spsi_file *f = m->file.f;
    sps_status st;

    SPS_REQUIRE(f->ctx, a->class >= SPARSE && a->class <= LAST &&
                a->dimensions == 2, SPS_EPARSE, "%s: \"%s\" is not a matrix "
                "of numbers, but an array of MATLAB's class %d (1 cell, 2 "
                "struct, 4 char, 5 sparse, 6 and above numbers) with %d "
                "dimensions", f->name, a->name, a->class, a->dimensions);
    m->complete = true;
    SPS_TRY(read_matrix(m, a));
fail:
    return st;
}

/* Returns how well an array suits what is to be read, a matrix or a block: 1
 * to 3, 3 is best. */
static int rank_of(const spsi_file *f, const array *a)
{
    if (f->block) return a->class == SPARSE ? 1 : 3;
    if (a->class == SPARSE) return 3;
    return a->rows > 1 && a->columns > 1 ? 2 : 1;
}

/* Reads the matrix if it is the named one or, without a name, of a higher rank
 * than the one that has been read (see the head of this file). */
static sps_status consider(mat5 *m, const array *a)
{
    const spsi_file *f = m->file.f;
    const int rank = rank_of(f, a);

    if (f->variable)
        return strcmp(a->name, f->variable) ? SPS_OK : take_named(m, a);
    if (rank <= m->rank) {
        m->doubtful |= rank == m->rank;
        return SPS_OK;
    }
    m->rank = rank;
    m->doubtful = false;
    m->complete = !f->block && a->class == SPARSE;
    return read_matrix(m, a);
}

static bool is_candidate(const array *a)
{
    return a->class >= SPARSE && a->class <= LAST && a->dimensions == 2 &&
           (a->class == SPARSE || a->rows != 1 || a->columns != 1);
}

/* ------------------------------------------------------------------- arrays */

static sps_status read_array(mat5 *m, uint32_t size, const char *name,
                             int depth);

/* Reads the fields of a struct: the length of a name, the names, each padded to
 * that length, and the fields. */
static sps_status read_fields(mat5 *m, const array *a, int depth)
{
    int64_t room, count = 0;
    char *names = NULL, name[2 * NAME];
    size_t length;
    element e;
    sps_status st;

    SPS_TRY(next_wholes(m, 1, &room, &count, a->name));
    if (count != 1 || room < 1 || room > NAME) return SPS_OK;
    SPS_TRY(spsi_new_raw(m->file.f->ctx, FIELDS, (void **)&names));
    SPS_TRY(next_text(m, names, FIELDS, &length));
    for (size_t at = 0; at + (size_t)room <= length && !m->complete;
         at += (size_t)room) {
        SPS_TRY(next_element(m, &e));
        snprintf(name, sizeof name, "%s.%.*s", a->name, (int)room, names + at);
        if (e.type != MATRIX || strlen(name) >= NAME) break;
        SPS_TRY(read_array(m, e.size, name, depth + 1));
        SPS_TRY(spsi_bytes_skip(m->b, (uint64_t)e.padding, a->name));
    }
fail:
    spsi_free(m->file.f->ctx, names);
    return st;
}

/* Reads an array of `size` bytes, or skips it if it is not wanted.  name: that
 * of the field of a struct, otherwise "". */
static sps_status read_array(mat5 *m, uint32_t size, const char *name,
                             int depth)
{
    const uint64_t end = m->b->offset + size;
    array a;
    sps_status st;

    if (size == 0) return SPS_OK;
    SPS_TRY(next_array(m, name, &a));
    if (a.dimensions < 2 || a.rows < 0 || a.columns < 0)
        return malformed(m, a.name, "its sizes are missing or negative");
    if (is_candidate(&a)) remember(m, &a);
    if (a.class == STRUCT && depth < DEPTH && a.rows == 1 && a.columns == 1)
        SPS_TRY(read_fields(m, &a, depth));
    else if (is_candidate(&a) || m->file.f->variable)
        SPS_TRY(consider(m, &a));
    if (m->b->offset > end) return malformed(m, a.name, "more bytes than the "
                                             "element has");
    if (!m->complete || !m->file.f->peek)
        SPS_TRY(spsi_bytes_skip(m->b, end - m->b->offset, a.name));
fail:
    return st;
}

/* Reads a compressed element.  Its checksum is compared where it ends. */
static sps_status read_packed(mat5 *m, uint32_t size)
{
    const spsi_file *f = m->file.f;
    const char *p;
    size_t got;
    element e;
    sps_status st;

    SPS_TRY(start_unpacking(m, size));
    SPS_TRY(next_element(m, &e));
    if (e.type != MATRIX) return malformed(m, "", "a compressed element that "
                                           "is not a matrix");
    SPS_TRY(read_array(m, e.size, "", 0));
    if (m->complete && f->peek) return SPS_OK;
    SPS_TRY(spsi_bytes_peek(m->b, 1, &p, &got));
    if (got > 0) return malformed(m, "", "more bytes than one matrix has");
    m->b = &m->file;
    SPS_TRY(spsi_bytes_skip(m->b, m->left, "a compressed variable"));
fail:
    return st;
}

static sps_status read_elements(mat5 *m)
{
    const char *p;
    size_t got;
    element e;
    sps_status st;

    while (!m->complete) {
        SPS_TRY(spsi_bytes_peek(m->b, 8, &p, &got));
        if (got == 0) break;
        SPS_TRY(next_element(m, &e));
        if (e.type == COMPRESSED) {
            SPS_TRY(read_packed(m, e.size));
            continue;
        }
        if (e.type == MATRIX) SPS_TRY(read_array(m, e.size, "", 0));
        else SPS_TRY(spsi_bytes_skip(m->b, e.size, "an element"));
        if (!m->complete)
            SPS_TRY(spsi_bytes_skip(m->b, (uint64_t)e.padding, "an element"));
    }
fail:
    return st;
}

static sps_status read_header(mat5 *m)
{
    const spsi_file *f = m->file.f;
    char p[HEADER];
    sps_status st;

    SPS_TRY(spsi_bytes_take(&m->file, p, HEADER, "the header"));
    SPS_REQUIRE(f->ctx, !memcmp(p + HEADER - 2, "IM", 2) ||
                !memcmp(p + HEADER - 2, "MI", 2), SPS_EPARSE, "%s: byte 126: "
                "the byte order of a MATLAB file, IM or MI, is missing (fetch "
                "or write the file again)", f->name);
    m->swapped = (p[HEADER - 2] == 'M') != spsi_big_endian();
fail:
    return st;
}

static bool recognise(const spsi_file *f, const char *head, size_t length)
{
    (void)f;
    return length >= 10 && memcmp(head, "MATLAB 5.0", 10) == 0;
}

static sps_status read_mat5_file(const spsi_file *f, spsi_content *c)
{
    mat5 m = {.c = c};
    sps_status st;

    SPS_TRY(spsi_bytes_open(f, &m.file));
    m.b = &m.file;
    SPS_TRY(read_header(&m));
    SPS_TRY(read_elements(&m));
    SPS_REQUIRE(f->ctx, m.chosen[0], SPS_EPARSE, "%s: no matrix %s%s%s%s",
                f->name, f->variable ? "is named " : "of numbers is there",
                f->variable ? f->variable : "",
                m.names[0] ? "; there are " : "", m.names);
    SPS_REQUIRE(f->ctx, !m.doubtful, SPS_EPARSE, "%s: which one of %s is "
                "meant? Name it by FILE:NAME", f->name, m.names);
fail:
    if (m.inflating) (void)inflateEnd(&m.z);
    spsi_bytes_close(&m.packed);
    spsi_bytes_close(&m.file);
    return st;
}

SPS_DEFINE(spsi_format, spsi_format_mat5) = {recognise, read_mat5_file};
