/* SPDX-License-Identifier: BSD-3-Clause */
/* csr.c - sparse matrices by rows: creation, symmetry test, transpose.
 *
 * The struct is plain data; its member `own` states who frees the arrays: the
 * library (COPY; on the host by spsi_free, on a GPU by the backend), the caller
 * (BORROW), or the library by free() (ADOPT).  csr_sort.c checks and sorts
 * rows. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/abi.h"
#include "core/backend.h"
#include "matrix/csr.h"
#include "core/team.h"

static size_t value_size(sps_dtype dtype)
{
    return dtype == SPS_F64 ? sizeof(double) : sizeof(float);
}

static sps_status check_shape(sps_context *ctx, int64_t nrow, int64_t ncol,
                              int64_t nnz, sps_dtype dtype)
{
    sps_status st = SPS_OK;

    SPS_REQUIRE(ctx, nrow >= 0 && ncol >= 0 && nnz >= 0, SPS_EINVAL,
                "a matrix of %lld rows, %lld columns, %lld entries: sizes "
                "must not be negative",
                (long long)nrow, (long long)ncol, (long long)nnz);
    SPS_REQUIRE(ctx, ncol <= INT32_MAX, SPS_EMATRIX,
                "%lld columns: column indices have 32 bits, so there can be "
                "at most %d",
                (long long)ncol, INT32_MAX);
    SPS_REQUIRE(ctx, nrow < INT64_MAX / 16, SPS_ENOMEM,
                "%lld rows do not fit into memory", (long long)nrow);
    SPS_REQUIRE(ctx, dtype == SPS_F64 || dtype == SPS_F32, SPS_EINVAL,
                "unknown dtype %d: use SPS_F64 or SPS_F32", (int)dtype);
fail:
    return st;
}

sps_status sps_csr_create(sps_context *ctx, int64_t nrow, int64_t ncol,
                          int64_t nnz, sps_dtype dtype, sps_csr **A_p)
{
    sps_status st;
    sps_csr *A = NULL;

    SPS_REQUIRE(ctx, ctx && A_p, SPS_EINVAL, "sps_csr_create: NULL argument");
    SPS_TRY(check_shape(ctx, nrow, ncol, nnz, dtype));
    SPS_TRY(SPS_NEW(ctx, 1, &A));
    ctx->live++;
    A->nrow = nrow;
    A->ncol = ncol;
    A->nnz = nnz;
    A->dtype = dtype;
    A->place = SPS_HOST;
    A->own = SPS_COPY;
    A->struct_size = sizeof *A;
    SPS_TRY(SPS_NEW(ctx, nrow + 1, &A->rowptr));
    SPS_TRY(SPS_NEW(ctx, nnz, &A->col));
    SPS_TRY(spsi_new_array(ctx, nnz, value_size(dtype), &A->val));
    *A_p = A;
    return SPS_OK;

fail:
    sps_csr_destroy(ctx, &A);
    return st;
}

static void drop_arrays(sps_csr *A)
{
    A->rowptr = A->global = NULL;
    A->col = NULL;
    A->val = NULL;
}

/* The columns are in col, or in global (sps_csr_wrap_rows). */
static sps_status copy_host(sps_context *ctx, const sps_csr *from, sps_csr *A)
{
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, A->nrow + 1, &A->rowptr));
    SPS_TRY(from->global ? SPS_NEW(ctx, A->nnz, &A->global)
                         : SPS_NEW(ctx, A->nnz, &A->col));
    SPS_TRY(spsi_new_array(ctx, A->nnz, value_size(A->dtype), &A->val));
    memcpy(A->rowptr, from->rowptr, (size_t)(A->nrow + 1) * sizeof *A->rowptr);
    if (A->nnz == 0) return st;
    if (from->global)
        memcpy(A->global, from->global, (size_t)A->nnz * sizeof *A->global);
    else
        memcpy(A->col, from->col, (size_t)A->nnz * sizeof *A->col);
    memcpy(A->val, from->val, (size_t)A->nnz * value_size(A->dtype));
fail:
    return st;
}

