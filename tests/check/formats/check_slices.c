/* SPDX-License-Identifier: BSD-3-Clause */
/* check_slices.c - runs along diagonals and sliced rows hold every entry once,
 * in the smallest types that are exact, also after new values. */
#include <check.h>
#include <math.h>

#include "formats/runs.h"
#include "formats/slices.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/fixture.h"
#include "tests/support/runner.h"
#include "tests/problems/zoo.h"

static sps_context *ctx;

static void open_context(void) { ctx = fixture_open_with(SPS_HOST, 2, true); }
static void close_context(void) { fixture_close(&ctx); }

static double number(const void *val, sps_dtype type, int64_t i)
{
    return type == SPS_F64 ? ((const double *)val)[i]
                           : (double)((const float *)val)[i];
}

static sps_csr_local local_of(const sps_csr *A)
{
    return (sps_csr_local){ .nrow = A->nrow, .ncol = A->ncol, .nnz = A->nnz,
                            .dtype = A->dtype, .rowptr = A->rowptr,
                            .col = A->col, .val = A->val };
}

/* Subtracts value a at (i, j) from the dense copy of row i. */
static void take(double *row, int64_t i, int64_t first, int64_t ncol, int64_t j,
                 double a)
{
    row[(i - first) * ncol + j] -= a;
}

/* The entries of slice s, from both parts, less those of A: nothing is left. */
static void judge_runs(const sps_csr *A, const sps_runs *f, int64_t s)
{
    const int64_t first = s * SPS_RUN, n = A->ncol;
    double *row = calloc((size_t)(SPS_RUN * n) + 1, sizeof *row);

    for (int64_t q = f->run[s]; q < f->run[s + 1]; q++) {
        ck_assert(q == f->run[s] || f->base[q] > f->base[q - 1]);
        ck_assert(f->base[q] >= 0 && f->base[q] + SPS_RUN <= n);
        for (int r = 0; r < SPS_RUN; r++)
            take(row, first + r, first, n, f->base[q] + r,
                 number(f->val, f->dtype, q * SPS_RUN + r));
    }
    for (int64_t e = f->rest[s]; e < f->rest[s + 1]; e++)
        take(row, first + f->rest_row[e], first, n, f->rest_col[e],
             number(f->rest_val, f->dtype, e));
    for (int64_t i = first; i < first + SPS_RUN && i < A->nrow; i++)
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            take(row, i, first, n, A->col[p], -number(A->val, A->dtype, p));
    for (int64_t e = 0; e < SPS_RUN * n; e++) ck_assert(row[e] == 0);
    free(row);
}

static void judge_slice(const sps_csr *A, const sps_slices *f, int64_t s)
{
    int64_t further = f->start[s] + SPS_SLICE * (int64_t)f->full[s];

    for (int r = 0; r < SPS_SLICE && s * SPS_SLICE + r < A->nrow; r++) {
        const int64_t i = f->row[s * SPS_SLICE + r];

        for (int64_t e = 0; e < A->rowptr[i + 1] - A->rowptr[i]; e++) {
            const int64_t q = e < f->full[s] ? f->start[s] + SPS_SLICE * e + r
                                             : further++;
            const int64_t p = A->rowptr[i] + e;

            ck_assert_int_eq(f->col ? f->col[q] : f->base[s] + f->near[q],
                             A->col[p]);
            ck_assert(number(f->val, f->dtype, q) ==
                      number(A->val, A->dtype, p));
        }
    }
    ck_assert_int_eq(further, f->start[s + 1]);
}

/* Every row once, in windows. */
static void judge_order(const sps_csr *A, const sps_slices *f)
{
    bool *seen = calloc((size_t)A->nrow + 1, sizeof *seen);

    for (int64_t i = 0; i < A->nrow; i++) {
        ck_assert(!seen[f->row[i]]);
        ck_assert(f->row[i] / SPS_SLICE_WINDOW == i / SPS_SLICE_WINDOW);
        seen[f->row[i]] = true;
    }
    free(seen);
}

static void judge(const sps_csr *A, const sps_runs *f, const sps_slices *g)
{
    for (int64_t s = 0; s < f->slices; s++) judge_runs(A, f, s);
    for (int64_t s = 0; s < g->slices; s++) judge_slice(A, g, s);
    judge_order(A, g);
}

/* Thirds do not fit floats: the arrays become doubles. */
static void try(sps_csr *A)
{
    sps_csr_local local = local_of(A);
    sps_runs f;
    sps_slices g;

    OK(ctx, spsi_runs_from_csr(ctx, &local, &f));
    OK(ctx, spsi_slices_from_csr(ctx, &local, &g));
    ck_assert(f.dtype == SPS_F32 && g.dtype == SPS_F32);
    judge(A, &f, &g);
    for (int64_t p = 0; p < A->nnz; p++) ((double *)A->val)[p] /= 3;
    OK(ctx, spsi_runs_refresh(ctx, &local, &f));
    OK(ctx, spsi_slices_refresh(ctx, &local, &g));
    judge(A, &f, &g);
    spsi_runs_clear(ctx, &f);
    spsi_slices_clear(ctx, &g);
}

