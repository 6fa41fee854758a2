/* SPDX-License-Identifier: BSD-3-Clause */
/* zoo.h - matrices and blocks for tests, as functions of (family, n, seed).
 *
 * A family is a sparsity pattern; values are chosen independently, so that each
 * pattern is available with exact integers, with random numbers, or as an SPD
 * matrix.  Rows are sorted and unique.  Memory comes from malloc: the zoo needs
 * no context.  Rectangular families have n rows and another number of columns,
 * all others are n x n; n = 0 and n = 1 are valid. */
#ifndef SPS_TEST_ZOO_H
#define SPS_TEST_ZOO_H

#include "spsolve.h"

typedef enum zoo_values {
    ZOO_INTEGER,   /* nonzero integers, |v| <= 1024: every sum is exact */
    ZOO_SMALL,     /* nonzero integers, |v| <= 8: exact also in float, tf32,
                      bf16 and half with sums in float, for rows below 2^17 */
    ZOO_RANDOM,    /* uniform in [-1/2, 1/2) */
    ZOO_SCALES,    /* random times 2^(r_i + c_j), r and c in -40 .. 40 */
    ZOO_SPD,       /* symmetric, diagonally dominant; symmetric families */
    ZOO_LAPLACIAN  /* -1 off the diagonal, row sums 0; symmetric families */
} zoo_values;

int zoo_count(void);
const char *zoo_name(int family);
int zoo_find(const char *name);            /* -1: no such family */
bool zoo_symmetric(int family);            /* symmetric, with full diagonal */
/* F32 values are the same numbers rounded.  Free with zoo_free. */
sps_csr *zoo_matrix(int family, int64_t n, uint64_t seed, zoo_values values,
                    sps_dtype dtype);
/* The same with a given number of columns. */
sps_csr *zoo_shape(int family, int64_t nrow, int64_t ncol, uint64_t seed,
                   zoo_values values, sps_dtype dtype);
/* Row i has length[i % kinds] entries, at most ncol - first, in columns >=
 * first: contiguous in even rows, far apart in odd ones. */
sps_csr *zoo_rows(int64_t nrow, int64_t ncol, const int32_t *length,
                  int64_t kinds, int64_t first, uint64_t seed,
                  zoo_values values, sps_dtype dtype);
/* A copy of any host csr. */
/* All entries are stored. */
sps_csr *zoo_full(int64_t n, zoo_values values, sps_dtype dtype);
sps_csr *zoo_copy(const sps_csr *A);
void zoo_free(sps_csr **A_p);

/* n x k row-major numbers, element (i, j) at x[i * ld + j]; the padding is
 * filled with NaN.  ZOO_INTEGER, ZOO_SMALL or ZOO_RANDOM.  Free with free(). */
double *zoo_block(int64_t n, int k, int64_t ld, uint64_t seed,
                  zoo_values values);

#endif
