/* SPDX-License-Identifier: BSD-3-Clause */
/* check_stream_wave.c - several products with a streamed matrix in one pass:
 * a Chebyshev polynomial has the bits of one whose matrix is on the GPU, and
 * copies a band once. */
#include "driver/precond.h"
#include "tests/check/operator/stream_fixture.h"

enum { K = 4 };

enum { ROWS = 120000 };

/* A band of 61 diagonals with values that need all of their bits: 9 bytes an
 * entry, so that there are some 24 panels of a 32nd of the bound of 12. */
static sps_csr *narrow_of(int64_t n)
{
    return band_of(n, 30, (int64_t)1 << 20);
}

static sps_csr *narrow(void)
{
    return narrow_of(runner_quick() ? ROWS / 3 : ROWS);
}

/* The memory that keeps some 12 panels of A on the GPU and gives the others 7
 * or 8 slots: fewer than there are of them, and more than three products with a
 * band need. */
static size_t some_panels(const sps_csr *A)
{
    return (12 * (size_t)A->nnz + 8 * (size_t)A->nrow) * 18 / 32;
}

static sps_precond *chebyshev(sps_operator *op, int degree)
{
    sps_precond *M = NULL;
    sps_options o;

    sps_options_default(&o);
    o.precond = "chebyshev";
    o.degree = degree;
    OK(op->ctx, sps_precond_create(op, K, &o, &M));
    return M;
}

/* A block of k columns whose rows lie as those of the work blocks of M, which
 * has K columns: only products of such blocks are taken together. */
static sps_block *columns(sps_context *c, int64_t n, int k)
{
    sps_block *B = fixture_block(c, n, K, NULL, 0);

    spsi_block_narrow(B, k);
    return B;
}

/* Z = M R with random R, as row-major numbers; *sent becomes the bytes copied
 * to the device by the application alone. */
static double *applied(const sps_precond *M, int k, int64_t *sent)
{
    sps_context *c = M->ctx;
    double *z = malloc((size_t)M->n * (size_t)k * sizeof *z);
    sps_block *R = columns(c, M->n, k), *Z = columns(c, M->n, k);

    OK(c, sps_block_random(R, 3));
    *sent = -c->memory.to_device;
    OK(c, sps_precond_apply(M, R, Z));
    *sent += c->memory.to_device;
    OK(c, sps_block_get(Z, 0, k, z, k, SPS_ROW_MAJOR, SPS_HOST));
    sps_block_destroy(&R);
    sps_block_destroy(&Z);
    return z;
}

/* A polynomial of the streamed A, and the same one of A on the GPU. */
typedef struct pair {
    sps_csr *A;
    sps_operator *far, *near;
    sps_precond *streamed, *right;
} pair;

static void open_with(pair *p, sps_csr *A, int degree, size_t panels)
{
    p->A = A;
    p->near = operator_with(near, A, K, "spmm.plain");
    limit_for(A, K, panels);
    p->far = operator_with(ctx, A, K, "auto");
    ck_assert_int_gt(streaming(p->far)->resident, 0);
    ck_assert_int_lt(streaming(p->far)->ring.slots,
                     streaming(p->far)->ring.panels);
    p->right = chebyshev(p->near, degree);
    p->streamed = chebyshev(p->far, degree);
}

static void open_pair(pair *p, sps_csr *A, int degree)
{
    open_with(p, A, degree, some_panels(A));
}

/* A band of rows that all have 61 entries. */
static sps_csr *even(int64_t n)
{
    static const int64_t lengths[] = { 61 };
    sps_csr *A = row_lengths_matrix(lengths, 1, n, n, false);
    double *v = A->val;

    for (int64_t i = 0; i < n; i++) {
        int64_t first = i < 30 ? 0 : i - 30;

        if (first > n - 61) first = n - 61;
        for (int64_t e = 61 * i, j = first; j < first + 61; e++, j++) {
            A->col[e] = (int32_t)j;
            v[e] = i == j ? 70.0 : -1.0 / (1.0 + (double)((i + j) % 1048576));
        }
    }
    return A;
}

