/* SPDX-License-Identifier: BSD-3-Clause */
/* gen_grid.c - matrices on an nx x ny x nz grid of unknowns, x fastest.
 *
 * Kinds with faces (poisson7, convection): unknowns are cell averages; two
 * neighbours share a face of conductance g = area / distance * harmonic mean of
 * k, k the coefficient of a cell; the boundary value is 0, or with `neumann`
 * faces of the boundary do not count.  The product in cell i is
 *     sum_f g_f (x_i - x_j)   [+ upwind v (x_i - x_upstream)]
 *
 * Kinds with elements (laplace27, elasticity): unknowns are at nodes, an
 * element lies between 8 of them.  On a brick the integrals of products of
 * derivatives of trilinear functions are products of three one-dimensional
 * integrals (2-point Gauss quadrature in each direction gives the same values).
 * With S the derivative of a shape function, M the function itself and h the
 * edge length these are
 *     SS: +-1 / h    MM: h (2 or 1) / 6    SM: +-1 / 2
 * so all entries are small integers divided by 36 or 72, times edge lengths,
 * and terms that cancel in theory cancel exactly. */
#include "tools/generator/gen.h"

#include <stdio.h>

static const double jump_ratio = 1e4;
static const double poisson_ratio = 0.3;

static double factor(const gen *g, uint64_t thing, uint32_t what)
{
    const gen_spec *s = &g->spec;

    return s->perturb ? 1 + gen_uniform(s->perturb_seed, thing, what) / 4 : 1;
}

/* Returns the coefficient of the cell or element with lowest corner c (c may be
 * -1). */
static double coefficient(const gen *g, const int64_t c[3])
{
    if (!g->spec.jump)
        return 1;
    /* + 1, because the layer of elements at -1 belongs to the first box. */
    int64_t box = (c[0] + 1) / 8 + (c[1] + 1) / 8 + (c[2] + 1) / 8;
    return box % 2 ? jump_ratio : 1;
}

/* Returns the index, from 0, of position c of the grid, whose coordinates begin
 * at -1. */
static uint64_t number(const gen *g, const int64_t c[3])
{
    const int64_t *n = g->spec.n;

    return (uint64_t)(((c[2] + 1) * (n[1] + 1) + c[1] + 1) * (n[0] + 1) +
                      c[0] + 1);
}

void gen_grid_place(const gen *g, int64_t node, int64_t c[3])
{
    const int64_t *n = g->spec.n;

    c[0] = node % n[0];
    c[1] = node / n[0] % n[1];
    c[2] = node / n[0] / n[1];
}

/* ------------------------------------------------------------------ faces */

/* Returns the area of a face normal to the axis, divided by the distance of the
 * cell centres if requested. */
static double area(const gen *g, int axis, bool over_distance)
{
    double h = g->spec.aniso;

    return axis < 2 ? h : over_distance ? 1 / h : 1;
}

/* Returns the conductance of the face between cell `low` and the next one along
 * axis; one of the two cells may be outside of the grid. */
static double conductance(const gen *g, const int64_t low[3], int axis)
{
    int64_t high[3] = {low[0], low[1], low[2]};
    double a, b, mean;

    high[axis]++;
    if (g->spec.neumann && (low[axis] < 0 || high[axis] == g->spec.n[axis]))
        return 0;
    a = coefficient(g, low[axis] < 0 ? high : low);
    b = coefficient(g, high[axis] == g->spec.n[axis] ? low : high);
    mean = 2 * a * b / (a + b);
    return mean * area(g, axis, true) *
           factor(g, number(g, low), (uint32_t)axis);
}

