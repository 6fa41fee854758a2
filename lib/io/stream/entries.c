/* SPDX-License-Identifier: BSD-3-Clause */
/* entries.c - converts entries by coordinates or by columns to a csr: a
 * counting sort by rows.  Bytes for an entry: 4 read by counting, 16 by
 * placing, 12 written (24 with its mirror image). */
#include <string.h>

#include "io/stream/format.h"
#include "io/stream/size.h"

static void count_rows(int64_t *at, int64_t count, const int32_t *row,
                       const int32_t *col, bool mirror)
{
    for (int64_t p = 0; p < count; p++) {
        at[row[p] + 1]++;
        if (mirror && row[p] != col[p]) at[col[p] + 1]++;
    }
}

static inline void put(const sps_csr *A, int32_t i, int32_t j, double value)
{
    const int64_t q = A->rowptr[i]++;

    A->col[q] = j;
    ((double *)A->val)[q] = value;
}

sps_status spsi_entries_csr(const spsi_file *f, const spsi_content *c,
                            int64_t count, const int32_t *row,
                            const int32_t *col, const double *val, double sign,
                            sps_csr **A_p)
{
    int64_t off = 0, *at;
    sps_csr *A = NULL;
    sps_status st;

    for (int64_t p = 0; p < count && sign != 0; p++) off += row[p] != col[p];
    SPS_TRY(sps_csr_create(f->ctx, c->nrow, c->ncol, count + off, SPS_F64, &A));
    at = A->rowptr;
    count_rows(at, count, row, col, sign != 0);
    for (int64_t i = 0; i < c->nrow; i++) at[i + 1] += at[i];
    for (int64_t p = 0; p < count; p++) {
        const double value = val ? val[p] : 1;

        put(A, row[p], col[p], value);
        if (sign != 0 && row[p] != col[p]) put(A, col[p], row[p], sign * value);
    }
    /* Each offset has been advanced to the beginning of the next row. */
    memmove(at + 1, at, (size_t)c->nrow * sizeof *at);
    at[0] = 0;
    if (sign > 0) A->props |= SPS_SYMMETRIC;
    *A_p = A;
fail:
    return st;
}

sps_status spsi_entries_csc(const spsi_file *f, const spsi_content *c,
                            const int64_t *start, const int32_t *row,
                            const double *val, double sign, sps_csr **A_p)
{
    int32_t *col = NULL;
    sps_status st;

    SPS_TRY(spsi_new_array(f->ctx, start[c->ncol], sizeof *col,
                           (void **)&col));
    for (int64_t j = 0; j < c->ncol; j++)
        for (int64_t p = start[j]; p < start[j + 1]; p++) col[p] = (int32_t)j;
    SPS_TRY(spsi_entries_csr(f, c, start[c->ncol], row, col, val, sign, A_p));
fail:
    spsi_free(f->ctx, col);
    return st;
}

sps_status spsi_entries_check(const spsi_file *f, const char *what,
                              const int64_t *start, int64_t n, int64_t count,
                              int base)
{
    sps_status st = SPS_OK;

    SPS_REQUIRE(f->ctx, start[0] == 0, SPS_EPARSE, "%s: %s begins with %lld "
                "instead of %d", f->name, what, (long long)start[0] + base,
                base);
    for (int64_t i = 0; i < n; i++)
        SPS_REQUIRE(f->ctx, start[i + 1] >= start[i], SPS_EPARSE, "%s: %s "
                    "falls from %lld to %lld at its number %lld (offsets of "
                    "entries never fall)", f->name, what,
                    (long long)start[i] + base, (long long)start[i + 1] + base,
                    (long long)i + 2);
    SPS_REQUIRE(f->ctx, start[n] == count, SPS_EPARSE, "%s: %s ends with "
                "%lld, but there are %lld entries", f->name, what,
                (long long)start[n] + base, (long long)count);
fail:
    return st;
}

sps_status spsi_format_check(const spsi_file *f, const spsi_content *c,
                             bool mirrors, uint64_t bytes)
{
    const long long nrow = c->nrow, ncol = c->ncol, count = c->count;
    sps_status st;

    SPS_REQUIRE(f->ctx, nrow >= 0 && ncol >= 0 && count >= 0 &&
                nrow <= SPSI_SIZE_LARGEST && ncol <= SPSI_SIZE_LARGEST &&
                (count == 0 || (nrow > 0 && ncol > 0)), SPS_EPARSE,
                "%s: %lld rows, %lld columns and %lld entries; none may be "
                "negative, there may be at most %d rows and columns, and "
                "entries need rows and columns", f->name, nrow, ncol, count,
                SPSI_SIZE_LARGEST);
    if (f->peek) return SPS_OK;
    SPS_TRY(spsi_size_check(f->ctx, &f->options,
                            &(spsi_size){f->name, nrow, ncol, count, false,
                                         mirrors, 0}, f->block, bytes));
fail:
    return st;
}
