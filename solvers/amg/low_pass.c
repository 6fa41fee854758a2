/* SPDX-License-Identifier: BSD-3-Clause */
/* low_pass.c - near-null vectors of node blocks without coordinates: Ritz
 * vectors of random columns from which a polynomial has removed high
 * frequencies.
 *
 * For WIDTH columns x, p is the Chebyshev polynomial of degree d that is small
 * on [a, b] and 1 at 0, where b is a bound of the spectrum of D^-1 A and a =
 * CUT b:
 *
 *     p(t) = T_d((c - t) / h) / T_d(c / h),   c = (b + a) / 2, h = (b - a) / 2
 *     y_(m+1) = (2 r_m / h) (c - D^-1 A) y_m - r_m r_(m-1) y_(m-1)
 *     r_0 = h / c,  r_m = 1 / (2 c / h - r_(m-1))
 *
 * (y_1 without the factor 2).  On [a, b] p is at most 2 exp(-2 d sqrt(CUT)),
 * about 1e-5.  The Ritz vectors of A x = t D x from these columns with the
 * smallest values are as good as rigid body modes.  As many are used as there
 * are rigid body modes: 3 in two dimensions, 6 in three, and 6 for plates and
 * shells with 6 unknowns per node.
 *
 * Products are those of the operator's kernel, which has an order of sums of its
 * own: unlike other near-null vectors these, and with them the values of the
 * coarser levels, agree between host and GPU up to rounding only.
 *
 * Bytes: d reads of A, each with 4 block passes. */
#include "solvers/amg/amg.h"

#include <math.h>

#include "driver/lanczos.h"

enum { WIDTH = 16, DEGREE = 100 };
#define CUT 3.6e-3
#define MARGIN 1.1           /* factor on the estimate of the spectrum */
#define RANK 1e-6            /* smallest relative singular value of the columns
                                that is kept */

enum { NEXT, NOW, ROOM, BLOCKS };

typedef struct pass {
    const sps_operator *A;
    sps_block *X[BLOCKS];
    sps_block *inverse, *diagonal;      /* n x 1: D^-1, D */
    double upper;                       /* b */
} pass;

static sps_status set_diagonals(pass *p)
{
    sps_context *ctx = p->A->ctx;
    const int64_t n = p->A->n;
    int64_t zero, negative;
    double *d = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, n + 1, &d));
    SPS_TRY(spsi_matrix_inverse_diagonal(p->A, d, &zero, &negative));
    SPS_TRY(sps_block_set(p->inverse, 0, 1, d, n, SPS_COL_MAJOR, SPS_HOST));
    for (int64_t i = 0; i < n; i++) d[i] = 1 / d[i];
    SPS_TRY(sps_block_set(p->diagonal, 0, 1, d, n, SPS_COL_MAJOR, SPS_HOST));
fail:
    spsi_free(ctx, d);
    return st;
}

static sps_status measure(pass *p)
{
    sps_block R, P, Q;
    sps_lanczos found;
    sps_status st;

    spsi_block_view(p->X[NOW], 0, 1, &R);
    spsi_block_view(p->X[NEXT], 0, 1, &P);
    spsi_block_view(p->X[ROOM], 0, 1, &Q);
    SPS_TRY(sps_block_random(&R, 17));
    SPS_TRY(spsi_lanczos(p->A, p->inverse, &R, &P, &Q, 0, 1, &found));
    SPS_REQUIRE(p->A->ctx, found.largest > 0 && isfinite(found.largest),
                SPS_EUNFIT, "amg: near_null=filtered finds no bound of the "
                "spectrum: the matrix is zero, or not finite");
    p->upper = MARGIN * found.largest;
fail:
    return st;
}

/* Filters the columns of X[NOW]. */
static sps_status filter(pass *p)
{
    const double a = CUT * p->upper, c = 0.5 * (p->upper + a);
    const double h = 0.5 * (p->upper - a);
    double r = h / c, before = 0;
    sps_status st;

    for (int m = 0; m < DEGREE; m++) {
        const double f = (m ? 2 : 1) * r / h;
        sps_block *next = p->X[NEXT];

        SPS_TRY(spsi_check_deadline(p->A->ctx, "amg"));
        SPS_TRY(spsi_operator_apply_fused(
            p->A, false, -f, p->X[NOW], -r * before, next,
            &(sps_epilogue){ .D = p->inverse, .delta = f * c }, p->X[ROOM]));
        p->X[NEXT] = p->X[NOW];
        p->X[NOW] = next;
        before = r;
        r = 1 / (2 * c / h - r);
    }
fail:
    return st;
}

