/* SPDX-License-Identifier: BSD-3-Clause */
/* state.c - error texts, selection of the device before each call, memory, and
 * staging buffers. */
#include "cuda/base/library_check.h"
#include "cuda/base/pinned.h"
#include "cuda/base/watch.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Returns whether an error means that this process can no longer use the
 * device. */
static bool sticky(cudaError_t error)
{
    switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorUnknown:
        return true;
    default:
        return false;
    }
}

/* Adds the times of finished phases; the stream must be synchronised. */
static void add_phases(sps_context *ctx)
{
    sps_cuda_state *s = spsi_cuda_state(ctx);
    sps_cuda_phases *all = &s->phases;
    int keep = all->open ? 1 : 0;

    while (all->count > keep) {
        sps_cuda_span *span = &all->span[all->first];
        float ms = 0;

        if (cudaEventElapsedTime(&ms, span->begin, span->end) == cudaSuccess)
            ctx->phase_seconds[span->phase] += 1e-3 * ms;
        all->first = (all->first + 1) % SPS_CUDA_SPANS;
        all->count--;
    }
}

sps_status spsi_cuda_no_memory(sps_context *ctx, size_t bytes)
{
    size_t free_bytes = 0, total = 0;

    cudaGetLastError(); /* clears the error, which is not sticky */
    if (bytes > spsi_device_left(ctx))
        return spsi_fail(ctx, SPS_EDEVMEM, "out of device memory: %zu bytes "
                         "are needed, but %zu are left of the %zu that the "
                         "option max_device_bytes allows", bytes,
                         spsi_device_left(ctx),
                         ctx->opt.max_device_bytes);
    if (cudaMemGetInfo(&free_bytes, &total) != cudaSuccess) cudaGetLastError();
    return spsi_fail(ctx, SPS_EDEVMEM,
                     "out of device memory: %zu bytes are needed, but %zu "
                     "of %zu are free",
                     bytes, free_bytes, total);
}

/* The first sticky error of this process: what follows it, in whatever context,
 * is its consequence, and the caller may see only the last failure. */
static pthread_mutex_t fault_lock = PTHREAD_MUTEX_INITIALIZER;
static char fault[160];

static void keep_fault(const sps_context *ctx)
{
    pthread_mutex_lock(&fault_lock);
    if (!fault[0])
        (void)snprintf(fault, sizeof fault, "%s", sps_context_error(ctx));
    pthread_mutex_unlock(&fault_lock);
}

static sps_status lost(sps_context *ctx)
{
    char first[sizeof fault];

    pthread_mutex_lock(&fault_lock);
    memcpy(first, fault, sizeof first);
    pthread_mutex_unlock(&fault_lock);
    return spsi_fail(ctx, SPS_EDEVICE, "the GPU failed earlier (%s) and is "
                     "lost to this process; start a new process", first);
}

sps_status spsi_cuda_failed(sps_context *ctx, cudaError_t error,
                            const char *what, const char *file, int line)
{
    const char *base = strrchr(file, '/');
    sps_status st;

    if (error == cudaErrorMemoryAllocation) return spsi_cuda_no_memory(ctx, 0);
    if (!sticky(error)) cudaGetLastError();
    st = spsi_fail(ctx, SPS_EDEVICE, "%s (%s, CUDA error %d) in %.60s, %s:%d",
                   cudaGetErrorString(error), cudaGetErrorName(error),
                   (int)error, what, base ? base + 1 : file, line);
    if (!sticky(error)) return st;
    ctx->dead = true;
    keep_fault(ctx);
    return st;
}

sps_status spsi_cublas_failed(sps_context *ctx, cublasStatus_t error,
                              const char *what, const char *file, int line)
{
    const char *base = strrchr(file, '/');

    if (error == CUBLAS_STATUS_ALLOC_FAILED) return spsi_cuda_no_memory(ctx, 0);
    return spsi_fail(ctx, SPS_EDEVICE, "cuBLAS: %s in %.60s, %s:%d",
                     cublasGetStatusString(error), what,
                     base ? base + 1 : file, line);
}

sps_status spsi_cusparse_failed(sps_context *ctx, cusparseStatus_t error,
                                const char *what, const char *file, int line)
{
    const char *base = strrchr(file, '/');

    if (error == CUSPARSE_STATUS_ALLOC_FAILED ||
        error == CUSPARSE_STATUS_INSUFFICIENT_RESOURCES)
        return spsi_cuda_no_memory(ctx, 0);
    return spsi_fail(ctx, SPS_EDEVICE, "cuSPARSE: %s in %.60s, %s:%d",
                     cusparseGetErrorString(error), what,
                     base ? base + 1 : file, line);
}

