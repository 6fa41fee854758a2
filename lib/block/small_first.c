/* SPDX-License-Identifier: BSD-3-Clause */
/* small_first.c - the smallest eigenvalues of a small symmetric matrix. */
#include "block/small_first.h"

#include <assert.h>
#include <lapacke.h>

#include "core/blas.h"

sps_status spsi_small_eigen_first(sps_small *A, double *w, sps_small *Z,
                                  bool *made)
{
    const int n = A->rows, m = Z->cols;
    lapack_int found = 0, *support = NULL, info = -1;
    sps_status st;

    assert(A->cols == n && Z->rows == n && m > 0 && m <= n);
    SPS_TRY(SPS_NEW(A->ctx, 2 * m, &support));
    SPS_TRY(spsi_blas_begin(A->ctx, 1));
    info = LAPACKE_dsyevr(LAPACK_COL_MAJOR, 'V', 'I', 'U', n, A->v, n, 0, 0, 1,
                          m, 0, &found, w, Z->v, n, support);
    spsi_blas_end(1);
    SPS_REQUIRE(A->ctx, info != LAPACK_WORK_MEMORY_ERROR, SPS_ENOMEM,
                "no memory for eigenvectors of a %d x %d matrix", n, n);
fail:
    *made = info == 0 && found == m;
    spsi_free(A->ctx, support);
    return st;
}
