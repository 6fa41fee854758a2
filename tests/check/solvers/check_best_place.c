/* SPDX-License-Identifier: BSD-3-Clause */
/* check_best_place.c - the best iterate of a solver lies in page-locked host
 * memory where the GPU has no room for it; B may lie there, and does during a
 * solve if its memory is needed for the residual: same bits, memory counted, and
 * failures of pinning.
 *
 * On the host a GPU is played by a backend with `card` bytes free and room for
 * `blocks` allocations of the size of a block, whose page-locked memory is that
 * of the host. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "block/block.h"
#include "core/backend.h"
#include "core/context.h"
#include "tests/problems/zoo.h"
#include "tests/support/fixture.h"
#include "tests/support/runner.h"

enum { K = 4 };

static sps_context *ctx;
static const sps_backend *real;
static sps_backend played;

static struct {
    size_t card, shared;
    bool refuse;
    size_t block;            /* bytes of a block; 0: allocations are not
                                counted */
    int blocks;
} seen;

static sps_status play_alloc(sps_context *c, size_t bytes, void **p_p)
{
    if (seen.block > 0 && bytes >= seen.block && seen.blocks-- <= 0)
        return spsi_fail(c, SPS_EDEVMEM, "no %zu bytes of the card", bytes);
    return real->alloc(c, bytes, p_p);
}

static sps_status play_memory(sps_context *c, size_t *free_p, size_t *total_p)
{
    (void)c;
    *free_p = *total_p = seen.card;
    return SPS_OK;
}

static sps_status play_share(sps_context *c, size_t bytes, void **p_p)
{
    sps_status st;

    if (seen.refuse)
        return spsi_fail(c, SPS_ENOMEM, "no %zu bytes to share", bytes);
    st = real->share ? real->share(c, bytes, p_p) : spsi_new(c, bytes, p_p);
    seen.shared += st == SPS_OK ? bytes : 0;
    return st;
}

static void play_unshare(sps_context *c, void *p, size_t bytes)
{
    if (p) seen.shared -= bytes;
    if (real->unshare) real->unshare(c, p, bytes);
    else spsi_free(c, p);
}

static void open_context(void)
{
    ctx = fixture_open();
    real = ctx->backend;
    played = *real;
    if (runner_place() == SPS_HOST) {
        played.memory = play_memory;
        played.alloc = play_alloc;
        played.alloc_clear = NULL;
    }
    played.share = play_share;
    played.unshare = play_unshare;
    memset(&seen, 0, sizeof seen);
    ctx->backend = &played;
}

static void close_context(void)
{
    ck_assert_uint_eq(seen.shared, 0);
    ctx->backend = real;
    fixture_close(&ctx);
}

static sps_csr *grid(void)
{
    return zoo_matrix(zoo_find("grid7"), 8000, 7, ZOO_SPD, SPS_F64);
}

typedef struct problem {
    sps_csr *A;
    sps_operator *op;
    sps_block *B, *X;
    double *b;               /* page-locked, if B lies there */
    size_t bytes;            /* of a block */
} problem;

static problem problem_of(bool far_b)
{
    problem p = { .A = grid() };

    p.bytes = (size_t)p.A->nrow * K * sizeof(double);
    OK(ctx, sps_operator_csr(ctx, p.A, K, NULL, &p.op));
    p.X = fixture_block(ctx, p.A->nrow, K, NULL, 0);
    if (far_b) {
        OK(ctx, ctx->backend->share(ctx, p.bytes, (void **)&p.b));
        OK(ctx, sps_block_wrap(ctx, p.A->nrow, K, p.b, K, &p.B));
    } else {
        p.B = fixture_block(ctx, p.A->nrow, K, NULL, 0);
    }
    OK(ctx, sps_block_random(p.B, 5));
    return p;
}

static void problem_free(problem *p)
{
    sps_block_destroy(&p->B);
    sps_block_destroy(&p->X);
    sps_operator_destroy(&p->op);
    if (p->b) ctx->backend->unshare(ctx, p->b, p->bytes);
    zoo_free(&p->A);
}

static sps_status create(const problem *p, const char *solver, int most,
                         sps_solver **s_p)
{
    sps_options o;

    sps_options_default(&o);
    o.solver = solver;
    o.precond = "none";
    o.rtol = 1e-10;
    o.max_iterations = most;
    return sps_solver_create(p->op, NULL, K, &o, s_p);
}

/* Leaves one and a half blocks beside what a solver takes: room for the best
 * iterate, but not for another block after it. */
