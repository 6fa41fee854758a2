/* SPDX-License-Identifier: BSD-3-Clause */
/* block_cg.c - block conjugate gradients without breakdown, for SPD A.
 *
 * O'Leary, Linear Algebra Appl. 29 (1980), with the directions of Ji and Li,
 * BIT 57 (2017): the search block is replaced by a well-conditioned basis of
 * its span, so dependent right-hand sides and columns that converge early
 * only make it narrower.  One step, P of r columns, X and R of k:
 *
 *     Q = A P;   a = (P'Q)^-1 P'R;   X += P a;   R -= Q a;
 *     Z = M R;   b = -(P'Q)^-1 Q'Z;  P = orth(Z + P b).
 *
 * R always equals the true residual up to rounding, whatever was left out of
 * P: dropping a direction can cost iterations, never the truth.  On hard systems
 * it costs many, so that P keeps what is 1e-10 of the rest (doc/numerics.md).
 *
 * A step in n x k block reads and writes (doc/numerics.md):
 *   SpMM 2 | P'Q, P'R 3 | X, R 6 | Z = D^-1 R 2, none where M is a multiple
 *   of I | Q'Z 2 | Z + P b 3
 *   | orth 2, only when the condition of P asks for it. */
#include "solver.h"

#include <float.h>
#include <math.h>

#include "steps.h"
#include "timer.h"

/* P is orthonormalised when the condition of its unit columns passes CONDITION,
 * in two passes, since one leaves an error of eps condition^2.  Vector problems
 * stay between 1e3 and 1e4, and with 1e3 nearly every step waited for the host:
 * elasticity 24^3 on an H200 took 170 us an iteration, and takes 70, 122 of
 * them both times. */
#define CONDITION 1e4

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
    int width;          /* of P in the step before */
    bool pseudo;        /* G is solved through its eigenvalues */
    sps_steps *steps;   /* steps in the place, or NULL */
    bool ready;         /* they have C = P'R */
    bool away;          /* P comes from them: S and length are not here */
    int why;            /* they stopped: SPS_STEPS_... */
};

static sps_status setup(sps_solver *s, void *method)
{
    struct block_cg *m = method;
    sps_status st = SPS_OK;
    int k = s->columns;
    sps_small **all[] = { &m->G, &m->C, &m->F, &m->S, &m->T, &m->V };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        SPS_TRY(spsi_small_create(s->ctx, k, k, all[i]));
    SPS_TRY(spsi_small_create(s->ctx, 1, k, &m->norm2));
    SPS_TRY(SPS_NEW(s->ctx, k, &m->length));
    SPS_TRY(SPS_NEW(s->ctx, k, &m->w));
    SPS_TRY(spsi_steps_create(s->ctx, k, false, CONDITION, &m->steps));
fail:
    return st;
}