/* A pair whose panels have all the same number of rows, so that a product with
 * a wrong or half copied panel reads indices that exist.  The bound of memory
 * makes panels of 1 MB, whatever the number of rows. */
static void open_alike(pair *p)
{
    const size_t panels = (size_t)6 << 20;
    const int64_t least = (int64_t)1 << 17;
    sps_csr *A = even(least);
    sps_operator *op;
    int64_t rows;

    limit_for(A, K, panels);
    op = operator_with(ctx, A, K, "auto");
    rows = streaming(op)->panel[0].is.rows;
    sps_operator_destroy(&op);
    zoo_free(&A);
    open_with(p, even((least / rows + 1) * rows), 4, panels);
    for (int64_t i = 0; i < streaming(p->far)->panels; i++)
        ck_assert_int_eq(streaming(p->far)->panel[i].is.rows, rows);
}

static void close_pair(pair *p)
{
    sps_precond_destroy(&p->streamed);
    sps_precond_destroy(&p->right);
    sps_operator_destroy(&p->far);
    sps_operator_destroy(&p->near);
    zoo_free(&p->A);
}

/* What decides how many products one pass takes. */
static const char *in_use(sps_operator *far)
{
    static char text[160];
    const sps_stream_plan *s = streaming(far);

    snprintf(text, sizeof text, "%d of %d panels are resident, %d slots, three "
             "products use %d panels at once", (int)s->resident,
             (int)s->panels, (int)s->ring.slots,
             s->after ? (int)spsi_wave_held(s->after, s->panels, 3) : -1);
    return text;
}

/* Whether `passes` applications have the right bits; most: the largest number
 * of bytes copied by one. */
static bool applies(const pair *p, int k, int passes, int64_t most)
{
    int64_t sent;
    double *want = applied(p->right, k, &sent);
    bool right = true;

    for (int i = 0; i < passes; i++) {
        double *z = applied(p->streamed, k, &sent);

        right = right && same(z, want, p->far->n * k);
        ck_assert_msg(sent <= most, "%lld bytes are copied, %lld allowed; %s",
                      (long long)sent, (long long)most, in_use(p->far));
        free(z);
    }
    free(want);
    return right;
}

START_TEST(a_polynomial_of_degree_4_copies_a_band_once)
{
    int64_t streamed;
    pair p;

    GPU_ONLY();
    open_pair(&p, narrow(), 4);
    streamed = (int64_t)p.far->block->streamed;
    for (int k = 1; k <= K; k += 3)
        ck_assert(applies(&p, k, 3, streamed + streamed / 100));
    products_are(p.far, p.near, K, 2);
    ck_assert(applies(&p, K, 2, streamed + streamed / 100));
    ck_assert(fixture_noted(ctx, "3 products with the matrix by 1 pass"));
    ck_assert_uint_le(ctx->memory.device_peak, ctx->opt.max_device_bytes);
    close_pair(&p);
}
END_TEST

/* Seven products need nine slots. */
START_TEST(a_polynomial_of_degree_8_copies_a_band_one_and_a_half_times)
{
    sps_csr *A;
    int64_t streamed;
    pair p;

    GPU_ONLY();
    A = narrow();
    open_with(&p, A, 8, some_panels(A) / 18 * 22);
    streamed = (int64_t)p.far->block->streamed;
    ck_assert(applies(&p, 1, 2, streamed + streamed / 2));
    ck_assert(applies(&p, K, 3, streamed + streamed / 2));
    close_pair(&p);
}
END_TEST

/* Columns all over the matrix: products pass one by one, and that is said. */
START_TEST(a_matrix_without_a_band_passes_for_each_product)
{
    sps_csr *A;
    pair p;

    GPU_ONLY();
    A = narrow();
    for (int64_t i = 0; i < A->nrow; i += 1000)
        A->col[A->rowptr[i]] = 0;
    A->props = 0; /* it is not symmetric any more */
    open_pair(&p, A, 3);
    ck_assert(applies(&p, K, 2, INT64_MAX));
    ck_assert(fixture_noted(ctx, "2 products with the matrix by 2 passes"));
    close_pair(&p);
}
END_TEST

