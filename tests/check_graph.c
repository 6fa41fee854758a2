/* SPDX-License-Identifier: BSD-3-Clause */
/* check_graph.c - what is built from graphs and nodes: Laplacians by exact
 * whole numbers, rigid motions by their defining property. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "backend.h"
#include "block.h"
#include "fixture.h"
#include "runner.h"

static sps_context *ctx;

/* A host csr from triplets, sorted and summed by sps_csr_check unless raw. */
static sps_csr *make(int64_t n, int count, const int *at, const double *w)
{
    sps_csr *A = NULL;
    int64_t p = 0;

    OK(ctx, sps_csr_create(ctx, n, n, count, SPS_F64, &A));
    for (int64_t i = 0; i < n; i++) {
        for (int e = 0; e < count; e++)
            if (at[2 * e] == i) {
                A->col[p] = at[2 * e + 1];
                ((double *)A->val)[p++] = w[e];
            }
        A->rowptr[i + 1] = p;
    }
    return A;
}

static double entry(const sps_csr *A, int64_t i, int64_t j)
{
    double sum = 0;

    for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
        if (A->col[p] == j) sum += spsi_csr_value(A, p);
    return sum;
}

static bool said(const char *words)
{
    const char *note;

    for (int i = 0; (note = sps_context_note(ctx, i)); i++)
        if (strstr(note, words)) return true;
    return false;
}

/* -------------------------------------------------------------- Laplacians */

/* 0-1 both ways, 1->2 one way, 2-3 with 5 and 7, a loop at 1, duplicates 3-0
 * in an unsorted row, 4 alone, 5 with a loop only, 6-7 apart. */
START_TEST(weights_directions_loops_and_duplicates)
{
    ctx = fixture_open();
    static const int at[] = {0, 1, 1, 0, 1, 1, 1, 2, 2, 3, 3, 2, 3, 0,
                             3, 0, 5, 5, 6, 7, 7, 6};
    static const double w[] = {2, 2, 9, 3, 5, 7, 1, 2, 4, 1, 1};
    sps_laplacian_info info = {.struct_size = sizeof info};
    sps_csr *A = make(8, 11, at, w), *L = NULL;

    OK(ctx, sps_csr_laplacian(ctx, A, &info, &L));
    ck_assert_int_eq(info.vertices, 8);
    ck_assert_int_eq(info.edges, 5);
    ck_assert_int_eq(info.components, 4);
    ck_assert_int_eq(info.isolated, 2);
    ck_assert_int_eq(info.loops, 2);
    ck_assert_int_eq(info.one_way, 3);
    ck_assert_int_eq(L->nnz, 8 + 2 * 5);
    ck_assert(L->props & SPS_SYMMETRIC);
    ck_assert(entry(L, 0, 1) == -2 && entry(L, 1, 2) == -3);
    ck_assert(entry(L, 2, 1) == -3 && entry(L, 2, 3) == -7);
    ck_assert(entry(L, 0, 3) == -3 && entry(L, 3, 0) == -3);
    ck_assert(entry(L, 1, 1) == 5 && entry(L, 3, 3) == 10);
    for (int64_t i = 0; i < 8; i++) {
        double sum = 0;

        for (int64_t p = L->rowptr[i]; p < L->rowptr[i + 1]; p++) {
            sum += spsi_csr_value(L, p);
            if (p > L->rowptr[i]) ck_assert(L->col[p] > L->col[p - 1]);
        }
        ck_assert(sum == 0);
        ck_assert_int_eq(L->rowptr[i + 1] - L->rowptr[i] >= 1, 1);
    }
    ck_assert(said("direction is dropped") && said("2 self-loops"));
    sps_csr_destroy(ctx, &A);
    sps_csr_destroy(ctx, &L);
    fixture_close(&ctx);
}
END_TEST

/* What is symmetric stays so, and nothing is said. */
START_TEST(symmetric_weights_stay)
{
    ctx = fixture_open();
    static const int at[] = {0, 2, 2, 0, 1, 2, 2, 1};
    static const double w[] = {0.1, 0.1, 0.7, 0.7};
    sps_laplacian_info info = {.struct_size = sizeof info};
    sps_csr *A = make(3, 4, at, w), *L = NULL;

    OK(ctx, sps_csr_laplacian(ctx, A, &info, &L));
    ck_assert_int_eq(info.one_way, 0);
    ck_assert_int_eq(info.components, 1);
    ck_assert(entry(L, 0, 2) == -0.1 && entry(L, 2, 2) == 0.1 + 0.7);
    ck_assert_ptr_null(sps_context_note(ctx, 0));
    sps_csr_destroy(ctx, &A);
    sps_csr_destroy(ctx, &L);
    fixture_close(&ctx);
}
END_TEST

