/* SPDX-License-Identifier: BSD-3-Clause */
/* refinement.c - iterative refinement for SPD A: corrections by block
 * conjugate gradients in single precision, residuals in double.
 *
 *     R = B - A X in doubles;  A D = R approximately in floats;  X += D.
 *
 * Wilkinson 1963; Carson and Higham, SIAM J. Sci. Comput. 40 (2018), for what
 * to expect: the attainable accuracy is that of doubles as long as a cycle
 * gains anything, so about up to a condition of 1e7.  A cycle ends when the
 * recurrence has fallen by GAIN: what floats lose of the truth is brought in
 * before it counts (the reliable updates of Clark et al., Comput. Phys. Comm.
 * 181, 2010).  Directions are kept over the end of a cycle, so that the Krylov
 * space is not given up; where they are lost they come from the residual.
 *
 * Matrix, P, Q, R and D are floats, small products are summed in doubles
 * (single.h): a step moves half the bytes of block_cg's, 10 blocks of floats and
 * 8 bytes an entry of A.
 *
 * What floats cannot do is left to block_cg: cycles that gain less than half, or
 * one much longer than another was (on ill-conditioned systems the directions
 * of floats lose the space that doubles would have kept, and the search for it
 * begins again), directions that are not regular, a preconditioner that is not
 * a diagonal.  It begins from the guess: residuals of the X so far lie in the
 * few lowest modes, where columns soon depend on each other (elasticity
 * 60 x 4 x 4, 4 columns: 6459 iterations from there, 291 from zero).  So mixed
 * precision reaches what doubles reach. */
#include "solver.h"

#include <limits.h>
#include <math.h>

#include "single.h"
#include "steps.h"
#include "timer.h"

#define GAIN 0.01         /* of a cycle */
#define POOR 0.5          /* a cycle that leaves more than that was for nothing */
/* A cycle is too long beyond PATIENCE steps and LONGER times those of the
 * shortest before: conjugate gradients get faster as they go on, unless the
 * space is lost.  The first is no measure, since it ends with the high modes of
 * a random right-hand side, after as many steps on any grid (7-point 64^3: 21,
 * 52, 31, 27, 24; 160^3: 24, more than 106); the second may take MANY, or SECOND
 * times as long.  None may take more than fill the whole space, n / k. */
#define PATIENCE 10
#define LONGER 2.5
#define SECOND 4.0
#define MANY 400.0
/* P is made orthonormal again above this condition of its unit columns: P in
 * floats has seven digits, and G = P'AP in doubles keeps six of them there.  To
 * do so sooner costs four passes and the host's wait and saves no iteration
 * (elasticity 24^3, 16 columns: 182, and with CAREFUL 180 and 288 of these).
 * Small systems: as block_cg.c. */
#define CONDITION 1e5
#define CAREFUL 1e3
/* and twice above this one */
#define TWICE 1e3

struct refinement {
    const char *unfit;    /* why floats are not used; NULL: they are */
    sps_operator *A;      /* in floats */
    int64_t version;      /* of A's values in there */
    sps_block *X, *R, *P, *Q;   /* floats; X: the correction */
    sps_steps *steps;
    sps_solver inner;     /* the system in floats, as steps see it */
    sps_small *S, *T;
    double *begun;        /* by right-hand side: norms at the cycle's begin */
    double *limit;        /* by position: norms at its end */
    double *norms;        /* by position: one step's */
    bool pending;         /* X is not zero */
    bool ready;           /* steps have C = P'R */
    bool over;            /* the cycle is */
    int length;           /* steps of the cycle */
    int gained;           /* cycles before it that gained */
    double allowed;       /* steps, by what they took */
    bool poor;            /* so was the one before */
    int why;              /* steps stopped: SPS_STEPS_... */
};

static const char *name_unfit(const sps_solver *s, const struct refinement *m)
{
    if (s->null) return "a null space is projected away";
    if (s->M && !s->M->identity && !s->M->diagonal)
        return "the preconditioner is not a diagonal";
    if (!s->A->A) return "the operator is a callback";
    if (s->columns > SPS_SINGLE_WIDEST)
        return "there are more than 32 right-hand sides";
    return m && !m->steps ? "sums go through the caller's reduction" : NULL;
}

