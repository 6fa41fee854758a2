/* SPDX-License-Identifier: BSD-3-Clause */
/* api_brutal.c - every public call with 0, 1, 2, ... allocations allowed, until
 * it succeeds: each failure returns its status and a text, creates nothing,
 * leaks nothing, and the next attempt works.  On a GPU the same with device
 * memory. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/absent.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/runner.h"
#include "tests/support/least.h"
#include "spsolve.h"

enum { N = 40, K = 5 };

static fail_alloc host = {.allowed = -1}, device = {.allowed = -1};
static sps_context *ctx;

static sps_context_options brutal_options(void)
{
    sps_context_options o;

    sps_context_options_default(&o);
    o.place = runner_place();
    o.threads = 2;
    o.host = fail_alloc_host(&host);
    if (o.place == SPS_CUDA) o.gpu = fail_alloc_device(&device);
    return o;
}

static void setup(void)
{
    sps_context_options o = brutal_options();
    const char *error;

    ck_assert_msg(sps_context_create(&o, &ctx, &error) == SPS_OK, "%s", error);
}

static void teardown(void)
{
    sps_context_destroy(&ctx);
    ck_assert_int_eq(host.live, 0);
    ck_assert_int_eq(device.live, 0);
    ck_assert_int_eq(host.mismatches, 0);
    ck_assert_int_eq(device.mismatches, 0);
}

static int64_t handles(void)
{
    sps_context_info info = {.struct_size = sizeof info};

    ck_assert_int_eq(sps_context_information(ctx, &info), SPS_OK);
    return info.live_objects;
}

typedef struct state {
    int64_t handles;
    long blocks, device_blocks;
    size_t bytes, device_bytes;
} state;

static state now(void)
{
    return (state){handles(), host.live, device.live, host.bytes,
                   device.bytes};
}

static void same_state(state a, const char *call, long n)
{
    state b = now();

    ck_assert_msg(a.handles == b.handles, "%s, %ld allowed: %ld handles more",
                  call, n, (long)(b.handles - a.handles));
    ck_assert_msg(a.blocks == b.blocks && a.bytes == b.bytes,
                  "%s, %ld allowed: %ld blocks, %ld bytes leaked", call, n,
                  b.blocks - a.blocks, (long)(b.bytes - a.bytes));
    ck_assert_msg(a.device_blocks == b.device_blocks &&
                  a.device_bytes == b.device_bytes,
                  "%s, %ld allowed: %ld device blocks leaked", call, n,
                  b.device_blocks - a.device_blocks);
}

/* KEEPS: a failed call may keep what the next one will use (scratch of the
 * context, memory for values).  SPARES: it may succeed with less memory, as a
 * planner does that falls back to the next kernel. */
enum { STRICT = 0, KEEPS = 1, SPARES = 2 };

