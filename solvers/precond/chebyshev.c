/* SPDX-License-Identifier: BSD-3-Clause */
/* chebyshev.c - Z = p(D^-1 A) D^-1 R with 1 - x p(x) = T_d((theta - x) / delta)
 * / T_d(theta / delta), the Chebyshev polynomial of degree d = opt->degree on
 * [lambda / 2 d^2, lambda], theta and delta its middle and half-width.
 *
 * In product form, by the roots x_1 .. x_d of that polynomial:
 *
 *   z_0 = 0,  z_i = z_(i-1) + D^-1 (r - A z_(i-1)) / x_i
 *
 * Each degree costs one product with an epilogue: A, z and r are read and the
 * next z is written, 3 block passes, where the three-term recurrence needs 4.
 * A matrix that is streamed to the GPU passes once for as many degrees as its
 * band allows (spsi_operator_apply_sequence).
 * Leja ordering of the roots keeps intermediate results small (Fischer and
 * Reichel, Numer. Math. 54, 1988): their growth stays below d^2 / 4, and
 * rounding errors are amplified 40 times at most up to degree 100.
 *
 * Choice of the interval: a wider one improves more of the low end of the
 * spectrum and damps the high end less.  On lambda / 2 d^2 the high end is
 * damped to 1 / cosh(sqrt 2) = 0.46 whatever d is, and d products achieve
 * nearly what d iterations of CG would: the number of iterations is 0.28 of
 * that with Jacobi for d = 4, and 0.14 for d = 8.
 *
 * The map from r to z is symmetric positive definite as long as the spectrum of
 * D^-1 A lies in (0, lambda].  Hence the margin on the estimate of lambda, from
 * a few Lanczos steps on a block of random vectors.  If lambda were too small,
 * an even d would make the map indefinite, an odd d would not (T_d is negative
 * beyond lambda, so that x p(x) > 0).  Hence `auto` chooses odd degrees. */
#include "driver/hardness.h"
#include "driver/lanczos.h"

#include <math.h>
#include <string.h>

#include "core/comm.h"

#define MARGIN 1.1
#define MOST 100             /* largest degree */
#define MOST_AUTO 15         /* largest degree that auto chooses */
#define MOST_PASSES 25      /* the same for methods with many block passes */
/* With a time limit the estimate of the spectrum may use LANCZOS_SHARE of it.
 * If that is not enough for all steps, auto chooses another preconditioner, and
 * a chebyshev that was requested uses the result of at least LANCZOS_LEAST
 * steps. */
#define LANCZOS_SHARE 0.1
#define LANCZOS_LEAST 8
enum { FEW_ROWS = 8 };       /* rows that may not be strongly dominant where no
                                spectrum is estimated */

struct chebyshev {
    sps_precond super;
    bool automatic;             /* the degree is chosen from the matrix */
    int degree;
    double upper, lower;        /* interval of the polynomial */
    double root[MOST];          /* roots in Leja order */
    sps_block *inverse;         /* n x 1: D^-1 */
    sps_block *first;           /* n x 1: D^-1 / x_1 */
    sps_block *other;           /* n x width: every other iterate */
    sps_block *P, *R, *Q;       /* n x SPS_LANCZOS_WIDTH at most: scratch of the
                                   Lanczos process */
    double deadline;            /* time at which the estimate in build must end;
                                   0 if there is no limit */
    sps_nullspace *null;        /* for auto: the null space that the solver will
                                   project out, which does not count as the low
                                   end of the spectrum */
};

static sps_status set_diagonal(struct chebyshev *m)
{
    sps_diagonal_kinds k;

    return spsi_matrix_inverse_block(m->super.A, m->inverse, &k);
}

/* Returns the product of the distances of x from the roots already chosen. */
static double apart(double x, const double *taken, int count)
{
    double product = 1;

    for (int i = 0; i < count; i++) product *= fabs(x - taken[i]);
    return product;
}

/* Computes the roots of the polynomial in Leja order: the largest first, then
 * always the one with the largest product of distances from those before. */
static void set_roots(struct chebyshev *m)
{
    double theta = 0.5 * (m->upper + m->lower);
    double delta = 0.5 * (m->upper - m->lower), *x = m->root;
    int d = m->degree;

    for (int i = 0; i < d; i++)
        x[i] = (theta + delta * cos(acos(-1.0) * (2 * i + 1) / (2 * d))) /
               m->upper;
    for (int i = 1; i < d; i++) {
        int best = i;
        double root;

        for (int j = i + 1; j < d; j++)
            if (apart(x[j], x, i) > apart(x[best], x, i)) best = j;
        root = x[best];
        x[best] = x[i];
        x[i] = root;
    }
    for (int i = 0; i < d; i++) x[i] *= m->upper;
}

