/* SPDX-License-Identifier: BSD-3-Clause */
/* auto_precond.c - preconditioner auto.
 *
 * For conjugate gradients chebyshev is tried first, and kept if it predicts
 * that its products are cheaper than the block passes of the iterations that
 * they save.  Otherwise it is block_jacobi if the pattern consists of full b x
 * b blocks (several unknowns at each node) and A is real, else jacobi, or none
 * for a callback. */
#include "driver/precond.h"

#define FULL 0.99     /* smallest fraction of entries in full blocks with which
                         block_jacobi is chosen */

static const char *by_pattern(const sps_operator *A)
{
    const bool complex = A->props & SPS_INTERLEAVED;

    if (A->ranks) {
        spsi_note(A->ctx, "preconditioner auto: jacobi, since the matrix is "
                  "spread over processes");
        return "jacobi";
    }
    if (A->diagonal) {
        spsi_note(A->ctx, "preconditioner auto: jacobi, since of streamed "
                  "rows the diagonal alone is kept");
        return "jacobi";
    }
    if (!A->A) {
        spsi_note(A->ctx, "preconditioner auto: none, since the matrix is a "
                  "callback");
        return "none";
    }
    if (!complex && A->f.block > 1 && A->f.block_fill >= FULL) {
        spsi_note(A->ctx, "preconditioner auto: block_jacobi, since %.0f %% "
                  "of the entries lie in full %d x %d blocks",
                  100 * A->f.block_fill, A->f.block, A->f.block);
        return "block_jacobi";
    }
    if (!complex && A->f.block > 1)
        spsi_note(A->ctx, "preconditioner auto: jacobi, since only %.1f %% of "
                  "the entries lie in full %d x %d blocks",
                  100 * A->f.block_fill, A->f.block, A->f.block);
    else
        spsi_note(A->ctx, "preconditioner auto: jacobi, since %s", complex
                  ? "the matrix is complex"
                  : "the pattern shows no blocks of unknowns");
    return "jacobi";
}

static sps_status choose(const sps_operator *A, int width,
                         const sps_options *opt, bool conjugate, int passes,
                         sps_precond **M_p)
{
    sps_status st = SPS_EUNFIT;

    if (conjugate && (A->A || A->ranks || A->diagonal))
        st = spsi_precond_named(A, width, "chebyshev", opt, passes, M_p);
    if (st == SPS_EUNFIT || st == SPS_ENOMEM || st == SPS_EDEVMEM)
        st = spsi_precond_named(A, width, by_pattern(A), opt, passes, M_p);
    return st;
}

/* Of what takes most. */
static int64_t room(int width)
{
    return spsi_precond_type("chebyshev")->room(width);
}

SPS_DEFINE(sps_precond_type, spsi_precond_auto_precond) = {
    .name = "auto",
    .choose = choose,
    .room = room,
};
