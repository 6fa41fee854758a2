/* SPDX-License-Identifier: BSD-3-Clause */
/* record.c - recordings of queued work: CUDA graphs captured from the stream
 * of the context.  The caller keeps the blocks that the recorded work uses
 * alive and at their addresses. */
#include "cuda/base/state.h"

sps_status spsi_cuda_record_begin(sps_context *ctx)
{
    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    SPS_CUDA(ctx, cudaStreamBeginCapture(spsi_cuda_state(ctx)->stream,
                                         cudaStreamCaptureModeThreadLocal));
    return SPS_OK;
}

sps_status spsi_cuda_record_end(sps_context *ctx, void **recording_p)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    cudaError_t error;

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    SPS_CUDA(ctx, cudaStreamEndCapture(spsi_cuda_state(ctx)->stream, &graph));
    error = cudaGraphInstantiate(&exec, graph, 0);
    cudaGraphDestroy(graph);
    SPS_CUDA(ctx, error);
    *recording_p = exec;
    return SPS_OK;
}

sps_status spsi_cuda_replay(sps_context *ctx, void *recording)
{
    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    SPS_CUDA(ctx, cudaGraphLaunch((cudaGraphExec_t)recording,
                                  spsi_cuda_state(ctx)->stream));
    return SPS_OK;
}

void spsi_cuda_record_drop(sps_context *ctx, void *recording)
{
    if (recording && !ctx->dead)
        cudaGraphExecDestroy((cudaGraphExec_t)recording);
}
