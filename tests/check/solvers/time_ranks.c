/* SPDX-License-Identifier: BSD-3-Clause */
/* time_ranks.c - the time of an iteration of a method by several processes with
 * a GPU each, on the 7-point Laplacian: run by name, not a test.
 *   usage: mpirun -n P time_ranks X Y Z [COLUMNS [PRECOND [ITERATIONS [cpu]]]]
 * X x Y x Z points of the grid for each process, in slabs along z, so that the
 * system grows with P.  The second of two solves is shown, of as many
 * iterations on all. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spsolve.h"

static sps_comm *comm;
static int rank, size;

static void check(sps_status st, const char *text)
{
    if (st == SPS_OK) return;
    fprintf(stderr, "process %d: %s\n", rank, text);
    sps_comm_abort(comm, 1);
    exit(1);
}

static sps_csr *slab(sps_context *ctx, int64_t nx, int64_t ny, int64_t nz)
{
    const int64_t rows = nx * ny * nz, first = rank * rows;
    const int64_t whole = rows * size, face = nx * ny;
    const int64_t step[7] = { -face, -nx, -1, 0, 1, nx, face };
    int64_t *rowptr = malloc((size_t)(rows + 1) * sizeof *rowptr), nnz = 0;
    int64_t *column = malloc((size_t)(7 * rows) * sizeof *column);
    double *value = malloc((size_t)(7 * rows) * sizeof *value);
    sps_csr *A = NULL;

    if (!rowptr || !column || !value) check(SPS_ENOMEM, "no memory");
    rowptr[0] = 0;
    for (int64_t i = 0; i < rows; i++) {
        const int64_t row = first + i, x = row % nx, y = row / nx % ny;

        for (int s = 0; s < 7; s++) {
            if ((s == 2 && x == 0) || (s == 4 && x == nx - 1)) continue;
            if ((s == 1 && y == 0) || (s == 5 && y == ny - 1)) continue;
            if (row + step[s] < 0 || row + step[s] >= whole) continue;
            column[nnz] = row + step[s];
            value[nnz++] = s == 3 ? 6 : -1;
        }
        rowptr[i + 1] = nnz;
    }
    check(sps_csr_wrap_rows(ctx, first, rows, whole, nnz, rowptr, column, value,
                            SPS_F64, SPS_ADOPT, &A), sps_context_error(ctx));
    A->props |= SPS_SPD | SPS_SYMMETRIC;
    return A;
}

static void solve(sps_context *ctx, sps_solver *s, const sps_block *B,
                  int64_t n, int k, bool shown)
{
    sps_result r = { .struct_size = sizeof r };
    sps_block *X = NULL;

    check(sps_block_create(ctx, n, k, &X), "no memory for X");
    check(sps_solver_linear(s, B, X, &r), sps_context_error(ctx));
    sps_block_destroy(&X);
    if (rank > 0 || !shown) return;
    printf("%d processes, %d iterations, %s, %s, %s: %.1f us an iteration "
           "(product %.1f, blocks %.1f, precond %.1f); residual %.1e\n", size,
           r.iterations, r.solver, r.precond, r.kernel,
           1e6 * r.seconds.solve / r.iterations,
           1e6 * r.seconds.spmm / r.iterations,
           1e6 * r.seconds.gram / r.iterations,
           1e6 * r.seconds.precond / r.iterations, r.worst_residual);
    for (int i = 0; sps_context_note(ctx, i); i++)
        printf("    %s\n", sps_context_note(ctx, i));
}

int main(int argc, char **argv)
{
    const int64_t n[3] = { argc > 1 ? atoi(argv[1]) : 64,
                           argc > 2 ? atoi(argv[2]) : 64,
                           argc > 3 ? atoi(argv[3]) : 64 };
    const int64_t rows = n[0] * n[1] * n[2];
    const int k = argc > 4 ? atoi(argv[4]) : 16;
    const bool host = argc > 7 && !strcmp(argv[7], "cpu");
    sps_context_options co;
    sps_context *ctx = NULL;
    sps_operator *op = NULL;
    sps_solver *solver = NULL;
    sps_block *B = NULL;
    sps_options opt;
    const char *why = "";
    sps_csr *A;

    if (getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMI_SIZE"))
        check(sps_comm_mpi(SPS_MPI_WORLD, &comm), sps_context_error(NULL));
    sps_comm_shape(comm, &rank, &size);
    sps_context_options_default(&co);
    co.place = host ? SPS_HOST : SPS_CUDA;
    co.comm = comm;
    check(sps_context_create(&co, &ctx, &why), why);
    A = slab(ctx, n[0], n[1], n[2]);
    sps_options_default(&opt);
    opt.solver = "block_cg";
    opt.precond = argc > 5 ? argv[5] : "none";
    opt.max_iterations = argc > 6 ? atoi(argv[6]) : 200;
    opt.rtol = 1e-12;
    opt.nullspace = "none";
    check(sps_operator_csr(ctx, A, k, &opt, &op), sps_context_error(ctx));
    check(sps_block_create(ctx, rows, k, &B), "no memory for B");
    check(sps_block_random(B, 1), sps_context_error(ctx));
    check(sps_solver_create(op, NULL, k, &opt, &solver),
          sps_context_error(ctx));
    solve(ctx, solver, B, rows, k, false);
    solve(ctx, solver, B, rows, k, true);
    sps_solver_destroy(&solver);
    sps_operator_destroy(&op);
    sps_block_destroy(&B);
    sps_csr_destroy(ctx, &A);
    sps_context_destroy(&ctx);
    sps_comm_destroy(&comm);
    return 0;
}
