/* SPDX-License-Identifier: BSD-3-Clause */
/* time_steps.c - many solves with one pattern and new values: u' = (c(t) u')'
 * in implicit steps, (I + dt c(t) L) u_new = u.  Everything is allocated before
 * the first step; the program's allocator counts allocations to prove it. */
#include <spsolve.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 4000, K = 4, STEPS = 10, NNZ = 3 * N - 2 };

static sps_context *ctx;
static long allocations;

static void *count_alloc(size_t bytes, void *data)
{
    (void)data;
    allocations++;
    return malloc(bytes);
}

static void count_free(void *p, size_t bytes, void *data)
{
    (void)bytes, (void)data;
    free(p);
}

static void check(sps_status st)
{
    if (st == SPS_OK)
        return;
    fprintf(stderr, "%s: %s\n", sps_status_string(st),
            sps_context_error(ctx));
    exit(1);
}

/* Writes the values of I + c L in the order of the csr. */
static void fill(sps_csr *A, double c)
{
    double *val = A->val;
    int64_t p = 0;

    for (int32_t i = 0; i < N; i++) {
        for (int32_t j = i > 0 ? i - 1 : 0; j <= i + 1 && j < N; j++) {
            A->col[p] = j;
            val[p++] = i == j ? 1 + 2 * c : -c;
        }
        A->rowptr[i + 1] = p;
    }
}

int main(void)
{
    sps_context_options where;
    sps_options opt;
    const sps_allocator hooks = {.struct_size = sizeof hooks,
                                 .alloc = count_alloc, .free = count_free};
    sps_csr *A;
    sps_operator *op;
    sps_precond *M;
    sps_solver *s;
    sps_block *U, *V;
    sps_result r = {.struct_size = sizeof r};
    long before = 0;
    int bad = 0;

    sps_context_options_default(&where);
    where.host = &hooks;
    if (sps_context_create(&where, &ctx, NULL))
        return 1;
    sps_options_default(&opt);
    opt.precond = "jacobi";
    check(sps_csr_create(ctx, N, N, NNZ, SPS_F64, &A));
    fill(A, 1);
    A->props = SPS_SYMMETRIC | SPS_SPD;
    check(sps_operator_csr(ctx, A, K, &opt, &op));
    check(sps_precond_create(op, K, &opt, &M));
    check(sps_solver_create(op, M, K, &opt, &s));
    check(sps_block_create(ctx, N, K, &U));
    check(sps_block_create(ctx, N, K, &V));
    check(sps_block_random(U, 1));
    for (int step = 0; step < STEPS && !bad; step++) {
        if (step == 1)
            before = allocations;
        fill(A, 1 + 0.5 * step);                 /* new values, same pattern */
        check(sps_operator_set_values(op, A->val, SPS_HOST));
        check(sps_precond_update(M));
        check(sps_solver_linear(s, U, V, &r));   /* the initial guess is the
                                                    last V */
        printf("step %d: %d iterations, residual %.1e\n", step, r.iterations,
               r.worst_residual);
        bad = r.stop <= 0;
        sps_block *swap = U;
        U = V, V = swap;
    }
    printf("allocations after the first step: %ld\n", allocations - before);
    bad |= allocations != before;
    sps_block_destroy(&V);
    sps_block_destroy(&U);
    sps_solver_destroy(&s);
    sps_precond_destroy(&M);
    sps_operator_destroy(&op);
    sps_csr_destroy(ctx, &A);
    sps_context_destroy(&ctx);
    return bad;
}
