/* SPDX-License-Identifier: BSD-3-Clause */
/* chebyshev_filter.c - subspace iteration with a Chebyshev polynomial of A
 * (Zhou and Saad, SIAM J. Matrix Anal. Appl. 29(3), 2007; Zhou, Saad, Tiago
 * and Chelikowsky, J. Comput. Phys. 219, 2006, for a block).
 *
 *     X = orth(p(A) X),  Rayleigh-Ritz,
 *
 * p of degree d is small on [a, b], a the last Ritz value of the block, b above
 * the spectrum, and grows fast below a; it is scaled to 1 at the first Ritz
 * value.  With c, h the middle and half-width of [a, b], s_1 = h / (a_0 - c):
 *
 *     y_1 = (s_1 / h) (op - c) x,  s' = 1 / (2 / s_1 - s),
 *     y_(i+1) = (2 s' / h) (op - c) y_i - s s' y_(i-1),  s = s'.
 *
 * The pairs nearest to sigma are the lowest of (A - sigma)^2, two products with
 * A (Pieper et al., J. Comput. Phys. 325, 2016, for many of them); Ritz values
 * are those of A, which tells sigma + d from sigma - d.  Where the block reaches to
 * a distance a and the spectrum to b, a digit takes some b / a products.
 *
 * It asks nothing of A but products, no preconditioner, and orthogonalises once
 * in d of them.  A mass matrix would need its inverse in each.  The largest
 * eigenvalues are those of -A.
 *
 * A step in n x m blocks: d products with 3 passes, and some 40 for the rest. */
#include "eigen.h"

#include <float.h>
#include <math.h>

#include "timer.h"

#define GROWTH 1e6
#define DEGREE 60
#define FOLDED_GROWTH 1e3   /* in one step, which takes */
#define FOLDED_DEGREE 1000  /* at most */

struct filter {
    int degree;
    bool folds;
    double lower, upper;  /* bounds of the spectrum of op, from outside */
    double *w;
    sps_small *T;         /* of Lanczos */
    sps_block *Z;         /* folded: (A - sigma) y */
};

static sps_status setup(sps_eigen *e, void *method)
{
    struct filter *f = method;
    sps_status st = SPS_OK;

    SPS_REQUIRE(e->ctx, !e->M, SPS_EUNFIT, "chebyshev_filter serves A x = "
                "lambda x; lobpcg takes a mass matrix");
    f->folds = e->nearest;
    /* The degree of a preconditioner would be too low for a filter. */
    f->degree = e->opt.degree > 4 ? e->opt.degree
                                  : f->folds ? FOLDED_DEGREE : DEGREE;
    SPS_TRY(SPS_NEW(e->ctx, e->width, &f->w));
    SPS_TRY(spsi_small_create(e->ctx, SPS_EIGEN_LANCZOS, SPS_EIGEN_LANCZOS,
                              &f->T));
    if (f->folds) SPS_TRY(sps_block_create(e->ctx, e->n, e->width, &f->Z));
fail:
    return st;
}

/* op of the number theta. */
static double folded(const sps_eigen *e, const struct filter *f, double theta)
{
    return f->folds ? pow(theta - e->opt.sigma, 2) : e->sign * theta;
}

static sps_status start(sps_eigen *e, void *method)
{
    struct filter *f = method;
    sps_status st = SPS_OK;
    double low, high, past;

    if (e->iteration == 0) {
        SPS_TRY(spsi_eigen_ends(e, f->T, &low, &high, &past));
        f->upper = f->folds ? fmax(folded(e, f, low - past),
                                   folded(e, f, high + past)) : high + past;
        f->lower = f->folds ? 0 : low - past;
    }
    SPS_TRY(spsi_eigen_begin(e, f->w));
fail:
    return st;
}

/* Z = (A - sigma) X. */
static sps_status fold(sps_eigen *e, const struct filter *f,
                       const sps_block *X)
{
    sps_epilogue shift = { .delta = -e->opt.sigma };
    sps_status st = SPS_OK;

    spsi_block_narrow(f->Z, X->k);
    SPS_TRY(spsi_operator_apply_fused(e->A, false, 1.0, X, 0.0, f->Z, &shift,
                                      NULL));
    if (e->opt.constraints) SPS_TRY(spsi_eigen_project(e, f->Z));
    e->applies_A++;
fail:
    return st;
}

/* Y = alpha op X + beta Y + delta X; with constraints op is that of their
 * complement. */
