/* SPDX-License-Identifier: BSD-3-Clause */
/* check_planner.c - cost estimates, kernel selection, selection by name, and
 * measuring. */
#include <check.h>
#include <math.h>
#include <stdio.h>

#include "tests/support/choice.h"

static void open_all(void) { choice_open(); }
static void close_all(void) { choice_close(); }

static int bidders(const sps_bids *bids)
{
    int n = 0;

    for (int i = 0; i < bids->count; i++) n += !bids->bid[i].why_not;
    return n;
}

/* Of whatever device this is; check_machine.c has the numbers of known ones. */
START_TEST(the_backend_fills_in_a_record_of_its_machine)
{
    const sps_machine *m = &ctx->machine;

    ck_assert(m->copy >= 1e10 && m->copy < 2e13);
    ck_assert(m->sync >= 0 && m->sync < 1e-2);
    if (fixture_place() == SPS_CUDA) {
        ck_assert(m->sms >= 1 && m->work > 0 && m->launch > 0);
        ck_assert(0 < m->kept && m->kept < m->l2_short);
        ck_assert(m->l2_short < m->l2_lines && m->l2 > m->memory);
    }
}
END_TEST

/* --------------------------------------------------------------- choosing */

START_TEST(auto_takes_the_cheapest_prediction)
{
    for (int k = 1; k <= 64; k *= 2) {
        sps_bids bids;

        OK(ctx, choose(k, "auto", NULL, &bids));
        ck_assert(bids.bid[0].chosen && !bids.bid[0].why_not);
        ck_assert_ptr_eq(r.plan->kernel, chosen(&bids)->kernel);
        for (int i = 1; i < bidders(&bids); i++)
            ck_assert_double_ge(bids.bid[i].predicted,
                                bids.bid[i - 1].predicted);
        for (int i = bidders(&bids); i < bids.count; i++)
            ck_assert_ptr_nonnull(bids.bid[i].why_not);
        spsi_bids_clear(ctx, &bids);
    }
}
END_TEST

START_TEST(a_choice_leaves_no_text_of_a_failure)
{
    static const char *const names[] = { "auto", "measure" };
    sps_operator *op = NULL;

    for (int i = 0; i < 2; i++) {
        sps_bids bids;

        ck_assert_str_eq(sps_context_error(ctx), "");
        OK(ctx, choose(8, names[i], NULL, &bids));
        ck_assert_str_eq(sps_context_error(ctx), "");
        spsi_bids_clear(ctx, &bids);
    }
    OK(ctx, sps_operator_csr(ctx, r.A, 8, NULL, &op));
    ck_assert_str_eq(sps_context_error(ctx), "");
    sps_operator_destroy(&op);
}
END_TEST

START_TEST(a_plan_without_memory_gives_way_to_the_next)
{
    sps_bids bids;

    OK(ctx, choose_beside("auto", NULL, &bids));
    ck_assert_str_ne(chosen(&bids)->kernel->name, "spmm.starved");
    ck_assert_str_eq(sps_context_error(ctx), "");
    spsi_bids_clear(ctx, &bids);
    ck_assert_int_eq(choose_beside("spmm.starved", NULL, &bids), SPS_ENOMEM);
}
END_TEST

START_TEST(a_name_pins_each_kernel)
{
    const sps_kernel *kernel;

    for (int i = 0; (kernel = rig_kernel(ctx, SPS_OP_SPMM, i)); i++) {
        sps_problem p = rig_problem(&r, SPS_OP_SPMM, 8);
        const char *why;
        sps_bids bids;

        p.pinned = true;
        if (!spsi_kernel_fits(kernel, &p, &why)) {
            ck_assert_int_eq(choose(8, kernel->name, NULL, &bids),
                             SPS_EUNFIT);
            ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), why));
            ck_assert_ptr_null(r.plan);
            continue;
        }
        OK(ctx, choose(8, kernel->name, NULL, &bids));
        ck_assert_ptr_eq(r.plan->kernel, kernel);
        ck_assert_ptr_eq(chosen(&bids)->kernel, kernel);
        spsi_bids_clear(ctx, &bids);
    }
}
END_TEST

