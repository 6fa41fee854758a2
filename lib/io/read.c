/* SPDX-License-Identifier: BSD-3-Clause */
/* read.c - reads a file of any kind (open.c) into the csr or block that the
 * caller wants. */
#include <string.h>

#include "core/abi.h"
#include "core/comm.h"
#include "io/mtx.h"
#include "io/own_rows.h"
#include "matrix/csr.h"

/* -------------------------------------------------------------------- csr */

/* Stores the nonzero elements of a dense array as entries. */
static sps_status sparse(const spsi_file *f, spsi_content *c)
{
    const bool by_rows = c->order == SPS_ROW_MAJOR;
    const int64_t down = by_rows ? c->ncol : 1, across = by_rows ? 1 : c->nrow;
    int64_t count = 0;
    sps_csr *A = NULL;
    sps_status st;

    for (int64_t p = 0; p < c->nrow * c->ncol; p++) count += c->x[p] != 0;
    SPS_TRY(sps_csr_create(f->ctx, c->nrow, c->ncol, count, SPS_F64, &A));
    count = 0;
    for (int64_t i = 0; i < c->nrow; i++) {
        for (int64_t j = 0; j < c->ncol; j++) {
            const double x = c->x[i * down + j * across];
            if (x == 0) continue;
            A->col[count] = (int32_t)j;
            ((double *)A->val)[count++] = x;
        }
        A->rowptr[i + 1] = count;
    }
    c->A = A;
fail:
    return st;
}

/* For option strict: returns EPARSE for the first row that has a column
 * twice. */
static sps_status refuse_duplicates(const spsi_file *f, const sps_csr *A)
{
    int64_t *seen = NULL;            /* seen[j]: 1 + last row with column j */
    sps_status st;

    SPS_TRY(SPS_NEW(f->ctx, A->ncol, &seen));
    for (int64_t i = 0; i < A->nrow; i++)
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
            SPS_REQUIRE(f->ctx, seen[A->col[p]] != i + 1, SPS_EPARSE,
                        "%s: entry (%lld, %lld), counted from 0, occurs "
                        "twice (without strict reading they are summed)",
                        f->name, (long long)i, (long long)A->col[p]);
            seen[A->col[p]] = i + 1;
        }
fail:
    spsi_free(f->ctx, seen);
    return st;
}

static sps_status finish_csr(const spsi_file *f, spsi_content *c)
{
    const int64_t placed = c->A->nnz;
    sps_status st = SPS_OK;

    if (f->options.strict) SPS_TRY(refuse_duplicates(f, c->A));
    SPS_TRY(sps_csr_check(f->ctx, c->A));
    c->info.duplicates = placed - c->A->nnz;
fail:
    return st;
}

static void notes(const spsi_file *f, const spsi_content *c)
{
    if (strcmp(c->info.field, "pattern") == 0)
        spsi_note(f->ctx, "%s: a pattern without values; every stored entry "
                          "is 1",
                  f->name);
    if (c->info.rounded > 0)
        spsi_note(f->ctx, "%s: %lld integers beyond 2^53 were rounded",
                  f->name, (long long)c->info.rounded);
}

static void drop(const spsi_file *f, spsi_content *c)
{
    sps_csr_destroy(f->ctx, &c->A);
    spsi_free(f->ctx, c->x);
    c->x = NULL;
}

/* Reads a file of a kind in the table. */
static sps_status load(const spsi_file *f, const spsi_format *format,
                       spsi_content *c)
{
    sps_status st;

    strcpy(c->info.field, "real");
    strcpy(c->info.symmetry, "general");
    c->info.struct_size = sizeof c->info;
    SPS_TRY(format->read(f, c));
    c->info.stored = c->count;
    c->info.array = c->x != NULL;
    if (!f->peek) notes(f, c);
fail:
    return st;
}

static sps_status read_whole(sps_context *ctx, const char *path,
                             const sps_read_options *ro, sps_read_info *info,
                             sps_csr **A_p)
{
    spsi_file f = {.ctx = ctx};
    spsi_content c = {0};
    const spsi_format *format;
    sps_status st;

    SPS_TRY(spsi_file_open(&f, path, ro, &format));
    if (!format) {
        SPS_TRY(spsi_mtx_read_csr(&f, info, A_p));
    } else {
        SPS_TRY(load(&f, format, &c));
        if (!c.A) SPS_TRY(sparse(&f, &c));
        SPS_TRY(finish_csr(&f, &c));
        if (info) spsi_abi_copy(&c.info, info);
        *A_p = c.A;
        c.A = NULL;
    }
fail:
    drop(&f, &c);
    spsi_file_close(&f);
    return st;
}

