/* SPDX-License-Identifier: BSD-3-Clause */
/* refinement.c - iterative refinement for SPD A: corrections by block conjugate
 * gradients in single precision, residuals in double precision.
 *
 *     R = B - A X in double;  A D = R approximately in single;  X += D.
 *
 * See Wilkinson 1963, and Carson and Higham, SIAM J. Sci. Comput. 40 (2018):
 * as long as each cycle makes progress, which is expected up to a condition of
 * about 1e7, the attainable accuracy is that of double precision.  A cycle ends
 * when the recurrence residual has fallen by GAIN: the residual is replaced
 * before the rounding of single precision matters (the reliable updates of
 * Clark et al., Comput. Phys. Comm. 181, 2010).  Directions are kept over
 * the end of a cycle, so that the Krylov space is not lost; if they are
 * unusable, new ones are computed from the residual.
 *
 * Matrix, P, Q, R and D are in single precision, and small products are summed
 * in double precision (single.h).  A step has half the memory traffic of a step
 * of block_cg: 10 blocks in single precision and 8 bytes per entry of A.
 *
 * The method falls back to block_cg in these cases: two consecutive cycles
 * reduce the residual of some column by less than half; a cycle is much longer
 * than another (on ill-conditioned systems directions in single precision lose
 * the Krylov space, and the search starts again); directions are irregular; the
 * preconditioner is not a diagonal.  block_cg then starts from the initial
 * guess, not from the present X, whose residuals lie in the few lowest modes,
 * where columns soon become dependent (elasticity 60 x 4 x 4, 4 columns: 6459
 * iterations from the present X, 291 from zero).  So mixed precision converges
 * wherever double precision does. */
#include "driver/linear.h"

#include <limits.h>
#include <math.h>

#include "block/single.h"
#include "driver/fused_cg.h"
#include "core/timer.h"

#define GAIN 0.01         /* residual reduction at which a cycle ends */
#define POOR 0.5          /* a cycle with less reduction than this made no
                             progress */
/* A cycle is too long if it exceeds PATIENCE steps plus LONGER times the length
 * of the shortest cycle before: CG becomes faster as it proceeds, unless the
 * Krylov space is lost.  The first cycle is no measure: it removes the high
 * modes of a random right-hand side, in about as many steps on any grid
 * (7-point, lengths of cycles on 64^3: 21, 52, 31, 27, 24; on 160^3: 24, more
 * than 106).  The second may take MANY steps, or SECOND times as many as the
 * first.  None may exceed the dimension of the space, n / k. */
#define PATIENCE 10
#define LONGER 2.5
#define SECOND 4.0
#define MANY 400.0
/* P is orthonormalised above this condition of its unit columns.  P in single
 * precision has seven digits; at this condition G = P'AP in double precision
 * still has six correct digits.  Doing so earlier costs four passes and a host
 * synchronisation, and saves no iterations (elasticity 24^3, 16 columns: 182
 * iterations; with CAREFUL 180, and 288 orthonormalisations).  CAREFUL is the
 * limit for systems of few rows. */
#define CONDITION 1e5
#define CAREFUL 1e3
/* A second pass of orthonormalisation follows above this condition. */
#define TWICE 1e3

