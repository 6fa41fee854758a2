/* SPDX-License-Identifier: BSD-3-Clause */
/* check_options.c - the text form of options. */
#include <check.h>
#include <limits.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/options.h"
#include "io/number/nearest.h"
#include "tests/support/runner.h"

static sps_context *ctx;
static sps_options opt;

static void setup(void)
{
    sps_context_options o;

    sps_context_options_default(&o);
    o.place = SPS_HOST;
    ck_assert_int_eq(sps_context_create(&o, &ctx, NULL), SPS_OK);
    sps_options_default(&opt);
}

static void teardown(void)
{
    sps_context_destroy(&ctx);
}

static void same(const sps_options *a, const sps_options *b)
{
    char one[4096], two[4096];

    ck_assert_uint_lt(sps_options_print(a, one, sizeof one), sizeof one);
    sps_options_print(b, two, sizeof two);
    ck_assert_str_eq(one, two);
}

START_TEST(defaults_are_those_of_the_header)
{
    ck_assert_uint_eq(opt.struct_size, sizeof opt);
    ck_assert_str_eq(opt.solver, "auto");
    ck_assert_str_eq(opt.precond, "auto");
    ck_assert_str_eq(opt.kernel, "auto");
    ck_assert_str_eq(opt.nullspace, "auto");
    ck_assert(opt.rtol == 1e-8 && opt.atol == 0 && opt.norm == SPS_NORM_RHS);
    ck_assert_int_eq(opt.max_iterations, 10000);
    ck_assert(opt.max_seconds == 0 && opt.full_precision);
    ck_assert(!opt.strict_nonfinite);
    ck_assert_ptr_null(opt.wisdom);
    ck_assert_ptr_null(opt.nullspace_basis);
    ck_assert_ptr_null(opt.near_null_basis);
    sps_options_default(NULL);
}
END_TEST

START_TEST(text_sets_members_whatever_separates_them)
{
    ck_assert_int_eq(sps_options_parse(ctx, &opt,
                     "rtol=1e-6 solver=cg,precond=none\n"
                     "# a comment solver=block_cg\n"
                     "\tmax_iterations=77 full_precision=no# and no more\r\n"
                     "norm=backward nullspace=constant kernel=spmm.ref"),
                     SPS_OK);
    ck_assert(opt.rtol == 1e-6);
    ck_assert_str_eq(opt.solver, "cg");
    ck_assert_str_eq(opt.precond, "none");
    ck_assert_int_eq(opt.max_iterations, 77);
    ck_assert(!opt.full_precision);
    ck_assert_int_eq(opt.norm, SPS_NORM_BACKWARD);
    ck_assert_str_eq(opt.nullspace, "constant");
    ck_assert_str_eq(opt.kernel, "spmm.ref");
}
END_TEST

START_TEST(empty_text_changes_nothing)
{
    static const char *const texts[] = {"", "  \n\t,,", "# only a comment",
                                        "#\n#\n"};
    sps_options before = opt;

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        ck_assert_int_eq(sps_options_parse(ctx, &opt, texts[i]), SPS_OK);
        same(&opt, &before);
    }
}
END_TEST

START_TEST(texts_are_kept_by_the_context_and_once)
{
    char text[] = "kernel=spmm.any";
    sps_options other;
    size_t held;

    ck_assert_int_eq(sps_options_parse(ctx, &opt, text), SPS_OK);
    memset(text, '!', sizeof text - 1);
    ck_assert_str_eq(opt.kernel, "spmm.any");
    held = ctx->memory.host;
    for (int i = 0; i < 1000; i++) {
        sps_options_default(&other);
        ck_assert_int_eq(sps_options_parse(ctx, &other, "kernel=spmm.any"),
                         SPS_OK);
    }
    ck_assert_uint_eq(ctx->memory.host, held);
    ck_assert_ptr_eq(other.kernel, opt.kernel);
}
END_TEST

START_TEST(printed_text_reads_back_the_same)
{
    static const char *const texts[] = {
        "rtol=0.1 atol=1e-300 max_seconds=3.3333333333333335",
        "solver=block_cg precond=jacobi kernel=measure wisdom=w.txt",
        "norm=absolute degree=9 block_size=3 rank_tolerance=1e-9",
        "true_residual_every=7 full_precision=false max_iterations=2147483647",
        "rtol=2.2250738585072014e-308 atol=1.7976931348623157e308",
    };
    char text[4096];

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        sps_options back;

        ck_assert_int_eq(sps_options_parse(ctx, &opt, texts[i]), SPS_OK);
        sps_options_print(&opt, text, sizeof text);
        sps_options_default(&back);
        ck_assert_int_eq(sps_options_parse(ctx, &back, text), SPS_OK);
        same(&opt, &back);
        ck_assert(opt.rtol == back.rtol && opt.atol == back.atol &&
                  opt.max_seconds == back.max_seconds);
    }
}
END_TEST