static sps_status check_rows(sps_context *ctx, const char *function,
                             int64_t first, int64_t rows, int64_t whole)
{
    sps_status st = SPS_OK;

    SPS_REQUIRE(ctx, whole >= 1 && rows >= 0 && first >= 0 && first <= whole &&
                rows <= whole - first, SPS_EINVAL, "%s: %lld rows from %lld on "
                "are not among %lld rows of the whole", function,
                (long long)rows, (long long)first, (long long)whole);
fail:
    return st;
}

/* Called where a file has not been read in parts.  All processes give up if
 * sps_cancel was called on one, which the others would otherwise notice when
 * they have read the whole. */
static sps_status go_on(sps_context *ctx, const char *path)
{
    return !spsi_agreed_cancel(ctx) ? SPS_OK
        : spsi_fail(ctx, SPS_EIO, "%s: interrupted on some process", path);
}

/* For several processes, collective: reads the own rows of the matrix. */
static sps_status read_own(sps_context *ctx, const char *path,
                           const sps_read_options *ro, sps_read_info *info,
                           const spsi_share *wanted, sps_csr **own_p)
{
    sps_csr *A = NULL;
    bool done = false;
    sps_comm *all;
    sps_status st;

    SPS_TRY(spsi_mtx_read_ranks(ctx, path, ro, info, wanted, own_p,
                                &done));
    if (done) return SPS_OK;
    SPS_TRY(go_on(ctx, path));
    all = spsi_comm_apart(ctx);
    st = read_whole(ctx, path, ro, info, &A);
    spsi_comm_back(ctx, all);
    SPS_TRY(st);
    SPS_TRY(spsi_own_rows(ctx, path, A, wanted, own_p));
fail:
    sps_csr_destroy(ctx, &A);
    return st;
}

/* Reads the matrix, or, for several processes, the rows of this one. */
static sps_status read_csr(sps_context *ctx, const char *path,
                           const sps_read_options *ro, sps_read_info *info,
                           const spsi_share *wanted, sps_csr **A_p)
{
    sps_csr *A = NULL;
    sps_status st;

    SPS_TRY(SPS_ABI_CHECK(ctx, sps_read_info, info));
    if (!spsi_comm_many(ctx)) {
        SPS_TRY(read_whole(ctx, path, ro, info, &A));
        SPS_TRY(spsi_own_shape(ctx, path, A, wanted));
    } else {
        SPS_TRY(spsi_comm_begin(ctx));
        SPS_TRY(spsi_comm_end(ctx, read_own(ctx, path, ro, info, wanted, &A)));
    }
    *A_p = A;
    return SPS_OK;

fail:
    sps_csr_destroy(ctx, &A);
    return st;
}

/* Sets share->even to whether option partition is "rows"; EINVAL for an unknown
 * name. */
static sps_status choose_share(sps_context *ctx, const sps_read_options *ro,
                               spsi_share *share)
{
    sps_read_options o = { .struct_size = sizeof o };
    sps_status st;

    SPS_TRY(SPS_ABI_CHECK(ctx, sps_read_options, ro));
    if (ro) spsi_abi_copy(ro, &o);
    share->even = o.partition && !strcmp(o.partition, "rows");
    SPS_REQUIRE(ctx, !o.partition || share->even ||
                !strcmp(o.partition, "nnz"), SPS_EINVAL, "sps_csr_read: "
                "partition is \"%.40s\"; it must be \"nnz\" or \"rows\"",
                o.partition);
fail:
    return st;
}

sps_status sps_csr_read(sps_context *ctx, const char *path,
                        const sps_read_options *ro, sps_read_info *info,
                        sps_csr **A_p)
{
    spsi_share share = { 0, 0, 0, false };
    sps_status st;

    SPS_REQUIRE(ctx, ctx && path && A_p, SPS_EINVAL,
                "sps_csr_read: path and result must not be NULL");
    SPS_TRY(choose_share(ctx, ro, &share));
    st = read_csr(ctx, path, ro, info, &share, A_p);
fail:
    return st;
}

