/* SPDX-License-Identifier: BSD-3-Clause */
/* block_gcrodr.c - block GMRES with deflated restarts and recycling: GCRO-DR
 * (Parks, de Sturler, Mackey, Johnson and Maiti, SISC 28(5), 2006) on blocks
 * (Parks, Soodhalter and Szyld 2016).
 *
 * Beside the Krylov space of a cycle, a space U of r vectors is recycled, with
 * C = A M U orthonormal.  The component of the residual in C is removed first,
 * and the Krylov basis V of the cycle is orthogonal to C:
 *
 *     X += M U C'R, R -= C C'R;    A M [U V] = [C V_next] [ I B ],  B = C'A M V
 *                                                         [ 0 H ]
 *     X += M (V Y - U B Y),  Y = argmin || E_1 S - H Y ||.
 *
 * After a cycle U becomes the subspace of span[U V] that A M reduces most (the
 * smallest singular values of the small matrix, as in Al Daas, Grigori, Henon
 * and Ricoux, ACM TOMS 47(2), 2021), found by inverse iteration with the
 * triangular factor of the least-squares problem.  In these directions a
 * restarted method converges slowly.
 *
 * U is kept in the solver: a later solve, with other right-hand sides or
 * slightly changed values (sps_operator_set_values), starts with C = A M U
 * recomputed, r / k products.  A cycle also recomputes C after one whose
 * residual estimate was too low: the error of C grows by eps ||A M|| ||U||.
 *
 * Block reads and writes in addition to those of block_gmres: C (r / k blocks)
 * in each pass of the orthogonalisation; V three times at the end of a
 * cycle. */
#include "solvers/arnoldi.h"

#include <math.h>
#include <string.h>

#include "core/team.h"
#include "core/timer.h"

/* Largest number of columns of the Krylov basis of a cycle, and of U: the small
 * matrices are processed on the host. */
#define WIDEST 512
#define MOST_KEPT 256
/* Number of steps of inverse iteration. */
#define SWEEPS 6

struct block_gcrodr {
    sps_arnoldi a;       /* its columns r - kept .. r - 1 are C, followed by
                            V */
    sps_block *U;        /* n x r, of which the first `kept` columns are used */
    sps_block *next;     /* n x r: scratch */
    sps_least_squares q; /* least-squares problem with H */
    sps_small *B;        /* C'A M V, with `kept` rows and the columns of V */
    sps_small *Y, *BY;   /* Y = solution of the least-squares problem */
    sps_small *CR;       /* C'R */
    sps_small *UU, *UV;  /* U'U, U'V */
    sps_small *Z, *P, *top;      /* in recycle(): U and C become [U V] Z and [C
                                    V] P */
    sps_small *G, *T;    /* r x r */
    double *length;      /* r elements: norms of U's columns */
    int m, j, r, kept, scratch_rows;
    double *scratch;     /* scratch_rows x r */
};

/* Returns the number of columns of U: option recycle, or two for each
 * right-hand side. */
static int width_of(const sps_linear *s)
{
    int r = s->opt.recycle;

    if (r == 0) r = s->columns < 5 ? 10 : 2 * s->columns;
    if (r > MOST_KEPT) r = MOST_KEPT;
    if (r > s->rows / 2) r = (int)(s->rows / 2);
    return r < 1 ? 1 : r;
}

