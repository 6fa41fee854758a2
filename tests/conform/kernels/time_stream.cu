/* SPDX-License-Identifier: BSD-3-Clause */
/* time_stream.cu - spmm.stream on a matrix that is nowhere as a whole: its rows
 * are made panel by panel straight into the packed image.  Run by name (run-
 * gpu-tests time_stream):
 *
 *   time_stream [SIDE [RESIDENT_MB [TABLE]]]
 *
 * The pattern of elasticity on SIDE^3 nodes (default 60) of three unknowns, 27
 * neighbours each; values -(1 + u/4) / 81 off the diagonal, u from a hash of
 * the two unknowns, 1.2 on it: symmetric positive definite, all bits of doubles
 * in use; with TABLE not 0 all u are 0, so that bytes suffice.  The context
 * takes what blocks of 16 columns need and RESIDENT_MB (default 64) beside.
 *
 * Side 385: 171 M rows, 13.8 G entries, 121 GB of panels.  Host memory: the
 * panels, and at most 224 bytes a row for the host's share; blocks are compared
 * there in portions.  On the device, beside the resident panels: two blocks of
 * 16 columns, 256 bytes a row, or those of block CG with 4, 32 bytes a row
 * each.
 *
 * Told are: the rate of copies from page-locked memory measured here, in pieces
 * of 16 MB; the time of packing; for 1, 4 and 16 columns the median time of a
 * product and its copied bytes over that time, as a part of that rate, without
 * a share of the host and with one, which must have the same bits; the products
 * of 200 rows against sums made on the host; and block CG to 1e-6 with 4
 * columns, through a callback that calls the plan. */
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>

#include "block/block.h"
#include "cuda/stream/stream_plan.h"
#include "plan/planner.h"

