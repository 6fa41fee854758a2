/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_sddmm.h - shared by the files of this suite: one run of a plan on
 * guarded blocks, compared with the oracle. */
#ifndef SPS_TEST_CONFORM_SDDMM_H
#define SPS_TEST_CONFORM_SDDMM_H

#include <check.h>
#include <math.h>

#include "block/block.h"
#include "tests/support/image.h"
#include "tests/support/oracle.h"
#include "tests/support/rig.h"
#include "tests/support/runner.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))
#define FOR_KERNELS(kernel)                                                    \
    for (int i_ = 0; (kernel = rig_kernel(ctx, SPS_OP_SDDMM, i_)); i_++)

/* Types of A and of the blocks, and the integer data that stay exact in
 * them. */
typedef struct types {
    sps_dtype matrix, block;
    zoo_values exact;
} types;

enum { TYPES = 3 };
extern const types TYPE[TYPES];

/* Inner dimensions at the boundaries of pairs, fragments and groups of
 * lanes. */
extern const int WIDTHS[], WIDTH_COUNT;

extern sps_context *ctx;     /* of the test that runs */

typedef struct trial {
    const rig *r;
    int k, layout;           /* layout of U, and LAYOUTS times that of V */
    double alpha, beta;
    bool multiply;
    zoo_values values;
} trial;

static inline bool quick(void) { return fixture_env("SPS_TEST_QUICK"); }

void rig_open_as(rig *r, int family, int64_t n, zoo_values values,
                 const types *t);
/* Runs the kernel and synchronises. */
void sample(const rig *r, const trial *t, const image *U, const image *V,
            const image *val);
/* Runs and checks: integer data bit for bit, random values within the error
 * bound.  Old values are NaN when beta = 0, U and V are NaN when alpha = 0. */
void try(const trial *t);
/* Integer data; layouts and scalars alternate. */
void try_in_turn(const rig *r, const types *t, int k);

/* Tests by file. */
void add_exact(TCase *t);
void add_others(TCase *t);

#endif
