/* SPDX-License-Identifier: BSD-3-Clause */
/* invalid_mtx.h - files that must be rejected: the expected status, the line
 * number and a word of the error text. */
#ifndef SPS_TEST_INVALID_MTX_H
#define SPS_TEST_INVALID_MTX_H

#include "spsolve.h"

enum { STRICT = 1, LENIENT = 2, SMALL = 4, BLOCK = 8 };

#define TEXT(text) text, sizeof text - 1

#define ONES5 "1\n1\n1\n1\n1\n"
#define ONES25 ONES5 ONES5 ONES5 ONES5 ONES5
#define ONES125 ONES25 ONES25 ONES25 ONES25 ONES25
#define ONES1025 ONES125 ONES125 ONES125 ONES125 ONES125 ONES125 ONES125      \
    ONES125 ONES25
#define ONES2000 ONES125 ONES125 ONES125 ONES125 ONES125 ONES125 ONES125      \
    ONES125 ONES125 ONES125 ONES125 ONES125 ONES125 ONES125 ONES125 ONES125
#define ONES10000 ONES2000 ONES2000 ONES2000 ONES2000 ONES2000

static const struct invalid_mtx {
    int line;
    const char *word;
    sps_status status;
    int flags;
    const char *text;
    size_t size;
} invalid_mtx[] = {
    {1, "empty", SPS_EPARSE, 0,
     TEXT("")},
    {1, "%%MatrixMarket", SPS_EPARSE, 0,
     TEXT("\n")},
    {1, "%%MatrixMarket", SPS_EPARSE, 0,
     TEXT("2 2 1\n1 1 1\n")},
    {1, "%%MatrixMarket", SPS_EPARSE, 0,
     TEXT("% a comment\n%%MatrixMarket matrix coordinate real general\n"
          "1 1 0\n")},
    {1, "%%MatrixMarket", SPS_EPARSE, 0,
     TEXT("%%Matrix Market matrix coordinate real general\n"
          "1 1 0\n")},
    {1, "%%MatrixMarket", SPS_EPARSE, 0,
     TEXT("%%MatrixMarke matrix coordinate real general\n"
          "1 1 0\n")},
    {1, "%%MatrixMarket", SPS_EPARSE, 0,
     TEXT("MatrixMarket matrix coordinate real general\n1 1 0\n")},
    {1, "%%MatrixMarket", SPS_EPARSE, 0,
     TEXT("%%%MatrixMarket matrix coordinate real general\n1 1 0\n")},
    {1, "%%MatrixMarket", SPS_EPARSE, 0,
     TEXT("%%MatrixMarketmatrix coordinate real general\n"
          "1 1 0\n")},
    {1, "cut off", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket")},
    {1, "cut off", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix\n"
          "1 1 0\n")},
    {1, "cut off", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate\n"
          "1 1 0\n")},
    {1, "cut off", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real\n"
          "1 1 0\n")},
    {1, "tensor", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket tensor coordinate real general\n"
          "1 1 0\n")},
    {1, "triplet", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix triplet real general\n"
          "1 1 0\n")},
    {1, "quaternion", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate quaternion general\n"
          "1 1 0\n")},
    {1, "float", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate float general\n"
          "1 1 0\n")},
    {1, "lower", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real lower\n"
          "1 1 0\n")},
    {1, "skew", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real skew\n"
          "1 1 0\n")},
    {1, "extra", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general extra\n"
          "1 1 0\n")},
    {1, "pattern", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate pattern skew-symmetric\n"
          "2 2 1\n2 1\n")},
    {1, "pattern", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix array pattern general\n"
          "2 2\n1\n1\n1\n1\n")},
    {1, "vector", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket vector coordinate real symmetric\n"
          "2 1\n1 1\n")},
    {1, "binary file", SPS_EPARSE, 0,
     TEXT("\0\0\0\0")},
    {1, "JSON", SPS_EPARSE, 0,
     TEXT("{\"json\": 1}\n")},
    {1, "size line", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n")},
    {3, "size line", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "% comment\n\n")},
    {2, "columns", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2\n1 1 1\n")},
    {2, "entries", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2\n1 1 1\n")},
    {2, "3", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 1 3\n1 1 1\n")},
    {2, "7", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix array real general\n"
          "1 1 7\n1\n")},
    {2, "-2", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "-2 2 1\n1 1 1\n")},
    {2, "-2", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 -2 1\n1 1 1\n")},
    {2, "-1", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 -1\n1 1 1\n")},
    {2, "+2", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "+2 2 1\n1 1 1\n")},
    {2, "2.0", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2.0 2 1\n1 1 1\n")},
    {2, "1e3", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 1e3 1\n1 1 1\n")},
    {2, "nan", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "nan 2 1\n1 1 1\n")},
    {2, "0x2", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 0x2\n1 1 1\n")},
    {2, "2x", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2x 2 1\n1 1 1\n")},
    {2, "n", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "n n 1\n1 1 1\n")},
    {2, "too many", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "4294967297 1 1\n1 1 1\n")},
    {2, "too many", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "1 2147483648 1\n1 1 1\n")},
    {2, "too many", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "1 1 18446744073709551617\n1 1 1\n")},
    {2, "too many", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "99999999999999999999999999 1 1\n1 1 1\n")},
    {2, "too many", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate complex general\n"
          "2000000000 2000000000 1\n1 1 1 1\n")},
    {2, "announced", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "10 10 18446744073709551\n1 1 1\n")},
    {2, "announced", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "10 10 100\n1 1 1\n")},
    {2, "announced", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix array real general\n"
          "2147483647 2147483647\n1\n")},
    {2, "announced", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix array real general\n"
          "1000 1000\n1\n")},
    {2, "square", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real symmetric\n"
          "2 3 1\n1 1 1\n")},
    {2, "square", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real skew-symmetric\n"
          "3 2 1\n2 1 1\n")},
    {2, "square", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate complex hermitian\n"
          "1 2 1\n1 1 1 0\n")},
    {2, "square", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix array real symmetric\n"
          "1 2\n1\n1\n")},
    {2, "0 rows", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "0 0 1\n1 1 1\n")},
    {2, "0 columns", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 0 1\n1 1 1\n")},
    {2, "need", SPS_ENOMEM, SMALL,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2147483647 2147483647 1\n1 1 1\n")},
    {2, "limit", SPS_ENOMEM, SMALL,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "1000 1000 1\n1 1 1\n")},
    {4, "0-based", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\n0 1 1\n")},
    {4, "0-based", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\n1 0 1\n")},
    {3, "0-based", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 1\n000 1 1\n")},
    {4, "row 3", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\n3 1 1\n")},
    {4, "column 3", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\n1 3 1\n")},
    {4, "4294967297", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\n4294967297 1 1\n")},
    {4, "18446744073709551617", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\n1 18446744073709551617 1\n")},
    {4, "-1", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\n-1 1 1\n")},
    {4, "-1", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\n1 -1 1\n")},
    {4, "+1", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\n+1 1 1\n")},
    {4, "1.0", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\n1.0 1 1\n")},
    {4, "1.5", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\n1 1.5 1\n")},
    {4, "1,", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\n1, 1, 1\n")},
    {4, "x", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\nx 1 1\n")},
    {4, "(1", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\n(1 1) 1\n")},
    {4, "0-based", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket vector coordinate real general\n"
          "2 2\n1 1\n0 5\n")},
    {4, "row 3", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket vector coordinate real general\n"
          "2 2\n1 1\n3 5\n")},
    {4, "5", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket vector coordinate real general\n"
          "2 2\n1 1\n2 5 5\n")},
    {4, "column number is missing", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\n2\n")},
    {4, "value is missing", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\n2 2\n")},
    {4, "value is missing", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\n2 2")},
    {4, "value is missing", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\n2 2 \t\n")},
    {3, "value is missing", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate complex general\n"
          "2 2 1\n2 2\n")},
    {3, "imaginary", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate complex general\n"
          "2 2 1\n2 2 1\n")},
    {4, "4", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\n2 2 3 4\n")},
    {4, "%", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\n2 2 3 % note\n")},
    {3, "pattern", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate pattern general\n"
          "2 2 2\n1 1 1\n2 2 1\n")},
    {3, "9", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate complex general\n"
          "2 2 1\n1 1 1 2 9\n")},
    {3, "2", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix array real general\n"
          "1 2\n1 2\n3\n")},
    {3, "imaginary", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix array complex general\n"
          "1 1\n1\n")},
    {4, "foo", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\n2 2 foo\n")},
    {4, "1,5", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\n2 2 1,5\n")},
    {4, "1e", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\n2 2 1e\n")},
    {4, "1e+", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\n2 2 1e+\n")},
    {4, "0x10", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\n2 2 0x10\n")},
    {4, "--1", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\n2 2 --1\n")},
    {4, "1..2", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\n2 2 1..2\n")},
    {4, ".", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\n2 2 .\n")},
    {4, "-", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\n2 2 -\n")},
    {4, "1-3", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\n2 2 1-3\n")},
    {4, "1f", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\n2 2 1f\n")},
    {4, "finite", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\n2 2 nan\n")},
    {4, "finite", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\n2 2 NaN\n")},
    {4, "finite", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\n2 2 inf\n")},
    {4, "finite", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\n2 2 -Infinity\n")},
    {4, "largest", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\n2 2 1e999\n")},
    {4, "largest", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\n2 2 -1.8e308\n")},
    {3, "largest", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate complex general\n"
          "1 1 1\n1 1 0 1e309\n")},
    {3, "finite", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate complex general\n"
          "1 1 1\n1 1 0 nan\n")},
    {4, "integer", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate integer general\n"
          "2 2 2\n1 1 1\n2 2 1.5\n")},
    {4, "integer", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate integer general\n"
          "2 2 2\n1 1 1\n2 2 1e3\n")},
    {4, "integer", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate integer general\n"
          "2 2 2\n1 1 1\n2 2 nan\n")},
    {4, "negative", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate unsigned-integer general\n"
          "2 2 2\n1 1 1\n2 2 -1\n")},
    {4, "400", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\n"
          "2 2 1.0000000000000000000000000000000000000000000000000000000000"
          "0000000000000000000000000000000000000000000000000000000000000000"
          "0000000000000000000000000000000000000000000000000000000000000000"
          "0000000000000000000000000000000000000000000000000000000000000000"
          "0000000000000000000000000000000000000000000000000000000000000000"
          "0000000000000000000000000000000000000000000000000000000000000000"
          "000000000000000000000000000000000000000000\n")},
    {4, "?", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\n2 2 \xff\xfe\n")},
    {4, "?", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\n2 2 1\0\n")},
    {4, "carriage", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\n2 2 1\r1 2 1\n")},
    {1, "extra", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general extra\r2 2 1\r1 1 "
          "1\r")},
    {5, "foo", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix array real general\n"
          "1 3\n1\n2\nfoo\n")},
    {3, "finite", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix array real general\n"
          "1 1\nnan\n")},
    {3, "too few", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\n")},
    {2, "too few", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 1\n")},
    {5, "too few", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\n\n% the end\n")},
    {4, "too many", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 1\n1 1 1\n2 2 1\n")},
    {6, "too many", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 1\n1 1 1\n\n% more\n2 2 1\n")},
    {3, "too many", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 0\n2 2 1\n")},
    {4, "too few", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix array real general\n"
          "3 1\n1\n2\n")},
    {5, "too many", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix array real general\n"
          "2 1\n1\n2\n3\n")},
    {4, "too few", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix array real symmetric\n"
          "2 2\n1\n2\n")},
    {6, "too many", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix array real symmetric\n"
          "2 2\n1\n2\n3\n4\n")},
    {4, "too many", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix array real skew-symmetric\n"
          "2 2\n1\n2\n")},
    {5, "above", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real symmetric\n"
          "2 2 3\n1 1 1\n2 1 1\n1 2 1\n")},
    {5, "below", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real symmetric\n"
          "2 2 3\n1 1 1\n1 2 1\n2 1 1\n")},
    {4, "above", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real skew-symmetric\n"
          "2 2 2\n2 1 1\n1 2 -1\n")},
    {4, "above", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate complex hermitian\n"
          "2 2 2\n2 1 1 1\n1 2 1 -1\n")},
    {4, "mirror", SPS_EPARSE, LENIENT,
     TEXT("%%MatrixMarket matrix coordinate real symmetric\n"
          "2 2 2\n2 1 1\n1 2 2\n")},
    {4, "mirror", SPS_EPARSE, LENIENT,
     TEXT("%%MatrixMarket matrix coordinate real skew-symmetric\n"
          "2 2 2\n2 1 1\n1 2 1\n")},
    {4, "mirror", SPS_EPARSE, LENIENT,
     TEXT("%%MatrixMarket matrix coordinate complex hermitian\n"
          "2 2 2\n2 1 1 1\n1 2 1 1\n")},
    {5, "mirror", SPS_EPARSE, LENIENT,
     TEXT("%%MatrixMarket matrix coordinate real symmetric\n"
          "3 3 3\n2 1 1\n1 2 1\n3 2 5\n")},
    {4, "mirror", SPS_EPARSE, LENIENT,
     TEXT("%%MatrixMarket matrix coordinate complex symmetric\n"
          "2 2 2\n2 1 1 1\n1 2 1 -1\n")},
    {4, "skew", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate real skew-symmetric\n"
          "2 2 2\n2 1 1\n2 2 1\n")},
    {3, "real", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix coordinate complex hermitian\n"
          "2 2 1\n1 1 1 1\n")},
    {5, "real", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix array complex hermitian\n"
          "2 2\n1 0\n2 2\n3 1\n")},
    {6, "real", SPS_EPARSE, 0,
     TEXT("%%MatrixMarket matrix array complex hermitian\n"
          "2 2\n1 0\n2 2\n\n3 1\n")},
    {4, "given before", SPS_EPARSE, STRICT,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\n1 1 2\n")},
    {7, "given before", SPS_EPARSE, STRICT,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 3\n1 1 1\n% one\n\n2 2 2\n1 1 2\n")},
    {5, "given before", SPS_EPARSE, STRICT,
     TEXT("%%MatrixMarket matrix coordinate real symmetric\n"
          "3 3 3\n2 1 1\n3 3 1\n2 1 1\n")},
    {4, "given before", SPS_EPARSE, STRICT,
     TEXT("%%MatrixMarket matrix coordinate complex general\n"
          "2 2 2\n1 2 1 1\n1 2 1 1\n")},
    {2, "columns", SPS_EPARSE, BLOCK,
     TEXT("%%MatrixMarket matrix array real general\n"
          "1 1025\n" ONES1025)},
    {2, "columns", SPS_EPARSE, BLOCK,
     TEXT("%%MatrixMarket matrix array real general\n"
          "2 0\n")},
    {1, "complex", SPS_EPARSE, BLOCK,
     TEXT("%%MatrixMarket matrix array complex general\n"
          "1 1\n1 1\n")},
    {4, "given before", SPS_EPARSE, BLOCK | STRICT,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 2\n1 1 1\n1 1 2\n")},
    {5, "value is missing", SPS_EPARSE, BLOCK,
     TEXT("%%MatrixMarket matrix coordinate real general\n"
          "2 2 3\n1 1 1\n2 1 1\n2 2\n")},
    {4, "above", SPS_EPARSE, BLOCK,
     TEXT("%%MatrixMarket matrix coordinate real symmetric\n"
          "2 2 2\n2 1 1\n1 2 1\n")},
    {2, "limit", SPS_ENOMEM, BLOCK | SMALL,
     TEXT("%%MatrixMarket matrix array real general\n"
          "100 100\n" ONES10000)},
};

#endif