static sps_status setup(sps_linear *s, void *method)
{
    struct block_gcrodr *m = method;
    sps_owner *own = &s->made.own;
    sps_status st = SPS_OK;
    int k = s->columns, most, rows;

    m->r = width_of(s);
    m->m = s->rows < s->opt.restart ? (int)s->rows : s->opt.restart;
    if (m->m > WIDEST / k) m->m = WIDEST / k;
    if (m->m < 1) m->m = 1;
    most = m->m * k;
    m->scratch_rows = rows = m->r + most + k;
    struct { sps_small **C; int rows, cols; } all[] = {
        { &m->B, m->r, most }, { &m->Y, most, k }, { &m->BY, m->r, k },
        { &m->CR, m->r, k }, { &m->UU, m->r, m->r }, { &m->UV, m->r, most },
        { &m->Z, rows, m->r }, { &m->P, rows, m->r }, { &m->top, rows, m->r },
        { &m->G, m->r, m->r }, { &m->T, m->r, m->r },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        SPS_TRY(spsi_own_small(own, all[i].rows, all[i].cols, all[i].C));
    SPS_TRY(spsi_arnoldi_open(s, rows, false, &m->a));
    SPS_TRY(spsi_own_block_of(own, s->n, m->r, SPS_F64, &m->U));
    SPS_TRY(spsi_own_block_of(own, s->n, m->r, SPS_F64, &m->next));
    SPS_TRY(spsi_reserve(s->ctx, s->n,
                         (int)ceil(sqrt((double)m->r * (most + k)))));
    SPS_TRY(spsi_least_squares_open(own, most + k, most, k, &m->q));
    SPS_TRY(SPS_OWN(own, m->r, &m->length));
    SPS_TRY(SPS_OWN(own, (int64_t)m->scratch_rows * m->r, &m->scratch));
fail:
    return st;
}

static void view_C(const struct block_gcrodr *m, int kept, sps_block *C)
{
    spsi_block_view(m->a.V, m->r - kept, kept, C);
}

/* --- C = A M U, for a new system and after a cycle whose residual estimate was
 * too low */
static sps_status multiply_all(sps_linear *s, struct block_gcrodr *m)
{
    sps_block C, U, to, *room = s->work[2], *W = s->work[1];
    sps_status st = SPS_OK;

    view_C(m, m->kept, &C);
    for (int i = 0; i < m->kept; i += s->columns) {
        int w = m->kept - i < s->columns ? m->kept - i : s->columns;

        spsi_block_narrow(room, w);
        spsi_block_narrow(W, w);
        spsi_block_view(m->U, i, w, &U);
        spsi_block_view(&C, i, w, &to);
        SPS_TRY(spsi_linear_multiply(s, &U, room, W));
        SPS_TRY(spsi_copy(W, &to));
    }
fail:
    return st;
}

/* to = X T.  The product is formed in m->next, since `to` may overlap X. */
static sps_status transform(struct block_gcrodr *m, const sps_block *X,
                            const sps_small *T, sps_block *to)
{
    sps_block next;
    sps_status st;

    spsi_block_view(m->next, 0, T->cols, &next);
    SPS_TRY(spsi_mul_small(1.0, X, T, 0.0, &next));
    SPS_TRY(spsi_copy(&next, to));
fail:
    return st;
}

/* Performs one pass of C = C T, U = U T with T such that C'C = I; m->kept
 * becomes the rank. */
static sps_status orthonormalise(sps_linear *s, struct block_gcrodr *m)
{
    sps_block C, U, to;
    double condition;
    int rank = 0;
    sps_status st = SPS_OK;

    view_C(m, m->kept, &C);
    spsi_block_view(m->U, 0, m->kept, &U);
    SPS_TRY(spsi_gram(&C, &C, m->G));
    if (spsi_small_finite(m->G))
        SPS_TRY(spsi_small_orthonormaliser(m->G, s->opt.rank_tolerance, m->T,
                                           &rank, &condition));
    if (rank) {
        view_C(m, rank, &to);
        SPS_TRY(transform(m, &C, m->T, &to));
        spsi_block_view(m->U, 0, rank, &to);
        SPS_TRY(transform(m, &U, m->T, &to));
    }
    m->kept = rank;
fail:
    return st;
}

/* D = a U c + b D, where U is the basis of the recycled space. */
static sps_status add_kept(struct block_gcrodr *m, double a,
                           const sps_small *c, double b, sps_block *D)
{
    sps_block U;

    spsi_block_view(m->U, 0, m->kept, &U);
    return spsi_mul_small(a, &U, c, b, D);
}

/* X += M D. */
static sps_status add_solution(sps_linear *s, const sps_block *D)
{
    spsi_block_narrow(s->work[2], s->k);
    return spsi_linear_add(s, D, s->work[2]);
}

/* X += M U C'R, R -= C C'R. */
static sps_status take_kept(sps_linear *s, struct block_gcrodr *m)
{
    sps_block C, *D = s->work[1];
    sps_status st = SPS_OK;

    view_C(m, m->kept, &C);
    SPS_TRY(spsi_gram(&C, &s->R, m->CR));
    if (!spsi_small_finite(m->CR)) {
        m->kept = 0;
        return st;
    }
    SPS_TRY(spsi_mul_small(-1.0, &C, m->CR, 1.0, &s->R));
    spsi_block_narrow(D, s->k);
    SPS_TRY(add_kept(m, 1.0, m->CR, 0.0, D));
    SPS_TRY(add_solution(s, D));
    SPS_TRY(spsi_norms(&s->R, s->resnorm));
fail:
    return st;
}

static sps_status start(sps_linear *s, void *method)
{
    struct block_gcrodr *m = method;
    sps_block *P = s->work[0];
    sps_status st = SPS_OK;

    m->j = 0;
    if (m->kept && (s->course.iteration == 0 || s->course.event)) {
        SPS_TRY(multiply_all(s, m));
        for (int pass = 0; pass < 2 && m->kept; pass++)
            SPS_TRY(orthonormalise(s, m));
    }
    if (m->kept) SPS_TRY(take_kept(s, m));
    SPS_TRY(spsi_arnoldi_start(s, &m->a, m->r - m->kept, m->r, &s->R, P));
    spsi_least_squares_start(&m->q, m->a.S);
    spsi_small_shape(m->B, m->kept, m->B->max_cols);
    s->width = P->k;
fail:
    return st;
}

/* --- one step */

/* Appends the new columns to B and H. */
static void take_columns(struct block_gcrodr *m)
{
    for (int c = 0; c < m->a.h->cols && m->kept; c++)
        memcpy(spsi_small_at(m->B, 0, m->q.columns + c),
               spsi_small_at(m->a.h, 0, c), (size_t)m->kept * sizeof(double));
    spsi_least_squares_append(&m->q, m->a.h, m->kept, m->a.S);
}

static sps_status step(sps_linear *s, void *method)
{
    struct block_gcrodr *m = method;
    sps_block *P = s->work[0], *W = s->work[1], *room = s->work[2];
    sps_status st = SPS_OK;

    s->renew = P->k == 0;   /* U contains the residual up to rounding */
    if (s->renew) return st;
    spsi_block_narrow(room, P->k);
    spsi_block_narrow(W, P->k);
    SPS_TRY(spsi_linear_multiply(s, P, room, W));
    SPS_TRY(spsi_arnoldi_extend(s, &m->a, W, P));
    if (s->stop) return st;
    take_columns(m);
    m->j++;
    spsi_arnoldi_finish_step(s, &m->a, &m->q, P->k, m->j == m->m);
fail:
    return st;
}

/* --- the next U: inverse iteration Z = (F'F)^-1 N Z.  With D = diag(length)
 *
 *     [D^-1 B]          [D^-1 U'U D^-1  D^-1 U'V]
 * F = [0    H],     N = [V'U D^-1       I       ]. */

static double *at(const sps_small *C, int j) { return spsi_small_at(C, 0, j); }

/* y = N z, with N as above. */
static void multiply_gram(const struct block_gcrodr *m, const double *z,
                          double *y)
{
    int u = m->kept, t = m->q.columns;

    for (int i = 0; i < u + t; i++) y[i] = i < u ? 0 : z[i];
    for (int j = 0; j < u; j++)
        for (int i = 0; i < u; i++) y[i] += at(m->UU, j)[i] * z[j];
    for (int j = 0; j < t && u; j++) {
        const double *uv = at(m->UV, j);

        for (int i = 0; i < u; i++) {
            y[i] += uv[i] * z[u + j];
            y[u + j] += uv[i] * z[i];
        }
    }
}

/* y = (F'F)^-1 y, with F as above. */
static void solve_normal(const struct block_gcrodr *m, double *y)
{
    int u = m->kept, t = m->q.columns;

    for (int i = 0; i < u; i++) y[i] *= m->length[i];
    for (int j = 0; j < t && u; j++)
        for (int i = 0; i < u; i++) y[u + j] -= at(m->B, j)[i] * y[i];
    spsi_least_squares_solve_rt(&m->q, y + u);
    spsi_least_squares_solve_r(&m->q, y + u);
    for (int j = 0; j < t && u; j++)
        for (int i = 0; i < u; i++) y[i] -= at(m->B, j)[i] * y[u + j];
    for (int i = 0; i < u; i++) y[i] *= m->length[i];
}

/* Computes UU = D^-1 U'U D^-1 and UV = D^-1 U'V, D = diag(length), length the
 * norms of U's columns.  U is not changed. */
static sps_status measure(struct block_gcrodr *m)
{
    sps_block U, V;
    sps_status st = SPS_OK;

    if (m->kept == 0) return SPS_OK;
    spsi_block_view(m->U, 0, m->kept, &U);
    spsi_block_view(m->a.V, m->r, m->q.columns, &V);
    SPS_TRY(spsi_gram(&U, &U, m->UU));
    SPS_TRY(spsi_gram(&U, &V, m->UV));
    for (int i = 0; i < m->kept; i++) m->length[i] = sqrt(at(m->UU, i)[i]);
    for (int j = 0; j < m->kept; j++)
        for (int i = 0; i < m->kept; i++)
            at(m->UU, j)[i] /= m->length[i] * m->length[j];
    for (int j = 0; j < m->q.columns; j++)
        for (int i = 0; i < m->kept; i++) at(m->UV, j)[i] /= m->length[i];
fail:
    return st;
}

/* Z = Z T and, unless X is NULL, X = X T, with T such that X T (Z T if X is
 * NULL) is orthonormal.  Returns false if the rank is 0 or an element is not
 * finite. */
static bool normalise(struct block_gcrodr *m, sps_small *Z, sps_small *X)
{
    double condition;
    int rank = 0;

    (void)spsi_small_mul(1.0, X ? X : Z, true, X ? X : Z, false, 0.0, m->G);
    if (!spsi_small_finite(m->G)) return false;
    if (spsi_small_orthonormaliser(m->G, 1e-7, m->T, &rank, &condition) !=
        SPS_OK || rank == 0)
        return false;
    (void)spsi_small_mul(1.0, Z, false, m->T, false, 0.0, m->top);
    (void)spsi_small_copy(m->top, Z);
    if (!X) return true;
    (void)spsi_small_mul(1.0, X, false, m->T, false, 0.0, m->top);
    (void)spsi_small_copy(m->top, X);
    return true;
}

/* Multiplies columns first .. last-1 of Z by (F'F)^-1 N. */
static void solve_columns(void *data, int64_t first, int64_t last)
{
    struct block_gcrodr *m = data;

    for (int j = (int)first; j < last; j++) {
        double *y = m->scratch + (int64_t)j * m->scratch_rows;

        multiply_gram(m, at(m->Z, j), y);
        solve_normal(m, y);
        memcpy(at(m->Z, j), y, (size_t)m->Z->rows * sizeof *y);
    }
}

/* Z = the directions of the smallest singular values of F: SWEEPS times Z =
 * (F'F)^-1 N Z, orthonormalised, starting from random elements. */
static bool iterate(sps_linear *s, struct block_gcrodr *m)
{
    int size = m->kept + m->q.columns, r = size < m->r ? size : m->r;
    uint64_t random = 1;

    spsi_small_shape(m->Z, size, r);
    for (int j = 0; j < r; j++)
        for (int i = 0; i < size; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            at(m->Z, j)[i] = (double)(random >> 40) / 16777216.0 - 0.5;
        }
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        int cols = m->Z->cols;

        spsi_team_run(s->ctx, cols, (int64_t)cols * size * size, solve_columns,
                      m);
        if (!normalise(m, m->Z, NULL)) return false;
    }
    return true;
}

