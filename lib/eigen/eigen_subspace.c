/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_subspace.c - bases that are orthonormal in the inner product of M.
 *
 * A round consists of block Gram-Schmidt against the columns Q that are there
 * already, and of W R^-1 with the Cholesky factor R of the Gram matrix W'MW
 * (CholQR).  After the first round W is well conditioned, so that the second
 * leaves errors of the order eps (CholQR2: Yamamoto, Nakatsukasa, Yanagisawa
 * and Fukaya, ETNA 44, 2015); if the second finds W ill-conditioned, a third
 * and a fourth follow.
 *
 * The components C = Q'M W of W along Q and the Gram matrix of W come from one
 * product [Q W]'M W, and a second one, W = [Q W] [-C T; T], removes them and
 * orthonormalises (BCGS-PIP: Carson, Lund, Rozloznik and Thomas, Linear Algebra
 * Appl. 638, 2022): half the passes.  W'M W - C'C is accurate unless W lies
 * nearly in the span of Q; in that case, and if Q and W are too wide for a
 * product in place, Q is projected out first.
 *
 * If a pivot shows that columns are nearly dependent, the round is one of SVQB
 * (Stathopoulos and Wu, SISC 23(6), 2002): the factor comes from the
 * eigenvalues of the Gram matrix, and directions that depend on others up to
 * rounding are dropped, never divided by.  A shifted Cholesky factor (Fukaya et
 * al., SISC 42(1), 2020) would not fail there either, but it finds no rank and
 * needs another round of passes over n rows, compared with which an
 * eigenproblem of w rows costs nothing.
 *
 * A single round by coefficients alone (spsi_subspace_join) has the error of
 * the Gram matrix times the square of the condition, which its caller limits.
 *
 * A round of w columns beside q columns reads q + 2 w and q + w columns of
 * length n and writes w. */
#include "eigen/eigen_subspace.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "core/timer.h"

#define PIVOT 1e-6   /* least squared distance of a unit column from the span
                        of those before it */
#define ALONG 1e-8   /* least squared distance of a unit column from the span
                        of Q, at which W'M W - C'C has half of its digits */
#define BLOCKS 24    /* most blocks of an extended S, in units of the width */
#define JOINED 128   /* largest number of columns of Q and W together for a
                        product in place */

sps_status spsi_subspace_allocate(sps_subspace *s, int stack, int longest)
{
    sps_owner *own = s->pencil->own;
    int64_t n = s->pencil->n;
    int w = s->width, columns = stack * w, given = s->deflation->given, most;
    sps_status st = SPS_OK;

    if (longest > BLOCKS * w) longest = BLOCKS * w;
    if (longest > s->pencil->rows) longest = (int)s->pencil->rows;
    s->longest = longest > columns ? longest : columns;
    most = columns > given ? columns : given;
    SPS_TRY(spsi_own_block(own, n, columns, &s->S));
    SPS_TRY(spsi_own_block(own, n, columns, &s->AS));
    if (s->pencil->M) SPS_TRY(spsi_own_block(own, n, columns, &s->MS));
    else s->MS = s->S;
    SPS_TRY(spsi_own_block(own, n, w, &s->R));
    SPS_TRY(spsi_own_block(own, n, w, &s->work));
    SPS_TRY(SPS_OWN(own, 2 * (int64_t)most, &s->scratch));
    SPS_TRY(spsi_own_small(own, most, most, &s->G));
    SPS_TRY(spsi_own_small(own, most, most, &s->T));
    SPS_TRY(spsi_own_small(own, most, most, &s->C));
    SPS_TRY(spsi_own_small(own, columns, w, &s->J));
    SPS_TRY(spsi_deflation_reserve(s->deflation, most));
    most = s->deflation->fixed->width;
    SPS_TRY(spsi_reserve(own->ctx, n, most > columns ? most : columns));
fail:
    return st;
}