struct refinement {
    const char *unfit;    /* why single precision is not used, or NULL */
    sps_operator *A;      /* A in single precision */
    int64_t version;      /* version of the values in A */
    sps_block *X, *R, *P, *Q;   /* in single precision; X is the correction D */
    sps_fused_cg *steps;
    sps_small *S, *T;
    double *begun;        /* by right-hand side: residual norms at the start of
                             the cycle */
    double *limit;        /* by position: residual norms at which the cycle
                             ends */
    double *norms;        /* by position: residual norms of one step */
    bool pending;         /* X may be nonzero */
    bool ready;           /* the fused steps have computed C = P'R */
    bool over;            /* the cycle has ended */
    int length;           /* number of steps of this cycle so far */
    int gained;           /* number of previous cycles with progress */
    double allowed;       /* largest number of steps of a cycle, from the
                             lengths of previous ones */
    bool poor;            /* the previous cycle made no progress */
    int why;              /* why the fused steps stopped: bits SPS_FUSED_... */
};
static const char *why_unfit(const sps_linear *s, const struct refinement *m)
{
    if (s->made.null) return "a null space is projected away";
    if (s->M && !s->M->identity && !s->M->diagonal)
        return "the preconditioner is not a diagonal";
    if (!s->A->A) return "the operator is a callback";
    if (s->columns > SPS_SINGLE_WIDEST)
        return "there are more than 32 right-hand sides";
    return m && !m->steps ? "sums are computed by the caller's reduction "
                            "function" : NULL;
}

static sps_status take_blocks(sps_linear *s, struct refinement *m)
{
    sps_block **all[] = { &m->X, &m->R, &m->P, &m->Q };
    /* Single-precision kernels process pairs of columns. */
    const int k = s->columns > 1 ? s->columns : 2;
    sps_status st = SPS_OK;

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        SPS_TRY(spsi_own_block_of(&s->made.own, s->n, k, SPS_F32, all[i]));
fail:
    return st;
}

static sps_status setup(sps_linear *s, void *method)
{
    struct refinement *m = method;
    const int k = s->columns;
    sps_owner *own = &s->made.own;
    sps_options o = s->opt;
    sps_status st = SPS_OK;

    m->unfit = why_unfit(s, NULL);
    if (m->unfit)
        spsi_note(s->ctx, "refinement: block_cg in double precision is used, "
                  "since %s",
                  m->unfit);
    if (m->unfit) return st;
    o.kernel = "auto";
    o.reorder = "none";
    SPS_TRY(spsi_own_operator(own, &m->A));
    st = spsi_operator_single_of(s->A, &o, &m->A);
    if (st == SPS_EUNFIT) {
        spsi_note(s->ctx, "refinement: %s", sps_context_error(s->ctx));
        m->unfit = "the matrix is not suitable for it";
        return SPS_OK;
    }
    if (st != SPS_OK) return st;
    m->version = s->A->version;
    SPS_TRY(take_blocks(s, m));
    SPS_TRY(spsi_fused_cg_create(own, k, false,
                                 s->rows >= SPS_FUSED_LARGE ? CONDITION
                                                            : CAREFUL,
                                 &m->steps));
    SPS_TRY(spsi_own_small(own, k, k, &m->S));
    SPS_TRY(spsi_own_small(own, k, k, &m->T));
    SPS_TRY(SPS_OWN(own, k, &m->begun));
    SPS_TRY(SPS_OWN(own, k, &m->limit));
    SPS_TRY(SPS_OWN(own, k, &m->norms));
fail:
    return st;
}

/* ------------------------------------------------------------------- cycles */

/* Replaces P by a well-conditioned basis of its span. */
static sps_status orth(sps_linear *s, struct refinement *m)
{
    double condition = TWICE + 1;
    sps_status st = SPS_OK;
    int rank;

    for (int pass = 0; pass < 2 && condition > TWICE; pass++) {
        sps_block narrow;

        SPS_TRY(spsi_gram(m->P, m->P, m->S));
        if (!spsi_small_finite(m->S)) {
            s->stop = SPS_STOP_BREAKDOWN;
            return st;
        }
        SPS_TRY(spsi_small_orthonormaliser(m->S, s->opt.rank_tolerance, m->T,
                                           &rank, &condition));
        if (rank == 0) {
            s->stop = SPS_STOP_BREAKDOWN;
            return st;
        }
        spsi_block_view(m->P, 0, rank, &narrow);
        SPS_TRY(spsi_mul_small(1.0, m->P, m->T, 0.0, &narrow));
        spsi_block_narrow(m->P, rank);
    }
    m->ready = false;
fail:
    return st;
}

