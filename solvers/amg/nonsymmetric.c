/* SPDX-License-Identifier: BSD-3-Clause */
/* nonsymmetric.c - what differs for a matrix that is far from symmetric:
 *
 *   ||A - A'||_F > 0.1 ||A||_F
 *
 * Its spectrum is not real, and Chebyshev polynomials fail where convection
 * dominates.  The smoother is damped Jacobi, z <- z + w D^-1 (r - A z), w =
 * (4/3) / min(||S A S||, ||S^2 A||) in the maximum norm; prolongators use the
 * same factor.  The coupling of two nodes is the stronger one of both
 * directions: with one direction only, aggregates would cross the flow.
 * Prolongators are smoothed by A itself, restrictions are their transposes, and
 * the coarsest matrix is inverted by LU.  M suits GMRES and other methods for
 * nonsymmetric systems. */
#include "solvers/amg/amg.h"

#include <math.h>

#define FAR 0.1

/* Computes the squares of ||A - A'||_F and ||A||_F, given T = A'. */
static void norms(const sps_csr *A, const sps_csr *T, double *difference,
                  double *norm)
{
    const double *a = A->val, *t = T->val;

    *difference = *norm = 0;
    for (int64_t i = 0; i < A->nrow; i++) {
        int64_t p = A->rowptr[i], q = T->rowptr[i];

        while (p < A->rowptr[i + 1] || q < T->rowptr[i + 1]) {
            const bool in_A = p < A->rowptr[i + 1], in_T = q < T->rowptr[i + 1];
            const bool left = in_A && (!in_T || A->col[p] <= T->col[q]);
            const bool right = in_T && (!in_A || T->col[q] <= A->col[p]);
            const double x = left ? a[p] : 0, y = right ? t[q] : 0;

            *difference += (x - y) * (x - y);
            *norm += x * x;
            p += left;
            q += right;
        }
    }
}

sps_status spsi_amg_far_from_symmetric(sps_context *ctx, const sps_csr *A,
                                       bool *far)
{
    sps_csr *T = NULL;
    double difference, norm;
    sps_status st;

    SPS_TRY(spsi_csr_transpose(ctx, A, &T));
    norms(A, T, &difference, &norm);
    *far = difference > FAR * FAR * norm;
fail:
    sps_csr_destroy(ctx, &T);
    return st;
}

/* Returns the stronger coupling: for nodes of one row the smaller value, for
 * others the one of larger magnitude. */
static double stronger(bool single, double x, double y)
{
    if (single) return fmin(x, y);
    return fabs(x) >= fabs(y) ? x : y;
}

/* Writes row i of the union of A and T and returns its length; without col and
 * val it only counts. */
static int64_t merge(const sps_csr *A, const sps_csr *T, bool single, int64_t i,
                     int32_t *col, double *val)
{
    const double *a = A->val, *t = T->val;
    int64_t p = A->rowptr[i], q = T->rowptr[i], count = 0;

    while (p < A->rowptr[i + 1] || q < T->rowptr[i + 1]) {
        const bool in_A = p < A->rowptr[i + 1], in_T = q < T->rowptr[i + 1];
        const bool left = in_A && (!in_T || A->col[p] <= T->col[q]);
        const bool right = in_T && (!in_A || T->col[q] <= A->col[p]);

        if (col) col[count] = left ? A->col[p] : T->col[q];
        if (val)
            val[count] = stronger(single, left ? a[p] : 0, right ? t[q] : 0);
        count++;
        p += left;
        q += right;
    }
    return count;
}

static sps_status make_union(sps_context *ctx, const sps_csr *A,
                             const sps_csr *T, bool single, sps_csr **U_p)
{
    int64_t nnz = 0;
    sps_csr *U;
    sps_status st;

    for (int64_t i = 0; i < A->nrow; i++)
        nnz += merge(A, T, single, i, NULL, NULL);
    SPS_TRY(sps_csr_create(ctx, A->nrow, A->ncol, nnz, SPS_F64, U_p));
    U = *U_p;
    for (int64_t i = 0; i < A->nrow; i++)
        U->rowptr[i + 1] = U->rowptr[i] +
                           merge(A, T, single, i, U->col + U->rowptr[i],
                                 (double *)U->val + U->rowptr[i]);
fail:
    return st;
}

sps_status spsi_amg_strength_both(sps_context *ctx, const amg_level *l,
                                  amg_graph *g)
{
    amg_level both = *l;
    sps_csr *T = NULL, *U = NULL;
    sps_status st;

    SPS_TRY(spsi_csr_transpose(ctx, l->A, &T));
    SPS_TRY(make_union(ctx, l->A, T, l->single_rows, &U));
    SPS_TRY(spsi_check_deadline(ctx, "amg"));
    both.A = U;
    SPS_TRY(spsi_amg_strength(ctx, &both, g));
fail:
    sps_csr_destroy(ctx, &T);
    sps_csr_destroy(ctx, &U);
    return st;
}
