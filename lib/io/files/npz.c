/* SPDX-License-Identifier: BSD-3-Clause */
/* npz.c - archives of NumPy: sparse matrices as scipy.sparse.save_npz writes
 * them, or an array of numpy.savez.  A member is an array of npy.h.
 *
 *   format   text    "csr", "csc", "coo", "bsr" or "dia"
 *   shape    2 integers
 *   csr csc  indices, indptr, data
 *   bsr      the same, with data of blocks x R x C
 *   coo      row, col, data
 *   dia      offsets, data: data[k, j] is in row j - offsets[k], column j
 *
 * The members come in any order, so that indices are read before the shape that
 * limits them, and checked in the end. */
#include <stdio.h>
#include <string.h>

#include "io/files/npy.h"
#include "io/files/zip.h"

typedef struct npz {
    const spsi_file *f;
    spsi_zip zip;
    char format[8];
    bool shaped;
    int64_t shape[2];
    int64_t *indptr, *offsets;
    int32_t *indices, *row, *col;
    double *data;
    int64_t lengths[5];        /* numbers of elements of indptr, offsets,
                                  indices, row, col */
    spsi_npy array;            /* header (type and shape) of the array data */
    int arrays;                /* number of arrays seen: "data", and those that
                                  belong to no sparse matrix */
    int64_t rounded;           /* integers beyond 2^53 that were rounded */
} npz;

enum { INDPTR, OFFSETS, INDICES, ROW, COL };

static const char *const kept[] = {"indptr", "offsets", "indices", "row",
                                   "col"};

static void close_npz(npz *z)
{
    sps_context *ctx = z->f->ctx;

    spsi_free(ctx, z->indptr);
    spsi_free(ctx, z->offsets);
    spsi_free(ctx, z->indices);
    spsi_free(ctx, z->row);
    spsi_free(ctx, z->col);
    spsi_free(ctx, z->data);
    spsi_zip_close(&z->zip);
}

/* ---------------------------------------------------------------- members */

static sps_status again(const npz *z)
{
    return spsi_fail(z->f->ctx, SPS_EPARSE, "%s is in the archive twice",
                     z->zip.member.name);
}

/* Reads the name of the format, as ASCII or UTF-32 of either byte order. */
static sps_status read_format(npz *z, const spsi_npy *a)
{
    const int width = a->type.size;
    unsigned char p[4 * 64] = "";
    size_t n = 0;
    sps_status st;

    SPS_REQUIRE(z->f->ctx, (a->type.kind == 'S' || a->type.kind == 'U') &&
                a->count == 1, SPS_EPARSE, "%s: the format of the matrix is "
                "not a text such as \"csr\"", z->zip.member.name);
    SPS_TRY(spsi_bytes_take(&z->zip.member, p,
                            (size_t)a->letters * (size_t)width, "the format"));
    for (int i = 0; i < a->letters * width && n + 1 < sizeof z->format; i++)
        if (p[i]) z->format[n++] = (char)(p[i] < 127 && p[i] > 32 ? p[i] : '?');
    z->format[n] = '\0';
fail:
    return st;
}

static sps_status read_shape(npz *z, const spsi_npy *a)
{
    sps_status st;

    SPS_REQUIRE(z->f->ctx, a->dimensions == 1 && a->count == 2, SPS_EPARSE,
                "%s: the shape has %lld elements; a matrix has two, rows "
                "and columns", z->zip.member.name, (long long)a->count);
    SPS_TRY(spsi_bytes_wholes(&z->zip.member, a->type, 2, z->shape));
    z->shaped = true;
fail:
    return st;
}

static sps_status read_wholes(npz *z, const spsi_npy *a, int64_t **to)
{
    spsi_bytes *m = &z->zip.member;
    sps_status st;

    if (*to) return again(z);
    SPS_TRY(spsi_bytes_room(m, a->type, a->count, sizeof **to, "offsets",
                            (void **)to));
    SPS_TRY(spsi_bytes_wholes(m, a->type, a->count, *to));
fail:
    return st;
}

