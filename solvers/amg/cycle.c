/* SPDX-License-Identifier: BSD-3-Clause */
/* cycle.c - the V-cycle on blocks, Z = M R.
 *
 * The smoother is the optimal Chebyshev polynomial of the fourth kind for [0,
 * L] (Lottes, arXiv 2202.08830; Phillips and Fischer, arXiv 2210.03179) in
 * product form: with the roots L x_i of 1 - x p(x), which are real, and u =
 * D^-1 r,
 *
 *     z <- z + (u - D^-1 A z) / (L x_i),   i = 1 .. d,
 *
 * a product with an epilogue that reads z and u and writes the next z: 3 block
 * passes for each degree, where the recurrence of those papers needs 4.  From z
 * = 0 the first two steps are one product with u itself, 2 passes:
 *
 *     z = (f_1 + f_2) u - f_1 f_2 D^-1 A u,   f_i = 1 / (L x_i).
 *
 * The same polynomial is applied before and after the coarse correction, which
 * makes M symmetric; M is positive definite if L is an upper bound of the
 * spectrum of D^-1 A.
 *
 * The first step behind the correction e = M_c P'R is made together with it: as
 * v = u - D^-1 A z is known, the residual that was restricted,
 *
 *     z + P e + f_1 (u - D^-1 A (z + P e)) = z + f_1 v + (P - f_1 D^-1 A P) e,
 *
 * one product with a matrix whose pattern is that of A P (ahead.c).
 *
 * The operators of the cycle are D^-1 A, P, and D_c^-1 P'D, where D_c is the
 * diagonal of the next coarser level: residuals enter and leave a cycle as u,
 * and no product needs to read a diagonal.  A dense inverse is applied to r
 * itself.
 *
 * If A is far from symmetric, every step has the same factor, 1 / root = (4/3)
 * / upper: damped Jacobi.
 *
 * A level that eliminates nodes is solved exactly, apart from the levels below:
 * Z = P M_c P'R, plus u on the eliminated nodes.
 *
 * On a coarsest level without a dense inverse a Chebyshev polynomial of the
 * first kind for [L / 2 d^2, L] is applied in the same form.
 *
 * A cycle of degree d makes 2 d - 1 products on each level, one with the matrix
 * of A P and one with P'; with d = 2 this is 12 block passes on the level
 * itself.  Where A P has too many entries, these are 2 d, one with P and one
 * with P': 14 passes.  Nothing is allocated.
 *
 * In single precision (amg.floats) matrices and blocks of all levels are stored
 * in half the bytes.  Columns of R are multiplied by powers of two so that the
 * values in a cycle are around 2^unit, the geometric mean of the largest and
 * the smallest diagonal entry of A: if the diagonal is within 1e-10 to 1e10
 * times this, neither D^-1 R nor the results of a cycle leave the range of
 * single precision.  M is then linear and symmetric up to rounding errors of
 * 6e-8, which conjugate gradients tolerate if b is computed from (A P)'Z.  If
 * values do not fit, everything is in double precision. */
#include "solvers/amg/amg.h"

#include <math.h>

#include "block/single.h"

/* Performs the smoother's steps i = from .. degree - 1; *now_p is the iterate,
 * *next_p the block for the next one. */
static sps_status relax(const amg_level *l, const sps_block *U, int from,
                        sps_block **now_p, sps_block **next_p)
{
    sps_status st = SPS_OK;

    for (int i = from; i < l->smoother.degree; i++) {
        const double f = 1 / l->smoother.root[i];
        sps_block *now = *now_p;

        SPS_TRY(spsi_operator_apply_fused(
            l->parts.own_op, false, -f, now, 0.0, *next_p,
            &(sps_epilogue){ .W = U, .gamma = f, .delta = 1 }, NULL));
        *now_p = *next_p;
        *next_p = now;
    }
fail:
    return st;
}

/* Performs all steps of the smoother, starting from z = 0. */
static sps_status begin(const amg_level *l, const sps_block *U,
                        sps_block **now_p, sps_block **next_p)
{
    const int degree = l->smoother.degree;
    const double *root = l->smoother.root;
    const double f = 1 / root[0], g = degree > 1 ? 1 / root[1] : 0;
    sps_status st;

    if (degree == 1) return spsi_axpby(f, U, 0.0, *now_p);
    SPS_TRY(spsi_operator_apply_fused(l->parts.own_op, false, -f * g, U, 0.0,
                                      *now_p,
                                      &(sps_epilogue){ .delta = f + g }, NULL));
    SPS_TRY(relax(l, U, 2, now_p, next_p));
fail:
    return st;
}

