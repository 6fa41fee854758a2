/* SPDX-License-Identifier: BSD-3-Clause */
/* check_stream_order.c - the order of copies, products and the host's share of
 * a streamed product: it holds whatever is late, and fails as it must where a
 * wait is left out. */
#include "tests/check/operator/stream_fixture.h"

/* ------------------------------------------------------------------- order */

/* An operator of n rows of 16 entries. */
static sps_operator *of_rows(int64_t n, sps_csr **A_p)
{
    static const int64_t lengths[] = { 16 };

    *A_p = matrix(lengths, 1, n, n);
    limit_for(*A_p, 2, (size_t)6 << 20);
    return operator_with(ctx, *A_p, 2, "auto");
}

/* One whose panels have all the same number of rows, so that the image of one
 * is laid out as that of another, and a product with the wrong one reads what
 * exists.  The matrix is large enough for panels of the least size, 1 MB, which
 * does not depend on n. */
static sps_operator *alike(sps_csr **A_p, sps_operator **want_p)
{
    const int64_t least = (int64_t)1 << 18;
    sps_operator *op = of_rows(least, A_p);
    const int64_t rows = streaming(op)->panel[0].is.rows;

    sps_operator_destroy(&op);
    zoo_free(A_p);
    op = of_rows((least / rows + 1) * rows, A_p);
    for (int64_t i = 0; i < streaming(op)->panels; i++)
        ck_assert_int_eq(streaming(op)->panel[i].is.rows, rows);
    *want_p = operator_with(near, *A_p, 2, "spmm.plain");
    ck_assert_int_gt(streaming(op)->ring.panels,
                     2 * streaming(op)->ring.slots);
    ck_assert_int_ge(streaming(op)->ring.slots, SPS_RING_SLOTS);
    streaming(op)->test.share = -1;
    return op;
}

static void part(sps_csr **A_p, sps_operator **op_p, sps_operator **want_p)
{
    sps_operator_destroy(op_p);
    sps_operator_destroy(want_p);
    zoo_free(A_p);
}

START_TEST(late_stages_and_spoilt_slots_change_no_bit)
{
    sps_operator *op, *want;
    sps_csr *A;

    GPU_ONLY();
    op = alike(&A, &want);
    streaming(op)->test.poison = true;
    for (unsigned stage = 0; stage <= SPS_STREAM_RELEASE;
         stage = stage ? 2 * stage : 1) {
        streaming(op)->test.late = stage;
        products_are(op, want, 2, 3);
    }
    part(&A, &op, &want);
}
END_TEST

/* Tools of compute-sanitizer run kernels and copies one at a time, so that a
 * wait that is left out changes nothing. */
#define AT_ONCE_ONLY()                                                         \
    GPU_ONLY();                                                                \
    if (runner_quick()) runner_leave_out("needs kernels and copies at once")

/* The two passes after a good one, with a wait left out and the other side of
 * it late, must not both be right. */
static bool notices(unsigned omit, unsigned late)
{
    sps_operator *op, *want;
    sps_csr *A;
    double *right;
    bool noticed = false;

    op = alike(&A, &want);
    right = product(want, 2);
    free(product(op, 2));
    streaming(op)->test.omit = omit;
    streaming(op)->test.late = late;
    for (int i = 0; i < 2; i++) {
        double *y = product(op, 2);

        noticed = noticed || !same(y, right, 2 * op->n);
        free(y);
    }
    free(right);
    part(&A, &op, &want);
    return noticed;
}

START_TEST(a_product_that_does_not_wait_for_its_copy_is_noticed)
{
    AT_ONCE_ONLY();
    ck_assert(notices(SPS_STREAM_COPIED, SPS_STREAM_COPY));
    ck_assert(!notices(0, SPS_STREAM_COPY));
}
END_TEST

START_TEST(a_copy_that_does_not_wait_for_the_release_is_noticed)
{
    AT_ONCE_ONLY();
    ck_assert(notices(SPS_STREAM_RELEASED, SPS_STREAM_PRODUCT));
    ck_assert(!notices(0, SPS_STREAM_PRODUCT));
}
END_TEST

/* Y = A X recorded once, with late products, replayed, and made anew behind
 * each replay. */
