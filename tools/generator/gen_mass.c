/* SPDX-License-Identifier: BSD-3-Clause */
/* gen_mass.c - mass matrices of the grids of gen_grid.c, for density 1.
 *
 * On a brick grid the integral of N_i N_j over all elements around a node is a
 * product of three one-dimensional ones.  With l and r the numbers (0 or 1) of
 * elements of edge length h to the left and right of a node, the rows are
 *     consistent   h / 6 (l, 2 l + 2 r, r)
 *     lumped       h / 2 (l + r)          (its row sums, on the diagonal)
 * so every entry is a small integer times the volume of an element, divided by
 * 216 or 8.  For finite volumes (poisson7, convection) it is the volume of a
 * cell.  The three unknowns of a node of elasticity are not coupled. */
#include "tools/generator/gen.h"

static int unknowns(const gen *g)
{
    return g->spec.kind == GEN_ELASTICITY ? 3 : 1;
}

static bool cells(const gen *g)
{
    return g->spec.kind == GEN_POISSON7 || g->spec.kind == GEN_CONVECTION;
}

bool gen_mass_open(gen *g)
{
    const int64_t *n = g->spec.n;

    g->symmetric = true;
    g->widest = 1;
    g->nnz = g->diagonal = g->rows;
    if (g->spec.mass == GEN_CONSISTENT && !cells(g)) {
        g->widest = 27;
        g->nnz = unknowns(g) * (3 * n[0] - 2) * (3 * n[1] - 2) *
                 (3 * n[2] - 2);
    }
    return true;
}

/* Returns the number of elements along axis at coordinate c, to the left or the
 * right. */
static int beside(const gen *g, int axis, int64_t c, bool right)
{
    const bool clamped = g->spec.kind == GEN_ELASTICITY && !g->spec.free;

    if (g->spec.kind != GEN_ELASTICITY && !g->spec.neumann)
        /* Dirichlet conditions on all sides. */
        return 1;
    if (right)
        return c < g->spec.n[axis] - 1;
    return c > 0 || (axis == 0 && clamped);
}

/* Returns 6 / h times the integral of N_c N_(c + d) along axis. */
static int along(const gen *g, int axis, int64_t c, int d)
{
    const int left = beside(g, axis, c, false), right = beside(g, axis, c, true);

    return d < 0 ? left : d > 0 ? right : 2 * (left + right);
}

double gen_mass_lumped(const gen *g, int64_t i)
{
    int elements = 8;
    int64_t c[3];

    gen_grid_place(g, i / unknowns(g), c);
    for (int axis = 0; axis < 3 && !cells(g); axis++)
        elements = elements / 2 * (beside(g, axis, c[axis], false) +
                                   beside(g, axis, c[axis], true));
    return elements * g->spec.aniso / 8;
}

static int64_t consistent_row(const gen *g, int64_t i, const int64_t c[3],
                              int32_t *col, double *val)
{
    const int64_t *n = g->spec.n, dof = unknowns(g);
    int64_t count = 0;
    int d[3];

    for (d[2] = -1; d[2] <= 1; d[2]++)
        for (d[1] = -1; d[1] <= 1; d[1]++)
            for (d[0] = -1; d[0] <= 1; d[0]++) {
                int product = 1;

                for (int axis = 0; axis < 3; axis++) {
                    const int64_t at = c[axis] + d[axis];

                    product *= at < 0 || at >= n[axis]
                                   ? 0 : along(g, axis, c[axis], d[axis]);
                }
                if (product == 0)
                    continue;
                col[count] = (int32_t)(i + dof * (d[0] + n[0] * (d[1] +
                                                           n[1] * d[2])));
                val[count++] = product * g->spec.aniso / 216;
            }
    return count;
}

int64_t gen_mass_row(const gen *g, int64_t i, int32_t *col, double *val)
{
    int64_t c[3];

    if (g->widest == 1) {
        col[0] = (int32_t)i;
        val[0] = gen_mass_lumped(g, i);
        return 1;
    }
    gen_grid_place(g, i / unknowns(g), c);
    return consistent_row(g, i, c, col, val);
}

int64_t gen_mass_count(const gen *g, int64_t i)
{
    int64_t c[3], product = 1;

    gen_grid_place(g, i / unknowns(g), c);
    for (int axis = 0; axis < 3 && g->widest > 1; axis++)
        product *= 1 + (c[axis] > 0) + (c[axis] < g->spec.n[axis] - 1);
    return product;
}
