/* SPDX-License-Identifier: BSD-3-Clause */
/* twofold.c - products A X in twice the working precision, if A is a matrix, by
 * the backend's function twofold.  A callback knows doubles only: it is called
 * once, and its product has double precision. */
#include <assert.h>

#include "operator/operator_ranks.h"

/* L = V, or 0 if V is NULL; does nothing if L is NULL. */
static sps_status keep_low(const sps_block *V, sps_block *L)
{
    if (!L || (V && V->data == L->data)) return SPS_OK;
    return V ? spsi_copy(V, L) : spsi_fill(L, 0.0);
}

/* Computes in double precision, for a callback: H = W + A X diag(c), plus V if
 * L is NULL; otherwise L = V.  If c is NULL, all c_j are -1.  A X is formed in
 * `room`, or in H if W is NULL. */
static sps_status by_call(const sps_operator *op, const sps_twofold_args *g,
                          sps_block *room)
{
    const int k = g->X->k;
    double c[SPS_BLOCK_MAX], one[SPS_BLOCK_MAX];
    sps_block *Y = g->W ? room : g->H;
    sps_status st = SPS_OK;

    assert(Y);
    for (int j = 0; j < k; j++) {
        c[j] = g->c ? g->c[j] : -1;
        one[j] = 1;
    }
    SPS_TRY(sps_operator_apply(op, 1.0, g->X, 0.0, Y));
    if (!g->W) {
        SPS_TRY(spsi_axpby_cols(c, Y, NULL, Y));
    } else {
        if (g->W->data != g->H->data) SPS_TRY(spsi_copy(g->W, g->H));
        SPS_TRY(spsi_axpby_cols(c, Y, one, g->H));
    }
    if (g->V && !g->L) SPS_TRY(spsi_axpby(1.0, g->V, 1.0, g->H));
    SPS_TRY(keep_low(g->V, g->L));
fail:
    return st;
}

sps_status spsi_operator_twofold(const sps_operator *op,
                                 const sps_twofold_args *args, sps_block *room)
{
    sps_status st;

    SPS_TRY(spsi_operator_check(op, args->X, args->H));
    assert(op->dtype == SPS_F64);
    if (op->n == 0 || args->X->k == 0) return SPS_OK;
    if (op->ranks) return spsi_ranks_twofold(op, args);
    if (op->callback.apply) return by_call(op, args, room);
    return op->ctx->backend->twofold(&op->local, args);

fail:
    return st;
}
