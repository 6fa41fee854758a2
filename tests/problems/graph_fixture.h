/* SPDX-License-Identifier: BSD-3-Clause */
/* graph_fixture.h - matrices from triplets, and coordinates of nodes, for
 * suites about graphs and structured matrices; each test opens `ctx`. */
#ifndef SPS_TEST_GRAPH_FIXTURE_H
#define SPS_TEST_GRAPH_FIXTURE_H

#include <check.h>

#include "block/block.h"
#include "block/small.h"
#include "core/backend.h"
#include "matrix/csr.h"
#include "block/block.h"
#include "tests/support/fixture.h"
#include "tests/support/runner.h"

static sps_context *ctx;

/* A host csr from `count` triplets: row at[2 e], column at[2 e + 1], value
 * w[e].  Entries of a row keep the order of the triplets. */
static inline sps_csr *make(int64_t n, int count, const int *at,
                            const double *w)
{
    sps_csr *A = NULL;
    int64_t p = 0;

    OK(ctx, sps_csr_create(ctx, n, n, count, SPS_F64, &A));
    for (int64_t i = 0; i < n; i++) {
        for (int e = 0; e < count; e++)
            if (at[2 * e] == i) {
                A->col[p] = at[2 * e + 1];
                ((double *)A->val)[p++] = w[e];
            }
        A->rowptr[i + 1] = p;
    }
    return A;
}

static inline sps_block *points(int64_t m, int d, const double *x)
{
    sps_block *C = NULL;

    OK(ctx, sps_block_create(ctx, m, d, &C));
    OK(ctx, sps_block_set(C, 0, d, x, d, SPS_ROW_MAJOR, SPS_HOST));
    return C;
}

#endif
