/* SPDX-License-Identifier: BSD-3-Clause */
/* npy.c - reads arrays of NumPy, and prints their headers. */
#include <stdio.h>
#include <string.h>

#include "io/files/npy.h"
#include "io/number/number.h"

enum { LONGEST = 1 << 14 };      /* bytes of a header */

static bool begins_so(const char *p, size_t length)
{
    return length >= 10 && memcmp(p, "\x93NUMPY", 6) == 0;
}

/* ----------------------------------------------------------------- header */

static sps_status malformed(const spsi_bytes *b, const char *what)
{
    return spsi_fail(b->f->ctx, SPS_EPARSE, "%s: the header of the array "
                     "lacks its %s, or states it in an unknown form (was "
                     "the file written by numpy.save?)",
                     b->name, what);
}

/* Returns what follows 'key': in the dictionary, or NULL if there is no such
 * key. */
static const char *value_of(const char *text, const char *key)
{
    char quoted[32];
    const char *p;

    snprintf(quoted, sizeof quoted, "'%s':", key);
    p = strstr(text, quoted);
    if (!p) {
        snprintf(quoted, sizeof quoted, "\"%s\":", key);
        p = strstr(text, quoted);
    }
    if (!p) return NULL;
    p += strlen(quoted);
    return p + strspn(p, " ");
}

static sps_status refuse_type(const spsi_bytes *b, const char *p)
{
    const int n = (int)strcspn(p, "'\"");
    const char *how =
        p[1] == 'O' ? "Python objects are not supported: save an array of "
                      "numbers, a.astype(float)"
                    : "only float32, float64, integers and bool are "
                      "supported: a.astype(float)";

    return spsi_fail(b->f->ctx, SPS_EPARSE, "%s: an array of type %.*s; %s",
                     b->name, n < 40 ? n : 40, p, how);
}

sps_status spsi_npy_real(const spsi_bytes *b, const spsi_npy *a)
{
    if (a->type.kind != 'c') return SPS_OK;
    return spsi_fail(b->f->ctx, SPS_EPARSE, "%s: an array of type c%d: "
                     "complex matrices are read only from Matrix Market "
                     "files (scipy.io.mmwrite), complex arrays only as "
                     "right-hand sides of complex matrices", b->name,
                      a->type.size);
}

/* Reads a type such as '<f8': byte order, kind, bytes. */
static sps_status read_type(const spsi_bytes *b, const char *text, spsi_npy *a)
{
    const char *p = value_of(text, "descr");
    spsi_binary *t = &a->type;
    sps_status st = SPS_OK;
    const char *end;
    int64_t size = 0;

    if (!p || (*p != '\'' && *p != '"')) return malformed(b, "type (descr)");
    p++;
    if (!strchr("<>|=", *p) || !*p) return refuse_type(b, p);
    end = spsi_number_integer(p + 1 + (p[1] != '\0'), &size);
    if (!end) return refuse_type(b, p);
    t->kind = p[1];
    t->swapped = (*p == '>' && !spsi_big_endian()) ||
                 (*p == '<' && spsi_big_endian());
    if ((t->kind == 'S' || t->kind == 'U') && size >= 0 && size < 64) {
        a->letters = (int)size;
        t->size = t->kind == 'S' ? 1 : 4;
    } else if ((t->kind == 'f' && (size == 4 || size == 8)) ||
               (t->kind == 'c' && (size == 8 || size == 16)) ||
               (strchr("iu", t->kind) && t->kind &&
                (size == 1 || size == 2 || size == 4 || size == 8)) ||
               (t->kind == 'b' && size == 1)) {
        t->size = (int)size;
    } else {
        return refuse_type(b, p);
    }
    SPS_REQUIRE(b->f->ctx, *end == '\'' || *end == '"', SPS_EPARSE, "%s: an "
                "array of type %.20s, which is not understood", b->name, p);
fail:
    return st;
}

static sps_status read_shape(const spsi_bytes *b, const char *text, spsi_npy *a)
{
    const char *p = value_of(text, "shape");
    const char *end;

    if (!p || *p != '(') return malformed(b, "shape");
    a->count = 1;
    a->dimensions = 0;
    for (p++; *p != ')'; p = end) {
        int64_t n = 0;

        p += strspn(p, " ,");
        if (*p == ')') break;
        end = spsi_number_integer(p, &n);
        if (!end || end == p || n > INT64_C(1) << 60)
            return malformed(b, "shape");
        if (*end == 'L') end++;              /* Python 2 wrote 3L */
        if (a->dimensions == SPSI_NPY_DIMENSIONS ||
            __builtin_mul_overflow(a->count, n, &a->count))
            return spsi_fail(b->f->ctx, SPS_EPARSE, "%s: an array of more "
                             "than %d dimensions, or of more than 2^63 "
                             "elements", b->name, SPSI_NPY_DIMENSIONS);
        a->shape[a->dimensions++] = n;
    }
    return SPS_OK;
}

static sps_status read_dictionary(const spsi_bytes *b, const char *text,
                                  spsi_npy *a)
{
    const char *order = value_of(text, "fortran_order");
    sps_status st;

    SPS_TRY(read_type(b, text, a));
    SPS_TRY(read_shape(b, text, a));
    if (order && strncmp(order, "True", 4) == 0) a->fortran = true;
    else if (!order || strncmp(order, "False", 5) != 0)
        return malformed(b, "order (fortran_order)");
fail:
    return st;
}

