/* SPDX-License-Identifier: BSD-3-Clause */
/* check_amg_set_up.c - the hierarchy of multigrid: the same bits for any number
 * of threads, roots, aggregates, nodes and Galerkin products, new values,
 * allocations that fail, and the text that describes it. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "solvers/amg/roots.h"
#include "tests/check/amg/amg_fixture.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/runner.h"

START_TEST(hierarchies_do_not_depend_on_threads)
{
    static const char *const line[] = {
        "poisson7 24", "laplace27 14 -jump", "elasticity 10",
        "laplace27 14 -aniso 0.1", "rmat 11 6 -laplacian -shift 0.1",
        "elasticity 9 -perturb 1",
    };
    static const int threads[] = { 1, 2, 5 };

    for (int t = 0; t < 6; t++) {
        amg_case c[3];

        for (int q = 0; q < 3; q++) {
            amg_open(&c[q], line[t], threads[q], 2);
            if (t == 5) c[q].opt.near_null = "filtered";
            (void)amg_make(&c[q]);
            ck_assert_msg(((const amg *)c[q].M)->levels > 1, "%s", line[t]);
            ck_assert_msg(amg_same((const amg *)c[0].M, (const amg *)c[q].M),
                          "%s, %d threads", line[t], threads[q]);
        }
        for (int q = 0; q < 3; q++) amg_close(&c[q]);
    }
}
END_TEST

/* Y = X, of the same shape, in another context. */
static void copy_block(const sps_block *X, sps_block *Y)
{
    double *x = malloc((size_t)(X->n * X->k) * sizeof *x);

    OK(X->ctx, sps_block_get(X, 0, X->k, x, X->k, SPS_ROW_MAJOR, SPS_HOST));
    OK(Y->ctx, sps_block_set(Y, 0, X->k, x, X->k, SPS_ROW_MAJOR, SPS_HOST));
    free(x);
}

/* What a set-up knows beside the matrix: all that there is, nothing, or vectors
 * of the caller. */
typedef enum known { ALL, BARE, VECTORS } known;

/* The hierarchy in the place of the test is that of the host, at first and with
 * new values; block: rows of a node, 0: chosen. */
static void compare_places(const char *line, int block, known given)
{
    amg_case c[2];
    sps_block *modes[2] = { NULL };
    char other[120];
    whole w;

    for (int q = 0; q < 2; q++) {
        amg_open_in(&c[q], q ? SPS_HOST : fixture_place(), line, 2, 2);
        c[q].opt.block_size = block;
        if (given == VECTORS) {
            OK(c[q].ctx, sps_block_rigid_body(c[q].coords, &modes[q]));
            if (q == 1) copy_block(modes[0], modes[1]);
            c[q].opt.near_null_basis = modes[q];
        }
        if (given != ALL) c[q].opt.coords = NULL;
        (void)amg_make(&c[q]);
    }
    ck_assert_msg(amg_same((const amg *)c[0].M, (const amg *)c[1].M),
                  "%s, nodes of %d rows", line, block);
    snprintf(other, sizeof other, "%s -perturb 9", line);
    w = make(other);
    for (int q = 0; q < 2; q++) {
        OK(c[q].ctx, sps_operator_set_values(c[q].op, w.val, SPS_HOST));
        OK(c[q].ctx, sps_precond_update(c[q].M));
    }
    ck_assert_msg(amg_same((const amg *)c[0].M, (const amg *)c[1].M),
                  "%s, nodes of %d rows, new values", line, block);
    drop(&w);
    for (int q = 0; q < 2; q++) {
        sps_block_destroy(&modes[q]);
        amg_close(&c[q]);
    }
}

typedef struct placed { const char *line; int block; known given; } placed;