static sps_status copy_array(sps_context *ctx, size_t bytes, const void *from,
                             void **to_p)
{
    sps_status st = SPS_OK;

    if (bytes == 0) return SPS_OK;
    SPS_TRY(ctx->backend->alloc(ctx, bytes, to_p));
    SPS_TRY(ctx->backend->copy(ctx, *to_p, from, bytes));
fail:
    return st;
}

static sps_status copy_device(sps_context *ctx, const sps_csr *from,
                              sps_csr *A)
{
    sps_status st;

    SPS_TRY(copy_array(ctx, (size_t)(A->nrow + 1) * sizeof *A->rowptr,
                       from->rowptr, (void **)&A->rowptr));
    SPS_TRY(copy_array(ctx, (size_t)A->nnz * sizeof *A->col, from->col,
                       (void **)&A->col));
    SPS_TRY(copy_array(ctx, (size_t)A->nnz * value_size(A->dtype), from->val,
                       &A->val));
fail:
    return st;
}

static sps_status check_wrap(sps_context *ctx, const sps_csr *A)
{
    sps_status st;

    SPS_TRY(check_shape(ctx, A->nrow, A->ncol, A->nnz, A->dtype));
    SPS_REQUIRE(ctx, A->rowptr && (A->nnz == 0 || (A->col && A->val)),
                SPS_EINVAL, "sps_csr_wrap: an array is NULL");
    SPS_REQUIRE(ctx, A->place == SPS_HOST || A->place == SPS_CUDA, SPS_EINVAL,
                "sps_csr_wrap: place must be SPS_HOST or SPS_CUDA");
    SPS_REQUIRE(ctx, A->place == SPS_HOST || ctx->backend->place == SPS_CUDA,
                SPS_EINVAL, "sps_csr_wrap: arrays on the GPU need a context "
                "on the GPU");
    SPS_REQUIRE(ctx, A->own == SPS_COPY || A->own == SPS_BORROW ||
                (A->own == SPS_ADOPT && A->place == SPS_HOST), SPS_EINVAL,
                A->own == SPS_ADOPT
                    ? "sps_csr_wrap: arrays on the GPU can be copied or "
                      "borrowed, not adopted"
                    : "sps_csr_wrap: own must be SPS_COPY, SPS_BORROW or "
                      "SPS_ADOPT");
fail:
    return st;
}

sps_status sps_csr_wrap(sps_context *ctx, int64_t nrow, int64_t ncol,
                        int64_t nnz, int64_t *rowptr, int32_t *col, void *val,
                        sps_dtype dtype, sps_place place, sps_own own,
                        sps_csr **A_p)
{
    sps_status st;
    sps_csr *A = NULL;
    const sps_csr from = { .nrow = nrow, .ncol = ncol, .nnz = nnz,
                           .rowptr = rowptr, .col = col, .val = val,
                           .dtype = dtype, .place = place, .own = own,
                           .struct_size = sizeof from };

    SPS_REQUIRE(ctx, ctx && A_p, SPS_EINVAL, "sps_csr_wrap: NULL argument");
    SPS_TRY(check_wrap(ctx, &from));
    SPS_TRY(SPS_NEW(ctx, 1, &A));
    ctx->live++;
    *A = from;
    if (own == SPS_COPY) {
        drop_arrays(A);
        SPS_TRY(place == SPS_HOST ? copy_host(ctx, &from, A)
                                  : copy_device(ctx, &from, A));
    }
    *A_p = A;
    return SPS_OK;

fail:
    sps_csr_destroy(ctx, &A);
    return st;
}

