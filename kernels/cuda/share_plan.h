/* SPDX-License-Identifier: BSD-3-Clause */
/* share_plan.h - shares of entries (kernels/formats/shares.h) in device memory,
 * dealt out there, word for word as the host deals them.  A walk over the
 * offsets by the host would cost 20 to 100 of the products that it serves. */
#ifndef SPS_CUDA_SHARE_PLAN_H
#define SPS_CUDA_SHARE_PLAN_H

#include "kernel.h"
#include "kernels/formats/shares.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SPS_SHARE_SIZES 3 /* that are counted at once */

typedef struct sps_share_plan {
    sps_plan super;
    int lanes, pairs, strips;  /* how a width is cut: L lanes with C pairs */
    int64_t ld;                /* of parts: whole strips of the plan's width */
    sps_shares shares;         /* arrays on the device, as all that follow */
    double *part;
    unsigned *arrived;         /* for each span and strip; 0 between runs */
    char *memory;              /* all of them */
    size_t bytes;
} sps_share_plan;

/* How many of what there would be; s[n].size and a team common to all, a power
 * of two, are given.  Waits for the numbers; what the fill needs is left in the
 * scratch of the context. */
sps_status spsi_cuda_shares_tally(sps_context *ctx, const sps_csr_local *A,
                                  int sizes, sps_shares *s);
/* The arrays of s, which the last tally counted as number n, nothing having
 * used the scratch since; s->share is zero on entry.  Does not wait. */
sps_status spsi_cuda_shares_fill(sps_context *ctx, const sps_csr_local *A,
                                 int n, const sps_shares *s);

#ifdef __cplusplus
}
#endif
#endif
