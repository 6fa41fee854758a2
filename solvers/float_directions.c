/* SPDX-License-Identifier: BSD-3-Clause */
/* float_directions.c - search directions of block CG in single precision. */
#include "solvers/float_directions.h"

#include "block/basis.h"
#include "block/single.h"
#include "core/comm.h"
#include "core/timer.h"

/* Returns whether P may be kept.  Each process of an M of its own would scale
 * the columns of Z by factors of its own. */
static bool keeps(const sps_linear *s)
{
    return s->M && s->M->gives_floats && !s->made.null && s->columns >= 2 &&
           s->columns <= SPS_SINGLE_WIDEST &&
           (!spsi_comm_many(s->ctx) ||
            s->M->type->ranks == SPS_RANKS_WHOLE);
}

sps_status spsi_floats_set_up(sps_linear *s, sps_float_directions *d)
{
    const int k = s->columns;
    const size_t bytes = (size_t)s->n * (size_t)spsi_block_ld(k) *
                         SPS_FLOATS_KEPT * sizeof(float);
    sps_status st;
    bool room, lacks;

    if (!keeps(s)) return SPS_OK;
    SPS_TRY(spsi_has_room(s->ctx, bytes, &room));
    SPS_TRY(spsi_comm_any(s->ctx, !room, &lacks));
    if (lacks) return SPS_OK;
    SPS_TRY(spsi_own_small(&s->made.own, SPS_FLOATS_KEPT * k, k, &d->H));
    st = spsi_own_basis(&s->made.own, s->n, k, SPS_FLOATS_KEPT, SPS_F32,
                        &d->kept);
    if (st != SPS_OK && st != SPS_EDEVMEM) return st;
    SPS_TRY(spsi_comm_any(s->ctx, st == SPS_EDEVMEM, &lacks));
    if (lacks) spsi_basis_destroy(&d->kept);
    if (d->kept) SPS_TRY(spsi_basis_square(d->kept));
fail:
    return st;
}

void spsi_floats_open(const sps_linear *s, sps_float_directions *d)
{
    d->count = 0;
    d->on = d->kept && keeps(s);
    d->zero = s->course.from_zero;
}

/* At the first step of a sum the blocks of d->kept get the width of R, so that
 * their rows have the same stride as the blocks that M works on. */
void spsi_floats_view(const sps_linear *s, sps_float_directions *d, int r,
                      sps_block *view)
{
    if (d->count == 0) {
        spsi_basis_narrow(d->kept, s->k);
        d->kept->all->ld = spsi_block_ld(s->k);
        spsi_small_shape(d->H, SPS_FLOATS_KEPT * s->k, s->k);
        spsi_small_clear(d->H);
    }
    spsi_basis_block(d->kept, d->count, view);
    spsi_block_narrow(view, r);
}

void spsi_floats_next(const sps_linear *s, sps_float_directions *d, int r,
                      sps_block *view)
{
    (void)s;
    spsi_basis_block(d->kept, d->count + 1, view);
    spsi_block_narrow(view, r);
}

sps_status spsi_floats_start(sps_linear *s, sps_float_directions *d,
                             sps_small *S)
{
    sps_status st;

    spsi_floats_view(s, d, s->k, &d->single);
    d->behind = true;
    SPS_TRY(spsi_linear_precondition(s, &s->R, &d->single));
    SPS_TRY(spsi_gram(&d->single, &d->single, S));
fail:
    return st;
}

sps_status spsi_floats_widen(sps_float_directions *d, sps_block *P)
{
    const bool needed = d->on && d->behind;

    d->behind = false;
    return needed ? spsi_copy(&d->single, P) : SPS_OK;
}

sps_status spsi_floats_round(const sps_linear *s, sps_float_directions *d,
                             sps_block *P)
{
    sps_status st;

    spsi_floats_view(s, d, P->k, &d->single);
    SPS_TRY(spsi_copy(P, &d->single));
    SPS_TRY(spsi_copy(&d->single, P));
fail:
    return st;
}

sps_status spsi_floats_multiply(sps_linear *s, sps_float_directions *d,
                                sps_block *P, sps_block *Q)
{
    bool served = false;
    sps_status st;

    if (d->on) SPS_TRY(spsi_linear_apply_single(s, &d->single, Q, &served));
    if (served) return SPS_OK;
    SPS_TRY(spsi_floats_widen(d, P));
    SPS_TRY(spsi_linear_apply(s, P, Q));
fail:
    return st;
}

sps_status spsi_floats_add(sps_linear *s, sps_float_directions *d,
                           sps_block *Z, const sps_small *b,
                           sps_block *P, sps_small *S)
{
    const bool first = d->count == 0;
    sps_status st = SPS_OK;

    spsi_phase_begin(s->ctx, SPS_PHASE_GRAM);
    if (first) {
        st = spsi_combine(Z, b, P, S);
    } else {
        st = spsi_combine_single(Z, b, &d->single, S);
        spsi_block_narrow(P, Z->k);
    }
    spsi_phase_end(s->ctx, SPS_PHASE_GRAM);
    d->single = *Z;
    d->behind = !first;
    return st;
}

sps_status spsi_floats_settle(sps_linear *s, sps_float_directions *d)
{
    sps_status st = SPS_OK;

    if (d->count == 0) return SPS_OK;
    spsi_phase_begin(s->ctx, SPS_PHASE_GRAM);
    st = spsi_basis_update(1.0, d->kept, d->count, d->H, !d->zero, &s->X, NULL);
    spsi_phase_end(s->ctx, SPS_PHASE_GRAM);
    d->count = 0;
    d->zero = false;
    return st;
}

sps_status spsi_floats_put_off(sps_linear *s, sps_float_directions *d,
                               const sps_small *a)
{
    const int first = d->count * s->k;

    for (int j = 0; j < a->cols; j++)
        for (int i = 0; i < a->rows; i++)
            *spsi_small_at(d->H, first + i, j) = *spsi_small_at(a, i, j);
    return ++d->count == SPS_FLOATS_KEPT ? spsi_floats_settle(s, d) : SPS_OK;
}

sps_status spsi_floats_end(sps_linear *s, sps_float_directions *d,
                           sps_block *P)
{
    sps_status st;

    SPS_TRY(spsi_floats_widen(d, P));
    SPS_TRY(spsi_floats_settle(s, d));
    d->on = d->zero = false;
fail:
    return st;
}
