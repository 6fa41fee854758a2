/* SPDX-License-Identifier: BSD-3-Clause */
/* halo.h - rows of blocks that products need from other processes.
 *
 * A process owns the consecutive rows first .. first+n-1 of the whole, in the
 * order of the processes.  Columns of its rows that others own are its ghosts.
 * Ghosts ascend, and so those of one neighbour are consecutive: they are
 * received in place, in one message for all columns of a block.
 *
 *   operand of a product   [ low ghosts | own rows touched | high ghosts ]
 *
 * Neighbours are mutual: a process that receives from another may send it
 * nothing, but then it counts as a neighbour all the same. */
#ifndef SPS_HALO_H
#define SPS_HALO_H

#include "block/block.h"
#include "core/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sps_halo {
    sps_context *ctx;
    int64_t first, n, whole;
    int64_t *offset;          /* first row of each process; size + 1 */
    int64_t *ghost;           /* global numbers, ascending, */
    int64_t ghosts, low;      /* how many, how many of them below first */
    int neighbours;
    int *peer;                /* ascending */
    int64_t *send_at;         /* of peer[i]: send[send_at[i]] and following; */
    int64_t *ghost_at;        /* ghost[ghost_at[i]] and following */
    int32_t *send;            /* own rows to be sent */
    sps_message *out, *in;    /* one for each neighbour at most */
} sps_halo;

/* Collective.  ghost: `ghosts` distinct global numbers outside the own rows,
 * ascending; copied.  EINVAL: the rows of all processes are not the whole. */
sps_status spsi_halo_create(sps_context *ctx, int64_t first, int64_t n,
                            int64_t whole, const int64_t *ghost, int64_t ghosts,
                            sps_halo **h_p);
void spsi_halo_destroy(sps_halo **h_p);
/* Number of the process that owns a row of the whole. */
int spsi_halo_owner(const sps_halo *h, int64_t row);
/* The number of a ghost, or -1. */
int64_t spsi_halo_ghost(const sps_halo *h, int64_t row);

/* m: one message for each neighbour that has items, of `each` bytes an item;
 * those of peer[i] are numbers at[i] .. at[i+1] - 1.  Returns how many. */
int spsi_halo_messages(const sps_halo *h, const int64_t *at, void *items,
                       size_t each, sps_message *m);

/* Memory for exchanges of so many columns, where the wire needs it. */
sps_status spsi_halo_reserve(sps_halo *h, int width);
/* Starts to send `packed`, rows send[] of a block, and to receive the ghosts:
 * those below into the rows of `operand` from 0 on, the others into its last
 * ones.  Both have the same k and ld, as on all processes.  finish waits. */
sps_status spsi_halo_start(sps_halo *h, const sps_block *packed,
                           sps_block *operand);
sps_status spsi_halo_finish(sps_halo *h);

#ifdef __cplusplus
}
#endif
#endif
