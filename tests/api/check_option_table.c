/* SPDX-License-Identifier: BSD-3-Clause */
/* check_option_table.c - what holds for every row of the table of options: it
 * is described completely, accepted by every name and alias in every way,
 * printed, read back, and rejected when out of range. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/runner.h"
#include "spsolve.h"

static sps_context *ctx;

static void setup(void)
{
    sps_context_options o;

    sps_context_options_default(&o);
    o.place = SPS_HOST;
    ck_assert_int_eq(sps_context_create(&o, &ctx, NULL), SPS_OK);
}

static void teardown(void)
{
    sps_context_destroy(&ctx);
}

/* Row number i of the table; false past the last. */
static bool option(int i, sps_option_info *info)
{
    const char *name = sps_list(ctx, "option", i);

    info->struct_size = sizeof *info;
    return name && sps_option_information(ctx, name, info) == SPS_OK;
}

/* Word number i of a text of words separated by blanks. */
static bool word_of(const char *text, int i, char word[64])
{
    int used = 0;

    while (sscanf(text, "%63s%n", word, &used) == 1) {
        if (i-- == 0) return true;
        text += used;
    }
    return false;
}

static bool in_list(const char *kind, const char *name)
{
    const char *known;

    for (int i = 0; (known = sps_list(ctx, kind, i)); i++)
        if (!strcmp(known, name)) return true;
    return false;
}

/* Valid value number i of the option; false past the last. */
static bool value_of(const sps_option_info *o, int i, char *value, size_t size)
{
    const double high = fmin(o->high, 1e300), low = fmax(o->low, -1e300);
    char word[64];

    switch (o->type) {
    case SPS_OPTION_WORD:
    case SPS_OPTION_NAME:
        if (!word_of(o->words, i, word)) return false;
        if (*word == '@')
            snprintf(word, sizeof word, "%s", sps_list(ctx, word + 1, 0));
        return snprintf(value, size, "%s", word) > 0;
    case SPS_OPTION_FILE: return snprintf(value, size, "a_%d.b", i) && i < 2;
    case SPS_OPTION_BOOLEAN:
        return snprintf(value, size, "%s", i ? "true" : "false") && i < 2;
    case SPS_OPTION_NATURAL:
    case SPS_OPTION_SIZE: return false;     /* none that has a text */
    case SPS_OPTION_REAL:
    case SPS_OPTION_INTEGER:
        snprintf(value, size, "%.17g", i == 0 ? low : i == 1 ? high
                 : floor(fmin(low + 1, high)));
        return i < 3;
    }
    return false;
}

START_TEST(every_row_is_told_in_full)
{
    sps_option_info o;
    char word[64];
    int n = 0;

    for (; option(n, &o); n++) {
        ck_assert_msg(o.help && strlen(o.help) > 10, "%s: no help", o.name);
        ck_assert_msg(o.help[strlen(o.help) - 1] != '.', "%s: help", o.name);
        ck_assert_msg(o.default_value, "%s: no default", o.name);
        ck_assert_msg(*o.default_value || o.type == SPS_OPTION_FILE,
                      "%s: no default", o.name);
        ck_assert_msg(o.group && *o.group, "%s: no group", o.name);
        ck_assert_msg(!*o.argument == (o.type == SPS_OPTION_BOOLEAN),
                      "%s: argument", o.name);
        ck_assert_msg(o.type != SPS_OPTION_WORD || *o.words, "%s: words",
                      o.name);
        if (o.type == SPS_OPTION_REAL || o.type == SPS_OPTION_INTEGER)
            ck_assert_msg(o.low < o.high, "%s: no range", o.name);
        for (int i = 0; word_of(o.words, i, word); i++)
            ck_assert_msg(*word != '@' || sps_list(ctx, word + 1, 0),
                          "%s: nothing is listed under %s", o.name, word);
        for (int i = 0; word_of(o.readers, i, word); i++)
            ck_assert_msg(in_list("solver", word) || in_list("precond", word) ||
                          in_list("eigensolver", word),
                          "%s is read by %s, which does not exist", o.name,
                          word);
    }
    ck_assert_int_gt(n, 30);
    ck_assert_ptr_null(sps_list(ctx, "option", n));
}
END_TEST

