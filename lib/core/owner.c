/* SPDX-License-Identifier: BSD-3-Clause */
/* owner.c - see owner.h. */
#include "core/owner.h"

typedef struct sps_owned {
    struct sps_owned *before;
    sps_release_fn *release;
    void *place;
} sps_owned;

sps_status spsi_own(sps_owner *o, sps_release_fn *release, void *place)
{
    sps_owned *x;
    sps_status st = SPS_OK;

    for (x = o->last; x; x = x->before)
        if (x->place == place) return st;
    SPS_TRY(SPS_NEW(o->ctx, 1, &x));
    *x = (sps_owned){ o->last, release, place };
    o->last = x;
fail:
    return st;
}

static void release_memory(sps_context *ctx, void *place)
{
    void **p_p = place;

    spsi_free(ctx, *p_p);
    *p_p = NULL;
}

sps_status spsi_own_array(sps_owner *o, int64_t count, size_t size, void **p_p)
{
    sps_status st;

    SPS_TRY(spsi_own(o, release_memory, p_p));
    SPS_TRY(spsi_new_array(o->ctx, count, size, p_p));
fail:
    return st;
}

sps_status spsi_own_numbers(sps_owner *o, int64_t count,
                            double **const places[])
{
    sps_status st = SPS_OK;

    for (int i = 0; places[i]; i++) SPS_TRY(SPS_OWN(o, count, places[i]));
fail:
    return st;
}

void spsi_owner_release(sps_owner *o)
{
    while (o->last) {
        sps_owned *x = o->last;

        x->release(o->ctx, x->place);
        o->last = x->before;
        spsi_free(o->ctx, x);
    }
}
