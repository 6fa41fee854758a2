/* SPDX-License-Identifier: BSD-3-Clause */
/* time_amg.c - the time of multigrid's set-up on the GPU by stage, and of a
 * whole solve, for systems of mtxgen: run by name, not a test.
 *   usage: time_amg "poisson7 160" "elasticity 64" ...
 * The stages of the backend are called through wrappers that wait before and
 * behind; the second of two set-ups is shown, then the time of a whole one
 * without them, and of new values.  "-bare LINE": elasticity without
 * coordinates. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/backend.h"
#include "core/timer.h"
#include "tests/check/amg/amg_fixture.h"

enum { SCALE, SYMMETRIC, LANCZOS, AGGREGATE, TENTATIVE, FILTER, PROLONG,
       TRANSPOSE, MULTIPLY, NEXT, OTHERS, STAGES };
static const char *const name[] = {
    "scale", "symmetric", "Lanczos", "aggregates", "tentative", "filter",
    "prolongator", "transpose", "multiply", "next level"
};
static double spent[STAGES];
static const sps_coarsening *real;
static const sps_backend *backend;

static double now(sps_context *ctx)
{
    backend->sync(ctx);
    return spsi_now();
}

#define TIMED(ctx, stage, call)                                                \
    do {                                                                       \
        const double before_ = now(ctx);                                       \
        const sps_status st_ = (call);                                         \
                                                                               \
        spent[stage] += now(ctx) - before_;                                    \
        return st_;                                                            \
    } while (0)

static sps_context *context;      /* that of the levels */

static sps_status scale(sps_coarse *l, bool finest, int64_t *bad, double *value)
{
    TIMED(context, SCALE, real->scale(l, finest, bad, value));
}

static sps_status symmetric(sps_coarse *l, double tol, bool *yes, double *by)
{
    TIMED(context, SYMMETRIC, real->symmetric(l, tol, yes, by));
}

static sps_status lanczos(sps_coarse *l, bool filtered, double *diagonal,
                          double *off, double *bound)
{
    TIMED(context, LANCZOS, real->lanczos(l, filtered, diagonal, off, bound));
}

static sps_status aggregate(sps_coarse *l, int64_t *aggregates)
{
    TIMED(context, AGGREGATE, real->aggregate(l, aggregates));
}

static sps_status tentative(sps_coarse *l, bool again, int64_t *columns,
                            bool *single)
{
    TIMED(context, TENTATIVE, real->tentative(l, again, columns, single));
}

static sps_status filter(sps_coarse *l, bool *filtered)
{
    TIMED(context, FILTER, real->filter(l, filtered));
}

static sps_status prolong(sps_coarse *l, bool smooth, double omega,
                          sps_csr **P)
{
    TIMED(context, PROLONG, real->prolong(l, smooth, omega, P));
}

static sps_status next(sps_coarse *l, const sps_csr *A, bool single,
                       sps_coarse **below)
{
    TIMED(context, NEXT, real->next(l, A, single, below));
}

static sps_status multiply(sps_context *ctx, const sps_csr *A,
                           const sps_csr *B, int64_t most, sps_csr **C)
{
    TIMED(ctx, MULTIPLY, real->multiply(ctx, A, B, most, C));
}

static sps_status transpose(sps_context *ctx, const sps_csr *A, sps_csr **T)
{
    TIMED(ctx, TRANSPOSE, backend->csr_transpose(ctx, A, T));
}

static double set_up(amg_case *c)
{
    const double before = now(c->ctx);

    sps_precond_destroy(&c->M);
    memset(spent, 0, sizeof spent);
    (void)amg_make(c);
    return now(c->ctx) - before;
}

