/* SPDX-License-Identifier: BSD-3-Clause */
/* near_null.c - the nodes of the finest level, and its near-null vectors, which
 * A maps to small vectors and every coarse space must contain:
 *
 *   nodes of one row     the constant
 *   node blocks          the constant of each unknown of a node or, with the
 *                        nodes' coordinates, the rigid body modes; by option,
 *                        Ritz vectors instead (low_pass.c)
 *   both                 instead of these, vectors of the caller; then the
 *                        basis of a null space that the caller has given; on
 *                        each aggregate the prolongator drops vectors that
 *                        depend on those before them
 *
 * Consecutive rows form a node block if their patterns are the same, as
 * measured for the operator (features.c), in blocks of 2, 3 or 6 rows. */
#include "solvers/amg/amg.h"

#include <math.h>
#include <string.h>

#include "core/comm.h"

static int motions_of(int d) { return d == 2 ? 3 : 6; }

/* Returns the number of rows of a node. */
static int block_of(const sps_precond *M, const sps_options *opt)
{
    const int b = M->A->f.block;

    if (opt->block_size > 0) return opt->block_size;
    if (opt->coords && opt->coords->n * opt->coords->k == M->n)
        return opt->coords->k;
    return b == 2 || b == 3 || b == 6 ? b : 1;
}

/* Makes nodes of b rows, and allocates l->vectors near-null vectors. */
static sps_status number_nodes(const amg *m, amg_level *l, int b)
{
    sps_context *ctx = m->super.ctx;
    sps_status st;

    l->nodes = (l->n + b - 1) / b;
    l->single_rows = b == 1;
    if (l->part) return m->device->nodes(l->part, b, l->vectors);
    SPS_TRY(SPS_NEW(ctx, l->n * l->vectors + 1, &l->near));
    SPS_TRY(SPS_NEW(ctx, l->nodes + 1, &l->start));
    for (int64_t v = 0; v < l->nodes; v++) l->start[v] = v * b;
    l->start[l->nodes] = l->n;
fail:
    return st;
}

/* Copies X, a block in the context's place, to columns first .. first + X->k -
 * 1 of l->near. */
static sps_status take_block(const amg *m, amg_level *l, int first,
                             const sps_block *X)
{
    if (l->part) return m->device->near_null(l->part, first, X);
    return l->n == 0 ? SPS_OK
                     : sps_block_get(X, 0, X->k, l->near + first, l->vectors,
                                     SPS_ROW_MAJOR, SPS_HOST);
}

static sps_status take_constants(const amg *m, amg_level *l, int b)
{
    if (l->part) return m->device->near_null(l->part, 0, NULL);
    for (int64_t i = 0; i < l->n; i++) l->near[i * l->vectors + i % b] = 1;
    return SPS_OK;
}

/* Finds the box that contains the coordinates of this process. */
static void find_box(int64_t n, const double *x, int d, spsi_coarse_box *box)
{
    for (int a = 0; a < d; a++) box->low[a] = box->high[a] = x[a];
    for (int64_t e = 0; e < n; e++) {
        box->low[e % d] = fmin(box->low[e % d], x[e]);
        box->high[e % d] = fmax(box->high[e % d], x[e]);
    }
}

/* Makes *box that of all processes. */
static sps_status join_boxes(sps_context *ctx, int d, spsi_coarse_box *box)
{
    return spsi_comm_size(ctx) == 1
               ? SPS_OK : spsi_comm_box(ctx, d, box->low, box->high);
}

/* Fills the first columns of l->near with rigid body motions; x: d coordinates
 * of each node. */
static void fill_motions(amg_level *l, const double *x, int d,
                         spsi_coarse_box box)
{
    for (int64_t i = 0; i < l->n; i++) {
        double own[3];

        for (int a = 0; a < d; a++)
            own[a] = spsi_coarse_centred(&box, d, x[i / d * d + a], a);
        for (int q = 0; q < motions_of(d); q++)
            l->near[i * l->vectors + q] =
                spsi_coarse_motion(own, d, q, (int)(i % d));
    }
}

static sps_status motions_here(sps_context *ctx, amg_level *l,
                               const sps_block *coords, bool *finite)
{
    spsi_coarse_box box;
    double *x = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, l->n, &x));
    SPS_TRY(sps_block_get(coords, 0, coords->k, x, coords->k, SPS_ROW_MAJOR,
                          SPS_HOST));
    *finite = true;
    for (int64_t e = 0; e < l->n; e++) *finite &= fabs(x[e]) < 1e300;
    find_box(l->n, x, coords->k, &box);
    SPS_TRY(join_boxes(ctx, coords->k, &box));
    if (*finite) fill_motions(l, x, coords->k, box);
fail:
    spsi_free(ctx, x);
    return st;
}

