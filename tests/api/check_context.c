/* SPDX-License-Identifier: BSD-3-Clause */
/* check_context.c - contexts: options, properties, allocators, threads,
 * cancellation. */
#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/context.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/runner.h"
#include "core/team.h"

static sps_context_options host_options(void)
{
    sps_context_options o;

    sps_context_options_default(&o);
    o.place = SPS_HOST;
    return o;
}

static sps_context_info facts(const sps_context *ctx)
{
    sps_context_info info = {.struct_size = sizeof info};

    ck_assert_int_eq(sps_context_information(ctx, &info), SPS_OK);
    return info;
}

START_TEST(a_host_context_tells_its_facts)
{
    sps_context_options o = host_options();
    sps_context *ctx = NULL;
    sps_context_info info;
    const char *error = NULL;

    o.threads = 3;
    ck_assert_int_eq(sps_context_create(&o, &ctx, &error), SPS_OK);
    ck_assert_str_eq(error, "");
    info = facts(ctx);
    ck_assert_int_eq(info.place, SPS_HOST);
    ck_assert_int_eq(info.threads, 3);
    ck_assert_ptr_nonnull(strstr(info.device, "cpu"));
    ck_assert_str_ne(info.module, "");
    ck_assert_uint_gt(info.host_bytes, 0);
    ck_assert_uint_ge(info.host_peak, info.host_bytes);
    ck_assert_uint_eq(info.device_bytes, 0);
    ck_assert_int_eq((int)info.live_objects, 0);
    ck_assert_str_eq(sps_context_error(ctx), "");
    ck_assert_ptr_null(sps_context_note(ctx, 0));
    sps_context_destroy(&ctx);
    ck_assert_ptr_null(ctx);
    sps_context_destroy(&ctx);
    sps_context_destroy(NULL);
}
END_TEST

START_TEST(threads_default_to_the_cores_of_this_process)
{
    sps_context_options o = host_options();
    sps_context *ctx = NULL;
    cpu_set_t set, one;

    unsetenv("OMP_NUM_THREADS");
    ck_assert_int_eq(sched_getaffinity(0, sizeof set, &set), 0);
    ck_assert_int_eq(sps_context_create(&o, &ctx, NULL), SPS_OK);
    ck_assert_int_eq(facts(ctx).threads, spsi_cores("", NULL));
    ck_assert_int_le(facts(ctx).threads, CPU_COUNT(&set));
    sps_context_destroy(&ctx);

    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &set)) CPU_SET(i, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    ck_assert_int_eq(sps_context_create(&o, &ctx, NULL), SPS_OK);
    ck_assert_int_eq(facts(ctx).threads, 1);
    sps_context_destroy(&ctx);
}
END_TEST

static void *some_alloc(size_t bytes, void *data)
{
    (void)data;
    return malloc(bytes);
}

START_TEST(bad_options_are_refused_with_a_text)
{
    sps_context *ctx = NULL;

    const sps_allocator half = {.struct_size = sizeof half,
                                .alloc = some_alloc};

    for (int i = 0; i < 9; i++) {
        sps_context_options o = host_options();
        const char *error = NULL;

        switch (i) {
        case 0: o.struct_size = 0; break;
        case 1: o.struct_size = sizeof o + 4; break;
        case 2: o.place = (sps_place)7; break;
        case 3: o.device = -2; break;
        case 4: o.threads = -1; break;
        case 5: o.threads = 1 << 20; break;
        case 6: o.host = &half; break;
        case 7: o.gpu = &half; break;
        case 8: o.place = (sps_place)-1; break;
        }
        ck_assert_int_eq(sps_context_create(&o, &ctx, &error), SPS_EINVAL);
        ck_assert_msg(error && *error, "case %d has no text", i);
        ck_assert_ptr_null(ctx);
        ck_assert_int_eq(sps_context_create(&o, &ctx, NULL), SPS_EINVAL);
    }
    ck_assert_int_eq(sps_context_create(NULL, NULL, NULL), SPS_EINVAL);
    sps_context_options_default(NULL);
}
END_TEST

/* ------------------------------------------------------------------- memory */

START_TEST(memory_is_zeroed_aligned_and_counted)
{
    sps_context_options o = host_options();
    fail_alloc f = {.allowed = -1};
    sps_context *ctx = NULL;
    size_t before;

    o.host = fail_alloc_host(&f); /* its memory is misaligned and filled with
                                     NaN */
    ck_assert_int_eq(sps_context_create(&o, &ctx, NULL), SPS_OK);
    before = ctx->memory.host;
    for (size_t bytes = 0; bytes < 5000; bytes = bytes * 3 + 1) {
        unsigned char *p = NULL;

        ck_assert_int_eq(spsi_new(ctx, bytes, (void **)&p), SPS_OK);
        ck_assert_uint_eq((uintptr_t)p % 64, 0);
        for (size_t i = 0; i < bytes; i++) ck_assert_int_eq(p[i], 0);
        ck_assert_uint_ge(ctx->memory.host, before + bytes);
        ck_assert_uint_eq(ctx->memory.host, f.bytes);
        spsi_free(ctx, p);
        ck_assert_uint_eq(ctx->memory.host, before);
    }
    spsi_free(ctx, NULL);
    sps_context_destroy(&ctx);
    ck_assert_int_eq(f.live, 0);
    ck_assert_int_eq(f.mismatches, 0);
}
END_TEST