/* P = orth(M R), from the residual R in double precision. */
static sps_status direct(sps_linear *s, struct refinement *m)
{
    const sps_block *Z;
    sps_status st = SPS_OK;

    spsi_block_narrow(s->work[0], s->k);
    SPS_TRY(spsi_linear_direction(s, &s->R, s->work[0], &Z));
    spsi_block_narrow(m->P, s->k);
    SPS_TRY(spsi_copy(Z, m->P));
    SPS_TRY(orth(s, m));
fail:
    return st;
}

/* Returns the largest number of steps of the cycle. */
static int longest(const sps_linear *s, const struct refinement *m)
{
    const double whole = (double)s->rows / s->columns;

    return (int)fmin(PATIENCE + fmin(m->allowed, whole), INT_MAX - 1);
}

static bool too_long(const sps_linear *s, const struct refinement *m)
{
    return m->length > longest(s, m);
}

/* Updates the limit of later cycles after one that made progress. */
static void update_allowed(struct refinement *m)
{
    const double steps = m->gained > 0 ? LONGER * m->length
                                       : fmax(MANY, SECOND * m->length);

    m->allowed = m->gained < 2 ? steps : fmin(m->allowed, steps);
    m->gained++;
}

/* Returns whether to give up at the end of a cycle, because the cycle was too
 * long, or because this cycle and the one before each left some column with
 * more than half of its residual.  Begins the next cycle. */
static bool no_progress(const sps_linear *s, struct refinement *m, bool first)
{
    bool poor = false, twice;

    for (int p = 0; p < s->k; p++) {
        double *begun = &m->begun[s->at.column[p]];

        poor = poor || (!first && !(s->resnorm[p] <= POOR * *begun));
        *begun = s->resnorm[p];
    }
    twice = (poor && m->poor) || too_long(s, m);
    m->poor = poor;
    if (m->over && !poor) update_allowed(m);
    m->length = 0;
    return twice;
}

/* Copies new values of A to its single-precision copy; they may exceed the
 * range of single precision. */
static sps_status refresh(sps_linear *s, struct refinement *m)
{
    sps_status st = SPS_OK;

    if (m->version == s->A->version) return st;
    st = spsi_operator_single_of_follow(s->A, m->A);
    if (st == SPS_OK) m->version = s->A->version;
    if (st != SPS_EUNFIT) return st;
    spsi_note(s->ctx, "refinement: %s", sps_context_error(s->ctx));
    s->stop = SPS_STOP_BREAKDOWN;
    return SPS_OK;
}

static sps_status start(sps_linear *s, void *method)
{
    struct refinement *m = method;
    const bool first = s->course.iteration == 0;
    sps_status st = SPS_OK;

    if (m->unfit || why_unfit(s, m)) {
        s->stop = SPS_STOP_BREAKDOWN;
        return st;
    }
    if (first) {
        m->poor = m->over = false;
        m->length = m->gained = 0;
        m->allowed = INFINITY;
    }
    if (no_progress(s, m, first)) {
        s->stop = SPS_STOP_STAGNATED;
        return st;
    }
    SPS_TRY(refresh(s, m));
    if (s->stop) return st;
    spsi_block_narrow(m->X, s->k);
    spsi_block_narrow(m->R, s->k);
    SPS_TRY(spsi_block_clear(m->X));
    SPS_TRY(spsi_copy(&s->R, m->R));
    if (first || m->why & SPS_FUSED_LENGTHS) SPS_TRY(direct(s, m));
    m->pending = m->ready = m->over = false;
    m->why = 0;
    s->width = m->P->k;
fail:
    return st;
}

/* --------------------------------------------------------------- iterations */

