/* SPDX-License-Identifier: BSD-3-Clause */
/* check_twofold.c - H + L = W + V + A X diag(c) in twice the working precision:
 * exact integers first, then sums with complete cancellation compared with
 * 113-bit arithmetic, both implementations of the CPU (fused multiply-add,
 * Dekker's splitting) and the one of the device. */
#include <check.h>
#include <float.h>
#include <math.h>

#include "core/backend.h"
#include "tests/support/callback.h"
#include "tests/support/fixture.h"
#include "tests/support/frame.h"
#include "operator/operator.h"
#include "tests/support/oracle.h"
#include "tests/support/runner.h"
#include "tests/support/wide.h"
#include "tests/problems/zoo.h"

sps_status twofold_split(const sps_csr_local *A, const sps_twofold_args *args);

static sps_context *ctx;

static void open_context(void) { ctx = runner_context(); }
static void close_context(void) { fixture_close(&ctx); }

/* --- one case: a matrix, blocks, and the reference */

typedef struct trial {
    sps_csr *A;
    sps_operator *op;
    int k;
    double *c, *x, *w, *v, *h, *l;   /* host arrays with ld k */
    bool split;                      /* by Dekker's splitting, on the host */
    bool bare;                       /* A is the identity and not passed */
} trial;

static double *room(int64_t count)
{
    double *p = calloc((size_t)count + 1, sizeof *p);

    ck_assert_ptr_nonnull(p);
    return p;
}

static trial trial_of(sps_csr *A, int k, zoo_values values, bool split)
{
    trial t = { .A = A, .k = k, .split = split };

    OK(ctx, sps_operator_csr(ctx, A, k, NULL, &t.op));
    t.c = zoo_block(1, k, k, 5, values);
    t.x = zoo_block(A->ncol, k, k, 6, values);
    t.w = zoo_block(A->nrow, k, k, 7, values);
    t.v = zoo_block(A->nrow, k, k, 8, values);
    t.h = room(A->nrow * k);
    t.l = room(A->nrow * k);
    return t;
}

static void trial_free(trial *t)
{
    sps_operator_destroy(&t->op);
    zoo_free(&t->A);
    free(t->c), free(t->x), free(t->w), free(t->v), free(t->h), free(t->l);
}

/* Form of the call: which arguments are given, and which share memory. */
typedef struct form {
    bool c, W, V, L, in_place;
} form;

static const form forms[] = {
    { false, true,  false, false, false },   /* a residual W - A X */
    { false, true,  false, false, true },
    { true,  false, false, true,  false },   /* A X diag(c), unevaluated */
    { true,  true,  true,  false, true },    /* adds the two parts */
    { true,  true,  true,  true,  true },
    { true,  true,  true,  true,  false },
    { true,  false, true,  false, false },
};

/* Runs t in guarded memory, with ld and alignment depending on `odd`; returns h
 * and l. */
static void run(trial *t, const form *f, bool odd)
{
    const int64_t n = t->A->nrow, ld = odd ? t->k + 3 : spsi_block_ld(t->k);
    const bool low = f->L || (f->V && f->in_place);
    frame X = frame_make(ctx, t->A->ncol, t->k, ld, odd, t->x, t->k);
    frame W = frame_make(ctx, n, t->k, ld, odd, t->w, t->k);
    frame V = frame_make(ctx, n, t->k, ld, odd, t->v, t->k);
    frame H = frame_make(ctx, n, t->k, ld, odd, NULL, 0);
    frame L = frame_make(ctx, n, t->k, ld, odd, NULL, 0);
    frame *h = f->in_place ? &W : &H, *l = f->V && f->in_place ? &V : &L;
    const sps_twofold_args args = {
        .c = f->c ? t->c : NULL, .X = X.X, .W = f->W ? W.X : NULL,
        .V = f->V ? V.X : NULL, .H = h->X, .L = f->L ? l->X : NULL };

    if (t->split) OK(ctx, twofold_split(t->bare ? NULL : &t->op->local, &args));
    else if (t->bare) OK(ctx, ctx->backend->twofold(NULL, &args));
    else OK(ctx, spsi_operator_twofold(t->op, &args, NULL));
    frame_read(h, t->k, t->h);
    if (low) frame_read(l, t->k, t->l);
    frame_free(&X), frame_free(&W), frame_free(&V), frame_free(&H);
    frame_free(&L);
}

