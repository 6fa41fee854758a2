/* SPDX-License-Identifier: BSD-3-Clause */
/* check_amg_order.c - the order of the aggregates on grids. */
#include "tests/check/amg/amg_fixture.h"
#include "tests/support/runner.h"

/* What the rows of a generated matrix tell of its grid, b rows a node. */
static uint64_t grid_of(const char *line, int b)
{
    uint64_t grid[SPS_COARSE_SAMPLES];
    whole w = make(line);
    const int64_t nodes = w.g.rows / b;

    for (int s = 0; s < SPS_COARSE_SAMPLES; s++) {
        const int64_t i = spsi_coarse_sample(nodes, s), p = w.rowptr[i * b];

        ck_assert_int_lt(i, nodes);
        grid[s] = spsi_coarse_grid(w.col + p, w.rowptr[i * b + 1] - p, b, i);
    }
    drop(&w);
    return spsi_coarse_majority(grid);
}

static uint64_t grid(int64_t line, int64_t plane)
{
    return (uint64_t)plane << 32 | (uint64_t)line;
}

START_TEST(lines_and_planes_are_found)
{
    ck_assert_uint_eq(grid_of("poisson7 20 17 12", 1), grid(20, 340));
    ck_assert_uint_eq(grid_of("laplace27 31 16 20 -jump", 1), grid(31, 496));
    ck_assert_uint_eq(grid_of("laplace27 40 40 1", 1), grid(40, 0));
    ck_assert_uint_eq(grid_of("elasticity 15 20 14", 3), grid(15, 300));
    ck_assert_uint_eq(grid_of("rmat 10 8 -laplacian -shift 1", 1), 0);
}
END_TEST

/* Whether the places of n nodes are the numbers 0 .. n - 1, and the first ones are
 * in the first 8 lines. */
static void examine_places(int64_t line, int64_t plane, int64_t n)
{
    bool *used = calloc((size_t)n, sizeof *used);

    for (int64_t i = 0; i < n; i++) {
        const int64_t at = spsi_coarse_place(grid(line, plane), n, i);

        ck_assert(at >= 0 && at < n && !used[at]);
        used[at] = true;
        if (line > 0 && n >= 8 * line && at < 8 * line)
            ck_assert_int_lt(plane ? i % plane / line : i / line, 8);
    }
    free(used);
}

START_TEST(places_are_a_permutation)
{
    examine_places(0, 0, 30);
    examine_places(9, 0, 9 * 21);
    examine_places(9, 0, 9 * 8 + 5);
    examine_places(16, 16 * 16, 16 * 16 * 16);
    examine_places(11, 11 * 9, 11 * 9 * 19 + 7);
    examine_places(40, 0, 25);
}
END_TEST

/* Returns the mean number of distinct columns of `count` neighbouring rows. */
static double distinct(const sps_csr *A, int count)
{
    int64_t *seen = calloc((size_t)A->ncol, sizeof *seen), sum = 0;

    for (int64_t p = 0, i = 0; i < A->nrow; i++)
        for (; p < A->rowptr[i + 1]; p++) {
            const int64_t stamp = i / count + 1;

            sum += seen[A->col[p]] != stamp;
            seen[A->col[p]] = stamp;
        }
    free(seen);
    return (double)sum / (double)A->nrow * count;
}

/* 64 rows of the next level have 288 distinct columns; 678 in the order of the
 * roots line after line, and 876 if roots of both phases are apart. */
START_TEST(neighbours_share_columns)
{
    amg_case c;
    amg_image x;

    amg_open(&c, "poisson7 40", 2, 1);
    x = amg_look(amg_make(&c), 1);
    ck_assert_msg(distinct(x.A, 64) < 350, "%g columns", distinct(x.A, 64));
    amg_forget(c.ctx, &x);
    amg_close(&c);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(lines_and_planes_are_found),
    RUNNER_TEST(places_are_a_permutation),
    RUNNER_TEST(neighbours_share_columns),
};
RUNNER_MAIN("amg_order", tests)
