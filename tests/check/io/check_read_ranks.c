/* SPDX-License-Identifier: BSD-3-Clause */
/* check_read_ranks.c - sps_csr_read by several processes: rows, notes, facts
 * and errors are those of one process, whether the file is read in parts or by
 * each as a whole. */
#include "tests/problems/invalid_mtx.h"
#include "tests/problems/mtx_fixture.h"
#include "tests/problems/valid_mtx.h"
#include "tests/processes/crew.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/runner.h"

#define COUNT(list) (sizeof list / sizeof *list)

/* What all ranks share. */
typedef struct work {
    const char *path, *other;   /* other: the file of rank 1, or NULL */
    int flags;
    fail_alloc *memory;         /* of rank 1, or NULL */
    long allowed;
    bool cancelled;             /* on rank 1 */
    const char *partition;
    const int64_t *chosen;      /* first row of each rank, and the number of
                                   all; NULL: the library chooses them */
    int64_t whole;
} work;

/* What a rank, or one process, has read. */
typedef struct found {
    sps_status st;
    char error[1024], notes[2048];
    sps_read_info info;
    int64_t nrow, ncol, nnz, first, whole, *rowptr, *col;
    double *val;
    unsigned props;
} found;

static crew_member member[CREW];
static found of_rank[CREW];
static int exchanges;           /* of the last crew: 2 if read in parts */

static void forget(found *f)
{
    free(f->rowptr);
    free(f->col);
    free(f->val);
    *f = (found){ .st = SPS_OK };
}

static void keep(const sps_csr *A, found *f)
{
    f->nrow = A->nrow;
    f->ncol = A->ncol;
    f->nnz = A->nnz;
    f->first = A->first;
    f->whole = A->whole;
    f->props = A->props;
    f->rowptr = calloc((size_t)A->nrow + 1, sizeof *f->rowptr);
    f->col = calloc((size_t)A->nnz + 1, sizeof *f->col);
    f->val = calloc((size_t)A->nnz + 1, sizeof *f->val);
    memcpy(f->rowptr, A->rowptr, ((size_t)A->nrow + 1) * sizeof *f->rowptr);
    for (int64_t p = 0; p < A->nnz; p++) {
        f->col[p] = A->whole > 0 ? A->global[p] : A->col[p];
        f->val[p] = ((const double *)A->val)[p];
    }
}

static void read_file(sps_context *ctx, const char *path, int flags,
                      const char *partition, const int64_t *rows,
                      int64_t whole, found *f)
{
    const sps_read_options ro = { .struct_size = sizeof ro,
                                  .strict = flags & STRICT,
                                  .lenient = flags & LENIENT,
                                  .max_bytes = flags & SMALL ? 4000 : 0,
                                  .partition = partition };
    sps_csr *A = NULL;
    const char *note;

    f->info.struct_size = sizeof f->info;
    f->st = rows ? sps_csr_read_rows(ctx, path, &ro, &f->info, rows[0],
                                     rows[1] - rows[0], whole, &A)
                 : sps_csr_read(ctx, path, &ro, &f->info, &A);
    if (f->st)
        snprintf(f->error, sizeof f->error, "%s", sps_context_error(ctx));
    if (A) keep(A, f);
    sps_csr_destroy(ctx, &A);
    for (int i = 0; (note = sps_context_note(ctx, i)); i++) {
        const size_t at = strlen(f->notes);

        snprintf(f->notes + at, sizeof f->notes - at, "%s\n", note);
    }
}

static void read_rank(crew_member *m)
{
    const work *w = m->data;
    const bool odd = m->rank == 1;

    if (odd && w->cancelled) sps_cancel(m->ctx, true);
    if (odd && w->memory) fail_alloc_allow(w->memory, w->allowed);
    read_file(m->ctx, odd && w->other ? w->other : w->path, w->flags,
              w->partition, w->chosen ? w->chosen + m->rank : NULL, w->whole,
              &of_rank[m->rank]);
}

