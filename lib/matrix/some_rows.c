/* SPDX-License-Identifier: BSD-3-Clause */
/* some_rows.c - see some_rows.h: in host memory, or by the backend. */
#include "matrix/some_rows.h"

#include <string.h>

#include "core/team.h"
#include "matrix/coarsening.h"

static int64_t length(const sps_csr *A, int64_t i)
{
    return A->rowptr[i + 1] - A->rowptr[i];
}

static bool reaches(const sps_csr *A, int64_t i, int64_t first, int64_t last)
{
    return length(A, i) > 0 && (A->col[A->rowptr[i]] < first ||
                                A->col[A->rowptr[i + 1] - 1] >= last);
}

sps_status spsi_rows_outside(sps_context *ctx, const sps_csr *A, int64_t first,
                             int64_t last, int32_t **row_p, int64_t *rows)
{
    int64_t count = 0;
    sps_status st;

    if (A->place != SPS_HOST)
        return spsi_coarsening(ctx)->outside(ctx, A, first, last, row_p, rows);
    for (int64_t i = 0; i < A->nrow; i++) count += reaches(A, i, first, last);
    SPS_TRY(SPS_NEW(ctx, count + 1, row_p));
    *rows = 0;
    for (int64_t i = 0; i < A->nrow; i++)
        if (reaches(A, i, first, last)) (*row_p)[(*rows)++] = (int32_t)i;
fail:
    return st;
}

/* Copies row i of A to C from entry `to` on, with `shift` added to columns. */
static void copy_row(const sps_csr *A, int64_t i, int64_t shift, sps_csr *C,
                     int64_t to)
{
    const size_t each = A->dtype == SPS_F64 ? sizeof(double) : sizeof(float);
    const int64_t from = A->rowptr[i], count = length(A, i);

    for (int64_t p = 0; p < count; p++)
        C->col[to + p] = (int32_t)(A->col[from + p] + shift);
    if (count > 0)
        memcpy((char *)C->val + (size_t)to * each,
               (const char *)A->val + (size_t)from * each,
               (size_t)count * each);
}

static sps_status pick_there(sps_context *ctx, const sps_csr *A,
                             const int32_t *row, int64_t rows, sps_csr **B_p)
{
    sps_csr *C = NULL;
    sps_status st;

    SPS_TRY(spsi_coarsening(ctx)->pick(ctx, A, row, rows, &C));
    SPS_TRY(spsi_csr_download(ctx, C, B_p));
fail:
    sps_csr_destroy(ctx, &C);
    return st;
}

sps_status spsi_rows_pick(sps_context *ctx, const sps_csr *A,
                          const int32_t *row, int64_t rows, sps_csr **B_p)
{
    int64_t nnz = 0;
    sps_status st;

    if (A->place != SPS_HOST) return pick_there(ctx, A, row, rows, B_p);
    for (int64_t t = 0; t < rows; t++) nnz += length(A, row[t]);
    SPS_TRY(sps_csr_create(ctx, rows, A->ncol, nnz, A->dtype, B_p));
    for (int64_t t = 0; t < rows; t++) {
        copy_row(A, row[t], 0, *B_p, (*B_p)->rowptr[t]);
        (*B_p)->rowptr[t + 1] = (*B_p)->rowptr[t] + length(A, row[t]);
    }
fail:
    return st;
}

typedef struct replacing {
    const sps_csr *A, *B;
    const spsi_placing *p;
    const int32_t *where;     /* the row of B of each row of C, or -1 */
    sps_csr *C;
} replacing;

/* Returns the matrix that has row i of C, as its row *at, or NULL. */
static const sps_csr *source(const replacing *j, int64_t i, int64_t *at)
{
    const bool other = j->where[i] >= 0;

    *at = other ? j->where[i] : i - j->p->before;
    if (other) return j->B;
    return *at >= 0 && *at < j->A->nrow ? j->A : NULL;
}

static void copy_rows(void *data, int64_t first, int64_t last)
{
    const replacing *j = data;

    for (int64_t i = first; i < last; i++) {
        int64_t at;
        const sps_csr *from = source(j, i, &at);

        if (from)
            copy_row(from, at, from == j->A ? j->p->shift : 0, j->C,
                     j->C->rowptr[i]);
    }
}

static void count_rows(const replacing *j, int64_t *rowptr)
{
    rowptr[0] = 0;
    for (int64_t i = 0; i < j->p->nrow; i++) {
        int64_t at;
        const sps_csr *from = source(j, i, &at);

        rowptr[i + 1] = rowptr[i] + (from ? length(from, at) : 0);
    }
}

static sps_status replace_here(sps_context *ctx, replacing *j, int32_t *where)
{
    const spsi_placing *p = j->p;
    int64_t *rowptr = NULL;
    const int64_t rows = j->B ? j->B->nrow : 0;
    sps_status st;

    memset(where, 0xff, (size_t)p->nrow * sizeof *where);
    for (int64_t t = 0; t < rows; t++) where[p->row[t]] = (int32_t)t;
    j->where = where;
    SPS_TRY(SPS_NEW(ctx, p->nrow + 1, &rowptr));
    count_rows(j, rowptr);
    SPS_TRY(sps_csr_create(ctx, p->nrow, p->ncol, rowptr[p->nrow],
                           j->A->dtype, &j->C));
    memcpy(j->C->rowptr, rowptr, (size_t)(p->nrow + 1) * sizeof *rowptr);
    spsi_team_run(ctx, p->nrow, 2 * j->C->nnz, copy_rows, j);
fail:
    spsi_free(ctx, rowptr);
    return st;
}

sps_status spsi_rows_replace(sps_context *ctx, const sps_csr *A,
                             const spsi_placing *p, const sps_csr *B,
                             sps_csr **C_p)
{
    replacing j = { .A = A, .B = B, .p = p };
    int32_t *where = NULL;
    sps_status st;

    if (A->place != SPS_HOST)
        return spsi_coarsening(ctx)->replace(ctx, A, p, B, C_p);
    SPS_TRY(SPS_NEW(ctx, p->nrow + 1, &where));
    SPS_TRY(replace_here(ctx, &j, where));
    *C_p = j.C;
fail:
    spsi_free(ctx, where);
    return st;
}