/* An entry 0 is no edge; single precision weights are taken. */
START_TEST(zeros_are_no_edges)
{
    ctx = fixture_open();
    sps_laplacian_info info = {.struct_size = sizeof info};
    int64_t ptr[] = {0, 1, 3, 4};
    int32_t col[] = {1, 0, 2, 1};
    float w[] = {1, 1, 0, 0};
    sps_csr *A = NULL, *L = NULL;

    OK(ctx, sps_csr_wrap(ctx, 3, 3, 4, ptr, col, w, SPS_F32, SPS_HOST,
                         SPS_BORROW, &A));
    OK(ctx, sps_csr_laplacian(ctx, A, &info, &L));
    ck_assert_int_eq(info.edges, 1);
    ck_assert_int_eq(info.components, 2);
    ck_assert_int_eq(L->nnz, 5);
    sps_csr_destroy(ctx, &A);
    sps_csr_destroy(ctx, &L);
    fixture_close(&ctx);
}
END_TEST

static void refused(double w01, double w10, sps_status code, const char *says)
{
    static const int at[] = {0, 1, 1, 0};
    const double w[] = {w01, w10};
    sps_csr *A = make(2, 2, at, w), *L = NULL;

    ck_assert_int_eq(sps_csr_laplacian(ctx, A, NULL, &L), code);
    ck_assert_ptr_null(L);
    ck_assert_msg(strstr(sps_context_error(ctx), says), "%s",
                  sps_context_error(ctx));
    sps_csr_destroy(ctx, &A);
}

START_TEST(weights_that_are_none_are_refused)
{
    ctx = fixture_open();
    sps_csr *A = NULL, *L = NULL;
    sps_laplacian_info info = {.struct_size = 1};

    refused(1, -1, SPS_EMATRIX, "row 2, column 1 is -1");
    refused(-2, 1, SPS_EMATRIX, "row 1, column 2 is -2");
    refused(NAN, 1, SPS_EMATRIX, "not finite");
    refused(INFINITY, 1, SPS_EMATRIX, "not finite");
    OK(ctx, sps_csr_create(ctx, 2, 3, 0, SPS_F64, &A));
    ck_assert_int_eq(sps_csr_laplacian(ctx, A, NULL, &L), SPS_ESHAPE);
    ck_assert_int_eq(sps_csr_laplacian(ctx, A, &info, &L), SPS_EINVAL);
    ck_assert_int_eq(sps_csr_laplacian(ctx, NULL, NULL, &L), SPS_EINVAL);
    ck_assert_int_eq(sps_csr_laplacian(ctx, A, NULL, NULL), SPS_EINVAL);
    ck_assert_int_eq(sps_csr_laplacian(NULL, A, NULL, &L), SPS_EINVAL);
    sps_csr_destroy(ctx, &A);
    OK(ctx, sps_csr_create(ctx, 0, 0, 0, SPS_F64, &A));
    OK(ctx, sps_csr_laplacian(ctx, A, NULL, &L));
    ck_assert_int_eq(L->nrow, 0);
    sps_csr_destroy(ctx, &A);
    sps_csr_destroy(ctx, &L);
    fixture_close(&ctx);
}
END_TEST

/* ----------------------------------------------------------- rigid motions */

static sps_block *points(int64_t m, int d, const double *x)
{
    sps_block *C = NULL;

    OK(ctx, sps_block_create(ctx, m, d, &C));
    OK(ctx, sps_block_set(C, 0, d, x, d, SPS_ROW_MAJOR, SPS_HOST));
    return C;
}

/* The motions of the nodes x: orthonormal, and no distance changes to first
 * order: (x_i - x_j).(u_i - u_j) = 0. */
