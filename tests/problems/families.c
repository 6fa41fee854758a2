/* SPDX-License-Identifier: BSD-3-Clause */
/* families.c - see families.h.  Entries are exact as a rule: integers, halves,
 * scalings by powers of two; a prescribed spectrum, imposed by random
 * reflections, is accurate up to rounding. */
#include "tests/problems/families.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double *mass_at(pencil *p, int i, int j)
{
    return &p->m[(long)i * p->n + j];
}

/* ------------------------------------------------------- prescribed spectra */

/* H A H, H = I - 2 v v', v a random unit vector. */
static void reflect(double *a, int n, draw *d)
{
    double *v = malloc((size_t)n * sizeof *v), *w = calloc((size_t)n, sizeof *w);
    double norm = 0, c = 0;

    for (int i = 0; i < n; i++) v[i] = draw_unit(d) - 0.5;
    for (int i = 0; i < n; i++) norm += v[i] * v[i];
    for (int i = 0; i < n; i++) v[i] /= sqrt(norm);
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) w[i] += a[(long)i * n + j] * v[j];
        c += v[i] * w[i];
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++)
            a[(long)j * n + i] = a[(long)i * n + j] +=
                4 * c * v[i] * v[j] - 2 * (v[i] * w[j] + w[i] * v[j]);
    free(v);
    free(w);
}

/* A with the eigenvalues on its diagonal is mixed by reflections; M is a
 * diagonal of powers of four, and A is scaled congruently, so that the
 * eigenvalues stay the same. */
static void mix(pencil *p, draw *d)
{
    for (int t = 0; t < 3; t++) reflect(p->a, p->n, d);
    for (int i = 0; p->m && i < p->n; i++) {
        int e = draw_int(d, 0, 3);

        pencil_mass(p, i, i, ldexp(1, 2 * e));
        for (int j = 0; j < p->n; j++) {
            *pencil_a(p, i, j) = ldexp(*pencil_a(p, i, j), e);
            *pencil_a(p, j, i) = ldexp(*pencil_a(p, j, i), e);
        }
    }
}

static void geometric(pencil *p, draw *d)
{
    for (int i = 0; i < p->n; i++)
        pencil_set(p, i, i, pow(10, 6.0 * i / p->n));
    mix(p, d);
}

/* Three clusters, whose width is above or below what the tolerance resolves. */
static void clustered(pencil *p, draw *d)
{
    static const double middle[3] = { 1, 3, 10 }, width[3] = { 1e-3, 1e-6, 1e-12 };
    double w = width[draw_int(d, 0, 2)];

    for (int i = 0; i < p->n; i++)
        pencil_set(p, i, i, middle[i % 3] * (1 + w * draw_unit(d)));
    mix(p, d);
}

static void repeated(pencil *p, draw *d)
{
    int times = draw_int(d, 2, 30);

    for (int i = 0; i < p->n; i++) pencil_set(p, i, i, 1 + 0.25 * (i / times));
    mix(p, d);
}

/* All in [1, 2) except one far below and one far above. */
static void one_far(pencil *p, draw *d)
{
    for (int i = 0; i < p->n; i++) pencil_set(p, i, i, 1 + draw_unit(d));
    pencil_set(p, 0, 0, 1e-4);
    if (p->n > 1) pencil_set(p, 1, 1, 1e4);
    mix(p, d);
}

/* Half of them negative, in [-1, 1). */
static void dense_indefinite(pencil *p, draw *d)
{
    for (int i = 0; i < p->n; i++) pencil_set(p, i, i, 2 * draw_unit(d) - 1);
    mix(p, d);
}

/* -------------------------------------------------------------- structures */

static int some_elements(int n)
{
    return n < 6 ? 6 : n;
}

/* Bernoulli beam of elements of length h with two Hermite unknowns per node,
 * clamped at one end or free; consistent mass, or lumped: h / 2 and h^3 / 24.
 * For odd n the last rotation is fixed. */
