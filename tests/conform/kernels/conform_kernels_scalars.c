/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_kernels_scalars.c - alpha and beta by value and in device memory;
 * zero scalars, which must not read their operand; widths below the plan's;
 * changed values. */
#include "tests/conform/kernels/conform_kernels.h"

static const double SCALARS[] = { 0, 1, -1, 0.37 };
static const char *const PATTERNS[] = { "uniform", "power_law", "edges",
                                        "empty", "blocks5" };

static void all_pairs(exam *e, const sps_kernel *kernel, int k)
{
    if (!rig_plan(&e->r, kernel, k)) return;
    for (int s = quick() ? layout % 11 : 0; s < 32; s += quick() ? 11 : 1) {
        const trial t = { k, layout++, SCALARS[s % 4], SCALARS[s / 4 % 4],
                          s >= 16 };

        try(e, &t);
    }
}

START_TEST(all_pairs_of_scalars_by_value_and_in_the_place)
{
    static const int widths[] = { 1, 4, 9, 33 };
    const int step = quick() ? 3 : 1;
    const sps_kernel *kernel;

    for (int d = 0; d < TYPES; d++)
        for (int f = 0; f < COUNT(PATTERNS) && wanted(&TYPE[d]); f++) {
            exam e;

            exam_open(&e, zoo_find(PATTERNS[f]), 80, ZOO_RANDOM, &TYPE[d],
                      33);
            FOR_KERNELS(kernel)
                for (int w = f % step; w < COUNT(widths); w += step)
                    if (takes(kernel, &TYPE[d]))
                        all_pairs(&e, kernel, widths[w]);
            exam_close(&e);
        }
}
END_TEST

/* Old Y is `old` everywhere; X is NaN where alpha = 0.  Y must be the product
 * where beta = 0, and beta times 7, the value of old that the callers choose,
 * where alpha = 0. */
static void hide(const exam *e, int k, double alpha, double beta, double old,
                 bool placed)
{
    const trial t = { k, layout++, alpha, beta, placed };
    const sps_csr *A = e->r.A;
    double *y = constant(A->nrow * k, old);
    image X, Y;

    image_take(&X, ctx, e->t->block, A->ncol, k, t.layout,
               alpha == 0 ? NULL : e->x, e->k);
    image_take(&Y, ctx, e->t->block, A->nrow, k, t.layout, y, k);
    run(e, &t, X.B, Y.B);
    image_read(&Y, e->r.plan->kernel->name);
    if (beta == 0 && alpha != 0)
        judge(e, &t, &Y, e->r.plan->kernel->name);
    else
        for (int64_t i = 0; i < A->nrow * k; i++)
            demand(Y.out[i / k * Y.ld + i % k] == beta * 7,
                   "%s on %s k %d: alpha 0, beta %g%s: row %lld is %g",
                   e->r.plan->kernel->name, e->r.what, k, beta,
                   placed ? " in the place" : "", (long long)(i / k),
                   Y.out[i / k * Y.ld + i % k]);
    image_close(&X);
    image_close(&Y);
    free(y);
}

static void set_all(rig *r, double value)
{
    for (int64_t p = 0; p < r->A->nnz; p++) rig_set_value(r, p, value);
    rig_refresh(r);
}

