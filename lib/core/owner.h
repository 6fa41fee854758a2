/* SPDX-License-Identifier: BSD-3-Clause */
/* owner.h - what an object has created and must release: a list of the
 * addresses of its members, each with the function that releases what is stored
 * there.  A member may be NULL, and its contents may be replaced.  So an
 * incomplete set-up and a complete one are released in the same way, in reverse
 * order. */
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

/* Lists a member; called once, before anything is stored there. */
sps_status spsi_own(sps_owner *o, sps_release_fn *release, void *place);
/* Allocates an array of `count` zeroed elements of `size` bytes and lists *p_p
 * for release; usually called as SPS_OWN(o, count, &pointer). */
sps_status spsi_own_array(sps_owner *o, int64_t count, size_t size,
                          void **p_p);
#define SPS_OWN(o, count, p)                                                   \
    spsi_own_array((o), (int64_t)(count), sizeof **(p), (void **)(p))
/* Allocates an array of `count` doubles for each pointer of a NULL-terminated
 * list. */
sps_status spsi_own_numbers(sps_owner *o, int64_t count,
                            double **const places[]);
void spsi_owner_release(sps_owner *o);

#ifdef __cplusplus
}
#endif
#endif
