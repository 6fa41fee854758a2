/* SPDX-License-Identifier: BSD-3-Clause */
/* check_sampling.c - sps_operator_sample: U V' on the pattern of A. */
#include <check.h>
#include <stdio.h>

#include "tests/support/apply.h"
#include "tests/support/oracle.h"
#include "plan/planner.h"
#include "tests/support/runner.h"
#include "tests/problems/zoo.h"

static sps_context *ctx;

static void open_context(void) { ctx = runner_context(); }
static void close_context(void) { fixture_close(&ctx); }

static void sample(const sps_csr *A, sps_operator *op, int k, bool multiply,
                   double beta)
{
    double *u = zoo_block(A->nrow, k, k, 3, ZOO_INTEGER);
    double *v = zoo_block(A->ncol, k, k, 4, ZOO_INTEGER);
    double *val = zoo_block(A->nnz, 1, 1, 5, ZOO_INTEGER);
    double *out = zeros(A->nnz);
    sps_block *U = fixture_block(ctx, A->nrow, k, u, k);
    sps_block *V = fixture_block(ctx, A->ncol, k, v, k);
    sps_block *S = fixture_block(ctx, A->nnz, 1, val, 1);

    OK(ctx, sps_operator_sample(op, -1.0, U, V, multiply, beta,
                                sps_block_data(S, NULL)));
    OK(ctx, sps_block_get(S, 0, 1, out, 1, SPS_ROW_MAJOR, SPS_HOST));
    oracle_sddmm(A, -1.0, u, k, v, k, k, multiply, beta, val, NULL);
    ck_assert_int_eq(oracle_differs(A->nnz, 1, out, 1, val, 1), -1);
    sps_block_destroy(&U);
    sps_block_destroy(&V);
    sps_block_destroy(&S);
    free(u);
    free(v);
    free(val);
    free(out);
}

START_TEST(samples_equal_the_masked_dense_product)
{
    for (int f = 0; f < zoo_count(); f++) {
        sps_csr *A = zoo_matrix(f, 50, 7, ZOO_INTEGER, SPS_F64);
        sps_operator *op = operator_of(ctx, A, 4);

        sample(A, op, 3, false, 0.0);
        sample(A, op, 3, true, 2.0);
        sample(A, op, 11, true, 1.0);    /* wider than the plan: a new one */
        sample(A, op, 128, false, 0.0);
        sample(A, op, 150, true, 1.0);   /* wider than any plan: several runs */
        sps_operator_destroy(&op);
        zoo_free(&A);
    }
}
END_TEST

START_TEST(sampling_shows_its_bids)
{
    sps_csr *A = zoo_matrix(zoo_find("grid7"), 50, 7, ZOO_INTEGER, SPS_F64);
    sps_operator *op = operator_of(ctx, A, 4);
    char text[8192];

    sps_operator_describe(op, text, sizeof text);
    ck_assert_ptr_null(strstr(text, "sddmm"));
    sample(A, op, 3, false, 0.0);
    ck_assert_uint_lt(sps_operator_describe(op, text, sizeof text),
                      sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "\nsddmm k=4\n"));
    ck_assert_ptr_nonnull(strstr(strstr(text, "sddmm k="), "chosen"));
    sps_operator_destroy(&op);
    zoo_free(&A);
}
END_TEST

START_TEST(a_wide_sample_replaces_a_narrow_plan)
{
    sps_csr *A = zoo_matrix(zoo_find("grid7"), 50, 7, ZOO_INTEGER, SPS_F64);
    sps_operator *op = operator_of(ctx, A, 1);
    char text[8192];

    sample(A, op, 1, false, 0.0);
    ck_assert_int_eq(op->cache->sddmm->k, 1);
    sample(A, op, 128, true, 1.0);
    ck_assert_int_eq(op->cache->sddmm->k, 128);
    sample(A, op, 1, false, 0.0);        /* uses the wider plan */
    ck_assert_int_eq(op->cache->sddmm->k, 128);
    sps_operator_describe(op, text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "\nsddmm k=128\n"));
    ck_assert_ptr_null(strstr(text, "\nsddmm k=1\n"));
    sps_operator_destroy(&op);
    zoo_free(&A);
}
END_TEST

/* Samples with an operator whose options no longer exist; copies what
 * sps_operator_describe says of the kernel with that name. */
static void sample_by(sps_csr *A, const char *name, char *line, size_t size)
{
    sps_options opt;
    sps_operator *op = NULL;
    char option[64], bid[64], text[8192], *s;

    snprintf(option, sizeof option, "%s", name);
    sps_options_default(&opt);
    opt.kernel = option;
    OK(ctx, sps_operator_csr(ctx, A, 4, &opt, &op));
    memset(option, '?', sizeof option - 1);
    sample(A, op, 4, true, 1.0);
    sps_operator_describe(op, text, sizeof text);
    s = strstr(text, "\nsddmm k=4\n");
    ck_assert_ptr_nonnull(s);
    snprintf(bid, sizeof bid, "\n  %s ", op->cache->sddmm->kernel->name);
    s = strstr(s, bid);
    ck_assert_ptr_nonnull(s);
    snprintf(line, size, "%.*s", (int)strcspn(s + 1, "\n"), s + 1);
    sps_operator_destroy(&op);
}

START_TEST(a_name_pins_the_kernel_of_sampling)
{
    sps_csr *A = zoo_matrix(zoo_find("grid7"), 50, 7, ZOO_INTEGER, SPS_F64);
    const sps_kernel *kernel;
    char line[256];

    for (int i = 0; (kernel = spsi_registry_kernel(ctx, i)); i++) {
        if (kernel->op != SPS_OP_SDDMM) continue;
        sample_by(A, kernel->name, line, sizeof line);
        ck_assert_msg(strstr(line, kernel->name) && strstr(line, " chosen"),
                      "%s was asked for: %s", kernel->name, line);
    }
    sample_by(A, "measure", line, sizeof line);
    ck_assert_msg(strstr(line, " measured ") != NULL, "%s", line);
    zoo_free(&A);
}
END_TEST

START_TEST(samples_of_sorted_copies_have_no_place)
{
    int64_t rowptr[] = { 0, 2, 3 };
    int32_t col[] = { 1, 0, 1 };
    double val[] = { 1, 2, 3 };
    sps_csr *A = NULL;
    sps_operator *op;
    sps_block *U = fixture_block(ctx, 2, 2, NULL, 2);

    OK(ctx, sps_csr_wrap(ctx, 2, 2, 3, rowptr, col, val, SPS_F64, SPS_HOST,
                         SPS_BORROW, &A));
    op = operator_of(ctx, A, 4);
    ck_assert_int_eq(sps_operator_sample(op, 1, U, U, false, 0, val),
                     SPS_EUNFIT);
    sps_operator_destroy(&op);
    sps_csr_destroy(ctx, &A);
    sps_block_destroy(&U);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(samples_equal_the_masked_dense_product),
    RUNNER_TEST(sampling_shows_its_bids),
    RUNNER_TEST(a_wide_sample_replaces_a_narrow_plan),
    RUNNER_TEST(a_name_pins_the_kernel_of_sampling),
    RUNNER_TEST(samples_of_sorted_copies_have_no_place),
};
RUNNER_MAIN_WITHIN("sampling", tests, open_context, close_context)