static sps_status motions_there(const amg *m, amg_level *l,
                                const sps_block *coords, bool *finite)
{
    spsi_coarse_box box;
    sps_status st;

    SPS_TRY(m->device->box(l->part, coords, &box, finite));
    SPS_TRY(join_boxes(m->super.ctx, coords->k, &box));
    if (*finite) SPS_TRY(m->device->motions(l->part, coords, &box));
fail:
    return st;
}

/* Sets the rigid motions of the nodes.  They need not be normalised here: T has
 * orthonormal columns on each aggregate (tentative.c).  If coordinates are not
 * finite, sps_block_rigid_body is called, which fails with a message about
 * them. */
static sps_status take_motions(const amg *m, amg_level *l,
                               const sps_block *coords)
{
    sps_block *none = NULL;
    bool finite;
    sps_status st;

    SPS_TRY(l->part ? motions_there(m, l, coords, &finite)
                    : motions_here(m->super.ctx, l, coords, &finite));
    if (!finite) SPS_TRY(sps_block_rigid_body(coords, &none));
fail:
    sps_block_destroy(&none);
    return st;
}

static bool given(const sps_precond *M, const sps_block *basis, int before)
{
    return basis && basis->n == M->n && before + basis->k <= AMG_VECTORS;
}

sps_status spsi_amg_inherit(const amg *m, amg_level *l)
{
    return take_block(m, l, 0, m->inherited);
}

static sps_status inherit(const amg *m, amg_level *l)
{
    sps_status st;

    l->vectors = m->inherited->k;
    SPS_TRY(number_nodes(m, l, m->inherited_rows));
    SPS_TRY(spsi_amg_inherit(m, l));
fail:
    return st;
}

/* Requires X, vectors of the caller, to fit the matrix. */
static sps_status check_vectors(const sps_precond *M, const sps_block *X)
{
    double norm[AMG_VECTORS];
    sps_status st = SPS_OK;

    SPS_REQUIRE(M->ctx, X->n == M->n, SPS_ESHAPE, "near_null_basis has %lld "
                "rows, the matrix %lld", (long long)X->n, (long long)M->n);
    SPS_REQUIRE(M->ctx, X->k <= AMG_VECTORS, SPS_EUNFIT, "near_null_basis has "
                "%d vectors: amg supports at most %d", X->k, AMG_VECTORS);
    SPS_TRY(spsi_reserve(M->ctx, M->n, X->k));
    SPS_TRY(spsi_norms(X, norm));
    for (int j = 0; j < X->k; j++)
        SPS_REQUIRE(M->ctx, M->n == 0 || (norm[j] > 0 && isfinite(norm[j])),
                    SPS_EINVAL,
                    "near_null_basis: the norm of vector %d of %d is %g",
                    j + 1, X->k, norm[j]);
fail:
    return st;
}

/* Sets *X_p to near-null vectors that are neither constants nor motions, or to
 * NULL; *found_p is that block if it was made here. */
static sps_status choose_vectors(const sps_precond *M, const sps_options *opt,
                                 int b, const sps_block **X_p,
                                 sps_block **found_p)
{
    sps_status st = SPS_OK;

    *X_p = opt->near_null_basis;
    if (*X_p) return check_vectors(M, *X_p);
    if (strcmp(opt->near_null, "filtered") != 0 || M->n == 0) return SPS_OK;
    SPS_TRY(spsi_amg_low_pass(M->A, b, found_p));
    *X_p = *found_p;
fail:
    return st;
}

sps_status spsi_amg_near_null(const amg *m, const sps_options *opt,
                              amg_level *l)
{
    const sps_precond *M = &m->super;
    const sps_block *basis = opt->nullspace_basis, *X;
    const int b = block_of(M, opt);
    const bool modes = (b == 2 || b == 3) && opt->coords &&
                       opt->coords->k == b && opt->coords->n * b == M->n &&
                       M->n > 0;
    sps_block *found = NULL;
    int own;
    sps_status st;

    if (m->inherited) return inherit(m, l);
    SPS_REQUIRE(M->ctx, b <= AMG_VECTORS, SPS_EUNFIT, "amg supports nodes of "
                "at most %d rows, not %d: set option block_size",
                AMG_VECTORS, b);
    SPS_TRY(choose_vectors(M, opt, b, &X, &found));
    own = X ? X->k : modes ? motions_of(b) : b;
    l->vectors = own + (given(M, basis, own) ? basis->k : 0);
    SPS_TRY(number_nodes(m, l, b));
    if (X) SPS_TRY(take_block(m, l, 0, X));
    else SPS_TRY(modes ? take_motions(m, l, opt->coords) :
                 take_constants(m, l, b));
    if (l->vectors > own) SPS_TRY(take_block(m, l, own, basis));
fail:
    sps_block_destroy(&found);
    return st;
}