/* ------------------------------------------------------------------- degree */

/* Returns the predicted seconds of a solve by block_cg with degree d, where
 * Jacobi, which is d = 1, needs J = `iterations` iterations:
 *     d = 1:  J (0.18 wait + A + passes block), 6 passes fewer on a GPU
 *     d > 1:  (1.15 J / d + 1) ((1 + 0.1 d) wait + passes block + A
 *                               + (d - 1) product)
 * block: seconds of one read or write of a block; A: of one read of the matrix;
 * product: A + 3 blocks, or A + 10 blocks if the epilogue is composed of
 * separate operations; wait: latency of a step with host synchronisation
 * (sps_machine.sync), of which a fused step has 0.18 and a product 0.1.  So
 * small systems use Jacobi: 1.15 / 15 of a synchronisation and 15 products take
 * longer.  On a CPU products take up to three times as long as their bytes
 * suggest relative to block passes (7 to 27 entries a row, 16 columns).  On a
 * GPU with slow double precision their arithmetic counts (slow_fma).  If A is
 * streamed to the GPU, products take at least as long as its copies: the d - 1
 * products those of a few passes, a single product those of its panels of which
 * the host has no share. */
static double predicted(const sps_precond *M, int d, double iterations)
{
    const bool gpu = M->ctx->opt.place == SPS_CUDA;
    const sps_machine *m = &M->ctx->machine;
    const double beta = m->copy, n = (double)M->n;
    const double nnz = (double)(M->A->A ? M->A->A->nnz
                                          : M->A->caller.nnz);
    const double block = 8.0 * n * M->width / beta, slower = gpu ? 1 : 3;
    const double A = slower * (12.0 * nnz + 4.0 * n) / beta +
                     nnz * M->width * m->slow_fma;
    const double product = A + slower * block *
                           (spsi_operator_fuses(M->A, M->width) ? 3 : 10);
    const double wait = m->sync;
    const double one = fmax(A, spsi_operator_copy_seconds(M->A, M->width, 1));
    const double others = fmax((d - 1) * product,
                               spsi_operator_copy_seconds(M->A, M->width,
                                                          d - 1));

    if (d == 1)
        return iterations * (0.18 * wait + one +
                             (M->passes - (gpu ? 6 : 0)) * block);
    return (1.15 * iterations / d + 1) *
           ((1 + 0.1 * d) * wait + M->passes * block + one + others);
}

/* Returns the iterations of Jacobi to a reduction of 1e-8, by the usual
 * bound. */
static double needed(double condition) { return 9.5 * sqrt(condition); }

/* Returns the odd degree of least predicted time, for a condition of D^-1 A of
 * at least `condition`.  Beyond d = sqrt(condition / 2) the interval is wider
 * than the spectrum, and nothing more is gained.  But Lanczos steps detect
 * conditions up to some 300 only, so for methods with many block passes, which
 * profit from higher degrees, the limit is sqrt(4 condition / 2).  With
 * across_ranks the degree is that limit: times depend on the processes. */
static int best_degree(const sps_precond *M, double condition)
{
    const double iterations = needed(condition);
    const bool many = M->passes > SPS_PASSES_LINEAR;
    const bool ordered = spsi_comm_ordered(M->ctx);
    const int most = many ? MOST_PASSES : MOST_AUTO;
    double least = predicted(M, 1, iterations);
    int best = 1;

    for (int d = 3; d <= most; d += 2) {
        const double t = predicted(M, d, iterations);

        if (2.0 * d * d > (many ? 4 : 1) * condition) break;
        if (t >= least && !ordered) continue;
        least = t;
        best = d;
    }
    return best;
}

/* Returns how many times as fast as Jacobi the polynomial is predicted to be.
 * Graphs, whose null space is known, need fewer iterations than their condition
 * suggests, and then no degree saves more. */
static double predicted_gain(const struct chebyshev *m, double condition)
{
    const sps_precond *M = &m->super;
    const double least = (SPS_HARDNESS_POLYNOMIAL - 1) * m->degree / 1.15;
    double J = needed(condition), K = J;

    if (m->null && condition < SPS_HARDNESS_DEEP) {
        J = spsi_hardness_iterations(M->n, M->width, condition);
        K = m->degree > 1 ? fmax(J, least) : J;
    }
    return predicted(M, 1, J) / predicted(M, m->degree, K);
}

