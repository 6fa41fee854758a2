/* SPDX-License-Identifier: BSD-3-Clause */
/* check_columns.c - when converged columns are deflated, to the iteration, and
 * what a solve returns when moving columns fails (lib/driver/columns.c).
 *
 * A GPU is played by the backend of the host with a function for replays, which
 * is never called, and with operations that fail for a block of the caller. */
#include <math.h>

#include "core/backend.h"
#include "core/context.h"
#include "driver/columns.h"
#include "driver/fused_cg.h"
#include "tests/problems/problem.h"
#include "tests/support/fixture.h"
#include "tests/support/runner.h"

enum { SIDE = 50, ROWS = SIDE * SIDE, K = 8, EARLY = 6 };

static sps_context *ctx;

static struct {
    const sps_backend *real;
    sps_backend backend;
    const sps_block *refused;   /* no column of it is gathered or scaled */
    int refusals;
    int iteration, few, moved;  /* the last one; the first with at least
                                   `enough` columns converged; that after which
                                   columns were moved; or 0 */
    int enough;
} played;

static sps_status never(sps_context *c, void *recording)
{
    (void)recording;
    return spsi_fail(c, SPS_EBUG, "a replay that nobody asked for");
}

static sps_status refuse(void)
{
    played.refusals++;
    return spsi_fail(ctx, SPS_EDEVICE, "refused");
}

static sps_status gather(const sps_block *X, const int *index, sps_block *Y)
{
    if (X == played.refused) return refuse();
    if (!played.moved) played.moved = played.iteration;
    return played.real->gather(X, index, Y);
}

static sps_status axpby_cols(const double *a, const sps_block *X,
                             const double *b, sps_block *Y)
{
    if (Y == played.refused) return refuse();
    return played.real->axpby_cols(a, X, b, Y);
}

static void open_played(void)
{
    ctx = fixture_open_with(SPS_HOST, 2, true);
    memset(&played, 0, sizeof played);
    played.real = ctx->backend;
    played.backend = *ctx->backend;
    played.backend.gather = gather;
    played.backend.axpby_cols = axpby_cols;
    ctx->backend = &played.backend;
}

static void close_played(void)
{
    ctx->backend = played.real;
    fixture_close(&ctx);
}

/* ------------------------------------------------------------- the decision */

static sps_status queue(sps_linear *s, void *method, int *count, int *taken,
                        double *norms)
{
    (void)s, (void)method, (void)count, (void)norms;
    *taken = 0;
    return SPS_OK;
}

static sps_status flush(sps_linear *s, void *method)
{
    (void)s, (void)method;
    return SPS_OK;
}

static sps_status permute(sps_linear *s, void *method, const int *from,
                          int count)
{
    (void)s, (void)method, (void)from, (void)count;
    return SPS_OK;
}

static const sps_linear_type queued = { .name = "queued", .queue = queue },
    stepped = { .name = "stepped" },
    cyclic = { .name = "cyclic", .queue = queue, .flush = flush },
    late = { .name = "late", .queue = queue, .flush = flush,
             .permute = permute };

static sps_linear solver_of(const sps_linear_type *type, int64_t rows, int k)
{
    sps_linear s = { .ctx = ctx, .n = rows, .rows = rows, .columns = k,
                     .k = k };

    s.method.type = type;
    s.at.few_since = -1;
    return s;
}

static bool latency(const sps_linear_type *type, int64_t rows, int k)
{
    const sps_linear s = solver_of(type, rows, k);

    return spsi_columns_latency(&s);
}

START_TEST(small_blocks_with_queues_and_replays_are_bound_by_latency)
{
    ck_assert(!latency(&queued, 100, 8));
    played.backend.replay = never;
    ck_assert(latency(&queued, 100, 8));
    ck_assert(!latency(&stepped, 100, 8));
    ck_assert(!latency(&cyclic, 100, 8));
    ck_assert(latency(&queued, 1 << 18, 8));
    ck_assert(!latency(&queued, (1 << 18) + 1, 8));
    ck_assert(latency(&queued, 100, SPS_FUSED_WIDEST));
    ck_assert(!latency(&queued, 100, SPS_FUSED_WIDEST + 1));
}
END_TEST

static int few(const sps_linear_type *type, int k)
{
    const sps_linear s = solver_of(type, 100, k);

    return spsi_columns_few(&s);
}

START_TEST(few_columns_are_a_quarter_or_three_quarters_or_none)
{
    ck_assert_int_eq(few(&queued, 8), 6);
    ck_assert_int_eq(few(&late, 8), 6);
    ck_assert_int_eq(few(&cyclic, 8), 0);
    played.backend.replay = never;
    ck_assert_int_eq(few(&queued, 8), 2);
    ck_assert_int_eq(few(&late, 8), 6);
    ck_assert_int_eq(few(&cyclic, 8), 0);
}
END_TEST

static int delay_at(sps_linear *s, int iteration, int open)
{
    s->course.iteration = iteration;
    spsi_columns_track(s, open);
    return spsi_columns_delay(s);
}