/* P = P T, narrowed to the rank. */
static sps_status apply_basis(sps_solver *s, sps_block *P, const sps_small *T,
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

/* With S = P'P: T and rank of the basis, 1 / ||p_i|| in length.  sure: NULL, or
 * a second pass follows (small.h). */
static sps_status basis(sps_solver *s, struct block_cg *m, int *rank, int *sure,
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

/* In S = P'P behind the first pass, clears the columns whose singular values
 * are below the tolerance, and the smallest ones where P would be wider than in
 * the step before.  In exact arithmetic it never is: what comes back had been
 * left out, or is the rounding of dependent columns, and is not conjugate to
 * the steps between. */
static void leave_out(const sps_solver *s, struct block_cg *m, int sure)
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

/* Leaves in P a basis of its span whose unit columns are well conditioned. */
static sps_status orth(sps_solver *s, struct block_cg *m, sps_block *P)
{
    sps_status st = SPS_OK;
    double condition = 1;
    int rank = 0, sure = 0;

    SPS_TRY(basis(s, m, &rank, &sure, &condition));
    if (!s->stop && (rank < P->k || condition > CONDITION)) {
        SPS_TRY(apply_basis(s, P, m->T, rank));
        SPS_TRY(spsi_gram(P, P, m->S));
        leave_out(s, m, sure);
        SPS_TRY(basis(s, m, &rank, NULL, &condition));
        if (!s->stop) SPS_TRY(apply_basis(s, P, m->T, rank));
        for (int i = 0; i < rank; i++) m->length[i] = 1;
    }
    s->width = P->k;
fail:
    return st;
}

static sps_status start(sps_solver *s, void *method)
{
    struct block_cg *m = method;
    sps_block *P = s->work[0];
    sps_status st = SPS_OK;

    m->ready = m->away = false;
    m->why = 0;
    m->width = s->width = s->k;
    spsi_block_narrow(P, s->k);
    SPS_TRY(spsi_solver_precondition(s, &s->R, P));
    if (spsi_steps_serve(s, m->steps)) {
        SPS_TRY(spsi_steps_start(s, m->steps, P));
        m->ready = m->away = true;
        return SPS_OK;
    }
    SPS_TRY(spsi_gram(P, P, m->S));
    SPS_TRY(orth(s, m, P));
fail:
    return st;
}

/* What the host did not see while steps ran without it: the condition of P. */
static sps_status come_back(sps_solver *s, struct block_cg *m, sps_block *P)
{
    sps_status st = SPS_OK;

    m->ready = m->away = false;
    m->why = 0;
    SPS_TRY(spsi_steps_basis(m->steps, m->S));
    SPS_TRY(orth(s, m, P));
fail:
    return st;
}

/* Steps in the place; those that are not regular are left to step(). */
static sps_status ahead(sps_solver *s, void *method, int *count, int *taken,
                        double *norms)
{
    struct block_cg *m = method;
    sps_block *P = s->work[0], *Q = s->work[1];
    sps_status st = SPS_OK;
    int width = P->k;

    *taken = 0;
    if (!spsi_steps_serve(s, m->steps)) return st;
    for (int attempt = 0; attempt < 2 && *taken == 0; attempt++) {
        if (m->why & SPS_STEPS_BROKEN) s->stop = SPS_STOP_NOT_FINITE;
        if (s->stop || m->why & SPS_STEPS_LENGTHS) return st;
        if (m->away && (!m->ready || m->why & SPS_STEPS_BASIS))
            SPS_TRY(come_back(s, m, P));
        if (s->stop) return st;
        if (!m->ready) SPS_TRY(spsi_steps_begin(s, m->steps, P, NULL));
        m->ready = true;
        width = P->k;
        SPS_TRY(spsi_steps_take(s, m->steps, P, Q, count, taken, norms,
                                &m->why));
    }
    if (*taken > 0) m->away = true;
    if (*taken > 0) m->width = *taken > 1 ? s->k : width;
    if (*taken > 1 || (*taken > 0 && m->why == 0)) s->width = P->k;
fail:
    return st;
}

/* X and R got another order or fewer columns: C is no longer theirs. */
static sps_status permute(sps_solver *s, void *method, const int *from,
                          int count)
{
    (void)s;
    (void)from;
    (void)count;
    ((struct block_cg *)method)->ready = false;
    return SPS_OK;
}

/* No direction has curvature beyond rounding.  Where A is semidefinite,
 * ||A p||^2 <= ||A|| p'A p: then A P is as good as zero, and P lies in the
 * null space.  A longer A p says that A is indefinite, as [0 1; 1 0] is. */
static sps_status flat(sps_solver *s, struct block_cg *m)
{
    const sps_block *Q = s->work[1];
    const double small = 16e3 * DBL_EPSILON * s->norm_A * s->norm_A;
    sps_status st = spsi_gram(Q, Q, m->S);

    s->stop = SPS_STOP_SINGULAR;
    for (int i = 0; st == SPS_OK && i < Q->k; i++)
        if (m->length[i] * m->length[i] * *spsi_small_at(m->S, i, i) > small)
            s->stop = SPS_STOP_INDEFINITE;
    return st;
}

/* Eigenvalues of D G D, D = diag(length), vectors in F.  A negative one
 * beyond rounding says that A is indefinite: v'A v < 0 for a v of norm about
 * one.  Directions with eigenvalues of rounding size are left out. */
static sps_status decompose(sps_solver *s, struct block_cg *m)
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

/* C = G^-1 C by Cholesky; by eigenvalues when that fails. */
static sps_status solve_gram(sps_solver *s, struct block_cg *m)
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

/* X += P a, R -= Q a with a = (P'Q)^-1 P'R. */
static sps_status advance(sps_solver *s, struct block_cg *m,
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
    st = spsi_update_pair(P, Q, m->C, &s->X, &s->R, m->norm2);
    spsi_phase_end(s->ctx, SPS_PHASE_GRAM);
    for (int p = 0; p < s->k; p++)
        s->resnorm[p] = sqrt(*spsi_small_at(m->norm2, 0, p));
fail:
    return st;
}

/* P = orth(Z + P b) with b = -(P'Q)^-1 Q'Z. */
static sps_status redirect(sps_solver *s, struct block_cg *m, sps_block *P,
                           const sps_block *Q, sps_block *room)
{
    sps_status st = SPS_OK;
    const sps_block *Z;

    SPS_TRY(spsi_solver_direction(s, &s->R, room, &Z));
    spsi_phase_begin(s->ctx, SPS_PHASE_GRAM);
    st = spsi_gram(Q, Z, m->C);
    spsi_phase_end(s->ctx, SPS_PHASE_GRAM);
    if (st != SPS_OK) return st;
    for (int j = 0; j < m->C->cols; j++)
        for (int i = 0; i < m->C->rows; i++)
            *spsi_small_at(m->C, i, j) *= -1;
    SPS_TRY(solve_gram(s, m));
    if (s->stop) return st;
    spsi_phase_begin(s->ctx, SPS_PHASE_GRAM);
    st = spsi_combine(Z, m->C, P, m->S);
    spsi_phase_end(s->ctx, SPS_PHASE_GRAM);
    if (st == SPS_OK) st = orth(s, m, P);
fail:
    return st;
}

static sps_status step(sps_solver *s, void *method)
{
    struct block_cg *m = method;
    sps_block *P = s->work[0], *Q = s->work[1], *Z = s->work[2];
    sps_status st = SPS_OK;
    bool zero = true;

    if (m->away) SPS_TRY(come_back(s, m, P));
    if (s->stop) return st;
    m->ready = false;
    m->why = 0;
    m->width = P->k;
    spsi_block_narrow(Q, P->k);
    spsi_block_narrow(Z, s->k);
    SPS_TRY(spsi_solver_apply(s, P, Q));
    SPS_TRY(advance(s, m, P, Q));
    if (s->stop) return st;
    /* Nothing left to direct: the driver will look at the truth. */
    for (int p = 0; p < s->k; p++) zero = zero && s->resnorm[p] == 0;
    if (!zero) SPS_TRY(redirect(s, m, P, Q, Z));
fail:
    return st;
}

static void destroy(sps_solver *s, void *method)
{
    struct block_cg *m = method;

    spsi_steps_destroy(&m->steps);
    spsi_small_destroy(&m->G);
    spsi_small_destroy(&m->C);
    spsi_small_destroy(&m->F);
    spsi_small_destroy(&m->S);
    spsi_small_destroy(&m->T);
    spsi_small_destroy(&m->V);
    spsi_small_destroy(&m->norm2);
    spsi_free(s->ctx, m->length);
    spsi_free(s->ctx, m->w);
}

SPS_DEFINE(sps_solver_type, spsi_solver_block_cg) = {
    .name = "block_cg",
    .mixed = "refinement",
    .needs = SPS_NEEDS_SPD | SPS_NEEDS_SYMMETRIC,
    .size = sizeof(struct block_cg),
    .blocks = 3,
    .setup = setup,
    .start = start,
    .step = step,
    .ahead = ahead,
    .permute = permute,
    .destroy = destroy,
};
