/* SPDX-License-Identifier: BSD-3-Clause */
/* zoo_families.c - the families.  Each generates the columns of one row; zoo.c
 * sorts them and removes duplicates. */
#include "tests/problems/zoo_row.h"

#include <math.h>

#include "philox.h"

static void put(row *r, int64_t j)
{
    if (j < 0 || j >= r->ncol) return;
    if (r->count == r->room) {
        r->room = 2 * r->room + 16;
        r->col = zoo_must(realloc(r->col, (size_t)r->room * sizeof *r->col));
    }
    r->col[r->count++] = (int32_t)j;
}

/* A number in 0 .. limit-1 that depends on (seed, row, t). */
static int64_t draw(const row *r, int t, int64_t limit)
{
    double u = spsi_philox_at(r->seed, r->i, t) + 0.5;

    return limit > 0 ? (int64_t)(u * (double)limit) : 0;
}

static void empty(row *r) { (void)r; }
static void diagonal(row *r) { put(r, r->i); }

static void bidiagonal(row *r)
{
    put(r, r->i);
    put(r, r->i + 1);
}

static void tridiagonal(row *r)
{
    for (int d = -1; d <= 1; d++) put(r, r->i + d);
}

static void band(row *r)
{
    for (int d = -6; d <= 6; d++) put(r, r->i + d);
}

static int64_t root(int64_t n, int dimension)
{
    int64_t m = 1;

    while (pow((double)(m + 1), dimension) <= (double)n + 0.5) m++;
    return m;
}

/* Neighbours of point i in an m^3 (flat: m^2) grid, for the full stencil
 * (`all`) or the one along the axes; rows beyond the grid have their diagonal
 * only. */
static void grid(row *r, int64_t point, int64_t m, bool flat, bool all,
                 int dof)
{
    int64_t x = point % m, y = point / m % m, z = point / m / m;
    int64_t depth = flat ? 1 : m;

    if (point >= m * m * depth) {
        put(r, r->i);
        return;
    }
    for (int c = -1; c <= 1; c++)
        for (int b = -1; b <= 1; b++)
            for (int a = -1; a <= 1; a++) {
                if (x + a < 0 || x + a >= m || y + b < 0 || y + b >= m ||
                    z + c < 0 || z + c >= depth)
                    continue;
                if (!all && abs(a) + abs(b) + abs(c) > 1) continue;
                for (int d = 0; d < dof; d++)
                    put(r, (((z + c) * m + y + b) * m + x + a) * dof + d);
            }
}

static void grid5(row *r)
{
    grid(r, r->i, root(r->nrow, 2), true, false, 1);
}

static void grid7(row *r)
{
    grid(r, r->i, root(r->nrow, 3), false, false, 1);
}

static void grid27(row *r)
{
    grid(r, r->i, root(r->nrow, 3), false, true, 1);
}

static void grid27_dof3(row *r)
{
    grid(r, r->i / 3, root(r->nrow / 3, 3), false, true, 3);
}

static void dense(row *r)
{
    for (int64_t j = 0; j < r->ncol; j++) put(r, j);
}

static void dense_row(row *r)
{
    if (r->i == r->nrow / 2) dense(r);
    else put(r, r->i);
}

static void dense_column(row *r)
{
    put(r, r->i);
    put(r, r->ncol / 2);
}

static void arrow(row *r)
{
    if (r->i == 0) dense(r);
    put(r, r->i);
    put(r, 0);
}

static void block_dense(row *r)
{
    for (int d = 0; d < 4; d++) put(r, r->i / 4 * 4 + d);
}

/* Two separate dense 5 x 5 blocks in every block row. */
static void blocks5(row *r)
{
    int64_t count = r->ncol / 5, other = count ? (r->i / 5 * 7 + 3) % count : 0;

    for (int d = 0; d < 5; d++) {
        put(r, r->i / 5 * 5 + d);
        put(r, other * 5 + d);
    }
}

/* Three 8 x 8 blocks, 90 % full, in most block rows: for formats of dense
 * blocks. */
static void blocks8(row *r)
{
    static const int away[] = { 0, 1, 3 };
    int64_t own = r->i / 8, count = (r->ncol + 7) / 8;

    for (int t = 0; t < (own % 11 == 5 ? 1 : 3); t++)
        for (int c = 0; c < 8; c++)
            if (draw(r, 8 * t + c, 10) > 0)
                put(r, (own + away[t]) % count * 8 + c);
}

/* b x b blocks, as from b unknowns per node: on the diagonal, two others, and
 * one in the last, often incomplete, block column. holes: one entry in ten is
 * missing. */
static void nodes(row *r, int b, bool holes)
{
    int64_t own = r->i / b, count = (r->ncol + b - 1) / b;
    const int64_t at[] = { own, (3 * own + 1) % (count ? count : 1),
                           own + 1, count - 1 };

    for (int t = 0; t < 4; t++)
        for (int c = 0; c < b; c++)
            if (!holes || draw(r, b * t + c, 10) > 0) put(r, at[t] * b + c);
}

