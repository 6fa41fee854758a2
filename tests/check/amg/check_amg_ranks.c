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
    const double *near;       /* near_null_basis of the whole */
    int vectors;
    bool wider;               /* rank 1 has one vector more */
    const double *coords;     /* n x 3: solve reorders by them */
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
                      .gathered = GATHERED, .near = w->near,
                      .vectors = w->vectors + (w->wider && m->rank == 1) };

    sps_options_default(&c.opt);
    c.opt.solver = "block_cg";
    c.opt.precond = "amg";
    if (w->coords) c.opt.reorder = "morton";
    c.coords = w->coords;
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

/* Of 9 planes each rank has 3, and of about 3 planes of the second level one,
 * so that all of its rows are coupled to those of others. */
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

/* -------------------------------------------------- vectors of the caller */

/* Those of the solve by 2, 3 and 5 ranks are at most `more` above one rank's,
 * which must be at most `most`. */
static void takes_with_vectors(work w, const char *line, int most, int more)
{
    static const int few[] = { 1, 2, 3, 5 };

    for (int i = 0; i < 4; i++) {
        if (runner_quick() && i == 2) continue;
        all_went_well(crew_run(member, few[i], solve, &w), line, few[i]);
        ck_assert_msg(w.iterations <= most + (i ? more : 0), "%s, %d ranks: "
                      "%d iterations", line, few[i], w.iterations);
    }
}

/* Multiplies A by D from both sides, and returns the diagonal of D^-1, the
 * near-null vector of D A D. */
static double *change_units(whole *g)
{
    const int64_t n = g->g.rows;
    double *one = malloc((size_t)n * sizeof *one);

    for (int64_t i = 0; i < n; i++) {
        one[i] = ldexp(1, -(int)(i % 5));
        for (int64_t p = g->rowptr[i]; p < g->rowptr[i + 1]; p++)
            g->val[p] *= ldexp(1, (int)(i % 5) + g->col[p] % 5);
    }
    return one;
}

/* Constants are far from the near-null vector then.  With reordering rows of
 * vectors move between processes as those of A do. */
START_TEST(a_vector_of_the_caller_replaces_constants)
{
    whole g = make("poisson7 20");
    double *one = change_units(&g);
    double *at = calloc((size_t)g.g.rows * 3, sizeof *at);
    sps_csr A = wrap(&g);
    work w = { .A = &A };

    for (int size = 1; size <= 3; size += 2) {
        all_went_well(crew_run(member, size, solve, &w), "constants", size);
        ck_assert_int_gt(w.iterations, 12);
    }
    w.near = one;
    w.vectors = 1;
    takes_with_vectors(w, "vectors", 9, 1);
    for (int64_t i = 0; i < 3 * A.nrow; i++)
        at[i] = gen_coordinate(&g.g, i / 3, (int)(i % 3));
    w.coords = at;
    takes_with_vectors(w, "vectors, morton", 10, 1);
    free(one);
    free(at);
    drop(&g);
}
END_TEST

/* Translations of a node and its rotations, as rows 3 node .. + 2. */
static double *rigid_modes(whole *g)
{
    double *modes = calloc((size_t)g->g.rows * 6, sizeof *modes);

    for (int64_t i = 0; i < g->g.rows; i++) {
        const int c = (int)(i % 3), next = (c + 1) % 3, last = (c + 2) % 3;

        modes[6 * i + c] = 1;
        modes[6 * i + 3 + next] = gen_coordinate(&g->g, i / 3, last);
        modes[6 * i + 3 + last] = -gen_coordinate(&g->g, i / 3, next);
    }
    return modes;
}

START_TEST(rigid_body_modes_of_the_caller_are_as_good_as_on_one)
{
    whole g = make("elasticity 10");
    double *modes = rigid_modes(&g);
    sps_csr A = wrap(&g);
    work w = { .A = &A };

    crew_unit = 3;
    all_went_well(crew_run(member, 2, solve, &w), "constants", 2);
    ck_assert_int_ge(w.iterations, 12);
    w.near = modes;
    w.vectors = 6;
    takes_with_vectors(w, "modes", 10, 2);
    crew_unit = 1;
    free(modes);
    drop(&g);
}
END_TEST

/* All ranks fail with st; or rank 1 only, and the others know it. */
static void refuses_vectors(work w, sps_status st, bool one, const char *text)
{
    ck_assert_msg(crew_run(member, 3, solve, &w), "%s: a deadlock", text);
    for (int r = 0; r < 3; r++)
        ck_assert_msg(member[r].st == (one && r != 1 ? SPS_EPEER : st) &&
                      ((one && r != 1) || strstr(member[r].error, text)),
                      "%s, rank %d: %d, %s", text, r, (int)member[r].st,
                      member[r].error);
}

/* A near-null vector may be zero in the rows of one process, but not in those
 * of all. */
START_TEST(vectors_are_judged_by_the_rows_of_all)
{
    whole g = make("poisson7 12");
    sps_csr A = wrap(&g);
    double *X = calloc((size_t)A.nrow * 2 + 1, sizeof *X);
    work w = { .A = &A, .near = X, .vectors = 1 };

    refuses_vectors(w, SPS_EINVAL, false, "the norm of vector 1 of 1 is 0");
    w.wider = true;
    refuses_vectors(w, SPS_EUNFIT, false, "as many vectors on all processes");
    w.wider = false;
    X[A.nrow - 1] = NAN;
    refuses_vectors(w, SPS_EINVAL, false, "the norm of vector 1 of 1 is nan");
    for (int64_t i = 0; i < A.nrow; i++) X[i] = i < crew_first(A.nrow, 3, 2);
    all_went_well(crew_run(member, 3, solve, &w), "zero on one", 3);
    free(X);
    drop(&g);
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
    RUNNER_TEST(a_vector_of_the_caller_replaces_constants),
    RUNNER_TEST(rigid_body_modes_of_the_caller_are_as_good_as_on_one),
    RUNNER_TEST(vectors_are_judged_by_the_rows_of_all),
    RUNNER_TEST(a_cycle_is_symmetric_and_follows_new_values),
    RUNNER_TEST(values_far_apart_are_kept_in_double_precision_on_all),
    RUNNER_TEST(a_process_out_of_memory_ends_the_call_on_all),
};

RUNNER_MAIN("amg over processes", tests)
