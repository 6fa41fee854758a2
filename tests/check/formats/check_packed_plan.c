/* SPDX-License-Identifier: BSD-3-Clause */
/* check_packed_plan.c - spmv.packed: the 16-bit columns that the device
 * computes equal the host's; windows that cannot be packed, a partial last
 * window and long rows are summed exactly; values that are no longer exact in
 * float are kept in double. */
#include <check.h>

#include "tests/formats/host_formats.h"
#include "tests/support/image.h"
#include "cuda/plan/packed_plan.h"
#include "tests/support/oracle.h"
#include "tests/support/rig.h"
#include "tests/problems/row_lengths.h"
#include "tests/support/runner.h"

static sps_context *ctx;
static const sps_kernel *kernel;

static void open_context(void)
{
    const sps_kernel *k;

    ctx = runner_context();
    kernel = NULL;
    for (int i = 0; (k = spsi_registry_kernel(ctx, i)); i++)
        if (!strcmp(k->name, "spmv.packed")) kernel = k;
}
static void close_context(void) { fixture_close(&ctx); }

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static const int64_t LENGTHS[][8] = {
    { 7, 7, 7, 7, 7, 7, 7, 6 }, { 27, 27, 18, 27, 12, 27, 27, 8 },
    { 81, 81, 54, 81, 36, 81, 81, 24 }, { 3520, 1, 0, 5, 0, 0, 3519, 3 },
    { 1, 1, 500, 1, 1, 1, 65, 64 }, { 0, 0, 0, 1, 0, 0, 0, 0 },
};

/* which / 2 selects the lengths; odd: in every second run of 500 rows the
 * columns are so far apart that the windows cannot be packed. */
static sps_csr *some_matrix(int which, bool whole)
{
    sps_csr *A;

    if (which / 2 >= COUNT(LENGTHS)) return NULL;
    A = row_lengths_matrix(LENGTHS[which / 2], 8, 2501,
                           which % 2 ? 200000 : 9001, whole);
    for (int64_t i = 0; which % 2 && i < A->nrow; i++) {
        const int64_t first = A->rowptr[i], length = A->rowptr[i + 1] - first;

        if (i / 500 % 2)
            for (int64_t t = 0; t < length; t++)
                A->col[first + t] = (int32_t)(t * (199999 / length));
    }
    return A;
}

static void same_columns(const rig *r)
{
    const sps_packed_plan *plan = (const sps_packed_plan *)r->plan;
    const size_t deltas = (size_t)spsi_packed_room(r->A->nnz) * 2;
    const size_t bases = (size_t)plan->packed.windows * SPS_PACKED_SEGMENTS *
                         sizeof(int32_t);
    uint16_t *delta = malloc(deltas + 1);
    int32_t *base = malloc(bases + 1);
    sps_row_blocks b;
    sps_packed host;

    if (r->A->nnz > 0) {
        OK(ctx, spsi_row_blocks_make(ctx, r->A, &plan->rows.rule, &b));
        OK(ctx, spsi_packed_make(ctx, r->A, &b, &host));
        ck_assert_int_eq(plan->packed.windows, host.windows);
        ck_assert_int_eq(plan->packed.escaped, host.escaped);
        OK(ctx, ctx->backend->download(ctx, delta, plan->packed.delta,
                                       deltas));
        OK(ctx, ctx->backend->download(ctx, base, plan->packed.base, bases));
        ck_assert_msg(!memcmp(base, host.base, bases), "%s: bases", r->what);
        ck_assert_msg(!memcmp(delta, host.delta, deltas), "%s: deltas",
                      r->what);
        spsi_packed_free(ctx, &host);
        spsi_row_blocks_free(ctx, &b);
    }
    free(delta);
    free(base);
}

START_TEST(columns_of_the_device_equal_those_of_the_host)
{
    static const int64_t sizes[] = { 0, 1, 70, 1025, 13000 };
    sps_csr *A;
    rig r;

    for (int f = 0; f < zoo_count(); f++)
        for (int s = 0; s < COUNT(sizes); s++) {
            rig_open(&r, ctx, f, sizes[s], ZOO_INTEGER, SPS_F64);
            if (rig_plan(&r, kernel, 1)) same_columns(&r);
            rig_close(&r);
        }
    for (int e = 0; (A = some_matrix(e, true)); e++) {
        rig_take(&r, ctx, "lengths", A);
        ck_assert(rig_plan(&r, kernel, 1));
        same_columns(&r);
        rig_close(&r);
    }
}
END_TEST