/* Without a caller's allocator memory is resized by realloc, which moves large
 * allocations. */
START_TEST(resizing_keeps_contents_and_the_count_of_bytes)
{
    sps_context *ctx = NULL;
    size_t held, bytes = 40;
    unsigned char *p = NULL;

    ck_assert_int_eq(sps_context_create(NULL, &ctx, NULL), SPS_OK);
    held = ctx->memory.host;
    ck_assert_int_eq(spsi_resize(ctx, bytes, (void **)&p), SPS_OK);
    memset(p, 7, bytes);
    for (; bytes < 9 << 20; bytes = 3 * bytes + 1) {
        ck_assert_int_eq(spsi_resize(ctx, 3 * bytes + 1, (void **)&p), SPS_OK);
        ck_assert_uint_eq((uintptr_t)p % 64, 0);
        for (size_t i = 0; i < bytes; i++) ck_assert(p[i] == 7);
        memset(p, 7, 3 * bytes + 1);
    }
    ck_assert_uint_ge(ctx->memory.host, held + bytes);
    ck_assert_int_eq(spsi_resize(ctx, 5, (void **)&p), SPS_OK);
    ck_assert(p[0] == 7 && p[4] == 7);
    ck_assert_uint_lt(ctx->memory.host, held + 200);
    spsi_free(ctx, p);
    ck_assert_uint_eq(ctx->memory.host, held);
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(resizing_keeps_the_contents_and_the_old_block_on_failure)
{
    sps_context_options o = host_options();
    fail_alloc f = {.allowed = -1};
    sps_context *ctx = NULL;
    int *p = NULL, *same;

    o.host = fail_alloc_host(&f);
    ck_assert_int_eq(sps_context_create(&o, &ctx, NULL), SPS_OK);
    ck_assert_int_eq(spsi_resize(ctx, 4 * sizeof *p, (void **)&p), SPS_OK);
    for (int i = 0; i < 4; i++) p[i] = i + 10;
    ck_assert_int_eq(spsi_resize(ctx, 4000 * sizeof *p, (void **)&p), SPS_OK);
    for (int i = 0; i < 4; i++) ck_assert_int_eq(p[i], i + 10);
    ck_assert_int_eq(spsi_resize(ctx, 2 * sizeof *p, (void **)&p), SPS_OK);
    ck_assert(p[0] == 10 && p[1] == 11);
    same = p;
    fail_alloc_allow(&f, 0);
    ck_assert_int_eq(spsi_resize(ctx, 99, (void **)&p), SPS_ENOMEM);
    ck_assert(p == same && p[0] == 10 && p[1] == 11);
    spsi_free(ctx, p);
    sps_context_destroy(&ctx);
    ck_assert_int_eq(f.live, 0);
    ck_assert_int_eq(f.mismatches, 0);
}
END_TEST

START_TEST(sizes_beyond_addresses_are_enomem_not_overflow)
{
    sps_context_options o = host_options();
    sps_context *ctx = NULL;
    double *p = NULL;
    void *q = NULL;

    ck_assert_int_eq(sps_context_create(&o, &ctx, NULL), SPS_OK);
    ck_assert_int_eq(SPS_NEW(ctx, INT64_MAX, &p), SPS_ENOMEM);
    ck_assert_int_eq(SPS_NEW(ctx, INT64_MAX / 4 + 1, &p), SPS_ENOMEM);
    ck_assert_int_eq(SPS_NEW(ctx, -1, &p), SPS_ENOMEM);
    ck_assert_int_eq(spsi_new(ctx, SIZE_MAX, &q), SPS_ENOMEM);
    ck_assert_int_eq(spsi_new(ctx, SIZE_MAX - 70, &q), SPS_ENOMEM);
    ck_assert(!p && !q);
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "bytes"));
    sps_context_destroy(&ctx);
}
END_TEST

/* The kernel's overcommit would grant both, and kill the process that writes to
 * them. */
