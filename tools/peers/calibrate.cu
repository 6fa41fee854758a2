// SPDX-License-Identifier: BSD-3-Clause
// calibrate.cu - what a GPU really does, for the cost models of the kernels:
// copies, gathers of random rows by length and footprint, caches, tensor
// cores, reductions in memory, host link, launches.  Prints Markdown; the
// constants of kernels/cuda/machine.h were read from it.  No part of the
// library and not built by make; needs 20 seconds and 2 GB of the GPU:
//
//   nvcc -O3 -std=c++20 -arch sm_90 -o calibrate calibrate.cu && ./calibrate
//
// Each figure is the median of 7 samples of at least 2 ms.  Bytes are those
// asked for by the loads; 1 TB/s = 1e12 bytes/s; flops count 2 for each
// multiply-add.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

namespace {

void check(cudaError_t e, int line)
{
    if (e == cudaSuccess) return;
    fprintf(stderr, "calibrate: line %d: %s\n", line, cudaGetErrorString(e));
    exit(6);
}
#define CHECK(call) check((call), __LINE__)

int sms;
double ghz; /* measured clock of the SMs */
cudaStream_t stream;

// ------------------------------------------------------------------- times

double span(int runs, const std::vector<cudaEvent_t> &e, auto run)
{
    float ms;

    CHECK(cudaEventRecord(e[0], stream));
    for (int i = 0; i < runs; i++) run();
    CHECK(cudaEventRecord(e[1], stream));
    CHECK(cudaEventSynchronize(e[1]));
    CHECK(cudaEventElapsedTime(&ms, e[0], e[1]));
    return 1e-3 * ms / runs;
}

// Seconds of one run.
double seconds(auto run)
{
    std::vector<cudaEvent_t> e(2);
    double t[7];
    int runs;

    for (auto &x : e) CHECK(cudaEventCreate(&x));
    span(2, e, run);
    runs = 1 + (int)std::min(2e-3 / span(1, e, run), 5000.0);
    for (double &x : t) x = span(runs, e, run);
    for (auto &x : e) CHECK(cudaEventDestroy(x));
    CHECK(cudaGetLastError());
    std::sort(t, t + 7);
    return t[3];
}

char *device(size_t bytes)
{
    char *p;

    CHECK(cudaMalloc(&p, bytes));
    CHECK(cudaMemset(p, 0, bytes));
    return p;
}

// ---------------------------------------------------------- whole memory

__global__ void spin(long long cycles)
{
    const long long begin = clock64();

    while (clock64() - begin < cycles) {}
}

__global__ void __launch_bounds__(256)
copy(const double2 *x, double2 *y, int64_t n)
{
    const int64_t step = (int64_t)gridDim.x * 256;

#pragma unroll 4
    for (int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x; i < n; i += step)
        y[i] = x[i];
}

__global__ void __launch_bounds__(256)
read(const double2 *x, double *sink, int64_t n)
{
    const int64_t step = (int64_t)gridDim.x * 256;
    double sum = 0;

#pragma unroll 8
    for (int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x; i < n;
         i += step) {
        const double2 v = x[i];

        sum += v.x + v.y;
    }
    if (sum == 1) *sink = sum;
}

__global__ void __launch_bounds__(256) write(double2 *y, int64_t n)
{
    const int64_t step = (int64_t)gridDim.x * 256;

    for (int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x; i < n; i += step)
        y[i] = make_double2(0, 0);
}

void memory()
{
    const size_t bytes = (size_t)512 << 20;
    const int64_t n = (int64_t)(bytes / sizeof(double2));
    char *x = device(bytes), *y = device(bytes);
    double t;

    printf("## Memory (512 MB)\n\n| | TB/s |\n|:--|--:|\n");
    t = seconds([&] { CHECK(cudaMemcpyAsync(y, x, bytes,
                            cudaMemcpyDeviceToDevice, stream)); });
    printf("| copy, cudaMemcpy (read + written) | %.2f |\n",
           2e-12 * (double)bytes / t);
    t = seconds([&] { copy<<<16 * sms, 256, 0, stream>>>((double2 *)x,
                                                         (double2 *)y, n); });
    printf("| copy, kernel | %.2f |\n", 2e-12 * (double)bytes / t);
    t = seconds([&] { read<<<16 * sms, 256, 0, stream>>>((double2 *)x,
                                                         (double *)y, n); });
    printf("| read | %.2f |\n", 1e-12 * (double)bytes / t);
    t = seconds([&] { write<<<16 * sms, 256, 0, stream>>>((double2 *)y, n); });
    printf("| write | %.2f |\n\n", 1e-12 * (double)bytes / t);
    CHECK(cudaFree(x));
    CHECK(cudaFree(y));
}

// ----------------------------------------------------------------- gathers

enum { L2_ONLY, CACHED };

template <int HOW> __device__ __forceinline__ double2 load(const double2 *p)
{
    return HOW == L2_ONLY ? __ldcg(p) : *p;
}

__device__ __forceinline__ uint32_t start_of(uint32_t group)
{
    uint32_t h = group * 2654435761u + 12345u;

    h = (h ^ h >> 15) * 2246822519u;
    return h ^ h >> 13;
}
__device__ __forceinline__ uint32_t next(uint32_t &s)
{
    return s = s * 1664525u + 1013904223u;
}

// Groups of ROW / 16 lanes (at most a warp) read whole random rows, 8 loads
// of a lane in flight.  The row numbers cost three integer instructions.
template <int ROW, int HOW> __global__ void __launch_bounds__(256)
gather(const char *x, uint32_t rows, int trips, double *sink)
{
    constexpr int lanes = ROW / 16 < 32 ? ROW / 16 : 32;
    constexpr int passes = ROW / 16 / lanes, unroll = 8 / passes;
    const uint32_t id = blockIdx.x * 256 + threadIdx.x;
    uint32_t s = start_of(id / lanes);
    double sum = 0;

    x += id % lanes * 16;
    for (int t = 0; t < trips; t++) {
        double2 v[unroll * passes];

#pragma unroll
        for (int u = 0; u < unroll; u++) {
            const char *row = x + (uint64_t)__umulhi(next(s), rows) * ROW;

#pragma unroll
            for (int p = 0; p < passes; p++)
                v[u * passes + p] = load<HOW>((const double2 *)(row +
                                                                p * 512));
        }
#pragma unroll
        for (int u = 0; u < unroll * passes; u++) sum += v[u].x + v[u].y;
    }
    if (sum == 1) *sink = sum;
}

// One number of 8 bytes for each lane, anywhere.
template <int HOW> __global__ void __launch_bounds__(256)
scattered(const double *x, uint32_t n, int trips, double *sink)
{
    uint32_t s = start_of(blockIdx.x * 256 + threadIdx.x);
    double sum = 0;

    for (int t = 0; t < trips; t++) {
        double v[8];

#pragma unroll
        for (int u = 0; u < 8; u++) {
            const double *p = x + __umulhi(next(s), n);

            v[u] = HOW == L2_ONLY ? __ldcg(p) : *p;
        }
#pragma unroll
        for (int u = 0; u < 8; u++) sum += v[u];
    }
    if (sum == 1) *sink = sum;
}

constexpr int trips = 64;

// TB/s of rows of ROW bytes (8: scattered numbers) out of `bytes`.
template <int ROW, int HOW> double gather_rate(char *x, size_t bytes)
{
    const int blocks = 8 * sms;
    const double asked = (ROW == 8 ? 8.0 : 16.0) * 8 * trips * blocks * 256;

    return 1e-12 * asked / seconds([&] {
        if constexpr (ROW == 8)
            scattered<HOW><<<blocks, 256, 0, stream>>>(
                (double *)x, (uint32_t)(bytes / 8), trips, (double *)x);
        else
            gather<ROW, HOW><<<blocks, 256, 0, stream>>>(
                x, (uint32_t)(bytes / ROW), trips, (double *)x);
    });
}

template <int HOW> void gather_line(char *x, size_t bytes)
{
    printf(" %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f |\n",
           gather_rate<8, HOW>(x, bytes), gather_rate<32, HOW>(x, bytes),
           gather_rate<64, HOW>(x, bytes), gather_rate<128, HOW>(x, bytes),
           gather_rate<256, HOW>(x, bytes), gather_rate<512, HOW>(x, bytes),
           gather_rate<1024, HOW>(x, bytes));
    fflush(stdout);
}

void gathers()
{
    const int mb[] = {4, 8, 16, 24, 32, 40, 48, 64, 96, 128, 240, 480, 1024};
    const int kb[] = {16, 64, 128, 192, 256, 512, 1024};
    char *x = device((size_t)1024 << 20);

    printf("## Random rows out of L2 and memory (L1 bypassed), TB/s\n\n"
           "| footprint | 8 B | 32 B | 64 B | 128 B | 256 B | 512 B | 1024 B "
           "|\n|--:|--:|--:|--:|--:|--:|--:|--:|\n");
    for (int m : mb) {
        printf("| %d MB |", m);
        gather_line<L2_ONLY>(x, (size_t)m << 20);
    }
    printf("\n## Random rows through L1, TB/s\n\n"
           "Every SM reads the same footprint; 8 B: scattered numbers, %d SMs "
           "at %.2f GHz.\n\n| footprint | 8 B | 32 B | 64 B | 128 B | 256 B | "
           "512 B | 1024 B |\n|--:|--:|--:|--:|--:|--:|--:|--:|\n", sms, ghz);
    for (int k : kb) {
        printf("| %d KB |", k);
        gather_line<CACHED>(x, (size_t)k << 10);
    }
    printf("\n");
    CHECK(cudaFree(x));
}

// A stream of 12 bytes for each gathered row, as a product reads a matrix.
enum { PLAIN, STREAMING, EVICT_FIRST };

template <int HINT, class T> __device__ __forceinline__ T once(const T *p)
{
    if (HINT == STREAMING) return __ldcs(p);
    if (HINT == EVICT_FIRST) {
        uint64_t policy;
        T v;

        asm("createpolicy.fractional.L2::evict_first.b64 %0;"
            : "=l"(policy));
        if constexpr (sizeof(T) == 8)
            asm("ld.global.nc.L1::no_allocate.L2::cache_hint.f64 %0, [%1], "
                "%2;" : "=d"(v) : "l"(p), "l"(policy));
        else
            asm("ld.global.nc.L1::no_allocate.L2::cache_hint.b32 %0, [%1], "
                "%2;" : "=r"(v) : "l"(p), "l"(policy));
        return v;
    }
    return __ldg(p);
}

template <int HINT> __global__ void __launch_bounds__(256)
product(const int *col, const double *val, const double2 *x, int64_t n,
        double *sink)
{
    const int64_t groups = (int64_t)gridDim.x * 32;
    const int lane = (int)threadIdx.x % 8;
    double sum = 0;

#pragma unroll 8
    for (int64_t p = blockIdx.x * 32 + threadIdx.x / 8; p < n; p += groups) {
        const double a = once<HINT>(val + p);
        const double2 v = __ldg(x + (int64_t)once<HINT>(col + p) * 8 + lane);

        sum += a * v.x + a * v.y;
    }
    if (sum == 1) *sink = sum;
}

__global__ void number(int *col, int64_t n, uint32_t rows)
{
    const int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;

    if (i < n) col[i] = (int)__umulhi(start_of((uint32_t)i), rows);
}

void products()
{
    const int64_t n = 24 << 20;
    int *col = (int *)device((size_t)n * 4);
    double *val = (double *)device((size_t)n * 8);
    double2 *x = (double2 *)device((size_t)256 << 20);
    auto rate = [&](auto kernel) {
        return 128e-12 * (double)n / seconds([&] {
            kernel<<<8 * sms, 256, 0, stream>>>(col, val, x, n, val);
        });
    };

    printf("## Random rows of 128 B while a matrix streams by, TB/s of rows\n"
           "\n12 bytes of matrix for each row, by how the matrix is read.\n\n"
           "| footprint | plain | streaming | evict first |\n"
           "|--:|--:|--:|--:|\n");
    for (int mb : {8, 16, 24, 32, 48, 64, 128, 256}) {
        number<<<(unsigned)(n / 256), 256, 0, stream>>>(
            col, n, (uint32_t)mb << 13);
        printf("| %d MB | %.2f | %.2f | %.2f |\n", mb, rate(product<PLAIN>),
               rate(product<STREAMING>), rate(product<EVICT_FIRST>));
    }
    printf("\n");
    CHECK(cudaFree(col));
    CHECK(cudaFree(val));
    CHECK(cudaFree(x));
}

// ----------------------------------------------------------- shared memory

// Neighbours read beside each other; SAME: one address for a warp.
__device__ __forceinline__ double total(double v) { return v; }
__device__ __forceinline__ double total(double2 v) { return v.x + v.y; }

template <class T, bool SAME> __global__ void __launch_bounds__(256)
shared_read(int trips, double *sink)
{
    __shared__ T data[1024];
    const int t = (int)threadIdx.x;
    double sum = 0;

    for (int i = t; i < 1024; i += 256) data[i] = T{};
    __syncthreads();
    for (int trip = 0; trip < trips; trip++) {
        T v[8];

#pragma unroll
        for (int u = 0; u < 8; u++)
            v[u] = data[(SAME ? t / 32 * 32 : t) + u * 64 + (trip & 31)];
#pragma unroll
        for (int u = 0; u < 8; u++) sum += total(v[u]);
    }
    if (sum == 1) *sink = sum;
}

void shared()
{
    double *sink = (double *)device(8);
    const int blocks = 8 * sms, many = 512;
    const double loads = 8.0 * many * blocks * 256;
    auto line = [&](const char *what, double width, auto kernel) {
        const double t = seconds([&] {
            kernel<<<blocks, 256, 0, stream>>>(many, sink);
        });

        printf("| %s | %.1f | %.0f |\n", what, 1e-12 * width * loads / t,
               width * loads / t / sms / (1e9 * ghz));
    };

    printf("## Shared memory\n\n| read | TB/s | B/clock/SM |\n|:--|--:|--:|\n");
    line("8 B, neighbours", 8, shared_read<double, false>);
    line("16 B, neighbours", 16, shared_read<double2, false>);
    line("8 B, one address for a warp", 8, shared_read<double, true>);
    printf("\n");
    CHECK(cudaFree(sink));
}

// ------------------------------------------------------------ tensor cores

enum { FMA, M8N8K4, M16N8K4, M16N8K8, M16N8K16, TF32, BF16, FP16 };

constexpr double flops_of(int shape)
{
    return shape == FMA ? 64 : shape == M8N8K4 ? 512 : shape == M16N8K4 ? 1024
         : shape == M16N8K8 || shape == TF32 ? 2048 : 4096;
}

template <int SHAPE>
__device__ __forceinline__ void mma(double *d, const double *a)
{
    if (SHAPE == FMA) d[0] = fma(a[0], d[0], a[1]);
    if (SHAPE == M8N8K4)
        asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 "
            "{%0,%1}, {%2}, {%3}, {%0,%1};"
            : "+d"(d[0]), "+d"(d[1]) : "d"(a[0]), "d"(a[1]));
    if (SHAPE == M16N8K4)
        asm volatile("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 "
            "{%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
            : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
            : "d"(a[0]), "d"(a[1]), "d"(a[2]));
    if (SHAPE == M16N8K8)
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
            "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
            : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]),
              "d"(a[5]));
    if (SHAPE == M16N8K16)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 "
            "{%0,%1,%2,%3}, {%4,%5,%6,%7,%8,%9,%10,%11}, {%12,%13,%14,%15}, "
            "{%0,%1,%2,%3};"
            : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
            : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]),
              "d"(a[5]), "d"(a[6]), "d"(a[7]), "d"(a[0]), "d"(a[1]),
              "d"(a[2]), "d"(a[3]));
}

