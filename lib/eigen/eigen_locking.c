/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_locking.c - the roles of the columns: wanted pairs and guard columns in
 * X; converged pairs, which hard locking moves to `fixed`; and after these,
 * also in `fixed`, the best iterates so far of the pairs still wanted. */
#include "eigen/eigen_subspace.h"

int spsi_subspace_wanted(const sps_subspace *s)
{
    int left = s->deflation->pairs - s->deflation->locked;

    return left < s->m ? left : s->m;
}

int spsi_subspace_unguarded(const sps_subspace *s)
{
    int64_t all =
        spsi_deflation_complement(s->deflation) - s->deflation->locked;
    int most = s->m == all ? s->m : s->m - s->guard;

    return most < 1 ? 1 : most;
}

/* Guard columns are not locked, even if they have converged: they remain guards
 * of the other columns. */
int spsi_subspace_target(const sps_subspace *s)
{
    int most = spsi_subspace_unguarded(s), left = spsi_subspace_wanted(s);

    return left < most ? left : most;
}

/* Moves the leading k columns of X and M X to the locked pairs. */
static sps_status move_to_fixed(sps_subspace *s, int k)
{
    sps_deflation *d = s->deflation;
    sps_status st = SPS_OK;
    sps_block from, to, dual;

    spsi_deflation_pairs(d, d->locked, k, &to, &dual);
    spsi_block_view(&s->X, 0, k, &from);
    SPS_TRY(spsi_copy(&from, &to));
    if (s->pencil->M) {
        spsi_block_view(&s->MX, 0, k, &from);
        SPS_TRY(spsi_copy(&from, &dual));
    }
    spsi_deflation_set_locked(d, d->locked + k);
fail:
    return st;
}

sps_status spsi_subspace_lock(sps_subspace *s, int leading, sps_block *fresh)
{
    sps_deflation *d = s->deflation;
    sps_status st = SPS_OK;
    int target = spsi_subspace_target(s);
    int k = leading < target ? leading : target;
    int64_t left = spsi_deflation_complement(d) - d->locked - k;
    int rest = s->m - k, m = s->width < left ? s->width : (int)left;
    sps_block from, to;

    spsi_block_view(&s->X, 0, 0, fresh);
    SPS_TRY(move_to_fixed(s, k));
    if (d->locked == d->pairs) return SPS_OK;
    spsi_block_narrow(s->work, rest);
    spsi_block_view(&s->X, k, rest, &from);
    SPS_TRY(spsi_copy(&from, s->work));
    spsi_subspace_set_columns(s, m);
    if (rest > m) rest = m;
    spsi_block_narrow(s->work, rest);
    spsi_block_view(&s->X, 0, rest, &to);
    SPS_TRY(spsi_copy(s->work, &to));
    spsi_block_view(&s->X, rest, m - rest, fresh);
fail:
    return st;
}

sps_status spsi_subspace_keep(sps_subspace *s, const sps_block *X)
{
    int k = spsi_subspace_wanted(s);
    sps_block from, to;

    spsi_block_view(X, 0, k, &from);
    spsi_deflation_pairs(s->deflation, s->deflation->locked, k, &to, NULL);
    return spsi_copy(&from, &to);
}

sps_status spsi_subspace_restore(sps_subspace *s)
{
    int k = spsi_subspace_wanted(s);
    sps_block from, to;

    spsi_deflation_pairs(s->deflation, s->deflation->locked, k, &from, NULL);
    spsi_block_view(&s->X, 0, k, &to);
    return spsi_copy(&from, &to);
}

/* Random columns are added because the block may have fewer columns than pairs
 * were requested; all are orthonormalised, since the block that is returned
 * must have full rank. */
sps_status spsi_subspace_complete(sps_subspace *s)
{
    sps_status st = SPS_OK;
    sps_deflation *d = s->deflation;
    int have = d->locked + spsi_subspace_wanted(s);
    sps_block none, W, MW;

    if (d->locked == d->pairs) return SPS_OK;
    spsi_block_view(d->fixed, 0, 0, &none);
    for (int from = d->locked; from < d->pairs; from += W.k) {
        int k = (from < have ? have : d->pairs) - from;
        sps_stop stop = SPS_STOP_RUNNING;

        if (k > s->width) k = s->width;
        spsi_deflation_pairs(d, from, k, &W, &MW);
        if (from >= have)
            SPS_TRY(sps_block_random(
                &W, s->pencil->ctx->opt.seed + 7 + (uint64_t)from));
        SPS_TRY(spsi_subspace_orth(s, s->pencil->M, &none, &none, &W, &MW,
                                   &stop));
        if (W.k < k) break;   /* not finite: verification reports it */
        spsi_deflation_set_locked(d, from + W.k);
    }
fail:
    return st;
}
