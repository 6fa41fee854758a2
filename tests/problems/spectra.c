/* SPDX-License-Identifier: BSD-3-Clause */
/* spectra.c - see spectra.h.  Dense arrays are n x n, row by row. */
#include "tests/problems/spectra.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/problems/zoo.h"

#define DENSE 40             /* above this size only a few planes are rotated:
                                sparse */

static double *zeros(int n)
{
    return calloc((size_t)n * (size_t)n + 1, sizeof(double));
}

sps_csr *spectrum_sparse(const double *a, int n, unsigned props)
{
    sps_csr *A = calloc(1, sizeof *A);
    const size_t room = (size_t)n * (size_t)n + 1;

    *A = (sps_csr){ .nrow = n, .ncol = n, .dtype = SPS_F64, .place = SPS_HOST,
                    .own = SPS_BORROW, .props = props | SPS_SORTED,
                    .struct_size = sizeof *A };
    A->rowptr = calloc((size_t)n + 1, sizeof *A->rowptr);
    A->col = malloc(room * sizeof *A->col);
    A->val = malloc(room * sizeof(double));
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            if (a[(long)i * n + j] == 0) continue;
            A->col[A->nnz] = j;
            ((double *)A->val)[A->nnz++] = a[(long)i * n + j];
        }
        A->rowptr[i + 1] = A->nnz;
    }
    return A;
}

static sps_csr *finish(double *a, int n, unsigned props)
{
    sps_csr *A = spectrum_sparse(a, n, props);

    free(a);
    return A;
}

/* ------------------------------------------------------------------- values */

/* Eigenvalues or singular values from 1 to 1 / c: geometric, arithmetic, one
 * large, one small, random, three clusters. */
static double value(draw *d, int law, int i, int n, double c)
{
    const double t = n > 1 ? (double)i / (n - 1) : 0;

    if (i == 0) return 1;
    if (i == n - 1) return 1 / c;
    switch (law) {
    case 0: return pow(c, -t);
    case 1: return 1 - t * (1 - 1 / c);
    case 2: return 1 / c;
    case 3: return 1;
    case 4: return pow(c, -draw_unit(d));
    default: return pow(c, -0.5 * (i % 3)) * (1 - 1e-3 * draw_unit(d));
    }
}

static void set_values(double *a, int n, draw *d, double c, int step)
{
    const int law = draw_int(d, 0, 5), m = n / step;

    for (int i = 0; i < m; i++) {
        const double v = value(d, law, i, m, c);

        for (int t = step * i; t < step * i + step; t++)
            a[(long)t * n + t] = v;
    }
}

/* ----------------------------------------------- orthogonal transformations */

enum { LEFT = 1, RIGHT = 2 };

/* a = H a and/or a H, H = I - 2 v v'. */
static void reflect_by(double *a, int n, const double *v, int sides)
{
    for (int i = 0; i < n && sides & LEFT; i++) {
        double sum = 0;

        for (int r = 0; r < n; r++) sum += v[r] * a[(long)r * n + i];
        for (int r = 0; r < n; r++) a[(long)r * n + i] -= 2 * sum * v[r];
    }
    for (int i = 0; i < n && sides & RIGHT; i++) {
        double sum = 0, *row = &a[(long)i * n];

        for (int c = 0; c < n; c++) sum += v[c] * row[c];
        for (int c = 0; c < n; c++) row[c] -= 2 * sum * v[c];
    }
}

/* For the real form of a complex matrix: the reflection in the plane of v and i
 * v. */
static void reflect(double *a, int n, draw *d, int sides, bool complex)
{
    double *v = malloc((size_t)n * sizeof *v);
    double *w = malloc((size_t)n * sizeof *w);
    double norm = 0;

    for (int i = 0; i < n; i++) v[i] = draw_unit(d) - 0.5;
    for (int i = 0; i < n; i++) norm += v[i] * v[i];
    for (int i = 0; i < n; i++) v[i] /= sqrt(norm);
    reflect_by(a, n, v, sides);
    for (int i = 0; complex && i < n; i++) w[i] = i % 2 ? v[i - 1] : -v[i + 1];
    if (complex) reflect_by(a, n, w, sides);
    free(v);
    free(w);
}