static sps_status take_blocks(sps_solver *s, struct refinement *m)
{
    sps_block **all[] = { &m->X, &m->R, &m->P, &m->Q };
    const int k = s->columns > 1 ? s->columns : 2;   /* pairs of columns */
    sps_status st = SPS_OK;

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        SPS_TRY(spsi_block_create(s->ctx, s->n, k, SPS_F32, all[i]));
fail:
    return st;
}

static sps_status setup(sps_solver *s, void *method)
{
    struct refinement *m = method;
    const int k = s->columns;
    sps_options o = s->opt;
    sps_status st = SPS_OK;

    m->unfit = name_unfit(s, NULL);
    if (m->unfit)
        spsi_note(s->ctx, "refinement: not in single precision, since %s",
                  m->unfit);
    if (m->unfit) return st;
    o.kernel = "auto";
    o.reorder = "none";
    st = spsi_operator_single_of(s->A, &o, &m->A);
    if (st == SPS_EUNFIT) {
        spsi_note(s->ctx, "refinement: %s", sps_context_error(s->ctx));
        m->unfit = "the matrix does not serve there";
        return SPS_OK;
    }
    if (st != SPS_OK) return st;
    m->version = s->A->version;
    SPS_TRY(take_blocks(s, m));
    SPS_TRY(spsi_steps_create(s->ctx, k, false,
                              s->n >= SPS_STEPS_LARGE ? CONDITION : CAREFUL,
                              &m->steps));
    SPS_TRY(spsi_small_create(s->ctx, k, k, &m->S));
    SPS_TRY(spsi_small_create(s->ctx, k, k, &m->T));
    SPS_TRY(SPS_NEW(s->ctx, k, &m->begun));
    SPS_TRY(SPS_NEW(s->ctx, k, &m->limit));
    SPS_TRY(SPS_NEW(s->ctx, k, &m->norms));
fail:
    return st;
}

/* ------------------------------------------------------------------- cycles */

/* P = a well-conditioned basis of its span. */
static sps_status orth(sps_solver *s, struct refinement *m)
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

/* P = orth(M R), from doubles. */
static sps_status direct(sps_solver *s, struct refinement *m)
{
    const sps_block *Z;
    sps_status st = SPS_OK;

    spsi_block_narrow(s->work[0], s->k);
    SPS_TRY(spsi_solver_direction(s, &s->R, s->work[0], &Z));
    spsi_block_narrow(m->P, s->k);
    SPS_TRY(spsi_copy(Z, m->P));
    SPS_TRY(orth(s, m));
fail:
    return st;
}

/* Steps that the cycle may take. */
static int longest(const sps_solver *s, const struct refinement *m)
{
    const double whole = (double)s->n / s->columns;

    return (int)fmin(PATIENCE + fmin(m->allowed, whole), INT_MAX - 1);
}

static bool too_long(const sps_solver *s, const struct refinement *m)
{
    return m->length > longest(s, m);
}

/* What a cycle that gained allows those behind it. */
static void learn(struct refinement *m)
{
    const double steps = m->gained > 0 ? LONGER * m->length
                                       : fmax(MANY, SECOND * m->length);

    m->allowed = m->gained < 2 ? steps : fmin(m->allowed, steps);
    m->gained++;
}

/* Whether the cycle that ends here was too long, or gained less than half in
 * some column as the one before did; the new one begins. */
static bool useless(const sps_solver *s, struct refinement *m, bool first)
{
    bool poor = false, twice;

    for (int p = 0; p < s->k; p++) {
        double *begun = &m->begun[s->column[p]];

        poor = poor || (!first && !(s->resnorm[p] <= POOR * *begun));
        *begun = s->resnorm[p];
    }
    twice = (poor && m->poor) || too_long(s, m);
    m->poor = poor;
    if (m->over && !poor) learn(m);
    m->length = 0;
    return twice;
}

/* New values of A, which may leave the range of floats. */
static sps_status follow(sps_solver *s, struct refinement *m)
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

static sps_status start(sps_solver *s, void *method)
{
    struct refinement *m = method;
    const bool first = s->iteration == 0;
    sps_status st = SPS_OK;

    if (m->unfit || name_unfit(s, m)) {
        s->stop = SPS_STOP_BREAKDOWN;
        return st;
    }
    if (first) {
        m->poor = m->over = false;
        m->length = m->gained = 0;
        m->allowed = INFINITY;
    }
    if (useless(s, m, first)) {
        s->stop = SPS_STOP_STAGNATED;
        return st;
    }
    SPS_TRY(follow(s, m));
    if (s->stop) return st;
    spsi_block_narrow(m->X, s->k);
    spsi_block_narrow(m->R, s->k);
    SPS_TRY(spsi_block_clear(m->X));
    SPS_TRY(spsi_copy(&s->R, m->R));
    if (first || m->why & SPS_STEPS_LENGTHS) SPS_TRY(direct(s, m));
    m->pending = m->ready = m->over = false;
    m->why = 0;
    s->width = m->P->k;
fail:
    return st;
}

