/* SPDX-License-Identifier: BSD-3-Clause */
/* check_block_ranks.c - sps_block_read_rows by one and by several processes:
 * numbers and errors are those of sps_block_read. */
#include "tests/problems/invalid_mtx.h"
#include "tests/problems/valid_mtx.h"
#include "tests/processes/crew.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/files.h"
#include "tests/support/fixture.h"

#define COUNT(list) (sizeof list / sizeof *list)

/* What all ranks share: the file, and what one process reads of it. */
typedef struct work {
    const char *path;
    sps_read_options ro;
    int64_t whole;
    sps_status st;
    char error[1024];
    int64_t n;
    int k;
    double *x;                  /* n x k, by rows */
    fail_alloc *memory;         /* of rank 1, or NULL */
    long allowed;
} work;

static crew_member member[CREW];

static double *numbers(const sps_block *X, int64_t *n, int *k)
{
    double *x;

    sps_block_shape(X, n, k);
    x = calloc((size_t)(*n * *k) + 1, sizeof *x);
    if (*n > 0)
        ck_assert_int_eq(sps_block_get(X, 0, *k, x, *k, SPS_ROW_MAJOR,
                                       SPS_HOST), SPS_OK);
    return x;
}

static void read_alone(work *w, const char *path, int flags)
{
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);
    sps_block *X = NULL;
    int64_t rows;

    free(w->x);
    *w = (work){ .path = path, .whole = 1 };
    w->ro = (sps_read_options){ .struct_size = sizeof w->ro,
                                .strict = flags & STRICT,
                                .lenient = flags & LENIENT,
                                .max_bytes = flags & SMALL ? 4000 : 0 };
    w->st = sps_block_read(ctx, path, &w->ro, false, &X);
    if (w->st)
        snprintf(w->error, sizeof w->error, "%s", sps_context_error(ctx));
    else
        w->x = numbers(X, &w->n, &w->k);
    if (w->n > 0) w->whole = w->n;
    else if (sps_file_sizes(ctx, path, &rows, NULL, NULL) == SPS_OK && rows > 0)
        w->whole = rows;                   /* what an invalid file says */
    sps_block_destroy(&X);
    fixture_close(&ctx);
}

/* Ranks may have no rows where there are few. */
static int64_t first_of(const work *w, int size, int r)
{
    return w->whole >= size ? crew_first(w->whole, size, r)
                            : r < w->whole ? r : w->whole;
}

static void read_rank(crew_member *m)
{
    const work *w = m->data;
    const int size = m->all->size;
    const int64_t first = first_of(w, size, m->rank);
    const int64_t rows = first_of(w, size, m->rank + 1) - first;
    sps_block *X = NULL;
    int64_t n;
    double *x;
    int k;

    if (m->rank == 1 && w->memory) fail_alloc_allow(w->memory, w->allowed);
    m->st = sps_block_read_rows(m->ctx, w->path, &w->ro, first, rows, w->whole,
                                &X);
    if (m->st) return;
    x = numbers(X, &n, &k);
    if (n != rows || k != w->k ||
        memcmp(x, w->x + first * k, (size_t)(n * k) * sizeof *x))
        m->st = SPS_EBUG;
    free(x);
    sps_block_destroy(&X);
}

static void read_by(const char *text, int size, work *w)
{
    ck_assert_msg(crew_run(member, size, read_rank, w), "%.300s: %d ranks: a "
                  "deadlock, or a lost message", text, size);
}

/* in_parts: the file must have been read so, by one exchange. */
static void compare(const char *text, int size, work *w, bool in_parts)
{
    read_by(text, size, w);
    for (int r = 0; r < size; r++)
        ck_assert_msg(member[r].st == w->st && !strcmp(member[r].error,
                      w->error), "%.300s, rank %d of %d: %d %s, not %d %s",
                      text, r, size, (int)member[r].st, member[r].error,
                      (int)w->st, w->error);
    ck_assert_msg(member[0].all->exchanges == in_parts, "%.300s", text);
}

