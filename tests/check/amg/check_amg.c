/* SPDX-License-Identifier: BSD-3-Clause */
/* check_amg.c - multigrid as a preconditioner: iteration counts and
 * complexities on grids, elastic bodies, singular systems and graphs. */
#include "tests/check/amg/amg_fixture.h"
#include "tests/problems/zoo.h"
#include "tests/support/runner.h"

/* Iterations of block_cg to 1e-8 with 16 columns, and entries of all levels
 * over those of A, at most. */
typedef struct limit {
    const char *line;
    int iterations, quick;    /* quick: in the small set */
    double complexity;
} limit;

static void check_limits(const limit *l, int count)
{
    for (int t = 0; t < count; t++) {
        amg_case c;
        sps_result result;

        if (runner_quick() && !l[t].quick) continue;
        amg_open(&c, l[t].line, 2, 16);
        ck_assert_msg(amg_complexity(amg_make(&c)) <= l[t].complexity,
                      "%s: complexity %g", l[t].line,
                      amg_complexity((const amg *)c.M));
        result = amg_solve(&c);
        ck_assert_msg(result.stop == SPS_STOP_CONVERGED &&
                      result.iterations <= l[t].iterations,
                      "%s: %d iterations, %s", l[t].line, result.iterations,
                      sps_stop_string(result.stop));
        ck_assert_msg(result.worst_residual <= 1e-8, "%s: %g", l[t].line,
                      result.worst_residual);
        amg_close(&c);
    }
}

START_TEST(grids_take_few_iterations)
{
    static const limit limits[] = {
        { "poisson7 16", 8, true, 1.9 },
        { "poisson7 32", 9, false, 1.9 },
        { "poisson7 48", 9, false, 1.9 },
        { "poisson7 40 30 20 -perturb 1", 9, false, 1.9 },
        { "laplace27 20 -perturb 1", 8, false, 1.3 },
        { "laplace27 20 -jump -perturb 1", 9, false, 1.4 },
        { "laplace27 32", 8, false, 1.2 },
        { "laplace27 32 -jump", 9, false, 1.3 },
        { "laplace27 16 -aniso 0.1", 13, true, 1.5 },
        { "laplace27 32 -aniso 0.1", 13, false, 1.5 },
    };

    check_limits(limits, sizeof limits / sizeof *limits);
}
END_TEST

START_TEST(elastic_bodies_take_few_iterations)
{
    static const limit limits[] = {
        { "elasticity 8", 10, true, 1.4 },
        { "elasticity 16", 12, false, 1.4 },
        { "elasticity 40 6 6", 13, false, 1.4 },
        { "elasticity 100 4 4", 16, false, 1.5 },
        { "elasticity 60 12 12", 12, false, 1.4 },
        { "elasticity 20 -jump", 13, false, 1.6 },
        { "elasticity 160 8 8", 16, false, 1.5 },
    };

    check_limits(limits, sizeof limits / sizeof *limits);
}
END_TEST

/* Eight times the unknowns, and no more iterations allowed than above. */
START_TEST(large_systems_take_no_more)
{
    static const limit limits[] = {
        { "poisson7 64", 9, false, 1.9 },
        { "laplace27 64", 8, false, 1.2 },
        { "laplace27 64 -jump", 9, false, 1.3 },
        { "laplace27 64 -aniso 0.1", 13, false, 1.5 },
        { "elasticity 32", 12, false, 1.4 },
    };

    if (runner_quick()) runner_leave_out("large systems take seconds");
    check_limits(limits, sizeof limits / sizeof *limits);
}
END_TEST

/* Iterations with 16 columns where coordinates are not given. */
static int without_coordinates(const char *line, const char *near_null)
{
    amg_case c;
    sps_result result;

    amg_open(&c, line, 2, 16);
    c.opt.coords = NULL;
    c.opt.near_null = near_null;
    (void)amg_make(&c);
    ck_assert_int_eq(((const amg *)c.M)->level[0].vectors,
                     !strcmp(near_null, "filtered") ? 6 : 3);
    result = amg_solve(&c);
    ck_assert_msg(result.stop == SPS_STOP_CONVERGED, "%s: %s", line,
                  sps_stop_string(result.stop));
    amg_close(&c);
    return result.iterations;
}

