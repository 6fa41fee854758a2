/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_sort.c - checks the structure of a csr and sorts its rows.
 *
 * Rows are sorted by unique keys (column, offset in the row), so that any
 * sorting algorithm keeps duplicates in order; they are summed in that order.
 * There are two passes: each row is sorted by itself (parallel), then the rows
 * are moved to close the gaps between them (serial, a copy). */
#include <string.h>

#include "core/abi.h"
#include "matrix/csr.h"
#include "core/team.h"

typedef struct inspect_job {
    const sps_csr *A;
    int64_t bad, unordered;  /* first invalid row, or nrow if there is none;
                                number of ranges with an unsorted row */
} inspect_job;

static void compare_offsets(void *data, int64_t first, int64_t last)
{
    inspect_job *j = data;
    const int64_t *rowptr = j->A->rowptr;

    for (int64_t i = first; i < last; i++) {
        if (rowptr[i + 1] >= rowptr[i]) continue;
        spsi_team_least(&j->bad, i);
        return;
    }
}

static sps_status check_offsets(sps_context *ctx, const sps_csr *A)
{
    inspect_job j = { A, A->nrow, 0 };
    sps_status st = SPS_OK;

    SPS_REQUIRE(ctx, A->rowptr[0] == 0, SPS_EMATRIX,
                "rowptr[0] is %lld, not 0: offsets count from 0, so subtract "
                "the base", (long long)A->rowptr[0]);
    spsi_team_run(ctx, A->nrow, A->nrow, compare_offsets, &j);
    SPS_REQUIRE(ctx, j.bad == A->nrow, SPS_EMATRIX,
                "row %lld (counted from 0): its offsets fall from %lld to "
                "%lld", (long long)j.bad, (long long)A->rowptr[j.bad],
                (long long)A->rowptr[j.bad + 1]);
    SPS_REQUIRE(ctx, A->rowptr[A->nrow] == A->nnz, SPS_EMATRIX,
                "the offsets end at %lld, but there are %lld entries",
                (long long)A->rowptr[A->nrow], (long long)A->nnz);
fail:
    return st;
}

/* Returns whether the columns of row i are in range; *ordered becomes false if
 * they do not increase strictly. */
static bool row_valid(const sps_csr *A, int64_t i, bool *ordered)
{
    int64_t last = -1;

    for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
        const int64_t j = A->col[p];

        if (j < 0 || j >= A->ncol) return false;
        if (j <= last) *ordered = false;
        last = j;
    }
    return true;
}

static sps_status fail_column(sps_context *ctx, const sps_csr *A, int64_t i)
{
    int64_t p = A->rowptr[i];

    while (A->col[p] >= 0 && A->col[p] < A->ncol) p++;
    return spsi_fail(ctx, SPS_EMATRIX, "row %lld (counted from 0): column "
                     "%d is outside 0 .. %lld", (long long)i, A->col[p],
                     (long long)A->ncol - 1);
}

static void inspect_rows(void *data, int64_t first, int64_t last)
{
    inspect_job *j = data;
    bool ordered = true;

    for (int64_t i = first; i < last; i++)
        if (!row_valid(j->A, i, &ordered)) spsi_team_least(&j->bad, i);
    spsi_team_add(&j->unordered, !ordered);
}

sps_status spsi_csr_inspect(sps_context *ctx, const sps_csr *A, bool *sorted)
{
    inspect_job j = { A, A->nrow, 0 };
    sps_status st;

    SPS_TRY(check_offsets(ctx, A));
    spsi_team_run(ctx, A->nrow, A->nnz + A->nrow, inspect_rows, &j);
    if (j.bad < A->nrow) return fail_column(ctx, A, j.bad);
    *sorted = j.unordered == 0;
fail:
    return st;
}

/* Heap sort: in place, O(n log n) in the worst case; rows are short.  Moves
 * key[root] down in the heap of n keys. */
static void sift(uint64_t *key, int64_t root, int64_t n)
{
    const uint64_t moved = key[root];

    for (int64_t child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n && key[child + 1] > key[child]) child++;
        if (key[child] <= moved) break;
        key[root] = key[child];
        key[child] = moved;
    }
}

static void sort_keys(uint64_t *key, int64_t n)
{
    for (int64_t i = n / 2 - 1; i >= 0; i--) sift(key, i, n);
    for (int64_t i = n - 1; i > 0; i--) {
        const uint64_t top = key[0];

        key[0] = key[i];
        key[i] = top;
        sift(key, 0, i);
    }
}

