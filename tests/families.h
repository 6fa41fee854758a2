/* SPDX-License-Identifier: BSD-3-Clause */
/* families.h - pencils of many kinds, structured and drawn, as they come from
 * applications and as they trouble methods. */
#ifndef SPS_TEST_FAMILIES_H
#define SPS_TEST_FAMILIES_H

#include "draw.h"
#include "pencil.h"

typedef enum family_mass {
    FAMILY_EITHER, FAMILY_PLAIN, FAMILY_MASS   /* with M or without; never; always */
} family_mass;

typedef struct family {
    const char *name;
    /* Fills a, m of an open pencil of p->n rows and may set the guess, options,
     * null space and units. */
    void (*fill)(pencil *p, draw *d);
    int (*size)(int n);        /* a number of rows it has, near n; NULL: any */
    family_mass mass;
    bool easy;                 /* found without a preconditioner as well, and by
                                  polynomials of A */
} family;

extern const family families[];
extern const int family_count;

/* Opens pencil `number` of a series, of at most `most` rows, for a method that
 * takes a mass matrix or not; which end, how many pairs, with what
 * preconditioner is drawn.  Only easy families where `easy`.  Its family. */
const family *family_open(pencil *p, sps_context *ctx, int number, int most,
                          bool mass, bool easy);
/* Fills a generalised pencil whose unknowns are in units from 1e-6 to 1e6. */
void family_far_units(pencil *p, uint64_t seed);

#endif
