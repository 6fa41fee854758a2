/* SPDX-License-Identifier: BSD-3-Clause */
/* check_abi.c - structs of callers compiled against other versions: shorter
 * ones, longer ones, and a program built against the header of 0.1. */
#include "tests/api/client_0_1.h"
#include "tests/support/fixture.h"
#include "tests/support/runner.h"

enum { N = 20, K = 2 };

static sps_context *ctx;
static sps_csr *A;
static sps_operator *op;

static void open_all(void)
{
    sps_context_options o;

    sps_context_options_default(&o);
    o.place = SPS_HOST;
    OK(NULL, sps_context_create(&o, &ctx, NULL));
    OK(ctx, sps_csr_create(ctx, N, N, N, SPS_F64, &A));
    for (int i = 0; i < N; i++) {
        A->col[i] = i;
        ((double *)A->val)[i] = i + 1;
        A->rowptr[i + 1] = i + 1;
    }
    A->props = SPS_SYMMETRIC | SPS_SPD;
    OK(ctx, sps_operator_csr(ctx, A, K, NULL, &op));
}

static void close_all(void)
{
    sps_operator_destroy(&op);
    sps_csr_destroy(ctx, &A);
    sps_context_destroy(&ctx);
}

/* A struct of any type, with space for members of a later version. */
typedef union any {
    size_t struct_size;
    sps_options options;
    sps_context_options context;
    sps_read_options read;
    sps_read_info read_info;
    sps_context_info info;
    sps_laplacian_info laplacian;
    sps_result result;
    sps_eigen_result eigen;
    sps_comm_calls calls;
    unsigned char bytes[1024];
} any;

enum { OPTIONS, CONTEXT, READ, READ_INFO, INFO, LAPLACIAN, RESULT, EIGEN,
       CALLS, KINDS };

static const struct { const char *name; size_t size; } kinds[KINDS] = {
    {"sps_options", sizeof(sps_options)},
    {"sps_context_options", sizeof(sps_context_options)},
    {"sps_read_options", sizeof(sps_read_options)},
    {"sps_read_info", sizeof(sps_read_info)},
    {"sps_context_info", sizeof(sps_context_info)},
    {"sps_laplacian_info", sizeof(sps_laplacian_info)},
    {"sps_result", sizeof(sps_result)},
    {"sps_eigen_result", sizeof(sps_eigen_result)},
    {"sps_comm_calls", sizeof(sps_comm_calls)},
};

static int add(double *values, int count, void *data)
{
    (void)values, (void)count, (void)data;
    return 0;
}

/* The values that a caller sets in the struct: defaults, or none. */
static any prepare(int kind)
{
    any a;

    memset(&a, 0, sizeof a);
    switch (kind) {
    case OPTIONS: sps_options_default(&a.options); break;
    case CONTEXT:
        sps_context_options_default(&a.context);
        a.context.place = SPS_HOST;
        break;
    case CALLS: a.calls.sum = add; break;
    }
    a.struct_size = kinds[kind].size;
    return a;
}

static sps_status try_solver(any *a)
{
    sps_solver *s = NULL;
    sps_block *B = NULL, *X = NULL;
    sps_status st;

    OK(ctx, sps_solver_create(op, NULL, K, NULL, &s));
    OK(ctx, sps_block_create(ctx, N, K, &B));
    OK(ctx, sps_block_create(ctx, N, K, &X));
    OK(ctx, sps_block_random(B, 1));
    st = sps_solver_linear(s, B, X, &a->result);
    sps_solver_destroy(&s);
    sps_block_destroy(&B);
    sps_block_destroy(&X);
    return st;
}

static sps_status try_eigen(any *a)
{
    sps_solver *s = NULL;
    sps_block *X = NULL;
    sps_status st;

    OK(ctx, sps_solver_create_eigen(op, NULL, NULL, K, NULL, &s));
    OK(ctx, sps_block_create(ctx, N, K, &X));
    st = sps_solver_eigen(s, X, NULL, &a->eigen);
    sps_solver_destroy(&s);
    sps_block_destroy(&X);
    return st;
}