/* Sorted keys of row i: column in the upper half, offset in the row below. */
static void sort_row(const sps_csr *A, int64_t i, uint64_t *key)
{
    const int64_t first = A->rowptr[i], length = A->rowptr[i + 1] - first;

    for (int64_t p = 0; p < length; p++)
        key[p] = (uint64_t)(uint32_t)A->col[first + p] << 32 | (uint64_t)p;
    sort_keys(key, length);
}

/* Writes row i of A, sorted by key and with duplicates summed, to the front of
 * row i of B; returns its new length.  order[p], unless order is NULL, becomes
 * the offset in B, before `compact`, of entry p of A. */
static int64_t merge_row(const sps_csr *A, int64_t i, const uint64_t *key,
                         sps_csr *B, int64_t *order)
{
    const int64_t first = A->rowptr[i], length = A->rowptr[i + 1] - first;
    int64_t at = first - 1;
    int32_t last = -1;

    for (int64_t s = 0; s < length; s++) {
        const int64_t p = first + (int64_t)(key[s] & UINT32_MAX);
        const int32_t j = (int32_t)(key[s] >> 32);
        const bool fresh = j != last;

        if (fresh) B->col[++at] = j;
        if (A->dtype == SPS_F64) {
            double *v = (double *)B->val + at;
            const double a = ((const double *)A->val)[p];
            *v = fresh ? a : *v + a;
        } else {
            float *v = (float *)B->val + at;
            const float a = ((const float *)A->val)[p];
            *v = fresh ? a : *v + a;
        }
        if (order) order[p] = at;
        last = j;
    }
    return at + 1 - first;
}

static sps_status longest_row(sps_context *ctx, const sps_csr *A,
                              int64_t *longest)
{
    sps_status st = SPS_OK;

    *longest = 0;
    for (int64_t i = 0; i < A->nrow; i++) {
        const int64_t length = A->rowptr[i + 1] - A->rowptr[i];

        if (length > *longest) *longest = length;
    }
    SPS_REQUIRE(ctx, *longest <= UINT32_MAX, SPS_EMATRIX,
                "a row of %lld entries with duplicates is too long to be "
                "sorted: sum them first", (long long)*longest);
fail:
    return st;
}

/* Closes the gaps left by merge_row, where row i has length[i] entries from
 * rowptr[i] on.  Updates order. */
static void compact(sps_csr *B, const int64_t *length, int64_t *order)
{
    const size_t size = B->dtype == SPS_F64 ? sizeof(double) : sizeof(float);
    int64_t at = 0;

    for (int64_t i = 0; i < B->nrow; i++) {
        const int64_t first = B->rowptr[i], last = B->rowptr[i + 1];
        const size_t count = (size_t)length[i];

        if (at != first && count > 0) {
            memmove(B->col + at, B->col + first, count * sizeof *B->col);
            memmove((char *)B->val + (size_t)at * size,
                    (char *)B->val + (size_t)first * size, count * size);
        }
        for (int64_t p = first; order && p < last; p++) order[p] -= first - at;
        B->rowptr[i] = at;
        at += length[i];
    }
    B->rowptr[B->nrow] = at;
    B->nnz = at;
}

typedef struct sort_job {
    const sps_csr *A;
    sps_csr *B;
    uint64_t *keys;          /* of each thread: the keys of its longest row */
    int64_t longest, *length, *order;
} sort_job;

static void sort_rows(void *data, int64_t first, int64_t last)
{
    const sort_job *j = data;
    uint64_t *key = j->keys + spsi_team_self() * j->longest;

    for (int64_t i = first; i < last; i++) {
        sort_row(j->A, i, key);
        j->length[i] = merge_row(j->A, i, key, j->B, j->order);
    }
}

/* Sorts A into B, whose arrays have the length of A's; takes about 30 ns per
 * entry. */
static sps_status sort_into(sps_context *ctx, const sps_csr *A, sps_csr *B,
                            int64_t *order)
{
    sps_status st;
    uint64_t *keys = NULL;
    int64_t *length = NULL;
    int64_t longest;

    SPS_TRY(longest_row(ctx, A, &longest));
    SPS_TRY(SPS_NEW(ctx, longest * ctx->threads, &keys));
    SPS_TRY(SPS_NEW(ctx, A->nrow, &length));
    memcpy(B->rowptr, A->rowptr, (size_t)(A->nrow + 1) * sizeof *B->rowptr);
    spsi_team_run(ctx, A->nrow, 30 * A->nnz, sort_rows,
                  &(sort_job){ A, B, keys, longest, length, order });
    compact(B, length, order);
    B->props = A->props | SPS_SORTED;
fail:
    spsi_free(ctx, keys);
    spsi_free(ctx, length);
    return st;
}