/* Sets the norms at which the cycle ends. */
static void set_limits(const sps_linear *s, struct refinement *m)
{
    for (int p = 0; p < s->k; p++) {
        const int j = s->at.column[p];

        m->limit[p] = fmax(SPS_LINEAR_AIM * s->rhs.threshold[j],
                           GAIN * m->begun[j]);
    }
}

static bool is_over(const sps_linear *s, const struct refinement *m,
                    const double *norms)
{
    bool all = true;

    for (int p = 0; p < s->k; p++) all = all && norms[p] <= m->limit[p];
    return all;
}

/* Performs up to *count fused steps; *taken is 0 if the directions are
 * unusable. */
static sps_status take(sps_linear *s, struct refinement *m, int *count,
                       int *taken, double *norms)
{
    sps_fused_cg_task t;
    sps_status st = SPS_OK;

    *taken = 0;
    if (m->why & (SPS_FUSED_BASIS | SPS_FUSED_LENGTHS)) SPS_TRY(orth(s, m));
    if (s->stop) return st;
    set_limits(s, m);
    /* This cannot fail: why_unfit() has checked that fused steps fit. */
    (void)spsi_linear_fused(s, m->P, m->Q, &t);
    t.A = m->A;
    t.X = m->X;
    t.R = m->R;
    t.limit = m->limit;
    t.correction = true;
    if (!m->ready) SPS_TRY(spsi_fused_cg_begin(m->steps, &t, NULL));
    /* The steps may call flush, which adds the correction m->X. */
    m->ready = m->pending = true;
    SPS_TRY(spsi_fused_cg_take(m->steps, &t, count, taken, norms, &m->why));
    spsi_linear_count(s, *taken);
    if (*taken == 0) return st;
    m->pending = true;
    m->length += *taken;
    m->over = is_over(s, m, norms + (size_t)(*taken - 1) * (size_t)s->k) ||
              too_long(s, m);
    s->width = m->P->k;
fail:
    return st;
}

/* Queues fused steps, but none after the step by which the cycle becomes too
 * long, so that the end of a cycle does not depend on the number of queued
 * steps. */
static sps_status queue(sps_linear *s, void *method, int *count, int *taken,
                        double *norms)
{
    struct refinement *m = method;
    const int left = longest(s, m) + 1 - m->length;
    sps_status st;

    if (left < *count) *count = left;
    st = take(s, m, count, taken, norms);
    s->renew = m->over;
    return st;
}

static sps_status step(sps_linear *s, void *method)
{
    struct refinement *m = method;
    sps_status st = SPS_OK;
    int one = 1, taken = 0;

    for (int attempt = 0; attempt < 2 && taken == 0 && !s->stop; attempt++)
        SPS_TRY(take(s, m, &one, &taken, m->norms));
    if (s->stop) return st;
    if (taken == 0 || m->why & SPS_FUSED_BROKEN) {
        s->stop = SPS_STOP_BREAKDOWN;
        return st;
    }
    for (int p = 0; p < s->k; p++) s->resnorm[p] = m->norms[p];
    if (m->over) s->renew = true;
fail:
    return st;
}

/* X += D, the correction converted to double precision. */
static sps_status flush(sps_linear *s, void *method)
{
    struct refinement *m = method;
    sps_status st = SPS_OK;

    if (!m->pending) return st;
    SPS_TRY(spsi_axpby(1.0, m->X, 1.0, &s->X));
    SPS_TRY(spsi_block_clear(m->X));
    m->pending = false;
fail:
    return st;
}

SPS_DEFINE(sps_linear_type, spsi_solver_refinement) = {
    .name = "refinement",
    .fallback = "block_cg",
    .from_guess = true,
    .needs = SPS_NEEDS_SPD | SPS_NEEDS_SYMMETRIC | SPS_WANTS_DIAGONAL,
    .size = sizeof(struct refinement),
    .blocks = 2,
    .setup = setup,
    .start = start,
    .step = step,
    .queue = queue,
    .flush = flush,
};
