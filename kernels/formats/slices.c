/* SPDX-License-Identifier: BSD-3-Clause */
/* slices.c - converts CSR to slices of rows on the host.  The rows of a window
 * are sorted by counting, then every slice copies its rows; windows and slices
 * are processed in parallel. */
#include "formats/slices.h"

#include <string.h>

#include "core/team.h"
#include "formats/runs.h"

enum { EXACT = 256, OCTAVE = 32, KEYS = EXACT + OCTAVE * 56 };

typedef struct job {
    const sps_csr_local *A;
    sps_slices *f;
    int64_t far;               /* negative if the columns of some slice are too
                                  far apart for 16 bits */
} job;

/* Returns the class of a row length, in descending order of lengths: exact up
 * to 255, then 32 classes for each factor of two. */
static int key_of(int64_t length)
{
    int top;

    if (length < EXACT) return KEYS - 1 - (int)length;
    top = 63 - __builtin_clzll((unsigned long long)length);
    return KEYS - 1 - EXACT - OCTAVE * (top - 8) -
           (int)(length >> (top - 5) & (OCTAVE - 1));
}

static void sort_windows(void *data, int64_t first, int64_t last)
{
    const job *j = data;
    const int64_t *p = j->A->rowptr;

    for (int64_t w = first; w < last; w++) {
        const int64_t i = w * SPS_SLICE_WINDOW, n = j->A->nrow;
        const int64_t end = i + SPS_SLICE_WINDOW < n ? i + SPS_SLICE_WINDOW : n;
        int32_t at[KEYS + 1] = { 0 };

        for (int64_t r = i; r < end; r++) at[key_of(p[r + 1] - p[r]) + 1]++;
        for (int k = 0; k < KEYS; k++) at[k + 1] += at[k];
        for (int64_t r = i; r < end; r++)
            j->f->row[i + at[key_of(p[r + 1] - p[r])]++] = (int32_t)r;
    }
}

/* Returns the number of rows of slice s. */
static int rows_of(const sps_slices *f, int64_t s)
{
    const int64_t left = f->nrow - s * SPS_SLICE;

    return left < SPS_SLICE ? (int)left : SPS_SLICE;
}

/* Measures the sizes of the slices and their smallest columns. */
static void measure(void *data, int64_t first, int64_t last)
{
    job *j = data;
    const sps_csr_local *A = j->A;

    for (int64_t s = first; s < last; s++) {
        const int rows = rows_of(j->f, s);
        int64_t sum = 0, least = INT64_MAX, low = INT64_MAX, high = 0;

        for (int r = 0; r < rows; r++) {
            const int64_t i = j->f->row[s * SPS_SLICE + r];
            const int64_t p = A->rowptr[i], end = A->rowptr[i + 1];

            sum += end - p;
            if (end - p < least) least = end - p;
            if (end > p && A->col[p] < low) low = A->col[p];
            if (end > p && A->col[end - 1] > high) high = A->col[end - 1];
        }
        j->f->start[s + 1] = sum;
        j->f->full[s] = rows == SPS_SLICE && least < INT32_MAX ? (int32_t)least
                                                               : 0;
        j->f->base[s] = low == INT64_MAX ? 0 : (int32_t)low;
        if (sum > 0 && high - low > UINT16_MAX) spsi_team_least(&j->far, -1);
    }
}

/* Copies entry p of A to position q, which is in slice s. */
static inline void put(const sps_csr_local *A, const sps_slices *f, int64_t s,
                       int64_t q, int64_t p)
{
    if (f->col) f->col[q] = A->col[p];
    else f->near[q] = (uint16_t)(A->col[p] - f->base[s]);
    spsi_put_value(f->val, f->dtype, q, A, p);
}

static void copy(void *data, int64_t first, int64_t last)
{
    const job *j = data;
    const sps_csr_local *A = j->A;
    const sps_slices *f = j->f;

    for (int64_t s = first; s < last; s++) {
        int64_t more = f->start[s] + SPS_SLICE * (int64_t)f->full[s];

        for (int r = 0; r < rows_of(f, s); r++) {
            const int64_t i = f->row[s * SPS_SLICE + r], p = A->rowptr[i];
            int64_t e = 0;

            for (; e < f->full[s]; e++)
                put(A, f, s, f->start[s] + SPS_SLICE * e + r, p + e);
            for (; p + e < A->rowptr[i + 1]; e++) put(A, f, s, more++, p + e);
        }
    }
}

sps_status spsi_slices_refresh(sps_context *ctx, const sps_csr_local *A,
                               sps_slices *f)
{
    const sps_dtype type = spsi_values_exact(ctx, A) ? SPS_F32 : SPS_F64;
    sps_status st = SPS_OK;

    if (!f->val || spsi_dtype_size(type) > spsi_dtype_size(f->dtype)) {
        spsi_free(ctx, f->val);
        f->val = NULL;
        f->dtype = type;
        SPS_TRY(spsi_new(ctx, (size_t)A->nnz * spsi_dtype_size(type),
                         &f->val));
    }
    spsi_team_run(ctx, f->slices, 3 * A->nnz, copy, &(job){ .A = A, .f = f });
fail:
    return st;
}

sps_status spsi_slices_from_csr(sps_context *ctx, const sps_csr_local *A,
                                sps_slices *f)
{
    job j = { .A = A, .f = f };
    sps_status st;

    *f = (sps_slices){ .nrow = A->nrow, .nnz = A->nnz,
                       .slices = (A->nrow + SPS_SLICE - 1) / SPS_SLICE };
    SPS_TRY(SPS_NEW(ctx, f->nrow, &f->row));
    SPS_TRY(SPS_NEW(ctx, f->slices + 1, &f->start));
    SPS_TRY(SPS_NEW(ctx, f->slices, &f->full));
    SPS_TRY(SPS_NEW(ctx, f->slices, &f->base));
    spsi_team_run(ctx, (f->nrow + SPS_SLICE_WINDOW - 1) / SPS_SLICE_WINDOW,
                  10 * f->nrow, sort_windows, &j);
    spsi_team_run(ctx, f->slices, 10 * f->nrow, measure, &j);
    for (int64_t s = 0; s < f->slices; s++) f->start[s + 1] += f->start[s];
    if (j.far) SPS_TRY(SPS_NEW(ctx, f->nnz, &f->col));
    else SPS_TRY(SPS_NEW(ctx, f->nnz, &f->near));
    SPS_TRY(spsi_slices_refresh(ctx, A, f));
fail:
    return st;
}

void spsi_slices_clear(sps_context *ctx, sps_slices *f)
{
    void *const all[] = { f->row, f->start, f->full, f->base, f->col, f->near,
                          f->val };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        spsi_free(ctx, all[i]);
    *f = (sps_slices){ 0 };
}

size_t spsi_slices_size(const sps_slices *f)
{
    const size_t column = f->col ? sizeof *f->col : sizeof *f->near;

    return (size_t)f->nrow * sizeof *f->row +
           (size_t)(f->slices + 1) * (sizeof *f->start + 2 * sizeof *f->full) +
           (size_t)f->nnz * (column + spsi_dtype_size(f->dtype));
}
