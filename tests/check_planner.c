/* SPDX-License-Identifier: BSD-3-Clause */
/* check_planner.c - bids, choices, pins, measuring and wisdom. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "fixture.h"
#include "operator.h"
#include "registry.h"
#include "rig.h"
#include "runner.h"
#include "zoo.h"

static sps_context *ctx;
static char file[64];
static rig r;

static void open_all(void)
{
    int fd;

    ctx = runner_context();
    rig_open(&r, ctx, zoo_find("grid7"), 400, ZOO_RANDOM, SPS_F64);
    strcpy(file, "/tmp/check_planner.XXXXXX");
    fd = mkstemp(file);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

static void close_all(void)
{
    unlink(file);
    rig_close(&r);
    fixture_close(&ctx);
}

/* Chooses for the rig's matrix; what was chosen is in *bids and r.plan. */
static sps_status choose(int k, const char *name, const char *wisdom,
                         sps_bids *bids)
{
    const sps_problem p = rig_problem(&r, SPS_OP_SPMM, k);

    spsi_plan_destroy(&r.plan);
    return spsi_planner_choose(ctx, &p, name, wisdom, bids, &r.plan);
}

static const sps_bid *chosen(const sps_bids *bids)
{
    const sps_bid *found = NULL;

    for (int i = 0; i < bids->count; i++)
        if (bids->bid[i].chosen) {
            ck_assert_msg(!found, "two are chosen");
            found = &bids->bid[i];
        }
    ck_assert_msg(found != NULL, "none is chosen");
    return found;
}

static int bidders(const sps_bids *bids)
{
    int n = 0;

    for (int i = 0; i < bids->count; i++) n += !bids->bid[i].why_not;
    return n;
}

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

/* A kernel that bids lowest and whose plan finds no memory. */
static bool always(const sps_problem *p, const char **why_not)
{
    (void)p;
    (void)why_not;
    return true;
}

static double nothing(const sps_problem *p)
{
    (void)p;
    return 0.0;
}

static sps_status no_memory(sps_context *c, const sps_problem *p,
                            sps_plan **plan_p)
{
    (void)p;
    (void)plan_p;
    return spsi_fail(c, SPS_ENOMEM, "no memory for the plan");
}

/* Chooses where that kernel stands beside those of the place: the context
 * takes a catalogue of its own for the call. */
