/* SPDX-License-Identifier: BSD-3-Clause */
/* direct.h - sparse direct factors of the matrix of an operator, by the library
 * behind the factor module (core/factors.h): analysis, prediction of work and
 * memory, factorisation, solves in host memory. */
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
    void *of;                 /* the library's */
    sps_factor_facts facts;   /* of the analysis */
    sps_factor_facts found;   /* of the factorisation */
    size_t claimed;           /* bytes counted for the library's memory */
} sps_direct;

/* most: operations beyond which a better ordering is not looked for, 0: none.
 * EABSENT without the module, with what to install; EUNFIT for entries that are
 * not finite, more than 2^31 - 1 unknowns, a singular pattern, or an analysis
 * that is predicted to outlast the time limit. */
sps_status spsi_direct_analyse(const sps_operator *A, double most,
                               sps_direct **d_p);
/* So many operations take that time, alone. */
double spsi_direct_operations(double seconds);
/* Keeps the analysis with the operator of it, for the next caller of
 * spsi_direct_analyse. */
void spsi_direct_keep(sps_direct *d);
/* Factors the present values; again after they have changed.  ENOMEM and EUNFIT
 * if memory or time left are less than predicted, that of a solve with `width`
 * columns included; the library cannot be interrupted, so it is not begun
 * then. */
sps_status spsi_direct_factor(sps_direct *d, int width);
/* X := A^-1 X, n x k, column by column. */
sps_status spsi_direct_solve(const sps_direct *d, double *X, int k);
/* Predicted seconds of the analysis. */
double spsi_direct_analysis_seconds(const sps_operator *A);
/* Predicted seconds of the factorisation, and of a solve with k columns; from
 * the analysis alone, so that choices made by them repeat. */
double spsi_direct_factor_seconds(const sps_direct *d);
double spsi_direct_solve_seconds(const sps_direct *d, int k);
/* Whether there is a module. */
bool spsi_direct_possible(void);
void spsi_direct_destroy(sps_direct **d_p);

#ifdef __cplusplus
}
#endif
#endif
