/* SPDX-License-Identifier: BSD-3-Clause */
/* row_lengths.h - matrices with prescribed row lengths, for tests of work
 * distribution; freed by zoo_free as those of the zoo. */
#ifndef SPS_TEST_ROW_LENGTHS_H
#define SPS_TEST_ROW_LENGTHS_H

#include <stdlib.h>

#include "spsolve.h"

/* Entry t of row i is in column (i + t) % ncol; whole: integers in -500 .. 500,
 * otherwise numbers in [-1/2, 1/2).  The `count` given lengths are repeated
 * cyclically over n rows. */
static inline sps_csr *row_lengths_matrix(const int64_t *length, int count,
                                          int64_t n, int64_t ncol, bool whole)
{
    sps_csr *A = calloc(1, sizeof *A);
    double *val;

    if (!A) abort();
    A->nrow = n;
    A->ncol = ncol;
    A->dtype = SPS_F64;
    A->place = SPS_HOST;
    A->struct_size = sizeof *A;
    A->own = SPS_BORROW;
    A->props = SPS_SORTED;
    for (int64_t i = 0; i < n; i++) A->nnz += length[i % count];
    A->rowptr = calloc((size_t)n + 1, sizeof *A->rowptr);
    A->col = malloc((size_t)(A->nnz + 1) * sizeof *A->col);
    A->val = val = malloc((size_t)(A->nnz + 1) * sizeof *val);
    if (!A->rowptr || !A->col || !val) abort();
    for (int64_t i = 0, p = 0; i < n; A->rowptr[++i] = p) {
        const int64_t some = length[i % count];
        const int64_t wrapped = i % ncol + some > ncol
            ? i % ncol + some - ncol : 0;

        for (int64_t t = 0; t < some; t++, p++) {
            const int64_t mixed = (p * 7919 + i * 104729 + 17) % 1001 - 500;

            A->col[p] = (int32_t)(t < wrapped ? t : i % ncol + t - wrapped);
            val[p] = whole ? (double)mixed : (double)mixed / 1003.0;
        }
    }
    return A;
}

#endif