static const placed places[] = {
    { "poisson7 24", 0, ALL }, { "poisson7 17 9 5", 0, ALL },
    { "laplace27 14", 0, ALL }, { "laplace27 13 -jump", 0, ALL },
    { "laplace27 14 -aniso 0.1", 0, ALL }, { "poisson7 11 -neumann", 0, ALL },
    { "laplace27 11 -neumann", 0, ALL }, { "rmat 11 16 -laplacian", 0, ALL },
    { "rmat 12 24 -laplacian -shift 0.1", 0, ALL }, { "elasticity 9", 0, ALL },
    { "elasticity 8 -jump", 0, ALL }, { "elasticity 9", 0, BARE },
    { "elasticity 9", 0, VECTORS }, { "elasticity 30 4 4", 0, ALL },
    { "poisson7 3", 0, ALL }, { "poisson7 1", 0, ALL },
    { "poisson7 350 2 1", 0, ALL }, { "laplace27 11 10 9", 2, ALL },
    { "laplace27 11 10 9", 5, ALL }, { "poisson7 13", 12, ALL },
};

/* So small that racecheck, which takes hundreds of times as long, ends. */
static const placed small_places[] = {
    { "poisson7 11", 0, ALL }, { "laplace27 10 -jump", 0, ALL },
    { "elasticity 6", 0, ALL }, { "elasticity 6", 0, BARE },
    { "rmat 10 24 -laplacian -shift 0.1", 0, ALL },
};

START_TEST(hierarchies_do_not_depend_on_the_place)
{
    for (size_t t = 0; t < sizeof places / sizeof *places; t++)
        compare_places(places[t].line, places[t].block, places[t].given);
}
END_TEST

START_TEST(small_hierarchies_do_not_depend_on_the_place)
{
    const size_t count = sizeof small_places / sizeof *small_places;

    for (size_t t = 0; t < count; t++)
        compare_places(small_places[t].line, small_places[t].block,
                       small_places[t].given);
}
END_TEST

/* The strong couplings of a level of nodes of one row, made anew. */
static amg_graph strong_of(const amg *m, int level)
{
    sps_context *ctx = m->super.ctx;
    amg_image x = amg_look(m, level);
    amg_level l = { .A = x.A, .n = x.A->nrow, .nodes = x.A->nrow,
                    .single_rows = true, .scale = x.scale };
    amg_graph g = { 0 };

    ck_assert(m->level[level].single_rows);
    l.start = malloc((size_t)(l.n + 1) * sizeof *l.start);
    for (int64_t i = 0; i <= l.n; i++) l.start[i] = i;
    OK(ctx, spsi_amg_strength(ctx, &l, &g));
    free(l.start);
    amg_forget(ctx, &x);
    return g;
}

/* Every node with a strong neighbour is in an aggregate, of two at least. */
START_TEST(aggregates_cover_the_nodes)
{
    amg_case c;
    const amg *m;

    amg_open(&c, "laplace27 20 -aniso 0.1", 2, 1);
    m = amg_make(&c);
    for (int i = 0; i + 1 < m->levels; i++) {
        const amg_level *l = &m->level[i];
        int64_t *size = calloc((size_t)l->aggregates, sizeof *size);
        int32_t *aggregate = amg_aggregates(m, i);
        amg_graph g = strong_of(m, i);

        for (int64_t v = 0; v < l->nodes; v++) {
            const int64_t strong = g.rowptr[v + 1] - g.rowptr[v];

            ck_assert_int_eq(aggregate[v] >= 0, strong > 0);
            if (strong > 0) size[aggregate[v]]++;
        }
        for (int64_t a = 0; a < l->aggregates; a++)
            ck_assert_int_ge(size[a], 2);
        spsi_amg_graph_free(c.ctx, &g);
        free(aggregate);
        free(size);
    }
    amg_close(&c);
}
END_TEST

START_TEST(coarse_matrices_are_galerkin_products)
{
    amg_case c;
    const amg *m;

    amg_open(&c, "elasticity 9 8 7", 2, 1);
    m = amg_make(&c);
    for (int i = 0; i + 1 < m->levels; i++) {
        const amg_level *l = &m->level[i];
        sps_csr *AP = NULL, *C = NULL, *D = amg_host_csr(c.ctx, l[1].A), *E;

        OK(c.ctx, spsi_matrix_multiply(c.ctx, l->A, l->P, &AP));
        OK(c.ctx, spsi_matrix_multiply(c.ctx, l->R, AP, &C));
        E = amg_host_csr(c.ctx, C);
        ck_assert(amg_same_csr(D, E));
        sps_csr_destroy(c.ctx, &D);
        sps_csr_destroy(c.ctx, &E);
        sps_csr_destroy(c.ctx, &AP);
        sps_csr_destroy(c.ctx, &C);
    }
    amg_close(&c);
}
END_TEST

