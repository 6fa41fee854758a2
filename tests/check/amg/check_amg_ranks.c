/* SPDX-License-Identifier: BSD-3-Clause */
/* check_amg_ranks.c - amg of a matrix over several processes is multigrid of
 * the whole: about as many iterations as on one, a symmetric map that follows
 * new values, and a failure of one process ends the call on all. */
#include <math.h>

#include "block/block.h"
#include "driver/precond.h"
#include "tests/problems/whole.h"
#include "tests/processes/crew_system.h"
#include "tests/support/fixture.h"
#include "tests/support/runner.h"

/* Levels of more rows are spread, on GPUs as well. */
enum { K = 3, GATHERED = 2000 };

static const int sizes[] = { 2, 3, 5, 8, 16 };
enum { SIZES = sizeof sizes / sizeof *sizes };

typedef struct work {
    const sps_csr *A;
    double factor;            /* of new values, or 0 */
    const char *precision;
    bool in_doubles[CREW];    /* the cycle of a rank is in double precision */
    int allocations;          /* of rank 1 that succeed */
    int iterations, spread;   /* levels that are spread */
    double forth, back;       /* x'M y and y'M x */
    double *z;                /* n x K: M R */
} work;

static crew_member member[CREW];

static int64_t own_rows(const crew_member *m)
{
    const int64_t n = ((const work *)m->data)->A->nrow;

    return crew_first(n, m->all->size, m->rank + 1) -
           crew_first(n, m->all->size, m->rank);
}

static void all_went_well(bool good, const char *what, int size)
{
    for (int r = 0; r < size; r++)
        ck_assert_msg(!member[r].st, "%s, rank %d of %d: %s", what, r, size,
                      member[r].error);
    ck_assert_msg(good, "%s, %d ranks: a deadlock", what, size);
}

/* --------------------------------------------------------------- iterations */

static int spread_levels(const sps_context *ctx)
{
    const char *note;
    int count = 0;

    for (int i = 0; (note = sps_context_note(ctx, i)); i++)
        count += !strncmp(note, "amg: ", 5) && strstr(note, "rows over");
    return count;
}

static void solve(crew_member *m)
{
    work *w = m->data;
    crew_system c = { .A = w->A, .k = K, .allowed = w->allocations,
                      .gathered = GATHERED };

    sps_options_default(&c.opt);
    c.opt.solver = "block_cg";
    c.opt.precond = "amg";
    crew_solve(m, &c);
    if (!m->st && c.result.stop != SPS_STOP_CONVERGED) m->st = SPS_EBUG;
    if (m->rank == 0) w->iterations = c.result.iterations;
    if (m->rank == 0) w->spread = spread_levels(m->ctx);
}

static sps_csr wrap(whole *w)
{
    return (sps_csr){ .struct_size = sizeof(sps_csr), .nrow = w->g.rows,
                      .ncol = w->g.rows, .nnz = w->g.nnz, .rowptr = w->rowptr,
                      .col = w->col, .val = w->val, .dtype = SPS_F64,
                      .place = SPS_HOST,
                      .props = SPS_SYMMETRIC | SPS_SPD };
}

static void takes_about_as_many(const char *line, int more)
{
    whole g = make(line);
    sps_csr A = wrap(&g);
    work w = { .A = &A };
    int alone;

    all_went_well(crew_run(member, 1, solve, &w), line, 1);
    alone = w.iterations;
    for (int i = 0; i < SIZES; i++) {
        if (runner_quick() && i % 2) continue;
        all_went_well(crew_run(member, sizes[i], solve, &w), line, sizes[i]);
        ck_assert_msg(w.iterations <= alone + more, "%s, %d ranks: %d "
                      "iterations, alone %d", line, sizes[i], w.iterations,
                      alone);
    }
    drop(&g);
}

/* Those of 28^3 points spread two levels. */
START_TEST(iterations_grow_little_with_processes)
{
    takes_about_as_many("poisson7 12", 1);
    takes_about_as_many("poisson7 12 -aniso 10", 1);
    takes_about_as_many("laplace27 10", 1);
    /* Strong couplings are cut, on 16 ranks after each three planes. */
    takes_about_as_many("laplace27 8 8 48 -aniso 0.1", 4);
    if (!runner_quick()) takes_about_as_many("poisson7 28", 1);
}
END_TEST

/* With two levels spread. */
static void takes_at_most(const char *line, int size, int more)
{
    whole g = make(line);
    sps_csr A = wrap(&g);
    work w = { .A = &A };
    int alone;

    all_went_well(crew_run(member, 1, solve, &w), line, 1);
    alone = w.iterations;
    all_went_well(crew_run(member, size, solve, &w), line, size);
    ck_assert_msg(w.iterations <= alone + more, "%s, %d ranks: %d iterations, "
                  "alone %d", line, size, w.iterations, alone);
    ck_assert_msg(w.spread == 2, "%s, %d ranks: %d levels are spread", line,
                  size, w.spread);
    drop(&g);
}

