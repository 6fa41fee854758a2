/* SPDX-License-Identifier: BSD-3-Clause */
/* matrix_free.c - operator and preconditioner are functions, without a matrix:
 * A = tridiagonal(-1, 2 + h_i, -1), M = 1 / diagonal, 4 right-hand sides. */
#include <spsolve.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 2000, K = 4 };

static sps_context *ctx;

static void check(sps_status st)
{
    if (st == SPS_OK)
        return;
    fprintf(stderr, "%s: %s\n", sps_status_string(st),
            sps_context_error(ctx));
    exit(1);
}

/* Y = alpha A X + beta Y on row-major blocks; data contains h. */
static int laplacian(double alpha, const double *X, int64_t ldx, double beta,
                     double *Y, int64_t ldy, int64_t n, int k, void *stream,
                     void *data)
{
    const double *h = data;

    (void)stream;                     /* a GPU's stream; this program runs on
                                         the host */
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < k; j++) {
            double sum = (2 + h[i]) * X[i * ldx + j];

            if (i > 0)
                sum -= X[(i - 1) * ldx + j];
            if (i < n - 1)
                sum -= X[(i + 1) * ldx + j];
            /* If beta = 0, Y must not be read: it may contain anything. */
            Y[i * ldy + j] = alpha * sum +
                             (beta != 0 ? beta * Y[i * ldy + j] : 0);
        }
    return 0;
}

/* Z = M R.  The library always calls this with alpha = 1 and beta = 0. */
static int jacobi(double alpha, const double *R, int64_t ldr, double beta,
                  double *Z, int64_t ldz, int64_t n, int k, void *stream,
                  void *data)
{
    const double *h = data;

    (void)alpha, (void)beta, (void)stream;
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < k; j++)
            Z[i * ldz + j] = R[i * ldr + j] / (2 + h[i]);
    return 0;
}

int main(void)
{
    static double h[N];
    sps_context_options where;
    sps_operator *A;
    sps_precond *M;
    sps_solver *s;
    sps_block *B, *X;
    sps_result r = {.struct_size = sizeof r};

    for (int i = 0; i < N; i++)
        h[i] = 0.01 * (1 + i % 7);
    sps_context_options_default(&where);
    where.place = SPS_HOST;
    if (sps_context_create(&where, &ctx, NULL))
        return 1;
    check(sps_operator_user(ctx, N, laplacian, h, SPS_SYMMETRIC | SPS_SPD,
                            &A));
    check(sps_precond_user(ctx, N, jacobi, h, &M));
    check(sps_block_create(ctx, N, K, &B));
    check(sps_block_create(ctx, N, K, &X));
    check(sps_block_random(B, 1));
    check(sps_solver_create(A, M, K, NULL, &s));
    check(sps_solver_linear(s, B, X, &r));
    printf("%s with %s: %s after %d iterations, residual %.1e\n", r.solver,
           r.precond, sps_stop_string(r.stop), r.iterations,
           r.worst_residual);
    sps_solver_destroy(&s);
    sps_block_destroy(&X);
    sps_block_destroy(&B);
    sps_precond_destroy(&M);
    sps_operator_destroy(&A);
    sps_context_destroy(&ctx);
    return r.stop > 0 ? 0 : 1;
}
