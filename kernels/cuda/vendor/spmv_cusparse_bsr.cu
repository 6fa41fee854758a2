/* SPDX-License-Identifier: BSD-3-Clause */
/* spmv_cusparse_bsr.cu - cuSPARSE's SpMV on BSR, the fastest product with one
 * vector for matrices of node blocks.
 *
 * Blocks are column-major, or row-major if choices are measured and that is
 * faster.  That BSR_ALG1 is reproducible was observed (12.6.3 on an H200), and
 * tests/conform/kernels/conform_kernels_bits.c tests it. */
#include "cuda/vendor/cusparse_bsr.cuh"
#include "cuda/sparse/node_blocks_device.cuh"

namespace {

struct bsr_plan {
    vector_plan vendor;
    bsr matrix;
};

sps_status set_up(bsr_plan *s, const vectors *d)
{
    vector_plan *v = &s->vendor;

    vector_drop(v);
    SPS_TRY_RETURN(bsr_describe(v->super.ctx, &s->matrix, &v->A));
    return vector_buffer(v, CUSPARSE_SPMV_BSR_ALG1, d);
}

/* Changes to row-major blocks if the product is faster with them. */
sps_status pick(bsr_plan *s, const vectors *d)
{
    sps_plan *super = &s->vendor.super;
    float columns = 0, rows = 0;

    SPS_TRY_RETURN(vector_time(&s->vendor, d, &columns));
    SPS_TRY_RETURN(bsr_turn_over(super, &s->matrix));
    SPS_TRY_RETURN(set_up(s, d));
    SPS_TRY_RETURN(vector_time(&s->vendor, d, &rows));
    if (rows < columns) return SPS_OK;
    plan_give(super, &s->matrix.turned);
    return set_up(s, d);
}

sps_status plan(sps_plan *super, const sps_problem *p)
{
    bsr_plan *s = (bsr_plan *)super;
    vectors d;

    SPS_TRY_RETURN(vector_room(&s->vendor, &d));
    SPS_TRY_RETURN(bsr_make(super, p, &s->matrix));
    SPS_TRY_RETURN(set_up(s, &d));
    if (p->timed) SPS_TRY_RETURN(pick(s, &d));
    bsr_detail(&s->matrix, super);
    return SPS_OK;
}

sps_status refresh(sps_plan *plan)
{
    return bsr_values(plan->ctx, plan->A, &((bsr_plan *)plan)->matrix);
}

bool fits(const sps_problem *p, const char **why_not)
{
    return single_fits(p, why_not) && bsr_fits(p, why_not);
}

/* Predicted seconds.  Blocks of 3 x 3 are read at 83 % of the copy bandwidth;
 * other sizes were measured on small matrices only, where the sequential loop
 * along a block row is slow, and are assumed slow on large ones (15 matrices on
 * an H200). */
double cost(const sps_problem *p)
{
    int b;
    const double bytes = node_floor(p, &b);
    const double share = b == 3 ? 0.83 : 0.5, step = b == 3 ? 6e-8 : 4e-7;

    return 3e-6 + fmax(bytes / (share * p->machine->copy),
                       step * (double)p->f->max_length / b);
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_spmv_cusparse_bsr) = {
    .name = "spmv.cusparse_bsr",
    .op = SPS_OP_SPMM,
    .gives = SPS_REPRODUCIBLE | SPS_FULL_PRECISION | SPS_VENDOR |
             SPS_SINGLE_BLOCKS,
    .size = sizeof(bsr_plan),
    .fits = fits,
    .cost = cost,
    .plan = plan,
    .spmm = guarded<vector_spmm>,
    .refresh = refresh,
    .destroy = vector_destroy,
};