sps_status spsi_cuda_enter(sps_context *ctx)
{
    sps_cuda_state *s = spsi_cuda_state(ctx);

    if (ctx->dead) return lost(ctx);
    if (s->pid != getpid())
        return spsi_fail(ctx, SPS_EDEVICE,
                         "a GPU context does not survive fork(): create the "
                         "context in the child, none in the parent before it");
    SPS_CUDA(ctx, cudaSetDevice(s->device));
    return SPS_OK;
}

sps_status spsi_cuda_wait(sps_context *ctx)
{
    sps_cuda_state *s = spsi_cuda_state(ctx);

    SPS_CUDA(ctx, cudaStreamSynchronize(s->stream));
    s->up_used = 0;
    add_phases(ctx);
    return SPS_OK;
}

static bool open_pool(sps_cuda_state *s)
{
    struct cudaMemPoolProps props = { 0 };

    if (s->pool.of) return true;
    props.allocType = cudaMemAllocationTypePinned;
    props.location.type = cudaMemLocationTypeDevice;
    props.location.id = s->device;
    if (cudaMemPoolCreate(&s->pool.of, &props) == cudaSuccess) return true;
    s->pool.of = NULL;
    return false;
}

/* Sets how much memory the pool keeps, used or not, when the stream is
 * synchronised; unused memory beyond that is returned to the device. */
static bool pool_holds(sps_cuda_state *s, uint64_t bytes)
{
    return cudaMemPoolSetAttribute(s->pool.of, cudaMemPoolAttrReleaseThreshold,
                                   &bytes) == cudaSuccess;
}

/* Returns the number of bytes that the pool keeps between two set-ups, since
 * mapping memory again takes about 1 ms for each GB: a part of the memory of
 * the device.  Only the first one of a process is asked, since that takes up to
 * 1 ms, too. */
static uint64_t pool_rest(void)
{
    static uint64_t rest;
    size_t free_bytes = 0, total = 0;
    uint64_t bytes = __atomic_load_n(&rest, __ATOMIC_RELAXED);

    if (bytes > 0) return bytes;
    if (cudaMemGetInfo(&free_bytes, &total) != cudaSuccess) cudaGetLastError();
    bytes = total / 32;
    __atomic_store_n(&rest, bytes, __ATOMIC_RELAXED);
    return bytes;
}

/* Makes space for one more entry in the list of memory that comes from the
 * pool. */
static bool pool_lists(sps_context *ctx)
{
    sps_cuda_pool *pool = &spsi_cuda_state(ctx)->pool;
    const int64_t room = 2 * pool->room + 64;
    void *list;

    if (pool->count < pool->room) return true;
    if (spsi_new(ctx, (size_t)room * sizeof *pool->taken, &list) != SPS_OK)
        return false;
    if (pool->count > 0)
        memcpy(list, pool->taken, (size_t)pool->count * sizeof *pool->taken);
    spsi_free(ctx, pool->taken);
    pool->taken = (void **)list;
    pool->room = room;
    return true;
}

/* Allocates memory from the pool; returns false if there is none. */
static bool pool_take(sps_context *ctx, size_t bytes, void **p)
{
    sps_cuda_state *s = spsi_cuda_state(ctx);
    sps_cuda_pool *pool = &s->pool;

    if (pool->depth == 0 || !pool->of || !pool_lists(ctx)) return false;
    if (cudaMallocFromPoolAsync(p, bytes, pool->of, s->stream) != cudaSuccess) {
        cudaGetLastError();
        return false;
    }
    pool->taken[pool->count++] = *p;
    return true;
}

/* Returns unused memory of the pool to the device; returns false if there is no
 * pool. */
static bool pool_empties(sps_context *ctx)
{
    sps_cuda_state *s = spsi_cuda_state(ctx);

    cudaGetLastError();
    if (!s->pool.of || spsi_cuda_wait(ctx) != SPS_OK) return false;
    if (cudaMemPoolTrimTo(s->pool.of, 0) != cudaSuccess) cudaGetLastError();
    return true;
}

/* Returns whether p came from the pool, and if so frees it. */
static bool pool_give(sps_cuda_state *s, void *p)
{
    sps_cuda_pool *pool = &s->pool;

    for (int64_t i = pool->count - 1; i >= 0; i--)
        if (pool->taken[i] == p) {
            pool->taken[i] = pool->taken[--pool->count];
            cudaFreeAsync(p, s->stream);
            return true;
        }
    return false;
}