static void nodes2(row *r) { nodes(r, 2, false); }
static void nodes6(row *r) { nodes(r, 6, false); }
static void nodes7(row *r) { nodes(r, 7, true); }

static void uniform(row *r)
{
    int64_t length = draw(r, 0, 17);

    for (int t = 1; t <= length; t++) put(r, draw(r, t, r->ncol));
}

/* A few long rows and a few heavily used columns. */
static void power_law(row *r)
{
    double u = spsi_philox_at(r->seed, r->i, 0) + 0.5;
    int64_t length = (int64_t)(1 / (u + 1e-3));

    for (int t = 1; t <= length; t++) {
        double v = spsi_philox_at(r->seed, r->i, t) + 0.5;

        put(r, (int64_t)(v * v * v * (double)r->ncol));
    }
}

static void alternating(row *r)
{
    if (r->i % 2) uniform(r);
}

static void last_row(row *r)
{
    if (r->i == r->nrow - 1)
        for (int t = 0; t < 20; t++) put(r, draw(r, t, r->ncol));
}

/* R-MAT (Chakrabarti, Zhan, Faloutsos 2004), eight draws per row: each draw
 * bisects the column range repeatedly, choosing a half with probabilities that
 * depend on the bits of the row. */
static void rmat(row *r)
{
    for (int t = 0; t < 8; t++) {
        int64_t size = 1, j = 0, i = r->i;
        uint64_t u = (uint64_t)draw(r, t, INT64_C(1) << 50);

        for (; size < r->ncol; size *= 2) {
            bool low = (i & 1) == 0, left = u % 100 < (low ? 75 : 56);

            j = 2 * j + !left;
            i /= 2;
            u = u * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963);
            u ^= u >> 29;
        }
        put(r, j);
    }
}

/* Row lengths at the thresholds where kernels change their path. */
static void edges(row *r)
{
    static const int length[] = {
        0,   1,   2,   3,   4,   5,   7,   8,    9,    15,
        16,  17,  31,  32,  33,  63,  64,  65,   127,  128,
        129, 255, 256, 257, 511, 512, 513, 1023, 1024, 1025,
    };
    const int kinds = (int)(sizeof length / sizeof *length);
    int64_t want = length[r->i % kinds];
    int64_t step = want && r->ncol > 3 * want ? 3 : 1;

    for (int64_t t = 0; t < want; t++) put(r, (r->i / 3 + t * step) % r->ncol);
}

/* A ring with chords: each vertex has neighbours at fixed distances. */
static void ring(row *r)
{
    static const int chord[] = {1, 2, 17, 101, 1009};

    put(r, r->i);
    for (int c = 0; c < 5 && chord[c] < r->nrow; c++) {
        put(r, (r->i + chord[c]) % r->nrow);
        put(r, (r->i - chord[c] + r->nrow) % r->nrow);
    }
}

/* Paths of seven vertices; every fourth path falls into single vertices. */
static void components(row *r)
{
    bool alone = r->i / 7 % 4 == 3;

    put(r, r->i);
    if (alone) return;
    if (r->i % 7 > 0) put(r, r->i - 1);
    if (r->i % 7 < 6) put(r, r->i + 1);
}

/* The requested number of entries; columns 1 apart, or as far apart as the
 * width allows. */
void zoo_given(row *r)
{
    int64_t want = r->length[r->i % r->kinds], room = r->ncol - r->first;
    int64_t step = r->i % 2 && want > 0 ? room / want : 1;
    int64_t from = r->first + draw(r, 0, room - want * step + 1);

    for (int64_t t = 0; t < want; t++) put(r, from + t * step);
}

const family zoo_family[] = {
    {"empty", empty, false, 1, 1},
    {"diagonal", diagonal, true, 1, 1},
    {"bidiagonal", bidiagonal, false, 1, 1},
    {"tridiagonal", tridiagonal, true, 1, 1},
    {"band", band, true, 1, 1},
    {"grid5", grid5, true, 1, 1},
    {"grid7", grid7, true, 1, 1},
    {"grid27", grid27, true, 1, 1},
    {"grid27_dof3", grid27_dof3, true, 1, 1},
    {"dense_row", dense_row, false, 1, 1},
    {"dense_column", dense_column, false, 1, 1},
    {"arrow", arrow, true, 1, 1},
    {"block_dense", block_dense, true, 1, 1},
    {"blocks5", blocks5, false, 1, 1},
    {"blocks8", blocks8, false, 1, 1},
    {"nodes2", nodes2, false, 1, 1},
    {"nodes6", nodes6, false, 1, 1},
    {"nodes7", nodes7, false, 1, 1},
    {"uniform", uniform, false, 1, 1},
    {"power_law", power_law, false, 1, 1},
    {"alternating", alternating, false, 1, 1},
    {"last_row", last_row, false, 1, 1},
    {"edges", edges, false, 1, 1},
    {"rmat", rmat, false, 1, 1},
    {"ring", ring, true, 1, 1},
    {"components", components, true, 1, 1},
    {"wide", uniform, false, 3, 1},
    {"tall", uniform, false, 1, 3},
};

const int zoo_families = sizeof zoo_family / sizeof *zoo_family;