sps_status sps_csr_wrap_rows(sps_context *ctx, int64_t first, int64_t nrow,
                             int64_t whole, int64_t nnz, int64_t *rowptr,
                             int64_t *global, void *val, sps_dtype dtype,
                             sps_own own, sps_csr **A_p)
{
    sps_status st;
    sps_csr *A = NULL;
    const sps_csr from = { .nrow = nrow, .ncol = whole, .nnz = nnz,
                           .rowptr = rowptr, .val = val, .dtype = dtype,
                           .place = SPS_HOST, .own = own,
                           .struct_size = sizeof from, .first = first,
                           .whole = whole, .global = global };

    SPS_REQUIRE(ctx, ctx && A_p, SPS_EINVAL, "sps_csr_wrap_rows: NULL "
                "argument");
    SPS_TRY(check_shape(ctx, nrow, 0, nnz, dtype));
    SPS_REQUIRE(ctx, whole >= 1 && first >= 0 && first <= whole &&
                nrow <= whole - first, SPS_EINVAL, "sps_csr_wrap_rows: %lld "
                "rows from %lld on are not among %lld rows of the whole",
                (long long)nrow, (long long)first, (long long)whole);
    SPS_REQUIRE(ctx, rowptr && (nnz == 0 || (global && val)), SPS_EINVAL,
                "sps_csr_wrap_rows: an array is NULL");
    SPS_REQUIRE(ctx, own == SPS_COPY || own == SPS_BORROW || own == SPS_ADOPT,
                SPS_EINVAL, "sps_csr_wrap_rows: own must be SPS_COPY, "
                "SPS_BORROW or SPS_ADOPT");
    SPS_TRY(SPS_NEW(ctx, 1, &A));
    ctx->live++;
    *A = from;
    if (own == SPS_COPY) {
        drop_arrays(A);
        SPS_TRY(copy_host(ctx, &from, A));
    }
    *A_p = A;
    return SPS_OK;

fail:
    sps_csr_destroy(ctx, &A);
    return st;
}

static void release_device(sps_context *ctx, sps_csr *A)
{
    const sps_backend *b = ctx->backend;

    if (A->rowptr)
        b->release(ctx, A->rowptr, (size_t)(A->nrow + 1) * sizeof *A->rowptr);
    if (A->col)
        b->release(ctx, A->col, (size_t)A->nnz * sizeof *A->col);
    if (A->val)
        b->release(ctx, A->val, (size_t)A->nnz * value_size(A->dtype));
}

void sps_csr_destroy(sps_context *ctx, sps_csr **A_p)
{
    sps_csr *A = A_p ? *A_p : NULL;

    if (!ctx || !A) return;
    if (A->own == SPS_ADOPT) {
        free(A->rowptr);
        free(A->col);
        if (spsi_abi_csr_rows(A)) free(A->global);
        free(A->val);
    } else if (A->own == SPS_COPY && A->place == SPS_CUDA) {
        release_device(ctx, A);
    } else if (A->own == SPS_COPY) {
        spsi_free(ctx, A->rowptr);
        spsi_free(ctx, A->col);
        if (spsi_abi_csr_rows(A)) spsi_free(ctx, A->global);
        spsi_free(ctx, A->val);
    }
    spsi_free(ctx, A);
    ctx->live--;
    *A_p = NULL;
}

int64_t spsi_csr_find(const sps_csr *A, int64_t i, int32_t j)
{
    int64_t lo = A->rowptr[i], hi = A->rowptr[i + 1];

    if (hi - lo == A->ncol) return lo + j;       /* the row is full */
    while (lo < hi) {
        const int64_t mid = lo + (hi - lo) / 2;

        if (A->col[mid] < j)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < A->rowptr[i + 1] && A->col[lo] == j ? lo : -1;
}

/* Returns sqrt(|a_ii a_jj|), the scale of entry (i, j) of a definite matrix: an
 * assembled matrix may deviate from its transpose by rounding errors of that
 * size where the entry itself has cancelled. */
static double diagonal_scale(const sps_csr *A, int64_t i, int64_t j)
{
    const int64_t p = spsi_csr_find(A, i, (int32_t)i);
    const int64_t q = spsi_csr_find(A, j, (int32_t)j);

    if (p < 0 || q < 0) return 0.0;
    return sqrt(fabs(spsi_csr_value(A, p))) * sqrt(fabs(spsi_csr_value(A, q)));
}

bool spsi_csr_alike(double a, double b, double scale, double tol,
                    double *worst)
{
    const double gap = a == b ? 0.0
                     : isnan(a - b) ? INFINITY : fabs(a - b);

    *worst = fmax(*worst, gap);
    return gap == 0 || (gap < INFINITY &&
                        (gap <= tol * fmax(fabs(a), fabs(b)) ||
                         gap <= tol * scale));
}

enum { MIRROR_ROWS = 1024 };

typedef struct mirror_job {
    const sps_csr *A;
    double tol;
    bool whole;              /* compare entries below the diagonal, too */
    bool first;              /* a chunk ends at its first row that is not
                                symmetric */
    int64_t broken;          /* rows that are not symmetric */
    int64_t unmatched;       /* entries below the diagonal without a mirror
                                image */
    double *worst;           /* one for each chunk */
} mirror_job;

/* Returns whether each entry of row i, unless it is below the diagonal and not
 * to be compared, equals its mirror image within tol.  *worst becomes the
 * maximum of itself and the differences: a mirror image that is not stored
 * counts as 0, and the difference from a NaN is infinite. */
static bool row_mirrored(const mirror_job *j, int64_t i, double *worst,
                         int64_t *unmatched)
{
    const sps_csr *A = j->A;
    bool same = true;

    for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
        const int32_t at = A->col[p];
        const bool below = at < i;
        int64_t q;
        double a, b;

        *unmatched += below;
        if (below && !j->whole) continue;
        q = at == i ? p : spsi_csr_find(A, at, (int32_t)i);
        *unmatched -= at > i && q >= 0;
        a = spsi_csr_value(A, p);
        b = q >= 0 ? spsi_csr_value(A, q) : 0.0;
        same = (spsi_csr_alike(a, b, 0, j->tol, worst) ||
                spsi_csr_alike(a, b, diagonal_scale(A, i, at), j->tol,
                               worst)) && same;
    }
    return same;
}

