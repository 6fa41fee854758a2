// SPDX-License-Identifier: BSD-3-Clause
// calibrate.cu - measures the rates of a GPU for the cost models of the
// kernels: copies, gathers of random rows by length and footprint, caches,
// tensor cores, atomic additions, host link, launches.  Prints Markdown; the
// constants of kernels/cuda/base/machine.h come from its output.  The program
// is not part of the library and not built by make; it needs 20 seconds and
// 2 GB of device memory:
//
//   nvcc -O3 -std=c++20 -arch sm_90 -o calibrate calibrate.cu && ./calibrate
//
// Each figure is the median of 7 samples of at least 2 ms.  Bytes are those
// requested by the loads; 1 TB/s = 1e12 bytes/s; a multiply-add counts as 2
// flops.
#include "calibrate_gathers.cuh"
#include "calibrate_tensor.cuh"

namespace {

// --------------------------------------------------------- device memory

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

// ----------------------------------------------------------- shared memory

// Lanes read consecutive addresses or, if SAME, all lanes of a warp the same
// one.
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

// -------------------------------------------------------- atomic additions

// Each group of ROW / 8 lanes adds 1 to a random row, atomically.
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

// Returns a CUDA graph of `kernels` empty kernels, one after another.
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
