/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_kernels_bounds.c - random data within the row-wise bound of the
 * types, or of the kernel's roundoff; adjoints; bids. */
#include "conform_kernels.h"

START_TEST(random_data_stays_within_the_rowwise_bound)
{
    const int step = fixture_env("SPS_TEST_QUICK") ? 4 : 1;
    const sps_kernel *kernel;

    for (int d = 0; d < 2 * TYPES; d++)
        for (int f = d % step; f < zoo_count(); f += step) {
            const types *type = &TYPE[d / 2];
            exam e;

            /* Scales are beyond the range of half, and so of ZOO_SMALL. */
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

/* Kernels that drop bits say how many, others none. */
START_TEST(roundoff_goes_with_the_guarantee)
{
    const sps_kernel *kernel;

    FOR_KERNELS(kernel) {
        const bool full = kernel->gives & SPS_FULL_PRECISION;

        ck_assert_msg(full ? kernel->roundoff == 0 : kernel->roundoff > 0 &&
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
                        ck_assert_msg(isfinite(kernel->cost(&p)) &&
                                      kernel->cost(&p) > 0.0, "%s bids %g on "
                                      "%s", kernel->name, kernel->cost(&p),
                                      r.what);
                    else
                        ck_assert_msg(why && *why, "%s refuses %s without a "
                                      "word", kernel->name, r.what);
                }
            rig_close(&r);
        }
}
END_TEST

void add_bounds(TCase *t)
{
    tcase_add_test(t, random_data_stays_within_the_rowwise_bound);
    tcase_add_test(t, roundoff_goes_with_the_guarantee);
    tcase_add_test(t, bids_are_positive_numbers_and_refusals_have_a_reason);
}
