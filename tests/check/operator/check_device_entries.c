/* SPDX-License-Identifier: BSD-3-Clause */
/* check_device_entries.c - the entries of a csr on a GPU are read back only by
 * what reads them on the host, and what is set up from them is equal to that of
 * the same csr on the host.
 *
 * On the host, a GPU is played by a backend that calls the host's functions. */
#include <check.h>

#include "operator/operator_matrix.h"
#include "tests/check/operator/device_csr_fixture.h"
#include "tests/problems/zoo.h"
#include "tests/support/absent.h"
#include "tests/support/apply.h"

static void same_arrays(const sps_csr *A, const sps_csr *B)
{
    const size_t offsets = (size_t)(A->nrow + 1) * sizeof *A->rowptr;

    ck_assert_int_eq(A->nnz, B->nnz);
    ck_assert(!memcmp(A->rowptr, B->rowptr, offsets));
    ck_assert(!memcmp(A->col, B->col, (size_t)A->nnz * sizeof *A->col));
    ck_assert(!memcmp(A->val, B->val, (size_t)A->nnz * sizeof(double)));
}

START_TEST(entries_arrive_when_they_are_read)
{
    sps_csr *A, *D;
    sps_operator *op;
    double *val;

    if (!on_gpu()) runner_leave_out("a csr on a GPU");
    A = zoo_matrix(zoo_find("grid7"), 400, 7, ZOO_SPD, SPS_F64);
    D = lay_down(A);
    val = A->val;
    op = operator_of(ctx, D, 4);
    OK(ctx, spsi_operator_fetch(op));
    same_arrays(op->A, A);
    for (int64_t p = 0; p < A->nnz; p++) val[p] *= 3;
    OK(ctx, ctx->backend->upload(ctx, D->val, val, (size_t)A->nnz * 8));
    OK(ctx, sps_operator_set_values(op, D->val, SPS_CUDA));
    OK(ctx, spsi_operator_fetch(op));
    same_arrays(op->A, A);
    sps_operator_destroy(&op);

    /* New values from the host before anybody has read an entry there. */
    op = operator_of(ctx, D, 4);
    for (int64_t p = 0; p < A->nnz; p++) val[p] -= 1;
    OK(ctx, sps_operator_set_values(op, val, SPS_HOST));
    ck_assert_ptr_null(op->A->rowptr);
    OK(ctx, spsi_operator_fetch(op));
    same_arrays(op->A, A);
    sps_operator_destroy(&op);
    sps_csr_destroy(ctx, &D);
    zoo_free(&A);
}
END_TEST

static double *precondition(const sps_operator *op, const char *name)
{
    double *r = zoo_block(op->n, 3, 3, 5, ZOO_RANDOM), *z = zeros(op->n * 3);
    sps_block *R = fixture_block(ctx, op->n, 3, r, 3);
    sps_block *Z = fixture_block(ctx, op->n, 3, NULL, 3);
    sps_precond *M = NULL;
    sps_options o;

    sps_options_default(&o);
    o.precond = name;
    OK(ctx, sps_precond_create(op, 3, &o, &M));
    OK(ctx, sps_precond_update(M));
    OK(ctx, sps_precond_apply(M, R, Z));
    OK(ctx, sps_block_get(Z, 0, 3, z, 3, SPS_ROW_MAJOR, SPS_HOST));
    sps_precond_destroy(&M);
    sps_block_destroy(&R);
    sps_block_destroy(&Z);
    free(r);
    return z;
}

START_TEST(preconditioners_read_the_entries_they_need)
{
    const char *name;
    sps_csr *A, *D;

    if (!on_gpu()) runner_leave_out("a csr on a GPU");
    A = zoo_matrix(zoo_find("grid7"), 1000, 7, ZOO_SPD, SPS_F64);
    A->props |= SPS_SPD;
    D = lay_down(A);
    for (int i = 0; (name = sps_list(ctx, "precond", i)); i++) {
        if (absent(name)) continue;

        sps_operator *a = operator_of(ctx, A, 3), *d = operator_of(ctx, D, 3);
        double *y = precondition(a, name), *z = precondition(d, name);

        ck_assert_msg(!memcmp(y, z, (size_t)(a->n * 3) * sizeof *y),
                      "%s: another result", name);
        free(y);
        free(z);
        sps_operator_destroy(&a);
        sps_operator_destroy(&d);
    }
    sps_csr_destroy(ctx, &D);
    zoo_free(&A);
}
END_TEST

