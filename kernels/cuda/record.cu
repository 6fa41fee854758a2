/* SPDX-License-Identifier: BSD-3-Clause */
/* record.cu - recordings of queued work: CUDA graphs captured from the stream
 * of the context.  Whoever records keeps the blocks that it named alive; the
 * scratch of the context may move meanwhile (spsi_cuda_need_scratch), and a
 * recording that names it where it was is not replayed. */
#include "state.h"

namespace {

struct recording {
    cudaGraphExec_t exec;
    const char *scratch;         /* where it was */
};

} // namespace

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
    recording *r;
    void *p;
    cudaError_t error;

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    SPS_CUDA(ctx, cudaStreamEndCapture(spsi_cuda_state(ctx)->stream, &graph));
    if (spsi_new(ctx, sizeof *r, &p) != SPS_OK) {
        cudaGraphDestroy(graph);
        return SPS_ENOMEM;
    }
    r = (recording *)p;
    r->scratch = spsi_cuda_state(ctx)->d_scratch;
    error = cudaGraphInstantiate(&r->exec, graph, 0);
    cudaGraphDestroy(graph);
    if (error != cudaSuccess) spsi_free(ctx, r);
    SPS_CUDA(ctx, error);
    *recording_p = r;
    return SPS_OK;
}

/* SPS_EUNFIT, and nothing is queued, where it names memory that has moved. */
sps_status spsi_cuda_replay(sps_context *ctx, void *p)
{
    recording *r = (recording *)p;

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    if (r->scratch != spsi_cuda_state(ctx)->d_scratch) return SPS_EUNFIT;
    SPS_CUDA(ctx, cudaGraphLaunch(r->exec, spsi_cuda_state(ctx)->stream));
    return SPS_OK;
}

void spsi_cuda_record_drop(sps_context *ctx, void *p)
{
    if (!p) return;
    if (!ctx->dead) cudaGraphExecDestroy(((recording *)p)->exec);
    spsi_free(ctx, p);
}
