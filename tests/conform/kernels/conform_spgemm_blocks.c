/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_spgemm_blocks.c - C = A B where A and B consist of dense blocks of 2,
 * 3 or 6 rows and columns, in the place under test, every bit: all sizes of
 * blocks, rows of blocks of every tier, matrices that are of blocks but for one
 * entry, new values; and their transposes. */
#include "tests/conform/kernels/spgemm_fixture.h"

static const int size[] = { 2, 3, 6 };

static uint64_t hash(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* rows x columns blocks of r x s entries; row v of blocks has about as many as
 * length[v % kinds] says, none for 0. */
static sps_csr *block_rows(int64_t rows, int64_t columns, int r, int s,
                           const int *length, int kinds, uint64_t seed,
                           sps_dtype type)
{
    sps_csr *A = blank(rows * r, columns * s, rows * columns * r * s);
    int64_t at = 0;

    for (int64_t i = 0; i < A->nrow; i++) {
        const int64_t v = i / r;

        for (int64_t u = 0; u < columns; u++) {
            const uint64_t h = hash(seed + (uint64_t)(v * columns + u));

            if ((int64_t)(h % (uint64_t)columns) >= length[v % kinds]) continue;
            for (int j = 0; j < s; j++) {
                A->col[at] = (int32_t)(u * s + j);
                if (type == SPS_F64)
                    ((double *)A->val)[at] = sin((double)(at + (int64_t)seed));
                else
                    ((float *)A->val)[at] = (float)sin((double)at);
                at++;
            }
        }
        A->rowptr[i + 1] = at;
    }
    A->nnz = at;
    A->dtype = type;
    return A;
}

static void try_both(sps_context *ctx, sps_csr *A, sps_csr *B,
                     const char *what)
{
    try_product(ctx, A, B, what);
    try_new_values(ctx, A, B);
}

START_TEST(blocks_of_every_size)
{
    static const int few[] = { 4, 9, 0, 27 }, some[] = { 5, 13, 1, 0, 2 };
    const int64_t n = runner_quick() ? 40 : 200;
    sps_context *ctx = runner_context();

    for (int t = 0; t < 27 * 4; t++) {
        const int r = size[t % 3], k = size[t / 3 % 3], s = size[t / 9 % 3];
        const sps_dtype a = t / 27 % 2 ? SPS_F32 : SPS_F64;
        const sps_dtype b = t / 54 ? SPS_F32 : SPS_F64;
        sps_csr *A = block_rows(n, n, r, k, few, 4, 1, a);
        sps_csr *B = block_rows(n, n + 7, k, s, some, 5, 2, b);

        try_both(ctx, A, B, "blocks");
        try_transpose(ctx, A, "blocks");
        erase(&A);
        erase(&B);
    }
    sps_context_destroy(&ctx);
}
END_TEST

/* rows block rows of one k x s block each, or none in every fifth. */
static sps_csr *single_blocks(int64_t rows, int64_t columns, int k, int s,
                              sps_dtype type)
{
    sps_csr *B = blank(rows * k, columns * s, rows * k * s);
    int64_t at = 0;

    for (int64_t i = 0; i < B->nrow; i++) {
        const int64_t v = i / k, u = v * 7 / 4 % columns;

        for (int j = 0; j < s && v % 5 != 3; j++, at++) {
            B->col[at] = (int32_t)(u * s + j);
            if (type == SPS_F64) ((double *)B->val)[at] = cos((double)at);
            else ((float *)B->val)[at] = (float)cos((double)at);
        }
        B->rowptr[i + 1] = at;
    }
    B->nnz = at;
    B->dtype = type;
    return B;
}

/* Rows of A of no, few, and more blocks than a warp has lanes; of C from one
 * column of blocks to as many as B has. */
START_TEST(single_blocks_in_the_rows_of_b)
{
    static const int length[] = { 4, 27, 0, 90, 1 };
    const int64_t columns[] = { 1, 17, 90 };
    sps_context *ctx = runner_context();

    for (int t = 0; t < 27 * 6; t++) {
        const int r = size[t % 3], k = size[t / 3 % 3], s = size[t / 9 % 3];
        const sps_dtype type = t / 27 % 2 ? SPS_F32 : SPS_F64;
        sps_csr *A = block_rows(30, 100, r, k, length, 5, 11, type);
        sps_csr *B = single_blocks(100, columns[t / 54], k, s, type);

        try_both(ctx, A, B, "single blocks");
        erase(&A);
        erase(&B);
    }
    sps_context_destroy(&ctx);
}
END_TEST

/* From one block in a row of C to more than shared memory holds; rows of B of
 * more than a warp's columns. */
START_TEST(rows_of_blocks_of_every_length)
{
    static const int length[] = { 1, 3, 8, 15, 30, 60, 150, 300, 600, 1600 };
    const int64_t columns = runner_quick() ? 400 : 2000;
    const int kinds = runner_quick() ? 8 : 10;
    static const int one[] = { 1, 2, 3 };
    sps_context *ctx = runner_context();

    for (int most = 1; most <= kinds; most++)
        for (int t = 0; t < 2; t++) {
            const int r = t ? 3 : 6, k = t ? 6 : 3;
            sps_csr *A = block_rows(50, 50, r, k, one, 3, 3, SPS_F64);
            sps_csr *B = block_rows(50, columns, k, r, length, most, 4,
                                    SPS_F64);

            try_both(ctx, A, B, "rows of blocks");
            erase(&A);
            erase(&B);
        }
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(nan_and_infinity_in_blocks)
{
    static const int few[] = { 4, 9, 0, 27 }, some[] = { 5, 13, 1, 0, 2 };
    sps_context *ctx = runner_context();

    for (int t = 0; t < 27 * 2; t++) {
        const int r = size[t % 3], k = size[t / 3 % 3], s = size[t / 9 % 3];
        const sps_dtype type = t / 27 ? SPS_F32 : SPS_F64;
        sps_csr *A = block_rows(40, 40, r, k, few, 4, 1, type);
        sps_csr *B = block_rows(40, 47, k, s, some, 5, 2, type);
        sps_csr *T = single_blocks(40, 17, k, s, type);

        spoil(A);
        spoil(B);
        try_both(ctx, A, B, "blocks, not all finite");
        try_both(ctx, A, T, "single blocks, not all finite");
        erase(&A);
        erase(&B);
        erase(&T);
    }
    sps_context_destroy(&ctx);
}
END_TEST

/* While another context computes. */
START_TEST(repeats_of_blocks_have_the_same_bits)
{
    static const int some[] = { 5, 13, 1, 0, 27 };
    const int64_t n = runner_quick() ? 60 : 300;
    sps_context *ctx = runner_context();
    sps_csr *A = block_rows(n, n, 3, 3, some, 5, 1, SPS_F64);
    sps_csr *B = block_rows(n, n, 3, 6, some, 5, 2, SPS_F64);
    sps_csr *T = single_blocks(n, n / 4, 3, 6, SPS_F64);
    neighbour beside;

    neighbour_open(&beside);
    try_repeats(ctx, A, B, "blocks");
    try_repeats(ctx, A, T, "single blocks");
    neighbour_close(&beside);
    erase(&A);
    erase(&B);
    erase(&T);
    sps_context_destroy(&ctx);
}
END_TEST

/* Entry p is left out of A. */
static void leave_out(sps_csr *A, int64_t p)
{
    double *val = A->val;
    const size_t behind = (size_t)(A->nnz - p - 1);

    memmove(A->col + p, A->col + p + 1, behind * sizeof *A->col);
    memmove(val + p, val + p + 1, behind * sizeof *val);
    for (int64_t i = 0; i <= A->nrow; i++)
        if (A->rowptr[i] > p) A->rowptr[i]--;
    A->nnz--;
}

/* The last entry, the first one, one in between; and the columns of one row of
 * blocks moved, so that they are no multiples. */
START_TEST(blocks_with_a_fault)
{
    static const int some[] = { 7, 12, 3 };
    sps_context *ctx = runner_context();

    for (int t = 0; t < 8; t++) {
        sps_csr *M[2] = { block_rows(60, 60, 3, 3, some, 3, 5, SPS_F64),
                          block_rows(60, 60, 3, 6, some, 3, 6, SPS_F64) };
        sps_csr *F = M[t / 4];
        const int64_t at[] = { 0, F->nnz - 1, F->nnz / 2 };

        if (t % 4 < 3) leave_out(F, at[t % 4]);
        for (int64_t p = F->rowptr[30]; t % 4 == 3 && p < F->rowptr[33]; p++)
            F->col[p] += F->col[F->rowptr[31] - 1] + 1 < F->ncol;
        try_both(ctx, M[0], M[1], "one fault");
        try_transpose(ctx, F, "one fault");
        erase(&M[0]);
        erase(&M[1]);
    }
    sps_context_destroy(&ctx);
}
END_TEST

/* Values on a pattern of blocks that lacks some of the product, and on one that
 * is of no blocks. */
START_TEST(values_on_another_pattern_of_blocks_are_refused)
{
    static const int one[] = { 1, 2 }, some[] = { 9, 4, 11 };
    sps_context *ctx = runner_context();
    sps_csr *A = block_rows(80, 80, 3, 3, some, 3, 7, SPS_F64);
    sps_csr *B = block_rows(80, 80, 3, 6, some, 3, 8, SPS_F64);
    sps_csr *few = block_rows(80, 80, 3, 6, one, 2, 9, SPS_F64);
    sps_csr *loose = block_rows(80, 80, 3, 6, one, 2, 9, SPS_F64);
    sps_csr *a = sent(ctx, A), *b = sent(ctx, B), *c;

    leave_out(loose, 4);
    c = sent(ctx, few);
    ck_assert_int_eq(spsi_matrix_multiply_values(ctx, a, b, c), SPS_EMATRIX);
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "row "));
    drop(ctx, few, c);
    c = sent(ctx, loose);
    ck_assert_int_eq(spsi_matrix_multiply_values(ctx, a, b, c), SPS_EMATRIX);
    drop(ctx, loose, c);
    drop(ctx, A, a);
    drop(ctx, B, b);
    erase(&A);
    erase(&B);
    erase(&few);
    erase(&loose);
    sps_context_destroy(&ctx);
}
END_TEST

