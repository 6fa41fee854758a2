/* SPDX-License-Identifier: BSD-3-Clause */
/* check_partition.c - processes that move rows between them (reorder morton and
 * metis): solutions and verdicts are those of the caller's order, on any number
 * of ranks, a product receives fewer rows, new values and a null space follow,
 * and coordinates that do not fit are refused on all ranks. */
#include <math.h>

#include "tests/processes/crew_system.h"
#include "tests/support/fixture.h"
#include "tests/support/runner.h"

enum { SIDE = 12, N = SIDE * SIDE * SIDE, K = 3 };

static const int sizes[] = { 1, 2, 3, 5, 8 };
enum { SIZES = sizeof sizes / sizeof *sizes };

typedef struct work {
    sps_csr A;                /* of the whole: rows in a random order */
    double *coords;           /* 3 for each node */
    int unknowns;             /* of a node */
    const char *how, *precond;
    double *x;                /* n x K */
    double factor;            /* of new values, or 0 */
    bool singular, across;
    int allowed;              /* allocations of rank 1 that succeed, once its
                                 blocks are made */
    int nodes_less;           /* nodes missing in the coordinates of rank 1 */
    int64_t halo;
    int iterations;
    sps_stop stop;
} work;

static crew_member member[CREW];
static double values[8 * N];
static int64_t starts[N + 1];
static int32_t columns[8 * N];

/* ------------------------------------------------------------------ systems */

static int cell(const int *at, int axis, int step)
{
    int p[3] = { at[0], at[1], at[2] };

    p[axis] += step;
    return p[axis] < 0 || p[axis] >= SIDE ? -1
         : p[0] + SIDE * (p[1] + SIDE * p[2]);
}