static void read_by(int size, work *w)
{
    for (int r = 0; r < CREW; r++) forget(&of_rank[r]);
    ck_assert_msg(crew_run(member, size, read_rank, w), "%s, %d ranks: a "
                  "deadlock, or a lost message", w->path, size);
    exchanges = (int)member[0].all->exchanges;
}

static void read_alone(const char *path, int flags, found *f)
{
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);

    forget(f);
    read_file(ctx, path, flags, NULL, NULL, 0, f);
    fixture_close(&ctx);
}

/* The rows of rank r are those of the whole; returns the row after them. */
static int64_t assert_rows(const char *text, const found *all, const found *f,
                           int64_t first)
{
    ck_assert_msg(f->first == first && f->whole == all->nrow &&
                  f->ncol == all->ncol, "%.300s: rows %d to %d of %d", text,
                  (int)f->first, (int)(f->first + f->nrow), (int)f->whole);
    ck_assert_msg(f->props == all->props, "%.300s: properties %u, not %u", text,
                  f->props, all->props);
    ck_assert_int_eq(f->nnz, f->rowptr[f->nrow]);
    for (int64_t i = 0; i < f->nrow; i++) {
        const int64_t p = f->rowptr[i], q = all->rowptr[first + i];
        const int64_t n = f->rowptr[i + 1] - p;

        ck_assert_msg(n == all->rowptr[first + i + 1] - q &&
                      !memcmp(f->col + p, all->col + q, (size_t)n * 8) &&
                      !memcmp(f->val + p, all->val + q, (size_t)n * 8),
                      "%.300s: row %d differs", text, (int)(first + i));
    }
    return first + f->nrow;
}

static void assert_facts(const char *text, const found *all, const found *f)
{
    const sps_read_info *a = &all->info, *b = &f->info;

    ck_assert_msg(!strcmp(f->notes, all->notes), "%.300s: notes\n%s, not\n%s",
                  text, f->notes, all->notes);
    ck_assert_msg(!strcmp(a->field, b->field) && a->array == b->array &&
                  !strcmp(a->symmetry, b->symmetry) && a->upper == b->upper &&
                  a->lines == b->lines && a->stored == b->stored &&
                  a->duplicates == b->duplicates && a->rounded == b->rounded &&
                  a->underflows == b->underflows, "%.300s: %d lines, %d "
                  "duplicates, not %d, %d", text, (int)b->lines,
                  (int)b->duplicates, (int)a->lines, (int)a->duplicates);
}

/* All ranks have what one process has: their rows, or the same error; of a
 * valid matrix that cannot be divided, an error that says so. */
static void assert_same(const char *text, const found *all, int size)
{
    const sps_status st = all->st ? all->st
                        : all->nrow == 0 || all->ncol == 0 ? SPS_EMATRIX
                        : all->nrow != all->ncol ? SPS_EUNFIT : SPS_OK;
    int64_t first = 0;

    for (int r = 0; r < size; r++) {
        const found *f = &of_rank[r];

        ck_assert_msg(f->st == st, "%.300s: rank %d of %d: %d, not %d: %s",
                      text, r, size, (int)f->st, (int)st, f->error);
        if (all->st)
            ck_assert_msg(!strcmp(f->error, all->error), "%.300s: rank %d of "
                          "%d: '%s', not '%s'", text, r, size, f->error,
                          all->error);
        if (st) continue;
        if (all->nrow >= 2 * size) ck_assert_int_gt(f->nrow, 0);
        first = assert_rows(text, all, f, first);
        assert_facts(text, all, f);
    }
    if (st == SPS_OK) ck_assert_int_eq(first, all->nrow);
}

/* Reads the file by `size` ranks, and compares; in_parts: that it must have
 * been read so. */
static void compare(const char *text, const char *path, int flags,
                    const found *all, int size, bool in_parts)
{
    work w = { .path = path, .flags = flags };

    read_by(size, &w);
    ck_assert_msg(exchanges == (in_parts ? 2 : 0), "%.300s: %d exchanges",
                  text, exchanges);
    assert_same(text, all, size);
}

