/* SPDX-License-Identifier: BSD-3-Clause */
/* systems.h - complete linear systems drawn by number: a matrix (spectra.h)
 * scaled by 1e-150 to 1e150, right-hand sides and guesses of every kind, a
 * norm, a tolerance, a method and a preconditioner. */
#ifndef SPS_TEST_SYSTEMS_H
#define SPS_TEST_SYSTEMS_H

#include "tests/problems/problem.h"
#include "tests/problems/spectra.h"

typedef struct drawn_system {
    problem p;
    const spectrum *kind;
    double condition;         /* 0: unknown */
    char what[200];           /* one line that describes it */
    double *guess;            /* n x k, the initial X */
} drawn_system;

/* System `number`, always the same.  Methods are drawn from those of ctx. */
void system_open(drawn_system *s, sps_context *ctx, uint64_t number);
void system_close(drawn_system *s);
/* The threshold of column j in the caller's units: ||b||, ||x|| and the initial
 * residual norm are exact, ||A|| is the one that the result reports. */
long double system_threshold(const drawn_system *s, int j);

#endif