/* Replaces *S by a block of `columns` columns, the first `kept` as they are. */
static sps_status extend(sps_block **S, int columns, int kept)
{
    sps_block *longer = NULL, from, to;
    sps_status st;

    SPS_TRY(spsi_block_create((*S)->ctx, (*S)->n, columns, SPS_F64, &longer));
    spsi_block_view(*S, 0, kept, &from);
    spsi_block_view(longer, 0, kept, &to);
    SPS_TRY(spsi_copy(&from, &to));
    sps_block_destroy(S);
    *S = longer;
    return SPS_OK;
fail:
    sps_block_destroy(&longer);
    return st;
}

sps_status spsi_subspace_extend(sps_subspace *s, int kept)
{
    int most = s->longest > s->C->max_rows ? s->longest : s->C->max_rows;
    sps_status st;

    SPS_TRY(spsi_reserve(s->pencil->ctx, s->pencil->n, s->longest));
    SPS_TRY(spsi_small_enlarge(&s->C, most, most));
    SPS_TRY(spsi_small_enlarge(&s->J, most, s->width));
    SPS_TRY(extend(&s->S, s->longest, kept));
    if (!s->pencil->M) s->MS = s->S;
    else SPS_TRY(extend(&s->MS, s->longest, kept));
    SPS_TRY(extend(&s->AS, s->longest, kept));
fail:
    spsi_subspace_set_columns(s, s->m);
    return st;
}

void spsi_subspace_set_columns(sps_subspace *s, int m)
{
    s->m = m;
    spsi_block_view(s->S, 0, m, &s->X);
    spsi_block_view(s->AS, 0, m, &s->AX);
    spsi_block_view(s->MS, 0, m, &s->MX);
}

/* Scales columns to unit length if squares could leave the range of doubles, or
 * always, if they serve to test the sign of M; zero columns stay zero. */
static sps_status normalise(sps_subspace *s, bool always, sps_block *W,
                            sps_stop *stop)
{
    sps_status st = SPS_OK;
    double *norm = s->scratch;
    bool far = always;

    SPS_TRY(spsi_norms(W, norm));
    for (int j = 0; j < W->k; j++) {
        if (!isfinite(norm[j])) *stop = SPS_STOP_NOT_FINITE;
        if (norm[j] != 0 && !(norm[j] > 1e-60 && norm[j] < 1e60)) far = true;
        norm[j] = norm[j] > DBL_MIN ? 1 / norm[j] : 0;
    }
    if (far && !*stop) SPS_TRY(spsi_axpby_cols(norm, W, NULL, W));
fail:
    return st;
}

/* Tests G = W'MW.  A diagonal entry below `least`, for a column of at most unit
 * length, shows that M is not positive definite.  If `unit`, the columns had
 * unit length in the norm of M before W was projected: one that is nearly zero
 * now depends on Q, and its remainder is rounding error; clearing its row and
 * column in G drops it. */
static void inspect(sps_small *G, double least, bool unit, sps_stop *stop)
{
    for (int j = 0; j < G->cols; j++) {
        double g = *spsi_small_at(G, j, j);

        if (g < least) *stop = SPS_STOP_MASS_INDEFINITE;
        if (!unit || g > 1e-3) continue;
        for (int i = 0; i < G->rows; i++)
            *spsi_small_at(G, i, j) = *spsi_small_at(G, j, i) = 0;
    }
}

/* Computes R, by columns, with D G D = R'R, D = diag(g)^(-1/2); returns false
 * if a pivot is below PIVOT: a column nearly depends on others. */
static bool cholesky(const sps_small *G, sps_small *R)
{
    int m = G->rows;

    spsi_small_shape(R, m, m);
    for (int j = 0; j < m; j++) {
        const double g = *spsi_small_at(G, j, j);
        double *r = spsi_small_at(R, 0, j), pivot = 1;

        if (!(g > 0)) return false;
        for (int i = 0; i < j; i++) {
            const double *ri = spsi_small_at(R, 0, i);
            double sum = *spsi_small_at(G, i, j) /
                         sqrt(g * *spsi_small_at(G, i, i));

            for (int l = 0; l < i; l++) sum -= ri[l] * r[l];
            r[i] = sum / ri[i];
            pivot -= r[i] * r[i];
        }
        if (!(pivot > PIVOT)) return false;
        r[j] = sqrt(pivot);
    }
    return true;
}