/* Whether set-up has to look for null vectors: on the host, if a row cancels;
 * on a GPU, if all rows of a component do. */
static bool some_cancels(const sps_csr *A, double tol)
{
    sps_csr *S = zoo_copy(A);
    sps_components *c = NULL;
    bool some;

    S->props |= SPS_SYMMETRIC;         /* column sums are not looked at */
    OK(ctx, spsi_components_find(ctx, S, tol, false, &c));
    some = on_gpu() ? c->count > 0 : spsi_components_possible(ctx, A, tol);
    spsi_components_destroy(&c);
    zoo_free(&S);
    return some;
}

/* What set-up of solvers asks of rows, of every family. */
START_TEST(diagonals_and_cancelling_rows_as_on_the_host)
{
    for (int f = 0; f < zoo_count(); f++)
        for (int v = 0; v < 4; v++) {
            sps_csr *A = zoo_matrix(f, 333, 7, v < 2 ? ZOO_RANDOM
                                                     : ZOO_LAPLACIAN,
                                    v % 2 ? SPS_F32 : SPS_F64);
            sps_operator *op = operator_of(ctx, A, 1);
            double *d = zeros(A->nrow), *right = zeros(A->nrow);
            bool some;

            OK(ctx, spsi_matrix_diagonal(op, d));
            OK(ctx, spsi_backends[0]->csr_diagonal(ctx, A, right));
            ck_assert_msg(!memcmp(d, right, (size_t)A->nrow * sizeof *d),
                          "%s: another diagonal", zoo_name(f));
            for (int t = 0; t < 2 && A->nrow == A->ncol; t++) {
                const double tol = t ? 1e-12 : 0.3;

                OK(ctx, spsi_matrix_cancels(op, tol, &some));
                ck_assert_msg(some == some_cancels(A, tol),
                              "%s, tol %g: %d", zoo_name(f), tol, (int)some);
            }
            sps_operator_destroy(&op);
            zoo_free(&A);
            free(d);
            free(right);
        }
}
END_TEST

/* A with arrays on the GPU is set up for solves without them on the host. */
static void stays_there(sps_csr *A)
{
    static const char *const preconds[] = { "none", "jacobi", "chebyshev",
                                            "amg" };
    sps_csr *D;

    A->props |= SPS_SPD;
    D = lay_down(A);
    for (int i = 0; i < 4; i++) {
        sps_operator *op = operator_of(ctx, D, 4);
        sps_solver *s = NULL;
        sps_options o;

        sps_options_default(&o);
        o.solver = "block_cg";
        o.precond = preconds[i];
        OK(ctx, sps_solver_create(op, NULL, 4, &o, &s));
        ck_assert_msg(!op->A->rowptr, "%s reads entries", preconds[i]);
        sps_solver_destroy(&s);
        sps_operator_destroy(&op);
    }
    sps_csr_destroy(ctx, &D);
    zoo_free(&A);
}

/* No row cancels; all rows do but the first, as inside a domain whose boundary
 * is held. */
START_TEST(conjugate_gradients_leave_the_entries_there)
{
    sps_csr *A;

    if (!on_gpu()) runner_leave_out("a csr on a GPU");
    stays_there(zoo_matrix(zoo_find("grid7"), 1000, 7, ZOO_SPD, SPS_F64));
    A = zoo_matrix(zoo_find("grid7"), 1000, 7, ZOO_LAPLACIAN, SPS_F64);
    for (int64_t p = 0; p < A->rowptr[1]; p++)
        if (A->col[p] == 0) ((double *)A->val)[p] += 1;
    stays_there(A);
}
END_TEST

