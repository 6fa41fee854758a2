/* SPDX-License-Identifier: BSD-3-Clause */
/* lobpcg_extend.c - clusters of eigenvalues that are wider than the block.
 *
 * Where all Ritz values of X lie close together and the tolerance is far away,
 * S is extended.  [X P W] would have to resolve the cluster by the gaps within
 * it; S holds it as a whole instead, and Rayleigh-Ritz resolves it. */
#include "lobpcg.h"

#include <math.h>

#define EXTENSION 2   /* least factor by which S must become longer */
#define SLOW 20       /* predicted steps to the tolerance that call for it */
#define CLUSTER 0.05  /* largest relative distance of the last Ritz value of X
                         from the last wanted one */

/* Returns whether the last Ritz value of X lies close to the last wanted one,
 * so that the eigenvectors of more values than X has columns mix. */
static bool clustered(const sps_eigen *e)
{
    int m = e->space.m, last = spsi_subspace_target(&e->space) - 1;
    double end = e->ritz.value[m - 1];

    return fabs(end - e->ritz.value[last]) < CLUSTER * fabs(end);
}

static sps_status enlarge(sps_eigen *e, lobpcg *l)
{
    int most = e->space.longest, s = SPS_LOBPCG_STACK * e->space.width;
    sps_status st;

    SPS_TRY(spsi_small_enlarge(&l->F, most, most));
    SPS_TRY(spsi_small_enlarge(&l->K, most, most));
    SPS_TRY(spsi_small_enlarge(&l->B, most, s));
    SPS_TRY(spsi_small_enlarge(&l->N, most, s));
    SPS_TRY(spsi_small_enlarge(&l->G, most, s));
    SPS_TRY(spsi_ritz_extend(&e->ritz));
    SPS_TRY(spsi_subspace_extend(&e->space, e->space.m + l->p));
fail:
    return st;
}

/* Without memory for an extension the search goes on as before; several
 * processes would have to agree on it and are left alone. */
sps_status spsi_lobpcg_extend(sps_eigen *e, lobpcg *l)
{
    double before = l->badness, left = spsi_ritz_badness(&e->ritz);
    const sps_subspace *s = &e->space;
    sps_status st;

    l->badness = left;
    if (s->AS->width == s->longest ||
        s->longest < EXTENSION * s->AS->width || e->ctx->opt.comm ||
        !isfinite(before) || !clustered(e) ||
        left * SPS_LOBPCG_CHECK <= SLOW * fmax(before - left, 0))
        return SPS_OK;
    st = enlarge(e, l);
    if (st == SPS_ENOMEM || st == SPS_EDEVMEM) return SPS_OK;
    e->search.event = "basis extended";
    return st;
}