START_TEST(filtered_vectors_stand_in_for_coordinates)
{
    ck_assert_int_le(without_coordinates("elasticity 14", "filtered"), 11);
    ck_assert_int_ge(without_coordinates("elasticity 14", "auto"), 13);
    if (!runner_quick()) {
        ck_assert_int_le(without_coordinates("elasticity 24", "filtered"), 11);
        ck_assert_int_le(without_coordinates("elasticity 16", "auto"), 16);
    }
}
END_TEST

/* Rigid body modes as vectors of the caller are as good as coordinates, also
 * where the solver reorders the unknowns. */
START_TEST(vectors_of_the_caller_stand_in_for_coordinates)
{
    for (int t = 0; t < 2; t++) {
        amg_case c;
        sps_block *modes = NULL;
        sps_result result;

        amg_open(&c, "elasticity 14", 2, 16);
        OK(c.ctx, sps_block_rigid_body(c.coords, &modes));
        c.opt.coords = NULL;
        c.opt.near_null_basis = modes;
        if (t == 0) {
            ck_assert_int_eq(amg_make(&c)->level[0].vectors, 6);
        } else {
            c.opt.reorder = "rcm";
            sps_operator_destroy(&c.op);
            OK(c.ctx, sps_operator_csr(c.ctx, c.A, c.k, &c.opt, &c.op));
        }
        result = amg_solve(&c);
        ck_assert_msg(result.stop == SPS_STOP_CONVERGED &&
                      result.iterations <= 11, "%d iterations, %s",
                      result.iterations, sps_stop_string(result.stop));
        ck_assert_str_eq(result.precond, "amg");
        sps_block_destroy(&modes);
        amg_close(&c);
    }
}
END_TEST

/* Multiplies A by D from both sides, D from 1 to 16; returns the diagonal of
 * D^-1, which D A D maps to small numbers. */
static double *change_units(whole *w)
{
    const int64_t n = w->g.rows;
    double *d = malloc((size_t)n * sizeof *d);

    for (int64_t i = 0; i < n; i++)
        d[i] = ldexp(1, (int)(i % 5));
    for (int64_t i = 0; i < n; i++)
        for (int64_t p = w->rowptr[i]; p < w->rowptr[i + 1]; p++)
            w->val[p] *= d[i] * d[w->col[p]];
    for (int64_t i = 0; i < n; i++) d[i] = 1 / d[i];
    return d;
}

/* In units that change from point to point constants are no near-null vector:
 * the caller's takes as many iterations as constants do in one unit, also after
 * an update. */
START_TEST(vectors_of_the_caller_replace_constants)
{
    int iterations[2];

    for (int given = 0; given < 2; given++) {
        amg_case c;
        double *one;
        sps_block *X;

        amg_open(&c, "poisson7 24", 2, 8);
        one = change_units(&c.w);
        sps_operator_destroy(&c.op);
        OK(c.ctx, sps_operator_csr(c.ctx, c.A, c.k, NULL, &c.op));
        X = fixture_block(c.ctx, c.A->nrow, 1, one, 1);
        if (given) c.opt.near_null_basis = X;
        (void)amg_make(&c);
        OK(c.ctx, sps_precond_update(c.M));
        iterations[given] = amg_solve(&c).iterations;
        sps_block_destroy(&X);
        free(one);
        amg_close(&c);
    }
    ck_assert_msg(iterations[1] <= 9 && iterations[0] > 12,
                  "%d iterations, %d with constants", iterations[1],
                  iterations[0]);
}
END_TEST

/* Whatever the degree of the smoother, values in floats, or a matrix of
 * floats. */
START_TEST(options_change_little)
{
    static const int iterations[] = { 9, 14, 10, 9, 8 };

    for (int t = 0; t < 7; t++) {
        amg_case c;
        sps_result result;

        amg_open(&c, "poisson7 20", 2, 4);
        c.opt.degree = t < 5 ? t : 0;
        if (t == 5) c.opt.precision = "single_precond";
        if (t == 6) {
            sps_operator_destroy(&c.op);
            float *val = malloc((size_t)c.A->nnz * sizeof *val);
            for (int64_t p = 0; p < c.A->nnz; p++) val[p] = (float)c.w.val[p];
            free(c.w.val);
            c.A->val = c.w.val = (double *)(void *)val;
            c.A->dtype = SPS_F32;
            OK(c.ctx, sps_operator_csr(c.ctx, c.A, 4, NULL, &c.op));
        }
        (void)amg_make(&c);
        result = amg_solve(&c);
        ck_assert_msg(result.stop == SPS_STOP_CONVERGED &&
                      result.iterations <= iterations[t < 5 ? t : 0],
                      "run %d: %d iterations", t, result.iterations);
        amg_close(&c);
    }
}
END_TEST

