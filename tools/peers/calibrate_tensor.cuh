// SPDX-License-Identifier: BSD-3-Clause
// calibrate_tensor.cuh - multiply-add rates of the CUDA cores and the tensor
// cores, alone and with loads of rows of X as their operands.
#ifndef CALIBRATE_TENSOR_CUH
#define CALIBRATE_TENSOR_CUH

#include "calibrate_gathers.cuh"

namespace {

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

// Gathers 128-byte rows from L2; the 16 bytes that a lane loads are operands of
// COUNT m8n8k4 instructions.  Shows whether loads and tensor cores overlap.
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

} // namespace

#endif