START_TEST(unknown_names_are_refused_with_a_suggestion)
{
    const sps_kernel *kernel = rig_kernel(ctx, SPS_OP_SPMM, 0);
    char name[64], meant[80];
    sps_bids bids;

    snprintf(name, sizeof name, "%s", kernel->name);
    snprintf(meant, sizeof meant, "\"%s\"?", kernel->name);
    name[strlen(name) - 1] ^= 1;
    ck_assert_int_eq(choose(8, name, NULL, &bids), SPS_EINVAL);
    ck_assert_msg(strstr(sps_context_error(ctx), meant) != NULL, "%s",
                  sps_context_error(ctx));
    ck_assert_int_eq(choose(8, "completely different", NULL, &bids),
                     SPS_EINVAL);
    ck_assert_ptr_null(strstr(sps_context_error(ctx), "did you mean"));
    ck_assert_int_eq(bids.count, 0);
}
END_TEST

START_TEST(kernels_of_the_other_place_are_told_from_unknown_ones)
{
    const bool host = ctx->backend->place == SPS_HOST;
    const char *where = host ? "runs on a GPU" : "runs on the host", *name;

    for (int i = 0; (name = sps_list(NULL, host ? "kernel.cuda" : "kernel.cpu",
                                     i)); i++) {
        sps_bids bids;

        ck_assert_int_eq(choose(8, name, NULL, &bids), SPS_EUNFIT);
        ck_assert_msg(strstr(sps_context_error(ctx), where) != NULL, "%s",
                      sps_context_error(ctx));
    }
}
END_TEST

START_TEST(the_names_of_the_gpus_kernels_are_known_without_one)
{
    const char *name;

    ck_assert_ptr_nonnull(sps_list(NULL, "kernel.cuda", 0));
    for (int i = 0; ctx->backend->place == SPS_CUDA &&
                    (name = sps_list(ctx, "kernel.cuda", i)); i++)
        ck_assert_str_eq(name, sps_list(NULL, "kernel.cuda", i));
}
END_TEST

START_TEST(a_name_of_another_opcode_leaves_the_choice_free)
{
    const sps_kernel *kernel = rig_kernel(ctx, SPS_OP_SDDMM, 0);
    sps_bids bids;

    ck_assert_ptr_nonnull(kernel);
    OK(ctx, choose(8, kernel->name, NULL, &bids));
    ck_assert(bids.bid[0].chosen);
    spsi_bids_clear(ctx, &bids);
}
END_TEST

START_TEST(only_kernels_with_the_guarantees_bid)
{
    const unsigned all = SPS_REPRODUCIBLE | SPS_FULL_PRECISION |
                         SPS_NAN_STAYS_IN_ROW;
    sps_problem p = rig_problem(&r, SPS_OP_SPMM, 8);
    sps_bids bids;

    p.need = all;
    spsi_plan_destroy(&r.plan);
    OK(ctx, spsi_planner_choose(ctx, &p, "auto", NULL, &bids, &r.plan));
    for (int i = 0; i < bids.count; i++)
        ck_assert(bids.bid[i].why_not ||
                  (bids.bid[i].kernel->gives & all) == all);
    spsi_bids_clear(ctx, &bids);
}
END_TEST

START_TEST(measuring_times_the_best_and_the_vendors)
{
    for (int k = 1; k <= 16; k += 15) {
        int measured = 0, vendors = 0, timed = 0;
        sps_bids bids;

        OK(ctx, choose(k, "measure", NULL, &bids));
        for (int i = 0; i < bids.count; i++) {
            const sps_bid *b = &bids.bid[i];
            const bool theirs = b->kernel->gives & SPS_VENDOR;

            measured += b->measured > 0.0;
            vendors += theirs && !b->why_not;
            timed += theirs && b->measured > 0.0;
            ck_assert(!(b->measured > 0.0 && b->why_not));
            if (b->measured > 0.0)
                ck_assert(chosen(&bids)->measured <= b->measured);
        }
        ck_assert_int_ge(measured, bidders(&bids) < 3 ? bidders(&bids) : 3);
        ck_assert(vendors == 0 || timed > 0);
        ck_assert(chosen(&bids)->measured > 0.0);
        ck_assert_ptr_eq(chosen(&bids)->kernel, r.plan->kernel);
        spsi_bids_clear(ctx, &bids);
    }
}
END_TEST

