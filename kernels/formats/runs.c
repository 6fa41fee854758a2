/* SPDX-License-Identifier: BSD-3-Clause */
/* runs.c - converts CSR to runs along diagonals on the host.  The runs of a
 * slice are found by merging its 8 rows in the order of column minus row, once
 * to count and once to write them; the values are written by merging each row
 * with the runs. */
#include "formats/runs.h"

#include "core/team.h"

enum { SAMPLE = 64 };          /* slices from which the bytes are estimated */

/* Counts the runs of slice s and their entries, and writes their bases unless
 * `base` is NULL. */
static int64_t merge(const int64_t *rowptr, const int32_t *col, int64_t ncol,
                     int64_t s, int64_t *entries, int32_t *base)
{
    const int64_t *p = rowptr + s * SPS_RUN;
    int64_t at[SPS_RUN], count = 0;

    if (!base && p[SPS_RUN] - p[0] == SPS_RUN * ncol && ncol >= SPS_RUN) {
        count = ncol - SPS_RUN + 1;              /* all rows are full */
        *entries = count * SPS_RUN;
        return count;
    }
    *entries = 0;
    for (int r = 0; r < SPS_RUN; r++) at[r] = p[r];
    for (;;) {
        int64_t next = INT64_MAX;
        int same = 0;

        for (int r = 0; r < SPS_RUN; r++)
            if (at[r] < p[r + 1] && col[at[r]] - r < next)
                next = col[at[r]] - r;
        if (next == INT64_MAX) return count;
        for (int r = 0; r < SPS_RUN; r++)
            if (at[r] < p[r + 1] && col[at[r]] - r == next) {
                at[r]++;
                same++;
            }
        if (same < SPS_RUN_LEAST || next < 0 || next + SPS_RUN > ncol)
            continue;
        if (base) base[count] = (int32_t)next;
        *entries += same;
        count++;
    }
}

double spsi_runs_bytes(const sps_csr *A)
{
    const int64_t slices = A->nrow / SPS_RUN;
    const int64_t some = slices < SAMPLE ? slices : SAMPLE;
    const double value = (double)spsi_dtype_size(A->dtype);
    int64_t runs = 0, all = 0, in_runs = 0;

    for (int64_t i = 0; i < some; i++) {
        const int64_t s = (2 * i + 1) * slices / (2 * some);
        int64_t entries;

        runs += merge(A->rowptr, A->col, A->ncol, s, &entries, NULL);
        in_runs += entries;
        all += A->rowptr[(s + 1) * SPS_RUN] - A->rowptr[s * SPS_RUN];
    }
    if (all == 0) return value + 5;
    return ((double)runs * (SPS_RUN * value + 4) +
            (double)(all - in_runs) * (value + 5)) / (double)all;
}

/* ------------------------------------------------------------------- build */

typedef struct job {
    const sps_csr_local *A;
    sps_runs *f;
    int64_t inexact;           /* negative if some value is not exact in single
                                  precision */
} job;

static void count_runs(void *data, int64_t first, int64_t last)
{
    const job *j = data;
    const sps_csr_local *A = j->A;

    for (int64_t s = first; s < last; s++) {
        const int64_t i = s * SPS_RUN;
        const int64_t end = i + SPS_RUN < A->nrow ? i + SPS_RUN : A->nrow;
        int64_t entries = 0, runs = 0;

        if (end == i + SPS_RUN)
            runs = merge(A->rowptr, A->col, A->ncol, s, &entries, NULL);
        j->f->run[s + 1] = runs;
        j->f->rest[s + 1] = A->rowptr[end] - A->rowptr[i] - entries;
    }
}

static void write_runs(void *data, int64_t first, int64_t last)
{
    const job *j = data;
    const sps_runs *f = j->f;
    int64_t entries;

    for (int64_t s = first; s < last; s++)
        if (f->run[s + 1] > f->run[s])
            merge(j->A->rowptr, j->A->col, f->ncol, s, &entries,
                  f->base + f->run[s]);
}

/* Writes the entries of row r of slice s: those in runs to their places in
 * these, the others to e, e + 1, ...; returns the position after the last. */