START_TEST(more_than_the_machine_has_is_enomem_before_it_is_touched)
{
    const size_t all = (size_t)sysconf(_SC_PHYS_PAGES) *
                       (size_t)sysconf(_SC_PAGESIZE);
    sps_context_options o = host_options();
    sps_context *ctx = NULL;
    void *p[4] = { NULL };
    int given = 0;

#ifdef __SANITIZE_ADDRESS__
    runner_leave_out("the sanitizer's shadow of so much would be touched");
#endif
    ck_assert_int_eq(sps_context_create(&o, &ctx, NULL), SPS_OK);
    while (given < 4 && spsi_new(ctx, all / 2, &p[given]) == SPS_OK) given++;
    /* Swap may cover some more; on a machine with as much swap as free memory
     * three may be granted. */
    ck_assert_int_lt(given, 4);
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "no host memory for"));
    while (given > 0) spsi_free(ctx, p[--given]);
    sps_context_destroy(&ctx);
}
END_TEST

/* Backends count what they allocate, and ask before they do. */
START_TEST(a_limit_of_device_memory_leaves_what_is_not_in_use)
{
    sps_context_options o = host_options();
    sps_context *ctx = NULL;

    ck_assert_int_eq(sps_context_create(&o, &ctx, NULL), SPS_OK);
    ck_assert_uint_eq(spsi_device_left(ctx), SIZE_MAX);
    sps_context_destroy(&ctx);
    o.max_device_bytes = 1000;
    ck_assert_int_eq(sps_context_create(&o, &ctx, NULL), SPS_OK);
    ck_assert_uint_eq(spsi_device_left(ctx), 1000);
    spsi_count_device(ctx, 600);
    ck_assert_uint_eq(spsi_device_left(ctx), 400);
    spsi_count_device(ctx, 500);
    ck_assert_uint_eq(spsi_device_left(ctx), 0);
    spsi_count_device(ctx, -1100);
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(a_context_without_memory_is_enomem)
{
    sps_context_options o = host_options();
    fail_alloc f = {.allowed = 0};
    sps_context *ctx = NULL;
    const char *error = NULL;

    o.host = fail_alloc_host(&f);
    ck_assert_int_eq(sps_context_create(&o, &ctx, &error), SPS_ENOMEM);
    ck_assert_ptr_null(ctx);
    ck_assert_ptr_nonnull(strstr(error, "memory"));
    ck_assert_int_eq(f.live, 0);
}
END_TEST

START_TEST(a_note_without_memory_is_lost_and_harmless)
{
    sps_context_options o = host_options();
    fail_alloc f = {.allowed = -1};
    sps_context *ctx = NULL;

    o.host = fail_alloc_host(&f);
    ck_assert_int_eq(sps_context_create(&o, &ctx, NULL), SPS_OK);
    spsi_fail(ctx, SPS_EIO, "kept");
    for (long n = 0; n < 2; n++) {
        fail_alloc_allow(&f, n);
        spsi_note(ctx, "a note");
        ck_assert(f.fired);
        ck_assert_ptr_null(sps_context_note(ctx, 0));
    }
    fail_alloc_allow(&f, -1);
    spsi_note(ctx, "a note");
    ck_assert_str_eq(sps_context_note(ctx, 0), "a note");
    ck_assert_str_eq(sps_context_error(ctx), "kept");
    sps_context_destroy(&ctx);
    ck_assert_int_eq(f.live, 0);
    ck_assert_int_eq(f.mismatches, 0);
}
END_TEST

/* ------------------------------------------------------------------ threads */

/* Host threads of each context.  ThreadSanitizer does not recognise the
 * barriers of libgomp, so that it needs 1: -DCONTEXT_THREADS=1. */
#ifndef CONTEXT_THREADS
#define CONTEXT_THREADS 2
#endif

/* A tridiagonal system, solved in a context that only the calling thread
 * uses. */
static double solve_once(int n, int k)
{
    sps_context_options o = host_options();
    sps_context *ctx = NULL;
    sps_csr *A = NULL;
    sps_operator *op = NULL;
    sps_solver *s = NULL;
    sps_block *B = NULL, *X = NULL;
    sps_result result = {.struct_size = sizeof result};
    double *v;
    int64_t p = 0;

    o.threads = CONTEXT_THREADS;
    ck_assert_int_eq(sps_context_create(&o, &ctx, NULL), SPS_OK);
    ck_assert_int_eq(sps_csr_create(ctx, n, n, 3 * (int64_t)n - 2, SPS_F64, &A),
                     SPS_OK);
    v = A->val;
    for (int i = 0; i < n; i++) {
        for (int j = i - 1; j <= i + 1; j++)
            if (j >= 0 && j < n) {
                A->col[p] = j;
                v[p++] = i == j ? 2.5 : -1;
            }
        A->rowptr[i + 1] = p;
    }
    ck_assert_int_eq(sps_operator_csr(ctx, A, k, NULL, &op), SPS_OK);
    ck_assert_int_eq(sps_block_create(ctx, n, k, &B), SPS_OK);
    ck_assert_int_eq(sps_block_create(ctx, n, k, &X), SPS_OK);
    ck_assert_int_eq(sps_block_random(B, 5), SPS_OK);
    ck_assert_int_eq(sps_solver_create(op, NULL, k, NULL, &s), SPS_OK);
    ck_assert_int_eq(sps_solver_linear(s, B, X, &result), SPS_OK);
    ck_assert_int_eq(result.stop, SPS_STOP_CONVERGED);
    sps_solver_destroy(&s);
    sps_block_destroy(&B);
    sps_block_destroy(&X);
    sps_operator_destroy(&op);
    sps_csr_destroy(ctx, &A);
    ck_assert_int_eq((int)facts(ctx).live_objects, 0);
    sps_context_destroy(&ctx);
    return result.worst_residual;
}

static void *solve_in_thread(void *data)
{
    double *out = data;

    for (int i = 0; i < 3; i++) *out = solve_once(500, 8);
    return NULL;
}

START_TEST(contexts_of_several_threads_do_not_meet)
{
    enum { THREADS = 6 };
    pthread_t thread[THREADS];
    double worst[THREADS], alone = solve_once(500, 8);

    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, solve_in_thread,
                                        &worst[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        ck_assert_double_eq(worst[i], alone); /* bitwise the same */
    }
}
END_TEST

static void *fail_in_thread(void *data)
{
    sps_context_options o = host_options();
    sps_context *ctx = NULL;
    const char *error = NULL;

    o.threads = -*(int *)data;
    for (int i = 0; i < 200; i++) {
        char want[32];

        sps_context_create(&o, &ctx, &error);
        snprintf(want, sizeof want, "threads=%d:", o.threads);
        if (!error || !strstr(error, want)) return NULL;
    }
    return data;
}

START_TEST(texts_of_failed_creations_belong_to_their_thread)
{
    pthread_t thread[4];
    int number[4] = {11, 22, 33, 44};
    void *ok;

    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, fail_in_thread,
                                        &number[i]), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(thread[i], &ok);
        ck_assert_ptr_nonnull(ok);
    }
}
END_TEST