static void compare_chunks(void *data, int64_t first, int64_t last)
{
    mirror_job *j = data;
    int64_t broken = 0, unmatched = 0;

    for (int64_t c = first; c < last; c++) {
        const int64_t next = (c + 1) * MIRROR_ROWS, nrow = j->A->nrow;

        for (int64_t i = c * MIRROR_ROWS; i < nrow && i < next; i++) {
            broken += !row_mirrored(j, i, &j->worst[c], &unmatched);
            if (broken && j->first) break;
        }
    }
    spsi_team_add(&j->broken, broken);
    spsi_team_add(&j->unmatched, unmatched);
}

/* The entries above the diagonal have different mirror images, so if these are
 * as many as the entries below it, all of these have been compared. */
static void compare(sps_context *ctx, mirror_job *j, int64_t chunks)
{
    const int64_t work = 10 * j->A->nnz;

    spsi_team_run(ctx, chunks, work, compare_chunks, j);
    if (j->unmatched == 0 || (j->broken && j->first)) return;
    j->whole = true;
    j->broken = 0;
    spsi_team_run(ctx, chunks, work, compare_chunks, j);
}

sps_status sps_csr_symmetric(sps_context *ctx, const sps_csr *A, double tol,
                             bool *symmetric, double *difference)
{
    mirror_job j = { .A = A, .tol = tol, .first = !difference };
    sps_status st = SPS_OK;
    double worst = 0.0;

    SPS_REQUIRE(ctx, ctx && A && symmetric, SPS_EINVAL,
                "sps_csr_symmetric: NULL argument");
    SPS_TRY(spsi_abi_csr(ctx, "sps_csr_symmetric", A));
    SPS_REQUIRE(ctx, A->place == SPS_HOST && (A->props & SPS_SORTED),
                SPS_EINVAL, "sps_csr_symmetric: needs a matrix in host memory "
                "that sps_csr_check has checked");
    if (A->nrow == A->ncol) {
        const int64_t chunks = (A->nrow + MIRROR_ROWS - 1) / MIRROR_ROWS;

        SPS_TRY(SPS_NEW(ctx, chunks, &j.worst));
        compare(ctx, &j, chunks);
        for (int64_t c = 0; c < chunks; c++) worst = fmax(worst, j.worst[c]);
    }
    *symmetric = A->nrow == A->ncol && j.broken == 0;
    if (difference) *difference = worst;
fail:
    spsi_free(ctx, j.worst);
    return st;
}

/* ---------------------------------------------------------------- transpose */

enum { TURNED = 1 << 16, MOST_PARTS = 16 };    /* entries of a part at least */

