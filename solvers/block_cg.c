/* SPDX-License-Identifier: BSD-3-Clause */
/* block_cg.c - block conjugate gradients without breakdown, for SPD A.
 *
 * O'Leary, Linear Algebra Appl. 29 (1980), with the directions of Ji and Li,
 * BIT 57 (2017): the search block is replaced by a well-conditioned basis of
 * its span, so that dependent right-hand sides and columns that converge early
 * only reduce its width.  One step, P of r columns, X and R of k:
 *
 *     Q = A P;   a = (P'Q)^-1 P'R;   X += P a;   R -= Q a;
 *     Z = M R;   b = -(P'Q)^-1 Q'Z;  P = orth(Z + P b).
 *
 * R always equals the true residual up to rounding, whatever was dropped from
 * P: dropping a direction can cost iterations, but not accuracy.  On hard
 * systems it costs many, so that P keeps directions down to 1e-10 of the
 * largest (doc/log/block-cg-rank.md).
 *
 * Where M gives floats (multigrid) P is rounded to floats and kept, and X += P a
 * is put off: the sum over up to KEPT steps is formed when X is needed, from
 * half the bytes and in one pass, as long as residuals fall.  Q is A times the
 * rounded P, so that R is the residual of X up to rounding in doubles whatever P
 * is.  Columns of P are as long as M leaves them: the step does not depend on
 * it.
 *
 * A step in n x k block reads and writes (doc/numerics.md):
 *   SpMM 2 | P'Q, P'R 3 | R 3 | X 3 | Z = D^-1 R 2, none if M = c I
 *   | Q'Z 2 | Z + P b 3
 *   | orth 2, only if the condition of P requires it;
 * with P kept: X 1/2 and 2 for each sum | Q'Z 1.5 | Z + P b 3. */
#include "driver/linear.h"

#include <float.h>
#include <math.h>

#include "core/comm.h"
#include "core/timer.h"
#include "block/basis.h"
#include "block/single.h"
#include "driver/fused_cg.h"

/* P is orthonormalised when the condition of its unit columns exceeds
 * CONDITION, in two passes, since one leaves an error of eps condition^2.  In
 * elasticity the condition stays between 1e3 and 1e4: with a limit of 1e3
 * nearly every step orthonormalised and so synchronised with the host (24^3 on
 * an H200: 170 us an iteration, with 1e4 70 us; 122 iterations with both). */
#define CONDITION 1e4

enum {
    KEPT = 12,          /* directions kept, at most */
    PLAIN = 64          /* see sound() */
};

struct block_cg {
    sps_small *G;       /* P'Q, r x r */
    sps_small *C;       /* P'R, then a; Q'Z, then b: r x k */
    sps_small *F;       /* r x r scratch: factor, or eigenvectors */
    sps_small *S;       /* P'P, k x k */
    sps_small *T;       /* k x r' */
    sps_small *V;       /* r x k scratch */
    sps_small *norm2;   /* 1 x k */
    double *length;     /* r: 1 / ||p_i|| */
    double *w;          /* r: eigenvalues of the scaled G */
    int width;          /* of P in the previous step */
    bool pseudo;        /* G is inverted through its eigenvalues */
    sps_fused_cg *steps;   /* fused steps of the backend, or NULL */
    bool ready;         /* the fused steps have C = P'R */
    bool fused_P;       /* P is from a fused step: S and length are not
                           current */
    bool behind;        /* P is that of the last step, and G, F and Q are its:
                           the next step replaces it first */
    int why;            /* why the fused steps stopped: SPS_FUSED_... */
    sps_basis *kept;    /* P of past steps in floats, that of this one behind
                           them; NULL: no room for them, or not wanted */
    sps_small *H;       /* their a, one under the other */
    int count;          /* steps that X does not have yet */
    bool floats;        /* P is kept: since start, until a residual rises */
};

/* Whether P may be kept. */
static bool keeps(const sps_linear *s)
{
    return s->M && s->M->gives_floats && !s->made.null && s->columns >= 2 &&
           s->columns <= SPS_SINGLE_WIDEST && !spsi_comm_many(s->ctx);
}