START_TEST(every_listed_option_is_printed_with_a_value_that_parses)
{
    char text[4096], line[64];
    const char *name;

    sps_options_print(&opt, text, sizeof text);
    for (int i = 0; (name = sps_list(NULL, "option", i)); i++) {
        snprintf(line, sizeof line, "%s=", name);
        ck_assert_msg(strstr(text, line), "%s is not printed", name);
    }
    ck_assert_int_eq(sps_options_parse(ctx, &opt, text), SPS_OK);
}
END_TEST

START_TEST(print_cuts_and_tells_the_whole_length)
{
    char whole[4096], part[4096];
    size_t length = sps_options_print(&opt, whole, sizeof whole);

    ck_assert_uint_eq(length, strlen(whole));
    ck_assert_uint_eq(sps_options_print(&opt, NULL, 0), length);
    for (size_t size = 1; size <= length + 1; size++) {
        memset(part, 'x', sizeof part);
        ck_assert_uint_eq(sps_options_print(&opt, part, size), length);
        ck_assert_uint_eq(strlen(part), size - 1);
        ck_assert_int_eq(strncmp(part, whole, size - 1), 0);
        ck_assert_int_eq(part[size], 'x');
    }
    ck_assert_uint_eq(sps_options_print(NULL, part, sizeof part), 0);
    ck_assert_str_eq(part, "");
    ck_assert_uint_eq(sps_options_print(&(sps_options){0}, part, sizeof part),
                      0); /* nobody called sps_options_default */
    ck_assert_str_eq(part, "");
}
END_TEST

START_TEST(bad_text_is_refused_named_and_changes_nothing)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"rtoll=1", "did you mean rtol"},
        {"max_iteration=5", "did you mean max_iterations"},
        {"xyzzy=1", "no option \"xyzzy\""},
        {"rtol", "name=value"},
        {"=1", "no option \"\""},
        {"rtol=", "number"},
        {"rtol=abc", "abc"},
        {"rtol=1e-8x", "1e-8x"},
        {"rtol=nan", "number"},
        {"rtol=inf", "number"},
        {"rtol=-1", "lie in"},
        {"rtol=2", "lie in"},
        {"atol=1e999", "finite"},
        {"atol=-1", "at least"},
        {"max_iterations=-1", "lie in"},
        {"max_iterations=1.5", "whole"},
        {"max_iterations=3000000000", "2147483647"},
        {"degree=-1", "lie in"},
        {"full_precision=maybe", "true or false"},
        {"norm=rsh", "did you mean rhs"},
        {"norm=zzzzzz", "(known: "},
        {"nullspace=x", "(known: "},
        {"solver=blok_cg", "did you mean block_cg"},
        {"solver=magic", "unknown name"},
        {"precond=jacoby", "did you mean jacobi"},
        {"degree=5 norm=backward solver=magic", "magic"},
    };
    sps_options before = opt;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_msg(sps_options_parse(ctx, &opt, bad[i].text) == SPS_EINVAL,
                      "%s was taken", bad[i].text);
        ck_assert_msg(strstr(sps_context_error(ctx), bad[i].says),
                      "%s: \"%s\" does not say \"%s\"", bad[i].text,
                      sps_context_error(ctx), bad[i].says);
        same(&opt, &before);
    }
}
END_TEST

START_TEST(a_word_of_any_length_is_refused_or_kept)
{
    for (size_t length = 1; length < 10000; length = length * 3 / 2 + 1) {
        char *text = malloc(length + 9);

        memset(text, 'a', length);
        text[length] = '\0';
        ck_assert_int_eq(sps_options_parse(ctx, &opt, text), SPS_EINVAL);
        memcpy(text, "rtol=", length < 5 ? length : 5);
        ck_assert_int_eq(sps_options_parse(ctx, &opt, text), SPS_EINVAL);
        free(text);
    }
}
END_TEST

START_TEST(numbers_do_not_depend_on_the_locale)
{
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8",
                                        "de_DE", "C"};
    char text[4096];

    for (size_t i = 0; i < 4 && !setlocale(LC_ALL, names[i]); i++)
        continue; /* uses the first that this machine has */
    ck_assert_int_eq(sps_options_parse(ctx, &opt, "rtol=0.5"), SPS_OK);
    ck_assert(opt.rtol == 0.5);
    sps_options_print(&opt, text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "rtol=0.5\n"));
}
END_TEST

