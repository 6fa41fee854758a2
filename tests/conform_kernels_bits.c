/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_kernels_bits.c - the same bits at every run, whatever else happens;
 * and no memory taken on the way. */
#include "conform_kernels.h"

/* Runs with random data; the caller frees what comes back. */
static double *product(sps_context *with, const rig *r, int k)
{
    double *y = malloc((size_t)(r->A->nrow * k + 1) * sizeof *y);
    double *x = zoo_block(r->A->ncol, k, k, 9, ZOO_RANDOM);
    sps_block *X = fixture_block(with, r->A->ncol, k, x, k);
    sps_block *Y = fixture_block(with, r->A->nrow, k, NULL, k);
    const sps_spmm_args args = { .alpha = 0.7, .X = X, .Y = Y };

    OK(with, r->plan->kernel->spmm(r->plan, &args));
    OK(with, sps_block_get(Y, 0, k, y, k, SPS_ROW_MAJOR, SPS_HOST));
    sps_block_destroy(&X);
    sps_block_destroy(&Y);
    free(x);
    return y;
}

static void same_bits(const rig *r, int k, const double *a, const double *b,
                      const char *what)
{
    ck_assert_msg(!memcmp(a, b, (size_t)(r->A->nrow * k) * sizeof *a),
                  "%s on %s, k %d: other bits %s", r->plan->kernel->name,
                  r->what, k, what);
}

/* Runs again with the same plan, and at last with a fresh one. */
static void repeat(rig *r, const sps_kernel *kernel, int k, int runs)
{
    double *first = product(ctx, r, k);

    for (int i = 0; i < runs; i++) {
        double *again;

        if (i == runs - 1) rig_plan(r, kernel, k);
        again = product(ctx, r, k);
        same_bits(r, k, first, again, "at another run");
        free(again);
    }
    free(first);
}

START_TEST(reproducible_kernels_repeat_their_bits)
{
    const sps_kernel *kernel;
    const int runs = fixture_env("SPS_TEST_LONG") ? 20 : 2;

    FOR_KERNELS(kernel) {
        if (!(kernel->gives & SPS_REPRODUCIBLE)) continue;
        for (int f = 0; f < zoo_count(); f++) {
            rig r;

            rig_open(&r, ctx, f, 1500, ZOO_RANDOM, SPS_F64);
            for (int w = f % 2; w < FEW_COUNT; w += 2)
                if (rig_plan(&r, kernel, FEW[w]))
                    repeat(&r, kernel, FEW[w], runs);
            rig_close(&r);
        }
    }
}
END_TEST

START_TEST(threads_do_not_change_bits_on_the_host)
{
    const sps_kernel *kernel;

    if (ctx->backend->place != SPS_HOST) return;
    FOR_KERNELS(kernel) {
        if (!(kernel->gives & SPS_REPRODUCIBLE)) continue;
        for (int f = 0; f < zoo_count(); f++) {
            sps_context *one = fixture_open_with(SPS_HOST, 1, true);
            sps_context *three = fixture_open_with(SPS_HOST, 3, true);
            double *a, *b;
            rig r, s;

            rig_open(&r, one, f, 2100, ZOO_RANDOM, SPS_F64);
            rig_open(&s, three, f, 2100, ZOO_RANDOM, SPS_F64);
            for (int w = 0; w < FEW_COUNT; w++)
                if (rig_plan(&r, kernel, FEW[w]) &&
                    rig_plan(&s, kernel, FEW[w])) {
                    a = product(one, &r, FEW[w]);
                    b = product(three, &s, FEW[w]);
                    same_bits(&r, FEW[w], a, b, "with other threads");
                    free(a);
                    free(b);
                }
            rig_close(&r);
            rig_close(&s);
            fixture_close(&one);
            fixture_close(&three);
        }
    }
}
END_TEST

static void product_once(const rig *r, const sps_block *X, sps_block *Y)
{
    OK(ctx, r->plan->kernel->spmm(r->plan, &(sps_spmm_args){
        .alpha = 1, .X = X, .Y = Y }));
    OK(ctx, ctx->backend->sync(ctx));
}

START_TEST(a_product_allocates_nothing)
{
    const sps_kernel *kernel;

    FOR_KERNELS(kernel)
        for (int f = 0; f < zoo_count(); f += 2) {
            sps_context_info before = { .struct_size = sizeof before };
            sps_context_info after = { .struct_size = sizeof after };
            image X, Y;
            rig r;

            rig_open(&r, ctx, f, 300, ZOO_RANDOM, SPS_F64);
            if (rig_plan(&r, kernel, 16)) {
                image_open(&X, ctx, r.A->ncol, 16, 0, 3, ZOO_RANDOM);
                image_open(&Y, ctx, r.A->nrow, 16, 0, 0, ZOO_RANDOM);
                /* Fresh peaks: what is held now is the most there was. */
                ctx->host_peak = ctx->host_bytes;
                ctx->device_peak = ctx->device_bytes;
                sps_context_information(ctx, &before);
                product_once(&r, X.B, Y.B);
                sps_context_information(ctx, &after);
                ck_assert_msg(after.host_peak == before.host_peak &&
                              after.device_peak == before.device_peak,
                              "%s allocated", kernel->name);
                image_close(&X);
                image_close(&Y);
            }
            rig_close(&r);
        }
}
END_TEST

void add_bits(TCase *t)
{
    tcase_add_test(t, reproducible_kernels_repeat_their_bits);
    tcase_add_test(t, threads_do_not_change_bits_on_the_host);
    tcase_add_test(t, a_product_allocates_nothing);
}