static sps_status try_read(any *a, bool options)
{
    char path[] = "check_abi-XXXXXX";
    int f = mkstemp(path);
    FILE *file = fdopen(f, "w");
    sps_csr *R = NULL;
    sps_status st;

    ck_assert_ptr_nonnull(file);
    fputs("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 3\n",
          file);
    fclose(file);
    st = sps_csr_read(ctx, path, options ? &a->read : NULL,
                      options ? NULL : &a->read_info, &R);
    unlink(path);
    sps_csr_destroy(ctx, &R);
    return st;
}

/* Passes the struct to a function that takes it. */
static sps_status try(int kind, any *a)
{
    sps_operator *made = NULL;
    sps_context *another = NULL;
    sps_csr *L = NULL;
    sps_comm *comm = NULL;
    sps_status st = SPS_OK;

    switch (kind) {
    case OPTIONS:
        st = sps_operator_csr(ctx, A, K, &a->options, &made);
        sps_operator_destroy(&made);
        break;
    case CONTEXT:
        st = sps_context_create(&a->context, &another, NULL);
        sps_context_destroy(&another);
        break;
    case READ:
    case READ_INFO: st = try_read(a, kind == READ); break;
    case INFO: st = sps_context_information(ctx, &a->info); break;
    case LAPLACIAN:
        st = sps_csr_laplacian(ctx, A, &a->laplacian, &L);
        sps_csr_destroy(ctx, &L);
        break;
    case RESULT: st = try_solver(a); break;
    case EIGEN: st = try_eigen(a); break;
    case CALLS:
        st = sps_comm_user(0, 2, &a->calls, NULL, &comm);
        sps_comm_destroy(&comm);
        break;
    }
    return st;
}

static void refused(int kind, any *a, size_t told)
{
    char size[32], own[32];
    const char *text;

    ck_assert_msg(try(kind, a) == SPS_EINVAL, "%s of %zu bytes was taken",
                  kinds[kind].name, a->struct_size);
    text = sps_context_error(ctx);
    (void)snprintf(size, sizeof size, " is %zu", told);
    (void)snprintf(own, sizeof own, "%zu", kinds[kind].size);
    ck_assert_msg(strstr(text, kinds[kind].name) && strstr(text, size) &&
                  strstr(text, own), "%s", text);
}

START_TEST(shorter_structs_are_accepted_and_not_written_beyond)
{
    for (int kind = 0; kind < KINDS; kind++)
        for (size_t size = kind == CALLS ? 16 : 8; size < kinds[kind].size;
             size += 8) {
            any a = prepare(kind);

            a.struct_size = size;
            memset(a.bytes + size, 0x5a, sizeof a - size);
            ck_assert_msg(try(kind, &a) == SPS_OK, "%s of %zu: %s",
                          kinds[kind].name, size, sps_context_error(ctx));
            ck_assert_uint_eq(a.struct_size, size);
            for (size_t i = size; i < sizeof a; i++)
                ck_assert_msg(a.bytes[i] == 0x5a, "%s of %zu: byte %zu",
                              kinds[kind].name, size, i);
        }
}
END_TEST

START_TEST(longer_structs_are_accepted_where_nothing_unknown_is_set)
{
    for (int kind = 0; kind < KINDS; kind++) {
        const size_t more[] = {8, 64, 200};

        for (int i = 0; i < 3; i++) {
            any a = prepare(kind);

            a.struct_size = kinds[kind].size + more[i];
            ck_assert_msg(try(kind, &a) == SPS_OK, "%s + %zu: %s",
                          kinds[kind].name, more[i], sps_context_error(ctx));
            a = prepare(kind);
            a.struct_size = kinds[kind].size + more[i];
            a.bytes[a.struct_size - 1] = 1;
            refused(kind, &a, a.struct_size);
        }
    }
}
END_TEST

START_TEST(sizes_that_nobody_set_are_refused)
{
    const size_t wrong[] = {0, 1, 3, 12, 1 << 20, (size_t)-8};

    for (int kind = 0; kind < KINDS; kind++)
        for (int i = 0; i < 6; i++) {
            any a = prepare(kind);

            a.struct_size = wrong[i];
            refused(kind, &a, wrong[i]);
        }
}
END_TEST

