/* SPDX-License-Identifier: BSD-3-Clause */
/* huge_stencil.cu - more than 2^31 nonzeros on one GPU: a 27-point stencil
 * assembled on the device, handed over as a device csr, multiplied and solved.
 * For GPUs with some 100 GB; run by name (run-gpu-tests huge_stencil).
 *
 *   huge_stencil [POINTS [KERNEL...]]     440 points a side, kernel "auto"
 *
 * Values and right-hand sides are small integers made from the indices, so a
 * product has one exact result, which the device computes again without the
 * matrix and compares bit for bit.  Last line as Check's, for the runner. */
#include <cuda_runtime.h>
#include <spsolve.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace {

constexpr int threads = 256, widest = 4, skipped = 77;
int checks, failures;
sps_context *ctx;

void check(bool right, const char *what)
{
    checks++;
    failures += !right;
    printf("%s: %s\n", right ? "ok" : "FAILED", what);
}

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

/* N^3 points, numbered x first; each sees its neighbours within one step. */
struct grid {
    int64_t N;

    __host__ __device__ int64_t points() const { return N * N * N; }
    /* Pairs of neighbours on a line: all, and of the points before t. */
    __host__ __device__ int64_t line() const { return 3 * N - 2; }
    __host__ __device__ int64_t before(int64_t t) const
    {
        return t == 0 ? 0 : t == N ? line() : 3 * t - 1;
    }
    __host__ __device__ int64_t near(int64_t t) const
    {
        return before(t + 1) - before(t);
    }
    /* Entries of the rows before point i: the product structure of the
     * pattern gives it without a sum. */
    __host__ __device__ int64_t offset(int64_t i) const
    {
        const int64_t x = i % N, y = i / N % N, z = i / (N * N);

        return before(z) * line() * line() +
               (z == N ? 0 : near(z) * (before(y) * line() +
                                        near(y) * before(x)));
    }
};

/* a_ij, symmetric, diagonally dominant: 26 neighbours are at most 104. */
__device__ double entry(int64_t i, int64_t j)
{
    return i == j ? 200.0 : -(double)(1 + ((i + j) & 3));
}

__host__ __device__ double number(int64_t i, int c)
{
    return (double)((i * 7 + c * 13) % 17 - 8);
}

/* Calls f(j) for each neighbour j of i, ascending. */
template <class F>
__device__ void neighbours(grid g, int64_t i, F f)
{
    const int64_t x = i % g.N, y = i / g.N % g.N, z = i / (g.N * g.N);

    for (int64_t w = z - 1; w <= z + 1; w++)
        for (int64_t v = y - 1; v <= y + 1; v++)
            for (int64_t u = x - 1; u <= x + 1; u++)
                if (u >= 0 && v >= 0 && w >= 0 && u < g.N && v < g.N &&
                    w < g.N)
                    f((w * g.N + v) * g.N + u);
}

__global__ void assemble(grid g, int64_t *rowptr, int32_t *col, double *val)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    int64_t p;

    if (i > g.points()) return;
    rowptr[i] = p = g.offset(i);
    if (i == g.points()) return;
    neighbours(g, i, [&](int64_t j) {
        col[p] = (int32_t)j;
        val[p++] = entry(i, j);
    });
}

__global__ void fill(int64_t n, int k, double *x)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        for (int c = 0; c < k; c++) x[i * k + c] = number(i, c);
}

/* Counts the numbers of Y that are not A X. */
__global__ void compare(grid g, int k, const double *Y,
                        unsigned long long *wrong)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

    if (i >= g.points()) return;
    for (int c = 0; c < k; c++) {
        double sum = 0.0;

        neighbours(g, i, [&](int64_t j) { sum += entry(i, j) * number(j, c); });
        if (Y[i * k + c] != sum) atomicAdd(wrong, 1ull);
    }
}

/* r = b - A x at the largest, over all rows, as the bits of a double (which
 * order as integers do for numbers that are not negative; NaN is above all). */
__global__ void residual(grid g, int k, const double *B, const double *X,
                         unsigned long long *most)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

    if (i >= g.points()) return;
    for (int c = 0; c < k; c++) {
        double r = B[i * k + c];

        neighbours(g, i, [&](int64_t j) { r -= entry(i, j) * X[j * k + c]; });
        atomicMax(most, (unsigned long long)__double_as_longlong(fabs(r)));
    }
}

template <class T>
T *room(int64_t count)
{
    void *p;

    need(cudaMalloc(&p, (size_t)count * sizeof(T)));
    return (T *)p;
}

unsigned blocks(int64_t n) { return (unsigned)((n + threads - 1) / threads); }

unsigned long long read(unsigned long long *p)
{
    unsigned long long value;

    need(cudaMemcpy(&value, p, sizeof value, cudaMemcpyDeviceToHost));
    need(cudaMemset(p, 0, sizeof value));
    return value;
}

