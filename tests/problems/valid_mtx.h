/* SPDX-License-Identifier: BSD-3-Clause */
/* valid_mtx.h - files that must be accepted, and the dense matrix that results
 * (row-major; complex ones in the interleaved real form). */
#ifndef SPS_TEST_VALID_MTX_H
#define SPS_TEST_VALID_MTX_H

#include "spsolve.h"

#define BANNER "%%MatrixMarket matrix "

static const struct valid_mtx {
    const char *text;
    int nrow, ncol;
    double value[40];
    unsigned props;            /* except SPS_SORTED */
    const char *note;          /* a word of the note that must be issued */
} valid_mtx[] = {
    /* coordinate: fields */
    {BANNER "coordinate real general\n2 3 3\n1 1 1.5\n2 3 -2\n1 3 4\n", 2, 3,
     {1.5, 0, 4, 0, 0, -2}, 0, NULL},
    {BANNER "coordinate double general\n1 1 1\n1 1 2\n", 1, 1, {2}, 0, NULL},
    {BANNER "coordinate integer general\n2 2 2\n1 2 -7\n2 1 +3\n", 2, 2,
     {0, -7, 3, 0}, 0, NULL},
    {BANNER "coordinate unsigned-integer general\n1 2 1\n1 2 4000000000\n", 1,
     2, {0, 4e9}, 0, NULL},
    {BANNER "coordinate pattern general\n2 2 2\n1 2\n2 2\n", 2, 2,
     {0, 1, 0, 1}, 0, "pattern"},
    {BANNER "coordinate complex general\n1 2 2\n1 1 1 2\n1 2 3 -4\n", 2, 4,
     {1, -2, 3, 4, 2, 1, -4, 3}, SPS_INTERLEAVED, "complex"},
    /* coordinate: symmetries */
    {BANNER "coordinate real symmetric\n3 3 3\n1 1 1\n3 1 2\n2 2 3\n", 3, 3,
     {1, 0, 2, 0, 3, 0, 2, 0, 0}, SPS_SYMMETRIC, NULL},
    {BANNER "coordinate real symmetric\n2 2 2\n1 1 1\n1 2 5\n", 2, 2,
     {1, 5, 5, 0}, SPS_SYMMETRIC, "mirrored"},
    {BANNER "coordinate integer symmetric\n2 2 1\n2 1 5\n", 2, 2,
     {0, 5, 5, 0}, SPS_SYMMETRIC, NULL},
    {BANNER "coordinate pattern symmetric\n2 2 2\n2 1\n2 2\n", 2, 2,
     {0, 1, 1, 1}, SPS_SYMMETRIC, "pattern"},
    {BANNER "coordinate pattern hermitian\n2 2 1\n2 1\n", 2, 2,
     {0, 1, 1, 0}, SPS_SYMMETRIC, "pattern"},
    {BANNER "coordinate complex symmetric\n2 2 2\n1 1 1 2\n2 1 3 4\n", 4, 4,
     {1, -2, 3, -4, 2, 1, 4, 3, 3, -4, 0, 0, 4, 3, 0, 0}, SPS_INTERLEAVED,
     NULL},
    {BANNER "coordinate real skew-symmetric\n2 2 2\n2 1 3\n2 2 0\n", 2, 2,
     {0, -3, 3, 0}, 0, NULL},
    {BANNER "coordinate real skew-symmetric\n2 2 1\n1 2 3\n", 2, 2,
     {0, 3, -3, 0}, 0, "mirrored"},
    {BANNER "coordinate integer skew-symmetric\n2 2 1\n2 1 -3\n", 2, 2,
     {0, 3, -3, 0}, 0, NULL},
    {BANNER "coordinate complex skew-symmetric\n2 2 1\n2 1 3 4\n", 4, 4,
     {0, 0, -3, 4, 0, 0, -4, -3, 3, -4, 0, 0, 4, 3, 0, 0}, SPS_INTERLEAVED,
     NULL},
    {BANNER "coordinate complex hermitian\n2 2 2\n1 1 1 0\n2 1 3 4\n", 4, 4,
     {1, 0, 3, 4, 0, 1, -4, 3, 3, -4, 0, 0, 4, 3, 0, 0},
     SPS_INTERLEAVED | SPS_SYMMETRIC, NULL},
    {BANNER "coordinate complex hermitian\n2 2 1\n1 2 3 4\n", 4, 4,
     {0, 0, 3, -4, 0, 0, 4, 3, 3, 4, 0, 0, -4, 3, 0, 0},
     SPS_INTERLEAVED | SPS_SYMMETRIC, "mirrored"},
    {BANNER "coordinate real hermitian\n2 2 1\n2 1 3\n", 2, 2, {0, 3, 3, 0},
     SPS_SYMMETRIC, NULL},
    {BANNER "coordinate integer hermitian\n2 2 1\n2 1 3\n", 2, 2,
     {0, 3, 3, 0}, SPS_SYMMETRIC, NULL},
    /* arrays */
    {BANNER "array real general\n2 3\n1\n2\n3\n4\n5\n6\n", 2, 3,
     {1, 3, 5, 2, 4, 6}, 0, NULL},
    {BANNER "array integer general\n1 2\n0\n-2\n", 1, 2, {0, -2}, 0, NULL},
    {BANNER "array unsigned-integer general\n1 1\n9\n", 1, 1, {9}, 0, NULL},
    {BANNER "array complex general\n1 2\n1 2\n3 4\n", 2, 4,
     {1, -2, 3, -4, 2, 1, 4, 3}, SPS_INTERLEAVED, NULL},
    {BANNER "array real symmetric\n2 2\n1\n2\n3\n", 2, 2, {1, 2, 2, 3},
     SPS_SYMMETRIC, NULL},
    {BANNER "array integer symmetric\n3 3\n1\n2\n3\n4\n5\n6\n", 3, 3,
     {1, 2, 3, 2, 4, 5, 3, 5, 6}, SPS_SYMMETRIC, NULL},
    {BANNER "array real skew-symmetric\n3 3\n1\n2\n3\n", 3, 3,
     {0, -1, -2, 1, 0, -3, 2, 3, 0}, 0, NULL},
    {BANNER "array complex hermitian\n2 2\n1 0\n2 3\n4 0\n", 4, 4,
     {1, 0, 2, 3, 0, 1, -3, 2, 2, -3, 4, 0, 3, 2, 0, 4},
     SPS_INTERLEAVED | SPS_SYMMETRIC, NULL},
    {BANNER "array complex symmetric\n1 1\n1 2\n", 2, 2, {1, -2, 2, 1},
     SPS_INTERLEAVED, NULL},
    {BANNER "array complex skew-symmetric\n2 2\n1 2\n", 4, 4,
     {0, 0, -1, 2, 0, 0, -2, -1, 1, -2, 0, 0, 2, 1, 0, 0}, SPS_INTERLEAVED,
     NULL},
    {BANNER "array real hermitian\n1 1\n5\n", 1, 1, {5}, SPS_SYMMETRIC, NULL},
    /* vectors */
    {"%%MatrixMarket vector array real general\n3\n1\n0\n3\n", 3, 1,
     {1, 0, 3}, 0, NULL},
    {"%%MatrixMarket vector coordinate real general\n3 2\n3 5\n1 -1\n", 3, 1,
     {-1, 0, 5}, 0, NULL},
    {"%%MatrixMarket vector coordinate pattern general\n3 1\n2\n", 3, 1,
     {0, 1, 0}, 0, "pattern"},
    {"%%MatrixMarket vector coordinate complex general\n1 1\n1 5 6\n", 2, 2,
     {5, -6, 6, 5}, SPS_INTERLEAVED, NULL},
    /* sizes */
    {BANNER "coordinate real general\n0 0 0\n", 0, 0, {0}, 0, NULL},
    {BANNER "coordinate real general\n3 0 0\n", 3, 0, {0}, 0, NULL},
    {BANNER "coordinate real general\n0 3 0\n", 0, 3, {0}, 0, NULL},
    {BANNER "coordinate real general\n2 2 0\n", 2, 2, {0}, 0, NULL},
    {BANNER "coordinate real symmetric\n0 0 0\n", 0, 0, {0}, SPS_SYMMETRIC,
     NULL},
    {BANNER "array real general\n0 3\n", 0, 3, {0}, 0, NULL},
    {BANNER "array real skew-symmetric\n1 1\n", 1, 1, {0}, 0, NULL},
    {BANNER "coordinate real general\n0002 02 01\n01 0002 1\n", 2, 2,
     {0, 1, 0, 0}, 0, NULL},
    /* the free format */
    {"%%matrixmarket MATRIX Coordinate REAL General\n1 1 1\n1 1 1\n", 1, 1,
     {1}, 0, NULL},
    {"%%MATRIXMARKET\tmatrix\tcoordinate\treal\tgeneral\t \n1\t1 1\n1\t1\t1\n",
     1, 1, {1}, 0, NULL},
    {" \t%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 1\n", 1, 1,
     {1}, 0, "blanks"},
    {"\xef\xbb\xbf%%MatrixMarket matrix coordinate real general\n1 1 1\n"
     "1 1 1\n", 1, 1, {1}, 0, "byte order mark"},
    {"%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 1\n", 1, 1,
     {1}, 0, "one percent"},
    {BANNER "coordinate real general\n%\n%% two\n  % three\n\n \t\n  1 1  1  \n"
     "\n   1   1    7  \n\n% the end\n  \n", 1, 1, {7}, 0, NULL},
    {BANNER "coordinate real general\n2 2 2\n1 1 1\n%\n% c\n\n2 2 2\n", 2, 2,
     {1, 0, 0, 2}, 0, NULL},
    {BANNER "array real general\n% c\n2 1\n\n1\n\n% c\n2\n\n", 2, 1, {1, 2}, 0,
     NULL},
    {BANNER "coordinate real general\n1 1 4\n1 1 1\n1 1 2\n1 1 3\n1 1 4\n", 1,
     1, {10}, 0, "duplicate"},
    {BANNER "coordinate real general\n3 3 4\n3 3 4\n2 3 3\n2 1 2\n1 2 1\n", 3,
     3, {0, 1, 0, 2, 0, 3, 0, 0, 4}, 0, NULL},
    {BANNER "array real general\n13 1\n1.\n.5\n+1\n-1.5e+2\n1d2\n1D-2\n1.5E2\n"
     "00.25\n-0.0\n1e-400\n0.1\n12345678901234567890123\n1E0\n", 13, 1,
     {1, 0.5, 1, -150, 100, 0.01, 150, 0.25, 0, 0, 0.1,
      12345678901234567890123.0, 1}, 0, "below the normal range"},
    {BANNER "coordinate real symmetric\n3 3 6\n3 3 6\n3 2 5\n3 1 4\n2 2 3\n"
     "2 1 2\n1 1 1\n", 3, 3, {1, 2, 4, 2, 3, 5, 4, 5, 6}, SPS_SYMMETRIC, NULL},
};

#endif
