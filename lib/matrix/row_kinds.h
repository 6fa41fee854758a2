/* SPDX-License-Identifier: BSD-3-Clause */
/* row_kinds.h - what is counted of the rows of a matrix before a method is
 * chosen for it: signs and dominance of the diagonal, and rows that map
 * constants to nearly zero.  Host and GPU add the entries of a row in their
 * order and count integers, so that both find the same. */
#ifndef SPS_ROW_KINDS_H
#define SPS_ROW_KINDS_H

#include <math.h>

#include "matrix/windows.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SPS_ROW_NODE = 6 };    /* largest number of rows of a node */

/* A row is nearly or strongly dominant if |a_ii| is at least this many times
 * the sum of the magnitudes of its other entries. */
#define SPS_ROW_NEAR 0.8
#define SPS_ROW_STRONG 1.5
/* A row knows constants if it maps those of each unknown to at most KNOWN of
 * its diagonal, or if its sum is not negative and its positive couplings add
 * up to less than POSITIVE of the diagonal (hardness.h). */
#define SPS_ROW_KNOWN 0.1
#define SPS_ROW_POSITIVE 0.5

/* Numbers of rows, or of entries. */
typedef struct sps_row_kinds {
    int64_t zero, negative;   /* diagonal entries; zero is not counted in a row
                                 without other entries, if these are null
                                 vectors that are projected away */
    int64_t weak;             /* diagonal entries below 1e-3 of the largest
                                 entry in their row */
    int64_t dominated, near, strong;
    int64_t odd;              /* entries that are not finite */
    int64_t squares;          /* sum of the squares of the lengths */
} sps_row_kinds;

/* Diagonal entries; `other` is not 0 if they are not all equal. */
typedef struct sps_diagonal_kinds {
    int64_t zero, negative, other;
} sps_diagonal_kinds;

typedef struct sps_row_sums {
    double d, others, largest;
    int64_t odd;
    bool alone;               /* no entry outside the diagonal */
} sps_row_sums;

SPS_BOTH void spsi_row_add(sps_row_sums *s, bool diagonal, double a)
{
    if (diagonal) s->d += a;
    else s->others += fabs(a);
    s->largest = fmax(s->largest, fabs(a));
    s->odd += !isfinite(a);
    s->alone = s->alone && diagonal;
}

SPS_BOTH void spsi_row_count(const sps_row_sums *s, int64_t length,
                             bool projected, sps_row_kinds *k)
{
    const double d = fabs(s->d);

    k->zero += d == 0 && !(projected && s->alone);
    k->negative += s->d < 0;
    k->weak += d < 1e-3 * s->largest;
    k->dominated += d != 0 && d >= (1 - 1e-12) * s->others;
    k->near += d != 0 && d >= SPS_ROW_NEAR * s->others;
    k->strong += d != 0 && d >= SPS_ROW_STRONG * s->others;
    k->odd += s->odd;
    k->squares += length * length;
}

/* sum[c]: sum of the entries of a row in the columns of unknown c of all nodes,
 * which is the product of the row with the constant of that unknown; d: the
 * diagonal entry; positive: sum of the positive ones outside the diagonal. */
typedef struct sps_row_constants {
    double sum[SPS_ROW_NODE], d, positive;
} sps_row_constants;

SPS_BOTH void spsi_constants_add(sps_row_constants *s, bool diagonal,
                                 int unknown, double a)
{
    s->sum[unknown] += a;
    if (diagonal) s->d += a;
    else s->positive += fmax(a, 0.0);
}

SPS_BOTH bool spsi_constants_known(const sps_row_constants *s, int b)
{
    double largest = 0;

    for (int c = 0; c < b; c++) largest = fmax(largest, fabs(s->sum[c]));
    return largest <= SPS_ROW_KNOWN * s->d ||
           (s->positive < SPS_ROW_POSITIVE * s->d && b == 1 && s->sum[0] >= 0);
}

/* Returns 1 / |d|, or 1 if that is not finite. */
SPS_BOTH double spsi_diagonal_inverse(double d)
{
    return d == 0 || !isfinite(1 / d) ? 1 : 1 / fabs(d);
}

/* Counts the rows of a csr in host memory. */
void spsi_row_kinds_count(sps_context *ctx, const sps_csr *A, bool projected,
                          sps_row_kinds *k);
/* Returns the number of rows that know constants, for nodes of b rows, at most
 * SPS_ROW_NODE. */
int64_t spsi_rows_known(sps_context *ctx, const sps_csr *A, int b);

#ifdef __cplusplus
}
#endif
#endif