/* Allows f 0, 1, 2, ... allocations; `undo` reverts a success. */
#define BRUTAL_WITH(f, code, mode, call, undo)                                 \
    for (long n_ = 0;; n_++) {                                                 \
        state before_ = now();                                                 \
        sps_status st_;                                                        \
        bool fired_;                                                           \
        ck_assert_int_lt(n_, 10000);                                           \
        fail_alloc_allow(f, n_);                                               \
        st_ = (call);                                                          \
        fired_ = (f)->fired;                                                   \
        fail_alloc_allow(f, -1);                                               \
        if (st_ == SPS_OK) undo;                                               \
        if (!fired_) {                                                         \
            ck_assert_msg(st_ == SPS_OK, "%s: %s", #call,                      \
                          sps_context_error(ctx));                             \
            break;                                                             \
        }                                                                      \
        ck_assert_msg(st_ == (code) || ((mode) & SPARES && st_ == SPS_OK),     \
                      "%s, %ld allowed: \"%s\", %s", #call, n_,                \
                      sps_status_string(st_), sps_context_error(ctx));         \
        if (st_ != SPS_OK) ck_assert_str_ne(sps_context_error(ctx), "");       \
        if (!((mode) & KEEPS)) same_state(before_, #call, n_);                 \
        ck_assert_int_eq((int)handles(), (int)before_.handles);                \
    }

#define BRUTAL_MODE(mode, call, undo)                                          \
    do {                                                                       \
        BRUTAL_WITH(&host, SPS_ENOMEM, mode, call, undo)                       \
        BRUTAL_WITH(&device, SPS_EDEVMEM, (mode) | SPARES, call, undo)         \
    } while (0)

/* The first round fills the context's caches, the second must leave the amount
 * of memory unchanged. */
#define BRUTAL(call, undo)                                                     \
    do {                                                                       \
        BRUTAL_MODE(KEEPS, call, undo);                                        \
        BRUTAL_MODE(STRICT, call, undo);                                       \
    } while (0)

/* auto leaves out a method for which memory is lacking and takes the next one,
 * and amg ends by a note, which is left out then: they may succeed. */
#define BRUTAL_NAMED(name, call, undo)                                         \
    do {                                                                       \
        const bool may_ = !strcmp(name, "auto") || !strcmp(name, "amg");       \
        const int spares_ = may_ ? SPARES : 0;                                 \
                                                                               \
        BRUTAL_MODE(KEEPS | spares_, call, undo);                              \
        BRUTAL_MODE(STRICT | spares_, call, undo);                             \
    } while (0)

#define GOOD(call)                                                             \
    ck_assert_msg((call) == SPS_OK, "%s: %s", #call, sps_context_error(ctx))

/* Tridiagonal; shuffled: rows unsorted, with a duplicate. */
static sps_csr *matrix(bool shuffled)
{
    sps_csr *A = NULL;
    double *v;
    int64_t p = 0;

    GOOD(sps_csr_create(ctx, N, N, 4 * N, SPS_F64, &A));
    v = A->val;
    for (int i = 0; i < N; i++) {
        for (int j = i + 1; j >= i - 1; j--)
            if (j >= 0 && j < N) {
                A->col[p] = j;
                v[p++] = i == j ? 4 : -1;
            }
        if (shuffled) {
            A->col[p] = i;
            v[p++] = 1;
        }
        A->rowptr[i + 1] = p;
    }
    A->nnz = p;
    if (!shuffled) GOOD(sps_csr_check(ctx, A));
    return A;
}

START_TEST(context)
{
    sps_context_options o = brutal_options();
    sps_context *made = NULL;
    sps_status st = SPS_ENOMEM;
    long live = host.live;

    for (long n = 0; st != SPS_OK; n++) {
        const char *error = NULL;

        ck_assert_int_lt(n, 1000);
        fail_alloc_allow(&host, n);
        st = sps_context_create(&o, &made, &error);
        ck_assert(st == SPS_OK ? !host.fired : st == SPS_ENOMEM && *error);
        if (st != SPS_OK) ck_assert_int_eq(host.live, live);
    }
    fail_alloc_allow(&host, -1);
    sps_context_destroy(&made);
    ck_assert_int_eq(host.live, live);
}
END_TEST

START_TEST(csr)
{
    sps_csr *A = matrix(false), *made = NULL, *mixed;
    bool symmetric;

    BRUTAL(sps_csr_create(ctx, N, N, N, SPS_F64, &made),
           sps_csr_destroy(ctx, &made));
    BRUTAL(sps_csr_wrap(ctx, N, N, A->nnz, A->rowptr, A->col, A->val, SPS_F64,
                        SPS_HOST, SPS_COPY, &made),
           sps_csr_destroy(ctx, &made));
    BRUTAL(sps_csr_wrap(ctx, N, N, A->nnz, A->rowptr, A->col, A->val, SPS_F64,
                        SPS_HOST, SPS_BORROW, &made),
           sps_csr_destroy(ctx, &made));
    BRUTAL(sps_csr_symmetric(ctx, A, 0, &symmetric, NULL), (void)0);
    BRUTAL(sps_csr_multiply(ctx, A, A, &made), sps_csr_destroy(ctx, &made));
    BRUTAL(sps_csr_transpose(ctx, A, &made), sps_csr_destroy(ctx, &made));
    GOOD(sps_csr_check(ctx, mixed = matrix(true))); /* issues a note */
    sps_csr_destroy(ctx, &mixed);
    mixed = matrix(true);
    BRUTAL_MODE(STRICT, sps_csr_multiply(ctx, mixed, A, &made),
                sps_csr_destroy(ctx, &made));
    BRUTAL_MODE(STRICT, sps_csr_check(ctx, mixed), (void)0);
    ck_assert_int_eq((int)mixed->nnz, (int)A->nnz);
    sps_csr_destroy(ctx, &mixed);
    sps_csr_destroy(ctx, &A);
}
END_TEST

START_TEST(graphs_and_structures)
{
    sps_laplacian_info info = {.struct_size = sizeof info};
    sps_csr *A = matrix(false), *made = NULL;
    sps_block *nodes = NULL, *R = NULL;
    double *v = A->val;

    for (int64_t p = 0; p < A->nnz; p++) v[p] = v[p] < 0;
    BRUTAL(sps_csr_laplacian(ctx, A, &info, &made),
           sps_csr_destroy(ctx, &made));
    GOOD(sps_block_create(ctx, N, 3, &nodes));
    GOOD(sps_block_random(nodes, 1));
    BRUTAL(sps_block_rigid_body(nodes, &R), sps_block_destroy(&R));
    sps_block_destroy(&nodes);
    sps_csr_destroy(ctx, &A);
}
END_TEST

START_TEST(files)
{
    static const char *const suffix[] = {"", ".gz"};
    sps_csr *A = matrix(false), *read = NULL;
    sps_block *X = NULL, *Y = NULL;
    char path[] = "/tmp/spsolve-brutal-XXXXXX", name[64];
    int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    close(fd);
    GOOD(sps_block_create(ctx, N, K, &X));
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%s%s", path, suffix[i]);
        BRUTAL(sps_csr_write(ctx, name, A, i == 1), (void)0);
        BRUTAL(sps_csr_read(ctx, name, NULL, NULL, &read),
               sps_csr_destroy(ctx, &read));
        BRUTAL(sps_block_write(X, name, false), (void)0);
        BRUTAL(sps_block_read(ctx, name, NULL, false, &Y),
               sps_block_destroy(&Y));
        unlink(name);
    }
    unlink(path);
    sps_block_destroy(&X);
    sps_csr_destroy(ctx, &A);
}
END_TEST

START_TEST(blocks)
{
    static double numbers[N * K];
    sps_block *X = NULL, *Y = NULL;

    BRUTAL(sps_block_create(ctx, N, K, &X), sps_block_destroy(&X));
    BRUTAL(sps_block_wrap(ctx, N, K, numbers, K, &X), sps_block_destroy(&X));
    GOOD(sps_block_create(ctx, N, K, &Y));
    BRUTAL(sps_block_set(Y, 1, 3, numbers, N, SPS_COL_MAJOR, SPS_HOST),
           (void)0);
    BRUTAL(sps_block_get(Y, 1, 3, numbers, N, SPS_COL_MAJOR, SPS_HOST),
           (void)0);
    BRUTAL(sps_block_random(Y, 3), (void)0);
    sps_block_destroy(&Y);
}
END_TEST

START_TEST(options)
{
    sps_options opt, *made = NULL;

    sps_options_default(&opt);
    BRUTAL_MODE(STRICT, sps_options_parse(ctx, &opt, "kernel=spmm.one"),
                (void)0);
    ck_assert_str_eq(opt.kernel, "spmm.one");
    BRUTAL_MODE(STRICT, sps_options_set(ctx, &opt, "kernel", "spmm.two"),
                (void)0);
    ck_assert_str_eq(opt.kernel, "spmm.two");
    BRUTAL(sps_options_create(ctx, &made), sps_options_destroy(ctx, &made));
}
END_TEST

static int copy(double alpha, const double *x, int64_t ldx, double beta,
                double *y, int64_t ldy, int64_t n, int k, void *stream,
                void *data)
{
    (void)stream, (void)data, (void)beta;
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < k; j++) y[i * ldy + j] = alpha * x[i * ldx + j];
    return 0;
}

