/* SPDX-License-Identifier: BSD-3-Clause */
/* lowest_modes.c - natural frequencies of a clamped steel plate, 1 m x 1 m and
 * 10 mm thick, compared with textbook values: K x = lambda M x, f =
 * sqrt(lambda) / 2 pi.
 *
 * In Kirchhoff's theory the bending energy is the integral of D (w_xx + w_yy)^2
 * / 2, with the deflection w and the bending stiffness D (the term of the
 * Gaussian curvature vanishes where all edges are clamped).  The element of
 * Bogner, Fox and Schmit (1965) uses products of cubic Hermite polynomials N in
 * x and y, so with the one-dimensional matrices
 *     m = int N N',  s = int N_x N_x',  b = int N_xx N_xx'
 * the matrices are Kronecker products (written x), with density rho and
 * thickness t:
 *     K = D (b x m + 2 s x s + m x b),  M = rho t (m x m)
 * The unknowns are (w, h w'), h the element length, for each direction at each
 * inner node; those of a clamped end are zero and eliminated.  The computed
 * frequencies are upper bounds, with an error of O(h^4).
 *
 * A fourth-order operator needs a strong preconditioner: 22 iterations with
 * ic0, some thousand without.
 *
 * The exit status is 1 if a pair has not converged or a frequency is off by
 * more than 0.1 %. */
#include <spsolve.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ELEMENTS = 20, MODES = 8 };
enum { ONE = 2 * (ELEMENTS - 1) };          /* unknowns along one side */

static const double side = 1, thickness = 0.01;              /* side and
                                                                thickness, m */
static const double young = 210e9, poisson = 0.3;            /* Young's modulus,
                                                                Pa; Poisson's
                                                                ratio */
static const double density = 7850;                          /* kg / m^3 */

/* Dimensionless frequencies 2 pi f a^2 sqrt(rho t / D) of a clamped square
 * plate of side a.  Leissa, Vibration of Plates (NASA SP-160, 1969), gives
 * 35.99 for the first, an upper bound by Ritz's method; these digits are from
 * later computations. */
static const double textbook[MODES] = {35.985, 73.394, 73.394, 108.217,
                                       131.581, 132.205, 165.00, 165.00};

/* Matrices of an element of length h = 1; the unknowns are value and slope at
 * its left end, then at its right end. */
static const double mass[4][4] = {{156, 22, 54, -13}, {22, 4, 13, -3},
                                  {54, 13, 156, -22}, {-13, -3, -22, 4}};
static const double slope[4][4] = {{36, 3, -36, 3}, {3, 4, -3, -1},
                                   {-36, -3, 36, -3}, {3, -1, -3, 4}};
static const double bend[4][4] = {{12, 6, -12, 6}, {6, 4, -6, 2},
                                  {-12, -6, 12, -6}, {6, 2, -6, 4}};

static sps_context *ctx;

static void check(sps_status st)
{
    if (st == SPS_OK)
        return;
    fprintf(stderr, "%s: %s\n", sps_status_string(st),
            sps_context_error(ctx));
    exit(1);
}

/* Returns entry (i, j) of a one-dimensional matrix. */
static double entry(const double e[4][4], int i, int j)
{
    const int a = i % 2, b = j % 2;

    switch (j / 2 - i / 2) {
    case 0: return e[2 + a][2 + b] + e[a][b];
    case 1: return e[a][2 + b];
    case -1: return e[2 + a][b];
    default: return 0;
    }
}

/* Return the entry of K, and of M, for unknowns (ix, iy) and (jx, jy). */
static double stiffness(int ix, int iy, int jx, int jy)
{
    const double h = side / ELEMENTS;
    const double D = young * pow(thickness, 3) / (12 * (1 - poisson * poisson));
    const double mx = entry(mass, ix, jx) / 420, my = entry(mass, iy, jy) / 420;
    const double sx = entry(slope, ix, jx) / 30, sy = entry(slope, iy, jy) / 30;
    const double bx = entry(bend, ix, jx), by = entry(bend, iy, jy);

    return D / (h * h) * (bx * my + 2 * sx * sy + mx * by);
}

