/* SPDX-License-Identifier: BSD-3-Clause */
/* backend_cuda.cu - the operations table of the backend: open and close,
 * memory, phases.
 *
 * Everything is queued on one stream of the context: its own, non-blocking with
 * respect to the default stream, or the caller's.  Operations on blocks are in
 * block/ and base/transfer.cu, fused iterations in fused_cg/, triangles and
 * residuals in twice the precision in sparse/, the set-up of multigrid in
 * amg/. */
#include "core/comm.h"
#include "cuda/base/library_check.h"
#include "cuda/base/machine.h"
#include "cuda/base/watch.h"
#include "cuda/base/scan.h"
#include "cuda/base/state.h"
#include "cuda/base/upload.h"
#include "cuda/base/wire_device.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

namespace {

/* Bytes of the workspace of cuBLAS, for sm_90. */
constexpr size_t blas_workspace = (size_t)32 << 20;
constexpr size_t scratch_at_open = (size_t)16 << 20;

__global__ void probe() {}

/* Reports why there is no device, with the driver's message and version. */
sps_status no_device(sps_context *ctx, cudaError_t error)
{
    int driver = 0, built = CUDART_VERSION;

    cudaGetLastError();
    if (cudaDriverGetVersion(&driver) != cudaSuccess) cudaGetLastError();
    if (driver == 0)
        return spsi_fail(ctx, SPS_EDEVICE, "no usable GPU: %s (no NVIDIA "
                         "driver found; this library was built with CUDA "
                         "%d.%d)",
                         cudaGetErrorString(error), built / 1000,
                         built % 1000 / 10);
    return spsi_fail(ctx, SPS_EDEVICE, "no usable GPU: %s (the driver supports "
                     "CUDA %d.%d, this library was built with CUDA %d.%d: "
                     "update the driver if its version is lower)",
                     cudaGetErrorString(error), driver / 1000,
                     driver % 1000 / 10, built / 1000, built % 1000 / 10);
}

/* Returns an attribute of the device, or 0 if the driver does not report it. */
double attribute(cudaDeviceAttr which, int device)
{
    int value = 0;

    if (cudaDeviceGetAttribute(&value, which, device) == cudaSuccess)
        return value;
    cudaGetLastError();
    return 0;
}

/* Returns the description of the device for predictions.  The driver reports
 * clocks in kHz; memory transfers twice per clock. */
sps_gpu gpu_of(const cudaDeviceProp &prop, int device)
{
    double memory = 2e3 * attribute(cudaDevAttrMemoryClockRate, device);

    return {
        .name = prop.name,
        .major = prop.major,
        .minor = prop.minor,
        .sms = prop.multiProcessorCount,
        .clock = 1e3 * attribute(cudaDevAttrClockRate, device),
        .memory = memory / 8 *
                  attribute(cudaDevAttrGlobalMemoryBusWidth, device),
        .l2 = (double)prop.l2CacheSize,
    };
}

sps_status choose_device(sps_context *ctx, sps_cuda_state *s)
{
    cudaDeviceProp prop;
    cudaFuncAttributes attributes;
    sps_gpu gpu;
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);

    if (error != cudaSuccess) return no_device(ctx, error);
    if (count == 0) return no_device(ctx, cudaErrorNoDevice);
    if (ctx->opt.device < 0) ctx->opt.device = spsi_comm_rank(ctx) % count;
    if (ctx->opt.device >= count)
        return spsi_fail(ctx, SPS_EDEVICE, "GPU %d was requested, but there "
                         "are %d (numbered from 0)", ctx->opt.device, count);
    s->device = ctx->opt.device;
    error = cudaSetDevice(s->device);
    if (error != cudaSuccess) return no_device(ctx, error);
    SPS_CUDA(ctx, cudaGetDeviceProperties(&prop, s->device));
    snprintf(ctx->device, sizeof ctx->device, "%.80s", prop.name);
    s->sms = prop.multiProcessorCount;
    s->shared_limit = (int)prop.sharedMemPerBlockOptin;
    gpu = gpu_of(prop, s->device);
    ctx->machine = spsi_machine_of(&gpu);
    error = cudaFuncGetAttributes(&attributes, probe);
    if (error == cudaErrorNoKernelImageForDevice ||
        error == cudaErrorUnsupportedPtxVersion ||
        error == cudaErrorInvalidKernelImage) {
        cudaGetLastError();
        return spsi_fail(ctx, SPS_EDEVICE, "%.80s has compute capability "
                         "%d.%d, for which nothing was built (%s): "
                         "configure the library with that "
                         "--with-cuda-arch", prop.name, prop.major,
                         prop.minor, cudaGetErrorString(error));
    }
    SPS_CUDA(ctx, error);
    return SPS_OK;
}