START_TEST(recorded_products_and_others_share_the_slots)
{
    sps_operator *op, *want;
    sps_csr *A;
    sps_block *X = NULL, *Y = NULL, *Z = NULL;
    void *recording = NULL;
    double *y, *z, *right;
    int64_t numbers;

    GPU_ONLY();
    op = alike(&A, &want);
    numbers = 2 * op->n;
    y = malloc((size_t)numbers * sizeof *y);
    z = malloc((size_t)numbers * sizeof *z);
    X = fixture_block(ctx, op->ncol, 2, NULL, 0);
    Y = fixture_block(ctx, op->n, 2, NULL, 0);
    Z = fixture_block(ctx, op->n, 2, NULL, 0);
    OK(ctx, sps_block_random(X, 3));
    OK(ctx, sps_operator_apply(op, 1.0, X, 0.0, Z));
    OK(ctx, ctx->backend->sync(ctx));
    right = malloc((size_t)numbers * sizeof *right);
    OK(ctx, sps_block_get(Z, 0, 2, right, 2, SPS_ROW_MAJOR, SPS_HOST));
    streaming(op)->test.late = SPS_STREAM_PRODUCT;
    OK(ctx, ctx->backend->record_begin(ctx));
    OK(ctx, sps_operator_apply(op, 1.0, X, 0.0, Y));
    OK(ctx, ctx->backend->record_end(ctx, &recording));
    OK(ctx, ctx->backend->replay(ctx, recording));
    OK(ctx, sps_operator_apply(op, 1.0, X, 0.0, Z));
    OK(ctx, ctx->backend->replay(ctx, recording));
    OK(ctx, sps_operator_apply(op, 1.0, X, 0.0, Z));
    OK(ctx, ctx->backend->sync(ctx));
    OK(ctx, sps_block_get(Y, 0, 2, y, 2, SPS_ROW_MAJOR, SPS_HOST));
    OK(ctx, sps_block_get(Z, 0, 2, z, 2, SPS_ROW_MAJOR, SPS_HOST));
    ck_assert(same(y, right, numbers) && same(z, right, numbers));
    ctx->backend->record_drop(ctx, recording);
    sps_block_destroy(&X);
    sps_block_destroy(&Y);
    sps_block_destroy(&Z);
    free(y);
    free(z);
    free(right);
    part(&A, &op, &want);
}
END_TEST

/* ------------------------------------------------------------ host's share */

START_TEST(the_share_of_the_host_has_the_same_bits_whatever_is_late)
{
    static const int64_t lengths[] = { 243, 243, 243, 0, 60 };
    const int64_t n = runner_quick() ? 10000 : 30000;
    const int step = runner_quick() ? 9 : 3;
    const unsigned all = runner_quick()
        ? SPS_STREAM_PRODUCT | SPS_STREAM_RELEASE | SPS_STREAM_DOWN |
          SPS_STREAM_HOST : SPS_STREAM_HOST;
    sps_operator *op, *want;
    sps_csr *A;

    GPU_ONLY();
    A = matrix(lengths, 5, n, n);
    for (int64_t i = 0; i < A->nrow; i += 5)     /* three rows of a node */
        for (int e = 243; e < 729; e++)
            A->col[A->rowptr[i] + e] = A->col[A->rowptr[i] + e % 243];
    want = operator_with(near, A, 19, "spmm.plain");
    limit_for(A, 19, (size_t)3 << 20);
    op = operator_with(ctx, A, 19, "auto");
    ck_assert_int_gt(streaming(op)->share.most, 10);
    for (int share = -1; share <= 9; share += runner_quick() ? 10 : 5) {
        streaming(op)->test.share = share;
        for (unsigned late = 0; late <= all;
             late = late ? 2 * late : runner_quick() ? all
                                                     : SPS_STREAM_PRODUCT) {
            streaming(op)->test.late = late;
            products_are(op, want, 19, 2);
            products_are(op, want, 4, 1);
            ck_assert_int_eq(streaming(op)->shared, share < 0 ? 0 : share);
        }
    }
    streaming(op)->test.share = 0;               /* by the rates */
    for (int k = 1; k <= 19; k += step) products_are(op, want, k, 6);
    part(&A, &op, &want);
}
END_TEST

/* Two products queued one behind the other, the second with another X and with
 * `share` panels of the host, the first with `before` of them, right with these
 * waits?  If the numbers differ, the second begins with slots of unknown
 * contents.  Y is spoilt before each product: a product that reads a wrong
 * panel has right sums, in the rows of that panel, and leaves its own rows as
 * they were. */
static bool products_in_a_row(unsigned omit, unsigned late, int64_t before,
                              int64_t share)
{
    sps_operator *op, *want;
    sps_csr *A;
    sps_block *X, *Z, *Y[2];
    double *y, *right[2];
    int64_t n, numbers;
    bool hold = true;

    op = alike(&A, &want);
    n = op->n;
    numbers = 2 * n;
    y = malloc((size_t)numbers * sizeof *y);
    streaming(op)->test.share = 9;
    free(product(op, 2));      /* loads all kernels, for which CUDA may wait */
    X = fixture_block(ctx, n, 2, NULL, 0);
    Z = fixture_block(ctx, n, 2, NULL, 0);
    OK(ctx, sps_block_random(Z, 8));
    for (int i = 0; i < 2; i++) Y[i] = fixture_block(ctx, n, 2, NULL, 0);
    for (int round = 0; round < 2; round++) {
        streaming(op)->test = (sps_stream_test){
            .share = round ? before : -1, .omit = round ? omit : 0,
            .late = round ? late : 0 };
        OK(ctx, sps_block_random(X, 3));
        for (int i = 0; i < 2; i++) OK(ctx, sps_block_random(Y[i], 9));
        OK(ctx, ctx->backend->sync(ctx));
        OK(ctx, sps_operator_apply(op, 1.0, X, 0.0, Y[0]));
        OK(ctx, spsi_axpby(1.0, Z, 0.0, X));
        if (round) streaming(op)->test.share = share;
        OK(ctx, sps_operator_apply(op, 1.0, X, 0.0, Y[1]));
        for (int i = 0; i < 2; i++) {
            if (!round) right[i] = malloc((size_t)numbers * sizeof *y);
            OK(ctx, sps_block_get(Y[i], 0, 2, round ? y : right[i], 2,
                                  SPS_ROW_MAJOR, SPS_HOST));
            hold = hold && (!round || same(y, right[i], numbers));
        }
    }
    sps_block_destroy(&X);
    sps_block_destroy(&Z);
    for (int i = 0; i < 2; i++) {
        sps_block_destroy(&Y[i]);
        free(right[i]);
    }
    free(y);
    part(&A, &op, &want);
    return hold;
}

