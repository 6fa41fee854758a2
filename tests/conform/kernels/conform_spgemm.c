/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_spgemm.c - C = A B and A' for sparse matrices, in the place under
 * test, against plain loops: columns by a map, values by a chain of fused
 * multiply-adds over ascending k from -0, so that every bit is compared.  Data
 * is exact integers first, then random numbers.  Each kind of row of the bodies
 * is met: tables of every size, windows, rows that repeat the one before. */
#include "tests/conform/kernels/spgemm_fixture.h"

/* -------------------------------------------------------------------- tests */

/* Every pattern of the zoo times itself, in all pairs of types. */
START_TEST(products_of_the_zoo_have_every_bit)
{
    static const sps_dtype type[][2] = {
        { SPS_F64, SPS_F64 }, { SPS_F32, SPS_F32 }, { SPS_F32, SPS_F64 },
        { SPS_F64, SPS_F32 },
    };
    const int64_t n[] = { 0, 1, 33, runner_quick() ? 200 : 900 };
    sps_context *ctx = runner_context();

    for (int f = 0; f < zoo_count(); f++)
        for (int t = 0; t < 4 * 4; t++) {
            const zoo_values v = t % 2 ? ZOO_RANDOM : ZOO_SMALL;
            const int64_t size = n[t / 4];
            sps_csr *A = zoo_shape(f, size, size, 7, v, type[t % 4][0]);
            sps_csr *B = zoo_shape(f, size, size + 5, 8, v, type[t % 4][1]);

            try_product(ctx, A, B, zoo_name(f));
            zoo_free(&A);
            zoo_free(&B);
        }
    sps_context_destroy(&ctx);
}
END_TEST

/* Rows of C around every size at which bodies change: tables of 8, 16, .. 2048
 * columns on the GPU, filled to five eighths or four fifths; then windows. */
START_TEST(rows_of_every_length)
{
    static const int32_t length[] = { 1,   2,   5,    6,    10,   11,  12,
                                      13,  20,  21,   25,   26,   32,  40,
                                      41,  51,  52,   80,   81,   102, 103,
                                      204, 205, 409,  410,  500,  819, 820,
                                      128, 129, 1638, 1639, 4000, 0 };
    const int64_t kinds = sizeof length / sizeof *length, rows = 3 * kinds;
    sps_context *ctx = runner_context();

    for (int t = 0; t < 4; t++) {
        const sps_dtype type = t % 2 ? SPS_F32 : SPS_F64;
        sps_csr *B = zoo_rows(rows, 9000, length, kinds, 0, 5, ZOO_SMALL, type);
        sps_csr *A = zoo_matrix(zoo_find("diagonal"), rows, 3, ZOO_SMALL, type);
        sps_csr *T = zoo_rows(40, rows, length, 5, 0, 9, ZOO_SMALL, type);

        try_product(ctx, A, B, "one product each");
        try_product(ctx, T, B, "several products");
        zoo_free(&A);
        zoo_free(&B);
        zoo_free(&T);
    }
    sps_context_destroy(&ctx);
}
END_TEST

/* A few rows of C are much longer than the others, and some are empty: on the
 * GPU most rows are computed in one pass, and the long ones fit no table of
 * that pass. */
START_TEST(a_few_rows_are_long)
{
    enum { KINDS = 300 };
    static const int32_t several[] = { 6, 9, 1, 0, 14 };
    int32_t length[KINDS];
    sps_context *ctx = runner_context();

    for (int i = 0; i < KINDS; i++) length[i] = 11 + i % 3;
    length[17] = 90;
    length[150] = 500;
    length[151] = 0;
    length[299] = 1500;
    for (int t = 0; t < 4; t++) {
        const sps_dtype type = t % 2 ? SPS_F32 : SPS_F64;
        const int64_t rows = t < 2 ? 1500 : 2999;
        sps_csr *A = zoo_rows(rows, 2000, length, KINDS, 0, 7,
                              t < 2 ? ZOO_SMALL : ZOO_RANDOM, type);
        sps_csr *B = zoo_rows(2000, 7000, several, 5, 0, 8, ZOO_RANDOM, type);

        try_product(ctx, A, B, "a few rows are long");
        zoo_free(&A);
        zoo_free(&B);
    }
    sps_context_destroy(&ctx);
}
END_TEST

