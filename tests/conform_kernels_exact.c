/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_kernels_exact.c - integers: widths, shapes, patterns, row lengths at
 * every edge that kernels have, offsets of 64 bits.  Bit for bit. */
#include "conform_kernels.h"

static bool quick(void) { return fixture_env("SPS_TEST_QUICK"); }

/* Every kernel that takes the types of the exam, at this width.  Returns how
 * many did. */
static int try_kernels(exam *e, int k, int times)
{
    const sps_kernel *kernel;
    int count = 0;

    FOR_KERNELS(kernel)
        if (takes(kernel, e->t) && rig_plan(&e->r, kernel, k)) {
            for (int i = 0; i < times; i++) try_in_turn(e, k);
            count++;
        }
    return count;
}

START_TEST(every_kernel_fits_something_in_all_its_types)
{
    const sps_kernel *kernel;

    FOR_KERNELS(kernel)
        for (int d = 0; d < TYPES; d++) {
            int fitted = 0;

            if (!takes(kernel, &TYPE[d])) continue;
            for (int f = 0; f < zoo_count() && fitted == 0; f++) {
                rig r;

                rig_open(&r, ctx, f, 70, TYPE[d].exact, TYPE[d].matrix);
                r.block = TYPE[d].block;
                for (int w = 0; w < FEW_COUNT; w++)
                    fitted += rig_plan(&r, kernel, FEW[w]);
                rig_close(&r);
            }
            ck_assert_msg(fitted > 0, "%s fits nothing of the zoo",
                          kernel->name);
        }
}
END_TEST

/* All families at all widths: the last width with all its rows in a warp. */
START_TEST(spmm_equals_the_oracle_exactly_on_integers)
{
    const int step = quick() ? 3 : 1, times = fixture_env("SPS_TEST_LONG") ? 7
                                                                           : 2;

    for (int d = 0; d < TYPES; d++)
        for (int f = 0; f < zoo_count() && wanted(&TYPE[d]); f += step) {
            exam e;

            exam_open(&e, f, 70, TYPE[d].exact, &TYPE[d], 200);
            for (int w = 0; w < WIDTH_COUNT; w += step)
                try_kernels(&e, WIDTHS[w], times);
            exam_close(&e);
        }
}
END_TEST

/* Rows of 1023, 1024, 1025 entries, and grids of more than one window. */
START_TEST(long_rows_and_many_rows_are_exact_too)
{
    const bool longer = fixture_env("SPS_TEST_LONG");
    const int64_t n = longer ? 20000 : 1100;

    for (int d = 0; d < TYPES; d++)
        for (int f = quick() ? d : 0; f < zoo_count(); f += quick() ? 7 : 1) {
            exam e;

            if (!wanted(&TYPE[d])) continue;
            exam_open(&e, f, n, TYPE[d].exact, &TYPE[d], 33);
            for (int w = longer ? 0 : (f + d) % 2; w < FEW_COUNT; w += 2)
                try_kernels(&e, FEW[w], 1);
            exam_close(&e);
        }
}
END_TEST

void add_exact(TCase *t)
{
    tcase_add_test(t, every_kernel_fits_something_in_all_its_types);
    tcase_add_test(t, spmm_equals_the_oracle_exactly_on_integers);
    tcase_add_test(t, long_rows_and_many_rows_are_exact_too);
}
