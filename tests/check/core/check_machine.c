/* SPDX-License-Identifier: BSD-3-Clause */
/* check_machine.c - the records of machines for predictions: the cost model of
 * gathers compared with measurements on an H200, records of other GPUs, and
 * that predictions follow the record. */
#include <check.h>
#include <math.h>

#include "cuda/base/machine.h"
#include "operator/direct.h"
#include "tests/support/rig.h"
#include "tests/support/runner.h"

/* TB/s of rows of 32, 64, 128, 512 bytes; tools/peers/calibrate.cu. */
static const struct { double mb, rate[4]; } measured[] = {
    {4, {5.11, 9.36, 9.90, 9.83}},    {16, {5.08, 9.16, 9.20, 9.17}},
    {32, {4.43, 8.44, 9.09, 9.03}},   {48, {3.18, 6.28, 8.98, 8.91}},
    {64, {2.42, 4.76, 7.69, 7.66}},   {96, {1.88, 3.73, 6.39, 6.37}},
    {128, {1.67, 3.32, 5.93, 5.89}},  {240, {1.44, 2.86, 5.12, 5.26}},
    {480, {1.33, 2.65, 4.63, 4.83}},  {1024, {1.28, 2.55, 4.39, 4.61}},
};
static const double row[4] = {32, 64, 128, 512};
enum { LINES = (int)(sizeof measured / sizeof *measured) };

/* As their drivers report them (peak rates of the data sheets). */
static const sps_gpu gpus[] = {
    {"Tesla T4", 7, 5, 40, 1.59e9, 0.320e12, 4194304},
    {"Tesla V100-SXM2-32GB", 7, 0, 80, 1.53e9, 0.898e12, 6291456},
    {"NVIDIA A100-SXM4-80GB", 8, 0, 108, 1.41e9, 2.039e12, 41943040},
    {"NVIDIA GeForce RTX 4090", 8, 9, 128, 2.52e9, 1.008e12, 75497472},
    {"NVIDIA H100 80GB HBM3", 9, 0, 132, 1.98e9, 3.352e12, 52428800},
    {"NVIDIA H200", 9, 0, 132, 1.98e9, 4.917e12, 62914560},
    {"NVIDIA H200 MIG 1g.18gb", 9, 0, 16, 1.98e9, 0.61e12, 7864320},
    {"NVIDIA B200", 10, 0, 148, 1.965e9, 7.7e12, 132644864},
    {"no attributes", 12, 1, 48, 0, 0, 0},
};
enum { GPUS = (int)(sizeof gpus / sizeof *gpus) };

START_TEST(the_formula_is_within_20_percent)
{
    const sps_machine m = spsi_machine_fitted();

    for (int i = 0; i < LINES; i++)
        for (int j = 0; j < 4; j++) {
            const double rate = spsi_gather_rate(
                &m, measured[i].mb * 1048576, row[j]);
            const double times = 1e-12 * rate / measured[i].rate[j];

            ck_assert_msg(times > 1 / 1.2 && times < 1.2,
                          "%g MB, rows of %g: %g times what was measured",
                          measured[i].mb, row[j], times);
        }
}
END_TEST

START_TEST(more_footprint_is_slower_longer_rows_are_faster)
{
    for (int i = 0; i < GPUS; i++) {
        const sps_machine m = spsi_machine_of(&gpus[i]);

        for (double mb = 1; mb < 4096; mb *= 1.3)
            for (double r = 32; r <= 1024; r += 32) {
                const double here = spsi_gather_rate(&m, mb * 1e6, r);

                ck_assert_double_ge(here,
                                    spsi_gather_rate(&m, mb * 1.1e6, r));
                ck_assert_double_le(here,
                                    spsi_gather_rate(&m, mb * 1e6, r + 32));
                ck_assert_double_gt(here, 0);
            }
    }
}
END_TEST

