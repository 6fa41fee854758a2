/* SPDX-License-Identifier: BSD-3-Clause */
/* direct.h - sparse direct factors of the matrix of an operator, computed by
 * the library of the factor module (core/factors.h): analysis, prediction of
 * work and memory, factorisation, and solves in host memory. */
#ifndef SPS_DIRECT_H
#define SPS_DIRECT_H

#include "core/factors.h"
#include "operator/operator.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sps_direct {
    sps_context *ctx;
    const sps_operator *A;
    const sps_factor_library *library;
    sps_factor_kind kind;
    void *of;                 /* handle of the library */
    sps_factor_facts facts;   /* predictions of the analysis */
    sps_factor_facts found;   /* results of the factorisation */
    size_t claimed;           /* bytes counted for the library's memory */
} sps_direct;

/* Analyses the matrix.  If more than `most` operations are predicted (0 for no
 * limit), no better ordering is searched for.  EABSENT without the module, with
 * what to install; EUNFIT for entries that are not finite, more than 2^31 - 1
 * unknowns, a singular pattern, or an analysis that is predicted to exceed the
 * time limit. */
sps_status spsi_direct_analyse(const sps_operator *A, double most,
                               sps_direct **d_p);
/* Returns the operations that take this time, on one core. */
double spsi_direct_operations(const sps_context *ctx, double seconds);
/* Stores the analysis in its operator, for the next caller of
 * spsi_direct_analyse. */
void spsi_direct_keep(sps_direct *d);
/* Factors the matrix with its present values; to be called again after they
 * have changed.  ENOMEM or EUNFIT if the memory or the time that is left is
 * less than predicted, including a solve with `width` columns: the library
 * cannot be interrupted, so the factorisation is not begun then. */
sps_status spsi_direct_factor(sps_direct *d, int width);
/* Counts the memory of the factors, which are not computed: ENOMEM if that is
 * more than there is. */
sps_status spsi_direct_predict(sps_direct *d);
/* Returns the found.zero rows of the pivots treated as zero, counting from 1. */
const int32_t *spsi_direct_zero_rows(const sps_direct *d);
/* X := A^-1 X, where X is n x k, column-major, in host memory.  EUNFIT after
 * sps_cancel; columns that were not solved are zero then. */
sps_status spsi_direct_solve(const sps_direct *d, double *X, int k);
/* Returns the predicted seconds of the analysis. */
double spsi_direct_analysis_seconds(const sps_operator *A);
/* Returns the predicted seconds of the factorisation (and, the next function,
 * of a solve with k columns), computed from the analysis only, so that choices
 * made by them are reproducible. */
double spsi_direct_factor_seconds(const sps_direct *d);
double spsi_direct_solve_seconds(const sps_direct *d, int k);
/* Returns the predicted seconds of analysis, factorisation and two solves for
 * a triangle of this number of entries and column lengths of this sum of
 * squares; infinity without the factor module.  A must be on the host. */
double spsi_direct_seconds(const sps_operator *A, double entries,
                           double squares);
/* part[i] = the part, 0 to parts - 1, of vertex i of the graph of A, by METIS
 * (core/factors.h).  EABSENT without the factor module, or where it was built
 * without METIS. */
sps_status spsi_direct_partition(sps_context *ctx, const sps_factor_matrix *A,
                                 int parts, const float *share, int32_t *part);
/* Returns whether the factor module is available. */
bool spsi_direct_possible(void);
void spsi_direct_destroy(sps_direct **d_p);

#ifdef __cplusplus
}
#endif
#endif