/* X and the iterations of a solve with these options. */
static double *solve(sps_csr *A, const sps_options *o, int *iterations)
{
    sps_operator *op = NULL;
    sps_solver *s = NULL;
    sps_result result = { .struct_size = sizeof result };
    double *b = zoo_block(A->nrow, 4, 4, 5, ZOO_RANDOM);
    double *x = zeros(A->nrow * 4);
    sps_block *B = fixture_block(ctx, A->nrow, 4, b, 4);
    sps_block *X = fixture_block(ctx, A->nrow, 4, x, 4);

    OK(ctx, sps_operator_csr(ctx, A, 4, o, &op));
    OK(ctx, sps_solver_create(op, NULL, 4, o, &s));
    OK(ctx, sps_solver_linear(s, B, X, &result));
    ck_assert_int_eq(result.stop, SPS_STOP_CONVERGED);
    *iterations = result.iterations;
    OK(ctx, sps_block_get(X, 0, 4, x, 4, SPS_ROW_MAJOR, SPS_HOST));
    sps_solver_destroy(&s);
    sps_operator_destroy(&op);
    sps_block_destroy(&B);
    sps_block_destroy(&X);
    free(b);
    return x;
}

START_TEST(solves_go_the_same_way)
{
    static const char *const what[][4] = {   /* solver, precond, reorder,
                                                nullspace */
        { "auto", "auto", "none", "auto" }, { "block_cg", "jacobi", "rcm",
        "none" }, { "gmres", "ilu0", "none", "auto" },
    };
    sps_csr *A, *D;

    if (!on_gpu()) runner_leave_out("a csr on a GPU");
    A = zoo_matrix(zoo_find("grid7"), 1000, 7, ZOO_SPD, SPS_F64);
    D = lay_down(A);
    for (size_t i = 0; i < sizeof what / sizeof *what; i++) {
        sps_options o;
        double *x, *y;
        int a, d;

        sps_options_default(&o);
        o.solver = what[i][0];
        o.precond = what[i][1];
        o.reorder = what[i][2];
        o.nullspace = what[i][3];
        x = solve(A, &o, &a);
        y = solve(D, &o, &d);
        ck_assert_int_eq(a, d);
        ck_assert_msg(!memcmp(x, y, (size_t)A->nrow * 4 * sizeof *x),
                      "%s: another solution", o.solver);
        free(x);
        free(y);
    }
    sps_csr_destroy(ctx, &D);
    zoo_free(&A);
}
END_TEST

/* Rows out of order, and columns out of range: as from the host. */
START_TEST(rows_that_are_not_sorted_pass_through_the_host)
{
    int64_t rowptr[] = { 0, 3, 4 };
    int32_t col[] = { 1, 0, 1, 0 }, wrong[] = { 0, 1, 0, 7 };
    double val[] = { 1, 2, 3, 4 }, x[] = { 10, 1 }, y[2] = { 0 };
    sps_csr *A = NULL, *D;
    sps_operator *op = NULL;

    if (!on_gpu()) runner_leave_out("a csr on a GPU");
    OK(ctx, sps_csr_wrap(ctx, 2, 2, 4, rowptr, col, val, SPS_F64, SPS_HOST,
                         SPS_BORROW, &A));
    D = lay_down(A);
    op = operator_of(ctx, D, 1);
    ck_assert_int_eq(op->A->nnz, 3);
    apply(op, 1.0, x, 0.0, y, 1);
    ck_assert_double_eq(y[0], 24);
    ck_assert_double_eq(y[1], 40);
    sps_operator_destroy(&op);
    sps_csr_destroy(ctx, &D);
    A->col = wrong;
    D = lay_down(A);
    ck_assert_int_eq(sps_operator_csr(ctx, D, 1, NULL, &op), SPS_EMATRIX);
    ck_assert_msg(strstr(sps_context_error(ctx), "column 7 is outside"), "%s",
                  sps_context_error(ctx));
    sps_csr_destroy(ctx, &D);
    sps_csr_destroy(ctx, &A);
}
END_TEST

/* -------------------------------------------------- a GPU that is the host */

static int downloads, checks;

static sps_status play_download(sps_context *c, void *to, const void *from,
                                size_t bytes)
{
    (void)c;
    downloads++;
    memcpy(to, from, bytes);
    return SPS_OK;
}

static sps_status play_inspect(sps_context *c, const sps_csr *A, int64_t *bad,
                               bool *sorted)
{
    checks++;
    *bad = -1;
    return spsi_csr_inspect(c, A, sorted);
}