START_TEST(every_entry_of_the_zoo_is_held_once)
{
    static const int64_t sizes[] = { 0, 1, 7, 8, 70, 300 };

    for (int f = 0; f < zoo_count(); f++)
        for (int s = 0; s < 6; s++) {
            sps_csr *A = zoo_matrix(f, sizes[s], 7, ZOO_INTEGER, SPS_F64);

            try(A);
            zoo_free(&A);
        }
}
END_TEST

/* Runs of full rows are counted without a look at their columns. */
START_TEST(full_matrices_are_runs_but_for_their_corners)
{
    for (int64_t n = 1; n < 40; n += 3) {
        sps_csr *A = zoo_full(n, ZOO_INTEGER, SPS_F64);
        const double slices = (double)(n / 8), all = 8 * slices * (double)n;
        const double runs = slices * (double)(n - 7);

        ck_assert_double_eq(spsi_runs_bytes(A), n < 8 ? 13 :
                            (runs * 68 + (all - 8 * runs) * 13) / all);
        try(A);
        zoo_free(&A);
    }
}
END_TEST

/* Ten diagonals of 8000 rows: nothing but their ends is in the rest. */
START_TEST(bands_are_runs_but_for_their_corners)
{
    enum { N = 8000, HALF = 5 };
    sps_csr *A;
    sps_csr_local local;
    sps_runs f;
    int64_t p = 0;

    OK(ctx, sps_csr_create(ctx, N, N, (2 * HALF + 1) * N - HALF * (HALF + 1),
                           SPS_F64, &A));
    for (int64_t i = 0; i < N; i++) {
        A->rowptr[i] = p;
        for (int64_t j = i - HALF; j <= i + HALF; j++)
            if (j >= 0 && j < N) {
                A->col[p] = (int32_t)j;
                ((double *)A->val)[p++] = 1.0 / (double)(1 + i + j);
            }
    }
    A->rowptr[N] = p;
    local = local_of(A);
    OK(ctx, spsi_runs_from_csr(ctx, &local, &f));
    ck_assert_int_eq(f.dtype, SPS_F64);
    ck_assert_int_eq(f.run[f.slices], (2 * HALF + 1) * f.slices - 2 * HALF);
    ck_assert(spsi_runs_bytes(A) < 8.6 && spsi_runs_bytes(A) >= 8.5);
    for (int64_t s = 0; s < f.slices; s += 100) judge_runs(A, &f, s);
    spsi_runs_clear(ctx, &f);
    sps_csr_destroy(ctx, &A);
}
END_TEST

/* Doubles in place of floats, and no memory for one of their arrays: the next
 * refresh has it, and holds every entry. */
START_TEST(a_refresh_that_lacks_memory_can_be_repeated)
{
    fail_alloc memory = { .allowed = -1 };
    sps_context_options o;
    sps_context *own = NULL;

    sps_context_options_default(&o);
    o.place = SPS_HOST;
    o.host = fail_alloc_host(&memory);
    ck_assert(sps_context_create(&o, &own, NULL) == SPS_OK);
    for (int allowed = 0; allowed < 2; allowed++) {
        sps_csr *A = zoo_matrix(zoo_find("grid5"), 70, 7, ZOO_INTEGER, SPS_F64);
        sps_csr_local local = local_of(A);
        sps_runs f;

        OK(own, spsi_runs_from_csr(own, &local, &f));
        ck_assert(f.dtype == SPS_F32 && f.rest[f.slices] > 0);
        for (int64_t p = 0; p < A->nnz; p++) ((double *)A->val)[p] /= 3;
        fail_alloc_allow(&memory, allowed);
        ck_assert(spsi_runs_refresh(own, &local, &f) == SPS_ENOMEM);
        fail_alloc_allow(&memory, -1);
        OK(own, spsi_runs_refresh(own, &local, &f));
        for (int64_t s = 0; s < f.slices; s++) judge_runs(A, &f, s);
        spsi_runs_clear(own, &f);
        zoo_free(&A);
    }
    sps_context_destroy(&own);
    ck_assert(memory.live == 0 && memory.mismatches == 0);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(every_entry_of_the_zoo_is_held_once),
    RUNNER_TEST(full_matrices_are_runs_but_for_their_corners),
    RUNNER_TEST(bands_are_runs_but_for_their_corners),
    RUNNER_TEST(a_refresh_that_lacks_memory_can_be_repeated),
};
RUNNER_MAIN_WITHIN("slices", tests, open_context, close_context)
