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
 *     y_1 = (s_1 / h) (A - c) x,  s' = 1 / (2 / s_1 - s),
 *     y_(i+1) = (2 s' / h) (A - c) y_i - s s' y_(i-1),  s = s'.
 *
 * It asks nothing of A but products, no preconditioner, and orthogonalises once
 * in d of them.  A mass matrix would need its inverse in each.  The largest
 * eigenvalues are those of -A.
 *
 * A step in n x m blocks: d products, each with 3 more passes, and some 40 for
 * the rest. */
#include "eigen.h"

#include <float.h>
#include <math.h>

#define GROWTH 1e6

struct filter {
    int degree;
    double upper;         /* bound of the spectrum of sign A, from above */
    double *w;
    sps_small *T;         /* of Lanczos */
};

static sps_status setup(sps_eigen *e, void *method)
{
    struct filter *f = method;
    sps_status st = SPS_OK;

    SPS_REQUIRE(e->ctx, !e->M && !e->nearest, SPS_EUNFIT,
                "chebyshev_filter serves A x = lambda x, the smallest and the "
                "largest; lobpcg takes a mass matrix and a shift");
    /* The degree of a preconditioner would be too low for a filter. */
    f->degree = e->opt.degree > 4 ? e->opt.degree : 20;
    SPS_TRY(SPS_NEW(e->ctx, e->width, &f->w));
    SPS_TRY(spsi_small_create(e->ctx, SPS_EIGEN_LANCZOS, SPS_EIGEN_LANCZOS,
                              &f->T));
fail:
    return st;
}

static sps_status start(sps_eigen *e, void *method)
{
    struct filter *f = method;
    sps_status st = SPS_OK;
    double low, past;

    if (e->iteration == 0) {
        SPS_TRY(spsi_eigen_ends(e, f->T, &low, &f->upper, &past));
        f->upper += past;
    }
    SPS_TRY(spsi_eigen_begin(e, f->w));
fail:
    return st;
}

/* The degree at which p grows by GROWTH from the interval to the first Ritz
 * value: more would drown all columns in the first eigenvector. */
static int degree_of(const struct filter *f, double growth)
{
    double most = log(2 * GROWTH) / acosh(growth);

    return most >= f->degree ? f->degree : most < 1 ? 1 : (int)most;
}

/* X = p(A) X; the iterates take turns in X and Y. */
static sps_status filter(sps_eigen *e, const struct filter *f)
{
    sps_status st = SPS_OK;
    double first = e->sign * e->ritz[0], last = e->sign * e->ritz[e->m - 1];
    double a = last, c, h, s1, s, next;
    int degree;
    sps_block Y, *now = &Y, *before = &e->X;

    if (a < first + 1e-3 * (f->upper - first))   /* all Ritz values alike */
        a = first + 1e-3 * (f->upper - first);
    c = 0.5 * (f->upper + a);
    h = 0.5 * (f->upper - a);
    if (!(h > 0)) {
        e->stop = SPS_STOP_STAGNATED;
        return SPS_OK;
    }
    s = s1 = h / (first - c);
    degree = degree_of(f, (c - first) / h);
    spsi_block_view(e->S, e->width, e->m, &Y);
    SPS_TRY(spsi_copy(&e->X, &Y));
    SPS_TRY(sps_operator_apply(e->A, e->sign * s1 / h, &e->X, -c * s1 / h,
                               &Y));
    e->applies_A++;
    for (int i = 1; i < degree; i++, e->applies_A++) {
        sps_block *swap = before;

        next = 1 / (2 / s1 - s);
        SPS_TRY(sps_operator_apply(e->A, e->sign * 2 * next / h, now,
                                   -s * next, before));
        SPS_TRY(spsi_axpby(-2 * c * next / h, now, 1.0, before));
        before = now;
        now = swap;
        s = next;
    }
    if (now == &Y) SPS_TRY(spsi_copy(&Y, &e->X));
fail:
    return st;
}

static sps_status step(sps_eigen *e, void *method)
{
    struct filter *f = method;
    sps_status st = SPS_OK;

    SPS_TRY(filter(e, f));
    e->directions = e->m;
    if (!e->stop) SPS_TRY(spsi_eigen_begin(e, f->w));
fail:
    return st;
}

static void destroy(sps_eigen *e, void *method)
{
    struct filter *f = method;

    spsi_small_destroy(&f->T);
    spsi_free(e->ctx, f->w);
}

SPS_DEFINE(sps_eigen_type, spsi_eigen_chebyshev_filter) = {
    .name = "chebyshev_filter",
    .size = sizeof(struct filter),
    .stack = 3,
    .setup = setup,
    .start = start,
    .step = step,
    .destroy = destroy,
};