sps_status take_all(sps_context *ctx, sps_cuda_state *s)
{
    void *host, *device;

    if (ctx->opt.stream) {
        s->stream = (cudaStream_t)ctx->opt.stream;
    } else {
        SPS_CUDA(ctx, cudaStreamCreateWithFlags(&s->stream,
                                                cudaStreamNonBlocking));
        s->own_stream = true;
    }
    ctx->stream = s->stream;
    SPS_CUBLAS(ctx, cublasCreate(&s->blas));
    SPS_CUBLAS(ctx, cublasSetStream(s->blas, s->stream));
    SPS_TRY_RETURN(spsi_cuda_alloc(ctx, blas_workspace, &s->blas_work));
    s->blas_bytes = blas_workspace;
    /* With a workspace that the caller of cuBLAS provides, its results are
     * bitwise reproducible. */
    SPS_CUBLAS(ctx, cublasSetWorkspace(s->blas, s->blas_work, s->blas_bytes));
    SPS_CUBLAS(ctx, cublasSetAtomicsMode(s->blas, CUBLAS_ATOMICS_NOT_ALLOWED));
    SPS_TRY_RETURN(spsi_cuda_need_scratch(ctx, scratch_at_open));
    SPS_TRY_RETURN(spsi_cuda_need_down(ctx, 2 * 64 * 64 * sizeof(double)));
    SPS_TRY_RETURN(spsi_cuda_room(ctx, (size_t)128 << 10, &host, &device));
    s->up_used = 0;
    for (sps_cuda_span &span : s->phases.span) {
        SPS_CUDA(ctx, cudaEventCreate(&span.begin));
        SPS_CUDA(ctx, cudaEventCreate(&span.end));
    }
    return SPS_OK;
}

void close_cuda(sps_context *ctx)
{
    sps_cuda_state *s = spsi_cuda_state(ctx);

    if (s == NULL) return;
    if (s->pid == getpid() && !ctx->dead) {
        cudaSetDevice(s->device);
        if (s->stream) cudaStreamSynchronize(s->stream);
        if (s->sparse) cusparseDestroy(s->sparse);
        if (s->blas) cublasDestroy(s->blas);
        for (const sps_cuda_span &span : s->phases.span) {
            if (span.begin) cudaEventDestroy(span.begin);
            if (span.end) cudaEventDestroy(span.end);
        }
        if (s->up) cudaFreeHost(s->up);
        if (s->down) cudaFreeHost(s->down);
    }
    spsi_cuda_release(ctx, s->blas_work, s->blas_bytes);
    spsi_cuda_release(ctx, s->d_scratch, s->scratch_bytes);
    spsi_cuda_release(ctx, s->d_up, s->up_bytes);
    spsi_cuda_pool_close(ctx);
    spsi_cuda_wire_close(ctx);
    if (s->own_stream && s->pid == getpid()) cudaStreamDestroy(s->stream);
    cudaGetLastError();
    ctx->stream = NULL;
    ctx->backend_data = NULL;
    spsi_free(ctx, s);
}

