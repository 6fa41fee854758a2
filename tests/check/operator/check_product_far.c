/* SPDX-License-Identifier: BSD-3-Clause */
/* check_product_far.c - C = A B on the GPU for matrices in host memory, by
 * panels of rows, of which the host computes some: the bits are those of the
 * host alone in panels of any number, and failures lose nothing. */
#include "core/team.h"
#include "cpu/known_rows.h"
#include "formats/row_parts.h"
#include "tests/conform/kernels/spgemm_fixture.h"
#include "tests/support/fail_alloc.h"

#define GPU_ONLY()                                                             \
    if (runner_place() == SPS_HOST)                                            \
    runner_leave_out("the host multiplies as a whole")

/* Returns the bytes of the columns and values of C. */
static int64_t multiply_far(sps_context *ctx, const sps_csr *A,
                            const sps_csr *B, const char *what)
{
    sps_csr *C = NULL, *want = NULL;
    int64_t bytes;

    OK(ctx, ctx->backend->csr_multiply(ctx, A, B, &C));
    OK(ctx, spsi_backends[0]->csr_multiply(ctx, A, B, &want));
    ck_assert_int_eq((int)C->place, SPS_HOST);
    ck_assert(C->props & SPS_SORTED);
    same_matrix(C, want, what);
    bytes = C->nnz * (C->dtype == SPS_F64 ? 12 : 8);
    sps_csr_destroy(ctx, &C);
    sps_csr_destroy(ctx, &want);
    return bytes;
}

/* Limits ctx to B and `more` bytes. */
static void limit(sps_context *ctx, const sps_csr *B, size_t more)
{
    ctx->opt.max_device_bytes = ctx->memory.device + 12 * (size_t)B->nnz +
                                8 * (size_t)(B->nrow + 1) + more;
}

START_TEST(products_of_the_zoo_have_the_bits_of_the_host)
{
    static const size_t more[] = { 0, (size_t)1 << 20, (size_t)1 << 23 };
    const int64_t n[] = { 0, 1, runner_quick() ? 200 : 900 };
    sps_context *ctx;

    GPU_ONLY();
    ctx = runner_context();
    for (int f = 0; f < zoo_count(); f++)
        for (int t = 0; t < 3 * 3 * 2; t++) {
            const int64_t size = n[t % 3];
            const sps_dtype type = t / 9 ? SPS_F32 : SPS_F64;
            sps_csr *A = zoo_shape(f, size + 9, size, 7, ZOO_RANDOM, type);
            sps_csr *B = zoo_shape(f, size, size + 5, 8, ZOO_RANDOM, type);

            ctx->opt.max_device_bytes = 0;
            if (more[t / 3 % 3]) limit(ctx, B, more[t / 3 % 3]);
            (void)multiply_far(ctx, A, B, zoo_name(f));
            zoo_free(&A);
            zoo_free(&B);
        }
    sps_context_destroy(&ctx);
}
END_TEST

/* Panels of all lengths down to a few rows. */
START_TEST(a_large_product_takes_little_of_the_gpu)
{
    static const int32_t length[] = { 8, 0, 30, 1, 400, 12, 25, 81 };
    const int64_t n = runner_quick() ? 500 : 5000;
    sps_context *ctx;
    sps_csr *A, *B;

    GPU_ONLY();
    ctx = runner_context();
    A = zoo_rows(n, n, length, 8, 0, 5, ZOO_RANDOM, SPS_F64);
    B = zoo_matrix(zoo_find("grid7"), n, 3, ZOO_RANDOM, SPS_F64);
    for (size_t more = (size_t)1 << 20; more <= (size_t)64 << 20; more *= 8) {
        limit(ctx, B, more);
        (void)multiply_far(ctx, A, B, "rows of all lengths");
        ck_assert_uint_le(ctx->memory.device_peak, ctx->opt.max_device_bytes);
    }
    zoo_free(&A);
    zoo_free(&B);
    sps_context_destroy(&ctx);
}
END_TEST

/* ------------------------------------------------------------ host's share */

