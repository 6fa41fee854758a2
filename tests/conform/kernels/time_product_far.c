/* SPDX-License-Identifier: BSD-3-Clause */
/* time_product_far.c - C = A B of matrices in host memory on a GPU that may not
 * hold them, beside the same product within device memory.  Run by name
 * (run-gpu-tests time_product_far):
 *
 *   time_product_far [SIDE [LIMIT_MB [IN_CORE]]]
 *
 * A has the 27 neighbours of each of SIDE^3 points (default 100), B those 7 of
 * a cross, with values that need all of their bits; LIMIT_MB (default 256) is
 * what the context may take of the GPU; IN_CORE 0 leaves the products in core
 * and by the host out, 1 the one by the host.  Side 310 with 4000 MB: 9.8 + 2.7
 * + 29 GB.  The product by panels is made twice: the machine has had the memory
 * of the second C before.  It prints the rate of the link from the GPU, times,
 * C's bytes over them, and whether all bits are the same. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/backend.h"
#include "core/context.h"
#include "core/team.h"
#include "core/timer.h"
#include "matrix/csr.h"

typedef struct grid {
    int64_t side;
    int most;                /* largest sum of |offsets|: 3 for all 27
                                neighbours, 1 for the cross */
    sps_csr *A;
} grid;

static sps_context *open_gpu(size_t limit)
{
    sps_context_options o;
    sps_context *ctx = NULL;

    sps_context_options_default(&o);
    o.place = SPS_CUDA;
    o.max_device_bytes = limit;
    if (sps_context_create(&o, &ctx, NULL) == SPS_OK) return ctx;
    puts("no GPU");
    exit(77);
}

static void need(sps_context *ctx, sps_status st)
{
    if (st == SPS_OK) return;
    printf("%s: %s\n", sps_status_string(st), sps_context_error(ctx));
    exit(1);
}

/* Visits the neighbours of point i in ascending order; with `to` NULL it only
 * counts them. */
static int64_t neighbours(const grid *g, int64_t i, int32_t *to)
{
    const int64_t s = g->side, x = i % s, y = i / s % s, z = i / s / s;
    int64_t count = 0;

    for (int64_t c = -1; c <= 1; c++)
        for (int64_t b = -1; b <= 1; b++)
            for (int64_t a = -1; a <= 1; a++) {
                if (llabs(a) + llabs(b) + llabs(c) > g->most || x + a < 0 ||
                    x + a >= s || y + b < 0 || y + b >= s || z + c < 0 ||
                    z + c >= s)
                    continue;
                if (to) to[count] = (int32_t)(i + a + s * (b + s * c));
                count++;
            }
    return count;
}

static void count_rows(void *data, int64_t first, int64_t last)
{
    const grid *g = data;

    for (int64_t i = first; i < last; i++)
        g->A->rowptr[i + 1] = neighbours(g, i, NULL);
}

static void make_rows(void *data, int64_t first, int64_t last)
{
    const grid *g = data;
    double *v = g->A->val;

    for (int64_t i = first; i < last; i++) {
        const int64_t at = g->A->rowptr[i];

        (void)neighbours(g, i, g->A->col + at);
        for (int64_t p = at; p < g->A->rowptr[i + 1]; p++)
            v[p] = 1.0 / (3.0 + (double)(p * 7919 % 1000003));
    }
}

static void *memory(size_t bytes)
{
    void *p = malloc(bytes);

    if (p) return p;
    printf("no %zu bytes of host memory\n", bytes);
    exit(1);
}

static sps_csr *make(sps_context *ctx, int64_t side, int most)
{
    const int64_t n = side * side * side;
    sps_csr *A = memory(sizeof *A);
    grid g = { side, most, A };

    *A = (sps_csr){ .nrow = n, .ncol = n, .dtype = SPS_F64, .place = SPS_HOST,
                    .own = SPS_BORROW, .props = SPS_SORTED,
                    .struct_size = sizeof *A };
    A->rowptr = memory((size_t)(n + 1) * sizeof *A->rowptr);
    A->rowptr[0] = 0;
    spsi_team_run(ctx, n, 100 * n, count_rows, &g);
    for (int64_t i = 0; i < n; i++) A->rowptr[i + 1] += A->rowptr[i];
    A->nnz = A->rowptr[n];
    A->col = memory((size_t)A->nnz * sizeof *A->col);
    A->val = memory((size_t)A->nnz * sizeof(double));
    spsi_team_run(ctx, n, 400 * n, make_rows, &g);
    return A;
}