/* Computes T = D R^-1, which is upper triangular. */
static void invert(const sps_small *G, const sps_small *R, sps_small *T)
{
    int m = R->rows;

    spsi_small_shape(T, m, m);
    spsi_small_clear(T);
    for (int j = 0; j < m; j++) {
        double *t = spsi_small_at(T, 0, j);

        t[j] = 1 / *spsi_small_at(R, j, j);
        for (int i = j - 1; i >= 0; i--) {
            for (int l = i + 1; l <= j; l++)
                t[i] -= *spsi_small_at(R, i, l) * t[l];
            t[i] /= *spsi_small_at(R, i, i);
        }
        for (int i = 0; i <= j; i++) t[i] /= sqrt(*spsi_small_at(G, i, i));
    }
}

/* Returns an upper bound of the condition of columns whose Gram matrix, scaled
 * to a unit diagonal, differs from I by f in the Frobenius norm. */
static double condition_of(const sps_small *G)
{
    double f = 0;

    for (int j = 0; j < G->cols; j++)
        for (int i = 0; i < j; i++) {
            double g = *spsi_small_at(G, i, j);

            f += 2 * g * g / (*spsi_small_at(G, i, i) *
                              *spsi_small_at(G, j, j));
        }
    f = sqrt(f);
    return f < 1 ? sqrt((1 + f) / (1 - f)) : HUGE_VAL;
}

/* Computes s->T such that W T is orthonormal from s->G = W'MW, which is
 * overwritten; *condition is an upper bound of the condition of W. */
static sps_status factor(sps_subspace *s, int *rank, double *condition)
{
    sps_status st = SPS_OK;

    spsi_small_symmetrise(s->G);
    if (cholesky(s->G, s->C)) {
        *rank = s->G->rows;
        *condition = condition_of(s->G);
        invert(s->G, s->C, s->T);
    } else {
        st = spsi_small_orthonormaliser(s->G, 1e-12, s->T, rank,
                                        condition);
    }
    return st;
}

/* J has C = Q'M W in its first q rows and W'M W below.  Computes G = W'M W -
 * C'C, the Gram matrix of W after its projection; returns false if a column
 * lies so nearly in the span of Q that the difference is rounding error. */
static bool subtract(const sps_small *J, int q, sps_small *G)
{
    int w = J->cols;
    bool safe = true;

    spsi_small_shape(G, w, w);
    for (int j = 0; j < w; j++)
        for (int i = 0; i < w; i++) {
            const double *ci = spsi_small_at(J, 0, i);
            const double *cj = spsi_small_at(J, 0, j);
            double sum = cj[q + i];

            for (int l = 0; l < q; l++) sum -= ci[l] * cj[l];
            *spsi_small_at(G, i, j) = sum;
            if (i == j && !(sum > ALONG * cj[q + i])) safe = false;
        }
    return safe;
}

static double largest(const sps_small *C, int rows)
{
    double most = 0;

    for (int j = 0; j < C->cols; j++)
        for (int i = 0; i < rows; i++)
            most = fmax(most, fabs(*spsi_small_at(C, i, j)));
    return most;
}

/* Computes s->G = W'M W of the W projected against Q.  If *joined on return, W
 * itself is not projected yet: orthonormalise() does that by [-C T; T].  *loss
 * is the largest cosine between columns of Q and W, if those of W have unit
 * length. */
