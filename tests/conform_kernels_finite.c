/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_kernels_finite.c - NaN and infinity reach what they multiply and
 * nothing else. */
#include "conform_kernels.h"

/* Whether row i stores column c. */
static bool stores(const sps_csr *A, int64_t i, int64_t c)
{
    for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
        if (A->col[p] == c) return true;
    return false;
}

/* Y = A X where X is finite but for (c, j): a row that stores c is not finite
 * in column j; all else is right, but that kernels without
 * SPS_NAN_STAYS_IN_ROW may spoil other rows, in column j alone. */
static void poison_x(const exam *e, int k, int64_t c, int j, double value)
{
    const sps_kernel *kernel = e->r.plan->kernel;
    const bool strict = kernel->gives & SPS_NAN_STAYS_IN_ROW;
    const trial t = { k, layout++, 1, 0, false };
    const sps_csr *A = e->r.A;
    image X, Y;

    image_take(&X, ctx, e->t->block, A->ncol, k, t.layout, e->x, e->k);
    image_take(&Y, ctx, e->t->block, A->nrow, k, t.layout, NULL, k);
    X.data[c * X.ld + j] = value;
    image_upload(&X);
    run(e, &t, X.B, Y.B);
    image_read(&Y, kernel->name);
    for (int64_t i = 0; i < A->nrow; i++) {
        const bool stored = stores(A, i, c);

        for (int l = 0; l < k; l++) {
            const double y = Y.out[i * Y.ld + l];

            if (l == j && stored)
                ck_assert_msg(!isfinite(y), "%s on %s: row %lld lost a %g",
                              kernel->name, e->r.what, (long long)i, value);
            else if (l != j || strict)
                ck_assert_msg(y == e->sum[i * e->k + l], "%s on %s k %d: %g "
                              "at (%lld, %d) of X reached (%lld, %d) of Y",
                              kernel->name, e->r.what, k, value, (long long)c,
                              j, (long long)i, l);
        }
    }
    image_close(&X);
    image_close(&Y);
}

START_TEST(nan_and_infinity_stay_where_they_belong)
{
    const int step = fixture_env("SPS_TEST_QUICK") ? 4 : 1;
    const sps_kernel *kernel;

    for (int d = 0; d < TYPES; d++)
        for (int f = 0; f < zoo_count() && wanted(&TYPE[d]); f += step) {
            exam e;

            exam_open(&e, f, 90, TYPE[d].exact, &TYPE[d], 33);
            for (int w = f % 2; e.r.A->ncol > 0 && w < FEW_COUNT; w += 2)
                FOR_KERNELS(kernel) {
                    const int k = FEW[w];

                    if (!takes(kernel, &TYPE[d]) ||
                        !rig_plan(&e.r, kernel, k))
                        continue;
                    poison_x(&e, k, e.r.A->ncol / 2, k / 2, NAN);
                    poison_x(&e, k, e.r.A->ncol / 2, k - 1, INFINITY);
                    poison_x(&e, k, 0, 0, NAN);
                }
            exam_close(&e);
        }
}
END_TEST

void add_finite(TCase *t)
{
    tcase_add_test(t, nan_and_infinity_stay_where_they_belong);
}