/* Rows of C are short, although a few long rows of B make its mean long: on the
 * GPU more threads than a row's table has places were to compute a row. */
START_TEST(a_few_rows_of_b_are_long)
{
    enum { KINDS = 100 };
    int32_t length[KINDS];
    sps_context *ctx = runner_context();

    for (int i = 0; i < KINDS; i++) length[i] = i % 5;
    for (int t = 0; t < 4; t++) {
        const sps_dtype type = t % 2 ? SPS_F32 : SPS_F64;
        sps_csr *A = zoo_matrix(zoo_find("diagonal"), 2000, 3, ZOO_SMALL, type);
        sps_csr *B;

        length[50] = t < 2 ? 900 : 2500;
        B = zoo_rows(2000, 7000, length, KINDS, 0, 8, ZOO_RANDOM, type);
        try_product(ctx, A, B, "a few rows of B are long");
        zoo_free(&A);
        zoo_free(&B);
    }
    sps_context_destroy(&ctx);
}
END_TEST

/* Factors with a dense row, a dense column, both, and empty rows, square and
 * not. */
START_TEST(dense_rows_and_columns)
{
    static const char *const name[] = { "arrow", "dense_row", "dense_column",
                                        "alternating", "last_row", "uniform" };
    const int64_t n = runner_quick() ? 300 : 2500;
    sps_context *ctx = runner_context();

    for (int a = 0; a < 6; a++)
        for (int b = 0; b < 6; b++) {
            sps_csr *A = zoo_shape(zoo_find(name[a]), n + 20, n, 3, ZOO_SMALL,
                                   SPS_F64);
            sps_csr *B = zoo_shape(zoo_find(name[b]), n, n - 30, 4, ZOO_SMALL,
                                   SPS_F64);

            try_product(ctx, A, B, name[a]);
            zoo_free(&A);
            zoo_free(&B);
        }
    sps_context_destroy(&ctx);
}
END_TEST

/* One row of more than 10^5 products: few columns, and columns far apart. */
START_TEST(a_row_of_many_products)
{
    static const int32_t many[] = { 6000, 2, 0 }, wide[] = { 20, 17, 24 };
    sps_context *ctx = runner_context();
    const int64_t ncol[] = { 500, 300000 };

    for (int t = 0; t < 2; t++) {
        sps_csr *A = zoo_rows(9, 6000, many, 3, 0, 2, ZOO_SMALL, SPS_F64);
        sps_csr *B = zoo_rows(6000, ncol[t], wide, 3, 0, 3, ZOO_SMALL, SPS_F64);

        try_product(ctx, A, B, t ? "wide" : "narrow");
        zoo_free(&A);
        zoo_free(&B);
    }
    sps_context_destroy(&ctx);
}
END_TEST

/* More than 2^31 products, of factors and a result of few entries: A is dense,
 * with rows i, i + 3, ... the same. */
START_TEST(more_than_2_31_products)
{
    enum { ROWS = 1024, INNER = 2048, COLUMNS = 1025 };
    sps_context *ctx;
    sps_csr *A, *B, *C;
    double *right;

    if (runner_quick()) runner_leave_out("2^31 products take seconds");
    ctx = runner_context();
    A = blank(ROWS, INNER, ROWS * INNER);
    B = blank(INNER, COLUMNS, INNER * COLUMNS);
    right = calloc(3 * COLUMNS, sizeof *right);
    for (int64_t p = 0; p < A->nnz; p++) {
        A->col[p] = (int32_t)(p % INNER);
        ((double *)A->val)[p] = (double)((p / INNER % 3 + p % INNER) % 3 - 1);
        A->rowptr[p / INNER + 1] = p + 1;
    }
    for (int64_t p = 0; p < B->nnz; p++) {
        const int64_t k = p / COLUMNS, j = p % COLUMNS;

        B->col[p] = (int32_t)j;
        ((double *)B->val)[p] = (double)((k * j) % 7 - 3);
        B->rowptr[k + 1] = p + 1;
        for (int i = 0; i < 3; i++)
            right[i * COLUMNS + j] += value(A, i * INNER + k) * value(B, p);
    }
    C = multiplied(ctx, A, B);
    ck_assert_int_eq(C->nnz, ROWS * COLUMNS);
    for (int64_t p = 0; p < C->nnz; p++)
        ck_assert_msg(C->col[p] == p % COLUMNS &&
                      value(C, p) == right[p / COLUMNS % 3 * COLUMNS +
                                           p % COLUMNS],
                      "entry %lld", (long long)p);
    sps_csr_destroy(ctx, &C);
    free(right);
    erase(&A);
    erase(&B);
    sps_context_destroy(&ctx);
}
END_TEST

