/* SPDX-License-Identifier: BSD-3-Clause */
/* chebyshev_filter.c - subspace iteration with a Chebyshev polynomial of A
 * (Zhou and Saad, SIAM J. Matrix Anal. Appl. 29(3), 2007; Zhou, Saad, Tiago and
 * Chelikowsky, J. Comput. Phys. 219, 2006, for a block).  A step computes
 *
 *     X = orth(p(A) X), followed by Rayleigh-Ritz.
 *
 * The polynomial p of degree d is small on [a, b], where a is the last Ritz
 * value of the block and b an upper bound of the spectrum, and grows fast below
 * a; it is scaled to 1 at the first Ritz value a_0.  With c and h the middle
 * and half-width of [a, b], s_1 = h / (a_0 - c):
 *
 *     y_1 = (s_1 / h) (op - c) x,  s' = 1 / (2 / s_1 - s),
 *     y_(i+1) = (2 s' / h) (op - c) y_i - s s' y_(i-1),  s = s'.
 *
 * The operator op is A for the smallest pairs, -A for the largest pairs, and
 * the folded operator (A - sigma)^2, two products with A, for those nearest to
 * sigma (Pieper et al., J. Comput. Phys. 325, 2016).  Ritz values are those of
 * A, which distinguish sigma + d from sigma - d.  Where the block contains the
 * pairs up to a distance a of sigma and the spectrum reaches to a distance b,
 * each digit takes about b / a products.
 *
 * The method uses only products with A, no preconditioner, and orthogonalises
 * once in d products.  It does not support a mass matrix M, because each
 * product would need the inverse of M.
 *
 * Cost of a step, for n x m blocks: d products with 3 passes each, and some 40
 * passes for the rest. */
#include "eigen/eigen.h"

#include <float.h>
#include <math.h>

#include "core/timer.h"

#define GROWTH 1e6          /* wanted ratio of p at the first Ritz value to the
                               largest |p| on [a, b] */
#define DEGREE 60           /* largest degree of p */
#define FOLDED_GROWTH 1e3   /* GROWTH and DEGREE for the folded operator */
#define FOLDED_DEGREE 1000

struct filter {
    sps_subspace *space;
    const sps_selection *wanted;
    int degree;           /* largest degree of p */
    bool folds;           /* op is the folded operator */
    double lower, upper;  /* bounds of the spectrum of op */
    double *w;            /* space->width elements: Ritz values */
    sps_small *T;         /* scratch of the Lanczos process */
    sps_block *Z;         /* (A - sigma) y of the folded operator */
};

static sps_status setup(sps_eigen *e, void *method)
{
    struct filter *f = method;
    sps_status st = SPS_OK;

    SPS_REQUIRE(e->ctx, !e->pencil.M, SPS_EUNFIT,
                "chebyshev_filter does not support a mass matrix: use lobpcg");
    f->space = &e->space;
    f->wanted = &e->wanted;
    f->folds = e->wanted.nearest;
    /* A value of option degree up to 4 is meant for preconditioners and is too
     * low for a filter; it is ignored. */
    f->degree = e->opt.degree > 4 ? e->opt.degree
                                  : f->folds ? FOLDED_DEGREE : DEGREE;
    SPS_TRY(SPS_OWN(&e->own, e->space.width, &f->w));
    SPS_TRY(spsi_own_small(&e->own, SPS_EIGEN_LANCZOS, SPS_EIGEN_LANCZOS,
                           &f->T));
    if (f->folds)
        SPS_TRY(spsi_own_block(&e->own, e->pencil.n, e->space.width, &f->Z));
fail:
    return st;
}

/* Returns the eigenvalue of op that belongs to the eigenvalue theta of A. */
static double value_of(const struct filter *f, double theta)
{
    return f->folds ? pow(theta - f->wanted->sigma, 2)
                    : f->wanted->sign * theta;
}

static sps_status start(sps_eigen *e, void *method)
{
    struct filter *f = method;
    sps_status st = SPS_OK;
    double low, high, past;

    if (e->search.iteration == 0) {
        SPS_TRY(spsi_subspace_bounds(&e->space, e->wanted.sign, f->T, &low,
                                     &high, &past));
        f->upper = f->folds ? fmax(value_of(f, low - past),
                                   value_of(f, high + past)) : high + past;
        f->lower = f->folds ? 0 : low - past;
    }
    SPS_TRY(spsi_eigen_begin(e, f->w));
fail:
    return st;
}

/* Z = (A - sigma) X. */
static sps_status fold(const struct filter *f, const sps_block *X)
{
    sps_epilogue shift = { .delta = -f->wanted->sigma };
    sps_pencil *p = f->space->pencil;
    sps_deflation *d = f->space->deflation;
    sps_status st = SPS_OK;

    spsi_block_narrow(f->Z, X->k);
    SPS_TRY(spsi_operator_apply_fused(p->A, false, 1.0, X, 0.0, f->Z, &shift,
                                      NULL));
    if (d->constraints) SPS_TRY(spsi_deflation_project(d, f->Z));
    p->applies_A++;
fail:
    return st;
}