sps_status sps_csr_read_rows(sps_context *ctx, const char *path,
                             const sps_read_options *ro, sps_read_info *info,
                             int64_t first, int64_t rows, int64_t whole,
                             sps_csr **A_p)
{
    sps_status st;

    SPS_REQUIRE(ctx, ctx && path && A_p, SPS_EINVAL,
                "sps_csr_read_rows: path and result must not be NULL");
    SPS_TRY(check_rows(ctx, "sps_csr_read_rows", first, rows, whole));
    SPS_REQUIRE(ctx, spsi_comm_size(ctx) > 1 || rows == whole, SPS_EINVAL,
                "sps_csr_read_rows: one process reads all rows");
    st = read_csr(ctx, path, ro, info,
                  &(spsi_share){ first, rows, whole, false }, A_p);
fail:
    return st;
}

/* ------------------------------------------------------------------ block */

/* Stores the entries of a csr as a dense array by rows. */
static sps_status dense(const spsi_file *f, spsi_content *c)
{
    const sps_csr *A = c->A;
    sps_status st;

    SPS_TRY(SPS_NEW(f->ctx, A->nrow * A->ncol, &c->x));
    c->order = SPS_ROW_MAJOR;
    for (int64_t i = 0; i < A->nrow; i++)
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            c->x[i * A->ncol + A->col[p]] += spsi_csr_value(A, p);
fail:
    return st;
}

/* Makes a real array interleaved: row i becomes row 2 i, its real part, and
 * rows 2 i + 1, the imaginary parts, are zero. */
static sps_status interleave(const spsi_file *f, spsi_content *c)
{
    const bool by_rows = c->order == SPS_ROW_MAJOR;
    const int64_t down = by_rows ? c->ncol : 1, across = by_rows ? 1 : c->nrow;
    double *x = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(f->ctx, 2 * c->nrow * c->ncol, &x));
    for (int64_t i = 0; i < c->nrow; i++)
        for (int64_t j = 0; j < c->ncol; j++)
            x[2 * i * c->ncol + j] = c->x[i * down + j * across];
    spsi_free(f->ctx, c->x);
    c->x = x;
    c->nrow *= 2;
    c->order = SPS_ROW_MAJOR;
fail:
    return st;
}

/* Splits complex values, each of which is two elements of c->x: row i becomes
 * rows 2 i and 2 i + 1.  An array by columns is in that order already. */
static sps_status split(const spsi_file *f, spsi_content *c)
{
    const int64_t k = c->ncol;
    double *x = NULL;
    sps_status st = SPS_OK;

    if (c->order == SPS_ROW_MAJOR) {
        SPS_TRY(SPS_NEW(f->ctx, 2 * c->nrow * k, &x));
        for (int64_t i = 0; i < c->nrow; i++)
            for (int64_t j = 0; j < k; j++)
                for (int part = 0; part < 2; part++)
                    x[(2 * i + part) * k + j] = c->x[2 * (i * k + j) + part];
        spsi_free(f->ctx, c->x);
        c->x = x;
    }
    c->nrow *= 2;
fail:
    return st;
}

static sps_status make_block(const spsi_file *f, bool interleaved,
                             spsi_content *c, sps_block **X_p)
{
    sps_block *X = NULL;
    bool is_complex, by_rows;
    sps_status st = SPS_OK;

    if (c->A) SPS_TRY(finish_csr(f, c));
    if (c->A) SPS_TRY(dense(f, c));
    is_complex = strcmp(c->info.field, "complex") == 0;
    SPS_REQUIRE(f->ctx, interleaved || !is_complex, SPS_EPARSE, "%s: the "
                "block is complex; with a real matrix, or none, it must be "
                "real", f->name);
    if (interleaved) SPS_TRY((is_complex ? split : interleave)(f, c));
    SPS_TRY(spsi_file_rows(f, c->nrow));
    SPS_TRY(sps_block_create(f->ctx, f->whole > 0 ? f->rows : c->nrow,
                             (int)c->ncol, &X));
    by_rows = c->order == SPS_ROW_MAJOR;
    if (c->nrow > 0)
        SPS_TRY(sps_block_set(X, 0, (int)c->ncol,
                              c->x + f->first * (by_rows ? c->ncol : 1),
                              by_rows ? c->ncol : c->nrow, c->order,
                              SPS_HOST));
    *X_p = X;
    return SPS_OK;

fail:
    sps_block_destroy(&X);
    return st;
}

