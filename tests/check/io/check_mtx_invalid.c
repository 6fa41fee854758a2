/* SPDX-License-Identifier: BSD-3-Clause */
/* check_mtx_invalid.c - files that must be rejected, memory that runs out, and
 * random corruptions. */
#include "tests/support/files.h"
#include "tests/support/fixture.h"
#include "tests/problems/invalid_mtx.h"
#include "tests/support/runner.h"
#include "tests/problems/valid_mtx.h"

#define COUNT(list) (sizeof list / sizeof *list)

static sps_status read_any(sps_context *ctx, const char *path, int flags)
{
    sps_read_options ro = {.struct_size = sizeof ro,
                           .strict = flags & STRICT,
                           .lenient = flags & LENIENT,
                           .max_bytes = flags & SMALL ? 4000 : 0};
    sps_csr *A = NULL;
    sps_block *X = NULL;
    sps_status st;

    if (flags & BLOCK)
        st = sps_block_read(ctx, path, &ro, false, &X);
    else
        st = sps_csr_read(ctx, path, &ro, NULL, &A);
    ck_assert(st == SPS_OK || (A == NULL && X == NULL));
    sps_csr_destroy(ctx, &A);
    sps_block_destroy(&X);
    return st;
}

/* Bytes allocated by the context, and no live handles: nothing leaked. */
static size_t bytes_held(sps_context *ctx)
{
    sps_context_info info = {.struct_size = sizeof info};

    OK(ctx, sps_context_information(ctx, &info));
    ck_assert_int_eq(info.live_objects, 0);
    return info.host_bytes;
}

static void assert_refused(sps_context *ctx, const struct invalid_mtx *v,
                           const char *path)
{
    char where[64];
    sps_status st = read_any(ctx, path, v->flags);

    ck_assert_msg(st == v->status, "status %d, not %d:\n%.300s\n%s", (int)st,
                  (int)v->status, v->text, st ? sps_context_error(ctx) : "");
    snprintf(where, sizeof where, "invalid.mtx:%d: ", v->line);
    ck_assert_msg(strstr(sps_context_error(ctx), where) != NULL,
                  "no \"%s\" in \"%s\":\n%.300s", where, sps_context_error(ctx),
                  v->text);
    ck_assert_msg(strstr(strchr(sps_context_error(ctx), ':'), v->word) != NULL,
                  "no \"%s\" in \"%s\":\n%.300s", v->word,
                  sps_context_error(ctx), v->text);
}

START_TEST(invalid_files_are_refused_by_line_and_reason)
{
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);
    size_t held = bytes_held(ctx);

    ck_assert_uint_ge(COUNT(invalid_mtx), 85);
    for (size_t i = 0; i < COUNT(invalid_mtx); i++) {
        const struct invalid_mtx *v = &invalid_mtx[i];
        assert_refused(ctx, v, files_bytes("invalid.mtx", v->text, v->size));
        ck_assert_uint_eq(bytes_held(ctx), held);
    }
    fixture_close(&ctx);
    files_clean();
}
END_TEST

/* The size of a compressed file does not limit the number of entries in the
 * same way, so that the error may differ there; all other errors must be the
 * same. */
START_TEST(packed_invalid_files_are_refused_alike)
{
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);

    for (size_t i = 0; i < COUNT(invalid_mtx); i++) {
        const struct invalid_mtx *v = &invalid_mtx[i];
        size_t size = v->size;
        unsigned char *packed = files_pack(v->text, &size);
        const char *path = files_bytes("invalid.mtx", packed, size);

        if (strcmp(v->word, "announced") == 0)
            ck_assert_int_ne(read_any(ctx, path, v->flags), SPS_OK);
        else
            assert_refused(ctx, v, path);
        free(packed);
    }
    fixture_close(&ctx);
    files_clean();
}
END_TEST

