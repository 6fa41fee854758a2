/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_columns.c - which columns of X stand for what: pairs wanted, guards,
 * locked ones (hard locking moves them to `fixed`), and the best X seen of
 * those still wanted, kept in the columns of fixed behind the locked ones. */
#include "eigen.h"

#include <math.h>

int spsi_eigen_wanted(const sps_eigen *e)
{
    int left = e->count - e->locked;

    return left < e->m ? left : e->m;
}

/* Columns of X that are no guards. */
static int unguarded(const sps_eigen *e)
{
    int64_t all = e->n - e->given - e->locked - (e->means ? e->nulls : 0);
    int most = e->m == all ? e->m : e->m - e->guard;

    return most < 1 ? 1 : most;
}

/* How many leading columns are to converge before they are locked, and how
 * many may be: guards that have converged too stay, and guard the rest. */
int spsi_eigen_target(const sps_eigen *e)
{
    int most = unguarded(e), left = spsi_eigen_wanted(e);

    return left < most ? left : most;
}

/* Below the limit; of a callback so far that rounding can be added. */
double spsi_eigen_aim(const sps_eigen *e, int j)
{
    double limit = spsi_eigen_limit(e, e->theta[j], e->xnorm[j], e->mnorm[j]);
    double unseen = spsi_eigen_unseen(e, e->theta[j], e->xnorm[j]);

    if (spsi_eigen_entries(e) || unseen > 0.5 * limit) unseen = 0;
    return SPS_SOLVER_AIM * (limit - unseen);
}

void spsi_eigen_take_columns(sps_eigen *e, int m)
{
    e->m = m;
    spsi_block_view(e->S, 0, m, &e->X);
    spsi_block_view(e->AS, 0, m, &e->AX);
    spsi_block_view(e->MS, 0, m, &e->MX);
}

void spsi_eigen_set_locked(sps_eigen *e, int locked)
{
    e->locked = locked;
    spsi_block_narrow(e->fixed, e->given + locked);
    spsi_block_narrow(e->dual, e->given + locked);
}

/* X(:, 0 .. m-1): guesses of the caller, those that are there, else random.
 * Guards stay random: eigenvectors of other pairs as a guess would be all that
 * is ever seen. */
sps_status spsi_eigen_guess(sps_eigen *e, const sps_block *guess)
{
    sps_status st = SPS_OK;
    int most = unguarded(e), k = guess->k < most ? guess->k : most;
    sps_block from, to;

    SPS_TRY(spsi_eigen_draw(e, &e->X, e->ctx->opt.seed));
    SPS_TRY(spsi_norms(guess, e->scratch));
    for (int j = 0; j < k; j++) {
        if (!(e->scratch[j] > 0) || !isfinite(e->scratch[j])) continue;
        spsi_block_view(guess, j, 1, &from);
        spsi_block_view(&e->X, j, 1, &to);
        SPS_TRY(spsi_copy(&from, &to));
    }
fail:
    return st;
}

/* Leading columns of X go to fixed; the rest move up, random ones follow. */
sps_status spsi_eigen_lock(sps_eigen *e, int leading)
{
    sps_status st = SPS_OK;
    int k = leading < spsi_eigen_target(e) ? leading : spsi_eigen_target(e);
    int64_t left = e->n - e->given - e->locked - k -
                   (e->means ? e->nulls : 0);
    int rest = e->m - k, m = e->width < left ? e->width : (int)left;
    sps_block from, to;

    spsi_block_view(&e->X, 0, k, &from);
    spsi_block_view(e->fixed, e->given + e->locked, k, &to);
    SPS_TRY(spsi_copy(&from, &to));
    if (e->M) {
        spsi_block_view(&e->MX, 0, k, &from);
        spsi_block_view(e->dual, e->given + e->locked, k, &to);
        SPS_TRY(spsi_copy(&from, &to));
    }
    spsi_eigen_set_locked(e, e->locked + k);
    if (e->locked == e->count) return SPS_OK;
    spsi_block_narrow(e->room, rest);
    spsi_block_view(&e->X, k, rest, &from);
    SPS_TRY(spsi_copy(&from, e->room));
    spsi_eigen_take_columns(e, m);
    if (rest > m) rest = m;
    spsi_block_narrow(e->room, rest);
    spsi_block_view(&e->X, 0, rest, &to);
    SPS_TRY(spsi_copy(e->room, &to));
    spsi_block_view(&e->X, rest, m - rest, &to);
    SPS_TRY(spsi_eigen_draw(e, &to, e->ctx->opt.seed + (uint64_t)e->locked));
fail:
    return st;
}

