/* SPDX-License-Identifier: BSD-3-Clause */
/* fused.c - products with an epilogue: passed to kernels that fuse it,
 * otherwise composed of the plain product and block operations. */
#include <assert.h>

#include "operator/operator_ranks.h"
#include "plan/sequence.h"

static bool alike(const sps_block *X, const sps_block *Y)
{
    return X->ld == Y->ld;
}

/* Returns whether the plan's kernel can apply the epilogue e within its own
 * pass. */
static bool fusible(const sps_plan *plan, double alpha, const sps_block *X,
                    const sps_block *Y, const sps_epilogue *e)
{
    return plan->kernel->fuses && alpha != 0 && plan->A->nnz > 0 &&
           X->k <= plan->k && alike(X, Y) && (!e->W || alike(e->W, Y)) &&
           (!e->D || e->D->ld == 1);
}

bool spsi_operator_fuses(const sps_operator *op, int k)
{
    const sps_operator *of = op->ranks ? op->ranks->interior : op;
    const sps_plan *plan = k == 1 ? of->vector : of->block;

    return plan && plan->kernel->fuses;
}

typedef sps_status (*product)(const sps_operator *op, double alpha,
                              const sps_block *X, double beta, sps_block *Y);

/* T = D (alpha A X + gamma W) + beta T; beta must be 0 with D. */
static sps_status pass(const sps_operator *op, product multiply, double alpha,
                       const sps_block *X, double beta, sps_block *T,
                       const sps_epilogue *e)
{
    sps_status st;

    if (e->W) {
        SPS_TRY(spsi_axpby(e->gamma, e->W, beta, T));
        beta = 1;
    }
    SPS_TRY(multiply(op, alpha, X, beta, T));
    if (e->D) SPS_TRY(spsi_scale_rows(e->D, T, T));
fail:
    return st;
}

static sps_status compose(const sps_operator *op, product multiply,
                          double alpha, const sps_block *X, double beta,
                          sps_block *Y, const sps_epilogue *e, sps_block *room)
{
    sps_status st;

    if (e->D && beta != 0) {
        assert(room);
        spsi_block_narrow(room, Y->k);
        SPS_TRY(pass(op, multiply, alpha, X, 0.0, room, e));
        SPS_TRY(spsi_axpby(1.0, room, beta, Y));
    } else {
        SPS_TRY(pass(op, multiply, alpha, X, beta, Y, e));
    }
    if (e->delta != 0) SPS_TRY(spsi_axpby(e->delta, X, 1.0, Y));
fail:
    return st;
}

sps_status spsi_operator_apply_fused(const sps_operator *op, bool plain,
                                     double alpha, const sps_block *X,
                                     double beta, sps_block *Y,
                                     const sps_epilogue *e, sps_block *room)
{
    const sps_plan *plan = plain ? op->plain : X->k == 1 ? op->vector
                                                         : op->block;
    sps_epilogue used = *e;
    sps_status st;

    SPS_TRY(spsi_operator_check(op, X, Y));
    if ((op->n == 0 && !op->ranks) || X->k == 0) return SPS_OK;
    /* spsi_ranks_fused adds the terms of the epilogue to boundary rows in
     * another order, which across_ranks does not allow. */
    if (op->ranks && !plain && !spsi_comm_ordered(op->ctx))
        return spsi_ranks_fused(op, alpha, X, beta, Y, e, room);
    if (used.gamma == 0) used.W = NULL;
    if (!plan || !fusible(plan, alpha, X, Y, &used))
        return compose(op, plain ? spsi_operator_apply_plain
                                 : sps_operator_apply,
                       alpha, X, beta, Y, &used, room);
    return plan->kernel->spmm(plan, &(sps_spmm_args){
        .alpha = alpha, .X = X, .beta = beta, .Y = Y, .epilogue = &used });

fail:
    return st;
}

/* Returns the plan whose kernel takes all products at once, or NULL. */
static const sps_plan *sequence_of(const sps_operator *op,
                                   const sps_spmm_args *args, int count)
{
    const sps_plan *plan = args->X->k == 1 ? op->vector : op->block;

    if (op->ranks || !plan || !(plan->kernel->gives & SPS_SEQUENCES) ||
        op->n == 0 || op->n != op->ncol)
        return NULL;
    for (int i = 0; i < count; i++)
        if (!fusible(plan, args[i].alpha, args[i].X, args[i].Y,
                     args[i].epilogue))
            return NULL;
    return plan;
}

double spsi_operator_copy_seconds(const sps_operator *op, int k, int count)
{
    const sps_plan *plan = k == 1 ? op->vector : op->block;
    double passes = count;

    if (op->ranks || !plan || plan->streamed == 0 || count == 0) return 0;
    if (plan->kernel->gives & SPS_SEQUENCES)
        passes = ((const sps_sequence_plan *)plan)->passes(plan, k, count);
    return passes * (double)plan->streamed / op->ctx->machine.link;
}

sps_status spsi_operator_apply_sequence(const sps_operator *op,
                                        const sps_spmm_args *args, int count)
{
    const sps_plan *plan = count > 1 ? sequence_of(op, args, count) : NULL;
    sps_status st = SPS_OK;

    if (!plan || args->X->k == 0) {
        for (int i = 0; i < count; i++)
            SPS_TRY(spsi_operator_apply_fused(op, false, args[i].alpha,
                                              args[i].X, args[i].beta,
                                              args[i].Y, args[i].epilogue,
                                              NULL));
        return SPS_OK;
    }
    for (int i = 0; i < count; i++)
        SPS_TRY(spsi_operator_check(op, args[i].X, args[i].Y));
    return ((const sps_sequence_plan *)plan)->sequence(plan, args, count);
fail:
    return st;
}
