/* SPDX-License-Identifier: BSD-3-Clause */
/* check_status.c - status codes, stop reasons, and how error texts are
 * stored. */
#include <check.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "core/context.h"
#include "tests/support/runner.h"

START_TEST(every_status_has_its_own_text)
{
    static const sps_status all[] = {
#define SPS_X(name, number, text) SPS_##name,
        SPS_STATUS_LIST(SPS_X)
#undef SPS_X
    };
    const size_t count = sizeof all / sizeof *all;

    for (size_t i = 0; i < count; i++) {
        ck_assert_int_eq((int)all[i], (int)i); /* stable numbers, no gaps */
        ck_assert_str_ne(sps_status_string(all[i]), "unknown status");
        for (size_t j = 0; j < i; j++)
            ck_assert_str_ne(sps_status_string(all[i]),
                             sps_status_string(all[j]));
    }
    ck_assert_str_eq(sps_status_string((sps_status)99), "unknown status");
    ck_assert_str_eq(sps_status_string((sps_status)-1), "unknown status");
}
END_TEST

static void lower(const char *word, char *out)
{
    do *out++ = (char)tolower((unsigned char)*word);
    while (*word++);
}

START_TEST(stop_names_are_the_words_of_the_enum_in_lower_case)
{
    char name[64];

#define SPS_X(word, number, text)                                              \
    lower(#word, name);                                                        \
    ck_assert_str_eq(sps_stop_name(SPS_STOP_##word), name);                    \
    ck_assert_str_eq(sps_stop_string(SPS_STOP_##word), text);
    SPS_STOP_LIST(SPS_X)
#undef SPS_X
    ck_assert_str_eq(sps_stop_name((sps_stop)99), "unknown");
    ck_assert_str_eq(sps_stop_string((sps_stop)99), "unknown reason");
}
END_TEST

START_TEST(only_converged_is_positive)
{
#define SPS_X(word, number, text)                                              \
    ck_assert_int_eq(SPS_STOP_##word > 0,                                      \
                     !strncmp(#word, "CONVERGED", 9));
    SPS_STOP_LIST(SPS_X)
#undef SPS_X
}
END_TEST

START_TEST(version_is_that_of_the_header)
{
    char text[32];

    snprintf(text, sizeof text, "%d.%d.%d", SPS_VERSION_MAJOR,
             SPS_VERSION_MINOR, SPS_VERSION_PATCH);
    ck_assert_str_eq(sps_version(), text);
}
END_TEST

static sps_context *host_context(void)
{
    sps_context_options o;
    sps_context *ctx = NULL;

    sps_context_options_default(&o);
    o.place = SPS_HOST;
    ck_assert_int_eq(sps_context_create(&o, &ctx, NULL), SPS_OK);
    return ctx;
}

START_TEST(a_failure_keeps_its_code_and_formats_its_text)
{
    sps_context *ctx = host_context();

    ck_assert_str_eq(sps_context_error(ctx), "");
    ck_assert_int_eq(spsi_fail(ctx, SPS_EMATRIX, "row %d", 7), SPS_EMATRIX);
    ck_assert_str_eq(sps_context_error(ctx), "row 7");
    ck_assert_int_eq(spsi_fail(ctx, SPS_EIO, "then: %s", ctx->error), SPS_EIO);
    ck_assert_str_eq(sps_context_error(ctx), "then: row 7");
    ck_assert_int_eq(spsi_fail(NULL, SPS_EBUG, "nowhere"), SPS_EBUG);
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(an_endless_text_is_cut_and_terminated)
{
    sps_context *ctx = host_context();
    char text[4 * SPS_ERROR_SIZE];

    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    spsi_fail(ctx, SPS_EBUG, "%s", text);
    ck_assert_uint_eq(strlen(sps_context_error(ctx)), SPS_ERROR_SIZE - 1);
    spsi_note(ctx, "%s", text);
    ck_assert_uint_eq(strlen(sps_context_note(ctx, 0)), SPS_ERROR_SIZE - 1);
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(notes_are_kept_in_order_and_once)
{
    sps_context *ctx = host_context();

    spsi_fail(ctx, SPS_EIO, "a failure");
    spsi_note(ctx, "note %d", 1);
    spsi_note(ctx, "note %d", 2);
    spsi_note(ctx, "note %d", 1);
    ck_assert_str_eq(sps_context_note(ctx, 0), "note 1");
    ck_assert_str_eq(sps_context_note(ctx, 1), "note 2");
    ck_assert_ptr_null(sps_context_note(ctx, 2));
    ck_assert_ptr_null(sps_context_note(ctx, -1));
    ck_assert_ptr_null(sps_context_note(NULL, 0));
    ck_assert_str_eq(sps_context_error(ctx), "a failure");
    spsi_note(NULL, "nowhere");
    sps_context_destroy(&ctx);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(every_status_has_its_own_text),
    RUNNER_TEST(stop_names_are_the_words_of_the_enum_in_lower_case),
    RUNNER_TEST(only_converged_is_positive),
    RUNNER_TEST(version_is_that_of_the_header),
    RUNNER_TEST(a_failure_keeps_its_code_and_formats_its_text),
    RUNNER_TEST(an_endless_text_is_cut_and_terminated),
    RUNNER_TEST(notes_are_kept_in_order_and_once),
};
RUNNER_MAIN("check_status", tests)