/* Node v has 1 + v % most rows, all with the columns of nodes near it, about
 * `length` of them, or, if loose, some columns of each. */
static sps_csr *node_rows(int64_t nodes, int most, int length, bool loose,
                          uint64_t seed)
{
    int64_t *start = calloc((size_t)nodes + 1, sizeof *start);
    const int64_t reach = length / (most + 1) + 2;
    sps_csr *A;
    int64_t at = 0;

    for (int64_t v = 0; v < nodes; v++) start[v + 1] = start[v] + 1 + v % most;
    A = blank(start[nodes], start[nodes],
              start[nodes] * (2 * reach + 1) * (most + 1));
    for (int64_t v = 0; v < nodes; v++)
        for (int64_t i = start[v]; i < start[v + 1]; i++) {
            for (int64_t u = v > reach ? v - reach : 0;
                 u < nodes && u <= v + reach; u++) {
                const uint64_t h = ((uint64_t)u * 31 + (uint64_t)v * 17 +
                                    seed) * 0x9e3779b97f4a7c15u;

                for (int64_t j = start[u]; j < start[u + 1]; j++) {
                    if ((loose ? h >> (j - start[u]) : h >> 60) % 4 == 0 &&
                        u != v)
                        continue;
                    A->col[at] = (int32_t)j;
                    ((double *)A->val)[at] = sin((double)at + (double)seed);
                    at++;
                }
            }
            A->rowptr[i + 1] = at;
        }
    A->nnz = at;
    free(start);
    return A;
}

/* A (2 x 3) with duplicates and rows not sorted, from the caller. */
START_TEST(duplicates_and_unsorted_rows)
{
    int64_t ptr[] = { 0, 4, 5 };
    int32_t col[] = { 2, 0, 2, 1, 0 }, order[] = { 0, 1, 2, 0 };
    double val[] = { 1, 2, 4, 8, 16 }, sum[] = { 2, 8, 5, 16 };
    int64_t end[] = { 0, 3, 4 };
    sps_csr A = { .nrow = 2, .ncol = 3, .nnz = 5, .rowptr = ptr, .col = col,
                  .val = val, .dtype = SPS_F64, .place = SPS_HOST,
                  .own = SPS_BORROW, .struct_size = sizeof A };
    sps_csr S = A, *C, *a, *T = NULL, *R = NULL;
    sps_csr *B = zoo_rows(3, 7, (int32_t[]){ 4, 2, 7 }, 3, 0, 4, ZOO_SMALL,
                          SPS_F64);
    sps_context *ctx = runner_context();

    S.rowptr = end;
    S.col = order;
    S.val = sum;
    S.nnz = 4;
    C = multiplied(ctx, &A, B);
    check_product(&S, B, C, "sorted by the call");
    sps_csr_destroy(ctx, &C);
    a = sent(ctx, &A);
    OK(ctx, sps_csr_transpose(ctx, a, &T));
    T = fetched(ctx, T);
    OK(ctx, spsi_csr_transpose(ctx, &S, &R));
    same_matrix(T, R, "transpose");
    drop(ctx, &A, a);
    sps_csr_destroy(ctx, &T);
    sps_csr_destroy(ctx, &R);
    zoo_free(&B);
    sps_context_destroy(&ctx);
}
END_TEST