static sps_status measure(sps_subspace *s, const sps_operator *M,
                          const sps_block *Q, const sps_block *MQ,
                          sps_block *W, sps_block *MW, bool *joined,
                          double *loss)
{
    sps_status st = SPS_OK;
    int q = Q->k;
    sps_block MS;

    *loss = 0;
    *joined = q > 0 && q + W->k <= JOINED;
    if (*joined) {
        spsi_block_view(s->MS, 0, q + W->k, &MS);
        SPS_TRY(spsi_gram(&MS, W, s->J));
        *loss = largest(s->J, q);
        *joined = subtract(s->J, q, s->G);
        if (*joined) return SPS_OK;
    }
    if (q > 0) {
        SPS_TRY(spsi_gram(MQ, W, s->C));
        *loss = largest(s->C, q);
        SPS_TRY(spsi_mul_small(-1.0, Q, s->C, 1.0, W));
        if (M) SPS_TRY(spsi_pencil_mass(s->pencil, W, MW));
    }
    SPS_TRY(spsi_gram(W, MW, s->G));
fail:
    return st;
}

/* Computes s->C = [-C T; T] with T = s->T: [Q W] times it is the W of the next
 * round, projected and orthonormal. */
static void join(sps_subspace *s, int q)
{
    const sps_small *J = s->J, *T = s->T;
    int w = T->rows;

    spsi_small_shape(s->C, q + w, T->cols);
    spsi_small_clear(s->C);
    for (int j = 0; j < T->cols; j++) {
        double *c = spsi_small_at(s->C, 0, j);

        for (int l = 0; l < w; l++) {
            double t = *spsi_small_at(T, l, j);
            const double *along = spsi_small_at(J, 0, l);

            for (int i = 0; i < q; i++) c[i] -= along[i] * t;
            c[q + l] = t;
        }
    }
}

/* Replaces W by W T, or, if joined, by [Q W] [-C T; T] with q columns in Q;
 * *condition becomes an upper bound of the condition of W before that. */
static sps_status orthonormalise(sps_subspace *s, int q, bool joined,
                                 sps_block *W, double *condition)
{
    sps_block basis = *W, narrow;
    sps_status st;
    int rank = 0;

    spsi_phase_begin(s->pencil->ctx, SPS_PHASE_SMALL);
    st = factor(s, &rank, condition);
    if (joined) join(s, q);
    spsi_phase_end(s->pencil->ctx, SPS_PHASE_SMALL);
    if (st != SPS_OK) return st;
    if (joined) spsi_block_view(s->S, 0, q + W->k, &basis);
    spsi_block_view(W, 0, rank, &narrow);
    spsi_phase_begin(s->pencil->ctx, SPS_PHASE_GRAM);
    st = spsi_mul_small(1.0, &basis, joined ? s->C : s->T, 0.0, &narrow);
    spsi_phase_end(s->pencil->ctx, SPS_PHASE_GRAM);
    spsi_block_narrow(W, rank);
    return st;
}

/* Returns whether the diagonal of G, squared lengths of columns, is in a range
 * in which no product of them overflows. */
static bool in_range(const sps_small *G, int above)
{
    for (int j = 0; j < G->cols; j++) {
        double square = *spsi_small_at(G, above + j, j);

        if (!(square > 1e-120 && square < 1e120)) return false;
    }
    return true;
}

/* s->C = Z for the last columns of S, as many as J has; returns false if they
 * depend on the others or on each other. */
static bool join_last(sps_subspace *s)
{
    int q = s->J->rows - s->J->cols;

    if (!in_range(s->J, q) || !subtract(s->J, q, s->G)) return false;
    spsi_small_symmetrise(s->G);
    if (!cholesky(s->G, s->C)) return false;
    invert(s->G, s->C, s->T);
    join(s, q);
    return true;
}

/* The same for all columns of S, from s->G = S'M S. */
static sps_status join_all(sps_subspace *s, bool *good)
{
    sps_status st = SPS_OK;

    *good = in_range(s->G, 0);
    if (*good) spsi_small_symmetrise(s->G);
    if (*good) *good = cholesky(s->G, s->C);
    if (!*good) return SPS_OK;
    invert(s->G, s->C, s->T);
    SPS_TRY(spsi_small_copy(s->T, s->C));
fail:
    return st;
}

/* Returns the largest length of a column of Z in units of the columns
 * of S, whose squared lengths are 1 and the last ones those of `square`. */
