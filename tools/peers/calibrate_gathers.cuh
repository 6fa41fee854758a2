// SPDX-License-Identifier: BSD-3-Clause
// calibrate_gathers.cuh - gathers of random rows from device memory, L2 and L1,
// by row length, footprint and the cache hints of the loads of the matrix.
#ifndef CALIBRATE_GATHERS_CUH
#define CALIBRATE_GATHERS_CUH

#include "calibrate.cuh"

namespace {

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

// Groups of ROW / 16 lanes (at most a warp) read whole random rows, with 8
// loads per lane in flight.  Computing a row number takes three integer
// instructions.
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

// Each lane reads one double at a random index.
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

// Returns the TB/s of reading rows of ROW bytes (8: single doubles) within
// `bytes` bytes.
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

// For each gathered row 12 bytes of a stream are read, as a product reads a
// matrix entry.
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

} // namespace

#endif