static bool divisible(const struct valid_mtx *v, const found *all)
{
    return strstr(v->text, "oordinate") && all->nrow > 0 &&
           all->nrow == all->ncol;
}

START_TEST(valid_files_give_the_rows_of_one_process)
{
    found all = { .st = SPS_OK };

    for (size_t i = 0; i < COUNT(valid_mtx); i++) {
        const struct valid_mtx *v = &valid_mtx[i];
        const char *path = files_text("valid.mtx", v->text);

        read_alone(path, 0, &all);
        for (int size = 2; size <= 5; size++)
            compare(v->text, path, 0, &all, size, divisible(v, &all) ||
                    strstr(v->text, " Coordinate ") != NULL);
        compare(v->text, path, STRICT * (all.info.duplicates == 0), &all, 3,
                divisible(v, &all) || strstr(v->text, " Coordinate ") != NULL);
    }
    forget(&all);
    files_clean();
}
END_TEST

START_TEST(invalid_files_give_the_error_of_one_process)
{
    found all = { .st = SPS_OK };

    for (size_t i = 0; i < COUNT(invalid_mtx); i++) {
        const struct invalid_mtx *v = &invalid_mtx[i];
        const char *path = files_bytes("invalid.mtx", v->text, v->size);

        if (v->flags & BLOCK) continue;
        read_alone(path, v->flags, &all);
        ck_assert_int_eq(all.st, v->status);
        for (int size = 2; size <= 5; size++) {
            work w = { .path = path, .flags = v->flags };

            read_by(size, &w);
            assert_same(v->text, &all, size);
        }
    }
    forget(&all);
    files_clean();
}
END_TEST

/* A comment of growing length moves every cut over every byte of a line. */
START_TEST(cuts_may_be_anywhere)
{
    static const char body[] = "4 4 7\r\n1 1 0.1\r\n4 2 0.2\n% c\n\n1 1 0.7\n"
                               "3 3 1e16\r\n3 3 1\n3 3 -1e16\n1 4 5";
    found all = { .st = SPS_OK };
    char text[256];

    for (int pad = 0; pad < 40; pad++) {
        const char *path;

        sprintf(text, "%scoordinate real general\n%%%*s\n%s", BANNER, pad, "",
                body);
        path = files_text("pad.mtx", text);
        read_alone(path, 0, &all);
        ck_assert_int_eq(all.st, SPS_OK);
        compare(text, path, 0, &all, 3, true);
        compare(text, path, 0, &all, 16, true);
    }
    forget(&all);
    files_clean();
}
END_TEST

/* --------------------------------------------------------------- long files */

typedef struct kind {
    const char *field, *symmetry;
    bool sorted;             /* by rows, near the diagonal; else scattered */
} kind;

enum { N = 3000 };

/* Entry p of the file: below the diagonal if the file has a symmetry. */
static void place(const kind *k, int64_t p, int64_t entries, int64_t *i,
                  int64_t *j)
{
    const uint64_t h = ((uint64_t)p + 1) * UINT64_C(0x9e3779b97f4a7c15);

    *i = k->sorted ? 1 + p * (N - 1) / entries : (int64_t)((h >> 40) % N);
    *j = k->sorted ? *i - (int64_t)(h >> 60) : (int64_t)((h >> 8) % N);
    if (*j < 0) *j = 0;
    if (strcmp(k->symmetry, "general") && *j > *i) {
        const int64_t t = *i;
        *i = *j;
        *j = t;
    }
    if (!strcmp(k->symmetry, "skew-symmetric") && *i == *j)
        *j = *i > 0 ? *i - 1 : (*i = 1, 0);
}