/* Chooses the degree.  With preconditioner auto (`optional`) the gain must be
 * certain: predictions are reliable if they are at least 1.2, on a CPU at least
 * 1.25. */
static sps_status choose_degree(struct chebyshev *m, double condition,
                                bool optional)
{
    sps_precond *M = &m->super;
    sps_status st = SPS_OK;
    const double least = M->ctx->opt.place == SPS_CUDA ? 1.2 : 1.25;
    double degree, gain;

    /* The predictions of the processes may differ: all use the degree and the
     * gain of the first process. */
    degree = m->automatic ? best_degree(M, condition) : m->degree;
    SPS_TRY(spsi_comm_first(M->ctx, &degree));
    m->degree = (int)degree;
    gain = predicted_gain(m, condition);
    SPS_TRY(spsi_comm_first(M->ctx, &gain));
    SPS_REQUIRE(M->ctx, !optional || (gain >= least &&
                                      !spsi_comm_ordered(M->ctx)), SPS_EUNFIT,
                "chebyshev is not predicted to be faster than jacobi");
    if (optional && m->upper > 0)
        spsi_note(M->ctx, "preconditioner auto: chebyshev of degree %d, since "
                  "the condition of D^-1 A is at least %.0f, predicted to be "
                  "%.1f times as fast as jacobi", m->degree, condition, gain);
fail:
    return st;
}

/* Sets the upper bound, the degree and the roots.  The condition from the Ritz
 * values is a lower bound of that of D^-1 A.  It is limited to 1e6, also if the
 * smallest Ritz value is zero, since 28 steps cannot distinguish that from 1e-6
 * of the largest. */
static sps_status set_interval(struct chebyshev *m, bool optional)
{
    sps_status st = SPS_OK;
    sps_lanczos l;
    double condition = 1;

    SPS_TRY(sps_block_random(m->R, 7));
    SPS_TRY(spsi_nullspace_project(m->null, m->R));
    SPS_TRY(spsi_lanczos(m->super.A, m->inverse, m->R, m->P, m->Q, m->deadline,
                         optional ? 1 : LANCZOS_LEAST, &l));
    SPS_REQUIRE(m->super.ctx, !optional || !l.cut, SPS_EUNFIT,
                "chebyshev: the condition of D^-1 A could not be estimated in "
                "a tenth of the time limit");
    m->upper = l.largest > 0 && isfinite(l.largest) ? MARGIN * l.largest : 1;
    if (l.largest > 0 && isfinite(l.largest))
        condition = fmin(1e6, l.largest / fmax(l.smallest, 1e-6 * l.largest));
    SPS_TRY(choose_degree(m, condition, optional));
    m->super.diagonal = m->degree == 1 ? m->first : NULL;
    m->super.products = m->degree - 1;
    m->lower = m->upper / (2.0 * m->degree * m->degree);
    set_roots(m);
    SPS_TRY(spsi_axpby(1 / m->root[0], m->inverse, 0.0, m->first));
fail:
    return st;
}

/* Fails if all but FEW_ROWS rows are strongly dominant (spsi_matrix_kinds): but
 * for as many eigenvalues as there are other rows, the condition of D^-1 A is
 * at most 5 then, and no polynomial is faster than Jacobi. */
static sps_status require_hard(const struct chebyshev *m)
{
    const sps_operator *A = m->super.A;
    sps_row_kinds k;
    sps_status st = SPS_OK;

    if (!A->A || A->ranks) return st;
    SPS_TRY(spsi_matrix_kinds(A, false, &k));
    SPS_REQUIRE(A->ctx, A->n - k.strong > FEW_ROWS, SPS_EUNFIT,
                "chebyshev is not predicted to be faster than jacobi, since "
                "nearly all rows are strongly diagonally dominant");
fail:
    return st;
}

/* Returns the columns of the blocks of the Lanczos process. */
static int lanczos_width(int width)
{
    return width < SPS_LANCZOS_WIDTH ? width : SPS_LANCZOS_WIDTH;
}

static int64_t room(int width)
{
    return spsi_block_ld(width) + 3 * spsi_block_ld(lanczos_width(width)) + 2;
}

/* Fails if A is streamed to a GPU that would not have room for the three blocks
 * that block_cg needs beside X and B (driver/parked.c) and those made here:
 * jacobi needs one column. */
