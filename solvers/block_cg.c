/* SPDX-License-Identifier: BSD-3-Clause */
/* block_cg.c - block conjugate gradients without breakdown, for SPD A.
 *
 * O'Leary, Linear Algebra Appl. 29 (1980), with the directions of Ji and Li,
 * BIT 57 (2017): the search block is replaced by a well-conditioned basis of
 * its span, so that dependent right-hand sides and columns that converge early
 * only reduce its width.  In one step, where P has r columns and X and R have
 * k:
 *
 *     Q = A P;   a = (P'Q)^-1 P'R;   X += P a;   R -= Q a;
 *     Z = M R;   b = -(P'Q)^-1 Q'Z;  P = orth(Z + P b).
 *
 * Over several processes a step sums twice (joined.h): P'P with P'Q and P'R,
 * and the norms of R with Q'Z, where convergence is not near.  So Q = A P is
 * computed before the condition of P is known, and again if P must be replaced,
 * and Z before it is known whether there is a next step.
 *
 * R always equals the true residual up to rounding, whatever was dropped from
 * P: dropping a direction can cost iterations, but not accuracy.  On hard
 * systems it costs many iterations, so P keeps directions down to 1e-10 of the
 * largest (doc/log/block-cg-rank.md).
 *
 * Where M returns single precision (multigrid), P is kept in it
 * (float_directions.h).  Where M can keep what it needs of R (multigrid on a
 * GPU), it does so in the pass that forms R, and need not read R again.
 *
 * A step in n x k block reads and writes (doc/numerics.md):
 *   SpMM 2 | P'Q, P'R 3 | R 3 | X 3 | Z = D^-1 R 2, none if M = c I
 *   | Q'Z 2 | Z + P b 3
 *   | orth 2, only if the condition of P requires it;
 * with P kept: SpMM 1.5 | P'Q, P'R 2.5 | X 1/2 per step and 2 for each sum (1
 *   for the first one from X = 0)
 *   | Q'Z 1.5 | Z + P b 1.5. */
#include "driver/linear.h"

#include <float.h>
#include <math.h>

#include "block/joined.h"
#include "core/timer.h"
#include "driver/fused_cg.h"
#include "solvers/float_directions.h"

/* P is orthonormalised when the condition of its unit columns exceeds
 * CONDITION.  This takes two passes, since one leaves an error of eps
 * condition^2.  In elasticity the condition stays between 1e3 and 1e4: with a
 * limit of 1e3 nearly every step orthonormalised and so synchronised with the
 * host (24^3 grid on an H200: 170 us an iteration, with 1e4 70 us; 122
 * iterations with both). */
#define CONDITION 1e4

/* Where some residual has fallen less in a step, the next one may raise it,
 * which can cost the Z that was computed before the norms were known. */
#define STEADY 0.8

enum { PLAIN = 64 };    /* largest number of columns for sound() */

struct block_cg {
    sps_small *G;       /* P'Q, r x r */
    sps_small *C;       /* P'R, then a; later Q'Z, then b: r x k */
    sps_small *F;       /* r x r scratch: factor, or eigenvectors */
    sps_small *S;       /* P'P, k x k */
    sps_small *T;       /* transformation of a basis, k x r' */
    sps_small *V;       /* r x k scratch */
    sps_small *norm2;   /* 1 x k */
    double *length;     /* r elements: 1 / ||p_i|| */
    double *w;          /* r elements: eigenvalues of the scaled G */
    int width;          /* columns of P in the previous step */
    bool pseudo;        /* G is inverted through its eigenvalues */
    sps_fused_cg *steps;   /* fused steps of the backend, or NULL */
    bool ready;         /* the fused steps have computed C = P'R */
    bool fused_P;       /* P is from a fused step: S and length are not up to
                           date */
    bool behind;        /* P, G, F and Q are those of the last step; the next
                           step first computes its own P */
    int why;            /* why the fused steps stopped: bits SPS_FUSED_... */
    sps_float_directions floats;
    bool met;           /* M has kept what it needs of the present R */
    sps_joined *joined; /* room for sums over several processes, or NULL */
    sps_small late;     /* of them: P'P, if `unchecked` */
    bool unchecked;     /* the condition of P is not known */
    bool kept;          /* orthonormalisation left the last P unchanged */
    sps_block view;     /* Z in single precision */
    const sps_block *Z; /* M R */
    bool ahead;         /* the last step has computed Z, and T = Q'Z or Z'Q */
    double fall, rise;  /* least and largest ratio of a norm to that of the step
                           before */
};

