/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_sddmm.c - every listed SDDMM kernel of the place against the
 * contract in kernel.h: val = alpha (u_i . v_j) [a_ij] + beta val on the
 * stored entries.  Integers bit for bit, random data within the bound. */
#include <check.h>
#include <math.h>

#include "block.h"
#include "image.h"
#include "oracle.h"
#include "rig.h"
#include "runner.h"

static sps_context *ctx;

static void open_context(void) { ctx = runner_context(); }
static void close_context(void) { fixture_close(&ctx); }

static const int WIDTHS[] = { 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64,
                              100 };

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))
#define FOR_KERNELS(kernel)                                                    \
    for (int i_ = 0; (kernel = rig_kernel(ctx, SPS_OP_SDDMM, i_)); i_++)

typedef struct trial {
    const rig *r;
    int k, layout;
    double alpha, beta;
    bool multiply;
    zoo_values values;
} trial;

static void judge(const trial *t, image *val, const double *right,
                  const double *bound)
{
    const int64_t nnz = t->r->A->nnz;
    char what[160];

    snprintf(what, sizeof what, "%s on %s (f%d) k %d layout %d alpha %g beta "
             "%g multiply %d", t->r->plan->kernel->name, t->r->what,
             t->r->A->dtype == SPS_F64 ? 64 : 32, t->k, t->layout, t->alpha,
             t->beta, t->multiply);
    image_read(val, what);
    if (t->values == ZOO_INTEGER) {
        const int64_t p = oracle_differs(nnz, 1, val->out, 1, right, 1);

        ck_assert_msg(p < 0, "%s: entry %lld is %.17g, not %.17g", what,
                      (long long)p, val->out[p], right[p]);
    } else {
        const double ratio = oracle_ratio(nnz, 1, val->out, 1, right, 1,
                                          bound, t->k);

        ck_assert_msg(ratio <= 1.0, "%s: error is %g bounds", what, ratio);
    }
}

/* Old values are NaN when beta = 0, U and V are NaN when alpha = 0. */
static void try(const trial *t)
{
    const sps_csr *A = t->r->A;
    const size_t count = (size_t)A->nnz + 1;
    double *right = calloc(count, sizeof *right);
    double *bound = calloc(count, sizeof *bound);
    image U, V, val;

    image_open(&U, ctx, A->nrow, t->k, t->layout, t->alpha == 0.0 ? 0 : 3,
               t->values);
    image_open(&V, ctx, A->ncol, t->k, t->layout + 1,
               t->alpha == 0.0 ? 0 : 4, t->values);
    image_open(&val, ctx, A->nnz, 1, 1, t->beta == 0.0 ? 0 : 5, t->values);
    memcpy(right, val.data, (size_t)A->nnz * sizeof *right);
    oracle_sddmm(A, t->alpha, U.data, U.ld, V.data, V.ld, t->k, t->multiply,
                 t->beta, right, bound);
    OK(ctx, t->r->plan->kernel->sddmm(t->r->plan, &(sps_sddmm_args){
        t->alpha, U.B, V.B, t->multiply, t->beta,
        (double *)val.memory + val.offset }));
    OK(ctx, ctx->backend->sync(ctx));
    judge(t, &val, right, bound);
    image_close(&U);
    image_close(&V);
    image_close(&val);
    free(right);
    free(bound);
}

START_TEST(sddmm_equals_the_oracle_exactly_on_integers)
{
    const double scalars[][2] = { { 1, 0 }, { -1, 1 }, { 2, -3 }, { 0, 2 },
                                  { 0, 0 } };
    const int step = fixture_env("SPS_TEST_QUICK") ? 4 : 1;
    const sps_kernel *kernel;
    int turn = 0;

    FOR_KERNELS(kernel) {
        int64_t fitted = 0;

        for (int f = 0; f < zoo_count(); f++)
            for (int d = 0; d < 2; d++) {
                rig r;

                rig_open(&r, ctx, f, 70, ZOO_INTEGER, (sps_dtype)d);
                for (int w = 0; w < COUNT(WIDTHS); w += step, turn++) {
                    const trial t = { &r, WIDTHS[w], turn % LAYOUTS,
                                      scalars[turn % 5][0],
                                      scalars[turn % 5][1], turn % 2 == 0,
                                      ZOO_INTEGER };

                    if (!rig_plan(&r, kernel, WIDTHS[w])) continue;
                    try(&t);
                    fitted++;
                }
                rig_close(&r);
            }
        ck_assert_msg(fitted > 0, "%s fits nothing of the zoo", kernel->name);
    }
}
END_TEST