/* Without device memory for the directions X is updated by each step. */
static sps_status set_up_kept(sps_linear *s, struct block_cg *m)
{
    const int k = s->columns;
    sps_status st;

    if (!keeps(s)) return SPS_OK;
    SPS_TRY(spsi_own_small(&s->made.own, KEPT * k, k, &m->H));
    st = spsi_own_basis(&s->made.own, s->n, k, KEPT, SPS_F32, &m->kept);
    if (st == SPS_EDEVMEM) return SPS_OK;
    if (st == SPS_OK) st = spsi_basis_square(m->kept);
fail:
    return st;
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
    SPS_TRY(set_up_kept(s, m));
fail:
    return st;
}

/* *view: the floats of the present P, r columns.  Before the first of a sum the
 * stack takes the width of R, so that its rows are as close as those that M
 * works on. */
static void kept_view(const sps_linear *s, struct block_cg *m, int r,
                      sps_block *view)
{
    if (m->count == 0) {
        spsi_basis_narrow(m->kept, s->k);
        m->kept->all->ld = spsi_block_ld(s->k);
        spsi_small_shape(m->H, KEPT * s->k, s->k);
        spsi_small_clear(m->H);
    }
    spsi_basis_block(m->kept, m->count, view);
    spsi_block_narrow(view, r);
}

/* X += the sum of P a over the steps that it does not have yet. */
static sps_status settle(sps_linear *s, void *method)
{
    struct block_cg *m = method;
    sps_status st = SPS_OK;

    if (m->count == 0) return SPS_OK;
    spsi_phase_begin(s->ctx, SPS_PHASE_GRAM);
    st = spsi_basis_update(1.0, m->kept, m->count, m->H, true, &s->X, NULL);
    spsi_phase_end(s->ctx, SPS_PHASE_GRAM);
    m->count = 0;
    return st;
}

/* A residual rises, and X must be stored before the step: its P is kept behind
 * the steps of the sum, not where the next sum begins.  Until the next start X
 * is updated by each step, since more residuals will rise. */
static sps_status go_on_in_doubles(sps_linear *s, struct block_cg *m)
{
    const sps_status st = settle(s, m);

    m->floats = false;
    return st;
}

/* Notes the step X += P a, of which P is kept already. */
static sps_status put_off(sps_linear *s, struct block_cg *m,
                          const sps_small *a)
{
    const int first = m->count * s->k;

    for (int j = 0; j < a->cols; j++)
        for (int i = 0; i < a->rows; i++)
            *spsi_small_at(m->H, first + i, j) = *spsi_small_at(a, i, j);
    return ++m->count == KEPT ? settle(s, m) : SPS_OK;
}

/* Rounds a new basis of P to floats. */
static sps_status round_directions(const sps_linear *s, struct block_cg *m,
                                   sps_block *P)
{
    sps_block view;
    sps_status st;

    kept_view(s, m, P->k, &view);
    SPS_TRY(spsi_copy(P, &view));
    SPS_TRY(spsi_copy(&view, P));
fail:
    return st;
}

/* P = P T, narrowed to the rank. */
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

/* From S = P'P: T, so that P T is orthonormal, its rank, and length_i = 1 /
 * ||p_i||; sure: for a first pass, as in spsi_small_uncover; NULL for the last
 * one. */
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
 * steps in between. */
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

/* Whether the unit columns of P are well-conditioned, from S = P'P with at most
 * PLAIN columns; then length is set.  With L L' = D S D, D = diag(length), the
 * square of their condition is at most r trace((L L')^-1), because no eigenvalue
 * of a matrix of unit diagonal exceeds r.  Where that does not suffice
 * eigenvalues decide, which take longer. */
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
    for (int c = 0; c < r; c++)               /* w: column c of L^-1 */
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

    if (sound(m)) {
        s->width = P->k;
        return SPS_OK;
    }
    SPS_TRY(basis(s, m, &rank, &sure, &condition));
    if (!s->stop && (rank < P->k || condition > CONDITION)) {
        SPS_TRY(apply_basis(s, P, m->T, rank));
        SPS_TRY(spsi_gram(P, P, m->S));
        drop_small(s, m, sure);
        SPS_TRY(basis(s, m, &rank, NULL, &condition));
        if (!s->stop) SPS_TRY(apply_basis(s, P, m->T, rank));
        if (!s->stop && m->floats) SPS_TRY(round_directions(s, m, P));
        for (int i = 0; i < rank; i++) m->length[i] = 1;
    }
    s->width = P->k;
