/* SPDX-License-Identifier: BSD-3-Clause */
/* check_number.c - conversion of decimal text to double and back, against
 * glibc.
 *
 * The ordinary run compares some 10^6 strings bit by bit; SPS_TEST_LONG=1 in
 * the environment makes it more than 10^7. */
#include "io/number/number.h"
#include "tests/support/runner.h"

#include <check.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 20240917;

static uint64_t draw(void)
{
    uint64_t z = (state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static int times(int n)
{
    const char *value = getenv("SPS_TEST_LONG");
    return value != NULL && *value == '1' ? 20 * n : n;
}

static uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static double from_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static double draw_bits(void)
{
    double x;
    do
        x = from_bits(draw());
    while (!isfinite(x));
    return x;
}

/* The text must be followed by 8 bytes of readable memory. */
static void compare(const char *text)
{
    char *end;
    double theirs = strtod(text, &end), ours = 0;
    spsi_number kind;
    const char *stop = spsi_number_double(text, &ours, &kind);

    ck_assert_msg(stop == end, "\"%s\": stopped at %d, not at %d", text,
                  (int)(stop - text), (int)(end - text));
    ck_assert_msg(bits_of(ours) == bits_of(theirs), "\"%s\": %a, not %a", text,
                  ours, theirs);
    if (isinf(theirs))
        ck_assert_int_eq(kind, SPSI_NUMBER_HUGE);
    else if (theirs != 0)
        ck_assert_int_eq(kind, fabs(theirs) < DBL_MIN ? SPSI_NUMBER_TINY
                                                      : SPSI_NUMBER_FINE);
}

START_TEST(seventeen_digits_equal_strtod)
{
    char text[64];

    for (int i = times(200000); i > 0; i--) {
        snprintf(text, sizeof text, "%.17g", draw_bits());
        compare(text);
        snprintf(text, sizeof text, "%.*g", 1 + (int)(draw() % 25),
                 draw_bits());
        compare(text);
    }
}
END_TEST

START_TEST(any_digits_and_exponents_equal_strtod)
{
    char text[1100];

    for (int i = times(200000); i > 0; i--) {
        int n = 1 + (int)(draw() % (draw() % 64 == 0 ? 1000 : 30));
        int point = (int)(draw() % (uint64_t)(n + 2)), at = 0;
        if (draw() % 4 == 0)
            text[at++] = draw() % 2 ? '-' : '+';
        for (int d = 0; d < n; d++) {
            if (d == point)
                text[at++] = '.';
            text[at++] = (char)('0' + (draw() % 8 ? draw() % 10 : 0));
        }
        if (draw() % 2)
            at += sprintf(text + at, "%c%d", draw() % 2 ? 'e' : 'E',
                          (int)(draw() % 760) - 380);
        text[at] = '\0';
        compare(text);
    }
}
END_TEST

/* Midpoints between two doubles, written out in full, and numbers close to
 * them. */
START_TEST(halfway_cases_equal_strtod)
{
#if LDBL_MANT_DIG >= 64
    static char text[1300];

    for (int i = times(20000); i > 0; i--) {
        uint64_t bits = draw() >> (draw() % 8 == 0 ? 11 + draw() % 52 : 1);
        if (bits >= UINT64_C(0x7fe0000000000000))
            continue;
        long double low = from_bits(bits), high = from_bits(bits + 1);
        int n = snprintf(text, sizeof text - 16, "%.*Le", 1100,
                         low + (high - low) / 2);
        char *e = strchr(text, 'e'), tail[16];
        strcpy(tail, e);
        compare(text);
        while (e[-1] == '0')            /* removes trailing zeros */
            e--;
        strcpy(e, tail);
        compare(text);
        n = (int)(e - text);
        text[n - 1] += text[n - 1] == '9' ? -1 : 1;
        compare(text);
        text[n - 1] -= 2 - (text[n - 1] == '8');
        if (text[n - 1] >= '0' && text[n - 1] <= '9')
            compare(text);
    }
#endif
}
END_TEST

/* Midpoints that are integers and short decimals, where exact ties occur. */
START_TEST(ties_to_even_equal_strtod)
{
    char text[80];

    for (int i = times(50000); i > 0; i--) {
        uint64_t odd = ((draw() | UINT64_C(1) << 63) >> 10) | 1;
        snprintf(text, sizeof text, "%llu", (unsigned long long)odd);
        compare(text);
        snprintf(text, sizeof text, "%llu.0", (unsigned long long)odd);
        compare(text);
        snprintf(text, sizeof text, "%llu000e-3", (unsigned long long)odd);
        compare(text);
        snprintf(text, sizeof text, "%llu.5", (unsigned long long)odd / 2);
        compare(text);
        snprintf(text, sizeof text, "%llu.%s1", (unsigned long long)odd,
                 "0000000000000000000000000000000");
        compare(text);
    }
}
END_TEST

START_TEST(chosen_strings_equal_strtod)
{
    static const char *list[] = {
        "0", "-0", "+0", "0.", ".0", "1", "1.", ".5", "+1", "-1.5e3", "00012",
        "2.2250738585072011e-308", "2.2250738585072014e-308",
        "2.2250738585072012e-308", "2.2250738585072009e-308",
        "4.9406564584124654e-324", "2.4703282292062327e-324",
        "2.4703282292062328e-324", "2.470328229206232720e-324",
        "2.4703282292062327208e-324", "2.4703282292062327209e-324", "3e-324",
        "2e-324", "1e-400", "1e-99999999999999999999", "0e99999999999999999999",
        "1.7976931348623157e308", "1.7976931348623158e308",
        "1.7976931348623159e308", "1.797693134862315807e308",
        "1.797693134862315808e308", "1e308", "1e309", "1e99999999999999999999",
        "179769313486231580793728971405301e276", "9007199254740993",
        "9007199254740992.99999999999999999999", "9007199254740993.0000000001",
        "18446744073709551615", "18446744073709551616", "1e22", "1e23", "8e22",
        "8.5e22", "6.0221407621e23", "6929495644600919.5", "3.1e+2", "1e+0",
        "0.000000000000000000000000000000000000000000000000000001e54",
        "1000000000000000000000000000000000000000000000000000000e-54",
        "7.3177701707893310e+15", "1.00000000000000011102230246251565",
        "1.00000000000000011102230246251566", "9223372036854775807",
        "1.000000000000000111022302462515655", "1448997445238699",
        "30078505129381147446200",
        "5708990770823838890407843763683279797179383808",
        "1e", "1e+", "1e+x", "1ex", "12-3", "1..2", "1.e5", "5e-1", "1x"};
    char text[128];

    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        memset(text, 0, sizeof text);
        strcpy(text, list[i]);
        compare(text);
    }
}
END_TEST

START_TEST(what_is_no_number_is_refused)
{
    static const char *list[] = {"", " 1", ".", "+", "-", "-.", "e5", ".e5",
                                 "+-1", "--1", "x", "in", "na", ",5"};
    double x = 7;
    spsi_number kind;

    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        char text[32] = {0};
        strcpy(text, list[i]);
        ck_assert_ptr_eq(spsi_number_double(text, &x, &kind), text);
        ck_assert_int_eq(kind, SPSI_NUMBER_NONE);
    }
    ck_assert(x == 7);
}
END_TEST

