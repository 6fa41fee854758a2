/* SPDX-License-Identifier: BSD-3-Clause */
/* check_gen.c - generated matrices: rows in order, symmetric bit for bit,
 * positive definite, random numbers; and mtxgen writes exactly these values.
 * What each kind promises: check_gen_kinds.c. */
#include <check.h>
#include <lapacke.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/fixture.h"
#include "tests/support/runner.h"
#include "tests/problems/whole.h"

static const char *const symmetric[] = {
    "poisson7 7 5 6", "poisson7 1", "poisson7 6 -perturb 1",
    "poisson7 9 4 10 -jump -aniso 0.1 -perturb 2",
    "laplace27 5 6 4", "laplace27 2 1 1", "laplace27 6 -perturb 1",
    "laplace27 10 4 9 -jump -aniso 5 -perturb 9",
    "elasticity 4 5 3", "elasticity 1 2 2", "elasticity 4 -perturb 1",
    "elasticity 9 3 3 -jump -aniso 0.2 -perturb 2",
    "poisson7 5 4 3 -neumann -shift 0.01", "laplace27 4 -neumann -shift 2",
    "elasticity 3 2 4 -free -shift 0.5",
    "rmat 8 6 -laplacian -shift 0.25",
    "rmat 8 6 -laplacian -shift 1 -perturb 3",
};
enum { SYMMETRIC = (int)(sizeof symmetric / sizeof *symmetric) };

START_TEST(rows_are_ascending_and_counted)
{
    for (int i = 0; i < SYMMETRIC; i++) {
        whole w = make(symmetric[i]);

        check_rows(&w, symmetric[i]);
        drop(&w);
    }
    whole w = make("rmat 9 5"), c = make("convection 5 4 3");
    whole b = make("blocks 96 6 5 0.4 -perturb 2");
    check_rows(&w, "rmat");
    check_rows(&c, "convection");
    check_rows(&b, "blocks");
    drop(&w);
    drop(&c);
    drop(&b);
}
END_TEST

/* Every entry is in one of the blocks, and there are as many as stated. */
START_TEST(blocks_have_their_fill)
{
    static const double fill[] = {0, 0.25, 0.75, 1};
    const int64_t n = 512, size = 8, count = 4;

    for (int q = 0; q < 4; q++) {
        char line[80];

        snprintf(line, sizeof line, "blocks 512 8 4 %g", fill[q]);
        whole w = make(line);
        for (int64_t i = 0; i < n; i += size) {
            bool seen[64] = {false};
            int64_t blocks = 0;

            for (int64_t p = w.rowptr[i]; p < w.rowptr[i + size]; p++)
                seen[w.col[p] / size] = true;
            for (int64_t c = 0; c < n / size; c++)
                blocks += seen[c];
            ck_assert_int_eq(blocks, fill[q] > 0 ? count : 0);
        }
        ck_assert_double_eq_tol((double)w.g.nnz / (double)(n * size * count),
                                fill[q], 0.03);
        drop(&w);
    }
}
END_TEST

START_TEST(symmetric_bit_for_bit)
{
    for (int q = 0; q < SYMMETRIC; q++) {
        whole w = make(symmetric[q]);

        ck_assert(w.g.symmetric);
        for (int64_t i = 0; i < w.g.rows; i++)
            for (int64_t p = w.rowptr[i]; p < w.rowptr[i + 1]; p++) {
                const double *other = find(&w, w.col[p], i);

                ck_assert_msg(other && !memcmp(other, &w.val[p], 8),
                              "%s: row %d, column %d", symmetric[q], (int)i,
                              (int)w.col[p]);
            }
        drop(&w);
    }
}
END_TEST

START_TEST(positive_definite)
{
    for (int q = 0; q < SYMMETRIC; q++) {
        whole w = make(symmetric[q]);
        double *e = eigenvalues(&w);

        ck_assert_msg(e[0] > 1e-12 * e[w.g.rows - 1], "%s: %g to %g",
                      symmetric[q], e[0], e[w.g.rows - 1]);
        free(e);
        drop(&w);
    }
}
END_TEST

START_TEST(perturb_changes_every_value)
{
    static const char *const line[][3] = {
        {"poisson7 6", "poisson7 6 -perturb 1", "poisson7 6 -perturb 2"},
        {"laplace27 5", "laplace27 5 -perturb 1", "laplace27 5 -perturb 2"},
        {"elasticity 4", "elasticity 4 -perturb 1",
         "elasticity 4 -perturb 2"},
        {"convection 5", "convection 5 -perturb 1",
         "convection 5 -perturb 2"},
        {"rmat 8 4", "rmat 8 4 -perturb 1", "rmat 8 4 -perturb 2"},
    };

    for (int q = 0; q < 5; q++) {
        whole a = make(line[q][0]), b = make(line[q][1]), c = make(line[q][2]);
        int64_t single = 0;

        ck_assert_int_eq(a.g.nnz, b.g.nnz);
        for (int64_t p = 0; p < a.g.nnz; p++) {
            ck_assert_int_eq(a.col[p], b.col[p]);
            ck_assert(b.val[p] != 0);
            ck_assert(b.val[p] != a.val[p] && b.val[p] != c.val[p]);
            single += b.val[p] == (double)(float)b.val[p];
        }
        ck_assert_int_lt(single, 3);        /* full precision */
        drop(&a);
        drop(&b);
        drop(&c);
    }
}
END_TEST