/* ----------------------------------------------------------------- iterations */

/* The norms at which the cycle is over. */
static void set_limits(const sps_solver *s, struct refinement *m)
{
    for (int p = 0; p < s->k; p++) {
        const int j = s->column[p];

        m->limit[p] = fmax(SPS_SOLVER_AIM * s->threshold[j],
                           GAIN * m->begun[j]);
    }
}

static bool is_over(const sps_solver *s, const struct refinement *m,
                    const double *norms)
{
    bool all = true;

    for (int p = 0; p < s->k; p++) all = all && norms[p] <= m->limit[p];
    return all;
}

/* Steps in floats: up to *count of them, 0 where directions are lost. */
static sps_status take(sps_solver *s, struct refinement *m, int *count,
                       int *taken, double *norms)
{
    sps_solver *inner = &m->inner;
    sps_status st = SPS_OK;

    *taken = 0;
    if (m->why & (SPS_STEPS_BASIS | SPS_STEPS_LENGTHS)) SPS_TRY(orth(s, m));
    if (s->stop) return st;
    set_limits(s, m);
    *inner = *s;
    inner->A = m->A;
    inner->X = *m->X;
    inner->R = *m->R;
    inner->limit = m->limit;
    if (!m->ready) SPS_TRY(spsi_steps_begin(inner, m->steps, m->P, NULL));
    m->ready = true;
    SPS_TRY(spsi_steps_take(inner, m->steps, m->P, m->Q, count, taken, norms,
                            &m->why));
    s->applies_A = inner->applies_A;
    s->applies_M = inner->applies_M;
    if (*taken == 0) return st;
    m->pending = true;
    m->length += *taken;
    m->over = is_over(s, m, norms + (size_t)(*taken - 1) * (size_t)s->k) ||
              too_long(s, m);
    s->width = m->P->k;
fail:
    return st;
}

/* No step behind the one by which a cycle gets too long: where it ends does not
 * depend on how many are asked for. */
static sps_status ahead(sps_solver *s, void *method, int *count, int *taken,
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

static sps_status step(sps_solver *s, void *method)
{
    struct refinement *m = method;
    sps_status st = SPS_OK;
    int one = 1, taken = 0;

    for (int attempt = 0; attempt < 2 && taken == 0 && !s->stop; attempt++)
        SPS_TRY(take(s, m, &one, &taken, m->norms));
    if (s->stop) return st;
    if (taken == 0 || m->why & SPS_STEPS_BROKEN) {
        s->stop = SPS_STOP_BREAKDOWN;
        return st;
    }
    for (int p = 0; p < s->k; p++) s->resnorm[p] = m->norms[p];
    if (m->over) s->renew = true;
fail:
    return st;
}

/* X += D. */
static sps_status flush(sps_solver *s, void *method)
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

static void destroy(sps_solver *s, void *method)
{
    struct refinement *m = method;

    sps_operator_destroy(&m->A);
    sps_block_destroy(&m->X);
    sps_block_destroy(&m->R);
    sps_block_destroy(&m->P);
    sps_block_destroy(&m->Q);
    spsi_steps_destroy(&m->steps);
    spsi_small_destroy(&m->S);
    spsi_small_destroy(&m->T);
    spsi_free(s->ctx, m->begun);
    spsi_free(s->ctx, m->limit);
    spsi_free(s->ctx, m->norms);
}

SPS_DEFINE(sps_solver_type, spsi_solver_refinement) = {
    .name = "refinement",
    .fallback = "block_cg",
    .afresh = true,
    .needs = SPS_NEEDS_SPD | SPS_NEEDS_SYMMETRIC | SPS_WANTS_DIAGONAL,
    .size = sizeof(struct refinement),
    .blocks = 2,
    .setup = setup,
    .start = start,
    .step = step,
    .ahead = ahead,
    .flush = flush,
    .destroy = destroy,
};