/* Y = alpha op X + beta Y + delta X.  With constraints op is restricted to
 * their orthogonal complement. */
static sps_status apply(const struct filter *f, double alpha,
                        const sps_block *X, double beta, sps_block *Y,
                        double delta)
{
    sps_epilogue last = { .delta = delta };
    sps_pencil *p = f->space->pencil;
    sps_deflation *d = f->space->deflation;
    const sps_block *from = X;
    sps_status st = SPS_OK;

    if (f->folds) {
        SPS_TRY(fold(f, X));
        from = f->Z;
        last = (sps_epilogue){ .W = X, .gamma = delta,
                               .delta = -alpha * f->wanted->sigma };
    }
    SPS_TRY(spsi_operator_apply_fused(p->A, false, f->wanted->sign * alpha,
                                      from, beta, Y, &last, NULL));
    if (d->constraints) SPS_TRY(spsi_deflation_project(d, Y));
    p->applies_A++;
fail:
    return st;
}

/* Returns the degree at which p grows by GROWTH from the interval to the first
 * Ritz value, which is `first` half-widths from the centre; with a higher
 * degree all columns would become parallel to the first eigenvector.  Folded
 * spectra need high degrees for little growth (FOLDED_GROWTH).  Rounding leaves
 * components of locked pairs, which are at most `end` half-widths from the
 * centre; p must not amplify them above the other components. */
static int degree_of(const struct filter *f, double first, double end)
{
    double aim = f->folds ? FOLDED_GROWTH : GROWTH;
    double most = log(2 * aim) / acosh(first);

    if (end > first)
        most = fmin(most, log(2 * aim / DBL_EPSILON) / acosh(end));
    return most >= f->degree ? f->degree : most < 1 ? 1 : (int)most;
}

/* X = p(op) X for the interval with centre c and half-width h.  The iterates
 * alternate between s->R and s->work, whose rows are contiguous. */
static sps_status filter(const struct filter *f, double first, double c,
                         double h)
{
    sps_status st = SPS_OK;
    sps_subspace *s = f->space;
    sps_block *now = s->R, *before = s->work;
    double s1 = h / (first - c), si = s1, next;
    int degree = degree_of(f, (c - first) / h,
                           s->deflation->locked ? (c - f->lower) / h : 0);

    spsi_block_narrow(now, s->m);
    spsi_block_narrow(before, s->m);
    SPS_TRY(spsi_copy(&s->X, before));
    SPS_TRY(apply(f, s1 / h, before, 0.0, now, -c * s1 / h));
    for (int i = 1; i < degree; i++) {
        sps_block *swap = before;

        next = 1 / (2 / s1 - si);
        SPS_TRY(apply(f, 2 * next / h, now, -si * next, before,
                      -2 * c * next / h));
        before = now;
        now = swap;
        si = next;
    }
    SPS_TRY(spsi_copy(now, &s->X));
fail:
    return st;
}

/* Returns a = max(last, inner + apart), where `last` is the last Ritz value and
 * `inner` the last one that is not of a guard column.  The distance `apart` is
 * needed where a multiple eigenvalue fills the block to its end: p with a =
 * last would be as small at that eigenvalue as on [a, b]. */
static double edge(const struct filter *f, const sps_ritz *r, double first)
{
    int m = f->space->m, kept = m - 1 - f->space->guard;
    double last = value_of(f, r->value[m - 1]);
    double inner = value_of(f, r->value[kept > 0 ? kept : 0]);
    double apart = (f->folds ? 1e-8 : 1e-3) * (f->upper - first);

    if (inner + apart < 0.5 * (inner + f->upper)) inner += apart;
    return fmax(last, inner);
}

static sps_status step(sps_eigen *e, void *method)
{
    struct filter *f = method;
    sps_status st = SPS_OK;
    double first = value_of(f, e->ritz.value[0]);
    double last = edge(f, &e->ritz, first);

    if (!(f->upper > last)) {
        e->search.stop = SPS_STOP_STAGNATED;
        return SPS_OK;
    }
    spsi_phase_begin(e->ctx, SPS_PHASE_SPMM);
    st = filter(f, first, 0.5 * (f->upper + last), 0.5 * (f->upper - last));
    spsi_phase_end(e->ctx, SPS_PHASE_SPMM);
    e->space.directions = e->space.m;
    if (st == SPS_OK) st = spsi_eigen_begin(e, f->w);
    return st;
}

SPS_DEFINE(sps_eigen_type, spsi_eigen_chebyshev_filter) = {
    .name = "chebyshev_filter",
    .size = sizeof(struct filter),
    .stack = 1,
    .folds = true,
    .setup = setup,
    .start = start,
    .step = step,
};