/* Rotation of the plane of unknowns i and j by a random angle. */
static void rotate(double *a, int n, draw *d, int sides)
{
    const int i = draw_int(d, 0, n - 1), j = (i + draw_int(d, 1, n - 1)) % n;
    const double angle = 6.283185307179586 * draw_unit(d);
    const double c = cos(angle), s = sin(angle);

    for (int t = 0; t < n && sides & LEFT; t++) {
        double x = a[(long)i * n + t], y = a[(long)j * n + t];

        a[(long)i * n + t] = c * x - s * y;
        a[(long)j * n + t] = s * x + c * y;
    }
    for (int t = 0; t < n && sides & RIGHT; t++) {
        double x = a[(long)t * n + i], y = a[(long)t * n + j];

        a[(long)t * n + i] = c * x - s * y;
        a[(long)t * n + j] = s * x + c * y;
    }
}

static void turn_once(double *a, int n, draw *d, int sides, bool complex)
{
    const int times = n <= DENSE || complex ? 2 : n;

    for (int t = 0; t < times; t++)
        if (n <= DENSE || complex) reflect(a, n, d, sides, complex);
        else rotate(a, n, d, sides);
}

/* U a V', or U a U', whose rounding errors are symmetrised. */
static void turn(double *a, int n, draw *d, bool symmetric, bool complex)
{
    if (n < 2) return;
    if (symmetric) {
        turn_once(a, n, d, LEFT | RIGHT, complex);
    } else {
        turn_once(a, n, d, LEFT, complex);
        turn_once(a, n, d, RIGHT, complex);
    }
    for (int i = 0; symmetric && i < n; i++)
        for (int j = 0; j < i; j++)
            a[(long)j * n + i] = a[(long)i * n + j];
}

/* ------------------------------------------------------- prescribed spectra */

static sps_csr *spd(draw *d, int n, double c)
{
    double *a = zeros(n);

    set_values(a, n, d, c, 1);
    turn(a, n, d, true, false);
    return finish(a, n, SPS_SYMMETRIC | SPS_SPD);
}

static sps_csr *indefinite(draw *d, int n, double c)
{
    double *a = zeros(n);

    set_values(a, n, d, c, 1);
    for (int i = 0; i < n; i++)
        if (draw_bits(d) % 2) a[(long)i * n + i] *= -1;
    turn(a, n, d, true, false);
    return finish(a, n, SPS_SYMMETRIC);
}

static sps_csr *nonsymmetric(draw *d, int n, double c)
{
    double *a = zeros(n);

    set_values(a, n, d, c, 1);
    turn(a, n, d, false, false);
    return finish(a, n, 0);
}

/* D times a permutation: factorisations have no fill. */
static sps_csr *permuted(draw *d, int n, double c)
{
    double *a = zeros(n), *row = malloc((size_t)n * sizeof *row);

    set_values(a, n, d, c, 1);
    for (int i = n - 1; i > 0; i--) {
        const int j = draw_int(d, 0, i);

        memcpy(row, &a[(long)i * n], (size_t)n * sizeof *row);
        memcpy(&a[(long)i * n], &a[(long)j * n], (size_t)n * sizeof *row);
        memcpy(&a[(long)j * n], row, (size_t)n * sizeof *row);
    }
    free(row);
    return finish(a, n, 0);
}

/* The real form of a complex matrix: 2 x 2 blocks [Re -Im; Im Re]; n even. */
static sps_csr *interleaved(draw *d, int n, double c, bool hermitian)
{
    double *a = zeros(n);

    set_values(a, n, d, c, 2);
    for (int i = 0; hermitian && i < n; i += 2)
        if (draw_bits(d) % 2)
            a[(long)i * n + i] = a[(long)(i + 1) * n + i + 1] *= -1;
    turn(a, n, d, hermitian, true);
    for (int i = 0; i < n; i += 2)
        for (int j = 0; j < n; j += 2) {
            double *top = &a[(long)i * n + j], *low = top + n;

            if (hermitian && i == j) top[1] = 0;
            low[0] = -top[1];
            low[1] = top[0];
        }
    for (int i = 0; hermitian && i < n; i++)
        for (int j = 0; j < i; j++)
            a[(long)j * n + i] = a[(long)i * n + j];
    return finish(a, n, SPS_INTERLEAVED | (hermitian ? SPS_SYMMETRIC : 0));
}

