/* SPDX-License-Identifier: BSD-3-Clause */
/* state.h - what a context owns on its GPU, and the slots of the backend.
 *
 * scratch:  device memory for partial sums and for staged copies; every
 *           operation may use all of it, since the stream serialises them.
 * up:       pinned host memory with a buffer of the same size on the device,
 *           allocated from the front; small operands (coefficients, column
 *           numbers) are uploaded through it without synchronising.  It is
 *           empty again after each synchronisation.
 * down:     pinned host memory that the last phase of a reduction writes
 *           directly; read after the synchronisation.
 *
 * pool:     device memory for operations of set-up that make matrices of sizes
 *           not known before.  It is not used with the option
 *           max_device_bytes, which would not count its unused memory.
 *
 * scratch, up and down are allocated in open and reserve.  An operation that
 * needs more than was reserved enlarges them, so that a missing reservation
 * costs time, not correctness. */
#ifndef SPS_CUDA_STATE_H
#define SPS_CUDA_STATE_H

#include <string.h>
#include <sys/types.h>

#include "block/block.h"
#include "core/backend.h"
#include "matrix/csr.h"
#include "cuda/base/cuda_check.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SPS_CUDA_SPANS 128 /* most phases whose times have not been read yet */

typedef struct sps_cuda_span {
    cudaEvent_t begin, end;
    int phase;
} sps_cuda_span;

/* The phases whose times have not been read yet, as a ring. */
typedef struct sps_cuda_phases {
    sps_cuda_span span[SPS_CUDA_SPANS];
    int first, count;
    bool open;                 /* the last one has not ended */
} sps_cuda_phases;

/* Device memory for operations of set-up: `pool` at the top of this file. */
typedef struct sps_cuda_pool {
    cudaMemPool_t of;          /* created at its first use */
    int depth;                 /* calls of spsi_cuda_pool_begin without an end
                                  yet */
    void **taken;              /* addresses of the memory in use that comes from
                                  the pool */
    int64_t count, room;       /* of these addresses, and of the array */
} sps_cuda_pool;

typedef struct sps_cuda_state {
    int device, sms;
    pid_t pid;                 /* process that opened the device; a process made
                                  by fork() must not use it */
    cudaStream_t stream;
    bool own_stream;
    int shared_limit;          /* most shared memory of a thread block, bytes */
    struct cublasContext *blas;    /* handle of cuBLAS (library_check.h) */
    void *blas_work;
    size_t blas_bytes;
    struct cusparseContext *sparse;    /* handle of cuSPARSE, created with the
                                          first plan that needs it */
    char *d_scratch;
    size_t scratch_bytes;
    char *up, *d_up;
    size_t up_bytes, up_used;
    double *down;
    size_t down_bytes;
    sps_cuda_pool pool;
    sps_cuda_phases phases;
} sps_cuda_state;

static inline sps_cuda_state *spsi_cuda_state(const sps_context *ctx)
{
    return (sps_cuda_state *)ctx->backend_data;
}

/* spsi_cuda_up queues a copy to the device, spsi_cuda_down one to the host;
 * both count the bytes. */
static inline cudaError_t spsi_cuda_up(sps_context *ctx, void *to,
                                       const void *from, size_t bytes)
{
    ctx->memory.to_device += (int64_t)bytes;
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice,
                           spsi_cuda_state(ctx)->stream);
}
static inline cudaError_t spsi_cuda_down(sps_context *ctx, void *to,
                                         const void *from, size_t bytes)
{
    ctx->memory.to_host += (int64_t)bytes;
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost,
                           spsi_cuda_state(ctx)->stream);
}
/* Copies results that kernels have written to `down`, from `offset` bytes on,
 * and counts the bytes. */
static inline void spsi_cuda_take_down(sps_context *ctx, void *to,
                                       size_t offset, size_t bytes)
{
    memcpy(to, spsi_cuda_state(ctx)->down + offset, bytes);
    ctx->memory.to_host += (int64_t)bytes;
}
/* Selects the device of the context; fails if the context is dead, or in a
 * process made by fork() after it was opened. */
sps_status spsi_cuda_enter(sps_context *ctx);
/* Synchronises the stream, empties `up`, and adds up the times of the
 * phases. */
sps_status spsi_cuda_wait(sps_context *ctx);
sps_status spsi_cuda_need_scratch(sps_context *ctx, size_t bytes);
sps_status spsi_cuda_need_down(sps_context *ctx, size_t bytes);
/* Reserves bytes in `up`: the caller fills *host before spsi_cuda_send, and
 * *device is the address for the kernel. */
sps_status spsi_cuda_room(sps_context *ctx, size_t bytes, void **host,
                          void **device);
sps_status spsi_cuda_send(sps_context *ctx, void *host, void *device,
                          size_t bytes);
/* Makes a small matrix an operand of a kernel: *d points to its elements in
 * device memory, to which they are uploaded if C is in host memory. */
sps_status spsi_cuda_small(const sps_small *C, const double **d);
/* A small matrix as a result.  spsi_cuda_result returns where kernels write its
 * elements (in `down`, from `offset` on, if C is in host memory; call need_down
 * first).  spsi_cuda_deliver is called after the kernels have been queued: if C
 * is in host memory, it synchronises and copies the elements to it. */
double *spsi_cuda_result(const sps_small *C, size_t offset);
sps_status spsi_cuda_deliver(sps_small *C, size_t offset);
/* Allocates device memory, by the caller's allocator if one is set, and counts
 * the bytes. */