static sps_status require_room(const sps_precond *M)
{
    const int64_t columns = 3 * spsi_block_ld(M->width) + room(M->width);
    const size_t bytes = (size_t)(columns * M->n) * sizeof(double);
    sps_status st = SPS_OK;
    bool enough;

    if (spsi_operator_copy_seconds(M->A, M->width, 1) <= 0) return st;
    SPS_TRY(spsi_has_room(M->ctx, bytes / 2, &enough));
    SPS_REQUIRE(M->ctx, enough, SPS_EUNFIT, "chebyshev: the GPU has no room "
                "for %zu bytes of blocks", bytes);
fail:
    return st;
}

static sps_status build(sps_precond *M, const sps_options *opt)
{
    struct chebyshev *m = (struct chebyshev *)M;
    const int width = lanczos_width(M->width);
    const bool optional = !strcmp(opt->precond, "auto");
    sps_status st = SPS_OK;

    SPS_REQUIRE(M->ctx, opt->degree >= 0 && opt->degree <= MOST, SPS_EINVAL,
                "chebyshev: degree=%d; 1 to %d are possible, and 0 chooses the "
                "degree", opt->degree,
                MOST);
    m->automatic = opt->degree == 0;
    m->degree = opt->degree;
    m->deadline = opt->max_seconds <= 0 ? 0 : spsi_agreed_now(M->ctx) +
                                              LANCZOS_SHARE * opt->max_seconds;
    /* Returns SPS_EUNFIT if there is no gain even with the largest
     * condition. */
    if (optional) SPS_TRY(choose_degree(m, 1e6, true));
    if (optional) SPS_TRY(require_hard(m));
    if (optional) SPS_TRY(require_room(M));
    SPS_TRY(spsi_reserve(M->ctx, M->n, M->width));
    SPS_TRY(spsi_own_block(&M->own, M->n, 1, &m->inverse));
    SPS_TRY(spsi_own_block(&M->own, M->n, 1, &m->first));
    SPS_TRY(spsi_own_block(&M->own, M->n, M->width, &m->other));
    SPS_TRY(spsi_own_block(&M->own, M->n, width, &m->P));
    SPS_TRY(spsi_own_block(&M->own, M->n, width, &m->R));
    SPS_TRY(spsi_own_block(&M->own, M->n, width, &m->Q));
    if (optional) SPS_TRY(spsi_nullspace_create(M->A, width, opt, &m->null));
    SPS_TRY(set_diagonal(m));
    SPS_TRY(set_interval(m, optional));
fail:
    return st;
}

static sps_status update(sps_precond *M)
{
    struct chebyshev *m = (struct chebyshev *)M;
    sps_status st = SPS_OK;

    m->deadline = 0;
    SPS_TRY(set_diagonal(m));
    SPS_TRY(set_interval(m, false));
fail:
    return st;
}

/* The iterates alternate between Z and `other`; the last one is in Z. */
static sps_status apply(const sps_precond *M, const sps_block *R, sps_block *Z)
{
    const struct chebyshev *m = (const struct chebyshev *)M;
    sps_block *now = m->degree % 2 ? Z : m->other;
    sps_block *next = m->degree % 2 ? m->other : Z, *spare;
    sps_epilogue end[MOST];
    sps_spmm_args args[MOST];
    sps_status st = SPS_OK;

    spsi_block_narrow(m->other, R->k);
    SPS_TRY(spsi_scale_rows(m->first, R, now));
    for (int i = 1; i < m->degree; i++) {
        double f = 1 / m->root[i];

        end[i] = (sps_epilogue){ .D = m->inverse, .W = R, .gamma = f,
                                 .delta = 1 };
        args[i] = (sps_spmm_args){ .alpha = -f, .X = now, .Y = next,
                                   .epilogue = &end[i] };
        spare = now;
        now = next;
        next = spare;
    }
    SPS_TRY(spsi_operator_apply_sequence(M->A, args + 1, m->degree - 1));
fail:
    return st;
}

static void destroy(sps_precond *M)
{
    spsi_nullspace_destroy(&((struct chebyshev *)M)->null);
}

SPS_DEFINE(sps_precond_type, spsi_precond_chebyshev) = {
    .name = "chebyshev", .symmetric = true,
    .needs = SPS_NEEDS_CSR | SPS_DIAGONAL_ONLY | SPS_READS_THERE,
    .ranks = SPS_RANKS_SAME,
    .size = sizeof(struct chebyshev),
    .build = build, .update = update, .apply = apply, .destroy = destroy,
    .room = room,
};