enum { SOME = 7 };

typedef struct share {
    sps_known_rows *rows;
    int64_t n;
} share;

/* Item i: SOME rows, the last ones first. */
static void make_some(void *data, int64_t first, int64_t last)
{
    const share *s = data;

    for (; first < last; first++) {
        const int64_t end = s->n - SOME * first;

        spsi_cpu_known_rows_make(s->rows, end < SOME ? 0 : end - SOME, end);
    }
}

/* The product again, from the lengths of its rows, by all threads. */
static sps_csr *by_known_rows(sps_context *ctx, const sps_csr *A,
                              const sps_csr *B, const sps_csr *want)
{
    const int64_t n = A->nrow;
    share s = { .n = n };
    sps_csr *C = NULL;

    OK(ctx, sps_csr_create(ctx, n, B->ncol, 0, A->dtype, &C));
    memcpy(C->rowptr, want->rowptr, (size_t)(n + 1) * sizeof *C->rowptr);
    C->nnz = want->nnz;
    OK(ctx, spsi_cpu_known_rows_room(ctx, C));
    OK(ctx, spsi_cpu_known_rows_open(ctx, A, B, C, &s.rows));
    spsi_team_run(ctx, (n + SOME - 1) / SOME, (int64_t)1 << 30, make_some, &s);
    spsi_cpu_known_rows_close(&s.rows);
    ck_assert_ptr_null(s.rows);
    return C;
}

START_TEST(rows_of_known_lengths_have_the_bits_of_the_product)
{
    sps_context *ctx = fixture_open_with(SPS_HOST, 3, true);

    for (int f = 0; f < zoo_count(); f++)
        for (int t = 0; t < 4; t++) {
            const int64_t n = t / 2 ? 900 : 1;
            const sps_dtype type = t % 2 ? SPS_F32 : SPS_F64;
            sps_csr *A = zoo_shape(f, n + 9, n, 7, ZOO_RANDOM, type);
            sps_csr *B = zoo_shape(f, n, n + 5, 8, ZOO_RANDOM, type);
            sps_csr *want = NULL, *C;

            OK(ctx, ctx->backend->csr_multiply(ctx, A, B, &want));
            C = by_known_rows(ctx, A, B, want);
            same_matrix(C, want, zoo_name(f));
            sps_csr_destroy(ctx, &C);
            sps_csr_destroy(ctx, &want);
            zoo_free(&A);
            zoo_free(&B);
        }
    fixture_close(&ctx);
}
END_TEST

/* ------------------------------------------------------- parts of a product */

enum { RUN, CHOSEN, WITHOUT_ROOM, KINDS };

/* Checks rows of C against part i of A B, by the host. */
static void check_part(sps_row_parts *p, int64_t i, const sps_csr *want)
{
    const sps_row_part *part = &p->part[i];
    const int64_t *ptr = p->A->rowptr + part->first, n = part->rows;
    const size_t size = want->dtype == SPS_F64 ? 8 : 4;
    int64_t *offset = malloc((size_t)(n + 1) * sizeof *offset);
    sps_csr a = *p->A, b, *C = NULL;

    spsi_row_parts_make(p, i, true, (const int32_t **)&a.col, &b);
    ck_assert_uint_le(spsi_row_parts_bytes(&b, b.nrow, b.nnz), p->room);
    for (int64_t r = 0; r <= n; r++) offset[r] = ptr[r] - ptr[0];
    a.nrow = n;
    a.ncol = b.nrow;
    a.nnz = offset[n];
    a.rowptr = offset;
    a.val = (char *)p->A->val + (size_t)ptr[0] * size;
    OK(p->ctx, spsi_backends[0]->csr_multiply(p->ctx, &a, &b, &C));
    for (int64_t r = 0; r <= n; r++)
        ck_assert_int_eq(C->rowptr[r], want->rowptr[part->first + r] -
                                       want->rowptr[part->first]);
    ptr = want->rowptr + part->first;
    ck_assert(!C->nnz || !memcmp(C->col, want->col + ptr[0],
                                 (size_t)C->nnz * sizeof *C->col));
    ck_assert(!C->nnz || !memcmp(C->val, (char *)want->val +
                                         (size_t)ptr[0] * size,
                                 (size_t)C->nnz * size));
    sps_csr_destroy(p->ctx, &C);
    free(offset);
}