/* Two ranks divide these rows between nodes; two levels are spread. */
START_TEST(levels_of_a_structure_are_spread)
{
    if (runner_quick()) runner_leave_out("takes seconds");
    ck_assert(crew_first(3 * 28 * 28 * 28, 2, 1) % 3 == 0);
    takes_at_most("elasticity 28", 2, 1);
}
END_TEST

/* Of 9 planes each rank has 3, and of about 3 planes of the second level one, so
 * that all of its rows are coupled to those of others. */
START_TEST(a_level_may_have_rows_at_borders_only)
{
    takes_at_most("poisson7 60 60 9", 3, 4);
}
END_TEST

/* Nothing is coupled, and so there are no aggregates. */
START_TEST(a_diagonal_matrix_has_no_coarse_level)
{
    enum { N = 700 };
    static int64_t rowptr[N + 1];
    static int32_t col[N];
    static double val[N];
    sps_csr A = { .struct_size = sizeof A, .nrow = N, .ncol = N, .nnz = N,
                  .rowptr = rowptr, .col = col, .val = val, .dtype = SPS_F64,
                  .place = SPS_HOST, .props = SPS_SYMMETRIC | SPS_SPD };
    work w = { .A = &A };

    for (int i = 0; i < N; i++) {
        rowptr[i + 1] = i + 1;
        col[i] = i;
        val[i] = 1 + i % 7;
    }
    all_went_well(crew_run(member, 3, solve, &w), "diagonal", 3);
    ck_assert_int_le(w.iterations, 3);
}
END_TEST

/* ------------------------------------------------------------------ the map */

/* The sum of all x'y over columns and ranks. */
static sps_status dots(const sps_block *X, const sps_block *Y, double *sum)
{
    double d[K];
    sps_status st = spsi_dots(X, Y, d);

    *sum = 0;
    for (int j = 0; j < K; j++) *sum += d[j];
    return st;
}

static sps_status new_values(sps_operator *op, sps_precond *M,
                             const sps_csr *own, double factor)
{
    double *val = malloc((size_t)(own->nnz + 1) * sizeof *val);
    sps_status st;

    for (int64_t p = 0; p < own->nnz; p++)
        val[p] = factor * ((const double *)own->val)[p];
    st = sps_operator_set_values(op, val, SPS_HOST);
    if (!st) st = sps_precond_update(M);
    free(val);
    return st;
}

static void apply(crew_member *m)
{
    work *w = m->data;
    const int64_t n = own_rows(m);
    const int64_t first = crew_first(w->A->nrow, m->all->size, m->rank);
    sps_csr *own = NULL;
    sps_operator *op = NULL;
    sps_precond *M = NULL;
    sps_block *X = NULL, *Y = NULL, *Z = NULL;
    sps_options opt;
    double forth = 0, back = 0;

    sps_options_default(&opt);
    opt.precond = "amg";
    opt.precision = w->precision;
    m->st = crew_rows(m, w->A, &own);
    if (!m->st) m->st = sps_operator_csr(m->ctx, own, K, &opt, &op);
    if (!m->st && op->ranks) op->ranks->gathered = GATHERED;
    if (!m->st) m->st = sps_block_create(m->ctx, n, K, &X);
    if (!m->st) m->st = sps_block_create(m->ctx, n, K, &Y);
    if (!m->st) m->st = sps_block_create(m->ctx, n, K, &Z);
    if (!m->st) m->st = sps_block_random(X, 5);
    if (!m->st) m->st = sps_block_random(Y, 6);
    if (!m->st) m->st = sps_precond_create(op, K, &opt, &M);
    if (!m->st) w->in_doubles[m->rank] = M->roundoff == 0;
    if (!m->st && w->factor > 0)
        m->st = new_values(op, M, own, w->factor);
    if (!m->st) m->st = sps_precond_apply(M, Y, Z);
    if (!m->st) m->st = dots(X, Z, &forth);
    if (!m->st) m->st = sps_precond_apply(M, X, Z);
    if (!m->st) m->st = dots(Y, Z, &back);
    if (!m->st)
        m->st = sps_block_get(Z, 0, K, w->z + first * K, K, SPS_ROW_MAJOR,
                              SPS_HOST);
    if (m->rank == 0) w->forth = forth;
    if (m->rank == 0) w->back = back;
    sps_precond_destroy(&M);
    sps_operator_destroy(&op);
    sps_block_destroy(&X);
    sps_block_destroy(&Y);
    sps_block_destroy(&Z);
    if (m->st)
        strncpy(m->error, sps_context_error(m->ctx), sizeof m->error - 1);
    sps_csr_destroy(m->ctx, &own);
}

