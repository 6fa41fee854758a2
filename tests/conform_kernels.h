/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_kernels.h - what the files of this suite share: one matrix with the
 * right answer, computed once and given to every kernel and width. */
#ifndef SPS_TEST_CONFORM_KERNELS_H
#define SPS_TEST_CONFORM_KERNELS_H

#include "image.h"
#include "oracle.h"
#include "rig.h"
#include "runner.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))
/* ck_assert_msg for inner loops: that writes to a pipe when all is well. */
#define demand(holds, ...)                                                     \
    do {                                                                       \
        if (!(holds)) ck_abort_msg(__VA_ARGS__);                               \
    } while (0)
#define FOR_KERNELS(kernel)                                                    \
    for (int i_ = 0; (kernel = rig_kernel(ctx, SPS_OP_SPMM, i_)); i_++)

static inline bool quick(void) { return fixture_env("SPS_TEST_QUICK"); }

/* Types of A and of the blocks, and the integers that stay exact in them. */
typedef struct types {
    sps_dtype matrix, block;
    zoo_values exact;
} types;

enum { TYPES = 5, ALL_TYPES = -1 };
extern const types TYPE[TYPES];

/* Whether the kernel is to be judged in these types: ZOO_INTEGER needs all
 * bits, ZOO_SMALL in blocks of doubles is for those that drop some. */
bool takes(const sps_kernel *kernel, const types *t);
/* Whether any kernel is. */
bool wanted(const types *t);

/* Widths at the edges of kernels: up to 200, and a few of them. */
extern const int WIDTHS[], WIDTH_COUNT, FEW[], FEW_COUNT;

/* One matrix, X and the old Y with columns for every width, and A X. */
typedef struct exam {
    rig r;
    const types *t;
    zoo_values values;
    bool lean;                /* dear: each kernel in one of its types */
    int k;                    /* columns of the arrays below, and their ld */
    double *x, *y;
    long double *sum, *size;  /* A X and |A| |X| */
    double *scalars;          /* room for two and one before, in the place */
} exam;

extern sps_context *ctx;      /* of the test that runs */
extern int layout;            /* counts trials, so that layouts take turns */

void exam_open(exam *e, int family, int64_t n, zoo_values values,
               const types *t, int k);
/* Takes A over; its values are of the same kind. */
void exam_take(exam *e, const char *what, sps_csr *A, zoo_values values,
               const types *t, int k);
/* The right answers anew: r.A has other values. */
void exam_solve(exam *e);
void exam_close(exam *e);

/* Y = alpha A X + beta Y of the first k columns with the plan of the rig.
 * placed: the scalars lie in the place. */
typedef struct trial {
    int k, layout;            /* of X; counting on goes through all pairs */
    double alpha, beta;
    bool placed;
} trial;

/* Runs and judges: integers bit for bit, other values within the row-wise
 * bound.  Old Y is NaN when beta = 0, X is NaN when alpha = 0. */
void try(const exam *e, const trial *t);
/* How far element (i, j) may be from the right one. */
long double allowed(const exam *e, const trial *t, int64_t i, int j);
/* Runs on blocks, and waits. */
void run(const exam *e, const trial *t, const sps_block *X, sps_block *Y);
/* Judges what image_read found; what: of the run. */
void judge(const exam *e, const trial *t, const image *Y, const char *what);
/* The plan of r at this width, tried once: a layout and scalars in turn. */
void try_in_turn(const exam *e, int k);

/* Arrays of one value. */
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