/* The value of the member of sps_context_options as text. */
static void member(const sps_context_options *co, const sps_option_info *o,
                   char text[64])
{
    const void *p = (const char *)co + o->offset;
    char word[64] = "";

    switch (o->type) {
    case SPS_OPTION_WORD:
        ck_assert(word_of(o->words, (int)*(const sps_place *)p, word));
        snprintf(text, 64, "%s", word);
        break;
    case SPS_OPTION_BOOLEAN:
        snprintf(text, 64, "%s", *(const bool *)p ? "true" : "false");
        break;
    case SPS_OPTION_INTEGER: snprintf(text, 64, "%d", *(const int *)p); break;
    case SPS_OPTION_REAL: snprintf(text, 64, "%g", *(const double *)p); break;
    case SPS_OPTION_NATURAL:
    case SPS_OPTION_SIZE:
        snprintf(text, 64, "%llu",
                 (unsigned long long)*(const uint64_t *)p);
        break;
    default: ck_abort_msg("%s has a type that no context has", o->name);
    }
}

/* Sets the member to a number. */
static void set_member(sps_context_options *co, const sps_option_info *o,
                       double value)
{
    void *p = (char *)co + o->offset;

    if (o->type == SPS_OPTION_REAL) *(double *)p = value;
    else *(int *)p = (int)value;
}

static sps_status created(const sps_context_options *co)
{
    sps_context *other = NULL;
    sps_status st = sps_context_create(co, &other, NULL);

    sps_context_destroy(&other);
    return st;
}

/* Each row of a context describes a member of sps_context_options: its default
 * is that of the struct, and a number out of its range is rejected by name. */
START_TEST(rows_of_a_context_are_its_members)
{
    sps_context_options co;
    sps_option_info o = {.struct_size = sizeof o};
    const char *name;
    char text[64];
    int n = 0;

    for (; (name = sps_list(ctx, "context_option", n)); n++) {
        ck_assert_int_eq(sps_option_information(NULL, name, &o), SPS_OK);
        ck_assert_str_eq(o.name, name);
        ck_assert_msg(strlen(o.help) > 10 && *o.default_value, "%s", name);
        ck_assert(o.offset >= sizeof(size_t) && o.offset < sizeof co);
        ck_assert(!in_list("option", name));
        sps_context_options_default(&co);
        member(&co, &o, text);
        ck_assert_msg(!strcmp(text, o.default_value), "%s: %s, not %s", name,
                      text, o.default_value);
        if (o.type != SPS_OPTION_REAL && o.type != SPS_OPTION_INTEGER) continue;
        co.place = SPS_HOST;
        set_member(&co, &o, o.low - 1);
        ck_assert_int_eq(created(&co), SPS_EINVAL);
        ck_assert_ptr_nonnull(strstr(sps_context_error(NULL), name));
    }
    ck_assert_int_ge(n, 8);
}
END_TEST

START_TEST(no_name_means_two_options)
{
    sps_option_info o, found = {.struct_size = sizeof found};
    char word[64];

    for (int i = 0; option(i, &o); i++)
        for (int a = 0; word_of(o.aliases, a, word); a++) {
            ck_assert_int_eq(sps_option_information(ctx, word, &found),
                             SPS_OK);
            ck_assert_str_eq(found.name, o.name);
        }
}
END_TEST

/* Names that the command and the library of 0.1 had for the same option. */
START_TEST(names_of_0_1_go_on_meaning_what_they_did)
{
    static const char *const same[][2] = {
        { "maxit", "max_iterations" }, { "maxtime", "max_seconds" },
        { "rank-tol", "rank_tolerance" }, { "precond-block", "block_size" },
        { "precond-degree", "degree" }, { "fsai-power", "power" },
    };
    sps_option_info o = {.struct_size = sizeof o};

    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        for (int name = 0; name < 2; name++) {
            ck_assert_msg(sps_option_information(ctx, same[i][name], &o) ==
                          SPS_OK, "%s is unknown", same[i][name]);
            ck_assert_str_eq(o.name, same[i][1]);
        }
}
END_TEST