template <int SHAPE>
__device__ __forceinline__ void mma_low(float *d, const uint32_t *a)
{
#define LOW(shape, type) \
    asm volatile("mma.sync.aligned." shape ".row.col.f32." type "." type \
        ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]))
    if (SHAPE == TF32) LOW("m16n8k8", "tf32");
    if (SHAPE == BF16) LOW("m16n8k16", "bf16");
    if (SHAPE == FP16) LOW("m16n8k16", "f16");
#undef LOW
}

template <int SHAPE> __global__ void __launch_bounds__(256)
multiply(int trips, double *sink)
{
    double d[8][4] = {}, a[8];
    float f[8][4] = {};
    uint32_t w[6];
    double sum = 0;

    for (int i = 0; i < 8; i++) a[i] = 1e-3 * (threadIdx.x + i);
    for (int i = 0; i < 6; i++) w[i] = threadIdx.x;
    for (int t = 0; t < trips; t++)
#pragma unroll
        for (int u = 0; u < 8; u++)
            if (SHAPE >= TF32) mma_low<SHAPE>(f[u], w);
            else mma<SHAPE>(d[u], a);
    for (int u = 0; u < 8; u++)
        for (int i = 0; i < 4; i++) sum += d[u][i] + f[u][i];
    if (sum == 1) *sink = sum;
}