/* Checks that row i of A needs more than the room. */
static void check_row(const sps_row_parts *p, int64_t i)
{
    const sps_csr *A = p->A, *B = p->B;
    int64_t entries = 0;

    for (int64_t q = A->rowptr[i]; q < A->rowptr[i + 1]; q++)
        entries += B->rowptr[A->col[q] + 1] - B->rowptr[A->col[q]];
    ck_assert_uint_gt(spsi_row_parts_bytes(B, A->rowptr[i + 1] - A->rowptr[i],
                                           entries), p->room);
}

/* Cuts A B and checks each part; count[] becomes the number of each kind. */
static void check_parts(sps_context *ctx, const sps_csr *A, const sps_csr *B,
                        size_t room, int64_t count[KINDS])
{
    sps_row_parts p;
    sps_csr *want = NULL;
    int64_t next = 0;

    memset(count, 0, KINDS * sizeof *count);
    OK(ctx, spsi_backends[0]->csr_multiply(ctx, A, B, &want));
    OK(ctx, spsi_row_parts_open(ctx, A, B, room, 0, &p));
    for (int64_t i = 0; i < p.count; i++) {
        ck_assert_int_eq(p.part[i].first, next);
        next += p.part[i].rows;
        count[p.part[i].named < 0 ? WITHOUT_ROOM :
              p.part[i].run ? RUN : CHOSEN]++;
        if (p.part[i].named >= 0)
            check_part(&p, i, want);
        else
            for (int64_t r = p.part[i].first; r < next; r++) check_row(&p, r);
    }
    ck_assert_int_eq(next, A->nrow);
    spsi_row_parts_close(&p);
    sps_csr_destroy(ctx, &want);
}

START_TEST(parts_of_a_product_have_its_bits)
{
    sps_context *ctx = fixture_open_with(SPS_HOST, 3, true);
    int64_t count[KINDS], all[KINDS] = { 0 };

    for (int f = 0; f < zoo_count(); f++)
        for (int t = 0; t < 8; t++) {
            const int64_t n = t / 4 ? 900 : 1;
            const sps_dtype type = t % 2 ? SPS_F32 : SPS_F64;
            sps_csr *A = zoo_shape(f, n + 9, n, 7, ZOO_RANDOM, type);
            sps_csr *B = zoo_shape(f, n, n + 5, 8, ZOO_RANDOM, type);
            const size_t bytes = spsi_row_parts_bytes(B, n, B->nnz);

            check_parts(ctx, A, B, t / 2 % 2 ? bytes / 3 : bytes / 20, count);
            for (int i = 0; i < KINDS; i++) all[i] += count[i];
            check_parts(ctx, A, B, bytes, count);
            ck_assert_int_eq(count[RUN], 1);
            ck_assert_int_eq(count[CHOSEN] + count[WITHOUT_ROOM], 0);
            zoo_free(&A);
            zoo_free(&B);
        }
    for (int i = 0; i < KINDS; i++) ck_assert_int_gt(all[i], 100);
    fixture_close(&ctx);
}
END_TEST

/* Rows of B that follow each other are not copied, and not taken twice. */
START_TEST(parts_of_a_band_read_b_once)
{
    sps_context *ctx = fixture_open_with(SPS_HOST, 2, true);
    const int64_t n = 60000;
    sps_csr *A = zoo_matrix(zoo_find("tridiagonal"), n, 3, ZOO_RANDOM, SPS_F64);
    const size_t all = spsi_row_parts_bytes(A, n, A->nnz);
    sps_row_parts p;
    int64_t entries = 0;

    OK(ctx, spsi_row_parts_open(ctx, A, A, all / 4, 100, &p));
    for (int64_t i = 0; i < p.count; i++) {
        ck_assert(p.part[i].run);
        entries += p.part[i].entries;
    }
    ck_assert_int_le(p.count, 6);
    ck_assert_int_le(entries, A->nnz + 12 * p.count);
    spsi_row_parts_close(&p);
    zoo_free(&A);
    fixture_close(&ctx);
}
END_TEST

