/* SPDX-License-Identifier: BSD-3-Clause */
/* transfer.cu - copies between blocks and arrays, row-major or column-major, in
 * host or device memory.
 *
 * Row-major data is one strided copy.  Column-major data is transposed on the
 * device through padded shared memory, 32 x 32 at a time; to and from the host
 * it is staged in scratch memory, as many rows at a time as fit.
 *
 * A few numbers are read without a copy (watch.h). */
#include "cuda/base/device.cuh"
#include "cuda/base/watch.h"
#include "cuda/base/upload.h"

#include <sched.h>

namespace {

/* Copies between X (rows x k, row-major, ldx) and C (column-major, ldc), from C
 * to X if TO_ROWS. */
template <bool TO_ROWS>
__global__ void transpose(double *x, int64_t ldx, double *c, int64_t ldc,
                          int64_t rows, int k)
{
    __shared__ double tile[32][33];
    int64_t row0 = (int64_t)blockIdx.x * 32;
    int col0 = (int)blockIdx.y * 32;
    int tx = (int)threadIdx.x;

    for (int ty = (int)threadIdx.y; ty < 32; ty += 8) {
        int64_t i = TO_ROWS ? row0 + tx : row0 + ty;
        int j = TO_ROWS ? col0 + ty : col0 + tx;

        if (i < rows && j < k)
            tile[ty][tx] = TO_ROWS ? c[j * ldc + i] : x[i * ldx + j];
    }
    __syncthreads();
    for (int ty = (int)threadIdx.y; ty < 32; ty += 8) {
        int64_t i = TO_ROWS ? row0 + ty : row0 + tx;
        int j = TO_ROWS ? col0 + tx : col0 + ty;

        if (i < rows && j < k)
            (TO_ROWS ? x[i * ldx + j] : c[j * ldc + i]) = tile[tx][ty];
    }
}

sps_status turn(sps_context *ctx, bool to_rows, double *x, int64_t ldx,
                double *c, int64_t ldc, int64_t rows, int k)
{
    dim3 grid((unsigned)ceil_div(rows, 32), (unsigned)ceil_div(k, 32));

    if (to_rows)
        return run_kernel(ctx, grid, dim3(32, 8), transpose<true>, x, ldx, c,
                          ldc, rows, k);
    return run_kernel(ctx, grid, dim3(32, 8), transpose<false>, x, ldx, c, ldc,
                      rows, k);
}

/* Copies `rows` runs of `bytes` with the given strides; one flat copy if the
 * runs are contiguous. */
sps_status strided(sps_context *ctx, void *to, size_t to_stride,
                   const void *from, size_t from_stride, size_t bytes,
                   size_t rows, cudaMemcpyKind kind)
{
    cudaStream_t stream = spsi_cuda_state(ctx)->stream;

    if (kind == cudaMemcpyHostToDevice)
        ctx->memory.to_device += (int64_t)(bytes * rows);
    if (kind == cudaMemcpyDeviceToHost)
        ctx->memory.to_host += (int64_t)(bytes * rows);
    if (to_stride == bytes && from_stride == bytes)
        SPS_CUDA(ctx, cudaMemcpyAsync(to, from, bytes * rows, kind, stream));
    else if (to_stride < 0x7fffffff && from_stride < 0x7fffffff)
        SPS_CUDA(ctx, cudaMemcpy2DAsync(to, to_stride, from, from_stride,
                                        bytes, rows, kind, stream));
    else
        for (size_t i = 0; i < rows; i++)
            SPS_CUDA(ctx, cudaMemcpyAsync((char *)to + i * to_stride,
                                          (const char *)from + i * from_stride,
                                          bytes, kind, stream));
    return SPS_OK;
}

/* Copies between X and column-major host data, a range of rows at a time. */
sps_status slices(const sps_block *X, double *data, int64_t ld, bool to_rows)
{
    sps_context *ctx = X->ctx;
    sps_cuda_state *s = spsi_cuda_state(ctx);
    int64_t rows;

    SPS_TRY_RETURN(spsi_cuda_need_scratch(ctx, (size_t)X->k * 32 * 8));
    rows = (int64_t)(s->scratch_bytes / ((size_t)X->k * 8)) & ~(int64_t)31;
    if (rows > X->n) rows = X->n;
    for (int64_t i = 0; i < X->n; i += rows) {
        int64_t m = X->n - i < rows ? X->n - i : rows;
        double *x = numbers(X) + i * X->ld, *c = (double *)s->d_scratch;
        size_t bytes = (size_t)m * 8, far = (size_t)ld * 8;

        if (to_rows) {
            SPS_TRY_RETURN(strided(ctx, c, bytes, data + i, far, bytes,
                                   (size_t)X->k, cudaMemcpyHostToDevice));
            SPS_TRY_RETURN(turn(ctx, true, x, X->ld, c, m, m, X->k));
        } else {
            SPS_TRY_RETURN(turn(ctx, false, x, X->ld, c, m, m, X->k));
            SPS_TRY_RETURN(strided(ctx, data + i, far, c, bytes, bytes,
                                   (size_t)X->k, cudaMemcpyDeviceToHost));
        }
    }
    return spsi_cuda_wait(ctx);
}

/* Returns whether block and array have the same elements in the same order,
 * without gaps. */
bool touching(const sps_block *X, int64_t ld, sps_order order)
{
    return X->ld == X->k && (X->k == 1 ? order == SPS_COL_MAJOR || ld == 1
                                       : order == SPS_ROW_MAJOR && ld == X->k);
}

} // namespace