/* Values D A D, D powers of four: the same aggregates, but other prolongators.
 */
static void rescale(amg_case *c, const whole *w, double *val)
{
    for (int64_t i = 0; i < w->g.rows; i++)
        for (int64_t p = w->rowptr[i]; p < w->rowptr[i + 1]; p++)
            val[p] = ldexp(w->val[p], (int)(2 * (i % 3 + w->col[p] % 3)));
    OK(c->ctx, sps_operator_set_values(c->op, val, SPS_HOST));
}

/* What new values give is what a set-up from them gives with the same
 * aggregates: with one coarse level that has been aggregated. */
START_TEST(new_values_give_the_hierarchy_of_a_set_up)
{
    static const char *const line[] = {
        "poisson7 15", "laplace27 12 -aniso 0.1", "elasticity 8",
        "rmat 11 6 -laplacian -shift 0.1", "rmat 12 24 -laplacian -shift 0.1",
    };

    for (int t = 0; t < 5; t++) {
        amg_case c, fresh;
        double *val;

        amg_open(&c, line[t], 2, 4);
        amg_open(&fresh, line[t], 2, 4);
        val = malloc((size_t)c.A->nnz * sizeof *val);
        (void)amg_make(&c);
        rescale(&c, &c.w, val);
        OK(c.ctx, sps_precond_update(c.M));
        rescale(&fresh, &fresh.w, val);
        ck_assert_msg(amg_same((const amg *)c.M, amg_make(&fresh)), "%s",
                      line[t]);
        free(val);
        amg_close(&c);
        amg_close(&fresh);
    }
}
END_TEST

/* Scaled by a power of two they are those of a fresh set-up; others are used on
 * the aggregates that exist; the first ones again give the first hierarchy. */
START_TEST(new_values_keep_aggregates)
{
    static const char *const line[] = {
        "poisson7 20", "elasticity 8", "rmat 11 6 -laplacian -shift 0.1",
    };

    for (int t = 0; t < 3; t++) {
        char perturbed[80];
        amg_case c, fresh;
        whole other;
        int32_t *aggregate, *after;
        const amg *m;
        size_t bytes;

        amg_open(&c, line[t], 2, 4);
        amg_open(&fresh, line[t], 2, 4);
        m = amg_make(&c);
        bytes = (size_t)m->level[0].nodes * sizeof *aggregate;
        aggregate = amg_aggregates(m, 0);
        snprintf(perturbed, sizeof perturbed, "%s -perturb 5", line[t]);
        other = make(perturbed);
        OK(c.ctx, sps_operator_set_values(c.op, other.val, SPS_HOST));
        OK(c.ctx, sps_precond_update(c.M));
        after = amg_aggregates(m, 0);
        ck_assert(!memcmp(aggregate, after, bytes));
        free(after);
        ck_assert_int_le(amg_solve(&c).iterations, 12);
        for (int64_t p = 0; p < c.A->nnz; p++)
            other.val[p] = fresh.w.val[p] * 16;
        OK(c.ctx, sps_operator_set_values(c.op, other.val, SPS_HOST));
        OK(c.ctx, sps_precond_update(c.M));
        OK(fresh.ctx, sps_operator_set_values(fresh.op, other.val, SPS_HOST));
        ck_assert(amg_same(m, amg_make(&fresh)));
        ck_assert_int_le(amg_solve(&c).iterations, 12);
        free(aggregate);
        drop(&other);
        amg_close(&c);
        amg_close(&fresh);
    }
}
END_TEST

/* Roots within distance 2 of node v. */
static int roots_near(const amg_graph *g, const uint64_t *t, int64_t v)
{
    bool *seen = calloc((size_t)g->n, sizeof *seen);
    int count = 0;

    seen[v] = true;
    for (int64_t p = g->rowptr[v]; p < g->rowptr[v + 1]; p++) {
        const int32_t u = g->col[p];

        seen[u] = true;
        for (int64_t q = g->rowptr[u]; q < g->rowptr[u + 1]; q++)
            seen[g->col[q]] = true;
    }
    for (int64_t u = 0; u < g->n; u++) count += seen[u] && t[u] == AMG_ROOT;
    free(seen);
    return count;
}