/* Each row of A names rows of B of its own. */
START_TEST(parts_that_read_b_for_each_entry_are_not_made)
{
    static const int32_t length[] = { 5 };
    sps_context *ctx = fixture_open_with(SPS_HOST, 2, true);
    const int64_t n = 20000;
    sps_csr *A = zoo_rows(n, n, length, 1, 0, 5, ZOO_RANDOM, SPS_F64);
    const size_t all = spsi_row_parts_bytes(A, n, A->nnz);
    sps_row_parts p;

    for (int64_t q = 0; q < A->nnz; q++)
        A->col[q] = (int32_t)(q % 5 * (n / 5) + q / 5 * 3203 % (n / 5));
    for (int least = 0; least <= 4; least += 4) {
        OK(ctx, spsi_row_parts_open(ctx, A, A, all / 20, least, &p));
        ck_assert(least ? p.count == 0 : p.count >= 20);
        spsi_row_parts_close(&p);
    }
    zoo_free(&A);
    fixture_close(&ctx);
}
END_TEST

/* Each of them computes rows: those of the GPU are copied to the host. */
START_TEST(host_and_gpu_share_a_large_product)
{
    static const int32_t length[] = { 30, 28, 0, 40, 25 }, ten[] = { 10 };
    const int64_t n = 160000;
    sps_context *ctx;
    sps_csr *A, *B;
    int64_t down, made;

    GPU_ONLY();
    if (runner_quick()) runner_leave_out("a product of 300 MB");
    A = zoo_rows(n, n, length, 5, 0, 5, ZOO_RANDOM, SPS_F64);
    B = zoo_rows(n, n, ten, 1, 0, 6, ZOO_RANDOM, SPS_F64);
    for (int limited = 0; limited < 2; limited++) {
        ctx = runner_context();
        if (limited) limit(ctx, B, (size_t)150 << 20);
        down = -ctx->memory.to_host;
        made = multiply_far(ctx, A, B, "a large product");
        down += ctx->memory.to_host;
        ck_assert_int_ge(made, (int64_t)256 << 20);
        ck_assert_int_gt(down, made / 64);
        if (ctx->threads > 1) ck_assert_int_lt(down, made);
        if (limited)
            ck_assert_uint_le(ctx->memory.device_peak,
                              ctx->opt.max_device_bytes);
        sps_context_destroy(&ctx);
    }
    zoo_free(&A);
    zoo_free(&B);
}
END_TEST

