/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks_fixture.h - a matrix whose rows a crew has, blocks of these rows, and
 * the product that is expected.  For Check tests. */
#ifndef SPS_TEST_RANKS_FIXTURE_H
#define SPS_TEST_RANKS_FIXTURE_H

#include <math.h>

#include "operator/operator_ranks.h"
#include "tests/problems/zoo.h"
#include "tests/processes/crew_system.h"
#include "tests/support/fixture.h"
#include "tests/support/runner.h"

enum { WIDTH = 16, MOST = 40 };

static const int sizes[] = { 1, 2, 3, 5, 8, 16 };
enum { SIZES = sizeof sizes / sizeof *sizes };

/* What all ranks share. */
typedef struct work {
    const sps_csr *A;
    const double *val;        /* new values, or NULL */
    int k;
    double alpha, beta;
    bool plain, twofold, fused, symmetric, floats;
    bool single;              /* the blocks are of floats */
    bool aside;               /* messages pass beside the product */
    const double *x, *y, *v;  /* n x k */
    double *result, *low;     /* n x k */
    const char *solver, *precond, *reorder;
    int odd;                  /* the rank that does something else, or -1; in
                                 fail_at a count of allocations, -1: all */
    int iterations;           /* at most, or 0 */
    bool all;                 /* what is odd is told to all ranks alike */
    void (*change)(sps_csr *own);
    double difference;
} work;

static crew_member member[CREW];

static inline void all_went_well(bool good, const char *what, int size)
{
    for (int r = 0; r < size; r++)
        ck_assert_msg(!member[r].st, "%s, rank %d of %d: %s", what, r, size,
                      member[r].error);
    ck_assert_msg(good, "%s, %d ranks: a deadlock, or a lost message", what,
                  size);
}

/* Replaces the block of doubles by one of floats. */
static inline sps_status narrow(sps_block **X_p)
{
    sps_block *X = NULL;
    sps_status st = spsi_block_create((*X_p)->ctx, (*X_p)->n, (*X_p)->k,
                                      SPS_F32, &X);

    if (!st) st = spsi_copy(*X_p, X);
    sps_block_destroy(X_p);
    *X_p = X;
    return st;
}

/* The rows of this rank of `from`, of `whole` rows. */
static inline sps_status part_of(const crew_member *m, const work *w,
                                 int64_t whole, const double *from,
                                 sps_block **X_p)
{
    const int64_t first = crew_first(whole, m->all->size, m->rank);
    const int64_t n = crew_first(whole, m->all->size, m->rank + 1) - first;
    sps_status st = sps_block_create(m->ctx, n, w->k, X_p);

    if (!st && from)
        st = sps_block_set(*X_p, 0, w->k, from + first * w->k, w->k,
                           SPS_ROW_MAJOR, SPS_HOST);
    return !st && w->single ? narrow(X_p) : st;
}

static inline sps_status part(const crew_member *m, const work *w,
                              const double *from, sps_block **X_p)
{
    return part_of(m, w, w->A->nrow, from, X_p);
}

static inline sps_status keep(const crew_member *m, const work *w,
                              const sps_block *X, double *to)
{
    const int64_t first = crew_first(w->A->nrow, m->all->size, m->rank);
    sps_block *wide = NULL;
    sps_status st = sps_block_create(m->ctx, X->n, X->k, &wide);

    if (!st) st = spsi_copy(X, wide);
    if (!st)
        st = sps_block_get(wide, 0, w->k, to + first * w->k, w->k,
                           SPS_ROW_MAJOR, SPS_HOST);
    sps_block_destroy(&wide);
    return st;
}

/* result = alpha A x + beta y, in the order of the columns. */
static inline void expect(const work *w, const double *val)
{
    for (int64_t i = 0; i < w->A->nrow; i++)
        for (int j = 0; j < w->k; j++) {
            double sum = 0;

            for (int64_t p = w->A->rowptr[i]; p < w->A->rowptr[i + 1]; p++)
                sum += (w->floats ? ((const float *)w->A->val)[p] : val[p]) *
                       w->x[(int64_t)w->A->col[p] * w->k + j];
            if (w->fused)
                sum = w->v[i * w->k] * (w->alpha * sum +
                                        2 * w->v[i * w->k + j]) +
                      3 * w->x[i * w->k + j];
            else sum *= w->alpha;
            sum = sum + (w->beta == 0 ? 0 : w->beta *
                                                       w->y[i * w->k + j]);
            if (w->twofold) sum += w->v[i * w->k + j];
            ck_assert_msg(fabs(w->result[i * w->k + j] - sum) <=
                          (w->single ? 2e-7 : 0) * fabs(sum),
                          "row %d, column %d: %g, not %g", (int)i, j,
                          w->result[i * w->k + j], sum);
        }
}

/* Sanitizers, and contexts on a GPU, take long: one number of ranks for each
 * matrix in turn. */
static inline bool brief(void)
{
    return runner_quick() || runner_place() == SPS_CUDA;
}

#endif
