/* SPDX-License-Identifier: BSD-3-Clause */
/* beside_mpi.c - check_mpi.sh: factors in a program that has an MPI of its own,
 * whose functions the factor module's dummies must not replace, nor the
 * reverse. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "spsolve.h"

enum { N = 300 };

/* -1 2.5 -1, X = 1: whether factors find it. */
static int solved(void)
{
    sps_context_options o;
    sps_context *ctx = NULL;
    sps_csr *A = NULL;
    sps_operator *op = NULL;
    sps_precond *M = NULL;
    sps_block *B = NULL, *X = NULL;
    sps_options opt;
    double b[N], x[N], worst = 0;
    int64_t q = 0;

    sps_context_options_default(&o);
    o.place = SPS_HOST;
    if (sps_context_create(&o, &ctx, NULL) != SPS_OK ||
        sps_csr_create(ctx, N, N, 3 * N - 2, SPS_F64, &A) != SPS_OK)
        return 0;
    for (int i = 0; i < N; i++) {
        b[i] = 0;
        for (int j = i - 1; j <= i + 1; j++) {
            if (j < 0 || j >= N) continue;
            A->col[q] = j;
            ((double *)A->val)[q++] = i == j ? 2.5 : -1;
            b[i] += i == j ? 2.5 : -1;
        }
        A->rowptr[i + 1] = q;
    }
    sps_options_default(&opt);
    opt.precond = "factor";
    if (sps_operator_csr(ctx, A, 1, NULL, &op) != SPS_OK ||
        sps_precond_create(op, 1, &opt, &M) != SPS_OK ||
        sps_block_create(ctx, N, 1, &B) != SPS_OK ||
        sps_block_create(ctx, N, 1, &X) != SPS_OK ||
        sps_block_set(B, 0, 1, b, 1, SPS_ROW_MAJOR, SPS_HOST) != SPS_OK ||
        sps_precond_apply(M, B, X) != SPS_OK ||
        sps_block_get(X, 0, 1, x, 1, SPS_ROW_MAJOR, SPS_HOST) != SPS_OK) {
        fprintf(stderr, "%s\n", sps_context_error(ctx));
        return 0;
    }
    for (int i = 0; i < N; i++)
        if (x[i] - 1 > worst || 1 - x[i] > worst) worst = x[i] > 1 ? x[i] - 1
                                                                   : 1 - x[i];
    sps_block_destroy(&B);
    sps_block_destroy(&X);
    sps_precond_destroy(&M);
    sps_operator_destroy(&op);
    sps_csr_destroy(ctx, &A);
    sps_context_destroy(&ctx);
    return worst < 1e-12;
}

/* 1 + 2 + .. + size. */
static int adds_up(void)
{
    int rank, size, sum = 0, mine;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    mine = rank + 1;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return sum == size * (size + 1) / 2;
}

int main(int argc, char **argv)
{
    int good, initialised = 0, size;

    good = argc < 2 || solved();          /* before MPI_Init, if asked */
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    good = good && adds_up() && solved() && adds_up() && solved();
    MPI_Initialized(&initialised);
    printf("%d of %d processes: %s\n", size, size, good ? "good" : "wrong");
    MPI_Finalize();
    return good && initialised ? EXIT_SUCCESS : EXIT_FAILURE;
}