/* Largest |h + l - exact| relative to its bound: u |h| where L is not wanted,
 * plus 4 (m + 4) u^2 times the sum of magnitudes. */
static double worst(const trial *t, const form *f)
{
    const double u = DBL_EPSILON / 2;
    double top = 0;

    for (int64_t e = 0; e < t->A->nrow * t->k; e++) {
        const int64_t i = e / t->k, j = e % t->k;
        const wide c = f->c ? t->c[j] : -1;
        wide sum = (f->W ? t->w[e] : 0) + (wide)(f->V ? t->v[e] : 0);
        wide size = sum < 0 ? -sum : sum, part, off;
        double may;

        for (int64_t p = t->A->rowptr[i]; p < t->A->rowptr[i + 1]; p++) {
            part = spsi_csr_value(t->A, p) *
                   (wide)t->x[t->A->col[p] * t->k + j] * c;
            sum += part;
            size += part < 0 ? -part : part;
        }
        may = 4 * u * u * (double)size *
              (double)(t->A->rowptr[i + 1] - t->A->rowptr[i] + 4);
        if (!f->L) may += u * fabs(t->h[e]);
        off = t->h[e] + (wide)(f->L ? t->l[e] : 0) - sum;
        if (off != 0) top = fmax(top, fabs((double)off) / may);
        if (f->L) ck_assert(fabs(t->l[e]) <= u * fabs(t->h[e]));
    }
    return top;
}

#define EACH_WAY(split)                                                        \
    for (int split = 0; split < (runner_place() == SPS_HOST ? 2 : 1); split++)

/* Each family of matrices has a third of the widths, in the long form all. */
START_TEST(integers_are_exact_in_every_form_and_width)
{
    static const int widths[] = { 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 24, 33, 70 };

    EACH_WAY(split)
        for (int f = 0; f < zoo_count(); f++)
            for (int w = f % 3; w < 13; w += runner_long() ? 1 : 3) {
                trial t = trial_of(zoo_matrix(f, 200, 3, ZOO_INTEGER,
                                              w % 2 ? SPS_F32 : SPS_F64),
                                   widths[w], ZOO_INTEGER, split);

                for (int g = 0; g < 7; g++) {
                    run(&t, &forms[g], (w + g) % 2);
                    ck_assert_msg(worst(&t, &forms[g]) == 0,
                                  "%s, k %d, form %d", zoo_name(f), t.k, g);
                }
                trial_free(&t);
            }
}
END_TEST

START_TEST(no_matrix_is_the_identity)
{
    static const int widths[] = { 1, 2, 7, 8, 17, 70 };

    EACH_WAY(split)
        for (int w = 0; w < 6; w++) {
            sps_csr *A = zoo_matrix(zoo_find("diagonal"), 200, 3, ZOO_INTEGER,
                                    SPS_F64);
            bool whole = w % 2;
            trial t;

            for (int64_t p = 0; p < A->nnz; p++) ((double *)A->val)[p] = 1;
            t = trial_of(A, widths[w], whole ? ZOO_INTEGER : ZOO_RANDOM, split);
            t.bare = true;
            for (int g = 0; g < (whole ? 7 : 3); g++) {
                run(&t, &forms[g], (w + g) % 2);
                ck_assert_msg(worst(&t, &forms[g]) <= !whole, "k %d, form %d",
                              t.k, g);
            }
            trial_free(&t);
        }
}
END_TEST

/* W cancels the rounded product, so that only its rounding errors remain, and
 * the terms of the product have magnitudes of 2^-80 to 2^80. */
