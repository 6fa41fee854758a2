/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_pole.c - the place of sigma in (A - sigma M)^-1, the pole, which need
 * not be the sigma that pairs are to be nearest to.
 *
 * Where A - sigma M has no factors a place beside it was taken; that may be too
 * far: pairs near the pole are then found, and not those near sigma.  Where
 * sigma is an eigenvalue to the last digit, factors exist all the same, nu_0 is
 * 1e16, and rounding eps nu_0 leaves nothing of the nu of all others.  Ritz
 * values tell both, and how far the pairs wanted reach.
 *
 * Both ends of nu are wanted, whichever is longer.  A block within a multiple
 * eigenvalue at one end hides the other: all its columns but one are
 * eigenvectors at once, and that one's Ritz value lies between the ends.  But
 * its residual tells of them.  And where some pairs of the other side are wanted
 * the next one there is not to be passed over either. */
#include "eigen.h"

#include <math.h>

#define NEAR 1e6         /* how many times as near as the last pair wanted the
                            first may be to the pole */
#define LOOK 5           /* iterations between two looks at that */
#define MOVES 6
#define HELD 10          /* iterations that a pair is waited for which may be
                            nearer */

double spsi_eigen_unit(const sps_eigen *e)
{
    return e->norm_A / (e->norm_M > 0 ? e->norm_M : 1);
}

double spsi_eigen_pole_scale(const sps_eigen *e)
{
    return e->opt.sigma != 0 ? fabs(e->opt.sigma) : 1e-3 * spsi_eigen_unit(e);
}

/* The first Ritz value behind those wanted that lies on the other side of the
 * pole than the last of these: an eigenvalue there may be nearer than that, about
 * r^2 / rho beyond rho if it is mixed with far ones, whose nu are about zero.
 * Those on the same side come in order. */
static bool other_side_open(const sps_eigen *e)
{
    int last = spsi_eigen_target(e) - 1, j = last + 1;
    double sign = copysign(1, e->ritz[last]), rho;

    while (j < e->m && sign * e->ritz[j] > 0) j++;
    if (j == e->m || e->resnorm[j] <= spsi_eigen_aim(e, j)) return false;
    rho = fabs(e->ritz[j]);
    return rho + e->spread[j] / rho > fabs(e->ritz[last]);
}

/* With a spectrum from low to high, (rho - low)(high - rho) is at least the
 * square of the residual of a Ritz value rho (Bhatia and Davis, Amer. Math.
 * Monthly 107, 2000).  So with one end known the other lies at least that far
 * out.  It must not lie farther than the last pair wanted if Ritz values do
 * not. */
static bool end_unseen(const sps_eigen *e)
{
    double low = HUGE_VAL, high = -HUGE_VAL, above = 0, below = 0, noise;
    double last = fabs(e->ritz[spsi_eigen_target(e) - 1]);

    for (int j = 0; j < e->m; j++) {
        low = fmin(low, e->ritz[j]);
        high = fmax(high, e->ritz[j]);
    }
    noise = pow(1e-7 * fmax(-low, high), 2);   /* of inner solves */
    for (int j = 0; j < e->m; j++) {
        double rho = e->ritz[j], r = e->spread[j];

        if (!(r > noise)) continue;
        if (rho > low) above = fmax(above, rho + r / (rho - low));
        if (rho < high) below = fmax(below, r / (high - rho) - rho);
    }
    return (high < last && above > 1.001 * last) ||
           (-low < last && below > 1.001 * last);
}

bool spsi_eigen_hides(const sps_eigen *e)
{
    if (!e->inverted) return false;
    return end_unseen(e) || (e->held < HELD && other_side_open(e));
}

/* Whether all wanted pairs of the block have converged. */
static bool reached(const sps_eigen *e)
{
    for (int j = 0; j < spsi_eigen_target(e); j++)
        if (!(e->resnorm[j] <= spsi_eigen_aim(e, j))) return false;
    return true;
}

static double theta_of(const sps_eigen *e, int j)
{
    return e->pole + e->shift_unit / e->ritz[j];
}

/* Whether pairs nearer to sigma than the last one wanted, d away, may lie
 * farther from the pole than all that the block holds. */
static bool too_far(const sps_eigen *e, double d)
{
    double away = fabs(e->pole - e->opt.sigma), reach = 0;
    bool behind = true;    /* all, as seen from the pole, behind sigma */

    for (int j = 0; j < e->m; j++) {
        double theta = theta_of(e, j);

        reach = fmax(reach, fabs(theta - e->pole));
        if (!((theta > e->opt.sigma) == (e->pole < e->opt.sigma)))
            behind = false;
    }
    return away > 1e-3 * d && away + d > reach && !behind;
}

/* One eigenvalue at a distance of 1e-16 from the pole makes nu of 1e16, and
 * leaves no digits to the other pairs wanted; a pole far from sigma finds what
 * is near to itself; or solves fail.  It is to go 1e-5 of the distance of the
 * last pair wanted away from sigma, or where that is not known, the further the
 * more often.  0: it may stay. */
static double step_of_pole(const sps_eigen *e, bool *wrong)
{
    int last = spsi_eigen_target(e) - 1;
    double theta = theta_of(e, last), d = fabs(theta - e->opt.sigma);
    bool look = e->iteration > 0 && (e->stop || e->iteration % LOOK == 0);
    bool near = e->most > NEAR * fabs(e->ritz[last]);
    bool end = reached(e);

    *wrong = false;
    if (e->shift_failures > 1)
        return 1e-8 * pow(100, e->pole_moves + 1) * spsi_eigen_pole_scale(e);
    if (!(look || end) || !isfinite(d) || !(d > 0)) return 0;
    /* Nobody asks for the order of what the tolerance does not tell apart. */
    d = fmax(d, 1e3 * e->opt.rtol * fabs(theta));
    *wrong = too_far(e, d);
    return *wrong || (near && !end) ? 1e-5 * d : 0;
}

sps_status spsi_eigen_move_pole(sps_eigen *e, bool *moved)
{
    sps_status st = SPS_OK;
    bool wrong;
    double step;

    *moved = false;
    if (!e->inverted || (e->stop && e->stop != SPS_STOP_STAGNATED))
        return SPS_OK;
    if (e->shift_failures > 1 && e->pole_moves == MOVES)
        spsi_note(e->ctx, "solves with A - sigma M fail: move sigma, or it is "
                  "an eigenvalue");
    e->most = fmax(e->most, fabs(e->ritz[0]));   /* locked ones too */
    step = step_of_pole(e, &wrong);
    if (step == 0) return SPS_OK;
    if (e->pole_moves == MOVES) {
        SPS_REQUIRE(e->ctx, !wrong || !reached(e), SPS_EUNFIT,
                    "A - sigma M has no factors near sigma: with %.17g in its "
                    "place other pairs are found; move sigma", e->pole);
        return SPS_OK;
    }
    e->pole_moves++;
    e->pole = e->opt.sigma + step;
    e->shift_failures = 0;
    e->most = 0;
    e->stop = SPS_STOP_RUNNING;
    e->event = "sigma moved";
    spsi_eigen_unshift(e);
    SPS_TRY(spsi_eigen_shift(e));
    *moved = true;
fail:
    return st;
}