/* A root is alone within distance 2; a node that is none has one there. */
START_TEST(roots_are_independent_and_no_more_fit)
{
    static const char *const line[] = { "poisson7 9", "laplace27 8",
                                        "rmat 10 4 -laplacian" };

    for (int q = 0; q < 3; q++) {
        sps_context *ctx = fixture_open();
        whole w = make(line[q]);
        amg_graph g = { .n = w.g.rows, .rowptr = w.rowptr, .col = w.col };
        amg_roots_room room;
        int32_t *aggregate = malloc((size_t)g.n * sizeof *aggregate);

        room.t = malloc((size_t)g.n * sizeof *room.t);
        room.u = malloc((size_t)g.n * sizeof *room.u);
        room.open = malloc((size_t)g.n * sizeof *room.open);
        room.near = malloc((size_t)g.n * sizeof *room.near);
        for (int64_t v = 0; v < g.n; v++) {
            aggregate[v] = AMG_NONE;
            room.t[v] = 1;
        }
        OK(ctx, spsi_amg_roots(ctx, &g, aggregate, &room));
        for (int64_t v = 0; v < g.n; v++) {
            const int count = roots_near(&g, room.t, v);

            ck_assert_msg(room.t[v] == AMG_ROOT ? count == 1 : count >= 1,
                          "%s, node %d: %d", line[q], (int)v, count);
        }
        free(aggregate);
        free(room.t);
        free(room.u);
        free(room.open);
        free(room.near);
        drop(&w);
        fixture_close(&ctx);
    }
}
END_TEST

/* A grid of nodes with two coupled unknowns each: A times [2 1; 1 2]. */
static sps_csr *pairs_of(sps_context *ctx, const whole *w)
{
    sps_csr *A = NULL;
    const int64_t n = w->g.rows;
    int64_t to = 0;

    OK(ctx, sps_csr_create(ctx, 2 * n, 2 * n, 4 * w->g.nnz, SPS_F64, &A));
    for (int64_t i = 0; i < 2 * n; i++) {
        for (int64_t p = w->rowptr[i / 2]; p < w->rowptr[i / 2 + 1]; p++)
            for (int c = 0; c < 2; c++) {
                A->col[to] = 2 * w->col[p] + c;
                ((double *)A->val)[to++] = w->val[p] * (i % 2 == c ? 2 : 1);
            }
        A->rowptr[i + 1] = to;
    }
    return A;
}

START_TEST(nodes_of_several_rows_are_found)
{
    amg_case c = { .ctx = fixture_open(), .w = make("poisson7 10"), .k = 3 };

    c.A = pairs_of(c.ctx, &c.w);
    sps_options_default(&c.opt);
    c.opt.precond = "amg";
    c.opt.solver = "block_cg";
    OK(c.ctx, sps_operator_csr(c.ctx, c.A, c.k, NULL, &c.op));
    for (int size = 0; size < 3; size++) {
        const int rows = size ? size : 2;
        const amg *m;

        c.opt.block_size = size;
        m = amg_make(&c);
        ck_assert_int_eq(m->level[0].nodes, c.A->nrow / rows);
        ck_assert_int_eq(m->level[0].vectors, rows);
        if (rows == 2) ck_assert_int_le(amg_solve(&c).iterations, 13);
        sps_precond_destroy(&c.M);
    }
    amg_close(&c);
}
END_TEST

/* After values that do not fit, good ones restore the first hierarchy. */
START_TEST(an_update_may_fail_and_be_repeated)
{
    amg_case c, fresh;
    double *bad;

    amg_open(&c, "poisson7 10", 2, 2);
    amg_open(&fresh, "poisson7 10", 2, 2);
    (void)amg_make(&c);
    bad = malloc((size_t)c.A->nnz * sizeof *bad);
    for (int64_t p = 0; p < c.A->nnz; p++) bad[p] = -fresh.w.val[p];
    OK(c.ctx, sps_operator_set_values(c.op, bad, SPS_HOST));
    ck_assert_int_eq(sps_precond_update(c.M), SPS_EUNFIT);
    ck_assert(strstr(sps_context_error(c.ctx), "positive diagonal") != NULL);
    OK(c.ctx, sps_operator_set_values(c.op, fresh.w.val, SPS_HOST));
    OK(c.ctx, sps_precond_update(c.M));
    ck_assert(amg_same((const amg *)c.M, amg_make(&fresh)));
    free(bad);
    amg_close(&c);
    amg_close(&fresh);
}
END_TEST

