/* SPDX-License-Identifier: BSD-3-Clause */
/* time_stream.cu - spmm.stream on a matrix that exists nowhere as a whole: its
 * rows are computed panel by panel into the packed image (sps_operator_rows).
 * Run by name (run-gpu-tests time_stream):
 *
 *   time_stream [SIDE [RESIDENT_MB [TABLE [WIDTH [PART...]]]]]
 *
 * The matrix is K + M / 5 of `mtxgen elasticity SIDE -perturb 1 -shift 0.2`, a
 * time step of an elastic body of SIDE^3 nodes (default 60); with TABLE not 0
 * it is not perturbed, so that bytes suffice for the values.  The context takes
 * what blocks of WIDTH columns (default 16) need and RESIDENT_MB (default 64)
 * beside, as far as the GPU has it.
 *
 * Side 385: 171 M rows, 13.8 G entries, 121 GB of panels.  Host memory: the
 * panels, and at most 224 bytes a row for the host's share; blocks are compared
 * there in portions.  On the device, beside the resident panels: two blocks of
 * 16 columns, 256 bytes a row, or those of block CG: six, or five with B and
 * four with B and the best iterate in host memory, 128 bytes a row each with 16
 * columns.
 *
 * It prints the rate of copies from page-locked memory measured here, in pieces
 * of 16 MB, the time of packing, and what is asked for: a PART is
 *
 *   N        products with N columns: median time, copied bytes over that time
 *            as a part of that rate, without a share of the host and with one,
 *            which must have the same bits, how long each side worked and
 *            waited, and the products of 200 rows against sums made on the host
 *   poly=N   seven products of a Chebyshev polynomial together and one by one
 *   solve=N  block CG to 1e-6 with N columns
 *   more=MB  from here on the context takes at most MB more of the GPU
 *   precond=NAME  for what is solved from here on (none)
 *   kind=NAME, shift=S  another grid of mtxgen, or another shift
 *
 * By default: 1 4 16 poly=1 poly=4 solve=4, as far as WIDTH allows. */
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <cuda_runtime.h>

#include "cuda/stream/stream_plan.h"
#include "operator/operator.h"

extern "C" {
#include "tools/generator/gen.h"
}