/* Sets the option by name in every way, each on default options; each must give
 * the same value. */
static void set_by(const char *name, const sps_option_info *o,
                   const char *value)
{
    static const char *const forms[] = {"%s=%s", "%s = %s", "\t%s  =%s,",
                                        "# x\n%s= %s # y"};
    char text[256], got[64], again[64];
    sps_options opt, *made = NULL;

    ck_assert_int_eq(sps_options_create(ctx, &made), SPS_OK);
    ck_assert_msg(sps_options_set(ctx, made, name, value) == SPS_OK,
                  "%s=%s: %s", name, value, sps_context_error(ctx));
    ck_assert_int_eq(sps_options_get(ctx, made, o->name, got, sizeof got),
                     SPS_OK);
    if (o->type == SPS_OPTION_REAL || o->type == SPS_OPTION_INTEGER)
        ck_assert_msg(strtod(got, NULL) == strtod(value, NULL), "%s: %s is %s",
                      name, value, got);
    else
        ck_assert_str_eq(got, value);
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        sps_options_default(&opt);
        snprintf(text, sizeof text, forms[f], name, value);
        ck_assert_msg(sps_options_parse(ctx, &opt, text) == SPS_OK, "%s: %s",
                      text, sps_context_error(ctx));
        ck_assert_int_eq(sps_options_get(ctx, &opt, name, again, sizeof again),
                         SPS_OK);
        ck_assert_str_eq(again, got);
    }
    sps_options_destroy(ctx, &made);
}

START_TEST(every_option_is_set_by_every_name_in_every_way)
{
    char value[64], name[64];
    sps_option_info o;

    for (int i = 0; option(i, &o); i++)
        for (int v = 0; value_of(&o, v, value, sizeof value); v++) {
            set_by(o.name, &o, value);
            snprintf(name, sizeof name, "%s", o.name);
            for (char *p = name; *p; p++)
                if (*p == '_') *p = '-';
            set_by(name, &o, value);
            for (int a = 0; word_of(o.aliases, a, name); a++)
                set_by(name, &o, value);
        }
}
END_TEST

START_TEST(defaults_are_those_of_the_rows)
{
    sps_option_info o;
    sps_options opt, set;
    char text[64], other[64];

    sps_options_default(&opt);
    sps_options_default(&set);
    for (int i = 0; option(i, &o); i++) {
        ck_assert_int_eq(sps_options_set(ctx, &set, o.name, o.default_value),
                         SPS_OK);
        sps_options_get(ctx, &opt, o.name, text, sizeof text);
        sps_options_get(ctx, &set, o.name, other, sizeof other);
        ck_assert_str_eq(text, other);
    }
}
END_TEST

/* Rejected, with an error text that has the name and a limit of the range. */
static void refused(const sps_option_info *o, const char *value,
                    const char *says)
{
    sps_options opt;
    char before[64], after[64];

    sps_options_default(&opt);
    sps_options_get(ctx, &opt, o->name, before, sizeof before);
    ck_assert_msg(sps_options_set(ctx, &opt, o->name, value) == SPS_EINVAL,
                  "%s=%s was taken", o->name, value);
    ck_assert_msg(strstr(sps_context_error(ctx), o->name) &&
                  strstr(sps_context_error(ctx), says),
                  "%s=%s: \"%s\" does not say %s", o->name, value,
                  sps_context_error(ctx), says);
    sps_options_get(ctx, &opt, o->name, after, sizeof after);
    ck_assert_str_eq(before, after);
}

START_TEST(values_out_of_range_are_refused_with_the_range)
{
    sps_option_info o;
    char value[64], says[64];

    for (int i = 0; option(i, &o); i++) {
        if (o.type == SPS_OPTION_WORD) refused(&o, "xyzzy", "unknown name");
        if (o.type == SPS_OPTION_BOOLEAN) refused(&o, "2", "true or false");
        if (o.type != SPS_OPTION_REAL && o.type != SPS_OPTION_INTEGER) continue;
        refused(&o, "1x", "number");
        refused(&o, "", "number");
        if (o.type == SPS_OPTION_INTEGER) refused(&o, "1.5", "whole");
        if (isfinite(o.low)) {
            snprintf(value, sizeof value, "%.17g", o.low - 1);
            snprintf(says, sizeof says, "%.10g", o.low);
            refused(&o, value, says);
        }
        snprintf(value, sizeof value, "%.17g", o.high + 1);
        snprintf(says, sizeof says, "%.10g", o.high);
        refused(&o, isfinite(o.high) ? value : "1e999",
                isfinite(o.high) ? says : "finite");
    }
}
END_TEST

