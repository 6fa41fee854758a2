/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_transform_shift.c - the choice of the shift of (A - sigma M)^-1, which
 * may differ from the sigma to which pairs are to be nearest.
 *
 * If A - sigma M has no factors, a shift close to sigma was chosen.  It may be
 * too far away: then pairs near the shift are found, and not those near sigma.
 * If sigma is an eigenvalue to the last digit, factors exist all the same, but
 * nu_0 is 1e16, and its rounding error eps nu_0 exceeds all other nu.  Ritz
 * values, and the distance of the wanted pairs, show both.
 *
 * The pairs of largest |nu| are wanted, at both ends of the spectrum of nu.  If
 * the block lies in the eigenspace of a multiple eigenvalue at one end, its
 * Ritz values do not show the other end: all columns but one are eigenvectors,
 * and the Ritz value of that one lies between the ends.  Its residual shows the
 * other end.  And if some wanted pairs lie on the other side of the shift, the
 * next one there must not be missed either. */
#include "eigen/eigen_transform.h"

#include <math.h>

#define NEAR 1e6         /* largest ratio of the first nu to the last wanted
                            one */
#define CHECK 5          /* iterations between two checks of that ratio */
#define MOVES 6          /* largest number of changes of the shift */
#define WAIT 10          /* iterations to wait for a pair that may be nearer */

/* Let rho be the first Ritz value after the wanted ones whose sign differs from
 * that of the last wanted one, nu.  Its vector may mix an eigenvector of larger
 * |nu| with some of nu about zero; then an eigenvalue lies about r^2 / |rho|
 * beyond rho, where r^2 = t->spread.  Returns whether |rho| + r^2 / |rho| >
 * |nu|, so that a nearer pair may be hidden.  Ritz values of one sign are in
 * order. */
static bool nearer_on_other_side(const sps_transform *t, const sps_ritz *r)
{
    int last = spsi_subspace_target(r->space) - 1, j = last + 1;
    double sign = copysign(1, r->value[last]), rho;

    while (j < r->space->m && sign * r->value[j] > 0) j++;
    if (j == r->space->m || r->resnorm[j] <= spsi_ritz_tolerance(r, j))
        return false;
    rho = fabs(r->value[j]);
    return rho + t->spread[j] / rho > fabs(r->value[last]);
}

/* Returns whether residuals show an end of the spectrum of nu that lies farther
 * out than the last wanted pair, while no Ritz value does.  With a spectrum
 * from low to high, (rho - low)(high - rho) is at least the square of the
 * residual of a Ritz value rho (Bhatia and Davis, Amer. Math. Monthly 107,
 * 2000); so if one end is known, the other lies at least that far out. */
static bool end_hidden(const sps_transform *t, const sps_ritz *r)
{
    double low = HUGE_VAL, high = -HUGE_VAL, above = 0, below = 0, noise;
    double last = fabs(r->value[spsi_subspace_target(r->space) - 1]);

    for (int j = 0; j < r->space->m; j++) {
        low = fmin(low, r->value[j]);
        high = fmax(high, r->value[j]);
    }
    noise = pow(1e-7 * fmax(-low, high), 2);   /* errors of inner solves */
    for (int j = 0; j < r->space->m; j++) {
        double rho = r->value[j], square = t->spread[j];

        if (!(square > noise)) continue;
        if (rho > low) above = fmax(above, rho + square / (rho - low));
        if (rho < high) below = fmax(below, square / (high - rho) - rho);
    }
    return (high < last && above > 1.001 * last) ||
           (-low < last && below > 1.001 * last);
}

bool spsi_transform_hides(const sps_transform *t, const sps_ritz *r)
{
    if (!t->inverted) return false;
    return end_hidden(t, r) ||
           (t->waited < WAIT && nearer_on_other_side(t, r));
}

/* Returns whether pairs nearer to sigma than the last wanted one, which has
 * distance d, may lie farther from the shift than all pairs of the block. */
static bool too_far(const sps_transform *t, const sps_ritz *r, double d)
{
    double away = fabs(t->shift - t->wanted->sigma), reach = 0;
    bool beyond = true; /* all lie beyond sigma as seen from the shift */

    for (int j = 0; j < r->space->m; j++) {
        double theta = spsi_transform_back(t, r->value[j]);

        reach = fmax(reach, fabs(theta - t->shift));
        if (!((theta > t->wanted->sigma) == (t->shift < t->wanted->sigma)))
            beyond = false;
    }
    return away > 1e-3 * d && away + d > reach && !beyond;
}

/* Returns the distance from sigma that the shift is to have, or 0 if the shift
 * stays where it is.  With d the distance of the last wanted pair from sigma:
 *
 *   1e-5 d                     if an eigenvalue is so near to the shift that
 *                              its nu leaves the others few digits (NEAR); or
 *                              if the shift is so far from sigma that other
 *                              pairs are found (*wrong)
 *   1e-8 100^(moves+1) scale   if solves fail, when d is not known. */
static double step_of_shift(const sps_transform *t, const sps_ritz *r,
                            const sps_search *search, bool *wrong)
{
    int last = spsi_subspace_target(r->space) - 1;
    double theta = spsi_transform_back(t, r->value[last]);
    double d = fabs(theta - t->wanted->sigma);
    bool check = search->iteration > 0 &&
                 (search->stop || search->iteration % CHECK == 0);
    bool near = t->largest > NEAR * fabs(r->value[last]);
    bool converged = spsi_ritz_converged(r);

    *wrong = false;
    if (t->failures > 1)
        return 1e-8 * pow(100, t->moves + 1) * spsi_transform_scale(t);
    if (!(check || converged) || !isfinite(d) || !(d > 0)) return 0;
    /* The order of pairs closer than the tolerance does not matter. */
    d = fmax(d, 1e3 * r->opt->rtol * fabs(theta));
    *wrong = too_far(t, r, d);
    return *wrong || (near && !converged) ? 1e-5 * d : 0;
}

sps_status spsi_transform_move(sps_transform *t, const sps_ritz *r,
                               sps_search *search, bool *moved)
{
    sps_context *ctx = t->space->pencil->ctx;
    sps_status st = SPS_OK;
    bool wrong;
    double step;

    *moved = false;
    if (!t->inverted || (search->stop && search->stop != SPS_STOP_STAGNATED))
        return SPS_OK;
    if (t->failures > 1 && t->moves == MOVES)
        spsi_note(ctx, "solves with A - sigma M fail, perhaps because sigma is "
                  "an eigenvalue: choose another sigma");
    /* The maximum is over all iterations, since the pair of the largest |nu|
     * may be locked. */
    t->largest = fmax(t->largest, fabs(r->value[0]));
    step = step_of_shift(t, r, search, &wrong);
    if (step == 0) return SPS_OK;
    if (t->moves == MOVES) {
        SPS_REQUIRE(ctx, !wrong || !spsi_ritz_converged(r), SPS_EUNFIT,
                    "A - sigma M could not be factored for sigma or shifts "
                    "close to it, and with %.17g instead, other pairs are the "
                    "nearest: choose another sigma", t->shift);
        return SPS_OK;
    }
    t->moves++;
    t->shift = t->wanted->sigma + step;
    t->failures = 0;
    t->largest = 0;
    search->stop = SPS_STOP_RUNNING;
    search->event = "sigma moved";
    spsi_transform_close(t);
    SPS_TRY(spsi_transform_open(t, search));
    *moved = true;
fail:
    return st;
}