START_TEST(a_delay_counts_from_the_first_iteration_with_few_open_columns)
{
    sps_linear s = solver_of(&queued, 100, 8);

    ck_assert_int_eq(delay_at(&s, 30, 2), 0);
    played.backend.replay = never;
    s.at.few_since = -1;
    ck_assert_int_eq(delay_at(&s, 40, 3), 0);
    ck_assert_int_eq(s.at.few_since, -1);
    ck_assert_int_eq(delay_at(&s, 41, 2), 16);
    ck_assert_int_eq(delay_at(&s, 44, 1), 13);
    ck_assert_int_eq(delay_at(&s, 57, 1), 0);
    ck_assert_int_eq(delay_at(&s, 58, 2), -1);
    ck_assert_int_eq(delay_at(&s, 59, 3), 0);
    ck_assert_int_eq(s.at.few_since, -1);
    ck_assert_int_eq(delay_at(&s, 60, 2), 16);
}
END_TEST

/* ------------------------------------------------------------ whole solves */

static bool look(const sps_progress *g, void *data)
{
    (void)data;
    played.iteration = g->iteration;
    if (!played.few && g->converged >= played.enough)
        played.few = g->iteration;
    return true;
}

/* The first EARLY columns are eigenvectors, solved by one iteration. */
static void open_early(problem *p)
{
    problem_open_grid(p, ctx, ROWS, K, 0.01);
    p->opt.solver = "cg";
    p->opt.precond = "none";
    p->opt.replay = false;
    p->opt.monitor = look;
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < EARLY; j++)
            p->b[K * i + j] = cos(M_PI * (j + 1) * (i % SIDE + 0.5) / SIDE);
}

static void moved_after(int enough, int delay)
{
    problem p;

    played.enough = enough;
    open_early(&p);
    OK(ctx, problem_solve(&p));
    ck_assert_int_eq(p.result.stop, SPS_STOP_CONVERGED);
    ck_assert(problem_honest(&p));
    ck_assert_int_ge(p.result.iterations, 30);
    ck_assert_int_gt(played.few, 0);
    ck_assert_msg(played.moved == played.few + delay, "few after %d, moved "
                  "after %d iterations", played.few, played.moved);
    problem_close(&p);
}

START_TEST(converged_columns_are_deflated_16_iterations_later_on_a_gpu)
{
    played.backend.replay = never;
    moved_after(EARLY, 16);
}
END_TEST

START_TEST(converged_columns_are_deflated_at_once_on_the_host)
{
    moved_after(K / 4, 0);
}
END_TEST

/* Solves p with functions that refuse B or X, whose error must be that of the
 * solve; X is judged all the same. */
static void solve_refused(problem *p, bool of_b)
{
    sps_block *B = fixture_block(ctx, ROWS, K, p->b, K);
    sps_block *X = fixture_block(ctx, ROWS, K, p->x, K);
    sps_solver *s = NULL;
    sps_result r = { .struct_size = sizeof r };

    OK(ctx, sps_operator_csr(ctx, p->A, K, &p->opt, &p->op));
    OK(ctx, sps_solver_create(p->op, NULL, K, &p->opt, &s));
    played.refused = of_b ? B : X;
    ck_assert_int_eq(sps_solver_linear(s, B, X, &r), SPS_EDEVICE);
    played.refused = NULL;
    ck_assert_int_eq(played.refusals, 1);
    ck_assert_str_eq(sps_context_error(ctx), "refused");
    OK(ctx, sps_block_get(X, 0, K, p->x, K, SPS_ROW_MAJOR, SPS_HOST));
    problem_judge(p);
    sps_solver_destroy(&s);
    sps_block_destroy(&B);
    sps_block_destroy(&X);
}

/* After deflation the residual needs B in another order. */
START_TEST(a_residual_that_cannot_be_formed_ends_the_solve_with_the_best_x)
{
    problem p;

    open_early(&p);
    solve_refused(&p, true);
    ck_assert_int_gt(played.moved, 0);
    for (int j = 0; j < K; j++)
        ck_assert_msg(p.residual[j] < (j < EARLY ? 1e-10 : 1),
                      "column %d has a residual of %g", j, p.residual[j]);
    problem_close(&p);
}
END_TEST

START_TEST(an_x_that_cannot_be_scaled_back_is_an_error_of_the_solve)
{
    problem p;

    open_early(&p);
    solve_refused(&p, false);
    problem_close(&p);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(small_blocks_with_queues_and_replays_are_bound_by_latency),
    RUNNER_TEST(few_columns_are_a_quarter_or_three_quarters_or_none),
    RUNNER_TEST(
        a_delay_counts_from_the_first_iteration_with_few_open_columns),
    RUNNER_TEST(converged_columns_are_deflated_16_iterations_later_on_a_gpu),
    RUNNER_TEST(converged_columns_are_deflated_at_once_on_the_host),
    RUNNER_TEST(
        a_residual_that_cannot_be_formed_ends_the_solve_with_the_best_x),
    RUNNER_TEST(an_x_that_cannot_be_scaled_back_is_an_error_of_the_solve),
};
RUNNER_MAIN_WITHIN("columns", tests, open_played, close_played)