/* C lacks all entries of one row of blocks.  It has one column of blocks, so
 * that what other rows leave in shared memory is the column that is missing. */
START_TEST(values_on_a_pattern_without_a_whole_row_are_refused)
{
    enum { ROWS = 3000 };
    static const int all[] = { 1 }, some[] = { 9, 4, 11 };
    static int length[ROWS];
    sps_context *ctx = runner_context();
    sps_csr *A = block_rows(ROWS, 40, 3, 3, some, 3, 7, SPS_F64);
    sps_csr *B = block_rows(40, 1, 3, 6, all, 1, 8, SPS_F64);
    sps_csr *a = sent(ctx, A), *b = sent(ctx, B);

    for (int v = 0; v < ROWS; v++) length[v] = A->rowptr[3 * v] <
                                               A->rowptr[3 * v + 1];
    for (int missing = -1; missing < ROWS; missing += ROWS / 3) {
        sps_csr *C, *c;

        if (missing >= 0) length[missing] = 0;
        C = block_rows(ROWS, 1, 3, 6, length, ROWS, 9, SPS_F64);
        c = sent(ctx, C);
        ck_assert_int_eq(spsi_matrix_multiply_values(ctx, a, b, c),
                         missing >= 0 ? SPS_EMATRIX : SPS_OK);
        if (missing >= 0) length[missing] = 1;
        drop(ctx, C, c);
        erase(&C);
    }
    drop(ctx, A, a);
    drop(ctx, B, b);
    erase(&A);
    erase(&B);
    sps_context_destroy(&ctx);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(blocks_of_every_size),
    RUNNER_TEST(single_blocks_in_the_rows_of_b),
    RUNNER_TEST(rows_of_blocks_of_every_length),
    RUNNER_TEST(nan_and_infinity_in_blocks),
    RUNNER_TEST(repeats_of_blocks_have_the_same_bits),
    RUNNER_TEST(blocks_with_a_fault),
    RUNNER_TEST(values_on_another_pattern_of_blocks_are_refused),
    RUNNER_TEST(values_on_a_pattern_without_a_whole_row_are_refused),
};

RUNNER_MAIN("conform_spgemm_blocks", tests)