/* Adds to X the steps that have not been added. */
static sps_status settle(sps_linear *s, void *method)
{
    struct block_cg *m = method;

    if (m->floats.on) m->ahead = false;   /* Z is behind P in `kept` */
    return spsi_floats_settle(s, &m->floats);
}

static sps_status setup(sps_linear *s, void *method)
{
    struct block_cg *m = method;
    sps_status st = SPS_OK;
    int k = s->columns;
    sps_owner *own = &s->made.own;
    sps_small **all[] = { &m->G, &m->C, &m->F, &m->S, &m->T, &m->V };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        SPS_TRY(spsi_own_small(own, k, k, all[i]));
    SPS_TRY(spsi_own_small(own, 1, k, &m->norm2));
    SPS_TRY(SPS_OWN(own, k, &m->length));
    SPS_TRY(SPS_OWN(own, k, &m->w));
    SPS_TRY(spsi_fused_cg_create(own, k, false, CONDITION, &m->steps));
    SPS_TRY(spsi_floats_set_up(s, &m->floats));
    SPS_TRY(spsi_own_joined(own, 3 * (int64_t)k * k, &m->joined));
fail:
    return st;
}

/* P = P T, narrowed to `rank` columns. */
static sps_status apply_basis(sps_linear *s, sps_block *P, const sps_small *T,
                              int rank)
{
    sps_block view;
    sps_status st;

    spsi_block_view(P, 0, rank, &view);
    spsi_phase_begin(s->ctx, SPS_PHASE_GRAM);
    st = spsi_mul_small(1.0, P, T, 0.0, &view);
    spsi_phase_end(s->ctx, SPS_PHASE_GRAM);
    spsi_block_narrow(P, rank);
    return st;
}

/* Computes from S = P'P: T such that P T is orthonormal, its rank, and length_i
 * = 1 / ||p_i||.  In the first of two passes, *sure becomes the number of
 * columns of P T that rounding of S does not hide; the others have less than
 * unit length (spsi_small_uncover).  In the last pass sure is NULL. */
static sps_status basis(sps_linear *s, struct block_cg *m, int *rank, int *sure,
                        double *condition)
{
    sps_status st;

    if (!spsi_small_finite(m->S)) {
        s->stop = SPS_STOP_NOT_FINITE;
        return SPS_OK;
    }
    for (int i = 0; i < m->S->rows; i++)
        m->length[i] = 1 / sqrt(*spsi_small_at(m->S, i, i));
    spsi_phase_begin(s->ctx, SPS_PHASE_SMALL);
    st = spsi_small_uncover(m->S, s->opt.rank_tolerance, m->T, rank, sure,
                            condition);
    spsi_phase_end(s->ctx, SPS_PHASE_SMALL);
    if (st == SPS_OK && *rank == 0) s->stop = SPS_STOP_BREAKDOWN;
    return st;
}

/* Between the two passes of orth(), with S = P'P: zeroes row and column i of S,
 * so that the second pass drops p_i, if its singular value is below
 * rank_tolerance, or if m->width others are larger.  In exact arithmetic P is
 * never wider than in the previous step: an additional direction was dropped
 * before or is the rounding of dependent columns, and is not conjugate to the
 * steps since. */
static void drop_small(const sps_linear *s, struct block_cg *m, int sure)
{
    const int r = m->S->rows;
    const double least = s->opt.rank_tolerance / spsi_small_visible(r);

    for (int i = 0; i < r; i++)
        m->w[i] = i < sure ? INFINITY : sqrt(*spsi_small_at(m->S, i, i));
    for (int i = 0; i < r; i++) {
        int before = 0;

        for (int j = 0; j < r; j++)
            before += m->w[j] > m->w[i] || (m->w[j] == m->w[i] && j < i);
        if (before < m->width && !(m->w[i] < least)) continue;
        for (int j = 0; j < r; j++)
            *spsi_small_at(m->S, i, j) = *spsi_small_at(m->S, j, i) = 0;
    }
}

/* Returns whether the unit columns of P are well-conditioned, from S = P'P with
 * at most PLAIN columns; if so, length is set.  With L L' = D S D, D =
 * diag(length), the square of their condition is at most r trace((L L')^-1),
 * because no eigenvalue of a matrix of unit diagonal exceeds r.  Where this
 * bound is too large, the caller computes eigenvalues, which takes longer. */
