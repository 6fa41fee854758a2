/* SPDX-License-Identifier: BSD-3-Clause */
/* check_digits.c - the printer of mtxgen loses no bit and wastes no digit. */
#include <check.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runner.h"
#include "tools/digits.h"
#include "tools/gen.h"

static void reads_back(double v)
{
    char text[DIGITS_MOST + 1];
    double back;

    memset(text, 0, sizeof text);
    ck_assert_int_le(digits_double(text, v) - text, DIGITS_MOST);
    back = strtod(text, NULL);
    ck_assert_msg(!memcmp(&back, &v, sizeof v), "%s for %a", text, v);
}

START_TEST(printed_numbers_read_back)
{
    static const double hard[] = {
        0, -0.0, 1, -1, 0.1, 1e22, 1e23, 5e-324, 2.2250738585072014e-308,
        1.7976931348623157e308, 9007199254740993, 123456789012345678, 1e15,
        1e17, 1e18, 1e-5, 1.2345e-5, 0.3, 2.0 / 3, 9.999999999999999e22,
    };

    digits_init();
    for (size_t i = 0; i < sizeof hard / sizeof *hard; i++)
        reads_back(hard[i]);
    for (uint64_t i = 0; i < 300000; i++) {
        uint32_t w[4];
        uint64_t bits;
        double v;

        gen_philox(1, i, 0, w);
        bits = (uint64_t)w[0] << 32 | w[1];
        memcpy(&v, &bits, sizeof v);
        if (isfinite(v))
            reads_back(v);
        reads_back(gen_uniform(2, i, 0));
        reads_back((double)(w[2] % 100003) / pow(10, w[3] % 12));
    }
}
END_TEST

START_TEST(short_numbers_stay_short)
{
    static const struct { double v; const char *text; } pair[] = {
        {0.1, "0.1"}, {-4, "-4"}, {2.5, "2.5"}, {1e22, "1e22"},
        {1e100, "1e100"}, {0.001, "0.001"}, {-1.5e-9, "-1.5e-9"},
        {1.0 / 3, "0.3333333333333333"}, {123.456, "123.456"},
    };
    char text[DIGITS_MOST + 1];

    digits_init();
    for (size_t i = 0; i < sizeof pair / sizeof *pair; i++) {
        *digits_double(text, pair[i].v) = 0;
        ck_assert_str_eq(text, pair[i].text);
    }
    *digits_int(text, INT64_MIN) = 0;
    ck_assert_str_eq(text, "-9223372036854775808");
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(printed_numbers_read_back),
    RUNNER_TEST(short_numbers_stay_short),
};
RUNNER_MAIN("digits", tests)