sps_status open_cuda(sps_context *ctx)
{
    void *p;
    sps_status st;

    SPS_TRY_RETURN(spsi_new(ctx, sizeof(sps_cuda_state), &p));
    ctx->backend_data = p;
    spsi_cuda_state(ctx)->pid = getpid();
    st = choose_device(ctx, spsi_cuda_state(ctx));
    if (st == SPS_OK) st = take_all(ctx, spsi_cuda_state(ctx));
    if (st != SPS_OK) close_cuda(ctx);
    return st;
}

sps_status sync_cuda(sps_context *ctx)
{
    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    return spsi_cuda_wait(ctx);
}

/* Reserves memory for blocks of n x k.  The scratch memory holds one partial
 * Gram matrix, k x k, per thread block (two for a pair of products); sums of
 * columns need less. */
sps_status reserve_cuda(sps_context *ctx, int64_t n, int k)
{
    sps_cuda_state *s = spsi_cuda_state(ctx);
    size_t square = (size_t)k * (size_t)k * sizeof(double);
    void *host, *device;
    size_t parts = (k <= 32 ? 5 : k <= 128 ? 2 : 0) * (size_t)s->sms + 16;

    (void)n;
    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    SPS_TRY_RETURN(spsi_cuda_need_scratch(ctx, 2 * parts * square +
                                               scratch_at_open));
    SPS_TRY_RETURN(spsi_cuda_need_down(ctx, 2 * square + 2 * (size_t)k * 8));
    SPS_TRY_RETURN(spsi_cuda_room(ctx, square + 4096, &host, &device));
    return spsi_cuda_wait(ctx);
}

sps_status memory_cuda(sps_context *ctx, size_t *free_p, size_t *total_p)
{
    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    SPS_CUDA(ctx, cudaMemGetInfo(free_p, total_p));
    if (*free_p > spsi_device_left(ctx)) *free_p = spsi_device_left(ctx);
    return SPS_OK;
}

/* Phases are timed by a pair of events each; the times are added up at the next
 * synchronisation of the stream.  If all pairs are in use, the phase is not
 * counted; solvers synchronise at least once an iteration, so this does not
 * happen there. */
void phase_begin(sps_context *ctx, sps_phase phase)
{
    sps_cuda_state *s = spsi_cuda_state(ctx);
    sps_cuda_phases *all = &s->phases;
    sps_cuda_span *span;

    if (ctx->dead || s->pid != getpid() || all->open) return;
    if (all->count == SPS_CUDA_SPANS) return;
    span = &all->span[(all->first + all->count) % SPS_CUDA_SPANS];
    span->phase = (int)phase;
    if (cudaEventRecord(span->begin, s->stream) != cudaSuccess) return;
    all->count++;
    all->open = true;
}

void phase_end(sps_context *ctx, sps_phase phase)
{
    sps_cuda_state *s = spsi_cuda_state(ctx);
    sps_cuda_phases *all = &s->phases;
    int last;

    (void)phase;
    if (!all->open || s->pid != getpid()) return;
    last = (all->first + all->count - 1) % SPS_CUDA_SPANS;
    cudaEventRecord(all->span[last].end, s->stream);
    all->open = false;
}

/* Copies from host to device memory.  Small uploads are staged through pinned
 * memory and do not synchronise. */
sps_status upload_cuda(sps_context *ctx, void *to, const void *from,
                       size_t bytes)
{
    constexpr size_t little = 4096;
    void *host, *device;

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    if (bytes == 0) return SPS_OK;
    if (bytes > little) return spsi_cuda_upload(ctx, to, from, bytes);
    SPS_TRY_RETURN(spsi_cuda_room(ctx, bytes, &host, &device));
    memcpy(host, from, bytes);
    return spsi_cuda_send(ctx, host, to, bytes);
}

/* Copies from device to host memory.  Small downloads go through the pinned
 * buffer `down`, so that the driver needs no staging, and a few numbers without
 * a copy; no operation is using `down` then. */