START_TEST(an_empty_value_is_told_from_one_behind_a_blank)
{
    sps_options opt;

    sps_options_default(&opt);
    ck_assert_int_eq(sps_options_parse(ctx, &opt, "wisdom = w rtol = 0.5"),
                     SPS_OK);
    ck_assert_str_eq(opt.wisdom, "w");
    ck_assert(opt.rtol == 0.5);
    ck_assert_int_eq(sps_options_parse(ctx, &opt, "wisdom= rtol=0.25"),
                     SPS_OK);
    ck_assert_ptr_null(opt.wisdom);
    ck_assert(opt.rtol == 0.25);
    ck_assert_int_eq(sps_options_parse(ctx, &opt, "wisdom=a=b,solver = "
                     "\nrtol =0.125 wisdom = rtol\t=\t0.5"), SPS_OK);
    ck_assert_ptr_null(opt.wisdom);
    ck_assert_str_eq(opt.solver, "auto");
    ck_assert(opt.rtol == 0.5);
    ck_assert_int_eq(sps_options_parse(ctx, &opt, "wisdom=a=b"), SPS_OK);
    ck_assert_str_eq(opt.wisdom, "a=b");
    ck_assert_int_eq(sps_options_parse(ctx, &opt, "rtol 1e-3"), SPS_EINVAL);
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "name=value"));
}
END_TEST

/* basis and precond_precision, options before 0.2, as values of precision. */
START_TEST(options_of_0_1_are_words_of_precision)
{
    static const struct {
        const char *text, *is;
    } cases[] = {
        {"basis=single", "single_basis"},
        {"precond_precision=single", "single_precond"},
        {"basis=single precond-precision = single", "mixed"},
        {"precision=mixed basis=double", "single_precond"},
        {"precision=single_basis basis=auto", "single_basis"},
        {"basis=single basis=double", "double"},
    };
    sps_option_info info = {.struct_size = sizeof info};
    sps_options opt;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sps_options_default(&opt);
        ck_assert_int_eq(sps_options_parse(ctx, &opt, cases[i].text), SPS_OK);
        ck_assert_str_eq(opt.precision, cases[i].is);
    }
    ck_assert_int_eq(sps_options_set(ctx, &opt, "basis", "mixed"), SPS_EINVAL);
    ck_assert_int_eq(sps_option_information(ctx, "precond-precision", &info),
                     SPS_OK);
    ck_assert_str_eq(info.name, "precision");
}
END_TEST

START_TEST(options_behind_a_pointer_need_no_layout)
{
    sps_context_info info = {.struct_size = sizeof info};
    sps_options *opt = NULL;
    sps_block *X = NULL;
    char text[8];

    ck_assert_int_eq(sps_options_create(ctx, &opt), SPS_OK);
    sps_context_information(ctx, &info);
    ck_assert_int_eq(info.live_objects, 1);
    ck_assert_int_eq(sps_block_create(ctx, 3, 1, &X), SPS_OK);
    ck_assert_int_eq(sps_options_set_block(ctx, opt, "coords", X), SPS_OK);
    ck_assert_ptr_eq(opt->coords, X);
    ck_assert_int_eq(sps_options_set_block(ctx, opt, "coords", NULL), SPS_OK);
    ck_assert_int_eq(sps_options_set_block(ctx, opt, "constraints", X),
                     SPS_OK);
    ck_assert_int_eq(sps_options_set_block(ctx, opt, "nullspace_basis", X),
                     SPS_OK);
    ck_assert_int_eq(sps_options_set_block(ctx, opt, "near_null_basis", X),
                     SPS_OK);
    ck_assert(!opt->coords && opt->constraints == X &&
              opt->nullspace_basis == X && opt->near_null_basis == X);
    opt->struct_size = offsetof(sps_options, near_null_basis);
    ck_assert_int_eq(sps_options_set_block(ctx, opt, "near_null_basis", X),
                     SPS_EINVAL);
    opt->struct_size = sizeof *opt;
    ck_assert_int_eq(sps_options_set_block(ctx, opt, "X", X), SPS_EINVAL);
    ck_assert_int_eq(sps_options_set_monitor(ctx, opt, NULL, &info), SPS_OK);
    ck_assert_ptr_eq(opt->monitor_data, &info);
    ck_assert_int_eq(sps_options_set(ctx, opt, "kernel", "spmm.ref"), SPS_OK);
    ck_assert_int_eq(sps_options_get(ctx, opt, "kernel", text, sizeof text),
                     SPS_EINVAL);
    ck_assert_str_eq(text, "spmm.re");
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "9 bytes"));
    sps_block_destroy(&X);
    sps_options_destroy(ctx, &opt);
    ck_assert_ptr_null(opt);
    sps_options_destroy(ctx, &opt);
}
END_TEST

