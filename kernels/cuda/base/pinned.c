/* SPDX-License-Identifier: BSD-3-Clause */
/* pinned.c - page-locked host memory.
 *
 * Large pieces are mapped here, in huge pages where the system gives them,
 * touched by all threads, and registered with the driver: 17 GB/s with 16
 * threads of the host of an H200, where the driver's own allocation, which
 * touches its pages in one thread, makes 1.85 GB/s.  A process made by fork()
 * does not inherit them: copies on write would separate the pages of the parent
 * from those that the device reads. */
#include "core/team.h"
#include "cuda/base/cuda_check.h"
#include "cuda/base/pinned.h"

#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>

static const size_t large = (size_t)64 << 20;
static const size_t piece = (size_t)2 << 20;       /* of a huge page */

static size_t mapped(size_t bytes)
{
    return (bytes + piece - 1) & ~(piece - 1);
}

static void touch(void *data, int64_t first, int64_t last)
{
    volatile char *p = data;

    for (size_t i = (size_t)first * piece; i < (size_t)last * piece; i += 4096)
        p[i] = 0;
}

/* Returns the first number in a file: without the file `absent`, and for
 * another word ULLONG_MAX. */
static unsigned long long number_in(const char *path, unsigned long long absent)
{
    FILE *f = fopen(path, "r");
    unsigned long long number = ULLONG_MAX;

    if (!f) return absent;
    if (fscanf(f, "%llu", &number) != 1) number = ULLONG_MAX;
    fclose(f);
    return number;
}

static bool leaves(const char *limit, const char *usage, size_t bytes)
{
    const unsigned long long most = number_in(limit, ULLONG_MAX);

    return most == ULLONG_MAX || most / 2 >= bytes + number_in(usage, 0) / 2;
}

/* Returns whether twice as much memory is left on the machine and to the
 * control group: no process is to be killed for pages that are touched here,
 * where the driver's allocation returns an error. */
static bool available(size_t bytes)
{
    FILE *f = fopen("/proc/meminfo", "r");
    unsigned long long kb = 0;
    char line[128];

    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "MemAvailable: %llu kB", &kb) == 1) break;
    if (f) fclose(f);
    return kb / 2 >= bytes / 1024 &&
           leaves("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current",
                  bytes) &&
           leaves("/sys/fs/cgroup/memory/memory.limit_in_bytes",
                  "/sys/fs/cgroup/memory/memory.usage_in_bytes", bytes);
}

/* Returns `bytes` bytes at a multiple of a piece, or NULL. */
static char *map(size_t bytes)
{
    char *p = mmap(NULL, bytes + piece, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t before;

    if (p == MAP_FAILED) return NULL;
    before = -(uintptr_t)p & (piece - 1);
    if (before > 0) munmap(p, before);
    munmap(p + before + bytes, piece - before);
    (void)madvise(p + before, bytes, MADV_HUGEPAGE);
    (void)madvise(p + before, bytes, MADV_DONTFORK);
    return p + before;
}

static char *pin_large(sps_context *ctx, size_t bytes)
{
    char *p = available(bytes) ? map(bytes) : NULL;

    if (!p) return NULL;
    spsi_team_run(ctx, (int64_t)(bytes / piece), (int64_t)(bytes / 4), touch,
                  p);
    if (cudaHostRegister(p, bytes, cudaHostRegisterDefault) == cudaSuccess)
        return p;
    cudaGetLastError();
    munmap(p, bytes);
    return NULL;
}

sps_status spsi_cuda_pin(sps_context *ctx, size_t bytes, void **p_p)
{
    cudaError_t error;

    *p_p = bytes < large ? NULL : pin_large(ctx, mapped(bytes));
    if (*p_p) return SPS_OK;
    error = cudaHostAlloc(p_p, bytes, cudaHostAllocDefault);
    if (error == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        return spsi_fail(ctx, SPS_ENOMEM,
                         "could not allocate %zu bytes of page-locked host "
                         "memory; free host memory, or raise the limit of "
                         "locked memory", bytes);
    }
    if (error != cudaSuccess)
        return spsi_cuda_failed(ctx, error, "cudaHostAlloc", __FILE__,
                                __LINE__);
    return SPS_OK;
}

void spsi_cuda_unpin(void *p, size_t bytes)
{
    if (bytes >= large && cudaHostUnregister(p) == cudaSuccess)
        munmap(p, mapped(bytes));
    else
        cudaFreeHost(p);
    cudaGetLastError();
}