static int64_t write_row(const sps_csr_local *A, sps_runs *f, int64_t s, int r,
                         int64_t e)
{
    const int64_t i = s * SPS_RUN + r;
    int64_t q = f->run[s];

    for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
        const int64_t base = (int64_t)A->col[p] - r;

        while (q < f->run[s + 1] && f->base[q] < base) q++;
        if (q < f->run[s + 1] && f->base[q] == base) {
            spsi_put_value(f->val, f->dtype, q * SPS_RUN + r, A, p);
            continue;
        }
        f->rest_col[e] = A->col[p];
        f->rest_row[e] = (uint8_t)r;
        spsi_put_value(f->rest_val, f->dtype, e++, A, p);
    }
    return e;
}

static void write_rows(void *data, int64_t first, int64_t last)
{
    const job *j = data;

    for (int64_t s = first; s < last; s++) {
        int64_t e = j->f->rest[s];

        for (int r = 0; r < SPS_RUN && s * SPS_RUN + r < j->A->nrow; r++)
            e = write_row(j->A, j->f, s, r, e);
    }
}

static void compare(void *data, int64_t first, int64_t last)
{
    job *j = data;
    const double *a = j->A->val;
    int64_t bad = 0;

    for (int64_t p = first; p < last; p++) bad |= a[p] != (double)(float)a[p];
    if (bad) spsi_team_least(&j->inexact, -1);
}

bool spsi_values_exact(sps_context *ctx, const sps_csr_local *A)
{
    job j = { .A = A };

    if (A->dtype == SPS_F32) return true;
    spsi_team_run(ctx, A->nnz, A->nnz / 2, compare, &j);
    return j.inexact == 0;
}

/* Writes the values to their arrays, which are allocated in the type that they
 * need. */
sps_status spsi_runs_refresh(sps_context *ctx, const sps_csr_local *A,
                             sps_runs *f)
{
    const sps_dtype type = spsi_values_exact(ctx, A) ? SPS_F32 : SPS_F64;
    sps_status st = SPS_OK;

    if (!f->val || spsi_dtype_size(type) > spsi_dtype_size(f->dtype)) {
        const size_t size = spsi_dtype_size(type);

        spsi_free(ctx, f->val);
        spsi_free(ctx, f->rest_val);
        f->val = f->rest_val = NULL;
        f->dtype = type;
        /* val is allocated last: if it is NULL, the next call allocates both
         * arrays. */
        SPS_TRY(spsi_new(ctx, (size_t)f->rest[f->slices] * size,
                         &f->rest_val));
        SPS_TRY(spsi_new(ctx, (size_t)(f->run[f->slices] * SPS_RUN) * size,
                         &f->val));
    }
    spsi_team_run(ctx, f->slices, 3 * A->nnz, write_rows,
                  &(job){ .A = A, .f = f });
fail:
    return st;
}

sps_status spsi_runs_from_csr(sps_context *ctx, const sps_csr_local *A,
                              sps_runs *f)
{
    job j = { .A = A, .f = f };
    sps_status st;

    *f = (sps_runs){ .nrow = A->nrow, .ncol = A->ncol,
                     .slices = (A->nrow + SPS_RUN - 1) / SPS_RUN };
    SPS_TRY(SPS_NEW(ctx, f->slices + 1, &f->run));
    SPS_TRY(SPS_NEW(ctx, f->slices + 1, &f->rest));
    spsi_team_run(ctx, f->slices, 3 * A->nnz, count_runs, &j);
    for (int64_t s = 0; s < f->slices; s++) {
        f->run[s + 1] += f->run[s];
        f->rest[s + 1] += f->rest[s];
    }
    SPS_TRY(SPS_NEW(ctx, f->run[f->slices], &f->base));
    SPS_TRY(SPS_NEW(ctx, f->rest[f->slices], &f->rest_col));
    SPS_TRY(SPS_NEW(ctx, f->rest[f->slices], &f->rest_row));
    spsi_team_run(ctx, f->slices, 3 * A->nnz, write_runs, &j);
    SPS_TRY(spsi_runs_refresh(ctx, A, f));
fail:
    return st;
}

void spsi_runs_clear(sps_context *ctx, sps_runs *f)
{
    void *const all[] = { f->run, f->rest, f->base, f->val, f->rest_col,
                          f->rest_row, f->rest_val };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        spsi_free(ctx, all[i]);
    *f = (sps_runs){ 0 };
}

size_t spsi_runs_size(const sps_runs *f)
{
    const size_t value = spsi_dtype_size(f->dtype);

    return 2 * (size_t)(f->slices + 1) * sizeof *f->run +
           (size_t)f->run[f->slices] * (SPS_RUN * value + sizeof *f->base) +
           (size_t)f->rest[f->slices] * (value + 5);
}