sps_status spsi_cuda_set(sps_block *X, const double *data, int64_t ld,
                         sps_order order, sps_place place)
{
    sps_context *ctx = X->ctx;
    bool host = place == SPS_HOST;

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    if (X->n == 0 || X->k == 0) return SPS_OK;
    if (host && touching(X, ld, order))
        return spsi_cuda_upload(ctx, X->data, data,
                                (size_t)X->n * (size_t)X->k * 8);
    if (order == SPS_ROW_MAJOR) {
        SPS_TRY_RETURN(strided(ctx, X->data, (size_t)X->ld * 8, data,
                               (size_t)ld * 8, (size_t)X->k * 8, (size_t)X->n,
                               host ? cudaMemcpyHostToDevice
                                    : cudaMemcpyDeviceToDevice));
        return host ? spsi_cuda_wait(ctx) : SPS_OK;
    }
    if (host) return slices(X, (double *)data, ld, true);
    return turn(ctx, true, numbers(X), X->ld, (double *)data, ld, X->n, X->k);
}

sps_status spsi_cuda_get(const sps_block *X, double *data, int64_t ld,
                         sps_order order, sps_place place)
{
    sps_context *ctx = X->ctx;
    bool host = place == SPS_HOST;

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    if (X->n == 0 || X->k == 0) return SPS_OK;
    if (order == SPS_ROW_MAJOR) {
        SPS_TRY_RETURN(strided(ctx, data, (size_t)ld * 8, X->data,
                               (size_t)X->ld * 8, (size_t)X->k * 8,
                               (size_t)X->n,
                               host ? cudaMemcpyDeviceToHost
                                    : cudaMemcpyDeviceToDevice));
        return host ? spsi_cuda_wait(ctx) : SPS_OK;
    }
    if (host) return slices(X, data, ld, false);
    return turn(ctx, false, numbers(X), X->ld, data, ld, X->n, X->k);
}

/* ------------------------------------------------------------ a few numbers */

namespace {

struct read_task {
    sps_cuda_piece piece[SPS_CUDA_PIECES];
    int pieces;
    uint32_t *to;
    int *arrived;
};

/* Writes the pieces one after the other to page-locked memory, and then sets
 * *arrived. */
__global__ void __launch_bounds__(256) read_pieces(const read_task t)
{
    uint32_t *to = t.to;

    for (int q = 0; q < t.pieces; q++) {
        const uint32_t *from = (const uint32_t *)t.piece[q].from;
        const int words = (int)(t.piece[q].bytes / 4);

        for (int w = (int)threadIdx.x; w < words; w += (int)blockDim.x)
            to[w] = from[w];
        to += words;
    }
    __syncthreads();
    if (threadIdx.x > 0) return;
    __threadfence_system();   /* orders the stores of all threads, too */
    *(volatile int *)t.arrived = 1;
}

/* Waits for *arrived.  If the stream has ended without it, a synchronisation
 * reports why. */
sps_status await(sps_context *ctx, const int *arrived)
{
    constexpr int64_t looks = 1 << 14;   /* before the stream is asked */

    for (int64_t t = 1; !__atomic_load_n(arrived, __ATOMIC_ACQUIRE); t++) {
        if (t % looks > 0) continue;
        if (cudaStreamQuery(spsi_cuda_state(ctx)->stream) != cudaErrorNotReady)
            return spsi_cuda_wait(ctx);
        cudaGetLastError();
        sched_yield();
    }
    return SPS_OK;
}

/* Runs the task, with an `arrived` behind the results in `down`. */
sps_status run_and_watch(sps_context *ctx, read_task t)
{
    sps_cuda_state *s = spsi_cuda_state(ctx);
    size_t bytes = 0;

    for (int q = 0; q < t.pieces; q++) bytes += t.piece[q].bytes;
    t.arrived = (int *)((char *)s->down + s->down_bytes);
    __atomic_store_n(t.arrived, 0, __ATOMIC_RELEASE);
    SPS_TRY_RETURN(run_kernel(ctx, 1, bytes > 256 ? 256 : 32, read_pieces, t));
    return await(ctx, t.arrived);
}

} // namespace

sps_status spsi_cuda_read(sps_context *ctx, const sps_cuda_piece *piece,
                          int pieces)
{
    sps_cuda_state *s = spsi_cuda_state(ctx);
    const char *from;
    read_task t = {};

    SPS_TRY_RETURN(spsi_cuda_need_down(ctx, SPS_CUDA_READ_MOST));
    from = (const char *)s->down;
    t.pieces = pieces;
    t.to = (uint32_t *)s->down;
    for (int q = 0; q < pieces; q++) t.piece[q] = piece[q];
    SPS_TRY_RETURN(run_and_watch(ctx, t));
    if (s->phases.count > SPS_CUDA_SPANS / 2)
        SPS_TRY_RETURN(spsi_cuda_wait(ctx));
    for (int q = 0; q < pieces; q++) {
        memcpy(piece[q].to, from, piece[q].bytes);
        from += piece[q].bytes;
        ctx->memory.to_host += (int64_t)piece[q].bytes;
    }
    return SPS_OK;
}
