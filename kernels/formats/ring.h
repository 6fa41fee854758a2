/* SPDX-License-Identifier: BSD-3-Clause */
/* ring.h - which panel of a streamed matrix is where, as a function of the
 * passes made so far.
 *
 * Panels 0 .. panels - 1 pass through `slots` slots.  Step t of a pass uses
 * panel t, or panels - 1 - t in a pass backwards; passes alternate, so that the
 * panels of the last steps, which are still in their slots, are those of the
 * first steps of the next pass and need no copy: panels - min(slots, panels)
 * copies a pass, from the second on.  For panels read in a cycle any policy
 * that replaces the oldest one would copy all of them. */
#ifndef SPS_RING_H
#define SPS_RING_H

#include <stdbool.h>
#include <stdint.h>

enum { SPS_RING_SLOTS = 4 };

typedef struct sps_ring {
    int slots;                   /* in use, at most SPS_RING_SLOTS */
    int64_t panels;
    bool backward;               /* the pass to come, or the present one */
    int64_t held;                /* its first steps whose panels are in their
                                    slots */
    int order[SPS_RING_SLOTS];   /* step t uses slot order[t % slots] */
} sps_ring;

static inline void spsi_ring_open(sps_ring *r, int64_t panels, int slots)
{
    *r = (sps_ring){ .slots = slots, .panels = panels };
    for (int i = 0; i < SPS_RING_SLOTS; i++) r->order[i] = i;
}

static inline int64_t spsi_ring_panel(const sps_ring *r, int64_t step)
{
    return r->backward ? r->panels - 1 - step : step;
}

static inline int spsi_ring_slot(const sps_ring *r, int64_t step)
{
    return r->order[step % r->slots];
}

/* A pass is complete: the next one goes the other way. */
static inline void spsi_ring_turn(sps_ring *r)
{
    sps_ring next = *r;

    next.backward = !r->backward;
    next.held = r->panels < r->slots ? r->panels : r->slots;
    for (int i = 0; i < next.held; i++)
        next.order[i] = spsi_ring_slot(r, r->panels - 1 - i);
    *r = next;
}

/* Nothing is known of the slots any more. */
static inline void spsi_ring_forget(sps_ring *r)
{
    r->held = 0;
}

#endif
