/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi_pairs.c - one system by each pair of a method and a preconditioner, as
 * one of the processes of an mpirun; check_processes.sh compares the output.
 *   usage: mpirun -n P mpi_pairs A.mtx [across]
 * Process 0 prints for each pair METHOD PRECOND VERDICT ITERATIONS; the verdict
 * of a pair that is refused is the name of the status. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spsolve.h"

enum { K = 3 };

typedef struct problem {
    sps_context *ctx;
    sps_csr *A;
    sps_block *B;
    int rank;
} problem;

static int check(const problem *s, sps_status st)
{
    if (st == SPS_OK) return 0;
    fprintf(stderr, "process %d: %s\n", s->rank, sps_context_error(s->ctx));
    return 1;
}

/* Words instead of blanks, so that a verdict is one field. */
static void print(const problem *s, const char *solver, const char *precond,
                  const char *verdict, int iterations)
{
    if (s->rank > 0) return;
    printf("%s %s ", solver, precond);
    for (; *verdict; verdict++) putchar(*verdict == ' ' ? '_' : *verdict);
    printf(" %d\n", iterations);
    fflush(stdout);
}

static int solve(const problem *s, const char *solver, const char *precond)
{
    sps_result r = { .struct_size = sizeof r };
    sps_operator *op = NULL;
    sps_solver *of = NULL;
    sps_block *X = NULL;
    sps_options opt;
    sps_status st;

    sps_options_default(&opt);
    opt.solver = solver;
    opt.precond = precond;
    opt.nullspace = "none";
    opt.max_iterations = 1000;
    if (check(s, sps_operator_csr(s->ctx, s->A, K, &opt, &op))) return 1;
    if (check(s, sps_block_create(s->ctx, s->A->nrow, K, &X))) return 1;
    st = sps_solver_create(op, NULL, K, &opt, &of);
    if (st == SPS_OK) st = sps_solver_linear(of, s->B, X, &r);
    print(s, solver, precond, st == SPS_OK ? sps_stop_string(r.stop)
                                           : sps_status_string(st),
          st == SPS_OK ? r.iterations : 0);
    sps_solver_destroy(&of);
    sps_operator_destroy(&op);
    sps_block_destroy(&X);
    return 0;
}

static int all_pairs(const problem *s)
{
    const char *solver, *precond;
    int failed = 0;

    for (int i = 0; (solver = sps_list(NULL, "solver", i)); i++)
        for (int j = 0; (precond = sps_list(NULL, "precond", j)); j++)
            failed += solve(s, solver, precond);
    return failed;
}

int main(int argc, char **argv)
{
    sps_context_options o;
    const char *error = "usage: mpi_pairs A.mtx [across]";
    sps_comm *comm = NULL;
    problem s = { 0 };
    int failed = 1;

    sps_context_options_default(&o);
    o.place = SPS_HOST;
    o.threads = 1;
    o.across_ranks = argc > 2 && !strcmp(argv[2], "across");
    if (argc < 2 || sps_comm_mpi(SPS_MPI_WORLD, &comm) != SPS_OK) {
        fprintf(stderr, "%s\n", argc < 2 ? error : sps_context_error(NULL));
        return 1;
    }
    sps_comm_shape(comm, &s.rank, NULL);
    o.comm = comm;
    if (sps_context_create(&o, &s.ctx, &error) != SPS_OK)
        fprintf(stderr, "%s\n", error);
    else if (!check(&s, sps_csr_read(s.ctx, argv[1], NULL, NULL, &s.A)) &&
             !check(&s, sps_block_create(s.ctx, s.A->nrow, K, &s.B)) &&
             !check(&s, sps_block_random_rows(s.B, 7, s.A->first)))
        failed = all_pairs(&s);
    sps_block_destroy(&s.B);
    sps_csr_destroy(s.ctx, &s.A);
    sps_context_destroy(&s.ctx);
    sps_comm_destroy(&comm);
    return failed > 0;
}