START_TEST(sectors_are_whole)
{
    ck_assert_double_eq(spsi_sectors(0), 0);
    ck_assert_double_eq(spsi_sectors(8), 32);
    ck_assert_double_eq(spsi_sectors(32), 32);
    ck_assert_double_eq(spsi_sectors(72), 96);
}
END_TEST

/* ---------------------------------------------------------------- records */

/* The numbers that the constants of kernels were fitted with. */
START_TEST(the_record_of_the_measured_gpu_is_what_was_measured)
{
    sps_gpu g = spsi_gpu_fitted();
    sps_machine m;

    g.memory = 4.8e12;               /* not to depend on what is reported */
    g.clock = 1.785e9;
    g.name = "NVIDIA H200 NVL";
    m = spsi_machine_of(&g);
    ck_assert_double_eq(m.copy, 4.2e12);
    ck_assert_double_eq(m.sync, 2.5e-4);
    ck_assert_double_eq(m.launch, 4.5e-6);
    ck_assert_double_eq(m.sms, 132);
    ck_assert_double_eq(m.work, 1);
    ck_assert_double_eq(m.slow_fma, 0);
    ck_assert_double_eq(m.l2_step, 0.36e-6);
    ck_assert_double_eq(m.memory_step, 0.7e-6);
    ck_assert_double_eq(m.kept, 30e6);
    ck_assert_double_eq(4 * m.kept / 3, 40e6);
    ck_assert_double_eq(m.l2_lines, 58e6);
    ck_assert_double_eq(m.l2_short, 39e6);
    ck_assert_double_eq(m.l2, 2.17);
    ck_assert_double_eq(m.memory, 1.05);
    ck_assert_double_eq(m.l2_row, 38e-3);
    ck_assert_double_eq(m.memory_row, 9.5e-3);
}
END_TEST

/* Scaling what the driver reports gives the measured record again. */
START_TEST(scaling_passes_through_the_measured_gpu)
{
    const sps_machine known = spsi_machine_fitted();
    sps_gpu g = spsi_gpu_fitted();
    sps_machine m;

    g.name = "another";
    m = spsi_machine_of(&g);
    ck_assert_mem_eq(&m, &known, sizeof m);
}
END_TEST

/* With the same multiprocessors and slower memory streams and instructions
 * become slower alike, so that a kernel that was the faster one stays it; with
 * fewer multiprocessors instructions alone do. */
START_TEST(slower_memory_keeps_the_order_of_kernels)
{
    const sps_machine known = spsi_machine_fitted();
    sps_gpu g = spsi_gpu_fitted();
    sps_machine m;

    g.name = "another";
    g.memory *= 0.68;
    m = spsi_machine_of(&g);
    ck_assert_double_eq_tol(m.work * m.copy, known.copy, 1e-3);
    g = spsi_gpu_fitted();
    g.name = "another";
    g.sms /= 2;
    m = spsi_machine_of(&g);
    ck_assert_double_eq_tol(m.work, 2, 1e-12);
    ck_assert_double_eq(m.copy, known.copy);
}
END_TEST

START_TEST(records_are_plausible)
{
    for (int i = 0; i < GPUS; i++) {
        const sps_gpu *g = &gpus[i];
        const sps_machine m = spsi_machine_of(g);
        const double l2 = m.l2 * m.copy, least = g->memory > 0 ? 0.8 : 0;

        ck_assert_msg(m.copy > least * g->memory &&
                      (g->memory == 0 || m.copy < 0.9 * g->memory) &&
                      m.copy > 1e11, "%s: copy %g", g->name, m.copy);
        ck_assert_msg(l2 > m.memory * m.copy && l2 < 2e13, "%s: L2 %g",
                      g->name, l2);
        ck_assert_msg(g->l2 == 0 || (m.kept < m.l2_short &&
                      m.l2_short < m.l2_lines && m.l2_lines < g->l2),
                      "%s: %g bytes of L2", g->name, m.l2_lines);
        ck_assert_msg(m.work > 0.5 && m.work < 20, "%s: work %g", g->name,
                      m.work);
        ck_assert_msg(m.l2_step < m.memory_step && m.launch < m.sync &&
                      m.sms == g->sms, "%s", g->name);
    }
}
END_TEST