static void check_motions(int64_t m, int d, const double *x, int want)
{
    sps_block *C = points(m, d, x), *R = NULL;
    double r[6 * 60];
    int64_t n;
    int q;

    OK(ctx, sps_block_rigid_body(C, &R));
    sps_block_shape(R, &n, &q);
    ck_assert_int_eq(n, m * d);
    ck_assert_int_eq(q, want);
    OK(ctx, sps_block_get(R, 0, q, r, n, SPS_COL_MAJOR, SPS_HOST));
    for (int a = 0; a < q; a++)
        for (int b = 0; b <= a; b++) {
            double sum = 0;

            for (int64_t i = 0; i < n; i++) sum += r[a * n + i] * r[b * n + i];
            ck_assert_double_eq_tol(sum, a == b, 1e-14);
        }
    for (int a = 0; a < q; a++)
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < i; j++) {
                double sum = 0, size = 0;

                for (int c = 0; c < d; c++) {
                    const double e = x[i * d + c] - x[j * d + c];

                    sum += e * (r[a * n + i * d + c] - r[a * n + j * d + c]);
                    size += fabs(e);
                }
                ck_assert_double_le(fabs(sum), 1e-13 * size);
            }
    sps_block_destroy(&C);
    sps_block_destroy(&R);
}

START_TEST(motions_change_no_distance)
{
    ctx = fixture_open();
    static const double tetra[] = {0, 0, 0, 3, 0, 0, 0, 2, 0, 1, 1, 5};
    static const double plate[] = {0, 0, 2, 0, 0, 1, 2, 1.5};
    static const double flat[] = {0, 0, 7, 1, 0, 7, 0, 1, 7, 2, 3, 7};
    double far[12];

    check_motions(4, 3, tetra, 6);
    check_motions(4, 3, flat, 6);
    check_motions(4, 2, plate, 3);
    for (int i = 0; i < 12; i++) far[i] = 1e6 + 1e-3 * tetra[i];
    check_motions(4, 3, far, 6);
    fixture_close(&ctx);
}
END_TEST

START_TEST(nodes_on_a_line_lose_a_rotation)
{
    ctx = fixture_open();
    double line[3 * 20];
    static const double one[] = {1, 2, 3};

    for (int i = 0; i < 20; i++)
        for (int c = 0; c < 3; c++) line[3 * i + c] = 0.3 * (c + 1) * i + c;
    check_motions(20, 3, line, 5);
    ck_assert(said("5 rigid motions instead of 6"));
    check_motions(20, 2, line, 3);
    check_motions(1, 3, one, 3);
    check_motions(1, 2, one, 2);
    fixture_close(&ctx);
}
END_TEST

/* -------------------------------------------------- eigenvalues beside them */

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

/* All eigenvalues of A x = l M x that the null space leaves, by lobpcg. */
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

/* L of a path and of the complete graph, n I - 1 1', share the constant: the
 * pencil has the eigenvalues 4 sin^2(pi j / 2 n) / n of the rest. */
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

/* A - t M of such a pencil is singular for every t, so that no inertia tells
 * how many eigenvalues lie below: nothing is missed, and nobody says so. */
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

/* A chain of 60 springs whose node 20 is held by one of 1e30: two chains of 20
 * and 39 nodes with fixed ends, 4 sin^2(pi j / 2 (m + 1)), and lambda below
 * eps ||A|| for every pair. */
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

START_TEST(bad_coordinates_are_refused)
{
    ctx = fixture_open();
    static const double x[] = {0, 1, 2, NAN, 4, 5};
    sps_block *C = points(2, 3, x), *W = points(6, 1, x), *R = NULL;

    ck_assert_int_eq(sps_block_rigid_body(C, &R), SPS_EINVAL);
    ck_assert(strstr(sps_context_error(ctx), "coordinate 1 of node 2"));
    ck_assert_int_eq(sps_block_rigid_body(W, &R), SPS_ESHAPE);
    ck_assert_int_eq(sps_block_rigid_body(NULL, &R), SPS_EINVAL);
    ck_assert_int_eq(sps_block_rigid_body(C, NULL), SPS_EINVAL);
    ck_assert_ptr_null(R);
    sps_block_destroy(&C);
    sps_block_destroy(&W);
    fixture_close(&ctx);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(weights_directions_loops_and_duplicates),
    RUNNER_TEST(symmetric_weights_stay),
    RUNNER_TEST(zeros_are_no_edges),
    RUNNER_TEST(weights_that_are_none_are_refused),
    RUNNER_TEST(motions_change_no_distance),
    RUNNER_TEST(nodes_on_a_line_lose_a_rotation),
    RUNNER_TEST(rigid_motions_are_left_out_of_eigenpairs),
    RUNNER_TEST(pencils_singular_in_the_same_vector),
    RUNNER_TEST(a_count_beside_a_shared_null_vector_accuses_nobody),
    RUNNER_TEST(supports_by_penalty),
    RUNNER_TEST(bad_coordinates_are_refused),
};
RUNNER_MAIN("check_graph", tests)
