/* SPDX-License-Identifier: BSD-3-Clause */
/* check_option_command.c - the command accepts each option of the library's
 * table, by each of its names, in each form, and reports the value that the
 * library reads.  No matrix is read: the report contains the options
 * nevertheless. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/files.h"
#include "tests/support/runner.h"
#include "spsolve.h"

/* A value of the option other than its default, compatible with all other
 * options. */
static void another_value(const sps_option_info *o, char *value, size_t size)
{
    const char *second = strchr(o->words, ' ');

    switch (o->type) {
    case SPS_OPTION_WORD:
    case SPS_OPTION_NAME:
        ck_assert_ptr_nonnull(second);
        if (second[1] == '@')
            snprintf(value, size, "%s", !strcmp(o->name, "solver") ? "cg"
                     : sps_list(NULL, "precond", 1));
        else
            snprintf(value, size, "%.*s", (int)strcspn(second + 1, " "),
                     second + 1);
        break;
    case SPS_OPTION_FILE: snprintf(value, size, "w.txt"); break;
    case SPS_OPTION_BOOLEAN:
        snprintf(value, size, "%s", *o->default_value == 't' ? "no" : "yes");
        break;
    case SPS_OPTION_REAL: snprintf(value, size, "0.25"); break;
    case SPS_OPTION_INTEGER: snprintf(value, size, "%g", o->low + 2); break;
    case SPS_OPTION_NATURAL: snprintf(value, size, "77"); break;
    case SPS_OPTION_SIZE: snprintf(value, size, "3K"); break;
    }
}

/* The line of the report for an option of a context. */
static void expected_of_context(const sps_option_info *o, const char *value,
                                char *line, size_t size)
{
    const bool yes = !strcmp(value, "yes"), no = !strcmp(value, "no");

    snprintf(line, size, "\n    \"%s\": %s", o->name, yes ? "true"
             : no ? "false" : o->type == SPS_OPTION_SIZE && *value == '3'
             ? "3072" : value);
}

/* The line of the report's options that results from this value. */
static void expected(const sps_option_info *o, const char *value, char *line,
                     size_t size)
{
    const bool bare = o->type == SPS_OPTION_REAL ||
                      o->type == SPS_OPTION_INTEGER ||
                      o->type == SPS_OPTION_BOOLEAN;
    sps_context_options co;
    sps_context *ctx = NULL;
    sps_options opt;
    char text[64];

    sps_context_options_default(&co);
    co.place = SPS_HOST;
    ck_assert_int_eq(sps_context_create(&co, &ctx, NULL), SPS_OK);
    sps_options_default(&opt);
    ck_assert_int_eq(sps_options_set(ctx, &opt, o->name, value), SPS_OK);
    ck_assert_int_eq(sps_options_get(ctx, &opt, o->name, text, sizeof text),
                     SPS_OK);
    snprintf(line, size, bare ? "\n    \"%s\": %s" : "\n    \"%s\": \"%s\"",
             o->name, text);
    sps_context_destroy(&ctx);
}

/* The report of a run with these arguments. */
static void report_of(const char *arguments, char *text, size_t size)
{
    const char *solve = getenv("SOLVE");
    char command[1024], path[128];
    FILE *f;

    snprintf(path, sizeof path, "%s", files_path("r.json"));
    (void)remove(path);
    snprintf(command, sizeof command,
             "%s -A %s.absent -device cpu -json %s %s 2>%s.err </dev/null",
             solve ? solve : "./tools/spsolve", path, path, arguments, path);
    ck_assert_msg(WEXITSTATUS(system(command)) == 3, "%s: not exit 3",
                  command);
    f = fopen(path, "rb");
    ck_assert_msg(f != NULL, "%s: no report", command);
    text[fread(text, 1, size - 1, f)] = '\0';
    fclose(f);
}

/* Form 0: as the next argument; 1: after '=' with two dashes; 2: in a
 * configuration file. */
