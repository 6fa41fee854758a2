/* SPDX-License-Identifier: BSD-3-Clause */
/* parked.c - B in page-locked host memory during a solve, where the GPU has no
 * room for the residual.
 *
 * The true residual is computed from B about once in 50 iterations.  If the
 * blocks of a solver leave no room for R, R gets the memory of B for the time
 * of a solve: B is copied to page-locked host memory, where kernels read it
 * over the link, and back at the end.  With the best iterate, which is in host
 * memory then, too (block/owned.h), a solve needs two blocks less on the GPU.
 * B must be a block whose memory belongs to the library. */
#include "block/single.h"
#include "core/backend.h"
#include "core/comm.h"
#include "driver/linear.h"

/* Returns whether R has the shape of B, and nobody else reads B during a
 * solve. */
static bool can_park(const sps_linear *s)
{
    return s->ctx->backend->share && s->n == s->least.nrow &&
           !spsi_operator_calls(s->A) && !spsi_comm_many(s->ctx);
}

sps_status spsi_residual_create(sps_linear *s)
{
    sps_linear_scratch *scratch = &s->scratch;
    sps_owner *own = &s->made.own;
    const int64_t rows = s->n > s->least.nrow ? s->n : s->least.nrow;
    sps_status st = spsi_own_block(own, rows, s->columns, &scratch->own);

    if (st == SPS_EDEVMEM && can_park(s)) {
        scratch->residual = &scratch->lent;
        return spsi_own_block_on_host(own, s->n, s->columns,
                                      "B during a solve", &scratch->parked);
    }
    SPS_TRY(st);
    scratch->residual = scratch->own;
    scratch->residual->n = s->least.nrow;
fail:
    return st;
}

sps_status spsi_residual_take(sps_linear *s, const sps_block **B_p)
{
    const sps_block *B = *B_p;
    sps_block *parked = s->scratch.parked, *lent = &s->scratch.lent;
    sps_status st = SPS_OK;

    if (!parked) return SPS_OK;
    SPS_REQUIRE(s->ctx, B->bytes >= spsi_block_bytes(parked) &&
                B->ld == parked->ld && B->dtype == SPS_F64, SPS_EDEVMEM,
                "the GPU has no room for a residual of %zu bytes beside B, and "
                "B, whose memory is the caller's, cannot make room for it: "
                "use a block of the library (sps_block_create)",
                spsi_block_bytes(parked));
    SPS_TRY(spsi_copy(B, parked));
    *lent = *B;
    lent->bytes = 0;
    *B_p = parked;
fail:
    return st;
}

sps_status spsi_residual_give(sps_linear *s)
{
    sps_block *lent = &s->scratch.lent;
    sps_status st = SPS_OK;

    if (!lent->data) return SPS_OK;
    st = spsi_copy(s->scratch.parked, lent);
    lent->data = NULL;
    return st;
}