static sps_status read_block(spsi_file *f, const char *path,
                             const sps_read_options *ro, bool interleaved,
                             sps_block **X_p)
{
    spsi_content c = {0};
    const spsi_format *format;
    sps_status st;

    SPS_TRY(spsi_file_open(f, path, ro, &format));
    if (!format) {
        SPS_TRY(spsi_mtx_read_block(f, interleaved, X_p));
    } else {
        SPS_TRY(load(f, format, &c));
        SPS_TRY(make_block(f, interleaved, &c, X_p));
    }
fail:
    drop(f, &c);
    spsi_file_close(f);
    return st;
}

sps_status sps_block_read(sps_context *ctx, const char *path,
                          const sps_read_options *ro, bool interleaved,
                          sps_block **X_p)
{
    spsi_file f = {.ctx = ctx, .block = true};
    sps_status st;

    SPS_REQUIRE(ctx, ctx && path && X_p, SPS_EINVAL,
                "sps_block_read: path and result must not be NULL");
    SPS_TRY(read_block(&f, path, ro, interleaved, X_p));
fail:
    return st;
}

/* For several processes, collective: reads the own rows of a block. */
static sps_status read_own_block(const spsi_file *like, const char *path,
                                 const sps_read_options *ro, sps_block **X_p)
{
    spsi_file f = *like;
    bool done = false;
    sps_comm *all;
    sps_status st;

    SPS_TRY(spsi_mtx_read_block_ranks(&f, path, ro, X_p, &done));
    if (done) return SPS_OK;
    SPS_TRY(go_on(f.ctx, path));
    f = *like;
    all = spsi_comm_apart(f.ctx);
    st = read_block(&f, path, ro, false, X_p);
    spsi_comm_back(f.ctx, all);
fail:
    return st;
}

sps_status sps_block_read_rows(sps_context *ctx, const char *path,
                               const sps_read_options *ro, int64_t first,
                               int64_t rows, int64_t whole, sps_block **X_p)
{
    spsi_file f = {.ctx = ctx, .block = true, .first = first, .rows = rows,
                   .whole = whole};
    sps_block *X = NULL;
    sps_status st;

    SPS_REQUIRE(ctx, ctx && path && X_p, SPS_EINVAL,
                "sps_block_read_rows: path and result must not be NULL");
    SPS_TRY(check_rows(ctx, "sps_block_read_rows", first, rows, whole));
    if (!spsi_comm_many(ctx)) return read_block(&f, path, ro, false, X_p);
    SPS_TRY(spsi_comm_begin(ctx));
    SPS_TRY(spsi_comm_end(ctx, read_own_block(&f, path, ro, &X)));
    *X_p = X;
    return SPS_OK;

fail:
    sps_block_destroy(&X);
    return st;
}

/* ------------------------------------------------------------------ sizes */

/* Returns the sizes of the matrix in the file, or of the block if it has
 * none. */
static sps_status sizes(spsi_file *f, const char *path, spsi_content *c)
{
    const spsi_format *format;
    sps_status st;

    SPS_TRY(spsi_file_open(f, path, NULL, &format));
    st = format ? load(f, format, c) : spsi_mtx_sizes(f, c);
fail:
    drop(f, c);
    spsi_file_close(f);
    return st;
}

sps_status sps_file_sizes(sps_context *ctx, const char *path, int64_t *nrow,
                          int64_t *ncol, int64_t *entries)
{
    spsi_file f = {.ctx = ctx, .peek = true};
    spsi_content c = {0};
    sps_status st;

    SPS_REQUIRE(ctx, ctx && path, SPS_EINVAL,
                "sps_file_sizes: context and path must not be NULL");
    SPS_TRY(sizes(&f, path, &c));
    if (nrow) *nrow = c.nrow;
    if (ncol) *ncol = c.ncol;
    if (entries) *entries = c.count;
fail:
    return st;
}