static void tighten(const problem *p, const char *solver)
{
    size_t before = 0, taken = 0;

    for (int i = 0; i < 2; i++) {      /* the context keeps scratch memory */
        sps_solver *s = NULL;

        before = ctx->memory.device;
        OK(ctx, create(p, solver, 9, &s));
        taken = ctx->memory.device - before;
        sps_solver_destroy(&s);
    }
    seen.card = p->bytes + p->bytes / 2;
    ctx->opt.max_device_bytes = before + taken + p->bytes / 2;
}

/* X after at most `most` iterations, as row-major numbers. */
static double *answer(const problem *p, const char *solver, int most,
                      bool on_host)
{
    double *x = malloc(p->bytes);
    const size_t host = ctx->memory.host;
    sps_result result = { .struct_size = sizeof result };
    sps_solver *s = NULL;

    OK(ctx, create(p, solver, most, &s));
    ck_assert_uint_eq(seen.shared, (on_host ? p->bytes : 0) +
                                   (p->b ? p->bytes : 0));
    if (on_host) ck_assert_uint_ge(ctx->memory.host, host + p->bytes);
    OK(ctx, ctx->backend->fill(p->X, 0.0));
    OK(ctx, sps_solver_linear(s, p->B, p->X, &result));
    ck_assert_int_le(result.iterations, most);
    OK(ctx, sps_block_get(p->X, 0, K, x, K, SPS_ROW_MAJOR, SPS_HOST));
    sps_solver_destroy(&s);
    return x;
}

static const char *const solvers[] = { "block_cg", "cg", "gmres", "bicgstab" };

/* Ended early, when the best iterate is not always the last one, and
 * converged. */
START_TEST(a_best_iterate_in_host_memory_changes_no_bit)
{
    static const int ends[] = { 5, 9, 400 };

    for (int i = 0; i < 4; i++) {
        problem p = problem_of(false);
        double *right[3];

        for (int e = 0; e < 3; e++)
            right[e] = answer(&p, solvers[i], ends[e], false);
        tighten(&p, solvers[i]);
        for (int e = 0; e < 3; e++) {
            double *x = answer(&p, solvers[i], ends[e], true);

            ck_assert_msg(memcmp(x, right[e], p.bytes) == 0,
                          "%s, at most %d iterations: other bits", solvers[i],
                          ends[e]);
            free(x);
            free(right[e]);
        }
        ck_assert(fixture_noted(ctx, "best iterate"));
        ctx->opt.max_device_bytes = 0;
        problem_free(&p);
    }
}
END_TEST

START_TEST(b_in_page_locked_memory_changes_no_bit)
{
    for (int i = 0; i < 4; i++) {
        problem p = problem_of(false), q = problem_of(true);
        double *right, *x = answer(&q, solvers[i], 400, false);

        ck_assert_uint_eq(seen.shared, q.bytes);
        q.b = NULL;                     /* p has none of it */
        seen.shared -= q.bytes;
        right = answer(&p, solvers[i], 400, false);
        seen.shared += q.bytes;
        q.b = (double *)q.B->data;
        ck_assert_msg(memcmp(x, right, p.bytes) == 0, "%s: other bits",
                      solvers[i]);
        free(right);
        free(x);
        problem_free(&p);
        problem_free(&q);
    }
}
END_TEST

/* Then the block lies on the GPU if that has room for it, else the error tells
 * what both places said. */
START_TEST(without_page_locked_memory_the_gpu_is_tried)
{
    problem p = problem_of(false);
    sps_solver *s = NULL;

    tighten(&p, "cg");
    seen.refuse = true;
    OK(ctx, create(&p, "cg", 9, &s));
    ck_assert_uint_eq(seen.shared, 0);
    sps_solver_destroy(&s);
    if (runner_place() == SPS_CUDA) {
        const size_t device = ctx->memory.device;

        ctx->opt.max_device_bytes -= p.bytes;
        ck_assert_int_eq(create(&p, "cg", 9, &s), SPS_EDEVMEM);
        ck_assert_ptr_null(s);
        ck_assert_uint_eq(ctx->memory.device, device);
    } else {
        seen.block = p.bytes;
        seen.blocks = 4;
        ck_assert_int_eq(create(&p, "cg", 9, &s), SPS_EDEVMEM);
        seen.block = 0;
    }
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "fits neither"));
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "bytes to share"));
    problem_free(&p);
}
END_TEST

/* Leaves room for all blocks of a solver but the residual and the best
 * iterate. */