fail:
    return st;
}

/* Whether fused steps can be used, and their operands. */
static bool fused(sps_linear *s, const struct block_cg *m,
                  sps_fused_cg_task *t)
{
    return spsi_linear_fused(s, s->work[0], s->work[1], t) &&
           spsi_fused_cg_serve(m->steps, t);
}

static sps_status start(sps_linear *s, void *method)
{
    struct block_cg *m = method;
    sps_block *P = s->work[0], view;
    sps_fused_cg_task t;
    sps_status st = SPS_OK;

    m->ready = m->fused_P = m->behind = false;
    m->why = 0;
    m->width = s->width = s->k;
    m->count = 0;
    m->floats = m->kept && keeps(s);
    spsi_block_narrow(P, s->k);
    if (m->floats) {
        kept_view(s, m, s->k, &view);
        SPS_TRY(spsi_linear_precondition(s, &s->R, &view));
        SPS_TRY(spsi_copy(&view, P));
    } else {
        SPS_TRY(spsi_linear_precondition(s, &s->R, P));
    }
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

/* Fused steps only bound the condition of P (SPS_FUSED_BASIS): this one
 * computes it and orthonormalises P where necessary. */
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

/* X and R were permuted or narrowed: C must be computed again. */
static sps_status permute(sps_linear *s, void *method, const int *from,
                          int count)
{
    (void)s;
    (void)from;
    (void)count;
    ((struct block_cg *)method)->ready = false;
    return SPS_OK;
}

/* All directions have zero curvature up to rounding.  If A is semidefinite,
 * ||A p||^2 <= ||A|| p'A p: then A P is zero up to rounding, and P lies in the
 * null space.  A longer A p shows that A is indefinite, such as [0 1; 1 0]. */
static sps_status flat(sps_linear *s, struct block_cg *m)
{
    const sps_block *Q = s->work[2];
    const double small = 16e3 * DBL_EPSILON * s->norm_A * s->norm_A;
    sps_status st = spsi_gram(Q, Q, m->S);

    s->stop = SPS_STOP_SINGULAR;
    for (int i = 0; st == SPS_OK && i < Q->k; i++)
        if (m->length[i] * m->length[i] * *spsi_small_at(m->S, i, i) > small)
            s->stop = SPS_STOP_INDEFINITE;
    return st;
}

/* Eigenvalues of D G D, D = diag(length), vectors in F.  A negative one beyond
 * rounding shows that A is indefinite: v'A v < 0 for a v of norm about one.
 * Directions with eigenvalues at rounding level are dropped. */
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
    if (m->w[0] < -1e3 * DBL_EPSILON * s->norm_A)
        s->stop = SPS_STOP_INDEFINITE;
    else if (!(m->w[r - 1] > 1e3 * DBL_EPSILON * s->norm_A))
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

/* C = D V w^+ V' D C. */
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

/* C = G^-1 C by Cholesky; by eigenvalues if that fails. */
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

/* R -= Q a, X += P a with a = (P'Q)^-1 P'R. */
static sps_status advance(sps_linear *s, struct block_cg *m,
                          const sps_block *P, const sps_block *Q)
{
    sps_status st = SPS_OK;

    m->pseudo = false;
    spsi_phase_begin(s->ctx, SPS_PHASE_GRAM);
    st = spsi_gram_pair(P, Q, &s->R, m->G, m->C);
    spsi_phase_end(s->ctx, SPS_PHASE_GRAM);
    if (st != SPS_OK) return st;
    spsi_small_symmetrise(m->G);
    SPS_TRY(solve_gram(s, m));
    if (s->stop) return st;
    spsi_phase_begin(s->ctx, SPS_PHASE_GRAM);
    spsi_small_shape(m->norm2, 1, s->k);
    st = spsi_subtract(Q, m->C, &s->R, m->norm2);
    for (int p = 0; p < s->k; p++) m->norm2->v[p] = sqrt(m->norm2->v[p]);
    if (st == SPS_OK && m->floats && spsi_best_due(s, m->norm2->v))
        st = go_on_in_doubles(s, m);
    if (st == SPS_OK) st = spsi_best_update(s, m->norm2->v);
    if (st == SPS_OK && !s->stop)
        st = m->floats ? put_off(s, m, m->C)
                       : spsi_mul_small(1.0, P, m->C, 1.0, &s->X);
    spsi_phase_end(s->ctx, SPS_PHASE_GRAM);
fail:
    return st;
}

/* *Z_p = M R, in `room` or, where P is kept, in floats in `view`; C = -Q'Z. */
static sps_status turn(sps_linear *s, struct block_cg *m, const sps_block *Q,
                       sps_block *room, sps_block *view, const sps_block **Z_p)
{
    sps_status st = SPS_OK;

    if (m->floats) {
        kept_view(s, m, s->k, view);
        *Z_p = view;
        SPS_TRY(spsi_linear_precondition(s, &s->R, view));
    } else {
        spsi_block_narrow(room, s->k);
        SPS_TRY(spsi_linear_direction(s, &s->R, room, Z_p));
    }
    spsi_phase_begin(s->ctx, SPS_PHASE_GRAM);
    st = m->floats ? spsi_gram(*Z_p, Q, m->T) : spsi_gram(Q, *Z_p, m->C);
    spsi_phase_end(s->ctx, SPS_PHASE_GRAM);
    if (st != SPS_OK) return st;
    if (m->floats) spsi_small_shape(m->C, Q->k, s->k);
    for (int j = 0; j < m->C->cols; j++)
        for (int i = 0; i < m->C->rows; i++)
            *spsi_small_at(m->C, i, j) =
                -*(m->floats ? spsi_small_at(m->T, j, i)
                             : spsi_small_at(m->C, i, j));
fail:
    return st;
}

/* P = orth(Z + P b) with b = -(P'Q)^-1 Q'Z. */
static sps_status redirect(sps_linear *s, struct block_cg *m, sps_block *P,
                           const sps_block *Q, sps_block *room)
{
    sps_status st = SPS_OK;
    const sps_block *Z;
    sps_block view;

    SPS_TRY(turn(s, m, Q, room, &view, &Z));
    SPS_TRY(solve_gram(s, m));
    if (s->stop) return st;
    spsi_phase_begin(s->ctx, SPS_PHASE_GRAM);
    st = spsi_combine(Z, m->C, P, m->S);
    spsi_phase_end(s->ctx, SPS_PHASE_GRAM);
    if (st == SPS_OK) st = orth(s, m, P);
fail:
    return st;
}

/* P of this step: of the last one, unless start or a fused step made it.  Not
 * made before it is needed, because M is applied for it: with multigrid that is
 * most of a step, which converged columns do not have to pay. */
static sps_status take_directions(sps_linear *s, struct block_cg *m,
                                  sps_block *P)
{
    const bool behind = m->behind;

    m->behind = false;
    if (behind) return redirect(s, m, P, s->work[2], s->work[1]);
    return m->fused_P ? refresh_basis(s, m, P) : SPS_OK;
}

static sps_status step(sps_linear *s, void *method)
{
    struct block_cg *m = method;
    sps_block *P = s->work[0], *Q = s->work[2];
    sps_status st;

    SPS_TRY(take_directions(s, m, P));
    if (s->stop) return st;
    m->ready = false;
    m->why = 0;
    m->width = P->k;
    spsi_block_narrow(Q, P->k);
    SPS_TRY(spsi_linear_apply(s, P, Q));
    SPS_TRY(advance(s, m, P, Q));
    m->behind = !s->stop;
fail:
    return st;
}

/* Up to *count fused steps.  *taken = 0 where the fused steps cannot be used,
 * or P'Q is not numerically positive definite: step() takes that step. */
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
    if (m->behind) SPS_TRY(take_directions(s, m, P));
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