sps_status download_cuda(sps_context *ctx, void *to, const void *from,
                         size_t bytes)
{
    sps_cuda_state *s = spsi_cuda_state(ctx);
    void *room = bytes <= s->down_bytes ? (void *)s->down : to;
    const sps_cuda_piece few = { from, to, bytes };

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    if (bytes == 0) return SPS_OK;
    if (bytes <= SPS_CUDA_READ_MOST && bytes % 4 == 0 &&
        (uintptr_t)from % 4 == 0)
        return spsi_cuda_read(ctx, &few, 1);
    SPS_CUDA(ctx, spsi_cuda_down(ctx, room, from, bytes));
    SPS_TRY_RETURN(spsi_cuda_wait(ctx));
    if (room != to) memcpy(to, room, bytes);
    return SPS_OK;
}

sps_status copy_cuda(sps_context *ctx, void *to, const void *from,
                     size_t bytes)
{
    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    if (bytes == 0) return SPS_OK;
    SPS_CUDA(ctx, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice,
                                  spsi_cuda_state(ctx)->stream));
    return SPS_OK;
}

} // namespace

SPS_DEFINE(sps_backend, spsi_backend_cuda) = {
    .name = "cuda",
    .place = SPS_CUDA,
    .open = open_cuda,
    .close = close_cuda,
    .sync = sync_cuda,
    .reserve = reserve_cuda,
    .memory = memory_cuda,
    .phase_begin = phase_begin,
    .phase_end = phase_end,
    .alloc = spsi_cuda_alloc,
    .release = spsi_cuda_release,
    .upload = upload_cuda,
    .download = download_cuda,
    .copy = copy_cuda,
    .scan = spsi_cuda_scan,
    .record_begin = spsi_cuda_record_begin,
    .record_end = spsi_cuda_record_end,
    .replay = spsi_cuda_replay,
    .record_drop = spsi_cuda_record_drop,
    .fill = spsi_cuda_fill,
    .random = spsi_cuda_random,
    .set = spsi_cuda_set,
    .get = spsi_cuda_get,
    .gather = spsi_cuda_gather,
    .scatter = spsi_cuda_scatter,
    .take_rows = spsi_cuda_take_rows,
    .put_rows = spsi_cuda_put_rows,
    .axpby = spsi_cuda_axpby,
    .axpby_cols = spsi_cuda_axpby_cols,
    .scale_rows = spsi_cuda_scale_rows,
    .dots = spsi_cuda_dots,
    .maxabs = spsi_cuda_maxabs,
    .gram = spsi_cuda_gram,
    .mul_small = spsi_cuda_mul_small,
    .remove_means = spsi_cuda_remove_means,
    .gram_pair = spsi_cuda_gram_pair,
    .subtract = spsi_cuda_subtract,
    .subtract_cols = spsi_cuda_subtract_cols,
    .combine = spsi_cuda_combine,
    .fused_cg_columns = true,
    .fused_cg_lengths = spsi_cuda_fused_cg_lengths,
    .fused_cg_residual = spsi_cuda_fused_cg_residual,
    .fused_cg_directions = spsi_cuda_fused_cg_directions,
    .csr_multiply = spsi_cuda_csr_multiply,
    .csr_multiply_values = spsi_cuda_csr_multiply_values,
    .csr_inspect = spsi_cuda_csr_inspect,
    .csr_transpose = spsi_cuda_csr_transpose,
    .coarsening = &spsi_coarsening_cuda,
    .triangle_open = spsi_cuda_triangle_open,
    .triangle_refresh = spsi_cuda_triangle_refresh,
    .triangle_solve = spsi_cuda_triangle_solve,
    .triangle_close = spsi_cuda_triangle_close,
    .twofold = spsi_cuda_twofold,
    .basis_dots = spsi_cuda_basis_dots,
    .basis_update = spsi_cuda_basis_update,
    .csr_narrow = spsi_cuda_csr_narrow,
    .csr_features = spsi_cuda_csr_features,
    .local_diagonal = spsi_cuda_local_diagonal,
    .local_cancels = spsi_cuda_local_cancels,
    .share = spsi_cuda_share,
    .unshare = spsi_cuda_unshare,
};
