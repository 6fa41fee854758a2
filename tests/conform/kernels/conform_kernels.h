/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_kernels.h - shared by the files of this suite: one matrix with the
 * reference result, computed once and used for every kernel and width. */
#ifndef SPS_TEST_CONFORM_KERNELS_H
#define SPS_TEST_CONFORM_KERNELS_H

#include "tests/support/image.h"
#include "tests/support/oracle.h"
#include "tests/support/rig.h"
#include "tests/support/runner.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))
/* ck_assert_msg for inner loops: Check's macro writes to a pipe even when the
 * assertion holds. */
#define demand(holds, ...)                                                     \
    do {                                                                       \
        if (!(holds)) ck_abort_msg(__VA_ARGS__);                               \
    } while (0)
#define FOR_KERNELS(kernel)                                                    \
    for (int i_ = 0; (kernel = rig_kernel(ctx, SPS_OP_SPMM, i_)); i_++)

static inline bool quick(void) { return fixture_env("SPS_TEST_QUICK"); }

/* Types of A and of the blocks, and the integer data that stay exact in
 * them. */
typedef struct types {
    sps_dtype matrix, block;
    zoo_values exact;
} types;

enum { TYPES = 5, ALL_TYPES = -1 };
extern const types TYPE[TYPES];

/* Whether the kernel is tested with these types: ZOO_INTEGER needs full
 * precision, ZOO_SMALL in blocks of doubles is for kernels that round
 * operands. */
bool takes(const sps_kernel *kernel, const types *t);
/* Whether any kernel is tested with these types. */
bool wanted(const types *t);

/* Widths at the thresholds of kernels, up to 200, and a selection of them. */
extern const int WIDTHS[], WIDTH_COUNT, FEW[], FEW_COUNT;

/* One matrix, X and the old Y with columns for every width, and A X. */
typedef struct exam {
    rig r;
    const types *t;
    zoo_values values;
    bool lean;                /* expensive: each kernel in one of its types
                                 only */
    int k;                    /* columns of the arrays below, and their ld */
    double *x, *y;
    long double *sum, *size;  /* A X and |A| |X| */
    double *scalars;          /* room on the device for two scalars and an
                                 offset of one */
} exam;

extern sps_context *ctx;      /* of the test that runs */
extern int layout;            /* counts trials, so that layouts alternate */

void exam_open(exam *e, int family, int64_t n, zoo_values values,
               const types *t, int k);
/* Takes ownership of A; its values are of the given kind. */
void exam_take(exam *e, const char *what, sps_csr *A, zoo_values values,
               const types *t, int k);
/* Computes the reference result again after the values of r.A changed. */
void exam_solve(exam *e);
void exam_close(exam *e);

/* Y = alpha A X + beta Y of the first k columns with the plan of the rig.
 * placed: the scalars are in device memory. */
typedef struct trial {
    int k, layout;            /* of X; increasing values go through all pairs of
                                 layouts */
    double alpha, beta;
    bool placed;
} trial;

/* Runs and checks: integer data bit for bit, other values within the row-wise
 * error bound.  Old Y is NaN when beta = 0, X is NaN when alpha = 0. */
void try(const exam *e, const trial *t);
/* Error bound of element (i, j). */
long double allowed(const exam *e, const trial *t, int64_t i, int j);
/* Runs the product and synchronises. */
void run(const exam *e, const trial *t, const sps_block *X, sps_block *Y);
/* Compares what image_read returned with the reference; what: names the run. */
void judge(const exam *e, const trial *t, const image *Y, const char *what);
/* One trial of the plan of r at this width; layout and scalars alternate. */
void try_in_turn(const exam *e, int k);

/* An array filled with one value. */
double *constant(int64_t n, double value);

/* Tests by file. */
void add_exact(TCase *t);
void add_scalars(TCase *t);
void add_bounds(TCase *t);
void add_finite(TCase *t);
void add_bits(TCase *t);
void add_large(TCase *t);
void add_memory(TCase *t);

#endif
