/* SPDX-License-Identifier: BSD-3-Clause */
/* check_machine.c - the cost model of gathers compared with measurements on an
 * H200, and that predictions change in the right direction. */
#include <check.h>

#include "cuda/base/machine.h"
#include "plan/rates.h"
#include "tests/support/runner.h"

/* TB/s of rows of 32, 64, 128, 512 bytes; tools/peers/calibrate.cu. */
static const struct { double mb, rate[4]; } measured[] = {
    {4, {5.11, 9.36, 9.90, 9.83}},    {16, {5.08, 9.16, 9.20, 9.17}},
    {32, {4.43, 8.44, 9.09, 9.03}},   {48, {3.18, 6.28, 8.98, 8.91}},
    {64, {2.42, 4.76, 7.69, 7.66}},   {96, {1.88, 3.73, 6.39, 6.37}},
    {128, {1.67, 3.32, 5.93, 5.89}},  {240, {1.44, 2.86, 5.12, 5.26}},
    {480, {1.33, 2.65, 4.63, 4.83}},  {1024, {1.28, 2.55, 4.39, 4.61}},
};
static const double row[4] = {32, 64, 128, 512};
enum { LINES = (int)(sizeof measured / sizeof *measured) };

START_TEST(the_formula_is_within_20_percent)
{
    for (int i = 0; i < LINES; i++)
        for (int j = 0; j < 4; j++) {
            const double rate = spsi_gather_rate(
                SPS_H200_COPY, measured[i].mb * 1048576, row[j]);
            const double times = 1e-12 * rate / measured[i].rate[j];

            ck_assert_msg(times > 1 / 1.2 && times < 1.2,
                          "%g MB, rows of %g: %g times what was measured",
                          measured[i].mb, row[j], times);
        }
}
END_TEST

START_TEST(more_footprint_is_slower_longer_rows_are_faster)
{
    for (double mb = 1; mb < 4096; mb *= 1.3)
        for (double r = 32; r <= 1024; r += 32) {
            const double here = spsi_gather_rate(1, mb * 1e6, r);

            ck_assert_double_ge(here, spsi_gather_rate(1, mb * 1.1e6, r));
            ck_assert_double_le(here, spsi_gather_rate(1, mb * 1e6, r + 32));
            ck_assert_double_gt(here, 0);
        }
}
END_TEST

START_TEST(sectors_are_whole)
{
    ck_assert_double_eq(spsi_sectors(0), 0);
    ck_assert_double_eq(spsi_sectors(8), 32);
    ck_assert_double_eq(spsi_sectors(32), 32);
    ck_assert_double_eq(spsi_sectors(72), 96);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(the_formula_is_within_20_percent),
    RUNNER_TEST(more_footprint_is_slower_longer_rows_are_faster),
    RUNNER_TEST(sectors_are_whole),
};
RUNNER_MAIN("machine", tests)