static int diagonal(int64_t first, int64_t count, int64_t *rowptr, int32_t *col,
                    void *val, void *data)
{
    (void)data;
    for (int64_t i = 0; i < count; i++) {
        col[i] = (int32_t)(first + i);
        ((double *)val)[i] = 2.0;
        rowptr[i] = i;
    }
    rowptr[count] = count;
    return 0;
}

START_TEST(operators)
{
    sps_csr *A = matrix(false), *mixed = matrix(true);
    const sps_csr shape = { .nrow = N, .ncol = N, .nnz = N,
                            .struct_size = sizeof shape };
    sps_operator *op = NULL, *once = NULL;
    sps_block *X = NULL, *Y = NULL, *samples = NULL;

    GOOD(sps_operator_csr(ctx, mixed, K, NULL, &op)); /* issues a note */
    sps_operator_destroy(&op);
    BRUTAL(sps_operator_csr(ctx, A, K, NULL, &op), sps_operator_destroy(&op));
    BRUTAL(sps_operator_csr(ctx, A, 1, NULL, &op), sps_operator_destroy(&op));
    BRUTAL(sps_operator_csr(ctx, mixed, K, NULL, &op),
           sps_operator_destroy(&op));
    BRUTAL(sps_operator_user_pair(ctx, N, N, copy, copy, NULL, &op),
           sps_operator_destroy(&op));
    BRUTAL(sps_operator_user(ctx, N, copy, NULL, SPS_SPD, &op),
           sps_operator_destroy(&op));
    BRUTAL(sps_operator_rows(ctx, &shape, 1, diagonal, NULL, K, NULL, &op),
           sps_operator_destroy(&op));

    GOOD(sps_operator_csr(ctx, A, K, NULL, &once));
    GOOD(sps_block_create(ctx, N, K, &X));
    GOOD(sps_block_create(ctx, N, K, &Y));
    GOOD(sps_block_create(ctx, A->nnz, 1, &samples));
    BRUTAL(sps_operator_apply(once, 1, X, 0, Y), (void)0);
    BRUTAL(sps_operator_sample(once, 1, X, Y, false, 0,
                               sps_block_data(samples, NULL)), (void)0);
    BRUTAL(sps_operator_set_values(once, A->val, SPS_HOST), (void)0);
    sps_block_destroy(&X);
    sps_block_destroy(&Y);
    sps_block_destroy(&samples);
    sps_operator_destroy(&once);
    sps_csr_destroy(ctx, &A);
    sps_csr_destroy(ctx, &mixed);
}
END_TEST