/* The band with rows that sum to a ten-thousandth of their diagonal, and so
 * many of them that copies take longer than synchronisation. */
static sps_csr *nearly_singular(void)
{
    sps_csr *A = narrow_of(ROWS);
    double *v = A->val;

    for (int64_t i = 0; i < A->nrow; i++) {
        double sum = 0;
        int64_t own = 0;

        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
            if (A->col[p] == i) own = p;
            else sum += v[p] = -1 - 1.0 / (double)(9 + (i + A->col[p]) % 8191);
        }
        v[own] = -1.0001 * sum;
    }
    return A;
}

/* One pass for all products of an application: high degrees cost little.  One
 * pass for each: no degree saves any. */
START_TEST(the_degree_is_chosen_by_the_passes_that_it_takes)
{
    GPU_ONLY();
    for (int band = 1; band >= 0; band--) {
        sps_csr *A = nearly_singular();
        pair p;

        for (int64_t i = 0; !band && i < A->nrow; i += 1000)
            A->col[A->rowptr[i]] = 0;
        if (!band) A->props = 0;
        open_with(&p, A, 0, some_panels(A) / 18 * 22);
        ck_assert_msg(band ? p.streamed->products >= 4
                           : p.streamed->products == 0,
                      "degree %d, %d on the GPU; %s",
                      p.streamed->products + 1, p.right->products + 1,
                      in_use(p.far));
        close_pair(&p);
    }
}
END_TEST

/* Returns whether auto takes a polynomial for conjugate gradients. */
static bool takes_polynomial(sps_operator *op)
{
    sps_precond *M = NULL;
    sps_options o;
    bool polynomial;

    sps_options_default(&o);
    OK(op->ctx, spsi_precond_create(op, K, &o, true, SPS_PASSES_LINEAR, &M));
    polynomial = !strcmp(M->type->name, "chebyshev");
    ck_assert(polynomial || !strcmp(M->type->name, "jacobi"));
    sps_precond_destroy(&M);
    return polynomial;
}

/* The blocks of the polynomial must have room, too. */
START_TEST(auto_takes_a_polynomial_whose_products_share_a_pass)
{
    GPU_ONLY();
    for (int band = 1; band >= 0; band--) {
        sps_csr *A = nearly_singular();
        sps_operator *far;

        for (int64_t i = 0; !band && i < A->nrow; i += 1000)
            A->col[A->rowptr[i]] = 0;
        limit_for(A, K, some_panels(A) / 18 * 22);
        far = operator_with(ctx, A, K, "auto");
        ck_assert_msg(takes_polynomial(far) == band, "%s", in_use(far));
        limit((size_t)A->nrow * K * sizeof(double) * 7);
        ck_assert(!takes_polynomial(far));
        sps_operator_destroy(&far);
        zoo_free(&A);
    }
}
END_TEST

START_TEST(late_stages_and_spoilt_slots_change_no_bit_of_a_polynomial)
{
    pair p;

    GPU_ONLY();
    open_pair(&p, narrow(), 4);
    streaming(p.far)->test.share = -1;
    streaming(p.far)->test.poison = true;
    for (unsigned stage = 0; stage <= SPS_STREAM_RELEASE;
         stage = stage ? 2 * stage : 1) {
        streaming(p.far)->test.late = stage;
        ck_assert(applies(&p, K, 2, INT64_MAX));
    }
    close_pair(&p);
}
END_TEST