/* 1 * 1 + 1 * -1 = 0 is stored; 0 * Inf is NaN, and NaN and Inf stay in the
 * rows that have them; -1 * 0 keeps its sign. */
START_TEST(zeros_are_stored_and_nan_passes)
{
    int64_t pa[] = { 0, 2, 3, 4, 5, 6 }, pb[] = { 0, 1, 2, 3, 4 };
    int32_t ca[] = { 0, 1, 2, 3, 2, 0 }, cb[] = { 0, 0, 1, 0 };
    double va[] = { 1, 1, 0, 1, 2, -1 }, vb[] = { 1, -1, INFINITY, NAN };
    sps_csr A = { .nrow = 5, .ncol = 4, .nnz = 6, .rowptr = pa, .col = ca,
                  .val = va, .dtype = SPS_F64, .place = SPS_HOST,
                  .own = SPS_BORROW, .struct_size = sizeof A };
    sps_csr B = { .nrow = 4, .ncol = 2, .nnz = 4, .rowptr = pb, .col = cb,
                  .val = vb, .dtype = SPS_F64, .place = SPS_HOST,
                  .own = SPS_BORROW, .struct_size = sizeof B };
    sps_context *ctx = runner_context();
    sps_csr *C = multiplied(ctx, &A, &B);

    check_product(&A, &B, C, "special numbers");
    ck_assert_int_eq((int)C->nnz, 5);
    ck_assert(value(C, 0) == 0 && isnan(value(C, 1)) && isnan(value(C, 2)));
    ck_assert(isinf(value(C, 3)) && value(C, 4) == -1);
    sps_csr_destroy(ctx, &C);
    vb[0] = 0;
    C = multiplied(ctx, &A, &B);
    ck_assert(value(C, 4) == 0 && signbit(value(C, 4)));
    sps_csr_destroy(ctx, &C);
    sps_context_destroy(&ctx);
}
END_TEST