static sps_status read_indices(npz *z, const spsi_npy *a, int32_t **to)
{
    spsi_bytes *m = &z->zip.member;
    sps_status st;

    if (*to) return again(z);
    SPS_TRY(spsi_bytes_room(m, a->type, a->count, sizeof **to, "indices",
                            (void **)to));
    SPS_TRY(spsi_bytes_indices(m, a->type, a->count, 0, INT32_MAX, "index",
                               *to));
fail:
    return st;
}

static sps_status read_data(npz *z, const spsi_npy *a)
{
    spsi_bytes *m = &z->zip.member;
    sps_status st;

    if (z->data) return again(z);
    SPS_TRY(spsi_npy_real(m, a));
    SPS_REQUIRE(z->f->ctx, strchr("fiub", a->type.kind), SPS_EPARSE,
                "%s: an array of text, where numbers are expected", m->name);
    SPS_TRY(spsi_bytes_room(m, a->type, a->count, sizeof *z->data, "the array",
                            (void **)&z->data));
    SPS_TRY(spsi_bytes_reals(m, a->type, a->count, z->data, &z->rounded));
fail:
    return st;
}

/* Reads an array that belongs to the matrix; with peek, only its header. */
static sps_status read_kept(npz *z, int which, const spsi_npy *a)
{
    sps_status st = SPS_OK;

    SPS_REQUIRE(z->f->ctx, a->dimensions == 1, SPS_EPARSE, "%s: an array of "
                "%d dimensions, where a list of integers is expected",
                z->zip.member.name, a->dimensions);
    z->lengths[which] = a->count;
    if (z->f->peek) return spsi_zip_pass(&z->zip);
    switch (which) {
    case INDPTR: SPS_TRY(read_wholes(z, a, &z->indptr)); break;
    case OFFSETS: SPS_TRY(read_wholes(z, a, &z->offsets)); break;
    case INDICES: SPS_TRY(read_indices(z, a, &z->indices)); break;
    case ROW: SPS_TRY(read_indices(z, a, &z->row)); break;
    default: SPS_TRY(read_indices(z, a, &z->col)); break;
    }
    SPS_TRY(spsi_zip_end(&z->zip));
fail:
    return st;
}

/* Reads the array "data"; or the only array with another name; or the one that
 * FILE:NAME requests. */
static sps_status read_array(npz *z, const char *name, const spsi_npy *a)
{
    const bool asked = z->f->variable && strcmp(name, z->f->variable) == 0;
    sps_status st;

    if (z->f->variable && !asked) return spsi_zip_pass(&z->zip);
    /* A matrix has an array "data", whatever others there may be. */
    if (z->arrays++ > 0 && strcmp(name, "data") != 0)
        return spsi_zip_pass(&z->zip);
    if (z->arrays > 1) {
        spsi_free(z->f->ctx, z->data);
        z->data = NULL;
    }
    z->array = *a;
    if (z->f->peek) return spsi_zip_pass(&z->zip);
    SPS_TRY(read_data(z, a));
    SPS_TRY(spsi_zip_end(&z->zip));
fail:
    return st;
}

static sps_status read_member(npz *z)
{
    char *name = z->zip.name, *dot = strrchr(name, '.');
    spsi_npy a;
    sps_status st;

    if (dot && strcmp(dot, ".npy") == 0) *dot = '\0';
    else return spsi_zip_pass(&z->zip);
    if (strcmp(name, "_is_array") == 0) return spsi_zip_pass(&z->zip);
    if (z->f->variable && strcmp(name, z->f->variable) != 0)
        return spsi_zip_pass(&z->zip);
    SPS_TRY(spsi_npy_header(&z->zip.member, &a));
    for (int i = 0; i < 5; i++) {
        if (strcmp(name, kept[i]) != 0 || z->f->variable) continue;
        SPS_TRY(spsi_npy_real(&z->zip.member, &a));
        return read_kept(z, i, &a);
    }
    if (strcmp(name, "format") == 0 || strcmp(name, "shape") == 0) {
        SPS_TRY((*name == 'f' ? read_format : read_shape)(z, &a));
        return spsi_zip_end(&z->zip);
    }
    SPS_TRY(read_array(z, name, &a));
fail:
    return st;
}

/* --------------------------------------------------------------- matrices */