START_TEST(a_share_that_does_not_wait_for_its_rows_of_x_is_noticed)
{
    AT_ONCE_ONLY();
    ck_assert(!products_in_a_row(SPS_STREAM_THERE, SPS_STREAM_DOWN, 9, 9));
    ck_assert(products_in_a_row(0, SPS_STREAM_DOWN, 9, 9));
}
END_TEST

START_TEST(rows_of_x_that_leave_before_they_are_complete_are_noticed)
{
    AT_ONCE_ONLY();
    ck_assert(!products_in_a_row(SPS_STREAM_ASKED, SPS_STREAM_PRODUCT, 9, 9));
    ck_assert(products_in_a_row(0, SPS_STREAM_PRODUCT, 9, 9));
}
END_TEST

/* The second pass copies other panels into slots that late products of the
 * first one still read.  It has no share of the host: otherwise its copies may
 * be queued on the hardware behind the one of rows of X, which waits for these
 * products. */
START_TEST(a_pass_that_does_not_wait_for_the_one_before_is_noticed)
{
    AT_ONCE_ONLY();
    ck_assert(!products_in_a_row(SPS_STREAM_BEGUN, SPS_STREAM_PRODUCT, 9, -1));
    ck_assert(products_in_a_row(0, SPS_STREAM_PRODUCT, 9, -1));
    ck_assert(products_in_a_row(0, SPS_STREAM_PRODUCT, -1, 9));
}
END_TEST

/* A host that begins 2 ms late is slower than the link alone, if no other
 * process uses the link. */
START_TEST(a_share_that_does_not_pay_is_given_up)
{
    sps_operator *op, *want;
    const sps_stream_split *split;
    sps_csr *A;

    AT_ONCE_ONLY();
    op = alike(&A, &want);
    split = &streaming(op)->share.by[1];
    streaming(op)->test.share = 0;
    streaming(op)->share.by[1].panels = 9;
    streaming(op)->test.late = SPS_STREAM_HOST;
    products_are(op, want, 2, 12);
    ck_assert_int_eq(split->panels, 0);
    ck_assert_int_eq(streaming(op)->shared, 0);
    part(&A, &op, &want);
}
END_TEST

/* Copies that are 2 ms late make a link of some MB a millisecond: the rates of
 * both sides are measured, and nearly all panels become the host's.  What is
 * predicted for others to choose by does not depend on that. */
START_TEST(a_slow_link_gives_the_host_more_panels)
{
    sps_operator *op, *want;
    sps_stream_plan *plan;
    sps_csr *A;
    double *right, passes;

    GPU_ONLY();
    op = alike(&A, &want);
    right = product(want, 2);
    plan = streaming(op);
    passes = plan->passes(op->block, 2, 1);
    ck_assert(passes > 0.1 && passes <= 1);
    plan->test.share = 0;
    plan->test.late = SPS_STREAM_COPY;
    for (int i = 0; i < 6; i++) {
        double *y = product(op, 2);

        ck_assert(same(y, right, 2 * op->n));
        free(y);
    }
    free(right);
    ck_assert(plan->share.by[1].link < 0.2 * ctx->machine.link);
    ck_assert_int_gt(plan->share.by[1].panels,
                     (plan->panels - plan->resident) * 3 / 4);
    ck_assert(plan->passes(op->block, 2, 1) == passes);
    part(&A, &op, &want);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(late_stages_and_spoilt_slots_change_no_bit),
    RUNNER_TEST(a_product_that_does_not_wait_for_its_copy_is_noticed),
    RUNNER_TEST(a_copy_that_does_not_wait_for_the_release_is_noticed),
    RUNNER_TEST(recorded_products_and_others_share_the_slots),
    RUNNER_TEST(the_share_of_the_host_has_the_same_bits_whatever_is_late),
    RUNNER_TEST(a_share_that_does_not_wait_for_its_rows_of_x_is_noticed),
    RUNNER_TEST(rows_of_x_that_leave_before_they_are_complete_are_noticed),
    RUNNER_TEST(a_pass_that_does_not_wait_for_the_one_before_is_noticed),
    RUNNER_TEST(a_share_that_does_not_pay_is_given_up),
    RUNNER_TEST(a_slow_link_gives_the_host_more_panels),
};
RUNNER_MAIN_WITHIN("stream_order", tests, open_contexts, close_contexts)