void spsi_cuda_pool_begin(sps_context *ctx)
{
    sps_cuda_state *s = spsi_cuda_state(ctx);

    if (s->pool.depth++ > 0 || spsi_cuda_enter(ctx) != SPS_OK) return;
    if (ctx->gpu.alloc || ctx->opt.max_device_bytes > 0 || !open_pool(s) ||
        !pool_holds(s, UINT64_MAX))
        cudaGetLastError();
}

void spsi_cuda_pool_end(sps_context *ctx)
{
    sps_cuda_state *s = spsi_cuda_state(ctx);

    if (--s->pool.depth > 0 || !s->pool.of) return;
    if (spsi_cuda_enter(ctx) != SPS_OK) return;
    if (!pool_holds(s, pool_rest())) cudaGetLastError();
}

void spsi_cuda_pool_close(sps_context *ctx)
{
    sps_cuda_state *s = spsi_cuda_state(ctx);

    if (s->pool.of && s->pid == getpid()) cudaMemPoolDestroy(s->pool.of);
    spsi_free(ctx, s->pool.taken);
    s->pool.of = NULL;
    s->pool.taken = NULL;
}

sps_status spsi_cuda_alloc(sps_context *ctx, size_t bytes, void **p_p)
{
    const sps_allocator *hook = &ctx->gpu;
    void *p = NULL;

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    if (bytes == 0) bytes = 256;
    if (bytes > spsi_device_left(ctx)) return spsi_cuda_no_memory(ctx, bytes);
    if (hook->alloc) {
        p = hook->alloc(bytes, hook->data);
        if (p == NULL) return spsi_cuda_no_memory(ctx, bytes);
    } else if (!pool_take(ctx, bytes, &p)) {
        cudaError_t error = cudaMalloc(&p, bytes);

        if (error == cudaErrorMemoryAllocation && pool_empties(ctx))
            error = cudaMalloc(&p, bytes);
        if (error == cudaErrorMemoryAllocation)
            return spsi_cuda_no_memory(ctx, bytes);
        SPS_CUDA(ctx, error);
    }
    spsi_count_device(ctx, (int64_t)bytes);
    *p_p = p;
    return SPS_OK;
}

void spsi_cuda_release(sps_context *ctx, void *p, size_t bytes)
{
    const sps_allocator *hook = &ctx->gpu;

    if (p == NULL) return;
    if (bytes == 0) bytes = 256;
    /* A process made by fork() frees nothing: the memory belongs to its
     * parent. */
    if (spsi_cuda_state(ctx)->pid == getpid()) {
        cudaSetDevice(spsi_cuda_state(ctx)->device);
        /* cudaFree synchronises by itself; the caller's function may not. */
        if (hook->free) {
            cudaStreamSynchronize(spsi_cuda_state(ctx)->stream);
            hook->free(p, bytes, hook->data);
        } else if (!pool_give(spsi_cuda_state(ctx), p)) {
            cudaFree(p);
        }
        cudaGetLastError();
    }
    spsi_count_device(ctx, -(int64_t)bytes);
}

sps_status spsi_cuda_share(sps_context *ctx, size_t bytes, void **p_p)
{
    sps_status st;

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    SPS_TRY_RETURN(spsi_claim(ctx, bytes, "page-locked"));
    st = spsi_cuda_pin(ctx, bytes > 0 ? bytes : 1, p_p);
    if (st != SPS_OK) spsi_unclaim(ctx, bytes);
    return st;
}

/* A process made by fork() shares the pages with its parent, and must not free
 * them. */
void spsi_cuda_unshare(sps_context *ctx, void *p, size_t bytes)
{
    if (p == NULL) return;
    if (spsi_cuda_state(ctx)->pid == getpid() && !ctx->dead)
        spsi_cuda_unpin(p, bytes > 0 ? bytes : 1);
    cudaGetLastError();
    spsi_unclaim(ctx, bytes);
}

sps_status spsi_cuda_need_scratch(sps_context *ctx, size_t bytes)
{
    sps_cuda_state *s = spsi_cuda_state(ctx);
    void *p;

    if (bytes <= s->scratch_bytes) return SPS_OK;
    bytes = (bytes + 0xfffff) & ~(size_t)0xfffff;
    SPS_TRY_RETURN(spsi_cuda_wait(ctx));
    spsi_cuda_release(ctx, s->d_scratch, s->scratch_bytes);
    s->d_scratch = NULL;
    s->scratch_bytes = 0;
    SPS_TRY_RETURN(spsi_cuda_alloc(ctx, bytes, &p));
    s->d_scratch = (char *)p;
    s->scratch_bytes = bytes;
    return SPS_OK;
}

