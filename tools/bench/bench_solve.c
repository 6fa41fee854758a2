/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_solve.c - times whole solves: set-up (operator, preconditioner, solver)
 * and iterations, once cold and once again with all objects created anew.
 *
 * The lower bound of the time of an iteration is computed for the implemented
 * method (doc/numerics.md): passes over blocks of 8 n k bytes, and one read of
 * the matrix. */
#include "tools/bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct solve {
    bench *b;
    double rows, entries;         /* of all processes */
    const char *solver;
    int k;
    sps_block *B, *X;
    double setup;
    sps_result r;
} solve;

/* Returns the reads and writes of blocks in one iteration of block_cg or cg, 0
 * for other methods: 12 with fused steps (block_cg with up to 32 columns, cg on
 * a GPU); otherwise as listed in block_cg.c and cg.c, where an M that is a
 * multiple of I is applied to the first direction only. */
static int passes(const solve *s)
{
    bool applied = s->r.applies_M > 8;
    bool jacobi = !strcmp(s->r.precond, "jacobi") ||
                  !strcmp(s->r.precond, "none");

    if (!strcmp(s->r.solver, "block_cg"))
        return jacobi && s->k <= 32 ? 12 : applied ? 18 : 16;
    if (strcmp(s->r.solver, "cg")) return 0;
    return jacobi && s->b->place == SPS_CUDA ? 12 : applied ? 17 : 13;
}

static double floor_seconds(const solve *s)
{
    double matrix = 12.0 * s->entries + 4.0 * (s->rows + 1);

    return (matrix + 8.0 * s->rows * s->k * passes(s)) /
           s->b->bandwidth;
}

static void print_row(const solve *s, const char *when)
{
    const sps_seconds *t = &s->r.seconds;
    double each = t->solve / (s->r.iterations > 0 ? s->r.iterations : 1);
    char ratio[16] = "-";

    if (passes(s))
        snprintf(ratio, sizeof ratio, "%.2f", each / floor_seconds(s));
    printf("| %-8s | %4d | %-5s | %5d | %8lld | %8.4f | %8.4f | %8.4f "
           "| %8.4f | %6s | %7.3f | %7.3f | %7.3f | %7.3f | %.1e | %.1e | %s, %s "
           "| %s |\n",
           s->solver, s->k, when, s->r.iterations, (long long)s->r.applies_A,
           s->setup, t->solve, t->verify, each * 1e3, ratio, t->spmm,
           t->precond, t->gram, t->small, s->r.worst_residual,
           s->r.worst_backward, s->r.solver, s->r.precond, s->r.kernel);
    if (s->r.stop <= 0)
        printf("not converged: %s, %d of %d columns\n",
               sps_stop_string(s->r.stop), s->r.columns_converged, s->k);
    fflush(stdout);
}

/* Performs one whole solve with all its objects.  The row is printed before the
 * solver, which owns the result's names and arrays, is destroyed. */
static sps_status run(solve *s, const char *when)
{
    bench *b = s->b;
    sps_operator *A = NULL;
    sps_solver *solver = NULL;
    sps_options opt;
    sps_status st;
    const char *colon = strchr(s->solver, ':');
    char name[64];
    double start = bench_now();

    sps_options_default(&opt);
    (void)snprintf(name, sizeof name, "%s", s->solver);
    opt.solver = name;
    if (colon) {
        name[colon - s->solver] = '\0';
        opt.precision = colon + 1;
    }
    opt.precond = b->method.precond;
    if (b->method.degree > 0) opt.degree = b->method.degree;
    opt.kernel = b->kernel ? b->kernel : "auto";
    opt.rtol = b->method.rtol;
    opt.max_iterations = b->method.maxit;
    opt.max_seconds = b->method.maxtime;
    st = sps_operator_csr(b->ctx, b->A, s->k, &opt, &A);
    if (st == SPS_OK)
        st = sps_solver_create(A, NULL, s->k, &opt, &solver);
    if (st == SPS_OK)
        st = sps_context_sync(b->ctx);
    st = bench_agree(b, st);
    s->setup = bench_now() - start;
    s->r.struct_size = sizeof s->r;
    if (st == SPS_OK)
        st = sps_solver_linear(solver, s->B, s->X, &s->r);
    if (st == SPS_OK && b->of.rank == 0)
        print_row(s, when);
    sps_solver_destroy(&solver);
    sps_operator_destroy(&A);
    return st;
}

static sps_status one(const solve *system, const char *name, int k, int *wrong)
{
    static const char *const when[] = {"first", "again"};
    bench *b = system->b;
    solve s = *system;
    sps_status st;

    s.solver = name;
    s.k = k;
    st = sps_block_create(b->ctx, b->A->nrow, k, &s.B);
    if (st == SPS_OK)
        st = sps_block_random_rows(s.B, 1, b->A->first);
    for (int i = 0; i < 2 && st == SPS_OK; i++) {
        /* A new block is zero, so the initial guess is zero. */
        st = sps_block_create(b->ctx, b->A->nrow, k, &s.X);
        st = bench_agree(b, st);
        if (st == SPS_OK)
            st = run(&s, when[i]);
        sps_block_destroy(&s.X);
    }
    *wrong += st == SPS_OK && s.r.stop <= 0;
    sps_block_destroy(&s.B);
    return st;
}

static void print_heading(const solve *s)
{
    const bench *b = s->b;
    char many[40] = "";

    if (b->of.size > 1)
        snprintf(many, sizeof many, "%d processes, each ", b->of.size);
    printf("\nsolve: %s, %.0f rows, %.0f nonzeros, %s, rtol %.0e; %s%s, copy "
           "%.1f GB/s\ntimes in seconds; ms: time of an iteration; floor: this "
           "time over that of its bytes\n\n"
           "| solver   |    k | run   | iter. | products |  set-up  |   loop   "
           "|  verify  |    ms    | floor  |  spmm   | precond |  gram   |  "
           "small  | resid.  | backw.  | ended with | kernel |\n"
           "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
           "---|---|\n", b->title, s->rows, s->entries, b->method.precond,
           b->method.rtol, many, b->device, b->bandwidth / 1e9);
}

sps_status bench_solves(bench *b, int *wrong)
{
    double sizes[2] = {(double)b->A->nrow, (double)b->A->nnz};
    solve system = {.b = b};
    char list[200], *name, *rest;
    sps_status st = SPS_OK;

    launch_sum(&b->of, sizes, 2, EXIT_FAILURE);
    system.rows = sizes[0];
    system.entries = sizes[1];
    if (b->of.rank == 0) print_heading(&system);
    for (int i = 0; i < b->widths && st == SPS_OK; i++) {
        snprintf(list, sizeof list, "%s", b->method.solver);
        for (name = strtok_r(list, ",", &rest); name && st == SPS_OK;
             name = strtok_r(NULL, ",", &rest))
            st = one(&system, name, b->k[i], wrong);
    }
    return st;
}