/* y = alpha A x + beta y with the present values of r->A, bit for bit. */
static void exact(const rig *r, int layout, double alpha, double beta)
{
    const sps_csr *A = r->A;
    double *right = calloc((size_t)A->nrow + 1, sizeof *right);
    int64_t at;
    image X, Y;

    image_open(&X, ctx, A->ncol, 1, layout, 3, ZOO_INTEGER);
    image_open(&Y, ctx, A->nrow, 1, layout + 1, beta == 0.0 ? 0 : 5,
               ZOO_INTEGER);
    for (int64_t i = 0; i < A->nrow; i++) right[i] = Y.data[i * Y.ld];
    oracle_spmm(A, alpha, X.data, X.ld, beta, right, 1, 1, NULL);
    OK(ctx, kernel->spmm(r->plan, &(sps_spmm_args){
        .alpha = alpha, .X = X.B, .beta = beta, .Y = Y.B }));
    image_read(&Y, r->what);
    at = oracle_differs(A->nrow, 1, Y.out, Y.ld, right, 1);
    ck_assert_msg(at < 0, "%s: row %lld is %.17g, not %.17g", r->what,
                  (long long)at, Y.out[at * Y.ld], right[at]);
    image_close(&X);
    image_close(&Y);
    free(right);
}

START_TEST(windows_of_all_kinds_are_exact)
{
    sps_csr *A;

    for (int e = 0; (A = some_matrix(e, true)); e++) {
        rig r;

        rig_take(&r, ctx, "lengths", A);
        ck_assert(rig_plan(&r, kernel, 1));
        for (int layout = 0; layout < LAYOUTS; layout++) {
            if (layout == LAYOUTS - 1) {
                rig_wide(&r);
                ck_assert(rig_plan(&r, kernel, 1));
            }
            exact(&r, layout, 1.0, 0.0);
            exact(&r, layout, -2.0, 3.0);
        }
        rig_close(&r);
    }
}
END_TEST

START_TEST(ends_of_every_remainder_are_exact)
{
    for (int64_t last = 1; last <= 9; last++)
        for (int64_t before = 0; before < 2; before++) {
            const int64_t lengths[] = { 7 + before, last };
            rig r;

            rig_take(&r, ctx, "end", row_lengths_matrix(lengths, 2, 2, 20,
                                                        true));
            ck_assert(rig_plan(&r, kernel, 1));
            exact(&r, 0, 1.0, 0.0);
            ((double *)r.A->val)[0] = 0x1p40 + 1; /* not exact in float */
            rig_refresh(&r);
            exact(&r, 0, 1.0, 0.0);
            rig_close(&r);
        }
}
END_TEST

/* Integers of 28 bits: their products with those of X are exact in double. */
START_TEST(a_refresh_that_floats_cannot_hold_loses_nothing)
{
    const sps_packed_plan *plan;
    rig r;

    rig_take(&r, ctx, "refresh", some_matrix(2, true));
    ck_assert(rig_plan(&r, kernel, 1));
    plan = (const sps_packed_plan *)r.plan;
    ck_assert(plan->exact && strstr(r.plan->detail, ", values in float"));
    exact(&r, 0, 1.0, 0.0);
    rig_set_value(&r, 777, 0x1p27 + 1);
    rig_refresh(&r);
    ck_assert(!plan->exact && !strstr(r.plan->detail, "float"));
    exact(&r, 0, 1.0, 0.0);
    rig_new_values(&r);
    ck_assert(plan->exact);
    exact(&r, 0, 1.0, 0.0);
    rig_close(&r);
}
END_TEST

START_TEST(one_value_in_the_end_keeps_the_plan_in_double)
{
    sps_csr *A = some_matrix(2, true);
    rig r;

    ((double *)A->val)[A->nnz - 1] = 0x1p30 + 1;
    rig_take(&r, ctx, "one", A);
    ck_assert(rig_plan(&r, kernel, 1));
    ck_assert(!((const sps_packed_plan *)r.plan)->exact);
    exact(&r, 0, 1.0, 0.0);
    rig_new_values(&r);
    exact(&r, 0, 1.0, 0.0);
    rig_close(&r);
}
END_TEST

int main(void)
{
    Suite *s;
    TCase *t;

    if (runner_place() != SPS_CUDA) {
        fprintf(stderr, "skipped: plans of the GPU\n");
        return 77;
    }
    s = suite_create("packed_plan");
    t = tcase_create("packed_plan");
    tcase_set_timeout(t, RUNNER_TIMEOUT);
    tcase_add_checked_fixture(t, open_context, close_context);
    tcase_add_test(t, columns_of_the_device_equal_those_of_the_host);
    tcase_add_test(t, windows_of_all_kinds_are_exact);
    tcase_add_test(t, ends_of_every_remainder_are_exact);
    tcase_add_test(t, a_refresh_that_floats_cannot_hold_loses_nothing);
    tcase_add_test(t, one_value_in_the_end_keeps_the_plan_in_double);
    suite_add_tcase(s, t);
    return runner_run(s);
}