START_TEST(taking_checks_size_ranges_and_names)
{
    sps_options out, in = opt;

    ck_assert_int_eq(spsi_options_take(ctx, NULL, &out), SPS_OK);
    same(&out, &opt);
    in.solver = in.precond = in.kernel = in.nullspace = NULL;
    ck_assert_int_eq(spsi_options_take(ctx, &in, &out), SPS_OK);
    same(&out, &opt);

    in = opt, in.struct_size = 0;
    ck_assert_int_eq(spsi_options_take(ctx, &in, &out), SPS_EINVAL);
    in = opt, in.rtol = -1;
    ck_assert_int_eq(spsi_options_take(ctx, &in, &out), SPS_EINVAL);
    in = opt, in.rtol = strtod("nan", NULL);
    ck_assert_int_eq(spsi_options_take(ctx, &in, &out), SPS_EINVAL);
    in = opt, in.norm = (sps_norm)9;
    ck_assert_int_eq(spsi_options_take(ctx, &in, &out), SPS_EINVAL);
    in = opt, in.solver = "sor";
    ck_assert_int_eq(spsi_options_take(ctx, &in, &out), SPS_EINVAL);
    in = opt, in.degree = -1;
    ck_assert_int_eq(spsi_options_take(ctx, &in, &out), SPS_EINVAL);
}
END_TEST

START_TEST(lists_end_and_unknown_kinds_are_empty)
{
    static const char *const kinds[] = {"solver", "precond", "kernel.cpu",
                                        "option"};

    for (int i = 0; i < 4; i++) {
        int count = 0;

        while (sps_list(ctx, kinds[i], count)) count++;
        ck_assert_int_gt(count, 0);
        ck_assert_ptr_null(sps_list(ctx, kinds[i], -1));
        ck_assert_ptr_null(sps_list(ctx, kinds[i], 1 << 20));
    }
    ck_assert_ptr_null(sps_list(ctx, "nonsense", 0));
    ck_assert_ptr_null(sps_list(ctx, NULL, 0));
    ck_assert_ptr_nonnull(sps_list(NULL, "kernel.cuda", 0));
    ck_assert_ptr_null(sps_list(NULL, "kernel.cuda", 1 << 20));
    ck_assert_str_eq(sps_list(NULL, "precond", 0), "none");
}
END_TEST

static const char *nearest(const char *kind, const char *word)
{
    const char *best = NULL, *name;
    int limit = INT_MAX;

    for (int i = 0; (name = sps_list(ctx, kind, i)); i++)
        if (spsi_nearer(word, name, &limit)) best = name;
    return best;
}

START_TEST(nearest_is_near_or_nothing)
{
    ck_assert_str_eq(nearest("option", "rtl"), "rtol");
    ck_assert_str_eq(nearest("option", "blocksize"), "block_size");
    ck_assert_str_eq(nearest("solver", "blockcg"), "block_cg");
    ck_assert_ptr_null(nearest("option", ""));
    ck_assert_ptr_null(nearest("option", "q"));
    ck_assert_str_eq(nearest("option", "Ordre"), "order");
    ck_assert_ptr_null(nearest("option", "wonderful_thing"));
    ck_assert_ptr_null(nearest("option",
                       "a_word_that_is_longer_than_any_name_could_ever_be"));
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(defaults_are_those_of_the_header),
    RUNNER_TEST(text_sets_members_whatever_separates_them),
    RUNNER_TEST(empty_text_changes_nothing),
    RUNNER_TEST(texts_are_kept_by_the_context_and_once),
    RUNNER_TEST(printed_text_reads_back_the_same),
    RUNNER_TEST(every_listed_option_is_printed_with_a_value_that_parses),
    RUNNER_TEST(print_cuts_and_tells_the_whole_length),
    RUNNER_TEST(bad_text_is_refused_named_and_changes_nothing),
    RUNNER_TEST(a_word_of_any_length_is_refused_or_kept),
    RUNNER_TEST(numbers_do_not_depend_on_the_locale),
    RUNNER_TEST(taking_checks_size_ranges_and_names),
    RUNNER_TEST(lists_end_and_unknown_kinds_are_empty),
    RUNNER_TEST(nearest_is_near_or_nothing),
};
RUNNER_MAIN_WITHIN("check_options", tests, setup, teardown)
