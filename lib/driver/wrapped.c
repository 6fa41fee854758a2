/* SPDX-License-Identifier: BSD-3-Clause */
/* wrapped.c - solves with blocks that wrap the caller's arrays.  Kernels may
 * sum in another order for another alignment or leading dimension.  Such blocks
 * are therefore copied to blocks of the library's own layout and back, so that
 * the bits depend on the values only; this costs three copies of a block,
 * compared with hundreds of block passes in a solve.  If there is no memory for
 * the copies, the caller's arrays are used directly, with a note. */
#include "block/block.h"
#include "driver/solver.h"

#include <stdint.h>

/* Returns whether alignment and leading dimension are those of
 * sps_block_create. */
static bool as_ours(const sps_block *X)
{
    return X->ld == spsi_block_ld(X->k) && (uintptr_t)X->data % 256 == 0;
}

/* Sets *own_p to a block of X's shape, allocated at the first solve that needs
 * it; NULL if X can be used directly, or if there is no memory. */
static sps_status take(sps_solver *s, const sps_block *X, sps_block **room,
                       sps_block **own_p)
{
    sps_status st = SPS_OK;

    *own_p = NULL;
    if (as_ours(X)) return SPS_OK;
    if (!*room) st = sps_block_create(s->ctx, X->n, s->columns, room);
    if (st == SPS_ENOMEM || st == SPS_EDEVMEM) {
        spsi_note(s->ctx, "no memory to copy B or X: the last digits may "
                  "depend on the address and the leading dimension of the "
                  "caller's array");
        return SPS_OK;
    }
    SPS_TRY(st);
    SPS_TRY(spsi_copy(X, *room));
    *own_p = *room;
fail:
    return st;
}

sps_status spsi_solver_wrapped(sps_solver *s, const sps_block *B, sps_block *X,
                               sps_result *result)
{
    sps_block *b, *x;
    sps_status st, back = SPS_OK;

    SPS_TRY(take(s, B, &s->own_B, &b));
    SPS_TRY(take(s, X, &s->own_X, &x));
    st = s->ops->linear(s->of, b ? b : B, x ? x : X, result);
    if (x) back = spsi_copy(x, X);
    if (st == SPS_OK) st = back;
fail:
    return st;
}
