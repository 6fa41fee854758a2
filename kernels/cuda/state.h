/* SPDX-License-Identifier: BSD-3-Clause */
/* state.h - what a context owns on its GPU, and the slots of the backend.
 *
 * scratch:  device memory for partial sums and for staged copies; every
 *           operation may use all of it, the stream keeps them apart.
 * up:       pinned host memory with a twin on the device, filled from the
 *           front; small operands (coefficients, column numbers) go through
 *           it without waiting.  Emptied at each synchronisation.
 * down:     pinned host memory that last phases of reductions write to
 *           directly; read after the synchronisation.
 *
 * All three are taken in open and reserve; an operation that needs more than
 * was reserved grows them, so that forgetting to reserve costs time, not
 * correctness. */
#ifndef SPS_CUDA_STATE_H
#define SPS_CUDA_STATE_H

#include <sys/types.h>

#include "backend.h"
#include "cuda_check.h"

#define SPS_CUDA_SPANS 128 /* phases that may wait for their times */

typedef struct sps_cuda_span {
    cudaEvent_t begin, end;
    int phase;
} sps_cuda_span;

typedef struct sps_cuda_state {
    int device, sms;
    pid_t pid;                 /* a forked child must not touch the device */
    cudaStream_t stream;
    bool own_stream;
    int shared_limit;          /* bytes of shared memory a block may have */
    cublasHandle_t blas;
    void *blas_work;
    size_t blas_bytes;
    cusparseHandle_t sparse;   /* made with the first plan that wants it */
    char *d_scratch;
    size_t scratch_bytes;
    char *up, *d_up;
    size_t up_bytes, up_used;
    double *down;
    size_t down_bytes;
    sps_cuda_span span[SPS_CUDA_SPANS];
    int span_first, span_count, span_made;
    bool span_open;
} sps_cuda_state;

static inline sps_cuda_state *spsi_cuda_state(const sps_context *ctx)
{
    return (sps_cuda_state *)ctx->backend_data;
}

/* Refuses dead contexts and forked children, selects the device. */
sps_status spsi_cuda_enter(sps_context *ctx);
/* Waits for the stream, empties up, adds up the phases. */
sps_status spsi_cuda_wait(sps_context *ctx);
sps_status spsi_cuda_need_scratch(sps_context *ctx, size_t bytes);
sps_status spsi_cuda_need_down(sps_context *ctx, size_t bytes);
/* Room for bytes in up: *host to fill before spsi_cuda_send, *device for the
 * kernel. */
sps_status spsi_cuda_room(sps_context *ctx, size_t bytes, void **host,
                          void **device);
sps_status spsi_cuda_send(sps_context *ctx, void *host, void *device,
                          size_t bytes);
/* A small matrix as operations take it: *d its numbers on the device, sent
 * there when they are on the host. */
sps_status spsi_cuda_small(const sps_small *C, const double **d);
/* As operations leave it: where kernels put its numbers (in down, from offset
 * on, when C is on the host), and, when they have been queued, the wait for
 * those that belong there.  need_down comes first. */
double *spsi_cuda_result(const sps_small *C, size_t offset);
sps_status spsi_cuda_deliver(sps_small *C, size_t offset);
/* Device memory through the caller's hook, counted. */
sps_status spsi_cuda_alloc(sps_context *ctx, size_t bytes, void **p_p);
void spsi_cuda_release(sps_context *ctx, void *p, size_t bytes);
sps_status spsi_cuda_sparse(sps_context *ctx, cusparseHandle_t *handle_p);

/* Slots, by file. */
sps_status spsi_cuda_record_begin(sps_context *ctx);
sps_status spsi_cuda_record_end(sps_context *ctx, void **recording_p);
sps_status spsi_cuda_replay(sps_context *ctx, void *recording);
void spsi_cuda_record_drop(sps_context *ctx, void *recording);
sps_status spsi_cuda_fill(sps_block *X, double value);
sps_status spsi_cuda_random(sps_block *X, uint64_t seed);
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
/* The same to device (or down's) memory, queued. */
sps_status spsi_cuda_dots_to(const sps_block *X, const sps_block *Y,
                             double *to);
sps_status spsi_cuda_maxabs(const sps_block *X, double *out);
sps_status spsi_cuda_remove_means(const sps_components *c, sps_block *X);
sps_status spsi_cuda_update_pair_cols(const sps_block *P, const sps_block *Q,
                                      const double *a, sps_block *X,
                                      sps_block *R, double *norm2);
sps_status spsi_cuda_gram(const sps_block *X, const sps_block *Y,
                          sps_small *C);
sps_status spsi_cuda_gram_pair(const sps_block *P, const sps_block *Q,
                               const sps_block *R, sps_small *G, sps_small *C);
sps_status spsi_cuda_mul_small(double a, const sps_block *X,
                               const sps_small *C, double b, sps_block *Y);
sps_status spsi_cuda_update_pair(const sps_block *P, const sps_block *Q,
                                 const sps_small *a, sps_block *X,
                                 sps_block *R, sps_small *S);
sps_status spsi_cuda_solve_small(const sps_small *C, sps_block *X);
sps_status spsi_cuda_basis_dots(const sps_basis *V, int count,
                                const sps_block *W, sps_small *H);
sps_status spsi_cuda_basis_update(double a, const sps_basis *V, int count,
                                  const sps_small *H, bool add, sps_block *W,
                                  double *norm2);
sps_status spsi_cuda_combine(const sps_block *Z, const sps_small *b,
                             sps_block *P, sps_small *G);
sps_status spsi_cuda_steps_lengths(const struct sps_steps *w,
                                   const sps_block *P, const sps_block *Q);
sps_status spsi_cuda_steps_residual(const struct sps_steps *w,
                                    const sps_block *Q, sps_block *R);
sps_status spsi_cuda_steps_directions(const struct sps_steps *w, sps_block *P,
                                      sps_block *X, const sps_block *R);

sps_status spsi_cuda_triangle_open(sps_triangle *t);
sps_status spsi_cuda_triangle_refresh(sps_triangle *t);
sps_status spsi_cuda_triangle_solve(const sps_triangle *t, const sps_block *B,
                                    sps_block *X);
void spsi_cuda_triangle_close(sps_triangle *t);

extern "C" const sps_backend spsi_backend_cuda;

#endif