/* Options up to the size that the caller states: these members are used. */
START_TEST(members_that_a_shorter_struct_has_are_used)
{
    any a = prepare(OPTIONS);

    a.options.rtol = 2;
    a.struct_size = offsetof(sps_options, rtol) + sizeof(double);
    ck_assert_int_eq(try(OPTIONS, &a), SPS_EINVAL);
    a.struct_size -= sizeof(double);
    ck_assert_int_eq(try(OPTIONS, &a), SPS_OK);
    a = prepare(INFO);
    a.struct_size = 16;
    ck_assert_int_eq(try(INFO, &a), SPS_OK);
    ck_assert_int_eq(a.info.place, SPS_HOST);
}
END_TEST

START_TEST(defaults_fit_the_size_that_is_given)
{
    any a;

    for (size_t size = 8; size < sizeof(sps_options) + 64; size += 8) {
        memset(&a, 0x5a, sizeof a);
        sps_options_init(&a.options, size);
        ck_assert_uint_eq(a.struct_size, size);
        for (size_t i = size; i < sizeof a; i++) ck_assert(a.bytes[i] == 0x5a);
        for (size_t i = sizeof(sps_options); i < size; i++)
            ck_assert(a.bytes[i] == 0);
    }
    memset(&a, 0x5a, sizeof a);
    sps_context_options_init(&a.context, 16);
    ck_assert(a.struct_size == 16 && a.context.device == -1);
    ck_assert(a.bytes[15] == 0xff && a.bytes[16] == 0x5a);
}
END_TEST

START_TEST(a_csr_tells_its_size_and_whether_it_is_of_a_whole)
{
    sps_csr now = *A;
    sps_operator *made = NULL;
    int64_t global = 0;

    now.struct_size = 0;
    ck_assert_int_eq(sps_csr_check(ctx, &now), SPS_EINVAL);
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "struct_size is 0"));
    now.struct_size = offsetof(sps_csr, struct_size); /* no struct_size */
    ck_assert_int_eq(sps_csr_check(ctx, &now), SPS_EINVAL);
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "needs 72 of them"));
    now = *A;
    now.dtype = (sps_dtype)7;
    ck_assert_int_eq(sps_operator_csr(ctx, &now, K, NULL, &made), SPS_EINVAL);
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "dtype is 7"));
    for (int i = 0; i < 3; i++) {
        now = *A;
        if (i == 0) now.first = 5;
        if (i == 1) now.whole = 40;
        if (i == 2) now.global = &global;
        ck_assert_int_eq(sps_operator_csr(ctx, &now, K, NULL, &made),
                         SPS_EUNFIT);
        ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "processes"));
        now.struct_size = offsetof(sps_csr, first); /* without these */
        OK(ctx, sps_operator_csr(ctx, &now, K, NULL, &made));
        sps_operator_destroy(&made);
    }
}
END_TEST

START_TEST(a_program_of_0_1_runs)
{
    const char *failure = client_0_1_solves();

    ck_assert_msg(!failure, "%s: %s", failure, sps_context_error(NULL));
}
END_TEST

START_TEST(a_program_of_0_1_is_told_what_has_gone)
{
    const char *failure = client_0_1_is_told();

    ck_assert_msg(!failure, "%s: %s", failure, sps_context_error(NULL));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("abi");
    TCase *tc = tcase_create("structs"), *old = tcase_create("0.1");

    tcase_set_timeout(tc, RUNNER_TIMEOUT);
    tcase_add_checked_fixture(tc, open_all, close_all);
    tcase_add_test(tc, shorter_structs_are_accepted_and_not_written_beyond);
    tcase_add_test(tc, longer_structs_are_accepted_where_nothing_unknown_is_set);
    tcase_add_test(tc, sizes_that_nobody_set_are_refused);
    tcase_add_test(tc, members_that_a_shorter_struct_has_are_used);
    tcase_add_test(tc, defaults_fit_the_size_that_is_given);
    tcase_add_test(tc, a_csr_tells_its_size_and_whether_it_is_of_a_whole);
    tcase_add_test(old, a_program_of_0_1_runs);
    tcase_add_test(old, a_program_of_0_1_is_told_what_has_gone);
    suite_add_tcase(suite, tc);
    suite_add_tcase(suite, old);
    return runner_run(suite);
}