static bool sound(struct block_cg *m)
{
    const int r = m->S->rows;
    double trace = 0;

    if (r > PLAIN) return false;
    spsi_small_shape(m->F, r, r);
    for (int i = 0; i < r; i++)
        m->length[i] = 1 / sqrt(*spsi_small_at(m->S, i, i));
    for (int j = 0; j < r; j++)
        for (int i = j; i < r; i++) {
            double v = m->length[i] * m->length[j] * *spsi_small_at(m->S, i, j);

            for (int l = 0; l < j; l++)
                v -= *spsi_small_at(m->F, i, l) * *spsi_small_at(m->F, j, l);
            if (i == j && !(v > 0)) return false;
            *spsi_small_at(m->F, i, j) =
                i == j ? sqrt(v) : v / *spsi_small_at(m->F, j, j);
        }
    /* w = column c of L^-1. */
    for (int c = 0; c < r; c++)
        for (int i = c; i < r; i++) {
            double v = i == c;

            for (int l = c; l < i; l++)
                v -= *spsi_small_at(m->F, i, l) * m->w[l];
            m->w[i] = v / *spsi_small_at(m->F, i, i);
            trace += m->w[i] * m->w[i];
        }
    return r * trace <= CONDITION * CONDITION;
}

/* Replaces P by a basis of its span whose unit columns are well-conditioned. */
static sps_status orth(sps_linear *s, struct block_cg *m, sps_block *P)
{
    sps_status st = SPS_OK;
    double condition = 1;
    int rank = 0, sure = 0;

    m->kept = true;
    if (sound(m)) {
        s->width = P->k;
        return SPS_OK;
    }
    SPS_TRY(basis(s, m, &rank, &sure, &condition));
    if (!s->stop && (rank < P->k || condition > CONDITION)) {
        m->kept = false;
        SPS_TRY(spsi_floats_widen(&m->floats, P));
        SPS_TRY(apply_basis(s, P, m->T, rank));
        SPS_TRY(spsi_gram(P, P, m->S));
        drop_small(s, m, sure);
        SPS_TRY(basis(s, m, &rank, NULL, &condition));
        if (!s->stop) SPS_TRY(apply_basis(s, P, m->T, rank));
        if (!s->stop && m->floats.on)
            SPS_TRY(spsi_floats_round(s, &m->floats, P));
        for (int i = 0; i < rank; i++) m->length[i] = 1;
    }
    s->width = P->k;
fail:
    return st;
}

/* Returns whether fused steps can be used, and sets their operands. */
static bool fused(sps_linear *s, const struct block_cg *m,
                  sps_fused_cg_task *t)
{
    return spsi_linear_fused(s, s->work[0], s->work[1], t) &&
           spsi_fused_cg_serve(m->steps, t);
}

static sps_status start(sps_linear *s, void *method)
{
    struct block_cg *m = method;
    sps_block *P = s->work[0];
    sps_fused_cg_task t;
    sps_status st = SPS_OK;

    m->ready = m->fused_P = m->behind = m->met = false;
    m->unchecked = m->ahead = false;
    m->kept = true;
    m->fall = m->rise = 1;
    m->why = 0;
    m->width = s->width = s->k;
    spsi_floats_open(s, &m->floats);
    spsi_block_narrow(P, s->k);
    if (m->floats.on) {
        SPS_TRY(spsi_floats_start(s, &m->floats, m->S));
        return orth(s, m, P);
    }
    SPS_TRY(spsi_linear_precondition(s, &s->R, P));
    if (fused(s, m, &t)) {
        SPS_TRY(spsi_fused_cg_start(m->steps, &t));
        m->ready = m->fused_P = true;
        return SPS_OK;
    }
    SPS_TRY(spsi_gram(P, P, m->S));
    SPS_TRY(orth(s, m, P));
fail:
    return st;
}

/* Fused steps only bound the condition of P and stop with SPS_FUSED_BASIS: this
 * function computes it and orthonormalises P where necessary. */
static sps_status refresh_basis(sps_linear *s, struct block_cg *m, sps_block *P)
{
    sps_status st = SPS_OK;

    m->ready = m->fused_P = false;
    m->why = 0;
    SPS_TRY(spsi_fused_cg_basis(m->steps, m->S));
    SPS_TRY(orth(s, m, P));
fail:
    return st;
}

