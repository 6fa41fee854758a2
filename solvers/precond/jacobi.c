/* SPDX-License-Identifier: BSD-3-Clause */
/* jacobi.c - Z = D^-1 R, D the diagonal of A: one read and one write of a
 * block.  If all its entries are equal (stencils), Z = R, since a constant
 * factor changes no iterate of CG.
 *
 * A diagonal entry that is 0 or absent is replaced by 1, a negative one by its
 * magnitude, so that M is positive definite and CG itself detects an indefinite
 * A. Notes report both.
 *
 * For least squares D_j = ||a_j||, where a_j is column j of A: A D^-1 has
 * columns of norm 1, and D^-2 is the same preconditioner of A'A. */
#include "core/comm.h"
#include "driver/precond.h"

struct jacobi {
    sps_precond super;
    sps_block *inverse;    /* n x 1: D^-1 */
    double *host;          /* n elements: D^-1 of the columns, else NULL */
};

/* D of the columns, by way of the host. */
static sps_status fill_columns(struct jacobi *m, sps_diagonal_kinds *k)
{
    sps_precond *M = &m->super;
    sps_status st;

    SPS_TRY(spsi_matrix_inverse_columns(M->A, m->host, &k->zero));
    for (int64_t i = 1; i < M->n && !k->other; i++)
        k->other = m->host[i] != m->host[0];
    SPS_TRY(sps_block_set(m->inverse, 0, 1, m->host, M->n > 0 ? M->n : 1,
                          SPS_COL_MAJOR, SPS_HOST));
fail:
    return st;
}

static sps_status fill(struct jacobi *m, bool note)
{
    sps_precond *M = &m->super;
    sps_diagonal_kinds k = { 0 };
    sps_status st;

    SPS_TRY(M->columns ? fill_columns(m, &k)
                       : spsi_matrix_inverse_block(M->A, m->inverse, &k));
    if (note && k.zero && M->columns)
        spsi_note(M->ctx, "jacobi: %lld column%s of A zero; 1 is used "
                  "instead of the norm", (long long)k.zero,
                  k.zero == 1 ? " is" : "s are");
    else if (note && k.zero)
        spsi_note(M->ctx, "jacobi: %lld diagonal %s zero; 1 is used instead",
                  (long long)k.zero, k.zero == 1 ? "entry is" : "entries are");
    if (note && k.negative)
        spsi_note(M->ctx, "jacobi: %lld diagonal %s negative: the matrix is "
                  "not positive definite", (long long)k.negative,
                  k.negative == 1 ? "entry is" : "entries are");
    /* Over several processes the diagonals of the other processes may
     * differ. */
    M->identity = !spsi_comm_many(M->ctx) && !k.other;
fail:
    return st;
}

static sps_status build(sps_precond *M, const sps_options *opt)
{
    struct jacobi *m = (struct jacobi *)M;
    sps_status st = SPS_OK;

    (void)opt;
    SPS_TRY(spsi_own_block(&M->own, M->n, 1, &m->inverse));
    M->diagonal = m->inverse;
    if (M->columns) SPS_TRY(SPS_OWN(&M->own, M->n, &m->host));
    SPS_TRY(fill(m, true));
fail:
    return st;
}

static sps_status update(sps_precond *M)
{
    return fill((struct jacobi *)M, false);
}

static sps_status apply(const sps_precond *M, const sps_block *R, sps_block *Z)
{
    return spsi_scale_rows(((const struct jacobi *)M)->inverse, R, Z);
}

static int64_t room(int width)
{
    (void)width;
    return 1;
}

SPS_DEFINE(sps_precond_type, spsi_precond_jacobi) = {
    .name = "jacobi", .always = true, .symmetric = true, .columns = true,
    .needs = SPS_NEEDS_CSR | SPS_DIAGONAL_ONLY | SPS_READS_THERE,
    .size = sizeof(struct jacobi),
    .ranks = SPS_RANKS_SAME,
    .build = build, .update = update, .apply = apply, .room = room,
};