/* How good X is as a whole: the wanted residuals in units of their limits, on
 * a logarithmic scale so that each counts. */
double spsi_eigen_badness(const sps_eigen *e)
{
    double sum = 0;

    for (int j = 0; j < spsi_eigen_wanted(e); j++) {
        double limit = spsi_eigen_aim(e, j);

        if (!isfinite(e->resnorm[j])) return HUGE_VAL;
        if (e->resnorm[j] > limit)
            sum += limit > 0 ? log(e->resnorm[j] / limit) : 1e3;
    }
    return sum;
}

/* Keeps X where it is better than what was kept since the last locking; behind
 * a shift (A - sigma M)^-1 M X, which residuals speak of. */
sps_status spsi_eigen_snapshot(sps_eigen *e, double *best)
{
    sps_status st = SPS_OK;
    double now = spsi_eigen_badness(e);
    int k = spsi_eigen_wanted(e);
    sps_block from, to;

    if (!(now < *best)) return SPS_OK;
    *best = now;
    spsi_block_view(e->inverted ? &e->AX : &e->X, 0, k, &from);
    spsi_block_view(e->fixed, e->given + e->locked, k, &to);
    SPS_TRY(spsi_copy(&from, &to));
fail:
    return st;
}

sps_status spsi_eigen_restore(sps_eigen *e)
{
    sps_status st = SPS_OK;
    int k = spsi_eigen_wanted(e);
    sps_block from, to;

    spsi_block_view(e->fixed, e->given + e->locked, k, &from);
    spsi_block_view(&e->X, 0, k, &to);
    SPS_TRY(spsi_copy(&from, &to));
fail:
    return st;
}

/* X with the converged ones of the wanted first; MX too. */
sps_status spsi_eigen_converged_first(sps_eigen *e)
{
    sps_block *block[2] = { &e->X, &e->MX };
    sps_status st = SPS_OK;
    int k = 0, wanted_now = spsi_eigen_target(e);

    for (int pass = 0; pass < 2; pass++)
        for (int j = 0; j < e->m; j++)
            if ((j < wanted_now && e->done[j]) == !pass) e->order[k++] = j;
    spsi_block_narrow(e->room, e->m);
    for (int i = 0; i < (e->M ? 2 : 1); i++) {
        SPS_TRY(spsi_gather(block[i], e->order, e->room));
        SPS_TRY(spsi_copy(e->room, block[i]));
    }
fail:
    return st;
}

/* Fewer columns than pairs were at work when it ended: random ones make up
 * the number, so that what is handed out has full rank. */
sps_status spsi_eigen_complete(sps_eigen *e)
{
    sps_status st = SPS_OK;
    int have = e->locked + spsi_eigen_wanted(e);
    sps_block none, W, MW;

    if (e->locked == e->count) return SPS_OK;
    spsi_block_view(e->fixed, 0, 0, &none);
    for (int from = e->locked; from < e->count; from += W.k) {
        int k = (from < have ? have : e->count) - from;
        sps_stop stop = e->stop;

        if (k > e->width) k = e->width;
        spsi_block_view(e->fixed, e->given + from, k, &W);
        spsi_block_view(e->dual, e->given + from, k, &MW);
        if (from >= have) SPS_TRY(sps_block_random(
                &W, e->ctx->opt.seed + 7 + (uint64_t)from));
        e->stop = SPS_STOP_RUNNING;
        SPS_TRY(spsi_eigen_orth(e, &none, &none, &W, &MW));
        e->stop = stop;
        if (W.k < k) break;   /* no pair of numbers can be made of it */
        spsi_eigen_set_locked(e, from + W.k);
    }
fail:
    return st;
}
