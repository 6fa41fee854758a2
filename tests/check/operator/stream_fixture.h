/* SPDX-License-Identifier: BSD-3-Clause */
/* stream_fixture.h - for suites of streamed products: a context `ctx` that takes
 * a limited part of the memory of its GPU, one `near` without a limit, and
 * products of operators of both. */
#ifndef SPS_TEST_STREAM_FIXTURE_H
#define SPS_TEST_STREAM_FIXTURE_H

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/stream/stream_plan.h"
#include "operator/operator.h"
#include "tests/problems/row_lengths.h"
#include "tests/problems/zoo.h"
#include "tests/support/fixture.h"
#include "tests/support/runner.h"

static sps_context *ctx, *near;

static inline void open_contexts(void)
{
    if (runner_place() == SPS_HOST) return;
    ctx = fixture_open();
    near = fixture_open();
}

static inline void close_contexts(void)
{
    if (ctx) fixture_close(&ctx);
    if (near) fixture_close(&near);
}

#define GPU_ONLY()                                                             \
    if (runner_place() == SPS_HOST)                                            \
    runner_leave_out("the host streams nothing")

/* From here on ctx may take `more` bytes. */
static inline void limit(size_t more)
{
    ctx->opt.max_device_bytes = ctx->memory.device + more;
}

/* The least that leaves blocks of k columns and the smallest ring their room,
 * and `panels` bytes. */
static inline void limit_for(const sps_csr *A, int k, size_t panels)
{
    const size_t least = (size_t)4 << 20;
    const size_t ring = (12 * (size_t)A->nnz + 8 * (size_t)A->nrow) / 8;

    limit(spsi_blocks_room(A->nrow > A->ncol ? A->nrow : A->ncol, k) +
          (ring < least ? ring : least) + panels);
}

static inline sps_operator *operator_with(sps_context *c, sps_csr *A, int k,
                                   const char *kernel)
{
    sps_operator *op = NULL;
    sps_options o;

    sps_options_default(&o);
    o.kernel = kernel;
    OK(c, sps_operator_csr(c, A, k, &o, &op));
    return op;
}

static inline sps_stream_plan *streaming(sps_operator *op)
{
    ck_assert_str_eq(op->block->kernel->name, "spmm.stream");
    return (sps_stream_plan *)op->block;
}

/* Y = 0.5 A X - 0.25 Y, from seeds, as row-major numbers. */
static inline double *product(sps_operator *op, int k)
{
    sps_context *c = op->ctx;
    double *y = malloc((size_t)op->n * (size_t)k * sizeof *y);
    sps_block *X = fixture_block(c, op->ncol, k, NULL, 0);
    sps_block *Y = fixture_block(c, op->n, k, NULL, 0);

    OK(c, sps_block_random(X, 3));
    OK(c, sps_block_random(Y, 4));
    OK(c, sps_operator_apply(op, 0.5, X, -0.25, Y));
    OK(c, sps_block_get(Y, 0, k, y, k, SPS_ROW_MAJOR, SPS_HOST));
    sps_block_destroy(&X);
    sps_block_destroy(&Y);
    return y;
}

static inline bool same(const double *a, const double *b, int64_t count)
{
    return memcmp(a, b, (size_t)count * sizeof *a) == 0;
}

/* Values that need all of their bits. */
static inline sps_csr *matrix(const int64_t *lengths, int count, int64_t n,
                       int64_t ncol)
{
    return row_lengths_matrix(lengths, count, n, ncol, false);
}

/* The products of op have these bits, in `passes` passes, with 1 and k
 * columns. */
static inline void products_are(sps_operator *op, sps_operator *right, int k,
                         int passes)
{
    for (int some = 1; some <= k; some += k > 1 ? k - 1 : 1) {
        double *want = product(right, some);

        for (int i = 0; i < passes; i++) {
            double *y = product(op, some);

            ck_assert_msg(same(y, want, op->n * some), "pass %d, %d columns: "
                          "other bits", i, some);
            free(y);
        }
        free(want);
    }
}

typedef struct answer {
    double *x;
    sps_result result;
} answer;

static inline answer solve(sps_context *c, sps_csr *A, int k, const char *solver,
                    const char *kernel)
{
    answer a = { .x = malloc((size_t)A->nrow * (size_t)k * sizeof *a.x),
                 .result = { .struct_size = sizeof a.result } };
    sps_block *B = fixture_block(c, A->nrow, k, NULL, 0);
    sps_block *X = fixture_block(c, A->nrow, k, NULL, 0);
    sps_operator *op = operator_with(c, A, k, kernel);
    sps_solver *s = NULL;
    sps_options o;

    sps_options_default(&o);
    o.solver = solver;
    o.precond = "jacobi";
    o.rtol = 1e-9;
    o.restart = 5;             /* its blocks are among the twelve that have
                                  room */
    OK(c, sps_block_random(B, 5));
    OK(c, sps_solver_create(op, NULL, k, &o, &s));
    OK(c, sps_solver_linear(s, B, X, &a.result));
    OK(c, sps_block_get(X, 0, k, a.x, k, SPS_ROW_MAJOR, SPS_HOST));
    sps_solver_destroy(&s);
    sps_operator_destroy(&op);
    sps_block_destroy(&X);
    sps_block_destroy(&B);
    return a;
}

/* A symmetric, diagonally dominant band of 2 half + 1 diagonals, whose entries
 * beside the diagonal take `values` values. */
static inline sps_csr *band_of(int64_t n, int64_t half, int64_t values)
{
    const int64_t lengths[] = { 2 * half + 1 };
    sps_csr *A = row_lengths_matrix(lengths, 1, n, n, false);
    double *v = A->val;
    int64_t e = 0;

    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = i > half ? i - half : 0; j < n && j <= i + half;
             j++, e++) {
            A->col[e] = (int32_t)j;
            v[e] = i == j ? 70.0 : -1.0 / (1.0 + (double)((i + j) % values));
        }
        A->rowptr[i + 1] = e;
    }
    A->nnz = e;
    A->props |= SPS_SYMMETRIC | SPS_SPD;
    return A;
}

static inline sps_csr *band(int64_t n) { return band_of(n, 30, 97); }

#endif
