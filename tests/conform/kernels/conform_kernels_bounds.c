/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_kernels_bounds.c - random data within the row-wise error bound of the
 * types or of the kernel's declared roundoff; adjoints; cost estimates. */
#include "tests/conform/kernels/conform_kernels.h"

START_TEST(random_data_stays_within_the_rowwise_bound)
{
    const int step = quick() ? 9 : 1;
    const sps_kernel *kernel;

    for (int d = 0; d < 2 * TYPES; d++)
        for (int f = d % step; f < zoo_count(); f += step) {
            const types *type = &TYPE[d / 2];
            exam e;

            /* ZOO_SCALES exceeds the range of half, and so does not suit the
             * types of ZOO_SMALL. */
            if (!wanted(type) || (d % 2 && d / 2 > 2)) continue;
            exam_open(&e, f, 150, d % 2 ? ZOO_SCALES : ZOO_RANDOM, type, 33);
            for (int w = (f + d) % 2; w < FEW_COUNT; w += 2)
                FOR_KERNELS(kernel) {
                    const trial t = { FEW[w], layout++, 0.37, -1.25,
                                      f % 2 == 0 };

                    if (kernel->roundoff > 0 && d % 2) continue;
                    if (takes(kernel, type) &&
                        rig_plan(&e.r, kernel, FEW[w]))
                        try(&e, &t);
                }
            exam_close(&e);
        }
}
END_TEST

/* <A X, W> - <X, A' W> column by column, relative to the rounding error
 * bound. */
static long double gap(const exam *a, const exam *b, const image *Y,
                       const image *Z, int k)
{
    const trial t = { k, 0, 1, 0, false };
    long double worst = 0;

    for (int j = 0; j < k; j++) {
        long double left = 0, right = 0, bound = 0;

        for (int64_t i = 0; i < a->r.A->nrow; i++) {
            left += (long double)Y->out[i * Y->ld + j] * b->x[i * k + j];
            bound += fabsl(b->x[i * k + j] * allowed(a, &t, i, j));
        }
        for (int64_t i = 0; i < b->r.A->nrow; i++) {
            right += (long double)Z->out[i * Z->ld + j] * a->x[i * k + j];
            bound += fabsl(a->x[i * k + j] * allowed(b, &t, i, j));
        }
        if (left != right && !(fabsl(left - right) <= worst * bound))
            worst = fabsl(left - right) / bound;
    }
    return worst;
}

/* Y = A X by the plan of the exam. */
static void multiply(const exam *e, image *X, image *Y)
{
    const trial t = { e->k, layout++, 1, 0, false };

    image_take(X, ctx, e->t->block, e->r.A->ncol, e->k, t.layout, e->x, e->k);
    image_take(Y, ctx, e->t->block, e->r.A->nrow, e->k, t.layout, NULL, e->k);
    run(e, &t, X->B, Y->B);
    image_read(Y, e->r.plan->kernel->name);
}

static void check_adjoint(exam *a, exam *b, const sps_kernel *kernel, int k)
{
    image X, Y, W, Z;

    if (!rig_plan(&a->r, kernel, k) || !rig_plan(&b->r, kernel, k)) return;
    multiply(a, &X, &Y);
    multiply(b, &W, &Z);
    demand(gap(a, b, &Y, &Z, k) <= 1, "%s on %s k %d: <A x, w> and "
           "<x, A' w> are %.3Lg bounds apart", kernel->name, a->r.what,
           k, gap(a, b, &Y, &Z, k));
    image_close(&X);
    image_close(&Y);
    image_close(&W);
    image_close(&Z);
}

/* The transpose by the library; a symmetric A is its own transpose. */
START_TEST(the_transpose_is_the_adjoint)
{
    const int step = quick() ? 9 : 1;
    const sps_kernel *kernel;

    for (int d = 0; d < TYPES; d++)
        for (int f = d % step; f < zoo_count() && wanted(&TYPE[d]);
             f += step) {
            const bool own = zoo_symmetric(f) && f % 2;
            const zoo_values values = own ? ZOO_SPD : ZOO_RANDOM;
            const types *t = &TYPE[d];
            const int k = FEW[(f + d) % FEW_COUNT];
            sps_csr *T = NULL;
            exam a, b;

            exam_open(&a, f, 200, values, t, k);
            OK(ctx, spsi_csr_transpose(ctx, a.r.A, &T));
            exam_take(&b, "the transpose", own ?
                      zoo_matrix(f, 200, 7, values, t->matrix) : zoo_copy(T),
                      values, t, k);
            FOR_KERNELS(kernel)
                if (takes(kernel, t)) check_adjoint(&a, &b, kernel, k);
            exam_close(&a);
            exam_close(&b);
            sps_csr_destroy(ctx, &T);
        }
}
END_TEST

/* A kernel declares a roundoff if and only if it gives no full precision. */
START_TEST(roundoff_goes_with_the_guarantee)
{
    const sps_kernel *kernel;

    FOR_KERNELS(kernel) {
        const bool full = kernel->gives & SPS_FULL_PRECISION;

        demand(full ? kernel->roundoff == 0 : kernel->roundoff > 0 &&
               kernel->roundoff < 0.01, "%s: roundoff %g",
               kernel->name, kernel->roundoff);
    }
}
END_TEST

START_TEST(bids_are_positive_numbers_and_refusals_have_a_reason)
{
    const sps_kernel *kernel;

    for (int f = 0; f < zoo_count(); f++)
        for (int d = 0; d < 3; d++) {
            rig r;

            rig_open(&r, ctx, f, 40, ZOO_INTEGER, TYPE[d].matrix);
            r.block = TYPE[d].block;
            for (int w = 0; w < WIDTH_COUNT; w++)
                FOR_KERNELS(kernel) {
                    const sps_problem p = rig_problem(&r, SPS_OP_SPMM,
                                                      WIDTHS[w]);
                    const char *why = NULL;

                    if (spsi_kernel_fits(kernel, &p, &why))
                        demand(isfinite(kernel->cost(&p)) &&
                               kernel->cost(&p) > 0.0, "%s bids %g on "
                               "%s", kernel->name, kernel->cost(&p),
                               r.what);
                    else
                        demand(why && *why, "%s refuses %s without a "
                               "word", kernel->name, r.what);
                }
            rig_close(&r);
        }
}
END_TEST

void add_bounds(TCase *t)
{
    tcase_add_test(t, random_data_stays_within_the_rowwise_bound);
    tcase_add_test(t, the_transpose_is_the_adjoint);
    tcase_add_test(t, roundoff_goes_with_the_guarantee);
    tcase_add_test(t, bids_are_positive_numbers_and_refusals_have_a_reason);
}