START_TEST(names_and_letters_of_exponents)
{
    static const struct {
        const char *text;
        double value;
        int length;
        spsi_number kind;
    } list[] = {{"1.5D+3 ........", 1500, 6, SPSI_NUMBER_FINE},
                {"1d-2 .........", 0.01, 4, SPSI_NUMBER_FINE},
                {"INF .........", INFINITY, 3, SPSI_NUMBER_NOT_FINITE},
                {"-infinity .......", -INFINITY, 9, SPSI_NUMBER_NOT_FINITE},
                {"+Inf .........", INFINITY, 4, SPSI_NUMBER_NOT_FINITE}};
    double x;
    spsi_number kind;

    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        const char *end = spsi_number_double(list[i].text, &x, &kind);
        ck_assert_int_eq(end - list[i].text, list[i].length);
        ck_assert(x == list[i].value);
        ck_assert_int_eq(kind, list[i].kind);
    }
    spsi_number_double("NaN .........", &x, &kind);
    ck_assert(isnan(x));
    ck_assert_int_eq(kind, SPSI_NUMBER_NOT_FINITE);
}
END_TEST

START_TEST(integers_are_digits_only)
{
    int64_t v = -1;
    static const char *refused[] = {"9223372036854775808",
                                    "18446744073709551616",
                                    "100000000000000000000000000000000000"};

    ck_assert(*spsi_number_integer("4294967297 ", &v) == ' ');
    ck_assert(v == INT64_C(4294967297));
    ck_assert(*spsi_number_integer("9223372036854775807", &v) == '\0');
    ck_assert(v == INT64_MAX);
    ck_assert(*spsi_number_integer("0000000000000000000000000012", &v) == '\0');
    ck_assert(v == 12);
    ck_assert(*spsi_number_integer("-3", &v) == '-');
    ck_assert(*spsi_number_integer("+3", &v) == '+');
    for (int i = 0; i < 3; i++)
        ck_assert_ptr_null(spsi_number_integer(refused[i], &v));
}
END_TEST

/* ------------------------------------------------------------- printing */

static int significant(const char *text, char *digits)
{
    int n = 0, zeros = 0;

    for (; *text != '\0' && *text != 'e'; text++) {
        if (*text < '0' || *text > '9' || (n == 0 && *text == '0'))
            continue;
        digits[n++] = *text;
    }
    while (n > 1 && digits[n - 1 - zeros] == '0')
        zeros++;
    digits[n - zeros] = '\0';
    return n - zeros;
}

/* No decimal with one digit less reads back as x: tries the two around x. */
static void check_no_shorter(double x, int n)
{
    char text[64];
    int exponent;
    long long digits;

    if (n < 2)
        return;
    snprintf(text, sizeof text, "%.*e", n - 2, fabs(x));
    exponent = atoi(strchr(text, 'e') + 1) - (n - 2);
    *strchr(text, 'e') = '\0';
    if (n > 2)
        memmove(text + 1, text + 2, strlen(text + 1));
    digits = atoll(text);
    for (int step = -1; step <= 1; step++) {
        snprintf(text, sizeof text, "%llde%d", digits + step, exponent);
        ck_assert_msg(strtod(text, NULL) != fabs(x), "%a: %s", x, text);
    }
}