static void tighten_more(const problem *p, const char *solver)
{
    const int many = 100;
    sps_solver *s = NULL;

    tighten(p, solver);
    ctx->opt.max_device_bytes -= 2 * p->bytes;
    if (runner_place() == SPS_CUDA) return;
    ctx->opt.max_device_bytes = (size_t)1 << 40;   /* the card is asked */
    seen.card = 4 * p->bytes;
    seen.block = p->bytes;
    seen.blocks = many;
    OK(ctx, create(p, solver, 9, &s));
    seen.card = 0;
    seen.blocks = many - seen.blocks - 2;
    sps_solver_destroy(&s);
}

static double *numbers_of(const problem *p, const sps_block *X)
{
    double *x = malloc(p->bytes);

    OK(ctx, sps_block_get(X, 0, K, x, K, SPS_ROW_MAJOR, SPS_HOST));
    return x;
}

/* B and the best iterate in host memory: X has the same bits, also after a
 * solve with another B, and B is as before. */
START_TEST(b_that_makes_room_for_the_residual_changes_no_bit)
{
    for (int i = 0; i < 4; i++) {
        problem p = problem_of(false);
        double *right = answer(&p, solvers[i], 400, false);
        double *before = numbers_of(&p, p.B);
        int blocks;

        tighten_more(&p, solvers[i]);
        blocks = seen.blocks;
        for (int round = 0; round < 2; round++) {
            sps_result result = { .struct_size = sizeof result };
            sps_solver *s = NULL;
            double *x, *after;

            seen.blocks = blocks;
            OK(ctx, create(&p, solvers[i], 400, &s));
            ck_assert_uint_eq(seen.shared, 2 * p.bytes);
            ck_assert(fixture_noted(ctx, "B during a solve"));
            OK(ctx, ctx->backend->fill(p.X, 0.0));
            if (round) OK(ctx, sps_block_random(p.B, 6));
            if (round) OK(ctx, sps_solver_linear(s, p.B, p.X, &result));
            OK(ctx, sps_block_random(p.B, 5));
            OK(ctx, ctx->backend->fill(p.X, 0.0));
            OK(ctx, sps_solver_linear(s, p.B, p.X, &result));
            x = numbers_of(&p, p.X);
            after = numbers_of(&p, p.B);
            ck_assert_msg(memcmp(x, right, p.bytes) == 0, "%s: other bits",
                          solvers[i]);
            ck_assert(memcmp(after, before, p.bytes) == 0);
            sps_solver_destroy(&s);
            free(x);
            free(after);
        }
        seen.block = 0;
        ctx->opt.max_device_bytes = 0;
        free(right);
        free(before);
        problem_free(&p);
    }
}
END_TEST

/* The memory of the caller is not used for the residual. */
START_TEST(b_of_the_caller_makes_no_room)
{
    problem p = problem_of(false);
    sps_result result = { .struct_size = sizeof result };
    sps_solver *s = NULL;
    sps_block *B = NULL;
    double *after, *before = numbers_of(&p, p.B);

    tighten_more(&p, "block_cg");
    OK(ctx, create(&p, "block_cg", 400, &s));
    OK(ctx, sps_block_wrap(ctx, p.A->nrow, K, p.B->data, K, &B));
    ck_assert_int_eq(sps_solver_linear(s, B, p.X, &result), SPS_EDEVMEM);
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "sps_block_create"));
    after = numbers_of(&p, p.B);
    ck_assert(memcmp(after, before, p.bytes) == 0);
    OK(ctx, sps_solver_linear(s, p.B, p.X, &result));
    ck_assert_int_eq(result.stop, SPS_STOP_CONVERGED);
    sps_block_destroy(&B);
    sps_solver_destroy(&s);
    seen.refuse = true;
    if (runner_place() == SPS_HOST) seen.blocks = 3;
    ck_assert_int_eq(create(&p, "block_cg", 400, &s), SPS_ENOMEM);
    ck_assert_ptr_null(s);
    seen.block = 0;
    ctx->opt.max_device_bytes = 0;
    free(before);
    free(after);
    problem_free(&p);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(b_that_makes_room_for_the_residual_changes_no_bit),
    RUNNER_TEST(b_of_the_caller_makes_no_room),
    RUNNER_TEST(a_best_iterate_in_host_memory_changes_no_bit),
    RUNNER_TEST(b_in_page_locked_memory_changes_no_bit),
    RUNNER_TEST(without_page_locked_memory_the_gpu_is_tried),
};
RUNNER_MAIN_WITHIN("best_place", tests, open_context, close_context)
