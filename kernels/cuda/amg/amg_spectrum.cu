/* SPDX-License-Identifier: BSD-3-Clause */
/* amg_spectrum.cu - steps of Lanczos for S A S, S = diag(s), and its row sums;
 * solvers/amg/spectrum.c has the formulas.  All coefficients stay on the device
 * until the last step: the host waits once.  Bytes: each step reads the matrix,
 * and vectors 9 times. */
#include "cuda/amg/coarse.cuh"

namespace {

constexpr int steps = SPS_COARSE_STEPS;

/* Squares of the norms, of which beta is the root, and others. */
struct coefficients {
    double alpha[steps], beta2[steps], first2, bound[2];
};

struct draw_start {
    const double *s;
    double *w;

    __device__ double operator()(int64_t i) const
    {
        const double x = s[i] == 0 ? 0 : spsi_coarse_start(i);

        w[i] = x;
        return x * x;
    }
};

/* w *= 1 / sqrt(*square); start: 0 where that is 0. */
struct normalise {
    const double *square;
    bool start;
    double *w;

    __device__ void operator()(int64_t i) const
    {
        const double f = start && !(*square > 0) ? 0 : 1 / sqrt(*square);

        w[i] *= f;
    }
};

/* w = H v - beta before; the terms of w'v. */
struct multiply {
    entries A;
    const double *__restrict__ s, *__restrict__ v, *before;
    const double *beta2;      /* NULL: 0 */
    double *w;

    __device__ double operator()(int64_t i) const
    {
        const double beta = beta2 ? sqrt(*beta2) : 0;
        double h = 0;

        for (int64_t p = A.rowptr[i]; p < A.rowptr[i + 1]; p++) {
            const int32_t k = A.col[p];

            h += A.val[p] * (s[k] * v[k]);
        }
        h = h * s[i] - beta * before[i];
        w[i] = h;
        return h * v[i];
    }
};

/* w -= alpha v; the terms of w'w. */
struct subtract {
    const double *alpha, *v;
    double *w;

    __device__ double operator()(int64_t i) const
    {
        const double x = w[i] - *alpha * v[i];

        w[i] = x;
        return x * x;
    }
};

/* Row sums of |S A S|, or with `twice` of |S^2 A|. */
struct row_sum {
    entries A;
    const double *__restrict__ s;
    bool twice;

    __device__ double operator()(int64_t i) const
    {
        double sum = 0;

        for (int64_t p = A.rowptr[i]; p < A.rowptr[i + 1]; p++) {
            const double a = fabs(A.val[p]) * s[i];

            sum += a * s[twice ? i : A.col[p]];
        }
        return sum;
    }
};

/* factor[i] = d_i^(-1/2) of F, 0 where the level's scale is. */
struct set_factor {
    entries F;
    const double *scale;
    double *factor;

    __device__ void operator()(int64_t i) const
    {
        double d = 0;

        for (int64_t p = F.rowptr[i]; p < F.rowptr[i + 1]; p++)
            if (F.col[p] == i) d = F.val[p];
        factor[i] = scale[i] > 0 && d > 0 ? 1 / sqrt(d) : 0;
    }
};

struct room {
    sps_context *ctx;
    int64_t n;
    entries A;
    const double *s;
    double *v, *before, *w, *part;
    coefficients *c;
};

void advance(room *r)
{
    double *spare = r->before;

    r->before = r->v;
    r->v = r->w;
    r->w = spare;
}

sps_status run(room *r)
{
    coefficients *c = r->c;

    SPS_TRY_RETURN(reduce<sum_of>(r->ctx, r->n, draw_start{r->s, r->w}, r->part,
                                  &c->first2));
    SPS_TRY_RETURN(each(r->ctx, r->n, normalise{&c->first2, true, r->w}));
    advance(r);
    for (int t = 0; t < steps; t++) {
        SPS_TRY_RETURN(reduce<sum_of>(
            r->ctx, r->n,
            multiply{r->A, r->s, r->v, r->before,
                     t > 0 ? &c->beta2[t - 1] : NULL, r->w},
            r->part, &c->alpha[t]));
        SPS_TRY_RETURN(reduce<sum_of>(r->ctx, r->n,
                                      subtract{&c->alpha[t], r->v, r->w},
                                      r->part, &c->beta2[t]));
        SPS_TRY_RETURN(each(r->ctx, r->n,
                            normalise{&c->beta2[t], false, r->w}));
        advance(r);
    }
    for (int t = 0; t < 2; t++)
        SPS_TRY_RETURN(reduce<most_of>(r->ctx, r->n,
                                       row_sum{r->A, r->s, t == 1}, r->part,
                                       &c->bound[t]));
    return SPS_OK;
}

} // namespace

sps_status spsi_coarse_lanczos(sps_coarse *l, bool filtered, double *diagonal,
                               double *off, double *bound)
{
    const sps_csr *A = filtered && l->F ? l->F : &l->A;
    const int64_t n = A->nrow;
    holder h(l->ctx);
    coefficients c;
    double *vectors, *factor;
    room r = {l->ctx, n, entries_of(A), l->scale};

    SPS_TRY_RETURN(h.take(3 * n, &vectors));
    SPS_TRY_RETURN(h.take(part_room(n), &r.part));
    SPS_TRY_RETURN(h.take(1, &r.c));
    r.v = vectors;
    r.before = vectors + n;
    r.w = vectors + 2 * n;
    SPS_TRY_RETURN(clear(l->ctx, 2 * n, vectors));
    if (A == l->F) {
        SPS_TRY_RETURN(h.take(n, &factor));
        SPS_TRY_RETURN(each(l->ctx, n, set_factor{r.A, l->scale, factor}));
        r.s = factor;
    }
    SPS_TRY_RETURN(run(&r));
    SPS_TRY_RETURN(fetch(l->ctx, 1, r.c, &c));
    for (int t = 0; t < steps; t++) {
        diagonal[t] = c.alpha[t];
        off[t] = sqrt(c.beta2[t]);
    }
    *bound = fmin(c.bound[0], c.bound[1]);
    return SPS_OK;
}