static sps_csr *complex_general(draw *d, int n, double c)
{
    return interleaved(d, n, c, false);
}

static sps_csr *hermitian(draw *d, int n, double c)
{
    return interleaved(d, n, c, true);
}

/* -------------------------------------------------------------- other kinds */

/* Upper triangular: eigenvalues of one sign or both, with couplings of similar
 * size above the diagonal; half of them transformed orthogonally. */
static sps_csr *nonnormal(draw *d, int n, double c)
{
    const double coupling = pow(10, -2 * draw_unit(d));
    const bool signs = draw_bits(d) % 2;
    double *a = zeros(n);

    for (int i = 0; i < n; i++) {
        a[(long)i * n + i] = pow(c, -draw_unit(d) / 2);
        if (signs && draw_bits(d) % 2) a[(long)i * n + i] *= -1;
        for (int j = i + 1; j < n && j < i + 40; j++)
            a[(long)i * n + j] = coupling * (draw_unit(d) - 0.5);
    }
    if (n > 1 && draw_bits(d) % 2) turn_once(a, n, d, LEFT | RIGHT, false);
    return finish(a, n, 0);
}

/* A well-conditioned matrix whose rows, columns or both are scaled by powers of
 * two down to about 1 / c. */
static sps_csr *graded(draw *d, int n, double c, int sides, bool symmetric)
{
    double *a = zeros(n);
    const double most = log2(c);

    set_values(a, n, d, 10, 1);
    turn(a, n, d, symmetric, false);
    for (int i = 0; i < n; i++) {
        const int e = -(int)(most * i / n);

        for (int j = 0; j < n && sides & LEFT; j++)
            a[(long)i * n + j] = ldexp(a[(long)i * n + j], e);
        for (int j = 0; j < n && sides & RIGHT; j++)
            a[(long)j * n + i] = ldexp(a[(long)j * n + i], e);
    }
    return finish(a, n, symmetric ? SPS_SYMMETRIC | SPS_SPD : 0);
}

static sps_csr *graded_rows(draw *d, int n, double c)
{
    return graded(d, n, c, LEFT, false);
}

static sps_csr *graded_columns(draw *d, int n, double c)
{
    return graded(d, n, c, RIGHT, false);
}

static sps_csr *graded_spd(draw *d, int n, double c)
{
    return graded(d, n, sqrt(c), LEFT | RIGHT, true);
}

/* B C with integer n x r factors, or B B'. */
static sps_csr *low_rank(draw *d, int n, bool symmetric)
{
    const int r = n > 1 ? draw_int(d, 1, n - 1) : 1;
    int *b = malloc((size_t)(2 * n * r) * sizeof *b), *c = b + n * r;
    double *a = zeros(n);

    for (int t = 0; t < 2 * n * r; t++) b[t] = draw_int(d, -3, 3);
    if (symmetric) memcpy(c, b, (size_t)(n * r) * sizeof *b);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            for (int t = 0; t < r; t++)
                a[(long)i * n + j] += b[i * r + t] * c[j * r + t];
    if (n == 1) a[0] = 0;
    free(b);
    return finish(a, n, symmetric ? SPS_SYMMETRIC : 0);
}

static sps_csr *singular(draw *d, int n, double c)
{
    (void)c;
    return low_rank(d, n, false);
}

static sps_csr *semidefinite(draw *d, int n, double c)
{
    (void)c;
    return low_rank(d, n, true);
}

/* The Laplacian of a forest with some additional edges, with one to three
 * components. */