static sps_status missing(const npz *z, const char *what)
{
    return spsi_fail(z->f->ctx, SPS_EPARSE, "%s: a matrix of format %s "
                     "without its %s (written by scipy.sparse.save_npz?)",
                     z->f->name, z->format, what);
}

static sps_status check_below(const npz *z, const char *what,
                              const int32_t *index, int64_t count,
                              int64_t limit)
{
    sps_status st = SPS_OK;

    for (int64_t p = 0; p < count; p++)
        SPS_REQUIRE(z->f->ctx, index[p] < limit, SPS_EPARSE, "%s: %s[%lld] "
                    "is %lld, but the shape %lld x %lld allows 0 to %lld",
                    z->f->name, what, (long long)p, (long long)index[p],
                    (long long)z->shape[0], (long long)z->shape[1],
                    (long long)limit - 1);
fail:
    return st;
}

/* Checks that data is an array with `dimensions` dimensions and as many
 * elements as the indices. */
static sps_status check_data(const npz *z, int64_t count, int dimensions)
{
    sps_status st = SPS_OK;

    if (!z->data) return missing(z, "data");
    SPS_REQUIRE(z->f->ctx, z->array.dimensions == dimensions, SPS_EPARSE,
                "%s: data of %d dimensions; the format %s has %d", z->f->name,
                z->array.dimensions, z->format, dimensions);
    SPS_REQUIRE(z->f->ctx, z->array.shape[0] == count, SPS_EPARSE, "%s: there "
                "are %lld indices, but the array \"data\" has %lld elements",
                z->f->name, (long long)count, (long long)z->array.shape[0]);
fail:
    return st;
}

/* Makes the arrays of a csr those of the result. */
static sps_status adopt(npz *z, spsi_content *c)
{
    sps_csr *A = NULL;
    sps_status st;

    SPS_TRY(sps_csr_create(z->f->ctx, 0, c->ncol, 0, SPS_F64, &A));
    spsi_free(z->f->ctx, A->rowptr);
    spsi_free(z->f->ctx, A->col);
    spsi_free(z->f->ctx, A->val);
    A->nrow = c->nrow;
    A->nnz = z->indptr[c->nrow];
    A->rowptr = z->indptr;
    A->col = z->indices;
    A->val = z->data;
    z->indptr = NULL;
    z->indices = NULL;
    z->data = NULL;
    c->A = A;
fail:
    return st;
}

/* For csr, csc and bsr: checks the offsets of `major` rows or columns, in units
 * of blocks. */
static sps_status check_compressed(const npz *z, int64_t major, int64_t minor)
{
    int64_t count = z->lengths[INDICES];
    sps_status st;

    if (!z->indptr) return missing(z, "indptr");
    if (!z->indices) return missing(z, "indices");
    SPS_REQUIRE(z->f->ctx, z->lengths[INDPTR] == major + 1, SPS_EPARSE,
                "%s: indptr has %lld elements; the shape %lld x %lld "
                "requires %lld", z->f->name, (long long)z->lengths[INDPTR],
                (long long)z->shape[0], (long long)z->shape[1],
                (long long)major + 1);
    SPS_TRY(check_data(z, count, z->format[0] == 'b' ? 3 : 1));
    if (z->indptr[major] < count) count = z->indptr[major];   /* some unused */
    SPS_TRY(spsi_entries_check(z->f, "indptr", z->indptr, major, count, 0));
    SPS_TRY(check_below(z, "indices", z->indices, count, minor));
fail:
    return st;
}

static sps_status make_compressed(npz *z, spsi_content *c)
{
    const bool by_rows = strcmp(z->format, "csr") == 0;
    sps_status st;

    SPS_TRY(check_compressed(z, z->shape[!by_rows], z->shape[by_rows]));
    c->count = z->indptr[z->shape[!by_rows]];
    st = by_rows ? adopt(z, c)
                 : spsi_entries_csc(z->f, c, z->indptr, z->indices, z->data, 0,
                                    &c->A);
fail:
    return st;
}