static int64_t face_row(const gen *g, int64_t i, int32_t *col, double *val)
{
    const int64_t *n = g->spec.n;
    int64_t stride[3] = {1, n[0], n[0] * n[1]};
    int64_t c[3], count = 0, middle;
    double low[3], high[3], sum = 0;

    gen_grid_place(g, i, c);
    for (int axis = 0; axis < 3; axis++) {
        double v = 0;

        if (g->spec.kind == GEN_CONVECTION)
            v = g->spec.velocity / (1 << axis) * area(g, axis, false);
        high[axis] = conductance(g, c, axis);
        c[axis]--;
        /* The neighbour at the lower side is upstream. */
        low[axis] = conductance(g, c, axis) + v;
        c[axis]++;
        sum += low[axis] + high[axis];
    }
    for (int axis = 2; axis >= 0; axis--)
        if (c[axis] > 0) {
            col[count] = (int32_t)(i - stride[axis]);
            val[count++] = -low[axis];
        }
    middle = count++;
    col[middle] = (int32_t)i;
    val[middle] = sum;
    for (int axis = 0; axis < 3; axis++)
        if (c[axis] < n[axis] - 1) {
            col[count] = (int32_t)(i + stride[axis]);
            val[count++] = -high[axis];
        }
    return count;
}

/* --------------------------------------------------------------- elements */

static int bit(int node, int axis) { return node >> axis & 1; }

/* Returns 72 times the integral of d_i N_a d_j N_b over a brick 1 x 1 x h. */
static double integral(int i, int j, int a, int b, double h)
{
    const double edge[3] = {1, 1, h};
    double value = i == j ? 2 : 3;     /* 72 / 36 or 72 / (4 * 6) */

    for (int axis = 0; axis < 3; axis++) {
        int same = bit(a, axis) == bit(b, axis);

        if (axis == i && axis == j)
            value *= (same ? 1 : -1) / edge[axis];
        else if (axis == i)
            value *= bit(a, axis) ? 1 : -1;
        else if (axis == j)
            value *= bit(b, axis) ? 1 : -1;
        else
            value *= (same ? 2 : 1) * edge[axis];
    }
    return value;
}

/* K_ij^ab = lambda D_ij + mu D_ji + delta_ij mu (D_00 + D_11 + D_22), with
 * Young's modulus 1. */
static void fill_elements(gen *g)
{
    const double nu = poisson_ratio, h = g->spec.aniso;
    const double lambda = nu / ((1 + nu) * (1 - 2 * nu));
    const double mu = 1 / (2 * (1 + nu));

    for (int a = 0; a < 8; a++)
        for (int b = 0; b < 8; b++) {
            double sum = 0;

            for (int i = 0; i < 3; i++) {
                g->part[i][a][b] = integral(i, i, a, b, h);
                sum += g->part[i][a][b];
            }
            for (int i = 0; i < 3; i++)
                for (int j = 0; j < 3; j++)
                    g->element[3 * a + i][3 * b + j] =
                        lambda * integral(i, j, a, b, h) +
                        mu * integral(j, i, a, b, h) + (i == j ? mu * sum : 0);
        }
}

/* Returns whether there is an element between positions low and low + 1 of an
 * axis.  If a face is clamped, only x = -1 has elements beyond the unknown
 * nodes. */
static bool exists(const gen *g, int axis, int64_t low)
{
    const bool clamped = g->spec.kind == GEN_ELASTICITY;

    if (!clamped && !g->spec.neumann) return true;
    return low != g->spec.n[axis] - 1 &&
           (low >= 0 || (clamped && axis == 0 && !g->spec.free));
}

/* Sets the coefficients of the eight elements around node c, 0 where there is
 * no element.  Element e has its lowest corner at c - 1 + the bits of e. */
static void around(const gen *g, const int64_t c[3], double k[8][3])
{
    bool clamped = g->spec.kind == GEN_ELASTICITY;

    for (int e = 0; e < 8; e++) {
        bool inside = true;
        int64_t low[3];

        for (int axis = 0; axis < 3; axis++) {
            low[axis] = c[axis] - 1 + bit(e, axis);
            if (!exists(g, axis, low[axis])) inside = false;
        }
        for (int i = 0; i < 3; i++)
            k[e][i] = !inside ? 0 : coefficient(g, low) *
                (i && clamped ? 1 : factor(g, number(g, low), (uint32_t)i));
    }
}

/* Returns the entry for unknown i at a node and unknown j at its neighbour at
 * offset d; k: coefficients of the elements around the node, by around(). */