START_TEST(sums_that_cancel_keep_their_digits)
{
    static const int widths[] = { 1, 2, 5, 8, 16, 19, 40 };
    static const form plain = { true, false, false, false, false };

    EACH_WAY(split)
        for (int f = 0; f < zoo_count(); f++)
            for (int w = f % 3; w < 7; w += runner_long() ? 1 : 3) {
                trial t = trial_of(zoo_matrix(f, 300, 3, ZOO_SCALES,
                                              w % 3 ? SPS_F64 : SPS_F32),
                                   widths[w], ZOO_RANDOM, split);
                double ratio;

                run(&t, &plain, false);
                for (int64_t e = 0; e < t.A->nrow * t.k; e++) {
                    t.w[e] = -t.h[e];
                    t.v[e] *= t.h[e] * DBL_EPSILON;
                }
                for (int g = 0; g < 7; g++) {
                    run(&t, &forms[g], w % 2);
                    ratio = worst(&t, &forms[g]);
                    ck_assert_msg(ratio <= 1, "%s, k %d, form %d: %g times "
                                  "the bound", zoo_name(f), t.k, g, ratio);
                }
                trial_free(&t);
            }
}
END_TEST

/* A x - 1 A x, where the unevaluated sum of the first product is an input of
 * the second. */
START_TEST(a_pair_less_itself_is_zero)
{
    static const form pair = { true, false, false, true, false };
    static const form join = { false, true, true, false, true };

    EACH_WAY(split) {
        trial t = trial_of(zoo_matrix(zoo_find("grid5"), 900, 3, ZOO_SCALES,
                                      SPS_F64), 6, ZOO_RANDOM, split);

        for (int j = 0; j < t.k; j++) t.c[j] = 1;
        run(&t, &pair, false);
        memcpy(t.w, t.h, (size_t)(900 * t.k) * sizeof *t.w);
        memcpy(t.v, t.l, (size_t)(900 * t.k) * sizeof *t.v);
        run(&t, &join, false);
        for (int e = 0; e < 900 * t.k; e++) ck_assert(t.h[e] == 0);
        trial_free(&t);
    }
}
END_TEST

/* Infinities and NaN as in plain sums; numbers near the largest double, where
 * Dekker's splitting overflows. */
START_TEST(numbers_at_the_end_of_doubles_are_what_they_should_be)
{
    static const form residual = { false, true, false, true, false };

    EACH_WAY(split) {
        trial t = trial_of(zoo_matrix(zoo_find("diagonal"), 5, 3, ZOO_INTEGER,
                                      SPS_F64), 3, ZOO_INTEGER, split);
        double *a = (double *)t.A->val, third = 0x1.5555555555555p0;

        a[0] = a[1] = 1, a[2] = 0x1p1000 * third, a[3] = 0x1p500, a[4] = 2;
        OK(ctx, sps_operator_set_values(t.op, a, SPS_HOST));
        for (int j = 0; j < 3; j++) {
            t.x[j] = INFINITY, t.x[3 + j] = NAN, t.x[6 + j] = third;
            t.x[9 + j] = 0x1p600, t.x[12 + j] = 0x1p1022;
            t.w[j] = 1, t.w[3 + j] = 1, t.w[9 + j] = 1, t.w[12 + j] = 0;
            t.w[6 + j] = a[2] * third;
        }
        run(&t, &residual, false);
        for (int j = 0; j < 3; j++) {
            ck_assert(isinf(t.h[j]) && t.h[j] < 0 && t.l[j] == 0);
            ck_assert(isnan(t.h[3 + j]) && t.l[3 + j] == 0);
            ck_assert(t.h[6 + j] == -fma(a[2], third, -t.w[6 + j]));
            ck_assert(t.h[6 + j] != 0 && t.l[6 + j] == 0);
            ck_assert(isinf(t.h[9 + j]) && t.h[9 + j] < 0 && t.l[9 + j] == 0);
            ck_assert(t.h[12 + j] == -0x1p1023 && t.l[12 + j] == 0);
        }
        trial_free(&t);
    }
}
END_TEST

START_TEST(rows_long_and_empty_and_any_threads_give_the_same_bits)
{
    static const int32_t length[] = { 0, 1, 3000, 2, 0, 17, 8, 700 };
    static const form pair = { true, true, true, true, false };
    double *h = NULL, *l = NULL;
    const int threads = ctx->threads;

    for (int turn = 0; turn < 3; turn++) {
        trial t = trial_of(zoo_rows(4000, 5000, length, 8, 0, 2, ZOO_RANDOM,
                                    SPS_F64), 5, ZOO_RANDOM, false);
        const size_t bytes = (size_t)(4000 * t.k) * sizeof *h;

        for (int e = 0; e < 4000 * t.k; e++) t.v[e] *= t.w[e] * DBL_EPSILON;
        ctx->threads = turn == 1 ? 1 : threads;
        run(&t, &pair, turn == 2);
        ck_assert(worst(&t, &pair) <= 1);
        if (!h) h = room(4000 * t.k), l = room(4000 * t.k);
        if (turn == 0) memcpy(h, t.h, bytes), memcpy(l, t.l, bytes);
        ck_assert(!memcmp(h, t.h, bytes) && !memcmp(l, t.l, bytes));
        trial_free(&t);
    }
    ctx->threads = threads;
    free(h), free(l);
}
END_TEST