START_TEST(wrong_calls_are_refused)
{
    sps_option_info info = {.struct_size = sizeof info};
    sps_options *opt = NULL;
    char text[64];

    ck_assert_int_eq(sps_options_create(ctx, NULL), SPS_EINVAL);
    ck_assert_int_eq(sps_options_create(NULL, &opt), SPS_EINVAL);
    ck_assert_int_eq(sps_options_create(ctx, &opt), SPS_OK);
    ck_assert_int_eq(sps_options_set(NULL, opt, "rtol", "1"), SPS_EINVAL);
    ck_assert_int_eq(sps_options_set(ctx, NULL, "rtol", "1"), SPS_EINVAL);
    ck_assert_int_eq(sps_options_set(ctx, opt, NULL, "1"), SPS_EINVAL);
    ck_assert_int_eq(sps_options_set(ctx, opt, "rtol", NULL), SPS_EINVAL);
    ck_assert_int_eq(sps_options_set(ctx, opt, "max-iteration", "1"),
                     SPS_EINVAL);
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "did you mean"));
    ck_assert_int_eq(sps_options_set(ctx, opt, "rank-toll", "1"), SPS_EINVAL);
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx),
                                 "did you mean rank_tolerance"));
    ck_assert_int_eq(sps_options_get(ctx, opt, "rtoll", text, 64), SPS_EINVAL);
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "did you mean rtol"));
    ck_assert_int_eq(sps_options_get(ctx, opt, "rtol", NULL, 64), SPS_EINVAL);
    ck_assert_int_eq(sps_options_get(ctx, opt, "rtol", NULL, 0), SPS_EINVAL);
    ck_assert_int_eq(sps_option_information(NULL, "rtol", &info), SPS_OK);
    ck_assert_int_eq(sps_option_information(NULL, "x", &info), SPS_EINVAL);
    ck_assert_int_eq(sps_option_information(ctx, "rtol", NULL), SPS_EINVAL);
    info.struct_size = 1;
    ck_assert_int_eq(sps_option_information(ctx, "rtol", &info), SPS_EINVAL);
    sps_options_destroy(ctx, &opt);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(every_row_is_told_in_full),
    RUNNER_TEST(rows_of_a_context_are_its_members),
    RUNNER_TEST(no_name_means_two_options),
    RUNNER_TEST(names_of_0_1_go_on_meaning_what_they_did),
    RUNNER_TEST(every_option_is_set_by_every_name_in_every_way),
    RUNNER_TEST(defaults_are_those_of_the_rows),
    RUNNER_TEST(values_out_of_range_are_refused_with_the_range),
    RUNNER_TEST(an_empty_value_is_told_from_one_behind_a_blank),
    RUNNER_TEST(options_of_0_1_are_words_of_precision),
    RUNNER_TEST(options_behind_a_pointer_need_no_layout),
    RUNNER_TEST(wrong_calls_are_refused),
};
RUNNER_MAIN_WITHIN("option_table", tests, setup, teardown)