static void taken(const sps_option_info *o, const char *name, int form,
                  const char *value, const char *line)
{
    static char report[1 << 16];
    const char *more = !strcmp(o->group, "Eigenvalues") ? "-eigs 1"
                     : !strcmp(o->name, "reorder") ? "-coords xyz.mtx" : "";
    char text[256], arguments[512];

    if (form == 0 && o->type == SPS_OPTION_BOOLEAN) form = 1;
    if (form == 0) {
        snprintf(arguments, sizeof arguments, "-%s %s %s", name, value, more);
    } else if (form == 1) {
        snprintf(arguments, sizeof arguments, "--%s=%s %s", name, value, more);
    } else {
        snprintf(text, sizeof text, "# a comment\n%s = %s\n", name, value);
        snprintf(arguments, sizeof arguments, "-config %s %s",
                 files_text("c.conf", text), more);
    }
    report_of(arguments, report, sizeof report);
    ck_assert_msg(strstr(report, line), "%s: the report has not%s", arguments,
                  line);
}

/* By its name, with dashes for '_', and by its aliases. */
static void by_every_name(const sps_option_info *o, int i, const char *value,
                          const char *line)
{
    char name[64];
    int used;

    for (int form = 0; form < 3; form++)
        taken(o, o->name, form, value, line);
    snprintf(name, sizeof name, "%s", o->name);
    for (char *p = name; *p; p++)
        if (*p == '_') *p = '-';
    taken(o, name, i % 3, value, line);
    for (const char *a = o->aliases; sscanf(a, "%63s%n", name, &used) == 1;
         a += used)
        for (int form = 0; form < 3; form++) taken(o, name, form, value, line);
}

START_TEST(every_option_by_every_name_in_every_form)
{
    sps_option_info o = {.struct_size = sizeof o};
    char value[64], line[256];
    const char *listed;

    for (int i = 0; (listed = sps_list(NULL, "option", i)); i++) {
        ck_assert_int_eq(sps_option_information(NULL, listed, &o), SPS_OK);
        another_value(&o, value, sizeof value);
        expected(&o, value, line, sizeof line);
        by_every_name(&o, i, value, line);
    }
    files_clean();
}
END_TEST

/* Options of a context without a group are set in another way. */
START_TEST(every_option_of_a_context_with_a_group)
{
    static char report[1 << 16];
    sps_option_info o = {.struct_size = sizeof o};
    char value[64], line[256];
    const char *listed;
    int n = 0;

    report_of("", report, sizeof report);
    for (int i = 0; (listed = sps_list(NULL, "context_option", i)); i++) {
        ck_assert_int_eq(sps_option_information(NULL, listed, &o), SPS_OK);
        if (!*o.group) continue;
        expected_of_context(&o, o.default_value, line, sizeof line);
        ck_assert_msg(strstr(report, line), "the report has not%s", line);
        another_value(&o, value, sizeof value);
        expected_of_context(&o, value, line, sizeof line);
        by_every_name(&o, i, value, line);
        n++;
    }
    ck_assert_int_ge(n, 4);
    files_clean();
}
END_TEST

START_TEST(what_is_not_said_has_the_default_of_the_table)
{
    static char report[1 << 16];
    sps_option_info o = {.struct_size = sizeof o};
    char line[256];
    const char *listed;

    report_of("", report, sizeof report);
    for (int i = 0; (listed = sps_list(NULL, "option", i)); i++) {
        ck_assert_int_eq(sps_option_information(NULL, listed, &o), SPS_OK);
        if (!*o.default_value)
            snprintf(line, sizeof line, "\n    \"%s\": null", o.name);
        else
            expected(&o, o.default_value, line, sizeof line);
        ck_assert_msg(strstr(report, line), "the report has not%s", line);
    }
    files_clean();
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(every_option_by_every_name_in_every_form),
    RUNNER_TEST(every_option_of_a_context_with_a_group),
    RUNNER_TEST(what_is_not_said_has_the_default_of_the_table),
};
RUNNER_MAIN("option_command", tests)