static double amplification(const sps_small *Z, const sps_small *square,
                            int above)
{
    const int first = Z->rows - square->cols;
    double most = 1;

    for (int j = 0; j < Z->cols; j++) {
        const double *z = spsi_small_at(Z, 0, j);
        double sum = 0;

        for (int i = 0; i < first; i++) sum += z[i] * z[i];
        for (int i = first; i < Z->rows; i++)
            sum += z[i] * z[i] *
                   *spsi_small_at(square, above + i - first, i - first);
        most = fmax(most, sum);
    }
    return sqrt(most);
}

/* Computes the Gram matrices that the two functions above need, and G. */
static sps_status join_products(sps_subspace *s, int q, int w, bool whole,
                                sps_small *G)
{
    int from = whole ? 0 : q, columns = whole ? q + w : w;
    sps_block S, MS, AS;
    sps_status st;

    spsi_block_view(s->S, 0, q + w, &S);
    spsi_block_view(s->MS, from, columns, &MS);
    spsi_block_view(s->AS, from, columns, &AS);
    spsi_phase_begin(s->pencil->ctx, SPS_PHASE_GRAM);
    if (whole) {
        st = spsi_gram(&S, &MS, s->G);
        if (st == SPS_OK) st = spsi_gram(&S, &AS, G);
    } else {
        st = spsi_gram_pair(&S, &MS, &AS, s->J, G);
    }
    spsi_phase_end(s->pencil->ctx, SPS_PHASE_GRAM);
    return st;
}

sps_status spsi_subspace_join(sps_subspace *s, int q, int w, bool whole,
                              sps_small *G, sps_small *Z, double *amplified)
{
    sps_status st;
    bool good;

    spsi_small_shape(Z, 0, 0);
    SPS_TRY(join_products(s, q, w, whole, G));
    spsi_phase_begin(s->pencil->ctx, SPS_PHASE_SMALL);
    if (whole) st = join_all(s, &good);
    else good = join_last(s);
    spsi_phase_end(s->pencil->ctx, SPS_PHASE_SMALL);
    if (st != SPS_OK || !good) return st;
    *amplified = whole ? amplification(s->C, s->G, 0)
                       : amplification(s->C, s->J, q);
    SPS_TRY(spsi_small_copy(s->C, Z));
fail:
    return st;
}

sps_status spsi_subspace_orth(sps_subspace *s, const sps_operator *M,
                           const sps_block *Q, const sps_block *MQ,
                           sps_block *W, sps_block *MW, sps_stop *stop)
{
    const double least = M ? -1e-14 * s->pencil->norm_M : -HUGE_VAL;
    sps_status st = SPS_OK;
    double condition = 1, loss = 0;
    bool joined;

    SPS_TRY(normalise(s, M != NULL, W, stop));
    for (int round = 0; round < 4 && W->k > 0 && !*stop; round++) {
        SPS_TRY(spsi_deflation_project(s->deflation, W));
        spsi_block_narrow(MW, W->k);
        if (M) SPS_TRY(spsi_pencil_mass(s->pencil, W, MW));
        spsi_phase_begin(s->pencil->ctx, SPS_PHASE_GRAM);
        st = measure(s, M, Q, MQ, W, MW, &joined, &loss);
        spsi_phase_end(s->pencil->ctx, SPS_PHASE_GRAM);
        if (st != SPS_OK) return st;
        if (!spsi_small_finite(s->G)) *stop = SPS_STOP_NOT_FINITE;
        inspect(s->G, least, round > 0, stop);
        if (*stop) break;
        SPS_TRY(orthonormalise(s, Q->k, joined, W, &condition));
        if (round > 0 && condition < 1.5 && loss < 1e-3) break;
    }
    spsi_block_narrow(MW, W->k);
    if (M && !*stop) SPS_TRY(spsi_pencil_mass(s->pencil, W, MW));
fail:
    return st;
}