// Gathers of 128-byte rows out of L2, each 16 bytes of a lane feeding COUNT
// m8n8k4: do loads and tensor cores run side by side?
template <int COUNT> __global__ void __launch_bounds__(256)
feed(const char *x, uint32_t rows, int trips, double *sink)
{
    const uint32_t id = blockIdx.x * 256 + threadIdx.x;
    uint32_t s = start_of(id / 8);
    double d[8][2] = {}, sum = 0;

    x += id % 8 * 16;
    for (int t = 0; t < trips; t++) {
        double2 v[8];

#pragma unroll
        for (int u = 0; u < 8; u++)
            v[u] = __ldcg((const double2 *)(x + (uint64_t)__umulhi(next(s),
                                                        rows) * 128));
#pragma unroll
        for (int c = 0; c < COUNT; c++)
#pragma unroll
            for (int u = 0; u < 8; u++)
                mma<M8N8K4>(d[u], c % 2 ? &v[u].x : &v[u ^ 1].x);
        if (!COUNT)
#pragma unroll
            for (int u = 0; u < 8; u++) d[u][0] += v[u].x + v[u].y;
    }
    for (int u = 0; u < 8; u++) sum += d[u][0] + d[u][1];
    if (sum == 1) *sink = sum;
}

template <int COUNT> void feed_line(char *x)
{
    const int blocks = 8 * sms;
    const double loads = 8.0 * trips * blocks * 256;
    const double t = seconds([&] {
        feed<COUNT><<<blocks, 256, 0, stream>>>(x, (16u << 20) / 128, trips,
                                                (double *)x);
    });

    printf("| %d | %.2f | %.1f |\n", COUNT, 16e-12 * loads / t,
           1e-12 * loads / 32 * COUNT * flops_of(M8N8K4) / t);
}