START_TEST(gzip_cut_off_or_broken_is_refused)
{
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);
    static const char text[] = BANNER "coordinate real general\n3 3 3\n"
                               "1 1 1.25\n2 2 -3.5\n3 3 12\n";
    size_t size = sizeof text - 1, refused = 0;
    unsigned char *packed = files_pack(text, &size);

    for (size_t cut = 2; cut < size; cut++) {
        ck_assert_int_eq(read_any(ctx, files_bytes("cut.mtx", packed, cut), 0),
                         SPS_EPARSE);
        ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "cut.mtx"));
    }
    for (size_t i = 10; i < size; i++) {
        packed[i] ^= 0x10;
        refused += read_any(ctx, files_bytes("broken.mtx", packed, size), 0) ==
                   SPS_EPARSE;
        packed[i] ^= 0x10;
    }
    ck_assert_uint_eq(refused, size - 10);
    packed = realloc(packed, size + 4);
    memcpy(packed + size, "tail", 4);
    ck_assert_int_eq(read_any(ctx, files_bytes("tail.mtx", packed, size + 4),
                              0), SPS_EPARSE);
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "not gzip"));
    free(packed);
    fixture_close(&ctx);
    files_clean();
}
END_TEST

START_TEST(a_gzip_bomb_is_refused)
{
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);
    size_t size = (size_t)40 << 20, bytes = size;
    char *text = malloc(size);
    unsigned char *packed;
    int head = sprintf(text, BANNER "coordinate real general\n1 1 1\n");
    sps_context_info info = {.struct_size = sizeof info};

    memset(text + head, '\n', size - (size_t)head);
    packed = files_pack(text, &bytes);
    ck_assert_int_eq(read_any(ctx, files_bytes("bomb.mtx", packed, bytes), 0),
                     SPS_EPARSE);
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "longer than"));
    OK(ctx, sps_context_information(ctx, &info));
    ck_assert_uint_lt(info.host_peak, (size_t)40 << 20);
    free(text);
    free(packed);
    fixture_close(&ctx);
    files_clean();
}
END_TEST

/* -------------------------------------------------------------- memory */

typedef struct purse {
    int64_t left;              /* calls that still succeed; < 0: all */
    int64_t held;              /* blocks not freed */
    int64_t calls;
} purse;

static void *purse_alloc(size_t bytes, void *data)
{
    purse *p = data;

    p->calls++;
    if (p->left == 0) return NULL;
    if (p->left > 0) p->left--;
    p->held++;
    return malloc(bytes);
}

static void purse_free(void *block, size_t bytes, void *data)
{
    (void)bytes;
    if (block) ((purse *)data)->held--;
    free(block);
}

static sps_context *open_with(purse *p)
{
    const sps_allocator hooks = {sizeof hooks, purse_alloc, purse_free, p};
    sps_context_options o;
    sps_context *ctx = NULL;
    const char *why = "";

    sps_context_options_default(&o);
    o.place = SPS_HOST;
    o.threads = 1;
    o.host = &hooks;
    ck_assert_msg(sps_context_create(&o, &ctx, &why) == SPS_OK, "%s", why);
    return ctx;
}

static sps_status write_any(sps_context *ctx, const char *path)
{
    int64_t rowptr[] = {0, 1, 2};
    int32_t col[] = {0, 1};
    double val[] = {1, 2};
    sps_csr A = {.nrow = 2, .ncol = 2, .nnz = 2, .rowptr = rowptr, .col = col,
                 .val = val, .dtype = SPS_F64, .place = SPS_HOST,
                 .own = SPS_BORROW, .struct_size = sizeof A};

    return sps_csr_write(ctx, path, &A, false);
}

/* Every allocation fails once; the failure is reported, nothing leaks, and the
 * next attempt works. */
static void starve(const char *path, int flags, bool writing)
{
    purse p = {.left = -1};
    sps_context *ctx = open_with(&p);
    int64_t held = p.held, n = 0;
    sps_status st;

    do {
        p.left = n++;
        st = writing ? write_any(ctx, path) : read_any(ctx, path, flags);
        p.left = -1;
        ck_assert_msg(st == SPS_OK || st == SPS_ENOMEM, "%s, call %d: %d %s",
                      path, (int)n, (int)st, sps_context_error(ctx));
        /* notes and the error text may stay allocated */
        ck_assert_int_le(p.held, held + 64);
    } while (st != SPS_OK);
    ck_assert_int_gt(n, writing ? 2 : 5);
    ck_assert_int_eq(bytes_held(ctx) > ((size_t)1 << 16), 0);
    sps_context_destroy(&ctx);
    ck_assert_int_eq(p.held, 0);
}