static sps_status play_narrow(sps_context *c, const int64_t *wide, int64_t n,
                              int32_t *narrow)
{
    (void)c;
    for (int64_t i = 0; i < n; i++) narrow[i] = (int32_t)wide[i];
    return SPS_OK;
}

/* The context and A now are as of a GPU; returns the context's own backend. */
static const sps_backend *play(sps_backend *played, sps_csr *A)
{
    const sps_backend *real = ctx->backend;

    *played = *real;
    played->place = A->place = SPS_CUDA;
    played->download = play_download;
    played->csr_inspect = play_inspect;
    played->csr_narrow = play_narrow;
    ctx->backend = played;
    return real;
}

/* Wisdom knows a matrix by its entries, which a rounded operator of a csr in
 * device memory has not got: those of A serve. */
START_TEST(rounded_operators_have_the_wisdom_of_the_entries)
{
    const uint64_t none = 0;
    sps_backend played;
    const sps_backend *real;
    sps_csr *A = zoo_matrix(zoo_find("grid7"), 400, 7, ZOO_SPD, SPS_F64);
    sps_operator *op = NULL, *single = NULL;
    sps_options opt;
    uint64_t right;

    if (on_gpu()) runner_leave_out("the host plays a GPU");
    right = spsi_features_hash(ctx, A);
    sps_options_default(&opt);
    real = play(&played, A);
    OK(ctx, spsi_operator_new(ctx, &op));
    OK(ctx, spsi_operator_take_csr(op, A));
    op->width = 4;
    for (int wanted = 0; wanted < 2; wanted++) {
        opt.wisdom = wanted ? "/nowhere/wisdom" : NULL;
        OK(ctx, spsi_operator_single_of(op, &opt, &single));
        ck_assert_uint_eq(single->f.hash, wanted ? right : none);
        sps_operator_destroy(&single);
    }
    sps_operator_destroy(&op);
    ctx->backend = real;
    A->place = SPS_HOST;
    zoo_free(&A);
}
END_TEST

START_TEST(nothing_is_downloaded_before_somebody_reads_it)
{
    sps_backend played;
    const sps_backend *real;
    sps_csr *A = zoo_matrix(zoo_find("grid7"), 400, 7, ZOO_SPD, SPS_F64);
    sps_operator *op = NULL;
    double *val = A->val, first = val[0];

    if (on_gpu()) runner_leave_out("the host plays a GPU");
    real = play(&played, A);
    downloads = checks = 0;
    OK(ctx, spsi_operator_new(ctx, &op));
    OK(ctx, spsi_operator_take_csr(op, A));
    ck_assert_int_eq(checks, 1);
    ck_assert_int_eq(downloads, 0);
    ck_assert(op->A != A && !op->A->rowptr && op->A->props & SPS_SORTED);
    ck_assert_ptr_eq(op->local.col, A->col);
    for (int64_t i = 0; i <= A->nrow; i++)
        ck_assert_int_eq(op->local.rowptr32[i], A->rowptr[i]);
    for (int turn = 0; turn < 2; turn++) {
        OK(ctx, spsi_operator_fetch(op));
        ck_assert_int_eq(downloads, 3);
        same_arrays(A, op->A);
    }
    val[0] = -first;
    op->cache->stale = true;                   /* as after set_values */
    OK(ctx, spsi_operator_fetch(op));
    ck_assert_int_eq(downloads, 4);
    same_arrays(A, op->A);
    sps_operator_destroy(&op);
    ctx->backend = real;
    A->place = SPS_HOST;
    zoo_free(&A);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(entries_arrive_when_they_are_read),
    RUNNER_TEST(preconditioners_read_the_entries_they_need),
    RUNNER_TEST(diagonals_and_cancelling_rows_as_on_the_host),
    RUNNER_TEST(conjugate_gradients_leave_the_entries_there),
    RUNNER_TEST(solves_go_the_same_way),
    RUNNER_TEST(rows_that_are_not_sorted_pass_through_the_host),
    RUNNER_TEST(rounded_operators_have_the_wisdom_of_the_entries),
    RUNNER_TEST(nothing_is_downloaded_before_somebody_reads_it),
};
RUNNER_MAIN_WITHIN("entries of a csr there", tests, open_context, close_context)