/* Of two GPUs that differ in one property, the better one is not slower. */
START_TEST(more_of_a_property_is_not_slower)
{
    sps_gpu g = gpus[2];
    const sps_machine less = spsi_machine_of(&g);
    sps_machine more;

    g.memory *= 1.5;
    more = spsi_machine_of(&g);
    ck_assert_double_eq_tol(more.copy / less.copy, 1.5, 1e-12);
    ck_assert_double_le(more.work, less.work);
    for (double r = 32; r <= 1024; r += 32)
        for (double mb = 1; mb < 4096; mb *= 2)
            ck_assert_double_ge(
                spsi_gather_rate(&more, mb * 1e6, r) * (1 + 1e-12),
                spsi_gather_rate(&less, mb * 1e6, r));
    g = gpus[2];
    g.sms *= 2;
    more = spsi_machine_of(&g);
    ck_assert_double_le(more.work, less.work);
    ck_assert_double_gt(more.l2, less.l2);
    ck_assert_double_eq(more.copy, less.copy);
    g = gpus[2];
    g.l2 *= 2;
    more = spsi_machine_of(&g);
    ck_assert_double_eq_tol(more.kept / less.kept, 2, 1e-12);
    ck_assert_double_ge(spsi_gather_rate(&more, 6e7, 128),
                        spsi_gather_rate(&less, 6e7, 128));
}
END_TEST

START_TEST(double_precision_is_slow_where_it_is)
{
    static const struct { int major, minor, fma; } known[] = {
        {7, 0, 32}, {7, 5, 2}, {8, 0, 32}, {8, 6, 2}, {8, 9, 2}, {9, 0, 64},
        {10, 0, 64}, {12, 0, 2},
    };

    for (int i = 0; i < (int)(sizeof known / sizeof *known); i++) {
        sps_gpu g = gpus[0];

        g.major = known[i].major;
        g.minor = known[i].minor;
        ck_assert_int_eq(spsi_gpu_fma(g.major, g.minor), known[i].fma);
        ck_assert((spsi_machine_of(&g).slow_fma > 0) == (known[i].fma < 32));
    }
}
END_TEST

/* ---------------------------------------------------------------- the host */

START_TEST(the_host_has_10_gb_s_for_each_core)
{
    static const int threads[] = {1, 2, 16, 17};

    for (int i = 0; i < 4; i++) {
        sps_context *ctx = fixture_open_with(SPS_HOST, threads[i], true);

        ck_assert_double_eq(ctx->machine.copy,
                            1e10 * (threads[i] < 16 ? threads[i] : 16));
        ck_assert_double_eq(ctx->machine.sync, 0);
        fixture_close(&ctx);
    }
}
END_TEST

/* Whatever the number of threads, so that choices repeat. */
START_TEST(one_core_has_one_record)
{
    const sps_core fitted = spsi_core_fitted();

    for (int threads = 1; threads <= 16; threads *= 4) {
        sps_context *ctx = fixture_open_with(SPS_HOST, threads, true);

        ck_assert_mem_eq(&ctx->machine.core, &fitted, sizeof fitted);
        fixture_close(&ctx);
    }
}
END_TEST

/* An analysis is predicted from rows and entries, and operations from seconds,
 * by the record alone. */
START_TEST(predictions_of_factors_follow_the_record)
{
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);
    sps_core *c = &ctx->machine.core;
    rig r;

    rig_open(&r, ctx, zoo_find("grid7"), 300, ZOO_INTEGER, SPS_F64);
    c->library.analysed_row = 3;
    c->library.analysed_entry = 0;
    ck_assert_double_eq(spsi_direct_analysis_seconds(r.op),
                        3.0 * (double)r.op->n);
    c->library.analysed_row = 0;
    c->library.analysed_entry = 2;
    ck_assert_double_eq(spsi_direct_analysis_seconds(r.op),
                        2.0 * (double)r.op->A->nnz);
    c->library.flop = 0.5;
    ck_assert_double_eq(spsi_direct_operations(ctx, 4), 8);
    rig_close(&r);
    fixture_close(&ctx);
}
END_TEST

