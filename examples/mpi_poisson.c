/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi_poisson.c - the Poisson equation on a cube, solved by several processes.
 * Each process makes the rows of its slab of the grid, with global column
 * numbers, and has the same rows of B and X.
 *
 *     mpirun -n 4 mpi_poisson [POINTS [RIGHT-HAND-SIDES]]
 *
 * The program does not call MPI itself: libspsolve loads the module for the MPI
 * whose mpirun has started the program.  Without mpirun there is one
 * process. */
#include <spsolve.h>
#include <stdio.h>
#include <stdlib.h>

static sps_comm *comm;
static int rank, size;

static void check(sps_status st, const char *text)
{
    if (st == SPS_OK) return;
    if (st != SPS_EPEER) fprintf(stderr, "process %d: %s\n", rank, text);
    sps_comm_abort(comm, 1);
    exit(1);
}

/* Returns `rows` rows, from row `first` on, of -Laplace on m^3 points, with at
 * most 7 entries each. */
static sps_csr *slab(sps_context *ctx, int64_t m, int64_t first, int64_t rows)
{
    const int64_t whole = m * m * m, step[7] = { -m * m, -m, -1, 0, 1, m,
                                                 m * m };
    int64_t *rowptr = malloc((size_t)(rows + 1) * sizeof *rowptr), nnz = 0;
    int64_t *column = malloc((size_t)(7 * rows) * sizeof *column);
    double *value = malloc((size_t)(7 * rows) * sizeof *value);
    sps_csr *A = NULL;

    if (!rowptr || !column || !value) check(SPS_ENOMEM, "no memory");
    rowptr[0] = 0;
    for (int64_t i = 0; i < rows; i++) {
        const int64_t row = first + i, x = row % m, y = row / m % m;

        for (int s = 0; s < 7; s++) {
            if ((s == 2 && x == 0) || (s == 4 && x == m - 1)) continue;
            if ((s == 1 && y == 0) || (s == 5 && y == m - 1)) continue;
            if (row + step[s] < 0 || row + step[s] >= whole) continue;
            column[nnz] = row + step[s];
            value[nnz++] = s == 3 ? 6 : -1;
        }
        rowptr[i + 1] = nnz;
    }
    /* SPS_ADOPT: the csr releases the arrays. */
    check(sps_csr_wrap_rows(ctx, first, rows, whole, nnz, rowptr, column, value,
                            SPS_F64, SPS_ADOPT, &A), sps_context_error(ctx));
    A->props |= SPS_SPD | SPS_SYMMETRIC;
    return A;
}

int main(int argc, char **argv)
{
    const int64_t m = argc > 1 ? atoi(argv[1]) : 24;
    const int k = argc > 2 ? atoi(argv[2]) : 4;
    int64_t first, rows;
    sps_context_options co;
    sps_context *ctx = NULL;
    sps_csr *A;
    sps_operator *op = NULL;
    sps_solver *solver = NULL;
    sps_block *B = NULL, *X = NULL;
    sps_options opt;
    sps_result r = { .struct_size = sizeof r };
    const char *why = "";

    /* Without mpirun comm stays NULL. */
    if (getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMI_SIZE"))
        check(sps_comm_mpi(SPS_MPI_WORLD, &comm), sps_context_error(NULL));
    sps_comm_shape(comm, &rank, &size);
    sps_context_options_default(&co);
    co.place = SPS_HOST;
    co.comm = comm;
    check(sps_context_create(&co, &ctx, &why), why);

    first = m * rank / size * m * m;
    rows = m * (rank + 1) / size * m * m - first;
    A = slab(ctx, m, first, rows);
    sps_options_default(&opt);
    opt.solver = "block_cg";
    opt.precond = "chebyshev";
    check(sps_operator_csr(ctx, A, k, &opt, &op), sps_context_error(ctx));
    check(sps_block_create(ctx, rows, k, &B), sps_context_error(ctx));
    check(sps_block_create(ctx, rows, k, &X), sps_context_error(ctx));
    check(sps_block_random_rows(B, 1, first), sps_context_error(ctx));
    check(sps_solver_create(op, NULL, k, &opt, &solver),
          sps_context_error(ctx));
    check(sps_solver_linear(solver, B, X, &r), sps_context_error(ctx));
    if (rank == 0)
        printf("%d processes, %lld unknowns, %d columns: %s after %d "
               "iterations, residual %.1e\n", size, (long long)(m * m * m), k,
               sps_stop_string(r.stop), r.iterations, r.worst_residual);

    sps_solver_destroy(&solver);
    sps_operator_destroy(&op);
    sps_block_destroy(&B);
    sps_block_destroy(&X);
    sps_csr_destroy(ctx, &A);
    sps_context_destroy(&ctx);
    sps_comm_destroy(&comm);
    return r.stop > 0 ? 0 : 1;
}
