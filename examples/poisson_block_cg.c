/* SPDX-License-Identifier: BSD-3-Clause */
/* poisson_block_cg.c - the smallest program for a linear system: -u'' on a
 * square, 8 right-hand sides at once, by block CG. */
#include <spsolve.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 60, K = 8 };                     /* N x N unknowns, K columns */

static sps_context *ctx;

static void check(sps_status st)
{
    if (st == SPS_OK)
        return;
    fprintf(stderr, "%s: %s\n", sps_status_string(st),
            sps_context_error(ctx));
    exit(1);
}

/* Fills the matrix of the 5-point stencil: 4 at the centre, -1 for each
 * neighbour; values on the boundary are 0. */
static void fill(sps_csr *A)
{
    double *val = A->val;
    int64_t p = 0;

    for (int32_t i = 0; i < N * N; i++) {
        const int32_t x = i % N, y = i / N;
        const int32_t col[5] = {i - N, i - 1, i, i + 1, i + N};
        const int there[5] = {y > 0, x > 0, 1, x < N - 1, y < N - 1};

        for (int q = 0; q < 5; q++)
            if (there[q]) {
                A->col[p] = col[q];
                val[p++] = q == 2 ? 4 : -1;
            }
        A->rowptr[i + 1] = p;
    }
    A->props = SPS_SYMMETRIC | SPS_SPD;
}

int main(void)
{
    const int64_t n = N * N;
    const char *why;
    sps_options opt;
    sps_csr *A;
    sps_operator *op;
    sps_solver *s;
    sps_block *B, *X;
    sps_result r = {.struct_size = sizeof r};

    if (sps_context_create(NULL, &ctx, &why)) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    check(sps_csr_create(ctx, n, n, 5 * n - 4 * N, SPS_F64, &A));
    fill(A);
    sps_options_default(&opt);
    opt.solver = "block_cg";
    opt.precond = "jacobi";
    check(sps_operator_csr(ctx, A, K, &opt, &op));
    check(sps_block_create(ctx, n, K, &B));
    check(sps_block_create(ctx, n, K, &X));              /* X = 0 is the initial
                                                            guess */
    check(sps_block_random(B, 1));
    check(sps_solver_create(op, NULL, K, &opt, &s));
    check(sps_solver_linear(s, B, X, &r));
    printf("%s after %d iterations, largest ||b - A x|| / ||b|| %.1e\n",
           sps_stop_string(r.stop), r.iterations, r.worst_residual);
    sps_solver_destroy(&s);
    sps_block_destroy(&X);
    sps_block_destroy(&B);
    sps_operator_destroy(&op);
    sps_csr_destroy(ctx, &A);
    sps_context_destroy(&ctx);
    return r.stop > 0 ? 0 : 1;
}