static double entry(const gen *g, double k[8][3], const int d[3], int i,
                    int j)
{
    double sum = 0;

    for (int e = 0; e < 8; e++) {
        /* The node is the element's corner opposite to e. */
        int a = 7 - e, b = 0;

        for (int axis = 0; axis < 3; axis++) {
            int at = bit(a, axis) + d[axis];

            b |= at < 0 || at > 1 ? 8 : at << axis;
        }
        if (b >= 8 || k[e][0] == 0)
            continue;
        if (g->spec.kind == GEN_ELASTICITY)
            sum += k[e][0] * g->element[3 * a + i][3 * b + j];
        else
            sum += k[e][0] * g->part[0][a][b] + k[e][1] * g->part[1][a][b] +
                   k[e][2] * g->part[2][a][b];
    }
    return sum / 72;
}

static int64_t element_row(const gen *g, int64_t row, int32_t *col,
                           double *val)
{
    const int64_t *n = g->spec.n;
    const int dof = g->spec.kind == GEN_ELASTICITY ? 3 : 1;
    int64_t node = row / dof, c[3], count = 0;
    double k[8][3];
    int d[3];

    gen_grid_place(g, node, c);
    around(g, c, k);
    for (d[2] = -1; d[2] <= 1; d[2]++)
        for (d[1] = -1; d[1] <= 1; d[1]++)
            for (d[0] = -1; d[0] <= 1; d[0]++) {
                bool out = false;

                for (int axis = 0; axis < 3; axis++)
                    out |= c[axis] + d[axis] < 0 ||
                           c[axis] + d[axis] >= n[axis];
                for (int j = 0; j < dof && !out; j++) {
                    int64_t at = node + d[0] + n[0] * (d[1] + n[1] * d[2]);

                    col[count] = (int32_t)(at * dof + j);
                    val[count++] = entry(g, k, d, (int)(row % dof), j);
                }
            }
    return count;
}

/* ---------------------------------------------------------------- interface */

bool gen_grid_open(gen *g, char error[160])
{
    const int64_t *n = g->spec.n;
    gen_kind kind = g->spec.kind;
    bool faces = kind == GEN_POISSON7 || kind == GEN_CONVECTION;
    int64_t nodes, dof = kind == GEN_ELASTICITY ? 3 : 1;

    if (kind == GEN_ELASTICITY &&
        (n[1] < 2 || n[2] < 2 || (g->spec.free && n[0] < 2))) {
        snprintf(error, 160, "elasticity needs NY and NZ of at least 2%s",
                 g->spec.free ? ", and NX too where it is free" : "");
        return false;
    }
    nodes = n[0] * n[1] * n[2];       /* at most 1e15 */
    if (nodes > INT32_MAX / dof) {
        snprintf(error, 160, "%lld unknowns are too many, at most 2^31 - 1",
                 (long long)(nodes * dof));
        return false;
    }
    g->rows = g->diagonal = nodes * dof;
    g->symmetric = kind != GEN_CONVECTION;
    g->widest = faces ? 7 : 27 * dof;
    if (faces)
        g->nnz = 7 * nodes - 2 * (n[0] * n[1] + n[1] * n[2] + n[2] * n[0]);
    else
        g->nnz = dof * dof * (3 * n[0] - 2) * (3 * n[1] - 2) *
                 (3 * n[2] - 2);
    fill_elements(g);
    return true;
}

int64_t gen_grid_row(const gen *g, int64_t i, int32_t *col, double *val)
{
    if (g->spec.kind == GEN_POISSON7 || g->spec.kind == GEN_CONVECTION)
        return face_row(g, i, col, val);
    return element_row(g, i, col, val);
}

int64_t gen_grid_count(const gen *g, int64_t i)
{
    int64_t dof = g->spec.kind == GEN_ELASTICITY ? 3 : 1, c[3];
    int64_t sum = 1, product = dof;

    gen_grid_place(g, i / dof, c);
    for (int axis = 0; axis < 3; axis++) {
        int more = (c[axis] > 0) + (c[axis] < g->spec.n[axis] - 1);

        sum += more;
        product *= 1 + more;
    }
    return g->widest == 7 ? sum : product;
}
