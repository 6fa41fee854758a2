/* SPDX-License-Identifier: BSD-3-Clause */
/* share_plan.h - shares of entries (kernels/formats/shares.h) in device memory,
 * built there, with the same result as on the host.  A loop over the offsets on
 * the host would cost as much as 20 to 100 of the products that use it. */
#ifndef SPS_CUDA_SHARE_PLAN_H
#define SPS_CUDA_SHARE_PLAN_H

#include "plan/kernel.h"
#include "formats/shares.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SPS_SHARE_SIZES 3 /* largest number of sizes counted at once */

typedef struct sps_share_plan {
    sps_plan super;
    int lanes, pairs, slices;  /* how the columns of X are divided: into
                                  `slices` slices, each of `pairs` pairs of
                                  columns for each of `lanes` lanes */
    int64_t ld;                /* leading dimension of part: whole slices of the
                                  plan's width */
    sps_shares shares;         /* this and the following arrays are in device
                                  memory */
    char *part;                /* partial sums of the parts, in the blocks'
                                  type, ld elements apart */
    unsigned *arrived;         /* counters of arrived thread blocks, one for
                                  each span and slice; 0 between runs */
} sps_share_plan;

/* Counts the shares, spans, parts and rows for several share sizes.  The caller
 * sets s[n].size and s[n].team, the same power of two for all n.  Synchronises;
 * the scratch memory of the context keeps data for spsi_cuda_shares_fill. */
sps_status spsi_cuda_shares_tally(sps_context *ctx, const sps_csr_local *A,
                                  int sizes, sps_shares *s);
/* Fills the arrays of s, number n of the last tally, if the scratch memory has
 * not been used since; s->share must be zeroed.  Does not synchronise. */
sps_status spsi_cuda_shares_fill(sps_context *ctx, const sps_csr_local *A,
                                 int n, const sps_shares *s);

#ifdef __cplusplus
}
#endif
#endif
