/* SPDX-License-Identifier: BSD-3-Clause */
/* tca_plan.cu - plans of TCA-SpMM. */
#include "tca_plan.h"

#include "state.h"

namespace {

sps_status take(sps_context *ctx, const void *from, size_t bytes, void **to)
{
    if (bytes == 0) return SPS_OK;
    SPS_TRY_RETURN(spsi_cuda_alloc(ctx, bytes, to));
    return ctx->backend->upload(ctx, *to, from, bytes);
}

size_t slot_bytes(const spsi_tca *w)
{
    return (size_t)w->n.teams * SPSI_TCA_TEAM * sizeof *w->slot;
}
size_t piece_bytes(const spsi_tca *w)
{
    return (size_t)w->n.pieces * sizeof *w->piece;
}
size_t split_bytes(const spsi_tca *w)
{
    return (size_t)w->n.splits * sizeof *w->split;
}
size_t empty_bytes(const spsi_tca *w)
{
    return (size_t)w->n.empties * sizeof *w->empty;
}

sps_status upload(sps_context *ctx, const spsi_tca *host, spsi_tca *w)
{
    w->n = host->n;
    SPS_TRY_RETURN(take(ctx, host->slot, slot_bytes(w), (void **)&w->slot));
    SPS_TRY_RETURN(take(ctx, host->piece, piece_bytes(w), (void **)&w->piece));
    SPS_TRY_RETURN(take(ctx, host->split, split_bytes(w), (void **)&w->split));
    return take(ctx, host->empty, empty_bytes(w), (void **)&w->empty);
}

} // namespace

void spsi_cuda_tca_clear(sps_context *ctx, spsi_tca *w)
{
    spsi_cuda_release(ctx, w->slot, slot_bytes(w));
    spsi_cuda_release(ctx, w->piece, piece_bytes(w));
    spsi_cuda_release(ctx, w->split, split_bytes(w));
    spsi_cuda_release(ctx, w->empty, empty_bytes(w));
    *w = spsi_tca();
}

sps_status spsi_cuda_tca_plan(sps_context *ctx, const sps_kernel *kernel,
                              const sps_problem *p, size_t sum_bytes,
                              sps_plan **plan_p)
{
    sps_tca_plan *plan;
    spsi_tca host;
    sps_status st;

    SPS_TRY_RETURN(spsi_plan_new(ctx, kernel, p, sizeof *plan, plan_p));
    plan = (sps_tca_plan *)*plan_p;
    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    SPS_TRY_RETURN(spsi_tca_build(ctx, p->A->nrow, p->A->rowptr, &host));
    st = upload(ctx, &host, &plan->work);
    spsi_tca_clear(ctx, &host);
    if (st != SPS_OK) return st;
    plan->partial_bytes = (size_t)plan->work.n.partials * (size_t)p->k *
                          sum_bytes;
    if (plan->partial_bytes > 0)
        SPS_TRY_RETURN(spsi_cuda_alloc(ctx, plan->partial_bytes,
                                       &plan->partial));
    plan->super.bytes = slot_bytes(&plan->work) + piece_bytes(&plan->work) +
                        split_bytes(&plan->work) + empty_bytes(&plan->work) +
                        plan->partial_bytes;
    return SPS_OK;
}

void spsi_cuda_tca_destroy(sps_plan *super)
{
    sps_tca_plan *plan = (sps_tca_plan *)super;
    sps_context *ctx = super->ctx;

    spsi_cuda_tca_clear(ctx, &plan->work);
    spsi_cuda_release(ctx, plan->partial, plan->partial_bytes);
    spsi_cuda_release(ctx, plan->x, plan->x_bytes);
    spsi_cuda_release(ctx, plan->scale, plan->scale_bytes);
}

bool spsi_cuda_tca_fits(const sps_problem *p, const char **why_not)
{
    if (p->A->nrow > INT32_MAX) {
        *why_not = "2^31 rows or more";
        return false;
    }
    return true;
}
