/* SPDX-License-Identifier: BSD-3-Clause */
/* check_eigen_graph.c - eigenvalues of graphs and of unsupported structures in
 * the complement of their null spaces, and with supports by penalty, compared
 * with closed forms. */
#include <math.h>

#include "tests/problems/graph_fixture.h"

/* Stiffness of bars of unit stiffness between every two of m nodes: the sum of
 * e e' for unit vectors e along the bars, m = 4. */
static sps_csr *truss(const double *x)
{
    double k[12][12] = {{0}};
    sps_csr *A = NULL;

    for (int i = 0; i < 4; i++)
        for (int j = 0; j < i; j++) {
            double e[3], length = 0;

            for (int c = 0; c < 3; c++) {
                e[c] = x[3 * i + c] - x[3 * j + c];
                length += e[c] * e[c];
            }
            for (int a = 0; a < 3; a++)
                for (int b = 0; b < 3; b++) {
                    const double v = e[a] * e[b] / length;

                    k[3 * i + a][3 * i + b] += v;
                    k[3 * j + a][3 * j + b] += v;
                    k[3 * i + a][3 * j + b] -= v;
                    k[3 * j + a][3 * i + b] -= v;
                }
        }
    OK(ctx, sps_csr_create(ctx, 12, 12, 144, SPS_F64, &A));
    for (int i = 0; i < 12; i++) {
        A->rowptr[i + 1] = 12 * (i + 1);
        for (int j = 0; j < 12; j++) {
            A->col[12 * i + j] = j;
            ((double *)A->val)[12 * i + j] = k[i][j];
        }
    }
    return A;
}

/* All nonzero eigenvalues of A x = l M x, by lobpcg. */
static void pairs(sps_csr *A, sps_csr *M, const sps_options *opt, int count,
                  int nulls, double *lambda)
{
    sps_eigen_result r = {.struct_size = sizeof r};
    sps_operator *op = NULL, *mass = NULL;
    sps_solver *s = NULL;
    sps_block *X = NULL;

    OK(ctx, sps_operator_csr(ctx, A, count, NULL, &op));
    if (M) OK(ctx, sps_operator_csr(ctx, M, count, NULL, &mass));
    OK(ctx, sps_block_create(ctx, A->nrow, count, &X));
    OK(ctx, sps_solver_create_eigen(op, mass, NULL, count, opt, &s));
    OK(ctx, sps_solver_eigen(s, X, lambda, &r));
    ck_assert_msg(r.stop > 0, "%s", sps_stop_string(r.stop));
    ck_assert_int_eq(r.nullspace, nulls);
    sps_solver_destroy(&s);
    sps_block_destroy(&X);
    sps_operator_destroy(&op);
    sps_operator_destroy(&mass);
}

/* Six bars, six rigid motions: the other six eigenvalues add up to the trace,
 * 2 for each bar; halved by a mass of 2. */
START_TEST(rigid_motions_are_left_out_of_eigenpairs)
{
    static const double x[] = {0, 0, 0, 3, 0, 0, 0, 2, 0, 1, 1, 5};
    static const int at[] = {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7,
                             8, 8, 9, 9, 10, 10, 11, 11};
    static const double two[] = {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2};
    sps_block *C = NULL, *R = NULL;
    sps_csr *A = NULL, *M = NULL;
    sps_options opt;

    ctx = fixture_open();
    C = points(4, 3, x);
    A = truss(x);
    M = make(12, 12, at, two);
    OK(ctx, sps_block_rigid_body(C, &R));
    sps_options_default(&opt);
    opt.solver = "lobpcg";
    opt.nullspace_basis = R;
    for (int massive = 0; massive < 2; massive++) {
        double lambda[6], sum = 0;

        pairs(A, massive ? M : NULL, &opt, 6, 6, lambda);
        for (int i = 0; i < 6; i++) sum += lambda[i];
        ck_assert_double_gt(lambda[0], 1e-3);
        ck_assert_double_eq_tol(sum, massive ? 6 : 12, 1e-10);
    }
    sps_block_destroy(&C);
    sps_block_destroy(&R);
    sps_csr_destroy(ctx, &A);
    sps_csr_destroy(ctx, &M);
    fixture_close(&ctx);
}
END_TEST

enum { MOST_VERTICES = 57 };

/* The Laplacians of a path and of the complete graph, n I - 1 1', share the
 * constant vector; in its complement the pencil has the eigenvalues
 * 4 sin^2(pi j / 2 n) / n. */