/* ------------------------------------------------------------------- memory */

static fail_alloc host = { .allowed = -1 }, device = { .allowed = -1 };

static sps_context *failing_context(void)
{
    sps_context_options o;
    sps_context *ctx = NULL;
    const char *why = "";

    sps_context_options_default(&o);
    o.place = fixture_place();
    o.threads = 2;
    o.host = fail_alloc_host(&host);
    if (o.place == SPS_CUDA) o.gpu = fail_alloc_device(&device);
    ck_assert_msg(sps_context_create(&o, &ctx, &why) == SPS_OK, "%s", why);
    return ctx;
}

/* How many allocations the next attempt may make: one more, or in the quick form
 * a quarter more, since each attempt repeats the set-up. */
static long allow_next(long allowed)
{
    return allowed + 1 + (runner_quick() ? allowed / 4 : 0);
}

/* Builds with every allocation of f's memory failing once, which is `lack`; M is
 * made in the end. */
static void build_without(amg_case *c, fail_alloc *f, sps_status lack)
{
    sps_context_info before = { .struct_size = sizeof before }, after = before;
    sps_status st = lack;

    sps_precond_destroy(&c->M);
    for (long allowed = 0; st != SPS_OK; allowed = allow_next(allowed)) {
        OK(c->ctx, sps_context_information(c->ctx, &before));
        fail_alloc_allow(f, allowed);
        st = sps_precond_create(c->op, c->k, &c->opt, &c->M);
        fail_alloc_allow(f, -1);
        if (st == SPS_OK) break;
        ck_assert_int_eq(st, lack);
        OK(c->ctx, sps_context_information(c->ctx, &after));
        ck_assert_int_eq(after.live_objects, before.live_objects);
        ck_assert_int_lt(allowed, 5000);
    }
}

/* New values with every allocation failing once. */
static void update_without(amg_case *c, fail_alloc *f, sps_status lack)
{
    sps_status st = lack;

    for (long allowed = 0; st != SPS_OK; allowed = allow_next(allowed)) {
        fail_alloc_allow(f, allowed);
        st = sps_precond_update(c->M);
        ck_assert(st == SPS_OK || st == lack);
    }
    fail_alloc_allow(f, -1);
}

/* A cycle allocates nothing; an update that lacks memory can be repeated.
 * modes: with coordinates. */
static void fail_each_once(const char *line, const char *near_null, bool modes)
{
    amg_case c = { .ctx = failing_context(), .w = make(line), .k = 2 };
    const bool there = fixture_place() == SPS_CUDA;
    sps_block *R, *Z;

    sps_options_default(&c.opt);
    c.opt.precond = "amg";
    c.opt.near_null = near_null;
    if (modes) amg_coordinates(&c);
    c.A = amg_wrap(c.ctx, &c.w);
    OK(c.ctx, sps_operator_csr(c.ctx, c.A, c.k, NULL, &c.op));
    build_without(&c, &host, SPS_ENOMEM);
    if (there) build_without(&c, &device, SPS_EDEVMEM);
    ck_assert_int_gt(((amg *)c.M)->levels, 1);
    R = fixture_block(c.ctx, c.A->nrow, c.k, NULL, 0);
    Z = fixture_block(c.ctx, c.A->nrow, c.k, NULL, 0);
    OK(c.ctx, sps_block_random(R, 1));
    fail_alloc_allow(&host, 0);
    fail_alloc_allow(&device, 0);
    OK(c.ctx, sps_precond_apply(c.M, R, Z));
    ck_assert(!host.fired && !device.fired);
    fail_alloc_allow(&device, -1);
    update_without(&c, &host, SPS_ENOMEM);
    if (there) update_without(&c, &device, SPS_EDEVMEM);
    OK(c.ctx, sps_precond_apply(c.M, R, Z));
    sps_block_destroy(&R);
    sps_block_destroy(&Z);
    amg_close(&c);
    ck_assert_int_eq(host.live, 0);
    ck_assert_int_eq(host.mismatches, 0);
    ck_assert_int_eq(device.live, 0);
}