void tensor()
{
    char *x = device(16 << 20);
    const int blocks = 8 * sms, many = 2048;
    auto line = [&](const char *what, int shape, auto kernel) {
        const double count = 8.0 * many * blocks * 8;
        const double t = seconds([&] {
            kernel<<<blocks, 256, 0, stream>>>(many, (double *)x);
        });

        printf("| %s | %.1f | %.0f |\n", what,
               1e-12 * flops_of(shape) * count / t,
               flops_of(shape) / 2 * count / t / sms / (1e9 * ghz));
    };

    printf("## Arithmetic\n\n| | TF/s | multiply-adds/clock/SM |\n"
           "|:--|--:|--:|\n");
    line("fp64 FMA", FMA, multiply<FMA>);
    line("fp64 m8n8k4", M8N8K4, multiply<M8N8K4>);
    line("fp64 m16n8k4", M16N8K4, multiply<M16N8K4>);
    line("fp64 m16n8k8", M16N8K8, multiply<M16N8K8>);
    line("fp64 m16n8k16", M16N8K16, multiply<M16N8K16>);
    line("tf32 m16n8k8", TF32, multiply<TF32>);
    line("bf16 m16n8k16", BF16, multiply<BF16>);
    line("fp16 m16n8k16", FP16, multiply<FP16>);
    printf("\n## Rows of 128 B out of L2 feeding fp64 m8n8k4\n\n"
           "| products for each load | TB/s | TF/s |\n|--:|--:|--:|\n");
    feed_line<0>(x);
    feed_line<1>(x);
    feed_line<2>(x);
    feed_line<4>(x);
    feed_line<8>(x);
    printf("\n");
    CHECK(cudaFree(x));
}

