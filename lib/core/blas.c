/* SPDX-License-Identifier: BSD-3-Clause */
/* blas.c - see blas.h.
 *
 * The number of threads of OpenBLAS is a setting of the process: the first
 * caller saves it and sets it to one, and the last one restores it.
 *
 * OpenBLAS allocates a buffer of BUFFER bytes for each thread that calls it at
 * the same time and keeps it; if the allocation fails it retries for ever.  So
 * whenever more buffers are needed than ever before, it is tested first whether
 * that much address space is available. */
#include <pthread.h>
#include <sys/mman.h>

#include "core/blas.h"

#define BUFFER ((size_t)128 << 20)   /* the largest of all its targets */

void openblas_set_num_threads(int threads) __attribute__((weak));
int openblas_get_num_threads(void) __attribute__((weak));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int inside, before;
static int buffers;                  /* largest number of callers at once so
                                        far */

static sps_status find_memory(sps_context *ctx, int callers)
{
    const size_t bytes = (size_t)(callers - buffers) * BUFFER;
    sps_status st = SPS_OK;
    void *p;

    if (callers <= buffers) return SPS_OK;
    p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
             -1, 0);
    SPS_REQUIRE(ctx, p != MAP_FAILED, SPS_ENOMEM,
                "no address space for %zu bytes, the working memory of "
                "OpenBLAS: raise the limit (ulimit -v)", bytes);
    (void)munmap(p, bytes);
    buffers = callers;
fail:
    return st;
}

sps_status spsi_blas_begin(sps_context *ctx, int callers)
{
    sps_status st = SPS_OK;

    if (!openblas_set_num_threads || !openblas_get_num_threads) return SPS_OK;
    pthread_mutex_lock(&lock);
    SPS_TRY(find_memory(ctx, inside + callers));
    if (inside == 0) {
        before = openblas_get_num_threads();
        if (before > 1) openblas_set_num_threads(1);
    }
    inside += callers;
fail:
    pthread_mutex_unlock(&lock);
    return st;
}

void spsi_blas_end(int callers)
{
    if (!openblas_set_num_threads || !openblas_get_num_threads) return;
    pthread_mutex_lock(&lock);
    inside -= callers;
    if (inside == 0 && before > 1) openblas_set_num_threads(before);
    pthread_mutex_unlock(&lock);
}
