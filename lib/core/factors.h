/* SPDX-License-Identifier: BSD-3-Clause */
/* factors.h - what the factor module offers: sparse direct factors by a library
 * that this one does not link.  Plain C, without the types of the library, so
 * that the module needs nothing of it.
 *
 * Nothing here prints, ends the process or takes a lock: one caller at a time
 * for the whole process, which lib/operator/direct.c ensures. */
#ifndef SPS_FACTORS_H
#define SPS_FACTORS_H

#include <stdint.h>

#define SPS_FACTOR_ABI 4
#define SPS_FACTOR_SPARE 30      /* percent of working memory for pivoting, in
                                    the prediction */

/* Which entries are given: all of them (GENERAL), or one triangle with the
 * diagonal of a symmetric matrix, which is possibly indefinite (SYMMETRIC) or
 * positive definite (DEFINITE, factored without pivoting). */
typedef enum sps_factor_kind {
    SPS_FACTOR_GENERAL,
    SPS_FACTOR_SYMMETRIC,
    SPS_FACTOR_DEFINITE
} sps_factor_kind;

/* The matrix in coordinate form: indices count from 1, and duplicates are
 * summed. */
typedef struct sps_factor_matrix {
    sps_factor_kind kind;
    int32_t n;
    int64_t nnz;
    int32_t *row, *col;
    double *val;
} sps_factor_matrix;

typedef enum sps_factor_code {
    SPS_FACTOR_OK,
    SPS_FACTOR_MEMORY,        /* an allocation failed */
    SPS_FACTOR_MORE,          /* the working memory was too small */
    SPS_FACTOR_SINGULAR,      /* by the pattern, or a pivot is exactly zero */
    SPS_FACTOR_FAILED,        /* any other error; `detail` has the codes of
                                 the library */
    SPS_FACTOR_GAVE_UP        /* the library wanted to end the process: it
                                 must not be called any more */
} sps_factor_code;

/* Predictions after the analysis, actual values after the factorisation. */
typedef struct sps_factor_facts {
    int detail[2];            /* codes of the library, for texts */
    double flops;             /* operations of the factorisation */
    int64_t entries;          /* stored entries of the factors */
    int64_t bytes;            /* size of the working memory */
    int64_t zero, negative;   /* pivots treated as zero; negative pivots, if
                                 the matrix is symmetric */
} sps_factor_facts;

/* The one exported object of the module: spsi_factor_catalogue. */
typedef struct sps_factor_library {
    int abi;                  /* SPS_FACTOR_ABI */
    const char *version;      /* sps_version() when it was built */
    const char *name;         /* "MUMPS 5.5.1" */
    /* Symbolic analysis.  If more than `most` operations are predicted, unless
     * it is 0, no better ordering is searched for, since it would not be
     * enough.  *of is the handle for the other calls; if it is not NULL it must
     * be closed, whatever is returned. */
    int (*analyse)(const sps_factor_matrix *A, double most, void **of,
                   sps_factor_facts *facts);
    /* Numerical factorisation of a matrix with the pattern that was analysed,
     * with `spare` percent of working memory beyond what the pattern needs, but
     * at most `most` bytes. */
    int (*factor)(void *of, const sps_factor_matrix *A, int spare,
                  int64_t most, sps_factor_facts *facts);
    /* X := A^-1 X for k columns; X is column-major with leading dimension
     * ld. */
    int (*solve)(void *of, double *X, int32_t ld, int32_t k,
                 sps_factor_facts *facts);
    /* Returns the rows of the pivots treated as zero, counted from 1; there are
     * facts.zero of them.  Valid until the next call. */
    const int32_t *(*zero_rows)(void *of);
    void (*close)(void *of);
    /* part[i] = the part, from 0 on, of vertex i of the graph with an edge for
     * each entry of A (one for (i, j) and (j, i)), whose values are not read:
     * few edges between parts, of sizes near share[] n.  NULL without METIS. */
    int (*partition)(const sps_factor_matrix *A, int parts, const float *share,
                     int32_t *part);
} sps_factor_library;

#endif