/* In each kind of row, and as new values. */
START_TEST(nan_and_infinity_in_rows_of_every_kind)
{
    static const char *const name[] = { "grid5", "grid27", "power_law",
                                        "dense_row", "dense_column" };
    static const int32_t length[] = { 1, 6, 13, 26, 103, 410, 1639, 4000, 0 };
    const int64_t n = runner_quick() ? 200 : 900;
    sps_context *ctx = runner_context();

    for (int t = 0; t < 7 * 2; t++) {
        const sps_dtype type = t % 2 ? SPS_F32 : SPS_F64;
        const int f = zoo_find(t / 2 < 5 ? name[t / 2] : "diagonal");
        sps_csr *A = zoo_matrix(f, n, 3, ZOO_RANDOM, type);
        sps_csr *B = t / 2 < 5 ? zoo_matrix(f, n, 4, ZOO_RANDOM, type)
                               : zoo_rows(n, 9000, length, 9, 0, 5, ZOO_RANDOM,
                                          type);

        if (t / 2 != 6) spoil(A);
        spoil(B);
        try_product(ctx, A, B, zoo_name(f));
        try_new_values(ctx, A, B);
        zoo_free(&A);
        zoo_free(&B);
    }
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(new_values_on_an_old_pattern)
{
    static const int32_t length[] = { 1, 60, 300, 2500, 7, 0, 900 };
    sps_context *ctx = runner_context();

    for (int t = 0; t < 4; t++) {
        const sps_dtype type[] = { t % 2 ? SPS_F32 : SPS_F64,
                                   t / 2 ? SPS_F32 : SPS_F64 };
        sps_csr *A = zoo_matrix(zoo_find("grid5"), 900, 3, ZOO_RANDOM, type[0]);
        sps_csr *B = zoo_rows(900, 5000, length, 7, 0, 5, ZOO_RANDOM, type[1]);
        sps_csr *D = zoo_matrix(zoo_find("grid5"), 900, 4, ZOO_RANDOM, type[1]);

        try_new_values(ctx, A, B);
        try_new_values(ctx, A, D);
        zoo_free(&A);
        zoo_free(&B);
        zoo_free(&D);
    }
    sps_context_destroy(&ctx);
}
END_TEST

/* Nodes of several rows in both factors, in the first one alone, and with rows
 * of several lengths; with new values. */
START_TEST(rows_of_nodes)
{
    static const struct { int most, a, b; bool loose; } set[] = {
        { 3, 30, 6, false }, { 6, 60, 50, false }, { 3, 40, 140, true },
        { 6, 12, 300, true }, { 2, 9, 9, false }, { 1, 30, 30, false },
    };
    const int64_t nodes = runner_quick() ? 40 : 400;
    sps_context *ctx = runner_context();

    for (int t = 0; t < 6; t++) {
        sps_csr *A = node_rows(nodes, set[t].most, set[t].a, false, 1);
        sps_csr *B = node_rows(nodes, set[t].most, set[t].b, set[t].loose, 2);
        sps_csr *N = node_rows(A->nrow, 1, set[t].b, false, 3);

        try_product(ctx, A, B, "nodes");
        try_new_values(ctx, A, B);
        try_product(ctx, N, A, "rows and nodes");
        try_product(ctx, A, N, "nodes and rows");
        spoil(A);
        try_product(ctx, A, B, "nodes, not all finite");
        erase(&A);
        erase(&B);
        erase(&N);
    }
    sps_context_destroy(&ctx);
}
END_TEST

/* A product that has no place in C is refused, and the row is named. */
START_TEST(values_on_another_pattern_are_refused)
{
    sps_context *ctx = runner_context();
    const int family[] = { zoo_find("grid5"), zoo_find("diagonal") };
    sps_csr *G = zoo_matrix(family[0], 100, 1, ZOO_SMALL, SPS_F64);
    sps_csr *D = zoo_matrix(family[1], 100, 1, ZOO_SMALL, SPS_F64);
    sps_csr *g = sent(ctx, G), *d = sent(ctx, D), *C = NULL;

    OK(ctx, spsi_matrix_multiply(ctx, d, d, &C));
    ck_assert_int_eq(spsi_matrix_multiply_values(ctx, g, d, C), SPS_EMATRIX);
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "row 0"));
    OK(ctx, spsi_matrix_multiply_values(ctx, d, d, C));
    sps_csr_destroy(ctx, &C);
    drop(ctx, G, g);
    drop(ctx, D, d);
    zoo_free(&G);
    zoo_free(&D);
    sps_context_destroy(&ctx);
}
END_TEST

/* While another context computes: rows that are merged, that come in nodes,
 * of one pass, of tables and of windows. */
START_TEST(repeats_have_the_same_bits)
{
    static const char *const name[] = { "grid5", "grid27", "power_law" };
    const int64_t n = runner_quick() ? 400 : 3000;
    sps_context *ctx = runner_context();
    sps_csr *nodes = node_rows(runner_quick() ? 60 : 300, 6, 60, false, 1);
    neighbour beside;

    neighbour_open(&beside);
    for (int t = 0; t < 3; t++) {
        sps_csr *A = zoo_matrix(zoo_find(name[t]), n, 3, ZOO_RANDOM, SPS_F64);

        try_repeats(ctx, A, A, name[t]);
        zoo_free(&A);
    }
    try_repeats(ctx, nodes, nodes, "nodes");
    neighbour_close(&beside);
    erase(&nodes);
    sps_context_destroy(&ctx);
}
END_TEST

static void *alloc_some(size_t bytes, void *none)
{
    (void)none;
    return bytes > (size_t)64 << 20 ? NULL : malloc(bytes);
}

static void free_any(void *p, size_t bytes, void *none)
{
    (void)bytes, (void)none;
    free(p);
}

/* A context without room for more than 64 MB in an array, on a GPU for more
 * than 256 MB in all. */
static sps_context *small_context(void)
{
    static const sps_allocator few = { sizeof few, alloc_some, free_any, NULL };
    sps_context_options o;
    sps_context *ctx = NULL;

    sps_context_options_default(&o);
    o.place = runner_place();
    o.threads = 2;
    o.host = &few;
    o.max_device_bytes = (size_t)256 << 20;
    ck_assert_int_eq(sps_context_create(&o, &ctx, NULL), SPS_OK);
    return ctx;
}

