/* SPDX-License-Identifier: BSD-3-Clause */
/* stream.cuh - functions of spmm.stream that the files of kernels/cuda/stream
 * call in each other. */
#ifndef SPS_CUDA_STREAM_CUH
#define SPS_CUDA_STREAM_CUH

#include "cuda/base/state.h"
#include "cuda/stream/stream_plan.h"

/* stream_build.cu: spsi_stream_build packs the matrix of p into panels;
 * spsi_stream_rebuild packs the new values of plan->super.A, whose pattern is
 * unchanged; spsi_stream_clear frees the panels. */
sps_status spsi_stream_build(sps_stream_plan *plan, const sps_problem *p);
sps_status spsi_stream_rebuild(sps_stream_plan *plan);
void spsi_stream_clear(sps_stream_plan *plan);

/* stream_ring.cu: opens and closes the ring of slots on the device;
 * spsi_stream_pass computes one product by a pass over all panels;
 * spsi_stream_sequence several products, of which each has as its X the Y of
 * the one before (plan/sequence.h), by as few passes as the slots allow;
 * spsi_stream_passes returns their number. */
sps_status spsi_stream_ring_open(sps_stream_plan *plan);
void spsi_stream_ring_close(sps_stream_plan *plan);
sps_status spsi_stream_pass(sps_stream_plan *plan, const sps_spmm_args *args);
sps_status spsi_stream_sequence(sps_stream_plan *plan,
                                const sps_spmm_args *args, int count);
int spsi_stream_passes(const sps_stream_plan *plan, int count);

/* Queues the next step of a pass, if there is one; *more becomes whether there
 * are others. */
typedef sps_status sps_stream_step(void *data, bool *more);

/* stream_share.cu, the panels that the host multiplies itself:
 * spsi_stream_share_open allocates memory for them if there may be any;
 * spsi_stream_shared returns their number in this product;
 * spsi_stream_share_left returns the fraction of the streamed panels that they
 * leave to the device, as it is estimated before any product, so that choices
 * that depend on it are the same in each run;
 * spsi_stream_share_ask requests the rows of X that they need;
 * spsi_stream_share_sum waits for these rows, multiplies the panels while the
 * remaining steps are queued, and queues the host's rows of Y. */
sps_status spsi_stream_share_open(sps_stream_plan *plan);
void spsi_stream_share_close(sps_stream_plan *plan);
int64_t spsi_stream_shared(const sps_stream_plan *plan,
                           const sps_spmm_args *args);
double spsi_stream_share_left(const sps_stream_plan *plan, int k);
sps_status spsi_stream_share_ask(sps_stream_plan *plan,
                                 const sps_spmm_args *args);
sps_status spsi_stream_share_sum(sps_stream_plan *plan,
                                 const sps_spmm_args *args,
                                 sps_stream_step *step, void *data);
/* Called at the beginning and at the end of a pass: they record its times, by
 * which in the first passes the share of the host is found. */
sps_status spsi_stream_judge_begin(sps_stream_plan *plan,
                                   const sps_spmm_args *args);
sps_status spsi_stream_judge_end(const sps_stream_plan *plan,
                                 const sps_spmm_args *args);
/* For tests: keeps a stream busy for 2 ms if this stage is to be delayed. */
sps_status spsi_stream_late(const sps_stream_plan *plan, unsigned stage,
                            cudaStream_t stream);

/* For tests: returns whether this copy is the one that has to fail. */
bool spsi_stream_fails(sps_stream_plan *plan);
/* Returns the status of a copy of `bytes` bytes, queued with `error`. */
sps_status spsi_stream_copied(const sps_stream_plan *plan, size_t bytes,
                              cudaError_t error);

/* panel_rows.cu: spsi_stream_product queues Y = alpha A X + beta Y for the rows
 * of panel p, whose packed bytes are at `image` in device memory. */
sps_status spsi_stream_product(const sps_stream_plan *plan, const sps_panel *p,
                               const char *image, const sps_spmm_args *args);
/* spsi_stream_residents does the same for all panels that stay on the device,
 * from a list in device memory that spsi_stream_list_residents makes.
 * spsi_stream_fold, after all panels, adds the partial sums of all long
 * rows. */
sps_status spsi_stream_residents(const sps_stream_plan *plan,
                                 const sps_spmm_args *args);
sps_status spsi_stream_list_residents(sps_stream_plan *plan);
sps_status spsi_stream_fold(const sps_stream_plan *plan,
                            const sps_spmm_args *args);

#endif