/* X and R were permuted or narrowed, so C must be computed again. */
static sps_status permute(sps_linear *s, void *method, const int *from,
                          int count)
{
    (void)s;
    (void)from;
    (void)count;
    ((struct block_cg *)method)->ready = false;
    ((struct block_cg *)method)->met = false;
    ((struct block_cg *)method)->ahead = false;
    return SPS_OK;
}

/* Called when all directions have zero curvature up to rounding.  If A is
 * semidefinite, ||A p||^2 <= ||A|| p'A p, so A P is zero up to rounding and P
 * lies in the null space.  A larger A p shows that A is indefinite, such as [0
 * 1; 1 0]. */
static sps_status flat(sps_linear *s, struct block_cg *m)
{
    const sps_block *Q = s->work[2];
    const double small = 16e3 * DBL_EPSILON * s->made.norm_A * s->made.norm_A;
    sps_status st = spsi_gram(Q, Q, m->S);

    s->stop = SPS_STOP_SINGULAR;
    for (int i = 0; st == SPS_OK && i < Q->k; i++)
        if (m->length[i] * m->length[i] * *spsi_small_at(m->S, i, i) > small)
            s->stop = SPS_STOP_INDEFINITE;
    return st;
}

/* Computes the eigenvalues of D G D, D = diag(length), and its eigenvectors in
 * F. An eigenvalue that is negative beyond rounding shows that A is indefinite:
 * v'A v < 0 for a v of norm about one.  Directions with eigenvalues at rounding
 * level are dropped. */
static sps_status decompose(sps_linear *s, struct block_cg *m)
{
    sps_status st = SPS_OK;
    int r = m->G->rows;

    spsi_small_shape(m->F, r, r);
    for (int j = 0; j < r; j++)
        for (int i = 0; i < r; i++)
            *spsi_small_at(m->F, i, j) = m->length[i] * m->length[j] *
                                         *spsi_small_at(m->G, i, j);
    SPS_TRY(spsi_small_eigen(m->F, m->w));
    if (m->w[0] < -1e3 * DBL_EPSILON * s->made.norm_A)
        s->stop = SPS_STOP_INDEFINITE;
    else if (!(m->w[r - 1] > 1e3 * DBL_EPSILON * s->made.norm_A))
        SPS_TRY(flat(s, m));
    m->pseudo = true;
fail:
    return st;
}

static void scale_small_rows(sps_small *C, const double *d)
{
    for (int j = 0; j < C->cols; j++)
        for (int i = 0; i < C->rows; i++) *spsi_small_at(C, i, j) *= d[i];
}

/* C = D V w^+ V' D C, with the eigenvectors V, the eigenvalues w and D =
 * diag(length). */
static sps_status solve_pseudo(struct block_cg *m)
{
    sps_status st = SPS_OK;
    int r = m->G->rows;
    double least = 1e-13 * m->w[r - 1];

    scale_small_rows(m->C, m->length);
    spsi_small_shape(m->V, r, m->C->cols);
    SPS_TRY(spsi_small_mul(1.0, m->F, true, m->C, false, 0.0, m->V));
    for (int j = 0; j < m->C->cols; j++)
        for (int i = 0; i < r; i++)
            *spsi_small_at(m->V, i, j) *= m->w[i] > least ? 1 / m->w[i] : 0;
    SPS_TRY(spsi_small_mul(1.0, m->F, false, m->V, false, 0.0, m->C));
    scale_small_rows(m->C, m->length);
fail:
    return st;
}

/* C = G^-1 C by Cholesky, or by eigenvalues if that fails. */
static sps_status solve_gram(sps_linear *s, struct block_cg *m)
{
    sps_status st = SPS_OK;
    int info = 0;

    if (!spsi_small_finite(m->G) || !spsi_small_finite(m->C)) {
        s->stop = SPS_STOP_NOT_FINITE;
        return SPS_OK;
    }
    spsi_phase_begin(s->ctx, SPS_PHASE_SMALL);
    if (!m->pseudo) {
        SPS_TRY(spsi_small_copy(m->G, m->F));
        SPS_TRY(spsi_small_copy(m->C, m->V));
        SPS_TRY(spsi_small_solve_spd(m->F, m->V, &info));
        if (info == 0) SPS_TRY(spsi_small_copy(m->V, m->C));
        if (info != 0) SPS_TRY(decompose(s, m));
    }
    if (m->pseudo && !s->stop) SPS_TRY(solve_pseudo(m));
fail:
    spsi_phase_end(s->ctx, SPS_PHASE_SMALL);
    return st;
}

