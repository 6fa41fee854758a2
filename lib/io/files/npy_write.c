/* SPDX-License-Identifier: BSD-3-Clause */
/* npy_write.c - writes arrays and archives of NumPy: .npy of a block, .npz of a
 * csr as scipy.sparse.save_npz writes it, or of a block as its only array.
 * Blocks are written by columns (fortran_order), some of them at a time.
 *
 * In an archive the checksum of a member comes before its bytes.  So members
 * are produced twice, the first time only for the checksum. */
#include <string.h>
#include <zlib.h>

#include "io/files/npy.h"
#include "io/files/writer.h"
#include "io/files/zip.h"

enum { GROUP = 8,                /* columns copied at once */
       ITEMS = 4096 };           /* elements in a piece of a checksum */

/* The destination of bytes: the file, or, if s is NULL, a checksum. */
typedef struct outlet {
    sps_context *ctx;
    spsi_sink *s;
    uint64_t at;                 /* bytes so far */
    uint32_t crc;
} outlet;

static sps_status emit(outlet *o, spsi_sink_fn write, const void *data,
                       int64_t count, size_t width)
{
    char piece[ITEMS * 16];      /* width <= 16 */

    o->at += (uint64_t)count * width;
    if (o->s) return spsi_sink_write(o->s, write, data, count, width);
    for (int64_t i = 0; i < count; i += ITEMS) {
        const int64_t end = i + ITEMS < count ? i + ITEMS : count;
        const size_t n = write(data, i, end, piece);

        o->crc = (uint32_t)crc32_z(o->crc, (const Bytef *)piece, n);
    }
    return SPS_OK;
}

static size_t copy_bytes(const void *data, int64_t first, int64_t last,
                         char *to)
{
    memcpy(to, (const char *)data + first, (size_t)(last - first));
    return (size_t)(last - first);
}

static size_t copy_fours(const void *data, int64_t first, int64_t last,
                         char *to)
{
    memcpy(to, (const char *)data + 4 * first, 4 * (size_t)(last - first));
    return 4 * (size_t)(last - first);
}

static size_t copy_eights(const void *data, int64_t first, int64_t last,
                          char *to)
{
    memcpy(to, (const char *)data + 8 * first, 8 * (size_t)(last - first));
    return 8 * (size_t)(last - first);
}

/* copy_narrow converts int64_t to 4-byte integers, copy_wide int32_t to 8-byte
 * ones. */
static size_t copy_narrow(const void *data, int64_t first, int64_t last,
                          char *to)
{
    const int64_t *from = data;

    for (int64_t i = first; i < last; i++) {
        const int32_t v = (int32_t)from[i];
        memcpy(to + 4 * (i - first), &v, 4);
    }
    return 4 * (size_t)(last - first);
}

static size_t copy_wide(const void *data, int64_t first, int64_t last, char *to)
{
    const int32_t *from = data;

    for (int64_t i = first; i < last; i++) {
        const int64_t v = from[i];
        memcpy(to + 8 * (i - first), &v, 8);
    }
    return 8 * (size_t)(last - first);
}

/* The type as NumPy names it, in the byte order of this machine. */
#define TYPE(letters) (spsi_big_endian() ? ">" letters : "<" letters)

static sps_status emit_header(outlet *o, const char *type, bool fortran,
                              int64_t rows, int64_t columns)
{
    char text[SPSI_NPY_HEADER];
    size_t n = spsi_npy_print(text, type, fortran, rows, columns);

    return emit(o, copy_bytes, text, (int64_t)n, 1);
}

/* ------------------------------------------------------------------ block */

typedef struct image {
    const sps_block *X;
    bool interleaved;
} image;

static sps_status emit_block(outlet *o, const void *data)
{
    const image *m = data;
    const sps_block *X = m->X;
    double *x = NULL;
    sps_status st;

    SPS_TRY(emit_header(o, m->interleaved ? TYPE("c16") : TYPE("f8"), true,
                        m->interleaved ? X->n / 2 : X->n, X->k));
    SPS_TRY(SPS_NEW(o->ctx, X->n * (X->k < GROUP ? X->k : GROUP), &x));
    for (int first = 0; first < X->k; first += GROUP) {
        const int k = X->k - first < GROUP ? X->k - first : GROUP;

        SPS_TRY(sps_block_get(X, first, k, x, X->n, SPS_COL_MAJOR, SPS_HOST));
        SPS_TRY(emit(o, copy_eights, x, X->n * k, 8));
    }
fail:
    spsi_free(o->ctx, x);
    return st;
}

static sps_status write_npy_block(spsi_sink *s, const sps_block *X,
                                  bool interleaved)
{
    outlet o = {.ctx = X->ctx, .s = s};

    return emit_block(&o, &(image){X, interleaved});
}

/* Writes this process's rows, which begin at row `first` of `whole`, to their
 * place in each column; that is known, since every element has 8 bytes. */
