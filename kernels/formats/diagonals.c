/* SPDX-License-Identifier: BSD-3-Clause */
/* diagonals.c - converts CSR to diagonals on the host.  The distances are those
 * of some sampled rows; a pass over all rows confirms that there are no
 * others. */
#include "formats/diagonals.h"

#include <math.h>

#include "core/team.h"
#include "formats/runs.h"

enum { SAMPLE = 64 };          /* rows whose entries tell the diagonals */

static double value(const sps_csr_local *A, int64_t p)
{
    return A->dtype == SPS_F64 ? ((const double *)A->val)[p]
                               : (double)((const float *)A->val)[p];
}

/* Adds a distance to those of f, which ascend; returns false if it is one too
 * many. */
static bool add(sps_diagonals *f, int64_t distance)
{
    int d = f->count;

    while (d > 0 && f->distance[d - 1] > distance) d--;
    if (d > 0 && f->distance[d - 1] == distance) return true;
    if (f->count == SPS_DIAGONALS) return false;
    for (int e = f->count++; e > d; e--) f->distance[e] = f->distance[e - 1];
    f->distance[d] = distance;
    return true;
}

/* Returns row s of the sample, which is spread over A. */
static int64_t sampled(int64_t nrow, int s)
{
    return nrow <= SAMPLE ? s : s * (nrow - 1) / (SAMPLE - 1);
}

/* Returns the diagonal at this distance, from d on; f->count if there is
 * none. */
static int find(const sps_diagonals *f, int d, int64_t distance)
{
    while (d < f->count && f->distance[d] < distance) d++;
    return d < f->count && f->distance[d] == distance ? d : f->count;
}

/* Returns the value at (i, j), 0 if there is no entry. */
static double value_at(const sps_csr_local *A, int64_t i, int64_t j)
{
    for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
        if (A->col[p] == j) return value(A, p);
    return 0;
}

/* Returns whether the sampled rows of A equal its columns. */
static bool looks_symmetric(const sps_csr_local *A)
{
    if (A->nrow != A->ncol || !A->val) return false;
    for (int s = 0; s < SAMPLE && s < A->nrow; s++) {
        const int64_t i = sampled(A->nrow, s);

        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            if (value(A, p) != value_at(A, A->col[p], i)) return false;
    }
    return true;
}

bool spsi_diagonals_survey(const sps_csr_local *A, sps_diagonals *f)
{
    *f = (sps_diagonals){ .nrow = A->nrow, .ncol = A->ncol };
    for (int s = 0; s < SAMPLE && s < A->nrow; s++) {
        const int64_t i = sampled(A->nrow, s);

        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            if (!add(f, A->col[p] - i)) return false;
    }
    f->half = looks_symmetric(A);
    f->stored = f->half ? (f->count + 1) / 2 : f->count;
    return true;
}

bool spsi_diagonals_hold(const sps_diagonals *f, const sps_csr_local *A)
{
    for (int64_t i = 0; i < A->nrow; i++) {
        int d = 0;

        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
            d = find(f, d, A->col[p] - i);
            if (d == f->count) return false;
        }
    }
    return true;
}

/* ------------------------------------------------------------------- build */

typedef struct job {
    const sps_csr_local *A;
    sps_diagonals *f;
    int64_t unlike;            /* negative if A is not symmetric */
} job;

static void put(const sps_diagonals *f, int64_t at, double a)
{
    if (f->dtype == SPS_F64) ((double *)f->val)[at] = a;
    else ((float *)f->val)[at] = (float)a;
}

static double get(const sps_diagonals *f, int64_t at)
{
    return f->dtype == SPS_F64 ? ((const double *)f->val)[at]
                               : (double)((const float *)f->val)[at];
}

/* Writes the values of the diagonals that have their own. */
static void write_rows(void *data, int64_t first, int64_t last)
{
    const job *j = data;
    const sps_diagonals *f = j->f;

    for (int64_t i = first; i < last; i++) {
        int64_t p = j->A->rowptr[i];

        for (int d = 0; d < f->count; d++) {
            const bool there = p < j->A->rowptr[i + 1] &&
                               j->A->col[p] - i == f->distance[d];

            if (!f->half || f->distance[d] >= 0)
                put(f, f->at[d] + i, there ? value(j->A, p) : 0);
            p += there;
        }
    }
}

/* Compares the values below the main diagonal with those above it. */
static void compare_rows(void *data, int64_t first, int64_t last)
{
    job *j = data;
    const sps_diagonals *f = j->f;
    bool alike = true;

    for (int64_t i = first; i < last; i++) {
        int64_t p = j->A->rowptr[i];

        for (int d = 0; d < f->count && f->distance[d] < 0; d++) {
            const bool there = p < j->A->rowptr[i + 1] &&
                               j->A->col[p] - i == f->distance[d];

            if (i + f->distance[d] >= 0)
                alike &= get(f, f->at[d] + i) == (there ? value(j->A, p) : 0);
            p += there;
        }
    }
    if (!alike) spsi_team_least(&j->unlike, -1);
}

/* Lays out the values: a column of nrow of them for each stored diagonal.
 * Returns false if a diagonal lacks its counterpart, which A symmetric has. */
static bool lay_out(sps_diagonals *f)
{
    f->stored = 0;
    for (int d = 0; d < f->count; d++)
        if (!f->half || f->distance[d] >= 0) f->at[d] = f->nrow * f->stored++;
    for (int d = 0; f->half && d < f->count && f->distance[d] < 0; d++) {
        const int above = find(f, 0, -f->distance[d]);

        if (above == f->count) return false;
        f->at[d] = f->at[above] + f->distance[d];
    }
    return true;
}

/* Allocates the values, unless there are some of this type and layout. */
static sps_status allocate(sps_context *ctx, sps_diagonals *f, sps_dtype type,
                           bool half)
{
    sps_status st = SPS_OK;

    if (f->val && type == f->dtype && half == f->half) return SPS_OK;
    spsi_free(ctx, f->val);
    f->val = NULL;
    f->dtype = type;
    f->half = half;
    if (!lay_out(f)) {
        f->half = false;
        (void)lay_out(f);
    }
    SPS_TRY(spsi_new(ctx, spsi_diagonals_size(f), &f->val));
fail:
    return st;
}

sps_status spsi_diagonals_refresh(sps_context *ctx, const sps_csr_local *A,
                                  sps_diagonals *f)
{
    const sps_dtype type = spsi_values_exact(ctx, A) ? SPS_F32 : SPS_F64;
    job j = { .A = A, .f = f };
    sps_status st;

    SPS_TRY(allocate(ctx, f, type, looks_symmetric(A)));
    spsi_team_run(ctx, f->nrow, 3 * A->nnz, write_rows, &j);
    if (f->half)
        spsi_team_run(ctx, f->nrow, 3 * A->nnz, compare_rows, &j);
    if (j.unlike) {
        SPS_TRY(allocate(ctx, f, type, false));
        spsi_team_run(ctx, f->nrow, 3 * A->nnz, write_rows, &j);
    }
fail:
    return st;
}

sps_status spsi_diagonals_from_csr(sps_context *ctx, const sps_csr_local *A,
                                   sps_diagonals *f)
{
    (void)spsi_diagonals_survey(A, f);
    return spsi_diagonals_refresh(ctx, A, f);
}

void spsi_diagonals_clear(sps_context *ctx, sps_diagonals *f)
{
    spsi_free(ctx, f->val);
    f->val = NULL;
}

size_t spsi_diagonals_size(const sps_diagonals *f)
{
    return (size_t)f->stored * (size_t)f->nrow * spsi_dtype_size(f->dtype);
}
