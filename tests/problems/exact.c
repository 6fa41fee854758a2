/* SPDX-License-Identifier: BSD-3-Clause */
/* exact.c - see exact.h. */
#include "tests/problems/exact.h"

#include <math.h>
#include <string.h>

/* TwoSum (Knuth): *sum + the returned error = old *sum + term, exactly. */
static long double two_sum(long double *sum, long double term)
{
    const long double old = *sum, now = old + term, part = now - old;

    *sum = now;
    return (old - (now - part)) + (term - part);
}

void exact_add(exact_sum *s, long double term)
{
    s->lost += fabsl(two_sum(&s->low, two_sum(&s->high, term)));
}

/* The leading 26 bits of a normal double; the remainder has 27. */
static double leading(double a)
{
    uint64_t bits;

    memcpy(&bits, &a, sizeof bits);
    bits &= ~UINT64_C(0x7ffffff);
    memcpy(&a, &bits, sizeof bits);
    return a;
}

void exact_add_product(exact_sum *s, double a, double b)
{
    const long double a1 = leading(a), a2 = a - leading(a);
    const long double b1 = leading(b), b2 = b - leading(b);

    if (a == 0 || b == 0) return;
    exact_add(s, a1 * b1);
    exact_add(s, a1 * b2);
    exact_add(s, a2 * b1);
    exact_add(s, a2 * b2);
}

long double exact_value(const exact_sum *s)
{
    return s->high + s->low;
}

/* The sum `lost` is itself rounded, by less than half of its value: hence the
 * factor 2. */
long double exact_doubt(const exact_sum *s)
{
    return LDBL_EPSILON * fabsl(exact_value(s)) + 2 * s->lost;
}

/* s += sign * row i of A times column j of x. */
static void add_row(exact_sum *s, const sps_csr *A, int64_t i, double sign,
                    const double *x, int64_t ld, int j)
{
    const double *val = A->val;

    for (int64_t q = A->rowptr[i]; q < A->rowptr[i + 1]; q++)
        exact_add_product(s, sign * val[q], x[A->col[q] * ld + j]);
}

static long double finite_norm(long double squares)
{
    return isfinite(squares) ? sqrtl(squares) : INFINITY;
}

exact_norms exact_residual(const sps_csr *A, const double *b, const double *x,
                           int64_t ld, int j)
{
    long double rr = 0, dd = 0, bb = 0, xx = 0;

    for (int64_t i = 0; i < A->nrow; i++) {
        exact_sum s = { 0 };
        const long double bi = b[i * ld + j], xi = x[i * ld + j];
        long double r, d;

        exact_add(&s, bi);
        add_row(&s, A, i, -1, x, ld, j);
        r = exact_value(&s);
        d = exact_doubt(&s);
        rr += r * r;
        dd += d * d;
        bb += bi * bi;
        xx += xi * xi;
    }
    return (exact_norms){ finite_norm(rr), finite_norm(dd), finite_norm(bb),
                          finite_norm(xx) };
}

/* Row i of M x as an unevaluated sum of two long doubles. */
static exact_sum mass_row(const sps_csr *M, int64_t i, const double *x,
                          int64_t ld, int j)
{
    exact_sum s = { 0 };

    if (M) add_row(&s, M, i, 1, x, ld, j);
    else exact_add(&s, x[i * ld + j]);
    return s;
}

/* s -= lambda t: each part of t is split exactly into three doubles. */
static void take_multiple(exact_sum *s, double lambda, const exact_sum *t)
{
    long double part[2] = { t->high, t->low };

    for (int h = 0; h < 2; h++)
        for (int c = 0; c < 3 && part[h] != 0; c++) {
            const double piece = (double)part[h];

            exact_add_product(s, -lambda, piece);
            part[h] -= piece;
        }
}

exact_pair exact_eigen(const sps_csr *A, const sps_csr *M, double lambda,
                       const double *x, int64_t ld, int j)
{
    long double rr = 0, dd = 0, mm = 0, xx = 0;

    for (int64_t i = 0; i < A->nrow; i++) {
        const exact_sum t = mass_row(M, i, x, ld, j);
        const long double m = exact_value(&t), xi = x[i * ld + j];
        exact_sum s = { 0 };
        long double r, d;

        add_row(&s, A, i, 1, x, ld, j);
        take_multiple(&s, lambda, &t);
        r = exact_value(&s);
        d = exact_doubt(&s) + fabsl((long double)lambda) * exact_doubt(&t);
        rr += r * r;
        dd += d * d;
        mm += m * m;
        xx += xi * xi;
    }
    return (exact_pair){ finite_norm(rr), finite_norm(dd), finite_norm(mm),
                         finite_norm(xx) };
}
