/* SPDX-License-Identifier: BSD-3-Clause */
/* owner.h - what an object has made and must release: a list of places, each
 * with the function that releases what is there.  Places may hold NULL, and
 * what they hold may be replaced.  So a set-up that fails half-way and one that
 * is complete are released alike, in reverse order. */
#ifndef SPS_OWNER_H
#define SPS_OWNER_H

#include "core/context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void sps_release_fn(sps_context *ctx, void *place);

typedef struct sps_owner {
    sps_context *ctx;
    struct sps_owned *last;
} sps_owner;

/* Lists a place once, to be called before anything is made there. */
sps_status spsi_own(sps_owner *o, sps_release_fn *release, void *place);
/* As spsi_new_array; usually as SPS_OWN(o, count, &pointer). */
sps_status spsi_own_array(sps_owner *o, int64_t count, size_t size,
                          void **p_p);
#define SPS_OWN(o, count, p)                                                   \
    spsi_own_array((o), (int64_t)(count), sizeof **(p), (void **)(p))
/* An array of `count` numbers for each place of a list that ends in NULL. */
sps_status spsi_own_numbers(sps_owner *o, int64_t count,
                            double **const places[]);
void spsi_owner_release(sps_owner *o);

#ifdef __cplusplus
}
#endif
#endif