/* A column times a row has 768 MB; what is refused leaves nothing behind, and
 * the row times the column is computed then. */
START_TEST(a_product_beyond_memory_is_refused)
{
    enum { N = 8000 };
    sps_context *ctx = small_context();
    const bool host = runner_place() == SPS_HOST;
    sps_csr *A = blank(N, 1, N), *B = blank(1, N, N), *a, *b, *C = NULL;

    for (int64_t i = 0; i < N; i++) {
        A->rowptr[i + 1] = i + 1;
        B->col[i] = (int32_t)i;
        ((double *)A->val)[i] = ((double *)B->val)[i] = (double)(i % 5);
    }
    B->rowptr[1] = N;
    a = sent(ctx, A);
    b = sent(ctx, B);
    ck_assert_int_eq(sps_csr_multiply(ctx, a, b, &C),
                     host ? SPS_ENOMEM : SPS_EDEVMEM);
    ck_assert_msg(strstr(sps_context_error(ctx), host ? "no memory for about "
                         : "are needed") != NULL, "%s", sps_context_error(ctx));
    ck_assert_ptr_null(C);
    try_product(ctx, B, A, "a row times a column");
    drop(ctx, A, a);
    drop(ctx, B, b);
    erase(&A);
    erase(&B);
    fixture_close(&ctx);
}
END_TEST

START_TEST(threads_have_the_same_bits)
{
    static const int threads[] = { 1, 2, 8 };
    sps_csr *A = zoo_matrix(zoo_find("grid5"), 40000, 3, ZOO_RANDOM, SPS_F64);
    sps_csr *C[3];
    sps_context *ctx[3];

    if (runner_place() != SPS_HOST) {
        zoo_free(&A);
        runner_leave_out("a GPU has no threads to choose");
    }
    for (int t = 0; t < 3; t++) {
        ctx[t] = fixture_open_with(SPS_HOST, threads[t], true);
        C[t] = multiplied(ctx[t], A, A);
        same_matrix(C[0], C[t], "threads");
    }
    for (int t = 0; t < 3; t++) {
        sps_csr_destroy(ctx[t], &C[t]);
        sps_context_destroy(&ctx[t]);
    }
    zoo_free(&A);
}
END_TEST

START_TEST(transposes_are_exact)
{
    sps_context *ctx = runner_context();

    for (int f = 0; f < zoo_count(); f++)
        for (int t = 0; t < 6; t++) {
            const int64_t n = (int64_t[]){ 0, 1, 700 }[t / 2];
            sps_csr *A = zoo_shape(f, n, n + 9, 5, ZOO_SMALL,
                                   t % 2 ? SPS_F32 : SPS_F64);

            try_transpose(ctx, A, zoo_name(f));
            zoo_free(&A);
        }
    sps_context_destroy(&ctx);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(products_of_the_zoo_have_every_bit),
    RUNNER_TEST(rows_of_every_length),
    RUNNER_TEST(a_few_rows_are_long),
    RUNNER_TEST(a_few_rows_of_b_are_long),
    RUNNER_TEST(dense_rows_and_columns),
    RUNNER_TEST(a_row_of_many_products),
    RUNNER_TEST(more_than_2_31_products),
    RUNNER_TEST(duplicates_and_unsorted_rows),
    RUNNER_TEST(zeros_are_stored_and_nan_passes),
    RUNNER_TEST(nan_and_infinity_in_rows_of_every_kind),
    RUNNER_TEST(new_values_on_an_old_pattern),
    RUNNER_TEST(rows_of_nodes),
    RUNNER_TEST(values_on_another_pattern_are_refused),
    RUNNER_TEST(repeats_have_the_same_bits),
    RUNNER_TEST(a_product_beyond_memory_is_refused),
    RUNNER_TEST(threads_have_the_same_bits),
    RUNNER_TEST(transposes_are_exact),
};

RUNNER_MAIN("conform_spgemm", tests)
