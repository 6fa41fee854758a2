/* SPDX-License-Identifier: BSD-3-Clause */
/* ring.h - which panel of a streamed matrix is in which slot of device memory,
 * as a function of the passes made so far.
 *
 * Panels 0 .. panels - 1 pass through `slots` slots.  Step t of a pass uses
 * panel t, or panel panels - 1 - t in a backward pass.  Passes alternate in
 * direction, so that the panels of the last steps, which are still in their
 * slots, are those of the first steps of the next pass and need no copy.  Each
 * pass after the first makes panels - min(slots, panels) copies.  If all passes
 * had the same direction, any policy that replaces the oldest panel would copy
 * all of them. */
#ifndef SPS_RING_H
#define SPS_RING_H

#include <stdbool.h>
#include <stdint.h>

enum {
    SPS_RING_SLOTS = 4,          /* least number of slots, unless there are
                                    fewer panels */
    SPS_RING_MOST = 256
};

typedef struct sps_ring {
    int slots;                   /* slots in use, at most SPS_RING_MOST */
    int64_t panels;
    bool backward;               /* direction of the current pass, or of the
                                    next one */
    int64_t held;                /* number of its first steps whose panels are
                                    in their slots */
    int order[SPS_RING_MOST];    /* step t uses slot order[t % slots] */
} sps_ring;

static inline void spsi_ring_open(sps_ring *r, int64_t panels, int slots)
{
    *r = (sps_ring){ .slots = slots, .panels = panels };
    for (int i = 0; i < slots; i++) r->order[i] = i;
}

static inline int64_t spsi_ring_panel(const sps_ring *r, int64_t step)
{
    return r->backward ? r->panels - 1 - step : step;
}

static inline int spsi_ring_slot(const sps_ring *r, int64_t step)
{
    return r->order[step % r->slots];
}

/* Called when a pass is complete: the next one has the other direction. */
static inline void spsi_ring_turn(sps_ring *r)
{
    sps_ring next = *r;

    next.backward = !r->backward;
    next.held = r->panels < r->slots ? r->panels : r->slots;
    for (int i = 0; i < next.held; i++)
        next.order[i] = spsi_ring_slot(r, r->panels - 1 - i);
    *r = next;
}

/* Called when the contents of the slots are not known any more. */
static inline void spsi_ring_forget(sps_ring *r)
{
    r->held = 0;
}

#endif
