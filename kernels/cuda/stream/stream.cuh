/* SPDX-License-Identifier: BSD-3-Clause */
/* stream.cuh - functions shared by the files of this folder. */
#ifndef SPS_CUDA_STREAM_CUH
#define SPS_CUDA_STREAM_CUH

#include "cuda/base/state.h"
#include "cuda/stream/stream_plan.h"

/* stream_build.cu: spsi_stream_build packs the matrix of p into panels;
 * spsi_stream_rebuild packs new values of plan->super.A, with the same
 * pattern. */
sps_status spsi_stream_build(sps_stream_plan *plan, const sps_problem *p);
sps_status spsi_stream_rebuild(sps_stream_plan *plan);
void spsi_stream_clear(sps_stream_plan *plan);

/* stream_ring.cu: makes one pass over the panels. */
sps_status spsi_stream_ring_open(sps_stream_plan *plan);
void spsi_stream_ring_close(sps_stream_plan *plan);
sps_status spsi_stream_pass(sps_stream_plan *plan, const sps_spmm_args *args);

/* Queues the next step of a pass, if there is one; *more becomes whether there
 * are others. */
typedef sps_status sps_stream_step(void *data, bool *more);

/* stream_share.cu: allocates memory for the host's share if there may be one;
 * returns its number of panels in this product, or 0; requests the rows of X
 * that it needs; and waits for them, sums its panels while the remaining steps
 * are queued, and queues its rows of Y. */
sps_status spsi_stream_share_open(sps_stream_plan *plan);
void spsi_stream_share_close(sps_stream_plan *plan);
int64_t spsi_stream_shared(const sps_stream_plan *plan,
                           const sps_spmm_args *args);
sps_status spsi_stream_share_ask(sps_stream_plan *plan,
                                 const sps_spmm_args *args);
sps_status spsi_stream_share_sum(sps_stream_plan *plan,
                                 const sps_spmm_args *args,
                                 sps_stream_step *step, void *data);
/* Called at the beginning and at the end of a pass: time it, if it is one of
 * those by which a share is judged. */
sps_status spsi_stream_judge_begin(sps_stream_plan *plan,
                                   const sps_spmm_args *args);
sps_status spsi_stream_judge_end(const sps_stream_plan *plan);
/* For tests: keeps a stream busy for 2 ms if this stage is to be delayed. */
sps_status spsi_stream_late(const sps_stream_plan *plan, unsigned stage,
                            cudaStream_t stream);

/* panel_rows.cu: queues Y = alpha A X + beta Y for the rows of one panel whose
 * image is at `image` in device memory; the other function, after all panels,
 * adds the partial sums of all long rows. */
sps_status spsi_stream_product(const sps_stream_plan *plan, const sps_panel *p,
                               const char *image, const sps_spmm_args *args);
/* Does the same for all resident panels; the other function makes the list of
 * them in device memory. */
sps_status spsi_stream_residents(const sps_stream_plan *plan,
                                 const sps_spmm_args *args);
sps_status spsi_stream_list_residents(sps_stream_plan *plan);
sps_status spsi_stream_fold(const sps_stream_plan *plan,
                            const sps_spmm_args *args);

#endif