START_TEST(each_allocation_fails_once)
{
    fail_each_once("poisson7 10", "auto", false);
    fail_each_once("elasticity 6", "filtered", false);
    fail_each_once("elasticity 6", "auto", true);
    fail_each_once("rmat 10 4 -laplacian -shift 0.1", "auto", false);
    fail_each_once("convection 10 -velocity 60", "auto", false);
}
END_TEST

/* An update that lacks memory, wherever it ends, leaves nothing of its values
 * to the next one. */
START_TEST(an_update_that_lacks_memory_leaves_nothing)
{
    amg_case c = { .ctx = failing_context(), .w = make("poisson7 10"), .k = 2 };
    fail_alloc *f = fixture_place() == SPS_CUDA ? &device : &host;
    whole other = make("poisson7 10 -perturb 9");
    sps_status st = SPS_EDEVMEM;
    amg_case fresh;

    amg_open(&fresh, "poisson7 10", 2, 2);
    sps_options_default(&c.opt);
    c.opt.precond = "amg";
    c.A = amg_wrap(c.ctx, &c.w);
    OK(c.ctx, sps_operator_csr(c.ctx, c.A, c.k, NULL, &c.op));
    (void)amg_make(&c);
    (void)amg_make(&fresh);
    for (long allowed = 0; st != SPS_OK; allowed = allow_next(allowed)) {
        OK(c.ctx, sps_operator_set_values(c.op, other.val, SPS_HOST));
        fail_alloc_allow(f, allowed);
        st = sps_precond_update(c.M);
        fail_alloc_allow(f, -1);
        OK(c.ctx, sps_operator_set_values(c.op, fresh.w.val, SPS_HOST));
        OK(c.ctx, sps_precond_update(c.M));
        ck_assert_msg(amg_same((const amg *)c.M, (const amg *)fresh.M),
                      "%ld allocations", allowed);
    }
    drop(&other);
    amg_close(&fresh);
    amg_close(&c);
}
END_TEST

START_TEST(the_hierarchy_is_described)
{
    amg_case c;

    amg_open(&c, "poisson7 10", 2, 2);
    (void)amg_make(&c);
    ck_assert(amg_describes(c.M,
                            "    0      1000        6400    6.4  degree 2"));
    ck_assert(amg_describes(c.M, "dense inverse\n"));
    ck_assert(!amg_describes(c.M, "not smoothed"));
    ck_assert(fixture_noted(c.ctx, "amg: 2 levels of 1000, "));
    ck_assert(fixture_noted(c.ctx, "of degree 2; a cycle leaves 0."));
    sps_precond_destroy(&c.M);
    c.opt.precond = "jacobi";
    OK(c.ctx, sps_precond_create(c.op, 1, &c.opt, &c.M));
    ck_assert(amg_describes(c.M, "jacobi\n"));
    amg_close(&c);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(hierarchies_do_not_depend_on_threads),
    RUNNER_TEST(hierarchies_do_not_depend_on_the_place),
    RUNNER_TEST(small_hierarchies_do_not_depend_on_the_place),
    RUNNER_TEST(roots_are_independent_and_no_more_fit),
    RUNNER_TEST(aggregates_cover_the_nodes),
    RUNNER_TEST(nodes_of_several_rows_are_found),
    RUNNER_TEST(an_update_may_fail_and_be_repeated),
    RUNNER_TEST(coarse_matrices_are_galerkin_products),
    RUNNER_TEST(new_values_keep_aggregates),
    RUNNER_TEST(new_values_give_the_hierarchy_of_a_set_up),
    RUNNER_TEST(each_allocation_fails_once),
    RUNNER_TEST(an_update_that_lacks_memory_leaves_nothing),
    RUNNER_TEST(the_hierarchy_is_described),
};
RUNNER_MAIN("amg_set_up", tests)