START_TEST(every_failed_allocation_is_survived)
{
    static const char twice[] = BANNER "coordinate real symmetric\n4 4 6\n"
                                "4 1 3\n% c\n\n2 1 1\n1 1 5\n2 1 2\n"
                                "4 4 1\n3 2 1\n";
    static const char both[] = BANNER "coordinate real symmetric\n2 2 2\n"
                               "2 1 1\n1 2 1\n";
    size_t size;
    unsigned char *packed;

    for (size_t i = 0; i < COUNT(valid_mtx); i += 3) {
        size = strlen(valid_mtx[i].text);
        packed = files_pack(valid_mtx[i].text, &size);
        starve(files_text("a.mtx", valid_mtx[i].text), 0, false);
        starve(files_bytes("a.mtx.gz", packed, size), 0, false);
        if (valid_mtx[i].ncol > 0 &&
            !(valid_mtx[i].props & SPS_INTERLEAVED))
            starve(files_text("b.mtx", valid_mtx[i].text), BLOCK, false);
        free(packed);
    }
    starve(files_text("twice.mtx", twice), 0, false);
    starve(files_text("twice.mtx", twice), BLOCK, false);
    starve(files_text("both.mtx", both), LENIENT, false);
    starve(files_path("out.mtx"), 0, true);
    starve(files_path("out.mtx.gz"), 0, true);
    files_clean();
}
END_TEST

/* -------------------------------------------------------------- corruptions */

static uint64_t state = 99;

static size_t draw(size_t below)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (size_t)(state >> 33) % below;
}

/* Bytes flipped, removed, duplicated, or replaced by others of the format. */
static size_t mutate(char *text, size_t size)
{
    static const char spice[] = "0123456789.-+eEdD% \t\r\n\n%x,\0naif";

    for (size_t n = 1 + draw(1 + draw(3)); n > 0 && size > 0; n--) {
        size_t at = draw(size), span = 1 + draw(12);
        if (span > size - at) span = size - at;
        switch (draw(5)) {
        case 0:
            text[at] = (char)(text[at] ^ 1 << draw(8));
            break;
        case 1:
            text[at] = spice[draw(sizeof spice)];
            break;
        case 2:
            size = at;
            break;
        case 3:
            memmove(text + at, text + at + span, size - at - span);
            size -= span;
            break;
        default:
            memmove(text + at + span, text + at, size - at);
            size += span;
        }
    }
    return size;
}

START_TEST(mutated_files_are_read_or_refused)
{
    const char *value = getenv("SPS_TEST_LONG");
    int64_t rounds = value && *value == '1' ? 100000 : 4000, good = 0;
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);

    for (int64_t i = 0; i < rounds; i++) {
        const char *from = valid_mtx[draw(COUNT(valid_mtx))].text;
        size_t size = strlen(from);
        char *text = malloc(size + 128);
        unsigned char *packed = NULL;
        sps_status st;

        memcpy(text, from, size);
        if (i % 4 == 3) {              /* corrupt before or after compression */
            bool inside = draw(2);
            if (inside) size = mutate(text, size);
            packed = files_pack(text, &size);
            packed = realloc(packed, size + 128);
            if (!inside) size = mutate((char *)packed, size);
        } else {
            size = mutate(text, size);
        }
        st = read_any(ctx, files_bytes("m.mtx", packed ? (char *)packed : text,
                                       size), (int)draw(16) & ~SMALL);
        ck_assert_msg(st == SPS_OK || st == SPS_EPARSE || st == SPS_ENOMEM,
                      "%d: %s", (int)st, sps_context_error(ctx));
        good += st == SPS_OK;
        free(packed);
        free(text);
    }
    ck_assert_int_gt(good, rounds / 100);
    ck_assert_int_lt(good, rounds * 49 / 50);
    fixture_close(&ctx);
    files_clean();
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(invalid_files_are_refused_by_line_and_reason),
    RUNNER_TEST(packed_invalid_files_are_refused_alike),
    RUNNER_TEST(gzip_cut_off_or_broken_is_refused),
    RUNNER_TEST(a_gzip_bomb_is_refused),
    RUNNER_TEST(every_failed_allocation_is_survived),
    RUNNER_TEST(mutated_files_are_read_or_refused),
};

RUNNER_MAIN("mtx_invalid", tests)