static sps_status choose_beside(const char *name, const char *wisdom,
                                sps_bids *bids)
{
    static sps_kernel starved = { .name = "spmm.starved", .op = SPS_OP_SPMM,
                                  .gives = ~0u, .fits = always,
                                  .cost = nothing, .plan = no_memory };
    const sps_kernel *kernels[128] = { &starved }, *kernel;
    const sps_module catalogue = { .kernels = kernels }, *old = ctx->module;
    const sps_place place = ctx->opt.place;
    sps_status st;

    for (int i = 0; (kernel = spsi_registry_kernel(ctx, i)); i++) {
        ck_assert_int_lt(i, 126);
        kernels[i + 1] = kernel;
    }
    starved.where = ctx->backend->place;
    ctx->module = &catalogue;
    ctx->opt.place = SPS_CUDA;
    st = choose(16, name, wisdom, bids);
    ctx->module = old;
    ctx->opt.place = place;
    return st;
}

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
        if (!kernel->fits(&p, &why)) {
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
    /* A text that is too small is cut, ended, and its need is told. */
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

/* A pinned kernel serves where it fits; it must fit somewhere. */
START_TEST(operators_pin_what_fits)
{
    sps_problem wide = rig_problem(&r, SPS_OP_SPMM, 16);
    sps_problem one = rig_problem(&r, SPS_OP_SPMM, 1);
    const sps_kernel *kernel;

    wide.pinned = one.pinned = true;
    for (int i = 0; (kernel = rig_kernel(ctx, SPS_OP_SPMM, i)); i++) {
        const char *why;
        const bool at_wide = kernel->fits(&wide, &why);
        const bool at_one = kernel->fits(&one, &why);
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

/* ----------------------------------------------------------------- wisdom */

static void forget(void) { spsi_wisdom_clear(ctx); }

static void write_file(const char *text)
{
    FILE *out = fopen(file, "w");

    ck_assert_ptr_nonnull(out);
    fputs(text, out);
    fclose(out);
}

static void read_text(char *text, size_t size)
{
    FILE *in = fopen(file, "r");
    size_t n;

    ck_assert_ptr_nonnull(in);
    n = fread(text, 1, size - 1, in);
    text[n] = '\0';
    fclose(in);
}

/* One measured choice, written to the file; its kernel. */
static const sps_kernel *learn(int k)
{
    const sps_kernel *kernel;
    sps_bids bids;

    OK(ctx, choose(k, "measure", file, &bids));
    ck_assert(!chosen(&bids)->remembered);
    kernel = r.plan->kernel;
    spsi_bids_clear(ctx, &bids);
    return kernel;
}

static bool remembered(int k, const char *name, const sps_kernel *kernel)
{
    sps_bids bids;
    bool known;

    OK(ctx, choose(k, name, file, &bids));
    known = chosen(&bids)->remembered;
    if (known) ck_assert_ptr_eq(r.plan->kernel, kernel);
    spsi_bids_clear(ctx, &bids);
    return known;
}

START_TEST(wisdom_outlives_the_context)
{
    const sps_kernel *kernel = learn(16);

    forget();
    ck_assert(remembered(16, "measure", kernel));
    forget();
    ck_assert(remembered(16, "auto", kernel));
}
END_TEST

START_TEST(wisdom_of_this_run_needs_no_file)
{
    sps_bids bids;

    OK(ctx, choose(8, "measure", NULL, &bids));
    ck_assert(!chosen(&bids)->remembered);
    spsi_bids_clear(ctx, &bids);
    OK(ctx, choose(8, "measure", NULL, &bids));
    ck_assert(chosen(&bids)->remembered);
    ck_assert(chosen(&bids)->measured > 0.0);
    spsi_bids_clear(ctx, &bids);
    OK(ctx, choose(8, "auto", NULL, &bids));   /* a guess stays a guess */
    ck_assert(!chosen(&bids)->remembered);
    spsi_bids_clear(ctx, &bids);
}
END_TEST

START_TEST(wisdom_of_another_pattern_or_width_is_none)
{
    rig other;

    learn(16);
    forget();
    ck_assert(!remembered(64, "auto", NULL));
    rig_open(&other, ctx, zoo_find("band"), 400, ZOO_RANDOM, SPS_F64);
    rig_close(&r);
    r = other;
    ck_assert(!remembered(16, "auto", NULL));
}
END_TEST

/* Replaces the word number w (from 0) of the last line. */
static void spoil(int w, const char *word)
{
    char text[4096], *s;
    char out[8192];

    read_text(text, sizeof text);
    s = strrchr(text, '\n');
    ck_assert_ptr_nonnull(s);
    *s = '\0';
    s = strrchr(text, '\n') + 1;
    for (int i = 0; i < w; i++) s = strchr(s, ' ') + 1;
    snprintf(out, sizeof out, "%.*s%s%s\n", (int)(s - text), text, word,
             s + strcspn(s, " "));
    write_file(out);
}

START_TEST(stale_wisdom_is_ignored)
{
    const struct { int word; const char *text; } stale[] = {
        { 2, "f32" }, { 3, "abacus" }, { 4, "another_device" },
        { 5, "0123456789abcdef" }, { 6, "0.0.1" }, { 7, "spmm.forgotten" },
    };

    for (int i = 0; i < 6; i++) {
        write_file("");
        learn(16);
        spoil(stale[i].word, stale[i].text);
        forget();
        ck_assert_msg(!remembered(16, "auto", NULL), "%s", stale[i].text);
        forget();
    }
}
END_TEST

START_TEST(lines_that_are_no_wisdom_are_skipped_with_a_note)
{
    const sps_kernel *kernel = learn(16);
    char text[4096], more[8192];

    read_text(text, sizeof text);
    snprintf(more, sizeof more, "%srubbish\nspmm -3 f64 cpu x y z w v\n\n"
             "# a comment\nspmm 16 f64 cpu d 00 0.1.0 k 1e999999\n", text);
    write_file(more);
    forget();
    ck_assert(remembered(16, "auto", kernel));
    ck_assert(fixture_noted(ctx, "skipped 3 lines"));
}
END_TEST

START_TEST(a_file_that_is_no_wisdom_is_left_alone)
{
    const char *text = "%%MatrixMarket matrix coordinate real general\n";
    char after[256];

    write_file(text);
    learn(16);
    read_text(after, sizeof after);
    ck_assert_str_eq(after, text);
    ck_assert(fixture_noted(ctx, "first line"));
}
END_TEST

START_TEST(wisdom_that_cannot_be_kept_costs_a_note_only)
{
    sps_bids bids;

    OK(ctx, choose(16, "measure", "/nonexistent/folder/wisdom", &bids));
    ck_assert(fixture_noted(ctx, "was not written"));
    spsi_bids_clear(ctx, &bids);
}
END_TEST

START_TEST(measuring_again_replaces_the_line)
{
    char text[4096];
    int lines = 0;

    learn(16);
    learn(4);
    forget();
    /* Forgotten and unreadable: a new measurement of the same. */
    OK(ctx, spsi_wisdom_add(ctx, file, &(sps_problem){
        .op = SPS_OP_SPMM, .A = r.op->A, .f = &r.op->f, .k = 16 },
        "spmm.other", 1e-3));
    read_text(text, sizeof text);
    for (const char *s = text; (s = strstr(s, "\nspmm ")); s++) lines++;
    ck_assert_int_eq(lines, 2);
    ck_assert_ptr_nonnull(strstr(text, "spmm.other 1000.000\n"));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("planner");
    TCase *t = tcase_create("planner");

    tcase_set_timeout(t, RUNNER_TIMEOUT);
    tcase_add_checked_fixture(t, open_all, close_all);
    tcase_add_test(t, auto_takes_the_cheapest_prediction);
    tcase_add_test(t, a_choice_leaves_no_text_of_a_failure);
    tcase_add_test(t, a_plan_without_memory_gives_way_to_the_next);
    tcase_add_test(t, a_name_pins_each_kernel);
    tcase_add_test(t, unknown_names_are_refused_with_a_suggestion);
    tcase_add_test(t, a_name_of_another_opcode_leaves_the_choice_free);
    tcase_add_test(t, only_kernels_with_the_guarantees_bid);
    tcase_add_test(t, measuring_times_the_best_and_the_vendors);
    tcase_add_test(t, the_table_names_bids_choice_and_reasons);
    tcase_add_test(t, operators_describe_both_plans);
    tcase_add_test(t, operators_pin_what_fits);
    tcase_add_test(t, wisdom_outlives_the_context);
    tcase_add_test(t, wisdom_of_this_run_needs_no_file);
    tcase_add_test(t, wisdom_of_another_pattern_or_width_is_none);
    tcase_add_test(t, stale_wisdom_is_ignored);
    tcase_add_test(t, lines_that_are_no_wisdom_are_skipped_with_a_note);
    tcase_add_test(t, a_file_that_is_no_wisdom_is_left_alone);
    tcase_add_test(t, wisdom_that_cannot_be_kept_costs_a_note_only);
    tcase_add_test(t, measuring_again_replaces_the_line);
    suite_add_tcase(s, t);
    return runner_run(s);
}