/* P = F Z; then twice Z = Z T, P = P T, so that P'P = I. */
static bool image(struct block_gcrodr *m)
{
    int u = m->kept, t = m->q.columns;

    spsi_small_shape(m->P, u + m->q.rows, m->Z->cols);
    for (int c = 0; c < m->Z->cols; c++) {
        const double *z = at(m->Z, c);
        double *p = at(m->P, c);

        memcpy(p + u, z + u, (size_t)t * sizeof *p);
        spsi_least_squares_multiply(&m->q, p + u);
        for (int i = 0; i < u; i++) p[i] = z[i] / m->length[i];
        for (int j = 0; j < t && u; j++)
            for (int i = 0; i < u; i++) p[i] += at(m->B, j)[i] * z[u + j];
    }
    return normalise(m, m->Z, m->P) && normalise(m, m->Z, m->P);
}

/* Copies rows first .. first + rows - 1 of A to `out`.  Unless length is NULL,
 * row i of `out` is divided by length[i]. */
static void take_rows(const sps_small *A, int first, int rows,
                      const double *length, sps_small *out)
{
    spsi_small_shape(out, rows, A->cols);
    for (int j = 0; j < A->cols; j++)
        for (int i = 0; i < rows; i++)
            at(out, j)[i] = at(A, j)[first + i] / (length ? length[i] : 1);
}