static sps_status solve_last(const amg *m, const amg_level *l,
                             const sps_block *U, sps_block *Z)
{
    const int degree = l->smoother.degree;
    const bool swaps = degree > 2 && degree % 2;
    sps_block *t = l->parts.t, *now = swaps ? t : Z, *next = swaps ? Z : t;

    if (m->inverse_op)
        return sps_operator_apply(m->inverse_op, 1.0, U, 0.0, Z);
    return begin(l, U, &now, &next);
}

static sps_status cycle(const amg *m, int level, const sps_block *U,
                        sps_block *Z);

/* X += P M_c P'R for U = D^-1 R, where M_c are the levels below; with `ahead`
 * and R the residual of X, also the first step behind that. */
static sps_status correct(const amg *m, int level, const sps_block *U,
                          sps_block *X)
{
    const amg_level *l = &m->level[level];
    const amg_parts *own = &l->parts, *below = &(l + 1)->parts;
    sps_status st;

    if (m->across) return m->across(m, U, X);
    SPS_TRY(sps_operator_apply(own->restrict_op, 1.0, U, 0.0, below->r));
    SPS_TRY(cycle(m, level + 1, below->r, below->x));
    if (!own->ahead)
        return sps_operator_apply(own->prolong, 1.0, below->x, 1.0, X);
    SPS_TRY(spsi_operator_apply_fused(
        own->ahead, false, 1.0, below->x, 1.0, X,
        &(sps_epilogue){ .W = U, .gamma = 1 / l->smoother.root[0] }, NULL));
fail:
    return st;
}

/* Z = M R on a level that eliminates nodes. */
static sps_status reduce(const amg *m, int level, const sps_block *U,
                         sps_block *Z)
{
    sps_status st;

    SPS_TRY(spsi_scale_rows(m->level[level].parts.mask, U, Z));
    SPS_TRY(correct(m, level, U, Z));
fail:
    return st;
}

/* Z = M R on this level and those below; U = D^-1 R, or R if the level is
 * solved by the dense inverse.  The iterates alternate between Z and t: 2 d - 2
 * steps that start in Z end in Z; with d = 1 one step from t.  With `ahead`
 * there is one step less. */
static sps_status cycle(const amg *m, int level, const sps_block *U,
                        sps_block *Z)
{
    const amg_level *l = &m->level[level];
    const bool starts_in_Z = (l->smoother.degree > 1) == !l->parts.ahead;
    sps_block *now = starts_in_Z ? Z : l->parts.t;
    sps_block *next = starts_in_Z ? l->parts.t : Z;
    sps_status st;

    if (level + 1 == m->levels && !m->across) return solve_last(m, l, U, Z);
    if (l->eliminates) return reduce(m, level, U, Z);
    SPS_TRY(begin(l, U, &now, &next));
    SPS_TRY(spsi_operator_apply_fused(
        l->parts.own_op, false, -1.0, now, 0.0, next,
        &(sps_epilogue){ .W = U, .gamma = 1 }, NULL));
    SPS_TRY(correct(m, level, next, now));
    SPS_TRY(relax(l, U, l->parts.ahead ? 1 : 0, &now, &next));
fail:
    return st;
}

/* Gives X k columns and leading dimension ld, or the largest one that X's
 * memory allows. */
static void shape_as(sps_block *X, int k, int64_t ld)
{
    const int64_t most = X ? spsi_block_ld(X->width) : 0;

    if (!X) return;
    spsi_block_narrow(X, k);
    X->ld = ld < most ? ld : most;
}

/* Computes factors for R's columns in single precision, which are powers of
 * two, and their inverses. */