// ----------------------------------------------------- sums made in memory

// Groups of ROW / 8 lanes add 1 to a random row each.
template <int ROW> __global__ void __launch_bounds__(256)
reduce(char *y, uint32_t rows, int trips)
{
    constexpr int lanes = ROW / 8 < 32 ? ROW / 8 : 32;
    const uint32_t id = blockIdx.x * 256 + threadIdx.x;
    uint32_t s = start_of(id / lanes);

    for (int t = 0; t < trips; t++) {
        double *row = (double *)(y + (uint64_t)__umulhi(next(s), rows) * ROW);

        asm volatile("red.global.add.f64 [%0], %1;"
                     :: "l"(row + id % lanes), "d"(1.0) : "memory");
    }
}

void reductions()
{
    char *y = device((size_t)256 << 20);
    auto line = [&](const char *what, int64_t bytes, int width, auto kernel) {
        const double adds = 64.0 * 8 * sms * 256;
        const double t = seconds([&] {
            kernel<<<8 * sms, 256, 0, stream>>>(
                y, (uint32_t)(bytes / width), 64);
        });

        printf("| %s | %.0f | %.2f |\n", what, 1e-9 * adds / t,
               8e-12 * adds / t);
    };

    printf("## red.add.f64 to random rows\n\n| | G adds/s | TB/s |\n"
           "|:--|--:|--:|\n");
    line("8 B out of 16 MB", 16 << 20, 8, reduce<8>);
    line("64 B out of 16 MB", 16 << 20, 64, reduce<64>);
    line("256 B out of 16 MB", 16 << 20, 256, reduce<256>);
    line("256 B out of 256 MB", 256 << 20, 256, reduce<256>);
    line("256 B out of 64 KB", 64 << 10, 256, reduce<256>);
    line("256 B, one row", 256, 256, reduce<256>);
    line("8 B, one number", 8, 8, reduce<8>);
    printf("\n");
    CHECK(cudaFree(y));
}

