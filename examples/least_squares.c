/* SPDX-License-Identifier: BSD-3-Clause */
/* least_squares.c - an operator that is a function of other operators, on the
 * host or on a GPU.  The program smooths K noisy signals b by
 *
 *     min ||x - b||^2 + ||c D x||^2,   D x = differences of neighbours,
 *
 * which is A'A x = A'[b; 0] with A = [I; c D].  A'A is never formed: a callback
 * wraps the blocks that it receives and lets the library multiply by A and
 * A'. */
#include <spsolve.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 20000, M = 2 * N - 1, K = 8, NNZ = N + 2 * (N - 1) };

typedef struct product {
    sps_context *ctx;
    sps_operator *A, *At;
    sps_block *W;                     /* M x K: A X */
} product;

static sps_context *ctx;

static void check(sps_status st)
{
    if (st == SPS_OK)
        return;
    fprintf(stderr, "%s: %s\n", sps_status_string(st),
            sps_context_error(ctx));
    exit(1);
}

/* Y = alpha A'A X + beta Y.  The blocks are where the context computes, and may
 * have fewer than K columns: converged columns are removed. */
static int multiply(double alpha, const double *X, int64_t ldx, double beta,
                    double *Y, int64_t ldy, int64_t n, int k, void *stream,
                    void *data)
{
    const product *p = data;
    sps_block *x = NULL, *y = NULL, *w = NULL;
    int64_t ldw;
    double *room = sps_block_data(p->W, &ldw);
    sps_status st;

    (void)stream;                     /* the library's stream; its products are
                                         in order with it */
    st = sps_block_wrap(p->ctx, n, k, (double *)(uintptr_t)X, ldx, &x);
    if (st == SPS_OK)
        st = sps_block_wrap(p->ctx, n, k, Y, ldy, &y);
    if (st == SPS_OK)
        st = sps_block_wrap(p->ctx, M, k, room, ldw, &w);
    if (st == SPS_OK)
        st = sps_operator_apply(p->A, 1, x, 0, w);
    if (st == SPS_OK)
        st = sps_operator_apply(p->At, alpha, w, beta, y);
    sps_block_destroy(&x);
    sps_block_destroy(&y);
    sps_block_destroy(&w);
    return (int)st;                   /* if not 0, the solve ends with
                                         SPS_EUSER */
}

/* Returns A = [I; c D], or its transpose. */
static sps_csr *matrix(double c, int transposed)
{
    sps_csr *A = NULL;
    double *val;
    int64_t q = 0, rows = transposed ? N : M;

    check(sps_csr_create(ctx, rows, transposed ? M : N, NNZ, SPS_F64, &A));
    val = A->val;
    for (int32_t i = 0; i < rows; i++) {
        if (i < N) {
            A->col[q] = i;
            val[q++] = 1;
        }
        if (transposed && i > 0) {    /* entries of a column of D */
            A->col[q] = N + i - 1;
            val[q++] = c;
        }
        if (transposed && i < N - 1) {
            A->col[q] = N + i;
            val[q++] = -c;
        }
        for (int32_t j = i - N; !transposed && i >= N && j < i - N + 2; j++) {
            A->col[q] = j;
            val[q++] = j == i - N ? -c : c;
        }
        A->rowptr[i + 1] = q;
    }
    return A;
}

int main(void)
{
    product p = {0};
    sps_csr *A, *At;
    sps_operator *normal;
    sps_solver *s;
    sps_block *B, *X;
    sps_options opt;
    sps_result r = {.struct_size = sizeof r};

    if (sps_context_create(NULL, &ctx, NULL))
        return 1;
    p.ctx = ctx;
    A = matrix(10, 0);
    At = matrix(10, 1);
    check(sps_operator_csr(ctx, A, K, NULL, &p.A));
    check(sps_operator_csr(ctx, At, K, NULL, &p.At));
    check(sps_block_create(ctx, M, K, &p.W));
    check(sps_block_create(ctx, N, K, &B));
    check(sps_block_create(ctx, N, K, &X));
    check(sps_block_random(B, 1));    /* the right-hand side: A'[b; 0] = b */
    check(sps_operator_user(ctx, N, multiply, &p, SPS_SYMMETRIC | SPS_SPD,
                            &normal));
    sps_options_default(&opt);
    opt.precond = "none";
    check(sps_solver_create(normal, NULL, K, &opt, &s));
    check(sps_solver_linear(s, B, X, &r));
    printf("%s: %s after %d iterations, residual %.1e\n", r.solver,
           sps_stop_string(r.stop), r.iterations, r.worst_residual);
    sps_solver_destroy(&s);
    sps_operator_destroy(&normal);
    sps_block_destroy(&X);
    sps_block_destroy(&B);
    sps_block_destroy(&p.W);
    sps_operator_destroy(&p.At);
    sps_operator_destroy(&p.A);
    sps_csr_destroy(ctx, &At);
    sps_csr_destroy(ctx, &A);
    sps_context_destroy(&ctx);
    return r.stop > 0 ? 0 : 1;
}