static double gigabytes(const sps_csr *A)
{
    return 1e-9 * (12.0 * (double)A->nnz + 8.0 * (double)(A->nrow + 1));
}

/* Returns the bytes per second of copies of 16 MB from the GPU to page-locked
 * memory: the best of 64. */
static double link_rate(void)
{
    const size_t bytes = (size_t)16 << 20;
    sps_context *ctx = open_gpu(0);
    void *host, *device;
    double least = 1;

    need(ctx, ctx->backend->share(ctx, bytes, &host));
    need(ctx, ctx->backend->alloc(ctx, bytes, &device));
    for (int i = 0; i < 64; i++) {
        const double start = spsi_now();

        need(ctx, ctx->backend->download(ctx, host, device, bytes));
        least = fmin(least, spsi_now() - start);
    }
    ctx->backend->release(ctx, device, bytes);
    ctx->backend->unshare(ctx, host, bytes);
    sps_context_destroy(&ctx);
    return (double)bytes / least;
}

static sps_csr *by_panels(sps_context *ctx, const sps_csr *A, const sps_csr *B)
{
    const int64_t down = ctx->memory.to_host;
    const double start = spsi_now();
    sps_csr *C = NULL;
    double seconds;

    need(ctx, ctx->backend->csr_multiply(ctx, A, B, &C));
    seconds = spsi_now() - start;
    printf("by panels: %.3f s, C %.2f GB, %.2f GB/s; %.2f GB from the GPU, "
           "whose peak is %.3f GB\n", seconds, gigabytes(C),
           gigabytes(C) / seconds, 1e-9 * (double)(ctx->memory.to_host - down),
           1e-9 * (double)ctx->memory.device_peak);
    fflush(stdout);
    return C;
}

static void by_host(const sps_csr *A, const sps_csr *B)
{
    sps_context *ctx = open_gpu(0);
    sps_csr *C = NULL;
    const double start = spsi_now();

    need(ctx, spsi_backends[0]->csr_multiply(ctx, A, B, &C));
    printf("by the host alone: %.3f s\n", spsi_now() - start);
    fflush(stdout);
    sps_csr_destroy(ctx, &C);
    sps_context_destroy(&ctx);
}

static int in_core(const sps_csr *A, const sps_csr *B, const sps_csr *C)
{
    sps_context *ctx = open_gpu(0);
    sps_csr *a = NULL, *b = NULL, *c = NULL, *D = NULL;
    double at[4];
    bool same;

    at[0] = spsi_now();
    need(ctx, spsi_csr_upload(ctx, A, &a));
    need(ctx, spsi_csr_upload(ctx, B, &b));
    at[1] = spsi_now();
    need(ctx, ctx->backend->csr_multiply(ctx, a, b, &c));
    at[2] = spsi_now();
    need(ctx, spsi_csr_download(ctx, c, &D));
    at[3] = spsi_now();
    printf("in core: up %.3f s, product %.3f s, down %.3f s; together %.3f\n",
           at[1] - at[0], at[2] - at[1], at[3] - at[2], at[3] - at[0]);
    fflush(stdout);
    same = C->nnz == D->nnz &&
           !memcmp(C->rowptr, D->rowptr, (size_t)(C->nrow + 1) * 8) &&
           !memcmp(C->col, D->col, (size_t)C->nnz * sizeof *C->col) &&
           !memcmp(C->val, D->val, (size_t)C->nnz * sizeof(double));
    puts(same ? "the same bits" : "OTHER BITS");
    return same ? 0 : 1;
}

int main(int argc, char **argv)
{
    const int64_t side = argc > 1 ? atoll(argv[1]) : 100;
    const size_t limit = (size_t)(argc > 2 ? atoll(argv[2]) : 256) * 1000000;
    const int beside = argc > 3 ? atoi(argv[3]) : 2;
    sps_context *ctx = open_gpu(0);
    sps_csr *A = make(ctx, side, 3), *B = make(ctx, side, 1), *C;

    printf("A %.2f GB, B %.2f GB, at most %.2f GB of the GPU, %d threads, link "
           "%.1f GB/s\n", gigabytes(A), gigabytes(B), 1e-9 * (double)limit,
           ctx->threads, 1e-9 * link_rate());
    fflush(stdout);
    sps_context_destroy(&ctx);
    ctx = open_gpu(limit);
    C = by_panels(ctx, A, B);
    sps_csr_destroy(ctx, &C);
    C = by_panels(ctx, A, B);
    if (beside == 0) return 0;
    if (beside > 1) by_host(A, B);
    return in_core(A, B, C);
}