/* m->next = old D^-1 A_1 + V A_2, where A_1 is the first m->kept rows of A, A_2
 * the next `rows` rows, and D = diag(length), or I if length is NULL. */
static sps_status mix(struct block_gcrodr *m, const sps_block *old,
                      const sps_small *A, const double *length, int rows)
{
    sps_block next, V;
    sps_status st = SPS_OK;

    spsi_block_view(m->next, 0, A->cols, &next);
    spsi_block_view(m->a.V, m->r, rows, &V);
    take_rows(A, m->kept, rows, NULL, m->top);
    SPS_TRY(spsi_mul_small(1.0, &V, m->top, 0.0, &next));
    if (m->kept) {
        take_rows(A, 0, m->kept, length, m->top);
        SPS_TRY(spsi_mul_small(1.0, old, m->top, 1.0, &next));
    }
fail:
    return st;
}

/* Computes the next U and C. */
static sps_status renew(struct block_gcrodr *m)
{
    sps_block U, C, next, to;
    sps_status st = SPS_OK;

    spsi_block_view(m->next, 0, m->Z->cols, &next);
    spsi_block_view(m->U, 0, m->kept, &U);
    SPS_TRY(mix(m, &U, m->Z, m->length, m->q.columns));
    spsi_block_view(m->U, 0, next.k, &to);
    SPS_TRY(spsi_copy(&next, &to));
    view_C(m, m->kept, &C);
    SPS_TRY(mix(m, &C, m->P, NULL, m->q.rows));
    view_C(m, next.k, &to);
    SPS_TRY(spsi_copy(&next, &to));
    m->kept = next.k;
fail:
    return st;
}