/* All of their predictions are times of bytes. */
START_TEST(bids_of_the_host_follow_the_bandwidth)
{
    sps_context *ctx = fixture_open_with(SPS_HOST, 2, true);
    sps_machine fast = ctx->machine;
    int bids = 0;
    rig r;

    fast.copy *= 4;
    rig_open(&r, ctx, zoo_find("grid7"), 300, ZOO_INTEGER, SPS_F64);
    r.machine = ctx->machine;
    for (int k = 1; k <= 64; k *= 4)
        for (int i = 0; spsi_kernels_host[i]; i++) {
            const sps_kernel *kernel = spsi_kernels_host[i];
            sps_problem p = rig_problem(&r, kernel->op, k);
            double slow;
            const char *why;

            if (!spsi_kernel_fits(kernel, &p, &why)) continue;
            slow = kernel->cost(&p);
            p.machine = &fast;
            ck_assert_double_gt(slow, 0);
            ck_assert_double_eq(4 * kernel->cost(&p), slow);
            bids++;
        }
    ck_assert_int_gt(bids, 4);
    rig_close(&r);
    fixture_close(&ctx);
}
END_TEST

/* The planner adds arithmetic to the bids of kernels that keep full precision,
 * if multiply-adds in double precision are slow. */
START_TEST(slow_arithmetic_is_part_of_a_bid)
{
    sps_context *ctx = fixture_open_with(SPS_HOST, 2, true);
    sps_machine m = ctx->machine;
    sps_bids before, after;
    rig r;

    rig_open(&r, ctx, zoo_find("grid7"), 300, ZOO_INTEGER, SPS_F64);
    m.copy = r.machine.copy;
    m.slow_fma = 1e-9;
    for (int turn = 0; turn < 2; turn++) {
        sps_problem p = rig_problem(&r, SPS_OP_SPMM, 8);

        if (turn == 1) p.machine = &m;
        OK(ctx, spsi_planner_choose(ctx, &p, "auto", NULL,
                                    turn ? &after : &before, &r.plan));
        spsi_plan_destroy(&r.plan);
    }
    ck_assert_ptr_eq(after.bid[0].kernel, before.bid[0].kernel);
    ck_assert_double_eq_tol(after.bid[0].predicted - before.bid[0].predicted,
                            8e-9 * (double)r.op->f.nnz, 1e-12);
    spsi_bids_clear(ctx, &before);
    spsi_bids_clear(ctx, &after);
    rig_close(&r);
    fixture_close(&ctx);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(the_formula_is_within_20_percent),
    RUNNER_TEST(more_footprint_is_slower_longer_rows_are_faster),
    RUNNER_TEST(sectors_are_whole),
    RUNNER_TEST(the_record_of_the_measured_gpu_is_what_was_measured),
    RUNNER_TEST(scaling_passes_through_the_measured_gpu),
    RUNNER_TEST(slower_memory_keeps_the_order_of_kernels),
    RUNNER_TEST(records_are_plausible),
    RUNNER_TEST(more_of_a_property_is_not_slower),
    RUNNER_TEST(double_precision_is_slow_where_it_is),
    RUNNER_TEST(the_host_has_10_gb_s_for_each_core),
    RUNNER_TEST(one_core_has_one_record),
    RUNNER_TEST(predictions_of_factors_follow_the_record),
    RUNNER_TEST(bids_of_the_host_follow_the_bandwidth),
    RUNNER_TEST(slow_arithmetic_is_part_of_a_bid),
};
RUNNER_MAIN("machine", tests)
