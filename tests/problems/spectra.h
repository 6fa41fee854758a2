/* SPDX-License-Identifier: BSD-3-Clause */
/* spectra.h - matrices of a given condition number, generated as LAPACK's test
 * matrices (xLATMS: singular values or eigenvalues from one of several
 * distributions, transformed by random orthogonal matrices), and kinds without
 * a prescribed condition: graded, nonnormal, singular, graphs, grids, patterns
 * of the zoo. */
#ifndef SPS_TEST_SPECTRA_H
#define SPS_TEST_SPECTRA_H

#include "tests/support/draw.h"

enum {
    SPECTRUM_SYMMETRIC = 1, SPECTRUM_DEFINITE = 2,
    SPECTRUM_SINGULAR = 4,     /* exactly: its entries are integers */
    SPECTRUM_COMPLEX = 8,      /* [Re -Im; Im Re] */
    SPECTRUM_SET = 16          /* has the requested condition, n > 2 */
};

typedef struct spectrum {
    const char *name;
    unsigned is;
    /* n x n, entries of at most about 1; the caller frees it by zoo_free. */
    sps_csr *(*make)(draw *d, int n, double condition);
} spectrum;

extern const spectrum spectra[];
extern const int spectrum_count;

/* The matrix of n x n numbers, row by row, without its zeros. */
sps_csr *spectrum_sparse(const double *a, int n, unsigned props);

#endif