static sps_status apply(sps_eigen *e, const struct filter *f, double alpha,
                        const sps_block *X, double beta, sps_block *Y,
                        double delta)
{
    sps_epilogue last = { .delta = delta };
    const sps_block *from = X;
    sps_status st = SPS_OK;

    if (f->folds) {
        SPS_TRY(fold(e, f, X));
        from = f->Z;
        last = (sps_epilogue){ .W = X, .gamma = delta,
                               .delta = -alpha * e->opt.sigma };
    }
    SPS_TRY(spsi_operator_apply_fused(e->A, false, e->sign * alpha, from, beta,
                                      Y, &last, NULL));
    if (e->opt.constraints) SPS_TRY(spsi_eigen_project(e, Y));
    e->applies_A++;
fail:
    return st;
}

/* The degree at which p grows by so much from the interval to the first Ritz
 * value, a number of half-widths from its centre: more than GROWTH would drown
 * all columns in the first eigenvector, and folded spectra take many where less
 * does.  What rounding has left of locked pairs, at most `end` away, must not
 * outgrow the rest. */
static int degree_of(const struct filter *f, double first, double end)
{
    double aim = f->folds ? FOLDED_GROWTH : GROWTH;
    double most = log(2 * aim) / acosh(first);

    if (end > first)
        most = fmin(most, log(2 * aim / DBL_EPSILON) / acosh(end));
    return most >= f->degree ? f->degree : most < 1 ? 1 : (int)most;
}

/* X = p(op) X on the interval of centre c and half-width h; the iterates take
 * turns in R and room, where rows of a block stand side by side. */
static sps_status filter(sps_eigen *e, const struct filter *f, double first,
                         double c, double h)
{
    sps_status st = SPS_OK;
    sps_block *now = e->R, *before = e->room;
    double s1 = h / (first - c), s = s1, next;
    int degree = degree_of(f, (c - first) / h,
                           e->locked ? (c - f->lower) / h : 0);

    spsi_block_narrow(now, e->m);
    spsi_block_narrow(before, e->m);
    SPS_TRY(spsi_copy(&e->X, before));
    SPS_TRY(apply(e, f, s1 / h, before, 0.0, now, -c * s1 / h));
    for (int i = 1; i < degree; i++) {
        sps_block *swap = before;

        next = 1 / (2 / s1 - s);
        SPS_TRY(apply(e, f, 2 * next / h, now, -s * next, before,
                      -2 * c * next / h));
        before = now;
        now = swap;
        s = next;
    }
    SPS_TRY(spsi_copy(now, &e->X));
fail:
    return st;
}

/* a: the last Ritz value, and some way from the last that is no guard.  Where a
 * multiple eigenvalue reaches to the end of the block p would be 1 for it at a,
 * and for all the rest in [a, b] as well. */
static double edge(const sps_eigen *e, const struct filter *f, double first)
{
    int kept = e->m - 1 - e->guard;
    double last = folded(e, f, e->ritz[e->m - 1]);
    double inner = folded(e, f, e->ritz[kept > 0 ? kept : 0]);
    double apart = (f->folds ? 1e-8 : 1e-3) * (f->upper - first);

    if (inner + apart < 0.5 * (inner + f->upper)) inner += apart;
    return fmax(last, inner);
}

static sps_status step(sps_eigen *e, void *method)
{
    struct filter *f = method;
    sps_status st = SPS_OK;
    double first = folded(e, f, e->ritz[0]), last = edge(e, f, first);

    if (!(f->upper > last)) {
        e->stop = SPS_STOP_STAGNATED;
        return SPS_OK;
    }
    spsi_phase_begin(e->ctx, SPS_PHASE_SPMM);
    st = filter(e, f, first, 0.5 * (f->upper + last), 0.5 * (f->upper - last));
    spsi_phase_end(e->ctx, SPS_PHASE_SPMM);
    e->directions = e->m;
    if (st == SPS_OK) st = spsi_eigen_begin(e, f->w);
    return st;
}

static void destroy(sps_eigen *e, void *method)
{
    struct filter *f = method;

    spsi_small_destroy(&f->T);
    sps_block_destroy(&f->Z);
    spsi_free(e->ctx, f->w);
}

SPS_DEFINE(sps_eigen_type, spsi_eigen_chebyshev_filter) = {
    .name = "chebyshev_filter",
    .size = sizeof(struct filter),
    .stack = 1,
    .folds = true,
    .setup = setup,
    .start = start,
    .step = step,
    .destroy = destroy,
};