/* Z = M R, in `room` or, where P is kept, in single precision after P, and the
 * Gram matrix T of Z and Q: Z'Q if P is kept, otherwise Q'Z.  next: this step's
 * P has not been counted yet. */
static sps_status turn(sps_linear *s, struct block_cg *m, const sps_block *Q,
                       sps_block *room, bool next, sps_small *T)
{
    sps_status st = SPS_OK;

    if (m->floats.on) {
        (next ? spsi_floats_next : spsi_floats_view)(s, &m->floats, s->k,
                                                     &m->view);
        m->Z = &m->view;
        s->M->follows = m->met;
        st = spsi_linear_precondition(s, &s->R, &m->view);
        s->M->follows = m->met = false;
        if (st != SPS_OK) return st;
    } else {
        spsi_block_narrow(room, s->k);
        SPS_TRY(spsi_linear_direction(s, &s->R, room, &m->Z));
    }
    spsi_phase_begin(s->ctx, SPS_PHASE_GRAM);
    st = m->floats.on ? spsi_gram(m->Z, Q, T) : spsi_gram(Q, m->Z, T);
    spsi_phase_end(s->ctx, SPS_PHASE_GRAM);
fail:
    return st;
}

/* R -= Q a with the squared norms of R. */
static sps_status subtract(sps_linear *s, struct block_cg *m,
                           const sps_block *Q, sps_small *norm2)
{
    sps_status st;

    spsi_phase_begin(s->ctx, SPS_PHASE_GRAM);
    st = m->floats.on ? spsi_linear_subtract(s, Q, m->C, norm2, &m->met)
                      : spsi_subtract(Q, m->C, &s->R, norm2);
    spsi_phase_end(s->ctx, SPS_PHASE_GRAM);
    return st;
}

/* Returns whether Z is to be computed before the norms of R are known: all
 * residuals fall; two steps like the last one would not bring the first of the
 * open columns below its threshold; and the driver has no work to do between
 * this step and the next.  The same on all processes. */
static bool goes_on(const sps_linear *s, const struct block_cg *m)
{
    const int next = s->course.iteration + 1;
    double near = INFINITY;

    if (!m->joined || !(m->rise < STEADY) || next >= s->opt.max_iterations ||
        next % s->opt.true_residual_every == 0 ||
        (m->floats.on && m->floats.count + 1 >= SPS_FLOATS_KEPT))
        return false;
    for (int p = 0; p < s->k; p++)
        if (!s->at.done[p])
            near = fmin(near, s->resnorm[p] /
                              (SPS_LINEAR_AIM *
                               s->rhs.threshold[s->at.column[p]]));
    return near * m->fall * m->fall > 1;
}

/* R -= Q a, its norms, and Z and T of the next step, with one sum for both. */
static sps_status subtract_and_turn(sps_linear *s, struct block_cg *m,
                                    const sps_block *Q)
{
    const int r = Q->k, k = s->k;
    sps_small norm2, T;
    sps_status st;

    spsi_joined_open(m->joined);
    norm2 = spsi_joined_small(m->joined, 1, k);
    T = m->floats.on ? spsi_joined_small(m->joined, k, r)
                     : spsi_joined_small(m->joined, r, k);
    SPS_TRY(subtract(s, m, Q, &norm2));
    SPS_TRY(turn(s, m, Q, s->work[1], true, &T));
    SPS_TRY(spsi_joined_sum(m->joined));
    spsi_joined_take(&norm2, m->norm2);
    spsi_joined_take(&T, m->T);
    m->ahead = true;
fail:
    return st;
}

/* Sets fall and rise from the new norms of the residuals, in norm2, and those
 * of the step before, which resnorm still has. */
static void note_fall(const sps_linear *s, struct block_cg *m)
{
    m->fall = HUGE_VAL;
    m->rise = 0;
    for (int p = 0; p < s->k; p++) {
        m->fall = fmin(m->fall, m->norm2->v[p] / s->resnorm[p]);
        m->rise = fmax(m->rise, m->norm2->v[p] / s->resnorm[p]);
    }
}