static void is_symmetric_and_follows(const char *line, int ranks,
                                     const char *precision)
{
    const bool single = strcmp(precision, "double") != 0;
    const double close = single ? 2e-6 : 1e-12;
    whole g = make(line);
    sps_csr A = wrap(&g);
    double *z = calloc((size_t)(A.nrow * K), sizeof *z);
    double *after = calloc((size_t)(A.nrow * K), sizeof *z), big = 0;
    work w = { .A = &A, .z = z, .precision = precision };
    work again = { .A = &A, .z = after, .precision = precision, .factor = 4 };

    all_went_well(crew_run(member, ranks, apply, &w), "apply", ranks);
    for (int r = 0; r < ranks; r++) ck_assert(w.in_doubles[r] == !single);
    ck_assert_msg(fabs(w.forth - w.back) <= close * fabs(w.forth),
                  "%.17g %.17g", w.forth, w.back);
    all_went_well(crew_run(member, ranks, apply, &again), "new values", ranks);
    for (int64_t i = 0; i < A.nrow * K; i++) big = fmax(big, fabs(z[i]));
    for (int64_t i = 0; i < A.nrow * K; i++)
        ck_assert_msg(fabs(z[i] - 4 * after[i]) <= close * big, "%d: %.17g "
                      "%.17g", (int)i, z[i], 4 * after[i]);
    free(z);
    free(after);
    drop(&g);
}

/* The second level of 28^3 points is spread as well.  The filter
 * drops couplings of the flat elements, between processes as well. */
START_TEST(a_cycle_is_symmetric_and_follows_new_values)
{
    is_symmetric_and_follows("poisson7 12", 3, "double");
    is_symmetric_and_follows("poisson7 28", 8, "double");
    is_symmetric_and_follows("laplace27 12 -aniso 0.1", 5, "double");
    is_symmetric_and_follows("poisson7 28", 5, "auto");
}
END_TEST

/* Diagonal entries of the last rank are 1e-22 times those of others. */
START_TEST(values_far_apart_are_kept_in_double_precision_on_all)
{
    whole g = make("poisson7 12");
    sps_csr A = wrap(&g);
    double *val = g.val, *z = calloc((size_t)(A.nrow * K), sizeof *z);
    const int64_t first = crew_first(A.nrow, 3, 2);
    work w = { .A = &A, .z = z, .precision = "auto" };

    for (int64_t i = 0; i < A.nrow; i++)
        for (int64_t p = A.rowptr[i]; p < A.rowptr[i + 1]; p++)
            val[p] *= (i < first ? 1 : 1e-11) * (A.col[p] < first ? 1 : 1e-11);
    all_went_well(crew_run(member, 3, apply, &w), "far apart", 3);
    for (int r = 0; r < 3; r++) ck_assert(w.in_doubles[r]);
    ck_assert_msg(fabs(w.forth - w.back) <= 1e-9 * fabs(w.forth),
                  "%.17g %.17g", w.forth, w.back);
    free(z);
    drop(&g);
}
END_TEST

/* ----------------------------------------------------------------- failures */

/* Rank 1 of three runs out of memory at its allocations in turn. */
START_TEST(a_process_out_of_memory_ends_the_call_on_all)
{
    whole g = make("poisson7 9");
    sps_csr A = wrap(&g);
    work w = { .A = &A };
    const int step = fixture_env("SPS_TEST_LONG") ? 1 : 19;
    fail_alloc f;

    if (runner_place() == SPS_CUDA)
        runner_leave_out("contexts on a GPU take too long");
    do {
        memset(&f, 0, sizeof f);
        f.allowed = -1;
        member[1].host = fail_alloc_host(&f);
        ck_assert_msg(crew_run(member, 3, solve, &w), "allocation %d: a "
                      "deadlock", w.allocations);
        for (int r = 0; r < 3; r++)
            ck_assert_msg(member[r].st == (!f.fired ? SPS_OK : r == 1
                          ? SPS_ENOMEM : SPS_EPEER), "allocation %d, rank %d: "
                          "%d, %s", w.allocations, r, (int)member[r].st,
                          member[r].error);
        ck_assert_int_eq(f.live, 0);
        w.allocations += step;
    } while (f.fired);
    ck_assert_int_gt(w.allocations, 100);
    member[1].host = NULL;
    drop(&g);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(iterations_grow_little_with_processes),
    RUNNER_TEST(levels_of_a_structure_are_spread),
    RUNNER_TEST(a_level_may_have_rows_at_borders_only),
    RUNNER_TEST(a_diagonal_matrix_has_no_coarse_level),
    RUNNER_TEST(a_cycle_is_symmetric_and_follows_new_values),
    RUNNER_TEST(values_far_apart_are_kept_in_double_precision_on_all),
    RUNNER_TEST(a_process_out_of_memory_ends_the_call_on_all),
};

RUNNER_MAIN("amg over processes", tests)
