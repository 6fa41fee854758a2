/* SPDX-License-Identifier: BSD-3-Clause */
/* check_read_chosen.c - which rows each of several processes gets of a file:
 * those that it asks for, equal numbers of rows, or whole chunks. */
#include "tests/check/io/read_ranks_fixture.h"

/* Rows of `size` ranks at random, some of them none. */
static void choose_rows(int size, uint64_t *seed, int64_t *rows)
{
    rows[0] = 0;
    for (int r = 1; r < size; r++) {
        *seed = *seed * 6364136223846793005u + 1442695040888963407u;
        rows[r] = rows[r - 1] + (int64_t)((*seed >> 33) %
                  (uint64_t)(2 * N / size));
        if (*seed >> 62 == 0) rows[r] = rows[r - 1];
        if (rows[r] > N) rows[r] = N;
    }
    rows[size] = N;
}

/* Ranks get the rows that they ask for, of whatever kind of file. */
START_TEST(chosen_rows_are_those_of_one_process)
{
    static const kind kinds[] = { { "real", "general", false },
                                  { "real", "symmetric", false },
                                  { "complex", "symmetric", false } };
    static const int sizes[] = { 2, 3, 5, 8, 16 };
    uint64_t seed = 1;

    for (size_t i = 0; i < COUNT(kinds); i++) {
        char *text = long_text(&kinds[i], 3 * N);
        size_t bytes = strlen(text);
        unsigned char *packed = files_pack(text, &bytes);
        const char *path = files_text("chosen.mtx", text);
        const char *gz = files_bytes("chosen.mtx.gz", packed, bytes);
        found all = { .st = SPS_OK };

        read_alone(path, 0, &all);
        for (size_t s = 0; s < 2 * COUNT(sizes); s++) {
            const int size = sizes[s / 2];
            int64_t rows[CREW + 1];
            work w = { .path = s % 2 ? gz : path, .chosen = rows,
                       .whole = N };

            choose_rows(size, &seed, rows);
            read_by(size, &w);
            for (int r = 0, scale = i == 2 ? 2 : 1; r < size; r++) {
                ck_assert_msg(!of_rank[r].st, "%s", of_rank[r].error);
                ck_assert_int_eq(of_rank[r].nrow,
                                 scale * (rows[r + 1] - rows[r]));
                (void)assert_rows(w.path, &all, &of_rank[r], scale * rows[r]);
                if (s % 2 == 0) assert_facts(path, &all, &of_rank[r]);
            }
            ck_assert_int_eq(exchanges, s % 2 ? 0 : 2);
        }
        forget(&all);
        free(packed);
        free(text);
        files_clean();
    }
}
END_TEST

static void assert_refused(const work *w, sps_status st, const char *words)
{
    work copy = *w;

    read_by(3, &copy);
    for (int r = 0; r < 3; r++)
        ck_assert_msg(of_rank[r].st == st && strstr(of_rank[r].error, words),
                      "rank %d: %d: %s", r, (int)of_rank[r].st,
                      of_rank[r].error);
}

START_TEST(rows_that_do_not_fit_are_refused)
{
    const kind k = { "real", "general", false };
    char *text = long_text(&k, 3 * N);
    const int64_t rows[] = { 0, 200, 400, N }, odd[] = { 1, 2, 3, N };
    work w = { .path = files_text("chosen.mtx", text), .chosen = rows,
               .whole = N + 1 };

    assert_refused(&w, SPS_ESHAPE, "3000 x 3000, but the matrix has 3001 rows");
    w.chosen = odd;
    w.whole = N;
    assert_refused(&w, SPS_EINVAL, "do not follow each other");
    w.chosen = NULL;
    w.partition = "columns";
    assert_refused(&w, SPS_EINVAL, "partition is \"columns\"");
    free(text);
    files_clean();
}
END_TEST

/* The last row has as many entries as all others. */
START_TEST(even_shares_have_equal_rows)
{
    char *text = malloc((size_t)2 * N * 32 + 100), *at = text;
    size_t size;
    const char *path[2];
    unsigned char *packed;

    at += sprintf(at, BANNER "coordinate real general\n%d %d %d\n", N, N,
                  2 * N);
    for (int i = 1; i <= N; i++)
        at += sprintf(at, "%d %d 2.5\n%d %d 1\n", i, i, N, i);
    size = strlen(text);
    packed = files_pack(text, &size);
    path[0] = files_text("even.mtx", text);
    path[1] = files_bytes("even.mtx.gz", packed, size);
    for (int i = 0; i < 4; i++) {
        work w = { .path = path[i % 2], .partition = i < 2 ? "rows" : "nnz" };

        read_by(5, &w);
        for (int r = 0; r < 5; r++) {
            ck_assert_msg(!of_rank[r].st, "%s", of_rank[r].error);
            ck_assert_msg((llabs(of_rank[r].nrow - N / 5) <= 6) == (i < 2),
                          "%s: rank %d has %d rows", w.partition, r,
                          (int)of_rank[r].nrow);
        }
    }
    free(packed);
    free(text);
    files_clean();
}
END_TEST

/* 20000 rows: chunks of 24 rows (comm.h). */
START_TEST(across_ranks_shares_begin_at_chunks)
{
    enum { ROWS = 20000, LINE = 32 };
    char *text = malloc((size_t)(ROWS + 3) * LINE), *at = text;
    const char *path;

    at += sprintf(at, "%%%%MatrixMarket matrix coordinate real general\n"
                  "%d %d %d\n", ROWS, ROWS, ROWS);
    for (int i = 1; i <= ROWS; i++) at += sprintf(at, "%d %d 2.5\n", i, i);
    path = files_text("long.mtx", text);
    for (int whole = 0; whole < 2; whole++) {    /* in parts, as a whole */
        work w = { .path = path };

        for (int r = 0; r < CREW; r++) member[r].across = true;
        if (whole) {
            size_t size = strlen(text);
            unsigned char *packed = files_pack(text, &size);

            w = (work){ .path = files_bytes("long.mtx.gz", packed, size) };
            free(packed);
        }
        read_by(7, &w);
        for (int r = 0; r < 7; r++) {
            ck_assert_msg(!of_rank[r].st, "%s", of_rank[r].error);
            ck_assert_int_eq(of_rank[r].first % 24, 0);
            ck_assert_int_lt(of_rank[r].nrow, 3000);
        }
        read_by(1, &w);
        ck_assert_int_eq(of_rank[0].whole, ROWS);
        ck_assert_int_eq(of_rank[0].nrow, ROWS);
    }
    for (int r = 0; r < CREW; r++) member[r].across = false;
    free(text);
    files_clean();
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(chosen_rows_are_those_of_one_process),
    RUNNER_TEST(rows_that_do_not_fit_are_refused),
    RUNNER_TEST(even_shares_have_equal_rows),
    RUNNER_TEST(across_ranks_shares_begin_at_chunks),
};
RUNNER_MAIN("read_chosen", tests)