START_TEST(measured_operators)
{
    sps_csr *A = matrix(false);
    sps_operator *op = NULL;
    sps_options opt;

    sps_options_default(&opt);
    opt.kernel = "measure";
    BRUTAL_MODE(KEEPS | SPARES, sps_operator_csr(ctx, A, K, &opt, &op),
                sps_operator_destroy(&op));
    sps_csr_destroy(ctx, &A);
}
END_TEST

START_TEST(preconds)
{
    sps_csr *A = matrix(false);
    sps_operator *op = NULL;
    sps_precond *M = NULL;
    sps_block *X = NULL, *Y = NULL;
    sps_options opt;

    GOOD(sps_operator_csr(ctx, A, K, NULL, &op));
    GOOD(sps_block_create(ctx, N, K, &X));
    GOOD(sps_block_create(ctx, N, K, &Y));
    sps_options_default(&opt);
    for (int i = 0; (opt.precond = sps_list(ctx, "precond", i)); i++) {
        if (absent(opt.precond)) continue;
        BRUTAL_NAMED(opt.precond, sps_precond_create(op, K, &opt, &M),
                     sps_precond_destroy(&M));
        GOOD(sps_precond_create(op, K, &opt, &M));
        BRUTAL(sps_precond_apply(M, X, Y), (void)0);
        BRUTAL(sps_precond_update(M), (void)0);
        sps_precond_destroy(&M);
    }
    BRUTAL(sps_precond_user(ctx, N, copy, NULL, &M), sps_precond_destroy(&M));
    sps_block_destroy(&X);
    sps_block_destroy(&Y);
    sps_operator_destroy(&op);
    sps_csr_destroy(ctx, &A);
}
END_TEST