static char *long_text(const kind *k, int64_t entries)
{
    char *text = malloc((size_t)entries * 80 + 1024), *t = text;

    t += sprintf(t, BANNER "coordinate %s %s\n%d %d %lld\n", k->field,
                 k->symmetry, N, N, (long long)entries);
    for (int64_t p = 0; p < entries; p++) {
        const double x = (double)(int64_t)((uint64_t)p *
                                           UINT64_C(0xda942042e4dd58b5)) / 3e17;
        int64_t i, j;

        place(k, p, entries, &i, &j);
        if (p % 1000 == 999) t += sprintf(t, "%% a comment\n\n");
        t += sprintf(t, "%lld %lld", (long long)i + 1, (long long)j + 1);
        if (strcmp(k->field, "pattern")) t += sprintf(t, " %.17g", x);
        if (!strcmp(k->field, "complex")) t += sprintf(t, " %.17g", 3 - x);
        t += sprintf(t, "\n");
    }
    return text;
}

static int64_t long_entries(void)
{
    return fixture_env("SPS_TEST_QUICK") ? 6000 : 40000;
}

START_TEST(long_files_give_the_rows_of_one_process)
{
    static const kind kinds[] = {
        { "real", "general", false }, { "real", "symmetric", true },
        { "real", "skew-symmetric", false }, { "pattern", "symmetric", false },
        { "complex", "general", false },
    };
    static const int sizes[] = { 2, 3, 5, 8, 16 };
    found all = { .st = SPS_OK };

    for (size_t i = 0; i < COUNT(kinds); i++) {
        char *text = long_text(&kinds[i], long_entries());
        const char *path = files_text("long.mtx", text);

        read_alone(path, 0, &all);
        ck_assert_msg(all.st == SPS_OK, "%s", all.error);
        for (size_t s = 0; s < COUNT(sizes); s++)
            compare(kinds[i].symmetry, path, 0, &all, sizes[s], true);
        for (int r = 0; r < 16; r++)       /* shares of about equal entries */
            ck_assert_int_lt(16 * of_rank[r].nnz, 2 * all.nnz);
        free(text);
    }
    forget(&all);
    files_clean();
}
END_TEST

static void compare_error(const char *text, int flags, const char *word)
{
    found all = { .st = SPS_OK };
    const char *path = files_text("long.mtx", text);
    work w = { .path = path, .flags = flags };

    read_alone(path, flags, &all);
    ck_assert_msg(all.st == SPS_EPARSE && strstr(all.error, word), "%s",
                  all.error);
    read_by(3, &w);
    assert_same(word, &all, 3);
    forget(&all);
}

/* One thing wrong in the part of one process, or in the whole only. */
START_TEST(errors_in_long_files_have_their_lines)
{
    const kind k = { "real", "symmetric", true };
    const int64_t entries = long_entries();
    char *text = long_text(&k, entries), *last = text + strlen(text);
    char *middle = strchr(text + strlen(text) / 2, '\n') + 1, old = *middle;

    *middle = 'x';
    compare_error(text, 0, "is not a row number");
    *middle = old;
    compare_error(text, STRICT, "given before");
    sprintf(last, "%d 1 1\n", N);
    compare_error(text, 0, "too many entries");
    last[-1] = '\0';
    *strrchr(text, '\n') = '\0';
    compare_error(text, 0, "too few entries");
    free(text);
    files_clean();
}
END_TEST

START_TEST(triangles_in_two_parts_are_refused)
{
    const kind k = { "real", "symmetric", true };
    char *text = long_text(&k, long_entries());
    char *last = text + strlen(text) - 1;

    while (last[-1] != '\n') last--;
    sprintf(last, "1 %d 1\n", N);
    compare_error(text, 0, "above the diagonal");
    compare_error(text, LENIENT, "do not make a symmetric");
    free(text);
    files_clean();
}
END_TEST

/* ---------------------------------------------------------- other readings */

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

/* ------------------------------------------------------------- chosen rows */

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