/* The host code of a callback: Y = alpha A X + beta Y, counting calls. */
typedef struct caller {
    const sps_csr *A;
    int calls;
} caller;

static int times(double alpha, const double *X, int64_t ldx, double beta,
                 double *Y, int64_t ldy, int64_t n, int k, void *stream,
                 void *data)
{
    caller *c = data;

    (void)n, (void)stream;
    c->calls++;
    oracle_spmm(c->A, alpha, X, ldx, beta, Y, ldy, k, NULL);
    return 0;
}

static void by_callback(trial *t, const form *f)
{
    caller host = { .A = t->A };
    callback c = { ctx, times, &host };
    sps_operator *op = NULL;
    sps_block *X = fixture_block(ctx, 400, 4, t->x, 4);
    sps_block *W = fixture_block(ctx, 400, 4, t->w, 4);
    sps_block *V = fixture_block(ctx, 400, 4, t->v, 4);
    sps_block *H = fixture_block(ctx, 400, 4, NULL, 0);
    sps_block *L = fixture_block(ctx, 400, 4, NULL, 0);
    sps_block *R = fixture_block(ctx, 400, 4, NULL, 0);
    sps_block *h = f->in_place ? W : H, *l = f->in_place ? V : L;

    OK(ctx, sps_operator_user(ctx, 400, callback_anywhere, &c, 0, &op));
    OK(ctx, spsi_operator_twofold(op, &(sps_twofold_args){
        .c = f->c ? t->c : NULL, .X = X, .W = f->W ? W : NULL,
        .V = f->V ? V : NULL, .H = h, .L = f->L ? l : NULL }, R));
    ck_assert_int_eq(host.calls, 1);
    OK(ctx, sps_block_get(h, 0, 4, t->h, 4, SPS_ROW_MAJOR, SPS_HOST));
    OK(ctx, sps_block_get(l, 0, 4, t->l, 4, SPS_ROW_MAJOR, SPS_HOST));
    sps_operator_destroy(&op);
    sps_block_destroy(&X), sps_block_destroy(&W), sps_block_destroy(&V);
    sps_block_destroy(&H), sps_block_destroy(&L), sps_block_destroy(&R);
}

/* One call each; the low part is that of V, since the callback works in
 * doubles. */
START_TEST(a_callback_gives_the_same_in_doubles)
{
    for (int g = 0; g < 7; g++) {
        trial t = trial_of(zoo_matrix(zoo_find("grid5"), 400, 3, ZOO_INTEGER,
                                      SPS_F64), 4, ZOO_INTEGER, false);

        by_callback(&t, &forms[g]);
        for (int e = 0; forms[g].L && e < 1600; e++) {
            ck_assert(t.l[e] == (forms[g].V ? t.v[e] : 0));
            t.h[e] += t.l[e];
            t.l[e] = 0;
        }
        ck_assert_msg(worst(&t, &forms[g]) == 0, "form %d", g);
        trial_free(&t);
    }
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(integers_are_exact_in_every_form_and_width),
    RUNNER_TEST(no_matrix_is_the_identity),
    RUNNER_TEST(sums_that_cancel_keep_their_digits),
    RUNNER_TEST(a_pair_less_itself_is_zero),
    RUNNER_TEST(numbers_at_the_end_of_doubles_are_what_they_should_be),
    RUNNER_TEST(rows_long_and_empty_and_any_threads_give_the_same_bits),
    RUNNER_TEST(a_callback_gives_the_same_in_doubles),
};
RUNNER_MAIN_WITHIN("twofold", tests, open_context, close_context)
