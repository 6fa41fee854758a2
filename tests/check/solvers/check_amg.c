/* SPDX-License-Identifier: BSD-3-Clause */
/* check_amg.c - multigrid as a preconditioner: iteration counts and
 * complexities on grids, the cycle as a linear map and its test, singular, tiny
 * and odd systems, and what is refused. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/check/solvers/amg_fixture.h"
#include "tests/problems/zoo.h"
#include "tests/support/callback.h"
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

/* r'M z = z'M r and r'M r > 0 on several levels, for every degree; a column by
 * itself is what it is among others.  In doubles, and in floats up to their
 * rounding. */
static void try_symmetric(const char *precision, double error)
{
    enum { K = 5 };

    for (int degree = 1; degree <= 4; degree++) {
        amg_case c;
        sps_block *R = NULL, *Z = NULL, *r = NULL, *z = NULL;
        sps_small *G = NULL;
        double *many, *one;
        int64_t n;

        amg_open(&c, "poisson7 13", 2, K);
        c.opt.degree = degree;
        c.opt.precision = precision;
        ck_assert_int_gt(amg_make(&c)->levels, 1);
        n = c.A->nrow;
        many = malloc((size_t)n * K * sizeof *many);
        one = malloc((size_t)n * sizeof *one);
        R = fixture_block(c.ctx, n, K, NULL, 0);
        Z = fixture_block(c.ctx, n, K, NULL, 0);
        OK(c.ctx, sps_block_random(R, 5));
        OK(c.ctx, sps_precond_apply(c.M, R, Z));
        OK(c.ctx, spsi_small_create(c.ctx, K, K, &G));
        OK(c.ctx, spsi_gram(R, Z, G));
        for (int i = 0; i < K; i++) {
            ck_assert(*spsi_small_at(G, i, i) > 0);
            for (int j = 0; j < i; j++)
                ck_assert_double_le(fabs(*spsi_small_at(G, i, j) -
                                         *spsi_small_at(G, j, i)),
                                    error * *spsi_small_at(G, i, i));
        }
        OK(c.ctx, sps_block_get(R, 0, K, many, K, SPS_ROW_MAJOR, SPS_HOST));
        for (int64_t i = 0; i < n; i++) one[i] = many[i * K + 3];
        r = fixture_block(c.ctx, n, 1, one, 1);
        z = fixture_block(c.ctx, n, 1, NULL, 0);
        OK(c.ctx, sps_precond_apply(c.M, r, z));
        OK(c.ctx, sps_block_get(z, 0, 1, one, 1, SPS_ROW_MAJOR, SPS_HOST));
        OK(c.ctx, sps_block_get(Z, 0, K, many, K, SPS_ROW_MAJOR, SPS_HOST));
        for (int64_t i = 0; i < n; i++)
            ck_assert_double_le(fabs(one[i] - many[i * K + 3]),
                                error * (1 + fabs(one[i])));
        spsi_small_destroy(&G);
        sps_block_destroy(&R);
        sps_block_destroy(&Z);
        sps_block_destroy(&r);
        sps_block_destroy(&z);
        free(many);
        free(one);
        amg_close(&c);
    }
}

START_TEST(a_cycle_is_symmetric_and_positive)
{
    try_symmetric("double", 1e-13);
    try_symmetric("auto", 1e-6);
}
END_TEST

/* Makes all levels prolong by P and then take every smoothing step. */
static int leave_ahead(const amg *m)
{
    int had = 0;

    for (int i = 0; i + 1 < m->levels; i++) {
        amg_level *l = (amg_level *)&m->level[i];

        had += l->parts.ahead != NULL;
        sps_operator_destroy(&l->parts.ahead);
        if (!l->parts.prolong)
            OK(m->super.ctx, sps_operator_csr(m->super.ctx, l->P,
                                              m->super.width, NULL,
                                              &l->parts.prolong));
    }
    return had;
}

static double largest_of(const sps_block *X)
{
    double most[SPS_BLOCK_MAX], result = 0;

    OK(X->ctx, spsi_largest(X, most));
    for (int j = 0; j < X->k; j++) result = fmax(result, most[j]);
    return result;
}

/* Prolongation with a smoothing step in one product is both of them, for every
 * degree, also with new values. */