/* R -= Q a, X += P a with a = (P'Q)^-1 P'R. */
static sps_status advance(sps_linear *s, struct block_cg *m,
                          const sps_block *P, const sps_block *Q)
{
    sps_status st = SPS_OK;

    m->pseudo = false;
    spsi_small_symmetrise(m->G);
    SPS_TRY(solve_gram(s, m));
    if (s->stop) return st;
    spsi_small_shape(m->norm2, 1, s->k);
    SPS_TRY(goes_on(s, m) ? subtract_and_turn(s, m, Q)
                          : subtract(s, m, Q, m->norm2));
    for (int p = 0; p < s->k; p++) m->norm2->v[p] = sqrt(m->norm2->v[p]);
    note_fall(s, m);
    spsi_phase_begin(s->ctx, SPS_PHASE_GRAM);
    if (spsi_best_due(s, m->norm2->v)) {
        m->ahead = false;   /* spsi_best_update uses work[1] */
        if (m->floats.on) st = spsi_floats_end(s, &m->floats, s->work[0]);
    }
    if (st == SPS_OK) st = spsi_best_update(s, m->norm2->v);
    if (st == SPS_OK && !s->stop)
        st = m->floats.on ? spsi_floats_put_off(s, &m->floats, m->C)
                       : spsi_mul_small(1.0, P, m->C, 1.0, &s->X);
    spsi_phase_end(s->ctx, SPS_PHASE_GRAM);
fail:
    return st;
}

/* C = -Q'Z from T. */
static void negate(const sps_linear *s, struct block_cg *m, int r)
{
    spsi_small_shape(m->C, r, s->k);
    for (int j = 0; j < s->k; j++)
        for (int i = 0; i < r; i++)
            *spsi_small_at(m->C, i, j) = m->floats.on
                                             ? -*spsi_small_at(m->T, j, i)
                                             : -*spsi_small_at(m->T, i, j);
}

/* P = Z + P b, and S = P'P. */
static sps_status add_directions(sps_linear *s, struct block_cg *m,
                                 sps_block *P, sps_small *S)
{
    sps_status st;

    if (m->floats.on)
        return spsi_floats_add(s, &m->floats, &m->view, m->C, P, S);
    spsi_phase_begin(s->ctx, SPS_PHASE_GRAM);
    st = spsi_combine(m->Z, m->C, P, S);
    spsi_phase_end(s->ctx, SPS_PHASE_GRAM);
    return st;
}

/* P = orth(Z + P b) with b = -(P'Q)^-1 Q'Z.  With `late`,
 * unless the last P had to be replaced, P is not orthonormalised yet:
 * check_basis does that when P'P has been summed together with P'Q. */
static sps_status redirect(sps_linear *s, struct block_cg *m, sps_block *P,
                           const sps_block *Q, sps_block *room, bool late)
{
    const bool first = m->floats.count == 0;   /* Z may share P's memory */
    sps_status st = SPS_OK;

    if (first) SPS_TRY(spsi_floats_widen(&m->floats, P));
    if (!m->ahead) SPS_TRY(turn(s, m, Q, room, false, m->T));
    m->ahead = false;
    negate(s, m, Q->k);
    SPS_TRY(solve_gram(s, m));
    if (s->stop) return st;
    m->unchecked = late && m->joined && m->kept;
    if (m->unchecked) {
        spsi_joined_open(m->joined);
        m->late = spsi_joined_small(m->joined, s->k, s->k);
        return add_directions(s, m, P, &m->late);
    }
    SPS_TRY(add_directions(s, m, P, m->S));
    st = orth(s, m, P);
fail:
    return st;
}

/* Computes the P of this step from the last one, unless the start or a fused
 * step has made it.  This is put off until P is needed, because it applies M:
 * with multigrid that is most of the time of a step, and is saved when all
 * columns have converged. */
static sps_status take_directions(sps_linear *s, struct block_cg *m,
                                  sps_block *P, bool late)
{
    const bool behind = m->behind;

    m->behind = false;
    if (behind) return redirect(s, m, P, s->work[2], s->work[1], late);
    return m->fused_P ? refresh_basis(s, m, P) : SPS_OK;
}