namespace {

int checks, failures;
sps_context *ctx;
std::string precond = "none";

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

int make_rows(int64_t first, int64_t count, int64_t *rowptr, int32_t *col,
              void *val, void *data)
{
    rowptr[0] = 0;
    for (int64_t r = 0; r < count; r++)
        rowptr[r + 1] = rowptr[r] + gen_row((const gen *)data, first + r,
                                            col + rowptr[r],
                                            (double *)val + rowptr[r]);
    return 0;
}

std::string value_of(const std::vector<std::string> &parts, const char *name,
                     const char *otherwise)
{
    const std::string start = std::string(name) + "=";

    for (const std::string &part : parts)
        if (part.rfind(start, 0) == 0) return part.substr(start.size());
    return otherwise;
}

void open_rows(gen &g, int64_t side, bool table,
               const std::vector<std::string> &parts)
{
    const std::string kind = value_of(parts, "kind", "elasticity");
    const std::string n = std::to_string(side);
    char *words[] = {(char *)kind.c_str(), (char *)n.c_str()};
    gen_spec spec;
    char error[160];

    gen_default(&spec);
    const int read = gen_parse(&spec, 2, words, error);

    spec.perturb = !table;
    spec.perturb_seed = 1;
    spec.shift = atof(value_of(parts, "shift", "0.2").c_str());
    if (read > 0 && gen_open(&spec, &g, error)) return;
    printf("%s\n", read ? error : "no such grid");
    exit(1);
}

sps_operator *operator_of(const gen &g, int width)
{
    sps_csr shape = {};
    sps_operator *op = NULL;

    shape.struct_size = sizeof shape;
    shape.nrow = shape.ncol = g.rows;
    shape.nnz = g.nnz;
    shape.dtype = SPS_F64;
    shape.props = SPS_SYMMETRIC | SPS_SPD;
    need(sps_operator_rows(ctx, &shape, g.widest, make_rows, (void *)&g, width,
                           NULL, &op));
    if (strcmp(sps_operator_kernel(op), "spmm.stream") == 0) return op;
    printf("the matrix fits on the GPU: nothing is streamed\n");
    exit(1);
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
std::vector<double> sums_of_row(const gen &g, const sps_block *X, int64_t i)
{
    const size_t k = (size_t)X->k;
    std::vector<double> sum(k), x(k), val((size_t)g.widest);
    std::vector<int32_t> col((size_t)g.widest);
    const int64_t some = gen_row(&g, i, col.data(), val.data());

    for (int64_t e = 0; e < some; e++) {
        rows_of(X, col[(size_t)e], 1, x.data());
        for (size_t j = 0; j < k; j++) sum[j] += val[(size_t)e] * x[j];
    }
    return sum;
}

void compare(const gen &g, const sps_block *X, const sps_block *Y)
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
    failures += !(worst < 1e-13);
    printf("  200 rows differ by at most %.2g\n", worst);
}

/* Median seconds of a product, after products by which the share of the host is
 * found, if it has one; of three where each takes a second. */
double time_product(const sps_plan *plan, const sps_spmm_args *args,
                    int64_t *sent)
{
    const bool large = plan->streamed > (size_t)40 << 30;
    const bool alone = ((const sps_stream_plan *)plan)->test.share < 0;
    const int before = !large ? 12 : alone ? 1 : 10;
    const int all = before + (large ? 3 : 7);
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

double milliseconds(void *from, void *to)
{
    float ms;

    need(cudaEventElapsedTime(&ms, (cudaEvent_t)from, (cudaEvent_t)to));
    return ms;
}

/* How long host and GPU worked and waited in the last product. */
void print_sides(const sps_stream_plan *s)
{
    const sps_stream_share *h = &s->share;
    const double bytes = (double)s->super.streamed - h->host.bytes;
    const double ms = milliseconds(h->started, h->streamed);
    const double wait = milliseconds(h->started, h->there);
    const double summed = 1e3 * h->host.summed;

    printf("  host: %.3f ms until X is there, %.3f sums at %.1f GB/s (threads "
           "%.1f %% of it busy), all queued after %.3f\n", wait, summed,
           1e-6 * h->host.bytes / summed,
           100 * h->host.busy / h->host.summed,
           1e3 * h->host.queued);
    printf("  GPU: %.3f ms panels at %.1f GB/s, %.3f waits for the host, "
           "%.3f in all\n", ms, 1e-6 * bytes / ms,
           fmax(0, wait + summed - ms), milliseconds(h->started, h->ended));
}

void time_products(const gen &g, sps_plan *plan, int64_t n, int k,
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
           "%lld panels\n", 1e3 * u, t / u, (long long)s->shared,
           (long long)(s->panels - s->resident));
    if (s->shared > 0) print_sides(s);
    checks++;
    failures += bits_of(Y) != alone;
    sps_block_destroy(&X);
    sps_block_destroy(&Y);
}

/* -------------------------------------------------------------- polynomial */

/* Seven products Z = Z + (R - A Z) / 10, as of Chebyshev of degree 8, in the
 * passes that the slots allow and in one each, which must have the same
 * bits. */
void time_polynomial(sps_operator *op, int k)
{
    sps_stream_plan *plan = (sps_stream_plan *)op->block;
    sps_block *R = block(op->n, k), *Z[2] = {block(op->n, k), block(op->n, k)};
    const sps_epilogue end = {NULL, R, 0.1, 1.0};
    int64_t *const after = plan->after;
    std::vector<sps_spmm_args> args;
    uint64_t bits[2];
    double seconds[2];

    for (int i = 0; i < 7; i++)
        args.push_back({-0.1, Z[i % 2], 0.0, Z[(i + 1) % 2], NULL, &end});
    plan->test.share = -1;
    for (int alone = 0; alone < 2; alone++) {
        std::vector<double> t;
        int64_t sent = 0;

        plan->after = alone ? NULL : after;
        for (int r = 0; r < 4; r++) {
            need(sps_block_random(Z[0], 5));
            const double start = now();

            sent = -ctx->memory.to_device;
            need(plan->sequence(op->block, args.data(), 7));
            t.push_back(now() - start);
            sent += ctx->memory.to_device;
        }
        seconds[alone] = median({t.begin() + 1, t.end()});
        bits[alone] = bits_of(Z[1]);
        printf("7 products, k %d, %s: %.3f ms, %.3f GB copied, %.2f times "
               "what is streamed\n", k, alone ? "one a pass" : "together",
               1e3 * seconds[alone], 1e-9 * (double)sent,
               (double)sent / (double)op->block->streamed);
    }
    printf("  together %.2f times as fast; %d slots\n",
           seconds[1] / seconds[0], plan->ring.slots);
    plan->after = after;
    plan->test.share = 0;
    checks++;
    failures += bits[0] != bits[1];
    sps_block_destroy(&R);
    for (sps_block *&z : Z) sps_block_destroy(&z);
}

/* ------------------------------------------------------------------- solve */

void solve(const sps_operator *op, int k)
{
    sps_result result = {};
    sps_solver *s = NULL;
    sps_options o;
    sps_block *B = block(op->n, k), *X = block(op->n, k);

    sps_options_default(&o);
    o.solver = "block_cg";
    o.precond = precond.c_str();
    o.rtol = 1e-6;
    result.struct_size = sizeof result;
    need(sps_solver_create(op, NULL, k, &o, &s));
    need(ctx->backend->fill(X, 0.0));
    const double start = now();

    need(sps_solver_linear(s, B, X, &result));
    printf("block_cg, %s, %d columns to 1e-6: %s, relative residual %.2g, %d "
           "iterations, %.3f s, device peak %.3f GB\n", precond.c_str(), k,
           sps_stop_string(result.stop), result.worst_residual,
           (int)result.iterations, now() - start,
           1e-9 * (double)ctx->memory.device_peak);
    checks++;
    failures += result.stop != SPS_STOP_CONVERGED;
    for (int i = 0; sps_context_note(ctx, i); i++)
        printf("  %s\n", sps_context_note(ctx, i));
    sps_solver_destroy(&s);
    sps_block_destroy(&B);
    sps_block_destroy(&X);
}

void open_context(int64_t n, int width, size_t resident)
{
    sps_context_options o;

    sps_context_options_default(&o);
    o.place = SPS_CUDA;
    need(sps_context_create(&o, &ctx, NULL));
    ctx->opt.max_device_bytes = ctx->memory.device +
                                spsi_blocks_room(n, width) + resident;
}

std::vector<std::string> parts_of(int argc, char **argv)
{
    if (argc > 5) return {argv + 5, argv + argc};
    return {"1", "4", "16", "poly=1", "poly=4", "solve=4"};
}

void take_part(const gen &g, sps_operator *op, const std::string &part,
               int width, double link)
{
    const size_t at = part.find('=') + 1;
    const int number = atoi(part.c_str() + at);

    if (part.rfind("kind=", 0) == 0 || part.rfind("shift=", 0) == 0)
        return;
    if (part.rfind("precond=", 0) == 0)
        precond = part.substr(at);
    else if (part.rfind("more=", 0) == 0)
        ctx->opt.max_device_bytes = ctx->memory.device +
                                    ((size_t)number << 20);
    else if (number < 1 || number > width)
        printf("%s: a number of columns, at most %d\n", part.c_str(), width);
    else if (part.rfind("poly=", 0) == 0)
        time_polynomial(op, number);
    else if (part.rfind("solve=", 0) == 0)
        solve(op, number);
    else
        time_products(g, op->block, op->n, number, link);
}

} // namespace

