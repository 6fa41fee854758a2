/* SPDX-License-Identifier: BSD-3-Clause */
/* check_graph.c - what is built from graphs and nodes: Laplacians with exact
 * integers, rigid body motions by their defining property. */
#include <math.h>
#include <string.h>

#include "tests/problems/graph_fixture.h"

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

/* 0-1 both ways, 1->2 one way, 2-3 with weights 5 and 7, a loop at 1,
 * duplicates of 3-0 in an unsorted row, 4 isolated, 5 with a loop only, 6-7 a
 * separate component. */
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
    ck_assert(said("direction is ignored") && said("2 self-loops"));
    sps_csr_destroy(ctx, &A);
    sps_csr_destroy(ctx, &L);
    fixture_close(&ctx);
}
END_TEST

/* A symmetric matrix is unchanged, without a note. */
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

/* An explicit zero is no edge; single precision weights are accepted. */
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

/* ------------------------------------------------------- rigid body motions */

/* The motions of the nodes x: orthonormal, and distances are unchanged to first
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
    RUNNER_TEST(bad_coordinates_are_refused),
};
RUNNER_MAIN("check_graph", tests)