static sps_csr *graph(draw *d, int n, double c)
{
    double *a = zeros(n);
    const int parts = n > 9 ? draw_int(d, 1, 3) : 1, each = n / parts;

    (void)c;
    for (int i = 0; i < n; i++)
        for (int t = draw_int(d, 0, 2); i % each && t >= 0; t--) {
            const int j = i - i % each + draw_int(d, 0, i % each - 1);
            const double w = draw_int(d, 1, 8);

            a[(long)i * n + i] += w;
            a[(long)j * n + j] += w;
            a[(long)j * n + i] = a[(long)i * n + j] -= w;
        }
    return finish(a, n, SPS_SYMMETRIC);
}

/* Scaled finite differences on a grid plus a shift: a D (T + shift) D. */
static sps_csr *grid(draw *d, int n, double c)
{
    sps_csr *A = zoo_matrix(zoo_find("grid5"), n, 5, ZOO_LAPLACIAN, SPS_F64);
    const double shift = 8 / sqrt(c);
    const int most = (int)(log2(c) / 4);
    int *e = malloc((size_t)(A->nrow + 1) * sizeof *e);
    double *val = A->val;

    for (int64_t i = 0; i < A->nrow; i++) e[i] = draw_int(d, -most, 0);
    for (int64_t i = 0; i < A->nrow; i++)
        for (int64_t q = A->rowptr[i]; q < A->rowptr[i + 1]; q++)
            val[q] = ldexp(val[q] + (A->col[q] == i ? shift : 0),
                           e[i] + e[A->col[q]]);
    A->props |= SPS_SPD;
    free(e);
    return A;
}

/* A square pattern of the zoo: SPD, or random with a diagonal that dominates
 * most rows. */
static sps_csr *pattern(draw *d, int n, double c)
{
    const bool wish = draw_bits(d) % 2;
    const uint64_t seed = draw_bits(d);
    int f = draw_int(d, 0, zoo_count() - 1);
    sps_csr *A;
    double *val;

    (void)c;
    while (!zoo_symmetric(f)) f = (f + 1) % zoo_count();
    A = zoo_matrix(f, n, seed, wish ? ZOO_SPD : ZOO_RANDOM, SPS_F64);
    val = A->val;
    for (int64_t i = 0; !wish && i < A->nrow; i++) {
        double sum = 0.1;

        for (int64_t q = A->rowptr[i]; q < A->rowptr[i + 1]; q++)
            sum += 0.8 * fabs(val[q]);
        for (int64_t q = A->rowptr[i]; q < A->rowptr[i + 1]; q++)
            if (A->col[q] == i) val[q] = draw_int(d, 0, 7) ? sum : -sum;
    }
    return A;
}

const spectrum spectra[] = {
    { "spd", SPECTRUM_SYMMETRIC | SPECTRUM_DEFINITE | SPECTRUM_SET, spd },
    { "indefinite", SPECTRUM_SYMMETRIC | SPECTRUM_SET, indefinite },
    { "nonsymmetric", SPECTRUM_SET, nonsymmetric },
    { "permuted", SPECTRUM_SET, permuted },
    { "complex", SPECTRUM_COMPLEX | SPECTRUM_SET, complex_general },
    { "hermitian", SPECTRUM_COMPLEX | SPECTRUM_SYMMETRIC | SPECTRUM_SET,
      hermitian },
    { "nonnormal", 0, nonnormal },
    { "graded rows", 0, graded_rows },
    { "graded columns", 0, graded_columns },
    { "graded spd", SPECTRUM_SYMMETRIC | SPECTRUM_DEFINITE, graded_spd },
    { "singular", SPECTRUM_SINGULAR, singular },
    { "semidefinite", SPECTRUM_SYMMETRIC | SPECTRUM_SINGULAR, semidefinite },
    { "graph", SPECTRUM_SYMMETRIC | SPECTRUM_SINGULAR, graph },
    { "grid", SPECTRUM_SYMMETRIC | SPECTRUM_DEFINITE, grid },
    { "pattern", 0, pattern },
};
const int spectrum_count = sizeof spectra / sizeof *spectra;