// ------------------------------------------------------- link and launches

void link_rates()
{
    const size_t bytes = (size_t)256 << 20;
    char *up, *down, *x = device(bytes), *y = device(bytes);
    cudaStream_t other;
    cudaEvent_t begin, end;
    double t;

    CHECK(cudaMallocHost(&up, bytes));
    CHECK(cudaMallocHost(&down, bytes));
    CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&begin, cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&end, cudaEventDisableTiming));
    printf("## Host link (pinned, 256 MB)\n\n| | GB/s |\n|:--|--:|\n");
    auto to = [&] { CHECK(cudaMemcpyAsync(x, up, bytes,
                          cudaMemcpyHostToDevice, stream)); };
    t = seconds(to);
    printf("| to the GPU | %.1f |\n", 1e-9 * (double)bytes / t);
    t = seconds([&] { CHECK(cudaMemcpyAsync(down, y, bytes,
                            cudaMemcpyDeviceToHost, stream)); });
    printf("| from the GPU | %.1f |\n", 1e-9 * (double)bytes / t);
    t = seconds([&] {
        CHECK(cudaEventRecord(begin, stream));
        CHECK(cudaStreamWaitEvent(other, begin, 0));
        to();
        CHECK(cudaMemcpyAsync(down, y, bytes, cudaMemcpyDeviceToHost, other));
        CHECK(cudaEventRecord(end, other));
        CHECK(cudaStreamWaitEvent(stream, end, 0));
    });
    printf("| both at once, sum | %.1f |\n\n", 2e-9 * (double)bytes / t);
    CHECK(cudaStreamDestroy(other));
    CHECK(cudaFreeHost(up));
    CHECK(cudaFreeHost(down));
    CHECK(cudaFree(x));
    CHECK(cudaFree(y));
}

// A graph of so many empty kernels, one after another.
cudaGraphExec_t recorded(int kernels)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;

    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < kernels; i++) spin<<<1, 32, 0, stream>>>(0);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphDestroy(graph));
    return exec;
}

void launches()
{
    cudaGraphExec_t one = recorded(1), many = recorded(100);
    auto us = [&](auto run) { return 1e6 * seconds(run); };

    printf("## Launches\n\n| | us |\n|:--|--:|\n");
    printf("| empty kernel after kernel | %.2f |\n",
           us([&] { spin<<<1, 32, 0, stream>>>(0); }));
    printf("| empty kernel and wait | %.2f |\n", us([&] {
        spin<<<1, 32, 0, stream>>>(0);
        CHECK(cudaStreamSynchronize(stream));
    }));
    printf("| graph of one empty kernel | %.2f |\n",
           us([&] { CHECK(cudaGraphLaunch(one, stream)); }));
    printf("| each kernel of a graph of 100 | %.2f |\n\n",
           us([&] { CHECK(cudaGraphLaunch(many, stream)); }) / 100);
    CHECK(cudaGraphExecDestroy(one));
    CHECK(cudaGraphExecDestroy(many));
}

} // namespace

int main()
{
    cudaDeviceProp prop;

    CHECK(cudaGetDeviceProperties(&prop, 0));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    sms = prop.multiProcessorCount;
    seconds([] { spin<<<1, 32, 0, stream>>>(1000000); });
    ghz = 1e-9 * 4e6 / seconds([] { spin<<<1, 32, 0, stream>>>(4000000); });
    printf("# %s\n\n%d SMs at %.2f GHz (measured), %.0f MB of L2, %.0f KB of "
           "shared memory in an SM\n\n", prop.name, sms, ghz,
           (double)prop.l2CacheSize / (1 << 20),
           (double)prop.sharedMemPerMultiprocessor / 1024);
    memory();
    gathers();
    products();
    shared();
    tensor();
    reductions();
    link_rates();
    launches();
    return 0;
}