/* beta = 0 ignores NaN and Inf in Y; alpha = 0 ignores NaN in A and in X. */
START_TEST(zero_scalars_hide_what_is_not_finite)
{
    const sps_kernel *kernel;

    for (int d = 0; d < TYPES; d++)
        for (int f = 0; f < zoo_count() && wanted(&TYPE[d]);
             f += quick() ? 14 : 3) {
            exam e;

            exam_open(&e, f, 60, TYPE[d].exact, &TYPE[d], 33);
            for (int w = 0; w < FEW_COUNT; w += quick() ? 2 : 1)
                FOR_KERNELS(kernel)
                    if (takes(kernel, &TYPE[d]) &&
                        rig_plan(&e.r, kernel, FEW[w])) {
                        hide(&e, FEW[w], 1, 0, INFINITY, w % 2);
                        hide(&e, FEW[w], 1, 0, NAN, w % 2 == 0);
                    }
            set_all(&e.r, NAN);
            for (int w = quick() ? d % 2 : 0; w < FEW_COUNT;
                 w += quick() ? 2 : 1)
                FOR_KERNELS(kernel)
                    if (takes(kernel, &TYPE[d]) &&
                        rig_plan(&e.r, kernel, FEW[w]))
                        for (int s = 0; s < 4; s++)
                            hide(&e, FEW[w], 0, s % 2 ? 2 : 0, 7, s / 2);
            exam_close(&e);
        }
}
END_TEST

/* Width 0: blocks narrowed until no column is left; nothing is written. */
static void try_no_columns(const exam *e)
{
    const trial t = { 0, 0, 1, 0, false };
    image X, Y;

    image_take(&X, ctx, e->t->block, e->r.A->ncol, 4, 0, NULL, 4);
    image_take(&Y, ctx, e->t->block, e->r.A->nrow, 4, 0, e->y, e->k);
    spsi_block_narrow(X.B, 0);
    spsi_block_narrow(Y.B, 0);
    run(e, &t, X.B, Y.B);
    image_read(&Y, e->r.plan->kernel->name);
    demand(!memcmp(Y.back, Y.host, Y.bytes), "%s wrote where there are "
           "no columns", e->r.plan->kernel->name);
    image_close(&X);
    image_close(&Y);
}

START_TEST(a_plan_serves_every_narrower_width)
{
    static const int widths[] = { 1, 4, 33, 130 };
    const int step = quick() ? 5 : 1;
    const sps_kernel *kernel;

    for (int d = 0; d < TYPES; d++)
        for (int f = d; f < zoo_count() && wanted(&TYPE[d]);
             f += quick() ? 9 : 4) {
            exam e;

            exam_open(&e, f, 60, TYPE[d].exact, &TYPE[d], 130);
            FOR_KERNELS(kernel)
                for (int w = 0; w < COUNT(widths); w++) {
                    const int stride = step * (widths[w] > 33 ? 7 : 1);

                    if (!takes(kernel, &TYPE[d]) ||
                        !rig_plan(&e.r, kernel, widths[w]))
                        continue;
                    try_no_columns(&e);
                    for (int k = 1; k <= widths[w]; k += stride)
                        try_in_turn(&e, k);
                }
            exam_close(&e);
        }
}
END_TEST

/* New values on the old pattern give the new products. */
START_TEST(refreshed_values_give_the_right_products)
{
    const sps_kernel *kernel;

    for (int d = 0; d < TYPES; d++)
        for (int f = 0; f < zoo_count() && wanted(&TYPE[d]);
             f += quick() ? 9 : 1)
            FOR_KERNELS(kernel) {
                const int most = TYPE[d].exact == ZOO_SMALL ? 8 : 500;
                const int k = f % 3 == 0 ? 1 : f % 3 == 1 ? 9 : 33;
                exam e;

                if (!takes(kernel, &TYPE[d])) continue;
                exam_open(&e, f, 120, TYPE[d].exact, &TYPE[d], k);
                if (rig_plan(&e.r, kernel, k)) {
                    try_in_turn(&e, k);
                    rig_other_values(&e.r, most);
                    exam_solve(&e);
                    try_in_turn(&e, k);
                    try_in_turn(&e, k > 1 ? k - 1 : 1);
                }
                exam_close(&e);
            }
}
END_TEST

void add_scalars(TCase *t)
{
    tcase_add_test(t, all_pairs_of_scalars_by_value_and_in_the_place);
    tcase_add_test(t, zero_scalars_hide_what_is_not_finite);
    tcase_add_test(t, a_plan_serves_every_narrower_width);
    tcase_add_test(t, refreshed_values_give_the_right_products);
}