START_TEST(a_new_context_has_no_failure)
{
    sps_context_options o = host_options();
    sps_context *ctx = NULL;

    o.threads = -1;
    ck_assert_int_eq(sps_context_create(&o, &ctx, NULL), SPS_EINVAL);
    ck_assert_str_ne(sps_context_error(NULL), "");
    o.threads = 1;
    ck_assert_int_eq(sps_context_create(&o, &ctx, NULL), SPS_OK);
    ck_assert_str_eq(sps_context_error(ctx), "");
    sps_context_destroy(&ctx);
}
END_TEST

static void *cancel_soon(void *data)
{
    usleep(20000);
    sps_cancel(data, true);
    return NULL;
}

START_TEST(cancelling_from_another_thread_is_seen)
{
    sps_context_options o = host_options();
    sps_context *ctx = NULL;
    pthread_t thread;

    ck_assert_int_eq(sps_context_create(&o, &ctx, NULL), SPS_OK);
    ck_assert(!spsi_cancelled(ctx));
    ck_assert_int_eq(pthread_create(&thread, NULL, cancel_soon, ctx), 0);
    for (int i = 0; i < 5000 && !spsi_cancelled(ctx); i++) usleep(1000);
    ck_assert(spsi_cancelled(ctx));
    pthread_join(thread, NULL);
    sps_cancel(ctx, false);
    ck_assert(!spsi_cancelled(ctx));
    sps_cancel(NULL, true);
    sps_context_destroy(&ctx);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(a_host_context_tells_its_facts),
    RUNNER_TEST(threads_default_to_the_cores_of_this_process),
    RUNNER_TEST(bad_options_are_refused_with_a_text),
    RUNNER_TEST(memory_is_zeroed_aligned_and_counted),
    RUNNER_TEST(resizing_keeps_the_contents_and_the_old_block_on_failure),
    RUNNER_TEST(resizing_keeps_contents_and_the_count_of_bytes),
    RUNNER_TEST(sizes_beyond_addresses_are_enomem_not_overflow),
    RUNNER_TEST(more_than_the_machine_has_is_enomem_before_it_is_touched),
    RUNNER_TEST(a_limit_of_device_memory_leaves_what_is_not_in_use),
    RUNNER_TEST(a_context_without_memory_is_enomem),
    RUNNER_TEST(a_note_without_memory_is_lost_and_harmless),
    RUNNER_TEST(contexts_of_several_threads_do_not_meet),
    RUNNER_TEST(texts_of_failed_creations_belong_to_their_thread),
    RUNNER_TEST(a_new_context_has_no_failure),
    RUNNER_TEST(cancelling_from_another_thread_is_seen),
};
RUNNER_MAIN("check_context", tests)
