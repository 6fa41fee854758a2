/* SPDX-License-Identifier: BSD-3-Clause */
/* check_module.c - the CUDA module: there, absent, or something else. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "context.h"
#include "registry.h"
#include "runner.h"

static sps_context_info facts(const sps_context *ctx)
{
    sps_context_info info = {.struct_size = sizeof info};

    ck_assert_int_eq(sps_context_information(ctx, &info), SPS_OK);
    return info;
}

/* Each test is a process of its own, so each may have its own module. */
static void wish(const char *path)
{
    ck_assert_int_eq(setenv("SPSOLVE_MODULE_PATH", path, 1), 0);
}

static void refused_with(const char *says)
{
    sps_context_options o;
    sps_context *ctx = NULL;
    const char *error = NULL;

    sps_context_options_default(&o);
    o.place = SPS_CUDA;
    ck_assert_int_eq(sps_context_create(&o, &ctx, &error), SPS_EABSENT);
    ck_assert_ptr_null(ctx);
    ck_assert_msg(strstr(error, says), "\"%s\" does not say \"%s\"", error,
                  says);
}

START_TEST(an_absent_module_is_eabsent_with_the_path_tried)
{
    wish("/nonexistent/module.so");
    refused_with("/nonexistent/module.so");
}
END_TEST

START_TEST(a_folder_without_module_is_eabsent_with_the_file_tried)
{
    wish("/");
    refused_with("/spsolve_cuda.so (absent)");
}
END_TEST

START_TEST(a_garbage_file_as_module_is_eabsent_with_the_linkers_reason)
{
    char path[] = "/tmp/spsolve-garbage-XXXXXX";
    int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq((int)write(fd, "not a library", 13), 13);
    close(fd);
    wish(path);
    refused_with(path);
    unlink(path);
}
END_TEST

START_TEST(a_library_that_is_no_module_is_eabsent)
{
    wish("libm.so.6"); /* no such path here: names are paths, not searched */
    refused_with("libm.so.6 (absent)");
}
END_TEST

START_TEST(auto_without_module_runs_on_the_host_with_one_note)
{
    sps_context *ctx = NULL;
    const char *note;

    wish("/nonexistent/module.so");
    ck_assert_int_eq(sps_context_create(NULL, &ctx, NULL), SPS_OK);
    ck_assert_int_eq(facts(ctx).place, SPS_HOST);
    note = sps_context_note(ctx, 0);
    ck_assert_ptr_nonnull(note);
    ck_assert_ptr_nonnull(strstr(note, "/nonexistent/module.so"));
    ck_assert_ptr_null(sps_context_note(ctx, 1));
    ck_assert_str_eq(sps_context_error(ctx), "");
    ck_assert_ptr_nonnull(strstr(facts(ctx).module, "absent"));
    sps_context_destroy(&ctx);
}
END_TEST

/* Nobody asked for a module and none lies about: a list of paths would only
 * make a newcomer think that something failed. */
START_TEST(a_machine_without_module_gets_a_short_note)
{
    sps_context *ctx = NULL;
    const char *note;

    unsetenv("SPSOLVE_MODULE_PATH");
    ck_assert_int_eq(sps_context_create(NULL, &ctx, NULL), SPS_OK);
    if (!spsi_module_expected()) {
        note = sps_context_note(ctx, 0);
        ck_assert_ptr_nonnull(note);
        ck_assert_str_eq(note, "running on the host: no CUDA module is "
                               "installed");
        ck_assert_ptr_nonnull(strstr(facts(ctx).module, "(absent)"));
    }
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(asking_for_cuda_gives_a_gpu_or_a_reason)
{
    sps_context_options o;
    sps_context *ctx = NULL;
    const char *error = NULL;
    sps_status st;

    sps_context_options_default(&o);
    o.place = SPS_CUDA;
    st = sps_context_create(&o, &ctx, &error);
    if (st == SPS_OK) {
        ck_assert_int_eq(facts(ctx).place, SPS_CUDA);
        ck_assert_uint_gt(facts(ctx).device_total, 0);
        sps_context_destroy(&ctx);
    } else {
        ck_assert(st == SPS_EABSENT || st == SPS_EDEVICE);
        ck_assert_str_ne(error, "");
    }
    o.device = 4096;
    st = sps_context_create(&o, &ctx, &error);
    ck_assert(st == SPS_EABSENT || st == SPS_EDEVICE);
    ck_assert_str_ne(error, "");
}
END_TEST

/* SPS_TEST_MODULE is set where the build made one: a module that does not
 * load would otherwise only make everything run on the host. */
START_TEST(the_module_loads_where_it_was_built)
{
    char why[SPS_ERROR_SIZE];
    const char *built = getenv("SPS_TEST_MODULE");
    const sps_module *m = spsi_module_load(why, sizeof why);

    if (!built || !*built) return;
    ck_assert_msg(m, "%s", why);
    ck_assert_int_eq(m->abi, SPS_MODULE_ABI);
    ck_assert_str_eq(m->version, sps_version());
    ck_assert_str_ne(m->architectures, "");
    ck_assert_int_eq(m->backend->place, SPS_CUDA);
    ck_assert_ptr_nonnull(m->kernels[0]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("check_module");
    TCase *tc = tcase_create("all");

    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, an_absent_module_is_eabsent_with_the_path_tried);
    tcase_add_test(tc, a_folder_without_module_is_eabsent_with_the_file_tried);
    tcase_add_test(tc,
                   a_garbage_file_as_module_is_eabsent_with_the_linkers_reason);
    tcase_add_test(tc, a_library_that_is_no_module_is_eabsent);
    tcase_add_test(tc, auto_without_module_runs_on_the_host_with_one_note);
    tcase_add_test(tc, a_machine_without_module_gets_a_short_note);
    tcase_add_test(tc, asking_for_cuda_gives_a_gpu_or_a_reason);
    tcase_add_test(tc, the_module_loads_where_it_was_built);
    suite_add_tcase(suite, tc);
    return runner_run(suite);
}