sps_status spsi_npy_header(spsi_bytes *b, spsi_npy *a)
{
    unsigned char p[12] = "";
    char *text = NULL;
    size_t length;
    sps_status st;

    memset(a, 0, sizeof *a);
    SPS_TRY(spsi_bytes_take(b, p, 10, "the header of an array"));
    SPS_REQUIRE(b->f->ctx, begins_so((char *)p, 10) && p[6] >= 1 &&
                p[6] <= 3, SPS_EPARSE, "%s: no array of NumPy, or one of "
                "version %d (1 to 3 are read)", b->name, p[6]);
    length = (size_t)p[8] | (size_t)p[9] << 8;
    if (p[6] > 1) {
        SPS_TRY(spsi_bytes_take(b, p + 10, 2, "the header of an array"));
        length |= (size_t)p[10] << 16 | (size_t)p[11] << 24;
    }
    SPS_REQUIRE(b->f->ctx, length <= LONGEST, SPS_EPARSE, "%s: the header "
                "of the array has %zu bytes, more than that of an array of "
                "numbers can have",
                b->name, length);
    SPS_TRY(SPS_NEW(b->f->ctx, length + 16, &text));
    /* Zeros follow, as many as the functions of number.h may read. */
    SPS_TRY(spsi_bytes_take(b, text, length, "the header of an array"));
    SPS_TRY(read_dictionary(b, text, a));
fail:
    if (b->f->ctx) spsi_free(b->f->ctx, text);
    return st;
}

/* ------------------------------------------------------------------ array */

/* Reads the values of a 1-D or 2-D array to c->x, and its sizes to c.  A
 * complex value becomes two doubles, for blocks only; c->info.field is then
 * "complex". */
static sps_status dense(spsi_bytes *b, const spsi_npy *a, spsi_content *c)
{
    const spsi_file *f = b->f;
    spsi_binary t = a->type;
    int64_t parts = 1;
    sps_status st;

    SPS_REQUIRE(f->ctx, a->dimensions == 1 || a->dimensions == 2, SPS_EPARSE,
                "%s: an array of %d dimensions; it must have 1 (a column) "
                "or 2", b->name, a->dimensions);
    SPS_REQUIRE(f->ctx, strchr("fiubc", a->type.kind), SPS_EPARSE,
                "%s: an array of text, where numbers are expected", b->name);
    if (a->type.kind == 'c') {           /* two doubles for each */
        if (!f->block && !f->peek) return spsi_npy_real(b, a);
        t = (spsi_binary){'f', t.size / 2, t.swapped};
        parts = 2;
        strcpy(c->info.field, "complex");
    }
    c->nrow = a->shape[0];
    c->ncol = a->dimensions == 2 ? a->shape[1] : 1;
    c->count = a->count;
    c->order = a->fortran ? SPS_COL_MAJOR : SPS_ROW_MAJOR;
    if (t.kind != 'f') strcpy(c->info.field, "integer");
    SPS_TRY(spsi_format_check(f, c, false, b->bound));
    if (f->peek) return SPS_OK;
    SPS_TRY(spsi_bytes_room(b, t, parts * a->count, sizeof *c->x, "the array",
                            (void **)&c->x));
    SPS_TRY(spsi_bytes_reals(b, t, parts * a->count, c->x, &c->info.rounded));
fail:
    return st;
}

static bool recognise(const spsi_file *f, const char *head, size_t length)
{
    (void)f;
    return begins_so(head, length);
}

static sps_status read_npy_file(const spsi_file *f, spsi_content *c)
{
    spsi_bytes b = {0};
    const char *p;
    spsi_npy a;
    size_t more;
    sps_status st;

    SPS_TRY(spsi_bytes_open(f, &b));
    SPS_TRY(spsi_npy_header(&b, &a));
    SPS_TRY(dense(&b, &a, c));
    if (f->peek) goto fail;
    SPS_TRY(spsi_bytes_peek(&b, 1, &p, &more));
    SPS_REQUIRE(f->ctx, more == 0, SPS_EPARSE, "%s: byte %llu: more bytes "
                "follow the array (a second one, or a wrong shape?)", f->name,
                (unsigned long long)b.offset);
fail:
    spsi_bytes_close(&b);
    return st;
}

SPS_DEFINE(spsi_format, spsi_format_npy) = {recognise, read_npy_file};

/* ---------------------------------------------------------------- writing */

size_t spsi_npy_print(char *text, const char *type, bool fortran, int64_t rows,
                      int64_t columns)
{
    char shape[48] = "";
    size_t length;
    int n;

    if (rows >= 0 && columns > 0)
        snprintf(shape, sizeof shape, "%lld, %lld", (long long)rows,
                 (long long)columns);
    else if (rows >= 0)
        snprintf(shape, sizeof shape, "%lld,", (long long)rows);
    n = snprintf(text + 10, SPSI_NPY_HEADER - 10, "{'descr': '%s', "
                 "'fortran_order': %s, 'shape': (%s), }", type,
                 fortran ? "True" : "False", shape);
    length = n + 11 <= 128 ? 128 : SPSI_NPY_HEADER;   /* a multiple of 64 */
    memset(text + 10 + n, ' ', length - 10 - (size_t)n);
    text[length - 1] = '\n';
    memcpy(text, "\x93NUMPY\1\0", 8);
    text[8] = (char)((length - 10) & 0xff);
    text[9] = (char)((length - 10) >> 8);
    return length;
}
