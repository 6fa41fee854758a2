/* SPDX-License-Identifier: BSD-3-Clause */
/* check_module.c - the CUDA module: present, absent, or another kind of
 * file. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/context.h"
#include "core/module.h"
#include "tests/support/runner.h"

static sps_context_info facts(const sps_context *ctx)
{
    sps_context_info info = {.struct_size = sizeof info};

    ck_assert_int_eq(sps_context_information(ctx, &info), SPS_OK);
    return info;
}

/* Each test is a process of its own, so that each can load another module. */
static void wish(const char *path)
{
    ck_assert_int_eq(setenv("SPSOLVE_MODULE_PATH", path, 1), 0);
}

static void refused(sps_status expected, const char *says)
{
    sps_context_options o;
    sps_context *ctx = NULL;
    const char *error = NULL;

    sps_context_options_default(&o);
    o.place = SPS_CUDA;
    ck_assert_int_eq(sps_context_create(&o, &ctx, &error), expected);
    ck_assert_ptr_null(ctx);
    ck_assert_msg(strstr(error, says), "\"%s\" does not say \"%s\"", error,
                  says);
}

START_TEST(an_absent_module_is_eabsent_with_the_path_tried)
{
    wish("/nonexistent/module.so");
    refused(SPS_EABSENT, "/nonexistent/module.so");
}
END_TEST

START_TEST(long_paths_are_told_whole)
{
    sps_context *ctx = NULL;
    char path[400];

    memset(path, 'x', sizeof path);
    memcpy(path, "/nonexistent/", 13);
    memcpy(path + sizeof path - 14, "/the_end_of.so", 14);
    path[sizeof path - 1] = '\0';
    wish(path);
    ck_assert_int_eq(sps_context_create(NULL, &ctx, NULL), SPS_OK);
    ck_assert_ptr_nonnull(strstr(facts(ctx).module_state, "/the_end_of.s"));
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(a_folder_without_module_is_eabsent_with_the_file_tried)
{
    wish("/");
    refused(SPS_EABSENT, "/spsolve_cuda.so (absent)");
}
END_TEST

static void garbage(char path[])
{
    int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq((int)write(fd, "not a library", 13), 13);
    close(fd);
    wish(path);
}

START_TEST(a_garbage_file_as_module_is_refused_with_the_linkers_reason)
{
    char path[] = "/tmp/spsolve-garbage-XXXXXX", why[SPS_ERROR_SIZE];

    garbage(path);
    ck_assert_ptr_null(spsi_module_load(why, sizeof why));
    ck_assert_ptr_nonnull(strstr(why, path));
    ck_assert_ptr_nonnull(strstr(why, ": "));   /* text of dlerror */
    unlink(path);
}
END_TEST

/* A file that is no module; if it were loaded, the linker's error would
 * appear. */
START_TEST(without_a_gpu_the_module_is_not_loaded_to_learn_that)
{
    char path[] = "/tmp/spsolve-garbage-XXXXXX";
    sps_context *ctx = NULL;
    const char *note;

    ck_assert_int_eq(setenv("CUDA_VISIBLE_DEVICES", "", 1), 0);
    garbage(path);
    ck_assert_int_eq(sps_context_create(NULL, &ctx, NULL), SPS_OK);
    note = sps_context_note(ctx, 0);
    ck_assert_ptr_nonnull(strstr(note, "running on the host: no GPU: "));
    ck_assert_ptr_nonnull(strstr(note, "NVIDIA driver"));
    ck_assert_ptr_null(strstr(note, path));
    ck_assert_ptr_nonnull(strstr(facts(ctx).module, "not loaded: "));
    sps_context_destroy(&ctx);
    refused(SPS_EDEVICE, "no GPU: ");
    unlink(path);
}
END_TEST

START_TEST(a_library_that_is_no_module_is_eabsent)
{
    wish("libm.so.6"); /* no such path here: names are paths, no library
                          search */
    refused(SPS_EABSENT, "libm.so.6 (absent)");
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

/* No module was requested and none is installed: a list of the paths tried
 * would look like a failure to a new user. */
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

/* SPS_TEST_MODULE is set where the build made a module: one that does not load
 * would otherwise only make everything run on the host. */
START_TEST(the_module_loads_where_it_was_built)
{
    char why[SPS_ERROR_SIZE];
    const char *built = getenv("SPS_TEST_MODULE");
    const sps_module *m = spsi_module_load(why, sizeof why);

    if (!built || !*built) runner_skip("built without the CUDA module");
    ck_assert_msg(m, "%s", why);
    ck_assert_int_eq(m->abi, SPS_MODULE_ABI);
    ck_assert_str_eq(m->version, sps_version());
    ck_assert_str_ne(m->architectures, "");
    ck_assert_int_eq(m->backend->place, SPS_CUDA);
    ck_assert_ptr_nonnull(m->kernels[0]);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(an_absent_module_is_eabsent_with_the_path_tried),
    RUNNER_TEST(long_paths_are_told_whole),
    RUNNER_TEST(a_folder_without_module_is_eabsent_with_the_file_tried),
    RUNNER_TEST(a_garbage_file_as_module_is_refused_with_the_linkers_reason),
    RUNNER_TEST(without_a_gpu_the_module_is_not_loaded_to_learn_that),
    RUNNER_TEST(a_library_that_is_no_module_is_eabsent),
    RUNNER_TEST(auto_without_module_runs_on_the_host_with_one_note),
    RUNNER_TEST(a_machine_without_module_gets_a_short_note),
    RUNNER_TEST(asking_for_cuda_gives_a_gpu_or_a_reason),
    RUNNER_TEST(the_module_loads_where_it_was_built),
};
RUNNER_MAIN("check_module", tests)
