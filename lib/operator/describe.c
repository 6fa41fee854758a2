/* SPDX-License-Identifier: BSD-3-Clause */
/* describe.c - an operator described as text: its kernel, the features of its
 * matrix, where a matrix is stored that does not fit on the GPU, and the
 * predicted times of the kernels. */
#include <stdio.h>

#include "operator/operator.h"
#include "operator/operator_ranks.h"

const char *sps_operator_kernel(const sps_operator *op)
{
    if (!op) return "";
    if (op->ranks) return sps_operator_kernel(op->ranks->interior);
    return op->block ? op->block->kernel->name : "callback";
}

/* Prints the features of the matrix. */
static size_t print_features(const sps_features *f, char *text, size_t size)
{
    int n = snprintf(text, size,
                     "rows of %lld to %lld entries, mean %.1f, deviation %.1f"
                     "; %lld empty\nbandwidth %lld; distinct columns over "
                     "entries: %.2f in 8 rows, %.2f in 64\n",
                     (long long)f->min_length, (long long)f->max_length,
                     f->mean_length, f->deviation, (long long)f->empty_rows,
                     (long long)f->bandwidth, f->distinct8, f->distinct64);
    size_t length = n > 0 ? (size_t)n : 0;
    const bool room = length < size;

    if (f->block < 2) return length;
    n = snprintf(room ? text + length : NULL, room ? size - length : 0,
                 "%.0f %% of the entries lie in full %d x %d blocks\n",
                 100 * f->block_fill, f->block, f->block);
    return length + (n > 0 ? (size_t)n : 0);
}

/* Prints where a matrix in host memory is stored, and the predicted time of a
 * product. */
static size_t print_far(const sps_operator *op, char *text, size_t size)
{
    const sps_plan *plan = op->block;
    const sps_bids *bids = &op->choice.bids[0];
    double seconds = (double)plan->streamed / op->ctx->machine.link;
    int n;

    if (!op->local.far || plan->resident + plan->streamed == 0) return 0;
    for (int i = 0; i < bids->count; i++)
        if (bids->bid[i].chosen) seconds = bids->bid[i].predicted;
    n = snprintf(text, size, "in host memory: %zu bytes stay on the GPU, %zu "
                 "are copied there in each product; predicted %.3g s\n",
                 plan->resident, plan->streamed, seconds);
    return n > 0 ? (size_t)n : 0;
}

size_t sps_operator_describe(const sps_operator *op, char *text, size_t size)
{
    const sps_bids *bids[3];
    size_t length;

    if (size > 0) text[0] = '\0';
    if (!op) return 0;
    if (op->callback.apply && op->block) return print_far(op, text, size);
    if (op->callback.apply)
        return (size_t)snprintf(text, size, "callback of the caller\n");
    if (op->ranks)
        return sps_operator_describe(op->ranks->interior, text, size);
    bids[0] = &op->choice.bids[0];
    bids[1] = &op->choice.bids[1];
    bids[2] = &op->cache->sddmm_bids;
    length = print_features(&op->f, text, size);
    length += print_far(op, length < size ? text + length : NULL,
                        length < size ? size - length : 0);
    for (int i = 0; i < 3; i++) {
        const bool room = length < size;

        if (i > 0 && bids[i]->count == 0) continue;
        length += spsi_bids_print(bids[i], room ? text + length : NULL,
                                  room ? size - length : 0);
    }
    return length;
}