static sps_status make_coo(npz *z, spsi_content *c)
{
    sps_status st;

    if (!z->row || !z->col) return missing(z, "row and col");
    SPS_REQUIRE(z->f->ctx, z->lengths[ROW] == z->lengths[COL], SPS_EPARSE,
                "%s: the array \"row\" has %lld elements, but \"col\" has "
                "%lld", z->f->name,
                (long long)z->lengths[ROW], (long long)z->lengths[COL]);
    SPS_TRY(check_data(z, z->lengths[ROW], 1));
    SPS_TRY(check_below(z, "row", z->row, z->lengths[ROW], c->nrow));
    SPS_TRY(check_below(z, "col", z->col, z->lengths[ROW], c->ncol));
    SPS_TRY(spsi_entries_csr(z->f, c, z->lengths[ROW], z->row, z->col, z->data,
                             0, &c->A));
fail:
    return st;
}

/* Returns the position of data[i, j] or data[i, j, k] in the array. */
static int64_t place(const spsi_npy *a, int64_t i, int64_t j, int64_t k)
{
    const int64_t third = a->dimensions > 2 ? a->shape[2] : 1;

    return a->fortran ? i + a->shape[0] * (j + a->shape[1] * k)
                      : (i * a->shape[1] + j) * third + k;
}

/* Stores row `row` of the blocks of block row `above`. */
static void spread_row(const npz *z, int64_t above, int64_t row, sps_csr *A)
{
    const int64_t columns = z->array.shape[2];
    const int64_t i = above * z->array.shape[1] + row;
    int64_t q = A->rowptr[i];

    for (int64_t p = z->indptr[above]; p < z->indptr[above + 1]; p++)
        for (int64_t j = 0; j < columns; j++) {
            A->col[q] = (int32_t)(z->indices[p] * columns + j);
            ((double *)A->val)[q++] = z->data[place(&z->array, p, row, j)];
        }
    A->rowptr[i + 1] = q;
}

static sps_status make_bsr(npz *z, spsi_content *c)
{
    const int64_t *shape = z->array.shape;
    int64_t above;
    sps_status st;

    SPS_REQUIRE(z->f->ctx, z->array.dimensions == 3 && shape[1] > 0 &&
                shape[2] > 0 && c->nrow % shape[1] == 0 &&
                c->ncol % shape[2] == 0, SPS_EPARSE, "%s: data of %lld "
                "blocks of %lld x %lld, which do not divide %lld x %lld",
                z->f->name, (long long)shape[0], (long long)shape[1],
                (long long)shape[2], (long long)c->nrow, (long long)c->ncol);
    above = c->nrow / shape[1];
    SPS_TRY(check_compressed(z, above, c->ncol / shape[2]));
    c->count = z->indptr[above] * shape[1] * shape[2];   /* stored zeros too */
    SPS_TRY(sps_csr_create(z->f->ctx, c->nrow, c->ncol, c->count, SPS_F64,
                           &c->A));
    for (int64_t i = 0; i < above; i++)
        for (int64_t row = 0; row < shape[1]; row++)
            spread_row(z, i, row, c->A);
fail:
    return st;
}

/* Visits the nonzero entries of diagonal k, of length shape[1] in the array;
 * counts them, and stores them unless row is NULL. */
static int64_t walk_diagonal(const npz *z, int64_t k, int32_t *row,
                             int32_t *col, double *val)
{
    const int64_t offset = z->offsets[k], width = z->array.shape[1];
    int64_t j = offset > 0 ? offset : 0, count = 0;

    for (; j < width && j < z->shape[1] && j - offset < z->shape[0]; j++) {
        const double x = z->data[place(&z->array, k, j, 0)];

        if (x == 0) continue;
        if (row) {
            row[count] = (int32_t)(j - offset);
            col[count] = (int32_t)j;
            val[count] = x;
        }
        count++;
    }
    return count;
}

