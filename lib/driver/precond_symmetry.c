/* SPDX-License-Identifier: BSD-3-Clause */
/* precond_symmetry.c - whether a preconditioner of the caller is symmetric,
 * where the method needs that.
 *
 * With u the first column of the first block that M is applied to, and V the
 * second block, u'M V = (M u)'V for a symmetric M.  Both are formed of what the
 * method has computed: M is not applied once more.  Columns whose two numbers
 * differ by more than ASYMMETRY / sqrt(n) of ||u|| ||M v|| are told in a note:
 * if M has an antisymmetric part of the same size as itself, the difference is
 * about 1 / sqrt(n) of that, and that of an M in single precision is below
 * 1e-7 / sqrt(n). */
#include "driver/linear.h"

#include <math.h>

#define ASYMMETRY 1e-4

struct sps_precond_symmetry {
    int seen;                 /* number of applications that were looked at */
    sps_block *u, *z;         /* n x 1: u and M u */
    sps_small *a, *b;         /* 1 x k: u'M V and (M u)'V */
    double *norms;            /* 2 k: of V and M V */
    double norm_u, norm_z;
};

sps_status spsi_precond_symmetry_create(sps_linear *s)
{
    sps_owner *own = &s->made.own;
    struct sps_precond_symmetry *m;
    sps_status st = SPS_OK;

    if (!s->M || !s->M->user ||
        !(s->method.type->needs & (SPS_NEEDS_SPD | SPS_NEEDS_SYMMETRIC)))
        return SPS_OK;
    SPS_TRY(SPS_OWN(own, 1, &s->made.symmetry));
    m = s->made.symmetry;
    SPS_TRY(spsi_own_block(own, s->n, 1, &m->u));
    SPS_TRY(spsi_own_block(own, s->n, 1, &m->z));
    SPS_TRY(spsi_own_small(own, 1, s->columns, &m->a));
    SPS_TRY(spsi_own_small(own, 1, s->columns, &m->b));
    SPS_TRY(SPS_OWN(own, 2 * (int64_t)s->columns, &m->norms));
fail:
    return st;
}

static sps_status remember(struct sps_precond_symmetry *m, const sps_block *R,
                           const sps_block *Z)
{
    sps_block first;
    sps_status st;

    spsi_block_view(R, 0, 1, &first);
    SPS_TRY(spsi_copy(&first, m->u));
    spsi_block_view(Z, 0, 1, &first);
    SPS_TRY(spsi_copy(&first, m->z));
    SPS_TRY(spsi_norms(m->u, &m->norm_u));
    SPS_TRY(spsi_norms(m->z, &m->norm_z));
fail:
    return st;
}

static sps_status compare(sps_linear *s, struct sps_precond_symmetry *m,
                          const sps_block *R, const sps_block *Z)
{
    const double *norm_R = m->norms, *norm_Z = m->norms + R->k;
    bool differs = false;
    sps_status st;

    spsi_small_shape(m->a, 1, R->k);
    spsi_small_shape(m->b, 1, R->k);
    SPS_TRY(spsi_gram(m->u, Z, m->a));
    SPS_TRY(spsi_gram(m->z, R, m->b));
    SPS_TRY(spsi_norms(R, m->norms));
    SPS_TRY(spsi_norms(Z, m->norms + R->k));
    for (int j = 0; j < R->k; j++) {
        const double size = fmax(m->norm_u * norm_Z[j], m->norm_z * norm_R[j]);

        differs = differs || fabs(m->a->v[j] - m->b->v[j]) >
                                 ASYMMETRY / sqrt((double)s->rows) * size;
    }
    if (differs)
        spsi_note(s->ctx, "the given preconditioner is not symmetric: u'M v "
                  "and v'M u differ, or M changes from call to call; %s needs "
                  "a symmetric positive definite one, and may converge slowly "
                  "or not at all; methods for nonsymmetric matrices take any",
                  s->method.type->name);
fail:
    return st;
}

sps_status spsi_precond_symmetry_check(sps_linear *s, const sps_block *R,
                                       const sps_block *Z)
{
    struct sps_precond_symmetry *m = s->made.symmetry;

    if (!m || m->seen > 1 || R->k == 0 || R->dtype != SPS_F64 ||
        Z->dtype != SPS_F64)
        return SPS_OK;
    return m->seen++ == 0 ? remember(m, R, Z) : compare(s, m, R, Z);
}