static sps_status write_npy_rows(spsi_shared *s, const sps_block *X,
                                 int64_t first, int64_t whole)
{
    char text[SPSI_NPY_HEADER];
    const size_t head = spsi_npy_print(text, TYPE("f8"), true, whole, X->k);
    const int group = X->k < GROUP ? X->k : GROUP;
    double *x = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(s->ctx, X->n * group, &x));
    if (first == 0) SPS_TRY(spsi_shared_put(s, text, head, 0));
    for (int c = 0; c < X->k; c += GROUP) {
        const int k = X->k - c < GROUP ? X->k - c : GROUP;

        SPS_TRY(sps_block_get(X, c, k, x, X->n, SPS_COL_MAJOR, SPS_HOST));
        for (int i = 0; i < k; i++)
            SPS_TRY(spsi_shared_put(s, x + i * X->n, (size_t)X->n * 8, head +
                                    8 * (uint64_t)((c + i) * whole + first)));
    }
fail:
    spsi_free(s->ctx, x);
    return st;
}

/* ---------------------------------------------------------------- archive */

typedef struct member {
    const char *name;
    sps_status (*emit)(outlet *o, const void *data);
} member;

static sps_status write_member(outlet *o, const member *m, const void *data,
                               spsi_zip_entry *e)
{
    outlet sum = {.ctx = o->ctx};
    char text[SPSI_ZIP_HEADER];
    sps_status st;

    SPS_TRY(m->emit(&sum, data));
    *e = (spsi_zip_entry){m->name, sum.at, o->at, sum.crc};
    SPS_TRY(emit(o, copy_bytes, text,
                 (int64_t)spsi_zip_print_local(text, e), 1));
    SPS_TRY(m->emit(o, data));
fail:
    return st;
}

enum { MEMBERS = 5 };

static sps_status write_archive(outlet *o, const member *m, int count,
                                const void *data)
{
    spsi_zip_entry entry[MEMBERS];
    char text[SPSI_ZIP_HEADER];
    uint64_t at;
    sps_status st;

    for (int i = 0; i < count; i++)
        SPS_TRY(write_member(o, &m[i], data, &entry[i]));
    at = o->at;
    for (int i = 0; i < count; i++)
        SPS_TRY(emit(o, copy_bytes, text, (int64_t)
                     spsi_zip_print_record(text, &entry[i]), 1));
    SPS_TRY(emit(o, copy_bytes, text, (int64_t)
                 spsi_zip_print_end(text, count, o->at - at, at), 1));
fail:
    return st;
}

/* ------------------------------------------------------------------- csr */

static sps_status emit_list(outlet *o, const char *type, spsi_sink_fn write,
                            const void *data, int64_t count, size_t width)
{
    sps_status st;

    SPS_TRY(emit_header(o, type, false, count, 0));
    SPS_TRY(emit(o, write, data, count, width));
fail:
    return st;
}

/* Returns whether offsets and columns, which have one type, both fit into 32
 * bits. */
static bool narrow(const sps_csr *A)
{
    return A->nnz <= INT32_MAX;
}

static sps_status emit_indices(outlet *o, const void *data)
{
    const sps_csr *A = data;

    return narrow(A)
        ? emit_list(o, TYPE("i4"), copy_fours, A->col, A->nnz, 4)
        : emit_list(o, TYPE("i8"), copy_wide, A->col, A->nnz, 8);
}

static sps_status emit_indptr(outlet *o, const void *data)
{
    const sps_csr *A = data;

    return narrow(A)
        ? emit_list(o, TYPE("i4"), copy_narrow, A->rowptr, A->nrow + 1, 4)
        : emit_list(o, TYPE("i8"), copy_eights, A->rowptr, A->nrow + 1, 8);
}

static sps_status emit_format(outlet *o, const void *data)
{
    sps_status st;

    (void)data;
    SPS_TRY(emit_header(o, "|S3", false, -1, 0));
    SPS_TRY(emit(o, copy_bytes, "csr", 3, 1));
fail:
    return st;
}

static sps_status emit_shape(outlet *o, const void *data)
{
    const sps_csr *A = data;
    const int64_t shape[2] = {A->nrow, A->ncol};

    return emit_list(o, TYPE("i8"), copy_eights, shape, 2, 8);
}

static sps_status emit_data(outlet *o, const void *data)
{
    const sps_csr *A = data;

    return A->dtype == SPS_F32
        ? emit_list(o, TYPE("f4"), copy_fours, A->val, A->nnz, 4)
        : emit_list(o, TYPE("f8"), copy_eights, A->val, A->nnz, 8);
}

static sps_status write_npz_csr(sps_context *ctx, spsi_sink *s,
                                const sps_csr *A, bool symmetric)
{
    static const member m[MEMBERS] = {
        {"indices.npy", emit_indices}, {"indptr.npy", emit_indptr},
        {"format.npy", emit_format}, {"shape.npy", emit_shape},
        {"data.npy", emit_data}};
    outlet o = {.ctx = ctx, .s = s};

    (void)symmetric;             /* .npz has no symmetry: all is written */
    return write_archive(&o, m, MEMBERS, A);
}

static sps_status write_npz_block(spsi_sink *s, const sps_block *X,
                                  bool interleaved)
{
    static const member m = {"X.npy", emit_block};
    outlet o = {.ctx = X->ctx, .s = s};

    return write_archive(&o, &m, 1, &(image){X, interleaved});
}

SPS_DEFINE(spsi_writer, spsi_writer_npy) = {
    .suffix = ".npy", .block = write_npy_block, .rows = write_npy_rows,
};

SPS_DEFINE(spsi_writer, spsi_writer_npz) = {
    .suffix = ".npz", .csr = write_npz_csr, .block = write_npz_block,
};
