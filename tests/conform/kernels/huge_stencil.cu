/* SPDX-License-Identifier: BSD-3-Clause */
/* huge_stencil.cu - more than 2^31 nonzeros on one GPU: a 27-point stencil
 * assembled on the device, multiplied, sampled and solved.  For GPUs with about
 * 100 GB; run by name (run-gpu-tests huge_stencil).
 *
 *   huge_stencil [POINTS [KERNEL...]]
 *
 * 440 points per side.  Default kernels: auto, which also solves,
 * spmv.adaptive, spmm.rode and sample. spmv.NAME multiplies one vector,
 * spmm.NAME four; "sample" is SDDMM by the kernel with the lowest estimated
 * cost, sddmm.NAME by the named one.  A kernel that rejects so large a matrix
 * or runs out of memory is no failure: its error text is printed; that no
 * kernel multiplied is a failure. auto uses the device csr in place; for the
 * others it is copied to the host once, which is faster than once for each of
 * them.
 *
 * Values and blocks are small integers computed from the indices, so that
 * products and samples have one exact result, which the device computes again
 * without the matrix and compares bit for bit.  The last line has Check's
 * format, for the test runner. */
#include <chrono>
#include <cuda_runtime.h>
#include <initializer_list>
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

/* N^3 points, x varies fastest; neighbours are at most one step away in each
 * direction. */
struct grid {
    int64_t N;

    __host__ __device__ int64_t points() const { return N * N * N; }
    /* Ordered pairs (point, neighbour) along one grid line, each point its own
     * neighbour too: all, and those of the points before t. */
    __host__ __device__ int64_t line() const { return 3 * N - 2; }
    __host__ __device__ int64_t before(int64_t t) const
    {
        return t == 0 ? 0 : t == N ? line() : 3 * t - 1;
    }
    __host__ __device__ int64_t near(int64_t t) const
    {
        return before(t + 1) - before(t);
    }
    /* Number of entries in the rows before point i; by the tensor product
     * structure of the pattern no summation is needed. */
    __host__ __device__ int64_t offset(int64_t i) const
    {
        const int64_t x = i % N, y = i / N % N, z = i / (N * N);

        return before(z) * line() * line() +
               (z == N ? 0 : near(z) * (before(y) * line() +
                                        near(y) * before(x)));
    }
};

/* a_ij, symmetric, diagonally dominant: 26 neighbours sum to at most 104. */
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

/* Column c of x is column `first` + c of the test data. */
__global__ void fill(int64_t n, int k, int first, double *x)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        for (int c = 0; c < k; c++) x[i * k + c] = number(i, first + c);
}

/* val_p = (with_a a_p + without) x_i . y_j for entry p = (i, j). */
struct samples {
    int k;
    double with_a, without;
};

/* Counts the entries that differ from the expected samples. */
__global__ void compare_samples(grid g, samples s, const double *val,
                                unsigned long long *wrong)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    int64_t p;

    if (i >= g.points()) return;
    p = g.offset(i);
    neighbours(g, i, [&](int64_t j) {
        double dot = 0.0;

        for (int c = 0; c < s.k; c++) dot += number(i, c) * number(j, c + 5);
        if (val[p++] != (s.with_a * entry(i, j) + s.without) * dot)
            atomicAdd(wrong, 1ull);
    });
}

/* Counts the numbers of Y that differ from A X. */
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

/* max |b - A x| over all rows, as the bit pattern of a double (for nonnegative
 * numbers these order as integers do; NaN compares above all). */
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
    int answers;             /* products and samples that were compared */
};

void multiply(task &t, const sps_operator *op, int k)
{
    const int64_t n = t.g.points();
    sps_block *X, *Y;
    char what[160];

    fill<<<blocks(n), threads>>>(n, k, 0, t.x);
    need(cudaMemset(t.y, 0xff, (size_t)(n * k) * sizeof(double))); /* NaN */
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
    t.answers++;
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

    fill<<<blocks(n), threads>>>(n, k, 0, t.x);
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
    /* The test ||r|| <= 1e-8 ||b|| <= 1e-8 8 sqrt(n) bounds every component of
     * r. */
    snprintf(what, sizeof what, "%s after %d iterations, residual %.1e, "
             "largest number of b - A x %.1e", sps_stop_string(r.stop),
             r.iterations, r.worst_residual, most);
    check(r.stop > 0 && most <= 8e-8 * sqrt((double)n), what);
    sps_solver_destroy(&s);
    sps_block_destroy(&X);
    sps_block_destroy(&B);
}

/* Whether the call succeeded.  A kernel that is rejected with a reason is no
 * failure, unless no kernel was left ("auto"); any other error is. */
bool served(const char *name, sps_status st)
{
    if (st == SPS_OK) return true;
    printf("%s: %s: %s\n", name, sps_status_string(st),
           sps_context_error(ctx));
    if (!strcmp(name, "auto") ||
        (st != SPS_EUNFIT && st != SPS_ENOMEM && st != SPS_EDEVMEM))
        check(false, name);
    return false;
}