static sps_status factors(const amg *m, const sps_block *R, double *in,
                          double *out)
{
    sps_status st = SPS_OK;

    if (!m->super.norms) SPS_TRY(spsi_largest(R, in));
    for (int j = 0; j < R->k; j++) {
        const double size = m->super.norms ? m->super.norms[j] : in[j];
        int shift = 0;

        if (size > 0 && isfinite(size)) shift = m->unit - ilogb(size);
        if (shift > 1000) shift = 1000;
        if (shift < -1000) shift = -1000;
        in[j] = ldexp(1, shift);
        out[j] = ldexp(1, -shift);
    }
fail:
    return st;
}

/* U = D^-1 R diag(c); columns are scaled first, which brings the values into
 * the range of single precision. */
static sps_status enter(const amg *m, const double *c, const sps_block *R,
                        sps_block *U)
{
    const sps_block *D = m->level[0].parts.inverse;
    sps_status st;

    if (D && m->device && m->floats)
        return m->device->cycle.enter(D, c, R, U);
    SPS_TRY(spsi_axpby_cols(c, R, NULL, U));
    if (D) SPS_TRY(spsi_scale_rows(D, U, U));
fail:
    return st;
}

static sps_status apply_floats(const amg *m, const sps_block *R, sps_block *Z)
{
    const amg_level *l = m->level;
    double in[SPS_BLOCK_MAX], out[SPS_BLOCK_MAX];
    sps_status st;

    if (m->super.follows) return cycle(m, 0, l->parts.r, Z);
    SPS_TRY(factors(m, R, in, out));
    SPS_TRY(enter(m, in, R, l->parts.r));
    if (Z->dtype == SPS_F32) return cycle(m, 0, l->parts.r, Z);
    SPS_TRY(cycle(m, 0, l->parts.r, l->parts.x));
    SPS_TRY(spsi_axpby_cols(out, l->parts.x, NULL, Z));
fail:
    return st;
}

static sps_status apply_doubles(const amg *m, const sps_block *R, sps_block *Z)
{
    const amg_level *l = m->level;
    sps_status st;

    if (!l->parts.inverse) return cycle(m, 0, R, Z);
    SPS_TRY(spsi_scale_rows(l->parts.inverse, R, l->parts.r));
    SPS_TRY(cycle(m, 0, l->parts.r, Z));
fail:
    return st;
}

/* Returns the leading dimension of all blocks of a level: the same, so that
 * products can fuse their epilogues.  In single precision it is as small as k
 * allows, so that rows of few columns take few bytes; but rows of two columns
 * are 16 bytes apart, not 8, unless Z has the other distance, so that products
 * load them as vectors. */
static int64_t distance(const amg *m, const sps_block *R, const sps_block *Z)
{
    if (!m->floats) return R->ld;
    return R->k == 2 && Z->dtype != SPS_F32 ? 4 : spsi_block_ld(R->k);
}

void spsi_amg_shape(const amg *m, int k, int64_t ld)
{
    for (int i = 0; i < m->levels; i++) {
        shape_as(m->level[i].parts.t, k, ld);
        shape_as(m->level[i].parts.r, k, ld);
        shape_as(m->level[i].parts.x, k, ld);
    }
}

sps_status spsi_amg_cycle(const amg *m, const sps_block *U, sps_block *Z)
{
    return cycle(m, 0, U, Z);
}

sps_status spsi_amg_apply(const amg *m, const sps_block *R, sps_block *Z)
{
    spsi_amg_shape(m, R->k, distance(m, R, Z));
    return m->floats ? apply_floats(m, R, Z) : apply_doubles(m, R, Z);
}

/* U is scaled by the norms that the columns of R have before the step.  The new
 * norms exceed them little, so U is in the range of single precision. */
sps_status spsi_amg_subtract(const amg *m, const sps_block *Q,
                             const sps_small *a, sps_block *R,
                             sps_small *norm2, bool *served)
{
    const amg_level *l = m->level;
    double in[SPS_BLOCK_MAX], out[SPS_BLOCK_MAX];
    sps_status st = SPS_OK;

    *served = false;
    if (!m->device || !m->floats || !l->parts.inverse || !m->super.norms ||
        m->super.n == 0)
        return SPS_OK;
    shape_as(l->parts.r, R->k, spsi_block_ld(R->k));
    SPS_TRY(factors(m, R, in, out));
    SPS_TRY(m->device->cycle.subtract(Q, a, R, norm2, l->parts.inverse, in,
                                      l->parts.r, served));
fail:
    return st;
}