START_TEST(the_table_names_bids_choice_and_reasons)
{
    char text[4096], small[20];
    sps_bids bids;
    size_t length;

    OK(ctx, choose(16, "auto", NULL, &bids));
    length = spsi_bids_print(&bids, text, sizeof text);
    ck_assert_uint_eq(length, strlen(text));
    ck_assert_ptr_nonnull(strstr(text, "spmm k=16"));
    ck_assert_ptr_nonnull(strstr(text, "chosen"));
    for (int i = 0; i < bids.count; i++) {
        ck_assert_ptr_nonnull(strstr(text, bids.bid[i].kernel->name));
        if (bids.bid[i].why_not)
            ck_assert_ptr_nonnull(strstr(text, bids.bid[i].why_not));
    }
    ck_assert(chosen(&bids)->planning > 0.0);
    ck_assert_ptr_nonnull(strstr(text, "  planned in "));
    ck_assert_ptr_null(strstr(strstr(text, "planned in ") + 1, "planned in "));
    /* If the buffer is too small the text is truncated and terminated, and its
     * full length returned. */
    ck_assert_uint_eq(spsi_bids_print(&bids, small, sizeof small), length);
    ck_assert_uint_eq(strlen(small), sizeof small - 1);
    ck_assert_int_eq(strncmp(small, text, sizeof small - 1), 0);
    ck_assert_uint_eq(spsi_bids_print(&bids, NULL, 0), length);
    spsi_bids_clear(ctx, &bids);
}
END_TEST

/* -------------------------------------------------------------- operators */

START_TEST(operators_describe_both_plans)
{
    char text[8192], part[33];
    sps_operator *op = NULL;
    size_t length;

    OK(ctx, sps_operator_csr(ctx, r.A, 16, NULL, &op));
    length = sps_operator_describe(op, text, sizeof text);
    ck_assert_uint_eq(length, strlen(text));
    ck_assert_ptr_nonnull(strstr(text, "spmm k=16"));
    ck_assert_ptr_nonnull(strstr(text, "spmm k=1\n"));
    ck_assert_ptr_nonnull(strstr(text, sps_operator_kernel(op)));
    ck_assert_uint_eq(sps_operator_describe(op, part, sizeof part), length);
    ck_assert_uint_eq(strlen(part), sizeof part - 1);
    ck_assert_uint_eq(sps_operator_describe(op, NULL, 0), length);
    sps_operator_destroy(&op);
}
END_TEST

/* A kernel selected by name is used for each product that it fits; it must fit
 * at least one. */
START_TEST(operators_pin_what_fits)
{
    sps_problem wide = rig_problem(&r, SPS_OP_SPMM, 16);
    sps_problem one = rig_problem(&r, SPS_OP_SPMM, 1);
    const sps_kernel *kernel;

    wide.pinned = one.pinned = true;
    for (int i = 0; (kernel = rig_kernel(ctx, SPS_OP_SPMM, i)); i++) {
        const char *why;
        const bool at_wide = spsi_kernel_fits(kernel, &wide, &why);
        const bool at_one = spsi_kernel_fits(kernel, &one, &why);
        sps_operator *op = NULL;
        sps_options o;
        sps_status st;

        sps_options_default(&o);
        o.kernel = kernel->name;
        st = sps_operator_csr(ctx, r.A, 16, &o, &op);
        ck_assert_int_eq(st, at_wide || at_one ? SPS_OK : SPS_EUNFIT);
        if (at_wide) ck_assert_ptr_eq(op->block->kernel, kernel);
        if (at_one) ck_assert_ptr_eq(op->vector->kernel, kernel);
        sps_operator_destroy(&op);
    }
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(the_backend_fills_in_a_record_of_its_machine),
    RUNNER_TEST(auto_takes_the_cheapest_prediction),
    RUNNER_TEST(a_choice_leaves_no_text_of_a_failure),
    RUNNER_TEST(a_plan_without_memory_gives_way_to_the_next),
    RUNNER_TEST(a_name_pins_each_kernel),
    RUNNER_TEST(unknown_names_are_refused_with_a_suggestion),
    RUNNER_TEST(kernels_of_the_other_place_are_told_from_unknown_ones),
    RUNNER_TEST(the_names_of_the_gpus_kernels_are_known_without_one),
    RUNNER_TEST(a_name_of_another_opcode_leaves_the_choice_free),
    RUNNER_TEST(only_kernels_with_the_guarantees_bid),
    RUNNER_TEST(measuring_times_the_best_and_the_vendors),
    RUNNER_TEST(the_table_names_bids_choice_and_reasons),
    RUNNER_TEST(operators_describe_both_plans),
    RUNNER_TEST(operators_pin_what_fits),
};
RUNNER_MAIN_WITHIN("planner", tests, open_all, close_all)