/* The wait for a copy, and that for the release of a slot. */
START_TEST(a_wait_that_is_left_out_of_a_polynomial_is_noticed)
{
    static const unsigned omitted[] = { SPS_STREAM_COPIED,
                                        SPS_STREAM_RELEASED };
    static const unsigned late[] = { SPS_STREAM_COPY, SPS_STREAM_PRODUCT };
    pair p;

    GPU_ONLY();
    if (runner_quick()) runner_leave_out("needs kernels and copies at once");
    for (int i = 0; i < 2; i++) {
        open_alike(&p);
        streaming(p.far)->test.share = -1;
        streaming(p.far)->test.late = late[i];
        ck_assert(applies(&p, K, 2, INT64_MAX));
        ck_assert_msg(!fixture_noted(ctx, "by 3 passes"), "%s", in_use(p.far));
        streaming(p.far)->test.omit = omitted[i];
        ck_assert(!applies(&p, K, 2, INT64_MAX));
        close_pair(&p);
    }
}
END_TEST

START_TEST(a_polynomial_whose_copy_fails_leaves_the_next_right)
{
    sps_block *R, *Z;
    pair p;

    GPU_ONLY();
    open_pair(&p, narrow(), 4);
    R = fixture_block(ctx, p.far->n, K, NULL, 0);
    Z = fixture_block(ctx, p.far->n, K, NULL, 0);
    OK(ctx, sps_block_random(R, 3));
    for (int64_t n = 1; n < 8; n += 5) { /* at least ten are copied */
        streaming(p.far)->test.fail = n;
        ck_assert_int_ne(sps_precond_apply(p.streamed, R, Z), SPS_OK);
        ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), " bytes"));
        ck_assert(applies(&p, K, 2, INT64_MAX));
    }
    sps_block_destroy(&R);
    sps_block_destroy(&Z);
    close_pair(&p);
}
END_TEST

/* A recording of a polynomial, replayed between others. */
START_TEST(a_recorded_polynomial_and_others_share_the_slots)
{
    sps_block *R, *Z;
    void *recording = NULL;
    double *z, *want;
    int64_t sent;
    pair p;

    GPU_ONLY();
    open_pair(&p, narrow(), 4);
    want = applied(p.right, K, &sent);
    z = malloc((size_t)p.far->n * K * sizeof *z);
    R = fixture_block(ctx, p.far->n, K, NULL, 0);
    Z = fixture_block(ctx, p.far->n, K, NULL, 0);
    OK(ctx, sps_block_random(R, 3));
    ck_assert(applies(&p, K, 1, INT64_MAX));
    OK(ctx, ctx->backend->record_begin(ctx));
    OK(ctx, sps_precond_apply(p.streamed, R, Z));
    OK(ctx, ctx->backend->record_end(ctx, &recording));
    for (int i = 0; i < 3; i++) {
        OK(ctx, ctx->backend->fill(Z, 0.0));
        OK(ctx, ctx->backend->replay(ctx, recording));
        ck_assert(applies(&p, K, 1, INT64_MAX));
        OK(ctx, sps_block_get(Z, 0, K, z, K, SPS_ROW_MAJOR, SPS_HOST));
        ck_assert(same(z, want, p.far->n * K));
    }
    ctx->backend->record_drop(ctx, recording);
    sps_block_destroy(&R);
    sps_block_destroy(&Z);
    free(z);
    free(want);
    close_pair(&p);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(a_polynomial_of_degree_4_copies_a_band_once),
    RUNNER_TEST(a_polynomial_of_degree_8_copies_a_band_one_and_a_half_times),
    RUNNER_TEST(a_matrix_without_a_band_passes_for_each_product),
    RUNNER_TEST(the_degree_is_chosen_by_the_passes_that_it_takes),
    RUNNER_TEST(auto_takes_a_polynomial_whose_products_share_a_pass),
    RUNNER_TEST(late_stages_and_spoilt_slots_change_no_bit_of_a_polynomial),
    RUNNER_TEST(a_wait_that_is_left_out_of_a_polynomial_is_noticed),
    RUNNER_TEST(a_polynomial_whose_copy_fails_leaves_the_next_right),
    RUNNER_TEST(a_recorded_polynomial_and_others_share_the_slots),
};
RUNNER_MAIN_WITHIN("stream_wave", tests, open_contexts, close_contexts)