/* The rows of A are divided into parts.  at[] has, for each part and each
 * column of A, the position in T where the part writes its next entry of that
 * column.  In each row of T the entries of a part lie behind those of the parts
 * before it, so that the row is sorted. */
typedef struct turning {
    const sps_csr *A;
    sps_csr *T;
    int parts;
    int64_t *at;              /* parts x A->ncol */
} turning;

static int64_t first_row(const turning *t, int64_t part)
{
    return t->A->nrow * part / t->parts;
}

static void count_parts(void *data, int64_t first, int64_t last)
{
    const turning *t = data;
    const int64_t *rowptr = t->A->rowptr;

    for (int64_t i = first; i < last; i++) {
        int64_t *count = t->at + i * t->A->ncol;

        for (int64_t p = rowptr[first_row(t, i)];
             p < rowptr[first_row(t, i + 1)]; p++)
            count[t->A->col[p]]++;
    }
}

/* Replaces counts by positions; T->rowptr has the begins of the rows. */
static void place_parts(void *data, int64_t first, int64_t last)
{
    const turning *t = data;

    for (int64_t j = first; j < last; j++) {
        int64_t at = t->T->rowptr[j];

        for (int i = 0; i < t->parts; i++) {
            int64_t *own = t->at + i * t->A->ncol + j;
            const int64_t count = *own;

            *own = at;
            at += count;
        }
    }
}

static void fill_row(const turning *t, int64_t i, int64_t *next)
{
    const sps_csr *A = t->A;

    for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
        const int64_t q = next[A->col[p]]++;

        t->T->col[q] = (int32_t)i;
        if (A->dtype == SPS_F64)
            ((double *)t->T->val)[q] = ((const double *)A->val)[p];
        else
            ((float *)t->T->val)[q] = ((const float *)A->val)[p];
    }
}

static void fill_parts(void *data, int64_t first, int64_t last)
{
    const turning *t = data;

    for (int64_t k = first; k < last; k++)
        for (int64_t i = first_row(t, k); i < first_row(t, k + 1); i++)
            fill_row(t, i, t->at + k * t->A->ncol);
}

static void turn(sps_context *ctx, turning *t)
{
    const int64_t n = t->A->ncol, nnz = t->A->nnz;
    int64_t *rowptr = t->T->rowptr;

    spsi_team_run(ctx, t->parts, nnz, count_parts, t);
    for (int64_t j = 0; j < n; j++) {
        rowptr[j + 1] = rowptr[j];
        for (int i = 0; i < t->parts; i++) rowptr[j + 1] += t->at[i * n + j];
    }
    spsi_team_run(ctx, n, n * t->parts, place_parts, t);
    spsi_team_run(ctx, t->parts, 4 * nnz, fill_parts, t);
}

sps_status spsi_csr_transpose(sps_context *ctx, const sps_csr *A,
                              sps_csr **T_p)
{
    const int64_t parts = A->nnz / TURNED;
    turning t = { .A = A };
    sps_status st;

    if (A->place != SPS_HOST) return ctx->backend->csr_transpose(ctx, A, T_p);
    SPS_REQUIRE(ctx, A->nrow <= INT32_MAX, SPS_EMATRIX,
                "the transpose of %lld rows would need more than 2^31 - 1 "
                "columns", (long long)A->nrow);
    t.parts = parts > MOST_PARTS ? MOST_PARTS : parts > 1 ? (int)parts : 1;
    if (t.parts > ctx->threads) t.parts = ctx->threads > 1 ? ctx->threads : 1;
    /* No more counters than entries. */
    while (t.parts > 1 && t.parts * A->ncol > A->nnz) t.parts /= 2;
    SPS_TRY(sps_csr_create(ctx, A->ncol, A->nrow, A->nnz, A->dtype, &t.T));
    SPS_TRY(spsi_new_array(ctx, A->ncol + 1, (size_t)t.parts * sizeof *t.at,
                           (void **)&t.at));
    turn(ctx, &t);
    t.T->props = A->props;
    spsi_free(ctx, t.at);
    *T_p = t.T;
    return SPS_OK;

fail:
    spsi_free(ctx, t.at);
    sps_csr_destroy(ctx, &t.T);
    return st;
}
