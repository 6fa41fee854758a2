/* SPDX-License-Identifier: BSD-3-Clause */
/* check_wisdom.c - measured kernel choices stored in a file (wisdom). */
#include <check.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/support/choice.h"

static char file[64];

static void open_all(void)
{
    int fd;

    choice_open();
    strcpy(file, "/tmp/check_wisdom.XXXXXX");
    fd = mkstemp(file);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

static void close_all(void)
{
    unlink(file);
    choice_close();
}

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

/* Measures once and writes the choice to the file; returns its kernel. */
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
    OK(ctx, choose(8, "auto", NULL, &bids));   /* no measurement: not stored */
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

/* Other widths, for which another kernel may be faster. */
START_TEST(wisdom_serves_the_width_that_was_measured_alone)
{
    const sps_kernel *kernel = learn(16);

    forget();
    ck_assert(!remembered(15, "auto", NULL));
    ck_assert(!remembered(12, "auto", NULL));
    ck_assert(!remembered(17, "auto", NULL));
    ck_assert(remembered(16, "auto", kernel));
}
END_TEST

START_TEST(wisdom_tells_the_types_of_matrix_and_blocks)
{
    sps_problem p = rig_problem(&r, SPS_OP_SPMM, 16);
    sps_csr of_floats = *r.op->A;
    double seconds = 0;

    of_floats.dtype = SPS_F32;
    OK(ctx, spsi_wisdom_add(ctx, NULL, &p, "spmm.ref", 1e-3));
    OK(ctx, spsi_wisdom_add(ctx, NULL, &p, "spmm.plain", 1e-3));
    ck_assert_ptr_nonnull(spsi_wisdom_find(ctx, NULL, &p, &seconds));
    p.A = &of_floats;
    ck_assert_ptr_null(spsi_wisdom_find(ctx, NULL, &p, &seconds));
    OK(ctx, spsi_wisdom_add(ctx, NULL, &p, "spmm.ref", 1e-3));
    OK(ctx, spsi_wisdom_add(ctx, NULL, &p, "spmm.plain", 1e-3));
    ck_assert_ptr_nonnull(spsi_wisdom_find(ctx, NULL, &p, &seconds));
    p.block = SPS_F32;
    ck_assert_ptr_null(spsi_wisdom_find(ctx, NULL, &p, &seconds));
}
END_TEST

START_TEST(a_remembered_kernel_without_memory_gives_way_to_the_next)
{
    static const char *const names[] = { "auto", "measure" };
    const sps_problem p = rig_problem(&r, SPS_OP_SPMM, 16);

    for (int i = 0; i < 2; i++) {
        sps_bids bids;

        forget();
        write_file("");
        OK(ctx, spsi_wisdom_add(ctx, file, &p, "spmm.starved", 1e-6));
        OK(ctx, choose_beside(names[i], file, &bids));
        ck_assert_str_ne(chosen(&bids)->kernel->name, "spmm.starved");
        ck_assert(!chosen(&bids)->remembered);
        ck_assert(i == 0 || chosen(&bids)->measured > 0.0);
        ck_assert_str_eq(sps_context_error(ctx), "");
        spsi_bids_clear(ctx, &bids);
    }
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
        { 2, "f32:f64" }, { 3, "abacus" }, { 4, "another_device" },
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
    ck_assert(fixture_noted(ctx, "skipped 3 malformed lines"));
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
    /* The context's copy is cleared and the file cannot be read: the same is
     * measured again. */
    OK(ctx, spsi_wisdom_add(ctx, file, &(sps_problem){
        .op = SPS_OP_SPMM, .A = r.op->A, .f = &r.op->f, .k = 16 },
        "spmm.other", 1e-3));
    read_text(text, sizeof text);
    for (const char *s = text; (s = strstr(s, "\nspmm ")); s++) lines++;
    ck_assert_int_eq(lines, 2);
    ck_assert_ptr_nonnull(strstr(text, "spmm.other 1000.000\n"));
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(wisdom_outlives_the_context),
    RUNNER_TEST(wisdom_of_this_run_needs_no_file),
    RUNNER_TEST(wisdom_of_another_pattern_or_width_is_none),
    RUNNER_TEST(wisdom_serves_the_width_that_was_measured_alone),
    RUNNER_TEST(wisdom_tells_the_types_of_matrix_and_blocks),
    RUNNER_TEST(a_remembered_kernel_without_memory_gives_way_to_the_next),
    RUNNER_TEST(stale_wisdom_is_ignored),
    RUNNER_TEST(lines_that_are_no_wisdom_are_skipped_with_a_note),
    RUNNER_TEST(a_file_that_is_no_wisdom_is_left_alone),
    RUNNER_TEST(wisdom_that_cannot_be_kept_costs_a_note_only),
    RUNNER_TEST(measuring_again_replaces_the_line),
};
RUNNER_MAIN_WITHIN("wisdom", tests, open_all, close_all)