START_TEST(valid_files_give_the_rows_of_one_process)
{
    work w = { .x = NULL };

    for (size_t i = 0; i < COUNT(valid_mtx); i++) {
        const struct valid_mtx *v = &valid_mtx[i];
        const bool array = strstr(v->text, "array") &&
                           strstr(v->text, "general");

        if (v->props & SPS_INTERLEAVED || v->nrow == 0 || v->ncol == 0)
            continue;
        read_alone(&w, files_text("valid.mtx", v->text), 0);
        ck_assert_int_eq(w.st, SPS_OK);
        for (int size = 1; size <= 5; size++)
            compare(v->text, size, &w, array && size > 1);
    }
    free(w.x);
    files_clean();
}
END_TEST

START_TEST(invalid_files_give_the_error_of_one_process)
{
    work w = { .x = NULL };

    for (size_t i = 0; i < COUNT(invalid_mtx); i++) {
        const struct invalid_mtx *v = &invalid_mtx[i];

        if (!strstr(v->text, "array") && !(v->flags & BLOCK)) continue;
        read_alone(&w, files_bytes("invalid.mtx", v->text, v->size), v->flags);
        if (w.st == SPS_OK) continue;      /* invalid as a matrix only */
        for (int size = 1; size <= 3; size++)
            compare(v->text, size, &w, false);
    }
    free(w.x);
    files_clean();
}
END_TEST

START_TEST(long_files_are_read_in_parts)
{
    static const int sizes[] = { 1, 2, 3, 5, 8, 16 };
    const int64_t n = fixture_env("SPS_TEST_QUICK") ? 400 : 9000;
    work w = { .x = NULL };

    for (int k = 1; k <= 7; k += 6) {
        char *text = malloc((size_t)(n * k) * 30 + 200), *t = text;

        t += sprintf(t, BANNER "array real general\n%% c\n%d %d\n", (int)n, k);
        for (int64_t p = 0; p < n * k; p++) {
            if (p % 777 == 5) t += sprintf(t, "%% a comment\n\n");
            t += sprintf(t, "%.17g\n", (double)(p * p % 1000003) / 7);
        }
        read_alone(&w, files_text("long.mtx", text), 0);
        for (size_t s = 0; s < COUNT(sizes); s++)
            compare("long", sizes[s], &w, sizes[s] > 1);
        strcpy(t - 3, "x\n");              /* the last line is wrong */
        read_alone(&w, files_text("long.mtx", text), 0);
        ck_assert_int_eq(w.st, SPS_EPARSE);
        compare("last line", 3, &w, false);
        free(text);
    }
    free(w.x);
    files_clean();
}
END_TEST

START_TEST(another_number_of_rows_is_refused)
{
    work w = { .x = NULL };

    read_alone(&w, files_text("valid.mtx", valid_mtx[20].text), 0);
    w.whole = 3;
    w.st = SPS_ESHAPE;
    for (int size = 1; size <= 3; size++) {
        read_by("rows", size, &w);
        for (int r = 0; r < size; r++)
            ck_assert_msg(member[r].st == SPS_ESHAPE && strstr(member[r].error,
                          "2 rows, but the matrix has 3"), "%d: %s",
                          (int)member[r].st, member[r].error);
    }
    free(w.x);
    files_clean();
}
END_TEST

START_TEST(a_process_out_of_memory_ends_the_call_on_all)
{
    work w = { .x = NULL };
    fail_alloc f;
    int failures = 0;

    read_alone(&w, files_text("valid.mtx", valid_mtx[20].text), 0);
    w.memory = &f;
    do {
        memset(&f, 0, sizeof f);
        f.allowed = -1;
        member[1].host = fail_alloc_host(&f);
        read_by("memory", 2, &w);
        ck_assert_msg(member[0].st == (member[1].st ? SPS_EPEER : SPS_OK) &&
                      (!member[1].st || member[1].st == SPS_ENOMEM),
                      "allocation %ld: %d %s, %d %s", w.allowed,
                      (int)member[0].st, member[0].error, (int)member[1].st,
                      member[1].error);
        failures += member[1].st != SPS_OK;
        w.allowed++;
    } while (f.fired);
    member[1].host = NULL;
    ck_assert_int_gt(failures, 10);
    free(w.x);
    files_clean();
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(valid_files_give_the_rows_of_one_process),
    RUNNER_TEST(invalid_files_give_the_error_of_one_process),
    RUNNER_TEST(long_files_are_read_in_parts),
    RUNNER_TEST(another_number_of_rows_is_refused),
    RUNNER_TEST(a_process_out_of_memory_ends_the_call_on_all),
};

RUNNER_MAIN("block_ranks", tests)