START_TEST(a_step_ahead_changes_nothing)
{
    static const char *const line[] = {
        "poisson7 24", "laplace27 12 -jump", "elasticity 8",
        "convection 24 -velocity 0.6",
    };

    for (int t = 0; t < 16; t++) {
        amg_case c;
        sps_block *R, *Y, *Z;

        amg_open(&c, line[t % 4], 2, 5);
        c.opt.degree = 1 + t / 4;
        c.opt.precision = "double";
        (void)amg_make(&c);
        if (t % 3 == 0) OK(c.ctx, sps_precond_update(c.M));
        R = fixture_block(c.ctx, c.A->nrow, 5, NULL, 0);
        Y = fixture_block(c.ctx, c.A->nrow, 5, NULL, 0);
        Z = fixture_block(c.ctx, c.A->nrow, 5, NULL, 0);
        OK(c.ctx, sps_block_random(R, 5));
        OK(c.ctx, sps_precond_apply(c.M, R, Y));
        ck_assert_msg(leave_ahead((const amg *)c.M) > 0, "%s", line[t % 4]);
        OK(c.ctx, sps_precond_apply(c.M, R, Z));
        OK(c.ctx, spsi_axpby(-1.0, Z, 1.0, Y));
        ck_assert_double_le(largest_of(Y), 1e-13 * largest_of(Z));
        sps_block_destroy(&R);
        sps_block_destroy(&Y);
        sps_block_destroy(&Z);
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

/* ------------------------------------------------------------ small and odd */

/* All couplings of a mass matrix are positive: there is no coarser level, and
 * more rows than are inverted. */
START_TEST(a_matrix_without_strong_couplings)
{
    char error[160] = "";
    amg_case c = { .ctx = fixture_open(), .k = 3 };
    whole grid = make("laplace27 12 -perturb 1"), mass = grid;
    sps_result result;

    mass.g.spec.mass = GEN_CONSISTENT;
    ck_assert(gen_open(&mass.g.spec, &grid.g, error));
    ck_assert_int_eq(grid.g.nnz, mass.g.nnz);
    gen_fill(&grid.g, grid.rowptr, grid.col, grid.val);
    c.w = grid;
    c.A = amg_wrap(c.ctx, &c.w);
    sps_options_default(&c.opt);
    c.opt.precond = "amg";
    c.opt.solver = "block_cg";
    OK(c.ctx, sps_operator_csr(c.ctx, c.A, c.k, NULL, &c.op));
    ck_assert_int_eq(amg_make(&c)->levels, 1);
    result = amg_solve(&c);
    ck_assert_msg(result.stop == SPS_STOP_CONVERGED && result.iterations <= 15,
                  "%d iterations", result.iterations);
    amg_close(&c);
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

/* diag(d) is solved in one iteration if its entries are equal after scaling. */
START_TEST(diagonal_and_tiny_matrices)
{
    static const int64_t rows[] = { 1, 2, 3, 599, 600, 601, 2000 };

    for (size_t t = 0; t < sizeof rows / sizeof *rows; t++) {
        const int64_t n = rows[t];
        amg_case c = { .ctx = fixture_open(), .k = 2 };
        sps_result result;

        OK(c.ctx, sps_csr_create(c.ctx, n, n, n, SPS_F64, &c.A));
        for (int64_t i = 0; i < n; i++) {
            c.A->rowptr[i + 1] = i + 1;
            c.A->col[i] = (int32_t)i;
            ((double *)c.A->val)[i] = ldexp(1 + (double)(i % 7), (int)i % 40);
        }
        sps_options_default(&c.opt);
        c.opt.precond = "amg";
        c.opt.solver = "block_cg";
        OK(c.ctx, sps_operator_csr(c.ctx, c.A, c.k, NULL, &c.op));
        ck_assert_int_eq(amg_make(&c)->levels, 1);
        result = amg_solve(&c);
        ck_assert_msg(result.stop == SPS_STOP_CONVERGED &&
                      result.iterations <= 2, "%d rows: %d iterations", (int)n,
                      result.iterations);
        sps_precond_destroy(&c.M);
        sps_operator_destroy(&c.op);
        sps_csr_destroy(c.ctx, &c.A);
        fixture_close(&c.ctx);
    }
}
END_TEST

/* The same iterations, since all is as if A were scaled to unit diagonal. */
START_TEST(units_do_not_matter)
{
    amg_case c;
    sps_result result;
    int iterations[2];

    for (int scaled = 0; scaled < 2; scaled++) {
        amg_open(&c, "poisson7 14", 2, 3);
        for (int64_t p = 0; scaled && p < c.A->nnz; p++)
            c.w.val[p] = ldexp(c.w.val[p], -400);
        sps_operator_destroy(&c.op);
        OK(c.ctx, sps_operator_csr(c.ctx, c.A, 3, NULL, &c.op));
        (void)amg_make(&c);
        result = amg_solve(&c);
        ck_assert_msg(result.stop == SPS_STOP_CONVERGED, "%s",
                      sps_stop_string(result.stop));
        iterations[scaled] = result.iterations;
        amg_close(&c);
    }
    ck_assert_int_eq(iterations[0], iterations[1]);
}
END_TEST

/* -------------------------------------------------------- test of the cycle */

/* Four cycles are left to where the rate of the first ones says little: it
 * doubles from the first to the second where couplings have a direction, and in
 * elasticity. */
START_TEST(a_steady_cycle_is_tested_twice)
{
    static const struct { const char *line; int cycles; } system[] = {
        { "poisson7 16", 2 }, { "laplace27 16 -perturb 1", 2 },
        { "poisson7 16 -neumann", 2 }, { "laplace27 16 -aniso 0.1", 4 },
        { "elasticity 8", 4 },
    };

    for (size_t t = 0; t < sizeof system / sizeof *system; t++) {
        amg_case c;

        amg_open(&c, system[t].line, 2, 4);
        ck_assert_msg(amg_make(&c)->tests == system[t].cycles,
                      "%s: %d cycles, %g", system[t].line,
                      ((const amg *)c.M)->tests, c.M->rate);
        OK(c.ctx, sps_precond_update(c.M));
        ck_assert_int_eq(((const amg *)c.M)->tests, system[t].cycles);
        amg_close(&c);
    }
}
END_TEST

/* Smoothers for a part of the spectrum: the rates of four cycles are 0.13,
 * 0.38, 0.59, 0.64 for 0.85 of it, 0.22, 0.86, 1.11, 1.19 for 0.8. */
START_TEST(a_cycle_that_grows_worse_is_tested_to_the_end)
{
    for (int t = 0; t < 2; t++) {
        amg_case c;
        amg *m;

        amg_open(&c, "poisson7 16", 2, 4);
        (void)amg_make(&c);
        m = (amg *)c.M;
        for (int i = 0; i < m->level[0].smoother.degree; i++)
            m->level[0].smoother.root[i] *= t ? 0.8 : 0.85;
        ck_assert_int_eq(spsi_amg_test(m), t ? SPS_EUNFIT : SPS_OK);
        ck_assert_int_eq(m->tests, 4);
        ck_assert_double_ge(m->super.rate, t ? 1.1 : 0.55);
        if (t)
            ck_assert_ptr_nonnull(strstr(sps_context_error(c.ctx),
                                         "does not converge"));
        amg_close(&c);
    }
}
END_TEST

/* ------------------------------------------------------------------ refused */

static int nothing(double alpha, const double *X, int64_t ldx, double beta,
                   double *Y, int64_t ldy, int64_t n, int k, void *stream,
                   void *data)
{
    (void)alpha, (void)X, (void)ldx, (void)beta, (void)Y, (void)ldy;
    (void)n, (void)k, (void)stream, (void)data;
    return 0;
}

static void refused(const amg_case *c, sps_status code, const char *words)
{
    sps_precond *M = NULL;

    ck_assert_int_eq(sps_precond_create(c->op, c->k, &c->opt, &M), code);
    ck_assert_msg(strstr(sps_context_error(c->ctx), words) != NULL, "%s",
                  sps_context_error(c->ctx));
    ck_assert_ptr_null(M);
}

START_TEST(what_does_not_fit_is_refused)
{
    static const char *const words[] = {
        "entry (8, 8) is -1", "is 0: use",
        "negative eigenvalues", "1 to 4", "is nan", "block_size",
    };

    for (int t = 0; t < 6; t++) {
        amg_case c;
        double *diagonal;

        amg_open(&c, "poisson7 10", 2, 2);
        diagonal = (double *)(uintptr_t)find(&c.w, 7, 7);
        if (t == 0) *diagonal = -1;
        if (t == 1) *diagonal = 0;
        for (int64_t i = 0; t == 2 && i < c.A->nrow; i++)
            *(double *)(uintptr_t)find(&c.w, i, i) -= 2;
        if (t == 3) c.opt.degree = 5;
        if (t == 5) c.opt.near_null = "filtered";
        if (t == 4) *diagonal = NAN;
        c.A->props = SPS_SYMMETRIC;
        sps_operator_destroy(&c.op);
        OK(c.ctx, sps_operator_csr(c.ctx, c.A, 2, NULL, &c.op));
        refused(&c, t == 3 ? SPS_EINVAL : SPS_EUNFIT, words[t]);
        amg_close(&c);
    }
}
END_TEST

START_TEST(a_callback_is_refused)
{
    amg_case c = { .ctx = fixture_open(), .k = 2 };
    callback none = { c.ctx, nothing, NULL };

    sps_options_default(&c.opt);
    c.opt.precond = "amg";
    OK(c.ctx, sps_operator_user(c.ctx, 50, callback_anywhere, &none, SPS_SPD,
                                &c.op));
    refused(&c, SPS_EUNFIT, "callback");
    sps_operator_destroy(&c.op);
    fixture_close(&c.ctx);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(grids_take_few_iterations),
    RUNNER_TEST(elastic_bodies_take_few_iterations),
    RUNNER_TEST(filtered_vectors_stand_in_for_coordinates),
    RUNNER_TEST(options_change_little),
    RUNNER_TEST(a_matrix_without_strong_couplings),
    RUNNER_TEST(a_cycle_is_symmetric_and_positive),
    RUNNER_TEST(a_step_ahead_changes_nothing),
    RUNNER_TEST(neumann_problems_take_few_iterations),
    RUNNER_TEST(free_bodies_take_few_iterations),
    RUNNER_TEST(graphs_of_several_components),
    RUNNER_TEST(power_laws_are_not_smoothed),
    RUNNER_TEST(nodes_of_low_degree_are_eliminated),
    RUNNER_TEST(graphs_take_few_iterations),
    RUNNER_TEST(diagonal_and_tiny_matrices),
    RUNNER_TEST(units_do_not_matter),
    RUNNER_TEST(a_steady_cycle_is_tested_twice),
    RUNNER_TEST(a_cycle_that_grows_worse_is_tested_to_the_end),
    RUNNER_TEST(what_does_not_fit_is_refused),
    RUNNER_TEST(a_callback_is_refused),
};
RUNNER_MAIN("amg", tests)