/* --------------------------------------------------------- singular systems */

START_TEST(neumann_problems_take_few_iterations)
{
    static const limit limits[] = {
        { "poisson7 24 -neumann", 9, true, 1.9 },
        { "poisson7 32 -neumann", 9, false, 1.9 },
        { "laplace27 16 -neumann", 9, true, 1.3 },
        { "poisson7 8 -neumann", 8, true, 1.9 },     /* the dense level alone */
    };

    check_limits(limits, sizeof limits / sizeof *limits);
}
END_TEST

START_TEST(free_bodies_take_few_iterations)
{
    amg_case c;
    sps_block *modes = NULL;
    sps_result result;

    amg_open(&c, "elasticity 10 -free", 2, 8);
    OK(c.ctx, sps_block_rigid_body(c.coords, &modes));
    c.opt.nullspace_basis = modes;
    for (int given = 0; given < 2; given++) {
        if (given) c.opt.coords = NULL;     /* the null space alone */
        (void)amg_make(&c);
        result = amg_solve(&c);
        ck_assert_msg(result.stop > 0 && result.iterations <= 13,
                      "%d iterations, %s", result.iterations,
                      sps_stop_string(result.stop));
        ck_assert_int_eq(result.nullspace, 6);
        sps_precond_destroy(&c.M);
    }
    sps_block_destroy(&modes);
    amg_close(&c);
}
END_TEST

/* Two separate grids, and vertices without an edge: rows of zeros. */
START_TEST(graphs_of_several_components)
{
    const int64_t m = 30, n = 2 * m * m + 7;
    sps_csr *grid = zoo_matrix(zoo_find("grid5"), m * m, 5, ZOO_LAPLACIAN,
                               SPS_F64);
    amg_case c = { .ctx = fixture_open(), .k = 3 };
    sps_result result;

    OK(c.ctx, sps_csr_create(c.ctx, n, n, 2 * grid->nnz, SPS_F64, &c.A));
    for (int64_t i = 0; i < n; i++) {
        const int64_t part = i / (m * m), row = i % (m * m);
        int64_t to = c.A->rowptr[i];

        for (int64_t p = grid->rowptr[row];
             part < 2 && p < grid->rowptr[row + 1]; p++, to++) {
            c.A->col[to] = (int32_t)(grid->col[p] + part * m * m);
            ((double *)c.A->val)[to] = ((double *)grid->val)[p];
        }
        c.A->rowptr[i + 1] = to;
    }
    sps_options_default(&c.opt);
    c.opt.precond = "amg";
    c.opt.solver = "block_cg";
    OK(c.ctx, sps_operator_csr(c.ctx, c.A, c.k, NULL, &c.op));
    ck_assert_int_gt(amg_make(&c)->levels, 1);
    result = amg_solve(&c);
    ck_assert_msg(result.stop > 0 && result.iterations <= 12,
                  "%d iterations, %s", result.iterations,
                  sps_stop_string(result.stop));
    sps_precond_destroy(&c.M);
    sps_operator_destroy(&c.op);
    sps_csr_destroy(c.ctx, &c.A);
    fixture_close(&c.ctx);
    zoo_free(&grid);
}
END_TEST

/* ------------------------------------------------------------------ graphs */

/* Smoothed prolongators would fill the coarse matrices. */
START_TEST(power_laws_are_not_smoothed)
{
    amg_case c;
    const amg *m;
    sps_result result;

    amg_open(&c, "rmat 12 24 -laplacian -shift 0.01", 2, 8);
    m = amg_make(&c);
    ck_assert(!m->level[0].smoothed && !m->level[0].eliminates);
    ck_assert_double_le(amg_complexity(m), 1.5);
    result = amg_solve(&c);
    ck_assert_msg(result.stop == SPS_STOP_CONVERGED && result.iterations <= 8,
                  "%d iterations", result.iterations);
    amg_close(&c);
}
END_TEST

