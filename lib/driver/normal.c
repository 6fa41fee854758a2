/* SPDX-License-Identifier: BSD-3-Clause */
/* normal.c - what the driver does for methods of least squares, which minimise
 * ||b - A x||^2 + d^2 ||x||^2 for A of any shape; d is the option damp.
 *
 * With S = [A; d I] that is the residual r = [b; 0] - S x, and x is a solution
 * if S'r = A'(b - A x) - d^2 x = 0.  A column is converged (Fong and Saunders,
 * SIAM J. Sci. Comput. 33, 2011, section 5; Stewart 1977) if either ||r|| is at
 * most the threshold of option norm, which happens for a consistent system, or
 * ||S'r|| <= rtol ||S|| ||r||: then x is the exact least-squares solution for
 * some A + E with ||E|| <= rtol ||S||.
 *
 * For other methods S is A, and the second rule is not used. */
#include "driver/columns.h"

#include <math.h>

#include "core/timer.h"

double spsi_least_size(const sps_linear *s)
{
    return hypot(s->made.norm_A, s->opt.damp);
}

double spsi_least_level(const sps_linear *s, int p)
{
    const double r = s->resnorm[p];
    double limit;

    if (!s->least.T || !isfinite(r)) return r;
    if (s->least.normal[p] == 0) return 0;
    limit = s->opt.rtol * spsi_least_size(s) * r;
    return limit > 0 && isfinite(s->least.normal[p])
               ? fmin(r, s->rhs.threshold[s->at.column[p]] *
                             (s->least.normal[p] / limit))
               : r;
}

sps_status spsi_least_norms(const sps_linear *s, const sps_block *X,
                            const sps_block *R, double *norm)
{
    double size[SPS_BLOCK_MAX];
    sps_status st;

    SPS_TRY(spsi_norms(R, norm));
    if (s->opt.damp == 0) return SPS_OK;
    SPS_TRY(spsi_norms(X, size));
    for (int p = 0; p < R->k; p++)
        norm[p] = hypot(norm[p], s->opt.damp * size[p]);
fail:
    return st;
}

/* Returns the power of two by which ||S'r|| is divided while it is computed: 1,
 * or, for d > 2^500, whose square may overflow, the one with d / unit in
 * [1, 2). */
static double damp_unit(double d)
{
    int e;

    (void)frexp(d, &e);
    return d > 0x1p500 ? ldexp(1, e - 1) : 1;
}

sps_status spsi_least_normal(sps_linear *s, const sps_block *X,
                             const double *by, const sps_block *R,
                             double *norm)
{
    const double d = s->opt.damp, unit = damp_unit(d);
    double one[SPS_BLOCK_MAX], scale[SPS_BLOCK_MAX], back[SPS_BLOCK_MAX];
    sps_status st;
    sps_block Y;

    for (int p = 0; p < R->k; p++) {
        one[p] = 1;
        scale[p] = 1 / unit;
        back[p] = -d * ((d / unit) * (by ? by[p] : 1));
    }
    spsi_linear_room(s, 1, s->n, R->k, &Y);
    SPS_TRY(spsi_operator_twofold(s->least.T, &(sps_twofold_args){
        .c = one, .X = R, .H = &Y }, NULL));
    s->course.applies_A++;
    if (d > 0) SPS_TRY(spsi_axpby_cols(back, X, scale, &Y));
    SPS_TRY(spsi_norms(&Y, norm));
    for (int p = 0; p < R->k; p++) norm[p] *= unit;
fail:
    return st;
}

/* Returns whether ||S'r|| is explained by rounding of x, which changes r by eps
 * ||A|| ||x||. */
bool spsi_least_rounding(const sps_linear *s, double normal, double x, double b)
{
    const double size = spsi_least_size(s);

    return normal / size <= 16 * 0x1p-52 * (size * x + b);
}

/* ------------------------------------------- products with A and A' at once */