/* C = the combinations of columns that are D-orthonormal Ritz vectors, at most
 * k of them; G and H are the columns' Gram matrices with D and with A. */
static sps_status combine(sps_context *ctx, sps_small *G, sps_small *H, int k,
                          sps_small *C)
{
    sps_small *T = NULL, *U = NULL;
    double w[WIDTH], condition;
    int rank;
    sps_status st;

    SPS_TRY(spsi_small_create(ctx, WIDTH, WIDTH, &T));
    SPS_TRY(spsi_small_create(ctx, WIDTH, WIDTH, &U));
    SPS_TRY(spsi_small_orthonormaliser(G, RANK, T, &rank, &condition));
    SPS_REQUIRE(ctx, rank > 0 && spsi_small_finite(H), SPS_EUNFIT, "amg: "
                "near_null=filtered finds no vectors: the matrix is not "
                "positive definite, or not finite; give coords");
    spsi_small_shape(U, WIDTH, rank);
    SPS_TRY(spsi_small_mul(1.0, H, false, T, false, 0.0, U));
    spsi_small_shape(H, rank, rank);
    SPS_TRY(spsi_small_mul(1.0, T, true, U, false, 0.0, H));
    spsi_small_symmetrise(H);
    SPS_TRY(spsi_small_eigen(H, w));
    spsi_small_shape(U, rank, k < rank ? k : rank);
    for (int j = 0; j < U->cols; j++)
        for (int i = 0; i < rank; i++)
            *spsi_small_at(U, i, j) = *spsi_small_at(H, i, j);
    spsi_small_shape(C, WIDTH, U->cols);
    SPS_TRY(spsi_small_mul(1.0, T, false, U, false, 0.0, C));
fail:
    spsi_small_destroy(&T);
    spsi_small_destroy(&U);
    return st;
}

/* Sets *V_p to at most k Ritz vectors of the filtered columns, those of the
 * smallest Ritz values. */
static sps_status ritz(pass *p, int k, sps_block **V_p)
{
    sps_context *ctx = p->A->ctx;
    sps_small *G = NULL, *H = NULL, *C = NULL;
    sps_status st;

    SPS_TRY(spsi_small_create(ctx, WIDTH, WIDTH, &G));
    SPS_TRY(spsi_small_create(ctx, WIDTH, WIDTH, &H));
    SPS_TRY(spsi_small_create(ctx, WIDTH, WIDTH, &C));
    SPS_TRY(sps_operator_apply(p->A, 1.0, p->X[NOW], 0.0, p->X[ROOM]));
    SPS_TRY(spsi_gram(p->X[NOW], p->X[ROOM], H));
    SPS_TRY(spsi_scale_rows(p->diagonal, p->X[NOW], p->X[ROOM]));
    SPS_TRY(spsi_gram(p->X[NOW], p->X[ROOM], G));
    SPS_TRY(combine(ctx, G, H, k, C));
    SPS_TRY(sps_block_create(ctx, p->A->n, C->cols, V_p));
    SPS_TRY(spsi_mul_small(1.0, p->X[NOW], C, 0.0, *V_p));
fail:
    spsi_small_destroy(&G);
    spsi_small_destroy(&H);
    spsi_small_destroy(&C);
    return st;
}

sps_status spsi_amg_low_pass(const sps_operator *A, int b, sps_block **V_p)
{
    sps_context *ctx = A->ctx;
    pass p = { .A = A };
    sps_status st;

    SPS_REQUIRE(ctx, b > 1, SPS_EUNFIT, "near_null=filtered is for nodes of "
                "several rows, and the pattern shows none: name their number "
                "by block_size, or leave near_null=auto");
    SPS_TRY(spsi_reserve(ctx, A->n, WIDTH));
    for (int i = 0; i < BLOCKS; i++)
        SPS_TRY(sps_block_create(ctx, A->n, WIDTH, &p.X[i]));
    SPS_TRY(sps_block_create(ctx, A->n, 1, &p.inverse));
    SPS_TRY(sps_block_create(ctx, A->n, 1, &p.diagonal));
    SPS_TRY(set_diagonals(&p));
    SPS_TRY(measure(&p));
    SPS_TRY(sps_block_random(p.X[NOW], 19));
    SPS_TRY(filter(&p));
    SPS_TRY(ritz(&p, b == 2 ? 3 : 6, V_p));
fail:
    for (int i = 0; i < BLOCKS; i++) sps_block_destroy(&p.X[i]);
    sps_block_destroy(&p.inverse);
    sps_block_destroy(&p.diagonal);
    return st;
}