static sps_status recycle(sps_linear *s, struct block_gcrodr *m)
{
    sps_status st;
    bool found;

    spsi_phase_begin(s->ctx, SPS_PHASE_GRAM);
    st = measure(m);
    spsi_phase_end(s->ctx, SPS_PHASE_GRAM);
    if (st != SPS_OK) return st;
    spsi_phase_begin(s->ctx, SPS_PHASE_SMALL);
    found = iterate(s, m) && image(m);
    spsi_phase_end(s->ctx, SPS_PHASE_SMALL);
    if (!found) return st;
    spsi_phase_begin(s->ctx, SPS_PHASE_GRAM);
    st = renew(m);
    spsi_phase_end(s->ctx, SPS_PHASE_GRAM);
    return st;
}

/* X += M (V Y - U B Y), and computes the next U. */
static sps_status flush(sps_linear *s, void *method)
{
    struct block_gcrodr *m = method;
    sps_block V, *D = s->work[1];
    sps_status st = SPS_OK;

    if (m->j == 0) return SPS_OK;
    m->j = 0;
    spsi_small_shape(m->Y, m->q.columns, s->k);
    SPS_TRY(spsi_least_squares_solve(&m->q, m->Y));
    spsi_block_view(m->a.V, m->r, m->q.columns, &V);
    spsi_block_narrow(D, s->k);
    SPS_TRY(spsi_mul_small(1.0, &V, m->Y, 0.0, D));
    spsi_small_shape(m->B, m->kept, m->q.columns);
    if (m->kept) {
        SPS_TRY(spsi_small_mul(1.0, m->B, false, m->Y, false, 0.0, m->BY));
        SPS_TRY(add_kept(m, -1.0, m->BY, 1.0, D));
    }
    SPS_TRY(add_solution(s, D));
    SPS_TRY(recycle(s, m));
fail:
    return st;
}

SPS_DEFINE(sps_linear_type, spsi_solver_block_gcrodr) = {
    .name = "block_gcrodr",
    .size = sizeof(struct block_gcrodr),
    .blocks = 3,
    .setup = setup,
    .start = start,
    .step = step,
    .flush = flush,
};