/* G = P'Q and C = P'R, and S = P'P if P is unchecked. */
static sps_status gram_pair(sps_linear *s, struct block_cg *m,
                            const sps_block *P, const sps_block *Q)
{
    sps_small G, C;
    sps_status st;

    if (m->floats.on) P = &m->floats.single;
    if (!m->joined) return spsi_gram_pair(P, Q, &s->R, m->G, m->C);
    if (!m->unchecked) spsi_joined_open(m->joined);
    G = spsi_joined_small(m->joined, P->k, Q->k);
    C = spsi_joined_small(m->joined, P->k, s->k);
    SPS_TRY(spsi_gram_pair(P, Q, &s->R, &G, &C));
    SPS_TRY(spsi_joined_sum(m->joined));
    spsi_joined_take(&G, m->G);
    spsi_joined_take(&C, m->C);
    if (m->unchecked) spsi_joined_take(&m->late, m->S);
fail:
    return st;
}

/* Q = A P and its Gram matrices. */
static sps_status multiply(sps_linear *s, struct block_cg *m, sps_block *P,
                           sps_block *Q)
{
    sps_status st;

    spsi_block_narrow(Q, P->k);
    SPS_TRY(spsi_floats_multiply(s, &m->floats, P, Q));
    spsi_phase_begin(s->ctx, SPS_PHASE_GRAM);
    st = gram_pair(s, m, P, Q);
    spsi_phase_end(s->ctx, SPS_PHASE_GRAM);
fail:
    return st;
}

/* Orthonormalises a P that was multiplied before, where necessary. */
static sps_status check_basis(sps_linear *s, struct block_cg *m, sps_block *P,
                              sps_block *Q)
{
    sps_status st;

    m->unchecked = false;
    SPS_TRY(orth(s, m, P));
    if (!s->stop && !m->kept) st = multiply(s, m, P, Q);
fail:
    return st;
}

static sps_status step(sps_linear *s, void *method)
{
    struct block_cg *m = method;
    sps_block *P = s->work[0], *Q = s->work[2];
    sps_status st;

    SPS_TRY(take_directions(s, m, P, true));
    if (s->stop) return st;
    m->ready = false;
    m->why = 0;
    SPS_TRY(multiply(s, m, P, Q));
    if (m->unchecked) SPS_TRY(check_basis(s, m, P, Q));
    if (s->stop) return st;
    m->width = P->k;
    SPS_TRY(advance(s, m, P, Q));
    m->behind = !s->stop;
fail:
    return st;
}

/* Performs up to *count fused steps.  *taken = 0 where fused steps cannot be
 * used or P'Q is not numerically positive definite: step() then performs that
 * step. */
static sps_status queue(sps_linear *s, void *method, int *count, int *taken,
                        double *norms)
{
    struct block_cg *m = method;
    sps_block *P = s->work[0];
    sps_fused_cg_task t;
    sps_status st = SPS_OK;
    int width = P->k;

    *taken = 0;
    if (!fused(s, m, &t)) return st;
    if (m->behind) SPS_TRY(take_directions(s, m, P, false));
    if (s->stop) return st;
    for (int attempt = 0; attempt < 2 && *taken == 0; attempt++) {
        if (m->why & SPS_FUSED_BROKEN) s->stop = SPS_STOP_NOT_FINITE;
        if (s->stop || m->why & SPS_FUSED_LENGTHS) return st;
        if (m->fused_P && (!m->ready || m->why & SPS_FUSED_BASIS))
            SPS_TRY(refresh_basis(s, m, P));
        if (s->stop) return st;
        if (!m->ready) SPS_TRY(spsi_fused_cg_begin(m->steps, &t, NULL));
        m->ready = true;
        width = P->k;
        SPS_TRY(spsi_fused_cg_take(m->steps, &t, count, taken, norms, &m->why));
        spsi_linear_count(s, *taken);
    }
    if (*taken > 0) m->fused_P = true;
    if (*taken > 0) m->width = *taken > 1 ? s->k : width;
    if (*taken > 1 || (*taken > 0 && m->why == 0)) s->width = P->k;
fail:
    return st;
}

SPS_DEFINE(sps_linear_type, spsi_solver_block_cg) = {
    .name = "block_cg",
    .mixed = "refinement",
    .needs = SPS_NEEDS_SPD | SPS_NEEDS_SYMMETRIC,
    .size = sizeof(struct block_cg),
    .blocks = 3,
    .setup = setup,
    .start = start,
    .step = step,
    .queue = queue,
    .permute = permute,
    .settle = settle,
};