/* The caller's product takes the GPU, and the host where that has no room. */
START_TEST(the_product_of_the_caller_is_the_same_with_and_without_room)
{
    const int64_t n = 500000;
    sps_context *ctx;
    sps_csr *A, *C = NULL, *want = NULL;

    GPU_ONLY();
    if (runner_quick()) runner_leave_out("a matrix of 64 MB");
    ctx = runner_context();
    A = zoo_matrix(zoo_find("grid7"), n, 3, ZOO_RANDOM, SPS_F64);
    ck_assert_int_ge(24 * A->nnz, (int64_t)64 << 20);
    OK(ctx, spsi_backends[0]->csr_multiply(ctx, A, A, &want));
    for (int room = 0; room < 2; room++) {
        const int64_t sent = ctx->memory.to_device;

        ctx->opt.max_device_bytes = room ? 0 : ctx->memory.device + 1000;
        OK(ctx, sps_csr_multiply(ctx, A, A, &C));
        same_matrix(C, want, "the caller's product");
        ck_assert((ctx->memory.to_device - sent >= 12 * A->nnz) == (room > 0));
        sps_csr_destroy(ctx, &C);
    }
    sps_csr_destroy(ctx, &want);
    zoo_free(&A);
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(every_device_allocation_may_fail_and_nothing_is_lost)
{
    sps_context_options co;
    fail_alloc f = { .allowed = -1 };
    sps_context *ctx = NULL;
    sps_csr *A, *C = NULL;
    sps_status st = SPS_EDEVMEM;

    GPU_ONLY();
    A = zoo_matrix(zoo_find("grid7"), 3000, 3, ZOO_RANDOM, SPS_F64);
    sps_context_options_default(&co);
    co.place = SPS_CUDA;
    co.gpu = fail_alloc_device(&f);
    OK(NULL, sps_context_create(&co, &ctx, NULL));
    for (long n = 0; st != SPS_OK; n++) {
        const long live = f.live;
        const size_t host = ctx->memory.host;

        ck_assert_int_lt(n, 200);
        limit(ctx, A, (size_t)1 << 20);
        fail_alloc_allow(&f, n);
        st = ctx->backend->csr_multiply(ctx, A, A, &C);
        if (st == SPS_OK) continue;
        ck_assert_int_eq(st, SPS_EDEVMEM);
        ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "bytes"));
        ck_assert_int_eq(f.live, live);
        ck_assert_uint_eq(ctx->memory.host, host);
    }
    sps_csr_destroy(ctx, &C);
    sps_context_destroy(&ctx);
    ck_assert_int_eq(f.live, 0);
    ck_assert_int_eq(f.mismatches, 0);
    zoo_free(&A);
}
END_TEST

static sps_status share_nothing(sps_context *c, size_t bytes, void **p_p)
{
    (void)p_p;
    return spsi_fail(c, SPS_ENOMEM, "no %zu bytes of page-locked memory",
                     bytes);
}

/* The panels end with an error, and the caller's product on the host. */
START_TEST(without_page_locked_memory_the_host_multiplies)
{
    const int64_t n = runner_quick() ? 3000 : 500000;
    sps_context *ctx;
    const sps_backend *real;
    sps_backend poor;
    sps_csr *A, *C = NULL, *want = NULL;
    size_t device, host;

    GPU_ONLY();
    ctx = runner_context();
    A = zoo_matrix(zoo_find("grid7"), n, 3, ZOO_RANDOM, SPS_F64);
    real = ctx->backend;
    OK(ctx, real->csr_multiply(ctx, A, A, &want));   /* makes scratch */
    poor = *real;
    poor.share = share_nothing;
    device = ctx->memory.device;
    host = ctx->memory.host;
    ctx->backend = &poor;
    ck_assert_int_eq(poor.csr_multiply(ctx, A, A, &C), SPS_ENOMEM);
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "bytes"));
    ck_assert_ptr_null(C);
    ck_assert_uint_eq(ctx->memory.device, device);
    ck_assert_uint_eq(ctx->memory.host, host);
    OK(ctx, sps_csr_multiply(ctx, A, A, &C));
    ctx->backend = real;
    same_matrix(C, want, "by the host");
    sps_csr_destroy(ctx, &C);
    sps_csr_destroy(ctx, &want);
    zoo_free(&A);
    sps_context_destroy(&ctx);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(products_of_the_zoo_have_the_bits_of_the_host),
    RUNNER_TEST(a_large_product_takes_little_of_the_gpu),
    RUNNER_TEST(rows_of_known_lengths_have_the_bits_of_the_product),
    RUNNER_TEST(parts_of_a_product_have_its_bits),
    RUNNER_TEST(parts_of_a_band_read_b_once),
    RUNNER_TEST(parts_that_read_b_for_each_entry_are_not_made),
    RUNNER_TEST(host_and_gpu_share_a_large_product),
    RUNNER_TEST(the_product_of_the_caller_is_the_same_with_and_without_room),
    RUNNER_TEST(without_page_locked_memory_the_host_multiplies),
    RUNNER_TEST(every_device_allocation_may_fail_and_nothing_is_lost),
};
RUNNER_MAIN("product_far", tests)