static void add_element(pencil *p, int first, double h, bool lumped)
{
    const double k[4][4] = { { 12, 6, -12, 6 }, { 6, 4, -6, 2 },
                             { -12, -6, 12, -6 }, { 6, 2, -6, 4 } };
    const double m[4][4] = { { 156, 22, 54, -13 }, { 22, 4, 13, -3 },
                             { 54, 13, 156, -22 }, { -13, -3, -22, 4 } };

    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            int r = first + i, c = first + j;
            double unit = pow(h, i % 2 + j % 2);

            if (r < 0 || c < 0 || r >= p->n || c >= p->n) continue;
            *pencil_a(p, r, c) += k[i][j] * unit / (h * h * h);
            if (!p->m || (lumped && i != j)) continue;
            *mass_at(p, r, c) += lumped ? (i % 2 ? h * h * h / 24 : h / 2)
                                        : m[i][j] * unit * h / 420;
        }
}

static void rigid_motions(pencil *p, double h)
{
    p->nulls = p->n % 2 ? 1 : 2;
    p->null = calloc((size_t)(p->n * p->nulls), sizeof *p->null);
    for (int i = 0; i < p->n; i++) {
        p->null[i * p->nulls] = i % 2 == 0;
        if (p->nulls == 2) p->null[i * 2 + 1] = i % 2 ? 1 : i / 2 * h;
    }
}

static void beam(pencil *p, draw *d, bool is_free)
{
    double h = draw_int(d, 0, 1) ? 1 : ldexp(1, -(int)log2(p->n));
    bool lumped = draw_int(d, 0, 1);

    for (int first = is_free ? 0 : -2; first + 2 < p->n; first += 2)
        add_element(p, first, h, lumped);
    if (is_free) rigid_motions(p, h);
}

static void clamped_beam(pencil *p, draw *d)
{
    beam(p, d, false);
}

static void free_beam(pencil *p, draw *d)
{
    beam(p, d, true);
}

/* Differences on the first n points of a grid with w columns in planes of h
 * rows: diagonal 2 per direction, off-diagonal -1. */
static void grid(pencil *p, int w, int h)
{
    const int size[3] = { w, h, p->n }, stride[3] = { 1, w, w * h };

    for (int i = 0; i < p->n; i++)
        for (int t = 0; t < 3 && (t == 0 || stride[t] < p->n); t++) {
            *pencil_a(p, i, i) += 2;
            if (i / stride[t] % size[t] > 0) pencil_set(p, i, i - stride[t], -1);
        }
}

/* M = 7 I + the off-diagonal entries of A, made positive. */
static void grid_mass(pencil *p)
{
    for (int i = 0; i < p->n; i++)
        for (int j = 0; p->m && j < p->n; j++)
            *mass_at(p, i, j) = i == j ? 7 : -*pencil_a(p, i, j);
}

static int side(int n, int dimensions)
{
    return (int)(pow(n, 1.0 / dimensions) + 1e-9);
}

static int squares(int n)
{
    return side(n, 2) * side(n, 2);
}

static int cubes(int n)
{
    return side(n, 3) * side(n, 3) * side(n, 3);
}

static void square(pencil *p, draw *d)
{
    (void)d;
    grid(p, side(p->n, 2), p->n);
    grid_mass(p);
}

static void cube(pencil *p, draw *d)
{
    (void)d;
    grid(p, side(p->n, 3), side(p->n, 3));
    grid_mass(p);
}

/* A simply supported plate, the square of five-point differences; lumped mass
 * of non-uniform thickness. */
static void plate(pencil *p, draw *d)
{
    size_t bytes = (size_t)p->n * (size_t)p->n * sizeof(double);
    double *l = malloc(bytes);

    grid(p, side(p->n, 2), p->n);
    memcpy(l, p->a, bytes);
    memset(p->a, 0, bytes);
    for (int i = 0; i < p->n; i++) {
        if (p->m) pencil_mass(p, i, i, draw_int(d, 1, 4));
        for (int j = 0; j < p->n; j++) {
            if (l[(long)i * p->n + j] == 0) continue;
            for (int c = 0; c < p->n; c++)
                *pencil_a(p, i, c) += l[(long)i * p->n + j] *
                                      l[(long)j * p->n + c];
        }
    }
    free(l);
}

/* Some unknowns are fixed by springs 1e8 times as stiff as the rest. */
static void held_by_springs(pencil *p, draw *d)
{
    square(p, d);
    for (int i = 0; i < p->n; i += 7) *pencil_a(p, i, i) += 1e8;
}

/* --------------------------------------------------------- graphs, patterns */

