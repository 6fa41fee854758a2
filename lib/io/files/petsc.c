/* SPDX-License-Identifier: BSD-3-Clause */
/* petsc.c - reads binary files of PETSc.  A csr is read from the first object.
 * A block is read from the vectors of the file, its columns, or, without any,
 * from its matrix: so a file with A and b can be used for both. */
#include <string.h>

#include "io/stream/bytes.h"
#include "io/files/petsc.h"

static const spsi_binary real_type = {
    'f', 8, __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__};

typedef struct petsc {
    spsi_bytes b;
    spsi_binary whole;         /* type of integers */
    spsi_binary real;
    bool enough;               /* the rest is not wanted: another pair of A and
                                  b follows */
} petsc;

static int64_t first_integer(const char *p, int size)
{
    uint64_t v = 0;

    for (int i = 0; i < size; i++) v = v << 8 | (unsigned char)p[i];
    return size == 4 ? (int32_t)v : (int64_t)v;
}

static bool known(int64_t id)
{
    return id == SPSI_PETSC_MAT || id == SPSI_PETSC_VEC;
}

/* Returns the bytes of an integer of the object at p, or 0 if there is none. */
static int integers(const char *p, size_t length)
{
    if (length >= 8 && known(first_integer(p, 4))) return 4;
    if (length >= 16 && known(first_integer(p, 8))) return 8;
    return 0;
}

/* ----------------------------------------------------------------- matrix */

/* A build of PETSc in single precision writes floats with the same header; they
 * are recognised by the bytes that follow. */
static void guess_reals(petsc *p, const spsi_content *c)
{
    const uint64_t n = (uint64_t)c->count, size = (uint64_t)p->whole.size;

    p->real = real_type;
    if (n > 0 && p->b.bound == spsi_text_size(p->b.f->text) &&
        p->b.bound - p->b.offset == ((uint64_t)c->nrow + n) * size + 4 * n)
        p->real.size = 4;
}

static sps_status read_dense(petsc *p, spsi_content *c)
{
    sps_status st;

    c->count = c->nrow * c->ncol;
    c->order = SPS_ROW_MAJOR;
    SPS_TRY(spsi_format_check(p->b.f, c, false, p->b.bound));
    if (p->b.f->peek) return SPS_OK;
    p->real = real_type;
    SPS_TRY(spsi_bytes_room(&p->b, p->real, c->count, sizeof *c->x,
                            "the matrix", (void **)&c->x));
    SPS_TRY(spsi_bytes_reals(&p->b, p->real, c->count, c->x,
                             &c->info.rounded));
fail:
    return st;
}

/* Converts the lengths of rows to offsets. */
static sps_status read_lengths(petsc *p, const spsi_content *c, int64_t *rowptr)
{
    const spsi_file *f = p->b.f;
    sps_status st;

    SPS_TRY(spsi_bytes_wholes(&p->b, p->whole, c->nrow, rowptr + 1));
    for (int64_t i = 0; i < c->nrow; i++) {
        SPS_REQUIRE(f->ctx, rowptr[i + 1] >= 0 && rowptr[i + 1] <= c->count,
                    SPS_EPARSE, "%s: row %lld (of 0 to %lld) has %lld entries, "
                    "the whole matrix %lld", f->name, (long long)i,
                    (long long)c->nrow - 1, (long long)rowptr[i + 1],
                    (long long)c->count);
        rowptr[i + 1] += rowptr[i];
        SPS_REQUIRE(f->ctx, rowptr[i + 1] <= c->count, SPS_EPARSE, "%s: rows "
                    "0 to %lld have %lld entries, more than the %lld of the "
                    "whole matrix", f->name, (long long)i,
                    (long long)rowptr[i + 1], (long long)c->count);
    }
    SPS_TRY(spsi_entries_check(f, "the sum of the lengths of rows", rowptr,
                               c->nrow, c->count, 0));
fail:
    return st;
}

static sps_status read_matrix(petsc *p, spsi_content *c)
{
    const spsi_file *f = p->b.f;
    int64_t size[3];
    sps_csr *A = NULL;
    sps_status st;

    SPS_TRY(spsi_bytes_wholes(&p->b, p->whole, 3, size));
    c->nrow = size[0];
    c->ncol = size[1];
    c->count = size[2] < 0 ? 0 : size[2];
    SPS_TRY(spsi_format_check(f, c, false, p->b.bound));
    SPS_REQUIRE(f->ctx, size[2] >= SPSI_PETSC_DENSE, SPS_EPARSE, "%s: a "
                "matrix of PETSc cannot have %lld entries", f->name,
                (long long)size[2]);
    if (size[2] == SPSI_PETSC_DENSE) return read_dense(p, c);
    if (f->peek) return SPS_OK;
    guess_reals(p, c);
    /* Refuses what the file can't hold before the csr is allocated. */
    SPS_TRY(spsi_bytes_expect(&p->b, p->whole, c->nrow, "lengths of rows"));
    SPS_TRY(spsi_bytes_expect(&p->b, p->whole, c->count, "columns"));
    SPS_TRY(sps_csr_create(f->ctx, c->nrow, c->ncol, c->count, SPS_F64, &A));
    SPS_TRY(read_lengths(p, c, A->rowptr));
    SPS_TRY(spsi_bytes_indices(&p->b, p->whole, c->count, 0, c->ncol,
                               "column", A->col));
    SPS_TRY(spsi_bytes_reals(&p->b, p->real, c->count, A->val,
                             &c->info.rounded));
    c->A = A;
    A = NULL;
fail:
    sps_csr_destroy(f->ctx, &A);
    return st;
}