static void time_stages(amg_case *c)
{
    sps_coarsening timed = *real;
    sps_backend other = *backend;
    double all, sum = 0;

    timed.scale = scale;
    timed.symmetric = symmetric;
    timed.lanczos = lanczos;
    timed.aggregate = aggregate;
    timed.tentative = tentative;
    timed.filter = filter;
    timed.prolong = prolong;
    timed.multiply = multiply;
    timed.next = next;
    other.coarsening = &timed;
    other.csr_transpose = transpose;
    c->ctx->backend = &other;
    all = set_up(c);
    all = set_up(c);
    for (int s = 0; s < OTHERS; s++) {
        printf("  %-12s %8.3f ms\n", name[s], 1e3 * spent[s]);
        sum += spent[s];
    }
    printf("  %-12s %8.3f ms\n", "others", 1e3 * (all - sum));
    sps_precond_destroy(&c->M);
    c->ctx->backend = backend;
}

/* Prints the least of three whole solves with 16 columns from a csr in device
 * memory: operator, solver with multigrid, iterations, verification. */
static void time_whole(amg_case *c)
{
    sps_context *ctx = c->ctx;
    double least[3] = { INFINITY, 0, 0 };
    sps_result r = { .struct_size = sizeof r };
    sps_csr *A = NULL;
    sps_block *B = fixture_block(ctx, c->A->nrow, c->k, NULL, 0);

    OK(ctx, spsi_csr_upload(ctx, c->A, &A));
    OK(ctx, sps_block_random(B, 3));
    for (int t = 0; t < 3; t++) {
        sps_operator *op = NULL;
        sps_solver *s = NULL;
        sps_block *X = fixture_block(ctx, c->A->nrow, c->k, NULL, 0);
        double begin = now(ctx), made, built, solved;

        OK(ctx, sps_operator_csr(ctx, A, c->k, NULL, &op));
        made = now(ctx);
        OK(ctx, sps_solver_create(op, NULL, c->k, &c->opt, &s));
        built = now(ctx);
        OK(ctx, sps_solver_linear(s, B, X, &r));
        solved = now(ctx);
        if (solved - begin < least[0] + least[1] + least[2]) {
            least[0] = made - begin;
            least[1] = built - made;
            least[2] = solved - built;
        }
        sps_solver_destroy(&s);
        sps_operator_destroy(&op);
        sps_block_destroy(&X);
    }
    printf("  whole %.3f ms: operator %.3f, solver with its set-up %.3f, solve "
           "%.3f; %d iterations, %s, residual %.1e\n",
           1e3 * (least[0] + least[1] + least[2]), 1e3 * least[0],
           1e3 * least[1], 1e3 * least[2], r.iterations,
           sps_stop_string(r.stop), r.worst_residual);
    sps_block_destroy(&B);
    sps_csr_destroy(ctx, &A);
}

static void time_line(const char *line)
{
    const bool bare = !strncmp(line, "-bare ", 6);
    amg_case c;
    double first, second, update;

    amg_open_in(&c, SPS_CUDA, line + (bare ? 6 : 0), 4, 16);
    if (bare) c.opt.coords = NULL;
    context = c.ctx;
    backend = c.ctx->backend;
    real = backend->coarsening;
    first = set_up(&c);
    printf("%s: %d levels, complexity %.3f\n", line,
           ((const amg *)c.M)->levels, amg_complexity((const amg *)c.M));
    time_stages(&c);
    second = set_up(&c);
    update = now(c.ctx);
    OK(c.ctx, sps_precond_update(c.M));
    update = now(c.ctx) - update;
    printf("  set-up %.3f ms, the first one %.3f; new values %.3f ms\n",
           1e3 * second, 1e3 * first, 1e3 * update);
    sps_precond_destroy(&c.M);
    time_whole(&c);
    fflush(stdout);
    amg_close(&c);
}

static const char *const *lines;
static int line_count;

START_TEST(the_stages_take_their_time)
{
    for (int i = 0; i < line_count; i++) time_line(lines[i]);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *s = suite_create("time_amg");
    TCase *tc = tcase_create("time_amg");
    SRunner *r;
    int failed;

    lines = (const char *const *)argv + 1;
    line_count = argc - 1;
    tcase_add_test(tc, the_stages_take_their_time);
    tcase_set_timeout(tc, 0);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