static void add_edge(pencil *p, int i, int j, double weight)
{
    if (i == j) return;
    *pencil_a(p, i, i) += weight;
    *pencil_a(p, j, j) += weight;
    pencil_set(p, i, j, *pencil_a(p, i, j) - weight);
}

/* Laplacians of one to five components, each a tree with some additional edges;
 * if there are several, the first is a single vertex.  The zero eigenvalues are
 * deflated, or wanted. */
static void graph(pencil *p, draw *d)
{
    int parts = p->n > 12 ? draw_int(d, 1, 5) : 1, begin = 0;

    for (int c = 0; c < parts; c++) {
        int end = c + 1 == parts ? p->n : c == 0 ? 1 : begin + p->n / parts;

        for (int i = begin + 1; i < end; i++)
            for (int t = draw_int(d, 0, 3); t >= 0; t--)
                add_edge(p, i, draw_int(d, begin, i - 1), draw_int(d, 1, 8));
        begin = end;
    }
    p->opt.atol = 1e-9;
    for (int i = 0; p->m && i < p->n; i++) pencil_mass(p, i, i, 1 + i % 3);
    if (draw_int(d, 0, 1) || p->n <= parts) return;
    p->nulls = parts;
    p->opt.nullspace = "components";
}

static void diagonal(pencil *p, draw *d)
{
    for (int i = 0; i < p->n; i++) {
        pencil_set(p, i, i, draw_int(d, 1, 40));
        if (p->m) pencil_mass(p, i, i, draw_int(d, 1, 4));
    }
}

static void toeplitz(pencil *p, draw *d)
{
    int middle = 2 * draw_int(d, 0, 1);   /* 0: spectrum symmetric to zero */

    for (int i = 0; i < p->n; i++) {
        pencil_set(p, i, i, middle);
        if (i) pencil_set(p, i, i - 1, -1);
        if (p->m) pencil_mass(p, i, i, 4);
        if (p->m && i) pencil_mass(p, i, i - 1, 1);
    }
    if (!middle) p->opt.atol = 1e-9;   /* an odd chain has a zero eigenvalue */
}

static void arrowhead(pencil *p, draw *d)
{
    int last = p->n - 1;

    for (int i = 0; i < last; i++) {
        pencil_set(p, i, i, 1 + i);
        pencil_set(p, i, last, draw_int(d, 1, 4) * 0.25);
    }
    pencil_set(p, last, last, draw_int(d, 0, 1) ? p->n : -1);
    for (int i = 0; p->m && i < p->n; i++) {
        pencil_mass(p, i, i, p->n);
        if (i < last) pencil_mass(p, i, last, 0.5);
    }
}

/* Diagonally dominant with random couplings, M likewise. */
static void dominant(pencil *p, draw *d)
{
    int band = draw_int(d, 1, 12);

    for (int i = 0; i < p->n; i++) {
        *pencil_a(p, i, i) += 0.125 * draw_int(d, 1, 80);
        if (p->m) *mass_at(p, i, i) += 0.125 * draw_int(d, 1, 8);
        for (int t = 0; t < band && i > 0; t++) {
            int j = draw_int(d, 0, i - 1);
            double v = 0.0625 * draw_value(d, DRAW_INTEGERS), w = 0.25 * v;

            *pencil_a(p, i, i) += fabs(v) + fabs(*pencil_a(p, i, j));
            *pencil_a(p, j, j) += fabs(v) + fabs(*pencil_a(p, i, j));
            pencil_set(p, i, j, v);
            if (!p->m) continue;
            *mass_at(p, i, i) += fabs(w) + fabs(*mass_at(p, i, j));
            *mass_at(p, j, j) += fabs(w) + fabs(*mass_at(p, i, j));
            pencil_mass(p, i, j, w);
        }
    }
}

/* D A D, D M D with scalings D from 2^-most to 2^most, which leave the
 * eigenvalues of the pencil unchanged to the last bit. */
static void in_units(pencil *p, draw *d, int most)
{
    dominant(p, d);
    p->unit = malloc((size_t)p->n * sizeof *p->unit);
    for (int i = 0; i < p->n; i++) p->unit[i] = draw_int(d, -most, most);
    for (int i = 0; i < p->n; i++)
        for (int j = 0; j < p->n; j++) {
            int e = p->unit[i] + p->unit[j];

            *pencil_a(p, i, j) = ldexp(*pencil_a(p, i, j), e);
            *mass_at(p, i, j) = ldexp(*mass_at(p, i, j), e);
        }
}

