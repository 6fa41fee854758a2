/* SPDX-License-Identifier: BSD-3-Clause */
/* ladder_fixture.h - for suites about solver auto: a context for each test,
 * and matrices that send it past its first choice. */
#ifndef SPS_TEST_LADDER_FIXTURE_H
#define SPS_TEST_LADDER_FIXTURE_H

#include <check.h>
#include <string.h>

#include "runner.h"
#include "zoo.h"

static sps_context *ctx;

static inline void set_up(void) { ctx = runner_context(); }

static inline void tear_down(void)
{
    sps_context_info info = { .struct_size = sizeof info };

    ck_assert_int_eq(sps_context_information(ctx, &info), SPS_OK);
    ck_assert_int_eq(info.live_objects, 0);
    sps_context_destroy(&ctx);
}

static inline bool noted(const char *part)
{
    const char *note;

    for (int i = 0; (note = sps_context_note(ctx, i)); i++)
        if (strstr(note, part)) return true;
    return false;
}

static inline sps_csr *zoo(const char *name, int64_t n, zoo_values values)
{
    return zoo_matrix(zoo_find(name), n, 1, values, SPS_F64);
}

/* Upper entries change their sign: a dominated nonsymmetric matrix. */
static inline sps_csr *nonsymmetric(int64_t n)
{
    sps_csr *A = zoo("grid5", n, ZOO_SPD);

    for (int64_t i = 0; i < A->nrow; i++)
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            if (A->col[p] > i) ((double *)A->val)[p] *= -1;
    A->props = 0;
    return A;
}

/* A grid's Laplacian minus a multiple of I: symmetric, indefinite, diagonal
 * positive. */
static inline sps_csr *indefinite(int64_t n, double shift)
{
    sps_csr *A = zoo("grid5", n, ZOO_LAPLACIAN);

    for (int64_t i = 0; i < A->nrow; i++)
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            if (A->col[p] == i) ((double *)A->val)[p] -= shift;
    return A;
}

#endif
