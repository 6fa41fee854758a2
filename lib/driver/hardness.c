/* SPDX-License-Identifier: BSD-3-Clause */
/* hardness.c - see hardness.h. */
#include "driver/hardness.h"

#include <math.h>

#include "core/comm.h"
#include "core/team.h"
#include "driver/lanczos.h"
#include "operator/operator_matrix.h"

#define KNOWN 0.1
#define POSITIVE 0.5
/* Fraction of the time that is left which the Lanczos steps may use. */
#define SHARE 0.1
#define GAP 9                /* a larger ratio of the two smallest Ritz
                                values indicates a gap (hardness.h) */
#define MANY 2000            /* smallest number of rows for each column */
enum { MOST_ROWS = 6 };       /* largest number of rows of a node */

int spsi_hardness_node(const sps_operator *A, const sps_block *coords)
{
    const int b = A->f.block;

    if (coords && coords->n * coords->k == A->n) return coords->k;
    return b == 2 || b == 3 || b == 6 ? b : 1;
}

typedef struct job {
    const sps_csr *A;
    int b;
    int64_t known;
} job;

/* Returns whether row i maps the constant of each unknown to nearly zero. */
static bool knows(const job *j, int64_t i)
{
    const sps_csr *A = j->A;
    double sum[MOST_ROWS] = { 0 }, d = 0, positive = 0, largest = 0;

    for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
        const double a = spsi_csr_value(A, p);

        sum[A->col[p] % j->b] += a;
        if (A->col[p] == i) d += a;
        else positive += fmax(a, 0);
    }
    for (int c = 0; c < j->b; c++) largest = fmax(largest, fabs(sum[c]));
    return largest <= KNOWN * d ||
           (positive < POSITIVE * d && j->b == 1 && sum[0] >= 0);
}

static void count_known(void *data, int64_t first, int64_t last)
{
    job *j = data;
    int64_t known = 0;

    for (int64_t i = first; i < last; i++) known += knows(j, i);
    spsi_team_add(&j->known, known);
}

double spsi_hardness_known(sps_context *ctx, const sps_csr *A, int b)
{
    job j = { .A = A, .b = b <= MOST_ROWS ? b : 1 };

    spsi_team_run(ctx, A->nrow, 2 * A->nnz, count_known, &j);
    return A->nrow ? (double)j.known / (double)A->nrow : 0;
}

double spsi_hardness_iterations(int64_t n, int k, double condition)
{
    const double many = (double)n / k;
    const double bound = 9.5 * sqrt(condition), body = 6 * cbrt(many);

    if (condition < SPS_HARDNESS_DEEP)
        return bound * fmin(1, cbrt(many / MANY));
    return fmin(fmax(bound, body), 6 * sqrt(many));
}

/* Returns a condition of at most 1e6, since 28 steps cannot distinguish more
 * from a singular matrix. */
static double condition_of(const sps_lanczos *l)
{
    if (!(l->largest > 0) || !isfinite(l->largest)) return 1;
    return l->largest / fmax(fmax(l->smallest, 1e-6 * l->largest),
                             l->second / GAP);
}

static sps_status inverse_diagonal(const sps_operator *A, sps_block *inverse)
{
    double *d = NULL;
    int64_t zero, negative;
    sps_status st;

    SPS_TRY(SPS_NEW(A->ctx, A->n + 1, &d));
    SPS_TRY(spsi_matrix_inverse_diagonal(A, d, &zero, &negative));
    SPS_TRY(sps_block_set(inverse, 0, 1, d, A->n > 0 ? A->n : 1, SPS_COL_MAJOR,
                          SPS_HOST));
fail:
    spsi_free(A->ctx, d);
    return st;
}

/* Returns when the Lanczos steps must end, or 0 if there is no limit. */
static double latest(const sps_context *ctx)
{
    const double now = spsi_agreed_now(ctx);

    return ctx->deadline > 0 ? now + SHARE * (ctx->deadline - now) : 0;
}

sps_status spsi_hardness_condition(const sps_operator *A,
                                   const sps_nullspace *null,
                                   double *condition)
{
    enum { INVERSE, R, P, Q, BLOCKS };
    sps_block *X[BLOCKS] = { NULL };
    sps_lanczos l;
    sps_status st = SPS_OK;

    SPS_TRY(spsi_reserve(A->ctx, A->n, 1));
    for (int i = 0; i < BLOCKS; i++)
        SPS_TRY(sps_block_create(A->ctx, A->n, 1, &X[i]));
    SPS_TRY(inverse_diagonal(A, X[INVERSE]));
    SPS_TRY(sps_block_random(X[R], 13));
    SPS_TRY(spsi_nullspace_project(null, X[R]));
    SPS_TRY(spsi_lanczos(A, X[INVERSE], X[R], X[P], X[Q], latest(A->ctx), 1,
                         &l));
    SPS_REQUIRE(A->ctx, !l.cut, SPS_EUNFIT, "the condition could not be "
                "estimated in a tenth of the time limit");
    *condition = condition_of(&l);
fail:
    for (int i = 0; i < BLOCKS; i++) sps_block_destroy(&X[i]);
    return st;
}