static void path_and_all(int n, sps_csr **path, sps_csr **all)
{
    static double w[MOST_VERTICES * MOST_VERTICES];
    static int at[2 * MOST_VERTICES * MOST_VERTICES];
    sps_csr *graph;
    int e = 0;

    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) {
            at[2 * e] = i;
            at[2 * e + 1] = j;
            w[e++] = 1;
        }
    graph = make(n, e, at, w);
    OK(ctx, sps_csr_laplacian(ctx, graph, NULL, all));
    sps_csr_destroy(ctx, &graph);
    for (e = 0; e < n - 1; e++) {
        at[2 * e] = e;
        at[2 * e + 1] = e + 1;
    }
    graph = make(n, e, at, w);
    OK(ctx, sps_csr_laplacian(ctx, graph, NULL, path));
    sps_csr_destroy(ctx, &graph);
}

static double of_path(int n, int j)
{
    return 4 * pow(sin(acos(-1) * j / (2 * n)), 2) / n;
}

START_TEST(pencils_singular_in_the_same_vector)
{
    enum { V = 8 };
    sps_csr *A = NULL, *M = NULL;
    double lambda[V - 1];
    sps_options opt;

    ctx = fixture_open();
    path_and_all(V, &A, &M);
    sps_options_default(&opt);
    opt.solver = "lobpcg";
    opt.nullspace = "components";
    pairs(A, M, &opt, V - 1, 1, lambda);
    for (int j = 1; j < V; j++)
        ck_assert_double_eq_tol(lambda[j - 1], of_path(V, j), 1e-10);
    sps_csr_destroy(ctx, &A);
    sps_csr_destroy(ctx, &M);
    fixture_close(&ctx);
}
END_TEST

/* L of a path with chords of length 5, its weights about `path` and `chord`. */
static sps_csr *chords(int n, double path, double chord)
{
    double w[2 * MOST_VERTICES];
    int at[4 * MOST_VERTICES], e = 0;
    sps_csr *graph, *L = NULL;

    for (int i = 0; i + 1 < n; i++) {
        for (int far = i + 1; far < n && far <= i + 5; far += 4) {
            at[2 * e] = i;
            at[2 * e + 1] = far;
            w[e++] = far == i + 1 ? path * (1 + 0.3 * sin(7.0 * i)) : chord;
        }
    }
    graph = make(n, e, at, w);
    OK(ctx, sps_csr_laplacian(ctx, graph, NULL, &L));
    sps_csr_destroy(ctx, &graph);
    return L;
}

/* A - t M of such a pencil is singular for every t, so that its inertia does
 * not count the eigenvalues below t: no pair may be reported as missed. */
START_TEST(a_count_beside_a_shared_null_vector_accuses_nobody)
{
    sps_options opt;

    ctx = fixture_open();
    sps_options_default(&opt);
    opt.solver = "lobpcg";
    opt.nullspace = "components";
    opt.verify_count = true;
    for (int n = 23; n <= MOST_VERTICES; n += 2)
        for (int largest = 0; largest < 2; largest++) {
            double lambda[3];
            sps_csr *A = chords(n, 1, 0.2), *M = chords(n, 3, 0.7);

            opt.which = largest ? "largest" : "smallest";
            pairs(A, M, &opt, 3, 1, lambda);
            sps_csr_destroy(ctx, &A);
            sps_csr_destroy(ctx, &M);
        }
    fixture_close(&ctx);
}
END_TEST

/* A chain of 60 springs whose node 20 is fixed by one of stiffness 1e30: two
 * chains of 20 and 39 nodes with fixed ends, lambda = 4 sin^2(pi j / 2 (m +
 * 1)), which is below eps ||A|| for every pair. */
START_TEST(supports_by_penalty)
{
    enum { NODES = 60 };
    static const int chain[4][2] = {{39, 1}, {20, 1}, {39, 2}, {39, 3}};
    int at[6 * NODES], e = 0;
    double w[3 * NODES], lambda[4];
    sps_options opt;
    sps_csr *A = NULL;

    ctx = fixture_open();
    for (int i = 0; i < NODES; i++)
        for (int j = i - 1; j <= i + 1; j++) {
            if (j < 0 || j == NODES) continue;
            at[2 * e] = i;
            at[2 * e + 1] = j;
            w[e++] = i != j ? -1 : i == 20 ? 1e30 : 2;
        }
    A = make(NODES, e, at, w);
    sps_options_default(&opt);
    opt.solver = "lobpcg";
    opt.precond = "ic0";
    pairs(A, NULL, &opt, 4, 0, lambda);
    for (int i = 0; i < 4; i++) {
        const double want = 4 * pow(sin(acos(-1) * chain[i][1] /
                                        (2 * (chain[i][0] + 1))), 2);

        ck_assert_msg(fabs(lambda[i] - want) < 1e-9, "%g, not %g", lambda[i],
                      want);
    }
    sps_csr_destroy(ctx, &A);
    fixture_close(&ctx);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(rigid_motions_are_left_out_of_eigenpairs),
    RUNNER_TEST(pencils_singular_in_the_same_vector),
    RUNNER_TEST(a_count_beside_a_shared_null_vector_accuses_nobody),
    RUNNER_TEST(supports_by_penalty),
};
RUNNER_MAIN("check_eigen_graph", tests)