/* 2 N x N, so that A' is a matrix of its own, with all that can be asked for. */
START_TEST(least_squares)
{
    static const char *const solvers[] = { "lsqr", "lsmr", "auto" };
    sps_csr *A = NULL;
    sps_operator *op = NULL;
    sps_solver *s = NULL;
    sps_block *B = NULL, *X = NULL;
    sps_options opt;

    GOOD(sps_csr_create(ctx, 2 * N, N, 4 * N, SPS_F64, &A));
    for (int i = 0; i < 4 * N; i++) {
        A->rowptr[i / 2 + 1] = 2 * (i / 2 + 1);
        A->col[i] = i % 2 ? N - 1 : i / 2 % (N - 1);
        ((double *)A->val)[i] = i % 5 + 1;
    }
    GOOD(sps_operator_csr(ctx, A, K, NULL, &op));
    GOOD(sps_block_create(ctx, 2 * N, K, &B));
    GOOD(sps_block_create(ctx, N, K, &X));
    GOOD(sps_block_random(B, 1));
    sps_options_default(&opt);
    opt.precond = "jacobi";
    opt.damp = 0.5;
    for (int i = 0; i < 3; i++) {
        opt.solver = solvers[i];
        GOOD(sps_solver_create(op, NULL, K, &opt, &s));   /* issues a note */
        sps_solver_destroy(&s);
        BRUTAL(sps_solver_create(op, NULL, K, &opt, &s),
               sps_solver_destroy(&s));
        GOOD(sps_solver_create(op, NULL, K, &opt, &s));
        BRUTAL(sps_solver_linear(s, B, X, NULL), (void)0);
        sps_solver_destroy(&s);
    }
    sps_block_destroy(&B);
    sps_block_destroy(&X);
    sps_operator_destroy(&op);
    sps_csr_destroy(ctx, &A);
}
END_TEST

/* What linear solvers are tried with. */
typedef struct system_of {
    sps_csr *A;
    sps_operator *op;
    sps_block *B, *X;
    sps_options opt;
} system_of;

static void open_system(system_of *t)
{
    *t = (system_of){ .A = matrix(false) };
    GOOD(sps_operator_csr(ctx, t->A, K, NULL, &t->op));
    GOOD(sps_block_create(ctx, N, K, &t->B));
    GOOD(sps_block_create(ctx, N, K, &t->X));
    GOOD(sps_block_random(t->B, 1));
    sps_options_default(&t->opt);
}

static void close_system(system_of *t)
{
    sps_block_destroy(&t->B);
    sps_block_destroy(&t->X);
    sps_operator_destroy(&t->op);
    sps_csr_destroy(ctx, &t->A);
}

START_TEST(null_spaces)
{
    static const char *const nullspaces[] = {"none", "auto"};
    sps_solver *s = NULL;
    system_of t;

    open_system(&t);
    for (int i = 0; i < 2; i++) {
        t.opt.nullspace = nullspaces[i];
        BRUTAL_NAMED(t.opt.solver,
                     sps_solver_create(t.op, NULL, K, &t.opt, &s),
                     sps_solver_destroy(&s));
    }
    close_system(&t);
}
END_TEST

/* Every fourth pair of a method and a preconditioner: the longest of all tests
 * runs in four parts side by side. */