struct task {
    grid g;
    double *x, *y;
    unsigned long long *counter;
};

void multiply(const task &t, const sps_operator *op, int k)
{
    const int64_t n = t.g.points();
    sps_block *X, *Y;
    char what[160];

    fill<<<blocks(n), threads>>>(n, k, t.x);
    need(cudaDeviceSynchronize());
    need(sps_block_wrap(ctx, n, k, t.x, k, &X));
    need(sps_block_wrap(ctx, n, k, t.y, k, &Y));
    need(sps_operator_apply(op, 1.0, X, 0.0, Y));
    need(sps_context_sync(ctx));
    compare<<<blocks(n), threads>>>(t.g, k, t.y, t.counter);
    const unsigned long long wrong = read(t.counter);
    snprintf(what, sizeof what, "%s, %d columns: %llu of %lld numbers wrong",
             sps_operator_kernel(op), k, wrong, (long long)(n * k));
    check(wrong == 0, what);
    sps_block_destroy(&X);
    sps_block_destroy(&Y);
}

void solve(const task &t, const sps_operator *op, int k)
{
    const int64_t n = t.g.points();
    sps_result r = {};
    sps_solver *s;
    sps_block *B, *X;
    char what[200];

    fill<<<blocks(n), threads>>>(n, k, t.x);
    need(cudaMemset(t.y, 0, (size_t)(n * k) * sizeof(double)));
    need(sps_block_wrap(ctx, n, k, t.x, k, &B));
    need(sps_block_wrap(ctx, n, k, t.y, k, &X));
    need(sps_solver_create(op, NULL, k, NULL, &s));
    r.struct_size = sizeof r;
    need(sps_solver_linear(s, B, X, &r));
    need(sps_context_sync(ctx));
    residual<<<blocks(n), threads>>>(t.g, k, t.x, t.y, t.counter);
    const unsigned long long bits = read(t.counter);
    double most;
    memcpy(&most, &bits, sizeof most);
    /* ||r|| <= 1e-8 ||b|| <= 1e-8 8 sqrt(n) bounds each number of r. */
    snprintf(what, sizeof what, "%s after %d iterations, residual %.1e, "
             "largest number of b - A x %.1e", sps_stop_string(r.stop),
             r.iterations, r.worst_residual, most);
    check(r.stop > 0 && most <= 8e-8 * sqrt((double)n), what);
    sps_solver_destroy(&s);
    sps_block_destroy(&X);
    sps_block_destroy(&B);
}

void run(const task &t, sps_csr *A, const char *kernel)
{
    sps_operator *op;
    sps_options opt;

    sps_options_default(&opt);
    opt.kernel = kernel;
    if (sps_operator_csr(ctx, A, widest, &opt, &op) != SPS_OK) {
        check(false, sps_context_error(ctx));
        return;
    }
    multiply(t, op, widest);
    multiply(t, op, 1);
    if (!strcmp(kernel, "auto")) solve(t, op, widest);
    sps_operator_destroy(&op);
}

sps_csr *stencil(grid g)
{
    const int64_t n = g.points(), nnz = g.offset(n);
    int64_t *rowptr = room<int64_t>(n + 1);
    int32_t *col = room<int32_t>(nnz);
    double *val = room<double>(nnz);
    sps_csr *A;

    printf("%lld rows, %lld nonzeros\n", (long long)n, (long long)nnz);
    assemble<<<blocks(n + 1), threads>>>(g, rowptr, col, val);
    need(cudaDeviceSynchronize());
    need(sps_csr_wrap(ctx, n, n, nnz, rowptr, col, val, SPS_F64, SPS_CUDA,
                      SPS_BORROW, &A));
    A->props = SPS_SYMMETRIC | SPS_SPD;
    return A;
}

} // namespace

int main(int argc, char **argv)
{
    const grid g = { argc > 1 ? atoll(argv[1]) : 440 };
    sps_context_options where;
    const char *why = "no driver";

    sps_context_options_default(&where);
    where.place = SPS_CUDA;
    if (sps_context_create(&where, &ctx, &why) != SPS_OK) {
        printf("skipped: no GPU here (%s)\n", why);
        return skipped;
    }
    sps_csr *A = stencil(g);
    task t = { g, room<double>(g.points() * widest),
               room<double>(g.points() * widest),
               room<unsigned long long>(1) };
    need(cudaMemset(t.counter, 0, sizeof *t.counter));
    if (argc < 3) run(t, A, "auto");
    for (int i = 2; i < argc; i++) run(t, A, argv[i]);
    void *arrays[] = { A->rowptr, A->col, A->val, t.x, t.y, t.counter };
    sps_csr_destroy(ctx, &A);
    for (void *p : arrays) need(cudaFree(p));
    sps_context_destroy(&ctx);
    printf("%d%%: Checks: %d, Failures: %d, Errors: 0\n",
           checks ? 100 * (checks - failures) / checks : 0, checks, failures);
    return failures > 0;
}
