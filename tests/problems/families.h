/* SPDX-License-Identifier: BSD-3-Clause */
/* families.h - pencils of many kinds, structured and random, from applications
 * or difficult for eigensolvers. */
#ifndef SPS_TEST_FAMILIES_H
#define SPS_TEST_FAMILIES_H

#include "tests/support/draw.h"
#include "tests/problems/pencil.h"

typedef enum family_mass {
    FAMILY_EITHER, FAMILY_PLAIN, FAMILY_MASS   /* optional M; none; required */
} family_mass;

typedef struct family {
    const char *name;
    /* Fills a, m of an open pencil of p->n rows and may set the guess, options,
     * null space and units. */
    void (*fill)(pencil *p, draw *d);
    int (*size)(int n);        /* an admissible number of rows near n; NULL:
                                  any */
    family_mass mass;
    bool easy;                 /* solvable without a preconditioner, and by
                                  polynomials of A */
} family;

extern const family families[];
extern const int family_count;

/* Opens pencil `number` of a series, with at most `most` rows, for a method
 * that accepts a mass matrix or not.  The end of the spectrum, the number of
 * pairs and the preconditioner are drawn. `easy`: from easy families only.
 * Returns its family. */
const family *family_open(pencil *p, sps_context *ctx, int number, int most,
                          bool mass, bool easy);
/* Fills a generalised pencil whose unknowns are scaled by 1e-6 to 1e6. */
void family_far_units(pencil *p, uint64_t seed);

#endif
