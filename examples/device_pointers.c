/* SPDX-License-Identifier: BSD-3-Clause */
/* device_pointers.c - matrix, right-hand sides and solution are in the caller's
 * device memory and are not copied to the host.  The CUDA driver is found at
 * run time, so this program builds without CUDA. */
#include <dlfcn.h>
#include <spsolve.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 100000, K = 4, NNZ = 3 * N - 2, SKIPPED = 77 };

static sps_context *ctx;
/* Functions of the driver; device addresses are integers in its interface. */
static int (*take)(uint64_t *p, size_t bytes);
static int (*give)(uint64_t p);
static int (*upload)(uint64_t to, const void *from, size_t bytes);

static void check(sps_status st)
{
    if (st == SPS_OK)
        return;
    fprintf(stderr, "%s: %s\n", sps_status_string(st),
            sps_context_error(ctx));
    exit(1);
}

static void *on_device(const void *from, size_t bytes)
{
    uint64_t p = 0;

    if (take(&p, bytes) || (from && upload(p, from, bytes)))
        exit(1);
    return (void *)(uintptr_t)p;
}

/* Returns a csr whose three arrays are in device memory: tridiagonal(-1, 2.1,
 * -1). */
static sps_csr *matrix(void)
{
    static int64_t rowptr[N + 1];
    static int32_t col[NNZ];
    static double val[NNZ];
    sps_csr *A;
    int64_t p = 0;

    for (int32_t i = 0; i < N; i++) {
        for (int32_t j = i > 0 ? i - 1 : 0; j <= i + 1 && j < N; j++) {
            col[p] = j;
            val[p++] = i == j ? 2.1 : -1;
        }
        rowptr[i + 1] = p;
    }
    check(sps_csr_wrap(ctx, N, N, NNZ, on_device(rowptr, sizeof rowptr),
                       on_device(col, sizeof col), on_device(val, sizeof val),
                       SPS_F64, SPS_CUDA, SPS_BORROW, &A));
    A->props = SPS_SYMMETRIC | SPS_SPD;
    return A;
}

int main(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    sps_context_options where;
    sps_operator *op;
    sps_solver *s;
    sps_block *B, *X;
    double *b, *x;
    const char *why = "no driver";
    sps_result r = {.struct_size = sizeof r};

    sps_context_options_default(&where);
    where.place = SPS_CUDA;
    if (!driver || sps_context_create(&where, &ctx, &why)) {
        printf("skipped: no GPU here (%s)\n", why);
        return SKIPPED;
    }
    *(void **)&take = dlsym(driver, "cuMemAlloc_v2");
    *(void **)&give = dlsym(driver, "cuMemFree_v2");
    *(void **)&upload = dlsym(driver, "cuMemcpyHtoD_v2");
    sps_csr *A = matrix();
    /* Blocks are row-major: a row has the K columns side by side. */
    b = on_device(NULL, sizeof *b * N * K);
    x = on_device(NULL, sizeof *x * N * K);
    check(sps_block_wrap(ctx, N, K, b, K, &B)); /* does not copy b */
    check(sps_block_wrap(ctx, N, K, x, K, &X));
    check(sps_block_random(B, 1));              /* fills b on the device */
    check(sps_block_random(X, 2));              /* any initial guess is
                                                   allowed */
    check(sps_operator_csr(ctx, A, K, NULL, &op));
    check(sps_solver_create(op, NULL, K, NULL, &s));
    check(sps_solver_linear(s, B, X, &r));      /* writes x on the device */
    check(sps_context_sync(ctx));               /* before x is read on other
                                                   streams */
    printf("%s after %d iterations, residual %.1e\n", sps_stop_string(r.stop),
           r.iterations, r.worst_residual);
    sps_solver_destroy(&s);
    sps_operator_destroy(&op);
    sps_block_destroy(&X);
    sps_block_destroy(&B);
    void *mine[] = {A->rowptr, A->col, A->val, b, x};
    sps_csr_destroy(ctx, &A);                   /* releases only the csr: its
                                                   arrays are ours */
    for (int i = 0; i < 5; i++)
        give((uint64_t)(uintptr_t)mine[i]);
    sps_context_destroy(&ctx);
    return r.stop > 0 ? 0 : 1;
}