sps_status spsi_cuda_alloc(sps_context *ctx, size_t bytes, void **p_p);
void spsi_cuda_release(sps_context *ctx, void *p, size_t bytes);
/* Allocates page-locked host memory (the backend's share and unshare). */
sps_status spsi_cuda_share(sps_context *ctx, size_t bytes, void **p_p);
void spsi_cuda_unshare(sps_context *ctx, void *p, size_t bytes);
/* Until spsi_cuda_pool_end, spsi_cuda_alloc allocates from a pool, in the order
 * of the stream and without waiting.  Afterwards the pool keeps a limited
 * amount of unused memory for the next time (pool_rest), unless memory runs
 * out. */
void spsi_cuda_pool_begin(sps_context *ctx);
void spsi_cuda_pool_end(sps_context *ctx);
void spsi_cuda_pool_close(sps_context *ctx);

/* Functions of the backend's table of operations (core/backend.h), in the order
 * of the files that define them. */
sps_status spsi_cuda_record_begin(sps_context *ctx);
sps_status spsi_cuda_record_end(sps_context *ctx, void **recording_p);
sps_status spsi_cuda_replay(sps_context *ctx, void *recording);
void spsi_cuda_record_drop(sps_context *ctx, void *recording);
sps_status spsi_cuda_fill(sps_block *X, double value);
sps_status spsi_cuda_random(sps_block *X, uint64_t seed, int64_t first);
sps_status spsi_cuda_gather(const sps_block *X, const int *index,
                            sps_block *Y);
sps_status spsi_cuda_scatter(const sps_block *X, const int *index,
                             sps_block *Y);
sps_status spsi_cuda_axpby(double a, const sps_block *X, double b,
                           sps_block *Y);
sps_status spsi_cuda_axpby_cols(const double *a, const sps_block *X,
                                const double *b, sps_block *Y);
sps_status spsi_cuda_scale_rows(const sps_block *d, const sps_block *X,
                                sps_block *Y);
sps_status spsi_cuda_set(sps_block *X, const double *data, int64_t ld,
                         sps_order order, sps_place place);
sps_status spsi_cuda_get(const sps_block *X, double *data, int64_t ld,
                         sps_order order, sps_place place);
sps_status spsi_cuda_dots(const sps_block *X, const sps_block *Y, double *out);
/* Computes what spsi_cuda_dots does, the products of the columns of X and Y.
 * The results go to `to`, which is in device memory or in `down`, and the work
 * is only queued; if `to` is NULL, they go to the beginning of `down`, and the
 * stream is synchronised. */
sps_status spsi_cuda_dots_to(const sps_block *X, const sps_block *Y,
                             double *to);
sps_status spsi_cuda_maxabs(const sps_block *X, double *out);
sps_status spsi_cuda_remove_means(const sps_components *c, sps_block *X);
sps_status spsi_cuda_subtract_cols(const sps_block *Q, const double *a,
                                   sps_block *R, double *norm2);
sps_status spsi_cuda_gram(const sps_block *X, const sps_block *Y,
                          sps_small *C);
sps_status spsi_cuda_gram_pair(const sps_block *P, const sps_block *Q,
                               const sps_block *R, sps_small *G, sps_small *C);
sps_status spsi_cuda_mul_small(double a, const sps_block *X,
                               const sps_small *C, double b, sps_block *Y);
sps_status spsi_cuda_subtract(const sps_block *Q, const sps_small *a,
                              sps_block *R, sps_small *S);
sps_status spsi_cuda_basis_dots(const sps_basis *V, int count,
                                const sps_block *W, sps_small *H);
sps_status spsi_cuda_basis_update(double a, const sps_basis *V, int count,
                                  const sps_small *H, bool add, sps_block *W,
                                  double *norm2);
sps_status spsi_cuda_combine(const sps_block *Z, const sps_small *b,
                             sps_block *P, sps_small *G);
sps_status spsi_cuda_fused_cg_lengths(const struct sps_fused_cg *w,
                                      const sps_block *P, const sps_block *Q);
sps_status spsi_cuda_fused_cg_residual(const struct sps_fused_cg *w,
                                       const sps_block *Q, sps_block *R);
sps_status spsi_cuda_fused_cg_directions(const struct sps_fused_cg *w,
                                         sps_block *P, sps_block *X,
                                         const sps_block *R);

sps_status spsi_cuda_triangle_open(sps_triangle *t);
sps_status spsi_cuda_triangle_refresh(sps_triangle *t);
sps_status spsi_cuda_triangle_solve(const sps_triangle *t, const sps_block *B,
                                    sps_block *X);
void spsi_cuda_triangle_close(sps_triangle *t);
sps_status spsi_cuda_twofold(const sps_csr_local *A,
                             const sps_twofold_args *args);

sps_status spsi_cuda_csr_multiply(sps_context *ctx, const sps_csr *A,
                                  const sps_csr *B, sps_csr **C_p);
sps_status spsi_cuda_csr_multiply_values(sps_context *ctx, const sps_csr *A,
                                         const sps_csr *B, sps_csr *C);
sps_status spsi_cuda_csr_inspect(sps_context *ctx, const sps_csr *A,
                                 int64_t *bad, bool *sorted);
sps_status spsi_cuda_local_diagonal(sps_context *ctx, const sps_csr_local *A,
                                    double *diagonal);
sps_status spsi_cuda_local_cancels(sps_context *ctx, const sps_csr_local *A,
                                   double tol, bool *some);
sps_status spsi_cuda_csr_features(sps_context *ctx, const sps_csr_local *A,
                                  sps_raw_features *raw);
sps_status spsi_cuda_csr_narrow(sps_context *ctx, const int64_t *wide,
                                int64_t n, int32_t *narrow);
sps_status spsi_cuda_csr_transpose(sps_context *ctx, const sps_csr *A,
                                   sps_csr **T_p);
extern const sps_coarsening spsi_coarsening_cuda;
extern const sps_backend spsi_backend_cuda;

#ifdef __cplusplus
}
#endif

#endif