static sps_status make_dia(npz *z, spsi_content *c)
{
    const int64_t n = z->lengths[OFFSETS];
    int64_t count = 0;
    double *val = NULL;
    sps_status st;

    if (!z->offsets) return missing(z, "offsets");
    SPS_TRY(check_data(z, n, 2));
    for (int64_t k = 0; k < n; k++) {
        SPS_REQUIRE(z->f->ctx, z->offsets[k] > -(INT64_C(1) << 40) &&
                    z->offsets[k] < INT64_C(1) << 40, SPS_EPARSE, "%s: "
                    "diagonal %lld is outside of the matrix", z->f->name,
                    (long long)z->offsets[k]);
        count += walk_diagonal(z, k, NULL, NULL, NULL);
    }
    SPS_TRY(SPS_NEW(z->f->ctx, count, &z->row));
    SPS_TRY(SPS_NEW(z->f->ctx, count, &z->col));
    SPS_TRY(SPS_NEW(z->f->ctx, count, &val));
    count = 0;
    for (int64_t k = 0; k < n; k++)
        count += walk_diagonal(z, k, z->row + count, z->col + count,
                               val + count);
    SPS_TRY(spsi_entries_csr(z->f, c, count, z->row, z->col, val, 0, &c->A));
    c->count = count;
fail:
    spsi_free(z->f->ctx, val);
    return st;
}

static const struct {
    char name[4];
    sps_status (*make)(npz *z, spsi_content *c);
} kinds[] = {{"csr", make_compressed}, {"csc", make_compressed},
             {"coo", make_coo}, {"bsr", make_bsr}, {"dia", make_dia}};

static sps_status make_matrix(npz *z, spsi_content *c)
{
    sps_status st;

    if (!z->shaped) return missing(z, "shape");
    c->nrow = z->shape[0];
    c->ncol = z->shape[1];
    c->count = z->array.count;
    SPS_TRY(spsi_format_check(z->f, c, false, z->zip.file.bound));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(z->format, kinds[i].name) == 0)
            return z->f->peek ? SPS_OK : kinds[i].make(z, c);
    st = spsi_fail(z->f->ctx, SPS_EPARSE, "%s: a matrix of format \"%s\"; csr, "
                   "csc, coo, bsr and dia are read", z->f->name, z->format);
fail:
    return st;
}

/* ------------------------------------------------------------------- dense */

static sps_status make_dense(npz *z, spsi_content *c)
{
    const spsi_file *f = z->f;
    const spsi_npy *a = &z->array;
    sps_status st;

    SPS_REQUIRE(f->ctx, z->arrays <= 1, SPS_EPARSE, "%s: %d arrays, and no "
                "sparse matrix; say which one by FILE:NAME (unzip -l lists "
                "them)", f->name, z->arrays);
    SPS_REQUIRE(f->ctx, a->dimensions > 0, SPS_EPARSE, "%s: the archive has "
                "neither a sparse matrix of scipy.sparse.save_npz nor an "
                "array%s%s", f->name, f->variable ? " " : "",
                f->variable ? f->variable : "");
    SPS_REQUIRE(f->ctx, a->dimensions <= 2, SPS_EPARSE, "%s: an array of %d "
                "dimensions; it must have 1 (a column) or 2", f->name,
                a->dimensions);
    c->nrow = a->shape[0];
    c->ncol = a->dimensions == 2 ? a->shape[1] : 1;
    c->count = a->count;
    c->order = a->fortran ? SPS_COL_MAJOR : SPS_ROW_MAJOR;
    SPS_TRY(spsi_format_check(f, c, false, z->zip.file.bound));
    c->x = z->data;
    z->data = NULL;
fail:
    return st;
}

static bool recognise(const spsi_file *f, const char *head, size_t length)
{
    size_t name = length > 30 ? (unsigned char)head[26] : 0;

    (void)f;
    return spsi_zip_begins(head, length) && length > 30 + name && name > 4 &&
           memcmp(head + 30 + name - 4, ".npy", 4) == 0;
}

static sps_status read_npz_file(const spsi_file *f, spsi_content *c)
{
    npz z = {.f = f};
    bool more = true;
    sps_status st;

    SPS_TRY(spsi_zip_open(f, &z.zip));
    while (more) {
        SPS_TRY(spsi_zip_next(&z.zip, &more));
        if (more) SPS_TRY(read_member(&z));
    }
    if (z.array.dimensions > 0 && z.array.type.kind != 'f')
        strcpy(c->info.field, "integer");
    c->info.rounded = z.rounded;
    st = z.format[0] ? make_matrix(&z, c) : make_dense(&z, c);
fail:
    close_npz(&z);
    return st;
}

SPS_DEFINE(spsi_format, spsi_format_npz) = {recognise, read_npz_file};