/* Entries of A and M scaled by 1e-6 to 1e6. */
static void mixed_units(pencil *p, draw *d)
{
    in_units(p, d, 10);
}

/* M of condition about 2^27, A not. */
static void ill_conditioned_mass(pencil *p, draw *d)
{
    dominant(p, d);
    for (int i = 0; i < p->n; i++)
        for (int j = 0; j < p->n; j++)
            *mass_at(p, i, j) = ldexp(*mass_at(p, i, j),
                                      27 * i / (2 * p->n) + 27 * j / (2 * p->n));
}

/* Five-point differences minus 3: a few percent of the spectrum is negative. */
static void sparse_indefinite(pencil *p, draw *d)
{
    square(p, d);
    for (int i = 0; i < p->n; i++) *pencil_a(p, i, i) -= 3;
}

const family families[] = {
    { "geometric", geometric, NULL, FAMILY_EITHER, false },
    { "clustered", clustered, NULL, FAMILY_EITHER, false },
    { "repeated", repeated, NULL, FAMILY_EITHER, true },
    { "one far", one_far, NULL, FAMILY_EITHER, false },
    { "dense indefinite", dense_indefinite, NULL, FAMILY_EITHER, true },
    { "clamped beam", clamped_beam, some_elements, FAMILY_MASS, false },
    { "free beam", free_beam, some_elements, FAMILY_MASS, false },
    { "square", square, squares, FAMILY_EITHER, true },
    { "cube", cube, cubes, FAMILY_EITHER, true },
    { "plate", plate, NULL, FAMILY_EITHER, false },
    { "held by springs", held_by_springs, NULL, FAMILY_EITHER, false },
    { "graph", graph, NULL, FAMILY_EITHER, true },
    { "diagonal", diagonal, NULL, FAMILY_EITHER, true },
    { "toeplitz", toeplitz, NULL, FAMILY_EITHER, true },
    { "arrowhead", arrowhead, NULL, FAMILY_EITHER, true },
    { "dominant", dominant, NULL, FAMILY_EITHER, true },
    { "mixed units", mixed_units, NULL, FAMILY_MASS, false },
    { "ill-conditioned mass", ill_conditioned_mass, NULL, FAMILY_MASS, false },
    { "sparse indefinite", sparse_indefinite, squares, FAMILY_EITHER, true },
};
const int family_count = sizeof families / sizeof *families;

void family_far_units(pencil *p, uint64_t seed)
{
    draw d = { seed };

    in_units(p, &d, 20);
}

static bool wanted(const family *f, bool mass, bool easy)
{
    return (mass || f->mass != FAMILY_MASS) && (!easy || f->easy);
}

const family *family_open(pencil *p, sps_context *ctx, int number, int most,
                          bool mass, bool easy)
{
    static const char *const precond[] = { "auto", "jacobi", "none" };
    draw d = { (uint64_t)number * 7919 + 77 };
    const family *f = &families[number % family_count];
    int n, k;

    while (!wanted(f, mass, easy)) f = &families[(f - families + 1) % family_count];
    /* Small numbers of rows as often as large ones. */
    n = draw_int(&d, 0, 1) ? draw_int(&d, 1, most)
                           : (int)pow(most, draw_unit(&d));
    if (f->size) n = f->size(n);
    /* One in eight has up to 60 pairs, so that the iteration continues after
     * pairs are locked.  Not for the filter, whose pairs are no more accurate
     * than the tolerance: the error of a pair locked at eigenvalue 4 limits the
     * accuracy of pairs at 0.2. */
    k = draw_int(&d, 0, 7) || easy ? 20 : 60;
    k = draw_int(&d, 1, n < k ? n : k);
    mass = mass && f->mass != FAMILY_PLAIN &&
           (draw_int(&d, 0, 1) || f->mass == FAMILY_MASS);
    pencil_open(p, ctx, n, k, mass);
    p->opt.which = draw_int(&d, 0, 1) ? "largest" : "smallest";
    p->opt.precond = precond[f->easy ? draw_int(&d, 0, 2) : 0];
    f->fill(p, &d);
    if (p->count > n - p->nulls) p->count = n - p->nulls;
    return f;
}
