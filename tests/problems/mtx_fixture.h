/* SPDX-License-Identifier: BSD-3-Clause */
/* mtx_fixture.h - shared by suites about Matrix Market files. */
#ifndef SPS_TEST_MTX_FIXTURE_H
#define SPS_TEST_MTX_FIXTURE_H

#include "tests/support/files.h"
#include "tests/support/fixture.h"

static inline sps_csr *read_as(sps_context *ctx, const char *path,
                               const sps_read_options *ro,
                               sps_read_info *info)
{
    sps_csr *A = NULL;

    if (info) *info = (sps_read_info){.struct_size = sizeof *info};
    OK(ctx, sps_csr_read(ctx, path, ro, info, &A));
    ck_assert(A->props & SPS_SORTED);
    return A;
}

static inline uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline void assert_equal(const sps_csr *A, const sps_csr *B)
{
    ck_assert_int_eq(A->nrow, B->nrow);
    ck_assert_int_eq(A->ncol, B->ncol);
    ck_assert_int_eq(A->nnz, B->nnz);
    for (int64_t i = 0; i <= A->nrow; i++)
        ck_assert_int_eq(A->rowptr[i], B->rowptr[i]);
    for (int64_t p = 0; p < A->nnz; p++) {
        ck_assert_int_eq(A->col[p], B->col[p]);
        ck_assert_uint_eq(bits_of(((double *)A->val)[p]),
                          bits_of(((double *)B->val)[p]));
    }
}


/* A equals the dense row-major x; an entry of the csr may be a zero. */
static inline void assert_dense(const char *name, const sps_csr *A,
                                int64_t nrow, int64_t ncol, const double *x)
{
    double *y = calloc((size_t)(nrow * ncol) + 1, sizeof *y);

    ck_assert_msg(A->nrow == nrow && A->ncol == ncol, "%s: %d x %d", name,
                  (int)A->nrow, (int)A->ncol);
    for (int64_t i = 0; i < nrow; i++)
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            y[i * ncol + A->col[p]] = ((double *)A->val)[p];
    for (int64_t p = 0; p < nrow * ncol; p++)
        ck_assert_msg(x[p] == y[p], "%s: (%d, %d) is %g, not %g", name,
                      (int)(p / ncol), (int)(p % ncol), y[p], x[p]);
    free(y);
}

#endif
