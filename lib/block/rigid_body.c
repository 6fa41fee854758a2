/* SPDX-License-Identifier: BSD-3-Clause */
/* rigid_body.c - rigid body modes of a structure from the coordinates of its
 * nodes, in d dimensions.
 *
 * The modes are d translations u = e_a, and for each pair a < b of axes a
 * rotation u_a = -(x_b - c_b), u_b = x_a - c_a, where c is the mean of the
 * nodes.  They are linear in x: stiffness matrices of unsupported structures
 * map them to zero.  They are orthonormalised by Gram-Schmidt, twice, which
 * suffices for orthogonality to rounding (Giraud, Langou, Rozloznik and van den
 * Eshof 2005).  A mode whose remainder is below RANK of its length depends on
 * the others and is left out: one rotation for points on a line, all rotations
 * for a single point.
 *
 * Serial on the host: 6 columns of n values, and 42 passes over one of them. */
#include <math.h>
#include <stdlib.h>

#include "core/backend.h"
#include "block/block.h"

#define RANK 1e-10
enum { MOST = 6 };

/* Sets u (d m values) to mode q: translation q if q < d, else a rotation.  x
 * has the centred coordinates, m x d, row-major. */
static void fill_motion(const double *x, int64_t m, int d, int q, double *u)
{
    const int a = q < d ? q : (q - d) / 2, b = q < d ? -1 : 1 + (q - d + 1) / 2;

    for (int64_t i = 0; i < m; i++) {
        for (int c = 0; c < d; c++) u[i * d + c] = 0;
        u[i * d + a] = b < 0 ? 1 : -x[i * d + b];
        if (b >= 0) u[i * d + b] = x[i * d + a];
    }
}

static double dot(const double *u, const double *v, int64_t n)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++) sum += u[i] * v[i];
    return sum;
}

/* Orthogonalises u against the `count` columns of Q and normalises it.  Returns
 * false if the remainder is below RANK times the length of u, or that length is
 * below RANK * size. */
static bool orthonormal(const double *Q, int count, int64_t n, double size,
                        double *u)
{
    double before = sqrt(dot(u, u, n)), after;

    if (!(before > RANK * size)) return false;
    for (int pass = 0; pass < 2; pass++)
        for (int q = 0; q < count; q++) {
            const double h = dot(Q + q * n, u, n);

            for (int64_t i = 0; i < n; i++) u[i] -= h * Q[q * n + i];
        }
    after = sqrt(dot(u, u, n));
    if (!(after > RANK * before)) return false;
    for (int64_t i = 0; i < n; i++) u[i] /= after;
    return true;
}

/* Copies the coordinates to host memory, centred at their mean and scaled by
 * their largest distance from it along an axis. */
static sps_status centred(const sps_block *coords, double *x)
{
    sps_context *ctx = coords->ctx;
    const int64_t m = coords->n;
    const int d = coords->k;
    sps_status st;
    double most = 0;

    SPS_TRY(sps_block_get(coords, 0, d, x, d, SPS_ROW_MAJOR, SPS_HOST));
    for (int64_t i = 0; i < m * d; i++)
        SPS_REQUIRE(ctx, fabs(x[i]) < 1e300, SPS_EINVAL, "coordinate %d of "
                    "node %lld is not finite, or too large", (int)(i % d) + 1,
                    (long long)(i / d) + 1);
    for (int a = 0; a < d; a++) {
        double mean = 0;

        for (int64_t i = 0; i < m; i++) mean += x[i * d + a] / (double)m;
        for (int64_t i = 0; i < m; i++) {
            x[i * d + a] -= mean;
            most = fmax(most, fabs(x[i * d + a]));
        }
    }
    for (int64_t i = 0; i < m * d && most > 0; i++) x[i] /= most;
fail:
    return st;
}

sps_status sps_block_rigid_body(const sps_block *coords, sps_block **R_p)
{
    sps_context *ctx = coords ? coords->ctx : NULL;
    sps_status st;
    double *x = NULL, *Q = NULL;
    sps_block *R = NULL;
    int64_t n = 0;
    int d, motions, count = 0;

    SPS_REQUIRE(ctx, coords && R_p, SPS_EINVAL,
                "sps_block_rigid_body: NULL argument");
    d = coords->k;
    n = coords->n * d;
    motions = d == 2 ? 3 : 6;
    SPS_REQUIRE(ctx, (d == 2 || d == 3) && n > 0, SPS_ESHAPE, "coordinates "
                "are an array of a row for each node and 2 or 3 columns, not "
                "%lld x %d", (long long)coords->n, d);
    SPS_TRY(SPS_NEW(ctx, n, &x));
    SPS_TRY(SPS_NEW(ctx, MOST * n, &Q));
    SPS_TRY(centred(coords, x));
    for (int q = 0; q < motions; q++) {
        fill_motion(x, coords->n, d, q, Q + count * n);
        count += orthonormal(Q, count, n, sqrt((double)coords->n),
                             Q + count * n);
    }
    if (count < motions)
        spsi_note(ctx, "the nodes are collinear or coincide: %d rigid motions "
                  "instead of %d", count, motions);
    SPS_TRY(sps_block_create(ctx, n, count, &R));
    SPS_TRY(sps_block_set(R, 0, count, Q, n, SPS_COL_MAJOR, SPS_HOST));
    *R_p = R;
    R = NULL;
fail:
    sps_block_destroy(&R);
    spsi_free(ctx, x);
    spsi_free(ctx, Q);
    return st;
}