/* On the host; on a GPU all nodes are aggregated. */
START_TEST(nodes_of_low_degree_are_eliminated)
{
    static const limit limits[] = {
        { "rmat 13 8 -laplacian -shift 0.01", 8, true, 2.4 },
        { "rmat 13 3 -laplacian", 8, true, 2.5 },
        /* Chains: what is left has the dense inverse, and all is exact. */
        { "poisson7 1500 1 1", 2, true, 3 },
        { "poisson7 1500 1 1 -neumann", 3, true, 3 },
    };

    if (fixture_place() != SPS_HOST) runner_leave_out("on the host alone");
    for (size_t t = 0; t < sizeof limits / sizeof *limits; t++) {
        amg_case c;

        amg_open(&c, limits[t].line, 2, 16);
        ck_assert(amg_make(&c)->level[0].eliminates);
        ck_assert(amg_describes(c.M, "nodes eliminated"));
        ck_assert(fixture_noted(c.ctx, "one or two neighbours eliminated"));
        amg_close(&c);
    }
    check_limits(limits, sizeof limits / sizeof *limits);
}
END_TEST

/* Iterations with the Laplacian of a graph of the collection; 0: not there. */
static int graph_iterations(const char *name)
{
    const char *given = getenv("SPS_MATRICES"), *source = getenv("srcdir");
    sps_laplacian_info info = { .struct_size = sizeof info };
    amg_case c = { .ctx = fixture_open(), .k = 16 };
    sps_csr *graph = NULL;
    char path[600];
    sps_result result = { .stop = SPS_STOP_CONVERGED };

    snprintf(path, sizeof path, "%s%s/%s.mtx.gz",
             given ? given : source ? source : ".",
             given ? "" : "/../shared/matrices", name);
    if (access(path, R_OK) == 0) {
        OK(c.ctx, sps_csr_read(c.ctx, path, NULL, NULL, &graph));
        OK(c.ctx, sps_csr_laplacian(c.ctx, graph, &info, &c.A));
        sps_csr_destroy(c.ctx, &graph);
        sps_options_default(&c.opt);
        c.opt.precond = "amg";
        c.opt.solver = "block_cg";
        OK(c.ctx, sps_operator_csr(c.ctx, c.A, c.k, NULL, &c.op));
        (void)amg_make(&c);
        result = amg_solve(&c);
    }
    ck_assert_msg(result.stop > 0, "%s: %s", name,
                  sps_stop_string(result.stop));
    sps_precond_destroy(&c.M);
    sps_operator_destroy(&c.op);
    sps_csr_destroy(c.ctx, &c.A);
    fixture_close(&c.ctx);
    return result.iterations;
}

/* What prototypes with a K-cycle needed, one more at most. */
START_TEST(graphs_take_few_iterations)
{
    static const struct { const char *name; int iterations; } graph[] = {
        { "facebook_combined", 9 }, { "wiki-Vote", 7 }, { "ca-CondMat", 15 },
        { "astro-ph", 14 }, { "ia-wikiquote", 9 },
    };
    int found = 0;

    for (size_t t = 0; t < sizeof graph / sizeof *graph; t++) {
        const int iterations = graph_iterations(graph[t].name);

        ck_assert_msg(iterations <= graph[t].iterations, "%s: %d iterations",
                      graph[t].name, iterations);
        found += iterations > 0;
        if (runner_quick() && found) break;
    }
    if (!found) runner_skip("no graphs of the collection");
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(grids_take_few_iterations),
    RUNNER_TEST(elastic_bodies_take_few_iterations),
    RUNNER_TEST(large_systems_take_no_more),
    RUNNER_TEST(filtered_vectors_stand_in_for_coordinates),
    RUNNER_TEST(vectors_of_the_caller_stand_in_for_coordinates),
    RUNNER_TEST(vectors_of_the_caller_replace_constants),
    RUNNER_TEST(options_change_little),
    RUNNER_TEST(neumann_problems_take_few_iterations),
    RUNNER_TEST(free_bodies_take_few_iterations),
    RUNNER_TEST(graphs_of_several_components),
    RUNNER_TEST(power_laws_are_not_smoothed),
    RUNNER_TEST(nodes_of_low_degree_are_eliminated),
    RUNNER_TEST(graphs_take_few_iterations),
};
RUNNER_MAIN("amg", tests)
