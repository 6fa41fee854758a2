/* SPDX-License-Identifier: BSD-3-Clause */
/* check_files_fuzz.c - every reader, given files that were cut off and changed
 * at random: it returns a matrix or block that is whole, or a text that names
 * the file.  To be run under the sanitizers above all.
 *
 * SPS_FUZZ_ROUNDS=N   changes of each file (default 300)
 * SPS_FUZZ_FOLDER=DIR takes the files of this folder instead of the seeds */
#include <dirent.h>

#include "tests/problems/file_seeds.h"
#include "tests/support/fixture.h"
#include "tests/support/runner.h"

static uint64_t state = 88172645463325252u;

static uint64_t draw(uint64_t below)       /* xorshift64 (Marsaglia, 2003) */
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

static int rounds(void)
{
    const char *text = getenv("SPS_FUZZ_ROUNDS");

    return text ? atoi(text) : 300;
}

static void assert_told(sps_context *ctx, sps_status st, const char *path)
{
    if (st == SPS_OK) return;
    ck_assert_msg(st == SPS_EPARSE || st == SPS_ENOMEM || st == SPS_EMATRIX,
                  "status %d: %s", (int)st, sps_context_error(ctx));
    ck_assert_msg(st == SPS_EMATRIX || strstr(sps_context_error(ctx), path),
                  "\"%s\" does not name %s", sps_context_error(ctx), path);
}

static void read_all_ways(sps_context *ctx, const char *path)
{
    sps_read_options ro = {.struct_size = sizeof ro, .max_bytes = 1 << 24,
                           .lenient = draw(2), .strict = draw(2),
                           .allow_nonfinite = draw(2)};
    int64_t rows = 0, columns = 0, entries = 0, n;
    sps_csr *A = NULL;
    sps_block *X = NULL;
    sps_status st;
    int k;

    assert_told(ctx, sps_csr_read(ctx, path, &ro, NULL, &A), path);
    if (A) {
        OK(ctx, sps_csr_check(ctx, A));
        ck_assert_int_le(A->rowptr[A->nrow], 1 << 24);
        sps_csr_destroy(ctx, &A);
    }
    st = sps_block_read(ctx, path, &ro, draw(2), &X);
    assert_told(ctx, st, path);
    if (X) {
        sps_block_shape(X, &n, &k);
        ck_assert(n >= 0 && k >= 1);
        sps_block_destroy(&X);
    }
    assert_told(ctx, sps_file_sizes(ctx, path, &rows, &columns, &entries),
                path);
    ck_assert(rows >= 0 && columns >= 0 && entries >= 0);
}

/* Bytes that headers have in places: ends of ranges, digits, signs. */
static unsigned char odd_byte(void)
{
    static const unsigned char odd[] = {0, 1, 0x7f, 0x80, 0xff, '0', '9', '-',
                                        ' ', '\n', '(', ')', ',', 'E', 'n'};

    return draw(3) ? odd[draw(sizeof odd)] : (unsigned char)draw(256);
}

/* Changes some bytes, or removes, repeats or moves a piece. */
static size_t change(unsigned char *p, size_t size, size_t room)
{
    const size_t at = draw(size), n = 1 + draw(size - at);
    const uint64_t what = draw(10);

    if (what < 7) {
        for (uint64_t i = 1 + draw(4); i > 0; i--) p[draw(size)] = odd_byte();
    } else if (what == 7) {
        memmove(p + at, p + at + n, size - at - n);
        size -= n;
    } else if (what == 8 && size + n <= room) {
        memmove(p + at + n, p + at, size - at);
        size += n;
    } else {
        memmove(p + draw(size - n + 1), p + at, n);
    }
    return size;
}

static void shake(sps_context *ctx, const seed *s)
{
    const size_t room = 2 * s->file.size + 1;
    unsigned char *p = malloc(room);

    for (int i = 0; i < rounds(); i++) {
        size_t size = s->file.size;

        memcpy(p, s->file.bytes, size);
        for (uint64_t n = 1 + draw(3); n > 0 && size > 0; n--)
            size = change(p, size, room);
        read_all_ways(ctx, files_bytes(s->name, p, size));
    }
    free(p);
}

/* After every byte where there are few, otherwise at 400 places. */
static void cut(sps_context *ctx, const seed *s)
{
    const size_t step = 1 + s->file.size / 400;

    for (size_t size = 0; size < s->file.size; size += step)
        read_all_ways(ctx, files_bytes(s->name, s->file.bytes, size));
}

static int seeds_of_folder(const char *folder, seed s[SEEDS_MOST])
{
    static char names[SEEDS_MOST][64];
    DIR *d = opendir(folder);
    struct dirent *e;
    char path[1024];
    int count = 0;

    ck_assert_ptr_nonnull(d);
    while ((e = readdir(d)) && count < SEEDS_MOST) {
        size_t size;
        char *text;

        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        text = files_read(path, &size);
        snprintf(names[count], sizeof names[count], "%.63s", e->d_name);
        s[count].name = names[count];
        s[count++].file = seed_bytes(text, size);
        free(text);
    }
    closedir(d);
    return count;
}

static int more_seeds(seed s[SEEDS_MOST], int count)
{
    const seed more[] = {
        {"vec.petsc", SEED_LITERAL(SEED_PETSC SEED_PETSC_VECTORS)},
        {"mat64.petsc", SEED_LITERAL(SEED_PETSC_64)},
        {"b.csv", SEED_LITERAL("x,y\n1,2\n3,4e5\n-5,6\n")},
        {"b.txt", SEED_LITERAL("# b\n1 2.5\n3 4e5\n-5 .6\n")},
    };

    memcpy(s + count, more, sizeof more);
    return count + (int)(sizeof more / sizeof *more);
}

static int make_seeds(seed s[SEEDS_MOST])
{
    const char *folder = getenv("SPS_FUZZ_FOLDER");

    return folder ? seeds_of_folder(folder, s) : more_seeds(s, seeds_make(s));
}

static void each(void (*treat)(sps_context *, const seed *))
{
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);
    seed s[SEEDS_MOST];
    int count = make_seeds(s);

    for (int i = 0; i < count; i++) {
        treat(ctx, &s[i]);
        archive_free(&s[i].file);
    }
    fixture_close(&ctx);
    files_clean();
}

START_TEST(files_that_are_cut_off_are_told)
{
    each(cut);
}
END_TEST

START_TEST(files_that_were_changed_at_random_are_read_or_told)
{
    each(shake);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(files_that_are_cut_off_are_told),
    RUNNER_TEST(files_that_were_changed_at_random_are_read_or_told),
};

RUNNER_MAIN("files_fuzz", tests)