/* The published test vectors of Random123 for Philox4x32-10. */
START_TEST(philox_gives_the_known_answers)
{
    uint32_t w[4];

    gen_philox(0, 0, 0, w);
    ck_assert_uint_eq(w[0], 0x6627e8d5);
    ck_assert_uint_eq(w[1], 0xe169c58d);
    ck_assert_uint_eq(w[2], 0xbc57ac4c);
    ck_assert_uint_eq(w[3], 0x9b00dbd8);
}
END_TEST

/* The shares of several processes are the rows, in order. */
static void divide(const char *line, int size, int64_t most)
{
    whole w = make(line);
    int64_t at = 0, heaviest = 0;

    for (int r = 0; r < size; r++) {
        const int64_t first = gen_share(&w.g, r, size);
        const int64_t count = gen_share(&w.g, r + 1, size) - first;
        int64_t *rowptr = malloc((size_t)(count + 1) * sizeof *rowptr), nnz;
        int64_t *col = malloc((size_t)(w.g.nnz + 1) * sizeof *col);
        double *val = malloc((size_t)(w.g.nnz + 1) * sizeof *val);

        ck_assert(rowptr && col && val);
        ck_assert_int_eq(first, at);
        ck_assert_int_ge(count, 0);
        nnz = gen_count_rows(&w.g, first, count, rowptr);
        ck_assert(gen_fill_rows(&w.g, first, count, rowptr, col, val));
        ck_assert_int_eq(nnz, w.rowptr[first + count] - w.rowptr[first]);
        for (int64_t p = 0; p < nnz; p++) {
            ck_assert_int_eq(col[p], w.col[w.rowptr[first] + p]);
            ck_assert(val[p] == w.val[w.rowptr[first] + p]);
        }
        heaviest = nnz > heaviest ? nnz : heaviest;
        at += count;
        free(rowptr);
        free(col);
        free(val);
    }
    ck_assert_int_eq(at, w.g.rows);
    ck_assert_int_le(heaviest, most);
    drop(&w);
}

START_TEST(shares_are_the_rows)
{
    divide("poisson7 9 -perturb 1", 1, 5000);
    divide("poisson7 9 -perturb 1", 7, 800);
    divide("elasticity 5 4 3 -perturb 1", 64, 400);
    divide("convection 2", 8, 4);
    /* The first rows of rmat have most of the entries. */
    divide("rmat 10 8 -perturb 1", 3, 5000);
}
END_TEST

/* The file that mtxgen writes holds exactly the values of gen_fill. */
static void written_and_read(const char *line, const char *suffix)
{
    const char *mtxgen = getenv("MTXGEN");
    char path[64], command[400];
    sps_context *ctx = fixture_open_with(SPS_HOST, 2, true);
    whole w = make(line);
    sps_csr *A = NULL;

    snprintf(path, sizeof path, "check_gen-%ld.mtx%s", (long)getpid(),
             suffix);
    snprintf(command, sizeof command, "'%s' %s -quiet -o %s", mtxgen, line,
             path);
    ck_assert_int_eq(system(command), 0);
    OK(ctx, sps_csr_read(ctx, path, NULL, NULL, &A));
    ck_assert_int_eq(remove(path), 0);
    ck_assert_int_eq(A->nrow, w.g.rows);
    ck_assert_int_eq(A->ncol, w.g.columns);
    ck_assert_int_eq(A->nnz, w.g.nnz);
    ck_assert(!memcmp(A->rowptr, w.rowptr,
                      ((size_t)w.g.rows + 1) * sizeof *w.rowptr));
    ck_assert(!memcmp(A->col, w.col, (size_t)w.g.nnz * sizeof *w.col));
    ck_assert(!memcmp(A->val, w.val, (size_t)w.g.nnz * sizeof *w.val));
    sps_csr_destroy(ctx, &A);
    drop(&w);
    fixture_close(&ctx);
}

START_TEST(files_hold_the_same_bits)
{
    if (!getenv("MTXGEN")) runner_skip("MTXGEN names no program");
    written_and_read("poisson7 31 7 9 -perturb 1", "");
    written_and_read("laplace27 9 -jump -aniso 0.1 -perturb 2", ".gz");
    written_and_read("elasticity 7 -perturb 3", ".gz");
    written_and_read("convection 9 -perturb 4", "");
    written_and_read("rmat 10 8 -laplacian -perturb 5", "");
    written_and_read("rmat 10 8", ".gz");
    written_and_read("leastsquares 5000 300 -cond 1e5 -deficient 9", "");
    written_and_read("leastsquares 30 4097 -seed 5", ".gz");
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(rows_are_ascending_and_counted),
    RUNNER_TEST(blocks_have_their_fill),
    RUNNER_TEST(symmetric_bit_for_bit),
    RUNNER_TEST(positive_definite),
    RUNNER_TEST(perturb_changes_every_value),
    RUNNER_TEST(philox_gives_the_known_answers),
    RUNNER_TEST(shares_are_the_rows),
    RUNNER_TEST(files_hold_the_same_bits),
};
RUNNER_MAIN("generators", tests)