sps_status spsi_cuda_need_down(sps_context *ctx, size_t bytes)
{
    sps_cuda_state *s = spsi_cuda_state(ctx);
    void *p;

    if (bytes <= s->down_bytes) return SPS_OK;
    SPS_TRY_RETURN(spsi_cuda_wait(ctx));
    if (s->down) spsi_cuda_unpin(s->down, s->down_bytes + SPS_CUDA_ARRIVED);
    s->down = NULL;
    s->down_bytes = 0;
    bytes = bytes < SPS_CUDA_READ_MOST ? SPS_CUDA_READ_MOST
                                       : (bytes + 7) & ~(size_t)7;
    SPS_TRY_RETURN(spsi_cuda_pin(ctx, bytes + SPS_CUDA_ARRIVED, &p));
    s->down = (double *)p;
    s->down_bytes = bytes;
    return SPS_OK;
}

/* Replaces the upload buffer `up` by one of `bytes` bytes.  The caller passes
 * twice the size of the operand that did not fit, so that two operands of that
 * size fit between synchronisations. */
static sps_status grow_up(sps_context *ctx, size_t bytes)
{
    sps_cuda_state *s = spsi_cuda_state(ctx);
    void *p;

    SPS_TRY_RETURN(spsi_cuda_wait(ctx));
    if (s->up) spsi_cuda_unpin(s->up, s->up_bytes);
    s->up = NULL;
    spsi_cuda_release(ctx, s->d_up, s->up_bytes);
    s->d_up = NULL;
    s->up_bytes = 0;
    SPS_TRY_RETURN(spsi_cuda_pin(ctx, bytes, &p));
    s->up = (char *)p;
    SPS_TRY_RETURN(spsi_cuda_alloc(ctx, bytes, &p));
    s->d_up = (char *)p;
    s->up_bytes = bytes;
    return SPS_OK;
}

sps_status spsi_cuda_room(sps_context *ctx, size_t bytes, void **host,
                          void **device)
{
    sps_cuda_state *s = spsi_cuda_state(ctx);

    bytes = (bytes + 255) & ~(size_t)255;
    if (bytes > s->up_bytes) SPS_TRY_RETURN(grow_up(ctx, 2 * bytes));
    if (s->up_used + bytes > s->up_bytes) SPS_TRY_RETURN(spsi_cuda_wait(ctx));
    *host = s->up + s->up_used;
    *device = s->d_up + s->up_used;
    s->up_used += bytes;
    return SPS_OK;
}

sps_status spsi_cuda_send(sps_context *ctx, void *host, void *device,
                          size_t bytes)
{
    SPS_CUDA(ctx, spsi_cuda_up(ctx, device, host, bytes));
    return SPS_OK;
}

static size_t bytes_of(const sps_small *C)
{
    return (size_t)C->rows * (size_t)C->cols * sizeof(double);
}

sps_status spsi_cuda_small(const sps_small *C, const double **d)
{
    void *host, *device;

    *d = C->v;
    if (C->place != SPS_HOST) return SPS_OK;
    SPS_TRY_RETURN(spsi_cuda_room(C->ctx, bytes_of(C), &host, &device));
    memcpy(host, C->v, bytes_of(C));
    *d = (const double *)device;
    return spsi_cuda_send(C->ctx, host, device, bytes_of(C));
}

double *spsi_cuda_result(const sps_small *C, size_t offset)
{
    return C->place == SPS_HOST ? spsi_cuda_state(C->ctx)->down + offset : C->v;
}

sps_status spsi_cuda_deliver(sps_small *C, size_t offset)
{
    if (C->place != SPS_HOST) return SPS_OK;
    SPS_TRY_RETURN(spsi_cuda_wait(C->ctx));
    spsi_cuda_take_down(C->ctx, C->v, offset, bytes_of(C));
    return SPS_OK;
}

sps_status spsi_cuda_sparse(sps_context *ctx, cusparseHandle_t *handle_p)
{
    sps_cuda_state *s = spsi_cuda_state(ctx);

    if (s->sparse == NULL) {
        SPS_CUSPARSE(ctx, cusparseCreate(&s->sparse));
        SPS_CUSPARSE(ctx, cusparseSetStream(s->sparse, s->stream));
    }
    *handle_p = s->sparse;
    return SPS_OK;
}
