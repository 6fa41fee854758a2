/* SPDX-License-Identifier: BSD-3-Clause */
/* operator_room.c - operators for the solver that their options name: a matrix
 * leaves the blocks of that solver room on the GPU, or stays in host memory.
 *
 * A method for definite matrices has X, the memory of B, its work blocks, and
 * one block for scratch memory on the GPU where that is full (parked.c).  Of
 * other methods, and of auto, the blocks are not known here. */
#include "core/options.h"
#include "driver/linear.h"

/* Options that are not valid are reported where the operator is created. */
static int64_t columns_of(sps_context *ctx, const sps_options *opt, int width)
{
    const sps_linear_type *method;
    const sps_precond_type *M;
    sps_options o;

    if (!ctx || spsi_options_take(ctx, opt, &o) != SPS_OK) return 0;
    method = spsi_linear_type(o.solver);
    M = spsi_precond_type(o.precond);
    if (!method || !(method->needs & SPS_NEEDS_SPD) || !M || !M->room) return 0;
    return (3 + method->blocks) * spsi_block_ld(width) + M->room(width);
}

sps_status sps_operator_csr(sps_context *ctx, sps_csr *A, int width,
                            const sps_options *opt, sps_operator **op_p)
{
    return spsi_operator_csr(ctx, A, width, opt, columns_of(ctx, opt, width),
                             op_p);
}

sps_status sps_operator_rows(sps_context *ctx, const sps_csr *shape,
                             int64_t longest, sps_rows_fn make, void *data,
                             int width, const sps_options *opt,
                             sps_operator **op_p)
{
    return spsi_operator_rows(ctx, shape, longest, make, data, width, opt,
                              columns_of(ctx, opt, width), op_p);
}
