/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_backend.h - shared by the files of this suite: the block shapes with
 * which every backend operation is tested. */
#ifndef SPS_TEST_CONFORM_BACKEND_H
#define SPS_TEST_CONFORM_BACKEND_H

#include "tests/support/frame.h"
#include "tests/support/oracle.h"
#include "tests/support/runner.h"
#include "tests/problems/zoo.h"

/* The call must succeed; otherwise the test fails with the library's error
 * text. */
#define OK(ctx, call)                                                          \
    ck_assert_msg((call) == SPS_OK, "%s: %s", #call, sps_context_error(ctx))

/* A shape: n rows, k columns, leading dimension, offset in doubles. */
typedef struct shape {
    int64_t n, ld, offset;
    int k;
} shape;

/* Shape number i; false past the last.  Every width at a small n: tight,
 * padded, and at an odd leading dimension and address; and n around the
 * boundaries of chunks and tiles at a few widths.  The small set has every
 * fifth. */
bool shape_at(int i, shape *s);
#define EACH_SHAPE(s)                                                          \
    shape s;                                                                   \
    for (int s##_ = 0; shape_at(s##_, &s); s##_ += runner_quick() ? 5 : 1)

static inline double *zeros(int64_t count)
{
    double *p = calloc((size_t)count + 1, sizeof *p);

    ck_assert_ptr_nonnull(p);
    return p;
}

/* A guarded block of shape s with zoo_block's numbers; *x_p, unless NULL, gets
 * a copy on the host (ld k). */
frame shape_frame(sps_context *ctx, const shape *s, uint64_t seed,
                  zoo_values values, double **x_p);
/* A small matrix with numbers of zoo_block; *c_p, unless NULL, gets a copy,
 * column-major with leading dimension rows. */
sps_small *shape_small(sps_context *ctx, int rows, int cols, uint64_t seed,
                       zoo_values values, double **c_p);
/* The numbers of f must be exactly x (ld k), and the guards unchanged. */
void shape_equals(frame *f, int k, const double *x, const char *what);
/* The numbers of C must be exactly c (column-major, ld = rows). */
void small_equals(const sps_small *C, int rows, int cols, const double *c,
                  const char *what);
/* The same within 4 (length + 4) u bound. */
void small_near(const sps_small *C, int rows, int cols, const double *c,
                const double *bound, int64_t length, const char *what);

/* Each file adds its tests. */
void conform_moves(TCase *t);
void conform_sums(TCase *t);
void conform_fused(TCase *t);
void conform_matrix(TCase *t);
void conform_small(TCase *t);
void conform_basis(TCase *t);
void conform_own(TCase *t);

#endif
