/* SPDX-License-Identifier: BSD-3-Clause */
/* client.c - what a user of the installed library writes: diag(1, 2, 4) x = b
 * for two right-hand sides.  Compiled by check_install.sh as C and as C++. */
#include <spsolve.h>

#include <stdio.h>

static int report(sps_context *ctx, const char *what)
{
    fprintf(stderr, "client: %s: %s\n", what,
            ctx ? sps_context_error(ctx) : "");
    return 1;
}

int main(void)
{
    int64_t rowptr[] = { 0, 1, 2, 3 };
    int32_t col[] = { 0, 1, 2 };
    double val[] = { 1, 2, 4 }, b[] = { 1, 4, 2, 8, 4, 16 }, x[6];
    sps_context_options o;
    sps_context *ctx = NULL;
    sps_csr *A = NULL;
    sps_operator *op = NULL;
    sps_solver *s = NULL;
    sps_block *B = NULL, *X = NULL;
    sps_result result;

    result.struct_size = sizeof result;
    sps_context_options_default(&o);
    o.place = SPS_HOST;
    if (sps_context_create(&o, &ctx, NULL)) return report(NULL, "context");
    if (sps_csr_wrap(ctx, 3, 3, 3, rowptr, col, val, SPS_F64, SPS_HOST,
                     SPS_BORROW, &A) ||
        sps_operator_csr(ctx, A, 2, NULL, &op) ||
        sps_block_create(ctx, 3, 2, &B) || sps_block_create(ctx, 3, 2, &X) ||
        sps_block_set(B, 0, 2, b, 2, SPS_ROW_MAJOR, SPS_HOST) ||
        sps_solver_create(op, NULL, 2, NULL, &s) ||
        sps_solver_linear(s, B, X, &result) ||
        sps_block_get(X, 0, 2, x, 2, SPS_ROW_MAJOR, SPS_HOST))
        return report(ctx, "solve");
    if (result.stop != SPS_STOP_CONVERGED)
        return report(ctx, sps_stop_string(result.stop));
    for (int i = 0; i < 3; i++) /* x = 1 and 4 in every row */
        if (x[2 * i] < 0.999999 || x[2 * i] > 1.000001 ||
            x[2 * i + 1] < 3.999999 || x[2 * i + 1] > 4.000001)
            return report(ctx, "wrong answer");
    sps_solver_destroy(&s);
    sps_block_destroy(&B);
    sps_block_destroy(&X);
    sps_operator_destroy(&op);
    sps_csr_destroy(ctx, &A);
    sps_context_destroy(&ctx);
    printf("client: libspsolve %s works\n", sps_version());
    return 0;
}