static void pairs(int part)
{
    sps_solver *s = NULL;
    system_of t;

    open_system(&t);
    t.opt.nullspace = "none";
    for (int i = 0; (t.opt.solver = sps_list(ctx, "solver", i)); i++)
        for (int j = 0; (t.opt.precond = sps_list(ctx, "precond", j)); j++) {
            if ((i + j) % 4 != part) continue;
            if (!precond_serves(t.opt.solver, t.opt.precond)) continue;
            if (absent(t.opt.precond)) continue;
            BRUTAL_NAMED(t.opt.solver,
                         sps_solver_create(t.op, NULL, K, &t.opt, &s),
                         sps_solver_destroy(&s));
            GOOD(sps_solver_create(t.op, NULL, K, &t.opt, &s));
            BRUTAL(sps_solver_linear(s, t.B, t.X, NULL), (void)0);
            sps_solver_destroy(&s);
        }
    close_system(&t);
}

START_TEST(solvers_0) { pairs(0); } END_TEST
START_TEST(solvers_1) { pairs(1); } END_TEST
START_TEST(solvers_2) { pairs(2); } END_TEST
START_TEST(solvers_3) { pairs(3); } END_TEST

/* A tridiagonal pencil: the method, the wanted eigenvalues and the other
 * options. */
static const struct search {
    const char *solver, *which, *precond;
    bool mass, constraint, count;
} searches[] = {
    {"auto", "smallest", "auto", true, true, false},
    {"lobpcg", "smallest", "auto", false, true, true},
    {"lobpcg", "largest", "chebyshev", true, false, true},
    {"lobpcg", "nearest", "auto", true, true, false},
    {"lobpcg", "nearest", "auto", false, false, true},
    {"chebyshev_filter", "smallest", "none", false, false, false},
    {"chebyshev_filter", "nearest", "none", false, true, true},
};

START_TEST(eigensolvers)
{
    sps_csr *A = matrix(false);
    sps_operator *op = NULL, *mass = NULL;
    sps_solver *s = NULL;
    sps_block *X = NULL, *Y = NULL;
    sps_options opt;

    GOOD(sps_operator_csr(ctx, A, K, NULL, &op));
    GOOD(sps_operator_csr(ctx, A, K, NULL, &mass));
    GOOD(sps_block_create(ctx, N, K, &X));
    GOOD(sps_block_create(ctx, N, 1, &Y));
    GOOD(sps_block_random(Y, 2));
    for (size_t i = 0; i < sizeof searches / sizeof *searches; i++) {
        const struct search *t = &searches[i];
        const sps_operator *M = t->mass ? mass : NULL;

        sps_options_default(&opt);
        opt.solver = t->solver;
        opt.which = t->which;
        opt.precond = t->precond;
        opt.sigma = t->mass ? 0.9 : 3.1;
        opt.constraints = t->constraint ? Y : NULL;
        opt.verify_count = t->count;
        opt.max_iterations = 5;
        BRUTAL(sps_solver_create_eigen(op, M, NULL, K, &opt, &s),
               sps_solver_destroy(&s));
        GOOD(sps_solver_create_eigen(op, M, NULL, K, &opt, &s));
        BRUTAL(sps_solver_eigen(s, X, NULL, NULL), (void)0);
        sps_solver_destroy(&s);
    }
    sps_block_destroy(&X);
    sps_block_destroy(&Y);
    sps_operator_destroy(&op);
    sps_operator_destroy(&mass);
    sps_csr_destroy(ctx, &A);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(context),
    RUNNER_TEST(csr),
    RUNNER_TEST(graphs_and_structures),
    RUNNER_TEST(files),
    RUNNER_TEST(blocks),
    RUNNER_TEST(options),
    RUNNER_TEST(operators),
    RUNNER_TEST(measured_operators),
    RUNNER_TEST(preconds),
    RUNNER_TEST(null_spaces),
    RUNNER_TEST(solvers_0),
    RUNNER_TEST(solvers_1),
    RUNNER_TEST(solvers_2),
    RUNNER_TEST(solvers_3),
    RUNNER_TEST(least_squares),
    RUNNER_TEST(eigensolvers),
};
RUNNER_MAIN_WITHIN("api_brutal", tests, setup, teardown)