void spsi_csr_order_note(sps_context *ctx, int64_t summed)
{
    if (summed > 0)
        spsi_note(ctx, "sorted the rows of a matrix, summed %lld duplicate %s",
                  (long long)summed, summed == 1 ? "entry" : "entries");
    else
        spsi_note(ctx, "sorted the rows of a matrix");
}

static sps_status sort_copy(sps_context *ctx, const sps_csr *A, sps_csr **B_p,
                            int64_t **order_p)
{
    sps_status st;
    sps_csr *B = NULL;
    int64_t *order = NULL;

    SPS_TRY(sps_csr_create(ctx, A->nrow, A->ncol, A->nnz, A->dtype, &B));
    if (order_p) SPS_TRY(SPS_NEW(ctx, A->nnz, &order));
    SPS_TRY(sort_into(ctx, A, B, order));
    *B_p = B;
    if (order_p) *order_p = order;
    return SPS_OK;

fail:
    spsi_free(ctx, order);
    sps_csr_destroy(ctx, &B);
    return st;
}

sps_status spsi_csr_sorted(sps_context *ctx, const sps_csr *A, sps_csr **B_p,
                           int64_t **order_p)
{
    const sps_status st = sort_copy(ctx, A, B_p, order_p);

    if (st == SPS_OK) spsi_csr_order_note(ctx, A->nnz - (*B_p)->nnz);
    return st;
}

sps_status spsi_csr_complete(sps_context *ctx, const char *call,
                             const sps_csr *A)
{
    sps_status st = SPS_OK;

    SPS_REQUIRE(ctx, A->nrow >= 0 && A->ncol >= 0 && A->ncol <= INT32_MAX &&
                A->nnz >= 0, SPS_EINVAL,
                "%s: a matrix of %lld x %lld with %lld entries is out of range",
                call, (long long)A->nrow, (long long)A->ncol,
                (long long)A->nnz);
    SPS_REQUIRE(ctx, A->rowptr && (A->nnz == 0 || (A->col && A->val)),
                SPS_EINVAL, "%s: an array of the matrix is NULL", call);
    SPS_REQUIRE(ctx, A->dtype == SPS_F64 || A->dtype == SPS_F32, SPS_EINVAL,
                "%s: unknown dtype %d: use SPS_F64 or SPS_F32", call,
                (int)A->dtype);
fail:
    return st;
}

sps_status spsi_csr_order(sps_context *ctx, sps_csr *A, bool *sorted)
{
    const size_t size = A->dtype == SPS_F32 ? sizeof(float) : sizeof(double);
    sps_csr *B = NULL;
    sps_status st;

    SPS_TRY(spsi_csr_inspect(ctx, A, sorted));
    if (!*sorted) {
        SPS_TRY(sort_copy(ctx, A, &B, NULL));
        memcpy(A->rowptr, B->rowptr, (size_t)(A->nrow + 1) * sizeof *A->rowptr);
        memcpy(A->col, B->col, (size_t)B->nnz * sizeof *A->col);
        memcpy(A->val, B->val, (size_t)B->nnz * size);
        A->nnz = B->nnz;
    }
    A->props |= SPS_SORTED;
fail:
    sps_csr_destroy(ctx, &B);
    return st;
}

sps_status sps_csr_check(sps_context *ctx, sps_csr *A)
{
    sps_status st;
    int64_t before;
    bool sorted;

    SPS_REQUIRE(ctx, ctx, SPS_EINVAL, "sps_csr_check: the context is NULL");
    SPS_TRY(spsi_abi_csr(ctx, "sps_csr_check", A));
    SPS_REQUIRE(ctx, A->place == SPS_HOST, SPS_EINVAL,
                "sps_csr_check: the matrix must be on the host");
    SPS_TRY(spsi_csr_complete(ctx, "sps_csr_check", A));
    before = A->nnz;
    SPS_TRY(spsi_csr_order(ctx, A, &sorted));
    if (!sorted) spsi_csr_order_note(ctx, before - A->nnz);
fail:
    return st;
}
