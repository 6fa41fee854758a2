/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_stream.cu - Y = alpha A X + beta Y with a matrix beyond the memory of
 * the GPU (ApSpGEMM's panels and streams): panels of rows are copied from page-
 * locked host memory while others are multiplied; the first that fit stay.
 *
 * It bids where the arrays of A are in host memory (sps_csr_local.far), or
 * where rows are made by a source.  Pinned by name for a csr of the host that
 * is on the GPU as well it streams all of it.
 *
 * Bytes over the link: those of the streamed panels (formats/panels.h), 10 for
 * an entry, 6 or 3 where values are floats or few; whatever the number of
 * columns. Sums have the order of spmm.plain for rows of up to 1024 entries,
 * and do not depend on panels; longer rows are sums of their segments. */
#include "cuda/sparse/sparse.cuh"
#include "cuda/stream/stream.cuh"

#include <stdio.h>

namespace {

bool fits(const sps_problem *p, const char **why_not)
{
    *why_not = "A is on the GPU";
    return p->local->far || (p->pinned && p->A->rowptr);
}

/* Bytes of the panels, by what is known of A without packing it. */
double image_bytes(const sps_problem *p)
{
    const sps_features *f = p->f;
    const double value = p->A->dtype == SPS_F32 || f->exact ? 4.0 : 8.0;
    const double delta = f->near > 0.5 ? 2.0 : 4.0;

    return (double)f->nnz * (value + delta) + 4.3 * (double)f->nrow;
}

/* The link, or the GPU: whichever takes longer.  Residents are multiplied at a
 * third of the copy rate, while copies run. */
double cost(const sps_problem *p)
{
    const double image = image_bytes(p);
    const double streamed = p->local->far ? fmax(image - (double)p->room, 0)
                                          : image;
    const double link = streamed / p->machine->link;
    const double work = (image + spsi_spmm_floor(p) - 12.0 *
                         (double)p->f->nnz) / (0.33 * p->machine->copy);

    return 2e-5 + scattered(p) + (link > work ? link : work);
}

sps_status plan(sps_plan *super, const sps_problem *p)
{
    sps_stream_plan *plan = (sps_stream_plan *)super;

    SPS_TRY_RETURN(spsi_stream_build(plan, p));
    snprintf(super->detail, sizeof super->detail,
             "%lld of %lld panels streamed, %.3g MB",
             (long long)(plan->panels - plan->resident),
             (long long)plan->panels, 1e-6 * (double)super->streamed);
    return SPS_OK;
}

sps_status spmm(const sps_plan *super, const sps_spmm_args *args)
{
    return spsi_stream_pass((sps_stream_plan *)super, args);
}

sps_status refresh(sps_plan *super)
{
    return spsi_stream_rebuild((sps_stream_plan *)super);
}

void destroy(sps_plan *super)
{
    spsi_stream_clear((sps_stream_plan *)super);
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_spmm_stream) = {
    .name = "spmm.stream",
    .op = SPS_OP_SPMM,
    .gives = SPS_REPRODUCIBLE | SPS_FULL_PRECISION | SPS_NAN_STAYS_IN_ROW |
             SPS_SINGLE_BLOCKS | SPS_STREAMS,
    .fuses = true,
    .size = sizeof(sps_stream_plan),
    .fits = fits,
    .cost = cost,
    .plan = plan,
    .spmm = guarded<spmm>,
    .refresh = refresh,
    .destroy = destroy,
};
