/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_entries.c - functions that need the entries of a pencil: sign A - sigma
 * M as a matrix, and bounds of the spectrum from the rows of A. */
#include "eigen/eigen_pencil.h"

#include <math.h>

#include "core/team.h"

static bool next_of(const sps_csr *A, int64_t i, int64_t p)
{
    return p < A->rowptr[i + 1];
}

/* Forms row i of sign A - sigma M by a merge of the sorted rows of A and M (the
 * identity if M is NULL).  Returns the number of entries; only counts them if
 * col is NULL. */
static int64_t merge(const sps_pencil *p, double sign, double sigma,
                     int64_t i, int32_t *col, double *val)
{
    const sps_csr *A = p->A->A, *M = p->M ? p->M->A : NULL;
    int64_t a = A->rowptr[i], m = M ? M->rowptr[i] : 0, count = 0;
    bool unit = !M;

    for (;; count++) {
        bool in_a = next_of(A, i, a), in_m = M ? next_of(M, i, m) : unit;
        int64_t ca = in_a ? A->col[a] : INT64_MAX;
        int64_t cm = !in_m ? INT64_MAX : M ? M->col[m] : i;
        double v = 0;

        if (!in_a && !in_m) return count;
        if (ca <= cm) v += sign * spsi_csr_value(A, a++);
        if (cm <= ca) {
            v -= sigma * (M ? spsi_csr_value(M, m++) : 1);
            unit = false;
        }
        if (!col) continue;
        col[count] = (int32_t)(ca < cm ? ca : cm);
        val[count] = v;
    }
}

typedef struct merge_job {
    const sps_pencil *p;
    double sign, sigma;
    sps_csr *C;
    int64_t nnz;
} merge_job;

static void count_merged(void *data, int64_t first, int64_t last)
{
    merge_job *j = data;
    int64_t nnz = 0;

    for (int64_t i = first; i < last; i++) {
        const int64_t length = merge(j->p, j->sign, j->sigma, i, NULL, NULL);

        if (j->C) j->C->rowptr[i + 1] = length;
        nnz += length;
    }
    spsi_team_add(&j->nnz, nnz);
}

static void write_merged(void *data, int64_t first, int64_t last)
{
    const merge_job *j = data;
    const int64_t *rowptr = j->C->rowptr;

    for (int64_t i = first; i < last; i++)
        merge(j->p, j->sign, j->sigma, i, j->C->col + rowptr[i],
              (double *)j->C->val + rowptr[i]);
}

sps_status spsi_pencil_combine(const sps_pencil *p, double sign, double sigma,
                               sps_csr **C_p)
{
    merge_job j = { .p = p, .sign = sign, .sigma = sigma };
    int64_t *rowptr, ns;
    sps_status st;

    SPS_TRY(spsi_operator_fetch(p->A));
    if (p->M) SPS_TRY(spsi_operator_fetch(p->M));
    ns = 5 * (p->A->A->nnz +
              (p->M ? p->M->A->nnz : p->n));
    spsi_team_run(p->ctx, p->n, ns, count_merged, &j);
    SPS_TRY(
        sps_csr_create(p->ctx, p->n, p->n, j.nnz, SPS_F64, C_p));
    j.C = *C_p;
    rowptr = j.C->rowptr;
    spsi_team_run(p->ctx, p->n, ns, count_merged, &j);
    for (int64_t i = 0; i < p->n; i++) rowptr[i + 1] += rowptr[i];
    spsi_team_run(p->ctx, p->n, ns, write_merged, &j);
    j.C->props = SPS_SYMMETRIC;
fail:
    return st;
}

/* Returns a_ii; *others is the sum of the other magnitudes of row i. */
static double diagonal_of(const sps_csr *A, int64_t i, double *others)
{
    double d = 0;

    *others = 0;
    for (int64_t p = A->rowptr[i]; next_of(A, i, p); p++)
        if (A->col[p] == i) d = spsi_csr_value(A, p);
        else *others += fabs(spsi_csr_value(A, p));
    return d;
}

bool spsi_pencil_outside(const sps_pencil *p, double sigma, double *sign)
{
    double low = INFINITY, high = -INFINITY, others;

    if (p->M || !p->A->A) return false;
    for (int64_t i = 0; i < p->n; i++) {
        double d = diagonal_of(p->A->A, i, &others);

        if (!isfinite(d + others)) return false;
        low = fmin(low, d - others);
        high = fmax(high, d + others);
    }
    if (sigma > low && sigma < high) return false;
    *sign = sigma > low ? -1 : 1;
    return true;
}

bool spsi_pencil_uniform(const sps_pencil *p)
{
    const sps_csr *A = p->A->A;
    double low = INFINITY, high = 0, others;

    for (int64_t i = 0; i < A->nrow; i++) {
        double d = fabs(diagonal_of(A, i, &others));

        low = fmin(low, d);
        high = fmax(high, d);
    }
    return high <= 100 * low;
}

bool spsi_pencil_entries(const sps_pencil *p)
{
    return p->A->A && (!p->M || p->M->A);
}