static double inertia(int ix, int iy, int jx, int jy)
{
    const double h = side / ELEMENTS;

    return density * thickness * h * h * entry(mass, ix, jx) *
           entry(mass, iy, jy) / (420.0 * 420.0);
}

/* Return the first and the last unknown that shares an element with unknown i,
 * along one side. */
static int first(int i) { return i / 2 > 0 ? i / 2 * 2 - 2 : 0; }
static int last(int i) { return i / 2 < ONE / 2 - 1 ? i / 2 * 2 + 3 : ONE - 1; }

static sps_csr *assemble(double (*value)(int, int, int, int))
{
    int64_t nnz = 0;
    sps_csr *A;

    for (int i = 0; i < ONE; i++) nnz += last(i) - first(i) + 1;
    check(sps_csr_create(ctx, ONE * ONE, ONE * ONE, nnz * nnz, SPS_F64, &A));
    nnz = 0;
    for (int iy = 0; iy < ONE; iy++)
        for (int ix = 0; ix < ONE; ix++) {
            for (int jy = first(iy); jy <= last(iy); jy++)
                for (int jx = first(ix); jx <= last(ix); jx++) {
                    A->col[nnz] = jy * ONE + jx;
                    ((double *)A->val)[nnz++] = value(ix, iy, jx, jy);
                }
            A->rowptr[iy * ONE + ix + 1] = nnz;
        }
    A->props = SPS_SYMMETRIC | SPS_SPD;
    return A;
}

/* Prints the computed and the textbook's frequencies; returns how many
 * differ. */
static int compare(const double *lambda, const sps_eigen_result *r)
{
    const double D = young * pow(thickness, 3) / (12 * (1 - poisson * poisson));
    const double unit = sqrt(D / (density * thickness)) / (side * side);
    const double pi = acos(-1);
    int off = 0;

    printf("mode      f / Hz   textbook     difference   residual\n");
    for (int i = 0; i < MODES; i++) {
        const double f = sqrt(lambda[i]) / (2 * pi);
        const double book = textbook[i] * unit / (2 * pi);

        printf("%4d  %10.4f  %9.3f  %10.4f %%    %.1e\n", i + 1, f, book,
               100 * (f / book - 1), r->residual[i]);
        off += !(fabs(f / book - 1) < 1e-3);
    }
    return off;
}

int main(void)
{
    const char *why = "";
    double lambda[MODES];
    sps_eigen_result r = {.struct_size = sizeof r};
    sps_options opt;
    sps_csr *K, *M;
    sps_operator *op_K, *op_M;
    sps_block *X;
    sps_solver *s;
    int off;

    if (sps_context_create(NULL, &ctx, &why)) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    K = assemble(stiffness);
    M = assemble(inertia);
    check(sps_operator_csr(ctx, K, MODES, NULL, &op_K));
    check(sps_operator_csr(ctx, M, MODES, NULL, &op_M));
    check(sps_block_create(ctx, ONE * ONE, MODES, &X));     /* X = 0: no initial
                                                               guess */
    sps_options_default(&opt);
    opt.precond = "ic0";
    check(sps_solver_create_eigen(op_K, op_M, NULL, MODES, &opt, &s));
    check(sps_solver_eigen(s, X, lambda, &r));
    off = compare(lambda, &r);
    printf("%d unknowns, %s with %s: %s after %d iterations, X'MX = I to "
           "%.0e\n", ONE * ONE, r.solver, r.precond, sps_stop_string(r.stop),
           r.iterations, r.orthogonality);
    sps_solver_destroy(&s);
    sps_block_destroy(&X);
    sps_operator_destroy(&op_M);
    sps_operator_destroy(&op_K);
    sps_csr_destroy(ctx, &M);
    sps_csr_destroy(ctx, &K);
    sps_context_destroy(&ctx);
    return r.stop <= 0 || off > 0;
}