static int ascending(const void *a, const void *b)
{
    const int32_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* The 7-point grid, its points in a random order; singular: with the constants
 * as its null space. */
static void make_grid(work *w)
{
    static int32_t number[N], point[N];
    static double coords[3 * N];
    uint32_t state = 12345;
    int64_t q = 0;

    for (int i = 0; i < N; i++) point[i] = i;
    for (int i = N - 1; i > 0; i--) {
        state = state * 1664525u + 1013904223u;
        const int j = (int)((state >> 8) % (uint32_t)(i + 1)), t = point[i];

        point[i] = point[j];
        point[j] = t;
    }
    for (int i = 0; i < N; i++) number[point[i]] = i;
    for (int i = 0; i < N; i++) {
        const int c = point[i];
        const int at[3] = { c % SIDE, c / SIDE % SIDE, c / SIDE / SIDE };
        const int64_t begin = q;

        for (int a = 0; a < 3; a++) coords[3 * i + a] = at[a];
        columns[q++] = i;
        for (int a = 0; a < 6; a++) {
            const int next = cell(at, a / 2, a % 2 ? 1 : -1);

            if (next >= 0) columns[q++] = number[next];
        }
        qsort(columns + begin, (size_t)(q - begin), sizeof *columns, ascending);
        for (int64_t p = begin; p < q; p++)
            values[p] = columns[p] != i ? -1
                      : w->singular ? (double)(q - begin - 1) : 6;
        starts[i + 1] = q;
    }
    w->coords = coords;
    w->unknowns = 1;
    w->A = (sps_csr){ .nrow = N, .ncol = N, .nnz = q, .rowptr = starts,
                      .col = columns, .val = values, .dtype = SPS_F64,
                      .props = SPS_SYMMETRIC | (w->singular ? 0 : SPS_SPD) };
}

/* ---------------------------------------------------------------- one solve */

typedef struct parts {
    sps_csr *A;
    sps_block *B, *X, *coords, *null;
    sps_operator *op;
    sps_solver *s;
} parts;

static sps_status give(crew_member *m, parts *p, int64_t first, int64_t n)
{
    const work *w = m->data;
    const int u = w->unknowns;
    const int64_t nodes = n / u - (m->rank == 1 ? w->nodes_less : 0);
    double *ones = malloc((size_t)n * sizeof *ones);
    sps_status st = crew_rows(m, &w->A, &p->A);

    for (int64_t i = 0; i < n; i++) ones[i] = 1;
    if (!st) st = sps_block_create(m->ctx, n, K, &p->B);
    if (!st) st = sps_block_create(m->ctx, n, K, &p->X);
    if (!st) st = sps_block_random_rows(p->B, 3, first);
    if (!st) st = sps_block_create(m->ctx, nodes, 3, &p->coords);
    if (!st) st = sps_block_set(p->coords, 0, 3, w->coords + first / u * 3, 3,
                                SPS_ROW_MAJOR, SPS_HOST);
    if (!st) st = sps_block_create(m->ctx, n, 1, &p->null);
    if (!st) st = sps_block_set(p->null, 0, 1, ones, 1, SPS_ROW_MAJOR,
                                SPS_HOST);
    free(ones);
    return st;
}

static sps_status follow(const work *w, const parts *p)
{
    double *val = malloc((size_t)(p->A->nnz + 1) * sizeof *val);
    sps_status st;

    for (int64_t i = 0; i < p->A->nnz; i++)
        val[i] = w->factor * ((double *)p->A->val)[i];
    st = sps_operator_set_values(p->op, val, SPS_HOST);
    free(val);
    return st;
}

static void solve(crew_member *m)
{
    work *w = m->data;
    const int64_t first = crew_first(w->A.nrow, m->all->size, m->rank);
    const int64_t n = crew_first(w->A.nrow, m->all->size, m->rank + 1) - first;
    sps_result r = { .struct_size = sizeof r };
    parts p = { 0 };
    sps_options o;

    sps_options_default(&o);
    o.solver = "block_cg";
    o.precond = w->precond;
    o.reorder = w->how;
    o.rtol = 1e-10;
    m->st = give(m, &p, first, n);
    o.coords = p.coords;
    o.nullspace = "none";
    if (w->singular) o.nullspace_basis = p.null;
    if (m->host) fail_alloc_allow(m->host->data, w->allowed);
    if (!m->st) m->st = sps_operator_csr(m->ctx, p.A, K, &o, &p.op);
    if (!m->st && m->rank == 0)
        sps_operator_halo(p.op, &w->halo, NULL, NULL);
    if (!m->st && w->factor) m->st = follow(w, &p);
    if (!m->st) m->st = sps_solver_create(p.op, NULL, K, &o, &p.s);
    if (!m->st && w->singular) m->st = sps_solver_project(p.s, p.B);
    if (!m->st) m->st = sps_solver_linear(p.s, p.B, p.X, &r);
    if (!m->st)
        m->st = sps_block_get(p.X, 0, K, w->x + first * K, K, SPS_ROW_MAJOR,
                              SPS_HOST);
    if (m->rank == 0) w->stop = r.stop;
    if (m->rank == 0) w->iterations = r.iterations;
    if (m->st)
        strncpy(m->error, sps_context_error(m->ctx), sizeof m->error - 1);
    sps_solver_destroy(&p.s);
    sps_operator_destroy(&p.op);
    sps_block_destroy(&p.B);
    sps_block_destroy(&p.X);
    sps_block_destroy(&p.coords);
    sps_block_destroy(&p.null);
    sps_csr_destroy(m->ctx, &p.A);
}

/* Returns false if METIS is absent. */
static bool run(work *w, const char *how, int size)
{
    bool good;

    w->how = how;
    w->halo = 0;
    for (int r = 0; r < size; r++) member[r].across = w->across;
    good = crew_run(member, size, solve, w);
    ck_assert_msg(good, "%s, %d ranks: a deadlock", how, size);
    if (member[0].st == SPS_EABSENT && !strcmp(how, "metis")) return false;
    for (int r = 0; r < size; r++)
        ck_assert_msg(!member[r].st, "%s, rank %d of %d: %s", how, r, size,
                      member[r].error);
    return true;
}

static double distance(const double *x, const double *y, int64_t count)
{
    double d = 0, largest = 0;

    for (int64_t i = 0; i < count; i++) {
        d = fmax(d, fabs(x[i] - y[i]));
        largest = fmax(largest, fabs(x[i]));
    }
    return d / largest;
}

static double reference[N * K], found[N * K];

/* Solves with rows in their order and as `how` moves them; requires halos of
 * less than `fraction`. */
static void compare(work *w, const char *how, int size, double fraction)
{
    int64_t halo;

    w->x = reference;
    ck_assert(run(w, "none", size));
    ck_assert_int_eq(w->stop, SPS_STOP_CONVERGED);
    halo = w->halo;
    w->x = found;
    if (!run(w, how, size)) return;
    ck_assert_int_eq(w->stop, SPS_STOP_CONVERGED);
    ck_assert_msg(distance(reference, found, w->A.nrow * K) < 1e-7,
                  "%s, %s, %d ranks: X differs by %.1e", how, w->precond, size,
                  distance(reference, found, w->A.nrow * K));
    ck_assert_msg(size == 1 || (double)w->halo < fraction * (double)halo,
                  "%s, %d ranks: %lld rows instead of %lld", how, size,
                  (long long)w->halo, (long long)halo);
    printf("%s, %d ranks: halo %lld, in the caller's order %lld\n", how, size,
           (long long)w->halo, (long long)halo);
}

START_TEST(a_shuffled_grid_is_solved)
{
    work w = { .precond = "jacobi" };

    make_grid(&w);
    for (int i = 0; i < SIZES; i++) {
        compare(&w, "morton", sizes[i], 0.5);
        compare(&w, "metis", sizes[i], 0.5);
    }
}
END_TEST

START_TEST(new_values_follow)
{
    work w = { .precond = "jacobi", .factor = 3 };

    make_grid(&w);
    compare(&w, "morton", 3, 0.5);
    compare(&w, "metis", 5, 0.5);
}
END_TEST

START_TEST(a_null_space_follows)
{
    work w = { .precond = "jacobi", .singular = true };

    make_grid(&w);
    compare(&w, "morton", 3, 0.5);
    compare(&w, "metis", 2, 0.5);
}
END_TEST

START_TEST(multigrid_and_factors_follow)
{
    work w = { .precond = "amg" };

    make_grid(&w);
    compare(&w, "morton", 5, 0.5);
    w.precond = "ic0";
    compare(&w, "morton", 3, 0.5);
    compare(&w, "metis", 8, 0.5);
}
END_TEST

/* Morton's order does not depend on the number of ranks. */
START_TEST(bits_repeat_across_ranks)
{
    static double alone[N * K];
    work w = { .precond = "jacobi", .across = true, .x = alone };
    int iterations;

    if (runner_place() == SPS_CUDA) runner_leave_out("sums of the host");
    make_grid(&w);
    crew_unit = 6;
    ck_assert(run(&w, "morton", 1));
    iterations = w.iterations;
    w.x = found;
    for (int i = 1; i < SIZES; i++) {
        ck_assert(run(&w, "morton", sizes[i]));
        ck_assert_int_eq(w.iterations, iterations);
        ck_assert_msg(!memcmp(alone, found, sizeof found), "%d ranks: other "
                      "bits", sizes[i]);
    }
    crew_unit = 1;
}
END_TEST

START_TEST(wrong_coordinates_are_refused_on_all_ranks)
{
    work w = { .precond = "jacobi", .how = "morton", .nodes_less = 1,
               .x = found };

    make_grid(&w);
    ck_assert(crew_run(member, 3, solve, &w));
    for (int r = 0; r < 3; r++) ck_assert(member[r].st != SPS_OK);
    ck_assert_msg(strstr(member[1].error, "coords has") != NULL, "%s",
                  member[1].error);
    w.nodes_less = 0;
    w.how = "rcm";
    ck_assert(crew_run(member, 3, solve, &w));
    ck_assert_int_eq(member[0].st, SPS_EUNFIT);
}
END_TEST

/* Rank 1 of three runs out of memory at its allocations in turn. */
START_TEST(a_process_out_of_memory_ends_the_call_on_all)
{
    work w = { .precond = "jacobi", .how = "morton", .x = found };

    const int step = fixture_env("SPS_TEST_LONG") ? 1 : 13;
    fail_alloc f;

    if (runner_place() == SPS_CUDA)
        runner_leave_out("contexts on a GPU take too long");
    make_grid(&w);
    do {
        memset(&f, 0, sizeof f);
        f.allowed = -1;
        member[1].host = fail_alloc_host(&f);
        ck_assert_msg(crew_run(member, 3, solve, &w), "allocation %d: a "
                      "deadlock", w.allowed);
        for (int r = 0; r < 3; r++)
            ck_assert_msg(member[r].st == (!f.fired ? SPS_OK : r == 1
                          ? SPS_ENOMEM : SPS_EPEER), "allocation %d, rank %d: "
                          "%d, %s", w.allowed, r, (int)member[r].st,
                          member[r].error);
        ck_assert_int_eq(f.live, 0);
        w.allowed += step;
    } while (f.fired);
    ck_assert_int_gt(w.allowed, 100);
    member[1].host = NULL;
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(a_process_out_of_memory_ends_the_call_on_all),
    RUNNER_TEST(a_shuffled_grid_is_solved),
    RUNNER_TEST(new_values_follow),
    RUNNER_TEST(a_null_space_follows),
    RUNNER_TEST(multigrid_and_factors_follow),
    RUNNER_TEST(bits_repeat_across_ranks),
    RUNNER_TEST(wrong_coordinates_are_refused_on_all_ranks),
};

RUNNER_MAIN("partition", tests)