START_TEST(packed_files_are_read_whole)
{
    const kind k = { "real", "general", false };
    char *text = long_text(&k, 5000);
    size_t size = strlen(text);
    unsigned char *packed = files_pack(text, &size);
    const char *path = files_bytes("long.mtx.gz", packed, size);
    found all = { .st = SPS_OK };

    read_alone(path, 0, &all);
    compare("packed", path, 0, &all, 3, false);
    forget(&all);
    free(packed);
    free(text);
    files_clean();
}
END_TEST

START_TEST(another_file_on_one_process_is_noticed)
{
    const char *one = files_text("one.mtx", valid_mtx[2].text);
    const char *two = files_text("two.mtx", valid_mtx[6].text);
    work w = { .path = one, .other = two };

    read_by(3, &w);
    for (int r = 0; r < 3; r++) {
        ck_assert_int_eq(of_rank[r].st, SPS_EPARSE);
        ck_assert_ptr_nonnull(strstr(of_rank[r].error, "different files"));
    }
    w.other = "/nowhere.mtx";
    read_by(3, &w);
    for (int r = 0; r < 3; r++)
        ck_assert_msg(of_rank[r].st == (r == 1 ? SPS_EIO : SPS_EPEER),
                      "rank %d: %d: %s", r, (int)of_rank[r].st,
                      of_rank[r].error);
    files_clean();
}
END_TEST

/* By all at once: nobody reads the whole file first. */
START_TEST(a_cancelled_process_ends_the_call_on_all)
{
    work w = { .path = files_text("one.mtx", valid_mtx[2].text),
               .cancelled = true };

    read_by(3, &w);
    for (int r = 0; r < 3; r++)
        ck_assert_msg(of_rank[r].st == SPS_EIO &&
                      strstr(of_rank[r].error, "interrupted"), "rank %d: %d: "
                      "%s", r, (int)of_rank[r].st, of_rank[r].error);
    files_clean();
}
END_TEST

START_TEST(a_process_out_of_memory_ends_the_call_on_all)
{
    const kind k = { "real", "symmetric", false };
    char *text = long_text(&k, 500);
    fail_alloc f;
    work w = { .path = files_text("memory.mtx", text), .memory = &f };
    int failures = 0;

    do {
        memset(&f, 0, sizeof f);
        f.allowed = -1;
        member[1].host = fail_alloc_host(&f);
        read_by(3, &w);
        for (int r = 0; r < 3; r++)
            ck_assert_msg(of_rank[r].st == (!f.fired ? SPS_OK : r == 1
                          ? SPS_ENOMEM : SPS_EPEER) || !of_rank[1].st,
                          "allocation %d, rank %d: %d, %s", (int)w.allowed, r,
                          (int)of_rank[r].st, of_rank[r].error);
        ck_assert_int_eq(f.live, 0);
        failures += f.fired && of_rank[1].st;
        w.allowed++;
    } while (f.fired);
    member[1].host = NULL;
    ck_assert_int_gt(failures, 20);
    free(text);
    files_clean();
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(valid_files_give_the_rows_of_one_process),
    RUNNER_TEST(invalid_files_give_the_error_of_one_process),
    RUNNER_TEST(cuts_may_be_anywhere),
    RUNNER_TEST(long_files_give_the_rows_of_one_process),
    RUNNER_TEST(errors_in_long_files_have_their_lines),
    RUNNER_TEST(triangles_in_two_parts_are_refused),
    RUNNER_TEST(across_ranks_shares_begin_at_chunks),
    RUNNER_TEST(chosen_rows_are_those_of_one_process),
    RUNNER_TEST(even_shares_have_equal_rows),
    RUNNER_TEST(rows_that_do_not_fit_are_refused),
    RUNNER_TEST(packed_files_are_read_whole),
    RUNNER_TEST(another_file_on_one_process_is_noticed),
    RUNNER_TEST(a_cancelled_process_ends_the_call_on_all),
    RUNNER_TEST(a_process_out_of_memory_ends_the_call_on_all),
};

RUNNER_MAIN("read_ranks", tests)