static void check_print(double x)
{
    char text[64] = {0}, nearest[64], ours[32], theirs[32];
    int length = spsi_number_print(x, text), n;
    double back = 0;
    spsi_number kind;

    ck_assert_int_le(length, SPSI_NUMBER_WIDTH);
    ck_assert_int_eq(length, (int)strlen(text));
    ck_assert_msg(bits_of(strtod(text, NULL)) == bits_of(x), "%a: %s", x, text);
    spsi_number_double(text, &back, &kind);
    ck_assert_msg(bits_of(back) == bits_of(x), "%a: %s", x, text);
    n = significant(text, ours);
    ck_assert_int_le(n, 17);
    check_no_shorter(x, n);
    snprintf(nearest, sizeof nearest, "%.*e", n - 1, x);
    if (strtod(nearest, NULL) == x && significant(nearest, theirs) == n)
        ck_assert_msg(strcmp(ours, theirs) == 0, "%a: %s, nearer is %s", x,
                      text, nearest);
}

START_TEST(print_is_shortest_and_reads_back)
{
    for (int i = times(60000); i > 0; i--) {
        check_print(draw_bits());
        check_print((double)(draw() >> (draw() % 64)) / 1000);
        check_print(from_bits(draw() >> (12 + draw() % 52)));
    }
    for (int e = 0; e < 2047; e++)      /* asymmetric interval at powers of 2 */
        for (int step = -1; step <= 1; step++)
            if (e > 0 || step >= 1)
                check_print(from_bits(((uint64_t)e << 52) + (uint64_t)step));
    for (int e = -323; e <= 308; e++) {
        char text[16];
        snprintf(text, sizeof text, "1e%d", e);
        check_print(strtod(text, NULL));
    }
}
END_TEST

START_TEST(print_of_known_numbers)
{
    static const struct {
        double x;
        const char *text;
    } list[] = {{0.0, "0"}, {-0.0, "-0"}, {1, "1"}, {-4, "-4"}, {0.1, "0.1"},
                {0.3, "0.3"}, {1.0 / 3, "0.3333333333333333"},
                {5e-324, "5e-324"}, {DBL_MIN, "2.2250738585072014e-308"},
                {DBL_MAX, "1.7976931348623157e308"}, {1e23, "1e23"},
                {9007199254740993.0, "9007199254740992"},
                {1e16, "10000000000000000"},
                {1e17, "1e17"}, {0.0001, "0.0001"}, {0.00012, "0.00012"},
                {0.00001, "1e-5"}, {123456.789, "123456.789"},
                {2e-44, "2e-44"}, {9.5367431640625e-07, "9.5367431640625e-7"},
                {NAN, "nan"}, {INFINITY, "inf"}, {-INFINITY, "-inf"},
                {2.98023223876953125e-8, "2.9802322387695312e-8"},
                {4.35, "4.35"}, {1.2345e-5, "1.2345e-5"}};
    char text[64];

    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        text[spsi_number_print(list[i].x, text)] = '\0';
        ck_assert_str_eq(text, list[i].text);
    }
    text[spsi_number_print_integer(INT64_MAX, text)] = '\0';
    ck_assert_str_eq(text, "9223372036854775807");
    text[spsi_number_print_integer(0, text)] = '\0';
    ck_assert_str_eq(text, "0");
}
END_TEST

START_TEST(locale_has_no_say)
{
    char text[64] = "1.5 1,5 .......";
    double x;
    spsi_number kind;

    if (setlocale(LC_ALL, "de_DE.UTF-8") == NULL &&
        setlocale(LC_ALL, "de_DE") == NULL)
        runner_skip("no locale de_DE here, whose decimal point is a comma");
    ck_assert(*spsi_number_double(text, &x, &kind) == ' ' && x == 1.5);
    ck_assert(*spsi_number_double(text + 4, &x, &kind) == ',' && x == 1);
    text[spsi_number_print(0.25, text)] = '\0';
    ck_assert_str_eq(text, "0.25");
    setlocale(LC_ALL, "C");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("number");
    TCase *t = runner_case(suite, "number");

    tcase_set_timeout(t, 900);
    tcase_add_test(t, chosen_strings_equal_strtod);
    tcase_add_test(t, seventeen_digits_equal_strtod);
    tcase_add_test(t, any_digits_and_exponents_equal_strtod);
    tcase_add_test(t, halfway_cases_equal_strtod);
    tcase_add_test(t, ties_to_even_equal_strtod);
    tcase_add_test(t, what_is_no_number_is_refused);
    tcase_add_test(t, names_and_letters_of_exponents);
    tcase_add_test(t, integers_are_digits_only);
    tcase_add_test(t, print_is_shortest_and_reads_back);
    tcase_add_test(t, print_of_known_numbers);
    tcase_add_test(t, locale_has_no_say);
    return runner_run(suite);
}