int main(int argc, char **argv)
{
    const int64_t side = argc > 1 ? atoll(argv[1]) : 60;
    const size_t resident = (size_t)(argc > 2 ? atoll(argv[2]) : 64) << 20;
    const int width = argc > 4 ? atoi(argv[4]) : 16;
    gen g = {};

    setvbuf(stdout, NULL, _IOLBF, 0);
    open_rows(g, side, argc > 3 && atoi(argv[3]), parts_of(argc, argv));
    open_context(g.rows, width, resident);
    const double link = link_rate(), start = now();
    sps_operator *op = operator_of(g, width);
    const sps_plan *plan = op->block;

    printf("%s: %lld rows, %lld entries, %.3f GB of panels, %.3f GB resident, "
           "%.3f GB streamed (%s), packed in %.2f s; link %.2f GB/s\n",
           ctx->device, (long long)op->n, (long long)g.nnz,
           1e-9 * (double)(plan->resident + plan->streamed),
           1e-9 * (double)plan->resident, 1e-9 * (double)plan->streamed,
           plan->detail, now() - start, 1e-9 * link);
    for (const std::string &part : parts_of(argc, argv))
        take_part(g, op, part, width, link);
    sps_operator_destroy(&op);
    sps_context_destroy(&ctx);
    gen_close(&g);
    printf("%d%%: Checks: %d, Failures: %d, Errors: 0\n",
           checks ? 100 * (checks - failures) / checks : 0, checks, failures);
    return failures != 0;
}
