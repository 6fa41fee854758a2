// SPDX-License-Identifier: BSD-3-Clause
// calibrate.cuh - time measurement of calibrate.cu: the median of 7 samples of
// at least 2 ms.
#ifndef CALIBRATE_CUH
#define CALIBRATE_CUH

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

// Returns the seconds of one run.
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

} // namespace

#endif