sps_status spsi_least_enter(sps_linear *s, sps_block *X, double *norm)
{
    const double zero[SPS_BLOCK_MAX] = { 0 };
    sps_block room;
    sps_status st;

    spsi_linear_room(s, 0, s->least.nrow, s->k, &room);
    SPS_TRY(spsi_fill(X, 0.0));
    SPS_TRY(spsi_take_rows(&s->R, s->least.both->order, &room));
    SPS_TRY(spsi_axpby(-1.0, &room, 0.0, &s->R));
    SPS_TRY(spsi_least_there(s, zero, X, norm));
fail:
    return st;
}

sps_status spsi_least_there(sps_linear *s, const double *c, const sps_block *X,
                            double *norm)
{
    sps_status st;

    spsi_phase_begin(s->ctx, SPS_PHASE_SPMM);
    st = spsi_two_way_there(s->least.both, c, X, &s->R, norm);
    spsi_phase_end(s->ctx, SPS_PHASE_SPMM);
    s->course.applies_A += 2;
    return st;
}

sps_status spsi_least_back(sps_linear *s, const double *a, const sps_block *V,
                           const double *b, sps_block *Z, double *norm)
{
    sps_status st;

    spsi_phase_begin(s->ctx, SPS_PHASE_SPMM);
    st = spsi_two_way_back(s->least.both, a, s->opt.damp, V, b, Z, norm);
    spsi_phase_end(s->ctx, SPS_PHASE_SPMM);
    return st;
}

/* ------------------------------------------------------------------ ||A|| */

/* by = 1 / norm, or 0 where that is not finite. */
static void reciprocals(int k, const double *norm, double *by)
{
    for (int j = 0; j < k; j++)
        by[j] = norm[j] > 0 && isfinite(1 / norm[j]) ? 1 / norm[j] : 0;
}

/* Scales the columns of `from` to norm 1 and computes to = A from; `norm`
 * receives the previous norms.  A zero column remains zero. */
static sps_status unit_product(const sps_operator *A, sps_block *from,
                               sps_block *to, double *norm)
{
    double by[SPS_BLOCK_MAX];
    sps_status st;

    SPS_TRY(spsi_norms(from, norm));
    reciprocals(from->k, norm, by);
    SPS_TRY(spsi_axpby_cols(by, from, NULL, from));
    SPS_TRY(sps_operator_apply(A, 1.0, from, 0.0, to));
fail:
    return st;
}

/* One step of spsi_norm_estimate_pair in one pass over A: `size` has the norms
 * of V before and after, `norm` receives those of A V. */
static sps_status unit_both(sps_two_way *both, sps_block *V, sps_block *W,
                            double *size, double *norm)
{
    double by[SPS_BLOCK_MAX];
    sps_status st;

    reciprocals(V->k, size, by);
    SPS_TRY(spsi_fill(W, 0.0));
    SPS_TRY(spsi_two_way_there(both, by, V, W, norm));
    reciprocals(V->k, norm, by);
    SPS_TRY(spsi_two_way_back(both, by, 0, NULL, NULL, V, size));
fail:
    return st;
}

sps_status spsi_norm_estimate_pair(const sps_operator *A,
                                   const sps_operator *T, sps_two_way *both,
                                   sps_block *V, sps_block *W, double *scratch,
                                   double *norm)
{
    enum { STEPS = 4 };
    double best = 0, size[SPS_BLOCK_MAX];
    sps_status st = SPS_OK;

    *norm = A->cache->norm >= 0 ? A->cache->norm : 0;
    if (A->cache->norm >= 0 || A->n == 0 || A->ncol == 0) return SPS_OK;
    SPS_TRY(sps_block_random(V, 20090513));
    if (both) SPS_TRY(spsi_norms(V, size));
    for (int i = 0; i < STEPS; i++) {
        if (both) {
            SPS_TRY(unit_both(both, V, W, size, scratch));
        } else {
            SPS_TRY(unit_product(A, V, W, scratch));
            SPS_TRY(unit_product(T, W, V, scratch));
        }
        for (int j = 0; j < V->k; j++)
            if (isfinite(scratch[j])) best = fmax(best, scratch[j]);
    }
    A->cache->norm = *norm = best;
fail:
    return st;
}