namespace {

int checks, failures;
sps_context *ctx;

void need(sps_status st)
{
    if (st == SPS_OK) return;
    printf("%s: %s\n", sps_status_string(st), sps_context_error(ctx));
    exit(1);
}

void need(cudaError_t e)
{
    if (e == cudaSuccess) return;
    printf("%s\n", cudaGetErrorString(e));
    exit(1);
}

double now(void)
{
    need(cudaDeviceSynchronize());
    return std::chrono::duration<double>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

double median(std::vector<double> t)
{
    std::sort(t.begin(), t.end());
    return t[t.size() / 2];
}

/* ------------------------------------------------------------------ matrix */

struct grid {
    int64_t side;
    bool table;
};

/* In [0, 1), the same for (i, j) and (j, i). */
double noise(int64_t i, int64_t j)
{
    uint64_t h = (uint64_t)std::min(i, j) * 0x9e3779b97f4a7c15u ^
                 (uint64_t)std::max(i, j) * 0xc2b2ae3d27d4eb4fu;

    h = (h ^ (h >> 29)) * 0xbf58476d1ce4e5b9u;
    h ^= h >> 32;
    return (double)(h >> 11) * 0x1p-53;
}

double value(const grid &g, int64_t i, int64_t j)
{
    if (i == j) return 1.2;
    return -(1 + (g.table ? 0 : 0.25 * noise(i, j))) / 81;
}

/* Columns and values of row i; returns their number. */
int64_t make_row(const grid &g, int64_t i, int32_t *col, double *val)
{
    const int64_t m = g.side, node = i / 3;
    const int64_t x = node % m, y = node / m % m, z = node / m / m;
    int64_t count = 0;

    for (int64_t c = z - 1; c <= z + 1; c++)
        for (int64_t b = y - 1; b <= y + 1; b++)
            for (int64_t a = x - 1; a <= x + 1; a++) {
                const int64_t j = 3 * (a + m * (b + m * c));

                if (std::min({a, b, c}) < 0 || std::max({a, b, c}) >= m)
                    continue;
                for (int d = 0; d < 3; d++, count++) {
                    col[count] = (int32_t)(j + d);
                    val[count] = value(g, i, j + d);
                }
            }
    return count;
}

void make_rows(void *data, int64_t first, int64_t count, int64_t *rowptr,
               int32_t *col, void *val)
{
    rowptr[0] = 0;
    for (int64_t r = 0; r < count; r++)
        rowptr[r + 1] = rowptr[r] + make_row(*(const grid *)data, first + r,
                                             col + rowptr[r],
                                             (double *)val + rowptr[r]);
}

/* -------------------------------------------------------------------- link */

double link_rate(void)
{
    const size_t piece = (size_t)16 << 20, pieces = 64;
    void *host, *device;
    std::vector<double> t;

    need(cudaHostAlloc(&host, piece * 8, cudaHostAllocDefault));
    need(cudaMalloc(&device, piece * 4));
    memset(host, 1, piece * 8);
    for (int r = 0; r < 5; r++) {
        const double start = now();

        for (size_t i = 0; i < pieces; i++)
            need(cudaMemcpyAsync((char *)device + i % 4 * piece,
                                 (char *)host + i % 8 * piece, piece,
                                 cudaMemcpyHostToDevice, 0));
        t.push_back(now() - start);
    }
    cudaFree(device);
    cudaFreeHost(host);
    return (double)(piece * pieces) / median(t);
}

/* ---------------------------------------------------------------- products */

sps_block *block(int64_t n, int k)
{
    sps_block *X = NULL;

    need(sps_block_create(ctx, n, k, &X));
    need(sps_block_random(X, 7));
    return X;
}

/* Rows first .. first + count - 1 of X, as row-major numbers. */
void rows_of(const sps_block *X, int64_t first, int64_t count, double *x)
{
    sps_block part = *X;

    part.n = count;
    part.data = (double *)X->data + first * X->ld;
    need(sps_block_get(&part, 0, X->k, x, X->k, SPS_ROW_MAJOR, SPS_HOST));
}

/* Row i of A times X, its entries in order. */
std::vector<double> sums_of_row(const grid &g, const sps_block *X, int64_t i)
{
    const size_t k = (size_t)X->k;
    std::vector<double> sum(k), x(k), val(81);
    std::vector<int32_t> col(81);
    const int64_t some = make_row(g, i, col.data(), val.data());

    for (int64_t e = 0; e < some; e++) {
        rows_of(X, col[(size_t)e], 1, x.data());
        for (size_t j = 0; j < k; j++) sum[j] += val[(size_t)e] * x[j];
    }
    return sum;
}

void compare(const grid &g, const sps_block *X, const sps_block *Y)
{
    const size_t k = (size_t)X->k;
    std::vector<double> y(k);
    double worst = 0;

    for (int64_t s = 0; s < 200; s++) {
        const int64_t i = s * (X->n - 1) / 199;
        const std::vector<double> sum = sums_of_row(g, X, i);

        rows_of(Y, i, 1, y.data());
        for (size_t j = 0; j < k; j++)
            worst = std::max(worst, std::fabs(sum[j] - y[j]));
    }
    checks++;
    failures += !(worst < 1e-14);
    printf("  200 rows differ by at most %.2g\n", worst);
}

/* Median seconds of a product, after products by which the share of the host is
 * found; of three where each takes a second. */
double time_product(const sps_plan *plan, const sps_spmm_args *args,
                    int64_t *sent)
{
    const bool large = plan->streamed > (size_t)40 << 30;
    const int before = large ? 4 : 6, all = large ? 7 : 13;
    std::vector<double> t;

    for (int r = 0; r < all; r++) {
        const double start = now();

        *sent = -ctx->memory.to_device;
        need(plan->kernel->spmm(plan, args));
        if (r >= before) t.push_back(now() - start);
        *sent += ctx->memory.to_device;
    }
    return median(t);
}

/* A number that all bits of Y decide, those of 1 M rows at a time. */
uint64_t bits_of(const sps_block *Y)
{
    const int64_t most = 1 << 20;
    std::vector<double> y((size_t)(std::min(Y->n, most) * Y->k));
    uint64_t h = 0;

    for (int64_t i = 0; i < Y->n; i += most) {
        const int64_t count = std::min(Y->n - i, most);

        rows_of(Y, i, count, y.data());
        for (size_t e = 0; e < (size_t)(count * Y->k); e++) {
            uint64_t bits;

            memcpy(&bits, &y[e], sizeof bits);
            h = (h ^ bits) * 0x9e3779b97f4a7c15u;
            h ^= h >> 32;
        }
    }
    return h;
}

void time_products(const grid &g, sps_plan *plan, int64_t n, int k,
                   double link)
{
    sps_stream_plan *s = (sps_stream_plan *)plan;
    sps_block *X = block(n, k), *Y = block(n, k);
    const sps_spmm_args args = {1.0, X, 0.0, Y, NULL, NULL};
    uint64_t alone;
    int64_t sent;

    s->test.share = -1;
    const double t = time_product(plan, &args, &sent);

    printf("k %2d: %.3f ms, %.3f GB copied, %.2f GB/s, %.1f %% of the link\n",
           k, 1e3 * t, 1e-9 * (double)sent, 1e-9 * (double)sent / t,
           100 * (double)sent / t / link);
    compare(g, X, Y);
    alone = bits_of(Y);
    need(ctx->backend->fill(Y, 0.0));
    s->test.share = 0;
    const double u = time_product(plan, &args, &sent);

    printf("  with the host: %.3f ms, %.2f times as fast; it takes %lld of "
           "%lld panels, at %.1f GB/s\n", 1e3 * u, t / u,
           (long long)s->shared, (long long)(s->panels - s->resident),
           1e-9 * s->share.by[k == 1 ? 0 : k == 4 ? 2 : 4].rate);
    checks++;
    failures += bits_of(Y) != alone;
    sps_block_destroy(&X);
    sps_block_destroy(&Y);
}

/* ------------------------------------------------------------------- solve */

int apply(double alpha, const double *x, int64_t ldx, double beta, double *y,
          int64_t ldy, int64_t n, int k, void *stream, void *data)
{
    const sps_plan *plan = (const sps_plan *)data;
    sps_block X = {ctx, n, k, ldx, SPS_F64, (void *)x, 0, k};
    sps_block Y = {ctx, n, k, ldy, SPS_F64, y, 0, k};
    const sps_spmm_args args = {alpha, &X, beta, &Y, NULL, NULL};

    (void)stream;
    return plan->kernel->spmm(plan, &args);
}

void solve(sps_plan *plan, int64_t n, int k)
{
    sps_result result = {};
    sps_operator *op = NULL;
    sps_solver *s = NULL;
    sps_options o;
    sps_block *B = block(n, k), *X = block(n, k);

    sps_options_default(&o);
    o.solver = "block_cg";
    o.precond = "none";
    o.nullspace = "none";
    o.rtol = 1e-6;
    result.struct_size = sizeof result;
    need(sps_operator_user(ctx, n, apply, plan, SPS_SYMMETRIC | SPS_SPD, &op));
    need(sps_solver_create(op, NULL, k, &o, &s));
    need(ctx->backend->fill(X, 0.0));
    const double start = now();

    need(sps_solver_linear(s, B, X, &result));
    printf("block_cg, %d columns to 1e-6: %s, %d iterations, %.3f s, device "
           "peak %.3f GB\n", k, sps_stop_string(result.stop),
           (int)result.iterations, now() - start,
           1e-9 * (double)ctx->memory.device_peak);
    checks++;
    failures += result.stop != SPS_STOP_CONVERGED;
    sps_solver_destroy(&s);
    sps_operator_destroy(&op);
    sps_block_destroy(&B);
    sps_block_destroy(&X);
}

/* -------------------------------------------------------------------- plan */

const sps_kernel *kernel_named(const char *name)
{
    const sps_kernel *kernel;

    for (int i = 0; (kernel = spsi_registry_kernel(ctx, i)); i++)
        if (strcmp(kernel->name, name) == 0) return kernel;
    printf("no kernel %s\n", name);
    exit(1);
}

/* Entries: each of the three directions has 3 m - 2 pairs of neighbours. */
sps_plan *make_plan(const grid &g, int k, size_t resident, sps_csr_local *local)
{
    const int64_t m = g.side, pairs = 3 * m - 2;
    const sps_row_source source = {make_rows, (void *)&g};
    sps_csr A = {};
    sps_features f = {};
    sps_problem p = {};
    sps_plan *plan = NULL;

    A.nrow = A.ncol = f.nrow = f.ncol = local->nrow = local->ncol =
        3 * m * m * m;
    A.nnz = f.nnz = local->nnz = 9 * pairs * pairs * pairs;
    local->far = true;
    f.max_length = 81;
    p.op = SPS_OP_SPMM;
    p.A = &A;
    p.local = local;
    p.f = &f;
    p.k = k;
    p.machine = &ctx->machine;
    p.source = &source;
    p.room = resident;
    p.pinned = true;
    need(spsi_planner_pin(ctx, &p, kernel_named("spmm.stream"), &plan));
    return plan;
}

} // namespace

int main(int argc, char **argv)
{
    const grid g = {argc > 1 ? atoll(argv[1]) : 60, argc > 3 && atoi(argv[3])};
    const size_t resident = (size_t)(argc > 2 ? atoll(argv[2]) : 64) << 20;
    const int64_t n = 3 * g.side * g.side * g.side;
    sps_context_options o;
    sps_csr_local local = {};

    sps_context_options_default(&o);
    o.place = SPS_CUDA;
    need(sps_context_create(&o, &ctx, NULL));
    ctx->opt.max_device_bytes = ctx->memory.device + spsi_blocks_room(n, 16) +
                                resident;
    const double link = link_rate(), start = now();
    sps_plan *plan = make_plan(g, 16, resident, &local);

    printf("%s: %lld rows, %lld entries, %.3f GB of panels, %.3f GB resident, "
           "%.3f GB streamed (%s), packed in %.2f s; link %.2f GB/s\n",
           ctx->device, (long long)n, (long long)local.nnz,
           1e-9 * (double)(plan->resident + plan->streamed),
           1e-9 * (double)plan->resident, 1e-9 * (double)plan->streamed,
           plan->detail, now() - start, 1e-9 * link);
    for (int k : {1, 4, 16}) time_products(g, plan, n, k, link);
    solve(plan, n, 4);
    spsi_plan_destroy(&plan);
    sps_context_destroy(&ctx);
    printf("%d%%: Checks: %d, Failures: %d, Errors: 0\n",
           checks ? 100 * (checks - failures) / checks : 0, checks, failures);
    return failures != 0;
}