START_TEST(sddmm_of_tiny_and_of_many_rows_is_exact)
{
    const int64_t sizes[] = { 0, 1, 2, 9, 1100 };
    const sps_kernel *kernel;

    FOR_KERNELS(kernel)
        for (int f = 0; f < zoo_count(); f++)
            for (int s = 0; s < COUNT(sizes); s++) {
                rig r;
                const trial t = { &r, 5, s % LAYOUTS, 2.0, 1.0, f % 2 == 0,
                                  ZOO_INTEGER };

                rig_open(&r, ctx, f, sizes[s], ZOO_INTEGER, SPS_F64);
                if (rig_plan(&r, kernel, 5)) try(&t);
                rig_close(&r);
            }
}
END_TEST

START_TEST(sddmm_of_random_data_stays_within_the_bound)
{
    const sps_kernel *kernel;

    FOR_KERNELS(kernel) {
        if (!(kernel->gives & SPS_FULL_PRECISION)) continue;
        for (int f = 0; f < zoo_count(); f++)
            for (int w = 0; w < COUNT(WIDTHS); w += 3) {
                rig r;
                const trial t = { &r, WIDTHS[w], w % LAYOUTS, 0.37, -1.25,
                                  w % 2 == 0, ZOO_RANDOM };

                rig_open(&r, ctx, f, 150, f % 2 ? ZOO_RANDOM : ZOO_SCALES,
                         (sps_dtype)(w % 2));
                if (rig_plan(&r, kernel, WIDTHS[w])) try(&t);
                rig_close(&r);
            }
    }
}
END_TEST

START_TEST(an_sddmm_plan_serves_every_narrower_width)
{
    const sps_kernel *kernel;

    FOR_KERNELS(kernel) {
        rig r;

        rig_open(&r, ctx, zoo_find("uniform"), 80, ZOO_INTEGER, SPS_F64);
        if (rig_plan(&r, kernel, 33))
            for (int k = 1; k <= 33; k++) {
                const trial t = { &r, k, k % LAYOUTS, -1.0, 2.0, k % 2 == 0,
                                  ZOO_INTEGER };

                try(&t);
            }
        rig_close(&r);
    }
}
END_TEST

START_TEST(sddmm_sees_refreshed_values)
{
    const sps_kernel *kernel;

    FOR_KERNELS(kernel)
        for (int f = 0; f < zoo_count(); f++) {
            rig r;
            const trial t = { &r, 9, 0, 1.0, 0.0, true, ZOO_INTEGER };

            rig_open(&r, ctx, f, 90, ZOO_INTEGER, SPS_F64);
            if (rig_plan(&r, kernel, 9)) {
                try(&t);
                rig_new_values(&r);
                try(&t);
            }
            rig_close(&r);
        }
}
END_TEST

/* A NaN in row c of V reaches the entries of column c and no others. */
START_TEST(nan_of_a_row_stays_with_its_entries)
{
    const sps_kernel *kernel;

    FOR_KERNELS(kernel)
        for (int f = 0; f < zoo_count(); f++) {
            image U, V, val;
            rig r;

            rig_open(&r, ctx, f, 70, ZOO_INTEGER, SPS_F64);
            if (r.A->ncol == 0 || !rig_plan(&r, kernel, 8)) {
                rig_close(&r);
                continue;
            }
            image_open(&U, ctx, r.A->nrow, 8, 0, 3, ZOO_INTEGER);
            image_open(&V, ctx, r.A->ncol, 8, 0, 4, ZOO_INTEGER);
            image_open(&val, ctx, r.A->nnz, 1, 1, 0, ZOO_INTEGER);
            V.data[r.A->ncol / 2 * V.ld + 3] = NAN;
            image_upload(&V);
            OK(ctx, r.plan->kernel->sddmm(r.plan, &(sps_sddmm_args){
                1.0, U.B, V.B, false, 0.0, val.memory }));
            image_read(&val, kernel->name);
            for (int64_t p = 0; p < r.A->nnz; p++)
                ck_assert_msg(isnan(val.out[p]) ==
                              (r.A->col[p] == r.A->ncol / 2),
                              "%s on %s: entry %lld", kernel->name, r.what,
                              (long long)p);
            image_close(&U);
            image_close(&V);
            image_close(&val);
            rig_close(&r);
        }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("conform_sddmm");
    TCase *t = tcase_create("sddmm");

    tcase_set_timeout(t, 600);
    tcase_add_checked_fixture(t, open_context, close_context);
    tcase_add_test(t, sddmm_equals_the_oracle_exactly_on_integers);
    tcase_add_test(t, sddmm_of_tiny_and_of_many_rows_is_exact);
    tcase_add_test(t, sddmm_of_random_data_stays_within_the_bound);
    tcase_add_test(t, an_sddmm_plan_serves_every_narrower_width);
    tcase_add_test(t, sddmm_sees_refreshed_values);
    tcase_add_test(t, nan_of_a_row_stays_with_its_entries);
    suite_add_tcase(s, t);
    return runner_run(s);
}