/* ---------------------------------------------------------------- vectors */

/* Appends the vector as a column. */
static sps_status read_vector(petsc *p, spsi_content *c)
{
    const spsi_file *f = p->b.f;
    int64_t n;
    sps_status st;

    SPS_TRY(spsi_bytes_wholes(&p->b, p->whole, 1, &n));
    SPS_REQUIRE(f->ctx, c->ncol == 0 || n == c->nrow, SPS_EPARSE, "%s: byte "
                "%llu: a vector of length %lld after %lld of length %lld; "
                "the columns of a block must have equal lengths", f->name,
                (unsigned long long)p->b.offset, (long long)n,
                (long long)c->ncol, (long long)c->nrow);
    c->nrow = n;
    c->ncol++;
    c->count = n > 0 && n <= INT32_MAX ? n * c->ncol : n;
    c->order = SPS_COL_MAJOR;
    SPS_TRY(spsi_format_check(f, c, false, p->b.bound));
    if (f->peek) return SPS_OK;
    SPS_TRY(spsi_bytes_expect(&p->b, real_type, n, "the vector"));
    SPS_TRY(spsi_resize(f->ctx, (size_t)(c->count + 1) * sizeof *c->x,
                        (void **)&c->x));
    SPS_TRY(spsi_bytes_reals(&p->b, real_type, n, c->x + n * (c->ncol - 1),
                             &c->info.rounded));
fail:
    return st;
}

static void forget(const spsi_file *f, spsi_content *c)
{
    sps_csr_destroy(f->ctx, &c->A);
    spsi_free(f->ctx, c->x);
    c->x = NULL;
    c->nrow = c->ncol = c->count = 0;
}

/* Reads *id, the first integer of the next object's header, which tells its
 * kind; 0 if no object follows. */
static sps_status next_object(petsc *p, int64_t *id)
{
    const char *head;
    size_t got;
    sps_status st;

    *id = 0;
    SPS_TRY(spsi_bytes_peek(&p->b, 16, &head, &got));
    if (integers(head, got) != p->whole.size) return SPS_OK;
    SPS_TRY(spsi_bytes_wholes(&p->b, p->whole, 1, id));
fail:
    return st;
}

static sps_status read_objects(petsc *p, spsi_content *c)
{
    bool matrix = false;
    int64_t id;
    sps_status st;

    SPS_TRY(next_object(p, &id));
    do {
        if (id == SPSI_PETSC_MAT) {
            /* After A and b another pair begins, which a block leaves. */
            p->enough = c->ncol > 0 && p->b.f->block;
            if (p->enough) break;
            if (c->ncol > 0) forget(p->b.f, c);
            SPS_TRY(read_matrix(p, c));
        } else {
            if (matrix) forget(p->b.f, c);
            SPS_TRY(read_vector(p, c));
        }
        matrix = id == SPSI_PETSC_MAT;
        if ((matrix && !p->b.f->block) || p->b.f->peek) break;
        SPS_TRY(next_object(p, &id));
    } while (id != 0);
fail:
    return st;
}

/* Complex values take twice the bytes that the header indicates: then what
 * follows is not another object.  (The ids of objects begin with 12112.) */
static sps_status check_end(petsc *p)
{
    const spsi_file *f = p->b.f;
    const char *head;
    size_t got;
    sps_status st;

    SPS_TRY(spsi_bytes_peek(&p->b, 16, &head, &got));
    const size_t size = (size_t)p->whole.size;
    const int64_t id = got < size ? 0 : first_integer(head, p->whole.size);
    SPS_REQUIRE(f->ctx, got == 0 || id / 100 == SPSI_PETSC_MAT / 100,
                SPS_EPARSE, "%s: byte %llu: what follows is not an object "
                "of PETSc (if the numbers are complex: these are read only "
                "from Matrix Market files, as scipy.io.mmwrite writes them)",
                f->name,
                (unsigned long long)p->b.offset);
fail:
    return st;
}

static bool recognise(const spsi_file *f, const char *head, size_t length)
{
    (void)f;
    return integers(head, length) > 0;
}

static sps_status read_petsc_file(const spsi_file *f, spsi_content *c)
{
    petsc p = {.whole = {'i', 4, real_type.swapped}};
    const char *head;
    size_t got;
    sps_status st;

    SPS_TRY(spsi_bytes_open(f, &p.b));
    SPS_TRY(spsi_bytes_peek(&p.b, 16, &head, &got));
    p.whole.size = integers(head, got);
    SPS_TRY(read_objects(&p, c));
    if (!f->peek && !p.enough) SPS_TRY(check_end(&p));
fail:
    spsi_bytes_close(&p.b);
    return st;
}

SPS_DEFINE(spsi_format, spsi_format_petsc) = {recognise, read_petsc_file};