sps_status spsi_subspace_rotate(sps_subspace *s, const sps_small *K)
{
    sps_block *stack[3] = { s->S, s->AS, s->MS }, from, to;
    sps_status st = SPS_OK;

    spsi_phase_begin(s->pencil->ctx, SPS_PHASE_GRAM);
    for (int i = 0; st == SPS_OK && i < (s->pencil->M ? 3 : 2); i++) {
        spsi_block_view(stack[i], 0, K->rows, &from);
        spsi_block_view(stack[i], 0, K->cols, &to);
        st = spsi_mul_small(1.0, &from, K, 0.0, &to);
    }
    spsi_phase_end(s->pencil->ctx, SPS_PHASE_GRAM);
    return st;
}

sps_status spsi_subspace_reflect(sps_subspace *s, const sps_small *U,
                                 const sps_small *T)
{
    sps_block *stack[3] = { s->S, s->AS, s->MS }, all;
    sps_status st = SPS_OK;

    SPS_TRY(spsi_small_mul(1.0, T, false, U, true, 0.0, s->C));
    spsi_block_narrow(s->work, U->cols);
    spsi_phase_begin(s->pencil->ctx, SPS_PHASE_GRAM);
    for (int i = 0; st == SPS_OK && i < (s->pencil->M ? 3 : 2); i++) {
        spsi_block_view(stack[i], 0, U->rows, &all);
        st = spsi_mul_small(1.0, &all, U, 0.0, s->work);
        if (st == SPS_OK) st = spsi_mul_small(-1.0, s->work, s->C, 1.0, &all);
    }
    spsi_phase_end(s->pencil->ctx, SPS_PHASE_GRAM);
fail:
    return st;
}

/* Makes one step of Lanczos: W = sign A V - beta before, then *a = V'W, W -= *a
 * V, and *beta = ||W||. */
static sps_status lanczos(const sps_operator *A, double sign,
                          const sps_block *before, const sps_block *V,
                          sps_block *W, double *a, double *beta)
{
    sps_status st = SPS_OK;
    double minus = -*beta, one = 1;

    SPS_TRY(sps_operator_apply(A, sign, V, 0.0, W));
    SPS_TRY(spsi_axpby_cols(&minus, before, &one, W));
    SPS_TRY(spsi_dots(V, W, a));
    minus = -*a;
    SPS_TRY(spsi_axpby_cols(&minus, V, &one, W));
    SPS_TRY(spsi_norms(W, beta));
fail:
    return st;
}

sps_status spsi_subspace_bounds(sps_subspace *s, double sign, sps_small *T,
                                double *low, double *high, double *residual)
{
    sps_status st = SPS_OK;
    int steps = s->pencil->rows < SPS_EIGEN_LANCZOS ? (int)s->pencil->rows
                                             : SPS_EIGEN_LANCZOS;
    double a, beta = 0, scale, zero = 0, w[SPS_EIGEN_LANCZOS];
    sps_block V, before, W;

    spsi_block_narrow(s->R, 1);
    spsi_block_narrow(s->work, 1);
    spsi_block_view(s->R, 0, 1, &V);
    spsi_block_view(s->AS, 0, 1, &W);
    spsi_block_view(s->work, 0, 1, &before);
    spsi_small_shape(T, steps, steps);
    spsi_small_clear(T);
    SPS_TRY(sps_block_random(&V, 3));
    SPS_TRY(spsi_norms(&V, &a));
    scale = 1 / a;
    SPS_TRY(spsi_axpby_cols(&scale, &V, NULL, &V));
    SPS_TRY(spsi_fill(&before, 0));
    for (int t = 0; t < steps; t++) {
        SPS_TRY(lanczos(s->pencil->A, sign, &before, &V, &W, &a, &beta));
        *spsi_small_at(T, t, t) = a;
        if (t + 1 == steps || !(beta > 0)) break;
        *spsi_small_at(T, t, t + 1) = *spsi_small_at(T, t + 1, t) = beta;
        SPS_TRY(spsi_copy(&V, &before));
        scale = 1 / beta;
        SPS_TRY(spsi_axpby_cols(&scale, &W, &zero, &V));
    }
    SPS_TRY(spsi_small_eigen(T, w));
    *low = w[0];
    *high = w[steps - 1];
    *residual = beta;
fail:
    return st;
}
