/* SPDX-License-Identifier: BSD-3-Clause */
/* row_kinds.c - see row_kinds.h. */
#include "matrix/row_kinds.h"

#include "core/team.h"

typedef struct kinds_job {
    const sps_csr *A;
    bool projected;
    sps_row_kinds kinds;
} kinds_job;

static void count_rows(void *data, int64_t first, int64_t last)
{
    kinds_job *j = data;
    const sps_csr *A = j->A;
    sps_row_kinds k = { 0 };

    for (int64_t i = first; i < last; i++) {
        sps_row_sums s = { .alone = true };

        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            spsi_row_add(&s, A->col[p] == i, spsi_csr_value(A, p));
        spsi_row_count(&s, A->rowptr[i + 1] - A->rowptr[i], j->projected, &k);
    }
    spsi_team_add(&j->kinds.zero, k.zero);
    spsi_team_add(&j->kinds.negative, k.negative);
    spsi_team_add(&j->kinds.weak, k.weak);
    spsi_team_add(&j->kinds.dominated, k.dominated);
    spsi_team_add(&j->kinds.near, k.near);
    spsi_team_add(&j->kinds.strong, k.strong);
    spsi_team_add(&j->kinds.odd, k.odd);
    spsi_team_add(&j->kinds.squares, k.squares);
}

void spsi_row_kinds_count(sps_context *ctx, const sps_csr *A, bool projected,
                          sps_row_kinds *k)
{
    kinds_job j = { .A = A, .projected = projected };

    spsi_team_run(ctx, A->nrow, 2 * A->nnz, count_rows, &j);
    *k = j.kinds;
}

typedef struct known_job {
    const sps_csr *A;
    int b;
    int64_t known;
} known_job;

static void count_known(void *data, int64_t first, int64_t last)
{
    known_job *j = data;
    const sps_csr *A = j->A;
    int64_t known = 0;

    for (int64_t i = first; i < last; i++) {
        sps_row_constants s = { 0 };

        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            spsi_constants_add(&s, A->col[p] == i, A->col[p] % j->b,
                               spsi_csr_value(A, p));
        known += spsi_constants_known(&s, j->b);
    }
    spsi_team_add(&j->known, known);
}

int64_t spsi_rows_known(sps_context *ctx, const sps_csr *A, int b)
{
    known_job j = { .A = A, .b = b };

    spsi_team_run(ctx, A->nrow, 2 * A->nnz, count_known, &j);
    return j.known;
}