/* The kernel that the planner's table marks as chosen for sampling. */
const char *sampler(const sps_operator *op)
{
    static char text[1 << 14];
    char *line;

    sps_operator_describe(op, text, sizeof text);
    line = strstr(text, "sddmm k=");
    if (!line) return "nothing";
    for (line = strtok(line, "\n"); line; line = strtok(NULL, "\n"))
        if (strstr(line, " chosen")) return strtok(line, " ");
    return "nothing";
}

/* val = X . Y, then multiplied by the values of A, times two, minus three times
 * the old val: (2 a - 3) x_i . y_j. */
void sample(task &t, const sps_operator *op, const char *name)
{
    const int64_t n = t.g.points(), nnz = t.g.offset(n);
    const samples right = { widest, 2.0, -3.0 };
    double *val = room<double>(nnz);
    sps_block *U, *V;
    char what[160];

    fill<<<blocks(n), threads>>>(n, widest, 0, t.x);
    fill<<<blocks(n), threads>>>(n, widest, 5, t.y);
    need(cudaMemset(val, 0xff, (size_t)nnz * sizeof *val)); /* NaN */
    need(cudaDeviceSynchronize());
    need(sps_block_wrap(ctx, n, widest, t.x, widest, &U));
    need(sps_block_wrap(ctx, n, widest, t.y, widest, &V));
    if (served(name, sps_operator_sample(op, 1.0, U, V, false, 0.0, val))) {
        need(sps_operator_sample(op, 2.0, U, V, true, -3.0, val));
        need(sps_context_sync(ctx));
        compare_samples<<<blocks(n), threads>>>(t.g, right, val, t.counter);
        const unsigned long long wrong = read(t.counter);
        snprintf(what, sizeof what, "%s, %d columns: %llu of %lld samples "
                 "wrong", sampler(op), widest, wrong, (long long)nnz);
        check(wrong == 0, what);
        t.answers++;
    }
    sps_block_destroy(&U);
    sps_block_destroy(&V);
    need(cudaFree(val));
}

void run(task &t, sps_csr *A, const char *name)
{
    const bool samples = !strncmp(name, "sddmm.", 6) || !strcmp(name, "sample");
    const bool vectors = !strncmp(name, "spmv.", 5);
    const auto start = std::chrono::steady_clock::now();
    sps_operator *op;
    sps_options opt;

    sps_options_default(&opt);
    opt.kernel = strcmp(name, "sample") ? name : "auto";
    if (served(name, sps_operator_csr(ctx, A, vectors || samples ? 1 : widest,
                                      &opt, &op))) {
        if (samples) sample(t, op, name);
        else multiply(t, op, vectors ? 1 : widest);
        if (!strcmp(name, "auto")) {
            multiply(t, op, 1);
            solve(t, op, widest);
        }
        sps_operator_destroy(&op);
    }
    printf("%s: %.1f s\n", name, std::chrono::duration<double>(
        std::chrono::steady_clock::now() - start).count());
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

/* Destroys the device csr and its arrays. */
void forget(sps_csr *A)
{
    void *arrays[] = { A->rowptr, A->col, A->val };

    sps_csr_destroy(ctx, &A);
    for (void *p : arrays) need(cudaFree(p));
}

/* Copies the csr to the host and frees the one on the device. */
sps_csr *bring_home(sps_csr *A)
{
    sps_csr *B;

    need(sps_csr_create(ctx, A->nrow, A->ncol, A->nnz, SPS_F64, &B));
    need(cudaMemcpy(B->rowptr, A->rowptr,
                    (size_t)(A->nrow + 1) * sizeof *B->rowptr,
                    cudaMemcpyDeviceToHost));
    need(cudaMemcpy(B->col, A->col, (size_t)A->nnz * sizeof *B->col,
                    cudaMemcpyDeviceToHost));
    need(cudaMemcpy(B->val, A->val, (size_t)A->nnz * sizeof(double),
                    cudaMemcpyDeviceToHost));
    B->props = A->props;
    forget(A);
    return B;
}

/* The kernels of the command line, or the default ones; auto comes first. */
void run_all(task &t, int count, char **name)
{
    const bool usual = count == 0;
    sps_csr *A = stencil(t.g), *B;
    bool automatic = usual;

    for (int i = 0; i < count; i++)
        automatic = automatic || !strcmp(name[i], "auto");
    if (automatic) run(t, A, "auto");
    B = bring_home(A);
    for (const char *each : { "spmv.adaptive", "spmm.rode", "sample" })
        if (usual) run(t, B, each);
    for (int i = 0; i < count; i++)
        if (strcmp(name[i], "auto")) run(t, B, name[i]);
    sps_csr_destroy(ctx, &B);
    check(t.answers > 0, "something was multiplied or sampled");
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
    task t = { g, room<double>(g.points() * widest),
               room<double>(g.points() * widest),
               room<unsigned long long>(1) };
    need(cudaMemset(t.counter, 0, sizeof *t.counter));
    run_all(t, argc > 2 ? argc - 2 : 0, argv + 2);
    for (void *p : { (void *)t.x, (void *)t.y, (void *)t.counter })
        need(cudaFree(p));
    sps_context_destroy(&ctx);
    printf("%d%%: Checks: %d, Failures: %d, Errors: 0\n",
           checks ? 100 * (checks - failures) / checks : 0, checks, failures);
    return failures > 0;
}
